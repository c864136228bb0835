"""The audit passes the board's defaults and fails each planted fault by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

from judge.probe.audit import Audit, audit, probe_board
from judge.probe.people import (
    BRADLEY_TERRY,
    INDEPENDENT,
    ONLINE_ELO,
    Rated,
    World,
    WorldMeasure,
    bradley_terry_strengths,
    by_bradley_terry,
)
from judge.probe.ranking import NAMES
from rating.errors import DataError, NotIdentifiedError
from rating.rows import VoteRows
from tests.judge.probe.texts import rng
from tests.judge.probe.texts import world as made_up

FEW = 30

Floats = NDArray[np.float64]
Followed = tuple[dict[str, Any], list[tuple[int, int]]]


def audited(measure: WorldMeasure, taste: float, *, arenas: int = FEW, seed: int = 5) -> Audit:
    draw = rng(seed)
    return audit(measure, made_up(draw, taste=taste), arenas=arenas, rng=draw)


def of_other_votes(
    name: str, change: Callable[[VoteRows, np.random.Generator], VoteRows]
) -> WorldMeasure:
    """Rate by Bradley-Terry what a planted fault makes of the votes."""

    def rate(votes: VoteRows, draw: np.random.Generator) -> Rated:
        return by_bradley_terry(change(votes, draw), draw)

    def strengths(votes: VoteRows, draw: np.random.Generator) -> Floats:
        return bradley_terry_strengths(change(votes, draw), draw)

    return WorldMeasure(name, rate, {"again": rate}, strengths)


def judge_that_wavers(world: World) -> WorldMeasure:
    """A planted fault: a judge that knows the truth, and draws every verdict again each time."""

    def verdicts(votes: VoteRows, draw: np.random.Generator) -> VoteRows:
        probability = 1 / (1 + np.exp(world.strengths[votes.b] - world.strengths[votes.a]))
        return votes.with_scores(np.where(draw.random(votes.n) < probability, 1.0, 0.0))

    return of_other_votes("Judge that wavers", verdicts)


def order_of_names(votes: VoteRows, draw: np.random.Generator) -> Rated:
    """A planted fault: whatever the votes say, models stand in the order of their names."""
    theta = np.linspace(-1, 1, len(votes.models)) + 1e-3 * draw.normal(size=len(votes.models))
    return Rated(theta, np.full(len(theta), 0.01), theta[:, None] > theta)


def led_astray(votes: VoteRows, draw: np.random.Generator) -> VoteRows:
    """A planted fault: the more votes there are, the more of them are replaced by coins."""
    coins = draw.integers(2, size=votes.n).astype(float)
    replaced = draw.random(votes.n) < votes.n / 3000
    return votes.with_scores(np.where(replaced, coins, votes.score))


@pytest.mark.sampled(2, 1)
@pytest.mark.parametrize("taste", [0.0, 0.8])
def test_the_board_s_defaults_pass(taste: float) -> None:
    result = audited(BRADLEY_TERRY, taste)
    assert result.failed == ()
    assert [one.passed for one in result.desiderata] == [True] * 5


def test_intervals_of_independent_votes_fail_under_tastes_and_pass_without() -> None:
    result = audited(INDEPENDENT, 0.8)
    assert result.failed == ("validity",)
    assert result["validity"].numbers["coverage"] < 0.87
    assert audited(INDEPENDENT, 0.0).failed == ()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("taste", [0.0, 0.4])
def test_online_elo_fails_by_the_order_of_votes(taste: float) -> None:
    result = audited(ONLINE_ELO, taste)
    assert "reruns" in result.failed
    assert result["reruns"].numbers["ratio"] > 0.4


def test_a_judge_that_wavers_fails_by_its_reruns() -> None:
    draw = rng(6)
    world = made_up(draw, taste=0.0, tie_rate=0.0)
    result = audit(judge_that_wavers(world), world, arenas=FEW, rng=draw)
    assert "reruns" in result.failed
    assert result["reruns"].numbers["ratio"] == pytest.approx(1, abs=0.3)


def test_an_order_that_does_not_come_from_votes_is_found_out() -> None:
    names = WorldMeasure("Names", order_of_names, {"again": order_of_names})
    result = audited(names, 0.4)
    assert "validity" in result.failed
    assert "order although there is none" in result["validity"].text


def test_a_measure_that_votes_lead_astray_fails_to_be_monotone() -> None:
    assert "monotone" in audited(of_other_votes("Led astray", led_astray), 0.0).failed


def test_models_that_are_all_alike_cannot_be_told_apart() -> None:
    draw = rng(7)
    world = made_up(draw, n_models=6, taste=0.0, spread=0.0)
    result = audit(BRADLEY_TERRY, world, arenas=FEW, rng=draw)
    assert result["reruns"].passed
    assert result["consistency"].numbers["contradictions"] == [[0] * 5] * 5
    assert "validity" in result.failed
    assert result["discriminability"].passed is None
    assert "may be equal" in result["discriminability"].text


def test_real_votes_are_rated_again_and_the_world_is_only_for_the_truth() -> None:
    draw = rng(8)
    votes = made_up(draw, n_models=5, n_voters=80).cast(draw)
    seen: list[int] = []

    def rate(given: VoteRows, inner: np.random.Generator) -> Rated:
        seen.append(int(given.score.sum() == votes.score.sum() and given.n == votes.n))
        return by_bradley_terry(given, inner)

    result = audit(
        WorldMeasure("Watched", rate, {"again": rate}),
        World.like(votes),
        votes=votes,
        arenas=12,
        rng=draw,
    )
    assert sum(seen) >= 5 + 2
    assert [one.name for one in result.desiderata] == list(NAMES)


def test_votes_too_few_to_rate_in_parts_are_no_verdict() -> None:
    draw = rng(9)
    world = made_up(draw, n_models=6, n_voters=6, taste=0.0)
    votes = world.cast(draw)
    result = audit(BRADLEY_TERRY, world, votes=votes, arenas=12, rng=draw)
    assert result["discriminability"].passed is None
    assert "gives no rating" in result["discriminability"].text


def test_a_choice_under_which_votes_give_no_rating_is_named() -> None:
    def none(votes: VoteRows, draw: np.random.Generator) -> Rated:
        raise NotIdentifiedError("Nobody lost.")

    draw = rng(11)
    world = made_up(draw, n_models=4, n_voters=50)
    result = audit(
        WorldMeasure("x", by_bradley_terry, {"no votes": none}), world, arenas=12, rng=draw
    )
    assert result["consistency"].passed is None
    assert result["consistency"].text == "No rating with no votes: Nobody lost."


def test_the_same_seed_gives_the_same_audit_as_plain_json() -> None:
    one, other = (audited(INDEPENDENT, 0.4, arenas=12).to_dict() for _ in range(2))
    assert json.dumps(one, allow_nan=False) == json.dumps(other, allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("taste", [0.0, 0.4, 0.8])
def test_at_full_size_defaults_pass_and_planted_faults_fail(taste: float, seed: int) -> None:
    """At taste .4 independent intervals hold some 91 %, which at times passes."""
    own = audited(BRADLEY_TERRY, taste, arenas=200, seed=seed)
    assert own.failed == ()
    independent = audited(INDEPENDENT, taste, arenas=200, seed=seed)
    covered = [one["validity"].numbers["coverage"] for one in (own, independent)]
    if taste == 0.4:
        assert covered[1] < covered[0] - 0.01
    else:
        assert independent.failed == (("validity",) if taste else ())
    assert "reruns" in audited(ONLINE_ELO, taste, arenas=200, seed=seed).failed


def votes_file(folder: Path, *, voters: bool = True) -> str:
    """Write votes of a simulated arena in which tastes differ much."""
    draw = np.random.default_rng(1)
    votes = made_up(draw, n_models=5, n_voters=60, taste=1.2).cast(draw)
    assert votes.voter is not None
    winner = np.select([votes.score == 1, votes.score == 0], ["model_a", "model_b"], "tie")
    names = np.array(votes.models)
    rows = zip(names[votes.a], names[votes.b], winner, votes.voter, strict=True)
    head = "model_a,model_b,winner" + (",voter" if voters else "")
    lines = [f"{a},{b},{w}" + (f",v{v}" if voters else "") for a, b, w, v in rows]
    path = folder / "votes.csv"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("votes")
    return probe_board(votes_file(folder), arenas=30, seed=3)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Followed:
    """A probe of few arenas, and its progress while it ran."""
    progress: list[tuple[int, int]] = []
    votes = votes_file(tmp_path_factory.mktemp("followed"))
    probe = probe_board(votes, arenas=12, seed=0, progress=lambda *at: progress.append(at))
    return probe, progress


@pytest.mark.slow
def test_the_board_s_own_way_passes_on_votes_with_tastes_and_the_others_fail(
    probed: dict[str, Any],
) -> None:
    own, independent, elo = probed["audits"]
    assert own["failed"] == []
    assert independent["failed"] == ["validity"]
    assert elo["failed"]


def test_what_was_simulated_is_like_the_votes(probed: dict[str, Any]) -> None:
    about = probed["about"]
    n = made_up(rng(1), n_models=5, n_voters=60, taste=1.2).battles.n
    counts = [about[name] for name in ("votes", "models", "voters", "arenas", "seed")]
    assert counts == [n, 5, 60, 30, 3]
    assert about["taste_sd"] == pytest.approx(1.2, abs=0.4)
    assert about["tie_rate"] == pytest.approx(0.1, abs=0.05)
    assert json.loads(json.dumps(probed, allow_nan=False)) == probed


@pytest.mark.slow
def test_the_order_of_the_rows_leaves_no_trace(followed: Followed, tmp_path: Path) -> None:
    path = votes_file(tmp_path)
    query = f"COPY (SELECT * FROM read_csv('{path}') ORDER BY random()) TO '{tmp_path}/b.parquet'"
    duckdb.execute(query)
    other = probe_board(str(tmp_path / "b.parquet"), arenas=12, seed=0)
    assert other == followed[0]


def test_without_voters_tastes_are_unknown_rather_than_none(tmp_path: Path) -> None:
    about = probe_board(votes_file(tmp_path, voters=False), arenas=12, seed=0)["about"]
    assert (about["voters"], about["taste_sd"]) == (None, None)


def test_progress_ends_at_all_arenas_of_all_measures(followed: Followed) -> None:
    assert followed[1] == [(i, 72) for i in range(1, 73)]


def test_votes_and_options_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="2 simulated arenas are too few"):
        probe_board(votes_file(tmp_path), arenas=2, seed=0)
    (tmp_path / "one.csv").write_text("model_a,model_b,winner\nx,y,model_a\n", encoding="utf-8")
    with pytest.raises(NotIdentifiedError, match="no finite value"):
        probe_board(str(tmp_path / "one.csv"), arenas=12, seed=0)
