"""Verdicts of several judges beside labels or votes of people, ready for a panel's card."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from judge.studies.agreement import counts, majority
from judge.studies.alignment import align, merged
from judge.studies.data import StudyData, judges_apart, read_votes, study_data
from judge.studies.items import Labels
from judge.studies.rows import Rows, Source, read_rows
from rating.errors import DataError
from rating.tables.coding import Coded
from rating.tables.files import Files
from rating.tables.sources import columns_of
from rating.typing import Bools, Floats, Ints

FAMILY, LABEL = "family", "label"


@dataclass(frozen=True, slots=True, eq=False)
class PanelData:
    """Verdicts of a panel, and what they are held against.

    Attributes
    ----------
    data : StudyData
        Its people are the votes, or the labels of the files.
    truth : Labels
        One row an item: what most people say, or the label.
    by_people : bool
        Whether the truth is of people.
    families : mapping of str to str
        Family of each judge.
    """

    data: StudyData
    truth: Labels
    by_people: bool
    families: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """Who errs on which of the items that every judge read.

    Attributes
    ----------
    judges : tuple of str, length k
    wrong : ndarray of shape (n_items, k)
        1 where a verdict is not the truth, else 0.
    prompt : ndarray of shape (n_items,), int64
        Number of the prompt, from 0 without a gap.
    verdict : ndarray of shape (n_items, k), or None
        1, 0 or -1 for side A; None where the truth is a label.
    people : ndarray of shape (n_items, 3), or None
        Of people's 1, 0 or -1 the mean, and the mean product of two different people's with a 1,
        or 0 and 0 where only one voted.
    """

    judges: tuple[str, ...]
    wrong: Floats
    prompt: Ints
    verdict: Floats | None = None
    people: Floats | None = None

    def only(self, judges: Sequence[int]) -> "Errors":
        """Keep some judges, on the same items."""
        names = tuple(self.judges[j] for j in judges)
        verdict = None if self.verdict is None else self.verdict[:, list(judges)]
        return Errors(names, self.wrong[:, list(judges)], self.prompt, verdict, self.people)


def read_panel(
    verdicts: Sequence[Files], votes: Source | None, *, voters: str | None = None
) -> PanelData:
    """Read verdicts, and votes of people or the labels beside the verdicts.

    A judge goes by the column ``judge``, without one by the name of its file; asked by several
    methods, it is a judge by each. Its family is in the column ``family``, else `family_of` gives
    it.

    Parameters
    ----------
    verdicts : sequence of Files
        Tables, each of one judge or several.
    votes : source, optional
        Votes of people; without, the tables have a column ``label`` with the right answer.
    voters : str, optional
        Pattern of the voters whose votes count.

    Raises
    ------
    DataError
        If a source cannot be read, there are neither votes nor labels, labels or families
        contradict each other, or verdicts and votes have no item in common.
    """
    stems = [Path(files.paths[0]).stem for files in verdicts]
    parts = []
    for stem, files in zip(stems, verdicts, strict=True):
        rows = read_rows(files, unread=True, by=FAMILY)
        name = stem if stems.count(stem) == 1 else str(files.paths[0])
        whole = Coded((name,), np.zeros(rows.n, dtype=np.int64))
        parts.append(replace(rows, names={"judge": whole, **rows.names}))
    given = judges_apart(stacked(parts))
    if votes is not None:
        cast = read_votes(votes, voters)
    elif voters is not None:
        msg = f"--voters {voters!r} chooses among votes of people: name these by --votes."
        raise DataError(msg)
    else:
        cast = stacked([_read_labels(files) for files in verdicts])
    data = study_data(align(cast, given))
    if votes is None:
        _refuse_two_labels(data)
    truth = majority(data.items, data.people)
    return PanelData(data, truth, votes is not None, _families(given))


def stacked(parts: Sequence[Rows]) -> Rows:
    """Put the rows of several tables below each other; what a table has not is missing there."""
    if len(parts) == 1:
        return parts[0]
    sizes = [part.n for part in parts]
    names = {
        role: _joined([part.names.get(role) for part in parts], sizes)
        for role in dict.fromkeys(role for part in parts for role in part.names)
    }
    numbers = {
        role: np.concatenate([part.numbers.get(role, np.full(part.n, np.nan)) for part in parts])
        for role in dict.fromkeys(role for part in parts for role in part.numbers)
    }
    dropped: Counter[str] = Counter()
    for part in parts:
        dropped.update(part.dropped)
    source = ", ".join(dict.fromkeys(part.source for part in parts))
    label = np.concatenate([part.label for part in parts])
    read = np.concatenate([part.read for part in parts])
    notes = tuple(one for part in parts for one in part.notes)
    return Rows(source, names, numbers, label, read, dict(dropped), notes)


def _joined(columns: Sequence[Coded | None], sizes: Sequence[int]) -> Coded:
    filled = [
        Coded((), np.full(size, -1)) if column is None else column
        for column, size in zip(columns, sizes, strict=True)
    ]
    names, codes = merged(filled)
    return Coded(names, np.concatenate(codes))


def _read_labels(files: Files) -> Rows:
    """Read the right answers of a table of verdicts, as votes beside them."""
    theirs = dict(files.columns).get(LABEL, LABEL)
    if theirs not in columns_of(files):
        msg = (
            f"There is nothing to hold the verdicts of {str(files)!r} against: name votes of "
            f"people by --votes, or give the right answer in a column {LABEL!r} (--column "
            f"{LABEL}=NAME reads it from another)."
        )
        raise DataError(msg)
    others = [pair for pair in files.columns if pair[0] not in (LABEL, "winner")]
    rows = read_rows(replace(files, columns=(*others, ("winner", theirs))), unread=True)
    if not rows.read.any():
        raise DataError(f"The column {theirs!r} of {str(files)!r} is empty: it holds no label.")
    numbers = {role: values for role, values in rows.numbers.items() if role != "preference"}
    return replace(rows, numbers=numbers, dropped={})


def _refuse_two_labels(data: StudyData) -> None:
    twice = np.flatnonzero((counts(data.items, data.people) > 0).sum(axis=1) > 1)
    if not twice.size:
        return
    item = int(twice[0])
    a, b = (data.items.models[model] for model in data.items.pairs[item])
    prompt = data.prompts[data.items.prompt[item]]
    msg = (
        f"The item of {a!r} and {b!r}" + (f" on the prompt {prompt!r}" if prompt else "") + " has "
        "two labels that differ: give each item one, or name votes of people by --votes."
    )
    raise DataError(msg)


def _families(rows: Rows) -> dict[str, str]:
    families = {}
    for name in rows.used("judge"):
        theirs = rows.only(rows.named("judge") == name).used("by")
        if len({one.strip() for one in theirs}) > 1:
            raise DataError(
                f"The judge {name!r} is of the families {theirs[0]!r} and {theirs[1]!r}: give it "
                "one."
            )
        families[name] = theirs[0].strip() if theirs else family_of(name)
    return families


def family_of(judge: str) -> str:
    """Take the letters that a judge's name begins with, without its provider, for its family.

    Examples
    --------
    >>> family_of("gpt-4"), family_of("meta/Llama3-70b"), family_of("7b")
    ('gpt', 'llama', '7b')
    """
    bare = judge.partition(",")[0].rstrip("/").rpartition("/")[2].strip().casefold()
    letters = re.match(r"[^\W\d_]+", bare)
    return letters.group() if letters else bare or judge


@dataclass(frozen=True, slots=True, eq=False)
class Complete:
    """The errors on the items that every judge read, and how many items each leaves out.

    Attributes
    ----------
    without : mapping of str to int
        Items with a truth that a judge gave no verdict on that was read.
    n_labelled : int
        Items that have a truth.
    n_ties : int
        Of the items that every judge read, those whose truth is a tie.
    """

    errors: Errors
    without: Mapping[str, int]
    n_labelled: int
    n_ties: int


def errors_of(panel: PanelData) -> Complete:
    """Hold verdicts against the truth, on the items where every judge has one that was read.

    A judge's repetitions, or its orders where no row is of both, count once: what most of them
    say.

    Raises
    ------
    DataError
        If there is no such item.
    """
    items = panel.data.items
    truth, there = _by_item(panel.truth, items.n)
    given, read = [], []
    for judge in panel.data.judges:
        label, has = _by_item(majority(items, judge.verdicts), items.n)
        given.append(label)
        read.append(has)
    names = tuple(judge.name for judge in panel.data.judges)
    without = {name: int((there & ~has).sum()) for name, has in zip(names, read, strict=True)}
    used = there & np.all(read, axis=0)
    if not used.any():
        worst = max(without, key=lambda name: without[name])
        msg = (
            f"No item has a verdict of all {len(names)} judges that was read: {worst!r} has none "
            f'on {without[worst]:,} of {int(there.sum()):,}. Leave it out (--where "judge <> '
            f"'{worst}'\"), or judge the same items."
        )
        raise DataError(msg)
    verdict = np.column_stack(given)[used].astype(np.float64)
    wrong = np.asarray(verdict != truth[used, None], dtype=np.float64)
    _, prompt = np.unique(items.prompt[used], return_inverse=True)
    errors = Errors(names, wrong, prompt.astype(np.int64))
    if panel.by_people:
        errors = replace(errors, verdict=verdict, people=_votes(panel.data)[used])
    return Complete(errors, without, int(there.sum()), int((truth[used] == 0).sum()))


def _votes(data: StudyData) -> Floats:
    """Return `Errors.people` of every item; a person who voted again counts once."""
    n, people = data.items.n, data.people
    person, place = np.unique(people.rater * n + people.item, return_inverse=True)
    own = np.bincount(place, people.label) / np.bincount(place)
    total, square, voters = (np.bincount(person % n, x, n) for x in (own, own**2, own * 0 + 1))
    pairs = voters * (voters - 1)
    product = (total**2 - square) / np.maximum(pairs, 1)
    return np.column_stack([total / np.maximum(voters, 1), product * (pairs > 0), pairs > 0])


def _by_item(labels: Labels, n_items: int) -> tuple[Ints, Bools]:
    label, there = np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=bool)
    label[labels.item], there[labels.item] = labels.label, True
    return label, there
