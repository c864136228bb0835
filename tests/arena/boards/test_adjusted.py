"""Style-adjusted boards: what length and formatting give a model, they take away."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlmodel import select

from arena.boards.adjusted import adjusted
from arena.boards.leaderboard import Leaderboard, export_ratings, make_board
from arena.domain.battle import VOTE_WITHIN, BattleState
from arena.domain.board_view import Adjusted, Board
from arena.domain.vote import DEFAULT, Choice, Voter
from arena.store import blocks, erasing, styles
from arena.store.store import Store
from arena.store.tables import VoteStyleRow
from judge.tables.annotations import STYLES, style_of
from rating import RateOptions, Report
from rating.tables.coding import LoggedVotes
from rating.tables.counts import rate_source
from rating.typing import Floats
from tests.arena.boards.log import EMPTY, Vote, logged, records
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, new_battle, two_turns

POINTS = 400 / np.log(10)
QUALITY = {"m0": 0.5, "m1": 0.0, "m2": -0.3, "wordy": -0.2}
"""Strengths in nats, summing to zero."""
TRUTH = {model: 1000 + POINTS * nats for model, nats in QUALITY.items()}


def votes_of(effect: float, n: int = 4000, seed: int = 3) -> LoggedVotes:
    """Simulate votes; ``wordy`` writes three times as much, and length counts for ``effect``."""
    rng, names = np.random.default_rng(seed), [*QUALITY]
    votes, lengths = [], []
    for i in range(n):
        a, b = (names[k] for k in rng.permutation(len(names))[:2])
        long = [round(rng.lognormal(6, 0.4) * (3 if name == "wordy" else 1)) for name in (a, b)]
        gap = QUALITY[a] - QUALITY[b] + effect * (long[0] - long[1]) / sum(long)
        won = rng.random() < 1 / (1 + np.exp(-gap))
        votes.append(Vote(a, b, Choice.A if won else Choice.B, voter=f"v{i % 100}"))
        lengths.append(long)
    zero = np.zeros(n)
    return replace(logged(votes), numbers=dict.fromkeys(styles.COLUMNS, zero) | with_(lengths))


def with_(lengths: list[list[int]]) -> dict[str, Floats]:
    return dict(zip(("length_a", "length_b"), np.array(lengths, dtype=float).T, strict=True))


def boards(votes: LoggedVotes) -> tuple[Board, Adjusted]:
    board = make_board(votes, records([*QUALITY]), DEFAULT, EMPTY, NOW)
    return board, adjusted(votes, board, board.version)


def test_a_model_whose_only_merit_is_length_loses_it() -> None:
    votes = votes_of(effect=2.0)
    board, made = boards(votes)
    plain = {row.model: row for row in board.rows}
    assert plain["wordy"].rating > plain["m0"].rating
    assert plain["wordy"].lower > TRUTH["wordy"] + 50
    assert made.votes == board.votes == 4000
    assert [row.model for row in made.rows][:2] == ["m0", "m1"]
    for row in made.rows:
        assert row.lower < TRUTH[row.model] < row.upper
        assert row.unadjusted == pytest.approx(plain[row.model].rating)
    (effect,) = made.effects
    assert effect.style == "length"
    assert 0 < effect.lower < POINTS * 2.0 / 3 < effect.upper


def test_without_an_effect_of_style_both_boards_agree() -> None:
    board, made = boards(votes_of(effect=0.0))
    (effect,) = made.effects
    assert effect.lower < 0 < effect.upper
    own = {row.model: row for row in made.rows}
    for row in board.rows:
        assert own[row.model].lower < row.rating < own[row.model].upper
        assert own[row.model].lower < TRUTH[row.model] < own[row.model].upper


def test_an_adjusted_board_is_what_arena_rate_makes_of_the_same_votes(tmp_path: Path) -> None:
    votes = votes_of(effect=1.0, n=600)
    _, made = boards(votes)
    rows = zip(
        *(votes.values(role) for role in ("model_a", "model_b", "winner", "voter")),
        *(votes.numbers[column].tolist() for column in ("length_a", "length_b")),
        strict=True,
    )
    with (tmp_path / "votes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("model_a", "model_b", "winner", "voter", "length_a", "length_b"))
        writer.writerows(rows)
    report = rate_source(str(tmp_path / "votes.csv"), RateOptions(style=("length",)))
    assert isinstance(report, Report)
    names = ("model", "rating", "lower", "upper", "rank_low", "rank_high")
    assert [[getattr(row, name) for name in names] for row in made.rows] == [
        [getattr(row, name) for name in names] for row in report.ratings
    ]


def test_only_votes_whose_answers_are_known_are_used() -> None:
    votes = votes_of(effect=1.0, n=600)
    length = votes.numbers["length_a"].copy()
    length[:200] = np.nan
    some = replace(votes, numbers={**votes.numbers, "length_a": length})
    board, made = boards(some)
    assert (board.votes, made.votes) == (600, 400)
    plain = {row.model: row.rating for row in boards(some.known("length_a"))[0].rows}
    assert {row.model: row.unadjusted for row in made.rows} == pytest.approx(plain)
    nothing = np.full(600, np.nan)
    board, made = boards(replace(votes, numbers={**votes.numbers, "length_a": nothing}))
    assert (made.votes, made.rows, made.effects) == (0, (), ())


def test_an_effect_that_the_votes_do_not_determine_leaves_no_ratings() -> None:
    votes = votes_of(effect=0.0, n=200)
    won = np.array(votes.values("winner")) == Choice.A
    sides = {"length_a": np.where(won, 20.0, 10.0), "length_b": np.where(won, 10.0, 20.0)}
    board, made = boards(replace(votes, numbers={**votes.numbers, **sides}))
    assert board.rows
    assert (made.votes, made.rows) == (200, ())
    again = {f"headers_{side}": votes.numbers[f"length_{side}"] for side in "ab"}
    _, made = boards(replace(votes, numbers={**votes.numbers, **again}))
    assert [effect.style for effect in made.effects] == ["length"], "headers tell nothing else"


TEXTS = ("# Sky\n- **Blue**\n- grey", "Scattering, at length, of light.", "Blue.")


def play(store: Store, name: str, a: str, b: str, choice: Choice) -> None:
    store.open_battle(new_battle(name))
    answers = {A1: complete(a), B1: complete(b)}
    store.close_answers(name, BattleState.READY, answers, message=None, now=NOW)
    store.cast(ballot(name, choice))


@pytest.fixture
def voted(database_url: str) -> Iterator[Store]:
    store = Store(database_url)
    store.register(MODELS, NOW)
    for i in range(8):
        long, short = TEXTS[i % 3], TEXTS[(i + 1 + i // 4) % 3]
        play(store, f"b{i}", long, short, Choice.A if i % 2 else Choice.B)
    yield store
    store.close()


def read(store: Store) -> LoggedVotes:
    with store.reading() as session:
        return blocks.coded(session, DEFAULT, styles=True)


def test_answers_are_counted_once_over_all_turns_up_to_the_vote(voted: Store) -> None:
    two_turns(voted, "two", "ada", again=" scatters it.")
    assert not read(voted).known("length_a")
    assert [*styles.count(voted, 0)] == [9]
    assert [*styles.count(voted, 0)] == []
    votes = read(voted)
    for side, answer in zip("ab", TEXTS, strict=False):
        first = {name: votes.numbers[f"{name}_{side}"][0] for name in STYLES}
        assert first == style_of(answer)
        assert votes.numbers[f"length_{side}"][8] == len("a scatters it.") + len("a: no sun.")


def test_counts_go_with_the_texts_and_with_the_votes(voted: Store) -> None:
    play(voted, "gone", *TEXTS[:2], Choice.TIE)
    [*styles.count(voted, 0)]
    assert len(read(voted).known("length_a")) == 9
    with voted.writing() as session:
        erasing.erase_words(session, [1], [], NOW)
        erasing.take_out(session, [2], NOW)
    assert len(read(voted).known("length_a")) == 7
    assert len(read(voted)) == 8
    assert [*styles.count(voted, 0)] == [], "an erased answer is not looked at again"
    with voted.reading() as session:
        assert len(session.exec(select(VoteStyleRow)).all()) == 7


def test_the_live_board_is_adjusted_after_it_was_made(voted: Store, tmp_path: Path) -> None:
    voters = [Voter(f"v{i}") for i in range(4)]
    for i, voter in enumerate(voters * 4):
        name = f"more{i}"
        store_battle(voted, name, voter, TEXTS[i % 3], TEXTS[(i * 2 + 1) % 3], i)
    leaderboard = Leaderboard(voted, DEFAULT, lambda: NOW)
    board = leaderboard.refresh()
    made = board.adjusted
    assert made is not None
    assert made.version == board.version
    assert made.votes == board.votes == 24
    assert {row.model for row in made.rows} == {"basalt", "quartz"}
    assert {effect.style for effect in made.effects} <= {*STYLES}
    again = Leaderboard(voted, DEFAULT, lambda: NOW)
    assert again.refresh().adjusted == made, "another process takes it over"
    plain = board.to_dict()["adjusted"]
    assert [row["model"] for row in plain["ratings"]] == [row.model for row in made.rows]
    export_ratings(voted, DEFAULT, tmp_path / "r.csv", NOW, vote_within=VOTE_WITHIN)
    exported = list(csv.DictReader((tmp_path / "r.csv").read_text().splitlines()))
    assert {row["model"]: float(row["adjusted_rating"]) for row in exported} == {
        row.model: pytest.approx(row.rating) for row in made.rows
    }


def store_battle(store: Store, name: str, voter: Voter, a: str, b: str, i: int) -> None:
    store.open_battle(new_battle(name, voter))
    answers = {A1: complete(a), B1: complete(b)}
    store.close_answers(name, BattleState.READY, answers, message=None, now=NOW)
    choice = (Choice.A, Choice.B, Choice.TIE)[(i * i + i // 3) % 3]
    store.cast(ballot(name, choice, voter=voter.id))
