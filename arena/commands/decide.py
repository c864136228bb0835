"""Commands that decide between models: `arena compare`, `arena gate` and `arena race`."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from arena.commands.arguments import (
    AS_IT_IS,
    EVERY_ROW,
    Chosen,
    Columns,
    File,
    Flat,
    PolicyName,
    Renamed,
    TableOrJson,
    or_samples,
    policy_named,
)
from arena.terminal import plain, say, show, table, warnings, working, write, write_json
from rating.decide import GateOptions
from rating.errors import DataError
from rating.paired import CompareOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from judge.studies.gating import Verdicts
    from rating.decide import Lead
    from rating.rows import VoteRows
    from rating.tables.coding import LoggedVotes
    from rating.tables.files import Files


EXITS: Mapping[bool | None, int] = {True: 0, False: 1, None: 3}
STYLES: Mapping[bool | None, str] = {True: "bold green", False: "bold red", None: "bold yellow"}


# arena compare

AS_PAIRS = CompareOptions()


def compare(
    source: list[str],
    /,
    *,
    models: Annotated[tuple[str, ...], Parameter(metavar="A,B,C")] = (),
    options: Annotated[CompareOptions, Flat] = AS_PAIRS,
    columns: Columns = (),
    where: Annotated[str | None, Parameter(metavar="SQL")] = None,
    form: Annotated[
        Literal["table", "json", "csv", "markdown", "latex"], Parameter(name="--format")
    ] = "table",
) -> None:
    """Compare scored runs on the same items pair by pair, with intervals.

    Reads Inspect logs (.eval), samples of lm-eval and every_eval_ever, judge scores, and
    tables with the columns item, score and, where known, model, cluster and repeat. Exit codes: 0
    requirement met, 1 requirement ruled out, 2 invalid options or files, 3 inconclusive.

    Parameters
    ----------
    source
        Score files, folders or patterns. A folder, with its subfolders, is one run.
    models
        Models to compare; repeatable. The requirement is for the first; default: all, in file
        order.
    columns
        Read a role (item, model, score, cluster, repeat, metric) from this column, such as
        score=acc; repeatable.
    where
        Read only rows that satisfy this SQL condition on the file's own columns.
    form
        Output format; CSV has one row per pair.

    Examples
    --------
    arena compare new.csv old.csv
    arena compare new.csv old.csv --margin 0.02 --require not-worse --format markdown
    """
    from judge.tables.scored_items import compare as compared
    from rating.tables.files import visible
    from rating.tables.formats import comparison_tables, comparison_text

    with working("Comparing"):
        result = compared(*source, models=models, columns=columns, where=where, **asdict(options))
    report = result.to_dict()
    if form == "table":
        first, *more = result.sentences
        by_model, by_pair = comparison_tables(report)
        show(
            plain(visible(first), style=STYLES[result.passes]),
            *map(plain, map(visible, more)),
            table(by_model.head, by_model.rows),
            table(by_pair.head, by_pair.rows, range(2, len(by_pair.head))),
            *warnings(map(visible, result.warnings)),
        )
    else:
        write(comparison_text(report, form))
        for text in result.warnings if form == "csv" else ():
            say(f"arena: {text}", error=True)
    sys.exit(EXITS[result.passes])


# arena gate


def gate(
    votes: str,
    verdicts: str | None = None,
    /,
    *,
    options: Annotated[GateOptions, Flat],
    judge: str | None = None,
    certificate: File = None,
    policy: PolicyName = None,
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    form: Annotated[Literal["table", "json", "md", "junit"], Parameter(name="--format")] = "table",
    out: Annotated[Path | None, Parameter(metavar="DIR")] = None,
) -> None:
    """Test whether a candidate is better than an incumbent, non-inferior or worse (release gate).

    Over the declared looks, a wrong result has a probability of at most 1 minus the level
    (asymptotic), unless a judge decides (--certificate); --looks 1 has the most power. Looks are
    not recorded. Exit codes: 0 requirement met, 1 requirement ruled out, 2 invalid options or
    files, 3 inconclusive.

    Parameters
    ----------
    votes
        Human votes: a file, folder or pattern, or a database URL.
    verdicts
        Verdicts of a judge on the same and further items, which may increase precision: a file,
        folder or pattern.
    judge
        Judge to use, if the file has several.
    certificate
        Validation certificate of `arena study judge`: if there are too few votes, the judge
        decides alone, and the result says so.
    form
        Output format: text, JSON, Markdown for a pull request, or JUnit XML for CI.
    out
        Folder for all formats: gate.json, gate.md and gate.xml.

    Examples
    --------
    arena gate --candidate umber --incumbent basalt --margin 20 votes.csv
    arena gate --candidate umber --incumbent basalt --margin 20 votes.csv verdicts.csv --out gate
    arena gate --candidate umber --incumbent basalt --margin 20 --require better votes.csv
    arena gate --candidate umber --incumbent basalt --margin 20 --looks 5 --planned 4000 votes.csv
    """
    from datetime import UTC, datetime

    from judge.studies.gating import ask
    from rating.tables.formats import gate_texts, make_folder, write_text

    with working("Asking"):
        source, given = _sources(votes, verdicts, policy, chosen)
        beside = _verdicts(given, judge, certificate)
        result = ask(source, options, beside, today=datetime.now(UTC).date())
    texts = gate_texts(result)
    if out is not None:
        make_folder(out)
        for ending, text in texts.items():
            write_text(text, out / f"gate.{ending}")
    if form == "table":
        first, *more = result.sentences
        show(plain(first, style=STYLES[result.passes]))
        show(*map(plain, (*more, f"Based on {result.rests_on}.")), *warnings(result.warnings))
    else:
        write(texts["xml" if form == "junit" else form])
    sys.exit(EXITS[result.passes])


def _sources(
    votes: str, verdicts: str | None, policy: str | None, chosen: Renamed
) -> "tuple[Files | LoggedVotes, Files | None]":
    from arena.boards.fitted import votes_of  # help would wait for duckdb
    from rating.tables.sources import shared

    is_file = "://" not in votes
    if is_file and policy is not None:
        msg = f"--policy {policy!r} is for a database, and {votes!r} is not one: use --where."
        raise DataError(msg)
    people = [chosen.votes(or_samples(votes))] if is_file else []
    judged = [] if verdicts is None else [chosen.votes(verdicts)]
    files = shared([*people, *judged])
    read = files[0] if people else votes_of(votes, policy=policy_named(policy))
    return read, files[-1] if judged else None


def _verdicts(
    given: "Files | None", judge: str | None, certificate: Path | None
) -> "Verdicts | None":
    from judge.studies.gating import Verdicts
    from judge.studies.licence import read_licence

    if given is None:
        for name, value in (("judge", judge), ("certificate", certificate)):
            if value is not None:
                msg = f"--{name} {str(value)!r} is for verdicts: give their file after the votes."
                raise DataError(msg)
        return None
    known = None if certificate is None else read_licence(certificate)
    return Verdicts(source=given, judge=judge, licence=known)


# arena race

SHOWN = 8
"""Looks in the table on a terminal; JSON holds all."""


@Parameter(n_tokens=1)
def two_models(_kind: Any, words: "tuple[Token, ...]") -> tuple[str, str]:
    """Read the value of ``--between``, or each, where it is repeated."""
    given = words[0].value.split(",", 1) if len(words) == 1 else [word.value for word in words]
    both = [*filter(None, map(str.strip, given))]
    if len(both) != 2:
        raise ValueError(f"cannot read {words[0].value!r}: write two models, as in basalt,quartz.")
    return both[0], both[1]


Between = Annotated[tuple[str, ...], Parameter(metavar="MODEL,MODEL", converter=two_models)]


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
    """Test sequentially whether two models differ, and stop when a difference is shown.

    Equal models are separated with a probability of at most 1 minus the level (asymptotic). Exit
    codes: 2 invalid options or votes, 3 the votes do not identify the difference.

    Parameters
    ----------
    source
        Vote files, folders or patterns (.parquet, .csv, .jsonl), or a database URL such as
        sqlite:///arena.db.
    between
        The two models, separated by a comma; or repeat the option for each.
    until
        Stop when they are separated, or use all votes up to the budget.
    budget
        Maximum number of votes.
    verdicts
        Verdicts of a judge on battles with and without votes, to increase precision as in `arena
        gate`: a file, folder or pattern. Votes are then used in file order.
    judge
        Judge to use, if the file has several.
    looks
        Number of looks, equally spaced over the planned votes. any: unlimited. Fewer looks
        have more power.
    planned
        Planned votes on battles with either model, fixed before the first look. With --looks
        INT, votes beyond them are not used. Default: 2,000; for one look, all votes.
    columns
        Read one of our columns from theirs, such as voter=user; repeatable.
    level
        Confidence level over all looks.
    form
        Output format.

    Examples
    --------
    arena race votes.parquet --between gpt-4,claude-1
    arena race votes.parquet --between gpt-4,claude-1 --until budget --budget 5000 --format json
    """
    from rating.decide import run_race

    first, second = between
    with working("Racing"):
        files = chosen.source(source, columns)
        votes, judged = _votes(files, columns, (first, second), verdicts, judge)
        result = run_race(
            votes,
            (first, second),
            judged,
            stop=until == "separated",
            budget=budget,
            looks=looks,
            planned=planned,
            level=level,
        )
    if form == "json":
        write_json(result.to_dict())
        return
    every = max(1, len(result.looks) // SHOWN)
    rows = [
        (f"{x.voters:,}", f"{x.votes:,}", f"{x.lead:+z.0f}", f"{x.lower:+z.0f} to {x.upper:+z.0f}")
        for x in [*result.looks[:-1:every], *result.looks[-1:]]
    ]
    head = (
        "Voters",
        "Votes on any model",
        f"Lead of {result.between[0]}",
        f"{100 * result.level:g}% interval",
    )
    show(plain(result.sentence, style="bold"))
    if rows:
        show(table(head, rows))


def _votes(
    source: "Files | LoggedVotes",
    columns: Columns,
    between: tuple[str, str],
    verdicts: str | None,
    judge: str | None,
) -> "tuple[VoteRows, Callable[[int], tuple[Lead, float]] | None]":
    if verdicts is not None:
        from judge.studies.gating import race_with_judge

        if columns:
            msg = "--column and --verdicts do not go together: rename the columns of the votes."
            raise DataError(msg)
        return race_with_judge(source, verdicts, between, judge)
    if judge is not None:
        raise DataError(f"--judge {judge!r} needs verdicts: give them with --verdicts.")
    from rating.tables.columns import Columns as Named
    from rating.tables.columns import Reading
    from rating.tables.counts import read_rows

    reading = Reading(Named.named(columns), prompts=True, ordered=True)
    return read_rows(source, reading), None
