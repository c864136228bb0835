"""The `arena` command."""

import asyncio
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from arena.app import TOY_EXAMPLES, build_endpoints, create_app
from arena.domain.answer import Message
from arena.domain.model import Model, Roster
from arena.domain.policy import DEFAULT
from arena.endpoints.client import Endpoints
from arena.endpoints.discover import LOCAL, Server, discover
from arena.endpoints.pocket import POCKET_MODELS, PocketTransport
from arena.endpoints.recorded import load_recording
from arena.errors import ArenaError, EndpointError
from arena.logs import set_up
from arena.play.simulation import TASTES, Simulation, Tastes
from arena.publish.dataset import export_votes
from arena.server import listen, run
from arena.settings import Settings, read_openai, read_roster, read_settings
from arena.store import log
from arena.store.backup import Copied, back_up
from arena.store.backup import restore as restore_backup
from arena.store.store import Store

DEMO_DATABASE = "sqlite:///arena-demo.db"

cli = typer.Typer(
    help="Blind battles between language models, votes, and ratings with honest intervals.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
models_cli = typer.Typer()
export_cli = typer.Typer(help="Write what the arena holds to files.", no_args_is_help=True)
cli.add_typer(models_cli, name="models")
cli.add_typer(export_cli, name="export")

Port = Annotated[int | None, typer.Option(help="Port to serve on; 0 takes a free one.")]
Host = Annotated[str | None, typer.Option(help="Address to serve on.")]
Database = Annotated[
    str | None,
    typer.Option(
        help="Database URL, such as sqlite:///arena.db or postgresql://user@host/name.",
        metavar="URL",
    ),
]
RosterFile = Annotated[Path | None, typer.Option(help="TOML file of models.", metavar="FILE")]


def _examples(*lines: str) -> str:
    return "**Examples**\n\n" + "\n\n".join(f"`{line}`" for line in lines)


@cli.command(
    epilog=_examples(
        "arena serve --roster roster.toml",
        "arena serve --port 8000 --database sqlite:///team.db --roster roster.toml",
    )
)
def serve(
    port: Port = None, host: Host = None, database: Database = None, roster: RosterFile = None
) -> None:
    """Serve the arena.

    Every option is also a setting in the environment: ARENA_PORT, ARENA_HOST, ARENA_DATABASE,
    ARENA_ROSTER. Without a roster the embedded toy models battle.
    """
    _serve(read_settings(port=port, host=host, database=database, roster=roster))


@cli.command(epilog=_examples("arena demo --toys", "arena demo --port 8000"))
def demo(
    port: Port = None,
    host: Host = None,
    database: Database = None,
    toys: Annotated[
        bool, typer.Option("--toys", help="Play with the embedded toys, whatever runs here.")
    ] = False,
) -> None:
    """Serve the arena with what is there: no roster, no key and no network needed.

    Two or more models of Ollama, llama.cpp, vLLM or LM Studio on this machine, or behind
    OPENAI_BASE_URL (with OPENAI_API_KEY), battle; else the embedded toys do. Votes are kept in
    ./arena-demo.db unless --database or ARENA_DATABASE names another one.
    """
    settings = _demo_settings(port=port, host=host, database=database)
    found = () if toys else _discover()
    _serve(settings, Roster(found if len(found) > 1 else POCKET_MODELS))


@models_cli.callback(
    invoke_without_command=True,
    epilog=_examples("arena models", "arena models --roster roster.toml"),
)
def models(context: typer.Context, roster: RosterFile = None) -> None:
    """List the models of the roster; without one, those that run on this machine."""
    if context.invoked_subcommand is not None:
        return
    chosen = read_settings(roster=roster).roster
    listed = tuple(read_roster(chosen)) if chosen else _discover()
    if not listed:
        print(f"No models were found at {_places()}. Write a roster, or play with the toys.")
        return
    table = Table("Model", "Name", "Endpoint", "Asked for as")
    for model in listed:
        table.add_row(model.id, model.name, model.endpoint, model.model)
    Console().print(table)


@models_cli.command(
    epilog=_examples("arena models check", "arena models check --roster roster.toml")
)
def check(roster: RosterFile = None) -> None:
    """Send every model a tiny request, and print how long it took or what failed."""
    chosen = read_settings(roster=roster).roster
    models = read_roster(chosen) if chosen else Roster(POCKET_MODELS)
    failures = asyncio.run(_check_all(models))
    if failures:
        raise typer.Exit(1)


@export_cli.command(
    epilog=_examples(
        "arena export votes --to votes.parquet",
        "arena export votes --to all.csv --all --database sqlite:///arena-demo.db",
    )
)
def votes(
    to: Annotated[Path, typer.Option(help="File to write: .parquet, .csv or .jsonl.")],
    database: Database = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also votes that the policy leaves out.")
    ] = False,
) -> None:
    """Write the votes that the default policy counts, one row a vote."""
    store = Store(read_settings(database=database).database)
    with store.reading() as session:
        logged = log.votes(session, DEFAULT.name)
    rows = export_votes(logged, DEFAULT, to, everything=everything)
    store.close()
    print(f"{to}: {rows:,} of {len(logged):,} logged votes, policy {DEFAULT.name}.")


@cli.command(
    epilog=_examples(
        "arena backup --to arena-backup.db",
        "arena backup --database sqlite:///arena-demo.db --to demo-backup.db",
    )
)
def backup(
    to: Annotated[Path, typer.Option(help="New file to write.", metavar="FILE")],
    database: Database = None,
) -> None:
    """Copy a database, which may be in use, as it is at one moment into one file."""
    url = read_settings(database=database).database
    with progress_bar("Backing up") as told:
        copied = back_up(url, to, told)
    print(f"{to}: {_told(copied)}")


@cli.command(
    epilog=_examples(
        "arena restore arena-backup.db --database sqlite:///restored.db",
        "arena restore demo-backup.db --database sqlite:///team.db",
    )
)
def restore(
    file: Annotated[Path, typer.Argument(help="File made by arena backup.", metavar="FILE")],
    database: Database = None,
) -> None:
    """Copy a backup into a new database of either kind, all or nothing."""
    url = read_settings(database=database).database
    with progress_bar("Restoring") as told:
        copied = restore_backup(file, url, told)
    print(f"{file}: restored {_told(copied)}")


@cli.command(
    epilog=_examples(
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
    settings = _demo_settings(database=database)
    print(f"Planted tastes, in log-odds: {_planted(TASTES)}.", flush=True)
    store = Store(settings.database)
    store.hold_lease()
    store.register(POCKET_MODELS, datetime.now(UTC))
    with progress_bar("Voting") as told:
        made = asyncio.run(_simulate(store, votes, seed, told))
    store.close()
    print(f"{made:,} votes cast now with seed {seed}. Shown at /leaderboard?policy=simulated-v1.")


def main() -> None:
    """Run the command; what goes wrong is said in one line, with a non-zero exit."""
    try:
        cli()
    except ArenaError as error:
        print(f"arena: {error}", file=sys.stderr)
        sys.exit(2)


def _demo_settings(**given: object) -> Settings:
    settings = read_settings(**given)
    if "database" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"database": DEMO_DATABASE})


def _planted(tastes: Tastes) -> str:
    return ", ".join(f"{model} {strength:+g}" for model, strength in tastes.strengths.items())


async def _simulate(store: Store, votes: int, seed: int, told: Callable[[int, int], None]) -> int:
    roster = Roster(POCKET_MODELS)
    endpoints = build_endpoints(roster, {}, PocketTransport(seed, speedup=math.inf))
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


def _servers() -> tuple[Server, ...]:
    named = read_openai()
    return (*LOCAL, named) if named else LOCAL


def _discover() -> tuple[Model, ...]:
    return asyncio.run(discover(_servers()))


def _places() -> str:
    return ", ".join(f"{server.name} ({server.url})" for server in _servers())


def _described(roster: Roster) -> str:
    if roster.models == POCKET_MODELS:
        return "The embedded toys battle: they are there to try the arena, not to be asked."
    names = ", ".join(model.name for model in roster)
    paid = any(model.api_key_env for model in roster)
    cost = " Those behind OPENAI_API_KEY may cost money." if paid else ""
    return f"{len(roster)} models were found: {names}.{cost} For the toys add --toys."


def _serve(settings: Settings, found: Roster | None = None) -> None:
    set_up(settings.log_level, sys.stderr)
    with listen(settings) as listener:
        app = create_app(settings, found)
        host, port = listener.getsockname()[:2]
        print(f"The arena is at http://{host}:{port} (stop with Ctrl+C)", flush=True)
        if found:
            print(_described(found), flush=True)
        run(app, app.state.drain, settings, listener)


def _told(copied: Copied) -> str:
    head = f", the newest with hash {copied.head[:16]}" if copied.head else ""
    return f"{copied.rows:,} rows, among them {copied.votes:,} votes{head}."


@contextmanager
def progress_bar(task: str, after_s: float = 1.0) -> Iterator[Callable[[int, int], None]]:
    """Give what to call with rows done and in all; the bar shows if the task takes longer."""
    began = time.monotonic()
    console = Console(stderr=True)
    with ExitStack() as shown:
        bar = Progress(console=console, transient=True)
        row = bar.add_task(task, total=None)

        def told(done: int, total: int) -> None:
            bar.update(row, completed=done, total=total)
            late = time.monotonic() - began > after_s
            if late and console.is_terminal and not bar.live.is_started:
                shown.enter_context(bar)

        yield told


async def _check_all(models: Roster) -> int:
    recordings = {m.id: load_recording(Path(m.recording)) for m in models if m.recording}
    prompts = {m: next(iter(r.responses)) for m, r in recordings.items()}
    endpoints = build_endpoints(models, recordings, PocketTransport())
    table = Table("Model", "Endpoint", "First token", "Whole", "Result")
    failures = 0
    for model in models:
        prompt = prompts.get(model.id, "Say hello in one word.")
        seconds, problem = await _check_one(endpoints, model, prompt)
        failures += problem is not None
        table.add_row(model.id, model.endpoint, *seconds, problem or "answered")
    await endpoints.aclose()
    Console().print(table)
    return failures


async def _check_one(
    endpoints: Endpoints, model: Model, prompt: str
) -> tuple[tuple[str, str], str | None]:
    began = time.monotonic()
    first = None
    try:
        async for _chunk in endpoints.stream(model, [Message("user", prompt)]):
            first = first or time.monotonic() - began
    except EndpointError as error:
        return ("–", "–"), str(error)
    return (f"{first or 0:.2f} s", f"{time.monotonic() - began:.2f} s"), None
