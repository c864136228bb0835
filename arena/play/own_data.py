"""What people may do with what is theirs: hide a battle, erase their words, take all along."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from arena.domain.people import Erased
from arena.domain.vote import Voter
from arena.play.snapshots import stored_snapshot
from arena.store import erasing, people, studies
from arena.store.single_battles import own_battles, stored_battle
from arena.store.store import Store


@dataclass(frozen=True, slots=True)
class OwnData:
    """What a visitor owns, on all their devices; its methods block.

    Attributes
    ----------
    now : callable
        Time now, in UTC.
    """

    store: Store
    now: Callable[[], datetime]

    def hide(self, battle_id: str, voter: Voter, *, hidden: bool) -> None:
        """Hide a battle of theirs from others, or show it again.

        Raises
        ------
        UnknownBattleError
            If there is none, or it is somebody else's.
        """
        with self.store.writing() as session:
            erasing.hide(session, battle_id, voter.id, self.now() if hidden else None)

    def extent(self, voter: Voter) -> Erased:
        """Say how much would go."""
        with self.store.reading() as session:
            return erasing.extent(session, people.devices_of(session, voter.id)).of

    def erase(self, voter: Voter) -> Erased:
        """Erase all their words; who they are stays known, for they are still here."""
        with self.store.reading() as session:
            there = erasing.extent(session, people.devices_of(session, voter.id))
        with self.store.writing() as session:
            return erasing.erase(session, there, voter.id, self.now(), forget=False)

    def download(self, voter: Voter) -> dict[str, Any]:
        """Give all that is theirs, as far as they may see it: no model before its vote."""
        with self.store.reading() as session:
            person = people.person(session, voter.id)
            battles = [
                asdict(stored_snapshot(stored_battle(session, row.public_id, voter.id)))
                | {"hidden": row.hidden, "erased": row.erased}
                | ({"vote": row.vote} if row.vote else {})
                for row in own_battles(session, voter.id)
            ]
            return {
                "downloaded": self.now(),
                "voters": people.devices_of(session, voter.id),
                "name": person and person.name,
                "battles": battles,
                "ratings": studies.own_ratings(session, voter.id),
            }
