"""Which columns of a table of votes are read, and as what: our names and those of the arenas."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Self

from rating.errors import DataError, LayoutError
from rating.options import BothBad, RateOptions
from rating.outcome import Outcome, of_sides

KNOWN: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in of_sides("model")},
    "winner": ("winner", "outcome"),
    "voter": ("person", "voter", "voter_id", "user", "user_id", "judge_hash"),
    "prompt": ("prompt_id", "question_id", "instruction_id", "prompt"),
    "time": ("ts", "tstamp", "timestamp", "created", "created_at"),
    "probability": ("pair_probability",),
    "repicks": ("repicks",),
    "left_out": ("left_out",),
}
"""Names by which a column is found, the first that is there; Chatbot Arena's are among them."""

REQUIRED = (*of_sides("model"), "winner")
"""Roles without which a row is no vote."""

JUDGES = ("judge", "judge_model", "judge_name")
"""Columns that name the language model that gave a verdict; such a column is never the voter."""

VOTERS = (
    "annotator", "rater", "worker", "evaluator", "participant", "labeler", "labeller", "voter",
    "user", "person", "respondent", "reviewer", "assessor", "completed", "email", "account",
    "visitor", "session", "who", "uid", "ip", "bewerter",
)  # fmt: skip
"""Words in the names of columns that may hold who voted, the likeliest first."""

KINDS = (
    "source", "label_source", "judged_by", "judge_type", "evaluator_type", "evaluator_kind",
    "voter_kind", "voter_type", "annotator_type", "annotator_kind", "rater_type", "rater_kind",
    "is_human",
)  # fmt: skip
"""Columns that may tell the votes of people from the verdicts of language models."""

PEOPLE = (
    "human", "humans", "person", "people", "user", "users", "crowd", "expert", "annotator",
    "worker", "true",
)  # fmt: skip
_MACHINES = "judge|llm|model|machine|ai|auto|automatic|gpt|claude|gemini|llama|qwen|false"
MACHINES = rf"(.*[^a-z])?({_MACHINES})s?([^a-z].*)?"
"""What such a column holds: texts, and a regular expression, in lower case."""

LIKE_A_MODEL = re.compile(
    r"((chat)?gpt|claude|gemini|llama|qwen|mistral|deepseek)-[\w.-]*\d.*", re.I
)
"""What a voter is hardly called, and a language model often."""

LEFT_OUT = "left_out"
"""Column that gives the reason a row does not count."""

LOG2 = "log2:"
"""Before the name of a style that is measured in doublings."""

COUNTS = {f"n_{outcome}": outcome for outcome in Outcome}
"""Columns of a table of pairs, and the outcome that each counts; the last may be missing."""

PAIRS = frozenset(COUNTS) - {"n_both_bad"}

N = "__n"
"""Column of a count; no table of votes has one of this name."""

SAMPLING = "sampling"

UNLABELLED = "(none)"
"""Group of the votes that have no value in the column that parts them."""

ORDERS_OF_A_CASE = {
    "order": "order",
    "status": "status",
    "case": "battle_id",
    "judge": "judge",
    "method": "method",
}
"""Roles and columns of a judge's run that state which rows are of one case, beside the models."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns to read; None finds the column by its `KNOWN` names.

    Attributes
    ----------
    by : str or None
        Column whose values part the votes into groups; there is no known name for it.
    trait : str or None
        Column of true and false: whether a vote was cast as accounts of a coordinated group cast
        theirs (in a burst, in no time). There is no known name for it.
    """

    model_a: str | None = None
    model_b: str | None = None
    winner: str | None = None
    voter: str | None = None
    prompt: str | None = None
    time: str | None = None
    probability: str | None = None
    trait: str | None = None
    by: str | None = None

    @classmethod
    def named(cls, names: Iterable[tuple[str, str]], by: str | None = None) -> Self:
        """Take the names of some roles.

        Raises
        ------
        DataError
            If there is no such role, or it is named twice.

        Examples
        --------
        >>> Columns.named([("voter", "who")]).voter
        'who'
        """
        named: dict[str, str] = {}
        for role, name in names:
            if role not in ROLES:
                msg = f"There is no role {role!r} of a column: choose one of {', '.join(ROLES)}."
                raise DataError(msg)
            if role in named:
                msg = f"The {role} is named twice, {named[role]!r} and {name!r}: drop one."
                raise DataError(msg)
            named[role] = name
        return cls(**named, by=by)

    @property
    def asked(self) -> tuple[str, ...]:
        """Names that were given, of any role."""
        return tuple(filter(None, (getattr(self, one.name) for one in fields(self))))

    def find(self, role: str, there: Sequence[str]) -> str | None:
        """Name the column of a role; None when there is none and none was asked for.

        Raises
        ------
        DataError
            If the column that was asked for is not there.
        """
        asked = getattr(self, role, None)
        if asked is not None:
            return require(asked, there)
        return next((name for name in KNOWN.get(role, ()) if name in there), None)

    def need(self, role: str, there: Sequence[str]) -> str:
        """Name the column of a role that must be there; raises `DataError` otherwise."""
        name = self.find(role, there)
        if name is None:
            names = " or ".join(map(repr, KNOWN.get(role, ()))) or "any"
            msg = (
                f"No column {names} for the {role}; there are {quoted_names(there)}. "
                f"Name the one that holds the {role}, as in --column {role}=NAME."
            )
            if role in REQUIRED:
                raise LayoutError(msg, ("--column", f"{role}=NAME"))
            raise DataError(msg)
        return name


ROLES = tuple(field.name for field in fields(Columns) if field.name != "by")
"""What a column can be named for."""


def words_of(name: str) -> list[str]:
    """Split the name of a column into its words, in lower case.

    >>> words_of("modelA_isBetter2")
    ['model', 'a', 'is', 'better', '2']
    """
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


def like_voters(names: Sequence[str]) -> list[str]:
    """Choose the columns that may hold who voted, by their names."""
    tokens = {name: {*words_of(name)} for name in names}
    others = {"kind", "type", "prompt", "question", "query", "message", "input", "text", "agent"}
    return [name for name, own in tokens.items() if own & {*VOTERS} and not own & others]


def require(name: str, there: Sequence[str]) -> str:
    """Give back the name of a column that is there; raises `DataError` of any other."""
    if name not in there:
        raise DataError(f"There is no column {name!r}; there are {quoted_names(there)}.")
    return name


def quoted_names(names: Sequence[str]) -> str:
    """Name columns in an error."""
    return ", ".join(map(repr, names)) or "none"


def order_columns(there: Sequence[str]) -> dict[str, str]:
    """Name the columns of a judge's run that state which rows are of one case, by role."""
    if "order" not in there:
        return {}
    return {role: name for role, name in ORDERS_OF_A_CASE.items() if name in there}


@dataclass(frozen=True, slots=True)
class Reading:
    """How votes are read.

    Attributes
    ----------
    columns : Columns
        Which column states what, where the names are not the known ones.
    voters, prompts : bool
        Keep who voted, and on what; cells are then counted apart.
    all_prompts : bool
        Refuse votes of which some have no prompt; otherwise prompts are then not known.
    both_bad : {"outcome", "tie", "drop"}
        Both bad as an outcome of its own, as a tie, or excluded and counted.
    weight : str or None
        ``sampling`` for one over the column ``pair_probability``, or the name of a column. With
        ``sampling``, votes whose column ``repicks`` is above 0 are dropped: a model was replaced
        after the draw, and the probability is not that of the pair voted on.
    style : tuple of str
        ``X`` for the columns ``X_a`` and ``X_b``, compared by
        `rating.tables.sources.style_difference`, or for a column ``X`` that is a difference;
        ``log2:X`` for how many times ``X_a`` is ``X_b`` doubled.
    figures : tuple of str
        ``X`` for what was measured on each answer, in the columns ``X_a`` and ``X_b``; those that
        are not there are passed over.
    beside : tuple of str
        Columns of text that are read as they are, where they are there.
    ordered : bool
        Each vote a row, in the order in which they were cast: by time where every vote has one,
        else that of the source. Voters must be known, if they are kept; a ``columns.trait`` is
        read.
    since, until : datetime or None
        The votes cast from ``since`` on and before ``until``.
    half_life_days : float or None
        Votes weigh half for every half-life of age; the newest vote that is used weighs 1.
    """

    columns: Columns = field(default_factory=Columns)
    voters: bool = True
    prompts: bool = False
    all_prompts: bool = False
    both_bad: BothBad = "outcome"
    weight: str | None = None
    style: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    ordered: bool = False
    since: datetime | None = None
    until: datetime | None = None
    half_life_days: float | None = None

    @classmethod
    def of(cls, options: RateOptions) -> Self:
        """Describe how votes are read for a rating with these options."""
        needed = options.cluster in ("prompt", "both")
        return cls(
            columns=Columns.named(options.columns, by=options.by),
            voters=options.interval != "none" or options.cluster in ("voter", "both"),
            prompts=needed or (options.cluster is None and options.interval == "sandwich"),
            all_prompts=needed,
            both_bad=options.both_bad,
            weight=options.weights,
            style=options.style,
            since=options.since,
            until=options.until,
            half_life_days=options.half_life,
        )

    @property
    def needs_time(self) -> bool:
        """Whether it matters when a vote was cast."""
        return any(x is not None for x in (self.since, self.until, self.half_life_days))

    def roles(self, there: Sequence[str], *, by: bool) -> tuple[dict[str, str], dict[str, str]]:
        """Name the columns to read of those that are there: of names and of numbers, by role."""
        columns = self.columns
        pairs = columns.find("winner", there) is None and {*there} >= PAIRS
        texts = {role: columns.need(role, there) for role in of_sides("model")}
        texts["winner"] = "winner" if pairs else columns.need("winner", there)
        optional = {"voter": self.voters, "prompt": self.prompts, "left_out": True}
        for role, wanted in optional.items():
            if wanted and (column := columns.find(role, there)):
                texts[role] = column
        if by:
            texts["by"] = columns.need("by", there)
        texts |= {name: name for name in self.beside if name in there}
        if not pairs and columns.by != "order":
            texts |= order_columns(there)
        numbers = {"n": N} if pairs else {}
        if self.weight == SAMPLING:
            numbers["weight"] = columns.need("probability", there)
            if column := columns.find("repicks", there):
                numbers["repicks"] = column
        elif self.weight is not None:
            numbers["weight"] = require(self.weight, there)
        if self.needs_time:
            numbers["time"] = columns.need("time", there)
        for name in self.style:
            numbers |= _style_columns(name, there)
        for name in self.figures:
            sides = of_sides(name)
            numbers |= dict(zip(sides, sides, strict=True)) if {*sides} <= {*there} else {}
        return texts, numbers


def _style_columns(name: str, there: Sequence[str]) -> dict[str, str]:
    """Find the columns of a style, by role: those of its two sides, or of a difference."""
    stem = name.removeprefix(LOG2)
    sides = dict(zip(of_sides(name), of_sides(stem), strict=True))
    if name.startswith(LOG2) or set(sides.values()) <= set(there):
        return {role: require(column, there) for role, column in sides.items()}
    return {name: require(name, there)}
