"""Boards by people and by judges: how they are fitted, and how they compare."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau, norm, pearsonr, spearmanr, ttest_1samp

from judge.scoring.logistic import fit_logistic
from judge.studies.boards import (
    FIGURES,
    KINDS,
    NOISE_FREED,
    POSITION,
    BoardsCompared,
    Preferences,
    _different,
    _separated,
    around,
    compare_boards,
    contest,
    correlated,
    from_influence,
    preferences,
    reversed_pairs,
    row_correlations,
    score_correlations,
)
from judge.studies.estimates import Draws, Estimate
from judge.studies.rows import Items
from rating import Comparisons, fit_bradley_terry
from rating.errors import NotIdentifiedError
from rating.likelihood import Logistic
from rating.typing import Floats
from tests.judge.studies.labels import ends, held, items_of, labels_of, published, swapped
from tests.judge.studies.moved import MovedStudy, Mover
from tests.rating.builders import cr1

MOVED = MovedStudy(people=Mover(position=0.3, length=0.2), n=600, n_prompts=40)


def _board(
    theta: list[float], error: float, *, seed: int = 1, n_prompts: int = 400
) -> Preferences:
    """Make a board whose strengths are independent and uncertain by ``error`` nats."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(0, error / np.sqrt(n_prompts), (n_prompts, len(theta)))
    names = tuple(f"m{i:02}" for i in range(len(theta)))
    centred = np.array(theta) - np.mean(theta)
    return Preferences(names, centred, {}, drawn - drawn.mean(axis=0), n_prompts)


def _compared(people: Preferences, judge: Preferences, rounds: int = 200) -> BoardsCompared:
    return compare_boards(people, judge, draws=Draws(np.random.default_rng(1), rounds))


@pytest.mark.published
def test_llmfao_reaches_its_published_rank_correlations(published_data: Path) -> None:
    data = published(published_data / "votes" / "llmfao")
    people = preferences(data.items, data.people, people=True)
    for name, want, separated in (("gpt-4", 0.731, 0.575), ("gpt-3.5", 0.716, 0.313)):
        compared = _compared(people, preferences(data.items, data.judges[name]), 100)
        assert compared.figures["spearman"].value == pytest.approx(want, abs=0.0005), name
        assert compared.figures["spearman"].n == 59
        apart = compared.separability["overlap"]
        assert apart["agreement_of_separated"] == 1
        assert apart["separated_of_reference"] == pytest.approx(separated, abs=0.0005)
        assert "13 prompts are too few" in compared.warnings[0]


@pytest.mark.published
def test_the_strengths_of_mt_bench_are_the_published_ones(published_data: Path) -> None:
    data = published(published_data / "votes" / "mtbench")
    board = preferences(data.items, data.people)
    wanted = [-0.762, 0.643, 0.600, 1.021, -1.445, -0.057]  # the data set's README
    assert board.theta == pytest.approx(wanted, abs=0.0006)


def test_other_programs_find_the_same_correlations() -> None:
    rng = np.random.default_rng(4)
    people, judge = rng.normal(size=(2, 12))
    compared = _compared(_board(people.tolist(), 0.1), _board(judge.tolist(), 0.1, seed=2))
    for ours, theirs in (
        (compared.figures["spearman"], spearmanr),
        (compared.figures["kendall"], kendalltau),
        (compared.figures["pearson"], pearsonr),
    ):
        assert ours.value == pytest.approx(theirs(people, judge).statistic)
        assert ours.n == 12
    assert compared.warnings == ()


def test_a_board_goes_with_itself_and_against_its_reverse() -> None:
    theta = np.linspace(-1, 1, 10).tolist()
    board, back = _board(theta, 0.01), _board(theta[::-1], 0.01)
    same, against = _compared(board, board), _compared(board, back)
    assert same.figures["spearman"].value == pytest.approx(1)
    assert same.figures["kendall"].value == pytest.approx(1)
    assert same.separability["overlap"]["agreement"] == 1
    assert against.separability["overlap"]["agreement"] == -1
    assert against.figures["pearson"].value == pytest.approx(-1)
    assert same.separability["order_brier"] == pytest.approx(0, abs=1e-9)
    assert against.separability["order_brier"] == pytest.approx(1, abs=1e-9)


def test_separation_and_agreement_with_confidence_by_hand() -> None:
    # Errors of .1 and t of 399 df: intervals reach .197, so models under .393 apart overlap.
    people = _board([0.0, 0.3, 1.0], 0.1)
    judge = _board([0.0, 1.0, 0.2], 0.1, seed=2)
    compared = _compared(people, judge)
    # People separate 0-2 and 1-2; the judge 0-1 and 1-2, the latter the other way round.
    assert compared.separability["overlap"]["separated_by_reference"] == pytest.approx(2 / 3)
    assert compared.separability["overlap"]["separated"] == pytest.approx(2 / 3)
    assert compared.separability["overlap"]["agreement"] == pytest.approx((0 - 1) / 2)
    assert compared.separability["overlap"]["agreement_of_separated"] == 0
    assert compared.separability["overlap"]["separated_of_reference"] == 1 / 2


def test_a_pair_is_reversed_where_both_boards_are_certain_over_all_pairs() -> None:
    # A difference has the error 0.141: three pairs take 0.34 by t of 398, and 1.08 by t of 2.
    people, judge = _board([0.0, 0.3, 1.0], 0.1), _board([1.0, 0.9, 0.0], 0.1, seed=2)
    assert reversed_pairs(people, judge) == (("m02", "m00"), ("m02", "m01"))
    assert reversed_pairs(people, people) == ()
    assert reversed_pairs(replace(people, n_voters=3), judge) == ()


def test_the_brier_score_of_the_order_by_hand() -> None:
    people, judge = _board([0.0, 0.5, 1.0], 0.1), _board([0.0, 0.2, 0.1], 0.1, seed=2)
    theta, moved = judge.of_models(judge.models)
    wanted = []
    for i, j in ((0, 1), (0, 2), (1, 2)):  # people: the second is the better one in each
        error = np.sqrt(((moved[:, i] - moved[:, j]) ** 2).sum())
        wanted.append(norm.cdf((theta[i] - theta[j]) / error) ** 2)
    assert _compared(people, judge).separability["order_brier"] == pytest.approx(np.mean(wanted))


def test_few_models_are_warned_of_and_two_have_no_correlation() -> None:
    three = _compared(_board([0, 1, 2], 0.1), _board([0, 1, 2], 0.1))
    assert "over 3 models says little" in three.warnings[0]
    two = _compared(_board([0, 1], 0.1), _board([0, 1], 0.1))
    assert two.figures["spearman"] == Estimate(None, None, None, 2)
    assert "2 models are on both boards" in two.warnings[0]
    assert two.separability["overlap"]["separated_by_reference"] == 1
    one = _compared(_board([0], 0.1), _board([0], 0.1))
    assert (one.separability["order_brier"], one.models) == (None, ("m00",))
    many = _board(np.linspace(0, 3, 30).tolist(), 0.1, n_prompts=25)
    assert "25 prompts are too few to estimate the joint" in _compared(many, many).warnings[0]


def test_models_on_one_board_alone_are_left_out() -> None:
    people = _board([0, 1, 2, 3, 9], 0.1)
    compared = _compared(people, _board([0, 1, 2, 3], 0.1))
    assert compared.models == ("m00", "m01", "m02", "m03")
    assert compared.figures["pearson"].value == pytest.approx(1)


def _covered(n_models: int, error: float, taste: float, runs: int) -> dict[str, float]:
    """Return how often intervals hold what they are of.

    The correlation of the boards without noise, and, of those as found, the mean over boards of
    as much noise.
    """
    rng = np.random.default_rng(1)
    inside = dict.fromkeys(FIGURES, 0)
    for _ in range(runs):
        people = np.linspace(-0.5, 0.5, n_models)
        judge = people + rng.normal(0, taste, n_models)
        seeds = rng.integers(2**31, size=2)
        votes, verdicts = (
            _board((theta + rng.normal(0, error, n_models)).tolist(), error, seed=int(seed))
            for theta, seed in zip((people, judge), seeds, strict=True)
        )
        compared = compare_boards(votes, verdicts, Draws(rng, 100))
        noise = rng.normal(0, error, (2, 40, n_models))
        noisy = row_correlations(judge + noise[0], people + noise[1])
        clean = row_correlations(judge[None], people[None])
        for kind in KINDS:
            for name, want in ((kind, noisy[kind].mean()), (kind + NOISE_FREED, clean[kind][0])):
                inside[name] += held(compared.figures[name], float(want))
    return {name: hits / runs for name, hits in inside.items()}


def test_noise_does_not_pass_for_disagreement() -> None:
    """The boards agree fully except noise, which the percentiles of rounds would all blame."""
    assert min(_covered(12, 0.2, 0.0, 12).values()) == 1


def test_both_correlations_are_within_their_own_interval_and_not_at_its_end() -> None:
    """The interval of one quantity was once printed beside the value of the other."""
    rng = np.random.default_rng(3)
    people = np.linspace(-0.5, 0.5, 30)
    judge = people + rng.normal(0, 0.3, 30)
    one, other = (
        _board((theta + rng.normal(0, 0.15, 30)).tolist(), 0.15, seed=seed)
        for seed, theta in enumerate((people, judge))
    )
    compared = _compared(one, other)
    plain, freed = compared.figures["spearman"], compared.figures["spearman_noise_freed"]
    assert (plain.lower or 1) + 0.02 < (plain.value or 0) < (plain.upper or 0) - 0.02
    assert (freed.lower or 1) + 0.02 < (freed.value or 0) < (freed.upper or 0) - 0.02
    assert (freed.value or 0) > (plain.value or 1) + 0.05
    assert (freed.upper or 0) > (plain.upper or 1)


def test_a_correlation_is_freed_of_noise_by_hand() -> None:
    # Variances 1 and 4; twice the noise is .2 and .4, and .1 of both together.
    people, judge = np.array([-1.0, 0.0, 1.0]), np.array([-1.0, -1.0, 2.0]) * 2 / np.sqrt(3)
    r = float(np.corrcoef(people, judge)[0, 1])
    noise = np.array([[0.1, 0.05], [0.05, 0.2]])
    moved = (np.tile(people, (2, 1)), np.tile(judge, (2, 1))), noise
    plain, freed = (correlated(moved, 0, 1, freed=x)["pearson"] for x in (False, True))
    once = (r * 2 - 0.05) / np.sqrt((1 - 0.1) * (4 - 0.2))
    twice = (r * 2 - 0.1) / np.sqrt((1 - 0.2) * (4 - 0.4))
    assert plain == pytest.approx([r, once])
    assert freed == pytest.approx([once, twice])
    assert r < once < twice < 1


def test_the_interval_holds_the_value_that_noise_has_lowered() -> None:
    """Two noisy readings of one board: without noise they agree fully, as found they do not."""
    values = np.array([0.6, *np.full(200, 1.0)])
    assert around(values, 9, 0.95) == Estimate(0.6, 0.6, 1.0, 9)
    assert around(-values, 9, 0.95) == Estimate(-0.6, -1.0, -0.6, 9)
    assert around(values[:1], 9, 0.95) == Estimate(0.6, None, None, 9)
    assert around(np.ones(200), 9, 0.95) == Estimate(1.0, None, None, 9)


def test_limits_of_rank_correlations_are_values_that_the_models_can_have() -> None:
    """Of 6 models, one exchange of neighbours gives 33/35 and 13/15, which was once excluded."""
    draws = Draws(np.random.default_rng(1), 400)
    ratings, covariance = np.array([177.0, 112, 104, -10, -132, -251]), np.diag(np.full(6, 144.0))
    for scores, lowest, top in (
        (np.array([9.0, 8, 7, 5, 3, 1]), (33 / 35, 13 / 15), (1.0, 1.0)),
        (np.array([9.0, 9, 7, 5, 3, 3]), (0.0, 0.0), (np.sqrt(33 / 35), np.sqrt(13 / 15))),
    ):
        figures = score_correlations(ratings, covariance, scores, draws).figures
        for kind, low, high in zip(("spearman", "kendall"), lowest, top, strict=True):
            for one in (figures[kind], figures[f"{kind}_noise_freed"]):
                assert one.upper == pytest.approx(high)
                value, lower = one.value or 2.0, one.lower or -2.0
                assert lower == pytest.approx(low) if low else -1 < lower < value <= high
        no_errors = score_correlations(ratings, None, scores, draws).figures
        assert no_errors["spearman_noise_freed"].value is None


@pytest.mark.slow
@pytest.mark.parametrize(("n_models", "error"), [(12, 0.05), (30, 0.05), (20, 0.2)])
def test_intervals_cover_the_correlations_that_they_are_of(n_models: int, error: float) -> None:
    """400 boards: 95 %, less three standard errors; noisy boards are covered more often."""
    covered = _covered(n_models, error, 0.25, 400)
    assert min(covered.values()) >= 0.917, covered


def test_a_judge_that_follows_people_beats_one_that_does_not_and_not_itself() -> None:
    moved = MovedStudy(n=4000, n_models=12, judge=Mover(scale=1.0))
    items, people, good = moved.draw(np.random.default_rng(1))
    bad = MovedStudy(n=4000, n_models=12, judge=Mover(scale=-0.5))
    _, _, poor = bad.draw(np.random.default_rng(1))
    votes, first, second = (preferences(items, one) for one in (people, good, poor))
    gaps = contest(votes, first, second, draws=Draws(np.random.default_rng(1), 300))
    assert ends(gaps["pearson"])[0] > 0
    mirrored = contest(votes, second, first, draws=Draws(np.random.default_rng(1), 300))
    assert mirrored["spearman"].value == pytest.approx(-gaps["spearman"].value)  # type: ignore[operator]
    same = contest(votes, first, first, draws=Draws(np.random.default_rng(1), 20))
    assert (same["kendall"].value, same["kendall"].lower, same["kendall"].upper) == (0, None, None)


def test_a_judge_that_tells_no_models_apart_has_no_brier_score_of_the_order() -> None:
    people, silent = _board([0.0, 0.5, 1.0], 0.1), _board([0.0, 0.0, 0.0], 0.0)
    assert _compared(people, silent).separability["order_brier"] is None
    half_silent = _board([0.0, 0.0, 1.0], 0.0)
    assert _compared(people, half_silent).separability["order_brier"] == pytest.approx(0)


def test_three_wins_to_one_are_a_gap_of_log_3() -> None:
    board = preferences(items_of(4), labels_of([(0, 1), (1, 1), (2, 1), (3, -1)]))
    assert board.theta[0] - board.theta[1] == pytest.approx(np.log(3))
    assert (board.models, board.n, board.slopes) == (("m0", "m1"), 4, {})


def test_another_program_finds_the_same_strengths_and_slopes() -> None:
    items, people, _ = MOVED.draw(np.random.default_rng(1))
    board = preferences(items, people, (POSITION, "length"))
    a, b = items.pairs[people.item].T
    strengths = (np.arange(8) == a[:, None]).astype(float) - (np.arange(8) == b[:, None])
    design = np.column_stack(
        [strengths[:, 1:], people.first, items.gaps["length"][people.item]]
    ).astype(float)
    other = fit_logistic(Logistic(design, (people.label + 1) / 2, np.ones(people.n))).coefficients
    assert board.theta - board.theta[0] == pytest.approx(np.r_[0, other[:7]], abs=1e-7)
    assert list(board.slopes.values()) == pytest.approx(other[7:].tolist(), abs=1e-7)


def test_the_influences_are_those_behind_the_clustered_covariance() -> None:
    items, people, _ = MOVED.draw(np.random.default_rng(1))
    board = preferences(items, people)
    a, b = items.pairs[people.item].T
    data = Comparisons.from_codes(
        items.models, a, b, np.array([1, 2, 0])[people.label + 1], prompt=items.prompt[people.item]
    )
    wanted = cr1(fit_bradley_terry(data), data, "prompt")
    n = int((board.influence != 0).any(axis=1).sum())
    ours = n / (n - 1) * board.influence.T @ board.influence
    assert ours == pytest.approx(wanted, abs=1e-9)
    assert board.influence.sum(axis=0) == pytest.approx(np.zeros(8), abs=1e-9)


def test_leaving_a_prompt_out_moves_the_fit_about_as_its_influence_says() -> None:
    items, people, _ = MovedStudy(n=3000, n_prompts=60).draw(np.random.default_rng(2))
    whole = preferences(items, people, (POSITION,))
    without = preferences(items, people.only(items.prompt[people.item] != 7), (POSITION,))
    moved = (
        np.r_[whole.theta, whole.slopes[POSITION]] - np.r_[without.theta, without.slopes[POSITION]]
    )
    assert whole.influence[7] == pytest.approx(moved, rel=0.15, abs=0.003)


def test_turning_all_sides_round_turns_no_strength() -> None:
    items, people, _ = MOVED.draw(np.random.default_rng(3))
    board = preferences(items, people, (POSITION, "length"))
    turned = Items(
        items.models, items.pairs[:, ::-1], items.prompt, {"length": -items.gaps["length"]}
    )
    other = preferences(turned, swapped(people), (POSITION, "length"))
    assert other.theta == pytest.approx(board.theta, abs=1e-9)
    assert other.slopes == pytest.approx(board.slopes, abs=1e-9)
    assert other.influence == pytest.approx(board.influence, abs=1e-9)


def test_a_row_without_a_gap_and_a_battle_with_oneself_are_left_out() -> None:
    pairs = np.array([[0, 1], [0, 1], [0, 0], [0, 1]])
    items = Items(("x", "y"), pairs, np.arange(4), {"length": np.array([1.0, -1.0, 0.5, np.nan])})
    people = labels_of([(0, 1), (0, -1), (1, 1), (1, -1), (2, 1), (3, 1)])
    assert preferences(items, people).n == 5
    assert preferences(items, people, ("length",)).n == 4


def test_what_the_rows_do_not_tell_is_refused_in_the_words_of_ratings() -> None:
    with pytest.raises(NotIdentifiedError, match="no finite value"):
        preferences(items_of(2), labels_of([(0, 1), (1, 1)]))
    with pytest.raises(NotIdentifiedError, match="There are no votes"):
        preferences(items_of(2), labels_of([]))


def test_an_interval_from_influences_is_students() -> None:
    # Three prompts that move the value by 1, -1 and 0.5: (3 / 2) * 2.25, t of 2 df is 4.303.
    estimate = from_influence(10.0, np.array([1.0, -1.0, 0.5, 0.0]), n=9, level=0.95)
    assert estimate.upper == pytest.approx(10 + 4.3027 * np.sqrt(1.5 * 2.25), abs=1e-3)
    assert (estimate.value, estimate.n) == (10.0, 9)
    assert from_influence(1.0, np.array([0.0, 2.0]), n=3, level=0.9).lower is None


@pytest.mark.parametrize("compare", [_separated, _different])
def test_two_models_are_told_apart_where_a_t_test_of_their_difference_does(
    compare: Callable[[Floats, Floats, float], Floats],
) -> None:
    off = np.array([3.0, -1.0, 4.0, -5.0, -1.0])
    (upper,) = [ttest_1samp(off, 0).confidence_interval(0.95).high]
    influence = np.outer(off / 5, [0.5, -0.5])
    for times, expected in ((0.99, 0), (1.01, 1), (-1.01, -1)):
        theta = times * upper * np.array([0.5, -0.5])
        assert compare(theta, influence, 0.95).tolist() == [expected]
