"""Planted duplicates are found, others are not, and freshness counts what is new."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.labels.material import ALIKE, BANDS, DAY_S, ROWS, Duplicates, duplicates, fresh, to_dict


def prompts(n: int, rng: np.random.Generator, words: int = 30) -> list[str]:
    """Texts of words that nobody shares much of."""
    vocabulary = np.array(["".join(rng.choice(list("abcdefghijklm"), 6)) for _ in range(3000)])
    return [" ".join(rng.choice(vocabulary, words)) for _ in range(n)]


def similarity(a: str, b: str) -> float:
    one, other = ({text[i : i + 5] for i in range(len(text) - 4)} for text in (a, b))
    return len(one & other) / len(one | other)


def test_planted_near_duplicates_are_found_and_nothing_else() -> None:
    rng = np.random.default_rng(1)
    base = prompts(600, rng)
    copies = [text.replace(text.split()[7], "xyzxyz", 1) for text in base[:200]]
    assert min(map(similarity, base, copies)) >= ALIKE
    group = duplicates([*base, *copies]).group
    assert (group[600:] == group[:200]).mean() >= 0.99
    assert len({*group[:600].tolist()}) == 600


def test_texts_that_are_not_alike_enough_are_apart() -> None:
    rng = np.random.default_rng(2)
    base = prompts(200, rng)
    half = [
        " ".join([*a.split()[:20], *b.split()[:10]]) for a, b in zip(base, base[::-1], strict=True)
    ]
    group = duplicates([*base, *half]).group
    assert (group[200:] == group[:200]).sum() == 0
    text = "abcdefghijklmnopqrstuvwxyz0123456789äöüßéèêñ"  # of 40 shingles 32 are 0.8, 31 are not
    assert [duplicates([text, text[:n]]).group[1] for n in (36, 35)] == [0, 1]


def test_a_pair_at_the_threshold_shares_a_band_nearly_always() -> None:
    assert 1 - (1 - ALIKE**ROWS) ** BANDS > 0.998


def test_case_and_spaces_do_not_count_and_short_prompts_are_compared_whole() -> None:
    result = duplicates(["Hi", "hi ", "ho", "", " ", "HI"])
    assert (result.group.tolist(), result.n_distinct) == ([0, 0, 1, 2, 2, 0], 3)
    assert result.repeated.tolist() == [False, True, False, False, True, True]
    assert result.largest(1) == [(0, 3)]


def test_no_prompts_are_no_groups() -> None:
    none = duplicates([])
    assert (len(none.group), none.n_distinct, none.largest(3)) == (0, 0, [])


@given(st.lists(st.text(max_size=50), max_size=8))
def test_any_texts_are_grouped_and_the_same_ones_together(texts: list[str]) -> None:
    group = duplicates([*texts, *texts]).group
    assert group[: len(texts)].tolist() == group[len(texts) :].tolist()


def test_many_copies_of_one_prompt_take_no_longer_than_many_prompts() -> None:
    """In a bucket each is compared with two others, not with all."""
    near = [
        f"Tell me all that you know about the old harbour of Lisbon, part {i}" for i in range(3000)
    ]
    assert len({*duplicates(near).group.tolist()}) == 1


def test_a_prompt_is_fresh_unless_something_a_day_older_is_like_it() -> None:
    groups = Duplicates(np.array([0, 1, 0, 2, 2, 1, 3]), 4)
    days = np.array([0.0, 0.5, 2.0, 2.0, 3.0, 1.0, np.nan])
    result = fresh(groups, days * DAY_S)
    assert result.n == 4  # of the first day nothing is older, and of one the time is not known
    assert result.rate == pytest.approx(2 / 4)  # two are like one that is a day older, or two


def test_the_summary_holds_the_most_frequent_prompts() -> None:
    texts = ["Hi", "hi", "What is a mill?", "hi", "what is a mill"]
    summary = to_dict(texts, duplicates(texts), None)
    repeated = summary.pop("repeated")
    largest = [{"prompt": "Hi", "n": 3}, {"prompt": "What is a mill?", "n": 2}]
    counts = {"prompts": 5, "distinct": 3, "groups": 2}
    assert summary == counts | {"fresh": None, "largest": largest}
    assert (repeated["share"], repeated["n"]) == (0.6, 5)
    assert repeated["lower"] < 0.6 < repeated["upper"]
