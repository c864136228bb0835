"""`arena judge probe`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from arena.commands.arguments import AS_IT_IS, File, Flat, Renamed
from arena.commands.judge_work import (
    ARENA,
    JudgeOptions,
    Probed,
    Task,
    done,
    prepared,
    show_estimate,
)
from arena.commands.probe import Form, Out, chosen_form, write_result
from arena.terminal import plain, say, show, stop, table, warnings
from judge.errors import RERUN
from rating.errors import DataError
from rating.tables.files import Files

if TYPE_CHECKING:
    from rich.console import RenderableType


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
    """Test what moves a judge, what it notices, and how often it agrees with people.

    Answers that ask for the verdict, and known biases, must win nothing beyond a control of the
    same length. Harmless changes must leave the verdict; changes of meaning, and parts removed or
    inserted, must be noticed; verdicts must agree with votes. Every pair is asked in both orders.
    Replies are kept as those of a run. Exit code 1: stopped with probes pending.

    Parameters
    ----------
    intervention
        A group (injections, biases, people, harmless, meaning, missing) or one intervention;
        again for more. injections if not given; all is another name of biases.
    cases
        Prompts and answers, as for judge run; some of our own if not given. A column label or
        winner says which answer is the better.
    votes
        For people: a file of votes, matched by battle_id, or else by item_id. The column winner
        of the cases if not given.
    sample
        Pairs to ask about, at most. If not given, 100 for people, harmless, meaning and missing,
        and every pair for the others.
    rubric
        Text that says what the marks stand for, for rubric.
    scale
        Marks of the rubric; 1-10 if not given.
    dry_run
        Only estimate the number of calls and their cost.
    seed
        Draws fences and orders in place of the database's own secret, as for judge run.

    Examples
    --------
    arena judge probe --judge pocket-judge
    arena judge probe --judge pocket-judge --method arena_hard --intervention all --format json
    """
    form = chosen_form(form, out)
    if chosen != AS_IT_IS and not cases:
        msg = "--where, --label and --column choose from files: name them with --cases."
        raise DataError(msg)
    from judge.probe.interventions import PEOPLE, material, own_material
    from judge.probe.probing import chosen_kinds, groups, plan, report
    from judge.probe.voted import votes_on
    from judge.tables.cases import NamedCase, read_labels

    wanted = chosen_kinds(intervention)
    if PEOPLE in wanted and not cases:
        msg = "--intervention people takes pairs that people voted on: name them with --cases."
        raise DataError(msg)
    if votes is not None and PEOPLE not in wanted:
        msg = f"--votes {str(votes)!r} is for --intervention people: add it, or drop --votes."
        raise DataError(msg)
    files, people = _cases_and_votes(cases, votes, chosen)
    task = Task(method=method, cases=cases, chosen=chosen, seed=seed, rubric=rubric, scale=scale)
    with prepared(options, task, files=files, probes=True) as (work, journal):
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
            show_estimate(work, journal, form)
            if form != "json":
                say(probes)
            return
        run = done(work, journal)
    result = {
        "judge": work.model.id,
        "method": work.method.name,
        "files": [Path(str(file)).name for file in (*cases, *([votes] if votes else []))],
        **report(tried, run, source, voted, work.method.grammar.scale or (0, 1), single=single),
        **run.to_dict(),
    }
    if out is None or run.stopped is None:
        write_result(result, form, out, lambda whole: _show(whole, probes))
    if run.stopped is not None:
        rest = "" if out is None else f" {str(out)!r} is not written before all is asked."
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


def _show(result: Mapping[str, Any], probes: str) -> None:
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
    asked = f"{result['n_asked']:,} replies asked for now, {result['n_recalled']:,} known before"
    show(*parts, plain(f"{asked}: {probes}"), *warnings(result["warnings"]))
