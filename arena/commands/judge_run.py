"""`arena judge run` and `arena judge work`: verdicts of a judge, one at a time or in batches.

With ``--batch`` nothing is asked: files of requests for a batch endpoint are written, or the
results that came back are read.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from arena.commands.arguments import File, Flat, TableOrJson
from arena.commands.judge import on_fallback, with_second
from arena.commands.judge_work import (
    IFEVAL,
    JudgeOptions,
    Seat,
    Task,
    Work,
    done,
    in_words,
    prepared,
    show_estimate,
)
from arena.errors import EndpointError
from arena.terminal import announced, say, stop, write_json
from rating.errors import DataError
from rating.sentences import concerning, foremost, plural
from rating.tables.files import ENTRY, in_mb, replacing, require_file

if TYPE_CHECKING:
    from arena.endpoints.chat import Limits, Line
    from judge.calls import Call, Key, Options
    from judge.case import Reply
    from judge.verdict import Run


# Batches

Place = tuple[Path, int, bool]
"""Where a line stands: the file and the offset, and whether the request was answered there."""
Batch = tuple[Literal["write", "read"], Path]
REQUESTS = "requests-"
"""Beginning of the names of files that are to be sent."""
SHOWN = 5
"""Sentences on single lines that are shown."""


def _show_written(work: Work, folder: Path, form: str) -> None:
    from judge.runs import forecast_all

    # No folder with requests: they may have been sent, and be paid for.
    with suppress(FileNotFoundError, NotADirectoryError):
        there = next(iter(sorted(folder.glob(f"{REQUESTS}*"))), None)
        if there is not None:
            raise DataError(f"{str(there)!r} exists, and may have been sent: name another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"Cannot write {str(folder)!r}: {error.strerror}. Name a folder."
        raise DataError(msg) from error
    estimate = asyncio.run(forecast_all(work.cases, work.method, work.journal, work.options))
    discount = work.model.judging.batch_discount
    if estimate.cost_usd is not None:
        estimate = replace(estimate, cost_usd=estimate.cost_usd * (1 - discount))
    files, n = asyncio.run(_write(work, folder))
    if form == "json":
        write_json({"folder": str(folder), "files": files, "n": n, **estimate.to_dict()})
        return
    if not n:
        say("Nothing is due or written: run the same command without --batch to judge.")
        return
    written = f"{plural(n, 'request')} in {plural(len(files), 'file')}"
    say(f"{folder}: {written}. {in_words(estimate)}")
    if n < estimate.n_calls and work.method.by_checklist:
        say("These requests write the missing checklists; read the results, and write again.")
    say("Send them, put the results into the folder, and run with --batch read.")


async def _write(work: Work, folder: Path) -> tuple[list[str], int]:
    from arena.endpoints.chat import LIMITS, format_of, request_of
    from judge.runs import each_due

    model, terms = work.model, work.options.terms
    assert terms is not None
    kind, n = format_of(model), 0
    if kind == "anthropic" and work.method.description.parameters.top_logprobs is not None:
        raise DataError(
            f"{model.id!r} takes batches in Anthropic's format, which has no log-probabilities, "
            f"and {work.method.name} needs them: choose a method that parses text."
        )
    files = _Requests(folder, LIMITS[kind], as_list=kind == "anthropic")
    try:
        async for call in each_due(work.cases, work.method, work.journal, work.options):
            decoding = terms.decoding(call.request.parameters)
            request = call.request.messages
            files.add(request_of(model, call.key, request, decoding, terms.lessons))
            n += 1
        return files.done(), n
    except OSError as error:
        raise DataError(f"Cannot write into {str(folder)!r}: {error.strerror}.") from error


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
            msg = f"A request of {size:,} bytes is larger than a batch allows: exclude its case."
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


async def _read(work: Work, folder: Path) -> _Read:
    from judge.runs import each_due

    read, failed = _Read(), set[str]()
    places: dict[str, Place] = {}
    for file in _results(folder):
        read.files += 1
        for offset, line in _lines(file, read):
            before = places.get(line.custom_id)
            if before is None or (line.reached and not before[2]):
                places[line.custom_id] = (file, offset, line.reached)
            else:
                read.twice += line.reached and before[2]

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
        keep = work.journal.keep
        await asyncio.gather(*(keep(c.key, c.request, replies[c.key]) for c in new))
        for call in new:
            read.new += 1
            _book(work, call, replies[call.key], read)
        return replies

    async for call in each_due(work.cases, work.method, work.journal, work.options, take):
        read.missing += call.key not in failed
    read.unknown = len(places)
    for custom_id, place in [*places.items()][:1]:
        read.say(f"{place[0].name} answers {custom_id[:80]!r}, which is no call of this run.")
    return read


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
    from arena.endpoints.chat import line_of

    offset = 0
    with file.open("rb") as lines:
        for number, raw in enumerate(iter(lambda: lines.readline(ENTRY + 1), b""), 1):
            if len(raw) > ENTRY:
                msg = f"Line {number} of {str(file)!r} is longer than {in_mb(ENTRY)}: remove it."
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


def _reply(work: Work, call: "Call", place: Place, read: _Read) -> "Reply | None":
    """Give the reply that a line holds; None, counted by class, where it holds none."""
    from arena.endpoints.chat import answer_of, label, line_of
    from arena.judging import as_call_error, filtered, reply_of

    path, offset, _ = place
    with path.open("rb") as file:
        file.seek(offset)
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
    """Describe what was read; end with 1 while calls are due."""
    if form == "json":
        write_json({"folder": str(folder), **read.to_dict()})
    else:
        cost = "" if read.cost_usd is None else f" for ${read.cost_usd:.4g}"
        say(f"{folder}: {read.new:,} new replies{cost}, {read.known:,} reused.")
        failed = [f"{n:,} {failure}" for failure, n in sorted(read.failed.items())]
        if failed:
            say(f"! Failed: {', '.join(failed)}.")
        for n, what in (
            (read.missing, "Calls in no file"),
            (read.unknown, "Answers to no call of this run, ignored"),
            (read.twice, "Requests answered more than once, where the first answer counts"),
            (read.malformed, "Lines that cannot be read"),
        ):
            if n:
                say(f"! {what}: {n:,}.")
        for sentence in read.sentences:
            say(f"! {sentence}")
        say(
            f"Calls due: {read.due:,}. Use --batch write, or no --batch at the full price."
            if read.due
            else "Nothing is due: run the same command without --batch to write the verdicts."
        )
    if read.due:
        sys.exit(1)


# Runs

Report = Mapping[str, Any]
MaxUnparsed = Annotated[float, Parameter(metavar="SHARE", validator=Number(gte=0, lte=1))]


def run(
    *,
    task: Annotated[Task, Flat],
    options: Annotated[JudgeOptions, Flat] = JudgeOptions(),  # noqa: B008 - it is frozen
    out: File = None,
    dry_run: bool = False,
    length_margin: Annotated[int | None, Parameter(metavar="K")] = None,
    fallback: Annotated[str | None, Parameter(metavar="METHOD")] = None,
    fallback_judge: Annotated[str | None, Parameter(metavar="MODEL")] = None,
    batch: Annotated[Batch | None, Parameter(metavar="write|read FOLDER")] = None,
    certificate: File = None,
    max_unparsed: MaxUnparsed = 0.1,
    form: TableOrJson = "table",
) -> None:
    """Judge pairs of answers in both orders, or score single answers, with a language model.

    Replies are stored in the database, so that an interrupted run resumes; no stored reply is
    paid for again.
    Exit code 1: stopped with cases pending, or too many replies could not be parsed.

    Parameters
    ----------
    out
        Output file for the verdicts: .parquet, .csv or .jsonl.
    dry_run
        Only show the number of requests and their cost.
    length_margin
        For wildbench_reward and similar methods: a slight win by an answer that is longer by more
        than this many characters is a tie. Default: the method's (500); negative: off.
    fallback
        Method to use instead if no reply has log-probabilities; for alpaca_eval: `sampled`
        (alpaca_eval_sampled).
    fallback_judge
        Model in the roster that replaces a judge when its endpoint fails or it refuses a case.
        Each verdict names its judge.
    batch
        write: write requests to files for a batch endpoint (OpenAI or Anthropic format). read:
        read the results from this folder; then run the command without --batch. Used instead of
        --out.
    certificate
        Validation certificate of `arena study judge`: warns of pairs that it does not cover; if it
        covers none, nothing is run.
    max_unparsed
        Maximum share of replies that cannot be parsed. Above it, the first such reply is shown and
        the exit code is 1; the file is written.
    form
        Output format.

    Examples
    --------
    arena judge run --method pairwise --judge pocket-judge --cases pairs.csv --out found.csv
    arena judge run --method pairwise --judge pocket-judge --cases pairs.csv --dry-run
    """
    from judge.tables.verdicts import require_writable, write_judged

    if batch is not None:
        _require_batch_alone(
            batch,
            task.method,
            options,
            out=out,
            dry_run=dry_run,
            fallback=fallback,
            fallback_judge=fallback_judge,
        )
    elif out is not None:
        require_writable(out)
    elif not dry_run:
        msg = "Name the file for the verdicts with --out, or ask for the cost with --dry-run."
        raise DataError(msg)
    if task.method == IFEVAL:
        _check(task, options.judge, out, form)
        return
    with prepared(options, task, length_margin, second=fallback_judge, several=True) as work:
        if work.others:
            _require_jury(work, batch, fallback, certificate)
        beyond = () if certificate is None else _beyond(certificate, work)
        if batch is not None:
            what, folder = batch
            if what == "write":
                _show_written(work, folder, form)
            else:
                _show_read(asyncio.run(_read(work, folder)), folder, form)
            return
        _require_fallback(work, fallback)
        if dry_run or out is None:
            show_estimate(work, form)
            return
        rows, report = _judged(work, fallback) if not work.others else _jury(work)
        write_judged(rows, out)
        report |= {"warnings": [*beyond, *work.warnings, *report["warnings"]]}
    if work.others:
        _show_jury(report, out, form, max_unparsed)
    else:
        _show_run(report, out, form, max_unparsed)


def work(
    *,
    task: Annotated[Task, Flat],
    options: Annotated[JudgeOptions, Flat] = JudgeOptions(),  # noqa: B008
    max_unparsed: MaxUnparsed = 0.1,
    form: TableOrJson = "table",
) -> None:
    """Join a judge run on the same database as an additional worker.

    Use the options of `arena judge run`, without --out. Workers can start and stop at any time: no
    request is sent twice, and those of a killed worker return to the queue. A worker ends when
    nothing is left; it has its own budget and rate limits. Exit code 1: stopped before the end, or
    too many replies could not be parsed.

    Parameters
    ----------
    max_unparsed
        Maximum share of replies that cannot be parsed.
    form
        Output format.

    Examples
    --------
    arena judge work --method pairwise --judge pocket-judge --cases pairs.csv
    arena judge work --method pairwise --judge pocket-judge --cases arena
    """
    if task.method == IFEVAL:
        msg = "--method ifeval asks no model, so there is no work to share: use judge run."
        raise DataError(msg)
    with prepared(options, task) as prepared_work:
        result = done(prepared_work)
        _, report = _judge_run_results(prepared_work, result)
        report |= {"warnings": [*prepared_work.warnings, *report["warnings"]]}
        report |= _unparsed(prepared_work, result)
    _show_run(report, None, form, max_unparsed)


def _beyond(certificate: Path, work: Work) -> tuple[str, ...]:
    """Show the verdicts that a certificate excludes; raises `DataError` if it excludes all."""
    from judge.studies.licence import foreseen, read_licence
    from rating.tables.peers import mention

    if not work.method.pairwise:
        raise DataError(f"--certificate is for pairs of responses, not for {work.method.name!r}.")
    today = datetime.now(UTC).date()
    sentences = foreseen(read_licence(certificate), today, work.model.id, work.method, work.cases)
    for sentence in sentences:
        mention(sentence)
    return sentences


def _require_batch_alone(
    batch: Batch,
    method: str,
    options: JudgeOptions,
    *,
    out: Path | None,
    dry_run: bool,
    fallback: str | None,
    fallback_judge: str | None,
) -> None:
    """Raise `DataError` for an option that says nothing of files."""
    given = {
        f"--out {out}": out is not None,
        "--dry-run": dry_run,
        f"--fallback {fallback}": fallback is not None,
        f"--fallback-judge {fallback_judge}": fallback_judge is not None,
        f"--budget {options.budget}": options.budget is not None,
    }
    name = next((name for name, there in given.items() if there), None)
    if name is not None:
        raise DataError(f"--batch {batch[0]} makes no calls and writes no verdicts: omit {name}.")
    if method == IFEVAL:
        raise DataError("--method ifeval asks no model, so it has no batch.")


def _require_jury(
    work: Work, batch: Batch | None, fallback: str | None, certificate: Path | None
) -> None:
    """Raise `DataError` for what several judges cannot do."""
    given = {"--batch": batch, f"--fallback {fallback}": fallback, "--certificate": certificate}
    for name, value in given.items():
        if value is not None:
            raise DataError(f"{name} is for one judge: ask each by itself, or omit it.")
    if not work.method.pairwise:
        msg = f"A jury compares answers, and {work.method.name!r} marks one: name one judge."
        raise DataError(msg)


def _jury(work: Work) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Ask one judge after the other, and return the rows of all with those of the jury."""
    from judge.report.judges import jury
    from judge.verdict import Stop

    by_seat: dict[str, Sequence[Any]] = {one.model.id: [] for one in (work, *work.others)}
    reports: dict[str, dict[str, Any]] = {}
    spent = 0.0

    def left(seat: Seat) -> "Options":
        limit = seat.options.limit_usd
        return replace(seat.options, limit_usd=None if limit is None else max(limit - spent, 0.0))

    for seat in (work, *work.others):
        second = work.second and replace(work.second, options=left(work.second))
        own = replace(
            work, model=seat.model, journal=seat.journal, options=left(seat), second=second
        )
        rows, report = _judged(own, None)
        by_seat[seat.model.id], reports[seat.model.id] = rows, report
        spent += report["spent_usd"] or 0.0
        if report["stopped"] == Stop.BUDGET.value:
            break
    together, verdicts = jury(by_seat)
    known = [one["spent_usd"] for one in reports.values() if one["spent_usd"] is not None]
    stopped = next((r for r in reports.values() if r["stopped"] == Stop.BUDGET.value), None)
    return [*(row for rows in by_seat.values() for row in rows), *together], {
        **verdicts,
        "judges": reports,
        "not_asked": [name for name in by_seat if name not in reports],
        "n_asked": sum(one["n_asked"] for one in reports.values()),
        "n_recalled": sum(one["n_recalled"] for one in reports.values()),
        "spent_usd": sum(known) if known else None,
        "stopped": stopped and stopped["stopped"],
        "why": stopped["why"] if stopped else "",
        "warnings": concerning(
            {name: one["warnings"] for name, one in reports.items()}, of_all=True
        ),
    }


def _show_jury(report: Report, out: Path, form: str, max_unparsed: float) -> None:
    """Show what several judges say together; end with 1 if they have no verdict."""
    reports = report["judges"]
    many = {name: one for name, one in reports.items() if one["unparsed"]["share"] > max_unparsed}
    if form == "json":
        write_json({**report, "out": str(out)})
    else:
        spent = "" if report["spent_usd"] is None else f" for ${report['spent_usd']:.4g}"
        say(
            f"{out}: {len(reports)} judges. {report['n_asked']:,} new replies{spent}, "
            f"{report['n_recalled']:,} reused."
        )
        for name, one in reports.items():
            if failed := sum(one["failed"].values()):
                why = ", ".join(f"{n:,} {what}" for what, n in sorted(one["failed"].items()))
                by = one["fallback"]["judge"] if "fallback" in one else ""
                then = f": {by!r} judges them in its place" if by else ""
                say(f"{name} has no verdict on {plural(failed, 'case')} ({why}){then}.")
        if report["not_asked"]:
            say(f"Not asked: {', '.join(report['not_asked'])}.")
        for sentence in report["sentences"]:
            say(sentence)
        for warning in foremost(report["warnings"]):
            say(f"! {warning}")
    for name, one in many.items():
        say(
            f"arena: {round(100 * one['unparsed']['share'])}% of the replies of {name} are "
            f"unparsed, more than --max-unparsed {max_unparsed:g} allows. {_first_reply(one)}",
            error=True,
        )
    if report["stopped"] is not None:
        stop(report["why"])
    if many or not report["majority"]["decided"]:
        sys.exit(1)


def _judged(work: Work, fallback: str | None) -> tuple[Sequence[dict[str, Any]], dict[str, Any]]:
    """Judge, and return the rows and what is to be said."""
    from judge.methods import margined
    from judge.report.run import lacks_logprobs
    from judge.runs import reasons

    lack = work.options.lack(work.method) if fallback is not None else None
    result = done(work) if lack is None else None
    fell_back = []
    if fallback is not None and (result is None or lacks_logprobs(result)):
        first = result
        work = _fallen_back(work, first)
        looked = 0 if first is None else first.n_asked + first.n_recalled
        fell_back.append(
            f"No reply had log-probabilities ({looked:,} checked): every case was judged with "
            f"{work.method.name} instead, which is another measurement."
        )
        result = done(work)
        result = result if first is None else result.after(first)
    assert result is not None
    alone, why = result, reasons(result)
    if work.second is not None:
        result = with_second(alone, work.second, work.cases, work.method, alone.spent_usd)
        why = {} if result is alone else why
    shown = result
    if work.method.length_margin is not None:
        cases = {named.case.id: named.case for named in work.cases}
        shown = replace(result, judged=margined(result.judged, cases, work.margin))
    rows, report = _judge_run_results(work, shown)
    report |= {"warnings": [*fell_back, *report["warnings"]]}
    report |= _unparsed(work, result)
    if work.second is not None:
        from judge.report.page import fallback_of

        report["fallback"] = fallback_of(work.model.id, work.second.model.id, why, rows)
    if work.others:
        report["failed"] = dict(why)
    return rows, report


def _unparsed(work: Work, run: "Run") -> dict[str, Any]:
    """Give how many replies hold no verdict, the first of them, and what the method wants."""
    from judge.methods import WRITER, published
    from judge.report.run import examples, unparsed_of
    from judge.verdict import NO_CHECKLIST

    unparsed = unparsed_of(run)
    replies: dict[Key, Reply] = {}
    for source, is_second in ((work.journal, False), (work.second and work.second.journal, True)):
        keys = [row.keys[-1] for row in unparsed.rows if row.keys and bool(row.judge) is is_second]
        if source and keys:
            replies |= asyncio.run(source.recall(keys))
    is_writing = bool(unparsed.rows) and unparsed.rows[0].detail == NO_CHECKLIST
    method = published(WRITER) if is_writing else work.method
    return {
        "unparsed": {"n": unparsed.n, "of": unparsed.of, "share": unparsed.share},
        "wanted": f"{method.name} needs {method.grammar.wanted}",
        "examples": examples(unparsed, work.cases, replies),
    }


def _require_fallback(work: Work, fallback: str | None) -> None:
    """Raise `DataError` unless the method names what is to be asked instead."""
    from judge.methods import method as named

    method = work.method
    if fallback is None:
        return
    if method.fallback in (fallback, f"{method.name}_{fallback}"):
        other = named(method.fallback)  # what is wrong with it is better known before it is needed
        if other.pairwise:
            return
        msg = f"--fallback {fallback!r}: {other.name!r} judges one response, and these are pairs."
        raise DataError(msg)
    msg = f"--fallback {fallback!r}: {method.name!r} has the fallback {method.fallback!r}."
    if method.fallback is None:
        msg = (
            f"--fallback {fallback!r} is for methods that need log-probabilities and name a "
            f"fallback, such as --method alpaca_eval, not for {method.name!r}."
        )
    raise DataError(msg)


def _fallen_back(work: Work, first: "Run | None") -> Work:
    from judge.methods import method as named

    assert work.method.fallback is not None
    limit, spent = work.options.limit_usd, first.spent_usd if first else None
    left = None if limit is None else max(limit - (spent or 0.0), 0.0)
    options = replace(work.options, limit_usd=left)
    return replace(work, method=named(work.method.fallback), options=options)


def _judge_run_results(work: Work, run: "Run") -> tuple[Sequence[dict[str, Any]], dict[str, Any]]:
    from judge.report.run import rows_and_report

    share = work.options.swap_share
    rows, report = rows_and_report(work.model.id, work.method, work.cases, run, share)
    return rows, report | {"swap_share": share}


def _check(task: Task, judge: str | None, out: Path | None, form: str) -> None:
    """Check recorded responses against their instructions: nobody is asked."""
    from judge.ifeval import check
    from judge.report.run import constraint_report
    from judge.tables.cases import read_instructed
    from judge.tables.verdicts import constraint_rows, write_judged

    if judge is not None:
        raise DataError(f"--method ifeval uses no judge: omit --judge {judge}.")
    if out is None:
        raise DataError("--method ifeval costs nothing: name the file to write with --out.")
    with announced():
        instructed = read_instructed([task.chosen.cases(source) for source in task.cases])
    named = [one for one, _ in instructed]
    result = [check(asked, one.case.response_a) for one, asked in instructed]
    write_judged(constraint_rows(named, result), out)
    _show_checks(constraint_report(named, result), out, form)


def _show_run(report: Report, out: Path | None, form: str, max_unparsed: float) -> None:
    """Show what came out; end with 1 if the run stopped, or too few questions have a verdict."""
    from judge.calls import UNPARSED
    from judge.verdict import READ, SETTLED

    unparsed = report["unparsed"]
    too_many = unparsed["share"] > max_unparsed
    if form == "json":
        write_json({**report, "out": None if out is None else str(out)})
    else:
        say(_counts(report, out))
        for line in [*_by_model(report), *_on_order(report), *on_fallback(report)]:
            say(line)
        for warning in foremost(report["warnings"]):
            say(f"! {warning}")
        if report["method"].startswith(MT_BENCH):
            say("\n".join(["Differs from upstream:", *report["changes"]]), keep="\n")
        if report["examples"] and not too_many:
            say(f"! {_first_reply(report)}")
    if too_many:
        say(
            f"arena: {round(100 * unparsed['share'])}% of the questions with a reply are "
            f"unparsed, more than --max-unparsed {max_unparsed:g} allows. {_first_reply(report)} "
            "--again unparsed asks only these once more, and pays for them.",
            error=True,
        )
    if report["stopped"] is not None:
        stop(report["why"], report["next"])
    statuses = report["by_status"].keys() - {SETTLED}  # without a question
    has_none = statuses - UNPARSED and READ not in statuses
    if has_none and not too_many:
        reasons = ", ".join(f"{n:,} {status}" for status, n in report["by_status"].items())
        say(f"arena: No question has a verdict: {reasons}.", error=True)
    if too_many or has_none:
        sys.exit(1)


MT_BENCH = "mt_bench"


def _first_reply(report: Report) -> str:
    """Give what the method wants, and the first reply that is something else."""
    wanted = f"The method {report['wanted']}."
    if not report["examples"]:
        return wanted
    example = report["examples"][0]
    reply = json.dumps(example["reply"], ensure_ascii=False)
    if not example["reply"]:
        reply = f"empty, except reasoning (finish reason {example['finish_reason'] or 'none'})"
    return f"{wanted} The first unparsed reply is {reply}."


def _show_checks(report: Report, out: Path, form: str) -> None:
    """Show how far instructions were followed."""
    if form == "json":
        write_json({**report, "out": str(out)})
        return
    say(f"{out}: {sum(row['prompt_strict']['n'] for row in report['models']):,} checked.")
    for row in report["models"]:
        say(f"{row['model']}: {', '.join(_share(name, row[name]) for name in _SHARES)}.")
    for warning in foremost(report["warnings"]):
        say(f"! {warning}")


_SHARES = ("prompt_strict", "prompt_loose", "instruction_strict", "instruction_loose")


def _share(name: str, result: Report) -> str:
    unread = f", {result['n_unread']} unknown" if result["n_unread"] else ""
    if result["rate"] is None:
        return f"{name.replace('_', ' ')} not known"
    ends = f"{result['low']:.0%} to {result['high']:.0%}"
    return f"{name.replace('_', ' ')} {result['rate']:.0%} ({ends}; n {result['n']}{unread})"


_IN_WORDS = {"read": "verdicts parsed", "settled": "settled without a call"}


def _counts(report: Report, out: Path | None) -> str:
    by_status = sorted(report["by_status"].items())
    status = ", ".join(f"{n:,} {_IN_WORDS.get(name, name)}" for name, n in by_status)
    spent = "" if report["spent_usd"] is None else f" for ${report['spent_usd']:.4g}"
    return (
        f"{out or 'Nothing left'}: {status}. {report['n_asked']:,} new replies{spent}, "
        f"{report['n_recalled']:,} reused."
    )


def _by_model(report: Report) -> list[str]:
    lines = []
    for row in report.get("models", []):
        score = "no score" if row["score"] is None else f"mean {row['score']:.3g}"
        unread = f", {row['unread']:,} without a score" if row["unread"] else ""
        lines.append(f"{row['model']}: {score} of {row['n']:,}{unread}.")
    for row in report.get("rewards", []):
        reward = "no reward" if row["reward"] is None else f"reward {row['reward']:+z.3f}"
        lines.append(f"{row['model']} against {row['baseline']}: {reward} of {row['n']:,}.")
    return lines


def _on_order(report: Report) -> list[str]:
    lines, seen, place = [], report.get("consistency"), report.get("first_place")
    if seen and seen["rate"] is not None and seen["n_first"] + seen["n_second"]:
        lines.append(
            f"The same verdict in both orders: {seen['rate']:.0%}; the others prefer the answer "
            f"shown first {seen['n_first']:,} times, the second {seen['n_second']:,} times."
        )
    if report.get("swap_share", 1.0) < 1:
        lines.append(_on_place(place))
    return lines


def _on_place(place: Report | None) -> str:
    if place is None:
        return (
            "Fewer than two cases were judged in both orders: there is no correction for position."
        )
    return (
        f"Position effect of being shown first: {place['effect']:+z.3f} ± "
        f"{place['standard_error']:.3f} ({plural(place['n'], 'case')} judged in both orders); "
        "'corrected' is the preference minus this."
    )
