"""What a board says of the models as entrants: who left, variants, whose models are voted on."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

import numpy as np

from arena.domain.board_view import BoardRow, ModelRecord, OrganisationShare
from arena.domain.model import Entrant, Release, Stage
from rating import (
    Comparisons,
    Inference,
    connectivity,
    gini,
    project_on_order,
    selection_inflation,
    standard_error_apart,
)
from rating.elo import POINTS_PER_NAT
from rating.sentences import Sentence
from rating.tables.log import SIDES, LoggedVotes, microseconds
from rating.typing import Bools, Floats, Ints

MOST_AGAINST_RETIRED = 0.5
"""Share of a model's votes against retired models beyond which the board says so."""


def on_retired(
    data: Comparisons, entrants: Mapping[str, Entrant], records: Sequence[ModelRecord]
) -> tuple[str, ...]:
    """Say which ratings rest on models that have left.

    Parameters
    ----------
    data : Comparisons
        All counted votes.
    """
    left = np.array([entrants.get(m, Entrant()).retired for m in data.models], dtype=bool)
    apart = _apart(data, left)
    names = {record.id: record.name for record in records}
    warnings = []
    if apart:
        warnings.append(
            Sentence(
                "Only votes on models that have retired connect %(names)s with the other models: "
                "none of them has met one of those.",
                names=_joined(apart, names),
            )
        )
    if mostly := [model for model in _mostly_against(data, left) if model not in apart]:
        warnings.append(
            Sentence(
                "Most votes on these models are against models that have retired: %(names)s.",
                names=_joined(mostly, names),
            )
        )
    return tuple(warnings)


def _apart(data: Comparisons, left: Bools) -> list[str]:
    """Name the models outside the largest group, of those that stay, but for retired ones."""
    if not left.any():
        return []
    stay = {model for model, gone in zip(data.models, left, strict=True) if not gone}
    met_one: Bools = np.asarray(left[data.pairs].any(axis=1))
    direct = data.subset(~met_one)
    groups = [group for group in connectivity(direct).connected if stay.issuperset(group)]
    largest, *others = groups or [()]
    joined = next((set(g) for g in connectivity(data).connected if {*largest} & {*g}), set())
    return sorted(model for group in others for model in group if model in joined)


def _mostly_against(data: Comparisons, left: Bools) -> list[str]:
    """Name the models that stay with more than `MOST_AGAINST_RETIRED` against retired ones."""
    votes = data.table(data.votes).sum(axis=-1)
    votes = votes + votes.T
    against, of = votes[:, left].sum(axis=1), votes.sum(axis=1)
    mostly = ~left & (against > MOST_AGAINST_RETIRED * of)
    return sorted(data.models[i] for i in np.flatnonzero(mostly))


def _joined(models: Iterable[str], names: Mapping[str, str]) -> str:
    return ", ".join(names.get(model, model) for model in models)


def stages_of(
    columns: LoggedVotes, entrants: Mapping[str, Entrant], models: Iterable[str], enough: int
) -> dict[str, Stage]:
    """Say how far each model has come; votes from before a pre-release was named are none."""
    votes: dict[str, int] = defaultdict(int)
    for side in map(columns.texts.__getitem__, SIDES):
        counts = np.bincount(side.codes[columns.counted] + 1, minlength=len(side.names) + 1)
        for name, n in zip(side.names, counts[1:].tolist(), strict=True):
            votes[name] += n
    for model, one in entrants.items():
        if one.released:
            votes[model] = votes_between(columns, model, one.released)
    return {model: entrants.get(model, Entrant()).stage(votes[model], enough) for model in models}


def votes_otherwise(columns: LoggedVotes, entrants: Mapping[str, Entrant]) -> dict[str, int]:
    """Count the votes on what answered otherwise under the same id, where there are any."""
    counts = {
        model: sum(votes_between(columns, model, *span) for span in one.otherwise)
        for model, one in entrants.items()
    }
    return {model: n for model, n in counts.items() if n}


def votes_between(
    columns: LoggedVotes, model: str, since: datetime, until: datetime | None = None
) -> int:
    """Count the votes on a model from one moment to before another, or to the last."""
    during = columns.counted & (columns.created >= microseconds(since))
    if until is not None:
        during &= columns.created < microseconds(until)
    return int((during & columns.on({model})).sum())


def on_otherwise(
    otherwise: Mapping[str, int], data: Comparisons, records: Sequence[ModelRecord]
) -> tuple[str, ...]:
    """Say whose ratings mix answers of what was changed under one id."""
    names = {record.id: record.name for record in records}
    votes = dict(zip(data.models, data.votes_per_model().tolist(), strict=True))
    return tuple(
        Sentence(
            "%(name)s was changed under the same id: %(n)s of the %(of)s votes on it are on what "
            "answered otherwise. Its rating mixes both; the changed model needs a new id.",
            name=names.get(model, model),
            n=n,
            of=votes.get(model, n),
        )
        for model, n in sorted(otherwise.items())
    )


@dataclass(frozen=True, slots=True)
class Families:
    """Variants of one producer that the votes are about, and what that does to their ratings.

    Attributes
    ----------
    tested : mapping of str to list of str
        Models with a counted vote, by the name of the family.
    """

    entrants: Mapping[str, Entrant]
    tested: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, entrants: Mapping[str, Entrant], data: Comparisons) -> Self:
        """Put the models that have votes into their families."""
        tested = defaultdict(list)
        for model, votes in zip(data.models, data.votes_per_model().tolist(), strict=True):
            family = entrants.get(model, Entrant()).family
            if family and votes:
                tested[family].append(model)
        return cls(entrants, tested)

    def marked(self, rows: Sequence[BoardRow], inference: Inference) -> tuple[BoardRow, ...]:
        """Say of each rated model which family it is of, and what that does to its rating."""
        marked = {row.model: row for row in rows}
        for family, tested in self.tested.items():
            named = [m for m in tested if self.entrants[m].release is Release.RELEASED]
            rated = [marked[model] for model in named if model in marked]
            if rated:
                marked |= {row.model: row for row in self._marks(family, rated, inference)}
        return tuple(marked[row.model] for row in rows)

    def _marks(
        self, family: str, rated: Sequence[BoardRow], inference: Inference
    ) -> Iterator[BoardRow]:
        n = len(self.tested[family])
        covariance = _covariance(inference, [row.model for row in rated])
        best = max(rated, key=lambda row: (row.stage is not Stage.RETIRED, row.rating))
        best_of = None
        if n > 1 and np.isfinite(covariance).all():
            taken = selection_inflation(standard_error_apart(covariance), n)
            best_of = best.rating - POINTS_PER_NAT * taken
        declared = self._declared(rated, covariance)
        for row in rated:
            yield replace(
                row,
                family=family,
                variants=n,
                best_of=best_of if row is best else None,
                declared=declared.get(row.model),
            )

    def _declared(self, rated: Sequence[BoardRow], covariance: Floats) -> dict[str, float]:
        """Put the variants that have a declared place into that order, in points."""
        places = [self.entrants[row.model].declared_order for row in rated]
        known = np.array([place is not None for place in places], dtype=bool)
        if known.sum() < 2 or not np.isfinite(covariance).all():
            return {}
        points = np.array([row.rating for row in rated])[known]
        order: Ints = np.array([place for place in places if place is not None])
        # Places from two files may be the same: they then stand as the votes have them.
        order = np.lexsort((-points, order)).argsort()
        moved = project_on_order(points / POINTS_PER_NAT, covariance[np.ix_(known, known)], order)
        names = [row.model for row, one in zip(rated, known, strict=True) if one]
        return dict(zip(names, (moved * POINTS_PER_NAT).tolist(), strict=True))


def _covariance(inference: Inference, models: Sequence[str]) -> Floats:
    """Give the covariance of some ratings: of two, from the variances of both and of the gap."""
    index = {model: i for i, model in enumerate(inference.fit.models)}
    k, some = inference.fit.n_models, [index[model] for model in models]
    ratings = np.eye(k, len(inference.fit.x))[some]
    ratings[:, :k] -= inference.founded / inference.founded.sum()
    first, second = np.triu_indices(len(some), k=1)
    each = inference.of(ratings).variance
    covariance = np.diag(each)
    gaps = inference.of(ratings[first] - ratings[second]).variance
    covariance[first, second] = (each[first] + each[second] - gaps) / 2
    covariance[second, first] = covariance[first, second]
    return covariance


def shares_of(data: Comparisons, records: Sequence[ModelRecord]) -> tuple[OrganisationShare, ...]:
    """Count whose models the votes are about, largest first; none without votes."""
    known = {record.id: record for record in records}
    votes: dict[str, list[int]] = defaultdict(list)
    for model, n in zip(data.models, data.votes_per_model().tolist(), strict=True):
        if n and model in known:
            votes[known[model].organisation or known[model].name].append(n)
    total = sum(map(sum, votes.values()))
    shares = [
        OrganisationShare(organisation=name, models=len(n), votes=sum(n), share=sum(n) / total)
        for name, n in votes.items()
    ]
    return tuple(sorted(shares, key=lambda share: (-share.votes, share.organisation)))


def gini_of(shares: Sequence[OrganisationShare]) -> float | None:
    """Say how unequal they are; None without two organisations."""
    if len(shares) < 2:
        return None
    return gini(np.array([share.votes for share in shares], dtype=np.float64))
