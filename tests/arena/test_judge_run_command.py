"""`arena judge run`, as it is typed: resumed, killed, estimated and refused."""

import csv
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import select

from arena.store.store import Store
from arena.store.tables import JudgementClaimRow, JudgementRow
from judge.methods import published
from tests.arena.store.battles import MODELS, NOW, ballot, ready
from tests.command import Command, examples, refused
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.process import Process, until
from tests.sqlite import new_sqlite

PAIRS = """prompt_id,prompt,model_a,response_a,model_b,response_b
p1,Why is the sky blue?,basalt,Air scatters blue light more than red.,flint,It is.
p2,What is 2 + 2?,basalt,Four.,flint,2 + 2 is 4.
p3,Name a colour.,basalt,Blue.,flint,Blue.
"""
ROSTER = """
[[models]]
id = "judge"
name = "Judge"
endpoint = "{url}"
model = "judge"
price = {{ input = 1.0, output = 2.0, date = 2026-01-01 }}
"""
RUN = ("judge", "run", "--method", "pairwise")
AT_ONCE = 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a database that nobody has used, and pairs.csv."""
    new_sqlite(tmp_path)
    (tmp_path / "pairs.csv").write_text(PAIRS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server({"judge": Behaviour(text="Alike. [[C]]")}) as running:
        yield running


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def many_pairs(folder: Path, n: int) -> None:
    pairs = [{"prompt": f"{i}?", "response_a": f"{i}.", "response_b": "No."} for i in range(n)]
    (folder / "many.jsonl").write_text("\n".join(map(json.dumps, pairs)), encoding="utf-8")


def test_the_examples_run_and_the_second_time_nothing_is_asked(
    command: Command, folder: Path
) -> None:
    judged, dry = examples("judge run")
    before = command(*dry)
    assert (before.returncode, before.stderr) == (0, "")
    assert before.stdout.startswith("4 calls, about ")
    result = command(*judged, "--requests-per-minute", "6000", "--tokens-per-minute", "1e6")
    assert (result.returncode, result.stderr) == (0, "")
    assert "4 read, 2 settled. 4 new replies for $0, 0 known before." in result.stdout
    report = rows(folder / "found.csv")
    assert [(r["prompt_id"], r["order"], r["winner"], r["status"]) for r in report] == [
        *(("p1", order, "model_a", "read") for order in ("ab", "ba", "both")),
        *(("p2", order, "model_b", "read") for order in ("ab", "ba", "both")),
        *(("p3", order, "tie", "settled") for order in ("ab", "ba")),
        ("p3", "both", "tie", "read"),
    ]
    assert {r["judge"] for r in report} == {"pocket-judge"}
    assert {r["template"] for r in report} == {published("pairwise").template.hash}
    assert {r["resolved_model"] for r in report} == {"", "settled"}
    assert {r["resolved_model"] for r in report if r["prompt_id"] == "p3"} == {"settled"}
    assert "0 new replies for $0, 4 known before" in command(*judged).stdout
    assert rows(folder / "found.csv") == report
    assert command(*dry).stdout.startswith("0 calls, ")


def test_the_arena_s_battles_are_judged_and_the_verdicts_lie_beside_the_votes(
    command: Command, folder: Path
) -> None:
    store = Store(new_sqlite(folder))
    store.register(MODELS, NOW)
    store.cast(ballot(ready(store, "b1")))
    store.close()
    words = ("--judge", "pocket-judge", "--cases", "arena", "--out", "found.parquet")
    assert command(*RUN, *words).returncode == 0
    scored = command("judge", "score", "found.parquet", "--method", "pairwise", "--format", "json")
    assert [row["n_ties"] for row in json.loads(scored.stdout)["models"]] == [1, 1]
    assert command("export", "votes", "--to", "votes.csv").returncode == 0
    assert command(*RUN, *words[:-1], "found.csv").returncode == 0
    vote, verdict = rows(folder / "votes.csv")[0], rows(folder / "found.csv")[-1]
    both = ("battle_id", "prompt_id", "model_a", "model_b")
    assert [vote[name] for name in both] == [verdict[name] for name in both]


def test_a_run_that_was_killed_goes_on_and_asks_nothing_twice_that_it_kept(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    many_pairs(folder, 30)
    (folder / "roster.toml").write_text(ROSTER.format(url=server.url), encoding="utf-8")
    source = ("--judge", "judge", "--cases", "many.jsonl", "--roster", "roster.toml")
    words = (*RUN, *source, "--out", "found.csv", "--concurrency", str(AT_ONCE))
    killed_in_the_middle(words, folder, server)
    at_kill, n_before = rest(folder), len(server.requests)
    assert 0 < len(at_kill) < 60
    result = command(*words)
    assert (result.returncode, result.stderr) == (0, "")
    asked_again = [text(request.body) for request in server.requests[n_before:]]
    assert len(asked_again) == len(set(asked_again)) == 60 - len(at_kill)
    assert not at_kill & set(asked_again)
    lost = len(server.requests) - 60
    assert lost <= AT_ONCE, "only what was asked or being kept is paid for again"
    assert {row["status"] for row in rows(folder / "found.csv")} == {"read"}
    assert claimed(folder) == 0


def killed_in_the_middle(words: tuple[str, ...], folder: Path, server: FaultyServer) -> None:
    """Fall silent after some answers, so that the kill finds questions under way."""
    with Process(words, folder) as process:
        until(lambda: len(server.requests) >= 20)
        server.behaviours["judge"] = Behaviour(silent=True)
        until(lambda: claimed(folder) > 0 and len(rest(folder)) >= 12)
        process.kill()
    server.behaviours["judge"] = Behaviour(text="Alike. [[C]]")


def open_store(folder: Path) -> Store:
    return Store(f"sqlite:///{folder}/arena.db")


def rest(folder: Path) -> set[str]:
    with closing(open_store(folder)) as store, store.reading() as session:
        return {row["messages"][-1][1] for row in session.exec(select(JudgementRow.request))}


def claimed(folder: Path) -> int:
    with closing(open_store(folder)) as store, store.reading() as session:
        return len(session.exec(select(JudgementClaimRow)).all())


def text(body: Mapping[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def test_a_budget_stops_a_run_that_goes_on_later(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    (folder / "roster.toml").write_text(ROSTER.format(url=server.url), encoding="utf-8")
    words = (*RUN, "--judge", "judge", "--cases", "pairs.csv", "--roster", "roster.toml")
    stopped = command(*words, "--out", "found.csv", "--budget", "0.0001")
    assert stopped.returncode == 1
    assert stopped.stderr.startswith("arena: Stopped: the next request would exceed the budget")
    assert {row["winner"] for row in rows(folder / "found.csv")[:3]} == {""}
    assert {row["status"] for row in rows(folder / "found.csv")[:3]} == {"pending"}
    assert "for about $0.00" in command(*words, "--dry-run").stdout
    assert command(*words, "--out", "found.csv").returncode == 0
    report = rows(folder / "found.csv")
    assert float(report[0]["cost"]) == pytest.approx((7 + 2 * 11) / 1e6)
    assert len(server.requests) == 4


def test_a_judge_that_says_nothing_of_use_leaves_no_winner(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["judge"] = Behaviour(text="I cannot say. [[D]]")
    (folder / "roster.toml").write_text(ROSTER.format(url=server.url), encoding="utf-8")
    words = (*RUN, "--judge", "judge", "--cases", "pairs.csv", "--roster", "roster.toml")
    assert command(*words, "--out", "found.csv").returncode == 1
    report = rows(folder / "found.csv")
    assert [(row["winner"], row["status"]) for row in report[:6]] == [("", "refusal")] * 6


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--judge", "nobody", "--cases", "pairs.csv", "--dry-run"], "no model 'nobody'"),
        (["--judge", "pocket-judge", "--cases", "pairs.csv"], "--out"),
        (["--judge", "pocket-judge", "--cases", "pairs.csv", "--out", "x.txt"], "'x.txt'"),
        (["--judge", "pocket-judge", "--cases", "pairs.csv", "--out", "no/x.csv"], "'no/x.csv'"),
        (["--judge", "pocket-judge", "--cases", "nothing.csv", "--dry-run"], "'nothing.csv'"),
        (["--judge", "pocket-judge", "--cases", "arena", "--dry-run"], "let people play first"),
    ],
)
def test_what_cannot_be_run_is_one_clear_line(
    command: Command, folder: Path, words: list[str], expected: str
) -> None:
    refused(command(*RUN, *words), expected)


def test_an_unknown_method_or_an_impossible_limit_is_one_clear_line(
    command: Command, folder: Path
) -> None:
    words = ("--judge", "pocket-judge", "--cases", "pairs.csv", "--dry-run")
    refused(command("judge", "run", "--method", "elo", *words), "There is no method 'elo'")
    refused(command(*RUN, *words, "--requests-per-minute", "0"), "A rate limit is positive, not 0")


def test_outputs_without_a_partner_or_an_answer_are_warnings_of_the_run(
    command: Command, folder: Path
) -> None:
    texts_of = {"basalt": [*"abcdefgh"], "flint": ["A", "B", "C", None]}
    for name, texts in texts_of.items():
        rows = [
            {"instruction": f"{n}?", "output": text, "generator": name}
            for n, text in enumerate(texts)
        ]
        (folder / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
    files = [word for name in texts_of for word in ("--cases", f"{name}.json")]
    done = command(*RUN, "--judge", "pocket-judge", *files, "--out", "v.csv", "--format", "json")
    assert done.returncode == 0
    blank, alone = json.loads(done.stdout)["warnings"][:2]
    assert blank.startswith("flint.json: 1 answers are missing (null or blank), of 4 rows.")
    assert alone == (
        "5 prompts of 'basalt.json' have no answer in 'flint.json', the first is '3?'. They are "
        "excluded."
    )
    assert done.stderr.splitlines() == [f"arena: {words}" for words in (blank, alone)]
    assert len({row["battle_id"] for row in rows_of_pairs(folder / "v.csv")}) == 3


def rows_of_pairs(file: Path) -> list[dict[str, str]]:
    return [row for row in rows(file) if row["order"] == "both"]


@pytest.mark.parametrize(("method", "n_cases"), [("pairwise", 2), ("arena_hard", 1)])
def test_conversations_are_judged_by_methods_that_show_them(
    command: Command, folder: Path, method: str, n_cases: int
) -> None:
    texts = [
        {"prompt": '["1?"]', "response_a": '["a"]', "response_b": '["b"]'},
        {"prompt": '["1?", "2?"]', "response_a": '["a", "c"]', "response_b": '["b", "d"]'},
    ]
    with (folder / "kaggle.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", *texts[0]])
        writer.writeheader()
        writer.writerows({"id": n, **row} for n, row in enumerate(texts))
    run = ("judge", "run", "--method", method, "--judge", "pocket-judge", "--cases", "kaggle.csv")
    done = command(*run, "--dry-run", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_calls"] == 2 * n_cases
    left_out = "none" if n_cases == 2 else "1 of several turns"
    assert done.stderr == (
        f"arena: kaggle.csv is read as Kaggle 55k (test); rows excluded: {left_out}\n"
    )
