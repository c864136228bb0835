"""Every way in which an endpoint fails, as a visitor of the real arena meets it."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlmodel import col, select

from arena import parts
from arena.domain.vote import FailureClass
from arena.play.matchmaking import TOO_LONG, Rules
from arena.store.store import Store
from arena.store.tables import AnswerRow, BattleRow, VoteRow
from tests.faulty_server import Behaviour, Fault, FaultyServer, faulty_server
from tests.process import until
from tests.serving import Served, StreamEvent, Visitor, served_by, side_text, write_roster

NAMES = ("zanzibar", "quagmire", "xylophone", "ottoman", "kestrel")
PROVIDER = "vermilion"
WELL = Behaviour(text="All is well. " * 20)
LIMIT = 2000
BUDGETS = {"max_response_bytes": 200_000, "max_line_bytes": 10_000, "max_reasoning_chars": 20_000}
WORDS = {
    side: f"Model {side.upper()} stopped answering. Nothing was counted. "
    "Try this prompt again, or start a new battle."
    for side in ("a", "b")
}


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, what the log calls it, and how often a model that has it is asked.

    Attributes
    ----------
    detail : str
        Part of what the log tells the operator.
    """

    name: str
    behaviour: Behaviour
    error_class: str
    asked: int
    detail: str = ""

    def __str__(self) -> str:
        return self.name


def refusal(status: int, **more: str) -> Behaviour:
    error = {"message": f"{PROVIDER} says no", **more}
    headers = {"x-provider": PROVIDER, "x-request-id": PROVIDER}
    return Behaviour(status=status, error=error, headers=headers)


def asked_to_wait(seconds: int) -> Behaviour:
    return replace(refusal(429), headers={"Retry-After": str(seconds), "x-provider": PROVIDER})


def breaking(fault: Fault, after: int = 0, **more: str) -> Behaviour:
    """Write slowly enough for what comes before the fault to be seen."""
    error = {"message": f"{PROVIDER} broke", **more}
    text = "Seen so far. " * 30
    return Behaviour(text=text, delay_s=0.04, fault=fault, fault_after=after, error=error)


def redirect() -> Behaviour:
    return replace(refusal(302), headers={"Location": f"https://{PROVIDER}.example"})


def endless(fault: Fault) -> Behaviour:
    return Behaviour(fault=fault, chunk_size=3000)


def thinking(fault: Fault) -> Behaviour:
    return replace(breaking(fault), reasoning=f"{PROVIDER} thoughts ")


HEADERS = Behaviour(headers={"X-Padding": PROVIDER * 100_000})
UNSEEN = [
    Case("wrong key", refusal(401), "auth", 1, PROVIDER),
    Case("no credit", refusal(402), "no_credit", 1, PROVIDER),
    Case("no such model", refusal(404), "not_found", 1, PROVIDER),
    Case("bad request", refusal(400), "bad_request", 1, PROVIDER),
    Case("rate limit", refusal(429), "rate_limit", 3, PROVIDER),
    Case("rate limit for an hour", asked_to_wait(3600), "rate_limit", 1, PROVIDER),
    Case("overloaded", refusal(503), "overloaded", 3, PROVIDER),
    Case("error in the stream", breaking(Fault.ERROR), "overloaded", 3, PROVIDER),
    Case("no status", Behaviour(silent=True), "timeout", 1, "no answer within"),
    Case("no first token", Behaviour(first_token_s=60), "timeout", 1, "no answer within"),
    Case("dropped at once", breaking(Fault.DROP), "dropped", 3),
    Case("cut at once", breaking(Fault.CUT), "dropped", 3),
    Case("malformed at once", breaking(Fault.MALFORMED), "malformed", 1, "not JSON"),
    Case("prompt filtered", refusal(400, code="content_filter"), "content_filter", 1, PROVIDER),
    Case("filtered", Behaviour(text="", finish_reason="content_filter"), "content_filter", 1),
    Case("too long", refusal(400, code="context_length_exceeded"), "context_length", 1, PROVIDER),
    Case("empty", Behaviour(text=""), "empty", 1, "no visible text"),
    Case("silent after thinking", thinking(Fault.IDLE), "timeout", 1, "silent for"),
    Case("redirect", redirect(), "not_found", 1, "a redirect to"),
    Case("compressed", Behaviour(fault=Fault.ZIPPED), "malformed", 1, "compressed (gzip)"),
    Case("line without end", endless(Fault.LINE), "malformed", 1, "a line or event of more"),
    Case("thinking without end", endless(Fault.THINKING), "malformed", 1, "reasoning of more"),
    Case("comments without end", endless(Fault.COMMENTS), "malformed", 1, "a response of more"),
    Case("headers of a megabyte", HEADERS, "malformed", 1, "a head that cannot be read"),
    Case("dropped while thinking", thinking(Fault.DROP), "dropped", 1),
]
"""Faults before any visible text."""

MUSING = replace(breaking(Fault.THINKING, 160), chunk_size=1000)
FILTERED = Behaviour(text="Seen so far. " * 12, delay_s=0.04, finish_reason="content_filter")
SEEN = [
    Case("dropped", breaking(Fault.DROP, 160), "dropped", 1),
    Case("cut short", breaking(Fault.CUT, 160), "dropped", 1),
    Case("malformed", breaking(Fault.MALFORMED, 160), "malformed", 1, "not JSON"),
    Case("overloaded", breaking(Fault.ERROR, 160), "overloaded", 1, PROVIDER),
    Case("silent", breaking(Fault.IDLE, 160), "timeout", 1, "silent for 1.2 s"),
    Case("thinking without end", MUSING, "malformed", 1, "reasoning of more"),
    Case("filtered", FILTERED, "content_filter", 1),
]
"""Faults in the middle of what the visitor reads."""


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with faulty_server({}) as server:
        yield server


@pytest.fixture(scope="module")
def arena(server: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The arena of five models, as it is except its patience."""
    behave(server, WELL)
    with pytest.MonkeyPatch.context() as patch:
        quick = partial(Rules, retry_pauses_s=(0.01, 0.01), paused_for=timedelta(0))
        patch.setattr(parts, "Rules", quick)
        patch.setattr("arena.store.roster.FAILED_IN_A_ROW", 10_000)  # none is paused
        folder = tmp_path_factory.mktemp("faults")
        limits = {"first_token_timeout_s": 2.0, "idle_timeout_s": 1.2, "max_answer_chars": LIMIT}
        with served_by(server, folder, **limits | BUDGETS) as served:
            yield served


@pytest.fixture
def ada(arena: Served, server: FaultyServer) -> Iterator[Visitor]:
    """A visitor to an arena in which all is well, who is never told what nobody may tell."""
    behave(server, WELL)
    server.requests.clear()
    with arena.visitor() as visitor:
        yield visitor
        received = "".join(visitor.received).casefold()
    assert [word for word in (*NAMES, PROVIDER, server.url) if word in received] == []


@pytest.fixture(scope="module")
def store(arena: Served) -> Iterator[Store]:
    store = Store(arena.database)
    yield store
    store.close()


def behave(server: FaultyServer, behaviour: Behaviour, *names: str) -> None:
    """Let models answer so; without names, all of them."""
    server.behaviours.update(dict.fromkeys(names or NAMES, behaviour))


def asked(server: FaultyServer) -> Counter[str]:
    return Counter(seen.model for seen in server.requests)


def answers(store: Store, battle_id: str, turn: int = 1) -> list[AnswerRow]:
    """Rows of one turn, by side and attempt."""
    rows = (
        select(AnswerRow)
        .join(BattleRow, col(BattleRow.id) == col(AnswerRow.battle_id))
        .where(col(BattleRow.public_id) == battle_id, col(AnswerRow.turn) == turn)
        .order_by(col(AnswerRow.side), col(AnswerRow.attempt))
    )
    with store.reading() as session:
        return list(session.exec(rows))


def votes(store: Store, battle_id: str) -> int:
    rows = (
        select(VoteRow)
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .where(col(BattleRow.public_id) == battle_id)
    )
    with store.reading() as session:
        return len(session.exec(rows).all())


def failed_side(rows: list[AnswerRow], case: Case) -> str:
    """The side that ended the battle, once its row is what the case says."""
    latest = {row.side: row for row in rows}
    side, row = next((side, row) for side, row in latest.items() if row.status == "failed")
    assert row.error_class == case.error_class
    assert case.detail in (row.error_detail or "")
    return side


def words_of(case: Case, side: str) -> str:
    """What the visitor is told."""
    return str(TOO_LONG) if case.error_class == "context_length" else WORDS[side]


def is_shown_and_not_counted(
    ada: Visitor, store: Store, battle_id: str, side: str, words: str
) -> None:
    shown = ada.look(battle_id)
    assert (shown["state"], shown["message"]) == ("failed", words)
    assert shown["turns"][-1][side] == {"text": "", "status": "failed"}
    refused = ada.vote(battle_id, "model_a")
    assert (refused.status_code, refused.json()["title"]) == (409, "Not ready for a vote")
    assert refused.headers["content-type"] == "application/problem+json"
    assert votes(store, battle_id) == 0


def can_be_voted_on(visitor: Visitor, store: Store, battle_id: str) -> list[str]:
    """Names that the vote reveals, by side; not kept among what was told before it."""
    before = len(visitor.received)
    answer = visitor.vote(battle_id, "tie")
    del visitor.received[before:]
    assert answer.status_code == 200
    assert votes(store, battle_id) == 1
    return [answer.json()["models"][side]["id"] for side in ("a", "b")]


def test_every_class_of_failure_has_a_case() -> None:
    others = {"internal", "unreachable", "revealed"}  # ours, nobody's, and one of what was seen
    assert {case.error_class for case in UNSEEN} | others == set(FailureClass)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", UNSEEN, ids=str)
def test_a_fault_of_every_model_fails_the_battle_after_two_other_models(
    ada: Visitor, server: FaultyServer, store: Store, case: Case
) -> None:
    battle_id, events, rows, side = played_to_its_fault(ada, server, store, case)
    assert [h.event for h in events if h.event != "failed"] == []
    assert dict(events[0].data) == {"side": side, "message": words_of(case, side)}
    assert len(rows) == len({row.model_id for row in rows}) == 4, "two drawn, two in their place"
    assert {row.error_class for row in rows if row.status == "failed"} == {case.error_class}
    assert max(asked(server).values()) == case.asked
    is_shown_and_not_counted(ada, store, battle_id, side, words_of(case, side))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", UNSEEN, ids=str)
def test_a_fault_of_one_model_gives_its_side_to_another(
    ada: Visitor, server: FaultyServer, store: Store, case: Case
) -> None:
    behave(server, case.behaviour, "zanzibar")
    battle_id = play_until_asked(ada, server, "zanzibar")
    assert asked(server)["zanzibar"] == case.asked
    rows = answers(store, battle_id)
    (failed,) = [row for row in rows if row.status == "failed"]
    assert (failed.model_id, failed.error_class) == ("id-zanzibar", case.error_class)
    assert case.detail in (failed.error_detail or "")
    (instead,) = [row for row in rows if row.attempt == 2]
    assert (instead.side, instead.status) == (failed.side, "complete")
    others = [row for row in rows if row is not failed]
    assert {row.text for row in others} == {WELL.text}
    assert can_be_voted_on(ada, store, battle_id) == [row.model_id for row in others]


def played_to_its_fault(
    ada: Visitor, server: FaultyServer, store: Store, case: Case
) -> tuple[str, list[StreamEvent], list[AnswerRow], str]:
    """Let all models be at fault; gives the battle, its events, answers and failed side."""
    behave(server, case.behaviour)
    battle_id = ada.open()
    events = ada.follow(battle_id)
    rows = answers(store, battle_id)
    return battle_id, events, rows, failed_side(rows, case)


def play_until_asked(ada: Visitor, server: FaultyServer, name: str) -> str:
    """Play until a model has been drawn; every battle can be voted on."""
    played = (ada.play() for _ in range(60))
    return next(battle_id for battle_id in played if name in asked(server))


def test_two_models_at_fault_are_both_replaced(
    ada: Visitor, server: FaultyServer, store: Store
) -> None:
    behave(server, refusal(401), "zanzibar", "quagmire")
    played = (ada.play() for _ in range(60))
    battle_id = next(each for each in played if len(answers(store, each)) == 4)
    failed = {row.model_id for row in answers(store, battle_id) if row.status == "failed"}
    assert failed == {"id-zanzibar", "id-quagmire"}
    assert failed.isdisjoint(can_be_voted_on(ada, store, battle_id))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", SEEN, ids=str)
def test_a_fault_in_sight_fails_the_battle_and_no_other_model_takes_over(
    ada: Visitor, server: FaultyServer, store: Store, case: Case
) -> None:
    battle_id, events, rows, side = played_to_its_fault(ada, server, store, case)
    assert case.behaviour.text.startswith(side_text(events, side))
    assert side_text(events, side), "text was seen before the fault"
    assert (events[-1].event, events[-1].data["message"]) == ("failed", WORDS[side])
    assert [row.attempt for row in rows] == [1, 1]
    assert set(asked(server).values()) == {case.asked}
    headers = {"Last-Event-ID": events[-1].id}
    end = ada.get(f"/api/v1/battles/{battle_id}/events", headers=headers)
    assert (end.status_code, end.content) == (204, b"")
    is_shown_and_not_counted(ada, store, battle_id, side, words_of(case, side))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", [*SEEN, UNSEEN[0]], ids=str)
def test_a_fault_in_a_later_turn_is_mended_by_a_retry_of_the_same_model(
    ada: Visitor, server: FaultyServer, store: Store, case: Case
) -> None:
    battle_id = ada.play()
    models = {row.side: row.model_id for row in answers(store, battle_id)}
    broken = models["b"].removeprefix("id-")
    behave(server, case.behaviour, broken)
    ada.post(f"/api/v1/battles/{battle_id}/turns", json={"prompt": "And then?"})
    assert ada.follow(battle_id)[-1].event == "failed"
    assert failed_side(answers(store, battle_id, turn=2), case) == "b"
    assert asked(server)[broken] == 2
    is_shown_and_not_counted(ada, store, battle_id, "b", words_of(case, "b"))
    behave(server, WELL)
    assert ada.post(f"/api/v1/battles/{battle_id}/retry").status_code == 201
    assert ada.follow(battle_id)[-1].event == "ready"
    assert asked(server)[broken] == 3
    latest = {row.side: row for row in answers(store, battle_id, turn=2)}
    assert {row.text for row in latest.values()} == {WELL.text}
    assert (latest["b"].attempt, latest["b"].status) == (2, "complete")
    assert can_be_voted_on(ada, store, battle_id) == [models["a"], models["b"]]


def test_a_rate_limit_of_a_second_is_waited_for(
    ada: Visitor, server: FaultyServer, store: Store
) -> None:
    behave(server, asked_to_wait(1))
    battle_id = ada.open()
    until(lambda: len(server.requests) == 2)
    time.sleep(0.3)  # by now, one who does not wait has been refused three times
    behave(server, WELL)
    assert ada.follow(battle_id)[-1].event == "ready"
    rows = answers(store, battle_id)
    ends = [(row.attempt, row.status, row.error_class) for row in rows]
    assert ends == [(1, "complete", None)] * 2
    assert min(asked(server).values()) > 1
    assert can_be_voted_on(ada, store, battle_id) == [row.model_id for row in rows]


def test_an_endless_answer_is_cut_and_counts_as_complete(
    ada: Visitor, server: FaultyServer, store: Store
) -> None:
    behave(server, Behaviour(text=WELL.text, fault=Fault.ENDLESS))
    battle_id = ada.play()
    shown = ada.look(battle_id)["turns"][0]
    whole = (WELL.text * 10)[:LIMIT]
    assert shown["a"] == shown["b"] == {"text": whole, "status": "complete"}
    for row in answers(store, battle_id):
        assert (row.status, row.error_class) == ("complete", None)
        assert (row.finish_reason, row.text) == ("max_answer_chars", whole)
    assert set(asked(server).values()) == {1}
    assert len(can_be_voted_on(ada, store, battle_id)) == 2


@pytest.mark.parametrize("count", [2**31, 2**63, -(10**9)])
def test_a_count_that_cannot_be_is_unknown_and_hangs_no_battle(
    ada: Visitor, server: FaultyServer, store: Store, count: int
) -> None:
    behave(server, replace(WELL, usage=(count, count)))
    battle_id = ada.play()
    for row in answers(store, battle_id):
        assert (row.status, row.tokens_in, row.tokens_out) == ("complete", None, None)
    assert len(can_be_voted_on(ada, store, battle_id)) == 2


@pytest.mark.parametrize(
    ("text", "expected"), [("\ud83d\ude00", "😀"), ("so \ud83d", "so \ufffd")], ids=ascii
)
def test_an_emoji_cut_in_two_is_seen_and_logged_whole_and_half_of_one_readable(
    ada: Visitor, server: FaultyServer, store: Store, text: str, expected: str
) -> None:
    behave(server, Behaviour(text=text, reasoning=text, chunk_size=1, escaped=True))
    battle_id = ada.open()
    events = ada.follow(battle_id)
    assert [side_text(events, side) for side in ("a", "b")] == [expected] * 2
    assert {(row.text, row.reasoning) for row in answers(store, battle_id)} == {(expected,) * 2}
    assert len(can_be_voted_on(ada, store, battle_id)) == 2


def test_an_arena_whose_endpoints_are_gone_fails_its_battles(tmp_path: Path) -> None:
    with faulty_server({}) as gone:
        roster = write_roster(tmp_path / "gone.toml", gone, *NAMES[:2])
    case = Case("nobody listens", WELL, "unreachable", 0)
    with served_by(gone, tmp_path, roster=roster) as served, served.visitor() as ada:
        store = Store(served.database)
        battle_id = ada.open()
        assert ada.follow(battle_id)[-1].event == "failed"
        side = failed_side(answers(store, battle_id), case)
        is_shown_and_not_counted(ada, store, battle_id, side, words_of(case, side))
        store.close()
    received = "".join(ada.received).casefold()
    assert [word for word in (*NAMES, gone.url, "attempts") if word in received] == []
