"""`arena race`."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from arena.commands.arguments import EVERY_ROW, Chosen, Columns, Flat, TableOrJson
from arena.terminal import plain, show, table, working, write_json
from rating.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rating.rows import VoteRows
    from rating.tables.files import Files
    from rating.tables.log import LoggedVotes
    from rating.uncertainty.race import Race
    from rating.uncertainty.sequence import Lead

SHOWN = 8
"""Looks in the table on a terminal; JSON holds all."""


@Parameter(n_tokens=1)
def two_models(_kind: Any, words: "tuple[Token, ...]") -> tuple[str, str]:
    """Read the value of ``--between``."""
    first, comma, second = words[0].value.partition(",")
    if not (first.strip() and comma and second.strip()):
        msg = f"cannot read {words[0].value!r}: write two models, as in basalt,quartz."
        raise ValueError(msg)
    return first.strip(), second.strip()


Between = Annotated[tuple[str, str], Parameter(metavar="MODEL,MODEL", converter=two_models)]


def race(
    source: list[str],
    /,
    *,
    between: Between,
    until: Literal["separated", "budget"] = "separated",
    budget: int | None = None,
    verdicts: str | None = None,
    judge: str | None = None,
    looks: Literal["any"] | int = "any",
    planned: int | None = None,
    columns: Columns = (),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    level: float = 0.95,
    form: TableOrJson = "table",
) -> None:
    """Test, vote by vote, whether two models are separated, and stop as soon as they are.

    At most 5% of races of equal models are ever separated. Exit codes: 2 for options or votes
    that cannot be used, 3 for votes that identify nothing.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl), or database URL such as
        sqlite:///arena.db.
    between
        The two models.
    until
        Stop as soon as they are separated, or look at all votes up to the budget.
    budget
        So many votes at most.
    verdicts
        Verdicts of a judge, also on battles without a vote, that make the lead more precise, as in
        arena gate: a file, folder or pattern. Votes are then taken in the order of their file.
    judge
        Whose verdicts, where the file holds those of several judges.
    looks
        How often the votes are looked at: any number of times, without end (any), or so many
        times, after equal parts of the planned votes. Fewer looks have more power.
    planned
        Votes on either model that are planned, to be fixed before the first look: later votes are
        not used if looks are numbered. 2,000 by default; for a single look all votes.
    columns
        Read a role from the column of this name, as in voter=user; again for more.
    level
        Of the interval at all looks together.
    form
        How to write it.

    Examples
    --------
    arena race votes.parquet --between gpt-4,claude-1
    arena race votes.parquet --between gpt-4,claude-1 --until budget --budget 5000 --format json
    """
    from rating.uncertainty.race import run_race

    with working("Racing"):
        files = chosen.source(source, columns)
        votes, judged = _votes(files, columns, between, verdicts, judge)
        result = run_race(
            votes,
            between,
            judged,
            stop=until == "separated",
            budget=budget,
            looks=looks,
            planned=planned,
            level=level,
        )
    if form == "json":
        write_json(result.to_dict())
    else:
        _show(result)


def _votes(
    source: "Files | LoggedVotes",
    columns: Columns,
    between: tuple[str, str],
    verdicts: str | None,
    judge: str | None,
) -> "tuple[VoteRows, Callable[[int], tuple[Lead, float]] | None]":
    if verdicts is not None:
        from judge.studies.racing import race_with_judge

        if columns:
            msg = "--column and --verdicts do not go together: rename the columns of the votes."
            raise DataError(msg)
        return race_with_judge(source, verdicts, between, judge)
    if judge is not None:
        raise DataError(f"--judge {judge!r} has no verdicts: give them with --verdicts.")
    from rating.tables.columns import Columns as Named
    from rating.tables.columns import Reading
    from rating.tables.rows import read_rows

    reading = Reading(Named.named(columns), prompts=True, ordered=True)
    return read_rows(source, reading), None


def _show(result: "Race") -> None:
    every = max(1, len(result.looks) // SHOWN)
    looks = [*result.looks[:-1:every], *result.looks[-1:]]
    rows = [
        (f"{x.voters:,}", f"{x.votes:,}", f"{x.lead:+.0f}", f"{x.lower:+.0f} to {x.upper:+.0f}")
        for x in looks
    ]
    head = ("Voters", "Votes", f"Lead of {result.between[0]}", f"{100 * result.level:g}% interval")
    show(plain(result.sentence, style="bold"))
    if rows:
        show(table(head, rows))
