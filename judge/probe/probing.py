"""What a judge is probed with, by groups of interventions, and the report of what it did."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from judge.probe.findings import checks, dose_response, findings, scores_of
from judge.probe.injections import Probe, probes, resisted
from judge.probe.interventions import (
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
from judge.probe.perturb import VERSION
from judge.probe.voted import Votes, human_agreement
from judge.studies.estimates import plural
from judge.verdict import Run
from rating.errors import DataError

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
                f"{chosen[0]!r} compares two answers, and the method looks at one."
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
