"""Grades a judge, model by model, against labels of people: where it may stand in for them."""

import hashlib
import json
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from judge.studies.alignment import Aligned, align
from judge.studies.data import (
    PAIR,
    JudgeVerdicts,
    StudyData,
    by_values,
    in_group,
    parted,
    read_votes,
    shared_by,
    study_data,
)
from judge.studies.estimates import FEWEST_PEOPLE, MeanOfPrompts, plural
from judge.studies.gates import MIN_PROMPTS
from judge.studies.licence import Graded, Licence, Reference, grade_of
from judge.studies.options import Terms
from judge.studies.rows import Rows, Source, read_rows
from judge.studies.soft_verdicts import (
    Compared,
    Kind,
    variance_of_sum,
    with_signal,
)
from judge.verdict import SETTLED
from rating.errors import DataError
from rating.outcome import of_sides
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.student import quantile

ERROR = 0.05
"""Share of licences that pass some model beyond the margin, or fail one within it, at most."""
FEWEST_VOTES = 30
"""Labels that a model needs to be graded."""
OUTSIDE = 0.05
"""Share of a model's scores beyond the labelled ones from which it is not graded."""
USUAL = timedelta(days=182)
"""How long a licence lasts."""
FEWEST_WATCHED = 100
"""Labels on pairs of passed models that a watch needs to compare with."""
FEWEST_OF_A_KIND = 30
"""Labels that a kind of verdicts needs, and pairs of them that a covariance needs."""
SIMULATED = "simulated"
"""``voter_kind`` of votes that nobody cast, in what an arena exports."""
_RANGE = MeanOfPrompts(-1.0, 1.0, (0,))


def grant(
    votes: Source,
    verdicts: Source,
    terms: Terms,
    today: date,
    *,
    voters: str | None = None,
    by: str | None = None,
) -> Licence:
    """Grade a judge on each model, and say where its verdicts may stand in for people.

    For each model the error is the win rate that the judge gives it less that which people give
    it, over the same votes, with an interval by voter and by prompt. It passes where the interval
    lies within the margin, fails where it lies beyond. Each end is of level 1 - `ERROR` / K, K
    the models that are graded: exactly one of "within" and "beyond" is wrong of each model, so at
    most `ERROR` of licences hold a wrong grade (Bonferroni).

    Raises
    ------
    DataError
        If the labels are not of people, the verdicts are of several judges, methods or templates,
        a source cannot be read, or an option does not fit.
    """
    assert terms.margin is not None
    cast = read_votes(votes, voters, by)
    given, signal = with_signal(read_rows(verdicts, unread=True, by=by, marks=True))
    require_people(cast, given)
    aligned, categories = _in_categories(align(cast, given), by)
    (cast, given), data = aligned.sources, study_data(aligned)
    method, template = (_only_one(given, role) for role in ("method", "template"))
    if len(data.judges) != 1:
        names = ", ".join(repr(judge.name) for judge in data.judges)
        msg = f"A licence is of one judge, and the verdicts are of {names}: choose by --where."
        raise DataError(msg)
    judge = data.judges[0]
    rows = labelled(data, judge, signal)
    if not len(rows.score):
        msg = f"The judge {judge.name!r} read no item that people voted on: nothing to grade."
        raise DataError(msg)
    known = data.voters_known
    models = graded(data, judge, rows, terms.margin, known=known)
    passes = np.array([model.grade == "PASS" for model in models])
    watched: Bools = np.all(passes[rows.pairs], axis=1)
    until = terms.until or today + USUAL
    if until < today:
        raise DataError(f"--until {until} is over: today is {today}.")
    return Licence(
        judge=judge.name,
        made=today,
        until=until,
        margin=float(terms.margin),
        votes_a_year=terms.votes_a_year,
        votes_sha256=hash_of(cast),
        method=method,
        templates=(template,) if template else (),
        resolved_models=_answered(given, "resolved"),
        fingerprints=_answered(given, "fingerprint"),
        signal=signal,
        votes=len(rows.score),
        people=len(np.unique(rows.rater)) if known else None,
        items=len(np.intersect1d(data.people.item, judge.verdicts.item)),
        prompts=len(np.unique(rows.prompt)),
        column=by if categories else None,
        categories=categories,
        models=models,
        reference=reference(rows.only(watched), known=known),
    )


def require_people(cast: Rows, given: Rows) -> None:
    """Raise `DataError` for labels that a model gave: its own column, or a voter of its name."""
    for role in ("judge", "method", "template"):
        if names := cast.used(role):
            msg = (
                f"The labels of {cast.source!r} are of a model ({role} {names[0]!r}): this "
                "rests on labels of people, never of models."
            )
            raise DataError(msg)
    if SIMULATED in cast.used("voter_kind"):
        msg = (
            f"Labels of {cast.source!r} are of voters of the kind {SIMULATED!r}: this rests "
            "on labels of people, never of models."
        )
        raise DataError(msg)
    models = {
        name for rows in (cast, given) for role in of_sides("model") for name in rows.used(role)
    }
    of_models = models | {*given.used("judge")}
    if voter := next((name for name in cast.used("voter") if name in of_models), None):
        msg = (
            f"The voter {voter!r} of {cast.source!r} has the name of a model: this rests on "
            "labels of people, never of models. Leave its labels out with --where."
        )
        raise DataError(msg)


def _answered(given: Rows, role: str) -> tuple[str, ...]:
    """Give the names that the endpoint gave for what it answered with."""
    names = {name for one in given.only(given.read).used(role) for name in one.split(", ")}
    return tuple(sorted(names - {SETTLED}))


def _only_one(given: Rows, role: str) -> str:
    names = given.used(role)
    if len(names) > 1:
        msg = (
            f"A licence is for one {role}, and the verdicts are by {names[0]!r}, {names[1]!r}"
            f'{" and others" if len(names) > 2 else ""}: choose by --where "{role} = '
            f"'{names[0]}'\"."
        )
        raise DataError(msg)
    return names[0] if names else ""


def _in_categories(aligned: Aligned, by: str | None) -> tuple[Aligned, tuple[str, ...]]:
    """Keep the categories with enough labelled prompts; all rows where there are no categories."""
    if by is None or (by == PAIR and not any("by" in rows.names for rows in aligned.sources)):
        return aligned, ()
    names, values = by_values(aligned, by)
    groups = parted(aligned, by)
    prompts = {
        name: max(shared_by(part, judge).items.n_prompts for judge in part.judges)
        for name, part in groups.items()
    }
    enough = [name for name in names if prompts.get(name, 0) >= MIN_PROMPTS]
    if not enough:
        msg = f"No {by} has {MIN_PROMPTS} prompts with a vote and a verdict: drop --by {by}."
        raise DataError(msg)
    masks = [in_group(values, aligned.item, names.index(name)) for name in enough]
    ours, theirs = (np.any(part, axis=0) for part in zip(*masks, strict=True))
    return aligned.only(ours, theirs), tuple(enough)


def hash_of(cast: Rows) -> str:
    """Give the SHA-256 of votes: who said what on which two models' answers to which prompt."""
    roles = [
        r for r in ("item", "battle", "prompt", *of_sides("model"), "voter") if r in cast.names
    ]
    columns = [cast.named(role).tolist() for role in roles]
    digest = hashlib.sha256(json.dumps(roles).encode())
    for *names, label in zip(*columns, cast.label.tolist(), strict=True):
        digest.update(json.dumps([*names, label]).encode())
    return digest.hexdigest()


def labelled(data: StudyData, judge: JudgeVerdicts, signal: Kind) -> Compared:
    """Give the votes on items with a verdict, in the order of their source.

    The signal is from -1 to 1. Marks are on the scale of their file: between files only the side
    that they prefer compares.
    """
    verdicts, n = judge.verdicts, data.items.n
    by_label = signal in ("marks", "verdicts")
    value = verdicts.label.astype(np.float64) if by_label else 2 * verdicts.probability - 1
    score = verdicts.mean((verdicts.label + 1) / 2, n)
    votes = data.people.only(~np.isnan(score[data.people.item]))
    return Compared.of(data.items, votes, verdicts.mean(value, n), score)


def graded(
    data: StudyData, judge: JudgeVerdicts, rows: Compared, margin: float, *, known: bool
) -> tuple[Graded, ...]:
    """Grade every model, at `ERROR` over all of them together.

    Parameters
    ----------
    known : bool
        Whether votes say who cast them; if not, intervals allow for prompts alone.
    """
    by_model = []
    for model, (name, outside) in enumerate(
        zip(data.items.models, _outside(data, judge).tolist(), strict=True)
    ):
        own = rows.only(rows.has(model))
        n, prompts = len(own.score), len(np.unique(own.prompt))
        shell = Graded(
            name=name,
            grade="NOT GRADED",
            error=None,
            lower=None,
            upper=None,
            votes=n,
            prompts=prompts,
            outside=outside,
            why=_too_little(own, n, prompts, outside, known),
        )
        by_model.append((np.where(own.pairs[:, 0] == model, 1, -1), own, shell))
    alpha = ERROR / max(sum(not shell.why for _, _, shell in by_model), 1)
    return tuple(
        shell
        if shell.why
        else _graded(shell, side * (own.judge - own.score), own, alpha, margin, known)
        for side, own, shell in by_model
    )


def _outside(data: StudyData, judge: JudgeVerdicts) -> Floats:
    """Give the share of each model's scores that no labelled score reaches, from either side."""
    size = np.abs(2 * judge.verdicts.probability - 1)
    on_labelled = np.isin(judge.verdicts.item, data.people.item)
    beyond = (
        size > np.max(size[on_labelled], initial=0.0, where=~np.isnan(size[on_labelled])) + 1e-9
    )
    pairs = data.items.pairs[judge.verdicts.item]
    k = len(data.items.models)
    n = sum(np.bincount(side, minlength=k) for side in pairs.T)
    out = sum(np.bincount(side, beyond, k) for side in pairs.T)
    return np.asarray(out / np.maximum(n, 1))


def _too_little(own: Compared, n: int, prompts: int, outside: float, known: bool) -> str:
    """Say why a model cannot be graded; nothing if it can."""
    if n < FEWEST_VOTES or prompts < MIN_PROMPTS:
        return (
            f"for it has {plural(n, 'label')} on {plural(prompts, 'prompt')} and it takes "
            f"{FEWEST_VOTES} on {MIN_PROMPTS}"
        )
    if outside >= OUTSIDE:
        return (
            f"for {100 * outside:.0f} % of the judge's scores of it lie outside the labelled range"
        )
    if known and _effective(own.rater) < FEWEST_PEOPLE:
        return "for its labels are of fewer than three people who are about equally busy"
    return ""


def _graded(
    shell: Graded, off: Floats, own: Compared, alpha: float, margin: float, known: bool
) -> Graded:
    lower, upper = (100 * end for end in _ends(off, own, alpha, known=known))
    judged = replace(shell, error=100 * float(off.mean()), lower=lower, upper=upper)
    return replace(judged, grade=grade_of(judged, margin))


def _ends(off: Floats, own: Compared, alpha: float, *, known: bool) -> tuple[float, float]:
    """Return both ends of an interval of a mean, each wrong with probability ``alpha``."""
    mean, n, level = float(off.mean()), len(off), 1 - 2 * alpha
    rater = own.rater if known else None
    error = float(np.sqrt(variance_of_sum((off - mean) / n, own.prompt, rater)))
    if error < 1e-9:  # all are alike, which says nothing of other prompts
        _, weight = np.unique(own.prompt, return_counts=True)
        lower, upper = _RANGE.opened(mean, weight[:, None].astype(np.float64), level)
        assert lower is not None
        assert upper is not None
        return lower, upper
    clusters = min(map(_effective, [own.prompt, *([own.rater] if known else [])]))
    half = quantile(level, clusters - 1) * error
    return mean - half, mean + half


def _effective(cluster: Ints) -> float:
    _, size = np.unique(cluster, return_counts=True)
    return float(size.sum() ** 2 / (size**2).sum())


def reference(rows: Compared, *, known: bool) -> Reference | None:
    """Say how often the judge agrees with people, by how sure it is; None of too few votes."""
    if len(rows.score) < FEWEST_WATCHED:
        return None
    edges = _edges(rows.size)
    kind = np.searchsorted(edges, rows.size, side="right")
    n = np.bincount(kind, minlength=len(edges) + 1).astype(np.float64)
    agreement = np.bincount(kind, rows.agreement, len(n)) / n
    rest = rows.agreement - agreement[kind]
    spread = (np.bincount(kind, rest**2, len(n)) + 1) / n  # one more vote that is wholly off
    in_errors = rest / np.sqrt(spread[kind])
    of_voter = _correlation(in_errors, rows.rater, rows.prompt) if known else 0.0
    of_prompt = _correlation(in_errors, rows.prompt, rows.rater)
    covariance = np.diag(n)
    for cluster, correlation in ((rows.rater, of_voter), (rows.prompt, of_prompt)):
        covariance += correlation * _together(cluster, kind, len(n))
    error = np.sqrt(spread) / n
    covariance *= error[:, None] * error
    return Reference(
        edges=tuple(edges.tolist()),
        agreement=tuple(agreement.tolist()),
        variance=tuple(np.minimum(spread, 1.0).tolist()),
        votes=tuple(map(int, n)),
        covariance=tuple(map(tuple, covariance.tolist())),
        of_voter=of_voter,
        of_prompt=of_prompt,
    )


def _edges(size: Floats) -> Floats:
    """Part verdicts into thirds by how sure they are, as far as each part has enough votes."""
    edges = np.unique(np.quantile(size, [1 / 3, 2 / 3]))
    for edge in edges.tolist():
        kind = np.searchsorted(edges, size, side="right")
        if (np.bincount(kind, minlength=len(edges) + 1) < FEWEST_OF_A_KIND).any():
            edges = edges[edges != edge]
    return np.asarray(edges)


def _correlation(rest: Floats, cluster: Ints, other: Ints) -> float:
    """Estimate the correlation within a cluster from its pairs that have not the other in common.

    Where there are too few pairs to tell, votes of a cluster are taken to be one.
    """
    _, cell = np.unique(np.column_stack([cluster, other]), axis=0, return_inverse=True)
    squares, pairs = 0.0, 0.0
    for sign, code in ((1, np.unique(cluster, return_inverse=True)[1]), (-1, cell.ravel())):
        squares += sign * float((np.bincount(code, rest) ** 2).sum())
        pairs += sign * float((np.bincount(code) ** 2).sum())
    return float(np.clip(squares / pairs, 0, 1)) if pairs >= 2 * FEWEST_OF_A_KIND else 1.0


def _together(cluster: Ints, kind: Ints, k: int) -> Floats:
    """Count the pairs of different votes in one cluster, by the kinds of both."""
    _, code = np.unique(cluster, return_inverse=True)
    table = np.zeros((int(code.max()) + 1, k))
    np.add.at(table, (code, kind), 1)
    return np.asarray(table.T @ table - np.diag(table.sum(axis=0)))
