"""A panel of judges held against people or labels: what it is worth, in figures and in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from judge.studies.data import NO_ORDER
from judge.studies.estimates import (
    SHARE,
    Estimate,
    clustered,
    gap_of,
    joined,
    number_of,
    over,
    percent,
    percent_of,
    plural,
)
from judge.studies.gates import MIN_PROMPTS
from judge.studies.options import StudyOptions
from judge.studies.panel_card import (
    Added,
    Card,
    card,
    error_correlations,
    flat,
    order_by_accuracy,
    order_by_n_eff,
)
from judge.studies.panel_data import Errors, PanelData, errors_of, read_panel
from judge.studies.rows import Source
from rating.leave_out import sums_within
from rating.tables.files import Files
from rating.typing import Floats

ALIKE = 1 - 1e-9
"""A correlation of errors from here on is that of two judges who err on the same items."""


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge of a panel.

    Attributes
    ----------
    accuracy : Estimate
        On the items that every judge read.
    n_unread : int
        Verdicts that were not read.
    without : int
        Items with a truth that it leaves out for all, having no verdict on them that was read.
    """

    name: str
    family: str
    accuracy: Estimate
    n_verdicts: int
    n_unread: int
    without: int


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """The study of a panel.

    Attributes
    ----------
    verdicts : tuple of Files
    votes : source or None
        None where the labels stand beside the verdicts.
    without_family : mapping of str to Card
        The panel without the judges of a family; empty where all are of one.
    """

    verdicts: tuple[Files, ...]
    votes: Source | None
    options: StudyOptions
    card: Card
    judges: tuple[Judge, ...]
    correlations: Floats
    by_n_eff: tuple[Added, ...]
    by_accuracy: tuple[Added, ...]
    without_family: Mapping[str, Card]
    by_people: bool
    n_items: int
    n_labelled: int
    n_prompts: int
    n_ties: int
    warnings: tuple[str, ...]

    @property
    def best(self) -> str:
        """Name the judge that is right most often."""
        return self.by_accuracy[0].judge

    @property
    def n_unread(self) -> int:
        """How many verdicts were not read."""
        return sum(judge.n_unread for judge in self.judges)

    @property
    def headline(self) -> str:
        """Say in a sentence how many judges the panel is worth."""
        return _headline(self.card, self.n_prompts, by_people=self.by_people)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what follows the headline, each sentence held by an interval or without a claim."""
        return tuple(text for text in _sentences(self) if text)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that ``arena study panel`` writes; what is not known is null."""
        names = [judge.name for judge in self.judges]
        return self.card.to_dict() | {
            "next": {
                "by_n_eff": [one.to_dict() for one in self.by_n_eff],
                "by_accuracy": [one.to_dict() for one in self.by_accuracy],
            },
            "headline": self.headline,
            "sentences": list(self.sentences),
            "against": "people" if self.by_people else "label",
            "best_judge": self.best,
            "items": self.n_items,
            "items_with_truth": self.n_labelled,
            "prompts": self.n_prompts,
            "unread": self.n_unread,
            "judges": [_judge_to_dict(judge) for judge in self.judges],
            "correlations": [
                {"a": names[a], "b": names[b], "value": _known(self.correlations[a, b])}
                for a, b in combinations(range(len(names)), 2)
            ],
            "without_family": {
                family: without.to_dict() for family, without in self.without_family.items()
            },
            "warnings": list(self.warnings),
        }


def _judge_to_dict(judge: Judge) -> dict[str, Any]:
    return {
        "judge": judge.name,
        "family": judge.family,
        **flat("accuracy", judge.accuracy),
        "verdicts": judge.n_verdicts,
        "unread": judge.n_unread,
        "items_left_out": judge.without,
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def study_panel(verdicts: Sequence[Files], votes: Source | None, options: StudyOptions) -> Panel:
    """Say how many independent judges a panel is worth, against labels or most people's votes.

    Parameters
    ----------
    verdicts, votes
        As of `judge.studies.panel_data.read_panel`.

    Raises
    ------
    DataError
        If a source cannot be read, there is nothing to hold verdicts against, or no item that
        every judge read.
    """
    data = read_panel(verdicts, votes, voters=options.voters)
    complete = errors_of(data)
    errors = complete.errors
    whole = card(errors, options)
    judges = tuple(_judges(data, errors, complete.without, options))
    matrix = error_correlations(errors)
    return Panel(
        verdicts=tuple(verdicts),
        votes=votes,
        options=options,
        card=whole,
        judges=judges,
        correlations=matrix,
        by_n_eff=order_by_n_eff(errors),
        by_accuracy=order_by_accuracy(errors),
        without_family=_without_family(data, errors, options),
        by_people=data.by_people,
        n_items=len(errors.wrong),
        n_labelled=complete.n_labelled,
        n_prompts=int(errors.prompt.max()) + 1,
        n_ties=complete.n_ties,
        warnings=tuple(dict.fromkeys(_warnings(data, errors, whole, matrix))),
    )


def _judges(
    data: PanelData, errors: Errors, without: Mapping[str, int], options: StudyOptions
) -> Iterator[Judge]:
    sums = np.column_stack([1 - errors.wrong, np.ones(len(errors.wrong))])
    by_prompt = sums_within(errors.prompt, sums, int(errors.prompt.max()) + 1)
    for place, judge in enumerate(data.data.judges):
        accuracy = clustered(
            by_prompt[:, [place, -1]],
            lambda rows: over(rows[:, 0], rows[:, 1]),
            options.draws(),
            n=len(errors.wrong),
            mean=SHARE,
        )
        n_verdicts = judge.verdicts.n + judge.n_unread
        family = data.families[judge.name]
        yield Judge(judge.name, family, accuracy, n_verdicts, judge.n_unread, without[judge.name])


def _without_family(data: PanelData, errors: Errors, options: StudyOptions) -> dict[str, Card]:
    families = [data.families[name] for name in errors.judges]
    if len({*families}) < 2:
        return {}
    return {
        family: card(errors.only([j for j, own in enumerate(families) if own != family]), options)
        for family in sorted({*families})
    }


def _warnings(data: PanelData, errors: Errors, whole: Card, matrix: Floats) -> Iterator[str]:
    yield from (text for text in data.data.warnings if text != NO_ORDER)
    n_prompts = int(errors.prompt.max()) + 1
    if n_prompts < MIN_PROMPTS:
        yield (
            f"The items are of {plural(n_prompts, 'prompt')}: under {MIN_PROMPTS}, intervals, "
            "which draw prompts, are too narrow."
        )
    rates = errors.wrong.mean(axis=0)
    constant = [name for name, rate in zip(errors.judges, rates, strict=True) if rate in (0, 1)]
    if constant and whole.k > 1:
        yield (
            f"{joined(constant)} {'errs' if len(constant) == 1 else 'err'} on none or on all of "
            "the items: errors that do not vary have no correlation, and these pairs are left "
            "out of the mean."
        )
    for a, b in combinations(range(whole.k), 2):
        if matrix[a, b] >= ALIKE:
            yield (
                f"{errors.judges[a]} and {errors.judges[b]} err on the same items: one of them "
                "adds nothing."
            )


def _headline(card: Card, n_prompts: int, *, by_people: bool) -> str:
    if card.k == 1:
        return "A panel of one judge is worth one."
    if n_prompts < MIN_PROMPTS:
        return (
            f"How many independent judges these {card.k} are worth is not known from "
            f"{plural(n_prompts, 'prompt')}."
        )
    if card.n_eff.value is None:
        return f"How many independent judges these {card.k} are worth is not known."
    worth = number_of(card.n_eff, 1)
    if by_people:
        return (
            f"These {card.k} judges are worth at least {worth} independent ones, with votes taken "
            "as the truth."
        )
    return f"These {card.k} judges are worth {worth} independent ones."


def _sentences(panel: Panel) -> Iterator[str]:
    one, truth = panel.card, "what most people say" if panel.by_people else "the label"
    yield (
        f"Held against {truth} on {plural(panel.n_items, 'item')} of "
        f"{plural(panel.n_prompts, 'prompt')}: most of the judges are right on "
        f"{percent_of(one.majority)}, {panel.best} alone on {percent_of(one.best)}."
        if one.k > 1
        else f"Held against {truth} on {plural(panel.n_items, 'item')} of "
        f"{plural(panel.n_prompts, 'prompt')}, {panel.best} is right on "
        f"{percent_of(one.majority)}."
    )
    if panel.n_ties:
        yield (
            f"On {plural(panel.n_ties, 'item')} of these the truth is a tie, or a split vote: a "
            "judge is right there only if it says tie."
        )
    if one.k > 1 and panel.n_prompts >= MIN_PROMPTS:
        if one.at_most.value is not None:
            yield (
                "Allowing for errors of people, by items on which two voted, they are worth at "
                f"most {number_of(one.at_most, 1)}. Where people and judges find the same items "
                "hard, that is too high."
            )
        yield _on_best(one.over_best, panel.best)
        if not panel.by_people:
            yield _on_gap(one)
        yield _on_next(panel)
    yield _on_unread(panel)


def _on_best(lead: Estimate, best: str) -> str:
    if lead.lower is not None and lead.lower > 0:
        return f"The panel is right more often than {best} alone, by {_points(lead)}."
    if lead.upper is not None and lead.upper < 0:
        return (
            f"{best} alone is right more often than the panel: the panel's lead is "
            f"{_points(lead)}."
        )
    return f"No difference between the panel and {best} alone is shown: {_points(lead)}."


def _points(estimate: Estimate) -> str:
    return f"{gap_of(estimate)} points of a per cent"


def _on_gap(card: Card) -> str:
    gap, independent = card.gap, percent(card.independent.value)
    if card.k == 2:
        return (
            "Where one of two judges is right, the two are right by half: what shared errors cost "
            "a majority takes three judges to tell."
        )
    if gap.lower is not None and gap.lower > 0:
        return (
            f"Judges as good whose errors are independent would be right on {independent}: shared "
            f"errors cost the panel {_points(gap)}."
        )
    if gap.upper is not None and gap.upper < 0:
        return (
            f"Judges as good whose errors are independent would be right on {independent}, less "
            f"often than this panel: {_points(gap)}."
        )
    return (
        f"Judges as good whose errors are independent would be right on {independent}: no loss by "
        f"shared errors is shown, {_points(gap)}."
    )


def _on_next(panel: Panel) -> str:
    """Say whom to add to the best judge, and how many make the panel right most often."""
    first, second = panel.by_n_eff[:2]
    text = ""
    if second.n_eff is not None:
        worth = "the two err on different items"
        if second.n_eff <= 2:
            worth = f"the two are worth {second.n_eff:.1f} judges"
        text = f"Beside {first.judge}, {second.judge} is the most independent: {worth}. "
    best = max(panel.by_accuracy, key=lambda one: one.majority)
    chosen = panel.by_accuracy[: panel.by_accuracy.index(best) + 1]
    if len(chosen) == 1:
        text += f"Added one by one, no others make it right more often than {first.judge} alone. "
    else:
        names = joined([one.judge for one in chosen])
        text += f"Added one by one, {names} are right most often, on {percent(best.majority)}. "
    return f"{text}Both are chosen on these items, and look better on them than on others."


def _on_unread(panel: Panel) -> str:
    left_out = panel.n_labelled - panel.n_items
    unread, total = panel.n_unread, sum(judge.n_verdicts for judge in panel.judges)
    text = ""
    if unread:
        text = (
            f"{unread:,} of {total:,} verdicts {'was' if unread == 1 else 'were'} not read: that "
            "is no error, and counts nowhere. "
        )
    if left_out:
        text += (
            f"{plural(left_out, 'item')} of {panel.n_labelled:,} "
            f"{'is' if left_out == 1 else 'are'} left out, for not every judge has a verdict "
            "there that was read."
        )
    return text.strip()
