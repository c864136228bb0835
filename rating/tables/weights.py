"""Weights of votes, by the probability of being drawn and by age; and style of two answers."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rating.errors import DataError
from rating.tables.columns import LOG2
from rating.typing import Bools, Floats

DAY_S = 86_400.0
SECONDS = (1e8, 1e10)
"""Numbers that are seconds since 1970, from 1973 to 2286; years, days and milliseconds are not."""


def sampling_weights(probability: Floats) -> Floats:
    """Weigh a vote by one over the probability with which its pair was drawn.

    The ratings then aim at pairs drawn alike, whatever the sampler preferred.

    Raises
    ------
    DataError
        If a probability is missing, or not above 0 and at most 1.
    """
    _refuse(
        probability, ~((probability > 0) & (probability <= 1)), "pair probability", "in (0, 1]"
    )
    return 1 / probability


def given_weights(weight: Floats, column: str) -> Floats:
    """Give the weights of a column; raises `DataError` if one is negative or not finite."""
    _refuse(weight, ~(np.isfinite(weight) & (weight >= 0)), f"weight in {column!r}", "0 or more")
    return weight


def decay(seconds: Floats, half_life_days: float, now: float) -> Floats:
    """Weigh a vote by its age: 1 now, and half for every half-life that has passed.

    Parameters
    ----------
    seconds : ndarray of float64
        When each vote was cast, in seconds since 1970 UTC.
    now : float
        The moment at which a vote weighs 1; later votes weigh more.

    Raises
    ------
    DataError
        If the half-life is not a positive number of days.

    Examples
    --------
    >>> decay(np.array([0.0, 86_400.0]), half_life_days=1, now=86_400.0).tolist()
    [0.5, 1.0]
    """
    if not (np.isfinite(half_life_days) and half_life_days > 0):
        msg = f"A half-life of {half_life_days} days cannot be used; give a positive number."
        raise DataError(msg)
    return np.exp2((seconds - now) / (DAY_S * half_life_days))


def inside(seconds: Floats, since: datetime | None, until: datetime | None) -> Bools:
    """Tell which votes were cast from ``since`` on and before ``until``."""
    low = -np.inf if since is None else utc_seconds(since)
    high = np.inf if until is None else utc_seconds(until)
    return (seconds >= low) & (seconds < high)


def utc_seconds(moment: datetime) -> float:
    """Give a moment in seconds since 1970; one without a zone is in UTC."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def parse_moment(text: str) -> float:
    """Read a moment: ISO 8601, in UTC unless it says otherwise, or seconds since 1970.

    Examples
    --------
    >>> parse_moment("1970-01-02T00:00:00Z"), parse_moment("1970-01-01 01:00:00+01:00")
    (86400.0, 0.0)
    >>> parse_moment("1690000000.5")
    1690000000.5
    """
    return _seconds(_moment(text))


def parse_moments(texts: Sequence[str]) -> Floats:
    """Read moments in seconds since 1970, as `parse_moment`; a blank one is NaN.

    Raises
    ------
    DataError
        If one cannot be read, or some say their zone and others do not.
    """
    read = [_moment(text) if text.strip() else np.nan for text in texts]
    dates = [(text, m) for text, m in zip(texts, read, strict=True) if isinstance(m, datetime)]
    bare = next((text for text, moment in dates if moment.tzinfo is None), None)
    zoned = next((text for text, moment in dates if moment.tzinfo is not None), None)
    if bare is not None and zoned is not None:
        msg = (
            f"Some times say their zone, such as {zoned!r}, and some do not, such as {bare!r}: "
            "write all of them like 2026-01-31T12:00:00Z."
        )
        raise DataError(msg)
    return np.array([_seconds(moment) for moment in read], dtype=np.float64)


def _seconds(moment: datetime | float) -> float:
    return utc_seconds(moment) if isinstance(moment, datetime) else moment


def _moment(text: str) -> datetime | float:
    try:
        if SECONDS[0] <= float(text) < SECONDS[1]:
            return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        msg = (
            f"Cannot read the moment {text!r}: write it like 2026-01-31T12:00:00Z, or in seconds "
            "since 1970."
        )
        raise DataError(msg) from error


def checked_seconds(seconds: Floats) -> Floats:
    """Give numbers of seconds since 1970; raises `DataError` if they count something else."""
    outside = (seconds < SECONDS[0]) | (seconds >= SECONDS[1])
    _refuse(seconds, outside, "time", "in seconds since 1970, or a date")
    return seconds


_CONSTANT = 1e-9
"""Differences of values, over the largest of them, that are the errors of arithmetic."""


def style_difference(a: Floats, b: Floats, column: str) -> Floats:
    """Compare a count on side A with side B: ``(a - b) / (a + b)``, and 0 where both are 0.

    As LMArena's style control does, from -1 to 1; or, for a column after `LOG2`, in doublings:
    ``log2(a / b)``, for what is always positive, such as a length.

    Raises
    ------
    DataError
        If a count is missing, negative or not finite; or 0, and doublings were asked for.

    Examples
    --------
    >>> style_difference(np.array([3.0, 0.0]), np.array([1.0, 0.0]), "lists").tolist()
    [0.5, 0.0]
    >>> style_difference(np.array([400.0, 50.0]), np.array([100.0, 50.0]), "log2:length").tolist()
    [2.0, 0.0]
    """
    doubled = column.startswith(LOG2)
    wanted = "above 0 to be doubled" if doubled else "0 or more"
    for side, values in (("a", a), ("b", b)):
        good = np.isfinite(values) & ((values > 0) if doubled else (values >= 0))
        _refuse(values, ~good, f"value in '{column.removeprefix(LOG2)}_{side}'", wanted)
    if doubled:
        return np.asarray(np.log2(a / b))
    both = a + b
    return np.divide(a - b, both, out=np.zeros_like(both), where=both > 0)


def given_difference(values: Floats, column: str) -> Floats:
    """Give differences from a column; raises `DataError` if one is not finite."""
    _refuse(values, ~np.isfinite(values), f"difference in {column!r}", "finite")
    return values


def standardised(columns: Sequence[Floats], names: Sequence[str]) -> tuple[Floats, Floats]:
    """Divide each style by its standard deviation, which is given too; 1 for doublings.

    The mean stays: taken out, it would come back as an advantage of side A.

    Returns
    -------
    (ndarray of shape (n, n_styles), ndarray of shape (n_styles,))

    Raises
    ------
    DataError
        If a style is the same for all votes.
    """
    features, scale = np.empty((len(columns[0]), len(columns))), np.ones(len(columns))
    for i, (name, values) in enumerate(zip(names, columns, strict=True)):
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        if not high - low > _CONSTANT * max(abs(low), abs(high)):
            # of equal differences, rounding leaves a standard deviation above 0
            msg = f"The style {name!r} is the same for all votes; leave it out."
            raise DataError(msg)
        if not name.startswith(LOG2):
            scale[i] = values.std()
        np.divide(values, scale[i], out=features[:, i])
    return features, scale


def _refuse(values: NDArray[Any], bad: Bools, what: str, wanted: str) -> None:
    if bad.any():
        msg = f"A {what} is {values[bad][0]}, in {int(bad.sum())} rows; it must be {wanted}."
        raise DataError(msg)
