"""Scores of files of annotations: the contract, the published figures, and what is refused."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from judge.scoring.annotated import judge_score
from rating.errors import DataError

KEYS = [
    "model", "n", "n_wins", "n_ties", "n_losses", "win_rate", "standard_error",
    "discrete_win_rate", "lc_win_rate", "lc_standard_error", "avg_length",
]  # fmt: skip
Row = dict[str, Any]


def write(path: Path, rows: list[Row]) -> Path:
    if path.suffix == ".csv":
        with path.open("w", newline="") as out:
            writer = csv.DictWriter(out, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def drawn(n_models: int = 6, n: int = 120) -> list[Row]:
    rng = np.random.default_rng(4)
    rows = []
    for m in range(n_models):
        for i in range(n):
            base, own = (int(length) for length in rng.integers(100, 3000, 2))
            logit = 0.3 * m - 1 + math.tanh((own - base) / 1000) + math.sin(i)
            preference = 1 + float(rng.beta(2, 2 * math.exp(-logit)))
            rows.append(
                {"model": f"model-{m}", "idx": i, "preference": preference}
                | {"len_base": base, "len_model": own, "is_switched": bool(i % 3)}
            )
    return rows


def of(scored: dict[str, Any], model: str) -> Row:
    rows: list[Row] = scored["models"]
    return next(row for row in rows if row["model"] == model)


@pytest.mark.published
@pytest.mark.parametrize("compat", [None, "row-position"])
def test_length_control_reaches_the_published_board(
    published_data: Path, compat: str | None
) -> None:
    folder = published_data / "judge"
    scored = judge_score(
        folder / "alpacaeval_annotations.parquet",
        "alpaca_eval",
        items=folder / "alpacaeval_items.csv",
        regularisation=folder / "alpacaeval_gamed_block.csv.gz",
        compat=compat,
    )
    published = duckdb.read_csv(str(folder / "alpacaeval_published.csv"))
    names = published.columns
    apart = {}
    for values in published.fetchall():
        want = dict(zip(names, values, strict=True))
        row = of(scored, want["model"])
        apart[want["model"]] = row["lc_win_rate"] - want["length_controlled_winrate"]
        assert row["win_rate"] == pytest.approx(want["win_rate"], abs=1e-9)
        # Two outputs of phi-2 were empty and never judged; upstream counts them as 0 long.
        assert row["avg_length"] == want["avg_length"] + 2 * (want["model"] == "phi-2")
        if want["lc_standard_error"] is not None and compat:
            assert row["lc_standard_error_compat"] == pytest.approx(
                want["lc_standard_error"], abs=0.002
            )
            assert 2 * want["lc_standard_error"] < row["lc_standard_error"] < 1.7
    phi = apart.pop("phi-2")
    assert phi == pytest.approx(-0.072 if compat else -0.585, abs=0.001)
    assert len(apart) == 15
    assert max(map(abs, apart.values())) < 0.15
    baseline = of(scored, "gpt4_1106_preview")["lc_standard_error"]
    assert (apart["gpt4_1106_preview"], baseline) == (0, 0)
    assert "part of the effect of order" in scored["warnings"][0]


@pytest.mark.published
@pytest.mark.parametrize(("with_items", "apart"), [(True, 3), (False, 9)])
def test_a_rate_without_upstreams_files_is_as_far_from_published_ones_as_is_said(
    published_data: Path, *, with_items: bool, apart: int
) -> None:
    folder = published_data / "judge"
    scored = judge_score(
        folder / "alpacaeval_annotations.parquet",
        "alpaca_eval",
        items=folder / "alpacaeval_items.csv" if with_items else None,
    )
    assert f"up to {apart} points" in scored["warnings"][-1]
    published = duckdb.read_csv(str(folder / "alpacaeval_published.csv"))
    distances = [
        abs(of(scored, model)["lc_win_rate"] - rate)
        for model, rate in published.project("model, length_controlled_winrate").fetchall()
    ]
    assert apart - 1 < max(distances) < apart


@pytest.mark.published
def test_wildbench_rows_are_scored_apart_by_version_and_judge(published_data: Path) -> None:
    scored = judge_score(published_data / "judge" / "wildbench_scores.parquet", "wildbench")
    assert len(scored["models"]) == 13
    row = next(
        row
        for row in scored["models"]
        if (row["model"], row["version"]) == ("reka-core-20240501", "v2.0625")
    )
    assert (row["n"], row["score"], row["task_macro"]) == (1024, 7.0517578125, None)
    assert row["adjusted"] == pytest.approx(4.103515625)


def test_a_board_has_the_columns_of_the_contract_and_is_plain_json(tmp_path: Path) -> None:
    rows = drawn()
    scored = judge_score(write(tmp_path / "rows.csv", rows), "alpaca_eval")
    lengths = [sum(row["len_model"] for row in rows[m : m + 120]) for m in range(0, 720, 120)]
    assert [row["avg_length"] for row in scored["models"]] == [n // 120 for n in lengths]
    assert list(scored) == ["method", "models", "warnings"]
    assert [list(row) for row in scored["models"]] == [KEYS] * 6
    assert json.loads(json.dumps(scored, allow_nan=False)) == scored
    assert [row["model"] for row in scored["models"]] == [f"model-{m}" for m in range(6)]
    assert all(
        row["n"] == row["n_wins"] + row["n_ties"] + row["n_losses"] for row in scored["models"]
    )


def test_every_kind_of_file_and_order_of_rows_gives_the_same(tmp_path: Path) -> None:
    rows = drawn()
    as_csv = judge_score(write(tmp_path / "rows.csv", rows), "alpaca_eval", order=True)
    as_lines = judge_score(write(tmp_path / "rows.jsonl", rows[::-1]), "alpaca_eval", order=True)
    table = tmp_path / "rows.parquet"
    duckdb.query(f"copy (from read_csv('{tmp_path / 'rows.csv'}')) to '{table}'")
    as_table = judge_score(table, "alpaca_eval", order=True)
    for other in (as_lines, as_table):
        for one, same in zip(as_csv["models"], other["models"], strict=True):
            assert one == pytest.approx(same, abs=1e-9)
    assert as_csv["models"][0]["lc_win_rate"] is not None


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
def test_preferences_are_read_from_logprobs_where_there_is_no_column(
    tmp_path: Path, name: str
) -> None:
    rows = [
        {"model": "m", "idx": i, "is_switched": first}
        | {"lp_m": math.log(0.6), "lp_M": math.log(0.2)}
        for i, first in enumerate([True, False])
    ]
    scored = of(judge_score(write(tmp_path / name, rows), "alpaca_eval"), "m")
    assert (scored["n_wins"], scored["n_losses"], scored["win_rate"]) == (1, 1, pytest.approx(50))
    assert (scored["lc_win_rate"], scored["avg_length"]) == (None, None)


def test_rows_left_out_are_counted_in_a_warning(tmp_path: Path) -> None:
    rows = drawn(n_models=1)
    rows[0]["preference"], rows[1]["preference"] = None, 3
    scored = judge_score(write(tmp_path / "rows.csv", rows), "alpaca_eval")
    assert of(scored, "model-0")["n"] == 118
    assert any(
        "'model-0': 2 of 120 rows have no preference" in text for text in scored["warnings"]
    )
    assert any("Difficulties need 5 models" in text for text in scored["warnings"])


def test_a_model_that_always_wins_has_no_controlled_rate_and_the_others_do(tmp_path: Path) -> None:
    rows = drawn()
    for row in rows[:120]:
        row["preference"] = 2
    scored = judge_score(write(tmp_path / "rows.csv", rows), "alpaca_eval")
    assert of(scored, "model-0")["win_rate"] == 100
    assert of(scored, "model-0")["lc_win_rate"] is None
    assert of(scored, "model-1")["lc_win_rate"] is not None
    assert any("'model-0' has no length-controlled" in text for text in scored["warnings"])
    assert any("separated" in text for text in scored["warnings"])


def test_few_rows_are_said(tmp_path: Path) -> None:
    scored = judge_score(write(tmp_path / "rows.csv", drawn(n=99)), "alpaca_eval")
    assert "'model-0' has 99 rows" in scored["warnings"][0]


def test_the_baseline_is_at_fifty_by_definition(tmp_path: Path) -> None:
    rows = [
        row | {"model": "base", "preference": 1.5, "len_model": row["len_base"]}
        for row in drawn(n_models=1)
    ]
    scored = of(judge_score(write(tmp_path / "rows.csv", rows), "alpaca_eval"), "base")
    assert (scored["lc_win_rate"], scored["lc_standard_error"]) == (50.0, 0.0)
    assert (scored["win_rate"], scored["n_ties"], scored["n_losses"]) == (50.0, 120, 0)


def items(tmp_path: Path, n: int = 120, first: int = 0) -> Path:
    rows = [{"idx": i, "difficulty": math.sin(i) + 0.001 * i} for i in range(first, n)]
    return write(tmp_path / "items.csv", rows)


def test_rows_of_instructions_without_an_item_are_left_out_and_counted(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.csv", drawn(n_models=2))
    scored = judge_score(source, "alpaca_eval", items=items(tmp_path, first=20))
    assert any("40 rows have instructions that" in text for text in scored["warnings"])
    assert of(scored, "model-0")["n"] == 120


def test_difficulties_go_by_instruction_unless_upstreams_row_position_is_asked_for(
    tmp_path: Path,
) -> None:
    whole, given = drawn(n_models=1), items(tmp_path)
    holed = write(tmp_path / "holed.csv", whole[10:])
    by_id = judge_score(holed, "alpaca_eval", items=given)["models"][0]
    by_row = judge_score(holed, "alpaca_eval", items=given, compat="row-position")["models"][0]
    assert abs(by_id["lc_win_rate"] - by_row["lc_win_rate"]) > 0.01
    assert list(by_row) == [*KEYS, "lc_standard_error_compat"]
    rows = [row | {"row_pos": place} for place, row in enumerate(whole)]
    placed = write(tmp_path / "placed.csv", rows[10:])
    by_place = judge_score(placed, "alpaca_eval", items=given, compat="row-position")["models"]
    assert by_place[0]["lc_win_rate"] == pytest.approx(by_id["lc_win_rate"], abs=1e-9)
    as_is = write(tmp_path / "whole.csv", whole)
    same = [
        judge_score(as_is, "alpaca_eval", items=given, compat=how)["models"][0]["lc_win_rate"]
        for how in (None, "row-position")
    ]
    assert same[0] == pytest.approx(same[1], abs=1e-9)


def test_difficulties_that_go_with_the_order_are_told(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.csv", drawn(n_models=1))
    value = {i: math.sin(i) + 2 * bool(i % 3) for i in range(120)}  # else the model is second
    lopsided = [{"idx": i, "difficulty": value[i]} for i in value]
    first, second = (np.mean([value[i] for i in value if bool(i % 3) is x]) for x in (True, False))
    sentence, plain = (
        judge_score(source, "alpaca_eval", items=one)["warnings"]
        for one in (write(tmp_path / "lopsided.csv", lopsided), items(tmp_path))
    )
    assert sentence[0].startswith(
        "The difficulties include part of the effect of order: their mean is "
        f"{first:.2f} with the model first and {second:.2f} with it second (t = "
    )
    assert not any("order" in text for text in plain)


def test_a_regularisation_block_moves_the_controlled_rate_alone(tmp_path: Path) -> None:
    source, given = write(tmp_path / "rows.csv", drawn(n_models=1)), items(tmp_path)
    rows = [
        {"idx": i, "x_len": math.cos(i), "pseudo_y": 0.5 - 0.4 * math.cos(i), "weight": 0.1}
        for i in range(120)
    ]
    block = write(tmp_path / "block.csv", rows)
    without = judge_score(source, "alpaca_eval", items=given)["models"][0]
    held = judge_score(source, "alpaca_eval", items=given, regularisation=block)["models"][0]
    assert held["win_rate"] == without["win_rate"]
    assert held["lc_win_rate"] != without["lc_win_rate"]


def test_a_controlled_rate_says_when_it_is_not_upstreams(tmp_path: Path) -> None:
    source, given = write(tmp_path / "rows.csv", drawn(n_models=6)), items(tmp_path)
    rows = [
        {"idx": i, "x_len": math.cos(i), "pseudo_y": 0.5 - 0.4 * math.cos(i), "weight": 0.1}
        for i in range(120)
    ]
    block = write(tmp_path / "block.csv", rows)

    def labels_of(items: Path | None, regularisation: Path | None) -> list[str]:
        scored = judge_score(source, "alpaca_eval", items=items, regularisation=regularisation)
        return [text for text in scored["warnings"] if text.startswith("'lc_win_rate'")]

    assert labels_of(given, block) == []
    assert "without rows of gamed baselines. AlpacaEval 2's" in labels_of(given, None)[0]
    assert "without published difficulties. AlpacaEval 2's" in labels_of(None, block)[0]
    assert (
        "without published difficulties and rows of gamed baselines. AlpacaEval 2's"
        in labels_of(None, None)[0]
    )


def test_no_quantity_is_named_where_there_is_no_controlled_rate(tmp_path: Path) -> None:
    rows = [
        {name: value for name, value in row.items() if not name.startswith("len_")}
        for row in drawn()
    ]
    scored = judge_score(write(tmp_path / "rows.csv", rows), "alpaca_eval")
    assert scored["warnings"] == [
        "No length control: there are no columns 'len_base' and 'len_model'."
    ]


def test_wildbench_tags_come_with_the_rows_or_with_the_items(tmp_path: Path) -> None:
    kinds = ["Editing", "Planning", "Math", "Advice seeking", "Coding & Debugging"]
    scores = [6, 7, 8, 9, 10]
    rows = [
        {"model": "m", "session_id": f"s{i}", "score": score, "tags": f"{kind}; {kind};"}
        for i, (score, kind) in enumerate(zip(scores, kinds, strict=True))
    ]
    scored = judge_score(write(tmp_path / "rows.csv", rows), "wildbench")["models"]
    macro = (0.5 * 2 + 1.25 * 4 + 1 * 6 + 0.75 * 8 + 1.25 * 10) / 4.75
    want = {"model": "m", "n": 5, "score": 8.0, "adjusted": 6.0, "task_macro": macro}
    assert scored == [pytest.approx(want)]
    cut = [row | {"truncated": False, "empty": False} for row in rows]
    cut += [cut[0] | {"session_id": n, "score": 1, n: True} for n in ("truncated", "empty")]
    (whole,) = judge_score(write(tmp_path / "cut.csv", cut), "wildbench")["models"]
    # Incomplete answers count in the score, and not in the averages of tasks.
    assert (whole["n"], whole["score"], whole["task_macro"]) == (7, 6.0, pytest.approx(macro))
    tasks = [{"session_id": f"s{i}", "tags": [kind]} for i, kind in enumerate(kinds)]
    bare = [{name: row[name] for name in ("model", "session_id", "score")} for row in rows]
    given = write(tmp_path / "items.jsonl", tasks)
    source = write(tmp_path / "bare.jsonl", bare)
    assert judge_score(source, "wildbench", items=given)["models"] == scored
    assert judge_score(source, "wildbench")["models"][0]["task_macro"] is None
    with pytest.raises(DataError, match="no tags for session_id 's4'"):
        judge_score(source, "wildbench", items=write(tmp_path / "few.jsonl", tasks[:4]))
    older = [row | {"version": "v2.0522"} for row in (*rows, rows[0] | {"score": None})]
    first = judge_score(write(tmp_path / "older.csv", older), "wildbench")
    # In the first version coding weighs 1.
    assert first["models"][0]["task_macro"] == pytest.approx((4.75 * macro - 0.25 * 10) / 4.5)
    assert first["warnings"] == ["'m': 1 of 6 rows have no score from 1 to 10; they are excluded."]


def pair(winner: str | None, order: str = "both", **more: str) -> Row:
    return {"model_a": "x", "model_b": "y", "winner": winner, "order": order} | more


def test_only_the_reconciled_row_of_two_orders_counts(tmp_path: Path) -> None:
    rows = [pair("model_a", "ab"), pair("model_b", "ba"), pair("tie"), pair(None)]
    rows.append(pair("model_a", model_b="x"))
    scored = judge_score(write(tmp_path / "rows.jsonl", rows), "pairwise")
    ties = [(row["model"], row["n"], row["n_ties"]) for row in scored["models"]]
    assert ties == [("x", 1, 1), ("y", 1, 1)]
    assert scored["warnings"] == [
        "1 of 3 rows have no verdict: excluded, not ties.",
        "1 rows compare a model with itself; excluded.",
    ]


def test_judges_are_scored_apart(tmp_path: Path) -> None:
    rows = [pair("model_a", judge="one"), pair("model_b", judge="two")]
    scored = judge_score(write(tmp_path / "rows.csv", rows), "pairwise")
    won = [(r["model"], r["judge"], r["win_rate"]) for r in scored["models"]]
    assert won == [("x", "one", 100), ("y", "one", 0), ("x", "two", 0), ("y", "two", 100)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preference": "good"}, r"Row 1 .* has preference 'good': give a number"),
        ({"model": " "}, r"Row 1 .* has model ' ': give a name"),
        ({"is_switched": "maybe"}, r"has is_switched 'maybe': give true or false"),
        ({"idx": None}, r"Row 1 .* has no idx: give a name"),
    ],
)
def test_a_value_that_cannot_be_read_is_quoted_with_its_row(
    tmp_path: Path, change: Row, message: str
) -> None:
    rows = drawn(n_models=1, n=3)
    rows[0] |= change
    with pytest.raises(DataError, match=message):
        judge_score(write(tmp_path / "rows.jsonl", rows), "alpaca_eval")


def test_what_is_asked_wrongly_is_quoted(tmp_path: Path) -> None:
    source, given = write(tmp_path / "rows.csv", drawn(n_models=1, n=3)), items(tmp_path)
    asked: list[tuple[Row, str]] = [
        ({"method": "elo"}, "no method 'elo': choose one of alpaca_eval, wildbench"),
        ({"method": "checklist"}, "no column 'score'"),
        ({"method": "alpaca_eval", "compat": "v1"}, "no compat 'v1'"),
        ({"method": "alpaca_eval", "compat": "row-position"}, "name their file with --items"),
        ({"method": "wildbench", "regularisation": given}, "--regularisation is for"),
        ({"method": "pairwise", "items": given}, "does not apply to --method pairwise"),
        ({"method": "wildbench"}, "no column 'score'"),
        ({"method": "pairwise"}, "no column 'winner'"),
        ({"method": "alpaca_eval", "regularisation": given}, "no column 'x_len'"),
        ({"method": "alpaca_eval", "items": source}, "no column 'difficulty'"),
    ]
    for options, text in asked:
        with pytest.raises(DataError, match=text):
            judge_score(source, **options)
    (tmp_path / "torn.jsonl").write_text('{"model": "m"}\n{"model"')
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "empty.json").write_text("[]")
    for name, text in (
        ("torn.jsonl", "Line 2 of .* is not JSON"),
        ("list.json", "Entry 1 .* is 1"),
        ("empty.json", "no row"),
    ):
        with pytest.raises(DataError, match=text):
            judge_score(tmp_path / name, "pairwise")
    with pytest.raises(DataError, match="there is no such file"):
        judge_score(tmp_path / "none.csv", "pairwise")
    with pytest.raises(DataError, match="name a file that ends in"):
        judge_score(tmp_path / "rows.xlsx", "pairwise")


def test_items_that_contradict_each_other_or_the_rows_are_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.csv", drawn(n_models=1))
    twice = write(
        tmp_path / "twice.csv", [{"idx": 1, "difficulty": 0}, {"idx": 1, "difficulty": 1}]
    )
    with pytest.raises(DataError, match="holds idx '1' more than once"):
        judge_score(source, "alpaca_eval", items=twice)
    short = items(tmp_path, n=100)
    with pytest.raises(DataError, match="position 100, but there are 100 items"):
        judge_score(source, "alpaca_eval", items=short, compat="row-position")
    block = [{"idx": 500, "x_len": 0, "pseudo_y": 0.5, "weight": 0.1}]
    with pytest.raises(DataError, match="holds idx '500', for which there is no difficulty"):
        judge_score(source, "alpaca_eval", regularisation=write(tmp_path / "b.csv", block))
    block = [{"idx": 1, "x_len": 0, "pseudo_y": 1.5, "weight": 0.1}]
    with pytest.raises(DataError, match=r"pseudo_y 1\.5: give a number from 0"):
        judge_score(source, "alpaca_eval", regularisation=write(tmp_path / "b.csv", block))
    with pytest.raises(DataError, match="has winner 'both': give one of model_a"):
        judge_score(write(tmp_path / "p.csv", [pair("both")]), "pairwise")
    cooking = write(tmp_path / "w.csv", [{"model": "m", "score": 5, "tags": "Cooking"}])
    with pytest.raises(DataError, match="no task tag 'Cooking'"):
        judge_score(cooking, "wildbench")


def labelled(**changes: Any) -> list[Row]:
    """A judge that is right, wrong, or of two minds, on four cases."""
    both = [("1", "1", "1"), ("2", "1", "1"), ("2", "1", "2"), ("1", "1", None)]
    rows = [dict(zip(("label", "w_ab", "w_ba"), one, strict=True)) for one in both]
    return [{"llm": "m", "strategy": "s", **row, **changes} for row in rows]


def test_a_judge_is_scored_in_both_orders_against_labels(tmp_path: Path) -> None:
    other = labelled(strategy="t", w_ab="1", w_ba="1")
    scored = judge_score(write(tmp_path / "rows.jsonl", labelled() + other), "llmbar")
    first, second = scored["models"]
    assert first == {
        "model": "m",
        "strategy": "s",
        "n": 4,
        "n_unread": 1,
        "n_tied": 0,
        **dict.fromkeys(("correct_as_is", "correct_swapped", "correct_mean", "equal"), 50.0),
        "lower": pytest.approx(15.0, abs=5),
        "upper": pytest.approx(85.0, abs=5),
        "correct_both": 25.0,
        "kappa_agreement": 0.0,
        "both_lower": pytest.approx(4.56, abs=0.01),
        "both_upper": pytest.approx(69.94, abs=0.01),
    }
    assert (second["strategy"], second["equal"], second["kappa_agreement"]) == ("t", 100.0, None)
    assert "they are scored separately" in scored["warnings"][0]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("w_ab", "3", "Row 1 of .* has w_ab '3': give 1, 2, tie, or None where it was not read"),
        ("label", None, "Row 1 of .* has no label: give 1 or 2"),
    ],
)
def test_a_verdict_on_labels_that_is_none_is_quoted(
    tmp_path: Path, column: str, value: str | None, words: str
) -> None:
    rows = labelled()
    rows[0][column] = value
    with pytest.raises(DataError, match=words):
        judge_score(write(tmp_path / "rows.jsonl", rows), "llmbar")


@pytest.mark.published
def test_verdicts_on_llmbar_have_their_published_figures(published_data: Path) -> None:
    folder = published_data / "judge"
    models = judge_score(folder / "llmbar_swap.parquet", "llmbar")["models"]
    ours = {(one["subset"], one["model"], one["strategy"]): one for one in models}
    published = duckdb.read_csv(str(folder / "llmbar_published.csv"))
    assert len(ours) == len(published) == 168
    for row in published.fetchall():
        named = dict(zip(published.columns, row, strict=True))
        one = ours[named["subset"], named["llm"], named["strategy"]]
        assert one["n"] == named["n"]
        for mine, theirs in (
            ("correct_as_is", "correct_False"),
            ("correct_both", "correct_both"),
            ("equal", "equal"),
            ("kappa_agreement", "kappa_agreement"),
        ):
            assert one[mine] == pytest.approx(named[theirs], abs=1e-9), (mine, named)


@pytest.mark.parametrize("voter", ["", "somebody"])
def test_pairwise_scores_never_pool_judges_and_people(voter: str, tmp_path: Path) -> None:
    sides: dict[str, str | None] = {"model_a": "x", "model_b": "y"}
    winners = {"owl": "model_a", "elk": "model_b", "": "model_b"}
    rows = [
        sides
        | {"prompt_id": f"p{n}", "winner": winner, "judge": judge}
        | ({"voter": voter or (None if judge else f"v{n}")})
        for judge, winner in winners.items()
        for n in range(4)
    ]
    result = judge_score(write(tmp_path / "all.jsonl", rows), "pairwise")
    won = {(row["judge"], row["model"]): row["win_rate"] for row in result["models"]}
    assert won == {
        ("owl", "x"): 100,
        ("owl", "y"): 0,
        ("elk", "x"): 0,
        ("elk", "y"): 100,
        ("people", "x"): 0,
        ("people", "y"): 100,
    }
    assert any("3 values of 'judge'" in text for text in result["warnings"])


def test_rewards_have_the_macro_over_tasks_where_every_category_has_one(tmp_path: Path) -> None:
    tags = ["Math", "Coding & Debugging", "Planning", "Editing", "Advice seeking"]
    level = [1.0, 0.5, 0.0, -0.5, -1.0]
    winners = {1.0: 1.0, 0.5: 0.75, 0.0: 0.5, -0.5: 0.25, -1.0: 0.0}
    rows = [
        {
            "battle_id": f"b{n}",
            "prompt_id": f"p{n}",
            "model_a": "x",
            "model_b": "y",
            "order": "both",
            "winner": "tie",
            "judge": "owl",
            "method": "wildbench_reward",
            "status": "read",
            "preference_ab": winners[one],
            "preference_ba": winners[one],
            "tags": tag,
        }
        for n, (tag, one) in enumerate(zip(tags, level, strict=True))
    ]
    (row,) = judge_score(write(tmp_path / "r.jsonl", rows), "wildbench_reward")["models"]
    assert row["score"] == 0
    # Five prompts of variance 5/8; Wilson's interval of 8 cases with t of 4 df, from -1 to 1.
    assert (row["standard_error"], row["lower"], row["upper"]) == pytest.approx(
        (math.sqrt(1 / 8), -0.70052, 0.70052), abs=1e-5
    )
    # By WildBench's weights: math 1, coding 1.25, planning 1.25, creative .5, advice .75.
    macro = (1.0 * 1 + 0.5 * 1.25 + 0.0 * 1.25 - 0.5 * 0.5 - 1.0 * 0.75) / 4.75
    assert row["task_macro"] == pytest.approx(macro)
    (short,) = judge_score(write(tmp_path / "s.jsonl", rows[1:]), "wildbench_reward")["models"]
    assert short["task_macro"] is None
    for level_of_z, mix in ((1.0, 0.5), (None, None)):  # a second baseline
        more = rows[0] | {"battle_id": "b9", "model_b": "z"}
        more |= dict.fromkeys(("preference_ab", "preference_ba"), level_of_z)
        models = judge_score(write(tmp_path / "z.jsonl", [*rows, more]), "wildbench_reward")
        assert [row["mix"] for row in models["models"]] == [mix, mix]
    rows[0]["preference_ba"] = None
    (half,) = judge_score(write(tmp_path / "h.jsonl", rows), "wildbench_reward")["models"]
    assert (half["n"], half["n_unread"]) == (9, 1)


def test_instructions_are_scored_by_prompt_and_each_by_itself(tmp_path: Path) -> None:
    checked: list[list[tuple[bool | None, bool | None]]] = [
        [(True, True), (False, True)],
        [(True, True)],
        [(None, None), (True, True)],
        [(False, False), (True, True)],
    ]
    names = ("id", "strict", "loose")
    items = [[dict(zip(names, ("x:y", *one), strict=True)) for one in each] for each in checked]
    rows = [
        {"model": "m", "prompt_id": f"p{n}", "score": 0, "method": "ifeval", "status": "read"}
        | {"detail": json.dumps({"items": each})}
        for n, each in enumerate(items)
    ]
    # One prompt of three, with Wilson's interval; another has an unparsed instruction.
    expected = {"model": "m", "n": 3, "n_unread": 1, "score": 100 / 3, "lower": 6.149}
    expected |= {"upper": 79.234, "prompt_loose": 200 / 3}
    expected |= {"instruction_strict": 400 / 6, "instruction_loose": 500 / 6}
    (row,) = judge_score(write(tmp_path / "r.jsonl", rows))["models"]
    assert row == pytest.approx(expected, abs=0.001)


def test_verdicts_of_two_judges_on_the_same_cases_are_cases_of_either(tmp_path: Path) -> None:
    rows: list[Row] = [
        {
            "battle_id": f"b{n}",
            "prompt_id": f"p{n}",
            "model_a": "x",
            "model_b": "y",
            "order": order,
            "winner": winner,
            "preference": float(winner == "model_a"),
            "judge": judge,
            "method": "arena_hard",
            "status": "read",
        }
        for judge, winner in (("owl", "model_a"), ("elk", "model_b"))
        for n in range(4)
        for order in ("ab", "ba")
    ]
    for asked in (rows, rows[::2]):  # in both orders, and in one
        scored = judge_score(write(tmp_path / "r.jsonl", asked), "arena_hard")["models"]
        assert {(row.get("judge"), row["n"]) for row in scored} == {("owl", 4), ("elk", 4)}
    turned = {"model_a": "model_b", "model_b": "model_a"}
    first = [
        row | {"winner": turned[row["winner"]], "preference": 1 - row["preference"]}
        for row in rows
        if row["battle_id"] == "b0"
    ]
    mixed = [*first, *(row for row in rows[::2] if row["battle_id"] != "b0")]
    scored = judge_score(write(tmp_path / "r.jsonl", mixed), "arena_hard")["models"]
    # A case asked in one order is one game: two games for b0, and one for each of the others.
    assert {row["judge"]: row["score"] for row in scored} == {"owl": 60, "elk": 40}
