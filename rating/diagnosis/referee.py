"""Which way to rate foresees votes best: log-losses on votes that it has not seen."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from rating.elo import online_elo, to_nats
from rating.errors import DataError
from rating.fitting import fit
from rating.likelihood.design import STYLE
from rating.likelihood.thresholds import fit_thresholds
from rating.likelihood.ties import BOTH_BAD, SCORE_A, TIE, A, B
from rating.outcome import OUTCOMES, Ties
from rating.rows import VoteRows
from rating.typing import Floats, Ints
from rating.uncertainty.student import quantile

HoldOut = Literal["voter", "prompt", "time", "vote"]
MODELS = (
    *("base", "half", "davidson", "rao-kupper", "grounded"),
    *("prompt", "category", "style", "elo"),
)
Forecast = Callable[[VoteRows, VoteRows], Floats]
"""From votes seen and votes held out to the probability of each outcome of the latter."""

FOLDS = 5
LEGAL = 1e-9
"""How far the probabilities of a vote may be from 1 together."""
PSEUDO = 0.5
"""Votes that every outcome has beforehand where its share is counted."""
RIDGE = 0.05
"""A prior of 4.5 nats on each strength: a model that a fold has not seen lose is still rated."""
WHOLE = "all"
"""The fold of all votes together."""


@dataclass(frozen=True, slots=True)
class Loss:
    """How well a model foresees the votes of a fold.

    Attributes
    ----------
    fold : int or "all"
    votes : int
    log_loss : float
        Mean of minus the log of the probability of what happened, in nats.
    perplexity : float
        ``exp(log_loss)``: of so many outcomes, all as likely, it would be as unsure.
    """

    model: str
    fold: int | str
    votes: int
    log_loss: float
    perplexity: float


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much the log-loss of one model is above that of another, on the same votes.

    Attributes
    ----------
    difference, lower, upper : float or None
        Nats a vote, by Student's t over the units held out; None for both ends where there are
        fewer than two, or the two models say the same.
    better : str or None
        The model that is better; None where no difference is shown.
    """

    a: str
    b: str
    difference: float
    lower: float | None
    upper: float | None
    better: str | None


@dataclass(frozen=True, slots=True)
class Refereed:
    """Losses of each model, and their differences.

    Attributes
    ----------
    outcomes : tuple of str
        What all models gave probabilities of.
    units : int
        Voters, prompts or votes that were held out, each once.
    rows : tuple of Loss
        Of all folds together first.
    differences : tuple of Difference
        Of every two models, the better one by ``rows`` first.
    """

    hold_out: HoldOut
    outcomes: tuple[str, ...]
    votes: int
    units: int
    level: float
    rows: tuple[Loss, ...]
    differences: tuple[Difference, ...]
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def referee(
    rows: VoteRows,
    forecasts: Mapping[str, Forecast],
    *,
    hold_out: HoldOut,
    folds: int = FOLDS,
    rng: np.random.Generator,
    level: float = 0.95,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Refereed:
    """Let every model foresee votes that it was not fitted to.

    Whole voters or prompts are dealt at random into folds, each of which is held out once. By
    time, the votes are cut into as many parts and one, and each part but the first is foreseen
    from all before it.

    All models give probabilities of the same outcomes: those of the votes. Differences are of
    losses on the same votes, summed by unit held out (by time: by voter where known, else by
    vote); models fitted to the same votes share their luck, and intervals are for these fits.

    Parameters
    ----------
    rows : VoteRows
        By time, in the order of ``rows.moment``.
    forecasts : mapping of str to callable
        See `forecasts_of`; any other that gives probabilities of shape (n, n_outcomes).

    Raises
    ------
    DataError
        If the units are not known or too few, a forecast is not legal (a probability below 0 or
        that is no number, or a sum further from 1 than `LEGAL`), or it gave none to what happened.
    RatingError
        If a model cannot be fitted to the votes of a fold.
    """
    outcomes = outcomes_of(rows)
    rows = rows.apart() if hold_out in ("vote", "time") else rows
    unit, fold = _dealt(rows, hold_out, folds, rng)
    tests = [np.flatnonzero(fold == k) for k in range(folds)]
    loss = {name: np.full(rows.n, np.nan) for name in forecasts}
    done = 0
    for number, test in enumerate(tests):
        seen = fold < number if hold_out == "time" else fold != number
        train, held = rows.taken(seen), rows.taken(test)
        for name, forecast in forecasts.items():
            progress(done, folds * len(forecasts))
            given = legal(name, forecast(train, held), held.n, len(outcomes))
            loss[name][test] = _losses(name, given, held.outcome, number)
            done += 1
    used = fold >= 0
    order = sorted(loss, key=lambda name: float(rows.times[used] @ loss[name][used]))
    by_unit = np.unique(unit[used], return_inverse=True)[1]
    times = rows.times[used]
    return Refereed(
        hold_out,
        tuple(OUTCOMES[code].value for code in outcomes),
        int(times.sum()),
        int(by_unit.max()) + 1,
        level,
        tuple(_losses_of(order, loss, rows.times, tests)),
        tuple(
            _difference((a, b), loss[b][used] - loss[a][used], times, by_unit, level)
            for a, b in combinations(order, 2)
        ),
    )


def outcomes_of(rows: VoteRows) -> tuple[int, ...]:
    """Return the outcomes that the votes tell apart: both sides, a tie, and both bad if seen."""
    return (A, B, TIE, BOTH_BAD) if (rows.outcome == BOTH_BAD).any() else (A, B, TIE)


def legal(name: str, given: Floats, n: int, n_outcomes: int) -> Floats:
    """Give back probabilities that are: none below 0, together 1 within `LEGAL`.

    Raises
    ------
    DataError
        Naming the model, and the first vote of which they are not.
    """
    if given.shape != (n, n_outcomes):
        msg = f"{name} gives {given.shape} probabilities of {n} votes and {n_outcomes} outcomes."
        raise DataError(f"{msg} All models are held against the same outcomes.")
    sums = given.sum(axis=1)
    bad = ~((np.abs(sums - 1) <= LEGAL) & (given >= 0).all(axis=1))
    if bad.any():
        at = int(bad.argmax())
        values = ", ".join(f"{value:.6g}" for value in given[at])
        msg = f"{name} gives {values} to the outcomes of a vote, which are together {sums[at]:.9g}"
        raise DataError(f"{msg}: these are no probabilities of what may happen.")
    return given


def _losses(name: str, given: Floats, outcome: Ints, fold: int) -> Floats:
    probability = given[np.arange(len(outcome)), outcome]
    if (probability <= 0).any():
        what = OUTCOMES[outcome[probability.argmin()]].value
        msg = f"{name} gave no probability to what happened ({what}, fold {fold + 1}): none of "
        raise DataError(
            f"{msg}the votes it was fitted to was one. Leave it out, or use fewer folds."
        )
    return -np.log(probability)


def _dealt(
    rows: VoteRows, hold_out: HoldOut, folds: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return the unit of each row and its fold; -1 where it is only seen."""
    if hold_out not in get_args(HoldOut):
        raise DataError(f"hold_out must be one of {', '.join(get_args(HoldOut))}.")
    if folds < 2:
        raise DataError(f"folds must be 2 or more, not {folds}.")
    if hold_out == "time":
        if rows.moment is None:
            raise DataError("The votes do not say when they were cast: hold out something else.")
        place = (np.cumsum(rows.times) - 1) * (folds + 1) // rows.n_votes
        return rows.groups.get("voter", np.arange(rows.n)), place - 1
    unit = np.arange(rows.n) if hold_out == "vote" else rows.groups.get(hold_out)
    if unit is None:
        raise DataError(f"The votes do not name their {hold_out}: hold out something else.")
    n_units = int(unit.max()) + 1
    if n_units < folds:
        raise DataError(f"{n_units} {hold_out}s are too few for {folds} folds.")
    return unit, (rng.permutation(n_units) % folds)[unit]


def _losses_of(
    order: Sequence[str], loss: Mapping[str, Floats], times: Ints, tests: Sequence[Ints]
) -> Iterator[Loss]:
    parts: list[tuple[int | str, Ints]] = [(WHOLE, np.concatenate(tests)), *enumerate(tests, 1)]
    for name in order:
        for fold, rows in parts:
            mean = float(np.average(loss[name][rows], weights=times[rows]))
            yield Loss(name, fold, int(times[rows].sum()), mean, math.exp(mean))


def _difference(
    names: tuple[str, str], gap: Floats, times: Ints, unit: Ints, level: float
) -> Difference:
    mean = float(np.average(gap, weights=times))
    sums = np.bincount(unit, times * (gap - mean))
    n = len(sums)
    spread = float(np.sqrt(sums @ sums))
    if n < 2 or spread == 0:
        return Difference(*names, mean, None, None, None)
    sizes = np.bincount(unit, times)
    effective = float(sizes.sum() ** 2 / (sizes**2).sum())
    error = math.sqrt(n / (n - 1)) * spread / float(sizes.sum())
    reach = quantile(level, max(1.0, effective - 1)) * error
    better = names[0] if mean > reach else names[1] if mean < -reach else None
    return Difference(*names, mean, mean - reach, mean + reach, better)


def possible(rows: VoteRows, *, style: bool) -> list[str]:
    """Name the models of `forecasts_of` that votes allow."""
    there = {
        "grounded": BOTH_BAD in outcomes_of(rows),
        "prompt": "prompt" in rows.groups,
        "category": "by" in rows.groups,
        "style": style,
    }
    return [name for name in MODELS if there.get(name, True)]


def forecasts_of(
    names: Sequence[str],
    *,
    ridge: float,
    outcomes: Sequence[int],
    rng: np.random.Generator,
    others: Mapping[str, Forecast] | None = None,
) -> dict[str, Forecast]:
    """Return the forecasts by name.

    * ``base``: the shares of the outcomes, whoever meets.
    * ``half``: Bradley-Terry on votes for a side, with a constant share of ties: what half wins
      become where ties have a probability.
    * ``davidson``, ``rao-kupper``, ``grounded``: as `rating.likelihood.ties`; where both bad is an
      outcome of its own, it is a constant share of the ties of the first two.
    * ``prompt``, ``category``: Rao-Kupper with a threshold for every prompt, or every value of the
      column ``by``, as `rating.likelihood.thresholds`; one not seen before has any.
    * ``style``: Davidson with the features of the votes.
    * ``elo``: one pass over the votes, by time where known, else in a random order; with a
      constant share of ties.

    Parameters
    ----------
    ridge : float
        Inverse variance of the prior of strengths, as in `rating.fit`.
    others : mapping of str to callable, optional
        Forecasts that are known as well.

    Raises
    ------
    DataError
        For a name that is none of these, or grounded without both bad.
    """
    known: dict[str, Forecast] = {
        "base": partial(_base, outcomes=outcomes),
        "half": partial(_half, outcomes=outcomes, ridge=ridge),
        "davidson": partial(_fitted, outcomes=outcomes, ties="davidson", ridge=ridge),
        "rao-kupper": partial(_fitted, outcomes=outcomes, ties="rao-kupper", ridge=ridge),
        "grounded": partial(_fitted, outcomes=outcomes, ties="grounded", ridge=ridge),
        "prompt": partial(_by_group, outcomes=outcomes, role="prompt", ridge=ridge),
        "category": partial(_by_group, outcomes=outcomes, role="by", ridge=ridge),
        "style": partial(_fitted, outcomes=outcomes, ties="davidson", ridge=ridge, style=True),
        "elo": partial(_elo, outcomes=outcomes, rng=rng),
        **(others or {}),
    }
    for name in names:
        if name not in known:
            raise DataError(f"There is no model {name!r}: choose of {', '.join(known)}.")
        if name == "grounded" and BOTH_BAD not in outcomes:
            raise DataError("Grounded ties need both bad as an outcome: choose both_bad outcome.")
    return {name: known[name] for name in names}


def _shares(train: VoteRows, codes: Sequence[int]) -> Floats:
    """Return the shares of some outcomes among the votes, each with `PSEUDO` votes more."""
    counts = np.bincount(train.outcome, train.times, len(OUTCOMES))[list(codes)] + PSEUDO
    return np.asarray(counts / counts.sum())


def _base(train: VoteRows, test: VoteRows, *, outcomes: Sequence[int]) -> Floats:
    return np.tile(_shares(train, outcomes), (test.n, 1))


def _half(train: VoteRows, test: VoteRows, *, outcomes: Sequence[int], ridge: float) -> Floats:
    decisive = train.taken(train.outcome < TIE)
    fitted = fit(decisive.comparisons(), ridge=ridge)
    theta = train.placed(fitted.models, fitted.theta)
    return with_constant_ties(sigmoid(theta[test.a] - theta[test.b]), train, outcomes)


def _elo(
    train: VoteRows, test: VoteRows, *, outcomes: Sequence[int], rng: np.random.Generator
) -> Floats:
    votes = train.apart()
    if votes.moment is None:
        votes = votes.taken(rng.permutation(votes.n))
    theta = to_nats(online_elo(votes.a, votes.b, SCORE_A[votes.outcome], len(train.models)))
    return with_constant_ties(sigmoid(theta[test.a] - theta[test.b]), train, outcomes)


def sigmoid(gap: Floats) -> Floats:
    """Return the probability that side A wins, which leads by so many nats."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -gap)))


def with_constant_ties(first: Floats, train: VoteRows, outcomes: Sequence[int]) -> Floats:
    """Part what the shares of ties leave between the sides.

    Parameters
    ----------
    first : ndarray of shape (n,)
        The probability of side A where a side wins.
    """
    share = _shares(train, outcomes)
    decisive = share[A] + share[B]
    others = np.tile(share[TIE:], (len(first), 1))
    return np.column_stack([decisive * first, decisive * (1 - first), others])


def _fitted(
    train: VoteRows,
    test: VoteRows,
    *,
    outcomes: Sequence[int],
    ties: Ties,
    ridge: float,
    style: bool = False,
) -> Floats:
    fitted = fit(train.comparisons(features=style), ties=ties, ridge=ridge)
    theta = train.placed(fitted.models, fitted.theta)
    gap, level = theta[test.a] - theta[test.b], (theta[test.a] + theta[test.b]) / 2
    slopes = [p.value for p in fitted.parameters if p.name.startswith(STYLE)]
    if slopes and test.features is not None:
        gap = gap + test.features @ np.array(slopes)
    tie = fitted.parameters[-1].raw
    given = np.zeros((test.n, len(OUTCOMES)))
    for code in fitted.likelihood.outcomes:
        codes = np.full(test.n, code)
        given[:, code] = np.exp(-fitted.likelihood.loss(codes, gap, tie, level).value)
    if BOTH_BAD in fitted.likelihood.outcomes:
        return given[:, list(outcomes)]
    return _with_share_of_both_bad(given[:, [A, B, TIE]], train, outcomes)


def _by_group(
    train: VoteRows, test: VoteRows, *, outcomes: Sequence[int], role: str, ridge: float
) -> Floats:
    if role not in train.groups:
        what = "prompt" if role == "prompt" else "column that parts them"
        raise DataError(f"The votes have no {what}: leave out the model that goes by it.")
    seen, codes = np.unique(train.groups[role], return_inverse=True)
    fitted = fit_thresholds(train.comparisons(prompt=codes), ridge=ridge)
    theta = train.placed(fitted.models, fitted.theta)
    place = np.full(len(train.names[role]), -1)
    place[seen] = np.arange(len(seen))
    gap = theta[test.a] - theta[test.b]
    given = fitted.probabilities(gap, place[test.groups[role]])
    return _with_share_of_both_bad(given, train, outcomes)


def _with_share_of_both_bad(given: Floats, train: VoteRows, outcomes: Sequence[int]) -> Floats:
    """Part the probability of a tie of either kind, where both bad is an outcome."""
    if BOTH_BAD not in outcomes:
        return given
    return np.column_stack([given[:, :TIE], given[:, [TIE]] * _shares(train, (TIE, BOTH_BAD))])
