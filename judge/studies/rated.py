"""The ratings of a study by people, as `arena study export` writes them, one row each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge.case import Order
from judge.studies.data import ORDERS
from judge.studies.items import Items, Labels
from judge.studies.rows import rows_from
from judge.tables.annotations import Annotations, read_annotations
from rating.errors import DataError
from rating.outcome import of_sides
from rating.tables.files import Files
from rating.tables.vote_filter import LABELS, SKIP
from rating.typing import Bools, Floats, Ints

KINDS = ("item", "gold", "qualification", "pilot")
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
    studies = sorted(set(table.texts("study"))) if table.has("study") else [""]
    if len(studies) > 1:
        raise DataError(
            f"{table.source!r} holds {len(studies)} studies ({', '.join(studies[:3])} …): choose "
            f"one, as with --where \"study = '{studies[0]}'\"."
        )
    ranking = f"one of {', '.join((*LABELS, SKIP))}, or nothing for a ranking"
    choice = _words(table, "choice", (*LABELS, SKIP, ""), ranking)
    read = np.flatnonzero(~np.isin(choice, ["", SKIP]))
    if not len(read):
        raise DataError(f"No row of {str(source)!r} has a choice between two answers.")
    raters, rater = np.unique(table.texts("rater"), return_inverse=True)
    kind = np.full(table.n, "item")
    if table.has("kind"):
        table.texts("kind")
        kind = _words(table, "kind", KINDS, f"one of {', '.join(KINDS)}")
    repeat = table.flags("repeat") if table.has("repeat") else np.zeros(table.n, dtype=bool)
    item, items = _items(table, kind)
    _require_once(table, item[read], rater[read], repeat[read], read)
    sides = _words(table, "sides", (*Order, ""), "ab or ba, or nothing where it is unknown")
    signs = {name: round(2 * outcome.score_a - 1) for name, outcome in LABELS.items()}
    labels = Labels(
        item=item[read],
        rater=rater[read],
        label=np.array([signs[name] for name in choice[read].tolist()], dtype=np.int8),
        first=np.array([ORDERS.get(name, 0) for name in sides[read].tolist()], dtype=np.int8),
        probability=np.full(len(read), np.nan),
    )
    reasons = Counter(dict(table.left_out))
    reasons.update({"skipped": int((choice == SKIP).sum())})
    reasons.update({"a ranking, no choice": int((choice == "").sum())})
    gold = [table.right_side("gold", r) if table.has("gold") else np.nan for r in read.tolist()]
    sure = _numbers(table, "confidence", [*CONFIDENCE], "1, 2 or 3, or nothing")
    seconds = _numbers(table, "seconds", None, "seconds from 0 up, or nothing")
    return Rated(
        source=str(source),
        study=studies[0],
        items=items,
        raters=tuple(raters.tolist()),
        labels=labels,
        kind=kind[read],
        repeat=repeat[read],
        gold=np.array(gold),
        confidence=sure[read],
        seconds=seconds[read],
        skipped=np.bincount(rater[choice == SKIP], minlength=len(raters)),
        left_out={reason: n for reason, n in reasons.items() if n},
    )


def _words(table: Annotations, name: str, known: Sequence[str], wanted: str) -> NDArray[np.str_]:
    """Give a column of words, empty where there is none; raises `DataError` for unknown ones."""
    words = ["" if value is None else str(value).strip() for value in table.need(name)]
    for row, word in enumerate(words):
        if word not in known:
            raise table.wrong(name, row + 1, table.need(name)[row], wanted)
    return np.array(words)


def _numbers(table: Annotations, name: str, known: Sequence[int] | None, wanted: str) -> Floats:
    """Give known numbers, or any from 0 up; NaN for nothing; raises `DataError` for others."""
    values = table.numbers(name) if table.has(name) else np.full(table.n, np.nan)
    fits = (values >= 0) & (values < np.inf) if known is None else np.isin(values, known)
    for row in np.flatnonzero(~fits & ~np.isnan(values)).tolist():
        raise table.wrong(name, row + 1, table.need(name)[row], wanted)
    return values


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


def _items(table: Annotations, kind: NDArray[np.str_]) -> tuple[Ints, Items]:
    """Give items numbered prompts and models; without its name a prompt is the item's own."""
    names = table.texts("item")
    own = [f"{name}\n{of}" for name, of in zip(names, kind.tolist(), strict=True)]
    _, first, item = np.unique(own, return_index=True, return_inverse=True)
    nothing = [""] * table.n
    of = {x: [*table.columns.get(x, nothing)] for x in ("prompt_id", *of_sides("model"))}
    prompt_id, *sides = (rows_from(of, table.source).named(name) for name in of)
    prompt = [given or f"\n{at}" for given, at in zip(prompt_id, item.tolist(), strict=True)]
    prompts = np.unique(prompt, return_inverse=True)[1]
    models, codes = np.unique([name or "" for side in sides for name in side], return_inverse=True)
    pairs = codes.reshape(2, -1).T.astype(np.int64)
    named = np.column_stack([pairs, prompts])
    for row in np.flatnonzero((named != named[first][item]).any(axis=1)).tolist():
        raise DataError(
            f"Row {row + 1} of {table.source!r} has item {names[row]!r} with another prompt or "
            "other models than a row before: an item is one prompt and two answers."
        )
    numbers = np.unique(prompts[first], return_inverse=True)[1]
    return item.astype(np.int64), Items(tuple(models.tolist()), pairs[first], numbers)
