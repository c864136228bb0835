"""Figures for Prometheus, on a port of their own: none of them is broken down by model."""

import threading
from collections.abc import Callable
from wsgiref.simple_server import WSGIServer

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    start_http_server,
)

from arena.domain.battle import Asked, Ended, Notice, Replaced, Voted
from arena.errors import SettingsError

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
        match notice:
            case Asked():
                self._running.inc()
            case Replaced(_, failure):
                self._failures.labels(failure.value).inc()
            case Ended(_, state, failures, first_tokens_s):
                self._running.dec()
                self._ended.labels(state.value).inc()
                for failure in failures:
                    self._failures.labels(failure.value).inc()
                for seconds in first_tokens_s:
                    self._first_token.observe(seconds)
            case Voted(_, choice):
                self._votes.labels(choice.value).inc()

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
            msg = (
                f"Cannot serve metrics on {host}:{port}: {error.strerror}. "
                "Choose another ARENA_METRICS_PORT."
            )
            raise SettingsError(msg) from error
        return lambda: _stop(server, thread)


def _stop(server: WSGIServer, thread: threading.Thread) -> None:
    server.shutdown()
    server.server_close()
    thread.join()
