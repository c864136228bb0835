"""Commands on ratings: `arena rate`, `plan`, `voters`, `mix`, `value`, `factors` and others."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console, RenderableType

from arena import terminal
from arena.commands.arguments import (
    AS_IT_IS,
    EVERY_ROW,
    SPARK,
    Anchor,
    Chosen,
    Columns,
    File,
    Flat,
    Renamed,
    Shares,
    TableOrJson,
    TaggerName,
    policy_named,
    require_folder_of,
)
from arena.domain.vote import DEFAULT
from arena.terminal import (
    interval,
    plain,
    present,
    ranks,
    say,
    show,
    table,
    warnings,
    working,
    write,
    write_json,
)
from rating.errors import DataError
from rating.options import KAPPAS, RateOptions
from rating.sentences import plural
from rating.tables import formats

if TYPE_CHECKING:
    from rich.console import RenderableType

    from judge.labels.safety import Mode, Rate, SafetyTable, What
    from judge.studies.gold import VoterAccuracy
    from rating.factors import Additivity, FactorLevel, FactorReport
    from rating.rankings import RankedModel
    from rating.remarks import IntentByModel, ReasonEffect, ReasonShare, RemarkReport
    from rating.tables.voter_report import CheckedVoter, VotersReport
    from rating.value import Taken, Value


# arena rate, arena plan and arena voters

EVERY_EVAL_EVER = "every-eval-ever"
RATE_FORMATS = (*formats.BOARD_FORMATS, EVERY_EVAL_EVER)
VOTERS_FORMATS = ("table", "json", "csv", "parquet")
OF_GOLD = ("right", "answered", "accuracy", "lower", "upper")
SHOWN = 10
"""Voters without a flag in the table on a terminal; the other formats hold everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(RateOptions):
    """Options of a rating, two of which are written with an equals sign."""

    columns: Columns = ()
    anchor: Anchor = None


PLANNED = "^(options|ties|both_bad|cluster|ridge|since|until|columns|level)$"
"""What of them a plan takes."""


def rate(
    source: list[str],
    /,
    *,
    options: Annotated[_Options, Flat] = _Options(),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    table: Annotated[str | None, Parameter(metavar="NAME")] = None,
    tagger: TaggerName = None,
    form: Annotated[str | None, Parameter(name="--format", choices=RATE_FORMATS)] = None,
    out: File = None,
    compare: Annotated[Path | None, Parameter(metavar="OLD.json")] = None,
    plots: Annotated[Path | None, Parameter(metavar="PATH")] = None,
) -> None:
    """Rate models from pairwise votes, with confidence intervals clustered by voter and prompt.

    Exit codes: 2 invalid options or votes, 3 the votes do not identify ratings.

    Parameters
    ----------
    source
        Vote files, folders or patterns (.parquet, .csv, .jsonl); a database URL such as
        sqlite:///arena.db; a Spark master such as spark://host:7077, with --table; or `samples`
        for simulated example votes.
    table
        Spark table, or path of Parquet files that the cluster reads.
    form
        Output format; by default that of the extension of --out. every-eval-ever writes one file
        per model to the folder --out.
    out
        Output file.
    compare
        Show changes from this board: JSON of `arena rate`, or every_eval_ever files.
    plots
        Also plot the board to this folder; with --by, to one folder per value in it.

    Examples
    --------
    arena rate votes.parquet
    arena rate votes.parquet --interval bootstrap --format json --out board.json
    """
    logs = out if form == EVERY_EVAL_EVER else None
    if form == EVERY_EVAL_EVER:
        if out is None:
            raise DataError(f"{EVERY_EVAL_EVER} has one file per model: name a folder with --out.")
        if options.by is not None or compare is not None:
            raise DataError(f"{EVERY_EVAL_EVER} writes one board: omit --by and --compare.")
    else:
        form = formats.chosen_format(form, out)
    require_folder_of(out)
    if table is not None and plots is not None:
        raise DataError("--plots draws votes of files: omit it with --table.")
    from rating.likelihood import one_thread
    from rating.tables.counts import rate_source

    old = None
    if compare is not None:
        from rating.tables.voter_report import read_board

        old = read_board(compare)
        if options.by is not None:
            msg = f"--compare takes one board, and --by {options.by!r} makes one for every value: "
            raise DataError(msg + "drop one.")
    with working("Rating") as advance:
        votes: object
        if table is None or tagger is not None:
            votes = chosen.source(source, options.columns, tagger)
        else:
            votes = chosen.table(table, source, dict(options.columns).get("winner"))
        result = one_thread(rate_source)(votes, options, advance).to_dict()
    if plots is not None:
        from rating.charts.plots import draw_boards

        draw_boards(plots, votes, options, result, datetime.now(UTC).date())
    if form != "table":
        for value, why in result.get("not_rated", {}).items():
            say(f"arena: {options.by} {value!r} is excluded. {why}", error=True)
    if old is not None:
        from rating.tables.voter_report import compare as moves_between

        result = moves_between(old, result)
    if logs is not None:
        from rating.tables.formats import SCHEMA, write_logs

        paths = write_logs(result, logs, datetime.now(UTC), _developers(source[0]))
        say(f"{logs}: {plural(len(paths), 'file')} as every_eval_ever {SCHEMA} has them.")
        say(
            "Unknown raters, producers and deployments are written as 'unknown': add what you "
            "know before you share the files."
        )
    else:
        _write_board(result, form, out)


def plan(
    source: list[str],
    /,
    *,
    options: Annotated[_Options, Flat, Parameter(parse=PLANNED)] = _Options(),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    form: TableOrJson = "table",
) -> None:
    """Estimate how many more votes separate neighbours on the board with 80% power.

    Parameters
    ----------
    source
        Vote files, folders or patterns (.parquet, .csv, .jsonl), or a database URL such as
        sqlite:///arena.db.
    form
        Output format.

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
    present(result, form, lambda plan: show(terminal.plan(plan)))


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
    """Detect suspicious voters: random, biased or coordinated votes.

    Shows the evidence, a suggested weight of 0 or 1 and the reason for each voter. Nothing is
    deleted. All voters are also searched for coordinated groups that promote or demote one model.
    The false-positive rate is an average over honest voters whose preferences (random effects)
    are normal with the fitted standard deviation. Exit code 2: invalid options or votes.

    Parameters
    ----------
    source
        Vote files, folders or patterns (.parquet, .csv, .jsonl) with voter ids, or a database URL.
    columns
        Read one of our columns from theirs, such as voter=user; repeatable.
    alpha
        False-positive rate per voter.
    least
        Test only voters with at least this many decisive votes.
    form
        Output format.
    out
        Output file.
    weighted
        Write the votes to this file, with a column voter_weight for weighted ratings.
    apply
        Exclude the votes of jointly flagged voters, and of coordinated groups on their model, from
        the leaderboard of this database; `arena readmit` reverses it. A rule that would exclude
        more than a fifth of the votes is suspended.

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
        msg = f"--apply writes to a database, and {' '.join(source)!r} is not one: name its URL."
        raise DataError(msg)
    if apply and policy_named(chosen.policy) is not DEFAULT:
        msg = f"--apply excludes votes from {DEFAULT.name}: omit --policy {chosen.policy!r}."
        raise DataError(msg)
    with working("Examining the voters"):
        votes = chosen.source(source, columns)
        report = check_source(votes, named, alpha=alpha, least=least)
    if apply:
        from arena.boards import integrity
        from arena.store.store import Store
        from rating.tables.voter_report import MOST

        with closing(Store(source[0])) as store:
            applied = integrity.apply(store, report, datetime.now(UTC))
        for done in applied:
            words = f"{plural(done['votes'], 'vote')} of {plural(done['voters'], 'voter')}"
            if done["held"]:
                say(
                    f"Rule {done['rule']!r} is suspended: with these {words} it would exclude "
                    f"{100 * done['share']:.0f}% of all votes, more than {100 * MOST:.0f}%. "
                    "Inspect them first, and see arena exclude.",
                    error=True,
                )
            else:
                say(f"Rule {done['rule']!r}: {words} are excluded now.", error=True)
    if weighted is not None:
        write_weighted(votes, report, weighted, named)
    on_gold = _on_gold(source)
    result = report.to_dict()
    for row in result["voters"]:
        gold = on_gold.get(row["voter"])
        row |= {f"gold_{name}": getattr(gold, name, None) for name in OF_GOLD}
    if form == "parquet" and out is not None:
        formats.write_parquet(result["voters"], out)
    elif form == "table":
        _show_voters(report, on_gold)
    else:
        text = formats.as_json(result) if form == "json" else formats.as_csv(result["voters"])
        write(text) if out is None else formats.write_text(text, out)


def _developers(source: str) -> dict[str, str]:
    """Give the organisations behind the models of a database; none of files."""
    if "://" not in source or source.startswith(SPARK):
        return {}
    from arena.store.engine import reading_existing
    from arena.store.log import model_rows

    with reading_existing(source) as session:
        return {row["model"]: row["organisation"] for row in model_rows(session)}


def _write_board(result: Mapping[str, Any], form: str, out: Path | None) -> None:
    """Print a board or a comparison, or write it to a file."""
    if form == "parquet" and out is not None:
        formats.write_parquet(formats.rows_of(result), out)
    elif form == "table":
        shapes = {"moved": terminal.moves, "envelope": terminal.mix}
        lay_out = next((shapes[key] for key in shapes if key in result), terminal.board)
        grid = lay_out(result)
        if out is None:
            show(grid)
            return
        page = io.StringIO()
        Console(width=100, file=page).print(grid)
        formats.write_text(page.getvalue(), out)
    else:
        text = formats.as_text(result, form)
        write(text) if out is None else formats.write_text(text, out)


def _form_of_voters(form: str | None, out: Path | None) -> str:
    endings = {".json": "json", ".csv": "csv", ".parquet": "parquet"}
    if out is not None and form is None and out.suffix not in endings:
        msg = f"Cannot write voters as {str(out)!r}: choose one of table, json, csv, parquet."
        raise DataError(msg)
    chosen = form or ("table" if out is None else endings[out.suffix])
    if chosen == "parquet" and out is None:
        raise DataError("Parquet is not for a terminal: name a file with --out.")
    if chosen == "table" and out is not None:
        raise DataError(f"A table is for a terminal: write {str(out)!r} as json, csv, parquet.")
    return chosen


def _on_gold(source: Sequence[str]) -> "dict[str, VoterAccuracy]":
    """Give the accuracies of the voters of a database on its gold battles; none of files."""
    if "://" not in source[0]:
        return {}
    from arena.store.engine import reading_existing
    from arena.store.log import gold_votes
    from judge.studies.gold import accuracies

    with reading_existing(source[0]) as session:
        return {one.voter: one for one in accuracies(gold_votes(session))}


def _show_voters(report: "VotersReport", on_gold: "Mapping[str, VoterAccuracy]") -> None:
    rest = [voter for voter in report.voters if voter.examined and not voter.flagged]
    head = (
        f"{plural(report.votes, 'vote')} by {plural(len(report.voters), 'voter')}. "
        f"{len(report.flagged) + len(rest):,} are examined, {len(report.flagged):,} are "
        "flagged. All voters, with reasons: --format csv."
    )
    shown = [*report.flagged, *rest[:SHOWN]]
    columns = ["Voter", "Votes", "Evidence (log)", "Flagged at", "Jointly", "Weight"]
    rows: list[tuple[str, ...]] = [_cells(voter) for voter in shown]
    if on_gold:
        columns.append("Gold")
        rows = [(*row, _on_gold_cell(on_gold.get(row[0]))) for row in rows]
    rows = [(*row, _suspicion(voter)) for row, voter in zip(rows, shown, strict=True)]
    right = range(1, len(columns))
    grid = terminal.table([*columns, "Most similar pattern"], rows, right=right)
    show(plain(head), *([grid] if shown else []), *map(plain, report.notes))


def _cells(voter: "CheckedVoter") -> tuple[str, ...]:
    return (
        voter.voter,
        f"{voter.votes:,}",
        f"{voter.max_log_e:.1f}",
        "–" if voter.flagged_at is None else plural(voter.flagged_at, "vote"),
        "yes" if voter.flagged_jointly else "–",
        f"{voter.weight:g}",
    )


def _on_gold_cell(one: "VoterAccuracy | None") -> str:
    if one is None:
        return "–"
    ends = f"{100 * one.lower:.0f}–{100 * one.upper:.0f}"
    return f"{one.right:,}/{one.answered:,}, {100 * one.accuracy:.0f}% ({ends})"


def _suspicion(voter: "CheckedVoter") -> str:
    if voter.leading is None:
        return "an honest voter"
    return voter.leading if voter.model is None else f"{voter.leading} of {voter.model}"


# arena mix

TAKEN = "^(options|both_bad|cluster|half_life|since|until|columns|seed|level|scale|mean|anchor)$"
"""What of a rating's options a mix takes."""

DEFAULTS = _Options()


def mix(
    source: list[str],
    /,
    *,
    given: Shares = (),
    by: str = "category",
    kappa: tuple[float, ...] = (),
    weights: Literal["pool", "mix"] = "pool",
    options: Annotated[_Options, Flat, Parameter(parse=TAKEN)] = DEFAULTS,
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    tagger: TaggerName = None,
    form: Annotated[str | None, Parameter(name="--format", choices=formats.BOARD_FORMATS)] = None,
    out: File = None,
) -> None:
    """Reweight ratings to your own prompt mix, and show how much ranks depend on the mix.

    Exit codes: 2 invalid options, prompts or votes, 3 the votes do not identify ratings.

    Parameters
    ----------
    source
        A file of your own prompts, followed by vote files, folders or patterns with a category
        column; with --mix, votes only. Prompts have the same column, or are labelled by rules: one
        prompt per line, or a table with a column `prompt`.
    given
        Category weights instead of prompts, such as coding=0.5,writing=0.5; they need not sum to
        1.
    by
        Category column of votes and prompts.
    kappa
        Show the ranks that each model can reach if no category's weight exceeds this multiple of
        its share of the votes; repeatable. Default: 1.5, 2 and 8.
    weights
        Combine pooled ratings per category, or reweight votes.
    form
        Output format; by default that of the extension of --out.
    out
        Output file.

    Examples
    --------
    arena mix prompts.csv votes.parquet
    arena mix votes.parquet --mix coding=0.5,writing=0.5 --format json
    """
    form = formats.chosen_format(form, out)
    require_folder_of(out)
    if not given and len(source) < 2:
        msg = "Name a file of your own prompts before the votes, or give --mix CATEGORY=SHARE,..."
        raise DataError(msg)
    from judge.labels.files import mix_of  # numpy takes a quarter of a second
    from rating.mix import Mix
    from rating.tables.counts import rate_mix_of

    options = replace(options, by=by, pool=True)
    with working("Rating"):
        own = Mix.of_shares(dict(given)) if given else mix_of(source[0], by)
        votes = chosen.source(source if given else source[1:], options.columns, tagger)
        board = rate_mix_of(
            votes, own, options, kappas=kappa or KAPPAS, reweighted=weights == "mix"
        )
    _write_board(board.to_dict(), form, out)


# arena value

VALUE_COLUMNS = "^(options|both_bad|cluster|since|until|columns|seed|level|scale|mean|anchor)$"
"""What of a rating's options a value takes."""


HEADS: "Mapping[tuple[What, Mode], str]" = {
    ("refusal", "does"): "Refuses",
    ("over_refusal", "does"): "Refuses benign",
    ("over_refusal", "can"): "Refuses benign (can)",
    ("compliance", "does"): "Complies (does)",
    ("compliance", "can"): "Complies (can)",
}


def value(
    source: list[str],
    /,
    *,
    safety: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    options: Annotated[_Options, Flat, Parameter(parse=VALUE_COLUMNS)] = DEFAULTS,
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    form: TableOrJson = "table",
    out: File = None,
    plot: Annotated[Path | None, Parameter(metavar="FILE")] = None,
) -> None:
    """Compare ratings with the cost and latency of answers.

    Costs are compared within battles, with intervals clustered by voter and prompt. Votes need the
    columns cost_a and cost_b (US dollars per answer), or seconds_a and seconds_b. A model without
    a price has no cost, rather than a cost of 0.
    Exit codes: 2 invalid options or votes, 3 the votes do not identify ratings.

    Parameters
    ----------
    source
        Vote files, folders or patterns (.parquet, .csv, .jsonl), or a database URL such as
        sqlite:///arena.db.
    safety
        Also show refusal rates: JSON of `arena safety`, or a folder of such files.
    form
        Output format.
    out
        Output file (JSON).
    plot
        Plot ratings against costs to this file: .png, .svg or .html.

    Examples
    --------
    arena value votes.parquet --safety safety.json
    arena value votes.parquet --plot value.svg
    """
    require_folder_of(out, plot)
    from judge.labels.safety import read_safety
    from rating.tables.columns import Reading
    from rating.tables.counts import read_figures
    from rating.value import value as valued

    refusals = None if safety is None else read_safety(safety)
    with working("Rating"):
        votes = chosen.source(source, options.columns)
        board = valued(*read_figures(votes, Reading.of(options)), options)
    rated = [row.model for row in board.models]
    result = board.to_dict() | ({} if refusals is None else {"safety": refusals.to_dict(rated)})
    if plot is not None:
        from rating.charts.plots import quality_and_cost

        quality_and_cost(result, made=datetime.now(UTC).date()).write(plot)
    on_refusals = () if refusals is None else _refusals(refusals, rated)
    present(result, form, lambda _: _show(board, on_refusals), out)


TAKES = {"cost": "$ per 1,000", "seconds": "Seconds"}


def _show(board: "Value", refusals: "Iterable[RenderableType]") -> None:
    there = [name for name in TAKES if any(getattr(row, name) for row in board.models)]
    heads = [head for name in there for head in (TAKES[name], "Dominated by")]
    rows = [
        [row.model, f"{row.rating:.0f} ({row.lower:.0f}–{row.upper:.0f})"]
        + [cell for name in there for cell in _value_cells(getattr(row, name))]
        for row in board.models
    ]
    about = (
        f"{board.report.votes.used:,} votes. Dominated by: another model that is rated higher "
        "and needs no more of this resource; simultaneous 95% level over all pairs of models "
        "for both comparisons."
    )
    figures = [getattr(row, name) for name in there for row in board.models]
    if any(one is not None and not one.varies for one in figures):
        about += " A figure without an interval did not vary: its error is not estimated."
    show(
        plain(about),
        terminal.table(["Model", "Rating", *heads], rows),
        *map(plain, board.in_words()),
        *refusals,
        *terminal.warnings(board.warnings),
    )


def _refusals(table: "SafetyTable", rated: list[str]) -> "Iterator[RenderableType]":
    """Lay out what models refuse, the best rated first; models on few prompts have a star."""
    yield plain("\nPercent of prompts, corrected for errors of the reader if these are known:")
    rows = [
        [model, *(cell(table.rates[model].get(name)) for name in table.columns)]
        for model in table.order(rated)
    ]
    yield terminal.table(["Model", *(HEADS[name] for name in table.columns)], rows)
    if any(rate.is_few for each in table.rates.values() for rate in each.values()):
        yield plain("*: too few prompts for more than an indication.")
    yield from map(plain, table.in_words(rated))


def _value_cells(taken: "Taken | None") -> tuple[str, str]:
    if taken is None:
        return "–", "–"
    value = f"{taken.value:.3g}"
    if taken.varies:
        value += f" ({taken.lower:.3g}–{taken.upper:.3g})"
    return value, taken.by or "–"


def cell(rate: "Rate | None") -> str:
    """Write a rate in per cent, corrected where its errors are known, with how many it is of."""
    if rate is None:
        return "–"
    one, known = rate.share, rate.corrected
    middle, low, high = one.rate, one.low, one.high
    if known is not None and known.value is not None and None not in (known.lower, known.upper):
        middle, low, high = known.value, known.lower or 0.0, known.upper or 0.0
    hint = "*" if rate.is_few else ""
    return f"{middle:.0%} ({low:.0%}–{high:.0%}) n {one.n:,}{hint}"


# arena factors

FACTOR_COLUMNS = (
    "^(options|ties|both_bad|cluster|order_effect|since|until|columns|seed|level|scale|mean)$"
)
"""What of a rating's options it takes."""
SURE = 0.05
"""Probability below which it is said that parts do not add up."""


def factors(
    source: list[str],
    /,
    *,
    by: Annotated[str, Parameter(metavar="FACTOR,FACTOR")] = "model,scaffold",
    options: Annotated[_Options, Flat, Parameter(parse=FACTOR_COLUMNS)] = DEFAULTS,
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    form: TableOrJson = "table",
) -> None:
    """Rate the parts of systems: the contribution of the model and of the scaffold.

    The strength of a system is the sum of the strengths of its parts. Also shows ratings of whole
    systems, and a test of additivity. Exit codes: 2 invalid options or votes, 3 the votes do not
    identify the parts.

    Parameters
    ----------
    source
        Vote files, folders or patterns (.parquet, .csv, .jsonl), or files of `arena study export`.
    by
        Factors, separated by commas: factor X is in the columns X_a and X_b. For a study of agent
        runs: base_model,scaffold.
    form
        Output format.

    Examples
    --------
    arena factors votes.csv --by model,scaffold
    arena factors runs.parquet --by base_model,scaffold --format json
    """
    from rating.factors import rate_factors
    from rating.likelihood import one_thread
    from rating.tables.columns import Reading
    from rating.tables.counts import read_factors

    names = [name.strip() for name in by.split(",") if name.strip()]
    with working("Rating"):
        votes, levels = read_factors(
            chosen.source(source, options.columns), names, Reading.of(options)
        )
        report = one_thread(rate_factors)(votes, levels, options)
    present(report, form, _factors_show)


def _factors_show(report: "FactorReport") -> None:
    interval = f"{100 * report.level:g}% interval"
    about = (
        f"{report.votes:,} votes on {len(report.sums)} systems. The model is additive; points "
        "relative to the average of each factor:"
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
    show(plain(about), *parts, plain("\nSystems separately", style="bold"), *_systems(report))
    show(plain(in_words(report.additivity)), *warnings(report.warnings))


def _level(row: "FactorLevel") -> tuple[str, ...]:
    ends = interval(row.lower, row.upper, "+z.0f")
    return row.level, f"{row.points:+z.0f}", ends, f"{row.systems:,}", f"{row.votes:,}"


def _systems(report: "FactorReport") -> "list[RenderableType]":
    if report.systems is None:
        return []
    rows = [
        (
            ranks(row.rank_low, row.rank_high),
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
        f"{100 * report.level:g}% interval",
        "Sum of parts",
        "Votes",
    )
    return [table(head, rows, right=(0, 2, 3, 4, 5)), *warnings(report.systems.warnings)]


def in_words(test: "Additivity") -> str:
    """Return whether parts add up, no stronger than the test does."""
    if test.p is None:
        return f"Additivity cannot be tested. {test.reason}"
    ways = "1 degree of freedom" if test.terms == 1 else f"{test.terms} degrees of freedom"
    if test.p < SURE:
        return (
            f"The effects are not additive (p {test.p:.3f}, {ways}): some models do better in "
            "some scaffolds than in others. Use the systems, not the effects."
        )
    return (
        f"No departure from additivity is found (p {test.p:.2f}, {ways}). With few votes, "
        "this is weak evidence for additivity."
    )


# arena rank


def rank(
    source: list[str],
    /,
    *,
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    level: float = 0.95,
    form: TableOrJson = "table",
) -> None:
    """Rate models from rankings of two or more answers, with ties (Plackett-Luce).

    Each row has a column `ranking` such as 'a > b = c', best first. With the columns `voter` and
    `prompt_id`, intervals are clustered by voter and prompt. Exit codes: 2 invalid options or
    rankings, 3 the rankings do not identify ratings.

    Parameters
    ----------
    source
        Ranking files, folders or patterns (.parquet, .csv, .jsonl).
    level
        Confidence level.
    form
        Output format.

    Examples
    --------
    arena rank rankings.csv
    arena rank rankings.csv --column ranking=order --column voter=rater --format json
    """
    from rating.rankings import rate_rankings
    from rating.tables.sources import read_rankings

    with working("Rating"):
        report = rate_rankings(read_rankings(chosen.votes(*source)), level=level)
    if form == "json":
        write_json(report.to_dict())
    else:
        head = ("Model", "Rating", f"{100 * report.level:g}%", "Ranks", "Rankings", "First")
        show(table(head, map(_row, report.models)), *warnings(report.warnings))


def _row(row: "RankedModel") -> tuple[str, ...]:
    ends = interval(row.lower, row.upper, ".0f")
    places = ranks(row.rank_low, row.rank_high)
    return row.model, f"{row.rating:.0f}", ends, places, f"{row.rankings:,}", f"{row.first:,}"


# arena reasons


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
    """Analyse voters' reasons: by model, by association with winning, and by intent.

    Shares are shrunk towards the other models. Associations with winning hold the models fixed;
    they describe what voters say about winners, not causes. Whether models do better when voters
    knew the answer is tested with errors clustered by voter and prompt.
    Exit code 2: invalid options or votes, or no reasons.

    Parameters
    ----------
    source
        Vote files, folders or patterns (.parquet, .csv, .jsonl) with the columns reasons_a,
        reasons_b and voter_intent, or a database URL such as sqlite:///arena.db.
    columns
        Read one of our columns from theirs, such as voter=user; repeatable.
    intents
        Two intents to compare.
    level
        Confidence level.
    form
        Output format.

    Examples
    --------
    arena reasons sqlite:///arena.db
    arena reasons votes.parquet --where before_reveal=1 --format json
    """
    from rating.tables.columns import Columns as Named  # numpy and duckdb take half a second
    from rating.tables.counts import report_source

    first, second = intents
    with working("Reading reasons"):
        votes = chosen.source(source, columns)
        named = Named.named(columns)
        report = report_source(votes, named, first=first, second=second, level=level)
    if form == "json":
        write_json(report.to_dict())
    else:
        known = ", ".join(f"{n:,} {name}" for name, n in report.intents.items()) or "none"
        about = (
            f"{plural(report.votes, 'vote')} by {plural(report.voters, 'voter')}; "
            f"{report.explained:,} with a reason. Intent: {known}."
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
    answers = {one.model: f"{one.answers:,}" for one in report.shares}
    rows = [
        (model, *(_share(cells[model, name]) for name in names), answers[model])
        for model in models
    ]
    head = plain("Share of each model's answers with a reason, shrunken:")
    return [head, table(("Model", *names, "Answers"), rows, right=range(1, len(names) + 2))]


def _share(one: "ReasonShare") -> str:
    share, lower, upper = (100 * value for value in (one.share, one.lower, one.upper))
    return f"{share:.0f}%\n{lower:.0f} to {upper:.0f}"


def _winning(effects: "tuple[ReasonEffect, ...]") -> "list[RenderableType]":
    rows = [
        (
            one.reason,
            f"{one.log_odds:+z.2f}",
            interval(one.lower, one.upper, "+z.2f"),
            f"{one.given:,}",
        )
        for one in sorted(effects, key=lambda one: -one.log_odds)
    ]
    head = plain("Association of reasons with being chosen, models held equal:")
    return [head, table(("Reason", "Log-odds", "Interval", "Votes"), rows, right=(1, 2, 3))]


def _intent(by: "IntentByModel") -> "list[RenderableType]":
    about = (
        f"Models by intent, {by.first} ({by.first_votes:,} votes) versus {by.second} "
        f"({by.second_votes:,}): {100 * by.size:.1f} points of preference share, "
        f"{by.points:.0f} points of rating (root mean square, noise subtracted); Wald chi2 "
        f"{by.chi2:.1f} on {by.df} df, p = {by.p:.3g}."
    )
    rows = [
        (
            one.model,
            f"{100 * one.first:.1f}%",
            f"{100 * one.second:.1f}%",
            f"{100 * one.difference:+z.1f}",
            interval(100 * one.lower, 100 * one.upper, "+z.1f"),
        )
        for one in by.models
    ]
    head = ("Model", by.first, by.second, "Difference", "Interval")
    return [plain(about), table(head, rows, right=range(1, 5))]
