"""What the pages show of prompts of one kind: boards by label, as plain values."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from arena.domain.model import Kind
from rating.pooling.boards import PooledRating, Pooling
from rating.pooling.mix import MixBoard, Preference, RankReach
from rating.pooling.unseen import Unseen


@dataclass(frozen=True, slots=True)
class LabelCount:
    """How many counted votes are on prompts of a label, and their share of the labelled ones."""

    value: str
    votes: int
    share: float


@dataclass(frozen=True, slots=True)
class Effect:
    """By how many points a rating is higher than elsewhere, with its interval."""

    value: float
    lower: float
    upper: float

    def to_dict(self) -> dict[str, float | None]:
        """Return finite numbers, or None."""
        plain = asdict(self)
        return {name: x if math.isfinite(x) else None for name, x in plain.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRow(PooledRating):
    """One model on prompts of a label, by its id in the roster.

    Attributes
    ----------
    other_mixes : RankReach or None
        Its best and worst rank over mixes of the labels; None where that is not known.
    effect : Effect
        Its rating there less that on all other labels, weighed by their votes.
    corrected : Effect or None
        The same without the tagger's errors; None where these are not known well enough.
    """

    name: str
    organisation: str
    kind: Kind
    other_mixes: RankReach | None
    effect: Effect
    corrected: Effect | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        ends = self.other_mixes
        return super(LabelRow, self).to_dict() | {
            "other_mixes": ends and {"best": ends.best, "worst": ends.worst},
            "effect": self.effect.to_dict(),
            "corrected": self.corrected and self.corrected.to_dict(),
        }

    def to_flat(self) -> dict[str, Any]:
        """Return one value a column, for files of rows."""
        plain = self.to_dict()
        reach = plain.pop("other_mixes") or dict.fromkeys(("best", "worst"))
        plain |= {f"other_mixes_{end}": rank for end, rank in reach.items()}
        for name in ("effect", "corrected"):
            ends = plain[name] or dict.fromkeys(("value", "lower", "upper"))
            plain |= {name: ends["value"]}
            plain |= {f"{name}_{end}": ends[end] for end in ("lower", "upper")}
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelBoard:
    """The board of prompts of one label, pooled with those of the others.

    Attributes
    ----------
    facet, value : str
        The label: ``category`` and ``code``, for instance; of two ``category&language`` and
        ``code&fr``.
    votes, voters : int
        On prompts of this label; voters are 0 where they are not known.
    of : int
        Counted votes with a label of this facet.
    labelled : int
        Rows of the sample by which the tagger's errors are known.
    newcomers : tuple of str
        Names of models whose few votes do not connect them yet.
    unseen : Unseen or None
        What boards by this facet are worth on prompts they were not fitted to.
    """

    facet: str
    value: str
    policy: str
    version: str
    data_hash: str
    updated: datetime
    votes: int
    voters: int
    of: int
    method: str
    level: float
    anchor_mean: float
    rows: tuple[LabelRow, ...]
    newcomers: tuple[str, ...]
    warnings: tuple[str, ...]
    pooling: Pooling
    labelled: int
    unseen: Unseen | None

    @property
    def label(self) -> dict[str, str]:
        """Value of each label that all its prompts have."""
        return dict(zip(self.facet.split("&"), self.value.split("&"), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the ratings and how they were made, as plain values for JSON."""
        return {
            "label": self.label,
            "method": {
                "words": self.method,
                "level": self.level,
                "anchor_mean": self.anchor_mean,
                "policy": self.policy,
                "version": self.version,
                "data_hash": self.data_hash,
                "updated": self.updated.isoformat(),
            },
            "votes": {"used": self.votes, "voters": self.voters, "labelled": self.of},
            "ratings": [row.to_dict() for row in self.rows],
            "newcomers": list(self.newcomers),
            "pooling": self.pooling.to_dict(),
            "labelled_rows": self.labelled,
            "unseen": self.unseen and self.unseen.to_dict(),
            "warnings": list(self.warnings),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each model, each with how all were made."""
        beside = {
            "facet": self.facet,
            "value": self.value,
            "method": self.method,
            "policy": self.policy,
            "version": self.version,
            "data_hash": self.data_hash,
            "updated": self.updated.isoformat(),
        }
        return [row.to_flat() | beside for row in self.rows]


@dataclass(frozen=True, slots=True)
class MixView:
    """The board of one's own mix of categories, as a page shows it.

    Attributes
    ----------
    counts : tuple of LabelCount
        The categories that a mix can be of, the most frequent first.
    left_out : mapping of str to int
        Categories of which one has prompts and no vote is; these prompts do not count.
    names, organisations : mapping of str to str
        Of each model on the board.
    """

    policy: str
    version: str
    updated: datetime
    counts: tuple[LabelCount, ...]
    board: MixBoard
    left_out: Mapping[str, float]
    names: Mapping[str, str]
    organisations: Mapping[str, str]

    def preference(self, a: str, b: str) -> Preference | None:
        """Give how often a is preferred to b; None unless both are on the board."""
        for one in self.board.pairs:
            if (one.a, one.b) == (a, b):
                return one
            if (one.a, one.b) == (b, a):
                return Preference(a, b, 1 - one.preferred, 1 - one.upper, 1 - one.lower)
        return None

    @property
    def neighbours(self) -> tuple[Preference, ...]:
        """Each model against the next one below it."""
        order = [row.model for row in self.board.report.ratings]
        pairs = {(one.a, one.b): one for one in self.board.pairs}
        return tuple(pairs[pair] for pair in pairwise(order))

    @property
    def reach(self) -> Mapping[str, tuple[RankReach, ...]]:
        """The ranks of each model in other mixes, by kappa from the least."""
        ordered = sorted(self.board.envelope, key=lambda one: one.kappa)
        return {model: tuple(one for one in ordered if one.model == model) for model in self.names}

    def to_dict(self) -> dict[str, Any]:
        """Return what `arena mix` writes as JSON, with the policy and version of the votes."""
        beside = {"policy": self.policy, "version": self.version}
        return self.board.to_dict() | beside | {"left_out": dict(self.left_out)}


Labels = Mapping[str, tuple[LabelCount, ...]]
"""By facet, the labels of counted votes, the most frequent first."""
