"""`arena judge run --batch`: files of requests for a batch endpoint, and what came back."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from arena.commands.judge_work import Work, in_words
from arena.errors import EndpointError
from arena.terminal import say, write_json
from rating.errors import DataError
from rating.tables.bounds import ENTRY, in_mb
from rating.tables.files import replacing, require_file

if TYPE_CHECKING:
    from arena.endpoints.batches import Limits, Line
    from arena.store.judgements import StoredJournal
    from judge.calls import Call, Key
    from judge.completion import Reply

Batch = tuple[Literal["write", "read"], Path]
REQUESTS = "requests-"
"""Beginning of the names of files that are to be sent."""
SHOWN = 5
"""Sentences on single lines that are shown."""


def batched(work: Work, journal: "StoredJournal", batch: Batch, form: str) -> None:
    """Write what a run would ask into a folder, or read what came back from one."""
    what, folder = batch
    if what == "write":
        _show_written(work, journal, folder, form)
    else:
        _show_read(asyncio.run(_read(work, journal, folder)), folder, form)


def _show_written(work: Work, journal: "StoredJournal", folder: Path, form: str) -> None:
    from judge.checklists import forecast_all

    _require_new(folder)
    estimate = asyncio.run(forecast_all(work.cases, work.method, journal, work.options))
    discount = work.model.judging.batch_discount
    if estimate.cost_usd is not None:
        estimate = replace(estimate, cost_usd=estimate.cost_usd * (1 - discount))
    files, n = asyncio.run(_write(work, journal, folder))
    if form == "json":
        write_json({"folder": str(folder), "files": files, "n": n, **estimate.to_dict()})
        return
    if not n:
        say("Nothing is due, so nothing was written: the same command without --batch judges.")
        return
    in_files = "one file" if len(files) == 1 else f"{len(files):,} files"
    say(f"{folder}: {n:,} requests in {in_files}. {in_words(estimate)}")
    if n < estimate.n_calls and work.method.by_checklist:
        say("These write the checklists that are not there; read them, and write again.")
    say("Send them, put what comes back into the folder, and give --batch read.")


def _require_new(folder: Path) -> None:
    """Raise `DataError` for a folder with requests: they may have been sent, and be paid for."""
    with suppress(FileNotFoundError, NotADirectoryError):
        there = next(iter(sorted(folder.glob(f"{REQUESTS}*"))), None)
        if there is not None:
            msg = f"{str(there)!r} is there already, and may have been sent: name another folder."
            raise DataError(msg)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"Cannot write {str(folder)!r}: {error.strerror}. Name a folder."
        raise DataError(msg) from error


async def _write(work: Work, journal: "StoredJournal", folder: Path) -> tuple[list[str], int]:
    from arena.endpoints.batches import LIMITS, format_of, request_of
    from judge.checklists import each_due

    model, terms = work.model, work.options.terms
    assert terms is not None
    kind, n = format_of(model), 0
    if kind == "anthropic" and work.method.description.parameters.top_logprobs is not None:
        msg = (
            f"{model.id!r} takes batches in Anthropic's format, which has no log-probabilities, "
            f"and {work.method.name} reads nothing else: take a method that reads words."
        )
        raise DataError(msg)
    files = _Requests(folder, LIMITS[kind], as_list=kind == "anthropic")
    try:
        async for call in each_due(work.cases, work.method, journal, work.options):
            decoding = terms.decoding(call.request.parameters)
            request = call.request.messages
            files.add(request_of(model, call.key, request, decoding, terms.lessons))
            n += 1
        return files.done(), n
    except OSError as error:
        msg = f"Cannot write into {str(folder)!r}: {error.strerror}."
        raise DataError(msg) from error


class _Requests:
    """Writes requests into as many files as the limits ask for; none has its name too soon.

    Parameters
    ----------
    as_list : bool
        Write an object with a list of requests, as Anthropic's endpoint takes it in one request;
        else a line each.
    """

    def __init__(self, folder: Path, limits: "Limits", *, as_list: bool) -> None:
        self._folder, self._limits, self._as_list = folder, limits, as_list
        self._files: list[Path] = []
        self._lines: list[str] = []
        self._bytes = 0

    def add(self, line: str) -> None:
        """Add a request; raises `DataError` for one that no file takes."""
        size = len(line) + 2
        if size > self._limits.bytes - 20:
            msg = f"A request of {size:,} bytes is more than a batch takes: leave its case out."
            raise DataError(msg)
        full = len(self._lines) == self._limits.requests
        if full or self._bytes + size > self._limits.bytes - 20:
            self._end()
        self._lines.append(line)
        self._bytes += size

    def done(self) -> list[str]:
        """End the last file, and name all."""
        if self._lines:
            self._end()
        for part in self._files:
            part.rename(part.with_suffix(""))
        return [part.stem for part in self._files]

    def _end(self) -> None:
        ending = "json" if self._as_list else "jsonl"
        part = self._folder / f"{REQUESTS}{len(self._files) + 1:04}.{ending}.part"
        with replacing(part) as made, made.open("w", encoding="ascii") as file:
            if self._as_list:
                file.write('{"requests": [\n' + ",\n".join(self._lines) + "\n]}\n")
            else:
                file.writelines(f"{line}\n" for line in self._lines)
        self._files.append(part)
        self._lines, self._bytes = [], 0


@dataclass(slots=True)
class _Read:
    """What was read.

    Attributes
    ----------
    new : int
        Replies that are in the journal now, and were not before.
    known : int
        Answers to calls whose reply the journal had.
    twice : int
        Further answers to one request.
    failed : Counter
        Calls that are due still though a line came back, by the class of the failure.
    missing : int
        Calls that are due and of which no line came back.
    unknown : int
        Lines for none of the calls.
    malformed : int
        Lines that cannot be read.
    cost_usd : float or None
        Of the replies kept now.
    sentences : list of str
        On single lines.
    """

    files: int = 0
    new: int = 0
    known: int = 0
    twice: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    unknown: int = 0
    malformed: int = 0
    cost_usd: float | None = None
    sentences: list[str] = field(default_factory=list)

    @property
    def due(self) -> int:
        """Calls that are still to be made."""
        return self.missing + self.failed.total()

    def say(self, sentence: str) -> None:
        """Add a sentence on a line, unless there are enough."""
        if len(self.sentences) < SHOWN:
            self.sentences.append(sentence)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        counts = ("files", "known", "twice", "missing", "unknown", "malformed", "due")
        return {
            "kept": self.new,
            **{name: getattr(self, name) for name in counts},
            "failed": dict(self.failed),
            "cost_usd": self.cost_usd,
            "sentences": self.sentences,
        }


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a line stands."""

    file: Path
    offset: int
    reached: bool


async def _read(work: Work, journal: "StoredJournal", folder: Path) -> _Read:
    from judge.checklists import each_due

    read, failed = _Read(), set[str]()
    places = _index(folder, read)

    async def take(calls: "Sequence[Call]", known: "Mapping[Key, Reply]") -> "dict[Key, Reply]":
        replies: dict[Key, Reply] = {}
        for call in calls:
            place = places.pop(call.key, None)
            if place is None:
                continue
            if call.key in known:
                read.known += 1
            elif (reply := _reply(work, call, place, read)) is not None:
                replies[call.key] = reply
            else:
                failed.add(call.key)
        new = [call for call in calls if call.key in replies]
        await asyncio.gather(*(journal.keep(c.key, c.request, replies[c.key]) for c in new))
        for call in new:
            read.new += 1
            _book(work, call, replies[call.key], read)
        return replies

    async for call in each_due(work.cases, work.method, journal, work.options, take):
        read.missing += call.key not in failed
    read.unknown = len(places)
    for custom_id, place in [*places.items()][:1]:
        read.say(f"{place.file.name} answers {custom_id[:80]!r}, which is no call of this run.")
    return read


def _index(folder: Path, read: _Read) -> dict[str, _Place]:
    """Find the line that answers each request: the first answer, else what is said instead."""
    places: dict[str, _Place] = {}
    for file in _results(folder):
        read.files += 1
        for offset, line in _lines(file, read):
            before = places.get(line.custom_id)
            if before is None or (line.reached and not before.reached):
                places[line.custom_id] = _Place(file, offset, line.reached)
            else:
                read.twice += line.reached and before.reached
    return places


def _results(folder: Path) -> list[Path]:
    try:
        files = sorted(
            file
            for file in folder.iterdir()
            if file.suffix in (".jsonl", ".json") and not file.name.startswith(REQUESTS)
        )
    except OSError as error:
        msg = f"Cannot read {str(folder)!r}: {error.strerror}. Name the folder of the results."
        raise DataError(msg) from error
    for file in files:
        require_file(file)
    if not files:
        msg = f"There are no results in {str(folder)!r}: put the files that came back there."
        raise DataError(msg)
    return files


def _lines(file: Path, read: _Read) -> "Iterator[tuple[int, Line]]":
    """Give the lines of results, and where they begin; count those that cannot be read."""
    from arena.endpoints.batches import line_of

    offset = 0
    with file.open("rb") as lines:
        for number, raw in enumerate(iter(lambda: lines.readline(ENTRY + 1), b""), 1):
            if len(raw) > ENTRY:
                msg = (
                    f"Line {number} of {str(file)!r} is longer than {in_mb(ENTRY)}: leave it out."
                )
                raise DataError(msg)
            begin, offset = offset, offset + len(raw)
            if not raw.strip():
                continue
            try:
                line = line_of(raw.decode())
            except (ValueError, RecursionError) as error:
                read.malformed += 1
                read.say(f"Line {number} of {file.name} cannot be read: {str(error)[:80]}.")
                continue
            if line is not None:
                yield begin, line


def _reply(work: Work, call: "Call", place: _Place, read: _Read) -> "Reply | None":
    """Give the reply that a line holds; None, counted by class, where it holds none."""
    from arena.endpoints.batches import answer_of, line_of
    from arena.endpoints.chat import label
    from arena.judging import as_call_error, filtered, reply_of

    with place.file.open("rb") as file:
        file.seek(place.offset)
        line = line_of(file.readline().decode())
    assert line is not None
    try:
        reply = reply_of(answer_of(line))
    except EndpointError as error:
        refused = filtered(error)
        if refused is not None:
            return refused
        call_error = as_call_error(error)
        failure, paid = call_error.failure, call_error.paid
        if paid is not None:
            _book(work, call, paid, read)
        read.failed[failure.value] += 1
        read.say(f"{failure.value}: {label(error.detail).rstrip('.')}.")
        return None
    return replace(reply, discount=work.model.judging.batch_discount)


def _book(work: Work, call: "Call", reply: "Reply", read: _Read) -> None:
    from judge.budget import cost_of

    discounted = replace(reply, discount=work.model.judging.batch_discount)
    cost = cost_of(call.request, discounted, work.options.price)
    if cost is not None:
        read.cost_usd = (read.cost_usd or 0.0) + cost


def _show_read(read: _Read, folder: Path, form: str) -> None:
    """Say what was read; end with 1 while calls are due."""
    if form == "json":
        write_json({"folder": str(folder), **read.to_dict()})
    else:
        cost = "" if read.cost_usd is None else f" for ${read.cost_usd:.4g}"
        say(f"{folder}: {read.new:,} replies kept{cost}, {read.known:,} known before.")
        failed = [f"{n:,} {failure}" for failure, n in sorted(read.failed.items())]
        if failed:
            say(f"! Without an answer: {', '.join(failed)}.")
        for n, what in (
            (read.missing, "calls are in no file"),
            (read.unknown, "answers are to no call of this run, and were left alone"),
            (read.twice, "requests were answered more than once: the first answer stands"),
            (read.malformed, "lines cannot be read"),
        ):
            if n:
                say(f"! {n:,} {what}.")
        for sentence in read.sentences:
            say(f"! {sentence}")
        say(
            f"{read.due:,} calls are due: --batch write gives them to another batch, and the same "
            "command without --batch asks them, at the price without a batch."
            if read.due
            else "Nothing is due: the same command without --batch writes the verdicts."
        )
    if read.due:
        sys.exit(1)
