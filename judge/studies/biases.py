"""Biases of judges and raters: position, length, format, refusals, and favoured models.

`biases` fits one model to votes and to verdicts and compares the slopes. `self_preference` and
`favouritism` measure which models a judge favours, beyond what a fair judge of the same strength
would give them. `warn_of_sides` finds raters who follow the side, or contradict their earlier
choices.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import scipy

from judge.ifeval import wilson
from judge.studies.alignment import LIST_TERM
from judge.studies.boards import POSITION, Preferences, common_models, from_influence, preferences
from judge.studies.estimates import (
    FEW_PROMPTS,
    SHARE,
    Draws,
    Estimate,
    Raters,
    clustered,
    gap_of,
    percent,
    percent_of,
    ratio,
)
from judge.studies.gates import MIN_ITEMS, MIN_MODELS, MIN_PROMPTS
from judge.studies.rows import Items, Labels
from rating.covariance import effective_number
from rating.errors import NotIdentifiedError
from rating.leave_out import (
    MOST_CLUSTERS,
    influence_variance,
    jackknife_variance,
    quantile,
    quantiles,
    sums_within,
    two_way,
)
from rating.sentences import Sentence, plural
from rating.typing import Floats, Ints
from rating.variants import POINTS_PER_NAT

# Position, length, format and own model


LENGTH, FORMAT, REFUSAL, SELF = "length", "format", "refusal", "self"
TERMS = (POSITION, LENGTH, FORMAT, REFUSAL, SELF)
PREFERRED = (POSITION, LENGTH, FORMAT, LIST_TERM)
"""What labels may prefer, in shares."""
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
class _SelfPreference:
    """How a judge places itself; in points of its own board.

    Attributes
    ----------
    excess : Estimate
        By how much it stands above the line through the other models; ``n`` is their number. The
        interval excludes 0 only where a model that is nobody's own would seldom lie so far off.
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
        `_SelfPreference.excess`.
    own_model : str or None
        The model that is the judge's own, as far as names tell.
    self_preference : SelfPreference or None
        None without the judge's own model, or where the data do not determine it.
    moderation : mapping of str to Estimate, or None
        As of `moderation_gap`.
    warnings : tuple of str
    """

    effects: Mapping[str, Effect]
    own_model: str | None
    self_preference: _SelfPreference | None
    warnings: tuple[str, ...]
    moderation: Mapping[str, Estimate] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {name: effect.to_dict() for name, effect in self.effects.items()}


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

    Strengths are fitted again for each, so a judge that rates models as people do and one that
    does not are measured alike. Slopes are in points, ``400 / ln 10`` a nat, each on the scale of
    its own board. A term that a source leaves without a value is excluded from its fit, with a
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
            warnings.append(
                f"Whether the judge favours {own_model!r} is not estimated: this needs that model "
                "and three others on both boards, and votes that distinguish them."
            )
        else:
            leads = _leads(boards or (votes, verdicts), own_model, level)
            effects[SELF] = Effect(leads[0], leads[1], own.excess)
    warnings += _few(fits)
    gap = moderation_gap(items, people, judge, level=level)
    return Biases(effects, own_model, own, tuple(warnings), gap)


def preferred(items: Items, labels: Labels, term: str, draws: Draws) -> Estimate:
    """Estimate how often labels that prefer a side prefer the one with more of a term.

    That is the answer shown first for ``position``, else the one with more of the feature of that
    name: the longer one, or the only one with a list. ``n`` labels where one side has more.
    """
    sides = labels.first if term == POSITION else np.sign(items.gaps[term][labels.item])
    won = labels.label * np.nan_to_num(sides)
    each = np.column_stack([won > 0, won != 0]).astype(np.float64)
    stats = sums_within(items.prompt[labels.item], each, items.n_prompts)
    raters, n = Raters.of(items, labels, each), int(each[:, 1].sum())
    return clustered(stats, ratio, draws, n=n, mean=SHARE, raters=raters)


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
            warnings.append(f"Refusals are not estimated from the {source}: {error}")
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
) -> dict[str, Estimate] | None:
    """Compare how often a refusal wins against an answer, with people and with a judge.

    Of pairs of which one answer declines and the other does not, a tie half: with ``people`` and
    with the ``judge``, ``n`` the number of votes and of verdicts, and the ``difference``, the
    judge's less people's. Intervals are by prompt, joint over votes and verdicts. None where there
    are no such votes, or no such verdicts.

    References
    ----------
    .. [1] S. Pasch, "LLM Content Moderation and User Satisfaction", 2025 (arXiv:2505.15365).
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
    pull = moved_judge - moved_people
    return {
        "people": from_influence(by_people, moved_people, n=n_people, level=level),
        "judge": from_influence(by_judge, moved_judge, n=n_judge, level=level),
        "difference": from_influence(by_judge - by_people, pull, n=n_judge, level=level),
    }


def on_moderation(gap: Mapping[str, Estimate], judge: str) -> str:
    """Report how often an answer that declines wins, with people and with a judge."""
    return (
        "An answer that declines wins against one that does not in "
        f"{percent_of(gap['people'])} of {gap['people'].n:,} votes by people and in "
        f"{percent_of(gap['judge'])} of {gap['judge'].n:,} verdicts of {judge}; the "
        f"difference is {gap_of(gap['difference'])} percentage points."
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
                warnings.append(
                    f"The effect of {term} is not estimated from the {source}: {error}"
                )
        return fit


def _known_terms(
    items: Items, labels: Labels, source: str, warnings: list[str]
) -> tuple[str, ...]:
    terms = [POSITION] if (labels.first != 0).any() else []
    for term in (LENGTH, FORMAT):
        gap = items.gaps.get(term, np.full(items.n, np.nan))[labels.item]
        if not np.isnan(gap).all():
            terms.append(term)
            if np.isnan(gap).any():
                share = 100 * float(np.isnan(gap).mean())
                warnings.append(f"{share:.1f}% of the {source} are excluded: {term} unknown.")
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
        f"The {name} cover {plural(n, 'prompt')}: too few for intervals of biases ({FEW_PROMPTS})."
        for name, n in sizes.items()
        if n < FEW_PROMPTS
    ]


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
) -> _SelfPreference | None:
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
    return _SelfPreference(
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


# Favouritism


ERROR = 0.05
"""Shared by all models that are tested: so often a fair judge is said to favour any."""
_HIGHEST = 3.0
_SIGNS = (1, -1, -1, 1, 1)
"""Of the moments below, seen from side B."""
_AT_ONCE = 4_000_000
"""Values of tables in memory at a time."""


def favouritism(items: Items, people: Labels, judge: Labels) -> dict[str, Estimate]:
    """Estimate for each model by how much of a win per item the judge favours it.

    With j and p the mean score of model m less 1/2 on an item, by verdicts and by votes, J_m and
    P_m their means over the items of m, and N_k items of model k without m::

        b_m   = J_m - kappa P_m
        kappa = sum_k (N_k J_k P_k - mean_k j p) / sum_k (N_k P_k^2 - mean_k p^2)

    over the models k except m, from 0 to 3. The judge's score less people's is no bias: a judge
    with less noise than a person gives strong models more. kappa is how much more, and the means
    of products take off what the noise of votes adds. All of this is computed again without each
    voter, each prompt, and each voter's votes on a prompt; with these variances the limits are
    ``b_m -+ t sqrt(max(V_voter + max(0, V_prompt - V_both), V_prompt, V_both))``, Student's t at
    `ERROR` over the models, with one less than the effective voters or prompts of m, the fewer.
    A judge that favours the best model also seems to be a stronger judge, which hides it.

    Returns
    -------
    dict of str to Estimate
        ``n`` is the number of items. No limits for a model on fewer than `MIN_ITEMS` items or
        `MIN_PROMPTS` prompts; empty under `MIN_MODELS` models.
    """
    scores = [one.mean(one.label / 2, items.n) for one in (people, judge)]
    used = ~np.isnan(scores[0] + scores[1]) & (items.pairs[:, 0] != items.pairs[:, 1])
    known, codes = np.unique(items.pairs[used], return_inverse=True)
    if len(known) < MIN_MODELS:
        return {}
    pairs, k, prompt = codes.reshape(-1, 2), len(known), items.prompt[used]
    p, j = (one[used] for one in scores)
    cast = people.only(used[people.item])
    item = (np.cumsum(used) - 1)[cast.item]
    n_raters = int(cast.rater.max(initial=0)) + 1
    cells, cell = np.unique(item * n_raters + cast.rater, return_inverse=True)
    at, voter = np.divmod(cells, n_raters)
    left = np.bincount(item)[at] - np.bincount(cell)
    votes = np.bincount(item, cast.label / 2)[at] - np.bincount(cell, cast.label / 2)
    others = np.divide(votes, left, out=np.zeros(len(at)), where=left > 0)
    moments = _moments(np.ones(len(p)), j, p)
    without = np.where(left[:, None] > 0, _moments(np.ones(len(at)), j[at], others), 0.0)
    total = _tables(pairs, moments, np.zeros(len(p), dtype=np.int64), 1, k)
    value = _beyond(total, np.zeros(k))[0]
    clusters = (prompt, voter, voter * items.n_prompts + prompt[at])
    changes = (-moments, without - moments[at], without - moments[at])
    of_pairs = (pairs, pairs[at], pairs[at])
    by_prompt, by_voter, by_both = (
        _variance(total, *one, value) for one in zip(of_pairs, changes, clusters, strict=True)
    )
    effective = [_effective(*one, k) for one in zip(of_pairs[:2], clusters[:2], strict=True)]
    df = np.minimum(*effective) - 1
    two = two_way((by_voter, df), (by_prompt, df), by_both)[0]
    error = np.sqrt(np.maximum(two, np.maximum(by_prompt, by_both)))
    n = np.bincount(pairs.ravel())
    on_prompts = np.unique(pairs.ravel() * items.n_prompts + prompt.repeat(2)) // items.n_prompts
    tested = (n >= MIN_ITEMS) & (np.bincount(on_prompts) >= MIN_PROMPTS) & (df >= 1) & (error > 0)
    level = 1 - ERROR / max(1, int(tested.sum()))
    reach = quantiles(level, np.where(tested, df, 1.0)) * error
    return {
        items.models[model]: Estimate(
            float(value[i]),
            float(value[i] - reach[i]) if tested[i] else None,
            float(value[i] + reach[i]) if tested[i] else None,
            int(n[i]),
        )
        for i, model in enumerate(known.tolist())
    }


def _moments(n: Floats, j: Floats, p: Floats) -> Floats:
    return np.column_stack([n, j, p, j * p, p * p])


def _tables(pairs: Ints, moments: Floats, cluster: Ints, n: int, k: int) -> Floats:
    """Sum moments of items, seen from each model against each other, shape (n, 5, k, k)."""
    cell = cluster * k**2 + pairs @ np.array([k, 1])
    sums = [np.bincount(cell, one, n * k**2).reshape(n, k, k) for one in moments.T]
    return np.stack(
        [one + sign * one.swapaxes(1, 2) for one, sign in zip(sums, _SIGNS, strict=True)], axis=1
    )


def _beyond(tables: Floats, otherwise: Floats) -> Floats:
    """Return ``b_m`` of each sum of moments, shape (n, k); ``otherwise`` without an item of m."""
    own = tables.sum(axis=-1)
    n, j, p, jp, pp = np.moveaxis(own[..., None] - tables, 1, 0)  # of model k, without m
    size = np.where(np.eye(n.shape[-1], dtype=bool) | (n <= 0), np.inf, n)
    followed, spread = (
        ((one * p - noise) / size).sum(axis=1) for one, noise in ((j, jp), (p, pp))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa = np.where(spread > 0, followed / spread, np.where(followed > 0, np.inf, 0.0))
        kappa = np.clip(np.nan_to_num(kappa), 0.0, _HIGHEST)
        return np.where(own[:, 0] > 0, (own[:, 1] - kappa * own[:, 2]) / own[:, 0], otherwise)


def _variance(total: Floats, pairs: Ints, change: Floats, cluster: Ints, value: Floats) -> Floats:
    """Return the jackknife variance of ``b_m``, one cluster excluded at a time."""
    k = total.shape[-1]
    group = np.unique(cluster, return_inverse=True)[1] % MOST_CLUSTERS
    order = np.argsort(group, kind="stable")
    pairs, change, group = pairs[order], change[order], group[order]
    n, size = int(group[-1]) + 1, max(1, _AT_ONCE // (5 * k**2))
    parts = []
    for start in range(0, n, size):
        rows = slice(*np.searchsorted(group, [start, start + size]))
        width = min(size, n - start)
        moved = _tables(pairs[rows], change[rows], group[rows] - start, width, k)
        parts.append(_beyond(total + moved, value))
    return jackknife_variance(np.concatenate(parts), value)


def _effective(pairs: Ints, cluster: Ints, k: int) -> Floats:
    """Return the effective clusters of the rows of each model."""
    known, place = np.unique(cluster, return_inverse=True)
    cell = pairs.ravel() * len(known) + place.repeat(2)
    cells, counted = np.unique(cell, return_counts=True)
    n = counted.astype(np.float64)
    return effective_number(*sums_within(cells // len(known), np.column_stack([n, n**2]), k).T)


# Raters


FALSE_ALARM = 0.05
"""At most so often one of a study's raters is warned of who goes by the answers."""
BY_SIDE = 0.75
"""Share of choices that go to one side, where half of all go by the side alone."""
COIN = 0.5

Kind = Literal["side", "side again", "other answer"]


@dataclass(frozen=True, slots=True)
class SideCounts:
    """What a rater chose.

    Attributes
    ----------
    left, chosen : int
        Choices for what stood on the left, of those for either side.
    same, twice : int
        Items that came again with their sides exchanged and got the same answer, of those where
        a side was chosen both times.
    """

    rater: str
    left: int = 0
    chosen: int = 0
    same: int = 0
    twice: int = 0


@dataclass(frozen=True, slots=True)
class SideWarning:
    """What counts against a rater.

    Attributes
    ----------
    kind : {"side", "side again", "other answer"}
        Whether choices go to one side, to the same side when an item comes again, or to another
        answer as often as a coin's.
    share : Estimate
        Of choices for what stood on the left; of items with the same side again; of items with
        the same answer again.
    sentence : Sentence
    """

    rater: str
    kind: Kind
    share: Estimate
    sentence: Sentence

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "rater": self.rater,
            "kind": self.kind,
            "share": self.share.to_dict(),
            "sentence": str(self.sentence),
        }


def warn_of_sides(raters: Sequence[SideCounts], level: float = 0.95) -> tuple[SideWarning, ...]:
    """Name the raters whose choices follow the side, or contradict each other like a coin's.

    Three tests a rater, each at ``FALSE_ALARM`` over three times the number of raters:

    - more than `BY_SIDE` of the choices for a side go to the left, or to the right. Sides are
      drawn, so who goes by the answer gets half, and who goes by the side in a share d of the
      choices and by the answer in the others gets ``(1 + d) / 2``: exact binomial, both ends;
    - items that come again with sides exchanged get the same side more often than the same
      answer. Without a lean to a side that is at most as likely, whatever the answers: exact
      binomial;
    - they get the same answer in at most half, and less often than the other raters' items:
      exact hypergeometric (Fisher). Who is steady, but less so than others, can meet it.

    Parameters
    ----------
    level : float
        Of the intervals (Wilson); the tests do not depend on it.

    Returns
    -------
    tuple of SideWarning
        At most one a rater, the first that holds, in the order of the raters.

    Examples
    --------
    >>> [one.kind for one in warn_of_sides([SideCounts("r1", 58, 60), SideCounts("r2", 31, 60)])]
    ['side']
    """
    return tuple(_warnings(raters, level)) if raters else ()


def _warnings(raters: Sequence[SideCounts], level: float) -> Iterator[SideWarning]:
    limit = FALSE_ALARM / (3 * len(raters))
    same, twice = sum(one.same for one in raters), sum(one.twice for one in raters)
    for one in raters:
        others = (same - one.same, twice - one.twice)
        if 2 * _at_least(max(one.left, one.chosen - one.left), one.chosen, BY_SIDE) <= limit:
            share = wilson_share(one.left, one.chosen, level)
            sentence = Sentence(
                "%(rater)s chooses by side more than by answer: %(share)s of %(n)s choices of a "
                "side are for the answer shown first; half is expected.",
                rater=one.rater,
                share=percent_of(share),
                n=one.chosen,
            )
            yield SideWarning(one.rater, "side", share, sentence)
        elif _at_least(one.twice - one.same, one.twice, COIN) <= limit:
            share = wilson_share(one.twice - one.same, one.twice, level)
            sentence = Sentence(
                "%(rater)s chooses by side more than by answer: on %(share)s of %(n)s items shown "
                "again with their sides exchanged, the choice was the same side.",
                rater=one.rater,
                share=percent_of(share),
                n=one.twice,
            )
            yield SideWarning(one.rater, "side again", share, sentence)
        elif 2 * one.same <= one.twice and _at_most(one.same, one.twice, *others) <= limit:
            share = wilson_share(one.same, one.twice, level)
            sentence = Sentence(
                "We do not find that %(rater)s chooses more consistently than at random: on "
                "%(share)s of %(n)s items shown again with their sides exchanged, the choice was "
                "the same answer. For the other raters the share is %(others)s.",
                rater=one.rater,
                share=percent_of(share),
                n=one.twice,
                others=percent(others[0] / others[1]),
            )
            yield SideWarning(one.rater, "other answer", share, sentence)


def _at_least(hits: int, n: int, p: float) -> float:
    """Return how likely this many hits or more are, each with probability p."""
    return float(scipy.special.bdtrc(hits - 1, n, p)) if hits > 0 else 1.0


def _at_most(hits: int, n: int, others: int, of_others: int) -> float:
    """Return how likely so few of all hits are among these n, if all n are alike."""
    total, every = hits + others, math.comb(n + of_others, n)
    ways = (math.comb(total, k) * math.comb(n + of_others - total, n - k) for k in range(hits + 1))
    return sum(ways) / every


def wilson_share(hits: int, n: int, level: float) -> Estimate:
    """Give a share of independent cases, with Wilson's interval."""
    if not n:
        return Estimate(None, None, None, 0)
    rate = hits / n
    return Estimate(rate, *wilson(rate, n, level), n)
