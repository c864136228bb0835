"""The battle page."""

import json
import subprocess
import sys
from functools import cache
from threading import Lock

_one_at_a_time = Lock()


def of_gradio() -> dict[str, str]:
    """Give the parts of the page that Gradio brings: see `arena.ui.gradio_parts`."""
    with _one_at_a_time:
        return _of_gradio()


@cache
def _of_gradio() -> dict[str, str]:
    command = [sys.executable, "-m", "arena.ui.gradio_parts"]
    done = subprocess.run(  # noqa: S603 - ours
        command,
        check=True,
        stdout=subprocess.PIPE,
        process_group=0,  # Ctrl+C is for the arena
    )
    parts: dict[str, str] = json.loads(done.stdout)
    return parts
