"""The battle page as it is sent: one document, and nothing in it from elsewhere."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import unescape
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from arena.domain.model import Roster
from arena.endpoints.local import LOADING, VARIANTS
from arena.endpoints.offline import POCKET_MODELS
from arena.parts import EXAMPLES, _examples
from arena.ui import battle_page
from arena.ui.battle_page import MODULES, STORED, VERSION, add_assets, page_router
from tests.arena.pages.page import Page
from tests.open_pages import open_pages, parts_of
from tests.sqlite import new_sqlite

HOSTILE = '</script><script>alert(1)</script>"> {{ 7*7 }} **x**'
LINES = "Write:\n\n  1. a loop\n\n`code` & <b>"
ADDRESS = re.compile(r'(?:src|href)="([^"]+)"')


@contextmanager
def client(*prompts: str, recorded: bool = False, **more: Any) -> Iterator[TestClient]:
    battles: Any = SimpleNamespace(prompts=prompts if recorded else None, offered=tuple)
    with parts_of() as parts:
        app = open_pages(page_router(replace(parts, examples=prompts, battles=battles, **more)))
        add_assets(app)
        with TestClient(app) as visitor:
            yield visitor


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    with client("Why is the sky blue?") as visitor:
        yield visitor.get("/").text


def test_where_others_can_read_a_battle_the_page_says_so_before_anybody_writes(page: str) -> None:
    public = "Once you have voted, everyone here can read the battle."
    with parts_of(show_battles=True) as parts, TestClient(open_pages(page_router(parts))) as one:
        assert (public in page, public in one.get("/").text) == (False, True)


def test_the_document_asks_only_the_arena(page: str) -> None:
    assert {address[0] for address in ADDRESS.findall(page)} == {"/", "#"}
    assert not any(address.startswith("//") for address in ADDRESS.findall(page))
    assert "gradio.app" not in page
    assert "githubusercontent" not in page
    assert not re.search("manifest|iframe-?resizer.*src", page, re.IGNORECASE)


def test_all_that_it_loads_is_there(page: str) -> None:
    assets = [address for address in ADDRESS.findall(page) if address.startswith("/assets/")]
    assert len(assets) == 2
    with client() as visitor:
        answers = [visitor.get(address) for address in [*assets, "/theme.css"]]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert json.loads(STORED.read_text())["version"] == version("gradio")
    assert "immutable" in answers[0].headers["Cache-Control"]


def test_what_gradio_brings_is_compressed(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Gradio teaches Python another type of scripts once its own page is asked for.
    monkeypatch.setattr("starlette.responses.guess_type", lambda *_: ("text/plain", None))
    with client() as visitor:
        for path in re.findall(r'"(/assets/[^"]+)"', page):
            packed = visitor.get(path)
            plain = visitor.get(path, headers={"Accept-Encoding": "identity"})
            assert packed.headers["Content-Encoding"] == "gzip"
            assert packed.headers["Content-Type"] == plain.headers["Content-Type"]
            assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
            assert packed.content == plain.content
            assert int(packed.headers["Content-Length"]) < len(plain.content) / 2
        assert visitor.get("/assets/nothing.js").status_code == 404


def test_the_first_paint_has_what_the_page_has_without_a_script(page: str) -> None:
    first = Page(page)
    assert "Which answer is better?" in page
    assert first.all("textarea")[0]["placeholder"] == "Ask anything…"
    shown = {meta.get("property"): meta.get("content") for meta in first.all("meta")}
    assert shown["og:title"] == "Arena: which answer is better?"
    assert shown["og:image"] == "http://testserver/look/preview.png"


def test_a_small_model_beside_others_says_how_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(battle_page, "local_model", lambda: SimpleNamespace(state=LOADING))
    with client(LINES, models=(VARIANTS[0], POCKET_MODELS[0])) as visitor:
        assert str(LOADING) in visitor.get("/").text


def test_prompts_to_try_are_what_all_models_can_answer() -> None:
    toy, far = POCKET_MODELS[0], replace(POCKET_MODELS[0], endpoint="http://localhost/v1")
    own = [_examples(Roster((toy, other)))[0] for other in (POCKET_MODELS[1], far, VARIANTS[0])]
    assert own == ["What does yield do?", EXAMPLES[0], "Why is the sky blue?"]


@pytest.mark.parametrize("prompt", [HOSTILE, LINES])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_prompt_to_try_is_shown_to_the_letter_and_nothing_in_it_acts(
    prompt: str, recorded: bool
) -> None:
    with client(prompt, recorded=recorded) as visitor:
        page = visitor.get("/").text
    chips = re.findall(r"<button[^>]*data-ask><span>(.*?)</span>", page, re.DOTALL)
    assert [unescape(chip) for chip in chips] == [prompt]
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    "path", ["/config", "/gradio_api/info", "/gradio_api/queue/join", "/login", "/manifest.json"]
)
def test_nothing_else_of_gradio_is_served(path: str) -> None:
    with client() as visitor:
        assert visitor.get(path).status_code == 404
        assert visitor.post(path, json={}).status_code == 404


def test_no_file_outside_the_assets_is_served() -> None:
    with client() as visitor:
        for path in ("%2e%2e/index.html", "..%2findex.html", "..%2f..%2f..%2f__init__.py"):
            assert visitor.get(f"/assets/{path}").status_code == 404


def test_a_gradio_that_begins_in_another_way_is_named(tmp_path: Path) -> None:
    from arena.ui import gradio_parts  # takes seconds to load, and no other test needs it

    (tmp_path / "gradio.js").write_text('import("./assets/index-1.js");')
    with pytest.raises(RuntimeError, match=r"gradio\.js of Gradio .* does not import one script"):
        gradio_parts._parts(tmp_path)
    (tmp_path / "assets").mkdir()
    for name in ("index-1.js", "index-1.css", "index-2.css"):
        (tmp_path / "assets" / name).touch()
    with pytest.raises(RuntimeError, match=r"Gradio .* has 2 files assets/index"):
        gradio_parts._parts(tmp_path)


@pytest.mark.slow
def test_another_version_of_gradio_is_asked_and_the_locked_one_gives_what_is_stored() -> None:
    script = (
        "import json; from arena.ui import battle_page; "
        "battle_page.version = lambda name: 'another'; "
        "print(json.dumps(battle_page._of_gradio()))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE)
    stored = json.loads(STORED.read_text())
    assert json.loads(done.stdout) == stored, "python -m arena.ui.gradio_parts > gradio.json"


def test_the_process_that_serves_loads_no_gradio(tmp_path: Path) -> None:
    script = (
        "import sys; from arena.ui.battle_page import page_router, _of_gradio; "
        "from arena.parts import build; from arena.settings import read_settings; "
        f"page_router(build(read_settings(database={new_sqlite(tmp_path)!r}))); "
        "assert _of_gradio()['theme']; "
        "assert not {'gradio', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_scripts_of_the_page_are_stored_under_their_version_alone(page: str) -> None:
    scripts = [address for address in ADDRESS.findall(page) if address.startswith("/look/")]
    ours = [address for address in scripts if f"/{VERSION}/" in address]
    assert {Path(address).stem for address in ours} == {*MODULES, "gradio", "battle"}
    with client() as visitor:
        for address in ours:
            assert "immutable" in visitor.get(address).headers["Cache-Control"]
            other = visitor.get(address.replace(VERSION, "00000000"))
            assert (other.status_code, other.headers["Cache-Control"]) == (200, "no-store")


def test_each_script_imports_only_what_is_before_it() -> None:
    for place, name in enumerate(MODULES):
        text = (battle_page.STATIC / f"{name}.js").read_text()
        imported = re.findall(r'from "\./(\w+)\.js"', text)
        assert set(imported) <= set(MODULES[:place]), name
