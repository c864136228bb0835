"""Who meets whom: a pair, its exact probability, and the sides."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from arena.domain.battle import Sampler, Wins
from arena.domain.model import Model
from arena.errors import StoreError
from arena.play.chances import Known, Pairing, chances
from rating.errors import RatingError

VERSION = "2"
"""Logged with each battle; raise it when a sampler's probabilities change."""

REFRESH_S = 10.0
"""How old the counts of votes behind a draw may be, and a little more while they are read."""

LEARNING = (Sampler.ARENA, Sampler.GAIN)
"""Samplers whose chances depend on the votes."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Draw:
    """A pair of models on its sides.

    Attributes
    ----------
    pair_probability : float
        Chance of this unordered pair among the candidates, for inverse-probability weights.
    side_seed : int
        Seed from which `sides` puts the pair on its sides.
    """

    a: Model
    b: Model
    pair_probability: float
    side_seed: int


class Matchmaker:
    """Draws pairs by a rule.

    What a rule takes from the votes is worked out by `refresh`; between two of these a draw
    looks its chances up. Where only some of the roster can answer, the rule is that of these
    alone: the probability is exact either way, given the votes counted before.

    Parameters
    ----------
    exploration : float
        Share of the draws that every sampler but the uniform one gives to all pairs alike.
    wins : callable
        Gives the votes counted so far; may block, and raise a `StoreError`.
    """

    def __init__(
        self,
        roster: Iterable[Model],
        *,
        sampler: Sampler,
        exploration: float,
        wins: Callable[[], Wins],
        rng: Random,
    ) -> None:
        self._roster = tuple(roster)
        self._sampler = sampler
        self._exploration = exploration
        self._wins = wins
        self._rng = rng
        self._last: Wins = {}
        self._table = self._made({})

    def drawable(self, candidates: Iterable[Model]) -> tuple[Model, ...]:
        """Leave out those of weight zero, where weights count."""
        weighted = self._sampler is Sampler.WEIGHTED
        return tuple(model for model in candidates if model.weight > 0 or not weighted)

    def draw(self, candidates: Iterable[Model]) -> Draw:
        """Draw two different models and put them on sides by a logged seed.

        Raises
        ------
        ValueError
            If fewer than two candidates may be drawn.
        """
        models = self.drawable(candidates)
        if len(models) < 2:
            msg = f"A battle needs two models that may be drawn, got {len(models)}."
            raise ValueError(msg)
        table = self._table
        ready = table.pairing if models == table.models else None
        pairing = ready or self._pairing(models, table.known)
        pair = self._rng.choices(range(len(pairing.chance)), cum_weights=pairing.cumulative)[0]
        drawn = (models[pairing.first[pair]], models[pairing.second[pair]])
        seed = self._rng.getrandbits(31)
        return Draw(*sides(drawn, seed), float(pairing.chance[pair]), seed)

    def refresh(self) -> None:
        """Count the votes, and work the chances out anew where these have changed."""
        wins = self._wins()
        if wins != self._last:
            self._table = self._made(wins)
            self._last = wins

    async def keep_up(self) -> None:
        """Refresh every few seconds, off the event loop, until cancelled."""
        while self._sampler in LEARNING:
            try:
                await asyncio.to_thread(self.refresh)
            except (StoreError, RatingError):
                logger.exception("Pairs are drawn by older votes: the new ones were not counted")
            await asyncio.sleep(REFRESH_S)

    def _made(self, wins: Wins) -> "_Table":
        known = Known.of(wins, [model.id for model in self._roster], self._sampler)
        models = self.drawable(self._roster)
        pairing = self._pairing(models, known) if len(models) > 1 else None
        return _Table(known, models, pairing)

    def _pairing(self, models: Sequence[Model], known: Known) -> Pairing:
        return Pairing.of(chances(models, known, self._sampler, self._exploration))


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """What a refresh found: replaced as a whole, for draws go on meanwhile.

    Attributes
    ----------
    models : tuple of Model
        The roster's, as far as they may be drawn.
    pairing : Pairing or None
        Theirs; None where there are fewer than two.
    """

    known: Known
    models: tuple[Model, ...]
    pairing: Pairing | None


def draw_one(candidates: Sequence[Model], sampler: Sampler, rng: Random) -> Model:
    """Draw a model to take the place of one that failed; zero weights come last."""
    weights = [model.weight if sampler is Sampler.WEIGHTED else 1.0 for model in candidates]
    return rng.choices(candidates, weights if any(weights) else None)[0]


def sides(pair: tuple[Model, Model], seed: int) -> tuple[Model, Model]:
    """Put a pair on sides A and B: the same seed gives the same sides."""
    first, second = sorted(pair, key=lambda model: model.id)
    return (first, second) if Random(seed).random() < 0.5 else (second, first)  # noqa: S311
