"""What neighbours take to be told apart, and who moved between two boards."""

import math
import re
from pathlib import Path

import pytest

from rating.decide import GateOptions, votes_for_even_models
from rating.errors import DataError
from rating.options import Clusters
from rating.planning import votes_to_separate
from rating.tables.voter_report import APART, SAME, compare, read_board
from rating.variants import POINTS_PER_NAT
from tests.command import invoke
from tests.rating.boards.rated import PAIRS, Write, crowd, planned, rated


def test_a_plan_says_what_separates_neighbours(write: Write) -> None:
    plan = planned(write(crowd() + "y,x,tie,v1,p1\n" * 2)).to_dict()
    assert [len(plan["neighbours"]), plan["votes"]] == [2, 92]
    assert plan["leads"][50] == 382  # a tie as half a win is a vote as others, as for a gate
    surer = planned(write(crowd()), ties="davidson", level=0.99)
    first = surer.neighbours[0]
    for lead, needed in ((50, surer.leads[50]), (first.lead, first.head_to_head)):
        assert needed == votes_to_separate(lead, level=0.99, tie_rate=surer.tie_rate)
    plain = plan["neighbours"][0]
    assert [pair["met"] for pair in plan["neighbours"]] == [32, 30]
    assert plain["separated"] == (plain["more_votes"] == 0)
    with pytest.raises(DataError, match="'bootstrap'"):
        planned(write(crowd()), interval="bootstrap")


def test_a_plan_and_a_gate_take_as_many_votes_for_a_lead(write: Write) -> None:
    ask = GateOptions(candidate="x", incumbent="y", margin=20, looks=1)
    tied = planned(write(PAIRS.splitlines()[0] + "\nx,y,30,20,50\n"))
    assert tied.leads[20] == pytest.approx(votes_for_even_models(ask, there=0), rel=0.01)
    (pair,) = tied.neighbours
    assert (pair.head_to_head, tied.tie_rate) == (votes_to_separate(pair.lead), 0.5)


def test_a_plan_estimates_nothing_from_less_than_a_gate_does(write: Write) -> None:
    source = write(crowd(n_voters=5))
    few = planned(source)
    assert "It takes 15 effective voters" in few.warnings[0]
    names = ", ".join(f"{pair.ahead} and {pair.behind}" for pair in few.neighbours)
    assert few.warnings[0].startswith(f"The votes to separate these are not estimated: {names}. ")
    for pair in few.neighbours:
        assert pair.separated or (pair.more_votes, pair.more_votes_pair) == (None, None)
        assert pair.head_to_head is None
    shown = invoke(["plan", source], 120).stdout
    assert len(re.findall(r"│ +5 │ +– │ +– │ +– │", shown)) == 2
    assert "! The votes to separate these are not estimated: " in shown


@pytest.mark.parametrize("cluster", ["voter", "prompt", "none"])
def test_the_error_of_a_lead_is_that_of_the_board(write: Write, cluster: Clusters) -> None:
    """Of two models, each half of the lead from the average."""
    head, *rows = crowd(n_voters=60).splitlines()
    source = write("\n".join([head, *(row for row in rows if "z" not in row[:3])]))
    [pair] = planned(source, cluster=cluster).neighbours
    board = rated(source, cluster=cluster)["ratings"]
    assert pair.lead == pytest.approx(board[0]["rating"] - board[1]["rating"])
    assert pair.se == pytest.approx(2 * board[0]["se"])


def test_neighbours_that_are_level_take_no_number_of_votes(write: Write) -> None:
    rows = "x,y,30,20,0\ny,z,30,20,0\nz,x,30,20,0\n"
    plan = planned(write(PAIRS.splitlines()[0] + "\n" + rows))
    assert [(pair.head_to_head, pair.more_votes) for pair in plan.neighbours] == [(None, None)] * 2


def test_few_voters_make_a_move_as_uncertain_as_they_are(write: Write) -> None:
    """Five voters on either board: Student's t of about eight degrees of freedom."""
    first = rated(write(crowd(n_voters=5)))
    second = first | {"method": first["method"] | {"data_hash": "others"}}
    change = compare(first, second)
    move, row = change["moved"][0], first["ratings"][0]
    assert move["df"] == pytest.approx(2 * row["df"], rel=0.5)
    half, normal = (move["upper"] - move["lower"]) / 2, 1.959964 * math.sqrt(2) * row["se"]
    assert half > 1.08 * normal
    assert change["note"] == APART
    surer = rated(write(crowd(n_voters=5)), level=0.99)
    assert compare(surer, second)["moved"][0]["upper"] == pytest.approx(move["upper"])


def test_a_board_of_before_is_taken_as_normal_and_that_is_said(write: Write) -> None:
    new = rated(write(crowd(n_voters=5)))
    old = new | {"method": new["method"] | {"data_hash": "others"}}
    bare = [{k: v for k, v in row.items() if k != "df"} for row in old["ratings"]]
    known, unknown = compare(old, new), compare(old | {"ratings": bare}, new)
    width = [
        change["moved"][0]["upper"] - change["moved"][0]["lower"] for change in (known, unknown)
    ]
    assert width[1] < width[0]
    assert "board in old does not say its degrees of freedom" in unknown["note"]
    assert compare(old, new)["note"] == APART


def test_a_comparison_says_who_moved(write: Write, tmp_path: Path) -> None:
    old = rated(write(PAIRS + "y,w,5,5,0\n"))
    new = rated(write(PAIRS.replace("x,y,30,10", "x,y,30,60") + "y,v,5,5,0\n"))
    change = compare(old, new)
    assert [change[name] for name in ("gone", "added", "same_votes")] == [["w"], ["v"], False]
    move = {row["model"]: row for row in change["moved"]}["x"]
    assert move["moved"] == pytest.approx(POINTS_PER_NAT * (-math.log(2) - math.log(3)) * 2 / 3)
    assert (move["rank_old"], move["rank_new"]) == (1, 3)
    assert move["old"] + move["moved"] == pytest.approx(move["new"])
    assert move["lower"] < move["moved"] < move["upper"]
    assert change["note"] == APART
    assert compare(old, old)["note"] == SAME
    assert compare(old, old)["moved"][0]["lower"] is None
    with pytest.raises(DataError, match=r"ties was 'half', and is 'davidson'"):
        compare(old, rated(write(PAIRS), ties="davidson"))
    file = tmp_path / "old.json"
    for text, word in [("[]", "something else"), ("{", "Expecting"), ('{"groups": {}}', "groups")]:
        file.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=word):
            read_board(file)
