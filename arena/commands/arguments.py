"""What several commands take, and how words become values."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token, convert
from cyclopts.annotations import resolve_optional

from arena.domain.vote import DEFAULT, POLICIES, Policy
from arena.errors import SettingsError
from arena.terminal import say
from rating.errors import DataError
from rating.tables.columns import KNOWN
from rating.tables.files import SAMPLE_VOTES, Files

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from arena.store.store import Store
    from rating.tables.coding import LoggedVotes
    from rating.tables.sources import ClusterTable

INTEGER = re.compile(r"[+-]?\d+")
SPARK = "spark://"
SAMPLES = "samples"
"""The source that stands for the votes that come with the arena."""


def _read(kind: Any, words: Sequence[Token]) -> Any:
    """Read the words of an option: a moment is in UTC; numbers are finite, and never rounded."""
    text, kind = words[0].value, resolve_optional(kind)  # no word stands for None
    if kind is datetime:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            msg = f"cannot read {text!r}: write 2026-01-31, or 2026-01-31T12:00:00Z."
            raise ValueError(msg) from error
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if kind is int and not INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is no integer.")
    value = convert(kind, words)
    for one in value if isinstance(value, tuple | list) else (value,):
        _require_finite(one, text)
    return value


def _require_finite(value: object, text: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{text!r} is no finite number.")


@Parameter(n_tokens=1)
def roles(_kind: Any, words: Sequence[Token]) -> tuple[tuple[str, str], ...]:
    """Read the values of ``--column``."""
    return _pairs(words, "ROLE=NAME, such as voter=user")


@Parameter(n_tokens=1)
def labels(_kind: Any, words: Sequence[Token]) -> tuple[tuple[str, str], ...]:
    """Read the values of ``--label``; theirs may be blank or hold an equals sign, ours may not."""
    return _pairs(words, "THEIRS=OURS, such as left=model_a", str.rpartition, blank=True)


@Parameter(n_tokens=1)
def shares(_kind: Any, words: Sequence[Token]) -> tuple[tuple[str, float], ...]:
    """Read the value of ``--mix``."""
    given = []
    for part in words[-1].value.split(","):
        name, _, share = part.rpartition("=")
        try:
            given.append((name.strip(), float(share if name.strip() else "")))
            _require_finite(given[-1][1], part)
        except ValueError as error:
            msg = f"cannot read {part!r}: write CATEGORY=SHARE, such as coding=0.5,writing=0.5."
            raise ValueError(msg) from error
    return tuple(given)


def _pairs(
    words: Sequence[Token],
    how: str,
    part: Callable[[str, str], tuple[str, str, str]] = str.partition,
    *,
    blank: bool = False,
) -> tuple[tuple[str, str], ...]:
    pairs = [part(word.value, "=") for word in words]
    for left, equals, right in pairs:
        if not (right and (left or (blank and equals))):
            raise ValueError(f"cannot read {left + equals + right!r}: write {how}.")
    return tuple((left, right) for left, _, right in pairs)


@Parameter(n_tokens=1)
def _model_and_points(_kind: Any, words: Sequence[Token]) -> tuple[str, float]:
    """Read the value of ``--anchor``."""
    model, _, points = words[0].value.rpartition("=")
    try:
        anchored = float(points if model else "")
        _require_finite(anchored, words[0].value)
    except ValueError as error:
        msg = f"cannot read {words[0].value!r}: write MODEL=POINTS, such as gpt-4=1000."
        raise ValueError(msg) from error
    return model, anchored


def _default_shown(value: Any) -> str | None:
    """Show the default of an option, unless it is nothing."""
    return None if value is None or value is False or value == () else str(value)


EVERY = Parameter(
    negative=(),
    json_list=False,
    json_dict=False,
    allow_repeating=True,
    converter=_read,
    show_default=_default_shown,
)
"""What holds of every option: given twice, the last word counts; none has a --no- twin."""

Flat = Parameter(name="*")
"""The fields of a dataclass are options."""

Columns = Annotated[
    tuple[tuple[str, str], ...], Parameter(name="--column", metavar="ROLE=NAME", converter=roles)
]
Labels = Annotated[
    tuple[tuple[str, str], ...],
    Parameter(name="--label", metavar="THEIRS=OURS", converter=labels, allow_leading_hyphen=True),
]
Shares = Annotated[
    tuple[tuple[str, float], ...],
    Parameter(name="--mix", metavar="CATEGORY=SHARE,...", converter=shares),
]
Anchor = Annotated[
    tuple[str, float] | None, Parameter(metavar="MODEL=POINTS", converter=_model_and_points)
]
File = Annotated[Path | None, Parameter(metavar="FILE")]
Port = Annotated[int | None, Parameter(help="Port; 0 chooses a free one.")]
Host = Annotated[str | None, Parameter(help="Address to listen on.")]
Database = Annotated[
    str | None,
    Parameter(
        help="Database URL, such as sqlite:///arena.db (the default) or postgresql://user@host/name.",
        metavar="URL",
    ),
]
RosterFile = Annotated[Path | None, Parameter(help="TOML file of models.", metavar="FILE")]
PolicyName = Annotated[
    str | None,
    Parameter(name="--policy", help="Policy that decides which votes count.", metavar="NAME"),
]
TaggerName = Annotated[
    str | None,
    Parameter(
        name="--tagger",
        help="Source of the labels in a database: rules by default, or a model that "
        "`arena label` has used.",
        metavar="NAME",
    ),
]
TableOrJson = Annotated[Literal["table", "json"], Parameter(name="--format")]


def or_samples(source: str) -> str:
    """Give the votes that come with the arena for their word, unless it names a file or folder."""
    if source != SAMPLES or Path(SAMPLES).exists():
        return source
    say(
        "arena: samples are 600 simulated votes with known ground truth, not votes of people.",
        error=True,
    )
    return str(SAMPLE_VOTES)


def arena_store(database: str | None) -> "AbstractContextManager[Store]":
    """Open the arena of a database, or of the settings' own, where there is one."""
    from arena.settings import read_settings
    from arena.store.store import existing  # the store takes two seconds to import

    return existing(read_settings(database=database).database)


def policy_named(name: str | None) -> Policy:
    """Give the policy of a name, the default one for None; raises `SettingsError` of others."""
    known = {policy.name: policy for policy in POLICIES}
    if name is None:
        return DEFAULT
    if name not in known:
        raise SettingsError(f"There is no policy {name!r}: choose one of {', '.join(known)}.")
    return known[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SomeRows:
    """The rows that are read.

    Attributes
    ----------
    where : str or None
        Read only rows that satisfy this SQL condition on the file's own columns.
    labels : tuple of (str, str)
        Read a label of the file as one of ours, such as left=model_a; repeatable.
    """

    where: Annotated[str | None, Parameter(metavar="SQL")] = None
    labels: Labels = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(_SomeRows):
    """The rows of files, of a table, or of a vote log that are read.

    Attributes
    ----------
    policy : str or None
        Policy that decides which votes of a database count: default-v3, default-v2, default-v1,
        simulated-v1 or applications-v1.
    """

    policy: Annotated[str | None, Parameter(metavar="NAME")] = None

    def table(self, name: str, sources: Sequence[str], winner: str | None) -> "ClusterTable":
        """Read a table of a Spark cluster; the caller names the columns.

        Raises
        ------
        DataError
            If the cluster is not the only source.
        """
        from rating.tables.sources import ClusterTable

        if len(sources) > 1 or not sources[0].startswith(SPARK):
            raise DataError(
                f"--table is for a Spark cluster, and the source is {sources[0]!r}: give the "
                f"address of its master alone, such as {SPARK}host:7077 or {SPARK}local[2]."
            )
        self._require_no_policy(sources[0])
        return ClusterTable(name, Files((sources[0],), (), self.where, self.labels, winner))

    def source(
        self, sources: Sequence[str], columns: Sequence[tuple[str, str]], tagger: str | None = None
    ) -> "Files | LoggedVotes":
        """Read files as one table, whose columns the caller names; or a database.

        Parameters
        ----------
        tagger : str or None
            Whose labels of a database are read; None for those of the rules.

        Raises
        ------
        DataError
            If a database is not the only source, or less than the whole of it is asked for; or
            if a tagger is named, and there are no labels of it.
        """
        sources = [*map(or_samples, sources)]
        url = next((source for source in sources if "://" in source), None)
        if tagger is not None and (url is None or url.startswith(SPARK)):
            raise DataError(
                f"--tagger {tagger!r} is for a database, and a table has the labels that it was "
                "written with: choose them with arena export votes --tagger."
            )
        if url is None:
            self._require_no_policy(sources[0])
            winner = dict(columns).get("winner")
            return Files(tuple(sources), (), self.where, self.labels, winner)
        if url.startswith(SPARK):
            msg = f"Only arena rate reads the cluster {url!r}: name a table with --table NAME."
            raise DataError(msg)
        if len(sources) > 1 or self.where or self.labels:
            raise DataError(
                f"The votes of the database {url!r} are read whole and from no other source: "
                "export them (arena export votes --to votes.parquet), and read the file."
            )
        from arena.boards.fitted import votes_of  # SQLAlchemy takes a second to import

        return votes_of(url, tagger, policy_named(self.policy))

    def _require_no_policy(self, source: str) -> None:
        if self.policy is not None:
            raise DataError(
                f"--policy {self.policy!r} is for the log of a database, and {source!r} is not "
                "one: omit --policy, or choose rows with --where."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed(_SomeRows):
    """The rows of files that are read, and the names of their columns.

    Attributes
    ----------
    columns : tuple of (str, str)
        Read one of our columns from theirs, such as voter=user; repeatable.
    """

    columns: Columns = ()

    def votes(self, *sources: str) -> Files:
        """Read sources of votes as one; a role stands for the first name it is known by."""
        named = [(KNOWN.get(role, (role,))[0], name) for role, name in self.columns]
        return Files(sources, tuple(named), self.where, self.labels)

    def beside(self, votes: str, verdicts: str) -> "tuple[Files | LoggedVotes, Files]":
        """Read votes of people, of files or a database, and verdicts on the same items."""
        from arena.boards.fitted import votes_of  # help would wait for duckdb
        from rating.tables.sources import shared

        people = [] if "://" in votes else [self.votes(votes)]
        *cast, given = shared([*people, self.votes(verdicts)])
        return cast[0] if cast else votes_of(votes), given

    def cases(self, source: str) -> Files:
        """Read a source of cases, in whose columns a prompt is a text."""
        return Files((source,), self.columns, self.where, self.labels)


def require_folder_of(*files: Path | None) -> None:
    """Raise `DataError` unless there is a folder to write each file into, of those named."""
    for file in filter(None, files):
        if not file.absolute().parent.is_dir():
            msg = f"Cannot write {str(file)!r}: its folder does not exist. Make the folder first."
            raise DataError(msg)


EVERY_ROW, AS_IT_IS = Chosen(), Renamed()


@Parameter(n_tokens=1)
def names(_kind: Any, words: Sequence[Token]) -> tuple[str, ...]:
    """Read the value of ``--models``."""
    given = ",".join(word.value for word in words)
    return tuple(dict.fromkeys(filter(None, map(str.strip, given.split(",")))))
