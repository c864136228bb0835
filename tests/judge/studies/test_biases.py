"""Planted biases are found, and what people share is none."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from judge.studies.biases import Biases, Effect, biases, moderation_gap, self_preference
from judge.studies.boards import preferences
from judge.studies.estimates import Estimate
from judge.studies.rows import Items, Labels
from rating.errors import NotIdentifiedError
from rating.variants import POINTS_PER_NAT
from tests.judge.studies.labels import ends, holds, items_of, labels_of, published, swapped, width
from tests.judge.studies.moved import MovedStudy, Mover

LARGE = MovedStudy(
    people=Mover(position=0.1, length=0.3),
    judge=Mover(position=0.5, length=0.6, favour=0.8),
    n=12_000,
    n_prompts=200,
    tie_rate=0.0,
    shared=0.0,
)


def _holds(estimate: Estimate | None, nats: float) -> bool:
    return holds(estimate, POINTS_PER_NAT * nats)


@pytest.fixture(scope="module")
def large() -> Biases:
    return biases(*LARGE.draw(np.random.default_rng(2)), own_model="m7", level=0.99)


def test_planted_slopes_are_found_in_each_source_and_their_difference(large: Biases) -> None:
    for effect, people, judge in (
        (large.effects["position"], 0.1, 0.5),
        (large.effects["length"], 0.3, 0.6),
    ):
        assert _holds(effect.people, people)
        assert _holds(effect.judge, judge)
        assert _holds(effect.difference, judge - people)
        assert not _holds(effect.difference, 0.0)


def test_a_planted_favour_for_the_judges_own_model_is_found(large: Biases) -> None:
    own = large.self_preference
    assert own is not None
    assert _holds(own.excess, 0.8)
    assert not _holds(own.excess, 0.0)
    assert own.scale == pytest.approx(1, abs=0.1)
    assert own.others_off < 20
    leads = large.effects["self"]
    assert _holds(leads.people, 0.8 + 0.8 / 7)  # the others' mean is -0.8 / 7
    assert _holds(leads.judge, 1.6 + 0.8 / 7)


def test_a_term_of_which_nothing_is_known_has_no_effect(large: Biases) -> None:
    assert large.effects["format"] == Effect(None, None, None)


def test_a_judge_moved_as_people_are_has_no_bias() -> None:
    items, people, _ = LARGE.draw(np.random.default_rng(3))
    measured = biases(items, people, people, own_model="m7")
    for effect in (measured.effects["position"], measured.effects["length"]):
        assert effect.difference is not None
        assert effect.difference.value == pytest.approx(0, abs=1e-9)
        assert effect.people == effect.judge
    assert measured.self_preference is not None
    assert measured.self_preference.excess.value == pytest.approx(0, abs=1e-6)
    assert measured.self_preference.excess.lower is None


def test_a_judge_that_copies_nearly_all_votes_differs_by_less_than_either_is_uncertain() -> None:
    items, people, _ = replace(LARGE, n=3000).draw(np.random.default_rng(3))
    label = people.label.copy()
    label[::50] = 0
    measured = biases(items, people, replace(people, label=label)).effects["length"]
    assert width(measured.difference) < width(measured.people) / 3
    assert width(measured.difference) < width(measured.judge) / 3


def test_a_sharper_judge_does_not_seem_to_favour_a_strong_model_of_its_own() -> None:
    moved = replace(LARGE, judge=Mover(scale=2.5))
    items, people, judge = moved.draw(np.random.default_rng(4))
    own = self_preference(preferences(items, people), preferences(items, judge), "m7", level=0.99)
    assert own is not None
    assert own.scale == pytest.approx(2.5, abs=0.3)
    assert _holds(own.excess, 0.0)


def test_a_judge_that_likes_every_model_differently_does_not_favour_its_own() -> None:
    """It is 100 points up, and so are others up and down."""
    pushed = np.array([0.5, -0.5, -0.3, 0.6, -0.3, -0.5, 0.5, 0.6])
    strengths = LARGE.strengths
    rng = np.random.default_rng(12)
    items, people, _ = LARGE.draw(rng)
    gap = (strengths + pushed)[items.pairs] @ [1, -1]
    label = np.where(rng.random(items.n) < 1 / (1 + np.exp(-gap)), 1, -1).astype(np.int8)
    boards = preferences(items, people), preferences(items, replace(people, label=label))
    own = self_preference(*boards, "m7")
    assert own is not None
    assert own.excess.value == pytest.approx(POINTS_PER_NAT * 0.6, abs=30)
    assert _holds(own.excess, 0.0)
    assert own.between == pytest.approx(POINTS_PER_NAT * 0.5, rel=0.3)


def test_the_interval_is_never_narrower_than_the_ratings_are_uncertain() -> None:
    """Of few verdicts on its own model, which others on one line say nothing of."""
    items, people, judge = LARGE.draw(np.random.default_rng(13))
    own = (items.pairs == 7).any(axis=1)
    seldom = ~own | (np.cumsum(own) <= 60)
    boards = preferences(items, people), preferences(items, judge.only(seldom[judge.item]))
    result = self_preference(*boards, "m7")
    assert result is not None
    assert result.excess.upper is not None
    assert result.excess.value is not None
    assert result.excess.upper - result.excess.value > 1.96 * 45


@pytest.mark.published
def test_no_name_makes_the_published_verdicts_certain_to_favour_it(published_data: Path) -> None:
    """GPT-4's verdicts of MT-bench, declared to be of a judge named after each model in turn."""
    data = published(published_data / "votes" / "mtbench")
    (judge,) = data.judges.values()
    boards = preferences(data.items, data.people), preferences(data.items, judge)
    result = {name: self_preference(*boards, name) for name in data.items.models}
    excess = {name: one.excess for name, one in result.items() if one is not None}
    assert list(excess) == list(data.items.models)
    assert [name for name, one in excess.items() if not _holds(one, 0.0)] == []
    assert excess["gpt-4"].value == pytest.approx(93, abs=1)
    assert excess["gpt-4"].upper == pytest.approx(228, abs=2)


def test_turning_all_sides_round_changes_no_effect() -> None:
    items, people, judge = replace(LARGE, n=1500).draw(np.random.default_rng(5))
    turned = Items(
        items.models, items.pairs[:, ::-1], items.prompt, {"length": -items.gaps["length"]}
    )
    one = biases(items, people, judge, own_model="m7")
    other = biases(turned, swapped(people), swapped(judge), own_model="m7")
    for name in ("position", "length"):
        ours, theirs = one.effects[name].difference, other.effects[name].difference
        assert ours is not None
        assert theirs is not None
        assert ours.value == pytest.approx(theirs.value, abs=1e-6)
        assert ours.lower == pytest.approx(theirs.lower, abs=1e-6)


def test_verdicts_of_both_orders_together_show_no_position() -> None:
    items, people, judge = replace(LARGE, n=1500).draw(np.random.default_rng(6))
    unknown = replace(judge, first=np.zeros_like(judge.first))
    measured = biases(items, people, unknown)
    position = measured.effects["position"]
    assert position == Effect(position.people, None, None) != Effect(None, None, None)


def test_a_term_that_cannot_be_told_leaves_the_others_standing() -> None:
    items, people, judge = replace(LARGE, n=1500).draw(np.random.default_rng(7))
    same = replace(items, gaps={"length": items.gaps["length"], "format": items.gaps["length"]})
    measured = biases(same, people, judge)
    assert measured.effects["length"].difference is not None
    assert measured.effects["format"].people is None
    assert any(
        w.startswith("The effect of format is not estimated from the votes")
        for w in measured.warnings
    )


def test_rows_of_unknown_length_are_left_out_and_counted() -> None:
    items, people, judge = replace(LARGE, n=1500).draw(np.random.default_rng(8))
    gap = items.gaps["length"].copy()
    gap[:150] = np.nan
    measured = biases(replace(items, gaps={"length": gap}), people, judge)
    assert measured.effects["length"].people is not None
    assert measured.effects["length"].people.n == 1350
    assert "10.0% of the votes are excluded: length unknown." in measured.warnings


def test_what_cannot_be_told_of_oneself_is_said() -> None:
    items, people, judge = replace(LARGE, n=1500).draw(np.random.default_rng(9))
    measured = biases(items, people, judge, own_model="a stranger")
    assert measured.self_preference is None
    assert any("'a stranger'" in warning for warning in measured.warnings)
    for n_models, known in ((3, False), (4, True)):
        items, *both = MovedStudy(n_models=n_models).draw(np.random.default_rng(9))
        own = self_preference(preferences(items, both[0]), preferences(items, both[1]), "m0")
        assert (own is not None) is known


def test_few_prompts_are_warned_of() -> None:
    items, people, judge = replace(LARGE, n=1500, n_prompts=12).draw(np.random.default_rng(9))
    measured = biases(items, people, judge)
    assert any("The votes cover 12 prompts" in warning for warning in measured.warnings)


def test_models_without_finite_strengths_are_refused() -> None:
    people = labels_of([(0, 1), (1, -1)])
    with pytest.raises(NotIdentifiedError, match="no finite value"):
        biases(items_of(2), people, labels_of([(0, 1), (1, 1)]))


@pytest.mark.slow
def test_intervals_of_biases_cover_what_was_planted() -> None:
    """400 runs: within three standard errors of 95 %, .917 to .983."""
    study, rng = replace(LARGE, n=2000, n_prompts=100), np.random.default_rng(10)
    inside = np.zeros(3)
    for _ in range(400):
        measured = biases(*study.draw(rng), own_model="m7")
        assert measured.self_preference is not None
        inside += [
            _holds(measured.effects["position"].difference, 0.4),
            _holds(measured.effects["length"].difference, 0.3),
            _holds(measured.self_preference.excess, 0.8),
        ]
    inside /= 400
    assert ((inside >= 0.917) & (inside <= [0.983, 0.983, 1.0])).all(), inside


@pytest.mark.slow
def test_likings_that_a_prompt_gives_to_people_and_judge_alike_are_no_bias() -> None:
    study = MovedStudy(people=Mover(position=0.3), judge=Mover(position=0.3), shared=1.0)
    rng, inside = np.random.default_rng(11), 0
    for _ in range(400):
        inside += _holds(biases(*study.draw(rng)).effects["position"].difference, 0.0)
    assert 0.917 <= inside / 400 <= 0.983


def refusing(*, people: float, judge: float, n: int = 6000) -> tuple[Items, Labels, Labels]:
    """A study in which three answers in ten decline, which is worth so many nats to each."""
    rng = np.random.default_rng(5)
    items, votes, verdicts = MovedStudy(n=n, tie_rate=0.0, shared=0.0).draw(rng)
    declines = rng.random((n, 2)) < 0.3
    gap = np.asarray(declines[:, 0] * 1.0 - declines[:, 1], dtype=np.float64)
    theta = np.linspace(-0.8, 0.8, 8)[items.pairs]
    drawn = []
    for rows, worth in ((votes, people), (verdicts, judge)):
        logit = theta[:, 0] - theta[:, 1] + worth * gap
        label = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), 1, -1).astype(np.int8)
        drawn.append(replace(rows, label=label))
    return replace(items, gaps={**items.gaps, "refusal": gap}), drawn[0], drawn[1]


def test_what_declining_costs_with_people_and_with_the_judge_is_recovered() -> None:
    effect = biases(*refusing(people=-2.4, judge=-0.8)).effects["refusal"]
    assert _holds(effect.people, -2.4)
    assert _holds(effect.judge, -0.8)
    assert _holds(effect.difference, 1.6)


def test_the_moderation_gap_is_how_often_a_refusal_wins_with_each() -> None:
    items, votes, verdicts = refusing(people=-2.4, judge=-0.8)
    gap = moderation_gap(items, votes, verdicts)
    assert gap is not None
    assert gap["people"].n == gap["judge"].n == int((np.abs(items.gaps["refusal"]) == 1).sum())
    side = items.gaps["refusal"][votes.item]
    by_hand = float((votes.label[side != 0] == side[side != 0]).mean())
    assert gap["people"].value == pytest.approx(by_hand)
    assert gap["people"].value == pytest.approx(0.10, abs=0.03)  # a little over 1 / (1 + e^2.4)
    assert gap["judge"].value == pytest.approx(0.33, abs=0.03)
    assert ends(gap["difference"])[0] > 0.1


def test_a_judge_that_takes_refusals_as_people_do_has_no_gap() -> None:
    items, votes, _ = refusing(people=-1.0, judge=-1.0)
    gap = moderation_gap(items, votes, votes)
    assert gap is not None
    assert gap["difference"] == Estimate(0.0, None, None, gap["people"].n)


def test_refusals_leave_the_other_biases_as_they_are() -> None:
    items, votes, verdicts = refusing(people=-2.4, judge=-0.8)
    without = replace(items, gaps={"length": items.gaps["length"]})
    ours, theirs = biases(items, votes, verdicts), biases(without, votes, verdicts)
    assert ours.effects["length"] == theirs.effects["length"]
    assert theirs.effects["refusal"] == Effect(None, None, None)
    assert theirs.moderation is None


def test_where_nobody_declines_there_is_no_effect_and_no_gap() -> None:
    items, votes, verdicts = refusing(people=0.0, judge=0.0)
    items = replace(items, gaps={**items.gaps, "refusal": np.zeros(items.n)})
    moved = biases(items, votes, verdicts)
    assert moved.effects["refusal"] == Effect(None, None, None)
    assert moved.moderation is None
