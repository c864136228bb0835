"""A picture that can be written: PNG and SVG with its caption, HTML with its table as well."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rating.errors import DataError
from rating.tables.escaping import in_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ThemeName = Literal["light", "dark"]

FORMATS = (".png", ".svg", ".html")
DPI = 200

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial"],
    "font.size": 7.5,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "arena",
    "svg.id": None,
    "axes.linewidth": 0.6,
    "path.simplify": False,
}
"""Text stays text, names are never mathematics, and the same picture has the same bytes."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by their part, all different: in HTML each becomes a property of the page."""

    ground: str
    ink: str
    muted: str
    faint: str
    over: str
    under: str


THEMES: Mapping[str, Theme] = {
    "light": Theme("#ffffff", "#000000", "#555555", "#d9d9d9", "#3a78b5", "#cf7a32"),
    "dark": Theme("#141412", "#e9e9e4", "#a9a9a2", "#3d3d39", "#3f7fc0", "#b5662a"),
}


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers behind a picture, as they are printed."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, its caption, and the numbers behind it.

    Attributes
    ----------
    title : str
        Heading of the page and title of the SVG; not drawn.
    caption : str
        Number of votes, method, date, and what is left out.
    names : tuple of str
        Models, in full: the description of the SVG, where a drawn name may be shortened.
    draw : callable
        Gives the figure, from a theme and the caption to draw below it ("" for none).
    """

    title: str
    caption: str
    names: tuple[str, ...]
    table: Table
    draw: Callable[[Theme, str], "Figure"]

    def write(self, path: Path, *, theme: ThemeName = "light") -> None:
        """Write a file of the kind that its ending names; the same picture gives the same bytes.

        Parameters
        ----------
        path : Path
            Ends in ``.png``, ``.svg`` or ``.html``. The page holds both themes.

        Raises
        ------
        DataError
            If the ending is another, or the file cannot be written.
        """
        render = {".png": self._png, ".svg": self._svg, ".html": self._html}.get(path.suffix)
        if render is None:
            msg = f"Cannot draw {str(path)!r}: name a file that ends in {', '.join(FORMATS)}."
            raise DataError(msg)
        try:
            path.write_bytes(render(THEMES[theme]))
        except OSError as error:
            msg = f"Cannot write {str(path)!r}: {error.strerror}."
            raise DataError(msg) from error

    def _repr_png_(self) -> bytes:
        return self._png(THEMES["light"])

    def _png(self, theme: Theme) -> bytes:
        with drawing():
            return _saved(self.draw(theme, self.caption), "png", {"Software": None})

    def _svg(self, theme: Theme) -> bytes:
        return self._vector(theme, self.caption).encode()

    def _html(self, theme: Theme) -> bytes:
        light = THEMES["light"]
        svg = self._vector(light, "")[len(_XML_HEAD) :]
        names = {colour: f"var(--{part})" for part, colour in _parts(light)}
        colours = re.compile("|".join(names))
        svg = re.sub("<[^>]*>", lambda tag: colours.sub(lambda c: names[c[0]], tag[0]), svg)
        return _PAGE.format(
            title=in_html(self.title),
            light=_properties(light),
            dark=_properties(THEMES["dark"]),
            svg=svg,
            caption=in_html(self.caption),
            table=_table(self.table),
        ).encode()

    def _vector(self, theme: Theme, caption: str) -> str:
        about = {"Date": None, "Creator": None, "Format": None, "Type": None}
        with drawing():
            drawn = _saved(self.draw(theme, caption), "svg", about).decode()
        body = drawn[drawn.index("<svg") :]
        body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, count=1, flags=re.DOTALL)
        named = in_html("; ".join(self.names))
        described = f"<title>{in_html(self.title)}</title>\n <desc>{named}</desc>"
        return _XML_HEAD + re.sub(
            r"<svg[^>]*>", lambda tag: f'{tag[0][:-1]} role="img">\n {described}', body, count=1
        )


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the house style; a script that no font has is drawn as boxes, without a warning."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        msg = (
            "Pictures need matplotlib. Install the arena with its extra 'plots': "
            "pip install '.[plots]'."
        )
        raise DataError(msg) from error
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # nobody's own settings
        mpl.rcParams.update(STYLE)
        warnings.filterwarnings("ignore", message=r".*(Glyph|does not support)")
        yield


def _saved(figure: "Figure", kind: str, metadata: Mapping[str, str | None]) -> bytes:
    out = BytesIO()
    figure.savefig(out, format=kind, dpi=DPI, metadata=dict(metadata))
    return out.getvalue()


def _parts(theme: Theme) -> list[tuple[str, str]]:
    return list(zip((f.name for f in fields(theme)), astuple(theme), strict=True))


def _properties(theme: Theme) -> str:
    return " ".join(f"--{part}: {colour};" for part, colour in _parts(theme))


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{in_html(cell)}</th>' for cell in table.head)
    rows = "\n".join(f"<tr>{_cells(row)}</tr>" for row in table.rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"


def _cells(row: Sequence[str]) -> str:
    return "".join(f"<td><bdi>{in_html(cell)}</bdi></td>" for cell in row)


_XML_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
:root {{ {light} }}
@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}
body {{ margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--ground);
 color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 1.3rem; }}
figure {{ margin: 0; overflow-x: auto; }}
svg {{ max-width: 100%; height: auto; }}
figcaption {{ color: var(--muted); max-width: 45rem; }}
table {{ border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .15rem .7rem; border-bottom: 1px solid var(--faint); text-align: right; }}
th:first-child, td:first-child {{ text-align: left; overflow-wrap: anywhere; }}
@media print {{ :root {{ {light} }} }}
</style>
</head>
<body>
<h1>{title}</h1>
<figure>
{svg}<figcaption>{caption}</figcaption>
</figure>
<details open><summary>The numbers</summary>
{table}
</details>
</body>
</html>
"""
