"""The calls of a run: what there is to ask, with what fence, and what it would cost."""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from judge.budget import Calibration, Estimate, calibrate, estimate, request_tokens
from judge.case import Case, CaseId, Order
from judge.completion import Reply, Request
from judge.errors import FailureClass
from judge.grammar import Reading
from judge.journal import Journal, Key, key_of
from judge.options import Options
from judge.protocol import Method
from rating.errors import DataError


@dataclass(frozen=True, slots=True)
class Question:
    """One sample of what a judge says of one case in one order.

    Attributes
    ----------
    number : int
        Place among the questions of a run.
    """

    number: int
    case_id: CaseId
    order: Order
    sample: int
    shown: Case


@dataclass(frozen=True, slots=True)
class Call:
    """A question as it is sent; a later attempt is another call with another key."""

    question: Question
    attempt: int
    request: Request
    key: Key


def questions(cases: Iterable[Case], method: Method, options: Options) -> list[Question]:
    """Return what there is to ask; a case that comes twice is asked about once."""
    description = method.description
    both = description.pairwise and not options.as_given
    asked: list[Question] = []
    for case_id, case in {case.id: case for case in cases}.items():
        for order in _orders(case_id, options) if both else (Order.AB,):
            shown = case.shown(order)
            for sample in range(description.samples):
                asked.append(Question(len(asked), case_id, order, sample, shown))
    return asked


def call_of(question: Question, method: Method, options: Options, attempt: int = 0) -> Call:
    """Return the call for an attempt at a question: the same on every run with the same seed."""
    draw = question.sample
    if attempt:
        draw += method.description.samples * attempt
    fence = nonce(options.seed, question.case_id, question.order, str(draw))
    request = method.ask(question.shown, fence)
    key = key_of(request, options.judge, question.order, draw)
    return Call(question, attempt, request, key)


def _orders(case_id: CaseId, options: Options) -> tuple[Order, ...]:
    if options.swap_share == 1:
        return (Order.AB, Order.BA)
    return orders_within_budget(case_id, seed=options.seed, share=options.swap_share)


def orders_within_budget(case_id: str, *, seed: str, share: float) -> tuple[Order, ...]:
    """Return the orders in which to ask for one case when not every case is asked twice.

    A fair coin picks the order; with probability ``share`` the case is asked in the other order
    too. Both draws come from the seed and the case's content, so a rerun and another process
    ask in the same orders, however many cases there are and in whatever sequence.

    Raises
    ------
    DataError
        If ``share`` is no share.
    """
    if not 0 <= share <= 1:
        raise DataError(f"The share of cases to swap lies between 0 and 1, not at {share}.")
    first = Order.AB if drawn(seed, "order", case_id) < 0.5 else Order.BA
    swap = drawn(seed, "swap", case_id) < share
    return (first, first.other) if swap else (first,)


def nonce(seed: str, *parts: str) -> str:
    """Return 16 hexadecimal digits that fence what a judge must not obey.

    HMAC-SHA-256 under the run's secret seed of the case's content, the order and the draw: every
    call has another one, and a rerun has the same, so that its journal key is the same.

    It is unpredictable to who wrote a response, twice over. The seed is drawn at random by
    whoever runs the judge and shown to nobody; and the case's content includes the response
    itself and the one it is set against, so that even with the seed in hand a response that
    contains its own nonce would have to be searched for among 2**64.

    Examples
    --------
    >>> nonce("secret", "case", "ab") == nonce("secret", "case", "ab")
    True
    >>> nonce("secret", "case", "ab") == nonce("secret", "case", "ba")
    False
    """
    return _mac(seed, "nonce", *parts).hex()[:16]


def drawn(seed: str, *parts: str) -> float:
    """Return a number in [0, 1) that the seed and the parts determine, as if drawn uniformly."""
    return int.from_bytes(_mac(seed, "draw", *parts)[:6]) / 2**48


def _mac(seed: str, *parts: str) -> bytes:
    message = "\x1f".join(parts).encode(errors="surrogatepass")
    return hmac.digest(seed.encode(), message, hashlib.sha256)


_BATCH = 256


async def forecast(
    cases: Iterable[Case],
    method: Method,
    journal: Journal,
    options: Options,
    *,
    calibration: Calibration | None = None,
) -> Estimate:
    """Estimate what `judge.runs.run` would still ask for, with the same arguments.

    Calls that the journal holds are free, and calibrate the rest. Counted are first attempts;
    replies that cannot be read add to them.

    Parameters
    ----------
    calibration : Calibration or None
        From other replies of the same judge; None takes those of these cases, if there are any.

    Raises
    ------
    DataError
        If a case does not fit the method: better known now than in the middle of a run.
    """
    due: list[float] = []
    known: list[tuple[float, Reply]] = []
    calls = (
        call_of(question, method, options)
        for question in questions(cases, method, options)
        if method.settled(question.shown) is None
    )
    while batch := list(islice(calls, _BATCH)):
        await _sort(batch, journal, due, known)
    return estimate(
        due,
        tokens_out=method.description.tokens_out,
        price=options.price,
        calibration=calibrate(known) if calibration is None else calibration,
    )


async def recalled(
    cases: Iterable[Case], method: Method, journal: Journal, options: Options
) -> dict[CaseId, Reading]:
    """Read what the journal holds on cases, of methods that ask one question a case; ask nothing.

    Of several attempts, the first that can be read, as a run takes it.
    """
    readings: dict[CaseId, Reading] = {}
    asked = questions(cases, method, options)
    for attempt in range(options.attempts):
        calls = (
            call_of(question, method, options, attempt)
            for question in asked
            if question.case_id not in readings
        )
        while batch := list(islice(calls, _BATCH)):
            readings |= await _readings(batch, method, journal)
    return readings


async def _readings(
    batch: Sequence[Call], method: Method, journal: Journal
) -> dict[CaseId, Reading]:
    replies = await journal.recall([call.key for call in batch])
    readings = (
        (call.question.case_id, method.read(call.question.shown, replies[call.key]))
        for call in batch
        if call.key in replies
    )
    return {case: read for case, read in readings if not isinstance(read, FailureClass)}


async def _sort(
    batch: Sequence[Call], journal: Journal, due: list[float], known: list[tuple[float, Reply]]
) -> None:
    replies = await journal.recall([call.key for call in batch])
    for call in batch:
        tokens = request_tokens(call.request)
        if call.key in replies:
            known.append((tokens, replies[call.key]))
        else:
            due.append(tokens)
