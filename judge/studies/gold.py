"""Votes on pairs of which one answer is right: who names it, and who prefers the wrong one."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.estimates import Estimate, number_of, percent, percent_of, plural
from judge.studies.gold_voters import GoldVote, VoterAccuracy, accuracies, first_answers
from judge.tables.annotations import Annotations, read_annotations
from judge.tables.cases import OUTCOMES, RIGHT, Source
from rating.errors import DataError
from rating.outcome import Outcome
from rating.tables.columns import KNOWN
from rating.tables.vote_filter import LABELS
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.student import quantile

LEAST_VOTERS = 3
"""With fewer, intervals are for other pairs and not for other people."""
LEAST_FOR_GAPS = 30
"""Votes for a side, with lengths, from which the taste for length is estimated."""
TEXTS = ("response_a", "response_b")
THIRDS = ("wrong answer shorter", "middle third", "wrong answer longer")


@dataclass(frozen=True, slots=True)
class ByGap:
    """Votes for the wrong answer in a third of the votes, by ``log2(wrong / right)`` in length."""

    name: str
    gap_low: float
    gap_high: float
    wrong: Estimate


@dataclass(frozen=True, slots=True)
class GoldStudy:
    """What votes on gold pairs tell.

    Attributes
    ----------
    votes, voters, items : int
        First votes of voters on pairs with one right answer.
    right, undecided : int
        Those that name the right answer, and no side.
    repeated, level_pairs : int
        Votes left out: a voter's later ones on an item, and those on pairs that are equally good.
    wrong : Estimate
        Share of votes for the wrong answer.
    by_gap : tuple of ByGap
        The same in thirds by length; empty where there are too few votes with lengths.
    taste : Estimate or None
        By how many nats the log-odds of preferring the wrong answer, among votes for a side, grow
        with each doubling of its length against the right one's; None where not estimated.
    accuracies : tuple of VoterAccuracy
    """

    votes: int
    voters: int
    items: int
    right: int
    undecided: int
    repeated: int
    level_pairs: int
    wrong: Estimate
    by_gap: tuple[ByGap, ...]
    taste: Estimate | None
    accuracies: tuple[VoterAccuracy, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what the votes tell, in words."""
        if not self.votes:
            return ("There is no vote on a pair of which one answer is right.",)
        parts = [
            f"{percent_of(self.wrong)} of {plural(self.votes, 'vote')} prefer the wrong answer, "
            f"{percent(self.right / self.votes)} the right one, "
            f"{percent(self.undecided / self.votes)} neither "
            f"({plural(self.voters, 'voter')}, {plural(self.items, 'item')})."
        ]
        if self.taste is not None:
            parts.append(
                "With each doubling of the wrong answer's length against the right one's, the "
                f"log-odds of preferring it grow by {number_of(self.taste)}."
            )
        if self.voters < LEAST_VOTERS:
            parts.append(
                f"With fewer than {LEAST_VOTERS} voters the intervals are for other pairs, not "
                "for other people."
            )
        return tuple(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: shares from 0 to 1, null where nothing can be said."""
        return asdict(self) | {"sentences": list(self.sentences)}


def study_gold(votes: Sequence[GoldVote], level: float = 0.95) -> GoldStudy:
    """Say how often the wrong answer is preferred, with intervals by voter and by item.

    A tie is not right, and prefers nothing. With the variances V of a share when its residuals
    are summed by voter, by item, and by both, its own is ``V_voter + max(0, V_item - V_both)``
    [1]_; the interval is of its log-odds, by Student's t of one less than the voters or items,
    whichever are fewer.

    References
    ----------
    .. [1] A. C. Cameron, J. B. Gelbach and D. L. Miller, "Robust inference with multiway
       clustering", Journal of Business and Economic Statistics 29(2), 2011, pp. 238-249.
    """
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    first = first_answers(votes)
    used = [vote for vote in first if vote.right in (Outcome.A, Outcome.B)]
    voter, item = (_numbers(names) for names in ([v.voter for v in used], [v.item for v in used]))
    right = np.array([vote.choice is vote.right for vote in used], dtype=bool)
    wrong = np.array([vote.choice is vote.right.swapped() for vote in used], dtype=bool)
    gaps = np.array([_gap(vote) for vote in used], dtype=np.float64)
    sized = np.isfinite(gaps)
    return GoldStudy(
        votes=len(used),
        voters=len(np.unique(voter)),
        items=len(np.unique(item)),
        right=int(right.sum()),
        undecided=int((~right & ~wrong).sum()),
        repeated=len(votes) - len(first),
        level_pairs=len(first) - len(used),
        wrong=clustered_share(wrong, voter, item, level),
        by_gap=_thirds(wrong, voter, item, gaps, level) if sized.sum() >= LEAST_FOR_GAPS else (),
        taste=_taste(wrong, voter, item, gaps, sized & (right | wrong), level),
        accuracies=accuracies(used, level),
    )


def clustered_share(hit: Bools, voter: Ints, item: Ints, level: float = 0.95) -> Estimate:
    """Estimate a share with an interval that allows for other voters and other items.

    Parameters
    ----------
    hit : ndarray of shape (n,), bool
    voter, item : ndarray of shape (n,), int64
        Numbers from 0.

    Returns
    -------
    Estimate
        Without an interval where there is one cluster. Where all are alike, the interval is that
        of Clopper and Pearson for as many draws as there are clusters.
    """
    n = len(hit)
    if not n:
        return Estimate(None, None, None, 0)
    share = float(hit.mean())
    clusters = _fewest(voter, item)
    if share in (0.0, 1.0):
        other = 1 - ((1 - level) / 2) ** (1 / clusters)
        return Estimate(share, max(0.0, share - other), min(1.0, share + other), n)
    if clusters < 2:
        return Estimate(share, None, None, n)
    variance = float(_two_way((hit - share)[:, None] / n, voter, item)[0, 0])
    reach = quantile(level, clusters - 1) * math.sqrt(variance) / (share * (1 - share))
    logit = math.log(share / (1 - share))
    low, high = scipy.special.expit([logit - reach, logit + reach])
    return Estimate(share, float(low), float(high), n)


def _two_way(scores: Floats, voter: Ints, item: Ints) -> Floats:
    """Sum the squares of scores, shape (n, k), by voter and by item: shape (k, k)."""
    _, both = np.unique(np.stack([voter, item]), axis=1, return_inverse=True)
    by_item = _squares(scores, item)
    if len(np.unique(voter)) < LEAST_VOTERS:
        return by_item
    by_voter, more = _squares(scores, voter), by_item - _squares(scores, both)
    values, vectors = np.linalg.eigh(more)
    return np.asarray(by_voter + (vectors * np.maximum(values, 0)) @ vectors.T)


def _squares(scores: Floats, cluster: Ints) -> Floats:
    _, place = np.unique(cluster, return_inverse=True)
    groups = int(place.max()) + 1
    summed = np.stack([np.bincount(place, column, groups) for column in scores.T], axis=1)
    return np.asarray(groups / max(groups - 1, 1) * (summed.T @ summed))


def _fewest(voter: Ints, item: Ints) -> int:
    """Count the voters or the items, whichever are fewer; few voters count as none."""
    voters, items = len(np.unique(voter)), len(np.unique(item))
    return items if voters < LEAST_VOTERS else min(voters, items)


def _thirds(
    wrong: Bools, voter: Ints, item: Ints, gaps: Floats, level: float
) -> tuple[ByGap, ...]:
    sized = np.flatnonzero(np.isfinite(gaps))
    edges = np.quantile(gaps[sized], [1 / 3, 2 / 3])
    third = np.searchsorted(edges, gaps[sized], side="left")
    parts = [(name, sized[third == number]) for number, name in enumerate(THIRDS)]
    return tuple(
        ByGap(
            name,
            float(gaps[rows].min()),
            float(gaps[rows].max()),
            clustered_share(wrong[rows], voter[rows], item[rows], level),
        )
        for name, rows in parts
        if len(rows)
    )


def _taste(
    wrong: Bools, voter: Ints, item: Ints, gaps: Floats, rows: Bools, level: float
) -> Estimate | None:
    """Fit a logit on the gap by Newton's steps, with its slope's interval."""
    n, y = int(rows.sum()), wrong[rows]
    if n < LEAST_FOR_GAPS or np.ptp(gaps[rows]) == 0 or y.all() or not y.any():
        return None
    x = np.column_stack([np.ones(n), gaps[rows]])
    beta = np.zeros(2)
    for _ in range(50):
        p = scipy.special.expit(x @ beta)
        information = (x * (p * (1 - p))[:, None]).T @ x
        if np.linalg.cond(information) > 1e12:  # separated: there is no largest likelihood
            return None
        step = np.linalg.solve(information, x.T @ (y - p))
        beta = beta + step
        if np.abs(step).max() < 1e-10:
            break
    else:
        return None
    bread = np.linalg.inv(information)
    scores = x * (y - p)[:, None]
    variance = bread @ _two_way(scores, voter[rows], item[rows]) @ bread
    clusters = _fewest(voter[rows], item[rows])
    if clusters < 2:
        return Estimate(float(beta[1]), None, None, n)
    reach = quantile(level, clusters - 1) * math.sqrt(float(variance[1, 1]))
    return Estimate(float(beta[1]), float(beta[1]) - reach, float(beta[1]) + reach, n)


def _gap(vote: GoldVote) -> float:
    """Give ``log2(wrong / right)`` of the answers' lengths; NaN where one is not known."""
    if not vote.length_a or not vote.length_b:
        return math.nan
    gap = math.log2(vote.length_b) - math.log2(vote.length_a)
    return gap if vote.right is Outcome.A else -gap


def _numbers(names: Sequence[str]) -> Ints:
    return np.unique(np.array(names, dtype=object), return_inverse=True)[1].astype(np.int64)


def read_gold_votes(source: Source) -> list[GoldVote]:
    """Read votes with a column ``gold``, which says what vote was right.

    Parameters
    ----------
    source : path or Files
        A vote a row: ``winner``, ``gold``, ``voter``, ``prompt_id`` or ``prompt``, and for
        lengths ``response_a`` and ``response_b``, where there are such.

    Raises
    ------
    DataError
        If a column is missing, or a value is no vote.
    """
    table = read_annotations(source, "votes")
    table.need(RIGHT[0])
    winner, voter, item = (known_column(table, role) for role in ("winner", "voter", "prompt"))
    voters, items, choices = table.texts(voter), table.texts(item), table.need(winner)
    with_lengths = table.has(*TEXTS)
    lengths = [[_length(x) for x in table.need(name)] for name in TEXTS] if with_lengths else None
    votes = []
    for row in range(table.n):
        right = OUTCOMES.get(table.right_side(RIGHT[0], row))
        if right is None or np.isnan(table.label(row, choices[row])):  # raises if it is no vote
            continue
        a, b = (lengths[0][row], lengths[1][row]) if lengths else (None, None)
        votes.append(GoldVote(voters[row], items[row], right, LABELS[str(choices[row])], a, b))
    return votes


def known_column(table: Annotations, role: str) -> str:
    """Name the first column that a role is known by; raises `DataError` if none is there."""
    column = next((name for name in KNOWN[role] if table.has(name)), role)
    table.need(column)
    return column


def _length(text: object) -> int | None:
    return len(text) if isinstance(text, str) else None
