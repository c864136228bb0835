"""Who may ask what, from where: decided for each request by its method, path and headers."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Scope

from arena.domain.people import Role
from rating.sentences import Sentence

SAFE = {"GET", "HEAD", "OPTIONS"}
"""Methods that change nothing."""
PROBES = "/health/"
"""RequestFacts by machines under whatever name or address they know, and personal to nobody."""
FIRST_CONTACT = {("GET", "/"), ("POST", "/api/v1/battles")}
"""Where a visitor without a cookie is given one; the reading pages stay cacheable."""
RATES = re.compile(r"/studies/[^/]+/rate")
"""Where one who rates in a study is given one."""

EMBED = "/embed/"
"""Below it pages of registered origins ask for pairs: who may is decided there, by origin."""
SENT = ("/api/v1/comparisons", "/api/v1/pairs", "/api/v1/share")
"""Where applications ask, by a token of their own."""
NO_COOKIES = (PROBES, EMBED, *SENT)
"""Where nobody is known by a cookie."""
OPEN = (
    "/sign-in",
    "/join/",
    "/sign-out",
    "/look/",
    "/language/",
    "/favicon.ico",
    "/embed.js",
    *SENT,
)
"""What anybody may reach where only members come in: the way in, and how it looks."""
ROOMS = {"/admin": Role.ADMIN}
"""Who may reach what lies below a path."""
FIGURES = re.compile(r"/studies/[^/]+/results")
"""What researchers may reach: how far others are, and what they say."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
ADDRESS_AND_PORT = re.compile(r"\[(?P<v6>.+)\](?::[0-9]+)?|(?P<v4>[0-9.]+):[0-9]+")
CLAIMS = re.compile(r"forwarded|x-forwarded-.+|x-real-ip|x-gradio-server")
"""Headers in which somebody says for whom they ask; behind us only `Host` and the scope count."""

NEEDS = {
    Role.VOTER: Sentence("This is for members of the arena."),
    Role.RESEARCHER: Sentence("This is for researchers of the arena."),
    Role.ADMIN: Sentence("This is for those who run the arena."),
}

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
        Whether only people whom the arena knows may come in.
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
        return not self.names and _is_address(name)

    def believes(self, address: str) -> bool:
        """Tell whether an address is that of a trusted proxy."""
        if not _is_address(address):
            return False
        parsed = _address(address)
        return any(parsed in network for network in self.proxies)


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
        Of the person who asks; None of somebody whom the arena does not know.
    """

    method: str
    path: str
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
            path=scope["path"],
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


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a request.

    Attributes
    ----------
    refusal : HTTPException or None
        Why it is refused; None if it is let in.
    greets : bool
        Whether who asks is to be given a cookie.
    """

    refusal: HTTPException | None = None
    greets: bool = False


def decide(request: RequestFacts, trust: Trust) -> Decision:
    """Decide whether a request is let in, and whether its visitor is new.

    Examples
    --------
    >>> vote = ("POST", "/api/v1/battles/x/vote", "http", "localhost:7860")
    >>> decide(RequestFacts(*vote, origin="http://localhost:7860"), Trust()).refusal
    >>> decide(RequestFacts(*vote, origin="http://localhost:8000"), Trust()).refusal.status_code
    403
    """
    if request.path.startswith(PROBES):
        return Decision()
    if not trust.is_ours(request.host):
        return Decision(refusal=_not_ours(request.host))
    if request.path.startswith(EMBED):
        return Decision()
    changes = request.method not in SAFE
    if changes and not request.from_own_page:
        return Decision(refusal=_not_from_here(request))
    wanted = _needed(request.path, trust)
    if wanted and (request.role is None or not request.role.covers(wanted)):
        return Decision(refusal=_not_let_in(request.role, wanted))
    first = not request.known and _is_first_contact(request.method, request.path)
    return Decision(greets=first and (request.from_own_page or request.followed_link))


def _is_first_contact(method: str, path: str) -> bool:
    return (method, path) in FIRST_CONTACT or (method == "GET" and bool(RATES.fullmatch(path)))


def _needed(path: str, trust: Trust) -> Role | None:
    """Give the role that a path needs; None if anybody may come."""
    for room, role in ROOMS.items():
        if path == room or path.startswith(f"{room}/"):
            return role
    if FIGURES.fullmatch(path):
        return Role.RESEARCHER
    return Role.VOTER if trust.members_only and not path.startswith(OPEN) else None


def take_forwarded(scope: Scope, trust: Trust) -> str | None:
    """Write who asks, how and under which name into the scope, as a trusted proxy says.

    The headers that say so go, whoever sent them: nothing behind reads them again. Given is who
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
    return _user(headers, trust)


def _user(headers: Headers, trust: Trust) -> str | None:
    """Read who has logged in at the proxy.

    Raises
    ------
    HTTPException
        If it names two people.
    """
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
        if not _is_address(address):
            raise _unreadable("X-Forwarded-For", address, "addresses, separated by commas")
        if not trust.believes(address):
            break
    return address


def _joined(headers: Headers, name: str) -> str | None:
    """Give a header's value; one that was sent twice is like no value that is asked for."""
    return ", ".join(headers.getlist(name)) or None


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _address(text: str) -> IPv4Address | IPv6Address:
    address = ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


def _not_ours(host: str | None) -> HTTPException:
    if host is None:
        return HTTPException(400, "The request has no Host header. Send the arena's name in it.")
    return HTTPException(
        421,
        f"This arena does not go by the name {host[:100]!r}. Use the address that you were given; "
        "whoever runs the arena can add the name to ARENA_HOSTS.",
    )


def _not_from_here(request: RequestFacts) -> HTTPException:
    asker = repr(request.origin[:100]) if request.origin else "another address"
    return HTTPException(
        403,
        f"Only the arena's own page at {request.own_origin!r} may ask for this, "
        f"and a page of {asker} did. Open the arena itself.",
    )


def _not_let_in(role: Role | None, wanted: Role) -> HTTPException:
    if role is None:
        return HTTPException(401, Sentence("Sign in first."))
    return HTTPException(403, NEEDS[wanted])


def _unreadable(header: str, value: str, wanted: str) -> HTTPException:
    return HTTPException(
        400, f"The proxy sent {header} {value[:100]!r}, which is not {wanted}. Mend its settings."
    )
