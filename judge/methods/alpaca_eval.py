"""AlpacaEval: one token names the preferred response, and its probability is the preference."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from judge.case import Case
from judge.completion import FILTERED, Parameters, Reply, Request
from judge.errors import FailureClass
from judge.grammar import Preference, Reading, bracketed_mark, label_probability, lone_label
from judge.protocol import Description, read_text

Mode = Literal["logprobs", "sampled", "verbal"]

_SOURCE = "Dubois et al. 2024 (arXiv:2404.04475), weighted_alpaca_eval_gpt4_turbo"


@dataclass(frozen=True, slots=True)
class AlpacaEval:
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

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a pair."""
        return self.description.request(case, nonce)

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the preference, in the sides as shown, or why there is none."""
        if self.mode == "logprobs":
            return _weighted(reply)
        if self.mode == "sampled":
            return read_text(reply, lone_label, may_be_cut=True)
        return read_text(reply, _verbal)

    def settled(self, case: Case) -> Reading | None:
        """Equal responses are a tie."""
        return Preference(0.5) if case.response_a == case.response_b else None


_DESCRIPTIONS: Mapping[Mode, Description] = {
    "logprobs": Description(
        name="alpaca_eval",
        template_name="alpaca_eval",
        parameters=Parameters(max_tokens=1, temperature=1.0, top_logprobs=5),
        pairwise=True,
        tokens_out=1,
        source=_SOURCE,
    ),
    "sampled": Description(
        name="alpaca_eval_sampled",
        template_name="alpaca_eval",
        parameters=Parameters(max_tokens=4, temperature=1.0),
        pairwise=True,
        samples=5,
        tokens_out=1,
        source=_SOURCE,
    ),
    "verbal": Description(
        name="alpaca_eval_verbal",
        template_name="alpaca_eval_verbal",
        parameters=Parameters(max_tokens=16, temperature=0.0),
        pairwise=True,
        tokens_out=4,
        source=_SOURCE,
    ),
}
"""Parameters as upstream for ``logprobs``; ours have room for brackets or a blank."""


def _weighted(reply: Reply) -> Reading | FailureClass:
    if reply.finish_reason == FILTERED:
        return FailureClass.REFUSAL
    if reply.logprobs is None:
        return FailureClass.NO_LOGPROBS
    share = label_probability(reply.logprobs)
    return FailureClass.UNPARSED if share is None else Preference(share)


def _verbal(text: str) -> Preference | None:
    share = bracketed_mark(text, 0, 100)
    return None if share is None else Preference(share / 100)
