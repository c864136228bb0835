"""Scores of models on items, from the files of evaluation tools, and their paired comparison."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from judge.tables.annotations import Annotations, as_text, list_of, plain, read_annotations
from judge.tables.inspect_logs import scores_in
from rating.errors import DataError
from rating.paired import CompareOptions, Comparison, ScoredItems
from rating.paired import compare as compare_items
from rating.tables.columns import quoted_names
from rating.tables.files import Files, expanded
from rating.tables.peers import mention
from rating.typing import Floats

ROLES = {
    "item": ("item", "item_id", "prompt_id", "question_id", "sample_id", "doc_id", "id"),
    "model": ("model", "model_id"),
    "score": ("score", "correct", "is_correct"),
    "cluster": ("cluster",),
    "repeat": ("repeat", "epoch"),
}
"""Names by which a column is known, the first that is there."""
CHOSEN_BY = ("filter", "judge", "evaluation_result_id", "evaluation_id")
"""Columns of which one value is to be chosen, where an item has a score for each of several."""
_LM_EVAL = {"doc_id", "filtered_resps"}
_SAMPLES = re.compile(r"samples_(.+?)_\d{4}-\d\d-\d\dT.*")
"""Name of a file of lm-eval: the task, and the time."""
_NO_METRIC = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"}
LARGEST = 1e50
"""Of scores: squares of larger ones are infinite."""
_TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """The rows of a file.

    Attributes
    ----------
    cluster, text : list of str or None
        Of each item: its cluster, and a hash of its text; None where there is none.
    """

    path: Path
    model: list[str]
    item: list[str]
    score: Floats
    cluster: list[str | None]
    text: list[str | None]


def compare(
    *sources: str | Path,
    models: Sequence[str] = (),
    columns: Sequence[tuple[str, str]] = (),
    where: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare models by their scores on the same items.

    Parameters
    ----------
    *sources : path
        Files, folders or patterns; see `read_scored_items`.
    models : sequence of str
        Models to compare, the first of which something is required; by default all, in the order
        of the files.
    **options
        Fields of `rating.paired.CompareOptions`.

    Raises
    ------
    DataError
        If a file cannot be read, or models have no item in common.
    """
    ask = CompareOptions(**options)
    if not sources or not all(isinstance(source, str | Path) for source in sources):
        raise DataError(f"Cannot compare {sources!r}: give paths of files, folders or patterns.")
    if isinstance(models, str):
        raise DataError(f"models is {models!r}: give a list of names.")
    return compare_items(
        read_scored_items(sources, models=models, columns=columns, where=where), ask
    )


def read_scored_items(
    sources: Sequence[str | Path],
    *,
    models: Sequence[str] = (),
    columns: Sequence[tuple[str, str]] = (),
    where: str | None = None,
) -> ScoredItems:
    """Read scores: one row an item, model and repeat.

    Logs of Inspect, lm-eval's ``samples_*.jsonl``, samples of every_eval_ever, marks of a judge,
    and tables with a column of `ROLES` for item and score. Rows on one item are repeats, which are
    averaged. A model without a column is the folder of an lm-eval file, or else the file's name.
    A model that two files score on one item is two runs, named by their files.

    Parameters
    ----------
    columns : sequence of (str, str)
        A role of `ROLES`, and the column to read it from.
    where : str or None
        SQL on a file's columns: other rows are excluded.

    Raises
    ------
    DataError
        If a file cannot be read, or a model is not there.
    """
    files = _as_runs([_read(path, columns, where) for one in sources for path in _files(one)])
    there = list(dict.fromkeys(name for one in files for name in one.model))
    if absent := next((name for name in models if name not in there), None):
        raise DataError(f"There is no model {absent!r}; there are {quoted_names(there)}.")
    names = tuple(models or there)
    place = {name: at for at, name in enumerate(names)}
    items: dict[str, int] = {}
    cluster_of: dict[str, str] = {}
    text_of: dict[str, str] = {}
    changed: set[str] = set()
    rows: list[tuple[int, int, float]] = []
    for one in files:
        for model, item, score, cluster, text in zip(
            one.model, one.item, one.score.tolist(), one.cluster, one.text, strict=True
        ):
            if model not in place:
                continue
            if text is not None and text_of.setdefault(item, text) != text:
                changed.add(item)
            rows.append((items.setdefault(item, len(items)), place[model], score))
            if cluster is not None and cluster_of.setdefault(item, cluster) != cluster:
                msg = (
                    f"{str(one.path)!r} has item {item!r} in cluster {cluster!r}, and before in "
                    f"{cluster_of[item]!r}: an item is in one cluster."
                )
                raise DataError(msg)
    if changed:
        mention(
            f"{len(changed):,} items, such as {min(changed)!r}, have other texts in another file: "
            "compare runs of one version of the task"
        )
    at, of, score = (np.array(part) for part in zip(*rows, strict=True))
    clusters: dict[tuple[bool, str], int] = {}
    codes = [
        clusters.setdefault((item in cluster_of, cluster_of.get(item, item)), len(clusters))
        for item in items
    ]
    return ScoredItems.of(
        names,
        tuple(items),
        (at.astype(np.int64), of.astype(np.int64), score.astype(np.float64)),
        np.array(codes, dtype=np.int64),
    )


def _files(source: str | Path) -> list[Path]:
    """Name the files of a source; of a folder with files of samples, these alone."""
    paths = expanded([source])
    samples = [p for p in paths if p.name.startswith("samples_") or p.stem.endswith("_samples")]
    if not samples or not Path(source).is_dir() or len(samples) == len(paths):
        return paths
    mention(f"{source}: {len(samples):,} of {len(paths):,} files are of samples, and read")
    return samples


def _read(path: Path, columns: Sequence[tuple[str, str]], where: str | None) -> _Scored:
    table = read_annotations(
        Files((path,), tuple(columns), where), "scores of items", logs=scores_in
    )
    named = {role for role, _ in columns}
    if unknown := sorted(named - {*ROLES}):
        msg = f"There is no role {unknown[0]!r} of scores: name one of {', '.join(ROLES)}."
        raise DataError(msg)
    column = {role: table.find(*names) for role, names in ROLES.items()}
    task = ""
    if {*_LM_EVAL} <= {*table.columns}:
        in_name = _SAMPLES.fullmatch(path.stem)
        task = in_name[1] if in_name else ""
    item = table.texts(column["item"] or "item")
    before = table.texts("evaluation_name") if table.has("evaluation_name") else [task] * table.n
    item = [
        f"{first}: {name}" if first else name for first, name in zip(before, item, strict=True)
    ]
    cluster: list[str | None] = [None] * table.n
    if column["cluster"]:
        cells = table.columns[column["cluster"]]
        cluster = [
            table.name(column["cluster"], row) if str(cell or "").strip() else None
            for row, cell in enumerate(cells)
        ]
    if table.has("turn") and len({*map(str, table.columns["turn"])}) > 1:
        cluster = [of or one for of, one in zip(cluster, item, strict=True)]
        item = [f"{one}, turn {n}" for one, n in zip(item, table.texts("turn"), strict=True)]
    if column["model"]:
        model = table.texts(column["model"])
    else:
        model = [path.absolute().parent.name if task else path.stem] * table.n
    hashes = table.find("doc_hash", "sample_hash")
    text = [None if hashes is None else as_text(table.cell(hashes, n)) for n in range(table.n)]
    scored = _Scored(path, model, item, _scores(table, column["score"]), cluster, text)
    _require_one_score(table, scored, column["repeat"])
    return scored


def _scores(table: Annotations, name: str | None) -> Floats:
    """Return the scores; NaN where there is none."""
    if name is None and table.has("evaluation"):
        cells = [plain(cell) for cell in table.columns["evaluation"]]
        values = [cell.get("score") if isinstance(cell, dict) else None for cell in cells]
        name = "evaluation.score"
    else:
        name = name or _only_metric(table)
        values = [
            _TRUTH.get(cell.strip().lower(), cell) if isinstance(cell, str) else cell
            for cell in table.columns[name]
        ]
    table = replace(table, columns={**table.columns, name: list_of(values)})
    scores = table.numbers(name)
    if (bad := np.flatnonzero(np.abs(scores) > LARGEST)).size:
        wanted = f"a number of at most {LARGEST:g} either way, or nothing"
        raise table.wrong(name, int(bad[0]) + 1, values[bad[0]], wanted)
    return scores


def _only_metric(table: Annotations) -> str:
    """Name the column of the only score; raises `DataError` where there are several."""
    if table.has("metrics"):
        metrics = plain(table.columns["metrics"][0])
        names = [str(name) for name in metrics] if isinstance(metrics, list) else []
        names = [name for name in names if table.has(name)]
    else:
        taken = {*_NO_METRIC, *(name for known in ROLES.values() for name in known)}
        names = [
            name
            for name, cells in table.columns.items()
            if name not in taken
            and any(isinstance(cell, int | float) for cell in cells)
            and all(cell is None or isinstance(cell, int | float) for cell in cells)
        ]
    if len(names) == 1:
        return names[0]
    if not names:
        table.need("score")
    msg = (
        f"{table.source!r} has several scores: {', '.join(names)}. Choose one, such as --column "
        f"score={names[0]}."
    )
    raise DataError(msg)


def _require_one_score(table: Annotations, scored: _Scored, repeat: str | None) -> None:
    """Raise `DataError` where rows on one item are no repeats, and mention those that may be."""
    keys = [scored.model, scored.item, *([table.texts(repeat)] if repeat else [])]
    first: dict[tuple[str, ...], int] = {}
    again = [
        (first[key], row)
        for row, key in enumerate(zip(*keys, strict=True))
        if first.setdefault(key, row) != row
    ]
    if not again:
        return
    one, other = again[0]
    for name in filter(table.has, CHOSEN_BY):
        value, another = table.cell(name, one), table.cell(name, other)
        if value != another:
            msg = (
                f"{table.source!r} has {scored.item[other]!r} of {scored.model[other]!r} with "
                f"{name} {value!r} and {another!r}: choose one, such as --where "
                f"\"{name} = '{value}'\"."
            )
            raise DataError(msg)
    if repeat:
        wanted = f"each item and model this repeat once: row {table.number(one + 1)} has it"
        raise table.wrong(repeat, other + 1, table.cell(repeat, other), wanted)
    mention(
        f"{table.source}: {len(again):,} of {table.n:,} rows score an item and model again: they "
        "are read as repeats"
    )


def _as_runs(files: Sequence[_Scored]) -> list[_Scored]:
    """Tell models of two files by the file, where both score one item."""
    cells = [{*zip(one.model, one.item, strict=True)} for one in files]
    shared = {model for a, b in combinations(cells, 2) for model, _ in a & b}
    stems = [one.path.stem for one in files]
    labels = stems if len({*stems}) == len(stems) else [str(one.path) for one in files]
    if shared:
        mention(f"several files score {quoted_names(sorted(shared))} on one item: each is a run")
    return [
        replace(one, model=[f"{name} ({label})" if name in shared else name for name in one.model])
        for one, label in zip(files, labels, strict=True)
    ]
