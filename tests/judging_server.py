"""A judge behind a real HTTP server, who answers each request by a script."""

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Script = Callable[[str], str]
"""From the text of the user's message to the reply."""

ROSTER = """
[[models]]
id = "judge"
name = "Judge"
endpoint = "{url}"
model = "judge"
price = {{ input = 1.0, output = 2.0, date = 2026-01-01 }}
"""
TOKENS = (100, 10)
EACH_USD = (100 * 1.0 + 10 * 2.0) / 1e6


@dataclass(slots=True)
class JudgingServer:
    """A running server, and what it was asked."""

    url: str
    script: Script
    asked: list[str] = field(default_factory=list)

    def roster(self, folder: Path) -> None:
        """Write roster.toml, in which this is the model ``judge``."""
        (folder / "roster.toml").write_text(ROSTER.format(url=self.url), encoding="utf-8")


def fenced(prompt: str) -> list[str]:
    """Give the answers in a prompt, in the order in which they are shown."""
    block = r"^\[begin (?:answer|reply)[^\]]*\]\n(.*?)\n\[end (?:answer|reply)[^\]]*\]$"
    return re.findall(block, prompt, re.DOTALL | re.MULTILINE)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that was killed."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def judging_server(script: Script, folder: Path | None = None) -> Iterator[JudgingServer]:
    """Run a judge on a free port of this machine, in threads of its own, and write its roster."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        served = JudgingServer(f"http://127.0.0.1:{server.server_port}/v1", script)
        server.served = served  # type: ignore[attr-defined]
        if folder is not None:
            served.roster(folder)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        served: JudgingServer = self.server.served  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = str(body["messages"][-1]["content"])
        served.asked.append(prompt)
        text = served.script(prompt)
        choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": TOKENS[0], "completion_tokens": TOKENS[1]}
        data = json.dumps({"id": "1", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with suppress(ConnectionError):  # who asked was killed
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""
