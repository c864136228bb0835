"""TRL's preferences as pairs: what was chosen stands on a side that is drawn by the texts."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import takewhile
from typing import Any

import numpy as np

from rating.tables.files import json_or_text

Talk = list[Mapping[str, Any]]
"""Messages, each with ``role`` and ``content``."""
Texts = str | list[str] | Talk
COLUMNS = ("prompt", "response_a", "response_b", "model_a", "model_b", "label")
NAMES = ("chosen", "rejected")


def pair_of(prompt: object, chosen: object, rejected: object) -> dict[str, Any]:
    """Give a preference as a pair with a label; all None where no question is told apart.

    Texts, or messages, of which those that both sides begin with are the prompt where there is
    none. Half the pairs have what was chosen on side A: a judge that favours a side gains nothing.

    Examples
    --------
    >>> pair_of("2 + 2?", "4", "5")["label"]
    'model_a'
    """
    parts = _parted(*map(_read, (prompt, chosen, rejected)))
    if parts is None:
        return dict.fromkeys(COLUMNS)
    asked, *answers = parts
    drawn = sha256(json.dumps(parts, sort_keys=True).encode()).digest()
    turn = -1 if drawn[0] % 2 else 1
    (name_a, name_b), (a, b) = NAMES[::turn], answers[::turn]
    label = "model_a" if turn == 1 else "model_b"
    return dict(zip(COLUMNS, (asked, a, b, name_a, name_b, label), strict=True))


def _read(cell: object) -> Any:
    """Give a text, or messages as a list; of a CSV they are JSON."""
    value = cell.tolist() if isinstance(cell, np.ndarray) else cell
    if isinstance(cell, str) and cell.startswith("[{"):
        value = json_or_text(cell)
    return value if _is_talk(value) else cell


def _is_talk(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict)
        and isinstance(one.get("content"), str)
        and isinstance(one.get("role"), str)
        for one in value
    )


def _parted(prompt: Any, chosen: Any, rejected: Any) -> tuple[Texts, Texts, Texts] | None:
    """Part a preference into what was asked and two answers, turn by turn where each has some."""
    if isinstance(chosen, str) and isinstance(rejected, str):
        return (prompt, chosen, rejected) if isinstance(prompt, str) and prompt else None
    if not (_is_talk(chosen) and _is_talk(rejected) and chosen and rejected):
        return None
    if prompt is None:
        n = _alike(chosen, rejected)
        prompt, chosen, rejected = chosen[:n], chosen[n:], rejected[n:]
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    if not _is_talk(prompt):
        return None
    if len(chosen) == len(rejected) == 1:
        fits = (
            prompt and prompt[-1]["role"] == "user" and _roles(chosen + rejected) == {"assistant"}
        )
        return (prompt, chosen[0]["content"], rejected[0]["content"]) if fits else None
    talks = [_turns(prompt + side) for side in (chosen, rejected)]
    (asked, a), (also_asked, b) = talks
    fits = asked and asked == also_asked and len(a) == len(b) == len(asked)
    return (asked, a, b) if fits else None


def _alike(chosen: Talk, rejected: Talk) -> int:
    """Count the messages that both begin with, but for the last."""
    pairs = list(zip(chosen, rejected, strict=False))[:-1]
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _roles(talk: Talk) -> set[str]:
    return {str(one["role"]) for one in talk}


def _turns(talk: Talk) -> tuple[list[str], list[str]]:
    """Give what the user says and what is answered; nothing where they do not take turns."""
    asked, answered = talk[::2], talk[1::2]
    if _roles(asked) != {"user"} or _roles(answered) != {"assistant"}:
        return [], []
    return [one["content"] for one in asked], [one["content"] for one in answered]


def columns_of(
    prompt: Iterable[object], chosen: Iterable[object], rejected: Iterable[object]
) -> dict[str, list[Any]]:
    """Give `COLUMNS` of rows."""
    pairs = [pair_of(*row) for row in zip(prompt, chosen, rejected, strict=True)]
    return {name: [pair[name] for pair in pairs] for name in COLUMNS}
