"""Length-controlled win rates of a file of AlpacaEval annotations, instruction by instruction."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from judge.scoring.alpaca_eval import wins
from judge.scoring.length_control import Annotated, Block, length_controlled, length_term
from judge.scoring.logistic import Difficulty, estimate_difficulty
from judge.tables.annotations import Annotations, groups
from rating.errors import DataError, NotIdentifiedError
from rating.typing import Floats, Ints

FEW_ROWS = 100
ABSORBED_T = 3.0
"""Difficulties whose means by order lie this many standard errors apart hold the order."""


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """What a score is asked to use.

    Attributes
    ----------
    items : Annotations or None
        AlpacaEval: ``idx``, ``difficulty``; WildBench: ``session_id``, ``tags``.
    regularisation : Annotations or None
        AlpacaEval: ``idx``, ``x_len``, ``pseudo_y``, ``weight``.
    by_position : bool
        Look difficulties up by the position of a row among its model's, as upstream does.
    order : bool
        Add the order in which responses were shown to the length control.
    """

    items: Annotations | None
    regularisation: Annotations | None
    by_position: bool
    order: bool


@dataclass(frozen=True, slots=True)
class Control:
    """Length-controlled win rate in per cent and its standard errors; NaN where there is none."""

    win_rate: float
    standard_error: float
    compat_error: float


_BOUNDS = {"pseudo_y": (0.0, 1.0), "x_len": (-1.0, 1.0), "weight": (0.0, math.inf)}
"""Of the columns of a regularisation block."""

NONE = Control(math.nan, math.nan, math.nan)
BASELINE = Control(50.0, 0.0, 0.0)
"""The baseline against itself, by definition."""


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Usable rows of all models; ``instruction`` is -1 where the items do not hold it."""

    share: Floats
    gap: Floats
    instruction: Ints
    order: Floats | None
    models: Mapping[str, Ints]


def length_controls(
    data: Annotations, preference: Floats, options: ScoreOptions
) -> tuple[dict[str, Control], list[str]]:
    """Control every model for length.

    Returns
    -------
    dict of str to Control
        By model; one whose rows identify no fit has NaN, and a warning says why.
    list of str
        Warnings.

    Raises
    ------
    DataError
        If a column is missing, or holds what it should not.
    """
    models = groups(data.texts("model"))
    if not data.has("len_base", "len_model"):
        warning = "No length control: there are no columns 'len_base' and 'len_model'."
        return dict.fromkeys(models, NONE), [warning]
    names = _instructions(data, options.items)
    table = _table(data, preference, names, options)
    baselines = {name for name, rows in table.models.items() if _is_baseline(table, rows)}
    contenders = {name: rows for name, rows in table.models.items() if name not in baselines}
    difficulty, warnings = _difficulty(table, contenders, options)
    warnings += _on_missing(data, table, options) + _on_order(table, difficulty)
    block = None if options.regularisation is None else _block(options.regularisation, names)
    controls = dict.fromkeys(models, NONE) | dict.fromkeys(baselines, BASELINE)
    for name, rows in contenders.items():
        annotated = _annotated(table, rows)
        controls[name], few = _control(name, annotated, difficulty, block, options)
        warnings += few
    known = any(not math.isnan(controls[name].win_rate) for name in contenders)
    return controls, warnings + (_on_quantity(options) if known else [])


def _instructions(data: Annotations, items: Annotations | None) -> dict[str, int]:
    """Give each instruction a number: its row among the items, else its place by name."""
    if items is None:
        return {name: at for at, name in enumerate(sorted(set(data.texts("idx"))))}
    names = items.texts("idx")
    rows = {name: at for at, name in enumerate(names)}
    twice = next((name for at, name in enumerate(names) if rows[name] != at), None)
    if twice is not None:
        msg = f"{items.source!r} holds idx {twice!r} more than once: give one row an instruction."
        raise DataError(msg)
    return rows


def _table(
    data: Annotations, preference: Floats, names: Mapping[str, int], options: ScoreOptions
) -> _Table:
    share = wins(preference)
    gap = data.numbers("len_base") - data.numbers("len_model")
    if options.by_position:
        instruction = _positions(data, len(names))
    else:
        instruction = np.array([names.get(idx, -1) for idx in data.texts("idx")], dtype=np.int64)
    usable = ~np.isnan(share) & ~np.isnan(gap) & (instruction >= 0)
    models = {name: rows[usable[rows]] for name, rows in groups(data.texts("model")).items()}
    order = np.where(data.flags("is_switched"), 0.5, -0.5) if data.has("is_switched") else None
    if options.order and order is None:
        data.need("is_switched")
    return _Table(
        share, gap, instruction, order, {m: rows for m, rows in models.items() if rows.size}
    )


def _positions(data: Annotations, n_items: int) -> Ints:
    """Return each row's place among its model's rows, by ``row_pos`` where the file has it."""
    place = np.zeros(data.n, dtype=np.int64)
    if data.has("row_pos"):
        place = data.numbers("row_pos").astype(np.int64)
    else:
        for rows in groups(data.texts("model")).values():
            place[rows] = np.arange(len(rows))
    outside = place[(place < 0) | (place >= n_items)]
    if outside.size:
        msg = f"A row is at position {outside[0]}, but there are {n_items} items."
        raise DataError(msg)
    return place


def _is_baseline(table: _Table, rows: Ints) -> bool:
    return bool((table.share[rows] == 0.5).all() and (table.gap[rows] == 0).all())


def _difficulty(
    table: _Table, contenders: Mapping[str, Ints], options: ScoreOptions
) -> tuple[Difficulty | None, list[str]]:
    if options.items is not None:
        value = options.items.numbers("difficulty")
        if np.isnan(value).any():
            row = int(np.flatnonzero(np.isnan(value))[0]) + 1
            raise options.items.wrong("difficulty", row, None, "a number")
        return Difficulty.given(value), []
    try:
        return _estimated(table, contenders, order=options.order), []
    except NotIdentifiedError as error:
        return None, [f"The length control has no difficulties. {error}"]


def _estimated(table: _Table, contenders: Mapping[str, Ints], *, order: bool) -> Difficulty:
    """Estimate from the models whose lengths vary; an instruction none of them saw is at 0."""
    varying = [rows for rows in contenders.values() if len(set(table.gap[rows])) > 1]
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *varying])
    return estimate_difficulty(
        np.repeat(np.arange(len(varying)), [len(rows) for rows in varying]),
        table.instruction[rows],
        table.share[rows],
        np.concatenate([np.zeros(0), *(length_term(table.gap[rows]) for rows in varying)]),
        table.order[rows] if order and table.order is not None else None,
        n_instructions=int(table.instruction.max()) + 1,
    )


def _block(data: Annotations, names: Mapping[str, int]) -> Block:
    """Read the rows that hold the coefficients; raises `DataError` for one without an item."""
    data.need("x_len")
    idx = data.texts("idx")
    missing = next((name for name in idx if name not in names), None)
    if missing is not None:
        msg = f"{data.source!r} holds idx {missing!r}, for which there is no difficulty."
        raise DataError(msg)
    for name, (low, high) in _BOUNDS.items():
        values = data.numbers(name)
        wrong = np.flatnonzero(~((values >= low) & (values <= high)))
        if wrong.size:
            row = int(wrong[0])
            raise data.wrong(name, row + 1, float(values[row]), f"a number from {low} to {high}")
    return Block(
        share=data.numbers("pseudo_y"),
        length=data.numbers("x_len"),
        weight=data.numbers("weight"),
        instruction=np.array([names[name] for name in idx], dtype=np.int64),
    )


def _annotated(table: _Table, rows: Ints) -> Annotated:
    order = None if table.order is None else table.order[rows]
    return Annotated(table.share[rows], table.gap[rows], table.instruction[rows], order)


def _control(
    name: str,
    rows: Annotated,
    difficulty: Difficulty | None,
    block: Block | None,
    options: ScoreOptions,
) -> tuple[Control, list[str]]:
    few = [f"{name!r} has {len(rows.share)} rows: under {FEW_ROWS} a length control is a guess."]
    warnings = few if len(rows.share) < FEW_ROWS else []
    try:
        controlled = length_controlled(rows, difficulty, block, order=options.order)
    except NotIdentifiedError as error:
        return NONE, [*warnings, f"{name!r} has no length-controlled win rate. {error}"]
    control = Control(
        controlled.win_rate, controlled.standard_error, controlled.compat_standard_error
    )
    return control, warnings


def _on_quantity(options: ScoreOptions) -> list[str]:
    """Name the quantity where it is not that of AlpacaEval 2.

    The distances are those of the 16 published models without either file.
    """
    given = {
        "published difficulties": options.items,
        "rows of gamed baselines": options.regularisation,
    }
    missing = [name for name, value in given.items() if value is None]
    if not missing:
        return []
    apart = 3 if missing == ["rows of gamed baselines"] else 9
    return [
        "'lc_win_rate' is the win rate at equal length by a fit to this file without "
        f"{' and '.join(missing)}. AlpacaEval 2's, by the same name, rests on both, and lay up to "
        f"{apart} points from it on 16 published models: compare models within this file, not "
        "with published figures."
    ]


def _on_missing(data: Annotations, table: _Table, options: ScoreOptions) -> list[str]:
    if options.items is None or not (table.instruction < 0).any():
        return []
    rows = np.flatnonzero(table.instruction < 0)
    first = data.texts("idx")[rows[0]]
    return [
        f"{len(rows)} rows are of instructions that {options.items.source!r} does not hold (the "
        f"first: idx {first!r}); the length control leaves them out."
    ]


def _on_order(table: _Table, difficulty: Difficulty | None) -> list[str]:
    """Warn where difficulties differ by the order in which their responses were shown."""
    if difficulty is None or table.order is None or not table.models:
        return []
    rows = np.concatenate([*table.models.values()])
    first = np.bincount(table.instruction[rows], table.order[rows] > 0, len(difficulty.value))
    times = np.bincount(table.instruction[rows], minlength=len(difficulty.value))
    sides = [difficulty.value[(times > 0) & (first == n)] for n in (times, 0)]
    if min(map(len, sides)) < 2:
        return []
    means = [float(side.mean()) for side in sides]
    error = math.sqrt(sum(float(side.var(ddof=1)) / len(side) for side in sides))
    if abs(means[0] - means[1]) <= ABSORBED_T * error:
        return []
    return [
        f"The difficulties hold part of the effect of order: their mean is {means[0]:.2f} where "
        f"the model was shown first and {means[1]:.2f} where second "
        f"(t = {(means[0] - means[1]) / error:.1f})."
    ]
