"""What the admin room shows, as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from arena.domain.model import Entry
from arena.domain.people import Erased
from arena.domain.vote import FailureClass
from judge.studies.gold import VoterAccuracy

EXPORTS = ("battles", "answers", "votes", "ratings")
EXPORT_ENDINGS = ("csv", "jsonl", "parquet")
"""What can be exported from the room, and the endings of its files."""


@dataclass(frozen=True, slots=True)
class Acts:
    """A page of what those who run the arena did, newest first.

    Attributes
    ----------
    acts : sequence of row
        With ``by``, the id of a person, or ``terminal``; ``name``, that person's, None for the
        terminal; ``act``, ``subject``, ``detail``, what the act consists in, and ``created``.
    older_than : int or None
        Place before which the next page begins; None if there are no older ones.
    """

    acts: Sequence[Any]
    older_than: int | None


@dataclass(frozen=True, slots=True)
class Failures:
    """Answers of a model that failed alike.

    Attributes
    ----------
    sentence : str
        What the endpoint said of the newest; it may be hostile, and names the model.
    last : datetime
        When that one was asked for.
    """

    failure: FailureClass
    times: int
    sentence: str
    last: datetime


@dataclass(frozen=True, slots=True)
class ModelDay:
    """What a model did in a day.

    Attributes
    ----------
    answers : int
        Asked for, whatever became of them.
    failures : tuple of Failures
        Those that happened most often first.
    first_token_p50_s, first_token_p95_s : float or None
        Seconds, to hundredths, within which half and 95 % of the answers began that began at all;
        None if none did.
    dollars : float
        As far as prices are known.
    """

    model: str
    name: str
    answers: int
    failures: tuple[Failures, ...]
    first_token_p50_s: float | None
    first_token_p95_s: float | None
    tokens_out: int
    dollars: float

    @property
    def failed(self) -> int:
        """Answers that failed."""
        return sum(one.times for one in self.failures)


@dataclass(frozen=True, slots=True)
class Status:
    """How the arena does.

    Attributes
    ----------
    since : datetime
        Beginning of the day that the numbers are of, which ends now.
    running : int
        Battles that are being answered, in all processes.
    battles, votes : int
        Begun, and cast; a skip is no vote.
    dollars : float
        Spent on the answers of ``models``, as the daily budget counts it.
    budget : float or None
        Dollars that may be spent in a day; None sets no limit.
    models : tuple of ModelDay
        Those that were asked, by name; without what they did in battles on which who reads it
        can still vote.
    """

    since: datetime
    running: int
    battles: int
    votes: int
    dollars: float
    budget: float | None
    models: tuple[ModelDay, ...]


@dataclass(frozen=True, slots=True)
class Suspect:
    """A voter against whom the votes speak.

    Attributes
    ----------
    model : str or None
        On which the votes speak against them; None for all.
    evidence : float
        Log of the evidence, in nats.
    rule : str or None
        That would leave their votes out; None if the evidence is not enough for one.
    """

    voter: str
    model: str | None
    evidence: float
    reason: str
    rule: str | None


@dataclass(frozen=True, slots=True)
class Examination:
    """What the votes say of the voters.

    Attributes
    ----------
    votes, voters : int
        Counted, and examined or not.
    suspects : tuple of Suspect
        Those of most evidence first.
    notes : tuple of str
        What it means and what it does not, in sentences.
    """

    at: datetime
    votes: int
    voters: int
    suspects: tuple[Suspect, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VotersView:
    """What is known of voters.

    Attributes
    ----------
    examination : Examination or None
        The newest; None before the first.
    examining : bool
        Whether another one is under way.
    problem : str or None
        Why the newest attempt gave none.
    left_out : sequence of row
        See `arena.store.voting.left_out`.
    busiest : sequence of row
        See `arena.store.voting.busiest`.
    names : mapping of str to str
        Of the voters whom the arena knows, by their ids.
    gold : tuple of VoterAccuracy
        Of those who answered gold battles, most answers first.
    """

    examination: Examination | None
    examining: bool
    problem: str | None
    left_out: Sequence[Any]
    busiest: Sequence[Any]
    names: Mapping[str, str]
    gold: tuple[VoterAccuracy, ...] = ()


@dataclass(frozen=True, slots=True)
class RaceStanding:
    """How a race of two models stands.

    Attributes
    ----------
    votes, voters : int
        Looked at: up to the look that separated the two, or all.
    lead, lower, upper : float or None
        Points of the first model's lead with an interval that holds at all looks together; None
        before anything can be said.
    separated : bool
        Whether a lead of zero was ruled out, however often one looked.
    """

    between: tuple[str, str]
    level: float
    votes: int = 0
    voters: int = 0
    lead: float | None = None
    lower: float | None = None
    upper: float | None = None
    separated: bool = False


@dataclass(frozen=True, slots=True)
class Leaver:
    """Somebody whose words are to go, or went.

    Attributes
    ----------
    voter : str
        Their id, as a person if they are one.
    name : str or None
        That person's.
    ids : int
        Voters that they are, on all their devices.
    extent : Erased
        How much goes, with the votes that may go as well; or what went.
    """

    voter: str
    name: str | None
    ids: int
    extent: Erased

    @property
    def mark(self) -> str:
        """What is to be typed before anything goes."""
        return self.voter[:8]


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a tiny request to a model.

    Attributes
    ----------
    seconds : float or None
        Until the whole answer was there; None if it failed.
    first_s : float or None
        Until its first piece was there; None if it failed, or was empty.
    failure : FailureClass or None
    sentence : str
        What the endpoint said if it failed; it may be hostile.
    without : tuple of str
        Parameters that it is asked without, as its endpoint refuses them.
    """

    seconds: float | None
    first_s: float | None = None
    failure: FailureClass | None = None
    sentence: str = ""
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RosterView:
    """Who battles.

    Attributes
    ----------
    entries : tuple of Entry
        Empty while the toys play, or models that were given at the start alone.
    keyless : frozenset of str
        Ids of the models whose key this process does not have.
    unusable : mapping of str to str
        Why stored entries are not used, by id.
    paused : mapping of str to datetime
        Until when this process does not draw models whose accounts have no credit, by id.
    """

    entries: tuple[Entry, ...]
    keyless: frozenset[str]
    unusable: Mapping[str, str]
    paused: Mapping[str, datetime]
