"""What a command finds where it runs: the demo's settings, and servers of models."""

import asyncio

from arena.domain.model import Model
from arena.endpoints.discover import LOCAL, Server, discover
from arena.settings import Settings, read_openai, read_settings

DEMO_DATABASE = "sqlite:///arena-demo.db"


def demo_settings(**given: object) -> Settings:
    """Read the settings, with a database of the demo's own unless one is named."""
    settings = read_settings(**given)
    if "database" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"database": DEMO_DATABASE})


def found_models() -> tuple[Model, ...]:
    """Give the models that the servers on this machine, and OPENAI_BASE_URL, offer."""
    return asyncio.run(discover(_servers()))


def places() -> str:
    """Say where models were looked for."""
    return ", ".join(f"{server.name} ({server.url})" for server in _servers())


def _servers() -> tuple[Server, ...]:
    named = read_openai()
    return (*LOCAL, named) if named else LOCAL
