"""What the admin area shows, as plain values."""

from dataclasses import dataclass

from arena.domain.vote import FailureClass

EXPORTS = ("battles", "answers", "votes", "ratings")
EXPORT_ENDINGS = ("csv", "jsonl", "parquet")
"""What can be exported from the admin area, and the endings of its files."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A voter against whom the votes speak.

    Attributes
    ----------
    model : str or None
        On which the votes count against them; None for all.
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
