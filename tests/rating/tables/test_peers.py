"""The files of other tools: each is read as votes, or refused by the name of its format."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import md5
from itertools import combinations
from pathlib import Path

import duckdb
import pytest

from rating.errors import DataError
from rating.tables.columns import Columns, Reading
from rating.tables.counts import read_votes
from rating.tables.files import all_quoted
from rating.tables.peers import FORMATS, recognised
from rating.tables.sources import opened
from tests.rating.tables.peer_rows import (
    ARENA,
    FILES,
    REFUSED,
    Row,
    of_bench,
    of_comparia,
    of_open_webui,
    of_study,
    written,
)
from tests.rating.tables.sources import cells, noticed


def columns_of(path: Path, *names: str) -> list[tuple[object, ...]]:
    with opened(path, lambda there: [*there]) as frame:
        return frame.project(all_quoted(names)).fetchall()


@pytest.mark.parametrize("name", FILES)
def test_a_peers_file_is_read_as_its_votes(name: str, tmp_path: Path) -> None:
    known, rows, expected, left_out = FILES[name]
    path = written(tmp_path, name, rows)
    votes, words = noticed(path)
    assert cells(votes) == Counter(expected)
    assert votes.read == len(expected) + sum(left_out.values())
    assert known == "Open WebUI feedback" or votes.read == len(rows)
    assert votes.dropped == left_out
    reasons = ", ".join(f"{n} {why}" for why, n in left_out.items()) or "none"
    assert words == [f"{path} is read as {known}; rows excluded: {reasons}"]


@pytest.mark.parametrize("name", FILES)
def test_a_peers_file_means_the_same_in_parquet(name: str, tmp_path: Path) -> None:
    _, rows, expected, left_out = FILES[name]
    votes, _ = noticed(written(tmp_path, "votes.parquet", rows))
    assert cells(votes) == Counter(expected)
    assert votes.dropped == left_out


def test_what_a_study_needs_is_in_our_columns(tmp_path: Path) -> None:
    bench = written(tmp_path, "bench.jsonl", FILES["bench.jsonl"][1])
    assert columns_of(bench, "item_id", "voter", "judge") == [
        ("81-t1-x|y", "expert_1", None),
        ("81-t2-x|y", "author_0", None),
        ("81-t1-x|y", "expert_2", None),
    ]
    judged = written(tmp_path, "pair.jsonl", [of_bench("x", "y", "tie", 1, ["gpt-4", "pair-v2"])])
    assert columns_of(judged, "voter", "judge") == [(None, "gpt-4")]
    alpaca = written(tmp_path, "annotations.json", FILES["annotations.json"][1])
    shares = [share for (share,) in columns_of(alpaca, "preference")]
    assert shares == [1.0, pytest.approx(0.8), 0.5, 0.5, pytest.approx(0.1), *[None] * 3]
    log = written(tmp_path, "log-conv.json", FILES["log-conv.json"][1])
    prompt, voter = columns_of(log, "prompt", "voter")[0]
    assert (prompt, voter) == ("hi", md5(b"192.0.2.7", usedforsecurity=False).hexdigest())


@pytest.mark.parametrize(
    ("name", "ours", "values"),
    [
        ("arena.json", "voter", ("ada",)),
        ("llmfao.csv", "voter prompt_id item_id", ("7", "8", "5")),
        ("crowd.csv", "voter", ("w",)),
        ("agents.json", "battle_id ts", ("xyA is better", "2024-09-03T18:55:37.375000")),
        ("annotations.json", "prompt_id response_a response_b", ("i1.0", "one", "another")),
        ("annotations.json", "judge", ("a judge",)),
        ("bench.jsonl", "prompt_id", ("81",)),
        ("gpt-4_pair.jsonl", "prompt_id judge order", ("1", "gpt-4", "both")),
        ("gpt-4_pair.jsonl", "item_id battle_id", ("1-t1-x|y", "1-t1-x|y")),
        ("rewards.json", "prompt_id", ("s2x",)),
        ("hard-v2.jsonl", "prompt_id battle_id order", ("qA>>B-B>A", "qA>>B-B>A", "both")),
        ("hard-v1.jsonl", "prompt_id battle_id order", ("qA>B-B>>A", "qA>B-B>>A", "both")),
        ("wild.jsonl", "prompt_id battle_id order", ("qA>>B", "qA>>B", "ab")),
        ("ratings.jsonl", "voter item_id", ("r01", "i")),
    ],
)
def test_what_else_a_peers_file_says_is_in_our_columns(
    name: str, ours: str, values: tuple[str, ...], tmp_path: Path
) -> None:
    assert columns_of(written(tmp_path, name, FILES[name][1]), *ours.split())[0] == values


def test_what_a_study_states_of_answers_is_of_the_sides_shown(tmp_path: Path) -> None:
    kinds = ("base_model", "scaffold", "cost", "seconds")
    names = [f"{kind}_{side}" for kind in kinds for side in "ab"]
    given = ("m", "n", "plain", "tools", 0.1, 0.2, 3.0, 4.0)
    answers = dict(zip(names, given, strict=True))
    rows = [of_study("model_a", sides, **answers) for sides in ("ab", "ba")]
    path = written(tmp_path, "ratings.jsonl", rows)
    turned = ("n", "m", "tools", "plain", 0.2, 0.1, 4.0, 3.0)
    assert columns_of(path, *names) == [given, turned]


def test_a_column_of_theirs_can_still_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, "arena.json", ARENA)
    votes = read_votes(path, Reading(columns=Columns(voter="question_id")))
    assert votes.voters == ("q-x-y-ada", "q-y-x-bob")


def test_votes_of_our_own_columns_are_of_no_peer(tmp_path: Path) -> None:
    own: list[Row] = [{"model_a": "x", "model_b": "y", "winner": "tie", "turn": 1, "judge": "j"}]
    assert recognised([*own[0]]) is None
    assert noticed(written(tmp_path, "own.csv", own))[1] == []


@pytest.mark.parametrize("name", REFUSED)
def test_what_holds_no_votes_is_refused_by_its_format(name: str, tmp_path: Path) -> None:
    known, row = REFUSED[name]
    with pytest.raises(DataError, match=f"in the format {known}, no votes: .*arena "):
        read_votes(written(tmp_path, name, [row]))


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("kaggle.csv", "winner_tie"), ("gpt-4_pair.jsonl", "g2_winner"),
        ("arena.json", "winner"), ("log-conv.json", "type"), ("annotations.json", "preference"),
        ("agents.json", "rating"),
    ],
)  # fmt: skip
def test_what_is_nearly_a_format_is_refused_with_what_it_lacks(
    name: str, lost: str, tmp_path: Path
) -> None:
    known, rows, _, _ = FILES[name]
    less = [{key: value for key, value in row.items() if key != lost} for row in rows]
    path = written(tmp_path, name, less)
    with pytest.raises(DataError, match=f"nearly in the format {known}, .*no column '{lost}'"):
        read_votes(path)


def test_an_unknown_label_is_quoted_and_not_guessed(tmp_path: Path) -> None:
    odd = {**FILES["agents.json"][1][0], "_id": "odd", "rating": "C is better"}
    rows = [*FILES["agents.json"][1], odd]
    with pytest.raises(DataError, match="'C is better'"):
        read_votes(written(tmp_path, "agents.json", rows))


def test_the_visitor_or_else_the_session_votes_in_comparia(tmp_path: Path) -> None:
    path = written(tmp_path, "votes.jsonl", FILES["comparia.jsonl"][1])
    assert {voter for (voter,) in columns_of(path, "voter")} == {"v1", "s1"}
    rows = [{k: v for k, v in of_comparia("x").items() if k not in ("session_hash", "archived")}]
    assert read_votes(written(tmp_path, "less.jsonl", rows)).voters == ("v1",)


@pytest.mark.parametrize(
    ("row", "value"),
    [
        (of_comparia("z"), "'z'"),
        ({"worker": "w", "left": "x", "right": "y", "label": "z"}, "'z'"),
        (of_open_webui("x", 7, ["y"]), "'7'"),
    ],
)
def test_a_winner_that_is_no_model_of_the_row_is_quoted(
    row: Row, value: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=f"Unknown labels in the winner: {value}"):
        read_votes(written(tmp_path, "votes.jsonl", [row]))


def test_a_rating_in_open_webui_is_a_vote_of_its_user_when_it_was_made(tmp_path: Path) -> None:
    path = written(tmp_path, "feedback.json", FILES["feedback.json"][1])
    assert {*columns_of(path, "voter", "ts")} == {("u1", 1730000000.0)}
    with opened(path, lambda there: [*there]) as frame:
        assert [*frame.columns][:3] == ["id", "user_id", "version"]
        assert "__each" not in frame.columns


def test_no_format_hides_another() -> None:
    files: dict[str, tuple[str, Sequence[Row]]] = {
        name: (known, rows) for name, (known, rows, _, _) in FILES.items()
    }
    files |= {name: (known, [row]) for name, (known, row) in REFUSED.items()}
    by_values = {"Kaggle 55k (test)"}  # has the columns of our own pairs
    assert {known for known, _ in files.values()} | by_values == {one.name for one in FORMATS}
    for known, rows in files.values():
        there = list(dict.fromkeys(name for row in rows for name in row))
        one = recognised(there, lambda _, known=known: "WildVision" in known)  # type: ignore[misc]
        assert one is not None
        assert one.name == known


@pytest.mark.published
@pytest.mark.parametrize(
    ("file", "known", "used", "dropped"),
    [
        ("agent_arena_raw.json", "Agent Arena", None, {}),
        ("alpaca_eval_annotations.json", "AlpacaEval annotations", 60, {}),
        ("arena_hard_v0.1_judgments.jsonl", "Arena-Hard v0.1 against gpt-4-0314", 20, {}),
        ("arena_hard_v2_judgments.jsonl", "Arena-Hard v2", 20, {}),
        (
            "chatbot_arena.json",
            "Chatbot Arena",
            102,
            {"not anonymous": 43, "duplicate prompts (dedup_tag)": 5},
        ),
        (
            "chatbot_arena.jsonl",
            "Chatbot Arena",
            102,
            {"not anonymous": 43, "duplicate prompts (dedup_tag)": 5},
        ),
        ("fastchat_log-conv.json", "FastChat's conversation log", 33, {"not anonymous": 17}),
        ("kaggle_55k.csv", "Kaggle 55k", 199, {}),
        ("llmfao_raw.csv", "LLMFAO", 399, {}),
        (
            "mtbench_fastchat_gpt-4_pair.jsonl",
            "MT-bench judgements of FastChat",
            73,
            {"no verdict": 2},
        ),
        ("mtbench_gpt4_pair_judgments.jsonl", "MT-bench judgements", 300, {}),
        ("mtbench_human_judgments.jsonl", "MT-bench judgements", 600, {}),
        ("wildvision_judgement.jsonl", "WildVision against claude-3-sonnet-20240229", 40, {}),
    ],
)
def test_real_files_are_read_whole(
    published_data: Path, file: str, known: str, used: int | None, dropped: dict[str, int]
) -> None:
    votes, words = noticed(published_data / "native" / file)
    assert f"is read as {known};" in words[0]
    assert votes.dropped == dropped
    assert votes.data.n_votes == used or used is None


@pytest.mark.published
def test_people_of_mt_bench_agree_as_noted_where_a_turn_is_an_item(
    published_data: Path, tmp_path: Path
) -> None:
    source = duckdb.read_parquet(str(published_data / "votes" / "mtbench" / "votes.parquet"))
    theirs = tmp_path / "human.parquet"
    source.project(
        "voter AS judge, model_a, model_b, prompt_id AS question_id, turn, src_winner AS winner"
    ).write_parquet(str(theirs))
    items: dict[object, list[str]] = defaultdict(list)
    for item, a, b, winner in columns_of(theirs, "item_id", "model_a", "model_b", "winner"):
        items[item].append({"model_a": str(a), "model_b": str(b)}.get(str(winner), "tie"))
    agree = [x == y for votes in items.values() for x, y in combinations(votes, 2)]
    assert sum(agree) / len(agree) == pytest.approx(0.6554, abs=5e-5)
    assert [item for (item,) in columns_of(theirs, "item_id")] == [
        item for (item,) in source.project("item_id").fetchall()
    ]
