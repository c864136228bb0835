"""Plain pairwise comparison: A, B or neither."""

from dataclasses import dataclass

from judge.case import Case
from judge.completion import Parameters, Reply, Request
from judge.errors import FailureClass
from judge.grammar import SIDES, bracketed
from judge.protocol import Description, conversation, pair, read_text, template
from judge.reading import Preference, Reading

_PARAMETERS = Parameters(max_tokens=1024, temperature=0.0)


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

    @property
    def description(self) -> Description:
        """What the method is."""
        return Description(
            name="pairwise",
            template=template("pairwise"),
            parser=1,
            pairwise=True,
            tokens_out=250,
            source="Zheng et al. 2023 (arXiv:2306.05685), pair-v2",
        )

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a pair."""
        first, second = pair(case)
        texts = {"prompt": conversation(case), "response_a": first, "response_b": second}
        return Request(template("pairwise").filled(nonce, texts), _PARAMETERS)

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the preference, in the sides as shown, or why there is none."""
        return read_text(reply, _verdict)

    def settled(self, case: Case) -> Reading | None:
        """Equal responses are a tie."""
        return Preference(0.5) if case.response_a == case.response_b else None


def _verdict(text: str) -> Preference | None:
    share = bracketed(text, SIDES)
    return None if share is None else Preference(share)
