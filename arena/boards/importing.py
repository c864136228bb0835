"""Exports that come in again: rows that are validated one by one, into an empty database."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from arena.boards.dataset import COLUMNS
from arena.boards.export_file import Row, columns_of, is_storable, misfit, rows_of, where
from arena.boards.ratings import MODELS
from arena.boards.record_file import POLICY, RecordFile, misfit_of_remarks, reading_record
from arena.boards.transcripts import ANSWERS, BATTLES, whole_rows
from arena.domain.battle import AnswerStatus, BattleState, Mode, Side
from arena.domain.model import Kind
from arena.domain.vote import DEFAULT, Choice, VoterKind
from arena.errors import BrokenRecordError
from arena.store import transcripts
from arena.store.chain import TAKEN_OUT
from arena.store.importing import BATCH, Incoming, incoming
from arena.store.verify import follow
from judge.tables.style import STYLES, style_of
from rating.errors import DataError
from rating.tables.files import SHOWN, kind_of, parsed, require_file
from rating.tables.writing import FORMATS

COLUMNS_OF = {"votes": COLUMNS, "battles": BATTLES, "answers": ANSWERS, "models": MODELS}
"""Columns of what can be imported."""
Progress = Callable[[int, int, str], object]
"""Called with the rows of a file that are done, how many there are if that is known, and what."""
_WORDS: Mapping[str, Sequence[str | None]] = {
    "mode": [*Mode],
    "state": [*BattleState],
    "voter_kind": [*VoterKind],
    "winner": [*Choice, None],
    "policy": [*POLICY],
}
"""What may stand in columns of battles."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What came in; ``withheld`` are votes of which the file shows the hashes alone.

    ``votes`` are those that there are, with these, and without any that was taken out.
    """

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
    files = [file for file in sorted(path.iterdir()) if file.suffix in FORMATS]
    for folder in (path, *sorted(path.iterdir())):
        files += sorted(folder.glob("data/train-00000-of-*.parquet"))  # stands for all shards
    return [file for file in files if file.is_file() and file.stat().st_size]  # no row, no columns


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


def import_record(what: Exported, url: str, now: datetime, progress: Progress) -> Imported:
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
        if what.battles is not None:
            _number(what.battles, writer)
        done = _links(file, writer, progress)
        if what.battles is not None and what.answers is not None:
            _battles(what.battles, writer, progress)
            _answers(what.answers, writer, progress)
            _turns(what.battles, writer)
            _hold(what.battles, writer, progress)
        return done


def _models(path: Path, writer: Incoming) -> None:
    """Write the models of an export."""
    known: set[str] = set()
    may_lack = ("organisation", "licence", "fingerprint")
    for place, row in rows_of(path, MODELS, "arena export models", may_lack):
        if row["model"] in known:
            raise DataError(f"{where(path, place)}: the model {row['model']!r} is there twice.")
        if row["kind"] not in [*Kind]:
            raise misfit(path, place, "kind", row["kind"])
        known.add(row["model"])
        writer.model({**row, **{name: row[name] or "" for name in may_lack}})


def _number(path: Path, writer: Incoming) -> None:
    """Give numbers to the battles of an export in their order; one that is doubled is refused."""
    for batch in _batches(_battle_rows(path)):
        if (twice := writer.number([row["battle_id"] for _, row in batch])) is not None:
            raise DataError(f"The battle {twice!r} is twice in {str(path)!r}.")


def _battles(path: Path, writer: Incoming, progress: Progress) -> None:
    """Write the battles of an export."""
    for batch in _batches(_battle_rows(path)):
        progress(batch[-1][0], batch[-1][0], ": battles")
        if (odd := writer.battles([row for _, row in batch])) is not None:
            place, row = next(one for one in batch if one[1]["battle_id"] == odd)
            there, not_there = ("has a vote", "shows none")
            if row["winner"] is None:
                there, not_there = ("has no vote", "shows one")
            msg = (
                f"{where(path, place)}: the battle {odd!r} {there}, and the file of votes "
                f"{not_there}. Export both with --all, or both without."
            )
            raise DataError(msg)


def _battle_rows(path: Path) -> Iterator[tuple[int, Row]]:
    needed = {
        *("battle_id", "model_a", "model_b", "voter", "voter_kind", "conversation", "turns"),
        *("mode", "state", "created", "pair_probability", "repicks", "pacing", "sampler"),
        *("sampler_version", "policy", "scrubbed", "erased"),
    }
    texts = ("prompt", "response_a", "response_b", "conversation", "comment")
    for place, row in rows_of(path, BATTLES, "arena export battles", {*BATTLES} - needed, texts):
        for name, known in _WORDS.items():
            if row[name] not in known:
                raise misfit(path, place, name, row[name])
        if odd := misfit_of_remarks(row):
            raise misfit(path, place, odd, row[odd])
        yield place, row


def _answers(path: Path, writer: Incoming, progress: Progress) -> None:
    """Write the answers of an export."""
    needed = {
        *("battle_id", "turn", "side", "attempt", "model", "status", "created"),
        *("scrubbed", "erased"),
    }
    rows = rows_of(path, ANSWERS, "arena export answers", {*ANSWERS} - needed, ("text",))
    for batch in _batches(_measured(path, place, row) for place, row in rows):
        progress(batch[-1][0], batch[-1][0], ": answers")
        if (odd := writer.answers([row for _, row in batch])) is not None:
            place, _ = next(one for one in batch if one[1]["battle_id"] == odd)
            msg = f"{where(path, place)}: the battle {odd!r} is not among the battles."
            raise DataError(msg)


def _measured(path: Path, place: int, row: Row) -> tuple[int, Row]:
    """Give an answer with what is said of its text, where the text alone would say other."""
    for name, known in (("side", [*Side]), ("status", [*AnswerStatus]), ("erased", (0, 1))):
        if row[name] not in known:
            raise misfit(path, place, name, row[name])
    if row["erased"]:
        odd = next((name for name in ("text", *STYLES) if row[name] is not None), None)
        if odd is not None:
            raise misfit(path, place, odd, row[odd])
        return place, {**row, "measured": None}
    if odd := next((name for name in STYLES if row[name] is None), None):
        raise misfit(path, place, odd, None)
    text = row["text"] or ""  # a CSV has no other way to write an empty one
    of_text = {name: row[name] for name in STYLES}
    is_whole = not row["scrubbed"] and of_text == style_of(text)
    measured = None if is_whole else {**of_text, "scrubbed": row["scrubbed"]}
    return place, {**row, "text": text, "measured": measured}


def _turns(path: Path, writer: Incoming) -> None:
    """Write the prompts of an export of battles."""
    for batch in _batches(_battle_rows(path)):
        writer.turns([(row, _asked(path, place, row)) for place, row in batch])


def _asked(path: Path, place: int, row: Row) -> list[str | None]:
    try:
        turns = parsed(row["conversation"], where(path, place))
        asked = [turn["prompt"] for turn in turns]
    except (DataError, TypeError, KeyError):
        asked = [0]
    if not all(one is None or (isinstance(one, str) and is_storable(one)) for one in asked):
        raise misfit(path, place, "conversation", row["conversation"])
    return asked


def _hold(path: Path, writer: Incoming, progress: Progress) -> None:
    """Hold the battles of an export against those that were written, each value of each row."""
    rows, pieces = _battle_rows(path), dict[str, int]()
    with writer.session() as session:
        made: Iterator[Row] = iter(())
        for place, row in rows:
            if place == 1:
                policy = POLICY.get(row["policy"], DEFAULT)
                made = whole_rows(transcripts.battles(session, policy, voted=False), policy)
            ours = next(made)
            progress(place, place, ": battles held against answers")
            gone = row["scrubbed"] - ours["scrubbed"]
            values = {**ours, "scrubbed": ours["scrubbed"] + max(0, gone)}
            for name in BATTLES:
                if _plain(name, row[name]) != _plain(name, values.get(name)):
                    msg = (
                        f"{where(path, place)}: {name} is {repr(row[name])[:SHOWN]}, and by the "
                        f"votes and answers it is {repr(values.get(name))[:SHOWN]}."
                    )
                    raise DataError(msg)
            if gone:
                pieces[row["battle_id"]] = gone
            if len(pieces) >= BATCH:
                writer.scrubbed(pieces)
                pieces.clear()
    writer.scrubbed(pieces)


def _plain(name: str, value: Any) -> Any:
    """Give a value as it is compared, alike from a file and from the database."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if name == "conversation":
        return parsed(value, "A conversation")
    return None if value == "" else value


def _batches(rows: Iterable[tuple[int, Row]]) -> Iterator[list[tuple[int, Row]]]:
    left = iter(rows)
    while some := list(islice(left, BATCH)):
        yield some


def _links(file: RecordFile, writer: Incoming, progress: Progress) -> Imported:
    """Follow the chain of a file, and write each link as it is followed."""
    counts = {"vote": 0, "withheld": 0}

    def take(row: Row) -> None:
        if row["link_kind"] == "vote" and row["left_out"] != TAKEN_OUT:
            counts["vote"] += 1
            counts["withheld"] += row["winner"] is None
        _take(writer, row)
        writer.flush()
        progress(row["link"], file.total, ": votes")

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
