"""How often rings are named, what they gain then, and how seldom honest arenas make one."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pytest

from tests.rating.attacked import NAMES, TARGET, Arena, Moved
from tests.simulation import runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

N_ARENAS = runs(40)
Recorder = Callable[[str, object], None]


@dataclass(frozen=True, slots=True)
class Row:
    """Means over arenas: named rightly, other rings named, and what the ring gained."""

    named: float
    others: float
    points: float
    ranks: float
    undefended: float


def study(arena: Arena, seed: int, *, trait: bool = False) -> Row:
    return Row(*np.mean([*_each(arena, seed, trait=trait)], axis=0).tolist())


def _each(arena: Arena, seed: int, *, trait: bool) -> Iterator[tuple[float, ...]]:
    for number in range(N_ARENAS):
        rng = np.random.default_rng([seed, number])
        votes = arena.draw(rng)
        check = votes.check(votes.trait(rng) if trait else None)
        direction = "for" if arena.sign > 0 else "against"
        right = [
            ring
            for ring in check.rings
            if (ring.model, ring.direction) == (NAMES[TARGET], direction)
        ]
        after = Moved.by(votes, check.weight)
        before = Moved.by(votes)
        others = len(check.rings) - len(right)
        yield len(right), others, after.points, after.ranks, before.points


@pytest.mark.parametrize(
    ("accounts", "each", "named"), [(50, 20, 0.85), (50, 40, 0.95), (10, 100, 0.95)]
)
def test_a_ring_is_named_and_gains_nothing(
    accounts: int, each: int, named: float, record_property: Recorder
) -> None:
    row = study(Arena(accounts=accounts, each=each), seed=1)
    record_property("rings", {"ring": f"{accounts} x {each}"} | asdict(row))
    assert row.named >= named
    assert row.undefended > 60
    assert abs(row.points) <= 15
    assert row.ranks <= 0.3
    assert row.others <= 0.05


def test_a_ring_that_votes_a_model_down_is_named_too(record_property: Recorder) -> None:
    row = study(Arena(accounts=50, each=40, sign=-1), seed=2)
    record_property("rings", {"ring": "50 x 40 against"} | asdict(row))
    assert row.named >= 0.95
    assert abs(row.points) <= 15
    assert row.others <= 0.05


def test_a_small_ring_gains_nothing_where_behaviour_gives_it_away(
    record_property: Recorder,
) -> None:
    arena = Arena(accounts=20, each=20)
    row = study(arena, seed=3, trait=True)
    unseen = study(arena, seed=3)
    record_property("rings", {"ring": "20 x 20 with a trait"} | asdict(row))
    record_property("rings", {"ring": "20 x 20 without"} | asdict(unseen))
    assert row.ranks <= 0.3
    assert abs(row.points) <= 15


@pytest.mark.parametrize("trait", [False, True])
@pytest.mark.parametrize(
    "arena",
    [
        Arena(taste=0.0), Arena(taste=0.4), Arena(taste=0.8), Arena(heaviest=0.2),
        Arena(community=0.3, liking=1.0), Arena(community=0.3, liking=2.0), Arena(club=50),
    ],
    ids=["taste 0", "taste .4", "taste .8", "heavy", "community 1", "community 2", "club"],
)  # fmt: skip
def test_honest_arenas_name_no_ring(
    arena: Arena, trait: bool, record_property: Recorder, request: pytest.FixtureRequest
) -> None:
    row = study(arena, seed=4, trait=trait)
    record_property("honest arenas", {"arena": request.node.callspec.id} | asdict(row))
    assert row.named + row.others <= 0.05
