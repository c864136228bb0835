"""Scores of models on items, from the files of evaluation tools, and their paired comparison."""

import glob
import hashlib
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from judge.tables.annotations import Annotations, as_text, list_of, plain, read_annotations
from judge.tables.inspect_logs import scores_in
from rating.errors import DataError
from rating.paired import CompareOptions, Comparison, ScoredItems
from rating.paired import compare as compare_items
from rating.tables.columns import quoted_names
from rating.tables.files import SHOWN, Files, expanded, kind_of
from rating.tables.peers import mention, noticing
from rating.typing import Floats

ROLES = {
    "item": ("item", "item_id", "prompt_id", "question_id", "sample_id", "doc_id", "id"),
    "model": ("model", "model_id"),
    "score": ("score", "correct", "is_correct"),
    "cluster": ("cluster",),
    "repeat": ("repeat", "epoch"),
    "metric": ("metric",),
}
"""Names by which a column is known, the first that is there."""
CHOSEN_BY = ("metric", "filter", "judge", "evaluation_result_id", "evaluation_id")
"""Columns of which one value is to be chosen, where an item has a score for each of several."""
_QUALIFIERS = ("filter", "judge")
"""Columns by which scores in a column of one name are different measures."""
_LM_EVAL = {"doc_id", "filtered_resps"}
_SAMPLES = re.compile(r"samples_(.+?)_\d{4}-\d\d-\d\dT.*")
"""Name of a file of lm-eval: the task, and the time."""
_OF_SAMPLES = re.compile(
    r"samples_.*|.*_samples\.[a-z.]+|.*\.eval|\d{4}-\d\d-\d\dT[\d-]+[+-].*\.json"
)
"""Names of files of lm-eval, of every_eval_ever and of Inspect in a folder."""
_NO_METRIC = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"}
LARGEST = 1e50
"""Of scores: squares of larger ones are infinite."""
_TRUTH = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """The rows of a file.

    Attributes
    ----------
    run : str
        The argument of several whose files, of a folder or pattern, are one run; else empty.
    cluster, text, metric, error : list of str or None
        Of each row: its cluster, a hash of its text, what its score measures, and why it has
        none; None where it is unknown.
    """

    path: Path
    run: str
    model: list[str]
    item: list[str]
    score: Floats
    cluster: list[str | None]
    text: list[str | None]
    metric: list[str | None]
    error: list[str | None]


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
        of the files. A text that is no model's name is split at its commas.
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

    Logs of Inspect, lm-eval's ``samples_*.jsonl``, samples of every_eval_ever, judge scores,
    and tables with a column of `ROLES` for item and score. Rows on one item are repeats, which are
    averaged. A model without a column is the folder of an lm-eval file, or else the name of the
    source. A model that two sources score on one item is two runs, named by the sources. A source
    may be a folder, which is searched for samples at any depth: its files are one run.

    Parameters
    ----------
    columns : sequence of (str, str)
        A role of `ROLES`, and the column to read it from.
    where : str or None
        SQL on a file's columns: other rows are excluded.

    Raises
    ------
    DataError
        If a file cannot be read or is given twice, a model is not there or has no score, or
        two scores of an item are of different metrics.
    """
    warnings: list[str] = []
    files = []
    with noticing(lambda text: warnings.append(f"{text}.")):
        paths = [(str(source), _files(source)) for source in sources]
        warnings += _on_copies([path for _, its in paths for path in its])
        for source, its in paths:
            one_run = len(paths) > 1 and (len(its) > 1 or Path(source).is_dir())
            files += [_read(path, columns, where, source if one_run else "") for path in its]
        files = _as_runs(files, len(paths))
    there = list(dict.fromkeys(name for one in files for name in one.model))
    parts = [[word] if word in there else word.split(",") for word in models]
    names = tuple(dict.fromkeys(name for some in parts for one in some if (name := one.strip())))
    if absent := next((name for name in names if name not in there), None):
        msg = f"There is no model {absent!r}; there are {quoted_names(there)}."
        commas = any("," in name for name in there)
        raise DataError(msg + " Repeat --models to name one with a comma." * commas)
    names = names or tuple(there)
    place = {name: at for at, name in enumerate(names)}
    items: dict[str, int] = {}
    cluster_of: dict[str, str] = {}
    text_of: dict[str, str] = {}
    metric_of: dict[str, tuple[str, Path]] = {}
    changed: set[str] = set()
    rows: list[tuple[int, int, float]] = []
    for one in files:
        for model, item, score, cluster, text, metric in zip(
            one.model, one.item, one.score.tolist(), one.cluster, one.text, one.metric,
            strict=True,
        ):  # fmt: skip
            if model not in place:
                continue
            if metric is not None and score == score:
                known, path = metric_of.setdefault(item, (metric, one.path))
                if known != metric:
                    raise DataError(
                        f"{str(path)!r} scores {item!r} by {known}, and {str(one.path)!r} by "
                        f"{metric}: compare runs by one metric, which --column score=NAME or "
                        "--where chooses in each file that has several."
                    )
            if text is not None and text_of.setdefault(item, text) != text:
                changed.add(item)
            rows.append((items.setdefault(item, len(items)), place[model], score))
            if cluster is not None and cluster_of.setdefault(item, cluster) != cluster:
                raise DataError(
                    f"{str(one.path)!r} has item {item!r} in cluster {cluster!r}, and before in "
                    f"{cluster_of[item]!r}: an item is in one cluster."
                )
    if changed:
        warnings.append(
            f"Items with other texts in another file: {len(changed):,}, such as {min(changed)!r}. "
            "Compare runs of one version of the task."
        )
    metrics = dict.fromkeys(metric for metric, _ in metric_of.values())
    if len(metrics) > 1:
        warnings.append(f"Means are over items of {len(metrics)} metrics: {', '.join(metrics)}.")
    at, of, score = (np.array(part) for part in zip(*rows, strict=True))
    for name, position in place.items():
        if not np.isfinite(score[of == position]).any():
            own = [one for one in files if name in one.model]
            errors = [text for one in own for text in one.error if text]
            msg = (
                f"failed samples: {len(errors):,}, such as with {errors[0][:SHOWN]!r}. Run them "
                "again, or choose other models with --models."
                if errors
                else "the column is empty. Choose another with --column score=NAME."
            )
            raise DataError(f"{str(own[0].path)!r} has no score of {name!r}: {msg}")
    clusters: dict[tuple[bool, str], int] = {}
    codes = [
        clusters.setdefault((item in cluster_of, cluster_of.get(item, item)), len(clusters))
        for item in items
    ]
    data = ScoredItems.of(
        names,
        tuple(items),
        (at.astype(np.int64), of.astype(np.int64), score.astype(np.float64)),
        np.array(codes, dtype=np.int64),
    )
    return replace(data, metric=", ".join(metrics) or "score", warnings=tuple(warnings))


def _files(source: str | Path) -> list[Path]:
    """Name the files of a source; of a folder with files of samples, at any depth, these alone."""
    if not Path(source).is_dir():
        return expanded([source])
    inside = map(Path, sorted(glob.glob(f"{glob.escape(str(source))}/**/*", recursive=True)))
    every = [path for path in inside if kind_of(path) and path.is_file()]
    samples = [path for path in every if _OF_SAMPLES.fullmatch(path.name)]
    if samples and len(samples) < len(every):
        mention(f"{source}: {len(samples):,} of {len(every):,} files are of samples, and read")
    return expanded(samples or [source])


def _on_copies(paths: Sequence[Path]) -> list[str]:
    """Warn of files of the same content; raises `DataError` where one is given twice."""
    real: dict[str, Path] = {}
    for path in paths:
        if (other := real.setdefault(os.path.realpath(path), path)) is not path:
            also = "" if str(other) == str(path) else f", also as {str(other)!r}"
            raise DataError(f"{str(path)!r} is given twice{also}: name each file once.")
    sizes = Counter(path.stat().st_size for path in paths)
    contents: dict[str, Path] = {}
    copies = []
    for path in paths:
        if sizes[path.stat().st_size] > 1:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if (other := contents.setdefault(digest, path)) is not path:
                copies.append(f"{str(other)!r} and {str(path)!r}")
    more = f", and {len(copies) - 1:,} more" if len(copies) > 1 else ""
    return [f"Files have the same content: {copies[0]}{more}."] if copies else []


def _read(path: Path, columns: Sequence[tuple[str, str]], where: str | None, run: str) -> _Scored:
    wanted = [name for role, name in columns if role == "score"]
    if len(wanted) > 1:  # of a run over several tasks each file has one of them
        columns = [pair for pair in columns if pair[0] != "score"]
    table = read_annotations(
        Files((path,), tuple(columns), where), "scores of items", logs=scores_in
    )
    named = {role for role, _ in columns}
    if unknown := sorted(named - {*ROLES}):
        msg = f"There is no role {unknown[0]!r} of scores: name one of {', '.join(ROLES)}."
        raise DataError(msg)
    by_name = {name.lower(): name for name in table.columns} | {n: n for n in table.columns}
    column = {role: next(filter(None, map(by_name.get, of)), None) for role, of in ROLES.items()}
    task = ""
    if {*_LM_EVAL} <= {*table.columns}:
        in_name = _SAMPLES.fullmatch(path.stem)
        task = in_name[1] if in_name else ""
    item = table.texts(column["item"] or "item")
    of_task = table.find("evaluation_name", "task")
    before = table.texts(of_task) if of_task else [task] * table.n
    item = [
        f"{first}: {name}" if first else name for first, name in zip(before, item, strict=True)
    ]
    cluster: list[str | None] = [None] * table.n
    if column["cluster"]:
        cluster = [
            table.name(column["cluster"], row) if str(cell or "").strip() else None
            for row, cell in enumerate(table.columns[column["cluster"]])
        ]
    if table.has("turn") and len({*map(str, table.columns["turn"])}) > 1:
        cluster = [of or one for of, one in zip(cluster, item, strict=True)]
        item = [f"{one}, turn {n}" for one, n in zip(item, table.texts("turn"), strict=True)]
    if column["model"]:
        model = table.texts(column["model"])
    else:
        folder = path.absolute().parent.name
        model = [folder if task else _name_of(run) if run else path.stem] * table.n
    hashes = table.find("doc_hash", "sample_hash")
    text = [None if hashes is None else as_text(table.cell(hashes, n)) for n in range(table.n)]
    if len(wanted) > 1:
        column["score"] = table.find(*wanted) or wanted[0]
    measure, scores = _scores(table, column["score"])
    measure = wanted[0] if len(wanted) == 1 else measure
    metric = [as_text(table.cell(column["metric"] or "", n)) or measure for n in range(table.n)]
    if not wanted:
        for name in filter(table.has, _QUALIFIERS):
            values = [as_text(table.cell(name, n)) for n in range(table.n)]
            both = zip(metric, values, strict=True)
            metric = [f"{one} ({of})" if of not in (None, "none") else one for one, of in both]
    error = [as_text(table.cell("error", n)) for n in range(table.n)]
    scored = _Scored(path, run, model, item, scores, cluster, text, [*metric], error)
    _require_one_score(table, scored, column["repeat"])
    return scored


def _scores(table: Annotations, name: str | None) -> tuple[str, Floats]:
    """Return what is measured, and the scores; NaN where there is none."""
    if name is None and table.has("evaluation"):
        cells = [plain(cell) for cell in table.columns["evaluation"]]
        values = [cell.get("score") if isinstance(cell, dict) else None for cell in cells]
        name = "evaluation.score"
    else:
        name = name or _only_metric(table)
        values = [
            _TRUTH.get(cell.strip().lower(), cell) if isinstance(cell, str) else cell
            for cell in table.need(name)
        ]
    table = replace(table, columns={**table.columns, name: list_of(values)})
    try:
        scores = table.numbers(name)
    except DataError as error:
        raise DataError(
            f"{error} Leave a missing score empty, or write nan; write 85% as 0.85. Also read are "
            "true, false, yes and no, and C, P, I and N of Inspect; or use --column score=NAME."
        ) from error
    if (bad := np.flatnonzero(np.abs(scores) > LARGEST)).size:
        wanted = f"a number of at most {LARGEST:g} either way, or nothing"
        raise table.wrong(name, int(bad[0]) + 1, values[bad[0]], wanted)
    return name, scores


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
    raise DataError(
        f"{table.source!r} has several scores: {', '.join(names)}. Choose one, such as --column "
        f"score={names[0]}; repeat --column for tasks with other scores."
    )


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
            # Tasks without a choice of filters have the filter none in files of the same run.
            chosen = f"in ('none','{value}')" if name == "filter" else f"= '{value}'"
            raise DataError(
                f"{table.source!r} has {scored.item[other]!r} of {scored.model[other]!r} with "
                f'{name} {value!r} and {another!r}: choose one, such as --where "{name} {chosen}".'
            )
    if repeat:
        wanted = f"each item and model this repeat once: row {table.number(one + 1)} has it"
        raise table.wrong(repeat, other + 1, table.cell(repeat, other), wanted)
    mention(
        f"{table.source}: {len(again):,} of {table.n:,} rows score an item and model again: they "
        "are read as repeats"
    )


def _as_runs(files: Sequence[_Scored], n_sources: int) -> list[_Scored]:
    """Tell a model's runs apart by their sources, where these score one item or have no other.

    Files that were named one by one are one run of a model by folder, unless two of the folder
    score one item.

    Raises
    ------
    DataError
        If two files of a run score one item.
    """
    places = [one.run or str(one.path.parent) for one in files]
    first: dict[tuple[str, str, str], _Scored] = {}
    several = set()
    for place, one in zip(places, files, strict=True):
        for model, item in dict.fromkeys(zip(one.model, one.item, strict=True)):
            other = first.setdefault((place, model, item), one)
            if other is not one and one.run:
                raise DataError(
                    f"{one.run!r} scores {item!r} of {model!r} twice, in {str(other.path)!r} and "
                    f"{str(one.path)!r}. Move one of them; if they hold different tasks, begin "
                    "each item with its task, or add a column task."
                )
            if other is not one:
                several.add(place)
    models = {name for one in files for name in one.model}
    apart = len(models) == 1 and len({*places}) == 1 and n_sources > 1
    keys = [
        str(one.path) if apart or place in several else place
        for one, place in zip(files, places, strict=True)
    ]
    key_of: dict[tuple[str, str], str] = {}
    shared = models if len(models) == 1 and n_sources > 1 else set[str]()
    for key, one in zip(keys, files, strict=True):
        cells = zip(one.model, one.item, strict=True)
        shared = shared | {cell[0] for cell in cells if key_of.setdefault(cell, key) != key}
    labels = {key: _name_of(key) for key in keys}
    if len({*labels.values()}) < len(labels):
        labels = {key: key for key in keys}
    if shared:
        mention(f"Several sources score {quoted_names(sorted(shared))}: each is a run")
    return [
        replace(
            one,
            model=[f"{name} ({labels[key]})" if name in shared else name for name in one.model],
        )
        for key, one in zip(keys, files, strict=True)
    ]


def _name_of(source: str) -> str:
    """Name a run by its source: a folder, a pattern, or a file without its ending."""
    path = Path(os.path.abspath(source))
    return path.stem if path.is_file() else path.name
