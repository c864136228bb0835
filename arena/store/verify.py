"""Verification of the vote log; and backup and restore of a database.

`verify` follows the chain of a database from the first link on, and compares it with all that
names it or is made of it; `follow` does so with links from anywhere, such as a file. A backup is a
SQLite file with the schema of the version that made it, so any SQLite can read it.
"""

import hashlib
import heapq
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain as chained
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    FromClause,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    text,
)
from sqlalchemy.exc import DataError, MultipleResultsFound, NoResultFound, OperationalError
from sqlmodel import Session, col

from arena.domain.battle import BattleState
from arena.domain.vote import Choice, attributes
from arena.errors import BrokenRecordError, SchemaError, StoreError
from arena.store import blocks, chain
from arena.store.chain import AnyRow, LinkKind
from arena.store.engine import (
    migrate,
    named,
    newest,
    opened,
    revision,
    shown,
    snapshot,
    sqlite_file,
)
from arena.store.tables import (
    DERIVED,
    BattleRow,
    ChainRow,
    ExclusionRow,
    LinkRow,
    MarkRow,
    RatingRunRow,
    Table,
    VoteRow,
)
from rating.sentences import Sentence
from rating.tables.files import require_file

_TOMBSTONES = (
    select(col(LinkRow.link), col(LinkRow.bound))
    .where(col(LinkRow.kind) == "tombstone")
    .order_by(col(LinkRow.link))
)
_END = select(col(ChainRow.head), col(ChainRow.links), col(ChainRow.imported))


UNREADABLE = (
    ValueError,
    TypeError,
    OverflowError,
    LookupError,
    NoResultFound,
    MultipleResultsFound,
    DataError,
)
"""What reading a value or a row raises that the arena never writes."""

NO_TEXT = "Could not decode to UTF-8"
"""What SQLite says of bytes that stand where a text does, as if it could not be asked."""
_AN = {"vote": Sentence("a vote"), "exclusion": Sentence("an exclusion")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link as it is kept, and as it should be by what it binds.

    Attributes
    ----------
    name : str
        What it is, for people.
    previous_hash : str or None
        None where it is not kept beside the hash.
    bound : str or None
        Content by what the link binds now; None where that is not shown.
    is_old : bool
        Whether it is a vote from before the mark.
    old_hash : callable or None
        Of such a vote: the hash that follows from a previous one; None where nobody can tell.
    erased, taken_out : int
        Texts of a vote that were erased; links that a deletion record names.
    odd : str or None
        What is wrong with it although it is as it was recorded.
    """

    link: int
    kind: LinkKind
    name: str
    content: str
    previous_hash: str | None
    hash: str
    bound: str | None
    is_old: bool = False
    old_hash: Callable[[str], str] | None = None
    erased: int = 0
    taken_out: int = 0
    odd: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What an export of votes is of, as it states, and how many of its votes count.

    Attributes
    ----------
    since, until : str or None
        The days that the votes were cast on, in UTC; None without a bound.
    all_votes : bool or None
        Whether it was exported with --all; None of version 0.1.0, which did not state that.
    counted : int
    excluded : mapping of str to int
        Votes that are excluded, by reason.
    """

    policy: str
    since: str | None
    until: str | None
    all_votes: bool | None
    counted: int
    excluded: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """How far a chain was followed.

    Attributes
    ----------
    links : int
        Links that follow from one another, counted from the first.
    head : str
        Hash of the last of them; empty before the first.
    marked : int or None
        The link from which on hashes bind all; None if all do.
    noted : int or None
        The link that has the noted hash; None if there is none, or none was given.
    erased : int
        Texts that were erased, with their nonces; their hashes are in the chain.
    taken_out : int
        Links that were deleted, votes and exclusions of them: deletion records name them.
    votes : int
        Votes, without those that were deleted.
    hashes_only : int
        Of these, those of which the hashes alone are there: nothing proves what they were.
    deleted : int
        Votes that were deleted.
    scope : Scope or None
        What a file is of; None of a database.
    problem : str or None
        The first break, in a sentence; None if there is none.
    counts : str or None
        Where the counts that boards are made of are not those of the votes; None where they are,
        and where the chain is broken.
    """

    links: int = 0
    head: str = ""
    marked: int | None = None
    noted: int | None = None
    erased: int = 0
    taken_out: int = 0
    votes: int = 0
    hashes_only: int = 0
    deleted: int = 0
    scope: Scope | None = None
    problem: str | None = None
    counts: str | None = None


def verify(
    session: Session,
    noted: str = "",
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Verified:
    """Follow the chain of a database, and compare with it all that names it or is made of it.

    A database whose first links came by an import of version 0.1.0 is not followed: no link says
    that there was an import, so anybody who can write to the database could pretend one.

    Parameters
    ----------
    noted : str
        First characters of a noted hash earlier, and that has to be in the chain.
    progress : callable
        Called with the links that were followed so far, and how many there are.
    """
    followed, wrong = Verified(), None
    try:
        connection = session.connection()
        end = connection.execute(_END).one()
        alone = _alone(connection)
        if end.imported:
            return replace(alone, problem=_on_import(end.imported, alone))
        runs = select(col(RatingRunRow.head), func.min(col(RatingRunRow.created)))
        of_boards = connection.execute(runs.group_by(col(RatingRunRow.head))).all()
        heads = {head: created for head, created in of_boards if head}

        def seen(link: Link) -> None:
            heads.pop(link.hash, None)
            progress(link.link, max(link.link, end.links))

        with closing(blocks.Check(connection)) as counts:
            followed = follow(_links(connection, counts), noted, seen)
            problem = (
                followed.problem
                or _what_is_amiss(connection, followed, end, heads)
                or alone.problem
            )
            followed = replace(
                followed, votes=alone.votes, hashes_only=alone.hashes_only, deleted=alone.deleted
            )
            wrong = None if problem else counts.end()
    except UNREADABLE as error:
        problem = _unreadable(error)
    except OperationalError as error:
        if NO_TEXT not in str(error):
            raise
        problem = _unreadable(error)
    return replace(followed, problem=problem, counts=wrong)


def follow(
    links: Iterable[Link], noted: str = "", seen: Callable[[Link], object] = lambda _link: None
) -> Verified:
    """Follow links from the first one to the first break, or to their end: see `verify`."""
    done = Verified()
    contents = hashlib.sha256()
    try:
        for link in links:
            if (problem := _break(link, done, contents.hexdigest())) is not None:
                return replace(done, problem=problem)
            if link.is_old:
                contents.update(link.content.encode())
            proves = link.old_hash is not None or not link.is_old
            is_noted = bool(noted) and proves and link.hash.startswith(noted)
            done = replace(
                done,
                links=link.link,
                head=link.hash,
                marked=link.link if link.kind == "mark" else done.marked,
                noted=link.link if is_noted else done.noted,
                erased=done.erased + link.erased,
                taken_out=done.taken_out + link.taken_out,
            )
            seen(link)
    except UNREADABLE as error:
        return replace(done, problem=_unreadable(error))
    if noted and done.noted is None:
        msg = Sentence("No link has the hash %(hash)s: it was rewritten since.", hash=repr(noted))
        return replace(done, problem=msg)
    return done


def _break(link: Link, done: Verified, contents: str) -> str | None:
    """Describe what is wrong with a link, if anything, after those that are right."""
    place = done.links + 1
    of = {"link": str(link.link), "name": link.name, "place": str(place)}
    if link.link > place:
        return Sentence("Link %(place)s of the chain is missing: %(name)s is link %(link)s.", **of)
    if link.link < place:
        return Sentence("Link %(link)s of the chain is there twice: %(name)s is the second.", **of)
    if link.previous_hash not in (None, done.head):
        return Sentence("Link %(link)s, %(name)s, does not follow from the link before it.", **of)
    now = chain.mark_content(contents) if link.kind == "mark" else link.bound
    if _hash_of(link, done.head) != link.hash or now not in (None, link.content):
        return Sentence("Link %(link)s, %(name)s, is not as it was recorded.", **of)
    return link.odd


def _hash_of(link: Link, before: str) -> str:
    """Work out the hash of a link; of an old vote whose hash nobody can tell, its own."""
    if link.is_old:
        return link.old_hash(before) if link.old_hash else link.hash
    return chain.link_hash(before, link.link, link.kind, link.content)


def _unreadable(error: Exception) -> str:
    what = (str(error) or type(error).__name__).splitlines()[0]
    return Sentence("The vote log holds what the arena never writes: %(what)s.", what=what)


def _what_is_amiss(
    connection: Connection, followed: Verified, end: AnyRow, heads: dict[str, datetime]
) -> str | None:
    """Describe what does not fit a chain whose links follow from one another, if anything."""
    if (followed.links, followed.head) != (end.links, end.head):
        return Sentence(
            "The chain ends at link %(last)s and should end at %(end)s: links at its end are "
            "missing, or were put there.",
            last=str(followed.links),
            end=str(end.links),
        )
    if heads:
        return Sentence(
            "The leaderboard of %(moment)s was made of votes that are no longer in the chain.",
            moment=f"{min(heads.values()):%Y-%m-%d %H:%M:%S}",
        )
    return _what_is_outside(connection, end.links)


def _on_import(imported: int, alone: Verified) -> str:
    return Sentence(
        "The first %(imported)s links came by an import of version 0.1.0, and no link proves "
        "that: they cannot be verified. %(n)s of %(votes)s votes are hashes only. Verify the "
        "file that was imported, or the arena that it was exported from, and continue from a "
        "backup of that arena.",
        imported=imported,
        n=alone.hashes_only,
        votes=alone.votes,
    )


def _alone(connection: Connection) -> Verified:
    """Count the votes; the problem is a link of hashes only that no deletion record names."""
    deletions = [(row.link, row.bound["links"]) for row in connection.execute(_TOMBSTONES)]
    named = {link: deletion for deletion, links in deletions for link in links}
    counts, first, problem = Counter[str](), None, None
    if len(named) != sum(len(links) for _, links in deletions):
        problem = Sentence("Two deletion records name the same link.")
    for row in chain.others(connection):
        if row.bound is not None:
            continue
        deletion = named.pop(row.link, 0)
        if deletion > row.link and row.reason == chain.TAKEN_OUT:
            counts[f"deleted {row.kind}"] += 1
            continue
        counts[row.kind] += 1
        first = first or row
    votes = connection.execute(select(func.count(col(VoteRow.id)))).scalar_one()
    alone = Verified(
        votes=votes + counts["vote"], hashes_only=counts["vote"], deleted=counts["deleted vote"]
    )
    if first is not None:
        problem = on_hashes_only(alone, first.link, first.kind)
    elif named:
        problem = Sentence(
            "A deletion record names link %(link)s, and it is there.", link=str(min(named))
        )
    return replace(alone, problem=problem)


def on_hashes_only(done: Verified, link: int, kind: str) -> Sentence:
    """Say that links are hashes only, by the first of them."""
    of: Any = {"n": done.hashes_only, "votes": done.votes, "link": link, "name": _AN[kind]}
    if kind == "vote":
        return Sentence(
            "%(n)s of %(votes)s votes are hashes only, the first at link %(link)s, and no "
            "deletion record names them: nothing proves what they were.",
            **of,
        )
    return Sentence(
        "Link %(link)s, %(name)s, is hashes only, and no deletion record names it.", **of
    )


def _what_is_outside(connection: Connection, links: int) -> str | None:
    """Return which battle does not fit its vote, or which vote or exclusion is no link, if any."""
    voted = col(BattleRow.state).in_((BattleState.VOTED, BattleState.SKIPPED))
    skipped = col(VoteRow.outcome) == Choice.SKIP
    fits = (col(BattleRow.owner) == col(VoteRow.voter_id)) & (
        col(BattleRow.state) == case((skipped, BattleState.SKIPPED), else_=BattleState.VOTED)
    )
    battle = (
        select(func.min(col(BattleRow.public_id)))
        .outerjoin(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .where(or_(voted & col(VoteRow.id).is_(None), col(VoteRow.id).is_not(None) & ~fits))
    )
    if (battle_id := connection.scalar(battle)) is not None:
        return Sentence(
            "The battle %(id)s does not fit its vote: the vote is gone, or the battle's state or "
            "owner was changed.",
            id=repr(battle_id),
        )
    rows = sum(
        connection.execute(select(func.count(col(key)))).scalar_one()
        for key in (VoteRow.id, ExclusionRow.id, MarkRow.link, LinkRow.link)
    )
    if rows != links:
        return Sentence(
            "The chain has %(links)s links, and there are %(rows)s votes and exclusions: some "
            "were put there.",
            links=str(links),
            rows=str(rows),
        )
    return None


def _links(connection: Connection, counts: blocks.Check) -> Iterator[Link]:
    mark = connection.execute(chain.MARK).one_or_none()
    before = mark.link if mark else 0
    streams: list[Iterator[Link]] = [
        _votes(connection, before, counts),
        _exclusions(connection),
        _others(connection, before),
    ]
    if mark:
        streams.append(iter([_link(mark, "mark", Sentence("the mark"), None)]))
    return heapq.merge(*streams, key=attrgetter("link"))


def _votes(connection: Connection, mark: int, counts: blocks.Check) -> Iterator[Link]:
    for row, transcript in chained.from_iterable(chain.votes(connection)):
        whole = row._asdict()
        is_old = row.link < mark
        bound = chain.vote_content(whole | {"transcript_hash": transcript.hash})
        name = Sentence("the vote on battle %(id)s", id=repr(row.battle_id))
        yield replace(
            _link(row, "vote", name, bound),
            is_old=is_old,
            old_hash=_old_hash(whole) if is_old else None,
            erased=transcript.erased,
            odd=_wrongly_broken(row, name, chain.is_broken(whole, transcript.answers)),
        )
        counts.take(row)  # after the link was followed: a changed vote is no wrong count


def _wrongly_broken(vote: AnyRow, name: str, broken: bool) -> str | None:
    if vote.broken == broken:
        return None
    of = {"link": str(vote.link), "name": name}
    if vote.broken:
        return Sentence(
            "Link %(link)s, %(name)s, is marked as a vote on a broken answer, and by the finish "
            "reasons of its answers it is not one.",
            **of,
        )
    return Sentence(
        "Link %(link)s, %(name)s, is not marked as a vote on a broken answer, and by the finish "
        "reasons of its answers it is one.",
        **of,
    )


def _old_hash(row: dict[str, Any]) -> Callable[[str], str]:
    vote = row | {"voter_id": row["voter"], "outcome": row["winner"]}
    return lambda previous: chain.hash_before_the_mark(previous, vote, row["ts"], row["battle_id"])


def _exclusions(connection: Connection) -> Iterator[Link]:
    for row in chain.exclusions(connection):
        bound = chain.exclusion_content(attributes(row, *chain.OF_EXCLUSION))
        name = Sentence("an exclusion of the vote at link %(vote)s", vote=str(row.vote))
        yield _link(row, "exclusion", name, bound)


def _others(connection: Connection, mark: int) -> Iterator[Link]:
    """Give the links that are no row of another table."""
    for row in chain.others(connection):
        match row.kind, row.bound:
            case "tombstone", {"links": [*links]} if not row.reason:
                bound = chain.tombstone_content(row.bound)
                tombstone = _link(row, "tombstone", Sentence("a deletion record"), bound)
                yield replace(tombstone, taken_out=len(links))
            case "vote" | "exclusion", None:
                name = Sentence("%(what)s that is hashes only", what=_AN[row.kind])
                link = _link(row, row.kind, name, None)
                yield replace(link, is_old=row.kind == "vote" and row.link < mark)
            case _:
                raise ValueError(f"a link of kind {row.kind!r}")


def _link(row: AnyRow, kind: LinkKind, name: str, bound: str | None) -> Link:
    return Link(
        link=row.link,
        kind=kind,
        name=name,
        content=row.content,
        previous_hash=row.previous_hash,
        hash=row.hash,
        bound=bound,
    )


# Backup and restore

Progress = Callable[[int, int], None]
"""Called with the rows copied so far and the rows in all."""

TABLES = [table for table in Table.metadata.sorted_tables if table.name not in DERIVED]
"""Each after those that it refers to; what can be made again is left where it is."""

FIRST_START = {
    "model", "model_event", "prompt_secret", "roster_entry", "roster_version", "vote_chain"
}  # fmt: skip
"""Tables that a first start fills, before anybody played: a restore writes over them."""

BATCH = 500

Copied = tuple[int, int, str]
"""Rows and votes that a backup or a restore copied, and the hash of the newest vote."""


def back_up(url: str, to: Path, progress: Progress) -> Copied:
    """Copy a database, as it is at one moment, into a new file; it may be in use meanwhile.

    Raises
    ------
    SchemaError
        If the database has not the schema of this version.
    StoreError
        If the file exists or cannot be written, or the database cannot be read.
    BrokenRecordError
        Once the file is written: the vote log cannot be verified.
    """
    if to.exists():
        raise StoreError(f"{str(to)!r} exists already: name a new file.")
    with opened(url) as source, _files_named(f"back up {shown(source)}"):
        _require_file(source)
        with TemporaryDirectory(dir=to.parent) as folder:
            file = Path(folder) / "backup.db"
            copied, problem = _write_file(source, file, progress)
            file.replace(to)
    if problem:
        msg = f"{str(to)!r} was written, but a restore will refuse it. {problem}"
        raise BrokenRecordError(msg)
    return copied


def restore(file: Path, url: str, progress: Progress) -> Copied:
    """Copy a backup into a database in which nobody has played yet, all or nothing.

    Raises
    ------
    SchemaError
        If a newer version made the backup, or one before 0.1.0.
    StoreError
        If the file is no backup or is damaged, or the database is in use or cannot be written.
    """
    require_file(file, StoreError)
    with TemporaryDirectory() as folder, _files_named(f"restore {str(file)!r}"):
        copy = Path(folder) / "backup.db"
        shutil.copyfile(file, copy)  # opening a file may write to it
        with opened(f"sqlite:///{copy}") as source, opened(url) as target:
            _require_backup(source, file)
            migrate(target)
            with snapshot(source).connect() as read, target.begin() as write:
                copied = _copy(read, write, progress)
                _number_on(write)
    return copied


def _write_file(source: Engine, file: Path, progress: Progress) -> tuple[Copied, str | None]:
    with snapshot(source).connect() as read, opened(f"sqlite:///{file}") as target:
        if (current := revision(read)) != newest():
            raise SchemaError(
                f"The database {shown(read.engine)} has schema {current!r}, and this version "
                f"backs up schema {newest()!r} only: use the version that serves it."
            )
        migrate(target)
        with target.begin() as write:
            copied = _copy(read, write, progress)
        problem = _problem(target)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # no second file beside it
    return copied, problem


def _copy(read: Connection, write: Connection, progress: Progress) -> Copied:
    _empty(write)
    total = sum(_count(read, table) for table in TABLES)
    rows = 0
    for table in TABLES:
        query = select(table).order_by(*table.primary_key).execution_options(yield_per=BATCH)
        for batch in read.execute(query).mappings().partitions():
            write.execute(insert(table), [dict(row) for row in batch])
            rows += len(batch)
            progress(rows, total)
    with Session(write) as session:
        return rows, _count(write, Table.metadata.tables["vote"]), chain.head(session)


def _count(connection: Connection, table: FromClause) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _empty(write: Connection) -> None:
    """Make room for rows from elsewhere; raises `StoreError` if there are battles."""
    for table in TABLES:
        if table.name not in FIRST_START and (rows := _count(write, table)):
            raise StoreError(
                f"The database {shown(write.engine)} is in use: it holds {rows:,} already in the "
                f"table {table.name!r}. Restore into a new database."
            )
    for table in reversed(Table.metadata.sorted_tables):
        write.execute(delete(table))


def _number_on(write: Connection) -> None:
    """Let PostgreSQL give the next row the number after the last; SQLite does so by itself."""
    if write.dialect.name != "postgresql":
        return
    for table in TABLES:
        if (key := table.autoincrement_column) is not None:
            write.execute(
                select(
                    func.setval(
                        func.pg_get_serial_sequence(table.name, key.name),
                        func.coalesce(func.max(key), 0) + 1,
                        False,
                    )
                )
            )


def _problem(engine: Engine) -> str | None:
    """Describe what is wrong with the file or with its chain of votes, if anything."""
    with snapshot(engine).connect() as connection:
        for check in ("integrity_check(1)", "foreign_key_check"):
            row = connection.execute(text(f"PRAGMA {check}")).first()
            if row is not None and row[0] != "ok":
                return f"The file is damaged: {check.partition('(')[0]} says {row[0]!r}."
        with Session(connection) as session:
            return verify(session).problem


@contextmanager
def _files_named(task: str) -> Iterator[None]:
    """Raise a `StoreError` that states what could not be done with a database or a file."""
    try:
        with named(task):
            yield
    except OSError as error:
        raise StoreError(f"Cannot {task}: {error.strerror}, {str(error.filename)!r}.") from error


def _require_file(source: Engine) -> None:
    """Refuse to make a new database by looking for one."""
    if source.dialect.name == "sqlite" and not (file := sqlite_file(source.url)).is_file():
        msg = f"There is no database {str(file)!r}: name the one to back up with --database."
        raise StoreError(msg)


def _require_backup(copy: Engine, file: Path) -> None:
    with snapshot(copy).connect() as read:
        if revision(read, repr(str(file))) is None:
            msg = f"{str(file)!r} is no backup of an arena: name a file made by arena backup."
            raise StoreError(msg)
    migrate(copy, repr(str(file)))
    if problem := _problem(copy):
        raise BrokenRecordError(f"Cannot restore {str(file)!r}. {problem} Take an older backup.")
