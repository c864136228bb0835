"""What an endpoint takes: as its roster says, and as its refusals teach."""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np

from judge.completion import CUT, Parameters, Reply
from judge.thoughts import split
from rating.errors import DataError

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
    """What the roster says of a model as a judge.

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
        Share that a batch takes off the price, such as .5.
    revision : str
        Tells apart what goes by one name with the same decoding, such as another quantisation.
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

    Whoever asks the endpoint leaves these parameters out; of judges, `THINKS` is one, too.

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
        """Say why the endpoint cannot be asked so; None if it can, as far as is known."""
        lacking = self.profile.logprobs is False or "logprobs" in self.lessons
        if asked.top_logprobs is None or not lacking:
            return None
        return NO_LOGPROBS + _quoted(self.lessons.get("logprobs", ""))

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

    def lack_logprobs(self, sentence: str) -> None:
        """Learn that replies come without the log-probabilities that are asked for."""
        self.lessons.learn("logprobs", sentence)

    def seconds(self) -> float:
        """Return how long to wait for a reply: four times the 99th percentile, 20 at the least."""
        if self.profile.timeout_s is not None:
            return self.profile.timeout_s
        if len(self._latencies) < FEWEST_SEEN:
            return LONGEST_S
        slowest = float(np.quantile(self._latencies, 0.99, method="higher"))
        return max(self._least_s, TIMES_P99 * slowest)

    def warnings(self, asked: Parameters) -> list[str]:
        """Say what is asked otherwise than a method says, and why, in the endpoint's own words."""
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
                " are allowed on top of the method's own. thinking_tokens in the roster says how"
                " many."
            )
        return f"The endpoint refuses {name}{_quoted(sentence)}: {self._instead(name)}."

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


def _quoted(sentence: str) -> str:
    return f" (it says: {sentence!r})" if sentence else ""


def _still_thought(reply: Reply) -> bool:
    if reply.finish_reason != CUT:
        return False
    is_thought = bool(reply.text.strip()) and not split(reply.text, is_cut=True)[0]
    return bool(reply.tokens_thinking) or is_thought
