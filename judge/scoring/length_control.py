"""Length-controlled win rates of AlpacaEval, with standard errors of the whole fit.

`length_controlled` fits one model by a single logistic regression; `length_controls` does so for
every model of a file of annotations.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import scipy

from judge.scoring.benchmarks import wins
from judge.scoring.logistic import Difficulty, Fitted, estimate_difficulty, fit_logistic
from judge.tables.annotations import Annotations, groups
from rating.errors import DataError, NotIdentifiedError
from rating.leave_out import influence_variance
from rating.likelihood import Logistic
from rating.typing import Floats, Ints

# Regression


LENGTH, DIFFICULTY = 0, 2
"""Columns of the design, the second if there are difficulties; between them the intercept."""


@dataclass(frozen=True, slots=True, eq=False)
class Annotated:
    """Judgements of one model against a baseline, by a judge or by people.

    Attributes
    ----------
    share : ndarray of shape (n,)
        Won by the model: 0 loss, 1/2 tie, 1 win, and anything between.
    length_gap : ndarray of shape (n,)
        Length of the baseline's response minus that of the model's.
    instruction : ndarray of shape (n,), int64
        Positions from 0 in the difficulties; rows of one instruction hang together.
    order : ndarray of shape (n,) or None
        1/2 where the model was shown first, -1/2 where second; None where not known.
    """

    share: Floats
    length_gap: Floats
    instruction: Ints
    order: Floats | None = None

    def taken(self, rows: Ints) -> "Annotated":
        """Return some of the rows."""
        order = None if self.order is None else self.order[rows]
        return Annotated(self.share[rows], self.length_gap[rows], self.instruction[rows], order)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Logistic of other models that hold the coefficients, without an intercept.

    Attributes
    ----------
    share, length, weight : ndarray of shape (n,)
        ``length`` is the length term itself, between -1 and 1.
    instruction : ndarray of shape (n,), int64
    """

    share: Floats
    length: Floats
    weight: Floats
    instruction: Ints


@dataclass(frozen=True, slots=True)
class LengthControlled:
    """A win rate had both responses been of one length; rates and errors in per cent.

    Attributes
    ----------
    win_rate : float
        Mean probability of the model over the instructions, the length term at zero and the order
        half one way and half the other.
    standard_error : float
        Of the whole fit.
    compat_standard_error : float
        As upstream publishes it: the spread of the fitted probabilities over the root of n, as if
        the coefficients were known. Half of the truth or less.
    length, difficulty, intercept, order : float
        Coefficients in nats; NaN for a term that was excluded.
    n : int
        Logistic of the model.
    """

    win_rate: float
    standard_error: float
    compat_standard_error: float
    length: float
    difficulty: float
    intercept: float
    order: float
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """All rows, those of the model first, and what its win rate is a mean of."""

    rows: Logistic
    instruction: Ints
    own: int
    length_gap: Floats
    sides: tuple[Floats, ...]
    difficulty: Difficulty | None

    @property
    def n_instructions(self) -> int:
        """Instructions here or behind the difficulties."""
        known = 0 if self.difficulty is None else len(self.difficulty.value)
        return max(known, int(self.instruction.max()) + 1)


def length_term(length_gap: Floats) -> Floats:
    """Return ``tanh(gap / sd(gap))``, the gap not centred (``ddof=1``).

    Raises
    ------
    NotIdentifiedError
        If the gap is the same in every row.
    """
    if len(length_gap) < 2 or np.ptp(length_gap) <= 1e-9 * np.abs(length_gap).max():
        msg = "The lengths differ by the same in every row: their effect cannot be determined."
        raise NotIdentifiedError(msg)
    return np.asarray(np.tanh(length_gap / length_gap.std(ddof=1)))


def length_controlled(
    data: Annotated,
    difficulty: Difficulty | None = None,
    block: Block | None = None,
    *,
    order: bool = False,
) -> LengthControlled:
    """Estimate a length-controlled win rate.

    One logistic regression on the shares, by exact maximum likelihood::

        logit P(win on i) = length tanh(gap_i / sd) + intercept + difficulty d_i + order o_i

    The block's rows have no intercept and no order. The win rate is the mean of the probabilities
    with the length term at zero.

    Upstream penalises the coefficients (L1, its strength chosen by cross-validation), looks
    difficulties up by the row's position, and publishes the spread of the fitted probabilities as
    the standard error. Here there is no penalty, difficulties go by instruction, and the
    standard error is the delta method on a sandwich clustered by instruction: it holds the
    uncertainty of the coefficients, of ``sd``, of estimated difficulties and of the draw of
    instructions; given difficulties are taken as certain.

    Parameters
    ----------
    difficulty : Difficulty, optional
        None leaves the term out.
    block : Block, optional
        Upstream holds the fit by two gamed baselines at weight 0.1.
    order : bool
        Whether to add the order term: the win rate is then the mean of both orders.

    Raises
    ------
    DataError
        For shares outside of 0 to 1, or an order term without the orders.
    NotIdentifiedError
        If a term does not vary, wins and losses are separated, or no block holds the effect of
        length and every response is longer, or every one shorter, than the baseline's.

    References
    ----------
    .. [1] Y. Dubois et al., "Length-Controlled AlpacaEval: A Simple Way to Debias Automatic
       Evaluators", COLM 2024, section 3.
    """
    wrong = data.share[~((data.share >= 0) & (data.share <= 1))]
    if wrong.size:
        raise DataError(f"A share is {wrong[0]}; shares of a win are from 0 to 1.")
    if order and data.order is None:
        raise DataError("The order term needs to know which response was shown first.")
    problem = _problem((data if order else replace(data, order=None)), difficulty, block)
    if block is None:
        _require_both_lengths(data.length_gap)
    fitted = fit_logistic(problem.rows, _names(problem))
    probabilities = [scipy.special.expit(side @ fitted.coefficients) for side in problem.sides]
    probability = np.mean(probabilities, axis=0)
    influence = _influence(problem, fitted, probabilities)
    n_clusters = int((np.bincount(problem.instruction) > 0).sum())
    terms = dict(zip(_names(problem), fitted.coefficients.tolist(), strict=True))
    absent = {"difficulty": math.nan, "order": math.nan}
    return LengthControlled(
        win_rate=100 * float(probability.mean()),
        standard_error=100 * math.sqrt(influence_variance(influence, n_clusters)),
        compat_standard_error=100 * float(probability.std(ddof=1)) / math.sqrt(len(probability)),
        n=len(probability),
        **(absent | terms),
    )


def _require_both_lengths(length_gap: Floats) -> None:
    """Refuse to state what would be at equal length where all rows lie on one side of it."""
    if length_gap.min() <= 0 <= length_gap.max():
        return
    how = "shorter" if length_gap.min() > 0 else "longer"
    raise NotIdentifiedError(
        f"Every response is {how} than the baseline's: the win rate at equal length is not "
        "determined by these rows. Give --regularisation, or rows of both kinds."
    )


def _problem(data: Annotated, difficulty: Difficulty | None, block: Block | None) -> _Problem:
    n = len(data.share)
    instruction = data.instruction
    flat = _columns(np.zeros(n), np.ones(n), instruction, difficulty)
    design = _columns(length_term(data.length_gap), np.ones(n), instruction, difficulty)
    sides: tuple[Floats, ...] = (flat,)
    if data.order is not None:
        design = np.column_stack([design, data.order])
        sides = tuple(np.column_stack([flat, np.full(n, side)]) for side in (0.5, -0.5))
    rows = Logistic(design, data.share, np.ones(n))
    if block is not None:
        rows = _with_block(rows, block, difficulty)
        instruction = np.r_[instruction, block.instruction]
    return _Problem(rows, instruction, n, data.length_gap, sides, difficulty)


def _columns(
    length: Floats, intercept: Floats, instruction: Ints, difficulty: Difficulty | None
) -> Floats:
    columns = [length, intercept]
    if difficulty is not None:
        columns.append(difficulty.value[instruction])
    return np.column_stack(columns)


def _with_block(rows: Logistic, block: Block, difficulty: Difficulty | None) -> Logistic:
    m = len(block.share)
    design = np.zeros((m, rows.design.shape[1]))
    columns = _columns(block.length, np.zeros(m), block.instruction, difficulty)
    design[:, : columns.shape[1]] = columns
    return Logistic(
        np.vstack([rows.design, design]),
        np.r_[rows.share, block.share],
        np.r_[rows.weight, block.weight],
    )


def _names(problem: _Problem) -> list[str]:
    names = ["length", "intercept"]
    names += ["difficulty"] if problem.difficulty is not None else []
    return names + (["order"] if len(problem.sides) > 1 else [])


def _influence(problem: _Problem, fitted: Fitted, probabilities: list[Floats]) -> Floats:
    """Return how far each instruction moved the win rate, shape (n_instructions,)."""
    curves = [
        (side.T * (p * (1 - p))).mean(axis=1)
        for side, p in zip(problem.sides, probabilities, strict=True)
    ]
    gradient = np.mean(curves, axis=0)
    probability = np.mean(probabilities, axis=0)
    drawn = _by_instruction(problem, (probability - probability.mean())[:, None] / problem.own)[
        :, 0
    ]
    rows = problem.rows
    pull = _by_instruction(
        problem, rows.design * (rows.weight * (rows.share - fitted.probability))[:, None]
    ) + _pull_of_scale(problem, fitted)
    moved = np.asarray(drawn + pull @ np.linalg.solve(fitted.hessian, gradient))
    if problem.difficulty is None or not problem.difficulty.influence.size:
        return moved
    return moved + _through_difficulty(problem, problem.difficulty, fitted, gradient)


def _by_instruction(problem: _Problem, rows: Floats) -> Floats:
    at, size = problem.instruction[: len(rows)], problem.n_instructions
    return np.stack([np.bincount(at, column, size) for column in rows.T], axis=1)


def _pull_of_scale(problem: _Problem, fitted: Fitted) -> Floats:
    """Return what each instruction adds to the score through the spread of the lengths."""
    n, gap = problem.own, problem.length_gap
    spread = float(gap.std(ddof=1))
    design, probability = problem.rows.design[:n], fitted.probability[:n]
    moved = -(1 - design[:, LENGTH] ** 2) * gap / spread**2
    change = -design.T @ (probability * (1 - probability) * fitted.coefficients[LENGTH] * moved)
    change[LENGTH] += (problem.rows.share[:n] - probability) @ moved
    of_row = ((gap - gap.mean()) ** 2 - spread**2) / (2 * spread * n)
    return _by_instruction(problem, of_row[:, None] * change)


def _through_difficulty(
    problem: _Problem, difficulty: Difficulty, fitted: Fitted, gradient: Floats
) -> Floats:
    """Return what each instruction moves through the difficulties of all the others.

    The win rate moves with a row's difficulty in itself, as it does with the row's probability
    times the coefficient, and through the coefficients, whose score moves.
    """
    rows, probability, by = problem.rows, fitted.probability, fitted.coefficients[DIFFICULTY]
    slope = difficulty.slope[problem.instruction]
    score = (
        -(rows.design * (rows.weight * probability * (1 - probability) * by)[:, None]).T @ slope
    )
    score[DIFFICULTY] += (rows.weight * (rows.share - probability)) @ slope
    levels = [scipy.special.expit(side @ fitted.coefficients) for side in problem.sides]
    direct = by * np.mean([p * (1 - p) for p in levels], axis=0) @ slope[: problem.own]
    whole = direct / problem.own + np.linalg.solve(fitted.hessian, gradient) @ score
    return np.asarray(difficulty.influence @ whole)


# Files of annotations


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


_BOUNDS = {"pseudo_y": (0.0, 1.0), "x_len": (-1.0, 1.0), "weight": (0.0, math.inf)}
"""Of the columns of a regularisation block."""

_NO = math.nan
NONE = LengthControlled(_NO, _NO, _NO, _NO, _NO, _NO, _NO, 0)
BASELINE = replace(NONE, win_rate=50.0, standard_error=0.0, compat_standard_error=0.0)
"""The baseline against itself, by definition."""


def length_controls(
    data: Annotations, preference: Floats, options: ScoreOptions
) -> tuple[dict[str, LengthControlled], list[str]]:
    """Control every model for length.

    Returns
    -------
    dict of str to LengthControlled
        By model; one whose rows identify no fit has NaN, and a warning gives the reason.
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
    table, used = _table(data, preference, names, options)
    even = (table.share == 0.5) & (table.length_gap == 0)
    baselines = {name for name, rows in used.items() if even[rows].all()}
    contenders = {name: rows for name, rows in used.items() if name not in baselines}
    difficulty, warnings = _difficulty(table, contenders, options)
    warnings += _on_missing(data, table, options) + _on_order(table, used, difficulty)
    block = None if options.regularisation is None else _block(options.regularisation, names)
    controls = dict.fromkeys(models, NONE) | dict.fromkeys(baselines, BASELINE)
    for name, rows in contenders.items():
        controls[name], few = _control(name, table.taken(rows), difficulty, block, options)
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
) -> tuple[Annotated, dict[str, Ints]]:
    """Return all rows, and the usable ones of each model that has any.

    The instruction is -1 where the items do not hold it.
    """
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
    used = {name: rows for name, rows in models.items() if rows.size}
    return Annotated(share, gap, instruction, order), used


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
        raise DataError(f"A row is at position {outside[0]}, but there are {n_items} items.")
    return place


def _difficulty(
    table: Annotated, contenders: Mapping[str, Ints], options: ScoreOptions
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


def _estimated(table: Annotated, contenders: Mapping[str, Ints], *, order: bool) -> Difficulty:
    """Estimate from the models whose lengths vary; an instruction none of them saw is at 0."""
    varying = [rows for rows in contenders.values() if len(set(table.length_gap[rows])) > 1]
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *varying])
    return estimate_difficulty(
        np.repeat(np.arange(len(varying)), [len(rows) for rows in varying]),
        table.instruction[rows],
        table.share[rows],
        np.concatenate([np.zeros(0), *(length_term(table.length_gap[rows]) for rows in varying)]),
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


def _control(
    name: str,
    rows: Annotated,
    difficulty: Difficulty | None,
    block: Block | None,
    options: ScoreOptions,
) -> tuple[LengthControlled, list[str]]:
    few = [f"{name!r} has {len(rows.share)} rows: {FEW_ROWS} are needed for length control."]
    warnings = few if len(rows.share) < FEW_ROWS else []
    try:
        return length_controlled(rows, difficulty, block, order=options.order), warnings
    except NotIdentifiedError as error:
        return NONE, [*warnings, f"{name!r} has no length-controlled win rate. {error}"]


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
        "'lc_win_rate' is the win rate at equal length, fitted without "
        f"{' and '.join(missing)}. AlpacaEval 2's uses both, and differed by up to {apart} "
        "points on 16 published models: compare models within this file only."
    ]


def _on_missing(data: Annotations, table: Annotated, options: ScoreOptions) -> list[str]:
    if options.items is None or not (table.instruction < 0).any():
        return []
    rows = np.flatnonzero(table.instruction < 0)
    first = data.texts("idx")[rows[0]]
    return [
        f"{len(rows)} rows have instructions that {options.items.source!r} lacks (the first: "
        f"idx {first!r}): excluded."
    ]


def _on_order(
    table: Annotated, used: Mapping[str, Ints], difficulty: Difficulty | None
) -> list[str]:
    """Warn where difficulties differ by the order in which their responses were shown."""
    if difficulty is None or table.order is None or not used:
        return []
    rows = np.concatenate([*used.values()])
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
        f"The difficulties include part of the effect of order: their mean is {means[0]:.2f} "
        f"with the model first and {means[1]:.2f} with it second (t = "
        f"{(means[0] - means[1]) / error:.1f})."
    ]
