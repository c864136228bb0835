"""The ways in which a call of a judge can end without a verdict.

What is wrong with cases, options and annotations are `rating.errors`.
A reply in which no verdict can be read is no error: it is a `FailureClass` beside the others,
kept with its case and counted.
"""

from enum import StrEnum


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


class CallError(Exception):
    """The judge model gave no reply.

    Attributes
    ----------
    failure : FailureClass
        One of the classes without a reply.
    retry_after_s : float or None
        How long the endpoint asks to be left alone, if it said so.
    """

    def __init__(
        self, failure: FailureClass, detail: str, *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(f"{failure}: {detail}")
        self.failure = failure
        self.detail = detail
        self.retry_after_s = retry_after_s
