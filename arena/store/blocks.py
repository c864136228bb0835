"""Votes in columns, as boards read them: in blocks that are made once, and the newest from rows.

A vote is never changed, and becomes visible only after all before it in the chain. So a full block
of consecutive votes is final, whichever process makes it. Blocks with the rows after the last of
them give the same result as all rows.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain as flattened
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, delete, select
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col, func

from arena.domain.model import is_gold
from arena.domain.vote import Choice, Policy, VoterKind
from arena.errors import BrokenRecordError
from arena.store import chain
from arena.store.chain import AnyRow
from arena.store.store import Store
from arena.store.styles import of_votes
from arena.store.tables import (
    BOTH_MODELS,
    BattleRow,
    ChainRow,
    ExclusionRow,
    VoteBlockRow,
    VoteRow,
    VoterRow,
    columns_of,
    is_standing,
)
from rating.counting import narrowest
from rating.tables.coding import LOGGED_SIDES, Coded, LoggedVotes, microseconds
from rating.typing import Integers

BLOCK = 1 << 15
"""Votes of a block: as many rows at most are read by each refresh of a board."""

VOTE = np.dtype(
    [
        ("link", "<i8"),
        *((side, "<i4") for side in LOGGED_SIDES),
        ("winner", "i1"),
        ("voter", "<i4"),
        ("prompt", "<i4"),
        ("created", "<i8"),
    ]
)
"""A vote of a block: names by their places among all names, -1 for none; microseconds of UTC."""

ROLES = ("models", "voters", "prompts")
NAMES_AT_ONCE = 500
"""Names that are looked for by one statement."""

CHOICES, KINDS = tuple(Choice), tuple(VoterKind)
GOLD = 64
"""Added to the code of a vote on a gold battle, which no policy counts."""
BROKEN = 32
"""Added to the code of a vote on a broken answer, which some policies count."""
_CHOICE = {choice.value: code for code, choice in enumerate(CHOICES)}
_KIND = {kind.value: code for code, kind in enumerate(KINDS)}

_ROWS = chain.votes_after(*BOTH_MODELS, col(BattleRow.prompt_id), col(BattleRow.prompt_set))
_BESIDE = _ROWS.add_columns(
    col(BattleRow.public_id),
    col(BattleRow.pair_probability).label("weight"),
    col(BattleRow.repicks),
)
_LAST = col(VoteBlockRow.last)
_BLOCKS = select(*columns_of(VoteBlockRow, "last", "hash", "names", "votes")).order_by(_LAST)
_NEXT = _BLOCKS.where(col(VoteBlockRow.last) > bindparam("after")).limit(1)
_NAMES = select(*columns_of(VoteBlockRow, "last", "names")).order_by(_LAST)
_PERSONS = select(col(VoterRow.id), col(VoterRow.person)).where(col(VoterRow.person).is_not(None))
_HASH = select(col(VoteRow.hash)).where(col(VoteRow.link) == bindparam("last"))
_KEEP = postgresql.insert(VoteBlockRow).on_conflict_do_nothing()
"""SQLite writes it in the same words."""


class _Names:
    """Names of models, voters and prompts, numbered as they first occur in the chain."""

    def __init__(self) -> None:
        self.models: dict[str, int] = {}
        self.voters: dict[str, int] = {}
        self.prompts: dict[str, int] = {}
        self.kinds: list[str] = []
        self._counts = dict.fromkeys(ROLES, 0)

    def take(self, block: dict[str, Any]) -> None:
        """Go on by the names that a block adds."""
        for role in ROLES:
            known, n = getattr(self, role), self._counts[role]
            known |= {name: place for place, name in enumerate(block[role], n)}
            self._counts[role] += len(block[role])
        self.kinds += block["kinds"]

    def pack(
        self, of: Mapping[str, Sequence[Any]]
    ) -> tuple[NDArray[np.void], dict[str, list[str]]]:
        """Write votes as numbers; also give the names that occur for the first time.

        Parameters
        ----------
        of : mapping
            Columns of the votes: see `_by_name`.
        """
        kind_of = dict(zip(of["voter"], of["voter_kind"], strict=True))
        if odd := ({*of["winner"]} - {*_CHOICE}) | ({*kind_of.values()} - {*_KIND}):
            raise ValueError(f"no choice and no kind of voter: {odd}")
        sides = flattened.from_iterable(zip(*(of[side] for side in LOGGED_SIDES), strict=True))
        new = {
            "models": self._add("models", sides),
            "voters": self._add("voters", of["voter"]),
            "prompts": self._add("prompts", of["prompt_id"]),
        }
        new["kinds"] = [kind_of[voter] for voter in new["voters"]]
        self.kinds += new["kinds"]
        packed = np.empty(len(of["link"]), dtype=VOTE)
        packed["link"] = of["link"]
        for side in LOGGED_SIDES:
            packed[side] = [*map(self.models.__getitem__, of[side])]
        packed["winner"] = [*map(_CHOICE.__getitem__, of["winner"])]
        packed["winner"] |= np.where([*map(is_gold, of["prompt_set"])], np.int8(GOLD), np.int8(0))
        packed["winner"] |= np.where(of["broken"], np.int8(BROKEN), np.int8(0))
        packed["voter"] = [*map(self.voters.__getitem__, of["voter"])]
        packed["prompt"] = [*map(self.prompts.get, of["prompt_id"], repeat(-1))]
        packed["created"] = [*map(microseconds, of["ts"])]
        return packed, new

    def _add(self, role: str, names: Iterable[str | None]) -> list[str]:
        """Give numbers to the names that are new, in the order in which they occur."""
        known, n = getattr(self, role), self._counts[role]
        new = [name for name in dict.fromkeys(names) if name is not None and name not in known]
        known |= {name: place for place, name in enumerate(new, n)}
        self._counts[role] += len(new)
        return new


def _by_name(rows: Sequence[AnyRow]) -> Mapping[str, Sequence[Any]]:
    """Give the columns of rows; those of no rows are empty."""
    names = rows[0]._fields if rows else ()
    return defaultdict(tuple, zip(names, zip(*rows, strict=True), strict=True))


class _NamesOnDisk(_Names):
    """The same, of which those of one block alone are in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._file = sqlite3.connect("")  # gone when it is closed
        self._file.execute(
            "CREATE TABLE known (role TEXT, name TEXT, place INTEGER, PRIMARY KEY (role, name)) "
            "WITHOUT ROWID"
        )

    def close(self) -> None:
        """Forget all names."""
        self._file.close()

    def pack(
        self, of: Mapping[str, Sequence[Any]]
    ) -> tuple[NDArray[np.void], dict[str, list[str]]]:
        """Write votes as numbers; also give the names that occur for the first time.

        Parameters
        ----------
        of : mapping
            Columns of the votes: see `_by_name`.
        """
        self.kinds = []
        for role, names in (
            ("models", {name for side in LOGGED_SIDES for name in of[side]}),
            ("voters", {*of["voter"]}),
            ("prompts", {*of["prompt_id"]} - {None}),
        ):
            setattr(self, role, self._known(role, sorted(names)))
        packed, new = super().pack(of)
        for role in ROLES:
            known = getattr(self, role)
            rows_of_role = ((role, name, known[name]) for name in new[role])
            self._file.executemany("INSERT INTO known VALUES (?, ?, ?)", rows_of_role)
        return packed, new

    def _known(self, role: str, names: Sequence[str]) -> dict[str, int]:
        known: dict[str, int] = {}
        for start in range(0, len(names), NAMES_AT_ONCE):
            some = names[start : start + NAMES_AT_ONCE]
            marks = ", ".join("?" * len(some))
            query = f"SELECT name, place FROM known WHERE role = ? AND name IN ({marks})"  # noqa: S608 - of marks alone
            known |= dict(self._file.execute(query, (role, *some)).fetchall())
        return known


def coded(session: Session, policy: Policy, *, styles: bool = False) -> LoggedVotes:
    """Read every vote, skips among them, and why a policy leaves it out.

    Parameters
    ----------
    styles : bool
        Read what is counted of the answers, too: see `arena.store.styles`.

    Raises
    ------
    BrokenRecordError
        If the blocks are not those of this chain.
    """
    connection = session.connection()
    names, parts, last, end = _Names(), [np.empty(0, dtype=VOTE)], 0, ""
    with connection.execute(_BLOCKS.execution_options(yield_per=20)) as rows:
        for block in rows:
            names.take(block.names)
            parts.append(np.frombuffer(block.votes, dtype=VOTE))
            last, end = block.last, block.hash
    if last and connection.scalar(_HASH, {"last": last}) != end:
        msg = f"The counts of votes up to link {last} are not of this chain: see arena verify."
        raise BrokenRecordError(msg)
    parts.append(names.pack(_by_name(connection.execute(_ROWS, {"after": last}).all()))[0])
    votes = np.concatenate(parts)
    logged = _logged(connection, policy, names, votes)
    return replace(logged, numbers=of_votes(connection, votes["link"]) if styles else {})


def columns(
    session: Session, policy: Policy, name: str = "the log", *, after: int = 0
) -> LoggedVotes:
    """Read every vote from its row, with its battle and the probability of its pair.

    Parameters
    ----------
    after : int
        Link after which votes are read.
    """
    connection, names, parts = session.connection(), _Names(), [np.empty(0, dtype=VOTE)]
    battles: list[str] = []
    numbers: dict[str, list[float | None]] = {"weight": [], "repicks": []}
    rows = connection.execute(_BESIDE.execution_options(yield_per=BLOCK), {"after": after})
    for some in rows.partitions():
        of = _by_name(some)
        parts.append(names.pack(of)[0])
        battles += of["public_id"]
        for role, held in numbers.items():
            held += of[role]
    votes = _logged(connection, policy, names, np.concatenate(parts), after)
    return replace(
        votes,
        name=name,
        texts={**votes.texts, "battle": Coded(tuple(battles), np.arange(len(battles)))},
        numbers={role: np.array(held, dtype=np.float64) for role, held in numbers.items()},
    )


def _logged(
    connection: Connection, policy: Policy, names: _Names, votes: NDArray[np.void], after: int = 0
) -> LoggedVotes:
    return LoggedVotes(
        texts={
            **{side: _column(names.models, votes[side]) for side in LOGGED_SIDES},
            "winner": Coded(tuple(choice.value for choice in CHOICES), votes["winner"] % BROKEN),
            "voter": _in_order(*_as_people(connection, names.voters, votes["voter"])),
            "prompt": _in_order(names.prompts, votes["prompt"]),
            "left_out": _left_out(connection, policy, votes, names, after),
        },
        created=votes["created"].copy(),
    )


def lacking(store: Store, most: int = BLOCK) -> Iterator[dict[str, Any]]:
    """Make the blocks that the votes fill and that are not there yet, one after another.

    Each is read in a transaction of its own, so that it may be kept before the next.
    """
    names, after = store.read(_known)
    while len(rows := store.read(_rows, after, most)) == most:
        packed, new = names.pack(_by_name(rows))
        block = {"last": rows[-1].link, "hash": rows[-1].hash, "names": new}
        yield {"after": after, **block, "votes": packed.tobytes()}
        after = rows[-1].link


def _known(session: Session) -> tuple[_Names, int]:
    """Give the names in all blocks, and the newest link in one."""
    names, last = _Names(), 0
    for block in session.connection().execute(_NAMES):
        names.take(block.names)
        last = block.last
    return names, last


def _rows(session: Session, after: int, most: int) -> Sequence[AnyRow]:
    return session.connection().execute(_ROWS.limit(most), {"after": after}).all()


def keep(session: Session, block: dict[str, Any]) -> bool:
    """Store a block, unless another process has: it made the same.

    Returns whether the block is there: one is not stored whose votes were taken out meanwhile, or
    that does not follow on the newest one.
    """
    connection = session.connection()
    chain.hold_end(connection)  # nothing is taken out from here on
    after, values = block["after"], {n: block[n] for n in ("last", "hash", "names", "votes")}
    if (newest := links(session)[0]) >= block["last"]:
        return True
    there = select(func.count()).where(
        col(VoteRow.link) > after, col(VoteRow.link) <= block["last"]
    )
    n = len(block["votes"]) // VOTE.itemsize
    if newest != after or connection.scalar(there.select_from(VoteRow)) != n:
        return False
    connection.execute(_KEEP, values)
    return True


def drop_from(session: Session, link: int) -> None:
    """Delete the blocks that hold votes from a link on, to be made again."""
    session.connection().execute(delete(VoteBlockRow).where(col(VoteBlockRow.last) >= link))


def drop(session: Session) -> None:
    """Delete all blocks, to be made again of the votes."""
    session.connection().execute(delete(VoteBlockRow))


def links(session: Session) -> tuple[int, int]:
    """Give the newest link in a block, and that of the chain."""
    done = session.connection().scalar(select(func.max(col(VoteBlockRow.last)))) or 0
    return done, session.connection().scalars(select(col(ChainRow.links))).one()


class Check:
    """Holds the blocks against the votes, as these are gone through in the order of the chain."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._names = _NamesOnDisk()
        self._rows: list[AnyRow] = []
        self.problem: str | None = None
        self._block = self._after(0)

    def take(self, vote: AnyRow) -> None:
        """Go on by a vote, which has the columns that a block is made of."""
        if self._block is None or self.problem is not None:
            return
        self._rows.append(vote)
        if vote.link >= self._block.last:
            packed, new = self._names.pack(_by_name(self._rows))
            stored = (self._block.last, self._block.hash, self._block.names, self._block.votes)
            if stored != (vote.link, vote.hash, new, packed.tobytes()):
                self.problem = _wrong(self._rows[0].link, self._block.last)
            self._rows, self._block = [], self._after(self._block.last)

    def close(self) -> None:
        """Forget what was gone through."""
        self._names.close()

    def end(self) -> str | None:
        """Describe what is wrong after the last vote, if anything."""
        if self.problem is None and self._block is not None:
            first = self._rows[0].link if self._rows else self._block.last
            self.problem = _wrong(first, self._block.last)
        return self.problem

    def _after(self, last: int) -> AnyRow | None:
        return self._connection.execute(_NEXT, {"after": last}).one_or_none()


def _wrong(first: int, last: int) -> str:
    return (
        f"The counts of boards for links {first} to {last} are not those of the votes. A serving "
        "arena makes them again."
    )


def _column(names: Iterable[str], codes: Integers) -> Coded:
    held = tuple(names)
    return Coded(held, codes.astype(narrowest(len(held))))


def _in_order(names: Iterable[str], codes: Integers) -> Coded:
    """Sort names, so that what counts them need not."""
    held = np.array([name.encode() for name in names], dtype=np.bytes_)
    order = np.argsort(held)  # of UTF-8, which is that of the text
    place = np.empty(len(held) + 1, dtype=narrowest(len(held)))
    place[order], place[-1] = np.arange(len(held)), -1  # of a name that is missing, the last
    return Coded(tuple(name.decode() for name in held[order].tolist()), place[codes])


def _as_people(
    connection: Connection, names: Iterable[str], codes: Integers
) -> tuple[Sequence[str], Integers]:
    """Give the votes of voters who turned out to be one person to that person."""
    persons = {row.id: row.person for row in connection.execute(_PERSONS)}
    own = [persons.get(name, name) for name in names]
    places = {name: place for place, name in enumerate(dict.fromkeys(own))}
    return [*places], np.array([places[name] for name in own], dtype=np.int32)[codes]


def _left_out(
    connection: Connection, policy: Policy, votes: NDArray[np.void], names: _Names, after: int
) -> Coded:
    """Give the reason why each vote is excluded; none where it counts."""
    query = (
        select(col(VoteRow.link), col(ExclusionRow.reason))
        .join(VoteRow, col(VoteRow.id) == col(ExclusionRow.vote_id))
        .where(is_standing(policy.name), col(VoteRow.link) > after)
    )
    logged = dict(connection.execute(query).all())
    places: dict[str | None, int] = defaultdict(lambda: len(places) - 1, {None: -1})
    rules = np.array(
        [
            [
                [
                    places[policy.why_not(choice, kind, gold=on_gold, broken=broken)]
                    for choice in CHOICES
                ]
                for kind in KINDS
            ]
            for on_gold in (False, True)
            for broken in (False, True)
        ]
    )
    kinds = np.array([_KIND[kind] for kind in names.kinds], dtype=np.int8)
    marks, choices = votes["winner"] // BROKEN, votes["winner"] % BROKEN
    why = rules[marks, kinds[votes["voter"]], choices].astype(np.int32)
    at = np.searchsorted(votes["link"], [*logged])
    codes = np.array([places[reason] for reason in logged.values()], dtype=np.int32)
    why[at] = np.where(why[at] < 0, codes, why[at])
    return Coded(tuple(name for name in places if name is not None), why)
