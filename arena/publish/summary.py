"""What a board is, in a sentence or two for people."""

from collections.abc import Mapping
from typing import Any

MODELS = {
    "half": "Bradley-Terry, ties half a win for each side",
    "davidson": "Bradley-Terry-Davidson, which fits how often ties happen",
    "rao-kupper": "Rao-Kupper, in which a gap must exceed a threshold to be seen",
    "grounded": "grounded Rao-Kupper, in which both may be too bad",
}
INTERVALS = {
    "sandwich": "that take votes as independent",
    "hessian": "from the curvature of the likelihood",
    "bootstrap": "from {rounds} bootstrap rounds{drawn}",
    "profile": "by profile likelihood",
}


def summary(report: Mapping[str, Any]) -> str:
    """Say which votes a board is of, and how it was made."""
    return f"{_votes(report['votes'])} {_method(report['method'])}"


def _votes(votes: Mapping[str, Any]) -> str:
    said = f"{votes['used']:,} {_plural('vote', votes['used'])}"
    if votes["voters"] is not None:
        said += (
            f" by {votes['voters']:,} {_plural('voter', votes['voters'])}, as good as "
            f"{votes['effective_voters']:.1f} equally busy ones; the busiest cast "
            f"{votes['top_voter_share']:.0%}"
        )
    aside = {"a model against itself": votes["self"], **votes["dropped"]}
    left = ", ".join(f"{n:,} {why}" for why, n in aside.items() if n)
    return f"{said}." + (f" Left out: {left}." if left else "")


def _method(method: Mapping[str, Any]) -> str:
    said = MODELS[method["ties"]][0].upper() + MODELS[method["ties"]][1:]
    if method["ridge"]:
        said += f", with a ridge of {method['ridge']:g}"
    if method["style"]:
        said += f", adjusted for {', '.join(method['style'])}"
    return f"{said}; {_intervals(method)}; {method['scale']:g} points are odds of ten to one."


def _intervals(method: Mapping[str, Any]) -> str:
    if method["interval"] == "none":
        return "no intervals"
    by = method["cluster"]
    words = INTERVALS[method["interval"]].format(
        rounds=method["rounds"], drawn="" if by == "none" else f" of {by}s"
    )
    if method["interval"] == "sandwich" and by != "none":
        one = {"both": "voter, and one prompt,"}.get(by, by)
        words = f"that leave out one {one} at a time"
    base = method["reference"]
    of = f" of the difference from {base}" if base is not None else ""
    return f"{100 * method['level']:g} % intervals{of} {words}"


def _plural(word: str, n: int) -> str:
    return word if n == 1 else f"{word}s"
