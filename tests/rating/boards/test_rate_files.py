"""The files that `arena rate` writes: every format, and plots in their folders."""

from datetime import date
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rating import RateOptions
from rating.charts.plots import draw_boards, folder_names
from rating.errors import DataError
from rating.tables.formats import COLUMNS
from tests.command import invoke
from tests.rating.boards.rated import PAIRS, Write, crowd

PICTURES = [
    f"{name}{ending}"
    for name in ("intervals", "votes", "win-rates")
    for ending in (".html", ".png", ".svg")
]


@pytest.mark.parametrize("ending", ["json", "csv", "md", "tex", "parquet", "txt"])
def test_every_format_holds_the_board(write: Write, tmp_path: Path, ending: str) -> None:
    source = write(PAIRS.replace("x,", "x_1,"))
    out = tmp_path / f"board.{ending}"
    form = ["--format", "table"] if ending == "txt" else []
    done = invoke(["rate", source, "--out", str(out), *form])
    assert done.returncode == 0, done.stderr
    if ending in ("parquet", "csv"):
        read = duckdb.read_parquet if ending == "parquet" else duckdb.read_csv
        rows = read(str(out))
        assert rows.columns == ["model", *(n for n in COLUMNS if n in rows.columns)]
        assert rows.fetchall()[0][:2] == ("x_1", pytest.approx(1095.424, abs=1e-3))
        return
    text = out.read_text(encoding="utf-8")
    assert {"tex": r"x\_1", "md": r"x\_1"}.get(ending, "x_1") in text
    assert {"tex": f"{{l{12 * 'r'}}}", "md": "\n| --- | ---: | ---: | "}.get(ending, "") in text
    assert "1095" in text
    assert "Voters are not known" in text


def test_plots_of_a_board_are_drawn_beside_it(write: Write, tmp_path: Path) -> None:
    words = ["rate", write(crowd()), "--plots", str(tmp_path / "plots"), "--format", "json"]
    done = invoke(words)
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in (tmp_path / "plots").iterdir()) == PICTURES
    svg = (tmp_path / "plots" / "win-rates.svg").read_text(encoding="utf-8")
    assert "90 votes by 30 voters" in svg


@pytest.mark.parametrize("name", ["board.svg", "board.PNG"])
def test_plots_are_refused_under_the_name_of_one_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"name a folder instead of '.*{name}'"):
        draw_boards(tmp_path / name, None, RateOptions(), {}, date(2026, 1, 1))


@pytest.mark.slow
def test_plots_of_several_boards_are_drawn_in_a_folder_each(write: Write, tmp_path: Path) -> None:
    source = write(crowd(lang=lambda i: ["en", "../en"][i // 3 % 2]))
    plots = tmp_path / "plots"
    words = ["rate", source, "--by", "lang", "--plots", str(plots), "--format", "json"]
    done = invoke(words)
    assert done.returncode == 0, done.stderr
    assert sorted(folder.name for folder in plots.iterdir()) == ["en", "en-2"]
    for folder in plots.iterdir():
        assert sorted(file.name for file in folder.iterdir()) == PICTURES
        assert "45 votes by 15 voters" in (folder / "votes.svg").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["plots"]


@given(st.lists(st.text(max_size=200), unique=True, max_size=8))
def test_folders_of_hostile_values_stay_inside_and_apart(values: list[str]) -> None:
    names = folder_names(values)
    assert list(names) == values
    assert len({name.casefold() for name in names.values()}) == len(values)
    for name in names.values():
        assert Path("plots", name).resolve().parent == Path("plots").resolve()
        assert 0 < len(name.encode()) < 255
        assert not name.startswith(".")
