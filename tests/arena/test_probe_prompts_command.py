"""`arena probe prompts`, as it is typed: its contract, its page, its help."""

import json
import re
from pathlib import Path

import duckdb
import pytest

from tests.command import Command, examples, refused, unexplained
from tests.judge.probe.test_prompts import results_file
from tests.rating.test_nesting import drawn

QUICK = ("--draws", "19", "--format", "json")
WINNERS = ("model_a", "model_b")


def votes(folder: Path, n: int = 400) -> Path:
    rows = drawn(1, prompts=30, votes=n, voters=40)
    lines = ["model_a,model_b,winner,voter,prompt_id,kind"]
    for at in range(rows.n):
        a, b = rows.models[rows.a[at]], rows.models[rows.b[at]]
        voter, prompt, kind = (rows.groups[role][at] for role in ("voter", "prompt", "by"))
        lines.append(f"{a},{b},{WINNERS[rows.outcome[at]]},v{voter},p{prompt},k{kind % 3}")
    file = folder / "votes.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_the_json_holds_what_other_tools_rely_on(command: Command, tmp_path: Path) -> None:
    votes(tmp_path)
    words = ("probe", "prompts", "votes.csv", "--by", "kind", *QUICK)
    result = json.loads(command(*words).stdout)
    parts = (result["together"], result["ranking"], result["explained"])
    assert unexplained("Probes", result, *parts, *result["explained"]["terms"]) == []
    assert (result["together"]["of"], result["together"]["draws"]) == ("kind", 19)
    assert {one["name"] for one in result["explained"]["terms"]} == {"same kind"}
    assert json.loads(command(*words).stdout) == result


def test_a_page_has_three_cards_and_loads_nothing(command: Command, tmp_path: Path) -> None:
    file = results_file(tmp_path, interaction=1)
    text = file.read_text().replace("m00", "<script>m</script>").replace(",right", ",won")
    file.write_text(text)
    words = ["probe", "prompts", "marks.csv", "--by", "topic", "--prompts", "prompts.csv"]
    words += ["--value", "won", "--right", "0.5", "--seed", "7"]
    assert command(*words, "--draws", "19", "--out", "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    for title in ("Are prompts homogeneous?", "depend on the prompts?", "Which prompt features"):
        assert page.count(title) == 2  # in the contents, and above the card
    assert "<script>m" not in page
    assert not re.search(r'(?:src|href)="(?!#)|url\(', page)
    about = json.loads((tmp_path / "page.json").read_text())["about"]
    asked = {"models": 12, "value": "won", "right_above": 0.5, "by": ["topic"], "seed": 7}
    assert asked.items() <= about.items()


def test_the_examples_of_its_help_can_be_typed(command: Command, tmp_path: Path) -> None:
    duckdb.read_csv(str(votes(tmp_path))).project(
        "*, CASE kind WHEN 'k0' THEN 'coding' ELSE 'writing' END AS category"
    ).write_parquet(str(tmp_path / "votes.parquet"))
    results_file(tmp_path, interaction=0)
    typed = examples("probe prompts")
    assert len(typed) == 3
    for words in typed:
        assert command(*words, "--draws", "19").returncode == 0, words


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--by", "moon"), "'moon'"),
        (("--by", "kind", "--mix", "moon=1"), "'moon'"),
        (("--mix", "moon"), "cannot read 'moon'"),
        (("--draws", "3"), "--draws"),
        (("--prompts", "moon.csv"), "moon.csv"),
        (("--out", "page.png"), "'page.png'"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_name(
    command: Command, tmp_path: Path, words: tuple[str, ...], wanted: str
) -> None:
    votes(tmp_path, n=200)
    refused(command("probe", "prompts", "votes.csv", *words), wanted)
