"""Battles as they are logged, and as their owner may see them."""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from arena.domain.answer import Finished
from arena.domain.battle import (
    AnswerStatus,
    BattleState,
    Mode,
    ShownAnswer,
    ShownTurn,
    Side,
    Snapshot,
    current_state,
)
from arena.domain.ending import cut_of
from arena.domain.gold import is_gold
from arena.domain.model import Model
from arena.domain.vote import Receipt, Reveal, RevealedModel, Voter
from arena.errors import EXPIRED
from arena.play.live import LiveAnswer, LiveBattle
from arena.play.matchmaking import VERSION, Draw
from arena.play.pace import needs
from arena.play.rules import NOT_SAVED, Rules
from arena.store.records import (
    AnswerOutcome,
    NewAnswer,
    NewBattle,
    StoredAnswer,
    StoredBattle,
    StoredTurn,
)
from judge.case import Message
from rating import __version__


def blind_battle(
    voter: Voter,
    prompt: str,
    draw: Draw,
    rules: Rules,
    now: datetime,
    *,
    sampler: str,
    prompt_set: str | None,
    prompt_id: str,
) -> NewBattle:
    """Draft a blind battle between the two models of a draw; ``sampler`` says what drew them."""
    return NewBattle(
        public_id=uuid.uuid4().hex,
        owner=voter,
        mode=Mode.ANONYMOUS,
        prompt=prompt,
        a=new_answer(draw.a),
        b=new_answer(draw.b),
        side_seed=draw.side_seed,
        sampler=sampler,
        sampler_version=VERSION,
        pair_probability=draw.pair_probability,
        pacing=rules.pacing,
        prompt_set=prompt_set,
        prompt_id=prompt_id,
        created=now,
        app_version=__version__,
    )


def continued_battle(
    stored: StoredBattle,
    voter: Voter,
    prompt: str,
    models: Mapping[Side, Model],
    rules: Rules,
    now: datetime,
    *,
    prompt_id: str,
) -> NewBattle:
    """Draft a battle in which two revealed models go on: nothing was drawn for it."""
    return NewBattle(
        public_id=uuid.uuid4().hex,
        owner=voter,
        mode=Mode.CONTINUED,
        prompt=prompt,
        turn=stored.turns[-1].turn + 1,
        continues=stored.public_id,
        a=new_answer(models[Side.A]),
        b=new_answer(models[Side.B]),
        side_seed=0,
        sampler=Mode.CONTINUED,
        sampler_version=VERSION,
        pair_probability=1.0,
        pacing=rules.pacing,
        prompt_set=None,
        prompt_id=prompt_id,
        created=now,
        app_version=__version__,
    )


def new_answer(model: Model) -> NewAnswer:
    """Draft an answer of a model."""
    return NewAnswer(
        model_id=model.id,
        model_name=model.name,
        system_prompt_hash=hashlib.sha256(model.system_prompt.encode()).hexdigest()[:16],
        decoding=model.decoding,
    )


def live_answer(stored: StoredBattle, side: Side, model: Model) -> LiveAnswer:
    """Take up one side of the latest turn: to be asked for, or complete from before."""
    answer = _side(stored.turns[-1], side)
    live = LiveAnswer(model, conversation(stored, side), attempt=answer.attempt)
    if answer.status is AnswerStatus.COMPLETE:
        live.text, live.finished = answer.text, Finished(tokens_out=answer.tokens_out)
    return live


def conversation(stored: StoredBattle, side: Side) -> tuple[Message, ...]:
    """Give what a model is sent: every prompt, and its side's earlier answers between them."""
    *earlier, last = stored.turns
    messages = [
        message
        for turn in earlier
        for message in (
            Message("user", turn.prompt),
            Message("assistant", _side(turn, side).text),
        )
    ]
    return (*messages, Message("user", last.prompt))


def _with_last(
    snapshot: Snapshot, a: ShownAnswer, b: ShownAnswer, attempt: int | None = None, **changes: Any
) -> Snapshot:
    """Change what is shown of the latest turn, and of the battle."""
    *earlier, last = snapshot.turns
    turn = ShownTurn(last.turn, last.prompt, a, b, attempt or last.attempt)
    return replace(snapshot, turns=(*earlier, turn), **changes)


def _side(turn: StoredTurn, side: Side) -> StoredAnswer:
    return turn.a if side is Side.A else turn.b


def answer_outcome(live: LiveBattle, side: Side, state: BattleState) -> AnswerOutcome:
    """Say how one side ended, for the log: what the reader saw decides its status."""
    status = _status(live, side, state)
    answer = live.answers[side]
    text = live.shown(side) if status is AnswerStatus.STOPPED else answer.text
    return outcome_of(answer, status, text)


def outcome_of(answer: LiveAnswer, status: AnswerStatus, text: str) -> AnswerOutcome:
    """Say for the log what became of an answer."""
    finished = answer.finished or Finished()
    failure = answer.failure
    return AnswerOutcome(
        text=text,
        status=status,
        reasoning=answer.reasoning,
        error_class=failure.failure if failure else None,
        error_detail=failure.detail if failure else None,
        finish_reason=finished.finish_reason or None,
        first_token_s=answer.first_token_s,
        duration_s=answer.duration_s,
        tokens_in=finished.tokens_in,
        tokens_out=finished.tokens_out,
        price=answer.model.price,
        request_id=finished.request_id or None,
        needs=needs(answer.pieces) if answer.finished and answer.pieces else None,
    )


def _status(live: LiveBattle, side: Side, state: BattleState) -> AnswerStatus:
    if live.answers[side].failure:
        return AnswerStatus.FAILED
    if live.shown_whole(side):
        return AnswerStatus.COMPLETE
    interrupted = state is BattleState.INTERRUPTED
    return AnswerStatus.INTERRUPTED if interrupted else AnswerStatus.STOPPED


def running_snapshot(begun: Snapshot, live: LiveBattle) -> Snapshot:
    """Show what a running battle has released: no side is called complete before the end."""
    a, b = (live.shown(side) for side in Side)
    return released(begun, a, b, begun.turns[-1].attempt, rest=live.pacer.rest_offered)


def released(begun: Snapshot, a: str, b: str, attempt: int, *, rest: bool) -> Snapshot:
    """Show so much of both answers of a running battle."""
    one, other = (ShownAnswer(text, AnswerStatus.STREAMING) for text in (a, b))
    state = BattleState.STREAMING if a or b else BattleState.CREATED
    return _with_last(begun, one, other, attempt, state=state, rest_offered=rest)


def ended_snapshot(
    begun: Snapshot,
    outcomes: Mapping[Side, AnswerOutcome],
    state: BattleState,
    message: str | None,
) -> Snapshot:
    """Show a battle that has ended so, as reading it would, if its models stay unknown."""
    last = begun.turns[-1]
    before = {Side.A: last.a, Side.B: last.b}
    a, b = (
        _shown(outcomes[side]) if answer.status is AnswerStatus.STREAMING else answer
        for side, answer in before.items()
    )
    return _with_last(begun, a=a, b=b, state=state, message=message)


def lost_snapshot(begun: Snapshot) -> Snapshot:
    """Show a battle whose end could not be written: it is not one to vote on."""
    nothing = ShownAnswer("", AnswerStatus.INTERRUPTED)
    return _with_last(begun, nothing, nothing, state=BattleState.FAILED, message=NOT_SAVED)


def stored_snapshot(stored: StoredBattle, asked_since: datetime | None = None) -> Snapshot:
    """Show a battle as the log has it.

    Parameters
    ----------
    asked_since : datetime, optional
        See `arena.domain.battle.current_state`; without it no battle has expired.
    """
    voted, state = None, stored.state
    if asked_since is not None:
        state = current_state(state, stored.mode, stored.asked, asked_since)
    if stored.choice:
        gold = is_gold(stored.prompt_set)
        voted = Receipt.of(stored.choice, _reveal(stored), gold=gold, withheld=stored.withheld)
    continued = _reveal(stored) if stored.mode is Mode.CONTINUED else None
    return Snapshot(
        battle_id=stored.public_id,
        state=state,
        created=stored.created,
        turns=tuple(_shown_turn(turn, stored.repicks) for turn in stored.turns),
        message=EXPIRED if state is BattleState.EXPIRED else stored.message,
        receipt=voted,
        models=voted.reveal if voted else continued,
        remarks=stored.remarks,
    )


def _reveal(stored: StoredBattle) -> Reveal:
    last = stored.turns[-1]
    return Reveal(_revealed(last.a), _revealed(last.b))


def _shown_turn(turn: StoredTurn, repicks: int) -> ShownTurn:
    """Show a turn; that a model was replaced unseen, which is in the first turn, does not show."""
    attempt = turn.a.attempt + turn.b.attempt - 1 - (repicks if turn.turn == 1 else 0)
    return ShownTurn(turn.turn, turn.prompt, _shown(turn.a), _shown(turn.b), attempt)


def _shown(answer: StoredAnswer | AnswerOutcome) -> ShownAnswer:
    """Show what was an answer: a failed or unfinished one is kept, but is none."""
    seen = answer.status in (AnswerStatus.COMPLETE, AnswerStatus.STOPPED)
    return ShownAnswer(answer.text if seen else "", answer.status)


def _revealed(answer: StoredAnswer) -> RevealedModel:
    return RevealedModel(
        id=answer.model_id,
        name=answer.model_name,
        latency_s=answer.first_token_s,
        tokens=answer.tokens_out,
        cost=answer.cost,
        cut=cut_of(answer.finish_reason),
    )
