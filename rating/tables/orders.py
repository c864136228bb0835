"""Rows of a judge's run: a case judged in both orders counts once, by the row of both."""

from collections.abc import Mapping, Sequence

import narwhals as nw
import numpy as np

from rating.counting import fits, packed
from rating.tables.coding import Coded
from rating.tables.peers import NO_VERDICT
from rating.tables.sieve import Sieve
from rating.tables.sources import Frame
from rating.typing import Bools, Ints

BOTH = "both"
"""Value of the column ``order`` in the row that reconciles both orders."""
ORDERS = frozenset({"ab", "ba", BOTH})
IN_BOTH = "one order of a case judged in both"

_ORDER, _STATUS = "order", "status"
_KEY = {"case": "battle_id", "judge": "judge", "method": "method"}
"""Roles and columns that tell cases apart, beside the models."""


def order_columns(there: Sequence[str]) -> dict[str, str]:
    """Name the columns of a judge's run that say which rows are of one case, by role."""
    if _ORDER not in there:
        return {}
    return {role: name for role, name in _roles().items() if name in there}


def only_of_text(frame: Frame, texts: dict[str, str]) -> dict[str, str]:
    """Leave out what a judge's run would say of orders where ``order`` holds anything but text.

    Parameters
    ----------
    texts : dict of str to str
        Columns to read, by role.
    """
    orders = order_columns(list(texts.values()))
    if _ORDER not in texts or frame.collect_schema()[texts[_ORDER]] == nw.String:
        return texts
    return {role: name for role, name in texts.items() if role not in orders}


def warning(dropped: int) -> str:
    """Say that rows were left out for standing beside those of both orders."""
    return (
        f"{dropped:,} rows of single orders are left out: the row 'both' of the same case stands"
        " for them."
    )


def one_row_a_case(sieve: Sieve) -> None:
    """Drop single orders beside the row of both, and rows that hold no verdict.

    Of a case that was asked in one order only, that row stays. Without a column ``battle_id`` the
    rows cannot be told apart by case: the rows of both stay alone, where there are any. A table
    whose ``order`` holds anything else than a run writes is left as it is.
    """
    order = sieve.table.texts.get(_ORDER)
    if order is None or not {name.strip() for name in order.names} <= ORDERS:
        return
    if (order.codes < 0).any():
        return
    sieve.drop(beside_both(sieve.table.texts), IN_BOTH)
    _drop_unread(sieve)


def beside_both(texts: Mapping[str, Coded]) -> Bools:
    """Tell which rows are of a single order while the row of both stands for their case.

    Parameters
    ----------
    texts : mapping of str to Coded
        By the roles of `order_columns`; ``order`` is among them and holds no missing value.
    """
    order = texts[_ORDER]
    both = np.array([name.strip() == BOTH for name in order.names], dtype=bool)[order.codes]
    cases = _cases(texts)
    single: Bools = ~both & np.isin(cases, cases[both])
    return single


def _roles() -> dict[str, str]:
    return {_ORDER: _ORDER, _STATUS: _STATUS, **_KEY}


def _cases(texts: Mapping[str, Coded]) -> Ints:
    """Return a number of each row's case; all are one where nothing tells them apart."""
    if "case" not in texts:
        return np.zeros(len(texts[_ORDER].codes), dtype=np.int64)
    roles = [role for role in ("model_a", "model_b", *_KEY) if role in texts]
    codes, sizes = [texts[role].codes for role in roles], [len(texts[r].names) for r in roles]
    if fits(sizes):
        return packed(codes, sizes)
    _, numbers = np.unique(np.column_stack(codes), axis=0, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)


def _drop_unread(sieve: Sieve) -> None:
    """Drop the rows that say why they have no winner, by that reason."""
    status, winner = sieve.table.texts.get(_STATUS), sieve.table.texts["winner"]
    if status is None:
        return
    blank = np.append([not name.strip() for name in winner.names], True)[winner.codes]
    for code, why in enumerate(status.names):
        if why.strip():
            sieve.drop(blank & (status.codes == code), f"{NO_VERDICT}: {why}")
