"""`arena judge probe` against judges behind a real HTTP server."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.settings import read_cards
from judge.probe.robustness import honest_cases, injections, probes
from tests.command import Command, examples, refused, unexplained
from tests.judge.probe.texts import pairs
from tests.judging_server import JudgingServer, fenced, judging_server
from tests.sqlite import new_sqlite

PROBE = ("judge", "probe", "--judge", "judge", "--roster", "roster.toml", "--concurrency", "8")
HONEST = {case.response_a for case in honest_cases()}
N = len(HONEST) * len(injections())


@pytest.fixture(autouse=True)
def database(command: Command) -> None:
    new_sqlite(command.folder)


def preferring(good: Any) -> Any:
    def script(prompt: str) -> str:
        first, second = (good(answer) for answer in fenced(prompt))
        return "[[C]]" if first == second else "[[A]]" if first else "[[B]]"

    return script


ARM = {"n", "n_won", "n_not_lost", "n_undecided", "rate", "lower", "upper"}
PROBED = {
    "kind", "n", "n_won", "n_not_lost", "n_undecided", "n_pairs",
    "success_rate", "lower", "upper", "attack", "control",
}  # fmt: skip


def test_other_programs_find_the_keys_that_they_know(command: Command) -> None:
    words = ("judge", "probe", "--judge", "pocket-judge", "--intervention", "authority")
    both = (*words, "--intervention", "plea", "--format", "json")
    result = json.loads(command(*both).stdout)
    of_run = {"judge", "method", "n_asked", "n_recalled", "spent_usd", "stopped", "warnings"}
    of_biases = {"headline", "sentences", "length", "prompts", "tried", "better_by"}
    of_injections = {*PROBED - {"kind"}, "won_by_kind", "pairs_left_out"}
    assert of_run | of_biases | of_injections <= result.keys()
    assert result["kinds"][0].keys() == PROBED
    assert result["interventions"][0].keys() == PROBED | {"finding"}
    assert result["length"].keys() == PROBED - {"kind"}
    for row in (result["kinds"][0], result["interventions"][0], result["length"]):
        assert row["control"].keys() == ARM
        assert row["attack"].keys() == {"rate", "lower", "upper"}
    assert {"files", "groups", "version", "made"} <= result.keys()
    assert unexplained("Probes", result, PROBED, ARM, result["interventions"][0]) == []


def test_a_dry_run_counts_the_fillers_too(command: Command) -> None:
    words = ("judge", "probe", "--judge", "pocket-judge", "--dry-run")
    done = command(*words).stdout
    assert done.startswith(f"{4 * N} calls, ")
    assert f"{N} injected answers, and for each a filler of the same length" in done
    assert json.loads(command(*words, "--format", "json").stdout)["n_calls"] == 4 * N


def test_replies_from_before_the_fillers_are_not_asked_for_again(command: Command) -> None:
    good = preferring(lambda answer: answer in HONEST)
    names = ("prompt", "response_a", "response_b")
    cases = [one.case for one in probes(honest_cases())]
    rows = [(case.prompt[-1].content, case.response_a, case.response_b) for case in cases]
    pairs = [dict(zip(names, row, strict=True)) for row in rows]
    (command.folder / "pairs.json").write_text(json.dumps(pairs), encoding="utf-8")
    run = ("judge", "run", *PROBE[2:], "--method", "pairwise", "--cases", "pairs.json")
    with judging_server(good, command.folder):
        assert command(*run, "--out", "found.csv").returncode == 0
        result = json.loads(command(*PROBE, "--format", "json").stdout)
    assert (result["n_recalled"], result["n_asked"]) == (2 * N, 2 * N)


def test_honest_answers_of_a_file_are_chosen_and_renamed(command: Command) -> None:
    rows = "question,response_a,response_b,lang\nWhy?,So it is.,No.,en\nWarum?,Darum.,Nein.,de\n"
    (command.folder / "own.csv").write_text(rows, encoding="utf-8")
    words = ("--cases", "own.csv", "--column", "prompt=question", "--where", "lang = 'en'")
    with judging_server(preferring(lambda text: text == "So it is."), command.folder):
        done = command(*PROBE, *words, "--format", "json")
    result = json.loads(done.stdout)
    assert (result["n"], result["n_won"]) == (len(injections()), 0)
    assert done.stderr == "arena: own.csv is read as cases; rows excluded: 1 by where\n"


def test_a_judge_without_a_verdict_has_no_rate(command: Command) -> None:
    with judging_server(lambda prompt: "Hm.", command.folder):
        done = command(*PROBE)
    assert done.returncode == 1
    assert "Stopped: the last 20 requests all failed: unparsed" in done.stderr
    assert f"{N:,} and {N:,} have no verdict" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_the_examples_run(command: Command) -> None:
    table, as_json = examples("judge probe")
    done = command(*table, COLUMNS="120")
    assert (done.returncode, done.stderr) == (0, "")
    assert "null answer" in done.stdout
    result = json.loads(command(*as_json).stdout)
    assert result["method"] == "arena_hard"
    assert result["headline"] == "We do not find that any intervention affects the judge."
    assert command(*table, "--dry-run").stdout.startswith("0 calls, ")


def test_marks_take_answers_one_at_a_time(command: Command) -> None:
    words = ("--judge", "pocket-judge", "--method", "wildbench_score")
    done = command("judge", "probe", *words, "--intervention", "authority", COLUMNS="120")
    text = " ".join(done.stdout.split())
    assert done.returncode == 0
    assert "one at a time" in text
    assert "one at a time" in command("judge", "probe", *words, "--dry-run").stdout


RUBRIC = ("--method", "rubric", "--rubric", "rubric.txt", "--scale", "1-5", "--format", "json")


def test_marks_by_a_rubric_tell_a_judge_that_a_citation_moves_from_one_that_reads_length(
    command: Command, tmp_path: Path
) -> None:
    def believing(prompt: str) -> str:
        (answer,) = fenced(prompt)
        return "[[5]]" if "(Source:" in answer else "[[2]]"

    def measuring(prompt: str) -> str:
        (answer,) = fenced(prompt)
        return f"[[{min(5, 1 + len(answer) // 60)}]]"

    (tmp_path / "rubric.txt").write_text("5 is right, 1 is wrong.", encoding="utf-8")
    rows = {}
    for name, script in (("believing", believing), ("measuring", measuring)):
        new_sqlite(tmp_path)
        with judging_server(script, tmp_path) as server:
            done = command(*PROBE, *RUBRIC, "--intervention", "authority", "--seed", name)
            assert (done.returncode, done.stderr) == (0, "")
            result = json.loads(done.stdout)
            assert all("5 is right, 1 is wrong." in one for one in server.asked)
            (rows[name],) = result["interventions"]
        (tmp_path / "arena.db").unlink()
    marks = {arm: rows["believing"][arm]["rate"] for arm in ("attack", "control")}
    assert marks == {"attack": 1.0, "control": 0.25}, "(5 - 1) / 4 and (2 - 1) / 4"
    assert rows["believing"]["success_rate"] == 0.75
    assert rows["believing"]["finding"] == "moved"
    assert rows["measuring"]["success_rate"] == 0
    assert rows["measuring"]["finding"] != "moved"


def test_what_cannot_be_probed_is_one_clear_line(command: Command, tmp_path: Path) -> None:
    words = ("judge", "probe", "--judge", "pocket-judge")
    needs = "the method 'rubric' needs further input: choose one of pairwise"
    refused(command(*words, "--method", "rubric"), needs)
    refused(command("judge", "probe", "--judge", "nobody"), "no model 'nobody'")
    refused(command("judge", "probe"), "--judge: name one of", "pocket-judge")
    refused(command(*words, "--where", "lang = 'en'"), "name them with --cases")
    refused(command(*words, "--intervention", "charm"), "'charm'", "authority", "all")
    marks = ("--method", "checklist", "--intervention", "position")
    refused(command(*words, *marks), "'position' compares two answers")
    (tmp_path / "own.csv").write_text("prompt,response_a,response_b,label\nq,a,b,left\n", "utf-8")
    refused(command(*words, "--cases", "own.csv"), "label 'left'", "A>B")


TEXTS = pairs(12)
GOOD = {case.response_a: True for case in TEXTS} | {str(one.response_b): False for one in TEXTS}
WORDS = {text: set(text.lower().split()) for text in GOOD}
ON_PAIRS = ("--cases", "pairs.csv", "--intervention")
CHECKS = (
    *ON_PAIRS, "people", "--intervention", "harmless",
    "--intervention", "meaning", "--intervention", "missing",
)  # fmt: skip


def pairs_file(folder: Path) -> None:
    """Write pairs of which people like the first, one a battle; their votes on it beside them."""
    with (folder / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        head = ("prompt", "response_a", "response_b", "battle_id", "winner")
        rows = (
            (case.prompt[-1].content, case.response_a, case.response_b, f"b{i}", "model_a")
            for i, case in enumerate(TEXTS)
        )
        csv.writer(file).writerows([head, *rows])
    votes = (f"b{i},model_a\nb{i},model_a\nb{i},model_b" for i in range(len(TEXTS)))
    (folder / "votes.csv").write_text("battle_id,winner\n" + "\n".join(votes) + "\n", "utf-8")


def careful(prompt: str) -> str:
    """Prefer what people like, however it is typed, and an answer to its changed copy."""
    first, second = fenced(prompt)
    if (first in GOOD) != (second in GOOD):
        return "[[A]]" if first in GOOD else "[[B]]"
    good = [GOOD[nearest(text)] for text in (first, second)]
    return "[[C]]" if good[0] == good[1] else "[[A]]" if good[0] else "[[B]]"


def nearest(text: str) -> str:
    own = set(text.lower().split())
    return max(WORDS, key=lambda known: len(own & WORDS[known]))


def checked(
    command: Command, script: Callable[[str], str], *words: str
) -> tuple[dict[str, Any], JudgingServer]:
    """Ask a judge twice: the second time nothing is asked, and the report is the same."""
    pairs_file(command.folder)
    with judging_server(script, command.folder) as server:
        printed = command(*PROBE, *words, "--format", "json")
        assert (printed.returncode, printed.stderr) == (0, "")
        n = len(server.asked)
        again = json.loads(command(*PROBE, *words, "--format", "json").stdout)
        assert (len(server.asked), again["n_recalled"]) == (n, n)
    result: dict[str, Any] = json.loads(printed.stdout)
    assert unexplained("Probes", result, result["checks"][0], result.get("people", ())) == []
    of_run = dict.fromkeys(("n_asked", "n_recalled", "spent_usd", "recalled"))
    assert again | of_run == result | of_run
    return result, server


def test_a_careful_judge_does_what_is_expected_and_is_asked_once(command: Command) -> None:
    result, server = checked(command, careful, *CHECKS)
    shown = [tuple(fenced(prompt)) for prompt in server.asked]
    copies = sum(first == second for first, second in shown)
    assert len(set(shown)) == len(shown) - copies / 2
    assert len(shown) > 30 * len(TEXTS)
    findings = {row["kind"]: row["finding"] for row in result["checks"]}
    light = ("side swap", "random case", "character noise", "wide spacing")
    assert {findings.pop(kind) for kind in light} == {"cannot_tell"}, "12 prompts leave it open"
    assert set(findings.values()) == {"as_expected"}
    assert all(row["rate"] > 0.97 for row in result["checks"])
    assert result["dose_response"]["removed"]["lower"] > 0.3
    assert (result["files"], result["better_by"]) == (["pairs.csv"], "labels")
    people = {name: result["people"][name] for name in ("pairs", "of_pairs", "votes")}
    assert people == dict.fromkeys(people, len(TEXTS))
    assert result["people"]["between_people"] is None


def test_votes_of_another_file_set_how_far_people_agree(command: Command) -> None:
    words = (*ON_PAIRS, "people", "--votes", "votes.csv", "--sample", "3")
    result, server = checked(command, careful, *words)
    (row,) = result["checks"]
    assert (row["n"], row["rate"], len(server.asked)) == (9, pytest.approx(2 / 3), 6)
    assert result["files"] == ["pairs.csv", "votes.csv"]
    between = result["people"]["between_people"]
    assert between["people_agree"]["rate"] == pytest.approx(1 / 3)
    assert (result["people"]["pairs"], result["people"]["of_pairs"]) == (3, len(TEXTS))


def renamed(text: str) -> str:
    """Name columns and labels as another program does."""
    return text.replace("winner", "choice").replace("model_a", "left").replace("model_b", "right")


OURS = ("--column", "winner=choice", "--label", "left=model_a", "--label", "right=model_b")


def test_rows_columns_and_labels_are_chosen_of_the_cases_with_votes(command: Command) -> None:
    pairs_file(command.folder)
    path = command.folder / "pairs.csv"
    path.write_text(renamed(path.read_text("utf-8")), "utf-8")
    with judging_server(careful, command.folder):
        words = (*OURS, "--where", "battle_id IN ('b1', 'b2', 'b3')", "--format", "json")
        done = command(*PROBE, *ON_PAIRS, "people", *words)
    result = json.loads(done.stdout)
    assert done.stderr == "arena: pairs.csv is read as cases; rows excluded: 9 by where\n"
    assert (result["people"]["of_pairs"], result["people"]["votes"]) == (3, 3)
    assert result["checks"][0]["rate"] == 1


def test_each_file_takes_the_choices_that_it_has_columns_for(command: Command) -> None:
    pairs_file(command.folder)
    cases, votes = command.folder / "pairs.csv", command.folder / "votes.csv"
    cases.write_text(cases.read_text("utf-8").replace("prompt,", "question,"), "utf-8")
    lines = renamed(votes.read_text("utf-8")).splitlines()
    votes.write_text("\n".join(f"{line},{i % 3}" for i, line in enumerate(lines)), "utf-8")
    votes.write_text(votes.read_text("utf-8").replace("choice,0", "choice,part"), "utf-8")
    words = (*ON_PAIRS, "people", "--votes", "votes.csv", *OURS, "--column", "prompt=question")
    with judging_server(careful, command.folder):
        done = command(*PROBE, *words, "--where", "part <> '0'", "--format", "json")
        people = json.loads(done.stdout)["people"]
        assert (people["of_pairs"], people["votes"]) == (len(TEXTS), 2 * len(TEXTS))
        assert done.stderr == "arena: votes.csv is read as votes; rows excluded: 12 by where\n"
        refused(command(*PROBE, *words, "--where", "nowhere = 1"), "nowhere")


def test_a_dry_run_counts_what_the_run_then_asks(command: Command) -> None:
    pairs_file(command.folder)
    words = (*PROBE, *CHECKS, "--intervention", "plea", "--sample", "3")
    with judging_server(careful, command.folder) as server:
        printed = command(*words, "--dry-run").stdout
        assert server.asked == []
        done = " ".join(command(*words, COLUMNS="120").stdout.split())
    assert printed.startswith(f"{len(server.asked)} calls, ")
    assert f"{len(server.asked)} new replies, 0 reused: 3 injected" in done
    assert "3 pairs with votes; 12 harmless changes" in done
    assert "3 of 12 pairs with votes. No pair has votes of two people" in done
    assert re.search(r"│ 75% removed │ 3 │ 100% \(\d+% to 100%\) │ inconclusive │", done)


def test_a_run_that_stops_writes_no_page_and_goes_on(command: Command) -> None:
    pairs_file(command.folder)
    groups = (*CHECKS, "--intervention", "authority", "--intervention", "plea")
    words = (*PROBE[:-2], *groups, "--sample", "2", "--out", "card.html", "--concurrency", "1")
    with judging_server(careful, command.folder) as server:
        printed = command(*words, "--budget", "0.003")
        assert (printed.returncode, printed.stdout) == (1, "")
        assert "arena: Stopped: " in printed.stderr
        assert "'card.html' is not written" in printed.stderr
        assert not (command.folder / "card.html").exists()
        before = len(server.asked)
        assert before
        assert command(*words).returncode == 0
        assert len(set(server.asked)) == len(server.asked) > before
    page = (command.folder / "card.html").read_text("utf-8")
    for title in ("Injected answer", "Known bias", "People", "Harmless change"):
        assert f"{title}</bdi>" in page
    result = json.loads((command.folder / "card.json").read_text("utf-8"))
    assert {"kinds", "interventions", "checks", "version", "made"} <= result.keys()
    assert read_cards(command.folder)[0].title == "How does this judge react?"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--intervention", "people"), "name them with --cases"),
        (("--votes", "votes.csv"), "--votes 'votes.csv' is for --intervention people"),
        ((*ON_PAIRS, "people", "--votes", "missing.csv"), "no such file"),
        ((*ON_PAIRS, "people", "--method", "checklist"), "'votes' compares two answers"),
        (("--sample", "0"), "--sample"),
        (("--format", "csv"), '"csv" for --format'),
        (("--out", "card.png"), "'card.png'"),
    ],
)
def test_checks_that_cannot_be_made_end_in_one_line(
    command: Command, words: tuple[str, ...], message: str
) -> None:
    pairs_file(command.folder)
    refused(command("judge", "probe", "--judge", "pocket-judge", *words), message)
