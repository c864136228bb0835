"""An answer that was cut at a limit: marked after the vote, and nowhere before it."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace

import pytest

from arena.api.battles import ReceiptBody
from arena.catalogue import Language
from arena.domain.battle import BattleState
from arena.domain.vote import CUTS, DEFAULT, MAX_CHARACTERS, WITH_BROKEN, Choice, Cut
from arena.pages.rendering import Visit, battle_page, my_battles_page
from arena.play.live import stored_snapshot
from arena.store import battles, blocks
from arena.store.store import Store
from tests.arena.pages.page import text
from tests.arena.store.battles import A1, ADA, B1, MODELS, NOW, ballot, complete, new_battle

ENDS = {
    "whole": ("stop", "stop"),
    "tokens": ("length", "stop"),
    "characters": ("stop", MAX_CHARACTERS),
    "both": ("MAX_TOKENS", "model_length"),
}
MARKS = {
    Language.EN: "This answer was cut at its token limit.",
    Language.DE: "Diese Antwort wurde an ihrem Token-Limit abgeschnitten.",
}


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with closing(Store(database_url)) as made:
        made.hold_lease()
        made.register(MODELS, NOW)
        for name, ends in ENDS.items():
            made.open_battle(new_battle(name))
            a, b = (replace(complete(), finish_reason=end) for end in ends)
            made.close_answers(name, BattleState.READY, {A1: a, B1: b}, message=None, now=NOW)
        yield made


def snapshot(store: Store, name: str) -> str:
    with store.reading() as session:
        stored = battles.stored_battle(session, name, ADA.id)
    return json.dumps(asdict(stored_snapshot(stored)), default=str).replace(name, "")


def test_before_the_vote_a_truncated_answer_looks_like_any_other(store: Store) -> None:
    assert {snapshot(store, name) for name in ENDS} == {snapshot(store, "whole")}
    with store.reading() as session:
        past = battles.past_battles(session, ADA.id, NOW)
    assert [(one.cut_a, one.cut_b) for one in past] == [(None, None)] * len(ENDS)
    page = my_battles_page(past, linked=True, now=NOW)
    assert not any(str(mark) in page for mark in CUTS.values())


def test_the_reveal_says_at_which_limit_an_answer_was_cut(store: Store) -> None:
    cuts = {
        "whole": (None, None),
        "tokens": (Cut.TOKENS, None),
        "characters": (None, Cut.CHARACTERS),
        "both": (Cut.TOKENS, Cut.TOKENS),
    }
    for name, expected in cuts.items():
        receipt = store.cast(ballot(name, Choice.B))[0]
        assert receipt.reveal is not None
        assert (receipt.reveal.a.cut, receipt.reveal.b.cut) == expected
        body = ReceiptBody.model_validate(receipt).model_dump(mode="json")
        assert (body["models"]["a"]["cut"], body["models"]["b"]["cut"]) == expected
        with store.reading() as session:
            again = stored_snapshot(battles.stored_battle(session, name, ADA.id))
        assert again.models == receipt.reveal
    with store.reading() as session:
        past = battles.past_battles(session, ADA.id, NOW)
        assert {one.battle_id: (one.cut_a, one.cut_b) for one in past} == cuts
        for policy in (DEFAULT, WITH_BROKEN):
            assert set(blocks.columns(session, policy).values("left_out")) == {None}


def test_a_skip_reveals_no_limit(store: Store) -> None:
    assert store.cast(ballot("tokens", Choice.SKIP))[0].reveal is None
    with store.reading() as session:
        past = battles.past_battles(session, ADA.id, NOW)
    assert not any(one.cut_a or one.cut_b for one in past)


@pytest.mark.parametrize("language", Language)
def test_pages_mark_a_truncated_answer_after_the_vote(store: Store, language: Language) -> None:
    visit = Visit(language=language)
    for name in ENDS:
        store.cast(ballot(name, Choice.A))
    with store.reading() as session:
        shown = {name: battles.battle(session, DEFAULT, name) for name in ENDS}
        past = battles.past_battles(session, ADA.id, NOW)
    pages = {}
    for name, battle in shown.items():
        assert battle is not None
        pages[name] = text(battle_page(battle, now=NOW, visit=visit))
    mark = MARKS[language]
    assert [pages[name].count(mark) for name in ENDS] == [0, 1, 0, 2]
    mine = text(my_battles_page(past, linked=True, now=NOW, visit=visit))
    assert [mine.count(f"{side}: {mark}") for side in "AB"] == [2, 1]
