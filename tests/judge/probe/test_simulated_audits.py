"""Audits of simulated judges: they grade the judge, and with few prompts say that they cannot."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from judge.probe.verdicts import Verdicts, audit_verdicts
from judge.studies.rows import Items

pytestmark = pytest.mark.slow

AUDITS = 400
N_MODELS, PER_PROMPT, N_RUNS = 6, 3, 3
ASKED = ("reruns", "discriminability", "consistency")
BOUND = 0.05 + 3 * float(np.sqrt(0.05 * 0.95 / AUDITS))


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge to simulate.

    ``spread`` is the strength of the best model in nats, ``flips`` the share of verdicts that a
    run turns round; a coin draws every verdict again. Every prompt suits some models better, by
    normal likings of sd .8 nats.
    """

    name: str
    spread: float = 0.8
    flips: float = 0.01
    coin: bool = False

    def draw(self, rng: np.random.Generator, n_prompts: int) -> Verdicts:
        """Verdicts on three pairs a prompt, in three runs and in both orders."""
        every = np.column_stack(np.triu_indices(N_MODELS, 1))
        chosen = [rng.choice(len(every), PER_PROMPT, replace=False) for _ in range(n_prompts)]
        pairs, prompt = every[np.concatenate(chosen)], np.repeat(np.arange(n_prompts), PER_PROMPT)
        liking = np.linspace(-self.spread, self.spread, N_MODELS)
        liking = liking + rng.normal(0, 0.8, (n_prompts, N_MODELS))
        gap = liking[prompt, pairs[:, 0]] - liking[prompt, pairs[:, 1]]
        own = np.sign(gap + rng.logistic(size=len(gap)))

        def labels() -> np.ndarray:
            if self.coin:
                return rng.choice([-1.0, 1.0], len(own))
            return np.where(rng.random(len(own)) < self.flips, -own, own)

        runs = {f"run {i}": labels() for i in range(N_RUNS)}
        names = tuple(f"m{i}" for i in range(N_MODELS))
        orders = {"A first": labels(), "B first": labels()}
        return Verdicts(Items(names, pairs, prompt), runs, orders)


GOOD = Judge("good")
EQUAL = Judge("good, models alike", spread=0.0)
STEADY = Judge("steady, models alike", spread=0.0, flips=0.0)
COIN = Judge("coin", coin=True)


def verdicts(judge: Judge, n_prompts: int) -> dict[str, dict[bool | None, float]]:
    """Shares of the audits by what is asked, and by whether it is passed."""
    rng = np.random.default_rng([n_prompts, int(judge.coin), round(10 * judge.spread)])
    counts: dict[str, Counter[bool | None]] = {name: Counter() for name in ASKED}
    for _ in range(AUDITS):
        result = audit_verdicts(judge.name, judge.draw(rng, n_prompts), rng=rng)
        for name in ASKED:
            counts[name][result[name].passed] += 1
    return {
        name: {passed: count[passed] / AUDITS for passed in (True, None, False)}
        for name, count in counts.items()
    }


@pytest.mark.parametrize("n_prompts", [30, 60, 200, 600])
@pytest.mark.parametrize("judge", [GOOD, EQUAL, STEADY, COIN], ids=lambda judge: judge.name)
def test_a_good_judge_never_fails_and_a_coin_never_passes(
    judge: Judge, n_prompts: int, record_property: Callable[[str, object], None]
) -> None:
    counts = verdicts(judge, n_prompts)
    row: dict[str, object] = {"judge": judge.name, "prompts": n_prompts}
    for name, shares in counts.items():
        row[name] = " / ".join(f"{shares[passed]:.2f}" for passed in (True, None, False))
    record_property("audits of judges: pass / cannot be determined / fail", row)
    bad = judge.coin
    assert max(shares[bad] for shares in counts.values()) <= BOUND
    if bad:
        assert counts["reruns"][False] > 0.95
    if judge is GOOD and n_prompts == 600:
        assert min(counts[name][True] for name in ("reruns", "discriminability")) > 0.95
