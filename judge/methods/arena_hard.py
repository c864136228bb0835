"""Arena-Hard: the judge answers first, then compares on five levels."""

from dataclasses import dataclass

from judge.case import Case
from judge.completion import Parameters, Reply, Request
from judge.errors import FailureClass
from judge.grammar import ARROWS, bracketed
from judge.protocol import Description, conversation, pair, read_text, template
from judge.reading import Preference, Reading


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

    @property
    def description(self) -> Description:
        """What the method is."""
        return Description(
            name="arena_hard",
            template=template("arena_hard"),
            parser=1,
            pairwise=True,
            tokens_out=900,
            source="Li et al. 2024 (arXiv:2406.11939)",
        )

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a pair."""
        first, second = pair(case)
        texts = {"prompt": conversation(case), "response_a": first, "response_b": second}
        return Request(
            template("arena_hard").filled(nonce, texts),
            Parameters(max_tokens=4096, temperature=0.0),
        )

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the preference, in the sides as shown, or why there is none."""
        return read_text(reply, _verdict)

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


def _verdict(text: str) -> Preference | None:
    share = bracketed(text, ARROWS)
    return None if share is None else Preference(share)
