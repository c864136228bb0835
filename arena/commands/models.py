"""`arena models` and `arena models check`, and the models that run on this machine."""

import asyncio
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from arena.commands.arguments import RosterFile
from arena.domain.model import Model, Roster
from arena.errors import EndpointError
from arena.terminal import say, table
from judge.case import Message

if TYPE_CHECKING:
    from arena.endpoints.client import Endpoints
    from arena.endpoints.discover import Server
    from arena.endpoints.sse import Budgets

ANSWERED = "answered"


def models(*, roster: RosterFile = None) -> None:
    """List the models of the roster; without one, those that run on this machine.

    Examples
    --------
    arena models
    arena models --roster roster.toml
    """
    from arena.settings import read_roster, read_settings  # half a second

    chosen = read_settings(roster=roster).roster
    there = tuple(read_roster(chosen)) if chosen else local_models()
    if there:
        rows = [(model.id, model.name, model.endpoint, model.model) for model in there]
        _print_table(("Model", "Name", "Endpoint", "Asked for as"), rows)
    else:
        places = ", ".join(f"{server.name} ({server.url})" for server in _servers())
        say(f"No models were found at {places}. Write a roster, or play with the toys.")


def check(*, roster: RosterFile = None) -> None:
    """Send every model a tiny request, and print how long it took or what failed.

    Examples
    --------
    arena models check
    arena models check --roster roster.toml
    """
    from arena.endpoints.offline import POCKET_MODELS
    from arena.settings import read_roster, read_settings

    settings = read_settings(roster=roster)
    asked = read_roster(settings.roster) if settings.roster else Roster(POCKET_MODELS)
    rows = asyncio.run(_check_all(asked, settings.budgets()))
    _print_table(("Model", "Endpoint", "First token", "Whole", "Result"), rows)
    if any(row[-1] != ANSWERED for row in rows):
        sys.exit(1)


def local_models() -> tuple[Model, ...]:
    """Give the models that the servers on this machine, and OPENAI_BASE_URL, offer."""
    from arena.endpoints.discover import discover

    return asyncio.run(discover(_servers()))


def _servers() -> "tuple[Server, ...]":
    from arena.endpoints.discover import LOCAL
    from arena.settings import read_openai

    named = read_openai()
    return (*LOCAL, named) if named else LOCAL


async def _check_all(models: Roster, budgets: "Budgets") -> list[tuple[str, ...]]:
    from arena.endpoints.client import reach
    from arena.endpoints.offline import PocketTransport, load_recordings
    from arena.settings import read_keys

    recordings = load_recordings(models)
    prompts = {m: next(iter(r)) for m, r in recordings.items()}
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


def _print_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    from rich.console import Console

    Console().print(table(head, rows, right=()))
