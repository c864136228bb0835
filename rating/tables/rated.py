"""Votes rated: all together, or apart by the values of a column."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import rating
from rating import RateOptions, Report
from rating.errors import ConvergenceError, NotIdentifiedError
from rating.tables.counts import read_groups, read_votes
from rating.tables.reading import Reading

Progress = Callable[[int, int], None]
"""Called with the groups rated so far and the groups in all."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Ratings of votes apart by the values of a column.

    Attributes
    ----------
    reports : mapping of str to Report
    not_rated : mapping of str to str
        Why the votes of a group identify no rating.
    """

    reports: Mapping[str, Report]
    not_rated: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; ``not_rated`` is there only if some group is not."""
        plain: dict[str, Any] = {
            "groups": {value: report.to_dict() for value, report in self.reports.items()}
        }
        return plain | ({"not_rated": dict(self.not_rated)} if self.not_rated else {})


def rate_source(
    source: object, options: RateOptions, progress: Progress | None = None
) -> Report | Groups:
    """Rate votes.

    Parameters
    ----------
    source : path, table or LoggedColumns
        As `rating.tables.counts.read_votes` takes it.

    Raises
    ------
    DataError
        If the votes cannot be read, or the options do not fit them.
    NotIdentifiedError
        If the votes identify no rating.
    """
    if options.by is not None:
        return _rate_groups(source, options, progress)
    return rating.rate(read_votes(source, Reading.of(options)), options)


def _rate_groups(source: object, options: RateOptions, progress: Progress | None) -> Groups:
    groups = read_groups(source, Reading.of(options))
    reports: dict[str, Report] = {}
    not_rated: dict[str, str] = {}
    for done, (value, votes) in enumerate(groups.items()):
        if progress is not None:
            progress(done, len(groups))
        try:
            reports[value] = rating.rate(votes, options)
        except (NotIdentifiedError, ConvergenceError) as error:
            not_rated[value] = str(error)
    if not reports:
        value, why = next(iter(not_rated.items()), (str(options.by), "There are no votes."))
        msg = f"No group of {options.by!r} can be rated; of {value!r}: {why}"
        raise NotIdentifiedError(msg)
    return Groups(reports, not_rated)
