"""A toy that judges: it prefers the longer answer, and so shows how judging works, not well."""

import json
import random
import re
from collections.abc import Sequence

_BLOCK = re.compile(r"^\[begin ([\w ]+?) (\w+)\]\n(.*?)\n\[end \1 \2\]$", re.DOTALL | re.MULTILINE)
_SCALE = re.compile(r"from (\d+) to (\d+), in double")
_POINTS = ("at length", "with reasons", "with an example", "with details", "to the end")


class LongerAnswer:
    """Counts the characters of fenced answers, and replies in whichever form it is asked for."""

    def answer(self, prompt: str, rng: random.Random) -> str:
        """Give a verdict on two answers, a mark to one, or questions where there is none."""
        blocks = list(_BLOCK.finditer(prompt))
        asked = prompt[blocks[-1].end() :] if blocks else prompt
        lengths = [len(b[3]) for b in blocks if b[1].split()[0] in ("answer", "reply")]
        items = next((b[3].splitlines() for b in blocks if b[1] == "list"), None)
        if len(lengths) == 2:
            return _compared(lengths[0], lengths[1], asked)
        if len(lengths) == 1:
            return _marked(lengths[0], asked) if items is None else _checked(lengths[0], items)
        if blocks and "One question a line" in asked:
            return "\n".join(f"- Does it answer {point}?" for point in _POINTS)
        return "There are no answers here to judge."


def _compared(a: int, b: int, asked: str) -> str:
    """Name the longer; much better is what is twice as long."""
    better, worse = ("A", "B") if a > b else ("B", "A")
    much = max(a, b) >= 2 * min(a, b)
    said = f"Answer A has {a} characters, answer B has {b}."
    if '"choice"' in asked:
        choice = "A=B" if a == b else better + "+" * (1 + much)
        return json.dumps({"comparison": said, "choice": choice})
    if "its label alone" in asked:
        return "m" if a >= b else "M"
    if "How many of them" in asked:
        return f"[[{round(100 * a / max(a + b, 1))}]]"
    if "[[A>>B]]" in asked:
        return f"{said}\n[[A=B]]" if a == b else f"{said}\n[[{better}{'>' * (1 + much)}{worse}]]"
    return f"{said}\n[[{'C' if a == b else better}]]"


def _marked(length: int, asked: str) -> str:
    """Give a point for every twenty characters, within the scale."""
    if '"score"' in asked:
        score = min(10, 1 + length // 20)
        return json.dumps({"strengths": f"It has {length} characters.", "score": score})
    scale = _SCALE.search(asked)
    low, high = (int(scale[1]), int(scale[2])) if scale else (1, 10)
    return f"It has {length} characters.\n[[{min(high, low + length // 20)}]]"


def _checked(length: int, items: Sequence[str]) -> str:
    """Say yes to as many items as there are twenty characters."""
    return "\n".join(
        f"{length} characters - {number}: [[{'yes' if length >= 20 * number else 'no'}]]"
        for number, _ in enumerate(items, start=1)
    )
