"""Cold start: a new model rated by a judge, through calibrated verdicts and inverse regression.

`rate_newcomer` reads votes and verdicts, and `newcomer` rates the model. `calibrated` turns a
judge's signal into the probability that people prefer a side, and `board_of` fits boards by votes
or by these. `Line` is the judge's ratings regressed on people's, with errors in both; it is
inverted with Fieller's interval.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from judge.studies.alignment import align
from judge.studies.biases import own_model
from judge.studies.data import JudgeVerdicts, StudyData, judge_of, study_data
from judge.studies.estimates import Estimate, finite, joined, points_of
from judge.studies.options import FEWEST_KNOWN, CalibrationMethod, NewcomerOptions
from judge.studies.powered import powered_ratings
from judge.studies.rows import Items, Labels, Rows, Source, read_rows
from rating.errors import DataError, NotIdentifiedError
from rating.leave_out import clustered_variance, influence_variance, quantile, sums_within, two_way
from rating.likelihood import Logistic, hessian, minimise, solve
from rating.sentences import plural
from rating.typing import Bools, Floats, Ints
from rating.variants import POINTS_PER_NAT, to_points

# Regression of a judge's ratings


LEAST_SHARE = 0.3
"""Share of the spread of people's ratings that is at least taken for more than sampling."""


@dataclass(frozen=True, slots=True)
class Line:
    """``judge = mean_judge + slope (people - mean_people)`` over n models that both rated, nats.

    Attributes
    ----------
    slope, slope_variance : float
        What the judge's ratings move per nat of people's.
    scatter : float
        Residual variance of the judge's ratings, with ``n - 2`` degrees of freedom.
    miss : float
        Variance by which the judge misses models beyond sampling error.
    """

    n: int
    mean_people: float
    mean_judge: float
    slope: float
    slope_variance: float
    scatter: float
    miss: float

    @classmethod
    def of(
        cls, people: Floats, judge: Floats, v_people: Floats, v_judge: Floats, shared: float
    ) -> "Line":
        """Fit the line by moments corrected for the sampling errors of both.

        With sample moments S, mean variances v and the mean covariance of both errors, v_xy::

            den = max(S_yy - v_y, LEAST_SHARE S_yy)     slope = (S_xy - v_xy) / den
            slope_variance = (S_yy scatter + (slope v_y)^2) / den^2 / (n - 1)
            miss = max(0, scatter - v_x - slope^2 v_y + 2 slope v_xy)

        Parameters
        ----------
        people, judge : ndarray of shape (n,), n >= 3
            Ratings y and x.
        v_people, v_judge : ndarray of shape (n,)
            Their variances.
        shared : float
            v_xy: people and the judge saw the same answers.

        References
        ----------
        .. [1] W. A. Fuller, Measurement Error Models, 1987, section 1.2. Where we deviate: the
           corrected variance of people's ratings has a floor.
        """
        n, noise = len(people), float(v_people.mean())
        y, x = people - people.mean(), judge - judge.mean()
        s_yy = float(y @ y) / (n - 1)
        den = max(s_yy - noise, LEAST_SHARE * s_yy)
        slope = (float(x @ y) / (n - 1) - shared) / den
        scatter = float(((x - slope * y) ** 2).sum()) / (n - 2)
        sampled = float(v_judge.mean()) + slope**2 * noise - 2 * slope * shared
        slope_variance = (s_yy * scatter + (slope * noise) ** 2) / den**2 / (n - 1)
        means = float(people.mean()), float(judge.mean())
        return cls(n, *means, slope, slope_variance, scatter, max(0.0, scatter - sampled))

    def people(self, judge: float) -> float:
        """Return people's rating at a judge's: the line turned round."""
        return self.mean_people + (judge - self.mean_judge) / self.slope

    def interval(self, judge: float, variance: float, level: float) -> tuple[float, float] | None:
        """Return Fieller's interval for people's rating of a new model.

        With ``d = judge - mean_judge``, ``V = miss + variance + scatter / n`` and Student's t of
        ``n - 2`` degrees of freedom, the ends are::

            mean_people + (slope d -+ t sqrt(d^2 slope_variance + V A)) / A
            A = slope^2 - t^2 slope_variance

        None where ``A <= 0`` or ``slope <= 0``: the slope is not shown to be above zero.

        Parameters
        ----------
        variance : float
            Sampling variance of the judge's rating of it.

        References
        ----------
        .. [1] E. C. Fieller, "Some problems in interval estimation", Journal of the Royal
           Statistical Society B 16(2), 1954, pp. 175-185.

        Examples
        --------
        >>> line = Line(20, 0.0, 0.0, 0.5, 0.0, 0.0, 0.01)
        >>> [round(end, 3) for end in line.interval(0.5, 0.0, 0.95)]
        [0.58, 1.42]
        """
        t = quantile(level, self.n - 2)
        a = self.slope**2 - t**2 * self.slope_variance
        if a <= 0 or self.slope <= 0:
            return None
        d = judge - self.mean_judge
        around = self.miss + variance + self.scatter / self.n
        half = t * float(np.sqrt(d**2 * self.slope_variance + around * a))
        middle = self.slope * d
        return self.mean_people + (middle - half) / a, self.mean_people + (middle + half) / a


# Calibrated verdicts and boards


RIDGE = 0.01
"""Of strengths and of the slope: a finite place for who only won, and next to nothing else."""
NEAREST = 1e-4
"""Probabilities this near to 0 or 1 are taken as this, before they become odds."""

Kind = Literal["probabilities", "marks", "confidence", "verdicts"]


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Comparisons of two models by people, a judge or both, one a row.

    Attributes
    ----------
    pairs : ndarray of shape (n, 2), int64
        Models on side A and on side B.
    prompt, rater : ndarray of shape (n,), int64
    score : ndarray of shape (n,)
        What a person gave side A: 1, 1/2 or 0; NaN where nobody voted.
    signal : ndarray of shape (n,)
        How far the judge prefers side A, on any scale on which 0 is undecided; NaN where it was
        not asked.
    judge : ndarray of shape (n,)
        The mean of 1, 1/2 or 0 over the judge's verdicts of the item; NaN where it was not asked.
    """

    pairs: Ints
    prompt: Ints
    rater: Ints
    score: Floats
    signal: Floats
    judge: Floats

    @classmethod
    def of(cls, items: Items, votes: Labels, signal: Floats, judge: Floats) -> "Compared":
        """Set votes beside what a judge says of each item."""
        at = votes.item
        score = (votes.label + 1) / 2
        return cls(items.pairs[at], items.prompt[at], votes.rater, score, signal[at], judge[at])

    @property
    def size(self) -> Floats:
        """How far the judge is from undecided; 0 where it was not asked."""
        return np.nan_to_num(np.abs(self.signal))

    @property
    def agreement(self) -> Floats:
        """How far each vote agrees with the judge: 1, 0, or between where one sees a tie."""
        return np.asarray(1 - np.abs(self.score - self.judge))

    def only(self, rows: NDArray[Any]) -> "Compared":
        """Return some rows, by mask or by index."""
        return Compared(*(getattr(self, field.name)[rows] for field in fields(self)))

    def has(self, model: int) -> Bools:
        """Tell in which rows a model was compared."""
        return np.asarray((self.pairs == model).any(axis=1))


def with_signal(rows: Rows) -> tuple[Rows, Kind]:
    """Give verdicts a preference for side A from whatever the judge gave: the best that is there.

    Its probability; else the gap of two marks in units of the gaps' root mean square; else the
    verdict times its confidence; else the verdict. What is not a probability is put into the
    logistic function, for calibration finds the scale of it.

    Raises
    ------
    DataError
        For a confidence below 0, or marks that give every two answers the same.
    """
    kind, signal = _signal(rows)
    if signal is None:
        return rows, kind
    preference = np.where(rows.read, scipy.special.expit(signal), np.nan)
    return replace(rows, numbers={**rows.numbers, "preference": preference}), kind


def _signal(rows: Rows) -> tuple[Kind, Floats | None]:
    numbers = rows.numbers
    if not np.isnan(numbers.get("preference", np.array([np.nan]))).all():
        return "probabilities", None
    if "score_a" in numbers and "score_b" in numbers:
        gap = numbers["score_a"] - numbers["score_b"]
        scale = float(np.sqrt(np.nanmean(gap**2))) if not np.isnan(gap).all() else 0.0
        if scale == 0:
            msg = f"The marks of {rows.source!r} are the same on both sides: no information."
            raise DataError(msg)
        return "marks", np.asarray(gap / scale)
    label = rows.label.astype(np.float64)
    if "confidence" not in numbers:
        return "verdicts", label
    confidence = numbers["confidence"]
    if (confidence < 0).any():
        low = confidence[confidence < 0][0]
        raise DataError(f"A confidence of {rows.source!r} is {low:g}: give none below 0.")
    return "confidence", np.asarray(label * confidence)


def _odds_of(probability: Floats) -> Floats:
    """Return log-odds, of probabilities no nearer to 0 and 1 than `NEAREST`."""
    return np.asarray(scipy.special.logit(np.clip(probability, NEAREST, 1 - NEAREST)))


@dataclass(frozen=True, slots=True, eq=False)
class _Calibrated:
    """Which probability a judge's signal stands for.

    Attributes
    ----------
    slope : float
        What the signal is multiplied by to be log-odds: the inverse of the temperature.
    loss : float
        Negative log-likelihood of the votes at that slope, nats.
    n : int
        Decisive votes behind it.
    steps : ndarray of shape (n_steps, 2), or None
        The isotonic map of the signal's size, where that is used instead of the slope.
    """

    slope: float
    loss: float
    n: int
    steps: Floats | None = None

    def probability(self, signal: Floats) -> Floats:
        """Return the probability that people prefer side A."""
        if self.steps is None:
            return np.asarray(scipy.special.expit(self.slope * signal))
        size, upper = self.steps.T
        above = np.interp(np.abs(signal), size, upper)
        return np.where(signal > 0, above, np.where(signal < 0, 1 - above, 0.5))


def calibrated(votes: Compared, method: CalibrationMethod = "temperature") -> _Calibrated:
    """Learn the probability of a signal from decisive votes, by maximum likelihood.

    ``P(people prefer A) = expit(slope signal)``, or any function that never falls and treats both
    sides alike. Ties decide nothing and are excluded, as published [1]_.

    Raises
    ------
    NotIdentifiedError
        If no vote with a verdict is decisive, or the judge is undecided in all of them.

    References
    ----------
    .. [1] A. Kargi and D. Salinas, arXiv 2606.13221, 2026.
    """
    there = votes.only(~np.isnan(votes.signal))
    rows = there.only(there.score != 0.5)
    n_there, n = len(there.score), len(rows.score)
    if n_there and not n:
        raise NotIdentifiedError(
            f"All {n_there} votes with a verdict are ties: people's preferences and the judge's "
            "agreement with them cannot be estimated."
        )
    if not np.any(rows.signal):
        raise NotIdentifiedError(
            f"The judge is undecided in all {n} cases that people decided: its verdicts cannot "
            "rate a model."
        )
    line = Logistic(rows.signal[:, None], rows.score, np.ones(n), RIDGE)
    best = minimise(line, np.zeros(1))
    slope = float(best.x[0])
    loss = best.at.loss - RIDGE / 2 * slope**2
    steps = _isotonic(rows) if method == "isotonic" else None
    return _Calibrated(slope, float(loss), n, steps)


def _isotonic(rows: Compared) -> Floats:
    """Fit how often people prefer the side that a signal of some size prefers, never falling."""
    decided = rows.only(rows.signal != 0)
    right = np.where(decided.signal > 0, decided.score, 1 - decided.score)
    size, place = np.unique(np.abs(decided.signal), return_inverse=True)
    votes = np.bincount(place)
    share = np.bincount(place, right) / votes
    return np.column_stack([size, scipy.optimize.isotonic_regression(share, weights=votes).x])


@dataclass(frozen=True, slots=True, eq=False)
class _Board:
    """Strengths of the models that others are rated against.

    Attributes
    ----------
    theta : ndarray of shape (n_models,)
        Nats, summing to zero over the anchors; NaN for the others.
    anchors : ndarray of int
        Their positions.
    influence : ndarray of shape (n_rows, n_anchors)
        How far each vote moved each strength.
    """

    theta: Floats
    anchors: Ints
    influence: Floats
    votes: Compared

    def variances(self, contrasts: Floats, voters: bool) -> Floats:
        """Return the variances of contrasts of the anchors, shape (m, n_anchors), by prompt.

        With ``voters`` by voter, and what prompts add: see `rating.leave_out.two_way`.
        """
        moved = self.influence @ contrasts.T
        prompt, rater = self.votes.prompt, self.votes.rater
        by_prompt = clustered_variance(moved, prompt)
        if not voters:
            return by_prompt
        by_voter = clustered_variance(moved, rater)
        cells = clustered_variance(moved, rater * (int(prompt.max()) + 1) + prompt)
        endless = np.full(len(contrasts), np.inf)
        return two_way((by_voter, endless), (by_prompt, endless), cells)[0]


def board_of(rows: Compared, score: Floats, anchors: Ints, n_models: int) -> _Board:
    """Fit Bradley-Terry with soft targets to the comparisons of anchors, with `RIDGE`.

    Parameters
    ----------
    score : ndarray of shape (n_rows,)
        Of side A, from 0 to 1: of a person, or what a judge expects.
    """
    place = np.full(n_models, -1)
    place[anchors] = np.arange(len(anchors))
    among: Bools = np.all(place[rows.pairs] >= 0, axis=1)
    rows, score, k = rows.only(among), score[among], len(anchors)
    a, b = place[rows.pairs].T
    wins = np.zeros((k, k))
    np.add.at(wins, (a, b), score)
    np.add.at(wins, (b, a), 1 - score)
    own = solve(wins, np.zeros(k), ridge=RIDGE).theta
    inverse = np.linalg.inv(hessian(own, wins, ridge=RIDGE))
    residual = score - scipy.special.expit(own[a] - own[b])
    influence = residual[:, None] * (inverse[a] - inverse[b])
    theta = np.full(n_models, np.nan)
    theta[anchors] = own
    return _Board(theta, anchors, influence, rows)


def variance_of_sum(influence: Floats, prompt: Ints, rater: Ints | None = None) -> float:
    """Return the variance of a sum whose terms depend on each other within prompts and raters.

    ``max(V_rater + max(0, V_prompt - V_each), V_each)``, each with ``n / (n - 1)``; infinite
    where there is one cluster of a kind.
    """
    by_prompt = float(clustered_variance(influence, prompt))
    each = float(influence_variance(influence))
    if rater is None:
        return max(by_prompt, each)
    by_rater = float(clustered_variance(influence, rater))
    if not np.isfinite(by_rater + by_prompt):
        return np.inf
    return max(by_rater + max(0.0, by_prompt - each), each)


# Rating of a new model


FEWEST_WON = 5
"""Verdicts that a new model has won, and lost, at least where it has an interval."""
RANKED_FROM = 30
"""Battles with votes from which people's votes rate a new model."""

By = Literal["judge only", "judge and people"]


@dataclass(frozen=True, slots=True, eq=False)
class NewModel:
    """The rating of a model that a judge has compared with models that people know.

    Attributes
    ----------
    rating : float
        Points; the anchors' average is 1000.
    lower, upper : float or None
        None where there is no interval.
    by : {"judge only", "judge and people"}
    calibrated_on : int
        Known models through which the line goes.
    slope : float
        What the judge's ratings move per point of people's.
    beyond : {"best", "worst"} or None
        Which of the known models the judge puts it beyond.
    judge_only : Estimate
        The rating by the judge, whatever people say; ``n`` is the number of verdicts. Without a
        value where the judge is not shown to tell models apart.
    with_votes : Estimate or None
        By votes and verdicts together, see `judge.studies.powered`; ``n`` is the number of battles
        with votes. None where there are none, or too few to rate it by.
    self_preference : Estimate or None
        What was added to the judge's rating because the model is of its own family; ``n`` is the
        number of known models of that family. None for other models, and where none is known.
    known : tuple of dict
        Of each model that people rated, and the judge: its ``model``; ``people`` and ``judge``,
        points, the judge's where the line puts it; the ``error``, people's less the judge's, with
        its ``standard_error`` from sampling alone; and whether it is the judge's ``own``.
    gap : float
        Standard deviation of a judge's errors over models, beyond sampling; points.
    votes : int
        Battles of the new model on which people voted.
    """

    model: str
    judge: str
    signal: Kind
    rating: float
    lower: float | None
    upper: float | None
    by: By
    calibrated_on: int
    level: float
    slope: float
    beyond: Literal["best", "worst"] | None
    judge_only: Estimate
    with_votes: Estimate | None
    self_preference: Estimate | None
    known: tuple[dict[str, Any], ...]
    anchors: tuple[tuple[str, float], ...]
    gap: float
    n_prompts: int
    votes: int
    warnings: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer in words."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        ends = "no interval"
        if self.lower is not None and self.upper is not None:
            ends = f"{self.lower:.0f} to {self.upper:.0f}, {100 * self.level:g}%"
        yield f"{self.model}: {self.rating:.0f} ({ends}), from {self.by}."
        verdicts = (
            f"{plural(self.judge_only.n, 'verdict')} of {self.judge} on "
            f"{plural(self.n_prompts, 'prompt')}."
        )
        if self.judge_only.value is None:
            yield verdicts
            return
        others = [one for one in self.known if not one["own"]]
        off = float(np.mean([abs(one["error"]) for one in others]))
        yield (
            f"{verdicts} Over {plural(len(others), 'known model')}, the spread of people's "
            f"ratings is {1 / self.slope:.1f} times that of the judge's, and the ratings differ "
            f"from the fitted line by {off:.0f} points on average. Beyond sampling error, the "
            f"standard deviation of the judge's error is {self.gap:.0f} points."
        )
        if self.beyond is not None:
            yield (
                f"The judge rates it beyond the {self.beyond} known model: the fitted line is "
                "extrapolated there."
            )
        if self.by == "judge only":
            yield (
                f"It has no rank until {RANKED_FROM} of its battles have votes; "
                f"{self.votes} {'has' if self.votes == 1 else 'have'}."
            )

    @property
    def board(self) -> list[dict[str, Any]]:
        """The anchors by people's ratings, and the new model among them, best first."""
        rows = [
            {"model": model, "rating": rating, "lower": None, "upper": None, "by": "people"}
            for model, rating in self.anchors
        ]
        ends = {"rating": self.rating, "lower": self.lower, "upper": self.upper}
        rows.append({"model": self.model, **ends, "by": self.by})
        return sorted(rows, key=lambda row: (-row["rating"], row["model"]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain, both = asdict(self), self.with_votes
        del plain["anchors"]
        if both is not None:
            plain["with_votes"] = {"rating": both.value, "lower": both.lower, "upper": both.upper}
        return plain | {
            "prompts": plain.pop("n_prompts"),
            "rank": None,
            "board": self.board,
            "sentences": list(self.sentences),
        }


def rate_newcomer(
    votes: Source,
    verdicts: Source,
    model: str,
    options: NewcomerOptions = NewcomerOptions(),  # noqa: B008 - it is frozen
) -> NewModel:
    """Read votes and verdicts, and rate a model by the verdicts.

    Raises
    ------
    DataError
        If a source cannot be read, or an option names what is not there.
    NotIdentifiedError
        See `newcomer`.
    """
    cast = read_rows(votes, unparsed=False)
    given, kind = with_signal(read_rows(verdicts, unparsed=True, marks=True))
    data = study_data(align(cast, given))
    return newcomer(data, judge_of(data, options.judge), model, options, kind)


def newcomer(
    data: StudyData,
    judge: JudgeVerdicts,
    model: str,
    options: NewcomerOptions = NewcomerOptions(),  # noqa: B008 - it is frozen
    kind: Kind = "probabilities",
) -> NewModel:
    """Rate a model by a judge, with an interval for the rating that people would give it.

    Bradley-Terry is fitted to the votes on known models, and to the judge's verdicts on these and
    the new one. Verdicts count as they are; of a judge that grades, probabilities that people
    prefer a side, learnt on votes on other models. The judge's ratings are regressed on people's,
    with errors in both, and the line is turned round with Fieller's interval
    (`Line`). Variances are by prompt, those of people by voter as well.

    It is for models like the known ones. The judge's own family is not: known models of it are no
    part of the line, and a new model of it is moved by their mean distance from it, whose
    uncertainty is added.

    Raises
    ------
    DataError
        If there is no such model, or an anchor is not there.
    NotIdentifiedError
        If the judge did not compare it with a known model, fewer than `FEWEST_KNOWN` models are
        known, votes or verdicts are all ties, or the judge is not shown to tell models apart and
        votes do not rate the model.
    """
    names, k = data.items.models, len(data.items.models)
    if model not in names:
        known = ", ".join(map(repr, names[:3]))
        msg = f"There is no model {model!r} in votes and verdicts; there are {known} and others."
        raise DataError(msg)
    new, level = names.index(model), options.level
    voted, judged = _evidence(data.items, data.people, judge.verdicts)
    on_known = voted.only(~voted.has(new))
    anchors = _anchors(names, on_known, options.anchors)
    _require_verdicts(names, judged, new, anchors)
    family = _family(names, judge.name, options.own)
    learnt = calibrated(on_known, options.calibration)
    target = judged.judge if kind == "verdicts" else learnt.probability(judged.signal)
    judged = replace(judged, score=target)
    rated = _largest(judged, np.append(anchors, new), k, of=new)
    both = np.setdiff1d(rated, [new])
    is_own = np.isin(both, [*family])
    others, own = both[~is_own], both[is_own]
    n = len(others)
    if n < FEWEST_KNOWN:
        raise NotIdentifiedError(
            f"Not enough known models: {plural(n, 'model')} other than the judge's own have both "
            f"votes and verdicts, and {FEWEST_KNOWN} are needed to relate the judge's ratings to "
            "people's."
        )
    n_prompts = 1 + int(max(voted.prompt.max(), judged.prompt.max()))
    equal, average = np.full(len(anchors), 1 / len(anchors)), np.isin(rated, others) / n
    people, moved_people = _strengths(voted, anchors, equal, (k, n_prompts), voters=True)
    by_judge, moved_judge = _strengths(judged, rated, average, (k, n_prompts), voters=False)
    if not np.isfinite(people[1, others]).all():
        msg = "All votes are by one voter, or on one prompt: uncertainty is unknown."
        raise NotIdentifiedError(msg)
    (y, x), (v_y, v_x) = (np.stack([people[i, others], by_judge[i, others]]) for i in range(2))
    shared = float((moved_people * moved_judge).sum(axis=0)[others].mean())
    line = Line.of(y, x, v_y, v_x, shared)
    verdicts = judged.only(judged.has(new) & np.isin(judged.pairs, rated).all(axis=1))
    place, moved, extra, offset = float(by_judge[0, new]), 0.0, 0.0, None
    if new in family and len(own):
        moved, extra = _offset(line, people[:, own], by_judge[:, own])
        half = quantile(level, np.inf) * float(np.sqrt(extra))
        value, lower, upper = (POINTS_PER_NAT * y for y in (moved, moved - half, moved + half))
        offset = Estimate(value, lower, upper, len(own))
    ends = line.interval(place, float(by_judge[1, new]) + line.slope**2 * extra, level)
    of_family = joined([names[m] for m in own])
    warnings = [*data.warnings, *_on_judge(judge, kind)]
    warnings += _on_family(model if new in family else "", of_family, offset)
    votes = int(voted.has(new).sum())
    powered = None
    if votes:
        soft = learnt.probability(_odds_of(judge.verdicts.probability))
        asked = replace(judge.verdicts, probability=soft)
        try:
            powered = replace(_with_votes(data, asked, new, anchors, level), n=votes)
        except NotIdentifiedError as error:
            warnings.append(f"The votes on {model} do not determine a rating yet: {error}")
    alone = Estimate(None, None, None, len(verdicts.score))
    if ends is not None:
        won = float(
            np.where(verdicts.pairs[:, 0] == new, verdicts.score, 1 - verdicts.score).sum()
        )
        no_interval = tuple(
            _without_interval(n, min(won, len(verdicts.score) - won), options.fewest_known)
        )
        warnings += no_interval
        points = to_points(moved + np.array([line.people(place), *ends])).tolist()
        alone = replace(alone, value=points[0])
        if not no_interval:
            alone = replace(alone, lower=points[1], upper=points[2])
    else:
        warnings.append(f"{_NOT_SHOWN}.")
    by: By = "judge only"
    answer = alone
    if votes >= RANKED_FROM and powered is not None and powered.lower is not None:
        answer, by = powered, "judge and people"
    if answer.value is None:
        raise NotIdentifiedError(
            f"{_NOT_SHOWN}: people's ratings may rise or fall with its ratings of "
            f"{plural(n, 'known model')}. Use another judge, or collect more verdicts."
        )
    return NewModel(
        model=model,
        judge=judge.name,
        signal=kind,
        rating=answer.value,
        lower=answer.lower,
        upper=answer.upper,
        by=by,
        calibrated_on=n,
        level=level,
        slope=line.slope,
        beyond="best" if place > x.max() else "worst" if place < x.min() else None,
        judge_only=alone,
        with_votes=powered,
        self_preference=offset,
        known=tuple(
            _known(names[m], line, people[:, m], by_judge[:, m], bool(m in own))
            for m in both.tolist()
        ),
        anchors=tuple(
            zip(
                (names[m] for m in anchors.tolist()),
                to_points(people[0, anchors]).tolist(),
                strict=True,
            )
        ),
        gap=POINTS_PER_NAT * float(np.sqrt(line.miss)) / abs(line.slope),
        n_prompts=len(np.unique(verdicts.prompt)),
        votes=votes,
        warnings=tuple(warnings),
    )


def _evidence(items: Items, people: Labels, verdicts: Labels) -> tuple[Compared, Compared]:
    """Give a row a vote, and a row an item with a verdict, whose scores are not known.

    A judge's orders and repetitions of an item are averaged, and rounded: 0.9 and 1 - 0.9 are
    signals of one size, and cancel.
    """
    read = verdicts.only(~np.isnan(verdicts.probability))
    signal = read.mean(_odds_of(read.probability), items.n).round(12)
    judge = read.mean((read.label + 1) / 2, items.n)
    asked = np.flatnonzero(~np.isnan(judge))
    nobody = np.full(len(asked), np.nan)
    judged = Compared(
        items.pairs[asked], items.prompt[asked], asked, nobody, signal[asked], judge[asked]
    )
    return Compared.of(items, people, signal, judge), judged


def _known(name: str, line: Line, people: Floats, judge: Floats, own: bool) -> dict[str, Any]:
    """Give how far a model that both rated is off the line, as `NewModel.known`."""
    (y, v_y), x, v_x = people, float(judge[0]), judge[1]
    by_people, by_judge = to_points(np.array([y, line.people(x)])).tolist()
    return {
        "model": name,
        "people": by_people,
        "judge": by_judge,
        "error": by_people - by_judge,
        "standard_error": POINTS_PER_NAT * float(np.sqrt(v_y + v_x / line.slope**2)),
        "own": own,
    }


def _offset(line: Line, people: Floats, judge: Floats) -> tuple[float, float]:
    """Return what people give models of the judge's family beyond the line, and its variance."""
    n = people.shape[1]
    moved = [y - line.people(x) for y, x in zip(people[0], judge[0], strict=True)]
    around = line.miss + judge[1] + line.scatter / line.n
    variance = people[1] + around / line.slope**2
    return float(np.mean(moved)), float(variance.sum()) / n**2


def _anchors(names: Sequence[str], rows: Compared, wanted: Sequence[str]) -> Ints:
    """Find the models that people compared with each other, the largest group that hangs together.

    Raises `DataError` for a name that fits none, `NotIdentifiedError` for too few.
    """
    met = np.unique(rows.pairs)
    for pattern in wanted:
        if not any(fnmatchcase(names[one], pattern) for one in met):
            raise DataError(f"No model with votes matches --anchors {pattern!r}.")
    if wanted:
        fits = [any(fnmatchcase(names[one], p) for p in wanted) for one in met]
        met = met[np.array(fits)]
    anchors = _largest(rows, met, len(names))
    if len(anchors) < FEWEST_KNOWN:
        some = joined([names[one] for one in anchors])
        raise NotIdentifiedError(
            f"Not enough known models: people have compared {some or 'none'} with each other, and "
            f"{FEWEST_KNOWN} are needed to relate a judge's ratings to people's."
        )
    return anchors


def _require_verdicts(names: Sequence[str], judged: Compared, new: int, anchors: Ints) -> None:
    name = names[new]
    own = judged.only(judged.has(new))
    against = np.isin(own.pairs, anchors).any(axis=1)
    if not against.any():
        judged_models = [names[one] for one in np.unique(judged.pairs)]
        raise NotIdentifiedError(
            f"The judge has no verdict on {name!r} against a model that people know: have it "
            f"compare {name!r} with some of them (arena judge run). It has verdicts on "
            f"{joined(judged_models[:5])}{' and others' if len(judged_models) > 5 else ''}."
        )
    if len(np.unique(own.prompt[against])) < 2:
        raise NotIdentifiedError(
            f"All verdicts on {name!r} are on one prompt: the uncertainty of a rating needs at "
            "least two."
        )


def _strengths(
    rows: Compared, models: Ints, average: Floats, shape: tuple[int, int], *, voters: bool
) -> tuple[Floats, Floats]:
    """Fit strengths against a weighted average of them, of this many models and prompts.

    Returns strengths with their variances, NaN of other models, and how far each prompt moves
    each of them.
    """
    k, n_prompts = shape
    board = board_of(rows, rows.score, models, k)
    own, contrasts = board.theta[models], np.eye(len(models)) - average
    there, moved = np.full((2, k), np.nan), np.zeros((n_prompts, k))
    there[:, models] = own - average @ own, board.variances(contrasts, voters)
    moved[:, models] = sums_within(board.votes.prompt, board.influence @ contrasts.T, n_prompts)
    return there, moved


def _largest(rows: Compared, models: Ints, n_models: int, of: int | None = None) -> Ints:
    """Return which of some models comparisons join: the largest group, or that of a model."""
    among = rows.pairs[np.isin(rows.pairs, models).all(axis=1)]
    graph = scipy.sparse.coo_array((np.ones(len(among)), among.T), shape=(n_models, n_models))
    _, group = scipy.sparse.csgraph.connected_components(graph, directed=False)
    wanted = np.bincount(group[models], minlength=1).argmax() if of is None else group[of]
    return np.sort(models[group[models] == wanted])


_NOT_SHOWN = "We do not find that the judge distinguishes models"


def _without_interval(n: int, won: float, fewest: int) -> Iterator[str]:
    """Name what is missing for an interval."""
    if n < fewest:
        yield (
            f"No interval from the judge alone: {plural(n, 'known model')}, {fewest} needed to "
            "relate a judge's ratings to people's."
        )
    if won < FEWEST_WON:
        yield (
            f"No interval from the judge alone: the model won or lost fewer than {FEWEST_WON} of "
            "its verdicts. Compare it with more models of similar strength, or on more prompts."
        )


def _family(names: Sequence[str], judge: str, wanted: Sequence[str]) -> set[int]:
    """Find the models of the judge's family; raises `DataError` for a name that fits none."""
    if not wanted:
        own = own_model(judge, names)
        return set() if own is None else {names.index(own)}
    family: set[int] = set()
    for pattern in wanted:
        fits = {k for k, name in enumerate(names) if fnmatchcase(name, pattern)}
        if not fits:
            raise DataError(f"No model matches --own {pattern!r}.")
        family |= fits
    return family


def _with_votes(
    data: StudyData, verdicts: Labels, new: int, anchors: Ints, level: float
) -> Estimate:
    """Rate the new model by votes and soft verdicts together; raises as `powered_ratings`."""
    names = data.items.models
    powered = powered_ratings(data.items, data.people, verdicts, level=level)
    at = powered.models.index(names[new])
    known = [powered.models.index(names[one]) for one in anchors]
    theta = powered.ratings.theta
    rating = theta[at] - theta[known].mean()
    half = (powered.ratings.upper - theta)[at]
    if powered.ratings.averaged[at]:  # the average holds the model itself
        half *= len(theta) / (len(theta) - 1)
    points = to_points(np.array([rating, rating - half, rating + half]))
    return Estimate(float(points[0]), finite(points[1]), finite(points[2]), powered.n)


def _on_judge(judge: JudgeVerdicts, kind: Kind) -> list[str]:
    warnings = []
    if kind == "verdicts":
        warnings.append(
            "The judge gives verdicts without probabilities, marks or confidence: each counts as "
            "a win, a loss or a tie."
        )
    if judge.n_unread:
        warnings.append(
            f"{plural(judge.n_unread, 'verdict')} could not be parsed and are excluded."
        )
    silent = int(np.isnan(judge.verdicts.probability).sum())
    if silent:
        warnings.append(f"{plural(silent, 'verdict')} without a probability are excluded.")
    return warnings


def _on_family(newcomer: str, names: str, offset: Estimate | None) -> list[str]:
    """Describe what became of models of the judge's own family; the new model may be one."""
    if not newcomer:
        return [f"Excluded from the interval, as the judge's own: {names}."] if names else []
    if offset is None or offset.value is None:
        return [
            f"{newcomer} is of the judge's own family, and no other model of it is known: the "
            "interval does not include the judge's self-preference."
        ]
    favours = "above" if offset.value < 0 else "below"
    return [
        f"{newcomer} is of the judge's own family. The judge rates models of it ({names}) "
        f"{abs(offset.value):.0f} points {favours} people: {points_of(offset)} are added, "
        "with uncertainty."
    ]
