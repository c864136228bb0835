"""How fast votes are committed: threads at once, on a database in a file. `make bench`."""

import argparse
import statistics
import tempfile
import threading
import time
from datetime import UTC, datetime

from arena.domain.battle import AnswerStatus, BattleState, Pacing, Side
from arena.domain.model import Model
from arena.domain.vote import Choice, Voter
from arena.store.chain import AnswerKey, AnswerOutcome, Ballot, NewBattle
from arena.store.store import Store

MODELS = tuple(Model(id=m, name=m, endpoint="pocket://", model=m) for m in ("x", "y"))
WHOLE = AnswerOutcome(text="An answer. " * 100, status=AnswerStatus.COMPLETE)


def ready_battle(store: Store, owner: Voter, now: datetime) -> str:
    """Write a battle that waits for its vote."""
    battle = NewBattle(
        owner=owner,
        prompt="Why?",
        a=MODELS[0],
        b=MODELS[0],
        sampler="uniform",
        sampler_version="1",
        pacing=Pacing.PACED,
        prompt_id=None,
        created=now,
        app_version="bench",
    )
    store.open_battle(battle)
    outcomes = {AnswerKey(1, side, 1): WHOLE for side in Side}
    store.close_answers(battle.public_id, BattleState.READY, outcomes, message=None, now=now)
    return battle.public_id


def cast_all(store: Store, owner: Voter, battles: list[str], times: list[float]) -> None:
    """Vote on battle after battle, and note how long each commit took."""
    for battle_id in battles:
        began = time.perf_counter()
        now = datetime.now(UTC)
        store.cast(Ballot(battle_id=battle_id, voter=owner.id, choice=Choice.A, key="k", cast=now))
        times.append(time.perf_counter() - began)


def main() -> None:
    """Print votes a second and the time of a commit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=int, default=400, help="votes of each thread")
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/bench.db")
        now = datetime.now(UTC)
        store.register(MODELS, now)
        owners = [Voter(f"voter{n}") for n in range(options.threads)]
        work = [[ready_battle(store, o, now) for _ in range(options.votes)] for o in owners]
        times: list[float] = []
        threads = [
            threading.Thread(target=cast_all, args=(store, owner, battles, times))
            for owner, battles in zip(owners, work, strict=True)
        ]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - began
        store.close()
    centiles = statistics.quantiles(times, n=100)
    print("| threads | votes | votes/s | commit p50 | p95 | p99 |")
    print("|---|---|---|---|---|---|")
    times_ms = " | ".join(f"{1000 * centiles[c - 1]:.1f} ms" for c in (50, 95, 99))
    print(f"| {options.threads} | {len(times)} | {len(times) / took:,.0f} | {times_ms} |")


if __name__ == "__main__":
    main()
