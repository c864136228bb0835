"""Powered Bradley-Terry: another optimiser, the plain fit at its edges, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from judge.studies.powered import (
    PoweredRatings,
    Ratings,
    bread_at,
    moments_at,
    powered_ratings,
    problem_of,
    row_scores,
)
from judge.studies.rows import Items, Labels
from rating import Comparisons, fit_bradley_terry
from rating.errors import DataError, NotIdentifiedError
from tests.judge.studies.simulated import Study, labels_of
from tests.rating.builders import by_cluster, cr1

SMALL = Study(n_models=5, n_prompts=60, n_voted=300, n_judged=1500)
Drawn = tuple[Items, Labels, Labels]


def drawn(study: Study = SMALL, seed: int = 1) -> Drawn:
    return study.draw(np.random.default_rng(seed))


def own_prompts(data: Drawn) -> Drawn:
    items, people, judge = data
    return replace(items, prompt=np.arange(items.n)), people, judge


def as_comparisons(items: Items, what: Labels) -> Comparisons:
    a, b = items.pairs[what.item].T
    outcome = np.array([2, 0, 1])[what.label]
    return Comparisons.from_codes(items.models, a, b, outcome, prompt=items.prompt[what.item])


def contrasts(items: Items) -> np.ndarray:
    """One row an item: 1 for the model on side A, -1 for the one on side B."""
    one = np.eye(len(items.models))
    return np.asarray(one[items.pairs[:, 0]] - one[items.pairs[:, 1]])


def published(
    items: Items, people: Labels, judge: Labels, lam: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Estimate, covariance and best weight as PPI++ has them for independent items.

    Written from the paper: a logistic regression without the first model, minimised by a general
    optimiser.
    """
    x = contrasts(items)[:, 1:]
    y, f = (people.label + 1) / 2, (judge.label + 1) / 2
    n, more = people.n, judge.n - people.n
    x_n, x_more, f_n, f_more = x[:n], x[n:], f[:n], f[n:]

    def loss(beta: np.ndarray) -> float:
        def mean(rows: np.ndarray, score: np.ndarray) -> float:
            return float(np.mean(np.logaddexp(0, rows @ beta) - score * (rows @ beta)))

        return mean(x_n, y) - lam * mean(x_n, f_n) + lam * mean(x_more, f_more)

    beta = minimize(loss, np.zeros(x.shape[1]), method="BFGS", options={"gtol": 1e-9}).x
    p_n, p_more = (1 / (1 + np.exp(-rows @ beta)) for rows in (x_n, x_more))
    g, g_f = x_n * (p_n - y)[:, None], x_n * (p_n - f_n)[:, None]
    g_more = x_more * (p_more - f_more)[:, None]

    def curvature(rows: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.asarray((rows * (p * (1 - p))[:, None]).T @ rows / len(rows))

    inverse = np.linalg.inv((1 - lam) * curvature(x_n, p_n) + lam * curvature(x_more, p_more))
    meat = np.cov((g - lam * g_f).T) / n + lam**2 * np.cov(g_more.T, ddof=0) / more * n / (n - 1)
    both = np.cov(np.hstack([g, g_f]).T)[: x.shape[1], x.shape[1] :]
    of_judge = np.cov(np.vstack([g_f, g_more]).T)
    best = np.trace(inverse @ (both + both.T) @ inverse) / (
        2 * (1 + n / more) * np.trace(inverse @ of_judge @ inverse)
    )
    return beta, inverse @ meat @ inverse, float(best)


def differences(data: Drawn, powered: PoweredRatings) -> tuple[np.ndarray, np.ndarray]:
    """Strengths less that of the first model, and their covariance."""
    to = np.hstack([-np.ones((len(powered.models) - 1, 1)), np.eye(len(powered.models) - 1)])
    return to @ powered.ratings.theta, to @ by_prompt(*data, powered) @ to.T


def by_prompt(
    items: Items, people: Labels, judge: Labels, powered: PoweredRatings, *, alone: bool = False
) -> np.ndarray:
    """The covariance of PPI++ with items summed by prompt, at the ratings that were found."""
    problem, _ = problem_of(items, people, judge, None)
    lam = 0.0 if alone else powered.judge_weight
    theta = (powered.human_only if alone else powered.ratings).theta
    (votes, cross, judged, *_), bread = moments_at(problem, theta), bread_at(problem, theta, lam)
    correction = powered.n_prompts / (powered.n_prompts - 1)
    meat = votes + lam * (cross + cross.T) + lam**2 * judged
    return np.asarray(correction * bread @ meat @ bread)


@pytest.mark.parametrize("signal", [1.0, 3.0])
def test_a_general_optimiser_finds_the_same_where_items_are_independent(signal: float) -> None:
    data = own_prompts(drawn(replace(SMALL, signal=signal)))
    powered = powered_ratings(*data)
    theta, matrix, best = published(*data, powered.judge_weight)
    ours, our_matrix = differences(data, powered)
    assert 0.1 < powered.judge_weight < 1
    np.testing.assert_allclose(ours, theta, atol=1e-6)
    np.testing.assert_allclose(our_matrix, matrix, rtol=1e-6, atol=1e-9)
    # The published weight is tuned in differences from the first model and pools the judge's
    # spread; ours is tuned in strengths that sum to zero: they agree to some hundredths.
    assert powered.judge_weight == pytest.approx(best, abs=0.05)


def test_the_votes_alone_are_the_plain_fit() -> None:
    items, people, judge = drawn()
    whole = powered_ratings(items, people, judge)
    alone = whole.human_only
    data = as_comparisons(items, people)
    fit = fit_bradley_terry(data)
    np.testing.assert_allclose(alone.theta, fit.theta, atol=1e-8)
    plain = cr1(fit, data, "prompt")
    ours = by_prompt(items, people, judge, whole, alone=True)
    np.testing.assert_allclose(ours, plain, atol=1e-10)
    assert abs(alone.theta.sum()) < 1e-12


def test_a_judge_that_saw_only_what_people_saw_leaves_the_votes_alone() -> None:
    items, people, judge = drawn()
    powered = powered_ratings(items, people, judge.only(judge.item < people.n))
    assert (powered.judge_weight, powered.gain.value, powered.n_judged) == (0, 1, 0)
    assert powered.gain.lower is None
    assert powered.ratings is powered.human_only
    assert any("adds nothing" in warning for warning in powered.warnings)
    assert powered.random_subset_p is None
    assert "random subset" in powered.assumption


def test_a_judge_that_is_the_crowd_makes_every_verdict_a_vote() -> None:
    study = replace(SMALL, bias=0.0, suits=0.0, n_judged=30_000)
    items, people, judge = own_prompts(drawn(study))
    # Where both spoke they said the same: the verdicts' noise is the votes' own.
    same = replace(judge, label=np.r_[people.label, judge.label[people.n :]])
    powered = powered_ratings(items, people, same)
    everything = fit_bradley_terry(as_comparisons(items, same))
    assert powered.judge_weight == pytest.approx(300 / 30_300 * 100, abs=0.02)
    np.testing.assert_allclose(powered.ratings.theta, everything.theta, atol=0.02)
    gain = powered.human_only.variance.sum() / powered.ratings.variance.sum()
    assert gain == pytest.approx(101, rel=0.15)
    # What it would get wrong was not seen: a hundredfold gain is not claimed.
    assert powered.gain.value is None
    assert any("explain every vote" in warning for warning in powered.warnings)


def test_swapping_the_sides_or_the_models_changes_no_rating() -> None:
    items, people, judge = drawn()
    powered = powered_ratings(items, people, judge)
    turned = replace(items, pairs=items.pairs[:, ::-1])
    swapped = powered_ratings(
        turned, replace(people, label=-people.label), replace(judge, label=-judge.label)
    )
    np.testing.assert_allclose(swapped.ratings.theta, powered.ratings.theta, atol=1e-9)
    np.testing.assert_allclose(swapped.ratings.variance, powered.ratings.variance, atol=1e-10)
    np.testing.assert_allclose(swapped.ratings.df, powered.ratings.df, rtol=1e-7)
    order = np.array([3, 0, 4, 1, 2])
    renamed = replace(
        items,
        models=tuple(np.array(items.models)[order].tolist()),
        pairs=np.argsort(order)[items.pairs],
    )
    again = powered_ratings(renamed, people, judge)
    assert again.models == powered.models
    np.testing.assert_allclose(again.ratings.theta, powered.ratings.theta, atol=1e-9)


def test_copies_of_everything_in_the_same_prompts_are_no_news() -> None:
    items, people, judge = drawn()
    once = powered_ratings(items, people, judge)

    def twice(what: Labels) -> Labels:
        rows = np.tile(np.arange(what.n), 2)
        shift = np.repeat([0, items.n], what.n)
        return replace(what.only(rows), item=what.item[rows] + shift)

    doubled = Items(items.models, np.tile(items.pairs, (2, 1)), np.tile(items.prompt, 2))
    powered = powered_ratings(doubled, twice(people), twice(judge))
    np.testing.assert_allclose(powered.ratings.theta, once.ratings.theta, atol=1e-8)
    # Where prompts and voters show less than votes by themselves would, these are the floor.
    np.testing.assert_allclose(powered.ratings.variance, once.ratings.variance, rtol=0.005)
    np.testing.assert_allclose(powered.ratings.df, once.ratings.df, rtol=0.01)


def test_blocks_of_prompts_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = powered_ratings(*drawn())
    monkeypatch.setattr("judge.studies.powered.CHUNK_ENTRIES", 35)
    pieces = powered_ratings(*drawn())
    np.testing.assert_allclose(pieces.ratings.variance, whole.ratings.variance, atol=1e-12)
    np.testing.assert_allclose(pieces.ratings.df, whole.ratings.df, rtol=1e-9)
    assert pieces.gain.value == pytest.approx(whole.gain.value)


def test_sharing_prompts_widens_the_intervals() -> None:
    data = drawn(Study(n_prompts=20, n_voted=800, suits=2.0))
    joint, apart = powered_ratings(*data), powered_ratings(*own_prompts(data))
    assert joint.ratings.variance.sum() > 1.5 * apart.ratings.variance.sum()


def half(ratings: Ratings) -> np.ndarray:
    return np.asarray((ratings.upper - ratings.lower) / 2)


TASTES = Study(n_models=6, n_prompts=9000, n_voted=800, n_judged=1600, n_voters=20, taste=0.8)


def test_voters_with_tastes_of_their_own_widen_the_intervals() -> None:
    items, people, judge = drawn(TASTES)
    known = powered_ratings(items, people, judge)
    hidden = powered_ratings(items, replace(people, rater=np.arange(people.n)), judge)
    for by_voters, by_votes in (
        (known.ratings, hidden.ratings),
        (known.human_only, hidden.human_only),
    ):
        np.testing.assert_array_equal(by_voters.theta, by_votes.theta)
        assert (half(by_voters) > half(by_votes)).all()
        assert half(by_voters).mean() > 1.25 * half(by_votes).mean()


def test_a_model_that_two_people_met_makes_no_other_rating_uncertain() -> None:
    items, people, judge = drawn(replace(TASTES, n_voters=60, n_voted=2400))
    with_new = (items.pairs[people.item] == 0).any(axis=1)
    seldom = people.only(~with_new | (people.rater < 2))
    never = people.only(~with_new)
    result, without = (powered_ratings(items, some, judge).human_only for some in (seldom, never))
    half = (result.upper - result.lower) / 2
    assert result.averaged.tolist() == [False] + 5 * [True]
    assert result.theta[1:].sum() == pytest.approx(0, abs=1e-9)
    assert half[1:] == pytest.approx((without.upper - without.lower) / 2, rel=0.1)
    assert np.isnan(half[0])  # two people leave it less than a degree of freedom


def test_with_distinct_prompts_the_votes_alone_are_clustered_by_voter() -> None:
    items, people, judge = own_prompts(drawn(TASTES))
    powered = powered_ratings(items, people, judge).human_only
    a, b = items.pairs[people.item].T
    outcome = np.array([2, 0, 1])[people.label]
    data = Comparisons.from_codes(items.models, a, b, outcome, voter=people.rater)
    fit = fit_bradley_terry(data)
    exact = np.diag(by_cluster(fit, data))
    np.testing.assert_allclose(powered.variance, exact, rtol=0.03)
    assert ((powered.df > 15) & (powered.df <= 19)).all()


def test_with_a_voter_a_vote_the_variance_is_that_by_prompt() -> None:
    data = drawn(Study(n_models=5, n_prompts=40, n_voted=800, suits=1.5))
    items, people, judge = data[0], replace(data[1], rater=np.arange(800)), data[2]
    powered = powered_ratings(items, people, judge)
    wide = np.diag(by_prompt(items, people, judge, powered))
    np.testing.assert_allclose(powered.ratings.variance, wide, rtol=0.03)


def test_no_two_way_variance_is_below_that_of_independent_votes() -> None:
    """As where each pair of models has a voter of its own, whose residuals nearly cancel."""
    items, people, judge = own_prompts(drawn())
    of_pair = np.unique(items.pairs[people.item] @ [5, 1], return_inverse=True)[1]
    apart = powered_ratings(items, replace(people, rater=np.arange(people.n)), judge)
    turned = replace(people, rater=of_pair)
    floor = 0.97 * apart.human_only.variance  # which leaving votes out raises by 2 %
    assert (powered_ratings(items, turned, judge).human_only.variance >= floor).all()


def test_a_model_rated_by_one_voter_alone_has_no_interval() -> None:
    items, people, judge = drawn(TASTES)
    of_last = (items.pairs[people.item] == 5).any(axis=1)
    one = people.only(~of_last | (people.rater == 3))
    powered = powered_ratings(items, one, judge)
    assert np.isnan(powered.ratings.lower).tolist() == 5 * [False] + [True]
    assert any("below two voters or prompts: m05" in warning for warning in powered.warnings)
    assert (powered.ratings.df[:5] > 5).all()


def test_votes_on_four_prompts_are_refused() -> None:
    items, people, judge = drawn()
    few = replace(items, prompt=items.prompt % 4)
    with pytest.raises(NotIdentifiedError, match=r"on 4 prompts: .* on at least 5"):
        powered_ratings(few, people, judge)
    enough = powered_ratings(replace(items, prompt=items.prompt % 5), people, judge)
    assert (enough.n_prompts, enough.n) == (5, 300)


def test_the_gain_has_an_interval() -> None:
    gain = powered_ratings(*own_prompts(drawn(replace(SMALL, signal=3.0, suits=2.0)))).gain
    assert gain.value is not None
    assert gain.lower is not None
    assert gain.upper is not None
    assert 1 < gain.lower < gain.value < gain.upper < 2 * gain.lower
    assert gain.n == 300


def test_votes_on_an_item_and_a_judges_repetitions_are_averaged() -> None:
    rows = Labels(
        item=np.array([0, 0, 0, 2, 2]),
        rater=np.arange(5),
        label=np.array([1, 1, -1, 0, 1], dtype=np.int8),
        first=np.zeros(5, dtype=np.int8),
        probability=np.array([np.nan, np.nan, np.nan, np.nan, 0.9]),
    )
    np.testing.assert_allclose(rows.mean(row_scores(rows), 4), [2 / 3, np.nan, 0.7, np.nan])


def test_what_a_judge_gives_as_a_probability_says_more_than_its_verdict() -> None:
    items, people, judge = drawn(
        replace(SMALL, tie_rate=0.0, suits=3.0, signal=0.5, n_judged=6000)
    )
    data = own_prompts((items, people, judge))
    verdicts = powered_ratings(*data)
    certain = powered_ratings(data[0], people, replace(judge, probability=(judge.label + 1) / 2))
    np.testing.assert_allclose(certain.ratings.theta, verdicts.ratings.theta)
    rng = np.random.default_rng(0)
    follows = np.zeros(items.n)
    follows[people.item] = people.label
    near = np.clip(0.5 + 0.3 * follows + rng.normal(0, 0.05, items.n), 0, 1)
    gain = powered_ratings(data[0], people, replace(judge, probability=near)).gain.value
    assert gain is not None
    assert verdicts.gain.value is not None
    assert gain > verdicts.gain.value


def test_models_that_nobody_voted_on_are_named_and_left_out() -> None:
    items, people, judge = drawn()
    unseen = ~(items.pairs[people.item] == 4).any(axis=1)
    powered = powered_ratings(items, people.only(unseen), judge)
    assert powered.models == items.models[:4]
    assert powered.warnings[0] == "Judged, but not rated, because nobody voted on them: m04."
    assert powered.n == unseen.sum()
    assert powered.n + powered.n_judged == (items.pairs < 4).all(axis=1).sum()


def test_unread_verdicts_cost_no_vote() -> None:
    items, people, judge = drawn()
    read = powered_ratings(items, people, judge.only(judge.item >= 40))
    assert read.n == 300
    assert "40 items have votes and no verdict: they count without the judge." in read.warnings
    whole = powered_ratings(items, people, judge)
    np.testing.assert_array_equal(read.human_only.theta, whole.human_only.theta)
    assert np.abs(read.ratings.theta - whole.ratings.theta).max() < 0.1


def chosen(seed: int = 5) -> tuple[Drawn, np.ndarray, np.ndarray]:
    """A study in which people voted mostly where the judge likes the odd models."""
    study = Study(n_models=5, n_prompts=20_000, n_voted=20_000, n_judged=0, signal=3, suits=2)
    items, people, judge = study.draw(np.random.default_rng(seed))
    odd = items.pairs % 2
    p_shown = np.where(judge.label == odd[:, 0] - odd[:, 1], 0.9, 0.1)
    sent = np.random.default_rng(seed + 1).random(items.n) < p_shown
    return (items, people.only(sent), judge), p_shown, study.truth


def test_votes_that_are_no_random_subset_are_reported_and_chances_make_up_for_them() -> None:
    data, p_shown, truth = chosen()
    misled = powered_ratings(*data)
    assert misled.random_subset_p is not None
    assert misled.random_subset_p < 1e-6
    assert any("not a random subset" in text for text in misled.warnings)
    weighed = powered_ratings(*data, probability=p_shown)

    def off(powered: PoweredRatings) -> float:
        errors = np.sqrt(powered.ratings.variance)
        return float(np.abs((powered.ratings.theta - truth) / errors).max())

    assert off(weighed) < 3
    assert off(misled) > 5
    assert not any("random subset" in text for text in weighed.warnings)
    usual = powered_ratings(*drawn(seed=34))
    assert (round(usual.random_subset_p or 0, 2), usual.warnings) == (0.02, ())


def test_a_few_voters_are_pointed_out() -> None:
    items, people, judge = drawn()
    assert not powered_ratings(items, people, judge).warnings
    alone = powered_ratings(items, replace(people, rater=people.rater * 0), judge)
    assert any("effective sample size is 1.0 voters" in warning for warning in alone.warnings)
    assert np.isnan(alone.ratings.lower).all()
    assert any("below two voters or prompts: m00, m01" in text for text in alone.warnings)


def test_what_cannot_be_rated_is_refused() -> None:
    items, people, judge = drawn()
    with pytest.raises(NotIdentifiedError, match="The votes alone do not determine"):
        powered_ratings(items, people.only(people.item < 3), judge)
    with pytest.raises(NotIdentifiedError, match="no votes between two different models"):
        powered_ratings(items, people.only(people.item < 0), judge)
    with pytest.raises(NotIdentifiedError, match="on 1 prompt"):
        powered_ratings(replace(items, prompt=items.prompt * 0), people, judge)
    with pytest.raises(NotIdentifiedError, match="do not vary"):
        powered_ratings(items, replace(people, label=people.label * 0), judge)
    with pytest.raises(DataError, match=r"with probability 2\.0"):
        powered_ratings(items, people, judge, probability=np.full(items.n, 2.0))


def test_verdicts_that_pull_without_end_are_refused() -> None:
    # Ten votes, on which the judge never liked x, and always did elsewhere.
    people = np.array([1, 1, -1, 1, 1, -1, 1, -1, 1, -1], dtype=np.int8)
    verdicts = np.r_[-np.abs(people), np.ones(30)].astype(np.int8)
    verdicts[:10][people == 1] = 0
    items = Items(("x", "y"), np.tile([0, 1], (40, 1)), np.arange(40))
    with pytest.raises(NotIdentifiedError, match="no maximum was found"):
        powered_ratings(
            items, labels_of(np.arange(10), people), labels_of(np.arange(40), verdicts)
        )
