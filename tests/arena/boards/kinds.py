"""Stored votes on prompts of several kinds, on which planted strengths differ."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx2
import numpy as np

from arena.domain.battle import BattleState
from arena.domain.model import Model
from arena.domain.vote import Choice, Voter
from arena.play.upkeep import label_votes
from arena.store.store import Store
from tests.arena.store.battles import A1, B1, NOW, ballot, complete, new_battle
from tests.serving import Served, Visitor, serve
from tests.sqlite import new_sqlite

ROCKS = ("Quartz 8B", "Basalt Large", "Feldspar Mini", "Mica 2", "Gneiss Instruct")
MODELS = tuple(
    Model(
        id=name.lower().replace(" ", "-"),
        name=name,
        organisation="Rocks Inc",
        endpoint="pocket://x",
        model=name,
    )
    for name in ROCKS
)
PROMPTS = {
    "code": "Write a Python function that sorts list number {n}.",
    "creative": "Write a poem about the sea, with {n} verses.",
    "translation": "Translate into German: the cat sat on {n} mats.",
    "other": "Pourquoi le ciel est-il bleu, et comment mesure-t-on cela {n} fois ?",
}
SHARES = (0.4, 0.3, 0.05, 0.25)
CODE_FIRST = np.linspace(1.2, -1.2, len(ROCKS))
STRENGTHS = {"code": CODE_FIRST, "creative": -0.5 * CODE_FIRST}
"""In nats; on other prompts all are equal."""


def vote_on_kinds(store: Store, n: int = 300, seed: int = 0, voters: int = 40) -> None:
    """Register the rocks, let people vote on them, and label the prompts."""
    rng = np.random.default_rng(seed)
    store.hold_lease()
    store.register(MODELS, NOW)
    kinds = rng.choice(list(PROMPTS), n, p=SHARES)
    for number, kind in enumerate(kinds.tolist()):
        first, second = rng.choice(len(ROCKS), 2, replace=False).tolist()
        gap = STRENGTHS.get(kind, np.zeros(len(ROCKS)))[[first, second]]
        p = 1 / (1 + np.exp(gap[1] - gap[0]))
        choice = Choice.TIE if number % 9 == 8 else Choice.A if rng.random() < p else Choice.B
        voter = Voter(f"v{rng.integers(voters)}")
        prompt = PROMPTS[kind].format(n=number)
        _cast(store, f"kind-{seed}-{number}", prompt, (first, second), choice, voter)
    label_votes(store, lambda: NOW)


def _cast(
    store: Store, name: str, prompt: str, pair: tuple[int, int], choice: Choice, voter: Voter
) -> None:
    a, b = (MODELS[i] for i in pair)
    battle = replace(new_battle(name, voter), prompt=prompt, prompt_id=name, a=a, b=b)
    store.open_battle(replace(battle, created=NOW - timedelta(hours=1)))
    answers = {A1: complete(), B1: complete()}
    store.close_answers(name, BattleState.READY, answers, message=None, now=NOW)
    store.cast(ballot(name, choice, key=name, voter=voter.id))


def until_made(ada: Visitor, path: str) -> httpx2.Response:
    """Read a page until its boards are made: the machine decides how long that takes."""
    while "being worked out" in (answer := ada.get(path)).text:
        time.sleep(0.05)
    return answer


@contextmanager
def arena_of_kinds(folder: Path, n: int, *addresses: str) -> Iterator[Served]:
    """Serve an arena with so many votes on labelled prompts, whose boards there are made."""
    with closing(Store(new_sqlite(folder))) as store:
        vote_on_kinds(store, n)
    with serve(database=store.engine.url.render_as_string()) as served:
        with served.visitor() as ada:
            for address in addresses:
                until_made(ada, address)
        yield served
