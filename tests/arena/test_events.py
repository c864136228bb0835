"""Events for OpenTelemetry, as its own exporter sends them: without a text, a key or a name."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from tests.command import Command, refused
from tests.faulty_server import Behaviour, faulty_server
from tests.judging_server import EACH_USD, judging_server
from tests.serving import Served, running, write_roster

VERDICT, LABEL = "gen_ai.evaluation.result", "gen_ai.evaluation.score.label"
PROMPT = "A prompt that nobody else has."


class Collector:
    """Takes what is sent to ``/v1/logs``."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.address = ""

    @property
    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """The names and attributes of the events that came."""
        return [
            (record.event_name, {one.key: _value(one.value) for one in record.attributes})
            for body in self.bodies
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def collecting() -> Iterator[Collector]:
    """Serve a `Collector`."""
    taken = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/logs"
            taken.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        taken.address = f"http://127.0.0.1:{server.server_port}"
        yield taken
        server.shutdown()


def test_battles_and_votes_are_events_that_tell_no_model_no_voter_and_no_text(
    tmp_path: Path,
) -> None:
    models = {"quartz": Behaviour(), "basalt": Behaviour()}
    with collecting() as taken, faulty_server(models) as server:
        roster = write_roster(tmp_path / "r.toml", server, *models)
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": taken.address, "ARENA_SECRET_KEY": "k" * 32}
        voted = failed = ""
        for otel in ("true", "false"):
            words = ("serve", "--port", "0", "--roster", str(roster))
            with (
                running(tmp_path, *words, ARENA_OTEL=otel, **env) as url,
                Served(url, "").visitor() as ada,
            ):
                battle_id = ada.play(PROMPT)
                ada.vote(battle_id, "tie")
                server.behaviours["basalt"] = Behaviour(status=401)
                ada.follow(failed_id := ada.open(PROMPT))
                server.behaviours |= models
            voted, failed = voted or battle_id, failed or failed_id
    ended = {"arena.battle.id": failed, "arena.battle.state": "failed"}
    assert taken.events == [
        ("arena.battle.ended", {"arena.battle.id": voted, "arena.battle.state": "ready"}),
        ("arena.battle.voted", {"arena.battle.id": voted, "arena.vote.choice": "tie"}),
        ("arena.battle.ended", ended | {"arena.battle.failures": ["auth"]}),
    ]
    sent = b"".join(taken.bodies)
    for secret in ("quartz", "basalt", PROMPT, "kkkk", Behaviour().text):
        assert secret.encode() not in sent


def test_each_new_verdict_is_an_event_without_its_case(command: Command, tmp_path: Path) -> None:
    rows = [f"{PROMPT},The answer {n}.,Another answer." for n in range(3)]
    lines = ["prompt,response_a,response_b", *rows]
    (tmp_path / "pairs.csv").write_text("\n".join(lines), encoding="utf-8")
    judge = ("judge", "run", "--judge", "judge", "--roster", "roster.toml", "--max-unparsed", "1")
    cases = ("--method", "pairwise", "--cases", "pairs.csv", "--database", "sqlite:///runs.db")
    judged = judging_server(lambda p: "Hm." if "answer 2" in p else "[[A]]", tmp_path)
    with collecting() as taken, judged:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": taken.address, "ARENA_OTEL": "true"}
        for out in ("v.csv", "again.csv"):
            done = command(*judge, *cases, "--out", out, **env)
            assert done.returncode == 0, done.stderr
    assert len(taken.events) == 6, "three cases in both orders; the second run asks for none"
    for name, values in taken.events:
        assert name == VERDICT
        assert values["gen_ai.evaluation.name"] == "pairwise"
        assert values["gen_ai.request.model"] == "judge"
        assert values["arena.verdict.latency_s"] > 0
    keys = ("arena.verdict.order", LABEL, "error.type", "arena.verdict.cost_usd")
    assert Counter(tuple(map(values.get, keys)) for _, values in taken.events) == {
        ("ab", "model_a", None, EACH_USD): 2,
        ("ba", "model_b", None, EACH_USD): 2,
        ("ab", None, "unparsed", 2 * EACH_USD): 1,  # it was asked once more
        ("ba", None, "unparsed", 2 * EACH_USD): 1,
    }
    sent = b"".join(taken.bodies)
    assert b"answer" not in sent
    assert PROMPT.encode() not in sent


def test_where_opentelemetry_is_not_installed_nothing_is_asked(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pairs.csv").write_text("prompt,response_a,response_b\np,a,b\n")
    words = ("judge", "run", "--judge", "pocket-judge", "--method", "pairwise", "--out", "v.csv")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk._logs", None)
    done = command(*words, "--cases", "pairs.csv", ARENA_OTEL="true")
    refused(done, "OpenTelemetry is not installed", "'blind-arena[otel]'")
