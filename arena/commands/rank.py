"""`arena rank`."""

from typing import TYPE_CHECKING, Annotated

from arena.commands.arguments import AS_IT_IS, Flat, Renamed, TableOrJson
from arena.terminal import interval, ranks, show, table, warnings, working, write_json

if TYPE_CHECKING:
    from rating.rankings import RankedModel, RankedReport


def rank(
    source: list[str],
    /,
    *,
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    level: float = 0.95,
    form: TableOrJson = "table",
) -> None:
    """Rate models by rankings of two answers or more, with ties, by Plackett-Luce.

    A row is a ranking, its column 'ranking' as in 'a > b = c': the best first, even ones joined.
    With the columns 'voter' and 'prompt_id' intervals are clustered by voter and prompt. Exit
    codes: 2 for options or rankings that cannot be used, 3 for rankings that identify nothing.

    Parameters
    ----------
    source
        Files, folders or patterns of rankings (.parquet, .csv, .jsonl).
    level
        Of the intervals.
    form
        How to write it.

    Examples
    --------
    arena rank rankings.csv
    arena rank rankings.csv --column ranking=order --column voter=rater --format json
    """
    from rating.rankings import rate_rankings
    from rating.tables.rankings import read_rankings

    with working("Rating"):
        report = rate_rankings(read_rankings(chosen.votes(*source)), level=level)
    if form == "json":
        write_json(report.to_dict())
    else:
        _show(report)


def _show(report: "RankedReport") -> None:
    head = ("Model", "Rating", f"{100 * report.level:g} %", "Ranks", "Rankings", "First")
    show(table(head, map(_row, report.models)), *warnings(report.warnings))


def _row(row: "RankedModel") -> tuple[str, ...]:
    ends = interval(row.lower, row.upper, ".0f")
    places = ranks({"rank_low": row.rank_low, "rank_high": row.rank_high})
    return row.model, f"{row.rating:.0f}", ends, places, f"{row.rankings:,}", f"{row.first:,}"
