"""Who a visitor is: a random id in a signed cookie, known to the log by a keyed hash."""

import hashlib
import hmac
import uuid
from dataclasses import dataclass

from itsdangerous import BadSignature, URLSafeSerializer

from arena.domain.voter import Voter

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
