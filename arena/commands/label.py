"""`arena label`, `arena probe duplicates` and `arena overlap`: prompts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from arena import terminal
from arena.commands.arguments import Columns, File, Flat, RosterFile, TableOrJson
from arena.commands.judge_work import JudgeOptions, in_words
from arena.commands.tagging import ModelTagger, opened_tagger
from arena.errors import SettingsError
from arena.terminal import plain, say, show, stop, working, write_json
from rating.tables.files import Files

if TYPE_CHECKING:
    from arena.store.labels import VotedTurn
    from judge.labels.files import DownSampled
    from judge.labels.overlap import Change, Gain, Overlap
    from judge.labels.shares import LabelShare, Shares
    from judge.studies.estimates import Estimate
    from rating.diagnosis.reweighting import Move
    from rating.tables.log import LoggedVotes
    from rating.typing import Floats

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
    """Say what prompts ask for: by rules that need no model and no network, or by a model.

    Of a database every vote without labels gets them, and what is labelled stays so. Of a file
    the rows are written again with a column a label. Broken off, it goes on where it stopped.
    With --judge a model of the roster is asked, each prompt once: its replies are kept in the
    database, and its labels are its own, which no board mixes with those of the rules.
    Exit code 1: it stopped with prompts still pending.

    Parameters
    ----------
    source
        Database URL, or file, folder or pattern of prompts (.parquet, .csv, .jsonl).
    to
        File to write the labelled rows of a file to: .parquet or .csv.
    columns
        Read the prompts from the column of this name, as in prompt=question.
    dry_run
        Only say what a model would be asked, and its cost.
    form
        How to write the shares of the labels.

    Examples
    --------
    arena label sqlite:///arena.db
    arena label prompts.jsonl --judge quartz --roster roster.toml --to labelled.parquet
    """
    from judge.labels.shares import shares
    from judge.labels.taggers import TAGGER, VERSION

    if "://" in source:
        _require_database_alone(to, columns, options)
    if options.judge is not None:
        _by_model(source, to, columns, options, form, dry_run=dry_run)
        return
    _require_nothing_asked(options, dry_run=dry_run)
    with working("Labelling") as advance:
        counts = (_of_database if "://" in source else _of_file)(source, to, columns, advance)
    result = shares(counts)
    if form == "json":
        write_json({"tagger": f"{TAGGER} {VERSION}", **result.to_dict()})
    else:
        _show_shares(source, result, f"{TAGGER}, version {VERSION}")


def _by_model(
    source: str,
    to: Path | None,
    columns: Roles,
    options: JudgeOptions,
    form: str,
    *,
    dry_run: bool,
) -> None:
    from judge.labels.shares import shares

    is_database = "://" in source
    if is_database:
        _require_there(source)
    with opened_tagger(options, source if is_database else options.database) as model:
        if dry_run:
            prompts = _turns_of(model)[1] if is_database else _prompts_of(source, columns)
            _show_estimate(model, prompts, form)
            return
        counts = _turns(model) if is_database else _rows(model, source, to, columns)
    result = shares(counts, by_rules=False)
    if form == "json":
        write_json({"tagger": " ".join(model.tagger), **result.to_dict(), **model.to_dict()})
    else:
        _show_shares(source, result, "{}, version {}".format(*model.tagger))
        say(model.words())
    _end(model)


def _turns_of(model: ModelTagger) -> "tuple[list[VotedTurn], list[list[str]]]":
    from arena.play.labels import unlabelled_turns

    parts = unlabelled_turns(model.store, model.tagger)
    turns = [turn for part in parts for turn in part]
    return turns, [turn.prompts for turn in turns]


def _turns(model: ModelTagger) -> Counts:
    from arena.play.labels import store_labels
    from arena.store.labels import counts

    turns, prompts = _turns_of(model)
    store_labels(model.store, turns, model.labels(prompts), model.tagger, datetime.now(UTC))
    return model.store.read(counts, model.tagger)


def _rows(model: ModelTagger, source: str, to: Path | None, columns: Roles) -> Counts:
    from judge.labels.files import label_file
    from judge.labels.tagging import FACETS

    def values(prompts: Sequence[Sequence[str]]) -> Iterator[tuple[str | None, ...]]:
        for labels in model.labels(prompts):
            yield tuple(labels[facet].value if labels else None for facet in FACETS)

    return label_file(Files((source,)), _column_of(columns), to, by=values, facets=FACETS)


def _prompts_of(source: str, columns: Roles) -> list[list[str]]:
    from judge.labels.files import prompts_of

    return prompts_of(Files((source,)), _column_of(columns))


def _show_estimate(model: ModelTagger, prompts: Sequence[Sequence[str]], form: str) -> None:
    estimate = model.estimate(prompts)
    if form == "json":
        write_json(estimate.to_dict())
    else:
        say(in_words(estimate))


def _show_shares(source: str, result: "Shares", by: str) -> None:
    if not result.prompts:
        say(f"{source}: there is nothing to label yet.")
        return
    head = ("Label", "Value", "Prompts", "Share", "Corrected for errors of the tagger")
    grid = terminal.table(head, map(_cells, result.labels), right=range(2, 5))
    show(plain(f"{result.prompts:,} prompts are labelled ({by})."), grid)


def _end(model: ModelTagger) -> None:
    """End with 1 if prompts are still pending."""
    if model.stopped:
        stop(model.stopped)


def duplicates(
    source: str,
    /,
    *,
    board: bool = False,
    to: File = None,
    columns: Columns = (),
    form: TableOrJson = "table",
) -> None:
    """Say how often prompts repeat one another, and how fresh they are.

    Near duplicates have a Jaccard similarity of .8 and more over 5-character shingles. A prompt
    is fresh if it is like nothing that is a day older and more.

    Parameters
    ----------
    source
        Database URL, or file, folder or pattern of prompts (.parquet, .csv, .jsonl).
    board
        Also rate the votes with prompts that are asked most counted less: each as often as one
        at the 99.9th percentile.
    to
        Write the rows of a file again (.parquet, .csv) with a column prompt_group: arena rate
        clusters by it with --column prompt=prompt_group.
    columns
        Read prompt or time from the column of this name, as in prompt=question.
    form
        How to write it.

    Examples
    --------
    arena probe duplicates sqlite:///arena.db
    arena probe duplicates votes.parquet --to grouped.parquet
    """
    from judge.labels import duplicates as alike

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
        result["down_sampled"] = sampled.to_dict()
    if form == "json":
        write_json(result)
        return
    rows = [(f"{one['n']:,}", one["prompt"][:SHOWN]) for one in result["largest"]]
    show(*map(plain, _in_words(result)), terminal.table(("Times", "Prompt"), rows, right=(0,)))
    if sampled:
        _show_sampled(sampled)


def _down_sampled(source: str, columns: Roles) -> "DownSampled":
    from judge.labels.duplicates import duplicates as groups_of
    from judge.labels.files import down_sampled, prompts_of

    with working("Rating"):
        votes: Files | LoggedVotes
        if "://" in source:
            votes, prompts = _logged(source)
        else:
            votes = Files((source,))
            prompts = prompts_of(votes, dict(columns).get("prompt"))
        return down_sampled(votes, groups_of(["\n\n".join(texts) for texts in prompts]))


def _show_sampled(sampled: "DownSampled") -> None:
    words = (
        f"{sampled.prompts:,} prompts with more than {sampled.most:,} votes each, "
        f"{sampled.votes:,} together, counted for {sampled.most:,}. Kendall's tau with the board "
        f"as it is: {sampled.board.kendall or 0:.2f}."
    )
    rows = [
        (one.model, f"{one.rank_default}", f"{one.rank}", _moved(one))
        for one in sampled.board.moves
    ]
    head = ("Model", "Rank", "Rank then", "Points moved")
    show(plain(words), terminal.table(head, rows, right=(1, 2)))


def _moved(one: "Move") -> str:
    if one.lower is None or one.upper is None:
        return f"{one.moved:+.1f}"
    return f"{one.moved:+.1f} ({one.lower:+.1f} to {one.upper:+.1f})"


def overlap(
    files: Annotated[tuple[str, ...], Parameter(metavar="[BENCHMARK] VOTES")],
    /,
    *,
    roster: RosterFile = None,
    columns: Columns = (),
    level: float = 0.95,
    form: TableOrJson = "table",
) -> None:
    """Rate models on prompts that a benchmark holds against all others.

    A prompt overlaps if it has 13 words in a row of an item, or is a shorter item as such. Who
    does better there may have learnt the benchmark by heart. With a roster, also rate each model
    with a cutoff on prompts like one of before that day against later ones.
    Exit code 3: one of the two kinds of prompts identifies no rating.

    Parameters
    ----------
    files
        A benchmark, a file, folder or pattern of items (.parquet, .csv, .jsonl), unless only
        cutoffs are asked for; and votes: database URL, or files with the prompts beside them.
    roster
        TOML file of models, of which some say their cutoff.
    columns
        Read prompt or time of the votes from the column of this name, as in prompt=question.
    level
        Of each interval.
    form
        How to write it.

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
        values = result.to_dict() if result else {}
        if changes is not None:
            values |= {"cutoffs": [one.to_dict() for one in changes[0]], "not_rated": changes[1]}
        write_json(values)
        return
    if result:
        head = ("Model", "Overlapping", "Others", "Difference", "p, after Holm")
        words = (
            f"{result.overlapping:,} of {result.votes:,} votes are on prompts of the benchmark."
        )
        show(plain(words), terminal.table(head, map(_gain, result.gains)))
    if changes is not None:
        _show_changes(*changes)


def _of_benchmark(benchmark: str, source: str, columns: Roles, level: float) -> "Overlap":
    from judge.labels.files import prompts_of, rated_apart
    from judge.labels.overlap import Benchmark, overlapping

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
) -> "tuple[tuple[Change, ...], dict[str, str]]":
    from arena.settings import read_roster
    from judge.labels.duplicates import duplicates, first_written
    from judge.labels.files import before_and_after, timed_prompts

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
                msg = (
                    f"There is no column of times in {source!r}: name it with --column time=NAME."
                )
                raise SettingsError(msg)
            seconds = known
        first = first_written(duplicates(texts, advance), seconds)
    with working("Rating") as advance:
        return before_and_after(votes, first, cutoffs, level, advance)


def _show_changes(changes: "Sequence[Change]", not_rated: Mapping[str, str]) -> None:
    head = ("Model", "Cutoff", "Votes before", "Later", "Before less later", "p, after Holm")
    rows = [
        (
            *(one.model, one.cutoff.isoformat(), f"{one.before:,}", f"{one.after:,}"),
            *(_ends_of(one.difference), f"{one.p:.3f}"),
        )
        for one in changes
    ]
    about = (
        "Ratings on prompts like one that was there before the cutoff, less those on later "
        "prompts, less the same of the other models on average."
    )
    show(plain(about), terminal.table(head, rows, right=(2, 3)))
    for model, why in not_rated.items():
        say(f"{model}: {why}")


def _ends_of(gap: "Estimate") -> str:
    return f"{gap.value:+.0f} ({gap.lower:+.0f} to {gap.upper:+.0f})"


def _gain(one: "Gain") -> tuple[str, ...]:
    ends = _ends_of(one.difference)
    return one.model, f"{one.overlapping:.0f}", f"{one.others:.0f}", ends, f"{one.p:.3f}"


def _logged(url: str) -> "tuple[LoggedVotes, list[list[str]]]":
    from arena.boards.source import votes_of
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
    from arena.store.engine import reading_existing
    from arena.store.labels import prompts

    with reading_existing(source) as session:
        rows = prompts(session)
    return [text for text, _ in rows], _seconds([moment for _, moment in rows])


def _seconds(moments: Sequence[datetime]) -> "Floats":
    import numpy as np

    return np.array([moment.timestamp() for moment in moments])


def _in_words(result: Mapping[str, Any]) -> list[str]:
    repeated, fresh = result["repeated"], result["fresh"]
    words = [
        f"{result['prompts']:,} prompts, {result['distinct']:,} different texts, "
        f"{result['groups']:,} groups of prompts that are alike.",
    ]
    if repeated:
        words.append(f"Like one before: {_ends(repeated)}.")
    if fresh:
        words.append(f"Unlike anything a day older: {_ends(fresh)}, of {fresh['n']:,}.")
    return words


def _ends(share: Mapping[str, float]) -> str:
    return f"{share['share']:.1%} ({share['lower']:.1%} to {share['upper']:.1%})"


SHOWN = 100
"""Characters of a prompt in a table."""


def _require_database_alone(to: Path | None, columns: Roles, options: JudgeOptions) -> None:
    if to is not None or columns:
        msg = (
            "The labels of a database stay in it, and its columns are known: drop --to and "
            "--column, and export the votes with arena export votes."
        )
        raise SettingsError(msg)
    if options.database is not None:
        msg = (
            f"--database {options.database!r}: replies about a database that is labelled are kept "
            "in it. Drop the option."
        )
        raise SettingsError(msg)


def _require_nothing_asked(options: JudgeOptions, *, dry_run: bool) -> None:
    if dry_run or options != JudgeOptions():
        raise SettingsError("Rules ask nobody, and cost nothing: name a model with --judge.")


def _require_there(url: str) -> None:
    from arena.store.engine import reading_existing

    with reading_existing(url):  # else a wrong name would make a database
        pass


def _of_database(url: str, to: Path | None, columns: Roles, advance: Advance) -> Counts:
    from arena.play.labels import (
        TAGGING,
        label_self_naming,
        label_votes,
    )  # SQLAlchemy takes a second to import
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


def _cells(one: "LabelShare") -> tuple[str, ...]:
    corrected = one.corrected
    if corrected is None or None in (corrected.value, corrected.lower, corrected.upper):
        words = "–"
    else:
        words = f"{corrected.value:.1%} ({corrected.lower:.1%} to {corrected.upper:.1%})"
    return one.facet, one.value, f"{one.n:,}", f"{one.share:.1%}", words
