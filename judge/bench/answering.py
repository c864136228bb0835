"""Answers that are missing, from the models themselves: replies like others, paid for once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.budget import Estimate
from judge.calls import Journal, Key, Options, forecast, recalled
from judge.case import Case, CaseId, Message
from judge.completion import CUT, FILTERED, Complete, Parameters, Reply, Request
from judge.errors import FailureClass
from judge.grammar import Answer, Reading
from judge.protocol import Description, Method, Template
from judge.runs import Progress, run
from judge.tables.items import Item, Turns
from judge.tables.verdicts import total
from judge.verdict import Judged, Run

TOKENS_OUT = 400
"""Expected of an answer, before there is one."""
TYPICAL = (
    "This is a sentence of an answer of the usual length, which nobody has written yet. " * 20
)
"""Stands in estimates for an answer that is still to be given: about `TOKENS_OUT`."""


@dataclass(frozen=True, slots=True)
class Answering(Method):
    """Send a prompt as it is: no words of ours, no fence, and the model's own system prompt.

    What identifies an answer is the model with its decoding, and the conversation: no method, no
    judge and no benchmark, so that all of them share it.
    """

    parameters: Parameters

    @property
    def description(self) -> Description:
        """What there is to know of it."""
        return Description(
            name="answer",
            template=Template.of("", ""),
            parameters=self.parameters,
            tokens_out=TOKENS_OUT,
        )

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the prompt as a request."""
        return Request(case.prompt, self.parameters)

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the answer, also one that was cut off; or why there is none."""
        if reply.finish_reason == FILTERED:
            return FailureClass.REFUSAL
        if reply.text.strip():
            return Answer(reply.text)
        return FailureClass.TRUNCATED if reply.finish_reason == CUT else FailureClass.UNPARSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer that a model gave when it was asked.

    Attributes
    ----------
    texts : tuple of str
        Turn by turn; fewer turns than the item has where one failed.
    failure : FailureClass or None
        Why it stopped; None also while it is pending.
    """

    item: Item
    texts: Turns = ()
    failure: FailureClass | None = None
    detail: str = ""
    finish_reason: str = ""
    tokens_in: float | None = None
    tokens_out: float | None = None
    cost_usd: float | None = None
    latency_s: float | None = None

    @property
    def whole(self) -> bool:
        """Whether every turn of the item is answered."""
        return len(self.texts) > len(self.item.further)

    def prompt(self) -> tuple[Message, ...]:
        """Return the conversation up to the turn that is next."""
        turns = list(self.item.prompt)
        for text, further in zip(self.texts, self.item.further, strict=False):
            turns += [Message("assistant", text), Message("user", further)]
        return tuple(turns)

    def after(self, row: Judged, replies: Mapping[Key, Reply]) -> "Given":
        """Return it with what came of the next turn."""
        each = [replies[key] for key in row.keys if key in replies]
        more = (row.reading.text,) if isinstance(row.reading, Answer) else ()
        return replace(
            self,
            texts=self.texts + more,
            failure=row.failure,
            detail=row.detail,
            finish_reason=each[-1].finish_reason if each else "",
            tokens_in=total([self.tokens_in, *(reply.tokens_in for reply in each)]),
            tokens_out=total([self.tokens_out, *(reply.tokens_out for reply in each)]),
            cost_usd=total([self.cost_usd, row.cost_usd]),
            latency_s=total([self.latency_s, row.latency_s]),
        )


async def answered(
    items: Sequence[Item],
    parameters: Parameters,
    complete: Complete,
    journal: Journal,
    options: Options,
    progress: Callable[[Progress], None],
) -> tuple[list[Given], Run]:
    """Let a model answer items, turn by turn; what the journal holds is not asked again.

    Returns
    -------
    list of Given
        One an item, in their order.
    Run
        Of all turns together; stopped where one of them was.
    """
    given = [Given(item=item) for item in items]
    whole: Run | None = None
    for turn in range(max((len(item.further) for item in items), default=0) + 1):
        due = {n: Case(one.prompt(), "") for n, one in enumerate(given) if _is_due(one, turn)}
        spent = 0.0 if whole is None else whole.spent_usd or 0.0
        left = None if options.limit_usd is None else max(options.limit_usd - spent, 0.0)
        last = await run(
            due.values(),
            Answering(parameters),
            complete,
            journal,
            replace(options, limit_usd=left),
            progress=progress,
        )
        rows: dict[CaseId, Judged] = {row.case_id: row for row in last.judged}
        replies = await journal.recall([key for row in last.judged for key in row.keys])
        for n, case in due.items():
            given[n] = given[n].after(rows[case.id], replies)
        whole = last if whole is None else replace(last.after(whole), stopped=last.stopped)
        if last.stopped is not None:
            break
    assert whole is not None
    return given, whole


def _is_due(given: Given, turn: int) -> bool:
    return len(given.texts) == turn and turn <= len(given.item.further)


async def forecast_answers(
    items: Sequence[Item], parameters: Parameters, journal: Journal, options: Options
) -> Estimate:
    """Estimate what `answered` would ask; earlier turns are taken as `TYPICAL`."""
    turns = [
        Given(item=item, texts=(TYPICAL,) * turn)
        for item in items
        for turn in range(len(item.further) + 1)
    ]
    cases = [Case(one.prompt(), "") for one in turns]
    return await forecast(cases, Answering(parameters), journal, options)


async def recalled_answers(
    items: Sequence[Item], parameters: Parameters, journal: Journal, options: Options
) -> dict[str, Turns]:
    """Give the answers to items that the journal holds whole, by the item's name; ask nothing."""
    given = [Given(item=item) for item in items]
    method = Answering(parameters)
    for turn in range(max((len(item.further) for item in items), default=0) + 1):
        due = {n: Case(one.prompt(), "") for n, one in enumerate(given) if _is_due(one, turn)}
        known = await recalled(due.values(), method, journal, options)
        for n, case in due.items():
            reading = known.get(case.id)
            if isinstance(reading, Answer):
                given[n] = replace(given[n], texts=(*given[n].texts, reading.text))
    return {one.item.id: one.texts for one in given if one.whole}
