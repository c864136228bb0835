"""`arena rate` with a window or a half-life, and the moments that it reads."""

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from rating.variants import POINTS_PER_NAT
from tests.rating.boards.rated import Write, column, rated, refused


def by_day(day: int, count: int, winner: str, zone: str = "") -> list[str]:
    return [f"x,y,{winner},v{n % 9},2026-01-{day:02d}T00:00:00{zone}" for n in range(count)]


def dated(*rows: list[str]) -> str:
    return "\n".join(["model_a,model_b,winner,voter,ts", *(row for day in rows for row in day)])


def test_a_window_holds_its_beginning_and_not_its_end(write: Write) -> None:
    days = [by_day(day, 10 + day, ["model_a", "model_b"][day % 2]) for day in (1, 2, 3, 4)]
    since, until = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 4, tzinfo=UTC)
    source = write(dated(*days))
    assert rated(source, since=since, until=until)["votes"]["used"] == 12 + 13
    later = since + timedelta(microseconds=1)
    board = rated(source, since=later, until=until + timedelta(microseconds=1))
    assert board["votes"]["used"] == 13 + 14
    assert board["votes"]["dropped"] == {"outside the window": 11 + 12}


def test_after_a_half_life_two_votes_count_as_one(write: Write) -> None:
    old, new = by_day(1, 40, "model_b"), by_day(8, 30, "model_a")
    aged = rated(write(dated(old, new)), half_life=7.0)
    assert column(aged, "strength")["x"] == pytest.approx(math.log(30 / 20) / 2)
    plain = rated(write(dated(old, new)))
    assert column(plain, "strength")["x"] == pytest.approx(math.log(30 / 40) / 2)
    head, *rows = dated(old, new).splitlines()
    weighed = [f"{row},{3 if 'model_b' in row else 1}" for row in rows]
    both = rated(write("\n".join([f"{head},times", *weighed])), half_life=7.0, weights="times")
    assert column(both, "strength")["x"] == pytest.approx(math.log(30 / 60) / 2)


def test_the_interval_of_aged_votes_is_that_of_their_weights(write: Write) -> None:
    old, new = by_day(1, 40, "model_b"), by_day(8, 30, "model_a")
    board = rated(write(dated(old, new)), half_life=7.0, cluster="none")
    p = 30 / 50
    bread = 50 * p * (1 - p)
    meat = 30 * (1 - p) ** 2 + 40 * 0.5**2 * p**2
    error = POINTS_PER_NAT * math.sqrt(meat) / bread / 2  # of half the gap
    assert column(board, "se")["x"] == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (dated(["x,y,model_a,v,noon"]), ["moment 'noon'", "2026-01-31T12:00:00Z"]),
        (dated(["x,y,model_a,v,2026"]), ["moment '2026'"]),
        (dated(["x,y,model_a,v,1767225600000"]), ["moment '1767225600000'", "seconds"]),
        (
            dated(by_day(1, 1, "model_a"), by_day(2, 1, "model_b", "+01:00")),
            ["'2026-01-02T00:00:00+01:00'", "'2026-01-01T00:00:00'"],
        ),
        (dated(["x,y,model_a,v,"]), ["time is missing in 1 vote"]),
    ],
    ids=["no date", "a year", "milliseconds", "zones here and there", "missing"],
)
def test_times_that_cannot_be_read_are_quoted(write: Write, text: str, words: list[str]) -> None:
    refused(write(text), words, half_life=7.0)


@pytest.mark.parametrize("number", [2026, 20_000, 1767225600000])
def test_numbers_that_are_no_seconds_are_quoted(number: int, tmp_path: Path) -> None:
    source = str(tmp_path / "votes.parquet")
    row = f"'x' AS model_a, 'y' AS model_b, 'tie' AS winner, {number} AS ts"
    duckdb.execute(f"COPY (SELECT {row}) TO '{source}'")
    refused(source, [f"time is {number}.0", "seconds since 1970"], half_life=7.0)
