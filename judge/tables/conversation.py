"""A cell as the turns of a conversation: text, list, messages, content blocks or JSON."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from judge.case import ROLES, Message
from rating.errors import DataError
from rating.tables.files import json_or_text

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


def _is_block(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str) and "role" not in value


def _is_turn(value: object) -> bool:
    return _is_block(value) or (isinstance(value, dict) and {"role", "content"} <= value.keys())


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
