"""How a battle of a served arena ends on what endpoints send: in the record, for its voter."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlmodel import select

from arena.domain.battle import AnswerStatus
from arena.domain.vote import FailureClass
from arena.store.store import Store
from arena.store.tables import AnswerRow
from tests.command import Command
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.judge.test_thoughts import CUT, MARKED, PLAIN
from tests.provider_replies import REPLIES, SHAPES, TEXT, THOUGHT
from tests.serving import Served, Visitor, served_by

ONE, TWO = "one", "two"


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with faulty_server({ONE: Behaviour(), TWO: Behaviour()}) as running:
        yield running


@pytest.fixture(scope="module")
def arena(server: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("arena")
    with served_by(server, folder, battles_per_address_hour=10_000) as served:
        yield served


def battle(
    arena: Served, server: FaultyServer, behaviour: Behaviour
) -> tuple[Visitor, str, list[AnswerRow]]:
    """Have both models answer so; gives the visitor, the battle and its answers as stored."""
    server.behaviours[ONE] = server.behaviours[TWO] = behaviour
    visitor = arena.visitor()
    battle_id = visitor.open()
    visitor.follow(battle_id)
    with closing(Store(arena.database)) as store, store.reading() as session:
        answers = session.exec(select(AnswerRow).order_by(AnswerRow.id.desc()).limit(2)).all()  # type: ignore[union-attr]
        session.expunge_all()
    return visitor, battle_id, [*answers]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", REPLIES)
def test_the_record_of_a_battle_says_how_its_answers_ended(
    arena: Served, server: FaultyServer, name: str
) -> None:
    reply = REPLIES[name]
    ends_so(arena, server, Behaviour(stream=reply.stream()), reply.end, reply.text)


def ends_so(
    arena: Served, server: FaultyServer, behaviour: Behaviour, end: FailureClass | None, text: str
) -> list[AnswerRow]:
    """Check that both answers are this text and take a vote, or fail by a class."""
    visitor, battle_id, answers = battle(arena, server, behaviour)
    vote = visitor.vote(battle_id, "model_a")
    visitor.__exit__()
    if end is None:
        assert [(one.status, one.text) for one in answers] == [(AnswerStatus.COMPLETE, text)] * 2
    else:
        assert AnswerStatus.COMPLETE not in [one.status for one in answers]
        assert end in [one.error_class for one in answers]
    assert vote.status_code == (200 if end is None else 409)
    return answers


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream_in_an_unusual_shape_is_read_or_fails_by_its_class(
    arena: Served, server: FaultyServer, shape: str
) -> None:
    _, stream, end = SHAPES[shape]
    answers = ends_so(arena, server, Behaviour(stream=stream, write_bytes=50), end, TEXT)
    thought = THOUGHT if shape.startswith("reasoning") else ""
    assert end or {one.reasoning for one in answers} == {thought}


SECRET = "I am "


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", [text for _, text, _ in MARKED])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_no_reasoning_reaches_a_voter_or_an_export(
    arena: Served, server: FaultyServer, command: Command, tmp_path: Path, text: str, size: int
) -> None:
    visitor, battle_id, answers = battle(arena, server, Behaviour(text=text, chunk_size=size))
    if answers[0].status is AnswerStatus.FAILED:  # thoughts without an opening mark, in pieces
        assert not text.startswith(("<", "[", "◁", "analysis", "Here"))
        visitor, battle_id, answers = battle(arena, server, Behaviour(text=text, chunk_size=size))
    assert [(one.status, one.text) for one in answers] == [(AnswerStatus.COMPLETE, "Four.")] * 2
    assert all(SECRET in one.reasoning for one in answers)
    before = visitor.look(battle_id)
    assert "Four." in json.dumps(before)
    assert visitor.vote(battle_id, "model_a").status_code == 200
    visitor.look(battle_id)
    assert not [body for body in visitor.received if SECRET in body]
    visitor.__exit__()
    if size == 7:
        command("export", "battles", "--to", "b.jsonl", "--database", arena.database)
        exported = (tmp_path / "b.jsonl").read_text()
        assert "Four." in exported
        assert SECRET not in exported


@pytest.mark.parametrize("text", [text for text, answer in CUT if not answer])
def test_reasoning_that_is_cut_is_an_empty_answer(
    arena: Served, server: FaultyServer, text: str
) -> None:
    reply = Behaviour(text=text, finish_reason="length", chunk_size=5)
    visitor, _, answers = battle(arena, server, reply)
    visitor.__exit__()
    assert AnswerStatus.COMPLETE not in [one.status for one in answers]
    assert FailureClass.EMPTY in [one.error_class for one in answers]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", [text for text in PLAIN if text.strip()])
def test_an_answer_that_writes_of_marks_reaches_its_reader(
    arena: Served, server: FaultyServer, text: str
) -> None:
    visitor, _, answers = battle(arena, server, Behaviour(text=text, chunk_size=3))
    visitor.__exit__()
    assert [one.text for one in answers] == [text] * 2
