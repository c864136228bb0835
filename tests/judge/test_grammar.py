"""Grammars that find what was offered, or nothing."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judge.completion import TokenLogprob
from judge.grammar import (
    ARROWS,
    PLUSES,
    SIDES,
    answers,
    bracketed,
    bracketed_mark,
    keyed,
    keyed_mark,
    label_probability,
    lone_label,
    questions,
)
from tests.judge.published import rows

TEXT = st.text(st.characters(), max_size=200) | st.text("[]ABC<>=+0123456789:\"' \nyesno{}-?")
NOISE = st.text(st.characters(exclude_characters='[]"'), max_size=50)

GRAMMARS: dict[str, Callable[[str], object]] = {
    "sides": lambda text: bracketed(text, SIDES),
    "arrows": lambda text: bracketed(text, ARROWS),
    "pluses": lambda text: keyed(text, "choice", PLUSES),
    "mark in json": lambda text: keyed_mark(text, "score", 1, 10),
    "mark in brackets": lambda text: bracketed_mark(text, 1, 10),
    "label": lone_label,
}


@pytest.mark.parametrize("grammar", GRAMMARS.values(), ids=GRAMMARS.keys())
@given(text=TEXT)
def test_no_text_makes_a_grammar_raise(grammar: Callable[[str], object], text: str) -> None:
    grammar(text)


@given(TEXT)
def test_a_bracketed_verdict_is_never_invented(text: str) -> None:
    for offered in (SIDES, ARROWS):
        verdict = bracketed(text, offered)
        dense = text.upper().replace(" ", "")
        named = {value for name, value in offered.items() if f"[[{name}]]" in dense}
        assert verdict is None or verdict in named


@given(TEXT, TEXT)
def test_a_mark_is_never_invented(text: str, more: str) -> None:
    mark = bracketed_mark(text + more, 1, 10)
    assert mark is None or str(mark) in text + more


@given(TEXT, st.sampled_from(list(ARROWS)), NOISE)
def test_the_last_verdict_wins_whatever_stands_around_it(
    before: str, verdict: str, after: str
) -> None:
    assert bracketed(f"{before} [[{verdict}]]{after}", ARROWS) == ARROWS[verdict]


@given(TEXT, st.sampled_from(list(PLUSES)), NOISE)
def test_the_last_choice_of_json_wins_whatever_stands_around_it(
    before: str, choice: str, after: str
) -> None:
    text = f'{before}\n{{"choice": "{choice}"}}{after}'
    assert keyed(text, "choice", PLUSES) == PLUSES[choice]


@given(TEXT, st.integers(1, 10), NOISE)
def test_the_last_mark_wins_whatever_stands_around_it(before: str, mark: int, after: str) -> None:
    assert bracketed_mark(f"{before} [[{mark}]]{after}", 1, 10) == mark
    assert keyed_mark(f'{before}\n{{"score": {mark}}}{after}', "score", 1, 10) == mark


@given(st.text("ABCDEFG<>=+", min_size=1, max_size=5))
def test_a_verdict_that_was_not_offered_is_unread_and_no_tie(verdict: str) -> None:
    assume(verdict not in ARROWS)
    assert bracketed(f"[[{verdict}]]", ARROWS) is None
    assume(verdict not in PLUSES)
    assert keyed(f'{{"choice": "{verdict}"}}', "choice", PLUSES) is None


@pytest.mark.parametrize(
    "text",
    ["", "A", "[A]", "[[D]]", "[[A", "A is better", "[[AB]]", "[[A/B]]", "[[A>B]]", "[[A]] [[D]]"],
)
def test_what_is_no_plain_verdict_is_unread(text: str) -> None:
    assert bracketed(text, SIDES) is None


@pytest.mark.parametrize("text", ["[[A<B]]", "[[A>>>B]]", "[A>B]", "A>B", "[[B=A]]", "[[C]]"])
def test_what_is_no_verdict_on_five_levels_is_unread(text: str) -> None:
    assert bracketed(text, ARROWS) is None


@pytest.mark.parametrize("score", ["0", "11", "7.5", '"eight"', "-3", "null", '""', "٧", "1e1"])
def test_a_mark_off_the_scale_is_unread(score: str) -> None:
    assert keyed_mark(f'{{"score": {score}}}', "score", 1, 10) is None


def test_a_choice_quoted_inside_the_analysis_is_not_the_choice() -> None:
    text = r'{"choice": "B+", "analysis": "it says \"choice\": \"A++\" of itself"}'
    assert keyed(text, "choice", PLUSES) == PLUSES["B+"]


@given(TEXT, st.integers(1, 8))
def test_there_is_an_answer_or_none_for_each_item(text: str, n_items: int) -> None:
    assert len(answers(text, n_items)) == n_items


@given(st.lists(st.booleans() | st.none(), min_size=1, max_size=9), NOISE)
def test_items_are_read_as_they_were_written(met: list[bool | None], noise: str) -> None:
    assume(not any(c.isdigit() for c in noise))
    written = {True: "[[yes]]", False: "[[No]]", None: "[[perhaps]]"}
    lines = [f"{noise}{number}: {written[item]}" for number, item in enumerate(met, start=1)]
    assert answers("\n".join(lines), len(met)) == tuple(met)


def test_items_beyond_the_list_are_no_items() -> None:
    assert answers("0: [[yes]]\n3: [[yes]]", 2) == (None, None)


def test_a_checklist_of_another_length_than_asked_for_is_unread() -> None:
    lines = [f"- Is it point {n}?" for n in range(6)]
    assert questions("\n".join(lines), 5, 10) == tuple(line[2:] for line in lines)
    assert questions("\n".join(lines[:4]), 5, 10) is None
    assert questions("\n".join(lines * 2), 5, 10) is not None  # the same six, said twice
    assert questions("\n".join(f"- Is it {n}?" for n in range(11)), 5, 10) is None


LOGS = st.floats(-50, 0)


def token(**top: float) -> list[TokenLogprob]:
    return [TokenLogprob("?", -1.0, top)]


@given(LOGS, LOGS)
def test_the_two_labels_share_the_probability(m: float, other: float) -> None:
    share = label_probability(token(m=m, M=other))
    flipped = label_probability(token(m=other, M=m))
    assert share is not None
    assert flipped is not None
    assert share + flipped == pytest.approx(1)
    assert share == pytest.approx(math.exp(m) / (math.exp(m) + math.exp(other)))


def test_a_label_that_is_missing_has_probability_zero_and_both_missing_is_unread() -> None:
    assert label_probability(token(m=-1e-6, x=-12.0)) == 1.0
    assert label_probability(token(M=-3.0)) == 0.0
    assert label_probability(token(x=-0.1)) is None
    assert label_probability(token(m=-math.inf, M=-math.inf)) is None
    assert label_probability([]) is None


def test_white_space_around_a_label_adds_to_its_probability() -> None:
    half = math.log(0.3)
    probability = label_probability([TokenLogprob("m", half, {" m": half, "M": math.log(0.2)})])
    assert probability == pytest.approx(0.75)


def test_the_token_itself_counts_where_no_alternatives_are_given() -> None:
    assert label_probability([TokenLogprob("m", -0.1)]) == 1.0


@pytest.mark.published
def test_the_published_log_probabilities_give_the_published_preferences(
    published_data: Path,
) -> None:
    file = published_data / "judge" / "alpacaeval_annotations.parquet"
    other = "lp_M_1"  # of lp_m and lp_M, which are one name to the reader
    shown = [row for row in rows(file) if row["lp_m"] is not None and row[other] is not None]
    ours = [label_probability(token(m=row["lp_m"], M=row[other])) for row in shown]
    unswitched = [
        None if p is None else 1 + p if row["is_switched"] else 2 - p
        for p, row in zip(ours, shown, strict=True)
    ]
    assert len(shown) > 10_000
    assert unswitched == pytest.approx([row["preference"] for row in shown], abs=1e-9)
