"""Matchmaking: which two models meet, on which sides; and the rules by which battles are played.

`Matchmaker.draw` gives a pair with its exact probability, given the votes so far: it is logged
with the battle. `Rules` are the settings of all battles. The messages at the end state why a
battle ended without a vote, and nothing of why a model failed: a reason may name it.
"""

import asyncio
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import NamedTuple, Self

import numpy as np

from arena.domain.battle import VOTE_WITHIN, PacePool, Pacing, Sampler, Side, WhenAsked, Wins
from arena.domain.model import Model
from arena.domain.vote import Policy
from arena.errors import EXPIRED, StoreError
from arena.store import log
from arena.store.log import Alike
from arena.store.store import Store
from rating import Outcome
from rating.errors import RatingError
from rating.likelihood import hessian, solve
from rating.planning import (
    arena_pairs,
    gain_pairs,
    pair_contrast,
    score_variances,
    uniform_pairs,
    weighted_pairs,
)
from rating.sentences import Sentence
from rating.typing import Floats, Ints

# Pairs

VERSION = "2"
"""Logged with each battle; raise it when a sampler's probabilities change."""

REFRESH_S = 10.0
"""How old the counts of votes behind a draw may be, and a little more while they are read."""

LEARNING = (Sampler.ARENA, Sampler.GAIN, Sampler.RACE)
"""Samplers whose probabilities depend on the votes."""

RIDGE = 0.1
"""Gives a place to a model that has no votes or has not lost yet: strengths of sd 3.2 nats."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What the votes say of the models, in their order.

    Attributes
    ----------
    wins : ndarray of shape (n_models, n_models)
        Score of row against column, a tie half a win for each.
    theta, covariance : ndarray, or None
        Strengths in nats of a fit with a ridge, and the inverse of its information; None
        unless the sampler needs them and there are votes.
    """

    models: tuple[str, ...]
    wins: Floats
    theta: Floats | None = None
    covariance: Floats | None = None

    @classmethod
    def of(cls, wins: Wins, models: Sequence[str], sampler: Sampler) -> Self:
        """Take in the votes; models that have left the roster still tell about the others."""
        names = tuple(sorted({*models, *(name for pair in wins for name in pair)}))
        place = {name: i for i, name in enumerate(names)}
        table = np.zeros((len(names), len(names)))
        for (row, column), score in wins.items():
            table[place[row], place[column]] = score
        if sampler not in (Sampler.GAIN, Sampler.RACE) or not table.any():
            return cls(names, table)
        theta = solve(table, np.zeros(len(names)), ridge=RIDGE).theta
        covariance = np.linalg.inv(hessian(theta, table, ridge=RIDGE))
        return cls(names, table, theta, (covariance + covariance.T) / 2)

    def among(self, models: Sequence[str]) -> Self:
        """Give what is known of some of the models, in their order."""
        place = {name: i for i, name in enumerate(self.models)}
        rows = np.array([place[name] for name in models])
        cells = np.ix_(rows, rows)
        if self.theta is None or self.covariance is None:
            return type(self)(tuple(models), self.wins[cells])
        return type(self)(
            tuple(models), self.wins[cells], self.theta[rows], self.covariance[cells]
        )


_Pairing = tuple[Ints, Ints, Floats, list[float]]
"""Every pair of some models, ready to be drawn from: positions of the first and of the second,
probabilities, and the sums of these so far."""


def pair_probabilities(
    models: Sequence[Model],
    known: Known,
    sampler: Sampler,
    exploration: float,
    race: tuple[str, str] | None = None,
) -> Floats:
    """Give the probability of every pair of two models or more.

    Parameters
    ----------
    known : Known
        Holds the models, among others perhaps.
    exploration : float
        Share of the draws that goes to all pairs alike, in (0, 1].
    race : tuple of (str, str), optional
        Ids of the two that race; where one of them cannot be drawn, neighbours count.

    Returns
    -------
    ndarray of shape (n_models, n_models)
        Symmetric, the upper triangle summing to one: see `rating.planning`.
    """
    if sampler is Sampler.UNIFORM:
        return uniform_pairs(len(models))
    if sampler is Sampler.WEIGHTED:
        weights = np.array([model.weight for model in models])
        return weighted_pairs(weights, exploration=exploration)
    own = known.among([model.id for model in models])
    if sampler is Sampler.ARENA:
        variances = score_variances(own.wins)
        return arena_pairs(own.wins + own.wins.T, variances, exploration=exploration)
    if own.theta is None or own.covariance is None:  # no votes: no neighbours to tell apart
        return uniform_pairs(len(models))
    racing = race is not None and sampler is Sampler.RACE and {*race} <= {*own.models}
    contrast = (
        pair_contrast(len(models), *map(own.models.index, race)) if race and racing else None
    )
    return gain_pairs(own.theta, own.covariance, contrast=contrast, exploration=exploration)


class Draw(NamedTuple):
    """A pair of models on its sides.

    Attributes
    ----------
    pair_probability : float
        Probability of this unordered pair among the candidates, for inverse-probability weights.
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
    looks its probabilities up. Where only some of the roster can answer, the rule is that of these
    alone: the probability is exact either way, given the votes counted before.

    Parameters
    ----------
    exploration : float
        Share of the draws that every sampler but the uniform one gives to all pairs alike.
    wins : callable
        Gives the votes counted so far; may block, and raise a `StoreError`.
    race : tuple of (str, str), optional
        Ids of the two models of which a race is to tell.
    """

    def __init__(
        self,
        roster: Iterable[Model],
        *,
        sampler: Sampler,
        exploration: float,
        wins: Callable[[], Wins],
        rng: Random,
        race: tuple[str, str] | None = None,
    ) -> None:
        self._race = race
        self._roster = tuple(roster)
        self._ever = {model.id for model in self._roster}
        self._turn = threading.Lock()
        self._sampler = sampler
        self._exploration = exploration
        self._wins = wins
        self._rng = rng
        self._last: Wins = {}
        self._table = self._made({})

    def drawable(self, candidates: Iterable[Model]) -> tuple[Model, ...]:
        """Exclude those of weight zero, where weights count."""
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
            raise ValueError(f"A battle needs two models that may be drawn, got {len(models)}.")
        known, all_models, ready = self._table
        pairing = ready if models == all_models else None
        first, second, probability, cumulative = pairing or self._pairing(models, known)
        pair = self._rng.choices(range(len(cumulative)), cum_weights=cumulative)[0]
        seed = self._rng.getrandbits(31)
        a, b = sides((models[first[pair]], models[second[pair]]), seed)
        return Draw(a, b, float(probability[pair]), seed)

    def refresh(self) -> None:
        """Count the votes, and work the probabilities out again where these have changed."""
        wins = self._wins()
        with self._turn:
            if wins != self._last:
                self._table = self._made(wins)
                self._last = wins

    def use(self, roster: Iterable[Model]) -> None:
        """Draw from another roster from here on; may block.

        Draws that go on meanwhile know both rosters: their probabilities are exact, too.
        """
        with self._turn:
            self._roster = tuple(roster)
            self._ever |= {model.id for model in self._roster}
            self._table = self._made(self._last)

    async def keep_up(self) -> None:
        """Refresh every few seconds, off the event loop, until cancelled."""
        while self._sampler in LEARNING:
            try:
                await asyncio.to_thread(self.refresh)
            except (StoreError, RatingError):
                logger.exception("Pairs are drawn by older votes: the new ones were not counted")
            await asyncio.sleep(REFRESH_S)

    def _made(self, wins: Wins) -> tuple[Known, tuple[Model, ...], _Pairing | None]:
        """Work out what a draw looks up; it is replaced as a whole, for draws go on meanwhile.

        What is known, the models of the roster as far as they may be drawn, and their pairs;
        None where there are fewer than two.
        """
        known = Known.of(wins, sorted(self._ever), self._sampler)
        models = self.drawable(self._roster)
        pairing = self._pairing(models, known) if len(models) > 1 else None
        return known, models, pairing

    def _pairing(self, models: Sequence[Model], known: Known) -> _Pairing:
        rule = (self._sampler, self._exploration, self._race)
        table = pair_probabilities(models, known, *rule)
        first, second = np.triu_indices(len(table), k=1)
        probability = table[first, second]
        return first, second, probability, probability.cumsum().tolist()


def draw_one(candidates: Sequence[Model], sampler: Sampler, rng: Random) -> Model:
    """Draw a model to take the place of one that failed; zero weights come last."""
    weights = [model.weight if sampler is Sampler.WEIGHTED else 1.0 for model in candidates]
    return rng.choices(candidates, weights if any(weights) else None)[0]


def sides(pair: tuple[Model, Model], seed: int) -> tuple[Model, Model]:
    """Put a pair on sides A and B: the same seed gives the same sides."""
    first, second = sorted(pair, key=lambda model: model.id)
    return (first, second) if Random(seed).random() < 0.5 else (second, first)  # noqa: S311


class PairWins:
    """Keeps count of the votes that a policy counts; each is read once, when it is new.

    An exclusion may come later than its vote, so what these take away is counted every time. Once
    votes were taken out, all are read again.
    """

    def __init__(self, store: Store, policy: Policy) -> None:
        self._store = store
        self._policy = policy
        self._lock = threading.Lock()
        self._until = 0
        self._tombstone = 0
        self._all: Wins = {}

    def read(self) -> Wins:
        """Give the score of each model against each that it has beaten or tied.

        Raises
        ------
        StoreError
            If the log cannot be read.
        """
        with self._lock:
            with self._store.reading() as session:
                if (tombstone := log.last_tombstone(session)) != self._tombstone:
                    self._tombstone, self._until, self._all = tombstone, 0, {}
                until = log.newest_vote(session)
                fresh = log.outcomes_between(session, self._until, until)
                excluded = log.excluded_outcomes(session, self._policy.name, until)
            self._all = self._added(self._all, fresh, sign=1)
            self._until = until
            wins = self._added(self._all, excluded, sign=-1)
        return {pair: score for pair, score in wins.items() if score}

    def _added(self, wins: Wins, outcomes: Iterable[Alike], *, sign: int) -> Wins:
        """Add scores, or take them away; halves add up without rounding."""
        total = defaultdict(float, wins)
        for pair, outcome, kind, broken, votes in outcomes:
            if self._policy.why_not(outcome, kind, broken=broken) is None:
                score = Outcome(outcome.value).score_a
                total[pair] += sign * votes * score
                total[pair[::-1]] += sign * votes * (1 - score)
        return total


# Prompts to try

OFFER_S = 60.0
"""How long the same prompts are offered: a page with them is made once in that time."""


class Offers:
    """Draws a few of some prompts, other ones every minute; any thread may ask."""

    def __init__(self, prompts: Sequence[str], n: int, rng: Random) -> None:
        self._prompts, self._n, self._rng = prompts, n, rng
        self._turn = threading.Lock()
        self._now: tuple[str, ...] = ()
        self._until_s = 0.0

    def now(self) -> tuple[str, ...]:
        """Give the prompts that are offered now."""
        with self._turn:
            if time.monotonic() >= self._until_s:
                n = min(self._n, len(self._prompts))
                self._now = tuple(self._rng.sample(self._prompts, n))
                self._until_s = time.monotonic() + OFFER_S
            return self._now


# Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How battles are played; logged with each of them where it matters.

    Attributes
    ----------
    exploration : float
        Share of the draws that every sampler but the uniform one gives to all pairs alike.
    race : tuple of (str, str) or None
        Ids of the two models that race, for the sampler of that name.
    characters_per_s : float
        As fast as anybody reads: a quicker pace gains nothing.
    pace_pool : PacePool
        Whose earlier answers decide the pace of a battle: see `arena.play.pace`.
    prior_delay_s, prior_characters_per_s : float, and float or None
        What a model without earlier answers is taken to need: a delay, and a rate at which it
        keeps up; None is the rate of reading.
    answer_timeout_s : float
        Longest that one answer may take in all.
    tick_s, checkpoint_s : float
        Seconds between releases of text, and between writes of unfinished answers.
    retry_pauses_s : tuple of float
        Seconds before an endpoint that failed before its first token is asked again.
    reasons : WhenAsked
        When the page asks for reasons; before the names, they are withheld until it has.
    paused_for : timedelta
        How long a model is not drawn after its endpoint said that the account has no credit.
    most_repicks : int
        How often a side that failed before its text was seen goes to another model.
    vote_within : timedelta
        How long a battle takes a vote after its models were last asked.
    """

    pacing: Pacing = Pacing.PACED
    sampler: Sampler = Sampler.UNIFORM
    exploration: float = 0.1
    race: tuple[str, str] | None = None
    characters_per_s: float = 150.0
    pace_pool: PacePool = PacePool.PAIR
    prior_delay_s: float = 1.0
    prior_characters_per_s: float | None = None
    max_prompt_chars: int = 20_000
    max_answer_chars: int = 40_000
    answer_timeout_s: float = 180.0
    tick_s: float = 0.1
    checkpoint_s: float = 2.0
    retry_pauses_s: tuple[float, ...] = (0.5, 1.5)
    paused_for: timedelta = timedelta(minutes=10)
    most_repicks: int = 2
    reasons: WhenAsked = WhenAsked.AFTER
    vote_within: timedelta = VOTE_WITHIN


# Messages to visitors

STOPPED = Sentence(
    "You stopped before both models had written anything. Nothing was counted. Try this prompt "
    "again, or start a new battle."
)
INTERRUPTED = Sentence(
    "The arena was restarted while the models were answering. Nothing was counted. Try this "
    "prompt again, or start a new battle."
)
NOT_SAVED = Sentence(
    "The answers could not be saved. Nothing was counted. Try this prompt again, or start a new "
    "battle."
)
TOO_LONG = Sentence(
    "This prompt, with what was said before it, is too long for one of the models. Nothing was "
    "counted. Shorten it, or start a new battle."
)
EMPTY_PROMPT = Sentence("Write a prompt first.")
REVEALED = Sentence(
    "A model showed its reasoning, which may name it. Begin a new battle with the same prompt."
)
VOTE_FIRST = Sentence("Vote first. Then you can go on with these two.")
WHY_FIRST = Sentence("Show the names first. Then you can go on with these two.")
MODEL_GONE = Sentence("One of these two models is no longer here. Start a new battle.")
ONE_TURN = Sentence("Recorded models answer one prompt only. Start a new battle.")
NOT_ALL_YET = Sentence("The rest of the answers cannot be shown at once yet.")
NOT_CHECKED_YET = Sentence("The instructions followed are shown once you have seen the names.")
NOT_RECORDED = Sentence("Only recorded prompts can be answered here. Choose one from the list.")


def failed_message(side: Side) -> Sentence:
    """Return which side did not answer, and nothing of why: a reason may name the model."""
    if side is Side.A:
        return Sentence(
            "Model A stopped answering. Nothing was counted. Try this prompt again, or start a "
            "new battle."
        )
    return Sentence(
        "Model B stopped answering. Nothing was counted. Try this prompt again, or start a new "
        "battle."
    )


ENDS = (STOPPED, INTERRUPTED, NOT_SAVED, EXPIRED, TOO_LONG, *map(failed_message, Side))
"""Why a battle ended without a vote; the log has them in English."""


def too_long_message(length: int, limit: int) -> Sentence:
    """Say by how much a prompt is too long."""
    return Sentence(
        "The prompt has %(length)s characters; up to %(limit)s can be sent. Shorten it.",
        length=length,
        limit=limit,
    )
