"""Prompts that are asked very often count less, and the board moves by what they were worth."""

import numpy as np
import pytest

from judge.labels.files import down_sampled
from judge.labels.material import Duplicates
from rating.options import RateOptions
from rating.tables.coding import LoggedVotes
from rating.tables.counts import rate_source
from tests.judge.labels.test_overlap import MODELS, WINNERS, votes


def test_a_frequent_prompt_counts_as_one_at_the_percentile() -> None:
    log, _ = votes(3000, np.random.default_rng(1), 0.0)
    # Votes 0 to 599 are on one prompt, where the first model wins; the others on one each or two.
    on_a = log.texts["model_a"].codes[:600] == MODELS.index("basalt")
    log.texts["winner"].codes[:600] = WINNERS.index("model_a") * on_a
    group = np.concatenate([np.zeros(600, int), 1 + np.arange(2400) // 2])
    sampled = down_sampled(log, Duplicates(group, 1201))
    assert (sampled["most"], sampled["prompts"], sampled["votes"]) == (2, 1, 600)
    (first,) = [one for one in sampled["board"]["moves"] if one["model"] == "basalt"]
    assert first["upper"] is not None
    assert first["moved"] < first["upper"] < 0


def ratings(log: LoggedVotes) -> dict[str, float]:
    rows = rate_source(log, RateOptions()).to_dict()["ratings"]
    return {row["model"]: row["rating"] for row in rows}


def test_votes_alike_on_a_frequent_prompt_move_the_board_as_so_few_of_them_would() -> None:
    log, _ = votes(2600, np.random.default_rng(5), 0.0)
    for name, code in (("model_a", 0), ("model_b", 1), ("winner", WINNERS.index("model_a"))):
        log.texts[name].codes[:600] = code
    group = np.concatenate([np.zeros(600, int), 1 + np.arange(2000) // 2])
    sampled, whole = down_sampled(log, Duplicates(group, 1001)), ratings(log)
    log.texts["left_out"].codes[2:600] = 0
    few = ratings(log)
    moved = {one["model"]: one["moved"] for one in sampled["board"]["moves"]}
    assert moved == pytest.approx({name: few[name] - whole[name] for name in few}, abs=0.1)


def test_a_percentile_between_two_prompts_is_the_more_frequent_one() -> None:
    log, _ = votes(504, np.random.default_rng(4), 0.0)
    group = np.concatenate([np.zeros(5, int), 1 + np.arange(499)])
    # 0.999 of the 499 gaps between 500 prompts is 498.5: between 1 and 5 votes, so 5.
    sampled = down_sampled(log, Duplicates(group, 500))
    assert (sampled["most"], sampled["prompts"], sampled["votes"]) == (5, 0, 0)


def test_without_frequent_prompts_nothing_moves() -> None:
    log, _ = votes(500, np.random.default_rng(2), 0.0)
    sampled = down_sampled(log, Duplicates(np.arange(500), 500))
    assert (sampled["most"], sampled["prompts"], sampled["votes"]) == (1, 0, 0)
    assert max(abs(one["moved"]) for one in sampled["board"]["moves"]) == pytest.approx(
        0, abs=1e-9
    )
    assert sampled["board"]["kendall"] == pytest.approx(1)


def test_votes_left_out_count_for_nobody() -> None:
    log, _ = votes(500, np.random.default_rng(3), 0.0)
    log.texts["left_out"].codes[:100] = 0
    group = np.concatenate([np.zeros(200, int), 1 + np.arange(300)])
    sampled = down_sampled(log, Duplicates(group, 301))
    assert sampled["board"]["moves"]
