"""Whether a response follows the instructions of its prompt, strictly and loosely."""

from collections.abc import Iterable
from dataclasses import dataclass

from judge.methods.constraints.arguments import Checker
from judge.methods.constraints.instructions import Task
from judge.methods.constraints.text import loosened


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found.

    Attributes
    ----------
    prompt : str
    ids : tuple of str
        Ids of the instructions, in the order of the task.
    strict, loose : tuple of bool or None
        Whether each was followed, in the response as it is and in any of its
        `loosened` versions; None where that cannot be told.
    """

    prompt: str
    ids: tuple[str, ...]
    strict: tuple[bool | None, ...]
    loose: tuple[bool | None, ...]

    @property
    def all_strict(self) -> bool | None:
        """Whether all were followed; None where those that could be told were."""
        return _all(self.strict)

    @property
    def all_loose(self) -> bool | None:
        """Whether each was followed in some version, not necessarily the same one."""
        return _all(self.loose)


def check(task: Task, response: str) -> Checked:
    r"""Check a response against every instruction of its prompt.

    A blank response follows nothing. What passes strictly passes loosely; the
    loose score is an upper bound: without its first or last line, a response
    may also lose the very violation that it is searched for.

    References
    ----------
    .. [1] J. Zhou et al., "Instruction-following evaluation for large language
       models", arXiv 2311.07911, 2023, section 3.

    Examples
    --------
    >>> from judge.methods.constraints.instructions import read_task
    >>> task = read_task(
    ...     {"prompt": "Hi", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    ... )
    >>> found = check(task, "Sure, here:\nhello world")
    >>> found.strict, found.loose
    ((False,), (True,))
    """
    checkers = [instruction.checker for instruction in task.instructions]
    versions = loosened(response)
    return Checked(
        prompt=task.prompt,
        ids=tuple(instruction.id for instruction in task.instructions),
        strict=tuple(_follows(checker, response) for checker in checkers),
        loose=tuple(_any(_follows(each, text) for text in versions) for each in checkers),
    )


def _follows(checker: Checker, text: str) -> bool | None:
    return checker.follows(text) if text.strip() else False


def _any(results: Iterable[bool | None]) -> bool | None:
    """Return True if one is; otherwise None if one is unknown."""
    unknown = False
    for result in results:
        if result:
            return True
        unknown |= result is None
    return None if unknown else False


def _all(results: Iterable[bool | None]) -> bool | None:
    """Return False if one is; otherwise None if one is unknown."""
    known = list(results)
    if False in known:
        return False
    return None if None in known else True
