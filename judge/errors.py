"""The ways in which a call of a judge can end without a verdict.

What is wrong with cases, options and annotations are `rating.errors`.
A reply in which no verdict can be read is no error: it is a `FailureClass` beside the others,
kept with its case and counted.
"""

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge.completion import Reply


class FailureClass(StrEnum):
    """Why a case has no verdict; never a tie, never a zero.

    Without a reply, so nothing is known: ``rate_limit``, ``overloaded``, ``transport`` (also a
    body that broke off), ``too_long`` (for the model's context), ``rejected`` (the endpoint does
    not take this request), ``denied`` (it takes none: key or model name is wrong). With a reply,
    which was paid for: ``refusal``, ``truncated``, ``unparsed``, ``no_logprobs``.
    """

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    TRANSPORT = "transport"
    TOO_LONG = "too_long"
    REJECTED = "rejected"
    DENIED = "denied"
    REFUSAL = "refusal"
    TRUNCATED = "truncated"
    UNPARSED = "unparsed"
    NO_LOGPROBS = "no_logprobs"


RERUN = "Run the same command again to continue; no reply is paid for twice."
"""What to do about work that stopped before its end."""


class CallError(Exception):
    """The judge model gave no reply.

    Attributes
    ----------
    failure : FailureClass
        One of the classes without a reply.
    retry_after_s : float or None
        How long the endpoint asks to be left alone, if it said so.
    paid : Reply or None
        A reply that ended badly, with what the endpoint counted: it costs what another does.
    """

    def __init__(
        self,
        failure: FailureClass,
        detail: str,
        *,
        retry_after_s: float | None = None,
        paid: "Reply | None" = None,
    ) -> None:
        super().__init__(f"{failure}: {detail}")
        self.failure = failure
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.paid = paid
