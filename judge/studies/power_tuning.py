"""How much to lean on a judge: the weight of verdicts that makes an estimate most precise."""

from dataclasses import dataclass, replace

import numpy as np

from judge.studies.estimates import Estimate
from judge.studies.items import Items, Labels
from rating import Comparisons, connectivity
from rating.errors import DataError, NotIdentifiedError
from rating.leave_out import jackknife_factor
from rating.likelihood.objective import win_probability
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.clusters import FEW_PROMPTS
from rating.uncertainty.student import quantile

ASSUMPTION = (
    "The items with votes are a random subset of all items that were judged, or were drawn with "
    "the chances given; items of different prompts are independent."
)
"""Printed beside every estimate of this kind."""

NOTHING_TO_GAIN = (
    "No item has a verdict and no vote, or none has both: the judge adds nothing to the votes."
)
NO_RESIDUALS = (
    "The verdicts explain every vote, prompt by prompt: how much they would leave open of others, "
    "and so by how much they help, is not known."
)
_ALL = 1e-9
FEWEST_OF_A_PAIR = 20
"""Verdicts on items with votes, and on others, from which a judge's average of a pair is known."""
FEWEST_PROMPTS = 5
"""With votes on fewer, too few residuals show how far the judge is off."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What each item weighs in the three means that an estimate is made of.

    The estimate solves ``mean_voted g(vote) - lam mean_both g(verdict) + lam mean_rest
    g(verdict) = 0``; the last two means are of one quantity, so a judge that is wrong in the same
    way on both moves nothing.

    Attributes
    ----------
    voted, both, rest : ndarray of shape (n,)
        Of the items with votes; of those that have a verdict as well; of the judged items
        without votes (all the judged ones where chances are given). Each sums to one, or to
        zero where there are none.
    """

    voted: Floats
    both: Floats
    rest: Floats

    @property
    def has_rest(self) -> bool:
        """Whether the judge can add anything."""
        return bool(self.both.any() and self.rest.any())


def parts(voted: Bools, judged: Bools, probability: Floats | None = None) -> Parts:
    """Weigh the items.

    Parameters
    ----------
    voted, judged : ndarray of shape (n,), bool
    probability : ndarray of shape (n,), optional
        With what probability an item was sent to people: those with votes then weigh
        ``1 / probability``. None where all were equally likely.

    Raises
    ------
    DataError
        If an item with votes had no chance between 0 and 1.
    """
    if probability is None:
        return Parts(_share(voted), _share(voted & judged), _share(judged & ~voted))
    wrong = probability[voted & ~((probability > 0) & (probability <= 1))]
    if wrong.size:
        msg = (
            f"An item with votes was sent to people with probability {wrong[0]}: give 0 < p <= 1."
        )
        raise DataError(msg)
    weight = np.where(voted, 1 / np.where(voted, probability, 1.0), 0.0)
    return Parts(_share(weight), _share(weight * judged), _share(judged))


def _share(weight: Bools | Floats) -> Floats:
    total = float(weight.sum())
    return np.asarray(weight / total) if total else np.zeros(len(weight))


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums over prompts of products of influences, shape (k, k) each.

    ``people`` of the votes' with itself, ``cross`` of the votes' with the verdicts' (those on the
    rest less those on items with both), ``judge`` of the latter with itself; ``agreed`` and
    ``both`` are as ``cross`` and ``judge`` for the verdicts on items with both alone. A prompt
    that people and judge share is one term of each sum: what they have in common is counted.
    """

    people: Floats
    cross: Floats
    judge: Floats
    agreed: Floats
    both: Floats

    @classmethod
    def of(cls, people: Floats, both: Floats, rest: Floats) -> "Moments":
        """Multiply influences that were summed by prompt, shape (n_prompts, k) each."""
        judge = rest - both
        return cls(
            people.T @ people,
            people.T @ judge,
            judge.T @ judge,
            people.T @ both,
            both.T @ both,
        )

    def __add__(self, other: "Moments") -> "Moments":
        """Add the sums over other prompts."""
        return Moments(
            self.people + other.people,
            self.cross + other.cross,
            self.judge + other.judge,
            self.agreed + other.agreed,
            self.both + other.both,
        )

    def covariance(self, bread: Floats, lam: float) -> Floats:
        """Return ``H^- (P + lam (C + C') + lam^2 J) H^-``, with ``H^-`` given as ``bread``."""
        meat = self.people + lam * (self.cross + self.cross.T) + lam**2 * self.judge
        return np.asarray(bread @ meat @ bread)

    def tuned(self, bread: Floats) -> float:
        """Return the ``lam`` in [0, 1] with the smallest trace of `covariance`.

        ``-tr(H^- C H^-) / tr(H^- J H^-)``; with independent items it is the published
        ``tr H^- (C + C') H^- / (2 (1 + n / N) tr H^- V H^-)`` [1]_. Zero where the judge's part
        does not vary.

        References
        ----------
        .. [1] A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: Efficient
           prediction-powered inference", arXiv 2311.01453, 2023, section 6.
        """
        spread = float(np.trace(bread @ self.judge @ bread))
        if spread <= np.finfo(np.float64).tiny:
            return 0.0
        return float(np.clip(-np.trace(bread @ self.cross @ bread) / spread, 0.0, 1.0))

    def explained(self, bread: Floats) -> float | None:
        """Return the share of the votes' variance that endless verdicts would take away.

        The squared correlation of the votes' and the verdicts' influences over the prompts that
        have both; zero where it is negative, None where one of them does not vary.
        """
        votes, verdicts, shared = (
            float(np.trace(bread @ one @ bread)) for one in (self.people, self.both, self.agreed)
        )
        if min(votes, verdicts) <= np.finfo(np.float64).tiny:
            return None
        return min(max(shared, 0.0) ** 2 / (votes * verdicts), 1.0)


@dataclass(frozen=True, slots=True)
class Clusters:
    """The prompts that the votes are on.

    Attributes
    ----------
    n : int
    effective : float
        ``(sum w)^2 / sum w^2`` of the prompts' weights: as many as there are when all are alike.
    """

    n: int
    effective: float

    @classmethod
    def of(cls, prompt: Ints, weight: Floats) -> "Clusters":
        """Count prompts.

        Raises
        ------
        NotIdentifiedError
            If the votes are on fewer than `FEWEST_PROMPTS`.
        """
        total = np.bincount(prompt, weight)
        n = int((total > 0).sum())
        if n < FEWEST_PROMPTS:
            msg = (
                f"The votes are on {n} prompt{'s'[n == 1 :]}: what a judge adds to them takes "
                f"votes on {FEWEST_PROMPTS} or more."
            )
            raise NotIdentifiedError(msg)
        return cls(n, float(total.sum() ** 2 / (total @ total)))

    @property
    def correction(self) -> float:
        """By how much sums of squares are too small: ``n / (n - 1)``."""
        return self.n / (self.n - 1)

    def reach(self, level: float) -> float:
        """Return by how many standard errors an interval reaches out on either side."""
        return quantile(level, max(self.effective - 1, 1.0))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings where prompts are few."""
        if self.n >= FEW_PROMPTS:
            return ()
        return (f"Votes on {self.n} prompts are too few to resample: the intervals are rough.",)

    def on_gain(self, gain: Estimate) -> tuple[str, ...]:
        """Return a warning where the gain has no value."""
        if gain.value is not None:
            return ()
        if self.n >= FEW_PROMPTS:
            return (NO_RESIDUALS,)
        return (f"Votes on {self.n} prompts do not tell how many votes the judge saves.",)

    def gain(
        self,
        value: float,
        alone: Floats,
        powered: Floats,
        explained: float | None,
        level: float,
    ) -> Estimate:
        """Give the ratio of the variances without and with the judge its interval.

        Delete-one jackknife over prompts of its logarithm, Student's t with the effective prompts
        less two, one for each variance. Under `FEW_PROMPTS` it would hold the truth in .70 to .88
        of simulated cases, and where the verdicts explain every vote it would have no width:
        there the ratio has no value.

        Parameters
        ----------
        value : float
            The ratio.
        alone, powered : ndarray of shape (n_prompts,)
            What each prompt adds to either variance.
        explained : float or None
            See `Moments.explained`.

        References
        ----------
        .. [1] R. G. Miller, "Jackknifing variances", Annals of Mathematical Statistics 39(2),
           1968, pp. 567-582 (why the logarithm).
        """
        used = (alone > 0) | (powered > 0)
        without = [total.sum() - total[used] for total in (alone, powered)]
        all_explained = explained is not None and explained > 1 - _ALL
        if (
            self.n < FEW_PROMPTS
            or all_explained
            or min(part.min(initial=np.inf) for part in without) <= 0
        ):
            return Estimate(None, None, None, self.n)
        ratio = np.log(alone.sum() / powered.sum())
        moved = np.log(without[0] / without[1]) - ratio
        error = float(np.sqrt(jackknife_factor(self.n) * (moved @ moved)))
        far = float(np.exp(quantile(level, max(self.effective - 2, 1.0)) * error))
        return Estimate(value, value / far, value * far, self.n)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Items between rated models, in the order of their prompts.

    ``item`` is their index among all items; ``people`` and ``judge`` are mean scores of side A,
    NaN where there are none; ``parts`` is what each item weighs, and ``votes`` are all votes.
    """

    items: Items
    item: Ints
    people: Floats
    judge: Floats
    parts: Parts
    votes: Labels

    @property
    def voted(self) -> Bools:
        """Items with votes."""
        return ~np.isnan(self.people)

    @property
    def judged(self) -> Bools:
        """Items with verdicts."""
        return ~np.isnan(self.judge)


def by_pair(problem: Problem, theta: Floats) -> Problem:
    """Let verdicts count pair by pair: as much on the rest as on the items with votes.

    What a judge makes of two models then cancels, whichever pairs it was asked about more often:
    only within a pair need the items with votes be as the others are. A pair with fewer than
    `FEWEST_OF_A_PAIR` verdicts of either kind goes by its votes. Verdicts are counted from the
    average of their pair, set to what people think of it, so that none of their spread is
    between pairs.

    Parameters
    ----------
    theta : ndarray of shape (n_models,)
        Strengths by the votes alone.
    """
    k, (a, b) = len(problem.items.models), problem.items.pairs.T
    pair, turned = np.minimum(a, b) * k + np.maximum(a, b), a > b
    judge = np.where(turned, 1 - problem.judge, problem.judge)
    both, rest = problem.voted & problem.judged, problem.judged & ~problem.voted
    n_both, n_rest = (np.bincount(pair[rows], minlength=k * k) for rows in (both, rest))
    share = np.bincount(pair, problem.parts.voted, k * k)
    share[np.minimum(n_both, n_rest) < FEWEST_OF_A_PAIR] = 0.0
    weights = [
        np.where(rows, (share / np.maximum(n, 1))[pair], 0.0)
        for rows, n in ((both, n_both), (rest, n_rest))
    ]
    mean = np.bincount(pair, np.nan_to_num(judge), k * k) / np.maximum(n_both + n_rest, 1)
    centred = judge - mean[pair] + win_probability(theta).ravel()[pair]
    return replace(
        problem,
        judge=np.where(turned, 1 - centred, centred),
        parts=Parts(problem.parts.voted, *weights),
    )


def row_scores(labels: Labels) -> Floats:
    """Return the score of side A in each row.

    1 for side A, 1/2 for a tie, 0 for side B; the probability where one was given.
    """
    return np.where(np.isnan(labels.probability), (labels.label + 1) / 2, labels.probability)


def problem_of(
    items: Items, people: Labels, judge: Labels, probability: Floats | None
) -> tuple[Problem, tuple[str, ...]]:
    """Keep the items between models with votes; also return a warning on models left out."""
    models = _rated(items, people)
    number = np.full(len(items.models), -1)
    for index, name in enumerate(models):
        number[items.models.index(name)] = index
    pairs = number[items.pairs]
    fit = (pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
    used = np.flatnonzero(fit)[np.argsort(items.prompt[fit], kind="stable")]
    of_people, of_judge = (one.mean(row_scores(one), items.n)[used] for one in (people, judge))
    problem = Problem(
        items=Items(models, pairs[used], items.prompt[used]),
        item=used,
        people=of_people,
        judge=of_judge,
        parts=parts(
            ~np.isnan(of_people),
            ~np.isnan(of_judge),
            None if probability is None else probability[used],
        ),
        votes=people,
    )
    seen = np.zeros(len(items.models), dtype=bool)
    seen[items.pairs[judge.item].ravel()] = True
    lost = [items.models[i] for i in np.flatnonzero(seen & (number < 0))]
    warning = f"Judged, but not rated, for nobody voted on them: {', '.join(sorted(lost))}."
    return problem, (warning,) if lost else ()


def _rated(items: Items, people: Labels) -> tuple[str, ...]:
    """Return the models that votes determine, sorted."""
    a, b = items.pairs[people.item].T
    outcome = np.array([2, 0, 1])[people.label]  # tie, side A, side B: label -1 is the last
    data = Comparisons.from_codes(items.models, a, b, outcome)
    connected = connectivity(data)
    if not connected.is_identified:
        msg = f"The votes alone do not determine the ratings. {connected.describe()}"
        raise NotIdentifiedError(msg)
    return data.models
