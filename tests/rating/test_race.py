"""A race stops itself when two models are separated, and seldom when they are equal."""

from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
import pytest

import rating.decide
from rating.decide import GateOptions, Looks, boundary, gate, run_race, tightest_at
from rating.errors import DataError
from rating.planning import gain_pairs, pair_contrast
from rating.rows import VoteRows
from tests.rating.raced import Field, two_models
from tests.simulation import monte_carlo_error, runs

AHEAD = ("m0", "m1")
RUNS = runs(100)


def head_to_head(score: np.ndarray, voter: np.ndarray) -> VoteRows:
    zero = np.zeros(len(score), dtype=np.int64)
    return VoteRows.scored(("m0", "m1"), zero, zero + 1, score, voter)


def test_a_lead_of_a_hundred_points_is_seen_and_said() -> None:
    race = run_race(Field(lead=100).draw(6000, 1), AHEAD)
    assert race.separated is not None
    assert race.badge == "separated, however often one looked (95%)"
    look = race.looks[-1]
    assert look == race.separated
    assert look.lower > 0
    assert race.sentence == (
        f"m0 is ahead of m1 after {look.votes:,} votes of {look.voters:,} voters: separated, "
        f"however often one looked (95%). Lead of m0: {look.lead:+.0f} points "
        f"({look.lower:+.0f} to {look.upper:+.0f})."
    )


def test_turned_round_the_other_is_behind_by_as_much() -> None:
    votes = Field(lead=100).draw(3000, 1)
    one, other = run_race(votes, AHEAD), run_race(votes, ("m1", "m0"))
    assert one.looks[-1].lead == pytest.approx(-other.looks[-1].lead)
    assert one.looks[-1].lower == pytest.approx(-other.looks[-1].upper)
    assert other.sentence.startswith("m0 is ahead of m1 after")


def test_equal_models_are_not_separated_and_the_words_say_so() -> None:
    race = run_race(Field().draw(3000, 4), AHEAD)
    assert race.separated is None
    assert race.badge is None
    assert "not separated (95%, any number of looks, planned for 2,000 votes). " in race.sentence
    row = race.to_dict()
    assert (row["separated"], row["at"]) == (False, None)
    assert row["interval"] == [race.looks[-1].lower, race.looks[-1].upper]


def test_up_to_the_budget_it_goes_on_after_the_stop() -> None:
    votes = Field(lead=100).draw(6000, 1)
    stopped, whole = run_race(votes, AHEAD), run_race(votes, AHEAD, stop=False, budget=5000)
    assert whole.separated is not None
    assert stopped.separated is not None
    assert whole.votes == 5000
    assert len(whole.looks) > len(stopped.looks)
    assert whole.looks[-1].votes == 5000
    assert whole.separated == next(look for look in whole.looks if look.separates)
    assert whole.separated.votes < 5000
    last = whole.looks[-1]
    assert whole.to_dict() == {
        "between": ["m0", "m1"],
        "separated": True,
        "at": whole.separated.votes,
        "interval": [last.lower, last.upper],
        "lead": last.lead,
        "at_voters": len(np.unique(votes.voter[: whole.separated.votes])),
        "badge": "separated, however often one looked (95%)",
        "votes": 5000,
        "voters": len(np.unique(votes.voter[:5000])),
        "level": 0.95,
        "judge_weight": None,
        "looks": "any",
        "planned": 2000,
        "power": 0.8,
        "needed": 0,
        "needed_same_prompts": 0,
        "history": [asdict(look) for look in whole.looks],
        "sentence": whole.sentence,
    }
    numbered = replace(whole, mode=3, planned=900, level=0.9)
    assert numbered.badge == "separated (90%, 3 looks, 900 votes planned)"
    assert f"after {whole.separated.votes:,} votes of " in numbered.sentence


def test_a_race_takes_as_many_votes_as_a_gate_for_a_better_model() -> None:
    rows = two_models(np.random.default_rng(3), 600, of_prompt=0.3, prompts=200)
    race = run_race(rows, AHEAD, looks=1)
    data = rows.comparisons(voter=rows.voter, prompt=rows.groups["prompt"])
    ask = GateOptions(candidate="m0", incumbent="m1", margin=0, require="better", looks=1)
    new, same = gate(data, ask).needed, gate(data, ask).needed_same_prompts
    assert new is not None
    assert same is not None
    assert (race.needed, race.needed_same_prompts) == (600 + new, 600 + same)
    assert f"In all, about {600 + new:,} votes on either model by new people" in race.sentence
    assert race.sentence.endswith(f"; on the same prompts {600 + same:,} do.")
    assert "prompts no number does." in replace(race, needed_same_prompts=None).sentence
    assert "No number of votes may separate them" in replace(race, needed=None).sentence


def test_one_vote_a_voter_head_to_head_is_the_confidence_sequence_of_the_win_rate() -> None:
    """At many voters, on the scale of log-odds: the two are one to first order."""
    rng = np.random.default_rng(2)
    won = (rng.random(3000) < 0.55).astype(np.float64)
    race = run_race(head_to_head(won, np.arange(3000)), AHEAD, stop=False, planned=800)
    mean = won.mean()
    reach = boundary(np.array([3000]), tightest_at(round(200 / (mean * (1 - mean)))))[0]
    half, look = won.std(ddof=1) * reach, race.looks[-1]
    per_point = mean * (1 - mean) * np.log(10) / 400
    assert look.lead * np.log(10) / 400 == pytest.approx(np.log(mean / (1 - mean)), rel=1e-3)
    assert (look.upper - look.lower) / 2 * per_point == pytest.approx(half, rel=0.01)


@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.parametrize(("looks", "n"), [("any", 600), (4, 600), (1, 600), (12, 600)])
def test_a_look_of_a_race_has_the_interval_of_a_gate_on_the_same_votes(
    looks: Looks, n: int, others: int
) -> None:
    rng = np.random.default_rng(3)
    rows = two_models(rng, n)
    if others:  # of every two votes, one is on models that do not race
        a = np.where(np.arange(2 * n) % 2, 0, rng.integers(2, 4, 2 * n))
        b = np.where(np.arange(2 * n) % 2, rng.integers(1, 4, 2 * n), 5 - a)
        score, voter = rng.integers(2, size=2 * n).astype(float), rng.integers(300, size=2 * n)
        rows = VoteRows.scored((*AHEAD, "m2", "m3"), a, b, score, voter)
    race = run_race(rows, AHEAD, stop=False, looks=looks, planned=n, level=0.8)
    for look in (race.looks[0], race.looks[-1]):
        seen = rows.taken(slice(look.votes))
        data = seen.comparisons(voter=seen.voter, prompt=seen.groups.get("prompt"))
        ask = GateOptions(
            candidate="m0", incumbent="m1", margin=20, looks=looks, planned=n, level=0.8
        )
        interval = gate(data, ask).difference
        assert interval is not None
        assert look.voters == len(np.unique(seen.voter))
        assert (interval.value, interval.lower, interval.upper) == pytest.approx(
            (look.lead, look.lower, look.upper)
        )
    assert race.looks[-1].votes == rows.n
    assert len(race.looks) <= (400 if looks == "any" else looks)


def test_votes_after_the_planned_are_not_looked_at_where_looks_are_numbered() -> None:
    rows = two_models(np.random.default_rng(3), 3000)
    race = run_race(rows, AHEAD, stop=False, looks=4, planned=2000)
    assert [look.votes for look in race.looks] == [500, 1000, 1500, 2000]
    for planned, last in ((None, 3000), (700, 700)):
        race = run_race(rows, AHEAD, stop=False, looks=1, planned=planned)
        assert [look.votes for look in race.looks] == [last]


@pytest.mark.parametrize("score", [0.5, 1.0])
def test_nothing_but_ties_and_a_lead_without_a_single_loss_have_no_look(score: float) -> None:
    race = run_race(head_to_head(np.full(400, score), np.arange(400)), AHEAD, stop=False)
    assert race.looks == ()
    assert race.to_dict()["interval"] is None


def test_votes_of_few_voters_say_nothing() -> None:
    votes = head_to_head(np.tile([1.0, 0.0], 500), np.repeat(np.arange(14), 72)[:1000])
    race = run_race(votes, AHEAD)
    assert race.looks == ()
    assert "inconclusive. It takes 15 effective voters" in race.sentence
    assert race.sentence.endswith("; so far: 1,000 votes of 14 voters.")
    assert race.to_dict()["interval"] is None


def test_one_busy_voter_does_not_pass_for_thirty() -> None:
    voter = np.r_[np.repeat(0, 3000), np.arange(1, 60)]
    score = np.r_[np.tile([1.0, 1.0, 0.0], 1000), np.tile([1.0, 0.0], 30)[:59]]
    assert run_race(head_to_head(score, voter), AHEAD, stop=False).looks == ()


def test_the_gain_on_one_contrast_draws_its_pair_most() -> None:
    table = gain_pairs(np.zeros(4), np.eye(4), contrast=pair_contrast(4, 1, 3))
    assert table[1, 3] == table.max()
    assert table[0, 2] == table[np.triu_indices(4, 1)].min()


@pytest.mark.parametrize(
    ("between", "options", "words"),
    [
        (("m0", "m0"), {}, "between two models, not 'm0' and itself"),
        (("m0", "zz"), {}, "no votes on 'zz'"),
        (AHEAD, {"budget": 0}, "--budget 0"),
        (AHEAD, {"planned": 0}, "--planned must be 1 vote or more, not 0"),
        (AHEAD, {"looks": 0}, "--looks must be any"),
        (AHEAD, {"level": 1.0}, "--level must lie between 0 and 1, such as 0.95, not 1"),
    ],
)
def test_what_makes_no_race_is_quoted(
    between: tuple[str, str], options: dict[str, float], words: str
) -> None:
    votes = head_to_head(np.ones(40), np.arange(40))
    with pytest.raises(DataError, match=words):
        run_race(votes, between, **options)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("looks", [1, 5, 50, "any"])
def test_equal_models_on_sixty_shared_prompts_are_seldom_separated(
    looks: Looks, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """3,000 votes of 300 voters, random effects of 0.8 nats of voters and prompts, 50 looks."""
    monkeypatch.setattr(rating.decide, "MOST_LOOKS", 50)
    stops = [
        run_race(
            two_models(np.random.default_rng(seed)), AHEAD, looks=looks, planned=3000
        ).separated
        for seed in range(RUNS)
    ]
    share = float(np.mean([stop is not None for stop in stops]))
    record_property("equal models separated by a race", {"looks": looks, "separated": share})
    assert share <= 0.05 + 2 * monte_carlo_error(0.05, RUNS)


LIVE = runs(60)


@pytest.mark.slow
@pytest.mark.parametrize(("prompts", "of_prompt"), [(400, 0.4), (60, 0.8)])
def test_returning_voters_and_shared_prompts_separate_equal_models_no_more_often(
    prompts: int, of_prompt: float
) -> None:
    """Equal on average over prompts like these, not on the prompts of a race."""
    field = Field(taste=0.4, returning=0.3, prompts=prompts, of_prompt=of_prompt)
    races = [run_race(field.draw(1500, 500 + seed), AHEAD) for seed in range(LIVE)]
    stops = np.mean([race.separated is not None for race in races])
    assert stops <= 0.05 + 3 * monte_carlo_error(0.05, LIVE)


@pytest.mark.slow
def test_a_live_race_that_is_followed_as_votes_come_seldom_stops_at_equal_models() -> None:
    """Each look begins again with the votes so far: voters who return then stand elsewhere."""
    field, stops = Field(taste=0.4, returning=0.3, prompts=400), 0
    count = runs(75)
    for seed in range(count):
        votes = field.draw(1500, 2000 + seed)
        looks = (run_race(votes, AHEAD, budget=n) for n in range(300, 1501, 150))
        stops += any(race.separated is not None for race in looks)
    assert stops / count <= 0.05 + 3 * monte_carlo_error(0.05, count)
