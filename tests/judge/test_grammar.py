"""Grammars that find what was offered, or nothing."""

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judge.case import FailureClass, Reply, TokenLogprob
from judge.grammar import (
    ARROWS,
    PLUSES,
    SIDES,
    Rating,
    answers,
    bracketed,
    bracketed_mark,
    keyed,
    keyed_mark,
    label_probability,
    lone_label,
    questions,
    regular,
)
from judge.methods import method
from tests.judge.published import rows
from tests.judge.scripted import case

TEXT = (
    st.text(st.characters(), max_size=200)
    | st.text("[]ABC<>=+0123456789:\"' \nyesno{}-?")
    | st.text("[]［］【】ABＡ＞>70７/.*\\ \n")
)
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
        dense = re.sub(r"[\s:*_`'\"“”‘’\\]", "", regular(text).upper())
        named = {value for name, value in offered.items() if f"[{name}]" in dense}
        assert verdict is None or verdict in named


@given(TEXT, TEXT)
def test_a_mark_is_never_invented(text: str, more: str) -> None:
    mark = bracketed_mark(text + more, 1, 10)
    assert mark is None or str(mark) in regular(text + more)


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
    [
        "", "A", "[[D]]", "[[A", "A is better", "[[AB]]", "[[A/B]]", "[[A>B]]", "[[A]] [[D]]",
        "[[A]] or, all in all, [[Tie]]",
        "[[B]], no: [[Verdict: A and B]]",
        "[[A]] [[B is better]]",
        "[[A]]\nFinal verdict: [[I cannot decide]]",
        "[[A]]\n\n**[[unclear]]**",
        "At first [[B]], and then [[\u0410]].",  # Cyrillic
    ],
)  # fmt: skip
def test_what_is_no_plain_verdict_is_unread(text: str) -> None:
    assert bracketed(text, SIDES) is None


@pytest.mark.parametrize("text", ["[[A<B]]", "[[A>>>B]]", "[A<B]", "A>B", "[[B=A]]", "[[C]]"])
def test_what_is_no_verdict_on_five_levels_is_unread(text: str) -> None:
    assert bracketed(text, ARROWS) is None


@pytest.mark.parametrize("score", ["0", "11", "7.5", '"eight"', "-3", "null", '""', "٧", "1e1"])
def test_a_mark_off_the_scale_is_unread(score: str) -> None:
    assert keyed_mark(f'{{"score": {score}}}', "score", 1, 10) is None


DRESSED = [
    "[[ A ]]", "[[a]]", "**[[A]]**", "***[[A]]***", "`[[A]]`", "\\boxed{[[A]]}", "[[\nA\n]]",
    "[[**A**]]", "[[`A`]]", "[['A']]", "[[“A”]]", "\\[\\[A\\]\\]", "\\[[A]\\]", "［［A］］",
    "【【A】】", "［［Ａ］］", "[[Assistant A]]", "[[Answer A]]", "[[Response A]]",
    "[[Model A]]", "[[Verdict: A]]", "[[Final verdict: Assistant A]]", "判断：【【A】】。",
    "[A]", "**[A]**", "Better: [A]", "Final Verdict: **[A]**.", "My verdict is [A]", "【A】",
    "The better answer is [A].", "Verdict: [A]\n\nIt says more.", "### Verdict: [A]",
    "Assistant [B] leaves half of it out.\n\n[A]", "[[\u00a0A\u202f]]", "[[\u200bA\ufeff]]",
    "[[Verdict:\u00a0A]]", "[[A]], as [[Flint]] says.", "[[A]]\n[[1]]",
]  # fmt: skip


@pytest.mark.parametrize("text", DRESSED)
def test_a_verdict_is_parsed_in_whatever_dress(text: str) -> None:
    assert bracketed(text, SIDES) == SIDES["A"]


@pytest.mark.parametrize(
    "text",
    [
        "[[A > B]]", "[[A&gt;B]]", "[[A\\>B]]", "[[A＞B]]", "[[**A>B**]]", "【【A>B】】",
        "[A>B]", "[A > B]", "My final verdict is: [A>B]", "\\[\\[A>B\\]\\]", "[[Verdict: A>B]]",
    ],
)  # fmt: skip
def test_a_verdict_of_five_levels_is_parsed_in_whatever_dress(text: str) -> None:
    assert bracketed(text, ARROWS) == ARROWS["A>B"]


def test_a_sign_for_much_greater_is_two_of_them() -> None:
    assert bracketed("[[A≫B]]", ARROWS) == bracketed("[[B≪A]]", {"B<<A": ARROWS["A>>B"]})


@pytest.mark.parametrize(
    "text",
    [
        "Assistant [A] is better.", "I prefer [A]", "I prefer [A] to [B]", "not [A]",
        "Worse: [B]", "Loser: [B]", "The worse answer is [B]", "[A]\n\n[B]",
        "Verdict: [A]\n[B]",
        "[A]\nIt is kind.\n\n[B]\nIt is wrong.", "Verdict: [A]\n\nAssistant [B] is worse.",
        "[A](https://a.example)", "[A]: https://a.example", "x = names[A]", "> [A]", "\\[A\\]",
        "[a]", "[x]", "[ A]", "[[A] ]", "[ [A]]", "[I]", "[A, B]", "[AB]",
    ],
)  # fmt: skip
def test_single_brackets_of_which_there_is_doubt_are_no_verdict(text: str) -> None:
    assert bracketed(text, SIDES) is None


def test_single_brackets_count_only_without_double_ones() -> None:
    assert bracketed("[[A]]\n\n[B]", SIDES) == SIDES["A"]
    assert bracketed("[[D]]\n\nVerdict: [B]", SIDES) is None
    assert bracketed_mark("[[7]]\nRating: [3]", 1, 10) == 7
    assert bracketed_mark("[[11]]\nRating: [3]", 1, 10) is None


@given(
    st.lists(
        st.sampled_from(
            ["[A]", "[B]", "[C]", "【A】", "Verdict: ", "is ", "\n", " x ", "*", "[1]"]
        ),
        max_size=12,
    ).map("".join)
)
def test_of_two_verdicts_in_single_brackets_never_the_first_is_parsed(text: str) -> None:
    named = re.findall(r"\[([ABC])\]", regular(text))
    verdict = bracketed(text, SIDES)
    assert verdict is None or verdict == SIDES[named[-1]]


MARKS = {
    **dict.fromkeys(("[[7]]", "[[ 7 ]]", "**[[7]]**", "[[7.0]]", "[[7/10]]", "[[7 / 10]]"), 7),
    **dict.fromkeys(("[[7 out of 10]]", "[[7 of 10]]", "[[Rating: 7]]", "[[rating: 7/10]]"), 7),
    **dict.fromkeys(("[[Score: 7/10]]", "［［7］］", "【【7】】", "[[７]]", "\\[\\[7\\]\\]"), 7),
    **dict.fromkeys(
        ("Rating: [7]", "評価：［［7］］", "Rating: **[7]**", "[7]", "Score = [7/10]"), 7
    ),
    **dict.fromkeys(("Following [[rating]]: [[7]]", "See [1].\n\nRating: [7]"), 7),
    **dict.fromkeys(("[[0]]", "[[11]]", "[[7/5]]", "[[7/100]]", "[[7,5]]", "[[-7]]", "[[7%]]")),
    **dict.fromkeys(("[[7 - 8]]", "[[rating]] 7", "See [7].", "so\n[7]\nor so", "\\[7\\]", "7")),
    **dict.fromkeys(("Rating: [7]\nSources: [1]", "Rating: [7]\nRating: [8]", "[[8]] [[7/5]]")),
}


@pytest.mark.parametrize(("text", "mark"), MARKS.items())
def test_a_mark_is_parsed_in_whatever_dress_if_it_is_of_the_scale(
    text: str, mark: int | None
) -> None:
    assert bracketed_mark(text, 1, 10) == mark


@pytest.mark.parametrize("text", ["[[7.5]]", "Rating: [7.5]", "[[7.5/10]]", "[[Rating: 7.5]]"])
def test_a_fraction_counts_where_the_method_has_fractions(text: str) -> None:
    assert bracketed_mark(text, 1, 10) is None
    assert bracketed_mark(text, 1, 10, fractions=True) == 7.5
    assert bracketed_mark("[[10.5]]", 1, 10, fractions=True) is None


def test_fractions_are_marks_of_mt_bench_as_in_fastchat_and_of_no_other_method() -> None:
    """FastChat reads ``\\[\\[(\\d+\\.?\\d*)\\]\\]``: fastchat/llm_judge/common.py, 2023."""
    shown, reply = case(b=None), Reply(text="Rating: [[7.5]]", finish_reason="stop")
    assert method("mt_bench").read(shown, reply) == Rating(7.5)
    assert method("rubric", rubric="Be kind.").read(shown, reply) is FailureClass.UNPARSED


REPORTS: dict[str, list[tuple[str, float | None]]] = {
    "https://github.com/lm-sys/FastChat/blob/main/fastchat/llm_judge/common.py": [
        ("Rating: [[7.5]]", 7.5),
        ("Rating: [7.5]", 7.5),
        ("I would say [7.5].", None),  # upstream takes it: a number in brackets may be a footnote
    ],
    "https://github.com/sbintuitions/flexeval/pull/237": [
        ("All in all, the score is [[7]]. So this answer is scored 7/10", 7),
        ("So this answer is scored 7/10", None),
    ],
    "https://github.com/IBM/unitxt/pull/1960": [("[[85]]", None), ("Rating: [[85/100]]", None)],
    "https://github.com/IBM/unitxt/pull/1839": [("Rating: [[ 7 ]]", 7), ("[[7/10]]", 7)],
}


@pytest.mark.parametrize(
    ("text", "mark"), [pair for pairs in REPORTS.values() for pair in pairs], ids=str
)
def test_marks_of_reports_on_other_tools_are_parsed_or_are_none(
    text: str, mark: float | None
) -> None:
    assert bracketed_mark(text, 1, 10, fractions=True) == mark


@pytest.mark.parametrize(
    ("score", "mark"),
    [
        ("7", 7), ('"7"', 7), ('"7/10"', 7), ('"7 / 10"', 7), ("7.0", 7), ('"7.0"', 7),
        ('"７"', 7), ('"**7**"', 7), ('"7 out of 10"', 7), ('"7/5"', None), ('"7.5"', None),
        ('"70/100"', None), ('"7/10/10"', None), ('"10/7"', None), ('"7-8"', None),
    ],
)  # fmt: skip
def test_a_mark_of_json_is_parsed_if_it_is_of_the_scale(score: str, mark: int | None) -> None:
    assert keyed_mark(f'{{"strengths": "a", "score": {score}}}', "score", 1, 10) == mark


@pytest.mark.parametrize(
    "text",
    ["1: [[yes]]", "1) **[[Yes]]**", "**1**: [[ yes ]]", "１：【【yes】】", "1: \\[\\[yes\\]\\]"],
)
def test_an_item_is_read_in_whatever_dress(text: str) -> None:
    assert answers(text, 1) == (True,)


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
    lines = [f"- Is it point {n}?" for n in range(10)]
    assert questions("\n".join(lines), 5, 10) == tuple(line[2:] for line in lines)
    assert questions("\n".join(lines[:4]), 5, 10) is None
    assert questions("\n".join(lines * 2), 5, 10) is not None  # the same ten, said twice
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
    assert label_probability([TokenLogprob("m", -0.1), TokenLogprob("M", -0.1)]) == 1.0


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
