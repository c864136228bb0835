"""Who somebody is beyond their cookie: persons, looked up every few seconds, and their links."""

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from arena.domain.people import PROXY, Entrance, Invitation, Known, Person, Role
from arena.domain.vote import Voter
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


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: nobody yet, an anonymous voter, or a person, who is a voter besides."""

    voter: Voter | None = None
    person: Person | None = None


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
    _nobody_at: float = -HOLD_S
    _changes: int = 0

    def is_held(self, claim: Claim) -> bool:
        """Tell whether `asker` can answer to a claim without asking the database."""
        return self._fresh(claim.voter)[1] or (claim.sessions is None and self._nobody_is_known())

    def asker(self, user: str | None, claim: Claim | None) -> Asker:
        """Tell who asks, by whom a proxy names before the claim of a cookie.

        A claim says nothing once its person is kept out or was signed out; nor does that of an
        anonymous voter who turned out to be a person: whoever has the cookie is not them by it.
        """
        anonymous = claim.voter if claim and claim.sessions is None else None
        person = self.of_proxy(user, anonymous) if user is not None else self.of_claim(claim)
        if person is not None:
            return Asker(Voter(person.id, person.kind), person)
        if anonymous is None or self._is_person(anonymous):
            return Asker()
        return Asker(Voter(anonymous))

    def of_claim(self, claim: Claim | None) -> Person | None:
        """Give the person of a cookie, unless they are kept out or were signed out."""
        if claim is None or claim.sessions is None:
            return None
        person = self._of_voter(claim.voter)
        if person is None or person.blocked or person.sessions != claim.sessions:
            return None
        return person

    def of_proxy(self, name: str, before: str | None) -> Person | None:
        """Give the person whom a trusted proxy names, unless they are kept out."""
        person, fresh = self._fresh(f"{PROXY} {name}")
        if not fresh:
            entered = self.enter(PROXY, name, name, self.known.role(name), before)
            person = self._hold(f"{PROXY} {name}", entered)
        return None if person is None or person.blocked else person

    def enter(
        self, issuer: str, subject: str, name: str, role: Role, before: str | None
    ) -> Person:
        """Let in whom an issuer vouches for: see `arena.store.people.enter`.

        Who comes as they were before waits for nobody who writes.
        """
        hashed = self.identity.subject(issuer, subject)
        entrance = Entrance(issuer, hashed, name[:LONGEST_NAME], role)
        if (person := self.store.read(people.entered, entrance, before)) is not None:
            return person
        with self.store.writing() as session:
            person = people.enter(session, entrance, before, self.now())
        self._forget(before)
        return person

    def invitation(self, token: str) -> Invitation | None:
        """Read what a link gives; None if it lets nobody in any more."""
        return self.store.read(people.invitation, token_hash(token), self.now())

    def accept(self, token: str, before: str | None) -> Person | None:
        """Let somebody in by a link; None if it lets nobody in any more."""
        with self.store.writing() as session:
            person = people.accept(session, token_hash(token), before, self.now())
        self._forget(before)
        return person

    def link_for_device(self, person: Person) -> str | None:
        """Make what the link holds that lets in a further device of a person, once.

        None if they were signed out or kept out a moment ago.
        """
        token, now = new_token(), self.now()
        invitation = Invitation(person.role, person.name, 1, person.id)
        with self.store.writing() as session:
            if not people.is_in(session, person):
                return None
            people.invite(
                session, invitation, token_hash(token), now + FOR_A_DEVICE, now, person.id
            )
        return token

    def sign_out_everywhere(self, person: Person) -> None:
        """Sign out all devices of a person."""
        with self.store.writing() as session:
            people.change(session, person.id, person.id, self.now(), sign_out=True)
        self._forget(person.id)

    def _of_voter(self, voter: str) -> Person | None:
        """Give the person that a voter is, or turned out to be."""
        person, fresh = self._fresh(voter)
        return person if fresh else self._hold(voter, self.store.read(people.person, voter))

    def _is_person(self, anonymous: str) -> bool:
        """Tell whether an anonymous voter turned out to be a person; none is where none is known.

        Most arenas know nobody: there, no visitor waits for that.
        """
        if self._nobody_is_known():
            return False
        changes = self._changes
        if self._of_voter(anonymous) is not None:
            return True
        if not self.store.read(people.is_anybody_known) and changes == self._changes:
            self._nobody_at = time.monotonic()
        return False

    def _nobody_is_known(self) -> bool:
        return time.monotonic() < self._nobody_at + HOLD_S

    def _fresh(self, key: str) -> tuple[Person | None, bool]:
        """Give whom a key stands for, and whether that is still fresh."""
        at, person = self._held.get(key, (-HOLD_S, None))
        return person, time.monotonic() < at + HOLD_S

    def _forget(self, voter: str | None) -> None:
        self._held.pop(voter or "", None)
        self._nobody_at = -HOLD_S
        self._changes += 1

    def _hold(self, key: str, person: Person | None) -> Person | None:
        if len(self._held) > 10_000:
            self._held.clear()
        self._held[key] = time.monotonic(), person
        return person
