"""Word n-grams: the simplest models that write, and visibly better with every order."""

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from arena.endpoints.corpus import passages, terms

_TOKEN = re.compile(r"(?:`[^`]*`|[^\s`])+")  # a span of code is one word, so that it stays closed
_MIN_WORDS, _ENOUGH_WORDS, _MAX_WORDS = 60, 140, 180


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
