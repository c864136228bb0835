import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from arena.boards.export import COLUMNS, export_votes
from arena.boards.record_file import verify_export
from arena.domain.vote import DEFAULT, Choice
from arena.store import chain, log
from arena.store.chain import LoggedLink
from arena.store.store import Store
from arena.store.verify import verify
from rating.errors import DataError
from tests.arena.boards.log import NOW, endless_links, linked, vote
from tests.arena.store.test_verify import golden, played
from tests.sqlite import new_sqlite

ROOT = Path(__file__).parents[3]
VOTES = [
    replace(vote("m0", 'm"1', Choice.A), voter="ada, the first"),
    vote("m0", "m2", Choice.BOTH_BAD),
    vote("m0", "m2", Choice.SKIP),
]


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_an_export_reads_back_the_same(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"votes.{ending}"
    assert export_votes(linked(VOTES), DEFAULT, path, total=len(VOTES)).rows == 2
    with duckdb.connect() as connection:
        read = connection.execute(f"SELECT * FROM '{path}'")
        assert [column[0] for column in read.description or ()] == list(COLUMNS)
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in read.fetchall()]
    assert [row["winner"] for row in rows] == ["model_a", "both_bad", None]
    assert [row["left_out"] for row in rows] == [None, None, "skipped"]
    shown = {name for name, value in rows[2].items() if value is not None}
    hashes = {"link_kind", "link", "links", "content", "hash"}
    assert shown == {"left_out", "policy", "all_votes", "excluded_vote", *hashes}
    assert list(json.loads(rows[2]["excluded_vote"])) == list(chain.BOUND)
    assert rows[0]["model_b"] == 'm"1'
    assert rows[0]["voter"] == "ada, the first"
    assert str(rows[0]["ts"])[:10] == "2026-11-19"
    assert rows[0]["pair_probability"] == 1.0


def test_everything_holds_also_what_is_left_out_and_why(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    assert export_votes(linked(VOTES), DEFAULT, path, everything=True, total=len(VOTES)).rows == 3
    rows = duckdb.read_parquet(str(path)).select("winner", "left_out").fetchall()
    assert rows == [("model_a", None), ("both_bad", None), ("skip", "skipped")]


def test_an_export_of_no_votes_still_has_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    assert export_votes(linked([]), DEFAULT, path, total=0).rows == 0
    assert duckdb.read_parquet(str(path)).columns == list(COLUMNS)


@pytest.mark.parametrize("name", ["votes.xlsx", "votes", "no/such/folder/votes.csv"])
def test_a_file_that_cannot_be_written_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="Cannot write"):
        export_votes(linked(VOTES), DEFAULT, tmp_path / name, total=len(VOTES))


def test_the_moment_of_a_vote_is_written_in_utc(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    export_votes(linked(VOTES), DEFAULT, path, total=len(VOTES))
    assert NOW.strftime("2026-11-19 00:00:00") in path.read_text()


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The log of `tests.arena.store.test_verify`, with a skip and an exclusion."""
    store = played(new_sqlite(tmp_path_factory.mktemp("arena")))
    yield store
    store.close()


def exported(store: Store, path: Path, *, everything: bool = False) -> Path:
    with store.reading() as session:
        total = log.count_links(session)
        links = log.links(session, DEFAULT)
        export_votes(links, DEFAULT, path, total=total, everything=everything)
    return path


@pytest.mark.sampled(3)
@pytest.mark.parametrize("everything", [True, False])
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_an_export_verifies_by_its_hashes(
    arena: Store, tmp_path: Path, ending: str, everything: bool
) -> None:
    path = exported(arena, tmp_path / f"votes.{ending}", everything=everything)
    with arena.reading() as session:
        in_database = verify(session)
    assert replace(verify_export(path), scope=None) == in_database
    assert verify_export(path, in_database.head[:8]).problem is None
    assert verify_export(path, "c0ffee").problem == (
        "No link has the hash 'c0ffee': it was rewritten since."
    )


CHANGES = (
    "battle_id = 'b9', prompt_id = 'p9', model_a = 'quartz', model_b = 'basalt', "
    "winner = 'model_a', voter = 'bob', ts = ts + INTERVAL 1 MICROSECOND, "
    "voter_kind = 'simulated', pair_probability = '0.5', repicks = '1', pacing = 'raw', "
    "seconds_to_vote = '1.5', left_out = 'dull', mode = 'continued', prompt_set = 'other', "
    "sampler = 'weighted', sampler_version = '2', fingerprint_a = '9', fingerprint_b = '9', "
    "turn = '2', attempt_a = '2', attempt_b = '2', order_shown = 'ba', transcript_hash = '9', "
    "link = 9, content = '9', hash = '9'"
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("column", "value"), [c.split(" = ") for c in CHANGES.split(", ")])
def test_a_changed_value_of_an_export_is_found(
    arena: Store, tmp_path: Path, column: str, value: str
) -> None:
    path = changed(
        exported(arena, tmp_path / "votes.csv"),
        f"SELECT * REPLACE (CASE link WHEN 2 THEN {value} ELSE {column} END AS {column}) FROM v",
    )
    problem = verify_export(path).problem
    assert problem is not None
    assert re.match(r"(Link|The row of link) 2", problem)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT * FROM v WHERE link <> 2", "Link 2 of the chain is missing"),
        ("SELECT * FROM v WHERE link < 6", "ends at link 5 of 6"),
        ("FROM v UNION ALL FROM v WHERE link = 2", "Link 2 of the chain is there twice"),
        (
            "SELECT * REPLACE (if(link IN (2, 5), 7 - link, link) AS link) FROM v",
            "Link 2, the vote on battle 'b4', is not as it was recorded",
        ),
        (
            "SELECT * REPLACE (replace(exclusion, 'bot', 'cat') AS exclusion) FROM v",
            "Link 4, an exclusion, is not as it was recorded",
        ),
        (
            "SELECT * REPLACE (if(link = 2, 'default-v1', policy) AS policy) FROM v",
            "The rows are of several exports: policy is default-v3 at link 1, and default-v1",
        ),
        (
            "SELECT * REPLACE (CASE link WHEN 3 THEN NULL ELSE left_out END AS left_out) FROM v",
            "The row of link 3 is not as an export writes it",
        ),
    ],
)
def test_rows_of_an_export_that_were_deleted_doubled_or_moved_are_found(
    arena: Store, tmp_path: Path, query: str, problem: str
) -> None:
    path = changed(exported(arena, tmp_path / "votes.csv"), query)
    assert problem in (verify_export(path).problem or "")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("replaced", "link"),
    [
        ("if(link = 4, '', left_out) AS left_out", 4),
        ("if(link = 4, 'm0', model_a) AS model_a", 4),
        ("if(link = 4, 'vote', link_kind) AS link_kind", 4),
        ("if(link = 4, '{}', exclusion) AS exclusion", 4),
        ("if(link = 4, 'no JSON', exclusion) AS exclusion", 4),
        ("if(link = 4, repeat('[', 100000), exclusion) AS exclusion", 4),
        ("if(link = 2, 'x', link_kind) AS link_kind", 2),
        ("if(link = 2, 'mark', link_kind) AS link_kind", 2),
        ("if(link = 2, 'no vote', left_out) AS left_out", 2),
        ("if(link = 2, 'gpt', judge) AS judge", 2),
        ("if(link = 2, '0.4', repicks) AS repicks", 2),
        ("if(link = 2, 'nobody', winner) AS winner", 2),
        ("if(link = 2, 'alien', voter_kind) AS voter_kind", 2),
        ("if(link = 2, NULL, pacing) AS pacing", 2),
        ("if(link = 2, NULL, ts) AS ts", 2),
        ("if(link = 2, 'inf', seconds_to_vote) AS seconds_to_vote", 2),
        ("if(link = 2, NULL, hash) AS hash", 2),
        ("if(link = 2, NULL, links) AS links", 2),
        ("if(link = 2, 'default-v9', policy) AS policy", 2),
        ("if(link = 3, ' ', left_out) AS left_out", 3),
        ("if(link = 3, NULL, link) AS link", 3),
    ],
)
def test_a_row_that_no_export_has_is_found(
    arena: Store, tmp_path: Path, replaced: str, link: int
) -> None:
    path = changed(exported(arena, tmp_path / "v.csv"), f"SELECT * REPLACE ({replaced}) FROM v")
    problem = verify_export(path).problem or ""
    assert re.match(f"(Link|The row of link) {link}[ ,]", problem), problem


def test_an_export_that_was_forged_up_to_a_mark_does_not_have_the_hash_that_was_noted(
    arena: Store, tmp_path: Path
) -> None:
    """Before a mark hashes cannot be worked out from an export."""
    with arena.reading() as session:
        head, links = verify(session).head, list(log.links(session, DEFAULT))
    shown = [link for link in links if link.kind == "vote"]
    forged = [replace(link, link=place, exclusions=()) for place, link in enumerate(shown, 1)]
    forged[-1] = replace(forged[-1], hash=head)
    content = chain.mark_content(
        hashlib.sha256("".join(link.content for link in forged).encode()).hexdigest()
    )
    end = len(forged) + 1
    own_hash = chain.link_hash(head, end, "mark", content)
    mark = LoggedLink(kind="mark", link=end, content=content, hash=own_hash, bound={})
    export_votes([*forged, mark], DEFAULT, tmp_path / "v.csv", total=end)
    assert verify_export(tmp_path / "v.csv").problem is None
    assert "rewritten" in (verify_export(tmp_path / "v.csv", head).problem or "")


def test_the_beginning_of_an_export_cannot_be_cut_off(arena: Store, tmp_path: Path) -> None:
    path = changed(
        exported(arena, tmp_path / "v.csv"),
        "SELECT * REPLACE (link - 2 AS link, links::INT - 2 AS links) FROM v WHERE link > 2",
    )
    assert "not as it was recorded" in (verify_export(path).problem or "")


def test_a_column_that_a_rating_may_read_is_not_added_in_silence(
    arena: Store, tmp_path: Path
) -> None:
    path = changed(exported(arena, tmp_path / "v.csv"), "SELECT *, 'ab' AS \"order\" FROM v")
    with pytest.raises(DataError, match="it has a column 'order'"):
        verify_export(path)


def changed(path: Path, query: str) -> Path:
    """Write an export again as somebody would have it."""
    other = path.with_name("other.csv")
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE v AS FROM read_csv($file, all_varchar = true)", {"file": str(path)}
        )
        for name in ("ts", "link"):
            connection.execute(f"ALTER TABLE v ALTER {name} TYPE {COLUMNS[name]}")
        connection.execute(f"COPY ({query}) TO '{other}' (HEADER)")
    return other


def test_votes_from_before_the_mark_are_verified_in_an_export(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript("\n".join(golden()["sql"]))
    store = Store(f"sqlite:///{tmp_path}/old.db")
    path = exported(store, tmp_path / "votes.csv")
    with store.reading() as session:
        assert replace(verify_export(path), scope=None) == verify(session)
    store.close()
    query = "SELECT * REPLACE (CASE link WHEN 3 THEN 'tie' ELSE winner END AS winner) FROM v"
    assert (verify_export(changed(path, query)).problem or "").startswith("Link 3, the vote on")


def test_a_file_without_hashes_is_said_to_have_none(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("model_a,model_b,winner\nx,y,model_a\n")
    with pytest.raises(DataError, match="it has no column 'battle_id'"):
        verify_export(path)


MEMORY = """
import resource
from pathlib import Path
from arena.boards.export import export_votes
from arena.domain.vote import DEFAULT
from tests.arena.boards.log import endless_links

def peak_after(votes, path):
    export_votes(endless_links(votes), DEFAULT, Path(path), total=votes)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

few = peak_after(10_000, "few.parquet")
print(peak_after(300_000, "many.parquet") - few)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_three_hundred_thousand_votes_take_the_memory_of_a_few_thousand(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", MEMORY],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert duckdb.read_parquet(str(tmp_path / "many.parquet")).shape == (300_000, len(COLUMNS))
    assert float(result.stdout) < 150, "MB above those of 10,000 votes"


def test_rows_of_a_long_export_keep_the_order_of_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    export_votes(endless_links(9_000), DEFAULT, path, total=9_000)
    links = [int(row[0]) for row in duckdb.execute(f"SELECT link FROM '{path}'").fetchall()]
    assert links == list(range(1, 9_001))
    assert not list(tmp_path.glob(".export*"))
