"""Several files as one table: which these are, what of them is read, and what is refused."""

import gzip
import json
from codecs import BOM_UTF8
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rating
from rating import DataError, Files
from rating.tables import duckdb_engine, formats
from rating.tables.columns import Columns, Reading
from rating.tables.counts import read_groups
from rating.tables.duckdb_engine import connected
from rating.tables.files import expanded
from tests.rating.tables.peer_rows import ARENA, FILES, written
from tests.rating.tables.sources import ROWS, Row, messages_of, parquet, text

ENDINGS = ("parquet", "csv", "tsv.gz", "jsonl", "json")
WHOLE = Reading(prompts=True)


def write(rows: Sequence[Row], path: Path) -> Path:
    """Write rows as a file of this very name."""
    folder = path.parent / f"{path.name} made"
    folder.mkdir(parents=True)
    ending = path.name.split(".", 1)[1]
    made = parquet(rows, folder) if ending == "parquet" else text(rows, folder, ending)
    made.rename(path)
    made.parent.rmdir()
    return path


def in_order(rows: Sequence[Row], turned: bool) -> list[Row]:
    return [dict(reversed([*row.items()])) if turned else row for row in rows]


def noticed(source: object) -> tuple[str, list[str]]:
    votes, words = messages_of(rating.read_votes, source, WHOLE)
    return votes.data_hash, words


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=8)
@given(cuts=st.lists(st.integers(1, len(ROWS) - 1), max_size=3, unique=True), turned=st.booleans())
def test_parts_of_a_file_are_the_file(
    ending: str, cuts: list[int], turned: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    whole = write(ROWS, folder / f"whole.{ending}")
    edges = [0, *sorted(cuts), len(ROWS)]
    parts = [
        write(in_order(ROWS[start:end], turned and start > 0), folder / "in" / f"{start}.{ending}")
        for start, end in pairwise(edges)
    ]
    expected, silence = noticed(whole)
    assert silence == []
    for source in (parts, folder / "in", f"{folder}/in/?.*", Files((parts[0], folder / "in"))):
        assert noticed(source)[0] == expected
    many = f" ({len(parts)} files)" if len(parts) > 1 else ""
    words = [f"{folder / 'in'}{many} is read as votes; rows excluded: none"] if many else []
    assert noticed(folder / "in")[1] == words


def test_one_shard_stands_for_its_set(tmp_path: Path) -> None:
    whole = write(ROWS, tmp_path / "whole.parquet")
    names = [f"train-0000{i}-of-00002{tail}.parquet" for i, tail in ((0, "-0a1b"), (1, "-ff"))]
    shards = [
        write(rows, tmp_path / "data" / name)
        for name, rows in zip(names, (ROWS[:3], ROWS[3:]), strict=True)
    ]
    assert {noticed(source)[0] for source in (*shards, shards, tmp_path / "data", whole)} == {
        noticed(whole)[0]
    }
    shards[0].unlink()
    with pytest.raises(DataError, match=r"ff.parquet' is one of 2 files .* number 00000 is not"):
        noticed(shards[1])


def test_in_a_folder_only_what_can_be_read_is_and_a_file_counts_once(tmp_path: Path) -> None:
    path = write(ROWS, tmp_path / "votes.csv")
    for name in ("README.md", ".hidden.csv", "card.png"):
        (tmp_path / name).write_text("x")
    (tmp_path / "older.csv").mkdir()
    (tmp_path / "again.csv").symlink_to(path)
    assert len(expanded([tmp_path, path, path])) == 1


@pytest.mark.parametrize(
    ("names", "source", "words"),
    [
        (["a.csv", "b.parquet"], ".", r"a.csv' and '.*b.parquet' are not of one kind"),
        (["a.csv"], "b*.csv", r"no file at '.*b\*.csv' that ends in .parquet"),
        (["a.md"], ".", "no file at .* that ends in .parquet"),
        (["a.csv"], "b.csv", "Cannot read '.*b.csv': there is no such file"),
    ],
)
def test_what_cannot_be_one_table_is_refused(
    names: list[str], source: str, words: str, tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).write_text("model_a\n")
    with pytest.raises(DataError, match=words):
        noticed(tmp_path / source)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_with_other_columns_is_refused_by_its_name(ending: str, tmp_path: Path) -> None:
    write(ROWS, tmp_path / f"a.{ending}")
    renamed = [{"by" if key == "language" else key: x for key, x in row.items()} for row in ROWS]
    write(renamed, tmp_path / f"b.{ending}")
    with pytest.raises(DataError, match=r"b\..*' lacks 'language' and has also 'by', unlike '.*a"):
        noticed(tmp_path)


def test_a_line_that_is_wrong_is_quoted_with_its_own_file(tmp_path: Path) -> None:
    for name, rest in (("a.csv", ""), ("b.csv", "x,y,tie,z\n")):
        (tmp_path / name).write_text(f"model_a,model_b,winner\nx,y,tie\n{rest}")
    with pytest.raises(DataError, match=r"Line 3 of '.*b.csv' has 4 cells"):
        noticed(tmp_path)
    (tmp_path / "b.csv").write_text("model_a,model_b,winner,model_a\nx,y,tie,x\n")
    with pytest.raises(DataError, match=r"b.csv' has two columns 'model_a'"):
        noticed(tmp_path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_condition_chooses_rows_before_anything_else(ending: str, tmp_path: Path) -> None:
    path = write(
        [*ROWS, {**ROWS[0], "winner": "odd", "language": "Odd"}], tmp_path / f"v.{ending}"
    )
    english = write([row for row in ROWS if row["language"] == "English"], tmp_path / "e.csv")
    digest, words = noticed(Files((path,), where="language = 'English' -- only"))
    assert digest == noticed(english)[0]
    assert words == [f"{path} is read as votes; rows excluded: 4 by where"]
    groups = read_groups(
        Files((path,), where="winner <> 'odd'"), Reading(columns=Columns(by="language"))
    )
    assert [*groups] == ["English", "Finnish", "(none)"]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("nope = 1", 'nope = 1.*"nope" not found'),
        ("language = ", "language = .*syntax error"),
        ("1) or (1", r"1\) or \(1.*syntax error"),
        ("CAST(language AS INTEGER) = 1", "CAST.*Could not convert"),
        ("strptime(language, '%Y') > '2024-01-01'", "strptime.*parse"),
        ("language = 'Odd'", "No row .* fits .*'Odd'.*: all 8"),
    ],
)
def test_a_bad_condition_is_quoted(where: str, words: str, tmp_path: Path) -> None:
    for ending in ("csv", "json"):
        path = write(ROWS, tmp_path / f"votes.{ending}")
        with pytest.raises(DataError, match=words):
            noticed(Files((path,), where=where))


@pytest.mark.parametrize("ending", ENDINGS)
def test_labels_of_theirs_are_read_as_ours(ending: str, tmp_path: Path) -> None:
    ours = {"model_a": "left=1", "model_b": "it's right", "tie": "-"}
    rows = [{**row, "winner": ours.get(row["winner"], row["winner"])} for row in ROWS]
    chosen = [
        {**{k: x for k, x in row.items() if k != "winner"}, "y": row["winner"]} for row in rows
    ]
    labels = tuple((theirs, winner) for winner, theirs in ours.items())
    expected = noticed(write(ROWS, tmp_path / "own.csv"))[0]
    path = write(rows, tmp_path / f"theirs.{ending}")
    assert noticed(Files((path,), labels=labels))[0] == expected
    renamed = write(chosen, tmp_path / f"named.{ending}")
    assert noticed(Files((renamed,), (("winner", "y"),), labels=labels))[0] == expected
    named = Files((renamed,), labels=labels, winner="y")
    reading = Reading(columns=Columns(winner="y"), prompts=True)
    assert rating.read_votes(named, reading).data_hash == expected
    with pytest.raises(DataError, match=r"no column of a winner .* to read labels of"):
        noticed(Files((renamed,), labels=labels))


def test_labels_of_a_peers_file_are_read_as_ours(tmp_path: Path) -> None:
    agents = [*FILES["agents.json"][1], {**FILES["agents.json"][1][0], "rating": "C is better"}]
    path = written(tmp_path, "agents.json", agents)
    votes = rating.read_votes(Files((path,), labels=(("C is better", "tie"),)))
    assert votes.read == len(agents)
    turned = Files(
        (written(tmp_path, "arena.json", ARENA),),
        labels=(("model_a", "model_b"), ("model_b", "model_a")),
    )
    before = rating.read_votes(tmp_path / "arena.json").data.outcome
    assert rating.read_votes(turned).data.outcome.tolist() != before.tolist()


def test_peers_files_of_one_format_are_announced_once(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        written(tmp_path, name, ARENA)
    words = noticed(Files((tmp_path,), where="judge = 'arena_user_ada' OR true"))[1]
    announced, repeats = words
    assert announced == (
        f"{tmp_path} (2 files) is read as Chatbot Arena; "
        "rows excluded: 0 by where, 2 not anonymous"
    )
    assert repeats.startswith(f"{tmp_path}: 3 rows repeat an earlier one in question_id, ")
    assert repeats.endswith("rate a file without them.")


def test_peers_files_of_two_formats_are_refused(tmp_path: Path) -> None:
    hard, wild = (
        next(rows for known, rows, _, _ in FILES.values() if known.startswith(name))
        for name in ("Arena-Hard v0.1", "WildVision")
    )
    names = sorted({*hard[0]} & {*wild[0]})
    for name, rows in (("a.jsonl", hard), ("b.jsonl", wild)):
        lines = [json.dumps({key: row[key] for key in names}) for row in rows]
        (tmp_path / name).write_text("\n".join(lines))
    with pytest.raises(
        DataError, match=r"a.jsonl' is in the format Arena-Hard .*b.jsonl' in Wild"
    ):
        noticed(tmp_path)


def test_two_values_for_one_label_are_refused() -> None:
    with pytest.raises(DataError, match="'left' has two values, 'model_a' and 'tie': drop one"):
        Files(("a.csv",), labels=(("left", "model_a"), ("left", "tie")))


@pytest.mark.usefixtures("a_common_umask")
def test_a_written_file_is_its_owner_s_alone_and_replaces_what_a_link_leads_to(
    tmp_path: Path,
) -> None:
    (tmp_path / "there.csv").write_text("before")
    (tmp_path / "link.csv").symlink_to(tmp_path / "there.csv")
    formats.write_text("after", tmp_path / "link.csv")
    formats.write_parquet([{"a": 1}], tmp_path / "one.parquet")
    with connected() as connection:
        for name in ("two.parquet", "two.csv"):
            duckdb_engine.write_relation(connection.sql("SELECT 1 AS a"), tmp_path / name)
    assert (tmp_path / "there.csv").read_text() == "after"
    files = [path for path in tmp_path.iterdir() if not path.is_symlink()]
    assert len(files) == 4
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (tmp_path / "link.csv").is_symlink()


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "null.csv").symlink_to("/dev/null")
    formats.write_text("gone", tmp_path / "null.csv")
    assert Path("/dev/null").is_char_device()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for write in (partial(formats.write_text, "x"), partial(formats.write_parquet, [{"a": 1}])):
        with pytest.raises(DataError, match=r"Cannot write '.*/none/x\.csv': No such file or dir"):
            write(tmp_path / "none" / "x.csv")


@pytest.mark.parametrize("ending", ["json", "json.gz", "jsonl", "ndjson.gz"])
@pytest.mark.parametrize("before", ["", "\n  "])
@pytest.mark.parametrize("name", ["votes", "arena"])
def test_a_byte_order_mark_before_json_is_no_part_of_it(
    ending: str, before: str, name: str, tmp_path: Path
) -> None:
    rows = ARENA if name == "arena" else [{**row, "tstamp": str(row["tstamp"])} for row in ROWS]
    texts = [json.dumps(row) for row in rows]
    is_list = ending.startswith("json") and not ending.startswith("jsonl")
    text = f"[{', '.join(texts)}]" if is_list else "\n".join(texts)
    raw = f"\ufeff{before}{text}".encode()
    path, plain = tmp_path / f"{name}.{ending}", tmp_path / f"plain.{ending}"
    for file, content in ((path, raw), (plain, raw.removeprefix(BOM_UTF8))):
        file.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert rating.read_votes(path).data_hash == rating.read_votes(plain).data_hash


def test_a_broken_list_behind_a_byte_order_mark_is_named_by_its_entry(tmp_path: Path) -> None:
    path = tmp_path / "votes.json"
    path.write_bytes(BOM_UTF8 + b'[{"model_a": "x"}, {"model_a"]')
    with pytest.raises(DataError, match=r"Entry 2 of .*votes.json' is not JSON"):
        rating.read_votes(path)
