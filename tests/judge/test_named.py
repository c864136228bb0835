"""Methods by name, and what a judge that reads nothing looks like."""

import pytest

from judge.case import Case, Order
from judge.completion import Reply
from judge.errors import FailureClass
from judge.forecast import recalled
from judge.journal import Key
from judge.methods import ChecklistWriter, margined, unanswered
from judge.methods.named import PAIRS, SINGLES
from judge.methods.named import method as named
from judge.reading import Preference, Questions, Rating, Reading
from judge.results import Judged, always_said
from rating.errors import DataError
from tests.judge.scripted import OPTIONS, Clock, MemoryJournal, ScriptedJudge, case, cases, judged

LISTED = {case(n).prompt_id: ("Is it good?",) for n in range(3)}


@pytest.mark.parametrize("name", [*PAIRS, *SINGLES])
def test_a_name_gives_the_method_of_that_name(name: str) -> None:
    found = named(name, rubric="1 is poor." if name == "rubric" else None)
    method = found.made(LISTED)
    assert method.description.name == found.name == name
    assert method.description.pairwise == found.pairwise == (name in PAIRS)
    asked = method.ask(case(1, b="" if found.pairwise else None), "0" * 16)
    assert found.by_checklist == ("Is it good?" in asked.messages[-1].content)


@pytest.mark.parametrize(
    ("name", "rubric", "said"),
    [
        ("elo", None, "There is no method 'elo'"),
        ("rubric", None, "needs a rubric"),
        ("pairwise", "1 is poor.", "A rubric is for the method rubric"),
    ],
)
def test_what_is_no_method_says_why(name: str, rubric: str | None, said: str) -> None:
    with pytest.raises(DataError, match=said):
        named(name, rubric=rubric)


def row(number: int, reading: Reading | None, order: Order = Order.AB) -> Judged:
    failure = None if reading else FailureClass.UNPARSED
    return Judged(
        case_id=case(number).id, order=order, reading=reading, failure=failure, keys=(Key("k"),)
    )


def test_one_reading_for_everything_is_reported_and_one_exception_is_enough() -> None:
    same = [row(n, Rating(7)) for n in range(20)]
    assert always_said(same) == Rating(7)
    assert always_said([*same, row(20, None)]) == Rating(7)
    assert always_said([*same, row(20, Rating(8))]) is None
    assert always_said(same[:19]) is None, "too few to tell"
    settled = Judged(case_id=case(20).id, order=Order.AB, reading=Preference(0.5))
    ties = [row(n, Preference(0.5)) for n in range(19)]
    assert always_said([*ties, settled]) is None, "nobody said that"


def test_who_prefers_one_response_in_both_orders_says_two_things() -> None:
    orders = ((Order.AB, 1.0), (Order.BA, 0.0))
    assert always_said([row(n, Preference(p), o) for n in range(20) for o, p in orders]) is None


def test_a_margin_is_taken_off_in_the_order_that_was_shown() -> None:
    """Slight wins of the longer response, first in one order and second in the other."""
    long = Case(case(0).prompt, "long " * 200, "short")
    rows = [
        Judged(case_id=long.id, order=Order.AB, reading=Preference(0.75)),
        Judged(case_id=long.id, order=Order.BA, reading=Preference(0.25)),
        Judged(case_id=long.id, order=Order.BA, reading=Preference(0.75)),
        Judged(case_id=long.id, order=Order.AB, reading=None, failure=FailureClass.REFUSAL),
    ]
    found = margined(rows, {long.id: long}, 500)
    assert [one.reading for one in found[:3]] == [*[Preference(0.5)] * 2, Preference(0.75)]
    assert found[3] == rows[3]
    assert margined(rows, {long.id: long}, None) == tuple(rows)


async def test_what_the_journal_holds_is_recalled_at_whichever_attempt_it_was_read() -> None:
    items = tuple(f"Is it number {n}?" for n in range(5))
    text = "\n".join(f"- {item}" for item in items)
    judge = ScriptedJudge(lambda request, before: Reply(text=texts.pop()), Clock())
    texts = [text, "None.", text]
    journal, asked = MemoryJournal(), [unanswered(each) for each in cases(2)]
    assert await recalled(asked, ChecklistWriter(), journal, OPTIONS) == {}
    await judged(asked, ChecklistWriter(), judge, journal)
    found = await recalled(asked, ChecklistWriter(), journal, OPTIONS)
    assert found == {each.id: Questions(items) for each in asked}
    assert sum(judge.asked.values()) == 3
