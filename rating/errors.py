"""What can go wrong in a rating.

::

    RatingError
    ├── DataError            the votes themselves are unusable (also a ValueError)
    ├── NotIdentifiedError   the votes are fine, but leave some strengths without a finite value
    └── ConvergenceError     the maximum exists and was not reached
"""


class RatingError(Exception):
    """Any failure of this package."""


class DataError(RatingError, ValueError):
    """The input is malformed; the message quotes it and says what to do."""


class NotIdentifiedError(RatingError):
    """The votes do not determine the strengths.

    Attributes
    ----------
    groups : tuple of tuple of str
        The groups of models that can be rated among themselves; empty when
        there are no votes.
    """

    def __init__(self, message: str, groups: tuple[tuple[str, ...], ...]) -> None:
        super().__init__(message)
        self.groups = groups


class ConvergenceError(RatingError):
    """The iteration ended before the gradient vanished; no partial fit is returned."""
