"""The transactions that extend the chain: a vote with every check, and an exclusion of one.

Its statements are built once: people wait for a vote.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlmodel import Session, col

from arena.domain.battle import BattleState, Mode, Side, current_state
from arena.domain.ending import cut_of
from arena.domain.gold import is_gold
from arena.domain.vote import Choice, Receipt, Reveal, RevealedModel
from arena.errors import ERASED, EXPIRED, AlreadyVotedError, NotReadyError, UnknownBattleError
from arena.store import chain, remarks
from arena.store.counted import LAST_ASKED
from arena.store.records import Ballot, Cast
from arena.store.tables import (
    BOTH_MODELS,
    BattleRow,
    ExclusionRow,
    ModelRow,
    VoteRemarkRow,
    VoteRow,
    VoterRow,
)
from rating.outcome import SHOWN_FIRST, of_sides
from rating.sentences import Sentence


def _of_model(column: Any, model: Any) -> Any:
    """Read a model beside its battle: a join would lose a battle whose model changed meanwhile."""
    read = select(col(column)).where(col(ModelRow.id) == col(model))
    return read.correlate(BattleRow).scalar_subquery()


_BATTLE = (
    select(
        col(BattleRow.id),
        col(BattleRow.owner),
        col(BattleRow.state),
        col(BattleRow.ready),
        col(BattleRow.erased),
        LAST_ASKED.label("asked"),
        *chain.OF_BATTLE,
        col(VoterRow.kind).label("voter_kind"),
        col(VoterRow.person),
        *(
            _of_model(known, model).label(label)
            for known, name in ((ModelRow.fingerprint, "fingerprint"), (ModelRow.name, "name"))
            for model, label in zip(BOTH_MODELS, of_sides(name), strict=True)
        ),
    )
    .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
    .where(col(BattleRow.public_id) == bindparam("public_id"))
    .with_for_update(of=BattleRow)
)
_VOTE = select(col(VoteRow.id), col(VoteRow.key), col(VoteRow.outcome)).where(
    col(VoteRow.battle_id) == bindparam("battle")
)
_WAITS = select(col(VoteRemarkRow.vote_id)).where(
    col(VoteRemarkRow.vote_id) == bindparam("vote"), col(VoteRemarkRow.updated).is_(None)
)
_APPEND = insert(VoteRow)
_EXCLUDE = insert(ExclusionRow)
_VOTE_ON = (
    select(col(VoteRow.id), col(VoteRow.link))
    .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
    .where(col(BattleRow.public_id) == bindparam("public_id"))
)
_CLOSE = update(BattleRow).where(col(BattleRow.id) == bindparam("battle"))


def cast(session: Session, ballot: Ballot) -> Cast:
    """Write a vote, and read whom it reveals; the same key with the same choice is written once.

    Whom it reveals stays out of the receipt while it is withheld.

    Raises
    ------
    UnknownBattleError, NotReadyError, AlreadyVotedError
        Nothing is written then.
    """
    connection = session.connection()
    battle = connection.execute(_BATTLE, {"public_id": ballot.battle_id}).one_or_none()
    if battle is None or ballot.voter != (battle.person or battle.owner):
        raise UnknownBattleError
    ready = battle.state == BattleState.READY
    vote = None if ready else connection.execute(_VOTE, {"battle": battle.id}).one_or_none()
    if vote is None:
        _require_ready(battle, ballot.asked_since)
    elif (vote.key, vote.outcome) != (ballot.key, ballot.choice):
        raise AlreadyVotedError(Choice(vote.outcome))
    transcript = chain.transcripts(connection, [battle.id])[battle.id]
    if vote is None:
        key = _append(connection, battle, transcript, ballot)
        withheld = ballot.withhold and ballot.choice is not Choice.SKIP
        if withheld:
            remarks.withhold(session, key)
    else:
        withheld = connection.execute(_WAITS, {"vote": vote.id}).first() is not None
    reveal, gold = _reveal(battle, transcript), is_gold(battle.prompt_set)
    receipt = Receipt.of(ballot.choice, reveal, gold=gold, withheld=withheld)
    return Cast(receipt, new=vote is None)


def exclude(
    session: Session,
    battle_id: str,
    *,
    policy: str,
    rule: str,
    version: str,
    reason: str,
    now: datetime,
) -> None:
    """Let a policy leave out the vote on a battle from here on.

    Raises
    ------
    UnknownBattleError
        If the battle has no vote.
    """
    connection = session.connection()
    vote = connection.execute(_VOTE_ON, {"public_id": battle_id}).one_or_none()
    if vote is None:
        raise UnknownBattleError
    why = {"policy": policy, "rule": rule, "version": version, "reason": reason}
    content = chain.exclusion_content(why | {"vote": vote.link, "ts": now})
    link = chain.extend(connection, "exclusion", content)
    connection.execute(_EXCLUDE, why | link | {"vote_id": vote.id, "created": now})


def _require_ready(battle: chain.AnyRow, asked_since: datetime | None) -> None:
    if battle.mode != Mode.ANONYMOUS:
        msg = Sentence("This battle goes on after its vote. It is not counted.")
        raise NotReadyError(msg)
    if battle.erased is not None:
        raise NotReadyError(ERASED)
    if asked_since is not None:
        state = current_state(
            BattleState(battle.state), Mode(battle.mode), battle.asked, asked_since
        )
        if state is BattleState.EXPIRED:
            raise NotReadyError(EXPIRED)
    if battle.state != BattleState.READY or battle.ready is None:
        msg = Sentence("Both answers must be complete before you can vote on this battle.")
        raise NotReadyError(msg)


def _reveal(battle: chain.AnyRow, transcript: chain.Transcript) -> Reveal:
    a, b = (transcript.last[side] for side in Side)
    return Reveal(_revealed(battle.name_a, a), _revealed(battle.name_b, b))


def _revealed(name: str, last: chain.AnyRow) -> RevealedModel:
    figures = (last.first_token_s, last.tokens_out, last.cost)
    return RevealedModel(last.model_id, name, *figures, cut_of(last.finish_reason))


def _append(
    connection: Connection, battle: chain.AnyRow, transcript: chain.Transcript, ballot: Ballot
) -> int:
    """Append the vote to the chain, and close its battle; gives the vote's key."""
    a, b = (transcript.last[side] for side in Side)
    vote = {
        "turn": a.turn,
        "attempt_a": a.attempt,
        "attempt_b": b.attempt,
        "order_shown": SHOWN_FIRST[0],
        "fingerprint_a": battle.fingerprint_a,
        "fingerprint_b": battle.fingerprint_b,
        "seconds_to_vote": max(0.0, (ballot.cast - battle.ready).total_seconds()),
    }
    broken = chain.is_broken(vote, transcript.answers)
    choice = {"winner": ballot.choice, "voter": battle.owner, "ts": ballot.cast}
    whole = battle._asdict() | vote | choice | {"transcript_hash": transcript.hash}
    link = chain.extend(connection, "vote", chain.vote_content(whole))
    rest = {
        "battle_id": battle.id,
        "voter_id": battle.owner,
        "outcome": ballot.choice,
        "key": ballot.key,
        "created": ballot.cast,
        "broken": broken,
    }
    appended = connection.execute(_APPEND, vote | rest | link)
    skipped = ballot.choice is Choice.SKIP
    state = BattleState.SKIPPED if skipped else BattleState.VOTED
    connection.execute(_CLOSE, {"battle": battle.id, "state": state})
    (key,) = appended.inserted_primary_key or (0,)
    return int(key)
