"""A model whose account has no credit is not drawn for a while, and an admin is told."""

import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from arena.domain.battle import BattleState
from arena.play.battles import Battles
from tests.arena.play.test_live import FAST as QUICK
from tests.arena.play.test_live import end_of, models_of, playing
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.provider_errors import PASSING, SPENT, ProviderError
from tests.sqlite import new_sqlite

FAST = replace(QUICK, checkpoint_s=60)


def saying(error: ProviderError) -> Behaviour:
    return Behaviour(status=error.status, stream=error.text)


class Clock:
    """What time it is, as the test says."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 24, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server({name: Behaviour() for name in ("well", "fine", "spent")}) as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def battles(server: FaultyServer, tmp_path: Path, clock: Clock) -> AsyncIterator[Battles]:
    models = models_of(server, server.behaviours)
    async with playing(new_sqlite(tmp_path), models, FAST, now=clock) as battles:
        yield battles


async def play(battles: Battles, times: int) -> list[BattleState]:
    return [(await end_of(battles)).state for _ in range(times)]


def asked(server: FaultyServer, name: str) -> int:
    return sum(seen.model == name for seen in server.requests)


async def play_until_asked(battles: Battles, server: FaultyServer, name: str) -> None:
    before = asked(server, name)
    for _ in range(60):
        await play(battles, 1)
        if asked(server, name) > before:
            return
    pytest.fail(f"{name} was never drawn")


async def test_a_model_without_credit_is_asked_once_and_not_drawn_for_ten_minutes(
    server: FaultyServer, battles: Battles, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviours["spent"] = saying(SPENT["openai"])
    with caplog.at_level(logging.ERROR):
        await play_until_asked(battles, server, "spent")
    (record,) = caplog.records
    assert "A model is not drawn for 10 minutes" in record.getMessage()
    assert "spent" not in record.getMessage(), "the log does not say who was in a battle"
    assert await play(battles, 20) == [BattleState.READY] * 20
    assert asked(server, "spent") == 1, "it was not asked again, and took no retry"
    assert battles.paused() == {"spent": clock.now + timedelta(minutes=10)}
    clock.now += timedelta(minutes=10)
    assert battles.paused() == {}
    await play_until_asked(battles, server, "spent")
    assert asked(server, "spent") == 2


async def test_a_model_that_answers_a_test_is_drawn_again(
    server: FaultyServer, battles: Battles
) -> None:
    server.behaviours["spent"] = saying(SPENT["anthropic"])
    await play_until_asked(battles, server, "spent")
    server.behaviours["spent"] = Behaviour()
    battles.resume("spent")
    assert battles.paused() == {}
    await play_until_asked(battles, server, "spent")


async def test_a_limit_that_passes_pauses_nobody(server: FaultyServer, battles: Battles) -> None:
    server.behaviours["spent"] = saying(PASSING["gemini"])
    await play_until_asked(battles, server, "spent")
    await play_until_asked(battles, server, "spent")


async def test_where_too_few_others_are_left_all_are_drawn(
    server: FaultyServer, battles: Battles
) -> None:
    for name in server.behaviours:
        server.behaviours[name] = saying(SPENT["deepseek"])
    await play(battles, 2)
    for name in server.behaviours:
        server.behaviours[name] = Behaviour()
    assert await play(battles, 3) == [BattleState.READY] * 3
