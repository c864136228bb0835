"""Votes and verdicts drawn from known likings: prompts, people, and a judge who shares some."""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from judge.studies.powered import powered_ratings
from judge.studies.rows import Items, Labels
from rating.likelihood import solve
from tests.simulation import Share

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Study:
    """A study to simulate.

    Every prompt suits some models better: ``suits`` is the sd in nats of a liking that all votes
    on a prompt and a model share. The judge has its own strengths, turned round by ``bias``, and
    follows ``signal`` times the liking. ``taste`` is the sd of what a voter likes of each model
    beyond others; the voters take turns.
    """

    n_models: int = 8
    n_prompts: int = 80
    n_voted: int = 400
    n_judged: int = 8000
    suits: float = 1.0
    signal: float = 1.0
    bias: float = 1.0
    tie_rate: float = 0.1
    spread: float = 0.8
    n_voters: int = 100
    taste: float = 0.0

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(f"m{i:02}" for i in range(self.n_models))

    @property
    def strengths(self) -> Floats:
        return np.linspace(-self.spread, self.spread, self.n_models)

    @property
    def judge_strengths(self) -> Floats:
        """As people's, plus a preference for every other model."""
        return self.strengths + self.bias * (np.arange(self.n_models) % 2 - 0.5)

    def pseudo_true(self, strengths: Floats) -> Floats:
        """Bradley-Terry strengths over all prompts and voters, under uniform pairs."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(41)
        gap = strengths[:, None] - strengths[None, :]
        shifted = gap[..., None] + np.sqrt(2) * np.hypot(self.suits, self.taste) * nodes
        probability = (1 / (1 + np.exp(-shifted))) @ (weights / weights.sum())
        probability = (1 - self.tie_rate) * probability + self.tie_rate / 2
        np.fill_diagonal(probability, 0.0)
        return solve(probability, np.zeros(self.n_models)).theta

    @property
    def shares_prompts(self) -> bool:
        return self.n_prompts < self.n_voted

    @property
    def truth(self) -> Floats:
        return self.pseudo_true(self.strengths)

    def draw(self, rng: np.random.Generator) -> tuple[Items, Labels, Labels]:
        """Items, the votes on the first of them, and a verdict on each."""
        n = self.n_voted + self.n_judged
        prompt = rng.integers(self.n_prompts, size=n)
        a = rng.integers(self.n_models, size=n)
        b = (a + rng.integers(1, self.n_models, size=n)) % self.n_models
        liking = rng.normal(0, self.suits, (self.n_prompts, self.n_models))
        suits = liking[prompt, a] - liking[prompt, b]
        voter = np.arange(n) % self.n_voters
        tastes = rng.normal(0, self.taste, (self.n_voters, self.n_models))
        personal = tastes[voter, a] - tastes[voter, b]
        votes = self._labels(rng, self.strengths[a] - self.strengths[b] + suits + personal)
        own = self.judge_strengths
        verdicts = self._labels(rng, own[a] - own[b] + self.signal * suits)
        items = Items(self.models, np.column_stack([a, b]), prompt)
        people = labels_of(np.arange(self.n_voted), votes[: self.n_voted], voter)
        return items, people, labels_of(np.arange(n), verdicts)

    def _labels(self, rng: np.random.Generator, gap: Floats) -> NDArray[np.int8]:
        label = np.where(rng.random(len(gap)) < 1 / (1 + np.exp(-gap)), 1, -1)
        return np.where(rng.random(len(gap)) < self.tie_rate, 0, label).astype(np.int8)


def labels_of(item: Ints, label: NDArray[np.int8], rater: Ints | None = None) -> Labels:
    """One row an item, by one rater unless they are given; nothing known of the order."""
    labels = Labels.of_one_rater(item, label)
    return labels if rater is None else replace(labels, rater=rater[: labels.n])


def nothing() -> Labels:
    """What a judge said that was not asked."""
    return labels_of(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int8))


def as_votes(rows: Labels) -> Labels:
    """The same as if each row were a vote of another voter: an error."""
    return replace(rows, rater=np.arange(rows.n))


def apart(items: Items) -> Items:
    """The same items as if each had a prompt of its own: an error where prompts are shared."""
    return replace(items, prompt=np.arange(items.n))


@dataclass(frozen=True, slots=True)
class RatingStudy:
    """What ratings promised and what they were, over many studies.

    Attributes
    ----------
    covered : dict of str to Share
        Share of the models whose 95 % interval holds the truth: ``powered`` and ``people`` (alone)
        as they are given; the planted errors ``judge`` (a board of its verdicts alone), where
        prompts are shared ``independent`` (powered as if they were not) and, where voters have
        tastes, ``votes`` (powered as if each vote were of another voter).
    judge_weight, gain : float
        Means of what was printed, the gain as a ratio of mean variances.
    true_gain : Share
        Mean squared error by people alone over that by both, and its Monte Carlo error.
    gain_covered : Share
        Share of the studies whose interval of the gain, widened by 2 %, holds the true one.
    alarms : Share
        Share of the studies whose votes, a random subset, look like none at 5 %.
    """

    covered: dict[str, Share]
    judge_weight: float
    gain: float
    true_gain: Share
    gain_covered: Share
    alarms: Share


@cache
def rating_study(study: Study, runs: int, seed: int) -> RatingStudy:
    """Rate many times by votes and verdicts, and compare with the truth."""
    rng, truth = np.random.default_rng(seed), study.truth
    inside: dict[str, list[float]] = defaultdict(list)
    squares: dict[str, list[float]] = defaultdict(list)
    variances: dict[str, list[float]] = defaultdict(list)
    weights: list[float] = []
    gains: list[tuple[float, float]] = []
    alarms: list[float] = []
    for _ in range(runs):
        items, people, judge = study.draw(rng)
        powered = powered_ratings(items, people, judge)
        boards = {
            "powered": powered.ratings,
            "people": powered.human_only,
            "judge": powered_ratings(items, as_votes(judge), nothing()).human_only,
        }
        if study.taste:
            boards["votes"] = powered_ratings(items, as_votes(people), judge).ratings
        if study.shares_prompts:
            boards["independent"] = powered_ratings(apart(items), people, judge).ratings
        for name, one in boards.items():
            off = truth - truth[one.averaged].mean()
            inside[name].append(float(((one.lower <= off) & (off <= one.upper)).mean()))
            squares[name].append(float(((one.theta - off) ** 2).mean()))
            variances[name].append(float(one.variance.mean()))
        if powered.gain.lower is not None and powered.gain.upper is not None:
            gains.append((powered.gain.lower, powered.gain.upper))
        weights.append(powered.judge_weight)
        assert powered.random_subset_p is not None
        alarms.append(float(powered.random_subset_p < 0.05))
    had = ratio(np.array(squares["people"]), np.array(squares["powered"]))
    ends = np.array(gains).reshape(-1, 2)
    return RatingStudy(
        covered={name: Share.of(np.array(values)) for name, values in inside.items()},
        judge_weight=float(np.mean(weights)),
        gain=float(np.mean(variances["people"]) / np.mean(variances["powered"])),
        true_gain=had,
        gain_covered=Share.of(
            ((0.98 * ends[:, 0] <= had.mean) & (had.mean <= 1.02 * ends[:, 1])).astype(np.float64)
        ),
        alarms=Share.of(np.array(alarms)),
    )


def ratio(first: Floats, second: Floats) -> Share:
    """One mean over another and its Monte Carlo error, the two drawn in pairs."""
    value = float(first.mean() / second.mean())
    error = float((first - value * second).std() / second.mean() / np.sqrt(len(first)))
    return Share(value, error)
