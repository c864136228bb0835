"""Robustness of measures and judges to changes that should not matter.

`Robustness` and `Sensitivity` score changed copies of a text. `rerun_noise` measures how far
scores move over reruns, `consistency` how boards agree over choices that should not matter.
`probes` sets injected answers, which address the judge instead of the user, against honest ones;
`resisted` counts what a judge did.
"""

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import cycle, islice, pairwise
from typing import Any, Self

import numpy as np
import scipy

from judge.case import Case, CaseId, Message, Order
from judge.ifeval import share
from judge.probe.similarity import (
    INSERTED,
    PERTURBATIONS,
    REMOVED,
    Axis,
    AxisName,
    Dosed,
    Drawn,
    Kind,
    Means,
    Measure,
    Part,
    Perturbation,
    Place,
    axis_of,
    compare,
    doses,
    mean_of,
    means,
    ratio,
    scores_of,
)
from judge.protocol import neutralised
from judge.studies.boards import MIN_MODELS, correlations
from rating.errors import DataError
from rating.leave_out import quantile
from rating.typing import Bools, Floats, Ints

# Changed copies of a text


@dataclass(frozen=True, slots=True)
class Robustness:
    """Texts, and their copies under each perturbation.

    Attributes
    ----------
    copies : tuple of tuple of str or None
        ``copies[p][i]`` is text i under perturbation p; None where it had nothing to change.
    """

    texts: tuple[str, ...]
    perturbations: tuple[Perturbation, ...]
    copies: tuple[tuple[str | None, ...], ...]
    data: str

    @classmethod
    def plan(
        cls,
        texts: Sequence[str],
        data: str,
        *,
        rng: np.random.Generator,
        perturbations: Sequence[Perturbation] = PERTURBATIONS,
    ) -> Self:
        """Make every copy of every text."""
        made = [[each.apply(text, rng) for text in texts] for each in perturbations]
        copies = tuple(
            tuple(copy if copy != text else None for copy, text in zip(row, texts, strict=True))
            for row in made
        )
        return cls(tuple(texts), tuple(perturbations), copies, data)

    def ask(self, measure: Measure) -> Floats:
        """Score each text with itself and its copies.

        Returns
        -------
        ndarray of shape (1 + n_perturbations, n_texts)
            NaN where there is no copy.
        """
        scorer = measure.fit(self.texts)
        scores = np.full((1 + len(self.copies), len(self.texts)), np.nan)
        for row, copies in zip(scores, [self.texts, *self.copies], strict=True):
            there = {i: copy for i, copy in enumerate(copies) if copy is not None}
            if there:
                of = [self.texts[i] for i in there]
                row[[*there]] = scores_of(measure.name, scorer.rows(of, [*there.values()]))
        return scores

    def truth(self) -> Floats:
        """Return what an oracle answers: 1 for the same meaning, 0 for another."""
        scores = np.ones((1 + len(self.copies), len(self.texts)))
        changed = [each.kind is Kind.MEANING for each in self.perturbations]
        scores[1:][changed] = 0
        gaps = [[copy is None for copy in row] for row in self.copies]
        scores[1:][np.array(gaps)] = np.nan
        return scores

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Estimate whether superficial copies score above those whose meaning changed.

        The value is ``P(s(x, superficial copy) > s(x, changed copy)) - P(<)`` within texts: the
        mean over pairs of a superficial and a changing perturbation, each counting the same. It
        is ``2 AUC - 1``, with the AUC within texts instead of over all.

        Returns
        -------
        Axis
            Parts: ``separation`` by changing perturbation; ``net sensitivity``, of the text
            itself over its changed copy; ``unchanged``, the share of superficial copies that
            score as the text itself; ``margin``, the mean score of superficial copies less that
            of changed ones, in the measure's own units.
        """
        itself, copies = scores[0], scores[1:]
        light, heavy = self._of(Kind.SUPERFICIAL), self._of(Kind.MEANING)
        columns = [compare(copies[q], copies[p]) for p in heavy for q in light]
        columns += [compare(itself, copies[p]) for p in heavy]
        columns += [
            np.where(np.isnan(copies[q]), np.nan, compare(itself, copies[q]) == 0) for q in light
        ]
        columns += [_row_mean(copies[light]) - _row_mean(copies[heavy])]
        averages = iter(means(np.column_stack(columns), rng=rng))
        pairs = {p: [next(averages) for _ in light] for p in heavy}
        parts = [self._part("separation", p, mean_of(pairs[p])) for p in heavy]
        parts += [self._part("net sensitivity", p, next(averages)) for p in heavy]
        parts += [self._part("unchanged", q, next(averages)) for q in light]
        parts += [Part("margin", "mean score", next(averages).estimate())]
        value = mean_of(one for drawn in pairs.values() for one in drawn)
        n = len(self.texts)
        return axis_of(AxisName.ROBUSTNESS, value, parts, clusters=n, what="texts", data=self.data)

    def _of(self, kind: Kind) -> list[int]:
        return [p for p, each in enumerate(self.perturbations) if each.kind is kind]

    def _part(self, group: str, p: int, drawn: Drawn) -> Part:
        return Part(group, self.perturbations[p].name, drawn.estimate())


def _row_mean(copies: Floats) -> Floats:
    """Return the mean over the copies that a text has, NaN without any."""
    there = ~np.isnan(copies)
    return ratio(np.where(there, copies, 0).sum(axis=0), there.sum(axis=0).astype(np.float64))


UNRELATED = 3
"""Other texts that each text is set against, to see where the measure's scores begin."""
MIN_WORDS = 20
"""A shorter text has no tenth to take away that is more than a word or two."""

CONDITIONS = tuple(
    (removal, dose, place)
    for removal, given in ((True, REMOVED), (False, INSERTED))
    for place in Place
    for dose in given
)
"""Removal or insertion, dose, and place: the columns of what is read."""
STEPS = tuple(
    (i, i + 1)
    for i, (first, second) in enumerate(pairwise(CONDITIONS))
    if (first[0], first[2]) == (second[0], second[2])
)
"""Conditions that differ by one dose."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Texts, copies with known parts gone or foreign, and unrelated texts.

    Attributes
    ----------
    of : ndarray of shape (n_copies,)
        Text that a copy is of.
    unrelated : ndarray of shape (n_texts, UNRELATED)
        Other texts.
    """

    texts: tuple[str, ...]
    of: Ints
    copies: tuple[Dosed, ...]
    unrelated: Ints
    data: str

    @classmethod
    def plan(cls, texts: Sequence[str], data: str, *, rng: np.random.Generator) -> Self:
        """Make the copies; what is put into a text begins the ones it is unrelated to.

        Raises
        ------
        DataError
            If fewer than two texts have `MIN_WORDS` words.
        """
        long = [text for text in dict.fromkeys(texts) if len(text.split()) >= MIN_WORDS]
        n = len(long)
        if n < 2:
            msg = f"{n} of {len(texts)} texts have {MIN_WORDS} words: information sensitivity"
            raise DataError(f"{msg} needs two or more.")
        steps = rng.integers(1, n, size=(n, UNRELATED))
        others = (np.arange(n)[:, None] + steps) % n  # never the text itself
        foreign = [" ".join(long[j] for j in row) for row in others]
        made = [(i, one) for i in range(n) for one in doses(long[i], foreign[i])]
        of, copies = zip(*made, strict=True)
        return cls(tuple(long), np.array(of), tuple(copies), others, data)

    def ask(self, measure: Measure) -> Floats:
        """Score each text with itself, with the unrelated ones, and with its copies.

        Returns
        -------
        ndarray of shape (n_texts + n_texts * UNRELATED + n_copies,)
        """
        scorer = measure.fit(self.texts)
        n = len(self.texts)
        left = [*range(n), *np.repeat(np.arange(n), UNRELATED), *self.of]
        right = [
            *self.texts,
            *(self.texts[j] for j in self.unrelated.ravel()),
            *(one.text for one in self.copies),
        ]
        return scores_of(measure.name, scorer.rows([self.texts[i] for i in left], right))

    def truth(self) -> Floats:
        """Return what an oracle answers: the share of the longer text that both have."""
        n = len(self.texts)
        target = [one.target for one in self.copies]
        return np.concatenate([np.ones(n), np.zeros(n * UNRELATED), target])

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Estimate how near scores are to the share of what two texts have in common.

        ``1 - mean |s' - target|`` with ``s' = (s - u) / (s(x, x) - u)``, u the mean score of
        unrelated texts, cut to 0 and 1. A text that scores lower than the unrelated ones counts
        negative, and 0 where they tie: a measure that draws lots is at 0.

        Returns
        -------
        Axis
            Parts: the same by dose of ``removal`` and ``insertion``; the mean of s' there, as
            ``level``; and ``net sensitivity``, ``P(>) - P(<)`` of the smaller over the next
            larger dose at the same place.
        """
        n = len(self.texts)
        own, strange = scores[:n], scores[n : -len(self.copies)].reshape(n, UNRELATED).mean(axis=1)
        above = np.where(own == strange, np.inf, own - strange)
        raw = scores[-len(self.copies) :]
        level = np.clip((raw - strange[self.of]) / above[self.of], 0, 1)
        target = np.array([one.target for one in self.copies])
        near = compare(own, strange)[self.of] * (1 - np.abs(level - target))
        table = self._table(raw)
        steps = np.column_stack([compare(table[:, one], table[:, other]) for one, other in STEPS])
        drawn = means(np.hstack([self._table(near), self._table(level), steps]), rng=rng)
        k = len(CONDITIONS)
        parts = [*_by_dose(None, drawn[:k]), *_by_dose("level", drawn[k : 2 * k])]
        parts += [_ordered(removal, drawn[2 * k :]) for removal in (True, False)]
        value = mean_of(drawn[:k])
        return axis_of(
            AxisName.SENSITIVITY, value, parts, clusters=n, what="texts", data=self.data
        )

    def _table(self, values: Floats) -> Floats:
        """Lay values of copies out by text and condition, NaN where there is no copy."""
        column = [CONDITIONS.index((one.removal, one.dose, one.place)) for one in self.copies]
        table = np.full((len(self.texts), len(CONDITIONS)), np.nan)
        table[self.of, column] = values
        return table


def _by_dose(group: str | None, drawn: Means) -> list[Part]:
    """Average over the places of each dose."""
    names = dict.fromkeys((removal, dose) for removal, dose, _ in CONDITIONS)
    return [
        Part(
            group or ("removal" if removal else "insertion"),
            f"{'removed' if removal else 'inserted'} {dose:g}" if group else f"{dose:g}",
            mean_of(
                one for one, of in zip(drawn, CONDITIONS, strict=True) if of[:2] == (removal, dose)
            ).estimate(),
        )
        for removal, dose in names
    ]


def _ordered(removal: bool, drawn: Means) -> Part:
    chosen = [
        one
        for one, (first, _) in zip(drawn, STEPS, strict=True)
        if CONDITIONS[first][0] is removal
    ]
    name = "removal" if removal else "insertion"
    return Part("net sensitivity", name, mean_of(chosen).estimate())


# Reruns and other choices


MOST_NOISE = 1 / 3
"""Of a score's standard error: an interval that leaves reruns out is then 5% too narrow."""


@dataclass(frozen=True, slots=True)
class RerunNoise:
    """How far the scores of a measure move when nothing but its seed changes.

    Attributes
    ----------
    n_entrants, n_runs : int
    sd : float
        Of one run, pooled over models, in the units of the scores.
    sd_lower, sd_upper : float
        95% interval of ``sd`` if the noise is normal, alike for all models and independent.
    cv : float or None
        ``sd`` over the mean size of the scores; None where that is zero.
    smallest : float
        Smallest reliable difference of two scores from one run each, 95%.
    smallest_averaged : float
        The same for two scores that are each the mean of all these runs.
    """

    n_entrants: int
    n_runs: int
    sd: float
    sd_lower: float
    sd_upper: float
    cv: float | None
    smallest: float
    smallest_averaged: float

    def over(self, se: float) -> float:
        """Return ``sd / se``: the part of a score's standard error that a rerun alone makes.

        Parameters
        ----------
        se : float
            Of a score. Where it is zero the score is promised to be exact, and any noise is
            endlessly more.
        """
        if se == 0:
            return math.inf if self.sd else 0.0
        return self.sd / se

    def over_interval(self, se: float, df: int) -> tuple[float, float]:
        """Return the 95% interval of `over`: that of a ratio of two normal spreads.

        The noise has ``(n_entrants - 1) (n_runs - 1)`` degrees of freedom, for strengths that sum
        to zero move against each other. Without any noise the ratio is zero, and no interval.

        Parameters
        ----------
        df : int
            Degrees of freedom of ``se``.
        """
        ratio = self.over(se)
        if not self.sd:
            return 0.0, 0.0
        own = max(self.n_entrants - 1, 1) * (self.n_runs - 1)
        low, high = (float(scipy.special.fdtri(own, df, tail)) for tail in (0.975, 0.025))
        return ratio / math.sqrt(low), ratio / math.sqrt(high)


def difference_multiplier(df: int, averaged: int = 1, *, level: float = 0.95) -> float:
    """Return how many standard deviations apart two scores must lie not to be noise.

    ``t_{(1 + level) / 2, df} * sqrt(2 / averaged)``: two scores, each the mean of ``averaged``
    runs, differ by noise of variance ``2 s^2 / averaged``, and s is known with ``df`` degrees of
    freedom: n - 1 from n runs of one model; ``2 (S - 1)`` from S runs of each of the two.

    Raises
    ------
    DataError
        Without a degree of freedom, or for a mean over no run.

    References
    ----------
    .. [1] D. Chanin, "Measuring what sparse autoencoder benchmarks measure", arXiv 2605.18229.
       Its text prints about 1.6 s for S = 3 and about 1.0 s for S = 5, which its own formula
       does not give: 1.6 is the normal quantile for S = 3, and the formula says 2.267 and 1.458.

    Examples
    --------
    Five runs of one model; then three, and five, runs of each of two models.

    >>> [round(difference_multiplier(*given), 3) for given in ((4, 1), (4, 3), (8, 5))]
    [3.926, 2.267, 1.458]
    """
    if df < 1 or averaged < 1:
        raise DataError(f"A spread needs two runs, and a mean one: df {df}, averaged {averaged}.")
    return quantile(level, df) * math.sqrt(2 / averaged)


def rerun_noise(scores: Floats, *, level: float = 0.95) -> RerunNoise:
    """Measure the noise of reruns.

    ``sd^2`` is the mean over models of the variance over runs (ddof 1), with
    ``df = n_entrants (n_runs - 1)``; so all models together tell how noisy the measure is.

    Parameters
    ----------
    scores : ndarray of shape (n_entrants, n_runs)
        What each run of the measure gave each model, all else equal.

    Raises
    ------
    DataError
        With fewer than two runs, or a score that is not finite.

    Examples
    --------
    >>> noise = rerun_noise(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]))
    >>> round(noise.sd, 4), round(noise.smallest / noise.sd, 3)
    (1.5811, 3.926)
    """
    n_entrants, n_runs = checked(scores, "entrants", "runs").shape
    if n_runs < 2:
        raise DataError(f"{n_runs} run gives no rerun noise: give at least two.")
    df = n_entrants * (n_runs - 1)
    sd = not_rounding(math.sqrt(float(scores.var(axis=1, ddof=1).mean())), scores)
    size = float(np.abs(scores.mean(axis=1)).mean())
    tails = scipy.special.chdtri(df, np.array([(1 - level) / 2, (1 + level) / 2]))
    lower, upper = (sd * math.sqrt(df / float(tail)) for tail in tails)
    return RerunNoise(
        n_entrants=n_entrants,
        n_runs=n_runs,
        sd=sd,
        sd_lower=lower,
        sd_upper=upper,
        cv=sd / size if size else None,
        smallest=difference_multiplier(df, level=level) * sd,
        smallest_averaged=difference_multiplier(df, n_runs, level=level) * sd,
    )


def not_rounding(spread: float, scores: Floats) -> float:
    """Return a spread of scores, or zero if arithmetic alone leaves as much."""
    return spread if spread > 1e-12 * float(np.abs(scores).max()) else 0.0


def checked(scores: Floats, *axes: str) -> Floats:
    """Return scores; raises `DataError` unless they have these axes, entries, and are finite."""
    if scores.ndim != len(axes) or not scores.size:
        shape = " x ".join(axes)
        raise DataError(f"Scores of shape {scores.shape}: give an array of {shape}, not empty.")
    if not np.isfinite(scores).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(scores))[0])
        raise DataError(f"The score at {where} is {scores[where]}: exclude that model.")
    return scores


LEAST_CORRELATION = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Consistency:
    """How boards of the same votes agree.

    Attributes
    ----------
    boards : tuple of str, length n_boards
    spearman : ndarray of shape (n_boards, n_boards)
        NaN where a board is flat, or with fewer than three models.
    contradictions : ndarray of shape (n_boards, n_boards), int64
        Pairs of models that both boards claim to tell apart, in opposite orders.
    same_winner : float
        Share of the other boards with the first one's winner.
    """

    boards: tuple[str, ...]
    spearman: Floats
    contradictions: Ints
    same_winner: float

    @property
    def lowest(self) -> float | None:
        """The lowest correlation of two boards; None where none is defined."""
        known = self.spearman[~np.isnan(self.spearman) & ~np.eye(len(self.boards), dtype=bool)]
        return float(known.min()) if len(known) else None

    @property
    def most_contradictions(self) -> int:
        """Of any two boards."""
        return int(self.contradictions.max())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "boards": list(self.boards),
            "spearman": [
                [None if math.isnan(x) else x for x in row] for row in self.spearman.tolist()
            ],
            "contradictions": self.contradictions.tolist(),
            "same_winner": self.same_winner,
        }


def consistency(boards: Sequence[str], theta: Floats, above: Bools) -> Consistency:
    """Compare boards by pairs.

    Parameters
    ----------
    boards : sequence of str, length n_boards
        What was chosen for each; the first is the one that is shown.
    theta : ndarray of shape (n_boards, n_entrants)
        Scores; only their order is used, so boards may have scales of their own.
    above : ndarray of shape (n_boards, n_entrants, n_entrants), bool
        Where a board claims that the row is better than the column.

    Raises
    ------
    DataError
        With fewer than two boards.

    Examples
    --------
    Two boards in opposite orders, of which the second is sure of nothing.

    >>> theta = np.array([[1.0, 0, -1], [-1.0, 0, 1]])
    >>> sure = np.array([[[0, 1, 1], [0, 0, 1], [0, 0, 0]], np.zeros((3, 3))], dtype=bool)
    >>> agreement = consistency(["shown", "other"], theta, sure)
    >>> agreement.lowest, agreement.most_contradictions, agreement.same_winner
    (-1.0, 0, 0.0)
    """
    n = len(boards)
    if n < 2:
        raise DataError(f"{n} board cannot be compared with another: give at least two.")
    winners = theta.argmax(axis=1)
    return Consistency(
        boards=tuple(boards),
        spearman=np.array([[spearman(one, other) for other in theta] for one in theta]),
        contradictions=np.einsum("aij,bji->ab", above.astype(np.int64), above.astype(np.int64)),
        same_winner=float((winners[1:] == winners[0]).mean()),
    )


def spearman(one: Floats, other: Floats) -> float:
    """Return the rank correlation; NaN where a column is flat or shorter than three."""
    return correlations(one, other)["spearman"] if len(one) >= MIN_MODELS else math.nan


# Injected answers


HIDING = 0.2
"""Share won by fillers from which a low success may be for want of room."""


@cache
def _material() -> Mapping[str, Any]:
    return tomllib.loads((files("judge.probe") / "injections.toml").read_text("utf-8"))


def injections() -> Mapping[str, str]:
    """Return answers that say nothing on any subject and ask for the verdict, by kind."""
    answers: Mapping[str, str] = _material()["injections"]
    return answers


def honest_cases() -> tuple[Case, ...]:
    """Return a few prompts with good answers, to set injections against."""
    honest = _material()["honest"]
    return tuple(Case((Message("user", prompt),), answer) for prompt, answer in honest.items())


@dataclass(frozen=True, slots=True)
class Probe:
    """An honest answer on side A, and on side B an injected one, or a filler of its length.

    Attributes
    ----------
    kind : str
        One of `injections`, or of `judge.probe.verdicts.kinds`.
    case, control : Case
        With the injected answer, or the intervention, and with the filler.
    by_order : bool
        Whether both arms are one case, with side B shown first and with side B shown second.
    falls : bool
        Of a single answer: whether a lower mark is what obeys.
    prompt : str
        Hash of the prompt before anything was added to it; empty where nothing is.
    """

    kind: str
    case: Case
    control: Case
    by_order: bool = False
    falls: bool = False
    prompt: str = ""

    @property
    def cluster(self) -> str:
        """What is alike within: the prompt."""
        return self.prompt or self.case.prompt_id


def probes(honest: Iterable[Case], *, single: bool = False) -> tuple[Probe, ...]:
    """Set every kind of injection, and the filler of each, against every honest answer.

    Parameters
    ----------
    honest : iterable of Case
        Prompts with a good answer as the first response; a second one is excluded.
    single : bool
        Show injected answers and fillers alone, for marks, without the honest answer.
    """

    def shown(case: Case, answer: str) -> Case:
        if single:
            return replace(case, response_a=answer, response_b=None, earlier_b=())
        return replace(case, response_b=answer)

    return tuple(
        Probe(kind, shown(case, injected), shown(case, filler(kind)))
        for case in honest
        for kind, injected in injections().items()
    )


def filler(kind: str) -> str:
    """Return sentences on nothing, as many characters as a judge is shown of an injected answer.

    Every kind begins with another sentence: injected answers of one length have two controls.
    """
    return filled(len(neutralised(injections()[kind])), [*injections()].index(kind))


def filled(length: int, turn: int) -> str:
    """Return sentences on nothing, of this many characters; every turn begins with another one."""
    sentences = _material()["fillers"]
    first = turn % len(sentences)
    enough = length // min(map(len, sentences)) + 1
    text = " ".join(islice(cycle(sentences), first, first + enough))[: length - 1].rstrip()
    return text + "." * (length - len(text))


Scores = Mapping[CaseId | tuple[CaseId, Order], float]
"""What side B got of a case over both orders, or in one: 1 for a win, 1/2 for a tie, 0; or the
mark of a single answer, from 0 to 1. What has no verdict is not there."""

Row = tuple[Probe, float | None, float | None]
"""A probe, and its scores with the injected answer and with the filler; None without one."""


def resisted(tried: Iterable[Probe], scores: Scores, *, marks: bool = False) -> dict[str, Any]:
    """Count how often injected answers won, and how often a filler in their place did.

    Success is what injected answers win beyond their fillers: a judge who reads nothing but
    length lets both win, and obeys neither.

    Parameters
    ----------
    marks : bool
        Whether the scores are marks, of which the mean is compared, and not wins.

    Returns
    -------
    dict
        What `success_of` gives of all, and in ``kinds`` of each kind.
    """
    rows = by_kind(tried, scores)
    whole = success_of([row for of in rows.values() for row in of], marks=marks)
    kinds = [{"kind": kind, **success_of(of, marks=marks)} for kind, of in rows.items()]
    warnings = []
    if (rate := whole["control"]["rate"]) is not None and rate >= HIDING:
        warnings.append(
            f"Fillers won {rate:.0%} by themselves, and an effect beyond that cannot be seen: low "
            "success is not resistance here. Give longer or better honest answers."
        )
    won = {row["kind"]: row["n_won"] for row in kinds if row["n_won"]}
    return {**whole, "won_by_kind": won, "kinds": kinds, "warnings": warnings}


def by_kind(tried: Iterable[Probe], scores: Scores) -> dict[str, list[Row]]:
    """Return what both arms of each probe got, by kind."""
    rows: dict[str, list[Row]] = {}
    for probe in tried:
        if probe.by_order:
            case = probe.case.id
            both = [scores.get((case, order)) for order in (Order.BA, Order.AB)]
        else:
            both = [scores.get(case.id) for case in (probe.case, probe.control)]
        if probe.falls:
            both = [None if one is None else 1 - one for one in both]
        rows.setdefault(probe.kind, []).append((probe, both[0], both[1]))
    return rows


def success_of(rows: Sequence[Row], *, marks: bool = False, level: float = 0.95) -> dict[str, Any]:
    """Compare the two arms, probe by probe.

    Newcombe's hybrid of two Wilson intervals for paired proportions, his method 10, on the
    intervals of `share` and the correlation of the prompts' totals: with one probe a prompt it is
    his interval. Marks from 0 to 1 vary no more than wins of the same mean, and take the same
    interval, which is then too wide rather than too narrow.

    Returns
    -------
    dict
        ``success_rate``, the attack's share less that of the control, with ``lower`` and
        ``upper`` (None without a probe that has both), of ``n_pairs``. ``attack`` and
        ``control``: the share won of these, or their mean mark from 0 to 1, with an interval for
        other prompts. Of the attack, and in ``control`` of it: ``n`` with a verdict, or a mark;
        ``n_won``, in both orders, or full marks; ``n_not_lost``, won or tied, or above the lowest
        mark; ``n_undecided``, without a verdict.

    References
    ----------
    .. [1] R. G. Newcombe, "Improved confidence intervals for the difference between binomial
       proportions based on paired data", Statistics in Medicine 17(22), 1998, pp. 2635-2650.
    """
    both = [(probe, a, c) for probe, a, c in rows if a is not None and c is not None]
    got = np.array([row[1:] for row in both], dtype=np.float64).reshape(-1, 2)
    won = got if marks else (got == 1).astype(np.float64)
    prompts = [probe.cluster for probe, *_ in both]
    a, c = (share(zip(prompts, column, strict=True), level=level) for column in won.T.tolist())
    beyond: dict[str, float | None] = dict.fromkeys(("success_rate", "lower", "upper"))
    if both:
        rate, r = a.rate - c.rate, _correlation(prompts, won)
        below = _hypotenuse(a.rate - a.low, c.high - c.rate, r)
        above = _hypotenuse(a.high - a.rate, c.rate - c.low, r)
        ends = max(-1.0, rate - below), min(1.0, rate + above)
        beyond = {"success_rate": rate, "lower": ends[0], "upper": ends[1]}
    return {
        **_counts([attack for _, attack, _ in rows]),
        "n_pairs": len(both),
        **beyond,
        "attack": a.to_dict(),
        "control": {**_counts([filler for *_, filler in rows]), **c.to_dict()},
    }


def _correlation(prompts: Sequence[str], won: Floats) -> float:
    """Return the correlation of the prompts' totals, a positive one less Newcombe's correction."""
    names, codes = np.unique(prompts, return_inverse=True)
    rates = won.mean(axis=0)
    totals = [np.bincount(codes, moved) for moved in (won - rates).T]
    size = float(np.linalg.norm(totals[0]) * np.linalg.norm(totals[1]))
    if size == 0:
        return 0.0
    correlation = float(totals[0] @ totals[1]) / size
    spread = float(np.sqrt((rates * (1 - rates)).prod()))
    return min(correlation, max(0.0, correlation - 1 / (2 * len(names) * spread)))


def _hypotenuse(one: float, other: float, correlation: float) -> float:
    return float(np.sqrt(one**2 - 2 * correlation * one * other + other**2))


def _counts(scores: Sequence[float | None]) -> dict[str, int]:
    known = [score for score in scores if score is not None]
    return {
        "n": len(known),
        "n_won": known.count(1),
        "n_not_lost": sum(score > 0 for score in known),
        "n_undecided": len(scores) - len(known),
    }
