"""kill -9 in the middle of votes, again and again: what was acknowledged is kept."""

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx
import pytest
from sqlmodel import col, select

from arena.domain.battle import BattleState
from arena.store import log
from arena.store.store import Store
from arena.store.tables import BattleRow
from arena.store.verify import verify
from tests.faulty_server import Behaviour, faulty_server
from tests.process import Process
from tests.serving import Visitor, client_of, write_roster

N_PLAYERS = 6
BATTLES_EACH = 3
OUTCOMES = ("model_a", "model_b", "tie", "both_bad", "skip")
SETTINGS = {
    "ARENA_PAGE": "0",
    "ARENA_SECRET_KEY": "the same after a restart",
    "ARENA_CHARACTERS_PER_S": "50000",
    "ARENA_BATTLES_PER_VOTER_HOUR": "1000000",
    "ARENA_BATTLES_PER_ADDRESS_HOUR": "1000000",
    "ARENA_RUNNING_PER_VOTER": "500",
    "ARENA_RUNNING_PER_ADDRESS": "500",
}


@dataclass(slots=True)
class Tally:
    """What the rounds came to; ``sent_again`` votes had no answer before the kill."""

    database: str
    rounds: int = 0
    acknowledged: int = 0
    sent_again: int = 0
    interrupted: int = 0
    lost: int = 0
    doubled: int = 0
    hung: int = 0


@dataclass(slots=True)
class Player:
    """Somebody whose browser keeps a vote until it is acknowledged, and sends it again."""

    rng: random.Random
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)
    acknowledged: dict[str, str] = field(default_factory=dict)
    unanswered: dict[str, tuple[str, str]] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    sent_again: int = 0
    interrupted: int = 0
    hung: int = 0

    def play(self, url: str, everybody: threading.Barrier) -> None:
        """Settle what the last kill left, get battles ready, and vote until the next kill."""
        with Visitor(client_of(url, timeout=10, cookies=self.cookies)) as visitor:
            self.settle(visitor)
            battles = [visitor.play() for _ in range(BATTLES_EACH)]
            self.cookies = visitor.client.cookies
            for battle_id in battles:
                self.unanswered[battle_id] = (self.rng.choice(OUTCOMES), str(uuid.uuid4()))
            self.begun.append(visitor.open())
            everybody.wait(timeout=30)
            try:
                self.send(visitor)
                while True:
                    self.begun.append(visitor.open())
            except httpx.TransportError:
                return

    def settle(self, visitor: Visitor) -> None:
        self.sent_again += len(self.unanswered)
        self.send(visitor)
        while self.begun:
            battle_id = self.begun.pop()
            try:
                visitor.follow(battle_id)
            except httpx.ReadTimeout:
                self.hung += 1
            self.interrupted += visitor.look(battle_id)["state"] == "interrupted"

    def send(self, visitor: Visitor) -> None:
        for battle_id, (outcome, key) in list(self.unanswered.items()):
            answer = visitor.vote(battle_id, outcome, key)
            assert answer.status_code == 200, answer.text
            assert answer.json()["outcome"] == outcome
            self.acknowledged[battle_id] = outcome
            del self.unanswered[battle_id]


@contextmanager
def arena(folder: Path, database: str, roster: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Run the arena; gives its address and what kills it."""
    words = ["serve", "--port", "0", "--database", database, "--roster", str(roster)]
    with (
        (folder / "arena.log").open("a") as noise,
        Process(words, folder, SETTINGS, noise) as process,
    ):
        yield process.url(), process.kill


def play_and_kill(
    url: str, kill: Callable[[], None], players: list[Player], after_s: float
) -> None:
    """Let everybody vote at once, and kill the arena so much later."""
    everybody = threading.Barrier(len(players) + 1)
    with ThreadPoolExecutor(len(players)) as pool:
        playing = [pool.submit(player.play, url, everybody) for player in players]
        try:
            everybody.wait(timeout=30)
            time.sleep(after_s)
        finally:
            kill()
    for played in playing:
        played.result()


def check(store: Store, players: list[Player], tally: Tally) -> None:
    """Hold what the log says against what was acknowledged."""
    with store.reading() as session:
        votes = log.votes(session, "-")
        running = (BattleState.CREATED, BattleState.STREAMING)
        hung = session.exec(select(BattleRow.id).where(col(BattleRow.state).in_(running))).all()
        assert verify(session).problem is None
    logged = {vote.battle_id: vote.outcome for vote in votes}
    said = {battle: choice for p in players for battle, choice in p.acknowledged.items()}
    tally.acknowledged = len(said)
    tally.lost = sum(logged.get(battle) != choice for battle, choice in said.items())
    tally.doubled = sum(n > 1 for n in Counter(vote.battle_id for vote in votes).values())
    tally.hung += len(hung)


@pytest.mark.parametrize(
    "rounds", [1, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(1500)])]
)
def test_no_acknowledged_vote_is_lost_when_the_arena_is_killed(
    database_url: str,
    tmp_path: Path,
    rounds: int,
    record_property: Callable[[str, object], None],
) -> None:
    rng = random.Random(9)
    players = [Player(random.Random(n)) for n in range(N_PLAYERS)]
    store = Store(database_url)
    tally = Tally(store.engine.dialect.name)
    behaviours = {name: Behaviour(text="Quick. " * 10, delay_s=0.01) for name in "xyz"}
    with faulty_server(behaviours) as server:
        roster = write_roster(tmp_path / "roster.toml", server, *behaviours)
        for _ in range(rounds):
            with arena(tmp_path, database_url, roster) as (url, kill):
                check(store, players, tally)
                play_and_kill(url, kill, players, rng.uniform(0.0, 0.3))
            tally.rounds += 1
        with arena(tmp_path, database_url, roster) as (url, _):
            check(store, players, tally)
            with Visitor(client_of(url, timeout=10)) as visitor:
                for player in players:
                    visitor.client.cookies = player.cookies
                    player.settle(visitor)
            check(store, players, tally)
    store.close()
    tally.sent_again = sum(player.sent_again for player in players)
    tally.interrupted = sum(player.interrupted for player in players)
    tally.hung += sum(player.hung for player in players)
    record_property("kill -9 in the middle of votes", asdict(tally))
    assert (tally.lost, tally.doubled, tally.hung) == (0, 0, 0)
    assert tally.acknowledged == rounds * N_PLAYERS * BATTLES_EACH
    if rounds > 1:
        assert tally.sent_again, "no kill came in the middle of the votes"
        assert tally.interrupted, "no kill came in the middle of an answer"


def test_a_battle_outlives_other_arenas_and_ends_with_its_own(
    database_url: str, tmp_path: Path
) -> None:
    behaviours = {name: Behaviour(text="On and on. " * 500, delay_s=0.1) for name in "xyz"}
    with faulty_server(behaviours) as server:
        roster = write_roster(tmp_path / "roster.toml", server, *behaviours)
        with arena(tmp_path, database_url, roster) as (url, kill), visitor(url) as ada:
            battle_id = ada.open()
            with arena(tmp_path, database_url, roster) as (_, kill_other):
                kill_other()
            with (
                arena(tmp_path, database_url, roster) as (other_url, _),
                visitor(other_url, ada.client.cookies) as ada_there,
            ):
                assert ada.look(battle_id)["state"] in ("created", "streaming")
                assert ada_there.look(battle_id)["state"] in ("created", "streaming")
                with ThreadPoolExecutor(1) as pool:
                    told = pool.submit(ada_there.follow, battle_id)
                    kill()
                    assert [h.event for h in told.result()[-2:]] == ["failed", "failed"]
                assert ada_there.look(battle_id)["state"] == "interrupted"
                again = ada_there.post(f"/api/v1/battles/{battle_id}/retry")
                assert again.status_code < 300, again.text


def visitor(url: str, cookies: httpx.Cookies | None = None) -> Visitor:
    return Visitor(client_of(url, cookies=cookies))
