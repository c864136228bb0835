"""`arena serve`, `arena demo`, `arena simulate`, `arena models` and `arena models check`."""

import asyncio
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from arena.commands.arguments import Database, Host, Port, RosterFile
from arena.domain.model import Model, Roster
from arena.domain.room_view import Trial
from arena.terminal import say, show, table, working

if TYPE_CHECKING:
    from arena.play.simulation import Tastes
    from arena.settings import Settings
    from arena.store.store import Store

DEMO_DATABASE = "sqlite:///arena-demo.db"
ANSWERED = "answered"


def serve(
    *,
    port: Port = None,
    host: Host = None,
    database: Database = None,
    roster: RosterFile = None,
) -> None:
    """Serve the arena.

    Every option is also a setting in the environment: ARENA_PORT, ARENA_HOST, ARENA_DATABASE,
    ARENA_ROSTER. Without a roster the embedded toy models battle.

    Examples
    --------
    arena serve --roster roster.toml
    arena serve --port 8000 --database sqlite:///team.db --roster roster.toml
    """
    from arena.settings import read_settings  # help would wait for it and for what it serves

    _serve(read_settings(port=port, host=host, database=database, roster=roster))


def demo(
    *, port: Port = None, host: Host = None, database: Database = None, toys: bool = False
) -> None:
    """Serve the arena with what is there: no roster, no key and no network needed.

    Two or more models of Ollama, llama.cpp, vLLM or LM Studio on this machine, or behind
    OPENAI_BASE_URL (with OPENAI_API_KEY), battle; else the embedded toys do. Votes are kept in
    ./arena-demo.db unless --database or ARENA_DATABASE names another one.

    Parameters
    ----------
    toys
        Play with the embedded toys, whatever runs here.

    Examples
    --------
    arena demo --toys
    arena demo --port 8000
    """
    from arena.endpoints.offline import POCKET_MODELS

    settings = _demo_settings(port=port, host=host, database=database)
    there = () if toys else _local_models()
    _serve(settings, Roster(there if len(there) > 1 else POCKET_MODELS))


def simulate(
    *,
    votes: Annotated[int, Parameter(validator=Number(gte=1))],
    seed: int = 0,
    database: Database = None,
) -> None:
    """Let simulated voters with known tastes battle the embedded toys.

    They play through the same code as people, unpaced. The same command again goes on where it
    was broken off; a higher number or another seed adds votes. Boards leave these votes out,
    but for /leaderboard?policy=simulated-v1. Votes go to ./arena-demo.db unless --database or
    ARENA_DATABASE names another one.

    Parameters
    ----------
    votes
        Votes in all of this seed's voters.
    seed
        Another seed is other voters.

    Examples
    --------
    arena simulate --votes 20
    arena simulate --votes 30 --seed 7 --database sqlite:///try.db
    """
    from arena.endpoints.offline import POCKET_MODELS  # help would wait for all of the arena
    from arena.play.simulation import TASTES
    from arena.store.store import Store

    settings = _demo_settings(database=database)
    say(f"Planted tastes, in log-odds: {_planted(TASTES)}.")
    with closing(Store(settings.database)) as store, working("Voting") as advance:
        store.hold_lease()
        store.register(POCKET_MODELS, datetime.now(UTC))
        made = asyncio.run(_simulate(store, votes, seed, advance))
    say(f"{made:,} votes cast now with seed {seed}. Shown at /leaderboard?policy=simulated-v1.")


def models(*, roster: RosterFile = None) -> None:
    """List the models of the roster; without one, those that run on this machine.

    Examples
    --------
    arena models
    arena models --roster roster.toml
    """
    from arena.settings import read_roster, read_servers, read_settings

    chosen = read_settings(roster=roster).roster
    there = tuple(read_roster(chosen)) if chosen else _local_models()
    if there:
        rows = [(model.id, model.name, model.endpoint, model.model) for model in there]
        show(table(("Model", "Name", "Endpoint", "Asked for as"), rows, right=()))
    else:
        places = ", ".join(f"{server.name} ({server.url})" for server in read_servers())
        say(f"No models were found at {places}. Write a roster, or play with the toys.")


def check_models(*, roster: RosterFile = None) -> None:
    """Send every model of a file a tiny request, and print how long it took or what failed.

    One model is enough, such as one that is to be added.

    Examples
    --------
    arena models check
    arena models check --roster roster.toml
    """
    from arena.endpoints.offline import POCKET_MODELS
    from arena.settings import read_roster, read_settings

    settings = read_settings(roster=roster)
    file = settings.roster
    asked = read_roster(file, to_battle=False) if file else Roster(POCKET_MODELS)
    trials = asyncio.run(_check_all(asked, settings))
    rows = [(model.id, model.endpoint, *_shown(trials[model.id])) for model in asked]
    show(table(("Model", "Endpoint", "First token", "Whole", "Result"), rows, right=()))
    if any(trial.seconds is None for trial in trials.values()):
        sys.exit(1)


def _demo_settings(**given: object) -> "Settings":
    """Read the settings, with a database of the demo's own unless one is named."""
    from arena.settings import read_settings

    settings = read_settings(**given)
    if "database" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"database": DEMO_DATABASE})


def _serve(settings: "Settings", roster: Roster | None = None) -> None:
    from arena.logs import set_up
    from arena.server import listen, run

    set_up(settings.log_level, sys.stderr)
    with listen(settings) as listener:
        from arena.app import create_app  # last, for a port in use is said without this wait

        app = create_app(settings, roster)
        host, port = listener.getsockname()[:2]
        say(f"The arena is at http://{host}:{port} (stop with Ctrl+C)")
        if roster:
            say(_described(roster))
        run(app, app.state.drain, settings, listener)


def _described(roster: Roster) -> str:
    from arena.endpoints.offline import POCKET_MODELS

    if roster.models == POCKET_MODELS:
        return "The embedded toys battle: they are there to try the arena, not to be asked."
    names = ", ".join(model.name for model in roster)
    paid = any(model.api_key_env for model in roster)
    cost = " Those behind OPENAI_API_KEY may cost money." if paid else ""
    return f"{len(roster)} models were found: {names}.{cost} For the toys add --toys."


def _planted(tastes: "Tastes") -> str:
    return ", ".join(f"{model} {strength:+g}" for model, strength in tastes.strengths.items())


async def _simulate(
    store: "Store", votes: int, seed: int, advance: Callable[[int, int], None]
) -> int:
    from arena.endpoints.client import reach
    from arena.endpoints.offline import POCKET_MODELS, TOY_EXAMPLES, PocketTransport
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
        return await simulation.run(votes, advance)
    finally:
        await endpoints.aclose()


def _local_models() -> tuple[Model, ...]:
    """Give the models that the servers on this machine, and OPENAI_BASE_URL, offer."""
    from arena.endpoints.discover import discover
    from arena.settings import read_servers

    return asyncio.run(discover(read_servers()))


async def _check_all(models: Roster, settings: "Settings") -> Mapping[str, Trial]:
    from arena.endpoints import trial
    from arena.endpoints.client import reach
    from arena.endpoints.offline import PocketTransport, load_recordings
    from arena.settings import read_keys

    recordings = load_recordings(models)
    keys = read_keys(models, settings.keys)
    pocket = PocketTransport()
    endpoints = reach(models, keys, recordings, pocket, budgets=settings.budgets())
    trials = await trial.try_all(endpoints, models, {m: tuple(r) for m, r in recordings.items()})
    await endpoints.aclose()
    return trials


def _shown(trial: Trial) -> tuple[str, str, str]:
    if trial.seconds is None:
        return "–", "–", f"{trial.failure}: {trial.sentence}"
    without = f", without {', '.join(trial.without)}" if trial.without else ""
    return f"{trial.first_s or 0:.2f} s", f"{trial.seconds:.2f} s", f"{ANSWERED}{without}"
