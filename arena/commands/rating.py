"""`arena rate`, `arena plan` and `arena voters`."""

import io
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console, RenderableType

from arena import terminal
from arena.commands.arguments import (
    EVERY_ROW,
    SPARK,
    Anchor,
    Chosen,
    Columns,
    File,
    Flat,
    Folder,
    TableOrJson,
    TaggerName,
    policy_named,
    require_folder_of,
)
from arena.domain.vote import DEFAULT
from arena.terminal import plain, say, show, working, write, write_json
from rating.errors import DataError
from rating.options import RateOptions
from rating.tables import formats

if TYPE_CHECKING:
    from judge.studies.gold_voters import VoterAccuracy
    from rating.tables.voter_report import CheckedVoter, VotersReport

EVERY_EVAL_EVER = "every-eval-ever"
RATE_FORMATS = (*formats.FORMATS, EVERY_EVAL_EVER)
VOTERS_FORMATS = ("table", "json", "csv", "parquet")
SHOWN = 10
"""Voters without a flag in the table on a terminal; the other formats hold everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(RateOptions):
    """Options of a rating, two of which are written with an equals sign."""

    columns: Columns = ()
    anchor: Anchor = None


PLANNED = "^(options|ties|both_bad|cluster|ridge|since|until|columns|level)$"
"""What of them a plan takes."""


def rate(
    source: list[str],
    /,
    *,
    options: Annotated[Options, Flat] = Options(),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    table: Annotated[str | None, Parameter(metavar="NAME")] = None,
    tagger: TaggerName = None,
    form: Annotated[str | None, Parameter(name="--format", choices=RATE_FORMATS)] = None,
    out: File = None,
    compare: Annotated[Path | None, Parameter(metavar="OLD.json")] = None,
    plots: Folder = None,
) -> None:
    """Rate the models of any votes, with intervals that allow for people who vote often.

    Exit codes: 2 for options or votes that cannot be used, 3 for votes that identify no rating.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl), or database URL such as
        sqlite:///arena.db; or the master of a Spark cluster, spark://host:7077, with --table; or
        the word samples: simulated votes to try it on.
    table
        Table of the cluster, or a path of Parquet files that it reads.
    form
        How to write it: as the file's ending says, by default. every-eval-ever writes a file a
        model into the folder --out.
    out
        File to write.
    compare
        Say who moved since this board, in JSON or in every_eval_ever's files.
    plots
        Draw the board there, too; with --by a folder a value.

    Examples
    --------
    arena rate votes.parquet
    arena rate votes.parquet --interval bootstrap --format json --out board.json
    """
    logs = out if form == EVERY_EVAL_EVER else None
    if form == EVERY_EVAL_EVER:
        _require_one_board(out, options.by, compare)
    else:
        form = formats.chosen_format(form, out)
    if out is not None:
        require_folder_of(out)
    if table is not None and plots is not None:
        raise DataError("--plots draws votes of files: with --table, leave it out.")
    from threadpoolctl import threadpool_limits

    from rating.tables.counts import rate_source

    old = None if compare is None else _old_board(compare, options.by)
    # On matrices of some hundred models, threads of linear algebra mostly wait for each other.
    with working("Rating") as advance, threadpool_limits(1, "blas"):
        votes: object
        if table is None or tagger is not None:
            votes = chosen.source(source, options.columns, tagger)
        else:
            votes = chosen.table(table, source, dict(options.columns).get("winner"))
        result = rate_source(votes, options, advance).to_dict()
    if plots is not None:
        from rating.charts.plots import draw_boards

        draw_boards(plots, votes, options, result, datetime.now(UTC).date())
    if form != "table":
        for value, why in result.get("not_rated", {}).items():
            say(f"arena: {options.by} {value!r} is left out. {why}", error=True)
    if old is not None:
        from rating.tables.compare import compare as moves_between

        result = moves_between(old, result)
    if logs is not None:
        _write_logs(result, logs, _developers(source[0]))
    else:
        write_board(result, form, out)


def plan(
    source: list[str],
    /,
    *,
    options: Annotated[Options, Flat, Parameter(parse=PLANNED)] = Options(),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    form: TableOrJson = "table",
) -> None:
    """Plan how many more votes separate neighbours on the board, with 80% power.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl), or database URL such as
        sqlite:///arena.db.
    form
        How to write it.

    Examples
    --------
    arena plan votes.parquet
    arena plan votes.parquet --format json
    """
    from rating.planning import plan as planned
    from rating.tables.columns import Reading
    from rating.tables.counts import read_votes

    with working("Planning"):
        votes = read_votes(chosen.source(source, options.columns), Reading.of(options))
        result = planned(votes.data, options)
    if form == "json":
        write_json(result.to_dict())
    else:
        show(terminal.plan(result))


def voters(
    source: list[str],
    /,
    *,
    columns: Columns = (),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    alpha: float = 0.05,
    least: int = 20,
    form: Annotated[str | None, Parameter(name="--format", choices=VOTERS_FORMATS)] = None,
    out: File = None,
    weighted: File = None,
    apply: bool = False,
) -> None:
    """Say which voters vote as somebody with a taste of their own would not.

    Evidence, a suggested weight of 0 or 1 and the reason, for each voter; nothing is deleted.
    All voters together are searched for rings: accounts that push one model, or vote it down.
    The chance of a false flag holds on average over voters whose tastes follow the fitted law.
    Exit code 2: options or votes that cannot be used.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl) that say who voted, or
        database URL.
    columns
        Read a role from the column of this name, as in voter=user; again for more.
    alpha
        Chance of flagging an honest voter.
    least
        Decisive votes from which a voter is examined.
    form
        How to write it.
    out
        File to write.
    weighted
        Write the votes there, with a column voter_weight to rate by.
    apply
        Leave the votes of voters flagged jointly, and of rings on their models, out of the
        leaderboard of this database, by rows that arena readmit takes back. A rule that would
        leave out more than a fifth of the votes is held.

    Examples
    --------
    arena voters votes.parquet
    arena voters votes.parquet --weighted weighted.parquet
    """
    from rating.tables.columns import Columns as Named  # numpy and duckdb take half a second
    from rating.tables.voter_report import check_source, write_weighted

    form = _form_of_voters(form, out)
    named = Named.named(columns)
    if apply and (len(source) != 1 or "://" not in source[0]):
        msg = f"--apply writes to a database, and {' '.join(source)!r} is none: name its URL."
        raise DataError(msg)
    if apply and policy_named(chosen.policy) is not DEFAULT:
        msg = f"--apply leaves votes out of {DEFAULT.name}: drop --policy {chosen.policy!r}."
        raise DataError(msg)
    with working("Examining the voters"):
        votes = chosen.source(source, columns)
        report = check_source(votes, named, alpha=alpha, least=least)
    if apply:
        _apply(source[0], report)
    if weighted is not None:
        write_weighted(votes, report, weighted, named)
    on_gold = _on_gold(source)
    result = report.to_dict()
    for row in result["voters"]:
        row |= _gold_columns(on_gold.get(row["voter"]))
    if form == "parquet" and out is not None:
        formats.write_parquet(result["voters"], out)
    elif form == "table":
        _show_voters(report, on_gold)
    else:
        text = formats.as_json(result) if form == "json" else formats.as_csv(result["voters"])
        write(text) if out is None else formats.write_text(text, out)


def _old_board(path: Path, by: str | None) -> Mapping[str, Any]:
    from rating.tables.compare import read_board

    board = read_board(path)
    if by is not None:
        msg = f"--compare takes one board, and --by {by!r} makes one for every value: drop one."
        raise DataError(msg)
    return board


def _require_one_board(out: Path | None, by: str | None, compare: Path | None) -> None:
    if out is None:
        raise DataError(f"{EVERY_EVAL_EVER} is a file a model: name a folder with --out.")
    if by is not None or compare is not None:
        raise DataError(f"{EVERY_EVAL_EVER} takes one board: drop --by and --compare.")


def _write_logs(result: Mapping[str, Any], folder: Path, developers: Mapping[str, str]) -> None:
    from rating.tables.every_eval_ever import SCHEMA, write_logs

    paths = write_logs(result, folder, datetime.now(UTC), developers)
    say(f"{folder}: {len(paths):,} files as every_eval_ever {SCHEMA} has them.")
    say(
        "Where who rates, who made a model or how it was deployed is not known, 'unknown' stands: "
        "write in what you know before you hand the files on."
    )


def _developers(source: str) -> dict[str, str]:
    """Give the organisations behind the models of a database; none of files."""
    if "://" not in source or source.startswith(SPARK):
        return {}
    from arena.store.engine import reading_existing
    from arena.store.log import model_rows

    with reading_existing(source) as session:
        return {row["model"]: row["organisation"] for row in model_rows(session)}


def write_board(result: Mapping[str, Any], form: str, out: Path | None) -> None:
    """Print a board or a comparison, or write it to a file."""
    if form == "parquet" and out is not None:
        formats.write_parquet(formats.rows_of(result), out)
    elif form == "table":
        shapes = {"moved": terminal.moves, "envelope": terminal.mix}
        lay_out = next((shapes[key] for key in shapes if key in result), terminal.board)
        grid = lay_out(result)
        show(grid) if out is None else formats.write_text(_page(grid), out)
    else:
        text = formats.as_text(result, form)
        write(text) if out is None else formats.write_text(text, out)


def _page(grid: RenderableType) -> str:
    page = io.StringIO()
    Console(width=100, file=page).print(grid)
    return page.getvalue()


def _form_of_voters(form: str | None, out: Path | None) -> str:
    endings = {".json": "json", ".csv": "csv", ".parquet": "parquet"}
    if out is not None and form is None and out.suffix not in endings:
        msg = f"Cannot write voters as {str(out)!r}: choose one of table, json, csv, parquet."
        raise DataError(msg)
    chosen = form or ("table" if out is None else endings[out.suffix])
    if chosen == "parquet" and out is None:
        msg = "Parquet is not for a terminal: name a file with --out."
        raise DataError(msg)
    if chosen == "table" and out is not None:
        msg = f"A table is for a terminal: write {str(out)!r} as json, csv, parquet."
        raise DataError(msg)
    return chosen


def _apply(url: str, report: "VotersReport") -> None:
    from arena.boards.integrity import apply
    from arena.store.store import Store
    from rating.tables.voter_report import MOST

    with closing(Store(url)) as store:
        applied = apply(store, report, datetime.now(UTC))
    for done in applied:
        words = f"{done.votes:,} votes of {done.voters:,} voters"
        if done.held:
            say(
                f"Rule {done.rule!r} is held: with these {words} it would leave out "
                f"{100 * done.share:.0f} % of all, more than {100 * MOST:.0f} %. Look at them "
                "first, and at arena exclude.",
                error=True,
            )
        else:
            say(f"Rule {done.rule!r}: {words} are left out from here on.", error=True)


def _on_gold(source: Sequence[str]) -> "dict[str, VoterAccuracy]":
    """Give the accuracies of the voters of a database on its gold battles; none of files."""
    if "://" not in source[0]:
        return {}
    from arena.store.engine import reading_existing
    from arena.store.gold import votes
    from judge.studies.gold_voters import accuracies

    with reading_existing(source[0]) as session:
        return {one.voter: one for one in accuracies(votes(session))}


def _gold_columns(one: "VoterAccuracy | None") -> dict[str, Any]:
    """Lay out an accuracy in columns; of nobody who answered, nulls."""
    names = ("right", "answered", "accuracy", "lower", "upper")
    return {f"gold_{name}": getattr(one, name, None) for name in names}


def _show_voters(report: "VotersReport", on_gold: "Mapping[str, VoterAccuracy]") -> None:
    rest = [voter for voter in report.voters if voter.examined and not voter.flagged]
    head = (
        f"{report.votes:,} votes by {len(report.voters):,} voters. "
        f"{len(report.flagged) + len(rest):,} are examined, {len(report.flagged):,} are flagged. "
        "Every voter, and the reasons in words: --format csv."
    )
    shown = [*report.flagged, *rest[:SHOWN]]
    columns = ["Voter", "Votes", "Evidence (log)", "Flagged at", "Jointly", "Weight"]
    rows: list[tuple[str, ...]] = [_cells(voter) for voter in shown]
    if on_gold:
        columns.append("Gold")
        rows = [(*row, _on_gold_cell(on_gold.get(row[0]))) for row in rows]
    rows = [(*row, _suspicion(voter)) for row, voter in zip(rows, shown, strict=True)]
    right = range(1, len(columns))
    grid = terminal.table([*columns, "Looks most like"], rows, right=right)
    show(plain(head), *([grid] if shown else []), *map(plain, report.notes))


def _cells(voter: "CheckedVoter") -> tuple[str, ...]:
    return (
        voter.voter,
        f"{voter.votes:,}",
        f"{voter.max_log_e:.1f}",
        "–" if voter.flagged_at is None else f"{voter.flagged_at:,} votes",
        "yes" if voter.flagged_jointly else "–",
        f"{voter.weight:g}",
    )


def _on_gold_cell(one: "VoterAccuracy | None") -> str:
    if one is None:
        return "–"
    ends = f"{100 * one.lower:.0f}–{100 * one.upper:.0f}"
    return f"{one.right:,}/{one.answered:,}, {100 * one.accuracy:.0f} % ({ends})"


def _suspicion(voter: "CheckedVoter") -> str:
    if voter.leading is None:
        return "an honest voter"
    return voter.leading if voter.model is None else f"{voter.leading} of {voter.model}"
