"""The keys of a method's file, and what each may be."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rating.errors import DataError

FIELDS = (
    *("prompt", "response_a", "response_b", "turns_a", "turns_b"),
    *("reference", "checklist", "rubric"),
)
"""What a template may show: of the case, and of the rules that it is judged by."""

SCORES = (
    *("alpaca_eval", "arena_hard", "llmbar", "marks", "pairwise", "wildbench"),
    "wildbench_reward",
)
"""What `arena judge score` may make of the verdicts."""

GRAMMARS: Mapping[str, frozenset[str]] = {
    "bracketed": frozenset({"verdicts"}),
    "keyed": frozenset({"key", "verdicts"}),
    "bracketed_mark": frozenset({"scale", "fractions"}),
    "keyed_mark": frozenset({"key", "scale", "fractions"}),
    "label_probability": frozenset({"labels"}),
    "lone_label": frozenset({"labels"}),
    "answers": frozenset(),
    "questions": frozenset({"scale"}),
}
"""The grammars of `judge.grammar`, by the names of their functions, and the keys of each."""

OPTIONAL = frozenset({"fractions"})
"""Keys that a grammar may have."""
OF_PAIRS = ("bracketed", "keyed", "label_probability", "lone_label")
"""Grammars that read which of two responses is preferred."""
OF_ONE = ("answers", "questions")
"""Grammars that never do."""

VERDICT = re.compile(r"[A-Z](?:[<>=+]{1,3}[A-Z]?)?")
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,59}")


@dataclass(frozen=True, slots=True)
class Key:
    """What a key may be.

    Attributes
    ----------
    allows : callable
        Whether a value is one.
    wanted : str
        What to give, for the error.
    """

    allows: Callable[[Any], bool]
    wanted: str
    required: bool = False


Keys = Mapping[str, Key]


def _line(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\n" not in value


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _lines(value: Any) -> bool:
    return isinstance(value, list) and all(map(_line, value))


def _whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _number(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: type(value) in (int, float) and low <= value <= high


def _one_of(names: Iterable[str]) -> Callable[[Any], bool]:
    known = frozenset(names)
    return lambda value: isinstance(value, str) and value in known


def _fields(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(map(_one_of(FIELDS), value))
        and len(set(value)) == len(value)
    )


def is_scale(value: Any) -> bool:
    """Whether a value is two whole marks that run upwards within 0 and 999."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(map(_whole(0, 999), value))
        and value[0] < value[1]
    )


def _verdicts(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(VERDICT.fullmatch(name) for name in value)
        and all(map(_number(0, 1), value.values()))
        and any(share > 0.5 for share in value.values())
        and any(share < 0.5 for share in value.values())
    )


def _labels(value: Any) -> bool:
    words = isinstance(value, list) and all(
        isinstance(one, str) and re.fullmatch(r"\w{1,16}", one) for one in value
    )
    return words and len(value) == len(set(value)) == 2


def _table(value: Any) -> bool:
    return isinstance(value, dict)


TOP: Keys = {
    "about": Key(_line, "one line that says what is asked", required=True),
    "source": Key(_line, "one line that says where the method comes from"),
    "score": Key(_one_of(SCORES), f"one of {', '.join(SCORES)}"),
    "fields": Key(_fields, f"a list of some of {', '.join(FIELDS)}, each once", required=True),
    "orders": Key(_one_of(("both", "one")), '"both", or "one" that is drawn for each pair'),
    "samples": Key(_whole(1, 100), "a whole number from 1 to 100"),
    "fallback": Key(_line, "the name of a method, or a file beside this one that ends in .toml"),
    "length_margin": Key(_whole(0, 1_000_000), "a whole number of characters"),
    "changes": Key(_lines, "a list of sentences, one for each difference from the source"),
    "reply": Key(_table, "a table [reply]", required=True),
    "decoding": Key(_table, "a table [decoding]", required=True),
    "template": Key(
        lambda value: _table(value) or _line(value),
        "a table [template], or the name of a published method, for its words",
        required=True,
    ),
}
REPLY: Keys = {
    "grammar": Key(_one_of(GRAMMARS), f"one of {', '.join(GRAMMARS)}", required=True),
    "verdicts": Key(
        _verdicts,
        "a table from verdicts such as A, A>>B or A++ to how far the first response is preferred, "
        "from 0 to 1, some above and some below .5",
    ),
    "key": Key(
        lambda value: isinstance(value, str) and re.fullmatch(r"[\w -]{1,60}", value) is not None,
        "a key of JSON, in letters, digits, _ and -",
    ),
    "scale": Key(is_scale, "the lowest and the highest mark within 0 and 999, as in [1, 10]"),
    "fractions": Key(
        lambda value: isinstance(value, bool), "true or false: whether marks such as 7.5 count"
    ),
    "labels": Key(_labels, 'two words of which the first is for the first, as in ["m", "M"]'),
}
DECODING: Keys = {
    "max_tokens": Key(_whole(1, 1_000_000), "a whole number from 1 on", required=True),
    "temperature": Key(_number(0, 2), "a number from 0 to 2, or nothing to send none"),
    "top_logprobs": Key(_whole(1, 20), "a whole number from 1 to 20"),
    "json_object": Key(lambda value: isinstance(value, bool), "true or false"),
    "expected_tokens": Key(_whole(1, 1_000_000), "the usual tokens of a reply, from 1 on"),
}
TEMPLATE: Keys = {
    "system": Key(_text, "the words of the system message", required=True),
    "user": Key(_text, "the words of the user's message", required=True),
    "given": Key(
        lambda value: _table(value) and {*value} == {"reference"} and _text(value["reference"]),
        "a table with reference: the words at its place where a case has a right answer",
    ),
}


def require_keys(source: str, table: str, values: Mapping[str, Any], keys: Keys) -> None:
    """Raise `DataError` unless a table has the keys that it must, no others, and fit values.

    Parameters
    ----------
    source : str
        The file, for the error.
    table : str
        Such as ``[reply]``; empty for the keys above all tables.
    """
    where = f"{source!r}{f', {table}' if table else ''}"
    for name, value in values.items():
        if name not in keys:
            msg = f"{where}: there is no key {name!r}: use {', '.join(keys)}."
            raise DataError(msg)
        if not keys[name].allows(value):
            msg = f"{where}: {name} is {value!r}: give {keys[name].wanted}."
            raise DataError(msg)
    for name, key in keys.items():
        if key.required and name not in values:
            msg = f"{where}: the key {name!r} is missing: give {key.wanted}."
            raise DataError(msg)
