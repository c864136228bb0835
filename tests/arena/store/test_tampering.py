"""Whoever can write to the database: each change is found, changes nothing read, or is listed."""

import re
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, Boolean, Column, DateTime, Float, Integer, LargeBinary, String

from arena.boards.export import export_battles, export_votes
from arena.boards.leaderboard import Leaderboard
from arena.catalogue import Language, words_in
from arena.domain.vote import DEFAULT, POLICIES, Choice, Voter
from arena.store import blocks, chain, erasing, log, people, voting
from arena.store.engine import reading_existing
from arena.store.store import Store
from arena.store.tables import Table
from arena.store.verify import Verified, verify
from tests.arena.lived_in import lived_in
from tests.arena.store.battles import NOW, ballot, exclude, ready
from tests.serving import quick_arena
from tests.sqlite import new_sqlite

SECURITY = (Path(__file__).parents[3] / "SECURITY.md").read_text(encoding="utf-8")
NOT_BOUND = SECURITY.partition("## What the vote log does not commit to")[2].partition("\n## ")[0]
"""What SECURITY.md lists as not bound."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with excluded, reinstated, erased and deleted votes, counted and rated."""
    folder = tmp_path_factory.mktemp("whole")
    store = lived_in(new_sqlite(folder))
    exclude(store, "b5", DEFAULT, "paid for")
    for i in range(4):
        ready(store, f"z{i}", Voter("zed"))
        store.cast(ballot(f"z{i}", Choice.A, voter="zed"))
    with store.writing() as session:
        erasing.take_out(session, erasing.battles_of(session, ["zed"])[:1], NOW)
        people.note(session, people.TERMINAL, "x", "y", {}, NOW)
        grounds = voting.Grounds("rings", "1", voting.HELD)
        voting.flag(session, grounds, NOW, score=0.3)
    for block in blocks.lacking(store, 4):
        with store.writing() as session:
            assert blocks.keep(session, block)
    Leaderboard(store, DEFAULT, lambda: NOW, key=b"k").refresh()
    store.close()
    return folder / "arena.db"


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(whole, tmp_path / "copy.db"))


def after(file: Path, statements: Sequence[str], *, all_change: bool = True) -> Verified:
    """Change a database, and verify it."""
    with closing(sqlite3.connect(file)) as connection:
        for statement in statements:
            rows = connection.execute(statement).rowcount
            assert rows > 0 or not all_change, f"changes nothing: {statement}"
        connection.commit()
    with reading_existing(f"sqlite:///{file}") as session:
        return verify(session)


def problem_of(verified: Verified) -> str:
    assert verified.problem is None or words_in(Language.DE).knows(verified.problem)
    return verified.problem or verified.counts or ""


def test_the_database_that_is_tampered_with_is_verified_before(whole: Path) -> None:
    verified = after(whole, [])
    assert (verified.problem, verified.counts) == (None, None)
    assert (verified.votes, verified.hashes_only, verified.deleted) == (15, 0, 2)


B0 = "(SELECT id FROM battle WHERE public_id = 'b0')"
FIRST_DELETED = "(SELECT min(link) FROM chain_link WHERE kind = 'vote')"
HIDE = [
    "INSERT INTO chain_link (link, kind, reason, bound, content, previous_hash, hash) "
    "SELECT link, 'vote', '{reason}', NULL, content, previous_hash, hash FROM vote "
    f"WHERE battle_id = {B0}",
    f"DELETE FROM vote_remark WHERE vote_id = (SELECT id FROM vote WHERE battle_id = {B0})",
    f"DELETE FROM vote WHERE battle_id = {B0}",
    f"DELETE FROM prompt_label WHERE turn_id IN (SELECT id FROM turn WHERE battle_id = {B0})",
    f"DELETE FROM answer WHERE battle_id = {B0}",
    f"DELETE FROM turn WHERE battle_id = {B0}",
    "DELETE FROM battle WHERE public_id = 'b0'",
]
"""Take a vote out with all that names it, and leave its hashes."""
IN_TEXT = {
    "(B0)": B0,
    "(B5)": "(SELECT id FROM battle WHERE public_id = 'b5')",
    "(FIRST DELETED)": FIRST_DELETED,
    "(LAST DELETION)": "(SELECT max(link) FROM chain_link WHERE kind = 'tombstone')",
}
CHANGES = """
> Link 1, the vote on battle 'b0', is not as it was recorded
sides of every won battle are swapped
 CREATE TEMP TABLE won AS SELECT battle_id AS id FROM vote WHERE outcome = 'model_a';
 UPDATE battle SET model_a = model_b, model_b = model_a WHERE id IN won;
 UPDATE answer SET side = CASE side WHEN 'a' THEN 'x' ELSE 'y' END WHERE battle_id IN won;
 UPDATE answer SET side = CASE side WHEN 'x' THEN 'b' ELSE 'a' END WHERE battle_id IN won
outcomes are turned round
 UPDATE vote SET outcome = 'model_b' WHERE outcome = 'model_a'
a vote becomes a skip
 UPDATE vote SET outcome = 'skip' WHERE battle_id = (B0);
 UPDATE battle SET state = 'skipped' WHERE public_id = 'b0'
the prompt is another
 UPDATE turn SET prompt = 'Who?' WHERE battle_id = (B0)
an answer is another
 UPDATE answer SET text = 'No.' WHERE battle_id = (B0) AND side = 'b'
an answer that was not voted on is added
 INSERT INTO answer (battle_id, model_id, turn, side, attempt, text, nonce, reasoning, status,
 decoding, created) SELECT battle_id, model_id, turn, side, 7, text, nonce, '', status, '{}',
 created FROM answer WHERE battle_id = (B0) AND side = 'a'
the tokens of answers are others
 UPDATE answer SET tokens_out = tokens_out + 1
the cost of answers is another
 UPDATE answer SET cost = 0
a voter is of another kind
 UPDATE voter SET kind = 'simulated' WHERE id LIKE 'v0%'
a vote is made one on a gold battle
 UPDATE battle SET prompt_set = 'gold:model_b' WHERE public_id = 'b0'
a vote is given to another voter
 UPDATE vote SET voter_id = 'bob' WHERE battle_id = (B0);
 UPDATE battle SET owner = 'bob' WHERE public_id = 'b0'
a mark is put there
 INSERT INTO chain_mark (link, content, previous_hash, hash, created) SELECT 1 + max(link),
 content, hash, 'x', created FROM vote
sides were shown in another order
 UPDATE vote SET order_shown = 'ba'
> the vote on battle 'b5', is not as it was recorded
an answer of an excluded vote is another
 UPDATE answer SET text = 'No.' WHERE battle_id = (B5) AND side = 'b'
> the vote on battle 'b2', is not as it was recorded
the hash of an erased text is another
 UPDATE turn SET text_hash = 'x' WHERE nonce IS NULL AND text_hash <> '' AND battle_id IN (SELECT
 battle_id FROM vote)
> the vote on battle 'b3', is not as it was recorded
simulated votes become votes of people
 UPDATE voter SET kind = 'anonymous' WHERE kind = 'simulated'
> of the chain is missing
the newest vote is deleted
 DELETE FROM vote WHERE link = (SELECT max(link) FROM vote)
an exclusion is deleted
 DELETE FROM exclusion WHERE reason = 'paid for'
a reinstatement is deleted
 DELETE FROM exclusion WHERE rule = 'readmitted'
a deletion record is gone
 DELETE FROM chain_link WHERE link = (SELECT min(link) FROM chain_link WHERE kind = 'tombstone')
> Link 5 of the chain is missing
a vote in the middle is deleted
 DELETE FROM vote WHERE link = 5
> Link 4, the vote on battle 'b4', does not follow from the link before it
two votes change places
 UPDATE vote SET link = -1 WHERE link = 4;
 UPDATE vote SET link = 4 WHERE link = 5;
 UPDATE vote SET link = 5 WHERE link = -1
> some were put there
an exclusion without a link
 INSERT INTO exclusion (vote_id, policy, rule, version, reason, created) SELECT id, 'default-v3',
 'r', '1', 'x', created FROM vote WHERE link = 1
> does not follow from the link before it
an exclusion is deleted and the links after it are renumbered
 UPDATE chain_link SET link = link - 1 WHERE link > (SELECT link FROM exclusion WHERE reason =
 'paid for');
 UPDATE vote SET link = -link WHERE link > (SELECT link FROM exclusion WHERE reason = 'paid for');
 UPDATE vote SET link = -link - 1 WHERE link < 0;
 DELETE FROM exclusion WHERE reason = 'paid for';
 UPDATE vote_chain SET links = links - 1
the hash before a vote is another
 UPDATE vote SET previous_hash = '0' WHERE link = 4
> an exclusion of the vote at link 1, is not as it was recorded
an exclusion is of another vote
 UPDATE exclusion SET vote_id = (SELECT id FROM vote WHERE link = 1) WHERE reason = 'paid for'
> an exclusion of the vote at link 6, is not as it was recorded
an exclusion is of another policy
 UPDATE exclusion SET policy = 'default-v1' WHERE reason = 'paid for'
an exclusion has another reason
 UPDATE exclusion SET reason = 'a mistake' WHERE reason = 'paid for'
an exclusion becomes a reinstatement
 UPDATE exclusion SET rule = 'readmitted' WHERE reason = 'paid for'
> a link of kind 'exclusion'
an exclusion is kept where no leaderboard looks
 INSERT INTO chain_link (link, kind, reason, bound, content, previous_hash, hash) SELECT link,
 'exclusion', '', '{"vote": 6}', content, previous_hash, hash FROM exclusion WHERE reason = 'paid
 for';
 DELETE FROM exclusion WHERE reason = 'paid for'
> an exclusion, is hashes only, and no deletion record names it
an exclusion is hashes only
 INSERT INTO chain_link (link, kind, reason, bound, content, previous_hash, hash) SELECT link,
 'exclusion', 'taken out', NULL, content, previous_hash, hash FROM exclusion WHERE reason = 'paid
 for';
 DELETE FROM exclusion WHERE reason = 'paid for'
> came by an import of version 0.1.0, and no link proves that
all links are said to have come by an import
 UPDATE vote_chain SET imported = links;
 UPDATE vote SET transcript_hash = 'x'
a negative number of links came by an import
 UPDATE vote_chain SET imported = -1
> a deletion record, is not as it was recorded
a deletion record names another link
 UPDATE chain_link SET bound = replace(bound, '[', '[1, ') WHERE link = (LAST DELETION)
a deletion record has another moment
 UPDATE chain_link SET bound = replace(bound, '2026', '2025') WHERE link = (LAST DELETION)
> a deletion record, does not follow from the link before it
two deletion records change places
 CREATE TEMP TABLE ends AS SELECT min(link) AS a, max(link) AS b FROM chain_link WHERE kind =
 'tombstone';
 UPDATE chain_link SET link = -1 WHERE link = (SELECT a FROM ends);
 UPDATE chain_link SET link = (SELECT a FROM ends) WHERE link = (SELECT b FROM ends);
 UPDATE chain_link SET link = (SELECT b FROM ends) WHERE link = -1
> 1 of 16 votes are hashes only, the first at link 7
a deleted vote has another reason
 UPDATE chain_link SET reason = 'skipped' WHERE link = (FIRST DELETED)
> is not as it was recorded
a deleted vote is of another kind
 UPDATE chain_link SET kind = 'exclusion' WHERE link = (FIRST DELETED)
> Link 5 of the chain is there twice
a vote is there twice
 INSERT INTO chain_link (link, kind, reason, bound, content, previous_hash, hash) SELECT link,
 'vote', 'taken out', NULL, content, previous_hash, hash FROM vote WHERE link = 5
> The vote log holds what the arena never writes
a link of no kind
 UPDATE chain_link SET kind = 'note' WHERE kind = 'tombstone'
the end of the chain is gone
 DELETE FROM vote_chain
bytes that are no text
 UPDATE vote SET outcome = CAST(x'ff' AS TEXT) WHERE link = 3
> links at its end are missing, or were put there
the end of the chain is another hash
 UPDATE vote_chain SET head = hex(randomblob(32))
the chain is said to be shorter
 UPDATE vote_chain SET links = links - 1
> Link 2, the vote on battle 'b1', is not as it was recorded
a vote took longer
 UPDATE vote SET seconds_to_vote = seconds_to_vote + 5 WHERE link = 2
> The counts of boards for links
votes as boards count them
 UPDATE vote_block SET votes = CAST(x'00' || substr(votes, 2) AS BLOB)
names as boards count them
 UPDATE vote_block SET names = replace(names, 'quartz', 'basalt')
a block of votes is gone
 DELETE FROM vote_block WHERE last = (SELECT min(last) FROM vote_block)
> The battle 'b1' does not fit its vote
a battle has no vote any more
 UPDATE battle SET state = 'stopped' WHERE public_id = 'b1'
a battle is somebody else's
 UPDATE battle SET owner = 'bob' WHERE public_id = 'b1'
> was made of votes that are no longer in the chain
a leaderboard was made of another end
 UPDATE rating_run SET head = hex(randomblob(32))
"""
"""What the check says, and below it changes after which it says so: name and SQL."""


def broken() -> Iterator[tuple[str, tuple[list[str], str]]]:
    """Give each change that is found: its name, its statements, and what is said of it."""
    for group in CHANGES.strip("\n> ").split("\n> "):
        problem, *changes = re.split(r"\n(?=\S)", group)
        for one in changes:
            name, *lines = one.split("\n ")
            script = " ".join(lines)
            for words, query in IN_TEXT.items():
                script = script.replace(words, query)
            yield name, (script.split("; "), problem)


BROKEN = dict(broken()) | {
    "a vote is hashes only": (
        [one.format(reason="taken out") for one in HIDE],
        "1 of 15 votes are hashes only, the first at link 1, and no deletion record names them",
    ),
    "votes are hashes only, as if they had come by an import": (
        [
            *(one.format(reason="outside the days") for one in HIDE),
            "UPDATE vote_chain SET imported = links",
        ],
        "came by an import of version 0.1.0, and no link proves that: they cannot be verified. "
        "1 of 15 votes are hashes only",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_change_of_what_is_bound_is_found(copy: Path, name: str) -> None:
    statements, problem = BROKEN[name]
    ours = after(copy, statements, all_change=not any("TEMP" in one for one in statements))
    assert problem in problem_of(ours)


def forged(file: Path, bound: dict[str, object], kind: str = "tombstone") -> Verified:
    """Extend the chain as only the arena should, by a deletion record, and verify."""
    store = Store(f"sqlite:///{file}")
    with store.writing() as session:
        connection = session.connection()
        link = chain.extend(connection, "tombstone", chain.tombstone_content(bound))
        row = {"kind": kind, "reason": "", "bound": bound, **link}
        connection.execute(Table.metadata.tables["chain_link"].insert(), row)
    store.close()
    return after(file, [])


def test_a_deletion_record_for_a_vote_that_is_there_is_found(copy: Path) -> None:
    verified = forged(copy, {"links": [1], "ts": chain.plain(NOW)})
    assert verified.problem == "A deletion record names link 1, and it is there."


def test_two_deletion_records_for_one_link_are_found(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        (link,) = connection.execute(f"SELECT {FIRST_DELETED}").fetchone()
    verified = forged(copy, {"links": [link], "ts": chain.plain(NOW)})
    assert verified.problem == "Two deletion records name the same link."


def test_a_deletion_by_whoever_runs_the_arena_is_counted_and_keeps_the_hash_noted_before(
    copy: Path,
) -> None:
    before = after(copy, [])
    after(copy, [one.format(reason="taken out") for one in HIDE])
    now = forged(copy, {"links": [1], "ts": chain.plain(NOW)})
    assert (before.votes, before.deleted) == (15, 2)
    assert (now.votes, now.hashes_only, now.deleted) == (14, 0, 3)
    with reading_existing(f"sqlite:///{copy}") as session:
        assert verify(session, before.head).noted == before.links


def test_a_cut_end_is_found_by_a_hash_that_somebody_noted(copy: Path) -> None:
    head = after(copy, []).head
    newest = "(SELECT id FROM battle WHERE public_id = 'z3')"
    cut = [
        f"DELETE FROM chain_link WHERE link > (SELECT link FROM vote WHERE battle_id = {newest})",
        f"DELETE FROM vote WHERE battle_id = {newest}",
        f"UPDATE battle SET state = 'stopped' WHERE id = {newest}",
        "DELETE FROM rating_run",
        "DELETE FROM vote_block",
        "UPDATE chain_link SET link = link",
        "INSERT INTO vote SELECT * FROM vote WHERE 0",
    ]
    after(copy, cut, all_change=False)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute(
            "UPDATE vote_chain SET (links, head) = (SELECT link, hash FROM (SELECT link, hash "
            "FROM vote UNION ALL SELECT link, hash FROM chain_link UNION ALL SELECT link, hash "
            "FROM exclusion) ORDER BY link DESC LIMIT 1)"
        )
        named = "DELETE FROM chain_link WHERE kind = 'vote' AND link > ?"
        connection.execute(named, (connection.execute("SELECT links FROM vote_chain").fetchone()))
        connection.commit()
    with reading_existing(f"sqlite:///{copy}") as session:
        assert "rewritten" in (verify(session, head).problem or "")


# --- each column of each table

BOUND_ROW = {
    "battle": f"id = {B0}",
    "turn": f"battle_id = {B0}",
    "answer": f"battle_id = {B0} AND side = 'a'",
    "voter": "id LIKE 'v0%'",
    "vote": "link = 1",
    "exclusion": "reason = 'paid for'",
    "chain_link": "kind = 'tombstone'",
}
"""A row that a link binds, by table."""


def other_value(column: "Column[object]") -> str:
    """Give an expression of SQL for another value of a column."""
    match column.type:
        case JSON():
            return "'{\"x\": 1}'"
        case Boolean():
            return f"NOT {column.name}"
        case LargeBinary():
            return "x'00'"
        case Integer():
            return f"coalesce({column.name}, 0) + 1001"
        case Float():
            return f"coalesce({column.name}, 0) + 0.125"
        case String():
            return f"coalesce({column.name}, '') || 'x'"
        case DateTime():
            return "'2020-01-01 00:00:00.000000'"
    return "'2020-01-01'"


WHOLE_TABLES = [
    name for name in Table.metadata.tables if f"`{name}`" in NOT_BOUND.split("| table")[0]
]
"""Tables of which nothing is bound, except the head of a `rating_run`."""
SIGNED = "board"


def test_the_tables_that_are_listed_as_a_whole_are_those_that_no_link_names() -> None:
    named = {*BOUND_ROW, "vote_chain", "vote_block", "chain_mark", SIGNED}
    assert {*WHOLE_TABLES} == {*Table.metadata.tables} - named


@pytest.mark.parametrize("table", [*BOUND_ROW, "vote_chain", "vote_block"])
def test_each_column_is_bound_or_listed(whole: Path, tmp_path: Path, table: str) -> None:
    in_security = set(re.findall(rf"`{table}\.(\w+)`", NOT_BOUND))
    loose = set()
    for column in Table.metadata.tables[table].columns:
        if column.primary_key and column.name == "id" and table != "voter":
            continue  # a key by which rows name each other
        copy = tmp_path / f"{column.name}.db"
        shutil.copyfile(whole, copy)
        where = f"WHERE {BOUND_ROW[table]}" if table in BOUND_ROW else ""
        change = f"UPDATE {table} SET {column.name} = {other_value(column)} {where}"
        if not problem_of(after(copy, [change])):
            loose.add(column.name)
    assert loose == in_security


HARMLESS = [
    "UPDATE vote SET transcript_hash = 'x'",
    "UPDATE turn SET scrubbed = 7",
    'UPDATE answer SET measured = \'{"length": 7, "scrubbed": 7}\'',
    "UPDATE turn SET text_hash = 'x' WHERE nonce IS NOT NULL",
    "UPDATE answer SET text_hash = 'x' WHERE nonce IS NOT NULL",
    "UPDATE board SET board = replace(board, '1000', '1500')",
]
"""Changes of what SECURITY.md says is read by nothing, and of boards, which are signed."""
PAGES = (
    "/models", "/method", "/battles", "/battles/b0",
    "/api/v1/leaderboard", "/api/v1/evaluation",
)  # fmt: skip
MOMENT = re.compile(
    r"<time .*?</time>|\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)|[\w-]{20,}|\d+ \w+ 2026|\d\d:\d\d:\d\d"
)
"""What is another one at each request: times, and tokens of forms."""


def read(file: Path, folder: Path) -> dict[str, Any]:
    """Read all that an arena shows of its votes and battles."""
    shown: dict[str, Any] = {}
    url = f"sqlite:///{file}"
    with closing(Store(url)) as store:
        board = Leaderboard(store, DEFAULT, lambda: NOW, key=b"k").refresh()
        shown["board"] = board.to_dict()
    with closing(Store(url)) as store, store.reading() as session:
        for policy in POLICIES:
            links = log.links(session, policy)
            to = folder / f"{policy.name}.jsonl"
            export_votes(links, policy, to, total=log.count_links(session), everything=True)
            shown[policy.name] = to.read_text()
        for layout in ("arena", "answers"):
            some = log.battles(session, DEFAULT, voted=False)
            export_battles(some, DEFAULT, folder / "some.jsonl", layout, everything=True)
            shown[layout] = (folder / "some.jsonl").read_text()
    with quick_arena(folder, database=url) as served, served.visitor() as ada:
        while ada.board(votes=8)["record"] is None:
            time.sleep(0.05)  # the vote log is verified in the background
        for page in PAGES:
            answer = ada.get(page)
            shown[page] = (answer.status_code, MOMENT.sub("", answer.text.replace(served.url, "")))
    return shown


def test_what_is_listed_as_read_by_nothing_changes_nothing_that_is_read(
    copy: Path, tmp_path: Path
) -> None:
    changed = Path(shutil.copyfile(copy, tmp_path / "changed.db"))
    assert problem_of(after(changed, HARMLESS)) == ""
    before = read(copy, tmp_path)
    assert {page for page in PAGES if before[page][0] != 200} == set()
    assert read(changed, tmp_path) == before
