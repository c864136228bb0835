"""Arena-Hard: verdicts of two games a prompt, and the uncertainty of prompts."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy

from judge.grammar import NOT_PLAYED
from judge.scoring.annotated import judge_score
from judge.scoring.benchmarks import STYLE, Games, arena_hard_score, style_controlled
from rating.errors import DataError

VERDICTS = ("A>>B", "A>B", "A=B", "B>A", "B>>A")
OTHER = dict(zip(VERDICTS, reversed(VERDICTS), strict=True))


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_two_prompts_by_hand() -> None:
    # The baseline is on side A in the first game. Prompt 1: 3 of 3 and 1 of 1; prompt 2: half
    # of 1 and 0 of 3: the model has 4.5 of 8.
    score = arena_hard_score([("B>>A", "A>B"), ("A=B", "B>>A")], rng())
    assert score["score"] == pytest.approx(100 * 4.5 / 8)
    assert (score["n"], score["n_dropped"]) == (2, 0)


def test_a_prompt_with_a_game_without_a_verdict_is_left_out_and_counted() -> None:
    score = arena_hard_score([("B>A", "A>B"), ("B>A", None), (None, None), ("A=B", "A=B")], rng())
    assert (score["score"], score["n"], score["n_dropped"]) == (75.0, 2, 2)


def test_of_a_prompt_asked_in_one_order_that_game_counts() -> None:
    # 3 of 3; half of 1; 1 and 0 of 2; the last has no verdict where one was asked for.
    played = [("B>>A", NOT_PLAYED), (NOT_PLAYED, "A=B"), ("B>A", "B>A"), (None, NOT_PLAYED)]
    score = arena_hard_score(played, rng())
    assert score["score"] == pytest.approx(100 * 4.5 / 6)
    assert (score["n"], score["n_dropped"]) == (3, 1)


def test_without_two_prompts_there_is_no_interval() -> None:
    assert math.isnan(arena_hard_score([], rng())["score"])
    one = arena_hard_score([("B>A", "A>B")], rng())
    assert (one["score"], math.isnan(one["standard_error"])) == (100, True)


def test_both_games_of_a_prompt_are_resampled_together() -> None:
    # Two games that always agree carry the information of one: resampling the games or their
    # three copies apart would make the error a root of 2 or 6 too small.
    played: list[Games] = [("B>>A", "A>>B"), ("A>>B", "B>>A")] * 200
    score = arena_hard_score(played, rng(), draws=4000)
    assert score["standard_error"] == pytest.approx(100 * 0.5 / math.sqrt(400), rel=0.05)
    width = score["upper"] - score["lower"]
    assert width == pytest.approx(3.92 * score["standard_error"], rel=0.06)


def test_a_verdict_that_was_not_offered_is_refused() -> None:
    with pytest.raises(DataError, match="no verdict 'C'"):
        arena_hard_score([("C", "A>B")], rng())


def drawn_games(
    rng: np.random.Generator, strengths: dict[str, float], style: np.ndarray, n: int = 60
) -> tuple[list[str], list[Games], list[str], np.ndarray, np.ndarray]:
    """Draw games that go by strength and by how much longer and more marked an answer is."""
    models = [name for name in strengths for _ in range(n)]
    prompts = [f"p{i}" for _ in strengths for i in range(n)]
    counts, base = (
        np.column_stack(
            [rng.integers(200, 3000, len(models)), rng.integers(0, 9, (len(models), 3))]
        )
        for _ in range(2)
    )
    longer = (counts[:, 0] - base[:, 0]) / (counts[:, 0] + base[:, 0])
    p = 1 / (1 + np.exp(-(np.array([strengths[name] for name in models]) + style[0] * longer)))
    levels = np.searchsorted([0.15, 0.4, 0.6, 0.85], p[:, None] + rng.normal(0, 0.3, (len(p), 2)))
    to_model = [VERDICTS[4 - level] for level in range(5)]
    games: list[Games] = [
        (OTHER[to_model[first]], to_model[second]) for first, second in levels.tolist()
    ]
    return models, games, prompts, counts, base


def as_upstream(
    models: list[str], games: list[Games], counts: np.ndarray, base: np.ndarray
) -> dict[str, float]:
    """Fit rows that are copied as often as they count, with all the columns that upstream has."""
    shares = {"A>>B": [1.0] * 3, "A>B": [1.0], "A=B": [0.5], "B>A": [0.0], "B>>A": [0.0] * 3}
    rows = [
        (n, share)
        for n, (first, second) in enumerate(games)
        for share in [*shares[str(second)], *(1 - one for one in shares[str(first)])]
    ]
    at, score = np.array([n for n, _ in rows]), np.array([share for _, share in rows])
    own, other = counts[at].astype(float), base[at].astype(float)
    x = np.empty((len(at), 4))
    x[:, 0] = (own[:, 0] - other[:, 0]) / (own[:, 0] + other[:, 0])
    d, e = own[:, 1:] / (own[:, :1] + 1), other[:, 1:] / (other[:, :1] + 1)
    x[:, 1:] = (d - e) / (d + e + 1)
    x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    names = sorted({*models})
    one_hot = np.array([[models[n] == name for name in names] for n in at], dtype=float)
    design = np.hstack([one_hot, -np.ones((len(at), 1)), x])

    def loss(beta: np.ndarray) -> tuple[float, np.ndarray]:
        logit = design @ beta
        gradient = design.T @ (scipy.special.expit(logit) - score)
        return float(np.logaddexp(0, logit).sum() - score @ logit), gradient

    start = np.full(design.shape[1], 0.5)
    best = scipy.optimize.minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-7}).x
    won = np.exp(best[: len(names)])
    return dict(zip(names, 100 * won / (won + np.exp(best[len(names)])), strict=True))


def test_style_control_is_upstreams_fit_with_weights_and_ties() -> None:
    models, games, prompts, counts, base = drawn_games(
        np.random.default_rng(3), {"flint": 0.6, "slate": -0.4, "umber": 0.1}, np.array([1.5])
    )
    assert {"A=B", "A>>B"} <= {verdict for pair in games for verdict in pair}
    ours = style_controlled(models, games, prompts, counts, base)
    theirs = as_upstream(models, games, counts, base)
    assert {name: row["style_score"] for name, row in ours.items()} == pytest.approx(
        theirs, abs=1e-4
    )
    again = style_controlled(models * 2, games * 2, prompts * 2, *np.tile((counts, base), (2, 1)))
    for name, row in ours.items():
        assert row["style_lower"] < row["style_score"] < row["style_upper"]
        assert again[name] == pytest.approx(row)  # games of known prompts add no certainty


def test_a_file_that_counts_the_style_has_scores_at_equal_style(tmp_path: Path) -> None:
    drawn = drawn_games(np.random.default_rng(4), {"flint": 0.6, "slate": -0.4}, np.array([1.5]))
    names = [f"{name}_{side}" for side in "ab" for name in STYLE]
    rows = [
        {"model": model, "prompt_id": prompt, "game_1": pair[0], "game_2": pair[1]}
        | dict(zip(names, [*own, *other], strict=True))
        for model, pair, prompt, own, other in zip(*drawn, strict=True)
    ]
    file = tmp_path / "hard.jsonl"
    file.write_text("\n".join(json.dumps(row, default=int) for row in rows), encoding="utf-8")
    scored = judge_score(file, "arena_hard")["models"]
    for name, wanted in style_controlled(*drawn).items():
        (row,) = [row for row in scored if row["model"] == name]
        assert {end: row[end] for end in wanted} == pytest.approx(wanted)
        assert row["n"] == 60


def test_models_that_differ_in_length_alone_are_level_at_equal_style() -> None:
    rng, n = np.random.default_rng(5), 800
    models = ["long"] * n + ["short"] * n
    often = np.repeat([0.8, 0.2], n)
    base = np.column_stack([np.full(2 * n, 500.0), np.zeros((2 * n, 3))])
    counts = base.copy()
    counts[:, 0] *= np.where(rng.random(2 * n) < often, 3, 1)
    won = rng.random(2 * n) < np.where(counts[:, 0] > 500, 0.8, 0.4)
    games: list[Games] = [("B>A", "A>B") if one else ("A>B", "B>A") for one in won]
    plain = [arena_hard_score(some, rng)["score"] for some in (games[:n], games[n:])]
    assert plain[0] - plain[1] > 20
    by_model = style_controlled(models, games, [f"p{i % n}" for i in range(2 * n)], counts, base)
    long, short = (by_model[name]["style_score"] for name in ("long", "short"))
    assert long == pytest.approx(short, abs=6)
