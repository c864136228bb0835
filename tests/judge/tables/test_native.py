"""Files of other benchmarks are scored, probed and judged in their own columns."""

import json
from pathlib import Path

import pytest

from judge.probe.cards import read_material
from judge.probe.verdicts import probe_judges
from judge.scoring.annotated import judge_score
from judge.studies.rows import read_rows
from judge.tables.annotations import read_annotations
from judge.tables.cases import each_pair, read_cases, read_labels, read_responses
from judge.tables.native import for_score, model_shown_first
from rating.errors import DataError
from rating.tables.peers import noticing
from tests.rating.tables.peer_rows import (
    FILES,
    REFUSED,
    Row,
    of_arena,
    of_bench,
    of_hard,
    of_kaggle,
    written,
)


def file(folder: Path, name: str) -> Path:
    rows = FILES[name][1] if name in FILES else [REFUSED[name][1]]
    return written(folder, name, rows)


def scores(path: Path, method: str) -> dict[str, dict[str, object]]:
    return {row["model"]: row for row in judge_score(path, method)["models"]}


def test_annotations_of_alpaca_eval_are_scored_as_they_are(tmp_path: Path) -> None:
    path = file(tmp_path, "annotations.json")
    (row,) = scores(path, "alpaca_eval").values()
    # Preferences 1, 1.2, 1.5, 0 (a draw), 1.9; None and 3 are none.
    assert row["model"] == "y"
    assert row["n"] == 5
    assert row["win_rate"] == pytest.approx(100 * (0 + 0.2 + 0.5 + 0.5 + 0.9) / 5)
    assert row["avg_length"] == len("another")
    data = for_score(read_annotations(path), "alpaca_eval")
    asked = data.texts("idx")
    assert data.flags("is_switched").tolist() == [model_shown_first(text) for text in asked]


def test_score_results_of_wildbench_are_scored_as_they_are(tmp_path: Path) -> None:
    row = REFUSED["score_results.json"][1]
    rows = [
        row,
        {**row, "session_id": "s2", "score": "9", "model_output": ""},
        {**row, "session_id": "s3", "score": "N/A"},
    ]
    path = written(tmp_path, "score_results.json", rows[:2])
    assert scores(path, "wildbench")["x"]["score"] == 8
    assert for_score(read_annotations(path), "wildbench").flags("empty").tolist() == [False, True]
    with pytest.raises(DataError, match="'N/A'"):
        judge_score(written(tmp_path, "wrong.json", rows), "wildbench")


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize(("name", "more"), [("question_id", {}), ("uid", {"baseline": "x"})])
def test_games_of_arena_hard_are_scored_as_published(
    name: str, more: dict[str, str], ending: str, tmp_path: Path
) -> None:
    rows = [
        of_hard(name, "A>>B", "B>A", **more),  # the baseline, three times and once
        of_hard(name, "B>A", "A>>B", **more),  # the model, once and three times
        of_hard(name, "A<B", "B=A", **more),  # the model, and a draw
        of_hard(name, None, "A>B", **more),
        {**of_hard(name, "A>B", **more), "games": None},
    ]
    result = judge_score(written(tmp_path, f"games.{ending}", rows), "arena_hard")
    (row,) = result["models"]
    assert row["n"] == 3
    assert row["score"] == pytest.approx(100 * (4 + 1.5) / 10)
    assert result["warnings"] == ["'y': 2 of 5 prompts lack a verdict; they are left out."]


def test_verdicts_of_any_peer_are_scored_in_pairs(tmp_path: Path) -> None:
    result = judge_score(file(tmp_path, "gpt-4_pair.jsonl"), "pairwise")
    assert [(row["model"], row["n_wins"], row["n_ties"]) for row in result["models"]] == [
        ("x", 1, 3),
        ("y", 0, 3),
    ]
    assert result["warnings"] == ["2 of 6 rows have no verdict: no ties, left out."]
    people = scores(file(tmp_path, "arena.json"), "pairwise")
    assert people["x"]["n"] == 3  # over all voters, without the row that is not anonymous


@pytest.mark.parametrize(
    ("name", "method", "words"),
    [
        ("annotations.json", "wildbench", "AlpacaEval annotations.* --method alpaca_eval"),
        ("score_results.json", "alpaca_eval", "WildBench scores.* --method wildbench"),
        ("kaggle.csv", "alpaca_eval", "Kaggle 55k.* --method pairwise"),
        ("wild.jsonl", "arena_hard", "WildVision.* --method pairwise"),
        ("score_results.json", "pairwise", "WildBench scores, no votes"),
        ("outputs.json", "alpaca_eval", "AlpacaEval outputs.*: arena judge run"),
    ],
)
def test_another_method_is_named(name: str, method: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        judge_score(file(tmp_path, name), method)


def test_verdicts_that_were_not_read_are_no_ties_of_a_study(tmp_path: Path) -> None:
    rows = read_rows(str(file(tmp_path, "gpt-4_pair.jsonl")), unread=True)
    assert rows.n == 6
    assert rows.read.tolist() == [True] * 4 + [False] * 2
    assert rows.dropped == {}
    votes = read_rows(str(file(tmp_path, "gpt-4_pair.jsonl")), unread=False)
    assert votes.dropped == {"no verdict": 2}


def test_a_judge_is_probed_by_its_verdicts_on_mt_bench(tmp_path: Path) -> None:
    rows = [
        {
            **of_bench("x", "y", ("model_a", "model_b", "tie")[q % 3], turn, "gpt-4"),
            "question_id": q,
        }
        for q in range(12)
        for turn in (1, 2)
    ]
    files = [written(tmp_path, f"run-{i}.jsonl", rows) for i in (1, 2)]
    about = probe_judges(files, seed=0).about["judges"]["gpt-4"]
    assert (about["cases"], about["read_throughout"]) == (24, 24)


def test_texts_of_sick_and_clinc_are_material_of_a_probe(tmp_path: Path) -> None:
    (rated,) = read_material([file(tmp_path, "sick.tsv")]).rated
    assert (rated.references, rated.texts, rated.dimensions) == (("a",), ("b",), ("relatedness",))
    parts = {name: [[f"a text of {name}", "a class"]] for name in ("train", "val", "test")}
    whole = tmp_path / "data_full.json"
    whole.write_text(json.dumps(parts | {"oos_val": [], "oos_test": []}, indent=2), "utf-8")
    for path, n in ((file(tmp_path, "clinc.csv"), 1), (whole, 3)):
        classes = read_material([path]).classes
        assert classes is not None
        assert len(classes.texts) == n
    with pytest.raises(DataError, match="LLMBar, without texts to compare"):
        read_material([file(tmp_path, "llmbar.json")])


def test_a_judge_is_asked_about_the_pairs_of_other_tools(tmp_path: Path) -> None:
    path = written(tmp_path, "kaggle.csv", [of_kaggle("x", "y", 1, 0, 0)])
    words: list[str] = []
    with noticing(words.append):
        (named,) = read_cases([path])
    assert [turn.content for turn in named.case.prompt] == ["hi"]
    assert (named.case.response_a, named.case.response_b) == ("x", "y")
    assert named.battle_id == "xy(1, 0, 0)"
    assert words == [f"{path} is read as Kaggle 55k; rows left out: none"]
    (arena,) = read_cases([written(tmp_path, "a.json", [of_arena("x", "y", "tie", "ada")])])
    assert (arena.model_a, arena.case.response_b) == ("x", "x")
    assert read_cases([file(tmp_path, "llmbar.json")])[0].case.response_a == "o"
    with pytest.raises(DataError, match="LLMFAO, without a prompt and two answers"):
        read_cases([file(tmp_path, "llmfao.csv")])


def kaggle(prompt: object, a: object, b: object) -> Row:
    texts = {"prompt": prompt, "response_a": a, "response_b": b}
    return {**of_kaggle("x", "y", 1, 0, 0), **{name: json.dumps(x) for name, x in texts.items()}}


SEVERAL = [
    kaggle(["2 + 2?", "Plus 1?"], ["4", "5"], ["Four.", "Five."]),
    kaggle(["2 + 2?", "Plus 1?"], ["4", None], ["Four.", "Five."]),
    kaggle(["2 + 2?", "Plus 1?"], ["4"], ["Four.", "Five."]),
    kaggle(["2 + 2?", "Plus 1?"], ["4", "5"], ["Four.", " "]),
    kaggle(["2 + 2?"], ["4", "5"], ["Four."]),
    kaggle([""], ["4"], ["Four."]),
    kaggle(["[1] + [2]?"], ["[3]"], ["[[A]]"]),
]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_several_turns_of_kaggle_are_read_and_turns_without_an_answer_counted(
    tmp_path: Path, ending: str
) -> None:
    rows: list[Row] = SEVERAL
    if ending != "csv":  # lists, and not JSON of them
        rows = [{**row, **{name: json.loads(row[name]) for name in NAMES}} for row in SEVERAL]
    path, words = written(tmp_path, f"kaggle.{ending}", rows), list[str]()
    with noticing(words.append):
        several, one = read_cases([path])
    assert [turn.content for turn in several.case.prompt] == ["2 + 2?", "Plus 1?"]
    assert (several.case.earlier_a, several.case.response_a) == (("4",), "5")
    assert (several.case.earlier_b, several.case.response_b) == (("Four.",), "Five.")
    assert (one.case.prompt[0].content, one.case.response_a) == ("[1] + [2]?", "[3]")
    assert words[0] == (
        f"{path} is read as Kaggle 55k; rows left out: 1 in which user and assistant do not take "
        "turns, 1 without a question, 3 without an answer"
    )
    assert words[1].startswith(f"{path}: 3 rows have no answer on a side (null or blank), of 7")
    labels = read_labels(path)
    assert labels is None
    (alone,) = each_pair([path], turns=False)
    assert alone == one
    singles = read_responses([path])
    assert [named.case.response_a for named in singles] == [
        *("5", "Five.", "Five.", "Five.", "5", "[3]", "[[A]]")
    ]


NAMES = ("prompt", "response_a", "response_b")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_the_test_file_of_kaggle_is_read_as_its_votes_are(tmp_path: Path, ending: str) -> None:
    rows = [{name: row[name] for name in ("id", *NAMES)} for row in (SEVERAL[0], SEVERAL[1])]
    path, words = written(tmp_path, f"test.{ending}", rows), list[str]()
    with noticing(words.append):
        (named,) = read_cases([path])
    assert words[0] == f"{path} is read as Kaggle 55k (test); rows left out: 1 without an answer"
    assert (named.case.prompt[0].content, named.case.response_b) == ("2 + 2?", "Five.")
    assert (named.model_a, named.battle_id) == ("response_a", "xy(1, 0, 0)")


def test_texts_in_brackets_of_pairs_of_our_own_stay_as_they_are(tmp_path: Path) -> None:
    row = {"id": 1, "prompt": '["a"] or [b]?', "response_a": '["a"]', "response_b": "[b]"}
    (named,) = read_cases([written(tmp_path, "own.jsonl", [row])])
    assert (named.case.prompt[0].content, named.case.response_a) == ('["a"] or [b]?', '["a"]')
