"""Who a visitor is: a random id in a signed cookie, and a hash of the address, for limits only."""

import hashlib
import hmac
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from http.cookies import SimpleCookie
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from itsdangerous import BadSignature, URLSafeSerializer

from arena.domain.people import Person

COOKIE = "arena_voter"
OWN_HOST = "__Host-"
"""Over https: by this prefix a browser takes it from the arena's own host alone, and keeps it so.

Any other cookie can be laid on a visitor by a sibling host, who would read their battles then, or
sign them in as somebody else.
"""
MAX_AGE_S = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Claim:
    """Who somebody is by their cookie.

    Attributes
    ----------
    voter : str
        Id as a voter.
    sessions : int or None
        Number that a person's devices carried when they signed in; None of the anonymous.
    """

    voter: str
    sessions: int | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Signs and reads visitors' cookies.

    That of an anonymous visitor holds a random id; the log holds its HMAC. So the log cannot
    forge a cookie, and without the secret a cookie cannot be matched to the log. That of a person
    whom the arena knows holds their id as a voter, and the number of their sessions.
    """

    secret: str

    def issue(self) -> str:
        """Make a new visitor's cookie."""
        return self._signer.dumps(uuid.uuid4().hex)

    def issue_to(self, person: Person) -> str:
        """Make the cookie of a person's device."""
        return self._signer.dumps([person.id, person.sessions])

    def read(self, cookie: str) -> Claim | None:
        """Tell whose cookie it is; None when it was not signed by us."""
        try:
            content = self._signer.loads(cookie)
        except BadSignature:
            return None
        if isinstance(content, list):
            return Claim(*content)
        return Claim(self._pseudonym(str(content)))

    def subject(self, issuer: str, name: str) -> str:
        """Hash whom an issuer knows somebody as, so that the log cannot tell."""
        key = hmac.digest(self.secret.encode(), b"arena.person", hashlib.sha256)
        return hmac.new(key, f"{issuer}\n{name}".encode(), hashlib.sha256).hexdigest()

    @property
    def _signer(self) -> URLSafeSerializer:
        return URLSafeSerializer(self.secret, salt="arena.voter")

    def _pseudonym(self, visitor: str) -> str:
        return hmac.new(self.secret.encode(), visitor.encode(), hashlib.sha256).hexdigest()[:32]


def cookie_name(scheme: str, name: str = COOKIE) -> str:
    """Give the name of visitors' cookies over http or https."""
    return f"{OWN_HOST}{name}" if scheme == "https" else name


def cookie_called(name: str, lines: Iterable[str]) -> str | None:
    """Give the value of a cookie in the lines of `Cookie`; None without one, or where two differ.

    Browsers send one for each path and host that it was set for: of two, one may have been laid
    there by somebody else, and then neither says anything.

    Examples
    --------
    >>> cookie_called("voter", ["voter=mine; other=1", "voter=mine"])
    'mine'
    >>> cookie_called("voter", ["voter=mine; voter=theirs"])
    """
    pairs = (pair.partition("=") for line in lines for pair in line.split(";"))
    values = {value.strip() for key, _, value in pairs if key.strip() == name}
    return values.pop() if len(values) == 1 else None


def cookie_header(scheme: str, value: str, max_age_s: int = MAX_AGE_S, name: str = COOKIE) -> str:
    """Write the header that sets a cookie of the arena's own; an age of 0 ends it."""
    secure, name = scheme == "https", cookie_name(scheme, name)
    cookie: SimpleCookie = SimpleCookie({name: value})
    morsel = cookie[name]
    morsel["path"] = "/"
    morsel["max-age"] = max_age_s
    morsel["httponly"] = True
    morsel["samesite"] = "Lax"
    morsel["secure"] = secure
    return morsel.OutputString()


@dataclass(frozen=True, slots=True)
class Addresses:
    """Turns network addresses into hashes, with a salt that is another one each day.

    Attributes
    ----------
    now : callable
        Time now, in UTC.
    """

    secret: str
    now: Callable[[], datetime]

    def pseudonym(self, address: str) -> str:
        """Hash an address; of IPv6 the network of 64 bits, which one visitor has to themself."""
        return self._hash(place_of(address))

    def network_pseudonym(self, address: str) -> str | None:
        """Hash the network of 48 bits, of which one household or firm may have all; IPv6 only."""
        network = network_of(address)
        return None if network is None else self._hash(network)

    def _hash(self, text: str) -> str:
        salt = hmac.digest(self.secret.encode(), f"{self.now():%Y-%m-%d}".encode(), hashlib.sha256)
        return hmac.new(salt, text.encode(), hashlib.sha256).hexdigest()[:32]


def place_of(address: str) -> str:
    """Give what one visitor has to themself: an address, or of IPv6 the network of 64 bits.

    Examples
    --------
    >>> place_of("2001:db8:1:2:3:4:5:6")
    '2001:db8:1:2::/64'
    """
    parsed = _parsed(address)
    return _network(parsed, 64) if isinstance(parsed, IPv6Address) else str(parsed)


def network_of(address: str) -> str | None:
    """Give the network of 48 bits around an address of IPv6; None of any other."""
    parsed = _parsed(address)
    return _network(parsed, 48) if isinstance(parsed, IPv6Address) else None


def _parsed(address: str) -> IPv4Address | IPv6Address | str:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return getattr(parsed, "ipv4_mapped", None) or parsed


def _network(address: IPv6Address, bits: int) -> str:
    return str(ip_network((address, bits), strict=False))
