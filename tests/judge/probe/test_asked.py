"""Votes laid to the pairs that they are on: sides turned, ties and doubtful rows left out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from judge.case import Case, Message
from judge.probe.asked import some_of, voted_pairs
from judge.probe.people import VotedPairs
from judge.tables.cases import NamedCase, read_cases
from rating.errors import DataError

CASES = (
    "prompt,response_a,response_b,model_a,model_b,battle_id,item_id",
    "Why?,Because.,So.,x,y,b1,i1",
    "Who?,Me.,You.,x,y,b2,i2",
    "Why?,Alas.,So.,z,y,b3,i3",
)


def written(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(folder: Path, cases: Sequence[str], votes: Sequence[str] | None = None) -> VotedPairs:
    path = written(folder / "pairs.csv", cases)
    file = None if votes is None else written(folder / "votes.csv", votes)
    return voted_pairs(read_cases([path]), [str(path)], file)


def votes_of(folder: Path, votes: Sequence[str]) -> dict[str, list[float]]:
    voted = read(folder, CASES, votes)
    return dict(zip(voted.responses_a, voted.votes.tolist(), strict=True))


def test_votes_may_stand_beside_the_cases(tmp_path: Path) -> None:
    voted = read(
        tmp_path,
        (
            "prompt,response_a,response_b,winner",
            "Why?,Because.,So.,model_a",
            "Who?,Me.,You.,tie",
            "Why?,So.,Because.,model_a",
            "Why?,Because.,So.,model_a",
            "What?,This.,That.,",
        ),
    )
    assert voted.name == "pairs.csv"
    assert voted.prompts == ("Why?", "Who?")
    assert voted.responses_a == ("Because.", "Me.")
    assert voted.votes.tolist() == [[2, 1], [0, 0]]


def test_votes_of_another_file_are_matched_and_turned(tmp_path: Path) -> None:
    votes = (
        "battle_id,model_a,model_b,winner",
        "b1,x,y,model_a",
        "b1,y,x,model_a",
        "b1,y,x,model_a",
        "b3,z,y,both_bad",
        "elsewhere,p,q,model_a",
    )
    assert votes_of(tmp_path, votes) == {"Because.": [1, 2], "Alas.": [0, 0]}


def test_votes_may_name_items_and_no_models(tmp_path: Path) -> None:
    votes = ("battle_id,item_id,winner", "v1,i2,model_b", "v2,i2,model_b", "v3,i3,model_a")
    assert votes_of(tmp_path, votes) == {"Me.": [0, 2], "Alas.": [1, 0]}


def test_what_is_left_out_or_skipped_is_no_vote(tmp_path: Path) -> None:
    votes = (
        "battle_id,winner,left_out",
        "b1,model_a,",
        "b1,model_a,voter was banned",
        "b1,skip,",
    )
    assert votes_of(tmp_path, votes) == {"Because.": [1, 0]}


def test_a_conversation_is_read_as_the_judge_reads_it(tmp_path: Path) -> None:
    turns = (Message("user", "Hi"), Message("assistant", "Yes?"), Message("user", "Why?"))
    path = written(tmp_path / "votes.csv", ("battle_id,winner", "b1,model_a"))
    named = NamedCase("b1", "p1", "x", "y", Case(turns, "Because.", "So."))
    voted = voted_pairs([named, replace(named, battle_id="b2")], ["arena"], path)
    assert voted.prompts == ("User: Hi\n\nAssistant: Yes?\n\nUser: Why?",)


def test_prompts_of_a_part_are_numbered_anew(tmp_path: Path) -> None:
    votes = ("battle_id,winner", "b1,model_a", "b2,model_b", "b3,model_a")
    voted = read(tmp_path, CASES, votes)
    assert voted.prompt.tolist() == [0, 1, 0]
    part = some_of(voted, [1])
    assert (part.responses_a, part.prompt.tolist()) == (("Me.",), [0])
    np.testing.assert_array_equal(part.votes, [[0, 1]])


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (("battle_id,winner", "b9,model_a"), "No vote in .* counts and is on one of the 3 cases"),
        (("battle_id,winner", "b1,x"), "Row 1 .* has winner 'x'"),
        (("battle_id,model_a,model_b,winner", "b1,x,z,tie"), "the models of the case"),
        (("prompt_id,winner", "b1,tie"), "no column 'battle_id'"),
        (("battle_id,vote", "b1,tie"), "no column 'winner'"),
        (None, "no column 'winner'"),
    ],
)
def test_votes_that_do_not_fit_are_refused(
    tmp_path: Path, votes: Sequence[str] | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, CASES, votes)


def test_votes_have_a_place() -> None:
    with pytest.raises(DataError, match="cases of 'arena' are not known: name their file"):
        voted_pairs([], ["arena"], None)
    with pytest.raises(DataError, match="Cases of 2 files have no votes"):
        voted_pairs([], ["one.csv", "two.csv"], None)
