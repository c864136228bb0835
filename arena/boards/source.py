"""The votes of an arena's log, for what rates and studies votes of any source."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from arena.domain.vote import DEFAULT, Policy
from arena.store import blocks, labels, log, remarks
from arena.store.engine import reading_existing
from judge.labels.refusals import REFUSAL
from judge.labels.taggers import CATEGORIES
from rating.sentences import Sentence
from rating.tables.log import LoggedVotes

T = TypeVar("T")

PARTS = ("category", "language", "intent", "hard", "instructions", *CATEGORIES, "turns", REFUSAL)
"""Labels by which votes can be parted."""
REMARKS = ("voter_intent", "reasons_a", "reasons_b")
"""What voters remarked, beside the labels: by the first votes can be parted, too."""


def votes_of(url: str, tagger: str | None = None, policy: Policy = DEFAULT) -> LoggedVotes:
    """Read the votes of the log in a database; a policy says which of them count.

    With the labels of their prompts by one tagger, and what was measured on the answers, which
    are read once they are asked for: there are a dozen a vote.

    Parameters
    ----------
    tagger : str, optional
        As `arena.store.labels.tagger_named` takes it; that of the policy if not given.

    Raises
    ------
    DataError
        If there are no labels by such a tagger, or several have the name.
    StoreError
        If the database cannot be read.
    """
    with reading_existing(url) as session:
        by = labels.tagger_named(session, tagger)
        votes = blocks.columns(session, policy, url)
    battles = votes.values("battle")

    def labels_of(name: str) -> Mapping[str, list[str | None]]:
        with reading_existing(url) as session:
            if name not in REMARKS:
                known = labels.of_votes(session, by, [name])
                return {name: [known.get(battle, {}).get(name) for battle in battles]}
            beside = remarks.of_battles(session)
        return {n: [beside.get(battle, {}).get(n) for battle in battles] for n in REMARKS}

    def figures_of(_: str) -> Mapping[str, list[float | None]]:
        with reading_existing(url) as session:
            return _in_columns(battles, log.figures(session, DEFAULT.tagger))

    return replace(
        votes,
        labels=_Beside((*PARTS, *REMARKS), labels_of),
        figures=_Beside(log.Figures._fields, figures_of),
    )


class _Beside(Mapping[str, list[T]]):
    """Columns beside votes, each read once it is asked for, perhaps with others."""

    def __init__(self, names: Sequence[str], read: Callable[[str], Mapping[str, list[T]]]) -> None:
        self._names = names
        self._reader = read
        self._read: dict[str, list[T]] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> list[T]:
        if name not in self:
            raise KeyError(name)
        if name not in self._read:
            self._read |= self._reader(name)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def of_newest(after: int, votes: int) -> tuple[Sentence, ...]:
    """Say that only the newest votes are counted, where the ones before were left unread."""
    if not after:
        return ()
    return (
        Sentence(
            "Only the newest %(n)s votes are counted here; the leaderboard counts all.", n=votes
        ),
    )


def with_figures(votes: LoggedVotes, figures: Mapping[str, log.Figures]) -> LoggedVotes:
    """Put beside each vote what was measured on the answers."""
    return replace(votes, figures=_in_columns(votes.values("battle"), figures))


def _in_columns(
    battles: Sequence[str], figures: Mapping[str, log.Figures]
) -> dict[str, list[float | None]]:
    names = log.Figures._fields
    nothing = log.Figures(*[None] * len(names))
    rows = [figures.get(battle, nothing) for battle in battles]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}
