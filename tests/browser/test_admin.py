"""The admin room, as those who run an arena use it, and as nobody else can."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from arena.domain.people import Role
from rating.tables.voter_report import check_source
from tests.browser.person import NARROW_TO_WIDE, covered
from tests.browser.test_accessibility import SCREENS, assert_accessible
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.serving import Served, invited, page_of, write_roster

pytestmark = pytest.mark.browser

EXPIRED = "Incorrect API key provided. Renew it at https://keys.example"
SLOW = pytest.mark.slow
IN_THE_ROOM = "/models /people /voters /voters/erase /battles /policies /exports /log"
PANELS = ("", *IN_THE_ROOM.split())


@dataclass(frozen=True, slots=True)
class Scene:
    """An arena of which one model's key has expired, and the file in which it stands."""

    served: Served
    keys: Path
    server: FaultyServer


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("admin")
    behaviours = {name: Behaviour(text=f"So says {name}. " * 20) for name in "xy"}
    behaviours["z"] = Behaviour(status=401, error={"message": EXPIRED})
    keys = folder / "keys.env"
    keys.write_text("TEAM_KEY=sk-old\n")
    keys.chmod(0o600)
    with faulty_server(behaviours) as server:
        roster = write_roster(
            folder / "roster.toml", server, "x", "y", "z", api_key_env="TEAM_KEY"
        )
        settings = {"keys": keys, "secret_key": "k" * 32, "characters_per_s": 50_000}
        with page_of(folder, roster, **settings) as served:
            with served.visitor() as visitor:
                for _ in range(6):
                    visitor.vote(visitor.play(), "model_a")
            yield Scene(served, keys, server)


def entered(chromium: Browser, served: Served, role: Role, screen: str) -> Page:
    """Come in by a link, in a browser of its own."""
    width, height = SCREENS[screen]
    context = chromium.new_context(
        base_url=served.url, viewport={"width": width, "height": height}, locale="en-GB"
    )
    page = context.new_page()
    page.goto(invited(served, role))
    page.get_by_role("main").get_by_role("button").click()
    return page


def assert_in_order(page: Page) -> None:
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
@pytest.mark.parametrize("role", [Role.VOTER, Role.RESEARCHER])
def test_nobody_else_sees_anything_of_the_room(
    chromium: Browser, scene: Scene, role: Role
) -> None:
    page = entered(chromium, scene.served, role, "desktop")
    for panel in PANELS:
        answer = page.goto(f"/admin{panel}")
        assert answer is not None
        assert answer.status == 403
        assert "Name x" not in page.content()
    page.context.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("screen", "scheme"),
    [
        ("desktop", "light"),
        ("phone", "dark"),
        pytest.param("desktop", "dark", marks=pytest.mark.slow),
        pytest.param("phone", "light", marks=pytest.mark.slow),
    ],
)
def test_every_panel_is_in_order(
    chromium: Browser, scene: Scene, screen: str, scheme: str
) -> None:
    page = entered(chromium, scene.served, Role.ADMIN, screen)
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for panel in PANELS:
        page.goto(f"/admin{panel}")
        expect(page.get_by_role("navigation", name="Admin")).to_be_visible()
        assert_in_order(page)
    page.context.close()


@pytest.mark.parametrize("width", [360, *(pytest.param(w, marks=SLOW) for w in NARROW_TO_WIDE)])
def test_every_control_of_every_panel_is_clickable_in_its_middle(
    chromium: Browser, scene: Scene, width: int
) -> None:
    page = entered(chromium, scene.served, Role.ADMIN, "phone")
    page.set_viewport_size({"width": width, "height": 800})
    for panel in PANELS:
        page.goto(f"/admin{panel}")
        assert covered(page) == []
    page.context.close()


def test_the_head_fits_in_german_beside_the_number_of_votes(
    chromium: Browser, scene: Scene
) -> None:
    page = entered(chromium, scene.served, Role.ADMIN, "phone")
    page.goto("/admin/log")
    page.get_by_role("button", name="Deutsch").click()
    page.locator(".cast").evaluate("e => { e.hidden = false; e.textContent = '123 Stimmen' }")
    for width in (360, 600, 799, 800, 820, 849, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        expect(page.get_by_role("link", name="Verwaltung")).to_be_in_viewport(ratio=0.9)


@pytest.mark.parametrize("screen", SCREENS)
def test_people_voters_and_a_pasted_roster_on_the_page(
    chromium: Browser, scene: Scene, screen: str
) -> None:
    page = entered(chromium, scene.served, Role.ADMIN, screen)
    page.goto("/admin/people")
    page.get_by_label("Name of the new user").fill(f"Grace on a {screen}")
    page.get_by_role("button", name="Invite", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("/join/")
    assert_in_order(page)
    page.get_by_role("button", name=f"Revoke the invitation of Grace on a {screen}").click()
    expect(page.get_by_text(f"Grace on a {screen}")).to_have_count(0)
    page.goto("/admin/voters")
    page.get_by_role("checkbox").first.check()
    assert_in_order(page)
    page.goto("/admin/models")
    page.get_by_label("Roster").fill('[[models]]\nid = "w"\nname = "W"\n')
    page.get_by_role("button", name="Add models").click()
    expect(page.get_by_role("alert")).to_contain_text("key 'endpoint' is missing")
    expect(page.get_by_role("alert")).to_be_in_viewport()
    assert_in_order(page)
    page.context.close()


@pytest.mark.sampled(2, 1)
@pytest.mark.parametrize("screen", SCREENS)
def test_a_model_without_credit_is_marked_as_not_drawn_until_it_answers(
    chromium: Browser, tmp_path: Path, screen: str
) -> None:
    spent = {"message": "You exceeded your current quota.", "code": "insufficient_quota"}
    behaviours = {name: Behaviour(text=f"So says {name}. " * 20) for name in "xyz"}
    with faulty_server(behaviours) as server:
        server.behaviours["z"] = Behaviour(status=429, error=spent)
        roster = write_roster(tmp_path / "roster.toml", server, "x", "y", "z")
        with page_of(tmp_path, roster, secret_key="k" * 32, characters_per_s=50_000) as served:
            with served.visitor() as visitor:
                while not any(one.model == "z" for one in server.requests):
                    visitor.play()
            page = entered(chromium, served, Role.ADMIN, screen)
            page.goto("/admin/models")
            marked = page.get_by_role("listitem").filter(has_text="not drawn")
            expect(marked).to_have_count(1)
            expect(marked).to_contain_text("Name z")
            expect(marked).to_contain_text(
                re.compile(r"this process does not draw it for \d+ min")
            )
            assert_in_order(page)
            server.behaviours["z"] = behaviours["z"]
            page.get_by_role("button", name="Test all").click()
            expect(page.get_by_text("It answered within").first).to_be_visible()
            expect(marked).to_have_count(0)
            page.context.close()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("screen", SCREENS)
def test_an_admin_mends_a_key_adds_a_model_excludes_a_voter_and_reads_the_log(
    chromium: Browser, scene: Scene, screen: str
) -> None:
    scene.server.behaviours["z"] = Behaviour(status=401, error={"message": EXPIRED})
    page = entered(chromium, scene.served, Role.ADMIN, screen)
    page.goto("/admin")
    expect(page.get_by_text(EXPIRED).first).to_be_visible()
    room = page.get_by_role("navigation", name="Admin")
    room.get_by_role("link", name="Models").click()
    page.get_by_role("button", name="Test all").click()
    expect(page.get_by_text(EXPIRED)).to_be_visible()
    scene.keys.write_text("TEAM_KEY=sk-new\n")
    scene.server.behaviours["z"] = Behaviour(text="So says z. ")
    page.get_by_role("button", name="Test all").click()
    expect(page.get_by_text(EXPIRED)).to_have_count(0)
    name = f"New on a {screen}"
    page.get_by_label("Roster").fill(
        f'[[models]]\nid = "new-{screen}"\nname = "{name}"\n'
        'endpoint = "pocket://local/v1"\nmodel = "trigram"\n'
    )
    page.get_by_role("button", name="Add models").click()
    page.get_by_role("button", name=f"Disable {name}").click()
    expect(page.get_by_role("button", name=f"Enable {name}")).to_be_visible()
    page.get_by_role("navigation", name="Admin").get_by_role("link", name="Voters").click()
    page.get_by_role("button", name="Examine the voters").click()
    expect(page.get_by_text("(votes: 6, voters: 1)")).to_be_visible(timeout=60_000)
    form = page.locator("#named")
    form.get_by_label("Voter or battle").fill("nobody")
    form.get_by_label("Reason").fill("a test")
    form.get_by_role("button", name="Exclude").click()
    expect(page.get_by_role("alert")).to_contain_text("'nobody' is neither a voter")
    page.get_by_role("navigation", name="Admin").get_by_role("link", name="Voters").click()
    page.get_by_role("link", name="Delete a user's prompts and answers").click()
    page.get_by_role("textbox").fill("nobody-of-this-id")
    page.get_by_role("button", name="Show what would be deleted").click()
    expect(page.get_by_role("alert")).to_contain_text("is not the id of one voter")
    page.get_by_role("navigation", name="Admin").get_by_role("link", name="Log").click()
    log = page.get_by_role("main")
    expect(log).to_contain_text(f"disabled the model new-{screen}")
    expect(log).to_contain_text(f"added the model new-{screen}")
    page.context.close()


@pytest.mark.slow
def test_a_reason_that_is_being_typed_stays_while_the_result_of_an_examination_comes_in(
    chromium: Browser, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(
        "arena.boards.integrity.check_source", lambda votes: go_on.wait(60) and check_source(votes)
    )
    page = entered(chromium, scene.served, Role.ADMIN, "desktop")
    page.goto("/admin/voters")
    page.get_by_role("button", name="Examine the voters").click()
    expect(page.get_by_role("status")).to_contain_text("are being examined")
    reason = page.locator("#named").get_by_label("Reason")
    reason.press_sequentially("the same answers a")
    with page.expect_response("**/admin/voters", timeout=10_000):
        pass
    reason.press_sequentially("s another")
    go_on.set()
    expect(page.get_by_text("(votes: 6, voters: 1)")).to_be_visible(timeout=60_000)
    expect(reason).to_have_value("the same answers as another")
    expect(reason).to_be_focused()
    page.context.close()


def test_an_export_shows_that_it_is_being_made_and_then_the_file_or_what_is_wrong(
    chromium: Browser, scene: Scene
) -> None:
    page = entered(chromium, scene.served, Role.ADMIN, "phone")
    page.goto("/admin/exports")
    sent: list[Route] = []
    page.route("**/admin/exports", lambda route: sent.append(route))
    export = page.get_by_role("button", name="Export")
    export.click()
    expect(page.get_by_role("status")).to_contain_text(re.compile(r"is being made.* 0:0[1-9]"))
    expect(export).to_be_disabled()
    with page.expect_download() as begun:
        sent.pop().continue_()
    assert begun.value.suggested_filename == "battles.csv"
    assert begun.value.path().read_text().count(",voted,") >= 6
    expect(page.get_by_role("link", name="battles.csv, 0")).to_be_visible()
    page.get_by_label("Before").fill("2020-01-01")
    export.click()
    expect(page.get_by_role("status")).to_contain_text("is being made")
    sent.pop().continue_()
    expect(page.get_by_role("alert")).to_contain_text("Nothing lies between these days")
    page.context.close()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("screen", SCREENS)
def test_an_admin_erases_the_words_of_somebody_after_reading_what_goes(
    chromium: Browser, scene: Scene, screen: str
) -> None:
    with scene.served.visitor() as visitor:
        visitor.vote(visitor.play("My address is 1 Quay Street."), "tie")
        voter = visitor.get("/votes.json").json()["voters"][0]
    page = entered(chromium, scene.served, Role.ADMIN, screen)
    page.goto("/admin/voters")
    page.get_by_role("link", name=f"Delete the texts of {voter}").click()
    expect(page.get_by_role("main")).to_contain_text("It cannot be undone")
    assert_in_order(page)
    page.get_by_role("textbox").fill("yes")
    page.get_by_role("button", name="Erase for good").click()
    expect(page.get_by_role("alert")).to_contain_text(f"the id begins with {voter[:8]}")
    page.get_by_label("They are removed as well").check()
    page.get_by_role("textbox").fill(voter[:8])
    page.get_by_role("button", name="Erase for good").click()
    expect(page.get_by_role("heading", name="The texts are deleted")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("1 vote; a deletion record in the vote log")
    assert_in_order(page)
    page.get_by_role("link", name="Log").last.click()
    expect(page.get_by_role("main")).to_contain_text(f"deleted the texts of {voter}")
    page.context.close()
