"""Names are the words of the field: no participle stands for a thing."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NO_NOUNS = {"found", "said", "told", "heard", "kept", "listed"}
REPLACED = {
    "sieve": "vote filter",
    "surprise": "log-likelihood",
    "chance": "probability",
    "chances": "probabilities",
    "placeeffect": "position effect",
}
STATUS = {"NOT_FOUND", "not_found"}
"""What HTTP calls a status."""


def definitions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Give every name that a module defines: variables, parameters, fields, functions, classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not name.startswith("test_"):  # a sentence
                    yield name, node.lineno


def fault(name: str) -> bool:
    bare = name.strip("_").lower()
    parts = bare.split("_")
    return bare in NO_NOUNS or parts[-1] in NO_NOUNS - {"found"} or bare in REPLACED


@pytest.mark.parametrize("house", ["rating", "judge", "arena", "tests", "benchmarks", "docs"])
def test_no_name_is_a_participle_or_a_word_that_the_field_does_not_use(house: str) -> None:
    faults = []
    for file in sorted((ROOT / house).rglob("*.py")):
        where = file.relative_to(ROOT)
        if fault(file.stem) and not file.stem.startswith("test_"):
            faults.append(f"{where}: the module's name")
        tree = ast.parse(file.read_text(encoding="utf-8"))
        faults += [
            f"{where}:{line}: {name}"
            for name, line in definitions(tree)
            if fault(name) and name not in STATUS
        ]
    assert faults == []


def test_a_planted_name_is_caught() -> None:
    planted = "def f(told):\n    found = 1\n    self.kept: int = 2\nclass Sieve: ...\n"
    names = [name for name, _ in definitions(ast.parse(planted)) if fault(name)]
    assert sorted(names) == ["Sieve", "found", "kept", "told"]
