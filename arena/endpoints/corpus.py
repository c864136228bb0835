"""English to learn from, as CPython carries it in ``pydoc_data``, and the words of a prompt."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_HEADING = re.compile(r"(?P<title>\S.*)\n(?P<line>[*=\-~^])(?P=line){2,}")
_SIGNATURE = re.compile(r"[\w.]+\(.*\)")
_LITERAL = re.compile(r'"([^"`]+)"')
_CODE = re.compile(r"(`[^`]*`)")
_FOOTNOTE = re.compile(r" ?\[\d+\]")
_ASIDE = re.compile(r"\s*\((?:see|see also) [^()]*\)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.?!])(?<!e\.g\.|i\.e\.) (?=[A-Z`“])")
_LEADS_AWAY = re.compile(r"^(?:See|\() |\bsections?\b|\b(?:above|below|the following)\b|PEP \d")
_RELEASE_NOTE = re.compile(r"(?:New|Changed|Added|Deprecated) (?:in|since) version")
_MIN_WORDS = 8


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph of the reference.

    Attributes
    ----------
    topic : str
        Keyword of its page, such as ``yield``.
    heading : str
        Title of its section, or the signature that it describes.
    sentences : tuple of str
        Markdown, code between backticks; each ends as a sentence does.
    """

    topic: str
    heading: str
    sentences: tuple[str, ...]

    @property
    def section(self) -> tuple[str, str]:
        """Topic and heading, which together name a section."""
        return self.topic, self.heading


@cache
def passages() -> tuple[Passage, ...]:
    """Every paragraph of prose once; grammar, tables, code and references left out.

    A paragraph that stands on several pages is taken from the shortest, which is the one
    most about it.
    """
    from pydoc_data.topics import topics  # half a megabyte that only the toys read

    seen: dict[tuple[str, ...], Passage] = {}
    for topic, page in sorted(topics.items(), key=lambda item: len(item[1])):
        for passage in _read(topic, page):
            seen.setdefault(passage.sentences, passage)
    return tuple(seen.values())


def _read(topic: str, page: str) -> Iterator[Passage]:
    heading = topic
    for block in re.split(r"\n\s*\n", page):
        text = textwrap.dedent(block).strip("\n")
        title = _HEADING.fullmatch(text) or _SIGNATURE.fullmatch(text)
        if title:
            heading = _markdown(text.partition("\n")[0]) if "\n" in text else f"`{text}`"
        elif _is_prose(text):
            sentences = tuple(_sentences(text))
            if sentences:
                yield Passage(topic, heading, sentences)


def _is_prose(text: str) -> bool:
    """Whether a block reads as a paragraph: flush lines, no grammar, paired quotes."""
    return (
        text[:1].isalpha() | text.startswith(('"', "*"))
        and not text.startswith(("* ", "**Source"))
        and "\n " not in text
        and "::=" not in text
        and '""' not in text
        and text.count('"') % 2 == 0
        and not _RELEASE_NOTE.match(text)
    )


def _sentences(text: str) -> Iterator[str]:
    """Whole sentences that stand on their own: none that points elsewhere on the page."""
    for sentence in _SENTENCE_END.split(_markdown(_unwrapped(text))):
        whole = sentence.endswith(".") and not sentence[0].islower()
        if whole and not _LEADS_AWAY.search(sentence) and len(sentence.split()) >= _MIN_WORDS:
            yield sentence


def _unwrapped(text: str) -> str:
    return " ".join(re.sub(r"(?<=\w)-\n", "-", text).split())


def _markdown(text: str) -> str:
    """Literals as code, footnotes and asides gone, emphasis gone outside code."""
    text = _ASIDE.sub("", _FOOTNOTE.sub("", text))
    parts = _CODE.split(_LITERAL.sub(r"`\1`", text))
    return "".join(part if part.startswith("`") else part.replace("*", "") for part in parts)


_WORD = re.compile(r"\w+")
_PLURAL = re.compile(r"(?<=ss)es$|(?<=[^s])s$")
_ASKING = re.compile(
    r"a|about|an|and|are|be|between|can|could|describe|did|difference|do|does|explain|give|how|i"
    r"|is|it|me|mean|my|of|on|please|tell|that|the|there|this|to|us|use|used|was|what|when|where"
    r"|which|who|why|will|would|write|you|your"
)


def terms(text: str) -> list[str]:
    """Words of a text in lower case and singular, without those that only ask.

    Examples
    --------
    >>> terms("What are the `Exceptions` of classes?")
    ['exception', 'class']
    """
    words = (word for word in _WORD.findall(text.lower()) if not _ASKING.fullmatch(word))
    return [_PLURAL.sub("", word) for word in words]
