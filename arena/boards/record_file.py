"""An export of votes read row by row, as the record that it is."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

import duckdb

from arena.boards.export import (
    COLUMNS,
    LABELS,
    REASONS,
    REMARKS,
    STATEMENT,
    Row,
    as_json,
    is_shown,
    why_excluded,
)
from arena.domain.battle import CONFIDENCE, Intent, Reason
from arena.domain.vote import (
    BROKEN_ANSWER,
    DEFAULT,
    EVER,
    INHERITS,
    POLICIES,
    READMITTED,
    Choice,
    Days,
    Policy,
    VoterKind,
)
from arena.store import chain
from arena.store.chain import OF_EXCLUSION, OF_TOMBSTONE, TAKEN_OUT
from arena.store.verify import Link, Scope, Verified, follow, on_hashes_only
from rating.errors import DataError
from rating.tables.duckdb_engine import columns_in_file, connected
from rating.tables.files import SHOWN, UNSTORABLE, kind_of, literal, quoted, require_file
from rating.tables.sources import opened
from rating.tables.vote_filter import NO_VOTE

BOUND = "bound"
"""Beside the columns of a row: what an excluded vote binds, by name."""
_BATTLE = "coalesce(battle_id, json_extract_string(excluded_vote, '$.battle_id'))"
POLICY = {policy.name: policy for policy in POLICIES}
BATTLES_AT_ONCE = 250_000
"""Battles that are looked at together for one that is there twice."""
HASH = re.compile("[0-9a-f]{64}")
REMARKED = (*REASONS, "before_reveal", "remarked")
"""Columns of remarks that are there together, or none; the others may be empty."""
_OF_CHAIN = {"link_kind", "link", "links", "content", "hash", "left_out", *STATEMENT}
_MAY_LACK = {"prompt_id", "prompt_set"}


LATER = (*REASONS, *REMARKS, *STATEMENT[1:], "excluded_vote", "transcript")
"""Columns that exports of earlier versions do not have: nothing is in them."""
ODD = "__odd"
"""The first value of a row that is not spelled as an export does: a rating may read others."""
AT_ONCE = 2048
"""Rows that are held in memory."""
MOST_CHARACTERS = 1000
"""Of a name or an id."""
MOST = 2**31 - 1
"""The largest whole number that a database holds."""
_PLAIN = ("VARCHAR", "BIGINT", "DOUBLE", "TIMESTAMP")
Relation = duckdb.DuckDBPyRelation


@dataclass(slots=True)
class _RecordFile:
    """The rows of an export of votes, and what is wrong with them beside their hashes.

    Attributes
    ----------
    path : Path
    total : int
        Links that there are, by the first row.
    mark : int
        The link of the mark; 0 without one.
    odd : str or None
        The first row that no export has, in a sentence, as far as they were read.
    wrong : str or None
        The first vote that is excluded, or is not, against the rules of the policy and the days.
    """

    path: Path
    total: int
    mark: int
    _relation: Relation
    _reasons: Mapping[int, tuple[str, ...]]
    odd: str | None = None
    wrong: str | None = None
    _statement: tuple[Any, ...] = ()
    _policy: Policy = DEFAULT
    _days: Days = EVER
    """Without a zone, as moments of the file are."""
    _to_name: dict[int, str] = field(default_factory=dict)
    """Links that say of themselves that they were deleted, and that no deletion record names."""
    _hidden: int = 0
    _first_hidden: int = 0
    _deleted: int = 0
    _reached: Counter[str | None] = field(default_factory=Counter)

    def links(self, take: Callable[[Row], object]) -> Iterator[Link]:
        """Give the links up to the first row that no export has; calls ``take`` with each row."""
        for row in self._rows():
            self.odd = _malformed(row) or self._not_of_this_file(row)
            if self.odd is not None:
                return
            self.wrong = self.wrong or self._wrongly_excluded(row)
            take(row)
            yield _link_of(row, is_old=row["link"] < self.mark)

    def end(self, verified: Verified) -> str | None:
        """Describe what is wrong with all rows together, once they were followed, if anything."""
        if verified.links != self.total:
            return f"The file ends at link {verified.links} of {self.total}: rows are missing."
        first = min(self._to_name, default=self._first_hidden)
        if first:
            kind = self._to_name.get(first, "vote")
            return (
                f"{on_hashes_only(self.counted(verified), first, kind)} Export the votes again "
                "with this version: exports of version 0.1.0 without --all do not hold excluded "
                "votes."
            )
        return self.wrong

    def counted(self, verified: Verified) -> Verified:
        """Add the scope of the file and the number of its votes, as far as it was read."""
        if not self._statement:
            return verified
        policy, since, until, everything = self._statement
        hashes_only = self._hidden + [*self._to_name.values()].count("vote")
        return replace(
            verified,
            votes=self._reached.total() + hashes_only,
            hashes_only=hashes_only,
            deleted=self._deleted,
            scope=Scope(
                policy=policy,
                since=since and since.isoformat(),
                until=until and until.isoformat(),
                all_votes=None if everything is None else bool(everything),
                counted=self._reached[None],
                excluded={why: n for why, n in self._reached.most_common() if why is not None},
            ),
        )

    def doubled(self) -> str | None:
        """Return which battle is voted on twice, if any; some are looked at after others."""
        parts = self.total // BATTLES_AT_ONCE + 1
        for part in range(parts):
            some = self._relation.project(f"{_BATTLE} AS battle").filter("battle IS NOT NULL")
            some = some.filter(f"hash(battle) % {parts} = {part}")
            counts = some.aggregate("battle, count(*) AS n", "battle")
            for name, _ in counts.filter("n > 1").order("battle").limit(1).fetchall():
                return f"The battle {name!r} is voted on twice."
        return None

    def _rows(self) -> Iterator[Row]:
        rows, names = _typed(self._relation), (*COLUMNS, ODD)
        rows = rows if self._is_in_order() else rows.order("link")
        for row in _streamed(rows):
            values = dict(zip(names, row, strict=True))
            if (text := values["excluded_vote"]) is not None:
                values[BOUND] = _excluded(text)
            yield values

    def _is_in_order(self) -> bool:
        places = self._relation.project("TRY_CAST(link AS BIGINT) AS a, row_number() OVER () AS b")
        return not places.filter("a IS DISTINCT FROM b").limit(1).fetchall()

    def _not_of_this_file(self, row: Row) -> str | None:
        """Explain why a row does not belong with those before it, if it does not."""
        link, states = row["link"], tuple(row[name] for name in STATEMENT)
        if not self._statement:
            self._statement = states
            self._policy, self._days = POLICY[row["policy"]], Days(row["since"], row["until"])
        if states != self._statement:
            name, ours, theirs = next(
                part
                for part in zip(STATEMENT, states, self._statement, strict=True)
                if part[1] != part[2]
            )
            return (
                f"The rows are of several exports: {name} is {str(theirs)[:SHOWN]} at link 1, and "
                f"{str(ours)[:SHOWN]} at link {link}."
            )
        if row["links"] != self.total:
            return f"The rows are of files of {row['links']} and {self.total} links: see {link}."
        if row["left_out"] == TAKEN_OUT:
            self._to_name[link] = row["link_kind"]
        elif row["link_kind"] == "vote" and _vote(row) is None:
            self._hidden += 1
            self._first_hidden = self._first_hidden or link
        for deleted in _json(row["tombstone"])["links"] if row["tombstone"] else ():
            if deleted not in self._to_name:
                return f"The deletion record at link {link} names link {deleted}, and it is there."
            self._deleted += self._to_name.pop(deleted) == "vote"
        return None

    def _wrongly_excluded(self, row: Row) -> str | None:
        """Count a vote; return the error if it is excluded, or not, against the stated rules.

        A file of version 0.1.0 states a policy alone.
        """
        vote = _vote(row)
        if vote is None:
            return None
        everything = row["all_votes"]
        reasons = self._reasons.get(row["link"], ())
        broken = row["transcript"] is not None
        why = why_excluded(vote, self._policy, self._days, reasons, broken=broken)
        self._reached[why] += 1
        if row["left_out"] != why:
            return (
                f"Link {row['link']}, {_the_vote(vote)}, has {row['left_out']!r} in left_out, "
                f"and by the policy and the days it is {why!r}."
            )
        shows = vote is row
        if everything is None or shows == is_shown(why, everything=bool(everything)):
            return None
        there, right = ("in", "not in") if shows else ("not in", "in")
        return (
            f"Link {row['link']}, {_the_vote(vote)}, is {there} the columns of votes, and by the "
            f"policy, the days and all_votes it is {right} them."
        )


@contextmanager
def _reading(path: Path) -> Iterator[_RecordFile]:
    """Open an export of votes.

    Raises
    ------
    DataError
        If the file cannot be read, or has other columns than an export of votes.
    """

    def require(there: Sequence[str]) -> Sequence[str]:
        lacking = (name for name in COLUMNS if name not in there and name not in LATER)
        odd = [*lacking, *({*there} - {*COLUMNS})]
        if not odd:
            return there
        has = "has no column" if odd[0] in COLUMNS else "has a column"
        raise DataError(
            f"Cannot verify {str(path)!r}: it {has} {odd[0][:SHOWN]!r}. Give a file as "
            "`arena export votes` of this version wrote it."
        )

    require_file(path)
    if kind_of(path) == "text":
        require(columns_in_file(path))  # before the engine reads any number of columns
    with ExitStack() as stack:
        try:
            rows = stack.enter_context(opened(path, require, holds="rows", as_peers=False))
            absent = [name for name in LATER if name not in rows.columns]
            nothing = (f"CAST(NULL AS {COLUMNS[name]}) AS {name}" for name in absent)
            rows = rows.project(", ".join(["*", *nothing]))
        except (RuntimeError, UnicodeError) as error:  # names of columns that are no text
            msg = f"Cannot verify {str(path)!r}: it is damaged ({error}). Take a whole copy."
            raise DataError(msg) from error
        marks = rows.filter("link_kind = 'mark'").project("TRY_CAST(link AS BIGINT)").limit(1)
        yield _RecordFile(
            path=path,
            total=rows.aggregate("max(TRY_CAST(links AS BIGINT))").fetchall()[0][0] or 0,
            mark=next((link or 0 for (link,) in marks.fetchall()), 0),
            _relation=rows,
            _reasons=_reasons(rows),
        )


def verify_export(path: Path, noted: str = "") -> Verified:
    """Follow the chain of an export, and recompute which votes it excludes, and why.

    A vote of which the hashes alone are there is a break, unless a deletion record names it.

    Parameters
    ----------
    noted : str
        As `arena.store.verify.verify` takes it.

    Raises
    ------
    DataError
        If the file cannot be read, or has no hashes.
    """
    return _verified(path, noted, lambda _row: None)


def read_votes(path: Path, noted: str = "") -> tuple[Verified, list[Row]]:
    """Verify an export, and give its votes in the order of the chain: see `verify_export`.

    Up to the first row that no export has. A vote that the file excludes has the columns of the
    chain alone, and its ``left_out`` and ``excluded_vote``; one that was deleted is not given.
    """
    rows: list[Row] = []
    verified = _verified(path, noted, rows.append)
    votes = [row for row in rows if row["link_kind"] == "vote"]
    return verified, [row for row in votes if row["left_out"] != TAKEN_OUT]


def _verified(path: Path, noted: str, take: Callable[[Row], object]) -> Verified:
    with _reading(path) as file:
        verified = follow(file.links(take), noted)
        problem = file.odd or verified.problem or file.end(verified) or file.doubled()
        if not problem and (verified.noted or 0) < (verified.marked or 0) and noted:
            problem = (
                f"The hash {noted!r} is that of link {verified.noted}, before the mark at link "
                f"{verified.marked}. A file does not prove the links before its mark: verify the "
                "database, or give a hash that was noted later."
            )
        return replace(file.counted(verified), problem=problem)


def _malformed(row: Row) -> str | None:
    """Describe what is wrong with a row as such, if anything: what no export has."""
    if row[ODD] is not None:
        name, _, value = row[ODD].partition(" ")
    elif (name := _misfit(row)) is not None:
        value = row[name]
    else:
        return None
    return (
        f"The row of link {row['link']} is not as an export writes it: {name} is "
        f"{repr(value)[:SHOWN]}."
    )


def _misfit(row: Row) -> str | None:
    """Name the first column whose value no export has in such a row, if any."""
    is_first_version = row["all_votes"] is None
    checks: Sequence[tuple[str, bool]] = (
        ("link", _is_whole(row["link"], 1)),
        ("links", _is_whole(row["links"], 1)),
        ("content", _is_hash(row["content"])),
        ("hash", _is_hash(row["hash"])),
        ("judge", row["judge"] is None),
        ("policy", row["policy"] in POLICY),
        ("all_votes", row["all_votes"] in (None, 0, 1)),
        *(
            (name, not is_first_version or row[name] is None)
            for name in ("since", "until", "excluded_vote")
        ),
        ("link_kind", row["link_kind"] in ("vote", "exclusion", "mark", "tombstone")),
    )
    if (odd := next((name for name, good in checks if not good), None)) is not None:
        return odd
    if row["transcript"] is not None and not _is_of_broken_answer(row):
        return "transcript"
    shown: tuple[str, ...] = ()
    match row["link_kind"]:
        case "vote" if row["winner"] is not None:
            return _misfit_of_vote(row)
        case "mark":
            good = row["left_out"] == NO_VOTE
        case ("exclusion" | "tombstone") as kind if row[kind] is not None:
            shown, good = (kind,), row["left_out"] == NO_VOTE
            if not _is_bound(row[kind], OF_EXCLUSION if kind == "exclusion" else OF_TOMBSTONE):
                return str(kind)
        case "vote" if row["excluded_vote"] is not None:
            shown = ("excluded_vote", "transcript")
            good = _is_reason(row["left_out"]) and row["left_out"] != TAKEN_OUT
            if row[BOUND] is None or _misfit_of_bound(row[BOUND]) is not None:
                return "excluded_vote"
        case "vote":
            good = _is_reason(row["left_out"]) and row["left_out"] != NO_VOTE
        case _:  # an exclusion without what it binds
            good = row["left_out"] == TAKEN_OUT
    there = (name for name in COLUMNS if name not in (*_OF_CHAIN, *shown))
    more = next((name for name in there if row[name] is not None), None)
    return more or (None if good else "left_out")


def _is_of_broken_answer(row: Row) -> bool:
    """Return whether a transcript is that of the vote, and excludes it."""
    vote, text = _vote(row), row["transcript"]
    if vote is None or row["left_out"] != BROKEN_ANSWER:
        return False
    if hashlib.sha256(text.encode()).hexdigest() != vote["transcript_hash"]:
        return False
    try:
        return chain.is_broken(vote, json.loads(text)[1])
    except (ValueError, TypeError, LookupError, RecursionError):
        return False


def _misfit_of_bound(vote: Row) -> str | None:
    for name in chain.BOUND:
        if not (name in _MAY_LACK and vote[name] is None) and not _fits(COLUMNS[name], vote[name]):
            return name
    if vote["winner"] not in [*Choice]:
        return "winner"
    return None if vote["voter_kind"] in [*VoterKind] else "voter_kind"


def _misfit_of_vote(row: Row) -> str | None:
    if (odd := _misfit_of_bound(row)) is not None:
        return odd
    if not _fits(COLUMNS["person"], row["person"]):
        return "person"
    labels = [name for name in LABELS if row[name] is not None]
    if (
        odd := next((name for name in labels if not _fits(COLUMNS[name], row[name])), None)
    ) is not None:
        return odd
    if bool(labels) != (row["tagger"] is not None):
        return "tagger"
    for name in ("refused_a", "refused_b"):
        if row[name] not in (None, 0, 1) or (row[name] is None) != (row["refused_a"] is None):
            return name
    if (odd := _misfit_of_remarks(row)) is not None:
        return odd
    for name in ("excluded_vote", "exclusion", "tombstone"):
        if row[name] is not None:
            return name
    reason = row["left_out"]
    return None if reason is None or (_is_reason(reason) and reason != TAKEN_OUT) else "left_out"


def _misfit_of_remarks(row: Row) -> str | None:
    """Name the first column of remarks whose value no export has there, if any."""
    if row["remarked"] is None:
        names = (*REMARKED, "confidence", "voter_intent")
        return next((name for name in names if row[name]), None)
    checks = (
        ("reasons_a", _is_reasons(row["reasons_a"])),
        ("reasons_b", _is_reasons(row["reasons_b"])),
        ("confidence", row["confidence"] in (None, *CONFIDENCE)),
        ("voter_intent", (row["voter_intent"] or None) in (None, *Intent)),
        ("before_reveal", row["before_reveal"] in (0, 1)),
    )
    return next((name for name, good in checks if not good), None)


def _is_reasons(text: str | None) -> bool:
    names = text.split(",") if text else []
    known = [*Reason]
    return set(names) <= set(known) and names == sorted(set(names), key=known.index)


def _is_hash(value: Any) -> bool:
    return bool(HASH.fullmatch(value or ""))


def _is_reason(value: Any) -> bool:
    return bool(value) and value.strip() == value and _is_storable(value)


def _is_bound(text: str, names: Sequence[str]) -> bool:
    """Return whether JSON is what an export writes of an exclusion or a deletion record."""
    try:
        bound = _json(text)
        moment = datetime.fromisoformat(bound["ts"])
        is_exact = list(bound) == list(names) and chain.plain(moment) == bound["ts"]
        links = bound["links"] if "links" in names else [bound["vote"]]
        texts = [bound[name] for name in names if name not in ("links", "vote", "ts")]
        return (
            is_exact
            and links == sorted({*links})
            and all(_is_whole(link, 1) for link in links)
            and all(isinstance(text, str) and _is_storable(text) for text in texts)
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _excluded(text: str) -> dict[str, Any] | None:
    """Read what an excluded vote binds; None where it is not written as an export writes it."""
    try:
        vote = _json(text)
        is_exact = list(vote) == list(chain.BOUND) and as_json(vote) == text
        vote["ts"] = datetime.fromisoformat(vote["ts"]).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None
    return vote if is_exact else None


def _vote(row: Row) -> Row | None:
    """Give the columns that a vote binds; None of another link, and where they are not there."""
    if row["link_kind"] != "vote":
        return None
    return row if row["winner"] is not None else row.get(BOUND)


def _json(text: str) -> dict[str, Any]:
    bound: dict[str, Any] = json.loads(text)
    return bound


def _reasons(rows: Relation) -> dict[int, tuple[str, ...]]:
    """Read why votes are excluded by exclusions that stand, by their links."""
    reasons: dict[int, tuple[str, ...]] = {}
    excluding = rows.filter("exclusion IS NOT NULL").project("exclusion, policy, link")
    excluding = excluding.order("TRY_CAST(link AS BIGINT)")
    for text, policy, _ in _streamed(excluding):
        if not _is_bound(text, OF_EXCLUSION):
            continue  # which is said when its row is read
        bound = _json(text)
        if bound["policy"] in INHERITS.get(policy, (policy,)):
            reasons.pop(bound["vote"], None)
            if bound["rule"] != READMITTED:
                reasons[bound["vote"]] = (bound["reason"],)
    return reasons


def _link_of(row: Row, *, is_old: bool) -> Link:
    tombstone = row["tombstone"]
    return Link(
        link=row["link"],
        kind=row["link_kind"],
        name=_name(row),
        content=row["content"],
        previous_hash=None,
        hash=row["hash"],
        bound=_bound(row),
        is_old=is_old and row["link_kind"] == "vote",  # what its hash is made of is not in a file
        taken_out=len(_json(tombstone)["links"]) if tombstone else 0,
    )


def _name(row: Row) -> str:
    match row["link_kind"]:
        case "mark":
            return "the mark"
        case "exclusion":
            return "an exclusion"
        case "tombstone":
            return "a deletion record"
    vote = _vote(row)
    return "a vote that is hashes only" if vote is None else _the_vote(vote)


def _the_vote(vote: Row) -> str:
    return f"the vote on battle {vote['battle_id']!r}"


def _bound(row: Row) -> str | None:
    if row["exclusion"] is not None:
        return chain.exclusion_content(_json(row["exclusion"]))
    if row["tombstone"] is not None:
        return chain.tombstone_content(_json(row["tombstone"]))
    vote = _vote(row)
    if vote is None:
        return None
    return chain.vote_content({**vote, "ts": vote["ts"].replace(tzinfo=UTC)})


def _typed(rows: Relation) -> Relation:
    """Give the values of columns by their kinds, and beside them `ODD`."""
    values = [f"{_value(rows, name, kind)} AS {quoted(name)}" for name, kind in COLUMNS.items()]
    cases = (
        f"WHEN NOT ({_is_exact(name, kind)}) THEN "
        f"concat({literal(name)}, ' ', left(CAST({quoted(name)} AS VARCHAR), {SHOWN}))"
        for name, kind in COLUMNS.items()
        if kind in _PLAIN
    )
    return rows.project(", ".join([*values, f"CASE {' '.join(cases)} END AS {ODD}"]))


def _streamed(rows: Relation) -> Iterator[tuple[Any, ...]]:
    """Give rows some at a time; the relation's own methods would read all of them into memory."""
    with connected() as connection:
        connection.execute("SET threads = 1")  # more read ahead, and hold what they read
        result = connection.execute(rows.sql_query())
        while some := result.fetchmany(AT_ONCE):
            yield from some


def _fits(kind: str, value: Any) -> bool:
    """Whether an export can have a value in a column of a kind."""
    match kind:
        case "BIGINT":
            return _is_whole(value, 0)
        case "DOUBLE":
            return isinstance(value, float) and isfinite(value)
        case "TIMESTAMP":
            return isinstance(value, datetime)
    is_short = isinstance(value, str) and len(value) <= MOST_CHARACTERS
    return is_short and _is_storable(value)


def _is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number that a database holds."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST


def _is_storable(text: str) -> bool:
    """Whether every database can hold a text."""
    return UNSTORABLE.search(text) is None


def _value(rows: Relation, name: str, kind: str) -> str:
    if kind in _PLAIN:
        return f"TRY_CAST({quoted(name)} AS {kind})"
    is_text = dict(zip(rows.columns, map(str, rows.types), strict=True))[name] == "VARCHAR"
    return quoted(name) if is_text else f"CAST(to_json({quoted(name)}) AS VARCHAR)"


def _is_exact(name: str, kind: str) -> str:
    """Give the expression of SQL for whether a value is of its column's kind, and nothing more."""
    back = f"CAST(TRY_CAST({quoted(name)} AS {kind}) AS VARCHAR)"
    if kind == "DOUBLE":  # which has many spellings, and one value
        return f"(TRY_CAST({quoted(name)} AS DOUBLE) IS NULL) = ({quoted(name)} IS NULL)"
    return f"{back} IS NOT DISTINCT FROM CAST({quoted(name)} AS VARCHAR)"
