"""Release gates and sequential tests by votes of people with verdicts of a judge.

`ask` answers a gate by votes, by votes and verdicts together, or by a judge alone whose validation
certificate passes both models. `race_with_judge` gives a sequential test (`rating.decide`) the
lead by votes and verdicts together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import scipy

from judge.studies.alignment import align
from judge.studies.data import judge_of, one_a_case, study_data
from judge.studies.licence import Graded, Licence, counted, require_people
from judge.studies.newcomer import variance_of_sum
from judge.studies.powered import powered_lead, row_scores
from judge.studies.rows import Rows, Source, read_rows
from judge.studies.watch import columns_of, licensed_signal
from rating import read_votes
from rating.comparisons import Comparisons
from rating.contrasts import WELL_FOUNDED
from rating.decide import (
    FEWEST_SCORED,
    Difference,
    Gate,
    GateOptions,
    Lead,
    decided,
    gate,
    require_both,
    rows_planned,
    unanswered,
    untold,
)
from rating.errors import DataError, NotIdentifiedError
from rating.outcome import of_sides
from rating.rows import VoteRows
from rating.sentences import plural
from rating.tables.coding import LoggedVotes
from rating.tables.columns import Reading
from rating.tables.counts import read_rows as read_vote_rows
from rating.tables.peers import mention
from rating.tables.sources import opened
from rating.typing import Bools, Floats, Ints
from rating.variants import POINTS_PER_NAT

# Release gate


OF_A_RUN = ("method", "template")
"""Columns that verdicts have, and votes of people do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What a judge adds to a gate.

    Attributes
    ----------
    source : Source
        Its verdicts.
    judge : str or None
        Whose, where the source holds those of several.
    licence : Licence or None
        Under which the judge may answer alone, where people cannot yet.
    """

    source: Source
    judge: str | None = None
    licence: Licence | None = None


def ask(
    votes: Source, options: GateOptions, verdicts: Verdicts | None = None, *, today: date
) -> Gate:
    """Ask whether a candidate is better than an incumbent: see `rating.decide`.

    With verdicts votes and verdicts are put together (`powered_lead`): a judge that is wrong in
    the same way on all of them makes nothing wrong. It answers alone only where votes of people
    tell nothing yet, and under a licence that passes both models. As there are then two ways to
    an answer, each is held at ``(1 + level) / 2``.

    Raises
    ------
    DataError
        If a source cannot be read, votes are verdicts, or a model is in neither.
    """
    _require_no_run(votes)
    if verdicts is None:
        read = read_votes(votes, Reading(prompts=True))
        data, unused = _up_to_the_planned(votes, read.data, options)
        return gate(data, options).with_warnings(*read.warnings, *unused)
    if verdicts.licence is None:
        return _by_both(votes, verdicts, options)
    options = replace(options, level=(1 + options.level) / 2)
    by_people = _by_both(votes, verdicts, options)
    if by_people.by != "nothing":
        return by_people
    return _alone(by_people, verdicts, verdicts.licence, today)


def _up_to_the_planned(
    votes: Source, every: Comparisons, options: GateOptions
) -> tuple[Comparisons, tuple[str, ...]]:
    """Exclude the votes after the planned ones, where looks are numbered, and say so."""
    require_both(every.models, (options.candidate, options.incumbent))
    ends = [every.models.index(name) for name in (options.candidate, options.incumbent)]
    there = int(every.votes[np.isin(every.pairs, ends).any(axis=1)].sum())
    if options.looks == "any" or options.votes_planned is None or there <= options.votes_planned:
        return every, ()
    reading = Reading(prompts=True, voters=every.voter is not None, ordered=True)
    rows = read_vote_rows(votes, reading)
    either = np.isin(rows.models, (options.candidate, options.incumbent))
    first = rows.taken(slice(rows_planned(either[rows.a] | either[rows.b], options)))
    voter, prompt = first.groups.get("voter"), first.groups.get("prompt")
    return first.comparisons(voter=voter, prompt=prompt), _unused(there, options)


def _unused(there: int, options: GateOptions) -> tuple[str, ...]:
    """Warn of votes that are not used."""
    planned = options.votes_planned
    if options.looks == "any" or planned is None or there <= planned:
        return ()
    more = plural(there - planned, "vote")
    return (f"{more} on either model after the planned {planned:,} are not used.",)


def _require_no_run(votes: Source) -> None:
    """Raise `DataError` for what a judge's run wrote, in the place of votes."""
    if isinstance(votes, LoggedVotes):
        return
    with opened(votes, lambda there: [*there]) as rows:
        there = rows.columns
    if column := next((name for name in OF_A_RUN if name in there), None):
        raise DataError(
            f"{str(votes)!r} has a column {column!r}, as verdicts of a judge have: give votes of "
            "people first, and verdicts after them, as in arena gate votes.csv verdicts.csv."
        )


def _by_both(votes: Source, verdicts: Verdicts, options: GateOptions) -> Gate:
    """Answer by votes of people, and what verdicts add to them."""
    cast = read_rows(votes, unparsed=False)
    given = read_rows(verdicts.source, unparsed=True)
    require_people(cast, given)
    two = (options.candidate, options.incumbent)
    voted, judged = (
        {name for role in of_sides("model") for name in rows.used(role)} for rows in (cast, given)
    )
    require_both(sorted(voted | judged), two)
    either = _has(cast, two[0]) | _has(cast, two[1])
    cast = cast.only(np.arange(rows_planned(either, options)))
    known = _behind(cast, options)
    known = replace(known, warnings=(*known.warnings, *_unused(int(either.sum()), options)))
    if missing := next((name for name in two if name not in voted), None):
        return untold(known, f"Nobody voted on {missing} yet.")
    data = study_data(align(cast, given))
    judge = judge_of(data, verdicts.judge)
    known = replace(known, warnings=(*known.warnings, *data.warnings))
    people = data.people
    if options.claims == "these-voters":
        people = replace(people, rater=np.arange(people.n))
    try:
        powered = powered_lead(data.items, people, judge.verdicts, two)
    except NotIdentifiedError as error:
        return untold(known, str(error))
    more = f"; the verdicts of {judge.name} do not contribute"
    if powered.verdicts:
        verdicts_of = f"{plural(powered.verdicts, 'verdict')} of {judge.name}"
        more = f", and {verdicts_of} with weight {powered.judge_weight:.2f}"
    known = replace(
        known,
        by="people and judge" if powered.verdicts else "people",
        rests_on=known.rests_on + more,
        judge=powered.verdicts,
        judge_weight=powered.judge_weight,
        warnings=(*known.warnings, *powered.warnings),
    )
    return decided(powered.lead, known)


def _behind(cast: Rows, options: GateOptions) -> Gate:
    """Count the votes on either model, and those on the two."""
    has = [_has(cast, name) for name in (options.candidate, options.incumbent)]
    either, both = has[0] | has[1], has[0] & has[1]
    people, direct = int(either.sum()), int(both.sum())
    counts = [
        len(np.unique(cast.names[role].codes[either])) if role in cast.names else None
        for role in ("voter", "prompt")
    ]
    unknown = "Voters are unknown: the interval is too narrow if some people voted often."
    warnings = () if counts[0] is not None else (unknown,)
    return unanswered(options, people, direct, counts[0], counts[1], warnings)


def _has(rows: Rows, model: str) -> Bools:
    """Tell in which rows a model stands on either side."""
    a, b = (rows.named(role) == model for role in of_sides("model"))
    return np.asarray(a | b, dtype=bool)


def _alone(by_people: Gate, verdicts: Verdicts, licence: Licence, today: date) -> Gate:
    """Let a judge answer alone, as far as its licence goes."""
    options = by_people.options
    if over := licence.expired(today):
        return replace(by_people, why=f"{by_people.why} {over}")
    rows = read_rows(verdicts.source, unparsed=True, by=licence.column, marks=True)
    rows = licensed_signal(licence, rows)
    rows = rows.only(rows.read & one_a_case(rows))
    counts, reasons = counted(licence, columns_of(rows), rows.n)
    rows = rows.only(counts & _has(rows, options.candidate) & _has(rows, options.incumbent))
    rows = rows.only(np.arange(rows_planned(np.ones(rows.n, dtype=bool), options)))
    passed = {model.name: model for model in licence.models if model.grade == "PASS"}
    names = (options.candidate, options.incumbent)
    two = [passed[name] for name in names] if {*names} <= {*passed} else []
    by_people = by_people.with_warnings(*reasons)
    score, prompt = _judged(rows, options.candidate)
    by_prompt = np.unique(prompt, return_counts=True)[1].astype(np.float64)
    effective = float(by_prompt.sum() ** 2 / max(by_prompt @ by_prompt, 1.0))
    why = "" if two else "The validation certificate does not cover both models."
    if effective < WELL_FOUNDED:
        on = f"{effective:.0f} effective prompts"
        why = f"only verdicts on {on} count for these two models, and {WELL_FOUNDED} are needed."
    elif min((score == 1).sum(), (score == 0).sum()) < FEWEST_SCORED:
        why = f"nothing is estimated before each of the two models has {FEWEST_SCORED} wins."
    if why:
        return replace(by_people, why=f"{by_people.why} {licence.judge} alone: {why}")
    rate = float(score.mean())
    variance = variance_of_sum((score - rate) / len(score), prompt) / (rate * (1 - rate)) ** 2
    lead = Lead(
        value=float(scipy.special.logit(rate)),
        variance=variance,
        df=effective - 1,
        of_prompts=0.0,
        by_prompt=variance,
        prompt_df=effective - 1,
        independent=variance,
        effective=effective,
    )
    return _answered(by_people, licence, lead, (len(score), len(by_prompt)), two)


def _judged(rows: Rows, candidate: str) -> tuple[Floats, Ints]:
    """Give what verdicts on the two gave the candidate, and on which prompt."""
    first = rows.named(of_sides("model")[0]) == candidate
    role = next((role for role in ("prompt", "item", "battle") if role in rows.names), None)
    codes = np.full(rows.n, -1) if role is None else rows.names[role].codes.astype(np.int64)
    score = (np.where(first, rows.label, -rows.label) + 1) / 2
    return score, np.where(codes < 0, len(codes) + np.arange(rows.n), codes)


def _answered(
    by_people: Gate, licence: Licence, lead: Lead, n: tuple[int, int], two: Sequence[Graded]
) -> Gate:
    """Answer by the win rate of the two, each end moved by what the licence leaves open.

    It is of this many verdicts and prompts.

    ``upper`` of the candidate less ``lower`` of the incumbent is by how much the judge may favour
    the one over the other, percentage points; the lower end goes down by it, and the upper end
    by the least that it may be.
    """
    options = by_people.options
    ask = (options.looks, options.planned, n[0], options.level)
    half = lead.half_width(*ask)
    least, middle, most = _favour(*two)
    value = _moved(lead.value, middle)
    alone = replace(
        by_people,
        difference=Difference(
            value=POINTS_PER_NAT * lead.value if value is None else value,
            lower=_moved(lead.value - half, most),
            upper=_moved(lead.value + half, least),
        ),
        judge=n[0],
        by="judge alone",
        rests_on=(
            f"{plural(n[0], 'verdict')} of {licence.judge} alone on the two models, on "
            f"{plural(n[1], 'prompt')}, under its validation certificate until "
            f"{licence.until.isoformat()}; no votes of people"
        ),
        why="",
    )
    done = alone.passes is not None
    return replace(alone, needed=0, needed_same_prompts=0) if done else alone


def _favour(candidate: Graded, incumbent: Graded) -> tuple[float, float, float]:
    """Return by how much a judge favours one of two: at least, as measured, and at most."""
    ends = [(x.lower, x.error, x.upper) for x in (candidate, incumbent)]
    (a, b, c), (d, e, f) = ([float(end or 0.0) for end in one] for one in ends)
    return a - f, b - e, c - d


def _moved(log_odds: float, favour: float) -> float | None:
    """Return points of a win rate less what a judge favours; None where no rate is left."""
    rate = float(scipy.special.expit(log_odds)) - favour / 100
    return POINTS_PER_NAT * float(scipy.special.logit(rate)) if 0 < rate < 1 else None


# Sequential test


def race_with_judge(
    votes: Source, verdicts: Source, between: tuple[str, str], judge: str | None = None
) -> tuple[VoteRows, Callable[[int], tuple[Lead, float]]]:
    """Read votes, in the order of their source, and what makes a lead of the first of them.

    The lead is that of a gate with verdicts: see `judge.studies.powered.powered_lead`.

    Raises
    ------
    DataError
        If a source cannot be read.
    """
    aligned = align(read_rows(votes, unparsed=False), read_rows(verdicts, unparsed=True))
    for note in aligned.warnings:
        mention(note)
    data = study_data(aligned)
    items, people, given = data.items, data.people, judge_of(data, judge).verdicts
    a, b = items.pairs[people.item].T
    rows = VoteRows.scored(items.models, a, b, row_scores(people), people.rater)

    def judged(n: int) -> tuple[Lead, float]:
        powered = powered_lead(items, people.only(np.arange(n)), given, between)
        return powered.lead, powered.judge_weight

    return rows, judged
