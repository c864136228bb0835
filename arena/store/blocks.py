"""Votes in columns, as boards read them: in blocks that are made once, and the newest from rows.

A vote is never changed, and becomes visible only after all before it in the chain. So a block of
votes that follow one another is final as soon as it is full, whoever makes it, and what is made of
blocks and of the rows after the last of them is what all rows would give.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, bindparam, delete, select
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col, func

from arena.domain.gold import is_gold
from arena.domain.vote import Choice, Policy, VoterKind
from arena.errors import BrokenRecordError
from arena.store import chain
from arena.store.chain import AnyRow
from arena.store.counted import is_standing
from arena.store.store import Store
from arena.store.tables import BattleRow, ChainRow, ExclusionRow, VoteBlockRow, VoteRow, VoterRow
from rating.counting import narrowest
from rating.tables.coding import Coded
from rating.tables.sources import CodedLog, microseconds
from rating.typing import Integers

BLOCK = 1 << 15
"""Votes of a block: as many rows at most are read by each refresh of a board."""

VOTE = np.dtype(
    [
        ("link", "<i8"),
        ("model_a", "<i4"),
        ("model_b", "<i4"),
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

_ROWS: Select[*tuple[Any, ...]] = (
    select(
        col(VoteRow.link),
        col(VoteRow.hash),
        col(BattleRow.model_a),
        col(BattleRow.model_b),
        col(VoteRow.outcome).label("winner"),
        col(VoteRow.voter_id).label("voter"),
        col(VoterRow.kind).label("voter_kind"),
        col(BattleRow.prompt_id),
        col(BattleRow.prompt_set),
        col(VoteRow.created).label("ts"),
        col(VoteRow.broken),
    )
    .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
    .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
    .where(col(VoteRow.link) > bindparam("after"))
    .order_by(col(VoteRow.link))
)
_BLOCKS = select(
    col(VoteBlockRow.last),
    col(VoteBlockRow.hash),
    col(VoteBlockRow.names),
    col(VoteBlockRow.votes),
).order_by(col(VoteBlockRow.last))
_NEXT = _BLOCKS.where(col(VoteBlockRow.last) > bindparam("after")).limit(1)
_NAMES = select(col(VoteBlockRow.last), col(VoteBlockRow.names)).order_by(col(VoteBlockRow.last))
_PERSONS = select(col(VoterRow.id), col(VoterRow.person)).where(col(VoterRow.person).is_not(None))
_HASH = select(col(VoteRow.hash)).where(col(VoteRow.link) == bindparam("last"))
_KEEP = postgresql.insert(VoteBlockRow).on_conflict_do_nothing()
"""SQLite writes it in the same words."""


class Names:
    """Names of models, voters and prompts, numbered as they first occur in the chain."""

    def __init__(self) -> None:
        self.models: dict[str, int] = {}
        self.voters: dict[str, int] = {}
        self.prompts: dict[str, int] = {}
        self.kinds: list[str] = []
        self._counts = dict.fromkeys(ROLES, 0)
        self._new: dict[str, list[str]] = {}

    def take(self, block: dict[str, Any]) -> None:
        """Go on by the names that a block adds."""
        for role in ROLES:
            known, n = getattr(self, role), self._counts[role]
            known |= {name: place for place, name in enumerate(block[role], n)}
            self._counts[role] += len(block[role])
        self.kinds += block["kinds"]

    def pack(self, rows: Sequence[AnyRow]) -> tuple[NDArray[np.void], dict[str, list[str]]]:
        """Write votes as numbers; also give the names that occur for the first time."""
        self._new = {name: [] for name in (*ROLES, "kinds")}
        packed = np.array([self._vote(row) for row in rows], dtype=VOTE)
        self.kinds += self._new["kinds"]
        return packed, self._new

    def _vote(self, row: AnyRow) -> tuple[int, ...]:
        if row.winner not in _CHOICE or row.voter_kind not in _KIND:
            msg = f"a vote of {row.voter_kind!r} for {row.winner!r}"
            raise ValueError(msg)
        if row.voter not in self.voters:
            self._new["kinds"].append(row.voter_kind)
        return (
            row.link,
            self._place("models", self.models, row.model_a),
            self._place("models", self.models, row.model_b),
            _CHOICE[row.winner] | GOLD * is_gold(row.prompt_set) | BROKEN * row.broken,
            self._place("voters", self.voters, row.voter),
            -1 if row.prompt_id is None else self._place("prompts", self.prompts, row.prompt_id),
            microseconds(row.ts),
        )

    def _place(self, role: str, known: dict[str, int], name: str) -> int:
        place = known.get(name)
        if place is None:
            place = known[name] = self._counts[role]
            self._counts[role] += 1
            self._new[role].append(name)
        return place


class NamesOnDisk(Names):
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

    def pack(self, rows: Sequence[AnyRow]) -> tuple[NDArray[np.void], dict[str, list[str]]]:
        """Write votes as numbers; also give the names that occur for the first time."""
        self.kinds = []
        for role, names in (
            ("models", {name for row in rows for name in (row.model_a, row.model_b)}),
            ("voters", {row.voter for row in rows}),
            ("prompts", {row.prompt_id for row in rows} - {None}),
        ):
            setattr(self, role, self._known(role, sorted(names)))
        packed, new = super().pack(rows)
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


def coded(session: Session, policy: Policy) -> CodedLog:
    """Read every vote, skips among them, and why a policy leaves it out.

    Raises
    ------
    BrokenRecordError
        If the blocks are not those of this chain.
    """
    connection = session.connection()
    names, parts, last, end = Names(), [np.empty(0, dtype=VOTE)], 0, ""
    for block in connection.execute(_BLOCKS.execution_options(yield_per=20)):
        names.take(block.names)
        parts.append(np.frombuffer(block.votes, dtype=VOTE))
        last, end = block.last, block.hash
    if last and connection.scalar(_HASH, {"last": last}) != end:
        msg = f"The counts of votes up to link {last} are not of this chain: see arena verify."
        raise BrokenRecordError(msg)
    parts.append(names.pack(connection.execute(_ROWS, {"after": last}).all())[0])
    votes = np.concatenate(parts)
    reasons, why = _left_out(connection, policy, votes, names)
    return CodedLog(
        model_a=_column(names.models, votes["model_a"]),
        model_b=_column(names.models, votes["model_b"]),
        winner=Coded(tuple(choice.value for choice in CHOICES), votes["winner"] % BROKEN),
        voter=_in_order(*_as_people(connection, names.voters, votes["voter"])),
        prompt=_in_order(names.prompts, votes["prompt"]),
        left_out=Coded(reasons, why),
        created=votes["created"].copy(),
    )


def lacking(store: Store, most: int = BLOCK) -> Iterator[dict[str, Any]]:
    """Make the blocks that the votes fill and that are not there yet, one after another.

    Each is read in a transaction of its own, so that it may be kept before the next.
    """
    names, after = store.read(_known)
    while len(rows := store.read(_rows, after, most)) == most:
        packed, new = names.pack(rows)
        block = {"last": rows[-1].link, "hash": rows[-1].hash, "names": new}
        yield {"after": after, **block, "votes": packed.tobytes()}
        after = rows[-1].link


def _known(session: Session) -> tuple[Names, int]:
    """Give the names in all blocks, and the newest link in one."""
    names, last = Names(), 0
    for block in session.connection().execute(_NAMES):
        names.take(block.names)
        last = block.last
    return names, last


def _rows(session: Session, after: int, most: int) -> Sequence[AnyRow]:
    return session.connection().execute(_ROWS.limit(most), {"after": after}).all()


def keep(session: Session, block: dict[str, Any]) -> bool:
    """Store a block, unless another process has: it made the same.

    Says whether the block is there: one is not stored whose votes were taken out meanwhile, or
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
    """Delete the blocks that hold votes from a link on, to be made anew."""
    session.connection().execute(delete(VoteBlockRow).where(col(VoteBlockRow.last) >= link))


def drop(session: Session) -> None:
    """Delete all blocks, to be made anew of the votes."""
    session.connection().execute(delete(VoteBlockRow))


def links(session: Session) -> tuple[int, int]:
    """Give the newest link in a block, and that of the chain."""
    done = session.connection().scalar(select(func.max(col(VoteBlockRow.last)))) or 0
    return done, session.connection().scalars(select(col(ChainRow.links))).one()


class Check:
    """Holds the blocks against the votes, as these are gone through in the order of the chain."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._names = NamesOnDisk()
        self._rows: list[AnyRow] = []
        self.problem: str | None = None
        self._block = self._after(0)

    def take(self, vote: AnyRow) -> None:
        """Go on by a vote, which has the columns that a block is made of."""
        if self._block is None or self.problem is not None:
            return
        self._rows.append(vote)
        if vote.link >= self._block.last:
            packed, new = self._names.pack(self._rows)
            stored = (self._block.last, self._block.hash, self._block.names, self._block.votes)
            if stored != (vote.link, vote.hash, new, packed.tobytes()):
                self.problem = _wrong(self._rows[0].link, self._block.last)
            self._rows, self._block = [], self._after(self._block.last)

    def close(self) -> None:
        """Forget what was gone through."""
        self._names.close()

    def end(self) -> str | None:
        """Say what is wrong after the last vote, if anything."""
        if self.problem is None and self._block is not None:
            first = self._rows[0].link if self._rows else self._block.last
            self.problem = _wrong(first, self._block.last)
        return self.problem

    def _after(self, last: int) -> AnyRow | None:
        return self._connection.execute(_NEXT, {"after": last}).one_or_none()


def _wrong(first: int, last: int) -> str:
    return (
        f"The counts of boards for links {first} to {last} are not those of the votes. A serving "
        "arena makes them anew."
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
    connection: Connection, policy: Policy, votes: NDArray[np.void], names: Names
) -> tuple[tuple[str, ...], Integers]:
    """Give reasons, and for each vote the place of its own; -1 where it counts."""
    query = (
        select(col(VoteRow.link), col(ExclusionRow.reason))
        .join(VoteRow, col(VoteRow.id) == col(ExclusionRow.vote_id))
        .where(is_standing(policy.name))
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
    return tuple(name for name in places if name is not None), why
