"""An arena of the first schema is brought to this one: its votes verify, its ratings stay."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from arena.boards.leaderboard import Leaderboard
from arena.domain.vote import DEFAULT
from arena.store import log
from arena.store.engine import opened
from arena.store.store import Store
from arena.store.verify import verify
from tests.arena.store.battles import NOW, ballot
from tests.postgresql import new_database
from tests.sqlite import bring_to_revision

GOLDEN = Path(__file__).parents[2] / "golden" / "arena_of_schema_0001.json"


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return document


@pytest.fixture(params=["sqlite", "postgresql"])
def first(request: pytest.FixtureRequest, tmp_path: Path, golden: dict[str, Any]) -> Iterator[str]:
    """URL of a database of the first schema, with the rows that its code wrote."""
    sqlite = request.param == "sqlite"
    place = nullcontext(f"sqlite:///{tmp_path}/old.db")
    with place if sqlite else new_database(request.getfixturevalue("postgresql")) as url:
        bring_to_revision(url, "0001")
        with opened(url) as engine, engine.begin() as connection:
            if not sqlite:
                connection.exec_driver_sql("SET LOCAL TIME ZONE 'UTC'")
            for statement in golden["sql"]:
                connection.exec_driver_sql(statement)
            if not sqlite:
                for table in ("battle", "answer", "turn", "vote", "model_event", "exclusion"):
                    connection.exec_driver_sql(
                        f"SELECT setval('{table}_id_seq', (SELECT max(id) FROM {table}))"
                    )
        yield url


@pytest.fixture
def upgraded(first: str) -> Iterator[Store]:
    store = Store(first)
    yield store
    store.close()


def test_an_arena_of_the_first_schema_keeps_its_votes_and_its_ratings(
    upgraded: Store, golden: dict[str, Any]
) -> None:
    with upgraded.reading() as session:
        verified = verify(session, golden["head"])
    links = golden["votes"] + sum(golden["left_out"].values())
    assert (verified.problem, verified.noted, verified.marked) == (None, links, links + 1)
    board = Leaderboard(upgraded, DEFAULT, lambda: NOW + timedelta(hours=2)).refresh()
    assert (board.votes, dict(board.left_out)) == (golden["votes"], golden["left_out"])
    ratings = {
        row.model: {"rating": row.rating, "votes": row.votes, "rank": row.rank}
        for row in board.rows
    }
    assert ratings == {
        model: {**row, "rating": pytest.approx(row["rating"], rel=1e-9)}
        for model, row in golden["ratings"].items()
    }


def test_an_arena_of_the_first_schema_goes_on(upgraded: Store) -> None:
    waiting = f"{31:032x}"
    upgraded.cast(ballot(waiting, voter=f"{2:032x}"))
    with upgraded.reading() as session:
        verified = verify(session)
        newest = log.columns(session, DEFAULT).battle[-1]
    assert (verified.problem, newest) == (None, waiting)


def test_a_change_of_a_vote_of_the_first_schema_shows(upgraded: Store) -> None:
    with upgraded.writing() as session:
        session.connection().exec_driver_sql("UPDATE vote SET outcome = 'tie' WHERE link = 3")
        assert (verify(session).problem or "").startswith("Link 3, the vote on battle")
