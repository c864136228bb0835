"""Signing in at a provider of OpenID Connect: authorization code with PKCE, by authlib."""

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from arena.domain.people import Known, Provider, Role

TIMEOUT_S = 10.0


class RefusedError(Exception):
    """The provider let nobody in: the text says why, in its words."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Whom a provider let in.

    Attributes
    ----------
    subject : str
        Whom the provider knows them as, for ever.
    role : Role
        The least that the settings give them, by an address of mail that the provider verified.
    """

    subject: str
    name: str
    role: Role


class OpenId:
    """A provider of OpenID Connect.

    What has to be remembered while somebody is there is in ``request.scope["session"]``, which
    the caller keeps in a cookie.
    """

    def __init__(self, provider: Provider, known: Known) -> None:
        from authlib.integrations.starlette_client import OAuth  # most arenas do without its 10 MB

        self.provider = provider
        self._known = known
        self._client = OAuth().register(
            "oidc",
            server_metadata_url=f"{provider.issuer}/.well-known/openid-configuration",
            client_id=provider.client_id,
            client_secret=provider.client_secret,
            client_kwargs={
                "scope": "openid profile email",
                "code_challenge_method": "S256",
                "timeout": TIMEOUT_S,
            },
        )

    async def address(self, request: Request, back: str) -> str:
        """Give where somebody signs in, to come back to an address of ours.

        Raises
        ------
        RefusedError
            If the provider does not answer.
        """
        try:
            redirect = await self._client.authorize_redirect(request, back)
        except _failures() as error:
            raise RefusedError(_words(error)) from error
        return str(redirect.headers["location"])

    async def profile(self, request: Request) -> Profile:
        """Read who comes back.

        Raises
        ------
        RefusedError
            If the provider let nobody in, or what it says does not hold.
        """
        try:
            token = await self._client.authorize_access_token(request)
            claims: dict[str, Any] = token.get("userinfo") or {}
            if "userinfo_endpoint" in await self._client.load_server_metadata():
                more = await self._client.userinfo(token=token)
                claims |= more if more.get("sub") == claims.get("sub") else {}
        except _failures() as error:
            raise RefusedError(_words(error)) from error
        if not claims.get("sub"):
            msg = "it named nobody."
            raise RefusedError(msg)
        mail = str(claims["email"]) if claims.get("email_verified") is True else ""
        name = mail or claims.get("preferred_username") or claims.get("name") or claims["sub"]
        return Profile(str(claims["sub"]), str(name), self._known.role(mail))


def _failures() -> tuple[type[Exception], ...]:
    """Give what a provider that lets nobody in, or does not answer, ends in."""
    from authlib.common.errors import AuthlibBaseError
    from httpx2 import HTTPError
    from joserfc.errors import JoseError

    return AuthlibBaseError, JoseError, HTTPError, ValueError, RuntimeError


def _words(error: Exception) -> str:
    return str(error)[:300] or type(error).__name__
