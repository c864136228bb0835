"""A race that is on: how it stands, in the admin room and in a terminal."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from arena.boards.fitted import RaceWatch, standing_of
from arena.catalogue import Language
from arena.commands.serve import _of_race
from arena.domain.people import Role
from arena.domain.room_view import RaceStanding
from arena.domain.vote import FAILURES, Choice, Voter
from arena.pages.rendering import Visit, filled
from arena.store.store import Store
from tests.arena.boards.log import NOW, Vote, logged
from tests.arena.store.battles import MODELS, ballot, ready
from tests.arena.store.battles import NOW as THEN
from tests.command import Command
from tests.serving import Served, invited, quick_arena
from tests.sqlite import new_sqlite

BETWEEN = ("m0", "m1")


def cast(ahead: float, voters: int = 60, each: int = 6) -> list[Vote]:
    """Votes of people who prefer m0 to m1 with some probability, and now and then see m2."""
    rng = np.random.default_rng(7)
    return [
        Vote("m0", "m1" if n % 3 else "m2", choice, voter=f"v{voter}")
        for voter in range(voters)
        for n in range(each)
        for choice in [Choice.A if rng.random() < ahead else Choice.B]
    ]


def test_a_race_is_over_once_the_two_are_separated() -> None:
    over = standing_of(logged(cast(0.85)), BETWEEN)
    assert over.separated
    assert over.lower is not None
    assert over.lower > 0
    assert over.voters < 60, "it stands as it stood when they were"
    even = standing_of(logged(cast(0.5)), BETWEEN)
    assert not even.separated
    assert even.lower is not None
    assert even.upper is not None
    assert even.lower < 0 < even.upper
    assert (even.voters, even.votes) == (60, 360)


@pytest.mark.parametrize(
    ("votes", "counted"), [([], 0), ([Vote("m2", "m3", Choice.A)], 0), (cast(0.6, voters=9), 54)]
)
def test_nothing_is_claimed_of_too_few_votes(votes: list[Vote], counted: int) -> None:
    standing = standing_of(logged(votes), BETWEEN)
    assert (standing.lead, standing.separated, standing.votes) == (None, False, counted)


def test_a_race_is_looked_at_again_when_there_are_votes(tmp_path: Path) -> None:
    with closing(Store(new_sqlite(tmp_path))) as store:
        store.register(MODELS, THEN)
        watch = RaceWatch(store, ("basalt", "quartz"))
        watch.look()
        assert watch.read().votes == 0
        ready(store, "b1", Voter("ada"))
        store.cast(ballot("b1", Choice.A, voter="ada"))
        watch.look()
        assert watch.read().votes == 1


@pytest.mark.parametrize(
    ("standing", "words", "printed"),
    [
        (
            RaceStanding(BETWEEN, 0.95),
            "Nothing is estimated yet: it takes 15 effective voters",
            "inconclusive so far (0 votes of 0 voters).",
        ),
        (
            RaceStanding(BETWEEN, 0.95, 360, 60, -12.4, -80.0, 55.2),
            "often. Lead of m0 : −12 points (−80 to +55). They are not separated (95%, however",
            "-12 points (-80 to +55) after 360 votes of 60 voters; not separated (level 95%",
        ),
        (
            RaceStanding(BETWEEN, 0.95, 90, 40, 81.0, 2.0, 160.0, separated=True),
            "They are separated, however often one looked (95%): the race may end.",
            "+81 points (+2 to +160) after 90 votes of 40 voters; separated: the race may end",
        ),
    ],
)
def test_the_overview_and_the_terminal_say_how_the_race_stands(
    standing: RaceStanding, words: str, printed: str
) -> None:
    assert words in text_of(overview(standing))
    assert _of_race(standing).startswith(f"Race of m0 and m1: {printed}")
    assert "Wettlauf" in overview(standing, Language.DE)
    assert "Race" not in text_of(overview(None))


def overview(standing: RaceStanding | None, language: Language = Language.EN) -> str:
    values = {"status": STATUS, "race": standing, "failures": FAILURES, "now": NOW}
    return filled("admin/overview.html", Visit(language), **values, problem=None, done=None)


STATUS: dict[str, object] = dict.fromkeys(("running", "battles", "votes", "dollars"), 0)
STATUS |= {"budget": None, "models": (), "paused": (), "spenders": ()}


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", page)))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    settings = {"sampler": "race", "race": "id-z, id-x", "secret_key": "k" * 32}
    with quick_arena(tmp_path, **settings) as served:
        yield served


def test_the_room_and_the_terminal_say_that_a_race_is_on(
    served: Served, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served.visitor() as visitor:
        visitor.vote(visitor.play(), "model_a")
        visitor.post(invited(served, Role.ADMIN))
        assert "id-z against id-x" in re.sub(r" +", " ", text_of(visitor.get("/admin").text))
    at = ("--database", served.database)
    assert json.loads(command("status", "--format", "json", *at).stdout)["race"] is None
    monkeypatch.setenv("ARENA_SAMPLER", "race")
    monkeypatch.setenv("ARENA_RACE", "id-z,id-x")
    race = json.loads(command("status", "--format", "json", *at).stdout)["race"]
    assert (race["between"], race["lead"]) == (["id-z", "id-x"], None)
    printed = " ".join(command("status", *at).stdout.split())
    assert "Race of id-z and id-x: inconclusive so far" in printed
