"""A battle as plain values: its states, what its reader may see, and what a voter adds to a vote.

`BattleState` and `current_state` define the life of a battle. `Snapshot` is all that its owner may
see: it names the models only once a committed vote has revealed them. `Notice` is all that logs
and figures may say of a battle.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from arena.domain.vote import Choice, FailureClass, Receipt, Reveal
from rating.sentences import Sentence

# Remarks beside a vote

LONGEST_COMMENT = 1000
"""Characters of a comment."""


class WhenAsked(StrEnum):
    """When the page asks for reasons: after the names are shown, before, or never."""

    AFTER = "after"
    BEFORE = "before"
    OFF = "off"


class Reason(StrEnum):
    """What speaks for an answer, or against it; the set of ComparIA."""

    USEFUL = "useful"
    COMPLETE = "complete"
    CREATIVE = "creative"
    CLEAR_FORMATTING = "clear_formatting"
    INCORRECT = "incorrect"
    SUPERFICIAL = "superficial"
    INSTRUCTIONS_NOT_FOLLOWED = "instructions_not_followed"


REASONS: Mapping[Reason, Sentence] = {
    Reason.USEFUL: Sentence("Useful"),
    Reason.COMPLETE: Sentence("Complete"),
    Reason.CREATIVE: Sentence("Creative"),
    Reason.CLEAR_FORMATTING: Sentence("Clear formatting"),
    Reason.INCORRECT: Sentence("Incorrect"),
    Reason.SUPERFICIAL: Sentence("Superficial"),
    Reason.INSTRUCTIONS_NOT_FOLLOWED: Sentence("Instructions not followed"),
}
CONFIDENCE: Mapping[int, Sentence] = {
    1: Sentence("a guess"),
    2: Sentence("fairly sure"),
    3: Sentence("sure"),
}


class Intent(StrEnum):
    """Whether the voter knew the answer, wanted to know it, or did neither."""

    QUIZZING = "quizzing"
    ASKING = "asking"
    PLAYING = "playing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarks:
    """What was remarked beside a vote; nothing of it changes the vote, or is in its chain.

    Attributes
    ----------
    reasons_a, reasons_b : tuple of Reason
        In the order of `Reason`, each once.
    confidence : int or None
        1 a guess, 2 fairly sure, 3 sure.
    before_reveal : bool
        Whether reasons, comment and confidence, as they stand, were given before the names.
    """

    reasons_a: tuple[Reason, ...] = ()
    reasons_b: tuple[Reason, ...] = ()
    comment: str = ""
    confidence: int | None = None
    intent: Intent | None = None
    before_reveal: bool = False


def in_order(reasons: Iterable[str]) -> tuple[Reason, ...]:
    """Give reasons in the order of `Reason`, each once; raises `ValueError` of any other.

    >>> [str(reason) for reason in in_order(["incorrect", "useful", "incorrect"])]
    ['useful', 'incorrect']
    """
    return tuple(sorted({Reason(reason) for reason in reasons}, key=[*Reason].index))


# Battles


class Side(StrEnum):
    """Where an answer stands on the page; all that anybody knows before the vote."""

    A = "a"
    B = "b"


class BattleState(StrEnum):
    """Where a battle stands.

    ``created -> streaming -> ready -> voted | skipped``; a battle leaves the first two for
    ``failed`` (a model did not answer), ``stopped`` (by its owner, before both sides
    showed text) or ``interrupted`` (the server went down). Only ``ready`` takes a vote.
    A battle without a vote is ``expired`` some time after its models were last asked: it takes
    no vote, turn or retry any more. That state follows from the time and is never stored.
    """

    CREATED = "created"
    STREAMING = "streaming"
    READY = "ready"
    VOTED = "voted"
    SKIPPED = "skipped"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    EXPIRED = "expired"

    @property
    def running(self) -> bool:
        """Whether answers are still being written."""
        return self in (BattleState.CREATED, BattleState.STREAMING)


VOTE_WITHIN = timedelta(hours=24)
"""A battle takes a vote for so long after its models were last asked, unless a setting differs."""


class AnswerStatus(StrEnum):
    """Where one answer stands; ``stopped`` answers hold what the reader saw."""

    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class Mode(StrEnum):
    """Whether a battle is blind and takes a vote, or goes on after one with known models."""

    ANONYMOUS = "anonymous"
    CONTINUED = "continued"


class Pacing(StrEnum):
    """How answers are released to the page: see `arena.play.pace`."""

    PACED = "paced"
    BOTH_DONE = "both-done"
    RAW = "raw"


class PacePool(StrEnum):
    """Whose earlier answers decide the pace of a battle: its own two models', or everybody's."""

    PAIR = "pair"
    ROSTER = "roster"


class Sampler(StrEnum):
    """How pairs are drawn.

    Every pair alike; by the product of the roster's weights; by what a vote tells of the pair's
    own share of wins (Chatbot Arena's rule); by what it tells of neighbours on the board; or of
    two models that race.
    """

    UNIFORM = "uniform"
    WEIGHTED = "weighted"
    ARENA = "arena"
    GAIN = "gain"
    RACE = "race"


def current_state(
    state: BattleState, mode: Mode, asked: datetime | None, asked_since: datetime
) -> BattleState:
    """Give the state of a battle, which may have expired since it was stored.

    Parameters
    ----------
    state : BattleState
        As it is stored.
    asked : datetime or None
        When one of its models was last asked; None of an imported vote without answers.
    asked_since : datetime
        A battle without a vote has expired unless a model was asked at this moment or later.

    Examples
    --------
    >>> ready, noon = (BattleState.READY, Mode.ANONYMOUS), datetime(2026, 11, 1, 12)
    >>> current_state(*ready, asked=noon, asked_since=noon)
    <BattleState.READY: 'ready'>
    >>> current_state(*ready, asked=noon, asked_since=noon + timedelta(minutes=1))
    <BattleState.EXPIRED: 'expired'>
    """
    decided = state in (BattleState.VOTED, BattleState.SKIPPED)
    if decided or state.running or mode is not Mode.ANONYMOUS or asked is None:
        return state
    return BattleState.EXPIRED if asked < asked_since else state


Wins = Mapping[tuple[str, str], float]
"""Score of the first model, by id, against the second, a tie half a win for each; both orders."""


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """The part of an answer that its reader may see."""

    text: str
    status: AnswerStatus


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One prompt and what the two sides have shown so far.

    Attributes
    ----------
    attempt : int
        Grows whenever an answer of the turn is asked for again.
    """

    turn: int
    prompt: str
    a: ShownAnswer
    b: ShownAnswer
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that the owner of a battle may see of it now.

    Attributes
    ----------
    message : str or None
        Fixed words on why the battle ended without a vote; None while it runs or if it
        ended well.
    receipt : Receipt or None
        The committed vote and what it revealed; None before the vote.
    models : Reveal or None
        Who answers, once a committed vote has revealed it: also where the two go on after it.
    remarks : Remarks or None
        What the voter remarked beside the vote; None if nothing.
    rest_offered : bool
        Whether the rest of both answers, which both are complete, may be shown at once.
    """

    battle_id: str
    state: BattleState
    created: datetime
    turns: tuple[ShownTurn, ...]
    message: str | None = None
    receipt: Receipt | None = None
    models: Reveal | None = None
    remarks: Remarks | None = None
    rest_offered: bool = False

    @property
    def turn(self) -> int:
        """Number of the latest turn, from 1."""
        return len(self.turns)


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened to a battle, for logs and figures.

    Attributes
    ----------
    event : str
        ``asked``: two models were asked, for a new battle, another turn or another attempt;
        ``replaced``: a model failed before its text was shown, and another took its side;
        ``ended``: both models answered to the end, or did not; ``voted``: a vote was committed.
    state : BattleState or None
        That follows from the end.
    failures : tuple of FailureClass
        Of the sides that failed.
    first_tokens_s : tuple of float
        Seconds to the first token, of the sides that had one.
    choice : Choice or None
        Of the vote.
    """

    event: Literal["asked", "replaced", "ended", "voted"]
    battle_id: str
    state: BattleState | None = None
    failures: tuple[FailureClass, ...] = ()
    first_tokens_s: tuple[float, ...] = ()
    choice: Choice | None = None


# Instructions that can be checked


@dataclass(frozen=True, slots=True)
class Followed:
    """Whether each side follows an instruction; None where that is not known."""

    id: str
    a: bool | None
    b: bool | None


KINDS: Mapping[str, Sentence] = {
    "keywords:existence": Sentence("words to use"),
    "keywords:frequency": Sentence("how often a word comes"),
    "keywords:forbidden_words": Sentence("words to avoid"),
    "keywords:letter_frequency": Sentence("how often a letter comes"),
    "language:response_language": Sentence("language of the answer"),
    "length_constraints:number_sentences": Sentence("number of sentences"),
    "length_constraints:number_paragraphs": Sentence("number of paragraphs"),
    "length_constraints:number_words": Sentence("number of words"),
    "length_constraints:nth_paragraph_first_word": Sentence("first word of a paragraph"),
    "detectable_content:number_placeholders": Sentence("placeholders in brackets"),
    "detectable_content:postscript": Sentence("a postscript"),
    "detectable_format:number_bullet_lists": Sentence("number of bullet points"),
    "detectable_format:constrained_response": Sentence("one of the answers allowed"),
    "detectable_format:number_highlighted_sections": Sentence("highlighted parts"),
    "detectable_format:multiple_sections": Sentence("number of sections"),
    "detectable_format:json_format": Sentence("JSON throughout"),
    "detectable_format:title": Sentence("a title in double angle brackets"),
    "combination:two_responses": Sentence("two different responses"),
    "combination:repeat_prompt": Sentence("the request repeated first"),
    "startend:end_checker": Sentence("the words at the end"),
    "startend:quotation": Sentence("quotation marks around it all"),
    "change_case:capital_word_frequency": Sentence("words in capital letters"),
    "change_case:english_capital": Sentence("English in capital letters"),
    "change_case:english_lowercase": Sentence("English in small letters"),
    "punctuation:no_comma": Sentence("no comma"),
}
"""What each of IFEval's instructions is about, by its id: the prompt says the rest."""
