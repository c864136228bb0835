"""The reasoning in a reply is separated from its answer, however both are cut into pieces."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judge.case import TokenLogprob
from judge.replies import Part, Splitter, answer_tokens, split

CASES = tomllib.loads(Path(__file__).with_name("thoughts.toml").read_text(encoding="utf-8"))
MARKED = [
    (one["source"], one["text"], one["thoughts"]) for one in CASES["reply"] if "source" in one
]
"""Where it is described, a reply whose answer is "Four.", and its reasoning."""
ANSWERED = [(one["text"], one["answer"], one["thoughts"]) for one in CASES["reply"]]
AT_START = ("reason", "reasoning", "reflection")
ANSWERED += [(f"<{n}>a</{n}>So <{n}>b</{n}>.", f"So <{n}>b</{n}>.", "a") for n in AT_START]
CUT = [(one["text"], one["answer"]) for one in CASES["cut"]]
PLAIN = CASES["plain"]


@pytest.mark.parametrize(("text", "answer", "thoughts"), ANSWERED)
def test_what_is_between_marks_is_no_part_of_the_answer(
    text: str, answer: str, thoughts: str
) -> None:
    assert split(text) == (answer, thoughts)


@pytest.mark.parametrize(("text", "answer"), CUT)
def test_thoughts_that_are_cut_are_no_answer(text: str, answer: str) -> None:
    assert split(text, is_cut=True)[0] == answer


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_that_only_writes_of_marks_stays_as_it_is(text: str) -> None:
    assert split(text) == (text, "")


@pytest.mark.parametrize("end", CASES["ends"])
def test_tokens_that_end_a_reply_are_no_part_of_it(end: str) -> None:
    assert split(f"Four.{end}") == ("Four.", end)
    assert split(f"<think>Hm.</think>Four.{end}") == ("Four.", f"Hm.{end}")
    assert split(f"```\nx\n```{end}") == ("```\nx\n```", end)
    assert split(f"It ends with `{end.strip()}`.") == (f"It ends with `{end.strip()}`.", "")
    assert split(f"{end} is a token.") == (f"{end} is a token.", "")


def test_a_closing_mark_in_code_that_has_no_end_ends_thoughts() -> None:
    text = "I try it:\n```python\nx = 1\nNo.</think>\n\nFour."
    assert split(text) == ("Four.", "I try it:\n```python\nx = 1\nNo.</think>\n\nFour.")
    assert split(text, is_cut=True) == (text, "")
    assert split("```x``` is it.</think>Four.") == ("Four.", "```x``` is it.")
    assert split("It`s four.</think>Four.") == ("Four.", "It`s four.")


def read(pieces: list[str], *, is_cut: bool, holds: bool = False) -> tuple[str, str, bool]:
    """Accumulate a reply as a reader does; tell also whether some of its answer was taken back."""
    splitter = Splitter(holds=holds)
    answer = thoughts = ""
    was_shown = False
    for parts in (*map(splitter.add, pieces), splitter.end(is_cut=is_cut)):
        for kind, text in parts:
            match kind:
                case Part.ANSWER:
                    answer += text
                case Part.THOUGHT:
                    thoughts += text
                case Part.RETRACTED:
                    was_shown = was_shown or bool(answer)
                    answer, thoughts = "", thoughts + answer
    return answer, thoughts, was_shown


WORDS = st.sampled_from(
    [
        "<think>", "</think>", "<|channel|>", "<|message|>", "<|start|>", "<|end|>", "final",
        "analysis", "assistant", "assistantfinal", "[THINK]", "[/THINK]", "</s>", "<s>",
        "<|im_end|>", "`", "``", "```", "~~~", "\n", " ", "<", "|>", "[", "Four", "é", "X",
        "<|channel>thought", "<channel|>", "Here is my thought process:", "<reason>",
        "</reason>", "- ", "</seed:think>", "◁think▷", "◁/think▷", "Here is my response:",
    ]
)  # fmt: skip
REPLIES = st.lists(WORDS, max_size=12).map("".join)


@given(REPLIES, st.data(), st.booleans(), st.booleans())
def test_however_a_reply_is_cut_it_has_the_same_answer_and_thoughts(
    text: str, data: st.DataObject, is_cut: bool, holds: bool
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    bounds = zip([0, *cuts], [*cuts, len(text)], strict=True)
    pieces = [text[begin:end] for begin, end in bounds]
    whole = read([text], is_cut=is_cut, holds=holds)
    assert read(pieces, is_cut=is_cut, holds=holds)[:2] == whole[:2]
    assert read(list(text), is_cut=is_cut, holds=holds)[:2] == whole[:2]
    if not holds:
        assert whole[:2] == split(text, is_cut=is_cut)


PAIRS = st.sampled_from(
    [
        ("<think>", "</think>"), ("<thought>", "</thought>"), ("<seed:think>", "</seed:think>"),
        ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
        ("<|channel>thought\n", "<channel|>"),
    ]
)  # fmt: skip


@given(st.text(max_size=20), PAIRS, st.text(st.characters(exclude_characters="<[◁")), st.data())
@example("So ", ("<think>", "</think>"), "*", None)
def test_no_text_between_marks_reaches_the_answer(
    before: str, marks: tuple[str, str], after: str, data: st.DataObject | None
) -> None:
    before = before.replace("`", "'").replace("~", "-")  # which would make it code
    text = f"{before}{marks[0]}I am SECRET-1, so{marks[1]}{after}"
    size = 3 if data is None else data.draw(st.integers(1, len(text)))
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    answer, thoughts, _ = read(pieces, is_cut=False)
    assert "SECRET" not in answer
    assert "I am SECRET-1, so" in thoughts
    assert answer.rstrip().endswith(after.strip())


@given(st.text())
def test_nothing_of_a_reply_without_marks_is_changed(text: str) -> None:
    if not any(c in text for c in "<[◁"):
        assert split(text) == (text, "")


def test_of_a_model_that_closes_what_it_did_not_open_nothing_is_given_before_that() -> None:
    pieces = ["I am R1,", " so.\n</th", "ink>\n\nFo", "ur."]
    assert read(pieces, is_cut=False) == ("Four.", "I am R1, so.\n\n\n", True)
    assert read(pieces, is_cut=False, holds=True) == ("Four.", "I am R1, so.\n\n\n", False)
    assert read(["Four."], is_cut=False, holds=True) == ("Four.", "", False)
    assert read(["I am R1"], is_cut=True, holds=True) == ("", "I am R1", False)


def test_of_a_model_known_for_it_reasoning_with_an_open_fence_ends_at_its_closing_mark() -> None:
    text = "I am Qwen3:\n```python\nx = 1\nNo.\n</think>\n\nSo:\n```python\ny = 2\n```\nDone."
    answer, _, was_shown = read([*text], is_cut=False, holds=True)
    assert (answer, was_shown) == ("So:\n```python\ny = 2\n```\nDone.", False)


@pytest.mark.parametrize(
    "mark", ['4".</think>"Four."', 'so "4"</think>Four.', "so 4</think>'Four'"]
)
def test_a_quotation_beside_a_mark_does_not_make_it_one(mark: str) -> None:
    answer, thoughts = split(f"I am R1, {mark}")
    assert "R1" not in answer
    assert thoughts.startswith("I am R1, ")


def test_the_tokens_of_an_answer_are_those_behind_its_thoughts() -> None:
    tokens = [
        TokenLogprob(piece, -0.1) for piece in ("<th", "ink>M?", "</think>", "\n", "M", "</s>")
    ]
    assert answer_tokens(tokens) == (tokens[4],)
    assert answer_tokens(tokens[4:5]) == (tokens[4],)
    assert answer_tokens(tokens[:2]) == ()
    joined = TokenLogprob("\nM", -0.1)
    assert answer_tokens([*tokens[:3], joined]) == (joined,)


def test_a_reply_of_json_is_left_alone() -> None:
    text = json.dumps({"strengths": ["<b>"], "choice": "A+"}, indent=1)
    assert split(text) == (text, "")


@pytest.mark.parametrize("part", ["<|im_end|>", "<|im_end|> ", " ", "\n", "</think>"])
def test_many_marks_before_a_last_word_are_looked_at_once(part: str) -> None:
    """A test that hangs here takes quadratic time, as a hostile reply would make it."""
    answer, _ = split(part * (200_000 // len(part)) + "x")
    assert answer.endswith("x")
