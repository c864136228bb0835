"""All that a study says of one judge."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from judge.studies.agreement import over_people
from judge.studies.alternative import alternative
from judge.studies.biases import Biases, biases
from judge.studies.boards import BoardsCompared, compare_boards
from judge.studies.calibration import Calibration, calibration
from judge.studies.ceiling import Ceiling, ceiling
from judge.studies.corrected import WinRate
from judge.studies.data import JudgeSaid, StudyData
from judge.studies.gates import Alternative, Evidence, FirstAnswer, Raters, first_answer
from judge.studies.items import Estimate, Items, Said
from judge.studies.options import StudyOptions
from judge.studies.plan import Plan
from judge.studies.powered_ratings import PoweredRatings, powered_ratings
from judge.studies.preferences import Preferences, preferences
from judge.studies.rates import Agreement, Baseline, agreement, baselines, voted
from judge.studies.resampling import FEW_PROMPTS, FEWEST_PEOPLE
from judge.studies.swaps import Swaps, swaps
from judge.studies.words import plural
from rating.errors import DataError, RatingError
from rating.typing import Bools, Ints

Found = TypeVar("Found")
NO_VOTERS = (
    "The votes do not say who cast them: intervals of the ratings with the judge's help allow for "
    "prompts, and are too narrow where one person voted often."
)
FEW_PEOPLE = (
    "The votes are of so few people that they say nothing of others: the intervals of agreement, "
    "biases and boards are for other prompts, not for other people."
)
Tell = Callable[[str], None]
"""Called with the part that is next."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgeStudy:
    """What was found of one judge.

    Attributes
    ----------
    over_people, over_people_without_ties : Estimate
        Agreement of the judge with people less that of people.
    boards : tuple of Preferences, or None
        By people and by the judge; None, as all that needs them, where votes or verdicts do not
        determine one: a warning says why.
    swaps : Swaps or None
        None where no item was judged in both orders.
    alternative : Alternative or None
        None where voters are not known, or too few can be tested.
    raters : {"expert", "skilled", "crowd"}
        What kind of raters the people were taken for.
    calibration : Calibration or None
        None where the judge gave no chances.
    powered : PoweredRatings or None
        None where the votes identify no ratings: a warning says why.
    n_unread : int
        Verdicts that were not read.
    n_items, n_votes, n_voters, n_prompts : int
        Of what has both a verdict and a vote; voters is None where they are not known.
    groups : mapping of str to JudgeStudy
    plan : Plan or None
        What to buy next; of a whole study, not of a group.
    win_rates : tuple of WinRate
        Corrected for the judge's errors; of a whole study.
    """

    name: str
    agreement: Agreement
    over_people: Estimate
    over_people_without_ties: Estimate
    ceiling: Ceiling
    baselines: tuple[Baseline, ...]
    swaps: Swaps | None
    alternative: Alternative | None
    raters: Raters
    calibration: Calibration | None
    boards: tuple[Preferences, Preferences] | None
    compared: BoardsCompared | None
    biases: Biases | None
    powered: PoweredRatings | None
    n_unread: int
    n_items: int
    n_votes: int
    n_voters: int | None
    n_prompts: int
    warnings: tuple[str, ...]
    groups: Mapping[str, "JudgeStudy"] = field(default_factory=dict)
    plan: Plan | None = None
    win_rates: tuple[WinRate, ...] = ()

    @property
    def first_answer(self) -> FirstAnswer:
        """Whether the judge may stand in for people, and why."""
        agreed, compared, moved = self.agreement, self.compared, self.biases
        effects = {} if moved is None else moved.effects
        return first_answer(
            Evidence(
                judge=agreed.judge.without_ties,
                people=agreed.people.without_ties,
                highest=self.ceiling.highest,
                judge_with_ties=agreed.judge.with_ties,
                people_with_ties=agreed.people.with_ties,
                gap=self.over_people_without_ties,
                gap_with_ties=self.over_people,
                rules=tuple(one.rule for one in self.baselines),
                alternative=self.alternative,
                raters=self.raters,
                biases={name: effect.difference for name, effect in effects.items()},
                own_model=None if moved is None else moved.own_model,
                correlation=None if compared is None else compared.spearman,
                correlation_noise_freed=None
                if compared is None
                else compared.spearman_noise_freed,
                n_prompts=self.n_prompts,
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What has both votes and verdicts: all that agreement is of."""

    items: Items
    people: Said
    judge: JudgeSaid
    n_verdicts: int


def shared_by(data: StudyData, judge: JudgeSaid) -> Shared:
    """Keep the items on which both people and a judge said something, numbered anew."""
    n = data.items.n
    both = _on(n, data.people.item) & _on(n, judge.verdicts.item)
    number = np.cumsum(both) - 1
    _, prompt = np.unique(data.items.prompt[both], return_inverse=True)
    gaps = {name: gap[both] for name, gap in data.items.gaps.items()}
    items = Items(data.items.models, data.items.pairs[both], prompt.astype(np.int64), gaps)

    def kept(said: Said) -> Said:
        rows = said.only(both[said.item])
        return replace(rows, item=number[rows.item])

    own = replace(judge, verdicts=kept(judge.verdicts), in_orders=kept(judge.in_orders))
    return Shared(items, kept(data.people), own, judge.verdicts.n)


def _on(n_items: int, item: Ints) -> Bools:
    found = np.zeros(n_items, dtype=bool)
    found[item] = True
    return found


def study_judge(
    data: StudyData, judge: JudgeSaid, options: StudyOptions, tell: Tell
) -> JudgeStudy:
    """Find all of one judge; raises `DataError` if it read no item that people voted on."""
    items, people, verdicts = data.items, data.people, judge.verdicts
    draws: dict[str, Any] = {"rounds": options.rounds, "level": options.level}
    shared = shared_by(data, judge)
    if not shared.items.n:
        msg = (
            f"The judge {judge.name!r} read no item that people voted on: leave its verdicts out, "
            "or name the votes on them."
        )
        raise DataError(msg)
    warnings = [*data.warnings, *_few(shared), *_few_people(data)]
    tell("agreement")
    agreed = agreement(shared.items, shared.people, shared.judge.verdicts, options)
    leads = [
        over_people(
            shared.items,
            shared.judge.verdicts,
            shared.people,
            ties=ties,
            rng=options.rng(),
            **draws,
        )
        for ties in (True, False)
    ]
    tell("ceiling")
    top = ceiling(shared.items, shared.people, shared.judge.verdicts, rng=options.rng(), **draws)
    tell("baselines")
    rules = baselines(
        shared.items, voted(shared.items, shared.people, options), shared.judge, options
    )
    swapped = None
    if _both_orders(items, judge.in_orders):
        swapped = swaps(items, judge.in_orders, rng=options.rng(), **draws)
    tell("boards")
    boards = identified("Boards", lambda: _boards(items, people, verdicts), warnings)
    compared = moved = None
    if boards is not None:
        compared = compare_boards(*boards, rng=options.rng(), **draws)
        warnings += compared.warnings
        tell("bias")
        moved = _moved(data, judge, boards, options, warnings)
    tell("prediction-powered ratings")
    powered = _powered(data, verdicts, options, warnings)
    return JudgeStudy(
        name=judge.name,
        agreement=agreed,
        over_people=leads[0],
        over_people_without_ties=leads[1],
        ceiling=top,
        baselines=rules,
        swaps=swapped,
        alternative=_tested(data, shared, options),
        raters=options.raters,
        calibration=_calibrated(shared, options),
        boards=boards,
        compared=compared,
        biases=moved,
        powered=powered,
        n_unread=judge.n_unread,
        n_items=shared.items.n,
        n_votes=shared.people.n,
        n_voters=len(np.unique(shared.people.rater)) if data.voters else None,
        n_prompts=shared.items.n_prompts,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _tested(data: StudyData, shared: Shared, options: StudyOptions) -> Alternative | None:
    if not data.voters:
        return None
    judged = shared.judge.verdicts
    return alternative(shared.items, shared.people, judged, raters=options.raters)


def _calibrated(shared: Shared, options: StudyOptions) -> Calibration | None:
    for said in (shared.judge.verdicts, shared.judge.in_orders):
        if not np.isnan(said.chance).all():
            return calibration(
                shared.items,
                shared.people,
                said,
                rounds=options.rounds,
                rng=options.rng(),
                level=options.level,
            )
    return None


def _both_orders(items: Items, said: Said) -> bool:
    a_first, b_first = (_on(items.n, said.item[said.first == side]) for side in (1, -1))
    return bool((a_first & b_first).any())


def _boards(items: Items, people: Said, verdicts: Said) -> tuple[Preferences, Preferences]:
    return preferences(items, people, people=True), preferences(items, verdicts)


def _moved(
    data: StudyData,
    judge: JudgeSaid,
    boards: tuple[Preferences, Preferences],
    options: StudyOptions,
    warnings: list[str],
) -> Biases | None:
    found = identified(
        "Biases",
        lambda: biases(data.items, data.people, judge, boards, options.level),
        warnings,
    )
    if found is not None:
        warnings += found.warnings
    return found


def _powered(
    data: StudyData, verdicts: Said, options: StudyOptions, warnings: list[str]
) -> PoweredRatings | None:
    found = identified(
        "Prediction-powered ratings",
        lambda: powered_ratings(data.items, data.people, verdicts, level=options.level),
        warnings,
    )
    if found is not None:
        warnings += found.warnings
        if not data.voters:
            warnings.append(NO_VOTERS)
    return found


def _few_people(data: StudyData) -> list[str]:
    busy = np.bincount(data.people.rater).astype(np.float64)
    few = busy.sum() ** 2 < FEWEST_PEOPLE * (busy**2).sum()
    return [FEW_PEOPLE] if data.voters and few else []


def identified(what: str, find: Callable[[], Found], warnings: list[str]) -> Found | None:
    """Find something that the data may not determine: then say why, and give None."""
    try:
        return find()
    except RatingError as error:
        warnings.append(f"{what}: {error}")
        return None


def _few(shared: Shared) -> list[str]:
    found = []
    n = shared.items.n_prompts
    if n < FEW_PROMPTS:
        found.append(
            f"Votes and verdicts are on {plural(n, 'prompt')}: under {FEW_PROMPTS}, intervals, "
            "which draw prompts, are too narrow."
        )
    judge = shared.judge
    if judge.n_unread:
        total = judge.n_unread + shared.n_verdicts
        found.append(
            f"{judge.n_unread:,} of {total:,} verdicts were not read: no ties, left out of "
            "every figure."
        )
    return found
