"""Releases of topics: when they are made, what they count, and what the page shows of them."""

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from subprocess import Popen, run
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text
from sqlmodel import Session

from arena.domain.battle import BattleState
from arena.domain.vote import DEFAULT, Choice, Voter, VoterKind
from arena.play import topics as releasing
from arena.play.topics import WEEK, is_due, keep_releasing, release_topics
from arena.store import battles, erasing, log, voting
from arena.store.store import Store
from judge.labels.topics import LEAST
from rating.errors import DataError
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, exclude, new_battle
from tests.judge.labels.planted import SUBJECTS, planted
from tests.serving import quick_arena
from tests.sqlite import new_sqlite


def vote(
    session: Session, number: int, person: str, prompt: str, kind: VoterKind = VoterKind.ANONYMOUS
) -> None:
    voter, battle = Voter(person, kind), f"b{number}"
    battles.open_battle(session, replace(new_battle(battle, voter), prompt=prompt))
    both = {A1: complete(), B1: complete()}
    battles.close_answers(session, battle, BattleState.READY, both, message=None, now=NOW)
    choice = Choice.SKIP if prompt == "skip" else Choice.A
    voting.cast(session, ballot(battle, choice, voter=person))


def fill(store: Store, n: int, people: int, seed: int = 1, start: int = 0) -> None:
    rng = np.random.default_rng(seed)
    prompts, _ = planted(n, rng)
    with store.writing() as session:
        for number, prompt in enumerate(prompts, start):
            vote(session, number, f"person-{number % people}", prompt)


@contextmanager
def opened(url: str) -> Iterator[Store]:
    with closing(Store(url)) as store:
        store.hold_lease()
        store.register(MODELS, NOW)
        yield store


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with opened(database_url) as store:
        yield store


def test_open_topics_are_released_once_a_week(store: Store) -> None:
    assert not is_due(store, NOW, private=False)
    fill(store, 120, 12)
    assert is_due(store, NOW, private=False)
    release_topics(store, NOW, private=False)
    released = store.read(log.newest_topics, private=False)
    assert released is not None
    assert (released.number, released.created, released.release.prompts) == (1, NOW, 120)
    known = " ".join([*SUBJECTS.values(), "today beginner quick friend evening plan"]).split()
    assert {word for topic in released.release.topics for word in topic.words} <= {*known}
    assert not is_due(store, NOW + timedelta(days=7, seconds=-1), private=False)
    assert is_due(store, NOW + timedelta(days=7), private=False)
    assert store.read(log.newest_topics, private=True) is None


@pytest.mark.slow
def test_private_topics_go_on_from_what_was_stored(store: Store) -> None:
    fill(store, 560, 60)
    release_topics(store, NOW, private=True)
    first = store.read(log.state)
    assert first is not None
    assert first.until == store.read(log.asked, DEFAULT)[-1].key
    fill(store, 30, 3, seed=2, start=1000)
    release_topics(store, NOW + WEEK, private=True)
    second = store.read(log.state)
    assert second is not None
    assert second.topics == first.topics
    three = {one.key for one in store.read(log.asked, DEFAULT, first.until)}
    assert len(three) == 30
    # At most ten of each count, and wait as long as three people are not ten.
    released = store.read(log.newest_topics, private=True)
    before, after = (sum(one.batches.counts.values()) for one in (first, second))
    assert three & second.batches.waiting or after > before
    assert released is not None
    assert released.number == 2
    assert released.release.prompts % 5 == 0


def test_private_topics_need_people(store: Store) -> None:
    fill(store, 60, 6)
    with pytest.raises(DataError, match="500 prompts by 50 people, got 60 by 6"):
        release_topics(store, NOW, private=True)
    assert store.read(log.state) is None


def test_only_votes_that_count_and_whose_words_are_there_are_asked_about(store: Store) -> None:
    with store.writing() as session:
        for number, prompt in enumerate(("bread", "skip", "birds", "space")):
            vote(session, number, f"p{number}", prompt)
        vote(session, 4, "robot", "chess", VoterKind.SIMULATED)
    store.open_battle(replace(new_battle("open"), prompt="never voted on"))
    exclude(store, "b2", DEFAULT, "a ring")
    asked = store.read(log.asked, DEFAULT)
    assert [(one.person, one.text) for one in asked] == [("p0", "bread"), ("p3", "space")]
    assert [one.text for one in store.read(log.asked, DEFAULT, asked[0].key)] == ["space"]
    also = {asked[0].key}
    assert len(store.read(log.asked, DEFAULT, asked[-1].key, also)) == 1
    with store.writing() as session:
        session.connection().execute(text("UPDATE turn SET prompt = '', nonce = NULL"))
    assert store.read(log.asked, DEFAULT) == []


def test_devices_of_one_person_are_one(store: Store) -> None:
    with store.writing() as session:
        for number in range(3):
            vote(session, number, f"device{number}", "bread")
        session.connection().execute(
            text("UPDATE voter SET person = 'device0' WHERE id <> 'device0'")
        )
    assert {one.person for one in store.read(log.asked, DEFAULT)} == {"device0"}


def test_two_who_release_at_once_leave_one_release(store: Store) -> None:
    fill(store, 60, 6)
    release_topics(store, NOW, private=False)
    first = store.read(log.newest_topics, private=False)
    assert first is not None
    with store.writing() as session:
        other = replace(first.release, prompts=1)
        log.add(session, other, None, first.number, NOW)
    assert store.read(log.newest_topics, private=False) == first
    store.write(log.add, replace(other, private=True), None, 1, NOW)
    later = replace(new_battle("later", Voter("person-0")), created=NOW + WEEK)
    store.write(battles.open_battle, later)
    store.write(erasing.erase_words, [1, 61], (), NOW)
    assert store.read(log.newest_topics, private=False) is None, "it may name what was erased"
    assert store.read(log.newest_topics, private=True) is not None


@pytest.mark.slow
async def test_a_process_of_its_own_makes_the_release(tmp_path: Path) -> None:
    url = new_sqlite(tmp_path)
    with opened(url) as store:
        fill(store, 60, 6)
        keeping = asyncio.create_task(keep_releasing(store, url, lambda: NOW, private=False))
        async with asyncio.timeout(100):
            while store.read(log.newest_topics, private=False) is None:  # noqa: ASYNC110 - a process
                await asyncio.sleep(0.1)
        keeping.cancel()


@pytest.mark.slow
async def test_too_few_prompts_are_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    url = new_sqlite(tmp_path)
    with opened(url) as store:
        fill(store, 51, 6)
    await releasing._apart(url, private=True)
    assert "released: Topics of private prompts need 500 prompts" in caplog.text
    assert {one.levelname for one in caplog.records} == {"INFO"}


def test_a_release_ends_when_the_arena_is_killed(tmp_path: Path) -> None:
    url = new_sqlite(tmp_path)
    with opened(url) as store:
        fill(store, 60, 6)
    order = json.dumps({"database": url, "private": False}).encode() + b"\n"
    done = run([sys.executable, "-m", releasing.__name__], input=order, check=False)
    assert done.returncode == 1
    with closing(Store(url)) as store:
        assert store.read(log.newest_topics, private=False) is None


async def test_a_release_that_is_stopped_with_the_arena_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[Popen[bytes]] = []

    def begin(*words: Any, **how: Any) -> Popen[bytes]:
        begun.append(Popen(*words, **how))
        begun[0].terminate()
        return begun[0]

    monkeypatch.setattr(releasing, "Popen", begin)
    caplog.set_level(logging.INFO)
    await releasing._apart("sqlite:///no.db", private=True)
    assert [(one.levelname, "stopped" in one.message) for one in caplog.records] == [
        ("INFO", True)
    ]


@pytest.mark.slow
async def test_a_database_that_is_away_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await releasing._apart(f"sqlite:///{tmp_path}/no/such.db", private=True)
    assert "Topics could not be released" in caplog.text


def test_the_page_shows_what_was_released_and_of_the_right_kind(tmp_path: Path) -> None:
    with quick_arena(tmp_path) as served, served.visitor() as ada:
        page = ada.get("/topics")
        assert page.status_code == 404
        assert f"The first come within an hour of vote {LEAST:,}, if" in page.text
        assert 'href="/topics"' not in ada.get("/method").text
        with opened(served.database) as store:
            fill(store, 560, 60)
            release_topics(store, NOW, private=True)
            assert ada.get("/topics").status_code == 404
            release_topics(store, NOW, private=False)
        page = ada.get("/topics")
        assert "560 prompts behind the votes" in page.text
        assert "shown as they are" in page.text
        assert "averaged over 5 starts (0 to 1). Topics below 0.6 are not shown." in page.text
        assert 'href="/topics"' in ada.get("/method").text
        again = ada.get("/topics", headers={"If-None-Match": page.headers["etag"]})
        assert again.status_code == 304
        assert "person-1" not in page.text


def test_an_arena_of_private_battles_shows_private_topics(tmp_path: Path) -> None:
    with quick_arena(tmp_path, show_battles=False) as served, served.visitor() as ada:
        with opened(served.database) as store:
            fill(store, 560, 60)
            release_topics(store, NOW, private=False)
            assert ada.get("/topics").status_code == 404
            release_topics(store, NOW, private=True)
        page = ada.get("/topics").text
        assert "Battles and prompts of this arena are private" in page
        assert "in batches of at least 25 prompts by at least 10 people" in page
