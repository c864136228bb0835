"""WildBench: a checklist in hand, marks for one reply or five levels for two."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from judge.case import Case, CaseId
from judge.completion import Parameters, Reply, Request
from judge.errors import FailureClass
from judge.grammar import PLUSES, Preference, Rating, Reading, keyed, keyed_mark
from judge.methods.checklist import Checklists, checklist_of
from judge.protocol import Description, Method, pair, read_text
from judge.verdict import Judged

_SOURCE = "Lin et al. 2024 (arXiv:2406.04770)"
_PARAMETERS = Parameters(max_tokens=2048, temperature=0.0, json_object=True)


@dataclass(frozen=True, slots=True)
class WildBenchScore(Method):
    """Ask for a mark from 1 to 10 of one reply, as JSON (WB-Score).

    Parameters
    ----------
    checklists : mapping
        Questions by `Case.prompt_id`, written once (`ChecklistWriter`) or given.

    References
    ----------
    .. [1] B. Y. Lin et al., "WildBench: benchmarking LLMs with challenging tasks from real users
       in the wild", ICLR 2025, section 3.2. Our words.
    """

    description: ClassVar[Description] = Description(
        name="wildbench_score",
        template_name="wildbench_score",
        parameters=_PARAMETERS,
        pairwise=False,
        tokens_out=250,
        source=_SOURCE,
    )

    checklists: Checklists = field(repr=False)

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a reply."""
        items = _bullets(case, self.checklists)
        return self.description.request(case, nonce, checklist=items)

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the mark, or why there is none."""
        return read_text(reply, _mark)


@dataclass(frozen=True, slots=True)
class WildBenchReward(Method):
    """Ask which of two replies is better, on five levels, as JSON (WB-Reward).

    Against several baselines there is a case for each; whose reply stands on which side, the
    caller knows. Upstream asks in one random order, here both orders are asked by default.

    Parameters
    ----------
    checklists : mapping
        Questions by `Case.prompt_id`, written once (`ChecklistWriter`) or given.

    References
    ----------
    .. [1] B. Y. Lin et al., ICLR 2025 (see `WildBenchScore`), section 3.3. Our words.
    """

    description: ClassVar[Description] = Description(
        name="wildbench_reward",
        template_name="wildbench_reward",
        parameters=_PARAMETERS,
        pairwise=True,
        tokens_out=350,
        source=_SOURCE,
    )

    checklists: Checklists = field(repr=False)

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a pair of replies."""
        items = _bullets(case, self.checklists)
        return self.description.request(case, nonce, checklist=items)

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the preference, in the sides as shown, or why there is none."""
        return read_text(reply, partial(keyed, key="choice", offered=PLUSES))


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


def _bullets(case: Case, checklists: Checklists) -> str:
    return "\n".join(f"- {item}" for item in checklist_of(case, checklists))


def _mark(text: str) -> Rating | None:
    score = keyed_mark(text, "score", 1, 10)
    return None if score is None else Rating(score)
