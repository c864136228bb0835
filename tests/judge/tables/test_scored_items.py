"""Scores of items as Inspect, lm-eval, every_eval_ever and judges write them, and tables."""

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge import compare
from judge.tables.scored_items import read_scored_items
from rating.errors import DataError
from rating.paired import ScoredItems

Row = Mapping[str, Any]
RIGHT = {"new": [1, 1, 0, 1], "old": [1, 0, 0, 1]}


def lines(path: Path, rows: Sequence[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def lm_eval(
    folder: Path, model: str, right: Sequence[float], task: str = "sums", /, **more: Any
) -> Path:
    """A file of samples as `lm_eval --log_samples` writes it, so far as it is read."""
    rows = [
        {
            "doc_id": n,
            "doc": {"question": f"{n} + {n}?"},
            "target": str(2 * n),
            "arguments": {"gen_args_0": {"arg_0": "Q"}},
            "resps": [["4"]],
            "filtered_resps": ["4"],
            "filter": "none",
            "metrics": ["exact_match"],
            "doc_hash": f"{n}",
            "exact_match": float(one),
            **more,
        }
        for n, one in enumerate(right)
    ]
    return lines(folder / model / f"samples_{task}_2026-11-25T12-00-00.123456.jsonl", rows)


def sample_of_eee(model: str, n: int, score: float, **more: Any) -> Row:
    return {
        "schema_version": "0.3.0",
        "evaluation_id": f"sums/{model}",
        "model_id": model,
        "evaluation_name": "sums",
        "sample_id": f"q{n}",
        "interaction_type": "single_turn",
        "input": {"raw": "Q", "reference": ["4"]},
        "output": {"raw": ["4"]},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score > 0},
        **more,
    }


def log(
    path: Path,
    model: str,
    values: Sequence[object],
    *,
    member: str = "summaries.json",
    task: str = "sums",
    scorer: str = "match",
) -> Path:
    """A log as Inspect writes it, packed by deflate or in JSON; of a value None with an error."""
    samples = [
        {
            "id": n // 2,
            "epoch": n % 2 + 1,
            "input": "Q",
            "target": "4",
            "scores": {} if value is None else {scorer: {"value": value, "answer": "4"}},
            **({"error": {"message": "out of time"}} if value is None else {}),
        }
        for n, value in enumerate(values)
    ]
    spec = {"task": task, "model": model, "created": "2026-11-25T12:00:00+00:00"}
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        whole = {"version": 2, "status": "success", "eval": spec, "plan": {}, "samples": samples}
        path.write_text(json.dumps(whole, indent=2))
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", json.dumps({"version": 2, "eval": spec, "plan": {}}))
        if member == "summaries.json":
            packed.writestr(member, json.dumps(samples))
        for one in samples:
            name = f"samples/{one['id']}_epoch_{one['epoch']}.json"
            packed.writestr(name, json.dumps(one))
    return path


def table(data: ScoredItems) -> dict[str, list[float]]:
    return {name: data.mean[:, at].tolist() for at, name in enumerate(data.models)}


def test_files_of_lm_eval_are_models_named_by_their_folders(tmp_path: Path) -> None:
    paths = [lm_eval(tmp_path, name, right) for name, right in RIGHT.items()]
    data = read_scored_items(paths)
    assert data.items == ("sums: 0", "sums: 1", "sums: 2", "sums: 3")
    assert table(data) == RIGHT


def test_a_folder_of_lm_eval_holds_results_beside_the_samples(tmp_path: Path) -> None:
    for name, right in RIGHT.items():
        results = lm_eval(tmp_path, name, right).with_name("results_2026-11-25T12-00-00.json")
        results.write_text(json.dumps({"results": {"sums": {"exact_match,none": 0.75}}}))
    data = read_scored_items([tmp_path / "new", tmp_path / "old"])
    assert table(data) == RIGHT
    assert "1 of 2 files are of samples, and read." in data.warnings[0]


def test_items_of_other_texts_under_one_number_are_said(tmp_path: Path) -> None:
    paths = [lm_eval(tmp_path, "new", [1, 0]), lm_eval(tmp_path, "old", [1, 0], doc_hash="x")]
    (text,) = read_scored_items(paths).warnings
    assert text.startswith("Items with other texts in another file: 2, such as 'sums: 0'")


def test_several_metrics_and_filters_are_to_be_chosen(tmp_path: Path) -> None:
    more = {"metrics": ["acc", "acc_norm"], "acc": 1.0, "acc_norm": 0.5}
    paths = [lm_eval(tmp_path, name, right, **more) for name, right in RIGHT.items()]
    with pytest.raises(DataError, match=r"acc, acc_norm.*--column score=acc"):
        read_scored_items(paths)
    data = read_scored_items(paths, columns=[("score", "acc_norm")])
    assert data.mean.tolist() == [[0.5, 0.5]] * 4
    twice = [
        json.loads(line) | {"filter": name, "exact_match": value}
        for line in paths[0].read_text().splitlines()
        for name, value in (("strict-match", 0.0), ("flexible-extract", 1.0))
    ]
    lines(paths[0], [row | {"metrics": ["exact_match"]} for row in twice])
    with pytest.raises(DataError, match=r"filter 'strict-match' and 'flexible-extract'"):
        read_scored_items(paths[:1])
    data = read_scored_items(paths[:1], where="filter = 'flexible-extract'")
    assert data.mean[:, 0].tolist() == [1.0] * 4
    assert data.warnings[0].endswith("rows excluded: 4 by where.")


def test_the_proposed_choice_of_a_filter_reads_tasks_without_filters_as_well(
    tmp_path: Path,
) -> None:
    for name in RIGHT:
        lm_eval(tmp_path / name, "x", [1, 0], "arc")
        path = lm_eval(tmp_path / name, "x", [1, 0], "gsm8k", filter="strict-match")
        path.write_text(
            path.read_text() + path.read_text().replace("strict-match", "flexible-extract")
        )
    folders = [tmp_path / name for name in RIGHT]
    with pytest.raises(DataError, match="choose one") as caught:
        read_scored_items(folders)
    proposed = re.search(r'--where "(.+)"', str(caught.value))
    assert proposed is not None
    assert proposed[1] == "filter in ('none','strict-match')"
    data = read_scored_items(folders, where=proposed[1])
    assert data.items == ("arc: 0", "arc: 1", "gsm8k: 0", "gsm8k: 1")


def test_tables_of_several_tasks_are_told_apart_by_a_column_task(tmp_path: Path) -> None:
    for name, right in RIGHT.items():
        for task in ("sums", "words"):
            rows = [{"Item": n, "Score": one} for n, one in enumerate(right)]
            lines(tmp_path / name / f"{task}.jsonl", rows)
    folders = [tmp_path / name for name in RIGHT]
    with pytest.raises(DataError, match=r"'0' of 'new' twice.*or add a column task\."):
        read_scored_items(folders)
    for path in tmp_path.glob("*/*.jsonl"):
        rows = [json.loads(line) | {"task": path.stem} for line in path.read_text().splitlines()]
        lines(path, rows)
    data = read_scored_items(folders)
    assert data.items[::4] == ("sums: 0", "words: 0")
    assert table(data) == {name: right * 2 for name, right in RIGHT.items()}


def test_samples_of_every_eval_ever_are_read(tmp_path: Path) -> None:
    rows = [
        sample_of_eee(f"lab/{m}", n, s) for m, right in RIGHT.items() for n, s in enumerate(right)
    ]
    data = read_scored_items([lines(tmp_path / "some_samples.jsonl", rows)])
    assert data.items == ("sums: q0", "sums: q1", "sums: q2", "sums: q3")
    assert table(data) == {f"lab/{name}": right for name, right in RIGHT.items()}
    again = [*rows, sample_of_eee("lab/new", 0, 0.25, evaluation_id="other")]
    with pytest.raises(DataError, match=r"evaluation_id"):
        read_scored_items([lines(tmp_path / "twice.jsonl", again)])


@pytest.mark.parametrize("member", ["summaries.json", "none"])
def test_logs_of_inspect_are_read_without_inspect(tmp_path: Path, member: str) -> None:
    new = log(tmp_path / "new.eval", "lab/new", ["C", "I", "P", True], member=member)
    old = log(tmp_path / "old.eval", "lab/old", [0.25, None, "N", None], member=member)
    data = read_scored_items([new, old])
    assert data.items == ("sums: 0", "sums: 1")
    assert table(data) == {"lab/new": [0.5, 0.75], "lab/old": [0.25, 0.0]}


def test_a_value_of_several_parts_is_to_be_chosen(tmp_path: Path) -> None:
    value = {"style": 4, "content": 2}
    path = log(tmp_path / "a.eval", "lab/new", [value] * 4)
    with pytest.raises(DataError, match=r"match style, match content"):
        read_scored_items([path])
    data = read_scored_items([path], columns=[("score", "match content")])
    assert data.mean.tolist() == [[2.0], [2.0]]


def test_marks_of_a_judge_are_read_with_the_turns_of_a_prompt_as_a_cluster(tmp_path: Path) -> None:
    rows = [
        {
            "battle_id": f"{m}{n}",
            "prompt_id": f"p{n // 2}",
            "turn": n % 2 + 1,
            "model": m,
            "score": s,
            "judge": "owl",
            "status": "read",
        }
        for m, right in RIGHT.items()
        for n, s in enumerate(right)
    ]
    data = read_scored_items([lines(tmp_path / "marks.jsonl", rows)])
    assert data.items == ("p0, turn 1", "p0, turn 2", "p1, turn 1", "p1, turn 2")
    assert data.cluster.tolist() == [0, 0, 1, 1]
    assert table(data) == RIGHT
    both = [*rows, *({**row, "judge": "lynx"} for row in rows)]
    with pytest.raises(DataError, match=r"judge 'owl' and 'lynx'.*--where"):
        read_scored_items([lines(tmp_path / "two.jsonl", both)])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_has_models_clusters_and_repeats(tmp_path: Path, ending: str) -> None:
    import polars as pl

    rows = {
        "item": ["q1", "q1", "q2", "q1", "q2", "q2"],
        "model": ["new", "new", "new", "old", "old", "old"],
        "score": [1.0, 0.0, 0.5, 1.0, None, 0.25],
        "cluster": ["q2", "q2", None, "q2", None, None],  # also the name of an item
        "repeat": [1, 2, 1, 1, 1, 2],
    }
    path, frame = tmp_path / f"scores.{ending}", pl.DataFrame(rows)
    if ending == "csv":
        frame.write_csv(path)
    elif ending == "jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_parquet(path)
    data = read_scored_items([path])
    assert table(data) == {"new": [0.5, 0.5], "old": [1.0, 0.25]}
    assert data.cluster.tolist() == [0, 1]
    assert read_scored_items([path], models=["old", "new"]).models == ("old", "new")


def test_rows_without_a_repeat_are_repeats_and_the_same_repeat_twice_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("item,score\nq1,1\nq1,0\nq2,1\n")
    data = read_scored_items([path])
    assert data.mean[:, 0].tolist() == [0.5, 1.0]
    assert "1 of 3 rows score an item and model again" in data.warnings[0]
    path.write_text("item,score,repeat\nq1,1,1\nq1,0,1\n")
    with pytest.raises(DataError, match=r"Row 2 .*repeat.*row 1 has it"):
        read_scored_items([path])


def test_two_runs_of_one_model_are_named_by_their_files(tmp_path: Path) -> None:
    for name, right in RIGHT.items():
        rows = [{"item": f"q{n}", "model": "lab/x", "score": s} for n, s in enumerate(right)]
        lines(tmp_path / f"{name}.jsonl", rows)
    data = read_scored_items([tmp_path / "new.jsonl", tmp_path / "old.jsonl"])
    assert table(data) == {f"lab/x ({name})": right for name, right in RIGHT.items()}
    assert data.warnings == ("Several sources score 'lab/x': each is a run.",)


def test_two_runs_of_one_model_over_several_tasks_are_two_folders(tmp_path: Path) -> None:
    for name, right in RIGHT.items():
        for task in ("sums", "words"):
            lm_eval(tmp_path / "lm" / name, "lab__x", right, task)
            for ending in ("eval", "json"):
                path = tmp_path / ending / name / f"2026-11-25T12-00-00-00-00_{task}_x.{ending}"
                log(path, "lab/x", right, task=task)
            rows = [
                sample_of_eee("lab/x", n, s, evaluation_name=task) for n, s in enumerate(right)
            ]
            lines(tmp_path / "eee" / name / "lab/x" / f"{task}_samples.jsonl", rows)
    for kind in ("lm", "eval", "json", "eee"):
        folders = [tmp_path / kind / name for name in RIGHT]
        data = read_scored_items(folders)
        assert len(data.items) == (4 if kind in ("eval", "json") else 8)
        assert {item.split(": ")[0] for item in data.items} == {"sums", "words"}
        assert [name.split()[1] for name in data.models] == ["(new)", "(old)"]
        within = [path for path in sorted((tmp_path / kind).glob("**/*.*")) if path.is_file()]
        assert np.array_equal(read_scored_items(within).mean, data.mean)
        assert np.array_equal(read_scored_items([tmp_path / kind]).mean, data.mean)


def test_an_item_twice_in_a_folder_of_several_is_refused(tmp_path: Path) -> None:
    path = lm_eval(tmp_path / "a", "x", [1, 0])
    path.with_name(path.name.replace("-25T", "-26T")).write_text(
        path.read_text().replace("1", "0")
    )
    other = lm_eval(tmp_path / "b", "x", [1, 0])
    with pytest.raises(DataError, match=r"a' scores 'sums: 0' of 'x' twice, .*-25T.*-26T"):
        read_scored_items([tmp_path / "a", other])
    assert len(read_scored_items([tmp_path / "a"]).models) == 2


def test_files_of_one_model_on_other_items_show_an_item_of_each(tmp_path: Path) -> None:
    paths = [lm_eval(tmp_path, "x", [1, 0], task) for task in ("sums", "words")]
    for sources in (paths, [lm_eval(tmp_path / at, "x", [1, 0], at) for at in ("a", "b")]):
        with pytest.raises(
            DataError, match=r"No item .* has '(sums|a): 0', .* has '(words|b): 0'"
        ):
            compare(*sources)


def test_scores_of_different_metrics_are_refused(tmp_path: Path) -> None:
    both = {"metrics": ["acc", "bleu"], "acc": 1.0, "bleu": 30.0}
    runs = [lm_eval(tmp_path, m, [1, 0], metrics=[m], **{m: 0.5}) for m in ("acc", "bleu")]
    with pytest.raises(DataError, match=r"'sums: 0' by acc, .* by bleu: .*--column score=NAME"):
        read_scored_items(runs)
    runs[1] = lm_eval(tmp_path, "both", [1, 0], **both)
    html = compare(*runs, columns=[("score", "acc")])._repr_html_()
    assert "difference in acc" in html
    by_filter = [lm_eval(tmp_path, name, [1, 0], filter=name) for name in ("strict", "none")]
    with pytest.raises(DataError, match=r"by exact_match \(strict\), .* by exact_match"):
        read_scored_items(by_filter)
    scorers = [log(tmp_path / f"{m}.eval", m, ["C", "I"], scorer=m) for m in ("match", "includes")]
    assert read_scored_items(scorers[:1]).metric == "match"
    with pytest.raises(DataError, match=r"by match, .* by includes"):
        read_scored_items(scorers)
    path = tmp_path / "long.csv"
    path.write_text("item,score,metric\nq1,1,acc\nq1,30,bleu\n")
    with pytest.raises(DataError, match="metric 'acc' and 'bleu': choose one"):
        read_scored_items([path])


def test_a_metric_is_chosen_for_each_task_of_a_run(tmp_path: Path) -> None:
    more = {"metrics": ["acc", "acc_norm"], "acc": 1.0, "acc_norm": 0.5}
    for name in RIGHT:
        lm_eval(tmp_path / name, "x", [1, 0], "sums")
        lm_eval(tmp_path / name, "x", [1, 0], "words", **more)
    folders = [tmp_path / name for name in RIGHT]
    columns = [("score", "acc_norm"), ("score", "exact_match")]
    data = read_scored_items(folders, columns=columns)
    assert (data.metric, data.mean[:, 0].tolist()) == ("exact_match, acc_norm", [1, 0, 0.5, 0.5])
    copies, _, mixed = data.warnings
    assert copies.endswith(", and 1 more.")
    assert mixed == "Means are over items of 2 metrics: exact_match, acc_norm."


@pytest.mark.parametrize("ending", ["eval", "json"])
def test_marks_that_are_no_numbers_and_failed_samples_are_said(
    tmp_path: Path, ending: str
) -> None:
    other = log(tmp_path / "old.eval", "old", ["C", "I"] * 4)
    path = tmp_path / f"new.{ending}"
    log(path, "new", ["C", "yes", "A", "I"])
    with pytest.raises(
        DataError, match=r"Row 3 .*new.* has score 'A': .*C, P, I and N of Inspect; "
    ):
        compare(path, other)
    log(path, "new", [None] * 8)
    with pytest.raises(
        DataError, match=r"new.* has no score of 'new': failed samples: 8, .*'out of"
    ):
        compare(path, other)
    log(path, "new", [None, None, *["C", "0.5"] * 3])
    result = compare(path, other)
    assert [(one.n, one.missing, one.compared, one.mean) for one in result.models] == [
        (3, 1, 3, 0.75),
        (4, 0, 3, 0.5),
    ]
    assert "2 of 8 samples failed" in result.to_dict()["warnings"][0]
    log(tmp_path / "old.eval", "old", [None, None, *["C", "I"] * 3])
    result = compare(path, other)
    assert (result.items, result.pairs[0].n, [one.missing for one in result.models]) == (
        4, 3,
        [1, 1],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        (None, "Sample 1 of .*a.eval' is null: .* with id, epoch. Write the log again"),
        ({"id": 1, "epoch": 1, "scores": {"match": 1}}, "Score 'match' of sample 1 of .* is 1"),
        ({"id": 1, "epoch": 1, "scores": [2]}, "'scores' of .* is \\[2\\]"),
    ],
)
def test_a_sample_that_is_none_is_quoted(tmp_path: Path, sample: object, words: str) -> None:
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("header.json", json.dumps({"eval": {"task": "t", "model": "m"}}))
        packed.writestr("summaries.json", json.dumps([sample]))
    with pytest.raises(DataError, match=words):
        read_scored_items([path])


def test_a_file_that_is_given_twice_is_refused_and_a_copy_is_said(tmp_path: Path) -> None:
    path, link = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("item,score\n" + "".join(f"q{n},1\n" for n in range(9)))
    link.symlink_to(path)
    with pytest.raises(DataError, match=r"a\.csv' is given twice: name each file once"):
        compare(path, str(path))
    with pytest.raises(DataError, match=r"b\.csv' is given twice, also as .*a\.csv'"):
        compare(path, link)
    link.unlink()
    link.write_bytes(path.read_bytes())
    text = compare(path, link).warnings[0]
    assert text == f"Files have the same content: {str(path)!r} and {str(link)!r}."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("item,score\nq1,good\n", r"Row 1 .*score 'good'.*a number, or nothing"),
        ("item,score\nq1,NA\n", r"'NA'.* Leave a missing score empty, or write nan; write 85%"),
        ("item,score\n,1\n", r"Row 1 of .*a\.csv' has no item: give a name"),
        ("item,score\nq1,inf\n", r"score 'inf'.*at most 1e\+50"),
        ("item,points\nq1,x\n", "no column 'score'"),
        ("question,score\nq1,1\n", "no column 'item'"),
        ("item,score,cluster\nq1,1,a\nq1,1,b\n", r"q1.*cluster 'b'.*'a'"),
        ("item,score\n", "no row"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        read_scored_items([path])


def test_names_that_are_not_there_are_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("item,score\nq1,true\nq2,False\n")
    assert read_scored_items([path]).mean[:, 0].tolist() == [1.0, 0.0]
    with pytest.raises(DataError, match=r"no model 'x'.*'a'"):
        read_scored_items([path], models=["x"])
    with pytest.raises(DataError, match="models is 'a': give a list"):
        compare(path, models="a")
    with pytest.raises(DataError, match=r"Cannot compare \(\): give paths"):
        compare()
    with pytest.raises(DataError, match=r"no role 'winner'"):
        read_scored_items([path], columns=[("winner", "score")])


def test_a_damaged_log_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(DataError, match=r"Cannot read the log of Inspect .*a\.eval"):
        read_scored_items([path])
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("header.json", "{}")
        packed.writestr("summaries.json", "[]")
    with pytest.raises(DataError, match=r"a\.eval"):
        read_scored_items([path])


def test_a_log_that_unpacks_to_far_more_is_refused(tmp_path: Path) -> None:
    path = log(tmp_path / "a.eval", "lab/new", ["C"], member="none")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("summaries.json", b" " * 2**26)
    with pytest.raises(DataError, match=r"a\.eval.*unpacks to more than 32 MB"):
        read_scored_items([path])


def test_python_compares_with_the_options_of_the_command(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for name, p in (("new", 0.7), ("old", 0.5)):
        right = (rng.random(300) < p).astype(int).tolist()
        lines(tmp_path / f"{name}.jsonl", [{"item": n, "score": s} for n, s in enumerate(right)])
    paths = [tmp_path / "new.jsonl", tmp_path / "old.jsonl"]
    result = compare(*paths, margin=0.05, require="not-worse", level=0.9)
    assert result.passes is True
    assert result.to_dict()["pairs"][0]["a"] == "new"
    turned = compare(*paths, models=["old", "new"], margin=0.05, require="not-worse")
    assert turned.passes is False
