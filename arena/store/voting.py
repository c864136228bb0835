"""The transaction of a vote: every check, the vote, and the chain that it extends.

The statements are spelled out here, for people wait for it: see `arena.store.reading`.
"""

from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update
from sqlmodel import Session, col

from arena.domain.battle import BattleState, Mode, Side
from arena.domain.vote import Choice
from arena.errors import AlreadyVotedError, NotReadyError, UnknownBattleError
from arena.store import chain
from arena.store.records import Ballot
from arena.store.tables import AnswerRow, BattleRow, VoteRow

_BATTLE = (
    select(
        col(BattleRow.id),
        col(BattleRow.owner),
        col(BattleRow.mode),
        col(BattleRow.state),
        col(BattleRow.ready),
    )
    .where(col(BattleRow.public_id) == bindparam("public_id"))
    .with_for_update()
)
_VOTE = select(col(VoteRow.key), col(VoteRow.outcome)).where(
    col(VoteRow.battle_id) == bindparam("battle")
)
_ANSWERS = (
    select(col(AnswerRow.side), col(AnswerRow.turn), col(AnswerRow.attempt))
    .where(col(AnswerRow.battle_id) == bindparam("battle"))
    .order_by(col(AnswerRow.turn), col(AnswerRow.attempt))
)
_APPEND = insert(VoteRow)
_CLOSE = update(BattleRow).where(col(BattleRow.id) == bindparam("battle"))


def cast(session: Session, ballot: Ballot) -> bool:
    """Write a vote; whether it is new: the same key with the same choice is written once.

    Raises
    ------
    UnknownBattleError, NotReadyError, AlreadyVotedError
        Nothing is written then.
    """
    connection = session.connection()
    battle = connection.execute(_BATTLE, {"public_id": ballot.battle_id}).one_or_none()
    if battle is None or battle.owner != ballot.voter:
        raise UnknownBattleError
    vote = connection.execute(_VOTE, {"battle": battle.id}).one_or_none()
    if vote is None:
        _require_ready(battle)
        _append(connection, battle, ballot)
    elif (vote.key, vote.outcome) != (ballot.key, ballot.choice):
        raise AlreadyVotedError(Choice(vote.outcome))
    return vote is None


def _require_ready(battle: Row[*tuple[Any, ...]]) -> None:
    if battle.mode != Mode.ANONYMOUS:
        msg = "This battle goes on after its vote. It is not counted."
        raise NotReadyError(msg)
    if battle.state != BattleState.READY or battle.ready is None:
        msg = "Both answers must be complete before you can vote on this battle."
        raise NotReadyError(msg)


def _append(connection: Connection, battle: Row[*tuple[Any, ...]], ballot: Ballot) -> None:
    newest = {row.side: row for row in connection.execute(_ANSWERS, {"battle": battle.id})}
    vote = {
        "voter_id": ballot.voter,
        "turn": newest[Side.A].turn,
        "attempt_a": newest[Side.A].attempt,
        "attempt_b": newest[Side.B].attempt,
        "outcome": ballot.choice,
        "key": ballot.key,
        "order_shown": "ab",
        "seconds_to_vote": (ballot.cast - battle.ready).total_seconds(),
    }
    hashes = chain.extend(connection, vote, ballot.cast, ballot.battle_id)
    unsaid = {"tags_a": {}, "tags_b": {}, "comment_a": "", "comment_b": ""}
    rest = {"battle_id": battle.id, "created": ballot.cast}
    connection.execute(_APPEND, vote | hashes | unsaid | rest)
    skipped = ballot.choice is Choice.SKIP
    state = BattleState.SKIPPED if skipped else BattleState.VOTED
    connection.execute(_CLOSE, {"battle": battle.id, "state": state})
