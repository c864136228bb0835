"""Quality versus cost and time: what answers cost by model, and which models are dominated.

`paired_means` compares costs or seconds within battles, with variances by voter and prompt;
`value` sets ratings against them and names the models that another beats on both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import scipy

from rating.board import report_of
from rating.comparisons import Votes
from rating.contrasts import Inference, named, on_quasi_errors, spread
from rating.errors import DataError
from rating.fitting import fit
from rating.leave_out import effective_count, influence_factor, positive_part, quantiles, two_way
from rating.options import RateOptions
from rating.ranks import joint_rank_ranges, rank_ranges
from rating.report import Report
from rating.rows import VoteRows
from rating.sentences import Sentence
from rating.typing import Bools, Floats, Ints

# Costs and seconds of answers


FEWEST_ANSWERS = 10
"""Compared answers from which a model has a cost."""
FEWEST_UNITS = 2.0
"""Effective voters, or prompts, from which these are clusters."""

Measure = Literal["cost", "seconds"]
"""US dollars, and seconds, of one answer."""

MEASURES: tuple[Measure, ...] = ("cost", "seconds")


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """What an answer takes by each model, and how sure that is.

    Attributes
    ----------
    logs : ndarray of shape (n_models,)
        Logarithms; NaN for models without one.
    covariance : ndarray of shape (n_models, n_models)
        Of these, by voters and what prompts add.
    df : ndarray of shape (n_models,)
    left_out : mapping of str to Sentence
        Why a model has none.
    answers : ndarray of shape (n_models,), int64
        Answers that it rests on.
    """

    logs: Floats
    covariance: Floats
    df: Floats
    left_out: Mapping[str, Sentence]
    answers: Ints

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals, by Student's t of logarithms; NaN without a value."""
        half = quantiles(level, self.df) * np.sqrt(np.diag(self.covariance))
        return np.exp(self.logs - half), np.exp(self.logs + half)


NOT_KNOWN: Mapping[Measure, Sentence] = {
    "cost": Sentence("no price is known"),
    "seconds": Sentence("no time is known"),
}
NOTHING: Mapping[Measure, Sentence] = {
    "cost": Sentence("answers that cost nothing have no place on a scale of ratios"),
    "seconds": Sentence("answers that took no time have no place on a scale of ratios"),
}


def paired_means(votes: VoteRows, name: Measure) -> _Compared:
    """Estimate what an answer takes by each model, all on the same prompts.

    Within battle b, ``log x_ba - log x_bb = c_a - c_b + e_b``: what a prompt asks for makes both
    answers long or short, and drops out. Least squares over all battles, as Bradley-Terry takes
    wins; then ``exp(c_m) mean(x / exp(c))`` with the mean over all compared answers (Duan's
    smearing estimate) puts ratios on the scale of the arithmetic mean. That takes costs to
    scatter alike, in their logarithm, for every model; ratios do not need it.

    With ``e_b`` the residual and L the Laplacian of who met whom, battle b moves the c's by
    ``h_b = L^+ (X_b e_b)``, and their level by ``(z_a + z_b) / T - 1 / n - share'h_b`` with
    ``z = x / exp(c)``, T their sum and ``share`` each model's part of it. The covariance is that
    of these summed by voter, and what sums by prompt have beyond those by voter and prompt; no
    variance is less than by prompt, or by voter and prompt.

    Parameters
    ----------
    votes : VoteRows
        With the columns ``cost_a`` and ``cost_b``, or ``seconds_a`` and ``seconds_b``.
    name : {"cost", "seconds"}

    Returns
    -------
    Compared
        Of one answer. Models that no battle joins to most of the others have no value.

    References
    ----------
    .. [1] N. Duan, "Smearing estimate: a nonparametric retransformation method", JASA 78(383),
       1983, pp. 605-610.
    .. [2] A. C. Cameron, J. B. Gelbach and D. L. Miller, "Robust inference with multiway
       clustering", Journal of Business and Economic Statistics 29(2), 2011, pp. 238-249.
    """
    k, pairs = len(votes.models), votes.pairs
    left_out: dict[str, Sentence] = {}
    values = votes.of_answers(name)
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        positive = values > 0
    free = _models(pairs[known & ~positive], k)
    both = positive.all(axis=1) & ~free[pairs].any(axis=1)
    compared = np.bincount(pairs[both].ravel(), minlength=k)
    core = _core(pairs[both], compared >= FEWEST_ANSWERS)
    rows = np.flatnonzero(both & core[pairs].all(axis=1))
    has_any = _models(pairs[known], k)
    for i in np.flatnonzero(~core):
        left_out[votes.models[i]] = (
            NOT_KNOWN[name]
            if not has_any[i]
            else NOTHING[name]
            if free[i]
            else Sentence("too few battles compare it with the others")
        )
    logs, covariance, df = np.full(k, np.nan), np.full((k, k), np.nan), np.full(k, np.nan)
    if core.any():
        place = np.cumsum(core) - 1
        at = np.ix_(core, core)
        logs[core], covariance[at], df[core] = _least_squares(
            place[pairs[rows]], values[rows], *_units(votes, rows)
        )
    return _Compared(logs, covariance, df, left_out, np.where(core, compared, 0))


def _units(votes: VoteRows, rows: Ints) -> tuple[Ints, Ints]:
    """Give voters and prompts of some battles; where they are not known each battle is one."""
    alone = np.arange(len(rows))
    voter, prompt = (
        votes.groups[role][rows] if role in votes.groups else alone for role in ("voter", "prompt")
    )
    if _effective(voter) < FEWEST_UNITS:
        voter = alone
    return voter, prompt if _effective(prompt) >= FEWEST_UNITS else alone


def _effective(unit: Ints) -> float:
    return effective_count(np.unique(unit, return_counts=True)[1])


def _models(entries: Ints, k: int) -> Bools:
    there = np.zeros(k, dtype=bool)
    there[entries] = True
    return there


def _core(pairs: Ints, enough: Bools) -> Bools:
    """Mark the largest group of models that battles join, all with enough answers."""
    k = len(enough)
    inside = pairs[enough[pairs].all(axis=1)]
    graph = scipy.sparse.coo_array((np.ones(len(inside)), inside.T), shape=(k, k))
    _, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
    size = np.bincount(label[enough], minlength=1)
    core = enough & (label == size.argmax())
    return np.asarray(core if core.sum() > 1 else np.zeros(k, dtype=bool))


def _least_squares(
    pairs: Ints, values: Floats, voter: Ints, prompt: Ints
) -> tuple[Floats, Floats, Floats]:
    """Return logarithms of the means, their covariance and degrees of freedom."""
    (a, b), n, k = pairs.T, len(pairs), int(pairs.max()) + 1
    gap = np.log(values[:, 0]) - np.log(values[:, 1])
    met = np.bincount(a * k + b, minlength=k * k).reshape(k, k)
    laplacian = np.diag((met + met.T).sum(axis=1)) - (met + met.T)
    inverse = np.linalg.pinv(laplacian.astype(np.float64), hermitian=True)
    ratio = inverse @ (np.bincount(a, gap, k) - np.bincount(b, gap, k))
    residual = gap - (ratio[a] - ratio[b])
    z = values * np.exp(-ratio[pairs])
    total = float(z.sum())
    share = np.bincount(pairs.ravel(), z.ravel(), k) / total
    level = z.sum(axis=1) / total - 1 / n
    # A battle moves the logarithms by moves @ (its residual at a, less at b; its level).
    moves = np.column_stack([inverse - share @ inverse, np.ones(k)])
    table = np.r_[residual, -residual, level], np.r_[a, b, np.full(n, k)], np.tile(np.arange(n), 3)

    def covariance(unit: Ints) -> Floats:
        place = np.unique(unit, return_inverse=True)[1]
        entries, columns, battles = table
        shape = (int(place.max()) + 1, k + 1)
        sums = scipy.sparse.coo_array((entries, (place[battles], columns)), shape=shape).tocsr()
        squares = (sums.T @ sums).toarray()
        return np.asarray(influence_factor(shape[0]) * (moves @ squares @ moves.T))

    by_voter, by_prompt = covariance(voter), covariance(prompt)
    cells = covariance(np.unique(voter, return_inverse=True)[1] * (prompt.max() + 1) + prompt)
    more = positive_part(by_prompt - cells)
    df_voter, df_prompt = (np.full(k, max(_effective(unit) - 1, 1.0)) for unit in (voter, prompt))
    variance, df = two_way((np.diag(by_voter), df_voter), (np.diag(more), df_prompt), np.zeros(k))
    least = np.maximum(np.diag(by_prompt), np.diag(cells))
    wider = np.sqrt(np.maximum(least, variance) / np.where(variance > 0, variance, 1.0))
    whole = wider[:, None] * (by_voter + more) * wider
    return ratio + np.log(total / (2 * n)), whole, df


# Quality versus cost


NEAR = 20.0
"""Points below the best within which a model is as good for most purposes."""
ROUNDS = 2000
SURE = 0.95
ALIKE = 1e-9
"""Logarithms of two costs this close are one price."""
LEAST_VARIANCE = 1e-24
"""Of a logarithm, so that prices that do not vary have an error: far below `ALIKE`."""
ROUNDING = 1e-12
"""Share of a variance that is added where prices move together, and differences have none."""
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

    @property
    def varies(self) -> bool:
        """Whether there is an interval: of a price that never varies none can be estimated."""
        return self.upper - self.lower > ALIKE * self.value


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
        """Describe what to take, and who has no cost or time.

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
    facts: dict[str, Any] = {"near": int(NEAR), "sure": f"{SURE:.0%}"}
    alone = {name: len(_near(board.models, name)) == 1 for name in MEASURES}
    if board.cheapest is not None and alone["cost"]:
        yield Sentence(
            "Of the models with a known price, only %(model)s is within %(near)s points of the "
            "best with a probability of %(sure)s.",
            model=names.get(board.cheapest, board.cheapest),
            **facts,
        )
    elif board.cheapest is not None:
        yield Sentence(
            "Of the models that are within %(near)s points of the best with a probability of "
            "%(sure)s, %(model)s costs least.",
            model=names.get(board.cheapest, board.cheapest),
            **facts,
        )
    elif any(row.cost for row in board.models):
        yield Sentence(
            "No model with a known price is within %(near)s points of the best with a "
            "probability of %(sure)s: the cheapest good model is inconclusive.",
            **facts,
        )
    if board.fastest is not None and alone["seconds"]:
        yield Sentence(
            "Of the models with a known time, only %(model)s is within %(near)s points of the "
            "best with a probability of %(sure)s.",
            model=names.get(board.fastest, board.fastest),
            **facts,
        )
    elif board.fastest is not None:
        yield Sentence(
            "Of the models that are within %(near)s points of the best with a probability of "
            "%(sure)s, %(model)s takes the least time.",
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
                yield Sentence(
                    "Excluded from the costs: %(models)s (%(why)s).", models=who, why=why
                )
            else:
                yield Sentence(
                    "Excluded from the times: %(models)s (%(why)s).", models=who, why=why
                )


ABSENT: Mapping[Measure, Sentence] = {
    "cost": Sentence("No two models have prices to compare."),
    "seconds": Sentence("No two models have times to compare."),
}


def value(votes: Votes, figures: VoteRows, options: RateOptions | None = None) -> Value:
    """Set ratings against costs and seconds, with what is known of both jointly.

    Costs are compared within battles (`paired_means`). A model is dominated
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
    plain = RateOptions()
    for name in ("ties", "interval", "claims", "ridge", "order_effect", "style", "reference"):
        if getattr(options, name) != getattr(plain, name):
            raise DataError(f"Value is estimated without {name}: leave it out.")
    fitted = fit(votes.data)
    off = spread(fitted, votes.data, options, np.random.default_rng(options.seed))
    report = report_of(fitted, votes, off, options, np.random.default_rng([options.seed, 1]))
    assert off.inference is not None
    rng = np.random.default_rng([options.seed, 3])
    strengths = _joint_draws(off.inference, options.level, ROUNDS, rng)
    figures = _of_rated(figures, fitted.models)
    taken = {measure: paired_means(figures, measure) for measure in MEASURES}
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
        measure: _lines(fitted.models, fitted.theta, better, one, PER[measure], options.level, rng)
        for measure, one in taken.items()
    }
    near = NEAR / (options.scale / np.log(10))
    near_best = (strengths >= strengths.max(axis=1, keepdims=True) - near).mean(axis=0)
    place = [fitted.models.index(row.model) for row in report.ratings]
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
        cheapest=min(_near(models, "cost"), default=(0.0, None))[1],
        fastest=min(_near(models, "seconds"), default=(0.0, None))[1],
        left_out={measure: one.left_out for measure, one in taken.items()},
        warnings=tuple(_warnings(report, figures)),
        strengths=strengths[:, place],
    )


def _of_rated(figures: VoteRows, models: tuple[str, ...]) -> VoteRows:
    """Give the figures with models numbered as those that are rated."""
    place = np.array([models.index(name) if name in models else -1 for name in figures.models])
    a, b = place[figures.a], place[figures.b]
    assert min(a.min(), b.min()) >= 0, "a battle of a model that is not rated"
    return replace(figures, models=models, a=a, b=b)


def _joint_draws(inference: Inference, level: float, n: int, rng: np.random.Generator) -> Floats:
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


def _near(models: tuple[ModelValue, ...], name: Measure) -> list[tuple[float, str]]:
    """Give what models take that are near the best with a probability of `SURE`.

    Models without a figure are passed over.
    """
    return [
        (one.value, row.model)
        for row in models
        if (one := getattr(row, name)) is not None and row.near_best >= SURE
    ]


def _warnings(report: Report, figures: VoteRows) -> Iterator[str]:
    unsaid = on_quasi_errors(report.quasi_se_error or 0.0)  # of a column that is not shown here
    yield from (warning for warning in report.warnings if warning != unsaid)
    if "voter" not in figures.groups:
        yield Sentence(
            "Voters are not known: costs are compared as if every battle had a different voter."
        )
    elif _effective(figures.voter) < FEWEST_UNITS:
        yield Sentence("One voter cast nearly all votes: costs are those of that voter's prompts.")


def _lines(
    models: tuple[str, ...],
    theta: Floats,
    better: Bools,
    taken: _Compared,
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


def _no_dearer(logs: Floats, taken: _Compared, core: Ints, rng: np.random.Generator) -> Bools:
    """Claim which models, by row, take less than which by column, all together, or the same."""
    if not len(core):
        return np.zeros((0, 0), dtype=bool)
    covariance = taken.covariance[np.ix_(core, core)]
    covariance += max(LEAST_VARIANCE, ROUNDING * covariance.max()) * np.eye(len(core))
    df = float(taken.df[core].min())
    gap = logs[None, :] - logs[:, None]
    cheaper = rank_ranges(-logs, covariance, rng=rng, df=df, level=SURE).better
    return np.asarray(np.where(np.abs(gap) < ALIKE, True, cheaper))


def dominates(quality: Floats, logs: Floats) -> Bools:
    """Return whether the row is at least as good and as cheap, and better in one.

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
