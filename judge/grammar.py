"""Closed grammars: find the verdict that a judge was offered, or nothing.

One rule for all: the last thing that has the shape of a verdict counts, and only if it is one of
those offered. Whatever else the text holds is noise. A judge that thinks aloud names several
verdicts and means the last; one that ends on a verdict which was not offered has given none,
even if it named a valid one on the way.
"""

import math
import re
from collections.abc import Mapping, Sequence

from judge.completion import TokenLogprob

SIDES: Mapping[str, float] = {"A": 1.0, "B": 0.0, "C": 0.5}
"""Preference for the response shown first by plain verdict; C is a tie."""

ARROWS: Mapping[str, float] = {"A>>B": 1.0, "A>B": 0.75, "A=B": 0.5, "B>A": 0.25, "B>>A": 0.0}
"""Preference for the response shown first by five-level verdict in brackets."""

PLUSES: Mapping[str, float] = {"A++": 1.0, "A+": 0.75, "A=B": 0.5, "B+": 0.25, "B++": 0.0}
"""Preference for the response shown first by five-level choice in JSON."""

_BRACKETED = re.compile(r"\[\[ *([^\[\]\s]{1,8}) *\]\]")
_ITEM = re.compile(r"(\d{1,3})[.:)]? *\[\[ *([^\[\]\s]{1,8}) *\]\]")
_NUMBER = re.compile(r"[0-9]{1,3}")
_LETTERS = re.compile(r"[A-Z](?:[<>=+]+[A-Z]?)?", re.IGNORECASE)
_BULLET = re.compile(r"^ *[-*] +(\S[^\n]*\?) *$", re.MULTILINE)
_AROUND = " \t\r\n.\"'`*[]()"


def label_probability(
    tokens: Sequence[TokenLogprob], labels: tuple[str, str] = ("m", "M")
) -> float | None:
    """Return the probability of the first label against the second, at the first token.

    ``P = e^lp_1 / (e^lp_1 + e^lp_2)``, a label that is not among the alternatives having
    probability 0. A label with white space around it is the same label, and its mass is added.

    Returns
    -------
    float or None
        None if neither label is among the alternatives: the judge did not answer the question.

    References
    ----------
    .. [1] Y. Dubois et al., "Length-Controlled AlpacaEval", 2024, and the parser of weighted
       annotators in its code. There white space makes another token, which is dropped.

    Examples
    --------
    >>> top = {"m": math.log(0.6), "M": math.log(0.2), "x": math.log(0.1)}
    >>> round(label_probability([TokenLogprob("m", math.log(0.6), top)]), 12)
    0.75
    >>> label_probability([TokenLogprob("x", -0.1, {"y": -2.0})]) is None
    True
    """
    if not tokens:
        return None
    seen = {tokens[0].token: tokens[0].logprob} | dict(tokens[0].top)
    first, second = (_mass(seen, label) for label in labels)
    peak = max(first, second)
    if not math.isfinite(peak):
        return None
    first, second = math.exp(first - peak), math.exp(second - peak)
    return first / (first + second)


def lone_label(text: str, labels: tuple[str, str] = ("m", "M")) -> float | None:
    """Return 1 if the text is the first label and nothing else, 0 if the second, else None.

    Quotation marks, brackets and a full stop around it are no more than dress.

    Examples
    --------
    >>> lone_label('"M".'), lone_label("I prefer m") is None
    (0.0, True)
    """
    return {labels[0]: 1.0, labels[1]: 0.0}.get(text.strip(_AROUND))


def bracketed(text: str, offered: Mapping[str, float]) -> float | None:
    """Return the value of the last verdict such as ``[[A]]`` or ``[[A>>B]]``.

    Upper and lower case are one. Brackets around anything without the shape of a verdict, such
    as a footnote's number, are noise.

    Examples
    --------
    >>> bracketed("At first [[B]], but on reflection [[A]] (see [[1]]).", SIDES)
    1.0
    >>> bracketed("[[A]]? No: [[D]].", SIDES) is None
    True
    """
    found = [verdict for verdict in _BRACKETED.findall(text) if _LETTERS.fullmatch(verdict)]
    return offered.get(found[-1].upper()) if found else None


def keyed(text: str, key: str, offered: Mapping[str, float]) -> float | None:
    """Return the value of the last ``"key": "verdict"`` of JSON, wherever it stands.

    The object around it may be fenced, preceded by prose or broken. A quoted key inside another
    string is escaped there, and does not match.

    Examples
    --------
    >>> keyed('Here: {"reason": "...", "choice": "A+"}', "choice", PLUSES)
    0.75
    >>> keyed('{"choice": "A+++"}', "choice", PLUSES) is None
    True
    """
    found = re.findall(rf'"{re.escape(key)}" *: *"([^"\n]*)"', text)
    return offered.get(found[-1].strip()) if found else None


def keyed_mark(text: str, key: str, low: int, high: int) -> int | None:
    """Return the last whole mark of JSON, as in ``"score": 7`` or ``"score": "7"``.

    A mark off the scale, a fraction or a word was not offered.

    Examples
    --------
    >>> keyed_mark('{"strengths": "...", "score": "8"}', "score", 1, 10)
    8
    >>> keyed_mark('{"score": 11}', "score", 1, 10) is None
    True
    """
    found = re.findall(rf'"{re.escape(key)}" *: *"?([^"\s,}}\]]*)', text)
    return _whole(found[-1], low, high) if found else None


def bracketed_mark(text: str, low: int, high: int) -> int | None:
    """Return the last whole mark in double brackets, as in ``[[7]]``.

    Examples
    --------
    >>> bracketed_mark("Not [[5]] but [[7]], all told [[ok]].", 1, 10)
    7
    >>> bracketed_mark("[[7]], or rather [[7.5]]", 1, 10) is None
    True
    """
    found = [mark for mark in _BRACKETED.findall(text) if mark[0] in "0123456789-+."]
    return _whole(found[-1], low, high) if found else None


def answers(text: str, n_items: int) -> tuple[bool | None, ...]:
    r"""Return yes or no by item, from ``3: [[yes]]``; the last verdict on an item counts.

    Items are numbered from 1. None where there is no verdict, or one that was not offered.

    Examples
    --------
    >>> answers("1: [[yes]]\n2: [[no]]\n2: [[maybe]]\n4: [[yes]]", 3)
    (True, None, None)
    """
    said = {int(number): verdict.lower() for number, verdict in _ITEM.findall(text)}
    return tuple({"yes": True, "no": False}.get(said.get(i, "")) for i in range(1, n_items + 1))


def questions(text: str, low: int, high: int) -> tuple[str, ...] | None:
    r"""Return the bullets that end in a question mark, if there are as many as were asked for.

    Examples
    --------
    >>> questions("Here:\n- Is it short?\n- Is it kind?\nGood luck", 2, 5)
    ('Is it short?', 'Is it kind?')
    >>> questions("- Is it short?", 2, 5) is None
    True
    """
    found = tuple(dict.fromkeys(_BULLET.findall(text)))
    return found if low <= len(found) <= high else None


def _mass(seen: Mapping[str, float], label: str) -> float:
    """Log of the probability of all spellings of a label; minus infinity if there is none."""
    spelt = [value for token, value in seen.items() if token.strip() == label]
    peak = max(spelt, default=-math.inf)
    if not math.isfinite(peak):
        return -math.inf
    return peak + math.log(sum(math.exp(value - peak) for value in spelt))


def _whole(text: str, low: int, high: int) -> int | None:
    """Whole number written in ASCII digits within bounds, or None."""
    if not _NUMBER.fullmatch(text):
        return None
    return int(text) if low <= int(text) <= high else None
