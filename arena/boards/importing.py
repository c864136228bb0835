"""Exports that come in again: rows that are validated one by one, into an empty database."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from arena.boards.dataset import COLUMNS
from arena.boards.export_file import Row, columns_of, misfit, rows_of, where
from arena.boards.ratings import MODELS
from arena.boards.record_file import RecordFile, reading_record
from arena.boards.transcripts import ANSWERS, BATTLES
from arena.domain.model import Kind
from arena.errors import BrokenRecordError
from arena.store.importing import Incoming, incoming
from arena.store.verify import follow
from rating.errors import DataError
from rating.tables.files import kind_of, require_file
from rating.tables.writing import FORMATS

COLUMNS_OF = {"votes": COLUMNS, "battles": BATTLES, "answers": ANSWERS, "models": MODELS}
"""Columns of what can be imported."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What came in; ``withheld`` are votes of which the file shows the hashes alone."""

    links: int
    votes: int
    withheld: int
    head: str


@dataclass(frozen=True, slots=True)
class Exported:
    """Files of an arena, by what was exported to them; None of what is not there."""

    votes: Path
    models: Path | None = None
    battles: Path | None = None
    answers: Path | None = None


def exported(paths: Sequence[Path]) -> Exported:
    """Say what files hold, or those in a folder, by their columns; leaderboards are passed over.

    Raises
    ------
    DataError
        If a file is no export of an arena, two are of the same kind, or votes are not there.
    """
    known: dict[str, Path] = {}
    for path in [file for named in paths for file in _files_of(named)]:
        what = _kind_of_export(path)
        if what in known:
            msg = f"{str(known[what])!r} and {str(path)!r} both hold {what}: name one of them."
            raise DataError(msg)
        known[what] = path
    known.pop("ratings", None)
    if "votes" not in known:
        names = ", ".join(map(str, paths)) or "nothing"
        msg = f"Cannot import {names!r}: give a file that arena export votes wrote, or its folder."
        raise DataError(msg)
    if ("battles" in known) != ("answers" in known):
        one, other = ("battles", "answers")[:: 1 if "battles" in known else -1]
        msg = f"{str(known[one])!r} holds {one}: give the file of {other} with it."
        raise DataError(msg)
    return Exported(**known)


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        require_file(path)
        return [path]
    return [file for file in sorted(path.iterdir()) if file.suffix in FORMATS and file.is_file()]


def _kind_of_export(path: Path) -> str:
    """Say what was exported to a file: what it has the most columns of."""
    if not kind_of(path):
        msg = f"Cannot import {str(path)!r}: name a file that ends in {', '.join(FORMATS)}."
        raise DataError(msg)
    there = columns_of(path)
    if not {"rating", "rank_low", "rank_high"} - there:
        return "ratings"
    shares = {what: len(there & {*columns}) / len(columns) for what, columns in COLUMNS_OF.items()}
    return max(shares, key=lambda what: shares[what])


def import_record(
    what: Exported, url: str, now: datetime, progress: Callable[[int, int], None]
) -> Imported:
    """Write an export of votes into a database in which nobody has played, all or nothing.

    Raises
    ------
    DataError
        If a file cannot be read, or a row is none that an export has.
    BrokenRecordError
        If the record does not verify.
    StoreError
        If the database is in use, or cannot be written.
    """
    with reading_record(what.votes, "import") as file, incoming(url, now) as writer:
        if what.models is not None:
            _models(what.models, writer)
        return _links(file, writer, progress)


def _models(path: Path, writer: Incoming) -> None:
    """Write the models of an export."""
    known: set[str] = set()
    for place, row in rows_of(path, MODELS, "arena export models", texts=("licence",)):
        if row["model"] in known:
            raise DataError(f"{where(path, place)}: the model {row['model']!r} is there twice.")
        if row["kind"] not in [*Kind]:
            raise misfit(path, place, "kind", row["kind"])
        known.add(row["model"])
        writer.model(row)


def _links(file: RecordFile, writer: Incoming, progress: Callable[[int, int], None]) -> Imported:
    """Follow the chain of a file, and write each link as it is followed."""
    counts = {"vote": 0, "withheld": 0}

    def take(row: Row) -> None:
        counts["vote"] += row["link_kind"] == "vote"
        counts["withheld"] += row["link_kind"] == "vote" and row["winner"] is None
        _take(writer, row)
        writer.flush()
        progress(row["link"], file.total)

    verified = follow(file.links(take))
    problem = file.odd or verified.problem or file.end(verified)
    if problem:
        msg = f"Cannot import {str(file.path)!r}, and nothing was. {problem}"
        raise BrokenRecordError(msg)
    writer.end()
    return Imported(verified.links, counts["vote"], counts["withheld"], verified.head)


def _take(writer: Incoming, row: Row) -> None:
    match row["link_kind"]:
        case "mark":
            writer.mark(row)
        case "vote" if row["winner"] is not None:
            writer.vote(row)
        case "exclusion" if row["exclusion"] is not None:
            writer.exclusion(row, json.loads(row["exclusion"]))
        case "tombstone":
            writer.other(row, "", json.loads(row["tombstone"]))
        case _:
            writer.other(row, row["left_out"], None)
