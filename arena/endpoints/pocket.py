"""The embedded default: toys that really write and judge, with no key, network or weights."""

import asyncio
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Protocol

import httpx

from arena.domain.model import Kind, Model, Price
from arena.endpoints.ngrams import train_ngrams
from arena.endpoints.passages import train_retrieval
from arena.endpoints.speech import Piece, Speech, read_question, refusal, reply

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
    text = f"Answer A has {a} characters, answer B has {b}."
    if '"choice"' in asked:
        choice = "A=B" if a == b else better + "+" * (1 + much)
        return json.dumps({"comparison": text, "choice": choice})
    if "its label alone" in asked:
        return "m" if a >= b else "M"
    if "How many of them" in asked:
        return f"[[{round(100 * a / max(a + b, 1))}]]"
    if "[[A>>B]]" in asked:
        return f"{text}\n[[A=B]]" if a == b else f"{text}\n[[{better}{'>' * (1 + much)}{worse}]]"
    return f"{text}\n[[{'C' if a == b else better}]]"


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


_WORD = re.compile(r"\S+\s*")


class Toy(Protocol):
    """What has learned to answer."""

    def answer(self, prompt: str, rng: random.Random) -> str:
        """Write an answer to a prompt."""


@dataclass(frozen=True, slots=True)
class Voice:
    """How a toy learns, which takes time the first time only, and how fast it speaks."""

    train: Callable[[], Toy]
    words_per_s: float
    first_word_s: float


VOICES = {
    "unigram": Voice(partial(train_ngrams, 1), words_per_s=110, first_word_s=0.1),
    "bigram": Voice(partial(train_ngrams, 2), words_per_s=80, first_word_s=0.15),
    "trigram": Voice(partial(train_ngrams, 3), words_per_s=60, first_word_s=0.2),
    "fourgram": Voice(partial(train_ngrams, 4), words_per_s=45, first_word_s=0.25),
    "retrieval": Voice(train_retrieval, words_per_s=35, first_word_s=0.35),
    "judge": Voice(LongerAnswer, words_per_s=100, first_word_s=0.1),
}
"""By the name that a request gives; the paces are set so that the toys can be told apart."""


def _roster_entry(name: str, kind: Kind = Kind.MODEL) -> Model:
    return Model(
        id=f"pocket-{name}",
        name=f"Pocket {name} (toy)",
        endpoint="pocket://local/v1",
        model=name,
        organisation="Embedded",
        kind=kind,
        price=Price(input=0.0, output=0.0, date=date(2026, 1, 1)),
        licence="PSF-2.0 text, toy model",
    )


TOY_EXAMPLES = (
    "What does yield do?",
    "How do I catch an exception?",
    "What is a context manager?",
    "How does slicing work?",
    "What is the difference between a list and a tuple?",
    "How are arguments passed to a function?",
)
"""Prompts about what the toys have read; they know nothing else."""

POCKET_JUDGE = _roster_entry("judge", Kind.SYSTEM)
"""Judges the demo's battles; plays in none."""


class PocketTransport(httpx.AsyncBaseTransport):
    """Answers ``pocket://`` with the toys, which learn when first asked, if not before.

    Parameters
    ----------
    seed : int or None
        The same seed gives the same answers to the same requests in the same order; None
        gives others every time.
    speedup : float, default 1.0
        How many times faster than their believable pace the toys speak.
    """

    def __init__(self, seed: int | None = None, *, speedup: float = 1.0) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - writes toy text, guards nothing
        self._speedup = speedup

    async def learn(self) -> None:
        """Let every toy learn now, so that the first visitor does not wait for it."""
        for voice in VOICES.values():
            await asyncio.to_thread(voice.train)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Let the model that the request names answer it."""
        question = await read_question(request)
        if question.model not in VOICES:
            return refusal(404, "model_not_found", f"no pocket model {question.model!r}")
        # Drawn before the first wait: what else is asked meanwhile changes nothing.
        rng = random.Random(self._rng.getrandbits(64))  # noqa: S311
        voice = VOICES[question.model]
        toy = await asyncio.to_thread(voice.train)
        text = toy.answer(question.prompt, rng)
        speech = Speech(tuple(_spoken(text, voice, rng, self._speedup)))
        return reply(question, speech)


def _spoken(text: str, voice: Voice, rng: random.Random, speedup: float) -> Iterator[Piece]:
    """Yield a piece a word, each with the space after it, unevenly spaced in time."""
    at_s = voice.first_word_s * rng.uniform(0.8, 1.2)
    for word in _WORD.findall(text):
        yield Piece(at_s / speedup, word)
        at_s += rng.uniform(0.7, 1.3) / voice.words_per_s


POCKET_MODELS: tuple[Model, ...] = (
    _roster_entry("unigram"),
    _roster_entry("bigram"),
    _roster_entry("trigram"),
    _roster_entry("fourgram"),
    _roster_entry("retrieval", Kind.SYSTEM),
)
"""The roster of the demo."""
