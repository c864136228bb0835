"""Names and texts that others chose, as each kind of output shows them: nothing in them acts.

One function for each kind of output. `visible` is in all of them but CSV and a database, which are
read back.
"""

import csv
import io
import re
import shlex
from collections.abc import Iterable
from html import escape
from typing import Any

REPLACED = "\ufffd"
LINES = "\n\r\t"
"""What stays in a text of several lines."""

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, ends of lines, what turns the direction of writing, halves of pairs."""

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that some database cannot hold."""

_FORMULA = r"'*[=+\-@\t\r\n＝＋－＠](?s:.*)"
"""What a spreadsheet would run; with apostrophes before it, so that one can be taken off again."""

_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"

_MARKDOWN = re.compile(r"[\\`*_\[\]<>#|~&$]")

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        REPLACED: "?",
        **{c: f"\\{c}" for c in "&%$#_{}"},
    }
)


def in_shell(word: str) -> str:
    r"""Quote a word of a command for a shell, with escapes for what a terminal would obey.

    >>> print(in_shell("a b"), in_shell("a\x1b'"))
    'a b' $'a\u001b\''
    """
    if not _UNSEEN.search(word):
        return shlex.quote(word)
    parts = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + _UNSEEN.sub(lambda one: f"\\u{ord(one[0]):04x}", parts) + "'"


def visible_rows(rows: Iterable[Iterable[str]], keep: str = "") -> list[list[str]]:
    """Return the cells of a table as `visible` does each."""
    return [[visible(cell, keep) for cell in row] for row in rows]


def visible(text: str, keep: str = "") -> str:
    r"""Replace what a terminal obeys, what breaks a line and what turns the writing by U+FFFD.

    Parameters
    ----------
    keep : str
        Characters that stay as they are, such as ends of lines.

    Examples
    --------
    >>> visible("\x1b[31mred\x07") == "\ufffd[31mred\ufffd"
    True
    """
    return _UNSEEN.sub(lambda match: match[0] if match[0] in keep else REPLACED, text)


def shown(value: Any) -> Any:
    """Give what a template shows: of a text what `visible` leaves, and its lines."""
    is_text = isinstance(value, str) and not hasattr(value, "__html__")
    return visible(value, LINES) if is_text else value


def storable(text: str) -> str:
    """Give a text as a database has it: what none can hold becomes U+FFFD.

    PostgreSQL refuses the character NUL, and UTF-8 has no half of a surrogate pair.
    """
    return UNSTORABLE.sub(REPLACED, text)


def in_html(text: str) -> str:
    """Write a text into HTML or SVG."""
    return escape(visible(text))


def in_json(text: str) -> str:
    """Write what `visible` would replace as JSON's own escapes: the values stay what they are."""
    return _UNSEEN.sub(
        lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text
    )


def in_markdown(text: str) -> str:
    r"""Write a text on one line of Markdown, or in a cell of a table.

    Examples
    --------
    >>> in_markdown("a|b [c](d)")
    'a\\|b \\[c\\](d)'
    """
    return _MARKDOWN.sub(r"\\\g<0>", visible(text))


def in_latex(text: str) -> str:
    """Write a text on one line of LaTeX, or in a cell of a table."""
    return visible(text).translate(_LATEX)


def in_csv(value: object) -> object:
    """Write a cell of CSV: a text that a spreadsheet would run gets an apostrophe before it.

    Numbers stay, also such as are text: ``-1.5`` runs nothing. `from_csv_sql` takes it off again.

    Examples
    --------
    >>> [in_csv(value) for value in ("=1+1", "-1.5", "'@x", -2, "x")]
    ["'=1+1", '-1.5', "''@x", -2, 'x']
    """
    if not isinstance(value, str) or not re.fullmatch(_FORMULA, value):
        return value
    return value if re.fullmatch(_NUMBER, value) else f"'{value}"


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    r"""Write lines of CSV; only a writer that ends them by CR LF puts quotes around either.

    >>> csv_text([("a", "=1"), (1.5, None)])
    "a,'=1\n1.5,\n"
    """
    lines = []
    for row in rows:
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\r\n").writerow(map(in_csv, row))
        lines.append(out.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def in_csv_sql(column: str) -> str:
    """Give the expression of SQL that does to a column of text what `in_csv` does to a value."""
    runs, number = (f"regexp_full_match({column}, {literal(p)})" for p in (_FORMULA, _NUMBER))
    return f"CASE WHEN {runs} AND NOT {number} THEN '''' || {column} ELSE {column} END"


def from_csv(row: Iterable[str]) -> list[str]:
    """Take off the apostrophes that `in_csv` wrote."""
    return [cell[1:] if re.fullmatch(f"'{_FORMULA}", cell) else cell for cell in row]


def from_csv_sql(columns: Iterable[str]) -> str:
    """Give the columns of SQL, each with what `from_csv` does to a text done to its cells."""
    parts = []
    for name in map(quoted, columns):
        written = f"starts_with({name}, '''') AND regexp_full_match({name}, {literal(_FORMULA)})"
        parts.append(f"CASE WHEN {written} THEN substr({name}, 2) ELSE {name} END AS {name}")
    return ", ".join(parts)


def quoted(name: str) -> str:
    """Write the name of a column into SQL."""
    return '"' + name.replace('"', '""') + '"'


def all_quoted(names: Iterable[str]) -> str:
    """Write the names of columns into SQL, with commas."""
    return ", ".join(map(quoted, names))


def literal(text: str) -> str:
    """Write a text into SQL."""
    return "'" + text.replace("'", "''") + "'"
