"""The votes of an arena's log, for what rates and studies votes of any source."""

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

    With the labels of their prompts by the tagger that the policy names.

    Raises
    ------
    StoreError
        If the database cannot be read.
    """
    with reading_existing(url) as session:
        votes = log.columns(session, DEFAULT, url)
        known = labels.of_votes(session, DEFAULT.tagger, PARTS)
    parts = {facet: [known.get(b, {}).get(facet) for b in votes.battle] for facet in PARTS}
    return replace(votes, labels=parts)
