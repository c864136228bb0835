"""The ratings of a study by people, as `arena study export` writes them, one row each."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.studies.items import Items, Labels
from judge.tables.annotations import Annotations, read_annotations
from rating.errors import DataError
from rating.tables.files import Files
from rating.tables.vote_filter import LABELS, SKIP
from rating.typing import Bools, Floats, Ints

KINDS = ("item", "gold", "qualification", "pilot")
SIDES = {"ab": 1, "ba": -1}
CONFIDENCE = {1: "a guess", 2: "fairly sure", 3: "sure"}


@dataclass(frozen=True, slots=True, eq=False)
class Rated:
    """Ratings of pairs, in their items' own sides.

    Attributes
    ----------
    source, study : str
        Where they were read, and the study's name; empty if the file does not say.
    items : Items
    raters : tuple of str
    labels : Labels
        ``first`` is 1 where side A stood on the left, -1 where side B did, 0 where it is unknown.
    kind : ndarray of shape (n,), str
    repeat : ndarray of shape (n,), bool
        Whether the rater saw the item for the second time.
    gold : ndarray of shape (n,)
        The right label; NaN where there is none.
    confidence, seconds : ndarray of shape (n,)
        NaN where unknown.
    skipped : ndarray of shape (n_raters,), int64
        Items that a rater chose nothing of.
    left_out : mapping of str to int
        Rows that are in no figure, by reason.
    """

    source: str
    study: str
    items: Items
    raters: tuple[str, ...]
    labels: Labels
    kind: NDArray[np.str_]
    repeat: Bools
    gold: Floats
    confidence: Floats
    seconds: Floats
    skipped: Ints
    left_out: Mapping[str, int]

    @property
    def counted(self) -> Bools:
        """First ratings of the study's items: neither gold, pilot, qualification nor repeats."""
        return np.asarray((self.kind == "item") & ~self.repeat)

    def repeats(self) -> Ints:
        """Return the rows of items that a rater rated twice, first and second, shape (m, 2)."""
        both = self.labels.rater * self.items.n + self.labels.item
        first, second = np.flatnonzero(~self.repeat), np.flatnonzero(self.repeat)
        _, at, other = np.intersect1d(both[first], both[second], return_indices=True)
        return np.column_stack([first[at], second[other]])


def read_rated(source: Files) -> Rated:
    """Read the ratings of one study.

    Needed are the columns ``item``, ``rater``, ``sides`` and ``choice``; rankings and skipped
    items are left out and counted.

    Raises
    ------
    DataError
        If it cannot be read, a value is none of those in its column, a rater rated an item twice
        without a repeat, or there is no choice at all.
    """
    table = read_annotations(source, "ratings of a study")
    for name in ("item", "rater", "sides", "choice"):
        table.need(name)
    study = _one_study(table)
    choice = _choices(table)
    ranked = np.array([text == "" for text in choice])
    skips = np.array([text == SKIP for text in choice])
    read = np.flatnonzero(~ranked & ~skips)
    if not len(read):
        raise DataError(f"No row of {str(source)!r} has a choice between two answers.")
    raters, rater = _coded(table.texts("rater"))
    kind = np.array(_kinds(table))
    own = [*zip(table.texts("item"), kind.tolist(), strict=True)]
    known, item = _coded([f"{name}\n{of}" for name, of in own])
    repeat = _repeats(table)
    _require_once(table, item[read], rater[read], repeat[read], read)
    signs = {name: round(2 * outcome.score_a - 1) for name, outcome in LABELS.items()}
    labels = Labels(
        item=item[read],
        rater=rater[read],
        label=np.array([signs[choice[row]] for row in read], dtype=np.int8),
        first=np.array([_side(table, row) for row in read.tolist()], dtype=np.int8),
        probability=np.full(len(read), np.nan),
    )
    reasons = Counter(dict(table.left_out))
    reasons.update({"skipped": int(skips.sum()), "a ranking, no choice": int(ranked.sum())})
    gold = table.has("gold")
    return Rated(
        source=str(source),
        study=study,
        items=_items(table, item, len(known)),
        raters=raters,
        labels=labels,
        kind=kind[read],
        repeat=repeat[read],
        gold=np.array(
            [table.right_side("gold", row) if gold else np.nan for row in read.tolist()]
        ),
        confidence=_confidence(table)[read],
        seconds=_seconds(table)[read],
        skipped=np.bincount(rater[skips], minlength=len(raters)),
        left_out={reason: n for reason, n in reasons.items() if n},
    )


def _one_study(table: Annotations) -> str:
    names = sorted(set(table.texts("study"))) if table.has("study") else [""]
    if len(names) > 1:
        raise DataError(
            f"{table.source!r} holds {len(names)} studies ({', '.join(names[:3])} …): choose one, "
            f"as with --where \"study = '{names[0]}'\"."
        )
    return names[0]


def _choices(table: Annotations) -> list[str]:
    """Return the choices, empty for rankings; raises `DataError` for unknown words."""
    known = (*LABELS, SKIP)
    texts = ["" if value is None else str(value).strip() for value in table.need("choice")]
    for row, text in enumerate(texts, 1):
        if text and text not in known:
            wanted = f"one of {', '.join(known)}, or nothing for a ranking"
            raise table.wrong("choice", row, text, wanted)
    return texts


def _kinds(table: Annotations) -> list[str]:
    kinds = table.texts("kind") if table.has("kind") else ["item"] * table.n
    for row, kind in enumerate(kinds, 1):
        if kind not in KINDS:
            raise table.wrong("kind", row, kind, f"one of {', '.join(KINDS)}")
    return kinds


def _repeats(table: Annotations) -> Bools:
    return table.flags("repeat") if table.has("repeat") else np.zeros(table.n, dtype=bool)


def _side(table: Annotations, row: int) -> int:
    value = table.need("sides")[row]
    text = "" if value is None else str(value).strip()
    if text and text not in SIDES:
        raise table.wrong("sides", row + 1, value, "ab or ba, or nothing where it is unknown")
    return SIDES.get(text, 0)


def _confidence(table: Annotations) -> Floats:
    return _numbers(
        table, "confidence", lambda x: np.isin(x, list(CONFIDENCE)), "1, 2 or 3, or nothing"
    )


def _seconds(table: Annotations) -> Floats:
    return _numbers(
        table, "seconds", lambda x: (x >= 0) & (x < np.inf), "seconds from 0 up, or nothing"
    )


def _numbers(
    table: Annotations, name: str, fits: Callable[[Floats], Bools], wanted: str
) -> Floats:
    """Return a column, NaN where there is nothing; raises `DataError` for what does not fit."""
    if not table.has(name):
        return np.full(table.n, np.nan)
    values = table.numbers(name)
    for row in np.flatnonzero(~fits(values) & ~np.isnan(values)).tolist():
        raise table.wrong(name, row + 1, table.need(name)[row], wanted)
    return values


def _coded(names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    known, place = np.unique(np.array(names), return_inverse=True)
    return tuple(known.tolist()), place.astype(np.int64)


def _require_once(table: Annotations, item: Ints, rater: Ints, repeat: Bools, rows: Ints) -> None:
    """Raise `DataError` where a rater rated an item twice, and neither is a repeat."""
    key = np.column_stack([item, rater, repeat])
    _, first, counts = np.unique(key, axis=0, return_index=True, return_counts=True)
    if not (counts > 1).any():
        return
    at = int(first[counts > 1][0])
    name, who = table.texts("item")[rows[at]], table.texts("rater")[rows[at]]
    again = "repeat 1" if repeat[at] else "repeat 0"
    raise DataError(
        f"Rater {who!r} has several ratings of item {name!r} with {again} in {table.source!r}: "
        "one file of one study holds each once."
    )


def _items(table: Annotations, item: Ints, n_items: int) -> Items:
    """Give items numbered prompts and models; without its name a prompt is the item's own."""
    prompt = _filled(table, "prompt_id", item)
    sides = [_filled(table, name, None) for name in ("model_a", "model_b")]
    models, codes = _coded([*sides[0], *sides[1]])
    named = np.column_stack([codes.reshape(2, -1).T, _coded(prompt)[1]])
    each = np.zeros((n_items, 3), dtype=np.int64)
    each[item[::-1]] = named[::-1]
    for row in np.flatnonzero((named != each[item]).any(axis=1)).tolist():
        raise DataError(
            f"Row {row + 1} of {table.source!r} has item {table.texts('item')[row]!r} with "
            "another prompt or other models than a row before: an item is one prompt and two "
            "answers."
        )
    return Items(models, each[:, :2], np.unique(each[:, 2], return_inverse=True)[1])


def _filled(table: Annotations, name: str, instead: Ints | None) -> list[str]:
    """Return names, and where there is none, a number of its own or nothing."""
    values: Sequence[Any] = table.need(name).tolist() if table.has(name) else [None] * table.n
    spare = [""] * table.n if instead is None else [f"\n{i}" for i in instead.tolist()]
    return [
        other if value is None or not str(value).strip() else str(value)
        for value, other in zip(values, spare, strict=True)
    ]
