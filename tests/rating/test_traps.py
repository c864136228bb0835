"""Votes that other programs rate in silence, or give up on without a word that helps.

One test a row of the table: what is refused is refused with the values and
what to do, and what has an answer gets the right one.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from rating import (
    Comparisons,
    DataError,
    NotIdentifiedError,
    RateOptions,
    RatingError,
    Report,
    Ties,
    bootstrap,
    fit,
    rate,
)
from tests.rating.builders import random_votes, votes

Row = Sequence[str]
ALL: list[Ties] = ["half", "davidson", "rao-kupper"]

PAIRS = [("x", "y"), ("y", "z"), ("z", "x")]
FIELD: list[Row] = [
    (*pair, outcome) for pair in PAIRS for outcome in ["model_a"] * 60 + ["model_b", "tie"] * 20
]
"""Three models with wins and losses all round."""

UNRATED: dict[str, tuple[list[Row], list[str]]] = {
    "undefeated model": (
        [*FIELD, *[("top", "x", "model_a")] * 9],
        ["never won or tied against: top.", "collect votes until", "or rate with a ridge"],
    ),
    "winless model": (
        [*FIELD, *[("x", "last", "model_a")] * 9],
        ["Never won or tied against the others: last.", "collect votes until"],
    ),
    "disconnected groups": (
        [*FIELD, ("v", "w", "model_a"), ("v", "w", "model_b")],
        ["2 groups with no votes between them: x, y, z; v, w.", "Collect votes"],
    ),
    "one group always beats another": (
        [*FIELD, ("v", "w", "model_a"), ("v", "w", "model_b"), *[("x", "v", "model_a")] * 9],
        ["or tied against: x, y, z.", "against the others: v, w."],
    ),
    "empty": ([], ["no votes between two different models"]),
    "only a model against itself": ([("x", "x", "tie")] * 5, ["no votes"]),
}


@pytest.mark.parametrize("ties", ALL)
@pytest.mark.parametrize("case", UNRATED)
def test_what_determines_no_rating_gets_none(case: str, ties: Ties) -> None:
    rows, words = UNRATED[case]
    with pytest.raises(NotIdentifiedError) as raised:
        rate(votes(rows), RateOptions(ties=ties))
    assert [word for word in words if word not in str(raised.value)] == []


UNREAD: dict[str, tuple[Row, list[str]]] = {
    "unknown outcome": (("x", "y", "Model_A"), ["Unknown outcome", "'Model_A'", "model_a"]),
    "outcome is NaN": (("x", "y", float("nan")), ["Unknown outcome", "nan"]),  # type: ignore[dict-item]
    "outcome is None": (("x", "y", None), ["Unknown outcome", "None"]),  # type: ignore[dict-item]
    "model is None": ((None, "y", "tie"), ["missing or blank", "None"]),  # type: ignore[dict-item]
    "model is NaN": (("x", float("nan"), "tie"), ["missing or blank", "nan"]),  # type: ignore[dict-item]
    "a space behind": (("x ", "y", "tie"), ["'x'", "'x '"]),
    "another case": (("X", "y", "tie"), ["'X'", "'x'"]),
}


@pytest.mark.parametrize("case", UNREAD)
def test_what_cannot_be_a_vote_is_quoted_and_never_counted(case: str) -> None:
    row, words = UNREAD[case]
    with pytest.raises(DataError) as raised:
        votes([*FIELD, row])
    assert [word for word in words if word not in str(raised.value)] == []


def test_every_refusal_is_one_kind_of_error() -> None:
    assert issubclass(DataError, RatingError)
    assert issubclass(NotIdentifiedError, RatingError)


def board(rows: Sequence[Row], **options: object) -> Report:
    return rate(votes(rows), RateOptions(**options))  # type: ignore[arg-type]


NEWCOMER: list[Row] = [("new", "x", "model_a"), ("new", "x", "model_b")]


def test_a_model_of_two_votes_leaves_the_bootstrap_of_the_others_alone() -> None:
    plain = board(FIELD, interval="bootstrap", rounds=200, reference="x")
    more = board([*FIELD, *NEWCOMER], interval="bootstrap", rounds=200, reference="x")
    rows = {row.model: row for row in more.ratings}
    assert np.isinf(rows["new"].lower)
    assert np.isinf(rows["new"].upper)
    assert any("no finite end for" in text and "new" in text for text in more.warnings)
    for row in plain.ratings:
        after = rows[row.model]
        assert after.upper - after.lower == pytest.approx(row.upper - row.lower, rel=0.25)


def test_rounds_that_rate_no_one_are_counted_and_not_dropped() -> None:
    data = votes([*FIELD, *NEWCOMER])
    draws = bootstrap(fit(data), data, rounds=100, rng=np.random.default_rng(1))
    missing = ~np.isfinite(draws.theta).all(axis=1)
    assert len(draws.theta) == 100
    assert missing.sum() == draws.n_degenerate > 10


def test_a_model_of_two_votes_widens_no_difference_of_the_others() -> None:
    """Intervals from the average do widen, for it holds the newcomer: hence the reference."""
    for reference in ("x", "y"):
        before = {row.model: row for row in board(FIELD, reference=reference).ratings}
        after = board([*FIELD, *NEWCOMER], reference=reference)
        for row in after.ratings:
            if row.model != "new":
                assert row.se == pytest.approx(before[row.model].se, rel=0.02, abs=1e-9)


def test_a_rare_model_is_as_uncertain_as_its_votes() -> None:
    """A ridge in proportion to all votes on the Hessian would hide it."""
    n = 200_000
    one, two = np.array([0, 0, 1, 1]), np.array([1, 1, 2, 2])
    data = Comparisons.from_codes(
        ["x", "y", "new"], one, two, np.array([0, 1, 0, 1]), votes=np.array([n, n, 50, 50])
    )
    rows = {row.model: row for row in rate(data, RateOptions(reference="y")).ratings}
    assert rows["new"].se == pytest.approx(400 / np.log(10) * np.sqrt(1 / 50 + 1 / 50), rel=1e-3)


def test_scales_of_other_models_of_ties_differ_and_the_report_names_the_model(
    rng: np.random.Generator,
) -> None:
    rows = [*(row[:3] for row in random_votes(rng, n=600)), *[("m0", "m1", "model_a")] * 60]
    gaps = {}
    for ties in ALL:
        report = board(rows, ties=ties)
        assert report.to_dict()["method"]["ties"] == ties
        gaps[ties] = report.ratings[0].rating - report.ratings[-1].rating
    assert gaps["davidson"] > 1.1 * gaps["half"]
