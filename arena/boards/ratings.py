"""The leaderboard of a policy, and who is on it, as files that other programs read."""

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

from arena.boards.dataset_card import Written
from arena.boards.fitted import moment_of
from arena.boards.leaderboard import make_board, on_held, version_of
from arena.domain.model import LISTED_AFTER
from arena.domain.vote import Policy
from arena.store import kept_boards, log
from arena.store.store import Store
from rating.errors import NotIdentifiedError
from rating.tables import formats
from rating.tables.writing import write_rows

MODELS = {
    "model": "VARCHAR",
    "name": "VARCHAR",
    "organisation": "VARCHAR",
    "kind": "VARCHAR",
    "licence": "VARCHAR",
    "fingerprint": "VARCHAR",
    "created": "TIMESTAMP",
}
"""Columns of an export of models; ``fingerprint`` is of all that makes one answer as it does."""


def export_models(store: Store, path: Path) -> Written:
    """Write every model that the log names.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    rows = store.read(log.model_rows)
    write_rows(rows, MODELS, path)
    return Written(rows=len(rows))


def export_ratings(
    store: Store,
    policy: Policy,
    path: Path,
    now: datetime,
    *,
    enough: int = LISTED_AFTER,
    vote_within: timedelta,
) -> Written:
    """Write the board of all votes that a policy counts, one row a model.

    Prices and times are exact here, and of battles that take no vote any more.

    Parameters
    ----------
    vote_within : timedelta
        How long a battle takes a vote after its models were last asked.

    Raises
    ------
    NotIdentifiedError
        If the votes identify no ratings; says what is missing.
    DataError
        If the file cannot be written.
    """
    with store.reading() as session:
        state, columns = kept_boards.votes(session, policy)
        records = log.model_records(session, now - vote_within, policy.kinds)
    version, held = version_of(state, enough), on_held(state.held)
    board = make_board(
        columns, records, policy, version, now, held=held, entrants=state.entrants, enough=enough
    )
    rows = board.to_rows()
    if not rows:
        raise NotIdentifiedError(board.reason or "No model is rated.")
    cast = columns.created[columns.counted]
    write_rows(rows, {name: formats.COLUMNS.get(name, "VARCHAR") for name in rows[0]}, path)
    votes: Counter[str | None] = Counter(board.left_out)
    votes[None] = board.votes
    return Written(
        rows=len(rows),
        votes=votes,
        first=moment_of(cast.min()),
        last=moment_of(cast.max()),
        method=f"{board.method}; hash of the votes {board.data_hash}",
    )
