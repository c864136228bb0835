import json
from itertools import combinations

import numpy as np
import pytest

from rating import Comparisons, DataError, Fit, NotIdentifiedError, fit, fit_bradley_terry
from rating.influence import Dropped, Flip, Removal, fewest_to_flip, removals
from tests.rating.builders import counts, random_votes, votes

Row = tuple[str, str, str, str]


def lead(rows: list[Row], above: str, below: str) -> float | None:
    """Lead of a model, from the votes; None if it has no finite value."""
    data = votes(rows)
    if not {above, below} <= set(data.models):
        return None
    try:
        fitted = fit_bradley_terry(data)
    except NotIdentifiedError:
        return None
    return float(
        fitted.theta[fitted.models.index(above)] - fitted.theta[fitted.models.index(below)]
    )


def fewest_by_trying(rows: list[Row], flip: Flip, units: list[list[int]]) -> int:
    """Smallest number of units, of all choices, without which the places change."""
    for k in range(1, len(units)):
        for chosen in combinations(units, k):
            out = {row for unit in chosen for row in unit}
            left = lead([r for n, r in enumerate(rows) if n not in out], flip.above, flip.below)
            if left is not None and left < -1e-9:
                return k
    raise AssertionError("No choice changes the places.")


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6])
def test_the_votes_found_change_the_places_and_are_seldom_more_than_needed(seed: int) -> None:
    rows = random_votes(np.random.default_rng(seed), n=24, n_models=3, n_voters=4)
    data = votes(rows)
    closest = min(fewest_to_flip(fit(data), data), key=lambda flip: flip.gap)
    assert closest.k is not None
    least = fewest_by_trying(rows, closest, [[n] for n in range(len(rows))])
    assert least <= closest.k <= least + 1
    rest = list(rows)
    for kind in closest.dropped:
        for _ in range(kind.times):
            rest.remove(
                next(r for r in rest if r[:3] == (kind.model_a, kind.model_b, kind.outcome))
            )
    assert len(rows) - len(rest) == closest.k
    assert lead(rest, closest.above, closest.below) == pytest.approx(closest.refitted_gap)
    assert closest.refitted_gap is not None
    assert closest.refitted_gap < 0 <= closest.gap


@pytest.mark.parametrize("seed", range(6))
def test_the_voters_found_change_the_places_and_are_seldom_more_than_needed(seed: int) -> None:
    rows = random_votes(np.random.default_rng(seed), n=200, n_models=4, n_voters=9)
    data = votes(rows)
    names = sorted({row[3] for row in rows})
    units = [[n for n, row in enumerate(rows) if row[3] == name] for name in names]
    closest = min(fewest_to_flip(fit(data), data, unit="voter"), key=lambda flip: flip.gap)
    assert closest.k == len(closest.clusters)
    least = fewest_by_trying(rows, closest, units)
    assert least <= len(closest.clusters) <= least + 1
    rest = [row for row in rows if row[3] not in {names[c] for c in closest.clusters}]
    assert lead(rest, closest.above, closest.below) == pytest.approx(closest.refitted_gap)
    assert closest.share == len(closest.clusters) / 9


def first_removal(data: Comparisons, fitted: Fit, unit: str = "vote") -> Removal:
    best, second = np.argsort(-fitted.theta)[:2].tolist()
    return next(iter(removals(fitted, data, unit, [(best, second)], 50)))  # type: ignore[arg-type]


def test_the_influence_of_one_vote_is_what_a_refit_without_it_shows(
    rng: np.random.Generator,
) -> None:
    data = votes(random_votes(rng, n=2000))
    removal = first_removal(data, fit(data))
    shown = removal.refitted(1)
    assert shown is not None
    assert removal.gap - removal.predicted(1) == pytest.approx(removal.gap - shown, rel=0.01)
    assert (np.diff(removal.moved) >= 0).all()


def test_the_influence_of_one_voter_is_what_a_refit_without_them_shows(
    rng: np.random.Generator,
) -> None:
    """The first of them cast half of all votes, and is left out by a refit."""
    rows = random_votes(rng, n=2000, n_voters=100)
    data = votes([(a, b, outcome, max(v, "v50")) for a, b, outcome, v in rows])
    removal = first_removal(data, fit(data), "voter")
    best, second = removal.pair
    for voter, moved in zip(removal.order[:20], removal.moved[:20], strict=True):
        rest = fit(data.subset(np.flatnonzero(data.voter != voter))).theta
        assert moved == pytest.approx(rest[best] - rest[second] - removal.gap, rel=0.05)
    assert (np.diff(removal.moved) >= 0).all()


def test_without_one_vote_less_the_places_stay(rng: np.random.Generator) -> None:
    data = votes(random_votes(rng, n=1500, n_models=4))
    fitted = fit(data)
    for flip in fewest_to_flip(fitted, data):
        pair = fitted.models.index(flip.above), fitted.models.index(flip.below)
        removal = next(iter(removals(fitted, data, "vote", [pair], 1000)))
        assert flip.k is not None
        before = removal.refitted(flip.k - 1)
        assert before is not None
        assert before >= -1e-9


def test_level_models_have_not_changed_places() -> None:
    data = votes([("x", "y", "model_a")] * 6 + [("x", "y", "model_b")] * 4)
    flip = fewest_to_flip(fit(data), data)[0]
    assert (flip.above, flip.below, flip.unit, flip.clusters) == ("x", "y", "vote", ())
    assert (flip.k, flip.share, flip.predicted_k, flip.tried) == (3, 0.3, 3, 3)
    assert flip.dropped == (Dropped("x", "y", "model_a", 3),)
    # A vote won moves the lead by 0.4 / 2.4, of the information, and over 1 less 0.1, its own.
    gaps = np.log(3 / 2), np.log(3 / 2) - 3 * 0.4 / 2.4 / 0.9, np.log(3 / 4)
    assert (flip.gap, flip.predicted_gap, flip.refitted_gap) == pytest.approx(gaps)


def test_a_lead_that_no_trial_turns_is_said_to_stand() -> None:
    data = votes([("x", "y", "model_a")] * 60 + [("x", "y", "model_b")] * 4)
    flip = fewest_to_flip(fit(data), data, at_most=5)[0]
    assert flip.k is flip.share is flip.predicted_k is None
    assert (flip.dropped, flip.tried) == ((), 5)
    assert flip.refitted_gap == pytest.approx(np.log(55 / 4))
    far = counts([("x", "y", [300, 180])])
    assert fewest_to_flip(fit(far), far)[0].k == 121


def test_votes_that_leave_nothing_to_fit_are_no_flip() -> None:
    """Without all three of its wins x loses for ever: that is no lead to report."""
    data = votes([("x", "y", "model_a")] * 3 + [("x", "y", "model_b")])
    flip = fewest_to_flip(fit(data), data)[0]
    assert (flip.k, flip.refitted_gap, flip.tried) == (None, None, 3)


def test_votes_by_the_cell_are_votes_one_by_one() -> None:
    one = np.array([0, 0, 1, 1, 0, 0])
    two = np.array([1, 1, 2, 2, 2, 2])
    outcome, n = np.array([0, 1, 0, 1, 0, 1]), np.array([9, 7, 8, 5, 12, 9])
    cells = Comparisons.from_codes(["x", "y", "z"], one, two, outcome, votes=n)
    single = Comparisons.from_codes(
        ["x", "y", "z"], np.repeat(one, n), np.repeat(two, n), np.repeat(outcome, n)
    )
    assert fewest_to_flip(fit(cells), cells) == fewest_to_flip(fit(single), single)


def test_the_scale_of_the_weights_does_not_matter() -> None:
    sides = ["model_a"] * 9 + ["model_b"] * 5
    plain, heavy = (
        Comparisons.from_arrays(["x"] * 14, ["y"] * 14, sides, weight=[w] * 14) for w in (1.0, 7.0)
    )
    one, two = (fewest_to_flip(fit(data), data)[0] for data in (plain, heavy))
    assert one.k == two.k == 5
    assert one.refitted_gap == pytest.approx(two.refitted_gap)


def test_prompts_hold_ranks_too(rng: np.random.Generator) -> None:
    n = 600
    a = rng.integers(3, size=n)
    b = (a + rng.integers(1, 3, size=n)) % 3
    data = Comparisons.from_codes(
        ["x", "y", "z"], a, b, rng.integers(2, size=n), prompt=rng.integers(40, size=n)
    )
    for flip in fewest_to_flip(fit(data), data, unit="prompt"):
        assert flip.k is not None
        assert flip.share == flip.k / 40
        assert flip.refitted_gap is not None
        assert flip.refitted_gap < 0


def test_a_result_is_plain_json(rng: np.random.Generator) -> None:
    data = votes(random_votes(rng, n=60, n_models=3))
    plain = fewest_to_flip(fit(data), data)[0].to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["dropped"][0].keys() == {"model_a", "model_b", "outcome", "times"}


def test_questions_that_have_no_answer_are_refused(rng: np.random.Generator) -> None:
    data = votes(random_votes(rng, n=300, n_models=3))
    fitted = fit(data)
    best, *_, worst = [fitted.models[i] for i in np.argsort(-fitted.theta)]
    with pytest.raises(DataError, match="stand above"):
        fewest_to_flip(fitted, data, pairs=[(worst, best)])
    with pytest.raises(DataError, match="No votes on 'nobody'"):
        fewest_to_flip(fitted, data, pairs=[(best, "nobody")])
    with pytest.raises(DataError, match="half wins"):
        fewest_to_flip(fit(data, ties="davidson"), data)
    with pytest.raises(DataError, match="prompt"):
        fewest_to_flip(fitted, data, unit="prompt")
    with pytest.raises(DataError, match="at_most"):
        fewest_to_flip(fitted, data, at_most=0)
