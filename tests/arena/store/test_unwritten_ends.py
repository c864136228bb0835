"""A battle whose end could not be written fails; what a day cost is more than models admit."""

from dataclasses import replace

import pytest
from sqlmodel import select, update

from arena.domain.battle import AnswerStatus, BattleState
from arena.store import log
from arena.store.chain import AnswerOutcome
from arena.store.store import Store
from arena.store.tables import AnswerRow, BattleRow
from tests.arena.store.battles import A1, B1, NOW, complete, new_battle, ready

DAY_BEFORE = NOW.replace(day=NOW.day - 1)


def statuses(store: Store) -> set[str]:
    with store.reading() as session:
        return set(session.exec(select(AnswerRow.status)))


def test_a_battle_fails_in_few_words_and_keeps_what_was_written(store: Store) -> None:
    store.open_battle(new_battle("b1"))
    store.checkpoint({"b1": {A1: ("Scat", "")}})
    store.fail("b1", "Sorry.")
    stored = store.battle("b1", "ada")
    assert (stored.state, stored.message) == (BattleState.FAILED, "Sorry.")
    assert stored.turns[0].a.text == "Scat"
    assert statuses(store) == {AnswerStatus.INTERRUPTED}


def test_a_battle_that_has_ended_or_runs_elsewhere_does_not_fail(store: Store) -> None:
    ready(store, "b1")
    store.fail("b1", "Sorry.")
    assert store.battle("b1", "ada").state is BattleState.READY
    store.open_battle(new_battle("b2"))
    with store.writing() as session:
        session.exec(update(BattleRow).values(process=77))
    store.fail("b2", "Sorry.")
    assert store.battle("b2", "ada").state is BattleState.CREATED


UNCOUNTED = replace(complete("x" * 1000), reasoning="y" * 500, tokens_out=None)


@pytest.mark.parametrize(
    ("outcome", "dollars"),
    [
        (complete(), [0.00101]),
        (UNCOUNTED, [0.015]),
        (replace(UNCOUNTED, price=None), []),
        (replace(complete(""), status=AnswerStatus.FAILED, tokens_in=None), []),
        (replace(complete(), tokens_in=-(10**9), tokens_out=-(10**9)), []),
    ],
    ids=["counted", "not counted", "without a price", "without a word", "negative"],
)
def test_an_answer_without_a_count_is_spent_by_its_characters_and_none_gives_money_back(
    store: Store, outcome: AnswerOutcome, dollars: list[float]
) -> None:
    store.open_battle(new_battle("b1"))
    nothing = replace(complete(""), price=None)
    ends = {A1: outcome, B1: nothing}
    store.close_answers("b1", BattleState.READY, ends, message=None, now=NOW)
    with store.reading() as session:
        assert [cost for _, cost in log.spent(session, DAY_BEFORE)] == pytest.approx(dollars)
