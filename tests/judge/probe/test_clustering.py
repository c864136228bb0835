"""Texts that belong together come together."""

import numpy as np
import pytest
from scipy.stats import norm

from judge.probe.prompts import Clustering
from judge.probe.similarity import BM25, JACCARD, LENGTH_COUNTER, Measure, random_measure
from rating.errors import DataError
from tests.judge.probe.texts import fixed_rng as rng
from tests.judge.probe.texts import topics


def small(n: int = 60) -> Clustering:
    texts, labels = topics(n)
    return Clustering.plan(texts, labels, "made up")


def test_an_oracle_is_at_one() -> None:
    axis = (plan := small()).read(plan.truth(), rng=rng())
    assert axis.estimate.value == pytest.approx(1)
    assert axis.part("agreement with classes", "V-measure").value == pytest.approx(1)


def test_figures_of_a_clustering_by_hand() -> None:
    # Classes 0 0 0 1 1 1 in clusters of {0 0} and {0 1 1 1}.
    together = np.array([0, 0, 1, 1, 1, 1])
    plan = Clustering.plan(list("abcdef"), list("xxxyyy"), "made up")
    axis = plan.read(np.equal.outer(together, together).astype(float), rng=rng())
    of_class = np.log(2)
    of_cluster = -np.log(1 / 3) / 3 - 2 * np.log(2 / 3) / 3
    inside = -2 / 3 * (np.log(1 / 4) / 4 + 3 * np.log(3 / 4) / 4)  # H(class | cluster)
    h = 1 - inside / of_class
    c = 1 - (of_cluster - (of_class - inside)) / of_cluster
    group = "agreement with classes"
    assert axis.part(group, "homogeneity").value == pytest.approx(h)
    assert axis.part(group, "completeness").value == pytest.approx(c)
    assert axis.part(group, "V-measure").value == pytest.approx(2 * h * c / (h + c))
    # Pairs: 4 in one class and one cluster, of 6 and 7, where 6 * 7 / 15 are expected.
    rand = (4 - 6 * 7 / 15) / ((6 + 7) / 2 - 6 * 7 / 15)
    assert axis.part(group, "adjusted Rand index").value == pytest.approx(rand)


@pytest.mark.parametrize("measure", [JACCARD, BM25], ids=lambda m: m.name)
def test_shared_words_bring_topics_together(measure: Measure) -> None:
    plan = small()
    estimate = plan.read(plan.ask(measure), rng=rng()).estimate
    assert estimate.lower is not None
    assert estimate.lower > 0.4


@pytest.mark.slow
def test_lots_and_lengths_find_nothing_though_the_file_is_in_the_order_of_topics() -> None:
    plan = small(120)
    values = [
        plan.read(plan.ask(random_measure(seed)), rng=rng()).estimate.value or 0
        for seed in range(12)
    ]
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(np.mean(values)) < norm.ppf(0.9995) * error
    length = plan.read(plan.ask(LENGTH_COUNTER), rng=rng()).estimate
    same = plan.read(np.ones((120, 120)), rng=rng()).estimate
    assert length.value == pytest.approx(0, abs=0.05)
    assert same.value == pytest.approx(0, abs=0.05)


def test_the_order_of_texts_does_not_matter_where_nothing_ties() -> None:
    texts, labels = topics()
    order = rng().permutation(len(texts))
    turned = Clustering.plan([texts[i] for i in order], [labels[i] for i in order], "made up")
    noise = np.random.default_rng(2).normal(size=(60, 60)) / 1e3
    scores = small().ask(JACCARD) + noise + noise.T
    first = small().read(scores, rng=rng()).estimate.value
    assert turned.read(scores[np.ix_(order, order)], rng=rng()).estimate.value == first


def test_a_score_without_an_upper_end_is_read_as_a_share_of_the_own() -> None:
    plan = small()
    scores = plan.ask(JACCARD)
    stretched = scores * np.linspace(1, 50, len(scores))[:, None]  # a factor for each reference
    assert plan.read(stretched, rng=rng()) == plan.read(scores, rng=rng())


def test_what_cannot_be_clustered_is_refused() -> None:
    with pytest.raises(DataError, match="2 texts and 1 labels"):
        Clustering.plan(["a", "b"], ["x"], "made up")
    with pytest.raises(DataError, match="4 texts of 1 classes"):
        Clustering.plan(list("abcd"), list("xxxx"), "made up")
