"""Toys that write: word n-grams and retrieval, over the reference of Python that it carries."""

import random
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

_MIN_WORDS, _MAX_WORDS = 60, 180
"""Of an answer."""

_HEADING = re.compile(r"(?P<title>\S.*)\n(?P<line>[*=\-~^])(?P=line){2,}")
_SIGNATURE = re.compile(r"[\w.]+\(.*\)")
_LITERAL = re.compile(r'"([^"`]+)"')
_CODE = re.compile(r"(`[^`]*`)")
_FOOTNOTE = re.compile(r" ?\[\d+\]")
_ASIDE = re.compile(r"\s*\((?:see|see also) [^()]*\)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.?!])(?<!e\.g\.|i\.e\.) (?=[A-Z`“])")
_LEADS_AWAY = re.compile(r"^(?:See|\() |\bsections?\b|\b(?:above|below|the following)\b|PEP \d")
_RELEASE_NOTE = re.compile(r"(?:New|Changed|Added|Deprecated) (?:in|since) version")
_SENTENCE_WORDS = 8


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
        if whole and not _LEADS_AWAY.search(sentence) and len(sentence.split()) >= _SENTENCE_WORDS:
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


_TOKEN = re.compile(r"(?:`[^`]*`|[^\s`])+")  # a span of code is one word, so that it stays closed
_ENOUGH_WORDS = 140


@dataclass(frozen=True, slots=True)
class NGrams:
    """A word n-gram model.

    Attributes
    ----------
    order : int
        Words in a gram: the next word is drawn given the ``order - 1`` before it.
    words : tuple of str
        The corpus, in order.
    following : mapping
        By context, every word that followed it, as often as it did.
    places : mapping
        By term (see `terms`), where it stands in ``words``.
    """

    order: int
    words: Sequence[str]
    following: Mapping[tuple[str, ...], Sequence[str]]
    places: Mapping[str, Sequence[int]]

    def answer(self, prompt: str, rng: random.Random) -> str:
        """Write 60 to 180 words that begin, where it can, with a word of the prompt."""
        length = rng.randint(_MIN_WORDS, _ENOUGH_WORDS)
        start = self._start(prompt, rng)
        words = list(self.words[start : start + max(1, self.order - 1)])
        while len(words) < length or not _ends(words[-1]):
            if len(words) == _MAX_WORDS:
                words[-1] = words[-1].rstrip(",;:.") + "."
                break
            words.append(rng.choice(self.following[self._context(words)]))
        return " ".join(_capitalised(words))

    def _context(self, words: Sequence[str]) -> tuple[str, ...]:
        return tuple(words[len(words) - self.order + 1 :])

    def _start(self, prompt: str, rng: random.Random) -> int:
        known = [self.places[term] for term in terms(prompt) if term in self.places]
        return rng.choice(min(known, key=len) if known else range(len(self.words) - self.order))


@cache
def train_ngrams(order: int) -> NGrams:
    """Learn, once, from the embedded corpus read as a ring: every context has a next word."""
    words = tuple(chain.from_iterable(_TOKEN.findall(s) for p in passages() for s in p.sentences))
    following: dict[tuple[str, ...], list[str]] = defaultdict(list)
    places: dict[str, list[int]] = defaultdict(list)
    ring = words + words[:order]
    for i, word in enumerate(words):
        following[ring[i : i + order - 1]].append(ring[i + order - 1])
        for term in terms(word):
            places[term].append(i)
    return NGrams(order, ring, dict(following), dict(places))


def _capitalised(words: Sequence[str]) -> list[str]:
    """Words with a capital at the start of each sentence."""
    starts = [True, *map(_ends, words)]
    return [w[:1].upper() + w[1:] if first else w for w, first in zip(words, starts, strict=False)]


def _ends(word: str) -> bool:
    """Whether a sentence ends here."""
    return word.endswith(".") and not word.endswith(("e.g.", "i.e."))


_LEAST_SIMILARITY = 0.2
_LEAST_KNOWN = 0.5  # share of the prompt's terms that the corpus has to know
_NOTHING = (
    "I know the reference of the Python language and nothing else, and I found no answer in it. "
    "Ask me what a statement does, or how classes, names and exceptions work. "
    "Meanwhile, here is something that I do know."
)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A TF-IDF index of passages.

    Attributes
    ----------
    vectorizer : sklearn.feature_extraction.text.TfidfVectorizer
    matrix : scipy.sparse matrix of shape (n, n_terms)
        One row a passage: its own unit vector and its section's, averaged, so that a short
        passage in the right section beats a chance hit elsewhere.
    """

    passages: Sequence[Passage]
    vectorizer: Any
    matrix: Any

    def answer(self, prompt: str, rng: random.Random) -> str:
        """Quote the passages nearest to the prompt; say so when none is near."""
        similarity = (self.matrix @ self.vectorizer.transform([prompt]).T).toarray().ravel()
        nearest: list[int] = (-similarity).argsort(kind="stable").tolist()
        if similarity[nearest[0]] < _LEAST_SIMILARITY or not self._knows(prompt):
            anything = rng.randrange(len(self.passages))
            return f"{_NOTHING}\n\n{_quoted(self._from(anything))}"
        further = (self.passages[i] for i in nearest)
        first = self._first(nearest[0], prompt)
        return _quoted(dict.fromkeys(chain(self._from(first), further)))

    def _first(self, i: int, prompt: str) -> int:
        """Give where to begin: with the whole section, if its heading is what was asked for."""
        section = self.passages[i].section
        if not set(terms(" ".join(section))) & set(terms(prompt)):
            return i
        return next(j for j, passage in enumerate(self.passages) if passage.section == section)

    def _knows(self, prompt: str) -> bool:
        asked = terms(prompt)
        known = sum(term in self.vectorizer.vocabulary_ for term in asked)
        return known >= _LEAST_KNOWN * len(asked)

    def _from(self, i: int) -> Iterator[Passage]:
        """Yield a passage and those that follow it in its section."""
        for passage in self.passages[i:]:
            if passage.section != self.passages[i].section:
                return
            yield passage


@cache
def train_retrieval() -> Retrieval:
    """Index the embedded corpus, once."""
    # Imported here: it takes a second, and most processes never answer with it.
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer=terms, sublinear_tf=True)
    alone = vectorizer.fit_transform(_text([passage]) for passage in passages())
    sections: dict[tuple[str, str], list[Passage]] = defaultdict(list)
    for passage in passages():
        sections[passage.section].append(passage)
    around = vectorizer.transform(_text(sections[passage.section]) for passage in passages())
    return Retrieval(passages(), vectorizer, (alone + around) / 2)


def _text(section: Sequence[Passage]) -> str:
    """Passages of one section; what they are headed by counts three times."""
    headings = [*section[0].section] * 3
    return " ".join([*headings, *chain.from_iterable(p.sentences for p in section)])


def _quoted(chosen: Iterable[Passage]) -> str:
    """Passages under their headings, until there are 60 words and never beyond 180."""
    lines: list[str] = []
    section, words = ("", ""), 0
    for passage in chosen:
        text = _within(passage.sentences, _MAX_WORDS - words)
        if words >= _MIN_WORDS or not text:
            break
        if passage.section != section:
            lines.append(f"**{passage.heading}**")
        lines.append(text)
        section, words = passage.section, words + len(text.split())
    return "\n\n".join(lines)


def _within(sentences: Iterable[str], n_words: int) -> str:
    """As many whole sentences as fit."""
    fitting: list[str] = []
    for sentence in sentences:
        n_words -= len(sentence.split())
        if n_words < 0:
            break
        fitting.append(sentence)
    return " ".join(fitting)
