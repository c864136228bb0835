"""What endpoints have taught: the parameters that they refuse, each in their own words."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.dialects import postgresql  # SQLite spells its conflicts alike
from sqlmodel import Session, col

from arena.store.tables import EndpointLessonRow

VALID_FOR = timedelta(days=30)
"""For so long a lesson holds: endpoints change, and what is omitted changes the answers."""


def every(session: Session, now: datetime) -> Mapping[str, Mapping[str, str]]:
    """Return what is known of every endpoint: its sentence by parameter, by its name."""
    row = EndpointLessonRow
    columns = (col(row.endpoint), col(row.name), col(row.sentence))
    lessons: dict[str, dict[str, str]] = defaultdict(dict)
    for endpoint, name, sentence in session.connection().execute(
        select(*columns).where(col(row.created) > now - VALID_FOR)
    ):
        lessons[endpoint][name] = sentence
    return lessons


def of(session: Session, endpoint: str, now: datetime) -> Mapping[str, str]:
    """Return what is known of an endpoint."""
    return every(session, now).get(endpoint, {})


def keep(session: Session, endpoint: str, name: str, sentence: str, now: datetime) -> None:
    """Write a lesson down, in the place of what was learnt of the same before."""
    values = {"endpoint": endpoint, "name": name, "sentence": sentence, "created": now}
    new = postgresql.insert(EndpointLessonRow).values(values)
    again = {column: new.excluded[column] for column in ("sentence", "created")}
    session.connection().execute(
        new.on_conflict_do_update(index_elements=["endpoint", "name"], set_=again)
    )
