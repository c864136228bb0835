"""Arenas of honest voters with tastes, attacked by a ring of accounts that push one model."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rating.likelihood import solve
from rating.rows import VoteRows
from rating.variants import POINTS_PER_NAT
from rating.voters import RingCheck, find_rings

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Bools = NDArray[np.bool_]

N_MODELS = 10
THETA = np.linspace(-0.8, 0.8, N_MODELS)
TARGET = 4
NAMES = tuple(f"m{i}" for i in range(N_MODELS))


@dataclass(frozen=True, slots=True)
class Arena:
    """Honest voters of `tests.simulation.D1`, and a ring of ``accounts`` of ``each`` votes.

    Members vote for the model `TARGET` wherever it appears (``sign`` -1: against it) and are
    honest elsewhere. ``heaviest`` is the share of honest votes that one voter casts; the share
    ``community`` of the honest voters likes the model better by ``liking`` nats; ``club`` honest
    accounts of 20 votes like it better by one nat. ``every`` honest voter casts so many votes.
    """

    accounts: int = 0
    each: int = 0
    sign: int = 1
    taste: float = 0.4
    heaviest: float = 0.0
    community: float = 0.0
    liking: float = 1.0
    club: int = 0
    every: int = 0
    n_honest: int = 200

    def draw(self, rng: np.random.Generator) -> "Votes":
        votes = np.ceil(rng.lognormal(1.7, 1.4, self.n_honest)).astype(np.int64)
        if self.every:
            votes[:] = self.every
        if self.heaviest:
            votes[0] = int(self.heaviest / (1 - self.heaviest) * votes[1:].sum())
        votes = np.r_[votes, np.full(self.club, 20), np.full(self.accounts, self.each)]
        liking = THETA + rng.normal(0, self.taste, (len(votes), N_MODELS))
        liking[: int(self.community * self.n_honest), TARGET] += self.liking
        honest = self.n_honest + self.club
        liking[self.n_honest : honest, TARGET] += 1.0
        return self._voted(rng, votes, liking, np.arange(len(votes)) >= honest)

    def _voted(
        self, rng: np.random.Generator, votes: Codes, liking: Floats, member: Bools
    ) -> "Votes":
        voter = np.repeat(np.arange(len(votes)), votes)
        left = rng.integers(N_MODELS, size=len(voter))
        right = (left + rng.integers(1, N_MODELS, size=len(voter))) % N_MODELS
        lead = liking[voter, left] - liking[voter, right]
        won = rng.random(len(voter)) < 1 / (1 + np.exp(-lead))
        on_left, on_right = (member[voter] & (side == TARGET) for side in (left, right))
        won = np.select([on_left, on_right], [self.sign > 0, self.sign < 0], won)
        return Votes(left, right, won.astype(np.float64), voter, member)


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    left: Codes
    right: Codes
    score: Floats
    voter: Codes
    member: Bools

    @property
    def rows(self) -> VoteRows:
        return VoteRows.scored(NAMES, self.left, self.right, self.score, self.voter)

    def check(self, trait: Bools | None = None) -> RingCheck:
        return find_rings(self.rows, trait=trait)

    def strengths(self, weight: Floats | None = None) -> Floats:
        weight = np.ones(len(self.score)) if weight is None else weight
        wins = np.zeros((N_MODELS, N_MODELS))
        np.add.at(wins, (self.left, self.right), weight * self.score)
        np.add.at(wins, (self.right, self.left), weight * (1 - self.score))
        return solve(wins, np.zeros(N_MODELS), ridge=0.1).theta

    def of(self, rows: Bools) -> "Votes":
        columns = {name: getattr(self, name)[rows] for name in ("left", "right", "score", "voter")}
        return replace(self, **columns)

    def trait(self, rng: np.random.Generator) -> Bools:
        """Behaviour of nine in ten members and of one in twenty others."""
        return np.asarray(rng.random(len(self.member)) < np.where(self.member, 0.9, 0.05))


@dataclass(frozen=True, slots=True)
class Moved:
    """What a ring gained its model against the honest votes alone, with some weights."""

    points: float
    ranks: int

    @classmethod
    def by(cls, votes: Votes, weight: Floats | None = None) -> "Moved":
        alone = votes.of(~votes.member[votes.voter]).strengths()
        after = votes.strengths(weight)
        above = [int((theta > theta[TARGET]).sum()) for theta in (alone, after)]
        points = POINTS_PER_NAT * float(after[TARGET] - alone[TARGET])
        return cls(points, above[0] - above[1])
