"""Logs, Prometheus metrics and OpenTelemetry events of an arena, without anybody's words in them.

`set_up` lets all loggers write JSON objects, one per line, or plain lines on a terminal. `Metrics`
serves figures on a port of its own; none of them is broken down by model. `Telemetry` sends events
of battles and verdicts where they are asked for.
"""

import logging
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO
from wsgiref.simple_server import WSGIServer

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    start_http_server,
)
from structlog.typing import EventDict, Processor

from arena.domain.battle import Notice
from arena.errors import ArenaError, SettingsError
from rating import __version__
from rating.errors import RatingError

if TYPE_CHECKING:
    from judge.verdict import Judged


# Logs

QUIET = ("alembic", "httpx2", "httpcore2", "uvicorn.access")
"""Libraries whose lines would name addresses, or say nothing to an operator."""

battles = logging.getLogger("arena.battles")


def set_up(level: str, stream: TextIO) -> None:
    """Let all loggers of the process write to one stream.

    Parameters
    ----------
    level : str
        ``debug``, ``info``, ``warning`` or ``error``.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _describe_exception,
    ]
    render: Processor = (
        structlog.dev.ConsoleRenderer()
        if stream.isatty()
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for library in QUIET:
        logging.getLogger(library).setLevel(logging.WARNING)


def log_notice(notice: Notice) -> None:
    """Write down what happened in a battle."""
    extra: dict[str, object] = {"battle": notice.battle_id}
    match notice.event:
        case "asked":
            battles.info("Models asked", extra=extra)
        case "replaced":
            battles.warning("Answer replaced", extra=extra | {"failure": notice.failures[0]})
        case "ended":
            extra |= {"state": notice.state, "failures": notice.failures}
            battles.info("Answers ended", extra=extra)
        case "voted":
            battles.info("Voted", extra=extra | {"choice": notice.choice})


def _describe_exception(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Put an exception into lines: where it was raised, and its words only if they are ours.

    Other libraries quote what they could not read, and that may be a prompt or an answer.
    """
    info = event.pop("exc_info", None)
    if info and isinstance(info, tuple) and info[1]:
        event["exception"] = "\n".join(_lines(info[1]))
    return event


def _lines(error: BaseException) -> Iterator[str]:
    for frame in traceback.extract_tb(error.__traceback__):
        yield f"{frame.filename}:{frame.lineno} in {frame.name}"
    kind = type(error).__qualname__
    yield f"{kind}: {error}" if isinstance(error, ArenaError | RatingError | OSError) else kind
    if (earlier := error.__cause__ or error.__context__) is not None:
        yield "which came of"
        yield from _lines(earlier)


# Metrics

FIRST_TOKEN_S = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
REQUEST_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0)


class Metrics:
    """Counts what happens in one arena."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._running = Gauge(
            "arena_battles_running", "Battles that are being answered", registry=self._registry
        )
        self._ended = Counter(
            "arena_battles_ended",
            "Battles, turns and new attempts that ended, by the state that follows",
            ["state"],
            registry=self._registry,
        )
        self._votes = Counter(
            "arena_votes", "Votes by outcome", ["outcome"], registry=self._registry
        )
        self._failures = Counter(
            "arena_answer_failures", "Failed answers by class", ["class"], registry=self._registry
        )
        self._first_token = Histogram(
            "arena_first_token_seconds",
            "Seconds to the first token of an answer, all models together",
            buckets=FIRST_TOKEN_S,
            registry=self._registry,
        )
        self._requests = Histogram(
            "arena_request_seconds",
            "Seconds to answer a request, by the template of its path",
            ["route", "status"],
            buckets=REQUEST_S,
            registry=self._registry,
        )

    def take(self, notice: Notice) -> None:
        """Count what happened in a battle."""
        if notice.event == "asked":
            self._running.inc()
        elif notice.event == "ended":
            self._running.dec()
        if notice.state is not None:
            self._ended.labels(notice.state.value).inc()
        for failure in notice.failures:
            self._failures.labels(failure.value).inc()
        for seconds in notice.first_tokens_s:
            self._first_token.observe(seconds)
        if notice.choice is not None:
            self._votes.labels(notice.choice.value).inc()

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).observe(seconds)

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Answer ``/metrics`` on a port, in a thread; returns what ends it.

        Raises
        ------
        SettingsError
            If the port cannot be had.
        """
        try:
            server, thread = start_http_server(port, host, self._registry)
        except OSError as error:
            raise SettingsError(
                f"Cannot serve metrics on {host}:{port}: {error.strerror}. "
                "Choose another ARENA_METRICS_PORT."
            ) from error
        return lambda: _stop(server, thread)


def _stop(server: WSGIServer, thread: threading.Thread) -> None:
    server.shutdown()
    server.server_close()
    thread.join()


# Events


class Telemetry:
    """Sends events by OpenTelemetry; no texts, keys, voters and answering models are in them.

    OpenTelemetry's own variables say where they go (``OTEL_EXPORTER_OTLP_ENDPOINT``).

    Raises
    ------
    SettingsError
        If OpenTelemetry is not installed.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
            from opentelemetry.sdk._logs import LoggerProvider
            from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
            from opentelemetry.sdk.resources import Resource
        except ImportError as error:
            raise SettingsError(
                f"ARENA_OTEL: OpenTelemetry is not installed ({error}). Install the arena with "
                "its extra 'otel': pip install 'blind-arena[otel]'."
            ) from error
        ours = {"service.name": "arena", "service.version": __version__}
        self._provider = LoggerProvider(Resource.create(ours))
        self._provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
        self._logger = self._provider.get_logger("arena", __version__)
        self.close = self._provider.shutdown

    def take(self, notice: Notice) -> None:
        """Send that the answers of a battle ended, or that a vote was cast."""
        if notice.event in ("ended", "voted"):
            values = {
                "arena.battle.id": notice.battle_id,
                "arena.battle.state": notice.state,
                "arena.battle.failures": notice.failures or None,
                "arena.vote.choice": notice.choice,
            }
            self._send(f"arena.battle.{notice.event}", values)

    def verdicts(self, method: str, judge: str, rows: "Iterable[Judged]") -> None:
        """Send what a judge was asked for in a run, and said of it."""
        asked = (row for row in rows if row.keys and not row.recalled)
        for n, row in enumerate(asked, 1):
            preference = row.for_a
            values = {
                "gen_ai.evaluation.name": method,
                "gen_ai.evaluation.score.label": preference.outcome if preference else None,
                "gen_ai.evaluation.score.value": getattr(row.reading, "score", None),
                "gen_ai.request.model": judge,
                "error.type": row.failure,
                "arena.verdict.order": row.order,
                "arena.verdict.cost_usd": row.cost_usd,
                "arena.verdict.latency_s": row.latency_s,
            }
            self._send("gen_ai.evaluation.result", values)
            if n % 500 == 0:  # its queue drops what does not fit
                self._provider.force_flush()

    def _send(self, name: str, values: Mapping[str, str | float | Sequence[str] | None]) -> None:
        known = {key: value for key, value in values.items() if value is not None}
        self._logger.emit(event_name=name, attributes=known)
