"""A small log whose board is published, and what is changed in the folder afterwards."""

import json
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from arena.boards.bundle import (
    CARD,
    FILES,
    MANIFEST,
    Manifest,
    Published,
    PublishedBoard,
    check_bundle,
    file_hash,
    publish,
)
from arena.domain.battle import VOTE_WITHIN, BattleState
from arena.domain.board_view import rows_of
from arena.domain.people import Entrance
from arena.domain.study import CallLimits, Purpose, Statements
from arena.domain.vote import DEFAULT, Choice, Policy, Voter
from arena.pages.studies import bundle_page
from arena.store import people
from arena.store.labels import add
from arena.store.store import Store
from rating.tables.formats import as_csv, as_json
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, exclude, new_battle

STATEMENTS = Statements(
    purpose=Purpose.PURCHASE,
    purpose_sentence="We choose <one> & pay.",
    not_claimed="That it is right.",
    who_voted="Four of us.",
    weaknesses="Few votes.",
)
LIMITS = CallLimits(max_prompt_chars=20_000, max_answer_chars=40_000, answer_timeout_s=180.0)
CHOICES = (Choice.A, Choice.B, Choice.TIE, Choice.A, Choice.BOTH_BAD)
SECRETS = {"temperature": 0.2, "x_token": "sk-secret", "tools": [{"function": {"name": "search"}}]}


def fill(url: str) -> None:
    """Let five voters, two of them one person, vote on 21 battles; one is skipped, one excluded.

    Voter ``v0`` signs in as somebody later on; battles are labelled.
    """
    with closing(Store(url)) as store:
        store.hold_lease()
        store.register(MODELS, NOW)
        for i in range(22):
            voter = f"v{i % 5}"
            battle = new_battle(f"b{i}", Voter(voter))
            asked = replace(battle.a, decoding=SECRETS, system_prompt="Answer briefly.")
            battle = replace(battle, a=asked, prompt_id=f"p{i % 4}")
            store.open_battle(replace(battle, prompt_set="recorded" if i % 3 else None))
            words = {A1: complete(), B1: complete()}
            store.close_answers(f"b{i}", BattleState.READY, words, message=None, now=NOW)
            choice = Choice.SKIP if i == 20 else CHOICES[i % 7 % 5]
            cast = NOW + timedelta(minutes=i)
            store.cast(replace(ballot(f"b{i}", choice, voter=voter), cast=cast))
        exclude(store, "b21", DEFAULT, "a test of ours")
        with store.writing() as session:
            people.enter(session, Entrance("https://id.example", "s", "Bo"), "v0", NOW)
            people.enter(session, Entrance("https://id.example", "s", "Bo"), "v3", NOW)
            labels = [(turn, "category", "code", None) for turn in range(1, 15)]
            labels += [(turn, "language", "fr", None) for turn in range(1, 9)]
            add(session, labels, DEFAULT.tagger, NOW)


def publish_into(
    url: str,
    folder: Path,
    statements: Statements = STATEMENTS,
    votes_to: Path | None = None,
    policy: Policy = DEFAULT,
) -> Published:
    with closing(Store(url)) as store:
        return publish(
            store,
            policy,
            statements,
            LIMITS,
            folder,
            NOW,
            enough=5,
            vote_within=VOTE_WITHIN,
            page=bundle_page,
            check=problems,
            votes_to=votes_to,
        )


def problems(folder: Path) -> list[str]:
    return check_bundle(folder, bundle_page).problems


def change(folder: Path, name: str, act: Callable[[Any], object]) -> None:
    """Change what a file of JSON holds."""
    plain = json.loads((folder / name).read_text())
    act(plain)
    (folder / name).write_text(as_json(plain))


def nudge(folder: Path) -> None:
    """Give the best model more points."""
    change(folder, "board.json", lambda board: board["ratings"][0].update(rating=9_001.0))


def remake(folder: Path) -> None:
    """Write the table and the page again of what the other files hold, as far as they can be."""
    with suppress(ValueError, LookupError, TypeError, ArithmeticError):
        board = (folder / "board.json").read_text()
        withheld = bool(json.loads((folder / MANIFEST).read_text())["withheld"])
        (folder / "board.csv").write_text(as_csv(rows_of(json.loads(board))), newline="")
        card = CARD.validate_json((folder / "card.json").read_text())
        page = bundle_page(PublishedBoard.model_validate_json(board), card, withheld)
        (folder / "index.html").write_text(page, newline="")


def seal(folder: Path) -> None:
    """Write the manifest again, as somebody does who knows how, of the files as they are."""
    plain = json.loads((folder / MANIFEST).read_text())
    plain["files"] = {name: file_hash(folder / name) for name in FILES if (folder / name).exists()}
    manifest = Manifest.model_validate_json(json.dumps(plain))
    whole = manifest.model_copy(update={"hash": manifest.right_hash()})
    (folder / MANIFEST).write_text(as_json(whole.model_dump()))
