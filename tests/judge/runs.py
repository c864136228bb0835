"""Judges and failures for the tests of a run."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from judge.budget import Price
from judge.case import CallError, Case, FailureClass, Reply, Request
from judge.grammar import Reading
from judge.methods import method as named
from judge.protocol import Description, Method
from judge.verdict import Judged
from tests.judge.scripted import Clock, Script, ScriptedJudge, honest, prefer

GOOD = prefer(honest)
PRICE = Price(10.0, 30.0, date(2024, 4, 9))
EACH = PRICE.cost(100, 10)  # of a reply by the scripts of `prefer`


def judge(script: Script = GOOD, latency_s: float = 1.0) -> ScriptedJudge:
    return ScriptedJudge(script, Clock(), latency_s)


def failing(*errors: CallError | Reply) -> Script:
    """Give these in turn to every request, and then answer well."""
    return lambda request, before: errors[before] if before < len(errors) else GOOD(request, 0)


def error(failure: FailureClass, retry_after_s: float | None = None) -> CallError:
    return CallError(failure, f"planted {failure}", retry_after_s=retry_after_s)


def statuses(rows: Sequence[Judged]) -> set[str]:
    return {row.status for row in rows}


def never(request: Request, before: int) -> Reply:
    raise AssertionError("nothing was to be asked")


class Comparing(Method):
    """A method of pairs that says of itself that it looks at one response."""

    @property
    def description(self) -> Description:
        return replace(named("pairwise").description, pairwise=False)

    def ask(self, case: Case, nonce: str) -> Request:
        return named("pairwise").ask(case, nonce)

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        return named("pairwise").read(case, reply)
