"""Comparisons of two responses that end in a verdict: of three kinds, or on five levels."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from judge.case import Case
from judge.completion import Parameters, Reply, Request
from judge.errors import FailureClass
from judge.grammar import ARROWS, SIDES, Preference, Reading, bracketed
from judge.protocol import Description, read_text


@dataclass(frozen=True, slots=True)
class Pairwise:
    """Ask for a short comparison that ends in ``[[A]]``, ``[[B]]`` or ``[[C]]``.

    Our words; a win needs both orders (`judge.verdict.reconcile`), as in the paper's conservative
    approach.

    References
    ----------
    .. [1] L. Zheng et al., "Judging LLM-as-a-judge with MT-bench and Chatbot Arena", NeurIPS
       2023, sections 3.1 and 3.4 (prompt pair-v2).
    """

    description: ClassVar[Description] = Description(
        name="pairwise",
        template_name="pairwise",
        parameters=Parameters(max_tokens=1024, temperature=0.0),
        pairwise=True,
        tokens_out=250,
        source="Zheng et al. 2023 (arXiv:2306.05685), pair-v2",
    )

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a pair."""
        return self.description.request(case, nonce)

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the preference, in the sides as shown, or why there is none."""
        return read_text(reply, partial(bracketed, offered=SIDES))

    def settled(self, case: Case) -> Reading | None:
        """Equal responses are a tie."""
        return Preference(0.5) if case.response_a == case.response_b else None


@dataclass(frozen=True, slots=True)
class ArenaHard:
    """Ask for the judge's own answer, a comparison, and ``[[A>>B]]`` to ``[[B>>A]]``.

    The five levels become preferences of 1, 3/4, 1/2, 1/4 and 0 for the response shown first, and
    both orders are asked, as upstream. Our words. Upstream also takes single brackets and
    verdicts written the other way round (``A<B``); neither was offered, so neither is read.

    References
    ----------
    .. [1] T. Li et al., "From crowdsourced data to high-quality benchmarks: Arena-Hard and
       BenchBuilder pipeline", 2024, arXiv:2406.11939, section 5.
    """

    description: ClassVar[Description] = Description(
        name="arena_hard",
        template_name="arena_hard",
        parameters=Parameters(max_tokens=4096, temperature=0.0),
        pairwise=True,
        tokens_out=900,
        source="Li et al. 2024 (arXiv:2406.11939)",
    )

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a pair."""
        return self.description.request(case, nonce)

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the preference, in the sides as shown, or why there is none."""
        return read_text(reply, partial(bracketed, offered=ARROWS))

    def settled(self, case: Case) -> Reading | None:
        """Equal responses are a tie."""
        return Preference(0.5) if case.response_a == case.response_b else None


def games(preference: Preference) -> tuple[float, int]:
    """Return the score of the response shown first, and how many games it counts for.

    A strong verdict counts as three games, any other as one.

    Examples
    --------
    >>> games(Preference(1.0)), games(Preference(0.25)), games(Preference(0.5))
    ((1.0, 3), (0.0, 1), (0.5, 1))
    """
    return preference.outcome.score_a, 3 if preference.first in (0.0, 1.0) else 1
