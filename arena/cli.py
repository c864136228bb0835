"""The `arena` command."""

import asyncio
import io
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

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
from arena.errors import ArenaError, DataError, EndpointError, NotRatedError
from arena.logs import set_up
from arena.play.simulation import TASTES, Simulation, Tastes
from arena.publish import formats
from arena.publish.compare import compare as compare_boards
from arena.publish.compare import read_board
from arena.publish.dataset import export_votes
from arena.publish.plan import plan_source
from arena.publish.rate import in_our_words, rate_source
from arena.server import listen, run
from arena.settings import Settings, read_openai, read_roster, read_settings
from arena.store import log
from arena.store.backup import Copied, back_up
from arena.store.backup import restore as restore_backup
from arena.store.store import Store
from arena.terminal import board, moves, working
from arena.terminal import plan as planned
from rating import RateOptions

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
Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="File of votes (.parquet, .csv, .jsonl), or database URL such as sqlite:///arena.db.",
    ),
]
Ties = Annotated[str, typer.Option(metavar="half|davidson|rao-kupper|grounded")]
BothBad = Annotated[
    str, typer.Option(metavar="tie|drop|outcome", help="What a vote for neither counts as.")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="voter|prompt|both|none",
        help="What may be alike within; voter where the column is there.",
    ),
]
Ridge = Annotated[float, typer.Option(help="1/2 ridge times squared strengths is added.")]
Level = Annotated[float, typer.Option(help="Of the intervals, and of the ranks together.")]
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


@cli.command(
    epilog=_examples(
        "arena rate votes.parquet",
        "arena rate votes.parquet --interval bootstrap --format json --out board.json",
    )
)
def rate(
    source: Source,
    *,
    ties: Ties = "half",
    both_bad: BothBad = "tie",
    interval: Annotated[
        str, typer.Option(metavar="sandwich|hessian|bootstrap|profile|none")
    ] = "sandwich",
    cluster: Cluster = None,
    ridge: Ridge = 0.0,
    order_effect: Annotated[
        bool, typer.Option("--order-effect", help="Let side A have an advantage.")
    ] = False,
    style: Annotated[
        list[str] | None,
        typer.Option(help="Adjust for COLUMN, or COLUMN_a and COLUMN_b; again for more."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="sampling|COLUMN", help="Weigh votes; sampling: by the pair's odds."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Rounds of the bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 0,
    level: Level = 0.95,
    scale: Annotated[float, typer.Option(help="Points for odds of ten to one.")] = 400.0,
    mean: Annotated[float | None, typer.Option(help="Average rating; 1000 by default.")] = None,
    anchor: Annotated[
        str | None, typer.Option(metavar="MODEL=POINTS", help="Instead of the mean.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Intervals are of the difference from it.")
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help="A board a value.")] = None,
    form: Annotated[
        str | None, typer.Option("--format", metavar="|".join(formats.FORMATS))
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write.")] = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="OLD.json", help="Say who moved since this board.")
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Draw the board there, too.")
    ] = None,
) -> None:
    """Rate the models of any votes, with intervals that allow for people who vote often.

    Exit codes: 2 for options or votes that cannot be used, 3 for votes that identify no rating.
    """
    form = formats.chosen_format(form, out)
    if out is not None and not out.absolute().parent.is_dir():
        msg = f"Cannot write {str(out)!r}: its folder does not exist. Make the folder first."
        raise DataError(msg)
    if anchor is not None and mean is not None:
        msg = f"--mean {mean:g} and --anchor {anchor!r} both say where the scale lies: drop one."
        raise DataError(msg)
    with in_our_words():
        options = RateOptions(
            ties=ties,  # type: ignore[arg-type]
            both_bad=both_bad,  # type: ignore[arg-type]
            interval=interval,  # type: ignore[arg-type]
            cluster=cluster,  # type: ignore[arg-type]
            ridge=ridge,
            order_effect=order_effect,
            style=tuple(style or ()),
            weights=weights,
            rounds=rounds,
            seed=seed,
            level=level,
            scale=scale,
            mean=1000.0 if mean is None else mean,
            anchor=None if anchor is None else _anchor(anchor),
            reference=reference,
            by=by,
        )
    old = None if compare is None else read_board(compare)
    if old is not None and by is not None:
        msg = f"--compare takes one board, and --by {by!r} makes one for every value: drop one."
        raise DataError(msg)
    with working("Rating") as told:
        found = rate_source(source, options, told).to_dict()
    if plots is not None:
        from arena.publish.pictures import draw_board  # matplotlib takes a second to import

        draw_board(plots, source, options, found, datetime.now(UTC).date())
    if form != "table":
        for value, why in found.get("not_rated", {}).items():
            print(f"arena: {by} {value!r} is left out. {why}", file=sys.stderr)
    _write(found if old is None else compare_boards(old, found), form, out)


@cli.command(
    epilog=_examples(
        "arena plan votes.parquet",
        "arena plan votes.parquet --format json",
    )
)
def plan(
    source: Source,
    *,
    ties: Ties = "half",
    both_bad: BothBad = "tie",
    cluster: Cluster = None,
    ridge: Ridge = 0.0,
    level: Level = 0.95,
    form: Annotated[str, typer.Option("--format", metavar="table|json")] = "table",
) -> None:
    """Say how many more votes would separate neighbours on the board."""
    if form not in ("table", "json"):
        msg = f"There is no format {form!r} of a plan: choose table or json."
        raise DataError(msg)
    with in_our_words():
        options = RateOptions(
            ties=ties,  # type: ignore[arg-type]
            both_bad=both_bad,  # type: ignore[arg-type]
            cluster=cluster,  # type: ignore[arg-type]
            ridge=ridge,
            level=level,
        )
    with working("Planning"):
        found = plan_source(source, options)
    if form == "json":
        print(formats.as_json(found.to_dict()), end="")
    else:
        Console().print(planned(found))


def _anchor(text: str) -> tuple[str, float]:
    model, found, points = text.rpartition("=")
    try:
        return model, float(points if found and model else "")
    except ValueError as error:
        msg = f"Cannot read --anchor {text!r}: write MODEL=POINTS, such as --anchor gpt-4=1000."
        raise DataError(msg) from error


def _write(found: dict[str, Any], form: str, out: Path | None) -> None:
    """Print a board or a comparison, or write it to a file."""
    if form == "parquet" and out is not None:
        formats.write_parquet(formats.rows_of(found), out)
        return
    if form == "table":
        shown = moves(found) if "moved" in found else board(found)
        if out is None:
            Console().print(shown)
            return
        page = io.StringIO()
        Console(width=100, file=page).print(shown)
        text = page.getvalue()
    else:
        text = formats.as_text(found, form)
    if out is None:
        print(text, end="")
    else:
        formats.write_text(text, out)


def main() -> None:
    """Run the command; what goes wrong is said in one line, with a non-zero exit."""
    code = 0
    try:
        cli()
    except NotRatedError as error:
        print(f"arena: {error}", file=sys.stderr)
        code = 3
    except ArenaError as error:
        print(f"arena: {error}", file=sys.stderr)
        code = 2
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    if "narwhals._duckdb.expr" in sys.modules:
        # Torn down, duckdb's binding would print forty lines on types that narwhals still holds.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


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
