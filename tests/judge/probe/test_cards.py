"""Cards from files: the axes that the files allow, the measures that were named, and samples."""

import json
from pathlib import Path

import numpy as np
import pytest

from judge.probe.cards import probe_similarity
from judge.probe.similarity import (
    BAG_OF_WORDS,
    CLASSICAL,
    LENGTH_COUNTER,
    TF_IDF,
    VERSION,
    AxisName,
    Card,
    Measure,
    Plan,
    card_of,
)
from rating.errors import DataError
from tests.judge.probe.texts import plans

WORDS = tuple(f"w{a}{b}" for a in "abcdefghij" for b in "klmnopqrst")


def pairs_file(folder: Path, n: int = 24) -> Path:
    """Write long texts, and copies of them of which a rated share is other words."""
    draw = np.random.default_rng(1)
    lines = ["reference,text,alike"]
    for _ in range(n):
        own = list(draw.permutation(WORDS)[:24])
        n_common = int(draw.integers(25))
        copy = own[:n_common] + list(draw.permutation(WORDS)[: 24 - n_common])
        lines.append(f"{' '.join(own)}.,{' '.join(copy)}.,{n_common}")
    (folder / "pairs.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "pairs.csv"


def classes_file(folder: Path) -> Path:
    lines = ["text,label"]
    lines += [f"{word} {'money' if i % 2 else 'card'} x,{i % 2}" for i, word in enumerate(WORDS)]
    (folder / "classes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "classes.csv"


def test_files_give_the_axes_they_are_for(tmp_path: Path) -> None:
    pairs, classes = pairs_file(tmp_path), classes_file(tmp_path)
    for files, axes in (
        ([pairs], ["alignment", "robustness", "sensitivity"]),
        ([classes], ["clustering"]),
        ([classes, pairs], ["alignment", "robustness", "sensitivity", "clustering"]),
    ):
        probe = probe_similarity(files, measures=["jaccard"], sample=20, seed=0)
        assert probe["about"]["axes"] == axes
        assert [axis["name"] for axis in probe["cards"][0]["axes"]] == axes


def test_questions_are_drawn_with_the_texts_that_answer_them(tmp_path: Path) -> None:
    """The question n is a word of the text 11 - n."""
    docs = (f"<doc><docno>{n}</docno><text>{WORDS[n]} x</text></doc>" for n in range(12))
    asked = (f"<top><num>{n}</num><title>{WORDS[11 - n]}</title></top>" for n in range(6))
    texts = {"docs.xml": docs, "asked.xml": asked}
    texts |= {"right.txt": (f"{n} 0 {11 - n} 1\n" for n in range(6))}
    for name, parts in texts.items():
        (tmp_path / name).write_text("".join(parts), encoding="utf-8")
    files = [tmp_path / name for name in texts]
    (axis,) = probe_similarity(files, measures=["bm25"], sample=3, seed=0)["cards"][0]["axes"]
    assert (axis["name"], axis["data"]) == ("retrieval", "docs.xml, 3 of 6 questions")
    assert (axis["parts"][0]["name"], axis["parts"][0]["value"]) == ("clean", pytest.approx(1))


def test_every_classical_measure_gets_a_card_on_the_same_texts(tmp_path: Path) -> None:
    probe = probe_similarity([classes_file(tmp_path)], sample=30, seed=0)
    assert [card["evaluator"] for card in probe["cards"]] == [
        measure.name for measure in CLASSICAL
    ]
    assert {card["axes"][0]["data"] for card in probe["cards"]} == {"classes.csv, 30 of 100 texts"}
    assert json.loads(json.dumps(probe, allow_nan=False)) == probe


def test_planted_evaluators_stand_beside_the_others(tmp_path: Path) -> None:
    probe = probe_similarity(
        [pairs_file(tmp_path)], measures=["bm25"], planted=True, sample=20, seed=0
    )
    names = [card["evaluator"] for card in probe["cards"]]
    assert names == ["oracle", "BM25", "bag of words", "length counter", "random"]
    values = [axis["value"] for axis in probe["cards"][0]["axes"]]
    assert values == pytest.approx([1] * len(values))


def test_the_same_seed_draws_the_same_texts_and_another_seed_others(tmp_path: Path) -> None:
    file = pairs_file(tmp_path)
    one, again, other = (
        probe_similarity([file], measures=["jaccard"], sample=10, seed=seed) for seed in (0, 0, 1)
    )
    assert one == again
    values = [[axis["value"] for axis in fields["cards"][0]["axes"]] for fields in (one, other)]
    assert values[0][0] == values[1][0]  # all pairs are used, whatever the seed
    assert values[0][2] != values[1][2]


def test_names_that_fit_no_measure_or_several_are_refused(tmp_path: Path) -> None:
    file = classes_file(tmp_path)
    with pytest.raises(DataError, match="'rouge' begins the names of 3"):
        probe_similarity([file], measures=["rouge"], sample=20, seed=0)
    with pytest.raises(DataError, match="'bert' begins the names of 0"):
        probe_similarity([file], measures=["bert"], sample=20, seed=0)
    with pytest.raises(DataError, match="--sample 1"):
        probe_similarity([file], sample=1, seed=0)


@pytest.fixture(scope="module")
def planned() -> list[Plan]:
    return plans()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("measure", CLASSICAL, ids=lambda m: m.name)
def test_every_classical_measure_has_a_value_on_all_five_axes(
    planned: list[Plan], measure: Measure
) -> None:
    card = card_of(measure, planned, seed=1)
    assert [axis.name for axis in card.axes] == list(AxisName)
    for axis in card.axes:
        estimate = axis.estimate
        assert estimate.value is not None, axis.name
        assert estimate.lower is not None, axis.name
        assert estimate.upper is not None, axis.name
        assert -1 <= estimate.lower <= estimate.value + 1e-9, axis.name
        assert estimate.value - 1e-9 <= estimate.upper <= 1 + 1e-6, axis.name


def test_planted_evaluators_are_told_from_each_other(planned: list[Plan]) -> None:
    length, bag = (card_of(one, planned, seed=1) for one in (LENGTH_COUNTER, BAG_OF_WORDS))
    for name in ("robustness", "clustering", "retrieval"):
        assert abs(_value(length, AxisName(name))) < 0.25, name
    for name in ("sensitivity", "clustering", "retrieval"):
        assert _value(bag, AxisName(name)) > 0.5, name


def _value(card: Card, name: AxisName) -> float:
    return next(axis.estimate.value for axis in card.axes if axis.name is name) or 0.0


def test_the_same_seed_gives_the_same_card(planned: list[Plan]) -> None:
    assert card_of(TF_IDF, planned, seed=1) == card_of(TF_IDF, plans(), seed=1)


def test_a_card_is_plain_values_without_an_average(planned: list[Plan]) -> None:
    card = card_of(BAG_OF_WORDS, planned[1:3], seed=1)
    fields = json.loads(json.dumps(card.to_dict(), allow_nan=False))
    assert set(fields) == {"evaluator", "definition", "axes", "seed", "perturbations_version"}
    assert [axis["name"] for axis in fields["axes"]] == ["robustness", "sensitivity"]
    assert fields["perturbations_version"] == VERSION
    assert card.axis(AxisName.RETRIEVAL) is None
