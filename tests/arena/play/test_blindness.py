"""A classifier that reads the pace of battles names the slow side no better than luck."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from arena.domain.battle import PacePool, Pacing
from arena.play.matchmaking import Rules
from arena.play.pace import (
    MOST_RIGHT,
    SCENARIOS,
    Progress,
    Scenario,
    Writer,
    features,
    probe,
    write,
)

BATTLES = 2000


@dataclass
class Hurrying:
    """The pacer of before: what is written bounds both, and the rest comes four times faster."""

    rate: float = 300.0
    shown_a: int = 0
    shown_b: int = 0
    allowed: float = 0.0

    def advance(self, now: Progress, elapsed_s: float) -> bool:
        before = (self.shown_a, self.shown_b)
        if now.both_begun:
            self.allowed += elapsed_s * self.rate * (4 if now.both_ended else 1)
        if now.ended_a == now.ended_b:
            both = (now.written_a, now.written_b)
            ceiling = max(both) if now.both_ended else min(both)
        else:
            ceiling = now.written_b if now.ended_a else now.written_a
        self.allowed = min(self.allowed, ceiling)
        self.shown_a = max(self.shown_a, min(int(self.allowed), now.written_a))
        self.shown_b = max(self.shown_b, min(int(self.allowed), now.written_b))
        return (self.shown_a, self.shown_b) != before

    def all_shown(self, now: Progress) -> bool:
        both = (now.written_a, now.written_b)
        return now.both_ended and (self.shown_a, self.shown_b) == both


def of(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


QUICK_AND_SLOW = of("100 against 1,000 characters a second")


def test_an_answer_is_drawn_whole_and_at_its_rate() -> None:
    rng = np.random.default_rng(0)
    answers = [write(Writer(200, piece=30), rng) for _ in range(300)]
    rates = [a.until[-1] / (a.at_s[-1] - a.at_s[0]) for a in answers if a.until[-1] > 1000]
    assert np.median(rates) == pytest.approx(200, rel=0.05)
    assert all((np.diff(a.until) >= 0).all() and (np.diff(a.at_s) > 0).all() for a in answers)
    assert answers[0].took.length == answers[0].until[-1]


def test_what_a_page_can_tell_is_the_same_with_the_sides_exchanged() -> None:
    events = np.array([[0.5, 20, 20], [0.9, 40, 40], [1.5, 40, 70], [2.0, 40, 70], [2.5, 40, 90]])
    there, back = features(events), features(events[:, [0, 2, 1]])
    n = (len(there) - 5) // 3
    assert (there[:n], there[n : 2 * n]) == (back[n : 2 * n], back[:n])
    assert there[3 * n] == back[3 * n] == 2.0, "the rest was offered"


@pytest.mark.slow
def test_few_battles_show_already_that_the_pacer_of_before_tells() -> None:
    seen = probe(QUICK_AND_SLOW, Rules(), battles=150, pacer=lambda _pace: Hurrying())
    assert seen.right > 0.75
    assert probe(QUICK_AND_SLOW, Rules(), battles=150).right < 0.65


def test_raw_answers_name_the_slow_side() -> None:
    assert probe(QUICK_AND_SLOW, Rules(pacing=Pacing.RAW), battles=100).right > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("pool", PacePool)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_pace_does_not_tell_who_is_slow(scenario: Scenario, pool: PacePool) -> None:
    seen = probe(scenario, replace(Rules(), pace_pool=pool), battles=BATTLES)
    assert seen.right <= MOST_RIGHT
    assert seen.halted <= 0.03
    assert seen.first_word_s - seen.both_begun_s <= 1


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_answers_that_appear_together_do_not_tell_who_is_slow(scenario: Scenario) -> None:
    seen = probe(scenario, Rules(pacing=Pacing.BOTH_DONE), battles=BATTLES)
    assert seen.right <= MOST_RIGHT
    assert seen.first_word_s == seen.last_word_s


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_pacer_of_before_tells(scenario: Scenario) -> None:
    seen = probe(scenario, Rules(), battles=BATTLES, pacer=lambda _pace: Hurrying())
    assert seen.right > MOST_RIGHT, scenario
