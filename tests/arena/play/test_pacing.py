from hypothesis import given
from hypothesis import strategies as st

from arena.domain.battle import Pacing
from arena.play.pacing import Pacer, Progress

TICK_S = 0.1
steps = st.lists(
    st.tuples(st.integers(0, 80), st.integers(0, 80), st.booleans(), st.booleans()),
    min_size=1,
    max_size=60,
)


def history(moves: list[tuple[int, int, bool, bool]]) -> list[Progress]:
    """What two models have written after each tick; a model that ended writes no more."""
    written_a = written_b = 0
    ended_a = ended_b = False
    told = []
    for more_a, more_b, ends_a, ends_b in moves:
        written_a += 0 if ended_a else more_a
        written_b += 0 if ended_b else more_b
        ended_a, ended_b = ended_a or ends_a, ended_b or ends_b
        told.append(Progress(written_a, written_b, ended_a, ended_b))
    return told


@given(steps, st.floats(1, 2000))
def test_while_neither_has_ended_both_show_the_same_length(
    moves: list[tuple[int, int, bool, bool]], rate: float
) -> None:
    pacer = Pacer(Pacing.PACED, rate)
    for tick, progress in enumerate(history(moves), 1):
        pacer.advance(progress, TICK_S)
        if not (progress.ended_a or progress.ended_b):
            assert pacer.shown_a == pacer.shown_b
            assert pacer.shown_a <= min(progress.written_a, progress.written_b)
            assert pacer.shown_a <= rate * tick * TICK_S + 1e-6


@given(steps, st.floats(1, 2000))
def test_a_side_that_still_writes_bounds_both(
    moves: list[tuple[int, int, bool, bool]], rate: float
) -> None:
    pacer = Pacer(Pacing.PACED, rate)
    for progress in history(moves):
        pacer.advance(progress, TICK_S)
        if not progress.ended_a:
            assert pacer.shown_b <= progress.written_a
        if not progress.ended_b:
            assert pacer.shown_a <= progress.written_b


@given(steps, st.sampled_from(Pacing))
def test_shown_text_never_shrinks_or_outruns_what_is_written(
    moves: list[tuple[int, int, bool, bool]], mode: Pacing
) -> None:
    pacer = Pacer(mode, 300)
    before = (0, 0)
    for progress in history(moves):
        pacer.advance(progress, TICK_S)
        assert before[0] <= pacer.shown_a <= progress.written_a
        assert before[1] <= pacer.shown_b <= progress.written_b
        before = (pacer.shown_a, pacer.shown_b)


@given(st.integers(0, 500), st.integers(0, 500), st.sampled_from(Pacing))
def test_all_is_shown_some_time_after_both_have_ended(a: int, b: int, mode: Pacing) -> None:
    pacer = Pacer(mode, 300)
    progress = Progress(a, b, ended_a=True, ended_b=True)
    for _ in range(100):
        pacer.advance(progress, TICK_S)
    assert pacer.all_shown(progress)


def test_the_rest_is_released_faster_once_both_have_ended() -> None:
    pacer = Pacer(Pacing.PACED, rate=100, hurry=4)
    pacer.advance(Progress(1000, 1000, ended_a=False, ended_b=False), 1.0)
    assert (pacer.shown_a, pacer.shown_b) == (100, 100)
    pacer.advance(Progress(1000, 1000, ended_a=True, ended_b=True), 1.0)
    assert (pacer.shown_a, pacer.shown_b) == (500, 500)


def test_a_model_that_was_silent_does_not_catch_up_in_a_burst() -> None:
    pacer = Pacer(Pacing.PACED, rate=100)
    for _ in range(50):
        pacer.advance(Progress(1000, 10, ended_a=False, ended_b=False), TICK_S)
    pacer.advance(Progress(1000, 1000, ended_a=False, ended_b=False), TICK_S)
    assert pacer.shown_a == pacer.shown_b == 20


def test_nothing_is_shown_before_both_have_begun() -> None:
    pacer = Pacer(Pacing.PACED, rate=100)
    pacer.advance(Progress(1000, 0, ended_a=False, ended_b=False), 5.0)
    assert (pacer.shown_a, pacer.shown_b) == (0, 0)


def test_both_done_waits_for_both() -> None:
    pacer = Pacer(Pacing.BOTH_DONE, rate=100)
    pacer.advance(Progress(50, 70, ended_a=True, ended_b=False), 9.0)
    assert (pacer.shown_a, pacer.shown_b) == (0, 0)
    pacer.advance(Progress(50, 90, ended_a=True, ended_b=True), 0.1)
    assert (pacer.shown_a, pacer.shown_b) == (50, 90)


def test_raw_shows_each_model_s_own_rhythm() -> None:
    pacer = Pacer(Pacing.RAW, rate=100)
    pacer.advance(Progress(500, 3, ended_a=False, ended_b=False), 0.1)
    assert (pacer.shown_a, pacer.shown_b) == (500, 3)
