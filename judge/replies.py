"""Replies of language models: reasoning separated from the answer, and refusals.

`split` takes a whole reply, `Splitter` one that comes in pieces, `answer_tokens` its tokens;
reasoning is found by the marks around it. `refuses` tells by its beginning whether an answer
declines.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from enum import StrEnum
from importlib.resources import files
from itertools import accumulate, groupby
from operator import itemgetter

from judge.case import TokenLogprob

# Reasoning


_FORMS = tomllib.loads((files("judge") / "replies.toml").read_text("utf-8"))
_OPEN, _CLOSE, _HEADER = (_FORMS["marks"][name] for name in ("open", "close", "header"))
_AT_START, _MESSAGE_ENDS = _FORMS["marks"]["at_start"], _FORMS["marks"]["message_ends"]
_MESSAGE = "<|message|>"
_ENDS = (*_FORMS["marks"]["ends"], *_MESSAGE_ENDS)
"""Tokens that end a reply, and are a part of it where the server's template lacks them."""
_UNMARKED = {
    **dict.fromkeys(("analysis", "commentary"), "assistantfinal"),
    "here is my thought process:": "here is my response:",
}
"""Harmony whose tokens the server took out, and Granite 3.2, by how thoughts begin and end."""
_QUOTES = frozenset("`'\"‘’“”«»")
_BEFORE, _BEHIND = frozenset("(=>\\|"), frozenset(",;:.)}]|/\\")
"""Characters right before or behind a mark that is mentioned, and marks nothing."""
_SENTENCE_ENDS = frozenset(".!?:;)]}>|*_…。！？\n") | _QUOTES | {""}
"""What is before a blank and a token that ends a reply: else the sentence ends on the token."""
_CHANNELS = ("analysis", "commentary")
_MOST_QUOTED = 1_000
"""Characters of a line behind a mark in which the end of a quotation is looked for."""
_TAIL = 40
_MOST_HEADER = 200
_AT_ONCE = 4_096


def _any(marks: Sequence[str]) -> str:
    """Pattern of some marks; those in square brackets are read in capitals alone."""
    tags = [re.escape(mark) for mark in marks if "[" not in mark]
    exact = [f"(?-i:{re.escape(mark)})" for mark in marks if "[" in mark]
    return "|".join(tags + exact)


def _beginnings(marks: Sequence[str]) -> frozenset[str]:
    return frozenset(mark[:n].lower() for mark in marks for n in range(1, len(mark)))


_FIRST = re.compile(
    f"(?P<header>{_any(_HEADER)})|{_any([*_OPEN, *(f'<{name}>' for name in _AT_START)])}",
    re.IGNORECASE,
)
_FIRST_BEGUN = _beginnings([*_OPEN, *_HEADER, *(f"<{name}>" for name in _AT_START), *_UNMARKED])
_TEXT = re.compile(
    f"(?P<open>{_any(_OPEN)})|(?P<close>{_any(_CLOSE)})|(?P<header>{_any(_HEADER)})"
    f"|(?P<end>{_any(_ENDS)})|(?P<run>`+|~~~+)|(?P<line>\n)|(?P<struck><s>)",
    re.IGNORECASE,
)
_TEXT_BEGUN = _beginnings([*_OPEN, *_CLOSE, *_HEADER, *_ENDS, "~~~", "<s>"])
_THOUGHT = re.compile(
    f"(?P<open>{_any(_OPEN)})|(?P<close>{_any([*_CLOSE, *(f'</{name}>' for name in _AT_START)])})"
    f"|(?P<header>{_any(_HEADER)})|(?P<end>{_any(_MESSAGE_ENDS)})",
    re.IGNORECASE,
)
_THOUGHT_BEGUN = _beginnings(
    [*_OPEN, *_CLOSE, *(f"</{name}>" for name in _AT_START), *_HEADER, *_MESSAGE_ENDS]
)
_LONGEST = max(map(len, _TEXT_BEGUN | _THOUGHT_BEGUN | set(_UNMARKED.values())))
_MAY_MATTER = re.compile(r"[<\[◁`~\n]")
_BEFORE_FENCE = re.compile(r"[\s>*+-]*(?:\d+[.)]\s*)?")
_ENDS_BACKWARDS = re.compile(rf"(?:\s|{_any([mark[::-1] for mark in _ENDS])})*+", re.IGNORECASE)
"""The end of a text is read from its last character: a search for it takes quadratic time."""


class Part(StrEnum):
    """What a piece of a reply is."""

    ANSWER = "answer"
    THOUGHT = "thought"
    RETRACTED = "retracted"
    """Nothing of itself: all of the answer so far was a thought, whose end came just now."""


Parts = list[tuple[Part, str]]
_KIND = itemgetter(0)


class Splitter:
    """Splits a reply that comes in pieces, however it is cut, into its answer and its thoughts.

    Thoughts are what is between two marks, what follows one at the very beginning or at the
    beginning of a line, and all that comes before a closing mark without an opening one. An
    opening mark within a line that is never closed opens thoughts if the reply was cut at its
    limit, and else is a part of the answer. So are marks that are only mentioned: in code, in
    quotes, or with a blank on both sides. Tokens that end a reply are a part of it unless they do
    end it.

    Parameters
    ----------
    holds : bool
        Whether the model has closed thoughts that it had not opened: its answer is then given
        only once they are closed, or at the end.

    Attributes
    ----------
    has_closed : bool
        Whether thoughts were closed.
    """

    def __init__(self, *, holds: bool = False) -> None:
        self.has_closed = False
        self._waits = holds
        self._step: Callable[..., bool] = self._start
        self._rest = ""  # what has come and is not decided
        self._parts: Parts = []
        self._answered = False
        self._is_harmony = False
        self._after_thoughts = False
        self._held: list[str] = []  # a mark, and an answer or a thought, which the end tells
        self._is_thought = (False, False)  # whether they are, by a regular end and if cut
        self._closing = ""  # what ends these thoughts, beside the marks
        self._depth = 0  # marks that thoughts opened within them
        self._behind: list[str] | None = None  # the thoughts behind the last mark that closes
        self._ending = ""  # tokens and blanks that are no part of the answer if it ends here
        self._line = ""  # the text of this line, as long as it may begin with a fence
        self._tail = ""  # the last characters of the text
        self._inline = 0  # backticks that opened code in this line
        self._fence = ""
        self._is_closing = False  # the fence ends with this line if nothing else is in it
        self._quotes_pair = False  # a mark was opened in this fence
        self._quoted: list[str] | None = None  # the answer behind a closing mark in this fence
        self._has_struck = False  # HTML's <s> was there, so </s> is no token

    def add(self, piece: str) -> Parts:
        """Return what is decided once a piece has come."""
        for at in range(0, len(piece), _AT_ONCE):
            self._rest += piece[at : at + _AT_ONCE]
            self._run(final=False)
        return self._given()

    def end(self, *, is_cut: bool) -> Parts:
        """Return the rest, once the reply has ended.

        Parameters
        ----------
        is_cut : bool
            Whether the reply ended at its limit of tokens.
        """
        self._run(final=True)
        if self._step == self._hold:
            self._release(is_cut=is_cut)
        if self._step == self._thoughts and self._behind is not None and not is_cut:
            answer = "".join(self._behind).lstrip()  # a mark within thoughts was one of them
            self._parts.append((Part.ANSWER, answer))
        self._think(self._ending)
        if self._is_in_fence() and self._quoted is not None and not is_cut:
            answer = "".join(self._quoted).lstrip()  # code without an end quotes nothing
            self._parts += [(Part.RETRACTED, ""), (Part.ANSWER, answer)]
            self.has_closed = True
        if self._waits and is_cut:
            self._parts = [(Part.THOUGHT, text) for _, text in self._parts]
        self._waits = False
        return self._given()

    def _run(self, *, final: bool) -> None:
        while self._rest and self._step(final=final):
            pass

    def _given(self) -> Parts:
        if self._waits:
            return []
        parts, self._parts = self._parts, []
        runs = [(kind, "".join(text for _, text in run)) for kind, run in groupby(parts, _KIND)]
        return [(kind, text) for kind, text in runs if text or kind is Part.RETRACTED]

    def _release(self, *, is_cut: bool) -> None:
        mark, *held = self._held
        text = "".join(held)
        if self._is_thought[is_cut]:
            self._think(text)
            return
        text = mark + text
        end = _ENDS_BACKWARDS.match(text[::-1])
        n = len(text) - end.end() if end and end.group().strip() else len(text)
        self._parts.append((Part.ANSWER, text[:n]))
        self._think(text[n:])

    def _take(self, n: int) -> str:
        taken, self._rest = self._rest[:n], self._rest[n:]
        return taken

    def _undecided(self, begun: frozenset[str]) -> int:
        """Return where the last characters may begin a mark; the length if they do not."""
        tail = self._rest[-_LONGEST:].lower()
        n = next((n for n in range(len(tail)) if tail[n:] in begun), len(tail))
        return len(self._rest) - len(tail) + n

    def _think(self, text: str) -> None:
        if text:
            self._parts.append((Part.THOUGHT, text))
            self._tail = (self._tail + text)[-_TAIL:]
            if self._behind is not None:
                self._behind.append(text)

    def _answer(self, text: str) -> None:
        """Give a text as a part of the answer; the tokens before it did not end it."""
        if self._after_thoughts:
            body = text.lstrip()
            self._think(text[: len(text) - len(body)])
            text = body
        if not text:
            return
        self._after_thoughts = False
        text, self._ending = self._ending + text, ""
        self._parts.append((Part.ANSWER, text))
        self._answered = True
        if self._quoted is not None:
            self._quoted.append(text)
        self._line = (self._line + text)[:_MOST_HEADER]
        self._tail = (self._tail + text)[-_TAIL:]

    def _open(self) -> None:
        self._ending, self._step, self._tail = "", self._thoughts, ""
        self._depth, self._behind = 0, None

    def _close(self) -> None:
        """Begin the answer behind thoughts."""
        self._step, self._after_thoughts, self.has_closed = self._text, True, True
        if self._waits:
            self._parts = [(Part.THOUGHT, text) for _, text in self._parts]
            self._waits = False
        self._line = self._tail = self._fence = ""
        self._inline, self._quoted, self._behind = 0, None, None
        self._is_closing = False

    def _retract(self) -> None:
        """Make thoughts of all that was the answer."""
        self._think(self._ending)
        self._ending = ""
        if self._answered:
            self._parts.append((Part.RETRACTED, ""))
        self._answered = False
        self._close()

    def _start(self, *, final: bool) -> bool:
        begun = self._rest.lstrip()
        blank = len(self._rest) - len(begun)
        lower = begun.lower()
        if mark := _FIRST.match(begun):
            self._think(self._take(blank))
            self._take(mark.end())
            if mark["header"]:
                self._begin_header(mark.group())
            else:
                self._open()
            return True
        if not final and (not begun or lower in _FIRST_BEGUN):
            return False
        if lower.startswith("<|") and lower in _FIRST_BEGUN:
            self._think(self._take(len(self._rest)))
            return False
        opening = next((one for one in _UNMARKED if lower.startswith(one)), "")
        is_harmony = opening in _CHANNELS
        if opening and not (is_harmony and not begun.startswith(opening)):
            behind = begun[len(opening) : len(opening) + 1]
            if is_harmony and not behind and not final:
                return False
            is_sure = not is_harmony or behind.isupper() or behind.isdigit() or behind > "~"
            self._closing, self._is_thought = _UNMARKED[opening], (False, is_sure)
            self._hold_behind(self._take(blank + len(opening)))
        else:
            self._step = self._text
        return True

    def _hold_behind(self, mark: str) -> None:
        self._held, self._step = [mark], self._hold

    def _hold(self, *, final: bool) -> bool:
        """Look for the end of what may be thoughts."""
        mark = self._end_of_thoughts()
        soft = self._rest.lower().find(self._closing) if self._closing else -1
        if soft >= 0 and not (mark and mark.start() < soft):
            at, end = soft, soft + len(self._closing)
        elif mark:
            at, end = mark.span()
        else:
            n = len(self._rest)
            if not final:
                n = min(self._undecided(_THOUGHT_BEGUN), n - self._begun_soft())
            self._held.append(self._take(n))
            return False
        self._think("".join(self._held[1:]) + self._take(at))
        self._held, self._closing = [], ""
        self._take(end - at)
        if mark and mark.start() == at and mark["header"]:
            self._begin_header(mark.group())
        else:
            self._close()
        return True

    def _end_of_thoughts(self) -> re.Match[str] | None:
        marks = _THOUGHT.finditer(self._rest)
        return next(
            (one for one in marks if not one["open"] and (self._is_harmony or not one["end"])),
            None,
        )

    def _begun_soft(self) -> int:
        tail = self._rest.lower()
        lengths = range(min(len(self._closing) - 1, len(tail)), 0, -1)
        return next((n for n in lengths if self._closing.startswith(tail[-n:])), 0)

    def _thoughts(self, *, final: bool) -> bool:
        mark = _THOUGHT.search(self._rest)
        if mark is None:
            self._think(self._take(len(self._rest) if final else self._undecided(_THOUGHT_BEGUN)))
            return False
        behind = self._rest[mark.end() : mark.end() + 1]
        if not behind and not final and not mark["header"]:
            self._think(self._take(mark.start()))
            return False
        self._think(self._take(mark.start()))
        text = self._take(len(mark.group()))
        is_quoted = self._tail[-1:] in _QUOTES and behind in _QUOTES and bool(behind)
        if mark["header"]:
            self._begin_header(text)
        elif is_quoted or (mark["end"] and not self._is_harmony):
            self._think(text)
        elif mark["open"]:
            self._think(text)
            self._depth += not self._is_mentioned(text, behind)
        elif self._depth:
            self._depth -= 1
            self._think(text)
            self._behind = []
        else:
            self._close()
        return True

    def _begin_header(self, mark: str) -> None:
        self._is_harmony, self._step, self._line = True, self._header, ""
        self._held = [mark]

    def _header(self, *, final: bool) -> bool:
        """Read for whom a message is: the channel ``final``, or none, is for the reader."""
        at = self._rest.lower().find(_MESSAGE)
        if at < 0:
            if final or len(self._rest) > _MOST_HEADER:
                text = "".join(self._held) + self._take(len(self._rest))
                if self._answered:
                    self._step = self._text
                    self._answer(text)
                else:
                    self._think(text)
                    self._step = self._thoughts
            return False
        header = ("".join(self._held) + self._take(at + len(_MESSAGE))[:at]).lower()
        _, is_channel, channel = header.rpartition("<|channel|>")
        role = "" if is_channel else channel.removeprefix("<|start|>").strip()
        if channel.strip().startswith("final") or role == "assistant":
            self._retract()
        else:
            self._open()
        return True

    def _text(self, *, final: bool) -> bool:
        if not _MAY_MATTER.search(self._rest):
            self._pass_text(self._take(len(self._rest)))
            return False
        mark = _TEXT.search(self._rest)
        if mark is None or (not final and mark["run"] and mark.end() == len(self._rest)):
            n = len(self._rest) if final else self._undecided(_TEXT_BEGUN)
            self._pass_text(self._take(n if mark is None else mark.start()))
            return False
        self._pass_text(self._take(mark.start()))
        text = mark.group()
        behind = self._rest[len(text) : len(text) + 1]
        if mark["line"]:
            self._end_line()
        elif mark["run"]:
            self._read_run(self._take(len(text)))
        elif mark["struck"] or (self._has_struck and text.lower() == "</s>"):
            self._has_struck = True
            self._pass_text(self._take(len(text)))
        elif not behind and not final and not mark["header"]:
            return False
        elif self._is_in_fence() and not (
            self._waits and mark["close"] and self._is_alone(behind)
        ):
            self._quote(mark)
        elif (quoted := self._is_quoted(text, final=final)) is None:
            return False
        elif quoted or (not mark["header"] and self._is_mentioned(text, behind)):
            self._pass_text(self._take(len(text)))
        else:
            self._take(len(text))
            self._read_mark(mark)
        return True

    def _is_alone(self, behind: str) -> bool:
        return not self._line.strip() and behind in ("", "\n", "\r")

    def _is_mentioned(self, mark: str, behind: str) -> bool:
        """Tell whether a mark is one that the text writes of, by what is around it."""
        before = self._tail[-1:]
        if before in (" ", "\t") and behind in (" ", "\t") and self._line.strip():
            return True
        if not self._line.strip() and self._line.endswith(("    ", "\t")):
            return True  # code by its indentation
        if before and before in _QUOTES and behind and behind in _QUOTES:
            return True
        is_closing = mark.startswith(("</", "[/", "◁/")) and bool(self._line.strip())
        return is_closing and (before in _BEFORE or (behind != "" and behind in _BEHIND))

    def _pass_text(self, text: str) -> None:
        if self._ending and not text.strip():
            self._ending += text
        else:
            self._answer(text)

    def _end_line(self) -> None:
        self._pass_text(self._take(1))
        if self._is_closing and not self._line.strip():
            self._end_fence()
        self._line, self._inline, self._is_closing = "", 0, False

    def _end_fence(self) -> None:
        self._fence, self._quoted, self._quotes_pair = "", None, False

    def _is_in_fence(self) -> bool:
        if self._is_closing and not self._line.strip():
            self._end_fence()
            self._is_closing = False
        return bool(self._fence)

    def _read_run(self, run: str) -> None:
        """Read backticks, or tildes, that open or close code."""
        begins = _BEFORE_FENCE.fullmatch(self._line) is not None and not self._is_closing
        self._answer(run)
        if self._fence:
            if begins and run.startswith(self._fence):
                self._is_closing, self._line = True, ""
            elif self._fence[0] == run[0] == "`" and self._inline == len(run):
                self._end_fence()  # all in one line
                self._inline = 0
        elif begins and len(run) >= 3:
            self._fence, self._inline = run, len(run)
        elif run[0] == "`":
            self._inline = {0: len(run), len(run): 0}.get(self._inline, self._inline)

    def _quote(self, mark: re.Match[str]) -> None:
        self._pass_text(self._take(len(mark.group())))
        if mark["open"]:
            self._quotes_pair = True
        elif mark["close"] and not self._quotes_pair:
            self._quoted = []

    def _is_quoted(self, mark: str, *, final: bool) -> bool | None:
        """Tell whether the code of this line ends behind a mark; None if more has to come."""
        if not self._inline:
            return False
        behind = self._rest[len(mark) :]
        line, newline, _ = behind.partition("\n")
        for run in re.finditer("`+", line):
            if len(run.group()) == self._inline and (final or newline or run.end() < len(line)):
                return True
        return False if newline or final or len(line) > _MOST_QUOTED else None

    def _read_mark(self, mark: re.Match[str]) -> None:
        text = mark.group()
        if mark["close"]:
            self._retract()
        elif mark["header"]:
            self._think(self._ending)
            self._ending = ""
            self._begin_header(text)
        elif mark["end"]:
            bare = self._tail.rstrip(" \t")
            if self._is_harmony and text.lower() in _MESSAGE_ENDS:
                self._after_thoughts = True
            elif not self._ending and bare != self._tail and bare[-1:] not in _SENTENCE_ENDS:
                self._answer(text)  # what the sentence ends on
            else:
                self._ending += text
        elif self._answered:
            self._is_thought = (not self._line.strip(), True)
            self._hold_behind(self._ending + text)
            self._ending = ""
        else:
            self._open()


def split(text: str, *, is_cut: bool = False) -> tuple[str, str]:
    r"""Return the answer in a whole reply, and its thoughts.

    Parameters
    ----------
    is_cut : bool
        Whether the reply ended at its limit of tokens.

    Examples
    --------
    >>> split("<think>Is it [[B]]?</think>\n[[A]]"), split("Or B?</think>[[A]]")
    (('[[A]]', 'Is it [[B]]?\n'), ('[[A]]', 'Or B?'))
    >>> split("<think>Is it [[B]]"), split("Close it with `</think>`.")
    (('', 'Is it [[B]]'), ('Close it with `</think>`.', ''))
    """
    splitter = Splitter()
    answer = thoughts = ""
    for kind, piece in (*splitter.add(text), *splitter.end(is_cut=is_cut)):
        if kind is Part.RETRACTED:
            answer, thoughts = "", thoughts + answer
        elif kind is Part.ANSWER:
            answer += piece
        else:
            thoughts += piece
    return answer, thoughts


def answer_tokens(tokens: Sequence[TokenLogprob]) -> Sequence[TokenLogprob]:
    """Return the tokens of the answer in a reply, without those of its thoughts."""
    text = "".join(token.token for token in tokens)
    answer, _ = split(text)
    begin = text.rfind(answer)
    ends = [*accumulate(len(token.token) for token in tokens)]
    rows = zip(tokens, [0, *ends], ends, strict=False)
    return tuple(token for token, at, to in rows if begin < to and at < begin + len(answer))


# Refusals


LOOKED_AT = 400
"""Characters of an answer."""

_OTHERS = "|".join(_FORMS["refusals"].pop("others"))
_BEGINS = "".join(part for parts in _FORMS["refusals"].values() for part in parts)
_REFUSAL = re.compile(rf"^[^\w\"“«]{{0,9}}{_BEGINS}|{_OTHERS}")


def refuses(answer: str) -> bool:
    """Return whether an answer declines what was asked.

    Examples
    --------
    >>> refuses("I'm sorry, but I can't help with that."), refuses("I can't stress this enough!")
    (True, False)
    """
    return _REFUSAL.search(answer[:LOOKED_AT].lower().replace("’", "'")) is not None
