"""Published methods of judging by their names: how each asks, and how it reads."""

from collections.abc import Callable
from dataclasses import dataclass

from judge.methods.checklist import (
    Checklist,
    Checklists,
    ChecklistWriter,
    Rubric,
    WildBenchReward,
    WildBenchScore,
    margined,
    unanswered,
    written,
)
from judge.methods.pairwise import AlpacaEval, ArenaHard, Pairwise
from judge.protocol import Method, Template
from rating.errors import DataError

__all__ = [
    "PAIRS",
    "SINGLES",
    "AlpacaEval",
    "ArenaHard",
    "Checklist",
    "ChecklistWriter",
    "Named",
    "Pairwise",
    "Rubric",
    "WildBenchReward",
    "WildBenchScore",
    "margined",
    "method",
    "unanswered",
    "written",
]

_PLAIN: tuple[Method, ...] = (
    Pairwise(),
    AlpacaEval(),
    AlpacaEval("sampled"),
    AlpacaEval("verbal"),
    ArenaHard(),
)
_BY_CHECKLIST: dict[str, Callable[[Checklists], Method]] = {
    "wildbench_reward": WildBenchReward,
    "wildbench_score": WildBenchScore,
    "checklist": Checklist,
}
PAIRS = (*(one.description.name for one in _PLAIN), "wildbench_reward")
"""Methods that compare two responses."""
SINGLES = ("wildbench_score", "rubric", "checklist")
"""Methods that look at one."""


@dataclass(frozen=True, slots=True)
class Named:
    """A method, as far as it is known before any checklist is.

    Attributes
    ----------
    name : str
        One of `PAIRS` or `SINGLES`.
    made : callable
        From checklists by `judge.case.Case.prompt_id` to the method.
    by_checklist : bool
        Whether it takes them into account; others are made of none.
    """

    name: str
    made: Callable[[Checklists], Method]
    by_checklist: bool = False

    @property
    def pairwise(self) -> bool:
        """Whether two responses are compared."""
        return self.name in PAIRS

    @property
    def template(self) -> Template:
        """What is asked, before the case and any checklist are put in."""
        return self.made({}).description.template


def method(name: str, *, rubric: str | None = None, scale: tuple[int, int] = (1, 10)) -> Named:
    """Return a method by its name.

    Parameters
    ----------
    rubric : str or None
        What the marks stand for, with ``rubric`` alone.
    scale : (int, int)
        Lowest and highest mark of a rubric.

    Raises
    ------
    DataError
        If there is no such method, or a rubric is missing or has no use.
    """
    if name == "rubric":
        if rubric is None:
            raise DataError("The method rubric needs a rubric: say what the marks stand for.")
        by_rubric = Rubric(rubric, *scale)
        return Named(name, lambda _: by_rubric)
    if rubric is not None:
        raise DataError(f"A rubric is for the method rubric; {name!r} does not look at it.")
    if name in _BY_CHECKLIST:
        return Named(name, _BY_CHECKLIST[name], by_checklist=True)
    plain = next((one for one in _PLAIN if one.description.name == name), None)
    if plain is None:
        names = ", ".join((*PAIRS, *SINGLES))
        raise DataError(f"There is no method {name!r} to run: choose one of {names}.")
    return Named(name, lambda _: plain)
