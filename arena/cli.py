"""The `arena` command."""

import sys

import typer

from arena.commands import (
    data,
    judge,
    models,
    probe,
    rating,
    serving,
    simulate,
    study,
    voters,
)
from arena.errors import ArenaError, BrokenRecordError
from arena.terminal import say
from judge.errors import CallError
from rating.errors import ConvergenceError, NotIdentifiedError, RatingError

UNDETERMINED = (NotIdentifiedError, ConvergenceError, BrokenRecordError)
"""The input can be read, but does not give what was asked: exit 3; everything else is 2."""

cli = typer.Typer(
    help="Blind battles between language models, votes, and ratings with honest intervals.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for group in (serving, data, simulate, rating, voters):
    cli.add_typer(group.cli)
cli.add_typer(models.cli, name="models")
cli.add_typer(judge.cli, name="judge")
cli.add_typer(study.cli, name="study")
cli.add_typer(probe.cli, name="probe")


def main() -> None:
    """Run the command; what goes wrong is said in one line, with a non-zero exit."""
    try:
        cli()
    except (ArenaError, CallError, RatingError) as error:
        say(f"arena: {error}", error=True)
        sys.exit(3 if isinstance(error, UNDETERMINED) else 2)
