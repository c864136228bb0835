"""Players whose votes are in the middle when the arena is killed, and what came of them."""

import json
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx2
from sqlmodel import col, select

from arena.domain.battle import BattleState
from arena.domain.vote import DEFAULT
from arena.store import blocks
from arena.store.store import Store
from arena.store.tables import BattleRow
from arena.store.verify import verify
from rating.tables.coding import LoggedVotes
from tests.faulty_server import Behaviour, faulty_server
from tests.process import Process, until
from tests.serving import Visitor, client_of, write_roster

N_PLAYERS = 6
BATTLES_EACH = 3
OUTCOMES = ("model_a", "model_b", "tie", "both_bad", "skip")
MANY = ("ARENA_BATTLES_PER_VOTER_HOUR", "ARENA_BATTLES_PER_ADDRESS_HOUR")
AT_ONCE = ("ARENA_RUNNING_PER_VOTER", "ARENA_RUNNING_PER_ADDRESS")
SETTINGS = {"ARENA_PAGE": "0", "ARENA_SECRET_KEY": "the same after a restart"}
SETTINGS |= dict.fromkeys(MANY, "1000000") | dict.fromkeys(AT_ONCE, "500")
SETTINGS["ARENA_CHARACTERS_PER_S"] = "50000"
CHECKED_EVERY = 20
"""Rounds after which the whole log is read again: reading it takes ever longer."""


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
    cookies: httpx2.Cookies = field(default_factory=httpx2.Cookies)
    acknowledged: dict[str, str] = field(default_factory=dict)
    unanswered: dict[str, tuple[str, str]] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    sent_again: int = 0
    interrupted: int = 0
    hung: int = 0

    def play(self, url: str, everybody: threading.Barrier) -> None:
        """Settle what the last kill left, get battles ready, and vote until the next kill."""
        with Visitor(client_of(url, timeout=60, cookies=self.cookies)) as visitor:
            self.settle(visitor)
            battles = [visitor.play() for _ in range(BATTLES_EACH)]
            self.cookies = visitor.client.cookies
            for battle_id in battles:
                self.unanswered[battle_id] = (self.rng.choice(OUTCOMES), str(uuid.uuid4()))
            self.begun.append(visitor.open())
            everybody.wait(timeout=120)
            try:
                self.send(visitor)
                while True:
                    self.begun.append(visitor.open())
            except httpx2.TransportError:
                return

    def settle(self, visitor: Visitor) -> None:
        self.sent_again += len(self.unanswered)
        self.send(visitor)
        while self.begun:
            battle_id = self.begun.pop()
            try:
                visitor.follow(battle_id)
            except httpx2.ReadTimeout:
                self.hung += 1
            self.interrupted += visitor.look(battle_id)["state"] == "interrupted"

    def send(self, visitor: Visitor) -> None:
        for battle_id, (outcome, key) in list(self.unanswered.items()):
            answer = visitor.vote(battle_id, outcome, key)
            assert answer.status_code == 200, answer.text
            assert answer.json()["outcome"] == outcome
            self.acknowledged[battle_id] = outcome
            del self.unanswered[battle_id]

    def to_dict(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in self.__slots__ if name != "rng"}
        return state | {"cookies": dict(self.cookies)}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        return cls(random.Random(), **state | {"cookies": httpx2.Cookies(state["cookies"])})


@dataclass(slots=True)
class Rounds:
    """Rounds of kills on one database: what they came to, and who played."""

    tally: Tally
    players: list[Player]

    @classmethod
    def begin(cls, database: str) -> Self:
        return cls(Tally(database), [Player(random.Random(n)) for n in range(N_PLAYERS)])

    def total(self) -> Tally:
        """Add up what was counted while they played."""
        counts = ("sent_again", "interrupted", "hung")
        sums = {name: sum(getattr(player, name) for player in self.players) for name in counts}
        sums["hung"] += self.tally.hung
        acknowledged = sum(len(player.acknowledged) for player in self.players)
        return Tally(**asdict(self.tally) | sums | {"acknowledged": acknowledged})

    def write(self, file: Path) -> None:
        """Keep them in a file, whole at any moment."""
        whole = {"tally": asdict(self.tally), "players": [p.to_dict() for p in self.players]}
        new = file.with_suffix(".new")
        new.write_text(json.dumps(whole), encoding="utf-8")
        new.replace(file)

    @classmethod
    def read(cls, file: Path) -> Self:
        whole = json.loads(file.read_text(encoding="utf-8"))
        return cls(Tally(**whole["tally"]), [*map(Player.from_dict, whole["players"])])


def play_rounds(
    rounds: Rounds,
    n: int,
    database: str,
    folder: Path,
    after_each: Callable[[Rounds], None] = lambda _: None,
) -> None:
    """Kill the arena in the middle of votes until there are ``n`` rounds, and settle the rest."""
    store = Store(database)
    behaviours = {name: Behaviour(text="Quick. " * 10, delay_s=0.01) for name in "xyz"}
    with faulty_server(behaviours) as server:
        roster = write_roster(folder / "roster.toml", server, *behaviours)
        while rounds.tally.rounds < n:
            number = rounds.tally.rounds
            with arena(folder, database, roster) as (url, kill):
                check(store, rounds, whole=number % CHECKED_EVERY == 0)
                play_and_kill(url, kill, rounds.players, random.Random(number).uniform(0.0, 0.3))
            rounds.tally.rounds += 1
            after_each(rounds)
        with arena(folder, database, roster) as (url, _):
            check(store, rounds, whole=True)
            with Visitor(client_of(url, timeout=60)) as visitor:
                for player in rounds.players:
                    visitor.client.cookies = player.cookies
                    player.settle(visitor)
            check(store, rounds, whole=True)
    store.close()


@contextmanager
def arena(
    folder: Path, database: str, roster: Path, **env: str
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Run the arena; gives its address and what kills it."""
    words = ["serve", "--port", "0", "--database", database, "--roster", str(roster)]
    with (
        (folder / "arena.log").open("a") as noise,
        Process(words, folder, SETTINGS | env, noise) as process,
    ):
        yield process.url(), process.kill


def play_and_kill(
    url: str, kill: Callable[[], None], players: Sequence[Player], after_s: float
) -> None:
    """Let everybody vote at once, and kill the arena so much later."""
    everybody = threading.Barrier(len(players) + 1)
    with ThreadPoolExecutor(len(players)) as pool:
        playing = [pool.submit(player.play, url, everybody) for player in players]
        try:
            everybody.wait(timeout=120)
            time.sleep(after_s)
        finally:
            kill()
    for played in playing:
        played.result()


def check(store: Store, rounds: Rounds, *, whole: bool) -> None:
    """Count battles that never end; hold the whole log against what was acknowledged.

    A database notices that a process is dead when its server gets to run, so battles have time
    to end.
    """
    with suppress(AssertionError):
        until(lambda: not running(store))
    rounds.tally.hung += running(store)
    if not whole:
        return
    with store.reading() as session:
        votes = blocks.columns(session, DEFAULT)
        assert verify(session).problem is None
    choices = {battle: choice for p in rounds.players for battle, choice in p.acknowledged.items()}
    rounds.tally.lost, rounds.tally.doubled = lost_and_doubled(votes, choices)


def running(store: Store) -> int:
    run = col(BattleRow.state).in_((BattleState.CREATED, BattleState.STREAMING))
    with store.reading() as session:
        return len(session.exec(select(BattleRow.id).where(run)).all())


def lost_and_doubled(votes: LoggedVotes, acknowledged: Mapping[str, str]) -> tuple[int, int]:
    """Count acknowledged choices, by battle, that the log has not, and battles with two votes."""
    logged = dict(zip(votes.values("battle"), votes.values("winner"), strict=True))
    lost = sum(logged.get(battle) != choice for battle, choice in acknowledged.items())
    return lost, sum(n > 1 for n in Counter(votes.values("battle")).values())
