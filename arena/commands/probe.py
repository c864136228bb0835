"""`arena probe`: is a measure of similarity, a judge or a board any good, and the arena blind."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

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
from arena.commands.embedding import embedded_by
from arena.domain.battle import Pacing
from arena.terminal import plain, show, table, warnings, working, write, write_json
from rating import __version__
from rating.errors import DataError
from rating.tables.files import Files

if TYPE_CHECKING:
    from rich.console import RenderableType

    from arena.play.blindness import Sight
    from arena.play.rules import Rules
    from judge.probe.similarity import Measure
    from judge.report.cards import ProbePage

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
    write_result(result.to_dict(), form, out, _show)


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
    write_result(result.to_dict(), form, out, _show)


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
    write_result(result.to_dict(), form, out, _show)


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
    from rating.pooling.mix import Mix

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
    write_result(result.to_dict(), form, out, _show)


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
    from arena.play.blindness import SCENARIOS, probe  # help would wait for scikit-learn
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
    from judge.probe.embedding import embedding_measure

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
    text = formats.as_json(result) if form == "json" else _page(result)
    if out is None:
        write(text)
        return
    formats.write_text(text, out)
    if form == "html":
        formats.write_text(formats.as_json(result), out.with_suffix(".json"))


def _page(result: Mapping[str, Any]) -> str:
    from judge.report.cards import page_of
    from judge.report.files import cards_as_html

    return cards_as_html([page_of(result)])


def _show(result: Mapping[str, Any]) -> None:
    from judge.report.cards import page_of, table_of, undecided_of, warnings_of

    page = page_of(result)
    if "together" in result:
        _show_cards(page, result["warnings"])
        return
    head, rows = table_of(page)
    about = plain(" ".join(f"{name}: {value}." for name, value in page.about.items()))
    undecided = [plain(f"? {text}") for text in undecided_of(page)]
    show(about, table(head, rows), *warnings(warnings_of(page)), *undecided)


def _show_cards(page: "ProbePage", texts: Sequence[str]) -> None:
    """Print cards that ask different things one below the other."""
    parts: list[RenderableType] = [
        plain(" ".join(f"{name}: {value}." for name, value in page.about.items()))
    ]
    for card in page.cards:
        parts += [plain(f"\n{card.title} {card.verdict}", style="bold")]
        parts += [table(("Line", ""), [(row.name, row.text) for row in card.rows])]
    show(*parts, *warnings(texts))
