from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.api.battles import Event, Position, events_since, is_behind
from arena.domain.battle import AnswerStatus, BattleState, ShownAnswer, ShownTurn, Side, Snapshot
from arena.ui import chat

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def snapshot(state: BattleState, a: str, b: str, message: str | None = None) -> Snapshot:
    status = AnswerStatus.STREAMING if state.running else AnswerStatus.COMPLETE
    turn = ShownTurn(1, "Why?", ShownAnswer(a, status), ShownAnswer(b, status))
    return Snapshot("id", state, NOW, (turn,), message)


def text(events: Sequence[Event], side: Side) -> str:
    return "".join(
        str(e.data["text"]) for e in events if (e.name, e.data.get("side")) == ("delta", side)
    )


@given(st.text(), st.text(), st.data())
def test_a_reader_who_comes_back_anywhere_gets_exactly_the_rest(
    a: str, b: str, data: st.DataObject
) -> None:
    half = snapshot(
        BattleState.STREAMING,
        a[: data.draw(st.integers(0, len(a)))],
        b[: data.draw(st.integers(0, len(b)))],
    )
    whole = snapshot(BattleState.READY, a, b)
    events = list(events_since(half, Position()))
    position = events[-1].position if events else Position()
    events += list(events_since(whole, position))
    cut = data.draw(st.integers(0, len(events)))
    reached = Position.parse(str(events[cut - 1].position)) if cut else Position()
    rest = list(events_since(whole, reached))
    assert text(events[:cut], Side.A) + text(rest, Side.A) == a
    assert text(events[:cut], Side.B) + text(rest, Side.B) == b
    closing = [e[:2] for e in (*events[:cut], *rest) if e.name != "delta"]
    done = [("done", {"side": side, "status": "complete"}) for side in "ab"]
    assert closing == [*done, ("ready", {})]


@pytest.mark.parametrize("state", [BattleState.READY, BattleState.VOTED, BattleState.SKIPPED])
def test_the_end_says_which_answers_were_stopped(state: BattleState) -> None:
    whole = snapshot(state, "yes", "no")
    (turn,) = whole.turns
    stopped = replace(turn, b=replace(turn.b, status=AnswerStatus.STOPPED))
    ended = replace(whole, turns=(stopped,))
    *_, a, b, ready = events_since(ended, Position())
    assert (a.data["status"], b.data["status"], ready.name) == ("complete", "stopped", "ready")
    assert chat._note(ended) == "Stopped. You can vote on what you see."


def test_that_the_rest_may_be_shown_is_said_once_and_before_the_end() -> None:
    half = replace(snapshot(BattleState.STREAMING, "ye", "no"), rest_offered=True)
    *_, offer = events_since(half, Position())
    assert offer[:2] == ("rest", {})
    assert list(events_since(half, Position.parse(str(offer.position)))) == []
    end = events_since(snapshot(BattleState.READY, "yes", "no"), offer.position)
    assert [event.name for event in end] == ["delta", "done", "done", "ready"]


def test_a_reader_at_the_end_lacks_nothing() -> None:
    whole = snapshot(BattleState.VOTED, "yes", "no")
    assert not is_behind(whole, list(events_since(whole, Position()))[-1].position)
    assert is_behind(whole, Position())


def test_a_reader_of_a_running_battle_is_always_behind() -> None:
    running = snapshot(BattleState.STREAMING, "yes", "no")
    assert is_behind(running, list(events_since(running, Position()))[-1].position)


def test_a_failed_battle_names_the_failed_side_and_no_cause() -> None:
    failed = snapshot(BattleState.FAILED, "", "some", "Nothing was counted.")
    turn = replace(failed.turns[0], a=ShownAnswer("", AnswerStatus.FAILED))
    *_, last = events_since(replace(failed, turns=(turn,)), Position())
    assert last[:2] == ("failed", {"side": "a", "message": "Nothing was counted."})


@given(st.text())
def test_any_text_can_stand_where_an_event_id_is_expected(text: str) -> None:
    assert isinstance(Position.parse(text), Position)


def test_an_id_with_a_number_that_no_answer_reaches_is_none() -> None:
    assert Position.parse("1.1.999999999.0.0").a == 999_999_999
    assert Position.parse("1.1.1000000000.0.0") == Position.parse("1.1.x.0.0") == Position()
