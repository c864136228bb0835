"""Profiles of similarity measures on five axes, and probes of a judge by interventions.

`probe_similarity` reads texts from files and makes a card of each measure; there is no average
over its axes. `plan` makes every intervention on pairs of answers, and `report` what a judge did
with them (`judge.probe.verdicts` has the interventions, `judge.probe.findings` the sentences).
"""

import html
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from judge.probe.findings import Votes, checks, dose_response, findings, human_agreement, scores_of
from judge.probe.people import Alignment, RatedTexts
from judge.probe.prompts import Clustering, Retrieval, texts_asked
from judge.probe.robustness import MIN_WORDS, Probe, Robustness, Sensitivity, probes, resisted
from judge.probe.similarity import (
    BAG_OF_WORDS,
    CLASSICAL,
    LENGTH_COUNTER,
    VERSION,
    Measure,
    Plan,
    card_of,
    oracle_card,
    random_measure,
)
from judge.probe.verdicts import (
    BIASES,
    CHECKS,
    INJECTIONS,
    MISSING,
    PEOPLE,
    Material,
    altered,
    interventions,
    kinds,
)
from judge.tables.annotations import Annotations, read_annotations
from judge.tables.native import for_similarity, unfit
from judge.verdict import Run
from rating.errors import DataError
from rating.sentences import plural
from rating.tables.columns import quoted_names
from rating.tables.files import json_or_text, read_text
from rating.typing import Ints

# Cards of measures


Progress = Callable[[int, int], None]
Embedding = Callable[[Sequence[str]], Measure]

PAIRS = (("sentence1", "sentence2"), ("reference", "text"), ("text_a", "text_b"))
TEXTS = ("text", "summary", "output", "response", "sentence")
CLASSES = ("category", "label", "class", "intent")
DOCUMENT = ("doc_id", "document_id", "id")
REFERENCES = ("references", "reference", "source")
ENTRIES = {"docs": ("doc", "docno"), "questions": ("top", "num")}
"""Tags of a TREC file: of an entry, and of its name."""


@dataclass(frozen=True, slots=True)
class _Classes:
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
class CardMaterial:
    """The texts that files hold, by the axes that they are for."""

    rated: tuple[RatedTexts, ...]
    classes: _Classes | None
    library: Library | None

    def long_texts(self, least: int) -> tuple[str, tuple[str, ...]]:
        """Return texts of this many words, and where they are from; each text once."""
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


def probe_similarity(
    files: Sequence[Path],
    *,
    measures: Sequence[str] = (),
    embed: Embedding | None = None,
    planted: bool = False,
    sample: int,
    seed: int,
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Ask measures of similarity all that the files allow.

    Parameters
    ----------
    measures : sequence of str
        Names, of which the beginning is enough; all classical ones by default.
    embed : callable, optional
        Takes every text that will be scored to a measure of theirs, which gets a card, too.
    planted : bool
        Add evaluators whose cards are known: an oracle, a bag of words, a counter of length, and
        lots.
    sample : int
        Texts to perturb, and texts to cluster, drawn at random where there are more; questions,
        too.

    Returns
    -------
    dict
        ``about``: the files, what was drawn from them, and what was asked; ``cards``: those of
        the evaluators.

    Raises
    ------
    DataError
        If a file cannot be read or recognised, no axis can be measured, or a name is of no
        measure.
    """
    chosen = _chosen(measures)
    if sample < 2:
        raise DataError(f"--sample {sample}: a card needs two texts or more.")
    plans = _plans(read_material(files), sample, np.random.default_rng(seed))
    if not plans:
        raise DataError("The files contain no material for any axis.")
    if embed is not None:
        chosen = (*chosen, embed(texts_asked(plans)))
    cards = []
    if planted:
        chosen = (*chosen, BAG_OF_WORDS, LENGTH_COUNTER, random_measure(seed))
        cards.append(oracle_card(plans, seed=seed))
    for place, measure in enumerate(chosen):
        progress(place, len(chosen))
        cards.append(card_of(measure, plans, seed=seed))
    progress(len(chosen), len(chosen))
    about = {"files": [file.name for file in files], "sample": sample, "seed": seed}
    axes = [axis.name.value for axis in cards[0].axes]
    return {"about": about | {"axes": axes}, "cards": [card.to_dict() for card in cards]}


def _chosen(names: Sequence[str]) -> tuple[Measure, ...]:
    chosen = []
    for name in names:
        alike = [one for one in CLASSICAL if one.name.lower().startswith(name.lower())]
        if len(alike) != 1:
            known = ", ".join(one.name for one in CLASSICAL)
            raise DataError(f"--measure {name!r} begins the names of {len(alike)} of {known}.")
        chosen += alike
    return tuple(chosen) or CLASSICAL


def _plans(material: CardMaterial, sample: int, rng: np.random.Generator) -> tuple[Plan, ...]:
    """Plan what the material allows, in the order of the axes."""
    plans: list[Plan] = []
    if material.rated:
        data = "; ".join(f"{one.name}, {len(one.texts):,} texts" for one in material.rated)
        plans.append(Alignment(material.rated, data))
    name, texts = material.long_texts(MIN_WORDS)
    if texts:
        drawn = tuple(texts[i] for i in _drawn(len(texts), sample, rng))
        data = _of(name, len(drawn), len(texts), "texts")
        plans.append(Robustness.plan(drawn, data, rng=rng))
        plans.append(Sensitivity.plan(drawn, data, rng=rng))
    if material.classes is not None:
        plans.append(_clustering(material.classes, sample, rng))
    if material.library is not None:
        plans.append(_retrieval(material.library, sample, rng))
    return tuple(plans)


def _clustering(classes: _Classes, sample: int, rng: np.random.Generator) -> Plan:
    rows = _drawn(len(classes.texts), sample, rng)
    texts, labels = ([column[i] for i in rows] for column in (classes.texts, classes.labels))
    data = _of(classes.name, len(rows), len(classes.texts), "texts")
    return Clustering.plan(texts, labels, data)


def _retrieval(library: Library, sample: int, rng: np.random.Generator) -> Plan:
    rows = _drawn(len(library.questions), sample, rng)
    place = {row: i for i, row in enumerate(rows)}
    relevant = {(place[q], t): gain for (q, t), gain in library.relevant.items() if q in place}
    data = _of(library.name, len(rows), len(library.questions), "questions")
    questions = [library.questions[row] for row in rows]
    return Retrieval.plan(questions, library.texts, relevant, data, rng=rng)


def _drawn(n: int, sample: int, rng: np.random.Generator) -> list[int]:
    return sorted(rng.permutation(n)[:sample].tolist())


def _of(name: str, drawn: int, n: int, what: str) -> str:
    return f"{name}, {drawn:,} of {n:,} {what}" if drawn < n else f"{name}, {n:,} {what}"


@dataclass(slots=True)
class _Parts:
    """What has been read so far; parts that need each other wait here."""

    rated: list[RatedTexts]
    waiting: list[Annotations]
    sources: dict[str, str]
    classes: _Classes | None = None
    entries: dict[str, dict[str, str]] | None = None
    judged: list[tuple[str, str, float]] | None = None
    library: str = ""


def read_material(files: Sequence[Path]) -> CardMaterial:
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
        if file.name.endswith((".xml", ".xml.gz")):
            _entries(file, parts)
        elif file.suffix == ".txt":
            parts.judged = (parts.judged or []) + _relevance(file)
        else:
            _table(file, parts)
    rated = [*parts.rated, *(_rated_documents(table, parts.sources) for table in parts.waiting)]
    if parts.sources and not parts.waiting:
        raise DataError("There are sources of documents, and no file that rates texts of them.")
    return CardMaterial(tuple(rated), parts.classes, _library(parts))


def _table(file: Path, parts: _Parts) -> None:
    table = _with_header(for_similarity(read_annotations(file)))
    pair = next((pair for pair in PAIRS if table.has(*pair)), None)
    text, kind = _one_of(table, TEXTS), _one_of(table, CLASSES)
    document, reference = _one_of(table, DOCUMENT), _one_of(table, REFERENCES)
    if pair is not None:
        parts.rated.append(_rated_pairs(table, *pair))
    elif text and kind:
        labels = tuple(table.texts(kind))
        parts.classes = _Classes(file.name, tuple(table.texts(text)), labels)
    elif document and reference and not text:
        of = (_first(value) for value in table.texts(reference))
        parts.sources |= dict(zip(table.texts(document), of, strict=True))
    elif document and text:
        parts.waiting.append(table)
    else:
        columns = quoted_names(list(table.columns))
        msg = f"The purpose of {str(file)!r} cannot be inferred from its columns {columns}"
        error = unfit(table, "without texts to compare")
        raise error or DataError(f"{msg}: see docs/guides/probe.md for the known ones.")


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
    return _rated(table, table.texts(first), second, np.arange(table.n), others=(first, second))


def _rated_documents(table: Annotations, sources: Mapping[str, str]) -> RatedTexts:
    document, text = _one_of(table, DOCUMENT) or "", _one_of(table, TEXTS) or ""
    documents = table.texts(document)
    lost = next((name for name in documents if name not in sources), None)
    if lost is not None:
        msg = f"There is no reference or source of {document} {lost!r} of {table.source!r}: "
        raise DataError(msg + "name the file that holds it, too.")
    place = {name: i for i, name in enumerate(dict.fromkeys(documents))}
    prompt = np.array([place[name] for name in documents])
    references = [sources[name] for name in documents]
    return _rated(table, references, text, prompt, others=(document, text))


def _rated(
    table: Annotations, references: Sequence[str], text: str, prompt: Ints, others: Sequence[str]
) -> RatedTexts:
    """Take the columns that hold numbers throughout, except others, as ratings."""
    names = [name for name in table.columns if name not in others and _all_numbers(table, name)]
    if not names:
        raise DataError(f"No column of {table.source!r} holds a rating in every row.")
    ratings = np.column_stack([table.numbers(name) for name in names])
    texts = tuple(table.texts(text))
    name = Path(table.source).name
    return RatedTexts(name, tuple(references), texts, prompt, tuple(names), ratings)


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
            raise DataError(
                f"Line {number} of {str(file)!r} is {line!r}: write topic, 0, document, relevance."
            )
        rows.append((parts[0], parts[2], float(parts[3])))
    return rows


def _library(parts: _Parts) -> Library | None:
    if parts.entries is None and parts.judged is None:
        return None
    entries = parts.entries or {}
    missing = [kind for kind in ENTRIES if kind not in entries]
    if missing or parts.judged is None:
        lost = " and ".join([*missing, *(["relevance"] if parts.judged is None else [])])
        msg = f"Retrieval needs documents, topics and their relevance: there are no {lost}."
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


# Probes of a judge


ALL = "all"
"""Another name of `BIASES`."""
SAMPLE = 100
"""Pairs, at most, for checks; the other groups take every pair if not told otherwise."""

Tried = Mapping[str, tuple[Probe, ...]]
"""What is asked, by group."""


@cache
def groups() -> Mapping[str, Mapping[str, str]]:
    """Describe the groups: ``title``, ``measure``, what is ``expected``, and what is ``asked``."""
    return tomllib.loads((files("judge.probe") / "groups.toml").read_text("utf-8"))


def chosen_kinds(names: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Find interventions by their names, or by those of groups: in any case, dashes for spaces.

    Without a name they are injected answers.

    Raises
    ------
    DataError
        For a name that is not known.
    """
    of = kinds()
    known = {group: {*every} for group, every in of.items()} | {ALL: {*of[BIASES]}}
    single = {_typed(kind): {kind} for every in of.values() for kind in every}
    for name in names:
        if _typed(name) not in known | single:
            raise DataError(
                f"There is no --intervention {name!r}: choose a group ({', '.join(known)}) or "
                f"one of {', '.join(single)}."
            )
    wanted = set().union(*((known | single)[_typed(one)] for one in names or (INJECTIONS,)))
    by_group = {group: tuple(one for one in every if one in wanted) for group, every in of.items()}
    return {group: every for group, every in by_group.items() if every}


def _typed(name: str) -> str:
    return name.casefold().replace(" ", "-")


def plan(
    wanted: Mapping[str, Sequence[str]],
    source: Material,
    votes: Votes,
    *,
    judge: str,
    single: bool = False,
    sample: int | None = None,
) -> Tried:
    """Make every intervention on every pair, or on a sample of them.

    The sample is the first pairs by the hash of their content: a larger one contains a smaller
    one, and asks nothing again.

    Parameters
    ----------
    wanted : mapping
        Of `chosen_kinds`.
    votes : mapping
        Votes on cases, for the group ``people``.
    judge : str
        The name by which answers claim to be the judge's own.
    single : bool
        Show changed answers alone, for marks.
    sample : int or None
        Pairs, at most; None for `SAMPLE` in checks, and every one elsewhere.

    Raises
    ------
    DataError
        If an intervention changes nothing of any pair, or takes two answers where one is marked.
    """
    tried = {}
    for group, chosen in wanted.items():
        n = SAMPLE if sample is None and group in CHECKS else sample
        pairs = source.pairs
        if n is not None:
            pairs = tuple(sorted(pairs, key=lambda pair: pair.as_given.id))
        if group == INJECTIONS:
            every = probes(Material(pairs, source.basis).honest[:n], single=single)
            made = tuple(probe for probe in every if probe.kind in chosen)
        elif group == BIASES:
            made = interventions(pairs[:n], chosen, judge, single=single)
        elif group == PEOPLE:
            cases = [] if single else sorted(votes, key=lambda case: case.id)[:n]
            made = tuple(Probe(kind, case, case) for case in cases for kind in chosen)
        else:
            made = altered(group, pairs, chosen, most=n, single=single)
        if not any(probe.kind in chosen for probe in made):
            raise DataError(
                f"{chosen[0]!r} compares two answers, and the method judges one."
                if single
                else f"{chosen[0]!r} changes nothing in any of {plural(len(pairs[:n]), 'pair')}: "
                "give other --cases, or choose another --intervention."
            )
        tried[group] = made
    return tried


def report(
    tried: Tried,
    run: Run,
    source: Material,
    votes: Votes,
    scale: tuple[int, int],
    *,
    single: bool = False,
) -> dict[str, Any]:
    """Return what came of a run over both cases of each probe, as plain values for JSON."""
    scores = scores_of(run.judged, scale)
    about = {group: {**groups()[group], "probes": len(of)} for group, of in tried.items()}
    parts: list[dict[str, Any]] = [{"groups": about, "warnings": []}]
    if injected := tried.get(INJECTIONS):
        parts.append(resisted(injected, scores, marks=single))
    if biased := tried.get(BIASES):
        parts.append(findings(biased, run.judged, source.basis, source.n_left_out, scale))
    if checked := {group: of for group, of in tried.items() if group in CHECKS}:
        rows = checks(checked, scores, votes)
        n = sum(row["n_undecided"] for row in rows)
        unread = [f"{plural(n, 'probe')} without a verdict: excluded."] if n else []
        parts.append({"checks": rows, "perturbations_version": VERSION, "warnings": unread})
        parts.append({"better_by": source.basis, "pairs_left_out": source.n_left_out})
    if missing := tried.get(MISSING):
        parts.append({"dose_response": dose_response(missing, run.judged, scale)})
    if voted := tried.get(PEOPLE):
        of_these = {probe.case: votes[probe.case] for probe in voted}
        people = {"pairs": len(of_these), "of_pairs": len(votes)}
        people |= {"votes": sum(sum(one) for people in of_these.values() for one in people)}
        parts.append({"people": people | {"between_people": human_agreement(of_these, scores)}})
    whole = {name: value for part in parts for name, value in part.items()}
    return whole | {"warnings": [text for part in parts for text in part.get("warnings", [])]}
