"""What Gradio does and leaves out when it is loaded."""

import importlib
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from arena.ui.loading import no_stubs

COMPONENT = """
from gradio.components import Component


class Plain(Component):
    EVENTS = ["change"]
"""


@pytest.mark.parametrize("loaded", [True, False])
def test_gradio_writes_no_stub_beside_a_component(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: bool
) -> None:
    file = tmp_path / "plain_component.py"
    file.write_text(COMPONENT, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with no_stubs() if loaded else nullcontext():
        module = importlib.import_module("plain_component")
    del sys.modules["plain_component"]
    assert module.Plain.EVENTS
    assert file.with_suffix(".pyi").exists() is not loaded
