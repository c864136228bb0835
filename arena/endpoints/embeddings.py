"""Requests and replies in the embeddings format of OpenAI."""

import json
import math
from collections.abc import Sequence
from typing import Any

from arena.domain.answer import FailureClass
from arena.domain.model import Model
from arena.endpoints.chat import decoded
from arena.errors import EndpointError

Vector = tuple[float, ...]


def embedding_body(model: Model, texts: Sequence[str]) -> bytes:
    """Body of a request: the model's own options, such as ``dimensions``, and the texts."""
    return json.dumps({**model.decoding, "model": model.model, "input": [*texts]}).encode()


def read_embeddings(body: str, n: int) -> tuple[Vector, ...]:
    """Read n vectors, by the index that each carries.

    Raises
    ------
    EndpointError
        If it is no JSON object of the format, carries an error, or holds not exactly one vector
        of finite numbers for each text.
    """
    data = decoded(body).get("data")
    rows = data if isinstance(data, list) else []
    found = {str(row.get("index")): _vector(row) for row in rows if isinstance(row, dict)}
    vectors = [found.get(str(i)) for i in range(n)]
    if len(rows) != n or None in vectors:
        said = f"{n} texts, and not one vector of numbers for each: {body}"
        raise EndpointError(FailureClass.MALFORMED, said)
    return tuple(vector for vector in vectors if vector is not None)


def _vector(row: dict[str, Any]) -> Vector | None:
    values = row.get("embedding")
    if not isinstance(values, list) or not values:
        return None
    try:
        numbers = tuple(float(v) for v in values if isinstance(v, int | float))
    except OverflowError:  # of an integer of hundreds of digits
        return None
    whole = len(numbers) == len(values) and all(map(math.isfinite, numbers))
    return numbers if whole else None
