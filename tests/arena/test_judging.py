"""`import judge`: a run and a study in a few lines."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

import judge
from arena.judging import endpoint, journal
from judge.tables.cases import NamedCase
from rating.errors import DataError, NotIdentifiedError
from tests.faulty_server import Behaviour, faulty_server

TOY = endpoint("pocket://local/v1", "judge")
PAIRS = """prompt,response_a,response_b,model_a,model_b,battle_id,prompt_id
Name a colour.,Blue.,"Blue, like the sky.",basalt,quartz,b1,p1
Name a tree.,"An oak, which is old.",Oak.,basalt,quartz,b2,p2
Name a sea.,The Baltic.,"The North Sea, a cold one.",quartz,flint,b3,p3
Name a bird.,"A wren, a small one.",Wren.,quartz,flint,b4,p4
Name a fish.,"A pike, in lakes.",Pike.,flint,basalt,b5,p5
Name a star.,Vega.,"Vega, in Lyra.",flint,basalt,b6,p6
"""


@pytest.fixture
def cases(tmp_path: Path) -> list[NamedCase]:
    file = tmp_path / "pairs.csv"
    file.write_text(PAIRS, encoding="utf-8")
    return judge.read_cases(file)


def run(cases: Sequence[NamedCase], folder: Path, method: str = "pairwise") -> judge.JudgeRun:
    return judge.run(cases, judge.method(method), TOY, journal(f"{folder}/runs.db"))


def test_to_import_it_loads_no_web_no_database_and_no_engine_of_tables() -> None:
    heavy = "duckdb pandas matplotlib sqlalchemy fastapi gradio httpx2 jinja2".split()  # noqa: SIM905
    code = f"import sys, judge; print([name for name in {heavy} if name in sys.modules])"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "[]"


def test_a_run_is_paid_for_once_and_its_replies_stand_beside_its_verdicts(
    cases: list[NamedCase], tmp_path: Path
) -> None:
    first, again = run(cases, tmp_path), run(cases, tmp_path)
    assert (first.report["n_asked"], first.report["n_recalled"]) == (12, 0)
    assert (again.report["n_asked"], again.report["n_recalled"]) == (0, 12)
    assert [reply.text for reply in first.replies] == [reply.text for reply in again.replies]
    assert len(first.replies) == 12
    assert [row["order"] for row in first.verdicts.rows[:3]] == ["ab", "ba", "both"]
    assert "<td>read</td><td>12</td>" in first._repr_html_()


def test_a_leaderboard_counts_a_case_once_and_controls_for_length(
    cases: list[NamedCase], tmp_path: Path
) -> None:
    made = run(cases, tmp_path)
    board = made.leaderboard()
    assert board.votes.used == len(cases)
    assert board.options.style == ()
    with pytest.raises(NotIdentifiedError):  # the toy goes by length alone: nothing is left
        made.leaderboard(length_control=True)


def test_a_run_works_where_a_loop_runs_already(cases: list[NamedCase], tmp_path: Path) -> None:
    async def in_a_notebook() -> judge.JudgeRun:
        return run(cases, tmp_path)

    assert len(asyncio.run(in_a_notebook()).verdicts) == 18


def test_verdicts_are_written_and_studied(cases: list[NamedCase], tmp_path: Path) -> None:
    made = run(cases, tmp_path)
    file = tmp_path / "verdicts.parquet"
    made.verdicts.write(file)
    votes = tmp_path / "votes.csv"
    head, rows = "battle_id,prompt_id,model_a,model_b,winner,voter\n", []
    for case in cases:
        sides = f"{case.battle_id},{case.prompt_id},{','.join(case.models)}"
        rows += [f"{sides},model_a,ada\n", f"{sides},tie,bo\n"]
    votes.write_text(head + "".join(rows), encoding="utf-8")
    there, written = (judge.study(votes, v, rounds=100) for v in (made.verdicts, file))
    assert there.to_dict() == written.to_dict()
    (one,) = there.study.judges
    agreed = f"{one.agreement.judge.without_ties.value:.0%}"
    cells = re.findall("<td>(.*?)</td>", there._repr_html_())
    row = ["judge", one.first_answer.verdict, agreed, "–", "6"]  # no two people prefer a side
    assert [cell.split(" (")[0] for cell in cells] == row
    page = there.report(tmp_path / "report")
    assert page.is_file()
    with pytest.raises(DataError, match="--rounds 1 is too few"):
        judge.study(votes, file, rounds=1)


def test_what_cannot_be_used_is_quoted(cases: list[NamedCase], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no method 'oracle' to run: choose one of"):
        judge.method("oracle")
    with pytest.raises(DataError, match=r"Cannot write .*verdicts\.txt"):
        run(cases, tmp_path).verdicts.write(tmp_path / "verdicts.txt")
    single = tmp_path / "responses.csv"
    single.write_text("prompt,response,model\nName a colour.,Blue.,basalt\n", encoding="utf-8")
    marked = judge.run(
        judge.read_cases(single, single=True),
        judge.method("rubric", rubric="10 is best."),
        TOY,
        journal(f"{tmp_path}/runs.db"),
    )
    with pytest.raises(DataError, match="'rubric' looks at one response"):
        marked.leaderboard()


def test_a_key_is_sent_and_never_shown(cases: list[NamedCase], tmp_path: Path) -> None:
    with faulty_server({"qwen": Behaviour(text="[[A]]")}) as server:
        there = endpoint(server.url, "qwen", api_key="sk-secret", temperature=0)
        made = judge.run(cases, judge.method("pairwise"), there, journal(f"{tmp_path}/runs.db"))
        assert {seen.headers["authorization"] for seen in server.requests} == {"Bearer sk-secret"}
    assert made.report["by_status"] == {"read": 12}
    assert "sk-secret" not in repr(there)
    assert there.revision != endpoint(server.url, "qwen", temperature=1).revision


def test_pairs_may_be_asked_in_one_order_and_refusals_again(
    cases: list[NamedCase], tmp_path: Path
) -> None:
    place, method = journal(f"{tmp_path}/runs.db"), judge.method("pairwise")
    once = judge.run(cases, method, TOY, place, swap_share=0)
    assert (once.report["n_asked"], len(once.verdicts)) == (len(cases), len(cases))
    with faulty_server({"shy": Behaviour(text="", finish_reason="content_filter")}) as server:
        shy = endpoint(server.url, "shy")
        n_asked = [judge.run(cases, method, shy, place).report["n_asked"] for _ in range(2)]
        again = judge.run(cases, method, shy, place, again="refused")
        assert [*n_asked, again.report["n_asked"]] == [12, 0, 12]


def test_a_budget_stops_a_run_and_needs_a_price(cases: list[NamedCase], tmp_path: Path) -> None:
    place, method = journal(f"{tmp_path}/runs.db"), judge.method("pairwise")
    with pytest.raises(DataError, match="A budget needs a price"):
        judge.run(cases, method, TOY, place, budget=1)
    dear = endpoint("pocket://local/v1", "judge", price=judge.Price(1e6, 1e6, date(2026, 11, 1)))
    stopped = judge.run(cases, method, dear, place, budget=0)
    assert (stopped.report["stopped"], stopped.report["n_asked"]) == ("budget", 0)
    assert judge.run(cases, method, dear, place, budget=1e9).report["spent_usd"] > 0
