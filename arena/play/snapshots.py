"""From a running or stored battle to what its owner may see, and to what is logged."""

from datetime import datetime

from arena.domain.answer import Finished
from arena.domain.battle import (
    AnswerStatus,
    BattleState,
    ShownAnswer,
    ShownTurn,
    Side,
    Snapshot,
)
from arena.domain.vote import Choice, Receipt, Reveal, RevealedModel
from arena.play import words
from arena.play.live import LiveBattle
from arena.store.records import AnswerOutcome, StoredAnswer, StoredBattle, StoredTurn


def answer_outcome(live: LiveBattle, side: Side, state: BattleState) -> AnswerOutcome:
    """Say how one side ended, for the log: what the reader saw decides its status."""
    answer = live.answers[side]
    status = _status(live, side, state)
    finished = answer.finished or Finished()
    failure = answer.failure
    return AnswerOutcome(
        text=live.shown(side) if status is AnswerStatus.STOPPED else answer.text,
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
    )


def _status(live: LiveBattle, side: Side, state: BattleState) -> AnswerStatus:
    if live.answers[side].failure:
        return AnswerStatus.FAILED
    if live.shown_whole(side):
        return AnswerStatus.COMPLETE
    interrupted = state is BattleState.INTERRUPTED
    return AnswerStatus.INTERRUPTED if interrupted else AnswerStatus.STOPPED


def running_snapshot(battle_id: str, created: datetime, prompt: str, live: LiveBattle) -> Snapshot:
    """Show what a running battle has released: no side is called complete before the end."""
    a, b = (ShownAnswer(live.shown(side), AnswerStatus.STREAMING) for side in Side)
    state = BattleState.STREAMING if a.text or b.text else BattleState.CREATED
    return Snapshot(battle_id, state, created, (ShownTurn(1, prompt, a, b),))


def lost_snapshot(battle_id: str, created: datetime, prompt: str) -> Snapshot:
    """Show a battle whose end could not be written: it is not one to vote on."""
    nothing = ShownAnswer("", AnswerStatus.INTERRUPTED)
    turn = ShownTurn(1, prompt, nothing, nothing)
    return Snapshot(battle_id, BattleState.FAILED, created, (turn,), message=words.NOT_SAVED)


def stored_snapshot(stored: StoredBattle) -> Snapshot:
    """Show a battle as the log has it."""
    return Snapshot(
        battle_id=stored.public_id,
        state=stored.state,
        created=stored.created,
        turns=tuple(_shown_turn(turn) for turn in stored.turns),
        message=stored.message,
        receipt=receipt(stored, stored.choice) if stored.choice else None,
    )


def _shown_turn(turn: StoredTurn) -> ShownTurn:
    return ShownTurn(turn.turn, turn.prompt, _shown(turn.a), _shown(turn.b))


def _shown(answer: StoredAnswer) -> ShownAnswer:
    """Show what was an answer: a failed or unfinished one is kept, but is none."""
    seen = answer.status in (AnswerStatus.COMPLETE, AnswerStatus.STOPPED)
    return ShownAnswer(answer.text if seen else "", answer.status)


def receipt(stored: StoredBattle, choice: Choice) -> Receipt:
    """Reveal the models of a battle whose vote is committed; a skip reveals nothing."""
    if choice is Choice.SKIP:
        return Receipt(choice, None)
    last = stored.turns[-1]
    return Receipt(choice, Reveal(_revealed(last.a), _revealed(last.b)))


def _revealed(answer: StoredAnswer) -> RevealedModel:
    return RevealedModel(
        id=answer.model_id,
        name=answer.model_name,
        latency_s=answer.first_token_s,
        tokens=answer.tokens_out,
        cost=answer.cost,
    )
