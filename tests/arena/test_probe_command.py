"""`arena probe`, as it is typed: examples, formats, files, and what is refused."""

import json
import re
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from arena.play.pace import Sight
from tests.command import Command, examples, refused, unexplained
from tests.faulty_server import Behaviour, faulty_server
from tests.judge.probe.test_audit import votes_file
from tests.judge.probe.test_cards import classes_file, pairs_file
from tests.judge.probe.test_judges import HEAD, rows, written

PAGE = (Path(__file__).parents[2] / "docs/guides/probe.md").read_text(encoding="utf-8")


def given_files(folder: Path) -> None:
    """Write the files that the examples name."""
    duckdb.read_csv(votes_file(folder)).write_parquet(str(folder / "votes.parquet"))
    pairs_file(folder)
    classes_file(folder)
    for place, day in enumerate(("monday", "tuesday", "wednesday")):
        written(folder / f"{day}.csv", rows(wavers=0.1, seed=place))
    lines = [f"{line},{i}" for i in range(3) for line in rows(wavers=0.1, seed=i)]
    written(folder / "runs.csv", lines, f"{HEAD},run")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["similarity", "judge", "board"])
def test_the_examples_of_the_help_run(command: Command, tmp_path: Path, name: str) -> None:
    given_files(tmp_path)
    for words in examples(f"probe {name}"):
        result = command(*words)
        assert (result.returncode, result.stderr) == (0, ""), words


def test_json_goes_to_the_terminal_or_beside_the_page(command: Command, tmp_path: Path) -> None:
    given_files(tmp_path)
    words = ("probe", "judge", "monday.csv", "tuesday.csv")
    printed = json.loads(command(*words, "--format", "json").stdout)
    assert command(*words, "--out", "card.html").stdout == ""
    assert json.loads((tmp_path / "card.json").read_text("utf-8")) == printed
    page = (tmp_path / "card.html").read_text("utf-8")
    assert page == command(*words, "--format", "html").stdout
    assert page.startswith("<!doctype html>")
    assert (audited := printed["audits"][0])["measure"] == "opal"
    assert unexplained("Probes", printed, audited, audited["desiderata"][0]) == []


def test_other_columns_are_named_as_for_a_rating(command: Command, tmp_path: Path) -> None:
    votes = Path(votes_file(tmp_path))
    votes.write_text(votes.read_text().replace("voter", "who", 1), encoding="utf-8")
    words = ("probe", "board", str(votes), "--arenas", "12", "--format", "json")
    assert json.loads(command(*words).stdout)["about"]["voters"] is None
    named = json.loads(command(*words, "--column", "voter=who").stdout)
    assert named["about"]["voters"] == 60


EMBEDDER = """
[[models]]
id = "clay"
name = "Clay"
endpoint = "{url}"
model = "embedder"
"""


def short_pairs(folder: Path, n: int) -> None:
    """Write pairs that only alignment can use, for texts that are all different."""
    lines = [f"a{i},b{i},{i}" for i in range(n)]
    (folder / "short.csv").write_text("\n".join(["reference,text,alike", *lines]) + "\n")


def test_embeddings_get_a_card_and_no_text_is_asked_for_twice(
    command: Command, tmp_path: Path
) -> None:
    short_pairs(tmp_path, 8)
    vectors = [{"index": i, "embedding": [1 + i, 1]} for i in range(16)]
    words = ["probe", "similarity", "short.csv", "--measure", "bm25", "--embeddings", "clay"]
    words += ["--planted", "--seed", "7"]
    places = ("--roster", "roster.toml", "--database", "sqlite:///kept.db", "--format", "json")
    with faulty_server({"embedder": Behaviour(body={"data": vectors})}) as server:
        (tmp_path / "roster.toml").write_text(EMBEDDER.format(url=server.url), encoding="utf-8")
        first = json.loads(command(*words, *places).stdout)
        asked = len(server.requests)
        again = json.loads(command(*words, *places).stdout)
        assert (asked, len(server.requests)) == (1, 1)
    assert len(server.requests[0].body["input"]) == 16
    planted = ["bag of words", "length counter", "random"]
    names = [card["evaluator"] for card in first["cards"]]
    assert names == ["oracle", "BM25", "clay cosine", *planted]
    assert {card["seed"] for card in first["cards"]} == {7}
    cards = first["cards"]
    assert unexplained("Probes", first, first["about"], *cards, *cards[0]["axes"]) == []
    assert first == again


def test_an_embedder_that_fails_ends_in_one_line(command: Command, tmp_path: Path) -> None:
    short_pairs(tmp_path, 3)
    words = ("probe", "similarity", "short.csv", "--embeddings", "clay", "--roster", "r.toml")
    with faulty_server({"embedder": Behaviour(status=401)}) as server:
        (tmp_path / "r.toml").write_text(EMBEDDER.format(url=server.url), encoding="utf-8")
        refused(command(*words, "--database", "sqlite:///kept.db"), "denied")
        refused(command(*words[:-3], "slate", *words[-2:]), "'slate'", "clay")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("board", "votes.csv", "--format", "csv"), '"csv" for --format'),
        (("board", "votes.csv", "--out", "card.png"), "'card.png'"),
        (("board", "votes.csv", "--out", "card.html", "--format", "json"), "as the format does"),
        (("board", "votes.csv", "--out", "no/card.html"), "folder does not exist"),
        (("board", "votes.csv", "--arenas", "3"), "3 simulated arenas"),
        (("board", "missing.csv"), "no such file"),
        (("judge", "missing.csv"), "no such file"),
        (("similarity", "votes.csv"), "The purpose of"),
    ],
)
def test_what_cannot_be_used_ends_in_one_line(
    command: Command, tmp_path: Path, words: tuple[str, ...], text: str
) -> None:
    votes_file(tmp_path)
    refused(command("probe", *words), text)


def test_votes_that_identify_no_rating_have_an_exit_code_of_their_own(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "one.csv").write_text("model_a,model_b,winner\nx,y,model_a\n", encoding="utf-8")
    result = command("probe", "board", "one.csv", "--arenas", "12")
    assert result.returncode == 3
    assert result.stderr.startswith("arena: The other models never won or tied against: x.")


def test_the_document_shows_commands_that_there_are(command: Command, tmp_path: Path) -> None:
    given_files(tmp_path)
    shown = re.findall(r"^arena (probe (?:board|judge) .*)$", PAGE, re.MULTILINE)
    assert len(shown) == 2
    for line in shown:
        words = [*line.split(), *(["--arenas", "12"] if "board" in line else [])]
        result = command(*words)
        assert (result.returncode, result.stderr) == (0, ""), line
    rules = [one.split("%")[0] for one in ("93 to 97%", "a third of", ".9 or more")]
    assert [rule for rule in rules if rule not in PAGE] == []
    for name, size in (("similarity", 300), ("board", 200), ("prompts", 400), ("blindness", 2000)):
        assert f"[default: {size}]" in command("probe", name, "--help", COLUMNS="200").stdout


def test_each_median_of_blindness_stands_below_its_name(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["One begun", "Both begun", "First word", "Both ended", "Last word"]
    sight = Sight("alike", 40, 0.56, 0.02, 1.1, 2.2, 3.3, 4.4, 5.5)
    asked: list[object] = []

    def probe(*_: object, **given: object) -> Sight:
        asked.append(given)
        return sight

    monkeypatch.setattr("arena.play.pace.probe", probe)
    words = ("--battles", "40", "--seed", "7")
    result = command("probe", "blindness", *words, COLUMNS="160")
    assert asked == [{"battles": 40, "seed": 7}] * 5
    assert re.findall(r"(?:One|Both|First|Last) \w+", result.stdout) == names
    shown = [line.split() for line in result.stdout.splitlines() if line.startswith("│ alike")]
    row = "│ alike │ 56.0% │ 2.0% │ 1.1 │ 2.2 │ 3.3 │ 4.4 │ 5.5 │"
    assert (result.returncode, shown) == (1, [row.split()] * 5)
    assert result.stdout.startswith("Pacing: paced, pool: pair. 40 battles per scenario.")
    tells = "! alike: the pace reveals the slow side, or pauses too often.\n"
    assert result.stdout.endswith(tells)
    for right, halted, code in ((0.55, 0.03, 0), (0.551, 0.0, 1), (0.5, 0.031, 1)):
        sight = replace(sight, right=right, halted=halted)
        assert command("probe", "blindness", *words).returncode == code


@pytest.mark.slow
def test_blindness_says_what_tells_and_fails_then(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_PACING", "raw")
    result = command("probe", "blindness", "--battles", "20", "--format", "json")
    report = json.loads(result.stdout)
    assert (result.returncode, report["pacing"], len(report["scenarios"])) == (1, "raw", 5)
    assert unexplained("Probes", report, report["scenarios"][0]) == []
    assert not report["scenarios"][0]["blind"]
    assert report["scenarios"][0]["last_word_s"] > report["scenarios"][0]["first_word_s"]
