"""`arena referee`."""

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from arena.commands.arguments import (
    EVERY_ROW,
    Chosen,
    Columns,
    File,
    Flat,
    TableOrJson,
    require_folder_of,
)
from arena.terminal import plain, show, table, warnings, working, write_json
from rating.errors import DataError

if TYPE_CHECKING:
    from rating.diagnosis.referee import Difference, Refereed


def referee(
    source: list[str],
    /,
    *,
    columns: Columns = (),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    model: Annotated[
        tuple[str, ...], Parameter(name=("--model", "--models"), metavar="NAME,...")
    ] = (),
    hold_out: Literal["voter", "prompt", "time", "vote"] = "voter",
    folds: int = 5,
    both_bad: Literal["tie", "drop", "outcome"] = "tie",
    by: str | None = None,
    prompts: File = None,
    style: Annotated[tuple[str, ...], Parameter(metavar="COLUMN")] = (),
    ridge: float = 0.05,
    seed: int = 0,
    level: float = 0.95,
    form: TableOrJson = "table",
    out: File = None,
) -> None:
    """Say which way to rate foresees votes best that it has not seen.

    Each gives a probability to every outcome of a vote held out; a perplexity of 2.8 is as unsure
    as 2.8 outcomes that are all as likely. Where the interval of a difference holds 0, no
    difference is shown. Exit codes: 2 for options or votes that cannot be used, 3 for votes that
    identify no rating.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl), or database URL such as
        sqlite:///arena.db.
    columns
        Read a role from the column of this name, as in voter=user; again for more.
    model
        base, half, davidson, rao-kupper, grounded, prompt, category, style, elo, pooled or
        topical; with commas, or again, for more. All that the votes allow by default, but for the
        last two.
    hold_out
        Whole voters, whole prompts, later votes, or any votes.
    folds
        Parts, each of which is foreseen from the others; by time, from those before it.
    both_bad
        What a vote for neither counts as; grounded ties need outcome.
    by
        Column of categories, for category and pooled.
    prompts
        A prompt a row: its name, and its text, for topical.
    style
        Adjust for COLUMN, or COLUMN_a and COLUMN_b; log2:COLUMN: per doubling. Again for more.
    ridge
        Inverse variance of the strengths beforehand.
    seed
        Of the folds.
    level
        Of each interval.
    form
        How to write it.
    out
        JSON file to write.

    Examples
    --------
    arena referee votes.parquet
    arena referee votes.parquet --hold-out prompt --models half,davidson,prompt --format json
    arena referee votes.parquet --hold-out prompt --by category --models half,category,pooled
    arena referee votes.parquet --hold-out prompt --prompts prompts.csv --models half,topical
    """
    if form == "table" and out is not None and out.suffix != ".json":
        raise DataError(f"Cannot write {str(out)!r}: name a file that ends in .json.")
    if out is not None:
        require_folder_of(out)
    from judge.probe.prompts import scores_of
    from rating.tables import formats
    from rating.tables.columns import Columns as Named
    from rating.tables.columns import Reading
    from rating.tables.files import Files
    from rating.tables.rows import referee_source

    with working("Refereeing") as advance:
        reading = Reading(Named.named(columns, by=by), both_bad=both_bad, style=style)
        result = referee_source(
            chosen.source(source, columns),
            reading,
            models=[name for names in model for name in names.split(",")],
            hold_out=hold_out,
            folds=folds,
            ridge=ridge,
            seed=seed,
            level=level,
            scores=None if prompts is None else scores_of(Files((prompts,))),
            progress=advance,
        )
    if out is not None:
        formats.write_text(formats.as_json(result.to_dict()), out)
    elif form == "json":
        write_json(result.to_dict())
    else:
        _show(result)


def _show(result: "Refereed") -> None:
    whole = [row for row in result.rows if row.fold == "all"]
    best = whole[0].model
    to_best = {one.b: one for one in result.differences if one.a == best}
    rows = [
        (
            row.model,
            f"{row.perplexity:.3f}",
            f"{row.log_loss:.4f}",
            _behind(to_best.get(row.model)),
        )
        for row in whole
    ]
    about = (
        f"{result.votes:,} votes foreseen, {len(result.outcomes)} outcomes. Held out by "
        f"{result.hold_out}."
    )
    head = ("Model", "Perplexity", "Log-loss", f"Behind {best} ({100 * result.level:g} %)")
    close = [name for name, one in to_best.items() if one.better is None]
    known = [f"No difference to {best} is shown: {', '.join(close)}."] if close else []
    show(plain(about), table(head, rows), *map(plain, known), *warnings(result.warnings))


def _behind(one: "Difference | None") -> str:
    if one is None:
        return "–"
    if one.lower is None or one.upper is None:
        return f"{one.difference:+.4f}"
    return f"{one.difference:+.4f} ({one.lower:+.4f} to {one.upper:+.4f})"
