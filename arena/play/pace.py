"""The pace at which both answers of a battle are shown, so that timing does not reveal a model.

A rhythm that follows the models tells who is slow. So a battle begins after a delay and goes on at
a rate that both models nearly always keep up with, whatever they do meanwhile. `Paces` fixes both
before the first word, by what the models' earlier answers needed; `Pacer` releases the text.
`probe` tests it: a classifier reads simulated battles as a page gets them, and names the slower
model.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import NamedTuple, Protocol

import numpy as np

from arena.domain.battle import PacePool, Pacing
from arena.play.matchmaking import Rules
from arena.store.chain import Took
from rating.typing import Floats

# Choice of a pace

RATES = np.array(
    (
        20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 135,
        150, 175, 200, 250, 300, 400, 500, 700, 1000, 1e4, 1e5,
    )
)  # fmt: skip
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


# Release of text


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
    seconds since both have begun and its delay has passed, even if one has ended. If a model has
    not written as much, both wait, and the time goes on from there without catching up.
    ``both-done`` shows all at the first edge of the pace's grid after both have ended. ``raw``
    shows what has been written: each model's own rhythm.

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


# Probe: can a classifier name the slower model

TREES = 200
FOLDS = 5
MOST_RIGHT = 0.55
"""A classifier may name the slow side this often: in half of the battles by luck, and 5 points."""
MOST_HALTED = 0.03

LATE_S = 0.25
"""A battle that ends this much later than its pace says has halted."""


class Writer(NamedTuple):
    """A simulated model.

    Attributes
    ----------
    rate : float
        Characters a second; of single answers it is half as often within 7 % of this.
    first_s : float
        Until its first piece, at the median.
    piece : int
        Characters of a piece.
    """

    rate: float
    first_s: float = 0.5
    piece: int = 12


class Scenario(NamedTuple):
    """A model to be recognised, and those that it meets."""

    name: str
    odd: Writer
    others: tuple[Writer, ...]


SCENARIOS = (
    Scenario("100 against 1,000 characters a second", Writer(100), (Writer(1000),)),
    Scenario("250 against 1,000 characters a second", Writer(250), (Writer(1000),)),
    Scenario("first word after 2 s against at once", Writer(300, 2.0), (Writer(300, 0.0),)),
    Scenario(
        "pieces of 200 characters against 4", Writer(300, piece=200), (Writer(300, piece=4),)
    ),
    Scenario(
        "one of 100 among 19 of about 900",
        Writer(100),
        tuple(Writer(float(rate)) for rate in range(810, 1000, 10)),
    ),
)


class Written(NamedTuple):
    """When an answer came: the seconds of its pieces and of its end, and characters until each."""

    at_s: Floats
    until: Floats

    @property
    def took(self) -> Took:
        """What the pace is chosen by."""
        before = [0, *self.until[:-1].tolist()]
        pieces = list(zip(self.at_s.tolist(), before, strict=True))
        return Took(needs(pieces), float(self.at_s[-1]), int(self.until[-1]))


class _Releases(Protocol):
    """What decides how much is shown: `Pacer`, or another to compare with it."""

    shown_a: int
    shown_b: int

    def advance(self, progress: Progress, elapsed_s: float) -> bool:
        """Let seconds pass; returns whether a reader gets to see it."""

    def all_shown(self, progress: Progress) -> bool:
        """Whether both have ended and the reader has seen all."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a classifier saw of a scenario, and what readers waited for.

    Attributes
    ----------
    right : float
        Share of battles in which it named the slow side, in folds that it had not seen.
    halted : float
        Share of battles in which a model did not keep up, so that both waited.
    first_begun_s, both_begun_s, first_word_s : float
        Medians: the first model's first word, the second one's, and the first that was shown.
    both_ended_s, last_word_s : float
        Medians: the end of both models, and the last word that was shown.
    """

    scenario: str
    battles: int
    right: float
    halted: float
    first_begun_s: float
    both_begun_s: float
    first_word_s: float
    both_ended_s: float
    last_word_s: float

    @property
    def blind(self) -> bool:
        """Whether the classifier is no better than luck, and hardly a battle halts."""
        return self.right <= MOST_RIGHT and self.halted <= MOST_HALTED


def write(writer: Writer, rng: np.random.Generator) -> Written:
    """Draw an answer: its length, its rate and the pauses between its pieces."""
    length = int(np.clip(rng.lognormal(np.log(1000), 0.6), 40, 8000))
    until = np.minimum(np.arange(writer.piece, length + writer.piece, writer.piece), length)
    rate = writer.rate * rng.lognormal(0, 0.1)
    pauses_s = writer.piece / rate * rng.gamma(4, 1 / 4, len(until))
    pauses_s[0] = writer.first_s * rng.lognormal(0, 0.3) + rng.uniform(0.01, 0.1)
    at_s = np.cumsum([*pauses_s, 0.02])
    return Written(at_s, np.append(until, length))


def probe(
    scenario: Scenario,
    rules: Rules,
    *,
    battles: int,
    seed: int = 0,
    pacer: Callable[[Pace], _Releases] | None = None,
) -> Sight:
    """Play battles on a clock of their own, and let a random forest name the slow side.

    Parameters
    ----------
    pacer : callable, optional
        Makes what releases the text, if not a `Pacer` in the mode of the rules.
    """
    from sklearn.ensemble import RandomForestClassifier  # an arena that begins would wait for it
    from sklearn.model_selection import cross_val_score

    rng = np.random.default_rng(seed)
    released = pacer or (lambda pace: Pacer(rules.pacing, pace))
    names = [str(number) for number in range(len(scenario.others) + 1)]
    writers = dict(zip(names, (scenario.odd, *scenario.others), strict=True))
    paces = Paces(rules, names)
    paces.recall({m: [write(w, rng).took for _ in range(MEMORY)] for m, w in writers.items()})
    odd_on_a = rng.permutation(np.arange(battles) % 2 == 0)
    seen, waits = [], []
    for on_a in odd_on_a:
        other = names[rng.integers(1, len(names))]
        pace = paces.of([names[0], other])
        odd, met = write(scenario.odd, rng), write(writers[other], rng)
        a, b = (odd, met) if on_a else (met, odd)
        events = np.array(list(_shown(a, b, released(pace), rules.tick_s)))
        seen.append(features(events))
        waits.append(_waits(a, b, events, pace if rules.pacing is Pacing.PACED else None))
        paces.learn(names[0], odd.took)
        paces.learn(other, met.took)
    forest = RandomForestClassifier(TREES, min_samples_leaf=3, random_state=seed)
    right = cross_val_score(forest, np.array(seen), odd_on_a, cv=FOLDS).mean()
    halted, *medians = np.array(waits).T
    return Sight(
        scenario.name,
        battles,
        float(right),
        float(halted.mean()),
        *(float(np.median(values)) for values in medians),
    )


def _shown(a: Written, b: Written, pacer: _Releases, tick_s: float) -> Iterator[Floats]:
    """Give each moment at which a page gets something, with the characters of both until then."""
    ticks = tick_s * np.arange(1, 2 + round((max(a.at_s[-1], b.at_s[-1]) + 1) / tick_s))
    written = [
        np.append(0, side.until)[np.searchsorted(side.at_s, ticks, side="right")].tolist()
        for side in (a, b)
    ]
    ended = [(side.at_s[-1] <= ticks).tolist() for side in (a, b)]
    states = list(map(Progress._make, zip(*written, *ended, strict=True)))
    tick = 0
    while True:
        progress = states[min(tick, len(states) - 1)]
        tick += 1
        if pacer.advance(progress, tick_s):
            yield np.array([tick * tick_s, pacer.shown_a, pacer.shown_b])
        if pacer.all_shown(progress):
            return


def features(events: Floats) -> list[float]:
    """Give what a page can tell of both sides by times, sizes and counts, without a word.

    Parameters
    ----------
    events : ndarray of shape (n, 3)
        Seconds, and characters of A and of B until then.
    """
    a, b = (_side(events[:, 0], events[:, place], events[:, 3 - place]) for place in (1, 2))
    differences = [x - y for x, y in zip(a, b, strict=True)]
    still = events[~np.diff(events[:, 1:], axis=0, prepend=0).any(axis=1), 0]
    offered_s = float(still[0]) if len(still) else -1.0
    return [*a, *b, *differences, offered_s, float(len(events)), *events[-1].tolist()]


def _side(at_s: Floats, until: Floats, of_other: Floats) -> list[float]:
    sizes = np.diff(until, prepend=0)
    came = sizes > 0
    times, sizes = at_s[came], sizes[came]
    pauses = np.diff(times) if len(times) > 1 else np.zeros(1)
    alone = times > at_s[of_other < of_other[-1]].max(initial=0)
    pauses_alone = np.diff(times[alone]) if alone.sum() > 1 else np.zeros(1)
    sizes_alone = sizes[alone] if alone.any() else np.zeros(1)
    rate = until[-1] / max(times[-1] - times[0], 0.1)
    figures = [len(times), times[0], times[-1], until[-1], rate, until[-1] / times[-1]]
    for values in (sizes, pauses, sizes_alone, pauses_alone):
        figures += [values.mean(), values.std(), values.min(), values.max()]
    return [float(figure) for figure in (*figures, alone.sum())]


def _waits(a: Written, b: Written, events: Floats, pace: Pace | None) -> Sequence[float]:
    """Return whether the battle halted, and give the moments of `Sight`."""
    firsts, ends = (a.at_s[0], b.at_s[0]), (a.at_s[-1], b.at_s[-1])
    first_word_s = float(events[events[:, 1:].any(axis=1)][0, 0])
    last_word_s = float(events[-1, 0])
    halted = False
    if pace:
        due_s = max(firsts) + pace.delay_s + max(a.until[-1], b.until[-1]) / pace.rate
        halted = last_word_s > due_s + LATE_S
    return halted, min(firsts), max(firsts), first_word_s, max(ends), last_word_s
