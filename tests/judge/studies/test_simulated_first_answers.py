"""How often the first answer is right: studies of planted judges."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import get_args

import numpy as np
import pytest

from judge.studies.gates import PASS, Verdict
from judge.studies.options import Raters, StudyOptions
from tests.judge.studies.planted import Kind, Planted
from tests.simulation import Share

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]

STUDIES = 400


@dataclass(frozen=True, slots=True)
class Answers:
    """Shares of studies: by verdict; and the annotators' test alone, of the judge and a coin."""

    verdicts: dict[Verdict, Share]
    passed: Share
    coin_passed: Share


@cache
def answers(kind: Kind, right: float, n_prompts: int, n_people: int, raters: Raters) -> Answers:
    verdicts: Counter[Verdict] = Counter()
    passed = []
    for seed in range(STUDIES):
        planted = Planted(kind, right, n_prompts, n_people, seed=seed)
        studied = planted.judged(StudyOptions(rounds=100, raters=raters))
        verdicts[studied.first_answer.verdict] += 1
        test = studied.evidence.alternative
        assert test is not None
        passed.append((test.winning_rate >= PASS, test.coin >= PASS))
    text = np.repeat([*verdicts], [*verdicts.values()])
    own, coin = np.array(passed, dtype=np.float64).T
    shares = {name: Share.of((text == name).astype(np.float64)) for name in get_args(Verdict)}
    return Answers(shares, Share.of(own), Share.of(coin))


@pytest.mark.parametrize(
    ("kind", "right", "n_prompts", "n_people", "raters", "low", "high"),
    [
        ("coin", 0.65, 300, 5, "expert", 0, 0.005), ("coin", 0.65, 300, 5, "crowd", 0, 0.005),
        ("coin", 0.7, 300, 5, "expert", 0, 0.005), ("longest", 0.8, 300, 5, "expert", 0, 0.005),
        ("person", 0.8, 300, 5, "crowd", 0.2, 0.6),
        ("person", 0.8, 1000, 5, "crowd", 0.65, 0.95),
        ("person", 0.8, 1000, 40, "crowd", 0, 0.1), ("perfect", 0.8, 300, 5, "crowd", 0.9, 1),
    ],
)  # fmt: skip
def test_a_judge_is_taken_for_a_person_where_it_is_as_good(
    kind: Kind,
    right: float,
    n_prompts: int,
    n_people: int,
    raters: Raters,
    low: float,
    high: float,
    record_property: Record,
) -> None:
    counted = answers(kind, right, n_prompts, n_people, raters)
    row: dict[str, object] = {
        "judge": kind,
        "people right": right,
        "prompts": n_prompts,
        "people": n_people,
        "raters": raters,
    }
    row |= {name: str(share) for name, share in counted.verdicts.items()}
    row |= {"passes": str(counted.passed), "a coin passes": str(counted.coin_passed)}
    record_property(f"first answers, {STUDIES} studies a row", row)
    assert low <= counted.verdicts["yes"].mean <= high


@pytest.mark.parametrize("right", [0.65, 0.7])
def test_the_annotators_test_alone_would_take_a_coin_for_an_expert(right: float) -> None:
    assert answers("coin", right, 300, 5, "expert").passed.mean > 0.8
