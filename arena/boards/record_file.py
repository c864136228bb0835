"""An export of votes read row by row, as the record that it is."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from arena.boards.dataset import COLUMNS, why_left_out
from arena.boards.export_file import (
    ODD,
    Relation,
    Row,
    fits,
    is_storable,
    is_whole,
    reading,
    streamed,
    typed,
)
from arena.domain.remarks import CONFIDENCE, Intent, Reason
from arena.domain.vote import INHERITS, POLICIES, READMITTED, Choice, VoterKind
from arena.store import chain
from arena.store.chain import OF_EXCLUSION, OF_TOMBSTONE, TAKEN_OUT
from arena.store.verify import Link, Verified, follow
from rating.tables.files import SHOWN
from rating.tables.vote_filter import NO_VOTE

POLICY = {policy.name: policy for policy in POLICIES}
BATTLES_AT_ONCE = 250_000
"""Battles that are looked at together for one that is there twice."""
HASH = re.compile("[0-9a-f]{64}")
LABELS = (
    *("category", "language", "intent", "turns", "chars", "hard", "instructions"),
    *("refused_a", "refused_b"),
)
"""Columns of labels; what a prompt is about is none, for it is learnt anew of all prompts."""
REMARKED = ("reasons_a", "reasons_b", "before_reveal", "remarked")
"""Columns of remarks that are there together, or none; the others may be empty."""
_OF_CHAIN = {"link_kind", "link", "links", "content", "hash", "left_out", "policy"}
_OF_VOTE = {*chain.BOUND, "person"}
_MAY_LACK = {"prompt_id", "prompt_set"}


@dataclass(slots=True)
class RecordFile:
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
        The first row that is not left out as its policy has it, likewise.
    """

    path: Path
    total: int
    mark: int
    _relation: Relation
    _reasons: Mapping[int, tuple[str, ...]]
    odd: str | None = None
    wrong: str | None = None
    _policy: str | None = None
    _taken_out: set[int] = field(default_factory=set)

    def links(self, take: Callable[[Row], object]) -> Iterator[Link]:
        """Give the links up to the first row that no export has; calls ``take`` with each row."""
        for row in self._rows():
            self.odd = _malformed(row) or self._not_of_this_file(row)
            if self.odd is not None:
                return
            self.wrong = self.wrong or self._wrongly_left_out(row)
            take(row)
            yield _link_of(row, is_old=row["link"] < self.mark)

    def end(self, verified: Verified) -> str | None:
        """Say what is wrong with all rows together, once they were followed, if anything."""
        if verified.links != self.total:
            return f"The file ends at link {verified.links} of {self.total}: rows are missing."
        if self._taken_out:
            link = min(self._taken_out)
            return f"Link {link} is not here, and no tombstone says that it was taken out."
        return self.wrong

    def doubled(self) -> str | None:
        """Say which battle is voted on twice, if any; some are looked at after others."""
        parts = self.total // BATTLES_AT_ONCE + 1
        for part in range(parts):
            some = self._relation.filter(f"hash(battle_id) % {parts} = {part}")
            some = some.filter("battle_id IS NOT NULL")
            counts = some.aggregate("battle_id, count(*) AS n", "battle_id")
            for name, _ in counts.filter("n > 1").order("battle_id").limit(1).fetchall():
                return f"The battle {name!r} is voted on twice."
        return None

    def _rows(self) -> Iterator[Row]:
        rows = typed(self._relation, COLUMNS)
        rows = rows if self._is_in_order() else rows.order("link")
        for row in streamed(rows):
            yield dict(zip((*COLUMNS, ODD), row, strict=True))

    def _is_in_order(self) -> bool:
        places = self._relation.project("TRY_CAST(link AS BIGINT) AS a, row_number() OVER () AS b")
        return not places.filter("a IS DISTINCT FROM b").limit(1).fetchall()

    def _not_of_this_file(self, row: Row) -> str | None:
        """Say why a row does not belong with those before it, if it does not."""
        link, self._policy = row["link"], self._policy or row["policy"]
        if row["policy"] != self._policy:
            names = sorted((self._policy or "", row["policy"]))
            return (
                f"The rows are of several policies, {', '.join(names)}: see that of link {link}."
            )
        if row["links"] != self.total:
            return f"The rows are of files of {row['links']} and {self.total} links: see {link}."
        if row["left_out"] == TAKEN_OUT:
            self._taken_out.add(link)
        for taken in _json(row["tombstone"])["links"] if row["tombstone"] else ():
            if taken not in self._taken_out:
                return f"Link {taken} was taken out, says link {link}, and it is there."
            self._taken_out.remove(taken)
        return None

    def _wrongly_left_out(self, row: Row) -> str | None:
        """Say which vote is left out, or is not, against the rules of the policy."""
        if row["link_kind"] != "vote" or row["winner"] is None:
            return None
        why = why_left_out(row, POLICY[row["policy"]], self._reasons.get(row["link"], ()))
        if row["left_out"] == why:
            return None
        return (
            f"Link {row['link']}, {_the_vote(row)}, has {row['left_out']!r} in left_out, "
            f"and by the policy it is {why!r}."
        )


@contextmanager
def _reading(path: Path) -> Iterator[RecordFile]:
    """Open an export of votes.

    Raises
    ------
    DataError
        If the file cannot be read, or has other columns than an export of votes.
    """
    with reading(path, COLUMNS, "verify", "arena export votes") as rows:
        marks = rows.filter("link_kind = 'mark'").project("TRY_CAST(link AS BIGINT)").limit(1)
        yield RecordFile(
            path=path,
            total=rows.aggregate("max(TRY_CAST(links AS BIGINT))").fetchall()[0][0] or 0,
            mark=next((link or 0 for (link,) in marks.fetchall()), 0),
            _relation=rows,
            _reasons=_reasons(rows),
        )


def verify_export(path: Path, noted: str = "") -> Verified:
    """Follow the chain of an export, and hold what it leaves out against its policy's rules.

    What a policy left out and the file does not show cannot be held against anything: votes
    that were made to look left out are found in an export of all votes, or in the database.

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

    Up to the first row that no export has. A vote that the file does not show has the columns of
    the chain alone, and its ``left_out``.
    """
    votes: list[Row] = []
    verified = _verified(path, noted, votes.append)
    return verified, [row for row in votes if row["link_kind"] == "vote"]


def _verified(path: Path, noted: str, take: Callable[[Row], object]) -> Verified:
    with _reading(path) as file:
        verified = follow(file.links(take), noted)
        problem = file.odd or verified.problem or file.end(verified) or file.doubled()
    return replace(verified, problem=problem)


def _malformed(row: Row) -> str | None:
    """Say what is wrong with a row as such, if anything: what no export has."""
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
    checks: Sequence[tuple[str, bool]] = (
        ("link", is_whole(row["link"], 1)),
        ("links", is_whole(row["links"], 1)),
        ("content", _is_hash(row["content"])),
        ("hash", _is_hash(row["hash"])),
        ("judge", row["judge"] is None),
        ("policy", row["policy"] in POLICY),
        ("link_kind", row["link_kind"] in ("vote", "exclusion", "mark", "tombstone")),
    )
    if (odd := next((name for name, good in checks if not good), None)) is not None:
        return odd
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
        case "vote":
            good = _is_reason(row["left_out"]) and row["left_out"] != NO_VOTE
        case _:  # an exclusion without what it binds
            good = row["left_out"] == TAKEN_OUT
    there = (name for name in COLUMNS if name not in (*_OF_CHAIN, *shown))
    more = next((name for name in there if row[name] is not None), None)
    return more or (None if good else "left_out")


def _misfit_of_vote(row: Row) -> str | None:
    for name in (*chain.BOUND, "person"):
        if not (name in _MAY_LACK and row[name] is None) and not fits(COLUMNS[name], row[name]):
            return name
    if row["winner"] not in [*Choice]:
        return "winner"
    if row["voter_kind"] not in [*VoterKind]:
        return "voter_kind"
    labels = [name for name in LABELS if row[name] is not None]
    if (
        odd := next((name for name in labels if not fits(COLUMNS[name], row[name])), None)
    ) is not None:
        return odd
    if bool(labels) != (row["tagger"] is not None):
        return "tagger"
    for name in ("refused_a", "refused_b"):
        if row[name] not in (None, 0, 1) or (row[name] is None) != (row["refused_a"] is None):
            return name
    if (odd := _misfit_of_remarks(row)) is not None:
        return odd
    for name in ("exclusion", "tombstone"):
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
    return bool(value) and value.strip() == value and is_storable(value)


def _is_bound(text: str, names: Sequence[str]) -> bool:
    """Say whether JSON is of what an exclusion or a tombstone binds, as an export writes it."""
    try:
        bound = _json(text)
        moment = datetime.fromisoformat(bound["ts"])
        is_exact = list(bound) == list(names) and chain.plain(moment) == bound["ts"]
        links = bound["links"] if "links" in names else [bound["vote"]]
        texts = [bound[name] for name in names if name not in ("links", "vote", "ts")]
        return (
            is_exact
            and links == sorted({*links})
            and all(is_whole(link, 1) for link in links)
            and all(isinstance(text, str) and is_storable(text) for text in texts)
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _json(text: str) -> dict[str, Any]:
    bound: dict[str, Any] = json.loads(text)
    return bound


def _reasons(rows: Relation) -> dict[int, tuple[str, ...]]:
    """Read why votes are left out by exclusions that stand, by their links."""
    reasons: dict[int, tuple[str, ...]] = {}
    excluding = rows.filter("exclusion IS NOT NULL").project("exclusion, policy, link")
    excluding = excluding.order("TRY_CAST(link AS BIGINT)")
    for text, policy, _ in streamed(excluding):
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
            return "a tombstone"
    return "a vote that is not shown" if row["winner"] is None else _the_vote(row)


def _the_vote(row: Row) -> str:
    return f"the vote on battle {row['battle_id']!r}"


def _bound(row: Row) -> str | None:
    if row["exclusion"] is not None:
        return chain.exclusion_content(_json(row["exclusion"]))
    if row["tombstone"] is not None:
        return chain.tombstone_content(_json(row["tombstone"]))
    if row["winner"] is None:
        return None
    return chain.vote_content({**row, "ts": row["ts"].replace(tzinfo=UTC)})
