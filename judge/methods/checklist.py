"""What methods go by beside the case: checklists of prompts, and margins of length."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from judge.case import Case, CaseId
from judge.grammar import Preference, Questions
from judge.protocol import pair
from judge.verdict import Judged
from rating.errors import DataError

Checklists = Mapping[str, tuple[str, ...]]
"""Questions by `Case.prompt_id`."""

TYPICAL = ("Does the answer do what was asked, and is what it says about this point right?",) * 7
"""Stands in estimates for a checklist that is still to be written: about 130 tokens."""


def written(judged: Iterable[Judged], cases: Iterable[Case]) -> dict[str, tuple[str, ...]]:
    """Return the checklists that a run of checklist_writer over ``cases`` brought, by prompt.

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
            f" ({case.prompt_id[:12]}). Let checklist_writer write one, or give it."
        )
    return items


def unanswered(case: Case) -> Case:
    """Return the prompt of a case without its responses."""
    return Case(case.prompt, "")


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
    .. [1] B. Y. Lin et al., "WildBench: benchmarking LLMs with challenging tasks from real users
       in the wild", ICLR 2025, section 3.3, length margin K.

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
    """Return the rows of a run with the length margin taken off.

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
