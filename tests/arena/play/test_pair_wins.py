"""What the samplers are told of the votes, on real databases, and what they make of it."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, count
from math import exp
from pathlib import Path
from random import Random

import pytest
from sqlmodel import col, select

from arena.boards.export import export_votes
from arena.boards.fitted import votes_of
from arena.domain.battle import BattleState, Sampler, Wins
from arena.domain.model import Model
from arena.domain.vote import DEFAULT, Choice, Policy, Voter, VoterKind
from arena.play.matchmaking import VERSION, Matchmaker, PairWins
from arena.store import blocks
from arena.store.engine import reading_existing
from arena.store.store import Store
from arena.store.tables import BattleRow
from rating import RateOptions, Report
from rating.tables.counts import rate_source
from rating.tables.voter_report import check_source
from tests.arena.boards.log import LoggedVote, linked
from tests.arena.store.battles import A1, ADA, B1, NOW, ballot, complete, exclude, new_battle
from tests.serving import quick_arena

BO = Voter("bo")
BOT = Voter("bot", VoterKind.SIMULATED)
MODELS = tuple(Model(id=m, name=m, endpoint="pocket://x", model=m) for m in "xyz")


class Log:
    """A database that votes are put into."""

    def __init__(self, url: str) -> None:
        self.store = Store(url)
        self.store.register(MODELS, NOW)
        self.wins = PairWins(self.store, DEFAULT)
        self._numbers = count()

    def vote(self, a: str, b: str, choice: Choice, voter: Voter = ADA) -> str:
        """Cast a vote on a battle of two models; gives the battle's id."""
        name = f"battle-{next(self._numbers)}"
        sides = [Model(id=m, name=m, endpoint="pocket://x", model=m) for m in (a, b)]
        self.store.open_battle(replace(new_battle(name, voter), a=sides[0], b=sides[1]))
        outcomes = {A1: complete(), B1: complete()}
        self.store.close_answers(name, BattleState.READY, outcomes, message=None, now=NOW)
        self.store.cast(ballot(name, choice, voter=voter.id))
        return name


@pytest.fixture
def votes(database_url: str) -> Iterator[Log]:
    made = Log(database_url)
    yield made
    made.store.close()


def test_the_votes_of_the_default_policy_are_scored_both_ways(votes: Log) -> None:
    assert votes.wins.read() == {}
    votes.vote("x", "y", Choice.A)
    votes.vote("y", "x", Choice.TIE)
    votes.vote("y", "z", Choice.BOTH_BAD)
    votes.vote("z", "x", Choice.B)
    votes.vote("x", "y", Choice.SKIP)
    votes.vote("x", "y", Choice.B, BOT)
    expected = {("x", "y"): 1.5, ("y", "x"): 0.5, ("y", "z"): 0.5, ("z", "y"): 0.5}
    assert votes.wins.read() == expected | {("x", "z"): 1.0}


def test_new_votes_are_added_and_late_exclusions_taken_away(votes: Log) -> None:
    bought = votes.vote("x", "y", Choice.A)
    votes.vote("y", "x", Choice.A)
    assert votes.wins.read() == {("x", "y"): 1.0, ("y", "x"): 1.0}
    for one in (bought, bought, votes.vote("x", "y", Choice.TIE)):
        exclude(votes.store, one, DEFAULT, "bought")
    exclude(votes.store, votes.vote("x", "z", Choice.B, BOT), DEFAULT, "bought")
    exclude(
        votes.store,
        votes.vote("x", "z", Choice.B, BO),
        Policy("other-v1", DEFAULT.kinds),
        "bought",
    )
    expected = {("y", "x"): 1.0, ("z", "x"): 1.0}
    assert votes.wins.read() == votes.wins.read() == expected
    assert PairWins(votes.store, DEFAULT).read() == expected


def test_a_served_arena_draws_by_its_votes_and_logs_the_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.play.matchmaking.REFRESH_S", 0.05)
    with quick_arena(tmp_path, sampler="gain", exploration=0.3) as served:
        with served.visitor() as ada:
            ada.vote(ada.play(), "model_a")
            while len({probability for _, probability in drawn(served.database)}) == 1:
                ada.play()  # until the vote has been counted
        battles = drawn(served.database)
    assert {how for how, _ in battles} == {("gain", VERSION)}
    probabilities = [probability for _, probability in battles]
    assert probabilities[0] == pytest.approx(1 / 3)
    assert min(probabilities) >= 0.1 - 1e-12


def drawn(url: str) -> list[tuple[tuple[str, str], float]]:
    """Sampler and version of each battle, and the chance that was logged."""
    with reading_existing(url) as session:
        battles = session.exec(select(BattleRow).order_by(col(BattleRow.id))).all()
        return [((b.sampler, b.sampler_version), b.pair_probability) for b in battles]


STRENGTHS = {"x": 1.2, "y": 0.4, "z": -0.2, "u": -0.4, "v": -1.0}


def sampled(sampler: Sampler, votes: int) -> list[LoggedVote]:
    """An arena of planted strengths that draws by a sampler, counted after every fifty votes."""
    pool = [
        Model(id=m, name=m, endpoint="pocket://x", model=m, weight=1 + 3 * (m == "x"))
        for m in STRENGTHS
    ]
    wins = dict.fromkeys(((a, b) for a in STRENGTHS for b in STRENGTHS if a != b), 0.0)
    rng = Random(7)

    def counted() -> Wins:
        return dict(wins)

    made = Matchmaker(pool, sampler=sampler, exploration=0.2, wins=counted, rng=rng)
    votes_cast = []
    for number in range(votes):
        if number % 50 == 0:
            made.refresh()
        draw = made.draw(pool)
        gap = STRENGTHS[draw.a.id] - STRENGTHS[draw.b.id]
        choice = Choice.A if rng.random() < 1 / (1 + exp(-gap)) else Choice.B
        best, worst = (draw.a, draw.b) if choice is Choice.A else (draw.b, draw.a)
        wins[best.id, worst.id] += 1
        votes_cast.append(
            LoggedVote(
                battle_id=str(number),
                model_a=draw.a.id,
                model_b=draw.b.id,
                outcome=choice,
                voter=f"v{number % 100}",
                created=NOW,
                pair_probability=draw.pair_probability,
            )
        )
    return votes_cast


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sampler", list(Sampler))
def test_sampling_weights_find_planted_strengths_again(tmp_path: Path, sampler: Sampler) -> None:
    votes = sampled(sampler, 3_000)
    pairs = {frozenset((v.model_a, v.model_b)) for v in votes}
    assert pairs == {frozenset(pair) for pair in combinations(STRENGTHS, 2)}
    assert sum(1 / v.pair_probability for v in votes) == pytest.approx(30_000, rel=0.1)
    path = tmp_path / "votes.parquet"
    export_votes(linked(votes), DEFAULT, path, total=len(votes))
    report = rate_source(str(path), RateOptions(weights="sampling"))
    assert isinstance(report, Report)
    for row in report.to_dict()["ratings"]:
        error = row["se"] / 400 * 2.302585
        assert abs(row["strength"] - STRENGTHS[row["model"]]) < 4 * error
        assert error < 0.15


def test_a_battle_whose_model_was_replaced_is_left_out_of_sampling_weights(tmp_path: Path) -> None:
    votes = sampled(Sampler.UNIFORM, 400)
    votes[0] = replace(votes[0], repicks=1, pair_probability=1e-9)
    path = tmp_path / "votes.csv"
    export_votes(linked(votes), DEFAULT, path, total=len(votes))
    weighed = rate_source(str(path), RateOptions(weights="sampling")).to_dict()["votes"]
    assert weighed["used"] == 399
    assert weighed["dropped"] == {"a model was replaced after the draw": 1}
    assert rate_source(str(path), RateOptions()).to_dict()["votes"]["used"] == 400


def test_the_log_says_which_battles_had_a_model_replaced(votes: Log) -> None:
    votes.vote("x", "y", Choice.A)
    votes.vote("x", "y", Choice.A)
    with votes.store.writing() as session:
        session.exec(select(BattleRow)).all()[0].repicks = 2
    with votes.store.reading() as session:
        assert sorted(blocks.columns(session, DEFAULT).numbers["repicks"]) == [0, 2]


def test_the_voters_of_a_database_are_examined_by_the_default_policy(votes: Log) -> None:
    for number in range(24):
        a, b = ("xy", "yz", "zx")[number % 3]
        votes.vote(a, b, Choice.A)
        votes.vote("x", "y", Choice.A, BOT)
    votes.vote("x", "y", Choice.B, BO)
    url = votes.store.engine.url.render_as_string(hide_password=False)
    report = check_source(votes_of(url))
    assert [(v.voter, v.leading, v.votes) for v in report.flagged] == [("ada", "always-left", 24)]
    assert [voter.voter for voter in report.voters] == ["ada", "bo"]
    assert report.dropped == {"simulated voter": 24}
