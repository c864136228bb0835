"""MT-bench's files as cases: questions, answers and right answers out of what its judge read."""

from pathlib import Path

import pytest

from judge.case import Case, Message
from judge.methods import published
from judge.tables.cases import read_cases, read_responses
from rating.errors import DataError
from rating.tables.peers import noticing
from tests.rating.tables.peer_rows import SINGLE, of_fastchat, written

TALK = (
    "<|The Start of Assistant {0}'s Conversation with User|>\n\n### User:\n2 + 2?\n\n"
    "### Assistant {0}:\n{1}\n\n### User:\nPlus 1?\n\n### Assistant {0}:\n{2}\n\n"
    "<|The End of Assistant {0}'s Conversation with User|>"
)
RIGHT = (
    "<|The Start of Reference Answer|>\n\n### User:\n2 + 2?\n\n### Reference answer:\n4\n\n"
    "### User:\nPlus 1?\n\n### Reference answer:\n5\n\n<|The End of Reference Answer|>\n\n\n"
)
TWO = (Message("user", "2 + 2?"), Message("user", "Plus 1?"))


def test_a_second_turn_is_a_case_with_the_turns_of_each_side(tmp_path: Path) -> None:
    text = RIGHT + TALK.format("A", "Four.", "Five.") + "\n\n\n" + TALK.format("B", "4.", "6.")
    row = {**of_fastchat("model_1", "tie", 81), "turn": 2, "g1_user_prompt": text}
    (named,) = read_cases([written(tmp_path, "pairs.jsonl", [row])])
    assert named.case == Case(TWO, "Five.", "6.", ("Four.",), ("4.",), "4\n\n5")
    question = row["question_id"]
    assert (named.battle_id, named.prompt_id) == (f"{question}-t2-x|y", str(question))
    assert (named.model_a, named.model_b) == ("x", "y")
    first, second = read_responses([written(tmp_path, "pairs.jsonl", [row])])
    assert first.case == Case(TWO, "Five.", None, ("Four.",), (), "4\n\n5")
    assert second.case == Case(TWO, "6.", None, ("4.",), (), "4\n\n5")
    assert (first.model_a, second.model_a) == ("x", "y")


def test_single_answers_of_either_turn_are_cases(tmp_path: Path) -> None:
    second = SINGLE | {"turn": 2, "user_prompt": TALK.format("A", "Four.", "Five.")}
    one, other = read_responses([written(tmp_path, "single.jsonl", [SINGLE, second])])
    assert one.case == Case((Message("user", "2 + 2?"),), "4.")
    assert other.case == Case(TWO, "Five.", None, ("Four.",))
    assert (one.battle_id, other.battle_id) == ("81-t1-x", "81-t2-x")


def test_a_text_that_is_not_as_mt_bench_s_judge_reads_it_is_left_out_and_counted(
    tmp_path: Path,
) -> None:
    torn = SINGLE | {"user_prompt": TALK.format("A", "### User:\nx\n\n### User:\n", "y")[:-30]}
    words: list[str] = []
    with noticing(words.append):
        assert len(read_responses([written(tmp_path, "single.jsonl", [SINGLE, torn])])) == 1
    assert words[0].endswith("rows left out: 1 without a question and an answer")
    with pytest.raises(DataError, match="1 without a question and an answer"):
        read_responses([written(tmp_path, "torn.jsonl", [torn])])


@pytest.mark.published
def test_mt_bench_s_own_files_can_be_asked_about(published_data: Path) -> None:
    folder = published_data / "native"
    pairs = read_cases([folder / "mtbench_fastchat_gpt-4_pair.jsonl"])
    singles = read_responses([folder / "mtbench_fastchat_gpt-4_single.jsonl"])
    assert (len(pairs), len(singles)) == (75, 80)
    assert sum(one.case.reference is not None for one in pairs) == 25
    assert sum(one.case.reference is not None for one in singles) == 30
    for named in (*pairs, *singles):
        method = published("mt_bench" if named.model_b is None else "mt_bench_pairs")
        assert "${" not in method.ask(named.case, "0" * 16).messages[-1].content.split("begin")[0]
