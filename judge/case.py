"""Judging cases, steps of agents, and the interface to judge models.

A `Case` is what a judge sees: a prompt and one or two responses, and no name anywhere. `Complete`
is the port to whatever answers: a `Request` goes out, a `Reply` or a `CallError` comes back. An
`AgentRun` holds the steps by which an agent came to an answer that people rate.

`FailureClass` lists the ways in which a call can end without a verdict. A reply without a readable
verdict is one of these, kept with its case and counted, and no error; wrong cases, options and
annotations raise `rating.errors`.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, NewType, Protocol, get_args

from rating.errors import DataError

# Cases


CaseId = NewType("CaseId", str)
"""SHA-256 of a case's content, in hexadecimal."""


class Order(StrEnum):
    """Which response stands first in what the judge reads: A (``ab``) or B (``ba``)."""

    AB = "ab"
    BA = "ba"

    @property
    def other(self) -> "Order":
        """The opposite order."""
        return Order.BA if self is Order.AB else Order.AB


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes
    ----------
    images : tuple of str
        Images with the text: ``data:`` URLs, or https addresses.
    """

    role: Literal["system", "user", "assistant"]
    content: str
    images: tuple[str, ...] = ()

    @property
    def image_hashes(self) -> list[str]:
        """SHA-256 of each image, in hexadecimal; of an address, not of what lies there."""
        return [hashlib.sha256(image.encode()).hexdigest() for image in self.images]


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt, and one or two responses to its last turn.

    There is no field for a name, an id or a source, so whatever is made of a case is blind. Who
    wrote which response is known to the caller alone, by `id`.

    Attributes
    ----------
    prompt : tuple of Message
        The conversation so far; the last turn is the user's.
    response_a : str
        The response on side A, or the only one.
    response_b : str or None
        None where a single response is judged.
    earlier_a, earlier_b : tuple of str
        Responses of each side to the turns of the user before the last, where each side had a
        conversation of its own; the prompt then holds the turns of the user alone.
    reference : str or None
        A right answer to hold responses against.

    Raises
    ------
    DataError
        If the prompt is empty, has an unknown role, or does not end with the user; or the earlier
        responses are not as many on both sides as there are earlier turns of the user.

    Examples
    --------
    >>> case = Case((Message("user", "2 + 2?"),), "4", "5")
    >>> case.id[:12]
    '4edd9b113e3a'
    >>> case.swapped().response_a
    '5'
    """

    prompt: tuple[Message, ...]
    response_a: str
    response_b: str | None = None
    earlier_a: tuple[str, ...] = ()
    earlier_b: tuple[str, ...] = ()
    reference: str | None = None

    def __post_init__(self) -> None:
        bad = [turn.role for turn in self.prompt if turn.role not in ROLES]
        if bad:
            raise DataError(f"Unknown role {bad[0]!r}; use one of {', '.join(ROLES)}.")
        if not self.prompt or self.prompt[-1].role != "user":
            last = self.prompt[-1].role if self.prompt else "nothing"
            raise DataError(f"A prompt ends with a turn of the user, not with {last}.")
        if self.earlier_a or self.earlier_b:
            self._require_as_many()

    @property
    def id(self) -> CaseId:
        """The case's content as a hash: equal content has an equal id, in every process."""
        content: list[object] = [self._turns(), self.response_a, self.response_b]
        if self.earlier_a or self.reference is not None:
            content.append([self.earlier_a, self.earlier_b, self.reference])
        return CaseId(_digest(content))

    @property
    def prompt_id(self) -> str:
        """The prompt's content as a hash, whatever the responses."""
        return _digest(self._turns())

    @property
    def images(self) -> tuple[str, ...]:
        """The images of all turns, in their order."""
        return tuple(image for turn in self.prompt for image in turn.images)

    def swapped(self) -> "Case":
        """Return the same case with the sides exchanged."""
        if self.response_b is None:
            raise DataError(f"Case {self.id[:12]} has one response: there is nothing to swap.")
        return replace(
            self,
            response_a=self.response_b,
            response_b=self.response_a,
            earlier_a=self.earlier_b,
            earlier_b=self.earlier_a,
        )

    def shown(self, order: Order) -> "Case":
        """Return the case as the judge sees it: the response that comes first on side A."""
        return self if order is Order.AB else self.swapped()

    def _require_as_many(self) -> None:
        """Raise where a turn of the user would be without the response that followed."""
        users = sum(turn.role == "user" for turn in self.prompt)
        due = (users - 1, 0 if self.response_b is None else users - 1)
        there = (len(self.earlier_a), len(self.earlier_b))
        if there != due or any(turn.role == "assistant" for turn in self.prompt):
            raise DataError(
                f"With {there[0]} and {there[1]} earlier responses a prompt has as many earlier"
                f" turns of the user, and none of the assistant; this one has {users - 1}."
            )

    def _turns(self) -> list[list[object]]:
        return [
            [turn.role, turn.content, *([turn.image_hashes] if turn.images else [])]
            for turn in self.prompt
        ]


ROLES = ("system", "user", "assistant")
_canonical = json.JSONEncoder(separators=(",", ":")).encode


def _digest(value: object) -> str:
    """Hash of canonical JSON, escaped to ASCII so that a lone surrogate has a hash too."""
    return hashlib.sha256(_canonical(value).encode()).hexdigest()


_SHINGLE = 8
"""Words of a run that is looked for elsewhere."""


def repeated_output(
    responses: Mapping[str, str], *, prompts: int = 5, share: float = 0.2
) -> tuple[float, int, str] | None:
    """Find whether one model answers many prompts with one text, whole or in large pieces.

    Responses are cut into runs of eight words. A run recurs if it stands in the responses to at
    least ``prompts`` prompts; a response recurs if half of its runs do. A constant answer that
    plays to a judge's template reached a length-controlled win rate of 86.5% in AlpacaEval [1]_;
    changing a few of its words per prompt leaves most runs as they are.

    Parameters
    ----------
    responses : mapping
        A model's response by prompt id: one for each prompt.
    prompts : int
        Prompts from which on a run of words counts as recurring.
    share : float
        Recurring responses from which on the model is reported. Stock refusals recur too, and
        should stay below it.

    Returns
    -------
    (float, int, str) or None
        Share of its responses of which at least half recurs under other prompts, how many there
        are, and the beginning of one of them; None if no more than ``share`` of them recur.

    References
    ----------
    .. [1] X. Zheng et al., "Cheating automatic LLM benchmarks: null models achieve high win
       rates", ICLR 2025. The detector is ours.
    """
    runs = {prompt: _runs(text) for prompt, text in responses.items()}
    spread = Counter(run for own in runs.values() for run in own)
    recurring = [
        prompt
        for prompt, own in runs.items()
        if 2 * sum(spread[run] >= prompts for run in own) >= len(own)
    ]
    if not recurring or len(recurring) <= share * len(responses):
        return None
    n = len(responses)
    return len(recurring) / n, n, responses[recurring[0]][:200]


def _runs(text: str) -> frozenset[int]:
    """Hashes of all runs of eight words; of the whole text if it is shorter."""
    words = text.lower().split()
    last = max(len(words) - _SHINGLE, 0)
    return frozenset(hash(tuple(words[i : i + _SHINGLE])) for i in range(last + 1))


# Steps of an agent


Kind = Literal["message", "user", "system", "tool_call", "tool_result", "error"]
KINDS: tuple[Kind, ...] = get_args(Kind)
BLIND = ("kind", "name", "text", "arguments")
"""What of a step people see before they rate."""
TOOK = ("cost", "seconds")
"""What of a step they may see once they have rated."""
NO_TEXT = "(not shown: {})"
"""What stands for a part of a message that is no text, by its type."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run.

    Attributes
    ----------
    kind : {"message", "user", "system", "tool_call", "tool_result", "error"}
        What the agent wrote, what its user or its instructions did, and what tools took and gave.
    name : str
        Of the tool.
    text : str
        Markdown of a message, and plain text of all others.
    arguments : str
        Of a tool call, as JSON.
    cost, seconds : float or None
        US dollars and time that it took; None where not known.
    """

    kind: Kind
    text: str = ""
    name: str = ""
    arguments: str = ""
    cost: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class AgentRun:
    """How a model in a scaffold came to its answer.

    Attributes
    ----------
    model : str
    scaffold : str or None
        The program around the model, where there is one to tell apart.
    cost, seconds : float or None
        Of the whole run: US dollars and time; None where not known.
    marks : mapping of str to float
        What scorers gave it, by their names. No rater is shown them.
    """

    model: str
    scaffold: str | None
    steps: tuple[Step, ...]
    cost: float | None = None
    seconds: float | None = None
    marks: Mapping[str, float] = field(default_factory=dict)


def first_difference(runs: Sequence[Sequence[Mapping[str, Any]]]) -> int | None:
    """Find the first step in which runs differ, from 0; None where all steps are the same.

    Where one run goes on after the end of another, it is the first step that the other lacks.

    Parameters
    ----------
    runs : sequence of sequence of mapping
        Steps, of which `BLIND` counts.

    Examples
    --------
    >>> look, ask = {"kind": "tool_call", "name": "look"}, {"kind": "tool_call", "name": "ask"}
    >>> first_difference([[look, ask], [look, look]]), first_difference([[look], [look, ask]])
    (1, 1)
    """
    for place in range(max(map(len, runs))):
        if len({_seen(run[place]) if place < len(run) else None for run in runs}) > 1:
            return place
    return None


def _seen(step: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(step.get(name, "")).strip() for name in BLIND)


# Requests and replies


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
        fields = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: one for name, one in fields if one is not None and one is not False}


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
        fields = {name: getattr(self, name) for name in self.__slots__}
        if self.logprobs:
            fields["logprobs"] = [[t.token, t.logprob, dict(t.top)] for t in self.logprobs]
        if not self.discount:
            del fields["discount"]
        return fields

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


# Failures


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
