"""What came of each question of a run, in the memory that a million of them may take."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

from judge.calls import Key, Questions
from judge.errors import FailureClass
from judge.grammar import Preference, Reading, pooled
from judge.verdict import Judged

T = TypeVar("T")

_KEY_BYTES = 32
_COMMON = (0.0, 0.5, 1.0)
"""Preferences that many questions share; of some methods each has a number of its own."""


@dataclass(slots=True)
class State:
    """What is known of a question so far."""

    reading: Reading | None = None
    failure: FailureClass | None = None
    detail: str = ""
    keys: tuple[Key, ...] = ()
    cost_usd: float | None = None
    latency_s: float | None = None
    recalled: bool = True
    models: frozenset[str] = frozenset()
    fingerprints: frozenset[str] = frozenset()

    def book(
        self,
        keys: tuple[Key, ...],
        cost_usd: float | None,
        latency_s: float | None,
        models: frozenset[str],
        fingerprints: frozenset[str],
    ) -> None:
        """Add replies: what they cost, of which the sum of what is known stands, and by whom."""
        self.keys += keys
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd
        if latency_s is not None:
            self.latency_s = (self.latency_s or 0.0) + latency_s
        self.models |= models
        self.fingerprints |= fingerprints


class _Numbered(Generic[T]):
    """Values that many questions share, each kept once; 0 is the first."""

    def __init__(self, first: T) -> None:
        self._numbers, self._values = {first: 0}, [first]

    def number(self, value: T) -> int:
        number = self._numbers.setdefault(value, len(self._values))
        if number == len(self._values):
            self._values.append(value)
        return number

    def __getitem__(self, number: int) -> T:
        return self._values[number]


class States:
    """States of questions in some sixty bytes each; as objects they took six hundred.

    Parameters
    ----------
    n : int
        Questions; nothing is known of them.
    """

    def __init__(self, n: int) -> None:
        blank = State()
        self._readings = _Numbered[tuple[Reading | None, FailureClass | None, str]](
            (None, None, "")
        )
        self._names = _Numbered((blank.models, blank.fingerprints))
        self._numbers = array("i", bytes(4 * n)), array("i", bytes(4 * n))
        self._first = array("d", [math.nan]) * n
        self._cost, self._latency = array("d", [math.nan]) * n, array("d", [math.nan]) * n
        self._recalled, self._n_keys = bytearray(b"\1") * n, bytearray(n)
        self._keys = bytearray(_KEY_BYTES * n)
        self._further: dict[int, tuple[Key, ...]] = {}

    def put(self, at: int, state: State) -> None:
        """Keep the state of a question, in place of the one before."""
        readings, names = self._numbers
        if isinstance(state.reading, Preference) and state.reading.first not in _COMMON:
            self._first[at] = state.reading.first
        else:
            readings[at] = self._readings.number((state.reading, state.failure, state.detail))
        names[at] = self._names.number((state.models, state.fingerprints))
        self._cost[at] = math.nan if state.cost_usd is None else state.cost_usd
        self._latency[at] = math.nan if state.latency_s is None else state.latency_s
        self._recalled[at], self._n_keys[at] = state.recalled, min(len(state.keys), 2)
        if state.keys:
            self._keys[_KEY_BYTES * at : _KEY_BYTES * (at + 1)] = bytes.fromhex(state.keys[0])
        if state.keys[1:]:
            self._further[at] = state.keys[1:]

    def __getitem__(self, at: int) -> State:
        """Make the state of a question."""
        reading, failure, detail = self._readings[self._numbers[0][at]]
        if not math.isnan(self._first[at]):
            reading = Preference(self._first[at])
        models, fingerprints = self._names[self._numbers[1][at]]
        keys: tuple[Key, ...] = ()
        if self._n_keys[at]:
            first = self._keys[_KEY_BYTES * at : _KEY_BYTES * (at + 1)].hex()
            keys = (Key(first), *self._further.get(at, ()))
        return State(
            reading,
            failure,
            detail,
            keys,
            _known(self._cost[at]),
            _known(self._latency[at]),
            bool(self._recalled[at]),
            models,
            fingerprints,
        )


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


class Outcomes(Sequence[Judged]):
    """A row for each case and order, made when it is looked at."""

    def __init__(self, questions: Questions, states: States) -> None:
        self._questions, self._states = questions, states
        self._rows = range(questions.n_rows)

    def __len__(self) -> int:
        """Count the cases, each in each order."""
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Judged: ...
    @overload
    def __getitem__(self, at: slice) -> list[Judged]: ...
    def __getitem__(self, at: int | slice) -> Judged | list[Judged]:
        """Make the row at a place, or those of a slice."""
        if isinstance(at, slice):
            return [self[i] for i in self._rows[at]]
        row = self._rows[at]
        samples = self._questions.samples
        state = _together([self._states[row * samples + i] for i in range(samples)])
        case_id, order = self._questions.row(row)
        return Judged(
            case_id=case_id,
            order=order,
            reading=state.reading,
            failure=state.failure,
            detail=state.detail,
            keys=state.keys,
            cost_usd=state.cost_usd,
            latency_s=state.latency_s,
            recalled=state.recalled,
            models=state.models,
            fingerprints=state.fingerprints,
        )


def _together(samples: Sequence[State]) -> State:
    """Make one of all samples of a question; it is pending while any of them is."""
    if len(samples) == 1:
        return samples[0]
    whole = State(recalled=all(f.recalled for f in samples))
    for f in samples:
        whole.book(f.keys, f.cost_usd, f.latency_s, f.models, f.fingerprints)
    readings = [f.reading for f in samples if f.reading is not None]
    failed = [f for f in samples if f.failure is not None]
    if len(readings) + len(failed) < len(samples):
        return whole
    if readings:
        whole.reading = pooled(readings)
    else:
        whole.failure, whole.detail = failed[0].failure, failed[0].detail
    return whole
