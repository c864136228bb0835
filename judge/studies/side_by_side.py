"""Judges against each other on the same items: agreement, its price, and where they differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from judge.studies.agreement import over_another, pair_agreement
from judge.studies.boards import Preferences
from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.estimates import Draws, Estimate, gap_of, plural
from judge.studies.gates import MIN_PROMPTS
from judge.studies.items import Items, Labels
from judge.studies.options import StudyOptions
from judge.studies.rates import voted
from rating.elo import to_points
from rating.leave_out import influence_factor
from rating.typing import Bools, Floats
from rating.uncertainty.student import quantile

COIN = 0.5
"""How often one who reads nothing agrees where both prefer a side."""
THOUSAND = 1000
MOST_SPOKEN = 3

LENGTHS = (
    ("Lengths within a fifth", 0.0, 0.25),
    ("One up to twice as long", 0.25, 1.0),
    ("One more than twice as long", 1.0, np.inf),
)
"""Doublings by which one answer is longer: from, and under."""
DISTANCES = (
    ("Models within 50 points", 0.0, 50.0),
    ("50 to 150 points apart", 50.0, 150.0),
    ("More than 150 points apart", 150.0, np.inf),
)
"""How far apart people's votes rate the two models of an item: near ones are hard to tell."""


@dataclass(frozen=True, slots=True)
class Lead:
    """By how much one judge agrees with people more often than another.

    Attributes
    ----------
    without_ties, with_ties : Estimate
        Difference of agreement, on the items that both have a verdict on and somebody voted on.
    certain : bool
        Whether the first, at a level over all pairs of judges (Bonferroni), leaves out 0, on
        `MIN_PROMPTS` prompts or more.
    n_items, n_prompts : int
    cost : float or None
        Dollars a thousand items that a point of a per cent more costs by going from the worse to
        the better judge; below 0 where the better is cheaper; None where neither is certainly
        better, or a cost is not known.
    """

    first: str
    second: str
    without_ties: Estimate
    with_ties: Estimate
    certain: bool
    n_items: int
    n_prompts: int
    cost: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "first": self.first,
            "second": self.second,
            "without_ties": self.without_ties.to_dict(),
            "with_ties": self.with_ties.to_dict(),
            "certain": self.certain,
            "items": self.n_items,
            "prompts": self.n_prompts,
            "usd_per_point": self.cost,
        }


@dataclass(frozen=True, slots=True)
class Part:
    """The agreement of all judges on some of the items that all of them have a verdict on.

    Attributes
    ----------
    by : str
        ``all``, ``length``, ``difficulty``, or the column that parts the items.
    agreement : mapping of str to Estimate
        Of each judge, ties left out; without a value under `MIN_PROMPTS` prompts.
    """

    by: str
    name: str
    agreement: Mapping[str, Estimate]
    n_items: int
    n_prompts: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "by": self.by,
            "part": self.name,
            "items": self.n_items,
            "prompts": self.n_prompts,
            "agreement": {name: one.to_dict() for name, one in self.agreement.items()},
        }


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Two judges or more against each other.

    Attributes
    ----------
    costs : mapping of str to float or None
        Dollars a thousand items.
    parts : tuple of Part
        The first is all items that every judge has a verdict on; others have at least one.
    """

    leads: tuple[Lead, ...]
    costs: Mapping[str, float | None]
    parts: tuple[Part, ...]

    def price(self, judge: str) -> float | None:
        """Return dollars a thousand items for each point of agreement above a coin.

        None where the cost is not known, or it is not shown to agree more often than a coin.
        """
        cost, agreed = self.costs[judge], self.parts[0].agreement[judge]
        if cost is None or agreed.value is None or agreed.lower is None or agreed.lower <= COIN:
            return None
        return cost / (100 * (agreed.value - COIN))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say of every pair whether one judge is shown to agree with people more often.

        Of more than `MOST_SPOKEN` judges, of the pairs with the one that agrees most.
        """
        leads = self.leads
        if len(self.costs) > MOST_SPOKEN:
            agreed = self.parts[0].agreement
            best = max(agreed, key=lambda name: agreed[name].value or 0.0)
            leads = tuple(lead for lead in leads if best in (lead.first, lead.second))
        return tuple(map(_sentence, leads))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "pairs": [lead.to_dict() for lead in self.leads],
            "costs": {
                name: {"usd_per_thousand": cost, "usd_per_point_above_coin": self.price(name)}
                for name, cost in self.costs.items()
            },
            "parts": [part.to_dict() for part in self.parts],
            "sentences": list(self.sentences),
        }


def side_by_side(
    data: StudyData, options: StudyOptions, people: Preferences | None
) -> SideBySide | None:
    """Compare judges on the same items; None of a single one.

    Parameters
    ----------
    people : Preferences or None
        The board by people, for how hard items are; None leaves that out.
    """
    if len(data.judges) < 2:
        return None
    costs = {
        judge.name: None if judge.cost is None else THOUSAND * judge.cost for judge in data.judges
    }
    pairs = [*combinations(data.judges, 2)]
    leads = tuple(_lead(data, pair, options, len(pairs), costs) for pair in pairs)
    whole, *some = _parts(data, options, people)
    parts = (whole, *(part for part in some if part.n_items))
    return SideBySide(leads, costs, parts)


def _lead(
    data: StudyData,
    pair: tuple[JudgeVerdicts, JudgeVerdicts],
    options: StudyOptions,
    n_pairs: int,
    costs: Mapping[str, float | None],
) -> Lead:
    shared = _judged(data.items, data.people, pair)
    one, other = (judge.verdicts.only(shared[judge.verdicts.item]) for judge in pair)
    votes = voted(data.items, data.people, options)

    def lead(draws: Draws, *, ties: bool) -> Estimate:
        return over_another(data.items, one, other, votes, draws, ties=ties)

    n_prompts = len(np.unique(data.items.prompt[shared]))
    plain = lead(options.draws(), ties=False)
    level = 1 - (1 - options.level) / n_pairs
    together = lead(replace(options.draws(), level=level), ties=False)
    certain = n_prompts >= MIN_PROMPTS and certainly(together, n_prompts, level)
    names = pair[0].name, pair[1].name
    return Lead(
        *names,
        without_ties=plain,
        with_ties=lead(options.draws(), ties=True),
        certain=certain,
        n_items=int(shared.sum()),
        n_prompts=n_prompts,
        cost=_price(plain, *(costs[name] for name in names)) if certain else None,
    )


def _judged(items: Items, people: Labels, judges: Sequence[JudgeVerdicts]) -> Bools:
    """Return the items that somebody voted on and all these judges have a verdict on."""
    every = np.arange(items.n)
    both = np.isin(every, people.item)
    for judge in judges:
        both &= np.isin(every, judge.verdicts.item)
    return both


def certainly(one: Estimate, n_prompts: int, level: float) -> bool:
    """Whether an interval, opened as few prompts ask for, leaves out 0.

    Percentiles of prompts drawn anew are too near by ``sqrt(n / (n - 1))`` and by what Student's t
    is wider than the normal.

    References
    ----------
    .. [1] T. Hesterberg, "What teachers should know about the bootstrap", The American
       Statistician 69(4), 2015, section 4.5 (expanded percentiles).
    """
    if one.value is None or one.lower is None or one.upper is None or n_prompts < 2:
        return False
    wider = quantile(level, n_prompts - 1) / quantile(level, np.inf)
    wider *= np.sqrt(influence_factor(n_prompts))
    low, high = one.value - wider * (one.value - one.lower), one.upper - one.value
    return bool(low > 0 or one.value + wider * high < 0)


def _price(lead: Estimate, first: float | None, second: float | None) -> float | None:
    if first is None or second is None or not lead.value:
        return None
    return (first - second) / (100 * lead.value)


def _parts(data: StudyData, options: StudyOptions, people: Preferences | None) -> Iterator[Part]:
    shared = _judged(data.items, data.people, data.judges)
    yield _part("all", "All", data, shared, options)
    features = {"length": (LENGTHS, data.items.gaps.get("length"))}
    if people is not None:
        features["difficulty"] = DISTANCES, _distances(data.items, people)
    for by, (cuts, values) in features.items():
        if values is not None:
            size = np.abs(values)
            for name, low, high in cuts:
                yield _part(by, name, data, shared & (size >= low) & (size < high), options)
    for name, group in data.groups.items():
        if {judge.name for judge in group.judges} == {judge.name for judge in data.judges}:
            of_all = _judged(group.items, group.people, group.judges)
            yield _part(str(options.by), name, group, of_all, options)


def _distances(items: Items, people: Preferences) -> Floats:
    """Return by how many points people rate the models of each item apart, NaN if unknown."""
    points = dict(zip(people.models, to_points(people.theta).tolist(), strict=True))
    rated = np.array([points.get(name, np.nan) for name in items.models])
    return np.asarray(rated[items.pairs[:, 0]] - rated[items.pairs[:, 1]])


def _part(by: str, name: str, data: StudyData, rows: Bools, options: StudyOptions) -> Part:
    n_prompts = len(np.unique(data.items.prompt[rows]))
    votes = voted(data.items, data.people, options)
    agreement = {
        judge.name: pair_agreement(
            data.items,
            judge.verdicts.only(rows[judge.verdicts.item]),
            votes,
            options.draws(),
            ties=False,
        )
        if n_prompts >= MIN_PROMPTS
        else Estimate(None, None, None, 0)
        for judge in data.judges
    }
    return Part(by, name, agreement, int(rows.sum()), n_prompts)


def _sentence(lead: Lead) -> str:
    one = lead.without_ties
    if one.value is None:
        return (
            f"{lead.first} and {lead.second} cannot be compared: on no item do both and a vote "
            "prefer a side."
        )
    gap = f"{gap_of(one)} points of a per cent on {plural(lead.n_items, 'shared item')}"
    if not lead.certain:
        few = "" if lead.n_prompts >= MIN_PROMPTS else f", of {plural(lead.n_prompts, 'prompt')}"
        return (
            f"Neither {lead.first} nor {lead.second} is shown to agree with people more often "
            f"than the other: {gap}{few}."
        )
    better, worse = (lead.first, lead.second) if one.value > 0 else (lead.second, lead.first)
    text = f"{better} agrees with people more often than {worse}: by {gap_of(_turned(one))} points"
    return f"{text} of a per cent on {plural(lead.n_items, 'shared item')}{_on_price(lead)}."


def _turned(one: Estimate) -> Estimate:
    """Write a lead of the second judge as one."""
    if one.value is None or one.value > 0 or one.lower is None or one.upper is None:
        return one
    return Estimate(-one.value, -one.upper, -one.lower, one.n)


def _on_price(lead: Lead) -> str:
    if lead.cost is None:
        return ""
    if lead.cost <= 0:
        return ", and costs no more"
    return f", and each of these points costs ${lead.cost:.2g} more a thousand items"
