"""What an endpoint says while it answers, and how it can fail."""

from dataclasses import dataclass
from enum import StrEnum

from judge.completion import TokenLogprob
from rating.sentences import Sentence


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A further piece of the visible answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A further piece of the model's reasoning: logged, never shown before the vote.

    Attributes
    ----------
    retracts : bool
        Whether all of the answer so far was reasoning, too, and comes before this piece.
    """

    text: str
    retracts: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """The regular end of an answer.

    Attributes
    ----------
    finish_reason : str
        As the endpoint gave it (``stop``, ``length``); empty when it gave none.
    tokens_in, tokens_out : int or None
        As the endpoint counted, thoughts included; None when it did not say.
    request_id : str
        The provider's name for the request; empty when it gave none.
    tokens_thinking : int or None
        Of ``tokens_out``, those of thoughts; None when it did not say.
    """

    finish_reason: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    request_id: str = ""
    tokens_thinking: int | None = None


Chunk = TextDelta | ReasoningDelta | Finished


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer, asked for without streaming.

    Attributes
    ----------
    logprobs : tuple of TokenLogprob, or None
        None when the endpoint returned none: not the same as an empty answer.
    model, fingerprint : str
        What the endpoint says answered; empty where it does not.
    """

    text: str
    finished: Finished
    reasoning: str = ""
    logprobs: tuple[TokenLogprob, ...] | None = None
    model: str = ""
    fingerprint: str = ""


class FailureClass(StrEnum):
    """Why a model did not answer."""

    AUTH = "auth"
    BAD_REQUEST = "bad_request"
    CONTENT_FILTER = "content_filter"
    CONTEXT_LENGTH = "context_length"
    DROPPED = "dropped"
    EMPTY = "empty"
    INTERNAL = "internal"
    MALFORMED = "malformed"
    NOT_FOUND = "not_found"
    NO_CREDIT = "no_credit"
    OVERLOADED = "overloaded"
    RATE_LIMIT = "rate_limit"
    REVEALED = "revealed"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"


FAILURES = {
    FailureClass.AUTH: Sentence("key refused"),
    FailureClass.BAD_REQUEST: Sentence("request refused"),
    FailureClass.CONTENT_FILTER: Sentence("content filter"),
    FailureClass.CONTEXT_LENGTH: Sentence("prompt too long"),
    FailureClass.DROPPED: Sentence("connection broken"),
    FailureClass.EMPTY: Sentence("empty answer"),
    FailureClass.INTERNAL: Sentence("fault of ours"),
    FailureClass.MALFORMED: Sentence("unreadable answer"),
    FailureClass.NOT_FOUND: Sentence("not found"),
    FailureClass.NO_CREDIT: Sentence("account without credit"),
    FailureClass.OVERLOADED: Sentence("overloaded"),
    FailureClass.RATE_LIMIT: Sentence("rate limit"),
    FailureClass.REVEALED: Sentence("reasoning shown"),
    FailureClass.TIMEOUT: Sentence("timed out"),
    FailureClass.UNREACHABLE: Sentence("unreachable"),
}
"""Why a model did not answer, in words."""
