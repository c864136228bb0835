"""Raters of a study: consistency, accuracy, agreement, and what more ratings would add.

`read_rated` reads the ratings as `arena study export` writes them, one per row; `study_raters`
describes the raters. `agreement_of` estimates how far people who rate the same items agree, with
nothing else computed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.case import Order
from judge.ifeval import wilson
from judge.studies.alignment import Aligned, align
from judge.studies.biases import SideCounts, SideWarning, warn_of_sides, wilson_share
from judge.studies.data import ORDERS, labels_of_people
from judge.studies.estimates import (
    FEW_PROMPTS,
    HALF,
    Draws,
    Estimate,
    Raters,
    Shares,
    clustered,
    counts,
    gap_of,
    pairs_with_others,
    percent_of,
    ratio,
    variance_shares,
)
from judge.studies.gold import PRIOR, posterior
from judge.studies.one_judge import certainly
from judge.studies.options import StudyOptions
from judge.studies.plan import (
    WANTED_ALPHA,
    WANTED_RATERS,
    AlphaPlan,
    RaterPlan,
    plan_alpha,
    plan_ratings,
    preference,
    share_of,
)
from judge.studies.reliability import Ratings, ac1, alpha
from judge.studies.rows import TIE, B, Items, Labels, Rows, rows_from
from judge.studies.truth import UNKNOWN, dawid_skene
from judge.tables.annotations import Annotations, read_annotations
from rating.errors import DataError
from rating.leave_out import jackknife_variance, sums_within
from rating.outcome import Outcome, of_sides
from rating.sentences import Sentence, counted, plural
from rating.tables.files import Files
from rating.tables.vote_filter import LABELS, SKIP
from rating.typing import Bools, Floats, Ints

# Ratings of a study


KINDS = ("item", "gold", "qualification", "pilot")
CONFIDENCE = {1: "a guess", 2: "fairly sure", 3: "sure"}


@dataclass(frozen=True, slots=True, eq=False)
class _Rated:
    """Ratings of pairs, in their items' own sides.

    Attributes
    ----------
    source, study : str
        Where they were read, and the study's name; empty if the file does not say.
    items : Items
    raters : tuple of str
    labels : Labels
        ``first`` is 1 where side A stood on the left, -1 where side B did, 0 where it is unknown.
    kind : ndarray of shape (n,), str
    repeat : ndarray of shape (n,), bool
        Whether the rater saw the item for the second time.
    gold : ndarray of shape (n,)
        The right label; NaN where there is none.
    confidence, seconds : ndarray of shape (n,)
        NaN where unknown.
    skipped : ndarray of shape (n_raters,), int64
        Items that a rater chose nothing of.
    left_out : mapping of str to int
        Rows that are in no figure, by reason.
    """

    source: str
    study: str
    items: Items
    raters: tuple[str, ...]
    labels: Labels
    kind: NDArray[np.str_]
    repeat: Bools
    gold: Floats
    confidence: Floats
    seconds: Floats
    skipped: Ints
    left_out: Mapping[str, int]

    @property
    def counted(self) -> Bools:
        """First ratings of the study's items: neither gold, pilot, qualification nor repeats."""
        return np.asarray((self.kind == "item") & ~self.repeat)

    def repeats(self) -> Ints:
        """Return the rows of items that a rater rated twice, first and second, shape (m, 2)."""
        both = self.labels.rater * self.items.n + self.labels.item
        first, second = np.flatnonzero(~self.repeat), np.flatnonzero(self.repeat)
        _, at, other = np.intersect1d(both[first], both[second], return_indices=True)
        return np.column_stack([first[at], second[other]])


def read_rated(source: Files) -> _Rated:
    """Read the ratings of one study.

    Needed are the columns ``item``, ``rater``, ``sides`` and ``choice``; rankings and skipped
    items are excluded and counted.

    Raises
    ------
    DataError
        If it cannot be read, a value is none of those in its column, a rater rated an item twice
        without a repeat, or there is no choice at all.
    """
    table = read_annotations(source, "ratings of a study")
    for name in ("item", "rater", "sides", "choice"):
        table.need(name)
    studies = sorted(set(table.texts("study"))) if table.has("study") else [""]
    if len(studies) > 1:
        raise DataError(
            f"{table.source!r} holds {len(studies)} studies ({', '.join(studies[:3])} …): choose "
            f"one, as with --where \"study = '{studies[0]}'\"."
        )
    ranking = f"one of {', '.join((*LABELS, SKIP))}, or nothing for a ranking"
    choice = _words(table, "choice", (*LABELS, SKIP, ""), ranking)
    read = np.flatnonzero(~np.isin(choice, ["", SKIP]))
    if not len(read):
        raise DataError(f"No row of {str(source)!r} has a choice between two answers.")
    raters, rater = np.unique(table.texts("rater"), return_inverse=True)
    kind = np.full(table.n, "item")
    if table.has("kind"):
        table.texts("kind")
        kind = _words(table, "kind", KINDS, f"one of {', '.join(KINDS)}")
    repeat = table.flags("repeat") if table.has("repeat") else np.zeros(table.n, dtype=bool)
    item, items = _items(table, kind)
    _require_once(table, item[read], rater[read], repeat[read], read)
    sides = _words(table, "sides", (*Order, ""), "ab or ba, or nothing where it is unknown")
    signs = {name: round(2 * outcome.score_a - 1) for name, outcome in LABELS.items()}
    labels = Labels(
        item=item[read],
        rater=rater[read],
        label=np.array([signs[name] for name in choice[read].tolist()], dtype=np.int8),
        first=np.array([ORDERS.get(name, 0) for name in sides[read].tolist()], dtype=np.int8),
        probability=np.full(len(read), np.nan),
    )
    reasons = Counter(dict(table.left_out))
    reasons.update({"skipped": int((choice == SKIP).sum())})
    reasons.update({"a ranking, no choice": int((choice == "").sum())})
    gold = [table.right_side("gold", r) if table.has("gold") else np.nan for r in read.tolist()]
    sure = _numbers(table, "confidence", [*CONFIDENCE], "1, 2 or 3, or nothing")
    return _Rated(
        source=str(source),
        study=studies[0],
        items=items,
        raters=tuple(raters.tolist()),
        labels=labels,
        kind=kind[read],
        repeat=repeat[read],
        gold=np.array(gold),
        confidence=sure[read],
        seconds=_numbers(table, "seconds", None, "seconds from 0 up, or nothing")[read],
        skipped=np.bincount(rater[choice == SKIP], minlength=len(raters)),
        left_out={reason: n for reason, n in reasons.items() if n},
    )


def _words(table: Annotations, name: str, known: Sequence[str], wanted: str) -> NDArray[np.str_]:
    """Give a column of words, empty where there is none; raises `DataError` for unknown ones."""
    words = ["" if value is None else str(value).strip() for value in table.need(name)]
    for row, word in enumerate(words):
        if word not in known:
            raise table.wrong(name, row + 1, table.need(name)[row], wanted)
    return np.array(words)


def _numbers(table: Annotations, name: str, known: Sequence[int] | None, wanted: str) -> Floats:
    """Give known numbers, or any from 0 up; NaN for nothing; raises `DataError` for others."""
    values = table.numbers(name) if table.has(name) else np.full(table.n, np.nan)
    fits = (values >= 0) & (values < np.inf) if known is None else np.isin(values, known)
    for row in np.flatnonzero(~fits & ~np.isnan(values)).tolist():
        raise table.wrong(name, row + 1, table.need(name)[row], wanted)
    return values


def _require_once(table: Annotations, item: Ints, rater: Ints, repeat: Bools, rows: Ints) -> None:
    """Raise `DataError` where a rater rated an item twice, and neither is a repeat."""
    key = np.column_stack([item, rater, repeat])
    _, first, counts = np.unique(key, axis=0, return_index=True, return_counts=True)
    if not (counts > 1).any():
        return
    at = int(first[counts > 1][0])
    name, who = table.texts("item")[rows[at]], table.texts("rater")[rows[at]]
    again = "repeat 1" if repeat[at] else "repeat 0"
    raise DataError(
        f"Rater {who!r} has several ratings of item {name!r} with {again} in "
        f"{table.source!r}: a file of one study has each once."
    )


def _items(table: Annotations, kind: NDArray[np.str_]) -> tuple[Ints, Items]:
    """Give items numbered prompts and models; without its name a prompt is the item's own."""
    names = table.texts("item")
    own = [f"{name}\n{of}" for name, of in zip(names, kind.tolist(), strict=True)]
    _, first, item = np.unique(own, return_index=True, return_inverse=True)
    nothing = [""] * table.n
    of = {x: [*table.columns.get(x, nothing)] for x in ("prompt_id", *of_sides("model"))}
    prompt_id, *sides = (rows_from(of, table.source).named(name) for name in of)
    prompt = [given or f"\n{at}" for given, at in zip(prompt_id, item.tolist(), strict=True)]
    prompts = np.unique(prompt, return_inverse=True)[1]
    models, codes = np.unique([name or "" for side in sides for name in side], return_inverse=True)
    pairs = codes.reshape(2, -1).T.astype(np.int64)
    named = np.column_stack([pairs, prompts])
    for row in np.flatnonzero((named != named[first][item]).any(axis=1)).tolist():
        raise DataError(
            f"Row {row + 1} of {table.source!r} has item {names[row]!r} with another prompt or "
            "other models than a row before: an item is one prompt and two answers."
        )
    numbers = np.unique(prompts[first], return_inverse=True)[1]
    return item.astype(np.int64), Items(tuple(models.tolist()), pairs[first], numbers)


# Study of raters


USUAL = StudyOptions()
FEWEST_AN_ITEM = 3
"""Latent classes are distinguished by items that this many people rated."""
FOLDS = 20
"""Groups of prompts that are excluded, one at a time, for the interval of an accuracy."""
FEW_REPEATS = 20
"""With fewer repeats no sentence mentions them."""


@dataclass(frozen=True, slots=True)
class Rater:
    """One rater.

    Attributes
    ----------
    rated, skipped : int
        Items of the study, repeats and gold excluded.
    seconds : float or None
        Median from what was shown to the choice; None where no time is known.
    gold_right, gold_rated : int
        Gold items, those of the qualification excluded: who came in has passed it.
    gold : Estimate
        How often right: the mean and the quantiles of the posterior with Beta(8, 2).
    consensus : Estimate
        How often the rater gives an item the class that Dawid and Skene's model finds; without a
        value where too few people share items.
    agreement : Estimate
        With the choices of others on the same items, a tie being a third choice.
    retest : Estimate
        With their own first choice, when an item came again with its sides exchanged.
    left : Estimate
        Share of choices between the sides that went to the left; half where sides mean nothing.
    """

    rater: str
    rated: int
    skipped: int
    seconds: float | None
    gold_right: int
    gold_rated: int
    gold: Estimate
    consensus: Estimate
    agreement: Estimate
    retest: Estimate
    left: Estimate


@dataclass(frozen=True, slots=True, eq=False)
class RaterStudy:
    """The raters of a study.

    Attributes
    ----------
    agreement, retest, left, left_in_repeats : Estimate
        As of a `Rater`, over all of them; the last from items that a rater saw both ways round
        and preferred a side of both times, which takes out what is better.
    by_confidence : mapping of int to Estimate
        Agreement with others of choices of each confidence.
    surer : Estimate or None
        Agreement of the sure less that of the guesses.
    side_warnings : tuple of SideWarning
        Of raters who go by the side, or choose like a coin.
    share : Estimate
        Of side A, a tie half; of other prompts and other raters.
    variance : Shares
    plan : RaterPlan or None
        None where the variance is not known.
    alpha : Estimate
        Krippendorff's, as ``arena study status`` gives it.
    alpha_plan : AlphaPlan or None
        None where alpha has no interval.
    """

    source: Files
    rated: _Rated
    options: StudyOptions
    raters: tuple[Rater, ...]
    agreement: Estimate
    retest: Estimate
    left: Estimate
    left_in_repeats: Estimate
    by_confidence: Mapping[int, Estimate]
    surer: Estimate | None
    side_warnings: tuple[SideWarning, ...]
    share: Estimate
    variance: Shares
    plan: RaterPlan | None
    wanted: float
    alpha: Estimate
    alpha_plan: AlphaPlan | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to keep in mind."""
        return tuple(_warnings(self))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Describe what the ratings show."""
        return tuple(_sentences(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that ``arena study raters`` writes."""
        return {
            "study": self.rated.study,
            "raters": list(map(asdict, self.raters)),
            "agreement": asdict(self.agreement),
            "retest": asdict(self.retest),
            "left": asdict(self.left),
            "left_in_repeats": asdict(self.left_in_repeats),
            "by_confidence": [
                {"confidence": of} | asdict(one) for of, one in self.by_confidence.items()
            ],
            "surer": self.surer and asdict(self.surer),
            "side_warnings": [one.to_dict() for one in self.side_warnings],
            "share": asdict(self.share),
            "variance": self.variance.to_dict(),
            "plan": self.plan and self.plan.to_dict(),
            "alpha": asdict(self.alpha),
            "alpha_plan": self.alpha_plan and self.alpha_plan.to_dict(),
            "left_out": dict(self.rated.left_out),
            "sentences": list(self.sentences),
            "warnings": list(self.warnings),
        }


def study_raters(
    source: object,
    options: StudyOptions = USUAL,
    *,
    until: float = WANTED_RATERS,
    until_alpha: float = WANTED_ALPHA,
) -> RaterStudy:
    """Describe the raters of a study, and the effect of more ratings.

    Agreement, the share and the variance are of first ratings of the study's own items; the time,
    sides and repeats of all but the qualification.

    Parameters
    ----------
    source : path, sequence of paths, or Files
        What ``arena study export`` writes.
    until : float
        Half-width of the share of side A that is wanted.
    until_alpha : float
        Half-width of Krippendorff's alpha that is wanted.

    Raises
    ------
    DataError
        As `read_rated`; if no item of the study is rated, ``until`` is not
        between 0 and 1/2, or ``until_alpha`` not between 0 and 1.
    """
    if not 0 < until < HALF:
        raise DataError(
            f"--until {until:g} is no half-width of a share: give one between 0 and 0.5, such as "
            "0.05."
        )
    if not 0 < until_alpha < 1:
        raise DataError(
            f"--until-alpha {until_alpha:g} is no half-width of alpha: give one between 0 and 1, "
            "such as 0.1."
        )
    files = Files.of(source)
    assert files is not None
    rated = read_rated(files)
    if not rated.counted.any():
        raise DataError(f"No item of the study itself is rated in {str(files)!r}.")
    items, labels = rated.items, rated.labels.only(rated.counted)
    twice = _twice(rated)
    share = preference(items, labels, options.draws())
    variance = variance_shares(items, labels, twice, options.level)
    parts = variance.components
    confidence = rated.confidence[rated.counted]
    ties = bool((labels.label == TIE).any())
    given = Ratings.of_labels(items, labels, ties=ties, sides=False)
    by_alpha = alpha(given, options.draws())
    return RaterStudy(
        source=files,
        rated=rated,
        options=options,
        raters=_raters(rated, twice, options),
        agreement=_with_others(items, labels, np.ones(labels.n, dtype=bool), options.draws()),
        retest=_retest(items, twice, options.draws()),
        left=_left(items, rated.labels.only(rated.kind != "qualification"), options.draws()),
        left_in_repeats=_left_in_repeats(items, twice, options.draws()),
        by_confidence={
            of: _with_others(items, labels, confidence == of, options.draws())
            for of in CONFIDENCE
            if (confidence == of).any()
        },
        surer=_surer(items, labels, confidence, options.draws()),
        side_warnings=warn_of_sides(_side_counts(rated, twice), options.level),
        share=share,
        variance=variance,
        plan=None
        if parts is None
        else plan_ratings(items, labels, parts, share, until, options.level),
        wanted=until,
        alpha=by_alpha,
        alpha_plan=plan_alpha(
            given, by_alpha, until_alpha, len(np.unique(labels.rater)), options.draws().rng
        ),
    )


def _twice(rated: _Rated) -> tuple[Labels, Labels]:
    """Return first and second ratings of the same items, row by row."""
    rows = rated.repeats()
    rows = rows[(rated.kind[rows[:, 0]] != "qualification")]
    return rated.labels.only(rows[:, 0]), rated.labels.only(rows[:, 1])


def _with_others(items: Items, labels: Labels, rows: Bools, draws: Draws) -> Estimate:
    """Estimate how often some choices are those of others on the same item."""
    each, lost = _in_pairs(items, labels, rows)
    one_rater = len(np.unique(labels.rater[rows])) == 1
    return share_of(items, labels, each, draws, each if one_rater else lost)


def _in_pairs(items: Items, labels: Labels, rows: Bools) -> tuple[Floats, Floats]:
    """Count pairs of some rows with those of others, and what is lost of them without each row.

    Both rows of a pair lose it.
    """
    each = pairs_with_others(items, labels, ties=True) * rows[:, None]
    given = counts(items, labels.only(rows))[labels.item]
    alike = given[np.arange(labels.n), labels.label + 1]
    return each, each + np.column_stack([alike, given.sum(axis=1)]) - rows[:, None]


def _surer(items: Items, labels: Labels, confidence: Floats, draws: Draws) -> Estimate | None:
    """Estimate by how much more often the sure agree with others than those who guess."""
    levels = max(CONFIDENCE), min(CONFIDENCE)
    parts = [_in_pairs(items, labels, confidence == of) for of in levels]
    each, lost = (np.hstack(one) for one in zip(*parts, strict=True))
    if not (each[:, 1].any() and each[:, 3].any()):
        return None
    stats = sums_within(items.prompt[labels.item], each, items.n_prompts)
    raters, n = Raters.of(items, labels, lost), int(each[:, [1, 3]].sum())
    return clustered(stats, lambda s: ratio(s[:, :2]) - ratio(s[:, 2:]), draws, n=n, raters=raters)


def _retest(items: Items, twice: tuple[Labels, Labels], draws: Draws) -> Estimate:
    first, second = twice
    each = np.column_stack([first.label == second.label, np.ones(first.n)]).astype(np.float64)
    return share_of(items, first, each, draws)


def _left(items: Items, labels: Labels, draws: Draws) -> Estimate:
    labels = labels.only((labels.label != 0) & (labels.first != 0))
    each = np.column_stack([labels.label == labels.first, np.ones(labels.n)]).astype(np.float64)
    return share_of(items, labels, each, draws)


def _left_in_repeats(items: Items, twice: tuple[Labels, Labels], draws: Draws) -> Estimate:
    first, second = twice
    both = (first.label != 0) & (second.label != 0) & (first.first * second.first == B)
    first, second = first.only(both), second.only(both)
    left = ((first.label == first.first) + (second.label == second.first).astype(np.float64)) / 2
    return share_of(items, first, np.column_stack([left, np.ones(first.n)]), draws)


def _side_counts(rated: _Rated, twice: tuple[Labels, Labels]) -> list[SideCounts]:
    """Count for each rater where choices went, and what items got that came again."""
    labels = rated.labels.only(rated.kind != "qualification")
    labels = labels.only((labels.label != 0) & (labels.first != 0))
    first, second = twice
    both = (first.label != 0) & (second.label != 0) & (first.first * second.first == B)
    n = len(rated.raters)
    left, chosen, same, again = (
        np.bincount(rater, minlength=n).tolist()
        for rater in (
            labels.rater[labels.label == labels.first],
            labels.rater,
            first.rater[both & (first.label == second.label)],
            first.rater[both],
        )
    )
    return [SideCounts(*one) for one in zip(rated.raters, left, chosen, same, again, strict=True)]


def _raters(
    rated: _Rated, twice: tuple[Labels, Labels], options: StudyOptions
) -> tuple[Rater, ...]:
    items, labels = rated.items, rated.labels
    counted, level = labels.only(rated.counted), options.level
    consensus = _consensus(rated, level)
    answered = ~np.isnan(rated.gold) & ~rated.repeat & (rated.kind != "qualification")
    timed = ~np.isnan(rated.seconds) & (rated.kind != "qualification")
    chose = (labels.label != 0) & (labels.first != 0) & (rated.kind != "qualification")
    left = labels.label == labels.first
    made = []
    for at, name in enumerate(rated.raters):
        own = labels.rater == at
        seconds = rated.seconds[own & timed]
        gold = rated.gold[own & answered] == labels.label[own & answered]
        again = twice[0].rater == at
        same = twice[0].label[again] == twice[1].label[again]
        made.append(
            Rater(
                rater=name,
                rated=int((own & rated.counted).sum()),
                skipped=int(rated.skipped[at]),
                seconds=float(np.median(seconds)) if len(seconds) else None,
                gold_right=int(gold.sum()),
                gold_rated=len(gold),
                gold=posterior(int(gold.sum()), len(gold), level),
                consensus=consensus.get(at, Estimate(None, None, None, 0)),
                agreement=_with_others(items, counted, counted.rater == at, options.draws()),
                retest=wilson_share(int(same.sum()), len(same), level),
                left=wilson_share(int(left[own & chose].sum()), int((own & chose).sum()), level),
            )
        )
    return tuple(made)


def _consensus(rated: _Rated, level: float) -> dict[int, Estimate]:
    """Give each rater's accuracy by latent classes, where people share items enough."""
    rows = (rated.kind != "qualification") & ~rated.repeat
    labels = rated.labels.only(rows)
    gold = rated.gold[rows]
    if not (np.bincount(labels.item) >= FEWEST_AN_ITEM).any():
        return {}
    ids, rater = np.unique(labels.rater, return_inverse=True)
    known = np.full(rated.items.n, UNKNOWN)
    known[labels.item[~np.isnan(gold)]] = gold[~np.isnan(gold)].astype(np.int64) + 1
    given = labels.label.astype(np.int64) + 1
    if not (given == 1).any() and not (known == 1).any():  # nobody could say a tie
        given, known = given // 2, np.where(known == UNKNOWN, UNKNOWN, known // 2)
    value, error = accuracies(labels.item, rater, given, known, rated.items.prompt)
    if value is None or error is None:
        return {}
    n = np.bincount(rater)
    made = {}
    for at, of in enumerate(ids.tolist()):
        share, off = float(value[at]), max(float(error[at]), 1e-9)
        ends = wilson(share, share * (1 - share) / off**2, level, FOLDS - 1)
        made[of] = Estimate(share, *ends, int(n[at]))
    return made


def accuracies(
    item: Ints, rater: Ints, label: Ints, known: Ints, prompt: Ints
) -> tuple[Floats | None, Floats | None]:
    """Return each rater's accuracy by `dawid_skene`, and its standard error.

    With one rate of errors a rater and Beta(8, 2); the error by omitting `FOLDS` groups of
    prompts, and as wide as without the prior, which draws all to its mean. None for both where
    raters are not above guessing: then it is not known what is what.
    """
    k = max(2, int(label.max()) + 1, int(known.max()) + 1)
    whole = dawid_skene(item, rater, label, k, known=known, errors="one")
    if not whole.above_guessing:
        return None, None
    n_raters = int(rater.max()) + 1
    left = np.full((FOLDS, n_raters), np.nan)
    for fold in range(FOLDS):
        rows = prompt[item] % FOLDS != fold
        if not rows.any():
            continue
        part = dawid_skene(
            item[rows],
            rater[rows],
            label[rows],
            k,
            known=known,
            errors="one",
            start=whole.posterior.copy(),
        )
        seen = part.errors.shape[0]
        left[fold, :seen] = part.accuracy
    left = np.where(np.isnan(left), whole.accuracy, left)
    drawn_in = 1 + sum(PRIOR) / np.bincount(rater)
    return whole.accuracy, np.sqrt(jackknife_variance(left)) * drawn_in


def _sentences(study: RaterStudy) -> Iterator[str]:
    if study.agreement.value is not None:
        yield (
            f"Two raters of an item agree in {percent_of(study.agreement)}, with ties as a third "
            "choice."
        )
    if study.retest.value is not None and study.retest.n >= FEW_REPEATS:
        yield (
            "When an item is shown again with its sides exchanged, raters repeat their choice in "
            f"{percent_of(study.retest)} of {plural(study.retest.n, 'repeat')}."
        )
    yield from _on_sides(study)
    if (surer := study.surer) is not None:
        n = study.rated.items.n_prompts
        shown = certainly(surer, n, study.options.level) and n >= FEW_PROMPTS
        more = "more" if (surer.value or 0) > 0 else "less"
        yield (
            f"Raters who are sure agree with others {more} often than those who guess: "
            f"{gap_of(surer)} percentage points."
            if shown
            else "We do not find that raters who are sure agree with others more often than those "
            f"who guess ({gap_of(surer)} percentage points)."
        )
    yield from _on_variance(study.variance)
    items, used = study.rated.items, study.rated.labels.item[study.rated.counted]
    pairs = np.unique(items.pairs[used], axis=0)
    names = [items.models[at] for at in pairs[0].tolist()]
    of = names[0] if len(pairs) == 1 and all(names) else "Side A"
    yield f"{of} has a share of {percent_of(study.share)} in the choices, a tie counting as half."
    if study.plan is not None:
        yield from study.plan.sentences
    if study.alpha_plan is not None:
        yield from study.alpha_plan.sentences


def _on_sides(study: RaterStudy) -> Iterator[str]:
    left = study.left
    if left.value is None or left.lower is None or left.upper is None:
        return
    if left.lower > HALF or left.upper < HALF:
        side = "left" if left.value > HALF else "right"
        yield (
            f"Raters prefer the {side} side: {percent_of(left)} of choices of a side are for the "
            "left."
        )
    else:
        yield (
            f"We do not find that raters prefer one side of the screen: {percent_of(left)} of "
            "choices of a side are for the left."
        )


def _on_variance(variance: Shares) -> Iterator[str]:
    if variance.item.value is None:
        return
    yield (
        f"Of the variance of ratings, {percent_of(variance.item)} is between items, "
        f"{percent_of(variance.rater)} between raters, and {percent_of(variance.rest)} within "
        "raters and items."
    )
    if variance.within.value is not None and variance.within.n >= FEW_REPEATS:
        yield (
            f"From {plural(variance.within.n, 'repeat')}, {percent_of(variance.interaction)} of "
            "the variance is a rater's lasting preference on an item, and "
            f"{percent_of(variance.within)} is noise."
        )
    yield {
        "diffuse": (
            "Less than half of the variance is between items: rating some items more often than "
            "others gains little."
        ),
        "concentrated": ("More than half of the variance is between items: rate new items."),
        "": "Whether more than half of the variance is between items is inconclusive.",
    }[variance.regime]


def _warnings(study: RaterStudy) -> Iterator[str]:
    yield from (str(one.sentence) for one in study.side_warnings)
    rated = study.rated
    items = np.unique(rated.labels.item[rated.counted])
    n_prompts = len(np.unique(rated.items.prompt[items]))
    if rated.left_out:
        parts = ", ".join(f"{n:,} {reason}" for reason, n in rated.left_out.items())
        yield f"Excluded rows: {parts}."
    if n_prompts < FEW_PROMPTS:
        yield f"With {plural(n_prompts, 'prompt')}, intervals are too narrow."
    if n_prompts < len(items):
        yield (
            f"{plural(len(items), 'item')} are of {plural(n_prompts, 'prompt')}: the plan assumes "
            "new items on new prompts, with the same number of items per prompt."
        )
    pairs = len(np.unique(rated.items.pairs[items], axis=0))
    if pairs > 1:
        yield (
            f"The items are of {plural(pairs, 'pair')} of models: the share of side A is over all "
            "of them."
        )
    if study.variance.item.value is None:
        yield "No two raters share two different items: the variance components are not estimated."
    if all(one.consensus.value is None for one in study.raters):
        yield (
            f"Accuracy without gold needs items with {FEWEST_AN_ITEM} raters who are right more "
            "often than at random: it is not estimated."
        )
    if not any(one.gold_rated for one in study.raters):
        yield "There are no gold items: accuracy on gold is not estimated."
    if not study.retest.n:
        yield "No item was shown twice: the raters' own noise is not estimated."


# Agreement alone


NO_PAIR = Sentence(
    "No item with two answers has ratings by two people yet: alpha and AC1 are not estimated."
)
ONE_VALUE = Sentence("All ratings so far are ties: alpha is undefined.")


@dataclass(frozen=True, slots=True)
class _ItemAgreement:
    """What was said of an item: how often each, and the share of pairs of raters that agree."""

    item: str
    model_a: int
    tie: int
    model_b: int
    agreed: float


@dataclass(frozen=True, slots=True)
class PeoplesAgreement:
    """Agreement of people.

    Attributes
    ----------
    alpha, ac1 : Estimate
        Krippendorff's alpha and Gwet's AC1, as `judge.studies.reliability.agreement` gives them,
        where a judge has a verdict on every item.
    by_item : tuple of ItemAgreement
        The items that two people rated, the least agreed on first; the models
        in alphabetical order.
    warnings : tuple of str
        Why something is not known.
    """

    alpha: Estimate
    ac1: Estimate
    by_item: tuple[_ItemAgreement, ...] = ()
    warnings: tuple[str, ...] = ()


NOTHING = Estimate(None, None, None, 0)


def agreement_of(rows: Rows, options: StudyOptions = USUAL) -> PeoplesAgreement:
    """Estimate how far people agree, by rows that each name who rated which item how.

    Raises
    ------
    DataError
        If an item is on other models in one row than in another.
    """
    aligned = align(rows, rows)
    items, people = aligned.items, labels_of_people(aligned)
    ties = bool((people.label == TIE).any())
    ratings = Ratings.of_labels(items, people, ties=ties, sides=False)
    if not ratings.shared.any():
        return PeoplesAgreement(NOTHING, NOTHING, warnings=(NO_PAIR,))
    by_alpha = alpha(ratings, options.draws())
    warnings = list(aligned.warnings)
    if by_alpha.value is None:
        warnings.append(ONE_VALUE)
    if items.n_prompts < FEW_PROMPTS:
        warnings.append(
            counted(
                "The ratings are on %(n)s prompt: under %(few)s, intervals are too narrow.",
                "The ratings are on %(n)s prompts: under %(few)s, intervals are too narrow.",
                items.n_prompts,
                few=FEW_PROMPTS,
            )
        )
    return PeoplesAgreement(
        by_alpha,
        ac1(ratings, options.draws()),
        _by_item(aligned, counts(items, people), ratings.pairs),
        tuple(warnings),
    )


def _by_item(aligned: Aligned, table: Floats, pairs: Floats) -> tuple[_ItemAgreement, ...]:
    names = dict(zip(aligned.item[0].tolist(), aligned.sources[0].named("item"), strict=True))
    every = [
        _ItemAgreement(
            names[place], int(a), int(tie), int(b), float(np.trace(both) / both.sum())
        )
        for place, ((b, tie, a), both) in enumerate(zip(table, pairs, strict=True))
        if place in names and both.any()
    ]  # fmt: skip
    return tuple(sorted(every, key=lambda one: (one.agreed, one.item)))


def rows_of(ratings: Sequence[Mapping[str, Any]], source: str = "the study") -> Rows:
    """Make rows of ratings that count, as an export of a study has them.

    Those of `judge.studies.rows.read_rows` from the file are the same.
    """
    names = {"item": "item", "voter": "rater", "prompt": "prompt_id"}
    names |= {role: role for role in of_sides("model")}
    signs = {Outcome.A: 1, Outcome.B: -1}
    label = [signs.get(Outcome(row["choice"]), 0) for row in ratings]
    return rows_from(
        {role: [row[name] for row in ratings] for role, name in names.items()}, source, label
    )
