"""A new model rated by a judge: the simulated truth comes back, and the words are as shown."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.newcomer import (
    Compared,
    Line,
    NewModel,
    _without_interval,
    board_of,
    calibrated,
    newcomer,
    rate_newcomer,
    variance_of_sum,
)
from judge.studies.options import NewcomerOptions
from rating.errors import DataError, NotIdentifiedError
from rating.variants import POINTS_PER_NAT
from tests.judge.studies.newcomers import NEW, Planted, expit

SMALL = Planted(n_known=12, n_votes=1500, n_verdicts=1500, n_on_new=200)


@dataclass(frozen=True, slots=True)
class Sample:
    """SoftElo's sample: what people prefer, the judge's verdicts, and the gap of its marks."""

    models: tuple[str, ...]
    rows: Compared
    verdict: np.ndarray


@pytest.fixture(scope="module")
def sample(published_data: Path) -> Sample:
    with (published_data / "softelo" / "sample_annotations.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    models = tuple(sorted({row[side] for row in table for side in ("model_a", "model_b")}))
    sides = [[models.index(row[side]) for side in ("model_a", "model_b")] for row in table]
    marks = [
        [np.mean(list(json.loads(row[side].replace("'", '"')).values())) for row in table]
        for side in ("scores_a", "scores_b")
    ]
    people = np.array([1 - float(row["human_pref"]) for row in table])
    each = np.arange(len(table))
    rows = Compared(np.array(sides), each, each, people, np.subtract(marks[0], marks[1]), people)
    return Sample(models, rows, np.array([1 - float(row["judge_pref"]) for row in table]))


@pytest.mark.published
def test_the_temperature_of_the_published_sample(sample: Sample) -> None:
    learnt = calibrated(sample.rows)
    assert learnt.n == 639
    assert learnt.slope == pytest.approx(0.65220, abs=2e-5)
    assert learnt.loss == pytest.approx(301.1738, abs=1e-4)


@pytest.mark.published
def test_each_model_of_the_sample_lies_where_its_interval_says(
    sample: Sample, tmp_path: Path
) -> None:
    """Of people's ratings that are themselves uncertain; three in 14 may lie outside by chance."""
    votes, verdicts = tmp_path / "votes.csv", tmp_path / "verdicts.csv"
    names = {1.0: "model_a", 0.5: "tie", 0.0: "model_b"}
    sides = [",".join(sample.models[k] for k in pair) for pair in sample.rows.pairs.tolist()]
    n, held, off = len(sample.models), 0, []
    whole = board_of(sample.rows, sample.rows.score, np.arange(n), n)
    for model, name in enumerate(sample.models):
        for path, score in ((votes, sample.rows.score), (verdicts, sample.verdict)):
            lines = ["item_id,model_a,model_b,winner,score_a,score_b"]
            lines += [
                f"{row},{sides[row]},{names[score[row]]},{sample.rows.signal[row]},0"
                for row in range(len(sides))
                if path == verdicts or not sample.rows.has(model)[row]
            ]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        rated = rate_newcomer(str(votes), str(verdicts), name)
        assert (rated.signal, rated.by, rated.calibrated_on) == ("marks", "judge only", 13)
        _, upper = ends(rated)
        contrast = (np.arange(n) == model) - (np.arange(n) != model) / (n - 1)
        people = 1000 + POINTS_PER_NAT * float(contrast @ whole.theta)
        error = 1.96 * POINTS_PER_NAT * np.sqrt(whole.variances(contrast[None], False)[0])
        half = upper - rated.rating
        held += abs(people - rated.rating) <= np.hypot(half, error)
        off.append(abs(people - rated.rating))
    assert held >= 11
    assert np.mean(off) < 20


@pytest.mark.published
@pytest.mark.parametrize("judge", ["gpt-4", "gpt-3.5"])
def test_a_model_of_llmfao_lies_where_either_judge_says(published_data: Path, judge: str) -> None:
    folder = published_data / "votes" / "llmfao"
    votes, verdicts = (str(folder / name) for name in ("votes.parquet", "judgments.parquet"))
    model = "Alpaca (7B)"
    rated = rate_newcomer(votes, verdicts, model, NewcomerOptions(judge=judge))
    assert rated.calibrated_on >= 50
    off = [abs(one["error"]) / np.hypot(one["standard_error"], rated.gap) for one in rated.known]
    assert np.mean(np.array(off) < 2) > 0.9
    assert any("verdicts without probabilities" in text for text in rated.warnings)


@pytest.mark.published
def test_six_models_of_mt_bench_are_not_enough(published_data: Path) -> None:
    folder = published_data / "votes" / "mtbench"
    votes, verdicts = (str(folder / name) for name in ("votes.parquet", "judgments.parquet"))
    rated = rate_newcomer(votes, verdicts, "alpaca-13b")
    assert rated.calibrated_on == 4
    assert rated.judge_only.lower is rated.judge_only.upper is None
    assert any("judge alone: 4 known models, 8 needed" in text for text in rated.warnings)
    assert "Excluded from the interval, as the judge's own: gpt-4." in rated.warnings


def ends(rated: NewModel) -> tuple[float, float]:
    assert rated.lower is not None
    assert rated.upper is not None
    return rated.lower, rated.upper


def test_a_line_is_that_of_fuller_and_its_interval_that_of_fieller() -> None:
    """People's ratings 0, 1, 2 and 3, of S_yy = 5/3 and S_xy = 2.5/3 with the judge's."""
    y, x = np.arange(4.0), np.array([0.0, 0.4, 1.2, 1.4])
    line = Line.of(y, x, np.full(4, 0.1), np.full(4, 0.01), shared=0.02)
    slope = (2.5 / 3 - 0.02) / (5 / 3 - 0.1)
    residual = x - 0.75 - slope * (y - 1.5)
    scatter = float(residual @ residual) / 2
    assert line.slope == pytest.approx(slope)
    assert line.scatter == pytest.approx(scatter)
    assert line.miss == pytest.approx(scatter - 0.01 - slope**2 * 0.1 + 2 * slope * 0.02)
    variance = (5 / 3 * scatter + (slope * 0.1) ** 2) / (5 / 3 - 0.1) ** 2 / 3
    assert line.slope_variance == pytest.approx(variance)
    assert line.people(1.4) == pytest.approx(1.5 + 0.65 / slope)
    t = 4.302652730  # Student's, of two degrees of freedom
    flat = replace(line, slope_variance=(slope / t) ** 2 + 1e-6)
    assert flat.interval(1.4, 0.01, 0.95) is None
    steep = replace(line, slope_variance=0.001)
    a = slope**2 - t**2 * 0.001
    half = t * np.sqrt(0.65**2 * 0.001 + (line.miss + 0.01 + scatter / 4) * a)
    expected = [1.5 + (slope * 0.65 + side * half) / a for side in (-1, 1)]
    assert steep.interval(1.4, 0.01, 0.95) == pytest.approx(expected)
    assert replace(steep, slope=-slope).interval(1.4, 0.01, 0.95) is None


def test_spread_that_is_all_sampling_error_does_not_blow_up_the_slope() -> None:
    y = np.arange(4.0)
    line = Line.of(y, y, np.full(4, 9.0), np.zeros(4), shared=0.0)
    assert line.slope == pytest.approx(1 / 0.3)


def test_a_model_as_strong_as_the_best_is_not_drawn_to_the_middle() -> None:
    """By hard verdicts, of which people's ratings are half as spread again; 20 known models."""
    planted = Planted(hard=True, by_prompt=0.3, by_voter=0.3, above=0.0)
    off = []
    for seed in range(8):
        rated, truth = planted.rated(seed)
        off.append(rated.rating - truth)
    assert abs(float(np.mean(off))) < 35


def test_a_judge_with_a_signal_rates_more_narrowly_than_one_with_less() -> None:
    widths = []
    for signal in (0.5, 1.0, 2.5):
        rated, truth = replace(SMALL, signal=signal).rated(1)
        lower, upper = ends(rated)
        assert lower < truth < upper
        widths.append(upper - lower)
    assert widths[0] > widths[1] > widths[2]


def test_a_judge_without_a_signal_gives_no_rating() -> None:
    with pytest.raises(NotIdentifiedError, match="the judge distinguishes models"):
        replace(SMALL, signal=0.0).rated(2)
    rated, truth = replace(SMALL, signal=0.0, votes_on_new=200).rated(2)
    assert rated.by == "judge and people"
    lower, upper = ends(rated)
    assert lower < truth < upper
    assert rated.judge_only.value is None
    assert "We do not find that the judge distinguishes models." in rated.warnings
    assert len(rated.sentences) == 2


def test_a_model_beyond_the_best_known_one_is_reported_so() -> None:
    best, _ = replace(SMALL, signal=2.5, above=1.0).rated(3)
    assert best.beyond == "best"
    assert best.sentences[2] == (
        "The judge rates it beyond the best known model: the fitted line is extrapolated there."
    )
    for above, beyond in ((-1.0, None), (-4.0, "worst")):
        assert replace(SMALL, signal=2.5, above=above).rated(3)[0].beyond == beyond


def test_a_model_that_lost_nearly_no_verdict_has_no_interval() -> None:
    planted = replace(SMALL, hard=True, signal=6.0, above=4.0, n_on_new=40)
    rated, _ = planted.rated(3)
    assert rated.lower is rated.upper is None
    assert any("won or lost fewer than 5 of its verdicts" in text for text in rated.warnings)
    assert [len([*_without_interval(8, won, 8)]) for won in (4.5, 5.0)] == [1, 0]


def test_the_words_name_what_the_rating_rests_on() -> None:
    rated, _ = SMALL.rated(3)
    first, how, hollow = rated.sentences
    prompts = SMALL.draw(3)[0].items.prompt[SMALL.n_verdicts :]
    lower, upper = ends(rated)
    assert first == f"new: {rated.rating:.0f} ({lower:.0f} to {upper:.0f}, 95%), from judge only."
    errors = np.mean([abs(one["error"]) for one in rated.known])
    assert how == (
        f"200 verdicts of judge on {len(np.unique(prompts))} prompts. Over 12 known models, the "
        f"spread of people's ratings is {1 / rated.slope:.1f} times that of the judge's, and the "
        f"ratings differ from the fitted line by {errors:.0f} points on average. Beyond sampling "
        f"error, the standard deviation of the judge's error is {rated.gap:.0f} points."
    )
    assert hollow == "It has no rank until 30 of its battles have votes; 0 have."


def test_the_answer_has_the_keys_that_programs_read() -> None:
    row = SMALL.rated(3)[0].to_dict()
    assert row["by"] == "judge only"
    assert row["calibrated_on"] == 12
    assert row["lower"] < row["rating"] < row["upper"]
    assert row["rank"] is None
    assert [one["by"] for one in row["board"]].count("judge only") == 1
    ratings = [one["rating"] for one in row["board"]]
    assert ratings == sorted(ratings, reverse=True)
    errors = [one["people"] - one["judge"] for one in row["known"]]
    assert [one["error"] for one in row["known"]] == pytest.approx(errors)


def test_the_level_and_the_calibration_that_are_asked_for_are_used() -> None:
    usual, half, steps = (
        SMALL.rated(3, options)[0]
        for options in (
            NewcomerOptions(),
            NewcomerOptions(level=0.5),
            NewcomerOptions(calibration="isotonic"),
        )
    )
    (low, high), (lower, upper) = ends(usual), ends(half)
    assert half.sentences[0].endswith("50%), from judge only.")
    # Student's t of ten degrees of freedom: 0.700 and 2.228.
    assert (upper - lower) / (high - low) == pytest.approx(0.314, rel=0.1)
    assert 0.01 < abs(steps.rating - usual.rating) < 60


def test_there_is_no_interval_under_eight_known_models_unless_asked_for() -> None:
    strong = replace(SMALL, n_known=7, signal=2.5)
    few, truth = strong.rated(4)
    assert few.calibrated_on == 7
    assert few.lower is few.upper is few.judge_only.lower is None
    assert few.sentences[0] == f"new: {few.rating:.0f} (no interval), from judge only."
    assert any("judge alone: 7 known models, 8 needed" in text for text in few.warnings)
    asked, _ = strong.rated(4, NewcomerOptions(fewest_known=7))
    lower, upper = ends(asked)
    assert asked.rating == few.rating
    assert lower < truth < upper
    eight, _ = replace(strong, n_known=8).rated(4)
    assert ends(eight)
    with pytest.raises(DataError, match="--fewest-known 2"):
        NewcomerOptions(fewest_known=2)


def test_votes_on_the_newcomer_take_over_from_thirty_on() -> None:
    few, _ = replace(SMALL, votes_on_new=29).rated(5)
    assert few.by == "judge only"
    assert few.with_votes is not None
    assert few.sentences[-1].endswith("29 have.")
    assert replace(SMALL, votes_on_new=30).rated(5)[0].by == "judge and people"
    many, truth = replace(SMALL, votes_on_new=200).rated(5)
    assert many.by == "judge and people"
    assert many.with_votes is not None
    assert (many.rating, many.lower) == (many.with_votes.value, many.with_votes.lower)
    ends_of = {"lower": many.lower, "upper": many.upper}
    assert many.to_dict()["with_votes"] == {"rating": many.rating} | ends_of
    assert ends(many)[0] < truth < ends(many)[1]
    assert len(many.sentences) == 2


def test_what_a_judge_favours_its_own_by_is_taken_off_and_said() -> None:
    planted = replace(SMALL, n_known=16, own=4, favour=1.0, signal=2.5, misses=0.05)
    rated, truth = planted.rated(6)
    offset = rated.self_preference
    assert offset is not None
    assert offset.n == 4
    assert offset.value is not None
    assert offset.value < -80
    assert rated.calibrated_on == 12
    assert np.mean([rating for _, rating in rated.anchors]) == pytest.approx(1000)
    assert ends(rated)[0] < truth < ends(rated)[1]
    text = next(text for text in rated.warnings if "own family" in text)
    assert f"{-offset.value:.0f} points above people" in text
    assert "owl-0, owl-1, owl-2 and owl-3" in text
    blind, _ = planted.rated(6, NewcomerOptions(own=(NEW,)))
    assert any("no other model of it is known" in text for text in blind.warnings)
    assert blind.rating - rated.rating == pytest.approx(-offset.value, abs=40)


def test_known_models_of_the_judges_family_are_left_out_for_a_stranger() -> None:
    planted = replace(SMALL, n_known=16, own=2, favour=1.0)
    rated, _ = planted.rated(7, NewcomerOptions(own=("owl-*",)))
    assert rated.self_preference is None
    assert rated.calibrated_on == 14
    assert "Excluded from the interval, as the judge's own: owl-0 and owl-1." in rated.warnings


def test_verdicts_alone_are_worth_what_they_agree_with_people() -> None:
    rated, truth = replace(SMALL, hard=True).rated(8)
    assert ends(rated)[0] < truth < ends(rated)[1]


def test_turning_every_item_round_changes_nothing() -> None:
    """A board of the same comparisons with sides swapped."""
    rng = np.random.default_rng(1)
    pairs = np.array([rng.choice(5, 2, replace=False) for _ in range(200)])
    each, score = np.arange(200), rng.random(200)
    rows = Compared(pairs, each, each, score, score, score)
    turned = Compared(pairs[:, ::-1], each, each, 1 - score, -score, 1 - score)
    one = board_of(rows, score, np.arange(5), 5)
    other = board_of(turned, 1 - score, np.arange(5), 5)
    assert one.theta == pytest.approx(other.theta)
    centre = np.eye(5) - 0.2
    assert one.variances(centre, True) == pytest.approx(other.variances(centre, True))


def test_an_isotonic_map_treats_both_sides_alike_and_never_falls() -> None:
    rng = np.random.default_rng(2)
    signal = rng.normal(0, 2, 3000)
    won = (rng.random(3000) < expit(np.sign(signal) * np.sqrt(np.abs(signal)))).astype(float)
    each = np.arange(3000)
    rows = Compared(np.zeros((3000, 2), dtype=int), each, each, won, signal, won)
    learnt = calibrated(rows, "isotonic")
    grid = np.linspace(-4, 4, 81)
    mapped = learnt.probability(grid)
    assert (np.diff(mapped) >= 0).all()
    assert mapped + learnt.probability(-grid) == pytest.approx(1)
    assert np.abs(mapped - expit(np.sign(grid) * np.sqrt(np.abs(grid)))).max() < 0.12


def test_what_depends_on_each_other_counts_once() -> None:
    influence = np.repeat([1.0, -1.0, 2.0, -2.0], 5)
    prompt = np.repeat(np.arange(4), 5)
    assert variance_of_sum(influence, prompt) == pytest.approx(4 / 3 * 25 * 10)
    assert variance_of_sum(influence, np.zeros(20, dtype=int)) == np.inf


def _without_verdicts(data: StudyData) -> StudyData:
    judge = data.judges[0]
    on_new = (data.items.pairs == data.items.models.index(NEW)).any(axis=1)
    verdicts = judge.verdicts.only(~on_new[judge.verdicts.item])
    return replace(data, judges=(JudgeVerdicts("judge", verdicts, verdicts, 0),))


def _one_known(data: StudyData) -> StudyData:
    pairs = data.items.pairs[data.people.item]
    return replace(data, people=data.people.only((pairs == [0, 1]).all(axis=1)))


def _tied_votes(data: StudyData) -> StudyData:
    return replace(data, people=replace(data.people, label=0 * data.people.label))


def _tied_verdicts(data: StudyData) -> StudyData:
    judge = data.judges[0].verdicts
    tied = replace(judge, label=0 * judge.label, probability=0 * judge.probability + 0.5)
    return replace(data, judges=(JudgeVerdicts("judge", tied, tied, 0),))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_without_verdicts, "The judge has no verdict on 'new' against a model that people know"),
        (_one_known, "Not enough known models: people have compared m00 and m01 with each other"),
        (_tied_votes, "All 1500 votes with a verdict are ties"),
        (_tied_verdicts, "The judge is undecided in all 1500 cases that people decided"),
    ],
)
def test_what_gives_no_rating_is_said_in_one_sentence(
    spoil: Callable[[StudyData], StudyData], words: str
) -> None:
    data = spoil(SMALL.draw(9)[0])
    with pytest.raises(NotIdentifiedError, match=words):
        newcomer(data, data.judges[0], NEW)


def test_names_that_fit_nothing_are_quoted() -> None:
    data, _ = SMALL.draw(9)
    judge = data.judges[0]
    with pytest.raises(DataError, match="no model 'elsewhere'"):
        newcomer(data, judge, "elsewhere")
    with pytest.raises(DataError, match="matches --anchors 'zz'"):
        newcomer(data, judge, NEW, NewcomerOptions(anchors=("zz",)))
    with pytest.raises(DataError, match="matches --own 'zz'"):
        newcomer(data, judge, NEW, NewcomerOptions(own=("zz",)))
    with pytest.raises(DataError, match="--level 1 is no level"):
        NewcomerOptions(level=1)
    fewer = newcomer(data, judge, NEW, NewcomerOptions(anchors=("m0[0-5]",)))
    assert fewer.calibrated_on == 6
