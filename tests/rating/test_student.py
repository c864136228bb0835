"""Quantiles of the normal distribution and of Student's t, against scipy's."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from rating.leave_out import normal_quantile, student_quantiles

TAILS = st.floats(1e-9, 0.499)


@given(TAILS)
def test_normal_quantiles_are_those_of_scipy(tail: float) -> None:
    assert normal_quantile(tail) == pytest.approx(-special.ndtri(tail), rel=1e-13)


@given(TAILS, st.lists(st.floats(0.2, 1e9), min_size=1, max_size=30))
def test_quantiles_of_t_are_those_of_scipy(tail: float, df: list[float]) -> None:
    ours = student_quantiles(tail, np.array(df))
    assert ours == pytest.approx(-special.stdtrit(np.array(df), tail), rel=1e-11)


@pytest.mark.parametrize("df", [999.999, 1000.0, 1000.001])
def test_quantiles_of_t_meet_where_the_expansion_begins(df: float) -> None:
    assert student_quantiles(0.001, np.array([df]))[0] == pytest.approx(
        stats.t.isf(0.001, df), rel=1e-12
    )


def test_many_quantiles_of_t_are_those_of_each_alone(rng: np.random.Generator) -> None:
    df = rng.uniform(1, 1500, 9000)
    together = student_quantiles(0.025, df)
    some = rng.choice(len(df), 40)
    alone = [student_quantiles(0.025, df[[at]])[0] for at in some]
    assert together[some] == pytest.approx(alone, rel=1e-13)


def test_quantiles_of_t_end_at_the_normal_one_and_at_infinity() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t = student_quantiles(0.025, np.array([np.inf, 1e-4, 1e-300]))
    assert t.tolist() == [normal_quantile(0.025), np.inf, np.inf]
