"""How Gradio is loaded: it is to call nobody, to count nothing, and to write nothing."""

import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Read when Gradio loads. It builds a table of its last 10,000 events, with pandas, at the end of
# each event, unless that is to happen after more events than there will ever be.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # noqa: TID251
os.environ["GRADIO_ANALYTICS_CACHE_FREQUENCY"] = str(sys.maxsize)  # noqa: TID251


@contextmanager
def no_stubs() -> Iterator[None]:
    """Keep Gradio from writing a stub (.pyi) beside the source of each component it defines.

    It reads and writes 81 of them whenever it is imported, which is more than half of that time,
    in a folder that an arena may not be allowed to write to. It leaves out a component that has
    no source file, which ``inspect.getfile`` says with an ``OSError``: here it says so of all.
    """
    getfile = inspect.getfile

    def of_no_component(object: Any) -> str:
        if type(object).__name__ == "ComponentMeta":
            msg = f"the source of {object.__name__} is not looked for"
            raise OSError(msg)
        return getfile(object)

    inspect.getfile = of_no_component
    try:
        yield
    finally:
        inspect.getfile = getfile


with no_stubs():
    import gradio as gr

__all__ = ["gr", "no_stubs"]
