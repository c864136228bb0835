"""The votes of an arena's log, for what rates and studies votes of any source."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from arena.domain.vote import DEFAULT, Policy, Tagger
from arena.store import labels, log, remarks
from arena.store.engine import reading_existing
from judge.labels.refusals import REFUSAL
from judge.labels.taggers import CATEGORIES
from rating.sentences import Sentence
from rating.tables.sources import LoggedColumns

PARTS = ("category", "language", "intent", "hard", "instructions", *CATEGORIES, "turns", REFUSAL)
"""Labels by which votes can be parted."""
REMARKS = ("voter_intent", "reasons_a", "reasons_b")
"""What voters remarked, beside the labels: by the first votes can be parted, too."""


def votes_of(url: str, tagger: str | None = None, policy: Policy = DEFAULT) -> LoggedColumns:
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
        votes = log.columns(session, policy, url)
    return replace(
        votes, labels=_Labels(url, votes.battle, by), figures=_Figures(url, votes.battle)
    )


def of_newest(after: int, votes: int) -> tuple[Sentence, ...]:
    """Say that only the newest votes are counted, where the ones before were left unread."""
    if not after:
        return ()
    return (
        Sentence(
            "Only the newest %(n)s votes are counted here; the leaderboard counts all.", n=votes
        ),
    )


def with_figures(votes: LoggedColumns, figures: Mapping[str, log.Figures]) -> LoggedColumns:
    """Put beside each vote what was measured on the answers."""
    return replace(votes, figures=_in_columns(votes.battle, figures))


def _in_columns(
    battles: Sequence[str], figures: Mapping[str, log.Figures]
) -> dict[str, list[float | None]]:
    names = log.Figures._fields
    nothing = log.Figures(*[None] * len(names))
    rows = [figures.get(battle, nothing) for battle in battles]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


class _Figures(Mapping[str, list[float | None]]):
    """What was measured on the answers of votes, by column, in the order of their battles."""

    def __init__(self, url: str, battles: Sequence[str]) -> None:
        self._url = url
        self._battles = battles

    @cached_property
    def _read(self) -> dict[str, list[float | None]]:
        with reading_existing(self._url) as session:
            return _in_columns(self._battles, log.figures(session, DEFAULT.tagger))

    def __getitem__(self, name: str) -> list[float | None]:
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(log.Figures._fields)

    def __len__(self) -> int:
        return len(log.Figures._fields)


class _Labels(Mapping[str, list[str | None]]):
    """Labels of votes by one tagger, by facet, in the order of their battles."""

    def __init__(self, url: str, battles: Sequence[str], tagger: Tagger) -> None:
        self._url = url
        self._battles = battles
        self._tagger = tagger
        self._read: dict[str, list[str | None]] = {}

    def __contains__(self, facet: object) -> bool:
        return facet in PARTS or facet in REMARKS

    def __getitem__(self, facet: str) -> list[str | None]:
        if facet not in self:
            raise KeyError(facet)
        if facet in REMARKS and facet not in self._read:
            with reading_existing(self._url) as session:
                beside = remarks.of_battles(session)
            for name in REMARKS:
                self._read[name] = [beside.get(battle, {}).get(name) for battle in self._battles]
        elif facet not in self._read:
            with reading_existing(self._url) as session:
                known = labels.of_votes(session, self._tagger, [facet])
            self._read[facet] = [known.get(battle, {}).get(facet) for battle in self._battles]
        return self._read[facet]

    def __iter__(self) -> Iterator[str]:
        return iter((*PARTS, *REMARKS))

    def __len__(self) -> int:
        return len(PARTS) + len(REMARKS)
