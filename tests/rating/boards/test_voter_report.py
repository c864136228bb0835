"""Planted voters are found, with reasons; honest ones are left in peace; nothing is deleted."""

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from math import log
from pathlib import Path

import duckdb
import numpy as np
import pytest

from rating import RateOptions
from rating.errors import DataError
from rating.rows import VoteRows
from rating.tables.columns import Columns
from rating.tables.counts import rate_source
from rating.tables.voter_report import (
    CheckedVoter,
    VotersReport,
    check_source,
    check_votes,
    write_weighted,
)
from tests.arena.boards.log import logged
from tests.rating.attacked import NAMES, Arena
from tests.simulation import runs

MODELS = ("basalt", "chert", "flint", "gneiss", "marl", "quartz", "schist", "slate")
THETA = np.linspace(1.5, -1.5, len(MODELS))
Row = dict[str, str]
Decide = Callable[[int, int], float]
"""Chance that the left of two models is chosen."""


def honest(rng: np.random.Generator, taste_sd: float = 0.4) -> Decide:
    liked = THETA + taste_sd * rng.standard_normal(len(THETA))
    return lambda a, b: float(1 / (1 + np.exp(liked[b] - liked[a])))


def votes_of(voter: str, n: int, decide: Decide, rng: np.random.Generator) -> list[Row]:
    rows = []
    for number in range(n):
        a, b = rng.choice(len(MODELS), 2, replace=False)
        winner = (
            "tie" if number % 10 == 9 else "model_a" if rng.random() < decide(a, b) else "model_b"
        )
        rows.append({"model_a": MODELS[a], "model_b": MODELS[b], "winner": winner, "voter": voter})
    return rows


@cache
def crowd() -> tuple[Row, ...]:
    """Thirty honest voters of sixty votes, and some who are not, of two hundred each."""
    rng = np.random.default_rng(1)
    better = honest(rng, 0.0)
    fan = MODELS.index("slate")
    faulty: dict[str, Decide] = {
        "coin": lambda _a, _b: 0.5,
        "left": lambda _a, _b: 0.95,
        "inverted": lambda a, b: 1 - better(a, b),
        "shill": lambda a, b: 0.98 if a == fan else 0.02 if b == fan else better(a, b),
    }
    rows = [row for n in range(30) for row in votes_of(f"v{n}", 60, honest(rng), rng)]
    rows += [row for name, decide in faulty.items() for row in votes_of(name, 200, decide, rng)]
    return (*rows, *votes_of("guest", 12, lambda _a, _b: 1.0, rng))


def write(rows: Sequence[Row], path: Path) -> str:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def by_name(report: VotersReport) -> dict[str, CheckedVoter]:
    return {voter.voter: voter for voter in report.voters}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(crowd(), tmp_path_factory.mktemp("crowd") / "votes.csv")


@pytest.fixture(scope="module")
def report(planted: str) -> VotersReport:
    return check_source(planted)


@pytest.mark.parametrize(
    ("voter", "leading", "model", "message"),
    [
        ("coin", "coin", None, "look like a coin toss"),
        ("left", "always-left", None, "a choice of the left side whatever it shows"),
        ("inverted", "inverted", None, "the opposite of what voters find better"),
        ("shill", "fan", "slate", "a vote for slate wherever it appears"),
    ],
)
def test_a_planted_voter_is_found_and_the_reason_said(
    report: VotersReport, voter: str, leading: str, model: str | None, message: str
) -> None:
    voters = by_name(report)[voter]
    assert (voters.leading, voters.model, voters.weight) == (leading, model, 0.0)
    assert voters.flagged
    assert voters.max_log_e is not None
    assert voters.max_log_e >= log(1 / report.alpha)
    assert 10 <= (voters.flagged_at or 0) <= 180
    assert message in voters.reason
    assert f"flagged after {voters.flagged_at} votes" in voters.reason
    assert (voters.votes, voters.ties) == (200, 20)


def test_honest_voters_with_tastes_keep_their_weight(report: VotersReport) -> None:
    people = [voter for voter in report.voters if re.fullmatch(r"v\d+", voter.voter)]
    assert len(people) == 30
    assert all(voter.examined for voter in people)
    assert sum(voter.flagged for voter in people) <= 2  # 1.5 expected at most
    assert not any(voter.flagged_jointly for voter in people)
    assert all(voter.weight == (not voter.flagged) for voter in people)


def leaning(rng: np.random.Generator, lean: float = 0.8) -> Decide:
    liked = 0.2 * THETA + 0.2 * rng.standard_normal(len(THETA))
    return lambda a, b: float(1 / (1 + np.exp(liked[b] - liked[a] - lean)))


def test_honest_voters_who_all_lean_to_the_left_are_left_in_peace(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(2), 80
    rows = [row for v in range(n) for row in votes_of(f"v{v}", 100, leaning(rng), rng)]
    rows += votes_of("left", 100, lambda _a, _b: 1.0, rng)
    report = check_source(write(rows, tmp_path / "votes.csv"))
    voters = by_name(report)
    assert 0.5 < (report.order_effect or 0) < 0.9  # ties count half and draw it to zero
    assert (voters["left"].flagged, voters["left"].leading) == (True, "always-left")
    share = np.mean([voter.flagged for name, voter in voters.items() if name != "left"])
    assert share <= report.alpha + 3 * np.sqrt(report.alpha * (1 - report.alpha) / n)
    assert f"common lean to the left of {report.order_effect:+.2f} nats" in report.notes[0]


def test_sides_that_are_the_models_leave_no_order_effect_to_fit(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    row = {"model_a": "basalt", "model_b": "chert"}
    winners = rng.choice(["model_a", "model_b"], 90)
    rows = [row | {"winner": w, "voter": f"v{i % 3}"} for i, w in enumerate(winners)]
    report = check_source(write(rows, tmp_path / "votes.csv"))
    assert report.order_effect == 0
    assert not report.flagged


def test_a_single_voter_is_held_against_equals(tmp_path: Path) -> None:
    rows = votes_of("v", 60, lambda _a, _b: 0.5, np.random.default_rng(4))
    source = write(rows, tmp_path / "votes.csv")
    for least, examined in ((20, True), (54, True), (55, False)):  # six of sixty are ties
        voter = by_name(check_source(source, least=least))["v"]
        assert (voter.examined, voter.flagged) == (examined, False)


def test_a_voter_of_few_votes_is_not_examined_even_if_all_are_for_the_left(
    report: VotersReport,
) -> None:
    guest = by_name(report)["guest"]
    assert (guest.examined, guest.flagged, guest.weight) == (False, False, 1.0)
    assert guest.log_e is None
    assert guest.reason == "Not examined: 11 decisive votes, and 20 are needed."


def test_ten_decisive_votes_are_enough_where_so_few_are_asked_for(planted: str) -> None:
    assert by_name(check_source(planted, least=10))["guest"].flagged


def test_the_notes_say_for_whom_the_false_alarms_hold_and_how_many_to_expect(
    report: VotersReport,
) -> None:
    notes = " ".join(report.notes)
    assert "at most 5%, however often one looks: approximately" in notes
    assert "on average over voters with normal random effects" in notes
    assert "of as many honest ones, at most 1.7 are expected to be flagged" in notes
    assert "Nothing is deleted" in notes
    assert 0.3 < (report.taste_sd or 0) < 0.9  # the planted voters raise it from .4


def test_flagged_are_those_whose_evidence_reaches_the_bar(planted: str) -> None:
    """Jointly, the bar is as many times higher as voters are examined: here four."""
    checked = [voter for voter in check_source(planted, least=100).voters if voter.examined]
    weakest = float(np.exp(min(voter.max_log_e or 0.0 for voter in checked)))
    for odds, flagged, jointly in ((6, 4, 4), (0.999, 3, 2)):
        report = check_source(planted, least=100, alpha=odds / weakest)
        assert len(report.flagged) == flagged
        assert sum(voter.flagged_jointly for voter in report.voters) == jointly


def test_the_order_of_votes_is_that_of_their_times_where_all_have_one(tmp_path: Path) -> None:
    rows = [row | {"ts": str(1_700_000_000 + n)} for n, row in enumerate(crowd())]
    forward = check_source(write(rows, tmp_path / "forward.csv"))
    backward = check_source(write(rows[::-1], tmp_path / "backward.csv"))
    assert forward == backward
    assert forward.by_time
    rows[3] |= {"ts": ""}
    unknown = check_source(write(rows, tmp_path / "unknown.csv"))
    assert not unknown.by_time
    assert replace(unknown, by_time=True) == forward


def test_one_busy_voter_is_held_against_the_others_alone(tmp_path: Path) -> None:
    """An inverted voter of half of all votes: a fit with these votes would excuse them."""
    rng = np.random.default_rng(4)
    rows = [row for n in range(10) for row in votes_of(f"v{n}", 40, honest(rng), rng)]
    better = honest(rng, 0.0)
    rows += votes_of("inverted", 390, lambda a, b: 1 - better(a, b), rng)
    report = check_source(write(rows, tmp_path / "votes.csv"))
    assert [voter.voter for voter in report.flagged] == ["inverted"]
    assert report.flagged[0].leading == "inverted"


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_votes_are_written_whole_with_their_weights(
    tmp_path: Path, planted: str, report: VotersReport, ending: str
) -> None:
    path = tmp_path / f"weighted.{ending}"
    write_weighted(planted, report, path)
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT * FROM '{path}'").fetchall()
    before = [tuple(row.values()) for row in crowd()]
    assert [row[:4] for row in rows] == before
    expected = by_name(report)
    assert all(row[4] == expected[row[3]].weight for row in rows)
    assert all(row[5] == expected[row[3]].reason for row in rows)


def test_ratings_by_the_weights_come_nearer_to_the_planted_strengths(
    tmp_path: Path, planted: str, report: VotersReport
) -> None:
    path = tmp_path / "weighted.parquet"
    write_weighted(planted, report, path)

    def error(weights: str | None) -> float:
        options = RateOptions(weights=weights, interval="none")
        rows = rate_source(str(path), options).to_dict()["ratings"]
        strengths = {row["model"]: row["strength"] for row in rows}
        return float(np.abs([strengths[m] for m in MODELS] - THETA).max())

    assert error("voter_weight") < 0.5 * error(None)


def test_votes_that_do_not_count_are_left_out_and_kept_in_the_file(tmp_path: Path) -> None:
    rows = [row | {"left_out": ""} for row in crowd()]
    rows += [row | {"voter": "bot", "left_out": "simulated voter"} for row in rows[:3]]
    rows += [rows[0] | {"model_b": rows[0]["model_a"], "voter": "v1"}]
    source = write(rows, tmp_path / "votes.csv")
    report = check_source(source)
    assert "bot" not in by_name(report)
    assert report.to_dict()["votes"] == {
        "used": len(crowd()),
        "self": 1,
        "dropped": {"simulated voter": 3},
    }
    write_weighted(source, report, tmp_path / "weighted.parquet")
    weighted = duckdb.read_parquet(str(tmp_path / "weighted.parquet"))
    assert (
        weighted.filter("voter = 'bot'").select("voter_weight", "voter_reason").fetchall()
        == [(1.0, None)] * 3
    )


def test_a_source_that_says_nothing_of_voters_is_refused(tmp_path: Path) -> None:
    nobody = [{**row, "voter": ""} for row in crowd()[:5]]
    with pytest.raises(DataError, match="do not name their voters"):
        check_source(write(nobody, tmp_path / "nobody.csv"))
    without = [{k: v for k, v in row.items() if k != "voter"} for row in crowd()[:5]]
    with pytest.raises(DataError, match="No column 'person' or 'voter' or 'voter_id'"):
        check_source(write(without, tmp_path / "without.csv"))
    with pytest.raises(DataError, match="No votes to count"):
        check_source(write([crowd()[0] | {"winner": "skip"}], tmp_path / "skips.csv"))


def test_only_ties_or_few_votes_leave_everybody_in_peace(tmp_path: Path) -> None:
    rows = [row | {"winner": "tie"} for row in crowd()[:100]]
    report = check_source(write(rows, tmp_path / "ties.csv"))
    assert report.taste_sd is None
    assert {voter.weight for voter in report.voters} == {1.0}
    assert report.notes == (
        "Voters with fewer than 20 decisive votes are not examined: weight 1.",
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("weighted.json", "name a file that ends in .parquet or .csv"),
        ("no/folder/weighted.csv", "Cannot write"),
        ("votes.csv", "cannot be read and written at once"),
    ],
)
def test_weights_that_cannot_be_written_are_said(
    tmp_path: Path, report: VotersReport, name: str, message: str
) -> None:
    source = write(crowd()[:50], tmp_path / "votes.csv")
    with pytest.raises(DataError, match=message):
        write_weighted(source, report, tmp_path / name)


def test_a_file_is_not_weighed_twice_and_a_log_never(tmp_path: Path, report: VotersReport) -> None:
    rows = [row | {"voter_weight": "1"} for row in crowd()[:50]]
    with pytest.raises(DataError, match="has a column 'voter_weight' already"):
        write_weighted(write(rows, tmp_path / "votes.csv"), report, tmp_path / "again.csv")
    with pytest.raises(DataError, match="export its votes"):
        write_weighted(logged([]), report, tmp_path / "weighted.csv")


def test_a_log_has_its_own_columns() -> None:
    with pytest.raises(DataError, match="drop --column"):
        check_source(logged([]), Columns(voter="who"))


@pytest.mark.parametrize(("option", "value"), [("least", 0), ("alpha", 0.0), ("alpha", 1.0)])
def test_options_that_cannot_be_used_are_quoted(planted: str, option: str, value: float) -> None:
    with pytest.raises(DataError, match=f"--{option} {value:g} "):
        check_source(planted, **{option: value})  # type: ignore[arg-type]


@cache
def ringed() -> tuple[Row, ...]:
    """Honest voters, and fifty accounts of forty votes that push a model of the middle."""
    votes = Arena(accounts=50, each=40).draw(np.random.default_rng(7))
    return tuple(
        {
            "model_a": NAMES[a],
            "model_b": NAMES[b],
            "winner": "model_a" if won else "model_b",
            "voter": f"v{voter}",
            "snap": str(bool(votes.member[voter])).lower(),
        }
        for a, b, won, voter in zip(votes.left, votes.right, votes.score, votes.voter, strict=True)
    )


def test_a_ring_is_reported_and_its_members_weigh_less_on_its_model_only(tmp_path: Path) -> None:
    source = write(ringed(), tmp_path / "votes.csv")
    report = check_source(source)
    (ring,) = report.to_dict()["rings"]
    assert set(ring) == {"model", "direction", "accounts", "share", "log_evidence", "gained"}
    assert set(ring["gained"]) == {"points", "ranks"}
    assert (ring["model"], ring["direction"]) == ("m4", "for")
    sentence = (
        f"Coordinated voters for m4: {ring['accounts']} accounts cast their votes on it alike, "
        f"with a log-evidence of {ring['log_evidence']:.1f} against honest random effects. By "
        f"their votes it moves {ring['gained']['points']:+.0f} points and "
        f"{ring['gained']['ranks']:+d} ranks; "
    )
    assert any(note.startswith(sentence) for note in report.notes)
    assert len(report.members) == ring["accounts"]
    path = tmp_path / "weighted.parquet"
    write_weighted(source, report, path)
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT * FROM '{path}'").fetchall()
    assert [row[:5] for row in rows] == [tuple(row.values()) for row in ringed()]
    weights = {voter.voter: voter.weight for voter in report.voters}
    members = {member.voter: member.weight for member in report.members}
    for a, b, _, voter, _, weight, reason in rows:
        on_it = "m4" in (a, b) and voter in members
        assert weight == pytest.approx(weights[voter] * (members[voter] if on_it else 1))
        assert ("Among coordinated voters for m4" in (reason or "")) == on_it


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_of_behaviour_brings_a_small_ring_to_light(tmp_path: Path, ending: str) -> None:
    small = [row for row in ringed() if row["snap"] == "false" or int(row["voter"][1:]) < 220]
    traits = ("0", "1") if ending == "csv" else ("false", "true")
    small = [
        row | {"snap": traits[row["snap"] == "true" or n % 4 == 0]} for n, row in enumerate(small)
    ]
    source = write(small, tmp_path / "votes.csv")
    if ending == "parquet":
        duckdb.read_csv(source).write_parquet(str(tmp_path / "votes.parquet"))
        source = str(tmp_path / "votes.parquet")
    evidence = [
        sum(ring.log_evidence for ring in check_source(source, columns).rings)
        for columns in (Columns(), Columns(trait="snap"))
    ]
    assert evidence[1] > evidence[0] + 3


def test_a_trait_is_true_or_false(tmp_path: Path) -> None:
    rows = [row | {"snap": "perhaps"} for row in ringed()[:50]]
    with pytest.raises(DataError, match="holds 'perhaps'"):
        check_source(write(rows, tmp_path / "votes.csv"), Columns(trait="snap"))


@pytest.mark.slow
@pytest.mark.published
def test_no_ring_is_named_in_a_real_crowd(published_data: Path) -> None:
    report = check_source(str(published_data / "votes/llmfao/votes.parquet"))
    assert report.rings == ()
    assert report.groups == ()
    assert {v.voter for v in report.voters if v.flagged_jointly} == {"w11", "w20", "w32"}


def two_tastes(seed: int) -> VoteRows:
    """105 honest voters of one taste; 45 like the weakest of eight models by 3 nats more."""
    rng, k = np.random.default_rng(seed), 8
    voter = np.repeat(np.arange(150), 100)
    a = rng.integers(k, size=len(voter))
    b = (a + rng.integers(1, k, size=len(voter))) % k
    liking = np.linspace(-0.8, 0.8, k) + rng.normal(0, 0.3, (150, k))
    liking[105:, 0] += 3.0
    won = rng.random(len(voter)) < 1 / (1 + np.exp(liking[voter, b] - liking[voter, a]))
    votes = VoteRows.scored(tuple(f"m{i}" for i in range(k)), a, b, won.astype(float), voter)
    return replace(votes, names={"voter": tuple(f"v{i:03}" for i in range(150))})


@pytest.mark.parametrize("seed", [2, 4])
def test_honest_voters_of_a_smaller_taste_keep_their_weight(seed: int) -> None:
    report = check_votes(two_tastes(seed))
    assert report.rings == ()
    [group] = report.groups
    assert (group.model, round(group.share, 1)) == ("m0", 0.3)
    assert group.gap == pytest.approx(3, abs=1)
    sentence = f"Two groups of voters differ on m0: 30% like it better, by {group.gap:.1f} nats. "
    assert any(note.startswith(sentence) for note in report.notes)
    reached = [one for one in report.voters if one.flagged_at is not None]
    assert reached  # one law of tastes would flag them
    assert not report.flagged
    assert {one.weight for one in report.voters} == {1.0}
    assert all("two groups of voters differ on m0" in one.reason for one in reached)
    assert any("only voters flagged jointly" in note for note in report.notes)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_honest_voters_of_a_smaller_taste_are_never_flagged(
    record_property: Callable[[str, object], None],
) -> None:
    count = runs(20)
    reports = [check_votes(two_tastes(seed)) for seed in range(count)]
    row = {
        "groups shown": sum(bool(one.groups) for one in reports) / count,
        "ring named": sum(bool(one.rings) for one in reports) / count,
        "honest voters flagged": sum(len(one.flagged) for one in reports) / count / 150,
    }
    record_property(f"Two tastes of honest voters, {count} arenas", row)
    assert row["groups shown"] == 1
    assert row["ring named"] == 0
    assert row["honest voters flagged"] <= 0.05 / 150
