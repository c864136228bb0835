"""Commands that audit: probe, exclude, readmit, attack and gold.

`arena probe`: is a measure of similarity, a judge or a board any good, and the arena blind.

`arena probe memory`: has a model learnt a benchmark by heart.

`arena exclude`, `readmit`, `attack`, `probe names`, `probe words`: what should not count.

`arena gold`: votes on pairs of which one answer is known to be right, or breaks a rule.

Numbers that a model of the roster gives for texts, asked for once, kept in the database.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
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
    require_folder_of,
)
from arena.commands.judge_work import opened
from arena.domain.battle import Pacing
from arena.domain.model import Model
from arena.domain.vote import DEFAULT
from arena.errors import SettingsError
from arena.terminal import plain, say, show, table, warnings, working, write, write_json
from rating import __version__
from rating.errors import DataError
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
    from judge.studies.gold import ByGap, GoldStudy, GoldVote, ReadVote


def embedded_by(
    name: str, database: str | None, roster: Path | None
) -> "Callable[[Sequence[str]], Vectors]":
    """Return what embeds texts: it asks for those that the database does not hold.

    Raises
    ------
    SettingsError
        If there is no such model in the roster.
    """
    from arena.settings import read_settings
    from arena.store.store import Store

    settings = read_settings(database=database, roster=roster)
    model = _model(name, settings.roster, "--embeddings")

    def embedded(texts: Sequence[str]) -> "Vectors":
        with closing(Store(settings.database)) as store:
            return asyncio.run(_asked(model, settings.budgets(), store, texts))

    return embedded


def _likely_by(
    name: str, database: str | None, roster: Path | None
) -> "Callable[[Sequence[str]], dict[str, float]]":
    """Return what says how likely texts are to a model, in nats; as `embedded_by`."""
    from arena.settings import read_settings
    from arena.store.store import Store

    settings = read_settings(database=database, roster=roster)
    model = _model(name, settings.roster, "--model")

    def likely(texts: Sequence[str]) -> dict[str, float]:
        with closing(Store(settings.database)) as store:
            asked = _asked(model, settings.budgets(), store, texts, likelihoods=True)
            return {text: float(vector[0]) for text, vector in asyncio.run(asked).items()}

    return likely


def _model(name: str, file: Path | None, option: str) -> Model:
    from arena.settings import read_roster

    models = read_roster(file, to_battle=False) if file else ()
    model = next((one for one in models if one.id == name), None)
    if model is None:
        known = ", ".join(one.id for one in models) or "none: name its file with --roster"
        msg = f"{option}: there is no model {name!r} in the roster. There are {known}."
        raise SettingsError(msg)
    return model


async def _asked(
    model: Model,
    budgets: "Budgets",
    store: "Store",
    texts: Sequence[str],
    *,
    likelihoods: bool = False,
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


ENDINGS = {".json": "json", ".html": "html"}

Form = Annotated[
    str | None,
    Parameter(
        name="--format",
        choices=("table", "json", "html"),
        help="How to write it: as the file's ending says, by default.",
    ),
]
Out = Annotated[
    Path | None,
    Parameter(metavar="FILE", help="Page (.html), with its JSON beside it; or JSON (.json)."),
]
Seed = Annotated[int, Parameter(validator=Number(gte=0), help="Of all that is drawn.")]


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
    """Probe measures of how alike two texts are, on up to five axes.

    A file is recognised by its columns; each axis needs its own kind. No axis is averaged
    with another. Embeddings are kept in the database: the same command again goes on where it
    stopped. Exit code 2: files or options that cannot be used.

    Parameters
    ----------
    files
        Texts that people rated, texts in classes, a TREC collection.
    measure
        How its name begins; again for more. All by default.
    embeddings
        Add the cosine of embeddings by a model in the roster.
    planted
        Add evaluators whose cards are known beforehand.
    sample
        Texts to change, texts to cluster, questions: most of each.

    Examples
    --------
    arena probe similarity pairs.csv classes.csv --sample 100
    arena probe similarity pairs.csv --measure rouge-1 --measure bm25 --out cards.html
    """
    form = chosen_form(form, out)
    from judge.probe.cards import probe_similarity  # help would wait for scipy

    embed = None if embeddings is None else _measure_of(embeddings, database, roster)
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
    """Probe judges by what they say of the same cases again, and with the sides exchanged.

    Takes files that `arena judge run` writes. Exit code 2: files or options that cannot be used.

    Parameters
    ----------
    files
        Verdicts on the same cases: a file, folder or pattern a run, or a column run.

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
    """Probe the ways to rate these votes, on arenas like this one whose truth is known.

    Exit codes: 2 for options or votes that cannot be used, 3 for votes that identify no rating.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl), or database URL such as
        sqlite:///arena.db.
    columns
        Read a role from the column of this name, as in voter=user; again for more.
    arenas
        Simulated arenas: more of them tell finer faults.

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
    """Probe whether prompts hang together, whether it changes the ranking, and what explains it.

    Exit codes: 2 for options or data that cannot be used, 3 for votes that identify no rating.

    Parameters
    ----------
    source
        Votes, as for rate; or results with the columns model and prompt_id, such as a judge's
        marks of all models on all prompts.
    columns
        Read a role from the column of this name, as in voter=user; again for more.
    by
        Column of groups of prompts, of the source or of --prompts; again for more.
    prompts
        A prompt a row: its name, groups, and its text, whose words then may explain.
    value
        Column of results: right, correct, win, score, preference or value by default.
    right
        Above it a result is right, else wrong; 1.5 for preference.
    mix
        Shares of your own of the groups of the first --by, such as coding=.5,writing=.5: what
        the board is where groups weigh so.
    draws
        Of each null.
    sample
        Prompts of which every two are compared, most.

    Examples
    --------
    arena probe prompts votes.parquet --by category
    arena probe prompts marks.csv --by topic --prompts prompts.csv --out prompts.html
    arena probe prompts votes.parquet --by category --mix coding=.7,writing=.3
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
    """Probe whether the pace of answers tells which model is the slow one.

    Simulated models write at known speeds; what a page would get of it, without the words, goes
    to a classifier. The pace is that of the settings (ARENA_PACING and others). Exit code 1: the
    slow side was named in more than 55 % of battles, or more than 3 % halted.

    Parameters
    ----------
    battles
        Battles a scenario.
    form
        How to write it.

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
    if form == "json":
        scenarios = [asdict(sight) | {"blind": sight.blind} for sight in sights]
        write_json({"pacing": rules.pacing, "scenarios": scenarios})
    else:
        show(*_sights(sights, rules))
    if not all(sight.blind for sight in sights):
        sys.exit(1)


def _sights(sights: "Sequence[Sight]", rules: "Rules") -> "list[RenderableType]":
    """Lay out what the classifier saw, and what the pace costs."""
    pool = f", pool: {rules.pace_pool}" if rules.pacing is Pacing.PACED else ""
    about = (
        f"Pacing: {rules.pacing}{pool}. {sights[0].battles:,} battles a scenario. Seconds are "
        "medians: when one model has begun, when both have, and the first word on the page; when "
        "both have ended, and the last word on the page."
    )
    head = (
        *("Scenario", "Slow side named", "Halted"),
        *("One begun", "Both begun", "First word", "Both ended", "Last word"),
    )
    rows = [
        (
            *(sight.scenario, f"{sight.right:.1%}", f"{sight.halted:.1%}"),
            *(f"{sight.first_begun_s:.1f}", f"{sight.both_begun_s:.1f}"),
            *(f"{sight.first_word_s:.1f}", f"{sight.both_ended_s:.1f}"),
            f"{sight.last_word_s:.1f}",
        )
        for sight in sights
    ]
    tells = [
        f"{sight.scenario}: the pace tells, or halts too often."
        for sight in sights
        if not sight.blind
    ]
    return [plain(about), table(head, rows), *warnings(tells)]


def _measure_of(
    name: str, database: str | None, roster: Path | None
) -> "Callable[[Sequence[str]], Measure]":
    """Return what makes a measure of texts: it asks for those that the database does not hold."""
    from judge.probe.prompts import embedding_measure

    vectors_of = embedded_by(name, database, roster)
    return lambda texts: embedding_measure(name, vectors_of(texts))


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
    from judge.report.cards import page_of, table_of, undecided_of, warnings_of

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
    undecided = [plain(f"? {text}") for text in undecided_of(page)]
    show(about, table(head, rows), *warnings(warnings_of(page)), *undecided)


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
    """Probe whether a model has learnt a benchmark by heart, by the order of its items.

    Nobody who has not seen them together prefers the order in which a benchmark has its items,
    unless that order says something itself, as one by subject does. Needs an endpoint that
    echoes a prompt with its log-probabilities (/completions, as vLLM has it). Log-likelihoods are
    kept in the database: the same command again goes on where it stopped.

    Parameters
    ----------
    benchmark
        File, folder or pattern of its items, in their order (.parquet, .csv, .jsonl).
    model
        A model in the roster.
    planted
        Show the test on two toys: one learnt our labelled prompts in an order, one each alone.
    shards
        Parts of items that follow one another, in each of which they are permuted.
    permutations
        Other orders of each shard; 19 reach p = .05.
    seed
        Of the orders.
    columns
        Read the items from the column of this name, as in prompt=question.
    form
        How to write it.

    Examples
    --------
    arena probe memory --planted
    arena probe memory gsm8k.jsonl --model quartz --roster roster.toml
    """
    from judge.labels import files as exchangeability

    if planted == (benchmark is not None) or planted == (model is not None):
        raise SettingsError("Name a benchmark and --model, or --planted alone.")
    if benchmark is None or model is None:
        with working("Asking"):
            results = exchangeability.planted(seed, shards, permutations)
    else:
        rows = exchangeability.prompts_of(Files((benchmark,)), dict(columns).get("prompt"))
        items = [exchangeability.BETWEEN.join(texts) for texts in rows]
        asked = exchangeability.orders(items, shards, permutations, seed)
        likely = _likely_by(model, database, roster)
        results = {model: exchangeability.memory(asked, likely)}
    if form == "json":
        write_json({"models": [{"model": name, **one} for name, one in results.items()]})
    else:
        _memory_show(results)


def _memory_show(results: Mapping[str, Mapping[str, Any]]) -> None:
    first = next(iter(results.values()))
    about = (
        f"{first['shards']} shards, each in its own order and in {first['permutations']} others. "
        "A small p says that the model knows the order, and so has seen the benchmark."
    )
    head = ("Model", "p, exact", "p, over shards", "Nats a shard gains")
    rows = [
        (
            name,
            f"{one['p']:.3f}",
            f"{one['p_shards']:.2g}",
            f"{one['gain']:+.2f} ({one['lower']:+.2f} to {one['upper']:+.2f})",
        )
        for name, one in results.items()
    ]
    show(plain(about), terminal.table(head, rows, right=(1, 2)))


def exclude(target: str, /, *, reason: str, database: Database = None) -> None:
    """Leave the votes of a voter, or one vote, out of the leaderboard from here on.

    Nothing is deleted: a row with the reason is added to the record, and the leaderboard says how
    many votes are left out and why. Votes that the voter casts later count.

    Parameters
    ----------
    target
        Id of a voter, or its first 8 characters at the least, or id of a battle for the vote on
        it: see arena voters --format csv, and the address of a battle.
    reason
        Why, in words that anybody may read.

    Examples
    --------
    arena exclude 9f86d081884c7d65 --reason "paid for by a vendor"
    arena exclude b7kq2m --reason "a test of ours" --database sqlite:///arena-demo.db
    """
    from arena.boards import integrity  # the store takes two seconds to import
    from arena.store.people import TERMINAL

    with _store(database) as store:
        done = integrity.exclude(store, target, reason, TERMINAL, datetime.now(UTC))
    before = done.votes - done.changed
    already = f"; {before:,} were before" if before else ""
    say(f"{target}: {done.changed:,} votes are left out of {DEFAULT.name}{already}.")


def readmit(target: str, /, *, reason: str = "readmitted", database: Database = None) -> None:
    """Take the votes of a voter, or one vote, in again that were left out.

    The rows that left them out stay; newer ones take them back. What was readmitted is not left
    out again by arena voters --apply.

    Parameters
    ----------
    target
        As of arena exclude.
    reason
        Why, in words that anybody may read.

    Examples
    --------
    arena readmit 9f86d081884c7d65
    arena readmit b7kq2m --reason "it was a person" --database sqlite:///arena-demo.db
    """
    from arena.boards import integrity
    from arena.store.people import TERMINAL

    with _store(database) as store:
        done = integrity.readmit(store, target, reason, TERMINAL, datetime.now(UTC))
    say(f"{target}: {done.changed:,} votes count again in {DEFAULT.name}.")


def names(database: str, /, *, apply: bool = False, form: TableOrJson = "table") -> None:
    """Flag battles in which an answer says who wrote it: "I am GPT-4, made by OpenAI".

    Answers of battles with a vote are read; names are those of the roster and the known models
    and vendors, in the first person. Speaking of others is no naming of oneself.

    Parameters
    ----------
    database
        Database URL.
    apply
        Leave the votes on these battles out of the leaderboard, by rows that arena readmit takes
        back; held where it would leave out more than a fifth.
    form
        How to write it.

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
        write_json(asdict(result))
        return
    say(
        f"In {result.named:,} of {result.battles:,} battles a model named itself "
        f"({result.answers:,} answers)."
    )
    for model, n in sorted(result.by_model.items()):
        say(f"{model}: {n:,} answers")
    if result.applied and result.applied.held:
        say("The rule is held: it would leave out more than a fifth of the votes.")
    elif result.applied:
        say(f"{result.applied.votes:,} votes are left out from here on.")


def words(source: list[str], /, *, seed: int = 0, form: TableOrJson = "table") -> None:
    """Say how well a bag of words knows who wrote an answer, on prompts it has not seen.

    Who can tell the models can push one. Answers to one prompt stay together, in five folds;
    models of fewer than 10 answers are left out. Intervals are by prompt.

    Parameters
    ----------
    source
        Database URL, or files of responses (prompt, response, model), or of pairs of them.
    seed
        Another seed deals out the prompts in another way.
    form
        How to write it.

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
        f"The model of {_ends(result['accuracy'])} of the answers is known by their words; "
        f"{result['majority']:.0%} would be by always naming the same. "
        f"{result['groups']:,} prompts."
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
    return f"{share['rate']:.0%} ({share['low']:.0%} to {share['high']:.0%})"


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
    """Say what accounts that attack would do to these votes, with defences on and off.

    Nothing is written. The defences are those of arena voters --apply. Beside it stands how many
    new accounts cannot change the first ranks, whatever they vote.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl) that say who voted, or
        database URL.
    strategy
        fan votes for the model wherever it appears; target on it alone, as who recognises it
        could; omnipresent also against the two above it; inverted for the worse; always-left;
        random by coin.
    accounts
        New accounts.
    votes
        Votes of each.
    model
        The one to push; without it, the one in the middle.
    runs
        Draws of the attackers' votes.
    seed
        Another seed gives other draws.
    columns
        Read a role from the column of this name, as in voter=user; again for more.
    form
        How to write it.

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
    if form == "json":
        write_json(result)
    else:
        _show_attack(result)


def _show_attack(result: Mapping[str, Any]) -> None:
    head = (
        f"{result['accounts']:,} accounts of {result['votes']:,} votes each "
        f"({result['strategy']}) move {result['model']}, on average over {result['runs']:,} runs:"
    )
    rows = [
        (
            which,
            f"{moved['points']:+.0f}",
            terminal.interval(moved["points_low"], moved["points_high"], "+.0f"),
            f"{moved['ranks']:+.1f}",
        )
        for which, moved in result["moved"].items()
    ]
    grid = terminal.table(("Defences", "Points", "In all runs", "Ranks"), rows, right=range(1, 4))
    left_out = (
        f"Left out: {100 * result['left_out']:.0f} % of the attackers' votes, and "
        f"{100 * result['honest_left_out']:.1f} % of the others."
    )
    show(plain(head), grid, plain(left_out), *map(plain, map(_on_hold, result["holds"])))


def _on_hold(held: Mapping[str, Any]) -> str:
    from judge.studies.estimates import plural

    first = "Rank 1 holds" if held["ranks"] == 1 else f"Ranks 1-{held['ranks']} hold"
    if not held["accounts"]:
        ranks = first.split(" hold")[0].replace("R", "r", 1)
        enough = plural(held["sufficient_votes"], "vote")
        return f"One new account may change {ranks}: {enough} would be enough."
    return (
        f"{first} against any {plural(held['accounts'], 'new account')} of as many votes, "
        f"whatever they vote ({plural(held['votes'], 'vote')}); "
        f"{plural(held['sufficient_votes'], 'vote')} would be enough."
    )


def _store(database: str | None) -> "AbstractContextManager[Store]":
    from arena.settings import read_settings
    from arena.store.store import existing

    return existing(read_settings(database=database).database)


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
    """Say how often voters prefer the wrong answer, and how often each names the right one.

    Of the gold battles of an arena (ARENA_GOLD), or of votes in a file with a column gold. The
    share of votes for the wrong answer has an interval by voter and by item, and stands in thirds
    by how much longer the wrong answer is. Each voter's accuracy begins at 80 %, as if ten pairs
    had been answered. A tie is not right, and prefers nothing.

    With --instructions: of votes on prompts whose instructions can be checked (no comma, so many
    words), how often the answer that breaks one is preferred to one that follows them, in all and
    by kind of instruction.

    Parameters
    ----------
    source
        Database URL, or file of votes (.parquet, .csv, .jsonl): winner, gold, voter, prompt_id,
        and response_a, response_b for their lengths.
    instructions
        Prompts with instruction_id_list and kwargs, as in IFEval's input_data.jsonl.
    level
        Of the intervals.
    form
        How to write it.

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
    if form == "json":
        write_json(study.to_dict())
    else:
        _gold_show(study)


def _votes(source: str, renamed: Renamed) -> "Sequence[GoldVote]":
    if "://" not in source:
        from judge.studies.gold import read_gold_votes

        return read_gold_votes(renamed.votes(source))
    _read_whole(source, renamed)
    from arena.store import studies as log
    from arena.store.engine import reading_existing

    with reading_existing(source) as session:
        return log.votes(session)


def _read_whole(source: str, renamed: Renamed) -> None:
    if renamed != AS_IT_IS:
        msg = f"The votes of the database {source!r} are read whole: leave out other options."
        raise DataError(msg)


def _notice(
    source: str, instructions: Path, renamed: Renamed, level: float, form: TableOrJson
) -> None:
    from judge.studies.gold import check_votes, study_instructed
    from judge.tables.cases import read_tasks

    tasks = {task.prompt: task for task in read_tasks(instructions)}
    study = study_instructed(*check_votes(_with_texts(source, renamed, tasks), tasks), level)
    if form == "json":
        write_json(study.to_dict())
    else:
        from judge.studies.estimates import percent_of

        kinds = [
            (one.id, f"{one.violator.n:,}", percent_of(one.violator)) for one in study.by_kind
        ]
        by_kind = table(("Instruction", "Votes", "Prefer violator"), kinds, right=range(1, 3))
        show(
            *map(plain, study.sentences),
            *([by_kind] if kinds else []),
            *_thirds(study.by_gap, "Prefer violator"),
        )


def _with_texts(
    source: str, renamed: Renamed, tasks: "Mapping[str, Task]"
) -> "Sequence[ReadVote]":
    if "://" not in source:
        from judge.studies.gold import read_votes_with_texts

        return read_votes_with_texts(renamed.votes(source))
    _read_whole(source, renamed)
    from arena.store import studies as log
    from arena.store.engine import reading_existing

    with reading_existing(source) as session:
        return log.instructed_votes(session, tasks)


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
