"""`arena study create`, `open`, `status` and `export`: people rate given items."""

import math
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators

from arena.commands.arguments import Database, File, Flat, TableOrJson
from arena.commands.study_answers import GIVEN, LiveAnswers, answered_items
from arena.errors import SettingsError
from arena.terminal import announced, plain, say, show, table, warnings, write_json
from rating.errors import DataError

if TYPE_CHECKING:
    from arena.boards.study import StudyStatus
    from arena.domain.study import PlannedItem, RubricItem
    from arena.store.store import Store
    from judge.studies.estimates import Estimate
    from judge.tables.rating_items import RatingItem

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
    answers: Annotated[LiveAnswers, Flat] = GIVEN,
    database: Database = None,
) -> None:
    """Let people rate the items of a file, on the arena's pages under /studies.

    Ratings stay apart from the votes of battles: no leaderboard counts them. Nothing is written
    unless every row of every file can be used.

    Parameters
    ----------
    name
        What the study is called: letters, digits, - and _; it stands in its address.
    raters_per_item
        Ratings that each item gets, by different people, and no more.
    items
        Items, one a row: item_id, prompt (or messages), model_a, response_a, model_b, response_b,
        or responses, a list of 2 to 12 {"model", "text"}; prompt_id where known. With --models
        prompts, as arena bench takes them.
    runs
        Instead: recorded runs of agents, one a line, each with item, model, scaffold and steps; or
        logs of Inspect (.eval), several or a folder. Runs of the same item are paired.
    allow_names
        Take runs in which a model, a scaffold or a vendor is named, where raters read it.
    outputs
        Answers of the models, one row a prompt and model, where the items name both and have no
        texts, as the send.csv of arena study judge.
    prompts
        Texts of the prompts, likewise.
    gold
        Items of which the right choice is known (column gold: model_a, model_b or tie), strewn
        among the others.
    repeats
        Share of a rater's items that come back with sides exchanged, such as .03.
    guidelines
        Markdown that raters read before they begin.
    pilot
        So many items come first; the rest waits for arena study open.
    qualification
        Items with gold that a rater must pass before rating.
    pass_share
        Share of them to get right.
    rubric
        Questions of your own about each item: a TOML file of [[item]] with name, question,
        answers.
    until
        Half-width of the interval of Krippendorff's alpha at which ratings are enough.
    reveal
        Tell a rater, once an item is rated, who answered, and what an agent's run took.

    Examples
    --------
    arena study create pilot-2 --items pairs.jsonl --raters-per-item 3 --repeats .05
    arena study create agents --runs runs.jsonl --raters-per-item 3 --reveal
    arena study create logged --runs one.eval --runs other.eval --raters-per-item 3
    arena study create next --items send.csv --raters-per-item 2 --outputs o.json --prompts p.csv
    arena study create experts --items pairs.csv --raters-per-item 2 --gold gold.csv --until .1
    arena study create live --items prompts.csv --models basalt,slate --raters-per-item 2
    """
    from arena.domain.study import Kind, StudyPlan
    from arena.store import studies
    from rating.tables.escaping import storable
    from rating.tables.files import read_text

    _require_numbers(name, repeats, pilot, until)
    if (items is None) == (not runs):
        raise DataError(
            "A study is of items or of runs: give one of --items FILE and --runs FILE."
        )
    if runs and (outputs or prompts or answers.models):
        msg = "Runs have outcomes and tasks of their own: drop --outputs, --prompts and --models."
        raise DataError(msg)
    if reveal and repeats:
        msg = (
            f"--repeats {repeats:g} shows items again, and --reveal says whose they are: leave "
            "out one of them."
        )
        raise DataError(msg)
    if (qualification is None) != (pass_share is None):
        msg = (
            "A qualification has a file and a share to pass: give both --qualification and --pass."
        )
        raise DataError(msg)
    if pass_share is not None and not 0 < pass_share <= 1:
        raise DataError(f"--pass {pass_share:g} is no share: give more than 0 and 1 at the most.")
    if items is None:
        planned = _planned_runs(Kind.ITEM, *runs)
    elif answers.models is not None:
        planned = _answered(name, items, answers, outputs, database)
    else:
        planned = _planned(Kind.ITEM, items, outputs, prompts)
    if pilot >= len(planned):
        msg = f"--pilot {pilot} leaves nothing of {len(planned)} items: give fewer."
        raise DataError(msg)
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
        msg = (
            f"{str(guidelines)!r} has {len(text):,} characters: {MOST_GUIDELINES:,} are the most."
        )
        raise DataError(msg)
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
    with _store(database) as store, store.writing() as session:
        _require_new(studies.names(session), name)
        studies.create(session, plan, planned, datetime.now(UTC))
    n = sum(one.kind in (Kind.ITEM, Kind.PILOT) for one in planned)
    say(f"The study {name!r} has {n:,} items of {raters_per_item} ratings each.")
    say(f"People rate them at /studies/{name}.")


def open_rest(name: str, /, *, database: Database = None) -> None:
    """Let people rate what comes after the pilot of a study.

    Parameters
    ----------
    name
        The study.

    Examples
    --------
    arena study open experts
    arena study open experts --database postgresql://arena@localhost/arena
    """
    from arena.store import studies

    with _store(database) as store, store.writing() as session:
        _require_study(studies.names(session), name)
        new = studies.open_rest(session, name)
    say(f"All items of {name!r} " + ("can be rated now." if new else "could be rated before."))


def status(name: str, /, *, database: Database = None, form: TableOrJson = "table") -> None:
    """Say how far a study is, how its raters do, and how far they agree.

    Agreement is Krippendorff's alpha and Gwet's AC1 of the first ratings of items, without gold,
    pilot and skips; what cannot be told is null, and a warning says why.

    Parameters
    ----------
    name
        The study.
    form
        How to write it.

    Examples
    --------
    arena study status experts
    arena study status experts --format json
    """
    from arena.boards.study import read_status

    with _store(database) as store:
        _require_known(store, name)
        result = read_status(store, name)
    if form == "json":
        write_json(result.to_dict())
    else:
        _show(result)


def export(
    name: str, /, *, to: Annotated[Path, Parameter(metavar="FILE")], database: Database = None
) -> None:
    """Write the ratings of a study, one a row, for arena study judge and other programs.

    Parameters
    ----------
    name
        The study.
    to
        File to write: .parquet, .csv or .jsonl.

    Examples
    --------
    arena study export experts --to experts.parquet
    arena study export experts --to experts.csv --database sqlite:///arena.db
    """
    from arena.boards.study import export as write
    from arena.commands.arguments import require_folder_of
    from rating.tables.writing import require_writable

    require_writable(to)
    require_folder_of(to)
    with _store(database) as store:
        _require_known(store, name)
        n = write(store, name, to)
    say(f"{to} has {n:,} ratings.")


def _show(result: "StudyStatus") -> None:
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
    lines = [
        f"{result.plan.name}: {result.done:,} of {result.items:,} items have their "
        f"{result.plan.raters_per_item} ratings; {result.ratings:,} ratings by "
        f"{len(result.raters):,} raters.",
        f"Krippendorff's alpha {_words(result.agreement.alpha)}, Gwet's AC1 "
        f"{_words(result.agreement.ac1)}.",
    ]
    if result.pilot:
        state = "the rest is open" if result.opened else "the rest waits for arena study open"
        lines.append(f"The first {result.pilot} items are a pilot: {state}.")
    if result.stop:
        lines.append(_stop_words(result))
    notes = warnings([*result.agreement.warnings, *result.notes])
    show(plain("\n".join(lines)), table(head, rows), *notes)


def _stop_words(result: "StudyStatus") -> str:
    stop = result.stop
    assert stop is not None
    if stop.half_width is None:
        return f"Wanted: alpha ± {stop.wanted:g}. It has no interval yet."
    now = f"Wanted: alpha ± {stop.wanted:g}; it is ± {stop.half_width:.3f}"
    return f"{now}: enough." if stop.reached else f"{now}: about {stop.more:,} more ratings."


def _words(estimate: "Estimate") -> str:
    if estimate.value is None:
        return "not known"
    if estimate.lower is None or estimate.upper is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} ({estimate.lower:.3f} to {estimate.upper:.3f})"


def _require_numbers(name: str, repeats: float, pilot: int, until: float | None) -> None:
    if not NAME.fullmatch(name):
        msg = (
            f"A study cannot be called {name[:80]!r}: give 1 to 60 letters, digits, - and _, and "
            "begin with a letter or digit."
        )
        raise DataError(msg)
    if not 0 <= repeats <= 0.5:
        raise DataError(f"--repeats {repeats:g} is no share of 0 to .5: give one, such as .05.")
    if pilot < 0:
        raise DataError(f"--pilot {pilot} is no number of items: give 0 or more.")
    if until is not None and not (math.isfinite(until) and 0 < until < 1):
        raise DataError(f"--until {until:g} is no half-width: give one between 0 and 1.")


def _planned(
    kind: Any, file: Path, outputs: Path | None = None, prompts: Path | None = None
) -> "list[PlannedItem]":
    from arena.domain.study import Kind
    from judge.tables.rating_items import read_rating_items

    has_gold = kind in (Kind.GOLD, Kind.QUALIFICATION)
    with announced():
        items = read_rating_items(file, gold=has_gold, outputs=outputs, prompts=prompts)
    return _as_planned(kind, items, file)


def _planned_runs(kind: Any, *sources: Path) -> "list[PlannedItem]":
    from arena.domain.study import Kind
    from judge.tables.agent_runs import read_agent_runs
    from rating.tables.files import Files

    with announced():
        items = read_agent_runs(Files(sources), gold=kind is not Kind.ITEM)
    return _as_planned(kind, items, sources[0])


def _as_planned(kind: Any, items: "Sequence[RatingItem]", file: Path) -> "list[PlannedItem]":
    from arena.domain.study import PlannedItem

    if len(items) > MOST_ITEMS:
        msg = f"{str(file)!r} has {len(items):,} items: a study has {MOST_ITEMS:,} at the most."
        raise DataError(msg)
    return [PlannedItem(kind, item) for item in items]


def _mind_names(planned: "list[PlannedItem]", *, allowed: bool) -> None:
    """Refuse runs that name a model or a vendor, unless that is allowed; say which in any case."""
    from judge.labels.run_names import names_in_runs, tools_of_one

    items = [one.item for one in planned]
    for tool, system in tools_of_one(items).items():
        say(f"Only {system} calls {tool!r}: a rater may learn whose it is.", error=True)
    names = names_in_runs(items)
    for one in names[:MOST_NAMED]:
        say(f"{one.item}, {one.system}, {one.place}: {one.words!r}", error=True)
    if len(names) > MOST_NAMED:
        say(f"and {len(names) - MOST_NAMED:,} more", error=True)
    if names and not allowed:
        msg = (
            f"These are names of models or vendors that raters would read, {len(names):,} in all. "
            "Rename what gives a system away, or if none does, pass --allow-names."
        )
        raise DataError(msg)


def _answered(
    name: str, items: Path, answers: LiveAnswers, outputs: Path | None, database: str | None
) -> "list[PlannedItem]":
    """Plan items that models answer now, once it is known that the study can be made."""
    from arena.domain.study import Kind, PlannedItem
    from arena.store import studies

    if outputs is not None:
        raise DataError("--models answer the prompts themselves: drop --outputs and --prompts.")
    with _store(database) as store:
        _require_new(store.read(studies.names), name)
    return [PlannedItem(Kind.ITEM, one) for one in answered_items(items, answers, database)]


def _require_new(names: list[str], name: str) -> None:
    if name in names:
        msg = f"There is a study {name!r} already: choose another name."
        raise SettingsError(msg)


def _require_apart(planned: "list[PlannedItem]", files: Sequence[Path | None]) -> None:
    """Raise `DataError` for an item that stands in two files."""
    seen = set()
    for one in planned:
        if one.item.item in seen:
            names = ", ".join(repr(str(file)) for file in files if file)
            msg = (
                f"The item {one.item.item!r} stands twice in {names}: give each an id of its own."
            )
            raise DataError(msg)
        seen.add(one.item.item)


def _rubric(file: Path) -> "tuple[RubricItem, ...]":
    from arena.domain.study import RubricItem
    from rating.tables.files import parsed_toml, read_text

    wanted = (
        f"{str(file)!r} is no rubric: write [[item]] tables, each with name, question and "
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


def _store(database: str | None) -> "AbstractContextManager[Store]":
    from arena.settings import read_settings
    from arena.store.store import existing

    return existing(read_settings(database=database).database)


def _require_known(store: "Store", name: str) -> None:
    from arena.store import studies

    _require_study(store.read(studies.names), name)


def _require_study(names: list[str], name: str) -> None:
    if name not in names:
        some = ", ".join(map(repr, names[:5])) or "none yet: arena study create makes one"
        raise SettingsError(f"There is no study {name[:80]!r}; there are {some}.")
