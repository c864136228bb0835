"""A tab that was opened before an update of the arena, replica by replica."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import arena.app
from arena.ui import battle_page
from tests.browser.person import person
from tests.deploy.tools import needs_nginx, proxied
from tests.faulty_server import Behaviour, faulty_server
from tests.kills import SETTINGS
from tests.postgresql import new_database
from tests.process import Process
from tests.replicas import IN_TURN, LEAVE, logged
from tests.serving import Served, free_port, write_roster

pytestmark = [pytest.mark.browser, needs_nginx]

QUICK = Behaviour(text="Over at once.")


@pytest.fixture
def url(postgresql: str, postgresql_template: str) -> Iterator[str]:
    with new_database(postgresql, postgresql_template) as url:
        yield url


def be_of_an_older_version() -> None:
    """Let the arena of this process have another version of the page than the others."""
    battle_page.VERSION = "01d01d01"
    vars(arena.app)["VERSION"] = battle_page.VERSION
    battle_page.LOOK = "/look/01d01d01"


@pytest.mark.slow
def test_a_tab_from_before_an_update_says_so_and_goes_on_after_a_reload(
    chromium: Browser, url: str, tmp_path: Path
) -> None:
    ports = [free_port(), free_port()]
    hosts = [f"127.0.0.1:{port}" for port in ports]
    with ExitStack() as stack:
        models = stack.enter_context(faulty_server({"x": QUICK, "y": QUICK}))
        roster = write_roster(tmp_path / "roster.toml", models, "x", "y")
        log = stack.enter_context((tmp_path / "arena.log").open("a"))

        def replica(port: int, *, is_older: bool) -> Process:
            words = ["serve", "--port", str(port), "--roster", str(roster), "--database", url]
            prepare = be_of_an_older_version if is_older else None
            process = Process(words, tmp_path, SETTINGS | {"ARENA_PAGE": "1"}, log, prepare)
            stack.enter_context(process)
            process.url()
            return process

        older = [replica(port, is_older=True) for port in ports]
        nginx = stack.enter_context(proxied(tmp_path / "nginx", *hosts, changes=LEAVE | IN_TURN))
        ada = stack.enter_context(person(chromium, Served(nginx, url)))
        ada.play()
        first = ada.battle_id
        ada.cast("tie")
        assert not ada.page.locator("#updated").is_visible()
        ada.page.locator("#do-new").click()
        ada.ask("Is it blue at night?", until="ready")
        second = ada.battle_id
        ada.prompt.fill("What I had begun to")

        for process, port in zip(older, ports, strict=True):
            process.send(signal.SIGTERM)
            process.wait()
            replica(port, is_older=False)

        ada.cast("model_a")
        updated = ada.page.locator("#updated")
        updated.wait_for()
        assert "The arena was updated." in updated.inner_text()
        updated.get_by_role("button", name="Reload the page").click()
        ada.wait_for("voted")
        assert not updated.is_visible()
        assert ada.battle_id == second
        assert ada.prompt.input_value() == "What I had begun to"
        ada.prompt.press("Enter")
        ada.wait_for("ready")
        third = ada.battle_id
        ada.cast("model_b")
        assert not updated.is_visible()
        assert ada.complaints == []
    assert list(logged(url).values("battle")) == [first, second, third]
