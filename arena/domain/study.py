"""Studies by people and evaluation cards, as plain values; and which item a rater is given next.

`StudyPlan` is what a study is to be, `next_of` draws the next item, and `Shown` is an item before
a rater. Raters cannot tell what an item is for, nor who answered. `EvaluationCard` states what was
asked, how, what came out and how it may be read; `Statements` are what only a person can add.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Any, Self

from arena.domain.model import Kind
from judge.case import BLIND, TOOK
from judge.tables.items import RatingItem, Response
from rating.outcome import of_sides

# Studies by people

HOLD = timedelta(minutes=10)
"""How long an item is reserved for the rater who sees it.

Two long answers or an agent run are read in less. A slower rater keeps the item unless
another rater takes it; a longer time lets raters who left block a small study.
"""
APART = 20
"""Other items that lie between an item and its repeat, where a study is long enough."""
JITTER = 10
"""By up to this many more, that nobody counts them."""


class StudyKind(StrEnum):
    """What an item is for; raters cannot tell."""

    ITEM = "item"
    GOLD = "gold"
    QUALIFICATION = "qualification"
    PILOT = "pilot"


RATED_BY_K = (StudyKind.PILOT, StudyKind.ITEM)
"""Kinds of which each item gets this many ratings, and no more."""


class Stage(StrEnum):
    """Where a rater stands.

    Waiting: the rest of the study is not open yet. Full: what they could rate is reserved for
    others. Done: they have rated, and nothing is left for them. Complete: all items have their
    ratings, and none is theirs.
    """

    RATING = "rating"
    FAILED = "failed"
    WAITING = "waiting"
    FULL = "full"
    DONE = "done"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class RubricItem:
    """A question of a study's own about each item, and the answers to choose from."""

    name: str
    question: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """What a study is to be.

    Attributes
    ----------
    raters_per_item : int
        Ratings that each item gets, and no more.
    repeats : float
        Share of a rater's items that come back with sides exchanged.
    guidelines : str
        Markdown; raters read it before they begin.
    pilot : int
        This many items come first, and the rest waits for `arena study open`.
    pass_share : float or None
        Share of qualification items that a rater gets right to go on; None without one.
    until : float or None
        Half-width of alpha's interval at which ratings are enough; None without a rule.
    reveal : bool
        Whether a rater reads who answered, and what it took, once an item is rated.
    """

    name: str
    raters_per_item: int
    repeats: float = 0.0
    guidelines: str = ""
    pilot: int = 0
    pass_share: float | None = None
    until: float | None = None
    reveal: bool = False
    rubric: tuple[RubricItem, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """An item, and what it is for."""

    kind: StudyKind
    item: RatingItem


@dataclass(frozen=True, slots=True)
class Place:
    """An item as far as the draw needs it.

    Attributes
    ----------
    rated : int
        Raters who have rated it for the first time.
    reserved : int
        Other raters who hold it.
    """

    key: int
    kind: StudyKind
    rated: int
    reserved: int = 0

    @property
    def taken(self) -> int:
        """Ratings that it has, or will have if nobody leaves."""
        return self.rated + self.reserved


@dataclass(frozen=True, slots=True)
class Past:
    """What a rater has rated, in their order: the key of an item, and 1 for its repeat."""

    key: int
    kind: StudyKind
    showing: int


@dataclass(frozen=True, slots=True)
class Next:
    """What a rater is given: an item by its key, first (0) or again (1); or why nothing.

    ``left`` is about how many more they will be given before the end or before the rest of the
    study opens, this one and gold items among them.
    """

    stage: Stage
    key: int | None = None
    showing: int = 0
    left: int = 0


def next_of(
    plan: StudyPlan,
    places: Sequence[Place],
    past: Sequence[Past],
    *,
    seed: str,
    opened: bool,
    passed: bool | None,
) -> Next:
    """Choose what a rater is given next.

    Qualification items come first. Then the item for which the fewest ratings are outstanding,
    the first of those in the order of the file; gold items are spread among all that is left
    of them; a repeat comes once `APART` others lie between, or at the end of a short study.

    Parameters
    ----------
    places : sequence of Place
        All items of the study, in its order.
    past : sequence of Past
        What the rater has rated, in their order.
    seed : str
        Of all that is drawn for this rater.
    opened : bool
        Whether what comes after the pilot may be rated.
    passed : bool or None
        Whether the rater passed the qualification; None before its end.
    """
    seen = {one.key for one in past}
    if passed is None:
        asked = [p.key for p in places if p.kind is StudyKind.QUALIFICATION and p.key not in seen]
        first = min(asked, key=lambda key: _draw(seed, "qualification", key), default=None)
        return Next(Stage.RATING, first, 0, len(asked))
    if not passed:
        return Next(Stage.FAILED)
    wanted = [
        p
        for p in places
        if p.kind in RATED_BY_K and p.key not in seen and p.rated < plan.raters_per_item
    ]
    free = [p for p in wanted if p.taken < plan.raters_per_item]
    may = [p for p in free if opened or p.kind is StudyKind.PILOT]
    gold = [p.key for p in places if p.kind is StudyKind.GOLD and p.key not in seen]
    shown = sum(not one.showing for one in past)
    waiting = _repeats(plan, past, seed)
    first_ones = sum(one.kind in RATED_BY_K and one.showing == 0 for one in past)
    to_repeat = len(waiting) + sum(
        _comes_back(plan.repeats, seed, first_ones + n) for n in range(1, len(may) + 1)
    )
    left = len(may) + to_repeat + _gold_ahead(len(gold), len(free), len(may), seed, shown)
    due = [
        key for key, since in waiting if since >= APART + int(JITTER * _draw(seed, "apart", key))
    ]
    if due:
        return Next(Stage.RATING, due[0], 1, left)
    rated_all = first_ones and first_ones == sum(p.kind in RATED_BY_K for p in places)
    if gold and (may or rated_all) and _is_gold(len(gold), len(free), seed, shown):
        return Next(Stage.RATING, min(gold, key=lambda key: _draw(seed, key)), 0, left)
    if may:
        chosen = max(may, key=lambda p: p.taken)  # the first of several
        return Next(Stage.RATING, chosen.key, 0, left)
    is_full = any(opened or p.kind is StudyKind.PILOT for p in wanted)
    if free:
        return Next(Stage.FULL if is_full else Stage.WAITING)
    rest = [key for key, since in waiting if since]
    if rest:
        return Next(Stage.RATING, rest[0], 1, len(rest))
    if is_full:
        return Next(Stage.FULL)
    return Next(Stage.DONE if past else Stage.COMPLETE)


def _is_gold(gold: int, free: int, seed: str, shown: int) -> bool:
    """Draw whether a gold item is next, so that each place among what is left is as likely."""
    return _draw(seed, "gold", shown) < gold / (gold + free)


def _gold_ahead(gold: int, free: int, may: int, seed: str, shown: int) -> int:
    """Count the gold items that a rater is given while ``may`` of the ``free`` items may be rated.

    Before the rest of a study is open these are fewer than all: they are drawn in advance.

    Parameters
    ----------
    shown : int
        Items that the rater was given for the first time: the place of the next draw.
    """
    if may == free:
        return gold
    ahead = 0
    while may:
        if ahead < gold and _is_gold(gold - ahead, free, seed, shown):
            ahead += 1
        else:
            may, free = may - 1, free - 1
        shown += 1
    return ahead


def _repeats(plan: StudyPlan, past: Sequence[Past], seed: str) -> list[tuple[int, int]]:
    """Give the items that are to come back and have not, and how many were rated since."""
    again = {one.key for one in past if one.showing}
    n, waiting = 0, []
    for place, one in enumerate(past):
        if one.kind in RATED_BY_K and not one.showing:
            n += 1
            if _comes_back(plan.repeats, seed, n) and one.key not in again:
                waiting.append((one.key, len(past) - place - 1))
    return waiting


def _comes_back(share: float, seed: str, n: int) -> bool:
    """Return whether a rater's n-th item is repeated, evenly so that the share holds.

    >>> sum(_comes_back(0.1, "r", n) for n in range(1, 101))
    10
    """
    start = _draw(seed, "repeats")
    return math.floor(share * n + start) > math.floor(share * (n - 1) + start)


def _draw(*of: object) -> float:
    return Random("/".join(map(str, of))).random()  # noqa: S311 - to be drawn again


def order_of(seed: str, key: int, showing: int, n: int) -> list[int]:
    """Draw in which order the answers of an item are shown to a rater; a repeat turns it round.

    >>> order_of("r", 7, 0, 3) == order_of("r", 7, 1, 3)[::-1]
    True
    """
    order = list(range(n))
    Random(f"{seed}/sides/{key}").shuffle(order)  # noqa: S311 - likewise
    return order[::-1] if showing else order


@dataclass(frozen=True, slots=True)
class Shown:
    """An item before a rater: nothing in it names a model, but what is revealed.

    Attributes
    ----------
    token : int
        By which the rater answers.
    messages : sequence of mapping
        ``role`` and ``content`` of what comes before the answers.
    answers : sequence of sequence of mapping
        Of each answer as it stands on the page, from A on, the messages.
    choice : str or None
        What the rater has chosen, as shown, once that is saved.
    steps : sequence of sequence of mapping
        Of agents, what each did: ``kind``, ``name``, ``text`` and ``arguments`` of every step.
        Empty of an answer without any.
    differs : int or None
        The first step in which agents differ, from 0; None where all are the same.
    revealed : sequence of mapping
        See `revealed`; of each answer, once rated, if the study reveals it; else empty.
    """

    token: int
    number: int
    left: int
    messages: Sequence[Mapping[str, str]]
    answers: Sequence[Sequence[Mapping[str, str]]]
    choice: str | None = None
    ranking: Sequence[Sequence[int]] | None = None
    steps: Sequence[Sequence[Mapping[str, str]]] = ()
    differs: int | None = None
    revealed: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class StudyRemarks:
    """What a rater says beside a choice, in the sides as shown; all of it may be missing."""

    reasons: Mapping[str, Sequence[str]] = field(default_factory=dict)
    comment: str = ""
    confidence: int | None = None
    rubric: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """A study as a rater sees it.

    Attributes
    ----------
    done : int
        Items that they have rated.
    """

    plan: StudyPlan
    stage: Stage
    done: int
    left: int
    begun: bool
    looked: bool = False


@dataclass(frozen=True, slots=True)
class Rater:
    """How far a rater is.

    Attributes
    ----------
    rated : int
        Ratings of items, first showings; ``skipped`` of them without a choice.
    gold_right, gold_asked : int
        Gold items that they chose rightly, of those that they did not skip.
    qualification : float or None
        Share of the qualification that they had right.
    repeated, same : int
        Repeats with a choice both times, and those with the same one.
    close : int
        Repeats with fewer than `APART` others between.
    """

    code: str
    done: int
    skipped: int
    gold_right: int
    gold_asked: int
    qualification: float | None
    passed: bool | None
    repeated: int
    same: int
    close: int


def as_plain(response: Response) -> dict[str, Any]:
    """Give an answer as JSON has it."""
    turns = [{"role": one.role, "content": one.content} for one in response.turns]
    run = {} if response.run is None else {"run": asdict(response.run)}
    return {"model": response.model, "turns": turns, **run}


def blind_steps(response: Mapping[str, Any]) -> list[dict[str, str]]:
    """Give of an answer, as JSON has it, the steps without what they took."""
    steps = response["run"]["steps"] if "run" in response else ()
    return [{name: step[name] for name in BLIND} for step in steps]


def revealed(response: Mapping[str, Any]) -> dict[str, Any]:
    """Give who answered, of an answer as JSON has it, once that is no secret.

    See `StudyPlan.reveal`: ``model``; ``cost`` and ``seconds``, US dollars and time of an agent's
    run, None where not known; and ``steps``, the same of each of its steps.
    """
    run = response.get("run", {})
    steps = [{name: step[name] for name in TOOK} for step in run.get("steps", ())]
    took = {name: run.get(name) for name in ("cost", "seconds")}
    return {"model": response["model"], **took, "steps": steps}


# Evaluation cards

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
        n, first, last, prompts = 0, None, None, Counter[str]()
        counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
        fingerprints: dict[str, set[str]] = defaultdict(set)
        for vote in votes:
            n += 1
            first, last = min(first or vote["ts"], vote["ts"]), max(last or vote["ts"], vote["ts"])
            prompts.update(filter(None, [vote["prompt_id"]]))
            for model, made_by in zip(of_sides("model"), of_sides("fingerprint"), strict=True):
                fingerprints[vote[model]].add(vote[made_by])
            for name, value_of in COUNTED.items():
                if (value := value_of(vote)) is not None:
                    counts[name][value] += 1
        return cls(
            votes=n,
            prompts=len(prompts),
            repeated=prompts.total() - len(prompts),
            first=first,
            last=last,
            **{name: in_order(counts[name]) for name in COUNTED},
            versions={model: len(known) for model, known in sorted(fingerprints.items())},
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
    versions: int = 0
    system_prompt: str | None = None
    decoding: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()


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
