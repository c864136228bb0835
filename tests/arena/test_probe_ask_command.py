"""`arena probe ask` against judges behind a real HTTP server."""

import csv
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command import Command, examples, refused
from tests.judge.probe.texts import voted
from tests.judging_server import JudgingServer, fenced, judging_server
from tests.sqlite import new_sqlite

ASK = ("probe", "ask", "--judge", "judge", "--roster", "roster.toml", "--cases", "pairs.csv")
N = 12
PAIRS = voted(N)
GOOD = dict.fromkeys(PAIRS.responses_a, True) | dict.fromkeys(PAIRS.responses_b, False)
WORDS = {text: set(text.lower().split()) for text in GOOD}


def pairs_file(folder: Path) -> None:
    """Write pairs of which people like the first, one a battle; their votes on it beside them."""
    with (folder / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        rows = zip(PAIRS.prompts, PAIRS.responses_a, PAIRS.responses_b, strict=True)
        head = ("prompt", "response_a", "response_b", "battle_id", "winner")
        table = ([*row, f"b{i}", "model_a"] for i, row in enumerate(rows))
        csv.writer(file).writerows([head, *table])
    votes = (f"b{i},model_a\nb{i},model_a\nb{i},model_b" for i in range(N))
    (folder / "votes.csv").write_text("battle_id,winner\n" + "\n".join(votes) + "\n", "utf-8")


def careful(prompt: str) -> str:
    """Prefer what people like, however it is typed, and a response to its changed copy."""
    first, second = fenced(prompt)
    if (first in GOOD) != (second in GOOD):
        return "[[A]]" if first in GOOD else "[[B]]"
    good = [GOOD[nearest(text)] for text in (first, second)]
    return "[[C]]" if good[0] == good[1] else "[[A]]" if good[0] else "[[B]]"


def nearest(text: str) -> str:
    own = set(text.lower().split())
    return max(WORDS, key=lambda known: len(own & WORDS[known]))


def coin(prompt: str) -> str:
    """Draw lots, the same for the same two answers in the same order."""
    digest = hashlib.blake2b("|".join(fenced(prompt)).encode()).digest()
    return "[[A]]" if digest[0] % 2 else "[[B]]"


def asked(
    command: Command, script: Callable[[str], str], *words: str
) -> tuple[dict[str, Any], JudgingServer]:
    """Ask a judge for its card, twice: the second time nothing is asked."""
    new_sqlite(command.folder)
    pairs_file(command.folder)
    with judging_server(script) as server:
        server.roster(command.folder)
        printed = command(*ASK, *words, "--format", "json")
        assert (printed.returncode, printed.stderr) == (0, "")
        n = len(server.asked)
        again = command(*ASK, *words, "--format", "json")
        assert again.stdout == printed.stdout
        assert len(server.asked) == n
    result: dict[str, Any] = json.loads(printed.stdout)
    return result, server


def axes(result: dict[str, Any]) -> dict[str, Any]:
    (card,) = result["cards"]
    return {axis["name"]: axis for axis in card["axes"]}


def test_a_careful_judge_is_near_one_and_is_asked_once(command: Command) -> None:
    result, server = asked(command, careful)
    shown = [tuple(fenced(prompt)) for prompt in server.asked]
    assert len(set(shown)) == len(shown) > 15 * N
    by_name = axes(result)
    assert list(by_name) == ["alignment", "robustness", "sensitivity"]
    assert by_name["alignment"]["value"] == 1
    assert by_name["robustness"]["value"] > 0.97
    assert by_name["sensitivity"]["lower"] > 0.3
    assert {axis["clusters"] for axis in by_name.values()} == {N}
    about = {
        name: result["about"][name] for name in ("files", "pairs", "votes", "judge", "method")
    }
    assert about == {
        "files": ["pairs.csv"],
        "pairs": N,
        "votes": N,
        "judge": "judge",
        "method": "pairwise",
    }


def test_a_coin_is_near_zero(command: Command) -> None:
    by_name = axes(asked(command, coin)[0])
    for axis in by_name.values():
        assert axis["lower"] <= 0 <= axis["upper"], axis["name"]
    assert by_name["robustness"]["value"] < 0.2


def test_a_judge_that_likes_the_first_place_is_caught_by_the_swap(command: Command) -> None:
    result, _ = asked(command, lambda prompt: "[[A]]", "--sample", "4")
    parts = {part["name"]: part["value"] for part in axes(result)["robustness"]["parts"]}
    assert (parts["side swap"], parts["wide spacing"]) == (0, 1)
    assert (result["about"]["pairs"], result["about"]["of_pairs"]) == (4, N)


def test_votes_of_another_file_tell_how_far_people_agree(command: Command) -> None:
    result, _ = asked(command, careful, "--votes", "votes.csv", "--sample", "3")
    parts = {part["name"]: part["value"] for part in axes(result)["alignment"]["parts"]}
    assert result["about"]["files"] == ["pairs.csv", "votes.csv"]
    assert result["about"]["votes"] == 9
    assert parts["votes.csv, people agree"] == pytest.approx(1 / 3)
    assert axes(result)["alignment"]["value"] == pytest.approx(1 / 3)


def renamed(text: str) -> str:
    """Name columns and labels as somebody else does."""
    return text.replace("winner", "choice").replace("model_a", "left").replace("model_b", "right")


OURS = ("--column", "winner=choice", "--label", "left=model_a", "--label", "right=model_b")


def test_rows_columns_and_labels_are_chosen_of_the_cases(command: Command) -> None:
    new_sqlite(command.folder)
    pairs_file(command.folder)
    path = command.folder / "pairs.csv"
    path.write_text(renamed(path.read_text("utf-8")), "utf-8")
    with judging_server(careful) as server:
        server.roster(command.folder)
        words = (*OURS, "--where", "battle_id IN ('b1', 'b2', 'b3')", "--format", "json")
        done = command(*ASK, *words)
    result = json.loads(done.stdout)
    assert done.stderr == "arena: pairs.csv is read as cases; rows left out: 9 by where\n"
    assert (result["about"]["of_pairs"], result["about"]["votes"]) == (3, 3)
    assert axes(result)["alignment"]["value"] == 1


def test_each_file_takes_the_choices_that_it_has_columns_for(command: Command) -> None:
    new_sqlite(command.folder)
    pairs_file(command.folder)
    cases, votes = command.folder / "pairs.csv", command.folder / "votes.csv"
    cases.write_text(cases.read_text("utf-8").replace("prompt,", "question,"), "utf-8")
    lines = renamed(votes.read_text("utf-8")).splitlines()
    votes.write_text("\n".join(f"{line},{i % 3}" for i, line in enumerate(lines)), "utf-8")
    votes.write_text(votes.read_text("utf-8").replace("choice,0", "choice,part"), "utf-8")
    words = ("--votes", "votes.csv", *OURS, "--column", "prompt=question", "--where")
    with judging_server(careful) as server:
        server.roster(command.folder)
        done = command(*ASK, *words, "part <> '0'", "--format", "json")
        about = json.loads(done.stdout)["about"]
        assert (about["of_pairs"], about["votes"]) == (N, 2 * N)
        assert done.stderr == "arena: votes.csv is read as votes; rows left out: 12 by where\n"
        refused(command(*ASK, *words, "nowhere = 1"), "nowhere")


def test_a_dry_run_says_what_the_run_then_asks(command: Command) -> None:
    new_sqlite(command.folder)
    pairs_file(command.folder)
    with judging_server(careful) as server:
        server.roster(command.folder)
        printed = command(*ASK, "--sample", "3", "--dry-run")
        assert server.asked == []
        done = command(*ASK, "--sample", "3", COLUMNS="120")
    assert printed.stdout.startswith(f"{len(server.asked)} calls, ")
    assert f"{len(server.asked)} replies asked for now, 0 known before." in done.stdout
    assert done.stdout.startswith("Files: pairs.csv. Pairs: 3 of 12, 3 votes. Seed: 0.")


def test_a_run_that_stops_makes_no_card_and_goes_on(command: Command) -> None:
    new_sqlite(command.folder)
    pairs_file(command.folder)
    words = (*ASK, "--sample", "2", "--out", "card.html", "--concurrency", "1")
    with judging_server(careful) as server:
        server.roster(command.folder)
        printed = command(*words, "--budget", "0.003")
        assert (printed.returncode, printed.stdout) == (1, "")
        assert "arena: Stopped: " in printed.stderr
        assert not (command.folder / "card.html").exists()
        before = len(server.asked)
        assert before
        assert command(*words).returncode == 0
        assert len(set(server.asked)) == len(server.asked) > before
    page = (command.folder / "card.html").read_text("utf-8")
    assert "How good is this judge?" in page
    result = json.loads((command.folder / "card.json").read_text("utf-8"))
    assert result["cards"][0]["definition"] == "asked by the method pairwise"


def test_the_examples_of_the_help_run(command: Command, tmp_path: Path) -> None:
    new_sqlite(tmp_path)
    pairs_file(tmp_path)
    dry, page = examples(command, "probe ask")
    assert re.match(r"2\d\d calls, ", command(*dry).stdout)
    printed = command(*page)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert (tmp_path / "judge.html").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--method", "rubric"),
            "the method 'rubric' needs something else: choose one of pairwise",
        ),
        (("--sample", "1"), "--sample 1"),
        (("--judge", "nobody"), "no model 'nobody'"),
        (("--votes", "missing.csv"), "no such file"),
        (("--format", "csv"), '"csv" for --format'),
        (("--out", "card.png"), "'card.png'"),
    ],
)
def test_what_cannot_be_used_ends_in_one_line(
    command: Command, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    new_sqlite(tmp_path)
    pairs_file(tmp_path)
    start = ("probe", "ask", "--judge", "pocket-judge", "--cases", "pairs.csv")
    refused(command(*start, *words), message)
