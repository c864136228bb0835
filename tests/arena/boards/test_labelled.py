"""Boards by label: made beside the requests, pooled, and corrected for who labels."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from arena.boards import labelled
from arena.boards.fitted import votes_of
from arena.boards.labelled import (
    FEWEST_OF_BOTH,
    KAPPA,
    LOOK,
    NO_LABELS,
    ONE_KIND,
    RARE,
    STANDING,
    LabelBoards,
    Snapshot,
    fit_facet,
)
from arena.domain.vote import DEFAULT, Choice
from arena.errors import StoreError
from arena.store import log
from arena.store.store import Store
from judge.labels.accuracy import accuracy_of
from rating import RateOptions
from rating.errors import DataError
from rating.mix import Mix
from rating.tables.coding import LoggedVotes
from rating.tables.counts import rate_source
from tests.arena.boards.kinds import CODE_FIRST, MODELS, vote_on_kinds
from tests.arena.boards.log import Vote, logged, many
from tests.sqlite import new_sqlite


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 20, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(scope="module")
def voted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = Store(new_sqlite(tmp_path_factory.mktemp("kinds")))
    vote_on_kinds(store, 300)
    yield store
    store.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def snapshot(voted: Store) -> Snapshot:
    boards = LabelBoards(voted, DEFAULT, Clock())
    made = boards.read(60)
    boards.close()
    assert made is not None
    return made


def columns(
    votes: list[Vote], values: Sequence[str | None], facet: str = "category"
) -> LoggedVotes:
    return replace(logged(votes), labels={facet: [*values]})


def test_a_board_is_that_of_the_command_on_the_same_votes(
    snapshot: Snapshot, voted: Store
) -> None:
    url = voted.engine.url.render_as_string(hide_password=False)
    pooled = rate_source(votes_of(url), RateOptions(by="category", pool=True)).to_dict()
    board = snapshot.board("category", "code").to_dict()
    ratings = pooled["groups"]["code"]["ratings"]
    for row, same in zip(board["ratings"], ratings, strict=True):
        assert row.items() >= same.items()
    assert board["pooling"] == pooled["pooling"]
    votes = pooled["groups"]["code"]["votes"]
    assert [board["votes"][name] for name in ("used", "voters")] == [
        votes["used"],
        votes["voters"],
    ]
    assert board["method"]["data_hash"] == pooled["groups"]["code"]["method"]["data_hash"]


def test_planted_gains_are_seen_raw_and_larger_without_the_errors_of_the_tagger(
    snapshot: Snapshot,
) -> None:
    board = snapshot.board("category", "code")
    gain = {row.model: row for row in board.rows}[MODELS[0].id]
    assert gain.effect.value > 50
    assert gain.corrected is not None
    assert gain.corrected.value > gain.effect.value
    tagged = board.votes / board.of
    accuracy = accuracy_of("category", "code")
    alone = accuracy.unattenuated(gain.effect.value, 1.0, tagged=tagged)
    assert alone is not None
    assert gain.corrected.value == pytest.approx(alone.value)
    assert board.labelled == 312
    boards = (snapshot.board("category", one) for one in ("creative", "other", "translation"))
    rated = [
        (one.votes, row.rating) for one in boards for row in one.rows if row.model == gain.model
    ]
    elsewhere = np.average([rating for _, rating in rated], weights=[votes for votes, _ in rated])
    assert gain.effect.value == pytest.approx(gain.rating - elsewhere)
    ends = (gain.effect.lower, gain.effect.upper)
    assert sum(ends) / 2 == pytest.approx(gain.effect.value)
    assert ends[0] < gain.effect.value
    assert board.of == snapshot.voted == 300
    labels = {name: [one.value for one in each] for name, each in snapshot.labels.items()}
    assert (labels["category"][0], {*labels["language"]}) == ("code", {"en", "fr"})
    order = [row.model for row in board.rows]
    assert order[0] == MODELS[int(np.argmax(CODE_FIRST))].id


def test_every_model_has_a_row_where_votes_are_few_and_borrows_more_there(
    snapshot: Snapshot,
) -> None:
    few, many_votes = (snapshot.board("category", value) for value in ("translation", "code"))
    assert len(few.rows) == len(many_votes.rows) == len(MODELS)
    assert few.votes < 30 < many_votes.votes
    assert min(row.borrowed for row in few.rows) > max(row.borrowed for row in many_votes.rows)


def test_what_boards_are_worth_on_unseen_prompts_stands_beside_them(snapshot: Snapshot) -> None:
    unseen = snapshot.board("category", "code").unseen
    assert unseen is not None
    assert unseen.prompts == 300
    assert unseen.pooled.is_better


def test_ranks_over_mixes_beside_a_board_are_those_of_the_mix(snapshot: Snapshot) -> None:
    envelope = snapshot.mix(Mix.of_shares({"code": 1})).envelope
    there = {one.model: one for one in envelope if one.kappa == KAPPA}
    rows = snapshot.board("category", "code").rows
    assert {row.model: row.other_mixes for row in rows} == there
    # Code and creative writing order the rocks the other way round: their ranks hang on the mix.
    assert any(one.best < one.worst for one in there.values())


def test_of_very_many_votes_only_the_newest_are_counted_and_the_board_says_so(
    voted: Store, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = "Only the newest 200 votes are counted here; the leaderboard counts all."
    assert only not in snapshot.board("category", "code").warnings
    monkeypatch.setattr(log, "newest", partial(log.newest, most=200))
    with closing(LabelBoards(voted, DEFAULT, Clock())) as boards:
        made = boards.read(60)
    assert made is not None
    assert made.voted == 200
    assert only in made.board("category", "code").warnings


def until_there(boards: LabelBoards, facet: str) -> Snapshot:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        made = boards.read(60, facet)
        if made and made.facet(facet):
            return made
    raise AssertionError(facet)


def test_boards_on_request_are_made_for_who_asks_and_no_others(voted: Store, clock: Clock) -> None:
    boards = LabelBoards(voted, DEFAULT, clock)
    first = boards.read(60)
    assert first is not None
    assert {*first.facets} == {*STANDING}
    assert first.facet("refusal") is None
    assert not first.has("refusal", "none")
    made = until_there(boards, "refusal")
    assert {*made.later} == {"refusal"}
    refusals = made.facet("refusal")
    assert refusals is not None
    assert refusals.reason == ONE_KIND  # nobody declines
    assert {*made.labels} == {*STANDING}
    boards.close()


def test_a_board_of_two_labels_is_that_of_their_joint_value(voted: Store, clock: Clock) -> None:
    boards = LabelBoards(voted, DEFAULT, clock)
    facet = "category&language"
    made = until_there(boards, facet)
    fitted = made.facet(facet)
    assert fitted is not None
    counts = {count.value: count.votes for count in fitted.counts}
    of_code = {count.value: count.votes for count in made.labels["category"]}["code"]
    assert counts["code&en"] == of_code
    board = made.board(facet, "code&en")
    assert board.to_dict()["label"] == {"category": "code", "language": "en"}
    assert made.has_both(facet, "code&en")
    assert board.rows[0].corrected is None
    assert board.labelled == 0
    rare = [value for value, votes in counts.items() if votes < FEWEST_OF_BOTH]
    assert rare
    assert not any(made.has_both(facet, value) for value in [*rare, "code&xx"])
    boards.close()


def test_what_nobody_asks_for_any_more_is_not_made_again(tmp_path: Path, clock: Clock) -> None:
    store = Store(new_sqlite(tmp_path))
    vote_on_kinds(store, 60)
    boards = LabelBoards(store, DEFAULT, clock, worked=lambda: 0.0)
    before = until_there(boards, "hard")
    vote_on_kinds(store, 30, seed=1)
    asked = renewed(boards, clock, before, "hard")
    assert asked.facet("hard") is not None
    assert asked.voted == 90
    for seed in (2, 3):  # whoever read the ones before may have asked after they were begun
        vote_on_kinds(store, 30, seed=seed)
        asked = renewed(boards, clock, asked, "category")
    assert asked.facet("hard") is None
    boards.close()
    store.close()


def renewed(boards: LabelBoards, clock: Clock, before: Snapshot, facet: str) -> Snapshot:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        clock.now += LOOK
        made = boards.read(0, facet)
        if made and made.version != before.version:
            return made
        time.sleep(0.05)
    raise AssertionError(facet)


def test_a_board_on_request_is_made_while_the_others_rest(voted: Store, clock: Clock) -> None:
    spent = iter(range(0, 10_000, 100))
    boards = LabelBoards(voted, DEFAULT, clock, worked=lambda: float(next(spent)))
    first = boards.read(60)
    made = until_there(boards, "hard")
    assert first is not None
    assert made.facets is first.facets  # nothing else was made
    boards.close()


def test_a_board_is_made_once(snapshot: Snapshot) -> None:
    assert snapshot.board("language", "fr") is snapshot.board("language", "fr")
    assert snapshot.has("language", "fr")
    assert not snapshot.has("language", "de")


def test_a_mix_of_one_category_is_its_board(snapshot: Snapshot) -> None:
    mixed = snapshot.mix(Mix.of_shares({"code": 1}))
    board = snapshot.board("category", "code")
    assert [row.rating for row in mixed.report.ratings] == [row.rating for row in board.rows]
    with pytest.raises(DataError, match="no category 'chess'"):
        snapshot.mix(Mix.of_shares({"chess": 1}))


def test_nothing_is_made_anew_until_votes_or_labels_have_grown(
    tmp_path: Path, clock: Clock
) -> None:
    store = Store(new_sqlite(tmp_path))
    vote_on_kinds(store, 60)
    boards = LabelBoards(store, DEFAULT, clock, worked=lambda: 0.0)
    first = boards.read(60)
    assert first is not None
    clock.now += LOOK
    boards.read(60)
    time.sleep(0.3)
    assert boards.read() is first
    vote_on_kinds(store, 30, seed=1)
    assert boards.read() is first  # not before the next look
    clock.now += LOOK
    deadline = time.monotonic() + 60
    while (renewed := boards.read()) is first and time.monotonic() < deadline:
        clock.now += LOOK
        time.sleep(0.05)
    assert renewed is not None
    assert renewed.voted == 90
    boards.close()
    store.close()


def test_boards_that_take_long_rest_for_longer(voted: Store, clock: Clock) -> None:
    spent = iter(range(0, 10_000, 100))
    boards = LabelBoards(voted, DEFAULT, clock, worked=lambda: float(next(spent)))
    assert boards.read(60) is not None
    time.sleep(0.1)
    clock.now += timedelta(seconds=1999)
    boards.read()
    assert next(spent) == 200
    boards.close()


def test_who_comes_while_boards_are_made_waits_no_longer_than_who_came_first(
    voted: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = Event()
    waited_s: list[float] = []
    monkeypatch.setattr("arena.store.labels.newest", lambda *_: goes_on.wait(60))

    def noting(works: Sequence[Future[None]], timeout: float) -> object:
        waited_s.append(timeout)
        return wait(works, timeout)

    monkeypatch.setattr("arena.boards.labelled.wait", noting)
    boards = LabelBoards(voted, DEFAULT, clock)
    for _ in range(3):
        assert boards.read(0.1) is None
    assert waited_s[0] > 0
    assert waited_s[1:] == [0, 0]
    goes_on.set()
    boards.close()


def test_a_log_that_cannot_be_read_is_an_error_and_no_empty_board(
    tmp_path: Path, clock: Clock
) -> None:
    store = Store(new_sqlite(tmp_path))
    (path,) = tmp_path.glob("*.db")
    boards = LabelBoards(store, DEFAULT, clock)
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError):
        boards.read(60)
    boards.close()
    store.close()


def test_votes_without_labels_or_of_one_kind_say_why_there_are_no_boards() -> None:
    votes = many()
    assert fit_facet(columns(votes, [None] * len(votes)), "category").reason == NO_LABELS
    assert fit_facet(columns(votes, ["code"] * len(votes)), "category").reason == ONE_KIND
    assert fit_facet(columns([], []), "category").reason == NO_LABELS


def test_a_newcomer_is_set_aside_and_the_others_are_rated() -> None:
    votes = [*many(), Vote("new", "m0", Choice.A, voter="v1")]
    values = [("code", "creative")[i % 2] for i in range(len(votes))]
    facet = fit_facet(columns(votes, values), "category")
    assert facet.reason is None
    assert facet.newcomers == {"new"}
    assert facet.fit is not None
    assert "new" not in facet.fit.votes.data.models


def test_votes_that_identify_nothing_say_so() -> None:
    votes = [Vote("m0", "m1", Choice.A)] * 9
    values = [("code", "creative")[i % 2] for i in range(9)]
    facet = fit_facet(columns(votes, values), "category")
    assert facet.fit is None
    assert facet.reason is not None
    assert "m0" in facet.reason


def test_rare_values_share_a_board_where_all_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelled, "MOST_STRENGTHS", 9)
    votes = many(240)
    values = [("en", "en", "de", "fr", "ja", "sw")[i % 6] for i in range(240)]
    facet = fit_facet(columns(votes, values, "language"), "language")
    counts = [(count.value, count.votes, count.share) for count in facet.counts]
    assert counts == [(RARE, 120, 1 / 2), ("en", 80, 1 / 3), ("de", 40, 1 / 6)]
