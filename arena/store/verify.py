"""Verifies that the record is as it was written: follows the chain from its first link on."""

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain as chained
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, case, func, or_, select
from sqlalchemy.exc import DataError, MultipleResultsFound, NoResultFound
from sqlmodel import Session, col

from arena.domain.battle import BattleState
from arena.domain.vote import Choice
from arena.store import blocks, chain
from arena.store.chain import AnyRow
from arena.store.records import LinkKind
from arena.store.tables import (
    BattleRow,
    ChainRow,
    ExclusionRow,
    LinkRow,
    MarkRow,
    RatingRunRow,
    VoteRow,
)

_TOMBSTONES = select(col(LinkRow.bound)).where(col(LinkRow.kind) == "tombstone")
_END = select(col(ChainRow.head), col(ChainRow.links), col(ChainRow.imported))


UNREADABLE = (
    ValueError,
    TypeError,
    OverflowError,
    NoResultFound,
    MultipleResultsFound,
    DataError,
)
"""What reading a value or a row raises that the arena never writes."""


WITHHELD = {"vote": "a vote", "exclusion": "an exclusion"}


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
        Texts of a vote that were erased; links that a tombstone takes out.
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
        The link that has the hash that somebody noted; None if there is none, or none was given.
    erased : int
        Texts that were erased, with their nonces; their hashes are in the chain.
    taken_out : int
        Votes, and exclusions of them, that were taken out; tombstones name them.
    imported : int or None
        The link up to which a database came by an import, so that no text is bound; None if none
        did, and of a file.
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
    imported: int | None = None
    problem: str | None = None
    counts: str | None = None


def verify(
    session: Session,
    noted: str = "",
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Verified:
    """Follow the chain of a database, and hold against it all that names it or is made of it.

    Parameters
    ----------
    noted : str
        First characters of a hash that somebody noted earlier, and that has to be in the chain.
    progress : callable
        Called with the links that were followed so far, and how many there are.
    """
    followed, wrong = Verified(), None
    try:
        connection = session.connection()
        end = connection.execute(_END).one()
        heads = _heads_of_leaderboards(connection)

        def seen(link: Link) -> None:
            heads.pop(link.hash, None)
            progress(link.link, max(link.link, end.links))

        with closing(blocks.Check(connection)) as counts:
            followed = follow(_links(connection, counts, end.imported), noted, seen)
            followed = replace(followed, imported=end.imported or None)
            problem = followed.problem or _what_is_amiss(connection, followed, end, heads)
            wrong = None if problem else counts.end()
    except UNREADABLE as error:
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
            done = _with(done, link, noted)
            seen(link)
    except UNREADABLE as error:
        return replace(done, problem=_unreadable(error))
    if noted and done.noted is None:
        return replace(done, problem=f"No link has the hash {noted!r}: it was rewritten since.")
    return done


def _with(done: Verified, link: Link, noted: str) -> Verified:
    proves = link.old_hash is not None or not link.is_old
    is_noted = bool(noted) and proves and link.hash.startswith(noted)
    return replace(
        done,
        links=link.link,
        head=link.hash,
        marked=link.link if link.kind == "mark" else done.marked,
        noted=link.link if is_noted else done.noted,
        erased=done.erased + link.erased,
        taken_out=done.taken_out + link.taken_out,
    )


def _break(link: Link, done: Verified, contents: str) -> str | None:
    """Say what is wrong with a link, if anything, after those that are right."""
    place = done.links + 1
    if link.link > place:
        return f"Link {place} of the chain is missing: {link.name} is link {link.link}."
    if link.link < place:
        return f"Link {link.link} of the chain is there twice: {link.name} is the second."
    if link.previous_hash not in (None, done.head):
        return f"Link {link.link}, {link.name}, does not follow from the link before it."
    now = chain.mark_content(contents) if link.kind == "mark" else link.bound
    if _hash_of(link, done.head) != link.hash or now not in (None, link.content):
        return f"Link {link.link}, {link.name}, is not as it was recorded."
    return None


def _hash_of(link: Link, before: str) -> str:
    """Work out the hash of a link; of an old vote whose hash nobody can tell, its own."""
    if link.is_old:
        return link.old_hash(before) if link.old_hash else link.hash
    return chain.link_hash(before, link.link, link.kind, link.content)


def _unreadable(error: Exception) -> str:
    what = (str(error) or type(error).__name__).splitlines()[0]
    return f"The record holds what the arena never writes: {what}."


def _what_is_amiss(
    connection: Connection,
    followed: Verified,
    end: AnyRow,
    heads: dict[str, datetime],
) -> str | None:
    """Say what does not fit a chain whose links follow from one another, if anything."""
    if (followed.links, followed.head) != (end.links, end.head):
        return (
            f"The chain ends at link {followed.links} and should end at {end.links}: links at "
            "its end are missing, or were put there."
        )
    if heads:
        return (
            f"The leaderboard of {min(heads.values()):%Y-%m-%d %H:%M:%S} was made of votes that "
            "are no longer in the chain."
        )
    return _what_is_outside(connection, end.links) or _what_is_missing(connection, end.imported)


def _what_is_missing(connection: Connection, imported: int) -> str | None:
    """Say which link is hashes alone that neither a tombstone nor an import accounts for."""
    tombstones = connection.scalars(_TOMBSTONES)
    named = {link for bound in tombstones for link in bound["links"]}
    for row in chain.others(connection):
        if row.bound is not None:
            continue
        is_named = row.link in named
        is_hidden = row.kind == "vote" and row.link <= imported
        if is_named != (row.reason == chain.TAKEN_OUT) or not (is_named or is_hidden):
            return f"Link {row.link} is not here, and no tombstone says that it was taken out."
        named.discard(row.link)
    if named:
        return f"Link {min(named)} was taken out, says a tombstone, and it is there."
    return None


def _what_is_outside(connection: Connection, links: int) -> str | None:
    """Say which battle does not fit its vote, or which vote or exclusion is no link, if any."""
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
        return (
            f"The battle {battle_id!r} does not fit its vote: the vote is gone, or the battle's "
            "state or owner was changed."
        )
    rows = sum(
        connection.execute(select(func.count(col(key)))).scalar_one()
        for key in (VoteRow.id, ExclusionRow.id, MarkRow.link, LinkRow.link)
    )
    if rows != links:
        return (
            f"The chain has {links} links, and there are {rows} votes and exclusions: some were "
            "put there."
        )
    return None


def _heads_of_leaderboards(connection: Connection) -> dict[str, datetime]:
    runs = select(col(RatingRunRow.head), func.min(col(RatingRunRow.created)))
    rows = connection.execute(runs.group_by(col(RatingRunRow.head))).all()
    return {head: created for head, created in rows if head}


def _links(connection: Connection, counts: blocks.Check, imported: int) -> Iterator[Link]:
    mark = connection.execute(chain.MARK).one_or_none()
    before = mark.link if mark else 0
    streams: list[Iterator[Link]] = [
        _votes(connection, before, counts, imported),
        _exclusions(connection),
        _others(connection, before),
    ]
    if mark:
        streams.append(iter([_link(mark, "mark", "the mark", None)]))
    return heapq.merge(*streams, key=attrgetter("link"))


def _votes(
    connection: Connection, mark: int, counts: blocks.Check, imported: int
) -> Iterator[Link]:
    for row, transcript in chained.from_iterable(chain.votes(connection, imported)):
        whole = row._asdict()
        is_old = row.link < mark
        bound = chain.vote_content(whole | {"transcript_hash": transcript.hash})
        yield replace(
            _link(row, "vote", f"the vote on battle {row.battle_id!r}", bound),
            is_old=is_old,
            old_hash=_old_hash(whole) if is_old and row.link > imported else None,
            erased=transcript.erased,
        )
        counts.take(row)  # after the link was followed: a changed vote is no wrong count


def _old_hash(row: dict[str, Any]) -> Callable[[str], str]:
    vote = row | {"voter_id": row["voter"], "outcome": row["winner"]}
    return lambda previous: chain.hash_before_the_mark(previous, vote, row["ts"], row["battle_id"])


def _exclusions(connection: Connection) -> Iterator[Link]:
    for row in chain.exclusions(connection):
        bound = chain.exclusion_content(chain.of_exclusion(row))
        yield _link(row, "exclusion", f"an exclusion of the vote at link {row.vote}", bound)


def _others(connection: Connection, mark: int) -> Iterator[Link]:
    """Give the links that are no row of another table."""
    for row in chain.others(connection):
        match row.kind, row.bound:
            case "tombstone", {"links": [*links]}:
                bound = chain.tombstone_content(row.bound)
                tombstone = _link(row, "tombstone", "a tombstone", bound)
                yield replace(tombstone, taken_out=len(links))
            case "exclusion", {"vote": vote}:
                bound = chain.exclusion_content(row.bound)
                yield _link(row, "exclusion", f"an exclusion of the vote at link {vote}", bound)
            case "vote" | "exclusion", None:
                link = _link(row, row.kind, f"{WITHHELD[row.kind]} that is not here", None)
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
