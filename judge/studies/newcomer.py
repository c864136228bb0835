"""A newcomer rated by a judge, with an interval that holds: jackknife+ over known models."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.alignment import align
from judge.studies.biases import own_model
from judge.studies.data import JudgeVerdicts, StudyData, judge_of, study_data
from judge.studies.estimates import Estimate, finite, joined, plural, points_of
from judge.studies.left_out_models import LeftOut, between, interval
from judge.studies.powered_ratings import powered_ratings
from judge.studies.rows import Source, read_rows
from judge.studies.soft_verdicts import (
    Board,
    Calibrated,
    CalibrationMethod,
    Compared,
    Evidence,
    Kind,
    Placed,
    board_of,
    calibrated,
    odds_of,
    placed,
    with_signal,
)
from rating.elo import POINTS_PER_NAT, to_points
from rating.errors import DataError, NotIdentifiedError
from rating.typing import Floats, Ints
from rating.uncertainty.student import quantile

FEWEST_KNOWN = 3
"""Known models without which the errors of a judge cannot be seen at all."""
FEW_KNOWN = 10
"""Known models under which the interval says that they are not enough."""
RANKED_FROM = 30
"""Battles with votes from which people's votes rate a newcomer."""

By = Literal["judge only", "judge and people"]
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewcomerOptions:
    """How a newcomer is rated.

    Attributes
    ----------
    judge : str or None
        Whose verdicts, where the file holds those of several judges.
    anchors : tuple of str
        Known models to rate it against, by name or pattern; all by default.
    own : tuple of str
        Models of the judge's own family, by name or pattern, such as gpt-*; by default the one
        that is named like the judge.
    calibration : {"temperature", "isotonic"}
        How the judge's probabilities become those of people.
    level : float
        Of the interval.
    """

    judge: str | None = None
    anchors: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    calibration: CalibrationMethod = "temperature"
    level: float = 0.95

    def __post_init__(self) -> None:
        """Raise `DataError` for a level that is none."""
        if not 0 < self.level < 1:
            msg = f"--level {self.level:g} is no level of an interval: give one between 0 and 1."
            raise DataError(msg)


@dataclass(frozen=True, slots=True)
class Known:
    """A model that people rated, and the judge as if it were new.

    Attributes
    ----------
    people, judge : float
        Points, of the average of the other known models being 1000.
    error : float
        People's rating less the judge's.
    standard_error : float
        Of that difference, from sampling alone.
    own : bool
        Whether it is of the judge's family.
    """

    model: str
    people: float
    judge: float
    error: float
    standard_error: float
    own: bool


@dataclass(frozen=True, slots=True)
class WithVotes:
    """The rating by votes and verdicts together; see `judge.studies.powered_ratings`."""

    rating: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Newcomer:
    """The rating of a model that a judge has compared with models that people know.

    Attributes
    ----------
    rating, lower, upper : float
        Points; the anchors' average is 1000.
    by : {"judge only", "judge and people"}
    calibrated_on : int
        Known models whose errors the interval is made from.
    judge_only : Estimate
        The judge's rating, whatever people say; ``n`` is the number of verdicts.
    with_votes : WithVotes or None
        None where there are no votes on it, or too few to rate it by.
    self_preference : Estimate or None
        What was added to the judge's rating because the model is of its own family; ``n`` is the
        number of known models of that family. None for other models, and where none is known.
    known : tuple of Known
    gap : float
        Standard deviation of a judge's errors over models, beyond sampling; points.
    votes : int
        Battles of the newcomer on which people voted.
    """

    model: str
    judge: str
    signal: Kind
    rating: float
    lower: float
    upper: float
    by: By
    calibrated_on: int
    level: float
    judge_only: Estimate
    with_votes: WithVotes | None
    self_preference: Estimate | None
    known: tuple[Known, ...]
    anchors: tuple[tuple[str, float], ...]
    gap: float
    n_prompts: int
    votes: int
    warnings: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer in words."""
        others = [one for one in self.known if not one.own]
        off = float(np.mean([abs(one.error) for one in others]))
        percent = f"{100 * self.level:g} %"
        first = (
            f"{self.model}: {self.rating:.0f} ({self.lower:.0f} to {self.upper:.0f}, {percent}), "
            f"by {self.by}."
        )
        how = (
            f"{plural(self.judge_only.n, 'verdict')} of {self.judge} on "
            f"{plural(self.n_prompts, 'prompt')}. Rated in the same way, each as if it were new, "
            f"{plural(len(others), 'known model')} came out {off:.0f} points off people's "
            f"ratings on average; beyond the scatter of votes and verdicts the judge errs by "
            f"{self.gap:.0f} (standard deviation)."
        )
        hollow = (
            (
                f"It has no rank until {RANKED_FROM} of its battles have votes; "
                f"{self.votes} {'has' if self.votes == 1 else 'have'}.",
            )
            if self.by == "judge only"
            else ()
        )
        return (first, how, *hollow)

    @property
    def board(self) -> list[dict[str, Any]]:
        """The anchors by people's ratings, and the newcomer among them, best first."""
        rows = [
            {"model": model, "rating": rating, "lower": None, "upper": None, "by": "people"}
            for model, rating in self.anchors
        ]
        ends = {"rating": self.rating, "lower": self.lower, "upper": self.upper}
        rows.append({"model": self.model, **ends, "by": self.by})
        return sorted(rows, key=lambda row: (-row["rating"], row["model"]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        own = self.self_preference
        return {
            "model": self.model,
            "rating": self.rating,
            "lower": self.lower,
            "upper": self.upper,
            "by": self.by,
            "calibrated_on": self.calibrated_on,
            "level": self.level,
            "judge": self.judge,
            "signal": self.signal,
            "judge_only": asdict(self.judge_only),
            "with_votes": None if self.with_votes is None else asdict(self.with_votes),
            "self_preference": None if own is None else asdict(own),
            "gap": self.gap,
            "prompts": self.n_prompts,
            "votes": self.votes,
            "rank": None,
            "known": [asdict(one) for one in self.known],
            "board": self.board,
            "sentences": list(self.sentences),
            "warnings": list(self.warnings),
        }


def rate_newcomer(
    votes: Source,
    verdicts: Source,
    model: str,
    options: NewcomerOptions = NewcomerOptions(),
    progress: Progress = lambda *_: None,
) -> Newcomer:
    """Read votes and verdicts, and rate a model by the verdicts.

    Raises
    ------
    DataError
        If a source cannot be read, or an option names what is not there.
    NotIdentifiedError
        See `newcomer`.
    """
    cast = read_rows(votes, unread=False)
    given, kind = with_signal(read_rows(verdicts, unread=True, marks=True))
    data = study_data(align(cast, given))
    return newcomer(data, judge_of(data, options.judge), model, options, kind, progress)


def newcomer(
    data: StudyData,
    judge: JudgeVerdicts,
    model: str,
    options: NewcomerOptions = NewcomerOptions(),
    kind: Kind = "probabilities",
    progress: Progress = lambda *_: None,
) -> Newcomer:
    """Rate a model by a judge, with an interval for the rating that people would give it.

    The judge's verdicts become probabilities f that people prefer a side, by what was learnt on
    votes on other models. The newcomer's strength is that of Bradley-Terry with f as targets,
    against the anchors' strengths by people. Each known model m is rated in the same way as if it
    were new: without its votes in calibration and anchors. With R its rating by people less that
    by the judge, and X the newcomer::

        s_m^2 = se_judge^2 + se_people^2 + gap^2        r_m = R_m / s_m
        lower, upper = quantiles over m of  theta_X,-m -+ |r_m| s_X

    with ``s_X^2`` of the newcomer's own prompts, the anchors' uncertainty and ``gap^2``, and ranks
    ``floor((1 - level) (n + 1))`` and ``ceil(level (n + 1))`` (jackknife+ [1]_, of standardised
    residuals). ``gap`` is what R varies by beyond sampling (Paule and Mandel [2]_). Where people's
    votes leave it badly known, the reach grows by ``t_df / t_n``, ``df = s_X^4 sum 1 / s_m^4``, up
    to that of residuals as they are. Where known models are too few for such ranks, at 95 % under
    19, the interval is ``t_(n - 1) s_X sqrt(1 + 1 / n)`` around the rating.

    It holds for models like the known ones. The judge's own family is not: known models of it are
    left out of the interval, and a newcomer of it is moved by their mean R, whose uncertainty is
    added.

    Raises
    ------
    DataError
        If there is no such model, or an anchor is not there.
    NotIdentifiedError
        If the judge did not compare it with a known model, fewer than `FEWEST_KNOWN` models are
        known, or votes or verdicts are all ties.

    References
    ----------
    .. [1] R. F. Barber, E. J. Candès, A. Ramdas and R. J. Tibshirani, "Predictive inference with
       the jackknife+", Annals of Statistics 49(1), 2021.
    .. [2] R. C. Paule and J. Mandel, "Consensus values and weighting factors", Journal of Research
       of the National Bureau of Standards 87(5), 1982.
    """
    evidence = Evidence.of(data.items, data.people, judge.verdicts)
    new = _position(evidence, model)
    anchors = _anchors(evidence, new, options.anchors)
    _require_verdicts(evidence, new, anchors)
    rated = _Rated.of(evidence, new, anchors, options)
    left_out = []
    for done, one in enumerate(anchors):
        progress(done, len(anchors), f", without {evidence.models[one]}")
        left_out.append(rated.without(int(one)))
    return _summed(data, judge, rated, [one for one in left_out if one is not None], kind)


def _position(evidence: Evidence, model: str) -> int:
    if model in evidence.models:
        return evidence.models.index(model)
    known = ", ".join(map(repr, evidence.models[:3]))
    msg = f"There is no model {model!r} in votes and verdicts; there are {known} and others."
    raise DataError(msg)


def _anchors(evidence: Evidence, new: int, wanted: Sequence[str]) -> Ints:
    """Find the models that people compared with each other, the largest group that hangs together.

    Raises `DataError` for a name that fits none, `NotIdentifiedError` for too few.
    """
    n = len(evidence.models)
    rows = evidence.voted.only(np.invert(evidence.voted.has(new)))
    met = np.unique(rows.pairs)
    for pattern in wanted:
        if not any(fnmatchcase(evidence.models[one], pattern) for one in met):
            msg = f"No model with votes fits --anchors {pattern!r}."
            raise DataError(msg)
    if wanted:
        fits = [any(fnmatchcase(evidence.models[one], p) for p in wanted) for one in met]
        met = met[np.array(fits)]
        rows = rows.only(np.flatnonzero(np.isin(rows.pairs, met).all(axis=1)))
    graph = scipy.sparse.coo_array((np.ones(len(rows.pairs)), rows.pairs.T), shape=(n, n))
    _, group = scipy.sparse.csgraph.connected_components(graph, directed=False)
    sizes = np.bincount(group[met], minlength=1)
    anchors = met[group[met] == sizes.argmax()]
    if len(anchors) < FEWEST_KNOWN:
        names = joined([evidence.models[one] for one in anchors])
        msg = (
            f"Not enough known models: people have compared {names or 'none'} with each other, "
            f"and how far a judge's ratings lie off people's shows on {FEWEST_KNOWN} or more."
        )
        raise NotIdentifiedError(msg)
    return np.asarray(anchors, dtype=np.int64)


def _require_verdicts(evidence: Evidence, new: int, anchors: Ints) -> None:
    judged = evidence.judged
    name = evidence.models[new]
    own = judged.only(judged.has(new))
    against = np.isin(own.pairs, anchors).any(axis=1)
    if not against.any():
        judged_models = [evidence.models[one] for one in np.unique(judged.pairs)]
        msg = (
            f"The judge has no verdict on {name!r} against a model that people know: have it "
            f"compare {name!r} with some of them (arena judge run). It has verdicts on "
            f"{joined(judged_models[:5])}{' and others' if len(judged_models) > 5 else ''}."
        )
        raise NotIdentifiedError(msg)
    if len(np.unique(own.prompt[against])) < 2:
        msg = (
            f"All verdicts on {name!r} are on one prompt: how sure a rating is shows on two or "
            "more."
        )
        raise NotIdentifiedError(msg)


@dataclass(frozen=True, slots=True, eq=False)
class _Rated:
    """The newcomer and the anchors, ready to leave models out."""

    evidence: Evidence
    new: int
    anchors: Ints
    options: NewcomerOptions
    board: Board

    @classmethod
    def of(cls, evidence: Evidence, new: int, anchors: Ints, options: NewcomerOptions) -> "_Rated":
        return cls(evidence, new, anchors, options, _by_people(evidence, anchors))

    def calibrated(self, without: Sequence[int]) -> Calibrated:
        voted = self.evidence.voted
        rest = voted.only(np.flatnonzero(~np.isin(voted.pairs, without).any(axis=1)))
        return calibrated(rest, self.options.calibration)

    def by_judge(self, model: int, board: Board, learnt: Calibrated) -> Placed:
        judged = self.evidence.judged
        return placed(judged, learnt.probability(judged.signal), model, board)

    def without(self, model: int) -> LeftOut | None:
        """Rate a known model as if it were new; None where people or judge do not rate it."""
        rest = self.anchors[self.anchors != model]
        voted, judged = self.evidence.voted, self.evidence.judged
        if not _compared(judged, model, rest) or not _compared(voted, model, rest):
            return None
        board = _by_people(self.evidence, rest)
        learnt = self.calibrated([self.new, model])
        people = placed(voted, voted.score, model, board, voters=True)
        judge = self.by_judge(model, board, learnt)
        if not np.isfinite(people.variance + judge.variance):
            return None
        shift = float(self.board.theta[rest].mean())
        try:
            newcomer = self.by_judge(self.new, board, learnt).theta + shift
        except NotIdentifiedError:  # compared with this model alone
            return None
        return LeftOut(model, people, judge, newcomer)


def _by_people(evidence: Evidence, anchors: Ints) -> Board:
    voted = evidence.voted
    return board_of(voted, voted.score, anchors, len(evidence.models))


def _compared(rows: Compared, model: int, others: Ints) -> bool:
    return bool((rows.has(model) & np.isin(rows.pairs, others).any(axis=1)).any())


def _summed(
    data: StudyData,
    judge: JudgeVerdicts,
    rated: _Rated,
    left_out: Sequence[LeftOut],
    kind: Kind,
) -> Newcomer:
    evidence, level = rated.evidence, rated.options.level
    family = _family(evidence, judge.name, rated.options.own)
    own = [one for one in left_out if one.model in family]
    others = [one for one in left_out if one.model not in family]
    if len(others) < FEWEST_KNOWN:
        msg = (
            f"Not enough known models: {plural(len(others), 'model')} beside the judge's own have "
            f"both votes and verdicts, and how far its ratings lie off people's shows on "
            f"{FEWEST_KNOWN} or more."
        )
        raise NotIdentifiedError(msg)
    board = rated.board
    learnt = rated.calibrated([rated.new])
    here = rated.by_judge(rated.new, board, learnt)
    gap = between(
        np.array([one.residual for one in others]), np.array([one.variance for one in others])
    )
    offset = _offset(own, gap, level) if rated.new in family else None
    moved = 0.0 if offset is None else offset.mean
    variance = here.variance + board.variance(here.weight - 1 / len(rated.anchors))
    variance += 0.0 if offset is None else offset.variance
    shifted = [replace(one, newcomer=one.newcomer + moved) for one in others]
    by_judge = interval(here.theta + moved, variance, shifted, gap, level)
    votes = int(evidence.voted.has(rated.new).sum())
    warnings = [
        *data.warnings,
        *_on_known(len(others)),
        *_on_judge(judge, learnt, kind, level),
        *_on_family(evidence, rated.new, own, family, offset),
    ]
    powered = _with_votes(data, judge, rated, learnt, warnings) if votes else None
    rating, lower, upper = to_points(
        np.array([by_judge.theta, by_judge.lower, by_judge.upper])
    ).tolist()
    alone = Estimate(rating, lower, upper, here.n)
    by: By = "judge only"
    if votes >= RANKED_FROM and powered is not None and powered.lower is not None:
        assert powered.upper is not None
        rating, lower, upper = powered.rating, powered.lower, powered.upper
        by = "judge and people"
    ratings = to_points(board.theta[rated.anchors]).tolist()
    return Newcomer(
        model=evidence.models[rated.new],
        judge=judge.name,
        signal=kind,
        rating=rating,
        lower=lower,
        upper=upper,
        by=by,
        calibrated_on=len(others),
        level=level,
        judge_only=alone,
        with_votes=powered,
        self_preference=None if offset is None else offset.estimate,
        known=tuple(_known(evidence, one, one.model in family) for one in left_out),
        anchors=tuple(
            (evidence.models[one], value)
            for one, value in zip(rated.anchors.tolist(), ratings, strict=True)
        ),
        gap=POINTS_PER_NAT * float(np.sqrt(gap)),
        n_prompts=here.n_prompts,
        votes=votes,
        warnings=tuple(warnings),
    )


def _known(evidence: Evidence, one: LeftOut, own: bool) -> Known:
    people, judge = to_points(np.array([one.people.theta, one.judge.theta])).tolist()
    error = POINTS_PER_NAT * float(np.sqrt(one.variance))
    return Known(evidence.models[one.model], people, judge, people - judge, error, own)


def _family(evidence: Evidence, judge: str, wanted: Sequence[str]) -> set[int]:
    """Find the models of the judge's family; raises `DataError` for a name that fits none."""
    if not wanted:
        own = own_model(judge, evidence.models)
        return set() if own is None else {evidence.models.index(own)}
    family: set[int] = set()
    for pattern in wanted:
        fits = {k for k, name in enumerate(evidence.models) if fnmatchcase(name, pattern)}
        if not fits:
            raise DataError(f"No model fits --own {pattern!r}.")
        family |= fits
    return family


@dataclass(frozen=True, slots=True)
class _Offset:
    """What people give models of the judge's family beyond the judge, nats."""

    mean: float
    variance: float
    estimate: Estimate


def _offset(own: Sequence[LeftOut], gap: float, level: float) -> _Offset | None:
    if not own:
        return None
    n, mean = len(own), float(np.mean([one.residual for one in own]))
    variance = sum(one.variance + gap for one in own) / n**2
    half = quantile(level, np.inf) * float(np.sqrt(variance))
    value, lower, upper = (POINTS_PER_NAT * x for x in (mean, mean - half, mean + half))
    return _Offset(mean, variance, Estimate(value, lower, upper, n))


def _with_votes(
    data: StudyData, judge: JudgeVerdicts, rated: _Rated, learnt: Calibrated, warnings: list[str]
) -> WithVotes | None:
    """Rate the newcomer by votes and soft verdicts together, where the votes allow it."""
    name = rated.evidence.models[rated.new]
    soft = learnt.probability(odds_of(judge.verdicts.probability))
    verdicts = replace(judge.verdicts, probability=soft)
    try:
        powered = powered_ratings(data.items, data.people, verdicts, level=rated.options.level)
    except NotIdentifiedError as error:
        warnings.append(f"The votes on {name} do not rate it yet: {error}")
        return None
    at = powered.models.index(name)
    known = [powered.models.index(rated.evidence.models[one]) for one in rated.anchors]
    theta = powered.ratings.theta
    rating = theta[at] - theta[known].mean()
    half = (powered.ratings.upper - theta)[at] * _wider(powered.ratings.averaged[at], theta)
    points = to_points(np.array([rating, rating - half, rating + half]))
    return WithVotes(float(points[0]), finite(points[1]), finite(points[2]))


def _wider(averaged: np.bool_, theta: Floats) -> float:
    """Return what a distance from an average that holds oneself is to be multiplied by."""
    return len(theta) / (len(theta) - 1) if averaged else 1.0


def _on_known(n: int) -> list[str]:
    if n >= FEW_KNOWN:
        return []
    return [
        f"There are not enough known models: {n}, and {FEW_KNOWN} or more show how a judge errs. "
        "The interval is widened by Student's t, and stands on models like these few."
    ]


def _on_judge(judge: JudgeVerdicts, learnt: Calibrated, kind: Kind, level: float) -> list[str]:
    warnings = []
    if kind == "verdicts":
        warnings.append(
            "The judge gives verdicts without probabilities, marks or confidence: each counts as "
            "far as verdicts of this judge agree with people."
        )
    low = learnt.slope - quantile(level, np.inf) * learnt.slope_error
    if low <= 0:
        warnings.append(
            "The judge is not shown to tell which answers people prefer: the newcomer is put "
            "where the average of the known models is, and the interval is as wide as they are "
            "apart."
        )
    if judge.n_unread:
        warnings.append(
            f"{plural(judge.n_unread, 'verdict')} could not be read and count for nothing."
        )
    silent = int(np.isnan(judge.verdicts.probability).sum())
    if silent:
        warnings.append(f"{plural(silent, 'verdict')} without a probability count for nothing.")
    return warnings


def _on_family(
    evidence: Evidence,
    new: int,
    own: Sequence[LeftOut],
    family: set[int],
    offset: _Offset | None,
) -> list[str]:
    """Say what became of models of the judge's own family."""
    names = joined([evidence.models[one.model] for one in own])
    if new not in family:
        if not own:
            return []
        return [f"Left out of the interval, as the judge's own: {names}."]
    name = evidence.models[new]
    if offset is None:
        return [
            f"{name} is of the judge's own family, and no other model of it is known: how far the "
            "judge favours its own is not known, and the interval does not allow for it."
        ]
    favours = "above" if offset.mean < 0 else "below"
    size = abs(POINTS_PER_NAT * offset.mean)
    return [
        f"{name} is of the judge's own family. The judge rates known models of it ({names}) "
        f"{size:.0f} points {favours} people, so {points_of(offset.estimate)} is added to its "
        "rating, and that uncertainty to the interval."
    ]
