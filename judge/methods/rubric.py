"""Rubric: a mark for one response, by rules that the caller writes."""

from dataclasses import dataclass

from judge.case import Case
from judge.completion import Parameters, Reply, Request
from judge.errors import FailureClass
from judge.grammar import bracketed_mark
from judge.protocol import Description, conversation, read_text, template
from judge.reading import Rating, Reading
from rating.errors import DataError


@dataclass(frozen=True, slots=True)
class Rubric:
    """Ask for a mark by a rubric, in double brackets.

    Parameters
    ----------
    rubric : str
        What each mark, or each end of the scale, stands for.
    low, high : int
        The scale.

    Raises
    ------
    DataError
        If the rubric is empty, or the scale has not two marks within 0 and 999.

    References
    ----------
    .. [1] S. Kim et al., "Prometheus: inducing fine-grained evaluation capability in language
       models", ICLR 2024 (absolute grading by a custom rubric). Our words.
    """

    rubric: str
    low: int = 1
    high: int = 10

    def __post_init__(self) -> None:
        if not self.rubric.strip():
            raise DataError("The rubric is empty: say what the marks stand for.")
        if not 0 <= self.low < self.high <= 999:
            raise DataError(f"A scale runs upwards within 0 and 999, not {self.low}-{self.high}.")

    @property
    def description(self) -> Description:
        """What the method is."""
        return Description(
            name="rubric",
            template=template("rubric"),
            parser=1,
            pairwise=False,
            tokens_out=150,
            source="Kim et al. 2024 (arXiv:2310.08491)",
        )

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a response."""
        texts = {
            "prompt": conversation(case),
            "response_a": case.response_a,
            "rubric": self.rubric,
            "low": str(self.low),
            "high": str(self.high),
        }
        return Request(
            template("rubric").filled(nonce, texts),
            Parameters(max_tokens=1024, temperature=0.0),
        )

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the mark, or why there is none."""
        return read_text(reply, self._mark)

    def settled(self, case: Case) -> Reading | None:
        """Nothing is known beforehand."""
        return None

    def _mark(self, text: str) -> Rating | None:
        score = bracketed_mark(text, self.low, self.high)
        return None if score is None else Rating(score)
