"""What voters remark beside their votes: reasons by model, what goes with winning, and intent."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy

from rating.errors import ConvergenceError, DataError
from rating.leave_out import (
    effective_count,
    influence_variance,
    jackknife_factor,
    positive_part,
    quantile,
    two_way,
)
from rating.likelihood import Logistic, minimise
from rating.rows import VoteRows
from rating.typing import Bools, Floats, Ints

PRIOR_SD = 2.5
"""In nats, of every coefficient: a reason that is never given to a loser stays finite."""
POINTS = 400 / np.log(10)
ENTRIES_AT_ONCE = 1 << 21
STEADIEST = 1e4
"""Largest ``a + b`` of the law of shares over models: more is no spread at all."""
LEAST_SHARE = 1e-4
STEADINESSES, NODES = 30, 9
"""Laws that are weighed: this many sums of a and b, with this many means each."""
NEGLIGIBLE = 1e-6
ILL = 1e10
"""Condition of a matrix of correlations from which it has no inverse worth the name."""
HALVINGS = 40
GIVEN = ("reasons_a", "reasons_b")
"""Roles of the reasons for each side: names with commas between."""
INTENT = "voter_intent"
"""Role of what the voter wanted."""
MOST_REASONS = 50
_FEWEST_PROMPTS = 5
"""Of each kind, below which nothing is tested."""


@dataclass(frozen=True, slots=True)
class ReasonShare:
    """How often a reason was given to the answers of a model.

    Attributes
    ----------
    given, answers : int
        Of the answers in votes with any reason, those that it was given to, and all.
    share, lower, upper : float
        Shrunken towards the other models.
    """

    model: str
    reason: str
    given: int
    answers: int
    share: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class ReasonEffect:
    """How a reason goes with winning, models held equal; not what it would cause.

    Attributes
    ----------
    given : int
        Votes in which one side alone was given it.
    log_odds, lower, upper : float
        Of the side that was given it, in nats.
    p : float
    """

    reason: str
    given: int
    log_odds: float
    lower: float
    upper: float
    p: float


@dataclass(frozen=True, slots=True)
class _ModelByIntent:
    """A model's preference share, against the average of the others, by intent.

    Attributes
    ----------
    first, second : float
        Where voters had the first intent, and the second.
    difference, lower, upper : float
        The first less the second.
    """

    model: str
    first: float
    second: float
    difference: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class IntentByModel:
    """Whether models fare differently by what their voters wanted.

    Attributes
    ----------
    first, second : str
    first_votes, second_votes, voters : int
    models : tuple of ModelByIntent
        Those with the largest difference first.
    size : float
        Root mean square of the models' differences of preference share, less what noise adds.
    points : float
        The same of the differences of ratings, 400 points per factor ten of odds.
    chi2 : float
        Wald statistic of all differences together.
    df : int
        Models less one.
    p : float
        By Hotelling's law, of as many voters as are effective.
    """

    first: str
    second: str
    first_votes: int
    second_votes: int
    voters: int
    models: tuple[_ModelByIntent, ...]
    size: float
    points: float
    chi2: float
    df: int
    p: float


@dataclass(frozen=True, slots=True)
class RemarkReport:
    """All of it; None and a note where the votes do not tell.

    Attributes
    ----------
    votes, voters, explained : int
        All votes; who cast them; and those with any reason.
    prompts : int or None
        None unless every vote names its prompt.
    intents : dict of str to int
        Votes by intent, where it is known.
    """

    votes: int
    voters: int
    prompts: int | None
    explained: int
    intents: dict[str, int]
    shares: tuple[ReasonShare, ...]
    winning: tuple[ReasonEffect, ...] | None
    intent: IntentByModel | None
    level: float
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


class _Fitted(NamedTuple):
    """A logistic regression with a jackknife over voters and prompts.

    Attributes
    ----------
    x : ndarray of shape (n_parameters,)
    covariance : ndarray of shape (n_parameters, n_parameters)
        CR3 by voter, or by voter and prompt.
    independent : ndarray of shape (n_parameters, n_parameters)
        If every vote were another voter's: the least that is believed of a variance, for voters
        who happen to agree make nothing certain.
    effective : float
        Voters, as many as there are when all are equally busy, or fewer where prompts leave fewer
        degrees of freedom.
    """

    x: Floats
    covariance: Floats
    independent: Floats
    effective: float

    def variances(self, contrasts: Floats) -> Floats:
        """Give the variance of each contrast of the parameters, shape (n_contrasts,)."""
        both = (
            np.einsum("ij,jk,ik->i", contrasts, one, contrasts)
            for one in (self.covariance, self.independent)
        )
        return np.asarray(np.maximum(*both))


def reasons_of(votes: VoteRows) -> tuple[str, ...]:
    """Name the reasons that were given, sorted.

    Raises
    ------
    DataError
        If there are more than `MOST_REASONS`.
    """
    texts = [text for role in GIVEN for text in votes.names.get(role, ())]
    names = sorted(set[str]().union(*map(_split, texts)))
    if len(names) > MOST_REASONS:
        msg = (
            f"There are {len(names)} different reasons, such as {names[0][:40]!r}, and up to "
            f"{MOST_REASONS} are compared: are they texts?"
        )
        raise DataError(msg)
    return tuple(names)


def _split(text: str) -> set[str]:
    return {*filter(None, map(str.strip, text.split(",")))}


def _explained(votes: VoteRows, reasons: tuple[str, ...]) -> tuple[VoteRows, Bools]:
    """Give the votes with any reason, and the reasons for each side, shape (2, n, n_reasons)."""
    given = np.zeros((2, votes.n, len(reasons)), dtype=bool)
    for side, role in enumerate(GIVEN):
        if role in votes.groups:
            each = [[reason in _split(text) for reason in reasons] for text in votes.names[role]]
            given[side] = np.array(each, dtype=bool)[votes.groups[role]]
    some = np.flatnonzero(given.any(axis=(0, 2)))
    return votes.taken(some), given[:, some]


def report_remarks(
    votes: VoteRows, *, first: str = "quizzing", second: str = "asking", level: float = 0.95
) -> RemarkReport:
    """Describe what the remarks say; a part that the votes do not tell is None, with a note.

    Parameters
    ----------
    first, second : str
        Intents to compare models by.
    level : float
        Of each interval.

    Raises
    ------
    DataError
        As `reasons_of`.
    """
    votes, intents = votes.apart(), votes.names.get(INTENT, ())
    explained, _ = _explained(votes, reasons_of(votes))
    notes: list[str] = []
    winning = by_intent = None
    try:
        winning = reasons_that_win(votes, level)
    except (DataError, ConvergenceError) as error:
        notes.append(f"Reasons and winning: {error}")
    try:
        by_intent = intent_by_model(votes, first, second, level)
    except (DataError, ConvergenceError) as error:
        notes.append(f"Intent by model: {error}")
    return RemarkReport(
        votes=votes.n,
        voters=len(np.unique(votes.voter)),
        prompts=len(np.unique(votes.groups["prompt"])) if "prompt" in votes.groups else None,
        explained=explained.n,
        intents={
            name: int((votes.groups[INTENT] == code).sum())
            for code, name in enumerate(intents)
            if name
        },
        shares=reason_shares(votes, level),
        winning=winning,
        intent=by_intent,
        level=level,
        notes=tuple(notes),
    )


def reason_shares(votes: VoteRows, level: float = 0.95) -> tuple[ReasonShare, ...]:
    """Give how often each model is given each reason, shrunken towards the other models.

    Of the votes with any reason. The shares of a reason over models follow a beta law, which the
    counts make more or less likely: see `beta_laws`. Counts weigh less by how much more alike
    votes of one voter, or on one prompt where prompts are known, are than other votes. Reasons
    that were never given are excluded.
    """
    reasons = reasons_of(votes)
    some, sides = _explained(votes, reasons)
    given = np.concatenate(sides)
    model = np.concatenate([some.a, some.b])
    clusters = [some.voter, *(some.groups[name] for name in ("prompt",) if name in some.groups)]
    clusters = [np.concatenate([own, own]) for own in clusters]
    answers = np.bincount(model, minlength=len(votes.models))
    return tuple(
        share
        for place, reason in enumerate(reasons)
        if given[:, place].any()
        for share in _shares(
            votes.models, reason, model, clusters, given[:, place], answers, level
        )
    )


def _shares(
    models: tuple[str, ...],
    reason: str,
    model: Ints,
    clusters: list[Ints],
    given: Bools,
    answers: Ints,
    level: float,
) -> Iterator[ReasonShare]:
    counts = np.bincount(model[given], minlength=len(models))
    share = np.divide(counts, answers, out=np.zeros(len(counts)), where=answers > 0)
    alone = answers * share * (1 - share)
    by = _design_effect(model, clusters, given - share[model], alone, level)
    k, n = counts / by, answers / by
    laws = beta_laws(k, n)
    tail = (1 - level) / 2
    ends = [_quantile(laws, k, n, side) for side in (tail, 1 - tail)]
    mean = ((laws.alpha + k[:, None]) / (laws.alpha + laws.beta + n[:, None])) @ laws.weight
    for place in np.flatnonzero(answers).tolist():
        yield ReasonShare(
            model=models[place],
            reason=reason,
            given=int(counts[place]),
            answers=int(answers[place]),
            share=float(mean[place]),
            lower=float(ends[0][place]),
            upper=float(ends[1][place]),
        )


def _design_effect(
    model: Ints, clusters: list[Ints], off: Floats, alone: Floats, level: float
) -> float:
    """Give by how much shares vary more than if every answer were another voter's; 1 at least.

    ``V_voter + [V_prompt - V_both]_+``, no less than ``V_prompt``, summed over the models that
    several voters and prompts were asked about, over ``alone``: the variance of independent
    answers. It is multiplied by the squared ratio of Student's quantile to the normal one, for
    the counts that it divides are taken for exact.
    """
    kinds = list(clusters)
    if len(kinds) > 1:
        kinds.append(np.unique(np.stack(clusters), axis=1, return_inverse=True)[1].ravel())
    by_kind = np.array([_within_models(model, own, off, len(alone)) for own in kinds])
    usable = np.isfinite(by_kind).all(axis=0)
    independent = float(alone[usable].sum())
    if not independent:
        return 1.0
    sums = by_kind[:, usable].sum(axis=1)
    df = [np.asarray(effective_count(np.bincount(own)) - 1) for own in clusters]
    total, freedom = sums[0], df[0]
    if len(clusters) > 1:
        total, freedom = two_way((sums[0], df[0]), (sums[1], df[1]), sums[2])
        total = np.maximum(total, sums[1])
    wide = quantile(level, max(float(freedom), 1e-3)) / quantile(level, np.inf)
    return max(1.0, float(total) / independent) * wide**2


def _within_models(model: Ints, cluster: Ints, off: Floats, n_models: int) -> Floats:
    """Give each model's variance of the sum of ``off``; infinite of one cluster."""
    size = int(cluster.max()) + 1
    key, place = np.unique(model * size + cluster, return_inverse=True)
    sums = np.bincount(place, off).astype(np.float64)
    ends = np.searchsorted(key, size * np.arange(n_models + 1))
    return np.array([influence_variance(sums[a:b]) for a, b in pairwise(ends.tolist())])


class _BetaLaws(NamedTuple):
    """Beta laws of shares over models, each as likely as it is after the counts.

    Attributes
    ----------
    alpha, beta, weight : ndarray of shape (n_laws,)
        Weights sum to one.
    """

    alpha: Floats
    beta: Floats
    weight: Floats


def beta_laws(k: Floats, n: Floats) -> _BetaLaws:
    """Give the laws of shares that ``k`` of ``n`` leave likely, flat in the mean beforehand.

    The density of ``s = a + b`` beforehand goes by ``s^-3/2``: flat in the spread of shares, as
    in Gelman et al., Bayesian Data Analysis, 3rd edition, 2013, 5.3. Over a grid of s, the mean
    is integrated out by Gauss and Hermite around its likeliest value.

    Parameters
    ----------
    k, n : ndarray of shape (n_models,)
        Not necessarily whole.

    Examples
    --------
    Two models say next to nothing of a spread, and their own counts of themselves.

    >>> laws = beta_laws(np.array([20.0, 20.0]), np.array([100.0, 100.0]))
    >>> round(float(laws.weight @ (laws.alpha / (laws.alpha + laws.beta))), 2)
    0.25
    """
    nodes, weights = np.polynomial.hermite.hermgauss(NODES)
    edge = float(scipy.special.logit(LEAST_SHARE))
    parts: list[tuple[Floats, Floats, Floats]] = []
    for steady in np.geomspace(1.0, STEADIEST, STEADINESSES):

        def loss(at: Floats, steady: float = float(steady)) -> Floats:
            mean = scipy.special.expit(at)
            a, b = (np.multiply.outer(side, steady) for side in (mean, 1 - mean))
            one, other = a[..., None], b[..., None]
            fits = scipy.special.betaln(k + one, n - k + other) - scipy.special.betaln(one, other)
            return -np.asarray(fits.sum(axis=-1) + np.log(mean * (1 - mean)))

        best = float(scipy.optimize.minimize_scalar(loss, bounds=(edge, -edge)).x)
        below, at, above = loss(np.array([best - 1e-3, best, best + 1e-3]))
        sd = 1e-3 / np.sqrt(max(float(below - 2 * at + above), 1e-9))
        means = best + np.sqrt(2) * sd * nodes
        density = -loss(means) - 0.5 * np.log(steady) + nodes**2 + np.log(weights * sd)
        mean = scipy.special.expit(means)
        parts.append((mean * steady, (1 - mean) * steady, density))
    a, b, density = (np.concatenate(part) for part in zip(*parts, strict=True))
    weight = np.exp(density - density.max())
    likely = weight > NEGLIGIBLE
    return _BetaLaws(a[likely], b[likely], weight[likely] / weight[likely].sum())


def _quantile(laws: _BetaLaws, k: Floats, n: Floats, level: float) -> Floats:
    """Give the share of each model that the laws and its counts put this much below."""
    low, high = np.zeros(len(k)), np.ones(len(k))
    a, b = laws.alpha + k[:, None], laws.beta + (n - k)[:, None]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = scipy.special.betainc(a, b, middle[:, None]) @ laws.weight < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def reasons_that_win(votes: VoteRows, level: float = 0.95) -> tuple[ReasonEffect, ...]:
    """Return which reasons go with winning, between models held equal.

    ``logit P(A is chosen) = theta_a - theta_b + sum_r beta_r (given_ar - given_br)`` over the
    votes with any reason, ties half; every coefficient has a normal prior of sd `PRIOR_SD`.
    Reasons are given after the choice: they describe what voters say about winners.

    Raises
    ------
    DataError
        If there are fewer than two voters of such votes, or five prompts where these are known.
    """
    reasons = reasons_of(votes)
    some, sides = _explained(votes, reasons)
    gap = np.subtract(*sides.astype(float))
    there = np.flatnonzero(gap.any(axis=0))
    if not there.size:
        raise DataError("No reason was given to one answer and not to the other.")
    design = np.hstack([_sides(some), gap[:, there]])
    prompt = some.groups.get("prompt")
    fit = clustered_logit(design, some.score, some.voter, prompt)
    if prompt is not None:
        n = np.unique(prompt, return_counts=True)[1]
        if len(n) < _FEWEST_PROMPTS:
            raise DataError(f"Not tested: {len(n)} prompts, and it takes {_FEWEST_PROMPTS}.")
        fit = fit._replace(effective=min(fit.effective, effective_count(n)))
    beta = fit.x[len(votes.models) :]
    error = np.sqrt(fit.variances(np.eye(len(fit.x))[len(votes.models) :]))
    if not (error > 0).all():
        raise DataError("The votes with a reason do not vary: no effect of a reason is estimated.")
    reach = _reach(fit, level) * error
    p = _two_sided(fit, beta / error)
    return tuple(
        ReasonEffect(
            reason=reasons[place],
            given=int((gap[:, place] != 0).sum()),
            log_odds=float(beta[row]),
            lower=float(beta[row] - reach[row]),
            upper=float(beta[row] + reach[row]),
            p=float(p[row]),
        )
        for row, place in enumerate(there.tolist())
    )


def intent_by_model(
    votes: VoteRows, first: str, second: str, level: float = 0.95
) -> IntentByModel:
    """Test whether models fare differently where voters had one intent, or another.

    ``logit P(A is chosen) = x'(theta + q delta)``, x being 1 for the model on side A and -1 for
    that on side B, q 1/2 under the first intent and -1/2 under the second. ``delta = 0`` is
    tested by its Wald statistic, by the jackknife over voters and prompts (CR3). Votes with
    any other intent are excluded, and models that the votes of one intent do not connect with the
    others. Where prompts are known, n_1 with votes of the first intent and n_2 of the second, the
    degrees of freedom are those of effective voters, or of Welch's comparison of n_1 with n_2
    prompts, whichever are fewer.

    Raises
    ------
    DataError
        If fewer than two models are connected under both intents, there are no more degrees of
        freedom than models, or fewer than five prompts of either intent.
    """
    intents = votes.names.get(INTENT, ())
    for name in (first, second):
        if not name or name not in intents:
            known = ", ".join(map(repr, filter(None, intents))) or "none"
            raise DataError(f"No vote has the intent {name!r}; there are {known}.")
    one, other = (votes.groups[INTENT] == intents.index(name) for name in (first, second))
    rows = _connected(votes, one, other)
    some, q = votes.taken(rows), np.where(one[rows], 0.5, -0.5)
    there = np.unique(np.concatenate([some.a, some.b]))
    sides = _sides(some)[:, there]
    prompt = some.groups.get("prompt")
    fit = clustered_logit(np.hstack([sides, sides * q[:, None]]), some.score, some.voter, prompt)
    if prompt is not None:
        n_1, n_2 = (len(np.unique(prompt[rows])) for rows in (q > 0, q < 0))
        if min(n_1, n_2) < _FEWEST_PROMPTS:
            raise DataError(
                f"Not tested: {n_1} prompts have votes with the intent {first!r}, {n_2} with "
                f"{second!r}, and it takes {_FEWEST_PROMPTS} of each."
            )
        welch = (1 / n_1 + 1 / n_2) ** 2 / sum(1 / (n**2 * (n - 1)) for n in (n_1, n_2))
        fit = fit._replace(effective=min(fit.effective, 1 + welch))
    m = len(there)
    delta, spread = fit.x[m:], fit.covariance[m:, m:]
    chi2, p = _wald(delta, spread, fit.effective)
    shares, slope = _shares_by_intent(fit.x[:m], delta)
    variance = fit.variances(slope)
    difference = shares[0] - shares[1]
    reach = _reach(fit, level) * np.sqrt(variance)
    rated = [
        _ModelByIntent(
            model=votes.models[model],
            first=float(shares[0, row]),
            second=float(shares[1, row]),
            difference=float(difference[row]),
            lower=float(difference[row] - reach[row]),
            upper=float(difference[row] + reach[row]),
        )
        for row, model in enumerate(there.tolist())
    ]
    return IntentByModel(
        first=first,
        second=second,
        first_votes=int((q > 0).sum()),
        second_votes=int((q < 0).sum()),
        voters=len(np.unique(some.voter)),
        models=tuple(sorted(rated, key=lambda row: -abs(row.difference))),
        size=_without_noise(difference, variance),
        points=float(POINTS) * _without_noise(delta, fit.variances(np.eye(2 * m)[m:])),
        chi2=chi2,
        df=m - 1,
        p=p,
    )


def _without_noise(value: Floats, variance: Floats) -> float:
    """Give the root mean square of values that were measured with this variance."""
    return float(np.sqrt(max(0.0, float(np.mean(value**2 - variance)))))


def _connected(votes: VoteRows, one: Bools, other: Bools) -> Bools:
    """Choose the votes on models that are connected with each other under both intents."""
    rows = one | other
    while True:
        stays = np.ones(len(votes.models), dtype=bool)
        for group in (one & rows, other & rows):
            stays &= _largest(votes.a[group], votes.b[group], len(votes.models))
        if stays.sum() < 2:
            raise DataError(
                "The votes of each intent must connect two models or more, and they do not."
            )
        still = rows & stays[votes.a] & stays[votes.b]
        if (still == rows).all():
            return rows
        rows = still


def _largest(a: Ints, b: Ints, n: int) -> Bools:
    """Return which models are in the largest group that votes connect."""
    edges = scipy.sparse.coo_array((np.ones(len(a)), (a, b)), shape=(n, n))
    _, group = scipy.sparse.csgraph.connected_components(edges, directed=False)
    return np.asarray(group == np.bincount(group).argmax())


def _wald(delta: Floats, spread: Floats, effective: float) -> tuple[float, float]:
    """Test that all models' differences are one and the same; gives chi2 and p.

    Hotelling's law: the covariance itself is learnt from this many voters.
    """
    df = len(delta) - 1
    if effective <= df + 1:
        raise DataError(
            f"{effective:.1f} effective voters or prompts cannot tell {df + 1} models apart: more "
            "are needed than models."
        )
    contrast = np.hstack([np.eye(df), -np.ones((df, 1))])
    gap, covariance = contrast @ delta, contrast @ spread @ contrast.T
    scale = np.sqrt(np.diag(covariance))
    if not (scale > 0).all() or np.linalg.cond(covariance / np.outer(scale, scale)) > ILL:
        raise DataError("The voters agree too closely to estimate the variance between them.")
    chi2 = float(gap @ np.linalg.solve(covariance, gap))
    ratio = chi2 * (effective - df) / (df * (effective - 1))
    return chi2, float(scipy.special.fdtrc(df, effective - df, ratio))


def _shares_by_intent(theta: Floats, delta: Floats) -> tuple[Floats, Floats]:
    """Give each model's mean probability to win, by intent, and how the difference changes.

    Returns
    -------
    ndarray of shape (2, n_models)
    ndarray of shape (n_models, 2 * n_models)
        Of the first less the second, by theta and delta.
    """
    m = len(theta)
    shares, slope = np.empty((2, m)), np.zeros((m, 2 * m))
    for row, (q, sign) in enumerate(((0.5, 1.0), (-0.5, -1.0))):
        strength = theta + q * delta
        p = scipy.special.expit(strength[:, None] - strength[None, :])
        np.fill_diagonal(p, 0.0)
        shares[row] = p.sum(axis=1) / (m - 1)
        local = p * (1 - p) / (m - 1)
        by_strength = np.diag(local.sum(axis=1)) - local
        slope[:, :m] += sign * by_strength
        slope[:, m:] += sign * q * by_strength
    return shares, slope


def _sides(votes: VoteRows) -> Floats:
    """Give 1 for the model on side A and -1 for that on side B, shape (n, n_models)."""
    sides = np.zeros((votes.n, len(votes.models)))
    rows = np.arange(votes.n)
    sides[rows, votes.a] += 1
    sides[rows, votes.b] -= 1
    return sides


def clustered_logit(
    design: Floats, score: Floats, voter: Ints, prompt: Ints | None = None
) -> _Fitted:
    """Fit a logistic regression, with a covariance by omitting one voter at a time (CR3).

    ``sum_i log-likelihood_i - |x|^2 / (2 PRIOR_SD^2)``; a score of 1/2 counts half each way. The
    covariance is ``(G - 1) / G`` times the sum over voters of ``d d'``, with
    ``d = (H - H_g)^-1 s_g`` the step by which the parameters move without voter g. With prompts,
    ``V_voter + [V_prompt - V_both]_+``, and no less than ``V_prompt`` in any direction.

    Parameters
    ----------
    design : ndarray of shape (n, n_parameters)
    score : ndarray of shape (n,)
        From 0 to 1.
    voter : ndarray of shape (n,), int
    prompt : ndarray of shape (n,), int, optional

    Raises
    ------
    DataError
        If there are fewer than two voters.
    ConvergenceError
        If the maximum is not reached.
    """
    counts = np.unique(voter, return_counts=True)[1]
    if len(counts) < 2:
        raise DataError(f"Two voters are needed, and there are {len(counts)}.")
    loss = Logistic(design, score, np.ones(len(score)), 1 / PRIOR_SD**2)
    x, at, _ = minimise(loss, np.zeros(design.shape[1]))
    hessian, p = at.hessian, scipy.special.expit(design @ x)
    weight = p * (1 - p)
    rows, pull = design * np.sqrt(weight)[:, None], design * (score - p)[:, None]
    covariance = _left_out(hessian, rows, pull, voter)
    if prompt is not None:
        both = np.unique([voter, prompt], axis=1, return_inverse=True)[1].ravel()
        by_prompt = _left_out(hessian, rows, pull, prompt)
        covariance = covariance + positive_part(by_prompt - _left_out(hessian, rows, pull, both))
        covariance = covariance + positive_part(by_prompt - covariance)
    bread = np.linalg.inv(hessian)
    independent = bread @ (pull.T @ pull) @ bread
    return _Fitted(x, covariance, independent, effective_count(counts))


def _left_out(hessian: Floats, rows: Floats, pull: Floats, cluster: Ints) -> Floats:
    """Estimate the covariance by the jackknife over clusters."""
    order, counts = np.argsort(cluster, kind="stable"), np.unique(cluster, return_counts=True)[1]
    rows, pull, ends = rows[order], pull[order], np.cumsum(counts)
    meat = np.zeros_like(hessian)
    size = max(1, ENTRIES_AT_ONCE // hessian.size)
    for begin in range(0, len(counts), size):
        some = range(begin, min(begin + size, len(counts)))
        own = [slice(ends[g] - counts[g], ends[g]) for g in some]
        left = np.stack([hessian - rows[one].T @ rows[one] for one in own])
        scores = np.stack([pull[one].sum(axis=0) for one in own])
        shift = np.linalg.solve(left, scores[:, :, None])[:, :, 0]
        meat += shift.T @ shift
    return np.asarray(jackknife_factor(len(counts)) * meat)


def _reach(fit: _Fitted, level: float) -> float:
    return quantile(level, max(fit.effective - 1, 1e-3))


def _two_sided(fit: _Fitted, t: Floats) -> Floats:
    df = max(fit.effective - 1, 1e-3)
    return np.asarray(scipy.special.betainc(df / 2, 0.5, df / (df + t**2)))
