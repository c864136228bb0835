"""The votes of an arena's log, for what rates and studies votes of any source."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from arena.domain.vote import DEFAULT
from arena.store import labels, log
from arena.store.engine import reading_existing
from judge.labels.taggers import CATEGORIES
from rating.tables.sources import LoggedColumns

PARTS = ("category", "language", "intent", "hard", "instructions", *CATEGORIES, "turns")
"""Labels by which votes can be parted."""


def votes_of(url: str) -> LoggedColumns:
    """Read the votes of the log in a database; the default policy says which of them count.

    With the labels of their prompts by the tagger that the policy names, which are read once
    they are asked for: there are a dozen a vote.

    Raises
    ------
    StoreError
        If the database cannot be read.
    """
    with reading_existing(url) as session:
        votes = log.columns(session, DEFAULT, url)
    return replace(votes, labels=_Labels(url, votes.battle))


class _Labels(Mapping[str, list[str | None]]):
    """Labels of votes by facet, in the order of their battles."""

    def __init__(self, url: str, battles: Sequence[str]) -> None:
        self._url = url
        self._battles = battles
        self._read: dict[str, list[str | None]] = {}

    def __contains__(self, facet: object) -> bool:
        return facet in PARTS

    def __getitem__(self, facet: str) -> list[str | None]:
        if facet not in PARTS:
            raise KeyError(facet)
        if facet not in self._read:
            with reading_existing(self._url) as session:
                known = labels.of_votes(session, DEFAULT.tagger, [facet])
            self._read[facet] = [known.get(battle, {}).get(facet) for battle in self._battles]
        return self._read[facet]

    def __iter__(self) -> Iterator[str]:
        return iter(PARTS)

    def __len__(self) -> int:
        return len(PARTS)
