"""Retrieval: answers with the paragraphs of the corpus that are nearest to the prompt."""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from arena.endpoints.corpus import Passage, passages, terms

_MIN_WORDS, _MAX_WORDS = 60, 180
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
