"""Voters: random effects, tests of single voters, and coordinated groups.

`log_marginals` gives how likely a voter's votes are under normal random effects, and
`fit_taste_sd` how far these spread. `check_voters` tests each voter against an honest voter with
such random effects, by an e-process. `find_rings` looks for accounts that vote for one model, or
against it, wherever it appears.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
import scipy

from rating.errors import ConvergenceError, DataError, NotIdentifiedError
from rating.fitting import fit
from rating.likelihood import ORDER_EFFECT, Logistic, minimise
from rating.rows import VoteRows
from rating.typing import Bools, Floats, Ints
from rating.variants import POINTS_PER_NAT

# Voter random effects


MAX_TASTE = 5.0
CHUNK_ENTRIES = 1_000_000
MAX_STEPS = 100
TOLERANCE = 1e-6
FIT_TOLERANCE = 0.01


class Ballots(NamedTuple):
    """Decisive votes of one voter, up to some moment: codes of models, shape (n_votes,)."""

    left: Ints
    right: Ints
    won: Bools
    """Where the left side won."""


class Marginals(NamedTuple):
    """What the random-effects model makes of some voters' votes."""

    log_probability: Floats
    """In nats, shape (n_voters,)."""
    liking: Floats
    """Most likely strengths in each voter's eyes, in nats, shape (n_voters, n_models)."""


def log_marginals(
    ballots: Sequence[Ballots], theta: Floats, taste_sd: float, order_effect: float = 0.0
) -> Marginals:
    """Return the log-probability of each voter's decisive votes under the random-effects model.

    A voter sees model m at ``theta[m] + taste_sd * u[m]`` with u standard
    normal, and chooses by Bradley-Terry, the left side ahead by
    ``order_effect``. The integral over u is Laplace's::

        log P(votes | u*) - |u*|^2 / 2 - log det(I + taste_sd^2 * X'WX) / 2

    at the u* that maximises the first two terms (Newton), X'WX being the
    information of the votes there. Exact for ``taste_sd = 0``. Models that a
    voter has not met would not change the integral and are excluded.

    Parameters
    ----------
    theta : ndarray of shape (n_models,)
        Strengths in nats in the eyes of a voter with zero random effects.
    taste_sd : float
        In nats, not negative.
    order_effect : float, default 0
        Advantage of the left side in every vote, in nats.

    Returns
    -------
    Marginals
        Of the votes in their order: no binomial coefficients.

    Raises
    ------
    ConvergenceError
        If a maximum is not reached.

    References
    ----------
    .. [1] L. Tierney and J. B. Kadane, "Accurate approximations for posterior
       moments and marginal densities", Journal of the American Statistical
       Association 81(393), 1986, pp. 82-86.

    Examples
    --------
    One vote between equals is even, whatever the random effects.

    >>> one = Ballots(np.array([0]), np.array([1]), np.array([True]))
    >>> np.exp(log_marginals([one], np.zeros(2), 0.0).log_probability).item()
    0.5
    """
    marginals = Marginals(np.empty(len(ballots)), np.tile(theta, (len(ballots), 1)))
    for batch in _batches(ballots):
        start = np.zeros(batch.met.shape)
        log_probability, taste = _laplace(batch, theta, taste_sd, order_effect, start=start)
        marginals.log_probability[batch.rows] = log_probability
        marginals.liking[batch.rows[:, None], batch.met] += taste_sd * taste
    return marginals


def fit_taste_sd(votes: VoteRows, theta: Floats, order_effect: float = 0.0) -> float:
    """Fit how far the random effects of voters spread, by the sum of `log_marginals` over voters.

    Parameters
    ----------
    votes : VoteRows
        A row each; ties are excluded.
    theta : ndarray of shape (n_models,)
        Strengths in nats.
    order_effect : float, default 0
        Advantage of the left side in every vote, in nats.

    Returns
    -------
    float
        In nats per model; 0 when voters agree as well as one voter would with
        himself, `MAX_TASTE` at most. Careless voters among them raise it,
        which makes `check_voters` forgiving.

    Raises
    ------
    DataError
        If no vote is decisive.
    """
    decisive = votes.taken(votes.score != 0.5)
    if not decisive.n:
        raise DataError(f"None of {votes.n} votes is decisive: no random effects can be fitted.")
    won = decisive.score == 1
    ballots = [
        Ballots(decisive.a[own], decisive.b[own], won[own])
        for own in _rows_by_voter(decisive.voter)
    ]
    batches = list(_batches(ballots))
    tastes = [np.zeros(batch.met.shape) for batch in batches]

    def lack(taste_sd: float) -> float:
        total = 0.0
        for at, batch in enumerate(batches):
            log_probability, tastes[at] = _laplace(
                batch, theta, taste_sd, order_effect, start=tastes[at]
            )
            total -= float(log_probability.sum())
        return total

    best = scipy.optimize.minimize_scalar(
        lack, bounds=(0.0, MAX_TASTE), method="bounded", options={"xatol": FIT_TOLERANCE}
    )
    return 0.0 if lack(0.0) <= best.fun else float(best.x)


def _rows_by_voter(voter: Ints) -> list[Ints]:
    """Return each voter's rows in their order, lowest code first."""
    order = np.argsort(voter, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(voter[order])) + 1)


class _Batch(NamedTuple):
    """Voters who met equally many models: as many as fit in memory.

    Tables of shape (n_voters, n_pairs) hold a voter's pairs by side, filled up
    with pairs without votes.
    """

    rows: Ints
    met: Ints
    """Codes of the models each voter met, shape (n_voters, n_met)."""
    left: Ints
    """By position among all voters' models: for scattering."""
    right: Ints
    won: Floats
    """Votes for the left side."""
    lost: Floats

    def leads(self, strength: Floats) -> Floats:
        """Return the lead of the left of each pair, from strengths of shape of ``met``."""
        flat = strength.ravel()
        return np.asarray(flat[self.left] - flat[self.right])

    def per_model(self, value: Floats) -> Floats:
        """Add up a pair's value for its left model, and take it from its right."""
        size = self.met.size
        total = np.bincount(self.left.ravel(), value.ravel(), size)
        total -= np.bincount(self.right.ravel(), value.ravel(), size)
        return np.asarray(total.reshape(self.met.shape))

    def information(self, weight: Floats) -> Floats:
        """Return ``X'WX`` of each voter."""
        n_voters, n_met = self.met.shape
        cell = self.left * n_met + self.right % n_met
        flat = np.bincount(cell.ravel(), weight.ravel(), self.met.size * n_met)
        between = flat.reshape(n_voters, n_met, n_met)
        between = between + between.transpose(0, 2, 1)
        diagonal = np.arange(n_met)
        known = -between
        known[:, diagonal, diagonal] += between.sum(axis=2)
        return np.asarray(known)


def _batches(ballots: Sequence[Ballots]) -> Iterator[_Batch]:
    met = [np.unique(np.concatenate([votes.left, votes.right])) for votes in ballots]
    sizes = np.array([len(models) for models in met], dtype=np.int64)
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        width = max(1, CHUNK_ENTRIES // int(size) ** 2)
        for start in range(0, len(alike), width):
            rows = alike[start : start + width]
            yield _batch(rows, [met[row] for row in rows], [ballots[row] for row in rows])


def _batch(rows: Ints, met: list[Ints], ballots: list[Ballots]) -> _Batch:
    n_met = len(met[0])
    cells = [_count(models, votes) for models, votes in zip(met, ballots, strict=True)]
    shape = (len(rows), max(len(pair) for pair, _, _ in cells))
    # A pair to fill up with is a model and itself, without votes: it adds nothing anywhere.
    left, right = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    won, lost = np.zeros(shape), np.zeros(shape)
    for row, (pair, up, down) in enumerate(cells):
        left[row, : len(pair)], right[row, : len(pair)] = np.divmod(pair, n_met)
        won[row, : len(pair)], lost[row, : len(pair)] = up, down
    offset = n_met * np.arange(len(rows))[:, None]
    return _Batch(rows, np.array(met), left + offset, right + offset, won, lost)


def _count(met: Ints, votes: Ballots) -> tuple[Ints, Ints, Ints]:
    """Return one voter's pairs as numbers, the votes for the left side and for the right."""
    number = np.searchsorted(met, votes.left) * len(met) + np.searchsorted(met, votes.right)
    pair, place = np.unique(number, return_inverse=True)
    won = np.bincount(place[votes.won], minlength=len(pair))
    return pair, won, np.bincount(place, minlength=len(pair)) - won


def _laplace(
    batch: _Batch, theta: Floats, taste_sd: float, order_effect: float, *, start: Floats
) -> tuple[Floats, Floats]:
    """Return each voter's log marginal likelihood and the most likely u, from a first guess."""
    gap = batch.leads(theta[batch.met]) + order_effect
    taste = start
    value = _joint(taste, batch, gap, taste_sd)
    tolerance = TOLERANCE * max(1.0, float((batch.won + batch.lost).max()))
    for _ in range(MAX_STEPS):
        slope, curvature = _derivatives(taste, batch, gap, taste_sd)
        if np.abs(slope).max() <= tolerance:
            return value - np.linalg.slogdet(curvature)[1] / 2, taste
        step = np.asarray(np.linalg.solve(curvature, slope[..., None])[..., 0], dtype=np.float64)
        taste, value = _ascend(taste, value, step, batch, gap, taste_sd)
    raise ConvergenceError(
        f"A voter's random effects of sd {taste_sd} did not converge in {MAX_STEPS} steps."
    )


def _joint(taste: Floats, batch: _Batch, gap: Floats, taste_sd: float) -> Floats:
    lead = gap + taste_sd * batch.leads(taste)
    loss = batch.won * np.logaddexp(0.0, -lead) + batch.lost * np.logaddexp(0.0, lead)
    return np.asarray(-loss.sum(axis=1) - (taste**2).sum(axis=1) / 2)


def _derivatives(
    taste: Floats, batch: _Batch, gap: Floats, taste_sd: float
) -> tuple[Floats, Floats]:
    """Return the gradient of `_joint`, and minus its Hessian."""
    probability = scipy.special.expit(gap + taste_sd * batch.leads(taste))
    votes = batch.won + batch.lost
    slope = taste_sd * batch.per_model(batch.won - votes * probability) - taste
    known = batch.information(votes * probability * (1 - probability))
    return slope, np.eye(known.shape[1]) + taste_sd**2 * known


def _ascend(
    taste: Floats, value: Floats, step: Floats, batch: _Batch, gap: Floats, taste_sd: float
) -> tuple[Floats, Floats]:
    """Take the step, halved for the voters whom it would take downhill."""
    allowed = value - 1e-12 * np.abs(value)  # rounding of a sum is not a descent
    for _ in range(30):
        after = _joint(taste + step, batch, gap, taste_sd)
        worse = after < allowed
        if not worse.any():
            return taste + step, after
        step = np.where(worse[:, None], step / 2, step)
    return taste + step, _joint(taste + step, batch, gap, taste_sd)


# Tests of single voters


Alternative = Literal["coin", "always-left", "always-right", "inverted", "fan", "anti-fan"]

SIDE_PROBABILITY = 0.9
FAN_CHANCE = 0.95
PLAIN_WEIGHT = 0.15
FANS_WEIGHT = 0.4
LOOK_EVERY = 10
LOOKS_PER_FOLD = 50
VOTERS_AT_ONCE = 2_000
PLAIN: tuple[Alternative, ...] = ("coin", "always-left", "always-right", "inverted")


@dataclass(frozen=True, slots=True)
class VoterCheck:
    """What a voter's votes say against the voter; nothing is deleted by it.

    Attributes
    ----------
    voter : int
    n : int
        Decisive votes, which are the ones looked at.
    n_ties : int
        Ties of either kind, excluded: see `check_voters`.
    log_e : float
        Log of the evidence after the last vote, in nats; 0 before any.
    max_log_e : float
        Its running maximum over the looks.
    flagged : bool
        Whether the running maximum reached ``log(1 / alpha)``.
    flagged_at : int or None
        Decisive votes at the first look that reached it; None if none did.
    leading : str or None
        The alternative that explains the votes best at the maximum; None if
        the evidence never rose above its start.
    model : str or None
        The model it concerns; None unless ``leading`` is a fan or an anti-fan.
    reason : str
        The finding in words.
    weight : float
        Suggested weight of the voter's votes: 0 if flagged, else 1.
    """

    voter: int
    n: int
    n_ties: int
    log_e: float
    max_log_e: float
    flagged: bool
    flagged_at: int | None
    leading: Alternative | None
    model: str | None
    reason: str
    weight: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def check_voters(
    votes: VoteRows,
    theta: Floats,
    taste_sd: float,
    *,
    order_effect: float = 0.0,
    alpha: float = 0.05,
) -> tuple[VoterCheck, ...]:
    """Weigh each voter's votes against those of an honest voter with random effects.

    The evidence is a mixture of likelihood ratios, an e-process::

        E = sum_k w_k prod_i q_k(y_i) / P(y_1, y_2, ...)

    The honest voter below sees the models at ``theta`` plus personal random effects
    of sd ``taste_sd``, integrated out (`log_marginals`), and
    leans to the left by ``order_effect`` like everybody. The alternatives
    above, w 0.15 each: coin (1/2), always left (0.9), always right (0.9),
    inverted (random effects around ``-theta``, the same lean); and sharing 0.4 evenly,
    a fan (0.95 for the model wherever it appears) and an anti-fan (0.05) of
    each model, who are honest elsewhere, with the random effects of their votes so
    far and the same lean.
    Without random effects of their own the last three would fall behind an honest
    voter's model that learns the random effects: the more votes, the less power.

    E is looked at after every 10 decisive votes (beyond 500, whenever their
    number has grown by a fiftieth) and after the last. By Ville's inequality an honest voter's E
    ever reaches ``1 / alpha`` with probability alpha at most, however often one looks:
    approximately, as strengths, random effects and lean are fitted to the same votes, and on
    average over honest voters. A person of very unusual preferences is flagged more often. Of a
    hundred honest voters at 0.05, at most five false flags are expected, so a flag is a reason to
    look and to show the board with and without, not a verdict.

    Ties are excluded: how often a person ties is a habit, not a sign of
    dishonesty, and half a win is no likelihood. A voter who only ties is
    never flagged.

    Parameters
    ----------
    votes : VoteRows
        A row each; those of one voter in the order of time.
    theta : ndarray of shape (n_models,)
        Strengths in nats from the population, best without the voter where
        one cast a large share.
    taste_sd : float
        In nats: `fit_taste_sd`. Zero punishes unusual honest
        people.
    order_effect : float, default 0
        Advantage of the left side in the eyes of all voters, in nats. Zero
        punishes honest people where all lean to one side.
    alpha : float, default 0.05
        Chance of flagging an honest voter.

    Returns
    -------
    tuple of VoterCheck
        One a voter with at least one vote, in the order of the codes.

    Raises
    ------
    DataError
        For models that do not match ``theta``, ``taste_sd`` negative,
        ``order_effect`` not finite, or ``alpha`` out of range.

    References
    ----------
    .. [1] J. Ville, "Étude critique de la notion de collectif",
       Gauthier-Villars, 1939, chapter 5.
    .. [2] A. Ramdas, P. Grünwald, V. Vovk and G. Shafer, "Game-theoretic
       statistics and safe anytime-valid inference", Statistical Science
       38(4), 2023, pp. 576-601.
    .. [3] W.-L. Chiang et al., "Chatbot Arena: An Open Platform for
       Evaluating LLMs by Human Preference", ICML 2024, arXiv 2403.04132,
       section 5, sets the task; its rule (Fisher's combination) has no power
       on votes with two outcomes and is not used.

    Examples
    --------
    Sixty votes, all for the left side.

    >>> rng = np.random.default_rng(1)
    >>> left = rng.integers(0, 3, 60)
    >>> right = (left + rng.integers(1, 3, 60)) % 3
    >>> votes = VoteRows.scored(("x", "y", "z"), left, right, np.ones(60), np.zeros(60, dtype=int))
    >>> found = check_voters(votes, np.array([0.5, 0.0, -0.5]), 0.5)
    >>> found[0].leading, found[0].flagged_at, found[0].weight
    ('always-left', 10, 0.0)
    """
    if len(votes.models) != len(theta):
        raise DataError(f"{len(votes.models)} names for {len(theta)} strengths; give one each.")
    if not 0 <= taste_sd < np.inf:
        raise DataError(f"taste_sd must be finite and not negative, not {taste_sd}.")
    if not np.isfinite(order_effect):
        raise DataError(f"order_effect must be finite, not {order_effect}.")
    if not 0 < alpha < 1:
        raise DataError(f"alpha must lie between 0 and 1, not {alpha}.")
    if not votes.n:
        return ()
    people, score = _rows_by_voter(votes.voter), votes.score
    checks: list[VoterCheck] = []
    for first in range(0, len(people), VOTERS_AT_ONCE):
        some = people[first : first + VOTERS_AT_ONCE]
        decisive = [rows[score[rows] != 0.5] for rows in some]
        theirs = [Ballots(votes.a[rows], votes.b[rows], score[rows] == 1) for rows in decisive]
        evidence = _evidence(theirs, theta, taste_sd, order_effect)
        for rows, own, (looks, parts) in zip(some, theirs, evidence, strict=True):
            voter, n_ties = int(votes.voter[rows[0]]), len(rows) - len(own.won)
            checks.append(_finding(voter, n_ties, looks, parts, votes.models, alpha))
    return tuple(checks)


def _looks(n: int) -> Ints:
    """Return the number of votes at each look."""
    looks = [0]
    while looks[-1] < n:
        looks.append(min(n, looks[-1] + max(LOOK_EVERY, looks[-1] // LOOKS_PER_FOLD)))
    return np.array(looks[1:], dtype=np.int64)


def _evidence(
    votes: Sequence[Ballots], theta: Floats, taste_sd: float, order_effect: float
) -> Iterator[tuple[Ints, Floats]]:
    """Yield of each voter the votes at each look, and what they say there.

    That is the logs of the weighted alternatives over the null, shape (n_looks, 4 + 2 n_models):
    the plain alternatives, fans, anti-fans.
    """
    all_looks = [_looks(len(own.won)) for own in votes]
    ballots = [
        Ballots(own.left[:n], own.right[:n], own.won[:n])
        for own, looks in zip(votes, all_looks, strict=True)
        for n in looks
    ]
    honest = log_marginals(ballots, theta, taste_sd, order_effect)
    inverted = log_marginals(ballots, -theta, taste_sd, order_effect).log_probability
    fans = np.full(2 * len(theta), FANS_WEIGHT / (2 * len(theta)))
    log_weight = np.log(np.append(np.full(len(PLAIN), PLAIN_WEIGHT), fans))
    start = 0
    log_p = np.log([0.5, SIDE_PROBABILITY, 1 - SIDE_PROBABILITY])
    for own, looks in zip(votes, all_looks, strict=True):
        at = slice(start, start + len(looks))
        n_left = own.won.cumsum()[looks - 1]
        # Of a coin, always left, and always right.
        sides = np.outer(n_left, log_p) + np.outer(looks - n_left, log_p[[0, 2, 1]])
        liking = np.vstack([theta, honest.liking[at]])
        bets = np.column_stack([sides, inverted[at], _fans(own, looks, liking, order_effect)])
        yield looks, log_weight + bets - honest.log_probability[at, None]
        start = at.stop


def _fans(votes: Ballots, looks: Ints, liking: Floats, order_effect: float) -> Floats:
    """Log-probability up to each look of a fan and of an anti-fan of each model.

    On the other pairs a fan is the honest voter that the votes up to the last
    look make most likely.

    Parameters
    ----------
    liking : ndarray of shape (n_looks + 1, n_models)
        Before the first vote, and at each look.
    """
    won = votes.won
    last = np.searchsorted(looks, np.arange(len(won)), side="right")
    lead = liking[last, votes.left] - liking[last, votes.right] + order_effect
    honest = -np.logaddexp(0.0, np.where(won, -lead, lead))[:, None]
    each = np.arange(liking.shape[1])
    winner = np.where(won, votes.left, votes.right)[:, None] == each
    loser = np.where(won, votes.right, votes.left)[:, None] == each
    loyal, disloyal = np.log([FAN_CHANCE, 1 - FAN_CHANCE])
    fan = np.select([winner, loser], [loyal, disloyal], honest)
    anti_fan = np.select([winner, loser], [disloyal, loyal], honest)
    return np.hstack([fan, anti_fan]).cumsum(axis=0)[looks - 1]


def _finding(
    voter: int, n_ties: int, looks: Ints, parts: Floats, models: Sequence[str], alpha: float
) -> VoterCheck:
    log_e = np.append(0.0, scipy.special.logsumexp(parts, axis=1))  # before the first vote
    looks = np.append(0, looks)
    highest = int(log_e.argmax())
    reached = np.flatnonzero(log_e >= -np.log(alpha))
    flagged_at = int(looks[reached[0]]) if reached.size else None
    leading, model = (None, None) if highest == 0 else _leader(parts[highest - 1], models)
    return VoterCheck(
        voter=voter,
        n=int(looks[-1]),
        n_ties=n_ties,
        log_e=float(log_e[-1]),
        max_log_e=float(log_e[highest]),
        flagged=flagged_at is not None,
        flagged_at=flagged_at,
        leading=leading,
        model=model,
        reason=_reason(leading, model, float(log_e[highest]), flagged_at),
        weight=1.0 if flagged_at is None else 0.0,
    )


def _leader(parts: Floats, models: Sequence[str]) -> tuple[Alternative, str | None]:
    best = int(parts.argmax())
    if best < len(PLAIN):
        return PLAIN[best], None
    side, model = divmod(best - len(PLAIN), len(models))
    return ("anti-fan" if side else "fan"), models[model]


_IN_WORDS: dict[Alternative, str] = {
    "coin": "a coin toss",
    "always-left": "a choice of the left side whatever it shows",
    "always-right": "a choice of the right side whatever it shows",
    "inverted": "the opposite of what voters find better",
    "fan": "a vote for {model} wherever it appears",
    "anti-fan": "a vote against {model} wherever it appears",
}


def _reason(
    leading: Alternative | None, model: str | None, log_e: float, flagged_at: int | None
) -> str:
    if leading is None:
        return "The votes are consistent with an honest voter."
    seen = _IN_WORDS[leading].format(model=model)
    odds = f"{np.exp(min(log_e, 20.0)):.3g}"
    odds = f"over {odds}" if log_e > 20 else odds
    if flagged_at is None:
        return f"The nearest suspicion is {seen}: evidence {odds} to 1, not enough to act on."
    return f"The votes look like {seen}: evidence {odds} to 1, flagged after {flagged_at} votes."


# Coordinated groups


Direction = Literal["for", "against"]

RIDGE = 0.1
"""Gives every model a strength, also one that has not lost yet: strengths of sd 3.2 nats."""

LOYALTIES = (0.95, 0.99)
"""Share of the votes on the model that a member casts for it, or against it."""

LEAST_ACCOUNTS = 3
ROUNDS = 2
STEPS = 40
STEPS_OF_LAW = 15
RING_VOTERS_AT_ONCE = 5_000

NODES = np.linspace(-6.0, 6.0, 97)
"""Random effects for one model in nats: sums over them are integrals for every sd of `LAWS`."""

WIDEST = 1.2
"""Largest sd of honest random effects on a model, in nats; 8,931 votes of a crowd showed 0.86."""

SHARES = np.array([0.01, 0.02, 0.04, 0.07, 0.11, 0.16, 0.22, 0.3, 0.4, 0.5])
MEANS = np.linspace(-2.4, 2.4, 17)
GROUP_SHARES = np.linspace(0.1, 0.9, 9)
GROUP_SDS = np.array([0.1, 0.4, 0.8])
GROUPS_GAIN = 6.0
"""Log-likelihood in nats from which two groups of voters describe a model better than one."""

PRIOR_PRECISION = 0.1
"""Of the coefficients of membership: keeps them finite where a trait splits the accounts."""


@dataclass(frozen=True, slots=True)
class Gained:
    """What a model gains, or loses, by votes: rating points, and ranks upwards."""

    points: float
    ranks: int


@dataclass(frozen=True, slots=True)
class Ring:
    """Accounts that vote alike on one model, too much so for random effects.

    Attributes
    ----------
    accounts : int
        Accounts that are members with a probability above one half.
    share : float
        Of the accounts with decisive votes on the model: the mean probability of membership.
    log_evidence : float
        Log of the Bayes factor against honest random effects, in nats.
    gained : Gained
        The model's, by the votes at full weight against the votes as weighted here.
    """

    model: str
    direction: Direction
    accounts: int
    share: float
    log_evidence: float
    gained: Gained

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TasteGroups:
    """Two groups of honest voters who differ on a model: shown, and not excluded.

    Attributes
    ----------
    share : float
        Of the voters, in the group that likes the model better.
    gap : float
        Between the mean random effects of the groups, in nats.
    gain : float
        Log-likelihood of two groups over that of one, in nats.
    """

    model: str
    share: float
    gap: float
    gain: float


@dataclass(frozen=True, slots=True, eq=False)
class RingCheck:
    """What all votes together say of coordinated groups.

    Attributes
    ----------
    rings : tuple of Ring
        Those with the most evidence first.
    groups : tuple of TasteGroups
        Of models without a coordinated group.
    weight : ndarray of shape (n_votes,)
        Of each vote: 1 less the probability that its voter is a member, for a vote on the model
        of a coordinated group; else 1.
    member : dict of (str, str) to ndarray of shape (n_voters,)
        Probability of membership of each voter, by model and direction.
    limit : float
        Log-evidence from which a coordinated group is named.
    """

    rings: tuple[Ring, ...]
    groups: tuple[TasteGroups, ...]
    weight: Floats
    member: dict[tuple[str, Direction], Floats]
    limit: float


def find_rings(votes: VoteRows, *, trait: Bools | None = None, alpha: float = 0.05) -> RingCheck:
    """Ask of each model whether some accounts vote for it, or against it, wherever it appears.

    Of a model m, voter u has a random effect d_u beside the strengths of all. Honest
    voters are one normal law of random effects; a member casts `LOYALTY` of the votes
    on m for it (against it)::

        h_u(mean, sd) = integral of prod_i sigmoid(+-(lead_i + d)) N(d; mean, sd) dd
        f_u           = LOYALTY^wins (1 - LOYALTY)^losses
        log E         = log mean over (share, mean, sd) of prod_u ((1 - share) h_u + share f_u)
                        - log max over (mean, sd) of prod_u h_u

    The denominator is the largest that any honest law reaches, so ``E`` has a
    mean of 1 at most under each of them, for voters of independent random effects:
    with two directions of n models, a coordinated group is named from ``2 n / alpha`` on,
    if at least `LEAST_ACCOUNTS` accounts are members more likely than not.
    That holds for one look at the votes, with strengths taken as known.
    Nothing is reported where two groups of honest voters describe the votes
    better by more than `GROUPS_GAIN`, with as many parameters: a minority
    agrees within itself as coordinated voters do.

    Where accounts have a ``trait`` (of behaviour, not of votes), those with it
    have a share of their own. What speaks for a coordinated group are votes alone; the
    trait names who is in it.

    A member's weight is soft: votes on m weigh 1 less the probability of
    membership, fitted by EM with the logit of membership quadratic in the log
    of the voter's votes, plus the trait, and with the loyalty and the law of
    honest random effects fitted. Their other votes stay. Strengths are then fitted
    again, and all is done once more from these.

    Parameters
    ----------
    votes : VoteRows
        A row each; ties are no evidence.
    trait : ndarray of shape (n_voters,), bool, optional
        Accounts whose behaviour is suspicious.
    alpha : float
        Probability of naming any coordinated group where there is none.

    Raises
    ------
    DataError
        For an ``alpha`` out of range, or traits of another number of voters.

    References
    ----------
    .. [1] L. Wasserman, A. Ramdas and S. Balakrishnan, "Universal inference",
       PNAS 117(29), 2020, pp. 16880-16890: a mixture over the largest
       likelihood of the null.
    .. [2] R. Min et al., "Improving Your Model Ranking on Chatbot Arena by
       Vote Rigging", ICML 2025, sets the task.
    """
    if not 0 < alpha < 1:
        raise DataError(f"alpha must lie between 0 and 1, not {alpha}.")
    n_voters = int(votes.voter.max()) + 1 if votes.n else 0
    if trait is None:
        trait = np.zeros(n_voters, dtype=bool)
    if len(trait) < n_voters:
        raise DataError(f"{len(trait)} traits for {n_voters} voters; give one each.")
    limit = float(np.log(2 * len(votes.models) / alpha))
    suspects: list[_Suspect] = []
    weight = np.ones(votes.n)
    for _ in range(ROUNDS):
        views = _views(votes, weight)
        suspects = [one for view in views for one in _suspects(view, votes, trait, limit)]
        weight = np.ones(votes.n)
        for one in suspects:
            weight *= np.where(votes.on(one.model), 1 - one.member[votes.voter], 1.0)
    named = {one.model for one in suspects}
    views = _views(votes, weight)
    groups = [_groups(view, votes.models) for view in views if view.model not in named]
    return RingCheck(
        rings=_rings(votes, suspects, weight),
        groups=tuple(one for one in groups if one is not None),
        weight=weight,
        member={(votes.models[one.model], one.direction): one.member for one in suspects},
        limit=limit,
    )


class Strengths(NamedTuple):
    """In the eyes of all voters together, in nats."""

    theta: Floats
    """Of every model, 0 without a vote."""
    order_effect: float
    """Advantage of the left side."""


def fit_strengths(votes: VoteRows, weight: Floats | None = None) -> Strengths:
    """Fit what voters are compared with: Bradley-Terry with `RIDGE` and an order effect.

    Parameters
    ----------
    weight : ndarray of shape (n_votes,), optional
        Votes of weight 0 are excluded.
    """
    if weight is not None:
        votes, weight = votes.taken(weight > 0), weight[weight > 0]
    data = votes.comparisons(weight=weight)
    if not data.n_votes:
        return Strengths(np.zeros(len(votes.models)), 0.0)
    try:
        fitted = fit(data, ridge=RIDGE, order_effect=True)
    except NotIdentifiedError:  # the sides are the models, or foretell every vote
        fitted = fit(data, ridge=RIDGE)
    order = [one.value for one in fitted.parameters if one.name == ORDER_EFFECT]
    return Strengths(votes.placed(fitted.models, fitted.theta), sum(order))


class _Seen(NamedTuple):
    """One model in the eyes of the voters who decided on it."""

    model: int
    voters: Ints
    wins: Ints
    votes: Ints
    likelihood: Floats
    """Log-likelihood of each voter's votes at each node of `NODES`, (n_voters, n_nodes)."""

    def honest(self, mean: Floats, sd: Floats) -> Floats:
        """Return log h of each voter under laws of random effects, shape (n_voters, n_laws)."""
        log_density = -(((NODES[:, None] - mean) / sd) ** 2) / 2
        log_density -= scipy.special.logsumexp(log_density, axis=0)
        highest = self.likelihood.max(axis=1, keepdims=True)
        mixed = np.exp(self.likelihood - highest) @ np.exp(log_density)
        return np.asarray(np.log(np.maximum(mixed, 1e-300)) + highest)

    def total(self, laws: "_Laws", weight: Floats | None = None) -> Floats:
        """Return the sum of log h over voters, or of their shares, under each law; in parts."""
        total = np.zeros(len(laws.mean))
        for start in range(0, len(self.voters), RING_VOTERS_AT_ONCE):
            some = slice(start, start + RING_VOTERS_AT_ONCE)
            part = self._replace(likelihood=self.likelihood[some]).honest(*laws)
            total += part.sum(axis=0) if weight is None else weight[some] @ part
        return total

    def members(self, direction: Direction, loyalty: float) -> Floats:
        """Return log f of each voter."""
        loyal = self.wins if direction == "for" else self.votes - self.wins
        return np.asarray(loyal * np.log(loyalty) + (self.votes - loyal) * np.log1p(-loyalty))


def _views(votes: VoteRows, weight: Floats) -> Iterator[_Seen]:
    strengths = fit_strengths(votes, weight)
    for model in range(len(votes.models)):
        yield _seen(votes, model, *strengths)


def _seen(votes: VoteRows, model: int, theta: Floats, order_effect: float) -> _Seen:
    votes = votes.taken(votes.on(model) & (votes.score != 0.5))
    left = votes.a == model
    other = np.where(left, votes.b, votes.a)
    lead = theta[model] - theta[other] + np.where(left, order_effect, -order_effect)
    won = np.where(left, votes.score, 1 - votes.score) == 1
    voters, own = np.unique(votes.voter, return_inverse=True)
    sign = np.where(won, 1.0, -1.0)
    likelihood = np.empty((len(voters), len(NODES)))
    for node, taste in enumerate(NODES):
        each = -np.logaddexp(0.0, -sign * (lead + taste))
        likelihood[:, node] = np.bincount(own, each, len(voters))
    wins = np.bincount(own[won], minlength=len(voters))
    return _Seen(model, voters, wins, np.bincount(own, minlength=len(voters)), likelihood)


class _Laws(NamedTuple):
    """Normal laws of the random effects for one model, in nats, shape (n_laws,) each."""

    mean: Floats
    sd: Floats

    @classmethod
    def of(cls, means: Sequence[float] | Floats, sds: Sequence[float] | Floats) -> Self:
        mean, sd = np.meshgrid(means, sds, indexing="ij")
        return cls(mean.ravel(), sd.ravel())


LAWS = _Laws.of(np.linspace(-2.0, 2.0, 33), [*np.linspace(0.1, 1.1, 11), WIDEST])
"""Among which the most honest one is sought."""

BESIDE_FANS = _Laws.of([-1.0, -0.75, -0.5, -0.25, 0.0], [0.1, 0.3, 0.5, 0.8])
"""Of the others, where fans raise the strength that all voters make together."""


@dataclass(frozen=True, slots=True, eq=False)
class _Suspect:
    model: int
    direction: Direction
    log_evidence: float
    share: float
    member: Floats
    """By the code of the voter."""


def _suspects(view: _Seen, votes: VoteRows, trait: Bools, limit: float) -> list[_Suspect]:
    if len(view.voters) < LEAST_ACCOUNTS:
        return []
    total = view.total(LAWS)
    suspects = []
    for direction in get_args(Direction):
        theirs = trait[view.voters]
        log_e = _log_mixture(view, direction, theirs) - float(total.max())
        if log_e <= limit:
            continue
        best = _log_mixture(view, direction, theirs, np.max)
        if _two_groups(view)[0] <= best + GROUPS_GAIN:
            member = _membership(view, direction, int(total.argmax()), votes, trait)
            if (member > 0.5).sum() >= LEAST_ACCOUNTS:
                share = float(member.mean())
                everybody = np.zeros(len(trait))
                everybody[view.voters] = member
                suspects.append(_Suspect(view.model, direction, log_e, share, everybody))
    return suspects


def _log_mean(log_values: Floats, axis: int | None = None) -> Floats:
    n = log_values.size if axis is None else log_values.shape[axis]
    return np.asarray(scipy.special.logsumexp(log_values, axis=axis) - np.log(n))


def _log_mixture(
    view: _Seen, direction: Direction, trait: Bools, over: Callable[..., Floats] = _log_mean
) -> float:
    """Return the log of the mean over shares, loyalties and the laws of the others, or their max.

    Accounts with the trait have shares of their own.
    """
    mean = BESIDE_FANS.mean if direction == "for" else -BESIDE_FANS.mean
    honest = view.honest(mean, BESIDE_FANS.sd)
    total = np.zeros((len(LOYALTIES), honest.shape[1]))
    for at, loyalty in enumerate(LOYALTIES):
        fans = view.members(direction, loyalty)[:, None]
        for rows in (trait, ~trait):
            by_share = [
                np.logaddexp(np.log1p(-s) + honest[rows], np.log(s) + fans[rows]).sum(axis=0)
                for s in SHARES
            ]
            total[at] += over(np.array(by_share), axis=0)
    return float(over(total))


def _membership(
    view: _Seen, direction: Direction, law: int, votes: VoteRows, trait: Bools
) -> Floats:
    """Fit who is a member by EM from a first law of `LAWS`, shape (n_voters of the view,)."""
    cast = np.bincount(votes.voter[votes.score != 0.5], minlength=len(trait))
    busy = np.log(cast[view.voters])
    busy = (busy - busy.mean()) / max(float(busy.std()), 1e-9)
    traits = np.column_stack([np.ones(len(busy)), busy, busy**2, trait[view.voters]])
    loyal = view.wins if direction == "for" else view.votes - view.wins
    coefficients = np.array([-2.0, 0.0, 0.0, 0.0])
    loyalty = LOYALTIES[0]
    member = np.zeros(len(busy))
    for step in range(STEPS):
        honest = view.honest(LAWS.mean[[law]], LAWS.sd[[law]])[:, 0]
        gain = view.members(direction, loyalty) - honest
        member = scipy.special.expit(traits @ coefficients + gain)
        problem = Logistic(traits, member, np.ones(len(member)), PRIOR_PRECISION)
        coefficients = minimise(problem, coefficients).x
        loyalty = float(member @ loyal + 97) / float(member @ view.votes + 100)
        if step < STEPS_OF_LAW:
            law = int(view.total(LAWS, 1 - member).argmax())
    return np.asarray(member)


def _rings(votes: VoteRows, suspects: Sequence[_Suspect], weight: Floats) -> tuple[Ring, ...]:
    if not suspects:
        return ()
    full, _ = fit_strengths(votes, np.ones(votes.n))
    clean, _ = fit_strengths(votes, weight)
    rings = [
        Ring(
            model=votes.models[one.model],
            direction=one.direction,
            accounts=int((one.member > 0.5).sum()),
            share=one.share,
            log_evidence=one.log_evidence,
            gained=_gained(full, clean, one.model),
        )
        for one in suspects
    ]
    return tuple(sorted(rings, key=lambda ring: -ring.log_evidence))


def _gained(full: Floats, clean: Floats, model: int) -> Gained:
    above = [int((theta > theta[model]).sum()) for theta in (full, clean)]
    points = POINTS_PER_NAT * float(full[model] - clean[model])
    return Gained(points=points, ranks=above[1] - above[0])


def _groups(view: _Seen, models: Sequence[str]) -> TasteGroups | None:
    """Describe two groups of voters, if that gains `GROUPS_GAIN`."""
    if len(view.voters) < LEAST_ACCOUNTS:
        return None
    total, share, gap = _two_groups(view)
    gain = total - float(view.total(LAWS).max())
    return TasteGroups(models[view.model], share, gap, gain) if gain > GROUPS_GAIN else None


def _two_groups(view: _Seen) -> tuple[float, float, float]:
    """Fit two groups whose preferences have the same sd; gives log-likelihood, share and gap.

    Minus infinity if fewer than `LEAST_ACCOUNTS` voters are more likely of one of them.
    """
    low, high = np.triu_indices(len(MEANS), 1)
    best, share_, gap, minority = -np.inf, 0.0, 0.0, 0
    for sd in GROUP_SDS:
        each = view.honest(MEANS, np.full(len(MEANS), sd))
        for share in GROUP_SHARES:
            above, below = np.log(share) + each[:, high], np.log1p(-share) + each[:, low]
            total = np.logaddexp(above, below).sum(axis=0)
            at = int(total.argmax())
            if total[at] > best:
                best, share_, gap = (
                    float(total[at]),
                    float(share),
                    MEANS[high[at]] - MEANS[low[at]],
                )
                n_above = int((above[:, at] > below[:, at]).sum())
                minority = min(n_above, len(view.voters) - n_above)
    return best if minority >= LEAST_ACCOUNTS else -np.inf, share_, float(gap)
