"""Studies of judges against people: each judge, judges against each other, and all together.

`study_judges` compares the verdicts of one judge or several with votes on the same items and
decides whether each may replace people. `study_judge` computes all for one judge, `side_by_side`
agreement, its price and where judges differ.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from judge.studies.alignment import LIST_TERM, Outputs
from judge.studies.alternative import Calibration, WinRate, alternative, calibration, win_rates
from judge.studies.biases import (
    LENGTH,
    PREFERRED,
    SELF,
    TERMS,
    Biases,
    biases,
    favouritism,
    own_model,
    preferred,
)
from judge.studies.boards import (
    NOISE_FREED,
    POSITION,
    BoardsCompared,
    Preferences,
    SystemRanking,
    compare_boards,
    contest,
    figures_of,
    preferences,
    ranked,
    reversed_pairs,
    system_ranking,
)
from judge.studies.data import JudgeVerdicts, StudyData, read_study, shared_by
from judge.studies.estimates import (
    FEW_PROMPTS,
    FEWEST_PEOPLE,
    Draws,
    Estimate,
    counts,
    gap_of,
    over_another,
    over_people,
    pair_agreement,
)
from judge.studies.gates import (
    MIN_ITEMS,
    MIN_PEOPLE,
    MIN_PROMPTS,
    Evidence,
    FirstAnswer,
    Unranked,
    first_answer,
)
from judge.studies.licence import Licence
from judge.studies.options import StudyOptions
from judge.studies.plan import Plan, plan_votes
from judge.studies.powered import POWERED, PoweredRatings, powered_ratings
from judge.studies.reliability import (
    Agreement,
    Ceiling,
    agreement,
    baselines,
    ceiling,
    rerun_variance,
    swaps,
    tie_thresholds,
    voted,
)
from judge.studies.rows import Items, Labels, Source
from judge.tables.cases import read_outputs, read_prompts
from rating.errors import DataError, NotIdentifiedError, RatingError
from rating.leave_out import influence_factor, quantile
from rating.sentences import concerning, plural
from rating.typing import Bools, Floats
from rating.variants import to_points

# One judge


Value = TypeVar("Value")
NO_VOTERS = (
    "The votes do not name their voters: prediction-powered intervals are clustered by "
    "prompt alone, and are too narrow if some people voted often."
)
FEW_PEOPLE = (
    "The votes are by too few people to generalise to others: the intervals of "
    "agreement, biases and boards are for other prompts, not for other people."
)
Tell = Callable[[str], None]
"""Called with the name of the next part."""

WHY: Mapping[str, str] = {
    "agreement": "no item has both a vote and a verdict",
    "agreement without ties": "no item has both a vote and a verdict that prefer a side",
    "human_agreement": "no judged item has votes of two people",
    "human_agreement without ties": "no judged item has two people who prefer a side",
    "ceiling": "it needs judged items on which two people prefer a side",
    "kappa": "all votes and verdicts are ties, or there are none to compare",
    "human_kappa": "it needs items with votes of two people, and a vote that is no tie",
    "alpha": "it needs items with votes of two people, and a vote that is no tie",
    "ac1": "no judged item has votes of two people",
    "rank_correlation": "it needs three models that both votes and verdicts rate",
    "alternative": (
        f"it needs {MIN_PEOPLE} voters with {MIN_ITEMS} judged items that others voted on"
    ),
    "bias of position": "it needs votes and verdicts that state which answer was shown first",
    "bias of length": "it needs lengths or texts of responses, in either file or with --outputs",
    "bias of format": "it needs texts of responses, in either file or with --outputs",
    "bias of refusal": (
        "it needs responses that decline, by --outputs or columns refused_a and refused_b"
    ),
    "bias of self": "it needs a model of the judge's name and three others, rated by both",
}
"""Why a figure is not defined."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgeStudy:
    """The study of one judge.

    Attributes
    ----------
    evidence : Evidence
        What the verdict depends on.
    boards : tuple of Preferences, or None
        By people and by the judge; None, as all that needs them, where votes or verdicts do not
        determine one: a warning gives the reason.
    swaps : mapping of str to Estimate, or None
        None where no item was judged in both orders.
    calibration : Calibration or None
        None where the judge gave no chances.
    powered : PoweredRatings or None
        None where the votes identify no ratings: a warning gives the reason.
    ranking : SystemRanking or None
        None where too few pairs of models have enough items.
    n_unread, n_verdicts : int
        Verdicts that were not read, and that were.
    n_items, n_votes, n_voters : int
        Of what has both a verdict and a vote; voters is None where they are not known.
    groups : mapping of str to JudgeStudy
    plan : Plan or None
        What to buy next; of a whole study, not of a group.
    win_rates : tuple of WinRate
        Corrected for the judge's errors; of a whole study.
    preferred : mapping of str to (Estimate, Estimate)
        By term of `judge.studies.biases.PREFERRED`, of votes and of verdicts, as
        `judge.studies.biases.preferred` estimates them.
    rerun_variance : Estimate
        Of `judge.studies.reliability.rerun_variance`; no value where nothing was asked again.
    cost, seconds : float or None
        Of a thousand items.
    outcomes : tuple of tuple of float
        Shares of pairs by the vote and by the verdict, each for the model that people rate higher,
        a tie, or the other; empty without people's board.
    thresholds : tuple of mapping
        Of graded preferences, see `judge.studies.reliability.tie_thresholds`.
    """

    name: str
    evidence: Evidence
    agreement: Agreement
    ceiling: Ceiling
    swaps: Mapping[str, Estimate] | None
    calibration: Calibration | None
    boards: tuple[Preferences, Preferences] | None
    compared: BoardsCompared | None
    biases: Biases | None
    powered: PoweredRatings | None
    ranking: SystemRanking | None
    n_unread: int
    n_verdicts: int
    n_items: int
    n_votes: int
    n_voters: int | None
    warnings: tuple[str, ...]
    preferred: Mapping[str, tuple[Estimate, Estimate]]
    rerun_variance: Estimate
    cost: float | None
    seconds: float | None
    outcomes: tuple[tuple[float, ...], ...]
    thresholds: tuple[Mapping[str, Any], ...]
    groups: Mapping[str, "JudgeStudy"] = field(default_factory=dict)
    plan: Plan | None = None
    win_rates: tuple[WinRate, ...] = ()

    @property
    def first_answer(self) -> FirstAnswer:
        """Whether the judge may replace human raters, and why."""
        return first_answer(self.evidence)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that ``arena study judge`` writes; what is not known is null."""
        biases, powered, evidence = self.biases, self.powered, self.evidence
        test, answer, compared = evidence.alternative, self.first_answer, self.compared
        return {
            "verdict": answer.verdict,
            "reasons": list(answer.reasons),
            "biased_models": [*evidence.biased],
            "reference": dict.fromkeys(("person", "majority")) if test is None else test.reference,
            "decides_at": test and test.decides_at,
            "favouritism": {
                "models": [
                    {"model": name} | one.to_dict() for name, one in evidence.favouritism.items()
                ],
                "reversed_pairs": [list(pair) for pair in evidence.reversed_pairs],
            },
            "first_answer": answer.to_dict(),
            "agreement": self.agreement.judge.to_dict(),
            "human_agreement": self.agreement.people.to_dict(),
            **{name: estimate.to_dict() for name, estimate in self._coefficients().items()},
            "outcomes": [list(line) for line in self.outcomes],
            "tie_thresholds": list(self.thresholds),
            "preferred": {
                term: dict(zip(("people", "judge"), (one.to_dict() for one in both), strict=True))
                for term, both in self.preferred.items()
            },
            "rank_correlation": figures_of({} if compared is None else compared.figures),
            "separability": compared and compared.separability,
            "system_ranking": self.ranking and self.ranking.to_dict(),
            "alternative": test and asdict(test),
            "bias": dict.fromkeys(TERMS) if biases is None else biases.to_dict(),
            "moderation": biases
            and biases.moderation
            and {name: one.to_dict() for name, one in biases.moderation.items()},
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
            "rank_correlation": self.evidence.correlation,
        }
        for term in TERMS:
            effect = None if self.biases is None else self.biases.effects[term]
            figures[f"bias of {term}"] = None if effect is None else effect.difference
        for name, estimate in figures.items():
            if estimate is None or estimate.value is None:
                yield f"Not estimated: {name} ({WHY[name]})."
        if self.evidence.alternative is None:
            yield f"Not estimated: alternative-annotator test ({WHY['alternative']})."

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
    """Study one judge that has a parsed verdict on an item that people voted on."""
    items, people, verdicts = data.items, data.people, judge.verdicts
    shared = shared_by(data, judge)
    own, cast = shared.judges[0], shared.people
    warnings = [*data.warnings, *_few(shared.items.n_prompts, judge), *_few_people(data)]
    tell("agreement")
    agreed = agreement(shared.items, cast, own.verdicts, options)
    both = (shared.items, own.verdicts, cast)
    gap_with_ties, gap = (over_people(*both, options.draws(), ties=ties) for ties in (True, False))
    tell("ceiling")
    top = ceiling(shared.items, cast, own.verdicts, draws=options.draws())
    tell("baselines")
    rules = baselines(shared.items, voted(shared.items, cast, options), own, options)
    swapped = None
    labels = judge.in_orders
    if np.isin(labels.item[labels.first == 1], labels.item[labels.first == -1]).any():
        swapped = swaps(items, labels, options.draws())
    tell("boards")
    of_people, of_judge = (
        _identified("Boards", board, warnings)
        for board in (
            lambda: preferences(items, people, people=True),
            lambda: preferences(items, verdicts),
        )
    )
    boards = None if of_people is None or of_judge is None else (of_people, of_judge)
    unranked: Unranked = ""
    if of_people is not None and ranked(of_people, of_people.models).any():
        unranked = "" if of_judge is not None else "not_identified"
        if not own.verdicts.label.any():
            unranked = "no_side"
    compared = moved = None
    if boards is not None:
        compared = compare_boards(*boards, options.draws())
        warnings += compared.warnings
        tell("bias")
        moved = _moved(data, judge, boards, options, warnings)
    tell("prediction-powered ratings")
    powered = _powered(data, verdicts, options, warnings)
    effects = {} if moved is None else moved.effects
    figures = {} if compared is None else compared.figures
    return JudgeStudy(
        name=judge.name,
        evidence=Evidence(
            judge=agreed.judge.without_ties,
            people=agreed.people.without_ties,
            highest=top.highest,
            judge_with_ties=agreed.judge.with_ties,
            people_with_ties=agreed.people.with_ties,
            gap=gap,
            gap_with_ties=gap_with_ties,
            rules=rules,
            alternative=(
                alternative(shared.items, cast, own.verdicts, raters=options.raters)
                if data.voters_known
                else None
            ),
            raters=options.raters,
            biases={name: effect.difference for name, effect in effects.items()},
            own_model=None if moved is None else moved.own_model,
            correlation=figures.get("spearman"),
            correlation_noise_freed=figures.get("spearman" + NOISE_FREED),
            n_prompts=shared.items.n_prompts,
            favouritism=favouritism(shared.items, cast, own.verdicts),
            reversed_pairs=() if boards is None else reversed_pairs(*boards),
            unranked=unranked,
        ),
        agreement=agreed,
        ceiling=top,
        swaps=swapped,
        calibration=_calibrated(shared, options),
        boards=boards,
        compared=compared,
        biases=moved,
        powered=powered,
        ranking=_ranking(data, verdicts, options),
        n_unread=judge.n_unread,
        n_verdicts=judge.verdicts.n,
        n_items=shared.items.n,
        n_votes=cast.n,
        n_voters=len(np.unique(cast.rater)) if data.voters_known else None,
        warnings=tuple(dict.fromkeys(warnings)),
        preferred={
            term: (
                preferred(shared.items, cast, term, options.draws()),
                preferred(shared.items, labels, term, options.draws()),
            )
            for term in PREFERRED
            for labels in [own.in_orders if term == POSITION else own.verdicts]
            if term == POSITION or term in shared.items.gaps
        },
        rerun_variance=rerun_variance(items, judge.in_orders, options.draws()),
        cost=None if judge.cost is None else THOUSAND * judge.cost,
        seconds=None if judge.seconds is None else THOUSAND * judge.seconds,
        outcomes=() if of_people is None else _outcomes(shared, of_people),
        thresholds=tie_thresholds(shared.items, cast, own.verdicts),
    )


def _outcomes(shared: StudyData, people: Preferences) -> tuple[tuple[float, ...], ...]:
    """Return `JudgeStudy.outcomes`, items turned to the model that people rate higher.

    Where they rate both alike, or one is not rated, half of each item either way round.
    """
    labels = shared.people, shared.judges[0].verdicts
    pairs = np.einsum("ij,ik->ijk", *(counts(shared.items, one) for one in labels))
    side_a = (1 + np.sign(np.nan_to_num(_distances(shared.items, people)).round(6))) / 2
    pairs = np.tensordot(side_a, pairs[:, ::-1, ::-1], 1) + np.tensordot(1 - side_a, pairs, 1)
    return tuple(map(tuple, (pairs / max(pairs.sum(), 1.0)).tolist()))


def _calibrated(shared: StudyData, options: StudyOptions) -> Calibration | None:
    for labels in (shared.judges[0].verdicts, shared.judges[0].in_orders):
        if not np.isnan(labels.probability).all():
            return calibration(shared.items, shared.people, labels, options.draws())
    return None


def _ranking(data: StudyData, verdicts: Labels, options: StudyOptions) -> SystemRanking | None:
    try:
        return system_ranking(data.items, data.people, verdicts, options.draws())
    except NotIdentifiedError:
        return None


def _moved(
    data: StudyData,
    judge: JudgeVerdicts,
    boards: tuple[Preferences, Preferences],
    options: StudyOptions,
    warnings: list[str],
) -> Biases | None:
    moved = _identified(
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
    powered = _identified(
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


def _identified(what: str, find: Callable[[], Value], warnings: list[str]) -> Value | None:
    """Compute what the data may not determine; return None and add a warning if they do not."""
    try:
        return find()
    except RatingError as error:
        warnings.append(f"{what}: {error}")
        return None


def _few(n: int, judge: JudgeVerdicts) -> list[str]:
    warnings = []
    if n < FEW_PROMPTS:
        warnings.append(
            f"Votes and verdicts are on {plural(n, 'prompt')}: with fewer than {FEW_PROMPTS}, "
            "intervals are too narrow, because they resample prompts."
        )
    if judge.n_unread:
        total = judge.n_unread + judge.verdicts.n
        warnings.append(
            f"{judge.n_unread:,} of {total:,} verdicts were not parsed: they are not ties, and "
            "are excluded from every figure."
        )
    return warnings


# Judges against each other


COIN = 0.5
"""How often one who reads nothing agrees where both prefer a side."""
THOUSAND = 1000
MOST_SPOKEN = 3

LENGTHS = (
    ("Lengths differ by at most a fifth", 0.0, 0.25),
    ("One is up to twice as long", 0.25, 1.0),
    ("One is more than twice as long", 1.0, np.inf),
)
"""Doublings by which one answer is longer: from, and under."""
DISTANCES = (
    ("Models within 50 points", 0.0, 50.0),
    ("50 to 150 points apart", 50.0, 150.0),
    ("More than 150 points apart", 150.0, np.inf),
)
"""How far apart people's votes rate the two models of an item: near ones are hard to tell."""


@dataclass(frozen=True, slots=True)
class _Lead:
    """By how much one judge agrees with people more often than another.

    Attributes
    ----------
    without_ties, with_ties : Estimate
        Difference of agreement, on the items that both have a verdict and a vote on.
    certain : bool
        Whether the first, at a level over all pairs of judges (Bonferroni), excludes 0, on
        `MIN_PROMPTS` prompts or more.
    items, prompts : int
    usd_per_point : float or None
        Dollars a thousand items that a percentage point more costs by going from the worse to
        the better judge; below 0 where the better is cheaper; None where neither is certainly
        better, or a cost is not known.
    """

    first: str
    second: str
    without_ties: Estimate
    with_ties: Estimate
    certain: bool
    items: int
    prompts: int
    usd_per_point: float | None


@dataclass(frozen=True, slots=True)
class Part:
    """The agreement of all judges on some of the items that all of them have a verdict on.

    Attributes
    ----------
    by : str
        ``all``, ``length``, ``difficulty``, or the column that parts the items.
    agreement : mapping of str to Estimate
        Of each judge, ties excluded; without a value under `MIN_PROMPTS` prompts.
    """

    by: str
    part: str
    items: int
    prompts: int
    agreement: dict[str, Estimate]


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

    leads: tuple[_Lead, ...]
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
        leads = self.leads if len(self.costs) <= MOST_SPOKEN else self.of_best
        return tuple(map(_sentence, leads))

    @property
    def of_best(self) -> tuple[_Lead, ...]:
        """The pairs with the judge that leads the others by most, on what it shares with each."""
        ahead = dict.fromkeys(self.costs, 0.0)
        for lead in self.leads:
            ahead[lead.first] += lead.without_ties.value or 0.0
            ahead[lead.second] -= lead.without_ties.value or 0.0
        best = max(ahead, key=ahead.__getitem__)
        return tuple(lead for lead in self.leads if best in (lead.first, lead.second))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "pairs": list(map(asdict, self.leads)),
            "costs": {
                name: {"usd_per_thousand": cost, "usd_per_point_above_coin": self.price(name)}
                for name, cost in self.costs.items()
            },
            "parts": list(map(asdict, self.parts)),
            "sentences": list(self.sentences),
        }


def side_by_side(data: StudyData, options: StudyOptions, people: Preferences | None) -> SideBySide:
    """Compare judges on the same items; a single one has no pairs.

    Parameters
    ----------
    people : Preferences or None
        The board by people, for how hard items are; None leaves that out.
    """
    costs = {
        judge.name: None if judge.cost is None else THOUSAND * judge.cost for judge in data.judges
    }
    pairs = [*combinations(data.judges, 2)]
    leads = tuple(_lead(data, pair, options, len(pairs), costs) for pair in pairs)
    whole, *some = _parts(data, options, people)
    return SideBySide(leads, costs, (whole, *(part for part in some if part.items)))


def _lead(
    data: StudyData,
    pair: tuple[JudgeVerdicts, JudgeVerdicts],
    options: StudyOptions,
    n_pairs: int,
    costs: Mapping[str, float | None],
) -> _Lead:
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
    return _Lead(
        *names,
        without_ties=plain,
        with_ties=lead(options.draws(), ties=True),
        certain=certain,
        items=int(shared.sum()),
        prompts=n_prompts,
        usd_per_point=_price(plain, *(costs[name] for name in names)) if certain else None,
    )


def _judged(items: Items, people: Labels, judges: Sequence[JudgeVerdicts]) -> Bools:
    """Return the items with a vote and a verdict of each of these judges."""
    every = np.arange(items.n)
    both = np.isin(every, people.item)
    for judge in judges:
        both &= np.isin(every, judge.verdicts.item)
    return both


def certainly(one: Estimate, n_prompts: int, level: float) -> bool:
    """Whether an interval, opened as few prompts ask for, excludes 0.

    Percentiles of prompts drawn again are too near by ``sqrt(n / (n - 1))`` and by what Student's
    t is wider than the normal.

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
    return Part(by, name, int(rows.sum()), n_prompts, agreement)


def _sentence(lead: _Lead) -> str:
    one = lead.without_ties
    if one.value is None:
        return (
            f"{lead.first} and {lead.second} cannot be compared: on no item do both and a vote "
            "prefer a side."
        )
    gap = f"{gap_of(one)} percentage points on {plural(lead.items, 'shared item')}"
    if not lead.certain:
        few = "" if lead.prompts >= MIN_PROMPTS else f", of {plural(lead.prompts, 'prompt')}"
        return (
            f"We do not find a difference between {lead.first} and {lead.second} in agreement "
            f"with people: {gap}{few}."
        )
    price, on_price = lead.usd_per_point, ""
    if price is not None:
        on_price = f", and each of these points costs ${price:.2g} more per thousand items"
        on_price = on_price if price > 0 else ", and costs no more"
    better, worse = (lead.first, lead.second) if one.value > 0 else (lead.second, lead.first)
    text = f"{better} agrees with people more often than {worse}: by {gap_of(_turned(one))}"
    return f"{text} percentage points on {plural(lead.items, 'shared item')}{on_price}."


def _turned(one: Estimate) -> Estimate:
    """Write a lead of the second judge as one."""
    if one.value is None or one.value > 0 or one.lower is None or one.upper is None:
        return one
    return Estimate(-one.value, -one.upper, -one.lower, one.n)


# All judges


Progress = Callable[[int, int, str], None]
"""Called with the steps done, the steps in all, and what is done next."""


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """The studies of all judges.

    Attributes
    ----------
    votes, verdicts : str
        Where these were read.
    contests : mapping of (str, str) to mapping of str to Estimate
        By how much the board of one judge goes better with that of people than another's.
    against : SideBySide or None
        Judges against each other on the same items; None of a single one.
    parts : tuple of Part
        Agreement on parts of the items.
    outputs : Outputs or None
    texts : mapping of str to str
        Texts of prompts, by name; empty where not at hand.
    licence : Licence or None
        Where the one judge may replace people; None where that was not asked for.
    useless : tuple of JudgeVerdicts
        Of judges without a parsed verdict on an item with votes: in no figure.
    """

    votes: Source
    verdicts: Source
    options: StudyOptions
    data: StudyData
    judges: tuple[JudgeStudy, ...]
    contests: Mapping[tuple[str, str], Mapping[str, Estimate]]
    against: SideBySide | None
    parts: tuple[Part, ...]
    outputs: Outputs | None
    texts: Mapping[str, str]
    licence: Licence | None = None
    useless: tuple[JudgeVerdicts, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to keep in mind, each once."""
        every = {judge.name: [*judge.warnings, *judge.missing()] for judge in self.judges}
        first = [f"{judge.name}: {judge.useless}." for judge in self.useless]
        both = [one.name for one in self.data.judges if (one.verdicts.first == 0).any()]
        if both and (single := [one.name for one in self.judges if one.name not in both]):
            first.append(
                f"Verdicts in single orders ({', '.join(single)}) and combined ones, in which "
                f"opposite verdicts are ties ({', '.join(both)}), are not comparable."
            )
        return (*first, *concerning(every, of_all=False))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: of the one judge, or of several by name."""
        by_judge = {judge.name: judge.to_dict() for judge in self.judges}
        if self.licence is not None:
            of_judge, written = by_judge[self.licence.judge], self.licence.to_dict()
            of_judge |= {"certificate": written, "licence": written}  # the name in 0.1
        if self.against is None:
            return next(iter(by_judge.values())) | {"parts": [asdict(part) for part in self.parts]}
        of_all = {"leaderboard": leaderboard(self), "against_each_other": self.against.to_dict()}
        return {"judges": by_judge} | of_all


def by_agreement(judges: Iterable[JudgeStudy]) -> list[JudgeStudy]:
    """Order judges by the lower limit of agreement with ties: few items do not lead by chance."""

    def key(judge: JudgeStudy) -> tuple[float, float, str]:
        agreed = judge.agreement.judge.with_ties
        return -(agreed.lower or 0.0), -(agreed.value or 0.0), judge.name

    return sorted(judges, key=key)


def leaderboard(study: Study) -> list[dict[str, Any]]:
    """Give plain values of each judge, as `by_agreement` orders them.

    Shares and coefficients are estimates with ``value``, ``lower``, ``upper`` and ``n``, null
    where they are not estimated; dollars and seconds are per thousand items. ``why`` has the
    reasons of the verdict. Last come judges without figures, with the reason for that.
    """
    rows = []
    for judge in by_agreement(study.judges):
        agreed, compared, biases = judge.agreement, judge.compared, judge.biases
        figures: dict[str, Estimate | None] = {
            "agreement": agreed.judge.without_ties,
            "agreement_with_ties": agreed.judge.with_ties,
            "human_agreement": agreed.people.without_ties,
            "human_agreement_with_ties": agreed.people.with_ties,
            "kappa": agreed.kappa,
            "human_kappa": agreed.people_kappa,
            "kendall": None if compared is None else compared.figures["kendall"],
            "consistency": None if judge.swaps is None else judge.swaps["consistent"],
            **{
                f"{name}_{what}": judge.preferred.get(feature, (None, None))[place]
                for feature, what in ((LENGTH, "longer"), (LIST_TERM, "lists"))
                for place, name in enumerate(("people_prefer", "prefers"))
            },
            "rerun_variance": judge.rerun_variance,
            "own_model_bias": None if biases is None else biases.effects[SELF].difference,
        }
        known = {name: one for name, one in figures.items() if one and one.value is not None}
        rows.append(
            {
                "judge": judge.name,
                "verdict": judge.first_answer.verdict,
                **{name: asdict(known[name]) if name in known else None for name in figures},
                "own_model": None if biases is None else biases.own_model,
                "unparsed": judge.n_unread / (judge.n_unread + judge.n_verdicts),
                "usd_per_thousand": judge.cost,
                "seconds_per_thousand": judge.seconds,
                "items": judge.n_items,
                "why": " ".join(judge.first_answer.reasons),
            }
        )
    for one in study.useless:
        costs = {"usd_per_thousand": one.cost, "seconds_per_thousand": one.seconds}
        rows.append(
            dict.fromkeys(rows[0])
            | {name: None if x is None else THOUSAND * x for name, x in costs.items()}
            | {
                "judge": one.name,
                "unparsed": one.n_unread / (one.n_unread + one.verdicts.n),
                "items": 0,
            }
            | {"why": one.useless}
        )
    return rows


def study_judges(
    votes: Source, verdicts: Source, options: StudyOptions, progress: Progress = lambda *_: None
) -> Study:
    """Compare the verdicts of one judge or several with votes of people.

    Parameters
    ----------
    votes, verdicts : path, Files or LoggedVotes
        Files; for votes also an arena's log.

    Raises
    ------
    DataError
        If a source cannot be read, no judge has a parsed verdict on an item that people voted on,
        or an option does not fit.
    """
    progress(0, 0, ", reading")
    data, useless = _useful(read_study(votes, verdicts, voters=options.voters, by=options.by))
    outputs = None
    if options.outputs is not None:
        outputs = Outputs(read_outputs(options.outputs, data.items.models, data.prompts))
        data = _measured(data, outputs)
    texts = read_prompts(options.prompts, data.prompts) if options.prompts else {}
    judges = _studied(data, options, progress)
    contests = {
        (one.name, other.name): contest(*one.boards, other.boards[1], options.draws())
        for one, other in combinations(judges, 2)
        if one.boards is not None and other.boards is not None
    }
    boards = next((judge.boards for judge in judges if judge.boards is not None), None)
    together = side_by_side(data, options, None if boards is None else boards[0])
    return Study(
        votes,
        verdicts,
        options,
        data,
        judges,
        contests,
        together if len(judges) + len(useless) > 1 else None,
        together.parts,
        outputs,
        texts,
        useless=useless,
    )


def _useful(data: StudyData) -> tuple[StudyData, tuple[JudgeVerdicts, ...]]:
    """Part judges with a parsed verdict on an item with votes from others; raises `DataError`."""
    useful: list[JudgeVerdicts] = []
    useless: list[JudgeVerdicts] = []
    for judge in data.judges:
        there = np.isin(judge.verdicts.item, data.people.item).any()
        (useful if there else useless).append(judge)
    if not useful:
        some = "; ".join(f"{one.name!r}: {one.useless}" for one in useless[:MOST_SPOKEN])
        more = f"; and {len(useless) - MOST_SPOKEN} more" if len(useless) > MOST_SPOKEN else ""
        raise DataError(
            f"No judge has a parsed verdict on an item that people voted on ({some}{more})."
        )
    names = {judge.name for judge in useful}
    groups = {
        value: replace(part, judges=tuple(one for one in part.judges if one.name in names))
        for value, part in data.groups.items()
    }
    return replace(data, judges=tuple(useful), groups=groups), tuple(useless)


def _studied(data: StudyData, options: StudyOptions, progress: Progress) -> tuple[JudgeStudy, ...]:
    total = len(data.judges) * (1 + len(data.groups))
    studies = []
    for place, judge in enumerate(data.judges):
        done = place * (1 + len(data.groups))

        def tell(part: str, done: int = done, name: str = judge.name) -> None:
            progress(done, total, f", {part} of {name}")

        whole = study_judge(data, judge, options, tell)
        groups = {}
        for number, (value, part) in enumerate(data.groups.items(), 1):
            progress(done + number, total, f", {options.by} {value} of {judge.name}")
            own = next((one for one in part.judges if one.name == judge.name), None)
            if own is not None and shared_by(part, own).items.n:
                groups[value] = study_judge(part, own, options, lambda _: None)
        studies.append(replace(_planned(data, judge, whole, options), groups=groups))
    return tuple(studies)


def _planned(
    data: StudyData, judge: JudgeVerdicts, whole: JudgeStudy, options: StudyOptions
) -> JudgeStudy:
    """Add what follows from all of the votes and verdicts together."""
    warnings = list(whole.warnings)
    powered, bought = whole.powered, None
    if powered is not None:
        bought = _identified(
            "Plan of votes",
            lambda: plan_votes(data, judge, powered, options.draws().rng),
            warnings,
        )
    rates = win_rates(data.items, data.people, judge.verdicts, options.level)
    return replace(whole, plan=bought, win_rates=rates, warnings=tuple(warnings))


def _measured(data: StudyData, outputs: Outputs) -> StudyData:
    """Take length and format from the responses, where the files do not tell."""
    gaps = outputs.gaps(data.items, data.prompts) | dict(data.items.gaps)
    groups = {value: _measured(part, outputs) for value, part in data.groups.items()}
    return replace(data, items=replace(data.items, gaps=gaps), groups=groups)
