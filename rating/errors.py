"""What can be wrong with files, votes, verdicts and options.

::

    RatingError
    ├── DataError            the input is malformed (also a ValueError)
    │   └── LayoutError      a file of votes has none of the columns that are known
    ├── NotIdentifiedError   the input is fine, but does not determine what was asked
    └── ConvergenceError     the maximum exists and was not reached
"""


class RatingError(Exception):
    """Base class of the errors; the message is for users."""


class DataError(RatingError, ValueError):
    """The input is malformed; the message quotes it and states what to do."""


class LayoutError(DataError):
    """A file of votes has none of the columns that are known.

    Attributes
    ----------
    options, other : tuple of str
        Words of a command that name its columns and labels, such as ``--column`` and
        ``model_a=left``: a guess, to be checked. ``other`` where labels can be read in two ways.
    """

    def __init__(
        self, message: str, options: tuple[str, ...], other: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.options, self.other = options, other


class NotIdentifiedError(RatingError):
    """The votes do not determine the strengths, or the verdicts an estimate.

    Attributes
    ----------
    groups : tuple of tuple of str
        Of strengths: the groups of models that can be rated among themselves; empty when
        there are no votes.
    """

    def __init__(self, message: str, groups: tuple[tuple[str, ...], ...] = ()) -> None:
        super().__init__(message)
        self.groups = groups


class ConvergenceError(RatingError):
    """The iteration ended before the gradient vanished; no partial fit is returned."""
