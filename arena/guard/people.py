"""Who somebody is beyond their cookie: persons, looked up every few seconds, and their links."""

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from arena.domain.people import PROXY, Entrance, Invitation, Known, Person, Role
from arena.guard.identity import Claim, Identity
from arena.store import people
from arena.store.store import Store

HOLD_S = 2.0
"""How long a person is taken to be who they were: a change holds everywhere soon after."""
FOR_A_DEVICE = timedelta(minutes=15)
"""How long the link for one's own further device lets in."""
LONGEST_NAME = 200


def token_hash(token: str) -> str:
    """Hash what a link holds: the database alone lets nobody in."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_token() -> str:
    """Make what a link holds."""
    return secrets.token_urlsafe(24)


@dataclass(slots=True)
class People:
    """Persons by their cookies and by what others say of them; its methods block.

    Attributes
    ----------
    now : callable
        Time now, in UTC.
    """

    store: Store
    identity: Identity
    known: Known
    now: Callable[[], datetime]
    _held: dict[str, tuple[float, Person | None]] = field(default_factory=dict)

    def held(self, key: str) -> tuple[Person | None, bool]:
        """Give whom a key stands for, and whether that is still fresh; asks nobody."""
        at, person = self._held.get(key, (-HOLD_S, None))
        return person, time.monotonic() < at + HOLD_S

    def of_claim(self, claim: Claim) -> Person | None:
        """Give the person of a cookie, unless they are kept out or were signed out."""
        person, fresh = self.held(claim.voter)
        if not fresh:
            person = self._hold(claim.voter, self.store.read(people.person, claim.voter))
        if person is None or person.blocked or person.sessions != claim.sessions:
            return None
        return person

    def of_proxy(self, name: str, before: str | None) -> Person | None:
        """Give the person whom a trusted proxy names, unless they are kept out."""
        person, fresh = self.held(f"{PROXY} {name}")
        if not fresh:
            entered = self.enter(PROXY, name, name, self.known.role(name), before)
            person = self._hold(f"{PROXY} {name}", entered)
        return None if person is None or person.blocked else person

    def enter(
        self, issuer: str, subject: str, name: str, role: Role, before: str | None
    ) -> Person:
        """Let in whom an issuer vouches for: see `arena.store.people.enter`."""
        hashed = self.identity.subject(issuer, subject)
        entrance = Entrance(issuer, hashed, name[:LONGEST_NAME], role)
        with self.store.writing() as session:
            return people.enter(session, entrance, before, self.now())

    def invitation(self, token: str) -> Invitation | None:
        """Read what a link gives; None if it lets nobody in any more."""
        return self.store.read(people.invitation, token_hash(token), self.now())

    def accept(self, token: str, before: str | None) -> Person | None:
        """Let somebody in by a link; None if it lets nobody in any more."""
        with self.store.writing() as session:
            return people.accept(session, token_hash(token), before, self.now())

    def link_for_device(self, person: Person) -> str:
        """Make what the link holds that lets in a further device of a person, once."""
        token, now = new_token(), self.now()
        invitation = Invitation(person.role, person.name, 1, person.id)
        with self.store.writing() as session:
            people.invite(
                session, invitation, token_hash(token), now + FOR_A_DEVICE, now, person.id
            )
        return token

    def sign_out_everywhere(self, person: Person) -> None:
        """Sign out all devices of a person."""
        with self.store.writing() as session:
            people.change(session, person.id, person.id, self.now(), sign_out=True)
        self._held.pop(person.id, None)

    def _hold(self, key: str, person: Person | None) -> Person | None:
        if len(self._held) > 10_000:
            self._held.clear()
        self._held[key] = time.monotonic(), person
        return person
