"""The first answer, gate by gate."""

from dataclasses import replace
from typing import Any

import pytest

from judge.studies.estimates import Estimate
from judge.studies.gates import (
    FIRST,
    LONGEST,
    MIN_PROMPTS,
    RANDOM,
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
    alternative=Alternative(1.0, 0.86, 0.1, 5, 0.2, 0.4),
    raters="crowd",
    biases={"position": near(5, 10), "length": None, "format": None, "self": None},
    own_model=None,
    correlation=near(0.8, 0.1, 12),
    correlation_noise_freed=near(0.9, 0.1, 12),
    n_prompts=300,
)


def answer(**other: Any) -> FirstAnswer:
    return first_answer(replace(GOOD, **other))


def annotators_test(**other: Any) -> Alternative:
    assert GOOD.alternative is not None
    return replace(GOOD.alternative, **other)


def test_what_passes_every_gate_is_a_yes_and_its_reasons_name_every_figure() -> None:
    verdict = answer()
    assert verdict.verdict == "yes"
    assert verdict.headline.startswith("Yes, as far as agreement goes. It is as good a guess")
    text = " ".join(verdict.reasons)
    for part in ("80 % (78–82)", "88 % (86–90)", "100 % of the 5 people", "by 10 % of items"):
        assert part in text
    for part in ("a coin that of 20 %", "longer answer that of 40 %", "on 86 % of items"):
        assert part in text
    for part in ("12 models", "by 0.80 (0.70 to 0.90)", "noise in both boards, by 0.90"):
        assert part in text


@pytest.mark.parametrize(
    ("other", "verdict", "reason"),
    [
        ({"judge": NOTHING}, "cannot_tell", "No vote and verdict on one item"),
        ({"gap": NOTHING}, "cannot_tell", "No item has votes of two people"),
        ({"n_prompts": MIN_PROMPTS - 1}, "cannot_tell", "This is of 19 prompts; it takes 20."),
        ({"n_prompts": 1}, "cannot_tell", "This is of 1 prompt;"),
        ({"gap": near(-0.1)}, "no", "People agree with each other more often than with it."),
        ({"gap": near(-0.05)}, "cannot_tell", "People agree with each other more often"),
        ({"gap": near(0.0, 0.06)}, "cannot_tell", "It may agree with people as often"),
        ({"gap": Estimate(0.0, None, None, 9)}, "cannot_tell", "It may agree with people"),
        ({"alternative": None}, "cannot_tell", "Too few people can be tested one by one"),
        (
            {"alternative": annotators_test(winning_rate=0.4)},
            "cannot_tell",
            "It is not shown that",
        ),
        (
            {"alternative": annotators_test(coin=1.0)},
            "cannot_tell",
            "A coin passes for people here",
        ),
        (
            {"alternative": annotators_test(longest=1.0)},
            "cannot_tell",
            "Picking the longer answer passes",
        ),
        ({"alternative": annotators_test(longest=None)}, "yes", "It is as good a guess"),
        ({"biases": {"position": near(30, 5)}}, "with_care", "It agrees as another person"),
        ({"biases": {"self": near(-30, 5)}}, "with_care", "It agrees as another person"),
        ({"biases": {"position": near(19, 5)}}, "yes", "It is as good a guess"),
        ({"biases": {"position": near(30, 40)}}, "yes", "It is as good a guess"),
        ({"gap_with_ties": near(-0.2)}, "with_care", "Only for who is better"),
    ],
)
def test_each_gate_has_its_verdict(other: dict[str, Any], verdict: str, reason: str) -> None:
    result = answer(**other)
    assert (result.verdict, result.reasons[0][: len(reason)]) == (verdict, reason)


def test_a_rule_that_is_not_beaten_comes_before_all_that_speaks_for_the_judge() -> None:
    level = replace(COIN, lead=near(0.01))
    verdict = answer(rules=(LONGER, level))
    assert verdict.headline == "No. It does hardly better than throwing a coin, if at all."
    verdict = answer(rules=(LONGER, replace(level, lead=near(-0.1))))
    assert verdict.headline == "No. It does no better than throwing a coin."
    unclear = answer(rules=(LONGER, replace(level, lead=near(0.02, 0.1))))
    assert unclear.verdict == "cannot_tell"
    assert unclear.reasons[0] == "It is not shown to do better than throwing a coin."
    assert answer(rules=(replace(level, lead=NOTHING),)).verdict == "yes"


def test_a_rule_that_is_followed_is_named_first() -> None:
    copied = Rule(FIRST, near(0.5), near(0.4), near(0.0), near(0.97))
    far = replace(COIN, lead=near(-0.2))
    assert [rule.name for rule in unbeaten((far, copied))] == [FIRST, RANDOM]
    verdict = answer(rules=(far, copied))
    assert verdict.headline == "No. It does no better than always picking what is shown first."
    assert verdict.reasons[1].startswith("97 % of its verdicts are those of always picking")


def test_without_rules_and_boards_nothing_is_said_of_them() -> None:
    verdict = answer(rules=(), correlation=None, correlation_noise_freed=None, people=NOTHING)
    text = " ".join(verdict.reasons)
    assert "Without reading" not in text
    assert "ranking" not in text
    assert "two people agree" not in text


def test_the_plain_values_hold_the_verdict_and_its_reasons() -> None:
    verdict = answer()
    assert verdict.to_dict() == {"verdict": "yes", "reasons": list(verdict.reasons)}
