"""Which rows are on the same item, which way round, and what texts belong to it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.replies import refuses
from judge.studies.rows import Items, Rows, rows_from
from judge.tables.annotations import LIST, PROMPTS, Annotations, annotation_pieces, elements
from judge.tables.cases import IMAGES, NamedCase, pairs_of
from judge.tables.native import for_judge
from rating.counting import spelling
from rating.errors import DataError
from rating.outcome import of_sides
from rating.sentences import counted, plural
from rating.tables.coding import Coded, LoggedVotes, coded_list
from rating.tables.files import SHOWN
from rating.tables.peers import noticing
from rating.tables.vote_filter import blank
from rating.typing import Bools, Floats, Ints

NAMES = {
    "item": "item_id",
    "prompt": "prompt_id",
    "battle": "battle_id",
    "question": "question_id",
    "text": "prompt text",
}
"""What may identify an item, by role; a prompt does so with its two models."""

WHOLE = (("item", "item"), ("battle", "battle"))
"""Keys that identify an item without its models."""

USUAL = (("item", "item"), ("prompt", "prompt"), ("battle", "battle"))
"""Roles of votes and of verdicts by which rows are matched."""

USUAL_OF_CASES = (("battle", "battle"), ("item", "item"), ("prompt", "prompt"))

KEYS = (
    ("question", "question"), ("question", "prompt"), ("prompt", "question"), ("text", "text"),
    ("item", "battle"), ("battle", "item"), ("item", "prompt"), ("prompt", "item"),
    ("item", "question"), ("question", "item"),
)  # fmt: skip
"""The same, where no item is in both by the usual ones."""

MOST_DIFFERENT = 0.1
"""Share of the items in both sources that may have different prompts."""

SAME = (
    "Give both files the same item_id, or the same prompt_id (or the prompt's text) and the same "
    "names of models."
)


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Items, and for the rows of each source which item they are on.

    Attributes
    ----------
    sources : tuple of Rows
        Votes and verdicts that name their item.
    item, flipped : tuple of ndarray
        One of each source: index of the item, and whether side A of the row is side B of the
        item.
    prompts : tuple of str
        Names by their number in ``items.prompt``.
    keyed_by : str
        What says so, such as ``item_id`` or ``prompt and pair``.
    """

    sources: tuple[Rows, ...]
    items: Items
    item: tuple[Ints, ...]
    flipped: tuple[Bools, ...]
    prompts: tuple[str, ...]
    keyed_by: str
    warnings: tuple[str, ...] = ()

    def only(self, *masks: Bools) -> "Aligned":
        """Keep some rows of each source, and the items and prompts that these are on."""
        item = [own[mask] for own, mask in zip(self.item, masks, strict=True)]
        used, numbers = np.unique(np.concatenate(item), return_inverse=True)
        prompts, prompt = np.unique(self.items.prompt[used], return_inverse=True)
        there, pairs = np.unique(self.items.pairs[used], return_inverse=True)
        models = tuple(self.items.models[code] for code in there)
        return Aligned(
            tuple(own.only(mask) for own, mask in zip(self.sources, masks, strict=True)),
            Items(models, pairs.reshape(-1, 2).astype(np.int64), prompt.astype(np.int64)),
            (numbers[: len(item[0])], numbers[len(item[0]) :]),
            tuple(own[mask] for own, mask in zip(self.flipped, masks, strict=True)),
            tuple(self.prompts[code] for code in prompts),
            self.keyed_by,
        )


def align(votes: Rows, verdicts: Rows, usual: Sequence[tuple[str, str]] = USUAL) -> Aligned:
    """Find the items of votes and verdicts by the first key by which an item has both.

    The keys are the usual ones, first those that every row has, and then `KEYS`. Rows without the
    key are excluded, and a warning counts them. Side A of an item is the model whose name sorts
    first.

    Raises
    ------
    DataError
        If no item has both a vote and a verdict, or an item has two pairs of models.
    """
    both: tuple[Rows, ...] = (votes, verdicts)
    models, left, right = _models(both)
    pair = np.minimum(left, right) * len(models) + np.maximum(left, right)
    roles, texts, key, warnings = _joined(both, usual, pair, len(models))
    named = key >= 0
    if not named.all():
        masks = (named[: votes.n], named[votes.n :])
        both = tuple(rows.only(mask) for rows, mask in zip(both, masks, strict=True))
        key, (models, left, right) = key[named], _models(both)
    low, high = np.minimum(left, right), np.maximum(left, right)
    prompt, prompts = key, texts
    if roles == ("text", "text"):
        # prompts are named as votes name them, where they do
        own, column = [*texts], both[0].names.get("prompt")
        for at, name in zip(key, () if column is None else column.codes, strict=False):
            if column is not None and name >= 0:
                own[at] = column.names[name]
        prompts = tuple(own)
    elif {"item", "battle"} & {*roles}:
        nothing = [Coded((), np.full(rows.n, -1)) for rows in both]
        prompts, codes = merged(
            [rows.names.get("prompt", none) for rows, none in zip(both, nothing, strict=True)]
        )
        prompt = np.concatenate(codes)
    if roles not in WHOLE:
        key = (key * len(models) + low) * len(models) + high
    if "text" not in roles:
        warnings += _different_texts(both, key, _by(roles))
    _, first, item = np.unique(key, return_index=True, return_inverse=True)
    item = item.astype(np.int64)
    if roles in WHOLE:
        _require_one_pair(both, roles[0], item, low, high, first)
    numbers, names, alone = _numbered(prompt, prompts, item, len(first))
    flipped = left > right
    ours = slice(0, both[0].n), slice(both[0].n, None)
    return Aligned(
        both,
        Items(models, np.column_stack((low[first], high[first])), numbers),
        tuple(item[part] for part in ours),
        tuple(flipped[part] for part in ours),
        names,
        _by(roles),
        (*warnings, *alone),
    )


class _Apart(DataError):
    """No item is in both sources."""


def on_voted(votes: Rows, verdicts: Rows) -> Bools:
    """Tell which verdicts are on an item that has a vote; raises `DataError` as `align` does.

    None may be.
    """
    try:
        aligned = align(votes, verdicts)
    except _Apart:
        return np.zeros(verdicts.n, dtype=bool)
    rows = aligned.sources[1].only(np.isin(aligned.item[1], aligned.item[0]))
    return np.isin(verdicts.numbers["row"], rows.numbers["row"])


def _joined(
    both: Sequence[Rows], usual: Sequence[tuple[str, str]], pair: Ints, n_models: int
) -> tuple[tuple[str, str], tuple[str, ...], Ints, list[str]]:
    """Choose the roles by which some vote has a verdict.

    Also give the names that they have, the place of each row's name in them (-1 for none), and
    warnings.
    """
    n, tried = both[0].n, dict[str, str]()
    for roles in (*sorted(usual, key=lambda roles: _has_gaps(both, roles[0])), *KEYS):
        columns = _columns(both, roles)
        if not columns:
            continue
        names, codes = merged(columns)
        code = np.concatenate(codes)
        key = code if roles in WHOLE else np.where(code < 0, -1, code * n_models**2 + pair)
        votes = key[:n]
        by = _by(roles)
        if np.isin(votes[votes >= 0], key[n:]).any():
            missed = f"No item is in both files by {', '.join(tried)}. " if tried else ""
            note = f"{missed}Votes and verdicts are matched by {by}."
            gaps = [
                f"{plural(int((own < 0).sum()), what)} excluded: without {NAMES[role]}."
                for own, role, what in zip(codes, roles, ("vote", "verdict"), strict=True)
                if (own < 0).any()
            ]
            return roles, names, code, [*([note] if tried or roles in KEYS else []), *gaps]
        if roles[0] == roles[1] or not tried:  # the values of the others are quoted with these
            tried[by] = " and ".join(
                f"{_shown(rows, column, roles)} in {rows.source!r}"
                for rows, column in zip(both, columns, strict=True)
            )
    if tried:
        values = "; ".join(f"by {by}, {shown}" for by, shown in tried.items())
        sources = " and ".join(repr(rows.source) for rows in both)
        raise _Apart(f"No item is in both {sources}: {values}. {SAME}")
    theirs = " and ".join(f"{rows.source!r} has {_ids(rows)}" for rows in both)
    msg = f"Neither an item_id, a prompt_id nor a battle_id is in both: {theirs}. {SAME}"
    raise DataError(msg)


def _different_texts(both: Sequence[Rows], key: Ints, by: str) -> list[str]:
    """Compare the prompts of rows that are on one item, where both sources have texts.

    A verdict's prompt that is nowhere in the votes may be the same, written another way.

    Raises
    ------
    DataError
        If more than `MOST_DIFFERENT` of the items have other prompts in the other source.
    """
    with noticing(lambda _: None):  # the files were announced when their rows were read
        texts = [_asked(rows) for rows in both]
    if not all(texts):
        return []
    _, codes = merged([text for text in texts if text])
    voted = {*codes[0].tolist()}
    first: list[dict[int, int]] = [{}, {}]
    for own, code, start in zip(first, codes, (0, both[0].n), strict=True):
        for row in np.flatnonzero(code >= 0)[::-1]:
            own[int(key[start + row])] = int(row)
    shared = [*{*first[0]} & {*first[1]}]
    rows = [(first[0][one], first[1][one]) for one in shared]
    pairs = [(a, b, int(codes[0][a]), int(codes[1][b])) for a, b in rows]
    wrong = sorted((a, b) for a, b, one, other in pairs if one != other and other in voted)
    if not wrong:
        return []
    some = " and ".join(
        f"row {int(rows.numbers['row'][at])} of {rows.source!r}"
        for rows, at in zip(both, wrong[0], strict=True)
    )
    text = (
        f"Of {len(rows):,} items that are in both by {by}, {len(wrong):,} have the prompt of "
        f"another item in the other file, such as {some}."
    )
    if len(wrong) > MOST_DIFFERENT * len(rows):
        raise DataError(
            f"{text} The ids do not mean the same: remove them from one file, and rows are "
            "matched by the prompt's text."
        )
    return [text]


def _has_gaps(both: Sequence[Rows], role: str) -> bool:
    return any(role in rows.names and bool(blank(rows.names[role]).any()) for rows in both)


def _columns(both: Sequence[Rows], roles: Sequence[str]) -> list[Coded]:
    """Give what identifies the rows of both in two roles; nothing where one side has no name.

    Without texts of its own, a file names prompts as `judge.case.Case` does, if by their texts.
    """
    columns = [rows.names.get(role) for rows, role in zip(both, roles, strict=True)]
    if "text" in roles:
        texts = [_asked(rows) for rows in both]
        prompts = [rows.names.get("prompt") for rows in both]
        columns = [text or own for text, own in zip(texts, prompts, strict=True)]
        columns = columns if any(texts) else []
    known = [column for column in columns if column is not None and not blank(column).all()]
    return known if len(known) == len(both) else []


def _asked(rows: Rows) -> Coded | None:
    """Name the prompt of each row by its text, as a judge's run names it; None without texts.

    A row that no judge can be asked about has no name.
    """
    if rows.texts is None or isinstance(rows.texts, LoggedVotes):
        return None
    names: dict[int, str] = {}
    try:
        for piece in annotation_pieces(rows.texts, "votes"):
            table = for_judge(piece, pairs=True, piece=True)
            shown = {name: x for name, x in table.columns.items() if name in (*PROMPTS, *IMAGES)}
            answers = dict.fromkeys(("response_a", "response_b"), np.full(table.n, "-", object))
            pairs = pairs_of(replace(table, columns={**shown, **answers}))
            names |= {table.number(n): one.case.prompt_id[:16] for n, one in enumerate(pairs, 1)}
    except DataError:  # rows that are votes, and no pairs that a judge can be asked about
        return None
    return coded_list([names.get(int(row)) for row in rows.numbers["row"]])


def _by(roles: tuple[str, str]) -> str:
    """Say by what rows are matched."""
    ours, theirs = (NAMES[role] for role in roles)
    if roles in WHOLE:
        return ours
    if ours == theirs:
        return f"{ours.removesuffix('_id')} and pair"
    return f"{ours} of votes, {theirs} of verdicts and pair"


def _shown(rows: Rows, column: Coded, roles: tuple[str, str]) -> str:
    """Quote what the first row that has a name is on."""
    row = int(np.argmin(blank(column)))
    value = repr(column.names[column.codes[row]][:SHOWN])
    if roles in WHOLE:
        return value
    sides = (rows.names[side] for side in of_sides("model"))
    a, b = (side.names[side.codes[row]][:SHOWN] for side in sides)
    return f"{value} with {a!r} and {b!r}"


def _ids(rows: Rows) -> str:
    there = [
        f"{NAMES[role]} {_shown(rows, rows.names[role], WHOLE[0])}"
        for role in NAMES
        if role in rows.names and not blank(rows.names[role]).all()
    ]
    return ", ".join(there) or "none"


def on_cases(
    named: Sequence[NamedCase], items: Sequence[object] | None, source: str, given: Annotations
) -> Iterator[tuple[int, int, int]]:
    """Find the case that each row of a table is on: by its battle or item, else as `align` does.

    Parameters
    ----------
    items : sequence, or None
        The item of each case, where its file names them.

    Yields
    ------
    case, row, sign : int
        Places in both, and -1 where the row has the sides of its case exchanged, else 1.

    Raises
    ------
    DataError
        If no row is on a case, or it is not clear which it is on.
    """
    ours: dict[str, Sequence[object]] = {"battle": [one.battle_id for one in named]}
    ours |= {"item": items} if items else {}
    theirs = {role: [*given.columns[name]] for role, name in NAMES.items() if given.has(name)}
    pairs = [one.models for one in named]
    models = of_sides("model")
    if not given.has(*models) or {*pairs} == {of_sides("response")}:
        pairs = [models] * len(named)  # without their names, a prompt identifies nothing
        theirs.pop("prompt", None)
        theirs |= {side: [side] * given.n for side in models}
    else:
        ours["prompt"] = [one.prompt_id for one in named]
        theirs |= {side: [*given.columns[side]] for side in models}
    ours |= {side: [pair[at] for pair in pairs] for at, side in enumerate(models)}
    aligned = align(rows_from(ours, source), rows_from(theirs, given.source), USUAL_OF_CASES)
    places = [rows.numbers["row"].astype(np.int64).tolist() for rows in aligned.sources]
    item, flipped = ([own.tolist() for own in both] for both in (aligned.item, aligned.flipped))
    of_item: dict[int, tuple[int, bool]] = {}
    for one, place, turned in zip(item[0], places[0], flipped[0], strict=True):
        first, _ = of_item.setdefault(one, (place, turned))
        if named[first].battle_id != named[place].battle_id:
            raise DataError(
                f"Several cases of {source!r} are on one item by {aligned.keyed_by}, such as "
                f"{named[first].battle_id!r} and {named[place].battle_id!r}: name the battle_id "
                f"in {given.source!r}."
            )
    for one, place, turned in zip(item[1], places[1], flipped[1], strict=True):
        if one in of_item:
            case, also = of_item[one]
            yield case, place, 1 if turned == also else -1


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
    """Give the models that are there, sorted, and those of each row of both sources."""
    names, codes = merged([rows.names[side] for side in of_sides("model") for rows in both])
    used, place = np.unique(np.concatenate(codes), return_inverse=True)
    models = tuple(names[code] for code in used)
    seen: dict[str, str] = {}
    for name in models:
        other = seen.setdefault(spelling(name), name)
        if other != name:
            raise DataError(
                f"Models {other!a} and {name!a} differ only in case, spaces or characters that "
                "look alike: give each model one spelling in votes and verdicts."
            )
    left, right = place.astype(np.int64).reshape(2, -1)
    return models, left, right


def _numbered(
    codes: Ints, names: tuple[str, ...], item: Ints, n_items: int
) -> tuple[Ints, tuple[str, ...], tuple[str, ...]]:
    """Give each item's prompt a number from 0; an item without a prompt is one by itself."""
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
    both: Sequence[Rows], role: str, item: Ints, low: Ints, high: Ints, first: NDArray[Any]
) -> None:
    wrong = np.flatnonzero((low != low[first][item]) | (high != high[first][item]))
    if not wrong.size:
        return
    row = int(wrong[0])
    rows, at = (both[0], row) if row < both[0].n else (both[1], row - both[0].n)
    column = rows.names[role]
    name = column.names[column.codes[at]]
    raise DataError(
        f"Item {name!r} in {rows.source!r} is on other models than elsewhere: an item is one "
        "prompt and two models."
    )


REFUSAL, LIST_TERM = "refusal", "list"


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
        """Give differences of length and format, in doublings; of declining and lists (1, 0, -1).

        NaN where a response is missing.

        Parameters
        ----------
        prompts : sequence of str
            Names by their number in ``items.prompt``.
        """
        unknown = (np.nan,) * 4
        asked = {*prompts}
        sizes = {
            (prompt, model): (
                max(len(text), 1), 1 + elements(text),
                2.0 ** refuses(text), 2.0 ** bool(re.search(LIST, text)),
            )
            for (prompt, model), text in self.texts.items()
            if prompt in asked
        }  # fmt: skip
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
        return dict(zip(("length", "format", REFUSAL, LIST_TERM), (a - b).T, strict=True))

    def of(self, data: Items, prompts: Sequence[str], item: int) -> list[str | None]:
        """Give both responses of an item, side A first; None where one is missing."""
        prompt = prompts[data.prompt[item]]
        return [self.texts.get((prompt, data.models[model])) for model in data.pairs[item]]
