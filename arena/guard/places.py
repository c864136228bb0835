"""What visitors hold at a time: battles that are answered, and streams that are read."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from arena.domain.voter import Voter
from arena.errors import BusyError, FullError
from arena.guard.limits import shares


@dataclass(frozen=True, slots=True)
class Share:
    """How much may be held at a time: by one visitor, by one address, by all together."""

    per_voter: int
    per_address: int
    in_all: int


@dataclass(frozen=True, slots=True)
class Kind:
    """What is held, in words for a refusal.

    Attributes
    ----------
    may : str
        What so many of yours may be.
    advice : str
        A sentence on how to come by a place.
    """

    may: str
    advice: str


RUNNING = Kind("battles may be answered", "Wait until one has ended, or stop one.")
STREAMS = Kind("streams may be open", "Close a page or a stream that shows a battle.")


class Places:
    """Counts the places that are held in this process.

    It belongs to one event loop, and nobody waits for a place: there is one, or it is refused.

    Examples
    --------
    >>> places = Places(RUNNING, Share(per_voter=1, per_address=2, in_all=2))
    >>> with places.hold(Voter("ada")), places.hold(Voter("ada")):  # doctest: +ELLIPSIS
    ...     pass
    Traceback (most recent call last):
        ...
    arena.errors.BusyError: 1 of your battles may be answered at a time. Wait until ...
    """

    def __init__(self, kind: Kind, share: Share) -> None:
        self._kind = kind
        self._share = share
        self._by_voter: Counter[str] = Counter()
        self._by_network: Counter[str] = Counter()

    @contextmanager
    def hold(self, voter: Voter) -> Iterator[None]:
        """Hold a place of a visitor.

        Raises
        ------
        BusyError
            If the visitor, or their network, holds as many as they may.
        FullError
            If all places are taken.
        """
        networks = shares(voter.address, voter.network, self._share.per_address)
        self._refuse(voter, networks)
        self._by_voter[voter.id] += 1
        self._by_network.update(networks.keys())
        try:
            yield
        finally:
            _give_back(self._by_voter, voter.id)
            for network in networks:
                _give_back(self._by_network, network)

    def _refuse(self, voter: Voter, networks: Mapping[str, int]) -> None:
        may, advice = self._kind.may, self._kind.advice
        if self._by_voter[voter.id] >= (most := self._share.per_voter):
            msg = f"{most} of your {may} at a time. {advice}"
            raise BusyError(msg)
        for network, most in networks.items():
            if self._by_network[network] >= most:
                msg = f"{most} of your network's {may} at a time. {advice}"
                raise BusyError(msg)
        if self._by_voter.total() >= (most := self._share.in_all):
            msg = f"The arena is full: {most} of its {may} at a time. Try again in a minute."
            raise FullError(msg)


def _give_back(held: Counter[str], whose: str) -> None:
    held[whose] -= 1
    if not held[whose]:
        del held[whose]
