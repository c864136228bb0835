"""The counts behind boards are those of the votes, whatever happens to either."""

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlmodel import col, select

from arena.boards.export import why_excluded
from arena.domain.battle import BattleState
from arena.domain.model import Model
from arena.domain.vote import DEFAULT, EVER, SIMULATED, Choice, Policy, Voter, VoterKind
from arena.errors import BrokenRecordError
from arena.play.upkeep import RecordVerifier
from arena.store import blocks, log, voting
from arena.store.chain import LoggedLink
from arena.store.store import Store
from arena.store.tables import VoteBlockRow
from arena.store.verify import verify
from rating.tables.coding import microseconds
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, new_battle
from tests.process import FORKS
from tests.sqlite import new_sqlite

RETIRED = Model(id="chalk", name="Chalk", endpoint="pocket://x", model="chalk")
LOGIN_ONLY = Policy("login-v1", frozenset({VoterKind.LOGIN}))
POLICIES = (DEFAULT, SIMULATED, LOGIN_ONLY)
SMALL = 3
"""Votes of a block, so that a few make several."""

VOTES = st.tuples(
    st.just("vote"),
    st.sampled_from(Choice),
    st.sampled_from(["ada", "bob", "Zoë", "eve"]),
    st.sampled_from([None, "p1", "p2"]),
    st.permutations(["basalt", "quartz", "chalk"]),
)
EXCLUSIONS = st.tuples(
    st.just("exclude"),
    st.integers(0, 30),
    st.sampled_from([policy.name for policy in POLICIES]),
    st.sampled_from(["a bot", "told who it was"]),
)
OTHERS = st.tuples(st.sampled_from(["erase", "retire", "block"]))
KINDS = {"ada": VoterKind.ANONYMOUS, "bob": VoterKind.LOGIN, "Zoë": VoterKind.SIMULATED}

Step = tuple[Any, ...]


def cast(store: Store, name: str, step: Step) -> None:
    """Play a battle and vote on it."""
    _, choice, voter, prompt_id, (a, b, _) = step
    owner = Voter(voter, KINDS.get(voter, VoterKind.INVITED))
    battle = new_battle(name, owner)
    sides = (replace(battle.a, id=a), replace(battle.b, id=b))
    store.open_battle(replace(battle, a=sides[0], b=sides[1], prompt_id=prompt_id))
    ends = {A1: complete(), B1: complete()}
    store.close_answers(name, BattleState.READY, ends, message=None, now=NOW)
    store.cast(ballot(name, choice, voter=voter))


def take(store: Store, steps: Sequence[Step]) -> None:
    """Let what happened happen; an exclusion is of some vote that is there."""
    names: list[str] = []
    for step in steps:
        match step[0]:
            case "vote":
                names.append(f"b{len(names)}")
                cast(store, names[-1], step)
            case "exclude" if names:
                _, place, policy, reason = step
                name = names[place % len(names)]
                why = {"policy": policy, "rule": "r", "version": "1", "reason": reason}
                with store.writing() as session:
                    voting.exclude(session, name, **why, now=NOW)
            case "erase":
                with store.writing() as session:
                    session.execute(text("UPDATE turn SET prompt = '', nonce = NULL"))
            case "retire":
                store.register([replace(RETIRED, name="Old chalk")], NOW)
            case "block":
                keep_all(store, SMALL)


def keep_all(store: Store, most: int) -> int:
    made = [*blocks.lacking(store, most)]
    with store.writing() as session:
        for block in made:
            blocks.keep(session, block)
    return len(made)


IN_AN_EXPORT = {
    **{role: role for role in ("model_a", "model_b", "winner")},
    "voter": "person",
    "prompt": "prompt_id",
}


def why_not(link: LoggedLink, policy: Policy) -> str | None:
    broken = link.transcript is not None
    return why_excluded(link.bound, policy, EVER, link.exclusions, broken=broken)


def assert_counts_are_those_of_a_recount(store: Store) -> None:
    with store.reading() as session:
        for policy in POLICIES:
            links = [one for one in log.links(session, policy) if one.kind == "vote"]
            votes = [one for one in links if one.withheld is None]
            for counts in (blocks.coded(session, policy), blocks.columns(session, policy)):
                for role, name in IN_AN_EXPORT.items():
                    assert counts.values(role) == [one.bound[name] for one in votes]
                assert counts.values("left_out") == [why_not(one, policy) for one in votes]
                assert counts.created.tolist() == [microseconds(v.bound["ts"]) for v in votes]
                held = counts.texts["voter"].names
                assert list(held) == sorted(held)


@contextmanager
def new_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder, closing(Store(new_sqlite(Path(folder)))) as one:
        one.register((*MODELS, RETIRED), NOW)
        yield one


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(VOTES, VOTES, VOTES, EXCLUSIONS, OTHERS), max_size=14))
def test_counts_equal_a_recount_under_every_policy(steps: list[Step]) -> None:
    with new_store() as store:
        take(store, steps)
        assert_counts_are_those_of_a_recount(store)
        keep_all(store, SMALL)
        assert_counts_are_those_of_a_recount(store)
        with store.reading() as session:
            assert verify(session).counts is None


STEPS: list[Step] = [
    ("vote", Choice.A, "ada", "p1", ("basalt", "quartz", "chalk")),
    ("vote", Choice.B, "bob", None, ("quartz", "chalk", "basalt")),
    ("vote", Choice.SKIP, "eve", "p2", ("chalk", "quartz", "basalt")),
    ("exclude", 0, "default-v1", "a bot"),
    ("exclude", 0, "default-v1", "told who it was"),
    ("vote", Choice.BOTH_BAD, "Zoë", "p1", ("basalt", "chalk", "quartz")),
    ("vote", Choice.TIE, "ada", None, ("basalt", "quartz", "chalk")),
    ("exclude", 4, "login-v1", "a bot"),
    ("vote", Choice.A, "bob", "p2", ("quartz", "basalt", "chalk")),
    ("vote", Choice.A, "ada", "p2", ("quartz", "basalt", "chalk")),
]
"""Seven votes: two blocks of three, and one vote after them."""


@pytest.fixture
def voted(store: Store) -> Store:
    store.register([RETIRED], NOW)
    take(store, STEPS)
    return store


def test_counts_equal_a_recount_on_every_database(voted: Store) -> None:
    assert_counts_are_those_of_a_recount(voted)
    assert keep_all(voted, SMALL) == 2
    assert keep_all(voted, SMALL) == 0
    assert_counts_are_those_of_a_recount(voted)
    with voted.reading() as session:
        assert blocks.links(session) == (9, 10)
    take(voted, [("exclude", 1, "default-v1", "late")])
    assert_counts_are_those_of_a_recount(voted)


def test_two_processes_that_make_the_same_blocks_store_them_once(voted: Store) -> None:
    made = [*blocks.lacking(voted, SMALL)]
    for _ in range(2):
        with voted.writing() as session:
            for block in made:
                blocks.keep(session, block)
    assert_counts_are_those_of_a_recount(voted)


def die_in_the_middle(url: str, of: Literal["a vote", "a block"]) -> None:
    store = Store(url)
    made = [*blocks.lacking(store, SMALL)]
    with store.writing() as session:
        if of == "a vote":
            voting.cast(session, ballot("late"))
        else:
            for block in made:
                blocks.keep(session, block)
        session.flush()
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("of", ["a vote", "a block"])
def test_who_is_killed_in_the_middle_of_a_transaction_leaves_counts_that_hold(
    voted: Store, database_url: str, of: str
) -> None:
    voted.open_battle(new_battle("late"))
    ends = {A1: complete(), B1: complete()}
    voted.close_answers("late", BattleState.READY, ends, message=None, now=NOW)
    dying = FORKS.Process(target=die_in_the_middle, args=(database_url, of))
    dying.start()
    dying.join(60)
    assert dying.exitcode == -signal.SIGKILL
    with voted.reading() as session:
        assert blocks.links(session) == (0, 10)
    assert_counts_are_those_of_a_recount(voted)
    voted.cast(ballot("late"))
    assert keep_all(voted, SMALL) == 2
    assert_counts_are_those_of_a_recount(voted)


def another_winner(block: VoteBlockRow) -> None:
    votes = np.frombuffer(block.votes, dtype=blocks.VOTE).copy()
    votes["winner"][0] += 1
    block.votes = votes.tobytes()


def a_vote_less(block: VoteBlockRow) -> None:
    block.votes = block.votes[: -blocks.VOTE.itemsize]


def another_kind(block: VoteBlockRow) -> None:
    block.names = block.names | {"kinds": ["anonymous"] * len(block.names["kinds"])}


def another_hash(block: VoteBlockRow) -> None:
    block.hash = "0" * 64


def another_place(block: VoteBlockRow) -> None:
    block.last = 99


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "change", [another_winner, a_vote_less, another_kind, another_hash, another_place]
)
def test_counts_that_are_not_those_of_the_votes_are_seen_and_made_anew(
    voted: Store, change: Callable[[VoteBlockRow], None], caplog: pytest.LogCaptureFixture
) -> None:
    keep_all(voted, SMALL)
    with voted.writing() as session:
        change(session.exec(select(VoteBlockRow).where(col(VoteBlockRow.last) > 5)).one())
    with voted.reading() as session:
        verified = verify(session)
    assert verified.problem is None, "the chain holds"
    assert verified.counts is not None
    assert verified.counts.startswith("The counts of boards for links ")
    RecordVerifier(voted, lambda: NOW).look()
    assert "The counts of boards" in caplog.text
    assert_counts_are_those_of_a_recount(voted)
    keep_all(voted, SMALL)
    with voted.reading() as session:
        assert verify(session).counts is None


def test_no_board_is_made_of_counts_of_another_chain(voted: Store) -> None:
    keep_all(voted, SMALL)
    with voted.writing() as session:
        another_hash(session.exec(select(VoteBlockRow).where(col(VoteBlockRow.last) > 5)).one())
    with voted.reading() as session, pytest.raises(BrokenRecordError, match="up to link 9"):
        blocks.coded(session, DEFAULT)
