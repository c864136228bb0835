"""Battles before their first token, while they go on, and at their ends: turns and attempts."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from datetime import datetime

from sqlalchemy import bindparam, insert
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col, select, update

from arena.domain.battle import AnswerStatus, BattleState, Mode, Side, current_state
from arena.domain.gold import GONE_ON
from arena.errors import ERASED, EXPIRED, NotReadyError, UnknownBattleError
from arena.store.counted import LAST_ASKED, RUNNING
from arena.store.records import (
    AnswerKey,
    AnswerOutcome,
    NewAnswer,
    NewBattle,
    SoFar,
    StoredAnswer,
    StoredBattle,
    StoredTurn,
)
from arena.store.single_battles import stored_battle
from arena.store.tables import AnswerRow, BattleRow, TurnRow, VoterRow, new_nonce
from rating.sentences import Sentence
from rating.tables.escaping import storable

_NOTE_VOTER = postgresql.insert(VoterRow).on_conflict_do_nothing()  # SQLite spells it alike
_BATTLE, _TURN, _ANSWER = insert(BattleRow), insert(TurnRow), insert(AnswerRow)
_LOCK = (
    select(col(BattleRow.id), col(BattleRow.state))
    .where(col(BattleRow.public_id) == bindparam("public_id"))
    .with_for_update()
)
_LOCK_ALL = (
    select(col(BattleRow.public_id), col(BattleRow.id))
    .where(col(BattleRow.public_id).in_(bindparam("public_ids", expanding=True)))
    .order_by(col(BattleRow.id))  # two who lock several wait for one another
    .with_for_update()
)
_STREAMING = select(col(AnswerRow.turn), col(AnswerRow.side), col(AnswerRow.attempt)).where(
    col(AnswerRow.battle_id) == bindparam("battle"),
    col(AnswerRow.status) == AnswerStatus.STREAMING,
)
_WRITE_ANSWER = update(AnswerRow).where(
    col(AnswerRow.battle_id) == bindparam("battle"),
    col(AnswerRow.turn) == bindparam("of_turn"),
    col(AnswerRow.side) == bindparam("of_side"),
    col(AnswerRow.attempt) == bindparam("of_attempt"),
    col(AnswerRow.status) == AnswerStatus.STREAMING,
)
_WRITE_BATTLE = update(BattleRow).where(col(BattleRow.id) == bindparam("battle"))
_STREAMS = (
    update(BattleRow)
    .where(
        col(BattleRow.id).in_(bindparam("battles", expanding=True)),
        col(BattleRow.state) == BattleState.CREATED,
    )
    .values(state=BattleState.STREAMING)
)
"""Statements that every battle needs: built once, as building one takes longer than running it."""

NOT_NOW = Sentence("Wait until both answers are complete, or start a new battle.")


def open_battle(session: Session, new: NewBattle, process: int | None) -> StoredBattle:
    """Write a battle, its first turn and both answers; gives it as it now stands."""
    continues = _row_id(_owned(session, new.continues, new.owner.id)) if new.continues else None
    connection = session.connection()
    voter = {"id": new.owner.id, "kind": new.owner.kind, "created": new.created}
    connection.execute(_NOTE_VOTER, voter)
    battle = _battle(new) | {"continues": continues, "process": process}
    inserted = connection.execute(_BATTLE, battle).inserted_primary_key
    assert inserted is not None, "the row was not written"
    (key,) = inserted
    turn = {"battle_id": key, "turn": new.turn, "created": new.created}
    connection.execute(_TURN, turn | {"prompt": new.prompt, "nonce": new_nonce()})
    sides = {AnswerKey(new.turn, Side.A, 1): new.a, AnswerKey(new.turn, Side.B, 1): new.b}
    answers = [
        _new_answer(key, at, answer.model_id, answer.decoding, new.created)
        for at, answer in sides.items()
    ]
    connection.execute(_ANSWER, answers)
    if continues is not None:
        return stored_battle(session, new.public_id, new.owner.id)
    return _stored(new)


def add_turn(
    session: Session,
    battle_id: str,
    owner: str,
    prompt: str,
    now: datetime,
    process: int | None,
    *,
    asked_since: datetime | None = None,
    instead: Mapping[Side, NewAnswer] | None = None,
) -> None:
    """Write the next turn of a battle whose answers are complete.

    Parameters
    ----------
    asked_since : datetime, optional
        The battle is closed unless a model was asked at this moment or later.
    instead : mapping of Side to NewAnswer, optional
        Who go on in the place of the recorded answers of a gold battle.

    Raises
    ------
    NotReadyError
        If they are not, or the battle has its vote or is closed.
    """
    battle = _open(session, battle_id, owner, asked_since)
    _require(battle, BattleState.READY)
    last = _latest(session, battle, Side.A)
    key, turn = _row_id(battle), last.turn + 1
    session.add(TurnRow(battle_id=key, turn=turn, prompt=prompt, created=now))
    for side in Side:
        by = instead[side] if instead else _latest(session, battle, side)
        answer = _new_answer(key, AnswerKey(turn, side, 1), by.model_id, by.decoding, now)
        session.connection().execute(_ANSWER, answer)
    _hand_over(battle, instead)
    _run_again(battle, process)


def add_attempts(
    session: Session,
    battle_id: str,
    owner: str,
    now: datetime,
    process: int | None,
    *,
    only_incomplete: bool,
    asked_since: datetime | None = None,
    instead: Mapping[Side, NewAnswer] | None = None,
) -> None:
    """Write new attempts of the latest turn: of both sides, or of those without an answer.

    Parameters
    ----------
    asked_since : datetime, optional
        As of `add_turn`.
    instead : mapping of Side to NewAnswer, optional
        As of `add_turn`; both sides are asked for anew then.

    Raises
    ------
    NotReadyError
        If answers are still being written, or the battle has its vote or is closed.
    """
    battle = _open(session, battle_id, owner, asked_since)
    broken = (BattleState.FAILED, BattleState.INTERRUPTED, BattleState.STOPPED)
    _require(battle, *(broken if only_incomplete else (BattleState.READY,)))
    for side in Side:
        answer = _latest(session, battle, side)
        if not (only_incomplete and answer.status == AnswerStatus.COMPLETE):
            key = AnswerKey(answer.turn, side, answer.attempt + 1)
            by = instead[side] if instead else answer
            again = _new_answer(answer.battle_id, key, by.model_id, by.decoding, now)
            session.connection().execute(_ANSWER, again)
    _hand_over(battle, instead)
    _run_again(battle, process)


def replace_answer(
    session: Session,
    battle_id: str,
    key: AnswerKey,
    failed: AnswerOutcome,
    new: NewAnswer,
    now: datetime,
) -> bool:
    """Keep a failed answer, and let another model take its side, unless it is written no more."""
    battle, connection = _find(session, battle_id), session.connection()
    end = _at(_row_id(battle), key) | _columns(failed)
    if not connection.execute(_WRITE_ANSWER, end).rowcount:
        return False
    next_key = replace(key, attempt=key.attempt + 1)
    answer = _new_answer(_row_id(battle), next_key, new.model_id, new.decoding, now)
    connection.execute(_ANSWER, answer)
    if key.side is Side.A:
        battle.model_a, battle.system_prompt_hash_a = new.model_id, new.system_prompt_hash
    else:
        battle.model_b, battle.system_prompt_hash_b = new.model_id, new.system_prompt_hash
    battle.repicks += 1
    return True


def checkpoint(session: Session, so_far: Mapping[str, Mapping[AnswerKey, SoFar]]) -> None:
    """Keep what answers have so far, by battle; one that has ended has had its last word."""
    connection = session.connection()
    rows = connection.execute(_LOCK_ALL, {"public_ids": list(so_far)})
    battles = {row.public_id: row.id for row in rows}
    texts = [
        _at(battles[public_id], key) | {"text": answer.text, "reasoning": answer.reasoning}
        for public_id, answers in so_far.items()
        for key, answer in answers.items()
    ]
    connection.execute(_WRITE_ANSWER, texts)
    connection.execute(_STREAMS, {"battles": list(battles.values())})


def close_answers(
    session: Session,
    battle_id: str,
    state: BattleState,
    outcomes: Mapping[AnswerKey, AnswerOutcome],
    *,
    message: str | None,
    now: datetime,
) -> BattleState:
    """Write how both answers ended, unless the battle had another end; gives what stands."""
    connection = session.connection()
    battle = connection.execute(_LOCK, {"public_id": battle_id}).one()
    rows = connection.execute(_STREAMING, {"battle": battle.id})
    streaming = {AnswerKey(turn, Side(side), attempt) for turn, side, attempt in rows}
    if not streaming or not streaming <= outcomes.keys():
        return BattleState(battle.state)
    ends = [_at(battle.id, key) | _columns(outcomes[key]) for key in streaming]
    connection.execute(_WRITE_ANSWER, ends)
    ready = now if state is BattleState.READY else None
    end = {"battle": battle.id, "state": state, "message": message, "ready": ready}
    connection.execute(_WRITE_BATTLE, end)
    return state


def fail(session: Session, battle_id: str, process: int | None, message: str) -> None:
    """Mark a battle that a process runs as failed; its answers stay as they were kept."""
    battle = _find(session, battle_id)
    if battle.state not in RUNNING or battle.process != process:
        return
    battle.state, battle.message = BattleState.FAILED, message
    _interrupt_answers(session, [_row_id(battle)])


def processes_of_running(session: Session) -> set[int | None]:
    """Find which processes run battles, or did when they died."""
    running = select(BattleRow.process).where(col(BattleRow.state).in_(RUNNING))
    return set(session.exec(running.distinct()))


def interrupt(session: Session, processes: Collection[int], message: str) -> int:
    """Mark the running battles of these processes, and those of none, as interrupted."""
    theirs = col(BattleRow.process).is_(None) | col(BattleRow.process).in_(processes)
    ids = session.exec(
        select(BattleRow.id)
        .where(col(BattleRow.state).in_(RUNNING), theirs)
        .order_by(col(BattleRow.id))  # two processes that do this at once wait for one another
        .with_for_update()
    ).all()
    interrupt_battles(session, ids, message)
    return len(ids)


def interrupt_battles(session: Session, battles: Collection[int | None], message: str) -> None:
    """Mark battles as interrupted if they run: whoever runs them writes nothing any more."""
    running = col(BattleRow.id).in_(battles) & col(BattleRow.state).in_(RUNNING)
    session.exec(
        update(BattleRow).where(running).values(state=BattleState.INTERRUPTED, message=message)
    )
    _interrupt_answers(session, battles)


def _interrupt_answers(session: Session, battles: Collection[int | None]) -> None:
    session.exec(
        update(AnswerRow)
        .where(col(AnswerRow.battle_id).in_(battles))
        .where(col(AnswerRow.status) == AnswerStatus.STREAMING)
        .values(status=AnswerStatus.INTERRUPTED)
    )


def _row_id(row: BattleRow) -> int:
    """Give the key of a row that has been flushed."""
    assert row.id is not None, "the row was not flushed"
    return row.id


def _find(session: Session, battle_id: str) -> BattleRow:
    """Find a battle, and keep others from changing it until the commit."""
    query = select(BattleRow).where(col(BattleRow.public_id) == battle_id).with_for_update()
    row = session.exec(query).one_or_none()
    if row is None:
        raise UnknownBattleError
    return row


def _owned(session: Session, battle_id: str, owner: str) -> BattleRow:
    """Find a battle for its owner to go on with; somebody else's is as unknown as none.

    Raises
    ------
    UnknownBattleError, NotReadyError
        The latter if its words were erased.
    """
    row = _find(session, battle_id)
    if owner != (session.get_one(VoterRow, row.owner).person or row.owner):
        raise UnknownBattleError
    if row.erased is not None:
        raise NotReadyError(ERASED)
    return row


def _open(session: Session, battle_id: str, owner: str, asked_since: datetime | None) -> BattleRow:
    """Find a battle for its owner to go on with, unless it has expired.

    Raises
    ------
    UnknownBattleError, NotReadyError
        The latter if its words were erased, or none of its models was asked since a moment.
    """
    battle = _owned(session, battle_id, owner)
    if asked_since is not None:
        asked = session.exec(select(LAST_ASKED).where(col(BattleRow.id) == battle.id)).one()
        state = current_state(BattleState(battle.state), Mode(battle.mode), asked, asked_since)
        if state is BattleState.EXPIRED:
            raise NotReadyError(EXPIRED)
    return battle


def _latest(session: Session, battle: BattleRow, side: Side) -> AnswerRow:
    """Find the newest attempt of a side in the newest turn."""
    return session.exec(
        select(AnswerRow)
        .where(col(AnswerRow.battle_id) == _row_id(battle), col(AnswerRow.side) == side)
        .order_by(col(AnswerRow.turn).desc(), col(AnswerRow.attempt).desc())
        .limit(1)
    ).one()


def _require(battle: BattleRow, *states: BattleState) -> None:
    if battle.state not in states:
        raise NotReadyError(NOT_NOW)


def _hand_over(battle: BattleRow, instead: Mapping[Side, NewAnswer] | None) -> None:
    """Note that others go on in a gold battle, in which nothing is known to be right any more."""
    if not instead:
        return
    a, b = instead[Side.A], instead[Side.B]
    battle.model_a, battle.system_prompt_hash_a = a.model_id, a.system_prompt_hash
    battle.model_b, battle.system_prompt_hash_b = b.model_id, b.system_prompt_hash
    battle.prompt_set = GONE_ON


def _run_again(battle: BattleRow, process: int | None) -> None:
    battle.state, battle.message, battle.ready = BattleState.CREATED, None, None
    battle.process = process


def _at(battle: int, key: AnswerKey) -> dict[str, object]:
    return {
        "battle": battle,
        "of_turn": key.turn,
        "of_side": key.side,
        "of_attempt": key.attempt,
    }


def _columns(outcome: AnswerOutcome) -> dict[str, object]:
    columns = asdict(outcome)
    del columns["price"]
    price = outcome.price
    return columns | {
        "price_input": price.input if price else None,
        "price_output": price.output if price else None,
        "price_date": price.date if price else None,
        "cost": _cost(outcome),
    }


def _cost(outcome: AnswerOutcome) -> float | None:
    if outcome.price is None or outcome.tokens_in is None or outcome.tokens_out is None:
        return None
    return outcome.price.cost(outcome.tokens_in, outcome.tokens_out)


def _battle(new: NewBattle) -> dict[str, object]:
    return {
        "public_id": new.public_id,
        "owner": new.owner.id,
        "mode": new.mode,
        "model_a": new.a.model_id,
        "model_b": new.b.model_id,
        "side_seed": new.side_seed,
        "sampler": new.sampler,
        "sampler_version": new.sampler_version,
        "pair_probability": new.pair_probability,
        "prompt_set": new.prompt_set,
        "prompt_id": new.prompt_id,
        "system_prompt_hash_a": new.a.system_prompt_hash,
        "system_prompt_hash_b": new.b.system_prompt_hash,
        "pacing": new.pacing,
        "state": BattleState.CREATED,
        "created": new.created,
        "app_version": new.app_version,
    }


def _new_answer(
    battle: int, key: AnswerKey, model_id: str, decoding: Mapping[str, object], created: datetime
) -> dict[str, object]:
    return {
        "battle_id": battle,
        "model_id": model_id,
        "turn": key.turn,
        "side": key.side,
        "attempt": key.attempt,
        "text": "",
        "nonce": new_nonce(),
        "reasoning": "",
        "status": AnswerStatus.STREAMING,
        "decoding": dict(decoding),
        "created": created,
    }


def _stored(new: NewBattle) -> StoredBattle:
    """Give a battle that goes on from no other as reading it would."""
    prompt = storable(new.prompt)
    turn = StoredTurn(
        turn=new.turn, prompt=prompt, a=_begun(Side.A, new.a), b=_begun(Side.B, new.b)
    )
    return StoredBattle(
        public_id=new.public_id,
        owner=new.owner.id,
        mode=new.mode,
        state=BattleState.CREATED,
        message=None,
        created=new.created,
        asked=new.created,
        turns=(turn,),
        choice=None,
        prompt_set=new.prompt_set,
    )


def _begun(side: Side, answer: NewAnswer) -> StoredAnswer:
    return StoredAnswer(
        side=side,
        attempt=1,
        model_id=answer.model_id,
        model_name=answer.model_name,
        text="",
        status=AnswerStatus.STREAMING,
        error_class=None,
        finish_reason=None,
        first_token_s=None,
        tokens_out=None,
        cost=None,
    )
