"""Votes in layouts that nobody knows: one message with the options that read them; and members
of nested columns; and people and language models in one file."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rating import RateOptions
from rating.errors import DataError, LayoutError
from rating.tables.columns import KNOWN, Columns, Reading
from rating.tables.counts import rate_source, read_votes
from rating.tables.files import Files
from rating.tables.voter_report import check_source
from tests.rating.tables.peer_rows import written
from tests.rating.tables.sources import PLAIN, cells, messages_of

Rows = list[dict[str, Any]]


def of_label_studio(a: str, b: str, choice: str, who: str) -> dict[str, Any]:
    result = [{"from_name": "pref", "type": "choices", "value": {"choices": [choice]}}]
    annotation = {"completed_by": {"email": who}, "result": result}
    return {"id": 7, "data": {"model_a": a, "model_b": b}, "annotations": [annotation]}


def of_argilla(a: str, b: str, value: str, who: str) -> dict[str, Any]:
    fields = {"prompt": "2 + 2?", "model-1": a, "model-2": b}
    return {"fields": fields, "responses": {"preference": [{"value": value, "user_id": who}]}}


def table(columns: str, *rows: str) -> Rows:
    return [dict(zip(columns.split(), row.split(), strict=True)) for row in rows]


EXPECTED = [("x", "y", "model_a"), ("y", "x", "model_b"), ("x", "y", "tie")]
"""What each of the layouts below says, unless it has no ties."""

UNKNOWN: dict[str, Rows] = {
    "sides.csv": table(
        "left_model right_model choice annotator when",
        "x y left ada 2024-01-01",
        "y x right bob 2024-01-02",
        "x y tie ada 2024-01-03",
    ),
    "camel.jsonl": table("modelA modelB preference worker", "x y A 1", "y x B 2", "x y equal 2"),
    "numbers.tsv": table("system_1 system_2 better email", "x y 1 a@b", "y x 2 b@b", "x y 0 b@b"),
    "scores.csv": table("player_a player_b result", "x y 1.0", "y x 0.0", "x y 0.5"),
    "names.csv": table("llm_x llm_y verdict rater", "x y x ada", "y x x bob", "x y tie ada"),
    "unnamed.csv": table("alpha beta gamma", "x y x", "y x x", "x y tie"),
    "better.csv": table("model_a model_b b_is_better", "x y False", "y x true", "x y ?")[:2],
    "index.jsonl": [
        {"candidates": ["x", "y"], "best": 0},
        {"candidates": ["y", "x"], "best": 1},
        {"candidates": ["x", "y"], "best": 2},
    ],
    "index.csv": table("model_a model_b winner_index", "x y 0", "y x 1"),
    "sides.parquet": table("system_1 system_2 rating_1 rating_2 loser", "x y 9 2 system_2")
    + table("system_1 system_2 rating_1 rating_2 loser", "y x 1 8 system_1"),
    "worse.csv": table("model_a model_b worse", "x y B", "y x A", "x y same"),
    "drawn.csv": table("llm_x llm_y verdict", "x y x", "y x x", "x y draw"),
    "german.csv": table("Modell_A Modell_B Besser Bewerter", "x y A 1", "y x B 2", "x y gleich 2"),
    "spoken.json": [
        {"model_a": "x", "model_b": "y", "said": "A is better"},
        {"model_a": "y", "model_b": "x", "said": "A is much worse"},
        {"model_a": "x", "model_b": "y", "said": "equally good, a draw"},
    ],
    "over.json": [
        {"model_a": "x", "model_b": "y", "said": "A over B"},
        {"model_a": "y", "model_b": "x", "said": "B over A"},
    ],
    "candidate.csv": table("candidate baseline outcome", "x y win", "y x loss", "x y tie"),
    "arrows.json": table("first second label", "x y A>>B", "y x B>A", "x y A=B"),
    "label_studio.json": [
        of_label_studio("x", "y", "left", "ada@x.org"),
        of_label_studio("y", "x", "right", "bob@x.org"),
        of_label_studio("x", "y", "Tie", "bob@x.org"),
    ],
    "argilla.json": [
        of_argilla("x", "y", "response-1", "u1"),
        of_argilla("y", "x", "response-2", "u2"),
        of_argilla("x", "y", "equal", "u2"),
    ],
}


def with_options(error: LayoutError, path: Path) -> Files:
    """Read the options of an error as a command does."""
    pairs = list(zip(error.options[::2], error.options[1::2], strict=True))
    columns = [value.partition("=")[::2] for name, value in pairs if name == "--column"]
    labels = [value.rpartition("=")[::2] for name, value in pairs if name == "--label"]
    named = tuple((KNOWN[role][0], name) for role, name in columns)
    return Files((path,), named, None, tuple(labels))


@pytest.mark.parametrize("name", UNKNOWN)
def test_one_message_gives_the_options_that_read_an_unknown_layout(
    name: str, tmp_path: Path
) -> None:
    path = written(tmp_path, name, UNKNOWN[name])
    with pytest.raises(LayoutError, match=r"The layout of .* is not known") as raised:
        read_votes(path, PLAIN)
    expected = pd.DataFrame(EXPECTED, columns=["model_a", "model_b", "winner"])
    if len(UNKNOWN[name]) == 2:
        expected = expected[:2]
    assert bool(raised.value.other) == (name == "scores.csv")
    assert cells(read_votes(with_options(raised.value, path), PLAIN)) == cells(
        read_votes(expected, PLAIN)
    )


@pytest.mark.parametrize("n", [3, 3_000])
def test_a_list_of_votes_inside_an_object_is_named(n: int, tmp_path: Path) -> None:
    votes = [dict(zip(("model_a", "model_b", "winner"), EXPECTED[0], strict=True))] * n
    path = written(tmp_path, "export.json", [{"votes": votes}])
    with pytest.raises(LayoutError, match="If its 'votes' are the votes, save that list"):
        read_votes(path, PLAIN)


EITHER = {
    "choice": ["1", "0", "0.5"],
    "score": ["2", "-1", "0"],
    "likert": ["1", "7", "4"],
    "code": ["1", "2", "0"],
    "result": ["win", "loss", "draw"],
}
"""Labels of `EXPECTED` by the first way to read them, where two ways make sense."""


@pytest.mark.parametrize("name", EITHER)
def test_labels_that_can_be_read_in_two_ways_take_two_commands(name: str, tmp_path: Path) -> None:
    rows = [
        {"model_a": a, "model_b": b, name: label}
        for (a, b, _), label in zip(EXPECTED, EITHER[name], strict=True)
    ]
    path = written(tmp_path, "votes.csv", rows)
    with pytest.raises(LayoutError, match=r"or the other way round") as raised:
        read_votes(path, PLAIN)
    first, second = (
        cells(read_votes(with_options(LayoutError("", some), path), PLAIN))
        for some in (raised.value.options, raised.value.other)
    )
    expected = pd.DataFrame(EXPECTED, columns=["model_a", "model_b", "winner"])
    assert first == cells(read_votes(expected, PLAIN))
    turned = {"model_a": "model_b", "model_b": "model_a", "tie": "tie"}
    if name == "code":  # 0, 1, 2 may count from the first side on
        turned = {"model_a": "model_b", "model_b": "tie", "tie": "model_a"}
    assert second == cells(read_votes(expected.assign(winner=expected.winner.map(turned)), PLAIN))


def test_who_was_chosen_and_who_was_rejected_needs_no_labels(tmp_path: Path) -> None:
    path = written(
        tmp_path, "votes.csv", table("chosen_model rejected_model", "x y", "y x", "x y")
    )
    with pytest.raises(LayoutError) as raised:
        read_votes(path, PLAIN)
    votes = read_votes(with_options(raised.value, path), PLAIN)
    assert cells(votes) == {("x", "y", "model_a"): 2, ("y", "x", "model_a"): 1}


def test_a_label_that_nothing_is_known_of_is_left_to_be_filled_in(tmp_path: Path) -> None:
    rows = table("model_a model_b choice", "x y A", "x y B", "x y C")
    with pytest.raises(LayoutError, match="Put model_a, model_b, tie or both_bad for") as raised:
        read_votes(written(tmp_path, "votes.csv", rows), PLAIN)
    assert raised.value.options[-1] == "C=OUTCOME"


@pytest.mark.parametrize(
    "labels", [("1", "2", "0"), ("MODEL_A", "MODEL_B", "TIE"), ("B<A", "A<B", "A=B")]
)
def test_unknown_labels_of_a_known_column_take_one_command(
    labels: tuple[str, ...], tmp_path: Path
) -> None:
    rows = [
        {"model_a": a, "model_b": b, "winner": label}
        for (a, b, _), label in zip(EXPECTED, labels, strict=True)
    ]
    path = written(tmp_path, "votes.csv", rows)
    with pytest.raises(LayoutError, match="Unknown labels in the winner") as raised:
        read_votes(path, PLAIN)
    votes = read_votes(with_options(raised.value, path), PLAIN)
    assert cells(votes) == dict.fromkeys(EXPECTED, 1)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("swapped", "'swapped' is not used. If it says that the sides are exchanged"),
        ("is_tie", "'is_tie' is not used. If it says that the vote is a tie"),
        ("ranking", "Rankings of several models are read by arena rank"),
    ],
)
def test_a_column_that_may_change_the_winner_is_pointed_out(
    column: str, words: str, tmp_path: Path
) -> None:
    rows = table(f"left_model right_model {column}", "x y True", "y x False")
    with pytest.raises(LayoutError, match=words):
        read_votes(written(tmp_path, "votes.csv", rows), PLAIN)


def test_scores_of_each_side_are_no_winner(tmp_path: Path) -> None:
    rows = table("model_a model_b rank_a rank_b", "x y 1 2", "y x 2 1", "x y 1 1")
    words = "'rank_a' and 'rank_b' hold a score of each side"
    with pytest.raises(LayoutError, match=words) as raised:
        read_votes(written(tmp_path, "votes.csv", rows), PLAIN)
    assert raised.value.options == ("--column", "winner=NAME")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("judge", ["human", "gpt-4o"]),
        ("is_human", ["true", "false"]),
        ("rater_kind", ["person", "model"]),
    ],
)
def test_people_and_judges_are_refused_however_they_are_told_apart(
    column: str, values: list[str | None], tmp_path: Path
) -> None:
    path = written(tmp_path, "votes.csv", _rows(column, values))
    with pytest.raises(DataError, match="mixes votes of people") as raised:
        read_votes(path, PLAIN)
    for where in re.findall(r'--where "([^"]*)"', str(raised.value)):
        assert read_votes(Files((path,), where=where), PLAIN).data.n_votes == 1


def test_voters_called_like_language_models_are_mentioned(tmp_path: Path) -> None:
    rows = _rows("voter", ["ada", "gpt-4-turbo"])
    _, words = messages_of(read_votes, written(tmp_path, "votes.csv", rows))
    assert "1 of 2 voters are called like language models, such as 'gpt-4-turbo'" in words[0]


def test_the_message_lists_the_columns_with_what_each_is_taken_for(tmp_path: Path) -> None:
    path = written(tmp_path, "votes.csv", UNKNOWN["sides.csv"])
    with pytest.raises(LayoutError) as raised:
        read_votes(path, PLAIN)
    lines = str(raised.value).splitlines()[1:-1]
    assert [line.split()[0] for line in lines] == [*UNKNOWN["sides.csv"][0]]
    roles = ["model_a", "model_b", "winner (left = model_a, right = model_b)", "voter", "time"]
    assert [line.endswith(role) for line, role in zip(lines, roles, strict=True)] == [True] * 5


def test_what_was_named_is_not_asked_for_again(tmp_path: Path) -> None:
    path = written(tmp_path, "votes.csv", UNKNOWN["sides.csv"])
    given = Files((path,), (("model_a", "left_model"),), None, (("left", "model_a"),), "choice")
    with pytest.raises(LayoutError) as raised:
        read_votes(given, PLAIN)
    assert raised.value.options[:2] == ("--column", "model_b=right_model")
    assert not {"model_a=left_model", "left=model_a"} & {*raised.value.options}


def test_what_nothing_is_taken_for_is_left_to_be_filled_in(tmp_path: Path) -> None:
    rows = table("red green blue", "a 1.5 ?", "b 2.5 ?")
    with pytest.raises(LayoutError, match="No column is taken for model_a and model_b") as raised:
        read_votes(written(tmp_path, "votes.csv", rows), PLAIN)
    assert raised.value.options[-2:] == ("--column", "winner=NAME")


def test_a_hostile_name_of_a_column_breaks_no_line(tmp_path: Path) -> None:
    rows = [{"a\nb\x1b[2J": "x", "other": "y"}]
    with pytest.raises(LayoutError) as raised:
        read_votes(written(tmp_path, "votes.jsonl", rows), PLAIN)
    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value).splitlines()) == 4


@pytest.mark.parametrize("ending", ["json", "jsonl", "parquet", "csv"])
def test_a_role_is_read_from_a_member_of_a_nested_column(ending: str, tmp_path: Path) -> None:
    rows = UNKNOWN["label_studio.json"]
    if ending == "csv":
        rows = [{k: json.dumps(v) for k, v in row.items()} for row in rows]
    choice = "annotations.0.result.0.value.choices.0"
    named = [("model_a", "data.model_a"), ("model_b", "data.model_b"), ("winner", choice)]
    who = ("voter", "annotations.0.completed_by.email")
    labels = (("left", "model_a"), ("right", "model_b"), ("Tie", "tie"))
    path = written(tmp_path, f"votes.{ending}", rows)
    files = Files((path,), (), None, labels, choice)
    votes = read_votes(files, Reading(columns=Columns.named([*named, who])))
    assert (votes.voters, votes.data.n_votes) == (("ada@x.org", "bob@x.org"), 3)


def test_a_path_that_leads_nowhere_is_refused_with_those_there_are(tmp_path: Path) -> None:
    path = written(tmp_path, "votes.json", UNKNOWN["label_studio.json"])
    files = Files((path,), (("model_a", "data.modle_a"),))
    with pytest.raises(DataError, match=r"value in 'data.modle_a'; there are 'data.model_a', "):
        read_votes(files, PLAIN)


def test_kaggles_file_without_votes_is_named(tmp_path: Path) -> None:
    row = {"id": 1, "prompt": '["hi"]', "response_a": '["x"]', "response_b": '["y"]'}
    with pytest.raises(DataError, match=r"Kaggle 55k \(test\), no votes: arena judge run reads"):
        read_votes(written(tmp_path, "test.csv", [row]), PLAIN)


def _rows(column: str, values: list[str | None], **more: str) -> Rows:
    base = {"model_a": "x", "model_b": "y", "winner": "model_a"}
    return [{**base, **more, column: value} for value in values]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("judge", ["gpt-4", None]), ("judge_model", ["claude", ""]), ("judge_name", ["o3", None]),
        ("source", ["human", "gpt-4o-mini"]), ("annotator_type", ["Expert", "LLM"]),
        ("label_source", ["crowd", "model"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_votes_of_people_and_verdicts_in_one_file_are_refused_with_both_ways_out(
    column: str, values: list[str | None], ending: str, tmp_path: Path
) -> None:
    path = written(tmp_path, f"votes.{ending}", _rows(column, [*values, values[0]]))
    with pytest.raises(DataError, match=r"mixes votes of people .1 row. and|.2 rows.") as raised:
        read_votes(path, PLAIN)
    ways = str(raised.value).split('--where "')[1:]
    n = [read_votes(Files((path,), (), way.split('"')[0]), PLAIN).data.n_votes for way in ways]
    assert sorted(n) == [1, 2]
    boards = rate_source(path, RateOptions(by=column, interval="none", ridge=1.0)).to_dict()
    assert sum(group["votes"]["used"] for group in boards["groups"].values()) == 3


def test_votes_in_order_are_refused_as_counted_ones_are(tmp_path: Path) -> None:
    path = written(tmp_path, "votes.csv", _rows("judge", ["gpt-4", None], voter="ada"))
    with pytest.raises(DataError, match="mixes votes of people"):
        check_source(path)


def test_frames_are_refused_as_files_are() -> None:
    with pytest.raises(DataError, match="mixes votes of people"):
        read_votes(pd.DataFrame(_rows("judge", ["gpt-4", None])))


@pytest.mark.parametrize(
    "values", [["human", "human"], ["gpt-4", "claude"], ["humaneval", "mbpp"]]
)
def test_a_source_of_one_kind_is_no_mixture(values: list[str | None], tmp_path: Path) -> None:
    path = written(tmp_path, "votes.csv", _rows("source", values))
    assert read_votes(path, PLAIN).data.n_votes == 2


def test_what_does_not_count_mixes_nothing(tmp_path: Path) -> None:
    rows = _rows("judge", ["gpt-4"], left_out="") + _rows("judge", [None], left_out="a test")
    assert read_votes(written(tmp_path, "votes.csv", rows), PLAIN).data.n_votes == 1


@pytest.mark.parametrize("more", [{}, {"voter": ""}])
def test_a_judge_is_no_voter_and_several_are_mentioned(
    more: dict[str, str], tmp_path: Path
) -> None:
    path = written(tmp_path, "votes.csv", _rows("judge", ["gpt-4", "claude"], **more))
    votes, words = messages_of(read_votes, path)
    assert votes.voters == ()
    assert words == [
        f"{path}: verdicts of several judges ('claude', 'gpt-4') are rated together. Rate each "
        "by itself with --by judge. If they are people, add --column voter=judge."
    ]
    named, words = messages_of(read_votes, path, Reading(columns=Columns(voter="judge")))
    assert (named.voters, words) == (("claude", "gpt-4"), [])
