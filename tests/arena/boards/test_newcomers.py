"""Newcomers on the leaderboard: hollow, by a judge's word, until people have voted on them."""

import json
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.boards.fitted import fit_log
from arena.boards.leaderboard import Judged, make_board, read_newcomers, version_of
from arena.domain.board_view import Board
from arena.domain.model import Entrant, Release
from arena.domain.vote import DEFAULT, Choice
from arena.errors import SettingsError
from arena.store import kept_boards
from arena.store.store import Store
from rating.ranks import RankRanges
from tests.arena.boards.log import EMPTY, NOW, Vote, logged, records
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import serve, write_roster
from tests.sqlite import new_sqlite

KNOWN = ("m0", "m1", "m2", "m3")
GONE = "gone"


def on_known(n: int = 240) -> list[Vote]:
    """Votes of forty voters on four models, the earlier one mostly better."""
    votes = []
    for i in range(n):
        a, b = sorted((i % 4, (i + 1 + i // 4 % 3) % 4))
        choice = Choice.A if i % 5 else Choice.B
        votes.append(Vote(KNOWN[a], KNOWN[b], choice, voter=f"v{i % 40}"))
    return votes


def on_new(n: int) -> list[Vote]:
    """Votes on the newcomer, two of three for it."""
    outcomes = (Choice.A, Choice.A, Choice.B)
    return [Vote("new", KNOWN[i % 4], outcomes[i % 3], voter=f"w{i % 20}") for i in range(n)]


def content(model: str = "new", **changes: object) -> dict[str, Any]:
    """What `arena cold-start` writes, as far as it is read: anchors thirty points too high."""
    anchors = [
        {"model": name, "rating": 1090.0 - 40 * i, "lower": None, "upper": None, "by": "people"}
        for i, name in enumerate(KNOWN)
    ]
    board = [*anchors, {"model": model, "rating": 1500.0, "by": "judge only"}]
    judge_only = {"value": 1110.0, "lower": 1040.0, "upper": 1190.0, "n": 80}
    fields = {
        "model": model,
        "judge": "owl",
        "level": 0.95,
        "calibrated_on": 4,
        "judge_only": judge_only,
        "board": board,
        "warnings": ["The judge is young."],
        "rank": None,
    }
    return fields | changes


def judged(model: str = "new", **changes: object) -> Judged:
    return Judged.model_validate(content(model, **changes))


def made(
    votes: Sequence[Vote],
    *stated: Judged,
    more: Sequence[str] = (),
    entrant: Entrant | None = None,
) -> Board:
    known = sorted({*more, *(m for v in votes for m in (v.a, v.b))})
    state = replace(EMPTY, entrants={"new": entrant} if entrant else {})
    board = make_board(logged(votes), records(known), DEFAULT, state, NOW, judged=stated)
    return replace(board, version="v")


def same(one: Board, other: Board) -> bool:
    """Compare all there is, with what is not a number."""
    return repr(one) == repr(other)


def test_a_model_without_votes_stands_hollow_as_far_above_its_anchors_as_the_judge_puts_it() -> (
    None
):
    plain, board = made(on_known(), more=["new"]), made(on_known(), judged(), more=["new"])
    assert [one.model for one in plain.waiting] == ["new"]
    assert same(replace(board, newcomers=(), waiting=plain.waiting), plain), "except this"
    (one,) = board.newcomers
    assert (one.name, one.votes, one.until, one.by) == ("New", 0, 30, "judge only")
    assert (one.judge, one.calibrated_on) == ("owl", 4)
    assert one.warnings == ("The judge is young.",)
    on_board = np.mean([row.rating for row in plain.rows])
    assert [one.rating, one.lower, one.upper] == pytest.approx(
        [on_board + 80, on_board + 10, on_board + 160]
    )
    assert board.names["new"] == "New"


def test_a_model_with_few_votes_leaves_the_ranks_and_changes_no_rating_and_no_count() -> None:
    votes = on_known() + on_new(29)
    plain, board = made(votes), made(votes, judged())
    assert "new" in {row.model for row in plain.rows}
    assert (board.newcomers[0].votes, board.waiting) == (29, ())
    assert (board.votes, board.voters, board.data_hash) == (
        plain.votes,
        plain.voters,
        plain.data_hash,
    )
    stay = [row for row in plain.rows if row.model != "new"]
    assert [(row.model, row.rating, row.lower, row.votes) for row in board.rows] == [
        (row.model, row.rating, row.lower, row.votes) for row in stay
    ]
    assert [row.rank for row in board.rows] == [1, 2, 3, 4]
    assert sorted(row.voter_rank for row in board.rows) == [1, 2, 3, 4]
    before = {row.model: row for row in stay}
    for row in board.rows:
        if row.rank_low is not None:
            was = before[row.model]
            assert row.rank_low <= (was.rank_low or 0)
            assert (row.rank_high or 9) <= min(4, was.rank_high or 0)
    assert board.ranks_claimed, "claims among the others stay"
    assert all("new" not in (one.above, one.below) for one in board.holds)


def test_ranks_with_equally_weighted_voters_are_those_among_the_models_that_stay() -> None:
    # m1 and m2 have the same votes against each other model, and only ties with each other.
    votes = []
    for i in range(24):
        for a, b in (("m0", "m1"), ("m0", "m2"), ("m0", "m3"), ("m1", "m3"), ("m2", "m3")):
            votes.append(Vote(a, b, Choice.A if i % 4 else Choice.B, voter=f"v{i}"))
        votes.append(Vote("m1", "m2", Choice.TIE, voter=f"v{i}"))
    for i in range(6):
        votes += [Vote("new", m, Choice.A if i else Choice.B, voter=f"w{i}") for m in KNOWN]
    ranks = {"m0": 2, "m1": 3, "m2": 3, "m3": 5}
    plain, board = made(votes), made(votes, judged())
    assert {row.model: row.voter_rank for row in plain.rows} == {"new": 1, **ranks}
    assert {row.model: row.voter_rank for row in board.rows} == {
        model: rank - 1 for model, rank in ranks.items()
    }
    assert {row.model: row.rank for row in board.rows} == {"m0": 1, "m1": 2, "m2": 2, "m3": 4}


def test_ranks_among_some_count_the_claims_among_these_alone() -> None:
    better = np.array([[False, True, True], [False, False, False], [False, False, False]])
    ranges = RankRanges.of(better)
    assert (ranges.low.tolist(), ranges.high.tolist()) == ([1, 2, 2], [1, 3, 3])
    some = ranges.among([0, 2])
    assert (some.low.tolist(), some.high.tolist()) == ([1, 2], [1, 2])
    assert not ranges.among([1, 2]).claimed.any()


def test_the_ranks_of_a_board_are_those_of_its_claims() -> None:
    fitted = fit_log(logged(on_known() + on_new(29)))
    ranges = fitted.rank_ranges()
    place = {model: i for i, model in enumerate(fitted.fit.models)}
    for row in fitted.report().ratings:
        if row.rank_low is not None:
            i = place[row.model]
            assert (row.rank_low, row.rank_high) == (ranges.low[i], ranges.high[i])


def test_with_thirty_votes_people_rate_it_whatever_a_judge_says() -> None:
    votes = on_known() + on_new(30)
    assert same(made(votes, judged()), made(votes))


@pytest.mark.parametrize(
    ("stated", "entrant"),
    [
        (judged("m3"), None),  # people know it well
        (judged("nobody"), None),
        (judged(board=content()["board"][:2] + content()["board"][-1:]), None),
        (judged(), Entrant(retired=True)),
        (judged(), Entrant(release=Release.HIDDEN)),
    ],
)
def test_nothing_is_hollow_that_is_not_new_or_cannot_be_placed(
    stated: Judged, entrant: Entrant | None
) -> None:
    plain = made(on_known(), more=["new"], entrant=entrant)
    assert same(made(on_known(), stated, more=["new"], entrant=entrant), plain)


def test_files_mark_what_a_judge_alone_rates(tmp_path: Path) -> None:
    board = made(on_known(), judged(), more=["new"])
    rows = board.to_rows()
    assert [(row["model"], row["by"]) for row in rows][-2:] == [
        (board.rows[-1].model, "people"),
        ("new", "judge only"),
    ]
    assert rows[-1]["rank"] is rows[-1]["rank_low"] is rows[-1]["win_rate"] is None
    assert (rows[-1]["votes"], rows[-1]["policy"]) == (0, "default-v3")
    assert [row.keys() for row in rows] == [rows[0].keys()] * 5
    assert board.to_dict()["newcomers"][0]["judge"] == "owl"
    with closing(Store(new_sqlite(tmp_path))) as store:
        written = kept_boards.Written("v", 1.0, NOW)
        with store.writing() as session:
            kept_boards.keep(session, board, written, b"key")
        there = store.read(kept_boards.read, DEFAULT.name, b"key")
        assert there is not None
        assert same(there, board)
        state = store.read(kept_boards.state)
    assert version_of(state) != version_of(state, judged=(judged(),))
    assert version_of(state) != version_of(replace(state, known=1)), "voters became one user"
    assert version_of(state, judged=(judged(),)) != version_of(state, judged=(judged("m9"),))


def written(folder: Path, **files: object) -> Path:
    for name, what in files.items():
        text = what if isinstance(what, str) else json.dumps(what)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def test_newcomers_are_read_from_a_file_or_a_folder(tmp_path: Path) -> None:
    folder = written(tmp_path, one=content(), two=content("other"))
    assert [one.model for one in read_newcomers(folder)] == ["new", "other"]
    assert read_newcomers(folder / "one.json") == (judged(),)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("{", "is not JSON"),
        ([], "is not what arena cold-start --format json writes: its content"),
        ({}, "model: Field required"),
        (content(judge_only={"value": None, "lower": 1.0, "upper": 2.0}), "judge_only.value"),
        (content(judge_only={"value": 3.0, "lower": None, "upper": None}), "'new' without an int"),
        (content(judge_only={"value": 3.0, "lower": 1.0, "upper": 2.0}), "3.0 does not lie from"),
        (content(judge_only={"value": 1e999, "lower": 1.0, "upper": 2.0}), "finite"),
        (content(level=0.9), "has intervals of 90%, and the leaderboard those of 95%"),
        (content(level=0.99), "has intervals of 99%, and the leaderboard those of 95%"),
        (content(calibrated_on="4"), "calibrated_on"),
        (content(board=[{"model": "m0"}]), "board.0.rating"),
        (content(model="x" * 2000), "model"),
    ],
)
def test_what_is_no_rating_of_a_newcomer_is_said_at_the_start(
    tmp_path: Path, what: object, words: str
) -> None:
    file = written(tmp_path, one=what) / "one.json"
    with pytest.raises(SettingsError, match="ARENA_NEWCOMERS") as caught:
        read_newcomers(file)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 800


def test_two_ratings_of_one_newcomer_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, one=content(), two=content())
    with pytest.raises(SettingsError, match="two ratings of 'new': leave one"):
        read_newcomers(folder)
    with pytest.raises(SettingsError, match=GONE):
        read_newcomers(tmp_path / f"{GONE}.json")


def test_a_board_that_is_served_shows_a_newcomer_hollow(tmp_path: Path) -> None:
    ids = ("id-x", "id-y", "id-z")
    anchors = [{"model": one, "rating": 1000.0, "by": "people"} for one in ids]
    file = (
        written(tmp_path, stated=content("id-w", board=anchors, judge="<i>owl</i>"))
        / "stated.json"
    )
    roster = tmp_path / "roster.toml"
    behaviours = {name: Behaviour(text=f"So says {name}. " * 20) for name in "xyzw"}
    with faulty_server(behaviours) as server:
        tables = write_roster(roster, server, *"xyz").read_text()
        rest = write_roster(roster, server, "w", weight=0).read_text()
        roster.write_text(f"{tables}\n{rest}")
        settings = {"sampler": "weighted", "characters_per_s": 50_000, "newcomers": file}
        with (
            serve(
                database=new_sqlite(tmp_path), roster=roster, listed_after=25, **settings
            ) as served,
            served.visitor() as visitor,
        ):
            for n in range(30):
                visitor.vote(visitor.play(), ("model_a", "model_b", "tie")[n % 3])
            board = visitor.board(votes=30)
            page = visitor.get("/leaderboard").text
            lines = visitor.get("/leaderboard.csv").text.splitlines()
    assert {row["model"] for row in board["ratings"]} == {*ids}
    (one,) = board["newcomers"]
    assert (one["model"], one["by"], one["votes"], one["until"]) == ("id-w", "judge only", 0, 30)
    assert one["rating"] == pytest.approx(1110)
    words = re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", page)))
    assert "○ Name w by a judge" in words
    assert "Name w : by <i>owl</i> , calibrated on 4 models" in words
    assert "Rated only by a judge until it has 30 human votes" in words
    assert "Provisional: fewer than 25 votes under its name" in words
    assert "<i>owl" not in page
    assert len(lines) == 5
    assert "judge only" in lines[-1]
