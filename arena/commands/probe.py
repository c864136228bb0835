"""Commands that audit an arena: `arena probe`, `exclude`, `readmit`, `attack` and `gold`.

Each probe tests a measure that others rest on: similarity of texts, a judge, a board, or that
battles are blind. `embedded_by` asks a model of the roster for embeddings; the database keeps
them.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from arena import terminal
from arena.commands.arguments import (
    AS_IT_IS,
    EVERY_ROW,
    Chosen,
    Columns,
    Database,
    File,
    Flat,
    Renamed,
    RosterFile,
    Shares,
    TableOrJson,
    arena_store,
    require_folder_of,
)
from arena.commands.judge_work import opened
from arena.domain.battle import Pacing
from arena.domain.model import Model
from arena.domain.vote import DEFAULT
from arena.errors import SettingsError
from arena.terminal import (
    plain,
    present,
    say,
    show,
    table,
    warnings,
    with_interval,
    working,
    write,
    write_json,
)
from rating import __version__
from rating.errors import DataError
from rating.sentences import plural
from rating.tables.files import Files

if TYPE_CHECKING:
    from rich.console import RenderableType

    from arena.endpoints.sse import Budgets
    from arena.play.matchmaking import Rules
    from arena.play.pace import Sight
    from arena.store.store import Store
    from judge.ifeval import Task
    from judge.probe.prompts import Vectors
    from judge.probe.similarity import Measure
    from judge.studies.gold import ByGap, GoldStudy


def embedded_by(
    name: str, database: str | None, roster: Path | None, *, likelihoods: bool = False
) -> "Callable[[Sequence[str]], Vectors]":
    """Return what embeds texts: it asks for those that the database does not hold.

    With likelihoods it gives how likely each is to the model, in nats, instead.

    Raises
    ------
    SettingsError
        If there is no such model in the roster.
    """
    from arena.settings import read_roster, read_settings
    from arena.store.store import Store

    settings = read_settings(database=database, roster=roster)
    option = "--model" if likelihoods else "--embeddings"
    models = read_roster(settings.roster, to_battle=False) if settings.roster else ()
    model = next((one for one in models if one.id == name), None)
    if model is None:
        known = ", ".join(one.id for one in models) or "none: name its file with --roster"
        msg = f"{option}: there is no model {name!r} in the roster. There are {known}."
        raise SettingsError(msg)

    def embedded(texts: Sequence[str]) -> "Vectors":
        with closing(Store(settings.database)) as store:
            asked = _asked(model, settings.budgets(), store, texts, likelihoods=likelihoods)
            return asyncio.run(asked)

    return embedded


async def _asked(
    model: Model, budgets: "Budgets", store: "Store", texts: Sequence[str], *, likelihoods: bool
) -> "Vectors":
    import numpy as np

    from arena.judging import journal_of, revision_of
    from judge.probe.prompts import embed_all

    revision = revision_of(model)
    with working("Asking" if likelihoods else "Embedding") as advance:
        async with opened(model, budgets) as judge:
            return await embed_all(
                texts,
                judge.log_likelihoods if likelihoods else judge.embed,
                journal_of(store, revision, None),
                model=f"{revision}, log-likelihood" if likelihoods else revision,
                sleep=asyncio.sleep,
                rng=np.random.default_rng(),
                progress=advance,
            )


# arena probe

ENDINGS = {".json": "json", ".html": "html"}

Form = Annotated[
    str | None,
    Parameter(
        name="--format",
        choices=("table", "json", "html"),
        help="Output format; by default that of the extension of --out.",
    ),
]
Out = Annotated[
    Path | None,
    Parameter(metavar="FILE", help="Output file: .html (with JSON next to it) or .json."),
]
Seed = Annotated[int, Parameter(validator=Number(gte=0), help="Random seed.")]


def similarity(
    files: list[Path],
    /,
    *,
    measure: Annotated[tuple[str, ...], Parameter(metavar="NAME")] = (),
    embeddings: Annotated[str | None, Parameter(metavar="MODEL")] = None,
    planted: bool = False,
    sample: int = 300,
    seed: Seed = 0,
    database: Database = None,
    roster: RosterFile = None,
    form: Form = None,
    out: Out = None,
) -> None:
    """Evaluate text similarity measures on up to five axes.

    The columns of a file determine its axis; axes are not averaged. Embeddings are stored in the
    database, so that an interrupted run resumes. Exit code 2: invalid files or options.

    Parameters
    ----------
    files
        Texts with human similarity ratings, texts in classes, or a TREC collection.
    measure
        Prefix of a measure's name; repeatable. All measures by default.
    embeddings
        Also evaluate the cosine similarity of embeddings of a model in the roster.
    planted
        Also show evaluators with known properties, as a control.
    sample
        Maximum number of texts to perturb, texts to cluster, and queries.

    Examples
    --------
    arena probe similarity pairs.csv classes.csv --sample 100
    arena probe similarity pairs.csv --measure rouge-1 --measure bm25 --out cards.html
    """
    form = chosen_form(form, out)
    from judge.probe.cards import probe_similarity  # help would wait for scipy

    embed: Callable[[Sequence[str]], Measure] | None = None
    if embeddings is not None:
        from judge.probe.prompts import embedding_measure

        name, vectors_of = embeddings, embedded_by(embeddings, database, roster)
        embed = lambda texts: embedding_measure(name, vectors_of(texts))  # noqa: E731
    with working("Probing") as advance:
        result = probe_similarity(
            files,
            measures=measure,
            embed=embed,
            planted=planted,
            sample=sample,
            seed=seed,
            progress=advance,
        )
    write_result(result, form, out, _show)


def judge(
    files: list[str],
    /,
    *,
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    seed: Seed = 0,
    form: Form = None,
    out: Out = None,
) -> None:
    """Measure judges' self-consistency: repeated verdicts and swapped sides.

    Takes files of `arena judge run`. Exit code 2: invalid files or options.

    Parameters
    ----------
    files
        Verdicts on the same cases: one file, folder or pattern per run, or a column run.

    Examples
    --------
    arena probe judge monday.csv tuesday.csv wednesday.csv
    arena probe judge runs.csv --out judge.html
    """
    form = chosen_form(form, out)
    from judge.probe.verdicts import probe_judges

    with working("Probing"):
        result = probe_judges([chosen.votes(file) for file in files], seed=seed)
    write_result(result, form, out, _show)


def board(
    source: list[str],
    /,
    *,
    columns: Columns = (),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    arenas: int = 200,
    seed: Seed = 0,
    form: Form = None,
    out: Out = None,
) -> None:
    """Evaluate rating methods on simulated arenas similar to these votes.

    Exit codes: 2 invalid options or votes, 3 the votes do not identify ratings.

    Parameters
    ----------
    source
        Vote files, folders or patterns (.parquet, .csv, .jsonl), or a database URL such as
        sqlite:///arena.db.
    columns
        Read one of our columns from theirs, such as voter=user; repeatable.
    arenas
        Number of simulated arenas; more give more precise estimates.

    Examples
    --------
    arena probe board votes.parquet --arenas 20
    arena probe board votes.parquet --arenas 20 --out board.html
    """
    form = chosen_form(form, out)
    from judge.probe.audit import probe_board

    with working("Simulating") as advance:
        votes = chosen.source(source, columns)
        result = probe_board(votes, columns=columns, arenas=arenas, seed=seed, progress=advance)
    write_result(result, form, out, _show)


def prompts(
    source: list[str],
    /,
    *,
    columns: Columns = (),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    by: Annotated[tuple[str, ...], Parameter(metavar="COLUMN")] = (),
    prompts: File = None,
    value: Annotated[str | None, Parameter(metavar="COLUMN")] = None,
    right: Annotated[float | None, Parameter(metavar="ABOVE")] = None,
    mix: Shares = (),
    draws: Annotated[int, Parameter(validator=Number(gte=19))] = 999,
    sample: int = 400,
    seed: Seed = 0,
    form: Form = None,
    out: Out = None,
) -> None:
    """Test whether prompts are correlated, whether that changes the ranking, and what explains it.

    Exit codes: 2 invalid options or data, 3 the votes do not identify ratings.

    Parameters
    ----------
    source
        Votes, as for `arena rate`; or results with the columns model and prompt_id, such as a
        judge's scores of all models on all prompts.
    columns
        Read one of our columns from theirs, such as voter=user; repeatable.
    by
        Column of prompt groups, in the source or in --prompts; repeatable.
    prompts
        Table with one prompt per row: prompt_id, groups, and optionally the text.
    value
        Column of results; default: right, correct, win, score, preference or value.
    right
        Threshold above which a result is correct; 1.5 for preference.
    mix
        Your own group weights for the first --by, such as coding=0.5,writing=0.5: also show the
        board with these weights.
    draws
        Number of draws of each null distribution.
    sample
        Maximum number of prompts for pairwise comparison.

    Examples
    --------
    arena probe prompts votes.parquet --by category
    arena probe prompts marks.csv --by topic --prompts prompts.csv --out prompts.html
    arena probe prompts votes.parquet --by category --mix coding=0.7,writing=0.3
    """
    form = chosen_form(form, out)
    from judge.probe.prompts import Asked, probe_prompts
    from rating.mix import Mix

    asked = Asked(
        by,
        None if prompts is None else Files((prompts,)),
        value,
        right,
        Mix.of_shares(dict(mix)) if mix else None,
        draws=draws,
        sample=sample,
        seed=seed,
    )
    with working("Drawing") as advance:
        data = chosen.source(source, columns)
        result = probe_prompts(data, asked, columns=columns, progress=advance)
    write_result(result, form, out, _show)


def blindness(
    *,
    battles: Annotated[int, Parameter(validator=Number(gte=20))] = 2000,
    seed: Seed = 0,
    form: TableOrJson = "table",
) -> None:
    """Test whether the timing of answers reveals the slower model.

    Simulated models answer at known speeds; a classifier sees the timing of what the page shows.
    Uses the pacing of the settings (ARENA_PACING and others). Exit code 1: the slower side was
    identified in more than 55% of battles, or more than 3% of answers stalled.

    Parameters
    ----------
    battles
        Number of battles per scenario.
    form
        Output format.

    Examples
    --------
    arena probe blindness
    arena probe blindness --battles 200 --format json
    """
    from arena.parts import rules_of
    from arena.play.pace import SCENARIOS, probe  # help would wait for scikit-learn
    from arena.settings import read_settings

    rules = rules_of(read_settings())
    sights = []
    with working("Playing battles") as advance:
        for done_now, scenario in enumerate(SCENARIOS):
            advance(done_now, len(SCENARIOS))
            sights.append(probe(scenario, rules, battles=battles, seed=seed))
    scenarios = [asdict(sight) | {"blind": sight.blind} for sight in sights]
    result = {"pacing": rules.pacing, "scenarios": scenarios}
    present(result, form, lambda _: show(*_sights(sights, rules)))
    if not all(sight.blind for sight in sights):
        sys.exit(1)


def _sights(sights: "Sequence[Sight]", rules: "Rules") -> "list[RenderableType]":
    """Lay out what the classifier saw, and what the pace costs."""
    pool = f", pool: {rules.pace_pool}" if rules.pacing is Pacing.PACED else ""
    about = (
        f"Pacing: {rules.pacing}{pool}. {sights[0].battles:,} battles per scenario. Times are "
        "medians in seconds: one model has begun, both have, first text on the page; both "
        "have ended, last text on the page."
    )
    head = (
        "Scenario", "Slow side identified", "Halted",
        "One begun", "Both begun", "First word", "Both ended", "Last word",
    )  # fmt: skip
    rows = [
        (
            sight.scenario, f"{sight.right:.1%}", f"{sight.halted:.1%}",
            f"{sight.first_begun_s:.1f}", f"{sight.both_begun_s:.1f}",
            f"{sight.first_word_s:.1f}", f"{sight.both_ended_s:.1f}",
            f"{sight.last_word_s:.1f}",
        )
        for sight in sights
    ]  # fmt: skip
    tells = [
        f"{sight.scenario}: the pace reveals the slow side, or pauses too often."
        for sight in sights
        if not sight.blind
    ]
    return [plain(about), table(head, rows), *warnings(tells)]


def chosen_form(form: str | None, out: Path | None) -> str:
    """Choose the format by name or by the file's ending, before anything is computed."""
    if out is None:
        return form or "table"
    ending = ENDINGS.get(out.suffix)
    if ending is None or form not in (None, ending):
        msg = f"Cannot write {str(out)!r}: name a file that ends in {' or '.join(ENDINGS)}"
        raise DataError(f"{msg}, as the format does." if form else f"{msg}.")
    require_folder_of(out)
    return ending


def write_result(
    figures: Mapping[str, Any],
    form: str,
    out: Path | None,
    show_table: Callable[[Mapping[str, Any]], None],
) -> None:
    """Write what was found, with the version and the day, to a file or the terminal."""
    from rating.tables import formats

    result = {**figures, "version": __version__, "made": datetime.now(UTC).date().isoformat()}
    if form == "table":
        show_table(result)
        return
    from judge.report.cards import page_of
    from judge.report.page import cards_as_html

    text = formats.as_json(result) if form == "json" else cards_as_html([page_of(result)])
    if out is None:
        write(text)
        return
    formats.write_text(text, out)
    if form == "html":
        formats.write_text(formats.as_json(result), out.with_suffix(".json"))


def _show(result: Mapping[str, Any]) -> None:
    from judge.report.cards import notes_of, page_of, table_of

    page = page_of(result)
    if "together" in result:
        parts: list[RenderableType] = [
            plain(" ".join(f"{name}: {value}." for name, value in page.about.items()))
        ]
        for card in page.cards:
            parts += [plain(f"\n{card.title} {card.verdict}", style="bold")]
            parts += [table(("Line", ""), [(row.name, row.text) for row in card.rows])]
        show(*parts, *warnings(result["warnings"]))
        return
    head, rows = table_of(page)
    about = plain(" ".join(f"{name}: {value}." for name, value in page.about.items()))
    undecided = [plain(f"? {text}") for text in notes_of(page, "open")]
    show(about, table(head, rows), *warnings(notes_of(page, "failed")), *undecided)


# arena probe memory


def memory(
    benchmark: str | None = None,
    /,
    *,
    model: Annotated[str | None, Parameter(metavar="MODEL")] = None,
    planted: bool = False,
    shards: Annotated[int, Parameter(validator=Number(gte=2))] = 20,
    permutations: Annotated[int, Parameter(validator=Number(gte=1))] = 19,
    seed: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    columns: Columns = (),
    database: Database = None,
    roster: RosterFile = None,
    form: TableOrJson = "table",
) -> None:
    """Test whether a model has memorised a benchmark, from the order of its items.

    A model that has not seen the items together does not prefer their published order, unless the
    order itself is informative (such as by subject). Needs an endpoint that returns
    log-probabilities of a prompt (/completions with echo, as in vLLM). Log-likelihoods are stored
    in the database, so that an interrupted run resumes.

    Parameters
    ----------
    benchmark
        Benchmark items in their published order: a file, folder or pattern (.parquet, .csv,
        .jsonl).
    model
        Model id in the roster.
    planted
        Show the test on two toy models: one trained on the embedded prompts in an order, one on
        each prompt alone.
    shards
        Number of consecutive parts within which items are permuted.
    permutations
        Number of permutations per part; 19 allow p = 0.05.
    seed
        Random seed of the permutations.
    columns
        Read the items from this column, such as prompt=question.
    form
        Output format.

    Examples
    --------
    arena probe memory --planted
    arena probe memory gsm8k.jsonl --model quartz --roster roster.toml
    """
    from judge.labels import files as exchangeability

    if planted == (benchmark is not None) or planted == (model is not None):
        raise SettingsError("Name a benchmark and --model, or use --planted alone.")
    if benchmark is None or model is None:
        with working("Asking"):
            results = exchangeability.planted(seed, shards, permutations)
    else:
        rows = exchangeability.prompts_of(Files((benchmark,)), dict(columns).get("prompt"))
        items = [exchangeability.BETWEEN.join(texts) for texts in rows]
        asked = exchangeability.orders(items, shards, permutations, seed)
        vectors = embedded_by(model, database, roster, likelihoods=True)

        def likely(texts: Sequence[str]) -> dict[str, float]:
            return {text: float(vector[0]) for text, vector in vectors(texts).items()}

        results = {model: exchangeability.memory(asked, likely)}
    each = [{"model": name, **one} for name, one in results.items()]
    present({"models": each}, form, lambda _: _memory_show(results))


def _memory_show(results: Mapping[str, Mapping[str, Any]]) -> None:
    first = next(iter(results.values()))
    about = (
        f"{first['shards']} shards, each in its own order and in {first['permutations']} others. "
        "A small p is evidence that the model was trained on the benchmark in this order."
    )
    head = ("Model", "p, exact", "p, over shards", "Gain per shard (nats)")
    rows = [
        (
            name,
            f"{one['p']:.3f}",
            f"{one['p_shards']:.2g}",
            with_interval(one["gain"], one["lower"], one["upper"], "+z.2f"),
        )
        for name, one in results.items()
    ]
    show(plain(about), terminal.table(head, rows, right=(1, 2)))


# Votes that should not count


def exclude(target: str, /, *, reason: str, database: Database = None) -> None:
    """Exclude the votes of a voter, or one vote, from the leaderboard.

    Nothing is deleted: the exclusion and its reason are added to the vote log, and the leaderboard
    shows the number of excluded votes by reason. Later votes of the voter count.

    Parameters
    ----------
    target
        Voter id, or at least its first 8 characters, name of a user, or battle id: see
        `arena voters --format csv` and the address of a battle.
    reason
        Reason, visible to everyone.

    Examples
    --------
    arena exclude 9f86d081884c7d65 --reason "paid for by a vendor"
    arena exclude b7kq2m --reason "a test of ours" --database sqlite:///arena-demo.db
    """
    from arena.boards import integrity  # the store takes two seconds to import
    from arena.store.people import TERMINAL

    with arena_store(database) as store:
        now = datetime.now(UTC)
        votes, fresh = integrity.decide(store, "exclude", [target], reason, TERMINAL, now)
    already = f"; {votes - fresh:,} were excluded before" if votes > fresh else ""
    are = plural(fresh, "vote is", "votes are")
    say(f"{target}: {are} excluded from {DEFAULT.name}{already}.")


def readmit(target: str, /, *, reason: str = "readmitted", database: Database = None) -> None:
    """Reinstate excluded votes of a voter, or one excluded vote.

    The exclusion stays in the vote log, followed by the reinstatement. `arena voters --apply` does
    not exclude reinstated votes again.

    Parameters
    ----------
    target
        Voter id or battle id, as for `arena exclude`.
    reason
        Reason, visible to everyone.

    Examples
    --------
    arena readmit 9f86d081884c7d65
    arena readmit b7kq2m --reason "it was a person" --database sqlite:///arena-demo.db
    """
    from arena.boards import integrity
    from arena.store.people import TERMINAL

    with arena_store(database) as store:
        now = datetime.now(UTC)
        _, fresh = integrity.decide(store, "readmit", [target], reason, TERMINAL, now)
    count = plural(fresh, "vote counts", "votes count")
    say(f"{target}: {count} again in {DEFAULT.name}.")


def names(database: str, /, *, apply: bool = False, form: TableOrJson = "table") -> None:
    """Detect answers that name their author, such as "I am GPT-4, made by OpenAI".

    Reads the answers of battles with a vote, for first-person statements with names of the roster
    or of known models and vendors. Mentions of other models do not count.

    Parameters
    ----------
    database
        Database URL.
    apply
        Exclude the votes on these battles from the leaderboard; `arena readmit` reverses it.
        Suspended if it would exclude more than a fifth of the votes.
    form
        Output format.

    Examples
    --------
    arena probe names sqlite:///arena.db
    arena probe names sqlite:///arena.db --apply --format json
    """
    from arena.boards.integrity import name_answers
    from arena.store.store import existing

    with working("Reading answers"), existing(database) as store:
        result = name_answers(store, datetime.now(UTC), leave_out=apply)
    if form == "json":
        write_json(result)
        return
    say(
        f"In {result['named']:,} of {result['battles']:,} battles a model named itself "
        f"({plural(result['answers'], 'answer')} read)."
    )
    for model, n in sorted(result["by_model"].items()):
        say(f"{model}: {plural(n, 'answer')}")
    if result["applied"] and result["applied"]["held"]:
        say("The rule is suspended: it would exclude more than a fifth of the votes.")
    elif result["applied"]:
        say(f"{plural(result['applied']['votes'], 'vote is', 'votes are')} excluded now.")


def words(source: list[str], /, *, seed: int = 0, form: TableOrJson = "table") -> None:
    """Test how well a bag-of-words classifier identifies the author of an answer.

    If models can be identified, they can be promoted. Answers to one prompt are in the same of
    five folds; models with fewer than 10 answers are excluded. Intervals are clustered by prompt.

    Parameters
    ----------
    source
        Database URL, or files of answers (prompt, response, model), or of pairs of answers.
    seed
        Random seed of the folds.
    form
        Output format.

    Examples
    --------
    arena probe words sqlite:///arena.db
    arena probe words answers.jsonl --format json
    """
    from judge.probe.people import recognise

    with working("Reading answers"):
        answers = _answers(source)
        models, texts, prompts = ([one[part] for one in answers] for part in range(3))
        result = recognise(models, texts, prompts, seed=seed)
    if form == "json":
        write_json(result)
        return
    rows = [
        (one["model"], f"{one['answers']:,}", _ends(one["recall"]), ", ".join(one["words"]))
        for one in sorted(result["models"], key=lambda one: -one["recall"]["rate"])
    ]
    head = (
        f"The model is identified for {_ends(result['accuracy'])} of the answers from their "
        f"words; always naming the most frequent model reaches {result['majority']:.0%}. "
        f"{plural(result['groups'], 'prompt')}."
    )
    grid = terminal.table(("Model", "Answers", "Known", "Words"), rows, right=range(1, 3))
    show(plain(head), grid)


def _answers(source: Sequence[str]) -> list[tuple[str, str, str]]:
    """Give model, text and prompt of each answer."""
    if "://" in source[0]:
        from arena.store import voting
        from arena.store.engine import reading_existing

        with reading_existing(source[0]) as session:
            return [(one.model, one.text, one.battle) for one in voting.answers(session)]
    from judge.tables.cases import read_responses

    return [(one.models[0], one.case.response_a, one.prompt_id) for one in read_responses(source)]


def _ends(share: Mapping[str, float]) -> str:
    return with_interval(share["rate"], share["low"], share["high"], ".0%")


def attack(
    source: list[str],
    /,
    *,
    strategy: Literal["fan", "target", "omnipresent", "inverted", "always-left", "random"] = "fan",
    accounts: int = 50,
    votes: int = 20,
    model: str | None = None,
    runs: int = 5,
    seed: int = 0,
    columns: Columns = (),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    form: TableOrJson = "table",
) -> None:
    """Simulate vote manipulation on these votes, with and without defences.

    Read-only. The defences are those of `arena voters --apply`. Also shows how many new accounts
    cannot change the first ranks, whatever they vote.

    Parameters
    ----------
    source
        Vote files, folders or patterns (.parquet, .csv, .jsonl) with voter ids, or a database URL.
    strategy
        fan: vote for the model wherever it appears; target: only on its battles, as if it were
        recognised; omnipresent: also against the two models above it; inverted: for the worse
        model; always-left; random.
    accounts
        Number of attacking accounts.
    votes
        Votes per account.
    model
        Model to promote; by default the one in the middle of the board.
    runs
        Number of simulations.
    seed
        Random seed.
    columns
        Read one of our columns from theirs, such as voter=user; repeatable.
    form
        Output format.

    Examples
    --------
    arena attack votes.parquet
    arena attack votes.parquet --strategy omnipresent --accounts 20 --votes 50 --format json
    """
    from rating.tables.columns import Columns as Named
    from rating.tables.columns import Reading
    from rating.tables.counts import read_rows
    from rating.tables.voter_report import Attack, simulate  # numpy and duckdb take half a second

    with working("Attacking") as advance:
        reading = Reading(Named.named(columns), both_bad="tie", ordered=True)
        cast = read_rows(chosen.source(source, columns), reading)
        planned = Attack(strategy, accounts, votes, model)
        result = simulate(cast, planned, runs=runs, seed=seed, progress=advance).to_dict()
    present(result, form, _show_attack)


def _show_attack(result: Mapping[str, Any]) -> None:
    head = (
        f"Gain of {result['model']} by {plural(result['accounts'], 'account')} with "
        f"{plural(result['votes'], 'vote')} each ({result['strategy']}), averaged over "
        f"{plural(result['runs'], 'run')}:"
    )
    rows = [
        (
            which,
            f"{moved['points']:+z.0f}",
            terminal.interval(moved["points_low"], moved["points_high"], "+z.0f"),
            f"{moved['ranks']:+z.1f}",
        )
        for which, moved in result["moved"].items()
    ]
    head_row = ("Defences", "Gain in points", "In all runs", "Gain in ranks")
    grid = terminal.table(head_row, rows, right=range(1, 4))
    left_out = (
        f"Excluded: {100 * result['left_out']:.0f}% of the attackers' votes, and "
        f"{100 * result['honest_left_out']:.1f}% of the others."
    )
    show(plain(head), grid, plain(left_out), *map(plain, map(_on_hold, result["holds"])))


def _on_hold(held: Mapping[str, Any]) -> str:
    first = "Rank 1 holds" if held["ranks"] == 1 else f"Ranks 1-{held['ranks']} hold"
    if not held["accounts"]:
        ranks = first.split(" hold")[0].replace("R", "r", 1)
        enough = plural(held["sufficient_votes"], "vote")
        return f"One new account may change {ranks}: {enough} would suffice."
    return (
        f"{first} against any {plural(held['accounts'], 'new account')} with the same number "
        f"of votes, whatever they choose ({plural(held['votes'], 'vote')}); "
        f"{plural(held['sufficient_votes'], 'vote')} would suffice."
    )


# arena gold

SHOWN = 20


def gold(
    source: str,
    /,
    *,
    instructions: Path | None = None,
    renamed: Annotated[Renamed, Flat] = AS_IT_IS,
    level: float = 0.95,
    form: TableOrJson = "table",
) -> None:
    """Estimate how often voters prefer a wrong answer, and each voter's accuracy.

    Uses the gold battles of an arena (ARENA_GOLD), or votes in a file with a column `gold`. The
    rate of votes for the wrong answer has an interval clustered by voter and item, and is shown by
    how much longer the wrong answer is. Each voter's accuracy has a prior of 80%, worth ten votes.
    A tie is not a wrong answer, and counts against a voter's accuracy.

    With --instructions, for prompts with verifiable instructions (no commas, a word count): how
    often an answer that violates an instruction is preferred to one that follows it, overall and
    by type of instruction.

    Parameters
    ----------
    source
        Database URL, or vote file (.parquet, .csv, .jsonl): winner, gold, voter, prompt_id, and
        response_a, response_b for their lengths.
    instructions
        Prompts with instruction_id_list and kwargs, as in IFEval's input_data.jsonl.
    level
        Confidence level.
    form
        Output format.

    Examples
    --------
    arena gold sqlite:///arena.db
    arena gold votes.jsonl --column gold=truth --format json
    arena gold sqlite:///arena.db --instructions input_data.jsonl
    """
    if instructions is not None:
        _notice(source, instructions, renamed, level, form)
        return
    from judge.studies.gold import study_gold  # numpy and scipy take half a second

    study = study_gold(_votes(source, renamed), level)
    present(study, form, _gold_show)


def _votes(source: str, renamed: Renamed, tasks: "Mapping[str, Task] | None" = None) -> Any:
    """Read gold votes; with tasks the votes on their prompts, and the texts of the answers."""
    from judge.studies.gold import read_gold_votes, read_votes_with_texts

    if "://" not in source:
        read = read_gold_votes if tasks is None else read_votes_with_texts
        return read(renamed.votes(source))
    if renamed != AS_IT_IS:
        msg = f"The votes of the database {source!r} are read whole: omit the other options."
        raise DataError(msg)
    from arena.store import log
    from arena.store.engine import reading_existing

    with reading_existing(source) as session:
        return log.gold_votes(session) if tasks is None else log.instructed_votes(session, tasks)


def _notice(
    source: str, instructions: Path, renamed: Renamed, level: float, form: TableOrJson
) -> None:
    from judge.studies.gold import check_votes, study_instructed
    from judge.tables.cases import read_tasks

    tasks = {task.prompt: task for task in read_tasks(instructions)}
    study = study_instructed(*check_votes(_votes(source, renamed, tasks), tasks), level)
    if form == "json":
        write_json(study.to_dict())
    else:
        from judge.studies.estimates import percent_of

        kinds = [(id, f"{one.n:,}", percent_of(one)) for id, one in study.by_kind.items()]
        by_kind = table(("Instruction", "Votes", "Prefer violator"), kinds, right=range(1, 3))
        show(
            *map(plain, study.sentences),
            *([by_kind] if kinds else []),
            *_thirds(study.gold.by_gap, "Prefer violator"),
        )


def _thirds(by_gap: "Sequence[ByGap]", wrong: str) -> list[Any]:
    from judge.studies.estimates import percent_of

    rows = [
        (
            part.name,
            f"{2**part.gap_low:.2g} to {2**part.gap_high:.2g} times",
            f"{part.wrong.n:,}",
            percent_of(part.wrong),
        )
        for part in by_gap
    ]
    return [table(("Third", "Length", "Votes", wrong), rows, right=range(1, 4))] if rows else []


def _gold_show(study: "GoldStudy") -> None:
    from judge.studies.estimates import percent

    voters = [
        (
            one.voter,
            f"{one.right:,} of {one.answered:,}",
            f"{percent(one.accuracy)} ({percent(one.lower)} to {percent(one.upper)})",
        )
        for one in study.accuracies[:SHOWN]
    ]
    more = len(study.accuracies) - len(voters)
    people = table(("Voter", "Right", "Accuracy"), voters, right=range(1, 3))
    show(
        *map(plain, study.sentences),
        *_thirds(study.by_gap, "Prefer wrong"),
        *([people] if voters else []),
        *([plain(f"{more:,} more voters: --format json.")] if more else []),
    )
