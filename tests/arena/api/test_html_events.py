"""What a page gets of a battle: blocks as HTML, in the end those of the whole answers."""

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.api import battles
from arena.api.battles import Event, HtmlReader, Position, Renderings
from arena.domain.battle import AnswerStatus, BattleState, ShownAnswer, ShownTurn, Snapshot
from judge.render.text import render
from tests.judge.render.test_stream import TEXTS

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def snapshot(a: str, b: str, *, ended: bool, attempt: int = 1) -> Snapshot:
    status = AnswerStatus.COMPLETE if ended else AnswerStatus.STREAMING
    turn = ShownTurn(1, "Why?", ShownAnswer(a, status), ShownAnswer(b, status), attempt)
    state = BattleState.READY if ended else BattleState.STREAMING
    return Snapshot("id", state, NOW, (turn,), None)


async def shown_as(shown: Snapshot) -> str:
    return shown.state


class ReadersPage:
    """A page that does with events what the script does."""

    def __init__(self, renderings: Renderings) -> None:
        self.renderings = renderings
        self.reached = Position()
        self.blocks: dict[str, dict[int, str]] = {"a": {}, "b": {}}
        self.tails = {"a": "", "b": ""}
        self.names: list[str] = []
        self.connect()

    def connect(self) -> None:
        self.reader = HtmlReader(self.renderings.of("id"), shown_as)

    async def look(self, shown: Snapshot) -> None:
        for event in await self.reader.events(shown, self.reached):
            self.take(event)

    def take(self, event: Event) -> None:
        data: Any = event.data
        self.names.append(event.name)
        self.reached = event.position
        if event.name == "battle":
            self.fresh = {"a", "b"}
        if event.name == "delta":
            self.tails[data["side"]] += data["text"]
        if event.name == "blocks":
            before = {} if data["side"] in self.fresh else self.blocks[data["side"]]
            self.blocks[data["side"]] = before | dict(data["blocks"])
            self.fresh -= {data["side"]}
            self.tails[data["side"]] = data["tail"]

    def html(self, side: str) -> str:
        return "".join(html for _, html in sorted(self.blocks[side].items()))


async def test_that_the_rest_may_be_shown_is_said_once() -> None:
    page = ReadersPage(Renderings())
    for a in ("One", "One two", "One two three"):
        await page.look(replace(snapshot(a, "Yes.", ended=False), rest_offered=True))
    await page.look(snapshot("One two three.", "Yes.", ended=True))
    assert page.names.count("rest") == 1
    assert page.names[-3:] == ["done", "done", "state"]


def cuts(text: str, rng: random.Random) -> list[str]:
    places = sorted(rng.randint(0, len(text)) for _ in range(6))
    return [text[:place] for place in places]


@given(TEXTS, TEXTS, st.randoms(use_true_random=False))
def test_pages_that_come_late_or_come_back_end_with_the_whole(
    a: str, b: str, rng: random.Random
) -> None:
    async def read() -> list[ReadersPage]:
        renderings = Renderings()
        pages = [ReadersPage(renderings)]
        for begun_a, begun_b in zip(cuts(a, rng), cuts(b, rng), strict=True):
            if rng.random() < 0.3:
                pages.append(ReadersPage(renderings))
            for page in pages:
                if rng.random() < 0.3:
                    page.connect()
                await page.look(snapshot(begun_a, begun_b, ended=False))
        for page in pages:
            await page.look(snapshot(a, b, ended=True))
        return pages

    for page in asyncio.run(read()):
        assert (page.html("a"), page.html("b")) == (render(a), render(b))
        assert page.tails == {"a": "", "b": ""}
        assert page.names[-3:] == ["done", "done", "state"]


async def test_an_answer_that_broke_off_leaves_the_page() -> None:
    page = ReadersPage(Renderings())
    await page.look(snapshot("One.\n\nTwo", "Yes.\n\nNo", ended=False))
    ended = snapshot("", "Yes.\n\nNo", ended=True)
    turn = replace(ended.turns[0], a=ShownAnswer("", AnswerStatus.FAILED))
    await page.look(replace(ended, state=BattleState.FAILED, turns=(turn,)))
    assert (page.html("a"), page.tails["a"], page.html("b")) == ("", "", render("Yes.\n\nNo"))


async def test_another_attempt_begins_again() -> None:
    page = ReadersPage(Renderings())
    await page.look(snapshot("One.\n\nTwo", "x", ended=True))
    await page.look(snapshot("Three", "y", ended=True, attempt=2))
    assert (page.html("a"), page.html("b")) == (render("Three"), render("y"))
    assert page.names.count("battle") == 2


async def test_what_two_pages_read_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Counted(battles.Answer):
        def __init__(self) -> None:
            made.append(self)
            super().__init__()

    monkeypatch.setattr(battles, "Answer", Counted)

    renderings = Renderings()
    for page in [ReadersPage(renderings), ReadersPage(renderings)]:
        await page.look(snapshot("One", "Two", ended=True))
    assert len(made) == 2, "one for each side"


def test_long_answers_are_rendered_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    async def beside(act: Any, *given: Any) -> None:
        threads.append(act)
        act(*given)

    monkeypatch.setattr(asyncio, "to_thread", beside)

    async def read(text: str) -> ReadersPage:
        page = ReadersPage(Renderings())
        await page.look(snapshot(text, "x", ended=True))
        return page

    asyncio.run(read("short"))
    assert threads == []
    assert asyncio.run(read("long " * 2000)).html("a") == render("long " * 2000)
    assert len(threads) == 1


async def test_a_reader_who_left_leaves_nothing_behind() -> None:
    renderings = Renderings()
    page = ReadersPage(renderings)
    await page.look(snapshot("One", "Two", ended=True))
    assert len(renderings._read) == 1
    del page
    assert len(renderings._read) == 0
