"""Votes one by one: what is lost where they are counted in cells."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from rating.comparisons import Comparisons, Votes
from rating.counting import check_lengths, checked_codes
from rating.errors import DataError
from rating.likelihood import SCORE_A, TIE, A, B
from rating.outcome import of_sides
from rating.typing import Bools, Floats, Integers, Ints


@dataclass(frozen=True, slots=True, eq=False)
class VoteRows:
    """Votes between two models each.

    Attributes
    ----------
    models : tuple of str
        Names, sorted; ``a`` and ``b`` hold positions in them.
    a, b : ndarray of shape (n,), int
        Models on side A and side B; never equal.
    outcome : ndarray of shape (n,), int
        Position in ``tuple(Outcome)``.
    times : ndarray of shape (n,), int
        Votes that the row stands for.
    groups : mapping of str to ndarray of shape (n,), int64
        Codes by role: ``voter``, ``prompt``, ``by``, where known; and by column of text.
    names : mapping of str to tuple of str
        What the codes of a role stand for; empty for a row without a text.
    numbers : mapping of str to ndarray of shape (n,)
        By role: ``time``, in seconds since 1970, where every vote has one and the rows are in its
        order; ``trait``, 0 or 1; what was measured on either answer, such as ``cost_a``, NaN where
        it is not known; and ``score`` of side A, where votes are split between both sides.
    dropped : mapping of str to int
        Votes excluded, by reason.
    self_battles : int
        Votes excluded for being on a model and itself.
    """

    models: tuple[str, ...]
    a: Ints
    b: Ints
    outcome: Ints
    times: Ints
    groups: Mapping[str, Ints] = field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    self_battles: int = 0

    @classmethod
    def scored(
        cls, models: tuple[str, ...], a: Ints, b: Ints, score: Floats, voter: Ints | None = None
    ) -> Self:
        """Take one row per vote, with the score of side A: 1, 0, or 1/2 for a tie.

        Raises
        ------
        DataError
            For unequal columns, a code out of range, a model against itself, or another score.
        """
        groups = {} if voter is None else {"voter": voter}
        given = {"a": a, "b": b, "score": score, **groups}
        check_lengths({name: len(column) for name, column in given.items()})
        for name, codes in ({"a": a, "b": b} | groups).items():
            checked_codes(name, codes, None if name == "voter" else len(models))
        if (a == b).any():
            raise DataError(f"Model {a[a == b][0]} meets itself; leave such votes out.")
        if (bad := score[~np.isin(score, [0, 0.5, 1])]).size:
            raise DataError(f"Score {bad[0]} is no vote; use 1, 1/2 or 0 for side A.")
        once = np.ones(len(a), dtype=np.int64)
        return cls(models, a, b, once, once, groups).with_scores(score)

    @classmethod
    def of(cls, data: Comparisons, rng: np.random.Generator) -> Self:
        """Return counted votes one by one, in a random order: their own was not kept."""
        row = rng.permutation(np.repeat(np.arange(len(data.votes)), data.votes))
        (a, b), voter = data.pairs.astype(np.int64)[row].T, data.voter
        known = None if voter is None else voter[row].astype(np.int64)
        return cls.scored(data.models, a, b, data.score_a[row], known)

    def with_scores(self, score: Floats) -> Self:
        """Return the same battles with other votes, by the score of side A from 0 to 1."""
        numbers = {role: values for role, values in self.numbers.items() if role != "score"}
        if not np.isin(score, (0, 0.5, 1)).all():
            numbers["score"] = score
        outcome = np.select([score == 1, score == 0], [A, B], TIE)
        return replace(self, outcome=outcome, numbers=numbers)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.a)

    @property
    def n_votes(self) -> int:
        """Number of votes."""
        return int(self.times.sum())

    @property
    def score(self) -> Floats:
        """Score of side A in each row: either kind of tie is 1/2."""
        return np.asarray(self.numbers.get("score", SCORE_A[self.outcome]))

    @property
    def pairs(self) -> Ints:
        """Models on side A and side B, shape (n, 2)."""
        return np.column_stack([self.a, self.b])

    def of_answers(self, name: str) -> Floats:
        """Give what was measured on both answers, shape (n, 2); NaN where it is not known."""
        nothing = np.full(self.n, np.nan)
        return np.column_stack([self.numbers.get(column, nothing) for column in of_sides(name)])

    @property
    def voter(self) -> Ints:
        """Code of the voter of each row; raises `KeyError` where voters are not known."""
        return self.groups["voter"]

    def on(self, model: int) -> Bools:
        """Tell which rows are on a model."""
        return np.asarray((self.a == model) | (self.b == model))

    def taken(self, rows: Bools | Ints | slice) -> Self:
        """Return some of the rows; models and groups keep their numbers."""
        columns = {name: getattr(self, name)[rows] for name in ("a", "b", "outcome", "times")}
        return replace(
            self,
            **columns,
            groups={role: codes[rows] for role, codes in self.groups.items()},
            numbers={role: values[rows] for role, values in self.numbers.items()},
        )

    def shuffled(self, rng: np.random.Generator) -> Self:
        """Return the same votes in another order."""
        return self.taken(rng.permutation(self.n))

    def permuted(self, rng: np.random.Generator) -> Self:
        """Give each result to a battle and a side at random: nothing is left of the truth."""
        score = rng.permutation(self.score)
        return self.with_scores(np.where(rng.random(self.n) < 0.5, score, 1 - score))

    def apart(self) -> Self:
        """Return a row for every vote."""
        if (self.times == 1).all():
            return self
        rows = self.taken(np.repeat(np.arange(self.n), self.times))
        return replace(rows, times=np.ones(rows.n, dtype=np.int64))

    def comparisons(
        self,
        *,
        weight: Floats | None = None,
        voter: Integers | None = None,
        prompt: Integers | None = None,
    ) -> Comparisons:
        """Count the votes, as `Comparisons.from_codes` takes them.

        Parameters
        ----------
        weight : ndarray of shape (n,), optional
            Of one vote of each row.
        """
        return Comparisons.from_codes(
            self.models,
            self.a,
            self.b,
            self.outcome,
            votes=self.times,
            weight=None if weight is None else weight * self.times,
            weight_sq=None if weight is None else weight**2 * self.times,
            voter=voter,
            prompt=prompt,
        )

    def one_by_one(self) -> Comparisons:
        """Return the votes in their order, not counted in cells."""
        voter, prompt = self.groups.get("voter"), self.groups.get("prompt")
        weight = self.times.astype(np.float64)
        return Comparisons(
            models=self.models,
            pairs=self.pairs,
            outcome=self.outcome,
            votes=self.times,
            weight=weight,
            weight_sq=weight,
            voter=voter,
            n_voters=0 if voter is None else int(voter.max(initial=-1)) + 1,
            n_self=0,
            prompt=prompt,
            n_prompts=0 if prompt is None else int(prompt.max(initial=-1)) + 1,
        )

    def placed(self, names: tuple[str, ...], values: Floats) -> Floats:
        """Give each model its value, and 0 to a model that is not among the names."""
        place = {name: at for at, name in enumerate(self.models)}
        every = np.zeros(len(self.models))
        every[[place[name] for name in names]] = values
        return every

    def votes_by_group(self) -> dict[str, Votes]:
        """Split the votes by the role ``by``, as `rating.read_groups` reads them."""
        groups = {}
        for code, name in enumerate(self.names["by"]):
            own = self.taken(self.groups["by"] == code)
            if own.n:
                voter, prompt = own.groups.get("voter"), own.groups.get("prompt")
                groups[name] = Votes(own.comparisons(voter=voter, prompt=prompt))
        return groups
