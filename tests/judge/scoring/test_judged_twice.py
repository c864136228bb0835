"""Two runs of a judge in one file: a row counts once, and the repeats are counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.scoring.annotated import judge_score
from judge.studies.rows import REPEATED, read_rows
from tests.rating.tables.peer_rows import Row, of_hard, written

BENCH: Row = {
    "question_id": 80,
    "model": "basalt",
    "judge": ["gpt-4", "single-v1"],
    "user_prompt": "u",
    "judgment": "j",
    "turn": 1,
}


def scores(path: Path, method: str | None = None) -> tuple[dict[str, Any], list[str]]:
    result = judge_score(path, method)
    (row,) = result["models"]
    return row, [one for one in result["warnings"] if "judge again" in one]


@pytest.mark.parametrize(
    ("times", "score", "which"),
    [((1.0, 2.0), 9.0, "newest"), ((2.0, 1.0), 3.0, "newest"), (None, 3.0, "first")],
)
def test_of_two_runs_of_mt_bench_the_newest_counts(
    tmp_path: Path, times: tuple[float, float] | None, score: float, which: str
) -> None:
    rows = [
        {**BENCH, "question_id": 80 + q, "score": mark + q + turn - 1, "turn": turn}
        | ({"tstamp": times[run]} if times else {})
        for run, mark in enumerate((2, 8))
        for q in (0, 1)
        for turn in (1, 2)
    ]
    row, warnings = scores(written(tmp_path, "single.jsonl", rows))
    assert (row["n"], row["score"]) == (4, score)
    assert (row["turn_1"], row["turn_2"]) == (score - 0.5, score + 0.5)
    assert row["standard_error"] == pytest.approx(0.5)  # of two questions one point apart
    assert warnings == [
        "4 of 8 rows judge again what another row does, such as question_id 80, judge "
        f"['gpt-4', 'single-v1'], turn 1, model basalt. The {which} of them counts"
        f"{' (tstamp)' if times else ''}: choose one run with --where."
    ]


def test_rows_that_differ_in_turn_judge_or_model_are_no_repeats(tmp_path: Path) -> None:
    others: list[Row] = [{"turn": 2}, {"judge": ["gpt-4o", "single-v1"]}, {"question_id": 81}]
    others.append({"question_id": 82, "score": -1})  # where no mark could be read
    rows = [{**BENCH, "score": 7, **other} for other in [{}, *others]]
    assert judge_score(written(tmp_path, "single.jsonl", rows))["warnings"] == [
        "'basalt': 1 of 4 rows have no score; they are excluded.",
        ("The file contains 2 values of 'judge' ('gpt-4', 'gpt-4o'): they are scored separately."),
    ]


def annotation(preference: float) -> Row:
    return {
        "instruction": "Why?",
        "annotator": "gpt-4",
        "preference": preference,
        "output_1": "So.",
        "generator_1": "x",
        "output_2": "Thus.",
        "generator_2": "y",
    }


def own(preference: float, order: str) -> Row:
    names = {"battle_id": "b1", "prompt_id": "p1", "model_a": "x", "model_b": "y"}
    winner = "model_a" if preference > 0.5 else "model_b"
    by = {"judge": "j", "method": "alpaca_eval", "status": "read", "template": "t"}
    return {**names, **by, "order": order, "winner": winner, "preference": preference}


@pytest.mark.parametrize(
    ("name", "once", "again"),
    [
        ("annotations.json", [annotation(1.25)], [annotation(2.0)]),
        (
            "hard.jsonl",
            [of_hard("question_id", "A>B", "B>A")],
            [{**of_hard("question_id", "A>B", "A>B"), "question_id": "qA>B-B>A"}],
        ),
        ("own.jsonl", [own(1.0, "ab"), own(0.5, "ba")], [own(0.0, "ab"), own(0.0, "ba")]),
    ],
)
def test_the_first_of_two_runs_counts_in_every_format(
    tmp_path: Path, name: str, once: list[Row], again: list[Row]
) -> None:
    expected, silence = scores(written(tmp_path, f"once-{name}", once))
    row, warnings = scores(written(tmp_path, name, [*once, *again]))
    assert (row, silence) == (expected, [])
    assert warnings[0].startswith(f"{len(once)} of {2 * len(once)} rows judge again")


def test_votes_of_people_on_one_item_are_no_repeats(tmp_path: Path) -> None:
    rows = [{"item_id": 1, "model_a": "x", "model_b": "y", "winner": "model_a"}] * 3
    result = judge_score(written(tmp_path, "people.jsonl", rows), "pairwise")
    assert [row["n"] for row in result["models"]] == [3, 3]


def test_a_study_counts_a_verdict_once_and_reports_the_repeats(tmp_path: Path) -> None:
    rows = [
        {**own(preference, order), "battle_id": f"b{n}"}
        for preference in (1.0, 0.0)  # the second run says the opposite
        for n in range(120)
        for order in ("ab", "ba")
    ]
    path = tmp_path / "verdicts.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    verdicts = read_rows(str(path), unparsed=True)
    assert verdicts.n == 240  # of 120 cases, both orders
    assert verdicts.dropped == {REPEATED: 240}
    assert verdicts.label.tolist() == [1] * 240


@pytest.mark.parametrize(
    "others",
    [
        [{"battle_id": None}, {"battle_id": None}],
        [{"voter": "ada"}, {"voter": "bob"}],
        [{"template": "u"}, {"judge": "k"}],
    ],
)
def test_rows_without_a_case_or_by_others_are_no_repeats(
    tmp_path: Path, others: list[Row]
) -> None:
    rows = [{**own(1.0, "ab"), "voter": None, **other} for other in [{}, *others]]
    path = tmp_path / "verdicts.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert read_rows(str(path), unparsed=True).n == 3
