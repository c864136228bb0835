"""Who votes: a pseudonym and how it came to be."""

from dataclasses import dataclass
from enum import StrEnum


class VoterKind(StrEnum):
    """How a voter came in; boards choose by it."""

    INVITED = "invited"
    LOGIN = "login"
    ANONYMOUS = "anonymous"
    SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter: ``id`` is a keyed hash, never a name or an address."""

    id: str
    kind: VoterKind = VoterKind.ANONYMOUS
