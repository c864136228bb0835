"""A vote, who casts it, and the named rules by which a board counts it."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Self

from arena.domain.ending import Cut
from rating.sentences import Sentence


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
"""Why a vote is left out, as files have it, by the kind of its voter."""
KIND_RULES = {
    VoterKind.INVITED: Sentence("Votes of invited voters are left out."),
    VoterKind.LOGIN: Sentence("Votes of login voters are left out."),
    VoterKind.ANONYMOUS: Sentence("Votes of anonymous voters are left out."),
    VoterKind.SIMULATED: Sentence("Votes of simulated voters are left out."),
    VoterKind.APPLICATION: Sentence("Votes that applications send are left out."),
}

BROKEN_RULE = Sentence(
    "Votes on an answer that broke off, was filtered or ended for an unknown reason are excluded."
)
NAMING_RULE = Sentence(
    "Votes on an answer that names a model as its author, rightly or wrongly, count."
)


def ring_reason(direction: str, model: str) -> Sentence:
    """Say why a vote on a model is left out whose voter is in a ring for it, or against it."""
    if direction == "for":
        return Sentence("ring for %(model)s", model=model)
    return Sentence("ring against %(model)s", model=model)


def as_sentence(reason: str) -> str:
    """Make a `ring_reason` that was logged a sentence again; other reasons stay as they are.

    Examples
    --------
    >>> as_sentence("ring for quartz").values
    {'model': 'quartz'}
    """
    ring = re.fullmatch("ring (for|against) (.+)", reason)
    return ring_reason(*ring.groups()) if ring else reason


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
        `arena.domain.ending`.
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
            Sentence("One vote a battle counts; a skip is no vote."),
            Sentence("Gold battles, whose right answer is known beforehand, are left out."),
            *(KIND_RULES[kind] for kind in others),
            *broken,
            Sentence(
                "Votes with an exclusion logged for %(policy)s are left out, and counted by "
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
        """Say why a vote is left out, or None when it counts.

        Parameters
        ----------
        exclusions : tuple of str
            Reasons logged under this policy's name.
        gold : bool
            Whether it is on a gold battle: see `arena.domain.gold`.
        broken : bool
            Whether it is on an answer that did not end as answers do: see `arena.domain.ending`.
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
    """When what is exported was voted on; a battle without a vote goes by when it began.

    Attributes
    ----------
    since : datetime or None
        Only what was voted on from this moment on, in UTC, such as 2026-11-01.
    until : datetime or None
        Only what was voted on before this moment: 2026-12-01 for all of November.
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
