"""Ratings of systems made of parts, such as a model in a scaffold: the parts' strengths add up."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from rating.board import rate
from rating.comparisons import Comparisons, Votes
from rating.contrasts import Inference, clusters_of, infer, usable
from rating.errors import ConvergenceError, DataError, NotIdentifiedError
from rating.fitting import Fit, fit
from rating.leave_out import positive_part
from rating.options import RateOptions
from rating.report import Report
from rating.typing import Floats, Ints

_SAME = 6
"""Decimals to which levels that cannot be compared differ in a direction without information."""


@dataclass(frozen=True, slots=True)
class FactorLevel:
    """What a level of a factor adds to a system.

    Attributes
    ----------
    points, se, lower, upper : float
        Against the average level of its factor. Not known is NaN.
    systems, votes : int
        Systems that have it, and votes with it on one side or both.
    """

    level: str
    points: float
    se: float
    lower: float
    upper: float
    systems: int
    votes: int


@dataclass(frozen=True, slots=True)
class Additivity:
    """Whether systems differ from the sum of their parts.

    Attributes
    ----------
    terms : int
        Ways in which they could: systems less levels, and one for each factor less one.
    statistic, df : float or None
        F with ``terms`` and this many degrees of freedom; None where nothing can be said.
    p : float or None
        Of a statistic as large, if the parts add up.
    reason : str
        Why there is none.
    """

    terms: int
    statistic: float | None = None
    df: float | None = None
    p: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FactorReport:
    """Ratings by factor, and what they assume.

    Attributes
    ----------
    factors : mapping of str to tuple of FactorLevel
        The best level first.
    sums : mapping of str to float
        For each system the sum of its parts, in points with the mean of the board.
    systems : Report or None
        The same votes rated without factors, a strength for each system; None where they identify
        no such ratings.
    additivity : Additivity
    level : float
        Of the intervals.
    votes : int
    warnings : tuple of str
    """

    factors: Mapping[str, tuple[FactorLevel, ...]]
    sums: Mapping[str, float]
    systems: Report | None
    additivity: Additivity
    level: float
    votes: int
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: finite numbers, or None."""
        return {
            "factors": {
                name: [{key: _plain(x) for key, x in asdict(one).items()} for one in levels]
                for name, levels in self.factors.items()
            },
            "sums": dict(self.sums),
            "systems": self.systems and self.systems.to_dict(),
            "additivity": {key: _plain(x) for key, x in asdict(self.additivity).items()},
            "level": self.level,
            "votes": self.votes,
            "warnings": list(self.warnings),
        }


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def rate_factors(
    votes: Votes | Comparisons,
    levels: Mapping[str, Mapping[str, str]],
    options: RateOptions | None = None,
) -> FactorReport:
    """Rate the parts of systems: the strength of a system is the sum of those of its parts.

    With parts f of the systems a and b, the gap between them is::

        sum_f (beta_f[part f of a] - beta_f[part f of b])

    fitted by maximum likelihood as `rating.fit` does, with intervals that omit one voter (and
    prompt) at a time. That the parts add up is tested against a strength for each system: a Wald
    test of all contrasts of systems that vanish if they do, with Hotelling's T squared for the
    few voters behind its covariance, and never surer than with independent votes.

    Parameters
    ----------
    votes : Votes or Comparisons
        Of systems.
    levels : mapping of str to mapping of str to str
        For each factor the level of each system, by its name: two factors or more.
    options : RateOptions, optional
        ``ties`` other than grounded, ``cluster``, ``order_effect``, ``level``, ``scale``,
        ``mean`` and ``seed`` are used; an interval other than the sandwich, a ridge and styles
        are refused.

    Raises
    ------
    DataError
        If the options or levels do not fit.
    NotIdentifiedError
        If the votes do not tell levels apart; names them.

    References
    ----------
    .. [1] R. A. Bradley, "Science, statistics, and paired comparisons", Biometrics 32(2), 1976,
       pp. 213-239, section 5.1 (factorial treatment combinations).
    .. [2] M. Cattelan, "Models for paired comparison data: a review with emphasis on dependent
       data", Statistical Science 27(3), 2012, pp. 412-433, section 3.3 (strengths that are linear
       in what objects are made of).

    Examples
    --------
    Each scaffold wins 3 of 4 with the better model on its side, whichever the model.

    >>> a, b = ["m, x", "m, y", "m, x", "n, x"] * 4, ["n, x", "n, y", "m, y", "n, y"] * 4
    >>> won = (["model_a"] * 4) * 3 + ["model_b"] * 4
    >>> levels = {"model": {s: s[0] for s in {*a, *b}}, "tool": {s: s[3] for s in {*a, *b}}}
    >>> report = rate_factors(Comparisons.from_arrays(a, b, won), levels)
    >>> [(one.level, round(one.points)) for one in report.factors["model"]]
    [('m', 95), ('n', -95)]
    """
    votes = votes if isinstance(votes, Votes) else Votes(votes)
    data, options = votes.data, options or RateOptions()
    _check(options, data, levels)
    options = options.resolved(data)
    factors = _Factors.of(data.models, levels)
    factors.require_apart(data.pairs.astype(np.int64))
    fitted, inference = _fitted(factors.comparisons(data), options)
    per_nat = options.scale / math.log(10)
    sums = factors.strengths(fitted, order_effect=options.order_effect)
    board, additivity = _systems(votes, factors, options)
    return FactorReport(
        factors={name: _rows(data, factors, name, inference, options) for name in factors.names},
        sums={
            system: options.mean + per_nat * float(value)
            for system, value in zip(data.models, sums - sums.mean(), strict=True)
        },
        systems=board,
        additivity=additivity,
        level=options.level,
        votes=data.n_votes,
        warnings=(*votes.warnings, *_warnings(data, options)),
    )


def _check(
    options: RateOptions, data: Comparisons, levels: Mapping[str, Mapping[str, str]]
) -> None:
    plain = RateOptions()
    for name in ("interval", "ridge", "style", "reference", "anchor", "by"):
        if (value := getattr(options, name)) != getattr(plain, name):
            raise DataError(f"Factors are rated without {name} {value!r}: leave it out.")
    if options.ties == "grounded":
        raise DataError(
            "Factors have no zero of their own, which grounded ties need: choose others."
        )
    if len(levels) < 2:
        named = ", ".join(map(repr, levels)) or "none"
        raise DataError(f"Factors are two or more, and {named} is given: name another.")
    for name, of_systems in levels.items():
        if missing := sorted(set(data.models) - set(of_systems)):
            raise DataError(f"The system {missing[0]!r} has no {name}: give it one.")
        if len({of_systems[system] for system in data.models}) < 2:
            only = of_systems[data.models[0]] if data.models else None
            raise DataError(f"All systems have the {name} {only!r}: leave this factor out.")


@dataclass(frozen=True, slots=True, eq=False)
class _Factors:
    """The levels of each factor, sorted, and the place of each system's level among them."""

    names: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    codes: tuple[Ints, ...]

    @classmethod
    def of(cls, systems: Sequence[str], levels: Mapping[str, Mapping[str, str]]) -> "_Factors":
        every = [sorted({of_systems[s] for s in systems}) for of_systems in levels.values()]
        codes = [
            np.array([names.index(of_systems[s]) for s in systems])
            for names, of_systems in zip(every, levels.values(), strict=True)
        ]
        return cls(tuple(levels), tuple(map(tuple, every)), tuple(codes))

    @property
    def dummies(self) -> Floats:
        """Which levels a system has, those of the factors one after the other: 0 or 1."""
        return np.hstack(
            [
                np.eye(len(names))[codes]
                for names, codes in zip(self.levels, self.codes, strict=True)
            ]
        )

    def require_apart(self, pairs: Ints) -> None:
        """Raise `NotIdentifiedError` unless the votes compare all levels of every factor."""
        distinct = np.unique(pairs, axis=0)
        dummies = self.dummies
        free = scipy.linalg.null_space(dummies[distinct[:, 0]] - dummies[distinct[:, 1]])
        if free.shape[1] == len(self.names):  # a constant for each factor
            return
        apart, first = [], 0
        for name, levels in zip(self.names, self.levels, strict=True):
            rows = free[first : first + len(levels)]
            first += len(levels)
            groups: dict[tuple[float, ...], list[str]] = {}
            for level, row in zip(levels, np.round(rows - rows[0], _SAME) + 0.0, strict=True):
                groups.setdefault(tuple(row.tolist()), []).append(level)
            if len(groups) > 1:
                apart.append(
                    f"{name} {' from '.join(', '.join(group) for group in groups.values())}"
                )
        raise NotIdentifiedError(
            f"The votes cannot tell apart {'; '.join(apart)}: in every vote these differ together "
            "or not at all. Collect votes between systems that differ in one factor alone.",
            (),
        )

    def comparisons(self, data: Comparisons) -> Comparisons:
        """Compare levels of the first factor, with a feature for each other level but one.

        Both sides may have the same level of the first factor.
        """
        columns, names = [], []
        for name, levels, codes in [*zip(self.names, self.levels, self.codes, strict=True)][1:]:
            has = np.eye(len(levels))[codes][:, 1:]
            columns.append(has[data.pairs[:, 0]] - has[data.pairs[:, 1]])
            names += [f"{name}={level}" for level in levels[1:]]
        return replace(
            data,
            models=self.levels[0],
            pairs=self.codes[0][data.pairs],
            features=np.hstack(columns),
            feature_names=tuple(names),
        )

    def _places(self, name: str, n_parameters: int, *, order_effect: bool) -> Floats:
        """Say where a level's strength is among the parameters, shape (n_levels, n_parameters)."""
        which, first = self.names.index(name), len(self.levels[0]) + order_effect
        n = len(self.levels[which])
        if not which:
            return np.eye(n, n_parameters)
        first += sum(len(levels) - 1 for levels in self.levels[1:which])
        return np.vstack([np.zeros(n_parameters), np.eye(n - 1, n_parameters, k=first)])

    def contrasts(self, name: str, n_parameters: int, *, order_effect: bool) -> Floats:
        """Hold each level of a factor against their average."""
        places = self._places(name, n_parameters, order_effect=order_effect)
        return np.asarray(places - places.mean(axis=0))

    def strengths(self, fitted: Fit, *, order_effect: bool) -> Floats:
        """Add up the parts of each system, in nats."""
        total = np.zeros(len(self.codes[0]))
        for name, codes in zip(self.names, self.codes, strict=True):
            places = self._places(name, len(fitted.x), order_effect=order_effect)
            total += (places @ fitted.x)[codes]
        return total

    def interactions(self) -> Floats:
        """Give contrasts of systems that vanish if the parts add up, shape (terms, n_systems)."""
        return np.asarray(scipy.linalg.null_space(self.dummies.T).T)


def _fitted(data: Comparisons, options: RateOptions) -> tuple[Fit, Inference]:
    fitted = fit(data, ties=options.ties, order_effect=options.order_effect)
    return fitted, infer(fitted, data, usable(data, options)[0])


def _rows(
    data: Comparisons, factors: _Factors, name: str, inference: Inference, options: RateOptions
) -> tuple[FactorLevel, ...]:
    which = factors.names.index(name)
    codes, per_nat = factors.codes[which], options.scale / math.log(10)
    size = len(inference.fit.x)
    contrasts = factors.contrasts(name, size, order_effect=options.order_effect)
    judged = inference.of(contrasts)
    half = judged.half_width(options.level)
    on_sides = codes[data.pairs]
    rows = [
        FactorLevel(
            level,
            points=float(per_nat * judged.value[i]),
            se=float(per_nat * np.sqrt(judged.variance[i])),
            lower=float(per_nat * (judged.value[i] - half[i])),
            upper=float(per_nat * (judged.value[i] + half[i])),
            systems=int((codes == i).sum()),
            votes=int(data.votes[(on_sides == i).any(axis=1)].sum()),
        )
        for i, level in enumerate(factors.levels[which])
    ]
    return tuple(sorted(rows, key=lambda row: (-row.points, row.level)))


def _systems(
    votes: Votes, factors: _Factors, options: RateOptions
) -> tuple[Report | None, Additivity]:
    """Rate each system by itself, and test whether the parts add up."""
    interactions = factors.interactions()
    try:
        board = rate(votes, options)
        _, inference = _fitted(votes.data, options)
    except (NotIdentifiedError, ConvergenceError) as error:
        reason = f"No rating of each system by itself: {error}"
        return None, Additivity(len(interactions), reason=reason)
    return board, _additivity(inference, interactions)


def _additivity(inference: Inference, interactions: Floats) -> Additivity:
    terms = len(interactions)
    if not terms:
        return Additivity(0, reason="No system has parts that others show apart: nothing to test.")
    contrasts = np.zeros((terms, len(inference.fit.x)))
    contrasts[:, : inference.fit.n_models] = interactions
    judged = inference.of(contrasts)
    known = float(judged.df.min())
    df = known - terms + 1
    if not df >= 1:
        few = f"{max(0, math.floor(known))} degrees of freedom"
        return Additivity(terms, reason=f"{few} are too few to test {terms} ways to differ.")
    factor = 1.0 if math.isinf(known) else df / known
    value, alone = (
        factor
        * float(judged.value @ np.linalg.solve(contrasts @ matrix @ contrasts.T, judged.value))
        / terms
        for matrix in (_covariance(inference), inference.matrix)
    )
    statistic = min(value, alone)
    return Additivity(
        terms, statistic, df, float(scipy.special.fdtrc(terms, min(df, 1e9), statistic))
    )


def _covariance(inference: Inference) -> Floats:
    """Give the covariance by the clusters: of both, that by voter and what prompts add to it."""
    if not inference.shared:
        return inference.matrix
    total = inference.shared[0].matrix
    if len(inference.shared) > 1 and inference.between is not None:
        total = total + positive_part(inference.shared[1].matrix - inference.between)
    return total


def _warnings(data: Comparisons, options: RateOptions) -> Iterator[str]:
    enough, _ = usable(data, options)
    for kind in clusters_of(options):
        if kind not in enough:
            yield f"One {kind} has nearly all votes: the intervals speak for that {kind} alone."
    if data.voter is None:
        yield (
            "Voters are not known: the intervals treat votes as independent, and are too narrow "
            "where people voted often."
        )
