"""Validation certificates of a judge: where it may replace people, and which verdicts count.

`grant` grades a judge, model by model, against labels of people, and makes a `Licence`; `as_toml`
and `read_licence` write and read it. `under`, `counted` and `foreseen` tell which verdicts count
under it.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    NonNegativeInt,
    PositiveInt,
    Strict,
    ValidationError,
    model_validator,
)

from judge.methods import FileMethod
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
from judge.studies.estimates import FEWEST_PEOPLE, MeanOfPrompts, minus
from judge.studies.gates import MIN_PROMPTS
from judge.studies.newcomer import Compared, Kind, variance_of_sum, with_signal
from judge.studies.options import Terms
from judge.studies.rows import NAMED, Rows, Source, read_rows
from judge.tables.annotations import Annotations
from judge.tables.cases import NamedCase
from judge.verdict import SETTLED
from rating.errors import DataError
from rating.leave_out import quantile
from rating.outcome import of_sides
from rating.sentences import plural
from rating.tables.files import parsed_toml, read_text
from rating.typing import Bools, Floats, Ints

# The certificate and its file


Grade = Literal["PASS", "FAIL", "INCONCLUSIVE", "NOT GRADED"]
Name = Annotated[str, Field(pattern=r"\S")]
Share = Annotated[float, Field(ge=0, le=1)]
Names = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Strict(False)]
Shares = Annotated[tuple[Share, ...], Strict(False)]


class _Table(BaseModel):
    """A table of the file: every key of its type and no other, except lists for tuples."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Graded(_Table):
    """How a judge stands to people on one model.

    Attributes
    ----------
    error : float or None
        Win rate of the model by the judge less that by people, on the same votes: points of a
        per cent. None where not graded, as its ends.
    lower, upper : float or None
        Both ends hold together for all models that were graded, wrong in at most 5% of licences
        on either side.
    votes, prompts : int
        Labels of people behind it.
    outside : float
        Share of the judge's scores of the model that no labelled score reaches.
    why : str
        Why it was not graded; empty where it was.
    """

    name: Name
    grade: Grade
    error: FiniteFloat | None = None
    lower: FiniteFloat | None = None
    upper: FiniteFloat | None = None
    votes: NonNegativeInt
    prompts: NonNegativeInt
    outside: Share
    why: str = ""

    def sentence(self, margin: float) -> str:
        """Describe the grade in a sentence."""
        if self.error is None or self.lower is None or self.upper is None:
            return f"{self.name}: not graded, {self.why}."
        lies = {
            "PASS": f"within the margin of {margin:g} points",
            "FAIL": f"outside the margin of {margin:g} points",
        }.get(self.grade, f"inconclusive for a margin of {margin:g} points")
        ends = f"{self.lower:+z.1f} to {self.upper:+z.1f}"
        return minus(
            f"{self.name}: the win rate by the judge differs from the win rate by people by "
            f"{self.error:+z.1f} points ({ends}): {lies}."
        )


class Reference(_Table):
    """How often a judge agreed with people when it was certified, on pairs of passed models.

    Attributes
    ----------
    edges : tuple of float
        Where one kind of verdict ends and the next, surer one begins: sizes of the signal.
    agreement, variance : tuple of float
        By kind: mean and variance of one vote's agreement, a tie half.
    votes : tuple of int
        By kind.
    covariance : tuple of tuple of float
        Of the means in ``agreement``.
    of_voter, of_prompt : float
        Correlation of two agreements of one voter, and of one prompt.
    """

    edges: Annotated[tuple[Annotated[float, Field(ge=0)], ...], Strict(False)]
    agreement: Annotated[Shares, Field(min_length=1)]
    variance: Annotated[tuple[Annotated[float, Field(ge=1e-9, le=1)], ...], Strict(False)]
    votes: Annotated[tuple[PositiveInt, ...], Strict(False)]
    covariance: Annotated[tuple[Shares, ...], Strict(False)]
    of_voter: Share
    of_prompt: Share

    @model_validator(mode="after")
    def _fits(self) -> Self:
        k = len(self.agreement)
        for name, n in (("edges", k - 1), ("variance", k), ("votes", k), ("covariance", k)):
            if len(values := getattr(self, name)) != n:
                raise ValueError(f"{name} is {values!r}: give {n} numbers, for {k} of agreement")
        rows = self.covariance
        if {*map(len, rows)} != {k} or not np.allclose(
            rows, np.transpose(rows), rtol=1e-6, atol=0
        ):
            raise ValueError(f"covariance is {rows!r}: give {k} rows that equal the columns")
        return self

    @property
    def mean(self) -> float:
        """Agreement over all kinds, as they lay."""
        return float(np.average(self.agreement, weights=self.votes))


class Licence(_Table):
    """Where a judge may replace people, until when, and on how many labels of people.

    Attributes
    ----------
    margin : float
        Percentage points that a win rate by the judge may lie off people's; declared before.
    votes_a_year : int
        Votes of people that a watch expects in a year.
    votes_sha256 : str
        Of the labels, as they were read.
    method : str
        Empty where the verdicts did not name it; as ``templates``, ``resolved_models`` and
        ``fingerprints``, the hashes and names that they gave.
    signal : {"probabilities", "marks", "confidence", "verdicts"}
        What the judge gave.
    people : int or None
        How many voters; None where the votes do not say.
    column : str or None
        Column of the categories that the licence is for; None where it is for prompts like those
        of the labels, whatever they are.
    reference : Reference or None
        What a watch compares with; None where too few votes are on pairs of passed models.
    """

    version: Literal[1]
    judge: Name
    made: date
    until: date
    margin: Annotated[float, Field(ge=0, le=100)]
    votes_a_year: PositiveInt
    votes_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    method: str
    templates: Names
    resolved_models: Names
    fingerprints: Names
    signal: Kind
    votes: PositiveInt
    people: PositiveInt | None = None
    items: PositiveInt
    prompts: PositiveInt
    column: Name | None = None
    categories: Names
    models: Annotated[tuple[Graded, ...], Field(min_length=1), Strict(False)]
    reference: Reference | None = None

    @property
    def passed(self) -> tuple[str, ...]:
        """The models that it may judge."""
        return tuple(model.name for model in self.models if model.grade == "PASS")

    @property
    def headline(self) -> str:
        """What the licence allows, in a sentence."""
        if not self.passed:
            return "The judge may replace human raters for no model."
        where = f" for {self.column} {', '.join(self.categories)}" if self.column else ""
        how = f", with the method {self.method}" if self.method else ""
        return (
            f"The judge may replace human raters for {', '.join(self.passed)}{where}{how}, until "
            f"{self.until.isoformat()}, based on {plural(self.votes, 'label')} by people."
        )

    def expired(self, today: date) -> str:
        """Say that the licence is over; nothing if it is not."""
        if today <= self.until:
            return ""
        return (
            f"The validation certificate of {self.judge} expired on {self.until.isoformat()}: no "
            "verdict counts under it. Grade the judge again with arena study judge --certificate."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain = self.model_dump(mode="json", exclude={"version"})
        for row, model in zip(plain["models"], self.models, strict=True):
            row["sentence"] = model.sentence(self.margin)
        return plain | {"passed": list(self.passed), "headline": self.headline}


BOUND = {
    "judge": "judge",
    "method": "method",
    "template": "template",
    "resolved": "resolved model",
    "fingerprint": "fingerprint",
    **dict.fromkeys(of_sides("model"), "model"),
    "by": "category",
}
"""Roles of a verdict that a licence binds, and what they are called."""


def counted(
    licence: Licence,
    columns: Mapping[str, Sequence[str | None]],
    n: int,
    roles: Collection[str] = tuple(BOUND),
) -> tuple[Bools, tuple[str, ...]]:
    """Tell which verdicts count under a licence, and name those that do not.

    Parameters
    ----------
    columns : mapping of str to sequence
        By the roles of `BOUND`, one value a verdict; a role that is not there is in no verdict.
    roles : collection of str
        Those that are looked at.

    Returns
    -------
    counts : ndarray of shape (n,), bool
    sentences : tuple of str
        One for each judge, method, template, model or category that is not the licence's.
    """
    counts, others = np.ones(n, dtype=bool), Counter[tuple[str, str]]()
    for role, allowed in _allowed(licence).items():
        if role not in roles:
            continue
        values = columns.get(role, [None] * n)
        fits = np.array([_fits(role, value or "", allowed) for value in values], dtype=bool)
        for row in np.flatnonzero(counts & ~fits).tolist():
            others[BOUND[role], values[row] or ""] += 1
        counts &= fits
    return counts, tuple(_not_counted(licence, *which, k) for which, k in others.items())


def _fits(role: str, value: str, allowed: Sequence[str]) -> bool:
    """Tell whether a name is allowed; of several that answered, all have to be."""
    if role not in ("resolved", "fingerprint"):
        return value in allowed
    return all(name in allowed or name == SETTLED for name in value.split(", "))


def under(licence: Licence, today: date, data: Annotations) -> tuple[Annotations, tuple[str, ...]]:
    """Keep the verdicts of a file that count under a licence, and name the others.

    Raises
    ------
    DataError
        If the licence has expired, or none counts.
    """
    if over := licence.expired(today):
        raise DataError(over)
    names = {role: names[0] for role, names in NAMED.items()} | {"by": licence.column or ""}
    columns = {
        role: [None if value is None else str(value) for value in data.columns[column]]
        for role in BOUND
        if (column := names.get(role, role)) in data.columns
    }
    counts, sentences = counted(licence, columns, data.n)
    if not counts.any():
        raise DataError(f"No verdict of {data.source!r} counts under it. {sentences[0]}")
    return data.taken(counts), sentences


def foreseen(
    licence: Licence, today: date, judge: str, method: FileMethod, cases: Sequence[NamedCase]
) -> tuple[str, ...]:
    """Name the verdicts of a run that would not count under a licence, before they are paid for.

    What answers, and categories, are not known before: `under` looks at them.

    Raises
    ------
    DataError
        If the licence has expired, or none would count.
    """
    if over := licence.expired(today):
        raise DataError(over)
    n = len(cases)
    models = [(*named.models, None) for named in cases]
    columns: dict[str, Sequence[str | None]] = {
        "judge": [judge] * n,
        "method": [method.name] * n,
        "template": [method.template.hash] * n,
        **{role: [one[at] for one in models] for at, role in enumerate(of_sides("model"))},
    }
    counts, sentences = counted(licence, columns, n, columns.keys())
    if not counts.any():
        raise DataError(f"No verdict of this run would count under it. {sentences[0]}")
    return sentences


def _allowed(licence: Licence) -> dict[str, tuple[str, ...]]:
    """Give the names that a verdict may have by role; the empty one where it need have none."""
    allowed = {
        "judge": (licence.judge,),
        "method": (licence.method,),
        "template": licence.templates or ("",),
        "resolved": licence.resolved_models or ("",),
        "fingerprint": licence.fingerprints or ("",),
        **dict.fromkeys(of_sides("model"), licence.passed),
    }
    return allowed | ({} if licence.column is None else {"by": licence.categories})


def _not_counted(licence: Licence, what: str, value: str, n: int) -> str:
    number = f"{plural(n, 'verdict')} {'is' if n == 1 else 'are'} not counted"
    if what == "model":
        grade = next((x.grade for x in licence.models if x.name == value), "NOT GRADED")
        return f"{number}: the validation certificate does not pass the model {value!r} ({grade})."
    of = f"the {what} {value!r}" if value else f"no {what} is named"
    if what == "category":
        return f"{number}: {of}, which the certificate does not cover."
    return f"{number}: {of}, which differs from the certificate."


def as_toml(licence: Licence) -> str:
    """Write a licence as TOML, which `read_licence` reads back to the same value."""
    plain = licence.model_dump()
    models, reference = plain.pop("models"), plain.pop("reference")
    blocks = ["# Where a judge may replace human raters. By arena study judge --certificate."]
    blocks.append("\n".join(_lines(plain)))
    blocks += ["\n".join(("[[models]]", *_lines(model))) for model in models]
    if reference is not None:
        blocks.append("\n".join(("[reference]", *_lines(reference))))
    return "\n\n".join(blocks) + "\n"


def _lines(table: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name} = {_value(value)}" for name, value in table.items() if value is not None)


def _value(value: object) -> str:
    r"""Write a value of TOML.

    >>> _value(("a", 'b"\x7f')), _value(date(2026, 1, 2)), _value(0.5)
    ('["a", "b\\"\\u007f"]', '2026-01-02', '0.5')
    """
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return value.isoformat() if isinstance(value, date) else repr(value)


def read_licence(path: Path) -> Licence:
    """Read a licence, and check it key by key.

    Raises
    ------
    DataError
        If the file cannot be read, a key is missing or unknown, or a value cannot be: it is
        quoted.
    """
    table, of = (
        parsed_toml(read_text(path), f"The validation certificate {str(path)!r}"),
        f"of {str(path)!r}",
    )
    try:
        licence = Licence.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            raise DataError(f"{str(path)!r} has no {name}: it is incomplete.") from None
        if first["type"] == "extra_forbidden":
            msg = f"{str(path)!r} has {name} = {first['input']!r}, which is no key: remove it."
            raise DataError(msg) from None
        value = "" if first["type"] == "value_error" else f" is {first['input']!r}"
        raise DataError(f"{name} {of}{value}: {first['msg']}.") from None
    if licence.until < licence.made:
        raise DataError(f"until {of} is {licence.until.isoformat()!r}: give a day after made.")
    if licence.column is not None and not licence.categories:
        msg = f"categories {of} is []: give the values of the column {licence.column!r}."
        raise DataError(msg)
    for model in licence.models:
        expected = _grade_of(None if model.why else model.lower, model.upper, licence.margin)
        if model.grade != expected:
            raise DataError(
                f"grade of {model.name!r} {of} is {model.grade!r}: give {expected}, by its "
                f"interval and the margin of {licence.margin:g}."
            )
    return licence


def _grade_of(lower: float | None, upper: float | None, margin: float) -> Grade:
    """Grade by the interval: within the margin, beyond it, or neither.

    >>> _grade_of(-3.0, 7.0, 8), _grade_of(-3.0, 7.0, 5)
    ('PASS', 'INCONCLUSIVE')
    """
    if lower is None or upper is None:
        return "NOT GRADED"
    if -margin < lower and upper < margin:
        return "PASS"
    return "FAIL" if lower > margin or upper < -margin else "INCONCLUSIVE"


# Grading


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
    """Grade a judge on each model, and say where its verdicts may replace people.

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
    given, signal = with_signal(read_rows(verdicts, unparsed=True, by=by, marks=True))
    require_people(cast, given)
    aligned, categories = _in_categories(align(cast, given), by)
    (cast, given), data = aligned.sources, study_data(aligned)
    method, template = (_only_one(given, role) for role in ("method", "template"))
    if len(data.judges) != 1:
        names = ", ".join(repr(judge.name) for judge in data.judges)
        msg = f"A certificate covers one judge, and these are {names}: choose by --where."
        raise DataError(msg)
    judge = data.judges[0]
    rows = labelled(data, judge, signal)
    if not len(rows.score):
        raise DataError(f"The judge {judge.name!r} has no parsed verdict on an item with votes.")
    known = data.voters_known
    models = graded(data, judge, rows, terms.margin, known=known)
    passes = np.array([model.grade == "PASS" for model in models])
    watched: Bools = np.all(passes[rows.pairs], axis=1)
    until = terms.until or today + USUAL
    if until < today:
        raise DataError(f"--until {until} is in the past: today is {today}.")
    return Licence(
        version=1,
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
            raise DataError(
                f"The labels of {cast.source!r} are of a model ({role} {names[0]!r}): a "
                "certificate needs labels of people, never of models."
            )
    if SIMULATED in cast.used("voter_kind"):
        raise DataError(
            f"Labels of {cast.source!r} are of voters of the kind {SIMULATED!r}: a certificate "
            "needs labels of people, never of models."
        )
    models = {
        name for rows in (cast, given) for role in of_sides("model") for name in rows.used(role)
    }
    of_models = models | {*given.used("judge")}
    if voter := next((name for name in cast.used("voter") if name in of_models), None):
        raise DataError(
            f"The voter {voter!r} of {cast.source!r} has the name of a model: a certificate needs "
            "labels of people, never of models. Exclude its labels with --where."
        )


def _answered(given: Rows, role: str) -> tuple[str, ...]:
    """Give the names that the endpoint gave for what it answered with."""
    names = {name for one in given.only(given.read).used(role) for name in one.split(", ")}
    return tuple(sorted(names - {SETTLED}))


def _only_one(given: Rows, role: str) -> str:
    names = given.used(role)
    if len(names) > 1:
        raise DataError(
            f"A validation certificate covers one {role}, and the verdicts are by {names[0]!r}, "
            f"{names[1]!r}{(' and others' if len(names) > 2 else '')}: choose one by --where "
            f"\"{role} = '{names[0]}'\"."
        )
    return names[0] if names else ""


def _in_categories(aligned: Aligned, by: str | None) -> tuple[Aligned, tuple[str, ...]]:
    """Keep the categories with enough labelled prompts; all rows where there are no categories."""
    if by is None or (by == PAIR and not any("by" in rows.names for rows in aligned.sources)):
        return aligned, ()
    names, values = by_values(aligned, by)
    prompts = {
        name: max(shared_by(part, judge).items.n_prompts for judge in part.judges)
        for name, part in parted(aligned, by).items()
    }
    enough = [name for name in names if prompts.get(name, 0) >= MIN_PROMPTS]
    if not enough:
        msg = f"No {by} has {MIN_PROMPTS} prompts with a vote and a verdict: omit --by {by}."
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
    return Compared.of(data.items, votes, verdicts.mean(value, n).round(12), score)


def graded(
    data: StudyData, judge: JudgeVerdicts, rows: Compared, margin: float, *, known: bool
) -> tuple[Graded, ...]:
    """Grade every model, at `ERROR` over all of them together.

    Parameters
    ----------
    known : bool
        Whether votes name their voters; if not, intervals allow for prompts alone.
    """
    outside = _outside(data, judge).tolist()
    owned = [rows.only(rows.has(model)) for model in range(len(outside))]
    reasons = [_too_little(*one, known) for one in zip(owned, outside, strict=True)]
    alpha = ERROR / max(reasons.count(""), 1)
    models = []
    for model, (name, own, why) in enumerate(zip(data.items.models, owned, reasons, strict=True)):
        error = lower = upper = None
        if not why:
            off = np.where(own.pairs[:, 0] == model, 1, -1) * (own.judge - own.score)
            error = 100 * float(off.mean())
            lower, upper = (100 * end for end in _ends(off, own, alpha, known=known))
        models.append(
            Graded(
                name=name,
                grade=_grade_of(lower, upper, margin),
                error=error,
                lower=lower,
                upper=upper,
                votes=len(own.score),
                prompts=len(np.unique(own.prompt)),
                outside=outside[model],
                why=why,
            )
        )
    return tuple(models)


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


def _too_little(own: Compared, outside: float, known: bool) -> str:
    """Explain why a model cannot be graded; nothing if it can."""
    n, prompts = len(own.score), len(np.unique(own.prompt))
    if n < FEWEST_VOTES or prompts < MIN_PROMPTS:
        return (
            f"because it has {plural(n, 'label')} on {plural(prompts, 'prompt')} and "
            f"{FEWEST_VOTES} on {MIN_PROMPTS} are needed"
        )
    if outside >= OUTSIDE:
        return f"because {100 * outside:.0f}% of the judge's scores are outside the labelled range"
    if known and _effective(own.rater) < FEWEST_PEOPLE:
        return "because its labels are by fewer than three equally active people"
    return ""


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
    """Return how often the judge agrees with people, by how sure it is; None of too few votes."""
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
