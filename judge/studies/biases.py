"""What moves a judge beyond people: position, length, format, refusals and its own model."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from judge.studies.boards import (
    POSITION,
    Preferences,
    common_models,
    from_influence,
    preferences,
)
from judge.studies.estimates import FEW_PROMPTS, Estimate, gap_of, percent_of, plural
from judge.studies.items import Items, Labels
from rating.elo import POINTS_PER_NAT
from rating.errors import NotIdentifiedError
from rating.leave_out import influence_variance
from rating.typing import Floats
from rating.uncertainty.student import quantile

LENGTH, FORMAT, REFUSAL, SELF = "length", "format", "refusal", "self"
TERMS = (POSITION, LENGTH, FORMAT, REFUSAL, SELF)
SHORTEST = 3
"""Letters and digits that a judge's name and a model's must share to be taken as one."""
MIN_OTHERS = 3
_NO_SPREAD = 1e-9


@dataclass(frozen=True, slots=True)
class Effect:
    """What one more of a term is worth, in points; None where it was not fitted.

    Attributes
    ----------
    people, judge : Estimate or None
        ``n`` is the number of votes, of verdicts.
    difference : Estimate or None
        The judge's less people's: its bias. None unless both were fitted.
    """

    people: Estimate | None
    judge: Estimate | None
    difference: Estimate | None

    def to_dict(self) -> dict[str, Any] | None:
        """Return plain values for JSON; None where the difference has none."""
        return None if self.difference is None else asdict(self)


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """How a judge places itself; in points of its own board.

    Attributes
    ----------
    excess : Estimate
        By how much it stands above the line through the other models; ``n`` is their number. The
        interval leaves out 0 only where a model that is nobody's own would seldom lie so far off.
    scale : float
        Slope of that line: nats of the judge for one of people.
    others_off : float
        Root mean square by which the other models lie off it. An excess of this size is what
        the judge does to any model.
    between : float
        Standard deviation of what it does to a model, without the uncertainty of the ratings.
    """

    excess: Estimate
    scale: float
    others_off: float
    between: float


@dataclass(frozen=True, slots=True)
class Biases:
    """How differently a judge and people are moved.

    Attributes
    ----------
    effects : mapping of str to Effect
        In points: ``position`` for being shown first, ``length`` for being twice as long,
        ``format`` for twice the markdown, ``refusal`` for declining what was asked. ``self`` is
        by how much the judge's own model leads the others' mean; its difference is
        `SelfPreference.excess`.
    own_model : str or None
        The model that is the judge's own, as far as names tell.
    self_preference : SelfPreference or None
        None without the judge's own model, or where the data do not determine it.
    moderation : ModerationGap or None
        None where no refusal stood against an answer.
    warnings : tuple of str
    """

    effects: Mapping[str, Effect]
    own_model: str | None
    self_preference: SelfPreference | None
    warnings: tuple[str, ...]
    moderation: "ModerationGap | None" = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {name: effect.to_dict() for name, effect in self.effects.items()}


@dataclass(frozen=True, slots=True)
class ModerationGap:
    """How often an answer that declines is preferred to one that does not, a tie half.

    Attributes
    ----------
    people, judge : Estimate
        ``n`` is the number of votes, of verdicts, on such pairs.
    difference : Estimate
        The judge's less people's.

    References
    ----------
    .. [1] S. Pasch, "LLM Content Moderation and User Satisfaction", 2025 (arXiv:2505.15365).
    """

    people: Estimate
    judge: Estimate
    difference: Estimate

    def sentence(self, judge: str) -> str:
        """Report how often an answer that declines wins, with people and with a judge."""
        return (
            "An answer that declines wins against one that does not with people in "
            f"{percent_of(self.people)} of {self.people.n:,} votes, and with {judge} in "
            f"{percent_of(self.judge)} of {self.judge.n:,} verdicts; the difference is "
            f"{gap_of(self.difference)} percentage points."
        )


def biases(
    items: Items,
    people: Labels,
    judge: Labels,
    *,
    own_model: str | None = None,
    boards: tuple[Preferences, Preferences] | None = None,
    level: float = 0.95,
) -> Biases:
    """Fit one model to votes and to verdicts, and compare the slopes.

    ::

        logit P(side A) = theta_a - theta_b + position first + length gap + format gap

    Strengths are fitted anew for each, so a judge that rates models as people do and one that
    does not are measured alike. Slopes are in points, ``400 / ln 10`` a nat, each on the scale of
    its own board. A term that a source leaves without a value is left out of its fit, with a
    warning. People who like longer answers are no bias of the judge: the difference is.

    Parameters
    ----------
    own_model : str, optional
        The judge's own name among the models.
    boards : tuple of Preferences, optional
        By people and by the judge, of which the leads of its own model are shown; by default
        those with all terms.

    Returns
    -------
    Biases
        Intervals are the sandwich by prompt, joint over votes and verdicts of the same prompt.

    Raises
    ------
    NotIdentifiedError
        If votes, or verdicts, do not give the models finite strengths.

    References
    ----------
    .. [1] L. Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena", NeurIPS
       2023, section 3.3 (position, verbosity, self-enhancement).
    """
    sources = {"votes": people, "verdicts": judge}
    warnings: list[str] = []
    fits = {name: _fitted(items, labels, name, warnings) for name, labels in sources.items()}
    votes, verdicts = fits["votes"], fits["verdicts"]
    effects = {term: _effect(votes, verdicts, term, level) for term in (POSITION, LENGTH, FORMAT)}
    effects[REFUSAL] = _of_refusals(items, (people, judge), (votes, verdicts), warnings, level)
    effects[SELF], own = Effect(None, None, None), None
    if own_model is not None:
        own = self_preference(votes, verdicts, own_model, level=level)
        if own is None:
            warnings.append(_no_self(own_model))
        else:
            leads = _leads(boards or (votes, verdicts), own_model, level)
            effects[SELF] = Effect(leads[0], leads[1], own.excess)
    warnings += _few(fits)
    gap = moderation_gap(items, people, judge, level=level)
    return Biases(effects, own_model, own, tuple(warnings), gap)


def _of_refusals(
    items: Items,
    labels: tuple[Labels, Labels],
    boards: tuple[Preferences, Preferences],
    warnings: list[str],
    level: float,
) -> Effect:
    """Fit what declining is worth, beside all other terms; these stay as they are without it."""
    gap = items.gaps.get(REFUSAL, np.full(items.n, np.nan))
    fitted: list[Preferences | None] = []
    for source, rows, board in zip(("votes", "verdicts"), labels, boards, strict=True):
        if not np.nan_to_num(gap[rows.item]).any():
            fitted.append(None)
            continue
        terms = (*board.slopes, REFUSAL)
        try:
            fitted.append(preferences(items, rows, terms, people=source == "votes"))
        except NotIdentifiedError as error:
            warnings.append(f"Refusals cannot be told from the {source}: {error}")
            fitted.append(None)
    people, judge = fitted
    if people is not None and judge is not None:
        return _effect(people, judge, REFUSAL, level)
    alone = [
        None if one is None else _in_points(one.slopes[REFUSAL], one.pull(REFUSAL), one.n, level)
        for one in fitted
    ]
    return Effect(alone[0], alone[1], None)


def moderation_gap(
    items: Items, people: Labels, judge: Labels, *, level: float = 0.95
) -> ModerationGap | None:
    """Compare how often a refusal wins against an answer, with people and with a judge.

    Of pairs of which one answer declines and the other does not; intervals by prompt, joint over
    votes and verdicts. None where there are no such votes, or no such verdicts.
    """
    gap = items.gaps.get(REFUSAL, np.full(items.n, np.nan))
    shares = []
    for rows in (people, judge):
        side = gap[rows.item]
        there = np.abs(side) == 1
        if not there.any():
            return None
        won = (1 + rows.label[there] * side[there]) / 2
        share, n = float(won.mean()), int(there.sum())
        prompt = items.prompt[rows.item[there]]
        pull = np.bincount(prompt, won - share, items.n_prompts) / n
        shares.append((share, pull, n))
    (by_people, moved_people, n_people), (by_judge, moved_judge, n_judge) = shares
    return ModerationGap(
        from_influence(by_people, moved_people, n=n_people, level=level),
        from_influence(by_judge, moved_judge, n=n_judge, level=level),
        from_influence(by_judge - by_people, moved_judge - moved_people, n=n_judge, level=level),
    )


def _fitted(items: Items, labels: Labels, source: str, warnings: list[str]) -> Preferences:
    """Fit all terms that are known, or as many of them as the data determine."""
    terms = _known_terms(items, labels, source, warnings)
    people = source == "votes"
    try:
        return preferences(items, labels, terms, people=people)
    except NotIdentifiedError:
        fitted_terms: tuple[str, ...] = ()
        fit = preferences(items, labels, people=people)
        for term in terms:
            try:
                fit = preferences(items, labels, (*fitted_terms, term), people=people)
                fitted_terms = (*fitted_terms, term)
            except NotIdentifiedError as error:
                warnings.append(f"{term.capitalize()} cannot be told from the {source}: {error}")
        return fit


def _known_terms(
    items: Items, labels: Labels, source: str, warnings: list[str]
) -> tuple[str, ...]:
    terms = [POSITION] if (labels.first != 0).any() else []
    if not terms:
        warnings.append(
            f"The {source} do not say what was shown first, or are of both orders together: "
            "no effect of the position."
        )
    for term in (LENGTH, FORMAT):
        gap = items.gaps.get(term, np.full(items.n, np.nan))[labels.item]
        if np.isnan(gap).all():
            warnings.append(f"Nothing is known of the {term} of what the {source} compared.")
        else:
            terms.append(term)
            if np.isnan(gap).any():
                share = 100 * float(np.isnan(gap).mean())
                warnings.append(f"{share:.1f} % of the {source} are left out: no {term} known.")
    return tuple(terms)


def _effect(people: Preferences, judge: Preferences, term: str, level: float) -> Effect:
    alone = [
        _in_points(board.slopes[term], board.pull(term), board.n, level)
        if term in board.slopes
        else None
        for board in (people, judge)
    ]
    if None in alone:
        return Effect(alone[0], alone[1], None)
    apart = judge.slopes[term] - people.slopes[term]
    pull = judge.pull(term) - people.pull(term)
    return Effect(alone[0], alone[1], _in_points(apart, pull, judge.n, level))


def _in_points(value: float, pull: Floats, n: int, level: float) -> Estimate:
    return from_influence(POINTS_PER_NAT * value, POINTS_PER_NAT * pull, n=n, level=level)


def _leads(boards: tuple[Preferences, Preferences], own: str, level: float) -> list[Estimate]:
    """Estimate the lead of a model over the mean of the others on each board, in points."""
    names = common_models(*boards)
    at, others = names.index(own), len(names) - 1
    times = len(names) / others  # strengths sum to zero: of the mean of the others
    leads = []
    for board in boards:
        theta, influence = board.of_models(names)
        leads.append(_in_points(float(theta[at]) * times, influence[:, at] * times, others, level))
    return leads


def _few(fits: dict[str, Preferences]) -> list[str]:
    sizes = {name: int((f.influence != 0).any(axis=1).sum()) for name, f in fits.items()}
    return [
        f"The {name} are of {plural(n, 'prompt')}: under {FEW_PROMPTS}, intervals of biases "
        "are too narrow."
        for name, n in sizes.items()
        if n < FEW_PROMPTS
    ]


def _no_self(name: str) -> str:
    return (
        f"Whether the judge favours {name!r} cannot be told: that needs it and three others on "
        "both boards, and people to tell these apart."
    )


def own_model(judge: str, models: Sequence[str]) -> str | None:
    """Find the judge among the models: the name that begins like its own, the shortest of many.

    Examples
    --------
    >>> own_model("gpt-3.5", ["GPT 3.5 Turbo", "GPT 4", "GPT 3.5 Turbo (16k)"])
    'GPT 3.5 Turbo'
    >>> own_model("gpt-4 (both orders)", ["gpt-3.5-turbo", "gpt-4"])
    'gpt-4'
    """
    name = _bare(judge)
    alike = [
        model
        for model in models
        if min(len(_bare(model)), len(name)) >= SHORTEST
        and (_bare(model).startswith(name) or name.startswith(_bare(model)))
    ]
    return min(alike, key=lambda model: (abs(len(_bare(model)) - len(name)), model), default=None)


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.rpartition("/")[2].casefold())


def self_preference(
    people: Preferences, judge: Preferences, name: str, *, level: float = 0.95
) -> SelfPreference | None:
    """Measure how far a judge's own model stands off the line through the others.

    With a and b the strengths by people and by the judge, over the other models

    ::

        scale = (cov(a, b) - noise_ab) / (var(a) - noise_a)
        excess = (b_self - mean b) - scale (a_self - mean a)

    A judge whose verdicts are more decided than votes has a scale above 1, and a strong model
    stands higher with it without favour. The noise terms are what the uncertainty of strengths
    adds to their spread; without them the scale would be too small, and a strong judge would seem
    to favour itself.

    A judge lifts and lowers models for many reasons, and its own is one more of them. So the
    excess is judged as a further model drawn from those: with m others, ``s^2 = RSS / (m - 2)``
    of their residuals off the line and ``k = 1 + 1/m + (a_self - mean a)^2 / var(a)``, half of the
    interval is the larger of

    ::

        t_(m - 2) sqrt(k s^2)    and    t_(U - 1) sqrt(V + k between^2)

    The first is the prediction interval of the regression [3]_: their scatter, the uncertainty of
    their ratings included. The second is for a model that is less certain than the others: V is
    the excess' sampling variance, the delta method on the U prompts' influences on both boards,
    and ``between^2`` what is left of ``s^2`` without that of the residuals.

    Returns
    -------
    SelfPreference or None
        None where the model is not on both boards with `MIN_OTHERS` others, or where people's
        ratings of the others spread no more than their uncertainty.

    References
    ----------
    .. [1] A. Panickssery, S. R. Bowman and S. Feng, "LLM Evaluators Recognize and Favor Their
       Own Generations", NeurIPS 2024. There the scales are taken as equal.
    .. [2] W. A. Fuller, Measurement Error Models, 1987, section 1.2.
    .. [3] J. P. T. Higgins, S. G. Thompson and D. J. Spiegelhalter, "A re-evaluation of
       random-effects meta-analysis", Journal of the Royal Statistical Society A 172(1), 2009,
       section 4 (prediction for a new unit, t with m - 2).
    """
    others = tuple(sorted(set(people.models) & set(judge.models) - {name}))
    on_both = name in people.models and name in judge.models
    if not on_both or len(others) < MIN_OTHERS:
        return None
    (a, moved_a), (b, moved_b) = (board.of_models((*others, name)) for board in (people, judge))
    own_a, own_b, m = a[-1], b[-1], len(others)
    x, y = a[:-1] - a[:-1].mean(), b[:-1] - b[:-1].mean()
    spread = x @ x - _noise(moved_a, moved_a)
    if spread <= 0:
        return None
    scale = float((x @ y - _noise(moved_a, moved_b)) / spread)
    ahead = own_a - a[:-1].mean()
    excess = float(own_b - b[:-1].mean() - scale * ahead)
    by_b = np.r_[-1 / m - ahead * x / spread, 1.0]
    by_a = np.r_[scale / m - ahead * (y - 2 * scale * x) / spread, -scale]
    k = 1 + 1 / m + ahead**2 / spread
    off = y - scale * x
    scatter = float(off @ off) / (m - 2)
    between = max(scatter - _residual_noise(moved_b - scale * moved_a, x) / (m - 2), 0.0)
    pull = moved_a @ by_a + moved_b @ by_b
    half = max(
        quantile(level, m - 2) * math.sqrt(k * scatter), _uncertain(pull, k * between, level)
    )
    return SelfPreference(
        _with_half(excess, half, m),
        scale,
        POINTS_PER_NAT * float(np.sqrt(np.mean(off**2))),
        POINTS_PER_NAT * math.sqrt(between),
    )


def _with_half(value: float, half: float, n: int) -> Estimate:
    """Give a value its interval; none where the two boards are one."""
    if half < _NO_SPREAD:
        return Estimate(POINTS_PER_NAT * value, None, None, n)
    lower, upper = POINTS_PER_NAT * (value - half), POINTS_PER_NAT * (value + half)
    return Estimate(POINTS_PER_NAT * value, lower, upper, n)


def _uncertain(pull: Floats, between: float, level: float) -> float:
    """Return half of the interval that sampling and scatter add up to."""
    n_prompts = max(int((pull != 0).sum()), 2)
    return quantile(level, n_prompts - 1) * math.sqrt(
        influence_variance(pull, n_prompts) + between
    )


def _residual_noise(moved: Floats, x: Floats) -> float:
    """Return what uncertainty adds to the squares of the others' residuals off the line."""
    around = moved[:, :-1] - moved[:, :-1].mean(axis=1, keepdims=True)
    around -= np.outer(around @ x / (x @ x), x)
    return float((around**2).sum())


def _noise(first: Floats, second: Floats) -> float:
    """Return the sum of the covariances of the others' strengths around their mean."""
    parts = [
        moved[:, :-1] - moved[:, :-1].mean(axis=1, keepdims=True) for moved in (first, second)
    ]
    return float((parts[0] * parts[1]).sum())
