"""`arena newcomer`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from arena.commands.arguments import AS_IT_IS, Flat, Renamed, TableOrJson
from arena.terminal import plain, show, table, warnings, working, write_json
from judge.studies.newcomer import NewcomerOptions

if TYPE_CHECKING:
    from judge.studies.newcomer import Newcomer


def newcomer(
    *,
    votes: str,
    verdicts: str,
    model: str,
    options: Annotated[NewcomerOptions, Flat] = NewcomerOptions(),  # noqa: B008 - it is frozen
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    form: TableOrJson = "table",
) -> None:
    """Rate a model that people have not voted on by a judge, with an interval.

    The judge's ratings of known models are compared with people's ratings of them: the line
    between the two, and the scatter around it, give the new model's rating by people and its
    interval. There is no interval under 8 known models (--fewest-known), and no rating where the
    judge is not shown to tell models apart. Exit codes: 2 for options or files that cannot be
    used, 3 for votes or verdicts that give no rating.

    Parameters
    ----------
    votes
        Votes of people: a file, folder or pattern, or the URL of the arena's database.
    verdicts
        Verdicts of one judge or several: a file, folder or pattern. Read are preference, score_a
        and score_b, or confidence, the first that is there; else the verdicts alone.
    model
        The new model.
    form
        How to write it.

    Examples
    --------
    arena newcomer --votes votes.parquet --verdicts verdicts.parquet --model umber
    arena newcomer --votes votes.parquet --verdicts verdicts.parquet --model umber --format json
    """
    from arena.boards.fitted import votes_of  # help would wait for duckdb
    from judge.studies.newcomer import rate_newcomer
    from rating.tables.sources import shared

    with working("Rating"):
        people = [] if "://" in votes else [chosen.votes(votes)]
        *cast, given = shared([*people, chosen.votes(verdicts)])
        source = cast[0] if cast else votes_of(votes)
        named = replace(options, anchors=_names(options.anchors), own=_names(options.own))
        result = rate_newcomer(source, given, model, named)
    if form == "json":
        write_json(result.to_dict())
    else:
        _show(result)


def _names(words: Sequence[str]) -> tuple[str, ...]:
    """Part names that stand in one word, with commas."""
    return tuple(name for word in words for name in word.split(","))


def _show(result: "Newcomer") -> None:
    first, *more = result.sentences
    rows = []
    for row in result.board:
        hollow = row["by"] == "judge only"
        known = row["lower"] is not None
        interval = f"{row['lower']:.0f} to {row['upper']:.0f}" if known else "–"
        mark = "○" if hollow else "●"
        rows.append((f"{mark} {row['model']}", f"{row['rating']:.0f}", interval, row["by"]))
    head = ("Model", "Rating", f"{100 * result.level:g}%", "By")
    show(plain(first, style="bold"), plain(" ".join(more)), table(head, rows))
    show(*warnings(result.warnings))
