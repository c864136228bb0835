"""Accuracy of raters: against labels taken as truth, or by Dawid and Skene's latent classes.

`study_truth` estimates how often judges name the side that is right by construction; `dawid_skene`
how often raters are right where no truth is known.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from judge.case import FailureClass, Order
from judge.scoring.annotated import choices
from judge.scoring.benchmarks import TIE, swap_scores
from judge.studies.alignment import on_cases
from judge.studies.data import judges_apart
from judge.studies.estimates import (
    Estimate,
    MeanOfPrompts,
    clustered,
    gap_of,
    percent,
    percent_of,
    ratio,
)
from judge.studies.gates import MIN_PROMPTS
from judge.studies.gold import PRIOR
from judge.studies.one_judge import MOST_SPOKEN, certainly
from judge.studies.options import StudyOptions
from judge.studies.rows import rows_from
from judge.tables.annotations import Annotations, groups, read_annotations
from judge.tables.cases import NamedCase, pairs_of, read_labels
from judge.tables.native import for_judge
from judge.verdict import PENDING
from rating.errors import ConvergenceError, DataError
from rating.leave_out import sums_within
from rating.sentences import plural
from rating.tables.files import Files
from rating.tables.vote_filter import BOTH
from rating.typing import Floats, Ints

# Known labels


ALL = "all"
NOT_ASKED = ""
NO_REPLY = (
    PENDING,
    FailureClass.RATE_LIMIT,
    FailureClass.OVERLOADED,
    FailureClass.TRANSPORT,
    FailureClass.REJECTED,
    FailureClass.DENIED,
)
"""Statuses of verdicts that nobody gave: of the endpoint, not of the judge."""
BOTH_ORDERS, SUBSET = ("w_ab", "w_ba"), "subset"
"""Columns of LLMBar's layout, which has a case a row."""
SIDES = {1.0: "1", -1.0: "2", 0.0: TIE}
_GAP = MeanOfPrompts(-1.0, 1.0, (1,))


class _Asked(NamedTuple):
    """What a judge said of a case: side 1 or 2, a tie, None where unparsed, or `NOT_ASKED`."""

    judge: str
    case: str
    prompt: str
    part: str
    label: str
    as_is: str | None
    swapped: str | None

    @property
    def in_both(self) -> bool:
        """Whether both orders were asked."""
        return NOT_ASKED not in (self.as_is, self.swapped)


class _Truth(NamedTuple):
    """What is right of a case, and what intervals and parts go by."""

    label: str
    prompt: str
    part: str


Labelled = tuple[str, Sequence[tuple[NamedCase, _Truth, object]]]
"""A source of labels, and each of its cases with what is right of it, and its item."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often a judge is right on one part of the cases.

    Attributes
    ----------
    part : str
        `ALL`, or a value of ``--by``.
    scores : mapping or None
        What `swap_scores` gives of the cases asked in both orders; None without any.
    n_single : int
        Cases that were asked in one order alone: in no figure.
    n_prompts : int
        Of the cases in both orders.
    """

    judge: str
    part: str
    scores: Mapping[str, Any] | None
    n_single: int
    n_prompts: int

    @property
    def right(self) -> Estimate:
        """Share of verdicts, over both orders, that name the right side."""
        return self._share("correct_mean", "lower", "upper", verdicts=2)

    @property
    def right_in_both(self) -> Estimate:
        """Share of cases on which both orders name the right side."""
        return self._share("correct_both", "both_lower", "both_upper", verdicts=1)

    def _share(self, *names: str, verdicts: int) -> Estimate:
        if self.scores is None:
            return Estimate(None, None, None, 0)
        value, lower, upper = (self.scores[name] / 100 for name in names)
        return Estimate(value, lower, upper, verdicts * self.scores["n"])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: shares from 0 to 1, null where nothing was asked."""
        one = self.scores
        counts = ("n", "n_unread", "n_tied", "n_first", "n_second")
        shares = {
            "right_as_is": "correct_as_is",
            "right_swapped": "correct_swapped",
            "wrong_in_both": "wrong_both",
        }
        return {
            "judge": self.judge,
            "part": self.part,
            "right": self.right.to_dict(),
            "right_in_both": self.right_in_both.to_dict(),
            **{name: one and one[of] / 100 for name, of in shares.items()},
            **{name: one[name] if one else 0 for name in counts},
            "n_single": self.n_single,
            "n_prompts": self.n_prompts,
        }


@dataclass(frozen=True, slots=True)
class _Lead:
    """By how much one judge names the right side more often, on the cases both were asked.

    Attributes
    ----------
    certain : bool
        At a level over all pairs of judges (Bonferroni), on `MIN_PROMPTS` prompts or more.
    """

    first: str
    second: str
    gap: Estimate
    n_prompts: int
    certain: bool


@dataclass(frozen=True, slots=True)
class TruthStudy:
    """Judges on a truth set.

    Attributes
    ----------
    whole, parts : tuple of Accuracy
        Of each judge, over all cases and by part.
    shown : mapping of str to int
        Of each judge: 1 if it is shown to be right more often than a coin, -1 if less, else 0.
    leads : tuple of Lead
        Of all pairs; of more than `MOST_SPOKEN` judges, of those with the best.
    n_cases, n_unlabelled, n_without_reply, n_unknown : int
        Cases with a label; labels that name no side; verdicts that no reply stands behind; and
        those on no case of the labels.
    """

    verdicts: tuple[Files, ...]
    labels: Files | None
    options: StudyOptions
    by: str | None
    whole: tuple[Accuracy, ...]
    parts: tuple[Accuracy, ...]
    shown: Mapping[str, int]
    leads: tuple[_Lead, ...]
    n_cases: int
    n_unlabelled: int
    n_without_reply: int
    n_unknown: int

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to keep in mind."""
        return tuple(_warnings(self))

    def sentences(self, one: Accuracy) -> tuple[str, ...]:
        """Show how often a judge is right, and what becomes of it when the sides change places."""
        return tuple(_sentences(one, self.shown[one.judge]))

    @property
    def comparisons(self) -> tuple[str, ...]:
        """Return which judge is shown to be right more often."""
        return tuple(map(_on_lead, self.leads))

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that ``arena study truth`` writes."""
        return {
            "judges": [
                one.to_dict() | {"sentences": list(self.sentences(one))} for one in self.whole
            ],
            "by": self.by,
            "parts": [one.to_dict() for one in self.parts],
            "pairs": list(map(asdict, self.leads)),
            "comparisons": list(self.comparisons),
            "cases": self.n_cases,
            "warnings": list(self.warnings),
        }


def study_truth(
    verdicts: Sequence[Files], labels: Files | None, options: StudyOptions
) -> TruthStudy:
    """Hold verdicts against labels that are right by construction, not by anybody's preference.

    Parameters
    ----------
    verdicts : sequence of Files
        Verdicts of `judge.tables.verdicts`; or LLMBar's layout, which has its labels beside them.
    labels : Files or None
        Pairs with a column ``label`` (JudgeBench's, or any that `judge run` takes), matched by
        ``battle_id``, which is a hash of the pair where the file names none, by ``item_id``, or by
        prompt and pair of models (`judge.studies.alignment.on_cases`). Without, the verdicts have
        a column ``label``.

    Raises
    ------
    DataError
        If a file cannot be read, holds no label, or a case has two that differ.
    """
    rows, excluded, by = _read(verdicts, labels, options.by)
    by_judge = {
        name: [rows[i] for i in own] for name, own in groups([r.judge for r in rows]).items()
    }
    whole = tuple(_accuracy(name, ALL, own, options.level) for name, own in by_judge.items())
    parts = groups([(row.part, row.judge) for row in rows]) if by else {}
    return TruthStudy(
        verdicts=tuple(verdicts),
        labels=labels,
        options=options,
        by=by,
        whole=whole,
        parts=tuple(
            _accuracy(judge, part, [rows[i] for i in at], options.level)
            for (part, judge), at in parts.items()
        ),
        shown={one.judge: _shown(one, by_judge[one.judge], len(whole), options) for one in whole},
        leads=tuple(_leads(by_judge, whole, options)),
        n_cases=len({row.case for row in rows}),
        n_unlabelled=excluded["unlabelled"],
        n_without_reply=excluded["without reply"],
        n_unknown=excluded["unknown"],
    )


def _read(
    verdicts: Sequence[Files], labels: Files | None, by: str | None
) -> tuple[list[_Asked], Counter[str], str | None]:
    """Read all that was asked, count what is excluded, and name the column that parts cases."""
    excluded: Counter[str] = Counter()
    tables = [read_annotations(files, "verdicts") for files in verdicts]
    if by is None and all(table.has(*BOTH_ORDERS, SUBSET) for table in tables):
        by = SUBSET
    known = None if labels is None else _labelled(labels, by, excluded)
    rows = [
        row
        for table in tables
        for row in (
            _llmbar(table, by) if table.has(*BOTH_ORDERS) else _judged(table, known, by, excluded)
        )
    ]
    if not rows:
        raise DataError(
            "No verdict is on a case with a label: name the file that was judged with --truth, "
            "or give both the same battle_id."
        )
    return rows, excluded, by


def _labelled(labels: Files, by: str | None, excluded: Counter[str]) -> Labelled:
    """Read the cases that have a label, what is right of each, and their items where named."""
    sides = read_labels(labels)
    if sides is None:
        raise DataError(f"There is no column 'label' in {str(labels)!r} with the right side.")
    table = for_judge(read_annotations(labels, "cases"), pairs=True)
    parts, pairs = _parts(table, by), pairs_of(table)
    items = table.columns.get("item_id", [None] * table.n)
    known: dict[str, tuple[NamedCase, _Truth, object]] = {}
    for named, side, part, item in zip(pairs, sides.tolist(), parts, items, strict=True):
        label = SIDES.get(side)
        if label in (None, TIE):
            excluded["unlabelled"] += 1
            continue
        truth = _Truth(str(label), named.prompt_id, part)
        if known.setdefault(named.battle_id, (named, truth, item))[1].label != label:
            raise DataError(f"{str(labels)!r} has two labels that differ for one pair: give one.")
    return str(labels), [*known.values()]


def _parts(table: Annotations, by: str | None) -> list[str]:
    return [""] * table.n if by is None else table.texts(by)


def _llmbar(table: Annotations, by: str | None) -> Iterator[_Asked]:
    judges, cases = _named(table, ("judge", "llm"), "strategy"), _numbers(table)
    label, as_is, swapped = (choices(table, name) for name in ("label", *BOTH_ORDERS))
    rows = zip(judges, cases, _parts(table, by), label, as_is, swapped, strict=True)
    for judge, case, part, right, first, second in rows:
        yield _Asked(judge, case, case, part, str(right), first, second)


def _numbers(table: Annotations) -> list[str]:
    """Name the cases of LLMBar's layout by ``subset`` and ``i``, or by their row."""
    rows = table.texts("i") if table.has("i") else [str(row) for row in range(table.n)]
    subsets = _parts(table, SUBSET if table.has(SUBSET) else None)
    return [f"{subset}/{row}" for subset, row in zip(subsets, rows, strict=True)]


def _named(table: Annotations, names: Sequence[str], method: str) -> list[str]:
    """Name judges; where one was asked in several ways, by these too."""
    column = next((name for name in names if table.has(name)), None)
    judges = ["judge"] * table.n if column is None else table.texts(column)
    ways = {"method": table.texts(method)} if table.has(method) else {}
    rows = judges_apart(rows_from({"judge": judges, **ways}, table.source))
    return [str(name) for name in rows.named("judge")]


def _judged(
    table: Annotations, known: Labelled | None, by: str | None, excluded: Counter[str]
) -> Iterator[_Asked]:
    """Combine the orders of each case; rows of both orders are skipped."""
    judges = _named(table, ("judge",), "method")
    orders = table.texts("order") if table.has("order") else [Order.AB] * table.n
    on = dict(_beside(table, by) if known is None else _matched(table, *known))
    answers: dict[tuple[str, str], dict[str, str | None]] = {}
    of: dict[tuple[str, str], _Truth] = {}
    for row, (judge, order) in enumerate(zip(judges, orders, strict=True)):
        if order == BOTH:
            continue
        name, truth, sign = on.get(row, ("", None, 1))
        if truth is None:
            excluded["unknown" if known else "unlabelled"] += 1
        elif table.has("status") and table.need("status")[row] in NO_REPLY:
            excluded["without reply"] += 1
        else:
            if of.setdefault((judge, name), truth).label != truth.label:
                raise DataError(f"The case {name!r} has two labels that differ: give it one.")
            side = table.label(row, table.need("winner")[row])
            own = order if sign > 0 or order not in [*Order] else Order(order).other
            answers.setdefault((judge, name), {})[own] = SIDES.get(sign * side)
    for (judge, name), by_order in answers.items():
        both = (by_order.get(order, NOT_ASKED) for order in Order)
        label, prompt, part = of[judge, name]
        yield _Asked(judge, name, prompt, part, label, *both)


def _matched(
    table: Annotations, source: str, known: Sequence[tuple[NamedCase, _Truth, object]]
) -> Iterator[tuple[int, tuple[str, _Truth, int]]]:
    """Give the case, what is right of it, and which way round it is, of the rows that are on one.

    Raises
    ------
    DataError
        If none is.
    """
    named, truths, items = zip(*known, strict=True) if known else ((), (), ())
    try:
        for case, row, sign in on_cases(named, items, source, table):
            yield row, (named[case].battle_id, truths[case], sign)
    except DataError as error:
        raise DataError(f"No verdict is on a case with a label. {error}") from error


def _beside(
    table: Annotations, by: str | None
) -> Iterator[tuple[int, tuple[str, _Truth | None, int]]]:
    """Read the labels in the files of verdicts."""
    column = "battle_id" if table.has("battle_id") or not table.has("item_id") else "item_id"
    names = table.texts(column)
    prompts = table.texts("prompt_id") if table.has("prompt_id") else names
    parts = _parts(table, by)
    for row, (name, prompt, part) in enumerate(zip(names, prompts, parts, strict=True)):
        label = SIDES.get(table.right_side("label", row))
        truth = None if label in (None, TIE) else _Truth(str(label), prompt, part)
        yield row, (name, truth, 1)


def _accuracy(judge: str, part: str, rows: Sequence[_Asked], level: float) -> Accuracy:
    both = [row for row in rows if row.in_both]
    scores = _scores(both, level) if both else None
    n_prompts = len({row.prompt for row in both})
    return Accuracy(judge, part, scores, len(rows) - len(both), n_prompts)


def _scores(both: Sequence[_Asked], level: float) -> dict[str, Any]:
    rows = [(row.label, row.as_is, row.swapped, row.prompt) for row in both]
    labels, as_is, swapped, prompts = zip(*rows, strict=True)
    return swap_scores(labels, as_is, swapped, prompts, level=level)


def _shown(one: Accuracy, rows: Iterable[_Asked], n_judges: int, options: StudyOptions) -> int:
    """Tell whether a judge is right more or less often than a coin, at a level over all judges."""
    if one.scores is None or one.n_prompts < MIN_PROMPTS:
        return 0
    level = 1 - (1 - options.level) / n_judges
    strict = _scores([row for row in rows if row.in_both], level)
    return int(strict["lower"] > 50) - int(strict["upper"] < 50)


def _leads(
    by_judge: Mapping[str, Sequence[_Asked]], whole: Sequence[Accuracy], options: StudyOptions
) -> Iterator[_Lead]:
    pairs = [*combinations(by_judge, 2)]
    n_pairs = len(pairs)
    if len(by_judge) > MOST_SPOKEN:
        best = max(whole, key=lambda one: one.right.value or 0.0).judge
        pairs = [pair for pair in pairs if best in pair]
    for first, second in pairs:
        gap, strict, n_prompts = _gap(by_judge[first], by_judge[second], options, n_pairs)
        level = 1 - (1 - options.level) / n_pairs
        certain = n_prompts >= MIN_PROMPTS and certainly(strict, n_prompts, level)
        yield _Lead(first, second, gap, n_prompts, certain)


def _gap(
    first: Iterable[_Asked], second: Iterable[_Asked], options: StudyOptions, n_pairs: int
) -> tuple[Estimate, Estimate, int]:
    """Estimate a difference on shared cases, at the level asked for and at that of a claim."""
    ours, theirs = ({row.case: row for row in rows if row.in_both} for rows in (first, second))
    shared = [(ours[name], theirs[name]) for name in ours if name in theirs]
    if not shared:
        nothing = Estimate(None, None, None, 0)
        return nothing, nothing, 0
    gaps = np.array([_right(one) - _right(other) for one, other in shared])
    names, prompt = np.unique([one.prompt for one, _ in shared], return_inverse=True)
    sums = sums_within(prompt, np.column_stack([gaps, np.ones(len(gaps))]), len(names))
    strict_level = 1 - (1 - options.level) / n_pairs
    plain, strict = (
        clustered(sums, ratio, replace(options.draws(), level=level), n=len(gaps), mean=_GAP)
        for level in (options.level, strict_level)
    )
    return plain, strict, len(names)


def _right(row: _Asked) -> float:
    return ((row.as_is == row.label) + (row.swapped == row.label)) / 2


def _sentences(one: Accuracy, shown: int) -> Iterator[str]:
    scores = one.scores
    if scores is None:
        yield "No case was judged in both orders: accuracy is not estimated."
        return
    yield (
        f"The judge names the right side in {percent_of(one.right)} of its verdicts, on "
        f"{plural(scores['n'], 'case')} in both orders. {_against_coin(one, shown)}"
    )
    yield (
        f"It is right in both orders on {percent_of(one.right_in_both)} of the cases, and "
        f"wrong in both on {percent(scores['wrong_both'] / 100)}{_turned(scores)}."
    )
    if scores["n_tied"] or scores["n_unread"]:
        yield (
            f"Of {2 * scores['n']:,} verdicts, {scores['n_tied']:,} are ties and "
            f"{scores['n_unread']:,} were not parsed: neither counts as right, because every case "
            "has a right side."
        )


def _turned(scores: Mapping[str, Any]) -> str:
    n = scores["n_first"] + scores["n_second"]
    if not n:
        return ""
    return (
        f"; on {percent(n / scores['n'])} the orders name different sides: {scores['n_first']:,} "
        f"times the answer shown first in each, {scores['n_second']:,} times the second"
    )


def _against_coin(one: Accuracy, shown: int) -> str:
    if one.n_prompts < MIN_PROMPTS:
        n = plural(one.n_prompts, "prompt")
        return f"Whether this differs from choosing at random is not tested with {n}."
    if shown:
        return f"This is {('more' if shown > 0 else 'less')} often than choosing at random (50%)."
    return "We do not find that it is right more often than choosing at random (50%)."


def _on_lead(lead: _Lead) -> str:
    one = lead.gap
    if one.value is None:
        return (
            f"{lead.first} and {lead.second} have no case in common that both judged in both "
            "orders."
        )
    gap = f"{gap_of(one)} percentage points on {plural(one.n, 'shared case')}"
    if not lead.certain:
        return f"We do not find that {lead.first} or {lead.second} is right more often: {gap}."
    more = "more" if one.value > 0 else "less"
    return f"{lead.first} is right {more} often than {lead.second}: {gap}."


def _warnings(study: TruthStudy) -> Iterator[str]:
    yield (
        "The labels are taken as the truth: a wrong label counts against a right verdict, "
        "and nothing here describes people's preferences."
    )
    n_single = sum(one.n_single for one in study.whole)
    counts = (
        (n_single, "case", "judged in one order only: excluded"),
        (
            study.n_without_reply,
            "verdict",
            "without a reply: excluded, because there is no verdict",
        ),
        (study.n_unlabelled, "label", "for neither side: excluded"),
        (study.n_unknown, "verdict", "on cases without a label: excluded"),
    )
    for n, what, why in counts:
        if n:
            yield f"{plural(n, what)} {why}."


# Latent classes


Errors = Literal["confusion", "one"]

UNKNOWN = -1
_MOST_STEPS = 20_000
_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class LatentClasses:
    """Latent classes of items, and error rates of raters.

    Attributes
    ----------
    prevalence : ndarray of shape (n_classes,)
        Share of the items that are of each class.
    errors : ndarray of shape (n_raters, n_classes, n_classes)
        Probability that a rater gives the label of the last axis to an item of the class of the
        middle one.
    posterior : ndarray of shape (n_items, n_classes)
        Probability of each class of each item.
    log_likelihood : float
        Of the labels, in nats, the prior excluded.
    """

    prevalence: Floats
    errors: Floats
    posterior: Floats
    log_likelihood: float

    @property
    def accuracy(self) -> Floats:
        """How often each rater gives an item its class, shape (n_raters,)."""
        return np.asarray(np.einsum("j,rjj->r", self.prevalence, self.errors))

    @property
    def above_guessing(self) -> bool:
        """Whether raters are right more often, on average, than a random label.

        Only then do the classes have the names of the labels: raters who are mostly wrong give
        the same likelihood as raters who are mostly right, with the classes exchanged.
        """
        return float(self.accuracy.mean()) > 1 / len(self.prevalence)


def dawid_skene(
    item: Ints,
    rater: Ints,
    label: Ints,
    n_classes: int,
    *,
    known: Ints | None = None,
    errors: Errors = "confusion",
    prior: tuple[float, float] | None = PRIOR,
    start: Floats | None = None,
) -> LatentClasses:
    """Fit latent classes by EM: each item is of one class, and raters miss it independently.

    ``P(labels of item i) = sum_j p_j prod_r e_r[j, label]``. It begins at the shares of an item's
    labels, so that classes keep the names of labels where the majority is right more often than
    not; where raters are not better than guessing, nothing tells classes apart, and see
    `LatentClasses.above_guessing`. Without a prior and ``known`` it takes items of three raters.
    Where some items are harder than others for everybody, raters seem better than they are.

    Parameters
    ----------
    item, rater, label : ndarray of shape (n,), int64
        A label each row, numbered from 0; a rater may say nothing of an item, or say it twice.
    n_classes : int
        Two or more.
    known : ndarray of shape (n_items,), int64, optional
        The class of items where it is known, else -1.
    errors : {"confusion", "one"}
        Whether a rater errs by class as they do, or as often in every class, the wrong labels
        alike.
    prior : (float, float) or None
        Labels that a rater is taken to have given beforehand, right and wrong, so that the
        accuracy is the mean of a Beta posterior; with ``confusion`` in each class. None for the
        likelihood alone.
    start : ndarray of shape (n_items, n_classes), optional
        Probabilities to begin at.

    Raises
    ------
    DataError
        If there is no label, a label or a known class is not from 0 to ``n_classes - 1``, or
        there are less than two classes.
    ConvergenceError
        If it does not come to rest.

    References
    ----------
    .. [1] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates
       using the EM algorithm", Applied Statistics 28(1), 1979, pp. 20-28.

    Examples
    --------
    Three raters on four items; the third says the other of the second item.

    >>> item, rater = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    >>> label = np.array([0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1])
    >>> fitted = dawid_skene(item, rater, label, 2, errors="one")
    >>> fitted.posterior.argmax(axis=1).tolist(), fitted.accuracy.round(2).tolist()
    ([0, 1, 0, 1], [0.85, 0.85, 0.79])
    """
    known = _checked(item, label, n_classes, known)
    n_raters, right = int(rater.max()) + 1, np.eye(n_classes)
    given = right[label]
    posterior = _shares(item, given, len(known)) if start is None else start
    pinned = known >= 0
    pinned_to = right[known[pinned]]
    reached = -np.inf
    for _ in range(_MOST_STEPS):
        posterior[pinned] = pinned_to
        prevalence = posterior.mean(axis=0)
        rates = _rates(rater, given, posterior[item], n_raters, errors, prior)
        with np.errstate(divide="ignore"):
            each = np.log(prevalence) + sums_within(
                item, np.log(rates[rater, :, label]), len(known)
            )
        top = each.max(axis=1, keepdims=True)
        posterior = np.exp(each - top)
        total = posterior.sum(axis=1, keepdims=True)
        posterior /= total
        posterior[pinned] = pinned_to
        value = float(np.log(total).sum() + top.sum()) + _log_prior(rates, prior, errors)
        if abs(value - reached) <= _TOLERANCE * (1 + abs(value)):
            likelihood = value - _log_prior(rates, prior, errors)
            return LatentClasses(prevalence, rates, posterior, likelihood)
        reached = value
    raise ConvergenceError(
        f"Latent classes of {len(known)} items did not converge in {_MOST_STEPS} steps: rate "
        "more items, or give a prior."
    )


def _checked(item: Ints, label: Ints, n_classes: int, known: Ints | None) -> Ints:
    """Return the known classes of all items; raises `DataError` for what cannot be."""
    if n_classes < 2:
        raise DataError(f"There must be two classes or more, not {n_classes}.")
    if not len(item):
        raise DataError("There is no label to fit classes to.")
    known = np.full(int(item.max()) + 1, UNKNOWN) if known is None else known
    for name, values, least in (("Labels", label, 0), ("Known classes", known, UNKNOWN)):
        if not least <= values.min() <= values.max() < n_classes:
            wrong = values[(values < least) | (values >= n_classes)][0]
            raise DataError(f"{name} are {least} to {n_classes - 1}, not {wrong}.")
    return known


def _shares(item: Ints, given: Floats, n_items: int) -> Floats:
    """Return the share of each label among those of an item; all alike without any."""
    counts = sums_within(item, given, n_items)
    size = counts.sum(axis=1, keepdims=True)
    return np.where(size > 0, counts / np.where(size > 0, size, 1), 1 / given.shape[1])


def _rates(
    rater: Ints,
    given: Floats,
    of_class: Floats,
    n_raters: int,
    errors: Errors,
    prior: tuple[float, float] | None,
) -> Floats:
    """Return how raters label each class, with the labels that the prior adds."""
    k = given.shape[1]
    cells = (of_class[:, :, None] * given[:, None, :]).reshape(len(given), k * k)
    counts = sums_within(rater, cells, n_raters).reshape(n_raters, k, k)
    right, wrong = (0.0, 0.0) if prior is None else prior
    if errors == "one":
        good = np.einsum("rjj->r", counts) + right
        accuracy = good / np.maximum(counts.sum(axis=(1, 2)) + right + wrong, 1e-300)
        off = (1 - accuracy) / (k - 1)
        return np.asarray(off[:, None, None] + (accuracy - off)[:, None, None] * np.eye(k))
    counts = counts + wrong / (k - 1) + (right - wrong / (k - 1)) * np.eye(k)
    size = counts.sum(axis=2, keepdims=True)
    return np.asarray(np.where(size > 0, counts / np.where(size > 0, size, 1), 1 / k))


def _log_prior(rates: Floats, prior: tuple[float, float] | None, errors: Errors) -> float:
    """Return the log density, except a constant, that makes posterior means its maximum."""
    if prior is None:
        return 0.0
    k, (right, wrong) = rates.shape[1], prior
    if errors == "one":
        accuracy = rates[:, 0, 0]
        return float((right * np.log(accuracy) + wrong * np.log1p(-accuracy)).sum())
    weight = wrong / (k - 1) + (right - wrong / (k - 1)) * np.eye(k)
    return float((weight * np.log(rates)).sum())
