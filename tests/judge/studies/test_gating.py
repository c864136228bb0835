"""A gate by votes and verdicts: whatever a judge is like, and whichever pairs it was asked."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from judge.studies.powered import PoweredLead, powered_lead
from judge.studies.rows import Items, Labels
from rating.decide import decided, lead_of, unanswered
from rating.errors import NotIdentifiedError
from tests.rating.gated import ASKED, BETWEEN, Crowd, Judged

CROWD = Crowd(lead=-0.5, liking=2.0, prompts=5000)
QUICK = replace(ASKED, margin=60)
RUNS = 150
FALSE_ANSWERS = 0.05 + 3 * np.sqrt(0.05 * 0.95 / RUNS)


def drawn(seed: int, favour: float = 0.0, crowd: Crowd = CROWD) -> tuple[Items, Labels, Labels]:
    rng = np.random.default_rng(seed)
    return crowd.draw(400, rng).judged(6000, rng, favour=favour, noise=0.2).upto(400)


def without_verdicts(data: tuple[Items, Labels, Labels]) -> PoweredLead:
    items, people, judge = data
    return powered_lead(items, people, judge.only(np.arange(1)), BETWEEN)


@pytest.mark.parametrize("favour", [0.0, 2.0])
def test_a_judge_makes_the_lead_more_precise_and_moves_it_nowhere(favour: float) -> None:
    items, people, judge = data = drawn(1, favour)
    both, votes = powered_lead(*data, BETWEEN), without_verdicts(data)
    assert both.lead.largest < 0.9 * votes.lead.largest
    assert abs(both.lead.value - votes.lead.value) < 2 * np.sqrt(votes.lead.variance)
    assert (both.verdicts, votes.judge_weight, votes.verdicts) == (data[2].n, 0.0, 0)
    assert "the judge adds no information to the votes" in votes.warnings[-1]
    pair = (np.sort(items.pairs[judge.item]) == [2, 3]).all(axis=1)
    some = pair & (np.isin(judge.item, people.item) == bool(favour))
    few = powered_lead(items, people, judge.only(~some | (some.cumsum() < 20)), BETWEEN)
    assert few.verdicts == (~pair).sum()


def test_a_judge_that_throws_coins_has_next_to_no_weight() -> None:
    items, people, judge = drawn(1)
    coin = np.where(np.random.default_rng(2).random(judge.n) < 0.5, 1, -1)
    data = items, people, Labels.of_one_rater(judge.item, coin)
    both = powered_lead(*data, BETWEEN)
    assert both.judge_weight < 0.05
    assert both.lead.largest == pytest.approx(without_verdicts(data).lead.largest, rel=0.05)


def test_more_verdicts_on_the_two_than_votes_do_not_move_the_lead() -> None:
    """The judge favours the candidate, and was asked about the two alone beyond the votes."""
    items, people, judge = drawn(3, favour=2.0)
    voted = np.isin(np.arange(items.n), people.item)
    two = (items.pairs < 2).all(axis=1)
    skewed = judge.only((voted | two)[judge.item])
    leads = [powered_lead(items, people, one, BETWEEN).lead for one in (judge, skewed)]
    assert leads[1].value == pytest.approx(leads[0].value, abs=np.sqrt(leads[0].variance))


def test_without_verdicts_it_is_the_lead_of_votes_on_prompts_of_their_own() -> None:
    cast = CROWD.draw(400, np.random.default_rng(1))
    cast = replace(cast, prompt=np.arange(len(cast.won)), liked=np.zeros((2 * len(cast.won), 4)))
    data = cast.judged(10, np.random.default_rng(1)).upto(400)
    votes, plain = without_verdicts(data).lead, lead_of(cast.upto(400), BETWEEN)
    assert votes.value == pytest.approx(plain.value, rel=1e-3)
    assert votes.variance == pytest.approx(plain.variance, rel=0.05)


def test_verdicts_that_are_others_where_people_voted_leave_the_judge_out() -> None:
    items, people, judge = drawn(1)
    voted = np.isin(judge.item, people.item)
    for_first = np.where(voted, judge.label, 1)
    lead = powered_lead(items, people, Labels.of_one_rater(judge.item, for_first), BETWEEN)
    assert (lead.judge_weight, lead.verdicts) == (0.0, 0)
    assert "differ from those on the rest" in lead.warnings[-1]


def test_a_model_that_nobody_voted_on_has_no_lead() -> None:
    items, people, judge = drawn(1)
    unseen = people.only((items.pairs[people.item] != 0).all(axis=1))
    with pytest.raises(NotIdentifiedError, match="Nobody voted on 'umber'"):
        powered_lead(items, unseen, judge, BETWEEN)


def off_zero(judged: Judged, voters: int) -> bool:
    """Whether a look after some voters excludes a lead of zero."""
    try:
        lead = powered_lead(*judged.upto(voters), BETWEEN).lead
    except NotIdentifiedError:
        return False
    one = decided(lead, unanswered(QUICK, 1, 1, None, None)).difference
    if one is None or one.lower is None or one.upper is None:
        return False
    return one.lower > 0 or one.upper < 0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("taste", [0.0, 0.8])
@pytest.mark.parametrize("prompts", [60, 5000])
def test_twenty_looks_with_a_fooled_judge_err_in_at_most_one_gate_in_twenty(
    taste: float, prompts: int, record_property: Callable[[str, object], None]
) -> None:
    """Equal models on shared prompts; the judge favours the candidate by a nat."""
    crowd, wrong = Crowd(taste=taste, liking=0.8, prompts=prompts), 0
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        judged = crowd.draw(300, rng).judged(3000, rng, favour=1.0)
        wrong += any(off_zero(judged, voters) for voters in range(15, 301, 15))
    row = {"taste": taste, "prompts": prompts, "wrong": f"{wrong / RUNS:.3f}"}
    record_property("gates of equal models with a fooled judge", row)
    assert wrong / RUNS <= FALSE_ANSWERS
