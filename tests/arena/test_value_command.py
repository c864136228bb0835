"""`arena value`, as it is typed."""

import json
import re
import shlex
from pathlib import Path

import duckdb
import pytest

from arena.domain.vote import Choice, Voter
from arena.store.store import Store
from tests.arena.store.battles import MODELS, NOW, ballot, ready
from tests.command import Command, options_of, refused, unexplained

DOCUMENT = (Path(__file__).parents[2] / "docs/guides/rate.md").read_text("utf-8")


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """Votes on four models: flint is worse and dearer than quartz, opal has no price."""
    names = "['basalt', 'quartz', 'flint', 'opal']"
    query = f"""
        SELECT {names}[1 + a] AS model_a, {names}[1 + b] AS model_b, 'v' || i // 8 AS voter,
               CASE WHEN hash(i) % 100 < 50 + 14 * (b - a) THEN 'model_a' ELSE 'model_b' END
                   AS winner,
               CASE WHEN a < 3 THEN [.02, .004, .012][1 + a] * long * (1 + hash(i + 1) % 9 / 9)
                   END AS cost_a,
               CASE WHEN b < 3 THEN [.02, .004, .012][1 + b] * long * (1 + hash(i + 2) % 9 / 9)
                   END AS cost_b,
               2 + a + hash(i + 3) % 5 AS seconds_a, 2 + b + hash(i + 4) % 5 AS seconds_b
        FROM (SELECT i, i % 4 AS a, (i % 4 + 1 + i // 4 % 3) % 4 AS b, 1 + hash(i) % 40 AS long
              FROM range(1200) AS rows(i))
    """
    file = tmp_path / "votes.parquet"
    duckdb.execute(f"COPY ({query}) TO '{file}'")
    return file


@pytest.fixture(autouse=True)
def safety(tmp_path: Path) -> Path:
    """What two of them, and a model without votes, refuse."""
    row = {"category": "all", "mode": "does", "n": 50, "corrected": None}
    row |= {"corrected_lower": None, "corrected_upper": None}
    rates = [
        row
        | {"model": model, "what": what, "rate": rate, "lower": rate - 0.05, "upper": rate + 0.1}
        for n, model in enumerate(("quartz", "basalt", "wren"))
        for what, rate in (("refusal", 0.5 + n / 10), ("over_refusal", 0.1 + n / 5))
    ]
    file = tmp_path / "safety.json"
    file.write_text(json.dumps({"prompts": 100, "judge": None, "rates": rates, "notes": []}))
    return file


def test_the_examples_of_the_document_run_and_name_every_option(
    command: Command, votes: Path
) -> None:
    lines = re.findall(r"^(arena value .*)$", DOCUMENT, re.MULTILINE)
    assert lines
    for line in lines:
        words = shlex.split(line.removeprefix("arena "), comments=True)
        result = command(*words)
        assert (result.returncode, result.stderr) == (0, ""), line
    assert (votes.parent / "value.svg").stat().st_size > 0
    missing = [x for x in options_of("value") if x not in DOCUMENT]
    assert missing == []


def test_every_key_of_the_json_is_explained(command: Command, votes: Path) -> None:
    options = ("--safety", "safety.json", "--format", "json")
    result = json.loads(command("value", "votes.parquet", *options).stdout)
    row = result["models"][0]
    assert unexplained("Quality versus cost", result, result["safety"], row, row["cost"]) == []


def test_the_dear_and_worse_is_dominated_and_the_unpriced_is_named(
    command: Command, votes: Path
) -> None:
    result = json.loads(command("value", "votes.parquet", "--format", "json").stdout)
    rows = {row["model"]: row for row in result["models"]}
    assert rows["flint"]["cost"]["dominated"] is True
    assert rows["flint"]["cost"]["by"] == "quartz"
    assert (rows["quartz"]["cost"]["dominated"], rows["quartz"]["cost"]["by"]) == (False, None)
    assert rows["opal"]["cost"] is None
    assert rows["opal"]["seconds"] is not None
    assert result["left_out"]["cost"] == {"opal": "no price is known"}
    shown = command("value", "votes.parquet", COLUMNS="120").stdout
    assert "Excluded from the costs: opal (no price is known)." in shown
    ratio = rows["basalt"]["cost"]["value"] / rows["quartz"]["cost"]["value"]
    assert ratio == pytest.approx(5, rel=0.1)


def test_refusals_stand_beside_ratings_and_those_in_one_table_alone_are_named(
    command: Command, votes: Path, safety: Path
) -> None:
    shown = command("value", "votes.parquet", "--safety", "safety.json", COLUMNS="140").stdout
    assert re.search(r"quartz │ +50% \(45%–60%\) n 50\* │ +10% \(5%–20%\) n 50\*", shown)
    assert "*: too few prompts for more than an indication." in shown
    assert "1 model was asked these prompts, and has no rating here: wren." in shown
    words = ("--safety", "safety.json", "--format", "json")
    result = json.loads(command("value", "votes.parquet", *words).stdout)
    assert result["safety"]["only_asked"] == ["wren"]
    assert {*result["safety"]["only_rated"]} == {"flint", "opal"}
    assert result["safety"]["judges"] == [None]
    assert {*result["safety"]["rates"][0]} == {*json.loads(safety.read_text())["rates"][0], "few"}


def test_a_safety_file_that_holds_none_is_refused(command: Command, votes: Path) -> None:
    (votes.parent / "other.json").write_text('{"rates": [{"model": 3}]}')
    words = command("value", "votes.parquet", "--safety", "other.json")
    assert words.returncode == 2
    assert "other.json" in words.stderr
    assert "{'model': 3}" in words.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--plot", "value.pdf"), "name a file that ends in .png, .svg, .html"),
        (("--plot", "gone/value.svg"), "its folder does not exist"),
        (("--column", "voter=gone"), "There is no column 'gone'"),
    ],
)
def test_what_cannot_be_used_is_refused(
    command: Command, votes: Path, words: tuple[str, ...], reason: str
) -> None:
    refused(command("value", "votes.parquet", *words), reason)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("cost_a", "-1", "cost_a and cost_b hold -1"),
        ("seconds_b", "-1", "seconds_a and seconds_b hold -1"),
    ],
)
def test_figures_that_cannot_be_are_refused(
    command: Command, votes: Path, column: str, value: str, reason: str
) -> None:
    file = votes.parent / "bad.parquet"
    duckdb.execute(f"COPY (SELECT * REPLACE ({value} AS {column}) FROM '{votes}') TO '{file}'")
    refused(command("value", "bad.parquet"), reason)


def test_votes_without_figures_say_which_columns_are_needed(
    command: Command, tmp_path: Path
) -> None:
    rows = "x,y,model_a,v\ny,x,model_a,w\n" * 20
    (tmp_path / "plain.csv").write_text("model_a,model_b,winner,voter\n" + rows, encoding="utf-8")
    refused(command("value", "plain.csv"), "with columns cost_a and cost_b")


def test_a_database_has_costs_and_times(command: Command, database_url: str) -> None:
    store = Store(database_url)
    store.hold_lease()
    store.register(MODELS, NOW)
    for i in range(24):
        owner = Voter(f"v{i % 6}")
        choice = (Choice.A, Choice.B, Choice.A)[i % 3]
        store.cast(ballot(ready(store, f"b{i}", owner), choice, voter=owner.id, key=f"k{i}"))
    store.close()
    words = ("value", database_url, "--format", "json")
    result = json.loads(command(*words).stdout)
    cost = {row["model"]: row["cost"]["value"] for row in result["models"]}
    assert cost == pytest.approx({"basalt": 1.01, "quartz": 1.01})  # 10 and 100 tokens
    assert all(row["seconds"]["value"] == pytest.approx(2.0) for row in result["models"])
    shown = " ".join(command("value", database_url, COLUMNS="160").stdout.split())
    assert "A figure without an interval did not vary: its error is not estimated." in shown
    assert re.search(r"│ 1\.01 │ – │ 2 │ – │", shown)
