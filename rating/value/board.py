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
from rating.rows import VoteRows
from rating.sentences import Sentence
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.contrasts import Inference
from rating.uncertainty.ranks import joint_rank_ranges, rank_ranges
from rating.uncertainty.spread import named, on_quasi_errors, spread
from rating.uncertainty.student import quantiles
from rating.value.figures import (
    FEWEST_ANSWERS,
    FEWEST_UNITS,
    MEASURES,
    Compared,
    Measure,
    effective_number,
    paired_means,
    positive_part,
)

NEAR = 20.0
"""Points below the best within which a model is as good for most purposes."""
ROUNDS = 2000
SURE = 0.95
ALIKE = 1e-9
"""Logarithms of two costs this close are one price."""
LEAST_VARIANCE = 1e-24
"""Of a logarithm, so that prices that do not vary have an error: far below `ALIKE`."""
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
    dominated : bool
        Whether one model is claimed to be better rated and to take less, or the same.
    by : str or None
        That model, of several the best rated.
    on_frontier : bool
        Whether no model dominates it by the estimates themselves.
    """

    value: float
    lower: float
    upper: float
    answers: int
    dominated: bool
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
    strengths : ndarray of shape (ROUNDS, n_models)
        Nats, drawn from their joint covariance, in the order of ``models``.
    """

    report: Report
    models: tuple[ModelValue, ...]
    cheapest: str | None
    fastest: str | None
    left_out: Mapping[Measure, Mapping[str, Sentence]]
    warnings: tuple[str, ...]
    strengths: Floats

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
        drawn = {"near": NEAR, "sure": SURE, "draws": len(self.strengths)}
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


def value(votes: Votes, figures: VoteRows, options: RateOptions | None = None) -> Value:
    """Set ratings against costs and seconds, with what is known of both jointly.

    Costs are compared within battles (`rating.value.figures.paired_means`). A model is dominated
    by another that the board claims to be better, all claims on pairs together at `SURE`, and
    whose cost is claimed to be lower, by a max-t over all pairs of logarithms of costs at `SURE`.
    Of equal prices none is lower, and being better is enough.

    Parameters
    ----------
    votes : Votes
    figures : VoteRows
        The same votes, with costs and seconds of both answers.

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
    figures = _of_rated(figures, fitted.models)
    taken = {name: paired_means(figures, name) for name in MEASURES}
    if all(np.isnan(one.logs).all() for one in taken.values()):
        raise DataError(
            Sentence(
                "No two models have prices or times to compare: that takes %(n)s votes on each, "
                "with columns cost_a and cost_b (US dollars of each answer), or seconds_a and "
                "seconds_b.",
                n=FEWEST_ANSWERS,
            )
        )
    better = np.zeros((len(fitted.models), len(fitted.models)), dtype=bool)
    if any(row.rank_low is not None for row in report.ratings):
        same = np.random.default_rng([options.seed, 1])
        better = joint_rank_ranges(off.inference, rng=same, level=SURE).better
    lines = {
        name: _lines(fitted.models, fitted.theta, better, one, PER[name], options.level, rng)
        for name, one in taken.items()
    }
    return _value(report, fitted.models, strengths, taken, lines, figures, options)


def _require_plain(options: RateOptions) -> None:
    """Refuse what value is not estimated with."""
    plain = RateOptions()
    for name in ("ties", "interval", "claims", "ridge", "order_effect", "style", "reference"):
        if getattr(options, name) != getattr(plain, name):
            raise DataError(f"Value is estimated without {name}: leave it out.")


def _of_rated(figures: VoteRows, models: tuple[str, ...]) -> VoteRows:
    """Give the figures with models numbered as those that are rated."""
    place = np.array([models.index(name) if name in models else -1 for name in figures.models])
    a, b = place[figures.a], place[figures.b]
    assert min(a.min(), b.min()) >= 0, "a battle of a model that is not rated"
    return replace(figures, models=models, a=a, b=b)


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
        matrix = matrix + positive_part((inference.kinds[1].matrix - inference.between)[:k, :k])
    values, vectors = np.linalg.eigh(centre @ matrix @ centre.T)
    normal = rng.standard_normal((n, k)) @ (vectors * np.sqrt(values.clip(min=0))).T
    wide = each.half_width(level) / quantiles(level, np.full(k, df))
    plain = np.sqrt((centre @ matrix * centre).sum(axis=1))
    scale = np.where(np.isfinite(wide) & (plain > 0), wide / np.where(plain > 0, plain, 1), 1.0)
    if np.isfinite(df):
        normal = normal / np.sqrt(rng.chisquare(df, (n, 1)) / df)
    return np.asarray(inference.fit.theta + normal * scale)


def _value(
    report: Report,
    names: tuple[str, ...],
    strengths: Floats,
    taken: Mapping[Measure, Compared],
    lines: Mapping[Measure, Mapping[str, Taken]],
    figures: VoteRows,
    options: RateOptions,
) -> Value:
    near = NEAR / (options.scale / np.log(10))
    near_best = (strengths >= strengths.max(axis=1, keepdims=True) - near).mean(axis=0)
    place = [names.index(row.model) for row in report.ratings]
    models = tuple(
        ModelValue(
            model=row.model,
            rating=row.rating,
            lower=row.lower,
            upper=row.upper,
            votes=row.votes,
            near_best=float(near_best[at]),
            cost=lines["cost"].get(row.model),
            seconds=lines["seconds"].get(row.model),
        )
        for row, at in zip(report.ratings, place, strict=True)
    )
    return Value(
        report=report,
        models=models,
        cheapest=least(models, "cost"),
        fastest=least(models, "seconds"),
        left_out={name: one.left_out for name, one in taken.items()},
        warnings=tuple(_warnings(report, figures)),
        strengths=strengths[:, place],
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


def _warnings(report: Report, figures: VoteRows) -> Iterator[str]:
    unsaid = on_quasi_errors(report.quasi_se_error or 0.0)  # of a column that is not shown here
    yield from (warning for warning in report.warnings if warning != unsaid)
    if "voter" not in figures.groups:
        yield Sentence(
            "Voters are not known: costs are compared as if each battle were somebody else's."
        )
    elif effective_number(figures.voter) < FEWEST_UNITS:
        yield Sentence("One voter cast nearly all votes: costs are those of that voter's prompts.")


def _lines(
    models: tuple[str, ...],
    theta: Floats,
    better: Bools,
    taken: Compared,
    per: float,
    level: float,
    rng: np.random.Generator,
) -> dict[str, Taken]:
    """Return what each model takes that has a figure."""
    low, high = taken.interval(level)
    best_first = np.argsort(-theta, kind="stable")
    core = best_first[~np.isnan(taken.logs[best_first])]
    logs = taken.logs[core]
    rivals = better[np.ix_(core, core)] & _no_dearer(logs, taken, core, rng)
    now = np.asarray(dominates(theta[core], logs).any(axis=0))
    rows = {}
    for at, i in enumerate(core.tolist()):
        by = np.flatnonzero(rivals[:, at])
        rows[models[i]] = Taken(
            value=float(per * np.exp(taken.logs[i])),
            lower=float(per * low[i]),
            upper=float(per * high[i]),
            answers=int(taken.answers[i]),
            dominated=bool(by.size),
            by=models[core[by[0]]] if by.size else None,
            on_frontier=not now[at],
        )
    return rows


def _no_dearer(logs: Floats, taken: Compared, core: Ints, rng: np.random.Generator) -> Bools:
    """Claim which models, by row, take less than which by column, all together, or the same."""
    if not len(core):
        return np.zeros((0, 0), dtype=bool)
    covariance = taken.covariance[np.ix_(core, core)] + LEAST_VARIANCE * np.eye(len(core))
    df = float(taken.df[core].min())
    gap = logs[None, :] - logs[:, None]
    cheaper = rank_ranges(-logs, covariance, rng=rng, df=df, level=SURE).better
    return np.asarray(np.where(np.abs(gap) < ALIKE, True, cheaper))


def dominates(quality: Floats, logs: Floats) -> Bools:
    """Say whether the row is at least as good and as cheap, and better in one.

    Parameters
    ----------
    quality, logs : ndarray of shape (n_models,)
        What is wanted high, and the logarithm of what is wanted low.

    Returns
    -------
    ndarray of shape (n_models, n_models), bool

    Examples
    --------
    Equal prices, unequal quality; then equal in both.

    >>> dominates(np.array([2.0, 1.0]), np.zeros(2)).tolist()
    [[False, True], [False, False]]
    >>> dominates(np.ones(2), np.zeros(2)).any()
    np.False_
    """
    gain = quality[:, None] - quality[None, :]
    saved = logs[None, :] - logs[:, None]
    as_good = (gain >= 0) & (saved >= -ALIKE)
    return np.asarray(as_good & ((gain > 0) | (saved > ALIKE)))
