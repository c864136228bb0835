"""The pace is fixed before the first character, and a model's own rhythm changes nothing."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.domain.battle import PacePool, Pacing
from arena.play.matchmaking import Rules
from arena.play.pace import MEMORY, PRIOR_LENGTH, RATES, Pace, Pacer, Paces, Progress, needs
from arena.store.chain import Took

TICK_S = 0.1
ENDED = Progress(1000, 1000, ended_a=True, ended_b=True)
steps = st.lists(
    st.tuples(st.integers(0, 80), st.integers(0, 80), st.booleans(), st.booleans()),
    min_size=1,
    max_size=60,
)
paces = st.builds(Pace, st.floats(1, 2000), st.floats(0, 2), st.floats(0.5, 9))


def history(moves: list[tuple[int, int, bool, bool]]) -> list[Progress]:
    """What two models have written after each tick; a model that ended writes no more."""
    written_a = written_b = 0
    ended_a = ended_b = False
    states = []
    for more_a, more_b, ends_a, ends_b in moves:
        written_a += 0 if ended_a else more_a
        written_b += 0 if ended_b else more_b
        ended_a, ended_b = ended_a or ends_a, ended_b or ends_b
        states.append(Progress(written_a, written_b, ended_a, ended_b))
    return states


def steady(rate: float, length: int, size: int = 10) -> Took:
    """What an answer takes whose pieces come at a rate, after half a second."""
    pieces = [(0.5 + at / rate, at) for at in range(0, length, size)]
    return Took(needs([*pieces, (0.5 + length / rate, length)]), 0.5 + length / rate, length)


def several(rate: float) -> list[Took]:
    """Answers of a steady model, of different lengths."""
    return [steady(rate, length) for length in range(200, 2200, 10)]


def chosen(*models: Sequence[Took], **rules: object) -> Pace:
    """The pace of a battle between models with these earlier answers."""
    known = Paces(replace(Rules(), **rules), ["other", *map(str, range(len(models)))])  # type: ignore[arg-type]
    known.recall({str(number): answers for number, answers in enumerate(models)})
    return known.of(["0", "1"])


@given(steps, paces)
def test_both_show_the_same_length_until_one_is_shown_whole(
    moves: list[tuple[int, int, bool, bool]], pace: Pace
) -> None:
    pacer = Pacer(Pacing.PACED, pace)
    for tick, progress in enumerate(history(moves), 1):
        pacer.advance(progress, TICK_S)
        whole_a = progress.ended_a and pacer.shown_a == progress.written_a
        whole_b = progress.ended_b and pacer.shown_b == progress.written_b
        assert whole_a or whole_b or pacer.shown_a == pacer.shown_b
        most = max(0, pace.rate * (tick * TICK_S - pace.delay_s))
        assert max(pacer.shown_a, pacer.shown_b) <= most + 1e-6


@given(steps, paces)
def test_a_side_that_still_writes_bounds_both(
    moves: list[tuple[int, int, bool, bool]], pace: Pace
) -> None:
    pacer = Pacer(Pacing.PACED, pace)
    for progress in history(moves):
        pacer.advance(progress, TICK_S)
        if not progress.ended_a:
            assert pacer.shown_b <= progress.written_a
        if not progress.ended_b:
            assert pacer.shown_a <= progress.written_b


@given(steps, paces, st.sampled_from(Pacing))
def test_shown_text_never_shrinks_or_outruns_what_is_written(
    moves: list[tuple[int, int, bool, bool]], pace: Pace, mode: Pacing
) -> None:
    pacer = Pacer(mode, pace)
    before = (0, 0)
    for progress in history(moves):
        pacer.advance(progress, TICK_S)
        assert before[0] <= pacer.shown_a <= progress.written_a
        assert before[1] <= pacer.shown_b <= progress.written_b
        before = (pacer.shown_a, pacer.shown_b)


@given(st.integers(0, 500), st.integers(0, 500), st.sampled_from(Pacing))
def test_all_is_shown_some_time_after_both_have_ended(a: int, b: int, mode: Pacing) -> None:
    pacer = Pacer(mode, Pace(300, 1.0, 3.0))
    progress = Progress(a, b, ended_a=True, ended_b=True)
    for _ in range(100):
        pacer.advance(progress, TICK_S)
    assert pacer.all_shown(progress)


@pytest.mark.slow
@given(st.data())
def test_models_that_keep_up_leave_no_trace(data: st.DataObject) -> None:
    """When each piece came, and when a model ended, is nothing that a reader can see."""
    pace, length = Pace(100, 1.0, 50.0), 400
    seen = []
    for _ in range(2):
        written, ended, shown = 1, False, []
        pacer = Pacer(Pacing.PACED, pace)
        for tick in range(60):
            least = min(length, int(pace.rate * tick * TICK_S) + 1)
            written = max(written, data.draw(st.integers(least, length)))
            ended = written == length and (ended or tick > 50 or data.draw(st.booleans()))
            progress = Progress(written, length, ended_a=ended, ended_b=True)
            pacer.advance(progress, TICK_S)
            shown.append((pacer.shown_a, pacer.shown_b))
        seen.append(shown)
    assert seen[0] == seen[1]


def test_the_first_word_comes_a_delay_after_both_have_begun() -> None:
    pacer = Pacer(Pacing.PACED, Pace(100, delay_s=2))
    pacer.advance(Progress(1000, 0, ended_a=False, ended_b=False), 5.0)
    pacer.advance(Progress(1000, 10, ended_a=False, ended_b=False), 2.0)
    assert (pacer.shown_a, pacer.shown_b) == (0, 0)
    pacer.advance(Progress(1000, 500, ended_a=False, ended_b=False), 0.5)
    assert (pacer.shown_a, pacer.shown_b) == (50, 50)


def test_the_delay_begins_anew_where_another_model_takes_a_side() -> None:
    pacer = Pacer(Pacing.PACED, Pace(100, delay_s=2))
    pacer.advance(Progress(1000, 5, ended_a=False, ended_b=False), 1.5)
    pacer.advance(Progress(1000, 0, ended_a=False, ended_b=False), 0.1)
    pacer.advance(Progress(1000, 900, ended_a=False, ended_b=False), 1.9)
    assert (pacer.shown_a, pacer.shown_b) == (0, 0)


def test_nobody_hurries_when_both_have_ended() -> None:
    pacer = Pacer(Pacing.PACED, Pace(100))
    for _ in range(2):
        pacer.advance(ENDED, 1.0)
    assert (pacer.shown_a, pacer.shown_b) == (200, 200)


def test_a_model_that_was_silent_does_not_catch_up_in_a_burst() -> None:
    pacer = Pacer(Pacing.PACED, Pace(100, delay_s=2))
    for _ in range(50):
        pacer.advance(Progress(1000, 10, ended_a=False, ended_b=False), TICK_S)
    pacer.advance(Progress(1000, 1000, ended_a=False, ended_b=False), TICK_S)
    assert pacer.shown_a == pacer.shown_b == 20


def test_both_done_shows_both_at_an_edge_of_the_grid() -> None:
    pacer = Pacer(Pacing.BOTH_DONE, Pace(100, grid_s=4))
    pacer.advance(Progress(50, 70, ended_a=True, ended_b=False), 9.0)
    pacer.advance(Progress(50, 90, ended_a=True, ended_b=True), 2.9)
    assert (pacer.shown_a, pacer.shown_b) == (0, 0)
    pacer.advance(Progress(50, 90, ended_a=True, ended_b=True), 0.1)
    assert (pacer.shown_a, pacer.shown_b) == (50, 90)
    assert not pacer.rest_offered


def test_the_rest_is_offered_at_an_edge_of_the_grid_and_shown_when_asked_for() -> None:
    pacer = Pacer(Pacing.PACED, Pace(100, grid_s=4))
    pacer.advance(Progress(900, 1000, ended_a=True, ended_b=False), 5.0)
    pacer.advance(ENDED, 2.9)
    assert not pacer.rest_offered
    assert pacer.advance(ENDED, 0.1)
    assert pacer.shown_a == 800
    pacer.rest_wanted = pacer.rest_offered
    pacer.advance(ENDED, 0.1)
    assert pacer.all_shown(ENDED)


def test_raw_shows_each_model_s_own_rhythm() -> None:
    pacer = Pacer(Pacing.RAW, Pace(100))
    pacer.advance(Progress(500, 3, ended_a=False, ended_b=False), 0.1)
    assert (pacer.shown_a, pacer.shown_b) == (500, 3)


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(1, 300)), min_size=1, max_size=30))
def test_an_answer_that_waits_as_long_as_it_needs_is_never_halted(
    moves: list[tuple[float, int]],
) -> None:
    """By counting, at each rate, what has come when a character is due."""
    at_s = np.cumsum([pause for pause, _ in moves])
    before = np.cumsum([0, *(size for _, size in moves)])
    pieces = list(zip([*at_s, at_s[-1]], before.tolist(), strict=True))
    for rate, need in zip(RATES, needs(pieces), strict=True):
        due_s = at_s[0] + need + before / rate
        arrived_s = np.array([when for when, _ in pieces])
        assert (due_s >= arrived_s - 2e-3).all()
        assert need < 1e-3 or (due_s <= arrived_s + 2e-3).any()


def test_a_model_without_history_begins_after_a_second_at_the_reader_s_pace() -> None:
    pace = chosen()
    assert (pace.rate, pace.delay_s) == (150, 1)
    assert pace.grid_s == pytest.approx(1 + PRIOR_LENGTH / 150)
    slower = chosen(prior_characters_per_s=100, prior_delay_s=0.5)
    assert (slower.rate, slower.delay_s) == (100, 0.5)


def test_the_slower_model_sets_the_pace_whichever_side_it_has() -> None:
    slow, quick = several(100), several(1000)
    assert chosen(slow, quick) == chosen(quick, slow)
    assert chosen(slow, quick).rate == 100
    assert chosen(quick, quick).rate == 150


def test_nobody_s_pace_is_quicker_than_reading_and_an_early_start_goes_first() -> None:
    quick = [steady(1000, 1000)] * MEMORY
    assert chosen(quick, quick).rate == 150
    assert chosen(quick, quick, characters_per_s=300).rate == 300
    assert chosen(quick, quick).delay_s < 0.1


def test_a_late_start_weighs_more_than_a_late_end_but_not_everything() -> None:
    quick = several(1000)
    halting = [Took([*(0.5 + rate / 50 for rate in RATES)], 10.0, 1000)] * MEMORY
    assert chosen(halting, quick).delay_s == pytest.approx(2.7)
    assert chosen(halting, quick).rate == 110


def test_a_late_end_counts_by_the_mean_length_of_the_answers() -> None:
    halting = [2.0 if rate > 80 else 0.0 for rate in RATES]
    long, short = ([Took(halting, 30.0, length)] * MEMORY for length in (1900, 100))
    assert [chosen(long, short).rate, chosen(long, long).rate] == [80, 150]


def test_nobody_waits_long_for_what_a_model_does_now_and_then() -> None:
    stalled = Took([25.0] * len(RATES), 30.0, 1000)
    pace = chosen([*several(1000)[:20], stalled], several(1000))
    assert (pace.rate, pace.delay_s) == (150, 5)


def test_ties_go_to_the_smaller_delay() -> None:
    """Where nothing but the prior is known, which keeps up with any rate up to its own."""
    assert chosen(characters_per_s=80, prior_characters_per_s=1000).rate == 80


def test_two_of_a_hundred_answers_may_need_more() -> None:
    rare = [steady(1000, 1000)] * 98 + [steady(20, 1000)]
    often = [steady(1000, 1000)] * 90 + [steady(20, 1000)] * 10
    assert chosen(rare * 4, rare * 4).rate == 150
    assert chosen(often * 4, often * 4).rate < 50
    last = [steady(20, 1000)] * 8 + [steady(1000, 1000)] * 392
    assert chosen(last, last).rate < 50
    last.append(last[-1])  # seven of the last 400
    assert chosen(last, last).rate == 150


def test_the_whole_roster_sets_the_pace_where_it_is_asked_for() -> None:
    slow, quick = several(70), several(1000)
    known = Paces(Rules(pace_pool=PacePool.ROSTER), ["slow", "x", "y"])
    known.recall({"slow": slow, "x": quick, "y": quick})
    assert known.of(["x", "y"]) == known.of(["slow", "y"])
    assert known.of(["x", "y"]).rate == 70


def test_only_the_newest_answers_count_and_those_of_other_rates_not_at_all() -> None:
    quick = [steady(1000, 1000)] * MEMORY
    old = [steady(70, 1000)] * 100
    assert chosen([*old, *quick], quick) == chosen(quick, quick)
    assert chosen([*quick, Took([9.0], 9.0, 9)], quick) == chosen(quick, quick)


def test_a_recorded_answer_is_written_as_its_model_wrote_before() -> None:
    """As if two seconds passed before its first word, and its rest took five."""
    known = Paces(Rules(answer_timeout_s=100, prior_characters_per_s=30), ["x", "y"])
    known.learn("x", Took([0.0] * (len(RATES) - 1) + [5.0], 7.0, 1000))
    assert known.tempo_of("x", 500, Random(1)) == (2.0, 200.0)
    assert known.tempo_of("y", 500, Random(1)) == (1.0, 30.0), "nothing is known of it"
    assert known.tempo_of("y", 5000, Random(1)) == (1.0, 100.0), "in half of the time there is"
