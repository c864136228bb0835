"""Commands on judges: `arena judge score`, `methods`, `drift` and `probe`.

`with_second`, which lets a second judge take over what the first gave no verdict on, is for the
commands that ask judges.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from arena.commands.arguments import AS_IT_IS, File, Flat, Renamed, TableOrJson, require_folder_of
from arena.commands.judge_work import (
    ARENA,
    JudgeOptions,
    Probed,
    Seat,
    Task,
    done,
    judged_by,
    prepared,
    show_estimate,
)
from arena.commands.probe import Form, Out, chosen_form, write_result
from arena.terminal import (
    NO_WIDTH,
    plain,
    present,
    say,
    show,
    stop,
    table,
    warnings,
    working,
    write,
)
from judge.case import RERUN
from judge.methods import PUBLISHED, FileMethod, method_file, published
from rating.errors import DataError
from rating.outcome import of_sides
from rating.tables.files import Files

if TYPE_CHECKING:
    from rich.console import RenderableType

    from judge.methods import FileMethod
    from judge.studies.watch import Watched
    from judge.tables.cases import NamedCase
    from judge.verdict import Run


# arena judge score

HEADINGS = {
    "model": "Model",
    "version": "Version",
    "judge": "Judge",
    "strategy": "Asked",
    "subset": "Part",
    "n": "Rows",
    "baseline": "Baseline",
    "n_unread": "Unparsed",
    "n_tied": "Tied",
    "n_wins": "Wins",
    "n_ties": "Ties",
    "n_losses": "Losses",
    "win_rate": "Win rate",
    "discrete_win_rate": "Discrete",
    "lc_win_rate": "Length-controlled",
    "avg_length": "Length",
    "score": "Score",
    "style_score": "Style-controlled",
    "mix": "Mix",
    "turn_1": "Turn 1",
    "turn_2": "Turn 2",
    "prompt_loose": "Loose",
    "instruction_strict": "By instruction",
    "adjusted": "WB-Score",
    "task_macro": "Task macro",
    "correct_mean": "Right",
    "correct_both": "Right in both orders",
    "equal": "Same in both",
    "kappa_agreement": "Kappa of both",
}
"""Columns of the table on a terminal; JSON has the others too."""

ERRORS = {
    "win_rate": "standard_error",
    "lc_win_rate": "lc_standard_error",
    "score": "standard_error",
}
MARKS_MEAN = "1–10 mean"
"""What the score is called beside WB-Score."""
"""Columns that are shown with their standard error behind them."""

TEXTS = ("model", "baseline", "version", "judge", "strategy", "subset")


def score(
    file: list[str],
    /,
    *,
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    method: Annotated[str | None, Parameter(metavar="METHOD")] = None,
    items: File = None,
    regularisation: File = None,
    compat: Annotated[str | None, Parameter(metavar="row-position")] = None,
    order: bool = False,
    certificate: File = None,
    form: Annotated[Literal["table", "json"] | None, Parameter(name="--format")] = None,
    out: File = None,
) -> None:
    """Score recorded annotations with a published method, without calling a model.

    Rows without a verdict are excluded and reported, never read as a tie or a zero.
    Exit code 2: invalid options or annotations.

    Parameters
    ----------
    file
        Annotation files, folders or patterns (.csv, .tsv, .json, .jsonl, .parquet).
    method
        Format of the rows, or the method of `arena judge run` that produced them, if the columns
        do not show it: alpaca_eval, wildbench, arena_hard, llmbar, pairwise, wildbench_reward,
        marks or ifeval.
    items
        Difficulty of each idx, or tags of each session_id.
    regularisation
        Rows of gamed baselines for length control.
    compat
        Reproduce the upstream lookup by row position.
    order
        Include the presentation order in length control.
    certificate
        Validation certificate of `arena study judge`: pairwise verdicts by another judge, method,
        template or model are listed and excluded.
    form
        Output format.
    out
        Output file (JSON).

    Examples
    --------
    arena judge score annotations.csv
    arena judge score verdicts.csv --method pairwise --format json
    """
    if form == "table" and out is not None:
        raise DataError(f"A table is for a terminal: write {str(out)!r} with --format json.")
    if certificate is not None and method != "pairwise":
        raise DataError(f"--certificate is for --method pairwise, not for {method!r}.")
    from judge.scoring.annotated import judge_score  # help would wait for duckdb and numpy
    from judge.studies.licence import read_licence, under

    counting = {}
    if certificate is not None:
        today = datetime.now(UTC).date()
        counting["only"] = partial(under, read_licence(certificate), today)
    with working("Scoring"):
        result = judge_score(
            chosen.votes(*file),
            method,
            items=items,
            regularisation=regularisation,
            compat=compat,
            order=order,
            **counting,
        )
    present(result, form, _show, out)


def _show(result: Mapping[str, Any]) -> None:
    models = result["models"]
    names = [name for name in HEADINGS if models and name in models[0]]
    rows = [[_cell(name, row) for name in names] for row in models]
    right = [place for place, name in enumerate(names) if name not in TEXTS]
    heads = HEADINGS | ({"score": MARKS_MEAN} if "adjusted" in names else {})
    shown = {name for name in names for row in models if row.get(ERRORS.get(name, "")) is not None}
    grid = table([heads[name] + " ± SE" * (name in shown) for name in names], rows, right)
    show(grid, *warnings(result["warnings"]))


def _cell(name: str, row: Mapping[str, Any]) -> str:
    value, error = row[name], row.get(ERRORS.get(name, ""))
    if value is None:
        return "–"
    if not isinstance(value, float):
        return value if isinstance(value, str) else f"{value:,}"
    if error is None:
        return f"{value:.2f}"
    return f"{value:.2f} ± {error:.2f}" if error > NO_WIDTH else f"{value:.2f} (± not estimated)"


# A second judge


def with_second(
    first: "Run",
    second: Seat,
    cases: "Sequence[NamedCase]",
    method: "FileMethod",
    spent_usd: float | None,
) -> "Run":
    """Let the second judge take the cases that the first gave no verdict on; return both runs.

    Parameters
    ----------
    spent_usd : float or None
        Of the budget, so far.
    """
    from judge.runs import handed_over, together

    theirs = handed_over(cases, first)
    if not theirs:
        return first
    limit = second.options.limit_usd
    left = None if limit is None else max(limit - (spent_usd or 0.0), 0.0)
    seat = replace(second, options=replace(second.options, limit_usd=left))
    run = judged_by(seat, f"Judging with {seat.model.id}", theirs, method)
    return together(first, run, seat.model.id)


def on_fallback(report: Mapping[str, Any]) -> list[str]:
    """Say whose the verdicts are, where a second judge was asked."""
    sentence = report.get("fallback", {}).get("sentence")
    return [sentence] if sentence else []


# arena judge methods


def methods(
    name: Annotated[str | None, Parameter(metavar="METHOD")] = None,
    /,
    *,
    form: TableOrJson = "table",
) -> None:
    """List judging methods with their sources and changes, or print a method file.

    A method file defines what the judge sees of a case, the prompt, and how the reply is parsed.
    To write your own, print one, edit it, and pass its path as --method to `arena judge run`,
    `work` or `probe`. Printing a method file validates it. Exit code 2: unknown or invalid method.

    Parameters
    ----------
    name
        Published method, or path of a method file.
    form
        Output format.

    Examples
    --------
    arena judge methods
    arena judge methods pairwise
    arena judge methods pairwise --format json
    """
    if name is None:
        every = [published(each) for each in PUBLISHED]
        present({"methods": [*map(_row, every)]}, form, lambda _: _judge_methods_show(every))
    else:
        present(method_file(name), form, lambda chosen: write(chosen.text))


def _row(method: FileMethod) -> dict[str, Any]:
    return {
        "name": method.name,
        "responses": 1 + method.pairwise,
        "about": method.about,
        "source": method.description.source,
        "score": method.score,
        "template": method.template.hash,
        "changes": list(method.changes),
    }


def _judge_methods_show(every: list[FileMethod]) -> None:
    rows = [(one.name, f"{1 + one.pairwise}", one.score or "–") for one in every]
    show(
        table(("Method", "Responses", "Score"), rows, right=(1,)),
        *(plain(text) for one in every for text in _in_words(one)),
        plain("\nifeval uses no judge: instructions are checked by code."),
        plain("To start a method of your own: arena judge methods pairwise > mine.toml"),
    )


def _in_words(method: FileMethod) -> Iterator[str]:
    yield f"\n{method.name}: {method.about}."
    yield f"  After {method.description.source}."
    yield from (f"  - {text}" for text in method.changes)


# arena judge drift

EXITS = {"valid": 0, "revoked": 1, "cannot_say": 3}


def drift(
    certificate: Path,
    votes: str,
    verdicts: str,
    /,
    *,
    cases: Annotated[str | None, Parameter(name="--from", metavar="CASES")] = None,
    asked: Annotated[int | None, Parameter(name="--next", metavar="N")] = None,
    seed: int = 0,
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    form: TableOrJson = "table",
    out: File = None,
) -> None:
    """Check whether a judge's validation certificate still holds, using new votes.

    Revokes the certificate if agreement has dropped below a bound that is valid at any number of
    looks: the false-alarm probability is at most 5% (asymptotic) over the number of votes in the
    certificate. No state is kept: append votes to the file and run the command again.
    Exit codes: 0 valid, 1 revoked, 2 invalid options or files, 3 inconclusive (too few votes or an
    expired certificate).

    Parameters
    ----------
    certificate
        Validation certificate of `arena study judge`.
    votes
        New votes in the order in which they were cast: a file, folder or pattern, or a database
        URL.
    verdicts
        Verdicts of the judge on the same items. Those by another judge, method, template or model
        are listed and excluded.
    cases
        Verdicts on cases without votes, from which to sample. A column vote_cost has the cost of
        one vote in dollars.
    asked
        Number of cases to select for the next votes, by value per dollar.
    seed
        Random seed of the selection.
    form
        Output format.
    out
        Output file (CSV) for the selected cases.

    Examples
    --------
    arena judge drift judge.toml new-votes.csv new-verdicts.csv
    arena judge drift judge.toml new-votes.csv new-verdicts.csv --next 50 --from cases.csv
    """
    _check(cases, asked, out)
    import numpy as np  # help would wait for it, and for duckdb

    from judge.studies.licence import read_licence
    from judge.studies.watch import choose, watch
    from rating.tables.formats import as_csv, write_text

    known = read_licence(certificate)
    with working("Watching"):
        source, given = chosen.beside(votes, verdicts)
        result = watch(known, source, given, datetime.now(UTC).date())
        if cases is not None and asked is not None:
            rng = np.random.default_rng(seed)
            drawn, left_out = choose(known, source, chosen.votes(cases), asked, rng)
            texts = (*result.warnings, *(f"{cases}: {text}" for text in left_out))
            result = replace(result, asked=drawn, warnings=texts)
    if out is not None:
        write_text(as_csv(list(result.asked)), out)
    present(result, form, lambda watched: _drift_show(watched, out))
    sys.exit(EXITS[result.status])


def _check(cases: str | None, asked: int | None, out: Path | None) -> None:
    if (cases is None) != (asked is None):
        given = f"--next {asked}" if cases is None else f"--from {cases}"
        raise DataError(f"{given} is incomplete: give both --next and --from, or neither.")
    if out is not None:
        if cases is None:
            msg = f"--out {str(out)!r} is for the cases of --next: give both, or neither."
            raise DataError(msg)
        require_folder_of(out)


def _drift_show(result: "Watched", out: Path | None) -> None:
    show(plain(f"{result.judge}: {result.why}", style="bold"))
    show(*warnings((*result.not_counted, *result.warnings)))
    if result.asked:
        names = ("prompt", "battle", *of_sides("model"))
        rows = [
            (f"{case['row']}", *(case[name] or "" for name in names), f"{case['worth']:.2f}")
            for case in result.asked
        ]
        unit = "vote" if result.asked[0]["vote_cost"] is None else "dollar"
        head = ("Row", "Prompt", "Battle", "Model A", "Model B", f"Worth a {unit}")
        show(plain("Collect votes on these cases next:"), table(head, rows, right=(0, 5)))
    if out is not None:
        say(f"The cases are in {out}.")


# arena judge probe


def probe(
    *,
    options: Annotated[JudgeOptions, Flat] = JudgeOptions(),  # noqa: B008 - it is frozen
    intervention: Annotated[tuple[str, ...], Parameter(metavar="NAME")] = (),
    method: Probed = "pairwise",
    cases: Annotated[tuple[str, ...], Parameter(metavar="SOURCE")] = (),
    votes: File = None,
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    sample: Annotated[int | None, Parameter(metavar="PAIRS", validator=Number(gte=1))] = None,
    rubric: File = None,
    scale: Annotated[str | None, Parameter(metavar="LOW-HIGH")] = None,
    dry_run: bool = False,
    seed: Annotated[str | None, Parameter(metavar="TEXT")] = None,
    form: Form = None,
    out: Out = None,
) -> None:
    """Test a judge's robustness, sensitivity and agreement with people.

    Prompt injections and known biases should not raise an answer's win rate more than a control
    text of the same length. Harmless changes should keep the verdict. An answer should be
    preferred to its copy with another meaning, or with parts removed or inserted. Agreement with
    votes is measured. Each pair is judged in both orders, and replies are stored as for a run.
    Exit code 1: stopped with probes pending.

    Parameters
    ----------
    intervention
        Group (injections, biases, people, harmless, meaning, missing) or single intervention;
        repeatable. Default: injections. "all" means biases.
    cases
        Prompts and answers, as for `arena judge run`; embedded cases by default. The better
        answer is in the column `label` or `winner`.
    votes
        Vote file for --intervention people, matched by battle_id, else item_id. Default: the
        column winner of the cases.
    sample
        Maximum number of pairs. Default: 100 for the groups people, harmless, meaning and missing;
        all pairs for the others.
    rubric
        File with the meaning of the scores, for the method rubric.
    scale
        Scale of the rubric; default 1-10.
    dry_run
        Only show the number of requests and their cost.
    seed
        Seed for delimiters and orders instead of the database's secret, as for `arena judge run`.

    Examples
    --------
    arena judge probe --judge pocket-judge
    arena judge probe --judge pocket-judge --method arena_hard --intervention all --format json
    """
    form = chosen_form(form, out)
    if chosen != AS_IT_IS and not cases:
        raise DataError("--where, --label and --column select from files: name them with --cases.")
    from judge.probe.cards import chosen_kinds, groups, plan, report
    from judge.probe.findings import votes_on
    from judge.probe.verdicts import PEOPLE, material, own_material
    from judge.tables.cases import NamedCase, read_labels

    wanted = chosen_kinds(intervention)
    if PEOPLE in wanted and not cases:
        msg = "--intervention people needs pairs that people voted on: name them with --cases."
        raise DataError(msg)
    if votes is not None and PEOPLE not in wanted:
        msg = f"--votes {str(votes)!r} is for --intervention people: add it, or omit --votes."
        raise DataError(msg)
    files, people = _cases_and_votes(cases, votes, chosen)
    task = Task(method=method, cases=cases, chosen=chosen, seed=seed, rubric=rubric, scale=scale)
    with prepared(options, task, files=files, probes=True) as work:
        single = not work.method.pairwise
        source = own_material()
        if cases and {*wanted} != {PEOPLE}:
            labels = read_labels(files[0]) if len(files) == 1 else None
            source = material([named.case for named in work.cases], labels)
        voted = votes_on(work.cases, files or cases, people) if PEOPLE in wanted else {}
        tried = plan(wanted, source, voted, judge=work.model.name, single=single, sample=sample)
        asked = [case for of in tried.values() for one in of for case in (one.case, one.control)]
        work = replace(
            work,
            cases=[NamedCase(one.id[:16], one.prompt_id[:16], ("", ""), one) for one in asked],
        )
        each = [f"{len(of):,} {groups()[group]['asked']}" for group, of in tried.items()]
        probes = f"{'; '.join(each)}, {'one at a time' if single else 'in both orders'}."
        if dry_run:
            show_estimate(work, form)
            if form != "json":
                say(probes)
            return
        run = done(work)
    result = {
        "judge": work.model.id,
        "method": work.method.name,
        "files": [Path(str(file)).name for file in (*cases, *([votes] if votes else []))],
        **report(tried, run, source, voted, work.method.grammar.scale or (0, 1), single=single),
        **run.to_dict(),
    }
    if out is None or run.stopped is None:
        write_result(result, form, out, lambda whole: _judge_probe_show(whole, probes))
    if run.stopped is not None:
        rest = "" if out is None else f" {str(out)!r} is not written until all replies are there."
        stop(run.why, f"{RERUN}{rest}")


def _cases_and_votes(
    cases: Sequence[str], votes: Path | None, chosen: Renamed
) -> tuple[list[Files], Files | None]:
    """Choose what is read of each file; the arena's battles are none."""
    from rating.tables.sources import shared

    of_cases = chosen if votes is None else replace(chosen, labels=())  # labels are those of votes
    files = [] if list(cases) == [ARENA] else [of_cases.cases(source) for source in cases]
    if votes is None:
        return files, None
    *files, people = shared([*files, chosen.votes(str(votes))])
    return files, people


def _judge_probe_show(result: Mapping[str, Any], probes: str) -> None:
    """Print a table for each group, and what was asked."""
    from judge.report.cards import page_of

    parts: list[RenderableType] = []
    for card in page_of(result).cards:
        names = [name for _, name, _ in card.rows[0].parts]
        head = (card.title, *names, card.subtitle, "Finding")
        rows = [
            (row.name, *(text for *_, text in row.parts), row.text, row.notes[0])
            for row in card.rows
        ]
        has_findings = any(row.notes[0] for row in card.rows)  # injected answers have none
        lines = [line if has_findings else line[:-1] for line in (head, *rows)]
        right = range(1, len(names) + 2)
        parts += [
            table(lines[0], lines[1:], right),
            *([plain(card.verdict)] if card.verdict else []),
        ]
    asked = f"{result['n_asked']:,} new replies, {result['n_recalled']:,} reused"
    show(*parts, plain(f"{asked}: {probes}"), *warnings(result["warnings"]))
