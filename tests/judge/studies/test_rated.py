"""The export of a study, read: what counts, and what is refused."""

import json
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge.studies.estimates import Estimate, percent_of
from judge.studies.options import StudyOptions
from judge.studies.raters import _in_pairs, agreement_of, read_rated, rows_of, study_raters
from rating.errors import DataError
from rating.tables.files import Files
from tests.judge.studies.crowds import Crowd, exported, write_csv

ROW: dict[str, Any] = {
    "study": "s",
    "item": "i1",
    "kind": "item",
    "rater": "r01",
    "prompt_id": "p1",
    "model_a": "owl",
    "model_b": "crow",
    "sides": "ab",
    "choice": "model_a",
    "repeat": 0,
    "gold": None,
    "confidence": 2,
    "seconds": 7.5,
}


def rows_in(folder: Path, *changes: dict[str, object]) -> Files:
    path = folder / "ratings.jsonl"
    path.write_text("".join(json.dumps(ROW | one) + "\n" for one in changes), encoding="utf-8")
    files = Files.of(path)
    assert files is not None
    return files


def test_what_counts_is_each_first_choice_of_an_item_of_the_study(tmp_path: Path) -> None:
    rated = read_rated(
        rows_in(
            tmp_path,
            {},
            {"repeat": 1, "sides": "ba", "choice": "both_bad"},
            {"item": "i2", "choice": "skip"},
            {"item": "i3", "choice": None, "rater": "r02"},
            {"item": "g1", "kind": "gold", "gold": "model_b", "choice": "model_b"},
            {"item": "q1", "kind": "qualification", "gold": "tie", "choice": "tie"},
            {"item": "i1", "rater": "r02", "sides": "ba", "choice": "model_b"},
            {"item": "t1", "kind": "pilot"},
        )
    )
    assert rated.counted.tolist() == [True, False, False, False, True, False]
    assert rated.labels.label.tolist() == [1, 0, -1, 0, -1, 1]
    assert rated.labels.first.tolist() == [1, -1, 1, 1, -1, 1]
    assert rated.repeats().tolist() == [[0, 1]]
    assert rated.skipped.tolist() == [1, 0]
    assert rated.left_out == {"skipped": 1, "a ranking, no choice": 1}
    assert np.nan_to_num(rated.gold, nan=9).tolist() == [9, 9, -1, 0, 9, 9]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"choice": "left"}, "Row 2 .* has choice 'left': give one of model_a"),
        ({"sides": "AB"}, "Row 2 .* has sides 'AB': give ab or ba"),
        ({"kind": "test"}, "Row 2 .* has kind 'test': give one of item, gold"),
        ({"rater": ""}, "Row 2 .* has rater '': give a name"),
        ({"confidence": 5}, "Row 2 .* has confidence .*5.* give 1, 2 or 3"),
        ({"seconds": -1}, "Row 2 .* has seconds .*-1.* give seconds from 0 up"),
        ({"repeat": "often"}, "Row 2 .* has repeat 'often': give true or false"),
        ({"gold": "best"}, "Row 2 .* has gold 'best'"),
        ({}, "Rater 'r01' has several ratings of item 'i1' with repeat 0"),
        ({"confidence": 1.5}, "Row 2 .* has confidence 1.5: give 1, 2 or 3"),
        ({"item": "i1", "rater": "r02", "model_b": "rook"}, "Row 2 .* item 'i1' with another"),
        ({"study": "other"}, "holds 2 studies .*--where"),
    ],
)
def test_a_wrong_value_is_quoted_with_its_row(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_rated(rows_in(tmp_path, {}, {"item": "i2"} | change if change else {}))


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("model_a,model_b,winner\nx,y,model_a\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column 'item'"):
        study_raters(tmp_path / "votes.csv")
    with pytest.raises(DataError, match="No item of the study itself"):
        study_raters(rows_in(tmp_path, {"kind": "gold", "gold": "model_a"}).paths)
    with pytest.raises(DataError, match="has a choice between two answers"):
        study_raters(rows_in(tmp_path, {"choice": None}).paths)


def test_each_rater_has_their_own_figures_by_hand(tmp_path: Path) -> None:
    second: dict[str, object] = {"item": "i2", "prompt_id": "p2"}
    right: dict[str, object] = {"kind": "gold", "item": "g1", "gold": "model_b"}
    rows: list[dict[str, object]] = [
        {"confidence": 1},
        {"repeat": 1, "sides": "ba", "choice": "model_b", "seconds": 2},
        second | {"sides": "ba", "seconds": 4, "confidence": 3},
        {"item": "i3", "choice": "skip"},
        right | {"choice": "model_b", "seconds": 9},
        right | {"item": "g2", "choice": "tie", "seconds": 3},
        {"kind": "qualification", "item": "q1", "gold": "model_a", "seconds": 99},
        {"rater": "r02", "choice": "model_b"},
        second | {"rater": "r02"},
    ]
    study = study_raters(rows_in(tmp_path, *rows).paths)
    one, two = study.raters
    assert (one.rated, one.skipped, one.seconds) == (2, 1, 4.0)
    assert (one.gold_right, one.gold_rated, one.gold.value) == (1, 2, 9 / 12)
    assert (one.retest.value, one.retest.n) == (0.0, 1)
    assert (one.left.value, one.left.n) == (0.5, 4)  # sides of i1 twice, i2 and g1
    assert (study.left_in_repeats.value, study.left_in_repeats.n) == (1.0, 1)
    assert one.consensus.value is None, "no item has three raters"
    assert (two.rated, two.skipped, two.seconds, two.gold.value) == (2, 0, 7.5, None)
    assert one.agreement.value == two.agreement.value == study.agreement.value == 0.5
    by_confidence = {of: (part.value, part.n) for of, part in study.by_confidence.items()}
    assert by_confidence == {1: (0.0, 1), 2: (0.5, 2), 3: (1.0, 1)}
    assert study.surer is not None
    assert study.surer.value == 1.0
    assert "Excluded rows: 1 skipped." in study.warnings


def test_what_the_ratings_cannot_tell_is_null_with_a_warning(tmp_path: Path) -> None:
    study = study_raters(rows_in(tmp_path, {}, {"item": "i2", "prompt_id": "p2"}).paths)
    one = study.to_dict()["raters"][0]
    for name in ("gold", "consensus", "agreement", "retest"):
        assert one[name]["value"] is None
    assert study.plan is None
    assert study.variance.item.value is None
    assert any("the variance components are not estimated" in text for text in study.warnings)
    assert any("intervals are too narrow" in text for text in study.warnings)


def test_sides_of_the_export_exchanged_with_their_choices_change_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows = exported(Crowd(lean=-1.5, ties=0.2), rng, (40, 5, 3), repeats=5, gold=4)
    other = {"model_a": "model_b", "model_b": "model_a"}
    turned = [
        row
        | {
            "model_a": row["model_b"],
            "model_b": row["model_a"],
            "sides": "ba" if row["sides"] == "ab" else "ab",
            "choice": other.get(str(row["choice"]), "tie"),
            "gold": other.get(str(row["gold"])),
        }
        for row in rows
    ]
    results = []
    for name, written in (("one", rows), ("other", turned)):
        write_csv(written, tmp_path / f"{name}.csv")
        results.append(study_raters(tmp_path / f"{name}.csv", StudyOptions(rounds=100)).to_dict())
    first, second = results
    assert any(text.startswith("Raters prefer the right side: ") for text in first["sentences"])
    lasting, noise = (
        percent_of(Estimate(**first["variance"][name])) for name in ("interaction", "within")
    )
    parts = f"{lasting} of the variance is a rater's lasting preference on an item, and {noise} is"
    assert any(f"From 25 repeats, {parts} noise." in text for text in first["sentences"])
    for key in ("raters", "agreement", "retest", "left", "left_in_repeats", "variance"):
        assert json.dumps(rounded(first[key])) == json.dumps(rounded(second[key]))
    assert first["share"]["value"] == pytest.approx(1 - second["share"]["value"])


def test_what_was_said_of_an_item_is_by_the_names_of_models_and_the_least_agreed_first() -> None:
    ratings = [
        ROW | {"item": item, "prompt_id": item, "rater": f"r{rater}", "choice": choice}
        for item, choices in {
            "i1": ("model_a", "model_a", "tie", "both_bad"),
            "i2": ("model_b", "model_a"),
            "i3": ("model_b",),
        }.items()
        for rater, choice in enumerate(choices)
    ]
    by_item = [astuple(one) for one in agreement_of(rows_of(ratings)).by_item]
    assert by_item == [("i2", 1, 0, 1, 0.0), ("i1", 0, 2, 2, pytest.approx(1 / 3))]


def rounded(value: object) -> object:
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 6) + 0.0 if isinstance(value, float) else value


def test_without_a_rater_agreement_loses_both_rows_of_each_pair() -> None:
    """The interval for other raters once counted half of what each has a part in."""
    items, labels, _ = Crowd(ties=0.2).draw(np.random.default_rng(1), 40, 5, 3, 0)
    for rows in (np.ones(labels.n, dtype=bool), labels.label == 1):
        each, lost = _in_pairs(items, labels, rows)
        for rater in np.unique(labels.rater).tolist():
            others = labels.rater != rater
            left, _ = _in_pairs(items, labels.only(others), rows[others])
            gone = lost[~others].sum(axis=0)
            assert (each.sum(axis=0) - gone).tolist() == left.sum(axis=0).tolist()
