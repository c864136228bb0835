"""A newcomer rated by a judge: what is planted comes back, and the words say what it rests on."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.left_out_models import between, jackknife_plus
from judge.studies.newcomer import NewcomerOptions, newcomer, rate_newcomer
from judge.studies.soft_verdicts import (
    Compared,
    board_of,
    calibrated,
    placed,
    variance_of_sum,
)
from rating.elo import POINTS_PER_NAT
from rating.errors import DataError, NotIdentifiedError
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
def test_models_of_the_published_sample_left_out_in_turn(sample: Sample) -> None:
    """As published: each judge-made rating is among the anchors as that judge rates them."""
    rows, n = sample.rows, len(sample.models)
    slopes, by_people, by_hard, by_soft = [], [], [], []
    for model in range(n):
        rest = np.setdiff1d(np.arange(n), [model])
        learnt = calibrated(rows.only(~rows.has(model)))
        slopes.append(learnt.slope)

        def among(score: np.ndarray, model: int = model, rest: np.ndarray = rest) -> float:
            return placed(rows, score, model, board_of(rows, score, rest, n)).theta

        by_people.append(among(rows.score))
        by_hard.append(among(sample.verdict))
        by_soft.append(among(learnt.probability(rows.signal)))
    people, hard, soft = (POINTS_PER_NAT * np.array(x) for x in (by_people, by_hard, by_soft))
    assert np.mean(slopes) == pytest.approx(0.655205, abs=5e-5)  # published without a ridge
    assert np.abs(people - hard).mean() == pytest.approx(57.633, abs=0.01)
    assert np.abs(people - soft).mean() == pytest.approx(19.536, abs=0.01)
    assert [round(float(spearmanr(people, x)[0]), 4) for x in (hard, soft)] == [0.9604, 0.9692]
    assert [round(float(kendalltau(people, x)[0]), 4) for x in (hard, soft)] == [0.8681, 0.9121]


@pytest.mark.slow
@pytest.mark.published
def test_each_model_of_the_sample_lies_where_its_interval_says(
    sample: Sample, tmp_path: Path
) -> None:
    """Of people's ratings that are themselves uncertain; three in 14 may lie outside by chance."""
    votes, verdicts = tmp_path / "votes.csv", tmp_path / "verdicts.csv"
    names = {1.0: "model_a", 0.5: "tie", 0.0: "model_b"}
    sides = [",".join(sample.models[k] for k in pair) for pair in sample.rows.pairs.tolist()]
    held = 0
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
        rest = np.setdiff1d(np.arange(len(sample.models)), [model])
        board = board_of(sample.rows, sample.rows.score, rest, len(sample.models))
        people = placed(sample.rows, sample.rows.score, model, board)
        half = (rated.upper - rated.lower) / 2
        allowed = np.hypot(half, 1.96 * POINTS_PER_NAT * np.sqrt(people.variance))
        held += abs(1000 + POINTS_PER_NAT * people.theta - rated.rating) <= allowed
    assert held >= 11


@pytest.mark.published
@pytest.mark.parametrize("judge", ["gpt-4", "gpt-3.5"])
def test_a_model_of_llmfao_lies_where_either_judge_says(published_data: Path, judge: str) -> None:
    folder = published_data / "votes" / "llmfao"
    votes, verdicts = (str(folder / name) for name in ("votes.parquet", "judgments.parquet"))
    model = "Alpaca (7B)"
    rated = rate_newcomer(votes, verdicts, model, NewcomerOptions(judge=judge))
    assert rated.calibrated_on >= 50
    known = {one.model: one for one in rated.known}
    off = [abs(one.error) / np.hypot(one.standard_error, rated.gap) for one in known.values()]
    assert np.mean(np.array(off) < 2) > 0.9
    assert any("verdicts without probabilities" in text for text in rated.warnings)


@pytest.mark.published
def test_six_models_of_mt_bench_are_not_enough(published_data: Path) -> None:
    folder = published_data / "votes" / "mtbench"
    votes, verdicts = (str(folder / name) for name in ("votes.parquet", "judgments.parquet"))
    rated = rate_newcomer(votes, verdicts, "alpaca-13b")
    assert rated.calibrated_on < 10
    assert any(text.startswith("There are not enough known models") for text in rated.warnings)
    assert "Left out of the interval, as the judge's own: gpt-4." in rated.warnings


def test_a_judge_with_a_signal_rates_more_narrowly_than_one_with_less() -> None:
    widths = []
    for signal in (0.0, 1.0, 2.5):
        rated, truth = replace(SMALL, signal=signal).rated(1)
        assert rated.lower < truth < rated.upper
        widths.append(rated.upper - rated.lower)
    assert widths[0] > widths[1] > widths[2]


def test_a_judge_without_a_signal_says_so_and_is_as_unsure_as_the_models_are_apart() -> None:
    rated, _ = replace(SMALL, signal=0.0).rated(2)
    known = np.array([rating for _, rating in rated.anchors])
    apart = float(np.std(known))
    assert 0.6 * apart < rated.gap < 1.4 * apart
    assert rated.upper - rated.lower > 2.5 * apart
    assert abs(rated.rating - 1000) < 20
    assert any("not shown to tell which answers people prefer" in t for t in rated.warnings)
    shown, _ = SMALL.rated(2)
    assert not any("not shown to tell" in text for text in shown.warnings)


def test_the_words_name_what_the_rating_rests_on() -> None:
    rated, _ = SMALL.rated(3)
    first, how, hollow = rated.sentences
    ends = f"({rated.lower:.0f} to {rated.upper:.0f}, 95 %)"
    assert first == f"new: {rated.rating:.0f} {ends}, by judge only."
    errors = np.mean([abs(one.error) for one in rated.known])
    assert how == (
        f"200 verdicts of judge on {rated.n_prompts} prompts. Rated in the same way, each as if "
        f"it were new, 12 known models came out {errors:.0f} points off people's ratings on "
        f"average; beyond the scatter of votes and verdicts the judge errs by {rated.gap:.0f} "
        "(standard deviation)."
    )
    assert hollow == "It has no rank until 30 of its battles have votes; 0 have."


def test_the_answer_has_the_keys_that_programs_read() -> None:
    row = SMALL.rated(3)[0].to_dict()
    assert row["by"] == "judge only"
    assert row["calibrated_on"] == 12
    assert row["lower"] < row["rating"] < row["upper"]
    assert row["rank"] is None
    assert [one["by"] for one in row["board"]].count("judge only") == 1


def test_few_known_models_widen_the_interval_and_say_so() -> None:
    few, _ = replace(SMALL, n_known=5).rated(4)
    assert few.calibrated_on == 5
    assert [text for text in few.warnings if text.startswith("There are not enough known")]
    many, _ = SMALL.rated(4)
    assert not [text for text in many.warnings if "not enough known" in text]


def test_votes_on_the_newcomer_take_over_from_thirty_on() -> None:
    few, _ = replace(SMALL, votes_on_new=20).rated(5)
    assert few.by == "judge only"
    assert few.with_votes is not None
    assert few.sentences[-1].endswith("20 have.")
    many, truth = replace(SMALL, votes_on_new=200).rated(5)
    assert many.by == "judge and people"
    assert many.with_votes is not None
    assert (many.rating, many.lower) == (many.with_votes.rating, many.with_votes.lower)
    assert many.lower < truth < many.upper
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
    assert rated.lower < truth < rated.upper
    text = next(text for text in rated.warnings if "own family" in text)
    assert f"{-offset.value:.0f} points above people" in text
    assert "owl-0, owl-1, owl-2 and owl-3" in text
    blind, _ = planted.rated(6, NewcomerOptions(own=(NEW,)))
    assert any("is not known" in text for text in blind.warnings)
    assert blind.rating - rated.rating == pytest.approx(-offset.value, abs=40)


def test_known_models_of_the_judges_family_are_left_out_for_a_stranger() -> None:
    planted = replace(SMALL, n_known=16, own=2, favour=1.0)
    rated, _ = planted.rated(7, NewcomerOptions(own=("owl-*",)))
    assert rated.self_preference is None
    assert rated.calibrated_on == 14
    assert "Left out of the interval, as the judge's own: owl-0 and owl-1." in rated.warnings


def test_verdicts_alone_are_worth_what_they_agree_with_people() -> None:
    rated, truth = replace(SMALL, hard=True).rated(8)
    assert rated.lower < truth < rated.upper


def test_turning_every_item_round_changes_nothing() -> None:
    """A board and a place of the same comparisons with sides swapped."""
    rng = np.random.default_rng(1)
    pairs = np.array([rng.choice(5, 2, replace=False) for _ in range(200)])
    each, score = np.arange(200), rng.random(200)
    rows = Compared(pairs, each, each, score, score, score)
    turned = Compared(pairs[:, ::-1], each, each, 1 - score, -score, 1 - score)
    rest = np.arange(4)
    one = placed(rows, score, 4, board_of(rows, score, rest, 5))
    other = placed(turned, 1 - score, 4, board_of(turned, 1 - score, rest, 5))
    assert one.theta == pytest.approx(other.theta)
    assert one.variance == pytest.approx(other.variance)
    assert one.weight.sum() == pytest.approx(1, abs=0.001)


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


def test_what_residuals_vary_by_beyond_sampling() -> None:
    rng = np.random.default_rng(3)
    variance = rng.uniform(0.5, 2, 4000)
    residual = rng.normal(0, np.sqrt(variance + 3))
    assert between(residual, variance) == pytest.approx(3, abs=0.25)
    assert between(rng.normal(0, 0.1, 50), np.ones(50)) == 0


def test_jackknife_plus_has_no_interval_for_too_few() -> None:
    assert jackknife_plus(np.zeros(18), np.ones(18), 0.95) is None
    assert jackknife_plus(np.zeros(19), np.arange(19.0), 0.95) == (-18, 18)


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
        (_tied_votes, "All 1267 votes with a verdict are ties"),
        (_tied_verdicts, "The judge is undecided in all 1267 cases that people decided"),
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
    with pytest.raises(DataError, match="fits --anchors 'zz'"):
        newcomer(data, judge, NEW, NewcomerOptions(anchors=("zz",)))
    with pytest.raises(DataError, match="fits --own 'zz'"):
        newcomer(data, judge, NEW, NewcomerOptions(own=("zz",)))
    with pytest.raises(DataError, match="--level 1 is no level"):
        NewcomerOptions(level=1)
    fewer = newcomer(data, judge, NEW, NewcomerOptions(anchors=("m0[0-5]",)))
    assert fewer.calibrated_on == 6
