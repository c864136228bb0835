"""Where commands take votes from: a file, or the log of an arena."""

from rating.tables.vote_reading import LoggedColumns


def votes_of(source: str) -> str | LoggedColumns:
    """Return the path of a file as it is, and for the URL of a database the votes of its log.

    The default policy says which of them count.

    Raises
    ------
    StoreError
        If the database cannot be read.
    """
    if "://" not in source:
        return source
    from arena.domain.vote import DEFAULT
    from arena.store import log  # SQLAlchemy takes a second to import, and files do without
    from arena.store.schema import reading_existing

    with reading_existing(source) as session:
        return log.columns(session, DEFAULT, source)
