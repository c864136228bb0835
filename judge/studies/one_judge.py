"""What a study says of one judge."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np

from judge.studies.agreement import over_people
from judge.studies.alternative import alternative
from judge.studies.biases import TERMS, Biases, biases, own_model
from judge.studies.boards import (
    BoardsCompared,
    Preferences,
    compare_boards,
    preferences,
    ranked,
    reversed_pairs,
)
from judge.studies.calibration import Calibration, calibration
from judge.studies.corrected import WinRate
from judge.studies.correlations import figures_of
from judge.studies.data import JudgeVerdicts, Shared, StudyData, shared_by
from judge.studies.estimates import FEW_PROMPTS, FEWEST_PEOPLE, Estimate, plural
from judge.studies.favouritism import favouritism
from judge.studies.gates import (
    MIN_ITEMS,
    MIN_PEOPLE,
    Alternative,
    Evidence,
    FirstAnswer,
    Raters,
    Rule,
    Unranked,
    first_answer,
)
from judge.studies.items import Labels
from judge.studies.options import StudyOptions
from judge.studies.plan import Plan
from judge.studies.powered_ratings import POWERED, PoweredRatings, powered_ratings
from judge.studies.rates import Agreement, Swaps, agreement, baselines, swaps, voted
from judge.studies.reliability import Ceiling, ceiling
from judge.studies.separability import Pair
from judge.studies.system_ranking import SystemRanking, system_ranking
from rating.errors import DataError, NotIdentifiedError, RatingError

Value = TypeVar("Value")
NO_VOTERS = (
    "The votes do not say who cast them: intervals of the ratings with the judge's help allow for "
    "prompts, and are too narrow where one person voted often."
)
FEW_PEOPLE = (
    "The votes are of so few people that they say nothing of others: the intervals of agreement, "
    "biases and boards are for other prompts, not for other people."
)
Tell = Callable[[str], None]
"""Called with the name of the next part."""

WHY: Mapping[str, str] = {
    "agreement": "no item has both a vote and a verdict",
    "agreement without ties": "on no item both a vote and a verdict prefer a side",
    "human_agreement": "no item that was judged has votes of two people",
    "human_agreement without ties": "on no item that was judged do two people prefer a side",
    "ceiling": "it takes items that were judged, and on which two people prefer a side",
    "kappa": "votes and verdicts are all of one kind, or there are none to compare",
    "human_kappa": "it takes items with votes of two people, and votes of more than one kind",
    "alpha": "it takes items with votes of two people, and votes of more than one kind",
    "ac1": "no item that was judged has votes of two people",
    "rank_correlation": "it takes three models that both votes and verdicts rate",
    "alternative": f"it takes {MIN_PEOPLE} known voters, each with {MIN_ITEMS} judged items that "
    "others voted on as well",
    "bias of position": "it takes votes and verdicts that say what was shown first",
    "bias of length": "it takes lengths or texts of responses, in either file or with --outputs",
    "bias of format": "it takes texts of responses, in either file or with --outputs",
    "bias of refusal": "it takes responses that decline and others that do not, with --outputs or "
    "in columns refused_a and refused_b",
    "bias of self": "it takes a model of the judge's name and three others, rated by both",
}
"""Why a figure is not defined."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgeStudy:
    """The study of one judge.

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
    ranking : SystemRanking or None
        None where too few pairs of models have enough items.
    n_unread : int
        Verdicts that were not read.
    n_items, n_votes, n_voters, n_prompts : int
        Of what has both a verdict and a vote; voters is None where they are not known.
    favouritism, reversed_pairs, unranked
        As of `judge.studies.gates.Evidence`.
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
    baselines: tuple[Rule, ...]
    swaps: Swaps | None
    alternative: Alternative | None
    raters: Raters
    calibration: Calibration | None
    boards: tuple[Preferences, Preferences] | None
    compared: BoardsCompared | None
    biases: Biases | None
    powered: PoweredRatings | None
    ranking: SystemRanking | None
    n_unread: int
    n_items: int
    n_votes: int
    n_voters: int | None
    n_prompts: int
    warnings: tuple[str, ...]
    favouritism: Mapping[str, Estimate]
    reversed_pairs: tuple[Pair, ...]
    unranked: Unranked
    groups: Mapping[str, "JudgeStudy"] = field(default_factory=dict)
    plan: Plan | None = None
    win_rates: tuple[WinRate, ...] = ()

    @property
    def evidence(self) -> Evidence:
        """What the verdict depends on."""
        agreed, compared, moved = self.agreement, self.compared, self.biases
        effects = {} if moved is None else moved.effects
        return Evidence(
            judge=agreed.judge.without_ties,
            people=agreed.people.without_ties,
            highest=self.ceiling.highest,
            judge_with_ties=agreed.judge.with_ties,
            people_with_ties=agreed.people.with_ties,
            gap=self.over_people_without_ties,
            gap_with_ties=self.over_people,
            rules=self.baselines,
            alternative=self.alternative,
            raters=self.raters,
            biases={name: effect.difference for name, effect in effects.items()},
            own_model=None if moved is None else moved.own_model,
            correlation=None if compared is None else compared.spearman,
            correlation_noise_freed=None if compared is None else compared.spearman_noise_freed,
            n_prompts=self.n_prompts,
            favouritism=self.favouritism,
            reversed_pairs=self.reversed_pairs,
            unranked=self.unranked,
        )

    @property
    def first_answer(self) -> FirstAnswer:
        """Whether the judge may replace human raters, and why."""
        return first_answer(self.evidence)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that ``arena study judge`` writes; what is not known is null."""
        biases, powered, test = self.biases, self.powered, self.alternative
        answer = self.first_answer
        return {
            "verdict": answer.verdict,
            "reasons": list(answer.reasons),
            "biased_models": [*self.evidence.biased],
            "reference": dict.fromkeys(("person", "majority")) if test is None else test.reference,
            "decides_at": test and test.decides_at,
            "favouritism": {
                "models": [
                    {"model": name} | one.to_dict() for name, one in self.favouritism.items()
                ],
                "reversed_pairs": [list(pair) for pair in self.reversed_pairs],
            },
            "first_answer": answer.to_dict(),
            "agreement": self.agreement.judge.to_dict(),
            "human_agreement": self.agreement.people.to_dict(),
            **{name: estimate.to_dict() for name, estimate in self._coefficients().items()},
            "rank_correlation": figures_of(self.compared),
            "separability": self.compared and self.compared.pairs_to_dict(),
            "system_ranking": self.ranking and self.ranking.to_dict(),
            "alternative": self.alternative and self.alternative.to_dict(),
            "bias": dict.fromkeys(TERMS) if biases is None else biases.to_dict(),
            "moderation": biases and biases.moderation and asdict(biases.moderation),
            "ppi": dict.fromkeys(POWERED) if powered is None else powered.to_dict(),
            "groups": {value: group.to_dict() for value, group in self.groups.items()},
            "n_unread": self.n_unread,
            "warnings": [*self.warnings, *self.missing()],
        }

    def missing(self) -> Iterator[str]:
        """Say of each figure that is not defined why it is not."""
        judge, people = self.agreement.judge, self.agreement.people
        figures = {
            "agreement": judge.with_ties,
            "agreement without ties": judge.without_ties,
            "human_agreement": people.with_ties,
            "human_agreement without ties": people.without_ties,
            **self._coefficients(),
            "rank_correlation": None if self.compared is None else self.compared.spearman,
        }
        for term in TERMS:
            effect = None if self.biases is None else self.biases.effects[term]
            figures[f"bias of {term}"] = None if effect is None else effect.difference
        for name, estimate in figures.items():
            if estimate is None or estimate.value is None:
                yield f"There is no {name}: {WHY[name]}."
        if self.alternative is None:
            yield f"There is no alternative: {WHY['alternative']}."

    def _coefficients(self) -> dict[str, Estimate]:
        return {
            "ceiling": self.ceiling.highest,
            "kappa": self.agreement.kappa,
            "human_kappa": self.agreement.people_kappa,
            "alpha": self.agreement.alpha,
            "ac1": self.agreement.ac1,
        }


def study_judge(
    data: StudyData, judge: JudgeVerdicts, options: StudyOptions, tell: Tell
) -> JudgeStudy:
    """Study one judge; raises `DataError` if it read no item that people voted on."""
    items, people, verdicts = data.items, data.people, judge.verdicts
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
    both = (shared.items, shared.judge.verdicts, shared.people)
    leads = [over_people(*both, options.draws(), ties=ties) for ties in (True, False)]
    tell("ceiling")
    top = ceiling(shared.items, shared.people, shared.judge.verdicts, draws=options.draws())
    tell("baselines")
    rules = baselines(
        shared.items, voted(shared.items, shared.people, options), shared.judge, options
    )
    swapped = None
    if _both_orders(judge.in_orders):
        swapped = swaps(items, judge.in_orders, options.draws())
    tell("boards")
    of_people, of_judge = (
        identified("Boards", board, warnings)
        for board in (
            lambda: preferences(items, people, people=True),
            lambda: preferences(items, verdicts),
        )
    )
    boards = None if of_people is None or of_judge is None else (of_people, of_judge)
    unranked: Unranked = ""
    if of_people is not None and ranked(of_people, of_people.models).any():
        unranked = "" if of_judge is not None else "not_identified"
        if not shared.judge.verdicts.label.any():
            unranked = "no_side"
    compared = moved = None
    if boards is not None:
        compared = compare_boards(*boards, options.draws())
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
        ranking=_ranking(data, verdicts, options),
        n_unread=judge.n_unread,
        n_items=shared.items.n,
        n_votes=shared.people.n,
        n_voters=len(np.unique(shared.people.rater)) if data.voters_known else None,
        n_prompts=shared.items.n_prompts,
        warnings=tuple(dict.fromkeys(warnings)),
        favouritism=favouritism(shared.items, shared.people, shared.judge.verdicts),
        reversed_pairs=() if boards is None else reversed_pairs(*boards),
        unranked=unranked,
    )


def _tested(data: StudyData, shared: Shared, options: StudyOptions) -> Alternative | None:
    if not data.voters_known:
        return None
    judged = shared.judge.verdicts
    return alternative(shared.items, shared.people, judged, raters=options.raters)


def _calibrated(shared: Shared, options: StudyOptions) -> Calibration | None:
    for labels in (shared.judge.verdicts, shared.judge.in_orders):
        if not np.isnan(labels.probability).all():
            return calibration(shared.items, shared.people, labels, options.draws())
    return None


def _ranking(data: StudyData, verdicts: Labels, options: StudyOptions) -> SystemRanking | None:
    try:
        return system_ranking(data.items, data.people, verdicts, options.draws())
    except NotIdentifiedError:
        return None


def _both_orders(labels: Labels) -> bool:
    return bool(np.isin(labels.item[labels.first == 1], labels.item[labels.first == -1]).any())


def _moved(
    data: StudyData,
    judge: JudgeVerdicts,
    boards: tuple[Preferences, Preferences],
    options: StudyOptions,
    warnings: list[str],
) -> Biases | None:
    moved = identified(
        "Biases",
        lambda: biases(
            data.items,
            data.people,
            judge.in_orders,
            own_model=own_model(judge.name, data.items.models),
            boards=boards,
            level=options.level,
        ),
        warnings,
    )
    if moved is not None:
        warnings += moved.warnings
    return moved


def _powered(
    data: StudyData, verdicts: Labels, options: StudyOptions, warnings: list[str]
) -> PoweredRatings | None:
    powered = identified(
        "Prediction-powered ratings",
        lambda: powered_ratings(data.items, data.people, verdicts, level=options.level),
        warnings,
    )
    if powered is not None:
        warnings += powered.warnings
        if not data.voters_known:
            warnings.append(NO_VOTERS)
    return powered


def _few_people(data: StudyData) -> list[str]:
    busy = np.bincount(data.people.rater).astype(np.float64)
    few = busy.sum() ** 2 < FEWEST_PEOPLE * (busy**2).sum()
    return [FEW_PEOPLE] if data.voters_known and few else []


def identified(what: str, find: Callable[[], Value], warnings: list[str]) -> Value | None:
    """Compute what the data may not determine; return None and add a warning if they do not."""
    try:
        return find()
    except RatingError as error:
        warnings.append(f"{what}: {error}")
        return None


def _few(shared: Shared) -> list[str]:
    warnings = []
    n = shared.items.n_prompts
    if n < FEW_PROMPTS:
        warnings.append(
            f"Votes and verdicts are on {plural(n, 'prompt')}: under {FEW_PROMPTS}, intervals, "
            "which draw prompts, are too narrow."
        )
    judge = shared.judge
    if judge.n_unread:
        total = judge.n_unread + shared.n_verdicts
        warnings.append(
            f"{judge.n_unread:,} of {total:,} verdicts were not read: no ties, left out of "
            "every figure."
        )
    return warnings
