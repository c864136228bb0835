"""`arena gate`, as a job of continuous integration types it."""

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.commands.decide import EXITS
from judge.render.text import render
from judge.studies.licence import read_licence
from tests.command import Command, Ran, examples, options_of, refused, run, unexplained
from tests.faulty_server import Behaviour, faulty_server
from tests.judge.studies.licensed import BY, World
from tests.judge.studies.licensed import write as write_world
from tests.rating.gated import MODELS, Crowd, Judged
from tests.serving import Served, served_by, side_text

MARGIN = ("--margin", "40")
ASKED = ("gate", "--candidate", "umber", "--incumbent", "basalt", *MARGIN)
WINNERS = np.array(["model_b", "model_a"])
PROMPTS = 400


def write(folder: Path, lead: float, voters: int = 250, **crowd: Any) -> None:
    cast = Crowd(lead=lead, taste=0.3, prompts=PROMPTS, **crowd).draw(
        voters, np.random.default_rng(1)
    )
    rows = [
        f"p{p},{MODELS[a]},{MODELS[b]},{WINNERS[won]},v{v}"
        for p, (a, b), won, v in zip(
            cast.prompt, cast.pairs.tolist(), cast.won, cast.voter, strict=True
        )
    ]
    write_rows(folder / "votes.csv", "prompt_id,model_a,model_b,winner,voter", rows)


def write_rows(path: Path, head: str, rows: list[str]) -> None:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")


def write_judged(folder: Path, judged: Judged, voters: int) -> None:
    """Write votes and verdicts of the judge, whose name is owl."""
    items, people, verdicts = judged.upto(voters)
    sides = [",".join(MODELS[model] for model in pair) for pair in items.pairs.tolist()]
    votes = [
        f"p{items.prompt[i]},{sides[i]},{WINNERS[int(label > 0)]},v{voter}"
        for i, label, voter in zip(people.item, people.label, people.rater, strict=True)
    ]
    write_rows(folder / "votes.csv", "prompt_id,model_a,model_b,winner,voter", votes)
    asked = ",".join(BY.values())
    given = [
        f"p{items.prompt[i]},{sides[i]},{WINNERS[int(label > 0)]},both,{asked}"
        for i, label in zip(verdicts.item, verdicts.label, strict=True)
    ]
    head = f"prompt_id,model_a,model_b,winner,order,{','.join(BY)}"
    write_rows(folder / "verdicts.csv", head, given)


def write_day(folder: Path) -> None:
    """Write the votes and verdicts of docs/guides/gate-and-compare.md."""
    rng = np.random.default_rng(11)
    cast = Crowd(lead=0.25, taste=0.3, liking=1.5, prompts=5000).draw(400, rng)
    judged = cast.judged(8000, rng, favour=0.5, noise=0.2)
    write_judged(folder, judged, 4)
    (folder / "votes.csv").rename(folder / "first-day.csv")
    write_judged(folder, judged, 400)


def asked(command: Command, *words: str) -> dict[str, Any]:
    result = command(*ASKED, "votes.csv", *words, "--format", "json")
    assert result.stderr == ""
    report: dict[str, Any] = json.loads(result.stdout)
    assert result.returncode == EXITS[report["passes"]]
    return report


@pytest.mark.parametrize(
    ("lead", "voters", "answer", "code"),
    [(0.6, 250, "better", 0), (-0.8, 250, "worse", 1), (0.0, 4, "cannot tell", 3)],
)
def test_a_gate_passes_a_better_one_fails_a_worse_one_and_cannot_tell_by_20_votes(
    command: Command, tmp_path: Path, lead: float, voters: int, answer: str, code: int
) -> None:
    write(tmp_path, lead, voters, per_voter=5)
    result = command(*ASKED, "votes.csv", "--format", "json", "--out", "gate")
    report = json.loads(result.stdout)
    assert (result.returncode, result.stderr, report["answer"]) == (code, "", answer)
    assert (report["margin"], report["looks"]) == (40, "any")
    assert report["votes"]["judge"] == 0
    assert (report["needed"] > 0) is (code == 3)
    files = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "gate").iterdir()}
    assert files.pop("gate.json") == result.stdout
    for form, name in (("md", "gate.md"), ("junit", "gate.xml")):
        again = command(*ASKED, "votes.csv", "--format", form)
        assert (again.returncode, again.stdout) == (code, files[name])


def test_a_better_one_can_be_required(command: Command, tmp_path: Path) -> None:
    write(tmp_path, 0.0, 1500)
    even = asked(command)
    assert (even["answer"], even["passes"]) == ("not worse", True)
    better = asked(command, "--require", "better")
    assert (better["answer"], better["passes"]) == ("not worse", None)
    write(tmp_path, -0.8)
    assert asked(command, "--require", "better")["passes"] is False


@pytest.mark.parametrize(("verdicts", "known"), [((), "nobody"), (("verdicts.csv",), "voter")])
def test_numbered_looks_use_the_planned_votes_alone_and_say_so(
    command: Command, tmp_path: Path, verdicts: tuple[str, ...], known: str
) -> None:
    """The answer on all is that on the first 600 votes on either, by their times if known."""
    rng = np.random.default_rng(4)
    cast = Crowd(lead=0.3, prompts=5000).draw(400, rng)
    write_judged(tmp_path, cast.judged(2000, rng), 400)
    head, *rows = (tmp_path / "votes.csv").read_text().splitlines()
    head = f"{head.replace('voter', known)},ts"
    first = np.cumsum(["umber" in row or "basalt" in row for row in rows])
    rows = [f"{row},{1767225600 + n}" for n, row in enumerate(rows)]
    write_rows(tmp_path / "votes.csv", head, rows if verdicts else rows[::-1])
    words = (*verdicts, "--looks", "3", "--planned", "600")
    whole = asked(command, *words)
    write_rows(tmp_path / "votes.csv", head, rows[: int(np.searchsorted(first, 600)) + 1])
    part = asked(command, *words)
    assert whole["votes"]["people"] == 600
    [unused] = {*whole["warnings"]} - {*part["warnings"]}
    assert unused.endswith("votes on either model after the planned 600 are not used.")
    assert (whole["looks"], whole["planned"], whole["power"]) == (3, 600, 0.8)
    assert whole["difference"] == pytest.approx(part["difference"])


@pytest.mark.parametrize(
    ("lead", "voters", "counts", "child"),
    [
        (0.6, 250, ("0", "0"), None),
        (-0.8, 250, ("1", "0"), "failure"),
        (0.0, 4, ("0", "1"), "skipped"),
    ],
)
def test_junit_has_one_suite_of_one_test(
    command: Command,
    tmp_path: Path,
    lead: float,
    voters: int,
    counts: tuple[str, str],
    child: str | None,
) -> None:
    """Elements, their order and attributes as the schema of JUnit's Ant task has them."""
    write(tmp_path, lead, voters, per_voter=5)
    suite = ET.fromstring(command(*ASKED, "votes.csv", "--format", "junit").stdout)
    assert suite.tag == "testsuite"
    assert (suite.get("failures"), suite.get("skipped")) == counts
    assert (suite.get("tests"), suite.get("errors")) == ("1", "0")
    [test] = suite
    assert (test.tag, {*test.keys()}) == ("testcase", {"name", "classname", "time"})
    assert [one.tag for one in test] == [*([child] if child else []), "system-out"]
    if child is not None:
        assert {*test[0].keys()} == {"message", "type"}


def test_a_model_s_name_is_no_markup_anywhere(command: Command, tmp_path: Path) -> None:
    write(tmp_path, 0.6, 60)
    votes = (tmp_path / "votes.csv").read_text()
    name = "<script>alert(1)</script>]]>&|\x08x"
    (tmp_path / "votes.csv").write_text(votes.replace("umber", name))
    words = ("gate", "--candidate", name, "--incumbent", "basalt", *MARGIN, "votes.csv")
    suite = ET.fromstring(command(*words, "--format", "junit").stdout)
    assert "<script>alert(1)</script>]]>&|\ufffdx against" in (suite[0].get("name") or "")
    page = render(command(*words, "--format", "md").stdout)
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_markdown_is_a_heading_and_a_table(command: Command, tmp_path: Path) -> None:
    write(tmp_path, 0.6)
    page = render(command(*ASKED, "votes.csv", "--format", "md").stdout)
    assert "Passes: umber is better than basalt." in page
    assert re.search(r"<td[^>]*>Lead</td>\s*<td[^>]*>\+\d+ points \(\+\d+ to \+\d+", page)
    lines = (tmp_path / "votes.csv").read_text().splitlines()
    (tmp_path / "votes.csv").write_text("\n".join(lines[:13]) + "\n")
    head, *_ = command(*ASKED, "votes.csv", "--format", "md").stdout.splitlines()
    assert re.fullmatch("### Inconclusive: umber may or may not be worse than basalt .*", head)


LICENCE = ("study", "judge", "old-votes.csv", "old-verdicts.csv", "--rounds=100", "--certificate")


def license_owl(command: Command, folder: Path, favoured: int) -> None:
    """Licence the judge; of its six models the first ones are favoured."""
    world = World(favoured=favoured, favour=0.5, n_models=6)
    write_world(folder, "old-", world.draw(np.random.default_rng(3), 4000))
    result = command(*LICENCE, "owl.toml", "--margin", "12")
    assert result.returncode == 0, result.stderr


def write_new(folder: Path, candidate: str, incumbent: str, rate: float, n: int = 600) -> None:
    """Write verdicts on a candidate that no vote is on, and the votes of the others."""
    rng = np.random.default_rng(5)
    asked = ",".join(BY.values())
    rows = [
        f"q{i},{candidate},{incumbent},{WINNERS[int(rng.random() < rate)]},.9,{asked}"
        for i in range(n)
    ]
    head = f"prompt_id,model_a,model_b,winner,preference,{','.join(BY)}"
    write_rows(folder / "verdicts.csv", head, rows)
    old = (folder / "old-votes.csv").read_text().splitlines()
    (folder / "votes.csv").write_text("\n".join(x for x in old if candidate not in x) + "\n")


def alone(command: Command, candidate: str, *words: str) -> dict[str, Any]:
    named = ("gate", "--candidate", candidate, "--incumbent", "flint", *MARGIN)
    result = command(*named, "votes.csv", "verdicts.csv", *words, "--format", "json")
    assert result.returncode in (0, 1, 3), result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_a_judge_answers_alone_under_a_licence_and_says_so(
    command: Command, tmp_path: Path
) -> None:
    license_owl(command, tmp_path, 1)
    write_new(tmp_path, "umber", "flint", 0.8)
    without = alone(command, "umber")
    assert (without["answer"], without["by"]) == ("cannot tell", "nothing")
    assert without["why"] == "Nobody voted on umber yet."
    report = alone(command, "umber", "--certificate", "owl.toml")
    assert (report["answer"], report["by"], report["passes"]) == ("better", "judge alone", True)
    assert report["votes"]["judge"] == 600
    assert report["level"] == 0.975
    # The win rate of the two, less what the judge gave the one more than the other when graded.
    errors = {one.name: one.error or 0 for one in read_licence(tmp_path / "owl.toml").models}
    won = (tmp_path / "verdicts.csv").read_text().count(",flint,model_a,") / 600
    rate = won - (errors["umber"] - errors["flint"]) / 100
    points = 400 * np.log10(rate / (1 - rate))
    assert report["difference"]["value"] == pytest.approx(points)
    assert abs(400 * np.log10(won / (1 - won)) - points) > 1
    assert re.fullmatch(
        r"600 verdicts of owl alone on the two models, on 600 prompts, under its "
        r"validation certificate until \d{4}-\d\d-\d\d; no votes of people",
        report["rests_on"],
    )
    write_new(tmp_path, "umber", "flint", 0.5)
    even = alone(command, "umber", "--certificate", "owl.toml", "--level", "0.9")
    assert (even["answer"], even["level"]) == ("cannot tell", 0.95)
    assert even["difference"]["lower"] < -40
    write_new(tmp_path, "umber", "flint", 0.6, n=14)
    assert "14 effective prompts" in alone(command, "umber", "--certificate", "owl.toml")["why"]


def test_a_judge_that_is_fooled_by_the_candidate_never_passes_it_without_people(
    command: Command, tmp_path: Path
) -> None:
    """Neither a candidate that its licence does not know, nor one that it was seen to favour."""
    license_owl(command, tmp_path, 1)
    for candidate, grade in (("newest", "NOT GRADED"), ("basalt", "FAIL")):
        write_new(tmp_path, candidate, "flint", 0.99)
        reports = [alone(command, candidate, *w) for w in ((), ("--certificate", "owl.toml"))]
        for report in reports:
            assert (report["answer"], report["passes"]) == ("cannot tell", None)
            assert (report["by"], report["votes"]["judge"]) == ("nothing", 0)
        why = f"does not pass the model '{candidate}' ({grade})"
        assert why in " ".join(reports[1]["warnings"])


def test_an_expired_licence_lets_nobody_pass(command: Command, tmp_path: Path) -> None:
    license_owl(command, tmp_path, 1)
    text = (tmp_path / "owl.toml").read_text()
    old = re.sub(r"^(made|until) = .*$", r"\1 = 2020-01-31", text, flags=re.MULTILINE)
    (tmp_path / "owl.toml").write_text(old)
    write_new(tmp_path, "umber", "flint", 0.8)
    report = alone(command, "umber", "--certificate", "owl.toml")
    assert report["answer"] == "cannot tell"
    assert "expired on 2020-01-31" in report["why"]


def test_what_cannot_be_asked_is_said_in_one_line(command: Command, tmp_path: Path) -> None:
    write(tmp_path, 0.0, 40)
    refused(command(*ASKED[:-1], "-3", "votes.csv"), "--margin -3")
    refused(command(*ASKED, "none.csv"), "'none.csv'")
    refused(command(*ASKED, "votes.csv", "--looks", "0"), "--looks must be any", "not 0")
    refused(command(*ASKED, "votes.csv", "--planned", "0"), "--planned must be 1 vote or more")
    refused(command(*ASKED, "votes.csv", "--judge", "owl"), "--judge 'owl'", "after the votes")
    result = command(*ASKED, "votes.csv", "--certificate", "owl.toml")
    refused(result, "'owl.toml'", "after the votes")
    refused(command(*ASKED[:3], "--incumbent", "owl", *MARGIN, "votes.csv"), "'owl'")
    refused(command(*ASKED, "votes.csv", "--out", "votes.csv/x"), "'votes.csv/x'")
    cast = Crowd(prompts=PROMPTS).draw(40, np.random.default_rng(1))
    write_judged(tmp_path, cast.judged(50, np.random.default_rng(1)), 40)
    refused(command(*ASKED, "verdicts.csv"), "'method'", "votes of people first")


def test_the_votes_that_come_along_are_asked(command: Command) -> None:
    words = ("--candidate", "pocket-retrieval", "--incumbent", "pocket-unigram", "--margin", "40")
    result = command("gate", *words, "samples", "--claims", "these-voters")
    assert (result.returncode, result.stdout.partition(".")[0]) == (
        0,
        "pocket-retrieval is better than pocket-unigram",
    )
    assert result.stderr == (
        "arena: samples are 600 simulated votes with known ground truth, not votes of people.\n"
    )


def test_its_examples_run(command: Command, tmp_path: Path) -> None:
    cast = Crowd(lead=0.8, prompts=PROMPTS).draw(200, np.random.default_rng(1))
    write_judged(tmp_path, cast.judged(500, np.random.default_rng(1)), 200)
    lines = examples("gate")
    assert len(lines) == 4
    assert [command(*words).returncode for words in lines] == [0, 0, 0, 0]


def play(served: Served, voter: int) -> None:
    """Let somebody new vote who prefers x to y in nine of ten battles."""
    rng = np.random.default_rng(voter)
    with served.visitor() as visitor:
        for n in range(4):
            battle = visitor.open(f"Question {voter}.{n}")
            is_first = "says x" in side_text(visitor.follow(battle), "a")
            prefers_a = is_first == (rng.random() < 0.9)
            visitor.vote(battle, "model_a" if prefers_a else "model_b")


@pytest.mark.slow
def test_the_votes_of_an_arena_are_asked_as_they_come_in(command: Command, tmp_path: Path) -> None:
    texts = {name: Behaviour(text=f"So says {name}. " * 20) for name in "xy"}
    with faulty_server(texts) as server, served_by(server, tmp_path) as served:
        for voters, candidate, answer, code in (
            (range(5), "id-x", "cannot tell", 3),
            (range(5, 25), "id-x", "better", 0),
            (range(0), "id-y", "worse", 1),
        ):
            with ThreadPoolExecutor(6) as pool:
                list(pool.map(partial(play, served), voters))
            other = "id-y" if candidate == "id-x" else "id-x"
            words = ("gate", "--candidate", candidate, "--incumbent", other, "--margin", "100")
            looks = ("--looks", "2", "--planned", "100")
            result: Ran = command(*words, *looks, served.database, "--format", "json")
            report = json.loads(result.stdout)
            assert (report["answer"], result.returncode) == (answer, code), report


DOCUMENT = (Path(__file__).parents[2] / "docs/guides/gate-and-compare.md").read_text("utf-8")


def test_every_block_of_the_page_is_what_is_printed(command: Command, tmp_path: Path) -> None:
    write_day(tmp_path)
    for run_of in ("new.csv", "old.csv"):
        shutil.copy(Path(__file__).parents[2] / "docs/examples" / run_of, tmp_path)
    blocks = re.findall(r"```text\n(.*?)```", DOCUMENT, re.DOTALL)
    shown = [example for block in blocks for example in block.split("$ arena ")[1:]]
    assert len(shown) == 6
    for example in shown:
        line, expected = example.split("\n", 1)
        assert command(*line.split(), COLUMNS="100").stdout == expected


def test_every_option_and_key_is_explained(command: Command, tmp_path: Path) -> None:
    assert [option for option in options_of("gate") if option not in DOCUMENT] == []
    write(tmp_path, 0.0, 40)
    assert unexplained("Gates", asked(command)) == []


@pytest.mark.slow
def test_the_workflow_of_the_page_is_one_of_github_s(tmp_path: Path) -> None:
    workflow = DOCUMENT.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "gate.yml").write_text(workflow, encoding="utf-8")
    words = ("--builtin-schema", "vendor.github-workflows", str(tmp_path / "gate.yml"))
    checker = Path(sys.executable).parent / "check-jsonschema"
    done = subprocess.run([checker, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    [line] = re.findall(r"run: (arena gate .*)", workflow)
    cast = Crowd(lead=1.0, prompts=PROMPTS).draw(300, np.random.default_rng(1))
    write_judged(tmp_path, cast.judged(10, np.random.default_rng(1)), 300)
    assert run(tmp_path, *line.split()[1:]).returncode == 0
    names = {path.name for path in (tmp_path / "gate").iterdir()}
    assert names == {"gate.json", "gate.md", "gate.xml"}
