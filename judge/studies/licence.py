"""A judge's licence as a file: what it binds, and which verdicts count under it."""

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from judge.methods import FileMethod
from judge.studies.estimates import minus, plural
from judge.studies.rows import NAMED
from judge.studies.soft_verdicts import Kind
from judge.tables.annotations import Annotations
from judge.tables.cases import NamedCase
from judge.verdict import SETTLED
from rating.errors import DataError
from rating.outcome import of_sides
from rating.tables.files import parsed_toml, read_text
from rating.typing import Bools

Grade = Literal["PASS", "FAIL", "INCONCLUSIVE", "NOT GRADED"]
VERSION = 1
"""Of the file's keys."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """How a judge stands to people on one model.

    Attributes
    ----------
    error : float or None
        Win rate of the model by the judge less that by people, on the same votes: points of a
        per cent. None where not graded, as its ends.
    lower, upper : float or None
        Both ends hold together for all models that were graded, wrong in at most 5 % of licences
        on either side.
    votes, prompts : int
        Labels of people behind it.
    outside : float
        Share of the judge's scores of the model that no labelled score reaches.
    why : str
        Why it was not graded; empty where it was.
    """

    name: str
    grade: Grade
    error: float | None
    lower: float | None
    upper: float | None
    votes: int
    prompts: int
    outside: float
    why: str = ""

    def sentence(self, margin: float) -> str:
        """Say what the grade is of, in a sentence."""
        if self.error is None or self.lower is None or self.upper is None:
            return f"{self.name}: not graded, {self.why}."
        lies = {
            "PASS": f"within the margin of {margin:g} points",
            "FAIL": f"off by more than the margin of {margin:g} points",
        }.get(self.grade, f"not shown to lie within {margin:g} points, nor beyond")
        ends = f"{self.lower:+.1f} to {self.upper:+.1f}"
        return minus(
            f"{self.name}: its win rate by the judge is {self.error:+.1f} points ({ends}) from "
            f"that by people, {lies}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """How often a judge agreed with people when it was licensed, on pairs of passed models.

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

    edges: tuple[float, ...]
    agreement: tuple[float, ...]
    variance: tuple[float, ...]
    votes: tuple[int, ...]
    covariance: tuple[tuple[float, ...], ...]
    of_voter: float
    of_prompt: float

    @property
    def mean(self) -> float:
        """Agreement over all kinds, as they lay."""
        return float(np.average(self.agreement, weights=self.votes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """Where a judge may stand in for people, until when, and on how many labels of people.

    Attributes
    ----------
    margin : float
        Points of a per cent that a win rate by the judge may lie off people's; declared before.
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

    judge: str
    made: date
    until: date
    margin: float
    votes_a_year: int
    votes_sha256: str
    method: str
    templates: tuple[str, ...]
    resolved_models: tuple[str, ...]
    fingerprints: tuple[str, ...]
    signal: Kind
    votes: int
    people: int | None
    items: int
    prompts: int
    column: str | None
    categories: tuple[str, ...]
    models: tuple[Graded, ...]
    reference: Reference | None

    @property
    def passed(self) -> tuple[str, ...]:
        """The models that it may judge."""
        return tuple(model.name for model in self.models if model.grade == "PASS")

    @property
    def headline(self) -> str:
        """What the licence allows, in a sentence."""
        if not self.passed:
            return "It may stand in for people for no model."
        where = f" on prompts of {self.column} {', '.join(self.categories)}" if self.column else ""
        how = f", asked by {self.method}" if self.method else ""
        return (
            f"It may stand in for people for {', '.join(self.passed)}{where}{how}, until "
            f"{self.until.isoformat()}, on {plural(self.votes, 'label')} of people."
        )

    def expired(self, today: date) -> str:
        """Say that the licence is over; nothing if it is not."""
        if today <= self.until:
            return ""
        return (
            f"The licence of {self.judge} expired on {self.until.isoformat()}: nothing counts "
            "under it. Grade the judge anew with arena study judge --licence."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain = asdict(self)
        plain |= {"made": self.made.isoformat(), "until": self.until.isoformat()}
        models = [asdict(x) | {"sentence": x.sentence(self.margin)} for x in self.models]
        return plain | {"models": models, "passed": list(self.passed), "headline": self.headline}


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
        raise DataError(f"No verdict of {data.source!r} counts under the licence. {sentences[0]}")
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
        raise DataError(f"No verdict of this run would count under the licence. {sentences[0]}")
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
        return f"{number}: the licence does not pass the model {value!r} ({grade})."
    of = f"the {what} {value!r}" if value else f"no {what} is named"
    if what == "category":
        return f"{number}: {of}, which the licence is not for."
    return f"{number}: {of}, which is not the licence's."


def as_toml(licence: Licence) -> str:
    """Write a licence as TOML, which `read_licence` reads back to the same value."""
    plain = asdict(licence)
    models, reference = plain.pop("models"), plain.pop("reference")
    blocks = ["# Where a judge may stand in for people. Written by arena study judge --licence."]
    blocks.append("\n".join(_lines({"version": VERSION, **plain})))
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
    table = parsed_toml(read_text(path), f"The licence {str(path)!r}")
    keys = _Keys(str(path), "", table)
    version = keys.whole("version", 1)
    if version != VERSION:
        raise keys.wrong("version", version, f"{VERSION}, which this arena reads")
    licence = Licence(
        judge=keys.text("judge"),
        made=keys.day("made"),
        until=keys.day("until"),
        margin=keys.number("margin", 0, 100),
        votes_a_year=keys.whole("votes_a_year", 1),
        votes_sha256=keys.hash("votes_sha256"),
        method=keys.text("method", empty=True),
        templates=keys.texts("templates"),
        resolved_models=keys.texts("resolved_models"),
        fingerprints=keys.texts("fingerprints"),
        signal=keys.one_of("signal", get_args(Kind)),
        votes=keys.whole("votes", 1),
        people=keys.whole("people", 1) if "people" in table else None,
        items=keys.whole("items", 1),
        prompts=keys.whole("prompts", 1),
        column=keys.text("column") if "column" in table else None,
        categories=keys.texts("categories"),
        models=tuple(map(_graded, keys.tables("models"))),
        reference=_reference(keys.table("reference")) if "reference" in table else None,
    )
    keys.end()
    _agree(keys, licence)
    return licence


def _graded(keys: "_Keys") -> Graded:
    ends = ("error", "lower", "upper")
    error, lower, upper = (
        keys.number(end, -1000, 1000) if end in keys.table_of else None for end in ends
    )
    graded = Graded(
        name=keys.text("name"),
        grade=keys.one_of("grade", get_args(Grade)),
        error=error,
        lower=lower,
        upper=upper,
        votes=keys.whole("votes", 0),
        prompts=keys.whole("prompts", 0),
        outside=keys.number("outside", 0, 1),
        why=keys.text("why", empty=True),
    )
    keys.end()
    return graded


def _reference(keys: "_Keys") -> Reference:
    agreement = keys.numbers("agreement", 0, 1)
    k = len(agreement)
    reference = Reference(
        edges=keys.numbers("edges", 0, math.inf, k - 1),
        agreement=agreement,
        variance=keys.numbers("variance", 1e-9, 1, k),
        votes=tuple(map(int, keys.numbers("votes", 1, math.inf, k))),
        covariance=keys.square("covariance", k),
        of_voter=keys.number("of_voter", 0, 1),
        of_prompt=keys.number("of_prompt", 0, 1),
    )
    keys.end()
    return reference


def _agree(keys: "_Keys", licence: Licence) -> None:
    """Raise `DataError` where keys contradict each other: a grade goes by margin and interval."""
    if licence.until < licence.made:
        raise keys.wrong("until", licence.until.isoformat(), "a day after made")
    if licence.column is not None and not licence.categories:
        raise keys.wrong("categories", "[]", f"the values of the column {licence.column!r}")
    for model in licence.models:
        expected = grade_of(model, licence.margin)
        if model.grade != expected:
            known = f"{expected}, by its interval and the margin of {licence.margin:g}"
            raise keys.wrong(f"grade of {model.name!r}", model.grade, known)


def grade_of(model: Graded, margin: float) -> Grade:
    """Grade by the interval: within the margin, beyond it, or neither.

    >>> at = Graded(name="x", grade="PASS", error=2.0, lower=-3.0, upper=7.0, votes=400,
    ...             prompts=90, outside=0.0)
    >>> grade_of(at, 8), grade_of(at, 5)
    ('PASS', 'INCONCLUSIVE')
    """
    if model.why or model.lower is None or model.upper is None:
        return "NOT GRADED"
    if -margin < model.lower and model.upper < margin:
        return "PASS"
    return "FAIL" if model.lower > margin or model.upper < -margin else "INCONCLUSIVE"


@dataclass(slots=True)
class _Keys:
    """Takes the keys of a table one by one; what is left at the end is unknown."""

    path: str
    of: str
    table_of: dict[str, Any]

    def wrong(self, name: str, value: object, wanted: str) -> DataError:
        return DataError(f"{self.of}{name} of {self.path!r} is {value!r}: give {wanted}.")

    def take(self, name: str) -> Any:
        if name not in self.table_of:
            raise DataError(f"{self.path!r} has no {self.of}{name}: it is no whole licence.")
        return self.table_of.pop(name)

    def end(self) -> None:
        if self.table_of:
            name, value = next(iter(self.table_of.items()))
            msg = f"{self.path!r} has {self.of}{name} = {value!r}, which no licence has: drop it."
            raise DataError(msg)

    def text(self, name: str, *, empty: bool = False) -> str:
        value = self.take(name)
        if not isinstance(value, str) or not (empty or value.strip()):
            raise self.wrong(name, value, "a text" if empty else "a name")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.take(name)
        if not isinstance(value, list) or not all(isinstance(x, str) and x for x in value):
            raise self.wrong(name, value, "a list of names")
        return tuple(value)

    def one_of(self, name: str, choices: Sequence[T]) -> T:
        value = self.take(name)
        if value not in choices:
            raise self.wrong(name, value, f"one of {', '.join(map(str, choices))}")
        return choices[choices.index(value)]

    def day(self, name: str) -> date:
        value = self.take(name)
        if type(value) is not date:
            raise self.wrong(name, value, "a day, such as 2027-01-31")
        return value

    def hash(self, name: str) -> str:
        value = self.take(name)
        if not isinstance(value, str) or len(value) != 64 or set(value) - set("0123456789abcdef"):
            raise self.wrong(name, value, "64 hexadecimal digits")
        return value

    def whole(self, name: str, least: int) -> int:
        value = self.take(name)
        if type(value) is not int or value < least:
            raise self.wrong(name, value, f"a whole number from {least}")
        return value

    def number(self, name: str, low: float, high: float) -> float:
        value = self.take(name)
        if not _between(value, low, high):
            raise self.wrong(name, value, f"a number from {low:g} to {high:g}")
        return float(value)

    def numbers(
        self, name: str, low: float, high: float, n: int | None = None
    ) -> tuple[float, ...]:
        value = self.take(name)
        length = f"{n} numbers" if n is not None else "numbers"
        if not isinstance(value, list) or not all(_between(x, low, high) for x in value):
            raise self.wrong(name, value, f"{length} from {low:g} to {high:g}")
        if (n is not None and len(value) != n) or (n is None and not value):
            raise self.wrong(name, value, length)
        return tuple(map(float, value))

    def square(self, name: str, n: int) -> tuple[tuple[float, ...], ...]:
        """Take a covariance, none of whose entries is negative."""
        value = self.take(name)
        rows = value if isinstance(value, list) else []
        whole = [row for row in rows if isinstance(row, list) and len(row) == n]
        if len(rows) != n or whole != rows or not all(_between(x, 0, 1) for r in rows for x in r):
            raise self.wrong(name, value, f"{n} rows of {n} numbers from 0 to 1")
        if not np.allclose(rows, np.transpose(rows), rtol=1e-6, atol=0):
            raise self.wrong(name, value, "rows that equal the columns")
        return tuple(tuple(map(float, row)) for row in rows)

    def table(self, name: str) -> "_Keys":
        value = self.take(name)
        if not isinstance(value, dict):
            raise self.wrong(name, value, f"a table [{name}]")
        return _Keys(self.path, f"{name}.", value)

    def tables(self, name: str) -> list["_Keys"]:
        value = self.take(name)
        if not isinstance(value, list) or not value:
            raise self.wrong(name, value, f"a table [[{name}]] for each model")
        if not all(isinstance(row, dict) for row in value):
            raise self.wrong(name, value, f"tables [[{name}]]")
        return [_Keys(self.path, f"{name}[{i}].", row) for i, row in enumerate(value, 1)]


def _between(value: object, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
