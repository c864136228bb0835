"""Family ``detectable_format``: lists, sections, highlights, titles, JSON, fixed answers."""

import json
import re
from dataclasses import dataclass

_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")


@dataclass(frozen=True, slots=True)
class NumberOfBulletLists:
    """Exactly so many lines that begin with ``-`` or with one ``*``.

    As upstream, a rule ``---`` counts and a line in bold does not. Upstream
    takes an asterisk alone on its line for a point as well.
    """

    num_bullets: int

    def follows(self, response: str) -> bool:
        """Count points."""
        return sum(map(_is_point, response.split("\n"))) == self.num_bullets


@dataclass(frozen=True, slots=True)
class ConstrainedResponse:
    """One of IFEval's three answers appears: "My answer is yes.", "no." or "maybe."."""

    def follows(self, response: str) -> bool:
        """Look for each answer, case included."""
        return any(answer in response for answer in _ANSWERS)


@dataclass(frozen=True, slots=True)
class NumberOfHighlightedSections:
    """At least so many texts between ``*`` or ``**``, each within a line.

    As upstream, one between ``***`` counts twice.

    Examples
    --------
    >>> NumberOfHighlightedSections(2).follows("*one* and **two**")
    True
    """

    num_highlights: int

    def follows(self, response: str) -> bool:
        """Count highlights that are not blank."""
        found = re.findall(r"\*[^\n*]*\*", response) + re.findall(r"\*\*[^\n*]*\*\*", response)
        return sum(bool(each.strip("*").strip()) for each in found) >= self.num_highlights


@dataclass(frozen=True, slots=True)
class MultipleSections:
    """At least so many headings: the word, perhaps a space, a number; case included.

    Upstream takes the word for a regular expression; here it stands for itself.
    """

    section_spliter: str
    num_sections: int

    def follows(self, response: str) -> bool:
        """Count headings."""
        found = re.findall(re.escape(self.section_spliter) + r"\s?\d+", response)
        return len(found) >= self.num_sections


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """The whole response is JSON, perhaps in a markdown fence."""

    def follows(self, response: str) -> bool | None:
        """Parse it; None when it is nested too deeply to be parsed."""
        text = response.strip()
        for fence in _FENCES:
            text = text.removeprefix(fence)
        try:
            json.loads(text.removesuffix("```").strip(), parse_int=str)
        except ValueError:
            return False
        except RecursionError:
            return None
        return True


@dataclass(frozen=True, slots=True)
class Title:
    """A title that is not blank stands between ``<<`` and ``>>`` within a line."""

    def follows(self, response: str) -> bool:
        """Look for a title in each line."""
        return any(map(_has_title, response.split("\n")))


def _is_point(line: str) -> bool:
    text = line.lstrip()
    return text.startswith("-") or (text.startswith("*") and text[1:2] not in ("", "*"))


def _has_title(line: str) -> bool:
    start, end = line.find("<<"), line.rfind(">>")
    return 0 <= start < end and bool(line[start:end].lstrip("<").rstrip(">").strip())
