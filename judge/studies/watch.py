"""Watches a certified judge by a small stream of votes, and revokes its licence on drift."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import date
from math import log, sqrt
from typing import Any, Literal

import numpy as np

from judge.studies.alignment import Aligned, align, on_voted
from judge.studies.data import one_a_case, study_data
from judge.studies.estimates import minus
from judge.studies.licence import (
    BOUND,
    Licence,
    Reference,
    counted,
    hash_of,
    labelled,
    require_people,
)
from judge.studies.newcomer import Compared, with_signal
from judge.studies.rows import Rows, Source, read_rows
from rating.errors import DataError
from rating.outcome import of_sides
from rating.sentences import plural
from rating.typing import Floats, Ints

Status = Literal["valid", "revoked", "cannot_say"]
ALARMS = 0.05
"""Share of years of an unchanged judge in which its licence is revoked, at most."""
SPENT = 0.04
"""Of it, what the bound itself takes; the rest is for variances that are estimated."""
TIGHTEST = 200
"""Votes after which the bound is tightest."""
FEWEST = 30
"""Votes before which nothing is said."""
STEADIEST = 0.1
"""Variance of agreement under which a vote weighs no more: 89 of 100 verdicts agreed with."""
SPREAD = 0.5
"""Share of the next cases that are spread as the labels of the licence lay."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What a watch says of a licence.

    Attributes
    ----------
    why : str
        What the status hangs on, in a sentence.
    last : mapping or None
        As of `follow`, after all votes, or at the one that revoked; None where nothing could be
        compared.
    not_counted : tuple of str
        Verdicts that are not the licence's, a sentence a reason.
    asked : tuple of mapping
        Cases to ask people about next, as of `choose`.
    """

    judge: str
    status: Status
    why: str
    last: dict[str, Any] | None
    votes_a_year: int
    not_counted: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    asked: tuple[dict[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"false_alarms_a_year": ALARMS}


def watch(licence: Licence, votes: Source, verdicts: Source, today: date) -> Watched:
    """Return whether a licence still holds, from new votes beside the judge's verdicts.

    The votes are taken in the order of their source; nothing else is remembered, so the same
    votes give the same answer, and once revoked a licence stays so as votes are added.

    Raises
    ------
    DataError
        If a source cannot be read, the votes are not of people, or nothing is in both.
    """
    by, year = licence.column, licence.votes_a_year
    cast = read_rows(votes, unparsed=False, by=by)
    given = licensed_signal(licence, read_rows(verdicts, unparsed=True, by=by, marks=True))
    require_people(cast, given)
    if by is not None and "by" not in given.names and "by" in cast.names:
        given = _with_categories(align(cast, given))
    given = given.only(given.read)
    counts, reasons = counted(licence, columns_of(given), given.n)
    given = given.only(counts)
    silent = Watched(licence.judge, "cannot_say", "", None, year, reasons)
    if over := licence.expired(today):
        return replace(silent, why=over)
    if hash_of(cast) == licence.votes_sha256:
        why = "The certificate rests on these votes: the drift monitor needs later ones."
        return replace(silent, why=why)
    if licence.reference is None:
        why = "The certificate has too few labels on pairs of passed models to compare."
        return replace(silent, why=why)
    if not given.n:
        return replace(silent, why="No verdict counts under the validation certificate.")
    aligned = align(cast, given)
    data = study_data(aligned)
    rows = labelled(data, data.judges[0], licence.signal)
    looks = follow(licence.reference, rows.only(np.arange(min(len(rows.score), year))))
    revoked = next((look for look in looks if look["fall"] > look["bound"]), None)
    last = revoked or (looks[-1] if looks else None)
    status, why = _status(licence, last, len(rows.score), revoked=revoked is not None)
    unknown = "The votes do not name their voters: each vote is taken as one person's."
    warnings = (*aligned.warnings, *(() if data.voters_known else (unknown,)))
    return replace(silent, status=status, why=why, last=last, warnings=warnings)


def _with_categories(aligned: Aligned) -> Rows:
    """Give verdicts the category that votes on the same item have."""
    (cast, given), item = aligned.sources, aligned.item
    column = cast.names["by"]
    of_item = np.full(max(map(np.max, item)) + 1, -1)
    of_item[item[0]] = column.codes
    theirs = type(column)(column.names, of_item[item[1]])
    return replace(given, names={**given.names, "by": theirs})


def licensed_signal(licence: Licence, rows: Rows) -> Rows:
    """Give verdicts their signal; raises `DataError` for one that is not the licence's."""
    rows, signal = with_signal(rows)
    if signal != licence.signal:
        raise DataError(
            f"The verdicts of {rows.source!r} give {signal}, and the validation certificate of "
            f"{licence.judge!r} is for {licence.signal}: use the judge as it was validated."
        )
    return rows


def columns_of(rows: Rows) -> dict[str, list[str | None]]:
    """Give what a licence binds of verdicts, by role."""
    columns = {role: rows.named(role).tolist() for role in BOUND if role in rows.names}
    return columns if "judge" in columns else columns | {"judge": ["judge"] * rows.n}


def _status(
    licence: Licence, last: dict[str, Any] | None, n: int, *, revoked: bool
) -> tuple[Status, str]:
    if last is None:
        return "cannot_say", f"There are only {plural(n, 'vote')}; at least {FEWEST} are needed."
    votes, fall = plural(last["votes"], "vote"), last["fall"]
    moved = minus(
        f"agreement with people {('fell' if fall > 0 else 'rose')} by {abs(fall):.1f} "
        f"percentage points since the certificate; a fall of {last['bound']:.1f} revokes it"
    )
    if revoked:
        return "revoked", f"Revoked after {votes}: {moved}."
    if n > licence.votes_a_year:
        return "cannot_say", (
            f"The {plural(licence.votes_a_year, 'vote')} declared for a year are used up without "
            "a drift: grade the judge again."
        )
    return "valid", f"Not revoked after {votes}: {moved}."


def follow(reference: Reference, rows: Compared) -> list[dict[str, Any]]:
    """Compare agreement with that of a licence, vote by vote, by a bound that allows for looking.

    With a_i the agreement of vote i, of a verdict of kind k whose agreement was p_k and its
    variance s_k^2, the fall after n votes is ``W = sum w_i (p_k - a_i)``, ``w_i = 1 / s_k^2`` with
    s_k^2 no less than `STEADIEST`. Its variance is ``V + N' C N``: V of the new votes, which
    correlate within voters and prompts as the labels of the licence did, C the covariance of the
    p_k, N the weight of each kind. The licence is revoked where::

        W > sqrt(V + N' C N) sqrt(log(1 / alpha) / 2) (sqrt(u) + 1 / sqrt(u)),  u = V / V0

    V0 the variance of `TIGHTEST` votes of the labels' kinds. A Brownian motion in V ever crosses
    this line with probability alpha, which is `SPENT`. The error of the p_k is the same at every
    look and a voter's votes correlate, so looks correlate more, and by Slepian's inequality cross
    less often.

    Returns
    -------
    list of dict
        After each vote from `FEWEST` on: ``votes``, the ``fall`` of agreement since the licence
        and the ``bound`` that revokes it, both in percentage points.

    References
    ----------
    .. [1] J. L. Doob, "Heuristic approach to the Kolmogorov-Smirnov theorems", Annals of
       Mathematical Statistics 20(3), 1949, equation 4.2.
    .. [2] D. Slepian, "The one-sided barrier problem for Gaussian noise", Bell System Technical
       Journal 41(2), 1962.
    """
    agreement, covariance = np.array(reference.agreement), np.array(reference.covariance)
    variances, precision = np.array(reference.variance), _precision(reference)
    kind = np.searchsorted(np.array(reference.edges), rows.size, side="right")
    usual = TIGHTEST * float(np.average(precision**2 * variances, weights=reference.votes))
    weight = precision[kind]
    fall = np.cumsum(weight * (agreement[kind] - rows.agreement))
    total = np.cumsum(weight)
    of_kind = np.cumsum(weight[:, None] * (kind[:, None] == np.arange(len(precision))), axis=0)
    root = weight * np.sqrt(variances[kind])
    variance = np.cumsum(root**2)
    for cluster, correlation in (
        (rows.rater, reference.of_voter),
        (rows.prompt, reference.of_prompt),
    ):
        variance += correlation * np.cumsum(2 * root * _before(cluster, root))

    of_reference = ((of_kind @ covariance) * of_kind).sum(axis=1)
    spent = variance / usual
    errors = sqrt(log(1 / SPENT) / 2) * (np.sqrt(spent) + 1 / np.sqrt(spent))
    bound = errors * np.sqrt(variance + of_reference)
    looks = np.column_stack([fall, bound])[FEWEST - 1 :] * (100 / total[FEWEST - 1 :, None])
    return [
        {"votes": n, "fall": fell, "bound": line}
        for n, (fell, line) in enumerate(looks.tolist(), FEWEST)
    ]


def _precision(reference: Reference) -> Floats:
    """Return what a vote on each kind tells of a fall; of rare errors no more than is known."""
    return np.asarray(1 / np.maximum(reference.variance, STEADIEST))


def _before(cluster: Ints, value: Floats) -> Floats:
    """Sum, for each row, the values of earlier rows of its cluster.

    >>> _before(np.array([7, 8, 7, 7]), np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [0.0, 0.0, 1.0, 4.0]
    """
    order = np.argsort(cluster, kind="stable")
    upto = np.cumsum(value[order]) - value[order]
    first = np.append(True, np.diff(cluster[order]) != 0)
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    before = np.empty(len(order))
    before[order] = upto - upto[start]
    return before


def choose(
    licence: Licence, votes: Source, cases: Source, n: int, rng: np.random.Generator
) -> tuple[tuple[dict[str, Any], ...], tuple[str, ...]]:
    """Choose judged cases that people should vote on next, by what a vote tells per dollar.

    A vote on a verdict of kind k tells ``1 / s_k^2`` of a fall of agreement (the weight that
    `follow` gives it), for the mean ``vote_cost`` of the open cases of its kind. Half of the
    cases are spread over the kinds as the labels of the licence lay, so that none goes
    unwatched; the other half goes to the kinds that are worth most. Within a kind cases are drawn
    at random: only so can their votes be compared with the licence's.

    Returns
    -------
    chosen : tuple of dict
        The ``row`` of the source of cases, from 1; ``prompt``, ``battle`` and both models; the
        ``kind`` of its verdict, from 0, the least sure; what a vote on it is ``worth``, per dollar
        where ``vote_cost`` is known.
    sentences : tuple of str
        Cases that are not the licence's, a sentence a reason.

    Raises
    ------
    DataError
        If the licence has nothing to compare with, no case is open, or ``n`` is less than one.
    """
    if n < 1:
        raise DataError(f"--next {n} selects no cases: give one or more.")
    if licence.reference is None:
        msg = "The certificate has too few labels on pairs of passed models to select by."
        raise DataError(msg)
    reference = licence.reference
    given = licensed_signal(
        licence, read_rows(cases, unparsed=True, by=licence.column, marks=True)
    )
    counts, sentences = counted(licence, columns_of(given), given.n)
    cast = read_rows(votes, unparsed=False)
    open_rows = np.flatnonzero(counts & given.read & one_a_case(given) & ~on_voted(cast, given))
    if not len(open_rows):
        raise DataError(
            f"No case of {given.source!r} is open: each has a vote, no verdict, or does not count."
        )
    by_label = licence.signal in ("marks", "verdicts")
    signal = given.label if by_label else 2 * given.numbers["preference"] - 1
    size = np.nan_to_num(np.abs(signal.astype(np.float64)))[open_rows]
    kind = np.searchsorted(np.array(reference.edges), size, side="right")
    cost = given.numbers.get("vote_cost", np.full(given.n, np.nan))[open_rows]
    bad = cost[~np.isnan(cost) & ~(cost > 0)]
    if len(bad) or (np.isnan(cost).any() and not np.isnan(cost).all()):
        value = f"{bad[0]:g}" if len(bad) else "missing in some rows"
        msg = f"A vote_cost of {given.source!r} is {value}: give dollars above 0 in every row, or "
        raise DataError(msg + "none.")
    worth = _worth(reference, kind, cost)
    wanted = _shares(reference, worth, np.bincount(kind, minlength=len(worth)), n)
    drawn = [
        rng.choice(open_rows[kind == k], int(wanted[k]), replace=False) for k in range(len(worth))
    ]
    return tuple(_nexts(given, drawn, worth)), sentences


def _worth(reference: Reference, kind: Ints, cost: Floats) -> Floats:
    """Return what a vote on each kind tells per dollar; per vote where costs are not known."""
    worth = _precision(reference)
    if np.isnan(cost).all():
        return worth
    n = np.bincount(kind, minlength=len(worth))
    dollars = np.bincount(kind, cost, len(worth)) / np.maximum(n, 1)
    return np.asarray(worth / np.where(n > 0, dollars, np.inf))


def _shares(reference: Reference, worth: Floats, there: Ints, n: int) -> Ints:
    """Describe how many cases of each kind to take: half as the labels lay, then the worthiest."""
    n = min(n, int(there.sum()))
    labels = np.array(reference.votes)
    wanted = np.ceil(SPREAD * n * labels / labels.sum()).astype(np.int64)
    spread: Ints = np.minimum(wanted, there)
    while spread.sum() > n:
        spread[np.argmax(spread)] -= 1
    for k in np.argsort(-worth, kind="stable").tolist():
        spread[k] += min(n - int(spread.sum()), int(there[k] - spread[k]))
    return spread


def _nexts(given: Rows, drawn: list[Ints], worth: Floats) -> Iterator[dict[str, Any]]:
    columns = {role: given.named(role) for role in ("prompt", "battle", *of_sides("model"))}
    cost = given.numbers.get("vote_cost", np.full(given.n, np.nan))
    for k, rows in reversed([*enumerate(drawn)]):
        for row in np.sort(rows).tolist():
            yield {
                "row": int(given.numbers["row"][row]),
                "prompt": columns["prompt"][row],
                "battle": columns["battle"][row],
                **{role: columns[role][row] or "" for role in of_sides("model")},
                "kind": k,
                "worth": float(worth[k]),
                "vote_cost": None if np.isnan(cost[row]) else float(cost[row]),
            }
