"""Votes on pairs: matched, sides exchanged, ties and excluded rows not counted; and agreement."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.probe.findings import Votes, human_agreement, votes_on
from judge.probe.robustness import Scores
from judge.tables.cases import read_cases
from rating.errors import DataError
from tests.judge.scripted import case

CASES = (
    "prompt,response_a,response_b,model_a,model_b,battle_id,item_id",
    "Why?,Because.,So.,x,y,b1,i1", "Who?,Me.,You.,x,y,b2,i2", "Why?,Alas.,So.,z,y,b3,i3",
)  # fmt: skip


def written(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(folder: Path, cases: Sequence[str], votes: Sequence[str] | None = None) -> Votes:
    path = written(folder / "pairs.csv", cases)
    file = None if votes is None else written(folder / "votes.csv", votes)
    return votes_on(read_cases([path]), [str(path)], file)


def votes_of(folder: Path, votes: Sequence[str]) -> dict[str, tuple[int, int]]:
    return {case.response_a: summed(of) for case, of in read(folder, CASES, votes).items()}


def summed(people: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(a for a, _ in people), sum(b for _, b in people)


def alone(a: int, b: int) -> list[tuple[int, int]]:
    """Votes for A and for B, each by another person."""
    return [(1, 0)] * a + [(0, 1)] * b


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
    assert [case.prompt[-1].content for case in voted] == ["Why?", "Who?"]
    assert [case.response_a for case in voted] == ["Because.", "Me."]
    assert [summed(people) for people in voted.values()] == [(2, 1), (0, 0)]


def test_votes_of_another_file_are_matched_and_turned(tmp_path: Path) -> None:
    votes = (
        "battle_id,model_a,model_b,winner", "b1,x,y,model_a", "b1,y,x,model_a",
        "b1,y,x,model_a", "b3,z,y,both_bad", "elsewhere,p,q,model_a",
    )  # fmt: skip
    assert votes_of(tmp_path, votes) == {"Because.": (1, 2), "Alas.": (0, 0)}


def test_votes_may_name_items_and_no_models(tmp_path: Path) -> None:
    votes = ("battle_id,item_id,winner", "v1,i2,model_b", "v2,i2,model_b", "v3,i3,model_a")
    assert votes_of(tmp_path, votes) == {"Me.": (0, 2), "Alas.": (1, 0)}


def test_votes_may_name_prompts_and_models(tmp_path: Path) -> None:
    cases = [f"{row},{name}" for row, name in zip(CASES, ("prompt_id", *"pqp"), strict=True)]
    votes = ["question_id,model_a,model_b,winner", "p,y,x,model_a", "p,z,y,tie", "r,x,y,tie"]
    counts = read(tmp_path, cases, votes)
    assert {one.response_a: summed(both) for one, both in counts.items()} == {
        "Because.": (0, 1),
        "Alas.": (0, 0),
    }
    cases[3] = cases[3].replace("z,y", "x,y")
    with pytest.raises(DataError, match=r"Several cases .* are on one item by .*'b1' and 'b3'"):
        read(tmp_path, cases, votes)


def test_what_is_left_out_or_skipped_is_no_vote(tmp_path: Path) -> None:
    votes = ("battle_id,winner,left_out", "b1,model_a,", "b1,model_a,voter was banned", "b1,skip,")
    assert votes_of(tmp_path, votes) == {"Because.": (1, 0)}


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (("battle_id,winner", "b9,model_a"), "by battle_id, 'b1' in .*pairs.csv' and 'b9' in"),
        (("battle_id,winner", "b1,x"), "Row 1 .* has winner 'x'"),
        (("battle_id,model_a,model_b,winner", "b1,x,z,tie"), "Item 'b1' in .* is on other models"),
        (("prompt_id,winner", "b1,tie"), "Neither an item_id, .*votes.csv' has none"),
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
    with pytest.raises(
        DataError, match="votes on cases of 'arena' are unknown: name them with --votes"
    ):
        votes_on([], ["arena"], None)
    with pytest.raises(DataError, match="Cases of 2 files have no votes"):
        votes_on([], ["one.csv", "two.csv"], None)


def test_people_who_agree_on_two_pairs_of_three_set_the_upper_bound() -> None:
    """Two pairs of votes 2:0 and one of 1:1; the pair with one vote tells nothing of agreement."""
    counts = [(2, 0), (0, 2), (1, 1), (1, 0)]
    votes = {case(at): alone(*of) for at, of in enumerate(counts)}
    sides = zip(votes, (0.0, 1.0, 0.0, 1.0), strict=True)
    scores: Scores = {one.id: score for one, score in sides}
    agreement = human_agreement(votes, scores)
    assert agreement is not None
    assert agreement["n"] == 3
    assert agreement["people_agree"]["rate"] == pytest.approx(2 / 3)
    assert agreement["highest"]["rate"] == pytest.approx((1 + math.sqrt(1 / 3)) / 2)
    assert agreement["reached"]["rate"] == pytest.approx((1 + 1 + 1 / 2) / 3)
    for name in ("people_agree", "highest", "reached"):
        ends = agreement[name]
        assert ends["lower"] < ends["rate"] < ends["upper"]


def test_a_tie_agrees_with_half_of_the_people_and_no_verdict_with_none() -> None:
    votes = {case(0): alone(3, 1), case(1): alone(2, 0)}
    agreement = human_agreement(votes, {case(0).id: 0.5})
    assert agreement is not None
    assert (agreement["n"], agreement["reached"]["rate"]) == (2, 0.5)


def test_votes_of_one_person_on_a_pair_are_not_those_of_two_people(tmp_path: Path) -> None:
    """Three votes of one person and one of another who disagrees: no two people agree."""
    cast = [f"b1,{voter},{side}" for voter, side in zip("vvvw", "AAAB", strict=True)]
    votes = [one.replace("A", "model_a").replace("B", "model_b") for one in cast]
    counts = read(tmp_path, CASES, ["battle_id,voter,winner", *votes, "b2,v,model_a", "b2,v,tie"])
    assert sorted(map(sorted, counts.values())) == [[(0, 1), (3, 0)], [(1, 0)]]
    agreement = human_agreement(counts, {})
    assert agreement is not None
    assert (agreement["n"], agreement["people_agree"]["rate"]) == (1, 0.0)


def test_votes_without_a_voter_are_by_different_people(tmp_path: Path) -> None:
    votes = ("battle_id,voter,winner", "b1,,model_a", "b1,,model_a")
    agreement = human_agreement(read(tmp_path, CASES, votes), {})
    assert agreement is not None
    assert agreement["people_agree"]["rate"] == 1.0


def test_single_votes_set_no_upper_bound() -> None:
    assert human_agreement({case(0): alone(1, 0), case(1): alone(0, 1)}, {}) is None


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20))
def test_no_judge_is_above_the_upper_bound(shares: list[int]) -> None:
    """As many votes as there are people: a judge with the majority reaches what can be reached."""
    votes = {case(at): alone(a, 1000 - a) for at, a in enumerate(shares)}
    majority: Scores = {case(at).id: float(1000 - a > a) for at, a in enumerate(shares)}
    agreement = human_agreement(votes, majority)
    assert agreement is not None
    lowest, highest = agreement["people_agree"]["rate"], agreement["highest"]["rate"]
    assert max(lowest, 0.5) - 1e-5 <= agreement["reached"]["rate"] <= highest + 0.02
