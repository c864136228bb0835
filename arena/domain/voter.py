"""Who votes: a pseudonym and how it came to be."""

from dataclasses import dataclass, field
from enum import StrEnum


class VoterKind(StrEnum):
    """How a voter came in; boards choose by it."""

    INVITED = "invited"
    LOGIN = "login"
    ANONYMOUS = "anonymous"
    SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter: ``id`` is a keyed hash, never a name or an address.

    Attributes
    ----------
    address : str or None
        Hash of today's network address, for limits only; None where it is not known.
    network : str or None
        Hash of the larger network around an address of IPv6, likewise; else None.
    """

    id: str
    kind: VoterKind = VoterKind.ANONYMOUS
    address: str | None = field(default=None, repr=False, compare=False)
    network: str | None = field(default=None, repr=False, compare=False)
