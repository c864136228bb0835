"""Ratings drawn from people of known habits: what they like, and which side they lean to."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from judge.studies.estimates import Components
from judge.studies.rows import Items, Labels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Crowd:
    """People and items to draw; standard deviations and ``lean`` in logits.

    An item suits side A by ``mean``, by ``prompt``, which ``of_prompt`` items share, and by
    ``item``; a rater likes side A by ``rater`` and each item by ``taste`` beyond. They ``lean`` to
    the left, each by ``leans`` more or less. Ties come at ``ties``, whatever the item.
    """

    mean: float = 0.0
    item: float = 1.0
    rater: float = 0.0
    taste: float = 0.0
    lean: float = 0.0
    leans: float = 0.0
    ties: float = 0.0
    prompt: float = 0.0
    of_prompt: int = 1

    def draw(
        self, rng: np.random.Generator, n_items: int, n_raters: int, each: int, repeats: int = 0
    ) -> tuple[Items, Labels, tuple[Labels, Labels]]:
        """Draw ``each`` ratings an item, spread evenly; so many repeats of each rater, swapped."""
        item = np.repeat(np.arange(n_items), each)
        turn = np.arange(len(item)) % n_raters
        rater = rng.permutation(n_raters)[turn].astype(np.int64)
        prompt = np.arange(n_items) // self.of_prompt
        suits = self.mean + rng.normal(0, self.item, n_items)[item]
        if self.prompt:
            suits += rng.normal(0, self.prompt, n_items)[prompt[item]]
        suits += rng.normal(0, self.rater, n_raters)[rater] + rng.normal(0, self.taste, len(item))
        leans = (self.lean + rng.normal(0, self.leans, n_raters))[rater]
        first = rng.choice([-1, 1], len(item))
        labels = self._labels(rng, item, rater, first, suits + first * leans)
        again = (
            np.concatenate(
                [
                    rng.choice(np.flatnonzero(rater == r), repeats, replace=False)
                    for r in range(n_raters)
                ]
            )
            if repeats
            else np.zeros(0, dtype=np.int64)
        )
        second = self._labels(
            rng, item[again], rater[again], -first[again], (suits - first * leans)[again]
        )
        items = Items(("x", "y"), np.tile([0, 1], (n_items, 1)), prompt)
        return items, labels, (labels.only(again), second)

    def _labels(
        self, rng: np.random.Generator, item: Ints, rater: Ints, first: Ints, gap: Floats
    ) -> Labels:
        n = len(item)
        won = np.where(rng.random(n) < 1 / (1 + np.exp(-gap)), 1, -1)
        label = np.where(rng.random(n) < self.ties, 0, won).astype(np.int8)
        return Labels(item, rater, label, first.astype(np.int8), np.full(n, np.nan))

    @cached_property
    def truth(self) -> "Truth":
        """What endless ratings would say, by a million draws of each part."""
        rng, n = np.random.default_rng(99), 1_000_000
        item, rater, taste, leans = (
            rng.normal(0, sd, (2, n)) for sd in (self.item, self.rater, self.taste, self.leans)
        )

        def scores(i: int, r: int, t: int, side: int) -> Floats:
            gap = self.mean + item[i] + rater[r] + taste[t] + side * (self.lean + leans[r])
            return np.asarray((1 - self.ties) / (1 + np.exp(-gap)) + self.ties / 2)

        side = rng.choice([-1, 1], (2, n))
        p = scores(0, 0, 0, side[0])
        mean = float(scores(0, 0, 0, 1).mean() + scores(0, 0, 0, -1).mean()) / 2
        total = mean - self.ties / 4 - mean**2
        same_item = float((p * scores(0, 1, 1, side[1])).mean()) - mean**2
        same_rater = float((p * scores(1, 0, 1, side[1])).mean()) - mean**2
        both = float((p * scores(0, 0, 0, -side[0])).mean()) - mean**2
        won, lost = scores(0, 0, 0, 1) - self.ties / 2, scores(0, 0, 0, -1) - self.ties / 2
        alike = won * lost + (1 - self.ties - won) * (1 - self.ties - lost) + self.ties**2
        left = float((won + 1 - self.ties - lost).mean()) / 2 / (1 - self.ties)
        same_rater = same_rater if self.rater or self.leans else 0.0
        same_item = same_item if self.item else 0.0
        rest = total - same_item - same_rater
        parts = Components(same_item, same_rater, rest, total - both)
        return Truth(mean, parts, float(alike.mean()), left)


@dataclass(frozen=True)
class Truth:
    """The share of side A, the parts of variance, agreement with oneself, and the left's share."""

    share: float
    parts: Components
    retest: float
    left: float


CHOICES = {1: "model_a", 0: "tie", -1: "model_b"}


def exported(
    crowd: Crowd,
    rng: np.random.Generator,
    design: tuple[int, int, int],
    *,
    repeats: int = 0,
    gold: int = 0,
    right: float = 0.9,
) -> list[dict[str, object]]:
    """Write what `arena study export` would of such a study; gold is answered right so often."""
    n_items, n_raters, each = design
    _, labels, (_, again) = crowd.draw(rng, n_items, n_raters, each, repeats)
    rows = [*_rows(labels, 0, rng), *_rows(again, 1, rng)]
    for number in range(gold):
        for rater in range(n_raters):
            is_right, side = rng.random() < right, rng.choice([-1, 1])
            rows.append(
                _row(f"g{number}", rater, side, 1 if is_right else -1, rng)
                | {"kind": "gold", "gold": "model_a"}
            )
    return rows


def _rows(labels: Labels, repeat: int, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    for item, rater, label, first in zip(
        labels.item, labels.rater, labels.label, labels.first, strict=True
    ):
        yield _row(f"i{item:03}", rater, first, label, rng) | {"repeat": repeat}


def _row(
    item: str, rater: int, first: int, label: int, rng: np.random.Generator
) -> dict[str, object]:
    return {
        "study": "pilot",
        "item": item,
        "kind": "item",
        "rater": f"r{rater + 1:02}",
        "prompt_id": item,
        "model_a": "owl",
        "model_b": "crow",
        "sides": "ab" if first == 1 else "ba",
        "choice": CHOICES[int(label)],
        "confidence": int(rng.integers(1, 4)),
        "seconds": round(float(rng.lognormal(3, 0.5)), 1),
        "repeat": 0,
        "gold": None,
    }


def write_csv(rows: Sequence[Mapping[str, object]], path: Path) -> None:
    """Write rows as a file, nothing where there is None."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
