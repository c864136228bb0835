"""A rated board as one value: the ratings, what they rest on, and how they were made."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any

from rating.options import RateOptions


@dataclass(frozen=True, slots=True)
class Provenance:
    """Source of the votes, as given by the caller.

    Attributes
    ----------
    version : str
        Of the program.
    data_hash : str
        Of the counted votes.
    style_sd : mapping of str to float
        Divisor of each style: its standard deviation, or 1.
    """

    version: str = ""
    data_hash: str = ""
    style_sd: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VotesUsed:
    """The votes behind the ratings; the last three are None when voters are not known."""

    used: int
    self_battles: int
    dropped: Mapping[str, int]
    voters: int | None
    effective_voters: float | None
    top_voter_share: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "used": self.used,
            "self": self.self_battles,
            "dropped": dict(self.dropped),
            "voters": self.voters,
            "effective_voters": self.effective_voters,
            "top_voter_share": self.top_voter_share,
        }


@dataclass(frozen=True, slots=True)
class DesignEffect:
    """Design effects: factors by which shared voters and prompts raise the variance of ratings.

    Attributes
    ----------
    voter : float or None
        Relative to independent votes; None if voters were not used.
    prompt : float or None
        Relative to votes that each have a prompt of their own.
    """

    voter: float | None
    prompt: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A parameter other than the ratings.

    Attributes
    ----------
    value, lower, upper : float
        Nats (style: as the features were scaled, see `Provenance`); nu and theta as they stand
        in their formulas, see `rating.likelihood`.
    se : float
        Nats: for nu and theta of their logarithm.
    """

    value: float
    se: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class ModelRating:
    """Rating of one model. Unknown values are NaN, unbounded ones infinite: null in JSON.

    Attributes
    ----------
    rating, se, quasi_se, lower, upper : float
        Points. With a reference, se, lower and upper are of the difference from it.
    strength : float
        Nats: summing to zero over the models that the average is of, or zero for the reference
        (grounded: absolute).
    rank : int
        1 for the highest rating; equal ratings share a rank.
    df, effective_voters : float
        Degrees of freedom of ``se`` (infinite: the normal distribution); effective voters behind
        the rating, NaN where voters were not used.
    rank_low, rank_high : int or None
        Simultaneous rank interval; None if no rank is excluded.
    votes : int
        On either side.
    """

    model: str
    rating: float
    strength: float
    se: float
    df: float
    effective_voters: float
    quasi_se: float
    lower: float
    upper: float
    rank: int
    rank_low: int | None
    rank_high: int | None
    votes: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: finite numbers, or None."""
        return _plain(self)


class Tabular(ABC):
    """A result that libraries of tables read: one of its ``rows`` is a row."""

    __slots__ = ()

    @property
    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Plain values by column."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as Arrow's stream, by which any library of tables takes them."""
        import rating  # the face: what makes tables stands above this module

        return rating.frame(self).__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return the rows as a ``pandas.DataFrame``; raises `DataError` without pandas."""
        import rating

        return rating.frame(self, "pandas")

    def to_arrow(self) -> Any:
        """Return the rows as a ``pyarrow.Table``; raises `DataError` without pyarrow."""
        import rating

        return rating.frame(self, "pyarrow")


@dataclass(frozen=True, slots=True)
class Report(Tabular):
    """A rated board.

    Attributes
    ----------
    options : RateOptions
        As they were used.
    ratings : tuple of ModelRating
        Highest first; equal ratings by name.
    log_loss : float
        Nats per vote.
    deviance : float or None
        Relative to the saturated model of ordered pairs; None with style.
    quasi_se_error : float or None
        Largest relative error of the quasi-standard errors over all pairs.
    warnings : tuple of str
        Limits, in sentences.
    """

    options: RateOptions
    provenance: Provenance
    votes: VotesUsed
    design_effect: DesignEffect
    log_loss: float
    deviance: float | None
    parameters: Mapping[str, Estimate]
    ratings: tuple[ModelRating, ...]
    quasi_se_error: float | None
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: finite numbers, or None."""
        return {
            "method": _method(self.options, self.provenance),
            "votes": self.votes.to_dict(),
            "design_effect": _plain(self.design_effect),
            "log_loss": self.log_loss,
            "deviance": self.deviance,
            "parameters": {name: _plain(parameter) for name, parameter in self.parameters.items()},
            "ratings": self.rows,
            "quasi_se_error": self.quasi_se_error,
            "warnings": list(self.warnings),
        }

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One of plain values per model, highest rating first."""
        return [row.to_dict() for row in self.ratings]

    def _repr_html_(self) -> str:
        """Return the ratings as a table, for notebooks."""
        head = ("model", "rating", f"{100 * self.options.level:g}% interval", "ranks", "votes")
        rows = (
            (
                row.model,
                f"{row.rating:.0f}",
                f"{_points(row.lower)} to {_points(row.upper)}",
                _ranks(row),
                f"{row.votes:,}",
            )
            for row in self.ratings
        )
        return as_html(head, rows, self.warnings)


def as_html(
    head: Iterable[str], rows: Iterable[Iterable[str]], notes: Iterable[str], title: str = ""
) -> str:
    """Write a table that needs no style of its own, and notes below it."""

    def cells(tag: str, texts: Iterable[str]) -> str:
        return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    caption, items = f"<caption>{escape(title)}</caption>" * bool(title), cells("li", notes)
    return (
        f"<table>{caption}<thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"
        f"<ul>{items}</ul>"
    )


def _points(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else "?"


def _ranks(row: ModelRating) -> str:
    known = row.rank_low is not None and row.rank_high is not None
    return f"{row.rank_low} to {row.rank_high}" if known else "none claimed"


def _method(options: RateOptions, source: Provenance) -> dict[str, Any]:
    plain = {f.name: getattr(options, f.name) for f in fields(options)}
    plain |= {"style": list(options.style), "columns": dict(options.columns)}
    for name in ("since", "until"):
        if plain[name] is not None:
            plain[name] = plain[name].isoformat()
    if options.anchor is not None:
        model, points = options.anchor
        plain |= {"anchor": {model: points}, "mean": None}
    return plain | {
        "style_sd": dict(source.style_sd),
        "version": source.version,
        "data_hash": source.data_hash,
    }


def _plain(row: Any) -> dict[str, Any]:
    values = {f.name: getattr(row, f.name) for f in fields(row)}
    return {
        name: None if isinstance(x, float) and not math.isfinite(x) else x
        for name, x in values.items()
    }
