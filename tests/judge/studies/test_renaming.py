"""No figure of a study depends on the names of models, or on which side of a row they stand."""

import csv
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.studies.newcomer import rate_newcomer
from judge.studies.one_judge import study_judges
from judge.studies.options import NewcomerOptions, StudyOptions
from judge.studies.reliability import agreement
from tests.judge.studies.labels import items_of, labels_of

MODELS = ("ant", "bee", "cow", "dog", "eel")
SIDES = {1: "model_a", 0: "tie", -1: "model_b"}
OTHER = {"model_a": "model_b", "model_b": "model_a", "ab": "ba", "ba": "ab"}
Row = dict[str, Any]


def drawn(rng: np.random.Generator) -> tuple[list[Row], list[Row]]:
    """Draw votes on 40 items, and verdicts in both orders, some repeated; eel has few votes."""
    votes, verdicts = [], []
    for k in range(80):
        a, b = rng.choice(4 + (k % 2), 2, replace=False).tolist()
        better = 1 if rng.normal(a - b, 3) > 0 else -1
        row: Row = {"item_id": f"i{k}", "prompt_id": f"p{k // 2}", "category": "xy"[k % 2]}
        row |= {"model_a": a, "model_b": b}
        for who in rng.choice(6, 3, replace=False):
            side = int(rng.choice([better, better, -better, 0]))
            votes.append(row | {"winner": SIDES[side], "voter": f"v{who}"})
        row |= {f"response_{side}": "word " * int(rng.integers(5, 50)) for side in "ab"}
        for order in ("ab", "ba", "ab"):
            side = int(rng.choice([better, better, better, -better, 0]))
            row |= {"preference": round(0.5 + side * int(rng.integers(1, 5)) / 10, 1)}
            verdicts.append(row | {"winner": SIDES[side], "judge": "owl", "order": order})
    return votes, verdicts


def turned(row: Row) -> Row:
    """Exchange the sides of a row."""
    other = {name: OTHER.get(str(value), value) for name, value in row.items()}
    sides = {
        f"{name}_{x}": row.get(f"{name}_{y}")
        for name in ("model", "response")
        for x, y in ("ab", "ba")
    }
    other |= {name: value for name, value in sides.items() if name in row}
    return other | ({"preference": round(1 - row["preference"], 1)} if "order" in row else {})


def figures(votes: list[Row], verdicts: list[Row], places: Sequence[int]) -> dict[str, float]:
    """Study files in which each model's name begins with its place, and remove that again."""
    names = {side: side for side in SIDES.values()}
    names |= {str(model): f"{place}{MODELS[model]}" for model, place in enumerate(places)}
    with tempfile.TemporaryDirectory() as folder:
        files = str(Path(folder, "votes.csv")), str(Path(folder, "verdicts.csv"))
        for file, rows in zip(files, (votes, verdicts), strict=True):
            with Path(file).open("w", encoding="utf-8", newline="") as text:
                writer = csv.DictWriter(text, [*rows[0]])
                writer.writeheader()
                writer.writerows(
                    row | {side: names[str(row[side])] for side in ("model_a", "model_b")}
                    for row in rows
                )
        whole = study_judges(*files, StudyOptions(rounds=100, by="category")).to_dict()
        eel = rate_newcomer(*files, names["4"], NewcomerOptions(calibration="isotonic"))
    plain = json.dumps([whole, eel.to_dict()])
    return dict(numbers(json.loads(re.sub(rf"\d({'|'.join(MODELS)})", r"\1", plain))))


def numbers(plain: object, where: str = "") -> Iterator[tuple[str, float]]:
    """Every number, by where it stands: a row of a list by its model, where it has one."""
    if isinstance(plain, dict):
        for key, one in plain.items():
            yield from numbers(one, f"{where}/{key}")
    elif isinstance(plain, list):
        for place, one in enumerate(plain):
            name = one.get("model", place) if isinstance(one, dict) else place
            yield from numbers(one, f"{where}/{name}")
    elif isinstance(plain, int | float):
        yield where, plain


@settings(max_examples=3, deadline=None)
@given(st.permutations(range(5)), st.integers(0, 99))
def test_names_of_models_and_sides_of_rows_change_no_figure(places: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    votes, verdicts = drawn(rng)
    first = figures(votes, verdicts, range(5))
    verdicts = [turned(row) if rng.random() < 0.5 else row for row in verdicts]
    renamed = figures(votes, verdicts, places)
    assert renamed == pytest.approx(first, rel=1e-9, abs=1e-12)
    votes = [turned(row) if rng.random() < 0.5 else row for row in votes]
    seen_left = re.compile("/bias|/position/people")  # a voter saw side A on the left
    again = figures(votes, verdicts, places)
    assert {name for name in first if not seen_left.search(name)} <= {
        name for name in first if again[name] == pytest.approx(first[name], rel=1e-9, abs=1e-12)
    }


def test_either_model_of_a_pair_is_by_chance_preferred_as_often() -> None:
    """Votes of items: A A, A B, tie tie, tie B; verdicts: A, B, tie, A; items turned round.

    Kappa: 5 pairs of 8 agree, ties are 1/4 and 3/8, so chance is 3/32 + (3/4)(5/8)/2 = 21/64. Of
    people 2 pairs of 4 agree, and either side has 5/16: chance is 9/64 + 2 (5/16)^2 = 86/256.
    Alpha: 1 - 4 / ((64 - 9 - 2 * 2.5^2) / 7). AC1: chance is (15/64 + 2 (5/16)(11/16)) / 2.
    """
    for turn in product([1, -1], repeat=4):
        given_ = [(0, 1), (0, 1), (1, 1), (1, -1), (2, 0), (2, 0), (3, 0), (3, -1)]
        people = labels_of([(item, turn[item] * label) for item, label in given_])
        judge = labels_of([(k, turn[k] * label) for k, label in enumerate((1, -1, 0, 1))])
        one = agreement(items_of(4), people, judge, StudyOptions(rounds=100))
        values = [one.kappa.value, one.people_kappa.value, one.alpha.value, one.ac1.value]
        assert values == pytest.approx([19 / 43, 42 / 170, 29 / 85, 43 / 171])
