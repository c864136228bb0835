import http.server
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from arena.endpoints.trial import LOCAL, Server, discover
from arena.settings import _read_openai
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import free_port


@contextmanager
def answering(
    body: bytes, status: int = 200, delay_s: float = 0.0, asked: list[str] | None = None
) -> Iterator[str]:
    """A server that answers everything alike, and only to the right key if it asks for one."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(delay_s)
            self.send_response(status)
            if asked is not None:
                asked.append(self.path)
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(self.headers.get("Authorization", "").encode() or body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


async def test_a_server_s_chat_models_become_a_roster() -> None:
    names = ("llama3.2:3b", "nomic-embed-text", "models/odd name?.gguf")
    with faulty_server({name: Behaviour() for name in names}) as server:
        llama, odd = await discover([Server("Ollama", server.url)])
    assert (llama.id, llama.name) == ("Ollama/llama3.2:3b", "llama3.2:3b (Ollama)")
    assert (llama.endpoint, llama.model) == (server.url, "llama3.2:3b")
    assert (odd.id, odd.model) == ("Ollama/models/odd name-.gguf", names[2])


async def test_the_same_model_on_two_servers_is_two_models() -> None:
    with faulty_server({"x": Behaviour()}) as server:
        models = await discover([Server("Ollama", server.url), Server("vLLM", server.url)])
    assert [model.id for model in models] == ["Ollama/x", "vLLM/x"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>hello</html>", 200),
        (b'{"data": "none"}', 200),
        (b'{"data": [{"id": 3}, "x", {"id": " "}]}', 200),
        (b"[]", 200),
        (b'{"data": [{"id": "x"}]}', 401),
        (b"\xff\xfe", 200),
    ],
)
async def test_whatever_else_listens_there_has_no_models(body: bytes, status: int) -> None:
    with answering(body, status) as url:
        assert await discover([Server("vLLM", url)]) == ()


async def test_servers_are_asked_at_once_and_not_waited_for_long() -> None:
    began = time.monotonic()
    with answering(b"{}", delay_s=5) as slow, faulty_server({"x": Behaviour()}) as server:
        nobody = Server("nobody", f"http://127.0.0.1:{free_port()}/v1")
        models = await discover([nobody, *[Server("slow", slow)] * 3, Server("vLLM", server.url)])
    assert [model.id for model in models] == ["vLLM/x"]
    assert time.monotonic() - began < 11


async def test_the_key_is_sent_to_its_server_only_and_does_not_show() -> None:
    with faulty_server({"x": Behaviour()}) as server:
        named = Server("OpenAI", server.url, "OPENAI_API_KEY", "sesame")
        assert "sesame" not in repr(named)
        (model,) = await discover([named])
    assert model.api_key_env == "OPENAI_API_KEY"
    assert "sesame" not in repr(model)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_carries_the_key_of_a_server_elsewhere(status: int) -> None:
    asked: list[str] = []
    with answering(b"", status, asked=asked) as there:
        assert await discover([Server("OpenAI", there, "OPENAI_API_KEY", "sesame")]) == ()
    assert asked == ["/v1/models"]


def test_the_usual_ports_are_asked() -> None:
    ports = {server.name: server.url for server in LOCAL}
    assert {name: url.split(":")[2].split("/")[0] for name, url in ports.items()} == {
        "Ollama": "11434",
        "llama.cpp": "8080",
        "vLLM": "8000",
        "LM Studio": "1234",
    }


@pytest.mark.parametrize(
    ("env", "url", "key_env"),
    [
        ({}, None, None),
        ({"OPENAI_BASE_URL": "http://host/v1/"}, "http://host/v1", None),
        (
            {"OPENAI_BASE_URL": "http://host/v1", "OPENAI_API_KEY": "k"},
            "http://host/v1",
            "OPENAI_API_KEY",
        ),
    ],
)
def test_openai_s_variables_name_one_more_server(
    monkeypatch: pytest.MonkeyPatch, env: Mapping[str, str], url: str | None, key_env: str | None
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    server = _read_openai()
    assert (server.url if server else None) == url
    assert (server.key_env if server else None) == key_env


def test_a_key_alone_names_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert _read_openai() is None
