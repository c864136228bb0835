"""Names, labels and voters as integer codes: what cannot be meant is refused here."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rating.errors import DataError
from rating.outcome import Outcome
from rating.typing import Ints

OUTCOMES = tuple(Outcome)
_POSITION = {outcome: code for code, outcome in enumerate(OUTCOMES)}


class Encoded(NamedTuple):
    """Distinct names, sorted, and the position of each column's entries among them."""

    names: tuple[str, ...]
    columns: tuple[Ints, ...]


def as_list(column: Iterable[object]) -> list[object]:
    """Return the entries as they are.

    Never through ``np.asarray``: it would turn a NaN among strings into the
    name "nan".
    """
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def check_lengths(lengths: dict[str, int]) -> None:
    """Raise `DataError` unless all columns have the same length."""
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"Columns must have one entry per vote, but have lengths {listed}.")


def check_names(names: Iterable[object]) -> None:
    """Raise `DataError` for a missing or blank name, and for two spellings of one."""
    spellings = defaultdict(list)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise DataError(f"Model name {name!r} is missing or blank; leave such rows out.")
        spellings[name.strip().casefold()].append(str(name))
    twins = sorted(sorted(found) for found in spellings.values() if len(found) > 1)
    if twins:
        listed = "; ".join(" and ".join(map(repr, found)) for found in twins)
        raise DataError(
            f"Names that differ only in case or surrounding spaces: {listed}. "
            "Give each model one spelling."
        )


def encode_models(*columns: Sequence[object]) -> Encoded:
    """Code the names of several columns together."""
    distinct = dict.fromkeys(name for column in columns for name in dict.fromkeys(column))
    check_names(distinct)
    names = sorted(distinct, key=str)
    index = {name: code for code, name in enumerate(names)}
    return Encoded(tuple(map(str, names)), tuple(_codes(column, index) for column in columns))


def encode_outcomes(labels: Sequence[object]) -> Ints:
    """Code outcomes by their position in ``tuple(Outcome)``."""
    unknown = sorted(
        repr(x) for x in dict.fromkeys(labels) if not isinstance(x, str) or x not in _POSITION
    )
    if unknown:
        listed = ", ".join(OUTCOMES)
        raise DataError(f"Unknown outcome {', '.join(unknown)}; use one of {listed}.")
    return _codes(labels, _POSITION)


def encode_groups(kind: str, names: Sequence[object]) -> Ints:
    """Code voters, or prompts, in sorted order, numbers before strings."""
    distinct = dict.fromkeys(names)
    for name in distinct:
        if not isinstance(name, str | int) or name == "":
            raise DataError(
                f"{kind.capitalize()} {name!r} is missing; name every {kind}, or pass "
                f"{kind}=None when unknown."
            )
    ordered = sorted(distinct, key=lambda name: (isinstance(name, str), name))
    return _codes(names, {name: code for code, name in enumerate(ordered)})


def _codes(column: Sequence[object], index: Mapping[Any, int]) -> Ints:
    return np.fromiter(map(index.__getitem__, column), np.int64, len(column))
