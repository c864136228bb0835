r"""TeX as MathML, which browsers set without a script, or nothing where it cannot be trusted.

The text is hostile. latex2mathml copies characters of a formula into its markup unescaped and
takes lengths and links as they come, so its elements are copied here one by one: known names,
known attributes, lengths within bounds.
"""

import re
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import zip_longest
from xml.etree.ElementTree import Element, tostring

from latex2mathml.commands import FUNCTIONS
from latex2mathml.converter import convert_to_element

LONGEST_FORMULA = 4000
DEEPEST_FORMULA = 30
LONGEST_SPACE_EM = 10

_TAGS = (
    "math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow "
    "mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none"
)
TAGS = frozenset(_TAGS.split())
_ATTRIBUTES = (
    "accent accentunder columnalign columnlines columnspacing depth display displaystyle "
    "fence form height largeop linethickness linebreak lspace mathvariant maxsize minsize "
    "movablelimits notation rowspacing rspace scriptlevel separator stretchy symmetric width"
)
ATTRIBUTES = frozenset(_ATTRIBUTES.split())

_LENGTHS = frozenset({"width", "height", "depth", "lspace", "rspace", "maxsize", "minsize"})
_LENGTH = re.compile(r"(-?(?:\d+(?:\.\d+)?|\.\d+))(em|ex|mu|pt|px|%)?")
_UNITS_PER_EM = {"em": 1, "ex": 2, "mu": 18, "pt": 10, "px": 16, "%": 100, None: 1}
_ENVIRONMENT = re.compile(
    r"\\(?P<edge>begin|end)\s*\{(?P<name>align|aligned|alignat|alignedat|flalign|eqnarray|split"
    r"|equation|gather|gathered|multline)\*?\}(?P<columns>\{\d+\})?"
)
_ALIGNED = {"align", "aligned", "alignat", "alignedat", "flalign", "eqnarray", "split"}
_UNSHOWN = re.compile(r"\\(?:label\{[^{}]*\}|nonumber\b|notag\b)")
_FUNCTION_NAMES = frozenset(name.removeprefix("\\") for name in FUNCTIONS)
_UNDER = {"lim", "liminf", "limsup", "max", "min", "sup", "inf", "argmax", "argmin"}
"""Functions whose subscript stands below them in a formula of its own."""
_ROWS = frozenset({"math", "mrow", "mstyle", "mtd", "mphantom", "msqrt"})
_SCRIPTS = frozenset({"msub", "msup", "msubsup", "munder", "mover", "munderover"})


class UntrustedFormulaError(ValueError):
    """MathML with names that are not known here, or that shows TeX which was not understood."""


def mathml(tex: str, *, display: bool) -> str | None:
    r"""Set a formula, or give None where it is empty, too large, or not understood whole.

    Parameters
    ----------
    tex : str
        Without its dollars or brackets.
    display : bool
        A formula of its own rather than one within a line.

    Examples
    --------
    >>> mathml("x^2", display=False)
    '<math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'
    >>> mathml(r"\unknown{x}", display=False)
    """
    if not tex.strip() or len(tex) > LONGEST_FORMULA or _depth(tex) > DEEPEST_FORMULA:
        return None
    shown_as = "block" if display else "inline"
    try:
        element = convert_to_element(_with_known_environments(tex), xmlns="", display=shown_as)
    except Exception:  # noqa: BLE001 - hostile TeX makes the library raise nearly anything
        return None
    try:
        safe = _copied(element)
    except UntrustedFormulaError:
        return None
    safe.attrib = {"display": shown_as}
    if not "".join(safe.itertext()).strip():
        return None
    return tostring(safe, encoding="unicode", short_empty_elements=False)


def _depth(tex: str) -> int:
    """Count how many groups lie in each other at most."""
    depth = deepest = 0
    for mark in re.findall(r"\\.|[{}]|\\(?:begin|end|left|right)\b", tex):
        depth += (mark == "{") - (mark == "}")
        deepest = max(deepest, depth)
    return deepest


def _with_known_environments(tex: str) -> str:
    """Write the environments of amsmath with the ones that latex2mathml sets."""

    def known(match: re.Match[str]) -> str:
        return f"\\{match['edge']}{{{'align*' if match['name'] in _ALIGNED else 'matrix'}}}"

    return _ENVIRONMENT.sub(known, _UNSHOWN.sub("", tex))


def _copied(element: Element) -> Element:
    """Copy an element with what is known of it; `UntrustedFormulaError` if that is not all."""
    if element.tag not in TAGS:
        raise UntrustedFormulaError(element.tag)
    copy = Element(element.tag, {k: v for k, v in element.attrib.items() if _is_safe(k, v)})
    copy.text = unescape(element.text or "")
    if "\\" in copy.text or (copy.text == "&" and element.tag == "mi"):
        raise UntrustedFormulaError(copy.text)
    children = [_copied(child) for child in element]
    if element.tag == "msub" and children[0].text in _UNDER:
        copy.tag = "munder"
        children[0].set("movablelimits", "true")
    copy.extend(list(_spaced(children)) if element.tag in _ROWS else children)
    return copy


def _is_safe(name: str, value: str) -> bool:
    """Tell whether an attribute may stay; `UntrustedFormulaError` for a space out of bounds."""
    if name not in _LENGTHS:
        return name in ATTRIBUTES
    length = _LENGTH.fullmatch(value.strip().removeprefix("+"))
    if length is None:
        return False
    if abs(float(length[1])) / _UNITS_PER_EM[length[2]] > LONGEST_SPACE_EM:
        raise UntrustedFormulaError(value)
    return True


def _spaced(children: Sequence[Element]) -> Iterator[Element]:
    """Put a thin space between a function's name and what stands beside it, as TeX does."""
    for child, following in zip_longest(children, children[1:]):
        yield child
        if following is None or {child.tag, following.tag} & {"mo", "mspace"}:
            continue
        if _is_function(child) or _is_function(following):
            yield Element("mspace", {"width": "0.167em"})


def _is_function(element: Element) -> bool:
    if element.tag in _SCRIPTS:
        return _is_function(element[0])
    return element.tag in {"mi", "mo"} and element.text in _FUNCTION_NAMES
