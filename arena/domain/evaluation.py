"""The card of an evaluation: what was asked, and how, what came out, and how it may be read."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from arena.domain.model import Kind
from rating.outcome import of_sides

TYPED = "typed"
"""Source of the prompts that voters wrote themselves; others are of a named set."""


class Purpose(StrEnum):
    """What an evaluation is for."""

    PURCHASE = "purchase"
    CAPABILITY = "capability"
    RISK = "risk"
    DEVELOPMENT = "development"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """What a person has to say of an evaluation, for no program can.

    Attributes
    ----------
    purpose : Purpose or None
        None where nobody has said it, as other statements are then empty.
    purpose_sentence : str
        Which decision the ratings are for.
    not_claimed : str
        What they do not show.
    who_voted : str
    weaknesses : str
    """

    purpose: Purpose | None = None
    purpose_sentence: str = ""
    not_claimed: str = ""
    who_voted: str = ""
    weaknesses: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of those that nobody has written."""
        return tuple(one.name for one in fields(self) if not getattr(self, one.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteFacts:
    """What the counted votes say of themselves, each mapping with the number of votes.

    Attributes
    ----------
    prompts : int
        Different first prompts.
    repeated : int
        Votes on one that another vote was on before.
    sources : mapping of str to int
        By the set that a prompt is of; those that voters wrote are `TYPED`.
    turns : mapping of str to int
        By the turn that was voted on.
    versions : mapping of str to int
        Different fingerprints of each model that answered, by its id.
    """

    votes: int
    prompts: int
    repeated: int
    first: datetime | None
    last: datetime | None
    sources: Mapping[str, int]
    categories: Mapping[str, int]
    languages: Mapping[str, int]
    samplers: Mapping[str, int]
    pacing: Mapping[str, int]
    turns: Mapping[str, int]
    choices: Mapping[str, int]
    voter_kinds: Mapping[str, int]
    versions: Mapping[str, int]

    @classmethod
    def of(cls, votes: Iterable[Mapping[str, Any]]) -> Self:
        """Count votes, each a row with the columns of an export.

        Examples
        --------
        >>> VoteFacts.of([]).votes
        0
        """
        tally = _Tally()
        for vote in votes:
            tally.take(vote)
        return cls(
            votes=tally.votes,
            prompts=len(tally.prompts),
            repeated=tally.prompts.total() - len(tally.prompts),
            first=tally.first,
            last=tally.last,
            **{name: in_order(tally.counts[name]) for name in COUNTED},
            versions={model: len(known) for model, known in sorted(tally.fingerprints.items())},
        )


COUNTED: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "sources": lambda vote: vote["prompt_set"] or TYPED,
    "categories": lambda vote: vote["category"],
    "languages": lambda vote: vote["language"],
    "samplers": lambda vote: f"{vote['sampler']} {vote['sampler_version']}",
    "pacing": lambda vote: vote["pacing"],
    "turns": lambda vote: str(vote["turn"]),
    "choices": lambda vote: vote["winner"],
    "voter_kinds": lambda vote: vote["voter_kind"],
}
"""By what votes are counted, each by one value of a row; those without a value are not."""


class _Tally:
    """Counts votes one by one."""

    def __init__(self) -> None:
        self.votes = 0
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.prompts: Counter[str] = Counter()
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
        self.fingerprints: dict[str, set[str]] = defaultdict(set)

    def take(self, vote: Mapping[str, Any]) -> None:
        self.votes += 1
        self.first = min(self.first or vote["ts"], vote["ts"])
        self.last = max(self.last or vote["ts"], vote["ts"])
        self.prompts.update(filter(None, [vote["prompt_id"]]))
        for model, fingerprint in zip(of_sides("model"), of_sides("fingerprint"), strict=True):
            self.fingerprints[vote[model]].add(vote[fingerprint])
        for name, value_of in COUNTED.items():
            if (value := value_of(vote)) is not None:
                self.counts[name][value] += 1


def in_order(counts: Mapping[str, int]) -> dict[str, int]:
    """Sort counts, the highest first, and equal ones by name."""
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """How a rated model is asked.

    Attributes
    ----------
    versions : int
        How many there were, by the fingerprints that votes bind: of all that makes it answer as
        it does, its address included, so that their hashes do not stand here.
    system_prompt : str or None
        First 16 characters of the SHA-256 of the system prompt when it was asked last; empty if
        there was none, None where the log does not say.
    decoding : mapping of str to str
        Parameters that were sent then, in JSON; of one that is not known to be harmless the name
        alone.
    tools : tuple of str
        Names of the tools that it may call.
    """

    id: str
    name: str
    kind: Kind
    versions: int
    system_prompt: str | None
    decoding: Mapping[str, str]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """The bounds within which models are asked, as the arena is set up."""

    max_prompt_chars: int
    max_answer_chars: int
    answer_timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What was asked; see `VoteFacts`.

    Attributes
    ----------
    tagger : str
        Whose labels categories and languages are.
    """

    sources: Mapping[str, int]
    prompts: int
    repeated: int
    categories: Mapping[str, int]
    languages: Mapping[str, int]
    tagger: str
    first_vote: datetime | None
    last_vote: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """How models were asked; see `VoteFacts`."""

    models: tuple[ModelCall, ...]
    samplers: Mapping[str, int]
    pacing: Mapping[str, int]
    turns: Mapping[str, int]
    limits: CallLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What came out; see `VoteFacts` and `arena.domain.board_view.Board`."""

    votes: int
    choices: Mapping[str, int]
    left_out: Mapping[str, int]
    voters: int
    voter_kinds: Mapping[str, int]
    effective_voters: float | None
    top_voter_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpretation:
    """How the votes become ratings, and what those rest on.

    Attributes
    ----------
    code : str
        SHA-256 of the program's code.
    chain_head : str
        Hash of the newest link of the record; empty before the first.
    """

    method: str
    level: float
    anchor_mean: float
    policy: str
    policy_rules: tuple[str, ...]
    rated: int
    ranks_claimed: bool
    warnings: tuple[str, ...]
    data_hash: str | None
    version: str
    code: str
    chain_head: str
    chain_links: int


SECTIONS = ("inputs", "calls", "outputs", "interpretation")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationCard:
    """The card: four sections of facts, and what a person has to say.

    Attributes
    ----------
    missing : tuple of str
        Sections and statements that are empty.
    """

    statements: Statements
    inputs: Inputs
    calls: Calls
    outputs: Outputs
    interpretation: Interpretation
    missing: tuple[str, ...] = ()


def empty_sections(facts: VoteFacts, models: Sequence[ModelCall], rated: int) -> tuple[str, ...]:
    """Name the sections that say nothing yet."""
    there = (facts.votes, len(models), facts.votes, rated)
    return tuple(name for name, n in zip(SECTIONS, there, strict=True) if not n)
