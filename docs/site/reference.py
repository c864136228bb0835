"""The pages of the reference, written from the programs themselves."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from types import FunctionType
from typing import Any

from cyclopts.docs.markdown import generate_markdown_docs

from arena.cli import COMMANDS
from docs.site.public import FACES, command, docstring, members, methods, operations, schema

WIDEST = 84
PROBLEM = {"$ref": "#/components/schemas/Problem"}
HEADING = re.compile(r"^([A-Z][\w ]+)\n-{3,}\n", re.MULTILINE)
NAMED = ("Parameters", "Attributes", "Returns", "Yields", "Raises")
"""Sections of a docstring that name things, one after the other."""


def pages() -> dict[str, str]:
    """Give each page, in Markdown, by its place in the documents."""
    return {
        "reference/commands.md": commands_page(),
        "reference/http.md": http_page(schema()),
        **{f"reference/{face}.md": python_page(face) for face in FACES},
    }


def python_page(face: str) -> str:
    """Write down what a module gives to everybody."""
    about = prose(docstring(import_module(face)))
    entries = [entry(name, thing) for name, thing in members(face).items()]
    return "\n\n".join([f"# `{face}`", about, *entries]) + "\n"


def entry(name: str, thing: Any) -> str:
    """Write down a function, or a class with its methods."""
    parts = [f"## `{name}`"]
    if isinstance(thing, type | FunctionType):
        parts.append(f"```python\n{signature(thing)}\n```")
    parts.append(described(docstring(thing)))
    if isinstance(thing, type):
        for own, method in methods(thing).items():
            parts += [f"**`{called(own, method)}`**", described(docstring(method))]
    return "\n\n".join(parts)


def signature(thing: Any) -> str:
    """Give the head of a function, or of a class with its fields, as the source has it."""
    node = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    match node:
        case ast.ClassDef():
            bases = ", ".join(map(ast.unparse, node.bases))
            fields = [ast.unparse(n) for n in node.body if isinstance(n, ast.AnnAssign)]
            shown = [f"    {field}" for field in fields if not field.startswith("_")]
            head = f"class {node.name}({bases})" if bases else f"class {node.name}"
            return "\n".join([head, *shown])
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            arguments = list(parameters(node.args))
            line = f"{node.name}({', '.join(arguments)}){result}"
            if len(line) <= WIDEST:
                return line
            return "\n".join([f"{node.name}(", *(f"    {a}," for a in arguments), f"){result}"])
    msg = f"{thing!r} is neither a function nor a class: it has no signature."
    raise TypeError(msg)


def parameters(arguments: ast.arguments) -> Iterator[str]:
    """Give each parameter as the source has it, without ``self`` and ``cls``."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = len(positional) - len(arguments.defaults)
    defaults = [None] * missing + list(arguments.defaults)
    for argument, default in zip(positional, defaults, strict=True):
        if argument.arg not in ("self", "cls"):
            yield _with_default(argument, default)
    if arguments.vararg:
        yield f"*{ast.unparse(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _with_default(argument, default)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _with_default(argument: ast.arg, default: ast.expr | None) -> str:
    shown = ast.unparse(argument)
    return shown if default is None else f"{shown} = {ast.unparse(default)}"


def called(name: str, method: Any) -> str:
    """Give a method as it is called, or the name of a property."""
    if isinstance(method, property | cached_property):
        return name
    function = getattr(method, "__func__", method)
    return re.sub(r"\s+", " ", signature(function)).replace("( ", "(").replace(", )", ")")


def described(text: str) -> str:
    """Write a docstring of the numpy convention as Markdown."""
    summary, *sections = HEADING.split(text)
    parts = [prose(summary)]
    for heading, body in zip(sections[::2], sections[1::2], strict=True):
        parts += [f"*{heading}*", items(body) if heading in NAMED else prose(body)]
    return "\n\n".join(parts)


def items(body: str) -> str:
    """Write parameters, results or errors, each with what is said of it, as a list."""
    each = filter(None, re.split(r"^(?=\S)", body, flags=re.MULTILINE))
    return "\n".join(map(_item, each)).strip()


def _item(text: str) -> str:
    name, _, about = text.strip().partition("\n")
    shown = prose(textwrap.dedent(about))
    return f"-   `{name}`\n" + (textwrap.indent(f"\n{shown}\n", "    ") if shown else "")


def prose(text: str) -> str:
    """Turn what docstrings write for readers of the source into Markdown."""
    text = re.sub(r"::$", ":", text.strip("\n"), flags=re.MULTILINE)
    text = re.sub(r"\[(\d+)\]_", r"[\1]", text)
    text = re.sub(r"^\.\. (\[\d+\])", r"\n\1", text, flags=re.MULTILINE)
    text = re.sub(r"^   (?=\S)", "", text, flags=re.MULTILINE)  # a reference goes on
    text = re.sub(r"(^>>> .*?)(?=\n\n|\Z)", r"```pycon\n\1\n```", text, flags=re.DOTALL | re.M)
    return text.strip("\n")


def commands_page() -> str:
    """Write down every command with its options, from its own help."""
    intro = "Every command and option, as `arena COMMAND --help` has them."
    parts = ["# Commands", f"{intro} [Commands by task](../index.md#commands-by-task)"]
    for line in COMMANDS:
        apps = command(line)
        app = apps[-1]
        with app.app_stack(apps):
            shown = generate_markdown_docs(
                app,
                recursive=False,
                heading_level=2,
                command_chain=["arena", *line.split()],
                generate_toc=False,
                commands_filter=[],  # a command's own commands have entries of their own
            )
        parts.append(shown)
        if examples := re.findall(r"^`(.*)`$", app.help_epilogue or "", re.MULTILINE):
            parts.append("\n".join(["```sh", *examples, "```"]))
    return "\n\n".join(parts) + "\n"


def http_page(described_api: dict[str, Any]) -> str:
    """Write down every route of the HTTP API, from its description."""
    parts = [
        "# HTTP",
        "Every route of the HTTP API, as `/api/openapi.json` of an arena describes it. "
        "The [guide](../guides/embed.md#http-api) has an example.",
    ]
    for route, operation in operations(described_api):
        parts += [f"## `{route}`", operation["description"], *_of_operation(operation)]
    parts.append("## What is sent")
    for name, model in described_api["components"]["schemas"].items():
        parts += [f"### `{name}`", described(model.get("description", "")), _fields(model)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _of_operation(operation: dict[str, Any]) -> Iterator[str]:
    rows = [
        f"| `{one['name']}` | {one['in']} | {one.get('description', '')} |"
        for one in operation.get("parameters", ())
    ]
    if rows:
        yield "\n".join(["| parameter | in | |", "|---|---|---|", *rows])
    if "requestBody" in operation:
        yield f"Takes {_content(operation['requestBody'])}."
    refused = [status for status in operation["responses"] if status >= "4"]
    for status, answer in operation["responses"].items():
        if status not in refused:
            yield f"{status}: {_content(answer) or answer['description']}."
    if refused:
        yield f"Refused with {', '.join(refused)}: {_type(PROBLEM)}."


def _content(described_body: dict[str, Any]) -> str:
    """Name what a request or an answer holds."""
    shapes = [body.get("schema", {}) for body in described_body.get("content", {}).values()]
    return ", ".join(dict.fromkeys(filter(None, map(_type, shapes))))


def _fields(model: dict[str, Any]) -> str:
    if "enum" in model:
        return "One of " + ", ".join(f"`{value}`" for value in model["enum"]) + "."
    rows = [
        f"| `{name}` | {_type(field)} | {field.get('description', '')} |"
        for name, field in model.get("properties", {}).items()
    ]
    return "\n".join(["| field | type | |", "|---|---|---|", *rows])


def _type(field: dict[str, Any]) -> str:
    """Name a type in words, with a link to what has fields of its own."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(map(_type, field["anyOf"]))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    if "const" in field:
        return f"`{field['const']}`"
    return str(field.get("format") or field.get("type") or "")
