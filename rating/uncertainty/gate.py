"""A release gate: is a candidate better than an incumbent, looked at once or again and again."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np

from rating.comparisons import Comparisons
from rating.elo import POINTS_PER_NAT
from rating.errors import DataError, NotIdentifiedError
from rating.options import Claims
from rating.typing import Bools
from rating.uncertainty.contrasts import WELL_FOUNDED
from rating.uncertainty.sequence import (
    MOST_NEEDED,
    POWER,
    Lead,
    Looks,
    check_looks,
    lead_of,
    looks_caption,
    planned_votes,
)

Answer = Literal["better", "not worse", "worse", "cannot tell"]
Require = Literal["better", "not-worse"]
By = Literal["people", "people and judge", "judge alone", "nothing"]

ASSUMED = 20.0
"""Points from the line at which a lead that is not known yet is assumed, without a margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """What a gate asks.

    Attributes
    ----------
    candidate : str
        The new model.
    incumbent : str
        The model that it would replace.
    margin : float
        Points that the candidate may be behind and still be not worse.
    require : {"better", "not-worse"}
        What the candidate has to be.
    claims : {"population", "these-voters"}
        Whom the answer speaks for: people like those who voted, or these voters alone, where
        they are fewer than 15.
    level : float
        Of the interval, at all looks together.
    looks : "any" or int
        How often the votes are looked at: any number of times, without end (any), or at most so
        often until the planned votes are there; with 6 or more, any number of times until then.
    planned : int or None
        Votes on either model that are planned, to be fixed before the first look: later votes are
        not used if looks are numbered, and else the interval is narrowest about there. Without:
        2,000, or for a single look all that there are.
    """

    candidate: str
    incumbent: str
    margin: float
    require: Require = "not-worse"
    claims: Claims = "population"
    level: float = 0.95
    looks: Looks = "any"
    planned: int | None = None

    def __post_init__(self) -> None:
        """Raise `DataError` for what no gate can ask."""
        check_looks(self.looks, self.planned, self.level)
        if self.candidate == self.incumbent:
            msg = f"A gate is between two models, not {self.candidate!r} and itself."
            raise DataError(msg)
        if not 0 <= self.margin < math.inf:
            msg = f"--margin {self.margin:g} is no margin: give points from 0 on, such as 20."
            raise DataError(msg)
        for name, value, known in (
            ("require", self.require, get_args(Require)),
            ("claims", self.claims, get_args(Claims)),
        ):
            if value not in known:
                raise DataError(f"--{name} must be one of {', '.join(known)}, not {value!r}.")

    @property
    def votes_planned(self) -> int | None:
        """Votes planned; None for all that there are."""
        return planned_votes(self.looks, self.planned)

    @property
    def assumed(self) -> float:
        """Points from the line at which a lead that is not known yet is assumed."""
        return self.margin or ASSUMED

    @property
    def line(self) -> float:
        """Points that the lead has to be above."""
        return 0.0 if self.require == "better" else -self.margin


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The candidate's lead in points, negative where it is behind."""

    value: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a gate says.

    Attributes
    ----------
    difference : Difference or None
        None where nothing could be estimated.
    people, judge : int
        Votes of people on either model, and verdicts that counted.
    needed : int or None
        More votes that settle the requirement with a power of 0.8, if the lead is as estimated
        and they come from new people on new prompts; 0 once it is settled, None where the lead is
        so near the line that no number would do.
    needed_same_prompts : int or None
        The same for new people on the prompts that there are.
    by : {"people", "people and judge", "judge alone", "nothing"}
    rests_on : str
        The same in a sentence, with counts.
    why : str
        Why nothing can be told yet; empty where an interval is there.
    judge_weight : float or None
        What the verdicts counted, from 0 to 1; None without, and where the judge is alone.
    """

    options: GateOptions
    difference: Difference | None
    people: int
    judge: int = 0
    needed: int | None
    needed_same_prompts: int | None = None
    by: By
    rests_on: str
    why: str = ""
    judge_weight: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def answer(self) -> Answer:
        """Where the interval lies: above 0, above the margin, below it, or neither.

        Better, not worse and worse are final: at most ``1 - level`` of all gates err.
        """
        lower, upper = self._ends
        if lower > 0:
            return "better"
        if lower > -self.options.margin:
            return "not worse"
        return "worse" if upper < -self.options.margin else "cannot tell"

    @property
    def passes(self) -> bool | None:
        """Whether what is required is shown (True), ruled out (False), or open (None)."""
        lower, upper = self._ends
        line = self.options.line
        return True if lower > line else False if upper < line else None

    @property
    def _ends(self) -> tuple[float, float]:
        one = self.difference
        lower = -math.inf if one is None or one.lower is None else one.lower
        return lower, math.inf if one is None or one.upper is None else one.upper

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        one, other = self.options.candidate, self.options.incumbent
        by = f"by more than {self.options.margin:g} points"
        return {
            "better": f"{one} is better than {other}.",
            "not worse": f"{one} is not worse than {other} {by}.",
            "worse": f"{one} is worse than {other} {by}.",
            "cannot tell": f"Inconclusive: whether {one} is worse than {other} {by}.",
        }[self.answer]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The headline, and what stands behind it."""
        lead = self.lead and f"Lead: {self.lead}."
        return tuple(filter(None, (self.headline, lead, self.why, self.verdict)))

    @property
    def lead(self) -> str:
        """The difference in words; empty where nothing could be estimated."""
        one = self.difference
        if one is None:
            return ""
        ends = ("below" if one.lower is None else f"{one.lower:+.0f}") + " to "
        ends += "above" if one.upper is None else f"{one.upper:+.0f}"
        ask = self.options
        return f"{one.value:+.0f} points ({ends}; ".replace("-", "−") + (
            looks_caption(ask.looks, ask.planned, ask.level) + ")"
        )

    @property
    def is_final(self) -> bool:
        """Whether the planned votes of numbered looks are there: later votes are not used."""
        planned = self.options.votes_planned
        return self.options.looks != "any" and planned is not None and self.people >= planned

    @property
    def verdict(self) -> str:
        """What is required, whether the gate passes, and what it takes where that is open."""
        required = f"Required: {self.options.require.replace('-', ' ')}."
        if self.passes is not None:
            return f"{required} The gate {'passes' if self.passes else 'fails'}."
        done = self.people if self.is_final else 0
        if done:
            required += " The planned votes are there: this answer is final."
        if self.needed is None:
            return (
                f"{required} The lead is so near the line that no number of votes may settle it."
            )
        more = f"About {self.needed:,} more {_word(self.needed, 'vote', 'votes')}"
        if done:
            more = f"About {done + self.needed:,} votes in a new gate"
        power = f"settle it with {100 * POWER:g}% power"
        if self.difference is None:
            if self.options.require == "better":
                ahead = f"{self.options.candidate} is {self.options.assumed:g} points ahead"
                return f"{required} {more} on the two {power}, if {ahead}."
            return f"{required} {more} on the two {power}, if they are even."
        same = self.needed_same_prompts
        on_same = "no number does" if same is None else f"about {done + same:,} do"
        if same == self.needed:
            return f"{required} {more} by new people {power}, if the lead is as estimated."
        return (
            f"{required} {more} by new people on new prompts {power}, if the lead is as "
            f"estimated; on the same prompts {on_same}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        one, ask = self.difference, self.options
        return {
            "answer": self.answer,
            "candidate": ask.candidate,
            "incumbent": ask.incumbent,
            "margin": ask.margin,
            "difference": {
                "value": None if one is None else one.value,
                "lower": None if one is None else one.lower,
                "upper": None if one is None else one.upper,
            },
            "looks": ask.looks,
            "planned": ask.votes_planned,
            "power": POWER,
            "votes": {"people": self.people, "judge": self.judge},
            "needed": self.needed,
            "needed_same_prompts": self.needed_same_prompts,
            "rests_on": self.rests_on,
            "by": self.by,
            "require": ask.require,
            "passes": self.passes,
            "claims": ask.claims,
            "level": ask.level,
            "judge_weight": self.judge_weight,
            "why": self.why or None,
            "sentences": list(self.sentences),
            "warnings": list(self.warnings),
        }

    def with_warnings(self, *warnings: str) -> Self:
        """Add what to keep in mind."""
        return replace(self, warnings=(*self.warnings, *warnings))


def gate(data: Comparisons, options: GateOptions) -> Gate:
    """Ask whether a candidate is better than an incumbent, by votes of people.

    The lead is that of Bradley-Terry of all votes: those on the two directly, and those of both
    against other models. Its interval allows for what votes of one voter, and on one prompt, have
    in common, and for the looks (`rating.uncertainty.sequence`). Nothing is kept between looks.
    Nothing is estimated from fewer than `WELL_FOUNDED` effective voters or prompts, where these
    are known, or before either model has won and lost `FEWEST_SCORED`.

    Parameters
    ----------
    data : Comparisons
        Of numbered looks, up to the planned votes: see `rows_planned`.

    Raises
    ------
    DataError
        If a model has no votes.
    """
    require_both(data.models, options)
    known = _behind(data, options)
    try:
        between = options.candidate, options.incumbent
        lead = lead_of(data, between, voters=options.claims == "population")
    except NotIdentifiedError as error:
        return untold(options, known, str(error))
    return decided(lead, options, known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What stands behind a lead.

    Attributes
    ----------
    people, direct : int
        Votes on either model, and of them those on the two.
    rests_on : str
    """

    people: int
    direct: int
    rests_on: str
    by: By = "people"
    judge: int = 0
    judge_weight: float | None = None
    warnings: tuple[str, ...] = ()


def decided(lead: Lead, options: GateOptions, known: Behind) -> Gate:
    """Answer by a lead."""
    if lead.effective < WELL_FOUNDED:
        why = (
            f"The lead rests on {lead.effective:.1f} effective voters or prompts: nothing is "
            f"estimated from fewer than {WELL_FOUNDED}."
        )
        return untold(options, known, why)
    ask = (options.looks, options.planned, known.people, options.level)
    half = lead.half_width(*ask)
    value, half = POINTS_PER_NAT * lead.value, POINTS_PER_NAT * half
    ends = (value - half, value + half) if math.isfinite(half) else (None, None)
    answered = Gate(
        options=options,
        difference=Difference(value=value, lower=ends[0], upper=ends[1]),
        people=known.people,
        judge=known.judge,
        needed=None,
        by=known.by,
        rests_on=known.rests_on,
        judge_weight=known.judge_weight,
        warnings=known.warnings,
    )
    if answered.passes is not None:
        return replace(answered, needed=0, needed_same_prompts=0)
    same, new = (
        None if total is None else max(total - known.people, 1)
        for total in lead.needed(abs(lead.value - options.line / POINTS_PER_NAT), *ask)
    )
    return replace(answered, needed=new, needed_same_prompts=same)


def untold(options: GateOptions, known: Behind, why: str) -> Gate:
    """Answer where nothing could be estimated."""
    return Gate(
        options=options,
        difference=None,
        people=known.people,
        judge=known.judge,
        needed=votes_for_even_models(options, known.direct),
        by="nothing",
        rests_on=known.rests_on,
        why=why,
        judge_weight=known.judge_weight,
        warnings=known.warnings,
    )


def votes_for_even_models(options: GateOptions, there: int) -> int:
    """Return the more votes that settle a gate with a power of 0.8 where the models are even.

    Each vote gives a quarter of information. A gate that requires a better model, or has no
    margin, is planned for a lead of as many points above the line.

    >>> ask = GateOptions(candidate="x", incumbent="y", margin=20, looks=1)
    >>> votes_for_even_models(ask, there=20)
    2349
    """
    each = dict.fromkeys(("variance", "by_prompt", "independent"), 4.0)
    known = dict.fromkeys(("df", "prompt_df", "effective"), math.inf)
    one = Lead(value=0.0, of_prompts=0.0, **each, **known)
    ask = (options.looks, options.planned, 1, options.level)
    _, total = one.needed(options.assumed / POINTS_PER_NAT, *ask)
    return MOST_NEEDED if total is None else max(total - there, 1)


def rows_planned(either: Bools, options: GateOptions) -> int:
    """Return the rows up to the last planned vote on either model, or all of them.

    Parameters
    ----------
    either : ndarray of shape (n,), bool
        Which votes, in the order in which they were cast, are on either model.

    >>> ask = GateOptions(candidate="x", incumbent="y", margin=20, looks=2, planned=2)
    >>> rows_planned(np.array([True, False, True, True]), ask)
    3
    """
    if options.looks == "any" or options.votes_planned is None:
        return len(either)
    return min(len(either), int(np.searchsorted(either.cumsum(), options.votes_planned)) + 1)


def require_both(models: Sequence[str], options: GateOptions) -> None:
    """Raise `DataError` unless there are votes on both models."""
    for name in (options.candidate, options.incumbent):
        if name not in models:
            some = ", ".join(map(repr, models[:3]))
            raise DataError(f"There are no votes on {name!r}; there are on {some} and others.")


def _behind(data: Comparisons, options: GateOptions) -> Behind:
    """Count what stands behind the lead, and say what the interval does not allow for."""
    ends = [data.models.index(name) for name in (options.candidate, options.incumbent)]
    either = np.isin(data.pairs, ends).any(axis=1)
    both = np.isin(data.pairs, ends).all(axis=1)
    people, direct = int(data.votes[either].sum()), int(data.votes[both].sum())
    counts = [
        (None if column is None else len(np.unique(column[either])), word)
        for column, word in ((data.voter, "voter"), (data.prompt, "prompt"))
    ]
    return Behind(
        people=people,
        direct=direct,
        rests_on=rests_on(people, direct, counts[0][0], counts[1][0], options),
        warnings=tuple(
            f"{word.capitalize()}s are not known: the interval is too narrow where {what}."
            for (count, word), what in zip(
                counts, ("people voted often", "votes share prompts"), strict=True
            )
            if count is None
        ),
    )


def rests_on(
    people: int, direct: int, voters: int | None, prompts: int | None, options: GateOptions
) -> str:
    """Say what a lead rests on.

    >>> rests_on(90, 40, 30, None, GateOptions(candidate="x", incumbent="y", margin=20))
    '90 votes of 30 people, 40 of them on the two directly'
    """
    of = "of people" if voters is None else f"of {voters:,} {_word(voters, 'person', 'people')}"
    on = "" if prompts is None else f" on {prompts:,} {_word(prompts, 'prompt', 'prompts')}"
    whom = "; it speaks for these voters alone" if options.claims == "these-voters" else ""
    votes = _word(people, "vote", "votes")
    return f"{people:,} {votes} {of}{on}, {direct:,} of them on the two directly{whom}"


def _word(n: int, one: str, more: str) -> str:
    return one if n == 1 else more
