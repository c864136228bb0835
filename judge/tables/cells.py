"""What tables of cases hold: the names of their columns, cells as turns, images, and styles."""

import base64
import binascii
import re
import stat
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judge.case import ROLES, Message
from rating.errors import DataError
from rating.outcome import SIDES, of_sides
from rating.tables.files import json_or_text

PROMPTS = ("prompt", "instruction")
ASKED = (*PROMPTS, "text", "turns", "question")
"""Columns of a prompt: of a file of cases, and of one of prompts; the first that is there."""
OUTPUTS, GENERATORS = ("output", "response"), ("generator", "model")
_TEXTS = (of_sides("response"), of_sides("output"), ("output_1", "output_2"))
RESPONSES = dict(zip(SIDES, zip(*_TEXTS, strict=True), strict=True))
_WRITERS = (of_sides("model"), ("model", "baseline"), ("generator_1", "generator_2"))
MODELS = dict(zip(SIDES, zip(*_WRITERS, strict=True), strict=True))
CONVERSATIONS = of_sides("conversation")
PROMPT_IDS = ("prompt_id", "question_id", "instruction_id", *PROMPTS, "id")
MODEL_IDS = ("model_id", "model", "generator", "name")
TEXTS = (*OUTPUTS, "answer", "result", "text")
"""Columns of recorded outputs, in which prompts and models have names."""

NO_ANSWER = "without an answer"
NO_TURNS = "in which user and assistant do not take turns"
_IMAGES = "with an image that is neither a data: URL nor an address by https"
_SENT = ("data:", "https:")
_PARTS = "with parts that are neither text nor image"
_WORDS = ("content", "answer")
"""Keys of the words of a message, and of an answer of Arena-Hard v2."""


def turns_of(
    cell: object, speaker: str = "user", *, lists: bool = False, images: bool = True
) -> list[Message]:
    """Read what was said, turn by turn.

    Parameters
    ----------
    cell : object
        A text, a list of texts, messages with ``role`` and ``content``, or content blocks, which
        are one turn. Null is a turn in which nothing was said: its text is empty.
    speaker : str
        Whose words a text without a role is.
    lists : bool
        Whether JSON of a list of texts is that list. Otherwise only JSON of messages or of content
        blocks is read, since a prompt may well be a list in JSON.
    images : bool
        Whether images are read beside the text; otherwise the text alone.

    Raises
    ------
    DataError
        For anything else: the reason why a row is excluded.

    Examples
    --------
    >>> [turn.content for turn in turns_of('["Hi.", null]', lists=True)]
    ['Hi.', '']
    >>> turns_of([{"type": "text", "text": "Why?"}])
    [Message(role='user', content='Why?', images=())]
    """
    value = plain(cell)
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        several = json_or_text(value)
        if isinstance(several, list) and (lists or (several and all(map(_is_turn, several)))):
            value = several
    if not isinstance(value, list) or (value and all(map(_is_block, value))):
        value = [value if isinstance(value, Message) else {"content": value}]
    return [_turn(one, speaker, images=images) for one in value]


def exchange(
    a: Sequence[Message], b: Sequence[Message]
) -> tuple[list[Message], list[str], list[str]]:
    """Give what the user said in two conversations, and what each side answered.

    Raises
    ------
    DataError
        If they do not take turns, or the user did not say the same on both sides: a reason.
    """
    (asked, of_a), (also_asked, of_b) = _apart(a), _apart(b)
    if asked != also_asked:
        raise DataError("in which the user's turns differ between the sides")
    return asked, of_a, of_b


def plain(value: Any) -> Any:
    """Make lists of arrays, as Parquet gives for lists, at any depth; None of what is masked."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def data_of(cell: object) -> Any:
    """Give what a cell holds as an array, or as JSON; a text that is no JSON as it stands."""
    return json_or_text(cell) if isinstance(cell, str) else plain(cell)


def _is_block(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str) and "role" not in value


def _is_turn(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    is_block = _is_block(value) and {"text", "image", "image_url"} & value.keys()
    return bool(is_block) or {"role", "content"} <= value.keys()


def _turn(value: Any, speaker: str, *, images: bool) -> Message:
    if isinstance(value, Message):
        return value
    message = value if isinstance(value, dict) else {"content": value}
    role: Any = message.get("role") or speaker
    role = "user" if role == "human" else role
    if role not in ROLES:
        raise DataError(f"with the role {role!r}")
    words, shown = _content(message, images=images)
    return Message(role, words, shown)


def _content(value: Any, *, images: bool) -> tuple[str, tuple[str, ...]]:
    """Give the text of a message or a content block, and its images."""
    if value is None or isinstance(value, str):
        return value or "", ()
    if isinstance(value, list):
        parts = [_content(one, images=images) for one in value]
        texts = "\n\n".join(text for text, _ in parts if text)
        return texts, tuple(image for _, shown in parts for image in shown)
    if not isinstance(value, dict):
        raise DataError(_PARTS)
    image = value.get("image") or value.get("image_url")
    image = image.get("url", image) if isinstance(image, dict) else image
    if image and images and not (isinstance(image, str) and image.startswith(_SENT)):
        raise DataError(_IMAGES)
    names = ("text", *_WORDS) if _is_block(value) else _WORDS
    name = next((name for name in names if name in value), None)
    if not image and name is None:
        raise DataError(_PARTS)
    words, shown = _content(value[name] if name else None, images=images)
    return words, (*shown, *([image] if image and images else ()))


def _apart(talk: Sequence[Message]) -> tuple[list[Message], list[str]]:
    n = next((n for n, turn in enumerate(talk) if turn.role != "system"), len(talk))
    turns = [*talk[n:]]
    if len(turns) % 2:  # the last turn was never answered
        turns.append(Message("assistant", ""))
    asked, answers = turns[::2], turns[1::2]
    if {turn.role for turn in asked} != {"user"} or {turn.role for turn in answers} != {
        "assistant"
    }:
        raise DataError(NO_TURNS)
    return [*talk[:n], *asked], [turn.content for turn in answers]


MOST_BYTES = 5_000_000
"""Of an image: less than any endpoint takes that takes images."""
MOST_IMAGES = 10
"""Of a prompt."""
LONGEST_ADDRESS = 2000
_BEGINS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""How files of the kinds that endpoints take begin."""
_DATA, _HTTPS = "data:", "https://"


def read_image(value: str, folder: Path | None) -> str:
    """Give an image as it is sent: an address by https as it stands, else a ``data:`` URL.

    Parameters
    ----------
    value : str
        A path, a ``data:`` URL in base64, or an address by https.
    folder : Path or None
        In which a path is looked for, and which it may not leave: who wrote the cases may not have
        a file of another folder sent away. None takes no path.

    Raises
    ------
    DataError
        If it is none of these, no PNG, JPEG, GIF or WebP, or too large.

    Examples
    --------
    >>> read_image("https://example.org/cat.png", None)
    'https://example.org/cat.png'
    """
    if value.startswith(_HTTPS):
        if len(value) > LONGEST_ADDRESS or any(char.isspace() for char in value):
            msg = f"an address is one word of at most {LONGEST_ADDRESS:,} characters"
            raise DataError(f"{msg}, not {value[:60]!r}.")
        return value
    if value.startswith(_DATA):
        head, _, body = value.partition(",")
        if not head.endswith(";base64"):
            raise DataError(f"a data: URL of an image is in base64, not {value[:40]!r}.")
        try:
            return _checked(base64.b64decode(body, validate=True), value[:40])
        except binascii.Error as error:
            raise DataError(f"{value[:40]!r} is no base64: {error}.") from error
    if "://" in value:
        raise DataError(f"an address is by https, not {value[:60]!r}.")
    if folder is None:
        raise DataError(
            f"{value[:60]!r} is a path, and these cases lie in no single folder: give a data: URL "
            "or an address by https."
        )
    return _checked(_in_folder(value, folder), value[:60])


def _in_folder(value: str, folder: Path) -> bytes:
    """Read a file below a folder; a link that leads out of it is out of it."""
    try:
        path = (folder / value).resolve()
        if not path.is_relative_to(folder.resolve()):
            msg = f"{value[:60]!r} lies outside of the folder of the cases: move it there."
            raise DataError(msg)
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataError(f"{value[:60]!r} is no file.")
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {value[:60]!r}: {reason}.") from error


def _checked(data: bytes, name: str) -> str:
    """Make a ``data:`` URL of an image, whose kind its first bytes tell."""
    if len(data) > MOST_BYTES:
        msg = f"{name!r} is larger than {MOST_BYTES:,} bytes: make it smaller."
        raise DataError(msg)
    kind = next((kind for kind, begin in _BEGINS.items() if data.startswith(begin)), None)
    if kind is None or (kind == "image/webp" and data[8:12] != b"WEBP"):
        raise DataError(f"{name!r} is no PNG, JPEG, GIF or WebP.")
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


ELEMENTS = r"(?m)(^#{1,6} )|(^\s*(?:[-*+]|\d+[.)])\s)|(\*\*[^*\n]+\*\*)|(^```)"
"""Headings, list items, words in bold and fences of code; read alike by Python and by duckdb."""
MARKDOWN = {
    "headers": ("h1", "h2", "h3", "h4", "h5", "h6"),
    "lists": ("ordered", "unordered"),
    "bold": ("bold",),
}
STYLES = ("length", *MARKDOWN, "code")
"""What is counted of responses, in columns that ``arena rate --style`` takes."""


def elements(text: str) -> int:
    r"""Count headings, list items, words in bold and fences of code.

    Examples
    --------
    >>> elements("# Sky\n- **Blue**, mostly\n- grey")
    4
    """
    return sum(elements_by_kind(text).values())


def elements_by_kind(text: str) -> Counter[str]:
    r"""Count what `elements` counts by what it is: h1 to h6, ordered, unordered, bold, fence.

    Examples
    --------
    >>> sorted(elements_by_kind("# Sky\n1. **Blue**\n- grey").items())
    [('bold', 1), ('h1', 1), ('ordered', 1), ('unordered', 1)]
    """
    return Counter(map(_kind, re.finditer(ELEMENTS, text)))


def style_of(text: str) -> dict[str, int]:
    r"""Count what `STYLES` names in a response.

    Examples
    --------
    >>> style_of("# Sky\n- **Blue**")
    {'length': 16, 'code': 0, 'headers': 1, 'lists': 1, 'bold': 1}
    """
    counts = elements_by_kind(text)
    styles = {name: sum(counts[kind] for kind in kinds) for name, kinds in MARKDOWN.items()}
    return {"length": len(text), "code": (counts["fence"] + 1) // 2} | styles


def _kind(element: re.Match[str]) -> str:
    heading, item, bold, _ = element.groups()
    if heading:
        return f"h{len(heading) - 1}"
    if item:
        return "ordered" if item.strip()[0].isdigit() else "unordered"
    return "bold" if bold else "fence"
