"""The first answer, gate by gate."""

from dataclasses import replace
from typing import Any

import pytest

from judge.studies.estimates import Estimate
from judge.studies.gates import (
    FIRST,
    LONGEST,
    MIN_PROMPTS,
    NOT_IDENTIFIED,
    RANDOM,
    UNTESTED,
    Alternative,
    Evidence,
    FirstAnswer,
    Rule,
    first_answer,
    unbeaten,
)

NOTHING = Estimate(None, None, None, 0)


def near(value: float, reach: float = 0.02, n: int = 900) -> Estimate:
    return Estimate(value, value - reach, value + reach, n)


COIN = Rule(RANDOM, Estimate(0.5, None, None, 900), near(1 / 3), near(0.3), None)
LONGER = Rule(LONGEST, near(0.6), near(0.5), near(0.2), near(0.7))
GOOD = Evidence(
    judge=near(0.8),
    people=near(0.78),
    highest=near(0.88),
    judge_with_ties=near(0.7),
    people_with_ties=near(0.68),
    gap=near(0.02),
    gap_with_ties=near(0.02),
    rules=(LONGER, COIN),
    alternative=Alternative(
        winning_rate=1.0,
        advantage=0.86,
        margin=0.1,
        people_tested=5,
        coin=0.2,
        longest=0.4,
        items_per_person=500.0,
        person=0.9,
        person_passed=0.95,
        majority=1.0,
        decides_at=422,
    ),
    raters="crowd",
    biases={"position": near(5, 10), "length": None, "format": None, "self": None},
    own_model=None,
    correlation=near(0.8, 0.1, 12),
    correlation_noise_freed=near(0.9, 0.1, 12),
    n_prompts=300,
    favouritism={"flint": near(0.02, 0.05, 90), "slate": near(-0.04, 0.05, 90)},
    reversed_pairs=(),
    unranked="",
)


def answer(**other: Any) -> FirstAnswer:
    return first_answer(replace(GOOD, **other))


def annotators_test(**other: Any) -> Alternative:
    assert GOOD.alternative is not None
    return replace(GOOD.alternative, **other)


def test_what_passes_every_gate_is_a_yes_and_its_reasons_name_every_figure() -> None:
    verdict = answer()
    assert verdict.verdict == "yes"
    assert verdict.headline.startswith("Yes. The judge agrees with a person at most 5")
    for part in (
        "upper limit, the winning rate of the majority of the others, is 100%",
        "another person, drawn per item, is 90%",
        "2 of 2 models; no favouritism is significantly above",
        "can miss a judge that favours the best",
        "80% (78–82)", "88% (86–90)", "100% of 5 people", "The margin, 10% of a person's items",
        "random choice is 20%, and of the longer answer 40%", "On 86% of a person's items",
        "12 models", "is 0.80 (0.70 to 0.90)", "disattenuated, it is 0.90",
    ):  # fmt: skip
        assert part in " ".join(verdict.reasons)


@pytest.mark.parametrize(
    ("other", "verdict", "reason"),
    [
        ({"judge": NOTHING}, "inconclusive", "No item has both a vote and a verdict"),
        ({"gap": NOTHING}, "inconclusive", "No item has votes of two people"),
        ({"n_prompts": MIN_PROMPTS - 1}, "inconclusive", "The study has 19 prompts; a verdict"),
        ({"n_prompts": 1}, "inconclusive", "The study has 1 prompt;"),
        ({"n_prompts": MIN_PROMPTS}, "yes", "The judge agrees with a person"),
        ({"gap": near(-0.1)}, "no", "People agree with each other more often than with the"),
        ({"gap": Estimate(-0.03, -0.06, -0.001, 9)}, "inconclusive", "may be less than 5 perc"),
        ({"gap": Estimate(0.0, -0.05, 0.05, 9)}, "yes", "The judge agrees with a person"),
        ({"gap": near(0.0, 0.06)}, "inconclusive", "It may agree with people less often"),
        ({"gap": Estimate(0.0, None, None, 9)}, "inconclusive", "It may agree with people"),
        ({"alternative": None}, "inconclusive", "The alternative-annotator test needs at least 3"),
        (
            {"alternative": annotators_test(winning_rate=0.4)},
            "inconclusive",
            "Non-inferiority of the judge is not shown for at least half",
        ),
        (
            {"alternative": annotators_test(winning_rate=0.4, items_per_person=421.5)},
            "inconclusive",
            "with 422 each, a person as judge would pass with 90% probability.",
        ),
        ({"alternative": annotators_test(winning_rate=0.5)}, "yes", "The judge agrees"),
        ({"alternative": annotators_test(coin=1.0)}, "inconclusive", "Choosing at random passes"),
        (
            {"alternative": annotators_test(longest=1.0)},
            "inconclusive",
            "Choosing the longer answer passes",
        ),
        ({"alternative": annotators_test(longest=None)}, "yes", "The judge agrees with a person"),
        (
            {"biases": {"position": near(30, 5)}},
            "inconclusive",
            "another person does, but shows biases beyond",
        ),
        ({"biases": {"self": near(-30, 5)}}, "inconclusive", "does, but shows biases beyond"),
        ({"biases": {"position": near(20, 5)}}, "inconclusive", "does, but shows biases beyond"),
        ({"biases": {"position": near(19, 5)}}, "yes", "The judge agrees with a person"),
        ({"biases": {"position": near(30, 40)}}, "yes", "The judge agrees with a person"),
        ({"reversed_pairs": (("flint", "slate"),)}, "inconclusive", "ranks slate above flint"),
        (
            {"gap_with_ties": near(-0.2)},
            "inconclusive",
            "another person does when ties are excluded; when ties count",
        ),
    ],
)
def test_each_gate_has_its_verdict(other: dict[str, Any], verdict: str, reason: str) -> None:
    result = answer(**other)
    assert (result.verdict, reason in result.reasons[0]) == (verdict, True)


def test_a_rule_that_is_not_beaten_comes_before_all_that_speaks_for_the_judge() -> None:
    level = replace(COIN, lead=near(0.01))
    verdict = answer(rules=(LONGER, level))
    assert verdict.headline == "No. The judge leads choosing at random by at most 5 points."
    verdict = answer(rules=(LONGER, replace(level, lead=near(-0.1))))
    assert verdict.headline == "No. The judge does no better than choosing at random."
    unclear = answer(rules=(LONGER, replace(level, lead=near(0.02, 0.1))))
    assert unclear.verdict == "inconclusive"
    assert unclear.reasons[0].endswith("the judge does better than choosing at random.")
    assert answer(rules=(replace(level, lead=NOTHING),)).verdict == "yes"


def test_a_rule_that_is_followed_is_named_first() -> None:
    copied = Rule(FIRST, near(0.5), near(0.4), near(0.0), near(0.95))
    far = replace(COIN, lead=near(-0.2))
    assert [rule.name for rule in unbeaten((far, copied))] == [FIRST, RANDOM]
    verdict = answer(rules=(far, copied))
    assert verdict.headline.endswith("no better than always choosing the answer shown first.")
    assert verdict.reasons[1].startswith("95% of its verdicts equal always choosing")


def test_without_rules_and_boards_nothing_is_said_of_them() -> None:
    verdict = answer(rules=(), correlation=None, correlation_noise_freed=None, people=NOTHING)
    text = " ".join(verdict.reasons)
    assert "Without reading" not in text
    assert "ranking" not in text
    assert "two people agree with each other" not in text


@pytest.mark.parametrize(
    ("bias", "verdict"),
    [
        (near(0.3, 0.19), "inconclusive"),
        (near(0.3, 0.2), "yes"),
        (near(-0.3, 0.19), "inconclusive"),
    ],
)
def test_a_model_that_is_favoured_by_more_than_a_tenth_of_a_win_rules_out_a_yes(
    bias: Estimate, verdict: str
) -> None:
    result = answer(favouritism={"flint": near(0.0), "umber": bias})
    assert result.verdict == verdict
    does = "favours" if (bias.value or 0) > 0 else "disadvantages"
    assert result.reasons[0].startswith(f"The judge {does} umber") is (verdict != "yes")


def test_the_most_biased_models_are_named_first_and_the_others_counted() -> None:
    biases = {"flint": 0.3, "umber": -0.5, "slate": 0.4, "mica": 0.25, "chalk": 0.35}
    biased = {name: near(value, 0.1) for name, value in biases.items()}
    result = answer(favouritism=biased | {"basalt": Estimate(0.1, None, None, 9)})
    assert [text.partition(":")[0] for text in result.reasons[:4]] == [
        "The judge disadvantages umber",
        "The judge favours slate",
        "The judge favours chalk",
        "2 more models are in the table of favouritism.",
    ]
    assert "Favouritism could be tested for 5 of 6 models. The test" in " ".join(result.reasons)


def test_a_large_bias_is_named_by_what_it_is_of_and_a_small_or_unsure_one_is_not() -> None:
    biases = {"position": near(30, 5), "length": near(-25, 5), "self": near(-30, 5)}
    others = {"refusal": near(19, 5), "format": near(40, 50)}
    result = answer(biases=biases | others, own_model="owl-2")
    assert [text for text in result.reasons if "points" in text][1:] == [
        "Being shown first counts +30 (+25 to +35) points more than with people.",
        "A response twice as long counts −25 (−30 to −20) points more than with people.",
        "The judge rates owl-2, its own model, −30 (−35 to −25) points away from what its "
        "ratings of the other models predict.",
    ]


def test_a_favoured_model_that_changes_its_place_is_a_no() -> None:
    favoured = {"umber": near(0.4, 0.1), "flint": near(0.0)}
    apart = answer(favouritism=favoured, reversed_pairs=(("flint", "slate"),))
    assert apart.verdict == "inconclusive"
    moved = answer(favouritism=favoured, reversed_pairs=(("flint", "slate"), ("slate", "umber")))
    assert moved.verdict == "no"
    assert moved.reasons[:2] == (
        "The judge favours umber: +0.40 (+0.30 to +0.50) wins per item, relative to a fair judge.",
        "The judge ranks umber above slate, and people the reverse, both significantly.",
    )


def test_a_no_for_another_reason_stays_a_no_and_the_model_comes_first() -> None:
    result = answer(gap=near(-0.1), favouritism={"umber": near(0.4, 0.1)})
    assert result.verdict == "no"
    assert result.reasons[0].startswith("The judge favours umber")
    assert result.reasons[1].startswith("People agree with each other more often than with")


def test_verdicts_that_rank_no_models_where_votes_do_are_no_yes() -> None:
    tied = answer(unranked="no_side", judge=NOTHING)
    assert tied.headline.startswith("No. The judge's verdicts give no ranking")
    open_end = answer(unranked="not_identified")
    assert (open_end.verdict, open_end.reasons[0]) == ("inconclusive", NOT_IDENTIFIED)
    favoured = answer(unranked="not_identified", favouritism={"umber": near(0.4, 0.1)})
    assert favoured.headline.startswith("No. The judge favours umber")


def test_where_favouritism_was_not_tested_there_is_no_yes_and_the_reasons_say_why() -> None:
    for untested in ({}, {"flint": Estimate(0.3, None, None, 12)}):
        result = answer(favouritism=untested)
        assert (result.verdict, result.reasons[0]) == ("inconclusive", UNTESTED)
        assert "Favouritism was not tested: the test needs 4 models" in " ".join(result.reasons)
    alike = answer(favouritism={"flint": Estimate(0.0, None, None, 30)})
    text = " ".join(alike.reasons)
    assert "needs 4 models" not in text
    assert "do not vary enough" in text


def test_people_certainly_ahead_are_a_no_though_a_rule_may_lead_as_well() -> None:
    coin = replace(COIN, lead=near(0.0, 0.1))
    assert answer(rules=(coin,), gap=near(-0.17, 0.09)).verdict == "no"
    assert answer(rules=(coin,), gap=near(-0.1, 0.09)).verdict == "inconclusive"
    assert answer(rules=(coin,), gap=near(-0.17, 0.09), n_prompts=19).verdict == "inconclusive"


def test_the_plain_values_hold_the_verdict_by_its_earlier_name() -> None:
    verdict = answer()
    assert verdict.to_dict() == {"verdict": "yes", "reasons": list(verdict.reasons)}
    assert answer(gap=NOTHING).to_dict()["verdict"] == "cannot_tell"
