"""`arena simulate`."""

import asyncio
import math
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from arena.commands.arguments import Database, examples
from arena.domain.model import Roster
from arena.terminal import say, working

if TYPE_CHECKING:
    from arena.play.simulation import Tastes
    from arena.store.store import Store

cli = typer.Typer()


@cli.command(
    epilog=examples(
        "arena simulate --votes 20",
        "arena simulate --votes 30 --seed 7 --database sqlite:///try.db",
    )
)
def simulate(
    votes: Annotated[int, typer.Option(help="Votes in all of this seed's voters.", min=1)],
    seed: Annotated[int, typer.Option(help="Another seed is other voters.")] = 0,
    database: Database = None,
) -> None:
    """Let simulated voters with known tastes battle the embedded toys.

    They play through the same code as people, unpaced. The same command again goes on where it
    was broken off; a higher number or another seed adds votes. Boards leave these votes out,
    but for /leaderboard?policy=simulated-v1. Votes go to ./arena-demo.db unless --database or
    ARENA_DATABASE names another one.
    """
    from arena.commands.surroundings import demo_settings  # help would wait for all of the arena
    from arena.endpoints.pocket import POCKET_MODELS
    from arena.play.simulation import TASTES
    from arena.store.store import Store

    settings = demo_settings(database=database)
    say(f"Planted tastes, in log-odds: {_planted(TASTES)}.")
    with closing(Store(settings.database)) as store, working("Voting") as told:
        store.hold_lease()
        store.register(POCKET_MODELS, datetime.now(UTC))
        made = asyncio.run(_simulate(store, votes, seed, told))
    say(f"{made:,} votes cast now with seed {seed}. Shown at /leaderboard?policy=simulated-v1.")


def _planted(tastes: "Tastes") -> str:
    return ", ".join(f"{model} {strength:+g}" for model, strength in tastes.strengths.items())


async def _simulate(
    store: "Store", votes: int, seed: int, told: Callable[[int, int], None]
) -> int:
    from arena.endpoints.discover import reach
    from arena.endpoints.pocket import POCKET_MODELS, TOY_EXAMPLES, PocketTransport
    from arena.play.simulation import TASTES, Simulation

    roster = Roster(POCKET_MODELS)
    endpoints = reach(roster, {}, {}, PocketTransport(seed, speedup=math.inf))
    simulation = Simulation(
        store,
        endpoints.stream,
        roster,
        TASTES,
        prompts=TOY_EXAMPLES,
        seed=seed,
        now=lambda: datetime.now(UTC),
    )
    try:
        return await simulation.run(votes, told)
    finally:
        await endpoints.aclose()
