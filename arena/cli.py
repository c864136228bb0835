"""The `arena` command."""

import asyncio
import logging
import socket
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
from rich.console import Console
from rich.table import Table

from arena.app import build_endpoints, create_app
from arena.domain.answer import Message
from arena.domain.model import Model, Roster
from arena.domain.policy import DEFAULT
from arena.endpoints.client import Endpoints
from arena.endpoints.pocket import POCKET_MODELS, PocketTransport
from arena.endpoints.recorded import load_recording
from arena.errors import ArenaError, EndpointError, SettingsError
from arena.publish.dataset import export_votes
from arena.settings import Settings, read_roster, read_settings
from arena.store import log
from arena.store.store import Store

DEMO_DATABASE = "sqlite:///arena-demo.db"

cli = typer.Typer(
    help="Blind battles between language models, votes, and ratings with honest intervals.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
models_cli = typer.Typer(help="The models of a roster.", no_args_is_help=True)
export_cli = typer.Typer(help="Write what the arena holds to files.", no_args_is_help=True)
cli.add_typer(models_cli, name="models")
cli.add_typer(export_cli, name="export")

Port = Annotated[int | None, typer.Option(help="Port to serve on; 0 takes a free one.")]
Host = Annotated[str | None, typer.Option(help="Address to serve on.")]
Database = Annotated[
    str | None, typer.Option(help="Database URL, such as sqlite:///arena.db.", metavar="URL")
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


@cli.command(epilog=_examples("arena demo", "arena demo --port 8000 --database sqlite:///try.db"))
def demo(port: Port = None, host: Host = None, database: Database = None) -> None:
    """Serve the arena with embedded toy models: no key and no network needed.

    Votes are kept in ./arena-demo.db unless --database or ARENA_DATABASE names another one.
    """
    settings = read_settings(port=port, host=host, database=database)
    if "database" not in settings.model_fields_set:
        settings = settings.model_copy(update={"database": DEMO_DATABASE})
    _serve(settings.model_copy(update={"roster": None}))


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


def main() -> None:
    """Run the command; what goes wrong is said in one line, with a non-zero exit."""
    try:
        cli()
    except ArenaError as error:
        print(f"arena: {error}", file=sys.stderr)
        sys.exit(2)


def _serve(settings: Settings) -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    for library in ("alembic", "httpx"):
        logging.getLogger(library).setLevel(logging.WARNING)
    with _listen(settings) as listener:
        app = create_app(settings)
        host, port = listener.getsockname()[:2]
        print(f"The arena is at http://{host}:{port} (stop with Ctrl+C)", flush=True)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
        uvicorn.Server(config).run(sockets=[listener])


def _listen(settings: Settings) -> socket.socket:
    """Take the port before anything slow is done, so that a taken one is said at once."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(2048)  # who comes before the rest is ready waits, and is not refused
    except OSError as error:
        listener.close()
        msg = (
            f"Cannot serve on {settings.host}:{settings.port}: {error.strerror}. "
            "Choose another port with --port."
        )
        raise SettingsError(msg) from error
    return listener


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
