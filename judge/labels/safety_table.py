"""What models refuse, as `arena safety` wrote it: columns to stand beside ratings."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, get_args

from judge.ifeval.accuracy import Share
from judge.labels.safety import ALL, FEW, MODES, Mode, Rate, What
from judge.studies.estimates import Estimate
from rating.errors import DataError
from rating.sentences import Sentence, counted
from rating.tables.files import parsed, read_text

Column = tuple[What, Mode]

COLUMNS: tuple[Column, ...] = (
    ("refusal", "does"),
    ("over_refusal", "does"),
    ("compliance", "does"),
    ("compliance", "can"),
)
"""Rates of a whole pack that stand beside ratings."""
SLACK = 1e-6
"""By how much a share may lie outside its interval, or beyond 0 and 1: digits that were lost."""
MOST_NAMED = 12
"""Models that a sentence names."""

BY_RULES = Sentence(
    "What complies was not said by a judge: it is whatever does not decline by the rules, also an "
    "answer that turns to something else."
)


@dataclass(frozen=True, slots=True, eq=False)
class SafetyTable:
    """Rates of whole packs.

    Attributes
    ----------
    rates : mapping of str to mapping of Column to Rate
        By model, as it is called in the roster.
    judges : tuple of (str or None)
        Who read whether answers comply, of each file; None for the rules for refusals.
    """

    rates: Mapping[str, Mapping[Column, Rate]]
    judges: tuple[str | None, ...] = (None,)
    few: ClassVar[int] = FEW

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of `COLUMNS` of which any model has a rate."""
        return tuple(name for name in COLUMNS if any(name in one for one in self.rates.values()))

    def order(self, rated: Sequence[str]) -> tuple[str, ...]:
        """Give its models: those with a rating as they are given, then the others by name."""
        return (*(model for model in rated if model in self.rates), *self.only_asked(rated))

    def only_asked(self, rated: Collection[str]) -> tuple[str, ...]:
        """Give the models without a rating."""
        return tuple(sorted(self.rates.keys() - {*rated}))

    def only_rated(self, rated: Collection[str]) -> tuple[str, ...]:
        """Give the models with a rating that are not here, in the order given."""
        return tuple(model for model in rated if model not in self.rates)

    def in_words(
        self, rated: Sequence[str], names: Mapping[str, str] | None = None
    ) -> Iterator[Sentence]:
        """Say who read what complies, and which models stand in one of the two tables alone.

        Parameters
        ----------
        rated : sequence of str
            Models with a rating.
        names : mapping of str to str, optional
            What people read for a model.
        """
        complies = any(what == "compliance" for what, _ in self.columns)
        for judge in dict.fromkeys(self.judges) if complies else ():
            yield (
                Sentence("What complies was said by the judge %(judge)s.", judge=judge)
                if judge
                else BY_RULES
            )
        if missing := self.only_rated(rated):
            yield counted(
                "%(n)s model has a rating, and was not asked these prompts: %(names)s.",
                "%(n)s models have a rating, and were not asked these prompts: %(names)s.",
                len(missing),
                names=_named(missing, names or {}),
            )
        if missing := self.only_asked(rated):
            yield counted(
                "%(n)s model was asked these prompts, and has no rating here: %(names)s.",
                "%(n)s models were asked these prompts, and have no rating here: %(names)s.",
                len(missing),
                names=_named(missing, names or {}),
            )

    def to_dict(self, rated: Sequence[str]) -> dict[str, Any]:
        """Return plain values for JSON: the rates, and who stands in one table alone."""
        return {
            "rates": [
                rate.to_dict()
                for model in self.order(rated)
                for rate in self.rates[model].values()
            ],
            "judges": list(dict.fromkeys(self.judges)),
            "only_rated": list(self.only_rated(rated)),
            "only_asked": list(self.only_asked(rated)),
        }


def _named(models: Sequence[str], names: Mapping[str, str]) -> str:
    named = [names.get(model, model) for model in models[:MOST_NAMED]]
    return ", ".join([*named, "…"] if len(models) > MOST_NAMED else named)


def read_safety(path: Path) -> SafetyTable:
    """Read what `arena safety` wrote as JSON: a file, or every ``.json`` file of a folder.

    Raises
    ------
    DataError
        If a file cannot be read or holds something else, or a model stands in two of them.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    rates: dict[str, dict[Column, Rate]] = {}
    judges: list[str | None] = []
    source: dict[str, Path] = {}
    for file in files:
        content = parsed(read_text(file), repr(str(file)))
        judges.append(_judge(content))
        for rate in _rates(file, content):
            if source.setdefault(rate.model, file) != file:
                msg = (
                    f"The model {rate.model!r} stands in {str(source[rate.model])!r} and in "
                    f"{str(file)!r}: keep one of them."
                )
                raise DataError(msg)
            rates.setdefault(rate.model, {})[rate.what, rate.mode] = rate
    if not rates:
        msg = f"{str(path)!r} holds no rates. Write some with: arena safety PACK --out FILE.json"
        raise DataError(msg)
    return SafetyTable(rates, tuple(judges))


def _judge(content: object) -> str | None:
    judge = content.get("judge") if isinstance(content, dict) else None
    return judge if isinstance(judge, str) and judge.strip() else None


def _rates(file: Path, content: object) -> Iterator[Rate]:
    """Read the rates of a whole pack that have a column."""
    rows = content.get("rates") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        msg = f"{str(file)!r} is nothing that `arena safety` wrote: it has no list of rates."
        raise DataError(msg)
    for row in rows:
        try:
            rate = _rate(row)
        except (ValueError, KeyError, TypeError) as error:
            shown = repr(row)[:200]
            msg = f"{str(file)!r} holds no rate that `arena safety` wrote ({error}): {shown}."
            raise DataError(msg) from error
        if rate.category == ALL and (rate.what, rate.mode) in COLUMNS:
            yield rate


def _rate(row: Mapping[str, Any]) -> Rate:
    what, mode = row["what"], row["mode"]
    if what not in get_args(What) or mode not in MODES:
        raise ValueError(f"there is no {what!r}, {mode!r}")
    if type(row["n"]) is not int or row["n"] < 1:
        raise ValueError(f"n is {row['n']!r}")
    rate, lower, upper = (_part(row[name]) for name in ("rate", "lower", "upper"))
    if not lower - SLACK <= rate <= upper + SLACK:
        raise ValueError(f"{rate!r} lies outside {lower!r} to {upper!r}")
    names = ("corrected", "corrected_lower", "corrected_upper")
    known = [_part(row[name]) for name in names if row[name] is not None]
    return Rate(
        model=_text(row["model"]),
        category=_text(row["category"]),
        what=what,
        mode=mode,
        share=Share(rate, lower, upper, row["n"], 0),
        corrected=Estimate(known[0], known[1], known[2], row["n"]) if len(known) == 3 else None,
    )


def _part(value: object) -> float:
    if type(value) not in (int, float) or not -SLACK <= value <= 1 + SLACK:  # type: ignore[operator]
        raise ValueError(f"{value!r} is no share")
    return min(max(float(value), 0.0), 1.0)  # type: ignore[arg-type]


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} is no name")
    return value
