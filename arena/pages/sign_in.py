"""Ways in: a provider of OpenID Connect, a link, a further device; and the way out."""

from dataclasses import dataclass
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Form
from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from arena.domain.people import Person
from arena.errors import ProviderError
from arena.guard.access import ENTRANCE
from arena.guard.identity import cookie_called, cookie_header, cookie_name
from arena.guard.people import FOR_A_DEVICE, People
from arena.pages.rendering import device_page, join_page, sign_in_page
from arena.pages.visit import READ, origin_of, visit_to
from rating.sentences import Sentence

if TYPE_CHECKING:
    from arena.pages.oidc import OpenId

AT_PROVIDER_S = 600
"""How long somebody may take at their provider."""
STATE = "arena_sign_in"
"""Cookie with the signed state of a sign-in that has begun."""
BROWSER = "arena_sign_in_browser"
"""Cookie with a random value that is in the state too: only this browser can come back."""
VOTER = "voter"
"""In the state: the voter that the browser was when signing in was begun, if it was one."""
BACK = "/sign-in/openid/back"
NO_LINK = Sentence(
    "This link lets nobody in: it was used, or it has expired. Ask whoever sent it for a new one."
)
BLOCKED = Sentence("You are kept out of this arena. Ask whoever runs it why.")
TOO_LATE = Sentence("Signing in took too long, or was begun in another browser. Begin again.")
PRIVATE = {"Cache-Control": "private, no-store"}


@dataclass(frozen=True, slots=True)
class Doors:
    """What lets people in.

    Attributes
    ----------
    openid : OpenId or None
        Provider at which people sign in, if there is one.
    members_only : bool
        Whether nobody else may come in.
    """

    people: People
    openid: "OpenId | None"
    members_only: bool

    def shown(
        self, request: Request, status: int = 200, problem: Sentence | None = None
    ) -> Response:
        """Show the ways in, and why somebody is not inside yet."""
        page = sign_in_page(
            self.openid.provider.name if self.openid else None,
            inside(request.query_params.get("to", "/")),
            problem,
            visit_to(request),
        )
        return HTMLResponse(page, status, PRIVATE)

    def entered(self, request: Request, person: Person | None, to: str = "/") -> Response:
        """Let a person in on this device; None is nobody."""
        if person is None:
            return self.shown(request, 404, NO_LINK)
        if person.blocked:
            return self.shown(request, 403, BLOCKED)
        cookie = self.people.identity.issue_to(person)
        return _with_cookies(to, cookie_header(request.url.scheme, cookie))


def sign_in_router(doors: Doors) -> APIRouter:
    """Routes by which people come in and go out."""
    router = APIRouter(include_in_schema=False, dependencies=[ENTRANCE])
    people = doors.people

    @router.api_route("/sign-in", methods=READ)
    def sign_in(request: Request) -> Response:
        return doors.shown(request)

    @router.api_route("/join/{token}", methods=READ)
    def look_at_link(request: Request, token: str) -> Response:
        invitation = people.invitation(token)
        if invitation is None:
            return doors.shown(request, 404, NO_LINK)
        page = join_page(invitation, token, visit_to(request))
        return HTMLResponse(page, headers=PRIVATE)

    @router.post("/join/{token}")
    def join(request: Request, token: str) -> Response:
        return doors.entered(request, people.accept(token, _before(request)))

    @router.post("/sign-out")
    def sign_out(request: Request, everywhere: Annotated[bool, Form()] = False) -> Response:
        if everywhere and (person := request.state.person):
            people.sign_out_everywhere(person)
        to = "/sign-in" if doors.members_only else "/"
        return _with_cookies(to, cookie_header(request.url.scheme, "", 0))

    @router.post("/device")
    def device(request: Request) -> Response:
        person = request.state.person
        token = people.link_for_device(person) if person else None
        if token is None:
            return doors.shown(request, 401)
        link = f"{origin_of(request)}/join/{token}"
        page = device_page(link, FOR_A_DEVICE, visit_to(request))
        return HTMLResponse(page, headers=PRIVATE)

    if doors.openid is not None:
        _add_openid(router, doors, doors.openid)
    return router


def _add_openid(router: APIRouter, doors: Doors, openid: "OpenId") -> None:
    signer = URLSafeTimedSerializer(doors.people.identity.secret, salt="arena.sign-in")

    def refused(request: Request, why: ProviderError) -> Response:
        words = Sentence(
            "%(name)s did not let you in: %(why)s", name=openid.provider.name, why=str(why)
        )
        return doors.shown(request, 403, words)

    @router.post("/sign-in/openid")
    async def leave(request: Request, to: Annotated[str, Form()] = "/") -> Response:
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
    async def come_back(request: Request) -> Response:
        try:
            session = signer.loads(_value(request, STATE), max_age=AT_PROVIDER_S)
        except BadSignature:
            return doors.shown(request, 403, TOO_LATE)
        began = session.get(VOTER, ""), session.get(BROWSER)
        if began != (_voter(request), _value(request, BROWSER)):
            return doors.shown(request, 403, TOO_LATE)
        request.scope["session"] = session
        try:
            profile = await openid.profile(request)
        except ProviderError as error:
            return refused(request, error)
        person = await run_in_threadpool(
            doors.people.enter,
            openid.provider.issuer,
            profile.subject,
            profile.name,
            profile.role,
            _before(request),
        )
        answer = doors.entered(request, person, session["to"])
        for name in (STATE, BROWSER):
            answer.headers.append("set-cookie", _cookie(request, name, "", 0))
        return answer


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


def _with_cookies(to: str, *cookies: str) -> Response:
    answer = RedirectResponse(to, 303, PRIVATE)
    for cookie in cookies:
        answer.headers.append("set-cookie", cookie)
    return answer
