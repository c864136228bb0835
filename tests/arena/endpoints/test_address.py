"""Addresses of endpoints: under which URL something is asked, and in which header the key goes."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.domain.model import Model, first_fault
from arena.domain.vote import FailureClass
from arena.endpoints.client import OPERATIONS, Endpoints, url_of
from arena.endpoints.trial import Server, discover
from tests.arena.endpoints.asking import KEY, PROMPT, ask, failure, serve
from tests.faulty_server import Behaviour, FaultyServer, faulty_server

AZURE = "?api-version=2024-06-01"
CHAT, LEGACY, EMBEDDINGS = OPERATIONS
VECTOR = {"data": [{"index": 0, "embedding": [1.0]}]}
ECHO = {
    "choices": [{"logprobs": {"token_logprobs": [None, -1.0, -0.5], "text_offset": [0, 1, 2]}}]
}


@pytest.mark.parametrize(
    ("endpoint", "path", "url"),
    [
        ("https://h/v1", CHAT, "https://h/v1/chat/completions"),
        ("https://h/v1/", CHAT, "https://h/v1/chat/completions"),
        ("https://h", CHAT, "https://h/chat/completions"),
        (
            f"https://h/openai/deployments/d{AZURE}",
            CHAT,
            f"https://h/openai/deployments/d{CHAT}{AZURE}",
        ),
        (
            f"https://h/openai/deployments/d/{AZURE}",
            CHAT,
            f"https://h/openai/deployments/d{CHAT}{AZURE}",
        ),
        (f"https://h/d{CHAT}{AZURE}", CHAT, f"https://h/d{CHAT}{AZURE}"),
        (f"https://h/d{CHAT}/{AZURE}", CHAT, f"https://h/d{CHAT}{AZURE}"),
        (f"https://h/d{CHAT}/{AZURE}", EMBEDDINGS, f"https://h/d{EMBEDDINGS}{AZURE}"),
        (f"https://h/v1{CHAT}", CHAT, f"https://h/v1{CHAT}"),
        (f"https://h/v1{CHAT}", LEGACY, "https://h/v1/completions"),
        (f"https://h/v1{CHAT}", "/models", "https://h/v1/models"),
        (f"https://h/v1{EMBEDDINGS}", EMBEDDINGS, f"https://h/v1{EMBEDDINGS}"),
        (f"https://h/v1{EMBEDDINGS}/", CHAT, f"https://h/v1{CHAT}"),
        ("https://h/v1/completions", LEGACY, "https://h/v1/completions"),
        ("https://h/models?api-version=x", CHAT, f"https://h/models{CHAT}?api-version=x"),
        ("https://h/v1?a=/x/&b=c?d", CHAT, f"https://h/v1{CHAT}?a=/x/&b=c?d"),
        ("https://h/v1?", CHAT, f"https://h/v1{CHAT}?"),
        ("https://h/mychat/completions-x", CHAT, f"https://h/mychat/completions-x{CHAT}"),
    ],
)
def test_a_path_goes_before_the_query_and_comes_once(endpoint: str, path: str, url: str) -> None:
    assert url_of(endpoint, path) == url


SEGMENT = st.text("abcdefgz0123456789-_.~", min_size=1, max_size=8)


@given(
    segments=st.lists(SEGMENT, max_size=3),
    done=st.sampled_from(["", "/", *OPERATIONS, *(f"{end}/" for end in OPERATIONS)]),
    query=st.none() | st.text("abc019=&-./", max_size=12),
    path=st.sampled_from([*OPERATIONS, "/models"]),
)
def test_any_address_keeps_its_host_its_path_and_its_query(
    segments: list[str], done: str, query: str | None, path: str
) -> None:
    base = "".join(f"/{segment}" for segment in segments)
    mark = "" if query is None else f"?{query}"
    url = httpx2.URL(url_of(f"https://h{base}{done}{mark}", path))
    plain = not any(base.endswith(end) for end in OPERATIONS)
    assert not plain or url.path == httpx2.URL(f"https://h{base}{path}").path
    assert url.query.decode() == (query or "")
    assert path not in OPERATIONS or url_of(str(url), path) == str(url)


async def test_what_a_server_sees_is_the_path_and_then_the_query(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    base = server.url.removesuffix("/v1")
    for endpoint in (f"{base}/d{AZURE}", f"{base}/d{CHAT}{AZURE}", f"{base}/d{CHAT}/{AZURE}"):
        model = replace(serve(server, Behaviour()), endpoint=endpoint)
        await ask(endpoints, model)
        await endpoints.complete(model, PROMPT)
        server.behaviours[model.model] = Behaviour(body=VECTOR)
        await endpoints.embed(model, ["x"])
        server.behaviours[model.model] = Behaviour(body=ECHO)
        await endpoints.log_likelihood(model, "ab")
        seen = [one.target for one in server.requests if one.model == model.model]
        assert seen == [f"/d{path}{AZURE}" for path in (CHAT, CHAT, EMBEDDINGS, LEGACY)]


async def test_models_are_looked_for_beside_the_chat(server: FaultyServer) -> None:
    serve(server, Behaviour())
    base = server.url.removesuffix("/v1")
    before = len(server.model_lists)
    there = await discover([Server("Proxy", f"{base}/v1{CHAT}{AZURE}")])
    assert server.model_lists[before:] == [f"{base}/v1/models{AZURE}"]
    assert {model.endpoint for model in there} == {f"{base}/v1{CHAT}{AZURE}"}


async def test_an_address_with_a_fragment_is_refused_in_words(endpoints: Endpoints) -> None:
    model = Model(id="m", name="m", endpoint="https://h/v1#x", model="m")
    error = await failure(endpoints, model)
    assert error.failure is FailureClass.UNREACHABLE
    assert "fragment" in error.detail
    assert "fragment" in str(first_fault(model))
    assert await discover([Server("x", "http://127.0.0.1:1/v1#x")]) == ()


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("https://h/v1?key=AIza-secret", "api_key_env"),
        ("https://h/v1?api-version=1&API-KEY=secret", "api_key_env"),
        ("https://h/v1?access%5Ftoken=secret", "api_key_env"),
        ("https://h/v1?subscription-key=secret", "api_key_env"),
        ("https://h/v1?code=secret", "api_key_env"),
        ("https://h/v1?sig=secret#x", "fragment"),
        ("https://me:secret@h/v1", "without a user or a password"),
        ("https://secret@h/v1", "without a user or a password"),
        ("ftp://h/v1?key=secret", "http(s)://"),
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_quoted(endpoint: str, words: str) -> None:
    fault = str(first_fault(Model(id="m", name="m", endpoint=endpoint, model="m")))
    assert words in fault
    assert "secret" not in fault


@pytest.mark.parametrize("query", ["?api-version=2024-06-01", "?deployment=a&v=2", "?encoding=x"])
def test_a_query_without_a_secret_is_fine(query: str) -> None:
    assert first_fault(Model(id="m", name="m", endpoint=f"https://h/v1{query}", model="m")) is None


@pytest.mark.parametrize("header", ["api-key", "x-api-key", "x-goog-api-key", "Authorization"])
async def test_the_bare_key_goes_into_the_header_that_the_roster_names(
    server: FaultyServer, endpoints: Endpoints, header: str
) -> None:
    """Azure's, Anthropic's and Google's.

    https://learn.microsoft.com/azure/ai-services/openai/reference
    https://docs.anthropic.com/en/api/overview
    https://ai.google.dev/gemini-api/docs/api-key
    """
    model = replace(serve(server, Behaviour()), api_key_header=header)
    assert first_fault(model) is None
    await ask(endpoints, model)
    headers = server.requests[-1].headers
    assert headers[header.lower()] == KEY
    assert [name for name, value in headers.items() if KEY in value] == [header.lower()]


@pytest.mark.parametrize(
    "header",
    [
        "Host", "content-length", "Content-Type", "Transfer-Encoding", "User-Agent", "Cookie",
        "api key", "", "key:", "x\r\ny", "clé", "$(rm)",
    ],
)  # fmt: skip
def test_a_header_that_is_sent_anyway_or_is_none_is_refused(header: str) -> None:
    model = Model(
        id="m",
        name="m",
        endpoint="https://h/v1",
        model="m",
        api_key_env="K",
        api_key_header=header,
    )
    assert str(first_fault(model)).startswith("key 'api_key_header' must be the name of a header")


def test_a_header_without_a_key_is_refused() -> None:
    model = Model(id="m", name="m", endpoint="https://h/v1", model="m", api_key_header="api-key")
    assert "api_key_env" in str(first_fault(model))


@pytest.fixture
async def redirecting(server: FaultyServer) -> AsyncIterator[tuple[Model, FaultyServer]]:
    with faulty_server({}) as elsewhere:
        headers = {"Location": f"{elsewhere.url}{CHAT}"}
        model = serve(server, Behaviour(status=307, headers=headers))
        elsewhere.behaviours[model.model] = Behaviour()
        yield replace(model, api_key_header="api-key"), elsewhere


async def test_a_redirect_does_not_carry_the_key(
    redirecting: tuple[Model, FaultyServer], endpoints: Endpoints
) -> None:
    model, elsewhere = redirecting
    error = await failure(endpoints, model)
    assert error.failure is FailureClass.NOT_FOUND
    assert elsewhere.requests == []
    assert KEY not in error.detail


async def test_a_key_in_a_named_header_is_in_no_text_of_an_error(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    body = json.dumps([{"error": {"message": f"{KEY} is not valid"}}])
    model = serve(server, Behaviour(status=401, stream=body))
    error = await failure(endpoints, replace(model, api_key_header="x-api-key"))
    assert error.detail == "status 401, [key] is not valid"
