"""Texts of prompts and responses, read from files of recorded outputs by the names of both."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from judge.tables.annotations import Annotations, read_annotations
from rating.errors import DataError
from rating.tables.columns import quoted_names

PROMPTS = ("prompt_id", "question_id", "instruction_id", "prompt", "instruction", "id")
MODELS = ("model_id", "model", "generator", "name")
TEXTS = ("output", "response", "answer", "result", "text")
ASKED = ("prompt", "instruction", "text", "turns", "question")


def read_outputs(
    path: Path, models: Collection[str], prompts: Collection[str]
) -> dict[tuple[str, str], str]:
    """Read responses, by the names of prompt and model.

    One row a prompt and model, in the columns that name most of those wanted. Of a prompt and
    model that come twice, the first counts.

    Raises
    ------
    DataError
        If the file cannot be read, or holds no response that is wanted.
    """
    table = read_annotations(path)
    prompt, model = _best(table, PROMPTS, prompts), _best(table, MODELS, models)
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
    return texts


def read_prompts(path: Path, prompts: Collection[str]) -> Mapping[str, str]:
    """Read the texts of prompts, by their name.

    Raises
    ------
    DataError
        If the file cannot be read, or names none of the prompts.
    """
    table = read_annotations(path)
    names = _best(table, PROMPTS, prompts)
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
    known = {*wanted}
    columns = [
        [str(value) if str(value) in known else None for value in table.need(name)]
        for name in names
        if table.has(name)
    ]
    return max(columns, key=lambda column: sum(x is not None for x in column), default=())
