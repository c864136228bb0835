"""Tables with the same margins: drawn evenly, and what the two nulls that are not used do."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from judge.probe.verdicts import (
    ANY,
    BOOTSTRAP,
    CURVEBALL,
    Coherence,
    curveball,
    margins,
    of_table,
    p_value,
)
from rating.errors import DataError
from tests.judge.probe.texts import rng

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
TOPICS = 4


def probabilities(
    draw: np.random.Generator,
    *,
    models: int = 15,
    prompts: int = 200,
    ability: float = 1.0,
    interaction: float = 0.0,
) -> tuple[Floats, Codes]:
    """A logistic model of abilities, difficulties, and liking of topics."""
    topic = draw.integers(TOPICS, size=prompts)
    liking = interaction * draw.normal(size=(models, TOPICS))[:, topic]
    ease = draw.normal(size=prompts)
    ahead = ability * draw.normal(size=(models, 1))
    return 1 / (1 + np.exp(-(ahead + ease + liking))), topic


def right_or_wrong(draw: np.random.Generator, p: Floats) -> Floats:
    return (draw.random(p.shape) < p).astype(np.float64)


def asked_of(
    values: Floats, topic: Codes, *, draws: int = 99, seed: int = 0
) -> dict[str, Coherence]:
    return {one.of: one for one in of_table(values, {"topic": topic}, draws=draws, rng=rng(seed))}


def test_the_chain_draws_every_table_with_the_same_margins_equally_often() -> None:
    """Six tables have these margins, counted by hand: one a permutation."""
    seen: Counter[bytes] = Counter()
    for _, table in zip(range(1800), curveball(np.eye(3), rng()), strict=False):
        seen[table.tobytes()] += 1
    assert len(seen) == 6
    assert sum((n - 300) ** 2 / 300 for n in seen.values()) < 30  # 5 df; draws depend a little


@given(st.integers(0, 10_000), st.integers(3, 8), st.integers(3, 12))
def test_every_drawn_table_has_the_margins(seed: int, models: int, prompts: int) -> None:
    table = (rng(seed).random((models, prompts)) < 0.5).astype(np.float64)
    for _, drawn in zip(range(3), curveball(table, rng(seed)), strict=False):
        assert (drawn.sum(axis=0) == table.sum(axis=0)).all()
        assert (drawn.sum(axis=1) == table.sum(axis=1)).all()
        assert np.isin(drawn, (0, 1)).all()


def test_probabilities_have_the_sums_of_rows() -> None:
    table = right_or_wrong(rng(1), probabilities(rng(2))[0])
    assert margins(table, 200).sum(axis=1) == pytest.approx(table.sum(axis=1), abs=1e-6)


def test_names_and_orders_change_no_statistic() -> None:
    p, topic = probabilities(rng(3), interaction=1)
    values = right_or_wrong(rng(4), p)
    rows, columns = rng(5).permutation(15), rng(6).permutation(200)
    one, other = (
        asked_of(values, topic),
        asked_of(values[rows][:, columns], (TOPICS - 1 - topic)[columns]),
    )
    for of in (ANY, "topic"):
        assert one[of].statistic == pytest.approx(other[of].statistic)
        assert one[of].explained == pytest.approx(other[of].explained, abs=0.01)


@pytest.mark.parametrize("graded", [False, True])
def test_topics_are_found_where_they_were_planted_and_not_where_none_is(graded: bool) -> None:
    for interaction, together in ((1.0, True), (0.0, False)):
        p, topic = probabilities(rng(7), interaction=interaction)
        draw = rng(8)
        values = draw.beta(4 * p, 4 * (1 - p)) if graded else right_or_wrong(draw, p)
        result = asked_of(values, topic)
        assert result["topic"].null == (BOOTSTRAP if graded else CURVEBALL)
        for of in (ANY, "topic"):
            assert (result[of].p <= 0.05) is together, (of, interaction)
        assert result["topic"].design_effect is not None
        assert (result["topic"].design_effect > 3) is together
        assert result["topic"].explained is not None
        assert (result["topic"].explained > 0.02) is together


def test_a_model_that_always_fails_is_left_out_and_changes_nothing() -> None:
    p, topic = probabilities(rng(9), interaction=0.6)
    values = right_or_wrong(rng(10), p)
    with_it = np.vstack([values, np.zeros(200)])
    assert asked_of(with_it, topic) == asked_of(values, topic)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.full((4, 5), 2.0), "outside 0 to 1"),
        (np.ones((4, 5)), "0 models whose results vary"),
        (np.eye(2), "there must be three of each"),
    ],
)
def test_what_is_no_table_of_results_is_refused(values: Floats, words: str) -> None:
    with pytest.raises(DataError, match=words):
        of_table(values, {}, rng=rng())


# Simulations. Figures computed elsewhere are shares of 60 tables, and of 40 where so said

RUNS, THEIRS, POWER_RUNS = 60, 60, 200


def apart(share: float, runs: int, theirs: int = THEIRS) -> float:
    """Three Monte Carlo errors of the difference of two shares of so many tables."""
    return float(3 * np.sqrt(share * (1 - share) * (1 / runs + 1 / theirs)))


def rejections(
    *, ability: float, interaction: float = 0.0, graded: bool = False, runs: int = RUNS
) -> Floats:
    """Share of tables in which each test rejects at 5 %."""
    cells = []
    for seed in range(runs):
        draw = rng(seed)
        p, topic = probabilities(draw, ability=ability, interaction=interaction)
        values = draw.beta(4 * p, 4 * (1 - p)) if graded else right_or_wrong(draw, p)
        result = asked_of(values, topic, seed=seed)
        cells.append([result[of].p <= 0.05 for of in (ANY, "topic")])
    return np.asarray(np.mean(cells, axis=0), dtype=np.float64)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("graded", "runs"), [(False, POWER_RUNS), (True, RUNS)])
@pytest.mark.parametrize("ability", [0.0, 1.0, 2.0])
def test_tables_without_topics_are_seldom_rejected(
    ability: float, graded: bool, runs: int
) -> None:
    shares = rejections(ability=ability, graded=graded, runs=runs)
    assert (shares <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)).all()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("ability", "interaction", "elsewhere"),
    [(0.0, 0.6, 0.35), (1.0, 0.6, 0.22), (0.0, 1.0, 0.93), (1.0, 1.0, 0.83)],
)
def test_topics_that_nobody_named_are_found_as_often_as_computed_elsewhere(
    ability: float, interaction: float, elsewhere: float
) -> None:
    unnamed, named = rejections(ability=ability, interaction=interaction, runs=POWER_RUNS)
    assert unnamed == pytest.approx(elsewhere, abs=apart(elsewhere, POWER_RUNS))
    assert named >= unnamed


def double_centred(values: Floats, draw: np.random.Generator, draws: int = 99) -> float:
    """The null that is not used: residuals of means, permuted within each prompt."""
    residual = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()

    def statistic(table: Floats) -> float:
        z = table[:, table.std(axis=0) > 0]
        z = (z - z.mean(axis=0)) / z.std(axis=0)
        n = z.shape[1]
        squares = ((z @ z.T / len(z)) ** 2).sum()  # of all correlations, as of z.T @ z
        return float((squares - n) / (n * (n - 1)))

    drawn = [statistic(draw.permuted(residual, axis=0)) for _ in range(draws)]
    return p_value(statistic(residual), np.array(drawn))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("ability", "elsewhere"), [(0.0, 0.20), (0.5, 0.20), (1.0, 0.62), (2.0, 0.97)]
)
def test_why_residuals_of_means_are_not_permuted(ability: float, elsewhere: float) -> None:
    """Right and wrong of strong and weak models: it finds topics where there is none."""
    runs, ps = 120, []
    for seed in range(runs):
        draw = rng(seed)
        p, _ = probabilities(draw, ability=ability)
        ps.append(double_centred(right_or_wrong(draw, p), draw))
    share = float(np.mean(np.array(ps) <= 0.05))
    assert share == pytest.approx(elsewhere, abs=apart(elsewhere, runs, theirs=40))
    assert share > 0.12
