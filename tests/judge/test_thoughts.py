"""The reasoning in a reply is separated from its answer, however both are cut into pieces."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judge.case import TokenLogprob
from judge.replies import Part, Splitter, answer_tokens, split

VLLM = "vLLM, reasoning parsers"
"""https://docs.vllm.ai/en/latest/api/vllm/reasoning/."""
HARMONY = "OpenAI cookbook, harmony response format (gpt-oss)"
"""https://developers.openai.com/cookbook/articles/openai-harmony."""
MARKED = [
    (
        f"{VLLM}: qwen3, deepseek_r1",
        "<think>\nI am Qwen, so\n</think>\n\nFour.",
        "\nI am Qwen, so\n\n\n",
    ),
    (
        "llama.cpp, DeepSeek R1 by its own template",
        "I am R1.\n</think>\n\nFour.",
        "I am R1.\n\n\n",
    ),
    (f"{VLLM}: seedoss", "<seed:think>I am Seed.</seed:think>Four.", "I am Seed."),
    (f"{VLLM}: seedoss", "I am Seed.</seed:think>Four.", "I am Seed."),
    (f"{VLLM}: mistral", "[THINK]I am Magistral.[/THINK]Four.", "I am Magistral."),
    (
        f"{VLLM}: cohere_command",
        "<|START_THINKING|>I am Command.<|END_THINKING|>Four.",
        "I am Command.",
    ),
    (
        "Gemma 4, prompt formatting",
        "<|channel>thought\nI am Gemma.\n<channel|>Four.<turn|>",
        "\nI am Gemma.\n<turn|>",
    ),
    (
        f"{VLLM}: granite",
        "Here is my thought process:\nI am Granite.\n\nHere is my response:\nFour.",
        "\nI am Granite.\n\n\n",
    ),
    ("Kimi-VL-Thinking, model card", "◁think▷I am Kimi.◁/think▷Four.", "I am Kimi."),
    ("EXAONE Deep, model card", "<thought>I am Exaone.</thought>Four.", "I am Exaone."),
    ("Sky-T1, system prompt", "<|begin_of_thought|>I am Sky.<|end_of_thought|>Four.", "I am Sky."),
    ("system prompts that ask for it", "<reasoning>I am Nova.</reasoning>\nFour.", "I am Nova.\n"),
    (
        HARMONY,
        "<|channel|>analysis<|message|>I am gpt-oss.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Four.<|return|>",
        "I am gpt-oss.",
    ),
    (
        "vLLM, gpt-oss without its special tokens",
        "analysisI am gpt-oss.assistantfinalFour.",
        "I am gpt-oss.",
    ),
]
"""Where it is described, a reply whose answer is "Four.", and its reasoning."""
MORE = [
    (
        "<think>They ask of `</think>`. I am Qwen.\nYes.</think>\n\nThe tag ends it.",
        "The tag ends it.",
        "They ask of `</think>`. I am Qwen.\nYes.\n\n",
    ),
    (
        "<think>Templates: <think>...</think>. I am Qwen.</think>\n\nFour.",
        "Four.",
        "Templates: <think>...</think>. I am Qwen.\n\n",
    ),
    (
        "<think>It shows\n```\n<think>x</think>\n```\nI am Qwen.\n</think>\nUse:\n```\nx\n```",
        "Use:\n```\nx\n```",
        "It shows\n```\n<think>x</think>\n```\nI am Qwen.\n\n",
    ),
    ("analysiswe ask. I am gpt-oss.assistantfinalFour.", "Four.", "we ask. I am gpt-oss."),
    ("analysis\nI am gpt-oss.assistantfinalFour.", "Four.", "\nI am gpt-oss."),
    ("commentaryI am gpt-oss.assistantfinalFour.", "Four.", "I am gpt-oss."),
    ("<unused94>thought\nI am MedGemma.<unused95>Four.", "Four.", "\nI am MedGemma."),
    (
        "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>Four.<|END_RESPONSE|>",
        "Four.",
        "a<|END_RESPONSE|>",
    ),
    (
        "Four.\n\n<think>I am Qwen, so was that right?",
        "Four.\n\n",
        "I am Qwen, so was that right?",
    ),
    ("<|start|>assistant<|message|>Four.<|end|>", "Four.", ""),
    (
        "<|channel|>analysis<|message|>Two.<|end|><|start|>assistant<|channel|>commentary "
        "to=functions.f <|constrain|>json<|message|>{}<|call|>",
        "",
        "Two.{}",
    ),
    (
        "analysisWe ask.assistantcommentaryHm.assistantfinalFour.",
        "Four.",
        "We ask.assistantcommentaryHm.",
    ),
    ("<think>a</think>One. <think>b</think>Two.", "One. Two.", "ab"),
    ("<think>It wrote </think> itself.</think>Four.", "Four.", "It wrote  itself."),
    ("One.<THINK>b</THINK>Two.", "One.Two.", "b"),
]
CUT = [
    ("<think>\nThe user asks. I", ""),
    ("analysisThe user asks. I", ""),
    ("<|channel|>analysis<|message|>The user", ""),
    ("<|channel|>anal", ""),
    ("Four. <think>I am Qwen, so", "Four. "),
]
ENDS = [
    "<|im_end|>",
    "</s>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
    "<|im_end|>\n<|endoftext|>\n",
    "<|end|>",
]
PLAIN = [
    '{"stop": ["</think>", "<|im_end|>"], "n": 1}',
    'STOP = "</think>"\nprint(STOP)',
    'The tag "</think>" ends the reasoning.',
    "TeX uses ``quotes'' for quotations; the tag `</think>` closes.",
    "A literal \\` is written so. The tag `</think>` closes. Done.",
    "It is\n\n    <think>\n    plan\n    </think>\n\nin all.",
    "<code></think></code> closes it.",
    "Here:\n```xml\n<think>\nplan\n</think>\n<answer>4</answer>\n",
    "Mistral uses [THINK] and [/THINK] as tokens.",
    "You wrote </think> and I say it back.",
    "The tokens of gpt-oss are <|start|>, <|end|>, <|message|> and <|channel|>. They delimit.",
    "The end of sequence token of Llama 2 is </s>",
    "- <|im_start|>\n- <|im_end|>",
    "x1 x2 [EOS]",
    "~~old~~ new </s>",
    "analysis of variance is a test, as in analysis",
    "Four.",
    "  indented\n\n- a\n- b\n",
    "I think [A], not <b>B</b>: 3 < 4, a[0] = `x`.",
    "```xml\n<think>a</think>\n```\nis how it is written.",
    "~~~\n</think>\n~~~",
    "> ```\n> </think>\n> ```\n",
    "1. ```\n   </think>\n   ```\n2. More.",
    "````\n```\n</think>\n```\n</think>\n````\nDone.",
    "Write `<think>` before and `</think>` behind, or ``a`</think>``.",
    "analysis of variance is a test.",
    "Analysis: four.",
    "analysis",
    "<s>four</s>",
    "The answer is in <reason>, <thinking and <thinker>.",
    "[think] He thinks. [/think]",
    "",
    " \n ",
    "Use the <think> tag to open.",
]


@pytest.mark.parametrize(
    ("text", "answer", "thoughts"), [*((text, "Four.", own) for _, text, own in MARKED), *MORE]
)
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


@pytest.mark.parametrize("end", ENDS)
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
        *("<think>", "</think>", "<|channel|>", "<|message|>", "<|start|>", "<|end|>", "final"),
        *("analysis", "assistant", "assistantfinal", "[THINK]", "[/THINK]", "</s>", "<s>"),
        *("<|im_end|>", "`", "``", "```", "~~~", "\n", " ", "<", "|>", "[", "Four", "é", "X"),
        *("<|channel>thought", "<channel|>", "Here is my thought process:", "<reason>"),
        *("</reason>", "- ", "</seed:think>", "◁think▷", "◁/think▷", "Here is my response:"),
    ]
)
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
        ("<think>", "</think>"),
        ("<thought>", "</thought>"),
        ("<seed:think>", "</seed:think>"),
        ("[THINK]", "[/THINK]"),
        ("◁think▷", "◁/think▷"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
        ("<|channel>thought\n", "<channel|>"),
    ]
)


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
        TokenLogprob(piece, -0.1) for piece in ("<th", "ink>m?", "</think>", "\n", "M", "</s>")
    ]
    assert answer_tokens(tokens) == (tokens[4],)
    assert answer_tokens(tokens[4:5]) == (tokens[4],)
    assert answer_tokens(tokens[:2]) == ()


def test_a_reply_of_json_is_left_alone() -> None:
    text = json.dumps({"strengths": ["<b>"], "choice": "A+"}, indent=1)
    assert split(text) == (text, "")


@pytest.mark.parametrize("part", ["<|im_end|>", "<|im_end|> ", " ", "\n", "</think>"])
def test_many_marks_before_a_last_word_are_looked_at_once(part: str) -> None:
    """A test that hangs here takes quadratic time, as a hostile reply would make it."""
    answer, _ = split(part * (200_000 // len(part)) + "x")
    assert answer.endswith("x")
