"""Which rows are on the same item, which way round, and what texts belong to it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.studies.items import Items
from judge.studies.rows import Rows, blank, elements
from judge.tables.annotations import Annotations, read_annotations
from rating.errors import DataError
from rating.tables.coding import Coded
from rating.tables.columns import quoted_names
from rating.typing import Bools, Floats, Ints

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
    if keyed_by == "item_id":
        key, _ = _joined(both, "item")
    elif keyed_by == "battle_id":
        key, _ = _joined(both, "battle")
    else:
        key = (prompt[0] * len(models) + low) * len(models) + high
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
        other = seen.setdefault(" ".join(name.split()).casefold(), name)
        if other != name:
            msg = (
                f"Models {other!r} and {name!r} differ only in case or spaces: give each model "
                "one spelling in votes and verdicts."
            )
            raise DataError(msg)


def _keyed_by(both: Sequence[Rows]) -> str:
    if _complete(both, "item"):
        return "item_id"
    if _complete(both, "prompt"):
        return "prompt and pair"
    if _complete(both, "battle"):
        return "battle_id"
    names = " and ".join(repr(rows.source) for rows in both)
    msg = f"{NO_ITEM} {names}, in every row: name what each row is on, the same in both."
    raise DataError(msg)


def _complete(both: Sequence[Rows], role: str) -> bool:
    """Whether every row of both sources has a name in a role."""
    return all(role in rows.names and not blank(rows.names[role]).any() for rows in both)


def _joined(both: Sequence[Rows], role: str) -> tuple[Ints, tuple[str, ...]]:
    names, codes = merged([rows.names[role] for rows in both])
    return np.concatenate(codes), names


def _prompts(both: Sequence[Rows]) -> tuple[Ints, tuple[str, ...]]:
    """Give the prompt of every row, -1 where it has none."""
    nothing = [Coded((), np.full(rows.n, -1, dtype=np.int64)) for rows in both]
    names, codes = merged(
        [rows.names.get("prompt", none) for rows, none in zip(both, nothing, strict=True)]
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
    return numbers.astype(np.int64), prompts, _warn_alone(int(alone.sum()))


def _warn_alone(n: int) -> tuple[str, ...]:
    if not n:
        return ()
    return (
        f"{n:,} items have no prompt: each is taken as a prompt of its own, and intervals are "
        "too narrow if several share one.",
    )


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


PROMPTS = ("prompt_id", "question_id", "instruction_id", "prompt", "instruction", "id")
MODELS = ("model_id", "model", "generator", "name")
TEXTS = ("output", "response", "answer", "result", "text")
ASKED = ("prompt", "instruction", "text", "turns", "question")


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
        """Give differences of length and format, in doublings, NaN where a response is missing.

        Parameters
        ----------
        prompts : sequence of str
            Names by their number in ``items.prompt``.
        """
        place = {name: code for code, name in enumerate(prompts)}
        model = {name: code for code, name in enumerate(items.models)}
        known = sorted(
            (place[p] * len(model) + model[m], text)
            for (p, m), text in self.texts.items()
            if p in place and m in model
        )
        keys = np.array([key for key, _ in known], dtype=np.int64)
        length = np.array([max(len(text), 1) for _, text in known])
        format_ = np.array([1 + elements(text) for _, text in known])
        return {"length": _gap(items, keys, length), "format": _gap(items, keys, format_)}

    def of(self, data: Items, prompts: Sequence[str], item: int) -> list[str | None]:
        """Give both responses of an item, side A first; None where one is missing."""
        prompt = prompts[data.prompt[item]]
        return [self.texts.get((prompt, data.models[model])) for model in data.pairs[item]]


def _gap(items: Items, keys: Ints, sizes: Ints) -> Floats:
    if not len(keys):
        return np.full(items.n, np.nan)
    doublings, n_models = np.log2(sizes), len(items.models)
    a, b = (
        _looked_up(items.prompt * n_models + items.pairs[:, side], keys, doublings)
        for side in (0, 1)
    )
    return np.asarray(a - b)


def _looked_up(wanted: Ints, keys: Ints, values: Floats) -> Floats:
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], np.nan)


def read_outputs(path: Path, items: Items, prompts: Sequence[str]) -> Outputs:
    """Read responses: one row a prompt and model, in the columns that name most of the items'.

    Of a prompt and model that come twice, the first counts.

    Raises
    ------
    DataError
        If the file cannot be read, or holds no response of any item.
    """
    table = read_annotations(path)
    prompt, model = _best(table, PROMPTS, set(prompts)), _best(table, MODELS, set(items.models))
    column = next((name for name in TEXTS if table.has(name)), None)
    texts: dict[tuple[str, str], str] = {}
    for p, m, text in zip(prompt, model, table.need(column) if column else (), strict=False):
        if p is not None and m is not None and isinstance(text, str):
            texts.setdefault((p, m), text)
    if not texts:
        msg = (
            f"{str(path)!r} holds no response of a model to a prompt of the votes: it needs "
            f"columns for the prompt, the model and the response, and has "
            f"{quoted_names(list(table.columns))}."
        )
        raise DataError(msg)
    return Outputs(texts)


def read_prompts(path: Path, prompts: Sequence[str]) -> dict[str, str]:
    """Read the texts of prompts, by their name.

    Raises
    ------
    DataError
        If the file cannot be read, or names none of the prompts.
    """
    table = read_annotations(path)
    names = _best(table, PROMPTS, set(prompts))
    column = next((name for name in ASKED if table.has(name)), None)
    texts: dict[str, str] = {}
    for name, text in zip(names, table.need(column) if column else (), strict=False):
        if name is not None and text is not None:
            texts.setdefault(name, text if isinstance(text, str) else "\n\n".join(text))
    if not texts:
        there = quoted_names(list(table.columns))
        msg = f"{str(path)!r} names none of the prompts of the votes; its columns are {there}."
        raise DataError(msg)
    return texts


def _best(
    table: Annotations, names: Sequence[str], wanted: Collection[str]
) -> Sequence[str | None]:
    """Read the column in which most rows hold a name that is wanted; None in the others."""
    columns = [
        [str(value) if str(value) in wanted else None for value in table.need(name)]
        for name in names
        if table.has(name)
    ]
    return max(columns, key=lambda column: sum(x is not None for x in column), default=())
