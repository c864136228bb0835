"""A toy that judges: it prefers the longer answer, and so shows how judging works, not well."""

import random
import re

_ANSWERS = re.compile(
    r"^\[begin answer ([AB]) (\w+)\]\n(.*?)\n\[end answer \1 \2\]$", re.DOTALL | re.MULTILINE
)


class LongerAnswer:
    """Compares the lengths of two fenced answers, and ends with a verdict in double brackets."""

    def answer(self, prompt: str, rng: random.Random) -> str:
        """Say which answer is longer, or that there are not two."""
        lengths = {side: len(text) for side, _, text in _ANSWERS.findall(prompt)}
        if len(lengths) != 2:
            return "There are no two answers here to compare."
        a, b = lengths["A"], lengths["B"]
        verdict = "C" if a == b else "A" if a > b else "B"
        return f"Answer A has {a} characters, answer B has {b}.\n[[{verdict}]]"
