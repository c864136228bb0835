"""Commands on studies: of judges against people (`arena study judge` and others), and by people.

`arena study create`, `open`, `status` and `export` are studies in which people rate given items.
Where prompts are given, models answer them when the study is created. `arena cold-start` rates a
new model from the verdicts of a judge.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import Parameter, validators

from arena.commands.arguments import (
    AS_IT_IS,
    Database,
    File,
    Flat,
    Renamed,
    RosterFile,
    TableOrJson,
    arena_store,
    names,
    require_folder_of,
)
from arena.errors import SettingsError
from arena.terminal import (
    announced,
    plain,
    present,
    say,
    show,
    stop,
    table,
    warnings,
    with_interval,
    working,
    write,
    write_json,
)
from judge.case import RERUN
from judge.studies.options import NewcomerOptions, StudyOptions, Terms
from rating.errors import DataError
from rating.sentences import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import RenderableType

    from arena.boards.evaluation import StudyStatus
    from arena.domain.study import PlannedItem, RubricItem
    from judge.bench import Given
    from judge.report.page import Page, Section
    from judge.studies.newcomer import NewModel
    from judge.studies.one_judge import Study
    from judge.studies.panel import Panel
    from judge.studies.plan import Enough
    from judge.studies.raters import RaterStudy
    from judge.studies.scores import Scored
    from judge.studies.truth import TruthStudy
    from judge.tables.items import Item, RatingItem


# Studies of judges

T = TypeVar("T", "Study", "Panel", "Scored", "TruthStudy", "RaterStudy")

Form = Annotated[
    Literal["table", "json", "html", "md"] | None,
    Parameter(name="--format", help="Output format."),
]
Out = Annotated[
    Path | None, Parameter(metavar="DIR", help="Folder for the report: HTML and data files.")
]

DRAWN = "^(options|rounds|seed|level)$"
"""What scores take of the options."""
OF_TRUTH = "^(options|by|rounds|seed|level)$"
"""What a truth set takes of the options."""
OF_PANEL = "^(options|voters|rounds|seed|level)$"
"""What a panel takes of the options."""
OF_JUDGES = "^(options|pairs|voters|raters|outputs|rounds|seed|level)$"
"""What a leaderboard of judges takes of the options."""


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

    The conclusion is never yes if the judge favours a model by significantly more than 0.1 wins
    per item; the report names that model first. Items are matched by item_id, else by prompt and
    pair of models, battle_id or prompt text. Unparsed verdicts are reported, and never count as
    ties. Values that cannot be estimated are null, with a warning. Exit code 2: invalid options
    or files.

    Parameters
    ----------
    votes
        Human votes: a file, folder or pattern, or a database URL.
    verdicts
        Verdicts of one or more judges: a file, folder or pattern.

    Examples
    --------
    arena study judge votes.csv verdicts.csv --format json --by category
    arena study judge votes.csv verdicts.csv --certificate judge.toml --margin 10
    """
    _require_folder(out)
    if terms.certificate is not None:
        require_folder_of(terms.certificate)
        if terms.certificate.exists():
            raise DataError(
                f"The validation certificate {str(terms.certificate)!r} exists and is not "
                "overwritten. Name another file."
            )
    from judge.report.page import licence_section
    from judge.report.studies import report_page, write_report
    from judge.studies.licence import as_toml, grant
    from judge.studies.one_judge import study_judges
    from rating.tables.formats import write_text

    made = datetime.now(UTC).date()
    with working("Studying") as advance:
        source, given = chosen.beside(votes, verdicts)
        licence = None
        if terms.certificate is not None:
            licence = grant(source, given, terms, made, voters=options.voters, by=options.by)
        result = replace(study_judges(source, given, options, advance), licence=licence)
    written = _written(result, write_report, out)
    if terms.certificate is not None and licence is not None:
        write_text(as_toml(licence), terms.certificate)
    _tell(result, report_page, form, written)
    if licence is not None and form in (None, "table"):
        _show_licence(licence_section(licence), terms.certificate)


def judges(
    votes: str,
    verdicts: str,
    /,
    *,
    options: Annotated[StudyOptions, Flat, Parameter(parse=OF_JUDGES)] = StudyOptions(),  # noqa: B008
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    form: Form = None,
    out: Out = None,
) -> None:
    """Rank judges by the lower limit of their agreement with people, with ties: one per row.

    Each with position consistency, preference for long answers and lists, rerun variance (for
    repeated verdicts, numbered in a column `run`), bias for its own model, unparsed verdicts,
    dollars and seconds per thousand items. Exit code 2: invalid options or files.

    Parameters
    ----------
    votes
        Human votes: a file, folder or pattern, or a database URL.
    verdicts
        Verdicts of the judges: a file, folder or pattern.

    Examples
    --------
    arena study judges votes.csv verdicts.csv
    arena study judges votes.csv verdicts.csv --format json
    """
    _require_folder(out)
    from judge.report.studies import judges_page, leaderboard_json, write_judges
    from judge.studies.one_judge import study_judges

    with working("Studying") as advance:
        result = study_judges(*chosen.beside(votes, verdicts), options, advance)
    written = _written(result, write_judges, out)
    if form == "json":
        write_json(leaderboard_json(result))
    else:
        _tell(result, judges_page, form, written)


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
    """Estimate the effective number of independent judges in a panel, and which judge to add.

    Verdicts are compared with the majority of human votes, or with a column `label`. Items count
    if every judge has a parsed verdict; unparsed verdicts are counted separately, not as errors.
    Exit code 2: invalid options or files.

    Parameters
    ----------
    verdicts
        Files, folders or patterns, each a table of one or more judges (column judge; otherwise the
        file name is the judge).
    votes
        Human votes: a file, folder or pattern, or a database URL.

    Examples
    --------
    arena study panel verdicts.csv --votes votes.csv
    arena study panel one.csv other.csv --format json
    """
    _require_folder(out)
    from arena.boards.fitted import votes_of
    from judge.report.judges import panel_page, write_panel
    from judge.studies.panel import study_panel
    from rating.tables.sources import shared

    with working("Studying"):
        named = [] if votes is None or "://" in votes else [votes]
        sources = shared([chosen.votes(source) for source in (*verdicts, *named)])
        given, cast = sources[: len(verdicts)], sources[len(verdicts) :]
        people = None if votes is None else cast[0] if cast else votes_of(votes)
        result = study_panel(given, people, options)
    _tell(result, panel_page, form, _written(result, write_panel, out))


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
    """Measure judges' accuracy on pairs with a known better answer.

    The labels are taken as truth, as for JudgeBench and LLMBar; no human votes are involved. Ties
    and unparsed verdicts are not correct, and are counted. Pairs judged in one order only are
    excluded. Exit code 2: invalid options or files.

    Parameters
    ----------
    verdicts
        Files, folders or patterns of verdicts, or of LLMBar rows, with a label.
    right
        The judged pairs, with a column label (A>B or B>A, 1 or 2, or the winner).

    Examples
    --------
    arena study truth verdicts.csv --truth pairs.jsonl --by source
    arena study truth verdicts.csv --truth pairs.jsonl --format json
    """
    _require_folder(out)
    from judge.report.judges import truth_page, write_truth
    from judge.studies.truth import study_truth
    from rating.tables.sources import shared

    with working("Studying"):
        pairs = [] if right is None else [chosen.cases(right)]
        sources = shared([*map(chosen.votes, verdicts), *pairs])
        given, labels = sources[: len(verdicts)], sources[len(verdicts) :]
        result = study_truth(given, labels[0] if labels else None, options)
    _tell(result, truth_page, form, _written(result, write_truth, out))


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
    """Correlate external scores, such as benchmarks, with ratings or other scores.

    Models are matched by name; models in one source only are listed. Exit codes: 2 invalid options
    or files, 3 the votes do not identify ratings.

    Parameters
    ----------
    benchmarks
        Table with one model per row and one benchmark per column.
    board
        Votes (a file or a database URL), or JSON of `arena rate`.
    other
        Table of scores instead of a board; may be the same table.
    against
        Column of that table, if it has several.
    top
        Number of top-rated models for a separate correlation.

    Examples
    --------
    arena study scores benchmarks.csv votes.csv
    arena study scores benchmarks.csv --with published.csv --against elo --format json
    """
    _require_folder(out)
    if (board is None) == (other is None):
        raise DataError("Give either a board of ratings or a table of scores by --with, not both.")
    from arena.boards.fitted import votes_of
    from judge.report.raters import scores_page, write_scores
    from judge.studies.scores import score_board, score_tables

    with working("Correlating"):
        if board is not None:
            rated = votes_of(board) if "://" in board else board
            result = score_board(benchmarks, rated, options, top=top)
        else:
            assert other is not None
            result = score_tables(benchmarks, other, against, options, top=top)
    _tell(result, scores_page, form, _written(result, write_scores, out), notes=True)


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
    """Describe the raters of a study, and whether more raters or more items help.

    Agreement between and within raters, side preference, time, gold accuracy, confidence; variance
    components of items and raters; expected half-widths of other designs. Exit code 2: invalid
    options or files.

    Parameters
    ----------
    ratings
        Files of `arena study export`: a file, folder or pattern.
    until
        Target half-width of the win rate of model_a.
    until_alpha
        Target half-width of Krippendorff's alpha.

    Examples
    --------
    arena study raters ratings.csv --until 0.03
    arena study raters ratings.csv --format json
    """
    _require_folder(out)
    from judge.report.raters import raters_page, write_raters
    from judge.studies.raters import study_raters

    with working("Studying"):
        result = study_raters(chosen.votes(ratings), options, until=until, until_alpha=until_alpha)
    _tell(result, raters_page, form, _written(result, write_raters, out), notes=True)


def _require_folder(out: Path | None) -> None:
    if out is not None and out.exists() and not out.is_dir():
        raise DataError(f"Cannot write into {str(out)!r}: it is a file. Name a folder.")


def _written(
    result: T, write_report: "Callable[[T, Path, date], Path]", out: Path | None
) -> Path | None:
    """Write a report into the folder that is asked for; give where it is."""
    return None if out is None else write_report(result, out, datetime.now(UTC).date())


def _show_licence(section: "Section", path: Path | None) -> None:
    """Print a licence as a table, with a sentence a model."""
    assert section.table is not None
    lines = [plain(text) for text in (*section.paragraphs[1:], *section.points)]
    grid = table(section.table.head, section.table.rows)
    head = plain(f"{section.title}: {section.paragraphs[0]}", style="bold")
    show(head, grid, *lines, plain(section.table.note))
    say(f"The validation certificate is {path}.")


def _tell(
    result: T,
    page_of: "Callable[[T, date], Page]",
    form: str | None,
    written: Path | None,
    *,
    notes: bool = False,
) -> None:
    """Print a result in the form asked for, and where its report was written."""
    from judge.report.page import as_html, as_markdown

    page = partial(page_of, result, datetime.now(UTC).date())
    if form == "json":
        write_json(result.to_dict())
    elif form == "html":
        write(as_html(page().made_by("--format", form)))
    elif form == "md":
        write(as_markdown(page().made_by("--format", form)))
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


# Items from prompts

FEWEST = 2
SHOWN = 10
"""Failures that are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LiveAnswers:
    """The models that answer the prompts of a study when it is created.

    Attributes
    ----------
    models : tuple of str or None
        Model ids in the roster, separated by commas, that answer the prompts of --items now: two
        to compare, up to 12 to rank. Answers already in this database are reused.
    budget : float or None
        Stop before the cost of answers exceeds this amount.
    max_tokens : int or None
        Maximum number of tokens per answer; by default that of the roster (4096).
    """

    models: Annotated[tuple[str, ...] | None, Parameter(metavar="A,B,C", converter=names)] = None
    budget: Annotated[float | None, Parameter(metavar="USD")] = None
    max_tokens: int | None = None
    roster: RosterFile = None


GIVEN = _LiveAnswers()


def _answered_items(file: Path, chosen: _LiveAnswers, database: str | None) -> "list[RatingItem]":
    """Let models answer prompts, and make an item of each that all have answered.

    What failed is listed, and is no item. Ends the command with 1 where it stopped before the end:
    the same command goes on.

    Raises
    ------
    DataError, SettingsError
        If the prompts or the options cannot be used, or no prompt has all answers.
    """
    from arena.commands.bench import Bench, at_desk, cast, require_prices
    from arena.commands.judge_work import JudgeOptions
    from arena.settings import read_settings
    from judge.tables.items import MOST_RESPONSES, read_items

    models = chosen.models or ()
    if not FEWEST <= len(models) <= MOST_RESPONSES:
        raise DataError(
            f"--models names {len(models)} ({', '.join(models)}): give {FEWEST} to "
            f"{MOST_RESPONSES} of the roster."
        )
    items = read_items(file)
    roster = read_settings(database=database, roster=chosen.roster).roster
    asked = cast(models, {}, len(items), roster, "--models")
    if chosen.budget is not None:
        require_prices(asked, None)
    bench = Bench(
        name="study",
        items=items,
        method=None,
        models=models,
        baseline=None,
        known={},
        asked=asked,
        judge=None,
        options=JudgeOptions(budget=chosen.budget, database=database, roster=chosen.roster),
        max_tokens=chosen.max_tokens,
    )
    with at_desk(bench, database, chosen.roster) as desk:
        given, why = desk.answer()
    if why:
        stop(why, f"No study was created. {RERUN}")
    spent = "" if desk.spent_usd is None else f", ${desk.spent_usd:.4g}"
    say(f"{desk.n_asked:,} new answers, {desk.n_recalled:,} reused{spent}.")
    made = _items(items, given)
    if not made:
        raise DataError(f"No prompt of {str(file)!r} was answered by all of {', '.join(models)}.")
    return made


def _items(items: "Sequence[Item]", given: "Mapping[str, Sequence[Given]]") -> "list[RatingItem]":
    """Make an item of each prompt that all have answered, and list what is excluded."""
    from judge.case import Message
    from judge.tables.items import MOST_CHARACTERS, RatingItem, Response, dialogue

    left_out, made = [], []
    for at, item in enumerate(items):
        own = {model: answers[at] for model, answers in given.items()}
        failed = [
            f"{model} on {item.id!r}: {one.failure}{f' ({one.detail})' if one.detail else ''}"
            for model, one in own.items()
            if not one.whole
        ]
        size = sum(len(text) for one in own.values() for text in (*one.texts, *item.further))
        if not failed and size + sum(len(m.content) for m in item.prompt) > MOST_CHARACTERS:
            failed = [f"{item.id!r}: more than {MOST_CHARACTERS:,} characters"]
        left_out += failed
        if not failed:
            further = [Message("user", turn) for turn in item.further]
            responses = tuple(
                Response(model, dialogue(further, one.texts)) for model, one in own.items()
            )
            made.append(RatingItem(item.id, item.id, tuple(item.prompt), responses))
    for line in left_out[:SHOWN]:
        say(f"No item: {line}.", error=True)
    if len(left_out) > SHOWN:
        say(f"And {len(left_out) - SHOWN:,} more failures.", error=True)
    if left_out:
        say(f"{len(items) - len(made):,} of {len(items):,} prompts give no item.", error=True)
    return made


# Studies by people

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
MOST_ITEMS = 100_000
MOST_GUIDELINES = 50_000
MOST_NAMED = 10
"""Names in runs that are listed one by one."""
Raters = Annotated[int, Parameter(metavar="K", validator=validators.Number(gte=1, lte=1000))]


def create(
    name: str,
    /,
    *,
    raters_per_item: Raters,
    items: File = None,
    runs: Annotated[tuple[Path, ...], Parameter(metavar="SOURCE")] = (),
    allow_names: bool = False,
    outputs: File = None,
    prompts: File = None,
    gold: File = None,
    repeats: float = 0.0,
    guidelines: File = None,
    pilot: int = 0,
    qualification: File = None,
    pass_share: Annotated[float | None, Parameter(name="--pass", metavar="SHARE")] = None,
    rubric: File = None,
    until: float | None = None,
    reveal: bool = False,
    answers: Annotated[_LiveAnswers, Flat] = GIVEN,
    database: Database = None,
) -> None:
    """Create a study: raters rate given items on the pages under /studies.

    Ratings are kept apart from battle votes; no leaderboard counts them. An invalid row
    prevents creation; in other tools' files, unusable rows are excluded and reported.

    Parameters
    ----------
    name
        Name of the study, used in its address: letters, digits, - and _.
    raters_per_item
        Number of ratings per item, each by a different rater.
    items
        Items, one per row: item_id, prompt (or messages), model_a, response_a, model_b,
        response_b; or responses, a list of 2 to 12 {"model", "text"}; optionally prompt_id. With
        --models: prompts, as for `arena bench`.
    runs
        Recorded agent runs instead of items, one per row: item, model, scaffold and steps; or
        Inspect logs (.eval), several or a folder. Runs of the same item are paired.
    allow_names
        Accept runs whose visible text names a model, scaffold or vendor.
    outputs
        Answers, one row per prompt and model, for items that name them and have no texts (such as
        send.csv of `arena study judge`).
    prompts
        Prompt texts, for the same items.
    gold
        Items with a known answer (column gold: model_a, model_b or tie), mixed in with the others.
    repeats
        Share of each rater's items that are repeated with sides swapped, such as 0.03.
    guidelines
        Markdown file that raters read before they start.
    pilot
        Rate this many items first; the rest waits for `arena study open`.
    qualification
        Gold items that a rater must pass before rating.
    pass_share
        Share of the qualification's items to answer correctly.
    rubric
        Additional questions: a TOML file of [[item]] tables with name, question and answers.
    until
        Target half-width of the interval of Krippendorff's alpha; the status shows if it is met.
    reveal
        After each rating, show the models, cost and time of agent runs (not with --repeats).

    Examples
    --------
    arena study create pilot-2 --items pairs.jsonl --raters-per-item 3 --repeats 0.05
    arena study create agents --runs runs.jsonl --raters-per-item 3 --reveal
    arena study create logged --runs one.eval --runs other.eval --raters-per-item 3
    arena study create next --items send.csv --raters-per-item 2 --outputs o.json --prompts p.csv
    arena study create experts --items pairs.csv --raters-per-item 2 --gold gold.csv --until 0.1
    arena study create live --items prompts.csv --models basalt,slate --raters-per-item 2
    """
    from arena.domain.study import StudyKind as Kind
    from arena.domain.study import StudyPlan
    from arena.store import studies
    from rating.tables.files import read_text, storable

    _require_numbers(name, repeats, pilot, until)
    if (items is None) == (not runs):
        raise DataError("A study has items or runs: give one of --items FILE and --runs FILE.")
    if runs and (outputs or prompts or answers.models):
        msg = "Runs have outcomes and tasks of their own: omit --outputs, --prompts and --models."
        raise DataError(msg)
    if reveal and repeats:
        raise DataError(
            f"--repeats {repeats:g} shows items again, and --reveal names their models: omit one "
            "of them."
        )
    if (qualification is None) != (pass_share is None):
        raise DataError(
            "A qualification needs a file and a share to pass: give both --qualification and "
            "--pass."
        )
    if pass_share is not None and not 0 < pass_share <= 1:
        raise DataError(f"--pass {pass_share:g} is not a share: give more than 0 and at most 1.")
    if items is None:
        planned = _planned_runs(Kind.ITEM, *runs)
    elif answers.models is not None:
        planned = _answered(name, items, answers, outputs, database)
    else:
        planned = _planned(Kind.ITEM, items, outputs, prompts)
    if pilot >= len(planned):
        raise DataError(f"--pilot {pilot} leaves none of {len(planned)} items: give fewer.")
    for place in range(pilot):
        planned[place] = type(planned[place])(Kind.PILOT, planned[place].item)
    more_of = _planned_runs if runs else _planned
    for kind, file in ((Kind.GOLD, gold), (Kind.QUALIFICATION, qualification)):
        planned += [] if file is None else more_of(kind, file)
    _require_apart(planned, (items, *runs, gold, qualification))
    if runs:
        _mind_names(planned, allowed=allow_names)
    text = "" if guidelines is None else storable(read_text(guidelines))
    if len(text) > MOST_GUIDELINES:
        raise DataError(
            f"{str(guidelines)!r} has {len(text):,} characters: the maximum is "
            f"{MOST_GUIDELINES:,}."
        )
    plan = StudyPlan(
        name=name,
        raters_per_item=raters_per_item,
        repeats=repeats,
        guidelines=text,
        pilot=pilot,
        pass_share=pass_share,
        until=until,
        reveal=reveal,
        rubric=() if rubric is None else _rubric(rubric),
    )
    with arena_store(database) as store, store.writing() as session:
        _people_study_require_new(studies.names(session), name)
        studies.create(session, plan, planned, datetime.now(UTC))
    n = sum(one.kind in (Kind.ITEM, Kind.PILOT) for one in planned)
    each = plural(raters_per_item, "rating")
    say(f"The study {name!r} has {plural(n, 'item')} with {each} each.")
    say(f"People rate them at /studies/{name}.")


def open_rest(name: str, /, *, database: Database = None) -> None:
    """Open the items after the pilot of a study for rating.

    Parameters
    ----------
    name
        Name of the study.

    Examples
    --------
    arena study open experts
    arena study open experts --database postgresql://arena@localhost/arena
    """
    from arena.store import studies

    with arena_store(database) as store, store.writing() as session:
        _require_study(studies.names(session), name)
        new = studies.open_rest(session, name)
    say(f"All items of {name!r} " + ("can be rated now." if new else "could be rated before."))


def status(name: str, /, *, database: Database = None, form: TableOrJson = "table") -> None:
    """Show the progress of a study, its raters, and their agreement.

    Agreement is Krippendorff's alpha and Gwet's AC1 of first ratings, without gold items, pilot
    and skips. Values that cannot be estimated are null, with a warning.

    Parameters
    ----------
    name
        Name of the study.
    form
        Output format.

    Examples
    --------
    arena study status experts
    arena study status experts --format json
    """
    from arena.boards.evaluation import read_status
    from arena.store import studies

    with arena_store(database) as store:
        _require_study(store.read(studies.names), name)
        result = read_status(store, name)
    present(result, form, _people_study_show)


def export(
    name: str, /, *, to: Annotated[Path, Parameter(metavar="FILE")], database: Database = None
) -> None:
    """Export the ratings of a study, one per row, for `arena study judge` and other programs.

    Parameters
    ----------
    name
        Name of the study.
    to
        Output file: .parquet, .csv or .jsonl.

    Examples
    --------
    arena study export experts --to experts.parquet
    arena study export experts --to experts.csv --database sqlite:///arena.db
    """
    from arena.boards.evaluation import export as write
    from arena.store import studies
    from rating.tables.duckdb_engine import require_writable

    require_writable(to)
    require_folder_of(to)
    with arena_store(database) as store:
        _require_study(store.read(studies.names), name)
        n = write(store, name, to)
    say(f"{to} has {plural(n, 'rating')}.")


def _people_study_show(result: "StudyStatus") -> None:
    head = ("Rater", "Items", "Skipped", "Gold right", "Repeats alike", "Qualification")
    rows = [
        (
            one.code,
            f"{one.done:,}",
            f"{one.skipped:,}",
            f"{one.gold_right} of {one.gold_asked}" if one.gold_asked else "–",
            f"{one.same} of {one.repeated}" if one.repeated else "–",
            "–" if one.qualification is None else f"{one.qualification:.0%}",
        )
        for one in result.raters
    ]
    alpha, ac1 = (
        with_interval(one.value, one.lower, one.upper, ".3f", none="not known")
        for one in (result.agreement.alpha, result.agreement.ac1)
    )
    lines = [
        f"{result.plan.name}: {result.done:,} of {result.items:,} items have their "
        f"{plural(result.plan.raters_per_item, 'rating')}; {plural(result.ratings, 'rating')} by "
        f"{plural(len(result.raters), 'rater')}.",
        f"Krippendorff's alpha {alpha}, Gwet's AC1 {ac1}.",
    ]
    if result.pilot:
        state = "the rest is open" if result.opened else "the rest waits for arena study open"
        lines.append(f"The first {result.pilot} items are a pilot: {state}.")
    if result.stop:
        lines.append(_stop_words(result.stop))
    notes = warnings([*result.agreement.warnings, *result.notes])
    show(plain("\n".join(lines)), table(head, rows), *notes)


def _stop_words(stop: "Enough") -> str:
    if stop.half_width is None:
        return f"Target: alpha ± {stop.wanted:g}. It has no interval yet."
    now = f"Target: alpha ± {stop.wanted:g}; now ± {stop.half_width:.3f}"
    more = plural(stop.more or 0, "more rating")
    return f"{now}: reached." if stop.reached else f"{now}: about {more}."


def _require_numbers(name: str, repeats: float, pilot: int, until: float | None) -> None:
    if not NAME.fullmatch(name):
        raise DataError(
            f"{name[:80]!r} is not a name for a study: give 1 to 60 letters, digits, - and _, "
            "beginning with a letter or digit."
        )
    if not 0 <= repeats <= 0.5:
        raise DataError(f"--repeats {repeats:g} is not from 0 to 0.5: give a share such as 0.05.")
    if pilot < 0:
        raise DataError(f"--pilot {pilot} is not a number of items: give 0 or more.")
    if until is not None and not (math.isfinite(until) and 0 < until < 1):
        raise DataError(f"--until {until:g} is not a half-width: give one between 0 and 1.")


def _planned(
    kind: Any, file: Path, outputs: Path | None = None, prompts: Path | None = None
) -> "list[PlannedItem]":
    from arena.domain.study import StudyKind as Kind
    from judge.tables.items import read_rating_items

    has_gold = kind in (Kind.GOLD, Kind.QUALIFICATION)
    with announced():
        items = read_rating_items(file, gold=has_gold, outputs=outputs, prompts=prompts)
    return _as_planned(kind, items, file)


def _planned_runs(kind: Any, *sources: Path) -> "list[PlannedItem]":
    from arena.domain.study import StudyKind as Kind
    from judge.tables.agent_runs import read_agent_runs
    from rating.tables.files import Files

    with announced():
        items = read_agent_runs(Files(sources), gold=kind is not Kind.ITEM)
    return _as_planned(kind, items, sources[0])


def _as_planned(kind: Any, items: "Sequence[RatingItem]", file: Path) -> "list[PlannedItem]":
    from arena.domain.study import PlannedItem

    if len(items) > MOST_ITEMS:
        msg = f"{str(file)!r} has {len(items):,} items: the maximum for a study is {MOST_ITEMS:,}."
        raise DataError(msg)
    return [PlannedItem(kind, item) for item in items]


def _mind_names(planned: "list[PlannedItem]", *, allowed: bool) -> None:
    """Refuse runs that name a model or a vendor, unless allowed; print which in any case."""
    from judge.labels.accuracy import names_in_runs, tools_of_one

    items = [one.item for one in planned]
    for tool, system in tools_of_one(items).items():
        say(f"Only {system} calls {tool!r}: a rater may recognise the system by it.", error=True)
    names = names_in_runs(items)
    for one in names[:MOST_NAMED]:
        say(f"{one.item}, {one.system}, {one.place}: {one.words!r}", error=True)
    if len(names) > MOST_NAMED:
        say(f"and {len(names) - MOST_NAMED:,} more", error=True)
    if names and not allowed:
        raise DataError(
            f"These {len(names):,} names of models or vendors would be visible to raters. Replace "
            "names that reveal a system, or pass --allow-names if none does."
        )


def _answered(
    name: str, items: Path, answers: _LiveAnswers, outputs: Path | None, database: str | None
) -> "list[PlannedItem]":
    """Plan items that models answer now, once it is known that the study can be made."""
    from arena.domain.study import PlannedItem
    from arena.domain.study import StudyKind as Kind
    from arena.store import studies

    if outputs is not None:
        raise DataError("--models answer the prompts themselves: omit --outputs and --prompts.")
    with arena_store(database) as store:
        _people_study_require_new(store.read(studies.names), name)
    return [PlannedItem(Kind.ITEM, one) for one in _answered_items(items, answers, database)]


def _people_study_require_new(names: list[str], name: str) -> None:
    if name in names:
        raise SettingsError(f"There is a study {name!r} already: choose another name.")


def _require_apart(planned: "list[PlannedItem]", files: Sequence[Path | None]) -> None:
    """Raise `DataError` for an item that stands in two files."""
    seen = set()
    for one in planned:
        if one.item.item in seen:
            names = ", ".join(repr(str(file)) for file in files if file)
            msg = f"The item {one.item.item!r} is in {names} twice: give each an id of its own."
            raise DataError(msg)
        seen.add(one.item.item)


def _rubric(file: Path) -> "tuple[RubricItem, ...]":
    from arena.domain.study import RubricItem
    from rating.tables.files import parsed_toml, read_text

    wanted = (
        f"{str(file)!r} is not a rubric: write [[item]] tables, each with name, question and "
        'answers, such as answers = ["yes", "no"]'
    )
    try:
        written = parsed_toml(read_text(file), repr(str(file))).get("item", [])
        rubric = tuple(
            RubricItem(str(one["name"]), str(one["question"]), tuple(map(str, one["answers"])))
            for one in written
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{wanted} ({error}).") from error
    names = {one.name for one in rubric}
    for one in rubric:
        if not NAME.fullmatch(one.name) or not one.question or len({*one.answers}) < 2:
            msg = f"{wanted}; {one.name!r} needs a plain name, a question and two answers."
            raise DataError(msg)
    if not rubric or len(names) < len(rubric) or len(rubric) > 10:
        raise DataError(f"{wanted}: 1 to 10 of them, each with a name of its own.")
    return rubric


def _require_study(names: list[str], name: str) -> None:
    if name not in names:
        some = ", ".join(map(repr, names[:5])) or "none yet: arena study create makes one"
        raise SettingsError(f"There is no study {name[:80]!r}; there are {some}.")


# arena cold-start


def cold_start(
    *,
    votes: str,
    verdicts: str,
    model: str,
    options: Annotated[NewcomerOptions, Flat] = NewcomerOptions(),  # noqa: B008 - it is frozen
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    form: TableOrJson = "table",
) -> None:
    """Estimate the rating of a new model from a judge's verdicts (cold start), with an interval.

    Regresses the judge's ratings of known models on human ratings and inverts the line
    (calibration; Fieller interval). No interval with fewer than 8 known models (--fewest-known);
    no rating if the judge does not separate models. Exit codes: 2 invalid options or files, 3 the
    votes or verdicts do not identify ratings.

    Parameters
    ----------
    votes
        Human votes: a file, folder or pattern, or a database URL.
    verdicts
        Verdicts of one or more judges: a file, folder or pattern. Uses the first of these columns:
        preference; score_a and score_b; confidence; winner.
    model
        The new model.
    form
        Output format.

    Examples
    --------
    arena cold-start --votes votes.parquet --verdicts verdicts.parquet --model umber
    arena cold-start --votes votes.parquet --verdicts verdicts.parquet --model umber --format json
    """
    from judge.studies.newcomer import rate_newcomer  # help would wait for duckdb

    with working("Rating"):
        source, given = chosen.beside(votes, verdicts)
        named = replace(options, anchors=_each_name(options.anchors), own=_each_name(options.own))
        result = rate_newcomer(source, given, model, named)
    present(result, form, _show_newcomer)


def _each_name(words: Sequence[str]) -> tuple[str, ...]:
    """Part names that stand in one word, with commas."""
    return tuple(name for word in words for name in word.split(","))


def _show_newcomer(result: "NewModel") -> None:
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
