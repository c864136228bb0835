"""`arena bench`, as it is typed: from the files of a benchmark to a leaderboard."""

import json
import math
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlmodel import select

from arena.commands.bench import _BenchOptions, _prepared
from arena.commands.judge_work import JudgeOptions
from arena.store.store import Store
from arena.store.tables import JudgementClaimRow
from judge.bench import leaderboard, on_order, write_results
from judge.scoring.logistic import bounded
from judge.tables.verdicts import kinds_of
from tests.arena.benches import (
    AGAIN,
    BASELINE,
    CALL_USD,
    PROMPTS,
    RECORDED,
    ROSTER,
    SECOND,
    UPSTREAM,
    answered,
    asked,
    bench_server,
    in_journal,
    judged,
    said_by_slate,
    write,
)
from tests.command import Command, Ran, examples, refused, unexplained
from tests.faulty_server import Behaviour, FaultyServer, last_message
from tests.judging_server import fenced
from tests.process import Process, until
from tests.sqlite import new_sqlite


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with bench_server() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: FaultyServer) -> Path:
    """A folder with a database that nobody has used, a roster and a rubric."""
    new_sqlite(tmp_path)
    (tmp_path / "roster.toml").write_text(ROSTER.format(url=server.url), encoding="utf-8")
    (tmp_path / "rubric.txt").write_text("10 is long, 1 is short.", encoding="utf-8")
    return tmp_path


def bench(command: Command, *words: str) -> dict[str, Any]:
    result = command("bench", "bench.toml", *words, "--format", "json")
    assert (result.returncode, lines_of(result.stderr)) == (0, [])
    report: dict[str, Any] = json.loads(result.stdout)
    assert unexplained("Benchmarks", report) == []
    return report


def refused_at_last(result: Ran, *words: str) -> None:
    """Check that a command ended in one clear line, after those that say how files were read."""
    others = "".join(f"{line}\n" for line in lines_of(result.stderr))
    refused(subprocess.CompletedProcess(result.args, result.returncode, "", others), *words)


def lines_of(errors: str) -> list[str]:
    """Give what was said besides how files were read."""
    return [line for line in errors.splitlines() if " is read as " not in line]


def scores(command: Command, file: str, *words: str) -> dict[str, Any]:
    result = command("judge", "score", file, *words, "--format", "json")
    assert result.returncode == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def value(row: dict[str, Any]) -> Any:
    return row["win_rate"] if "win_rate" in row else row["score"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("method", UPSTREAM)
def test_one_command_makes_a_leaderboard_of_three_recorded_models_and_one_that_answers(
    method: str, command: Command, folder: Path, server: FaultyServer
) -> None:
    upstream = UPSTREAM[method]
    upstream.written(folder, method)
    report = bench(command)
    models = report["models"]
    assert sorted(row["model"] for row in models) == [*RECORDED, "slate"]
    assert [value(row) for row in models] == sorted(map(value, models), reverse=True)
    assert (report["method"], report["judge"]) == (method, None if method == "ifeval" else "judge")
    assert (report["scored_as"], report["failed"]) == (upstream.scored_as, 0)
    assert {row["n"] for row in models} <= {5, 10}
    assert all(row["lower"] <= value(row) <= row["upper"] for row in models if row["lower"])
    n_answers, n_judged = 5 * upstream.turns, asked(server)["judge"]
    assert asked(server)["slate"] == n_answers
    usd = n_judged * CALL_USD["judge"] + n_answers * CALL_USD["slate"]
    assert (report["cost"], report["spent_usd"]) == pytest.approx((usd, usd))
    assert json.loads((folder / "results" / "leaderboard.json").read_text("utf-8")) == report
    costs = [row["cost"] or 0.0 for row in models]
    assert sum(costs) == pytest.approx(report["cost"])
    answers_usd = {row["model"]: row["answer_cost"] for row in models}
    of_slate = pytest.approx(n_answers * CALL_USD["slate"])
    assert answers_usd == {**dict.fromkeys(RECORDED), "slate": of_slate}

    scored = scores(command, "results/results.parquet")
    assert scored["method"] == upstream.scored_as
    assert scored == {**scores(command, "results/results.csv"), "warnings": scored["warnings"]}
    ours = {row["model"]: row for row in scored["models"]}
    assert {row["model"]: value(row) for row in models}.items() <= {
        name: value(row) for name, row in ours.items()
    }.items()
    if upstream.verdict is not None:
        write(folder / "theirs.jsonl", upstream.verdicts())
        theirs = scores(command, "theirs.jsonl", "--method", upstream.scored_as)["models"]
        for row in theirs:
            same = [
                name for name in ("win_rate", "lc_win_rate", "score", "turn_2", "n") if name in row
            ]
            own = ours[row["model"]]
            assert {name: own[name] for name in same} == pytest.approx(
                {name: row[name] for name in same}, abs=1e-9
            )

    before = len(server.requests)
    again = bench(command)
    assert len(server.requests) == before
    assert again == report | {"n_asked": 0, "n_recalled": before, "spent_usd": again["spent_usd"]}


def test_results_are_a_case_a_row_with_all_that_is_known_of_it(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    def fickle(body: Any) -> Behaviour:
        text, odd = judged(body).text, re.search(r"Question [135]", last_message(body))
        return Behaviour(text=text.translate({65: "B", 66: "A"}) if odd else text)

    server.behaviours["judge"] = fickle
    UPSTREAM["pairwise"].written(folder, "pairwise")
    bench(command)
    rows = results(folder)
    assert len(rows) == 20
    row = next(one for one in rows if (one["model_a"], one["prompt_id"]) == ("slate", "2"))
    text = said_by_slate(PROMPTS[1])
    assert (row["model_b"], row["order"], row["status"]) == (BASELINE, "both", "read")
    assert (row["length_a"], row["headers_a"], row["lists_a"]) == (
        len(text),
        text.count("\n# Well"),
        text.count("- so"),
    )
    assert row["winner"] == row["winner_ab"] == row["winner_ba"]
    assert row["words_ab"] != row["words_ba"]
    assert row["words_ab"].startswith("Answer A has")
    assert (row["tokens_in"], row["tokens_out"]) == (14, 22)
    assert row["cost"] == pytest.approx(2 * CALL_USD["judge"])
    rated = command("rate", "results/results.parquet", "--cluster", "prompt", "--ridge", "1")
    assert rated.returncode == 0, rated.stderr
    styled = ("--style", "length", "--ridge", "1", "--format", "json", "--interval", "none")
    of_length = command("rate", "results/results.csv", *styled)
    assert of_length.returncode == 0, of_length.stderr
    assert "style:length" in json.loads(of_length.stdout)["parameters"]


def test_answers_that_were_given_can_be_given_again_as_recorded(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    UPSTREAM["pairwise"].written(folder, "pairwise")
    report = bench(command)
    (folder / "arena.db").unlink()
    new_sqlite(folder)
    n_before = asked(server)["slate"]
    lines = (folder / "results" / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    second = json.loads(lines[1])
    assert second.pop("latency") > 0
    assert second == {
        "id": "2",
        "prompt": PROMPTS[1],
        "model": "slate",
        "response": said_by_slate(PROMPTS[1]),
        "finish_reason": "stop",
        "tokens_in": 7,
        "tokens_out": 11,
        "cost": pytest.approx(CALL_USD["slate"]),
    }
    answers = [f"{name}.jsonl" for name in (*RECORDED, BASELINE)] + ["results/answers.jsonl"]
    words = [word for file in answers for word in ("--answers", file)]
    again = bench(command, *words, "--out", "again")
    assert asked(server)["slate"] == n_before
    assert [value(row) for row in again["models"]] == [value(row) for row in report["models"]]


def test_an_answer_is_shared_by_all_benches_and_not_by_another_decoding(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    UPSTREAM["pairwise"].written(folder, "pairwise")
    bench(command)
    UPSTREAM["rubric"].written(folder, "rubric")
    bench(command, "--seed", "another")
    assert asked(server)["slate"] == 5
    roster = (folder / "roster.toml").read_text(encoding="utf-8")
    (folder / "roster.toml").write_text(roster.replace("0.7", "0.8"), encoding="utf-8")
    bench(command)
    assert asked(server)["slate"] == 10
    assert {one.body["temperature"] for one in server.requests if one.model == "slate"} == {
        0.7,
        0.8,
    }


AT_ONCE = 4


def test_a_bench_that_is_killed_twice_goes_on_and_pays_nothing_twice(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    items = [{"id": n, "prompt": f"Say something of {n}."} for n in range(30)]
    base = [{"id": n, "response": "Something short.", "model": "base"} for n in range(30)]
    write(folder / "items.jsonl", items)
    write(folder / "base.jsonl", base)
    named = ("--items", "items.jsonl", "--answers", "base.jsonl", "--models", "slate")
    sides = (*named, "--baseline", "base", "--judge", "judge", "--roster", "roster.toml")
    words = ("bench", "pairwise", *sides, "--out", "out", "--concurrency", str(AT_ONCE))
    kill(words, folder, server, "slate", n=12)
    kill(words, folder, server, "judge", n=20)
    known, n_before = in_journal(folder), len(server.requests)
    result = command(*words)
    assert (result.returncode, lines_of(result.stderr)) == (0, [])
    again = [last_message(one.body) for one in server.requests[n_before:]]
    assert len(again) == len({*again}) == 30 + 60 - len(known)
    assert not known & {*again}
    lost = len(server.requests) - 90
    assert lost <= 2 * 2 * AT_ONCE, "only what was under way at a kill is paid for again"
    assert claimed(folder) == 0


def kill(words: tuple[str, ...], folder: Path, server: FaultyServer, model: str, n: int) -> None:
    """Kill a bench after so many answers of a model, with questions under way."""
    with Process(words, folder) as process:
        until(lambda: asked(server)[model] >= n)
        server.behaviours[model] = Behaviour(silent=True)
        until(lambda: claimed(folder) > 0 and len(in_journal(folder)) >= n - 2 * AT_ONCE)
        process.kill()
    server.behaviours |= {"judge": judged, "slate": answered}


def claimed(folder: Path) -> int:
    with closing(Store(f"sqlite:///{folder}/arena.db")) as store, store.reading() as session:
        return len(session.exec(select(JudgementClaimRow)).all())


def test_a_dry_run_counts_answers_and_verdicts_apart_and_asks_nothing(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    UPSTREAM["arena_hard"].written(folder, "arena_hard")
    words = ("bench", "bench.toml", "--dry-run", "--format", "json")
    before = json.loads(command(*words).stdout)
    assert server.requests == []
    assert (before["answers"]["slate"]["n_calls"], before["judging"]["n_calls"]) == (5, 40)
    assert before["n_calls"] == 45
    costs = [before["answers"]["slate"]["cost_usd"], before["judging"]["cost_usd"]]
    assert before["cost_usd"] == pytest.approx(sum(costs))
    assert before["recorded"] == {**dict.fromkeys(RECORDED, 5), "slate": 0, BASELINE: 5}
    bench(command)
    assert json.loads(command(*words).stdout)["n_calls"] == 0
    shown = command(*words[:3]).stdout
    assert "Answers of slate: 0 calls" in shown
    assert "basalt: 5 of 5 answers are recorded." in shown


def test_a_budget_stops_answers_and_verdicts_together_and_the_same_command_goes_on(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    UPSTREAM["pairwise"].written(folder, "pairwise")
    words = ("bench", "bench.toml", "--format", "json", "--concurrency", "1")
    for budget, most in (("0.000001", 0), ("0.0017", 44)):
        stopped = command(*words, "--budget", budget)
        assert stopped.returncode == 1
        assert "arena: Stopped: " in stopped.stderr
        assert "Run the same command again" in stopped.stderr
        report = json.loads(stopped.stdout)
        assert (report["models"], report["failed"]) == ([], None)
        assert len(server.requests) <= most
        assert (report["spent_usd"] or 0.0) <= float(budget)
    assert not (folder / "results" / "leaderboard.json").exists()
    assert value(bench(command)["models"][0]) is not None
    assert len(server.requests) == 5 + 40


SWAPPED = ("alpaca_eval", "arena_hard", "wildbench_reward", "pairwise")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", SWAPPED)
def test_where_a_share_is_asked_in_both_orders_every_pair_counts(
    method: str, command: Command, folder: Path, server: FaultyServer
) -> None:
    UPSTREAM[method].written(folder, method)
    n_recorded = len(server.requests)
    report = bench(command, "--swap-share", "0.4", "--seed", "a seed of the test")
    rows = results(folder)
    both = [row for row in rows if row["order"] == "both"]
    assert len(rows) == 20
    assert 2 <= len(both) <= 14
    assert asked(server)["judge"] == 20 + len(both)
    assert len(server.requests) - n_recorded == 20 + len(both) + 5
    for row in rows:
        orders = [name for name in ("ab", "ba") if row[f"status_{name}"] is not None]
        assert orders == ([row["order"]] if row["order"] != "both" else ["ab", "ba"])
        shown = [row[f"preference_{name}"] for name in orders]
        assert row["preference"] == pytest.approx(sum(shown) / len(shown))
    # A rewards a row is an order, and a model of Arena-Hard has a game for each.
    n = {
        one: sum(1 + (row["order"] == "both") for row in rows if row["model_a"] == one)
        for one in (*RECORDED, "slate")
    }
    for row in report["models"]:
        assert row["failed"] == 0
        assert row["n"] == (n[row["model"]] if method == "wildbench_reward" else 5)
    # This judge goes by length alone, whatever stands first.
    assert report["first_place"]["effect"] == pytest.approx(0, abs=1e-9)
    assert report["first_place"]["n"] == len(both)
    assert report["consistency"]["rate"] == 1
    if method in ("alpaca_eval", "pairwise"):
        whole = bench(command, "--swap-share", "1", "--seed", "a seed of the test")
        assert [value(row) for row in whole["models"]] == pytest.approx(
            [value(row) for row in report["models"]]
        )


def test_what_standing_first_is_worth_comes_with_an_interval_over_prompts(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    def leaning(body: Any) -> Behaviour:
        leans = re.search(r"Question [12]", last_message(body))
        return Behaviour(text="I take it. [[A]]") if leans else judged(body)

    server.behaviours["judge"] = leaning
    UPSTREAM["pairwise"].written(folder, "pairwise")
    report = bench(command)
    # Half a win in two of five prompts, and nothing in the others.
    place = report["first_place"]
    assert (place["effect"], place["n"]) == (pytest.approx(0.5 * 2 / 5), 20)
    assert place["standard_error"] == pytest.approx(0.5 * math.sqrt(0.4 * 0.6 / 4))
    ends = bounded(place["effect"], place["standard_error"], len(PROMPTS), -0.5, 0.5)
    assert (place["lower"], place["upper"]) == (ends["lower"], ends["upper"])
    assert report["consistency"] | {"rate": 0.6} == {
        "n_consistent": 12,
        "n_first": 8,
        "n_second": 0,
        "n_undecided": 0,
        "rate": 0.6,
        "first_rate": 1.0,
    }
    assert "Standing first" not in command("bench", "bench.toml").stdout
    shown = " ".join(command("bench", "bench.toml", "--swap-share", "0.6").stdout.split())
    sentence = re.search(
        r"Effect of being shown first: (\S+) \((\S+) to (\S+)\) wins, from", shown
    )
    assert sentence is not None
    effect, lower, upper = map(float, sentence.groups())
    assert lower <= effect <= upper
    none = " ".join(command("bench", "bench.toml", "--swap-share", "0").stdout.split())
    assert "The position effect is not estimated" in none


def test_pairs_that_were_settled_or_asked_once_say_nothing_of_the_place() -> None:
    def pair(n: int, ab: float, ba: float, **more: str) -> dict[str, Any]:
        sides = {"winner": "tie", "inconsistent": None, "preference_ab": ab, "preference_ba": ba}
        status = {"status_ab": "read", "status_ba": "read", "order": "both"}
        return {"battle_id": f"b{n}", "prompt_id": f"p{n}"} | sides | status | more

    settled = {"status_ab": "settled", "status_ba": "settled"}
    rows = [pair(0, 1.0, 0.0), pair(1, 0.5, 0.5), pair(2, 0.5, 0.5, **settled)]
    place = on_order([*rows, pair(3, 1.0, 0.0, order="ab")])["first_place"]
    assert (place["effect"], place["n"]) == (0.25, 2)


def test_marks_of_wildbench_have_an_interval_on_their_scale_and_no_mark_comes_last(
    tmp_path: Path,
) -> None:
    rows = [
        {"battle_id": f"b{n}", "prompt_id": f"p{n}", "session_id": f"s{n}", "model": model}
        | {"judge": "owl", "method": "wildbench_score", "score": score, "cost": 0.5}
        | {"status": "unparsed" if score is None else "read", "fallback_for": None}
        for model, scores in (("a", (None,)), ("x", (10.0, 10.0, 7.0, None)))
        for n, score in enumerate(scores)
    ]
    path = write_results(rows, kinds_of(rows[0]), tmp_path)
    assert "fallback_for" not in (tmp_path / "results.csv").read_text(), "of no row here"
    board = leaderboard(rows, path, ["a", "x"], {}, {"a": 0, "x": 2})
    first, last = board["models"]
    assert (last["model"], last["score"], last["lower"], last["n"]) == ("a", None, None, 0)
    ends = bounded(9.0, 1.0, 3, 1.0, 10.0)  # the marks have a standard deviation of root 3
    assert (first["model"], first["score"], first["n"]) == ("x", 9.0, 3)
    assert (first["lower"], first["upper"]) == pytest.approx((ends["lower"], ends["upper"]))
    assert (first["failed"], first["judge_cost"], first["answer_cost"]) == (2 + 1, 2.0, None)
    assert (board["failed"], board["cost"]) == (4, 2.5)


def test_a_baseline_is_asked_as_others_are_and_each_side_has_its_own_turns(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    asks = {"1": [PROMPTS[0], AGAIN], "2": ["One turn?"]}
    texts = {"1": ["First.", SECOND], "2": ["Only."]}
    write(folder / "question.jsonl", [{"question_id": n, "turns": asks[n]} for n in asks])
    rows = [
        {"question_id": n, "model_id": "flint", "choices": [{"index": 0, "turns": texts[n]}]}
        for n in asks
    ]
    write(folder / "flint.jsonl", rows)
    files = ("--items", "question.jsonl", "--answers", "flint.jsonl")
    sides = ("--models", "flint", "--baseline", "slate", "--judge", "judge")
    words = ("bench", "mt_bench_pairs", *files, *sides, "--roster", "roster.toml", "--out")
    dry = json.loads(command(*words, "results", "--dry-run", "--format", "json").stdout)
    assert (dry["answers"]["slate"]["n_calls"], dry["judging"]["n_calls"]) == (3, 6)
    done = command(*words, "results", "--format", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["cost"] == pytest.approx(6 * CALL_USD["judge"] + 3 * CALL_USD["slate"])
    assert [(row["prompt_id"], row["turn"]) for row in results(folder)] == [
        ("1", 1),
        ("1", 2),
        ("2", None),
    ]
    block = re.compile(r"\[begin ([a-z ]+) [0-9a-f]{16}\]\n(.*?)\n\[end", re.DOTALL)
    blocks = [
        block.findall(last_message(one.body)) for one in server.requests if one.model == "judge"
    ]
    first, second = asks["1"]
    talks = [
        [("user", first), ("earlier answer", one), ("user", second), ("answer", other)]
        for one, other in (("First.", SECOND), (said_by_slate(first), said_by_slate(second)))
    ]
    assert [*talks[0], *talks[1]] in blocks
    assert [*talks[1], *talks[0]] in blocks


def test_a_share_of_pairs_to_swap_is_a_share_and_of_pairs(command: Command, folder: Path) -> None:
    UPSTREAM["pairwise"].written(folder, "pairwise")
    wrong = command("bench", "bench.toml", "--swap-share", "1.5")
    refused_at_last(wrong, "between 0 and 1, not at 1.5")
    UPSTREAM["rubric"].written(folder, "rubric")
    refused_at_last(
        command("bench", "bench.toml", "--swap-share", "0.5"), "--swap-share 0.5", "pairs"
    )


def results(folder: Path) -> list[dict[str, Any]]:
    table = duckdb.read_parquet(f"{folder}/results/results.parquet")
    return [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]


def test_an_answer_that_is_refused_and_one_that_is_missing_are_failures_and_no_numbers(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    def sulks(body: Any) -> Behaviour:
        refuses = last_message(body) == PROMPTS[0]
        return Behaviour(text="", finish_reason="content_filter") if refuses else answered(body)

    server.behaviours["slate"] = sulks
    UPSTREAM["pairwise"].written(folder, "pairwise")
    lines = (folder / "flint.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "flint.jsonl").write_text("".join(lines[:3]), encoding="utf-8")
    report = bench(command)
    rows = {row["model"]: row for row in report["models"]}
    assert (rows["slate"]["n"], rows["slate"]["failed"]) == (4, 1)
    assert (rows["flint"]["n"], rows["flint"]["failed"]) == (3, 2)
    assert report["failed"] == 3
    assert report["failures"] == {"refusal": 1}
    assert report["missing"] == {"flint": 2, "slate": 1}
    shown = command("bench", "bench.toml").stdout
    assert "'flint': 2 items without an answer" in " ".join(shown.split())


def test_verdicts_that_cannot_be_read_are_failures(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    def puzzled(body: Any) -> Behaviour:
        hard = "flint says" in last_message(body)
        return Behaviour(text="Hard to say.") if hard else judged(body)

    server.behaviours["judge"] = puzzled
    UPSTREAM["pairwise"].written(folder, "pairwise")
    report = bench(command)
    assert (report["failed"], report["failures"]) == (5, {"unparsed": 5})
    last = report["models"][-1]
    assert (last["model"], value(last), last["n"], last["failed"]) == ("flint", None, 0, 5)


def test_the_examples_run(command: Command, folder: Path) -> None:
    UPSTREAM["pairwise"].written(folder, "pairwise")
    toml = (folder / "bench.toml").read_text(encoding="utf-8")
    pocket = toml.replace('"judge"', '"pocket-judge"').replace(', "slate"', "")
    (folder / "bench.toml").write_text(pocket.replace('roster = "roster.toml"\n', ""), "utf-8")
    whole, dry = (command(*words) for words in examples("bench"))
    assert (whole.returncode, lines_of(whole.stderr)) == (0, [])
    assert (dry.returncode, lines_of(dry.stderr)) == (0, [])
    assert "of pocket-retrieval: 5 calls" in dry.stdout


@pytest.mark.parametrize(
    ("key", "wrong", "words"),
    [
        ("budget", '"ten"', ["'budget'", "a number", "'ten'"]),
        ("concurrency", "2.5", ["'concurrency'", "2.5"]),
        ("models", "[1, 2]", ["'models'", "[1, 2]"]),
        ("models", '"nobody"', ["no model 'nobody'"]),
        ("judge", '"nobody"', ["--judge", "no model 'nobody'"]),
        ("baseline", '"nobody"', ["--baseline", "no model 'nobody'"]),
        ("items", '"nothing.jsonl"', ["nothing.jsonl"]),
        ("answers", '["nothing.jsonl"]', ["nothing.jsonl"]),
        ("answers", '["roster.toml"]', ["roster.toml"]),
        ("colour", '"red"', ["'colour'", "'red'"]),
        ("method", '"elo"', ["'elo'"]),
        ("method", "3", ["'method'", "3"]),
        ("scale", '"1-5"', ["A scale is for methods"]),
        ("length_margin", "5", ["--length-margin"]),
        ("items", '"turns.jsonl"', ["'1'", "2 turns", "mt_bench"]),
        ("max_tokens", "true", ["'max_tokens'", "True"]),
        ("references", '"turns.jsonl"', ["such as mt_bench, not for 'pairwise'"]),
        ("out", '"roster.toml"', ["roster.toml"]),
    ],
)
def test_what_a_bench_s_file_cannot_say_is_quoted(
    key: str, wrong: str, words: list[str], command: Command, folder: Path
) -> None:
    UPSTREAM["pairwise"].written(folder, "pairwise")
    lines = (folder / "bench.toml").read_text(encoding="utf-8").splitlines()
    others = [line for line in lines if not line.startswith(f"{key} =")]
    write(folder / "turns.jsonl", [{"question_id": 1, "turns": ["a?", "b?"]}])
    (folder / "bench.toml").write_text("\n".join([*others, f"{key} = {wrong}"]), "utf-8")
    refused_at_last(command("bench", "bench.toml"), *words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pairwise", "--items"),
        ("pairwise --items items.jsonl", "--models"),
        ("pairwise --items items.jsonl --models slate", "--judge"),
        ("pairwise --items items.jsonl --models slate --judge judge", "--baseline"),
        ("rubric --items items.jsonl --models slate --judge judge", "rubric"),
        ("ifeval --items items.jsonl --models slate --judge judge", "--judge judge"),
        ("ifeval --items items.jsonl --models slate --baseline x", "--baseline 'x'"),
        ("nothing.toml", "nothing.toml"),
    ],
)
def test_what_is_missing_on_the_command_line_is_named(
    words: str, expected: str, command: Command, folder: Path
) -> None:
    write(folder / "items.jsonl", [{"prompt": "1?"}])
    refused_at_last(
        command("bench", *words.split(), "--roster", "roster.toml", "--dry-run"), expected
    )


def test_a_budget_needs_the_price_of_everybody_who_is_asked(
    command: Command, folder: Path
) -> None:
    UPSTREAM["pairwise"].written(folder, "pairwise")
    roster = (folder / "roster.toml").read_text(encoding="utf-8")
    free = "".join(line for line in roster.splitlines(keepends=True) if "input = 3" not in line)
    (folder / "roster.toml").write_text(free, encoding="utf-8")
    refused_at_last(command("bench", "bench.toml", "--budget", "1"), "'slate' has no price")
    assert command("bench", "bench.toml").returncode == 0


def test_a_bench_has_the_limits_and_the_seed_that_are_given(folder: Path) -> None:
    UPSTREAM["pairwise"].written(folder, "pairwise")
    paths: dict[str, Any] = {
        "items": f"{folder}/items.jsonl",
        "answers": [f"{folder}/{BASELINE}.jsonl"],
    }
    limits: dict[str, Any] = {"judge": "judge", "budget": 2.5, "concurrency": 3}
    limits |= {"requests_per_minute": 60, "tokens_per_minute": 9e6}
    limits["roster"] = folder / "roster.toml"
    more: dict[str, Any] = {"seed": "a seed", "swap_share": 0.4, "fallback_judge": "owl"}
    typed = _BenchOptions(models=("slate",), baseline=BASELINE, **paths, **limits, **more)
    made = _prepared("pairwise", replace(typed, max_tokens=50))
    assert made.options == JudgeOptions(**limits)
    assert {name: getattr(made, name) for name in more} == more
    slate, by_default = made.asked["slate"], replace(made, max_tokens=None)
    own = replace(slate, decoding={"max_tokens": 9})
    asked_for = (made.parameters(own), by_default.parameters(own), by_default.parameters(slate))
    assert [one.max_tokens for one in asked_for] == [50, 9, 4096]
    assert _prepared("wildbench_reward", replace(typed, length_margin=7)).margin == 7


BEGINNING = 200
"""Characters by which an answer is known; three answers begin as the baseline's does."""


def replayed(preferences: dict[str, float]) -> Callable[[Any], Behaviour]:
    """Answer as was recorded how far each answer is preferred, in either order."""

    def chosen(body: Any) -> Behaviour:
        first, second = (text.strip()[:BEGINNING] for text in fenced(last_message(body)))
        share = preferences[first] if first in preferences else 1 - preferences[second]
        top = {"m": math.log(max(share, 1e-12)), "M": math.log(max(1 - share, 1e-12))}
        text = max(top, key=lambda label: top[label])
        return Behaviour(text=text, finish_reason="length", logprobs=((text, top[text], top),))

    return chosen


@pytest.mark.slow
@pytest.mark.published
def test_with_published_difficulties_a_bench_reaches_the_published_length_controlled_rate(
    command: Command, folder: Path, server: FaultyServer, published_data: Path
) -> None:
    model = "OpenHermes-2.5-Mistral-7B"
    outputs, scores_of = published_data / "outputs", published_data / "judge"
    own = json.loads((outputs / f"{model}.json").read_text(encoding="utf-8"))
    recorded = duckdb.read_parquet(str(scores_of / "alpacaeval_annotations.parquet")).filter(
        f"model = '{model}'"
    )
    rows = recorded.project("idx, preference").fetchall()
    preferences = {
        own[idx]["output"].strip()[:BEGINNING]: preference - 1 for idx, preference in rows
    }
    server.behaviours["judge"] = replayed(preferences)
    sides = ("--items", str(outputs / "gpt4_1106_preview.json"), "--models", model)
    words = ("bench", "alpaca_eval", *sides, "--answers", str(outputs / f"{model}.json"))
    judge = ("--judge", "judge", "--roster", "roster.toml", "--out", "out", "--format", "json")
    control = (
        "--difficulties", str(scores_of / "alpacaeval_items.csv"),
        "--regularisation", str(scores_of / "alpacaeval_gamed_block.csv.gz"),
    )  # fmt: skip
    result = command(*words, *judge, *control)
    assert (result.returncode, lines_of(result.stderr)) == (0, [])
    (row,) = json.loads(result.stdout)["models"]
    published = duckdb.read_csv(str(scores_of / "alpacaeval_published.csv")).filter(
        f"model = '{model}'"
    )
    want = published.project("win_rate, length_controlled_winrate").fetchall()[0]
    assert row["win_rate"] == pytest.approx(want[0], abs=0.01)
    assert row["lc_win_rate"] == pytest.approx(want[1], abs=0.15)
    plain = json.loads(command(*words, *judge).stdout)
    assert abs(plain["models"][0]["lc_win_rate"] - want[1]) > 0.3, (
        "without, it is another quantity"
    )
    assert any("published difficulties and rows of" in text for text in plain["warnings"])


def test_difficulties_are_for_alpaca_eval_and_gamed_rows_come_with_them(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    (folder / "d.csv").write_text("idx,difficulty\n1,0.5\n", encoding="utf-8")
    UPSTREAM["pairwise"].written(folder, "pairwise")
    wrong = command("bench", "bench.toml", "--difficulties", "d.csv")
    refused_at_last(wrong, "length control of alpaca_eval, not for 'pairwise'")
    UPSTREAM["alpaca_eval"].written(folder, "alpaca_eval")
    alone = command("bench", "bench.toml", "--regularisation", "d.csv")
    refused_at_last(alone, "give them with --difficulties")
    nobody = command("bench", "bench.toml", "--difficulties", "d.csv")
    refused_at_last(nobody, "'d.csv' holds the difficulty of none of the 5 items")
    assert server.requests == []
    places = "".join(f"{n},{n / 5}\n" for n in range(5))
    (folder / "d.csv").write_text(f"idx,difficulty\n{places}", encoding="utf-8")
    gamed = "idx,x_len,pseudo_y,weight\n0,0.5,0.4,0.1\n1,-0.5,0.6,0.1\n"
    (folder / "g.csv").write_text(gamed, encoding="utf-8")
    words = ("--models", "slate", "--difficulties", "d.csv", "--regularisation", "g.csv")
    rates = [bench(command, *given)["models"][0]["lc_win_rate"] for given in (words, words[:4])]
    assert [rate is None for rate in rates] == [False, True], "all answers are shorter"


V2 = {"hard_prompt": "o3-mini-2025-01-31", "creative_writing": "gemini-2.0-flash-001"}


def write_v2(folder: Path) -> tuple[str, ...]:
    """Write four questions of Arena-Hard v2 with the answers of a model and both baselines."""
    items = [
        {"uid": str(n), "category": [*V2][n % 2], "subcategory": "x", "prompt": f"{n}?"}
        for n in range(4)
    ]
    write(folder / "question.jsonl", items)
    words: list[str] = []
    for name in ("flint", *V2.values()):
        talks = [
            {
                "uid": item["uid"],
                "model": name,
                "messages": [
                    {"role": "user", "content": item["prompt"]},
                    {"role": "assistant", "content": {"answer": f"{name} on {item['uid']}"}},
                ],
            }
            for item in items
        ]
        write(folder / f"{name}.jsonl", talks)
        words += ["--answers", f"{name}.jsonl"]
    options = ("--items", "question.jsonl", "--models", "flint", "--judge", "judge")
    return ("bench", "arena_hard", *options, *words, "--roster", "roster.toml", "--out", "results")


def test_arena_hard_v2_has_a_baseline_for_each_category(command: Command, folder: Path) -> None:
    words = write_v2(folder)
    refused_at_last(
        command(*words),
        "hard_prompt (2 items) with o3-mini-2025-01-31",
        "creative_writing (2 items) with gemini-2.0-flash-001",
        "--where \"category = 'hard_prompt'\"",
    )
    for category, baseline in V2.items():
        done = command(*words, "--where", f"category = '{category}'", "--format", "json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["items"], report["baseline"]) == (2, baseline)
        assert report["models"][0]["n"] == 2


def test_another_baseline_than_upstream_s_is_said(command: Command, folder: Path) -> None:
    done = command(*write_v2(folder), "--baseline", V2["hard_prompt"], "--format", "json")
    assert done.returncode == 0, done.stderr
    assert (
        "upstream compares creative_writing (2 items) with gemini-2.0-flash-001. The scores of "
        "these items are not comparable"
    ) in done.stderr
    assert "hard_prompt (2 items)" not in done.stderr


def test_questions_of_arena_hard_v0_1_in_the_layout_of_v2_are_v0_1(
    command: Command, folder: Path
) -> None:
    words = write_v2(folder)
    items = [{"uid": "0", "category": "arena-hard-v0.1", "prompt": "0?"}]
    write(folder / "question.jsonl", items)
    done = command(*words)
    assert "read as questions of Arena-Hard v0.1; rows excluded: none" in done.stderr
    assert "upstream has gpt-4-0314" in done.stderr
