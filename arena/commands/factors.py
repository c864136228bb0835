"""`arena factors`."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from arena.commands.arguments import EVERY_ROW, Chosen, Flat, TableOrJson
from arena.commands.rating import Options
from arena.terminal import interval, plain, ranks, show, table, warnings, working, write_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rating.factors import Additivity, FactorLevel, FactorReport

TAKEN = "^(options|ties|both_bad|cluster|order_effect|since|until|columns|seed|level|scale|mean)$"
"""What of a rating's options it takes."""
DEFAULTS = Options()
SURE = 0.05
"""Probability below which it is said that parts do not add up."""


def factors(
    source: list[str],
    /,
    *,
    by: Annotated[str, Parameter(metavar="FACTOR,FACTOR")] = "model,scaffold",
    options: Annotated[Options, Flat, Parameter(parse=TAKEN)] = DEFAULTS,
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    form: TableOrJson = "table",
) -> None:
    """Rate systems by their parts: what the model adds to a system, and what the scaffold.

    The strength of a system is the sum of those of its parts. Beside it stand the plain ratings
    of whole systems, and a test of whether parts add up. Exit codes: 2 for options or votes that
    cannot be used, 3 for votes that do not tell the parts apart.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl), or of arena study export.
    by
        The factors, joined by commas: X is in the columns X_a and X_b. In an export of a study of
        agent runs: base_model,scaffold.
    form
        How to write it.

    Examples
    --------
    arena factors votes.csv --by model,scaffold
    arena factors runs.parquet --by base_model,scaffold --format json
    """
    from threadpoolctl import threadpool_limits

    from rating.factors import rate_factors
    from rating.tables.columns import Reading
    from rating.tables.counts import read_factors

    names = [name.strip() for name in by.split(",") if name.strip()]
    with working("Rating"), threadpool_limits(1, "blas"):
        votes, levels = read_factors(
            chosen.source(source, options.columns), names, Reading.of(options)
        )
        report = rate_factors(votes, levels, options)
    if form == "json":
        write_json(report.to_dict())
    else:
        _show(report)


def _show(report: "FactorReport") -> None:
    interval = f"{100 * report.level:g} % interval"
    about = (
        f"{report.votes:,} votes on {len(report.sums)} systems. A system is the sum of its parts; "
        "points against the average of each factor:"
    )
    parts = [
        part
        for name, levels in report.factors.items()
        for part in (
            plain(f"\n{name}", style="bold"),
            table(
                ("Level", "Points", interval, "Systems", "Votes"),
                map(_level, levels),
                right=(1, 2, 3, 4),
            ),
        )
    ]
    show(plain(about), *parts, plain("\nSystems, each by itself", style="bold"), *_systems(report))
    show(plain(in_words(report.additivity)), *warnings(report.warnings))


def _level(row: "FactorLevel") -> tuple[str, ...]:
    ends = interval(row.lower, row.upper, "+.0f")
    return row.level, f"{row.points:+.0f}", ends, f"{row.systems:,}", f"{row.votes:,}"


def _systems(report: "FactorReport") -> "list[RenderableType]":
    if report.systems is None:
        return []
    rows = [
        (
            ranks(row.to_dict()),
            row.model,
            f"{row.rating:.0f}",
            interval(row.lower, row.upper, ".0f"),
            f"{report.sums[row.model]:.0f}",
            f"{row.votes:,}",
        )
        for row in report.systems.ratings
    ]
    head = (
        "Ranks",
        "System",
        "Rating",
        f"{100 * report.level:g} % interval",
        "Sum of parts",
        "Votes",
    )
    return [table(head, rows, right=(0, 2, 3, 4, 5)), *warnings(report.systems.warnings)]


def in_words(test: "Additivity") -> str:
    """Say whether parts add up, no stronger than the test does."""
    if test.p is None:
        return f"Whether parts add up cannot be tested. {test.reason}"
    ways = "1 way to differ" if test.terms == 1 else f"{test.terms} ways to differ"
    if test.p < SURE:
        return (
            f"The parts do not add up (p {test.p:.3f}, {ways}): some models "
            "do better in some scaffolds than in others. Read the systems, not the parts."
        )
    return (
        f"No departure from adding up is shown (p {test.p:.2f}, {ways}). "
        "With few votes that is weak evidence that they do."
    )
