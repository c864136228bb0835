"""What models answered, and what they were asked, from files beside votes and verdicts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from judge.studies.items import Items
from judge.studies.rows import elements
from judge.tables.annotations import Annotations, read_annotations
from rating.errors import DataError
from rating.tables.columns import quoted_names
from rating.typing import Floats, Ints

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
    found: dict[tuple[str, str], str] = {}
    for p, m, text in zip(prompt, model, table.need(column) if column else (), strict=False):
        if p is not None and m is not None and isinstance(text, str):
            found.setdefault((p, m), text)
    if not found:
        msg = (
            f"{str(path)!r} holds no response of a model to a prompt of the votes: it needs "
            f"columns for the prompt, the model and the response, and has "
            f"{quoted_names(list(table.columns))}."
        )
        raise DataError(msg)
    return Outputs(found)


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
    found: dict[str, str] = {}
    for name, text in zip(names, table.need(column) if column else (), strict=False):
        if name is not None and text is not None:
            found.setdefault(name, text if isinstance(text, str) else "\n\n".join(text))
    if not found:
        there = quoted_names(list(table.columns))
        msg = f"{str(path)!r} names none of the prompts of the votes; its columns are {there}."
        raise DataError(msg)
    return found


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
