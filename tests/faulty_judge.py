"""A judge that prefers the better answer, behind a server on which everything goes wrong."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.faulty_server import Behaviour, Fault, last_message

ASKED = re.compile(r"Case (\d+)\?.*?(good|poor) answer", re.DOTALL)

PREFERS_FIRST, PREFERS_SECOND = (
    Behaviour(text=a, finish_reason="length", logprobs=((a, -0.1, {a: -0.1, b: -2.4}),))
    for a, b in ("mM", "Mm")
)
REJECTED = Behaviour(status=400, error={"message": "temperature is too high"})
NEVER = Behaviour(fault=Fault.DROP)
FAULTS = (
    (0.04, Behaviour(status=429, headers={"Retry-After": "0.05"})),
    (0.002, Behaviour(status=429, headers={"Retry-After": "1"})),
    (0.04, Behaviour(status=500, error={"message": "sorry"})),
    (0.03, Behaviour(fault=Fault.DROP)),
    (0.03, Behaviour(fault=Fault.CUT)),
    (0.02, Behaviour(text="", finish_reason="content_filter")),
    (0.02, replace(PREFERS_FIRST, logprobs=None)),
    (0.02, Behaviour(text="Hm", logprobs=(("Hm", -0.1, {"Hm": -0.1}),))),
)
"""How often, of all requests, and what: the last three are answers, and are paid for."""


def good_and_poor(n: int) -> Iterator[dict[str, str]]:
    """Give pairs in which now the one, now the other answer is the good one."""
    for i in range(n):
        words = ("good", "poor") if i % 2 else ("poor", "good")
        a, b = (f"A {word} answer to {i}." for word in words)
        yield {"prompt": f"Case {i}?", "response_a": a, "response_b": b, "battle_id": f"b{i}"}


@dataclass(slots=True)
class FaultyJudge:
    """Draws what goes wrong from a seed, the case, the order, and how often it was asked.

    Attributes
    ----------
    doomed : float
        Share of the cases whose requests are always rejected, or always break off.
    """

    seed: int
    doomed: float = 0.0
    delay_s: float = 0.02
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __call__(self, body: Mapping[str, Any]) -> Behaviour:
        match = ASKED.search(last_message(body))
        assert match is not None
        case, first = match.groups()
        self.asked[case, first] += 1
        fault = self._doom(case) or self._fault(f"{case} {first} {self.asked[case, first]}")
        well = PREFERS_FIRST if first == "good" else PREFERS_SECOND
        return replace(fault or well, first_token_s=self.delay_s)

    def _doom(self, case: str) -> Behaviour | None:
        draw = random.Random(f"{self.seed} {case}").random()
        return REJECTED if draw < self.doomed / 2 else NEVER if draw < self.doomed else None

    def _fault(self, asked: str) -> Behaviour | None:
        draw = random.Random(f"{self.seed} {asked}").random()
        for share, fault in FAULTS:
            if draw < share:
                return fault
            draw -= share
        return None
