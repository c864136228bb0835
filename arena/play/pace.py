"""The pace of a battle: fixed before its first word, by what its models' earlier answers needed.

A rhythm that follows the models tells who is slow. So a battle begins after a delay and goes on
at a rate that both models nearly always keep up with, whatever they do meanwhile.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import NamedTuple

import numpy as np

from arena.domain.battle import PacePool, Pacing
from arena.play.rules import Rules
from arena.store.records import Took
from rating.typing import Floats

RATES = np.array(
    (
        *(20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 135),
        *(150, 175, 200, 250, 300, 400, 500, 700, 1000, 1e4, 1e5),
    )
)
"""Characters a second; the last two are for arenas whose `Rules.characters_per_s` is no pace."""

MEMORY = 400
"""Answers of a model that count: its newest."""
PRIOR_WEIGHT = 20
"""Answers that the prior of a model weighs as much as."""
PRIOR_LENGTH = 1500
EARLY_S = 0.9
LATE_WEIGHT = 5
"""A second of delay beyond `EARLY_S` weighs as many seconds at the end."""
LONGEST_DELAY_S = 5.0
"""Nobody waits longer for what a model does now and then; those battles halt."""
COVERED = 0.98
"""Share of a model's answers that are to keep up."""


def needs(pieces: Sequence[tuple[float, int]]) -> list[float]:
    """Give how long after its first piece an answer has to wait to be shown without a halt.

    At ``R`` characters a second that is ``max_k(t_k - t_first - before_k / R)``, over its pieces
    and its end.

    Parameters
    ----------
    pieces : sequence of (float, int)
        Time of each piece and characters before it; last the time of the end, and all of them.

    Returns
    -------
    list of float
        Seconds, for each of `RATES`.

    Examples
    --------
    >>> needs([(7.0, 0), (8.0, 30), (9.0, 90)])[4:10:2]  # at 60, 80 and 100 a second
    [0.5, 0.875, 1.1]
    """
    at_s, before = np.array(pieces, dtype=float).T
    waits = (at_s - at_s[0])[:, None] - before[:, None] / RATES
    return [float(wait) for wait in waits.max(axis=0).round(3)]


@dataclass(frozen=True, slots=True)
class Pace:
    """How a battle is shown.

    Attributes
    ----------
    rate : float
        Characters a second.
    delay_s : float
        Between the moment when both models have begun and the first character.
    grid_s : float
        At multiples of this, from the request on, the rest of both answers may be shown at once.
    """

    rate: float
    delay_s: float = 0.0
    grid_s: float = 10.0


class Tempo(NamedTuple):
    """How an answer is written: seconds until its first word, and characters a second."""

    first_s: float
    characters_per_s: float


class Paces:
    """Chooses the pace of each battle.

    Each model has its figures: for each rate the 98 % quantile of what its answers needed, the
    same of their durations, and their mean length. A prior weighs as much as 20 answers in them,
    but lets no model wait for less than its own answers needed.

    Parameters
    ----------
    models : collection of str
        Ids of the roster's models: all of these count where `Rules.pace_pool` says so.
    """

    def __init__(self, rules: Rules, models: Collection[str]) -> None:
        self._rules = rules
        self._roster = frozenset(models)
        self._answers = defaultdict[str, deque[Floats]](lambda: deque(maxlen=MEMORY))
        self._figures: dict[str, Floats] = {}
        rate = rules.prior_characters_per_s or rules.characters_per_s
        behind = PRIOR_LENGTH * np.maximum(0, 1 / rate - 1 / RATES)
        whole_s = rules.prior_delay_s + PRIOR_LENGTH / rate
        self._prior = np.array([*(rules.prior_delay_s + behind), whole_s, PRIOR_LENGTH])

    def use(self, models: Collection[str]) -> None:
        """Count other models as those of the roster from here on."""
        self._roster = frozenset(models)

    def recall(self, earlier: Mapping[str, Iterable[Took]]) -> None:
        """Take in what the log knows of each model's answers, oldest first."""
        for model, answers in earlier.items():
            for took in answers:
                self.learn(model, took)

    def learn(self, model: str, took: Took) -> None:
        """Take in an answer; one of another version's rates counts nothing."""
        if len(took.needs) == len(RATES):
            row = np.array([*took.needs, took.duration_s, took.length])
            self._answers[model].append(row)
            self._figures.pop(model, None)

    def of(self, models: Collection[str]) -> Pace:
        """Choose the pace of a battle between these models.

        Of their figures it takes the largest, of lengths the mean; of `RATES` the one of least
        ``need + length * max(0, 1 / rate - 1 / characters_per_s)``, where seconds of need beyond
        `EARLY_S` weigh five times; ties go to the smaller need.
        """
        pool = self._roster if self._rules.pace_pool is PacePool.ROSTER else models
        counted = np.array([self._figures_of(model) for model in pool])
        largest = counted.max(axis=0)
        needed, grid_s = largest[:-2], largest[-2]
        length = counted[:, -1].mean()
        start = needed + (LATE_WEIGHT - 1) * np.maximum(0, needed - EARLY_S)
        end = length * np.maximum(0, 1 / RATES - 1 / self._rules.characters_per_s)
        best = np.lexsort((needed, np.round(start + end, 3)))[0]
        delay_s = min(float(needed[best]), LONGEST_DELAY_S)
        return Pace(float(RATES[best]), delay_s, float(grid_s))

    def tempo_of(self, model: str, length: int, rng: Random) -> Tempo:
        """Give how a model might write an answer of a length: as it wrote one of its newest."""
        rate = self._rules.prior_characters_per_s or self._rules.characters_per_s
        tempo = Tempo(self._rules.prior_delay_s, rate)
        if answers := self._answers[model]:
            *needed, whole_s, characters = rng.choice(answers).tolist()
            writing_s = max(needed[-1], 0.05)
            tempo = Tempo(max(0.0, whole_s - writing_s), max(1.0, characters) / writing_s)
        in_time = length / (self._rules.answer_timeout_s / 2)
        return tempo._replace(characters_per_s=max(tempo.characters_per_s, in_time))

    def _figures_of(self, model: str) -> Floats:
        if model not in self._figures:
            self._figures[model] = self._worked_out(self._answers[model])
        return self._figures[model]

    def _worked_out(self, answers: Collection[Floats]) -> Floats:
        n = len(answers)
        if not n:
            return self._prior
        rows = np.array(answers)
        place = min(n, ceil(COVERED * (n + 1))) - 1
        own = np.partition(rows, place, axis=0)[place]
        own[-1] = rows[:, -1].mean()
        blended: Floats = (PRIOR_WEIGHT * self._prior + n * own) / (PRIOR_WEIGHT + n)
        blended[:-1] = np.maximum(blended, own)[:-1]
        return blended


class Progress(NamedTuple):
    """How far the two models have written, and whether each has ended."""

    written_a: int
    written_b: int
    ended_a: bool
    ended_b: bool

    @property
    def both_ended(self) -> bool:
        """Whether nothing more comes from either side."""
        return self.ended_a and self.ended_b

    @property
    def both_begun(self) -> bool:
        """Whether each side has text, or has ended without any more to come."""
        return (self.written_a > 0 or self.ended_a) and (self.written_b > 0 or self.ended_b)


@dataclass(slots=True)
class Pacer:
    """Decides, tick by tick, how many characters of each answer are shown.

    In mode ``paced`` both sides show the same number of characters: the pace's rate times the
    seconds since both have begun and its delay has passed, whoever has ended. Where a model has
    not written as much, both wait, and the time goes on from there: nobody hurries. ``both-done``
    shows all at the first edge of the pace's grid after both have ended. ``raw`` shows what has
    been written: each model's own rhythm.

    Attributes
    ----------
    rest_wanted : bool
        Whether the reader asked for the rest, once it was offered.
    """

    mode: Pacing
    pace: Pace
    shown_a: int = 0
    shown_b: int = 0
    rest_wanted: bool = False
    _asked_s: float = 0.0
    _begun_s: float = 0.0
    _edge_passed: bool = False

    @property
    def rest_offered(self) -> bool:
        """Whether an edge of the grid has passed since both have ended, in mode ``paced``."""
        return self._edge_passed and self.mode is Pacing.PACED

    def advance(self, progress: Progress, elapsed_s: float) -> bool:
        """Let ``elapsed_s`` more seconds pass; returns whether a reader gets to see it."""
        before = (self.shown_a, self.shown_b, self.rest_offered)
        edge = self._asked_s // self.pace.grid_s
        self._asked_s += elapsed_s
        if progress.both_ended and self._asked_s // self.pace.grid_s > edge:
            self._edge_passed = True
        self.shown_a, self.shown_b = self._release(progress, elapsed_s)
        return (self.shown_a, self.shown_b, self.rest_offered) != before

    def all_shown(self, progress: Progress) -> bool:
        """Whether both models have ended and the reader has seen all of it."""
        return progress.both_ended and (self.shown_a, self.shown_b) == (
            progress.written_a,
            progress.written_b,
        )

    def _release(self, progress: Progress, elapsed_s: float) -> tuple[int, int]:
        whole = (progress.written_a, progress.written_b)
        if self.mode is Pacing.RAW or self.rest_wanted:
            return whole
        if self.mode is Pacing.BOTH_DONE:
            return whole if self._edge_passed else (0, 0)
        level = self._level(progress, elapsed_s)
        return (
            max(self.shown_a, min(level, progress.written_a)),
            max(self.shown_b, min(level, progress.written_b)),
        )

    def _level(self, progress: Progress, elapsed_s: float) -> int:
        """Give how many characters each side may show."""
        rate, delay_s = self.pace.rate, self.pace.delay_s
        ceiling = self._ceiling(progress)
        if not progress.both_begun:
            self._begun_s = 0.0
            return 0
        allowed = (self._begun_s + elapsed_s - delay_s) * rate
        if allowed > ceiling:
            self._begun_s = delay_s + ceiling / rate
            return ceiling
        self._begun_s += elapsed_s
        return max(0, int(allowed))

    @staticmethod
    def _ceiling(progress: Progress) -> int:
        """Length that the sides may reach: what every model still writing has written."""
        if progress.ended_a == progress.ended_b:
            both = (progress.written_a, progress.written_b)
            return max(both) if progress.both_ended else min(both)
        return progress.written_b if progress.ended_a else progress.written_a
