"""Names that others chose are no formulas, commands or markup in what is written."""

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from arena.boards.export import export_votes
from arena.boards.record_file import verify_export
from arena.domain.vote import DEFAULT, Choice
from judge.report.page import Page, Section, as_html
from judge.tables.annotations import read_annotations
from rating.errors import DataError
from rating.tables import files, formats
from rating.tables.counts import read_votes
from rating.tables.vote_filter import MOST_MODELS
from tests.arena.boards.log import linked, vote
from tests.command import Command

FORMULA = '=HYPERLINK("http://evil","x")'
NAMES = (FORMULA, "+1+1", "-1+1", "@SUM(A1)", "\tx", "\rx", "'=x", "''@x", "'x", "＝1", "-1.5")
RUN = "=+-@\t\r\n＝"
HOSTILE = (
    "a|b `c` [d](http://e) <i>f</i>\n\n# g \x1b[31m\x07\x9b\u202e & 5% $h$ i_j ^ \\input{k} ~"
)


@given(st.text(st.sampled_from("'=+-@\t\r\n1.eE５x＝ \x85é"), max_size=6))
def test_a_cell_is_written_and_read_the_same_by_python_and_by_the_engine(text: str) -> None:
    cell = str(files.in_csv(text))
    written = duckdb.execute(f"SELECT {files.in_csv_sql('c')} FROM (SELECT ? AS c)", [text])
    assert written.fetchall() == [(cell,)]
    read = duckdb.execute(f"SELECT {files.from_csv_sql(['c'])} FROM (SELECT ? AS c)", [cell])
    assert read.fetchall() == [tuple(files.from_csv([cell]))] == [(text,)]
    assert cell[:1] not in RUN or not cell or float(cell) is not None


def test_names_that_a_spreadsheet_would_run_are_quoted_and_come_back(tmp_path: Path) -> None:
    rows = [{"model": name, "rating": -2.5, "n": -1} for name in NAMES]
    path = tmp_path / "board.csv"
    formats.write_text(formats.as_csv(rows), path)
    with path.open(encoding="utf-8", newline="") as file:
        cells = [*csv.DictReader(file)]
    assert [c["model"] for c in cells if c["model"][0] in RUN] == ["-1.5"]
    assert {(cell["rating"], cell["n"]) for cell in cells} == {("-2.5", "-1")}
    assert read_annotations(path).texts("model") == [name.strip() for name in NAMES]


def test_an_export_quotes_formulas_and_rates_the_same(tmp_path: Path) -> None:
    votes = [vote(FORMULA, "-1+1", Choice.A) for _ in range(3)]
    hashes = set()
    for ending in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"votes.{ending}"
        export_votes(linked(votes), DEFAULT, path, total=len(votes))
        assert verify_export(path).problem is None
        hashes.add(read_votes(path).data_hash)
    assert len(hashes) == 1
    with (tmp_path / "votes.csv").open(encoding="utf-8", newline="") as file:
        assert {row["model_a"] for row in csv.DictReader(file)} == {f"'{FORMULA}"}


def test_weighed_votes_quote_formulas_and_come_back(command: Command, tmp_path: Path) -> None:
    rows = [f"'=x,y,{side},v{i},-3,@z" for i in range(4) for side in ("model_a", "model_b")]
    head = "model_a,model_b,winner,voter,'=cmd(),note"
    (tmp_path / "votes.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    done = command("voters", "votes.csv", "--weighted", "weighted.csv")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "weighted.csv").open(encoding="utf-8", newline="") as file:
        lines = [*csv.reader(file)]
    assert lines[0][:6] == head.split(",")
    assert lines[1][:6] == ["'=x", "y", "model_a", "v0", "-3", "'@z"]
    again = read_annotations(tmp_path / "weighted.csv")
    assert set(again.texts("model_a")) == {"=x"}
    assert set(again.texts("=cmd()")) == {"-3"}


def test_markdown_shows_a_name_as_it_is() -> None:
    text = formats.board_table([{"model": HOSTILE}]).markdown()
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    for tag in ("<a", "<i>", "<code>", "<h1>", "<em>"):
        assert tag not in html
    assert html.count("<td") == 1
    assert "a|b `c` [d](http://e)" in html
    assert r"\& 5% \$h\$ i\_j ^ \\input{k} \~" in text


def test_latex_has_no_command_of_a_name() -> None:
    assert files.in_latex(HOSTILE) == (
        r"a|b `c` [d](http://e) <i>f</i>??\# g ?[31m??? \& 5\% \$h\$ i\_j \textasciicircum{} "
        r"\textbackslash{}input\{k\} \textasciitilde{}"
    )


@pytest.mark.parametrize("form", ["markdown", "latex", "json"])
def test_no_format_for_people_holds_a_command_to_a_terminal(form: str) -> None:
    board = {"note": HOSTILE, "moved": [{"model": HOSTILE}], "warnings": [HOSTILE]}
    text = formats.as_text(board, form)
    assert [sign for sign in "\x1b\x07\x9b\u202e" if sign in text] == []
    if form == "json":
        assert json.loads(text) == board


def test_a_page_shows_no_control_character_and_keeps_lines() -> None:
    table = formats.Table(("Model",), ((HOSTILE,),), "")
    section = Section(HOSTILE, paragraphs=(HOSTILE,), table=table)
    empty = SimpleNamespace(**dict.fromkeys(Page.__dataclass_fields__, ""))
    page = SimpleNamespace(**{**vars(empty), "about": {}, "answers": (), "sections": ()})
    page.title, page.first, page.parts = HOSTILE, section, (section,)
    page.made = SimpleNamespace(isoformat=lambda: "2026-01-01")
    html = as_html(page)  # type: ignore[arg-type]
    assert [sign for sign in "\x1b\x07\x9b\u202e" if sign in html] == []
    assert "<i>f" not in html


@pytest.mark.slow
def test_more_models_than_a_board_can_hold_are_refused_at_once(
    command: Command, tmp_path: Path
) -> None:
    rows = "".join(f"m{i},m{i + 1},model_a,v{i},p{i}\n" for i in range(99_999))
    (tmp_path / "many.csv").write_text("model_a,model_b,winner,voter,prompt_id\n" + rows)
    with pytest.raises(DataError, match=f"on 100,000 models.* {MOST_MODELS:,} are the most"):
        read_votes(tmp_path / "many.csv")
    for words in (("plan",), ("voters",), ("study", "scores", "scores.csv"), ("probe", "board")):
        (tmp_path / "scores.csv").write_text("model,mmlu\nm1,1\n")
        done = command(*words, "many.csv")
        assert done.returncode == 2
        assert "100,000 models" in done.stderr
