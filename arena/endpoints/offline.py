"""Models that answer without a network: embedded toys, and recordings of others.

The toys are word n-grams and retrieval, learnt from the reference of Python that it carries.
`PocketTransport` answers ``pocket://`` and `RecordedTransport` ``recorded://``, each as a
transport of httpx2 in the place of a network.
"""

import asyncio
import json
import random
import re
import textwrap
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import httpx2

from arena.domain.model import Kind, Model
from arena.errors import SettingsError
from judge.budget import Price
from judge.case import Message
from rating.tables.files import json_entries

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


class _Passage(NamedTuple):
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
def _passages() -> tuple[_Passage, ...]:
    """Every paragraph of prose once; grammar, tables, code and references excluded.

    A paragraph that stands on several pages is taken from the shortest, which is the one
    most about it.
    """
    from pydoc_data.topics import topics  # half a megabyte that only the toys read

    seen: dict[tuple[str, ...], _Passage] = {}
    for topic, page in sorted(topics.items(), key=lambda item: len(item[1])):
        for passage in _read(topic, page):
            seen.setdefault(passage.sentences, passage)
    return tuple(seen.values())


def _read(topic: str, page: str) -> Iterator[_Passage]:
    heading = topic
    for block in re.split(r"\n\s*\n", page):
        text = textwrap.dedent(block).strip("\n")
        title = _HEADING.fullmatch(text) or _SIGNATURE.fullmatch(text)
        if title:
            heading = _markdown(text.partition("\n")[0]) if "\n" in text else f"`{text}`"
        elif _is_prose(text):
            sentences = tuple(_sentences(text))
            if sentences:
                yield _Passage(topic, heading, sentences)


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
    text = " ".join(re.sub(r"(?<=\w)-\n", "-", text).split())
    for sentence in _SENTENCE_END.split(_markdown(text)):
        whole = sentence.endswith(".") and not sentence[0].islower()
        if whole and not _LEADS_AWAY.search(sentence) and len(sentence.split()) >= _SENTENCE_WORDS:
            yield sentence


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


def _terms(text: str) -> list[str]:
    """Words of a text in lower case and singular, without those that only ask.

    Examples
    --------
    >>> _terms("What are the `Exceptions` of classes?")
    ['exception', 'class']
    """
    words = (word for word in _WORD.findall(text.lower()) if not _ASKING.fullmatch(word))
    return [_PLURAL.sub("", word) for word in words]


_TOKEN = re.compile(r"(?:`[^`]*`|[^\s`])+")  # a span of code is one word, so that it stays closed
_ENOUGH_WORDS = 140


@dataclass(frozen=True, slots=True)
class _NGrams:
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
        By term (see `_terms`), where it stands in ``words``.
    """

    order: int
    words: Sequence[str]
    following: Mapping[tuple[str, ...], Sequence[str]]
    places: Mapping[str, Sequence[int]]

    def answer(self, prompt: str, rng: random.Random) -> str:
        """Write 60 to 180 words that begin, where it can, with a word of the prompt."""
        length = rng.randint(_MIN_WORDS, _ENOUGH_WORDS)
        known = [self.places[term] for term in _terms(prompt) if term in self.places]
        start = rng.choice(min(known, key=len) if known else range(len(self.words) - self.order))
        words = list(self.words[start : start + max(1, self.order - 1)])
        while len(words) < length or not _ends(words[-1]):
            if len(words) == _MAX_WORDS:
                words[-1] = words[-1].rstrip(",;:.") + "."
                break
            words.append(rng.choice(self.following[tuple(words[len(words) - self.order + 1 :])]))
        return " ".join(_capitalised(words))


@cache
def _train_ngrams(order: int) -> _NGrams:
    """Learn, once, from the embedded corpus read in a circle: every context has a next word."""
    words = tuple(chain.from_iterable(_TOKEN.findall(s) for p in _passages() for s in p.sentences))
    following: dict[tuple[str, ...], list[str]] = defaultdict(list)
    places: dict[str, list[int]] = defaultdict(list)
    ring = words + words[:order]
    for i, word in enumerate(words):
        following[ring[i : i + order - 1]].append(ring[i + order - 1])
        for term in _terms(word):
            places[term].append(i)
    return _NGrams(order, ring, dict(following), dict(places))


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
class _Retrieval:
    """A TF-IDF index of passages.

    Attributes
    ----------
    vectorizer : sklearn.feature_extraction.text.TfidfVectorizer
    matrix : scipy.sparse matrix of shape (n, n_terms)
        One row a passage: its own unit vector and its section's, averaged, so that a short
        passage in the right section beats a chance hit elsewhere.
    """

    passages: Sequence[_Passage]
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
        if not set(_terms(" ".join(section))) & set(_terms(prompt)):
            return i
        return next(j for j, passage in enumerate(self.passages) if passage.section == section)

    def _knows(self, prompt: str) -> bool:
        asked = _terms(prompt)
        known = sum(term in self.vectorizer.vocabulary_ for term in asked)
        return known >= _LEAST_KNOWN * len(asked)

    def _from(self, i: int) -> Iterator[_Passage]:
        """Yield a passage and those that follow it in its section."""
        for passage in self.passages[i:]:
            if passage.section != self.passages[i].section:
                return
            yield passage


@cache
def _train_retrieval() -> _Retrieval:
    """Index the embedded corpus, once."""
    # Imported here: it takes a second, and most processes never answer with it.
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer=_terms, sublinear_tf=True)
    alone = vectorizer.fit_transform(_text([passage]) for passage in _passages())
    sections: dict[tuple[str, str], list[_Passage]] = defaultdict(list)
    for passage in _passages():
        sections[passage.section].append(passage)
    around = vectorizer.transform(_text(sections[passage.section]) for passage in _passages())
    return _Retrieval(_passages(), vectorizer, (alone + around) / 2)


def _text(section: Sequence[_Passage]) -> str:
    """Passages of one section; what they are headed by counts three times."""
    headings = [*section[0].section] * 3
    return " ".join([*headings, *chain.from_iterable(p.sentences for p in section)])


def _quoted(chosen: Iterable[_Passage]) -> str:
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


class _Question(NamedTuple):
    """What a request asks, as read from its body."""

    model: str
    messages: tuple[Message, ...]
    stream: bool

    @property
    def prompt(self) -> str:
        """What the visitor said last; empty when there is nothing of theirs."""
        questions = [m.content for m in self.messages if m.role == "user"]
        return questions[-1] if questions else ""


class Piece(NamedTuple):
    """A piece of an answer, due ``at_s`` seconds after the question."""

    at_s: float
    text: str


class _SpeechStream(httpx2.AsyncByteStream):
    """Body of a response that is being spoken; closing it ends the speech."""

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        self._events = events

    def __aiter__(self) -> AsyncGenerator[bytes]:
        return self._events

    async def aclose(self) -> None:
        """End the speech where it is."""
        await self._events.aclose()


async def _read_question(request: httpx2.Request) -> _Question:
    """Read what a request of our own client asks."""
    body = json.loads(await request.aread())
    messages = tuple(Message(m["role"], _words(m["content"])) for m in body["messages"])
    return _Question(body["model"], messages, body["stream"])


def _words(content: Any) -> str:
    """Give the text of a message; of one in parts, without its images, which no toy sees."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _reply(question: _Question, pieces: Sequence[Piece]) -> httpx2.Response:
    """Response that gives an answer: at its pace if streamed, at once if not."""
    text = "".join(piece.text for piece in pieces)
    usage = {  # in words, for want of a tokenizer
        "prompt_tokens": sum(len(m.content.split()) for m in question.messages),
        "completion_tokens": len(text.split()),
    }
    if question.stream:
        headers = {"Content-Type": "text/event-stream"}
        stream = _SpeechStream(_streamed(pieces, usage))
        return httpx2.Response(200, headers=headers, stream=stream)
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return httpx2.Response(200, json={"choices": [choice], "usage": usage})


def _refusal(status: int, code: str, message: str) -> httpx2.Response:
    """Response that gives the reason there is no answer."""
    return httpx2.Response(status, json={"error": {"code": code, "message": message}})


async def _streamed(pieces: Sequence[Piece], usage: Mapping[str, int]) -> AsyncGenerator[bytes]:
    loop = asyncio.get_running_loop()
    asked = loop.time()
    for piece in pieces:
        await asyncio.sleep(asked + piece.at_s - loop.time())
        yield _PIECE % json.dumps(piece.text).encode()
    yield _event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    yield _event(choices=[], usage=usage)
    yield b"data: [DONE]\n\n"


_PIECE = b'data: {"choices": [{"index": 0, "delta": {"content": %b}}]}\n\n'


def _event(**fields: object) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()


def paced(text: str, characters_per_s: float, piece_s: float) -> Iterator[Piece]:
    """Cut a text into pieces that follow each other by about ``piece_s`` seconds.

    Examples
    --------
    >>> [(piece.at_s, piece.text) for piece in paced("abcde", 20.0, 0.1)]
    [(0.1, 'ab'), (0.2, 'cd'), (0.25, 'e')]
    """
    size = max(1, round(characters_per_s * piece_s))
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        yield Piece((start + len(piece)) / characters_per_s, piece)


_BLOCK = re.compile(r"^\[begin ([\w ]+?) (\w+)\]\n(.*?)\n\[end \1 \2\]$", re.DOTALL | re.MULTILINE)
_SCALE = re.compile(r"from (\d+) to (\d+), in double")
_TAGS = {"category": "other", "language": "en", "intent": "asking", "criteria": []}
"""What it says of every prompt."""
_POINTS = ("at length", "with reasons", "with an example", "with details", "to the end")


class LongerAnswer:
    """Counts the characters of fenced answers, and replies in whichever form it is asked for."""

    def answer(self, prompt: str, rng: random.Random) -> str:
        """Give a verdict on two answers, a mark to one, or questions or labels without any."""
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
        if blocks and '"criteria"' in asked:
            return json.dumps(_TAGS)
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


_OFFLINE_WORD = re.compile(r"\S+\s*")


class _Toy(Protocol):
    """What has learned to answer."""

    def answer(self, prompt: str, rng: random.Random) -> str:
        """Write an answer to a prompt."""


class _Voice(NamedTuple):
    """How a toy learns, which takes time the first time only, and how fast it speaks."""

    train: Callable[[], _Toy]
    words_per_s: float
    first_word_s: float


VOICES = {
    "unigram": _Voice(partial(_train_ngrams, 1), words_per_s=110, first_word_s=0.1),
    "bigram": _Voice(partial(_train_ngrams, 2), words_per_s=80, first_word_s=0.15),
    "trigram": _Voice(partial(_train_ngrams, 3), words_per_s=60, first_word_s=0.2),
    "fourgram": _Voice(partial(_train_ngrams, 4), words_per_s=45, first_word_s=0.25),
    "retrieval": _Voice(_train_retrieval, words_per_s=35, first_word_s=0.35),
    "judge": _Voice(LongerAnswer, words_per_s=100, first_word_s=0.1),
}
"""By the name that a request gives; the paces are set so that the toys differ in speed."""


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


class PocketTransport(httpx2.AsyncBaseTransport):
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
        self._toys: dict[str, _Toy] = {"judge": LongerAnswer()}

    async def learn(self, names: Iterable[str] = tuple(VOICES), after_s: float = 0.0) -> None:
        """Let toys learn, so that the first who asks does not wait for it."""
        await asyncio.sleep(after_s)
        for name in names:
            if name not in self._toys:
                await self._learn(name)

    async def _learn(self, name: str) -> _Toy:
        self._toys[name] = await asyncio.to_thread(VOICES[name].train)
        return self._toys[name]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Let the model that the request names answer it."""
        question = await _read_question(request)
        if question.model not in VOICES:
            return _refusal(404, "model_not_found", f"no pocket model {question.model!r}")
        # Drawn before the first wait: what else is asked meanwhile changes nothing.
        rng = random.Random(self._rng.getrandbits(64))  # noqa: S311
        voice = VOICES[question.model]
        toy = self._toys.get(question.model) or await self._learn(question.model)
        text = toy.answer(question.prompt, rng)
        return _reply(question, [*_spoken(text, voice, rng, self._speedup)])


def _spoken(text: str, voice: _Voice, rng: random.Random, speedup: float) -> Iterator[Piece]:
    """Yield a piece a word, each with the space after it, unevenly spaced in time."""
    at_s = voice.first_word_s * rng.uniform(0.8, 1.2)
    for word in _OFFLINE_WORD.findall(text):
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


_KEYS = (("instruction", "output"), ("prompt", "response"))
_PIECE_S = 0.1  # time between two pieces: as often as the text of a battle is shown
_CHARACTERS_PER_S = 400.0


def load_recording(path: Path) -> dict[str, str]:
    """Read a file of outputs: responses by prompt, in their order.

    Parameters
    ----------
    path : Path
        AlpacaEval's ``model_outputs.json``, a JSON list of objects with ``instruction``
        and ``output``; or JSON lines with ``prompt`` and ``response``. Either pair of
        keys is read in either layout, further keys are ignored.

    Returns
    -------
    dict
        Of a prompt that comes twice, the first response: which one is replayed must not
        depend on what was appended later.

    Raises
    ------
    SettingsError
        If the file cannot be read as one of these, naming file, line or entry, and value.
    """
    responses: dict[str, str] = {}
    for place, entry in json_entries(path, SettingsError):
        prompt, response = _pair(place, entry)
        responses.setdefault(prompt, response)
    if not responses:
        raise SettingsError(f"{path}: no outputs in it. Give a file with at least one.")
    return responses


def load_recordings(models: Iterable[Model]) -> dict[str, dict[str, str]]:
    """Read the files of the models that have one, by `Model.id`.

    Raises
    ------
    SettingsError
        As `load_recording`, naming the model too.
    """
    recordings = {}
    for model in models:
        if model.recording:
            try:
                recordings[model.id] = load_recording(Path(model.recording))
            except SettingsError as error:
                msg = f"The recording of model {model.id!r} cannot be used: {error}"
                raise SettingsError(msg) from error
    return recordings


class RecordedTransport(httpx2.AsyncBaseTransport):
    """Answers ``recorded://`` with what was recorded, at a pace.

    The request's ``model`` picks the recording, so a recorded roster entry has the same
    ``model`` as ``id``. A recording answers the opening of a conversation only: a later
    turn, like a prompt that is not in the file, is refused with status 404.

    Parameters
    ----------
    recordings : mapping
        Responses by prompt, by `Model.id`.
    characters_per_s : mapping
        Pace by `Model.id`; 400 where there is none.
    """

    def __init__(
        self,
        recordings: Mapping[str, Mapping[str, str]],
        characters_per_s: Mapping[str, float] | None = None,
    ) -> None:
        self._recordings = dict(recordings)
        self._pace = dict(characters_per_s or {})

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Replay the answer to a request."""
        question = await _read_question(request)
        if question.model not in self._recordings:
            return _refusal(404, "model_not_found", f"no recording of {question.model!r}")
        response = self._recordings[question.model].get(question.prompt)
        if response is None or any(message.role == "assistant" for message in question.messages):
            return _refusal(404, "prompt_not_recorded", "the recording does not hold this prompt")
        pace = self._pace.get(question.model, _CHARACTERS_PER_S)
        return _reply(question, [*paced(response, pace, _PIECE_S)])


def _pair(place: str, entry: object) -> tuple[str, str]:
    if isinstance(entry, Mapping):
        for prompt_key, response_key in _KEYS:
            if prompt_key in entry and response_key in entry:
                prompt = _string(place, prompt_key, entry[prompt_key])
                return prompt, _string(place, response_key, entry[response_key])
    fields = sorted(entry) if isinstance(entry, Mapping) else entry
    raise SettingsError(
        f"{place}: found {str(fields)[:80]}. Give an object with instruction and output, "
        "or with prompt and response."
    )


def _string(place: str, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"{place}: {key} is {value!r}. Give a text.")
    return value
