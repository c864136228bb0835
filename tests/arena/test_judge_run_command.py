"""`arena judge run`, as it is typed: resumed, killed, estimated and refused."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from arena.commands.judge_work import JudgeOptions, seat_of
from arena.endpoints.offline import POCKET_JUDGE
from arena.endpoints.sse import DEFAULT_BUDGETS
from arena.store.store import Store
from judge.calls import AGAIN
from judge.methods import published
from tests.arena.store.battles import MODELS, NOW, ballot, ready
from tests.command import Command, csv_rows, examples, refused
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.sqlite import new_sqlite

PAIRS = """prompt_id,prompt,model_a,response_a,model_b,response_b
p1,Why is the sky blue?,basalt,Air scatters blue light more than red.,flint,It is.
p2,What is 2 + 2?,basalt,Four.,flint,2 + 2 is 4.
p3,Name a colour.,basalt,Blue.,flint,Blue.
"""
RUN = ("judge", "run", "--method", "pairwise")


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


def test_the_examples_run_and_the_second_time_nothing_is_asked(
    command: Command, folder: Path
) -> None:
    judged, dry = examples("judge run")
    before = command(*dry)
    assert (before.returncode, before.stderr) == (0, "")
    assert before.stdout.startswith("4 calls, about ")
    result = command(*judged, "--requests-per-minute", "6000", "--tokens-per-minute", "1e6")
    assert (result.returncode, result.stderr) == (0, "")
    counts = "4 verdicts parsed, 2 settled without a call. 4 new replies for $0, 0 reused."
    assert counts in result.stdout
    report = csv_rows(folder)
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
    assert "0 new replies for $0, 4 reused" in command(*judged).stdout
    assert csv_rows(folder) == report
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
    vote, verdict = csv_rows(folder, "votes.csv")[0], csv_rows(folder)[-1]
    both = ("battle_id", "prompt_id", "model_a", "model_b")
    assert [vote[name] for name in both] == [verdict[name] for name in both]


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


def test_a_judge_has_the_limits_and_the_seed_that_are_given(folder: Path) -> None:
    rates: dict[str, Any] = {"requests_per_minute": 60.0, "tokens_per_minute": 9e6}
    chosen = JudgeOptions(budget=1.5, concurrency=3, again="refused", **rates)
    with closing(Store(new_sqlite(folder))) as store:
        options = seat_of(store, POCKET_JUDGE, chosen, DEFAULT_BUDGETS, "a seed", 0.4).options
    assert (options.limit_usd, options.concurrency) == (1.5, 3)
    assert (options.seed, options.swap_share) == ("a seed", 0.4)
    assert (asdict(options.limits), options.again) == (rates, AGAIN["refused"])


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
    assert blank.startswith("flint.json: no answer (null or blank) in 1 of 4 rows,")
    assert alone == (
        "5 prompts of 'basalt.json' have no answer in 'flint.json', the first is '3?'. They are "
        "excluded."
    )
    assert done.stderr.splitlines() == [f"arena: {words}" for words in (blank, alone)]
    assert len({row["battle_id"] for row in rows_of_pairs(folder / "v.csv")}) == 3


def rows_of_pairs(file: Path) -> list[dict[str, str]]:
    return [row for row in csv_rows(file.parent, file.name) if row["order"] == "both"]
