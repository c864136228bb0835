"""The length-controlled win rate as one logistic regression, with errors of the whole fit."""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its submodules load on first use

from judge.scoring.logistic import Difficulty, Fitted, Rows, fit_logistic
from rating.errors import DataError, NotIdentifiedError
from rating.leave_out import influence_variance
from rating.typing import Floats, Ints

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


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows of other models that hold the coefficients, without an intercept.

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
        Coefficients in nats; NaN for a term that was left out.
    n : int
        Rows of the model.
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

    rows: Rows
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
        msg = "The lengths differ by the same in every row: their effect cannot be told."
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
    problem = _problem(_checked(data, order=order), difficulty, block)
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


def _checked(data: Annotated, *, order: bool) -> Annotated:
    wrong = data.share[~((data.share >= 0) & (data.share <= 1))]
    if wrong.size:
        msg = f"A share is {wrong[0]}; shares of a win are from 0 to 1."
        raise DataError(msg)
    if order and data.order is None:
        msg = "The order term needs to know which response was shown first."
        raise DataError(msg)
    return data if order else replace(data, order=None)


def _require_both_lengths(length_gap: Floats) -> None:
    """Refuse to say what would be at equal length where all rows lie on one side of it."""
    if length_gap.min() <= 0 <= length_gap.max():
        return
    how = "shorter" if length_gap.min() > 0 else "longer"
    msg = (
        f"Every response is {how} than the baseline's: what would win at equal length cannot be "
        "told from these rows. Give --regularisation, or rows of both kinds."
    )
    raise NotIdentifiedError(msg)


def _problem(data: Annotated, difficulty: Difficulty | None, block: Block | None) -> _Problem:
    n = len(data.share)
    instruction = data.instruction
    flat = _columns(np.zeros(n), np.ones(n), instruction, difficulty)
    design = _columns(length_term(data.length_gap), np.ones(n), instruction, difficulty)
    sides: tuple[Floats, ...] = (flat,)
    if data.order is not None:
        design = np.column_stack([design, data.order])
        sides = tuple(np.column_stack([flat, np.full(n, side)]) for side in (0.5, -0.5))
    rows = Rows(design, data.share, np.ones(n))
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


def _with_block(rows: Rows, block: Block, difficulty: Difficulty | None) -> Rows:
    m = len(block.share)
    design = np.zeros((m, rows.design.shape[1]))
    columns = _columns(block.length, np.zeros(m), block.instruction, difficulty)
    design[:, : columns.shape[1]] = columns
    return Rows(
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
    pull = _pull(problem, fitted) + _pull_of_scale(problem, fitted)
    moved = np.asarray(drawn + pull @ np.linalg.solve(fitted.hessian, gradient))
    if problem.difficulty is None or not problem.difficulty.influence.size:
        return moved
    return moved + _through_difficulty(problem, problem.difficulty, fitted, gradient)


def _pull(problem: _Problem, fitted: Fitted) -> Floats:
    """Return the score of each instruction, shape (n_instructions, k)."""
    rows = problem.rows
    return _by_instruction(
        problem, rows.design * (rows.weight * (rows.share - fitted.probability))[:, None]
    )


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
