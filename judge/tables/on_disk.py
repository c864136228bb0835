"""Cases that wait on disk: a run of a million looks at some hundred of them at a time."""

import json
import os
import tempfile
import weakref
from abc import abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, overload

from judge.case import Case, Message
from judge.tables.cases import NamedCase

T = TypeVar("T")


class _Made(Sequence[T]):
    """A sequence whose members are made when they are looked at, the last of them kept."""

    def __init__(self) -> None:
        self._last: tuple[int, T] | None = None

    @abstractmethod
    def _made(self, at: int) -> T:
        """Make the member at a place."""

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        """Make the member at a place, or those of a slice."""
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        place = range(len(self))[at]
        if self._last is None or self._last[0] != place:
            self._last = place, self._made(place)
        return self._last[1]


class CasesOnDisk(_Made[NamedCase]):
    """Cases in a file that has no name and goes with them.

    Parameters
    ----------
    cases : iterable of NamedCase
        Read once, one after the other.
    """

    def __init__(self, cases: Iterable[NamedCase]) -> None:
        super().__init__()
        self._ends = array("Q", [0])
        self._file = tempfile.TemporaryFile(prefix="arena-cases-")  # noqa: SIM115 - closed below
        weakref.finalize(self, self._file.close)
        for named in cases:
            written = self._file.write(_packed(named))
            self._ends.append(self._ends[-1] + written)
        self._file.flush()

    def __len__(self) -> int:
        """Count the cases."""
        return len(self._ends) - 1

    def _made(self, at: int) -> NamedCase:
        begin, end = self._ends[at], self._ends[at + 1]
        return _unpacked(os.pread(self._file.fileno(), end - begin, begin))


class Bare(_Made[Case]):
    """Cases without their names, as a judge sees them."""

    def __init__(self, named: Sequence[NamedCase]) -> None:
        super().__init__()
        self._named = named

    def __len__(self) -> int:
        """Count the cases."""
        return len(self._named)

    def _made(self, at: int) -> Case:
        return self._named[at].case


def _packed(named: NamedCase) -> bytes:
    case = named.case
    own = (named.battle_id, named.prompt_id, named.model_a, named.model_b)
    turns = [[turn.role, turn.content, turn.images] for turn in case.prompt]
    sides = (case.response_a, case.response_b, case.earlier_a, case.earlier_b, case.reference)
    return json.dumps([*own, turns, *sides, named.session_id, named.checklist]).encode()


def _unpacked(packed: bytes) -> NamedCase:
    values: Any = json.loads(packed)
    battle, prompt, model_a, model_b, turns, a, b, earlier_a, earlier_b, *rest = values
    reference, session, checklist = rest
    shown = tuple(Message(role, content, tuple(images)) for role, content, images in turns)
    case = Case(shown, a, b, tuple(earlier_a), tuple(earlier_b), reference)
    return NamedCase(battle, prompt, model_a, model_b, case, session, tuple(checklist))
