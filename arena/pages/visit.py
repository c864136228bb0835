"""What a page is asked with: who asks, from where, and what addresses may hold."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request

from arena.domain.people import Person, Role
from arena.domain.words import Language

READ = ["GET", "HEAD"]
PLACE = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Visit:
    """What a page takes from who asks for it.

    Attributes
    ----------
    origin : str
        Stands before the address of the picture for previews of links.
    votes : int
        Votes that the visitor has cast so far.
    person : Person or None
        Who asks, if the arena knows them.
    studies : bool
        Whether there is a study, which the head then leads to.
    """

    language: Language = Language.EN
    origin: str = ""
    votes: int = 0
    person: Person | None = None
    studies: bool = False

    @property
    def runs_it(self) -> bool:
        """Whether who asks runs the arena."""
        return self.person is not None and self.person.role is Role.ADMIN


ANYBODY = Visit()
"""Who asks for a page, where nothing is known of them."""


def utc_now() -> datetime:
    """Time now, in UTC."""
    return datetime.now(UTC)


def origin_of(request: Request) -> str:
    """Give scheme, host and port by which a visitor reaches the arena."""
    return str(request.base_url).rstrip("/")


def visit_to(request: Request, votes: int = 0, *, studies: bool = False) -> Visit:
    """Say what a page takes from who asks for it, and has voted so often."""
    return Visit(
        getattr(request.state, "language", Language.EN),
        origin_of(request),
        votes,
        getattr(request.state, "person", None),
        studies,
    )
