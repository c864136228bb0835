"""What accounts that attack could do to a leaderboard, with its defences on and off."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from rating import __version__
from rating.diagnosis.capture import Held, certify
from rating.elo import POINTS_PER_NAT
from rating.errors import DataError
from rating.fitting import fit
from rating.likelihood.objective import solve
from rating.rows import VoteRows
from rating.tables.voter_report import MOST, check_votes
from rating.typing import Bools, Floats
from rating.uncertainty.contrasts import WELL_FOUNDED

Strategy = Literal["fan", "target", "omnipresent", "inverted", "always-left", "random"]
PUSHING: tuple[Strategy, ...] = ("fan", "target", "omnipresent")
"""Strategies that serve one model; of the others the model that moves most is reported."""

TASTE_SD = 0.4
"""Of attackers where they vote honestly, in nats."""


@dataclass(frozen=True, slots=True)
class Attack:
    """Accounts that attack.

    Attributes
    ----------
    strategy : str
        ``fan`` votes for the model wherever it appears and honestly elsewhere; ``target`` votes
        on the model alone, as who recognises its answers could; ``omnipresent`` is a fan who also
        votes against the two models above; ``inverted`` votes for the worse, ``always-left`` for
        the left side, ``random`` by coin.
    accounts, votes : int
        How many, and the votes of each.
    model : str or None
        The one to push; None for the one in the middle of the leaderboard.
    """

    strategy: Strategy
    accounts: int
    votes: int
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """How far the model moved: points, and ranks upwards, on average over runs.

    Attributes
    ----------
    points_low, points_high : float
        Smallest and largest of the runs.
    """

    points: float
    ranks: float
    points_low: float
    points_high: float


@dataclass(frozen=True, slots=True)
class AttackResult:
    """What an attack moved.

    Attributes
    ----------
    model : str
        The one it pushed, or that moved most without defences.
    off, on : Moved
        Without defences, and with votes left out as ``arena voters --apply`` would.
    left_out, honest_left_out : float
        Shares of the attackers' and of the honest votes that the defences left out.
    holds : tuple of Held
        What the first ranks hold against, whatever new accounts do.
    """

    attack: Attack
    model: str
    runs: int
    off: Moved
    on: Moved
    left_out: float
    honest_left_out: float
    holds: tuple[Held, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            **asdict(self.attack),
            "model": self.model,
            "runs": self.runs,
            "moved": {"off": asdict(self.off), "on": asdict(self.on)},
            "left_out": self.left_out,
            "honest_left_out": self.honest_left_out,
            "holds": [asdict(held) for held in self.holds],
            "version": __version__,
        }


def simulate(
    votes: VoteRows,
    attack: Attack,
    *,
    runs: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> AttackResult:
    """Add the votes of attackers to votes that were cast, and rate with and without defences.

    Attackers meet pairs of models with equal probability (``target``: the model and any other);
    where they are honest, they see the models at the strengths of the votes with tastes of sd
    `TASTE_SD`. The defences are those of ``arena voters --apply``: votes of voters flagged
    jointly, and of sure members of rings on their model, are left out, unless a rule would leave
    out more than `MOST` of all. What moved is against the votes that were cast, rated by maximum
    likelihood.

    Parameters
    ----------
    runs : int
        Draws of the attackers' votes.
    progress : callable, optional
        Takes how many runs are done, and of how many.

    Raises
    ------
    DataError
        For an attack of nobody, an unknown model, or votes of fewer than 15 voters.
    NotIdentifiedError
        If the votes identify no ratings.
    """
    if min(attack.accounts, attack.votes, runs) < 1:
        raise DataError(
            f"An attack needs accounts, votes and runs, 1 or more each, not {attack.accounts:,}, "
            f"{attack.votes:,} and {runs:,}."
        )
    if attack.model is not None and attack.model not in votes.models:
        msg = f"There is no model {attack.model!r} to push; there are {', '.join(votes.models)}."
        raise DataError(msg)
    voters = len(np.unique(votes.voter))
    if voters < WELL_FOUNDED:
        raise DataError(
            f"Too little data: the votes are of {voters:,} voters, and an attack on a board is "
            f"simulated from {WELL_FOUNDED} voters on."
        )
    fitted = fit(votes.comparisons())
    before, wins = votes.placed(fitted.models, fitted.theta), _wins(votes)
    order = np.argsort(-before)
    target = order[len(order) // 2] if attack.model is None else votes.models.index(attack.model)
    off, on = np.empty((2, runs, len(before)))
    left_out, honest_left_out = np.empty((2, runs))
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        attacked = _with(votes, attack, int(target), before, rng)
        is_new, out = attacked.voter >= len(votes.names["voter"]), _left_out(attacked)
        left_out[run], honest_left_out[run] = out[is_new].mean(), out[~is_new].mean()
        off[run] = solve(_wins(attacked), before).theta
        on[run] = solve(_wins(attacked.taken(~out)), before).theta
        if progress:
            progress(run + 1, runs)
    if attack.strategy not in PUSHING:
        target = np.abs(off.mean(axis=0) - before).argmax()
    return AttackResult(
        attack=attack,
        model=votes.models[target],
        runs=runs,
        off=_moved(off, before, int(target)),
        on=_moved(on, before, int(target)),
        left_out=float(left_out.mean()),
        honest_left_out=float(honest_left_out.mean()),
        holds=certify(wins, attack.votes),
    )


def _with(
    votes: VoteRows, attack: Attack, target: int, theta: Floats, rng: np.random.Generator
) -> VoteRows:
    """Add the attackers' votes."""
    n, k = attack.accounts * attack.votes, len(votes.models)
    voter = np.repeat(np.arange(attack.accounts), attack.votes)
    left = rng.integers(k, size=n)
    if attack.strategy == "target":
        left[:] = target
    right = (left + rng.integers(1, k, size=n)) % k
    turned = rng.random(n) < 0.5
    left, right = np.where(turned, right, left), np.where(turned, left, right)
    liking = theta + rng.normal(0, TASTE_SD, (attack.accounts, k))
    lead = liking[voter, left] - liking[voter, right]
    p = 1 / (1 + np.exp(lead if attack.strategy == "inverted" else -lead))
    won = rng.random(n) < p
    if attack.strategy == "always-left":
        won[:] = True
    elif attack.strategy == "random":
        won = rng.random(n) < 0.5
    elif attack.strategy in PUSHING:
        above = np.flatnonzero(theta > theta[target])
        rivals = above[np.argsort(theta[above])][: 2 * (attack.strategy == "omnipresent")]
        against = np.isin(left, rivals), np.isin(right, rivals)
        sides = [left == target, right == target]
        sides += [against[0] & ~against[1], against[1] & ~against[0]]
        won = np.select(sides, [True, False, False, True], won)
    names = votes.names["voter"]
    attacked = VoteRows.scored(
        votes.models,
        np.concatenate([votes.a, left]),
        np.concatenate([votes.b, right]),
        np.concatenate([votes.score, won]),
        np.concatenate([votes.voter, len(names) + voter]),
    )
    attackers = (f"attacker {i + 1}" for i in range(attack.accounts))
    return replace(attacked, names={"voter": (*names, *attackers)})


def _left_out(votes: VoteRows) -> Bools:
    """Say which votes the defences leave out."""
    out = np.zeros(votes.n, dtype=bool)
    codes = {name: code for code, name in enumerate(votes.names["voter"])}
    for charges in check_votes(votes).charges.values():
        named = np.zeros(votes.n, dtype=bool)
        for voter, model in charges:
            rows = votes.voter == codes[voter]
            named |= rows if model is None else rows & votes.on(votes.models.index(model))
        if named.mean() <= MOST:
            out |= named
    return out


def _wins(votes: VoteRows) -> Floats:
    wins = np.zeros((len(votes.models), len(votes.models)))
    np.add.at(wins, (votes.a, votes.b), votes.score)
    np.add.at(wins, (votes.b, votes.a), 1 - votes.score)
    return wins


def _moved(after: Floats, before: Floats, model: int) -> Moved:
    points = POINTS_PER_NAT * (after[:, model] - before[model])
    above = (after > after[:, [model]]).sum(axis=1)
    ranks = (before > before[model]).sum() - above
    low, high = float(points.min()), float(points.max())
    return Moved(float(points.mean()), float(ranks.mean()), low, high)
