"""Embeddings over a real server."""

import pytest

from arena.endpoints.client import Endpoints
from arena.endpoints.embeddings import read_embeddings
from arena.endpoints.judging import EndpointEmbedder
from arena.errors import EndpointError
from judge.errors import CallError, FailureClass
from tests.arena.endpoints.asking import KEY, serve
from tests.faulty_server import Behaviour, FaultyServer


def row(index: int, *vector: object) -> dict[str, object]:
    return {"object": "embedding", "index": index, "embedding": list(vector)}


async def test_vectors_come_in_the_order_of_the_texts(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(body={"data": [row(1, 0.5, 2), row(0, 1, 0.25)]}))
    found = await EndpointEmbedder(endpoints, model)(["first", "sécond\ud800"])
    assert found == ((1.0, 0.25), (0.5, 2.0))
    sent = server.requests[-1]
    assert sent.body == {"model": model.model, "input": ["first", "sécond\ud800"]}
    assert sent.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Behaviour(status=401, error={"message": KEY}), FailureClass.DENIED),
        (Behaviour(status=429), FailureClass.RATE_LIMIT),
        (Behaviour(status=400, error={"code": "content_filter"}), FailureClass.REJECTED),
        (Behaviour(), FailureClass.TRANSPORT),
    ],
)
async def test_what_is_no_embedding_is_a_failed_call_without_the_key(
    server: FaultyServer, endpoints: Endpoints, behaviour: Behaviour, expected: FailureClass
) -> None:
    with pytest.raises(CallError) as caught:
        await EndpointEmbedder(endpoints, serve(server, behaviour))(["one"])
    assert caught.value.failure is expected
    assert KEY not in str(caught.value)


async def test_a_server_that_says_nothing_is_a_transport_failure(
    server: FaultyServer, impatient: Endpoints
) -> None:
    with pytest.raises(CallError) as caught:
        await EndpointEmbedder(impatient, serve(server, Behaviour(silent=True)))(["one"])
    assert caught.value.failure is FailureClass.TRANSPORT


@pytest.mark.parametrize(
    "data",
    [
        "[]",
        '[{"index": 0, "embedding": [1]}]',
        '[{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]',
        '[{"index": 0, "embedding": [1]}, {"index": 1, "embedding": []}]',
        '[{"index": 0, "embedding": [1]}, {"index": 1, "embedding": ["x"]}]',
        '[{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [NaN]}]',
        '"text"',
    ],
)
def test_a_text_without_its_vector_is_no_reply(data: str) -> None:
    with pytest.raises(EndpointError, match="2 texts, and not one vector of numbers for each"):
        read_embeddings(f'{{"data": {data}}}', 2)
