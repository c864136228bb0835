"""Quality against price and seconds: which models another beats on both, and what to buy."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from rating.board import report_of
from rating.comparisons import Votes
from rating.errors import DataError
from rating.fitting import fit
from rating.options import RateOptions
from rating.report import Report
from rating.sentences import Sentence
from rating.typing import Bools, Floats
from rating.uncertainty.contrasts import Inference
from rating.uncertainty.spread import named, on_quasi_errors, spread
from rating.uncertainty.student import quantiles
from rating.value.figures import (
    FEWEST_ANSWERS,
    MEASURES,
    ROUNDS,
    Draws,
    Figures,
    Measure,
    Rounds,
    paired_means,
)

NEAR = 20.0
"""Points below the best within which a model is as good for most purposes."""
SURE = 0.95
ALIKE = 1e-9
"""Logarithms of two costs this close are one price."""
PER = {"cost": 1000.0, "seconds": 1.0}
"""Answers that a figure is given for."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a model takes, and how that stands against the others.

    Attributes
    ----------
    value, lower, upper : float
        US dollars per 1,000 answers, or seconds of one, and the interval.
    answers : int
        Compared answers behind it.
    dominated : float
        Probability that some model is at least as good and takes at most as much, and is better
        in one of the two.
    by : str or None
        The model that most often is, of equals the best; None where none ever is.
    on_frontier : bool
        Whether no model dominates it by the estimates themselves.
    """

    value: float
    lower: float
    upper: float
    answers: int
    dominated: float
    by: str | None
    on_frontier: bool


@dataclass(frozen=True, slots=True)
class ModelValue:
    """One model's line, best rated first.

    Attributes
    ----------
    near_best : float
        Probability that it lies within `NEAR` points of the best.
    cost, seconds : Taken or None
        None where it is not known: never zero.
    """

    model: str
    rating: float
    lower: float
    upper: float
    votes: int
    near_best: float
    cost: Taken | None
    seconds: Taken | None


@dataclass(frozen=True, slots=True)
class Value:
    """Quality against what it takes.

    Attributes
    ----------
    report : Report
        The ratings, as `rating.rate` gives them.
    models : tuple of ModelValue
        Best first.
    cheapest, fastest : str or None
        What takes least of the models that are within `NEAR` points of the best with a
        probability of `SURE`; None where none is.
    left_out : mapping of str to mapping of str to Sentence
        By measure and model, why it has no figure.
    warnings : tuple of str
    draws : Draws
    """

    report: Report
    models: tuple[ModelValue, ...]
    cheapest: str | None
    fastest: str | None
    left_out: Mapping[Measure, Mapping[str, Sentence]]
    warnings: tuple[str, ...]
    draws: Draws

    def in_words(self, names: Mapping[str, str] = MappingProxyType({})) -> tuple[Sentence, ...]:
        """Say what to take, and who has no cost or time.

        Parameters
        ----------
        names : mapping of str to str
            What to call models; the others by what they are called here.
        """
        left_out = {
            name: {names.get(model, model): why for model, why in each.items()}
            for name, each in self.left_out.items()
        }
        return (*_choices(self, names), *_on_left_out(left_out, len(self.models)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        whole = self.report.to_dict()
        drawn = {"near": NEAR, "sure": SURE, "draws": len(self.draws.strengths)}
        return {
            "method": whole["method"] | drawn,
            "votes": whole["votes"],
            "models": [asdict(row) for row in self.models],
            "cheapest": self.cheapest,
            "fastest": self.fastest,
            "left_out": {name: dict(why) for name, why in self.left_out.items()},
            "warnings": list(self.warnings),
        }


def _choices(board: Value, names: Mapping[str, str]) -> Iterator[Sentence]:
    facts: dict[str, Any] = {
        "near": int(NEAR),
        "sure": f"{SURE:.0%}".replace("%", "\N{NO-BREAK SPACE}%"),
    }
    if board.cheapest is not None:
        yield Sentence(
            "Of the models that lie within %(near)s points of the best with a probability of "
            "%(sure)s, %(model)s costs least.",
            model=names.get(board.cheapest, board.cheapest),
            **facts,
        )
    elif any(row.cost for row in board.models):
        yield Sentence(
            "No model with a known price lies within %(near)s points of the best with a "
            "probability of %(sure)s: which of the good ones costs least, these votes leave "
            "open.",
            **facts,
        )
    if board.fastest is not None:
        yield Sentence(
            "Of the models that lie within %(near)s points of the best with a probability of "
            "%(sure)s, %(model)s takes least time.",
            model=names.get(board.fastest, board.fastest),
            **facts,
        )


def _on_left_out(
    left_out: Mapping[Measure, Mapping[str, Sentence]], models: int
) -> Iterator[Sentence]:
    """Name the models without a figure, by why they have none."""
    for name, each in left_out.items():
        if len(each) == models:
            yield ABSENT[name]
            continue
        for why in dict.fromkeys(each.values()):
            who = named([model for model, reason in each.items() if reason == why])
            if name == "cost":
                yield Sentence("Left out of the costs: %(models)s (%(why)s).", models=who, why=why)
            else:
                yield Sentence("Left out of the times: %(models)s (%(why)s).", models=who, why=why)


ABSENT: Mapping[Measure, Sentence] = {
    "cost": Sentence("No two models have prices to compare."),
    "seconds": Sentence("No two models have times to compare."),
}


def value(votes: Votes, figures: Figures, options: RateOptions | None = None) -> Value:
    """Set ratings against costs and seconds, with what is known of both jointly.

    Strengths are drawn from their joint covariance, costs by a bootstrap of voters
    (`rating.value.figures`), the two apart. A model is dominated in a draw if another is at least
    as good and takes at most as much, and is better in one: equal prices are no advantage.

    Parameters
    ----------
    votes : Votes
    figures : Figures
        Of the same votes.

    Raises
    ------
    DataError, NotIdentifiedError, ConvergenceError
        As `rating.rate`; and if no model has a cost or a time.
    """
    options = (options or RateOptions()).resolved(votes.data)
    _require_plain(options)
    fitted = fit(votes.data)
    off = spread(fitted, votes.data, options, np.random.default_rng(options.seed))
    report = report_of(fitted, votes, off, options, np.random.default_rng([options.seed, 1]))
    assert off.inference is not None
    rng = np.random.default_rng([options.seed, 3])
    strengths = joint_draws(off.inference, options.level, ROUNDS, rng)
    rounds = Rounds.of(figures, ROUNDS, rng)
    figures = _of_rated(figures, fitted.models)
    taken = {name: paired_means(figures, name, rounds) for name in MEASURES}
    if all(np.isnan(one.value).all() for one in taken.values()):
        raise DataError(
            Sentence(
                "No two models have prices or times to compare: that takes %(n)s votes on each, "
                "with columns cost_a and cost_b (US dollars of each answer), or seconds_a and "
                "seconds_b.",
                n=FEWEST_ANSWERS,
            )
        )
    draws = Draws(fitted.models, fitted.theta, strengths, taken, rounds)
    return _value(report, draws, options)


def _require_plain(options: RateOptions) -> None:
    """Refuse what value is not estimated with."""
    plain = RateOptions()
    for name in ("ties", "interval", "claims", "ridge", "order_effect", "style", "reference"):
        if getattr(options, name) != getattr(plain, name):
            raise DataError(f"Value is estimated without {name}: leave it out.")


def _of_rated(figures: Figures, models: tuple[str, ...]) -> Figures:
    """Give the figures with models numbered as those that are rated."""
    place = np.array([models.index(name) if name in models else -1 for name in figures.models])
    pairs = place[figures.pairs]
    assert (pairs >= 0).all(), "a battle of a model that is not rated"
    return replace(figures, models=models, pairs=pairs)


def joint_draws(inference: Inference, level: float, n: int, rng: np.random.Generator) -> Floats:
    """Draw strengths around their estimate, shape (n, n_models): a multivariate t.

    Its covariance is that by voters and what prompts add, scaled so that each strength has the
    interval of `Inference.ratings`.
    """
    k = inference.fit.n_models
    each = inference.ratings()
    centre = np.eye(k) - inference.founded / inference.founded.sum()
    matrix = inference.matrix[:k, :k]
    df = np.inf
    if inference.kinds:
        matrix = inference.kinds[0].matrix[:k, :k]
        df = max(inference.kinds[0].activity.effective - 1, 1.0)
    if inference.between is not None:
        matrix = matrix + _positive((inference.kinds[1].matrix - inference.between)[:k, :k])
    values, vectors = np.linalg.eigh(centre @ matrix @ centre.T)
    normal = rng.standard_normal((n, k)) @ (vectors * np.sqrt(values.clip(min=0))).T
    wide = each.half_width(level) / quantiles(level, np.full(k, df))
    plain = np.sqrt((centre @ matrix * centre).sum(axis=1))
    scale = np.where(np.isfinite(wide) & (plain > 0), wide / np.where(plain > 0, plain, 1), 1.0)
    if np.isfinite(df):
        normal = normal / np.sqrt(rng.chisquare(df, (n, 1)) / df)
    return np.asarray(inference.fit.theta + normal * scale)


def _positive(matrix: Floats) -> Floats:
    """Drop what a difference of covariances has below zero."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * values.clip(min=0)) @ vectors.T)


def _value(report: Report, draws: Draws, options: RateOptions) -> Value:
    per_nat = options.scale / np.log(10)
    near = (draws.strengths >= draws.strengths.max(axis=1, keepdims=True) - NEAR / per_nat).mean(
        axis=0
    )
    taken = {name: _taken(draws, name, options.level) for name in MEASURES}
    place = {model: i for i, model in enumerate(draws.models)}
    models = tuple(
        ModelValue(
            model=row.model,
            rating=row.rating,
            lower=row.lower,
            upper=row.upper,
            votes=row.votes,
            near_best=float(near[place[row.model]]),
            cost=taken["cost"].get(row.model),
            seconds=taken["seconds"].get(row.model),
        )
        for row in report.ratings
    )
    return Value(
        report=report,
        models=models,
        cheapest=least(models, "cost"),
        fastest=least(models, "seconds"),
        left_out={name: draws.taken[name].left_out for name in MEASURES},
        warnings=tuple(_warnings(report, draws)),
        draws=draws,
    )


def least(models: tuple[ModelValue, ...], name: Measure) -> str | None:
    """Name what takes least of the models that are near the best with a probability of `SURE`.

    Models without a figure are passed over.
    """
    near = [
        (one.value, row.model)
        for row in models
        if (one := getattr(row, name)) is not None and row.near_best >= SURE
    ]
    return min(near)[1] if near else None


def _warnings(report: Report, draws: Draws) -> Iterator[str]:
    unsaid = on_quasi_errors(report.quasi_se_error or 0.0)  # of a column that is not shown here
    yield from (warning for warning in report.warnings if warning != unsaid)
    yield from draws.rounds.warnings


def _taken(draws: Draws, name: Measure, level: float) -> dict[str, Taken]:
    drawn, per = draws.taken[name], PER[name]
    low, high = drawn.interval(level)
    best_first = np.argsort(-draws.theta, kind="stable")
    core = best_first[~np.isnan(drawn.value[best_first])]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs, own = np.log(drawn.rounds[:, core]), np.log(drawn.value[core])
    beaten = dominated(draws.strengths[:, core], logs)
    now = dominates(draws.theta[core][None], own[None])[0].any(axis=0)
    return {
        draws.models[i]: Taken(
            value=float(per * drawn.value[i]),
            lower=float(per * low[i]),
            upper=float(per * high[i]),
            answers=int(drawn.answers[i]),
            dominated=float(beaten.share[at]),
            by=None if beaten.by[at] < 0 else draws.models[core[beaten.by[at]]],
            on_frontier=not now[at],
        )
        for at, i in enumerate(core)
    }


def dominates(quality: Floats, logs: Floats) -> Bools:
    """Say in each draw whether the row is at least as good and as cheap, and better in one.

    Parameters
    ----------
    quality, logs : ndarray of shape (n_draws, n_models)
        What is wanted high, and the logarithm of what is wanted low.

    Returns
    -------
    ndarray of shape (n_draws, n_models, n_models), bool

    Examples
    --------
    Equal prices, unequal quality; then equal in both.

    >>> dominates(np.array([[2.0, 1.0]]), np.zeros((1, 2)))[0].tolist()
    [[False, True], [False, False]]
    >>> dominates(np.ones((1, 2)), np.zeros((1, 2))).any()
    np.False_
    """
    gain = quality[:, :, None] - quality[:, None, :]
    saved = logs[:, None, :] - logs[:, :, None]
    as_good = (gain >= 0) & (saved >= -ALIKE)
    return np.asarray(as_good & ((gain > 0) | (saved > ALIKE)))


@dataclass(frozen=True, slots=True, eq=False)
class Dominated:
    """How often each model is dominated by some other, and by which most often (-1: by none).

    Of several that do so as often, the first.
    """

    share: Floats
    by: "np.ndarray[tuple[int], np.dtype[np.int64]]"


AT_ONCE = 1 << 22
"""Draws times pairs of models in memory at a time."""


def dominated(quality: Floats, logs: Floats) -> Dominated:
    """Count the draws in which a model is dominated: see `dominates`."""
    n, k = quality.shape
    times, by = np.zeros(k), np.zeros((k, k))
    step = max(1, AT_ONCE // max(k * k, 1))
    for start in range(0, n, step):
        each = dominates(quality[start : start + step], logs[start : start + step])
        times += each.any(axis=1).sum(axis=0)
        by += each.sum(axis=0)
    most = by.argmax(axis=0) if k else np.zeros(0, dtype=np.int64)
    return Dominated(times / n, np.where(by.max(axis=0, initial=0) > 0, most, -1))
