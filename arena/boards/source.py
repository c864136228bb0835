"""The votes of an arena's log, for what rates and studies votes of any source."""

from arena.domain.vote import DEFAULT
from arena.store import log
from arena.store.engine import reading_existing
from rating.tables.sources import LoggedColumns


def votes_of(url: str) -> LoggedColumns:
    """Read the votes of the log in a database; the default policy says which of them count.

    Raises
    ------
    StoreError
        If the database cannot be read.
    """
    with reading_existing(url) as session:
        return log.columns(session, DEFAULT, url)
