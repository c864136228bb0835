"""What a run would ask and cost, without asking."""

from collections.abc import Iterable, Sequence
from itertools import islice

from judge.budget import Calibration, Estimate, calibrate, estimate, request_tokens
from judge.case import Case, CaseId
from judge.completion import Reply
from judge.errors import FailureClass
from judge.journal import Journal
from judge.options import Options
from judge.protocol import Method
from judge.reading import Reading
from judge.runs import Call, call_of, questions

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
    asked = questions(
        cases,
        method,
        seed=options.seed,
        swap_share=options.swap_share,
        as_given=options.as_given,
    )
    calls = (
        call_of(question, method, judge=options.judge, seed=options.seed, attempt=0)
        for question in asked
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
    found: dict[CaseId, Reading] = {}
    asked = list(questions(cases, method, seed=options.seed))
    for attempt in range(options.attempts):
        due = (question for question in asked if question.case_id not in found)
        calls = (
            call_of(question, method, judge=options.judge, seed=options.seed, attempt=attempt)
            for question in due
        )
        while batch := list(islice(calls, _BATCH)):
            found |= await _readings(batch, method, journal)
    return found


async def _readings(
    batch: Sequence[Call], method: Method, journal: Journal
) -> dict[CaseId, Reading]:
    replies = await journal.recall([call.key for call in batch])
    said = {
        call.question.case_id: method.read(call.question.shown, replies[call.key])
        for call in batch
        if call.key in replies
    }
    return {
        case: reading for case, reading in said.items() if not isinstance(reading, FailureClass)
    }


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
