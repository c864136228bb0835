"""Gold items: voters' accuracy on pairs with a known right answer.

`accuracies` estimates each voter's accuracy (`posterior`); `study_gold` how often the wrong answer
is preferred, also by its length. `study_instructed` does so for votes between an answer that
follows an instruction and one that does not.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy

from judge.ifeval import Checked, Task, check
from judge.studies.estimates import Estimate, number_of, percent, percent_of
from judge.tables.annotations import Annotations, read_annotations
from judge.tables.cases import OUTCOMES, RIGHT, Source
from rating.errors import DataError
from rating.leave_out import positive_part, quantile
from rating.outcome import Outcome
from rating.sentences import plural
from rating.tables.columns import KNOWN
from rating.tables.vote_filter import LABELS
from rating.typing import Bools, Floats, Ints

# Accuracy of voters


PRIOR = (8.0, 2.0)
"""Of a voter's accuracy, before any answer: Beta, as if ten had been seen and eight been right."""


@dataclass(frozen=True, slots=True)
class GoldVote:
    """A vote on a pair of which one answer is right.

    Attributes
    ----------
    item : str
        Names the prompt: answers to one prompt are not independent.
    right, choice : Outcome
        The vote that is right, and the one that was cast.
    length_a, length_b : int or None
        Characters of the answers.
    """

    voter: str
    item: str
    right: Outcome
    choice: Outcome
    length_a: int | None = None
    length_b: int | None = None


@dataclass(frozen=True, slots=True)
class VoterAccuracy:
    """How often a voter names what is right, with the interval of `posterior`."""

    voter: str
    right: int
    answered: int
    accuracy: float
    lower: float
    upper: float


def posterior(right: int, n: int, level: float = 0.95) -> Estimate:
    """Estimate how often a voter is right, from answers of which it is known.

    With the prior ``Beta(8, 2)`` the accuracy after ``r`` right of ``n`` has the distribution
    ``Beta(8 + r, 2 + n - r)``: its mean, and its equal-tailed interval. No value without an
    answer.

    Raises
    ------
    DataError
        If more are right than were answered.

    Examples
    --------
    >>> one = posterior(7, 10)
    >>> one.value, round(one.lower, 3), round(one.upper, 3)
    (0.75, 0.544, 0.909)
    """
    if not 0 <= right <= n:
        raise DataError(f"{right} right of {n} answered: give at most as many.")
    if not n:
        return Estimate(None, None, None, 0)
    a, b = PRIOR[0] + right, PRIOR[1] + n - right
    tails = scipy.special.betaincinv(a, b, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(a / (a + b), float(tails[0]), float(tails[1]), n)


def accuracies(votes: Iterable[GoldVote], level: float = 0.95) -> tuple[VoterAccuracy, ...]:
    """Estimate the accuracy of every voter, those with most answers first."""
    answered, right = Counter[str](), Counter[str]()
    for vote in _first_answers(votes):
        answered[vote.voter] += 1
        right[vote.voter] += vote.choice is vote.right
    made = []
    for voter, n in sorted(answered.items(), key=lambda one: (-one[1], one[0])):
        one = posterior(right[voter], n, level)
        assert one.value is not None
        assert one.lower is not None
        assert one.upper is not None
        made.append(VoterAccuracy(voter, right[voter], n, one.value, one.lower, one.upper))
    return tuple(made)


def _first_answers(votes: Iterable[GoldVote]) -> list[GoldVote]:
    """Keep each voter's first vote on an item: they know it afterwards."""
    firsts: dict[tuple[str, str], GoldVote] = {}
    for vote in votes:
        firsts.setdefault((vote.voter, vote.item), vote)
    return [*firsts.values()]


# Gold pairs


LEAST_VOTERS = 3
"""With fewer, intervals are for other pairs and not for other people."""
LEAST_FOR_GAPS = 30
"""Votes for a side, with lengths, from which the preference for length is estimated."""
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
        Votes excluded: a voter's later ones on an item, and those on pairs that are equally good.
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
        """Describe what the votes tell, in words."""
        if not self.votes:
            return ("There is no vote on a pair with one right answer.",)
        parts = [
            f"{percent_of(self.wrong)} of {plural(self.votes, 'vote')} prefer the wrong "
            f"answer, {percent(self.right / self.votes)} the right one, and "
            f"{percent(self.undecided / self.votes)} neither ({plural(self.voters, 'voter')}, "
            f"{plural(self.items, 'item')})."
        ]
        if self.taste is not None:
            parts.append(
                "Each doubling of the wrong answer's length relative to the right one's raises "
                f"the log-odds of preferring it by {number_of(self.taste)}."
            )
        if self.voters < LEAST_VOTERS:
            parts.append(
                f"With fewer than {LEAST_VOTERS} voters, the intervals generalise to other pairs, "
                "not to other people."
            )
        return tuple(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: shares from 0 to 1, null where nothing can be said."""
        return asdict(self) | {"sentences": list(self.sentences)}


def study_gold(votes: Sequence[GoldVote], level: float = 0.95) -> GoldStudy:
    """Describe how often the wrong answer is preferred, with intervals by voter and by item.

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
    first = _first_answers(votes)
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
    return by_voter + positive_part(more)


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
    """Read votes with a column ``gold``, which states what vote was right.

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
    winner, voter, item = (_known_column(table, role) for role in ("winner", "voter", "prompt"))
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


def _known_column(table: Annotations, role: str) -> str:
    """Name the first column that a role is known by; raises `DataError` if none is there."""
    column = next((name for name in KNOWN[role] if table.has(name)), role)
    table.need(column)
    return column


def _length(text: object) -> int | None:
    return len(text) if isinstance(text, str) else None


# Broken instructions


@dataclass(frozen=True, slots=True)
class ReadVote:
    """A vote with the texts that were voted on."""

    voter: str
    prompt: str
    response_a: str
    response_b: str
    choice: Outcome


InstructedVote = tuple[GoldVote, Mapping[str, Outcome]]
"""A vote on answers to a prompt with instructions, ``right`` the side that alone follows all of
them, a tie where both or neither do; and, by the id of an instruction, the side that alone follows
it."""


@dataclass(frozen=True, slots=True)
class _InstructedStudy:
    """What votes tell of whether voters notice that an instruction is broken.

    Attributes
    ----------
    gold : GoldStudy
        Of votes on prompts where one answer follows all instructions, the right one, and the other
        does not; lengths are of the latter over the other's.
    unread : int
        Votes excluded, of which it cannot be determined.
    by_kind : mapping of str to Estimate
        By the id of an instruction, the share of votes for the answer that breaks it where the
        other follows it, whatever else they do. Most votes first.
    """

    gold: GoldStudy
    unread: int
    by_kind: Mapping[str, Estimate]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Describe what the votes tell, in words."""
        gold = self.gold
        if not gold.votes:
            return (
                "No vote compares an answer that follows all instructions with one that does not.",
            )
        parts = [
            "When one answer follows all instructions and the other does not, "
            f"{percent_of(gold.wrong)} of {plural(gold.votes, 'vote')} prefer the one that "
            f"does not, {percent(gold.right / gold.votes)} the one that does, and "
            f"{percent(gold.undecided / gold.votes)} neither ({plural(gold.voters, 'voter')}, "
            f"{plural(gold.items, 'prompt')})."
        ]
        if gold.taste is not None:
            parts.append(
                "Each doubling of its relative length raises the log-odds of preferring the "
                f"answer that does not follow them by {number_of(gold.taste)}."
            )
        if gold.voters < LEAST_VOTERS:
            parts.append(
                f"With fewer than {LEAST_VOTERS} voters, the intervals generalise to other "
                "prompts, not to other people."
            )
        return tuple(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: shares from 0 to 1, null where nothing can be told."""
        gold = asdict(self.gold)
        return {
            "votes": gold["votes"],
            "voters": gold["voters"],
            "prompts": gold["items"],
            "follower": gold["right"],
            "undecided": gold["undecided"],
            "alike": gold["level_pairs"],
            "unread": self.unread,
            "violator": gold["wrong"],
            "by_gap": gold["by_gap"],
            "taste": gold["taste"],
            "by_kind": [{"id": id, "violator": asdict(one)} for id, one in self.by_kind.items()],
            "sentences": list(self.sentences),
        }


def check_votes(
    votes: Iterable[ReadVote], tasks: Mapping[str, Task]
) -> tuple[list[InstructedVote], int]:
    """Check both answers of each vote, strictly; gives how many votes could not be read, too.

    Parameters
    ----------
    tasks : mapping of str to Task
        By prompt; votes on other prompts are passed over.
    """
    read: list[InstructedVote] = []
    unread = 0
    for vote in votes:
        if (task := tasks.get(vote.prompt)) is None:
            continue
        a, b = check(task, vote.response_a), check(task, vote.response_b)
        right = _alone(a.all_strict, b.all_strict)
        if right is None:
            unread += 1
            continue
        lengths = (len(vote.response_a), len(vote.response_b))
        gold = GoldVote(vote.voter, vote.prompt, right, vote.choice, *lengths)
        read.append((gold, _by_kind(a, b)))
    return read, unread


def _by_kind(a: Checked, b: Checked) -> dict[str, Outcome]:
    sides = {id: _alone(x, y) for id, x, y in zip(a.ids, a.strict, b.strict, strict=True)}
    return {id: side for id, side in sides.items() if side in (Outcome.A, Outcome.B)}


def _alone(a: bool | None, b: bool | None) -> Outcome | None:
    """Name the side that alone follows; a tie where they are alike, None where it is unknown."""
    if a is None or b is None:
        return None
    return Outcome.TIE if a == b else Outcome.A if a else Outcome.B


def study_instructed(
    votes: Sequence[InstructedVote], unread: int = 0, level: float = 0.95
) -> _InstructedStudy:
    """Describe how often the answer that breaks an instruction is preferred.

    Intervals allow for other voters and other prompts, as those of `study_gold`. A voter's first
    vote on a prompt counts.

    Raises
    ------
    DataError
        If ``level`` is not between 0 and 1.
    """
    first: dict[tuple[str, str], InstructedVote] = {}
    for vote, kinds in votes:
        first.setdefault((vote.voter, vote.item), (vote, kinds))
    ids = sorted({id for _, kinds in first.values() for id in kinds})
    by_kind = {id: _violator(id, first.values(), level) for id in ids}
    most_first = sorted(by_kind.items(), key=lambda one: (-one[1].n, one[0]))
    gold = study_gold([vote for vote, _ in first.values()], level)
    return _InstructedStudy(gold, unread, dict(most_first))


def _violator(id: str, votes: Iterable[InstructedVote], level: float) -> Estimate:
    rows = [(vote, kinds[id]) for vote, kinds in votes if id in kinds]
    hit = np.array([vote.choice is side.swapped() for vote, side in rows], dtype=bool)
    voter, item = (
        _numbers(names) for names in zip(*((v.voter, v.item) for v, _ in rows), strict=True)
    )
    return clustered_share(hit, voter, item, level)


def read_votes_with_texts(source: Source) -> list[ReadVote]:
    """Read votes with both answers; a skip, and a row without one of the texts, is none.

    Parameters
    ----------
    source : path or Files
        A vote a row: ``winner``, ``voter``, ``prompt``, ``response_a``, ``response_b``.

    Raises
    ------
    DataError
        If a column is missing, or a value is no vote.
    """
    table = read_annotations(source, "votes")
    winners, voters = (table.need(_known_column(table, role)) for role in ("winner", "voter"))
    prompts, *texts = (table.need(name) for name in ("prompt", *TEXTS))
    votes = []
    for row in range(table.n):
        values = [voters[row], prompts[row], *(column[row] for column in texts)]
        if np.isnan(table.label(row, winners[row])) or not all(
            isinstance(value, str) for value in values[1:]
        ):
            continue
        voter, prompt, a, b = map(str, values)
        votes.append(ReadVote(voter, prompt, a, b, LABELS[str(winners[row])]))
    return votes
