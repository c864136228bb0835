"""Rings: accounts that vote for one model, or against it, wherever it appears."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
import scipy  # its submodules load on first use

from rating.elo import POINTS_PER_NAT
from rating.errors import DataError, NotIdentifiedError
from rating.fitting import fit
from rating.likelihood.design import ORDER_EFFECT
from rating.rows import VoteRows
from rating.typing import Bools, Floats, Ints

Direction = Literal["for", "against"]

RIDGE = 0.1
"""Gives every model a strength, also one that has not lost yet: strengths of sd 3.2 nats."""

LOYALTIES = (0.95, 0.99)
"""Share of the votes on the model that a member casts for it, or against it."""

LEAST_ACCOUNTS = 3
ROUNDS = 2
STEPS = 40
STEPS_OF_LAW = 15
VOTERS_AT_ONCE = 5_000

NODES = np.linspace(-6.0, 6.0, 97)
"""Tastes for one model in nats: sums over them are integrals for every sd of `LAWS`."""

WIDEST = 1.2
"""Largest sd of honest tastes for one model, in nats; 8,931 votes of a crowd showed 0.86."""

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
    """Accounts that vote alike on one model, too much so for tastes.

    Attributes
    ----------
    accounts : int
        Accounts that are members with a probability above one half.
    share : float
        Of the accounts with decisive votes on the model: the mean probability of membership.
    log_evidence : float
        Log of the Bayes factor against honest tastes, in nats.
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
    """Two groups of honest voters who differ on a model: shown, and not left out.

    Attributes
    ----------
    share : float
        Of the voters, in the group that likes the model better.
    gap : float
        Between the mean tastes of the groups, in nats.
    gain : float
        Log-likelihood of two groups over that of one, in nats.
    """

    model: str
    share: float
    gap: float
    gain: float


@dataclass(frozen=True, slots=True, eq=False)
class RingCheck:
    """What all votes together say of rings.

    Attributes
    ----------
    rings : tuple of Ring
        Those with the most evidence first.
    groups : tuple of TasteGroups
        Of models without a ring.
    weight : ndarray of shape (n_votes,)
        Of each vote: 1 less the probability that its voter is a member, for a vote on the model
        of a ring; else 1.
    member : dict of (str, str) to ndarray of shape (n_voters,)
        Probability of membership of each voter, by model and direction.
    limit : float
        Log-evidence from which a ring is named.
    """

    rings: tuple[Ring, ...]
    groups: tuple[TasteGroups, ...]
    weight: Floats
    member: dict[tuple[str, Direction], Floats]
    limit: float


def find_rings(
    votes: VoteRows,
    *,
    trait: Bools | None = None,
    alpha: float = 0.05,
) -> RingCheck:
    """Ask of each model whether some accounts vote for it, or against it, wherever it appears.

    Of a model m, voter u has a taste d_u beside the strengths of all. Honest
    voters are one normal law of tastes; a member casts `LOYALTY` of the votes
    on m for it (against it)::

        h_u(mean, sd) = integral of prod_i sigmoid(+-(lead_i + d)) N(d; mean, sd) dd
        f_u           = LOYALTY^wins (1 - LOYALTY)^losses
        log E         = log mean over (share, mean, sd) of prod_u ((1 - share) h_u + share f_u)
                        - log max over (mean, sd) of prod_u h_u

    The denominator is the largest that any honest law reaches, so ``E`` has a
    mean of 1 at most under each of them, for voters of independent tastes:
    with two directions of n models, a ring is named from ``2 n / alpha`` on,
    if at least `LEAST_ACCOUNTS` accounts are members more likely than not.
    That holds for one look at the votes, with strengths taken as known.
    Nothing is reported where two groups of honest voters describe the votes
    better by more than `GROUPS_GAIN`, with as many parameters: a minority
    agrees within itself as coordinated voters do.

    Where accounts have a ``trait`` (of behaviour, not of votes), those with it
    have a share of their own. What speaks for a ring are votes alone; the
    trait says who is in it.

    A member's weight is soft: votes on m weigh 1 less the probability of
    membership, fitted by EM with the logit of membership quadratic in the log
    of the voter's votes, plus the trait, and with the loyalty and the law of
    honest tastes fitted. Their other votes stay. Strengths are then fitted
    anew, and all is done once more from these.

    Parameters
    ----------
    votes : VoteRows
        A row each; ties are no evidence.
    trait : ndarray of shape (n_voters,), bool, optional
        Accounts whose behaviour is suspicious.
    alpha : float
        Probability of naming any ring where there is none.

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
    """Fit what voters are held against: Bradley-Terry with a ridge of `RIDGE` and an order effect.

    Parameters
    ----------
    weight : ndarray of shape (n_votes,), optional
        Votes of weight 0 are left out.
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
    """Log-likelihood of each voter's votes at each taste of `NODES`, (n_voters, n_nodes)."""

    def honest(self, mean: Floats, sd: Floats) -> Floats:
        """Return log h of each voter under some laws of tastes, shape (n_voters, n_laws)."""
        log_density = -(((NODES[:, None] - mean) / sd) ** 2) / 2
        log_density -= scipy.special.logsumexp(log_density, axis=0)
        highest = self.likelihood.max(axis=1, keepdims=True)
        mixed = np.exp(self.likelihood - highest) @ np.exp(log_density)
        return np.asarray(np.log(np.maximum(mixed, 1e-300)) + highest)

    def total(self, laws: "_Laws", weight: Floats | None = None) -> Floats:
        """Return the sum of log h over voters, or of their shares, under each law; in parts."""
        total = np.zeros(len(laws.mean))
        for start in range(0, len(self.voters), VOTERS_AT_ONCE):
            some = slice(start, start + VOTERS_AT_ONCE)
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
    """Normal laws of the tastes for one model, in nats, shape (n_laws,) each."""

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
    view: _Seen,
    direction: Direction,
    trait: Bools,
    over: Callable[..., Floats] = _log_mean,
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
        coefficients = _logistic(traits, member, coefficients)
        loyalty = float(member @ loyal + 97) / float(member @ view.votes + 100)
        if step < STEPS_OF_LAW:
            law = int(view.total(LAWS, 1 - member).argmax())
    return np.asarray(member)


def _logistic(traits: Floats, target: Floats, start: Floats) -> Floats:
    """Regress probabilities on traits, with a normal prior, a few steps of Newton's method."""
    coefficients = start
    prior = PRIOR_PRECISION * np.eye(len(start))
    for _ in range(5):
        p = scipy.special.expit(traits @ coefficients)
        slope = traits.T @ (target - p) - prior @ coefficients
        curvature = (traits.T * (p * (1 - p))) @ traits + prior
        step = np.linalg.solve(curvature, slope)
        coefficients = coefficients + step / max(1.0, float(np.abs(step).max()))
    return np.asarray(coefficients)


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
