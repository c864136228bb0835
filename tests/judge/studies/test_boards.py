"""A judge's board against people's."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau, norm, pearsonr, spearmanr

from judge.studies.boards import (
    FIGURES,
    KINDS,
    NOISE_FREED,
    BoardsCompared,
    Moved,
    around,
    compare_boards,
    contest,
    correlated,
)
from judge.studies.correlation import row_correlations
from judge.studies.items import Estimate
from judge.studies.preferences import Preferences, preferences
from tests.judge.studies.moved import Moved as MovedStudy
from tests.judge.studies.moved import Mover
from tests.judge.studies.said import held, published


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
    return compare_boards(people, judge, rounds=rounds, rng=np.random.default_rng(1))


@pytest.mark.published
def test_llmfao_reaches_its_published_rank_correlations(published_data: Path) -> None:
    data = published(published_data / "votes" / "llmfao")
    people = preferences(data.items, data.people)
    for name, want in {"gpt-4": 0.731, "gpt-3.5": 0.716}.items():
        found = _compared(people, preferences(data.items, data.judges[name]), 100)
        assert found.spearman.value == pytest.approx(want, abs=0.0005), name
        assert found.spearman.n == 59
        assert "13 prompts cannot say" in found.warnings[0]


@pytest.mark.published
def test_the_strengths_of_mt_bench_are_the_published_ones(published_data: Path) -> None:
    data = published(published_data / "votes" / "mtbench")
    found = preferences(data.items, data.people)
    wanted = [-0.762, 0.643, 0.600, 1.021, -1.445, -0.057]  # the data set's README
    assert found.theta == pytest.approx(wanted, abs=0.0006)


def test_other_programs_find_the_same_correlations() -> None:
    rng = np.random.default_rng(4)
    people, judge = rng.normal(size=(2, 12))
    found = _compared(_board(people.tolist(), 0.1), _board(judge.tolist(), 0.1, seed=2))
    for ours, theirs in (
        (found.spearman, spearmanr),
        (found.kendall, kendalltau),
        (found.pearson, pearsonr),
    ):
        assert ours.value == pytest.approx(theirs(people, judge).statistic)
        assert ours.n == 12
    assert found.warnings == ()


def test_a_board_goes_with_itself_and_against_its_reverse() -> None:
    theta = np.linspace(-1, 1, 10).tolist()
    board, back = _board(theta, 0.01), _board(theta[::-1], 0.01)
    same, against = _compared(board, board), _compared(board, back)
    assert same.spearman.value == pytest.approx(1)
    assert same.kendall.value == pytest.approx(1)
    assert (same.confident_agreement, against.confident_agreement) == (1, -1)
    assert against.pearson.value == pytest.approx(-1)
    assert same.order_brier == pytest.approx(0, abs=1e-9)
    assert against.order_brier == pytest.approx(1, abs=1e-9)


def test_separation_and_agreement_with_confidence_by_hand() -> None:
    # Errors of .1 and t of 399 df: intervals reach .197, so models under .393 apart overlap.
    people = _board([0.0, 0.3, 1.0], 0.1)
    judge = _board([0.0, 1.0, 0.2], 0.1, seed=2)
    found = _compared(people, judge)
    # People separate 0-2 and 1-2; the judge 0-1 and 1-2, the latter the other way round.
    assert found.separated_by_people == pytest.approx(2 / 3)
    assert found.separated_by_judge == pytest.approx(2 / 3)
    assert found.confident_agreement == pytest.approx((0 - 1) / 2)


def test_the_brier_score_of_the_order_by_hand() -> None:
    people, judge = _board([0.0, 0.5, 1.0], 0.1), _board([0.0, 0.2, 0.1], 0.1, seed=2)
    theta, moved = judge.of_models(judge.models)
    wanted = []
    for i, j in ((0, 1), (0, 2), (1, 2)):  # people: the second is the better one in each
        error = np.sqrt(((moved[:, i] - moved[:, j]) ** 2).sum())
        wanted.append(norm.cdf((theta[i] - theta[j]) / error) ** 2)
    assert _compared(people, judge).order_brier == pytest.approx(np.mean(wanted))


def test_few_models_are_warned_of_and_two_have_no_correlation() -> None:
    three = _compared(_board([0, 1, 2], 0.1), _board([0, 1, 2], 0.1))
    assert "over 3 models says little" in three.warnings[0]
    two = _compared(_board([0, 1], 0.1), _board([0, 1], 0.1))
    assert two.spearman == Estimate(None, None, None, 2)
    assert "2 models are on both boards" in two.warnings[0]
    assert two.separated_by_people == 1
    one = _compared(_board([0], 0.1), _board([0], 0.1))
    assert (one.order_brier, one.models) == (None, ("m00",))


def test_models_on_one_board_alone_are_left_out() -> None:
    people = _board([0, 1, 2, 3, 9], 0.1)
    found = _compared(people, _board([0, 1, 2, 3], 0.1))
    assert found.models == ("m00", "m01", "m02", "m03")
    assert found.pearson.value == pytest.approx(1)


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
        boards = [
            _board((theta + rng.normal(0, error, n_models)).tolist(), error, seed=int(seed))
            for theta, seed in zip((people, judge), seeds, strict=True)
        ]
        found = compare_boards(*boards, rounds=100, rng=rng)
        noise = rng.normal(0, error, (2, 40, n_models))
        noisy = row_correlations(judge + noise[0], people + noise[1])
        clean = row_correlations(judge[None], people[None])
        for kind in KINDS:
            for name, want in ((kind, noisy[kind].mean()), (kind + NOISE_FREED, clean[kind][0])):
                inside[name] += held(getattr(found, name), float(want))
    return {name: hits / runs for name, hits in inside.items()}


def test_noise_does_not_pass_for_disagreement() -> None:
    """The boards agree fully but for noise, which the percentiles of rounds would all blame."""
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
    found = _compared(one, other)
    plain, freed = found.spearman, found.spearman_noise_freed
    assert (plain.lower or 1) + 0.02 < (plain.value or 0) < (plain.upper or 0) - 0.02
    assert (freed.lower or 1) + 0.02 < (freed.value or 0) < (freed.upper or 0) - 0.02
    assert (freed.value or 0) > (plain.value or 1) + 0.05
    assert (freed.upper or 0) > (plain.upper or 1)


def test_a_correlation_is_freed_of_noise_by_hand() -> None:
    # Variances 1 and 4; twice the noise is .2 and .4, and .1 of both together.
    people, judge = np.array([-1.0, 0.0, 1.0]), np.array([-1.0, -1.0, 2.0]) * 2 / np.sqrt(3)
    r = float(np.corrcoef(people, judge)[0, 1])
    noise = np.array([[0.1, 0.05], [0.05, 0.2]])
    moved = Moved((np.tile(people, (2, 1)), np.tile(judge, (2, 1))), noise)
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
    found = contest(votes, first, second, rounds=300, rng=np.random.default_rng(1))
    assert found.pearson.lower is not None
    assert found.pearson.lower > 0
    mirrored = contest(votes, second, first, rounds=300, rng=np.random.default_rng(1))
    assert mirrored.spearman.value == pytest.approx(-found.spearman.value)  # type: ignore[operator]
    same = contest(votes, first, first, rounds=20, rng=np.random.default_rng(1))
    assert (same.kendall.value, same.kendall.lower, same.kendall.upper) == (0, None, None)


def test_a_judge_that_tells_no_models_apart_has_no_brier_score_of_the_order() -> None:
    people, silent = _board([0.0, 0.5, 1.0], 0.1), _board([0.0, 0.0, 0.0], 0.0)
    assert _compared(people, silent).order_brier is None
    half_silent = _board([0.0, 0.0, 1.0], 0.0)
    assert _compared(people, half_silent).order_brier == pytest.approx(0)
