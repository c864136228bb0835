"""A gate says better, not worse, worse or that it cannot tell, and seldom errs, however asked."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rating import Comparisons
from rating.elo import POINTS_PER_NAT
from rating.errors import DataError
from rating.uncertainty.gate import (
    Behind,
    Difference,
    Gate,
    GateOptions,
    Lead,
    decided,
    errors_at,
    gate,
    lead_of,
    planned,
)
from rating.uncertainty.sequence import boundary, tightest_at
from rating.uncertainty.student import quantile
from tests.rating.gated import ASKED, CANDIDATE, INCUMBENT, Crowd

SURE = Lead(
    value=0.0,
    variance=1e-4,
    df=math.inf,
    by_prompt=1e-4,
    prompt_df=math.inf,
    independent=1e-4,
    effective=math.inf,
)
Record = Callable[[str, object], None]
KNOWN = Behind(people=1000, direct=1000, rests_on="1,000 votes")


def between(lower: float | None, upper: float | None, **asked: object) -> Gate:
    return Gate(
        options=replace(ASKED, **asked),  # type: ignore[arg-type]
        difference=Difference(value=0.0, lower=lower, upper=upper),
        people=1,
        needed=0,
        by="people",
        rests_on="one vote",
    )


@pytest.mark.parametrize(
    ("lower", "upper", "answer", "passes", "is_better"),
    [
        (1, 50, "better", True, True),
        (-5, 50, "not worse", True, None),
        (-15, -5, "not worse", True, False),
        (-40, 10, "cannot tell", None, None),
        (-60, -5, "cannot tell", None, False),
        (-60, -25, "worse", False, False),
        (None, None, "cannot tell", None, None),
        (None, -25, "worse", False, False),
    ],
)
def test_an_answer_is_where_the_interval_lies(
    lower: float | None,
    upper: float | None,
    answer: str,
    passes: bool | None,
    is_better: bool | None,
) -> None:
    """With a margin of 20 points; the last column is of a gate that requires a better one."""
    assert between(lower, upper).answer == answer
    assert between(lower, upper).passes is passes
    assert between(lower, upper, require="better").passes is is_better


def test_the_interval_is_that_of_a_confidence_sequence_tightest_at_the_margin() -> None:
    """Of one vote a voter, on the scale of log-odds, at many voters."""
    rng = np.random.default_rng(2)
    won = (rng.random(4000) < 0.55).astype(np.int64)
    data = Comparisons.from_arrays(
        [CANDIDATE] * 4000,
        [INCUMBENT] * 4000,
        np.where(won, "model_a", "model_b").tolist(),
        voter=list(range(4000)),
    )
    result = gate(data, ASKED).difference
    assert result is not None
    assert result.lower is not None
    rate = won.mean()
    error = rate * (1 - rate)
    voters = planned(ASKED, there=0) / (4 * error)
    reach = boundary(np.array([4000]), tightest_at(round(voters)))[0]
    half = won.std(ddof=1) * reach / error * POINTS_PER_NAT
    assert result.value == pytest.approx(POINTS_PER_NAT * np.log(rate / (1 - rate)), abs=0.1)
    assert result.value - result.lower == pytest.approx(half, rel=0.01)


@pytest.mark.parametrize("margin", [5, 20, 60])
def test_half_of_it_is_the_margin_where_it_is_tightest(margin: float) -> None:
    asked = replace(ASKED, margin=margin)
    votes = planned(asked, there=0)
    lead = replace(SURE, variance=4 / votes, by_prompt=4 / votes, independent=4 / votes)
    assert POINTS_PER_NAT * lead.half_width(asked) == pytest.approx(margin, rel=1e-3)
    assert errors_at(4 / votes, asked) < errors_at(4 / votes * 10, asked)
    assert errors_at(4 / votes, asked) < errors_at(4 / votes / 100, asked)


def test_turned_round_the_other_is_behind_by_as_much() -> None:
    data = Crowd(lead=0.5, taste=0.4).draw(300, np.random.default_rng(1)).upto(300)
    turned = replace(ASKED, candidate=INCUMBENT, incumbent=CANDIDATE)
    one, other = gate(data, ASKED).difference, gate(data, turned).difference
    assert one is not None
    assert other is not None
    assert (one.value, one.lower, one.upper) == pytest.approx(
        (-other.value, -(other.upper or 0), -(other.lower or 0))
    )


def test_votes_on_other_pairs_make_it_more_precise() -> None:
    data = Crowd(direct=0.2).draw(300, np.random.default_rng(1)).upto(300)
    cast = Crowd(direct=0.2).draw(300, np.random.default_rng(1))
    direct = (cast.pairs < 2).all(axis=1)
    columns = {name: getattr(cast, name)[direct] for name in ("pairs", "won", "voter", "prompt")}
    alone = replace(cast, **columns).upto(300)
    assert lead_of(data, ASKED).variance < 0.7 * lead_of(alone, ASKED).variance


def test_few_voters_tell_nothing_but_of_themselves() -> None:
    data = Crowd(lead=1.0, per_voter=150).draw(6, np.random.default_rng(1)).upto(6)
    result = gate(data, ASKED)
    assert (result.answer, result.by, result.difference) == ("cannot tell", "nothing", None)
    assert "nothing is told from fewer than 15" in result.why
    own = gate(data, replace(ASKED, claims="these-voters"))
    assert own.answer == "better"
    assert own.rests_on.endswith("it speaks for these voters alone")


def test_shared_prompts_widen_the_interval() -> None:
    few = Crowd(liking=1.5, prompts=30).draw(600, np.random.default_rng(3)).upto(600)
    many = Crowd(liking=1.5, prompts=100_000).draw(600, np.random.default_rng(3)).upto(600)
    assert lead_of(few, ASKED).variance > 2 * lead_of(many, ASKED).variance


def test_as_many_votes_as_are_needed_settle_it() -> None:
    half_way = decided(replace(SURE, value=0.0, variance=2e-3), ASKED, KNOWN)
    assert half_way.passes is None
    assert half_way.needed is not None
    times = 1 + half_way.needed / KNOWN.people
    assert times > 1.2
    for more, passes in ((times * 1.001, True), (times * 0.99, None)):
        then = replace(SURE, variance=2e-3 / more)
        assert decided(then, ASKED, KNOWN).passes is passes
    assert decided(SURE, ASKED, KNOWN).needed == 0


def test_a_lead_on_the_line_is_settled_by_no_number_of_votes() -> None:
    on_it = replace(SURE, value=-20 / POINTS_PER_NAT)
    result = decided(on_it, ASKED, KNOWN)
    assert (result.passes, result.needed) == (None, None)
    assert "no votes may settle it" in result.sentences[-1]


def test_the_words_and_the_keys_are_there() -> None:
    data = Crowd(lead=0.7).draw(400, np.random.default_rng(1)).upto(400)
    result = gate(data, ASKED).to_dict()
    assert {"answer", "margin", "difference", "looks", "votes", "needed", "rests_on"} <= {*result}
    assert set(result["difference"]) == {"value", "lower", "upper"}
    assert set(result["votes"]) == {"people", "judge"}
    assert result["looks"] == "any"
    assert result["sentences"][0] == "umber is better than basalt."
    assert "however often one looks" in result["sentences"][1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"incumbent": CANDIDATE}, "not 'umber' and itself"),
        ({"margin": -1.0}, "--margin -1"),
        ({"margin": math.inf}, "--margin inf"),
        ({"margin": math.nan}, "--margin nan"),
        ({"level": 1.0}, "--level 1"),
        ({"require": "best"}, "--require must be one of better, not-worse, not 'best'"),
        ({"claims": "all"}, "--claims must be one of"),
    ],
)
def test_what_no_gate_can_ask_is_quoted(change: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        replace(ASKED, **change)  # type: ignore[arg-type]


def test_a_model_without_votes_is_named() -> None:
    data = Crowd().draw(30, np.random.default_rng(1)).upto(30)
    with pytest.raises(DataError, match="no votes on 'owl'"):
        gate(data, GateOptions(candidate="owl", incumbent=INCUMBENT, margin=20))


RUNS, LOOKS, VOTERS = 200, 20, 300
FALSE_ANSWERS = 0.05 + 3 * np.sqrt(0.05 * 0.95 / RUNS)
QUICK = replace(ASKED, margin=60)
"""Tightest where these crowds are: with a smaller margin it errs less often yet."""


def looks() -> range:
    return range(VOTERS // LOOKS, VOTERS + 1, VOTERS // LOOKS)


def of_lead(result: Gate) -> float:
    """How far the interval is off a lead of zero, 0 where it holds that."""
    one = result.difference
    if one is None or one.lower is None or one.upper is None:
        return 0.0
    return max(one.lower, -one.upper, 0.0)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("taste", "liking"), [(0.0, 0.8), (0.8, 0.8), (0.0, 0.0)])
def test_twenty_looks_at_equal_models_err_in_at_most_one_gate_in_twenty(
    taste: float, liking: float, record_property: Record
) -> None:
    """On 60 prompts that all 400 voters share, six votes each."""
    crowd, wrong = Crowd(taste=taste, liking=liking), 0
    for seed in range(RUNS):
        cast = crowd.draw(400, np.random.default_rng(seed))
        wrong += any(of_lead(gate(cast.upto(n), QUICK)) > 0 for n in range(20, 401, 20))
    row = {"taste": taste, "likings": liking, "wrong": f"{wrong / RUNS:.3f}"}
    record_property("gates of equal models", row)
    assert wrong / RUNS <= FALSE_ANSWERS


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_candidate_that_is_as_far_behind_as_the_margin_seldom_passes() -> None:
    crowd, passed = Crowd(lead=-60 / POINTS_PER_NAT), 0
    for seed in range(RUNS):
        cast = crowd.draw(VOTERS, np.random.default_rng([seed, 2]))
        passed += any(gate(cast.upto(n), QUICK).passes is True for n in looks())
    assert passed / RUNS <= FALSE_ANSWERS / 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_looks_by_a_fixed_interval_would_err_far_more_often() -> None:
    """The planted error: the same leads, and an interval that is right at one look."""
    wrong, crowd = 0, Crowd()
    for seed in range(60):
        cast = crowd.draw(VOTERS, np.random.default_rng([seed, 1]))
        leads = [lead_of(cast.upto(n), QUICK) for n in looks()[2:]]
        wrong += any(abs(x.value) > 1.96 * math.sqrt(x.variance) for x in leads)
    assert wrong / 60 > 0.12


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("taste", "least"), [(0.0, (0.85, 0.98)), (0.8, (0.28, 0.7))])
def test_forty_points_are_seen_by_so_many_votes_and_sooner_by_a_test_made_once(
    taste: float, least: tuple[float, float], record_property: Record
) -> None:
    """By votes of 100 to 800 voters, six each: docs/gate.md has the table."""
    crowd = Crowd(lead=40 / POINTS_PER_NAT, taste=taste, liking=0.4, prompts=100_000)
    asked, looked, once = replace(ASKED, margin=40), np.zeros(4), np.zeros(4)
    for seed in range(100):
        cast = crowd.draw(1600, np.random.default_rng(seed))
        leads = [lead_of(cast.upto(n), asked) for n in (100, 200, 400, 800)]
        looked += np.logical_or.accumulate([x.value > x.half_width(asked) for x in leads])
        once += [
            x.value > max(quantile(0.95, x.df) * x.variance**0.5, 1.96 * x.independent**0.5)
            for x in leads
        ]
    shares = {"looked at": (looked / 100).tolist(), "made once": (once / 100).tolist()}
    record_property("gates of a candidate 40 points ahead", {"taste": taste, **shares})
    assert looked[2] / 100 >= least[0]
    assert looked[3] / 100 >= least[1]
    assert (once >= looked).all()
