"""Addresses of endpoints: what is asked under which URL, and where a key is sent."""

from functools import lru_cache

import httpx

from arena.domain.answer import FailureClass
from arena.errors import EndpointError, SettingsError

CHAT = "/chat/completions"
OPERATIONS = (CHAT, "/completions", "/embeddings")
"""Ends of an address that names an operation, in place of what stands before all of them."""


@lru_cache
def url_of(endpoint: str, path: str) -> str:
    """Give the URL under which an endpoint does something; a query stays behind the path.

    Parameters
    ----------
    endpoint : str
        Base URL, or the whole URL of its chat, completions or embeddings.
    path : str
        Such as ``/chat/completions``.

    Raises
    ------
    EndpointError
        If the endpoint has a fragment, which nothing is sent of.
    httpx.InvalidURL
        If it is no URL.

    Examples
    --------
    >>> url_of("https://host/openai/deployments/d?api-version=2024-06-01", "/chat/completions")
    'https://host/openai/deployments/d/chat/completions?api-version=2024-06-01'
    >>> url_of("https://host/v1/chat/completions/", "/embeddings")
    'https://host/v1/embeddings'
    """
    if "#" in endpoint:
        detail = "the address has a fragment (#...), which is sent nowhere: take it out"
        raise EndpointError(FailureClass.UNREACHABLE, detail)
    base, mark, query = endpoint.partition("?")
    base = base.rstrip("/")
    done = next((end for end in OPERATIONS if base.endswith(end)), "")
    return str(httpx.URL(f"{base.removesuffix(done).rstrip('/')}{path}{mark}{query}"))


def origin_of(endpoint: str) -> str:
    """Give scheme, host and port of an endpoint, read as for a request to it.

    Raises
    ------
    SettingsError
        If it cannot be read.

    Examples
    --------
    >>> origin_of("HTTPS://Api.Example.com/v1") == origin_of("https://api.example.com:443/")
    True
    >>> origin_of("http://api.example.com/v1")
    'http://api.example.com:80'
    """
    try:
        url = httpx.URL(endpoint)
    except httpx.InvalidURL as error:
        msg = f"The endpoint {endpoint[:100]!r} cannot be read: {error}."
        raise SettingsError(msg) from error
    port = url.port or {"http": 80, "https": 443}.get(url.scheme, 0)
    return f"{url.scheme}://{url.host.lower()}:{port}"
