"""`arena judge run` at endpoints that refuse, think, hang or answer under two addresses."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.methods import PAIRS, SINGLES
from tests.command import Command, Ran, csv_rows, json_lines, refused, report
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.odd_judges import NO_FORMAT, NO_LOGPROBS, NO_MAX_TOKENS, ODD, ONE_TEMPERATURE
from tests.provider_errors import SPENT
from tests.sqlite import new_sqlite

MODEL = """
[[models]]
id = "{id}"
name = "{id}"
endpoint = "{url}"
model = "{model}"
price = {{ input = 1.0, output = 2.0, date = 2026-01-01 }}
"""
STATED = {
    "o1": 'judging = { token_parameter = "max_completion_tokens", reasoning_effort = "medium", '
    "temperature = 1, logprobs = false }",
    "no-logprobs": "judging = { logprobs = false }",
    "no-format": "judging = { response_format = false }",
    "thinker": "judging = { thinking_tokens = 4000, logprobs = false }",
}
WITHOUT = {"o1", "no-logprobs", "thinker"}
METHODS = [*PAIRS, *SINGLES]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    new_sqlite(tmp_path)
    rows = [{"prompt": f"{n}?", "response_a": "Yes, so." + "." * n} for n in range(2)]
    pairs = [row | {"response_b": "No.", "model_a": "basalt", "model_b": "flint"} for row in rows]
    json_lines(tmp_path / "pairs.jsonl", pairs)
    (tmp_path / "rubric.txt").write_text("10 is best.", encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def shared() -> Iterator[FaultyServer]:
    with faulty_server(ODD) as running:
        yield running


def roster(folder: Path, url: str, *extra: str, model: str = "plain", ids: str = "judge") -> None:
    tables = [MODEL.format(id=id, url=url, model=model) + "\n".join(extra) for id in ids.split()]
    (folder / "roster.toml").write_text("\n".join(tables), encoding="utf-8")


def run(command: Command, method: str, *words: str, judge: str = "judge") -> Ran:
    there = ("--judge", judge, "--cases", "pairs.jsonl", "--roster", "roster.toml")
    extra = ("--rubric", "rubric.txt") if method == "rubric" else ()
    return command(
        "judge", "run", "--method", method, *there, "--out", "out.jsonl", *extra, *words
    )  # fmt: skip


def rows(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("stated", [True, False], ids=["stated", "learnt"])
@pytest.mark.parametrize("model", ODD)
def test_every_published_method_works_or_says_why_not_before_it_costs_anything(
    command: Command, folder: Path, shared: FaultyServer, model: str, stated: bool
) -> None:
    roster(folder, shared.url, STATED.get(model, "") if stated else "", model=model)
    for method in METHODS:
        before = len(shared.requests)
        ran = run(command, method, "--format", "json")
        if method == "alpaca_eval" and model in WITHOUT:
            assert ran.returncode != 0
            assert "gives no log-probabilities, and the method reads nothing else" in ran.stderr
            assert "--fallback sampled" in ran.stderr
            paid = [seen for seen in shared.requests[before:] if "logprobs" not in seen.body]
            assert paid == []
            assert not (stated and shared.requests[before:])
        else:
            assert (ran.returncode, ran.stderr) == (0, ""), method
            assert report(ran)["by_status"] in ({"read": 4}, {"read": 4, "settled": 0}), method
            verdicts = {row.get("winner") for row in rows(folder)}
            assert verdicts in ({"model_a"}, {None}), method


LESSONS = {"o1": [NO_MAX_TOKENS, ONE_TEMPERATURE], "no-format": [NO_FORMAT]}


@pytest.mark.parametrize("model", LESSONS)
def test_a_refusal_is_learnt_from_once_told_and_kept(
    command: Command, folder: Path, shared: FaultyServer, model: str
) -> None:
    roster(folder, shared.url, model=model)
    before = len(shared.requests)
    first = report(run(command, "wildbench_reward", "--format", "json"))
    n_refused = [len(LESSONS[model]), len(shared.requests) - before - first["n_asked"]]
    assert n_refused[0] == n_refused[1], "each refusal comes once, whatever is asked at a time"
    for sentence in LESSONS[model]:
        assert sum(sentence in warning for warning in first["warnings"]) == 1
    before = len(shared.requests)
    again = report(run(command, "wildbench_score", "--format", "json"))
    assert len(shared.requests) - before == again["n_asked"]
    assert any(LESSONS[model][0] in warning for warning in again["warnings"])
    assert "! The endpoint refuses" in run(command, "wildbench_score").stdout


def test_without_log_probabilities_the_fallback_asks_for_none_once_that_is_known(
    command: Command, folder: Path, shared: FaultyServer
) -> None:
    roster(folder, shared.url, model="no-logprobs")
    for again in (False, True):
        before = len(shared.requests)
        ran = run(command, "alpaca_eval", "--fallback", "sampled", "--format", "json")
        assert report(ran)["by_status"] == {"read": 4}
        asked = [seen for seen in shared.requests[before:] if "logprobs" in seen.body]
        assert len(asked) == (0 if again else 1)
        assert any("alpaca_eval_sampled instead" in text for text in report(ran)["warnings"])
    no_logprobs = run(command, "alpaca_eval", "--dry-run")
    assert NO_LOGPROBS in no_logprobs.stderr
    assert no_logprobs.returncode == 2


def test_what_an_endpoint_says_reaches_the_terminal_the_file_and_the_json(
    command: Command, folder: Path
) -> None:
    sentence = "The prompt mentions a colour that is not for sale."
    with faulty_server({"fussy": Behaviour(status=400, error={"message": sentence})}) as server:
        roster(folder, server.url, model="fussy")
        ran = run(command, "pairwise", "--format", "json")
        quoted = f"status 400, {sentence}"
        assert report(ran)["errors"] == [{"failure": "rejected", "sentence": quoted, "n": 4}]
        assert {row["error"] for row in rows(folder)} == {quoted, None}
        shown = run(command, "pairwise").stdout
        assert f"! 4 rejected: the endpoint reports '{quoted}'." in " ".join(shown.split())
        run(command, "rubric")
        assert {row["error"] for row in rows(folder)} == {quoted}


def test_replicas_and_names_of_one_machine_share_a_journal(
    command: Command, folder: Path, shared: FaultyServer
) -> None:
    roster(folder, shared.url)
    assert report(run(command, "pairwise", "--format", "json"))["n_asked"] == 4
    roster(folder, shared.url.replace("127.0.0.1", "localhost"), ids="other judge")
    for judge in ("judge", "other"):
        again = report(run(command, "pairwise", "--format", "json", judge=judge))
        assert (again["n_asked"], again["n_recalled"]) == (0, 4)
    for other in (
        "decoding = { top_p = 0.5 }",
        'judging = { revision = "q4" }',
        "judging = { temperature = 0.5 }",
    ):
        roster(folder, shared.url, other)
        assert report(run(command, "pairwise", "--format", "json"))["n_asked"] == 4


@pytest.mark.parametrize("of", ["openai", "anthropic", "deepseek", "no key"])
def test_a_spent_account_stops_a_run_at_once_and_the_same_command_pays_nothing_twice(
    command: Command, folder: Path, of: str
) -> None:
    error = SPENT.get(of)
    message = error.body["error"]["message"] if error else "There is no such key"
    status = error.status if error else 401
    denial = Behaviour(status=status, error=error.body["error"] if error else {"message": message})
    numbers = itertools.count()

    def spent(body: Any) -> Behaviour:
        return Behaviour(text="[[A]]") if next(numbers) < 2 else denial

    with faulty_server({"spent": spent}) as server:
        roster(folder, server.url, model="spent")
        ran = run(command, "pairwise", "--concurrency", "1", "--format", "json")
        assert ran.returncode == 1
        assert ran.stderr.startswith("arena: Stopped: ")
        assert ran.stderr.count("\n") == 1, "no wait was reported"
        assert ran.stderr.endswith(
            f"{message}: top up the account, or correct the key or the model's "
            "name, and run the same command again: replies so far are kept, and none is paid for "
            "twice.\n"
        )
        assert report(ran)["by_status"] == {"pending": 2, "read": 2}
        assert [row["status"] for row in rows(folder)].count("read") == 2 + 1  # a pair in both
        n = len(server.requests)
        assert n <= 2 + 2, "one request was denied, and one more may have been under way"
        server.behaviours["spent"] = Behaviour(text="[[C]]")
        again = run(command, "pairwise", "--format", "json")
        assert (again.returncode, report(again)["by_status"]) == (0, {"read": 4})
        assert report(again)["n_asked"] == len(server.requests) - n == 2


def test_a_long_wait_is_reported_on_stderr_and_ends_with_the_run(
    command: Command, folder: Path
) -> None:
    busy = Behaviour(
        status=503, headers={"Retry-After": "25"}, error={"message": "The server is overloaded"}
    )
    with faulty_server({"busy": lambda body: next(replies)}) as server:
        replies = itertools.chain([busy], itertools.repeat(Behaviour(status=401)))
        roster(folder, server.url, model="busy")
        ran = run(command, "pairwise", "--concurrency", "2")
        assert ran.returncode == 1
        wait, stopped = ran.stderr.splitlines()
        assert wait.startswith(
            "arena: waiting 25 s before the next try (overloaded, status 503, The server is "
            "overloaded); "
        )
        assert wait.endswith(" s since the run began")
        assert stopped.startswith("arena: Stopped: status 401")


def test_a_server_on_this_machine_is_found_without_a_roster(
    command: Command, folder: Path, shared: FaultyServer
) -> None:
    words = ("judge", "run", "--method", "pairwise", "--cases", "pairs.jsonl", "--judge")
    for name in ("plain", "OpenAI/plain"):
        ran = command(*words, name, "--out", "out.csv", OPENAI_BASE_URL=shared.url)
        assert (ran.returncode, ran.stderr) == (0, "")
    assert {row["judge"] for row in csv_rows(folder, "out.csv")} == {"OpenAI/plain"}
    wrong = command(*words, "gone", "--dry-run", OPENAI_BASE_URL=shared.url)
    assert "OpenAI/plain" in wrong.stderr


PROVIDED = ("openai", "anthropic", "openrouter")


@pytest.mark.parametrize("provider", [*PROVIDED, "ollama"])
def test_a_provider_and_its_model_need_no_roster(
    command: Command, folder: Path, shared: FaultyServer, provider: str
) -> None:
    name = f"{provider}/plain"
    words = ("judge", "run", "--method", "pairwise", "--cases", "pairs.jsonl", "--judge", name)
    there = {f"{provider.upper()}_BASE_URL": shared.url}
    keys = {f"{provider.upper()}_API_KEY": "sesame"} if provider in PROVIDED else {}
    before = len(shared.requests)
    ran = command(*words, "--out", "out.csv", **there, **keys)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert {row["judge"] for row in csv_rows(folder, "out.csv")} == {name}
    calls = [one for one in shared.requests[before:] if one.model == "plain"]
    wanted = "Bearer sesame" if keys else None
    assert {one.headers.get("authorization") for one in calls} == {wanted}


@pytest.mark.parametrize("provider", PROVIDED)
def test_the_first_error_names_the_variable_of_the_key(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    variable = f"{provider.upper()}_API_KEY"
    monkeypatch.delenv(variable, raising=False)
    words = ("judge", "run", "--method", "pairwise", "--cases", "pairs.jsonl", "--out", "out.csv")
    refused(command(*words, "--judge", f"{provider}/gpt-5"), repr(variable), "set nowhere")
    address = {f"{provider.upper()}_BASE_URL": "not an address"}
    refused(command(*words, "--judge", f"{provider}/gpt-5", **address), *address)


def test_a_profile_that_cannot_be_is_quoted(command: Command, folder: Path) -> None:
    for wrong, quoted in (
        ('judging = { token_parameter = "tokens" }', "'tokens'"),
        ("judging = { thinking_tokens = -5 }", "-5"),
        ("judging = { max_tokens = 5 }", "max_tokens"),
    ):
        roster(folder, "http://127.0.0.1:9/v1", wrong)
        ran = run(command, "pairwise", "--dry-run")
        assert ran.returncode == 2
        assert quoted in ran.stderr
