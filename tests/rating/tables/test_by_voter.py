"""Votes larger than memory: rated part by part, as if they were not."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rating import Files, RateOptions, Report, contrasts
from rating.errors import DataError
from rating.tables import by_voter, counts
from rating.tables.counts import rate_source
from rating.tables.duckdb_engine import sampled_sizes
from tests.rating.builders import random_votes

Row = tuple[Any, ...]
COLUMNS = ("model_a", "model_b", "winner", "voter")
VOTES = random_votes(np.random.default_rng(4), n=400, n_voters=40)


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take any file for a large one, in parts of some votes, with a place for work folders."""
    monkeypatch.setattr(counts, "PARTED_FROM", 1)
    monkeypatch.setattr(by_voter, "IN_A_PART", 60)
    monkeypatch.setattr(by_voter, "AT_ONCE", 50)
    monkeypatch.setattr(by_voter, "IN_A_BLOCK", 110)
    monkeypatch.setattr(by_voter, "BLOCKS_AT_ONCE", 2)
    monkeypatch.setattr(contrasts, "WILD_UP_TO", 0)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(work))


def written(path: Path, rows: Sequence[Row], **kinds: pa.DataType) -> Path:
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    arrays = {name: pa.array(values, kinds.get(name)) for name, values in columns.items()}
    pq.write_table(pa.table(arrays), path, row_group_size=70)
    return path


def in_memory(source: object, **options: Any) -> Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "PARTED_FROM", np.inf)
        report = rate_source(source, RateOptions(**options))
    assert isinstance(report, Report)
    return report


def in_parts(source: object, **options: Any) -> Report:
    chosen = RateOptions(**options)
    assert by_voter.Source.of(source, chosen) is not None
    report = rate_source(source, chosen)
    assert isinstance(report, Report)
    base = Path(tempfile.gettempdir())
    assert [*base.glob("*/*")] == []
    return report


def plain(report: Report) -> tuple[list[float], Any]:
    """Part the numbers of a board from all else, without the hash of the votes."""
    board = report.to_dict()
    assert board["method"].pop("data_hash")
    numbers: list[float] = []

    def without(value: Any) -> Any:
        if isinstance(value, float):
            numbers.append(value)
            return "number"
        if isinstance(value, dict):
            return {name: without(one) for name, one in value.items()}
        return [*map(without, value)] if isinstance(value, list) else value

    rest = without(board)
    return numbers, rest


def same(source: object, **options: Any) -> None:
    ours, rest = plain(in_parts(source, **options))
    numbers, others = plain(in_memory(source, **options))
    np.testing.assert_allclose(ours, numbers, rtol=1e-9, atol=1e-9)
    assert rest == others


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40)


@pytest.mark.slow
@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(NAMES.filter(str.strip), min_size=3, max_size=12, unique=True),
    st.integers(0, 2**32 - 1),
)
def test_voters_of_any_names_are_rated_as_in_memory(
    tmp_path: Path, names: list[str], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = random_votes(rng, n=300, n_models=4)
    named = [(*row[:3], names[rng.integers(len(names))]) for row in rows]
    same(written(tmp_path / "votes.parquet", named))


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.int64()],
    ids=str,
)
def test_columns_of_every_kind_are_read(tmp_path: Path, kind: pa.DataType) -> None:
    rows = [(*row[:3], int(row[3][1:]) if kind == pa.int64() else row[3]) for row in VOTES]
    text = kind if kind != pa.int64() else pa.string()
    same(written(tmp_path / "v.parquet", rows, voter=kind, model_a=text, winner=text))


@pytest.mark.parametrize(
    "options",
    [
        {"both_bad": "drop"},
        {"both_bad": "outcome", "ties": "grounded"},
        {"ties": "davidson", "order_effect": True},
        {"cluster": "voter", "ridge": 1.0},
        {"reference": "m1", "level": 0.9},
    ],
    ids=str,
)
def test_the_options_are_those_of_any_rating(tmp_path: Path, options: dict[str, Any]) -> None:
    same(written(tmp_path / "votes.parquet", VOTES), **options)


def test_skips_self_battles_and_labels_of_others_are_left_out_or_read(tmp_path: Path) -> None:
    rows = [*VOTES, ("m0", "m0", "tie", "v1"), ("only", "only", "tie", "v2")]
    rows += [("m0", "m1", "skip", "v3"), ("m0", "m1", "left", "v4"), ("m2", "m1", "left", "v4")]
    path = written(tmp_path / "votes.parquet", rows)
    same(Files((path,), labels=(("left", "model_a"),)))
    with pytest.raises(DataError, match=r"Unknown labels in the winner: 'left' .2 votes"):
        in_parts(path)


def test_winners_that_are_names_and_blanks_that_are_labels_are_read_in_memory(
    tmp_path: Path,
) -> None:
    sides = {"model_a": 0, "model_b": 1}
    named = [(a, b, (a, b)[sides[w]] if w in sides else w, v) for a, b, w, v in VOTES]
    path = written(tmp_path / "named.parquet", named)
    assert by_voter.Source.of(path, RateOptions()) is None
    expected = plain(in_memory(written(tmp_path / "votes.parquet", VOTES)))[0]
    np.testing.assert_allclose(plain(in_memory(path))[0], expected, rtol=1e-9, atol=1e-9)
    labels = (("", "tie"),)
    assert by_voter.Source.of(Files((path,), labels=labels), RateOptions()) is None


def test_several_files_and_other_names_of_columns_are_one_table(tmp_path: Path) -> None:
    for number in range(2):
        file = tmp_path / f"votes-{number}.parquet"
        written(file, VOTES[number::2])
        table = pq.read_table(file).rename_columns(["model_a", "model_b", "winner", "who"])
        pq.write_table(table, file)
    paths = str(tmp_path / "votes-*.parquet")
    same(Files((paths,), columns=(("voter", "who"),)))
    same(paths, columns=(("voter", "who"),))


def test_nearly_all_voters_with_a_vote_each(tmp_path: Path) -> None:
    rows = [(*row[:3], f"voter {i}") for i, row in enumerate(VOTES)]
    same(written(tmp_path / "votes.parquet", [*rows[:-1], (*rows[-1][:3], "voter 0")]))


def test_a_voter_with_most_votes_is_counted_and_refitted_without(tmp_path: Path) -> None:
    rows = [(*row[:3], "busy" if i % 4 else row[3]) for i, row in enumerate(VOTES * 3)]
    same(written(tmp_path / "votes.parquet", rows))


def test_a_newcomer_whom_few_met_has_the_variance_of_tastes(tmp_path: Path) -> None:
    new = [("new", f"m{i % 3}", "model_a" if i % 2 else "model_b", f"v{i % 4}") for i in range(24)]
    same(written(tmp_path / "votes.parquet", [*VOTES, *new]))


@pytest.mark.parametrize(
    ("at", "missing"), [(3, None), (3, ""), (3, "  "), (2, None), (1, None), (0, None)]
)
def test_votes_of_which_some_lack_a_name_are_refused_as_ever(
    tmp_path: Path, at: int, missing: str | None
) -> None:
    lacking = [(*row[:at], missing, *row[at + 1 :]) for row in VOTES[200:203]]
    path = written(tmp_path / "votes.parquet", [*VOTES[:200], *lacking, *VOTES[203:]])
    with pytest.raises(DataError) as error:
        in_memory(path)
    with pytest.raises(DataError) as ours:
        in_parts(path)
    assert str(ours.value) == str(error.value)
    assert "missing or blank in 3 votes, first in row 201" in str(error.value)


def test_votes_of_nobody_are_rated_as_independent(tmp_path: Path) -> None:
    path = written(tmp_path / "v.parquet", [(*row[:3], None) for row in VOTES], voter=pa.string())
    same(path)


def test_what_needs_more_than_voters_is_rated_in_memory(tmp_path: Path) -> None:
    path = written(tmp_path / "votes.parquet", VOTES)
    for options in ({"interval": "bootstrap"}, {"cluster": "none"}, {"claims": "these-voters"}):
        assert by_voter.Source.of(path, RateOptions(**options)) is None  # type: ignore[arg-type]
    assert by_voter.Source.of(Files((path,), where="voter <> 'v1'"), RateOptions()) is None
    table = pq.read_table(path)
    pq.write_table(table.append_column("prompt_id", table["voter"]), path)
    assert by_voter.Source.of(path, RateOptions()) is None


@pytest.mark.parametrize("options", [{"cluster": "none"}, {"interval": "hessian"}])
def test_voters_are_sampled_where_intervals_do_not_depend_on_them(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    rows = random_votes(np.random.default_rng(5), n=4000, n_voters=3000)
    path = written(tmp_path / "votes.parquet", rows)
    ours, whole = rate_source(path, RateOptions(**options)), in_memory(path, **options)
    assert isinstance(ours, Report)
    assert ours.to_dict()["ratings"] == whole.to_dict()["ratings"]
    voters = {row[3] for row in rows}
    assert (ours.votes.voters, whole.votes.voters) == (None, len(voters))
    (warning,) = (text for text in ours.warnings if "treat votes as independent" in text)
    assert f"though a sample of them is of {len(voters)} voters" in warning


def test_few_voters_in_the_sample_are_all_read(tmp_path: Path) -> None:
    path = written(tmp_path / "votes.parquet", VOTES)
    report = rate_source(path, RateOptions(cluster="none"))
    assert isinstance(report, Report)
    assert report.to_dict() == in_memory(path, cluster="none").to_dict()


def test_a_voter_whose_votes_are_adjacent_has_their_share_of_a_sample(tmp_path: Path) -> None:
    voter = [*range(3_000), *[0] * 5_000, *range(8_000, 100_000)]
    pq.write_table(pa.table({"voter": voter}), tmp_path / "votes.parquet")
    sizes = sampled_sizes([tmp_path / "votes.parquet"], "voter", 6_400)
    assert sizes.max() / sizes.sum() == pytest.approx(0.05, abs=1 / 64)


def test_nothing_of_this_is_loaded_for_a_file_of_few_votes(tmp_path: Path) -> None:
    path = written(tmp_path / "votes.parquet", VOTES)
    code = (
        "import sys; from rating import RateOptions; from rating.tables.counts import rate_source;"
        f"rate_source({str(path)!r}, RateOptions());"
        "print({'pyarrow', 'numba', 'pandas', 'polars'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


@pytest.mark.parametrize("place", [40, -300])
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path: Path, place: int) -> None:
    path = written(tmp_path / "votes.parquet", VOTES)
    whole = path.read_bytes()
    path.write_bytes(whole[:place] if place < 0 else whole[:place] + bytes(90) + whole[130:])
    with pytest.raises(DataError, match=r"Cannot read .* it is damaged"):
        rate_source(path, RateOptions())


def test_a_hash_does_not_depend_on_how_a_name_is_stored() -> None:
    names = ["a", "b", "ab", "abcdefgh", "abcdefghi", "ä" * 20, "x" * 300, "x" * 301, "a\0", "7"]
    words, missing = by_voter.hashed(pa.array(names), 1)
    assert len({*words.tolist()}) == len(names)
    assert not missing.any()
    for other in (
        pa.array(["…", *names])[1:],
        pa.array(names, pa.large_string()),
        pa.array(names).dictionary_encode(),
    ):
        assert by_voter.hashed(other, 1)[0].tolist() == words.tolist()
    assert by_voter.hashed(pa.array(names), 2)[0].tolist() != words.tolist()


RUN = """
import json, os, signal, sys, tempfile
from rating import RateOptions
from rating.tables import by_voter, counts
from rating.tables.counts import rate_source

source, work, end, seen = sys.argv[1], sys.argv[2], int(sys.argv[3]), 0
tempfile.tempdir, counts.PARTED_FROM, by_voter.IN_A_PART = work, 0, 40
store, read = by_voter._store, by_voter.Source.batches

def counted(path, arrays):
    global seen
    if path.name.startswith("voters") and (seen := seen + 1) == end:
        os.kill(os.getpid(), signal.SIGKILL)
    store(path, arrays)

def batches(source):
    print("reads", file=sys.stderr)
    return read(source)

by_voter._store, by_voter.Source.batches = counted, batches
print(json.dumps([rate_source(source, RateOptions()).to_dict(), seen]))
"""


def test_a_run_killed_at_half_goes_on_and_ends_with_the_same_digits(tmp_path: Path) -> None:
    path = written(tmp_path / "votes.parquet", VOTES)

    def run(folder: str, end: int) -> subprocess.CompletedProcess[str]:
        (tmp_path / folder).mkdir(exist_ok=True)
        command = [sys.executable, "-c", RUN, str(path), str(tmp_path / folder), str(end)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    whole, n_parts = json.loads(run("whole", 0).stdout)
    assert n_parts == 10
    killed = run("killed", 6)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "")
    left = {file.name for file in (tmp_path / "killed").glob("*/*/voters*.npz")}
    assert 4 <= len(left) <= 6
    again = run("killed", 0)
    assert json.loads(again.stdout) == [whole, n_parts - len(left)]
    assert "reads" not in again.stderr
    assert [*(tmp_path / "killed").glob("*/*")] == []


def test_a_file_that_changed_is_read_anew(tmp_path: Path) -> None:
    path = written(tmp_path / "votes.parquet", VOTES)
    one = by_voter.Source.of(path, RateOptions())
    assert one is not None
    swap = replace(one, labels={"model_a": "model_b", "model_b": "model_a"})
    other = replace(one, columns={**one.columns, "voter": "session"})
    keys = {each.key(RateOptions()) for each in (one, swap, other)}
    keys.add(one.key(RateOptions(ridge=1.0)))
    os.utime(path, ns=(1, 1))
    assert len(keys | {one.key(RateOptions())}) == 5


def base() -> Path:
    return Path(tempfile.gettempdir()) / f"arena-rate-{os.getuid()}"


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "votes.parquet", VOTES)
    base().mkdir()
    base().chmod(0o777)
    with pytest.raises(DataError, match="not a folder of yours alone"):
        in_parts(path)
    base().rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    base().symlink_to(tmp_path / "theirs")
    with pytest.raises(DataError, match=r"not a folder of yours alone.*set TMPDIR"):
        in_parts(path)
    assert [*(tmp_path / "theirs").iterdir()] == []


def test_two_processes_do_not_rate_the_same_votes_at_once(tmp_path: Path) -> None:
    path = written(tmp_path / "votes.parquet", VOTES)
    source = by_voter.Source.of(path, RateOptions())
    assert source is not None
    with (
        by_voter.work_folder(source, RateOptions(), lambda done, total: None),
        pytest.raises(DataError, match="Another process rates these votes"),
    ):
        rate_source(path, RateOptions())
    assert [*base().iterdir()] == []


def test_too_little_room_is_said_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "votes.parquet", VOTES)
    monkeypatch.setattr(by_voter, "BYTES_A_VOTE", 10**16)
    with pytest.raises(DataError, match=r"takes 4000000000.0 GB in .* set TMPDIR to a folder"):
        rate_source(path, RateOptions())
    assert [*base().iterdir()] == []


@pytest.mark.slow
def test_far_too_many_models_are_refused(tmp_path: Path) -> None:
    rows = [(f"m{i}", f"m{i + 1}", "tie", "v") for i in range(3000)]
    with pytest.raises(DataError, match="1,000 are the most"):
        in_parts(written(tmp_path / "votes.parquet", rows))
    labels = [("m0", "m1", f"label {i}", "v") for i in range(100)]
    with pytest.raises(DataError, match="over 64 labels"):
        in_parts(written(tmp_path / "labels.parquet", labels))
