"""Cards of measures of similarity, on texts from files: five axes, never one number for all."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from judge.probe.axes import Card, Cards, Plan, card_of, oracle_card
from judge.probe.corpus import Clustering, Retrieval
from judge.probe.embedding import texts_asked
from judge.probe.material import Classes, Library, Material, read_material
from judge.probe.people import Alignment
from judge.probe.robustness import MIN_WORDS, Robustness, Sensitivity
from judge.probe.similarity import BAG_OF_WORDS, CLASSICAL, LENGTH_COUNTER, Measure, random_measure
from rating.errors import DataError

Progress = Callable[[int, int], None]
Embedding = Callable[[Sequence[str]], Measure]


def probe_similarity(
    files: Sequence[Path],
    *,
    measures: Sequence[str] = (),
    embed: Embedding | None = None,
    planted: bool = False,
    sample: int,
    seed: int,
    progress: Progress = lambda *_: None,
) -> Cards:
    """Ask measures of similarity all that the files allow.

    Parameters
    ----------
    measures : sequence of str
        Names, of which the beginning is enough; all classical ones by default.
    embed : callable, optional
        Takes every text that will be scored to a measure of theirs, which gets a card, too.
    planted : bool
        Add evaluators whose cards are known: an oracle, a bag of words, a counter of length, and
        lots.
    sample : int
        Texts to perturb, and texts to cluster, drawn at random where there are more; questions,
        too.

    Raises
    ------
    DataError
        If a file cannot be read or recognised, no axis can be measured, or a name is of no
        measure.
    """
    chosen = _chosen(measures)
    if sample < 2:
        raise DataError(f"--sample {sample}: a card needs two texts or more.")
    rng = np.random.default_rng(seed)
    plans = _plans(read_material(files), sample, rng)
    if not plans:
        raise DataError("The files hold no material for any axis.")
    if embed is not None:
        chosen = (*chosen, embed(texts_asked(plans)))
    cards = _cards((*chosen, *_planted(seed)) if planted else chosen, plans, seed, progress)
    if planted:
        cards = (oracle_card(plans, seed=seed), *cards)
    about = {"files": [file.name for file in files], "sample": sample, "seed": seed}
    return Cards(about | {"axes": [a.name.value for a in cards[0].axes]}, cards)


def _cards(
    measures: Sequence[Measure], plans: Sequence[Plan], seed: int, progress: Progress
) -> tuple[Card, ...]:
    cards = []
    for place, measure in enumerate(measures):
        progress(place, len(measures))
        cards.append(card_of(measure, plans, seed=seed))
    progress(len(measures), len(measures))
    return tuple(cards)


def _planted(seed: int) -> tuple[Measure, ...]:
    return (BAG_OF_WORDS, LENGTH_COUNTER, random_measure(seed))


def _chosen(names: Sequence[str]) -> tuple[Measure, ...]:
    chosen = []
    for name in names:
        alike = [one for one in CLASSICAL if one.name.lower().startswith(name.lower())]
        if len(alike) != 1:
            known = ", ".join(one.name for one in CLASSICAL)
            raise DataError(f"--measure {name!r} begins the names of {len(alike)} of {known}.")
        chosen += alike
    return tuple(chosen) or CLASSICAL


def _plans(material: Material, sample: int, rng: np.random.Generator) -> tuple[Plan, ...]:
    """Plan what the material allows, in the order of the axes."""
    plans: list[Plan] = []
    if material.rated:
        data = "; ".join(f"{one.name}, {len(one.texts):,} texts" for one in material.rated)
        plans.append(Alignment(material.rated, (), data))
    name, texts = material.long_texts(MIN_WORDS)
    if texts:
        drawn = tuple(texts[i] for i in _drawn(len(texts), sample, rng))
        data = _of(name, len(drawn), len(texts), "texts")
        plans.append(Robustness.plan(drawn, data, rng=rng))
        plans.append(Sensitivity.plan(drawn, data, rng=rng))
    if material.classes is not None:
        plans.append(_clustering(material.classes, sample, rng))
    if material.library is not None:
        plans.append(_retrieval(material.library, sample, rng))
    return tuple(plans)


def _clustering(classes: Classes, sample: int, rng: np.random.Generator) -> Plan:
    rows = _drawn(len(classes.texts), sample, rng)
    texts, labels = ([column[i] for i in rows] for column in (classes.texts, classes.labels))
    data = _of(classes.name, len(rows), len(classes.texts), "texts")
    return Clustering.plan(texts, labels, data)


def _retrieval(library: Library, sample: int, rng: np.random.Generator) -> Plan:
    rows = _drawn(len(library.questions), sample, rng)
    place = {row: i for i, row in enumerate(rows)}
    relevant = {(place[q], t): gain for (q, t), gain in library.relevant.items() if q in place}
    data = _of(library.name, len(rows), len(library.questions), "questions")
    questions = [library.questions[row] for row in rows]
    return Retrieval.plan(questions, library.texts, relevant, data, rng=rng)


def _drawn(n: int, sample: int, rng: np.random.Generator) -> list[int]:
    return sorted(rng.permutation(n)[:sample].tolist())


def _of(name: str, drawn: int, n: int, what: str) -> str:
    return f"{name}, {drawn:,} of {n:,} {what}" if drawn < n else f"{name}, {n:,} {what}"
