"""Length and formatting of the answers that votes are about, counted once for each vote.

Counts are those of the columns of ``arena export battles``: of a side, over all turns up to the
vote. They go when the texts go.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, exists, select
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col

from arena.store import log
from arena.store.chain import AnyRow
from arena.store.store import Store
from arena.store.tables import AnswerRow, BattleRow, VoteRow, VoteStyleRow, columns_of, is_voted_on
from judge.tables.annotations import STYLES, style_of
from rating.outcome import of_sides
from rating.typing import Floats, Ints

MOST = 200_000
"""Votes that are counted and read: the newest, as each is a row."""
BATCH = 200
"""Votes whose answers are counted in one transaction."""

COLUMNS = tuple(of_sides(name)[side] for side in (0, 1) for name in STYLES)
"""What is counted, in the order of a row."""

_IS_COUNTED = exists().where(col(VoteStyleRow.vote_id) == col(VoteRow.id))
_HAS_TEXT = exists().where(is_voted_on(AnswerRow, "a"), col(AnswerRow.nonce).is_not(None))
_LACKING: Any = (
    select(*columns_of(VoteRow, "id", "link", "battle_id", "turn", "attempt_a", "attempt_b"))
    .where(col(VoteRow.link) > bindparam("after"), ~_IS_COUNTED, _HAS_TEXT)
    .order_by(col(VoteRow.link))
    .limit(BATCH)
)
_LOCKED: Any = (
    select(col(VoteRow.id))
    .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
    .where(col(VoteRow.id).in_(bindparam("votes", expanding=True)))
    .order_by(col(BattleRow.id))
    .with_for_update(of=BattleRow)
)
_ANSWERS: Any = (
    select(*columns_of(AnswerRow, "battle_id", "turn", "side", "attempt", "text", "nonce"))
    .where(col(AnswerRow.battle_id).in_(bindparam("battles", expanding=True)))
    .order_by(col(AnswerRow.attempt))
)
_KEEP = postgresql.insert(VoteStyleRow).on_conflict_do_nothing()
"""SQLite writes it in the same words."""
_COUNTS = (
    select(col(VoteRow.link), col(VoteStyleRow.counts))
    .join(VoteStyleRow, col(VoteStyleRow.vote_id) == col(VoteRow.id))
    .where(col(VoteRow.link) > bindparam("after"))
)


def count(store: Store, after: int) -> Iterator[int]:
    """Count the answers of votes after a link, some votes at a time; gives the link reached.

    Votes that have been counted, and those whose texts were erased, are passed over, and so are
    all but the newest `MOST`.
    """
    after = max(after, store.read(log.newest, MOST))
    while votes := store.read(_lacking, after):
        store.write(_count, votes)
        after = votes[-1].link
        yield after


def _lacking(session: Session, after: int) -> Sequence[AnyRow]:
    return session.connection().execute(_LACKING, {"after": after}).all()


def _count(session: Session, votes: Sequence[AnyRow]) -> None:
    connection = session.connection()
    # Nothing is erased from here on, and what was erased meanwhile is not counted.
    there = {*connection.scalars(_LOCKED, {"votes": [vote.id for vote in votes]})}
    answers: dict[int, list[AnyRow]] = defaultdict(list)
    for row in connection.execute(_ANSWERS, {"battles": [vote.battle_id for vote in votes]}):
        answers[row.battle_id].append(row)
    rows = [
        {"vote_id": vote.id, "counts": counts}
        for vote in votes
        if vote.id in there and (counts := _counts(vote, answers[vote.battle_id]))
    ]
    if rows:
        connection.execute(_KEEP, rows)


def _counts(vote: AnyRow, answers: Sequence[AnyRow]) -> list[int]:
    """Count both sides up to the vote; empty where a text is gone, or none was written."""
    attempts = {"a": vote.attempt_a, "b": vote.attempt_b}
    last = {
        (row.side, row.turn): row
        for row in answers
        if row.turn < vote.turn or (row.turn, row.attempt) == (vote.turn, attempts[row.side])
    }
    if any(row.nonce is None for row in last.values()) or len(last) < 2 * vote.turn:
        return []
    styles = {side: [style_of(r.text) for (s, _), r in last.items() if s == side] for side in "ab"}
    return [sum(one[name] for one in styles[side]) for side in "ab" for name in STYLES]


def of_votes(connection: Connection, links: Ints) -> dict[str, Floats]:
    """Give the columns of `COLUMNS` of votes by their links, in order; NaN where not counted."""
    counts = np.full((len(links), len(COLUMNS)), np.nan)
    after = int(links[-MOST - 1]) if len(links) > MOST else 0
    known = connection.execute(_COUNTS, {"after": after}).all()
    if known and len(links):
        place = np.searchsorted(links, [row.link for row in known])
        # A vote that came meanwhile is not among the links.
        place = np.minimum(place, len(links) - 1)
        same = links[place] == [row.link for row in known]
        counts[place[same]] = np.array([row.counts for row in known], dtype=np.float64)[same]
    return dict(zip(COLUMNS, counts.T, strict=True))
