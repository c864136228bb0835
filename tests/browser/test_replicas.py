"""The page before two replicas, which nginx asks in turn, and one of them killed."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.person import person
from tests.deploy.tools import needs_nginx
from tests.faulty_server import Behaviour, faulty_server
from tests.replicas import logged, replicas
from tests.serving import Served, write_roster

pytestmark = [pytest.mark.browser, needs_nginx]

SLOW = Behaviour(text="On and on. " * 25, chunk_size=11, delay_s=0.2)
QUICK = Behaviour(text="Over at once.")


@pytest.mark.slow
def test_a_page_outlives_the_replica_that_was_answering(
    chromium: Browser, url: str, tmp_path: Path
) -> None:
    with faulty_server({"x": SLOW, "y": SLOW}) as models:
        roster = write_roster(tmp_path / "roster.toml", models, "x", "y")
        with (
            replicas(tmp_path, url, roster, ARENA_PAGE="1") as served,
            person(chromium, Served(served.url, url)) as ada,
        ):
            ada.play(until="streaming")
            first = ada.battle_id
            ada.page.reload()
            ada.wait_for("streaming")
            answer = ada.page.locator("#answer-a")
            answer.get_by_text("On and on.").first.wait_for()  # as another replica tells it
            served.kill_runner_of(first)
            ada.wait_for("interrupted")
            assert "Nothing was counted" in ada.text("#hint")
            models.behaviours |= {"x": QUICK, "y": QUICK}
            ada.page.locator("[data-do=again]").click()
            ada.wait_for("ready")
            ada.cast("tie")
            assert list(logged(url).values("battle")) == [ada.battle_id] != [first]
