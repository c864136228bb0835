"""`arena export`, `arena backup` and `arena restore`."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.commands.arguments import Database, examples
from arena.domain.policy import DEFAULT
from arena.terminal import working

if TYPE_CHECKING:
    from arena.store.backup import Copied

cli = typer.Typer()
export_cli = typer.Typer(help="Write what the arena holds to files.", no_args_is_help=True)
cli.add_typer(export_cli, name="export")


@export_cli.command(
    epilog=examples(
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
    from arena.publish.dataset import export_votes  # the store takes two seconds to import
    from arena.settings import read_settings
    from arena.store import log
    from arena.store.store import Store

    url = read_settings(database=database).database
    with closing(Store(url)) as store, store.reading() as session:
        logged = log.votes(session, DEFAULT.name)
    rows = export_votes(logged, DEFAULT, to, everything=everything)
    print(f"{to}: {rows:,} of {len(logged):,} logged votes, policy {DEFAULT.name}.")


@cli.command(
    epilog=examples(
        "arena backup --to arena-backup.db",
        "arena backup --database sqlite:///arena-demo.db --to demo-backup.db",
    )
)
def backup(
    to: Annotated[Path, typer.Option(help="New file to write.", metavar="FILE")],
    database: Database = None,
) -> None:
    """Copy a database, which may be in use, as it is at one moment into one file."""
    from arena.settings import read_settings
    from arena.store.backup import back_up

    url = read_settings(database=database).database
    with working("Backing up") as told:
        copied = back_up(url, to, told)
    print(f"{to}: {_told(copied)}")


@cli.command(
    epilog=examples(
        "arena restore arena-backup.db --database sqlite:///restored.db",
        "arena restore demo-backup.db --database sqlite:///team.db",
    )
)
def restore(
    file: Annotated[Path, typer.Argument(help="File made by arena backup.", metavar="FILE")],
    database: Database = None,
) -> None:
    """Copy a backup into a new database of either kind, all or nothing."""
    from arena.settings import read_settings
    from arena.store import backup as copies

    url = read_settings(database=database).database
    with working("Restoring") as told:
        copied = copies.restore(file, url, told)
    print(f"{file}: restored {_told(copied)}")


def _told(copied: "Copied") -> str:
    head = f", the newest with hash {copied.head[:16]}" if copied.head else ""
    return f"{copied.rows:,} rows, among them {copied.votes:,} votes{head}."
