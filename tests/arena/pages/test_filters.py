from datetime import UTC, datetime, timedelta

import pytest

from arena.catalogue import Language, words_in
from arena.pages.rendering import SPACE, Filters, rank_range

filters = Filters(words_in(Language.EN))
NOON = datetime(2026, 6, 14, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("elapsed", "expected"),
    [
        (timedelta(seconds=-30), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(seconds=60), "1 minute ago"),
        (timedelta(minutes=59, seconds=59), "59 minutes ago"),
        (timedelta(hours=1), "1 hour ago"),
        (timedelta(hours=23, minutes=59), "23 hours ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=13), "13 days ago"),
        (timedelta(days=42), "on 3 May"),
        (timedelta(days=365), "on 14 June 2025"),
    ],
)
def test_times_are_rounded_down_and_become_dates(elapsed: timedelta, expected: str) -> None:
    assert filters.ago(NOON - elapsed, NOON) == expected


def test_a_date_is_read_in_utc() -> None:
    late = datetime.fromisoformat("2026-05-03T23:30:00-04:00")
    assert filters.day(late, NOON) == "4 May"
    assert filters.moment(late) == "4 May 2026, 03:30 UTC"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((1000, 988, 1012), f"±{SPACE}12"),
        ((1000, 989, 1014), f"+14{SPACE}−11"),
        ((1000, 950, float("inf")), f"+∞{SPACE}−50"),
        ((1000, float("-inf"), float("inf")), f"±{SPACE}∞"),
        ((1000, -500, 2500), f"±{SPACE}1,500"),
    ],
)
def test_half_widths_are_whole_points(interval: tuple[float, float, float], expected: str) -> None:
    assert filters.half_width(*interval) == expected


def test_a_negative_rating_has_a_minus_sign_and_small_ones_no_negative_zero() -> None:
    assert filters.points(-1250.4) == "−1,250"
    assert filters.points(-0.3) == "0"
    assert filters.points(float("-inf")) == "−∞"


def test_what_is_unknown_is_a_dash_and_never_zero() -> None:
    assert {filters.percent(None), filters.money(None), filters.seconds(None)} == {"–"}
    assert rank_range(None, 3) == "–"


def test_money_keeps_cents_only_where_they_matter() -> None:
    amounts = (0, 0.004, 0.005, 0.41, 99.99, 100, 12345.6)
    expected = ["$0.00", "<$0.01", "$0.01", "$0.41", "$99.99", "$100", "$12,346"]
    assert [filters.money(amount) for amount in amounts] == expected


def test_seconds_lose_their_tenths_at_ten() -> None:
    expected = ["<0.1 s", "0.1 s", "9.9 s", "10 s", "1,200 s"]
    times = (0.04, 0.05, 9.94, 9.95, 1200)
    assert [filters.seconds(time).replace(SPACE, " ") for time in times] == expected


def test_percents_near_the_ends_do_not_claim_certainty() -> None:
    expected = ["0%", "<1%", "<1%", "1%", "99%", ">99%", "100%"]
    shares = (0.0, 0.0049, 0.005, 0.0051, 0.994, 0.9951, 1.0)
    assert [filters.percent(share) for share in shares] == expected
