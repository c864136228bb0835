"""`arena study judge`, `panel`, `truth`, `scores` and `raters`."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from arena.commands.arguments import AS_IT_IS, Flat, Renamed, require_folder_of
from arena.terminal import plain, say, show, table, warnings, working, write, write_json
from judge.studies.options import StudyOptions, Terms
from rating.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import RenderableType

    from judge.report.files import Page, Section
    from judge.studies.panel import Panel
    from judge.studies.raters import RaterStudy
    from judge.studies.scores import Scored
    from judge.studies.study import Study
    from judge.studies.truth import TruthStudy

Form = Annotated[
    Literal["table", "json", "html", "md"] | None,
    Parameter(name="--format", help="What to print."),
]
Out = Annotated[
    Path | None,
    Parameter(metavar="DIR", help="Folder for the report: HTML, and the same as files."),
]

DRAWN = "^(options|rounds|seed|level)$"
"""What scores take of the options."""
OF_TRUTH = "^(options|by|rounds|seed|level)$"
"""What a truth set takes of the options."""
OF_PANEL = "^(options|voters|rounds|seed|level)$"
"""What a panel takes of the options."""


def judge(
    votes: str,
    verdicts: str,
    /,
    *,
    options: Annotated[StudyOptions, Flat] = StudyOptions(),  # noqa: B008 - it is frozen
    terms: Annotated[Terms, Flat] = Terms(),  # noqa: B008
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    form: Form = None,
    out: Out = None,
) -> None:
    """Test whether a judge may replace human raters: yes, no or inconclusive, with reasons.

    There is no yes where the judge certainly favours a model; the report names it first.
    Items are matched by item_id, else by prompt and pair of models, battle_id or the prompt's
    text. A verdict that was not read is counted and is no tie; what the votes cannot tell is null
    with a warning. Exit code 2: options or files that cannot be used.

    Parameters
    ----------
    votes
        Votes of people: a file, folder or pattern, or the URL of the arena's database.
    verdicts
        Verdicts of one judge or several: a file, folder or pattern.

    Examples
    --------
    arena study judge votes.csv verdicts.csv --format json --by category
    arena study judge votes.csv verdicts.csv --licence judge.toml --margin 10
    """
    _require_folder(out)
    if terms.licence is not None:
        _require_new(terms.licence)
    from arena.boards.source import votes_of  # help would wait for duckdb
    from judge.report.sections import licence_section
    from judge.report.study import report_page, write_report
    from judge.studies.licence import as_toml
    from judge.studies.licensing import grant
    from judge.studies.study import study_judges
    from rating.tables.formats import write_text
    from rating.tables.sources import shared

    made = datetime.now(UTC).date()
    with working("Studying") as advance:
        people = [] if "://" in votes else [chosen.votes(votes)]
        *cast, given = shared([*people, chosen.votes(verdicts)])
        source = cast[0] if cast else votes_of(votes)
        licence = None
        if terms.licence is not None:
            licence = grant(source, given, terms, made, voters=options.voters, by=options.by)
        result = replace(study_judges(source, given, options, advance), licence=licence)
        written = None if out is None else write_report(result, out, made)
        if terms.licence is not None and licence is not None:
            write_text(as_toml(licence), terms.licence)
    _tell(result, lambda: report_page(result, made), form, written)
    if licence is not None and form in (None, "table"):
        _show_licence(licence_section(licence), terms.licence)


def panel(
    verdicts: list[str],
    /,
    *,
    votes: Annotated[str | None, Parameter(metavar="VOTES")] = None,
    options: Annotated[StudyOptions, Flat, Parameter(parse=OF_PANEL)] = StudyOptions(),  # noqa: B008
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    form: Form = None,
    out: Out = None,
) -> None:
    """Say how many independent judges a panel is worth, and which judge to add next.

    Verdicts are held against what most people say of an item, or against a column label beside
    them. An item counts where every judge has a verdict that was read; one that was not is
    counted, and is no error. Exit code 2: options or files that cannot be used.

    Parameters
    ----------
    verdicts
        Files, folders or patterns, each a table of one judge or several (column judge; without
        one, a judge is named by its file).
    votes
        Votes of people: a file, folder or pattern, or the URL of the arena's database.

    Examples
    --------
    arena study panel verdicts.csv --votes votes.csv
    arena study panel one.csv other.csv --format json
    """
    _require_folder(out)
    from arena.boards.source import votes_of
    from judge.report.panel import panel_page, write_panel
    from judge.studies.panel import study_panel
    from rating.tables.sources import shared

    made = datetime.now(UTC).date()
    with working("Studying"):
        named = [] if votes is None or "://" in votes else [votes]
        sources = shared([chosen.votes(source) for source in (*verdicts, *named)])
        given, cast = sources[: len(verdicts)], sources[len(verdicts) :]
        people = None if votes is None else cast[0] if cast else votes_of(votes)
        result = study_panel(given, people, options)
        written = None if out is None else write_panel(result, out, made)
    _tell(result, lambda: panel_page(result, made), form, written)


def truth(
    verdicts: list[str],
    /,
    *,
    right: Annotated[str | None, Parameter(name="--truth", metavar="FILE")] = None,
    options: Annotated[StudyOptions, Flat, Parameter(parse=OF_TRUTH)] = StudyOptions(),  # noqa: B008
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    form: Form = None,
    out: Out = None,
) -> None:
    """Say how often judges name the side that is right, where that is known.

    The labels are taken as truth, such as JudgeBench's and LLMBar's; nothing is said of people.
    Ties and verdicts that were not read are not right, and are counted; what was asked in one
    order alone is in no figure. Exit code 2: options or files that cannot be used.

    Parameters
    ----------
    verdicts
        Files, folders or patterns of verdicts, or of LLMBar's rows, with a label beside them.
    right
        The pairs that were judged, with a column label (A>B or B>A, 1 or 2, a winner).

    Examples
    --------
    arena study truth verdicts.csv --truth pairs.jsonl --by source
    arena study truth verdicts.csv --truth pairs.jsonl --format json
    """
    _require_folder(out)
    from judge.report.truth import truth_page, write_truth
    from judge.studies.truth import study_truth
    from rating.tables.sources import shared

    made = datetime.now(UTC).date()
    with working("Studying"):
        pairs = [] if right is None else [chosen.cases(right)]
        sources = shared([*map(chosen.votes, verdicts), *pairs])
        given, labels = sources[: len(verdicts)], sources[len(verdicts) :]
        result = study_truth(given, labels[0] if labels else None, options)
        written = None if out is None else write_truth(result, out, made)
    _tell(result, lambda: truth_page(result, made), form, written)


def scores(
    benchmarks: Path,
    board: str | None = None,
    /,
    *,
    other: Annotated[Path | None, Parameter(name="--with", metavar="FILE")] = None,
    against: Annotated[str | None, Parameter(metavar="COLUMN")] = None,
    top: int = 6,
    options: Annotated[StudyOptions, Flat, Parameter(parse=DRAWN)] = StudyOptions(),  # noqa: B008
    form: Form = None,
    out: Out = None,
) -> None:
    """Say how far scores from elsewhere, such as of benchmarks, go with ratings or other scores.

    Models are matched by name, and those in one source alone are listed. Exit codes: 2 for
    options or files that cannot be used, 3 for votes that identify no rating.

    Parameters
    ----------
    benchmarks
        A model a row, a column of numbers a benchmark.
    board
        Votes: a file or the URL of a database; or what arena rate --format json wrote.
    other
        Instead of a board: a table of scores, or the same one.
    against
        Its column, if it has several.
    top
        Best models, by the ratings, of a correlation of their own.

    Examples
    --------
    arena study scores benchmarks.csv votes.csv
    arena study scores benchmarks.csv --with published.csv --against elo --format json
    """
    _require_folder(out)
    if (board is None) == (other is None):
        raise DataError("Name a board of ratings, or a table of scores by --with: one of the two.")
    from arena.boards.source import votes_of
    from judge.report.scores import scores_page, write_scores
    from judge.studies.scores import score_board, score_tables

    made = datetime.now(UTC).date()
    with working("Correlating"):
        if board is not None:
            rated = votes_of(board) if "://" in board else board
            result = score_board(benchmarks, rated, options, top=top)
        else:
            assert other is not None
            result = score_tables(benchmarks, other, against, options, top=top)
        written = None if out is None else write_scores(result, out, made)
    _tell(result, lambda: scores_page(result, made), form, written, notes=True)


def raters(
    ratings: str,
    /,
    *,
    until: Annotated[float, Parameter(metavar="HALF_WIDTH")] = 0.05,
    until_alpha: Annotated[float, Parameter(metavar="HALF_WIDTH")] = 0.1,
    options: Annotated[StudyOptions, Flat, Parameter(parse=DRAWN)] = StudyOptions(),  # noqa: B008
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    form: Form = None,
    out: Out = None,
) -> None:
    """Say what the raters of a study are like, and whether more raters or more items help.

    Agreement with others and with oneself, sides, time, gold, confidence; what part of the
    variance is of items and of raters; and what half-widths other designs would have. Exit code
    2: options or files that cannot be used.

    Parameters
    ----------
    ratings
        What arena study export writes: a file, folder or pattern.
    until
        Half-width of the share of side A that is wanted.
    until_alpha
        Half-width of Krippendorff's alpha that is wanted.

    Examples
    --------
    arena study raters ratings.csv --until 0.03
    arena study raters ratings.csv --format json
    """
    _require_folder(out)
    from judge.report.raters import raters_page, write_raters
    from judge.studies.raters import study_raters

    made = datetime.now(UTC).date()
    with working("Studying"):
        result = study_raters(chosen.votes(ratings), options, until=until, until_alpha=until_alpha)
        written = None if out is None else write_raters(result, out, made)
    _tell(result, lambda: raters_page(result, made), form, written, notes=True)


def _require_folder(out: Path | None) -> None:
    if out is not None and out.exists() and not out.is_dir():
        msg = f"Cannot write into {str(out)!r}: it is a file. Name a folder."
        raise DataError(msg)


def _require_new(licence: Path) -> None:
    """Raise `DataError` where a licence lies already: its margin was declared before."""
    require_folder_of(licence)
    if licence.exists():
        msg = f"There is a licence {str(licence)!r} already: it is not written over. Name another."
        raise DataError(msg)


def _show_licence(section: "Section", path: Path | None) -> None:
    """Print a licence as a table, with a sentence a model."""
    assert section.table is not None
    lines = [plain(text) for text in (*section.paragraphs[1:], *section.points)]
    grid = table(section.table.head, section.table.rows)
    head = plain(f"{section.title}: {section.paragraphs[0]}", style="bold")
    show(head, grid, *lines, plain(section.table.note))
    say(f"The licence is {path}.")


def _tell(
    result: "Study | Panel | Scored | TruthStudy | RaterStudy",
    page: "Callable[[], Page]",
    form: str | None,
    written: Path | None,
    *,
    notes: bool = False,
) -> None:
    """Print a result in the form asked for, and where its report was written."""
    from judge.report.files import as_html, as_markdown

    if form == "json":
        write_json(result.to_dict())
    elif form == "html":
        write(as_html(page()))
    elif form == "md":
        write(as_markdown(page()))
    elif form == "table" or written is None:
        _show(page(), result.warnings, notes=notes)
    if written is not None and form in (None, "table"):
        say(f"The report is {written}.")


def _show(page: "Page", texts: "Iterable[str]", *, notes: bool) -> None:
    """Print the answers and the first tables of a page, with their notes where asked for."""
    parts: list[RenderableType] = []
    for answer in page.answers:
        parts.append(plain(f"{answer.judge}: {answer.headline}", style="bold"))
        parts += [plain(" ".join(answer.sentences))] if answer.sentences else []
    for part in page.first.tables:
        parts.append(table(part.head, part.rows))
        parts += [plain(part.note)] if notes else []
    show(*parts, *warnings(() if page.first.is_empty else texts))
