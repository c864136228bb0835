"""From cases to calls: what is asked, in which order, under which key."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from judge.case import Case, CaseId, Order
from judge.completion import Request
from judge.hardening import nonce
from judge.journal import Key, key_of
from judge.method import Method
from judge.verdict import orders_within_budget


@dataclass(frozen=True, slots=True)
class Question:
    """One sample of what a judge says of one case in one order."""

    case_id: CaseId
    order: Order
    sample: int
    shown: Case

    @property
    def name(self) -> tuple[CaseId, Order, int]:
        """What tells a question from all others."""
        return self.case_id, self.order, self.sample


@dataclass(frozen=True, slots=True)
class Call:
    """A question as it is sent; a later attempt is another call with another key."""

    question: Question
    attempt: int
    request: Request
    key: Key


def questions(
    cases: Iterable[Case],
    method: Method,
    *,
    seed: str,
    swap_share: float = 1.0,
    as_given: bool = False,
) -> Iterator[Question]:
    """Yield what there is to ask; a case that comes twice is asked about once.

    Parameters
    ----------
    swap_share : float
        Share of the cases that are asked in both orders; the rest are asked in one that a fair
        coin picks (`judge.verdict.orders_within_budget`).
    as_given : bool
        Ask with side A first alone.
    """
    description = method.description
    both = description.pairwise and not as_given
    seen = set()
    for case in cases:
        case_id = case.id
        if case_id in seen:
            continue
        seen.add(case_id)
        for order in _orders(case_id, seed, swap_share) if both else (Order.AB,):
            shown = case.shown(order)
            for sample in range(description.samples):
                yield Question(case_id, order, sample, shown)


def call_of(question: Question, method: Method, *, judge: str, seed: str, attempt: int) -> Call:
    """Return the call for an attempt at a question: the same on every run with the same seed."""
    draw = question.sample
    if attempt:
        draw += method.description.samples * attempt
    fence = nonce(seed, question.case_id, question.order, str(draw))
    request = method.ask(question.shown, fence)
    return Call(question, attempt, request, key_of(request, judge, question.order, draw))


def _orders(case_id: CaseId, seed: str, swap_share: float) -> tuple[Order, ...]:
    if swap_share == 1:
        return (Order.AB, Order.BA)
    return orders_within_budget(case_id, seed=seed, share=swap_share)
