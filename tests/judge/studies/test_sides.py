"""Raters who go by the side: who is warned of, and how seldom who is not."""

from collections.abc import Callable

import numpy as np
import pytest

from judge.studies.biases import BY_SIDE, FALSE_ALARM, SideCounts, warn_of_sides
from tests.judge.studies.crowds import Crowd

Record = Callable[[str, object], None]

HONEST = {
    "alike": Crowd(item=1.0),
    "hard items": Crowd(item=0.2, ties=0.1),
    "leaning, each more or less": Crowd(item=1.0, lean=0.5, leans=0.3),
    "of strong tastes": Crowd(item=0.5, rater=0.5, taste=1.5, ties=0.2),
}


def counts_of(
    crowd: Crowd, rng: np.random.Generator, raters: int, items: int, repeats: int
) -> list[SideCounts]:
    """Draw a study in which everybody rates everything, and count sides."""
    _, labels, (first, second) = crowd.draw(rng, items, raters, raters, repeats)
    counts = []
    for rater in range(raters):
        own = labels.only((labels.rater == rater) & (labels.label != 0))
        again = second.only((second.rater == rater) & (second.label != 0))
        seen = [
            (a, b)
            for a, b, who in zip(first.label, second.label, first.rater, strict=True)
            if who == rater and a != 0 and b != 0
        ]
        left = (own.label == own.first).sum() + (again.label == again.first).sum()
        counts.append(
            SideCounts(
                f"r{rater}",
                int(left),
                own.n + again.n,
                sum(bool(a == b) for a, b in seen),
                len(seen),
            )
        )
    return counts


def by_side(name: str, rng: np.random.Generator, n: int, twice: int, follows: float) -> SideCounts:
    """Draw a rater who takes the left in a share of the choices, and flips a coin in the rest."""
    p_left = (1 + follows) / 2
    same_side = int(rng.binomial(twice, p_left**2 + (1 - p_left) ** 2))
    return SideCounts(name, int(rng.binomial(n, p_left)), n, twice - same_side, twice)


def test_who_always_takes_the_left_is_named_with_the_share() -> None:
    (one,) = warn_of_sides([SideCounts("r1", 60, 60, 0, 8), SideCounts("r2", 33, 60, 7, 8)])
    assert (one.rater, one.kind, one.share.value, one.share.n) == ("r1", "side", 1.0, 60)
    assert "100% (94–100) of 60 choices of a side are for the answer shown first" in one.sentence
    (other,) = warn_of_sides([SideCounts("r1", 0, 60)])
    assert (other.kind, other.share.value) == ("side", 0.0)


def test_who_takes_the_same_side_again_is_named() -> None:
    (one,) = warn_of_sides([SideCounts("r1", 30, 60, 1, 16), SideCounts("r2", 30, 60, 14, 16)])
    assert (one.rater, one.kind, one.share.value) == ("r1", "side again", 15 / 16)
    assert "of 16 items shown again" in one.sentence


def test_who_chooses_like_a_coin_where_others_do_not_is_named() -> None:
    steady = [SideCounts(f"r{n}", 30, 60, 37, 40) for n in range(5)]
    (one,) = warn_of_sides([*steady, SideCounts("coin", 30, 60, 19, 40)])
    assert (one.rater, one.kind, one.share.value) == ("coin", "other answer", 19 / 40)
    assert "For the other raters the share is 92%." in one.sentence
    everybody = [SideCounts(f"r{n}", 30, 60, 20, 40) for n in range(6)]
    assert warn_of_sides(everybody) == ()


def test_little_says_nothing() -> None:
    assert warn_of_sides([]) == ()
    assert warn_of_sides([SideCounts("r1"), SideCounts("r2", 3, 3, 0, 2)]) == ()
    leaning = SideCounts("r3", 45, 60)
    assert leaning.left / leaning.chosen == BY_SIDE
    assert warn_of_sides([leaning]) == ()
    assert warn_of_sides([SideCounts("r4", 53, 60)]) == (), "by both ends: 2 x 0.0088 > 0.05 / 3"
    seven = [SideCounts(f"r{n}", 30, 60) for n in range(7)]
    one = SideCounts("r7", 54, 60)  # 2 x 0.0033, less than 0.05 / 3 and more than 0.05 / 24
    assert [len(warn_of_sides([one, *others])) for others in ([], seven)] == [1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("crowd", HONEST)
@pytest.mark.parametrize(("raters", "items", "repeats"), [(4, 60, 6), (8, 60, 20), (20, 120, 40)])
def test_who_goes_by_the_answers_is_seldom_warned_of(
    crowd: str, raters: int, items: int, repeats: int, record_property: Record
) -> None:
    """In at most a twentieth of honest studies anybody is named."""
    rng, studies = np.random.default_rng([raters, items]), 400
    alarms = sum(
        bool(warn_of_sides(counts_of(HONEST[crowd], rng, raters, items, repeats)))
        for _ in range(studies)
    )
    row = {"crowd": crowd, "raters": raters, "repeats": repeats, "alarms": alarms / studies}
    record_property(f"alarms, {studies} studies a row", row)
    error = np.sqrt(FALSE_ALARM * (1 - FALSE_ALARM) / studies)
    assert alarms / studies <= FALSE_ALARM + 2 * error


@pytest.mark.slow
def test_who_goes_by_the_side_or_flips_coins_is_named_in_studies_long_enough(
    record_property: Record,
) -> None:
    rng, studies = np.random.default_rng(5), 200
    named = {"side": 0, "coin": 0}
    for _ in range(studies):
        honest = counts_of(Crowd(item=3.0), rng, 7, 60, 40)
        odd = (by_side("side", rng, 60, 3, 0.95), by_side("coin", rng, 60, 40, 0.0))
        for one in odd:
            named[one.rater] += any(w.rater == one.rater for w in warn_of_sides([*honest, one]))
    record_property(f"named, {studies} studies", {k: n / studies for k, n in named.items()})
    assert named["side"] / studies >= 0.95
    assert named["coin"] / studies >= 0.4
