"""Panels of judges: effective number of independent judges, and which judge to add next.

`study_panel` reads verdicts of several judges, with labels beside them or votes of people, and
describes the panel in figures and sentences; `card` estimates what the panel is worth, and
`ordered` adds judges one by one.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from judge.studies.alignment import align, merged
from judge.studies.data import NO_ORDER, StudyData, judges_apart, read_votes, study_data
from judge.studies.estimates import (
    SHARE,
    Estimate,
    Statistic,
    clustered,
    counts,
    finite,
    gap_of,
    joined,
    majority,
    number_of,
    over,
    percent,
    percent_of,
)
from judge.studies.gates import MIN_PROMPTS
from judge.studies.options import StudyOptions
from judge.studies.rows import Labels, Rows, Source, read_rows
from rating.errors import DataError
from rating.leave_out import sums_within
from rating.sentences import plural
from rating.tables.coding import Coded
from rating.tables.files import Files
from rating.tables.sources import columns_of
from rating.typing import Bools, Floats, Ints

# Verdicts and labels


FAMILY, LABEL = "family", "label"


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """Who errs on which of the items that every judge read.

    Attributes
    ----------
    judges : tuple of str, length k
    wrong : ndarray of shape (n_items, k)
        1 where a verdict is not the truth, else 0.
    prompt : ndarray of shape (n_items,), int64
        Number of the prompt, from 0 without a gap.
    verdict : ndarray of shape (n_items, k), or None
        1, 0 or -1 for side A; None where the truth is a label.
    people : ndarray of shape (n_items, 3), or None
        Of people's 1, 0 or -1 the mean, and the mean product of two different people's with a 1,
        or 0 and 0 where only one voted.
    random_accuracy : float
        How often a random choice is right.
    """

    judges: tuple[str, ...]
    wrong: Floats
    prompt: Ints
    verdict: Floats | None = None
    people: Floats | None = None
    random_accuracy: float = 0.5

    def only(self, judges: Sequence[int]) -> "Errors":
        """Keep some judges, on the same items."""
        names = tuple(self.judges[j] for j in judges)
        verdict = None if self.verdict is None else self.verdict[:, list(judges)]
        return replace(self, judges=names, wrong=self.wrong[:, list(judges)], verdict=verdict)


def _read_panel(
    verdicts: Sequence[Files], votes: Source | None, *, voters: str | None = None
) -> tuple[StudyData, dict[str, str]]:
    """Read verdicts, and votes of people or the labels beside them; and each judge's family.

    A judge goes by the column ``judge``, without one by the name of its file; asked by several
    methods, it is a judge by each. Its family is in the column ``family``, else `family_of` gives
    it.

    Parameters
    ----------
    verdicts : sequence of Files
        Tables, each of one judge or several.
    votes : source, optional
        Votes of people; without, the tables have a column ``label`` with the right answer.
    voters : str, optional
        Pattern of the voters whose votes count.

    Raises
    ------
    DataError
        If a source cannot be read, there are neither votes nor labels, labels or families
        contradict each other, or verdicts and votes have no item in common.
    """
    stems = [Path(files.paths[0]).stem for files in verdicts]
    parts = []
    for stem, files in zip(stems, verdicts, strict=True):
        rows = read_rows(files, unparsed=True, by=FAMILY)
        name = stem if stems.count(stem) == 1 else str(files.paths[0])
        whole = Coded((name,), np.zeros(rows.n, dtype=np.int64))
        parts.append(replace(rows, names={"judge": whole, **rows.names}))
    given = judges_apart(_stacked(parts))
    if votes is not None:
        cast = read_votes(votes, voters)
    elif voters is not None:
        raise DataError(f"--voters {voters!r} selects votes of people: name these by --votes.")
    else:
        cast = _stacked([_read_labels(files) for files in verdicts])
    data = study_data(align(cast, given))
    if votes is None:
        _refuse_two_labels(data)
    return data, _families(given)


def _stacked(parts: Sequence[Rows]) -> Rows:
    """Put the rows of several tables below each other; what a table has not is missing there."""
    if len(parts) == 1:
        return parts[0]
    sizes = [part.n for part in parts]
    names = {
        role: _joined([part.names.get(role) for part in parts], sizes)
        for role in dict.fromkeys(role for part in parts for role in part.names)
    }
    numbers = {
        role: np.concatenate([part.numbers.get(role, np.full(part.n, np.nan)) for part in parts])
        for role in dict.fromkeys(role for part in parts for role in part.numbers)
    }
    dropped: Counter[str] = Counter()
    for part in parts:
        dropped.update(part.dropped)
    source = ", ".join(dict.fromkeys(part.source for part in parts))
    label = np.concatenate([part.label for part in parts])
    read = np.concatenate([part.read for part in parts])
    notes = tuple(one for part in parts for one in part.notes)
    return Rows(source, names, numbers, label, read, dict(dropped), notes)


def _joined(columns: Sequence[Coded | None], sizes: Sequence[int]) -> Coded:
    filled = [
        Coded((), np.full(size, -1)) if column is None else column
        for column, size in zip(columns, sizes, strict=True)
    ]
    names, codes = merged(filled)
    return Coded(names, np.concatenate(codes))


def _read_labels(files: Files) -> Rows:
    """Read the right answers of a table of verdicts, as votes beside them."""
    theirs = dict(files.columns).get(LABEL, LABEL)
    if theirs not in columns_of(files):
        raise DataError(
            f"The verdicts of {str(files)!r} have nothing to be compared with: name votes of "
            f"people by --votes, or give the right answer in a column {LABEL!r} (--column "
            f"{LABEL}=NAME reads it from another)."
        )
    others = [pair for pair in files.columns if pair[0] not in (LABEL, "winner")]
    rows = read_rows(replace(files, columns=(*others, ("winner", theirs))), unparsed=True)
    if not rows.read.any():
        raise DataError(f"The column {theirs!r} of {str(files)!r} is empty: it holds no label.")
    numbers = {role: values for role, values in rows.numbers.items() if role != "preference"}
    return replace(rows, numbers=numbers, dropped={})


def _refuse_two_labels(data: StudyData) -> None:
    twice = np.flatnonzero((counts(data.items, data.people) > 0).sum(axis=1) > 1)
    if not twice.size:
        return
    item = int(twice[0])
    a, b = (data.items.models[model] for model in data.items.pairs[item])
    prompt = data.prompts[data.items.prompt[item]]
    raise DataError(
        f"The item of {a!r} and {b!r}" + (f" on the prompt {prompt!r}" if prompt else "") + " has "
        "two labels that differ: give each item one, or name votes of people by --votes."
    )


def _families(rows: Rows) -> dict[str, str]:
    families = {}
    for name in rows.used("judge"):
        theirs = rows.only(rows.named("judge") == name).used("by")
        if len({one.strip() for one in theirs}) > 1:
            raise DataError(
                f"The judge {name!r} is of the families {theirs[0]!r} and {theirs[1]!r}: give it "
                "one."
            )
        families[name] = theirs[0].strip() if theirs else family_of(name)
    return families


def family_of(judge: str) -> str:
    """Take the letters that a judge's name begins with, without its provider, for its family.

    Examples
    --------
    >>> family_of("gpt-4"), family_of("meta/Llama3-70b"), family_of("7b")
    ('gpt', 'llama', '7b')
    """
    bare = judge.partition(",")[0].rstrip("/").rpartition("/")[2].strip().casefold()
    letters = re.match(r"[^\W\d_]+", bare)
    return letters.group() if letters else bare or judge


def _errors_of(data: StudyData, by_people: bool) -> tuple[Errors, Bools, dict[str, int]]:
    """Hold verdicts against the truth, on the items where every judge has one that was read.

    The truth of an item is what most people say, or the label. A judge's repetitions, or its
    orders where no row is of both, count once: what most of them say.

    Returns
    -------
    errors : Errors
    ties : ndarray of shape (n_items,), bool
        Whether the truth is a tie.
    without : dict of str to int
        Items with a truth that a judge gave no verdict on that was read.

    Raises
    ------
    DataError
        If there is no such item.
    """
    items = data.items
    truth, there = _by_item(majority(items, data.people), items.n)
    given, read = zip(
        *(_by_item(majority(items, judge.verdicts), items.n) for judge in data.judges), strict=True
    )
    names = tuple(judge.name for judge in data.judges)
    without = {name: int((there & ~has).sum()) for name, has in zip(names, read, strict=True)}
    used = there & np.all(read, axis=0)
    if not used.any():
        worst = max(without, key=lambda name: without[name])
        raise DataError(
            f"No item has a parsed verdict of all {len(names)} judges: {worst!r} has none on "
            f'{without[worst]:,} of {int(there.sum()):,}. Exclude this judge (--where "judge <> '
            f"'{worst}'\"), or judge the same items."
        )
    verdict = np.column_stack(given)[used].astype(np.float64)
    wrong = np.asarray(verdict != truth[used, None], dtype=np.float64)
    _, prompt = np.unique(items.prompt[used], return_inverse=True)
    ties = truth[used] == 0
    random_accuracy = max(1 / 3, float(1 - ties.mean()) / 2)
    errors = Errors(names, wrong, prompt.astype(np.int64), random_accuracy=random_accuracy)
    if by_people:
        errors = replace(errors, verdict=verdict, people=_votes(data)[used])
    return errors, ties, without


def _votes(data: StudyData) -> Floats:
    """Return `Errors.people` of every item; a person who voted again counts once."""
    n, people = data.items.n, data.people
    person, place = np.unique(people.rater * n + people.item, return_inverse=True)
    own = np.bincount(place, people.label) / np.bincount(place)
    total, square, voters = (np.bincount(person % n, x, n) for x in (own, own**2, own * 0 + 1))
    pairs = voters * (voters - 1)
    product = (total**2 - square) / np.maximum(pairs, 1)
    return np.column_stack([total / np.maximum(voters, 1), product * (pairs > 0), pairs > 0])


def _by_item(labels: Labels, n_items: int) -> tuple[Ints, Bools]:
    label, there = np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=bool)
    label[labels.item], there[labels.item] = labels.label, True
    return label, there


# Worth of a panel


SHARES = ("mean", "best", "majority", "independent")
"""The accuracies of a card, in the order in which `_shares` stacks them."""
_LEAST_AGREEMENT = 0.1
_NEARLY_ALWAYS = 0.999


@dataclass(frozen=True, slots=True)
class _Card:
    """What a panel of k judges is worth; an item on which half of them are right counts half.

    Attributes
    ----------
    n_eff : Estimate
        ``k / (1 + (k - 1) mean_correlation)``, from 1 to k: as many judges whose errors are
        independent. No value where `unworthy` gives a reason. With votes taken as the truth it is
        a lower figure: errors of people count as shared errors.
    at_most : Estimate
        Upper figure from items on which two people voted, or no value: see `_at_most`.
    mean_correlation : Estimate
        Of the errors of two judges, over all pairs of which both err now and then.
    mean, best, majority, independent : Estimate
        Shares of items that are right: of the mean judge, the best one, what most judges say,
        and what most would say if each erred as often as now, and independently of the others.
    gap : Estimate
        ``independent`` less ``majority``. Against votes neither ``independent`` nor ``gap`` has a
        value: disagreement among people would be taken for shared errors.
    over_best : Estimate
        ``majority`` less ``best``, the best being chosen again in each draw.
    unworthy : str
        Why `n_eff` and `at_most` are not estimated, to follow "because"; nothing if they are.
    """

    k: int
    n_eff: Estimate
    at_most: Estimate
    mean_correlation: Estimate
    mean: Estimate
    best: Estimate
    majority: Estimate
    independent: Estimate
    gap: Estimate
    over_best: Estimate
    unworthy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: a number by its name, its interval beside it."""
        accuracy: dict[str, float | None] = {}
        for name in SHARES:
            accuracy |= _flat(name, getattr(self, name))
        return {
            "k": self.k,
            **_flat("n_eff", self.n_eff),
            **_flat("at_most", self.at_most),
            **_flat("mean_correlation", self.mean_correlation),
            "accuracy": accuracy,
            **_flat("gap", self.gap),
            **_flat("over_best", self.over_best),
        }


def _flat(name: str, estimate: Estimate) -> dict[str, float | None]:
    """Return a number by its name for JSON, and the ends of its interval beside it."""
    return {name: estimate.value, f"{name}_lower": estimate.lower, f"{name}_upper": estimate.upper}


def card(errors: Errors, options: StudyOptions) -> _Card:
    """Estimate what a panel is worth; intervals draw whole prompts.

    References
    ----------
    .. [1] P. Kohli, 2026 (arXiv:2605.29800): the effective number of judges, and the majority of
       independent ones beside that of the panel.

    Examples
    --------
    Three judges who err on the same one of two items are one judge.

    >>> same = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    >>> one = card(Errors(("x", "y", "z"), same, np.array([0, 1])), StudyOptions())
    >>> one.mean_correlation.value, one.majority.value, one.independent.value
    (1.0, 0.5, 0.5)

    Two prompts say no more of other prompts.

    >>> one.n_eff.value, one.unworthy
    (None, 'the items are of fewer than 20 prompts')
    """
    wrong, (n, k) = errors.wrong, errors.wrong.shape
    first, second = np.triu_indices(k, 1)
    each = np.column_stack(
        [_panel_right(wrong), np.ones(n), wrong, wrong[:, first] * wrong[:, second]]
    )
    sums = sums_within(errors.prompt, each, int(errors.prompt.max()) + 1)

    def drawn(statistic: Statistic) -> Estimate:
        return clustered(sums, statistic, options.draws(), n=n)

    def column(place: int) -> Estimate:
        return clustered(
            sums, lambda rows: _shares(rows, k)[:, place], options.draws(), n=n, mean=SHARE
        )

    nothing = Estimate(None, None, None, n)
    by_people = errors.people is not None
    right = clustered(
        sums, lambda rows: over(rows[:, 0], rows[:, 1]), options.draws(), n=n, mean=SHARE
    )
    correlation = drawn(lambda rows: _mean_correlation(rows, k))
    unworthy = _unworthy(errors, right, correlation) if k > 1 else ""
    n_eff = drawn(lambda rows: _n_eff(rows, k))
    return _Card(
        k=k,
        n_eff=nothing if unworthy else n_eff,
        at_most=_at_most(errors, options) if by_people and k > 1 and not unworthy else nothing,
        mean_correlation=correlation,
        mean=column(0),
        best=column(1),
        majority=right,
        independent=nothing if by_people else column(3),
        gap=nothing
        if by_people
        else drawn(lambda rows: _shares(rows, k) @ np.array([0, 0, -1.0, 1.0])),
        over_best=drawn(lambda rows: _shares(rows, k) @ np.array([0, -1.0, 1.0, 0])),
        unworthy=unworthy,
    )


def _unworthy(errors: Errors, right: Estimate, correlation: Estimate) -> str:
    """Give the reason why no number of independent judges is stated; nothing if one is."""
    if int(errors.prompt.max()) + 1 < MIN_PROMPTS:
        return f"the items are of fewer than {MIN_PROMPTS} prompts"
    if correlation.upper is not None and correlation.upper < 0:
        return "their errors are negatively correlated"
    if correlation.lower is None or correlation.upper is None:
        return "the mean correlation of their errors is not determined"
    if correlation.lower <= 0 and (right.lower is None or right.lower <= errors.random_accuracy):
        return (
            "neither a positive correlation of their errors nor an accuracy above chance is "
            "certain"
        )
    return ""


def _at_most(errors: Errors, options: StudyOptions) -> Estimate:
    """Estimate how many independent judges a panel is worth if people err, from above.

    With verdicts and votes of 1 and -1, ``m_jk = mean J_j J_k``, ``a_j = mean J_j vote`` and q the
    mean product of two people's votes on an item, a judge goes with the truth by
    ``a_j / sqrt(q)``, and errors correlate by::

        (m_jk - a_j a_k / q) / sqrt((1 - a_j^2 / q) (1 - a_k^2 / q))

    That is exact where all items are equally clear, and too high where people and judges find the
    same items hard. No value unless q is certain to be above 0.1.
    """
    verdict, votes = errors.verdict, errors.people
    assert verdict is not None
    assert votes is not None
    k = verdict.shape[1]
    first, second = np.triu_indices(k, 1)
    each = np.column_stack(
        [
            votes[:, 1:],
            np.ones(len(verdict)),
            verdict * votes[:, :1],
            verdict**2,
            verdict[:, first] * verdict[:, second],
        ]
    )
    sums = sums_within(errors.prompt, each, int(errors.prompt.max()) + 1)
    agree = clustered(
        sums, lambda rows: over(rows[:, 0], rows[:, 1]), options.draws(), n=int(votes[:, 2].sum())
    )
    if agree.lower is None or agree.lower <= _LEAST_AGREEMENT:
        return replace(agree, value=None, lower=None, upper=None)

    def worth(rows: Floats) -> Floats:
        q, n = over(rows[:, 0], rows[:, 1])[:, None], rows[:, 2:3]
        own, square = over(rows[:, 3 : 3 + k], n), over(rows[:, 3 + k : 3 + 2 * k], n)
        most = _NEARLY_ALWAYS * np.sqrt(square)
        own = np.clip(own / np.sqrt(np.where(q > 0, q, np.nan)), -most, most)
        left = square - own**2
        both = over(rows[:, 3 + 2 * k :], n) - own[:, first] * own[:, second]
        rho = over(both, np.sqrt(left[:, first] * left[:, second])).mean(axis=1)
        return equivalent(rho, k)

    most = clustered(sums, worth, options.draws(), n=len(verdict))
    return most if most.upper is not None else replace(most, value=None, lower=None)


def _panel_right(wrong: Floats) -> Floats:
    """Tell whether more than half of the judges are right on an item; half of them is a half."""
    k = wrong.shape[1]
    return np.asarray((np.sign(k / 2 - wrong.sum(axis=1)) + 1) / 2)


def _shares(rows: Floats, k: int) -> Floats:
    """Return `SHARES` of sums over items, shape (r, 4)."""
    accuracy = 1 - over(rows[:, 2 : 2 + k], rows[:, 1:2])
    return np.column_stack(
        [
            accuracy.mean(axis=1),
            accuracy.max(axis=1),
            over(rows[:, 0], rows[:, 1]),
            independent_majority(accuracy),
        ]
    )


def independent_majority(accuracy: Floats) -> Floats:
    """Return the probability that most of independent judges are right, shape (r,).

    The number of those who are right is Poisson-binomial; exactly half counts half.

    Parameters
    ----------
    accuracy : ndarray of shape (r, k)

    Examples
    --------
    >>> independent_majority(np.array([[0.8, 0.8, 0.8]])).round(3).tolist()  # 0.8^3 + 3 0.2 0.8^2
    [0.896]
    """
    rounds, k = accuracy.shape
    of_right = np.zeros((rounds, k + 1))
    of_right[:, 0] = 1.0
    for j in range(k):
        p = accuracy[:, j : j + 1]
        of_right[:, 1:] = of_right[:, 1:] * (1 - p) + of_right[:, :-1] * p
        of_right[:, :1] *= 1 - p
    return np.asarray(of_right @ ((np.sign(np.arange(k + 1) - k / 2) + 1) / 2))


def _correlations(rows: Floats, k: int) -> Floats:
    """Return the correlation of the errors of each pair, NaN where one never or always errs."""
    n, first, second = rows[:, 1:2], *np.triu_indices(k, 1)
    share = over(rows[:, 2 : 2 + k], n)
    variance = np.where(share * (1 - share) > 1e-12, share * (1 - share), np.nan)
    covariance = over(rows[:, 2 + k :], n) - share[:, first] * share[:, second]
    return np.asarray(covariance / np.sqrt(variance[:, first] * variance[:, second]))


def _mean_correlation(rows: Floats, k: int) -> Floats:
    pairs = _correlations(rows, k)
    known = ~np.isnan(pairs)
    return over(np.where(known, pairs, 0.0).sum(axis=1), known.sum(axis=1).astype(np.float64))


def _n_eff(rows: Floats, k: int) -> Floats:
    return np.ones(len(rows)) if k == 1 else equivalent(_mean_correlation(rows, k), k)


def equivalent(correlation: Floats, k: int) -> Floats:
    """Return how many of k judges with independent errors are worth k of this correlation."""
    return k / (1 + (k - 1) * np.clip(correlation, 0, 1))


def error_correlations(errors: Errors) -> Floats:
    """Return the correlations of errors, shape (k, k), NaN where one never or always errs."""
    k = errors.wrong.shape[1]
    first, second = np.triu_indices(k, 1)
    products = errors.wrong[:, first] * errors.wrong[:, second]
    one = np.ones((len(errors.wrong), 1))
    sums = np.column_stack([one, one, errors.wrong, products]).sum(axis=0, keepdims=True)
    matrix = np.full((k, k), np.nan)
    matrix[first, second] = matrix[second, first] = _correlations(sums, k)[0]
    return matrix


def ordered(errors: Errors, by: str) -> list[dict[str, Any]]:
    """Add judges one by one, each time the one with whom the panel is best.

    The first is the one most often right; the first by name of equal ones.

    Parameters
    ----------
    by : {"n_eff", "accuracy"}
        What is best, before the other of the two.

    Returns
    -------
    list of dict
        Each ``judge`` with what the panel is then worth: ``n_eff``, None where it is not known,
        and ``accuracy``, how often most of them are right.
    """

    def worth(one: dict[str, Any]) -> tuple[float, ...]:
        both = one["n_eff"] or 0.0, one["accuracy"]
        return tuple(round(x, 12) for x in (both if by == "n_eff" else both[::-1]))

    matrix = error_correlations(errors)
    added: list[dict[str, Any]] = []
    chosen: list[int] = []
    while len(chosen) < len(errors.judges):
        rest = [j for j in range(len(errors.judges)) if j not in chosen]
        options = {j: _with(errors, matrix, [*chosen, j]) for j in rest}
        best = max(rest, key=lambda j: worth(options[j]))
        chosen.append(best)
        added.append(options[best])
    return added


def _with(errors: Errors, matrix: Floats, judges: list[int]) -> dict[str, Any]:
    k = len(judges)
    right = float(_panel_right(errors.wrong[:, judges]).mean())
    pairs = matrix[np.ix_(judges, judges)][np.triu_indices(k, 1)]
    known = pairs[~np.isnan(pairs)]
    n_eff = 1.0 if k == 1 else None
    if known.size:
        n_eff = float(equivalent(known.mean(), k))
    return {"judge": errors.judges[judges[-1]], "n_eff": n_eff, "accuracy": right}


# Study


ALIKE = 1 - 1e-9
"""A correlation of errors from here on is that of two judges who err on the same items."""


@dataclass(frozen=True, slots=True)
class _Judge:
    """One judge of a panel.

    Attributes
    ----------
    accuracy : Estimate
        On the items that every judge read.
    n_unread : int
        Verdicts that were not read.
    without : int
        Items with a truth that it excludes for all, having no verdict on them that was read.
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
        None if the labels are a column of the verdicts.
    without_family : mapping of str to Card
        The panel without the judges of a family; empty where all are of one.
    """

    verdicts: tuple[Files, ...]
    votes: Source | None
    options: StudyOptions
    card: _Card
    judges: tuple[_Judge, ...]
    correlations: Floats
    by_n_eff: list[dict[str, Any]]
    by_accuracy: list[dict[str, Any]]
    without_family: Mapping[str, _Card]
    by_people: bool
    n_items: int
    n_labelled: int
    n_prompts: int
    n_ties: int
    warnings: tuple[str, ...]

    @property
    def best(self) -> str:
        """Name the judge that is right most often."""
        return str(self.by_accuracy[0]["judge"])

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
        """Give what follows the headline, each sentence held by an interval or without a claim."""
        return tuple(text for text in _sentences(self) if text)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that ``arena study panel`` writes; what is not known is null."""
        names = [judge.name for judge in self.judges]
        return self.card.to_dict() | {
            "next": {"by_n_eff": self.by_n_eff, "by_accuracy": self.by_accuracy},
            "headline": self.headline,
            "sentences": list(self.sentences),
            "against": "people" if self.by_people else "label",
            "best_judge": self.best,
            "items": self.n_items,
            "items_with_truth": self.n_labelled,
            "prompts": self.n_prompts,
            "unread": self.n_unread,
            "judges": [
                {
                    "judge": judge.name,
                    "family": judge.family,
                    **_flat("accuracy", judge.accuracy),
                    "verdicts": judge.n_verdicts,
                    "unread": judge.n_unread,
                    "items_left_out": judge.without,
                }
                for judge in self.judges
            ],
            "correlations": [
                {"a": names[a], "b": names[b], "value": finite(self.correlations[a, b])}
                for a, b in combinations(range(len(names)), 2)
            ],
            "without_family": {
                family: without.to_dict() for family, without in self.without_family.items()
            },
            "warnings": list(self.warnings),
        }


def study_panel(verdicts: Sequence[Files], votes: Source | None, options: StudyOptions) -> Panel:
    """Estimate how many independent judges a panel is worth, against labels or majorities.

    Parameters
    ----------
    verdicts, votes
        As of `_read_panel`.

    Raises
    ------
    DataError
        If a source cannot be read, there is nothing to hold verdicts against, or no item that
        every judge read.
    """
    by_people = votes is not None
    data, families = _read_panel(verdicts, votes, voters=options.voters)
    errors, ties, without = _errors_of(data, by_people)
    whole = card(errors, options)
    matrix = error_correlations(errors)
    by_n_eff, by_accuracy = (
        [
            one | ({"n_eff": None} if place and whole.unworthy else {})
            for place, one in enumerate(ordered(errors, by))
        ]
        for by in ("n_eff", "accuracy")
    )
    return Panel(
        verdicts=tuple(verdicts),
        votes=votes,
        options=options,
        card=whole,
        judges=tuple(_judges(data, families, errors, without, options)),
        correlations=matrix,
        by_n_eff=by_n_eff,
        by_accuracy=by_accuracy,
        without_family=_without_family(families, errors, options),
        by_people=by_people,
        n_items=len(errors.wrong),
        n_labelled=int(np.isin(np.arange(data.items.n), data.people.item).sum()),
        n_prompts=int(errors.prompt.max()) + 1,
        n_ties=int(ties.sum()),
        warnings=tuple(dict.fromkeys(_warnings(data, errors, whole, matrix))),
    )


def _judges(
    data: StudyData,
    families: Mapping[str, str],
    errors: Errors,
    without: Mapping[str, int],
    options: StudyOptions,
) -> Iterator[_Judge]:
    sums = np.column_stack([1 - errors.wrong, np.ones(len(errors.wrong))])
    by_prompt = sums_within(errors.prompt, sums, int(errors.prompt.max()) + 1)
    for place, judge in enumerate(data.judges):
        accuracy = clustered(
            by_prompt[:, [place, -1]],
            lambda rows: over(rows[:, 0], rows[:, 1]),
            options.draws(),
            n=len(errors.wrong),
            mean=SHARE,
        )
        n_verdicts = judge.verdicts.n + judge.n_unread
        family = families[judge.name]
        yield _Judge(judge.name, family, accuracy, n_verdicts, judge.n_unread, without[judge.name])


def _without_family(
    of_judge: Mapping[str, str], errors: Errors, options: StudyOptions
) -> dict[str, _Card]:
    families = [of_judge[name] for name in errors.judges]
    if len({*families}) < 2:
        return {}
    return {
        family: card(errors.only([j for j, own in enumerate(families) if own != family]), options)
        for family in sorted({*families})
    }


def _warnings(data: StudyData, errors: Errors, whole: _Card, matrix: Floats) -> Iterator[str]:
    yield from (text for text in data.warnings if text != NO_ORDER)
    n_prompts = int(errors.prompt.max()) + 1
    if n_prompts < MIN_PROMPTS:
        yield (
            f"The items are of {plural(n_prompts, 'prompt')}: with fewer than {MIN_PROMPTS}, "
            "intervals are too narrow, because they resample prompts."
        )
    rates = errors.wrong.mean(axis=0)
    constant = [name for name, rate in zip(errors.judges, rates, strict=True) if rate in (0, 1)]
    if constant and whole.k > 1:
        yield (
            f"{joined(constant)} {('errs' if len(constant) == 1 else 'err')} on none or on all of "
            "the items: constant errors have no correlation, and these pairs are excluded from "
            "the mean."
        )
    for a, b in combinations(range(whole.k), 2):
        if matrix[a, b] >= ALIKE:
            yield (
                f"{errors.judges[a]} and {errors.judges[b]} err on the same items: one of the two "
                "is redundant."
            )


def _headline(card: _Card, n_prompts: int, *, by_people: bool) -> str:
    if card.k == 1:
        return "A panel of one judge is equivalent to one judge."
    if n_prompts < MIN_PROMPTS:
        return (
            f"The independent judges that these {card.k} are worth cannot be estimated from "
            f"{plural(n_prompts, 'prompt')}."
        )
    if card.n_eff.value is None:
        return (
            f"The independent judges that these {card.k} are worth are not estimated, because "
            f"{card.unworthy or 'the correlation of their errors is not defined'}."
        )
    worth = number_of(card.n_eff, 1)
    if by_people:
        return (
            f"With votes taken as the truth, these {card.k} judges are equivalent to {worth} "
            "independent judges: a lower bound, because errors of people count as shared errors."
        )
    return f"These {card.k} judges are equivalent to {worth} independent judges."


def _sentences(panel: Panel) -> Iterator[str]:
    one, truth = panel.card, "the majority of votes" if panel.by_people else "the label"
    yield (
        f"Compared with {truth} on {plural(panel.n_items, 'item')} of "
        f"{plural(panel.n_prompts, 'prompt')}: the majority is right on "
        f"{percent_of(one.majority)}, {panel.best} alone on {percent_of(one.best)}."
        if one.k > 1
        else f"Compared with {truth} on {plural(panel.n_items, 'item')} of "
        f"{plural(panel.n_prompts, 'prompt')}, {panel.best} is right on "
        f"{percent_of(one.majority)}."
    )
    if panel.n_ties:
        yield (
            f"On {plural(panel.n_ties, 'item')} of these the truth is a tie or a split vote: only "
            "the verdict tie is right there."
        )
    if one.k > 1 and panel.n_prompts >= MIN_PROMPTS:
        if one.at_most.value is not None:
            yield (
                "Corrected for errors of people, estimated from items with two votes, they are "
                f"equivalent to {number_of(one.at_most, 1)}: an upper bound, because this is too "
                "high if people and judges find the same items hard."
            )
        yield _on_best(one.over_best, panel.best)
        if not panel.by_people:
            yield _on_gap(one)
        yield _on_next(panel)
    left_out = panel.n_labelled - panel.n_items
    unread, total = panel.n_unread, sum(judge.n_verdicts for judge in panel.judges)
    text = ""
    if unread:
        text = (
            f"{unread:,} of {total:,} verdicts {('was' if unread == 1 else 'were')} not parsed: "
            "excluded, not counted as errors. "
        )
    if left_out:
        text += (
            f"{plural(left_out, 'item')} of {panel.n_labelled:,} "
            f"{('is' if left_out == 1 else 'are')} excluded, because not every judge has a parsed "
            "verdict there."
        )
    yield text.strip()


def _on_best(lead: Estimate, best: str) -> str:
    if lead.lower is not None and lead.lower > 0:
        return f"The panel is right more often than {best} alone, by {_points(lead)}."
    if lead.upper is not None and lead.upper < 0:
        return (
            f"{best} alone is right more often than the panel: the panel's lead is "
            f"{_points(lead)}."
        )
    return f"We do not find a difference between the panel and {best} alone: {_points(lead)}."


def _points(estimate: Estimate) -> str:
    return f"{gap_of(estimate)} percentage points"


def _on_gap(card: _Card) -> str:
    gap, independent = card.gap, percent(card.independent.value)
    if card.k == 2:
        return (
            "When one of two judges is right, the panel counts as half right. The cost of shared "
            "errors to a majority needs three judges."
        )
    if gap.lower is not None and gap.lower > 0:
        return (
            f"Judges of equal accuracy with independent errors would be right on {independent}: "
            f"shared errors cost the panel {_points(gap)}."
        )
    if gap.upper is not None and gap.upper < 0:
        return (
            f"Judges of equal accuracy with independent errors would be right on {independent}, "
            f"less often than this panel: {_points(gap)}."
        )
    return (
        f"Judges of equal accuracy with independent errors would be right on {independent}: "
        f"we do not find that shared errors cost the panel anything ({_points(gap)})."
    )


def _on_next(panel: Panel) -> str:
    """Say whom to add to the best judge, and how many make the panel right most often."""
    first, second = panel.by_n_eff[:2]
    text, best_first = "", first["judge"]
    if second["n_eff"] is not None:
        worth = "the two judges err on different items"
        if second["n_eff"] <= 2:
            worth = f"together they are equivalent to {second['n_eff']:.1f} independent judges"
        text = f"Next to {best_first}, {second['judge']} is the most independent: {worth}. "
    best = max(panel.by_accuracy, key=lambda one: one["accuracy"])
    chosen = panel.by_accuracy[: panel.by_accuracy.index(best) + 1]
    if len(chosen) == 1:
        text += f"Adding judges one by one never beats {best_first} alone. "
    else:
        names = joined([one["judge"] for one in chosen])
        text += f"Added one by one, {names} are best, {percent(best['accuracy'])}. "
    return f"{text}Both are selected on these items, so they look better on them than on others."
