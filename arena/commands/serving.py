"""`arena serve` and `arena demo`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from arena.commands.arguments import Database, Host, Port, RosterFile, examples
from arena.domain.model import Roster
from arena.terminal import say

if TYPE_CHECKING:
    from arena.settings import Settings

cli = typer.Typer()


@cli.command(
    epilog=examples(
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
    from arena.settings import read_settings  # help would wait for it and for what it serves

    _serve(read_settings(port=port, host=host, database=database, roster=roster))


@cli.command(epilog=examples("arena demo --toys", "arena demo --port 8000"))
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
    from arena.commands.surroundings import demo_settings, found_models
    from arena.endpoints.pocket import POCKET_MODELS

    settings = demo_settings(port=port, host=host, database=database)
    found = () if toys else found_models()
    _serve(settings, Roster(found if len(found) > 1 else POCKET_MODELS))


def _serve(settings: "Settings", found: Roster | None = None) -> None:
    from arena.logs import set_up
    from arena.server import listen, run

    set_up(settings.log_level, sys.stderr)
    with listen(settings) as listener:
        from arena.app import create_app  # last, for a port in use is said without this wait

        app = create_app(settings, found)
        host, port = listener.getsockname()[:2]
        say(f"The arena is at http://{host}:{port} (stop with Ctrl+C)")
        if found:
            say(_described(found))
        run(app, app.state.drain, settings, listener)


def _described(roster: Roster) -> str:
    from arena.endpoints.pocket import POCKET_MODELS

    if roster.models == POCKET_MODELS:
        return "The embedded toys battle: they are there to try the arena, not to be asked."
    names = ", ".join(model.name for model in roster)
    paid = any(model.api_key_env for model in roster)
    cost = " Those behind OPENAI_API_KEY may cost money." if paid else ""
    return f"{len(roster)} models were found: {names}.{cost} For the toys add --toys."
