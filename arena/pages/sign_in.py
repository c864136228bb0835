"""Signing in and out: by a provider of OpenID Connect, by a link, or on a further device.

`sign_in_router` has the routes. The provider is asked by authorization code with PKCE, which
authlib implements; the state of a sign-in is in a signed cookie, so only the browser that began it
can end it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from secrets import token_urlsafe
from typing import Annotated, Any

from fastapi import APIRouter, Form
from httpx2 import (
    AsyncByteStream,
    DecodingError,
    HTTPError,
    InvalidURL,
    Response,
    TimeoutException,
    create_ssl_context,
)
from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.responses import Response as PageResponse

from arena.domain.people import Known, Person, Provider, Role
from arena.errors import ProviderError
from arena.guard.access import ENTRANCE, FOR_A_DEVICE
from arena.guard.limits import COOKIE, cookie_called, cookie_header, cookie_name
from arena.pages.rendering import READ, filled, origin_of, visit_to
from arena.parts import Parts
from rating.sentences import Sentence

# OpenID Connect

logger = logging.getLogger(__name__)

TIMEOUT_S = 10.0
"""How long a provider may be silent."""
ALL_S = 30.0
"""How long all that is asked of a provider at one step may take."""
MOST_BYTES = 1_000_000
"""Of one response of a provider's."""
GROUPS = ("groups", "roles")
"""Claims that name the groups of an account; the second has the application roles of Entra ID."""
BASIC, POST = "client_secret_basic", "client_secret_post"
"""How the secret is sent: as the standard has it if not said otherwise, and in the body."""
UNREADABLE = "what it sends cannot be read as OpenID Connect."


class _OpenId:
    """A provider of OpenID Connect.

    What has to be remembered during a sign-in is in ``request.scope["session"]``, which
    the caller keeps in a cookie.
    """

    def __init__(self, provider: Provider, known: Known) -> None:
        self.provider = provider
        self._known = known
        from authlib.integrations.starlette_client import OAuth  # most arenas have no provider

        self._client = OAuth().register(
            "oidc",
            server_metadata_url=f"{provider.issuer}/.well-known/openid-configuration",
            client_id=provider.client_id,
            client_secret=provider.client_secret,
            client_kwargs={
                "scope": "openid profile email",
                "code_challenge_method": "S256",
                "timeout": TIMEOUT_S,
                "verify": create_ssl_context(),  # once: it takes long, and the event loop waits
                "headers": {"accept-encoding": "identity"},
                "event_hooks": {"response": [_bound]},
            },
        )

    async def address(self, request: Request, back: str) -> str:
        """Return the provider's sign-in address, with an address of ours to return to.

        Raises
        ------
        ProviderError
            If the provider does not answer.
        """
        with _refusals():
            async with asyncio.timeout(ALL_S):
                redirect = await self._client.authorize_redirect(request, back)
        return str(redirect.headers["location"])

    async def profile(self, request: Request) -> tuple[str, str, Role, bool]:
        """Read who comes back.

        Returns their permanent id at the provider; their name; the least role that the settings
        give them, by an email address that the provider verified; and whether its groups decide
        who is an admin.

        Raises
        ------
        ProviderError
            If the provider let nobody in, or what it says does not hold.
        """
        with _refusals():
            async with asyncio.timeout(ALL_S):
                claims = await self._claims(request)
        if not claims.get("sub"):
            raise ProviderError("it named nobody.")
        email = str(claims.get("email") or "")
        claimed = email or str(claims.get("preferred_username") or "")
        mail = email if claims.get("email_verified") is True else ""
        if self.provider.trusts_mail:
            mail = claimed
        name = mail or claims.get("preferred_username") or claims.get("name") or claims["sub"]
        groups = {str(one).casefold() for key in GROUPS for one in _as_list(claims.get(key))}
        account = str(claims["sub"])  # the log has it in place of name and address
        elsewhere = claims.get("_claim_names")
        omitted = not groups and isinstance(elsewhere, dict) and "groups" in elsewhere
        if omitted:
            logger.warning("The provider omits the groups of account %r: too many.", account)
        domain = mail.rpartition("@")[2].casefold()
        if self.provider.domains and domain not in self.provider.domains:
            logger.info("Account %r may not enter: no address of an allowed domain.", account)
            raise ProviderError("your account has no verified address of a domain that may enter.")
        admitted = self.provider.groups | self.provider.admin_groups
        if self.provider.groups and not groups & admitted:
            logger.info("Account %r may not enter: of no allowed group.", account)
            raise ProviderError("your account is in no group that may enter.")
        role = self._known.role(mail)
        if groups & self.provider.admin_groups:
            role = Role.ADMIN
        elif not mail and self._known.role(claimed) is not role:
            logger.warning(
                "Account %r has a role by the settings, but the provider does not mark its "
                "address as verified: set ARENA_OIDC_TRUST_MAIL=true if it marks none.",
                account,
            )
        return account, str(name), role, bool(self.provider.admin_groups) and not omitted

    async def _claims(self, request: Request) -> dict[str, Any]:
        metadata = await self._client.load_server_metadata()
        takes = metadata.get("token_endpoint_auth_methods_supported") or BASIC
        if self.provider.client_secret and BASIC not in takes and POST in takes:
            self._client.client_kwargs["token_endpoint_auth_method"] = POST
        try:
            token = await self._client.authorize_access_token(request)
        except Exception:
            metadata.pop("jwks", None)  # it may have other keys by now, without naming them
            raise
        claims: dict[str, Any] = token.get("userinfo") or {}
        if "userinfo_endpoint" in metadata:
            more = await self._client.userinfo(token=token)
            claims |= more if more.get("sub") == claims.get("sub") else {}
        return claims


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]


@contextmanager
def _refusals() -> Iterator[None]:
    """Refuse whatever goes wrong at a provider, in its words where it has any."""
    from authlib.common.errors import AuthlibBaseError  # most arenas have no provider
    from authlib.integrations.base_client import MismatchingStateError
    from joserfc.errors import JoseError

    try:
        yield
    except TimeoutError as error:
        raise ProviderError(f"it took longer than {ALL_S:g} s.") from error
    except TimeoutException as error:
        raise ProviderError(f"it did not answer within {TIMEOUT_S:g} s.") from error
    except MismatchingStateError as error:
        raise ProviderError("it was asked again in another tab since. Begin again.") from error
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
                raise DecodingError(f"it sends more than {MOST_BYTES:,} bytes.")
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


# Routes

AT_PROVIDER_S = 600
"""Longest time for the sign-in at the provider."""
STATE = "arena_sign_in"
"""Cookie with the signed state of a sign-in that has begun."""
BROWSER = "arena_sign_in_browser"
"""Cookie with a random value that is in the state too: only this browser can come back."""
VOTER = "voter"
"""In the state: the voter that the browser was when signing in was begun, if it was one."""
BACK = "/sign-in/openid/back"
NO_LINK = Sentence(
    "This link was used, or it has expired. Ask the person who sent it for a new one."
)
BLOCKED = Sentence("You are blocked from this arena. Ask its administrator for the reason.")
TOO_LATE = Sentence("Signing in took too long, or was begun in another browser. Begin again.")
INVITED_AS = {
    Role.VOTER: Sentence("You can ask questions and vote as a user of this arena."),
    Role.RESEARCHER: Sentence("You can vote, and read what researchers of this arena read."),
    Role.ADMIN: Sentence("You can run this arena: models, people and data."),
}
"""Permissions of a user who opens a link."""
PRIVATE = {"Cache-Control": "private, no-store"}


def sign_in_router(parts: Parts) -> APIRouter:
    """Routes by which people come in and go out."""
    router = APIRouter(include_in_schema=False, dependencies=[ENTRANCE])
    people, provider = parts.people, parts.settings.provider()

    def shown(
        request: Request, status: int = 200, problem: Sentence | None = None
    ) -> PageResponse:
        """Show the ways to sign in, and the reason if a sign-in failed."""
        page = filled(
            "sign_in.html",
            visit_to(request),
            provider=provider.name if provider else None,
            to=inside(request.query_params.get("to", "/")),
            problem=problem,
        )
        return HTMLResponse(page, status, PRIVATE)

    def entered(request: Request, person: Person | None, to: str = "/") -> PageResponse:
        """Let a person in on this device; None is nobody."""
        if person is None:
            return shown(request, 404, NO_LINK)
        if person.blocked:
            return shown(request, 403, BLOCKED)
        cookie = people.identity.issue_to(person, parts.now())
        age_s = int(people.session.total_seconds())
        return _with_cookies(to, cookie_header(request.url.scheme, cookie, age_s))

    @router.api_route("/sign-in", methods=READ)
    def sign_in(request: Request) -> PageResponse:
        return shown(request)

    @router.api_route("/join/{token}", methods=READ)
    def look_at_link(request: Request, token: str) -> PageResponse:
        invitation = people.invitation(token)
        if invitation is None:
            return shown(request, 404, NO_LINK)
        values = {"invitation": invitation, "token": token, "roles": INVITED_AS}
        page = filled("join.html", visit_to(request), **values)
        return HTMLResponse(page, headers=PRIVATE)

    @router.post("/join/{token}")
    def join(request: Request, token: str) -> PageResponse:
        return entered(request, people.accept(token, _before(request)))

    @router.post("/sign-out")
    def sign_out(request: Request, everywhere: Annotated[bool, Form()] = False) -> PageResponse:
        claim = people.identity.read(_value(request, COOKIE))
        person = request.state.person
        if person and everywhere:
            people.sign_out_everywhere(person)
        elif person and claim and claim.voter == person.id:
            people.sign_out(person, claim)
        to = "/sign-in" if parts.settings.members_only else "/"
        return _with_cookies(to, cookie_header(request.url.scheme, "", 0))

    @router.post("/device")
    def device(request: Request) -> PageResponse:
        person = request.state.person
        token = people.link_for_device(person) if person else None
        if token is None:
            return shown(request, 401)
        link = f"{origin_of(request)}/join/{token}"
        minutes = int(FOR_A_DEVICE.total_seconds() // 60)
        page = filled("device.html", visit_to(request), link=link, minutes=minutes)
        return HTMLResponse(page, headers=PRIVATE)

    if provider is None:
        return router
    openid = _OpenId(provider, people.known)
    signer = URLSafeTimedSerializer(people.identity.secret, salt="arena.sign-in")

    def refused(request: Request, why: ProviderError) -> PageResponse:
        if cause := why.__cause__:  # its code alone, where a description may name a person
            text = getattr(cause, "error", None) or f"{type(cause).__name__}: {why}"
            logger.warning("Sign-in at %s failed: %.300r", provider.issuer, text)
        words = Sentence("%(name)s did not let you in: %(why)s", name=provider.name, why=str(why))
        return shown(request, 403, words)

    @router.post("/sign-in/openid")
    async def leave(request: Request, to: Annotated[str, Form()] = "/") -> PageResponse:
        browser = token_urlsafe(24)
        session = {"to": inside(to), VOTER: _voter(request), BROWSER: browser}
        request.scope["session"] = session
        try:
            address = await openid.address(request, f"{origin_of(request)}{BACK}")
        except ProviderError as error:
            return refused(request, error)
        return _with_cookies(
            address,
            _cookie(request, STATE, signer.dumps(session), AT_PROVIDER_S),
            _cookie(request, BROWSER, browser, AT_PROVIDER_S),
        )

    @router.get(BACK)
    async def come_back(request: Request) -> PageResponse:
        try:
            session = signer.loads(_value(request, STATE), max_age=AT_PROVIDER_S)
        except BadSignature:
            return shown(request, 403, TOO_LATE)
        began = session.get(VOTER, ""), session.get(BROWSER)
        if began != (_voter(request), _value(request, BROWSER)):
            return shown(request, 403, TOO_LATE)
        request.scope["session"] = session
        try:
            *who, decides = await openid.profile(request)
        except ProviderError as error:
            return refused(request, error)
        before = _before(request)
        enter = partial(people.enter, decides=decides)
        person = await run_in_threadpool(enter, provider.issuer, *who, before)
        answer = entered(request, person, session["to"])
        for name in (STATE, BROWSER):
            answer.headers.append("set-cookie", _cookie(request, name, "", 0))
        return answer

    return router


def inside(address: str) -> str:
    """Give an address of this arena's, or its front page for one that leads elsewhere.

    Examples
    --------
    >>> inside("/votes?x=1"), inside("//evil.example"), inside("https://evil.example")
    ('/votes?x=1', '/', '/')
    """
    leads_elsewhere = not address.startswith("/") or address[1:2] in ("/", "\\")
    return "/" if leads_elsewhere or not address.isprintable() else address


def _voter(request: Request) -> str | None:
    """Give the voter that a browser is, known or not."""
    return None if request.state.voter is None else str(request.state.voter.id)


def _before(request: Request) -> str | None:
    """Give the anonymous voter that a browser was until now."""
    return _voter(request) if request.state.person is None else None


def _cookie(request: Request, name: str, value: str, age_s: int) -> str:
    return cookie_header(request.url.scheme, value, age_s, name)


def _value(request: Request, name: str) -> str:
    """Give the value of one of our cookies; empty without one."""
    called = cookie_name(request.url.scheme, name)
    return cookie_called(called, request.headers.getlist("cookie")) or ""


def _with_cookies(to: str, *cookies: str) -> PageResponse:
    answer = RedirectResponse(to, 303, PRIVATE)
    for cookie in cookies:
        answer.headers.append("set-cookie", cookie)
    return answer
