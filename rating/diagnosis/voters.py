"""Honest or not: bets against each voter's votes that an honest voter would lose."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np
import scipy  # its submodules load on first use

from rating.diagnosis.taste import Ballots, log_marginals, rows_by_voter
from rating.errors import DataError
from rating.rows import VoteRows
from rating.typing import Floats, Ints

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
        Ties of either kind, left out: see `check_voters`.
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
    """Weigh each voter's votes against those of an honest voter with tastes.

    The evidence is a mixture of likelihood ratios, an e-process::

        E = sum_k w_k prod_i q_k(y_i) / P(y_1, y_2, ...)

    The honest voter below sees the models at ``theta`` plus personal tastes
    of sd ``taste_sd``, integrated out (`rating.diagnosis.taste.log_marginals`), and
    leans to the left by ``order_effect`` like everybody. The alternatives
    above, w .15 each: coin (1/2), always left (.9), always right (.9),
    inverted (tastes around ``-theta``, the same lean); and sharing .4 evenly,
    a fan (.95 for the model wherever it appears) and an anti-fan (.05) of
    each model, who are honest elsewhere, with the tastes of their votes so
    far and the same lean.
    Without tastes of their own the last three would fall behind an honest
    voter's model that learns the tastes: the more votes, the less power.

    E is looked at after every 10 decisive votes (beyond 500, whenever their
    number has grown by a fiftieth) and after the last. By
    Ville's inequality an honest voter's E ever reaches ``1 / alpha`` with
    chance alpha at most, however often one looks. That holds on average over
    honest voters of the taste law, not for each one: a person of very unusual
    taste is flagged more often. A hundred honest voters at .05 still make up
    to five false flags, so a flag is a reason to look and to show the board
    with and without, not a verdict.

    Ties are left out: how often a person ties is a habit, not a sign of
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
        In nats: `rating.diagnosis.taste.fit_taste_sd`. Zero punishes unusual honest
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
    people, score = rows_by_voter(votes.voter), votes.score
    checks: list[VoterCheck] = []
    for first in range(0, len(people), VOTERS_AT_ONCE):
        some = people[first : first + VOTERS_AT_ONCE]
        theirs = [_Votes.of(votes.a[rows], votes.b[rows], score[rows]) for rows in some]
        for rows, own, evidence in zip(
            some, theirs, _evidence(theirs, theta, taste_sd, order_effect), strict=True
        ):
            voter, n_ties = int(votes.voter[rows[0]]), len(rows) - len(own.score)
            checks.append(_finding(voter, n_ties, evidence, votes.models, alpha))
    return tuple(checks)


@dataclass(frozen=True, slots=True, eq=False)
class _Votes:
    """Decisive votes of one voter."""

    left: Ints
    right: Ints
    score: Floats
    looks: Ints
    """Number of votes at each look."""

    @classmethod
    def of(cls, left: Ints, right: Ints, score: Floats) -> Self:
        decisive = score != 0.5
        looks = _looks(int(decisive.sum()))
        return cls(left[decisive], right[decisive], score[decisive], looks)

    def ballots(self) -> list[Ballots]:
        won = self.score == 1
        return [Ballots(self.left[:n], self.right[:n], won[:n]) for n in self.looks]


def _looks(n: int) -> Ints:
    looks = [0]
    while looks[-1] < n:
        looks.append(min(n, looks[-1] + max(LOOK_EVERY, looks[-1] // LOOKS_PER_FOLD)))
    return np.array(looks[1:], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Evidence:
    """Logs of the weighted alternatives over the null, at each look."""

    looks: Ints
    parts: Floats
    """Shape (n_looks, 4 + 2 n_models): the plain alternatives, fans, anti-fans."""

    @property
    def log_e(self) -> Floats:
        return np.asarray(scipy.special.logsumexp(self.parts, axis=1))


def _evidence(
    votes: Sequence[_Votes], theta: Floats, taste_sd: float, order_effect: float
) -> Iterator[_Evidence]:
    """Yield the evidence against each voter."""
    ballots = [part for own in votes for part in own.ballots()]
    honest = log_marginals(ballots, theta, taste_sd, order_effect)
    inverted = log_marginals(ballots, -theta, taste_sd, order_effect).log_probability
    fans = np.full(2 * len(theta), FANS_WEIGHT / (2 * len(theta)))
    log_weight = np.log(np.append(np.full(len(PLAIN), PLAIN_WEIGHT), fans))
    start = 0
    for own in votes:
        at = slice(start, start + len(own.looks))
        liking = np.vstack([theta, honest.liking[at]])
        bets = np.column_stack([_sides(own), inverted[at], _fans(own, liking, order_effect)])
        yield _Evidence(own.looks, log_weight + bets - honest.log_probability[at, None])
        start = at.stop


def _sides(votes: _Votes) -> Floats:
    """Log-probability up to each look of a coin, always left, always right."""
    n_left = votes.score.cumsum()[votes.looks - 1]
    log_p = np.log([0.5, SIDE_PROBABILITY, 1 - SIDE_PROBABILITY])
    return np.asarray(np.outer(n_left, log_p) + np.outer(votes.looks - n_left, log_p[[0, 2, 1]]))


def _fans(votes: _Votes, liking: Floats, order_effect: float) -> Floats:
    """Log-probability up to each look of a fan and of an anti-fan of each model.

    On the other pairs a fan is the honest voter that the votes up to the last
    look make most likely.

    Parameters
    ----------
    liking : ndarray of shape (n_looks + 1, n_models)
        Before the first vote, and at each look.
    """
    last = np.searchsorted(votes.looks, np.arange(len(votes.score)), side="right")
    lead = liking[last, votes.left] - liking[last, votes.right] + order_effect
    won = votes.score == 1
    honest = -np.logaddexp(0.0, np.where(won, -lead, lead))[:, None]
    each = np.arange(liking.shape[1])
    winner = np.where(won, votes.left, votes.right)[:, None] == each
    loser = np.where(won, votes.right, votes.left)[:, None] == each
    loyal, disloyal = np.log([FAN_CHANCE, 1 - FAN_CHANCE])
    fan = np.select([winner, loser], [loyal, disloyal], honest)
    anti_fan = np.select([winner, loser], [disloyal, loyal], honest)
    return np.hstack([fan, anti_fan]).cumsum(axis=0)[votes.looks - 1]


def _finding(
    voter: int, n_ties: int, evidence: _Evidence, models: Sequence[str], alpha: float
) -> VoterCheck:
    log_e = np.append(0.0, evidence.log_e)  # before the first vote
    looks = np.append(0, evidence.looks)
    highest = int(log_e.argmax())
    reached = np.flatnonzero(log_e >= -np.log(alpha))
    flagged_at = int(looks[reached[0]]) if reached.size else None
    leading, model = _leader(evidence, highest, models)
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


def _leader(
    evidence: _Evidence, highest: int, models: Sequence[str]
) -> tuple[Alternative | None, str | None]:
    if highest == 0:
        return None, None
    best = int(evidence.parts[highest - 1].argmax())
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
        return "The votes are those of an honest voter with tastes."
    seen = _IN_WORDS[leading].format(model=model)
    odds = f"{np.exp(min(log_e, 20.0)):.3g}"
    odds = f"over {odds}" if log_e > 20 else odds
    if flagged_at is None:
        return f"The nearest suspicion is {seen}: evidence {odds} to 1, not enough to act on."
    return f"The votes look like {seen}: evidence {odds} to 1, flagged after {flagged_at} votes."
