"""Texts to probe measures of similarity with, from files known by their columns."""

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judge.probe.people import RatedTexts
from judge.tables.annotations import Annotations, read_annotations
from judge.tables.native import for_similarity, unfit
from rating.errors import DataError
from rating.tables.columns import quoted_names
from rating.tables.files import json_or_text, read_text

PAIRS = (("sentence1", "sentence2"), ("reference", "text"), ("text_a", "text_b"))
TEXTS = ("text", "summary", "output", "response", "sentence")
CLASSES = ("category", "label", "class", "intent")
DOCUMENT = ("doc_id", "document_id", "id")
REFERENCES = ("references", "reference", "source")
ENTRIES = {"docs": ("doc", "docno"), "questions": ("top", "num")}
"""Tags of a TREC file: of an entry, and of its name."""


@dataclass(frozen=True, slots=True)
class Classes:
    """Texts and the class each belongs to."""

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Library:
    """Questions, texts to find, and which are relevant.

    Attributes
    ----------
    relevant : mapping of (int, int) to float
        Of a question and a text, by their positions.
    """

    name: str
    questions: tuple[str, ...]
    texts: tuple[str, ...]
    relevant: Mapping[tuple[int, int], float]


@dataclass(frozen=True, slots=True)
class Material:
    """What files hold: for each axis its own."""

    rated: tuple[RatedTexts, ...]
    classes: Classes | None
    library: Library | None

    def long_texts(self, least: int) -> tuple[str, tuple[str, ...]]:
        """Return texts of so many words, and where they are from; each text once."""
        from_files = [(one.name, (*one.references, *one.texts)) for one in self.rated]
        if self.library is not None:
            from_files.insert(0, (self.library.name, self.library.texts))
        if self.classes is not None:
            from_files.append((self.classes.name, self.classes.texts))
        for name, texts in from_files:
            long = tuple(text for text in dict.fromkeys(texts) if len(text.split()) >= least)
            if len(long) >= 2:
                return name, long
        return "", ()


@dataclass(slots=True)
class _Parts:
    """What has been read so far; parts that need each other wait here."""

    rated: list[RatedTexts]
    waiting: list[Annotations]
    sources: dict[str, str]
    classes: Classes | None = None
    entries: dict[str, dict[str, str]] | None = None
    judged: list[tuple[str, str, float]] | None = None
    library: str = ""


def read_material(files: Sequence[Path]) -> Material:
    """Read files, each for what its columns say it is.

    Rated pairs: a column for each of two texts (``sentence1`` and ``sentence2``, ``reference`` and
    ``text``, or no header at all: two texts and a number) and columns of numbers. Rated texts of
    documents: ``doc_id``, a text and numbers; another file gives ``source`` or ``references`` by
    ``doc_id``. Texts in classes: a text and ``category`` or ``label``. To find: two TREC files of
    documents and of topics, and their relevance in lines of four columns.

    Raises
    ------
    DataError
        If a file cannot be read or recognised, or a part is missing.
    """
    parts = _Parts([], [], {})
    for file in files:
        _sort(file, parts)
    rated = [*parts.rated, *(_rated_documents(table, parts.sources) for table in parts.waiting)]
    if parts.sources and not parts.waiting:
        raise DataError("There are sources of documents, and no file that rates texts of them.")
    return Material(tuple(rated), parts.classes, _library(parts))


def _sort(file: Path, parts: _Parts) -> None:
    if file.name.endswith((".xml", ".xml.gz")):
        _entries(file, parts)
    elif file.suffix == ".txt":
        parts.judged = (parts.judged or []) + _relevance(file)
    else:
        _table(file, parts)


def _table(file: Path, parts: _Parts) -> None:
    table = _with_header(for_similarity(read_annotations(file)))
    pair = next((pair for pair in PAIRS if table.has(*pair)), None)
    text, kind = _one_of(table, TEXTS), _one_of(table, CLASSES)
    document, reference = _one_of(table, DOCUMENT), _one_of(table, REFERENCES)
    if pair is not None:
        parts.rated.append(_rated_pairs(table, *pair))
    elif text and kind:
        labels = tuple(table.texts(kind))
        parts.classes = Classes(file.name, tuple(table.texts(text)), labels)
    elif document and reference and not text:
        of = (_first(value) for value in table.texts(reference))
        parts.sources |= dict(zip(table.texts(document), of, strict=True))
    elif document and text:
        parts.waiting.append(table)
    else:
        columns = quoted_names(list(table.columns))
        msg = f"Cannot tell what {str(file)!r} is for by its columns {columns}"
        error = unfit(table, "without texts to compare")
        raise error or DataError(f"{msg}: see docs/probe.md for those known.")


def _with_header(table: Annotations) -> Annotations:
    """Take names that are two texts and a number as the first row of a file without names."""
    names = list(table.columns)
    if len(names) != 3 or not _is_number(names[2]):
        return table
    columns = {
        name: np.concatenate([np.array([first], dtype=object), table.columns[first]])
        for name, first in zip((*PAIRS[0], "rating"), names, strict=True)
    }
    return Annotations(table.source, columns)


def _rated_pairs(table: Annotations, first: str, second: str) -> RatedTexts:
    dimensions = _numbers(table, (first, second))
    return RatedTexts(
        Path(table.source).name,
        tuple(table.texts(first)),
        tuple(table.texts(second)),
        np.arange(table.n),
        tuple(dimensions),
        np.column_stack([*dimensions.values()]),
    )


def _rated_documents(table: Annotations, sources: Mapping[str, str]) -> RatedTexts:
    document, text = _one_of(table, DOCUMENT) or "", _one_of(table, TEXTS) or ""
    documents = table.texts(document)
    lost = next((name for name in documents if name not in sources), None)
    if lost is not None:
        msg = f"There is no reference or source of {document} {lost!r} of {table.source!r}: "
        raise DataError(msg + "name the file that holds it, too.")
    place = {name: i for i, name in enumerate(dict.fromkeys(documents))}
    dimensions = _numbers(table, (document, text))
    return RatedTexts(
        Path(table.source).name,
        tuple(sources[name] for name in documents),
        tuple(table.texts(text)),
        np.array([place[name] for name in documents]),
        tuple(dimensions),
        np.column_stack([*dimensions.values()]),
    )


def _numbers(table: Annotations, others: Iterable[str]) -> dict[str, Any]:
    """Return the columns that hold numbers throughout."""
    names = [name for name in table.columns if name not in others]
    columns = {name: table.numbers(name) for name in names if _all_numbers(table, name)}
    if not columns:
        raise DataError(f"No column of {table.source!r} holds a rating in every row.")
    return columns


def _all_numbers(table: Annotations, name: str) -> bool:
    return all(value is not None and _is_number(str(value)) for value in table.need(name))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _one_of(table: Annotations, names: Iterable[str]) -> str | None:
    return next((name for name in names if table.has(name)), None)


def _first(value: str) -> str:
    """Return the first of several references."""
    several = json_or_text(value)
    return str(several[0]) if isinstance(several, list) and several else value


def _entries(file: Path, parts: _Parts) -> None:
    """Read a TREC file: its documents or its topics, names to texts."""
    text = read_text(file)
    for kind, (entry, name) in ENTRIES.items():
        rows = re.findall(rf"<{entry}>(.*?)</{entry}>", text, re.DOTALL)
        if rows:
            parts.entries = (parts.entries or {}) | {kind: dict(_entry(row, name) for row in rows)}
            parts.library = file.name if kind == "docs" else parts.library
            return
    raise DataError(f"{str(file)!r} holds neither <doc> nor <top>: give a TREC file.")


def _entry(row: str, name: str) -> tuple[str, str]:
    named = re.search(rf"<{name}>(.*?)</{name}>", row, re.DOTALL)
    body = row if named is None else row[: named.start()] + row[named.end() :]
    whole = re.search(r"<text>(.*?)</text>", body, re.DOTALL)
    words = re.sub(r"<[^>]*>", " ", whole.group(1) if whole else body)
    return ("" if named is None else named.group(1).strip()), " ".join(
        html.unescape(words).split()
    )


def _relevance(file: Path) -> list[tuple[str, str, float]]:
    rows = []
    for number, line in enumerate(read_text(file).splitlines(), 1):
        parts = line.split()
        if len(parts) != 4 or not _is_number(parts[3]):
            msg = (
                f"Line {number} of {str(file)!r} is {line!r}: write topic, 0, document, relevance."
            )
            raise DataError(msg)
        rows.append((parts[0], parts[2], float(parts[3])))
    return rows


def _library(parts: _Parts) -> Library | None:
    if parts.entries is None and parts.judged is None:
        return None
    entries = parts.entries or {}
    missing = [kind for kind in ENTRIES if kind not in entries]
    if missing or parts.judged is None:
        lost = " and ".join([*missing, *(["relevance"] if parts.judged is None else [])])
        msg = f"Finding texts takes documents, topics and their relevance: there are no {lost}."
        raise DataError(msg)
    docs = {name: text for name, text in entries["docs"].items() if text}
    place = {name: i for i, name in enumerate(docs)}
    gains: dict[str, dict[int, float]] = {}
    for topic, document, gain in parts.judged:
        if gain > 0 and document in place:
            gains.setdefault(topic, {})[place[document]] = gain
    texts = _as_judged(entries["questions"], gains)
    asked = [name for name in texts if name in gains]
    relevant = {
        (row, text): gain for row, name in enumerate(asked) for text, gain in gains[name].items()
    }
    return Library(
        parts.library, tuple(texts[name] for name in asked), tuple(docs.values()), relevant
    )


def _as_judged(topics: Mapping[str, str], gains: Mapping[str, object]) -> Mapping[str, str]:
    """Name topics by their place where their own numbers are not those of the judgements.

    The Cranfield topics bear the numbers 1, 2, 4, ..., 365; their judgements count 1 to 225.
    """
    if topics.keys() >= gains.keys():
        return topics
    counted = {str(i): text for i, text in enumerate(topics.values(), 1)}
    lost = next((name for name in gains if name not in counted), None)
    if lost is not None:
        raise DataError(f"There is no topic {lost!r}: relevance and topics are not of one set.")
    return counted
