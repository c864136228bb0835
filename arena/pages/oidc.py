"""Signing in at a provider of OpenID Connect: authorization code with PKCE, by authlib."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth
from httpx2 import AsyncByteStream, DecodingError, HTTPError, InvalidURL, Response
from joserfc.errors import JoseError
from starlette.requests import Request

from arena.domain.people import Known, Provider, Role
from arena.errors import ProviderError

TIMEOUT_S = 10.0
"""How long a provider may be silent."""
ALL_S = 30.0
"""How long all that is asked of a provider at one step may take."""
MOST_BYTES = 1_000_000
"""Of one response of a provider's."""
UNREADABLE = "what it sends cannot be read as OpenID Connect."


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
                "headers": {"accept-encoding": "identity"},
                "event_hooks": {"response": [_bound]},
            },
        )

    async def address(self, request: Request, back: str) -> str:
        """Give where somebody signs in, to come back to an address of ours.

        Raises
        ------
        ProviderError
            If the provider does not answer.
        """
        with _refusals():
            async with asyncio.timeout(ALL_S):
                redirect = await self._client.authorize_redirect(request, back)
        return str(redirect.headers["location"])

    async def profile(self, request: Request) -> Profile:
        """Read who comes back.

        Raises
        ------
        ProviderError
            If the provider let nobody in, or what it says does not hold.
        """
        with _refusals():
            async with asyncio.timeout(ALL_S):
                claims = await self._claims(request)
        if not claims.get("sub"):
            msg = "it named nobody."
            raise ProviderError(msg)
        mail = str(claims["email"]) if claims.get("email_verified") is True else ""
        name = mail or claims.get("preferred_username") or claims.get("name") or claims["sub"]
        return Profile(str(claims["sub"]), str(name), self._known.role(mail))

    async def _claims(self, request: Request) -> dict[str, Any]:
        token = await self._client.authorize_access_token(request)
        claims: dict[str, Any] = token.get("userinfo") or {}
        if "userinfo_endpoint" in await self._client.load_server_metadata():
            more = await self._client.userinfo(token=token)
            claims |= more if more.get("sub") == claims.get("sub") else {}
        return claims


@contextmanager
def _refusals() -> Iterator[None]:
    """Refuse whatever goes wrong at a provider, in its words where it has any."""
    try:
        yield
    except TimeoutError as error:
        msg = f"it took longer than {ALL_S:g} s."
        raise ProviderError(msg) from error
    except (AuthlibBaseError, JoseError, HTTPError, ValueError, RuntimeError) as error:
        raise ProviderError(str(error)[:300] or type(error).__name__) from error
    except (TypeError, AttributeError, LookupError, ArithmeticError, InvalidURL) as error:
        raise ProviderError(UNREADABLE) from error  # authlib takes it to be as the standard says


class _Bounded(AsyncByteStream):
    """The body of a response, up to `MOST_BYTES`."""

    def __init__(self, stream: AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        taken = 0
        async for piece in self._stream:
            taken += len(piece)
            if taken > MOST_BYTES:
                msg = f"it sends more than {MOST_BYTES:,} bytes."
                raise DecodingError(msg)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: Response) -> None:
    """Bound a response before its body is read: what is packed could become any size.

    Raises
    ------
    DecodingError
        If it is packed; later, if it is too large.
    """
    if (packed := response.headers.get("content-encoding", "identity")) != "identity":
        msg = f"it sends what was not asked for, a response packed by {packed[:40]!r}."
        raise DecodingError(msg)
    assert isinstance(response.stream, AsyncByteStream)
    response.stream = _Bounded(response.stream)
