"""What people use from Python, in a terminal and over HTTP, and what lacks documentation."""

import inspect
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from secrets import token_hex
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any, Literal, get_args, get_origin

from cyclopts import App

from arena.app import create_app
from arena.cli import COMMANDS, application
from arena.settings import read_settings

FACES = ("rating", "judge", "arena.judging")
"""Modules whose `__all__` is for everybody."""
METHODS = (FunctionType, classmethod, staticmethod, property, cached_property)


def members(face: str) -> dict[str, Any]:
    """Give the public names of a module, and what they stand for."""
    module = import_module(face)
    return {name: getattr(module, name) for name in sorted(module.__all__)}


def methods(kind: type) -> dict[str, Any]:
    """Give the public methods and properties that a class defines."""
    return {
        name: value
        for name, value in vars(kind).items()
        if isinstance(value, METHODS) and not name.startswith("_")
    }


def docstring(thing: Any) -> str:
    """Give a docstring; the signature that a dataclass has where none was written is none.

    Of a type that is one of some words, which can have no docstring, it names the words.
    """
    if get_origin(thing) is Literal:
        return "One of " + ", ".join(f"`{word}`" for word in get_args(thing)) + "."
    text = inspect.cleandoc(thing.__doc__ or "")
    return "" if text.startswith(f"{getattr(thing, '__name__', '')}(") else text


def command(line: str) -> tuple[App, ...]:
    """Give the command of some words, such as ``judge run``, after those that it belongs to."""
    words = line.split()
    apps = [application([*words, "--help"])]
    for word in words:
        apps.append(apps[-1][word])
    return tuple(apps)


def schema() -> dict[str, Any]:
    """Give the description of the HTTP API, as the arena serves it."""
    with TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/arena.db"
        settings = read_settings(database=database, page=False, secret_key=token_hex())
        return create_app(settings).openapi()


def operations(described: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each route, such as ``GET /health/live``, and what is known of it."""
    for path, methods_of_path in described["paths"].items():
        for method, operation in methods_of_path.items():
            yield f"{method.upper()} {path}", operation


def undocumented() -> list[str]:
    """Name whatever is public and has no documentation."""
    things = {f"{face}.{name}": thing for face in FACES for name, thing in members(face).items()}
    return [
        *undocumented_names(things),
        *(fault for line in COMMANDS for fault in undocumented_options(line, *command(line))),
        *undocumented_routes(schema()),
    ]


def undocumented_names(things: Mapping[str, Any]) -> Iterator[str]:
    """Name the functions, classes and methods without a docstring."""
    for name, thing in things.items():
        if not docstring(thing):
            yield name
        if isinstance(thing, type):
            yield from (f"{name}.{own}" for own, of in methods(thing).items() if not docstring(of))


def undocumented_options(line: str, *apps: App) -> Iterator[str]:
    """Name a command without help, and its arguments and options without."""
    app = apps[-1]
    if not app.help:
        yield f"arena {line}"
    with app.app_stack(apps):
        arguments = app.assemble_argument_collection(parse_docstring=True)
    for argument in arguments:
        if argument.show and not argument.parameter.help:
            yield f"arena {line} {argument.name}"


def undocumented_routes(described: Mapping[str, Any]) -> Iterator[str]:
    """Name the routes without a description, and their parameters without."""
    for route, operation in operations(described):
        if not operation.get("description"):
            yield route
        for parameter in operation.get("parameters", ()):
            if parameter["in"] != "header" and not parameter.get("description"):
                yield f"{route} {parameter['name']}"
