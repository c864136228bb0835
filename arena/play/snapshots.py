"""From a running or stored battle to what its owner may see, and to what is logged."""

from dataclasses import replace

from arena.domain.answer import Finished
from arena.domain.battle import (
    AnswerStatus,
    BattleState,
    Mode,
    ShownAnswer,
    ShownTurn,
    Side,
    Snapshot,
)
from arena.domain.model import Model
from arena.domain.vote import Choice, Receipt, Reveal, RevealedModel
from arena.play import words
from arena.play.live import LiveAnswer, LiveBattle
from arena.store.records import AnswerOutcome, StoredAnswer, StoredBattle, StoredTurn
from judge.case import Message


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
    said = [
        message
        for turn in earlier
        for message in (
            Message("user", turn.prompt),
            Message("assistant", _side(turn, side).text),
        )
    ]
    return (*said, Message("user", last.prompt))


def with_new_attempt(snapshot: Snapshot) -> Snapshot:
    """Show a battle whose latest turn is asked for anew on one side."""
    *earlier, last = snapshot.turns
    return replace(snapshot, turns=(*earlier, replace(last, attempt=last.attempt + 1)))


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
    a, b = (ShownAnswer(live.shown(side), AnswerStatus.STREAMING) for side in Side)
    state = BattleState.STREAMING if a.text or b.text else BattleState.CREATED
    return replace(begun, state=state, turns=(*begun.turns[:-1], _with(begun, a, b)))


def lost_snapshot(begun: Snapshot) -> Snapshot:
    """Show a battle whose end could not be written: it is not one to vote on."""
    nothing = ShownAnswer("", AnswerStatus.INTERRUPTED)
    turns = (*begun.turns[:-1], _with(begun, nothing, nothing))
    return replace(begun, state=BattleState.FAILED, turns=turns, message=words.NOT_SAVED)


def stored_snapshot(stored: StoredBattle) -> Snapshot:
    """Show a battle as the log has it."""
    voted = receipt(stored, stored.choice) if stored.choice else None
    continued = _reveal(stored) if stored.mode is Mode.CONTINUED else None
    return Snapshot(
        battle_id=stored.public_id,
        state=stored.state,
        created=stored.created,
        turns=tuple(_shown_turn(turn) for turn in stored.turns),
        message=stored.message,
        receipt=voted,
        models=voted.reveal if voted else continued,
    )


def receipt(stored: StoredBattle, choice: Choice) -> Receipt:
    """Reveal the models of a battle whose vote is committed; a skip reveals nothing."""
    return Receipt(choice, None if choice is Choice.SKIP else _reveal(stored))


def _reveal(stored: StoredBattle) -> Reveal:
    last = stored.turns[-1]
    return Reveal(_revealed(last.a), _revealed(last.b))


def _with(begun: Snapshot, a: ShownAnswer, b: ShownAnswer) -> ShownTurn:
    last = begun.turns[-1]
    return ShownTurn(last.turn, last.prompt, a, b, last.attempt)


def _shown_turn(turn: StoredTurn) -> ShownTurn:
    attempt = turn.a.attempt + turn.b.attempt - 1
    return ShownTurn(turn.turn, turn.prompt, _shown(turn.a), _shown(turn.b), attempt)


def _shown(answer: StoredAnswer) -> ShownAnswer:
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
    )
