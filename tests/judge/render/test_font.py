import subprocess
import sys
from io import BytesIO

import pytest
from fontTools.ttLib import TTFont

from judge.render import text


@pytest.mark.slow
def test_the_font_of_formulas_is_small_and_can_draw_roots() -> None:
    command = [sys.executable, "-m", "judge.render.text"]
    written = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    assert len(written) < 300_000
    made = TTFont(BytesIO(written))
    assert made.flavor == "woff2"
    assert "MATH" in made
    assert {ord("√"), ord("∑"), 0x1D44E} <= made.getBestCmap().keys()


def test_a_package_without_its_font_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "files", lambda _: [])
    with pytest.raises(FileNotFoundError, match=r"STIXTwoMath-Regular\.ttf"):
        text.maths_font()
