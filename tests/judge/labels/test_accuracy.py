"""What a tagger's errors do to differences between prompts, and how they are taken out again."""

import math

import numpy as np
import pytest

from judge.labels.accuracy import Accuracy, accuracies, accuracy_of, shares
from judge.labels.taggers import CATEGORIES
from tests.judge.studies.labels import ends, holds


def test_a_difference_is_divided_by_what_the_errors_leave_of_it() -> None:
    # Of 1,000 rows 200 carry the label; s = .8, f = .05, so .2 are tagged: precision .8, leak .05.
    tagger = Accuracy("code", 160, 40, 40, 760)
    corrected = tagger.unattenuated(75.0, 10.0, tagged=0.2)
    assert corrected is not None
    assert corrected.value == pytest.approx(75.0 / (0.8 - 0.05))
    assert corrected.value == pytest.approx(75.0 / (tagger.attenuation or math.nan))
    assert ends(corrected)[0] < 80
    assert ends(corrected)[1] > 120


def test_another_share_of_tagged_prompts_is_another_mix_of_right_and_wrong() -> None:
    tagger = Accuracy("code", 160, 40, 40, 760)
    p = (0.4 - 0.05) / 0.75
    precision, leak = 0.8 * p / 0.4, 0.2 * p / 0.6
    corrected = tagger.unattenuated(75.0, 10.0, tagged=0.4)
    assert corrected is not None
    assert corrected.value == pytest.approx(75.0 / (precision - leak))


def test_a_tagger_without_errors_leaves_a_difference_as_it_is() -> None:
    perfect = Accuracy("code", 5000, 0, 0, 5000).unattenuated(75.0, 10.0, tagged=0.3)
    assert perfect is not None
    assert perfect.value == 75.0
    assert (perfect.lower, perfect.upper) == pytest.approx((75 - 19.6, 75 + 19.6), abs=1.0)
    few = Accuracy("code", 5000, 0, 0, 5000).unattenuated(75, 10, tagged=0.3, df=3, level=0.9)
    # Student's t of three degrees of freedom is 2.35.
    assert ends(few) == pytest.approx((75 - 23.5, 75 + 23.5), abs=2.5)


@pytest.mark.parametrize(
    ("tagger", "tagged"),
    [
        (Accuracy("few rows", 20, 1, 1, 77), 0.3),
        (Accuracy("nobody carries it", 0, 3, 0, 200), 0.3),
        (Accuracy("tagged more rarely than it errs", 20, 40, 1, 160), 0.1),
        (Accuracy("everything is tagged", 20, 5, 1, 160), 1.0),
    ],
)
def test_where_the_errors_are_not_known_nothing_is_corrected(
    tagger: Accuracy, tagged: float
) -> None:
    assert tagger.unattenuated(75.0, 10.0, tagged=tagged) is None


@pytest.mark.parametrize("counts", [(0, 0, 5, 100), (5, 100, 0, 0), (0, 0, 0, 0)])
def test_a_tagger_that_tags_every_row_or_none_has_no_attenuation(
    counts: tuple[int, int, int, int],
) -> None:
    assert Accuracy("code", *counts).attenuation is None


def test_a_sample_that_hardly_knows_the_tagger_has_no_end_of_its_interval() -> None:
    corrected = Accuracy("rare", 1, 12, 0, 300).unattenuated(75.0, 1.0, tagged=0.05)
    assert corrected is not None
    assert corrected.upper == np.inf


def test_intervals_of_planted_differences_hold() -> None:
    """A tagger of s = .8 and f = .04, known of 312 rows of which .15 carry the label."""
    rng = np.random.default_rng(5)
    s, f, p, true, se = 0.8, 0.04, 0.3, 100.0, 12.0
    t = s * p + f * (1 - p)
    seen = true * (s * p / t - (1 - s) * p / (1 - t))
    held = held_raw = 0
    for _ in range(600):
        n = rng.binomial(312, 0.15)
        a, b = rng.binomial(n, s), rng.binomial(312 - n, f)
        tagger = Accuracy("code", a, b, n - a, 312 - n - b)
        raw = rng.normal(seen, se)
        held += holds(tagger.unattenuated(raw, se, tagged=t), true)
        held_raw += abs(raw - true) <= 1.96 * se
    assert 0.92 <= held / 600 <= 0.985
    assert held_raw / 600 < 0.75  # the difference as it shows is too small


def test_each_value_of_a_facet_has_rows_in_the_sample() -> None:
    for name in (*CATEGORIES, "other"):
        one = accuracy_of("category", name)
        assert one.rows == 312
        assert one.true_positives > 10
    yes_or_no = accuracies()["roleplay"]  # the first of the categories: no other comes before it
    assert accuracy_of("category", "roleplay") == yes_or_no
    assert accuracy_of("intent", "quizzing") == accuracies()["quizzing"]
    assert accuracy_of("language", "xx").true_positives == 0


def test_shares_are_corrected_by_the_errors_of_their_own_tagger() -> None:
    yes = {("code", "yes"): 60, ("hard", "yes"): 20, ("intent", "quizzing"): 30}
    others = {("category", "code"): 60, ("category", "other"): 40, ("hard", "no"): 80}
    result = shares(yes | others | {("intent", "asking"): 70})
    rows = {(one["facet"], one["value"]): one for one in result["labels"]}
    for (facet, value), n in yes.items():
        one = rows.pop((facet, value))
        true = accuracies()[facet if value == "yes" else value].corrected(n, 100)
        assert true is not None
        ends = (one["corrected"], one["lower"], one["upper"])
        assert (one["share"], *ends) == (n / 100, true.value, true.lower, true.upper)
    assert {*rows} == {("category", "code"), ("category", "other"), ("intent", "asking")}
    assert not any("corrected" in one for one in rows.values())
