"""Findings of a judge's probe: agreement with votes, figures, thresholds and sentences.

`votes_on` matches votes to the probed pairs. `findings`, `checks` and `dose_response` give what a
judge did under interventions; all thresholds and sentences are here. `explain` regresses how alike
prompts are on their properties, with whole prompts permuted (MRQAP), for `judge.probe.prompts`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from judge.case import Case, CaseId, Order
from judge.grammar import Items, Rating
from judge.ifeval import share
from judge.probe.people import draw_prompts, rank_correlation
from judge.probe.robustness import Probe, Row, Scores, by_kind, success_of
from judge.probe.similarity import UNKNOWN, tf_idf, words
from judge.probe.verdicts import DOSES, HARMLESS, LENGTH, MEANING, MISSING, PEOPLE, Basis
from judge.studies.alignment import on_cases
from judge.studies.estimates import Estimate, gap_of, joined
from judge.tables.annotations import Annotations, read_annotations
from judge.tables.cases import NamedCase, Source
from judge.tables.native import for_judge
from judge.verdict import Judged, by_case, verdicts
from rating.errors import DataError
from rating.sentences import plural
from rating.tables.columns import KNOWN
from rating.tables.files import Files
from rating.tables.vote_filter import SKIP
from rating.typing import Floats, Ints

# Votes on probed cases


Vote = tuple[NamedCase, int, float]
"""A case, the row of its vote, and 1 for its side A, -1 for side B, 0 for neither."""
Votes = Mapping[Case, Sequence[tuple[int, int]]]
"""Votes for side A and for side B of each case by each person; those for a tie are not counted."""


def votes_on(named: Sequence[NamedCase], sources: Sequence[Source], file: Source | None) -> Votes:
    """Match votes to the pairs that they are on.

    Pairs of equal content are one, whichever side stands first; a pair without any vote is
    excluded, one with ties alone is not.

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
        raise DataError(f"Cases of {len(sources)} files have no votes: name these with --votes.")
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
        raise DataError(f"No counted vote in {where!r} is on one of the {len(named):,} cases.")
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
    """Read the votes in the column of the cases."""
    if not _is_file(source):
        msg = f"The votes on cases of {str(source)!r} are unknown: name them with --votes."
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


# Findings on a judge


What = Literal["moved", "turned", "not_moved", "no_room", "cannot_tell"]

SCALE = (1, 10)
"""Lowest and highest mark, where a method says nothing else."""
FAMILY = 0.05
"""How often a judge who obeys nothing may be said to be moved by anything, or turned by it."""
FEWEST = 8
"""Under this many prompts nothing is said: two of two are no accident only by the interval."""
MARGIN = 0.15
"""A judge is said not to be moved where the whole interval lies within this, either way, as a
share of what its control left to be won."""
ROOM = 0.5
"""With less than this left to be won, nothing is said but that there was no room."""
BARS = {PEOPLE: 0.5, HARMLESS: 1 - MARGIN, MEANING: 0.5, MISSING: 0.5}
"""A judge does what is expected where its share lies above this: chance, or all but a margin."""


def findings(
    tried: Sequence[Probe],
    judged: Iterable[Judged],
    basis: Basis,
    n_left_out: int = 0,
    scale: tuple[int, int] = SCALE,
) -> dict[str, Any]:
    """Read a run over both arms of interventions (`judge.probe.verdicts`).

    Claims that a judge is moved hold together: each takes an interval of level 1 less `FAMILY`
    over the number of kinds (Bonferroni). That it is not moved is said of each kind at 95%.

    Parameters
    ----------
    basis : {"own", "labels", "lot"}
        What said which answer is the poorer.
    n_left_out : int
        Pairs that were not used.
    scale : tuple of int
        The lowest and the highest mark, where answers are marked.

    Returns
    -------
    dict
        ``headline`` and ``sentences``; in ``interventions`` the ``finding`` of each kind with its
        figures (`judge.probe.robustness.success_of`); in ``length`` what a filler alone wins
        beyond the answer as it is, which is in no finding.
    """
    marks = all(one.case.response_b is None for one in tried)
    kinds = by_kind(tried, scores_of(judged, scale))
    length = success_of(kinds.pop(LENGTH), marks=marks)
    level = 1 - FAMILY / len(kinds)
    rows = []
    for kind, pairs in kinds.items():
        one, strict = (success_of(pairs, marks=marks, level=each) for each in (0.95, level))
        read = {probe.cluster for probe, *got in pairs if None not in got}
        what: What = "cannot_tell" if len(read) < FEWEST else _what(one, strict)
        rows.append({"kind": kind, "finding": what, **one})
    of = {what: [row["kind"] for row in rows if row["finding"] == what] for what in get_args(What)}
    n_prompts = len({probe.cluster for probe in tried})
    return {
        "headline": _headline(of),
        "sentences": [*_sentences(of, n_prompts, basis, marks=marks), _on_length(length, marks)],
        "interventions": rows,
        "length": length,
        "prompts": n_prompts,
        "tried": len(tried),
        "better_by": basis,
        "pairs_left_out": n_left_out,
        "warnings": [*_warnings(rows, basis, n_left_out)],
    }


def _what(one: Mapping[str, Any], strict: Mapping[str, Any]) -> What:
    if strict["lower"] > 0:
        return "moved"
    if strict["upper"] < 0:
        return "turned"
    room: float = 1 - one["control"]["rate"]
    if room < ROOM:
        return "no_room"
    return "not_moved" if max(one["upper"], -one["lower"]) < MARGIN * room else "cannot_tell"


def scores_of(judged: Iterable[Judged], scale: tuple[int, int] = SCALE) -> Scores:
    """Return what side B got, over both orders and in each, or what a single answer was given."""
    rows = list(judged)
    scores: dict[CaseId | tuple[CaseId, Order], float] = {
        case: 1 - verdict.outcome.score_a
        for case, verdict in verdicts(rows).items()
        if verdict.outcome is not None
    }
    for row in rows:
        if row.for_a is not None:
            scores[row.case_id, row.order] = 1 - row.for_a.outcome.score_a
        elif (mark := _mark_of(row, scale)) is not None:
            scores[row.case_id] = mark
    return scores


def _mark_of(row: Judged, scale: tuple[int, int]) -> float | None:
    """Return a mark from 0 to 1, or the share of a checklist's items that are met; None without.

    Raises
    ------
    DataError
        If a mark is outside the scale.
    """
    if isinstance(row.reading, Items):
        return row.reading.share()
    if not isinstance(row.reading, Rating):
        return None
    low, high = scale
    mark = (row.reading.score - low) / (high - low)
    if not 0 <= mark <= 1:
        raise DataError(f"A mark is {row.reading.score}, and the scale {low} to {high}.")
    return mark


def _margin() -> str:
    return f"{100 * MARGIN:.0f} percentage points"


def _headline(of: Mapping[What, Sequence[str]]) -> str:
    still, n = of["not_moved"], sum(map(len, of.values()))
    if of["moved"]:
        return f"The judge is affected by {joined(of['moved'])}."
    if len(still) == n:
        them = "the intervention" if n == 1 else f"any of the {n}"
        return f"The judge is not affected by {them} by {_margin()} or more."
    return "We do not find that any intervention affects the judge."


def _sentences(
    of: Mapping[What, Sequence[str]], n_prompts: int, basis: Basis, *, marks: bool
) -> Iterator[str]:
    answer = "a randomly chosen answer" if basis == "lot" else "the poorer answer"
    wins = "is marked higher" if marks else "wins more often"
    if of["moved"]:
        yield (
            f"With each of these, {answer} {wins} than with a filler, or replacement, of the same "
            "length."
        )
    if turned := of["turned"]:
        yield (f"The judge penalises {joined(turned)}: the answer does worse than its control.")
    still = of["not_moved"]
    if 0 < len(still) < sum(map(len, of.values())):
        yield (f"Not affected by {_margin()} or more, relative to the control: {joined(still)}.")
    if unknown := of["cannot_tell"]:
        prompts = plural(n_prompts, "prompt")
        yield f"With {prompts}, the effect of {joined(unknown)} is inconclusive."
    if full := of["no_room"]:
        yield (
            f"The control scores too high to leave room for an effect of {joined(full)}: it is "
            "not estimated."
        )


def _on_length(length: Mapping[str, Any], marks: bool) -> str:
    low, high, n = (length[name] for name in ("lower", "upper", "n_pairs"))
    if not n:
        return "The effect of length alone is not estimated."
    unit = "% of the scale" if marks else "percentage points"
    gap = f"{gap_of(Estimate(length['success_rate'], low, high, n))} {unit}"
    if low > 0 or high < 0:
        return (
            f"The effect of a filler alone, compared with the unchanged answer, is {gap}: this is "
            "an effect of length, and is in no figure above."
        )
    return f"We do not find an effect of length alone: {gap}."


def _warnings(rows: Iterable[Mapping[str, Any]], basis: Basis, n_left_out: int) -> Iterator[str]:
    if basis == "lot":
        yield (
            "The pairs do not state the better answer (in a column label or winner): "
            "interventions support a randomly chosen one. If that answer would win anyway, no "
            "effect is visible, so even a judge that always obeys succeeds only in the remaining "
            "cases."
        )
    if n_left_out:
        yield (
            f"{plural(n_left_out, 'pair')} excluded: of equal answers, or without a label for one "
            "side."
        )
    unread = sum(row["n_undecided"] + row["control"]["n_undecided"] for row in rows)
    if unread:
        yield (f"{plural(unread, 'verdict')} unparsed: these probes are excluded from both arms.")


def checks(
    tried: Mapping[str, Sequence[Probe]], scores: Scores, votes: Votes
) -> list[dict[str, Any]]:
    """Count how often a judge does what is expected, by kind.

    ``rate`` is the share of people's votes that a verdict agrees with, of verdicts that a harmless
    change leaves as they are, or of probes in which the answer as it was does better than its
    copy; a tie counts half. The interval is over prompts, and exact
    (`judge.ifeval.share`).
    ``finding`` is ``as_expected`` where the 95% interval lies above the bar of the group, and
    ``not_as_expected`` where the interval at a level of 1 less `FAMILY` over the number of kinds
    lies below it; else, and under `FEWEST` prompts, ``cannot_tell``.
    """
    kinds = {
        (group, kind): pairs
        for group, probes in tried.items()
        for kind, pairs in by_kind(probes, scores).items()
    }
    rows = []
    for (group, kind), pairs in kinds.items():
        results = [
            (row[0].cluster, right) for row in pairs for right in _as_expected(group, row, votes)
        ]
        one, strict = (
            share(results, level=level, exact=True) for level in (0.95, 1 - FAMILY / len(kinds))
        )
        n_prompts = len({prompt for prompt, right in results if right is not None})
        finding = "cannot_tell"
        if n_prompts >= FEWEST and one.low > BARS[group]:
            finding = "as_expected"
        elif n_prompts >= FEWEST and strict.high < BARS[group]:
            finding = "not_as_expected"
        row = {"group": group, "kind": kind, "finding": finding, "expected_above": BARS[group]}
        counts = {"n": one.n, "n_undecided": one.n_unread, "prompts": n_prompts}
        rows.append({**row, **one.to_dict(), **counts})
    return rows


def _as_expected(group: str, row: Row, votes: Votes) -> Iterable[float | None]:
    """Return 1 where a judge did what is expected, 0 where it did not; one for each vote."""
    probe, changed, before = row
    if changed is None or before is None:
        return [None]
    if group == PEOPLE:
        for_a, for_b = map(sum, zip(*votes[probe.case], strict=True))
        return [1 - changed] * for_a + [changed] * for_b
    if group == HARMLESS:
        return [float(changed == before)]
    return [0.5 if changed == before else float(changed < before)]


def dose_response(
    tried: Sequence[Probe], judged: Iterable[Judged], scale: tuple[int, int]
) -> dict[str, Any]:
    """Correlate how much is gone, or foreign, with how far the answer as it was is preferred.

    Spearman's correlation over all doses, the answer beside itself (dose 0) among them, with a
    bootstrap interval over prompts, for each of ``removed`` and ``inserted``; without an interval
    under `FEWEST` prompts.
    """
    for_b = {}
    for rows in by_case(judged):
        preferences = [row.for_a for row in rows]
        mark = _mark_of(rows[0], scale)
        if None not in preferences:
            for_b[rows[0].case_id] = float(np.mean([1 - one.first for one in preferences if one]))
        elif mark is not None:
            for_b[rows[0].case_id] = mark
    correlations = {}
    for what in ("removed", "inserted"):
        points = {
            (case.id, dose): probe.cluster
            for probe in tried
            if DOSES[probe.kind][0] == what
            for case, dose in ((probe.control, 0.0), (probe.case, DOSES[probe.kind][1]))
            if case.id in for_b
        }
        prompts = {name: at for at, name in enumerate(dict.fromkeys(points.values()))}
        correlation = UNKNOWN
        if points:
            prompt = np.array([prompts[name] for name in points.values()], dtype=np.int64)
            given = np.array([dose for _, dose in points])
            response = np.array([-for_b[name] for name, _ in points])
            drawn = draw_prompts(prompt, np.random.default_rng(0))
            correlation = rank_correlation(response, given, prompt, drawn)
        estimate = correlation.estimate()
        if len(prompts) < FEWEST:
            estimate = replace(estimate, lower=None, upper=None)
        correlations[what] = estimate.to_dict()
    return correlations


# Regression of prompt similarity


SAME = 1e-9
"""Share of its variance below which a term says nothing that the others do not."""
FEWEST_PROMPTS = 5


MOST_CELLS = 24
"""Of a side of a map, and so groups of which there is one."""


def map_of(by: str, alike: Floats, codes: Ints, names: Sequence[str]) -> dict[str, Any] | None:
    """Lay out how alike prompts are by group, those of a group beside each other.

    Parameters
    ----------
    alike : ndarray of shape (n_prompts, n_prompts)
        Symmetric; a prompt with itself on the diagonal.
    codes : ndarray of shape (n_prompts,), int64
        Positions in ``names``.

    Returns
    -------
    dict or None
        ``by``, what groups them; ``within`` and ``between``, the mean likeness of two prompts of
        the same group and of different ones over the mean of a prompt with itself, a correlation
        across models, None without such a pair; ``groups``, names and how many rows of cells each
        has; ``cells``, the likeness of two cells of a few prompts each. None of more than
        `MOST_CELLS` groups.
    """
    there, sizes = np.unique(codes, return_counts=True)
    if len(there) > MOST_CELLS or not np.trace(alike) > 0:
        return None
    rows = np.maximum(1, np.floor(sizes * min(1.0, MOST_CELLS / len(codes)))).astype(np.int64)
    cell = np.empty(len(codes), dtype=np.int64)
    for code, first, size, n in zip(there, np.cumsum(rows) - rows, sizes, rows, strict=True):
        cell[codes == code] = first + np.arange(size) * n // size
    side = (cell[:, None] == np.arange(rows.sum())).astype(np.float64)
    likeness = (alike - np.diag(np.diag(alike))) / float(np.diag(alike).mean())
    in_cell = side.sum(axis=0)
    pairs = np.outer(in_cell, in_cell) - np.diag(in_cell)
    sums = side.T @ likeness @ side
    same = codes[:, None] == codes[None, :]
    n_same = int(same.sum()) - len(codes)
    n_other = int((~same).sum())
    return {
        "by": by,
        "within": float(likeness[same].sum()) / n_same if n_same else None,
        "between": float(likeness[~same].sum()) / n_other if n_other else None,
        "groups": [[names[code], int(n)] for code, n in zip(there, rows, strict=True)],
        "cells": [
            [round(s / n, 4) if n else None for s, n in zip(*line, strict=True)]
            for line in zip(sums.tolist(), pairs.tolist(), strict=True)
        ],
    }


def explain(
    alike: Floats,
    terms: Mapping[str, Floats],
    *,
    draws: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, Any]:
    """Regress how alike two prompts are on properties of the two (MRQAP).

    Pairs that share a prompt depend on each other, so a permutation moves whole prompts: rows and
    columns together, of what the other terms leave of a term (double semi-partialling). The
    statistic is the partial correlation.

    Parameters
    ----------
    alike : ndarray of shape (n_prompts, n_prompts)
        Symmetric; the diagonal is not used.
    terms : mapping of str to ndarray of the same shape
        Symmetric.

    Returns
    -------
    dict
        Numbers of ``prompts``, ``pairs`` and ``draws``; ``r2`` of all terms together; and in
        ``terms`` by ``name`` the ``slope`` (standard deviations of alikeness by one of the term),
        ``partial_r2`` (of what the others leave) and ``p``, prompts permuted: None where a term
        does not vary, or says nothing that the others do not.

    Raises
    ------
    DataError
        For fewer than five prompts, or if all are equally alike.

    References
    ----------
    .. [1] D. Dekker, D. Krackhardt and T. A. B. Snijders, "Sensitivity of MRQAP tests to
       collinearity and autocorrelation conditions", Psychometrika 72(4), 2007, pp. 563-581.
    """
    n = len(alike)
    if n < FEWEST_PROMPTS:
        raise DataError(f"{n} prompts are too few to explain: give {FEWEST_PROMPTS} or more.")
    y = _centred(alike)
    if not y.any():
        raise DataError("All prompts are equally similar: there is nothing to explain.")
    used = {name: x for name, term in terms.items() if (x := _centred(term)).any()}
    every = _basis([*used.values()], n * n)
    done, total = 0, draws * max(1, len(used))
    results: dict[str, tuple[float, float, float]] = {}
    for name in used:
        others = _basis([x for other, x in used.items() if other != name], n * n)
        left = used[name].ravel() - others @ (others.T @ used[name].ravel())
        if left @ left <= SAME * float((used[name] ** 2).sum()):
            continue
        free = y.ravel() - others @ (others.T @ y.ravel())
        seen = _partial(free, left, others)
        table, beyond = left.reshape(n, n), 0
        for _ in range(draws):
            order = rng.permutation(n)
            drawn = _partial(free, table[np.ix_(order, order)].ravel(), others)
            beyond += abs(drawn) >= abs(seen) - SAME
            done += 1
            progress(done, total)
        slope = seen * np.sqrt((free @ free) / (left @ left))
        slope *= np.sqrt(float((used[name] ** 2).sum()) / float((y**2).sum()))
        results[name] = float(slope), float(seen**2), float((1 + beyond) / (draws + 1))
    fitted = every.T @ y.ravel()
    r2 = float(fitted @ fitted) / float((y**2).sum())
    columns = ("slope", "partial_r2", "p")
    return {
        "prompts": n,
        "pairs": n * (n - 1) // 2,
        "r2": r2,
        "draws": draws,
        "terms": [
            {"name": name, **dict(zip(columns, results.get(name, (None,) * 3), strict=True))}
            for name in terms
        ],
    }


def _centred(table: Floats) -> Floats:
    """Take the mean of all pairs out, with zeros on the diagonal: it then never counts."""
    n = len(table)
    off = ~np.eye(n, dtype=bool)
    centred = np.where(off, table - table[off].mean(), 0.0)
    small = float((centred**2).sum()) <= 1e-20 * max(1.0, float((table[off] ** 2).sum()))
    return np.zeros_like(centred) if small else centred


def _basis(columns: Sequence[Floats], rows: int) -> Floats:
    """Return an orthonormal basis of what columns span, shape (rows, rank)."""
    if not columns:
        return np.empty((rows, 0))
    left, size, _ = np.linalg.svd(
        np.column_stack([x.ravel() / np.sqrt((x**2).sum()) for x in columns]), full_matrices=False
    )
    return np.asarray(left[:, size > np.sqrt(SAME)])


def _partial(free: Floats, x: Floats, others: Floats) -> float:
    """Correlate what others leave of y with what they leave of a centred column."""
    shared = others.T @ x
    size = float(x @ x - shared @ shared)
    return float(free @ x) / np.sqrt(size * float(free @ free)) if size > 0 else 0.0


def terms_of(
    texts: Sequence[str] | None, groups: Mapping[str, Ints], failed: Floats | None = None
) -> dict[str, Floats]:
    """Return properties of every two prompts.

    Parameters
    ----------
    texts : sequence of str, length n_prompts, or None
        For the cosine of their TF-IDF vectors, and the difference of the logs of their lengths.
    groups : mapping of str to ndarray of shape (n_prompts,)
        For whether the two are in the same group.
    failed : ndarray of shape (n_prompts,), optional
        Whether every model failed: for whether both prompts are so.
    """
    terms: dict[str, Floats] = {}
    if texts is not None and any(map(words, texts)):
        terms["similar words (TF-IDF cosine)"] = tf_idf(texts).matrix(texts, texts)
        length = np.log1p(np.array([len(text) for text in texts], dtype=np.float64))
        terms["difference of log lengths"] = np.abs(length[:, None] - length[None, :])
    for name, codes in groups.items():
        terms[f"same {name}"] = (codes[:, None] == codes[None, :]).astype(np.float64)
    if failed is not None:
        terms["failed by all models, both"] = np.outer(failed, failed).astype(np.float64)
    return terms
