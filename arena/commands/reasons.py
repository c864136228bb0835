"""`arena reasons`."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from arena.commands.arguments import EVERY_ROW, Chosen, Columns, Flat, TableOrJson
from arena.terminal import interval, plain, show, table, warnings, working, write_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rating.diagnosis.remarks import IntentByModel, ReasonEffect, ReasonShare, RemarkReport


def reasons(
    source: list[str],
    /,
    *,
    columns: Columns = (),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    intents: Annotated[tuple[str, str], Parameter(metavar="NAME")] = ("quizzing", "asking"),
    level: float = 0.95,
    form: TableOrJson = "table",
) -> None:
    """Say which reasons voters give for which models, which go with winning, and who quizzes.

    Shares are shrunken towards the other models; reasons and winning are compared between models
    held equal, and say what people say of winners, not what wins. Whether models fare differently
    where voters knew the answer is tested with voters and prompts left out one at a time.
    Exit code 2: options or votes that cannot be used, or votes without remarks.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl) with the columns reasons_a,
        reasons_b and voter_intent, or database URL such as sqlite:///arena.db.
    columns
        Read a role from the column of this name, as in voter=user; again for more.
    intents
        Two intents to compare models by.
    level
        Of each interval.
    form
        How to write it.

    Examples
    --------
    arena reasons sqlite:///arena.db
    arena reasons votes.parquet --where before_reveal=1 --format json
    """
    from rating.tables.columns import Columns as Named  # numpy and duckdb take half a second
    from rating.tables.rows import report_source

    first, second = intents
    with working("Reading the remarks"):
        votes = chosen.source(source, columns)
        named = Named.named(columns)
        report = report_source(votes, named, first=first, second=second, level=level)
    if form == "json":
        write_json(report.to_dict())
    else:
        _show(report)


def _show(report: "RemarkReport") -> None:
    known = ", ".join(f"{n:,} {name}" for name, n in report.intents.items()) or "none"
    about = (
        f"{report.votes:,} votes by {report.voters:,} voters; {report.explained:,} with a reason. "
        f"Intent: {known}."
    )
    show(
        plain(about),
        *_shares(report),
        *(_winning(report.winning) if report.winning else ()),
        *(_intent(report.intent) if report.intent else ()),
        *warnings(report.notes),
    )


def _shares(report: "RemarkReport") -> "list[RenderableType]":
    if not report.shares:
        return []
    names = list(dict.fromkeys(one.reason for one in report.shares))
    cells = {(one.model, one.reason): one for one in report.shares}
    models = sorted({one.model for one in report.shares})
    rows = [
        (model, *(_share(cells[model, name]) for name in names), f"{_answers(report, model):,}")
        for model in models
    ]
    head = plain("Of each model's answers, how many were given a reason, shrunken:")
    return [head, table(("Model", *names, "Answers"), rows, right=range(1, len(names) + 2))]


def _answers(report: "RemarkReport", model: str) -> int:
    return next(one.answers for one in report.shares if one.model == model)


def _share(one: "ReasonShare") -> str:
    share, lower, upper = (100 * value for value in (one.share, one.lower, one.upper))
    return f"{share:.0f} %\n{lower:.0f} to {upper:.0f}"


def _winning(effects: "tuple[ReasonEffect, ...]") -> "list[RenderableType]":
    rows = [
        (
            one.reason,
            f"{one.log_odds:+.2f}",
            interval(one.lower, one.upper, "+.2f"),
            f"{one.given:,}",
        )
        for one in sorted(effects, key=lambda one: -one.log_odds)
    ]
    head = plain("How reasons go with being chosen, models held equal:")
    return [head, table(("Reason", "Log-odds", "Interval", "Votes"), rows, right=(1, 2, 3))]


def _intent(by: "IntentByModel") -> "list[RenderableType]":
    about = (
        f"Models by intent, {by.first} ({by.first_votes:,} votes) against {by.second} "
        f"({by.second_votes:,}): {100 * by.size:.1f} points of preference share, {by.points:.0f} "
        f"of rating (root mean square, less noise); Wald chi2 {by.chi2:.1f} on {by.df}, "
        f"p = {by.p:.3g}."
    )
    rows = [
        (
            one.model,
            f"{100 * one.first:.1f} %",
            f"{100 * one.second:.1f} %",
            f"{100 * one.difference:+.1f}",
            interval(100 * one.lower, 100 * one.upper, "+.1f"),
        )
        for one in by.models
    ]
    head = ("Model", by.first, by.second, "Difference", "Interval")
    return [plain(about), table(head, rows, right=range(1, 5))]
