"""The tasks, as done here."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

import rating
from benchmarks.ratings.tasks import PAIR, STYLE_TASKS, VOTER_TASKS, Points, Task
from benchmarks.ratings.work import STYLES
from rating import Comparisons, Fit
from rating.tables.coding import ROW, fetch, numbered
from rating.tables.columns import Reading
from rating.tables.counts import read_votes
from rating.tables.sources import opened
from rating.variants import MEAN_POINTS, POINTS_PER_NAT, online_elo


def counted(source: Any, task: str) -> Comparisons:
    """Read what a task reads."""
    style = STYLES if task in STYLE_TASKS else ()
    return read_votes(source, Reading(voters=task in VOTER_TASKS, style=style)).data


def points(fit: Fit) -> Points:
    """Give ratings by model."""
    values = MEAN_POINTS + POINTS_PER_NAT * fit.theta
    return dict(zip(fit.models, values.tolist(), strict=True))


def fit(source: Any) -> Points:
    """Fit Bradley-Terry."""
    return points(rating.fit(counted(source, "fit")))


def sandwich(task: str, source: Any) -> Points:
    """Fit, and find sandwich intervals."""
    data = counted(source, task)
    fit = rating.fit(data)
    rating.sandwich_covariance(fit, data)
    return points(fit)


def cr3(source: Any) -> Points:
    """Fit, and judge every rating by the voters behind it."""
    return _by_voter(counted(source, "cr3"))


def _by_voter(data: Comparisons) -> Points:
    fit = rating.fit(data)
    rating.infer(fit, data, ("voter",)).ratings()
    return points(fit)


def rounds(task: str, n: int, source: Any) -> Points:
    """Fit, and refit to votes, or voters, drawn again."""
    return _drawn(task, n, counted(source, task))


def _drawn(task: str, n: int, data: Comparisons) -> Points:
    fit = rating.fit(data)
    cluster: Literal["voter"] | None = "voter" if task in VOTER_TASKS else None
    drawn = rating.bootstrap(fit, data, rounds=n, cluster=cluster, rng=np.random.default_rng(0))
    drawn.interval()
    return points(fit)


def elo(source: Any) -> Points:
    """Rate in the order of the votes."""
    with opened(source, lambda there: PAIR) as rows:
        table = fetch(numbered(rows), {name: name for name in PAIR}, {"row": ROW})
    order = np.argsort(table.numbers["row"])
    a, b, winner = (table.texts[name] for name in PAIR)
    names = sorted({*a.names, *b.names})
    place = {name: i for i, name in enumerate(names)}
    left, right = (np.array([place[n] for n in side.names])[side.codes[order]] for side in (a, b))
    scores = np.array([rating.Outcome(label).score_a for label in winner.names])
    score = scores[winner.codes[order]]
    return dict(zip(names, online_elo(left, right, score, len(names)).tolist(), strict=True))


def _timed(task: Any) -> Task:
    return lambda source: partial(task, source)


def _from_counts(ties: rating.Ties) -> Task:
    def prepare(source: Any) -> partial[Points]:
        data = counted(source, ties)
        return partial(_without_points, data, ties)

    return prepare


def _from_codes(task: str, work: Callable[[Comparisons], Points]) -> Task:
    return lambda source: partial(work, counted(source, task))


def _without_points(data: Comparisons, ties: rating.Ties) -> Points:
    rating.fit(data, ties=ties)
    return {}


TASKS: dict[str, Task] = {
    "fit": _timed(fit),
    "sandwich": _timed(partial(sandwich, "sandwich")),
    "rounds-100": _timed(partial(rounds, "rounds-100", 100)),
    "rounds-1000": _timed(partial(rounds, "rounds-1000", 1000)),
    "voters-100": _timed(partial(rounds, "voters-100", 100)),
    "voters-1000": _timed(partial(rounds, "voters-1000", 1000)),
    "cr3": _timed(cr3),
    "rounds-codes": _from_codes("rounds-codes", partial(_drawn, "rounds-codes", 1000)),
    "voters-codes": _from_codes("voters-codes", partial(_drawn, "voters-codes", 1000)),
    "cr3-codes": _from_codes("cr3-codes", _by_voter),
    "style-codes": _from_codes("style-codes", _by_voter),
    "style": _timed(partial(sandwich, "style")),
    "davidson": _from_counts("davidson"),
    "rao-kupper": _from_counts("rao-kupper"),
    "elo": _timed(elo),
    "fresh": _timed(partial(sandwich, "fresh")),
}
