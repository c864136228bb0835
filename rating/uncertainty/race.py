"""A sequential test of two models, which stops as soon as they are separated."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rating.elo import POINTS_PER_NAT
from rating.errors import DataError, NotIdentifiedError
from rating.rows import VoteRows
from rating.typing import Bools, Ints
from rating.uncertainty.clusters import intersection
from rating.uncertainty.contrasts import WELL_FOUNDED
from rating.uncertainty.sequence import (
    FEWEST_SCORED,
    POWER,
    Lead,
    Looks,
    check_looks,
    lead_of,
    looks_caption,
    planned_votes,
)

MOST_LOOKS = 400


@dataclass(frozen=True, slots=True)
class Look:
    """What was known at a look; points of the first model's lead."""

    voters: int
    votes: int
    lead: float
    lower: float
    upper: float

    @property
    def separates(self) -> bool:
        """Whether a lead of zero is ruled out."""
        return self.lower > 0 or self.upper < 0


@dataclass(frozen=True, slots=True)
class Race:
    """How a race went.

    Attributes
    ----------
    between : tuple of (str, str)
    looks : tuple of Look
        Up to the stop; empty where there is too little data.
    separated : Look or None
        The first that separates the two.
    votes, voters : int
        All that there were, up to the budget, or to the planned votes of numbered looks.
    judge_weight : float or None
        What a judge's verdicts counted in the end, from 0 to 1; None without a judge.
    mode : "any" or int
        How often the votes were looked at.
    planned : int or None
        Votes on either model that were planned; None for all that there are.
    needed, needed_same_prompts : int or None
        Votes on either model that separate the two with a power of 0.8, if the lead is as
        estimated: of new people on new prompts, or on the same; None for no number.
    """

    between: tuple[str, str]
    looks: tuple[Look, ...]
    separated: Look | None
    votes: int
    voters: int
    level: float
    judge_weight: float | None
    mode: Looks
    planned: int | None
    needed: int | None
    needed_same_prompts: int | None

    @property
    def badge(self) -> str | None:
        """What may be said of the two; None where nothing may."""
        if self.separated is None:
            return None
        if self.mode == "any":
            return f"separated, however often one looked ({100 * self.level:g} %)"
        return f"separated ({looks_caption(self.mode, self.planned, self.level)})"

    @property
    def sentence(self) -> str:
        """The answer in words."""
        first, second = self.between
        if not self.looks:
            return (
                f"{first} and {second}: inconclusive. It takes {WELL_FOUNDED} effective voters "
                f"and prompts, and each of the two has to win and to lose {FEWEST_SCORED} votes; "
                f"there are {self.votes:,} votes of {self.voters:,} voters."
            )
        look = self.separated or self.looks[-1]
        lead = f"{look.lead:+.0f} points ({look.lower:+.0f} to {look.upper:+.0f})"
        if self.separated is None:
            return (
                f"{first} against {second}: {lead} after {look.votes:,} votes of {look.voters:,} "
                f"voters; not separated ({looks_caption(self.mode, self.planned, self.level)})."
                + self._needed()
            )
        ahead, behind = self.between if look.lead > 0 else (second, first)
        return (
            f"{ahead} is ahead of {behind} after {look.votes:,} votes of {look.voters:,} voters: "
            f"{self.badge}. Lead of {first}: {lead}."
        )

    def _needed(self) -> str:
        """Return how many votes it takes, with a space before."""
        power = f"separate them with {100 * POWER:g}% power, if the lead is as estimated"
        if self.needed is None:
            return f" No number of votes may {power}."
        same = self.needed_same_prompts
        on_same = "no number does" if same is None else f"{same:,} do"
        also = "" if same == self.needed else f"; on the same prompts {on_same}"
        return f" About {self.needed:,} votes on either model by new people {power}{also}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        last = self.looks[-1] if self.looks else None
        return {
            "between": list(self.between),
            "separated": self.separated is not None,
            "at": None if self.separated is None else self.separated.votes,
            "interval": None if last is None else [last.lower, last.upper],
            "lead": None if last is None else last.lead,
            "at_voters": None if self.separated is None else self.separated.voters,
            "badge": self.badge,
            "votes": self.votes,
            "voters": self.voters,
            "level": self.level,
            "judge_weight": self.judge_weight,
            "looks": self.mode,
            "planned": self.planned,
            "power": POWER,
            "needed": self.needed,
            "needed_same_prompts": self.needed_same_prompts,
            "history": [asdict(look) for look in self.looks],
            "sentence": self.sentence,
        }


def run_race(
    votes: VoteRows,
    between: tuple[str, str],
    judged: Callable[[int], tuple[Lead, float]] | None = None,
    *,
    stop: bool = True,
    budget: int | None = None,
    looks: Looks = "any",
    planned: int | None = None,
    level: float = 0.95,
) -> Race:
    """Follow the lead of one model over another, look by look, until it is beyond doubt.

    The lead is that of Bradley-Terry of all votes so far: votes on other pairs count for what they
    say of these two. Its variance, the least data and the interval at each look are those of a
    gate (`rating.uncertainty.sequence`), so that at most ``1 - level`` of all races of equal
    models ever stop. Pairs may be drawn by the votes so far.

    Parameters
    ----------
    votes : VoteRows
        In the order in which they were cast, a row each.
    judged : callable, optional
        Returns the lead by so many of the first votes and a judge's verdicts together, and what
        the verdicts counted; raises `NotIdentifiedError` before there is any.
    stop : bool
        Stop as soon as the two are separated.
    budget : int, optional
        Look at so many votes at most.
    looks : "any" or int
        Any number, without end: at most `MOST_LOOKS`, after a geometric sequence of votes. A
        number: so many, after equal parts of the planned votes.
    planned : int, optional
        Votes on either model: to be fixed before the first look.

    Raises
    ------
    DataError
        If a model has no votes, both are one, or an option is out of range.
    """
    _check(votes, between, budget)
    check_looks(looks, planned, level)
    ends = [votes.models.index(name) for name in between]
    rows = votes.taken(slice(budget)) if budget is not None else votes
    either = rows.on(ends[0]) | rows.on(ends[1])
    at = _places(either, looks, planned_votes(looks, planned))
    data = rows.one_by_one()
    cells = intersection(data).index if data.prompt is not None else None
    _, first = np.unique(rows.voter, return_index=True)
    counts, voters = either.cumsum(), np.bincount(first, minlength=rows.n).cumsum()
    seen: list[Look] = []
    separated, weight, known = None, None, None
    for n in at:
        part = slice(int(n))
        try:
            if judged is None:
                lead = lead_of(
                    data.subset(part), between, cells=None if cells is None else cells[part]
                )
            else:
                lead, weight = judged(int(n))
        except NotIdentifiedError:
            continue
        if lead.effective < WELL_FOUNDED:
            continue
        ask = (looks, planned, int(counts[n - 1]), level)
        value, half = POINTS_PER_NAT * lead.value, POINTS_PER_NAT * lead.half_width(*ask)
        if not np.isfinite(half):
            continue
        seen.append(Look(int(voters[n - 1]), int(n), value, value - half, value + half))
        if seen[-1].separates and separated is None:
            separated = seen[-1]
            if stop:
                break
        known = lead, ask
    needed: tuple[int | None, int | None] = (None, None) if separated is None else (0, 0)
    if separated is None and known is not None:
        needed = known[0].needed(abs(known[0].value), *known[1])
    return Race(
        between,
        tuple(seen),
        separated,
        rows.n,
        int(voters[-1]),
        level,
        None if judged is None else weight or 0.0,
        looks,
        planned_votes(looks, planned),
        needed[1],
        needed[0],
    )


def _check(votes: VoteRows, between: tuple[str, str], budget: int | None) -> None:
    if between[0] == between[1]:
        raise DataError(f"A race is between two models, not {between[0]!r} and itself.")
    for name in between:
        if name not in votes.models:
            some = ", ".join(map(repr, votes.models[:3]))
            raise DataError(f"There are no votes on {name!r}; there are on {some} and others.")
    if budget is not None and budget < 1:
        raise DataError(f"--budget {budget} are no votes: give one or more.")


def _places(either: Bools, looks: Looks, planned: int | None) -> Ints:
    """Choose after how many votes to look.

    Parameters
    ----------
    either : ndarray of shape (n,), bool
        Which votes are on either model.
    """
    last = np.flatnonzero(either) + 1
    if looks == 1:
        return last[:planned][-1:]
    if looks != "any":
        parts = np.ceil(np.arange(1, looks + 1) * (planned or 0) / looks).astype(np.int64)
        return last[np.unique(parts[parts <= len(last)]) - 1]
    if len(last) < WELL_FOUNDED:
        return last[:0]
    every = np.round(np.geomspace(WELL_FOUNDED, len(last), MOST_LOOKS)).astype(np.int64)
    return np.append(last[np.unique(every)[:-1] - 1], len(either))
