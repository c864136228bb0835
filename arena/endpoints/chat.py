"""Formats of endpoints: requests and replies of chats, embeddings and batches.

`request_body` writes a chat in OpenAI's format; `StreamedReply` and `read_completion` read the
answer. `finish_reason` decides how a reply ended, for streams, whole replies and lines of a batch
alike. `request_of` and `answer_of` are for files of batches, in the formats of OpenAI and
Anthropic.
"""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeVar

from arena.domain.model import Model
from arena.domain.vote import (
    Chunk,
    Completion,
    End,
    FailureClass,
    Finished,
    ReasoningDelta,
    TextDelta,
    end_of,
)
from arena.endpoints.failures import IN_A_REPLY, from_error, without
from arena.endpoints.sse import DONE, over
from arena.errors import EndpointError
from judge.case import CUT, FILTERED, Message, TokenLogprob
from judge.replies import Part, Splitter, split
from rating.tables.files import UNSTORABLE, VISIBLE, parsed, storable

# How a reply ended

ERROR_FIELDS = frozenset({"error_code", "errors", "exception", "detail", "message", "statuscode"})
"""Fields of an event that is nothing but an error; FastChat sends ``error_code``."""


def finish_reason(
    reason: str, *, has_text: bool, refusal: str = "", as_it_is: bool = False
) -> str:
    """Give the finish reason of an answer in one spelling.

    Parameters
    ----------
    reason : str
        As the endpoint gave it; empty where it gave none although the reply is complete.
    has_text : bool
        Whether the answer holds anything that can be seen.
    refusal : str
        What the model says in place of an answer, where the protocol has a field for it.
    as_it_is : bool
        Whether a reply that was filtered or holds nothing counts as one: it was paid for.

    Returns
    -------
    str
        `CUT` for a truncated answer, `FILTERED` for one that was filtered or refused, else the
        reason as it came.

    Raises
    ------
    EndpointError
        If the reply broke off, or ended for a reason that is not known here; unless
        ``as_it_is``, also if it was filtered or refused, or holds nothing.

    Examples
    --------
    >>> finish_reason("MAX_TOKENS", has_text=True), finish_reason("STOP", has_text=True)
    ('length', 'STOP')
    """
    end, refusal = end_of(reason), refusal.strip()
    if as_it_is and (end is End.FILTERED or refusal):
        return FILTERED
    if end is End.FILTERED:
        raise EndpointError(FailureClass.CONTENT_FILTER, f"the answer was filtered ({reason})")
    if refusal:
        raise EndpointError(FailureClass.CONTENT_FILTER, f"the model refused: {refusal}")
    if end is End.BROKEN:
        detail = f"the answer broke off (finish reason {reason!r})"
        raise EndpointError(FailureClass.OVERLOADED, detail)
    if end is End.UNKNOWN:
        raise EndpointError(FailureClass.MALFORMED, f"unknown finish reason {reason!r}")
    if not (has_text or as_it_is):
        detail = f"no visible text (finish reason {reason or 'none'})"
        raise EndpointError(FailureClass.EMPTY, detail)
    return CUT if end is End.TRUNCATED else reason


@contextmanager
def _paid(counted: Finished) -> Iterator[None]:
    """Add to an error what the endpoint counted of the reply that it is about."""
    try:
        yield
    except EndpointError as error:
        error.counted = counted
        raise


def _check_error(event: Mapping[str, Any]) -> None:
    """Raise the error that an event or a reply carries in place of an answer, or beside one.

    Raises
    ------
    EndpointError
        If it has an error object, or neither choices nor a usage but the fields of an error.
    """
    if event.get("error") or event.get("object") == "error":
        raise from_error(event, status=IN_A_REPLY)
    if isinstance(base := event.get("base_resp"), Mapping) and base.get("status_code"):
        raise from_error({"base_resp": base}, status=IN_A_REPLY)
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, Mapping) and first.get("error"):
        raise from_error({"error": first["error"]}, status=IN_A_REPLY)
    code, status = event.get("code"), event.get("status")
    if status in ("failed", "incomplete") or (isinstance(code, int) and code >= 400):
        raise from_error(event, status=IN_A_REPLY)
    inside, feedback = event.get("response"), event.get("promptFeedback")
    if isinstance(inside, Mapping) and inside.get("status") in ("failed", "incomplete"):
        raise from_error(inside, status=IN_A_REPLY)
    if isinstance(feedback, Mapping) and feedback.get("blockReason"):
        detail = f"the prompt was filtered ({feedback['blockReason']})"
        raise EndpointError(FailureClass.CONTENT_FILTER, detail)
    if choices or event.get("usage"):
        return
    names = {name.lower() for name in event}
    is_error = names & ERROR_FIELDS or event.get("type") == "error"
    if is_error or any(name.endswith("exception") for name in names):
        raise from_error(event, status=IN_A_REPLY)


# Chats

Json = Mapping[str, Any]
_DECODE = json.JSONDecoder().decode
T = TypeVar("T")

MOST_COUNT = 2**31 - 1
"""Largest count that every database has a column for; no answer has as many tokens."""

REASONING = ("reasoning_content", "reasoning", "reasoning_details", "refusal")
LABEL_CHARACTERS = 200
"""Of an id or a finish reason: the longest of any provider has a quarter of that."""


def request_body(
    model: Model, messages: Sequence[Message], options: Json, refused: Collection[str] = ()
) -> dict[str, Any]:
    """Body of a request: the model's decoding as it stands, then ``options``; None is not sent.

    Parameters
    ----------
    refused : collection of str
        Parameters that its endpoint is known to refuse; those that the roster omits are omitted,
        too.
    """
    system = [Message("system", model.system_prompt)] if model.system_prompt else []
    turns = [{"role": m.role, "content": _content(m)} for m in [*system, *messages]]
    body = {**model.decoding, "model": model.model, "messages": turns, **options}
    sent = {name: value for name, value in body.items() if value is not None}
    return without(sent, {*model.without, *refused})


def _content(message: Message) -> object:
    """Give the text, or parts of it and of its images."""
    if not message.images:
        return message.content
    parts = [{"type": "image_url", "image_url": {"url": image}} for image in message.images]
    return [{"type": "text", "text": message.content}, *parts]


class _Pieces:
    """Cleans a text that comes in pieces, and joins the surrogate pairs that are cut in two."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        r"""Give what a piece adds to the text; the first half of a pair waits for the second.

        Examples
        --------
        >>> pieces = _Pieces()
        >>> pieces.add("So \ud83d"), pieces.add("\ude00!")
        ('So ', '\U0001f600!')
        """
        if not piece:
            return ""
        text = self._half + piece
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = text[: len(text) - len(self._half)]
        return _paired(text) if UNSTORABLE.search(text) else text

    def end(self) -> str:
        """Give what is left at the end: U+FFFD for a half whose other half never came."""
        return storable(self._half)


def _paired(text: str) -> str:
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return storable(joined)


class StreamedReply:
    """Reads a streamed answer, event by event.

    Parameters
    ----------
    most_reasoning : int
        Characters of reasoning that are read.
    holds : bool
        See `judge.replies.Splitter`.

    Attributes
    ----------
    has_begun : bool
        Whether anything of the answer or its reasoning has come.
    retracted : bool
        Whether the reply closed reasoning that it had not opened.
    closed_nothing : bool
        Whether it is an answer that was not cut, without a mark that closes reasoning.
    """

    def __init__(self, most_reasoning: int, *, holds: bool = False) -> None:
        self.has_begun = self.retracted = self.closed_nothing = False
        self._splitter = Splitter(holds=holds)
        self._most_reasoning = most_reasoning
        self._reasoning_chars = 0
        self._text, self._reasoning = _Pieces(), _Pieces()
        self._body_id = ""
        self._finish_reason = ""
        self._usage: Json = {}
        self._was_counted = False
        self._refusal = ""
        self._has_text = False
        self._done = False

    def read(self, data: str) -> list[TextDelta | ReasoningDelta]:
        """Read what one event adds to the answer: nothing for a role, a usage or an end.

        Raises
        ------
        EndpointError
            If the event is no JSON object of the format, or carries an error; or if there is
            more reasoning than is read.
        """
        if data == DONE:
            self._done = True
            return []
        event = _decoded(data)
        self._body_id = self._body_id or _id(event)
        choice = _first(event, "choices")
        if usage := _usage(event):
            self._usage, self._was_counted = usage, not choice
        delta = _object(choice, "delta")
        _check_error({**delta, "choices": [None]})
        if not any(delta.get(name) for name in ("content", *REASONING)):
            message = {} if self.has_begun else _object(choice, "message")
            text = choice.get("text")
            delta = {**delta, **message, **({"content": text} if isinstance(text, str) else {})}
        parts, reason = _parts_of(delta), _finish_reason(choice)
        goes_on = bool(parts.text or parts.reasoning) and not reason
        self._was_counted = self._was_counted and not goes_on
        if self._finish_reason == "" or end_of(self._finish_reason) in (End.WHOLE, End.CALLS):
            self._finish_reason = reason or ("" if goes_on else self._finish_reason)
        return self._read(parts)

    def _read(self, parts: "_Parts") -> list[TextDelta | ReasoningDelta]:
        self._refusal = (self._refusal + parts.refusal)[:LABEL_CHARACTERS]
        reasoning, text = self._reasoning.add(parts.reasoning), self._text.add(parts.text)
        self.has_begun = self.has_begun or bool(reasoning or text)
        return self._pieces([(Part.THOUGHT, reasoning), *self._splitter.add(text)])

    def _pieces(self, parts: Iterable[tuple[Part, str]]) -> list[TextDelta | ReasoningDelta]:
        pieces: list[TextDelta | ReasoningDelta] = []
        for part, text in parts:
            if part is Part.RETRACTED:
                pieces.append(ReasoningDelta("", retracts=True))
                self.retracted, self._has_text = True, False
            elif not text:
                continue
            elif part is Part.ANSWER:
                pieces.append(TextDelta(text))
                self._has_text = self._has_text or VISIBLE.search(text) is not None
            else:
                pieces.append(ReasoningDelta(text))
                self._reasoning_chars += len(text)
        if self._reasoning_chars > self._most_reasoning:
            raise over(f"reasoning of more than {self._most_reasoning:,} characters")
        return pieces

    def end(self, request_id: str = "") -> list[Chunk]:
        """Give what is left of the answer and its end, once the response has ended.

        Parameters
        ----------
        request_id : str
            As the response's header gave it; the ``id`` in the body comes first.

        Raises
        ------
        EndpointError
            If the response broke off, was filtered, or holds no visible text.
        """
        if not (self._finish_reason or self._done or self._was_counted):
            raise EndpointError(FailureClass.DROPPED, "the stream ended before the answer did")
        parts = [(Part.THOUGHT, self._reasoning.end()), *self._splitter.add(self._text.end())]
        is_cut = end_of(self._finish_reason) is End.TRUNCATED
        rest = self._pieces([*parts, *self._splitter.end(is_cut=is_cut)])
        reason = finish_reason(self._finish_reason, has_text=self._has_text, refusal=self._refusal)
        self.closed_nothing = not (is_cut or self._splitter.has_closed)
        return [*rest, _finished(reason, self._usage, self._body_id or label(request_id))]


def read_completion(body: str, request_id: str = "", *, as_it_is: bool = False) -> Completion:
    """Read a whole answer, its log-probabilities with it.

    Parameters
    ----------
    as_it_is : bool
        Whether an answer that was filtered or is blank counts as one: it was paid for. The
        finish reason of one that was filtered is then `judge.case.FILTERED`.

    Raises
    ------
    EndpointError
        If it is no JSON object of the format, carries an error, or broke off; unless
        ``as_it_is``, also if it was filtered, or holds neither visible text nor
        log-probabilities.
    """
    reply = _object_in(body)
    end = _finished("", _usage(reply), _id(reply) or label(request_id))
    with _paid(end):
        _check_error(reply)
        choice = _first(reply, "choices")
        if not choice:
            raise EndpointError(FailureClass.MALFORMED, "the reply holds no choices")
        parts, logprobs = _parts_of(_object(choice, "message")), _logprobs(choice)
        reason = _finish_reason(choice)
        whole = storable(parts.text)
        text, thoughts = split(whole, is_cut=end_of(reason) is End.TRUNCATED)
        thoughts = thoughts if text else whole  # a lone mark tells that the model thinks
        reason = finish_reason(
            reason,
            has_text=bool(VISIBLE.search(text) or logprobs),
            refusal=parts.refusal,
            as_it_is=as_it_is,
        )
    model, fingerprint = (_name(reply.get(key)) for key in ("model", "system_fingerprint"))
    return Completion(
        text,
        replace(end, finish_reason=reason),
        storable(parts.reasoning) + thoughts,
        logprobs,
        model=model,
        fingerprint=fingerprint,
    )


def _finish_reason(choice: Json) -> str:
    """Give a finish reason; of two, as OpenRouter sends them, the one that tells of a bad end."""
    native = _name(choice.get("native_finish_reason"))
    is_bad = end_of(native) in (End.TRUNCATED, End.FILTERED, End.BROKEN)
    return native if is_bad else label(_text(choice, "finish_reason"))


def _name(value: object) -> str:
    """Give a name that an endpoint may exclude; nothing that is no text fails an answer."""
    return label(value) if isinstance(value, str) else ""


def _id(reply: Json) -> str:
    """Give the id of a reply, a number with some servers."""
    value = reply.get("id")
    return str(value) if _count(value) is not None else _name(value)


def _decoded(data: str) -> Json:
    """JSON object in ``data``; an error object in it is raised as what it tells.

    The detail quotes ``data`` whole: cut before the key is taken out, it could show half.
    """
    value = _object_in(data)
    _check_error(value)
    return value


def _object_in(data: str) -> Json:
    try:
        value = _DECODE(data)
    except ValueError:
        raise EndpointError(FailureClass.MALFORMED, f"not JSON: {data}") from None
    if not isinstance(value, dict):  # no Mapping: to ask for that takes as long as all else here
        raise EndpointError(FailureClass.MALFORMED, f"not a JSON object: {data}")
    return value


def _count(value: object) -> int | None:
    """Give a count as it was sent; None for what cannot be one.

    Examples
    --------
    >>> [_count(value) for value in (7, -7, True, 2**31, "7", None)]
    [7, None, None, None, None, None]
    """
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MOST_COUNT else None


def label(text: str, most: int = LABEL_CHARACTERS) -> str:
    r"""Give a text as one line of at most ``most`` characters, without control characters.

    Examples
    --------
    >>> label("stop\n\x1b[31m", 6)
    'stop \ufffd'
    """
    line = " ".join(text[:most].split())
    return "".join(c if c.isprintable() else "\ufffd" for c in line)


def _finished(reason: str, usage: Json, request_id: str) -> Finished:
    thinking, tokens_out = _tokens_out(usage)
    return Finished(
        finish_reason=reason,
        tokens_in=_count(usage.get("prompt_tokens")),
        tokens_out=tokens_out,
        request_id=request_id,
        tokens_thinking=thinking,
    )


def _tokens_out(usage: Json) -> tuple[int | None, int | None]:
    """Give the tokens of thoughts, and all that came out, these among them.

    Some providers leave them out of ``completion_tokens``: the total tells, or a sum too small.
    """
    details = usage.get("completion_tokens_details")
    thinking = _count(details.get("reasoning_tokens")) if isinstance(details, dict) else None
    tokens_out = _count(usage.get("completion_tokens"))
    if thinking is None or tokens_out is None:
        return thinking, tokens_out
    total, tokens_in = _count(usage.get("total_tokens")), _count(usage.get("prompt_tokens"))
    rest = 0 if total is None or tokens_in is None else total - tokens_in
    apart = 0 < rest >= tokens_out + thinking
    return thinking, tokens_out + thinking if apart or thinking > tokens_out else tokens_out


def _logprobs(choice: Json) -> tuple[TokenLogprob, ...] | None:
    tokens = _object(choice, "logprobs").get("content")
    if not isinstance(tokens, list):
        return None
    try:
        return tuple(_token(token) for token in tokens)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        raise EndpointError(FailureClass.MALFORMED, "unreadable log-probabilities") from None


def _token(token: Json) -> TokenLogprob:
    top = {t["token"]: float(t["logprob"]) for t in token.get("top_logprobs") or ()}
    return TokenLogprob(token["token"], float(token["logprob"]), top)


class _Parts(NamedTuple):
    """What a message, or a piece of one, holds: the answer, thoughts before it, or a refusal."""

    text: str
    reasoning: str
    refusal: str


def _parts_of(message: Json) -> _Parts:
    """Read a message: its content is a text or, with some providers, a list of parts.

    Reasoning has several names; some servers send it under two at once.
    """
    content = message.get("content")
    parts = [*map(_part, content)] if isinstance(content, list) else []
    text = _joined(parts, "text") if isinstance(content, list) else _text(message, "content")
    if _is_google_thought(message):
        text, parts = "", [{"type": "thinking", "thinking": text}]
    thoughts = _text(message, "reasoning_content") or _thoughts(message.get("reasoning"))
    details = message.get("reasoning_details")
    thoughts = thoughts or (_thoughts(details) if isinstance(details, list) else "")
    refusal = message.get("refusal")
    refused = refusal if isinstance(refusal, str) else ""
    return _Parts(text, thoughts + _joined(parts, "thinking"), refused + _joined(parts, "refusal"))


def _part(part: object) -> Json:
    """Give a part of a content with the type that it has under its other names."""
    if not isinstance(part, dict):
        return {"type": "text", "text": part if isinstance(part, str) else ""}
    if part.get("thought") is True or part.get("type") in ("reasoning", "thinking"):
        return {"type": "thinking", "thinking": part.get("thinking") or part.get("text")}
    if part.get("type", "output_text") == "output_text":
        return part | {"type": "text"}
    return part


def _is_google_thought(message: Json) -> bool:
    extra = message.get("extra_content")
    google = extra.get("google") if isinstance(extra, dict) else None
    return isinstance(google, dict) and google.get("thought") is True


def _joined(parts: Sequence[Json], kind: str) -> str:
    return "".join(_thoughts(part.get(kind)) for part in parts if part.get("type") == kind)


def _thoughts(value: object) -> str:
    """Give the text of a part: itself, in an object, or in a list of these."""
    if isinstance(value, list):
        return "".join(map(_thoughts, value))
    if isinstance(value, dict):
        return _thoughts(value.get("text") or value.get("value"))
    return value if isinstance(value, str) else ""


def _usage(reply: Json) -> Json:
    """Give what was counted; some servers send an empty list or text where nothing was."""
    usage = reply.get("usage")
    return usage if isinstance(usage, dict) else {}


def _text(fields: Json, key: str) -> str:
    return _typed(fields, key, str, "")


def _object(fields: Json, key: str) -> Json:
    return _typed(fields, key, dict, {})


def _first(fields: Json, key: str) -> Json:
    """First object of a list; empty when the list is, or begins with another alternative."""
    values = [_object({key: value}, key) for value in _typed(fields, key, list, [])]
    return next((one for one in values if one.get("index") in (0, "0", None)), {})


def _typed(fields: Json, key: str, kind: type[T], absent: T) -> T:
    value = fields.get(key)
    if value is None:
        return absent
    if not isinstance(value, kind):
        actual = type(value).__name__
        raise EndpointError(
            FailureClass.MALFORMED, f"{key} should be {kind.__name__}, not {actual}"
        )
    return value


# Log-probabilities and embeddings


def likelihood_body(model: Model, text: str) -> dict[str, Any]:
    """Body of a request for the log-probabilities of a text: the model is to echo it.

    One token is written after it, as not every server allows for none.
    """
    asked = {"prompt": text, "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
    return {**asked, "model": model.model}


def read_log_likelihood(body: str, text: str) -> float:
    """Add up the log-probabilities of the tokens of a text that was echoed, but the first.

    Raises
    ------
    EndpointError
        If it is no JSON object of the format, carries an error, or has no finite log-probability
        for each token from the second on.
    """
    logprobs = _object(_first(_decoded(body), "choices"), "logprobs")
    values, starts = logprobs.get("token_logprobs"), logprobs.get("text_offset")
    if not isinstance(values, list) or not isinstance(starts, list) or len(values) < 3:
        detail = "no log-probabilities of the prompt: the endpoint does not echo it"
        raise EndpointError(FailureClass.MALFORMED, detail)
    rows = zip(values, starts, strict=False)
    inside = [value for value, start in rows if isinstance(start, int) and start < len(text)][1:]
    if not inside or not all(isinstance(v, int | float) and math.isfinite(v) for v in inside):
        raise EndpointError(FailureClass.MALFORMED, "unreadable log-probabilities of the prompt")
    return math.fsum(inside)


Vector = tuple[float, ...]


def embedding_body(
    model: Model, texts: Sequence[str], refused: Collection[str] = ()
) -> dict[str, Any]:
    """Body of a request: the model's own options, such as ``dimensions``, and the texts.

    ``refused`` is as in `request_body`.
    """
    body = {**model.decoding, "model": model.model, "input": [*texts]}
    return without(body, {*model.without, *refused})


def read_embeddings(body: str, n: int) -> tuple[Vector, ...]:
    """Read n vectors, by the index that each carries.

    Raises
    ------
    EndpointError
        If it is no JSON object of the format, carries an error, or holds not exactly one vector
        of finite numbers for each text.
    """
    data = _decoded(body).get("data")
    rows = data if isinstance(data, list) else []
    by_index = {str(row.get("index")): _vector(row) for row in rows if isinstance(row, dict)}
    vectors = [by_index.get(str(i)) for i in range(n)]
    if len(rows) != n or None in vectors:
        detail = f"{n} texts, and not one vector of numbers for each: {body}"
        raise EndpointError(FailureClass.MALFORMED, detail)
    return tuple(vector for vector in vectors if vector is not None)


def _vector(row: dict[str, Any]) -> Vector | None:
    values = row.get("embedding")
    if not isinstance(values, list) or not values:
        return None
    try:
        numbers = tuple(float(v) for v in values if isinstance(v, int | float))
    except OverflowError:  # of an integer of hundreds of digits
        return None
    whole = len(numbers) == len(values) and all(map(math.isfinite, numbers))
    return numbers if whole else None


# Batches

Format = Literal["openai", "anthropic"]

OPENAI_PATH = "/v1/chat/completions"
MOST_TOKENS = 4096
"""Of a reply, where nothing says otherwise: Anthropic wants a number."""


class Limits(NamedTuple):
    """The most that a file of requests may hold, as its maker says."""

    requests: int
    bytes: int


LIMITS: Mapping[Format, Limits] = {
    "openai": Limits(50_000, 200_000_000),
    "anthropic": Limits(100_000, 256_000_000),
}


def format_of(model: Model) -> Format:
    """Name the format of a model's batches: as its entry says, else by its address."""
    anthropic = re.match(r"https://api\.anthropic\.com(?![\w.-])", model.endpoint, re.IGNORECASE)
    return model.judging.batch or ("anthropic" if anthropic else "openai")


def request_of(
    model: Model,
    custom_id: str,
    messages: Sequence[Message],
    decoding: Mapping[str, object],
    refused: Collection[str] = (),
) -> str:
    """Give one request as JSON in the model's format.

    Parameters
    ----------
    decoding : mapping
        As `arena.endpoints.client.Endpoints.complete` takes it, in OpenAI's names.
    refused : collection of str
        Parameters that its endpoint is known to refuse.
    """
    body = request_body(model, messages, decoding, refused)
    if format_of(model) == "openai":
        line = {"custom_id": custom_id, "method": "POST", "url": OPENAI_PATH, "body": body}
    else:
        line = {"custom_id": custom_id, "params": _params(body, model.judging.thinking_tokens)}
    return json.dumps(line)


def _params(body: dict[str, Any], thinking_tokens: int | None) -> dict[str, Any]:
    """Give the parameters of Anthropic's messages for a request in OpenAI's."""
    most = [body.pop(name, None) for name in ("max_completion_tokens", "max_tokens")]
    for name in ("response_format", "reasoning_effort"):
        body.pop(name, None)
    turns = body.pop("messages")
    system = "\n\n".join(turn["content"] for turn in turns if turn["role"] == "system")
    params = {
        **body,
        "max_tokens": next((number for number in most if number is not None), MOST_TOKENS),
        "messages": [
            {**turn, "content": _batches_content(turn["content"])}
            for turn in turns
            if turn["role"] != "system"
        ],
    }
    if system:
        params["system"] = system
    if thinking_tokens:
        params.pop("temperature", None)  # no other than its own is taken with thoughts
        params["thinking"] = {"type": "enabled", "budget_tokens": thinking_tokens}
    return params


def _batches_content(content: Any) -> Any:
    """Give a text as it stands, and images as Anthropic takes them."""
    return content if isinstance(content, str) else [_batches_part(part) for part in content]


def _batches_part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return part
    head, _, data = part["image_url"]["url"].partition(";base64,")
    kind = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    return {"type": "image", "source": kind if data else {"type": "url", "url": head}}


class Line(NamedTuple):
    """A line of what came back.

    Attributes
    ----------
    custom_id : str
        Of the request.
    reached : bool
        Whether it says that the model answered; `answer_of` tells whether that can be read.
    fields : mapping
        The line.
    """

    custom_id: str
    reached: bool
    fields: Json


def line_of(text: str) -> Line | None:
    """Read a line of results; None of a line of requests.

    Raises
    ------
    ValueError
        If it is neither.
    """
    fields = parsed(text, "It")
    if not isinstance(fields, dict) or not isinstance(fields.get("custom_id"), str):
        raise ValueError("no JSON object with a custom_id")
    if "body" in fields or "params" in fields:
        return None
    if isinstance(result := fields.get("result"), dict):
        return Line(fields["custom_id"], result.get("type") == "succeeded", fields)
    if not {"response", "error"} & fields.keys():
        raise ValueError("neither a response, nor an error, nor a result")
    response = fields.get("response")
    reached = isinstance(response, dict) and response.get("status_code") == 200
    return Line(fields["custom_id"], reached, fields)


def answer_of(line: Line) -> Completion:
    """Give the answer that a line holds, also one that was filtered: it was paid for.

    Raises
    ------
    EndpointError
        If it holds none: with what the line says of it.
    """
    if isinstance(result := line.fields.get("result"), dict):
        kind, message = result.get("type"), result.get("message")
        if kind == "errored":
            inside = result.get("error")
            inside = inside.get("error", inside) if isinstance(inside, dict) else inside
            blamed = isinstance(inside, dict) and inside.get("type") == "invalid_request_error"
            raise from_error({"error": inside}, status=400 if blamed else 500)
        if kind in ("expired", "canceled"):
            raise EndpointError(FailureClass.TIMEOUT, f"the request is {kind}")
        if kind != "succeeded" or not isinstance(message, dict):
            raise EndpointError(FailureClass.MALFORMED, f"a result of the type {kind!r}")
        return _completion(message)
    response, error = line.fields.get("response"), line.fields.get("error")
    if not isinstance(response, dict):
        raise _not_carried_out(error)
    status, body = response.get("status_code"), response.get("body")
    if status == 200:
        request_id = response.get("request_id")
        return read_completion(
            json.dumps(body), request_id if isinstance(request_id, str) else "", as_it_is=True
        )
    raise from_error(body or error or "", status=status if isinstance(status, int) else 500)


def _not_carried_out(error: object) -> EndpointError:
    fields = error if isinstance(error, dict) else {}
    code, message = str(fields.get("code") or ""), str(fields.get("message") or "")
    if code in ("batch_expired", "batch_cancelled"):
        return EndpointError(FailureClass.TIMEOUT, f"{code}: {message}")
    return from_error({"error": error or "neither a response nor an error"}, status=500)


def _completion(message: Json) -> Completion:
    content = message.get("content")
    if not isinstance(content, list):
        raise EndpointError(FailureClass.MALFORMED, "the message holds no list of content")
    blocks = [block for block in content if isinstance(block, dict)]
    usage = message.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    reason = label(str(message.get("stop_reason") or ""))
    text, thoughts = split(_batches_joined(blocks, "text"), is_cut=end_of(reason) is End.TRUNCATED)
    end = Finished(
        finish_reason="",
        tokens_in=_tokens_in(usage),
        tokens_out=_count(usage.get("output_tokens")),
        request_id=label(str(message.get("id") or "")),
    )
    with _paid(end):
        reason = finish_reason(reason, has_text=bool(text.strip()), as_it_is=True)
    return Completion(
        text,
        replace(end, finish_reason=reason),
        _batches_joined(blocks, "thinking") + thoughts,
        model=label(str(message.get("model") or "")),
    )


def _batches_joined(blocks: Sequence[Json], kind: str) -> str:
    return storable("".join(str(b.get(kind) or "") for b in blocks if b.get("type") == kind))


def _tokens_in(usage: Json) -> int | None:
    """Count what went in, with what was written to a cache or read from one."""
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    whole = _count(usage.get("input_tokens"))
    return None if whole is None else whole + sum(_count(usage.get(n)) or 0 for n in cached)
