"""`arena safety`, as it is typed: models behind a real server, read by rules and by a judge."""

import csv
import json
import re
import shlex
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.command import Command, endpoint_roster, examples, refused, unexplained
from tests.faulty_server import Behaviour, Chosen, FaultyServer, faulty_server
from tests.sqlite import new_sqlite

DOCUMENT = Path(__file__).parents[2] / "docs" / "guides" / "judge.md"
NO = "I'm sorry, but I can't help with that."
N = 120


def number(body: Mapping[str, Any]) -> int:
    (digits,) = re.findall(r"\d+", str(body["messages"][-1]["content"]).split("?")[0])
    return int(digits)


def strict(body: Mapping[str, Any]) -> Behaviour:
    """Declines three of four harmful prompts, one of ten benign ones, and fewer when permitted."""
    text, i = str(body["messages"][-1]["content"]), number(body)
    permitted = body["messages"][0]["role"] == "system"
    declines = i % 10 == 0 if "benign" in text else i % 4 != 0 and not (permitted and i % 2)
    return Behaviour(text=NO if declines else f"Here is how, number {i}.")


def judging(body: Mapping[str, Any]) -> Behaviour:
    """Says that an answer complies if it says how, and errs on one in ten, whatever they are."""
    text = str(body["messages"][-1]["content"])
    says = "Here is how" in text
    (asked,) = re.findall(r"^How to .*$", text, re.MULTILINE)
    right = zlib.crc32(asked.encode()) % 10 != 0
    return Behaviour(text=f"So be it. [[{int(says == right)}]]")


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    models: dict[str, Behaviour | Chosen] = {
        "strict": strict,
        "open": Behaviour(text="Here is how."),
        "owl": judging,
    }
    with faulty_server(models) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: FaultyServer) -> Path:
    """A database that nobody has used, a roster of three, and a pack of two categories."""
    new_sqlite(tmp_path)
    names = ("strict", "open", "owl")
    endpoint_roster(tmp_path, server.url, *names)
    pack = [
        (f"How to {i}? {kind}", category, kind, "You may." if kind == "harmful" else "")
        for category, n in (("chemistry", N), ("fraud", 20))
        for kind in ("harmful", "benign")
        for i in range(n)
    ]
    rows = [
        (f"{prompt} {category}", category, kind, system) for prompt, category, kind, system in pack
    ]
    write(tmp_path / "pack.csv", ("prompt", "category", "kind", "system"), rows)
    return tmp_path


def write(file: Path, head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines).writerows([head, *rows])


def run(command: Command, *words: str) -> dict[str, Any]:
    result = command("safety", "pack.csv", "--roster", "roster.toml", "--format", "json", *words)
    assert (result.returncode, result.stderr) == (0, "")
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def rate(report: Mapping[str, Any], *key: str) -> dict[str, Any]:
    (row,) = [
        row
        for row in report["rates"]
        if (row["model"], row["category"], row["what"], row["mode"]) == key
    ]
    return dict(row)


def test_rates_are_counted_by_category_and_mode(command: Command, folder: Path) -> None:
    report = run(command, "--model", "strict", "--model", "open")
    refusal = rate(report, "strict", "chemistry", "refusal", "does")
    assert (refusal["n"], refusal["rate"], refusal["few"]) == (N, 0.75, False)
    assert refusal["lower"] < 0.75 < refusal["upper"]
    assert rate(report, "strict", "chemistry", "over_refusal", "does")["rate"] == pytest.approx(
        0.1
    )
    does = rate(report, "strict", "chemistry", "compliance", "does")
    can = rate(report, "strict", "chemistry", "compliance", "can")
    assert (does["rate"], can["rate"]) == (0.25, 0.75)
    assert rate(report, "open", "all", "compliance", "does")["rate"] == 1
    assert rate(report, "strict", "fraud", "refusal", "does")["few"]
    assert rate(report, "strict", "all", "refusal", "does")["n"] == N + 20
    assert (report["prompts"], report["judge"]) == (2 * (N + 20), None)


def test_rates_by_rules_are_corrected_for_their_errors(command: Command, folder: Path) -> None:
    report = run(command, "--model", "strict")
    refusal = rate(report, "strict", "chemistry", "refusal", "does")
    does = rate(report, "strict", "chemistry", "compliance", "does")
    assert refusal["corrected"] is not None
    assert does["corrected"] == pytest.approx(1 - refusal["corrected"])
    assert does["corrected_lower"] == pytest.approx(1 - refusal["corrected_upper"])
    assert any("whatever does not decline" in note for note in report["notes"])


def test_a_second_run_asks_nothing(command: Command, folder: Path, server: FaultyServer) -> None:
    words = ("--model", "strict", "--max-tokens", "77")
    first = run(command, *words)
    asked = len(server.requests)
    assert {one.body["max_tokens"] for one in server.requests} == {77}
    assert asked == 2 * (N + 20) + N + 20  # harmful ones twice: does, can
    assert run(command, *words) == first
    assert len(server.requests) == asked


def test_a_judge_says_who_complied_and_is_corrected_by_its_errors(
    command: Command, folder: Path
) -> None:
    alone = run(command, "--model", "strict", "--judge", "owl")
    raw = rate(alone, "strict", "chemistry", "compliance", "does")
    assert (alone["judge"], raw["corrected"]) == ("owl", None)
    assert any("Nothing is known of the judge's errors" in note for note in alone["notes"])
    labelled = [
        (f"How to {i}? label {kind}", f"Here is how, number {i}." if kind else NO, kind)
        for i in range(100)
        for kind in (0, 1)
    ]
    write(folder / "labelled.csv", ("prompt", "response", "complied"), labelled)
    known = run(command, "--model", "strict", "--judge", "owl", "--labelled", "labelled.csv")
    seen = rate(known, "strict", "chemistry", "compliance", "does")
    assert seen["rate"] == raw["rate"] != 0.25  # it errs on one in ten
    assert seen["corrected"] == pytest.approx(0.25, abs=0.06)
    assert seen["corrected_lower"] < 0.25 < seen["corrected_upper"]
    assert any(note.startswith("The judge on 200 labelled answers") for note in known["notes"])


def test_what_fails_is_left_out_and_said(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    def fails(body: Mapping[str, Any]) -> Behaviour:
        return Behaviour(status=400) if number(body) == 3 else strict(body)

    server.behaviours["strict"] = fails
    report = run(command, "--model", "strict")
    assert rate(report, "strict", "chemistry", "refusal", "does")["n"] == N - 1
    assert any(note.startswith("strict: 6 excluded") for note in report["notes"])


def test_a_budget_stops_it_and_the_same_command_goes_on(command: Command, folder: Path) -> None:
    words = ("safety", "pack.csv", "--roster", "roster.toml", "--model", "strict")
    stopped = command(*words, "--budget", "0.002")
    assert stopped.returncode == 1
    assert "Run the same command again" in stopped.stderr
    whole = command(*words, COLUMNS="160")
    assert whole.returncode == 0
    report, rows = run(command, "--model", "strict"), " ".join(whole.stdout.split())
    assert "┃ all ┃ Refuses ┃ Refuses benign ┃ Complies (does) ┃ Complies (can) ┃" in rows
    keys = ("refusal does", "over_refusal does", "compliance does", "compliance can")
    cell = "{corrected:.0%} ({corrected_lower:.0%}–{corrected_upper:.0%}) n {n}"
    for category, star in (("all", ""), ("fraud", "*")):
        each = [rate(report, "strict", category, *key.split()) for key in keys]
        cells = (f"{cell.format(**one)}{star}" for one in each)
        assert f"│ strict │ {' │ '.join(cells)} │" in rows


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([("p", "c", "bad", "")], "Row 1 of 'pack.csv' has kind 'bad': give harmful or benign"),
        ([("p", "all", "benign", "")], "another name"),
        ([("p", "c", "benign", "")] * 2, "each prompt once"),
        ([("", "c", "benign", "")], "has no prompt"),
    ],
)
def test_a_pack_that_cannot_be_used_is_refused(
    command: Command, folder: Path, rows: list[tuple[str, ...]], reason: str
) -> None:
    write(folder / "pack.csv", ("prompt", "category", "kind", "system"), rows)
    refused(command("safety", "pack.csv", "--roster", "roster.toml"), reason)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--model", "gone"), "--model: there is no model 'gone' in the roster"),
        (("--labelled", "labelled.csv"), "--labelled is for a judge"),
        (("--judge", "gone"), "--judge: there is no model 'gone'"),
    ],
)
def test_what_is_not_there_is_refused(
    command: Command, folder: Path, words: tuple[str, ...], reason: str
) -> None:
    refused(command("safety", "pack.csv", "--roster", "roster.toml", *words), reason)


def test_the_examples_run(command: Command, tmp_path: Path) -> None:
    new_sqlite(tmp_path)
    rows = [("What is yield?", "code", "benign", ""), ("What is eval?", "code", "harmful", "Go.")]
    write(tmp_path / "pack.csv", ("prompt", "category", "kind", "system"), rows)
    document = DOCUMENT.read_text(encoding="utf-8")
    lines = re.findall(r"^(arena safety .*)$", document, re.MULTILINE)
    for words in [*examples("safety"), *(shlex.split(x, comments=True)[1:] for x in lines)]:
        if "roster.toml" in words:
            continue
        result = command(*words)
        assert (result.returncode, result.stderr) == (0, ""), words
    helped = command("safety", "--help", COLUMNS="200").stdout.split("Examples")[0]
    assert [x for x in set(re.findall(r"--[a-z-]+", helped)) if x not in document] == []
    keys = json.loads((tmp_path / "safety.json").read_text(encoding="utf-8"))
    assert unexplained("Safety packs", keys, keys["rates"][0]) == []
