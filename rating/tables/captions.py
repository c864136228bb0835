"""What a board says of itself, above a table and under a picture: votes, method, data and date."""

from collections.abc import Mapping
from datetime import date
from typing import Any

Report = Mapping[str, Any]
"""A result in the shape of ``arena rate --format json``."""

TIES = {
    "half": "Bradley-Terry, a tie half a win",
    "davidson": "Bradley-Terry with Davidson's ties",
    "rao-kupper": "Bradley-Terry with Rao and Kupper's ties",
    "grounded": "grounded Rao-Kupper, both bad below a zero",
}

INTERVALS = {
    "sandwich": "sandwich",
    "hessian": "likelihood (Hessian)",
    "bootstrap": "bootstrap",
    "profile": "profile likelihood",
}

CLUSTERS = {"voter": "by voter", "prompt": "by prompt", "both": "by voter and by prompt"}


def votes_said(report: Report) -> str:
    """Say how many votes by how many voters.

    Examples
    --------
    >>> votes_said({"votes": {"used": 2184, "voters": 56, "effective_voters": 31.4}})
    '2,184 votes by 56 voters (effectively 31)'
    """
    votes = report["votes"]
    said = f"{votes['used']:,} vote{'s' if votes['used'] != 1 else ''}"
    if votes.get("voters") is None:
        return f"{said}, voters not known"
    said += f" by {votes['voters']:,} voter{'s' if votes['voters'] != 1 else ''}"
    effective = votes.get("effective_voters")
    return said if effective is None else f"{said} (effectively {effective:,.0f})"


def summary(report: Report) -> str:
    """Say which votes a board is of, and how it was made, in a sentence or two.

    Examples
    --------
    >>> summary({"votes": {"used": 82, "voters": None, "self": 1, "dropped": {"skipped": 2}},
    ...          "method": {"ties": "half", "interval": "none", "scale": 400.0}})
    '82 votes, voters not known. Left out: 1 a model against itself, 2 skipped. \
Bradley-Terry, a tie half a win; no intervals; 400 points are odds of ten to one.'
    """
    votes, method = report["votes"], report["method"]
    said = votes_said(report)
    if votes.get("top_voter_share") is not None:
        said += f"; the busiest cast {votes['top_voter_share']:.0%}"
    aside = {"a model against itself": votes["self"], **votes["dropped"]}
    left = ", ".join(f"{n:,} {why}" for why, n in aside.items() if n)
    sentences = [f"{said}.", f"Left out: {left}." if left else ""]
    made = f"{method_said(report)}; {interval_said(report)}"
    sentences.append(f"{made}; {method['scale']:g} points are odds of ten to one.")
    return " ".join(filter(None, sentences))


def method_said(report: Report) -> str:
    """Name the model and its options that matter to a reader.

    Examples
    --------
    >>> method_said({"method": {"ties": "half", "ridge": 1.0, "style": ["length"]}})
    'Bradley-Terry, a tie half a win, ridge 1, style held equal (length)'
    >>> method_said({"method": {"half_life": 30, "since": "2026-01-31T00:00:00+00:00"}})
    'Bradley-Terry, a tie half a win, weights halved every 30 days of age, since 2026-01-31'
    """
    method = report["method"]
    parts = [TIES.get(method.get("ties", "half"), f"ties: {method.get('ties')}")]
    if method.get("ridge"):
        parts.append(f"ridge {method['ridge']:g}")
    if method.get("order_effect"):
        parts.append("order effect")
    if method.get("style"):
        parts.append(f"style held equal ({', '.join(method['style'])})")
    if method.get("weights"):
        parts.append(f"weights: {method['weights']}")
    if method.get("half_life"):
        parts.append(f"weights halved every {method['half_life']:g} days of age")
    for name in ("since", "until"):
        if method.get(name):
            parts.append(f"{name} {_moment_said(method[name])}")
    return ", ".join(parts)


def _moment_said(moment: str) -> str:
    """Leave out of a moment in UTC what goes without saying: its zone, and midnight."""
    return moment.removesuffix("+00:00").removesuffix("T00:00:00")


def has_intervals(report: Report) -> bool:
    """Whether the report was made with intervals."""
    return bool(report["method"].get("interval", "sandwich") != "none")


def interval_said(report: Report) -> str:
    """Say level and method of the intervals.

    Examples
    --------
    >>> interval_said({"method": {"interval": "sandwich", "cluster": "voter", "level": 0.95}})
    '95 % intervals: sandwich, clustered by voter'
    """
    method = report["method"]
    if not has_intervals(report):
        return "no intervals"
    base = method.get("reference")
    of = f" of the difference from {base}" if base is not None else ""
    kind = method.get("interval", "sandwich")
    name = INTERVALS.get(kind, str(kind))
    said = f"{100 * method.get('level', 0.95):g} % intervals{of}: {name}"
    cluster = CLUSTERS.get(method.get("cluster") or "none")
    return f"{said}, clustered {cluster}" if cluster else f"{said}, votes taken as independent"


def origin_said(report: Report, made: date) -> str:
    """Say which data, which version, which day.

    Examples
    --------
    >>> origin_said({"method": {"version": "1.2", "data_hash": "0123456789abcdef"}},
    ...             date(2026, 5, 3))
    'arena 1.2, data 0123456789ab, 2026-05-03'
    """
    method = report["method"]
    parts = [f"arena {method['version']}"] if method.get("version") else []
    if method.get("data_hash"):
        parts.append(f"data {str(method['data_hash'])[:12]}")
    return ", ".join([*parts, made.strftime("%Y-%m-%d")])


def caption(report: Report, made: date, *said: str, intervals: bool = True) -> str:
    """Join what every caption says with what this picture needs.

    Parameters
    ----------
    said : str
        Sentences of this picture, with their full stops; empty ones are passed over.
    intervals : bool
        Whether the picture shows intervals.
    """
    method = method_said(report)
    if intervals:
        method += f"; {interval_said(report)}"
    sentences = [f"{votes_said(report)}.", f"{method}.", *said, f"{origin_said(report, made)}."]
    return " ".join(sentence for sentence in sentences if sentence)
