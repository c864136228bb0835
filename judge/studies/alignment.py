"""Which rows are on the same item, which way round, and what texts belong to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.refusals import refuses
from judge.studies.items import Items
from judge.studies.rows import Rows, blank
from judge.tables.cells import elements
from rating.counting import spelling
from rating.errors import DataError
from rating.sentences import counted
from rating.tables.coding import Coded
from rating.typing import Bools, Floats, Ints

PROMPT_AND_PAIR = "prompt and pair"
KEYS = {"item_id": "item", PROMPT_AND_PAIR: "prompt", "battle_id": "battle"}
"""What identifies an item, and the role that must have a name in every row."""

NO_ITEM = "Neither an item_id, a prompt_id nor a battle_id is in both"


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Items, and for the rows of each source which item they are on.

    Attributes
    ----------
    item, flipped : tuple of ndarray
        One of each source: index of the item, and whether side A of the row is side B of the
        item.
    prompts : tuple of str
        Names by their number in ``items.prompt``.
    keyed_by : str
        ``item_id``, ``prompt and pair`` or ``battle_id``.
    """

    items: Items
    item: tuple[Ints, ...]
    flipped: tuple[Bools, ...]
    prompts: tuple[str, ...]
    keyed_by: str
    warnings: tuple[str, ...] = ()

    def only(self, *rows: Bools) -> "Aligned":
        """Keep some rows of each source, and the items and prompts that these are on."""
        item = [own[mask] for own, mask in zip(self.item, rows, strict=True)]
        used, numbers = np.unique(np.concatenate(item), return_inverse=True)
        prompts, prompt = np.unique(self.items.prompt[used], return_inverse=True)
        there, pairs = np.unique(self.items.pairs[used], return_inverse=True)
        models = tuple(self.items.models[code] for code in there)
        return Aligned(
            Items(models, pairs.reshape(-1, 2).astype(np.int64), prompt.astype(np.int64)),
            (numbers[: len(item[0])], numbers[len(item[0]) :]),
            tuple(own[mask] for own, mask in zip(self.flipped, rows, strict=True)),
            tuple(self.prompts[code] for code in prompts),
            self.keyed_by,
        )


def align(votes: Rows, verdicts: Rows) -> Aligned:
    """Find the items of votes and verdicts: by item_id, else by prompt and unordered pair.

    Side A of an item is the model whose name sorts first. Where some vote has no prompt, as on a
    prompt that was typed, battles are matched by their id.

    Raises
    ------
    DataError
        If nothing says which rows belong together, an item holds two pairs of models, or no
        item has both a vote and a verdict.
    """
    both = (votes, verdicts)
    models, left, right = _models(both)
    low, high = np.minimum(left, right), np.maximum(left, right)
    keyed_by = _keyed_by(both)
    prompt = _prompts(both)
    if keyed_by == PROMPT_AND_PAIR:
        key = (prompt[0] * len(models) + low) * len(models) + high
    else:
        _, codes = merged([rows.names[KEYS[keyed_by]] for rows in both])
        key = np.concatenate(codes)
    _, first, item = np.unique(key, return_index=True, return_inverse=True)
    item = item.astype(np.int64)
    _require_one_pair(both, item, low, high, first)
    numbers, names, warnings = _numbered(prompt, item, len(first))
    items = Items(models, np.column_stack((low[first], high[first])), numbers)
    flipped = left > right
    ours = slice(0, votes.n), slice(votes.n, None)
    if not np.isin(item[ours[0]], item[ours[1]]).any():
        msg = (
            f"No item of {votes.source!r} has a verdict in {verdicts.source!r} (matched by "
            f"{keyed_by}): check that both name prompts and models alike."
        )
        raise DataError(msg)
    return Aligned(
        items,
        tuple(item[part] for part in ours),
        tuple(flipped[part] for part in ours),
        names,
        keyed_by,
        warnings,
    )


def merged(columns: Sequence[Coded]) -> tuple[tuple[str, ...], list[Ints]]:
    """Give all names, sorted, and each column's positions in them; -1 where there is none.

    >>> merged([Coded(("y",), np.array([0, -1])), Coded(("x",), np.array([0]))])
    (('x', 'y'), [array([ 1, -1]), array([0])])
    """
    names = tuple(sorted({name for column in columns for name in column.names if name.strip()}))
    place = {name: position for position, name in enumerate(names)}
    places = [np.array([*(place.get(n, -1) for n in c.names), -1]) for c in columns]
    return names, [at[c.codes] for at, c in zip(places, columns, strict=True)]


def _models(both: Sequence[Rows]) -> tuple[tuple[str, ...], Ints, Ints]:
    columns = [rows.names[side] for side in ("model_a", "model_b") for rows in both]
    names, codes = merged(columns)
    used = np.zeros(len(names), dtype=bool)
    used[np.concatenate(codes)] = True
    place = np.cumsum(used) - 1
    models = tuple(name for name, is_used in zip(names, used, strict=True) if is_used)
    _refuse_twins(models)
    return models, place[np.concatenate(codes[:2])], place[np.concatenate(codes[2:])]


def _refuse_twins(names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(spelling(name), name)
        if other != name:
            msg = (
                f"Models {other!a} and {name!a} differ only in case, spaces or characters that "
                "look alike: give each model one spelling in votes and verdicts."
            )
            raise DataError(msg)


def _keyed_by(both: Sequence[Rows]) -> str:
    """Choose the first of `KEYS` that has a name in every row of both sources."""
    for name, role in KEYS.items():
        if all(role in rows.names and not blank(rows.names[role]).any() for rows in both):
            return name
    names = " and ".join(repr(rows.source) for rows in both)
    msg = f"{NO_ITEM} {names}, in every row: name what each row is on, the same in both."
    raise DataError(msg)


def _prompts(both: Sequence[Rows]) -> tuple[Ints, tuple[str, ...]]:
    """Give the prompt of every row, -1 where it has none."""
    names, codes = merged(
        [rows.names.get("prompt", Coded((), np.full(rows.n, -1))) for rows in both]
    )
    return np.concatenate(codes), names


def _numbered(
    prompt: tuple[Ints, tuple[str, ...]], item: Ints, n_items: int
) -> tuple[Ints, tuple[str, ...], tuple[str, ...]]:
    """Give each item's prompt a number from 0; an item without a prompt is one by itself."""
    codes, names = prompt
    of_item = np.full(n_items, -1, dtype=np.int64)
    known = codes >= 0
    of_item[item[known][::-1]] = codes[known][::-1]  # the first row that names one
    alone = of_item < 0
    of_item[alone] = len(names) + np.flatnonzero(alone)
    used, numbers = np.unique(of_item, return_inverse=True)
    prompts = tuple(names[code] if code < len(names) else "" for code in used)
    warning = counted(
        "%(n)s item has no prompt: it is taken as a prompt of its own.",
        "%(n)s items have no prompt: each is taken as a prompt of its own, and intervals are too "
        "narrow if several share one.",
        int(alone.sum()),
    )
    return numbers.astype(np.int64), prompts, (warning,) if alone.any() else ()


def _require_one_pair(
    both: Sequence[Rows], item: Ints, low: Ints, high: Ints, first: NDArray[Any]
) -> None:
    wrong = np.flatnonzero((low != low[first][item]) | (high != high[first][item]))
    if not wrong.size:
        return
    row = int(wrong[0])
    rows, at = (both[0], row) if row < both[0].n else (both[1], row - both[0].n)
    column = rows.names.get("item") or rows.names["battle"]
    name = column.names[column.codes[at]]
    msg = (
        f"Item {name!r} in {rows.source!r} is on other models than elsewhere: an item is one "
        "prompt and two models."
    )
    raise DataError(msg)


def gaps(rows: Rows, item: Ints, flipped: Bools, role: str, n_items: int) -> Floats:
    """Give the doublings by which side A of an item exceeds side B, NaN where it is not known.

    Nothing counts as one: a response of no character, or of no element of markdown, has one
    less doubling than any other.
    """
    if role == REFUSAL:
        return _refusals(rows, item, flipped, n_items)
    doublings = np.full(n_items, np.nan)
    sides = [rows.numbers.get(f"{role}_{side}") for side in "ab"]
    if sides[0] is None or sides[1] is None:
        return doublings
    more = 1.0 if role == "format" else 0.0
    a, b = (np.log2(np.maximum(side + more, 1.0)) for side in sides if side is not None)
    gap = np.where(flipped, b - a, a - b)
    known = np.isfinite(gap)
    doublings[item[known][::-1]] = gap[known][::-1]
    return doublings


def _refusals(rows: Rows, item: Ints, flipped: Bools, n_items: int) -> Floats:
    """Give 1 where only side A of an item declines, -1 where only side B does, else 0.

    Raises
    ------
    DataError
        If a figure is neither 0 nor 1.
    """
    gap = np.full(n_items, np.nan)
    if "refusal_a" not in rows.numbers:
        return gap
    a, b = (rows.numbers[f"refusal_{side}"] for side in "ab")
    both = np.concatenate([a, b])
    bad = both[~np.isnan(both) & (both != 0) & (both != 1)]
    if bad.size:
        msg = f"refused_a and refused_b of {rows.source!r} hold {bad[0]:g}: make it 0, 1 or empty."
        raise DataError(msg)
    each = np.where(flipped, b - a, a - b)
    known = ~np.isnan(each)
    gap[item[known][::-1]] = each[known][::-1]
    return gap


REFUSAL = "refusal"


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """Responses, by prompt and model.

    Attributes
    ----------
    texts : mapping of (str, str) to str
        By the names of the prompt and of the model.
    """

    texts: Mapping[tuple[str, str], str]

    def gaps(self, items: Items, prompts: Sequence[str]) -> dict[str, Floats]:
        """Give differences of length and format, in doublings, and of declining (1, 0, -1).

        NaN where a response is missing.

        Parameters
        ----------
        prompts : sequence of str
            Names by their number in ``items.prompt``.
        """
        unknown = (np.nan, np.nan, np.nan)
        asked = {*prompts}
        sizes = {
            (prompt, model): (max(len(text), 1), 1 + elements(text), 2.0 ** refuses(text))
            for (prompt, model), text in self.texts.items()
            if prompt in asked
        }
        names = [prompts[number] for number in items.prompt]
        a, b = (
            np.log2(
                [
                    sizes.get((name, items.models[model]), unknown)
                    for name, model in zip(names, items.pairs[:, side], strict=True)
                ]
            )
            for side in (0, 1)
        )
        length, format_, refusal = (a - b).T
        return {"length": length, "format": format_, REFUSAL: refusal}

    def of(self, data: Items, prompts: Sequence[str], item: int) -> list[str | None]:
        """Give both responses of an item, side A first; None where one is missing."""
        prompt = prompts[data.prompt[item]]
        return [self.texts.get((prompt, data.models[model])) for model in data.pairs[item]]
