"""Rubric: a mark for one response, by rules that the caller writes."""

from dataclasses import dataclass
from typing import ClassVar

from judge.case import Case
from judge.completion import Parameters, Reply, Request
from judge.errors import FailureClass
from judge.grammar import Rating, Reading, bracketed_mark
from judge.protocol import Description, read_text
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

    description: ClassVar[Description] = Description(
        name="rubric",
        template_name="rubric",
        parameters=Parameters(max_tokens=1024, temperature=0.0),
        pairwise=False,
        tokens_out=150,
        source="Kim et al. 2024 (arXiv:2310.08491)",
    )

    rubric: str
    low: int = 1
    high: int = 10

    def __post_init__(self) -> None:
        if not self.rubric.strip():
            raise DataError("The rubric is empty: say what the marks stand for.")
        if not 0 <= self.low < self.high <= 999:
            raise DataError(f"A scale runs upwards within 0 and 999, not {self.low}-{self.high}.")

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a response."""
        low, high = str(self.low), str(self.high)
        return self.description.request(case, nonce, rubric=self.rubric, low=low, high=high)

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the mark, or why there is none."""
        return read_text(reply, self._mark)

    def settled(self, case: Case) -> Reading | None:
        """Nothing is known beforehand."""
        return None

    def _mark(self, text: str) -> Rating | None:
        score = bracketed_mark(text, self.low, self.high)
        return None if score is None else Rating(score)
