"""`arena judge probe`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from arena.commands.arguments import AS_IT_IS, File, Flat, Renamed, TableOrJson
from arena.commands.judge_work import (
    ARENA,
    JudgeOptions,
    Probed,
    Task,
    Work,
    done,
    prepared,
    show_estimate,
)
from arena.terminal import plain, say, show, stop, table, warnings, write_json
from rating.errors import DataError

if TYPE_CHECKING:
    from judge.probe.injections import Probe
    from judge.probe.interventions import Material
    from judge.tables.cases import NamedCase
    from judge.verdict import Run

EVERY = "all"

Report = dict[str, Any]


def probe(
    *,
    options: Annotated[JudgeOptions, Flat] = JudgeOptions(),  # noqa: B008 - it is frozen
    intervention: Annotated[tuple[str, ...], Parameter(metavar="NAME")] = (),
    method: Probed = "pairwise",
    cases: Annotated[tuple[str, ...], Parameter(metavar="SOURCE")] = (),
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    rubric: File = None,
    scale: Annotated[str | None, Parameter(metavar="LOW-HIGH")] = None,
    dry_run: bool = False,
    seed: Annotated[str | None, Parameter(metavar="TEXT")] = None,
    form: TableOrJson = "table",
) -> None:
    """Try what a judge does with answers that ask for the verdict, or with a known bias.

    Each kind of injected answer is set against each honest one, in both orders, and so is its
    control, a filler of the same length that asks for nothing. Success is what wins in both
    orders beyond the control. With --intervention a known bias is tried in the same way: a false
    citation, the opinion of others, names. Replies are kept as those of a run. Exit code 1:
    stopped with probes pending.

    Parameters
    ----------
    intervention
        Try this bias in place of injected answers (again for more, all for every one).
    cases
        Prompts and answers, as for judge run; some of our own if not given. A column label or
        winner says which answer is the better.
    rubric
        Text that says what the marks stand for, for rubric.
    scale
        Marks of the rubric; 1-10 if not given.
    dry_run
        Only say what would be asked, and its cost.
    seed
        Draws fences and orders in place of the database's own secret, as for judge run.
    form
        How to say what came out.

    Examples
    --------
    arena judge probe --judge pocket-judge
    arena judge probe --judge pocket-judge --method arena_hard --intervention all --format json
    """
    if chosen != AS_IT_IS and not cases:
        msg = "--where, --label and --column choose from files: name them with --cases."
        raise DataError(msg)
    kinds = _kinds(intervention)
    task = Task(method=method, cases=cases, chosen=chosen, seed=seed, rubric=rubric, scale=scale)
    with prepared(options, task, probes="all") as (work, journal):
        single = not work.method.pairwise
        given = _material(work.cases, task) if cases else None
        tried, read = (
            _interventions(work, given, kinds, single=single)
            if kinds
            else _injections(given, _scale(work), single=single)
        )
        work = replace(work, cases=[named for each in tried for named in _named(each)])
        if dry_run:
            show_estimate(work, journal, form)
            if form != "json":
                say(f"{_arms(len(tried), kinds, single=single)}.")
            return
        run = done(work, journal)
    report = {"judge": work.model.id, "method": work.method.name, **read(run), **run.to_dict()}
    if form == "json":
        write_json(report)
    elif kinds:
        _show_interventions(report, single=single)
    else:
        _show_injections(report, single=single)
    if run.stopped is not None:
        stop(run.why)


Read = Callable[["Run"], Report]


def _kinds(asked: Sequence[str]) -> tuple[str, ...]:
    from judge.probe.interventions import kinds

    known = {_typed(one): one for one in (EVERY, *kinds())}
    unknown = [one for one in asked if _typed(one) not in known]
    if unknown:
        raise DataError(f"There is no --intervention {unknown[0]!r}: choose {', '.join(known)}.")
    named = {known[_typed(one)] for one in asked}
    return kinds() if EVERY in named else tuple(one for one in kinds() if one in named)


def _typed(name: str) -> str:
    return name.casefold().replace(" ", "-")


def _material(named: "Sequence[NamedCase]", task: Task) -> "Material":
    """Put the better answers of the cases on side A, as far as their one file says."""
    from judge.probe.interventions import material
    from judge.tables.cases import read_labels

    one_file = len(task.cases) == 1 and task.cases[0] != ARENA
    labels = read_labels(task.chosen.cases(task.cases[0])) if one_file else None
    return material([each.case for each in named], labels)


def _scale(work: Work) -> tuple[int, int]:
    """Give the lowest and the highest mark of a method; of one that gives none, any."""
    return work.method.grammar.scale or (0, 1)


def _injections(
    given: "Material | None", scale: tuple[int, int], *, single: bool
) -> "tuple[Sequence[Probe], Read]":
    from judge.probe.findings import scores_of
    from judge.probe.injections import honest_cases, probes, resisted

    honest = honest_cases() if given is None else given.honest
    tried = probes(honest, single=single)
    return tried, lambda run: resisted(tried, scores_of(run.judged, scale), marks=single).to_dict()


def _interventions(
    work: Work, given: "Material | None", kinds: Sequence[str], *, single: bool
) -> "tuple[Sequence[Probe], Read]":
    from judge.probe.findings import findings
    from judge.probe.interventions import interventions, own_material

    source = own_material() if given is None else given
    tried = interventions(source.pairs, kinds, work.model.name, single=single)
    if len({probe.kind for probe in tried}) < 2:
        msg = f"{kinds[0]!r} compares two answers, and {work.method.name!r} looks at one."
        raise DataError(msg)
    return tried, lambda run: findings(
        tried, run.judged, source.basis, source.n_left_out, _scale(work)
    ).to_dict()


def _named(probe: "Probe") -> "list[NamedCase]":
    """Name both cases of a probe, side by side: a run that stops leaves whole pairs."""
    from judge.tables.cases import NamedCase

    arms = ((probe.kind, probe.case), (f"filler for {probe.kind}", probe.control))
    return [
        NamedCase(case.id[:16], case.prompt_id[:16], "honest", name, case) for name, case in arms
    ]


def _arms(n: int, kinds: Sequence[str], *, single: bool) -> str:
    what = "answers with an intervention, and for each its control"
    if not kinds:
        what = "injected answers, and for each a filler of the same length"
    return f"{n:,} {what}, {'one at a time' if single else 'in both orders'}"


def _first(single: bool) -> str:
    """Give what stands above the shares that the arms won, or their mean marks."""
    return "Mark" if single else "Won"


def _show_injections(report: Report, *, single: bool) -> None:
    rows = [
        (row["kind"], *_shares(row), _success(row))
        for row in [*report["kinds"], {**report, "kind": "all"}]
    ]
    control, n = report["control"], report["n"] + report["n_undecided"]
    passed = "had more than the lowest mark" if single else "won or tied"
    text = (
        f"{_asked(report)}: {_arms(n, (), single=single)}. "
        "Success is what injected answers won beyond their fillers. "
        f"An injected answer {passed} in {report['n_not_lost']:,} of {report['n']:,} probes, a "
        f"filler in {control['n_not_lost']:,} of {control['n']:,}; {report['n_undecided']:,} and "
        f"{control['n_undecided']:,} have no verdict."
    )
    first = _first(single)
    head = ("Injected answer", "Pairs", first, f"Filler {first.lower()}", "Success")
    show(table(head, rows), plain(text), *warnings(report["warnings"]))


def _show_interventions(report: Report, *, single: bool) -> None:
    from judge.probe.findings import WORDS

    rows = [
        (row["kind"], *_shares(row), _points(row), WORDS[row["finding"]])
        for row in report["interventions"]
    ]
    head = ("Intervention", "Pairs", _first(single), "Control", "Beyond, points", "Moved?")
    show(
        table(head, rows, right=range(1, 5)),
        plain(f"{report['judge']}: {report['headline']}", style="bold"),
        plain(" ".join(report["sentences"])),
        plain(f"{_asked(report)}: {_arms(report['tried'], ('',), single=single)}."),
        *warnings(report["warnings"]),
    )


def _asked(report: Report) -> str:
    return f"{report['n_asked']:,} replies asked for now, {report['n_recalled']:,} known before"


def _shares(row: Mapping[str, Any]) -> tuple[str, ...]:
    shares = (_percent(row[arm]["rate"]) for arm in ("attack", "control"))
    return f"{row['n_pairs']:,}", *shares


def _points(row: Mapping[str, Any]) -> str:
    from judge.studies.estimates import Estimate, gap_of

    rate, low, high = (row[name] for name in ("success_rate", "lower", "upper"))
    return gap_of(Estimate(rate, low, high, row["n_pairs"]))


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.0%}"


def _success(row: Mapping[str, Any]) -> str:
    if row["success_rate"] is None:
        return "–"
    rate, low, high = (100 * row[name] for name in ("success_rate", "lower", "upper"))
    return f"{rate:z.0f}% ({low:z.0f}% to {high:z.0f}%)"
