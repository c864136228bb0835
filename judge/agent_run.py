"""What an agent did: the steps of a run, in their order, and where two runs part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Kind = Literal["message", "user", "system", "tool_call", "tool_result", "error"]
KINDS: tuple[Kind, ...] = get_args(Kind)
BLIND = ("kind", "name", "text", "arguments")
"""What of a step people see before they rate."""
TOOK = ("cost", "seconds")
"""What of a step they may see once they have rated."""
NO_TEXT = "(not shown: {})"
"""What stands for a part of a message that is no text, by its type."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run.

    Attributes
    ----------
    kind : {"message", "user", "system", "tool_call", "tool_result", "error"}
        What the agent wrote, what its user or its instructions did, and what tools took and gave.
    name : str
        Of the tool.
    text : str
        Markdown of a message, and plain text of all others.
    arguments : str
        Of a tool call, as JSON.
    cost, seconds : float or None
        US dollars and time that it took; None where not known.
    """

    kind: Kind
    text: str = ""
    name: str = ""
    arguments: str = ""
    cost: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class AgentRun:
    """How a model in a scaffold came to its answer.

    Attributes
    ----------
    model : str
    scaffold : str or None
        The program around the model, where there is one to tell apart.
    cost, seconds : float or None
        Of the whole run: US dollars and time; None where not known.
    marks : mapping of str to float
        What scorers gave it, by their names. No rater is shown them.
    """

    model: str
    scaffold: str | None
    steps: tuple[Step, ...]
    cost: float | None = None
    seconds: float | None = None
    marks: Mapping[str, float] = field(default_factory=dict)


def first_difference(runs: Sequence[Sequence[Mapping[str, Any]]]) -> int | None:
    """Find the first step in which runs differ, from 0; None where all steps are the same.

    Where one run goes on after the end of another, it is the first step that the other lacks.

    Parameters
    ----------
    runs : sequence of sequence of mapping
        Steps, of which `BLIND` counts.

    Examples
    --------
    >>> look, ask = {"kind": "tool_call", "name": "look"}, {"kind": "tool_call", "name": "ask"}
    >>> first_difference([[look, ask], [look, look]]), first_difference([[look], [look, ask]])
    (1, 1)
    """
    for place in range(max(map(len, runs))):
        if len({_seen(run[place]) if place < len(run) else None for run in runs}) > 1:
            return place
    return None


def _seen(step: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(step.get(name, "")).strip() for name in BLIND)
