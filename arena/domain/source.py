"""Applications whose votes come in: who sends what, and how the record marks it.

The record marks a battle of a source by the set that its prompt is of, and its votes by the kind
of their voters; a vote binds both.
"""

import hmac
import re
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

from arena.domain.gold import OWNER
from arena.domain.model import BESIDE, Kind, Model
from arena.domain.vote import Choice, Voter, VoterKind

SET = "source:"
"""How the sets of prompts of a source begin; its name follows."""
NAME = re.compile("[a-z0-9][a-z0-9-]{0,39}")
HOST = re.compile("[a-z0-9._-]+|[0-9a-f:.]+")
MOST_VERSIONS = 100
"""Versions of one source: a board of thousands would be of mistyped names."""
MOST_ORIGINS = 20


@dataclass(frozen=True, slots=True)
class Source:
    """An application that is registered.

    Attributes
    ----------
    origins : tuple of str
        Of the pages that may show its pairs, as browsers write them.
    per_hour : int
        Comparisons and pairs that it may send within an hour.
    share : float
        Share of the turns on which it is to show a pair.
    paused : datetime or None
        Since when it is let in no more until it is resumed.
    salt : str
        Secret behind the ids of its raters, and the draw of its turns.
    revoked : datetime or None
        Since when its token and its pages are let in no more.
    """

    id: int
    name: str
    origins: tuple[str, ...]
    per_hour: int
    share: float
    created: datetime
    revoked: datetime | None
    salt: str = field(repr=False)
    paused: datetime | None = None

    def voter(self, rater: str) -> Voter:
        """Give the voter that a rater is, by the source's own id of them: always the same."""
        return Voter(self._keyed("rater", rater)[:32], VoterKind.APPLICATION)

    def shows(self, turn: str) -> bool:
        """Say whether a pair is to be shown on a turn: of one turn always the same.

        The draw is uniform over turns, and nobody without the salt can foresee it.
        """
        return int(self._keyed("turn", turn)[:16], 16) < self.share * 2**64

    def model(self, version: str) -> Model:
        """Give the model that a version is: what answers in an application is a system.

        >>> support = Source(1, "support", (), 1, 0.1, datetime(2026, 5, 3), None, "")
        >>> support.model("v7").id
        'support~v7'
        """
        return Model(
            id=f"{self.name}{BESIDE}{version}",
            name=version,
            organisation=self.name,
            endpoint=f"{SET}{self.name}",
            model=version,
            kind=Kind.SYSTEM,
        )

    def _keyed(self, what: str, text: str) -> str:
        return hmac.new(self.salt.encode(), f"{what}\n{text}".encode(), "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class VersionAnswer:
    """What a version of the application answered."""

    version: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two answers to one prompt, as a source sends them; all texts are `storable`.

    Attributes
    ----------
    key : str
        Of the source's making: what is sent again under it is the same pair.
    a, b : VersionAnswer
        As they are shown; of a pair without a vote, before the sides are drawn.
    rater : str
        Who reads it, by an id of the source's own.
    """

    key: str
    prompt: str
    a: VersionAnswer
    b: VersionAnswer
    rater: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Pair):
    """A pair with what a rater said of it, and after how many seconds."""

    choice: Choice
    seconds: float


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source as those who run the arena see it; ``pairs`` are all that it has sent."""

    source: Source
    pairs: int
    votes: int


def is_name(text: str) -> bool:
    """Tell whether a source may have a name.

    >>> is_name("support-bot"), is_name("Support"), is_name("gold")
    (True, False, False)
    """
    return NAME.fullmatch(text) is not None and text + BESIDE != OWNER


def origin_of(address: str) -> str | None:
    """Give the origin of an address as browsers write it; None where it is more, or none.

    >>> origin_of("https://App.Example.org:443/"), origin_of("http://localhost:8000")
    ('https://app.example.org', 'http://localhost:8000')
    >>> origin_of("app.example.org"), origin_of("https://app.example.org/chat"), origin_of("*")
    (None, None, None)
    """
    try:
        parts = urlsplit(address)
        port, host = parts.port, parts.hostname
    except ValueError:
        return None
    beyond = parts.path.strip("/") or parts.query or parts.fragment or parts.username
    if parts.scheme not in ("http", "https") or not HOST.fullmatch(host or "") or beyond:
        return None
    default = {"http": 80, "https": 443}[parts.scheme]
    name = f"[{host}]" if ":" in str(host) else host
    return f"{parts.scheme}://{name}" + ("" if port in (None, default) else f":{port}")
