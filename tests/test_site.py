"""The site of the documents: nothing public is missing, and it asks for nothing outside."""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from inspect import cleandoc
from pathlib import Path
from threading import Thread

import pytest
from cyclopts import App, CycloptsError
from playwright.sync_api import Browser, Page, Route
from ruamel.yaml import YAML

from arena.cli import application
from docs.site import public
from docs.site.hooks import beginning
from docs.site.reference import described, entry, signature
from tests.browser.conftest import chromium  # noqa: F401 - a fixture
from tests.command import captured

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "docs").glob("*/[a-z]*.md"))
BLOCK = re.compile(r"```(?:sh|text|yaml)\n(.*?)```|^((?:    [^\n]+\n)+)", re.DOTALL | re.MULTILINE)
LINE = re.compile(r"^\s*(?:- run: )?(?:\$ )?(?:\w+=\S+ )*arena ([a-z].*)$", re.MULTILINE)


def test_nothing_public_is_without_documentation() -> None:
    assert public.undocumented() == []


def test_planted_names_without_documentation_are_caught() -> None:
    @dataclass
    class Bare:
        field: int

        def act(self) -> None: ...

    def silent() -> None: ...

    def spoken() -> None:
        """Speak."""

    things = {"Bare": Bare, "silent": silent, "spoken": spoken}
    assert list(public.undocumented_names(things)) == ["Bare", "Bare.act", "silent"]


def test_a_planted_option_and_a_planted_command_are_caught() -> None:
    app = App(name="rate", help="Rate.")

    @app.default
    def rate(source: str, *, level: float = 0.95) -> None:
        """Rate.

        Parameters
        ----------
        source
            Votes.
        """

    odd = App(name="odd")

    @odd.default
    def silent() -> None: ...

    assert list(public.undocumented_options("rate", app)) == ["arena rate --level"]
    assert list(public.undocumented_options("odd", odd)) == ["arena odd"]


def test_a_planted_route_is_caught() -> None:
    described_api = {
        "paths": {
            "/a": {"get": {"description": "Read.", "parameters": [{"name": "n", "in": "query"}]}},
            "/b": {"post": {}},
        }
    }
    assert list(public.undocumented_routes(described_api)) == ["GET /a n", "POST /b"]


def test_every_page_has_a_place_in_the_site() -> None:
    config = YAML(typ="safe").load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    places = set(re.findall(r"[\w./-]+\.md", str(config["nav"])))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in DOCUMENTS}
    assert sorted(pages - places) == []


def commands_of(text: str) -> Iterator[list[str]]:
    """Give the words of every command in a page's blocks, without what a shell does with them."""
    for block in BLOCK.finditer(text):
        for line in LINE.findall((block[1] or block[2]).replace("\\\n", " ")):
            yield shlex.split(re.split(r" [|>&]", line)[0], comments=True)


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_on_a_page_is_one_with_such_options(page: Path) -> None:
    for words in commands_of(page.read_text(encoding="utf-8")):
        application(words).parse_args(words, print_error=False, exit_on_error=False)


def test_a_planted_command_with_an_option_that_is_none_is_caught() -> None:
    page = "As in\n\n    arena rate votes.csv --tie half   # wrong\n\n"
    page += "```sh\narena rates x | cat\n```\n"
    planted = list(commands_of(page))
    assert planted == [["rate", "votes.csv", "--tie", "half"], ["rates", "x"]]
    for words in planted:
        with pytest.raises(CycloptsError):
            application(words).parse_args(words, print_error=False, exit_on_error=False)


def test_a_docstring_becomes_markdown() -> None:
    text = cleandoc("""Give a mean::

        sum(x) / n

    as in [1]_.

    Parameters
    ----------
    x : ndarray of shape (n,)
        The values.

    Raises
    ------
    DataError
        If there is none.

    References
    ----------
    .. [1] A. Author, "A title", 1952,
       pp. 1-2.

    Examples
    --------
    >>> 1 + 1
    2
    """)
    assert described(text) == (
        "Give a mean:\n\n    sum(x) / n\n\nas in [1].\n\n*Parameters*\n\n"
        "-   `x : ndarray of shape (n,)`\n\n    The values.\n\n*Raises*\n\n"
        "-   `DataError`\n\n    If there is none.\n\n*References*\n\n"
        '[1] A. Author, "A title", 1952,\npp. 1-2.\n\n*Examples*\n\n```pycon\n>>> 1 + 1\n2\n```'
    )


def test_the_reference_has_the_signature_of_the_source() -> None:
    rate = public.members("rating")["rate"]
    assert signature(rate).startswith("rate(")
    assert "```python\nrate(" in entry("rate", rate)
    assert beginning("# Rate\n\nVotes [go in](x.md). Ratings come out.") == "Votes go in."


LEFT = "net::ERR_ABORTED"
"""What becomes of a request when its page is left."""


class Outside(HTMLParser):
    """Collects what a page would load from elsewhere; links that a person follows are none."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        for name in ("src", "srcset", "data", "poster", "style", *(("href",) * (tag == "link"))):
            if re.search(r"(?:https?:)?//", values.get(name, "")):
                self.loaded.append(f"{tag} {name}={values[name]}")


def outside(html: str) -> list[str]:
    parser = Outside()
    parser.feed(html)
    return parser.loaded


def test_what_a_page_would_load_from_elsewhere_is_seen() -> None:
    assert outside('<a href="https://x.example">x</a><img src="a.png">') == []
    assert outside('<script src="//cdn.example/x.js"></script>') != []
    assert outside('<link rel="stylesheet" href="https://fonts.example/x.css">') != []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as by `make docs`."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    built = captured(words, ROOT, os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    return folder


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    assert [fault for page in pages for fault in outside(page.read_text("utf-8"))] == []
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(?:https?:)?//|@import", style.read_text("utf-8"))
    assert "<math" in (site / "methods.html").read_text("utf-8")
    commands = (site / "reference" / "commands.html").read_text("utf-8")
    assert "arena study raters" in commands


@pytest.mark.slow
def test_llms_txt_names_every_page_and_each_is_there_in_markdown(site: Path) -> None:
    text = (site / "llms.txt").read_text("utf-8")
    assert text.startswith("# Arena\n\n> A self-hosted arena")
    named = re.findall(r"\]\(([^)]+)\)", text)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in DOCUMENTS}
    assert pages <= set(named)
    for place in named:
        assert (site / place).read_text("utf-8").lstrip().startswith(("# ", "<"))


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    """Address at which the built site is served."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.browser
def test_a_browser_without_a_network_shows_pages_of_every_kind_and_searches(
    site: Path,
    served: str,
    chromium: Browser,  # noqa: F811
) -> None:
    faults: list[str] = []
    page = chromium.new_page(viewport={"width": 390, "height": 800})
    _watch(page, served, faults)
    kinds = ("index", "methods", "rate", "deploy", "tutorials/*", "reference/*", "decisions/0021*")
    for file in [file for kind in kinds for file in sorted(site.glob(f"{kind}.html"))]:
        page.goto(f"{served}/{file.relative_to(site)}", wait_until="networkidle")
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > 390:
            faults.append(f"{file.name} is {wide} wide")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").press_sequentially("jackknife")
    page.locator(".md-search-result__link").first.wait_for()
    page.close()
    assert faults == []


def _watch(page: Page, served: str, faults: list[str]) -> None:
    """Let nothing but the site be asked for, and note what goes wrong except leaving a page."""

    def only_ours(route: Route) -> None:
        if route.request.url.startswith(served):
            route.continue_()
        else:
            faults.append(f"asked for {route.request.url}")
            route.abort()

    page.route("**/*", only_ours)

    def note(fails: object, what: object, url: str) -> None:
        faults.extend([f"{what} {url}"] if fails else [])

    page.on("requestfailed", lambda ask: note(ask.failure != LEFT, ask.failure, ask.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("response", lambda answer: note(not answer.ok, answer.status, answer.url))
