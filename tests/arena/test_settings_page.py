"""The page of all settings, docs/reference/settings.md: made of what arena/settings.py says."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

from arena.settings import FROM_FILES, MOST, Settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
TABLE = re.compile(r"^\| variable .*\n(?:\|.*\n)+", re.MULTILINE)
HEAD = "| variable | type | default | meaning |\n|---|---|---|---|\n"
FIRST = ["host", "members_only", "roster", "page", "max_dollars_per_day"]
"""The first setting of each table of the page."""
TYPES = {"path": "path", "password": "text", "string": "text"}
DEFAULTS = {"": "none", "None": "none", "True": "`true`", "False": "`false`"}


def meanings() -> dict[str, str]:
    """Read what is written below each setting."""
    [settings] = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(settings, ast.ClassDef)
    return {
        ast.unparse(one.target): inspect.cleandoc(ast.literal_eval(below.value))
        for one, below in zip(settings.body, settings.body[1:], strict=False)
        if isinstance(one, ast.AnnAssign) and isinstance(below, ast.Expr)
    }


def type_of(schema: dict[str, Any]) -> str:
    """Name what a setting takes, and its bounds."""
    if choices := ["true", "false"] if schema.get("type") == "boolean" else schema.get("enum"):
        *most, last = (f"`{choice}`" for choice in choices)
        return f"{', '.join(most)} or {last}"
    words = str(TYPES.get(schema.get("format", schema["type"]), schema["type"]))
    if "exclusiveMinimum" in schema:
        words += f" above {schema['exclusiveMinimum']}"
    if "minimum" in schema:
        words += f" from {schema['minimum']:,}"
    return words + (f" to {schema['maximum']:,}" if schema.get("maximum", MOST) < MOST else "")


def rows() -> dict[str, str]:
    """Write the row of each setting."""
    schema = Settings.model_json_schema()
    texts, written = meanings(), {}
    for name, field in Settings.model_fields.items():
        own = schema["properties"][name]
        [own] = [one for one in own.get("anyOf", [own]) if one.get("type") != "null"]
        kind = type_of(schema["$defs"][own["$ref"].rpartition("/")[2]] if "$ref" in own else own)
        default = DEFAULTS.get(str(field.default), f"`{field.default}`")
        written[name] = f"| `ARENA_{name.upper()}` | {kind} | {default} | {texts[name]} |\n"
    return written


def test_the_page_has_each_setting_with_its_type_default_and_meaning() -> None:
    """Write the tables again where they differ: what changed is then seen in the document."""
    before, written = DOCUMENT.read_text(encoding="utf-8"), rows()
    starts = [list(written).index(name) for name in FIRST]
    each = [list(written.values())[a:b] for a, b in zip(starts, [*starts[1:], None], strict=True)]
    tables = iter(f"{HEAD}{''.join(of_table)}" for of_table in each)
    now = TABLE.sub(lambda _: next(tables), before)
    if now != before:
        DOCUMENT.write_text(now, encoding="utf-8")
    assert now == before
    assert [*tables] == []


def test_the_page_names_the_settings_that_can_come_from_files() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [name for name in FROM_FILES if f"`ARENA_{name.upper()}_FILE`" not in text] == []
