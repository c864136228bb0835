"""A second judge at work, and what is to be said of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from arena.commands.judge_work import Second, opened, progress_of
from arena.terminal import working

if TYPE_CHECKING:
    from arena.endpoints.sse import Budgets
    from judge.methods import FileMethod
    from judge.tables.cases import NamedCase
    from judge.verdict import Run


def with_second(
    first: "Run",
    second: Second,
    cases: "Sequence[NamedCase]",
    method: "FileMethod",
    budgets: "Budgets",
    spent_usd: float | None,
) -> "Run":
    """Let the second judge take the cases that the first gave no verdict on; return both runs.

    Parameters
    ----------
    spent_usd : float or None
        Of the budget, so far.
    """
    from judge.checklists import judge_all
    from judge.fallback import handed_over, together
    from judge.runs import at_work

    theirs = handed_over(cases, first)
    if not theirs:
        return first
    limit = second.options.limit_usd
    left = None if limit is None else max(limit - (spent_usd or 0.0), 0.0)
    options = replace(second.options, limit_usd=left)
    with working(f"Judging by {second.model.id}") as advance:
        run = at_work(
            opened(second.model, budgets, options.terms),
            lambda judge: judge_all(
                theirs, method, judge, second.journal, options, progress_of(advance)
            ),
        )
    return together(first, run, second.model.id)


def on_fallback(report: Mapping[str, Any]) -> list[str]:
    """Say whose the verdicts are, where a second judge was asked."""
    sentence = report.get("fallback", {}).get("sentence")
    return [sentence] if sentence else []
