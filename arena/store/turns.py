"""Opening battles and going on in them: turns, attempts and re-picked models."""

from contextlib import suppress
from datetime import datetime

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from arena.domain.battle import AnswerStatus, BattleState, Side
from arena.errors import NotReadyError
from arena.store.records import AnswerOutcome, NewAnswer, NewBattle
from arena.store.rows import find, latest, owned, row_id
from arena.store.tables import AnswerRow, BattleRow, TurnRow, VoterRow

NOT_NOW = "Wait until both answers are complete, or start a new battle."


def open_battle(session: Session, new: NewBattle) -> None:
    """Write a battle, its first turn and both answers."""
    _note_voter(session, new)
    battle = _battle_row(new)
    if new.continues is not None:
        battle.continues = row_id(owned(session, new.continues, new.owner.id))
    session.add(battle)
    session.flush()
    _add_turn(session, battle, new.turn, new.prompt, new.created)
    for side, answer in ((Side.A, new.a), (Side.B, new.b)):
        session.add(_answer_row(battle, side, answer, new.turn, 1, new.created))


def add_turn(session: Session, battle_id: str, owner: str, prompt: str, now: datetime) -> None:
    """Write the next turn of a battle whose answers are complete.

    Raises
    ------
    NotReadyError
        If they are not, or the battle has its vote.
    """
    battle = owned(session, battle_id, owner, lock=True)
    _require(battle, BattleState.READY)
    last = latest(session, battle, Side.A)
    _add_turn(session, battle, last.turn + 1, prompt, now)
    for side in Side:
        _add_answer_like(session, latest(session, battle, side), last.turn + 1, 1, now)
    _run_again(battle)


def add_attempts(
    session: Session, battle_id: str, owner: str, now: datetime, *, only_incomplete: bool
) -> None:
    """Write new attempts of the latest turn: of both sides, or of those without an answer.

    Raises
    ------
    NotReadyError
        If answers are still being written, or the battle has its vote.
    """
    battle = owned(session, battle_id, owner, lock=True)
    broken = (BattleState.FAILED, BattleState.INTERRUPTED, BattleState.STOPPED)
    _require(battle, *(broken if only_incomplete else (BattleState.READY,)))
    for side in Side:
        answer = latest(session, battle, side)
        if not (only_incomplete and answer.status == AnswerStatus.COMPLETE):
            _add_answer_like(session, answer, answer.turn, answer.attempt + 1, now)
    _run_again(battle)


def replace_answer(
    session: Session,
    battle_id: str,
    side: Side,
    failed: AnswerOutcome,
    new: NewAnswer,
    now: datetime,
) -> None:
    """Keep a failed answer, and let another model take its side of the battle."""
    battle = find(session, battle_id, lock=True)
    answer = latest(session, battle, side)
    write_outcome(answer, failed)
    session.add(_answer_row(battle, side, new, answer.turn, answer.attempt + 1, now))
    if side is Side.A:
        battle.model_a, battle.system_prompt_hash_a = new.model_id, new.system_prompt_hash
    else:
        battle.model_b, battle.system_prompt_hash_b = new.model_id, new.system_prompt_hash
    battle.repicks += 1


def _note_voter(session: Session, new: NewBattle) -> None:
    if session.get(VoterRow, new.owner.id) is None:
        # the voter's other battle may write the same row in this moment, which is as good
        with suppress(IntegrityError), session.begin_nested():
            session.add(VoterRow(id=new.owner.id, kind=new.owner.kind, created=new.created))


def _battle_row(new: NewBattle) -> BattleRow:
    return BattleRow(
        public_id=new.public_id,
        owner=new.owner.id,
        mode=new.mode,
        model_a=new.a.model_id,
        model_b=new.b.model_id,
        side_seed=new.side_seed,
        sampler=new.sampler,
        sampler_version=new.sampler_version,
        pair_probability=new.pair_probability,
        prompt_set=new.prompt_set,
        prompt_id=new.prompt_id,
        system_prompt_hash_a=new.a.system_prompt_hash,
        system_prompt_hash_b=new.b.system_prompt_hash,
        pacing=new.pacing,
        state=BattleState.CREATED,
        created=new.created,
        app_version=new.app_version,
    )


def _answer_row(
    battle: BattleRow, side: Side, answer: NewAnswer, turn: int, attempt: int, created: datetime
) -> AnswerRow:
    return AnswerRow(
        battle_id=row_id(battle),
        model_id=answer.model_id,
        turn=turn,
        side=side,
        attempt=attempt,
        status=AnswerStatus.STREAMING,
        decoding=dict(answer.decoding),
        created=created,
    )


def _add_answer_like(
    session: Session, row: AnswerRow, turn: int, attempt: int, now: datetime
) -> None:
    session.add(
        AnswerRow(
            battle_id=row.battle_id,
            model_id=row.model_id,
            turn=turn,
            side=row.side,
            attempt=attempt,
            status=AnswerStatus.STREAMING,
            decoding=row.decoding,
            created=now,
        )
    )


def _add_turn(
    session: Session, battle: BattleRow, turn: int, prompt: str, created: datetime
) -> None:
    session.add(TurnRow(battle_id=row_id(battle), turn=turn, prompt=prompt, created=created))


def _require(battle: BattleRow, *states: BattleState) -> None:
    if battle.state not in states:
        raise NotReadyError(NOT_NOW)


def _run_again(battle: BattleRow) -> None:
    battle.state, battle.message, battle.ready = BattleState.CREATED, None, None


def write_outcome(row: AnswerRow, outcome: AnswerOutcome) -> None:
    """Write how an answer ended."""
    for name in (
        "text",
        "status",
        "reasoning",
        "error_class",
        "error_detail",
        "finish_reason",
        "first_token_s",
        "duration_s",
        "tokens_in",
        "tokens_out",
        "request_id",
    ):
        setattr(row, name, getattr(outcome, name))
    if (price := outcome.price) is not None:
        row.price_input, row.price_output, row.price_date = price.input, price.output, price.date
        if outcome.tokens_in is not None and outcome.tokens_out is not None:
            row.cost = price.cost(outcome.tokens_in, outcome.tokens_out)
