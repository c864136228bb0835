"""A vote, the answers that it is about, and the policies by which a board counts votes.

`end_of` alone classifies finish reasons of endpoints, so that the live path, the record and
exports agree on which answers are whole. Before the vote no reader may learn how an answer ended:
the mark of a cut could give a model away. A `Policy` states which votes count and never changes
the log.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Self

from judge.case import TokenLogprob
from rating.sentences import Sentence

# How an answer ended

CAMEL = re.compile("(?<=[a-z])(?=[A-Z])")

WHOLE = frozenset(
    {
        "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed",
        "finish", "done",
    }
)  # fmt: skip
"""Finish reasons of an answer that came to its end, in lower case.

OpenAI, vLLM, SGLang, llama.cpp, Ollama, Mistral and Gemini (``STOP``): ``stop``; Text Generation
Inference: ``eos_token``; Together: ``eos``; Anthropic and Bedrock: ``end_turn``,
``stop_sequence``; Cohere: ``COMPLETE``.
"""
MAX_CHARACTERS = "max_answer_chars"
"""The arena's own finish reason of an answer that it cut: see `arena.play.matchmaking`."""
TRUNCATED = frozenset(
    {
        "length", "max_tokens", "max_output_tokens", "model_length",
        "model_context_window_exceeded", MAX_CHARACTERS,
    }
)  # fmt: skip
"""Finish reasons of an answer that was cut at a limit of tokens or characters.

``model_length`` is Mistral's, ``model_context_window_exceeded`` Anthropic's.
"""
CALLS = frozenset({"tool_calls", "tool_call", "tool_use", "function_call"})
"""Finish reasons of a reply that calls tools: an answer if it also holds text."""
BLOCKED = (
    "content_filter", "contentfilter", "safety", "recitation", "prohibited_content",
    "blocklist", "spii", "sensitive", "refusal", "guardrail", "error_toxic", "blocked",
    "image_safety", "censored", "moderation",
)  # fmt: skip
"""Beginnings of finish reasons of a reply that was filtered; ``error_toxic`` is Cohere's."""
BROKEN = frozenset(
    {
        "error", "abort", "aborted", "cancelled", "canceled", "user_cancel", "timeout",
        "network_error", "insufficient_system_resource", "error_limit", "load", "unload",
        "malformed_model_output", "malformed_function_call", "malformed_tool_use",
        "pause_turn", "interrupt", "language", "other",
    }
)  # fmt: skip
"""Finish reasons of a reply that broke off; ``insufficient_system_resource`` is DeepSeek's."""


class End(StrEnum):
    """How an answer ended."""

    WHOLE = "whole"
    TRUNCATED = "truncated"
    CALLS = "calls"
    FILTERED = "filtered"
    BROKEN = "broken"
    UNKNOWN = "unknown"


ANSWERS = frozenset({End.WHOLE, End.TRUNCATED, End.CALLS})
"""Ends of an answer that is shown and voted on; a reply with another end is a failure."""


def end_of(reason: str | None) -> End:
    """Classify a finish reason, in whatever case and however its words are joined.

    Parameters
    ----------
    reason : str or None
        As the endpoint gave it; empty or None where it gave none although the reply is complete.

    Examples
    --------
    >>> [str(end_of(reason)) for reason in ("STOP", "MaxTokens", "content_filter: HATE", "bye")]
    ['whole', 'truncated', 'filtered', 'unknown']
    """
    word = re.sub("[-_ ]+", "_", CAMEL.sub("_", (reason or "").strip())).lower()
    if word.startswith(BLOCKED):
        return End.FILTERED
    if word in BROKEN:
        return End.BROKEN
    if word in TRUNCATED:
        return End.TRUNCATED
    if word in CALLS:
        return End.CALLS
    return End.WHOLE if not word or word in WHOLE else End.UNKNOWN


class Cut(StrEnum):
    """The limit at which an answer was cut."""

    TOKENS = "tokens"
    CHARACTERS = "characters"


CUTS = {
    Cut.TOKENS: Sentence("This answer was cut at its token limit."),
    Cut.CHARACTERS: Sentence("This answer was cut at this arena's character limit."),
}
"""What is said of such an answer after the vote. Before it the mark could give a model away."""


def cut_of(reason: str | None) -> Cut | None:
    """Return the limit at which an answer with this finish reason was cut; None if it was not.

    Examples
    --------
    >>> cut_of("length"), cut_of("stop")
    (<Cut.TOKENS: 'tokens'>, None)
    """
    if reason == MAX_CHARACTERS:
        return Cut.CHARACTERS
    return Cut.TOKENS if end_of(reason) is End.TRUNCATED else None


def is_on_broken_answer(
    answers: Iterable[tuple[int, str, int, str | None]], turn: int, attempts: dict[str, int]
) -> bool:
    """Return whether an answer that a voter was shown ended otherwise than an answer does.

    Parameters
    ----------
    answers : iterable of tuple
        Turn, side, attempt and finish reason of each answer of a battle, in order of attempts.
    turn : int
        The turn that was voted on.
    attempts : dict
        The attempt of each side that the vote is about. Of earlier turns the last ones were shown.
    """
    shown = {
        (of_turn, side): reason
        for of_turn, side, attempt, reason in answers
        if of_turn < turn or (of_turn == turn and attempt == attempts.get(side))
    }
    return any(end_of(reason) not in ANSWERS for reason in shown.values())


# Votes and voters


class Choice(StrEnum):
    """What a voter may say: the four outcomes of `rating.Outcome`, or that they will not."""

    A = "model_a"
    B = "model_b"
    TIE = "tie"
    BOTH_BAD = "both_bad"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class RevealedModel:
    """Who answered on one side, and what it took.

    Attributes
    ----------
    latency_s : float or None
        Seconds from the request to the model's first token.
    tokens : int or None
        Tokens of the answer as the endpoint counted them; None when it did not.
    cost : float or None
        US dollars at the logged price; None when price or tokens are unknown.
    cut : Cut or None
        The limit at which the answer was cut; None when it was not.
    """

    id: str
    name: str
    latency_s: float | None
    tokens: int | None
    cost: float | None
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class Reveal:
    """Both models of a battle, by side: only a committed vote reveals them."""

    a: RevealedModel
    b: RevealedModel


@dataclass(frozen=True, slots=True)
class Receipt:
    """A committed vote.

    Attributes
    ----------
    reveal : Reveal or None
        None for a skip, which reveals nothing, and while the names are withheld.
    gold : bool
        Whether it was on a gold battle; False where nothing is revealed.
    """

    choice: Choice
    reveal: Reveal | None
    gold: bool = False

    @classmethod
    def of(
        cls, choice: Choice, reveal: Reveal, *, gold: bool = False, withheld: bool = False
    ) -> Self:
        """Give the receipt of a choice on a battle of these models."""
        hidden = withheld or choice is Choice.SKIP
        return cls(choice, None) if hidden else cls(choice, reveal, gold)


class VoterKind(StrEnum):
    """How a voter came in; boards choose by it."""

    INVITED = "invited"
    LOGIN = "login"
    ANONYMOUS = "anonymous"
    SIMULATED = "simulated"
    APPLICATION = "application"


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter: ``id`` is a keyed hash, never a name or an address.

    Attributes
    ----------
    address : str or None
        Hash of today's network address, for limits only; None where it is not known.
    network : str or None
        Hash of the larger network around an address of IPv6, likewise; else None.
    """

    id: str
    kind: VoterKind = VoterKind.ANONYMOUS
    address: str | None = field(default=None, repr=False, compare=False)
    network: str | None = field(default=None, repr=False, compare=False)


# Which votes count

SKIPPED = Sentence("skipped")
GOLD_BATTLE = Sentence("gold battle")
BROKEN_ANSWER = Sentence("broken answer")
LEFT_OUT = {
    VoterKind.INVITED: Sentence("invited voter"),
    VoterKind.LOGIN: Sentence("login voter"),
    VoterKind.ANONYMOUS: Sentence("anonymous voter"),
    VoterKind.SIMULATED: Sentence("simulated voter"),
    VoterKind.APPLICATION: Sentence("voter of an application"),
}
"""Why a vote is excluded, as files have it, by the kind of its voter."""
KIND_RULES = {
    VoterKind.INVITED: Sentence("Votes of invited voters are excluded."),
    VoterKind.LOGIN: Sentence("Votes of signed-in voters are excluded."),
    VoterKind.ANONYMOUS: Sentence("Votes of anonymous voters are excluded."),
    VoterKind.SIMULATED: Sentence("Votes of simulated voters are excluded."),
    VoterKind.APPLICATION: Sentence("Votes that applications send are excluded."),
}

BROKEN_RULE = Sentence(
    "Votes on an answer that broke off, was filtered or ended for an unknown reason are excluded."
)
NAMING_RULE = Sentence(
    "Votes on an answer that names a model as its author, rightly or wrongly, count."
)


def ring_reason(direction: str, model: str) -> Sentence:
    """Explain the exclusion of a coordinated vote for a model, or against it."""
    if direction == "for":
        return Sentence("coordinated votes for %(model)s", model=model)
    return Sentence("coordinated votes against %(model)s", model=model)


def as_sentence(reason: str) -> str:
    """Make a `ring_reason` that was logged a sentence again; other reasons stay as they are.

    Examples
    --------
    >>> as_sentence("coordinated votes for quartz").values
    {'model': 'quartz'}
    """
    logged = re.fullmatch("(?:ring|coordinated votes) (for|against) (.+)", reason)  # 0.1: ring
    return ring_reason(*logged.groups()) if logged else reason


def attributes(value: object, *names: str) -> dict[str, Any]:
    """Give some attributes of a value by their names, where another value has them, too."""
    return {name: getattr(value, name) for name in names}


class Tagger(NamedTuple):
    """Whose labels of prompts are read; labels of two versions are never mixed."""

    name: str
    version: str


RULES = Tagger("rules", "1")
"""The tagger of this version: see `judge.labels.taggers`."""
NAMING = Tagger("self-naming", "1")
"""Labels turns by which of their answers name a model as their author."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Which votes of the log a board counts; the log itself never changes.

    Attributes
    ----------
    kinds : frozenset of VoterKind
        Voters whose votes count.
    tagger : Tagger
        Whose labels say of which category, language and so on a vote is.
    excludes_broken : bool
        Whether votes on an answer that broke off or was filtered are excluded: see
        `is_on_broken_answer`.
    """

    name: str
    kinds: frozenset[VoterKind]
    tagger: Tagger = RULES
    excludes_broken: bool = False

    @property
    def rules(self) -> tuple[str, ...]:
        """The policy in words, one sentence a rule."""
        others = sorted(set(VoterKind) - self.kinds)
        broken = (BROKEN_RULE, NAMING_RULE) if self.excludes_broken else ()
        return (
            Sentence("One vote per battle counts; a skip is not a vote."),
            Sentence("Gold battles, whose right answer is known beforehand, are excluded."),
            *(KIND_RULES[kind] for kind in others),
            *broken,
            Sentence(
                "Votes with an exclusion logged for %(policy)s are excluded, and listed by "
                "reason.",
                policy=self.name,
            ),
        )

    def why_not(
        self,
        choice: Choice,
        kind: VoterKind,
        exclusions: tuple[str, ...] = (),
        *,
        gold: bool = False,
        broken: bool = False,
    ) -> str | None:
        """Explain why a vote is excluded, or None when it counts.

        Parameters
        ----------
        exclusions : tuple of str
            Reasons logged under this policy's name.
        gold : bool
            Whether it is on a gold battle: see `arena.domain.model`.
        broken : bool
            Whether it is on an answer that did not end as answers do: see `is_on_broken_answer`.
        """
        if choice is Choice.SKIP:
            return str(SKIPPED)
        if gold:
            return str(GOLD_BATTLE)
        if kind not in self.kinds:
            return str(LEFT_OUT[kind])
        if broken and self.excludes_broken:
            return str(BROKEN_ANSWER)
        return exclusions[0] if exclusions else None


@dataclass(frozen=True, slots=True)
class Days:
    """The time range of an export; a battle without a vote has the time of its start.

    Attributes
    ----------
    since : datetime or None
        Only votes from this time on (UTC), such as 2026-11-01.
    until : datetime or None
        Only votes before this time, such as 2026-12-01 for all of November.
    """

    since: datetime | None = None
    until: datetime | None = None

    def cover(self, moment: datetime) -> bool:
        """Tell whether a moment, with its zone, is within them."""
        begun = self.since is None or moment >= self.since
        return begun and (self.until is None or moment < self.until)


EVER = Days()

PEOPLE = frozenset({VoterKind.INVITED, VoterKind.LOGIN, VoterKind.ANONYMOUS})

DEFAULT = Policy("default-v3", PEOPLE, excludes_broken=True)
"""Every vote of a person on two whole answers, once, unless an exclusion is logged for it."""

WITH_BROKEN = Policy("default-v2", PEOPLE)
"""The same with votes on broken answers: the default of versions that showed such answers."""

BEFORE_EXCLUSIONS = Policy("default-v1", PEOPLE)
"""Without what was excluded since `WITH_BROKEN` came: shown beside `DEFAULT` where it differs."""

INHERITS = dict.fromkeys(
    (DEFAULT.name, WITH_BROKEN.name), (BEFORE_EXCLUSIONS.name, WITH_BROKEN.name, DEFAULT.name)
)
"""Under whose names a policy reads exclusions, where not under its own alone.

The two differ by one rule; an exclusion is logged for the default, and excludes from both.
"""

READMITTED = "readmitted"
"""Rule of the counter row of an exclusion: of the rows on a vote the newest decides."""

SIMULATED = Policy("simulated-v1", frozenset({VoterKind.SIMULATED}))
"""Simulated votes with known ground truth: to try the arena, never to rank models by."""

APPLICATIONS = Policy("applications-v1", frozenset({VoterKind.APPLICATION}))
"""Votes that applications send: on their own versions, pairs and prompts."""

POLICIES = (DEFAULT, WITH_BROKEN, BEFORE_EXCLUSIONS, SIMULATED, APPLICATIONS)
"""All policies, the default one first."""


# What an endpoint sends


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
