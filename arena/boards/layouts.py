"""Battles in the columns of other tools: of which battles there is a row, and what is in it."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena.boards.dataset_card import Written
from arena.boards.transcripts import Row, Texts, export_rows, total
from arena.domain.vote import Choice, Policy
from arena.store.chain import AnyRow
from arena.store.transcripts import LoggedBattle, is_erased, shown
from judge.tables.cells import MARKDOWN, elements_by_kind
from rating.errors import DataError

_MESSAGES = "STRUCT(role VARCHAR, content VARCHAR)[]"
CHATBOT_ARENA = {
    "question_id": "VARCHAR",
    "model_a": "VARCHAR",
    "model_b": "VARCHAR",
    "winner": "VARCHAR",
    "judge": "VARCHAR",
    "conversation_a": _MESSAGES,
    "conversation_b": _MESSAGES,
    "turn": "BIGINT",
    "anony": "VARCHAR",
    "language": "VARCHAR",
    "tstamp": "DOUBLE",
    "conv_metadata": "VARCHAR",
}
"""Columns as Chatbot Arena publishes them; `rating.tables.peers` reads them back."""
TRL = {"prompt": _MESSAGES, "chosen": _MESSAGES, "rejected": _MESSAGES}
"""Columns of TRL's preferences, with an explicit prompt; `judge.tables.native` reads them back."""
BOTH_BAD = "tie (bothbad)"
"""What Chatbot Arena calls a vote for neither."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How another tool has battles.

    Attributes
    ----------
    columns : mapping of str to str
        SQL's type of each.
    lay : callable
        Gives the row of a battle, its texts as they leave.
    lacks : str
        What it has no columns for, as a sentence.
    unfit : callable
        Why there is no row of a battle that counts, or None.
    endings : tuple of str
        Kinds of files that the tool reads as this.
    """

    columns: Mapping[str, str]
    lay: Callable[[LoggedBattle, Texts], Iterator[Row]]
    lacks: str
    unfit: Callable[[LoggedBattle], str | None] = lambda _: None
    endings: tuple[str, ...] = (".parquet", ".csv", ".jsonl")


def export_in_layout(
    battles: Iterable[LoggedBattle], policy: Policy, path: Path, name: str, *, whole: bool = False
) -> Written:
    """Write the battles whose votes a policy counts as another tool has them.

    Parameters
    ----------
    name : str
        One of `LAYOUTS`.
    whole : bool
        Leave what is personal in the texts.

    Raises
    ------
    DataError
        If the tool does not read such a file as this, or it cannot be written.
    """
    layout = LAYOUTS[name]
    if path.suffix and path.suffix not in layout.endings:
        msg = (
            f"Cannot write {str(path)!r} in the layout {name!r}, whose columns are lists of "
            f"messages: name a file that ends in {' or '.join(layout.endings)}."
        )
        raise DataError(msg)
    written = export_rows(
        battles, policy, path, layout.columns, layout.lay, whole=whole, unfit=layout.unfit
    )
    written.lacks = layout.lacks
    return written


def _as_chatbot_arena(battle: LoggedBattle, texts: Texts) -> Iterator[Row]:
    turns, row = shown(battle), battle.row
    asked = [texts(turn, turn.prompt) or "" for turn, _ in turns]
    metadata: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    for side in "ab":
        answers = [answers[side] for _, answers in turns]
        words = [texts(one, one.text) or "" for one in answers]
        theirs[f"conversation_{side}"] = _as_json(_messages(asked, words))
        metadata |= {f"{name}_{side}": value for name, value in _their_counts(answers).items()}
        metadata[f"sum_assistant_{side}_tokens"] = total([one.tokens_out for one in answers])
    yield theirs | {
        "question_id": row.prompt_id or row.battle_id,
        "model_a": row.model_a,
        "model_b": row.model_b,
        "winner": BOTH_BAD if row.winner == Choice.BOTH_BAD else row.winner,
        "judge": row.voter,
        "turn": len(turns),
        "anony": "true",
        "tstamp": row.ts.timestamp(),
        "conv_metadata": json.dumps(metadata),
    }


def _messages(asked: list[str], words: list[str]) -> list[dict[str, str]]:
    pairs = zip(asked, words, strict=True)
    return [
        {"role": role, "content": text}
        for pair in pairs
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _their_counts(answers: list[AnyRow]) -> dict[str, dict[str, int]]:
    counts = sum((elements_by_kind(one.text) for one in answers), Counter[str]())
    return {
        "header_count": {kind: counts[kind] for kind in MARKDOWN["headers"]},
        "list_count": {kind: counts[kind] for kind in MARKDOWN["lists"]},
        "bold_count": {"**": counts["bold"], "__": 0},
    }


def _as_preference(battle: LoggedBattle, texts: Texts) -> Iterator[Row]:
    """Lay out a conversation as TRL takes one apart: the prompt is what both sides begin with."""
    turns = shown(battle)
    asked = [texts(turn, turn.prompt) or "" for turn, _ in turns]
    a, b = (
        _messages(asked, [texts(answers[side], answers[side].text) or "" for _, answers in turns])
        for side in "ab"
    )
    chosen, rejected = (a, b) if battle.row.winner == Choice.A else (b, a)
    apart = (place for place, (ours, other) in enumerate(zip(a, b, strict=True)) if ours != other)
    cut = next(apart, len(a) - 1)
    yield {
        "prompt": _as_json(chosen[:cut]),
        "chosen": _as_json(chosen[cut:]),
        "rejected": _as_json(rejected[cut:]),
    }


def _no_preference(battle: LoggedBattle) -> str | None:
    if battle.row.winner not in (Choice.A, Choice.B):
        return "no answer is preferred"
    rows = [one for turn, answers in shown(battle) for one in (turn, *answers.values())]
    return "words were erased" if any(map(is_erased, rows)) else None


LAYOUTS = {
    "chatbot-arena": Layout(
        CHATBOT_ARENA,
        _as_chatbot_arena,
        "Chatbot Arena has no columns for ids of battles, how they were drawn and paced, what "
        "answers took and cost, labels but the language, and remarks.",
    ),
    "trl": Layout(
        TRL,
        _as_preference,
        "TRL has a prompt, a chosen and a rejected answer: no models, sides, voters, times, "
        "labels and remarks.",
        _no_preference,
        (".parquet", ".jsonl"),
    ),
}
"""By the word of ``--layout``."""
