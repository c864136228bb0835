"""Attacks on votes that were cast: what they move with defences on and off."""

import csv
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from rating import fit
from rating.errors import DataError
from rating.influence import certify
from rating.rows import VoteRows
from rating.tables.columns import Reading
from rating.tables.counts import read_rows
from rating.tables.voter_report import Attack, Strategy, _with, simulate
from tests.command import invoke, refused
from tests.rating.attacked import NAMES, Arena


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The honest arena of docs/guides/publish-and-verify.md: 2,754 votes."""
    votes = Arena().draw(np.random.default_rng(5))
    path = tmp_path_factory.mktemp("attacked") / "votes.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model_a", "model_b", "winner", "voter"])
        for a, b, won, voter in zip(
            votes.left, votes.right, votes.score, votes.voter, strict=True
        ):
            winner = "model_a" if won else "model_b"
            writer.writerow([NAMES[a], NAMES[b], winner, f"v{voter}"])
    return path


@pytest.fixture(scope="module")
def cast(source: Path) -> VoteRows:
    return read_rows(str(source), Reading(both_bad="tie", ordered=True))


def documented() -> list[tuple[str, str, str, str, str]]:
    """Return the rows of the table in docs/guides/publish-and-verify.md."""
    guides = Path(__file__).parents[3] / "docs" / "guides"
    page = (guides / "publish-and-verify.md").read_text(encoding="utf-8")
    table = page.split("attackers' votes excluded |\n", 1)[1].split("\n\n", 1)[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()]
    return [(row[0], row[1], row[2], row[3], row[4]) for row in rows[1:]]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("strategy", "ring", "off", "on", "left_out"), documented())
def test_the_page_says_what_attacks_on_this_arena_gain(
    cast: VoteRows, strategy: Strategy, ring: str, off: str, on: str, left_out: str
) -> None:
    accounts, each = map(int, ring.split(" x "))
    result = simulate(cast, Attack(strategy, accounts, each, "m4"), runs=3)
    assert len(cast.voter) == 2754
    for moved, shown in ((result.off, off), (result.on, on)):
        assert f"{moved.points:z.0f}, {moved.ranks:z.1f}" == shown
    assert f"{100 * result.left_out:.0f}%" == left_out


def test_the_page_has_every_strategy_twice() -> None:
    shown = [row[:2] for row in documented()]
    rings = ("50 x 20", "10 x 100")
    assert shown == [(one, ring) for one in get_args(Strategy) for ring in rings]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("strategy", "each", "remains"),
    [("fan", 40, 0.4), ("target", 12, 0.4), ("omnipresent", 40, 1)],
)
def test_a_ring_that_pushes_a_model_moves_it_and_is_stopped(
    cast: VoteRows, strategy: Strategy, each: int, remains: float
) -> None:
    result = simulate(cast, Attack(strategy, 50, each, "m4"), runs=1)
    assert result.model == "m4"
    assert result.off.points > 80
    assert result.off.ranks >= 2
    assert result.honest_left_out < 0.05
    assert abs(result.on.points) < remains * result.off.points


@pytest.mark.slow
def test_so_large_an_attack_that_its_rule_is_held_passes(cast: VoteRows) -> None:
    """Two of five votes: whether these or the others are honest, a program cannot say."""
    result = simulate(cast, Attack("target", 50, 40, "m4"), runs=1)
    assert (result.left_out, result.on) == (0, result.off)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("strategy", "stopped"), [("inverted", False), ("always-left", True), ("random", False)]
)
def test_careless_accounts_move_somebody_and_one_sided_ones_are_left_out(
    cast: VoteRows, strategy: Strategy, stopped: bool
) -> None:
    result = simulate(cast, Attack(strategy, 4, 100), runs=1)
    assert abs(result.off.points) > 3
    if stopped:
        assert result.left_out == 1
        assert abs(result.on.points) < abs(result.off.points)


@pytest.mark.parametrize(
    ("strategy", "pushed", "rival", "better"),
    [
        ("fan", 1, 0.55, 0.85),
        ("omnipresent", 1, 0, 0.85),
        ("inverted", 0.55, 0.45, 0.15),
        ("always-left", 0.5, 0.5, 0.5),
        ("random", 0.5, 0.5, 0.5),
    ],
)
def test_attackers_vote_as_their_strategy_says(
    cast: VoteRows, strategy: Strategy, pushed: float, rival: float, better: float
) -> None:
    """Of m0 to m9, each stronger than the one before; m4 is pushed, m5 and m6 are its rivals."""
    attack, rng = Attack(strategy, 40, 50, "m4"), np.random.default_rng(1)
    votes = _with(cast, attack, 4, np.linspace(-2, 2, 10), rng)
    new = votes.taken(votes.voter >= len(cast.names["voter"]))
    rivals = new.on(5) ^ new.on(6)
    for left, rows, share in (
        (new.a == 4, new.on(4), pushed),
        (np.isin(new.a, (5, 6)), rivals & ~new.on(4), rival),
        (new.a > new.b, ~rivals & ~new.on(4), better),
    ):
        won = np.where(left, new.score, 1 - new.score)[rows].mean()
        assert won == pytest.approx(share, abs=0 if share in (0, 1) else 0.1)
    assert (new.n, bool(new.score.all())) == (2000, strategy == "always-left")


def test_a_rule_that_is_held_stops_nobody(cast: VoteRows) -> None:
    result = simulate(cast, Attack("always-left", 12, 100), runs=1)
    assert (result.left_out, result.on) == (0, result.off)


def test_the_first_ranks_hold_against_some_accounts(cast: VoteRows) -> None:
    result = simulate(cast, Attack("fan", 1, 5), runs=1)
    fitted = fit(cast.comparisons())
    best_first = sorted(zip(-fitted.theta, fitted.models, strict=True))
    assert result.model == best_first[5][1], "of ten models the first of the worse half"
    assert [held.ranks for held in result.holds] == [1, 2, 3, 4, 5]
    votes = [held.votes for held in result.holds]
    assert votes == sorted(votes, reverse=True)
    assert all(held.accounts == held.votes // 5 for held in result.holds)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_attack(cast: VoteRows) -> None:
    attack = Attack("fan", 5, 10)
    assert simulate(cast, attack, runs=1) == simulate(cast, attack, runs=1)
    assert simulate(cast, attack, runs=1, seed=1).off != simulate(cast, attack, runs=1).off


def test_attacks_of_nobody_and_for_nobody_are_refused(cast: VoteRows) -> None:
    with pytest.raises(DataError, match="1 or more each, not 0, 10 and 5"):
        simulate(cast, Attack("fan", 0, 10))
    with pytest.raises(DataError, match="no model 'nobody' to push"):
        simulate(cast, Attack("fan", 1, 10, "nobody"))


def test_an_attack_on_a_board_of_few_voters_is_refused_in_one_sentence() -> None:
    rows = np.arange(28)
    few = VoteRows.scored(
        ("m", "n"), rows % 2, 1 - rows % 2, (rows % 3 > 0).astype(np.float64), rows // 2
    )
    with pytest.raises(DataError, match=r"^Too little data: the votes are of 14 voters, .* 15"):
        simulate(few, Attack("fan", 5, 10))


def test_level_ranks_hold_against_no_vote() -> None:
    level = np.ones((3, 3)) - np.eye(3)
    assert {held.votes for held in certify(level, 10)} == {0}


def test_a_strategy_that_is_none_is_refused(source: Path) -> None:
    refused(invoke(["attack", str(source), "--strategy", "flood"]), "flood")
