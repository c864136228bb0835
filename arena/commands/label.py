"""Commands on prompts: `arena label`, `probe duplicates`, `overlap`, `topics` and `safety`."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import RenderableType
from rich.styled import Styled

from arena import terminal
from arena.commands.arguments import (
    Columns,
    Database,
    File,
    Flat,
    RosterFile,
    TableOrJson,
    require_folder_of,
)
from arena.commands.judge_work import (
    JudgeOptions,
    asked_of,
    in_words,
    roster_model,
    roster_models,
    seat_of,
)
from arena.commands.rate import HEADS, cell
from arena.errors import SettingsError
from arena.terminal import (
    announced,
    plain,
    present,
    say,
    show,
    stop,
    with_interval,
    working,
    write_json,
)
from rating.errors import DataError
from rating.tables.files import Files

if TYPE_CHECKING:
    from arena.domain.model import Model
    from arena.store.judgements import StoredJournal
    from judge.budget import Estimate
    from judge.case import Case, CaseId
    from judge.labels.material import Release, ShownTopic
    from judge.labels.safety import Rate
    from judge.labels.taggers import Label
    from judge.protocol import Method
    from judge.verdict import Run
    from rating.tables.coding import LoggedVotes
    from rating.typing import Floats

    Labels = list[Mapping[str, Label] | None]


# arena label


def _cases(prompts: Sequence[Sequence[str]]) -> "list[Case]":
    from judge.labels.files import case_of

    return [case_of(texts) for texts in prompts]


Roles = Sequence[tuple[str, str]]
Advance = Callable[[int, int], None]
Counts = Mapping[tuple[str, str], int]


def label(
    source: str,
    /,
    *,
    to: File = None,
    columns: Columns = (),
    options: Annotated[JudgeOptions, Flat] = JudgeOptions(),  # noqa: B008 - it is frozen
    dry_run: bool = False,
    form: TableOrJson = "table",
) -> None:
    """Label prompts by category, by rules (offline) or by a model.

    In a database, labels are added to votes that have none. For a file, the rows are written with
    one column per label. An interrupted run resumes. With --judge, a model of the roster labels
    each prompt once; its replies are stored in the database, and leaderboards keep its labels
    apart from those of the rules.
    Exit code 1: stopped with prompts pending.

    Parameters
    ----------
    source
        Database URL, or file, folder or pattern of prompts (.parquet, .csv, .jsonl).
    to
        File for the labelled rows: .parquet or .csv.
    columns
        Read the prompt from this column, such as prompt=question.
    dry_run
        Only show the number of requests and their cost.
    form
        Output format for the label counts.

    Examples
    --------
    arena label sqlite:///arena.db
    arena label prompts.jsonl --judge quartz --roster roster.toml --to labelled.parquet
    """
    from judge.labels.accuracy import shares
    from judge.labels.taggers import TAGGER, VERSION

    if "://" in source:
        if to is not None or columns:
            raise SettingsError(
                "The labels of a database stay in it, with known columns: omit --to and --column, "
                "and export the votes with arena export votes."
            )
        if options.database is not None:
            raise SettingsError(
                f"--database {options.database!r}: replies for a labelled database are stored in "
                "it. Omit the option."
            )
    if options.judge is not None:
        _by_model(source, to, columns, options, form, dry_run=dry_run)
        return
    if dry_run or options != JudgeOptions():
        raise SettingsError("The rules use no model: name a model with --judge.")
    with working("Labelling") as advance:
        counts = (_of_database if "://" in source else _of_file)(source, to, columns, advance)
    result = {"tagger": f"{TAGGER} {VERSION}", **shares(counts)}
    present(result, form, lambda _: _show_shares(source, result, f"{TAGGER}, version {VERSION}"))


def _by_model(
    source: str,
    to: Path | None,
    columns: Roles,
    options: JudgeOptions,
    form: str,
    *,
    dry_run: bool,
) -> None:
    from arena.judging import tagger_of
    from arena.play.upkeep import store_labels, unlabelled_turns
    from arena.settings import read_settings
    from arena.store.labels import counts as counted
    from arena.store.store import Store
    from judge.calls import forecast
    from judge.grammar import Tags
    from judge.labels.accuracy import shares
    from judge.labels.files import TAGGED_FACETS as FACETS
    from judge.labels.files import Tagging, case_of, label_file, labels_of, prompts_of

    is_database = "://" in source
    if is_database:
        from arena.store.engine import reading_existing

        with reading_existing(source):  # else a wrong name would make a database
            pass
    database = source if is_database else options.database
    settings = read_settings(database=database, roster=options.roster)
    model = roster_model(settings.roster, options.judge, "--judge")
    tagger, file, budgets = tagger_of(model), Files((source,)), settings.budgets()
    runs: list[Run] = []
    with announced(), closing(Store(settings.database)) as store:

        def estimate(prompts: Sequence[Sequence[str]]) -> "Estimate":
            seat = seat_of(store, model, options, budgets)
            return asyncio.run(forecast(_cases(prompts), Tagging(), seat.journal, seat.options))

        def labels(prompts: Sequence[Sequence[str]]) -> "Labels":
            """Label the prompts of conversations; None where no label can be read."""
            before = estimate(prompts)
            if before.n_calls:
                say(f"{model.id}: {in_words(before)}", error=True)
            run, _ = asked_of(store, model, _cases(prompts), Tagging(), options, budgets)
            runs.append(run)
            readings = {row.case_id: row.reading for row in run.judged if row.reading is not None}
            given: Labels = []
            for texts in prompts:
                tags = readings.get(case_of(texts).id)
                given.append(labels_of(tags, texts) if isinstance(tags, Tags) else None)
            return given

        def values(prompts: Sequence[Sequence[str]]) -> Iterator[tuple[str | None, ...]]:
            for given in labels(prompts):
                yield tuple(given[facet].value if given else None for facet in FACETS)

        parts = unlabelled_turns(store, tagger) if is_database else ()
        turns = [turn for part in parts for turn in part]
        prompts: Sequence[Sequence[str]] = [turn.prompts for turn in turns]
        if dry_run:
            before = estimate(prompts if is_database else prompts_of(file, _column_of(columns)))
            present(before, form, lambda cost: say(in_words(cost)))
            return
        if is_database:
            store_labels(store, turns, labels(prompts), tagger, datetime.now(UTC))
            counts = store.read(counted, tagger)
        else:
            counts = label_file(file, _column_of(columns), to, by=values, facets=FACETS)
    result = shares(counts, by_rules=False)
    run = runs[-1] if runs else None
    failures = Counter(row.failure for row in run.judged if row.failure) if run else Counter()
    failed = {str(failure): n for failure, n in sorted(failures.items())}
    n_asked, n_recalled = (run.n_asked, run.n_recalled) if run else (0, 0)
    spent_usd = run.spent_usd if run else None
    if form == "json":
        beside = {"asked": n_asked, "recalled": n_recalled, "spent_usd": spent_usd}
        write_json({"tagger": " ".join(tagger), **result, **beside, "failed": failed})
    else:
        _show_shares(source, result, "{}, version {}".format(*tagger))
        spent = "" if spent_usd is None else f" for ${spent_usd:.4g}"
        without = ", ".join(f"{n:,} {failure}" for failure, n in failed.items())
        say(
            f"{model.id}: {n_asked:,} new replies{spent}, {n_recalled:,} reused."
            + (f" Without labels: {without}." if without else "")
        )
    if run and run.stopped is not None:
        stop(run.why)


def _show_shares(source: str, result: Mapping[str, Any], by: str) -> None:
    if not result["prompts"]:
        say(f"{source}: there is nothing to label.")
        return
    head = ("Label", "Value", "Prompts", "Share", "Corrected for errors of the tagger")
    grid = terminal.table(head, map(_cells, result["labels"]), right=range(2, 5))
    show(plain(f"{result['prompts']:,} prompts are labelled ({by})."), grid)


# arena probe duplicates and arena overlap


def duplicates(
    source: str,
    /,
    *,
    board: bool = False,
    to: File = None,
    columns: Columns = (),
    form: TableOrJson = "table",
) -> None:
    """Measure how often prompts repeat, and how many are new.

    Near duplicates have a Jaccard similarity of at least 0.8 on 5-character shingles. A prompt is
    new if it is similar to none that is at least a day older.

    Parameters
    ----------
    source
        Database URL, or file, folder or pattern of prompts (.parquet, .csv, .jsonl).
    board
        Also rate the votes with frequent prompts downweighted to the 99.9th percentile.
    to
        Write the rows to this file (.parquet, .csv) with a column prompt_group; cluster by it with
        `arena rate --column prompt=prompt_group`.
    columns
        Read the prompt or time from this column, such as prompt=question.
    form
        Output format.

    Examples
    --------
    arena probe duplicates sqlite:///arena.db
    arena probe duplicates votes.parquet --to grouped.parquet
    """
    from judge.labels import material as alike

    if to and "://" in source:
        raise SettingsError(f"--to {str(to)!r} takes a file of votes: export those of {source!r}.")
    with working("Comparing") as advance:
        texts, seconds = _timed_prompts(source, columns)
        groups = alike.duplicates(texts, advance)
    if to:
        from judge.labels.files import group_file

        with working("Writing") as advance:
            group_file(Files((source,)), dict(columns).get("prompt"), to, advance)
    freshness = None if seconds is None else alike.fresh(groups, seconds)
    result = alike.to_dict(texts, groups, freshness)
    sampled = _down_sampled(source, columns) if board else None
    if sampled:
        result["down_sampled"] = sampled
    if form == "json":
        write_json(result)
        return
    rows = [(f"{one['n']:,}", one["prompt"][:SHOWN]) for one in result["largest"]]
    show(*map(plain, _in_words(result)), terminal.table(("Times", "Prompt"), rows, right=(0,)))
    if sampled:
        _show_sampled(sampled)


def _down_sampled(source: str, columns: Roles) -> dict[str, Any]:
    from judge.labels.files import down_sampled, prompts_of
    from judge.labels.material import duplicates as groups_of

    with working("Rating"):
        votes: Files | LoggedVotes
        if "://" in source:
            votes, prompts = _logged(source)
        else:
            votes = Files((source,))
            prompts = prompts_of(votes, dict(columns).get("prompt"))
        return down_sampled(votes, groups_of(["\n\n".join(texts) for texts in prompts]))


def _show_sampled(sampled: Mapping[str, Any]) -> None:
    words = (
        f"{sampled['prompts']:,} prompts with more than {sampled['most']:,} votes each, "
        f"{sampled['votes']:,} together, counted as {sampled['most']:,}. Kendall's tau with "
        f"the unchanged board: {sampled['board']['kendall'] or 0:.2f}."
    )
    rows = [
        (one["model"], f"{one['rank_default']}", f"{one['rank']}", _ends(one, "moved", "+z.1f"))
        for one in sampled["board"]["moves"]
    ]
    head = ("Model", "Rank", "Rank then", "Points moved")
    show(plain(words), terminal.table(head, rows, right=(1, 2)))


def overlap(
    files: Annotated[tuple[str, ...], Parameter(metavar="[BENCHMARK] VOTES")],
    /,
    *,
    roster: RosterFile = None,
    columns: Columns = (),
    level: float = 0.95,
    form: TableOrJson = "table",
) -> None:
    """Compare ratings on prompts inside and outside a benchmark: a hint of contamination.

    A prompt overlaps if it shares 13 consecutive words with a benchmark item, or equals a
    shorter item. A model that does better on these prompts may have been trained on the
    benchmark. With a roster, each model with a training cutoff is also compared on prompts before
    and after it.
    Exit code 3: prompts of one kind do not identify ratings.

    Parameters
    ----------
    files
        Benchmark items (file, folder or pattern; .parquet, .csv, .jsonl), unless only cutoffs are
        compared; then the votes: a database URL, or files with prompts.
    roster
        TOML file of models with training cutoffs.
    columns
        Read the prompt or time of votes from this column, such as prompt=question.
    level
        Confidence level.
    form
        Output format.

    Examples
    --------
    arena overlap gsm8k.jsonl sqlite:///arena.db
    arena overlap sqlite:///arena.db --roster roster.toml
    """
    if len(files) not in (1, 2) or (len(files) == 1 and roster is None):
        raise SettingsError("Name a benchmark and votes, or votes alone with --roster.")
    *benchmark, source = files
    result = _of_benchmark(benchmark[0], source, columns, level) if benchmark else None
    changes = _around_cutoffs(source, roster, columns, level) if roster else None
    if form == "json":
        cutoffs = {} if changes is None else {"cutoffs": changes[0], "not_rated": changes[1]}
        write_json({**(result or {}), **cutoffs})
        return
    if result:
        head = ("Model", "Overlapping", "Others", "Difference", "p, after Holm")
        words = (
            f"{result['overlapping']:,} of {result['votes']:,} votes are on prompts of the "
            "benchmark."
        )
        show(plain(words), terminal.table(head, map(_gain, result["models"])))
    if changes is not None:
        _show_changes(*changes)


def _of_benchmark(benchmark: str, source: str, columns: Roles, level: float) -> dict[str, Any]:
    from judge.labels.files import prompts_of, rated_apart
    from judge.labels.material import Benchmark, overlapping

    with working("Comparing"):
        items = Benchmark(
            [text for texts in prompts_of(Files((benchmark,)), None) for text in texts]
        )
        if "://" in source:
            votes, prompts = _logged(source)
            return rated_apart(votes, overlapping(prompts, items), level)
        file = Files((source,))
        asked = prompts_of(file, dict(columns).get("prompt"))
        return rated_apart(file, overlapping(asked, items), level)


def _around_cutoffs(
    source: str, roster: Path, columns: Roles, level: float
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from arena.settings import read_roster
    from judge.labels.files import before_and_after, timed_prompts
    from judge.labels.material import duplicates, first_written

    models = read_roster(roster, to_battle=False)
    cutoffs = {model.id: model.cutoff for model in models if model.cutoff is not None}
    if not cutoffs:
        msg = f"{roster}: no model has a cutoff. Write cutoff = 2026-03-01 into its table."
        raise SettingsError(msg)
    with working("Comparing") as advance:
        votes: Files | LoggedVotes
        if "://" in source:
            votes, prompts = _logged(source)
            texts = ["\n\n".join(part) for part in prompts]
            seconds = votes.created / 1e6
        else:
            votes, named = Files((source,)), dict(columns)
            texts, known = timed_prompts(votes, named.get("prompt"), named.get("time"))
            if known is None:
                raise SettingsError(
                    f"There is no column of times in {source!r}: name it with --column time=NAME."
                )
            seconds = known
        first = first_written(duplicates(texts, advance), seconds)
    with working("Rating") as advance:
        return before_and_after(votes, first, cutoffs, level, advance)


def _show_changes(changes: Sequence[Mapping[str, Any]], not_rated: Mapping[str, str]) -> None:
    head = ("Model", "Cutoff", "Before minus later", "Later", "Before less later", "p, after Holm")
    rows = [
        (
            one["model"], one["cutoff"], f"{one['before']:,}", f"{one['after']:,}",
            _ends(one, "difference", "+z.0f"), f"{one['p']:.3f}",
        )
        for one in changes
    ]  # fmt: skip
    about = (
        "Ratings on prompts similar to one that was public before the cutoff, minus those on "
        "later prompts, minus the mean of this difference over the other models."
    )
    show(plain(about), terminal.table(head, rows, right=(2, 3)))
    for model, why in not_rated.items():
        say(f"{model}: {why}")


def _gain(one: Mapping[str, Any]) -> tuple[str, ...]:
    ratings = (f"{one[name]:.0f}" for name in ("overlapping", "others"))
    return one["model"], *ratings, _ends(one, "difference", "+z.0f"), f"{one['p']:.3f}"


def _logged(url: str) -> "tuple[LoggedVotes, list[list[str]]]":
    from arena.boards.fitted import votes_of
    from arena.store import labels
    from arena.store.engine import reading_existing

    votes = votes_of(url)
    with reading_existing(url) as session:
        asked = labels.prompts_of_votes(session)
    return votes, [asked.get(battle, []) for battle in votes.values("battle")]


def _timed_prompts(source: str, columns: Roles) -> "tuple[list[str], Floats | None]":
    if "://" not in source:
        from judge.labels.files import timed_prompts

        named = dict(columns)
        return timed_prompts(Files((source,)), named.get("prompt"), named.get("time"))
    import numpy as np

    from arena.store.engine import reading_existing
    from arena.store.labels import prompts

    with reading_existing(source) as session:
        rows = prompts(session)
    return [text for text, _ in rows], np.array([moment.timestamp() for _, moment in rows])


def _in_words(result: Mapping[str, Any]) -> list[str]:
    repeated, fresh = result["repeated"], result["fresh"]
    words = [
        f"{result['prompts']:,} prompts, {result['distinct']:,} different texts, "
        f"{result['groups']:,} groups of similar prompts."
    ]
    if repeated:
        words.append(f"Similar to an earlier one: {_ends(repeated, 'share', '.1%')}.")
    if fresh:
        words.append(
            f"Not similar to any that is at least a day older: {_ends(fresh, 'share', '.1%')}, of "
            f"{fresh['n']:,}."
        )
    return words


def _ends(one: Mapping[str, Any], name: str, form: str) -> str:
    return with_interval(one[name], one["lower"], one["upper"], form)


# arena topics

SHOWN = 100
"""Characters of a prompt in a table."""


def _of_database(url: str, to: Path | None, columns: Roles, advance: Advance) -> Counts:
    from arena.play.upkeep import (  # SQLAlchemy takes a second to import
        TAGGING,
        label_self_naming,
        label_votes,
    )
    from arena.store.labels import counts
    from arena.store.store import existing

    with existing(url) as store:
        label_votes(store, lambda: datetime.now(UTC), advance)
        label_self_naming(store, lambda: datetime.now(UTC))
        return store.read(counts, TAGGING)


def _of_file(source: str, to: Path | None, columns: Roles, advance: Advance) -> Counts:
    from judge.labels.files import label_file

    return label_file(Files((source,)), _column_of(columns), to, advance)


def _column_of(columns: Roles) -> str | None:
    named = dict(columns)
    if {*named} - {"prompt"}:
        msg = f"There is no role {min({*named} - {'prompt'})!r} of a column: the one is prompt."
        raise SettingsError(msg)
    return named.get("prompt")


def _cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    value, lower, upper = (one.get(name) for name in ("corrected", "lower", "upper"))
    words = "–" if None in (value, lower, upper) else f"{value:.1%} ({lower:.1%} to {upper:.1%})"
    return one["facet"], one["value"], f"{one['n']:,}", f"{one['share']:.1%}", words


def topics(
    source: str,
    /,
    *,
    private: bool = False,
    embeddings: Annotated[str | None, Parameter(metavar="MODEL")] = None,
    columns: Columns = (),
    database: Database = None,
    roster: RosterFile = None,
    form: TableOrJson = "table",
) -> None:
    """Cluster prompts into topics, with titles and stability.

    A topic that does not recur from other random starts is not shown.

    Parameters
    ----------
    source
        Database URL, or file, folder or pattern of prompts (.parquet, .csv, .jsonl).
    private
        Show topics with ten or more people, with rounded counts: the current release of a
        database; for a file, a voter column is needed.
    embeddings
        Cluster embeddings of a model in the roster instead of words; they are stored in the
        database.
    columns
        Read the prompt or voter from this column, such as prompt=question.
    form
        Output format.

    Examples
    --------
    arena topics sqlite:///arena.db
    arena topics prompts.parquet --private --column voter=user --format json
    """
    if private and embeddings:
        raise SettingsError("Private topics use words only: omit --embeddings or --private.")
    if private:
        release = _private(source, columns)
    elif embeddings:
        release = _embedded(_texts(source, columns), embeddings, database, roster)
    else:
        from judge.labels.material import open_release

        with working("Learning") as advance:
            release = open_release(_texts(source, columns), advance)
    if form == "json":
        write_json(release.to_dict())
        return
    one = release.agreement
    about = (
        f"{('About ' if release.private else '')}{release.prompts:,} prompts. Topics from "
        f"other random starts agree with an adjusted Rand index of {one.mean:.2f} "
        f"({one.lowest:.2f} to {one.highest:.2f})."
    )
    head = ("Topic", "Prompts", "Share", "Stability")
    rows = list(_topics_rows(release.topics, release.prompts))
    show(plain(about), terminal.table(head, rows, right=range(1, 4)))
    if not rows:
        say("No topic is stable enough to be shown.")


def _topics_rows(
    topics: "Sequence[ShownTopic]", n: int, indent: str = ""
) -> Iterator[tuple[str, ...]]:
    for one in topics:
        title = indent + ", ".join(one.words)
        yield title, f"{one.prompts:,}", f"{one.prompts / n:.1%}", f"{one.stability:.2f}"
        yield from _topics_rows(one.within, n, indent + "  ")


def _texts(source: str, columns: Sequence[tuple[str, str]]) -> list[str]:
    if "://" in source:
        from arena.domain.vote import DEFAULT
        from arena.store.engine import reading_existing
        from arena.store.log import asked

        with reading_existing(source) as session:
            return [one.text for one in asked(session, DEFAULT)]
    from judge.labels.files import prompts_of

    named = prompts_of(Files((source,)), dict(columns).get("prompt"))
    return ["\n\n".join(texts) for texts in named]


def _private(source: str, columns: Sequence[tuple[str, str]]) -> "Release":
    if "://" in source:
        # The newest private release: another one beside it could be compared with it.
        from arena.store.engine import reading_existing
        from arena.store.log import newest_topics as newest

        with reading_existing(source) as session:
            stored = newest(session, private=True)
        if stored is None:
            raise SettingsError(
                f"{source} has no release of private topics: an arena with "
                "ARENA_SHOW_BATTLES=false makes one a week, once 50 people have asked 500 prompts."
            )
        return stored.release
    from judge.labels.files import asked_by
    from judge.labels.material import private_release

    named = dict(columns)
    with working("Learning"):
        asked = asked_by(Files((source,)), named.get("prompt"), named.get("voter"))
        return private_release(None, asked)[0]


def _embedded(
    texts: list[str], model: str, database: str | None, roster: Path | None
) -> "Release":
    import numpy as np

    from arena.commands.probe import embedded_by
    from judge.labels.material import open_release

    known = embedded_by(model, database, roster)(texts)
    vectors = np.array([known[text] for text in texts], dtype=np.float32)
    with working("Learning") as advance:
        return open_release(texts, advance, vectors=vectors)


# arena safety


def safety(
    pack: str,
    /,
    *,
    model: Annotated[tuple[str, ...], Parameter(metavar="ID")] = (),
    judge: Annotated[str | None, Parameter(metavar="ID")] = None,
    labelled: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    max_tokens: Annotated[int, Parameter(validator=Number(gte=1))] = 512,
    budget: Annotated[float | None, Parameter(metavar="USD")] = None,
    concurrency: Annotated[int, Parameter(validator=Number(gte=1))] = 16,
    database: Database = None,
    roster: RosterFile = None,
    form: TableOrJson = "table",
    out: File = None,
) -> None:
    """Measure refusals: send models harmful prompts and benign counterparts.

    Harmful prompts: rates of refusal and compliance, without a system prompt ("does") and with the
    pack's permissive system prompt ("can"). Benign counterparts: rate of refusal. Replies are
    stored in the database, so that a repeated run sends no request twice.
    Exit code 1: stopped with prompts pending.

    Parameters
    ----------
    pack
        Prompt file (.csv, .jsonl, .parquet): prompt, category, kind (harmful or benign), and
        optionally system.
    model
        Model id in the roster; repeatable. All models by default.
    judge
        Model id in the roster that decides whether an answer to a harmful prompt complies.
    labelled
        Answers with human labels (prompt, response, complied), to correct the judge's estimates.
    max_tokens
        Maximum number of tokens per answer.
    budget
        Stop before the cost per model exceeds this amount.
    concurrency
        Maximum number of parallel requests.
    form
        Output format.
    out
        Output file (JSON).

    Examples
    --------
    arena safety pack.csv --model pocket-unigram
    arena safety pack.csv --format json --out safety.json
    """
    require_folder_of(out)
    if labelled is not None and judge is None:
        raise DataError("--labelled is for a judge: name it with --judge.")
    from arena.settings import read_settings
    from arena.store.store import Store
    from judge.labels.accuracy import compared
    from judge.labels.safety import (
        RUBRIC,
        Answers,
        Read,
        on_rates,
        rates,
        read_labelled,
        read_pack,
    )
    from judge.methods import method as named

    items = read_pack(pack)
    known = None if labelled is None else read_labelled(labelled)
    settings = read_settings(database=database, roster=roster)
    models = [roster_model(settings.roster, name, "--model") for name in model]
    models = models or list(roster_models(settings.roster))
    by = None if judge is None else roster_model(settings.roster, judge, "--judge")
    notes, stopped = list[str](), ""
    chosen = JudgeOptions(budget=budget, concurrency=concurrency)
    with announced(), closing(Store(settings.database)) as store:

        def ask(
            one: "Model", cases: "Sequence[Case]", method: "Method"
        ) -> "tuple[Run, StoredJournal]":
            """Ask what the journal does not hold yet; what failed is noted, and excluded."""
            nonlocal stopped
            run, journal = asked_of(store, one, cases, method, chosen, settings.budgets())
            failed = Counter(row.failure for row in run.judged if row.failure is not None)
            notes.extend(f"{one.id}: {n:,} excluded, {why}." for why, n in sorted(failed.items()))
            if run.stopped is not None:
                stopped = f"{one.id}: {run.why}"
            return run, journal

        def judged(cases: "Sequence[Case]") -> "dict[CaseId, bool]":
            assert by is not None
            by_rubric = named("rubric", rubric=RUBRIC, scale=(0, 1))
            return {k: bool(v) for k, v in _scores(ask(by, cases, by_rubric)[0]).items()}

        def answered(one: "Model") -> Read:
            asked = [(item, item.case(mode)) for item in items for mode in item.modes]
            run, journal = ask(one, [case for _, case in asked], Answers(max_tokens))
            refused = {case_id: bool(score) for case_id, score in _scores(run).items()}
            if by is None:
                return Read(one.id, refused)
            keys = {row.keys[-1]: row.case_id for row in run.judged if row.keys}
            replies = asyncio.run(journal.recall(list(keys)))
            texts = {keys[key]: reply.text for key, reply in replies.items()}
            to_judge = {
                case.id: item.answered(texts[case.id])
                for item, case in asked
                if item.kind == "harmful" and case.id in texts
            }
            says = judged(list(to_judge.values()))
            pairs = to_judge.items()
            return Read(one.id, refused, {k: says[c.id] for k, c in pairs if c.id in says})

        read = [answered(one) for one in models]
        errors = None
        if by is not None and known is not None:  # hold the judge against labels
            says = judged([case for case, _ in known])
            pairs = [(so, says[case.id]) for case, so in known if case.id in says]
            errors = compared("compliance", pairs)
    done = rates(items, read, errors)
    notes += on_rates(done, errors, judged=by is not None)
    result = {
        "prompts": len(items),
        "judge": judge,
        "rates": [rate.to_dict() for rate in done],
        "notes": notes,
    }
    present(result, form, lambda _: show(*_tables(done), *map(plain, notes)), out)
    if stopped:
        stop(stopped)


def _scores(run: "Run") -> "dict[CaseId, int]":
    from judge.grammar import Rating

    rated = ((row.case_id, row.reading) for row in run.judged)
    return {case: int(one.score) for case, one in rated if isinstance(one, Rating)}


def _tables(done: "Sequence[Rate]") -> Iterator[RenderableType]:
    """Lay out a table a category, the whole pack first; rates on few prompts are dim."""
    yield plain("Percent of prompts, corrected for known errors of the reader; n below.")
    heads = [key for key in HEADS if any((rate.what, rate.mode) == key for rate in done)]
    for category in dict.fromkeys(rate.category for rate in done):
        of_it: dict[tuple[str, tuple[str, str]], Rate] = {
            (rate.model, (rate.what, rate.mode)): rate
            for rate in done
            if rate.category == category
        }
        models = dict.fromkeys(model for model, _ in of_it)
        rows = [[model, *(cell(of_it.get((model, key))) for key in heads)] for model in models]
        grid = terminal.table([category, *(HEADS[key] for key in heads)], rows)
        few = all(rate.is_few for rate in of_it.values())
        yield Styled(grid, "dim") if few else grid
