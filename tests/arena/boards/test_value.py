"""Quality and cost of an arena's votes, worked out beside its boards."""

from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import text

from arena.boards.fitted import Valuation
from arena.domain.board_view import NO_VOTES, Valued
from arena.domain.vote import DEFAULT, Choice, Voter
from arena.store import log
from arena.store.store import Store
from tests.arena.store.battles import MODELS, NOW, ballot, exclude, ready


def play(store: Store, n: int, start: int = 0) -> None:
    for i in range(start, start + n):
        owner = Voter(f"v{i % 6}")
        choice = (Choice.A, Choice.B, Choice.A)[i % 3]
        store.cast(ballot(ready(store, f"b{i}", owner), choice, voter=owner.id, key=f"k{i}"))


@pytest.fixture
def store(database_url: str) -> Store:
    opened = Store(database_url)
    opened.hold_lease()
    opened.register(MODELS, NOW)
    return opened


def worked_out(valuation: Valuation) -> Valued:
    valuation.look()
    valued = valuation.read()
    assert valued is not None
    return valued


def test_it_is_worked_out_once_for_the_same_votes_and_again_for_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    valuation = Valuation(store, DEFAULT, lambda: NOW + timedelta(days=1))
    assert valuation.read() is None
    assert worked_out(valuation).reason == NO_VOTES
    play(store, 24)
    with store.writing() as session:
        slow = "UPDATE answer SET cost = 0.003, duration_s = 5.0 WHERE side = 'b'"
        session.connection().execute(text(slow))
    valued = worked_out(valuation)
    assert valued.value is not None
    assert valued.value.report.votes.used == 24
    assert valued.names == {"basalt": "Basalt", "quartz": "Quartz"}
    for name, each in (("cost", (1.01, 3.0)), ("seconds", (2.0, 5.0))):
        taken = {row.model: getattr(row, name).value for row in valued.value.models}
        assert taken == pytest.approx(dict(zip(("basalt", "quartz"), each, strict=True)))
    assert worked_out(valuation) is valued
    with monkeypatch.context() as patch:
        patch.setattr(log, "newest", partial(log.newest, most=20))
        newest = worked_out(Valuation(store, DEFAULT, lambda: NOW)).value
    assert newest is not None
    assert newest.report.votes.used == 20
    assert newest.warnings[0].startswith("Only the newest 20 votes are counted here")
    assert newest.warnings[1:] == valued.value.warnings
    play(store, 2, start=24)
    again = worked_out(valuation)
    assert again.value is not None
    assert again.value.report.votes.used == 26
    store.close()


def test_people_that_come_after_the_votes_are_taken_in(store: Store) -> None:
    play(store, 24)
    valuation = Valuation(store, DEFAULT, lambda: NOW)
    before = worked_out(valuation)
    with store.writing() as session:
        session.connection().execute(text("UPDATE voter SET person = 'v0' WHERE id = 'v1'"))
    assert worked_out(valuation).version != before.version
    store.close()


def test_votes_that_the_policy_leaves_out_have_no_part(store: Store) -> None:
    play(store, 24)
    exclude(store, "b3", DEFAULT, "a ring of voters")
    valued = worked_out(Valuation(store, DEFAULT, lambda: NOW))
    assert valued.value is not None
    assert valued.value.report.votes.dropped == {"a ring of voters": 1}
    assert all(row.cost and row.cost.answers == 23 for row in valued.value.models)
    store.close()


def test_too_few_votes_give_a_reason(store: Store) -> None:
    play(store, 4)
    valued = worked_out(Valuation(store, DEFAULT, lambda: NOW))
    assert valued.value is None
    assert str(valued.reason).startswith("No two models have prices or times to compare")
    store.close()
