"""Methods that go by rules beside the case: a checklist of the prompt, or a rubric."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from judge.case import Case, CaseId
from judge.completion import Parameters, Reply, Request
from judge.errors import FailureClass
from judge.grammar import (
    PLUSES,
    Items,
    Preference,
    Questions,
    Rating,
    Reading,
    answers,
    bracketed_mark,
    keyed,
    keyed_mark,
    questions,
)
from judge.protocol import Description, Method, pair, read_text
from judge.verdict import Judged
from rating.errors import DataError

FEWEST, MOST = 5, 10
"""Questions of a written checklist, as in WildBench."""

Checklists = Mapping[str, tuple[str, ...]]
"""Questions by `Case.prompt_id`."""

TYPICAL = ("Does the answer do what was asked, and is what it says about this point right?",) * 7
"""Stands in estimates for a checklist that is still to be written: about 130 tokens."""

_WILDBENCH = "Lin et al. 2024 (arXiv:2406.04770)"
_AS_JSON = Parameters(max_tokens=2048, temperature=0.0, json_object=True)


@dataclass(frozen=True, slots=True)
class ChecklistWriter(Method):
    """Ask for the checklist of a prompt; no response is shown.

    Give it `unanswered` cases: those of one prompt are one case, so its checklist is written and
    paid for once, and recalled from the journal ever after.

    References
    ----------
    .. [1] B. Y. Lin et al., "WildBench: benchmarking LLMs with challenging tasks from real users
       in the wild", ICLR 2025, section 3.1. There two models write and their lists are merged.
    """

    description: ClassVar[Description] = Description(
        name="checklist_writer",
        parameters=Parameters(max_tokens=1024, temperature=0.0),
        pairwise=False,
        tokens_out=200,
        source="Lin et al. 2024 (arXiv:2406.04770), section 3.1",
    )

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the request for a checklist."""
        return self.description.request(case, nonce, low=str(FEWEST), high=str(MOST))

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the questions, or why there are none."""
        return read_text(reply, _written)


@dataclass(frozen=True, slots=True)
class Checklist(Method):
    """Ask of one response which questions of its prompt's checklist it answers with yes.

    Parameters
    ----------
    checklists : mapping
        Questions by `Case.prompt_id`: written by `ChecklistWriter`, or given.

    References
    ----------
    .. [1] Y. Qin et al., "InFoBench: evaluating instruction following ability in large language
       models", 2024, arXiv:2401.03601 (decomposed requirements). There one call an item.
    """

    description: ClassVar[Description] = Description(
        name="checklist",
        parameters=Parameters(max_tokens=2048, temperature=0.0),
        pairwise=False,
        tokens_out=200,
        source="Qin et al. 2024 (arXiv:2401.03601)",
    )

    checklists: Checklists = field(repr=False)

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a response."""
        items = enumerate(checklist_of(case, self.checklists), start=1)
        lines = "\n".join(f"{number}. {item}" for number, item in items)
        return self.description.request(case, nonce, checklist=lines)

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return a verdict for each item, None where it is missing; or why there is no verdict."""
        n_items = len(checklist_of(case, self.checklists))
        return read_text(reply, lambda text: _checked(text, n_items))


@dataclass(frozen=True, slots=True)
class _WildBench(Method):
    """Ask with a checklist in hand.

    Parameters
    ----------
    checklists : mapping
        Questions by `Case.prompt_id`, written once (`ChecklistWriter`) or given.
    """

    checklists: Checklists = field(repr=False)

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a reply, or about a pair of replies."""
        items = "\n".join(f"- {item}" for item in checklist_of(case, self.checklists))
        return self.description.request(case, nonce, checklist=items)


@dataclass(frozen=True, slots=True)
class WildBenchScore(_WildBench):
    """Ask for a mark from 1 to 10 of one reply, as JSON (WB-Score).

    References
    ----------
    .. [1] B. Y. Lin et al., "WildBench: benchmarking LLMs with challenging tasks from real users
       in the wild", ICLR 2025, section 3.2. Our words.
    """

    description: ClassVar[Description] = Description(
        name="wildbench_score",
        parameters=_AS_JSON,
        pairwise=False,
        tokens_out=250,
        source=_WILDBENCH,
    )

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the mark, or why there is none."""
        return read_text(reply, _mark)


@dataclass(frozen=True, slots=True)
class WildBenchReward(_WildBench):
    """Ask which of two replies is better, on five levels, as JSON (WB-Reward).

    Against several baselines there is a case for each; whose reply stands on which side, the
    caller knows. Upstream asks in one random order, here both orders are asked by default.

    References
    ----------
    .. [1] B. Y. Lin et al., ICLR 2025 (see `WildBenchScore`), section 3.3. Our words.
    """

    description: ClassVar[Description] = Description(
        name="wildbench_reward",
        parameters=_AS_JSON,
        pairwise=True,
        tokens_out=350,
        source=_WILDBENCH,
    )

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the preference, in the sides as shown, or why there is none."""
        return read_text(reply, partial(keyed, key="choice", offered=PLUSES))


@dataclass(frozen=True, slots=True)
class Rubric(Method):
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

    def _mark(self, text: str) -> Rating | None:
        score = bracketed_mark(text, self.low, self.high)
        return None if score is None else Rating(score)


def written(judged: Iterable[Judged], cases: Iterable[Case]) -> dict[str, tuple[str, ...]]:
    """Return the checklists that a run of `ChecklistWriter` over ``cases`` brought, by prompt.

    Prompts whose checklist could not be read are not among them: leave their cases out, and say
    so.
    """
    prompts = {case.id: case.prompt_id for case in cases}
    return {
        prompts[row.case_id]: row.reading.items
        for row in judged
        if isinstance(row.reading, Questions)
    }


def checklist_of(case: Case, checklists: Checklists) -> tuple[str, ...]:
    """Return the questions for a case's prompt.

    Raises
    ------
    DataError
        If there are none.
    """
    items = checklists.get(case.prompt_id, ())
    if not items:
        raise DataError(
            f"There is no checklist for the prompt {case.prompt[-1].content[:60]!r}"
            f" ({case.prompt_id[:12]}). Write one with ChecklistWriter, or give it."
        )
    return items


def unanswered(case: Case) -> Case:
    """Return the prompt of a case without its responses."""
    return Case(case.prompt, "")


def _written(text: str) -> Questions | None:
    items = questions(text, FEWEST, MOST)
    return None if items is None else Questions(items)


def _checked(text: str, n_items: int) -> Items | None:
    met = answers(text, n_items)
    return None if all(item is None for item in met) else Items(met)


def with_margin(preference: Preference, case: Case, margin: int | None) -> Preference:
    """Make a tie of a slight win by a reply that is longer by more than a margin.

    Parameters
    ----------
    preference : Preference
        For side A of ``case``.
    margin : int or None
        WildBench's K, in characters; None leaves every verdict as it is (its K = infinity, which
        its code writes as -1).

    References
    ----------
    .. [1] B. Y. Lin et al., ICLR 2025 (see `WildBenchScore`), section 3.3, length margin K.

    Examples
    --------
    >>> from judge.case import Message
    >>> case = Case((Message("user", "Hi"),), "long " * 200, "short")
    >>> with_margin(Preference(0.75), case, 500), with_margin(Preference(1.0), case, 500)
    (Preference(first=0.5), Preference(first=1.0))
    """
    first, second = pair(case)
    longer = len(first) - len(second)
    slight = {0.75: longer, 0.25: -longer}.get(preference.first)
    if margin is None or slight is None or slight <= margin:
        return preference
    return Preference(0.5)


def margined(
    judged: Iterable[Judged], cases: Mapping[CaseId, Case], margin: int | None
) -> tuple[Judged, ...]:
    """Return the rows of a run of `WildBenchReward` with the length margin taken off.

    The journal keeps what the judge said, so another margin on the same replies is free.
    """
    return tuple(
        replace(row, reading=with_margin(row.reading, cases[row.case_id].shown(row.order), margin))
        if isinstance(row.reading, Preference)
        else row
        for row in judged
    )


def reward(preference: Preference) -> float:
    """Return WB-Reward of the first: 1 much better, 1/2 slightly, 0 equal, and so down to -1.

    Examples
    --------
    >>> [reward(Preference(share)) for share in (1.0, 0.75, 0.5, 0.25, 0.0)]
    [1.0, 0.5, 0.0, -0.5, -1.0]
    """
    return 2 * preference.first - 1


def _mark(text: str) -> Rating | None:
    score = keyed_mark(text, "score", 1, 10)
    return None if score is None else Rating(score)
