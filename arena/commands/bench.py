"""`arena bench`."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from arena.commands.arguments import Flat, TableOrJson
from arena.commands.bench_options import BenchOptions, as_typed
from arena.commands.bench_work import (
    Bench,
    Played,
    at_desk,
    cast,
    judged_by,
    require_prices,
)
from arena.commands.judge_second import on_fallback
from arena.commands.judge_work import (
    IFEVAL,
    JudgeOptions,
    in_words,
    margin_of,
    require_references,
    scale_of,
)
from arena.terminal import announced, interval, plain, say, show, stop, table, warnings, write_json
from rating.errors import DataError
from rating.tables.files import Files, read_text

if TYPE_CHECKING:
    from judge.bench.leaderboard import Control
    from judge.budget import Estimate
    from judge.methods import FileMethod
    from judge.tables.items import Answers, Item, Turns


def bench(
    method: str,
    /,
    *,
    options: Annotated[BenchOptions, Flat] = BenchOptions(),  # noqa: B008 - it is frozen
    dry_run: bool = False,
    form: TableOrJson = "table",
) -> None:
    """From prompts to a table: answers that are missing, verdicts, scores, one leaderboard.

    Models of the roster answer what is not recorded; the judge compares each with the baseline, or
    marks each; the leaderboard is what `arena judge score` makes of the results. Every reply is
    kept in the database before it is read: the same command again goes on where it stopped, and
    pays for nothing twice. Exit code 1: it stopped before the end.

    Parameters
    ----------
    method
        alpaca_eval, wildbench, wildbench_reward, arena_hard, mt_bench, ifeval, rubric, pairwise or
        another method of judge run, also a file of your own; or a TOML file that says it all:
        method, and the options below.
    dry_run
        Only say what would be asked, and its cost.
    form
        How to say what came out.

    Examples
    --------
    arena bench bench.toml
    arena bench bench.toml --models pocket-retrieval --dry-run
    """
    from judge.bench.leaderboard import require_folder

    chosen_method, chosen = as_typed(method, options)
    prepared = _prepared(chosen_method, chosen)
    if not dry_run:
        if chosen.out is None:
            msg = "Name the folder for the results with --out, or ask for the cost with --dry-run."
            raise DataError(msg)
        require_folder(chosen.out)
    with at_desk(prepared, chosen.database, chosen.roster) as desk:
        if dry_run or chosen.out is None:
            _show_estimate(*desk.estimate(), prepared, form)
            return
        played = desk.play()
    _show(_report(prepared, played, chosen.out), form)


def _prepared(method: str, chosen: BenchOptions) -> Bench:
    """Read what a bench needs, before anything is paid for."""
    from arena.settings import read_settings
    from judge.bench.contest import ALIASES, baseline_answers, baseline_of
    from judge.tables.items import read_answers, read_items, read_references, referred

    if chosen.items is None or not chosen.models:
        missing = "the prompts with --items" if chosen.items is None else "models with --models"
        msg = f"The bench {method!r} needs prompts and models: name {missing}."
        raise DataError(msg)
    roster = read_settings(database=chosen.database, roster=chosen.roster).roster
    name = ALIASES.get(method, method)
    asked_by = None if name == IFEVAL else _method(name, chosen)
    judge = judged_by(name, chosen.judge, roster)
    with announced():
        items = read_items(Files((chosen.items,), where=chosen.where))
        recorded = read_answers(chosen.answers or ())
        if chosen.references is not None:
            require_references(name, asked_by)
            items = referred(items, read_references(chosen.references))
    _require_turns(name, asked_by, items)
    known = _by_item(items, recorded)
    baseline = None
    if asked_by is not None and asked_by.pairwise:
        with announced():
            baseline = baseline_of(name, chosen.baseline, items, [*known, *chosen.models])
        known[baseline] = baseline_answers(baseline, items) | known.get(baseline, {})
    elif chosen.baseline is not None:
        msg = (
            f"--baseline {chosen.baseline!r} is for methods of pairs; {method} marks single ones."
        )
        raise DataError(msg)
    models = tuple(one for one in chosen.models if one != baseline)
    if not models:
        msg = f"{baseline!r} is the baseline, and no other model is named with --models."
        raise DataError(msg)
    asked = cast(models, known, len(items), roster, "--models")
    if baseline is not None:
        asked |= cast([baseline], known, len(items), roster, "--baseline")
    if chosen.budget is not None:
        require_prices(asked, judge)
    return Bench(
        name=method,
        items=items,
        method=asked_by,
        models=models,
        baseline=baseline,
        known=known,
        asked=asked,
        judge=judge,
        options=_judge_options(chosen),
        seed=chosen.seed,
        swap_share=_swap_share(asked_by, chosen.swap_share),
        fallback_judge=chosen.fallback_judge,
        control=_control(asked_by, chosen, items),
        max_tokens=chosen.max_tokens,
        margin=_margin(asked_by, chosen.length_margin),
    )


def _margin(method: "FileMethod | None", margin: int | None) -> int | None:
    if method is not None:
        return margin_of(method, margin)
    if margin is not None:
        msg = f"--length-margin {margin} is for methods that have one, such as wildbench_reward."
        raise DataError(msg)
    return None


def _swap_share(method: "FileMethod | None", share: float | None) -> float:
    from judge.calls import require_share

    if method is None or not method.pairwise:
        if share is not None:
            raise DataError(
                f"--swap-share {share} is for methods of pairs, which have two orders."
            )
        return 1.0
    share = method.swap_share if share is None else share
    require_share(share)
    return share


def _control(
    method: "FileMethod | None", chosen: BenchOptions, items: "Sequence[Item]"
) -> "Control":
    """Read what the length control goes by, under the items' own names."""
    from judge.tables.items import of_items, read_difficulties, read_regularisation

    if chosen.difficulties is None and chosen.regularisation is None:
        return None, None
    if method is None or method.score != "alpaca_eval":
        msg = (
            "--difficulties and --regularisation are for the length control of alpaca_eval, not "
            f"for {method and method.name!r}."
        )
        raise DataError(msg)
    if chosen.difficulties is None:
        msg = (
            f"--regularisation {str(chosen.regularisation)!r} goes by the difficulties of "
            "AlpacaEval's instructions: give them with --difficulties."
        )
        raise DataError(msg)
    gamed = chosen.regularisation
    block = None if gamed is None else read_regularisation(gamed)
    return of_items(read_difficulties(chosen.difficulties), block, items)


def _judge_options(chosen: BenchOptions) -> JudgeOptions:
    return JudgeOptions(
        judge=chosen.judge,
        budget=chosen.budget,
        concurrency=16 if chosen.concurrency is None else chosen.concurrency,
        requests_per_minute=chosen.requests_per_minute,
        tokens_per_minute=chosen.tokens_per_minute,
        database=chosen.database,
        roster=chosen.roster,
    )


def _method(name: str, chosen: BenchOptions) -> "FileMethod":
    from judge.methods import method as named

    text = None if chosen.rubric is None else read_text(chosen.rubric)
    return named(name, rubric=text, scale=scale_of(chosen.scale))


def _require_turns(name: str, method: "FileMethod | None", items: "Sequence[Item]") -> None:
    """Raise `DataError` for items of several turns under a method that shows one."""
    if method is not None and {"turns_a", "turns_b"} & {*method.fields}:
        return
    several = next((item for item in items if item.further), None)
    if several is not None:
        msg = (
            f"The item {several.id!r} has {len(several.further) + 1} turns, and {name} shows one: "
            "take a method with turns_a, such as mt_bench."
        )
        raise DataError(msg)


def _by_item(items: "Sequence[Item]", recorded: "Answers") -> dict[str, dict[str, "Turns"]]:
    from judge.tables.items import answer_to

    return {
        model: {item.id: texts for item in items if (texts := answer_to(item, own)) is not None}
        for model, own in recorded.items()
    }


def _show_estimate(
    of_models: Mapping[str, "Estimate"], judging: "Estimate | None", bench: Bench, form: str
) -> None:
    """Show what would be asked for answers, and for verdicts."""
    parts = [*of_models.values(), *([judging] if judging else [])]
    costs = [part.cost_usd for part in parts]
    known = [cost for cost in costs if cost is not None]
    recorded = {name: len(bench.known.get(name, {})) for name in bench.sides}
    report = {
        "method": bench.name,
        "n_calls": sum(part.n_calls for part in parts),
        "cost_usd": sum(known) if len(known) == len(costs) else None,
        "answers": {name: part.to_dict() for name, part in of_models.items()},
        "judging": judging and judging.to_dict(),
        "recorded": recorded,
    }
    if form == "json":
        write_json(report)
        return
    for name, n in recorded.items():
        say(f"{name}: {n:,} of {len(bench.items):,} answers are recorded.")
    for name, part in of_models.items():
        say(f"Answers of {name}: {in_words(part)}")
    if judging is not None:
        say(f"Judging: {in_words(judging)}")


def _report(bench: Bench, played: Played, out: Path) -> dict[str, Any]:
    """Write what came out, and say it: no leaderboard before all is judged."""
    from judge.bench.leaderboard import (
        failures,
        leaderboard,
        on_order,
        order_of,
        write_answers,
        write_leaderboard,
        write_results,
    )
    from judge.report.fallback import fallback_of
    from judge.report.run import differences, repeats

    write_answers(played.given, out)
    rows, kinds = _rows(bench, played)
    status = {
        "method": bench.name,
        "judge": None if bench.judge is None else bench.judge.id,
        "baseline": bench.baseline,
        "items": len(bench.items),
        "n_asked": played.n_asked,
        "n_recalled": played.n_recalled,
        "spent_usd": played.spent_usd,
        "failures": failures(rows, played.given),
        "missing": {name: n for name, n in played.contest.missing.items() if n},
        "stopped": played.why or None,
        "out": str(out),
    }
    if played.why:
        return {"models": [], "cost": None, "failed": None, "warnings": [], **status}
    if not rows:
        msg = f"No item has all the answers that {bench.name} needs: nothing was judged."
        raise DataError(msg)
    results = write_results(rows, kinds, out)
    missing = played.contest.missing
    board = leaderboard(rows, results, bench.models, played.given, missing, bench.control)
    repeated = repeats([case.named for case in played.contest.cases])
    if bench.method is not None and bench.method.pairwise:
        board |= {"swap_share": bench.swap_share, **on_order(rows)}
    if bench.method is not None:
        cases = (case.named for case in played.contest.cases)
        board["changes"] = differences(bench.method, cases)
    if bench.judge is not None and bench.fallback_judge is not None:
        by = partial(order_of, kinds=kinds)
        second, why = bench.fallback_judge, played.handed_over
        board["fallback"] = fallback_of(bench.judge.id, second, why, rows, by).to_dict()
    report = board | status | {"warnings": [*board["warnings"], *repeated]}
    write_leaderboard(report, out)
    return report


def _rows(bench: Bench, played: Played) -> tuple[list[dict[str, Any]], Mapping[str, str]]:
    from judge.bench.contest import checked
    from judge.tables.verdicts import MARKS, PAIRS, bench_results, constraint_rows, kinds_of

    cases, run = played.contest.cases, played.run
    if bench.method is None and not played.why:
        rows = constraint_rows([case.named for case in cases], checked(cases, bench.items))
        with_more = zip(rows, cases, strict=True)
        return [{**row, **case.more} for row, case in with_more], kinds_of(MARKS)
    if run is None or bench.method is None or bench.judge is None:
        return [], kinds_of(MARKS)
    judged = bench_results(cases, run, played.replies, bench.judge.id, bench.method)
    return [*judged], kinds_of(PAIRS if bench.method.pairwise else MARKS)


def _show(report: Mapping[str, Any], form: str) -> None:
    """Show the leaderboard; end with 1 if the bench stopped before there was one."""
    if form == "json":
        write_json(report)
    elif report["stopped"] is None:
        lines = [plain(line) for line in (*_on_order(report), *on_fallback(report))]
        show(plain(_caption(report)), _board(report["models"]), *lines, *warnings(_notes(report)))
        if report["method"].startswith("mt_bench"):
            say("\n".join(["Differs from upstream:", *report["changes"]]), keep="\n")
    if report["stopped"] is not None:
        stop(report["stopped"])


def _caption(report: Mapping[str, Any]) -> str:
    judge = "" if report["judge"] is None else f", judged by {report['judge']}"
    against = "" if report["baseline"] is None else f" against {report['baseline']}"
    cost = "" if report["cost"] is None else f" ${report['cost']:.4g} in all."
    return (
        f"{report['method']}{against}{judge}: {report['items']:,} items. {report['n_asked']:,} "
        f"replies asked for now, {report['n_recalled']:,} known before.{cost} {report['out']}"
    )


def _on_order(report: Mapping[str, Any]) -> list[str]:
    """Say what standing first is worth, where not every pair was asked in both orders."""
    if report.get("swap_share", 1.0) == 1:
        return []
    place = report["first_place"]
    if place is None:
        return [
            "What standing first is worth is not known: pairs of under two prompts were read in "
            "both orders."
        ]
    ends = f"{place['lower']:+.3f} to {place['upper']:+.3f}"
    return [
        f"Standing first is worth {place['effect']:+.3f} ({ends}) of a win, by the {place['n']:,} "
        "pairs that were read in both orders."
    ]


OTHERS = {
    "lc_win_rate": "Length-controlled",
    "style_score": "Style-controlled",
    "task_macro": "Task macro",
}
"""Columns of a leaderboard beside its first figure, where a row has them."""


def _board(models: Sequence[Mapping[str, Any]]) -> Any:
    from judge.bench.leaderboard import value_of

    value = value_of(models[0])
    figure, others = "Win rate" if value == "win_rate" else "Score", dict(OTHERS)
    rows = models
    if any("adjusted" in row for row in models):  # WB-Score, of marks from 1 to 10
        value, figure, others["score"] = "adjusted", "WB-Score", "1–10 mean"
        ends = ("lower", "upper")
        rows = [
            {**row, **{x: None if row[x] is None else 2 * (row[x] - 5) for x in ends}}
            for row in models
        ]
    others = {key: head for key, head in others.items() if any(key in row for row in rows)}
    head = ["Model", figure, "95 % interval", *others.values(), "n", "Failed", "Cost"]
    cells = [
        [
            row["model"],
            _figure(row.get(value)),
            interval(row["lower"], row["upper"], ".2f"),
            *(_figure(row.get(column)) for column in others),
            f"{row['n']:,}",
            f"{row['failed']:,}",
            "–" if row["cost"] is None else f"${row['cost']:.4g}",
        ]
        for row in rows
    ]
    return table(head, cells)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _notes(report: Mapping[str, Any]) -> list[str]:
    missing = [
        f"{name!r}: {n:,} items without an answer (or without one of the baseline) are left out."
        for name, n in report["missing"].items()
    ]
    return [*missing, *report["warnings"]]
