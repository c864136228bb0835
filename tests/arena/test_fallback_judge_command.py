"""A second judge in the place of one that is out or refuses, as it is typed."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.arena import benches
from tests.arena.benches import BASELINE, RECORDED, UPSTREAM, answered, asked, in_journal, judged
from tests.command import Command, csv_rows, endpoint_roster, json_lines, refused, report
from tests.faulty_server import Behaviour, FaultyServer, faulty_server, last_message
from tests.process import Process, until
from tests.sqlite import new_sqlite

N = 24
OUT = Behaviour(status=503, headers={"Retry-After": "0"}, error={"message": "down for repairs"})
DENIES = Behaviour(status=401, error={"message": "no such key"})
RUN = ("judge", "run", "--method", "pairwise", "--cases", "pairs.jsonl", "--roster", "roster.toml")
BOTH = ("--judge", "wren", "--fallback-judge", "owl", "--out", "found.csv")


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server({"wren": judged, "owl": judged, "slate": answered}) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: FaultyServer) -> Path:
    new_sqlite(tmp_path)
    endpoint_roster(tmp_path, server.url, "wren", "owl", "slate")
    json_lines(tmp_path / "pairs.jsonl", benches.long_and_short(N))
    return tmp_path


def refuses(*numbers: int) -> Callable[[Mapping[str, Any]], Behaviour]:
    """Refuse some prompts for good, in one of their orders; judge the others by length."""

    def chosen(body: Mapping[str, Any]) -> Behaviour:
        text = last_message(body)
        shown_first = text.find("Long answer") < text.find("Short ")
        if shown_first and any(f"Number {n}?" in text for n in numbers):
            return Behaviour(text="", finish_reason="content_filter")
        return judged(body)

    return chosen


def test_a_case_that_a_judge_refuses_is_the_second_s_in_both_orders(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["wren"] = refuses(3, 5)
    result = command(*RUN, *BOTH, "--format", "json")
    assert (result.returncode, result.stderr) == (0, "")
    outcome = report(result)
    assert outcome["by_status"] == {"read": 2 * N}
    assert asked(server) == {"wren": 2 * N, "owl": 4}
    of = Counter((row["judge"], row["fallback_for"]) for row in csv_rows(folder))
    assert of == {("wren", ""): 3 * (N - 2), ("owl", "wren"): 3 * 2}
    paid = sum(float(row["cost"] or 0) for row in csv_rows(folder))
    usd = pytest.approx((2 * N + 4) * benches.EACH_USD)
    assert paid == pytest.approx(outcome["spent_usd"]) == usd
    fallback = outcome["fallback"]
    handed = (fallback["judge"], fallback["handed_over"], fallback["n"])
    assert handed == ("owl", {"refusal": 2}, 2)
    assert fallback["order"] == fallback["order_without"] == ["basalt", "flint"]

    before = len(server.requests)
    shown = " ".join(command(*RUN, *BOTH).stdout.split())
    assert len(server.requests) == before
    assert (
        f"2 of {N} verdicts are by 'owl' in place of 'wren' (2 refusal). Without them, the order "
        "of the models is the same." in shown
    )
    scored = command("judge", "score", "found.csv", "--format", "json")
    models = report(scored)["models"]
    rates = {row["model"]: (row["n"], row["win_rate"]) for row in models}
    assert rates == {"basalt": (N, 100.0), "flint": (N, 0.0)}


def test_where_an_endpoint_is_out_the_second_judges_the_rest_and_nothing_else_changes(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["wren"] = OUT
    words = (*RUN, *BOTH, "--concurrency", "4")  # all at once, none might be left to be asked
    result = command(*words, "--format", "json")
    assert (result.returncode, result.stderr) == (0, "")
    outcome = report(result)
    assert outcome["by_status"] == {"read": 2 * N}
    assert outcome["stopped"] is None
    assert sum(outcome["fallback"]["handed_over"].values()) == N
    assert set(outcome["fallback"]["handed_over"]) == {"overloaded", "pending"}
    assert outcome["fallback"]["sentence"].endswith("there is no verdict on 'basalt', 'flint'.")
    assert asked(server)["owl"] == 2 * N
    ours = [{**row, "judge": "", "fallback_for": ""} for row in csv_rows(folder)]
    assert command(*RUN, "--judge", "owl", "--out", "found.csv").returncode == 0
    assert asked(server)["owl"] == 2 * N, "its replies are its own, whoever asked for them"
    assert ours == [{**row, "judge": "", "fallback_for": ""} for row in csv_rows(folder)]


def test_where_the_endpoint_comes_back_its_judge_goes_on_and_pays_nothing_twice(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["wren"] = OUT
    assert command(*RUN, *BOTH).returncode == 0
    server.behaviours["wren"] = judged
    before = asked(server)
    assert command(*RUN, *BOTH).returncode == 0
    assert asked(server)["owl"] == before["owl"]
    assert asked(server)["wren"] == before["wren"] + 2 * N
    assert {row["judge"] for row in csv_rows(folder)} == {"wren"}
    assert command(*RUN, *BOTH).returncode == 0
    assert asked(server)["wren"] == before["wren"] + 2 * N


def test_a_budget_is_for_both_judges_together(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["wren"] = DENIES
    words = (*RUN, *BOTH, "--concurrency", "1", "--format", "json")
    result = command(*words, "--budget", "0.003")
    assert result.returncode == 1
    assert "would exceed the budget of $0.003" in result.stderr
    outcome = report(result)
    assert 0 < outcome["spent_usd"] <= 0.003
    assert outcome["by_status"]["pending"] > 0
    assert outcome["fallback"]["handed_over"].keys() <= {"denied", "pending"}
    assert report(command(*words))["by_status"] == {"read": 2 * N}


def test_a_reply_without_a_verdict_is_no_reason_to_ask_somebody_else(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    def puzzled(body: Mapping[str, Any]) -> Behaviour:
        hard = "Number 7?" in last_message(body)
        return Behaviour(text="Hard to say.") if hard else judged(body)

    server.behaviours["wren"] = puzzled
    outcome = report(command(*RUN, *BOTH, "--format", "json"))
    assert outcome["by_status"] == {"read": 2 * N - 2, "unparsed": 2}
    assert asked(server)["owl"] == 0
    orders = {key: ["basalt", "flint"] for key in ("order", "order_without")}
    none = {"judge": "owl", "handed_over": {}, "n": 0, "sentence": ""}
    assert outcome["fallback"] == none | orders


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--judge", "wren", "--fallback-judge", "wren"), "'wren' is the judge itself"),
        (("--judge", "wren", "--fallback-judge", "crow"), "no model 'crow' in the roster"),
    ],
)
def test_a_second_judge_that_is_none_is_one_clear_line(
    command: Command, folder: Path, words: tuple[str, ...], part: str
) -> None:
    refused(command(*RUN, *words, "--out", "found.csv"), part)
    batch = ("--judge", "wren", "--fallback-judge", "owl", "--batch", "write", "batch")
    refused(command(*RUN, *batch), "omit --fallback-judge owl")


def test_a_bench_ranks_by_both_judges_and_says_what_hangs_on_the_second(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    def wren(body: Mapping[str, Any]) -> Behaviour:
        text = last_message(body)
        if "basalt says" in text and "Question 2" not in text:
            return Behaviour(text="", finish_reason="content_filter")
        return judged(body)

    def owl(body: Mapping[str, Any]) -> Behaviour:
        """Prefer the baseline to basalt, whichever stands first."""
        text = last_message(body)
        first = text.find("basalt says") < text.find(f"{BASELINE} says")
        return Behaviour(text="[[B]]" if first else "[[A]]")

    server.behaviours |= {"wren": wren, "owl": owl}
    UPSTREAM["pairwise"].written(folder, "pairwise")
    text = (folder / "bench.toml").read_text(encoding="utf-8")
    text = text.replace('judge = "judge"', 'judge = "wren"\nfallback_judge = "owl"')
    (folder / "bench.toml").write_text(text, encoding="utf-8")
    result = command("bench", "bench.toml", "--format", "json")
    assert result.returncode == 0, result.stderr
    outcome = report(result)
    assert outcome["failed"] == 0
    assert asked(server)["owl"] == 2 * 4
    models = {row["model"]: row for row in outcome["models"]}
    assert models.keys() == {*RECORDED, "slate"}
    assert (models["basalt"]["n"], models["basalt"]["win_rate"]) == (5, 20.0)
    fallback = outcome["fallback"]
    assert (fallback["judge"], fallback["n"]) == ("owl", 4)
    assert fallback["order"] == [row["model"] for row in outcome["models"]]
    assert fallback["order"].index("basalt") > fallback["order_without"].index("basalt") == 0
    assert "The order of the models depends on them" in fallback["sentence"]
    shown = " ".join(command("bench", "bench.toml").stdout.split())
    assert " ".join(fallback["sentence"].split()) in shown
    scored = command("judge", "score", "results/results.parquet", "--format", "json")
    assert {row["model"]: row["n"] for row in report(scored)["models"]}["basalt"] == 5


@pytest.mark.slow
def test_killed_while_the_second_judges_and_begun_again_it_pays_nothing_twice(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["wren"] = DENIES
    words = (*RUN, *BOTH, "--concurrency", "4")
    with Process(words, folder) as process:
        until(lambda: asked(server)["owl"] >= 12)
        server.behaviours["owl"] = Behaviour(silent=True)
        until(lambda: len(in_journal(folder)) >= 6)
        process.kill()
    server.behaviours["owl"] = judged
    known, before = in_journal(folder), len(server.requests)
    result = command(*words)
    assert (result.returncode, result.stderr) == (0, "")
    again = [last_message(one.body) for one in server.requests[before:] if one.model == "owl"]
    assert len(again) == len({*again}) == 2 * N - len(known)
    assert not known & {*again}
    assert {row["judge"] for row in csv_rows(folder)} == {"owl"}
