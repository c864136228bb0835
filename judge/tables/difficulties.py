"""What AlpacaEval's length control goes by: difficulties of instructions, and gamed baselines."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from judge.tables.annotations import Annotations, list_of, read_annotations
from judge.tables.items import Item
from rating.errors import DataError

GAMED_WEIGHT = 0.1
"""Of each row of the two gamed baselines: half of upstream's .2."""
_FEWEST_DIGITS = 8
"""Of a hash by which an instruction is named."""


def read_difficulties(path: Path) -> Annotations:
    """Read ``idx`` and ``difficulty``, or AlpacaEval's ``instruction_difficulty.csv``.

    Theirs has ``index``, the place of the instruction from 0, and ``instruction_difficulty``.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    table = read_annotations(path)
    if not table.has("index", "instruction_difficulty"):
        return table
    columns = table.columns
    theirs = {"idx": columns["index"], "difficulty": columns["instruction_difficulty"]}
    return replace(table, columns={**columns, **theirs})


def read_regularisation(path: Path) -> Annotations:
    """Read ``idx``, ``x_len``, ``pseudo_y`` and ``weight``, or AlpacaEval's ``df_gamed.csv``.

    Theirs has ``index``, ``std_delta_len`` (in standard deviations; ``x_len`` is its tanh) and
    ``preference`` from 0 to 1.

    Raises
    ------
    DataError
        If it cannot be read, or a value is no number.
    """
    table = read_annotations(path)
    if not table.has("index", "std_delta_len", "preference"):
        return table
    return replace(
        table,
        columns={
            "idx": table.columns["index"],
            "x_len": list_of(np.tanh(table.numbers("std_delta_len")).tolist()),
            "pseudo_y": table.columns["preference"],
            "weight": list_of([GAMED_WEIGHT] * table.n),
        },
    )


def of_items(
    difficulties: Annotations, regularisation: Annotations | None, items: Sequence[Item]
) -> tuple[Annotations, Annotations | None]:
    """Name instructions as the items of a bench do; those of no item keep their own names.

    They are known by their text (``instruction``), its hash (``instruction_sha256``, or its
    beginning), or the item's own name (``idx``). A number is the place among the items only where
    the file has as many rows as there are items.

    Raises
    ------
    DataError
        If the file holds none of the items.
    """
    idx = difficulties.texts("idx" if difficulties.has("idx") else "instruction")
    names = dict(zip(idx, _names(difficulties, idx, items), strict=True))
    if not {item.id for item in items} & {*names.values()}:
        msg = (
            f"{difficulties.source!r} holds the difficulty of none of the {len(items):,} items: "
            "name instructions by a column 'instruction' or 'instruction_sha256', or by 'idx', "
            "the item's own id, or its place from 0 where all items have a row."
        )
        raise DataError(msg)
    named = _as_named(difficulties, [names[own] for own in idx])
    if regularisation is None:
        return named, None
    theirs = [names.get(own, own) for own in regularisation.texts("idx")]
    return named, _as_named(regularisation, theirs)


def _names(table: Annotations, idx: Sequence[str], items: Sequence[Item]) -> list[str]:
    if table.has("instruction"):
        by_text = {item.text: item.id for item in items}
        return [by_text.get(str(text), own) for text, own in _with(table, "instruction", idx)]
    if table.has("instruction_sha256"):
        by_hash = {hashlib.sha256(item.text.encode()).hexdigest(): item.id for item in items}
        hashes = _with(table, "instruction_sha256", idx)
        return [_by_beginning(by_hash, str(digest), own) for digest, own in hashes]
    places = {str(place): item.id for place, item in enumerate(items)}
    if {*idx} & {item.id for item in items} or {*idx} != {*places}:
        return list(idx)
    return [places[own] for own in idx]


def _with(table: Annotations, name: str, idx: Sequence[str]) -> list[tuple[object, str]]:
    return list(zip(table.columns[name], idx, strict=True))


def _by_beginning(by_hash: Mapping[str, str], digest: str, own: str) -> str:
    if len(digest) < _FEWEST_DIGITS:
        return own
    return next((name for whole, name in by_hash.items() if whole.startswith(digest)), own)


def _as_named(table: Annotations, idx: Sequence[str]) -> Annotations:
    return replace(table, columns={**table.columns, "idx": list_of(idx)})
