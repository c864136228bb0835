"""The arena under load: battles that stream and votes, on replicas behind nginx.

Readers follow battles one after another, and vote on each; other visitors vote on battles that
are ready. All run on this machine: PostgreSQL, the replicas, nginx and the visitors. At the end
every acknowledged vote is looked up in the log.

    python -m benchmarks.load                         # 200 battles, 50 votes a second, 5 minutes
    python -m benchmarks.load --battles 20 --votes 5 --seconds 20
    python -m benchmarks.load --route cookie          # a visitor stays with one replica
"""

import argparse
import asyncio
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import psutil
from sqlmodel import Session

from arena.domain.battle import AnswerStatus, BattleState, Side
from arena.domain.model import Roster
from arena.domain.vote import Voter
from arena.guard.limits import COOKIE, Identity
from arena.parts import rules_of
from arena.play.live import blind_battle
from arena.play.matchmaking import Draw, Rules
from arena.settings import Settings, read_roster
from arena.store import battles
from arena.store.chain import AnswerKey, AnswerOutcome
from arena.store.store import Store
from benchmarks.live import MANY, MARKDOWN, RATE, centile
from benchmarks.players import Player, Seen, connected, new_cookie, vote_at
from benchmarks.recordings import Server, write_recordings
from tests.kills import SETTINGS, lost_and_doubled
from tests.postgresql import postgresql_server
from tests.replicas import IN_TURN, Replicas, logged, replicas

EACH_S = 30.0
"""How long a battle streams."""
COMPARED = 60
"""Events of a battle that are compared between replicas."""
TOGETHER = 200
"""Battles that are prepared in one transaction."""
LIMITS = MANY | {
    "ARENA_BATTLES_PER_VOTER_HOUR": "1000000",
    "ARENA_CHARACTERS_PER_S": str(RATE),
    "ARENA_RUNNING_BATTLES": "500",
    "ARENA_STREAMS": "1000",
    "ARENA_CONNECTIONS": "5000",
    "ARENA_CONNECTIONS_PER_ADDRESS": "5000",
    "ARENA_LOG_LEVEL": "error",
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--battles", type=int, default=200, help="that stream at a time")
    parser.add_argument("--votes", type=float, default=50.0, help="a second")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--route", choices=("turn", "cookie"), default="turn")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, postgresql_server(careful=True) as database:
        folder = Path(name)
        folder.chmod(0o755)
        text = (MARKDOWN * 100)[: int(RATE * EACH_S)]
        roster = write_recordings(folder, {"Go": text}, RATE)
        ready = prepared(database, roster, int(given.votes * given.seconds))
        route = IN_TURN if given.route == "turn" else {}
        with replicas(
            folder, database, roster, n=given.replicas, changes=route, **LIMITS
        ) as served:
            seen = asyncio.run(_loaded(served, given, text, ready))
        lost, doubled = lost_and_doubled(logged(database), seen.acknowledged)
    _show(seen, lost, doubled)
    sys.exit(bool(lost or doubled or seen.wrong))


async def _loaded(
    served: Replicas, given: argparse.Namespace, text: str, ready: list[tuple[str, str]]
) -> Seen:
    seen = Seen()
    if len(served.urls) > 1:
        await _relayed_later(served, seen)
    before, began = _cpu_s(served), time.monotonic()
    until = began + given.seconds
    async with connected(served.url) as http, asyncio.TaskGroup() as tasks:
        tasks.create_task(vote_at(given.votes, ready, http, seen))
        watch = tasks.create_task(_watch(seen, given.seconds))
        for number in range(given.battles):
            await asyncio.sleep(min(EACH_S, given.seconds / 2) / given.battles)
            tasks.create_task(Player(http, seen, text).read_on(until))
            if number == given.battles - 1:
                _say(f"{given.battles} battles stream.")
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        watch.cancel()
    took = time.monotonic() - began
    used = {name: cpu_s - before.get(name, 0.0) for name, cpu_s in _cpu_s(served).items()}
    print("\n| processor, of one core | |\n|---|---|")
    for name, cpu_s in used.items():
        print(f"| {name} | {cpu_s / took:.0%} |")
    return seen


def prepared(database: str, roster: Path, n: int) -> list[tuple[str, str]]:
    """Write battles that wait for a vote; gives the id of each and the cookie of its owner."""
    store, models = Store(database), read_roster(roster)
    rules = rules_of(Settings())
    now = datetime.now(UTC)
    store.register(tuple(models), now)
    identity = Identity(SETTINGS["ARENA_SECRET_KEY"])
    ready: list[tuple[str, str]] = []
    while len(ready) < n:
        cookie = new_cookie()
        claim = identity.read(cookie)
        assert claim is not None
        voter = Voter(claim.voter)
        with store.writing() as session:
            for _ in range(min(TOGETHER, n - len(ready))):
                ready.append((_written(session, voter, models, rules, now), cookie))
        if len(ready) % 3000 < TOGETHER:
            _say(f"{len(ready)} of {n} battles are ready for a vote.")
    store.close()
    return ready


def _written(session: Session, voter: Voter, models: Roster, rules: Rules, now: datetime) -> str:
    one, two, *_ = models
    draw = Draw(one, two, pair_probability=1.0, side_seed=0)
    new = blind_battle(
        voter, "Go", draw, rules, now, sampler=rules.sampler, prompt_set="recorded", prompt_id="0"
    )
    battles.open_battle(session, new)
    ends = {
        AnswerKey(1, side, 1): AnswerOutcome(text="So.", status=AnswerStatus.COMPLETE)
        for side in Side
    }
    battles.close_answers(session, new.public_id, BattleState.READY, ends, message=None, now=now)
    return new.public_id


def _cpu_s(served: Replicas) -> dict[str, float]:
    """Processor time of everybody who takes part."""
    used = {
        f"replica {number}": Server(served.urls[number], process.pid).cpu_s()
        for number, process in enumerate(served.processes)
    }
    for name in ("postgres", "nginx"):
        used[name] = sum(
            sum(process.cpu_times()[:2])
            for process in psutil.process_iter(["name"])
            if process.info["name"] == name
        )
    return used | {"visitors": time.process_time()}


async def _relayed_later(served: Replicas, seen: Seen) -> None:
    """Read battles where they run and elsewhere, and note how much later each text comes there."""

    async def times(http: aiohttp.ClientSession, path: str, cookie: str) -> dict[bytes, float]:
        arrived = {}
        async with http.get(path, headers={"Cookie": f"{COOKIE}={cookie}"}) as answer:
            async for line in answer.content:
                if line.startswith(b"id: "):
                    arrived[line] = time.monotonic()
                if len(arrived) > COMPARED:
                    break
        return arrived

    async with connected(served.urls[0]) as here, connected(served.urls[1]) as there:
        for _ in range(5):
            cookie = new_cookie()
            battle_id = await Player(here, seen, "", cookie).open()
            path = f"/api/v1/battles/{battle_id}/events"
            one, other = await asyncio.gather(
                times(here, path, cookie), times(there, path, cookie)
            )
            seen.took["relayed later"] += [
                other[place] - one[place] for place in one.keys() & other.keys()
            ]
            headers = {"Cookie": f"{COOKIE}={cookie}"}
            async with here.post(path.replace("events", "stop"), headers=headers):
                pass


async def _watch(seen: Seen, seconds: float) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(10)
        _say(
            f"{time.monotonic() - began:.0f} of {seconds:.0f} s: {len(seen.read)} battles read, "
            f"{len(seen.acknowledged)} votes acknowledged, {seen.errors.total()} errors"
        )


def _show(seen: Seen, lost: int, doubled: int) -> None:
    print("\n| | number | p50 | p95 | p99 |\n|---|---|---|---|---|")
    for what, times in seen.took.items():
        middle, slow, slowest = (centile(times, percent) for percent in (50, 95, 99))
        print(f"| {what} | {len(times)} | {middle:.0f} ms | {slow:.0f} ms | {slowest:.0f} ms |")
    print("\n| battles read | failed | texts not whole | votes | lost | doubled | errors |")
    print("|---|---|---|---|---|---|---|")
    errors = ", ".join(f"{n} x {what}" for what, n in seen.errors.most_common()) or "0"
    print(
        f"| {len(seen.read)} | {seen.failed} | {seen.wrong} | {len(seen.acknowledged)} "
        f"| {lost} | {doubled} | {errors} |"
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
