"""Whether the pace tells who is slow: a classifier reads simulated battles as a page gets them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

from arena.domain.battle import Pacing
from arena.play.pace import MEMORY, Pace, Pacer, Paces, Progress, needs
from arena.play.rules import Rules
from arena.store.records import Took
from rating.typing import Floats

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


class Releases(Protocol):
    """What decides how much is shown: `arena.play.pace.Pacer`, or another to hold against it."""

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
    pacer: Callable[[Pace], Releases] | None = None,
) -> Sight:
    """Play battles on a clock of their own, and let a random forest name the slow side.

    Parameters
    ----------
    pacer : callable, optional
        Makes what releases the text, if not a `Pacer` in the mode of the rules.
    """
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


def _shown(a: Written, b: Written, pacer: Releases, tick_s: float) -> Iterator[Floats]:
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
    """Say whether the battle halted, and give the moments of `Sight`."""
    firsts, ends = (a.at_s[0], b.at_s[0]), (a.at_s[-1], b.at_s[-1])
    first_word_s = float(events[events[:, 1:].any(axis=1)][0, 0])
    last_word_s = float(events[-1, 0])
    halted = False
    if pace:
        due_s = max(firsts) + pace.delay_s + max(a.until[-1], b.until[-1]) / pace.rate
        halted = last_word_s > due_s + LATE_S
    return halted, min(firsts), max(firsts), first_word_s, max(ends), last_word_s
