from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sqlmodel import col, select

from arena.domain.board import Board
from arena.domain.policy import DEFAULT
from arena.domain.vote import Choice
from arena.domain.voter import VoterKind
from arena.publish.leaderboard import make_board
from arena.store import chain
from arena.store.records import LoggedVote, ModelRecord
from arena.store.store import Store
from arena.store.tables import RatingRow, RatingRunRow
from rating import Comparisons, standings
from tests.serving import Served

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def vote(
    a: str,
    b: str,
    outcome: Choice,
    voter: str = "ada",
    kind: VoterKind = VoterKind.ANONYMOUS,
    exclusions: tuple[str, ...] = (),
) -> LoggedVote:
    return LoggedVote(
        battle_id=f"{a}-{b}",
        prompt_id="p",
        model_a=a,
        model_b=b,
        outcome=outcome,
        voter=voter,
        voter_kind=kind,
        created=NOW - timedelta(days=1),
        pair_probability=1.0,
        pacing="paced",
        seconds_to_vote=5.0,
        exclusions=exclusions,
    )


def board(votes: list[LoggedVote], *models: str) -> Board:
    records = [
        ModelRecord(
            id=m,
            name=m.title(),
            organisation="",
            kind="model",
            battles=10,
            failed=1,
            abandoned=2,
            cost_per_1000=None,
            median_s=1.0,
        )
        for m in models
    ]
    return make_board(votes, records, DEFAULT, "v", NOW)


def many(n: int = 60) -> list[LoggedVote]:
    """Votes of twenty voters: m0 is best, m2 is worst, each now and then beaten."""
    pairs = (("m0", "m1"), ("m1", "m2"), ("m2", "m0"))
    better = {("m0", "m1"): Choice.A, ("m1", "m2"): Choice.A, ("m2", "m0"): Choice.B}
    votes = []
    for i in range(n):
        pair = pairs[i % 3]
        outcome = better[pair] if i % 7 else Choice.TIE if i % 2 else Choice.A
        votes.append(vote(*pair, outcome, voter=f"v{i % 20}"))
    return votes


def test_an_empty_board_says_so_in_words() -> None:
    empty = board([], "m0", "m1")
    assert empty.rows == ()
    assert empty.reason == "There are no votes yet. Play a battle and be the first."
    assert [(w.model, w.reason) for w in empty.waiting] == [
        ("m0", "no votes yet"),
        ("m1", "no votes yet"),
    ]


def test_disconnected_groups_are_not_rated_and_are_named() -> None:
    votes = [vote("m0", "m1", c) for c in (Choice.A, Choice.B)]
    votes += [vote("m2", "m3", c) for c in (Choice.A, Choice.B)]
    apart = board(votes, "m0", "m1", "m2", "m3")
    assert apart.rows == ()
    assert apart.reason is not None
    assert "2 groups" in apart.reason
    assert "m0, m1" in apart.reason


def test_an_undefeated_model_is_not_rated() -> None:
    found = board([vote("m0", "m1", Choice.A)] * 9, "m0", "m1")
    assert found.rows == ()
    assert [(w.model, w.reason, w.votes) for w in found.waiting] == [
        ("m0", "has not lost yet", 9),
        ("m1", "has not won yet", 9),
    ]


def test_a_board_is_a_direct_fit_of_its_votes() -> None:
    votes = many()
    found = board(votes, "m0", "m1", "m2")
    fit = standings(
        Comparisons.from_arrays(
            [v.model_a for v in votes],
            [v.model_b for v in votes],
            [v.outcome.value for v in votes],
            voter=[v.voter for v in votes],
        ),
        rng=np.random.default_rng(0),
    )
    assert [(r.model, r.rating, r.lower, r.upper) for r in found.rows] == [
        (r.model, r.rating, r.lower, r.upper) for r in fit.rows
    ]
    assert (found.votes, found.voters, found.by_voter) == (60, 20, True)
    assert found.reason is None
    assert all(row.lower < row.rating < row.upper for row in found.rows)


def test_the_win_rates_against_the_field_average_one_half() -> None:
    rows = board(many(), "m0", "m1", "m2").rows
    assert np.mean([row.win_rate for row in rows]) == pytest.approx(0.5)
    strengths = [(row.rating - 1000) * np.log(10) / 400 for row in rows]
    best = np.mean([1 / (1 + np.exp(s - strengths[0])) for s in strengths[1:]])
    assert rows[0].win_rate == pytest.approx(best)


def test_skips_simulated_voters_and_exclusions_are_left_out_and_counted() -> None:
    votes = [
        *many(),
        vote("m0", "m1", Choice.SKIP),
        vote("m2", "m1", Choice.A, kind=VoterKind.SIMULATED),
        vote("m2", "m1", Choice.A, exclusions=("told who it was",)),
    ]
    found = board(votes, "m0", "m1", "m2")
    assert found.left_out == {"skipped": 1, "simulated voter": 1, "told who it was": 1}
    assert found.votes == 60
    assert found.rows == board(many(), "m0", "m1", "m2").rows


def test_a_newcomer_does_not_take_the_board_down() -> None:
    votes = [*many(), vote("new", "m0", Choice.A, voter="v1")]
    found = board(votes, "m0", "m1", "m2", "new")
    assert found.rows == board(many(), "m0", "m1", "m2").rows
    assert [(w.model, w.reason) for w in found.waiting] == [("new", "has not lost yet")]
    assert any("Set aside" in warning and "new" in warning for warning in found.warnings)


def test_one_voter_alone_gets_intervals_that_claim_no_more() -> None:
    votes = [vote(v.model_a, v.model_b, v.outcome) for v in many()]
    found = board(votes, "m0", "m1", "m2")
    assert not found.by_voter
    assert all(row.rank_low is None for row in found.rows)
    assert found.warnings


def test_pairs_are_counted_once_with_ties_half() -> None:
    votes = [vote("m1", "m0", Choice.A), vote("m0", "m1", Choice.TIE), vote("m0", "m1", Choice.A)]
    (cell,) = board(votes, "m0", "m1").pairs
    assert (cell.row, cell.column, cell.n, cell.share) == ("m0", "m1", 3, 0.5)


def test_the_board_s_version_follows_the_newest_vote(quick: Served) -> None:
    with quick.visitor() as ada:
        before = ada.get("/api/v1/leaderboard").json()
        assert before["ratings"] == []
        assert before["warnings"] == ["There are no votes yet. Play a battle and be the first."]
        ada.vote(ada.play(), "tie")
        after = ada.get("/api/v1/leaderboard").json()
        assert ada.get("/api/v1/leaderboard").json() == after
    assert before["version"] != after["version"]
    assert set(after) == {"policy", "updated", "version", "votes", "ratings", "warnings"}
    assert after["votes"] == 1


def test_a_rated_board_has_the_promised_fields(quick: Served) -> None:
    with quick.visitor() as ada:
        for outcome in ("tie",) * 6:
            ada.vote(ada.play(), outcome)
        rows = ada.get("/api/v1/leaderboard").json()["ratings"]
    fields = ("model", "rating", "se", "lower", "upper", "rank", "rank_low", "rank_high", "votes")
    assert all(tuple(row) == fields for row in rows)


def test_every_board_is_recorded_once_with_the_votes_it_rests_on(quick: Served) -> None:
    with quick.visitor() as ada:
        for _ in range(8):
            ada.vote(ada.play(), "tie")
        rows = ada.get("/api/v1/leaderboard").json()["ratings"]
        ada.get("/leaderboard")
    store = Store(quick.database)
    with store.reading() as session:
        (run,) = session.exec(select(RatingRunRow)).all()
        recorded = session.exec(select(RatingRow).where(col(RatingRow.run_id) == run.id)).all()
        assert run.head == chain.head(session)
    store.close()
    assert (run.policy, run.votes) == ("default-v1", 8)
    assert {r.model_id: (r.rating, r.lower, r.rank) for r in recorded} == {
        r["model"]: (r["rating"], r["lower"], r["rank"]) for r in rows
    }
