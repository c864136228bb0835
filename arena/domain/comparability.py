"""Whether entrants, or boards, can be compared: in which conditions of theirs they differ."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from arena.domain.model import Model

Card = Mapping[str, object]
"""Conditions under which something answered or was rated, by name."""

CONDITIONS = {
    "temperature": "temperature",
    "top_p": "top-p",
    "max_tokens": "max tokens",
    "max_completion_tokens": "max tokens",
    "max_output_tokens": "max tokens",
    "tools": "tools",
    "tool_choice": "tool choice",
    "chat_template": "template",
    "template": "template",
    "chat_template_kwargs": "template arguments",
    "system_prompt": "system prompt",
    "max_turns": "turns",
}
"""What requests and boards call a condition, and its name here; others keep theirs."""
INCIDENTAL = ("version", "updated", "data_hash")
"""What differs between boards that were made in the same way."""
LONGEST = 60
"""Characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A condition that is not the same for all.

    Attributes
    ----------
    values : tuple of (str, tuple of str)
        Each value as people read it, and who has it.
    """

    condition: str
    values: tuple[tuple[str, tuple[str, ...]], ...]


def card_of(model: Model) -> Card:
    """Give the conditions under which a model of the roster answers."""
    return {
        "kind": model.kind.value,
        "system prompt": model.system_prompt or None,
        "turns": "one" if model.endpoint.startswith("recorded://") else "any",
        **({"without": model.lacking} if model.lacking else {}),
        **_named(model.decoding),
    }


def card_of_board(content: Mapping[str, Any]) -> Card:
    """Give the conditions of a board that was written as JSON: its method, and what it names."""
    method = content.get("method")
    named = {name: content[name] for name in (*CONDITIONS, "judge", "turns") if name in content}
    of_method = method if isinstance(method, Mapping) else {"method": method}
    conditions = {name: value for name, value in of_method.items() if name not in INCIDENTAL}
    return _named({**conditions, **named})


def differences(cards: Mapping[str, Card]) -> tuple[Difference, ...]:
    """Name the conditions in which cards differ, with who has which value.

    A condition that a card does not have is another than any value: who leaves the temperature
    out gets the endpoint's own.

    Examples
    --------
    >>> differences({"a": {"temperature": 1}, "b": {"temperature": 1.0}, "c": {}})[0].values
    (('1', ('a', 'b')), ('not set', ('c',)))
    """
    conditions = dict.fromkeys(name for card in cards.values() for name in card)
    each = (Difference(name, tuple(_by_value(name, cards))) for name in conditions)
    return tuple(one for one in each if len(one.values) > 1)


def _named(conditions: Mapping[str, object]) -> dict[str, object]:
    return {CONDITIONS.get(name, name): value for name, value in conditions.items()}


def _by_value(condition: str, cards: Mapping[str, Card]) -> Iterator[tuple[str, tuple[str, ...]]]:
    groups: list[tuple[object, list[str]]] = []
    for name, card in cards.items():
        value = card.get(condition)
        for known, names in groups:
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                names.append(name)
                break
        else:
            groups.append((value, [name]))
    return ((_shown(value), tuple(names)) for value, names in groups)


def _shown(value: object) -> str:
    """Write a value; of a long one the beginning, and a hash that tells it from others."""
    if value is None:
        return "not set"
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… (sha256 {sha256(text.encode()).hexdigest()[:8]})"
