"""What MkDocs is told while it builds the site: pages from programs, formulas, `llms.txt`."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure import StructureItem
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

from docs.site.public import undocumented
from docs.site.reference import pages
from judge.render.text import mathml

ROOT = Path(__file__).parents[2]
BROUGHT_IN = {"changelog.md": "CHANGELOG.md"}
"""Pages of the site, and where they lie outside of the documents."""
LINK = re.compile(r"\[([^\]]*)\]\((?!https?://|mailto:|#)([^)#\s]*)(#[^)\s]*)?\)")
FORMULA = re.compile(
    r"(<(?:span|div) class=\"arithmatex\">)\\([(\[])(.*?)\\[)\]](?=</)", re.DOTALL
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Refuse to build with a public name that has no documentation, and list the decisions.

    Anchors are those of a code host, so that links hold in both places.
    """
    if faults := undocumented():
        msg = "Public, and without documentation: " + ", ".join(faults)
        raise PluginError(msg)
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    decisions = sorted(Path(config.docs_dir, "decisions").glob("*.md"))
    for section in config.nav or ():
        if section.get("Decisions"):
            section["Decisions"] = [f"decisions/{decision.name}" for decision in decisions]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are written from the programs, or lie outside of the documents."""
    for place, text in pages().items():
        files.append(File.generated(config, place, content=text))
    for place, origin in BROUGHT_IN.items():
        text = (ROOT / origin).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=moved(text, origin)))
    return files


def moved(text: str, origin: str) -> str:
    """Make links of a file of the repository hold beside the documents."""

    def link(match: re.Match[str]) -> str:
        target = (ROOT / origin).parent.joinpath(match[2]).resolve()
        place = target.relative_to(ROOT).as_posix()
        beside = place.removeprefix("docs/") if place.startswith("docs/") else f"../{place}"
        return f"[{match[1]}]({beside}{match[3] or ''})"

    return LINK.sub(link, text)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Name the files of the repository that are no pages, instead of leading there."""
    folder = Path(config.docs_dir, page.file.src_uri).parent

    def link(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        if not match[2] or target.is_relative_to(config.docs_dir):
            return match[0]
        place = target.relative_to(ROOT).as_posix()
        for here, origin in BROUGHT_IN.items():
            if place == origin:
                up = "../" * page.file.src_uri.count("/")
                return f"[{match[1]}]({up}{here}{match[3] or ''})"
        return f"`{place}`" if place.endswith(match[1].strip("`/")) else f"{match[1]} (`{place}`)"

    return LINK.sub(link, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Set formulas as MathML, which browsers show without a script."""

    def formula(match: re.Match[str]) -> str:
        tex = unescape(match[3]).strip()
        shown = mathml(tex, display=match[2] == "[")
        if shown is None:
            msg = f"{page.file.src_uri}: the formula {tex!r} cannot be set."
            raise PluginError(msg)
        return match[1] + shown

    return FORMULA.sub(formula, html)


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Remember the order of the pages, for `llms.txt`."""
    config.extra["order"] = nav
    return nav


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Lay each page's Markdown beside it."""
    place = Path(config.site_dir, page.file.src_uri)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(page.markdown or "", encoding="utf-8")
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Write `llms.txt`: every page, in order, with what it begins with (llmstxt.org)."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for item in config.extra["order"].items:
        lines += [f"## {item.title}", "", *map(_line, _pages_of(item)), ""]
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines), encoding="utf-8")


def _pages_of(item: StructureItem) -> Iterator[Page]:
    if isinstance(item, Page):
        yield item
    elif isinstance(item, Section):
        for child in item.children:
            yield from _pages_of(child)


def _line(page: Page) -> str:
    return f"- [{page.title}]({page.file.src_uri}): {beginning(page.markdown or '')}"


def beginning(markdown: str) -> str:
    r"""Give the first sentence of a page.

    >>> beginning("# Rate\n\nVotes [go in](x.md). Ratings come out.")
    'Votes go in.'
    """
    text = re.sub(r"^```.*?^```$|^#[^\n]*$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    blocks = [block.strip() for block in text.split("\n\n")]
    prose = next((block for block in blocks if re.match(r"[\w`\[]|\*\*", block)), "")
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(prose.split()))
    return re.split(r"(?<=[.?!]) ", words.replace("**", ""))[0]
