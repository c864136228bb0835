"""Votes in Spark: counted there, and rated as on one machine; a local cluster of two workers."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rating import RateOptions, contrasts, rate
from rating.errors import DataError
from rating.tables.columns import Columns, Reading
from rating.tables.counts import count_votes, rate_source, read_votes
from rating.tables.files import Files
from rating.tables.sources import ClusterTable
from tests.command import Command
from tests.rating.tables.sources import PLAIN, ROWS, Row, by_hand, cells, columns, counted

pytestmark = pytest.mark.timeout(600)
"""Beside a load Java takes minutes to begin."""
HERE = "spark://local[2]"
InSpark = Callable[[pa.Table], Any]


@pytest.fixture(scope="module")
def in_spark() -> Iterator[InSpark]:
    """Give a table to the cluster, which starts once: that takes longer than all of the tests."""
    if shutil.which("java") is None:
        pytest.skip("Java is not installed: Spark needs Debian's openjdk-17-jre-headless")
    from rating.tables import spark

    with pytest.MonkeyPatch.context() as patch:
        # Java begins sooner, and what it would compile best ends sooner than that.
        patch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        session = spark.session_at(HERE)
    yield session.createDataFrame
    session.stop()


def table(rows: Sequence[Row] = ROWS, **more: Sequence[object]) -> pa.Table:
    named = {name: values for name, values in columns(rows).items() if name != "prompt_id"}
    return pa.table(named | more)


def crowd(n: int = 3_000, n_models: int = 12, n_voters: int = 200) -> pa.Table:
    """Uneven voters, ties of both kinds, a newcomer of one voter and another whom few met."""
    rng = np.random.default_rng(5)
    a = rng.integers(n_models, size=n)
    b = (a + 1 + rng.integers(n_models - 1, size=n)) % n_models
    drawn, strength = rng.random(n), np.linspace(1, -1, n_models)
    won = rng.random(n) < 1 / (1 + np.exp(strength[b] - strength[a]))
    decided = np.where(won, "model_a", "model_b")
    winner = np.where(drawn < 0.15, "tie", np.where(drawn < 0.2, "both_bad", decided))
    voter = np.minimum(rng.lognormal(3, 1.2, size=n).astype(int), n_voters)
    names = [f"m {i}" for i in range(n_models)]
    new = [("new", "m 0", "model_b", "fan"), ("new", "m 1", "model_a", "fan")]
    few = [("rare", f"m {i % 5}", "model_a" if i % 3 else "tie", f"v{i % 6}") for i in range(30)]
    rows = [(names[i], names[j], w, f"v{v}") for i, j, w, v in zip(a, b, winner, voter)]  # noqa: B905
    roles = ("model_a", "model_b", "winner", "voter")
    return pa.table(dict(zip(roles, zip(*rows, *new, *few, strict=True), strict=True)))


@pytest.fixture
def without_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim ranks as of many models, here as there: in parts no signs are changed."""
    monkeypatch.setattr(contrasts, "WILD_UP_TO", 0)


def test_the_same_votes_are_the_same_in_spark(in_spark: InSpark) -> None:
    frame = in_spark(table())
    votes = read_votes(frame, PLAIN)
    assert cells(votes) == by_hand(ROWS)
    assert votes.data_hash == read_votes(table(), PLAIN).data_hash
    assert counted(votes) == counted(read_votes(table(), PLAIN))
    with_voters = read_votes(frame)
    assert (with_voters.data_hash, with_voters.voters) == (votes.data_hash, ())
    assert with_voters.parts is not None
    by_voter = [part["voters"].sum() for part in with_voters.parts.each(voters_in)]
    assert sum(by_voter) == 5


def voters_in(data: Any) -> dict[str, Any]:
    return {"voters": np.array([data.n_voters])}


@pytest.mark.sampled(5)
@pytest.mark.usefixtures("without_signs")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ties": "davidson", "order_effect": True, "both_bad": "drop", "reference": "m 0"},
        {"cluster": "none", "both_bad": "outcome"},
        {"interval": "hessian", "ties": "davidson"},
        {"interval": "none", "anchor": ("m 3", 0.0)},
    ],
    ids=str,
)
def test_a_board_is_that_of_one_machine(in_spark: InSpark, options: dict[str, Any]) -> None:
    votes = crowd()
    frame = in_spark(votes)
    same_board(rate_source(frame, RateOptions(**options)), votes, options)


@pytest.mark.slow
@pytest.mark.usefixtures("without_signs")
def test_many_parts_are_added_up_in_the_cluster(
    in_spark: InSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rating.tables.spark.ADDED_UP_HERE", 3)
    votes = crowd(1_000)
    same_board(rate_source(in_spark(votes), RateOptions()), votes, {})


def same_board(report: Any, votes: pa.Table, options: dict[str, Any]) -> None:
    numbers, rest = zip(*map(parted, (report, board(votes, options))), strict=True)
    np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-9, atol=1e-9)
    assert rest[0] == rest[1]


def board(votes: pa.Table, options: dict[str, Any]) -> Any:
    return rate_source(votes, RateOptions(**options))


def parted(report: Any) -> tuple[list[float], list[object]]:
    """Measured numbers, and all else: names, counts, ranks, warnings."""
    plain = report.to_dict()
    plain["method"].pop("data_hash")  # of votes by voter here, of counts there
    values = list(flat(plain))
    return [v for v in values if isinstance(v, float)], [
        v for v in values if not isinstance(v, float)
    ]


def flat(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            for name, inner in value.items():
                yield name
                yield from flat(inner)
        case list() | tuple():
            for inner in value:
                yield from flat(inner)
        case _:
            yield value


def test_names_may_hold_anything(in_spark: InSpark) -> None:
    hostile = {"x": "`x`.y'\"", "y": "\u202e\n<b>", "z": "ä" * 99, "Ä, 'ö' \"2\"": "$1 \\"}
    rows = [
        {**r, "model_a": hostile[r["model_a"]], "model_b": hostile[r["model_b"]]} for r in ROWS
    ]
    names = ["model.a", "model`b", "who won?", "voter;--", "tstamp", "language"]
    votes = table(rows).rename_columns(names)
    reading = Reading(columns=Columns(*names[:4]))
    ours, theirs = read_votes(in_spark(votes), reading), read_votes(votes, reading)
    assert cells(ours) == cells(read_votes(votes, replace(reading, voters=False)))
    assert ours.data.models == theirs.data.models == tuple(sorted(hostile.values()))
    assert ours.parts is not None
    sums = [part["voters"].sum() for part in ours.parts.each(voters_in)]
    assert sum(sums) == theirs.data.n_voters


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "changes",
    [
        {"voter": None},
        {"voter": " \x1c\u3000"},
        {"winner": None},
        {"winner": "left"},
        {"model_a": "  "},
        {"model_b": "X "},
    ],
    ids=str,
)
def test_votes_are_refused_as_on_one_machine(in_spark: InSpark, changes: dict[str, Any]) -> None:
    votes = table([*ROWS[:2], {**ROWS[2], **changes}, *ROWS[3:]])
    with pytest.raises(DataError) as theirs:
        read_votes(votes)
    with pytest.raises(DataError) as ours:
        read_votes(in_spark(votes))
    assert str(ours.value) == str(theirs.value).replace(", first in row 3", "")


def test_rows_that_do_not_count_are_dropped_by_their_reasons(in_spark: InSpark) -> None:
    reasons = ["fast", None, None, "no vote", None, "fast", None, None]
    votes = table(left_out=reasons)
    ours, theirs = count_votes(in_spark(votes), PLAIN), count_votes(votes, PLAIN)
    assert ours.dropped == theirs.dropped == {"fast": 2}
    assert (counted(ours), ours.data_hash) == (counted(theirs), theirs.data_hash)


def test_voters_that_nobody_names_are_not_known(in_spark: InSpark) -> None:
    votes = table([{**row, "voter": None} for row in ROWS])
    nameless = votes.set_column(3, "voter", pa.nulls(len(ROWS), pa.string()))
    assert read_votes(in_spark(nameless)).parts is None


def test_an_empty_table_holds_no_votes(in_spark: InSpark) -> None:
    with pytest.raises(DataError, match="No votes to count: 0 read"):
        read_votes(in_spark(table()).limit(0))


def test_pairs_with_counts_are_the_votes_that_they_count(in_spark: InSpark) -> None:
    pairs = {"model_a": ["x", "y"], "model_b": ["y", "x"], "n_model_a": [3, 1]}
    votes = pa.table(pairs | {"n_model_b": [0, 5], "n_tie": [2, 0]})
    assert read_votes(in_spark(votes)).data_hash == read_votes(votes).data_hash


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (Reading(style=("length",)), "style needs each of them here"),
        (Reading(weight="sampling"), "weights needs each"),
        (Reading(half_life_days=3), "half_life needs each"),
        (Reading(prompts=True), "prompts, as 'language' names them, would be excluded"),
        (
            Reading(all_prompts=True, prompts=True),
            "choose cluster voter .--cluster voter. or none",
        ),
    ],
    ids=str,
)
def test_what_needs_single_votes_is_refused(
    in_spark: InSpark, reading: Reading, words: str
) -> None:
    reading = replace(reading, columns=Columns(prompt="language"))
    with pytest.raises(DataError, match=words):
        read_votes(in_spark(table()), reading)


def test_a_file_that_is_not_parquet_is_refused_before_spark_starts() -> None:
    nowhere = ClusterTable("./votes.csv", Files(("spark://nowhere:1",)))
    with pytest.raises(DataError, match=r"'./votes.csv' is neither: write it to Parquet"):
        rate_source(nowhere, RateOptions())


def test_a_column_that_holds_no_names_and_a_judges_run_are_refused(in_spark: InSpark) -> None:
    with pytest.raises(DataError, match="Column 'voter' is of DOUBLE"):
        read_votes(in_spark(table(voter=[0.5] * 8)))
    with pytest.raises(DataError, match="The column 'order' holds a judge's orders"):
        read_votes(in_spark(table(order=["ab", "ba", "both", "ab"] * 2)))
    assert read_votes(in_spark(table(order=["ab", "first"] * 4))).read == 8


def test_a_bootstrap_by_voter_is_refused(in_spark: InSpark) -> None:
    with pytest.raises(DataError, match="choose interval sandwich, or cluster none"):
        rate(read_votes(in_spark(table())), RateOptions(interval="bootstrap", ridge=1.0))


def test_the_command_rates_a_table_of_the_cluster(
    in_spark: InSpark, command: Command, tmp_path: Path
) -> None:
    votes = crowd(1_000)
    left = ["left" if w == "model_a" else w for w in votes["winner"].to_pylist()]
    path = tmp_path / "their votes.parquet"
    pq.write_table(votes.set_column(2, "winner", pa.array(left)), path)
    chosen = ["--where", "voter <> 'v7'", "--label", "left=model_a", "--format", "csv"]
    ours = command("rate", HERE, "--table", str(path), *chosen, "--interval", "none")
    theirs = command("rate", str(path), *chosen, "--interval", "none")
    assert (ours.returncode, ours.stdout) == (0, theirs.stdout)
    in_spark(votes).createOrReplaceTempView("votes")
    named = command("rate", HERE, "--table", "votes", "--interval", "none", "--format", "json")
    assert named.returncode == 0
    for words, why in {
        ("--table", "no_such"): "There is no table 'no_such' at 'spark://local[2]'",
        ("--table", "no/such.parquet"): "Cannot read the table 'no/such.parquet' at 'spark://loca",
        ("--table", "votes", "--where", "voter ="): "Cannot choose rows of 'votes' by where 'vote",
        ("--table", "votes", "--plots", "."): "--plots draws votes of files",
        (): "Only arena rate reads the cluster 'spark://local[2]': name a table with --table NAME",
    }.items():
        refused = command("rate", HERE, *words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert why in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("spark://127.0.0.1:9", "No Spark master answers at 'spark://127.0.0.1:9': Connection"),
        ("spark://nowhere.invalid:7077", "No Spark master answers at 'spark://nowhere.invalid:7"),
        ("spark://127.0.0.1", "'spark://127.0.0.1' is no address of a Spark cluster: write"),
        ("spark://local[1]", "Cannot read from 'spark://local[1]': a session of 'local[2]' is op"),
        ("votes.parquet", "--table is for a Spark cluster, and the source is 'votes.parquet'"),
    ],
)
@pytest.mark.usefixtures("in_spark")
def test_a_cluster_that_is_not_there_is_quoted(command: Command, address: str, why: str) -> None:
    ran = command("rate", address, "--table", "votes")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert why in " ".join(ran.stderr.split())


def test_a_table_in_the_format_of_a_peer_is_refused(in_spark: InSpark) -> None:
    theirs = {"model_a": ["x"], "model_b": ["y"], "winner": ["tie"], "anony": [True]}
    in_spark(pa.table(theirs)).createOrReplaceTempView("peers")
    with pytest.raises(DataError, match="is in the format Chatbot Arena"):
        rate_source(ClusterTable("peers", Files((HERE,))), RateOptions())
