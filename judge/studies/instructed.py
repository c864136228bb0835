"""Votes between an answer that follows an instruction and one that does not, and who notices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from judge.ifeval import Checked, Task, check
from judge.studies.estimates import Estimate, number_of, percent, percent_of, plural
from judge.studies.gold import (
    LEAST_VOTERS,
    TEXTS,
    ByGap,
    clustered_share,
    known_column,
    study_gold,
)
from judge.studies.gold_voters import GoldVote
from judge.tables.annotations import read_annotations
from judge.tables.cases import Source
from rating.outcome import Outcome
from rating.tables.vote_filter import LABELS


@dataclass(frozen=True, slots=True)
class ReadVote:
    """A vote with the texts that were voted on."""

    voter: str
    prompt: str
    response_a: str
    response_b: str
    choice: Outcome


@dataclass(frozen=True, slots=True)
class InstructedVote:
    """A vote on answers to a prompt with instructions.

    Attributes
    ----------
    vote : GoldVote
        Its ``right`` is the side that alone follows all of them; a tie where both or neither do.
    kinds : mapping of str to Outcome
        By the id of an instruction, the side that alone follows it.
    """

    vote: GoldVote
    kinds: Mapping[str, Outcome]


@dataclass(frozen=True, slots=True)
class ByKind:
    """Votes for the side that breaks an instruction, where the other follows it."""

    id: str
    violator: Estimate


@dataclass(frozen=True, slots=True)
class InstructedStudy:
    """What votes tell of whether voters notice that an instruction is broken.

    Attributes
    ----------
    votes, voters, prompts : int
        First votes of voters on a prompt where one answer follows all instructions and the other
        does not.
    follower, undecided : int
        Those for the answer that follows, and for no side.
    alike, unread : int
        Votes left out: both answers follow all, or neither; or it cannot be told.
    violator : Estimate
        Share of votes for the answer that breaks an instruction.
    by_gap : tuple of ByGap
        The same in thirds by ``log2`` of its length over the other's.
    taste : Estimate or None
        By how many nats the log-odds of preferring it grow with each doubling of its length.
    by_kind : tuple of ByKind
        Most votes first. Here one answer follows this instruction and the other breaks it,
        whatever else they do.
    """

    votes: int
    voters: int
    prompts: int
    follower: int
    undecided: int
    alike: int
    unread: int
    violator: Estimate
    by_gap: tuple[ByGap, ...]
    taste: Estimate | None
    by_kind: tuple[ByKind, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what the votes tell, in words."""
        if not self.votes:
            return (
                "No vote is between an answer that follows all instructions and one that not.",
            )
        parts = [
            f"Where one answer follows all instructions and the other does not, "
            f"{percent_of(self.violator)} of {plural(self.votes, 'vote')} prefer the one that "
            f"does not, {percent(self.follower / self.votes)} the one that does, "
            f"{percent(self.undecided / self.votes)} neither "
            f"({plural(self.voters, 'voter')}, {plural(self.prompts, 'prompt')})."
        ]
        if self.taste is not None:
            parts.append(
                "With each doubling of its length against the other's, the log-odds of preferring "
                f"the one that does not grow by {number_of(self.taste)}."
            )
        if self.voters < LEAST_VOTERS:
            parts.append(
                f"With fewer than {LEAST_VOTERS} voters the intervals are for other prompts, not "
                "for other people."
            )
        return tuple(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: shares from 0 to 1, null where nothing can be told."""
        return asdict(self) | {"sentences": list(self.sentences)}


def check_votes(
    votes: Iterable[ReadVote], tasks: Mapping[str, Task]
) -> tuple[list[InstructedVote], int]:
    """Check both answers of each vote, strictly; gives how many votes could not be read, too.

    Parameters
    ----------
    tasks : mapping of str to Task
        By prompt; votes on other prompts are passed over.
    """
    read, unread = [], 0
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
        read.append(InstructedVote(gold, _by_kind(a, b)))
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
) -> InstructedStudy:
    """Say how often the answer that breaks an instruction is preferred.

    Intervals allow for other voters and other prompts, as those of `study_gold`. A voter's first
    vote on a prompt counts.

    Raises
    ------
    DataError
        If ``level`` is not between 0 and 1.
    """
    first: dict[tuple[str, str], InstructedVote] = {}
    for one in votes:
        first.setdefault((one.vote.voter, one.vote.item), one)
    study = study_gold([one.vote for one in first.values()], level)
    return InstructedStudy(
        votes=study.votes,
        voters=study.voters,
        prompts=study.items,
        follower=study.right,
        undecided=study.undecided,
        alike=study.level_pairs,
        unread=unread,
        violator=study.wrong,
        by_gap=study.by_gap,
        taste=study.taste,
        by_kind=_kinds([*first.values()], level),
    )


def _kinds(votes: Sequence[InstructedVote], level: float) -> tuple[ByKind, ...]:
    ids = sorted({id for one in votes for id in one.kinds})
    kinds = [ByKind(id, _violator(id, votes, level)) for id in ids]
    return tuple(sorted(kinds, key=lambda kind: (-kind.violator.n, kind.id)))


def _violator(id: str, votes: Sequence[InstructedVote], level: float) -> Estimate:
    rows = [(one.vote, one.kinds[id]) for one in votes if id in one.kinds]
    hit = np.array([vote.choice is side.swapped() for vote, side in rows], dtype=bool)
    voter, item = (
        np.unique(names, return_inverse=True)[1]
        for names in ([v.voter for v, _ in rows], [v.item for v, _ in rows])
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
    winners, voters = (table.need(known_column(table, role)) for role in ("winner", "voter"))
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
