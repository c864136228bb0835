"""Files of other benchmarks are scored, probed, judged and rated in their own columns."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.case import Case, Message
from judge.methods import published
from judge.probe.cards import read_material
from judge.probe.verdicts import probe_judges
from judge.scoring.annotated import judge_score
from judge.studies.rows import read_rows
from judge.tables.annotations import CONVERSATIONS, read_annotations
from judge.tables.cases import each_pair, read_cases, read_labels, read_responses
from judge.tables.items import read_rating_items
from judge.tables.native import PREFERENCE, for_score, model_shown_first, preference
from rating.errors import DataError
from rating.tables.columns import LEFT_OUT
from tests.rating.tables.peer_rows import (
    FILES,
    REFUSED,
    SINGLE,
    Row,
    of_arena,
    of_bench,
    of_fastchat,
    of_hard,
    of_kaggle,
    of_wildbench,
    written,
)
from tests.rating.tables.sources import messages_of


def file(folder: Path, name: str) -> Path:
    rows = FILES[name][1] if name in FILES else [REFUSED[name][1]]
    return written(folder, name, rows)


def scores(path: Path, method: str) -> dict[str, dict[str, object]]:
    return {row["model"]: row for row in judge_score(path, method)["models"]}


def test_annotations_of_alpaca_eval_are_scored_as_they_are(tmp_path: Path) -> None:
    path = file(tmp_path, "annotations.json")
    (row,) = scores(path, "alpaca_eval").values()
    # Preferences 1, 1.2, 1.5, 0 (a draw), 1.9; None and 3 are none.
    assert (row["model"], row["n"]) == ("y", 5)
    assert row["win_rate"] == pytest.approx(100 * (0 + 0.2 + 0.5 + 0.5 + 0.9) / 5)
    assert row["avg_length"] == len("another")
    data = for_score(read_annotations(path), "alpaca_eval")
    asked = data.texts("idx")
    assert data.flags("is_switched").tolist() == [model_shown_first(text) for text in asked]


def test_score_results_of_wildbench_are_scored_as_they_are(tmp_path: Path) -> None:
    row = REFUSED["score_results.json"][1]
    rows = [
        row,
        {**row, "session_id": "s2", "score": "9", "model_output": ""},
        {**row, "session_id": "s3", "score": "N/A"},
    ]
    path = written(tmp_path, "score_results.json", rows[:2])
    assert scores(path, "wildbench")["x"]["score"] == 8
    assert for_score(read_annotations(path), "wildbench").flags("empty").tolist() == [False, True]
    with pytest.raises(DataError, match="'N/A'"):
        judge_score(written(tmp_path, "wrong.json", rows), "wildbench")


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize(("name", "more"), [("question_id", {}), ("uid", {"baseline": "x"})])
def test_games_of_arena_hard_are_scored_as_published(
    name: str, more: dict[str, str], ending: str, tmp_path: Path
) -> None:
    rows = [
        of_hard(name, "A>>B", "B>A", **more),  # the baseline, three times and once
        of_hard(name, "B>A", "B<<A", **more),  # the model, once and three times
        of_hard(name, "A<B", "B=A", **more),  # the model, and a draw
        of_hard(name, None, "A>B", **more),
        {**of_hard(name, "A>B", **more), "games": None},
    ]
    result = judge_score(written(tmp_path, f"games.{ending}", rows), "arena_hard")
    (row,) = result["models"]
    assert row["n"] == 3
    assert row["score"] == pytest.approx(100 * (4 + 1.5) / 10)
    assert result["warnings"] == ["'y': 2 of 5 prompts lack a verdict; they are excluded."]


def test_rewards_of_wildbench_are_scored_as_they_are(tmp_path: Path) -> None:
    rows = [of_wildbench("x", 2), of_wildbench("y", 1), of_wildbench("tie", 0)]
    (row,) = judge_score(written(tmp_path, "rewards.json", rows))["models"]
    assert (row["model"], row["baseline"], row["n"]) == ("x", "y", 3)
    assert row["score"] == pytest.approx((1 - 1 / 2 + 0) / 3)


def test_verdicts_of_any_peer_are_scored_in_pairs(tmp_path: Path) -> None:
    result = judge_score(file(tmp_path, "gpt-4_pair.jsonl"), "pairwise")
    assert [(row["model"], row["n_wins"], row["n_ties"]) for row in result["models"]] == [
        ("x", 1, 3),
        ("y", 1, 3),
    ]
    assert result["warnings"] == ["2 of 7 rows have no verdict: excluded, not ties."]
    people = scores(file(tmp_path, "arena.json"), "pairwise")
    assert people["x"]["n"] == 3  # over all voters, without the row that is not anonymous


@pytest.mark.parametrize(
    ("name", "method", "words"),
    [
        ("annotations.json", "wildbench", "AlpacaEval annotations.* --method alpaca_eval"),
        ("score_results.json", "alpaca_eval", "WildBench scores.* --method wildbench"),
        ("kaggle.csv", "alpaca_eval", "Kaggle 55k.* --method pairwise"),
        ("wild.jsonl", "arena_hard", "WildVision.* --method pairwise"),
        ("score_results.json", "pairwise", "WildBench scores, no votes"),
        ("outputs.json", "alpaca_eval", "AlpacaEval outputs.*: arena judge run"),
    ],
)
def test_another_method_is_named(name: str, method: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        judge_score(file(tmp_path, name), method)


def test_verdicts_that_were_not_read_are_no_ties_of_a_study(tmp_path: Path) -> None:
    rows = read_rows(str(file(tmp_path, "gpt-4_pair.jsonl")), unparsed=True)
    assert (rows.n, rows.read.tolist(), rows.dropped) == (7, [*[True] * 4, False, False, True], {})
    votes = read_rows(str(file(tmp_path, "gpt-4_pair.jsonl")), unparsed=False)
    assert votes.dropped == {"no verdict": 2}


def test_a_judge_is_probed_by_its_verdicts_on_mt_bench(tmp_path: Path) -> None:
    rows = [
        {
            **of_bench("x", "y", ("model_a", "model_b", "tie")[q % 3], turn, "gpt-4"),
            "question_id": q,
        }
        for q in range(12)
        for turn in (1, 2)
    ]
    files = [written(tmp_path, f"run-{i}.jsonl", rows) for i in (1, 2)]
    about = probe_judges(files, seed=0)["about"]["judges"]["gpt-4"]
    assert (about["cases"], about["read_throughout"]) == (24, 24)


def test_texts_of_sick_and_clinc_are_material_of_a_probe(tmp_path: Path) -> None:
    (rated,) = read_material([file(tmp_path, "sick.tsv")]).rated
    assert (rated.references, rated.texts, rated.dimensions) == (("a",), ("b",), ("relatedness",))
    parts = {name: [[f"a text of {name}", "a class"]] for name in ("train", "val", "test")}
    whole = tmp_path / "data_full.json"
    whole.write_text(json.dumps(parts | {"oos_val": [], "oos_test": []}, indent=2), "utf-8")
    for path, n in ((file(tmp_path, "clinc.csv"), 1), (whole, 3)):
        classes = read_material([path]).classes
        assert classes is not None
        assert len(classes.texts) == n
    with pytest.raises(DataError, match="LLMBar, without texts to compare"):
        read_material([file(tmp_path, "llmbar.json")])


def test_a_judge_is_asked_about_the_pairs_of_other_tools(tmp_path: Path) -> None:
    path = written(tmp_path, "kaggle.csv", [of_kaggle("x", "y", 1, 0, 0)])
    (named,), words = messages_of(read_cases, [path])
    assert [turn.content for turn in named.case.prompt] == ["hi"]
    assert (named.case.response_a, named.case.response_b) == ("x", "y")
    assert named.battle_id == "xy(1, 0, 0)"
    assert words == [f"{path} is read as Kaggle 55k; rows excluded: none"]
    (arena,) = read_cases([written(tmp_path, "a.json", [of_arena("x", "y", "tie", "ada")])])
    assert (arena.models[0], arena.case.response_b) == ("x", "x")
    assert read_cases([file(tmp_path, "llmbar.json")])[0].case.response_a == "o"
    with pytest.raises(DataError, match="LLMFAO, without a prompt and two answers"):
        read_cases([file(tmp_path, "llmfao.csv")])


def kaggle(prompt: object, a: object, b: object) -> Row:
    texts = {"prompt": prompt, "response_a": a, "response_b": b}
    return {**of_kaggle("x", "y", 1, 0, 0), **{name: json.dumps(x) for name, x in texts.items()}}


SEVERAL = [
    kaggle(["2 + 2?", "Plus 1?"], ["4", "5"], ["Four.", "Five."]),
    kaggle(["2 + 2?", "Plus 1?"], ["4", None], ["Four.", "Five."]),
    kaggle(["2 + 2?", "Plus 1?"], ["4"], ["Four.", "Five."]),
    kaggle(["2 + 2?", "Plus 1?"], ["4", "5"], ["Four.", " "]),
    kaggle(["2 + 2?"], ["4", "5"], ["Four."]),
    kaggle([""], ["4"], ["Four."]),
    kaggle(["[1] + [2]?"], ["[3]"], ["[[A]]"]),
]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_several_turns_of_kaggle_are_read_and_turns_without_an_answer_counted(
    tmp_path: Path, ending: str
) -> None:
    rows: list[Row] = SEVERAL
    if ending != "csv":  # lists, and not JSON of them
        rows = [{**row, **{name: json.loads(row[name]) for name in NAMES}} for row in SEVERAL]
    path = written(tmp_path, f"kaggle.{ending}", rows)
    (several, one), words = messages_of(read_cases, [path])
    assert [turn.content for turn in several.case.prompt] == ["2 + 2?", "Plus 1?"]
    assert (several.case.earlier_a, several.case.response_a) == (("4",), "5")
    assert (several.case.earlier_b, several.case.response_b) == (("Four.",), "Five.")
    assert (one.case.prompt[0].content, one.case.response_a) == ("[1] + [2]?", "[3]")
    assert words[0] == (
        f"{path} is read as Kaggle 55k; rows excluded: 1 in which user and assistant do not take "
        "turns, 1 without a question, 3 without an answer"
    )
    assert words[1].startswith(f"{path}: no answer on a side (null or blank) in 3 of 7 rows")
    labels = read_labels(path)
    assert labels is None
    (alone,) = each_pair([path], turns=False)
    assert alone == one
    singles = read_responses([path])
    assert [named.case.response_a for named in singles] == [
        "5", "Five.", "Five.", "Five.", "5", "[3]", "[[A]]"
    ]  # fmt: skip


NAMES = ("prompt", "response_a", "response_b")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_the_test_file_of_kaggle_is_read_as_its_votes_are(tmp_path: Path, ending: str) -> None:
    rows = [{name: row[name] for name in ("id", *NAMES)} for row in (SEVERAL[0], SEVERAL[1])]
    path = written(tmp_path, f"test.{ending}", rows)
    (named,), words = messages_of(read_cases, [path])
    assert words[0] == f"{path} is read as Kaggle 55k (test); rows excluded: 1 without an answer"
    assert (named.case.prompt[0].content, named.case.response_b) == ("2 + 2?", "Five.")
    assert (named.models[0], named.battle_id) == ("response_a", "xy(1, 0, 0)")


def test_texts_in_brackets_of_pairs_of_our_own_stay_as_they_are(tmp_path: Path) -> None:
    row = {"id": 1, "prompt": '["a"] or [b]?', "response_a": '["a"]', "response_b": "[b]"}
    (named,) = read_cases([written(tmp_path, "own.jsonl", [row])])
    assert (named.case.prompt[0].content, named.case.response_a) == ('["a"] or [b]?', '["a"]')


ROLES = ("user", "assistant")


def of_talk(asked: list[str], *sides: list[str | None]) -> Row:
    talks = [
        [
            message(r, x)
            for turn in zip(asked, side, strict=True)
            for r, x in zip(ROLES, turn, strict=True)
        ]
        for side in sides
    ]
    return {**of_arena("x", "y", "tie", "ada"), **dict(zip(CONVERSATIONS, talks, strict=True))}


@pytest.mark.parametrize("name", ["kaggle.csv", "arena.json"])
def test_conversations_are_items_to_rate_turn_by_turn_and_null_answers_are_counted(
    tmp_path: Path, name: str
) -> None:
    rows: list[Row] = [{**SEVERAL[n], "id": f"battle {n}"} for n in (0, 1, 6)]
    if name == "arena.json":
        rows = [of_talk(*(json.loads(row[text]) for text in NAMES)) for row in rows]
    rows.append({**rows[2], "model_a": rows[2]["model_b"]})
    items, words = messages_of(read_rating_items, written(tmp_path, name, rows))
    several, one = items
    assert words[0].endswith("rows excluded: 1 without an answer")
    assert words[1].endswith(": rows that are no items to rate: 1 of a model against itself")
    asked = [[turn.content for turn in item.messages] for item in items]
    assert asked == [["2 + 2?"], ["[1] + [2]?"]]
    assert [response.model for response in one.responses] == ["x", "y"]
    assert [response.turns[0].content for response in one.responses] == ["[3]", "[[A]]"]
    assert [(turn.role, turn.content) for turn in several.responses[1].turns] == [
        ("assistant", "Four."), ("user", "Plus 1?"), ("assistant", "Five.")
    ]  # fmt: skip


def test_rows_that_people_cannot_rate_are_counted_by_reason(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"prompt": "?", "chosen": "a" * n, "rejected": "b"} for n in (1, 1, 100_001)
    ]
    path = written(tmp_path, "trl.json", rows)
    items, words = messages_of(read_rating_items, path)
    assert len(items) == 1
    assert words[-1].endswith("1 of more than 100,000 characters, 1 with the id of an earlier row")
    with pytest.raises(DataError, match=r"No row of .* can be rated by people: 1 of more than"):
        read_rating_items(written(tmp_path, "trl.json", rows[2:]))


@pytest.mark.parametrize("ending", ["json", "jsonl", "csv", "parquet"])
@pytest.mark.parametrize(
    "answer",
    [
        '[{"planet": "Mercury", "moons": 0}]', '[{"type": "fruit", "name": "apple"}]', "[1, 2]",
        "[[1, 2], [3]]", '["a", "b"]', "[]", "[1] is a reference", '{"role": "admin"}',
    ],
)  # fmt: skip
def test_an_answer_that_is_json_is_rated_as_it_is(
    answer: str, ending: str, tmp_path: Path
) -> None:
    row = {
        "item_id": "i",
        "prompt": "List the planets.",
        "response_a": answer,
        "response_b": f" {answer}",
    }
    path = written(tmp_path, f"items.{ending}", [{**row, "model_a": "x", "model_b": "y"}])
    (item,) = read_rating_items(path)
    assert [one.turns[0].content for one in item.responses] == [answer, f" {answer}"]


TEXTS = st.text(min_size=1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def message(role: str, content: str | None) -> dict[str, str | None]:
    return {"role": role, "content": content}


def chosen_of(pair: dict[str, Any]) -> tuple[Any, Any]:
    """Give what was chosen and what was rejected, by the label."""
    a, b = pair["response_a"], pair["response_b"]
    return (a, b) if pair["label"] == "model_a" else (b, a)


@given(prompt=TEXTS, good=TEXTS, bad=TEXTS)
def test_texts_and_messages_with_and_without_a_prompt_mean_the_same(
    prompt: str, good: str, bad: str
) -> None:
    user, sides = message("user", prompt), [[message("assistant", text)] for text in (good, bad)]
    ways = [
        preference([user], *sides),
        preference(prompt, *sides),
        preference(None, [user, *sides[0]], [user, *sides[1]]),
    ]
    for pair in ways:
        assert chosen_of(pair) == (good, bad)
        assert pair["prompt"] == [user]
    plain = preference(prompt, good, bad)
    assert (plain["prompt"], chosen_of(plain)) == (prompt, (good, bad))


@given(row=st.tuples(JSON, JSON, JSON))
def test_anything_else_is_no_pair_and_no_error(row: tuple[Any, Any, Any]) -> None:
    pair = preference(*row)
    reason = pair.pop(LEFT_OUT)
    assert [*pair] == [*PREFERENCE]
    assert (pair["prompt"] is None) == (reason is not None)
    if reason:
        assert {*pair.values()} == {None}


def test_either_side_holds_about_half_of_what_was_chosen() -> None:
    labels = [preference(f"Question {n}?", "yes", "no")["label"] for n in range(400)]
    assert 160 <= labels.count("model_a") <= 240  # four standard deviations
    assert labels == [preference(f"Question {n}?", "yes", "no")["label"] for n in range(400)]


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_rows_that_tell_no_question_apart_are_left_out_and_counted(
    tmp_path: Path, ending: str
) -> None:
    talk = [message("user", "a"), message("assistant", "b"), message("user", "c")]
    rows: list[dict[str, Any]] = [
        {"prompt": [message("user", "2 + 2?")], "chosen": [message("assistant", "4")]},
        {"prompt": talk, "chosen": [message("assistant", "4")]},
        {"prompt": talk[:2], "chosen": [message("assistant", "4")]},
        {"prompt": [], "chosen": [message("user", "4")]},
    ]
    rows = [row | {"rejected": [message("assistant", "5")]} for row in rows]
    if ending == "csv":
        rows = [{name: json.dumps(cell) for name, cell in row.items()} for row in rows]
    path = written(tmp_path, f"p.{ending}", rows)
    cases, words = messages_of(read_cases, [path])
    left_out = "2 without a question and an answer"
    assert words[0] == f"{path} is read as TRL preferences; rows excluded: {left_out}"
    assert [len(case.case.prompt) for case in cases] == [1, 3]
    labels = read_labels(path)
    assert labels is not None
    for case, label in zip(cases, labels, strict=True):
        chosen = case.case.response_a if label > 0 else case.case.response_b
        assert chosen == "4"


def test_a_file_without_any_question_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"chosen": "Human: hi", "rejected": "Human: ho"}\n')
    with pytest.raises(DataError, match=r"TRL preferences.* 1 without a question and an answer"):
        read_cases([path])


HUMAN, ASSISTANT = "\n\nHuman: ", "\n\nAssistant: "


@pytest.mark.parametrize(
    ("prompt", "before", "turns"),
    [
        (None, f"{HUMAN}2 + 2?{ASSISTANT}", ["2 + 2?"]),
        (
            None,
            f"{HUMAN}Hi.{ASSISTANT}Hello.{HUMAN}2 + 2?{ASSISTANT}",
            ["Hi.", "Hello.", "2 + 2?"],
        ),
        (f"{HUMAN}2 + 2?{ASSISTANT}", "", ["2 + 2?"]),
    ],
)
def test_texts_of_hh_rlhf_are_split_at_the_last_answer_that_both_begin(
    prompt: str | None, before: str, turns: list[str]
) -> None:
    pair = preference(prompt, f"{before} It is 4.", f"{before} It is 5, a sum.")
    assert [one["content"] for one in pair["prompt"]] == turns
    assert chosen_of(pair) == ("It is 4.", "It is 5, a sum.")


@pytest.mark.parametrize(
    ("chosen", "rejected"),
    [
        (f"{HUMAN}Hi.{ASSISTANT}Yes.", f"{HUMAN}Ho.{ASSISTANT}No."),
        (f"{HUMAN}Hi.", f"{HUMAN}Hi."),
        (f"{HUMAN}a{ASSISTANT}b{HUMAN}c{ASSISTANT}d", f"{HUMAN}a{ASSISTANT}e"),
        ("Human: Hi. Assistant: Yes.", "Human: Hi. Assistant: No."),
    ],
)
def test_texts_without_a_question_that_both_answer_are_no_pair(chosen: str, rejected: str) -> None:
    pair = preference(None, chosen, rejected)
    assert pair["prompt"] is None
    assert pair[LEFT_OUT]


def test_a_prompt_that_both_conversations_repeat_is_shown_once() -> None:
    """UltraFeedback binarized: a text, and conversations that begin with it."""
    asked = message("user", "2 + 2?")
    good, bad = message("assistant", "4"), message("assistant", "5")
    pair = preference("2 + 2?", [asked, good], [asked, bad])
    assert (pair["prompt"], chosen_of(pair)) == ([asked], ("4", "5"))
    system = message("system", "Be short.")
    pair = preference([asked], [system, asked, good], [system, asked, bad])
    assert (pair["prompt"], chosen_of(pair)) == ([system, asked], ("4", "5"))
    later = [asked, good, message("user", "Plus 1?")]
    pair = preference("2 + 2?", [*later, message("assistant", "5")], [*later, good])
    assert (pair["prompt"], chosen_of(pair)) == (later, ("5", "4"))
    in_blocks = {"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]}
    assert preference(None, [in_blocks, good], [in_blocks, bad])["prompt"] == [asked]


def test_preferences_with_the_prompt_in_another_column_and_a_system_message(
    tmp_path: Path,
) -> None:
    for name in ("prompt", "instruction", "question", "input"):
        row = {"system": "Be short.", name: "2 + 2?", "chosen": "4", "rejected": "It is 5."}
        path = written(tmp_path, f"{name}.jsonl", [row, row | {"system": ""}])
        cases = read_cases([path])
        shown = [[(turn.role, turn.content) for turn in one.case.prompt] for one in cases]
        assert shown == [[("system", "Be short."), ("user", "2 + 2?")], [("user", "2 + 2?")]]


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
    assert named.models == ("x", "y")
    first, second = read_responses([written(tmp_path, "pairs.jsonl", [row])])
    assert first.case == Case(TWO, "Five.", None, ("Four.",), (), "4\n\n5")
    assert second.case == Case(TWO, "6.", None, ("4.",), (), "4\n\n5")
    assert (first.models[0], second.models[0]) == ("x", "y")


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
    cases, words = messages_of(read_responses, [written(tmp_path, "single.jsonl", [SINGLE, torn])])
    assert len(cases) == 1
    assert words[0].endswith("rows excluded: 1 without a question and an answer")
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
        method = published("mt_bench" if len(named.models) < 2 else "mt_bench_pairs")
        assert "${" not in method.ask(named.case, "0" * 16).messages[-1].content.split("begin")[0]
