"""Calls of a judge: endpoint parameters, stored-reply keys, and what a run still has to ask.

A `Question` is one sample of one case in one order; `call_of` makes the request and its key, by
which the `Journal` stores the reply. `due_calls` gives the calls that a run would make, `forecast`
their cost, `recalled` the readings that are stored. `Terms` holds what an endpoint accepts: as its
`Profile` in the roster says, and as its refusals teach.
"""

import hashlib
import hmac
import json
import math
from array import array
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from json.encoder import encode_basestring_ascii as _quoted
from types import MappingProxyType
from typing import ClassVar, Literal, NewType, Protocol, overload

import numpy as np

from judge.budget import Calibration, Estimate, Price, calibrate, estimate, request_tokens
from judge.case import CUT, Case, CaseId, FailureClass, Message, Order, Parameters, Reply, Request
from judge.grammar import Reading
from judge.protocol import Method, pair, reading_of
from judge.replies import split
from rating.errors import DataError

# Endpoints


TokenParameter = Literal["max_tokens", "max_completion_tokens"]

MAX_TOKENS: TokenParameter = "max_tokens"

THINKING_TOKENS = 8192
"""Room to think for a model that is known to think, where the roster says no number."""

THINKS = "thinking"
"""What is learnt of a model whose reply ended while it was still thinking."""

NO_LOGPROBS = (
    "The endpoint gives no log-probabilities, and the method reads nothing else. Take one that "
    "reads words, such as --method alpaca_eval_sampled, or --fallback sampled: another measure, "
    "under its own name."
)

LONGEST_S = 300.0
"""Wait for a reply before anything is known of the endpoint's pace."""

DAY_S = 86_400
MOST_TOKENS = 10_000_000
MOST_TEMPERATURE = 100
"""Bounds of what a roster may say of a judge: more is a mistake."""

LEAST_S = 20.0
"""No reply is given up sooner."""

TIMES_P99 = 4
FEWEST_SEEN = 10
"""Replies from which on the time-out follows the pace; before a hundred, p99 is the slowest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Settings of a model as a judge, from the roster.

    Attributes
    ----------
    token_parameter : {"max_tokens", "max_completion_tokens"}
        Name under which the most tokens of a reply are sent.
    reasoning_effort : str or None
        Sent as it stands.
    thinking_tokens : int or None
        Room to think, on top of the tokens that a method allows its reply. None: `THINKING_TOKENS`
        with a ``reasoning_effort``, or once the model is seen to think; else none.
    temperature : float or None
        The one that the endpoint takes, in place of a method's own.
    logprobs, response_format : bool or None
        Whether it gives log-probabilities, and takes a format of replies. None: as it turns out.
    images : bool
        Whether it takes images. Nothing with one is sent otherwise.
    timeout_s : float or None
        Wait for a reply. None follows the pace of the replies: see `Terms.seconds`.
    batch : {"openai", "anthropic"} or None
        Format of its files of batches. None: Anthropic's at ``api.anthropic.com``, else OpenAI's.
    batch_discount : float
        Share that a batch takes off the price, such as 0.5.
    revision : str
        Distinguishes models of one name and decoding, such as another quantisation.
    group : str
        Name by which ``--judge`` means all models of the group.
    """

    token_parameter: TokenParameter = MAX_TOKENS
    reasoning_effort: str | None = None
    thinking_tokens: int | None = None
    temperature: float | None = None
    logprobs: bool | None = None
    response_format: bool | None = None
    images: bool = False
    timeout_s: float | None = None
    batch: Literal["openai", "anthropic"] | None = None
    batch_discount: float = 0.0
    revision: str = ""
    group: str = ""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        if self.thinking_tokens is not None and self.thinking_tokens < 0:
            raise DataError(f"thinking_tokens is not negative, not {self.thinking_tokens}.")
        if self.thinking_tokens is not None and self.thinking_tokens > MOST_TOKENS:
            raise DataError(f"thinking_tokens is at most {MOST_TOKENS:,}.")
        if self.temperature is not None and not 0 <= self.temperature <= MOST_TEMPERATURE:
            raise DataError(
                f"temperature is a number from 0 to {MOST_TEMPERATURE}, not {self.temperature}."
            )
        if self.timeout_s is not None and not 0 < self.timeout_s < math.inf:
            raise DataError(f"timeout_s is a time above 0, not {self.timeout_s}.")
        if self.timeout_s is not None and self.timeout_s > DAY_S:
            raise DataError(f"timeout_s is at most a day, {DAY_S:,} seconds: {self.timeout_s}.")
        if not 0 <= self.batch_discount <= 1:
            raise DataError(f"batch_discount is a share from 0 to 1, not {self.batch_discount}.")

    @property
    def decoding(self) -> Mapping[str, object]:
        """What decides, beside the model's own decoding, how it answers: part of who it is."""
        chosen = {
            "reasoning_effort": self.reasoning_effort,
            "thinking_tokens": self.thinking_tokens,
            "temperature": self.temperature,
            "revision": self.revision or None,
        }
        return {name: value for name, value in chosen.items() if value is not None}


PLAIN = Profile()
"""Of a model of which the roster says nothing as a judge."""


class Lessons(dict[str, str]):
    """What an endpoint has taught: its own sentence by the parameter that it refused.

    The client omits these parameters; for judges, `THINKS` is one of them.

    Parameters
    ----------
    known : mapping
        What was learnt before.
    keep : callable
        Takes what is learnt now, as such a pair.
    """

    def __init__(
        self,
        known: Mapping[str, str] = MappingProxyType({}),
        keep: Callable[[str, str], None] = lambda name, sentence: None,
    ) -> None:
        super().__init__(known)
        self._keep = keep

    def learn(self, name: str, sentence: str) -> None:
        """Keep a lesson, once."""
        if name not in self:
            self[name] = sentence
            self._keep(name, sentence)


class Terms:
    """What is sent to an endpoint and how long it is waited for, learnt as a run goes.

    What was learnt is kept, so that no later run is refused for the same; what the roster states
    goes before it.

    Parameters
    ----------
    profile : Profile
        As the roster has it.
    lessons : mapping
        What earlier runs learnt: the endpoint's own sentence by the parameter that it refused, or
        by `THINKS`.
    keep : callable
        Takes what is learnt now, as such a pair.
    least_s : float
        Least time-out.

    Attributes
    ----------
    lessons : Lessons
        As they were, with what was learnt since.
    """

    def __init__(
        self,
        profile: Profile = PLAIN,
        lessons: Mapping[str, str] = MappingProxyType({}),
        keep: Callable[[str, str], None] = lambda name, sentence: None,
        *,
        least_s: float = LEAST_S,
    ) -> None:
        self.profile, self._least_s = profile, least_s
        valid = {name: text for name, text in lessons.items() if not self._stated(name)}
        self.lessons = Lessons(valid, keep)
        self._latencies: deque[float] = deque(maxlen=1000)

    def _stated(self, name: str) -> bool:
        """Whether the roster says otherwise than a lesson."""
        stated = {
            "logprobs": self.profile.logprobs,
            "response_format": self.profile.response_format,
            "temperature": self.profile.temperature is not None,
            THINKS: self.profile.thinking_tokens is not None,
        }
        return bool(stated.get(name))

    @property
    def thinking_tokens(self) -> int:
        """Room to think, on top of what a method allows its reply."""
        if self.profile.thinking_tokens is not None:
            return self.profile.thinking_tokens
        thinks = self.profile.reasoning_effort is not None or THINKS in self.lessons
        return THINKING_TOKENS if thinks else 0

    def most_tokens(self, asked: Parameters) -> int:
        """Return the most tokens that a reply may have, thinking included."""
        return asked.max_tokens + self.thinking_tokens

    def lacks(self, asked: Parameters) -> str | None:
        """Explain why the endpoint cannot be asked so; None if it can, as far as is known."""
        lacking = self.profile.logprobs is False or "logprobs" in self.lessons
        if asked.top_logprobs is None or not lacking:
            return None
        return NO_LOGPROBS + _profile_quoted(self.lessons.get("logprobs", ""))

    def decoding(self, asked: Parameters) -> dict[str, object]:
        """Return what is to be sent beside the messages, in place of the model's own decoding.

        None omits a value of that. The sender omits what `lessons` name.

        Examples
        --------
        >>> Terms().decoding(Parameters(max_tokens=5, temperature=0.0))
        {'max_tokens': 5, 'max_completion_tokens': None, 'temperature': 0.0}
        """
        profile = self.profile
        sent: dict[str, object] = {"max_tokens": None, "max_completion_tokens": None}
        sent[profile.token_parameter] = self.most_tokens(asked)
        temperature = asked.temperature if profile.temperature is None else profile.temperature
        if temperature is not None:
            sent["temperature"] = temperature
        if profile.reasoning_effort is not None:
            sent["reasoning_effort"] = profile.reasoning_effort
        if asked.json_object and profile.response_format is not False:
            sent["response_format"] = {"type": "json_object"}
        if asked.top_logprobs is not None:
            sent |= {"logprobs": True, "top_logprobs": asked.top_logprobs}
        return sent

    def saw(self, reply: Reply, asked: Parameters) -> None:
        """Take note of a reply: its pace, and whether it ended before its thoughts did."""
        if reply.latency_s is not None:
            self._latencies.append(reply.latency_s)
        if self.thinking_tokens or not _still_thought(reply):
            return
        self.lessons.learn(
            THINKS, f"{asked.max_tokens:,} tokens were used up while it was thinking"
        )

    def seconds(self) -> float:
        """Return how long to wait for a reply: four times the 99th percentile, 20 at the least."""
        if self.profile.timeout_s is not None:
            return self.profile.timeout_s
        if len(self._latencies) < FEWEST_SEEN:
            return LONGEST_S
        slowest = float(np.quantile(self._latencies, 0.99, method="higher"))
        return max(self._least_s, TIMES_P99 * slowest)

    def warnings(self, asked: Parameters) -> list[str]:
        """Describe what is asked otherwise than a method says, and the endpoint's own reason."""
        unasked = {
            "temperature": asked.temperature is None,
            "response_format": not asked.json_object,
            "logprobs": True,  # nothing is asked without them: see `lacks`
            "stream_options": True,  # of battles
        }
        return [self._warning(n, text) for n, text in self.lessons.items() if not unasked.get(n)]

    def _warning(self, name: str, sentence: str) -> str:
        if name == THINKS:
            return (
                f"The model thinks before it answers ({sentence}): {self.thinking_tokens:,} tokens"
                " are allowed on top of the method's own. thinking_tokens in the roster states how"
                " many."
            )
        return f"The endpoint refuses {name}{_profile_quoted(sentence)}: {self._instead(name)}."

    def _instead(self, name: str) -> str:
        names = ("max_tokens", "max_completion_tokens")
        if name in names:
            other = next((other for other in names if other not in self.lessons), None)
            return f"{other} is sent in its place" if other else "no limit of tokens is sent"
        return _INSTEAD.get(name, "it is omitted")


_INSTEAD = {
    "temperature": "replies are drawn at the temperature that it has of itself",
    "response_format": "JSON is asked for in words alone",
    "system": "the system's text goes before the first message of the user",
}


def _profile_quoted(sentence: str) -> str:
    return f" (it says: {sentence!r})" if sentence else ""


def _still_thought(reply: Reply) -> bool:
    if reply.finish_reason != CUT:
        return False
    is_thought = bool(reply.text.strip()) and not split(reply.text, is_cut=True)[0]
    return bool(reply.tokens_thinking) or is_thought


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What an endpoint allows; None is no limit."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def __post_init__(self) -> None:
        for limit in (self.requests_per_minute, self.tokens_per_minute):
            if limit is not None and not limit > 0:
                raise DataError(f"A rate limit is positive, not {limit}; leave it out for none.")


NO_LIMITS = RateLimits()


# Questions and calls


UNPARSED = frozenset({FailureClass.UNPARSED, FailureClass.TRUNCATED})
"""Replies without a verdict, though the judge did not refuse: the words were at fault."""

Again = Literal["refused", "unparsed"]
AGAIN: Mapping[Again, frozenset[FailureClass]] = {
    "refused": frozenset({FailureClass.REFUSAL}),
    "unparsed": UNPARSED,
}
"""Kept replies after which a run puts the question once more where it is told to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run.

    Attributes
    ----------
    judge : str
        What answers, down to its revision; part of every key.
    formerly : str or None
        What the same judge was called in keys before: its kept replies count.
    seed : str
        Secret of these runs: fences and orders are drawn from it. The same seed finds the same
        calls again, so keep it with the journal and show it to nobody.
    concurrency : int
        Most requests at a time.
    swap_share : float
        Share of the cases asked in both orders; the rest are asked in one.
    attempts : int
        Replies paid for, at most, until one can be read. Those of earlier runs count: to ask on
        after failures that the journal holds, allow for more.
    anew : frozenset of FailureClass
        Replies after which the question is put once more. Add a class here, and an attempt, when
        the endpoint has been mended: refusals and missing log-probabilities stand otherwise.
    again : frozenset of FailureClass
        Kept replies after which the question is put once more in this run, however often it was.
    price : Price or None
        None counts no money.
    limit_usd : float or None
        Most that this run may spend; replies of earlier runs are not counted.
    limits : RateLimits
        What the endpoint allows.
    terms : Terms or None
        Known properties of the endpoint, shared between its callers; None for none.
    """

    judge: str
    seed: str = field(repr=False)
    formerly: str | None = None
    concurrency: int = 16
    swap_share: float = 1.0
    attempts: int = 2
    anew: frozenset[FailureClass] = UNPARSED
    again: frozenset[FailureClass] = frozenset()
    price: Price | None = None
    limit_usd: float | None = None
    limits: RateLimits = NO_LIMITS
    terms: Terms | None = field(default=None, repr=False, compare=False)

    def lack(self, method: Method) -> str | None:
        """Describe what a method reads and the endpoint has not; None if it can be asked."""
        return None if self.terms is None else self.terms.lacks(method.description.parameters)

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.attempts < 1:
            raise DataError(
                "Concurrency and attempts are at least 1,"
                f" not {self.concurrency} and {self.attempts}."
            )


Key = NewType("Key", str)
"""SHA-256 of a call's content, in hexadecimal."""

SCHEMA = 1
"""Version of what a key is made of; another version never finds the keys of this one."""


def key_of(request: Request, judge: str, order: Order, draw: int = 0) -> Key:
    """Name a call by its content.

    SHA-256 of the canonical JSON (sorted keys, no spaces, ASCII) of the messages, the judge, the
    parameters, the order, the draw and the schema version; written out by hand, for whoever takes
    up a run makes the keys of all of it. The name of a method, a file or a run is no part of it:
    what is sent twice is paid once, and a changed prompt is another call.

    Parameters
    ----------
    judge : str
        What answers, down to its revision: another revision is another judge.
    order : Order
        Which response stands first.
    draw : int
        Counts repetitions of the same question: further samples, and further attempts after a
        reply without a verdict.
    """
    messages = ",".join([_turn(turn) for turn in request.messages])
    content = (
        f'{{"draw":{draw},"judge":{_quoted(judge)},"messages":[{messages}],"order":"{order}",'
        f'"parameters":{_decoding(request.parameters)},"schema":{SCHEMA}}}'
    )
    return Key(hashlib.sha256(content.encode()).hexdigest())


def _turn(turn: Message) -> str:
    """Write a message; one with images has their hashes, in place of megabytes."""
    images = f",{json.dumps(turn.image_hashes, separators=(',', ':'))}" if turn.images else ""
    return f"[{_quoted(turn.role)},{_quoted(turn.content)}{images}]"


@cache
def _decoding(parameters: Parameters) -> str:
    return json.dumps(parameters.to_dict(), sort_keys=True, separators=(",", ":"))


class Journal(Protocol):
    """Keep raw replies by key, what was read in them, and who is asking now.

    Replies are only ever added. A call that brought no reply leaves nothing behind, so a rerun
    asks again; a reply that could not be read is a reply, and a rerun reads it again for free.
    """

    def alive(self) -> AbstractAsyncContextManager[None]:
        """Hold for a run: take over what dead processes were asking, and show that we live."""
        ...

    async def recall(self, keys: Collection[Key]) -> Mapping[Key, Reply]:
        """Return the kept replies among these keys."""
        ...

    async def claim(self, keys: Collection[Key]) -> frozenset[Key]:
        """Take the keys that have no reply and no living holder; return those that are ours.

        One step for the database: two callers never get the same key. A claim ends with `keep`,
        with `release`, or with the death of its holder.
        """
        ...

    def lessons(self, endpoint: str) -> Mapping[str, str]:
        """Return what is known of an endpoint: see `Terms`."""
        ...

    def learn(self, endpoint: str, name: str, sentence: str) -> None:
        """Keep what an endpoint has taught, beside the replies and for all later runs."""
        ...

    def keep(self, key: Key, request: Request, reply: Reply) -> Awaitable[None]:
        """Store a reply, and end the claim on it; durable once it is awaited.

        The first reply to a key stays: keeping another one is no error and changes nothing.
        """
        ...

    async def release(self, keys: Collection[Key]) -> None:
        """Give up claims on keys that got no reply."""
        ...

    async def note(self, parser: str, readings: Mapping[Key, Reading | FailureClass]) -> None:
        """Store what this version of a parser read in replies, in place of what it read before."""
        ...


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
    draw: int
    request: Request
    key: Key


class Questions(Sequence[Question]):
    """What there is to ask, made when it is looked at: a million questions take 200 MB.

    A case that comes twice is asked about once. A sequence of cases stays where it is, and is
    looked at again for each question: of one on disk, nothing is held but 32 bytes a case.

    Attributes
    ----------
    samples : int
        How often the method puts each question.

    Raises
    ------
    DataError
        If the method compares two responses, and a case has one; or a case has an image, and the
        endpoint is not said to take any.
    """

    def __init__(self, cases: Iterable[Case], method: Method, options: Options) -> None:
        description = method.description
        both = description.pairwise
        self._cases = cases if isinstance(cases, Sequence) else [*cases]
        self._ids, self.samples = bytearray(), description.samples
        self._case, self._swapped = array("I"), bytearray()
        for case in self._cases:
            if description.pairwise:
                pair(case)
            if case.images:
                _require_images(case, options)
            self._ids += bytes.fromhex(case.id)
        _, first = np.unique(np.frombuffer(self._ids, f"S{_ID_BYTES}"), return_index=True)
        for number in np.sort(first).tolist():  # a case that comes again is excluded
            for order in _orders(self._id(number), options) if both else (Order.AB,):
                self._case.append(number)
                self._swapped.append(order is Order.BA)

    @property
    def n_rows(self) -> int:
        """How many cases there are, each in each order."""
        return len(self._case)

    def row(self, at: int) -> tuple[CaseId, Order]:
        """Return the case and the order of a row."""
        return self._id(self._case[at]), Order.BA if self._swapped[at] else Order.AB

    def _id(self, number: int) -> CaseId:
        return CaseId(self._ids[_ID_BYTES * number : _ID_BYTES * (number + 1)].hex())

    def __len__(self) -> int:
        """Count the questions: a case in each order, as often as the method samples."""
        return self.n_rows * self.samples

    @overload
    def __getitem__(self, at: int) -> Question: ...
    @overload
    def __getitem__(self, at: slice) -> list[Question]: ...
    def __getitem__(self, at: int | slice) -> Question | list[Question]:
        """Make the question at a place, or those of a slice."""
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        row, sample = divmod(at, self.samples)
        case_id, order = self.row(row)
        return Question(at, case_id, order, sample, self._cases[self._case[row]].shown(order))


_ID_BYTES = 32


def _require_images(case: Case, options: Options) -> None:
    if options.terms is None or not options.terms.profile.images:
        raise DataError(
            f"The prompt {case.prompt[-1].content[:60]!r} has an image, and nothing says that the "
            "judge takes any: say so in its entry of the roster, judging = { images = true }, or "
            "leave the column 'image' out."
        )


def call_of(question: Question, method: Method, options: Options, attempt: int = 0) -> Call:
    """Return the call for an attempt at a question: the same on every run with the same seed."""
    draw = question.sample
    if attempt:
        draw += method.description.samples * attempt
    fence = nonce(options.seed, question.case_id, question.order, str(draw))
    request = method.ask(question.shown, fence)
    key = key_of(request, options.judge, question.order, draw)
    return Call(question, attempt, draw, request, key)


async def recall(
    calls: Sequence[Call], journal: Journal, options: Options
) -> tuple[Sequence[Call], Mapping[Key, Reply]]:
    """Return calls and what the journal holds of them, under the judge's former name too.

    Returns
    -------
    calls : sequence of Call
        As they were; one whose reply is kept under the former name has the key of that.
    replies : mapping
        Those that are kept, by key.
    """
    replies = await journal.recall([call.key for call in calls])
    if options.formerly is None or len(replies) == len(calls):
        return calls, replies
    name = options.formerly
    before = {
        call.key: replace(call, key=key_of(call.request, name, call.question.order, call.draw))
        for call in calls
    }
    older = await journal.recall([before[key].key for key in before.keys() - replies.keys()])
    took = [before[call.key] if before[call.key].key in older else call for call in calls]
    return took, {**replies, **older}


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
    require_share(share)
    first = Order.AB if drawn(seed, "order", case_id) < 0.5 else Order.BA
    swap = drawn(seed, "swap", case_id) < share
    return (first, first.other) if swap else (first,)


def require_share(share: float) -> None:
    """Raise `DataError` unless a share of cases can be asked in both orders."""
    if not 0 <= share <= 1:
        raise DataError(f"The share of cases to swap lies between 0 and 1, not at {share}.")


def nonce(seed: str, *parts: str) -> str:
    """Return 16 hexadecimal digits that fence what a judge must not obey.

    HMAC-SHA-256 under the run's secret seed of the case's content, the order and the draw: every
    call has another one, and a rerun has the same, so that its journal key is the same.

    It is unpredictable to who wrote a response, twice over. The seed is drawn at random by
    the operator of the judge and shown to nobody; and the case's content includes the response
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


def able(method: Method, options: Options) -> Terms:
    """Return the terms of a run; raises `DataError` if the endpoint lacks what the method reads.

    Better before the first request than after it was paid for.
    """
    if lack := options.lack(method):
        raise DataError(lack)
    return options.terms or Terms()


# Calls that are due


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

    Calls that the journal holds are free, and calibrate the rest. Further attempts after replies
    that are still to come add to them. A model that thinks is taken to use half of its room.

    Parameters
    ----------
    calibration : Calibration or None
        From other replies of the same judge; None takes those of these cases, if there are any.

    Raises
    ------
    DataError
        If a case does not fit the method, or the endpoint is known to lack what it reads: better
        known now than in the middle of a run.
    """
    terms = able(method, options)
    known: list[tuple[float, Reply]] = []

    async def note(calls: Sequence[Call], replies: Mapping[Key, Reply]) -> Mapping[Key, Reply]:
        known.extend(
            (request_tokens(call.request), replies[call.key])
            for call in calls
            if call.key in replies
        )
        return {}

    calls = due_calls(cases, method, journal, options, note)
    return estimate(
        [request_tokens(call.request) async for call in calls],
        tokens_out=method.description.tokens_out + terms.thinking_tokens / 2,
        price=options.price,
        calibration=calibrate(known) if calibration is None else calibration,
    )


Take = Callable[[Sequence[Call], Mapping[Key, Reply]], Awaitable[Mapping[Key, Reply]]]
"""From calls, and the replies to them that the journal holds, to replies from elsewhere."""


async def no_replies(calls: Sequence[Call], known: Mapping[Key, Reply]) -> Mapping[Key, Reply]:
    """Know of no reply from elsewhere."""
    return {}


async def due_calls(
    cases: Iterable[Case],
    method: Method,
    journal: Journal,
    options: Options,
    take: Take = no_replies,
) -> AsyncIterator[Call]:
    """Give the calls that `judge.runs.run` would make now, with the same arguments.

    Of a question whose reply says nothing and is put once more, the next attempt.

    Parameters
    ----------
    take : callable
        Shown all calls that have been made or are due, some hundred at a time.

    Raises
    ------
    DataError
        If a case does not fit the method, or the endpoint is known to lack what it reads.
    """
    able(method, options)
    questions = (
        question
        for question in Questions(cases, method, options)
        if method.settled(question.shown) is None
    )

    def asks_on(call: Call, reading: Reading | FailureClass) -> bool:
        more = call.attempt + 1 < options.attempts
        return (reading in options.anew and more) or reading in options.again

    async for call, reading in _read(questions, method, journal, options, take, asks_on):
        if reading is None:
            yield call


async def _read(
    questions: Iterable[Question],
    method: Method,
    journal: Journal,
    options: Options,
    take: Take,
    asks_on: Callable[[Call, Reading | FailureClass], bool],
) -> AsyncIterator[tuple[Call, Reading | FailureClass | None]]:
    """Give every call that has been made or is due, with what its reply says; None without one.

    Parameters
    ----------
    asks_on : callable
        Whether the next attempt is looked for after a call whose reply says this.
    """
    questions = iter(questions)
    while batch := [*islice(questions, _BATCH)]:
        calls: Sequence[Call] = [call_of(question, method, options) for question in batch]
        while calls:
            calls, replies = await recall(calls, journal, options)
            replies = {**replies, **await take(calls, replies)}
            due: list[Call] = []
            for call in calls:
                reading = None
                if call.key in replies:
                    reading = reading_of(method, call.question.shown, replies[call.key])
                yield call, reading
                if reading is not None and asks_on(call, reading):
                    due.append(call_of(call.question, method, options, call.attempt + 1))
            calls = due


async def recalled(
    cases: Iterable[Case], method: Method, journal: Journal, options: Options
) -> dict[CaseId, Reading]:
    """Read what the journal holds on cases, of methods that ask one question a case; ask nothing.

    Of several attempts, the first that can be read, as a run takes it.
    """
    every = Questions(cases, method, options)
    has_failed = lambda _, reading: isinstance(reading, FailureClass)  # noqa: E731
    return {
        call.question.case_id: reading
        async for call, reading in _read(every, method, journal, options, no_replies, has_failed)
        if reading is not None and not isinstance(reading, FailureClass)
    }
