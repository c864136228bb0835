from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from sqlmodel import col, select

from arena.boards.leaderboard import REST, SLOW_S, Leaderboard, make_board
from arena.domain.board_view import Board
from arena.domain.vote import DEFAULT, Choice
from arena.store import chain
from arena.store.store import Store
from arena.store.tables import RatingRow, RatingRunRow
from rating import Comparisons, RateOptions, Report, rate
from rating.tables.counts import rate_source
from tests.arena.boards.log import NOW, Vote, logged, many, records
from tests.serving import Served


def board(votes: Sequence[Vote], *models: str) -> Board:
    return make_board(logged(votes), records(models), DEFAULT, "v", NOW)


def test_an_empty_board_says_so_in_words() -> None:
    empty = board([], "m0", "m1")
    assert empty.rows == ()
    assert empty.reason == "There are no votes yet. Play a battle and be the first."
    assert [(w.model, w.reason) for w in empty.waiting] == [
        ("m0", "no votes yet"),
        ("m1", "no votes yet"),
    ]


def test_disconnected_groups_are_not_rated_and_are_named() -> None:
    votes = [Vote("m0", "m1", c) for c in (Choice.A, Choice.B)]
    votes += [Vote("m2", "m3", c) for c in (Choice.A, Choice.B)]
    apart = board(votes, "m0", "m1", "m2", "m3")
    assert apart.rows == ()
    assert apart.reason is not None
    assert "2 groups" in apart.reason
    assert "m0, m1" in apart.reason


def test_an_undefeated_model_is_not_rated() -> None:
    result = board([Vote("m0", "m1", Choice.A)] * 9, "m0", "m1")
    assert result.rows == ()
    assert [(w.model, w.reason, w.votes) for w in result.waiting] == [
        ("m0", "has not lost yet; needs a loss or a tie", 9),
        ("m1", "has not won yet; needs a win or a tie", 9),
    ]


def test_a_board_is_what_arena_rate_makes_of_the_same_votes(tmp_path: Path) -> None:
    result = board(many(), "m0", "m1", "m2")
    votes = "\n".join(f"{v.a},{v.b},{v.outcome.value},{v.voter}" for v in many())
    (tmp_path / "votes.csv").write_text(f"model_a,model_b,winner,voter\n{votes}\n")
    rated = rate_source(str(tmp_path / "votes.csv"), RateOptions())
    assert isinstance(rated, Report)
    names = ("model", "rating", "se", "lower", "upper", "rank", "rank_low", "rank_high", "votes")
    assert [[getattr(row, name) for name in names] for row in result.rows] == [
        [getattr(row, name) for name in names] for row in rated.ratings
    ]
    assert result.data_hash == rated.provenance.data_hash
    assert result.warnings == tuple(w for w in rated.warnings if "Quasi" not in w)
    assert (result.votes, result.voters, result.by_voter) == (60, 20, True)
    assert result.reason is None


def test_the_win_rates_against_the_field_average_one_half() -> None:
    rows = board(many(), "m0", "m1", "m2").rows
    assert np.mean([row.win_rate for row in rows]) == pytest.approx(0.5)
    strengths = [(row.rating - 1000) * np.log(10) / 400 for row in rows]
    best = np.mean([1 / (1 + np.exp(s - strengths[0])) for s in strengths[1:]])
    assert rows[0].win_rate == pytest.approx(best)


def plain(of: Board) -> list[dict[str, object]]:
    """Rows to compare: a quasi-standard error of three models is NaN, which equals nothing."""
    return [row.to_dict() for row in of.rows]


def test_votes_left_out_are_counted_by_reason_and_move_nothing() -> None:
    votes = [
        *many(),
        Vote("m0", "m1", Choice.SKIP, left_out="skipped"),
        Vote("m2", "m1", Choice.A, left_out="simulated voter"),
        Vote("m2", "m1", Choice.A, voter="new", left_out="told who it was"),
    ]
    result = board(votes, "m0", "m1", "m2")
    assert result.left_out == {"skipped": 1, "simulated voter": 1, "told who it was": 1}
    assert (result.votes, result.voters) == (60, 20)
    assert plain(result) == plain(board(many(), "m0", "m1", "m2"))


def test_a_newcomer_does_not_take_the_board_down() -> None:
    votes = [*many(), Vote("new", "m0", Choice.A, voter="v1")]
    result = board(votes, "m0", "m1", "m2", "new")
    assert plain(result) == plain(board(many(), "m0", "m1", "m2"))
    assert [(w.model, w.reason) for w in result.waiting] == [
        ("new", "has not lost yet; needs a loss or a tie")
    ]
    assert any("Set aside" in warning and "new" in warning for warning in result.warnings)


def test_one_voter_alone_gets_intervals_that_claim_no_more() -> None:
    votes = [Vote(v.a, v.b, v.outcome) for v in many()]
    result = board(votes, "m0", "m1", "m2")
    assert not result.by_voter
    assert all(row.rank_low is None for row in result.rows)
    assert result.warnings


def test_pairs_are_counted_once_with_ties_half() -> None:
    votes = [Vote("m1", "m0", Choice.A), Vote("m0", "m1", Choice.TIE), Vote("m0", "m1", Choice.A)]
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
    assert {"policy", "updated", "version", "votes", "ratings", "warnings"} <= set(after)
    assert after["votes"] == 1


def test_a_rated_board_has_the_promised_fields(quick: Served) -> None:
    with quick.visitor() as ada:
        for outcome in ("tie",) * 6:
            ada.vote(ada.play(), outcome)
        body = ada.get("/api/v1/leaderboard").json()
    fields = ("model", "rating", "se", "lower", "upper", "rank", "rank_low", "rank_high", "votes")
    rows = body["ratings"]
    assert rows
    assert all(tuple(row)[: len(fields)] == fields for row in rows)
    assert (body["voters"], body["ranks_claimed"], body["history"]) == (1, False, [])
    assert len(body["data_hash"]) == 64
    assert sum(pair["n"] for pair in body["pairs"]) == 6
    neighbours = body["neighbours"]
    assert [hold["above"] for hold in neighbours] == [row["model"] for row in rows[:-1]]
    assert all(hold["votes"]["of"] == 6 for hold in neighbours)
    assert all(hold["voters"] is hold["prompts"] is None for hold in neighbours)


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
    assert (run.policy, run.votes) == ("default-v2", 8)
    assert {r.model_id: (r.rating, r.lower, r.rank) for r in recorded} == {
        r["model"]: (r["rating"], r["lower"], r["rank"]) for r in rows
    }


def test_a_weight_a_voter_is_a_fit_of_votes_so_weighted() -> None:
    votes = [*many(), *(Vote("m2", "m0", Choice.A, voter="shill") for _ in range(40))]
    result = board(votes, "m0", "m1", "m2")
    cast = Counter(v.voter for v in votes)
    direct = rate(
        Comparisons.from_arrays(
            [v.a for v in votes],
            [v.b for v in votes],
            [v.outcome.value for v in votes],
            weight=[1 / cast[v.voter] for v in votes],
        )
    )
    assert {row.model: row.voter_rating for row in result.rows} == pytest.approx(
        {row.model: row.rating for row in direct.ratings}
    )
    assert [row.voter_rank for row in result.rows] != [row.rank for row in result.rows]


def test_a_win_rate_lies_in_its_interval() -> None:
    for row in board(many(), "m0", "m1", "m2").rows:
        assert 0 < row.win_rate_low < row.win_rate < row.win_rate_high < 1


def test_a_board_that_takes_long_rests_and_says_how_old_it_is(quick: Served) -> None:
    clock = Clock()
    store = Store(quick.database)
    leaderboard = Leaderboard(store, DEFAULT, clock.now, clock.worked)
    with quick.visitor() as ada:
        ada.vote(ada.play(), "tie")
        first = leaderboard.read()
        ada.vote(ada.play(), "tie")
    clock.moment += timedelta(seconds=REST * Clock.STEP_S - 1)
    assert leaderboard.read() is first
    clock.moment += timedelta(seconds=2)
    assert leaderboard.read().votes == 2
    store.close()


def test_who_asks_while_a_slow_board_is_made_gets_the_last_one(quick: Served) -> None:
    clock = Clock()
    store = Store(quick.database)
    leaderboard = Leaderboard(store, DEFAULT, clock.now, clock.worked)
    with quick.visitor() as ada:
        ada.vote(ada.play(), "tie")
        first = leaderboard.read()
        ada.vote(ada.play(), "tie")
    clock.moment += timedelta(seconds=REST * Clock.STEP_S + 1)
    clock.may_go.clear()
    maker = Thread(target=leaderboard.read)
    maker.start()
    assert clock.began.wait(20)
    assert leaderboard.read() is first
    clock.may_go.set()
    maker.join(20)
    assert leaderboard.read().votes == 2
    store.close()


class Clock:
    """A time that stands still, and work that takes long and can be held up."""

    STEP_S = 2 * SLOW_S

    def __init__(self) -> None:
        self.moment = NOW
        self.spent = 0.0
        self.began, self.may_go = Event(), Event()
        self.may_go.set()

    def now(self) -> datetime:
        return self.moment

    def worked(self) -> float:
        if not self.may_go.is_set():
            self.began.set()
            assert self.may_go.wait(20)
        self.spent += self.STEP_S
        return self.spent


def team(prompt: str | None = None) -> list[Vote]:
    """Six people who agree that m0 is better than m1, and m1 than m2, three times out of four."""
    votes = []
    for i in range(6 * 3 * 40):
        a, b = [("m0", "m1"), ("m1", "m2"), ("m0", "m2")][i % 3]
        votes.append(Vote(a, b, Choice.B if i // 18 % 4 == 0 else Choice.A, f"v{i % 6}", prompt))
    return votes


def test_a_small_team_gets_ranks_of_its_own_apart_from_those_for_others() -> None:
    result = board(team(), "m0", "m1", "m2")
    assert [(r.model, r.rank_low, r.rank_high) for r in result.among] == [
        ("m0", 1, 1),
        ("m1", 2, 2),
        ("m2", 3, 3),
    ]
    assert any("6 voters" in text and "next to no doubt" in text for text in result.warnings)


def test_a_board_of_many_voters_has_no_ranks_for_these_alone() -> None:
    assert board(many(), "m0", "m1", "m2").among == ()


def test_votes_on_one_prompt_alone_speak_for_that_prompt() -> None:
    result = board(team("p"), "m0", "m1", "m2")
    assert any("that prompt alone" in text for text in result.warnings)
    assert (len(result.rows), result.among) == (3, ())
