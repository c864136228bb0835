"""Where commands take votes from: files, or the log of an arena."""

from typing import overload

from rating.errors import DataError
from rating.tables.files import Files
from rating.tables.sources import LoggedColumns


@overload
def votes_of(source: str) -> str | LoggedColumns: ...
@overload
def votes_of(source: str | Files) -> str | Files | LoggedColumns: ...
def votes_of(source: str | Files) -> str | Files | LoggedColumns:
    """Return files as they are, and for the URL of a database the votes of its log.

    The default policy says which of them count.

    Raises
    ------
    DataError
        If a database is not the only source, or less than the whole of it is asked for.
    StoreError
        If the database cannot be read.
    """
    words = source.paths if isinstance(source, Files) else (source,)
    url = next((str(word) for word in words if "://" in str(word)), None)
    if url is None:
        return source
    if isinstance(source, Files) and (source.paths[1:] or source.where or source.labels):
        msg = (
            f"The votes of the database {url!r} are read by themselves, and whole: export them "
            "(arena export votes --to votes.parquet), and read the file."
        )
        raise DataError(msg)
    from arena.domain.vote import DEFAULT
    from arena.store import log  # SQLAlchemy takes a second to import, and files do without
    from arena.store.engine import reading_existing

    with reading_existing(url) as session:
        return log.columns(session, DEFAULT, url)
