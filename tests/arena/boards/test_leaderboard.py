import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text
from sqlmodel import Session, col, select, update

from arena.boards.leaderboard import (
    FAILED_FIRST,
    NOT_YET,
    REST,
    Leaderboard,
    export_ratings,
    make_board,
)
from arena.domain.battle import VOTE_WITHIN
from arena.domain.board_view import Board, ModelRecord, RecordCheck
from arena.domain.vote import DEFAULT, Choice
from arena.play.upkeep import RecordVerifier
from arena.store import blocks, chain, kept_boards, log
from arena.store.store import Store
from arena.store.tables import AnswerRow, RatingRunRow, StoredBoardRow, VoteBlockRow
from rating import Comparisons, RateOptions, Report, rate
from rating.sentences import Sentence
from rating.tables.counts import rate_source
from tests.arena.boards.log import EMPTY, Vote, logged, many, records
from tests.arena.store.battles import MODELS, NOW, ballot, ready
from tests.arena.store.test_blocks import keep_all
from tests.serving import Served, quick_arena


def board(votes: Sequence[Vote], *models: str) -> Board:
    return make_board(logged(votes), records(models), DEFAULT, EMPTY, NOW)


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
    assert {one.reason for one in apart.waiting} == {"needs votes against more models"}


def test_an_undefeated_model_is_not_rated() -> None:
    result = board([Vote("m0", "m1", Choice.A)] * 9, "m0", "m1")
    assert result.rows == ()
    assert str(result.reason).startswith(
        "There is no ranking yet: some models have won or lost all of their battles against"
    )
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
    for name in ("effective_voters", "top_voter_share"):
        assert getattr(result, name) == getattr(rated.votes, name)
    assert [(row.name, row.median_s) for row in result.rows] == [("M0", 1), ("M1", 2), ("M2", 3)]
    assert result.reason is None


def test_the_win_rates_against_the_field_average_one_half() -> None:
    rows = board(many(), "m0", "m1", "m2").rows
    assert np.mean([row.win_rate for row in rows]) == pytest.approx(0.5)
    strengths = [(row.rating - 1000) * np.log(10) / 400 for row in rows]
    best = np.mean([1 / (1 + np.exp(s - strengths[0])) for s in strengths[1:]])
    assert rows[0].win_rate == pytest.approx(best)
    assert all(0 < row.win_rate_low < row.win_rate < row.win_rate_high < 1 for row in rows)


def plain(of: Board) -> list[dict[str, object]]:
    """Rows to compare: a quasi-standard error of three models is NaN, which equals nothing."""
    return [row.to_dict() for row in of.rows]


def test_votes_left_out_are_counted_by_reason_and_move_nothing() -> None:
    votes = [
        Vote("m0", "m1", Choice.A, left_out="told who it was", created=NOW - timedelta(days=9)),
        *many(),
        Vote("m0", "m1", Choice.SKIP, left_out="skipped"),
        Vote("m2", "m1", Choice.A, voter="new", left_out="simulated voter"),
    ]
    result = board(votes, "m0", "m1", "m2")
    assert result.left_out == {"skipped": 1, "simulated voter": 1, "told who it was": 1}
    assert (result.votes, result.voters, result.since) == (60, 20, many()[0].created)
    assert plain(result) == plain(board(many(), "m0", "m1", "m2"))


def test_a_newcomer_does_not_take_the_board_down() -> None:
    votes = [*many(), Vote("new", "m0", Choice.A, voter="v1")]
    result = board(votes, "m0", "m1", "m2", "new")
    assert plain(result) == plain(board(many(), "m0", "m1", "m2"))
    assert [(w.model, w.reason) for w in result.waiting] == [
        ("new", "has not lost yet; needs a loss or a tie")
    ]
    assert any("Not rated" in warning and "new" in warning for warning in result.warnings)


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
        after = ada.board(votes=1)
        assert ada.get("/api/v1/leaderboard").json() == after
    assert before["version"] != after["version"]
    assert {"policy", "updated", "version", "votes", "ratings", "warnings"} <= set(after)
    assert after["votes"] == 1


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, Any]]]:
    """Give an arena with eight ties of one voter, and its board by the API."""
    with quick_arena(tmp_path_factory.mktemp("tied")) as served, served.visitor() as ada:
        for _ in range(8):
            ada.vote(ada.play(), "tie")
        body = ada.board(votes=8)
        ada.get("/leaderboard")
        yield served, body


def test_a_rated_board_has_the_promised_fields(tied: tuple[Served, dict[str, Any]]) -> None:
    _, body = tied
    fields = ("model", "rating", "se", "lower", "upper", "rank", "rank_low", "rank_high", "votes")
    rows = body["ratings"]
    assert rows
    assert all(tuple(row)[: len(fields)] == fields for row in rows)
    assert (body["voters"], body["ranks_claimed"], body["history"]) == (1, False, [])
    assert len(body["data_hash"]) == 64
    assert sum(pair["n"] for pair in body["pairs"]) == 8
    neighbours = body["neighbours"]
    assert [hold["above"] for hold in neighbours] == [row["model"] for row in rows[:-1]]
    assert all(hold["votes"]["of"] == 8 for hold in neighbours)
    assert all(hold["voters"] is hold["prompts"] is None for hold in neighbours)


def test_every_board_is_recorded_once_with_the_votes_it_rests_on(
    tied: tuple[Served, dict[str, Any]],
) -> None:
    with closing(Store(tied[0].database)) as store, store.reading() as session:
        ours = select(RatingRunRow).where(RatingRunRow.policy == DEFAULT.name)
        runs = session.exec(ours.order_by(col(RatingRunRow.id))).all()
        assert len({one.head for one in runs}) == len(runs)
        run = runs[-1]
        assert run.head == chain.head(session)
    assert (run.policy, run.votes) == ("default-v3", 8)


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


def test_the_rank_with_equally_weighted_voters_is_one_more_than_the_models_that_are_better() -> (
    None
):
    # Each of 24 voters is on every pair once. One voter more puts m3 above m0 forty times.
    # m1 and m2 have the same votes against the others, and only ties with each other.
    votes = [Vote("m3", "m0", Choice.A, voter="shill")] * 40
    for i in range(24):
        for a, b in (("m0", "m1"), ("m0", "m2"), ("m0", "m3"), ("m1", "m3"), ("m2", "m3")):
            votes.append(Vote(a, b, Choice.A if i % 4 else Choice.B, voter=f"v{i}"))
        votes.append(Vote("m1", "m2", Choice.TIE, voter=f"v{i}"))
    rows = board(votes, "m0", "m1", "m2", "m3").rows
    assert {row.model: row.voter_rank for row in rows} == {"m0": 1, "m1": 2, "m2": 2, "m3": 4}
    assert {row.model: row.rank for row in rows} == {"m3": 1, "m1": 2, "m2": 2, "m0": 4}


@pytest.fixture
def voted(database_url: str) -> Iterator[Store]:
    """A log with one vote for each of two models."""
    store = Store(database_url)
    store.register(MODELS, NOW)
    for name, choice in (("b1", Choice.A), ("b2", Choice.B)):
        store.cast(ballot(ready(store, name), choice))
    yield store
    store.close()


def another_vote(store: Store) -> None:
    store_vote(store, "b3")


def store_vote(store: Store, name: str) -> None:
    store.cast(ballot(ready(store, name), Choice.TIE))


def test_a_board_that_takes_long_rests_and_says_how_old_it_is(voted: Store) -> None:
    clock = Clock()
    leaderboard = Leaderboard(voted, DEFAULT, clock.now, clock.passes)
    leaderboard.refresh()
    another_vote(voted)
    second = leaderboard.refresh()
    assert second.votes == 3, "the first one loads what the others need not, and so does not rest"
    rests_until = leaderboard._rests_until
    assert rests_until >= REST * clock.STEP_S
    store_vote(voted, "b4")
    clock.passed = rests_until - 1
    assert leaderboard.refresh() is second
    clock.passed = rests_until + 1
    assert leaderboard.refresh().votes == 4


def test_who_asks_while_a_board_is_made_gets_the_last_one(voted: Store) -> None:
    clock = Clock()
    leaderboard = Leaderboard(voted, DEFAULT, clock.now, clock.passes)
    first = leaderboard.refresh()
    another_vote(voted)
    clock.passed += REST * clock.passed
    clock.may_go.clear()
    maker = Thread(target=leaderboard.refresh)
    maker.start()
    assert clock.began.wait(20)
    assert leaderboard.read() is first
    clock.may_go.set()
    maker.join(20)
    assert leaderboard.read().votes == 3


def test_a_board_has_prices_of_two_digits_and_an_export_has_them_exactly(
    voted: Store, tmp_path: Path
) -> None:
    with voted.writing() as session:
        session.exec(update(AnswerRow).values(cost=0.00123456, duration_s=1.26))
    leaderboard = Leaderboard(voted, DEFAULT, lambda: NOW)
    board = leaderboard.refresh()
    shown = {(row.price_per_1000, row.median_s) for row in board.rows}
    assert shown == {(one.price_per_1000, one.median_s) for one in board.health} == {(1.2, 1.3)}
    exported = tmp_path / "ratings.csv"
    export_ratings(voted, DEFAULT, exported, NOW, vote_within=VOTE_WITHIN)
    rows = list(csv.DictReader(exported.read_text(encoding="utf-8").splitlines()))
    assert {(row["price_per_1000"], row["median_s"]) for row in rows} == {("1.23456", "1.26")}


def test_pages_wait_for_the_first_board(voted: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.boards.leaderboard.FIRST_BOARD_S", 60)
    board = Leaderboard(voted, DEFAULT, lambda: NOW)
    assert board.read().reason == NOT_YET
    looking = Thread(target=board.look)
    looking.start()
    assert board.read(waits=True).rows
    looking.join()
    assert board.read(waits=True).rows


def test_what_is_counted_of_battles_follows_at_its_own_pace(voted: Store) -> None:
    passed = [0.0]
    leaderboard = Leaderboard(voted, DEFAULT, lambda: NOW, lambda: passed[0])
    leaderboard.refresh()
    leaderboard._records_rest_until = 10.0
    another_vote(voted)
    board = leaderboard.refresh()
    assert (board.votes, [record.battles for record in board.health]) == (3, [2, 2])
    passed[0] = 11.0
    store_vote(voted, "b4")
    board = leaderboard.refresh()
    assert (board.votes, [record.battles for record in board.health]) == (4, [4, 4])
    assert board.health_counted == NOW


def test_a_board_does_not_rest_for_what_it_takes_to_count_battles(
    voted: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed, count = [0.0], log.model_records
    with voted.reading() as reading:
        own = reading.get_bind().engine.pool

    def slowly(session: Session, *asked: Any) -> list[ModelRecord]:
        if session.get_bind().engine.pool is own:  # not an arena that another test leaves behind
            passed[0] += 1000
        return count(session, *asked)

    monkeypatch.setattr(log, "model_records", slowly)
    maker, other = (Leaderboard(voted, DEFAULT, lambda: NOW, lambda: passed[0]) for _ in range(2))
    maker.refresh()
    another_vote(voted)
    passed[0] += 10
    assert maker.refresh().votes == 3
    assert passed == [1010], "battles are counted after twenty times as long"
    assert other.refresh().votes == 3
    store_vote(voted, "b4")
    passed[0] += 10
    assert other.refresh().votes == 4


class Clock:
    """A time that stands still except work, which takes long and can be held up."""

    STEP_S = 4.0

    def __init__(self) -> None:
        self.passed = 0.0
        self.began, self.may_go = Event(), Event()
        self.may_go.set()

    def now(self) -> datetime:
        if not self.may_go.is_set():
            self.began.set()
            assert self.may_go.wait(20)
        self.passed += self.STEP_S
        return NOW

    def passes(self) -> float:
        return self.passed


def test_a_board_is_made_by_one_process_and_taken_over_by_the_others(voted: Store) -> None:
    one, other = (Leaderboard(voted, DEFAULT, lambda: NOW) for _ in range(2))
    assert other.read().reason == NOT_YET
    made = one.refresh()
    taken = other.refresh()
    assert (taken.votes, taken.version) == (2, made.version)
    assert repr(taken) == repr(made)  # NaN equals nothing, itself neither
    assert_sentences(taken, made)
    with voted.reading() as session:
        assert len(session.exec(select(RatingRunRow)).all()) == 1
    another_vote(voted)
    assert one.refresh().votes == other.refresh().votes == 3
    store_vote(voted, "b4")
    assert other.refresh().votes == 3, "who takes a board over rests as long as its maker"


def test_a_quick_board_rests_as_long_as_it_has_to_whoever_made_it(voted: Store) -> None:
    clock = Clock()
    maker, taker = (
        Leaderboard(voted, DEFAULT, lambda: NOW, clock.passes, rest_s=5.0) for _ in range(2)
    )
    maker.refresh()
    taker.refresh()
    another_vote(voted)
    clock.passed += 4.9
    assert maker.refresh().votes == taker.refresh().votes == 2
    clock.passed += 0.2
    assert taker.refresh().votes == 3
    assert maker.refresh().votes == 3


def assert_sentences(one: object, other: object) -> None:
    """Both have the same sentences in the same places, which can be put into other languages."""
    assert type(one) is type(other)
    if isinstance(one, Sentence) and isinstance(other, Sentence):
        assert (one.template, one.many) == (other.template, other.many)
        assert_sentences(one.values, other.values)
    elif isinstance(one, Mapping) and isinstance(other, Mapping):
        assert_sentences([*one.items()], [*other.items()])
    elif is_dataclass(one) and is_dataclass(other):
        for part in fields(one):
            assert_sentences(getattr(one, part.name), getattr(other, part.name))
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        for a, b in zip(one, other, strict=True):
            assert_sentences(a, b)


def test_a_board_is_kept_over_a_restart(voted: Store) -> None:
    made = Leaderboard(voted, DEFAULT, lambda: NOW).refresh()
    later = Leaderboard(voted, DEFAULT, lambda: NOW + timedelta(days=1)).refresh()
    assert later.updated == made.updated == NOW


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_of_two_processes_one_makes_the_board(voted: Store) -> None:
    """On SQLite, which has no such locks, both would make the same board."""
    other = Leaderboard(voted, DEFAULT, lambda: NOW)
    in_the_middle: list[Board] = []

    def now() -> datetime:
        in_the_middle.append(other.refresh())
        return NOW

    one = Leaderboard(voted, DEFAULT, lambda: NOW)
    one._now = now
    assert one.refresh().votes == 2
    assert in_the_middle[0].reason == NOT_YET, "the other leaves it to the one"
    assert other.refresh().votes == 2


@contextmanager
def without_blocks(store: Store) -> Iterator[None]:
    """Take away a table that every board is made of."""
    rename = "ALTER TABLE {} RENAME TO {}"
    with store.engine.begin() as connection:
        connection.execute(text(rename.format("vote_block", "gone")))
    yield
    with store.engine.begin() as connection:
        connection.execute(text(rename.format("gone", "vote_block")))


def test_a_board_that_cannot_be_made_keeps_the_last_one_and_says_so(
    voted: Store, caplog: pytest.LogCaptureFixture
) -> None:
    time = [0.0]
    leaderboard = Leaderboard(voted, DEFAULT, lambda: NOW, lambda: time[0])
    leaderboard.look()
    good = leaderboard.read()
    another_vote(voted)
    with without_blocks(voted):
        for _ in range(3):
            time[0] += 1e6
            leaderboard.look()
        old = leaderboard.read()
    assert (old.votes, old.updated, old.rows) == (2, NOW, good.rows)
    assert old.warnings[0].startswith(
        "Votes since 2026-11-20 12:00:00 UTC are not on this leaderboard"
    )
    assert old.warnings[1:] == good.warnings
    (reason,) = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    assert reason.startswith("The leaderboard default-v3 could not be made: The database")
    assert "vote_block" in reason
    time[0] += 1e6
    leaderboard.look()
    assert leaderboard.read().votes == 3
    assert leaderboard.read().warnings == good.warnings


def test_a_first_board_that_cannot_be_made_says_so(voted: Store) -> None:
    leaderboard = Leaderboard(voted, DEFAULT, lambda: NOW)
    with without_blocks(voted):
        leaderboard.look()
    assert leaderboard.read().all_warnings == (NOT_YET, FAILED_FIRST)


def test_a_board_is_read_without_the_database(voted: Store) -> None:
    leaderboard = Leaderboard(voted, DEFAULT, lambda: NOW)
    leaderboard.look()
    voted.close()
    assert leaderboard.read().votes == 2
    leaderboard.look()
    assert "not on this leaderboard" in leaderboard.read().warnings[0]


def test_a_board_of_other_code_is_made_anew(voted: Store) -> None:
    Leaderboard(voted, DEFAULT, lambda: NOW).refresh()
    with voted.writing() as session:
        board = session.exec(select(StoredBoardRow)).one()
        text = board.board[kept_boards._SEAL :].replace('"since"', '"begun"')
        board.version = "of another"
        board.board = kept_boards._seal(b"", DEFAULT.name, board.version, text) + text
    later = NOW + timedelta(days=1)
    assert Leaderboard(voted, DEFAULT, lambda: later).refresh().updated == later


def swap_models(board: StoredBoardRow) -> None:
    for one, other in (("basalt", "x"), ("quartz", "basalt"), ("x", "quartz")):
        board.board = board.board.replace(f'"{one}"', f'"{other}"')


def sign_otherwise(board: StoredBoardRow) -> None:
    text = board.board[kept_boards._SEAL :]
    board.board = kept_boards._seal(b"another", DEFAULT.name, board.version, text) + text


@pytest.mark.parametrize("change", [swap_models, sign_otherwise])
def test_a_board_that_somebody_else_wrote_is_not_shown(
    voted: Store, change: Callable[[StoredBoardRow], None]
) -> None:
    first = Leaderboard(voted, DEFAULT, lambda: NOW, key=b"secret").refresh()
    with voted.writing() as session:
        board = session.exec(select(StoredBoardRow)).one()
        change(board)
        board.created = NOW + timedelta(hours=1)
    later = NOW + timedelta(days=1)
    shown = Leaderboard(voted, DEFAULT, lambda: later, key=b"secret").refresh()
    assert shown.updated == later
    assert [row.model for row in shown.rows] == [row.model for row in first.rows]


def test_a_board_of_counts_that_were_wrong_is_made_anew(voted: Store) -> None:
    for n in range(12):
        store_vote(voted, f"more{n}")
    keep_all(voted, 4)
    clock = Clock()
    leaderboard = Leaderboard(voted, DEFAULT, clock.now, clock.passes)
    right = leaderboard.refresh()
    with voted.writing() as session:
        block = session.exec(select(VoteBlockRow).where(col(VoteBlockRow.last) == 4)).one()
        votes = np.frombuffer(block.votes, blocks.VOTE).copy()
        votes["winner"] = votes["winner"][0]
        block.votes = votes.tobytes()
        kept_boards.drop(session)
    wrong = leaderboard.refresh()
    assert [row.rating for row in wrong.rows] != [row.rating for row in right.rows]
    verifier = RecordVerifier(voted, lambda: NOW)
    verifier.look()
    head = voted.read(chain.head)
    assert verifier.check == RecordCheck(
        at=NOW, links=14, head=head, votes=14, hashes_only=0, deleted=0, problem=None
    )
    made = leaderboard.refresh()
    assert [row.rating for row in made.rows] == [row.rating for row in right.rows]


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
    assert any("6 voters" in text and "Bonferroni" in text for text in result.warnings)
    assert board(many(), "m0", "m1", "m2").among == (), "twenty voters speak for others"


def test_votes_on_one_prompt_alone_speak_for_that_prompt() -> None:
    result = board(team("p"), "m0", "m1", "m2")
    assert any("that prompt alone" in text for text in result.warnings)
    assert (len(result.rows), result.among) == (3, ())
