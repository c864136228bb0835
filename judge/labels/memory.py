"""Whether a model has learnt a benchmark by heart: it prefers the order of the items."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from judge.labels.accuracy import labelled_prompts
from judge.studies.estimates import Estimate
from rating.errors import DataError
from rating.typing import Floats
from rating.uncertainty.student import quantile

BETWEEN = "\n\n"
"""What stands between items."""
FEWEST_SHARDS = 2

LogLikelihoods = Callable[[Sequence[str]], Mapping[str, float]]
"""Gives the log-likelihood (nats) of each text under a model."""


@dataclass(frozen=True, slots=True)
class Orders:
    """Texts of each shard: its items in their own order first, then in others.

    Attributes
    ----------
    texts : tuple of tuple of str, shape (n_shards, 1 + n_permutations)
    """

    texts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """Whether a model finds the order of a benchmark more likely than other orders.

    Attributes
    ----------
    p : float
        Share of orders, the own among them, that are as likely over all shards together: exact,
        and at least 1 / (permutations + 1).
    p_shards : float
        One-sided, of the t-test that shards gain nothing by their order: rough, as gains are
        skewed, and with ten shards far too large where another order was learnt.
    gain : Estimate
        Nats that a shard gains by its own order over others, with Student's interval over shards.
    """

    shards: int
    permutations: int
    p: float
    p_shards: float
    gain: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "shards": self.shards,
            "permutations": self.permutations,
            "p": self.p,
            "p_shards": self.p_shards,
            "gain": self.gain.value,
            "lower": self.gain.lower,
            "upper": self.gain.upper,
        }


def orders(items: Sequence[str], shards: int, permutations: int, seed: int) -> Orders:
    """Cut a benchmark into shards of items that follow one another, and draw other orders.

    Raises
    ------
    DataError
        If a shard would have under three items: two have one other order alone.
    """
    if shards < FEWEST_SHARDS or len(items) < 3 * shards:
        msg = (
            f"{len(items)} items are too few for {shards} shards of three items and more: "
            f"take between 2 and {len(items) // 3}."
        )
        raise DataError(msg)
    rng = np.random.default_rng(seed)
    return Orders(
        tuple(
            tuple(
                BETWEEN.join(items[i] for i in order)
                for order in (part, *(rng.permutation(part) for _ in range(permutations)))
            )
            for part in np.array_split(np.arange(len(items)), shards)
        )
    )


def memory(asked: Orders, log_likelihoods: LogLikelihoods, level: float = 0.95) -> Memory:
    """Test whether a model knows the order of a benchmark, and so has seen the benchmark.

    Of items whose order says nothing, every order is as likely to a model that has not seen
    them together. Each shard's own order is held against random ones [1]_, with one more in
    numerator and denominator, so that the test is exact: ``p = (1 + #{l(pi) >= l(id)}) / (B + 1)``
    for the sums over shards. The t-test over shards reaches smaller values, and is approximate.

    References
    ----------
    .. [1] Y. Oren et al., "Proving test set contamination in black box language models",
       arXiv 2310.17623, 2023, sections 3 and 4. There each shard is permuted anew for its own
       mean, as here; the exact p of the sums over shards is ours.
    """
    known = log_likelihoods([text for shard in asked.texts for text in shard])
    likely = np.array([[known[text] for text in shard] for shard in asked.texts])
    if not np.isfinite(likely).all():
        raise DataError("A log-likelihood is not finite: this model cannot be tested.")
    own, others = likely[:, 0], likely[:, 1:]
    # Orders of the same likelihood count against the model; sums differ by rounding alone.
    close = 1e-9 * np.abs(own).sum()
    as_likely = int((others.sum(axis=0) >= own.sum() - close).sum())
    gains = own - others.mean(axis=1)
    return Memory(
        shards=len(own),
        permutations=others.shape[1],
        p=(1 + as_likely) / (others.shape[1] + 1),
        p_shards=_one_sided(gains),
        gain=_mean(gains, level),
    )


def _one_sided(gains: Floats) -> float:
    """Give the p-value of a mean above zero; 1 where nothing varies and nothing is gained."""
    if np.ptp(gains) <= 1e-9 * np.abs(gains).max():
        return 0.0 if gains[0] > 0 else 1.0
    return float(scipy.stats.ttest_1samp(gains, 0.0, alternative="greater").pvalue)


def _mean(gains: Floats, level: float) -> Estimate:
    mean = float(gains.mean())
    reach = quantile(level, len(gains) - 1) * float(gains.std(ddof=1)) / len(gains) ** 0.5
    return Estimate(mean, mean - reach, mean + reach, len(gains))


class NGrams:
    """A toy that learns texts word by word, to plant what the test is to find.

    Trigrams, bigrams, words and a uniform distribution, each with a quarter of the weight.
    """

    def __init__(self, documents: Iterable[str]) -> None:
        self._grams: Counter[tuple[str, ...]] = Counter()
        self._contexts: Counter[tuple[str, ...]] = Counter()
        for document in documents:
            words = _words(document)
            for i in range(2, len(words)):
                for n in range(3):
                    self._grams[tuple(words[i - n : i + 1])] += 1
                    self._contexts[tuple(words[i - n : i])] += 1
        self._n_words = 1 + sum(len(gram) == 1 for gram in self._grams)

    def log_likelihood(self, text: str) -> float:
        """Give the log-likelihood of a text, in nats."""
        words = _words(text)
        return sum(math.log(self._probability(words, i)) for i in range(2, len(words)))

    def _probability(self, words: Sequence[str], i: int) -> float:
        shares = [1 / self._n_words]
        for n in range(3):
            times = self._contexts[tuple(words[i - n : i])]
            shares.append(self._grams[tuple(words[i - n : i + 1])] / times if times else 0.0)
        return sum(shares) / 4


def _words(text: str) -> list[str]:
    return ["", "", *text.replace(BETWEEN, f" {BETWEEN} ").split(" ")]


def planted(seed: int, shards: int, permutations: int) -> dict[str, Memory]:
    """Test a toy that learnt our labelled prompts in an order, and one that learnt each alone."""
    prompts = labelled_prompts()
    items = [prompts[i] for i in np.random.default_rng(seed).permutation(len(prompts))]
    asked = orders(items, shards, permutations, seed)
    toys = {"knows the order": NGrams([BETWEEN.join(items)]), "knows the items": NGrams(items)}
    return {
        name: memory(asked, lambda texts, toy=toy: {t: toy.log_likelihood(t) for t in texts})  # type: ignore[misc]
        for name, toy in toys.items()
    }
