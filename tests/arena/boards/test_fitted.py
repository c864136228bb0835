from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.boards.fitted import DAY, LEAST_DAYS, MOST_MOMENTS, Fitted, History, fit_log, moments
from arena.domain.vote import Choice
from rating import to_points
from rating.tables.coding import LoggedVotes
from tests.arena.boards.log import NOW, Vote, logged, many

FIRST = datetime(2026, 5, 3, 9, tzinfo=UTC)


def over(days: float) -> list[Vote]:
    """The many votes, spread over some days before now, the last a second ago."""
    votes = many()
    step = timedelta(days=days) / (len(votes) - 1)
    late = NOW - timedelta(seconds=1)
    return [
        Vote(v.a, v.b, v.outcome, voter=v.voter, created=late - step * (len(votes) - 1 - i))
        for i, v in enumerate(votes)
    ]


@given(st.floats(0, 2000))
def test_the_dates_are_few_and_past_and_evenly_apart(days: float) -> None:
    now = FIRST + timedelta(days=days)
    dates = moments(FIRST, now)
    assert len(dates) <= MOST_MOMENTS
    assert all(FIRST < when < now for when in dates)
    assert len({b - a for a, b in pairwise(dates)}) <= 1
    if days > LEAST_DAYS:
        assert len(dates) >= 2


def test_the_dates_stay_for_as_long_as_they_reach() -> None:
    assert moments(FIRST, FIRST + 11 * DAY)[:5] == moments(FIRST, FIRST + 12 * DAY)[:5]


def test_votes_of_a_few_days_have_no_history() -> None:
    assert [*History().read(logged(over(1.5)), NOW)] == [()]
    assert [*History().read(logged([]), NOW)] == [()]


def test_a_past_board_is_a_fit_of_the_votes_before_it() -> None:
    votes = over(9)
    *_, past = History().read(logged(votes), NOW)
    last = past[-1]
    before = [v for v in votes if v.created < last.when]
    fitted = fit_log(logged(before))
    assert 0 < len(before) == last.votes < len(votes)
    nats = (fitted.fit.theta, fitted.spread.low, fitted.spread.high)
    assert {r.model: (r.rating, r.lower, r.upper) for r in last.ratings} == dict(
        zip(fitted.fit.models, zip(*map(to_points, nats), strict=True), strict=True)
    )
    assert [r.rating for r in last.ratings] == sorted(
        (r.rating for r in last.ratings), reverse=True
    )


def test_a_date_without_ratings_has_none() -> None:
    early = Vote("m0", "m1", Choice.A, voter="v0", created=NOW - timedelta(days=30))
    *_, past = History().read(logged([early, *over(2)]), NOW)
    assert past[0].votes == 1
    assert past[0].ratings == ()


def test_the_past_is_computed_once_and_date_by_date(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[LoggedVotes] = []

    def counted(log: LoggedVotes) -> Fitted:
        asked.append(log)
        return fit_log(log)

    monkeypatch.setattr("arena.boards.fitted.fit_log", counted)
    history, votes = History(), over(9)
    steps = [*history.read(logged(votes), NOW)]
    first = steps[-1]
    assert steps == [first[:n] for n in range(len(first) + 1)]
    late = Vote("m0", "m1", Choice.TIE, voter="v0", created=NOW)
    assert [*history.read(logged([*votes, late]), NOW)] == [first]
    assert len(asked) == len(first)
    votes[1] = replace(votes[1], left_out="told who it was")
    *_, changed = history.read(logged(votes), NOW)
    assert changed[0].votes == first[0].votes - 1


def test_the_past_that_another_process_computed_is_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    *_, past = History().read(logged(over(9)), NOW)
    monkeypatch.setattr("arena.boards.fitted.fit_log", None)
    history = History()
    history.know(past)
    assert [*history.read(logged(over(9)), NOW)] == [past]
