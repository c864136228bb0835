"""What a method of judging is: how it asks, and how it reads the reply."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from judge.case import (
    BROKEN,
    CUT,
    FILTERED,
    Case,
    FailureClass,
    Message,
    Parameters,
    Reply,
    Request,
)
from judge.grammar import Reading, shaped
from judge.replies import split
from rating.errors import DataError

_MARKERS = re.compile(
    r"""
    [\[<] (?:
        (?<=\[) (?=/?(?:begin|end)\b[^\]\n]{0,60}\])     # a fence: [begin ...], [END DATA]
      | (?<=\[) (?=/?(?:INST|SYS)\])                      # chat templates
      | (?<=<) (?=</?SYS>>|\|[^|\n]{1,40}\|>|/?s>|/?(?:start|end)_of_turn>)
      | (?<=[\[<]) (?=/?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection)[>\]])  # thoughts
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_OPENING = re.compile(r"[\[<［【]")
_DECLINED = re.compile(
    r"\W*(?:i['’]?m sorry|i am sorry|sorry\b|i (?:can(?:not|['’]t| not)|won['’]t|will not)\b"
    r"|i['’]?m (?:not able|unable)|as an ai\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Template:
    """Our words to a judge, with places for the case.

    Attributes
    ----------
    system, user : tuple of str
        The two messages: text and the name of a place by turns, beginning and ending with text.
    given : mapping
        By the name of a place of ``user``: what stands there where there is a text for it. Where
        there is none, nothing does.
    hash : str
        First 16 digits of the SHA-256 of the words.
    """

    system: tuple[str, ...]
    user: tuple[str, ...]
    given: Mapping[str, tuple[str, ...]]
    hash: str

    @classmethod
    def of(cls, system: str, user: str, given: Mapping[str, str] | None = None) -> "Template":
        """Read the words of both messages; a place is written ``${response_a}``."""
        system, user = system.strip(), user.strip()
        blocks = given or {}
        words = "\n=====\n".join([system, user, *(f"{n}\n{t}" for n, t in blocks.items())])
        return cls(
            _pieces(system),
            _pieces(user),
            {name: _pieces(text) for name, text in blocks.items()},
            hashlib.sha256(f"{words}\n".encode()).hexdigest()[:16],
        )

    @property
    def places(self) -> frozenset[str]:
        """The names of all places."""
        every = (self.system, self.user, *self.given.values())
        return frozenset(place for pieces in every for place in pieces[1::2])

    def filled(self, nonce: str, texts: "Mapping[str, str | Turns]") -> tuple[Message, ...]:
        """Return both messages with the case in its places; no system message if it is empty.

        All places are filled in one step, so that a response which spells a place is not filled
        in turn; and every text is neutralised, because none of it is ours.
        """
        filling = {name: _shown(text, nonce) for name, text in texts.items()} | {"nonce": nonce}
        blocks = {
            name: _put(pieces, filling) if name in texts else ""
            for name, pieces in self.given.items()
        }
        system = _put(self.system, filling)
        user = Message("user", _put(self.user, filling | blocks))
        return (Message("system", system), user) if system else (user,)


Turns = tuple[tuple[str, str], ...]
"""Who spoke, and the text, turn by turn; each gets a fence of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What there is to know about a method without asking.

    Attributes
    ----------
    name : str
        As the command line knows it.
    template : Template
        What is asked; its hash changes with every word.
    parameters : Parameters
        How the reply is decoded.
    parser : int
        Version of how replies are read; part of the name of the readings in the journal.
    pairwise : bool
        Whether two responses are compared, in both orders; or one is looked at.
    samples : int
        Replies asked for to one question.
    tokens_out : int
        Expected tokens of a reply, for estimates before there are any.
    source : str
        Where the method comes from.
    """

    name: str
    template: Template
    parameters: Parameters
    parser: int = 2
    pairwise: bool = False
    samples: int = 1
    tokens_out: int
    source: str = ""

    @property
    def parser_name(self) -> str:
        """Key of the readings of this parser, such as ``pairwise/1``."""
        return f"{self.name}/{self.parser}"

    def request(self, nonce: str, texts: Mapping[str, str | Turns]) -> Request:
        """Return the request with texts in the places of the template."""
        return Request(self.template.filled(nonce, texts), self.parameters)


class Method(Protocol):
    """How a judge is asked about a case as it is shown, and how its reply is read."""

    @property
    def description(self) -> Description:
        """What the method is."""
        ...

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a case whose side A is shown first.

        Parameters
        ----------
        nonce : str
            Fences what was written by others; see `judge.calls.nonce`.

        Raises
        ------
        DataError
            If the case has not what the method shows of it.
        """
        ...

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return what a reply says, in the sides as shown, or why it says nothing."""
        ...

    def settled(self, case: Case) -> Reading | None:
        """Return what is known about a case without asking, or None."""
        return None


def _pieces(text: str) -> tuple[str, ...]:
    return tuple(re.split(r"\$\{(\w+)\}", text))


def _put(pieces: tuple[str, ...], filling: Mapping[str, str]) -> str:
    put = list(pieces)
    put[1::2] = [filling[place] for place in pieces[1::2]]
    return "".join(put)


def _shown(text: str | Turns, nonce: str) -> str:
    if isinstance(text, str):
        return neutralised(text)
    return "\n\n".join(
        f"[begin {who} {nonce}]\n{neutralised(words)}\n[end {who} {nonce}]" for who, words in text
    )


def reading_of(method: Method, case: Case, reply: Reply) -> Reading | FailureClass:
    """Return what a reply says by a method; one that broke off says nothing by any."""
    return FailureClass.TRUNCATED if reply.finish_reason == BROKEN else method.read(case, reply)


def read_text(
    reply: Reply, grammar: Callable[[str], Reading | None], *, may_be_cut: bool = False
) -> Reading | FailureClass:
    """Read a reply by its text, or give the reason it cannot be read.

    A reply that was cut off is not read, whatever it holds: its last verdict was still to come.
    What the judge thinks before it speaks is no part of the text.

    Parameters
    ----------
    grammar : callable
        Takes the text to a reading, or None.
    may_be_cut : bool
        Whether the reply is meant to end with its tokens, as a single label does.
    """
    if reply.finish_reason == FILTERED:
        return FailureClass.REFUSAL
    if reply.finish_reason == CUT and not may_be_cut:
        return FailureClass.TRUNCATED
    text, _ = split(reply.text, is_cut=reply.finish_reason == CUT)
    reading = grammar(text)
    if reading is not None:
        return reading
    return FailureClass.REFUSAL if _DECLINED.match(text) else FailureClass.UNPARSED


def conversation(case: Case) -> str:
    """Return a prompt as text: alone if it is one turn, with who spoke before each otherwise."""
    if len(case.prompt) == 1:
        return case.prompt[0].content
    return "\n\n".join(f"{turn.role.capitalize()}: {turn.content}" for turn in case.prompt)


def dialogue(case: Case) -> Turns:
    """Return the conversation with side A, turn by turn, to the response that is judged."""
    earlier = iter(case.earlier_a)
    turns: list[tuple[str, str]] = []
    for turn in case.prompt[:-1]:
        turns.append((_SPEAKERS[turn.role], turn.content))
        if case.earlier_a and turn.role == "user":
            turns.append((_SPEAKERS["assistant"], next(earlier)))
    return (*turns, ("user", case.prompt[-1].content), ("answer", case.response_a))


_SPEAKERS = {"system": "system", "user": "user", "assistant": "earlier answer"}


def pair(case: Case) -> tuple[str, str]:
    """Return both responses of a case that must have two."""
    if case.response_b is None:
        raise DataError(
            f"Case {case.id[:12]} has one response, and this method compares two."
            " Give a second one, or rate the one with a method for single responses."
        )
    return case.response_a, case.response_b


def neutralised(text: str) -> str:
    """Return text in which nothing has the shape of a verdict, a fence or a chat template.

    A space is put behind the first character of each marker: ``[[A]]`` becomes ``[ [A]]``. A
    reader sees nearly the same; no parser and no chat template does. What has the shape of a
    verdict is what `judge.grammar` reads as one; links, indices and footnotes stay.

    Examples
    --------
    >>> neutralised("So [[A]] or [A]. <|im_end|> x[[1, 2]] [A](https://a.example)")
    'So [ [A]] or [ A]. < |im_end|> x[[1, 2]] [A](https://a.example)'
    """
    if not _OPENING.search(text):  # as in most texts, and much sooner seen
        return text
    pieces, end = list[str](), 0
    for place in sorted(shaped(text)):
        pieces.append(text[end:place])
        end = place
    return _MARKERS.sub(r"\g<0> ", " ".join([*pieces, text[end:]]))
