"""`arena rate` and `arena plan`, as they are typed: examples, exit codes, what they load."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from math import ceil
from pathlib import Path

import duckdb
import numpy as np
import pytest

from arena.play.simulation import TASTES
from rating.likelihood import solve, win_probability
from rating.variants import to_points
from tests.command import Command, examples
from tests.sqlite import new_sqlite

PAIRS = "model_a,model_b,n_model_a,n_model_b,n_tie\nx,y,30,10,4\ny,z,20,15,3\n"


def votes_file(folder: Path, text: str = PAIRS) -> str:
    path = folder / "votes.csv"
    path.write_text(text, encoding="utf-8")
    duckdb.read_csv(str(path)).write_parquet(str(folder / "votes.parquet"))
    return str(path)


def test_the_examples_of_rate_and_plan_run(command: Command, tmp_path: Path) -> None:
    votes_file(tmp_path)
    for name in ("rate", "plan"):
        for words in examples(name):
            result = command(*words)
            assert (result.returncode, result.stderr) == (0, ""), words
    compared = command("rate", "votes.csv", "--compare", "board.json")
    assert "Both boards are of the same votes" in compared.stdout
    assert json.loads((tmp_path / "board.json").read_text())["votes"]["used"] == 82


def documented_votes(folder: Path) -> None:
    """Write the votes that the examples of docs/guides/rate.md are of."""
    models = "CASE (i + {}) % 3 WHEN 0 THEN 'basalt' WHEN 1 THEN 'quartz' ELSE 'flint' END"
    query = f"""
        SELECT {models.format(0)} AS model_a, {models.format(1)} AS model_b,
               ['model_a', 'model_a', 'model_b', 'tie', 'both_bad'][1 + (i + i // 7) % 5]
                   AS winner,
               'v' || i // 3 AS voter, 'p' || i % 40 AS prompt_id,
               ['en', 'fr'][1 + i // 3 % 2] AS language, 0.25 + 0.5 * (i % 2) AS pair_probability,
               TIMESTAMP '2026-01-01' + INTERVAL (i % 40) DAY AS ts,
               i * 7 % 11 AS lists_a, i * 3 % 13 AS lists_b,
               100 + i * 37 % 900 AS length_a, 100 + i * 53 % 700 AS length_b
        FROM range(240) AS rows(i)
    """
    duckdb.execute(f"COPY ({query}) TO '{folder}/votes.parquet'")
    styles = enumerate(("headers", "bold", "code"), 3)
    more = ", ".join(f"i * {k} % 7 AS {name}_a, i % {k} AS {name}_b" for k, name in styles)
    of_battles = query.replace("FROM range", f", {more} FROM range")
    duckdb.execute(f"COPY ({of_battles}) TO '{folder}/battles.parquet'")
    votes = duckdb.read_parquet(str(folder / "votes.parquet"))
    votes.project("model_a AS left, model_b AS right, winner AS choice, voter AS user").write_csv(
        str(folder / "other.csv")
    )


def test_the_examples_of_the_document_run(command: Command, tmp_path: Path) -> None:
    documented_votes(tmp_path)
    command("voters", "votes.parquet", "--weighted", "weighted.parquet")
    guides = Path(__file__).parents[2] / "docs/guides"
    pages = [(guides / name).read_text("utf-8") for name in ("rate.md", "gate-and-compare.md")]
    lines = re.findall(r"^(arena (?:rate|plan) .*)$", "".join(pages), re.MULTILINE)
    named = set(re.findall(r"--[a-z-]+", " ".join(lines)))
    helped = command("rate", "--help", COLUMNS="200").stdout.split("Examples")[0]
    assert set(re.findall(r"--[a-z-]+", helped)) - {"--help"} == named
    for line in lines:
        words = shlex.split(line.removeprefix("arena "), comments=True)
        if {"--table", "--policy", "--tagger", "sqlite:///arena.db", "grouped.parquet"} & {*words}:
            continue  # in tables/test_spark.py, test_simulation.py, test_label_*.py
        if "--plots" in words:  # drawn in test_rate_files.py
            words = words[: words.index("--plots")]
        result = command(*words)
        notice = "arena: votes.parquet is read as votes; rows excluded: 120 by where\n"
        expected = (0, notice if "--where" in words else "")
        assert (result.returncode, result.stderr) == expected, line


def test_a_plan_is_of_the_level_and_the_ties_that_are_asked_for(
    command: Command, tmp_path: Path
) -> None:
    words = ("plan", votes_file(tmp_path), "--level", "0.99", "--ties", "davidson")
    planned = json.loads(command(*words, "--format", "json").stdout)
    assert (planned["level"], planned["votes"], planned["tie_rate"]) == (0.99, 82, 7 / 82)
    p = 1 / (1 + 10 ** (-50 / 400))
    needed = (2.575829 / 2 + 0.841621 * (p * (1 - p)) ** 0.5) / (p - 0.5)
    assert planned["leads"]["50"] == ceil(needed**2 / (1 - 7 / 82))


def test_a_process_that_read_a_file_ends_without_talk_of_leaks(tmp_path: Path) -> None:
    code = f"from rating.tables.counts import read_votes; v = read_votes({votes_file(tmp_path)!r})"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert (result.stdout, result.stderr) == ("", "")


LOADED = """
import sys
from arena.cli import main
for words, heavy in {ASKED}:
    sys.argv = ["arena", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
    loaded = {{name for name in sys.modules if name in heavy}}
    assert not loaded, (words, loaded)
"""


def test_a_command_loads_only_what_it_needs(tmp_path: Path) -> None:
    votes_file(tmp_path)
    live = ["gradio", "fastapi", "sqlalchemy", "alembic", "pydantic_settings", "httpx2", "uvicorn"]
    offline = [*live, "numpy", "scipy", "duckdb", "rating.board"]
    elsewhere = ["matplotlib", "pyspark", "pandas", "polars", "pyarrow", "numba", "sklearn"]
    elsewhere += ["narwhals", "scipy", "xml.etree.ElementTree", "rich.progress"]
    elsewhere += ["rating.mix", "rating.rankings", "rating.remarks", "rating.value", "numpy.f2py"]
    web = ["gradio", "fastapi", "starlette", "uvicorn", "jinja2", "matplotlib"]
    pairs = "prompt,model_a,response_a,model_b,response_b\nWhy?,x,So.,y,Not so.\n"
    (tmp_path / "pairs.csv").write_text(pairs, encoding="utf-8")
    run_judge = ["judge", "run", "--method", "pairwise", "--judge", "pocket-judge"]
    files = ["--cases", "pairs.csv", "--out", "verdicts.csv", "--database", new_sqlite(tmp_path)]
    asked = [
        (["--help"], offline),
        (["rate", "--help"], offline),
        (["rate", "votes.csv", "--format", "json"], [*live, *elsewhere]),
        (["rate", "votes.csv"], [*live, *elsewhere]),
        ([*run_judge, *files], web),
    ]
    result = subprocess.run(
        [sys.executable, "-c", LOADED.format(ASKED=asked)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert '"data_hash"' in result.stdout


@pytest.mark.parametrize(
    ("text", "words", "code", "message"),
    [
        (PAIRS, ["--ties", "win"], 2, ["--ties", '"win"', "davidson"]),
        (PAIRS.replace("winner", "won"), ["--by", "topic"], 2, ["'topic'"]),
        (PAIRS.replace(",10,", ",ten,"), [], 2, ["ten"]),
        (PAIRS.replace("x,y,30,10,4", "x,y,30,0,0"), [], 3, ["no finite value", "x"]),
        (PAIRS.replace("y,z", "w,z"), [], 3, ["fall into 2 groups", "w, z"]),
        (PAIRS.splitlines()[0] + "\n", [], 2, ["No votes to count", "0 read"]),
    ],
    ids=["bad option", "no column", "bad count", "undefeated", "apart", "empty"],
)
def test_what_cannot_be_rated_is_one_line_and_an_exit_code(
    command: Command, tmp_path: Path, text: str, words: list[str], code: int, message: list[str]
) -> None:
    result = command("rate", votes_file(tmp_path, text), *words)
    assert (result.returncode, result.stdout) == (code, "")
    assert result.stderr.startswith("arena: ")
    assert result.stderr.count("\n") == 1, result.stderr
    assert [word for word in message if word not in result.stderr] == [], result.stderr
    assert command("plan", "votes.csv", *words).returncode in (code, 2)


def test_the_first_rating_of_the_readme_runs_on_the_votes_that_come_along(
    command: Command, tmp_path: Path
) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert ".venv/bin/arena rate samples`" in readme
    done = command("rate", "samples", "--format", "json")
    assert done.returncode == 0
    assert done.stderr == (
        "arena: samples are 600 simulated votes with known ground truth, not votes of people.\n"
    )
    rows = json.loads(done.stdout)["ratings"]
    planted = sorted(TASTES.strengths, key=TASTES.strengths.__getitem__, reverse=True)
    assert [row["model"] for row in rows] == planted
    tied = 1 - (1 - TASTES.both_bad) * (1 - TASTES.tie)
    won = win_probability(np.array([TASTES.strengths[model] for model in planted]))
    wins = (tied / 2 + (1 - tied) * won) * (1 - np.eye(5))
    truth = to_points(solve(wins, np.zeros(5), ridge=0).theta)
    for row, points in zip(rows, truth, strict=True):
        assert row["lower"] < points < row["upper"]
    guide = (Path(__file__).parents[2] / "docs/guides/rate.md").read_text(encoding="utf-8")
    assert "true ratings are {:.0f}, {:.0f}, {:.0f}, {:.0f} and {:.0f};".format(*truth) in guide
    assert command("plan", "samples").returncode == 0
    (tmp_path / "samples").mkdir()
    shutil.copyfile(votes_file(tmp_path), tmp_path / "samples" / "votes.csv")
    assert "82 votes" in command("rate", "samples", COLUMNS="160").stdout
