"""What a judge's run says on a terminal when it ends."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from arena.terminal import say, write
from rating.errors import DataError

if TYPE_CHECKING:
    from judge.budget import Estimate

Told = Mapping[str, Any]


def require_form(form: str | None) -> None:
    """Raise `DataError` of a form that there is not."""
    if form not in (None, "table", "json"):
        msg = f"There is no format {form!r} of a run: choose table or json."
        raise DataError(msg)


def tell_estimate(found: "Estimate", form: str | None) -> None:
    """Say what a run would ask."""
    if form == "json":
        _json(found.to_dict())
        return
    cost = "at an unknown price" if found.cost_usd is None else f"for about ${found.cost_usd:.2g}"
    known = (
        f"calibrated on {found.calibration.n:,} kept replies"
        if found.calibration.n
        else "by the rule of characters"
    )
    say(
        f"{found.n_calls:,} calls, about {_rounded(found.tokens_in)} tokens in and "
        f"{_rounded(found.tokens_out)} out, {cost} ({known})."
    )


def _rounded(tokens: float) -> str:
    """Write an estimate with the two digits that it is good for."""
    return f"{float(f'{tokens:.2g}'):,.0f}"


def tell_run(report: Told, out: Path | None, form: str | None) -> None:
    """Say what came out; what is pending is the caller's to take up again.

    Raises
    ------
    typer.Exit
        With 1 if the run stopped with cases still pending.
    """
    if form == "json":
        _json({**report, "out": None if out is None else str(out)})
    else:
        say(_counts(report, out))
        for line in [*_by_model(report), *_on_order(report)]:
            say(line)
        for warning in report["warnings"]:
            say(f"! {warning}")
    if report["stopped"] is not None:
        say(f"arena: Stopped: {report['why']}. {report['next']}", error=True)
        raise typer.Exit(1)


def tell_checks(report: Told, out: Path, form: str | None) -> None:
    """Say how far instructions were followed."""
    if form == "json":
        _json({**report, "out": str(out)})
        return
    say(f"{out}: {sum(row['prompt_strict']['n'] for row in report['models']):,} checked.")
    for row in report["models"]:
        say(f"{row['model']}: {', '.join(_share(name, row[name]) for name in _SHARES)}.")
    for warning in report["warnings"]:
        say(f"! {warning}")


_SHARES = ("prompt_strict", "prompt_loose", "instruction_strict", "instruction_loose")


def _share(name: str, found: Told) -> str:
    unread = f", {found['n_unread']} cannot be told" if found["n_unread"] else ""
    if found["rate"] is None:
        return f"{name.replace('_', ' ')} not known"
    ends = f"{found['low']:.0%} to {found['high']:.0%}"
    return f"{name.replace('_', ' ')} {found['rate']:.0%} ({ends}; n {found['n']}{unread})"


def _counts(report: Told, out: Path | None) -> str:
    status = ", ".join(f"{n:,} {name}" for name, n in sorted(report["by_status"].items()))
    spent = "" if report["spent_usd"] is None else f" for ${report['spent_usd']:.4g}"
    return (
        f"{out or 'Nothing left'}: {status}. {report['n_asked']:,} replies asked for now{spent}, "
        f"{report['n_recalled']:,} known before."
    )


def _by_model(report: Told) -> list[str]:
    lines = []
    for row in report.get("models", []):
        score = "no score" if row["score"] is None else f"mean {row['score']:.3g}"
        unread = f", {row['unread']:,} without a score" if row["unread"] else ""
        lines.append(f"{row['model']}: {score} of {row['n']:,}{unread}.")
    for row in report.get("rewards", []):
        reward = "no reward" if row["reward"] is None else f"reward {row['reward']:+.3f}"
        lines.append(f"{row['model']} against {row['baseline']}: {reward} of {row['n']:,}.")
    return lines


def _on_order(report: Told) -> list[str]:
    lines, seen, place = [], report.get("consistency"), report.get("first_place")
    if seen and seen["rate"] is not None and seen["n_first"] + seen["n_second"]:
        lines.append(
            f"The same verdict in both orders: {seen['rate']:.0%}; the others lean to the first "
            f"place {seen['n_first']:,} times, to the second {seen['n_second']:,} times."
        )
    if report.get("swap_share", 1.0) < 1:
        lines.append(_on_place(place))
    return lines


def _on_place(place: Told | None) -> str:
    if place is None:
        return (
            "Under two cases were read in both orders: nothing is known to correct the others by."
        )
    return (
        f"Standing first is worth {place['effect']:+.3f} ± {place['standard_error']:.3f} "
        f"({place['n']:,} cases read in both orders); 'corrected' is the preference less that."
    )


def _json(value: Told) -> None:
    from rating.tables.formats import as_json

    write(as_json(value))
