"""Port to whatever answers: a request goes out, a reply or a `CallError` comes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from judge.case import Message
from rating.errors import DataError

FILTERED = "content_filter"
"""Finish reason of a reply that the model or its provider refused to give."""

CUT = "length"
"""Finish reason of a reply that ended because its tokens ran out."""

BROKEN = "broken_off"
"""Finish reason of a kept reply that broke off, or ended for a reason that is not known.

A new one is an error. Earlier versions kept such replies, and read them as whole.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How to decode. None is not sent: some endpoints reject a parameter they do not know.

    Attributes
    ----------
    max_tokens : int
        Most tokens of a reply.
    temperature : float or None
        Zero for the most probable reply.
    top_logprobs : int or None
        Alternatives of each token to return with their log-probabilities.
    json_object : bool
        Ask the endpoint for a JSON object and nothing else.
    """

    max_tokens: int
    temperature: float | None = None
    top_logprobs: int | None = None
    json_object: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return the parameters that are set, for the journal's key."""
        fields = {
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_logprobs": self.top_logprobs,
            "json_object": self.json_object or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a judge model; which model that is, `Complete` knows."""

    messages: tuple[Message, ...]
    parameters: Parameters

    @property
    def characters(self) -> int:
        """Length of all messages."""
        return sum(len(turn.content) for turn in self.messages)


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Log-probability (nats) of one output token, and of its alternatives."""

    token: str
    logprob: float
    top: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a judge model said, as it said it.

    Attributes
    ----------
    logprobs : tuple of TokenLogprob, or None
        None when the endpoint returned none.
    finish_reason : str
        As the endpoint gave it; `FILTERED` for a refusal, `CUT` for one that ran out of tokens,
        `BROKEN` for one in which nothing is read.
    tokens_in, tokens_out : int or None
        As the endpoint counted, thinking included; None when it did not say.
    tokens_thinking : int or None
        Of ``tokens_out``, those of thoughts; None when it did not say.
    latency_s : float or None
        From the request to the whole reply; None when nobody measured it.
    model, fingerprint : str
        What the endpoint says answered, such as a dated name; empty where it does not.
    discount : float
        Share of the price that was not charged, as for a batch.
    """

    text: str
    logprobs: tuple[TokenLogprob, ...] | None = None
    finish_reason: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_thinking: int | None = None
    latency_s: float | None = None
    model: str = ""
    fingerprint: str = ""
    discount: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_dict` reads them back without loss."""
        tokens = self.logprobs
        return {
            "text": self.text,
            "logprobs": tokens and [[t.token, t.logprob, dict(t.top)] for t in tokens],
            "finish_reason": self.finish_reason,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "tokens_thinking": self.tokens_thinking,
            "latency_s": self.latency_s,
            "model": self.model,
            "fingerprint": self.fingerprint,
            **({"discount": self.discount} if self.discount else {}),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Reply":
        """Read what `to_dict` wrote.

        Raises
        ------
        DataError
            If a field is missing, unknown or malformed.
        """
        try:
            tokens = fields["logprobs"]
            logprobs = None if tokens is None else tuple(TokenLogprob(*t) for t in tokens)
            return cls(**{**fields, "logprobs": logprobs})
        except (KeyError, TypeError) as error:
            raise DataError(f"This is no recorded reply: {fields!r} ({error}).") from None


class Complete(Protocol):
    """Ask one judge model, once, without a retry.

    A refusal, a reply cut off by its token limit and a reply without the log-probabilities that
    were asked for are replies: they were paid for, and are kept. Only what brought no reply is
    raised.

    Raises
    ------
    CallError
        With the failure's class, and the wait that the endpoint asked for.
    """

    async def __call__(self, request: Request) -> Reply:
        """Return the whole reply to a request."""
        ...
