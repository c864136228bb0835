"""Where a visitor comes from: a hash that is worth nothing tomorrow, for limits only."""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv6Address, ip_address, ip_network


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
        salt = hmac.digest(self.secret.encode(), f"{self.now():%Y-%m-%d}".encode(), hashlib.sha256)
        return hmac.new(salt, _network(address).encode(), hashlib.sha256).hexdigest()[:32]


def _network(address: str) -> str:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed, 64), strict=False))
