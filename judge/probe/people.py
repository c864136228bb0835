"""Validation of measures against people and against simulated arenas with known truth.

`Alignment` estimates how scores agree with ratings of texts. `recognise` classifies held-out
answers by model from a bag of words. `World` simulates an arena whose truth is known, and
`MEASURES` are the ways to rate it that `judge.probe.audit` examines.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from judge.ifeval import share
from judge.probe.similarity import (
    ROUNDS,
    Axis,
    AxisName,
    Drawn,
    Measure,
    Part,
    axis_of,
    compare,
    drawn_from,
    mean_of,
    ratio,
    scores_of,
    tie_groups,
)
from rating import Cluster, Comparisons, bootstrap, fit_bradley_terry, infer
from rating.errors import DataError, NotIdentifiedError
from rating.fitting import Fit, fit
from rating.leave_out import draw_counts, sums_within
from rating.likelihood import A, B, solve
from rating.outcome import Ties
from rating.rows import VoteRows
from rating.typing import Bools, Floats, Ints
from rating.variants import online_elo
from rating.voters import fit_taste_sd

# Alignment with ratings


RANK_CORRELATION = "rank correlation"
NET_AGREEMENT = "net agreement"
ACCURACY = "accuracy"


@dataclass(frozen=True, slots=True)
class RatedTexts:
    """Texts that people rated, such as summaries, and what each was rated against.

    Attributes
    ----------
    prompt : ndarray of shape (n,), int64
        Number of the prompt of each row, from 0. Texts of one prompt are compared in pairs.
    dimensions : tuple of str
        What was rated, such as fluency.
    ratings : ndarray of shape (n, n_dimensions)
        Higher is better, or more alike.
    """

    name: str
    references: tuple[str, ...]
    texts: tuple[str, ...]
    prompt: Ints
    dimensions: tuple[str, ...]
    ratings: Floats

    def __post_init__(self) -> None:
        """Raise `DataError` for lengths that differ, or ratings that are no numbers."""
        rows = {len(self.references), len(self.texts), len(self.prompt), len(self.ratings)}
        if len(rows) > 1 or self.ratings.shape != (len(self.texts), len(self.dimensions)):
            msg = f"Ratings {self.name!r} of shape {self.ratings.shape} are for {sorted(rows)}"
            raise DataError(f"{msg} rows and {len(self.dimensions)} dimensions.")
        if not np.isfinite(self.ratings).all():
            raise DataError(
                f"Ratings {self.name!r} hold one that is no number: leave its row out."
            )


def _figures_of_ratings(
    rated: RatedTexts, scores: Floats, rng: np.random.Generator
) -> Iterator[tuple[str, str, Drawn]]:
    """Yield how scores go with the mean rating, and with each dimension if there are several."""
    drawn = draw_prompts(rated.prompt, rng)
    columns = {rated.name: rated.ratings.mean(axis=1)}
    if len(rated.dimensions) > 1:
        named = zip(rated.dimensions, rated.ratings.T, strict=True)
        columns |= {f"{rated.name}, {name}": column for name, column in named}
    for name, ratings in columns.items():
        yield RANK_CORRELATION, name, rank_correlation(scores, ratings, rated.prompt, drawn)
        net = rated_pairs(scores, ratings, rated.prompt, drawn)
        if net.n:
            yield NET_AGREEMENT, name, net
            yield ACCURACY, name, drawn_from(lambda agreement: (1 + agreement) / 2, net, n=net.n)


def draw_prompts(prompt: Ints, rng: np.random.Generator) -> Floats:
    """Return how often each prompt was drawn: once each in the first row, then in each round."""
    n = int(prompt.max(initial=-1)) + 1
    return np.vstack([np.ones((1, n)), draw_counts(n, ROUNDS, rng)])


def rank_correlation(scores: Floats, ratings: Floats, prompt: Ints, drawn: Floats) -> Drawn:
    """Return Spearman's correlation, ranks taken again in each round; NaN without variation.

    Parameters
    ----------
    drawn : ndarray of shape (1 + n_rounds, n_prompts)
        Of `draw_prompts`.
    """
    weights = drawn[:, prompt]
    x, y = _ranks(scores, weights), _ranks(ratings, weights)
    x, y = (one - _mean(one, weights)[:, None] for one in (x, y))
    size = np.sqrt(_mean(x * x, weights) * _mean(y * y, weights))
    return _as_drawn(ratio(_mean(x * y, weights), size), len(scores))


def rated_pairs(scores: Floats, ratings: Floats, prompt: Ints, drawn: Floats) -> Drawn:
    """Return the net agreement over pairs of texts of a prompt that people rated differently.

    ``P(agree) - P(disagree)``, a tie of the scores being neither: twice the share that agree, a
    tie counting half, less one.
    """
    order = np.argsort(prompt, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(prompt))[:-1])
    pairs = [np.stack(np.triu_indices(len(one), 1)) for one in rows]
    both = np.hstack([one[pair] for one, pair in zip(rows, pairs, strict=True)])
    first, second = both[0], both[1]
    votes = np.sign(ratings[first] - ratings[second])
    verdict = compare(scores[first], scores[second])
    return _net_agreement(verdict, np.column_stack([votes > 0, votes < 0]), prompt[first], drawn)


def _net_agreement(verdict: Floats, votes: Floats, prompt: Ints, drawn: Floats) -> Drawn:
    """Return ``P(agree) - P(disagree)`` with the votes for A and for B.

    Parameters
    ----------
    verdict : ndarray of shape (n,)
        1 for A, -1 for B, 0 for neither.
    votes : ndarray of shape (n, 2)
        For A, and for B.
    """
    for_a, for_b = votes.T.astype(np.float64)
    stats = np.column_stack([verdict * (for_a - for_b), for_a + for_b])
    sums = drawn @ sums_within(prompt, stats, drawn.shape[1])
    return _as_drawn(ratio(sums[:, 0], sums[:, 1]), int(votes.sum()))


def _as_drawn(values: Floats, n: int) -> Drawn:
    return Drawn(float(values[0]), values[1:], n)


def _mean(values: Floats, weights: Floats) -> Floats:
    return ratio((values * weights).sum(axis=1), weights.sum(axis=1))


def _ranks(values: Floats, weights: Floats) -> Floats:
    """Return mean ranks of rows that count as often as their weights say."""
    group = tie_groups(values)
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group)) - 1
    above = np.cumsum(weights[:, order], axis=1)[:, ends]
    below = np.hstack([np.zeros((len(weights), 1)), above[:, :-1]])
    return np.asarray(((below + above) / 2)[:, group])


NO_CEILING = "Human–human agreement is unknown here: no pair has single votes of two people."


@dataclass(frozen=True, slots=True)
class Alignment:
    """Ratings to set scores beside."""

    rated: tuple[RatedTexts, ...]
    data: str

    def ask(self, measure: Measure) -> Floats:
        """Score the texts of each set, end to end."""
        return np.concatenate(
            [
                scores_of(
                    measure.name,
                    measure.fit([*one.references, *one.texts]).rows(one.references, one.texts),
                )
                for one in self.rated
            ]
        )

    def truth(self) -> Floats:
        """Return what an oracle answers: the mean rating."""
        return np.concatenate([one.ratings.mean(axis=1) for one in self.rated])

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Estimate how scores agree with people.

        The mean of two figures, or the one of them that the data give: the net agreement over
        pairs that people distinguish, and Spearman's correlation with the mean rating. Sets of
        data count the same.

        Returns
        -------
        Axis
            Parts: ``rank correlation`` and ``net agreement`` by set and by rated dimension;
            ``accuracy``, the share of pairs that agree, a tie counting half.
        """
        cut = np.split(scores, np.cumsum([len(one.texts) for one in self.rated])[:-1])
        figures = [
            figure
            for one, own in zip(self.rated, cut, strict=True)
            for figure in _figures_of_ratings(one, own, rng)
        ]
        names = {one.name for one in self.rated}  # those of single dimensions are for show
        by_kind = [
            mean_of(drawn for of, name, drawn in figures if name in names and of == group)
            for group in (RANK_CORRELATION, NET_AGREEMENT)
        ]
        return axis_of(
            AxisName.ALIGNMENT,
            mean_of(by_kind),
            (Part(group, name, drawn.estimate()) for group, name, drawn in figures),
            clusters=sum(len(np.unique(one.prompt)) for one in self.rated),
            what="prompts",
            data=self.data,
            warnings=(NO_CEILING,),
        )


# Model recognition


FOLDS = 5
LEAST = 10
"""Answers of a model from which it is among those to be known."""
MOST_WORDS = 20_000


def recognise(
    models: Sequence[str], texts: Sequence[str], groups: Sequence[str], seed: int = 0
) -> dict[str, Any]:
    """Ask of each answer who wrote it, of a classifier that has not seen its prompt.

    Words and pairs of words (tf-idf, `MOST_WORDS` of them), logistic regression, `FOLDS` folds
    in which the answers to one prompt stay together. Intervals allow for answers to one prompt
    that are alike: see `judge.ifeval.share`.

    Parameters
    ----------
    models, texts, groups : sequence of str, one an answer
        Who wrote it, what, and on which prompt.

    Returns
    -------
    dict
        ``accuracy``, the share of held-out answers whose model is known, and ``majority``, the
        same by always naming the model with the most answers; the number of ``groups``; in
        ``models`` of each its ``answers``, ``recall`` (of these, those that the classifier gives
        it) and the ``words`` that speak most for it; and ``left_out``, the models of fewer than
        `LEAST` answers. Shares are fields of `judge.ifeval.Share`.

    Raises
    ------
    DataError
        For fewer than two models of `LEAST` answers, or fewer than `FOLDS` prompts.

    References
    ----------
    .. [1] R. Min et al., "Improving Your Model Ranking on Chatbot Arena by
       Vote Rigging", ICML 2025: attackers recognise the model to push.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # takes a second to import
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    names, counts = np.unique(np.array(models, dtype=str), return_counts=True)
    known = [str(name) for name in names[counts >= LEAST]]
    rows = np.flatnonzero(np.isin(models, known)).tolist()
    prompts = len({groups[row] for row in rows})
    if len(known) < 2 or prompts < FOLDS:
        raise DataError(
            f"Two models of {LEAST} answers each on {FOLDS} prompts are needed; there are "
            f"{len(known)} such models and {prompts} prompts."
        )
    true, answers = np.array(models)[rows], [texts[row] for row in rows]
    words = TfidfVectorizer(ngram_range=(1, 2), max_features=MOST_WORDS, sublinear_tf=True)
    classifier = make_pipeline(words, LogisticRegression(C=10.0, max_iter=1000))
    folds = GroupKFold(FOLDS, shuffle=True, random_state=seed)
    of = [groups[row] for row in rows]
    guessed = cross_val_predict(classifier, answers, true, groups=of, cv=folds)
    telling = _telling(classifier.fit(answers, true), known)
    right = guessed == true

    def known_of(chosen: Bools) -> dict[str, Any]:
        groups_of = np.array(of)[chosen].tolist()
        return asdict(share(zip(groups_of, right[chosen].tolist(), strict=True)))

    return {
        "accuracy": known_of(np.ones(len(of), dtype=bool)),
        "majority": float(counts.max() / counts[counts >= LEAST].sum()),
        "groups": prompts,
        "models": [
            {
                "model": name,
                "answers": int((true == name).sum()),
                "recall": known_of(true == name),
                "words": telling[name],
            }
            for name in known
        ],
        "left_out": [*map(str, names[counts < LEAST])],
    }


def _telling(classifier: Any, known: Sequence[str]) -> dict[str, list[str]]:
    words, regression = (step for _, step in classifier.steps)
    weight = regression.coef_
    if len(weight) == 1:  # of two models
        weight = np.vstack([-weight[0], weight[0]])
    vocabulary = words.get_feature_names_out()
    best = np.argsort(-weight, axis=1)[:, :5]
    return {name: vocabulary[row].tolist() for name, row in zip(known, best, strict=True)}


# Simulated arenas


_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


def _counted(votes: VoteRows) -> Comparisons:
    """Count the votes; a split one is a part of a vote for each side.

    Raises
    ------
    NotIdentifiedError
        If there is no vote on some model.
    """
    voter = votes.groups.get("voter")
    if "score" in votes.numbers:
        data = Comparisons.from_codes(
            votes.models,
            np.tile(votes.a, 2),
            np.tile(votes.b, 2),
            np.repeat([A, B], votes.n),
            weight=np.concatenate([votes.score, 1 - votes.score]),
            voter=None if voter is None else np.tile(voter, 2),
        )
    else:
        data = votes.comparisons(voter=voter)
    if data.models != votes.models:
        missing = ", ".join(sorted({*votes.models} - {*data.models}))
        raise NotIdentifiedError(f"Of {votes.n} votes none is on {missing}.")
    return data


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A simulated arena: battles and voters stay, and the votes are drawn again each time.

    A voter sees model m at ``strengths[m] + taste * u[m]`` with u standard normal, ties a share
    ``tie_rate`` of the battles whatever the gap, and else prefers by Bradley-Terry.

    Attributes
    ----------
    battles : VoteRows
        Who votes on which models; where voters are not known, each vote has a random effect of
        its own. How these votes went does not count.
    strengths : ndarray of shape (n_models,)
        In nats.
    taste : float
        In nats.
    """

    battles: VoteRows
    strengths: Floats
    taste: float
    tie_rate: float

    @classmethod
    def like(cls, votes: VoteRows) -> Self:
        """Make an arena like an observed one: its battles, fitted strengths and random effects.

        Raises
        ------
        NotIdentifiedError, rating.NotIdentifiedError
            If the votes determine no strengths.
        """
        theta = fit_bradley_terry(_counted(votes)).theta
        is_tie = votes.score == 0.5
        tastes_show = "voter" in votes.groups and not is_tie.all()
        taste = fit_taste_sd(votes, theta) if tastes_show else 0.0
        return cls(votes, theta, taste, float(is_tie.mean()))

    def truth(self) -> Floats:
        """Return the strengths that Bradley-Terry would reach with endless voters, in nats.

        Those of the probabilities of all voters together, under the pairs as they were shown:
        random effects and ties draw them together.
        """
        k, a, b = len(self.strengths), self.battles.a, self.battles.b
        probability = self._mean_probability()
        wins = np.zeros(k * k)
        wins += np.bincount(a * k + b, probability, k * k)
        wins += np.bincount(b * k + a, 1 - probability, k * k)
        return solve(wins.reshape(k, k), np.zeros(k)).theta

    def cast(self, rng: np.random.Generator) -> VoteRows:
        """Draw voters' random effects and their votes."""
        liking = self.liking(rng)
        draw = rng.random(self.battles.n)
        score = np.where(draw < (1 - self.tie_rate) * _probability(liking), 1.0, 0.0)
        return self.battles.with_scores(np.where(draw >= 1 - self.tie_rate, 0.5, score))

    def liking(self, rng: np.random.Generator) -> Floats:
        """Draw random effects; return how far each vote's voter prefers side A, in nats."""
        votes = self.battles
        gap = np.asarray(self.strengths[votes.a] - self.strengths[votes.b])
        if self.taste == 0:
            return gap
        voter = votes.groups.get("voter", np.arange(votes.n))
        taste = rng.normal(0, self.taste, (int(voter.max()) + 1, len(self.strengths)))
        return gap + (taste[voter, votes.a] - taste[voter, votes.b])

    def oracle(self) -> VoteRows:
        """Cast every vote as the share of all voters who would cast it for side A: no noise."""
        return self.battles.with_scores(self._mean_probability())

    def _mean_probability(self) -> Floats:
        gap = self.strengths[self.battles.a] - self.strengths[self.battles.b]
        pairs, place = np.unique(gap, return_inverse=True)
        shifted = pairs[:, None] + np.sqrt(2) * self.taste * _NODES
        mean = _probability(shifted) @ (_WEIGHTS / _WEIGHTS.sum())
        return np.asarray((1 - self.tie_rate) * mean[place] + self.tie_rate / 2)


def _probability(gap: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-gap)))


# Ways to rate


LEVEL = 0.95
WORLD_ROUNDS = 200
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Rated:
    """What a measure says of votes.

    Attributes
    ----------
    theta : ndarray of shape (n_models,)
        In nats, summing to zero.
    half : ndarray of shape (n_models,), or None
        Half widths of 95% intervals; None where the measure gives none.
    above : ndarray of shape (n_models, n_models), bool
        Where it claims that the row is better than the column: at 95% a pair, and every
        difference if it gives no interval.
    """

    theta: Floats
    half: Floats | None
    above: Bools


Rate = Callable[[VoteRows, np.random.Generator], Rated]
Strengths = Callable[[VoteRows, np.random.Generator], Floats]


@dataclass(frozen=True, slots=True)
class WorldMeasure:
    """A way to rate, and the same with other choices that should come to the same.

    Attributes
    ----------
    knobs : mapping of str to Rate
        By what was chosen otherwise.
    strengths : callable, optional
        The same ``theta`` without intervals, where those take time of their own.
    """

    name: str
    rate: Rate
    knobs: Mapping[str, Rate]
    strengths: Strengths | None = None

    def theta(self, votes: VoteRows, rng: np.random.Generator) -> Floats:
        """Return the strengths of the models, where nobody asks for their intervals."""
        if self.strengths is not None:
            return self.strengths(votes, rng)
        return self.rate(votes, rng).theta


def by_bradley_terry(
    votes: VoteRows, rng: np.random.Generator, *, ties: Ties = "half", independent: bool = False
) -> Rated:
    """Rate as the board does: intervals by omitting one voter at a time, Student's t.

    Parameters
    ----------
    independent : bool
        Take every vote as a voter's only one, also where voters are known.
    """
    data = _counted(votes)
    fitted = fit(data, ties=ties)
    by_voter = data.voter is not None and not independent
    inference = infer(fitted, data, ("voter",) if by_voter else ())
    pairs = inference.pairs
    bar = pairs.table(pairs.each.half_width(LEVEL))
    gap = fitted.theta[:, None] - fitted.theta
    half = inference.ratings().half_width(LEVEL)
    return Rated(fitted.theta, half, gap > np.maximum(bar, _EQUAL))


def bradley_terry_strengths(votes: VoteRows, rng: np.random.Generator) -> Floats:
    """Return the strengths of `by_bradley_terry`, a tie half a win."""
    return fit(_counted(votes)).theta


def by_bootstrap(votes: VoteRows, rng: np.random.Generator) -> Rated:
    """Rate by Bradley-Terry with percentile intervals over voters drawn at random."""
    data = _counted(votes)
    fitted: Fit = fit(data)
    cluster: Cluster | None = None if data.voter is None else "voter"
    drawn = bootstrap(fitted, data, rounds=WORLD_ROUNDS, cluster=cluster, rng=rng)
    lower, upper = drawn.interval(LEVEL)
    with np.errstate(invalid="ignore"):  # two models that beat all others cannot be compared
        gaps = drawn.theta[:, :, None] - drawn.theta[:, None, :]
    least = np.nan_to_num(gaps, nan=-math.inf, posinf=math.inf, neginf=-math.inf)
    above = np.quantile(least, (1 - LEVEL) / 2, axis=0, method="lower") > _EQUAL
    return Rated(fitted.theta, (upper - lower) / 2, above)


def by_online_elo(votes: VoteRows, rng: np.random.Generator, *, k: float = 4.0) -> Rated:
    """Rate by one pass over the votes, in the order in which they were cast, without intervals."""
    _counted(votes)  # each model has a vote
    points = online_elo(votes.a, votes.b, votes.score, len(votes.models), k=k, start=0.0)
    theta = points * math.log(10) / 400
    return Rated(theta, None, theta[:, None] - theta > _EQUAL)


def in_another_order(rate: Rate) -> Rate:
    """Return the same way to rate, of the votes in a random order."""
    return lambda votes, rng: rate(votes.shuffled(rng), rng)


BRADLEY_TERRY = WorldMeasure(
    "Bradley-Terry, intervals by voter",
    by_bradley_terry,
    {
        "ties by Davidson": partial(by_bradley_terry, ties="davidson"),
        "ties by Rao-Kupper": partial(by_bradley_terry, ties="rao-kupper"),
        "intervals by bootstrap": by_bootstrap,
        "another order of votes": in_another_order(by_bradley_terry),
    },
    bradley_terry_strengths,
)
INDEPENDENT = WorldMeasure(
    "Bradley-Terry, votes as independent",
    partial(by_bradley_terry, independent=True),
    {
        "ties by Davidson": partial(by_bradley_terry, ties="davidson", independent=True),
        "intervals by voter": by_bradley_terry,
        "another order of votes": in_another_order(partial(by_bradley_terry, independent=True)),
    },
    bradley_terry_strengths,
)
ONLINE_ELO = WorldMeasure(
    "Online Elo",
    by_online_elo,
    {
        "another order of votes": in_another_order(by_online_elo),
        "half the K factor": partial(by_online_elo, k=2.0),
    },
)
MEASURES = (BRADLEY_TERRY, INDEPENDENT, ONLINE_ELO)
