"""Kept replies read again."""

from judge.case import Case
from judge.completion import Reply, Request
from judge.errors import FailureClass
from judge.methods import AlpacaEval, Pairwise
from judge.reading import Preference, Reading
from judge.rereading import reread
from tests.judge.scripted import (
    Clock,
    Memory,
    MemoryJournal,
    ScriptedJudge,
    case,
    cases,
    judged,
)


class Lenient(Pairwise):
    """Takes a verdict in plain words."""

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        said = super().read(case, reply)
        return Preference(1.0) if reply.text == "A, then." else said


async def test_a_run_read_again_by_the_same_parser_is_the_same() -> None:
    texts = iter(["[[A]]", "Hm.", "[[B]]", "Hm.", "Hm.", "[[C]]"] + ["Hm."] * 99)
    judge = ScriptedJudge(lambda request, before: Reply(text=next(texts)), Clock())
    memory, some = Memory(), [*cases(4), case(9, "same", "same")]
    found = await judged(some, Pairwise(), judge, MemoryJournal(memory))
    memory.notes.clear()
    by_id = {one.id: one for one in some}
    again = await reread(found.judged, by_id, Pairwise(), MemoryJournal(memory))
    assert again == found.judged
    assert {key for _, key in memory.notes} == set(memory.replies)


async def test_another_parser_may_read_what_the_first_could_not_and_nobody_is_asked() -> None:
    judge = ScriptedJudge(lambda request, before: Reply(text="A, then."), Clock())
    journal, some = MemoryJournal(), cases(3)
    found = await judged(some, Pairwise(), judge, journal)
    assert {row.failure for row in found.judged} == {FailureClass.UNPARSED}
    asked = judge.asked.total()
    again = await reread(found.judged, {one.id: one for one in some}, Lenient(), journal)
    assert {row.reading for row in again} == {Preference(1.0)}
    assert {row.status for row in again} == {"read"}
    assert judge.asked.total() == asked


async def test_samples_are_pooled_again_over_all_that_can_be_read() -> None:
    texts = iter("mMmm?Mmmmmm")

    def script(request: Request, before: int) -> Reply:
        return Reply(text=next(texts, "m"))

    journal, one = MemoryJournal(), case()
    method = AlpacaEval("sampled")
    found = await judged([one], method, ScriptedJudge(script, Clock()), journal)
    again = await reread(found.judged, {one.id: one}, method, journal)
    assert again == found.judged


async def test_a_row_whose_replies_are_gone_stays_as_it_was() -> None:
    judge = ScriptedJudge(lambda request, before: Reply(text="[[A]]"), Clock())
    found = await judged([case()], Pairwise(), judge, MemoryJournal())
    again = await reread(found.judged, {case().id: case()}, Lenient(), MemoryJournal())
    assert again == found.judged
