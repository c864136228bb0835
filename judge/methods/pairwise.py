"""Comparisons of two responses: in a verdict of three kinds, on five levels, or by one token."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from judge.case import Case
from judge.completion import FILTERED, Parameters, Reply
from judge.errors import FailureClass
from judge.grammar import (
    ARROWS,
    SIDES,
    Preference,
    Reading,
    bracketed,
    bracketed_mark,
    label_probability,
    lone_label,
    spoken_tokens,
)
from judge.protocol import Description, Method, read_text

Mode = Literal["logprobs", "sampled", "verbal"]

_ALPACA_EVAL = "Dubois et al. 2024 (arXiv:2404.04475), weighted_alpaca_eval_gpt4_turbo"


@dataclass(frozen=True, slots=True)
class Pairwise(Method):
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
        parameters=Parameters(max_tokens=1024, temperature=0.0),
        pairwise=True,
        tokens_out=250,
        source="Zheng et al. 2023 (arXiv:2306.05685), pair-v2",
    )

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the preference, in the sides as shown, or why there is none."""
        return read_text(reply, partial(bracketed, offered=SIDES))


@dataclass(frozen=True, slots=True)
class ArenaHard(Method):
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
        parameters=Parameters(max_tokens=4096, temperature=0.0),
        pairwise=True,
        tokens_out=900,
        source="Li et al. 2024 (arXiv:2406.11939)",
    )

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the preference, in the sides as shown, or why there is none."""
        return read_text(reply, partial(bracketed, offered=ARROWS))


@dataclass(frozen=True, slots=True)
class AlpacaEval(Method):
    """Ask for one label of two, m for the response shown first and M for the other.

    ``logprobs`` reads ``P(m) = e^lp_m / (e^lp_m + e^lp_M)`` from the alternatives of the one
    token, as published. Two fallbacks serve endpoints that return no log-probabilities:
    ``sampled`` draws five labels at temperature 1 and takes their share, and ``verbal`` asks how
    many of a hundred readers would choose m. Neither is the published measure: say which was used.

    Our words; and both orders by default, where upstream asks in one order that depends on the
    instruction alone. Equal responses are a tie without a call, as upstream.

    References
    ----------
    .. [1] Y. Dubois, B. Galambosi, P. Liang and T. B. Hashimoto, "Length-controlled AlpacaEval",
       2024, arXiv:2404.04475.
    """

    mode: Mode = "logprobs"

    @property
    def description(self) -> Description:
        """What the method is; the fallbacks have names of their own."""
        return _DESCRIPTIONS[self.mode]

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the preference, in the sides as shown, or why there is none."""
        if self.mode == "logprobs":
            return _weighted(reply)
        if self.mode == "sampled":
            return read_text(reply, lone_label, may_be_cut=True)
        return read_text(reply, _verbal)


_DESCRIPTIONS: Mapping[Mode, Description] = {
    "logprobs": Description(
        name="alpaca_eval",
        parameters=Parameters(max_tokens=1, temperature=1.0, top_logprobs=5),
        pairwise=True,
        tokens_out=1,
        source=_ALPACA_EVAL,
    ),
    "sampled": Description(
        name="alpaca_eval_sampled",
        template_name="alpaca_eval",
        parameters=Parameters(max_tokens=4, temperature=1.0),
        pairwise=True,
        samples=5,
        tokens_out=1,
        source=_ALPACA_EVAL,
    ),
    "verbal": Description(
        name="alpaca_eval_verbal",
        parameters=Parameters(max_tokens=16, temperature=0.0),
        pairwise=True,
        tokens_out=4,
        source=_ALPACA_EVAL,
    ),
}
"""Parameters as upstream for ``logprobs``; ours have room for brackets or a blank."""


def _weighted(reply: Reply) -> Reading | FailureClass:
    if reply.finish_reason == FILTERED:
        return FailureClass.REFUSAL
    if reply.logprobs is None:
        return FailureClass.NO_LOGPROBS
    share = label_probability(spoken_tokens(reply.logprobs))
    return FailureClass.UNPARSED if share is None else Preference(share)


def _verbal(text: str) -> Preference | None:
    share = bracketed_mark(text, 0, 100)
    return None if share is None else Preference(share / 100)
