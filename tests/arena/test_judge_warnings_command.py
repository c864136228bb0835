"""What `arena judge run` says beside its verdicts: fallbacks, repeats, places."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import Command, Ran, csv_rows, json_lines, refused, report
from tests.judging_server import EACH_USD, fenced, judging_server
from tests.sqlite import new_sqlite

N = 24


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    new_sqlite(tmp_path)
    pairs(tmp_path, lambda n: f"Good answer {n}.", lambda n: f"Dull answer {n}.")
    return tmp_path


def pairs(folder: Path, a: Callable[[int], str], b: Callable[[int], str]) -> None:
    models = {"model_a": "basalt", "model_b": "flint"}
    rows = [models | {"prompt": f"{n}?", "response_a": a(n), "response_b": b(n)} for n in range(N)]
    json_lines(folder / "pairs.jsonl", rows)


def run(command: Command, script: Callable[[str], str], method: str, *words: str) -> Ran:
    with judging_server(script, command.folder):
        judge = ("--judge", "judge", "--roster", "roster.toml", "--cases", "pairs.jsonl")
        return command("judge", "run", "--method", method, *judge, "--out", "found.csv", *words)


def fair(prompt: str) -> str:
    first, _ = fenced(prompt)
    return "[[A]]" if first.startswith("Good") else "[[B]]"


def labelled(prompt: str) -> str:
    return "m" if fenced(prompt)[0].startswith("Good") else "M"


def test_a_judge_without_log_probabilities_stops_and_is_told_what_to_do(
    command: Command, folder: Path
) -> None:
    result = run(command, labelled, "alpaca_eval")
    assert result.returncode == 1
    assert "the last 20 requests all failed: no_logprobs" in result.stderr
    assert "Use --method alpaca_eval_sampled, or --fallback alpaca_eval_sampled" in result.stderr
    assert {row["winner"] for row in csv_rows(folder)} == {""}


def test_the_fallback_judges_every_case_anew_under_its_own_name(
    command: Command, folder: Path
) -> None:
    result = run(command, labelled, "alpaca_eval", "--fallback", "sampled", "--format", "json")
    assert (result.returncode, result.stderr) == (0, "")
    outcome = report(result)
    assert outcome["method"] == "alpaca_eval_sampled"
    assert "every case was judged with alpaca_eval_sampled instead" in outcome["warnings"][0]
    assert outcome["by_status"] == {"read": 2 * N}
    winners = {(row["method"], row["winner"]) for row in csv_rows(folder)}
    assert winners == {("alpaca_eval_sampled", "model_a")}


def test_a_fallback_stays_within_the_budget(command: Command, folder: Path) -> None:
    budget = 40 * EACH_USD
    words = ("--fallback", "sampled", "--budget", str(budget), "--concurrency", "1")
    result = run(command, labelled, "alpaca_eval", *words, "--format", "json")
    assert result.returncode == 1
    assert "would exceed the budget" in result.stderr
    assert 20 * EACH_USD < report(result)["spent_usd"] <= budget + 1e-12, "the first try counts"


def test_a_fallback_of_another_method_or_to_another_measure_is_refused(
    command: Command, folder: Path
) -> None:
    refused(run(command, fair, "pairwise", "--fallback", "sampled"), "--method alpaca_eval")
    other = run(command, fair, "alpaca_eval", "--fallback", "verbal")
    refused(other, "has the fallback 'alpaca_eval_sampled'")


def test_a_judge_that_always_says_the_same_is_named(command: Command, folder: Path) -> None:
    outcome = report(run(command, lambda prompt: "[[A]]", "pairwise", "--format", "json"))
    (warning,) = outcome["warnings"]
    assert warning.startswith(
        f"'judge' gave the same answer in all {2 * N} replies (preference for the answer shown "
        "first: 1.0)"
    )
    assert outcome["consistency"]["n_first"] == N
    assert outcome["first_place"]["effect"] == 0.5
    message = run(command, lambda prompt: "[[A]]", "pairwise").stdout
    assert "! 'judge' gave the same answer in all" in message
    assert f"prefer the answer shown first {N} times" in message


def test_a_judge_that_reads_is_not_named(command: Command, folder: Path) -> None:
    outcome = report(run(command, fair, "pairwise", "--format", "json"))
    assert outcome["warnings"] == []
    assert outcome["consistency"]["rate"] == 1.0


def test_a_model_with_one_answer_to_everything_is_named(command: Command, folder: Path) -> None:
    null = "This answers whatever you asked, in full and in every respect, as a judge will find."
    pairs(folder, lambda n: f"Good answer {n}.", lambda n: null)
    (warning,) = report(run(command, fair, "pairwise", "--format", "json"))["warnings"]
    alike = f"'flint' gives much the same response to different prompts (100% of {N})"
    assert warning.startswith(alike)


def test_a_share_in_both_orders_corrects_the_others(command: Command, folder: Path) -> None:
    """A judge who leans to the first place by 3/4: both orders say by how much."""

    def leaning(prompt: str) -> str:
        first, second = (int(re.findall(r"\d+", text)[0]) for text in fenced(prompt))
        assert first == second
        return "[[75]]"

    words = ("--swap-share", "0.5", "--seed", "a seed of the test")
    result = run(command, leaning, "alpaca_eval_verbal", *words)
    assert result.returncode == 0
    assert "Position effect of being shown first: +0.250 ± 0.000" in result.stdout
    outcome = csv_rows(folder)
    both = {row["battle_id"] for row in outcome if row["order"] == "both"}
    once = [row for row in outcome if row["battle_id"] not in both]
    assert 0 < len(once) < N
    assert len(both) + len(once) == N
    assert {row["corrected"] for row in once} == {"0.5"}
    assert {(row["order"], row["preference"]) for row in once} == {("ab", "0.75"), ("ba", "0.25")}
    assert {row["corrected"] for row in outcome if row["battle_id"] in both} == {""}
    assert {row["preference"] for row in outcome if row["order"] == "both"} == {"0.5"}


def test_the_same_seed_asks_the_same_on_another_database(command: Command, folder: Path) -> None:
    def asked(database: str, seed: str) -> set[str]:
        with judging_server(fair, folder) as server:
            judge = ("--judge", "judge", "--roster", "roster.toml", "--cases", "pairs.jsonl")
            words = (*judge, "--out", "found.csv", "--seed", seed, "--swap-share", "0.5")
            url = f"sqlite:///{folder}/{database}.db"
            result = command("judge", "run", "--method", "pairwise", *words, "--database", url)
            assert result.returncode == 0, result.stderr
            return set(server.asked)

    assert asked("one", "s") == asked("two", "s")
    assert not asked("three", "t") & asked("four", "s")
