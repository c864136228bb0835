"""`arena models` and `arena models check`."""

import asyncio
import time
from typing import TYPE_CHECKING

import typer

from arena.commands.arguments import RosterFile, examples
from arena.domain.model import Model, Roster
from arena.errors import EndpointError
from arena.terminal import plain, say
from judge.case import Message

if TYPE_CHECKING:
    from arena.endpoints.client import Endpoints
    from arena.endpoints.sse import Budgets

ANSWERED = "answered"

cli = typer.Typer()


@cli.callback(
    invoke_without_command=True,
    epilog=examples("arena models", "arena models --roster roster.toml"),
)
def models(context: typer.Context, roster: RosterFile = None) -> None:
    """List the models of the roster; without one, those that run on this machine."""
    if context.invoked_subcommand is not None:
        return
    from arena.commands.surroundings import found_models, places  # settings: half a second
    from arena.settings import read_roster, read_settings

    chosen = read_settings(roster=roster).roster
    listed = tuple(read_roster(chosen)) if chosen else found_models()
    if listed:
        _print_table(
            ("Model", "Name", "Endpoint", "Asked for as"),
            [(model.id, model.name, model.endpoint, model.model) for model in listed],
        )
    else:
        say(f"No models were found at {places()}. Write a roster, or play with the toys.")


@cli.command(epilog=examples("arena models check", "arena models check --roster roster.toml"))
def check(roster: RosterFile = None) -> None:
    """Send every model a tiny request, and print how long it took or what failed."""
    from arena.endpoints.pocket import POCKET_MODELS
    from arena.settings import read_roster, read_settings

    settings = read_settings(roster=roster)
    asked = read_roster(settings.roster) if settings.roster else Roster(POCKET_MODELS)
    rows = asyncio.run(_check_all(asked, settings.budgets()))
    _print_table(("Model", "Endpoint", "First token", "Whole", "Result"), rows)
    if any(row[-1] != ANSWERED for row in rows):
        raise typer.Exit(1)


async def _check_all(models: Roster, budgets: "Budgets") -> list[tuple[str, ...]]:
    from arena.endpoints.discover import reach
    from arena.endpoints.pocket import PocketTransport
    from arena.endpoints.recorded import load_recordings
    from arena.settings import read_keys

    recordings = load_recordings(models)
    prompts = {m: next(iter(r.responses)) for m, r in recordings.items()}
    endpoints = reach(models, read_keys(models), recordings, PocketTransport(), budgets=budgets)
    rows: list[tuple[str, ...]] = []
    for model in models:
        prompt = prompts.get(model.id, "Say hello in one word.")
        rows.append((model.id, model.endpoint, *await _check_one(endpoints, model, prompt)))
    await endpoints.aclose()
    return rows


async def _check_one(endpoints: "Endpoints", model: Model, prompt: str) -> tuple[str, str, str]:
    began = time.monotonic()
    first = None
    try:
        async for _chunk in endpoints.stream(model, [Message("user", prompt)]):
            first = first or time.monotonic() - began
    except EndpointError as error:
        return "–", "–", str(error)
    return f"{first or 0:.2f} s", f"{time.monotonic() - began:.2f} s", ANSWERED


def _print_table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*heads)
    for row in rows:
        table.add_row(*map(plain, row))
    Console().print(table)
