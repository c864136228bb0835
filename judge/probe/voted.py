"""People's votes on cases: matched by item or battle, and how far people agree."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.case import Case
from judge.ifeval.accuracy import share
from judge.probe.injections import Scores
from judge.studies.alignment import on_cases
from judge.tables.annotations import Annotations, read_annotations
from judge.tables.cases import NamedCase, Source
from judge.tables.native import for_judge
from rating.errors import DataError
from rating.tables.columns import KNOWN
from rating.tables.files import Files
from rating.tables.vote_filter import SKIP

Vote = tuple[NamedCase, int, float]
"""A case, the row of its vote, and 1 for its side A, -1 for side B, 0 for neither."""
Votes = Mapping[Case, Sequence[tuple[int, int]]]
"""Votes for side A and for side B of each case by each person; those for a tie are not counted."""


def votes_on(named: Sequence[NamedCase], sources: Sequence[Source], file: Source | None) -> Votes:
    """Match votes to the pairs that they are on.

    Pairs of equal content are one, whichever side stands first; a pair without any vote is left
    out, one with ties alone is not.

    Parameters
    ----------
    named : sequence of NamedCase
        As read from ``sources``.
    sources : sequence of path, or of Files
        What the cases were read from.
    file : path, Files or None
        A vote a row: ``winner``, ``battle_id`` or ``item_id`` (if the cases have it, too), and
        ``model_a`` and ``model_b`` where sides may be exchanged (see
        `judge.studies.alignment.on_cases`). None for votes in the column
        ``winner`` of the one file of cases. A row that is skipped, has no winner, or has a reason
        in ``left_out`` is none. A vote without a voter is by a person of its own.

    Raises
    ------
    DataError
        If votes cannot be read, are not on the cases, or there are none.
    """
    if file is None and len(sources) != 1:
        msg = f"Cases of {len(sources)} files have no votes beside them: name theirs with --votes."
        raise DataError(msg)
    counts: dict[Case, dict[object, tuple[int, int]]] = {}
    if file is None:
        table = _own(sources[0])
        cast = [(named[row], row, label) for row, label in _labels(table)]
    else:
        table = read_annotations(file, "votes", peers=True)
        cast = [*_matched(named, sources, table)]
    column = next((name for name in KNOWN["voter"] if table.has(name)), None)
    voters = [None] * table.n if column is None else table.need(column).tolist()
    for one, row, label in cast:
        case, side = one.case, label
        if (swapped := case.swapped()) in counts:
            case, side = swapped, -label
        person = str(voters[row] or "").strip() or row
        for_a, for_b = counts.setdefault(case, {}).get(person, (0, 0))
        counts[case][person] = for_a + (side > 0), for_b + (side < 0)
    if not counts:
        where = str(sources[0] if file is None else file)
        raise DataError(f"No vote in {where!r} counts and is on one of the {len(named):,} cases.")
    return {case: [*people.values()] for case, people in counts.items()}


def human_agreement(votes: Votes, scores: Scores) -> dict[str, Any] | None:
    """Estimate how often two people agree on a pair, and how much of that a judge reaches.

    Over the pairs with votes of two people or more, each counting the same; None without any.
    Votes of one person on a pair are not compared with each other.

    Returns
    -------
    dict
        ``n`` pairs, and shares with intervals over prompts. ``people_agree``: A, how often two
        people do. ``highest``: ``(1 + sqrt(2 A - 1)) / 2``; a judge that gives one verdict on a
        pair agrees with a person no more often, and the best at least with probability A.
        ``reached``: how often this judge does, a tie counting half.

    Notes
    -----
    With ``d = 2 p - 1``, p the share of people for side A, two of them agree with probability
    ``E(1 + d^2) / 2``, and one of them with the majority with ``E(1 + |d|) / 2``: Jensen's
    inequality gives the bounds. Where people agree less than half of the time, ``2 A - 1`` is
    taken as 0.
    """
    agree, reached = [], []
    for case, people in votes.items():
        a, b = map(sum, zip(*people, strict=True))
        n, for_b = a + b, scores.get(case.id)
        pairs = n**2 - sum((one + other) ** 2 for one, other in people)
        if not pairs:
            continue
        same = a**2 + b**2 - sum(one**2 + other**2 for one, other in people)
        agree.append((case.prompt_id, same / pairs))
        right = None if for_b is None else ((1 - for_b) * a + for_b * b) / n
        reached.append((case.prompt_id, right))
    if not agree:
        return None
    between = share(agree)
    rate, low, high = (
        (1 + math.sqrt(max(2 * end - 1, 0))) / 2
        for end in (between.rate, between.low, between.high)
    )
    highest = replace(between, rate=rate, low=low, high=high)
    figures = {"people_agree": between, "highest": highest, "reached": share(reached)}
    return {"n": between.n, **{name: figure.to_dict() for name, figure in figures.items()}}


def _own(source: Source) -> Annotations:
    """Read the votes that stand beside the cases."""
    if not _is_file(source):
        msg = f"Votes on the cases of {str(source)!r} are not known: name their file with --votes."
        raise DataError(msg)
    return for_judge(read_annotations(source, "cases"), pairs=True)


def _matched(
    named: Sequence[NamedCase], sources: Sequence[Source], table: Annotations
) -> Iterator[Vote]:
    labels = dict(_labels(table))
    for case, row, sign in on_cases(named, _items(sources), ", ".join(map(str, sources)), table):
        if row in labels:
            yield named[case], row, sign * labels[row]


def _items(sources: Sequence[Source]) -> Sequence[object] | None:
    """Read the items of one file of cases; None where it names none."""
    if len(sources) != 1 or not _is_file(sources[0]):
        return None
    table = for_judge(read_annotations(sources[0], "cases"), pairs=True)
    return list(table.columns["item_id"]) if table.has("item_id") else None


def _is_file(source: Source) -> bool:
    files = Files.of(source)
    return files is not None and Path(files.paths[0]).is_file()


def _labels(table: Annotations) -> Iterator[tuple[int, float]]:
    """Yield the rows that are votes: 1 for side A, -1 for side B, 0 for a tie."""
    winner = table.need("winner")
    left_out = table.need("left_out") if table.has("left_out") else [None] * table.n
    for row, (value, reason) in enumerate(zip(winner, left_out, strict=True)):
        counts = reason is None or not str(reason).strip()
        if counts and value != SKIP:
            label = table.label(row, value)
            if not math.isnan(label):
                yield row, label
