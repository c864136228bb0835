"""Classical measures on published texts: what they are known to do, and what they do here."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from judge.probe.cards import CardMaterial, read_material
from judge.probe.people import Alignment, RatedTexts
from judge.probe.prompts import Clustering, Retrieval
from judge.probe.robustness import Robustness, Sensitivity
from judge.probe.similarity import (
    BM25,
    CLASSICAL,
    JACCARD,
    LENGTH_COUNTER,
    LEVENSHTEIN,
    TF_IDF,
    Axis,
    AxisName,
    Card,
    Plan,
    card_of,
    oracle_card,
)
from tests.judge.probe.texts import fixed_rng as rng

pytestmark = [pytest.mark.published, pytest.mark.timeout(300)]

FILES = (
    "stsb-en-dev.csv", "newsroom.csv.gz", "newsroom_sources.csv.gz", "banking77_test.csv",
    "cran.all.1400.xml.gz", "cran.qry.xml", "cranqrel.trec.txt",
)  # fmt: skip


@pytest.fixture(scope="module")
def material(published_data: Path) -> CardMaterial:
    return read_material([published_data / "similarity" / name for name in FILES])


def first_of(rated: RatedTexts) -> RatedTexts:
    """Exclude two prompts of three."""
    rows = np.flatnonzero(rated.prompt < (rated.prompt.max() + 1) // 3).tolist()
    return replace(
        rated,
        references=tuple(rated.references[i] for i in rows),
        texts=tuple(rated.texts[i] for i in rows),
        prompt=rated.prompt[rows],
        ratings=rated.ratings[rows],
    )


@pytest.fixture(scope="module")
def plans(material: CardMaterial) -> list[Plan]:
    assert material.library is not None
    assert material.classes is not None
    _, texts = material.long_texts(20)
    some = [texts[i] for i in rng().permutation(len(texts))[:30]]
    rows = rng().permutation(len(material.classes.texts))[:150]
    asked = {(q, t): gain for (q, t), gain in material.library.relevant.items() if q < 30}
    chosen = {t for _, t in asked} | set(range(0, len(material.library.texts), 10))
    place = {t: i for i, t in enumerate(sorted(chosen))}
    return [
        Alignment(tuple(map(first_of, material.rated)), "STS-B dev and Newsroom, in part"),
        Robustness.plan(some, "30 abstracts of Cranfield", rng=rng()),
        Sensitivity.plan(some, "30 abstracts of Cranfield", rng=rng()),
        Clustering.plan(
            [material.classes.texts[i] for i in rows],
            [material.classes.labels[i] for i in rows],
            "150 texts of BANKING77",
        ),
        Retrieval.plan(
            material.library.questions[:30],
            [material.library.texts[t] for t in place],
            {(q, place[t]): gain for (q, t), gain in asked.items()},
            "30 questions of Cranfield",
            rng=rng(),
        ),
    ]


@pytest.fixture(scope="module")
def cards(plans: list[Plan]) -> dict[str, Card]:
    return {one.name: card_of(one, plans, seed=1) for one in CLASSICAL}


def ends(axis: Axis | None) -> tuple[float, float]:
    assert axis is not None
    assert axis.estimate.lower is not None
    assert axis.estimate.upper is not None
    return axis.estimate.lower, axis.estimate.upper


@pytest.mark.slow
def test_every_classical_measure_has_a_card_of_five_axes(cards: dict[str, Card]) -> None:
    for card in cards.values():
        assert [one.name for one in card.axes] == list(AxisName)
        assert all(None not in ends(one) for one in card.axes)


def test_an_oracle_is_near_one_on_all_of_them(plans: list[Plan]) -> None:
    for one in oracle_card(plans, seed=1).axes:
        assert one.estimate.value == pytest.approx(1, abs=0.02), one.name


def test_jaccard_is_above_tf_idf_cosine_on_information_sensitivity(cards: dict[str, Card]) -> None:
    # SAGE (arXiv 2509.21310) found Jaccard, .905, above the best embedding, .794.
    jaccard, cosine = (
        ends(cards[one.name].axis(AxisName.SENSITIVITY)) for one in (JACCARD, TF_IDF)
    )
    assert jaccard[0] > cosine[1] + 0.05


def test_no_measure_is_best_on_every_axis(cards: dict[str, Card]) -> None:
    values = [[one.estimate.value or 0 for one in card.axes] for card in cards.values()]
    assert len(set(np.argmax(values, axis=0).tolist())) > 1


def test_rare_words_find_texts_and_letters_do_not(cards: dict[str, Card]) -> None:
    assert ends(cards[BM25.name].axis(AxisName.RETRIEVAL))[0] > 0.2
    assert ends(cards[LEVENSHTEIN.name].axis(AxisName.RETRIEVAL))[1] < 0.1


def test_readers_of_newsroom_prefer_longer_summaries_more_than_what_any_measure_prefers(
    material: CardMaterial,
) -> None:
    newsroom = Alignment(material.rated[1:], "Newsroom")
    length, *others = (
        ends(card_of(one, [newsroom], seed=1).axes[0]) for one in (LENGTH_COUNTER, *CLASSICAL)
    )
    assert length[0] > max(upper for _, upper in others)
