"""What somebody sees of a restart while they read."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.person import person
from tests.faulty_server import Behaviour, faulty_server
from tests.process import Process
from tests.serving import Served, free_port, write_roster
from tests.sqlite import new_sqlite

pytestmark = pytest.mark.browser

LOADED = "performance.timeOrigin"
SLOW = Behaviour(text="On and on. " * 500, delay_s=0.1)


@pytest.mark.slow
def test_a_page_whose_arena_was_killed_comes_back_with_it(
    chromium: Browser, tmp_path: Path
) -> None:
    with faulty_server({"x": SLOW, "y": SLOW}) as server:
        env = {
            "ARENA_PAGE": "1",
            "ARENA_PORT": str(free_port()),
            "ARENA_ROSTER": str(write_roster(tmp_path / "roster.toml", server, "x", "y")),
            "ARENA_DATABASE": new_sqlite(tmp_path),
            "ARENA_SECRET_KEY": "the same after a restart",
        }
        with Process(["serve"], tmp_path, env) as first:
            served = Served(first.url(), env["ARENA_DATABASE"])
            with person(chromium, served) as ada:
                ada.play(until="streaming")
                battle_id, loaded = ada.battle_id, ada.page.evaluate(LOADED)
                first.kill()
                first.wait()
                with Process(["serve"], tmp_path, env) as second:
                    second.url()
                    ada.wait_for("interrupted", timeout_s=60)
                    assert ada.page.evaluate(LOADED) == loaded, "what was written stayed"
                    assert ada.battle_id == battle_id
