"""What remarks beside votes tell: reasons by model, what goes with winning, intent by model."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import betaln, expit

from rating.errors import DataError
from rating.remarks import (
    MOST_REASONS,
    POINTS,
    PRIOR_SD,
    IntentByModel,
    beta_laws,
    clustered_logit,
    intent_by_model,
    reason_shares,
    reasons_that_win,
    report_remarks,
)
from rating.rows import VoteRows
from rating.tables.columns import Columns
from rating.tables.counts import report_source
from rating.typing import Floats, Ints
from tests.simulation import monte_carlo_error, runs

MODELS = ("basalt", "mica", "quartz", "slate")
ROUNDS = runs(400)
REASONS = ("", "incorrect", "useful", "incorrect, useful")
"""Texts of the column: bit 0 of a code is the first reason, and bit 1 the second."""


def planted(
    rng: np.random.Generator,
    *,
    n: int = 3000,
    points: float = 0.0,
    voters: int = 300,
    taste: float = 0.2,
) -> VoteRows:
    """Draw votes of four models that gain or lose so many points where voters quiz.

    Some voters quiz more than others, some vote more than others, and each has a taste.
    """
    lean = rng.normal(0, taste, (voters, len(MODELS)))
    busy = rng.lognormal(0, 1, voters)
    voter = rng.choice(voters, size=n, p=busy / busy.sum())
    quizzes = rng.random(n) < rng.beta(1, 1, voters)[voter]
    a = rng.integers(len(MODELS), size=n)
    b = (a + rng.integers(1, len(MODELS), size=n)) % len(MODELS)
    strength = np.linspace(-0.4, 0.4, len(MODELS)) + lean[voter]
    strength = strength + np.where(quizzes, 0.5, -0.5)[:, None] * gains(points)
    rows = np.arange(n)
    won = rng.random(n) < expit(strength[rows, a] - strength[rows, b])
    votes = VoteRows.scored(MODELS, a, b, won.astype(float), voter)
    groups = {**votes.groups, "voter_intent": quizzes.astype(np.int64)}
    return replace(votes, groups=groups, names={"voter_intent": ("asking", "quizzing")})


def changed(votes: VoteRows, **groups: Ints) -> VoteRows:
    """Give votes other codes, of reasons too."""
    names = {"reasons_a": REASONS, "reasons_b": REASONS, **votes.names}
    return replace(votes, groups={**votes.groups, **groups}, names=names)


def gains(points: float) -> Floats:
    """Gain of each model, in nats: every other one gains as much as the rest lose."""
    return np.array([-1.0, 1.0, -1.0, 1.0]) * points / float(POINTS)


def shares(strength: Floats) -> Floats:
    """Give each model's mean probability to win against the others."""
    p = expit(strength[:, None] - strength)
    return np.asarray((p.sum(axis=1) - 0.5) / (len(strength) - 1))


def differences(points: float, taste: float) -> Floats:
    """Give the true differences of preference share, tastes averaged over."""
    rng = np.random.default_rng(1)
    strength = np.linspace(-0.4, 0.4, len(MODELS)) + rng.normal(0, taste, (20_000, len(MODELS)))
    first, second = (
        np.mean([shares(one + half * gains(points)) for one in strength[:4000]], axis=0)
        for half in (0.5, -0.5)
    )
    return np.asarray(first - second)


def by_name(result: IntentByModel) -> Floats:
    """Give the differences in the order of the models."""
    rows = {row.model: row.difference for row in result.models}
    return np.array([rows[model] for model in MODELS])


def explained(rng: np.random.Generator, effect: float, n: int = 4000) -> VoteRows:
    """Draw votes with two reasons: the useful wins by so many nats, models apart."""
    votes = planted(rng, n=n, taste=0.0)
    given_a, given_b = ((rng.random((n, 2)) < (0.2, 0.4)) @ (1, 2) for _ in range(2))
    gap = given_a // 2 - given_b // 2
    strength = np.linspace(-0.4, 0.4, len(MODELS))
    won = rng.random(n) < expit(strength[votes.a] - strength[votes.b] + effect * gap)
    voted = replace(votes, outcome=np.where(won, 0, 1))
    return changed(voted, reasons_a=given_a, reasons_b=given_b)


def mirrored(votes: VoteRows) -> VoteRows:
    """Swap the sides of all votes."""
    votes = replace(votes, a=votes.b, b=votes.a, outcome=np.array([1, 0, 2, 3])[votes.outcome])
    if "reasons_a" not in votes.groups:
        return votes
    return changed(votes, reasons_a=votes.groups["reasons_b"], reasons_b=votes.groups["reasons_a"])


def test_the_covariance_is_that_of_refits_without_each_voter() -> None:
    rng = np.random.default_rng(3)
    design, voter = rng.normal(size=(600, 2)), rng.integers(40, size=600)
    score = (rng.random(600) < expit(design @ (0.6, -0.2))).astype(float)
    fit = clustered_logit(design, score, voter)
    without = [
        clustered_logit(design[voter != one], score[voter != one], voter[voter != one]).x
        for one in range(40)
    ]
    shift = np.array(without) - fit.x
    np.testing.assert_allclose(fit.covariance, shift.T @ shift * 39 / 40, rtol=0.05)
    gradient = design.T @ (score - expit(design @ fit.x)) - fit.x / PRIOR_SD**2
    np.testing.assert_allclose(gradient, 0, atol=1e-8)


def test_the_covariance_of_four_voters_on_one_model_is_that_calculated_by_hand() -> None:
    wins = np.array([8, 2, 6, 4])
    score = np.concatenate([np.repeat([1.0, 0.0], (won, 10 - won)) for won in wins])
    fit = clustered_logit(np.ones((40, 1)), score, np.repeat(np.arange(4), 10))
    assert fit.x == pytest.approx(0.0, abs=1e-12)
    # Half of all votes are won: a vote has the information 1/4, and a voter's score is wins - 5.
    without = 30 / 4 + 1 / PRIOR_SD**2
    assert fit.covariance.item() == pytest.approx(3 / 4 * (9 + 9 + 1 + 1) / without**2)


def test_the_covariance_of_four_prompts_is_that_calculated_by_hand() -> None:
    """Each vote by another voter: prompts are not fewer than they would be by themselves."""
    wins = np.array([8, 2, 6, 4])
    score = np.concatenate([np.repeat([1.0, 0.0], (won, 10 - won)) for won in wins])
    prompt = np.repeat(np.arange(4), 10)
    fit = clustered_logit(np.ones((40, 1)), score, np.arange(40), prompt)
    without = 30 / 4 + 1 / PRIOR_SD**2
    assert fit.covariance.item() == pytest.approx(3 / 4 * (9 + 9 + 1 + 1) / without**2)
    turned = clustered_logit(np.ones((40, 1)), score, prompt, np.arange(40))
    assert turned.covariance.item() == pytest.approx(fit.covariance.item())
    same = clustered_logit(np.ones((40, 1)), score, prompt, prompt)
    assert same.covariance.item() == pytest.approx(fit.covariance.item())


def on_items(
    rng: np.random.Generator, items: int, *, voters: int = 30, zipf: bool = False
) -> VoteRows:
    """A study of items that have an intent, answered by voters who all see all kinds of items.

    Four equal models; random effects of 0.8 nats of each item and 0.3 of each voter on each
    model. There is no interaction.
    """
    n = 1200
    busy = 1 / np.arange(1, voters + 1) if zipf else np.ones(voters)
    voter = rng.choice(voters, size=n, p=busy / busy.sum())
    item = rng.integers(items, size=n)
    a = rng.integers(4, size=n)
    b = (a + rng.integers(1, 4, size=n)) % 4
    effect = rng.normal(0, 0.8, (items, 4))[item] + rng.normal(0, 0.3, (voters, 4))[voter]
    won = rng.random(n) < expit(effect[np.arange(n), a] - effect[np.arange(n), b])
    votes = VoteRows.scored(MODELS, a, b, won.astype(float), voter)
    quizzes = (item % 2).astype(np.int64)
    groups = {**votes.groups, "prompt": item, "voter_intent": quizzes}
    return replace(votes, groups=groups, names={"voter_intent": ("asking", "quizzing")})


def rejected(items: int, count: int, *, known: bool = True, zipf: bool = False) -> float:
    rng, p = np.random.default_rng([items, zipf]), []
    for _ in range(count):
        votes = on_items(rng, items, zipf=zipf)
        if not known:
            groups = {role: codes for role, codes in votes.groups.items() if role != "prompt"}
            votes = replace(votes, groups=groups)
        p.append(intent_by_model(votes, "quizzing", "asking").p)
    return float((np.array(p) < 0.05).mean())


@pytest.mark.slow
@pytest.mark.parametrize(("items", "zipf"), [(40, False), (16, False), (40, True)])
def test_no_interaction_is_seen_on_shared_items(
    items: int, zipf: bool, record_property: Callable[[str, object], None]
) -> None:
    share, voters_alone = (
        rejected(items, ROUNDS, known=known, zipf=zipf) for known in (True, False)
    )
    row = {"items": items, "zipf": zipf, "rejected": share, "voters alone": voters_alone}
    record_property(f"intents that do not differ, {ROUNDS} runs", row)
    assert share <= 0.08 + 2 * monte_carlo_error(0.08, ROUNDS)
    assert voters_alone > 0.15


def test_the_intent_of_few_items_is_not_tested() -> None:
    votes = on_items(np.random.default_rng(1), 8)
    with pytest.raises(DataError, match="Not tested: 4 prompts have votes with the intent 'quiz"):
        intent_by_model(votes, "quizzing", "asking")
    assert intent_by_model(on_items(np.random.default_rng(1), 10), "quizzing", "asking").p > 0
    few = changed(votes, reasons_a=0 * votes.a + 1, reasons_b=0 * votes.a)
    few.groups["prompt"][:] %= 5
    assert len(reasons_that_win(few)) == 1
    few.groups["prompt"][:] %= 4
    with pytest.raises(DataError, match="Not tested: 4 prompts, and it takes 5"):
        reasons_that_win(few)


def test_shared_items_make_the_test_of_intents_less_sure() -> None:
    votes = on_items(np.random.default_rng(2), 40)
    alone = {role: codes for role, codes in votes.groups.items() if role != "prompt"}
    by_both, by_voter = (
        intent_by_model(one, "quizzing", "asking") for one in (votes, replace(votes, groups=alone))
    )
    assert by_both.p > by_voter.p
    width = [np.mean([row.upper - row.lower for row in one.models]) for one in (by_both, by_voter)]
    assert width[0] > 1.3 * width[1]


def test_a_planted_interaction_of_quizzing_is_recovered_in_points_of_preference_share() -> None:
    votes = planted(np.random.default_rng(7), n=20_000, points=30)
    result = intent_by_model(votes, "quizzing", "asking")
    true = differences(30, 0.2)
    assert np.sqrt(np.mean(true**2)) == pytest.approx(0.055, abs=0.005)
    assert result.size == pytest.approx(0.05, abs=0.02)
    assert by_name(result) == pytest.approx(true, abs=0.03)
    assert result.points == pytest.approx(30, abs=6)
    assert (result.df, result.p < 1e-6) == (3, True)
    quizzes, voters = int(votes.groups["voter_intent"].sum()), len(np.unique(votes.voter))
    assert (result.first_votes, result.second_votes) == (quizzes, 20_000 - quizzes)
    assert result.voters == voters


def test_sides_do_not_matter_and_intents_swapped_turn_the_signs() -> None:
    votes = planted(np.random.default_rng(2), points=40)
    result = intent_by_model(votes, "quizzing", "asking")
    other = intent_by_model(mirrored(votes), "quizzing", "asking")
    np.testing.assert_allclose(by_name(other), by_name(result), atol=1e-9)
    sizes = [abs(row.difference) for row in result.models]
    assert sizes == sorted(sizes, reverse=True)
    turned = intent_by_model(votes, "asking", "quizzing")
    np.testing.assert_allclose(by_name(turned), -by_name(result), atol=1e-9)
    assert turned.chi2 == pytest.approx(result.chi2) == pytest.approx(other.chi2)
    assert turned.p == pytest.approx(result.p)
    none = intent_by_model(planted(np.random.default_rng(0), n=1500), "quizzing", "asking")
    assert (none.size, none.points) == (0, 0), "less what noise adds, nothing is left"


@pytest.mark.slow
def test_no_interaction_is_seen_where_none_is_and_forty_points_at_three_thousand_votes() -> None:
    """Power at 40 points of every model, up or down; size within three errors of simulation."""
    p, sizes = {}, {}
    for points in (0.0, 40.0):
        results = [
            intent_by_model(
                planted(np.random.default_rng([n, int(points)]), points=points),
                "quizzing",
                "asking",
            )
            for n in range(ROUNDS)
        ]
        p[points] = np.array([one.p for one in results])
        sizes[points] = np.array([one.size for one in results])
    error = np.sqrt(0.05 * 0.95 / ROUNDS)
    assert (p[0.0] < 0.05).mean() <= 0.05 + 3 * error
    assert (p[40.0] < 0.05).mean() >= 0.8
    true = float(np.sqrt(np.mean(differences(40, 0.2) ** 2)))
    assert sizes[40.0].mean() == pytest.approx(true, abs=0.02)
    assert (np.abs(sizes[40.0] - true) <= 0.04).mean() >= 0.9


@pytest.mark.slow
def test_intervals_of_a_models_difference_hold_as_often_as_they_say() -> None:
    true = differences(40, 0.2)
    inside = []
    for n in range(ROUNDS):
        votes = planted(np.random.default_rng([n, 5]), points=40)
        result = intent_by_model(votes, "quizzing", "asking")
        rows = {row.model: row for row in result.models}
        inside += [
            rows[model].lower <= true[m] <= rows[model].upper for m, model in enumerate(MODELS)
        ]
    error = np.sqrt(0.05 * 0.95 / ROUNDS)
    assert 0.95 - 3 * error <= np.mean(inside) <= 0.95 + 3 * error


def test_a_reason_that_goes_with_winning_is_told_from_one_that_does_not() -> None:
    effects = reasons_that_win(explained(np.random.default_rng(4), 0.8))
    by = {one.reason: one for one in effects}
    useful, incorrect = by["useful"], by["incorrect"]
    assert useful.lower < 0.8 < useful.upper
    assert useful.p < 1e-6
    assert incorrect.lower < 0 < incorrect.upper
    assert incorrect.p > 0.05
    assert (useful.upper - useful.lower) / 2 < 0.2


def test_every_part_has_intervals_of_the_level_asked_for() -> None:
    votes = explained(np.random.default_rng(4), 0.8, n=1500)
    wide, narrow = (report_remarks(votes, level=level) for level in (0.95, 0.5))
    assert (wide.level, narrow.level) == (0.95, 0.5)
    assert wide.intent is not None
    assert narrow.intent is not None
    both: list[list[Any]] = [
        [*one.shares, *(one.winning or ()), *(one.intent.models if one.intent else ())]
        for one in (wide, narrow)
    ]
    for one, other in zip(*both, strict=True):
        share = (other.upper - other.lower) / (one.upper - one.lower)
        assert share == pytest.approx(0.674490 / 1.959964, rel=0.1)


def test_a_reason_that_only_winners_get_stays_finite() -> None:
    votes = explained(np.random.default_rng(5), 0.0, n=300)
    won = votes.outcome == 0
    votes = changed(votes, reasons_a=2 * won, reasons_b=2 * ~won)
    (only,) = reasons_that_win(votes)
    assert 2 < only.log_odds < 10
    assert np.isfinite([only.lower, only.upper]).all()


def test_shares_of_reasons_lean_to_the_other_models_where_there_are_few_answers() -> None:
    rng = np.random.default_rng(6)
    votes = explained(rng, 0.0)
    rare = (votes.a == 3) | (votes.b == 3)
    stays = ~rare | (np.cumsum(rare) <= 4)
    votes = votes.taken(stays)
    votes.groups["reasons_a"][votes.a == 3] = 3
    votes.groups["reasons_b"][votes.b == 3] = 3
    rows = {(one.model, one.reason): one for one in reason_shares(votes)}
    slate, mica = rows["slate", "useful"], rows["mica", "useful"]
    assert (slate.given, slate.answers) == (4, 4)
    assert mica.share < slate.share < 1
    assert slate.upper - slate.lower > 3 * (mica.upper - mica.lower)
    assert mica.share == pytest.approx(mica.given / mica.answers, abs=0.02)
    swapped = {(one.model, one.reason): one for one in reason_shares(mirrored(votes))}
    assert swapped["mica", "useful"].share == pytest.approx(mica.share)


def test_shares_by_few_voters_who_repeat_themselves_are_less_sure() -> None:
    votes = explained(np.random.default_rng(8), 0.0, n=400)
    again = votes.taken(np.repeat(np.arange(400), 10))
    alike = changed(again, voter=np.repeat(np.arange(400), 10))
    others = changed(again, voter=np.arange(4000))
    width = {
        name: np.mean([one.upper - one.lower for one in reason_shares(some)])
        for name, some in (("alike", alike), ("others", others))
    }
    assert width["alike"] > 1.8 * width["others"]


def useful_on_items(rng: np.random.Generator, items: int, n: int = 1200) -> VoteRows:
    """Draw votes on shared items of which each makes answers seem useful by its own nats."""
    votes = planted(rng, n=n, voters=100)
    prompt = rng.integers(items, size=n)
    useful = rng.normal(-0.5, 0.8, (items, len(MODELS)))
    codes = {
        role: 1 + 2 * (rng.random(n) < expit(useful[prompt, model]))
        for role, model in (("reasons_a", votes.a), ("reasons_b", votes.b))
    }
    return changed(votes, prompt=prompt, **codes)


def test_shares_on_shared_items_are_less_sure() -> None:
    votes = useful_on_items(np.random.default_rng(8), 16)
    alone = {role: codes for role, codes in votes.groups.items() if role != "prompt"}
    width = [
        np.mean([one.upper - one.lower for one in reason_shares(some) if one.reason == "useful"])
        for some in (votes, replace(votes, groups=alone))
    ]
    assert width[0] > 1.5 * width[1]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("items", [16, 40])
def test_intervals_of_shares_on_shared_items_hold_as_often_as_they_say(
    items: int, record_property: Callable[[str, object], None]
) -> None:
    rng, count, wanted = np.random.default_rng(items), runs(40), 0.95
    truth = float(expit(rng.normal(-0.5, 0.8, 100_000)).mean())
    held = np.empty((2, count))
    for number in range(count):
        votes = useful_on_items(rng, items)
        alone = {role: codes for role, codes in votes.groups.items() if role != "prompt"}
        for place, some in enumerate((votes, replace(votes, groups=alone))):
            inside = [
                one.lower <= truth <= one.upper
                for one in reason_shares(some)
                if one.reason == "useful"
            ]
            held[place, number] = np.mean(inside)
    covered, unknown = held.mean(axis=1).tolist()
    row = {"items": items, "covered": covered, "prompts not known": unknown}
    record_property(f"Shares of reasons on shared items, {count} runs", row)
    error = monte_carlo_error(wanted, count)
    assert wanted - 2 * error <= covered <= 0.985 + 2 * error
    assert unknown < 0.9


def test_the_laws_of_shares_are_those_that_drew_the_counts() -> None:
    rng = np.random.default_rng(9)
    n = np.full(400, 60.0)
    k = rng.binomial(60, rng.beta(3.0, 9.0, 400)).astype(float)
    laws = beta_laws(k, n)
    assert laws.weight.sum() == pytest.approx(1)
    assert laws.weight @ (laws.alpha / (laws.alpha + laws.beta)) == pytest.approx(0.25, abs=0.02)
    assert laws.weight @ (laws.alpha + laws.beta) == pytest.approx(12, rel=0.25)


def test_the_laws_of_shares_are_weighed_as_by_a_fine_grid() -> None:
    k, n = np.array([3.0, 9.0, 30.0, 2.0]), np.array([20.0, 30.0, 60.0, 4.0])
    mean = np.linspace(0.0005, 0.9995, 1000)[:, None]
    steady = np.geomspace(1, 1e4, 400)[None]
    a, b = (mean * steady)[..., None], ((1 - mean) * steady)[..., None]
    weight = np.exp((betaln(k + a, n - k + b) - betaln(a, b)).sum(axis=-1)) / np.sqrt(steady)
    weight /= weight.sum()
    expected = (((a + k) / (a + b + n)) * weight[..., None]).sum(axis=(0, 1))
    laws = beta_laws(k, n)
    shares = ((laws.alpha + k[:, None]) / (laws.alpha + laws.beta + n[:, None])) @ laws.weight
    np.testing.assert_allclose(shares, expected, atol=0.003)


@pytest.mark.slow
def test_intervals_of_shares_hold_as_often_as_they_say_of_few_models() -> None:
    rng, inside, rounds = np.random.default_rng(10), 0, runs(150)
    for _ in range(rounds):
        truth = rng.beta(4, 12, 4)
        model, voter = rng.integers(4, size=600), np.arange(600)
        votes = planted(rng, n=600)
        other = (model + rng.integers(1, 4, size=600)) % 4
        given_a, given_b = (rng.random(600) < truth[side] for side in (model, other))
        votes = replace(votes, a=model, b=other)
        codes = {"reasons_a": 1 + 2 * given_a, "reasons_b": 1 + 2 * given_b}
        votes = changed(votes, voter=voter, **codes)
        for one in reason_shares(votes):
            if one.reason == "useful":
                inside += one.lower <= truth[MODELS.index(one.model)] <= one.upper
    assert inside / (4 * rounds) == pytest.approx(0.95, abs=0.03)


def test_what_the_votes_do_not_tell_is_none_and_says_why() -> None:
    votes = planted(np.random.default_rng(1), n=200)
    names = {"voter_intent": ("asking", "", "quizzing")}
    unknown = changed(votes, voter_intent=np.where(votes.a == 0, 1, 0))
    report = report_remarks(replace(unknown, names=names))
    assert (report.winning, report.intent, report.shares) == (None, None, ())
    assert report.intents == {"asking": int((votes.a != 0).sum()), "quizzing": 0}
    assert len(report.notes) == 2
    assert "connect two models" in report.notes[1]
    one = changed(votes, voter=np.zeros(200, dtype=int))
    with pytest.raises(DataError, match="Two voters are needed, and there are 1"):
        intent_by_model(one, "quizzing", "asking")
    with pytest.raises(DataError, match="effective voters or prompts cannot tell 4 models apart"):
        intent_by_model(changed(votes, voter=np.arange(200) % 4), "quizzing", "asking")
    with pytest.raises(DataError, match="No vote has the intent 'testing'; there are 'asking'"):
        intent_by_model(votes, "testing", "asking")


def test_models_that_one_intent_does_not_connect_are_left_out() -> None:
    votes = planted(np.random.default_rng(1), n=2000)
    has_last = (votes.a == 3) | (votes.b == 3)
    votes = changed(votes, voter_intent=np.where(has_last, 0, votes.groups["voter_intent"]))
    result = intent_by_model(votes, "quizzing", "asking")
    assert {row.model for row in result.models} == {*MODELS[:3]}
    assert result.df == 2


CSV = """model_a,model_b,winner,voter,reasons_a,reasons_b,voter_intent
x,y,model_a,ann,"useful, complete",,quizzing
x,y,tie,ann,,,
y,x,both_bad,bob,incorrect,"incorrect,superficial",playing
"""


def test_remarks_are_read_from_the_columns_that_an_arena_exports(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(CSV)
    report = report_source(path, Columns())
    assert (report.votes, report.voters, report.explained) == (3, 2, 2)
    assert {(one.model, one.reason): (one.given, one.answers) for one in report.shares} == {
        **{("x", name): (1, 2) for name in ("complete", "incorrect", "superficial", "useful")},
        **{("y", name): (0, 2) for name in ("complete", "superficial", "useful")},
        ("y", "incorrect"): (1, 2),
    }
    assert report.to_dict()["intents"] == {"playing": 1, "quizzing": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model_a,model_b,winner,voter\nx,y,tie,ann\n", "holds no remarks"),
        ("model_a,model_b,winner,voter_intent\nx,y,tie,asking\n", "does not name its voters"),
        ("model_a,model_b,winner,voter,reasons_a\nx,y,tie,ann,\n", "Nothing was remarked"),
        (
            "model_a,model_b,winner,voter,reasons_a\n"
            + "".join(f"x,y,tie,ann,reason {n}\n" for n in range(MOST_REASONS + 1)),
            "51 different reasons",
        ),
    ],
)
def test_a_file_without_remarks_is_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        report_source(path, Columns())
