"""What several commands take, and how their help ends."""

from pathlib import Path
from typing import Annotated

import typer

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


def examples(*lines: str) -> str:
    """Lay out the examples at the end of a help page."""
    return "**Examples**\n\n" + "\n\n".join(f"`{line}`" for line in lines)
