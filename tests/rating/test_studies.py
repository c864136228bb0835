"""What intervals and rank intervals promise, on simulated boards; docs/evidence.md has the
tables.

Each promise stands beside a planted error that breaks it.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rating import NotIdentifiedError, fit_bradley_terry, infer
from rating.likelihood import solve
from rating.ranks import joint_rank_ranges
from tests.simulation import D1, DESIGNS, TASTES, Design, Share, Study, at, study

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]

BOARDS = 400
SEED = 1

TEAMS = {5: 100, 8: 60, 12: 60}
"""Votes of each member of a small team."""
NEWCOMERS = {"1 x 80": (1, 80), "2 x 60": (2, 60), "3 x 27": (3, 27), "5 x 16": (5, 16)}
EQUAL = replace(D1, spread=0.0)
PROMPTS = {
    "60 prompts": replace(EQUAL, n_prompts=60, liking=0.8),
    "20 prompts": replace(EQUAL, n_prompts=20, liking=0.8),
    "60 prompts, no likings": replace(EQUAL, n_prompts=60),
}
OTHERS = {
    "one voter has 30 %": replace(EQUAL, heaviest=0.3),
    "three votes of ten are ties": replace(EQUAL, tie_rate=0.3),
    "sides lean to the left": replace(EQUAL, lean=0.4),
    "pairs by the arena's rule": replace(EQUAL, adaptive="arena"),
    "pairs by what they tell": replace(EQUAL, adaptive="gain"),
}


def team(people: int, taste: float) -> Design:
    return Design(
        f"team {people}", n_voters=people, busy="even", each=TEAMS[people], taste=taste, spread=0.0
    )


def covers(share: Share, at_most: float = 0.98) -> bool:
    """As a right program does with probability over .999, whatever the boards."""
    return share.mean + 2 * share.error >= 0.93 and share.mean - 2 * share.error <= at_most


def seldom(share: Share, at_most: float = 0.06) -> bool:
    error = math.sqrt(at_most * (1 - at_most) / BOARDS)
    return share.mean <= at_most + 3 * error


def row(name: str, taste: float, result: Study) -> dict[str, str]:
    plain = {"board": name, "taste": f"{taste:g}", "covered": str(result.covered["board"])}
    if result.newcomer:
        plain["newcomer"] = str(result.newcomer["board"])
        plain["points"] = f"{result.newcomer_points['board']:.0f}"
        plain["one t: newcomer"] = str(result.newcomer["one t"])
        plain["one t: points"] = f"{result.newcomer_points['one t']:.0f}"
    plain["one t"] = str(result.covered["one t"])
    plain["independent"] = str(result.covered["independent"])
    plain["false ranks"] = str(result.false["board"])
    plain["each pair by itself"] = str(result.false["unadjusted"])
    return plain


@pytest.mark.parametrize("taste", TASTES)
@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_and_ranks_of_equal_models_hold(
    design: str, taste: float, record_property: Record
) -> None:
    result = study(at(design, taste, spread=0.0), BOARDS, SEED)
    record_property(f"equal models, {BOARDS} boards a row", row(design, taste, result))
    assert covers(result.covered["board"])
    assert seldom(result.false["board"])
    assert not seldom(result.false["unadjusted"], 0.08)
    if taste and design != "D3":
        assert result.covered["independent"].mean < 0.92


@pytest.mark.parametrize("taste", TASTES)
def test_intervals_and_ranks_of_unequal_models_hold(taste: float, record_property: Record) -> None:
    result = study(at("D1", taste), BOARDS, SEED)
    plain = row("D1, unequal", taste, result)
    plain |= {f"{rule}, apart": str(share) for rule, share in result.apart.items()}
    record_property(f"unequal models, {BOARDS} boards a row", plain)
    assert covers(result.covered["board"])
    assert seldom(result.false["board"])
    assert result.apart["board"].mean > 0.9 * result.apart["multivariate t"].mean > 0.3


@pytest.mark.parametrize("taste", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("people", TEAMS)
def test_small_teams_are_covered_and_told_nothing_false(
    people: int, taste: float, record_property: Record
) -> None:
    result = study(team(people, taste), BOARDS, SEED)
    record_property(f"small teams, {BOARDS} boards a row", row(f"{people} people", taste, result))
    assert covers(result.covered["board"], 0.99)
    assert seldom(result.false["board"])


@pytest.mark.parametrize("taste", [0.0, 0.8])
@pytest.mark.parametrize("name", NEWCOMERS)
def test_newcomers_are_covered_and_do_no_harm(
    name: str, taste: float, record_property: Record
) -> None:
    result = study(replace(EQUAL, newcomer=NEWCOMERS[name], taste=taste), BOARDS, SEED)
    record_property(f"newcomers, {BOARDS} boards a row", row(name, taste, result))
    share = result.newcomer["board"]
    assert share.mean >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / BOARDS)
    assert covers(result.covered["board"])
    assert seldom(result.false["board"])
    if (name, taste) == ("2 x 60", 0.8):
        assert result.newcomer_points["board"] <= 300
    if name in ("2 x 60", "3 x 27"):
        assert result.newcomer["one t"].mean < 0.9


@pytest.mark.parametrize("taste", [0.0, 0.8])
@pytest.mark.parametrize("name", PROMPTS)
def test_shared_prompts_are_allowed_for(name: str, taste: float, record_property: Record) -> None:
    design = replace(PROMPTS[name], taste=taste)
    result = study(design, BOARDS, SEED, ("voter", "prompt"))
    by_voter = study(design, BOARDS, SEED)
    plain = row(name, taste, result)
    plain |= {
        "voters alone": str(by_voter.covered["board"]),
        "voters alone: false ranks": str(by_voter.false["board"]),
    }
    record_property(f"shared prompts, {BOARDS} boards a row", plain)
    assert covers(result.covered["board"])
    assert seldom(result.false["board"])
    if design.liking:
        assert by_voter.covered["board"].mean < 0.92
        assert not seldom(by_voter.false["board"], 0.08)


@pytest.mark.parametrize("liking", [0.4, 0.8])
def test_three_raters_of_shared_prompts_are_told_nothing_false(
    liking: float, record_property: Record
) -> None:
    """Prompts have many degrees of freedom, and cannot lend them to three people."""
    design = replace(team(5, 0.8), n_models=8, n_voters=3, each=300, n_prompts=60, liking=liking)
    result = study(design, BOARDS, SEED, ("voter", "prompt"))
    plain = row(f"3 raters, 60 prompts, likings of {liking:g}", 0.8, result)
    record_property(f"small teams on shared prompts, {BOARDS} boards a row", plain)
    assert covers(result.covered["board"], 0.99)
    assert seldom(result.false["board"])


@pytest.mark.parametrize("taste", [0.0, 0.8])
@pytest.mark.parametrize("name", OTHERS)
def test_what_boards_bring_besides_does_no_harm(
    name: str, taste: float, record_property: Record
) -> None:
    result = study(replace(OTHERS[name], taste=taste), BOARDS, SEED)
    record_property(f"other boards, {BOARDS} boards a row", row(name, taste, result))
    assert covers(result.covered["board"])
    assert seldom(result.false["board"])


def likings_of(design: Design, rng: np.random.Generator) -> np.ndarray:
    return design.strengths + rng.normal(0, design.taste, (design.n_voters, design.n_models))


@pytest.mark.parametrize("taste", TASTES)
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_claims_for_these_voters_speak_for_them(
    taste: float, spread: float, record_property: Record
) -> None:
    """Eight people, sixty votes each, four models: the truth is these eight people's."""
    design = replace(team(8, taste), n_models=4, spread=spread)
    rng = design.generator(SEED)
    covered: list[float] = []
    false: list[float] = []
    apart: list[float] = []
    population: list[float] = []
    while len(covered) < BOARDS:
        voter, a, b = design.draw_pairs(rng)
        liking = likings_of(design, rng)
        gap = liking[voter, a] - liking[voter, b]
        try:
            data = design.counted(voter, a, b, rng, gap)
            fitted = fit_bradley_terry(data)
        except NotIdentifiedError:
            continue
        probability = (1 / (1 + np.exp(liking[:, None, :] - liking[:, :, None]))).mean(axis=0)
        np.fill_diagonal(probability, 0.0)
        truth = solve(probability, np.zeros(4)).theta
        these = infer(fitted, data, ())
        within = np.abs(fitted.theta - truth) <= these.ratings().half_width(0.95)
        covered.append(float(within.mean()))
        ranges = joint_rank_ranges(these, rng=rng)
        rank = 1 + (truth[:, None] < truth[None, :] - 1e-12).sum(axis=1)
        false.append(float(((ranges.low > rank) | (ranges.high < rank)).any()))
        apart.append(float((ranges.low - 1).sum() / 6))
        everybody = joint_rank_ranges(infer(fitted, data, ("voter",), rng=rng), rng=rng)
        population.append(float((everybody.low - 1).sum() / 6))
    shares = [Share.of(np.array(x)) for x in (covered, false, apart, population)]
    names = ("covered", "false ranks", "pairs apart", "pairs apart, population")
    plain = {"taste": f"{taste:g}", "strengths": f"±{spread:g}"}
    plain |= {name: str(share) for name, share in zip(names, shares, strict=True)}
    record_property(f"eight people, claims for these, {BOARDS} boards a row", plain)
    assert covers(shares[0])
    assert seldom(shares[1], 0.05)
    if spread:
        assert shares[2].mean > shares[3].mean
