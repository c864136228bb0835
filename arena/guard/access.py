"""Access: who asks, and which routes they may ask for, from where.

Each route declares an `Access`, such as `VISITORS` or `ADMINS`; it decides once the route is
matched. `People` finds out who asks, by a cookie or a trusted proxy, and looks users up again
after `HOLD_S` seconds. Of the tokens in links the database has the hashes alone.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network, IPv6Network

from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Scope

from arena.domain.people import PROXY, Entrance, Invitation, Known, Person, Role
from arena.domain.vote import Voter
from arena.guard.limits import (
    Addresses,
    Claim,
    Identity,
    cookie_called,
    cookie_header,
    cookie_name,
    parsed_address,
)
from arena.store import people
from arena.store.store import Store
from rating.sentences import Sentence

# Users

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
    session : timedelta
        How long a user stays signed in.
    """

    store: Store
    identity: Identity
    known: Known
    now: Callable[[], datetime]
    session: timedelta = timedelta(days=365)
    _held: dict[str, tuple[float, Person | None]] = field(default_factory=dict)
    _nobody_at: float = -HOLD_S
    _changes: int = 0

    def is_held(self, claim: Claim) -> bool:
        """Tell whether `asker` can answer to a claim without asking the database."""
        if claim.sessions is None and self._nobody_is_known():
            return True
        keys = (claim.voter, f"session {claim.session}")[: 1 + bool(claim.session)]
        return all(self._fresh(key)[1] for key in keys)

    def asker(self, user: str | None, claim: Claim | None) -> tuple[Voter | None, Person | None]:
        """Tell who asks, by whom a proxy names before the claim of a cookie.

        Nobody yet, an anonymous voter, or a person, who is a voter besides.

        A claim says nothing once its person is kept out or was signed out; nor does that of an
        anonymous voter who turned out to be a person: the cookie alone does not identify them.
        """
        anonymous = claim.voter if claim and claim.sessions is None else None
        person = self.of_proxy(user, anonymous) if user is not None else self.of_claim(claim)
        if person is not None:
            return Voter(person.id, person.kind), person
        if anonymous is None or self._is_person(anonymous):
            return None, None
        return Voter(anonymous), None

    def of_claim(self, claim: Claim | None) -> Person | None:
        """Give the person of a cookie, unless they are kept out or were signed out."""
        if claim is None or claim.sessions is None:
            return None
        person = self._of_voter(claim.voter)
        if person is None or person.blocked or person.sessions != claim.sessions:
            return None
        if not claim.session:
            return person
        if self.now() >= datetime.fromtimestamp(claim.began, UTC) + self.session:
            return None
        key = f"session {claim.session}"
        going_on, fresh = self._fresh(key)
        if not fresh:
            ended = self.store.read(people.is_signed_out, claim.session)
            going_on = self._hold(key, None if ended else person)
        return person if going_on else None

    def of_proxy(self, name: str, before: str | None) -> Person | None:
        """Give the person whom a trusted proxy names, unless they are kept out."""
        person, fresh = self._fresh(f"{PROXY} {name}")
        if not fresh:
            # Proxies send UTF-8, and headers are read as Latin-1.
            utf8 = name.encode("latin1", "replace").decode(errors="replace")
            named = name if "\ufffd" in utf8 else utf8
            entered = self.enter(PROXY, name, named, self.known.role(named), before)
            person = self._hold(f"{PROXY} {name}", entered)
        return None if person is None or person.blocked else person

    def enter(
        self,
        issuer: str,
        subject: str,
        name: str,
        role: Role,
        before: str | None,
        *,
        decides: bool = False,
    ) -> Person:
        """Let in whom an issuer vouches for: see `arena.store.people.enter`.

        Who comes as they were before waits for nobody who writes.
        """
        hashed = self.identity.subject(issuer, subject)
        entrance = Entrance(issuer, hashed, name[:LONGEST_NAME], role, decides)
        if (person := self.store.read(people.entered, entrance, before)) is not None:
            return person
        person = self.store.write(people.enter, entrance, before, self.now())
        for voter in (before, person.id):
            self._forget(voter)
        return person

    def invitation(self, token: str) -> Invitation | None:
        """Read what a link gives; None if it lets nobody in any more."""
        return self.store.read(people.invitation, token_hash(token), self.now())

    def accept(self, token: str, before: str | None) -> Person | None:
        """Sign in by a link; None if the link is no longer valid."""
        person = self.store.write(people.accept, token_hash(token), before, self.now())
        self._forget(before)
        return person

    def link_for_device(self, person: Person) -> str | None:
        """Make what the link holds that lets in a further device of a person, once.

        None if they were signed out or kept out a moment ago.
        """
        token, now = new_token(), self.now()
        invitation, until = Invitation(person.role, person.name, 1, person.id), now + FOR_A_DEVICE
        with self.store.writing() as session:
            if not people.is_in(session, person):
                return None
            people.invite(session, invitation, token_hash(token), until, now, person.id)
        return token

    def sign_out(self, person: Person, claim: Claim) -> None:
        """End a session, so that no copy of its cookie lets anybody in."""
        if not claim.session:  # of version 0.1: it cannot be told from the others
            self.sign_out_everywhere(person)
            return
        self.store.write(people.note, person.id, people.SIGN_OUT, claim.session, {}, self.now())
        self._hold(f"session {claim.session}", None)

    def sign_out_everywhere(self, person: Person) -> None:
        """Sign out all devices of a person."""
        self.store.write(people.change, person.id, person.id, self.now(), sign_out=True)
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


# Routes

SAFE = {"GET", "HEAD", "OPTIONS"}
"""Methods that change nothing."""
UNPRINTABLE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]")
"""Control characters and line separators: no path of ours has one.

The pattern of a route ends in ``$``, which also matches before a newline at the end.
"""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
ADDRESS_AND_PORT = re.compile(r"\[(?P<v6>.+)\](?::[0-9]+)?|(?P<v4>[0-9.]+):[0-9]+")
CLAIMS = re.compile(r"forwarded|x-forwarded-.+|x-real-ip|x-gradio-server")
"""Headers that name another client or host; behind us only `Host` and the scope count."""

NEEDS = {
    Role.VOTER: Sentence("This page is for members only."),
    Role.RESEARCHER: Sentence("This page is for researchers only."),
    Role.ADMIN: Sentence("This page is for administrators only."),
}
SIGN_IN = Sentence("Sign in first.")

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Trust:
    """What the arena is called, and who may say whom they ask for.

    Attributes
    ----------
    host : str
        Name or address that the server is bound to.
    names : frozenset of str
        Names by which visitors call it. While there are none, every address will do: a page
        elsewhere can have its name resolve to this machine, but it cannot become an address.
    proxies : tuple of networks
        Whose forwarded headers are believed.
    user_header : str
        Header in which they name who has logged in there; empty if they do not.
    members_only : bool
        Whether only users, invited or signed in, may come in.
    """

    host: str = "127.0.0.1"
    names: frozenset[str] = frozenset()
    proxies: tuple[Network, ...] = ()
    user_header: str = ""
    members_only: bool = False

    def is_ours(self, host: str | None) -> bool:
        """Tell whether a `Host` header, with or without a port, names this arena."""
        parts = HOST.fullmatch(host or "")
        if parts is None:
            return False
        name = parts["name"].strip("[]").lower()
        if name in LOOPBACK | {self.host.lower()} | self.names:
            return True
        return not self.names and not isinstance(parsed_address(name), str)

    def believes(self, address: str) -> bool:
        """Tell whether an address is that of a trusted proxy."""
        parsed = parsed_address(address)
        return not isinstance(parsed, str) and any(parsed in one for one in self.proxies)


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What a decision rests on.

    Attributes
    ----------
    host, origin, site, mode, destination : str or None
        The headers `Host`, `Origin`, `Sec-Fetch-Site`, `Sec-Fetch-Mode` and `Sec-Fetch-Dest`;
        None where they are missing.
    known : bool
        Whether the request carries a cookie of ours.
    role : Role or None
        Of the person who asks; None of a visitor.
    """

    method: str
    scheme: str
    host: str | None
    origin: str | None = None
    site: str | None = None
    mode: str | None = None
    destination: str | None = None
    known: bool = False
    role: Role | None = None

    @classmethod
    def of(cls, scope: Scope, *, known: bool, role: Role | None = None) -> "RequestFacts":
        """Read a request, after `take_forwarded` has written the visitor's view into it."""
        headers = Headers(scope=scope)
        return cls(
            method=scope["method"],
            scheme=scope["scheme"],
            host=_joined(headers, "host"),
            origin=_joined(headers, "origin"),
            site=_joined(headers, "sec-fetch-site"),
            mode=_joined(headers, "sec-fetch-mode"),
            destination=_joined(headers, "sec-fetch-dest"),
            known=known,
            role=role,
        )

    @property
    def own_origin(self) -> str:
        """Origin of the arena's pages as the visitor sees it."""
        default = ":443" if self.scheme == "https" else ":80"
        return f"{self.scheme}://{(self.host or '').lower().removesuffix(default)}"

    @property
    def from_own_page(self) -> bool:
        """Whether a page of ours asks, or a program: browsers send `Origin` with every change.

        Over plain HTTP, but to the machine itself, browsers send no `Sec-Fetch-Site`.
        """
        if self.site not in (None, "none"):
            return self.site == "same-origin"
        return self.origin in (None, self.own_origin)

    @property
    def followed_link(self) -> bool:
        """Whether a person comes by a link: their cookie, if they have one, comes with them."""
        return (self.mode, self.destination) == ("navigate", "document")


class NotLetInError(HTTPException):
    """The role of who asks is not enough: 401 before signing in, 403 after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may ask for a route.

    A dependency of FastAPI: each route, or its router, has exactly one. It writes who asks into
    ``request.state.voter`` and ``request.state.person``, before the route's own function runs.
    The state of the application has the ``people``, ``addresses`` and ``trust`` to decide by.

    Attributes
    ----------
    role : Role or None
        The least role that may ask; None for everybody.
    to_members : bool
        Whether it is for users only where ``ARENA_MEMBERS_ONLY`` is set.
    personal : bool
        Whether the response is for this visitor only, and so must not be cached.
    greets : bool
        Whether a visitor without a cookie is given one.
    by_cookie : bool
        Whether who asks is read from a cookie, or from what a trusted proxy says.
    from_anywhere : bool
        Whether pages of other origins may send changes.
    by_any_name : bool
        Whether the ``Host`` header may name something else than this arena.
    """

    role: Role | None = None
    to_members: bool = True
    personal: bool = False
    greets: bool = False
    by_cookie: bool = True
    from_anywhere: bool = False
    by_any_name: bool = False

    async def __call__(self, request: Request) -> None:
        """Let a request in, or refuse it.

        Raises
        ------
        HTTPException
            If the request is refused: 400 or 421 by its host, 403 by its origin.
        NotLetInError
            If the role of who asks is not enough.
        StoreError
            If the database cannot tell who asks.
        """
        people: People = request.app.state.people
        addresses: Addresses = request.app.state.addresses
        trust: Trust = request.app.state.trust
        request.state.private = self.is_private(trust)
        voter, person = await _asker(request, people) if self.by_cookie else (None, None)
        role = person.role if person else None
        facts = RequestFacts.of(request.scope, known=voter is not None, role=role)
        if refusal := self.refusal(facts, trust):
            raise refusal
        if self.greets_visitor(facts):
            cookie = people.identity.issue()
            claim = people.identity.read(cookie)
            voter = Voter(claim.voter) if claim else None
            request.state.greeting = cookie_header(request.scope["scheme"], cookie)
        # A class may share an address: users with an account are limited individually.
        if voter is not None and person is None and request.client is not None:
            address = request.client.host
            voter = replace(
                voter,
                address=addresses.pseudonym(address),
                network=addresses.network_pseudonym(address),
            )
        request.state.voter, request.state.person = voter, person

    def refusal(self, request: RequestFacts, trust: Trust) -> HTTPException | None:
        """Give the error for a request that is refused; None for one that is let in.

        Examples
        --------
        >>> page = RequestFacts("POST", "http", "localhost:7860", origin="http://localhost:7860")
        >>> Access().refusal(page, Trust())
        >>> other = RequestFacts("POST", "http", "localhost:7860", origin="http://localhost:8000")
        >>> Access().refusal(other, Trust()).status_code
        403
        """
        if not self.by_any_name and not trust.is_ours(request.host):
            return _not_ours(request.host)
        if request.method not in SAFE and not (self.from_anywhere or request.from_own_page):
            return _not_from_here(request)
        needed = self.role or (Role.VOTER if self.to_members and trust.members_only else None)
        if needed and (request.role is None or not request.role.covers(needed)):
            if request.role is None:
                return NotLetInError(401, SIGN_IN)
            return NotLetInError(403, NEEDS[needed])
        return None

    def greets_visitor(self, request: RequestFacts) -> bool:
        """Tell whether a visitor is given a cookie: not one whom another page sends here."""
        comes = request.from_own_page or request.followed_link
        return self.greets and request.method != "HEAD" and not request.known and comes

    def is_private(self, trust: Trust) -> bool:
        """Tell whether no cache may store the response."""
        return self.personal or self.role is not None or (self.to_members and trust.members_only)


async def _asker(request: Request, people: People) -> tuple[Voter | None, Person | None]:
    """Find out who asks: from the proxy before the cookie."""
    name = cookie_name(request.scope["scheme"])
    cookie = cookie_called(name, request.headers.getlist("cookie"))
    claim = people.identity.read(cookie) if cookie else None
    user: str | None = request.state.proxy_user
    if user is None and (claim is None or people.is_held(claim)):
        return people.asker(user, claim)
    return await run_in_threadpool(people.asker, user, claim)


VISITORS = Depends(Access())
"""For everybody; where only members come in, for them."""
PERSONAL = Depends(Access(personal=True))
"""Like `VISITORS`, with responses for this visitor only."""
FIRST_CONTACT = Depends(Access(personal=True, greets=True))
"""Like `PERSONAL`, and a new visitor gets a cookie."""
FRONT_PAGE = Depends(Access(greets=True))
"""Like `VISITORS`, and a new visitor gets a cookie."""
RESEARCHERS = Depends(Access(role=Role.RESEARCHER))
ADMINS = Depends(Access(role=Role.ADMIN))
EVERYBODY = Depends(Access(to_members=False))
"""For everybody, also where only members come in."""
ENTRANCE = Depends(Access(to_members=False, personal=True))
"""Signing in and out: like `EVERYBODY`, with responses for this visitor only."""
TOKENS = Depends(Access(to_members=False, by_cookie=False))
"""For applications, each with a token of its own, which the route checks."""
OTHER_PAGES = Depends(Access(to_members=False, by_cookie=False, from_anywhere=True))
"""For pages of registered origins, which the route checks."""
PROBES = Depends(Access(to_members=False, by_cookie=False, from_anywhere=True, by_any_name=True))
"""For health checks by machines, under whatever name they know."""


def take_forwarded(scope: Scope, trust: Trust) -> str | None:
    """Write who asks, how and under which name into the scope, as a trusted proxy says.

    These headers are removed in any case, so that nothing reads them again. Returned is who
    has logged in at the proxy, if it is one that says so.

    Raises
    ------
    HTTPException
        If a trusted proxy sends what cannot be read.
    """
    headers = Headers(scope=scope)
    scope["headers"] = [
        (name, value)
        for name, value in headers.raw
        if not CLAIMS.fullmatch(name.decode("latin1")) and name != trust.user_header.encode()
    ]
    if not (peer := scope.get("client")) or not trust.believes(peer[0]):
        return None
    if addresses := _joined(headers, "x-forwarded-for"):
        scope["client"] = (_visitor(addresses, trust), 0)
    if scheme := _joined(headers, "x-forwarded-proto"):
        if scheme not in ("http", "https"):
            raise _unreadable("X-Forwarded-Proto", scheme, "http or https")
        scope["scheme"] = scheme
    if host := _joined(headers, "x-forwarded-host"):
        if not HOST.fullmatch(host):
            raise _unreadable("X-Forwarded-Host", host, "one host, with its port if it has one")
        others = [(name, value) for name, value in scope["headers"] if name != b"host"]
        scope["headers"] = [*others, (b"host", host.encode())]
    users = headers.getlist(trust.user_header) if trust.user_header else []
    if len(users) > 1:
        raise _unreadable(trust.user_header, ", ".join(users), "one name")
    return users[0].strip() or None if users else None


def _visitor(addresses: str, trust: Trust) -> str:
    """Give the last address that is no proxy's: what stands before it is anybody's claim."""
    address = ""
    for address in reversed([part.strip() for part in addresses.split(",")]):
        parts = ADDRESS_AND_PORT.fullmatch(address)
        address = (parts["v6"] or parts["v4"]) if parts else address
        if isinstance(parsed_address(address), str):
            raise _unreadable("X-Forwarded-For", address, "addresses, separated by commas")
        if not trust.believes(address):
            break
    return address


def _joined(headers: Headers, name: str) -> str | None:
    """Give a header's value; one that was sent twice is like no value that is asked for."""
    return ", ".join(headers.getlist(name)) or None


def _not_ours(host: str | None) -> HTTPException:
    if host is None:
        return HTTPException(400, "The request has no Host header. Send the arena's name in it.")
    return HTTPException(
        421,
        f"This arena does not go by the name {host[:100]!r}. Use the address that you were given; "
        "its administrator can add the name to ARENA_HOSTS.",
    )


def _not_from_here(request: RequestFacts) -> HTTPException:
    asker = repr(request.origin[:100]) if request.origin else "another address"
    return HTTPException(
        403,
        f"Only the arena's own page at {request.own_origin!r} may ask for this, "
        f"and a page of {asker} did. Open the arena itself.",
    )


def _unreadable(header: str, value: str, wanted: str) -> HTTPException:
    return HTTPException(
        400, f"The proxy sent {header} {value[:100]!r}, which is not {wanted}. Mend its settings."
    )
