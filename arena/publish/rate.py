"""Ratings of the votes in a file or a database, as other tools read them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import rating
from arena import __version__
from arena.domain.policy import DEFAULT
from rating import Provenance, RateOptions, Report
from rating.errors import ConvergenceError, DataError, NotIdentifiedError
from rating.tables import orders
from rating.tables.counts import Votes, comparisons, logged_votes, read_groups, read_votes
from rating.tables.reading import Reading

Told = Callable[[int, int], None]
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


def rate_source(source: str, options: RateOptions, told: Told | None = None) -> Report | Groups:
    """Rate the votes of a file or a database.

    Parameters
    ----------
    source : str
        A file that `rating.tables.counts.read_votes` reads, or the URL of a database, whose
        votes the default policy counts.

    Raises
    ------
    DataError
        If the votes cannot be read, or the options do not fit them.
    StoreError
        If the database cannot be read.
    NotIdentifiedError
        If the votes identify no rating.
    """
    if options.by is not None:
        return _rate_groups(source, options, told)
    return _rated(read_source(source, options), options)


def read_source(source: str, options: RateOptions) -> Votes:
    """Read and count the votes of a file or a database.

    Raises
    ------
    DataError
        If the votes cannot be read, or none counts.
    StoreError
        If the database cannot be read.
    """
    if "://" in source:
        return _read_log(source, options)
    return read_votes(source, Reading.of(options))


def _read_log(url: str, options: RateOptions) -> Votes:
    from arena.store import log  # SQLAlchemy takes a second to import, and files do without
    from arena.store.existing import reading_existing

    if options.columns:
        role, name = options.columns[0]
        msg = f"The log has its own columns, and {role}={name} names another: drop --column."
        raise DataError(msg)
    with reading_existing(url) as session:
        votes = logged_votes(log.columns(session, DEFAULT), Reading.of(options))
    if not votes.report.used:
        dropped = ", ".join(f"{n} {why}" for why, n in votes.report.dropped.items())
        msg = f"No votes to count in {url!r}: {votes.report.read} read; left out: {dropped}."
        raise DataError(msg if dropped else f"There are no votes in {url!r} yet.")
    return votes


def _rated(votes: Votes, options: RateOptions) -> Report:
    data = comparisons(votes)
    source = Provenance(
        version=__version__,
        data_hash=votes.data_hash,
        self_battles=votes.report.self_battles,
        dropped=votes.report.dropped,
        style_sd=_style_sd(votes),
    )
    report = rating.rate(data, options, source)
    n_orders = votes.report.dropped.get(orders.IN_BOTH, 0)
    warnings = [orders.warning(n_orders)] if n_orders else []
    if votes.unprompted:
        warnings.append(
            f"{votes.unprompted:,} votes name no prompt, so prompts are not used: leave these "
            "votes out to let the intervals allow for prompts."
        )
    return replace(report, warnings=(*warnings, *report.warnings))


def _style_sd(votes: Votes) -> dict[str, float]:
    if votes.feature_scale is None:
        return {}
    return dict(zip(votes.feature_names, votes.feature_scale.tolist(), strict=True))


def _rate_groups(source: str, options: RateOptions, told: Told | None) -> Groups:
    if "://" in source:
        msg = (
            f"The log holds no column {options.by!r} to part the votes by: export the votes, add "
            "the column, and rate the file."
        )
        raise DataError(msg)
    found = read_groups(source, Reading.of(options))
    reports: dict[str, Report] = {}
    not_rated: dict[str, str] = {}
    for done, (value, votes) in enumerate(found.items()):
        if told is not None:
            told(done, len(found))
        try:
            reports[value] = _rated(votes, options)
        except (NotIdentifiedError, ConvergenceError) as error:
            not_rated[value] = str(error)
    if not reports:
        value, why = next(iter(not_rated.items()), (str(options.by), "There are no votes."))
        msg = f"No group of {options.by!r} can be rated; of {value!r}: {why}"
        raise NotIdentifiedError(msg)
    return Groups(reports, not_rated)
