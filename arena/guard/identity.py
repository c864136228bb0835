"""Who a visitor is: a random id in a signed cookie, and a hash of the address, for limits only."""

import hashlib
import hmac
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from itsdangerous import BadSignature, URLSafeSerializer

from arena.domain.vote import Voter

COOKIE = "arena_voter"
SECURE_COOKIE = f"__Host-{COOKIE}"
"""Over https: by this prefix a browser takes it from the arena's own host alone, and keeps it so.

Any other cookie can be laid on a visitor by a sibling host, who would read their battles then.
"""
MAX_AGE_S = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Identity:
    """Signs and reads visitors' cookies.

    The cookie holds a random id; the log holds its HMAC. So the log cannot forge a cookie,
    and without the secret a cookie cannot be matched to the log.
    """

    secret: str

    def issue(self) -> str:
        """Make a new visitor's cookie."""
        return self._signer.dumps(uuid.uuid4().hex)

    def read(self, cookie: str) -> Voter | None:
        """Tell whose cookie it is; None when it was not signed by us."""
        try:
            visitor = self._signer.loads(cookie)
        except BadSignature:
            return None
        return Voter(self._pseudonym(str(visitor)))

    @property
    def _signer(self) -> URLSafeSerializer:
        return URLSafeSerializer(self.secret, salt="arena.voter")

    def _pseudonym(self, visitor: str) -> str:
        return hmac.new(self.secret.encode(), visitor.encode(), hashlib.sha256).hexdigest()[:32]


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
