"""`arena rate` with styles: an effect is said in points by unit, or by doubling."""

import math

import pytest

from rating.variants import POINTS_PER_NAT
from tests.command import invoke
from tests.rating.boards.rated import Write, crowd, rated, refused


def doubled(gain: float) -> str:
    """Votes that the longer answer wins with log-odds of ``gain`` a doubling, as exact shares."""
    rows = []
    for a, b in [(100, 200), (400, 100), (300, 300), (100, 800)]:
        wins = round(10_000 / (1 + 2 ** (-gain / math.log(2) * math.log2(a / b))))
        rows.append(f"x,y,model_a,{a},{b},{wins}")
        rows.append(f"x,y,model_b,{a},{b},{10_000 - wins}")
    return "model_a,model_b,winner,size_a,size_b,times\n" + "\n".join(rows) + "\n"


def test_the_effect_of_a_length_is_that_of_doubling_it(write: Write) -> None:
    source = write(doubled(0.4))
    board = rated(source, style=("log2:size",), weights="times", cluster="none")
    effect = board["parameters"]["style:log2:size"]
    assert effect["value"] == pytest.approx(0.4, abs=1e-3)
    assert set(effect) == {"value", "se", "lower", "upper"}
    words = ["rate", source, "--style", "log2:size", "--weights", "times"]
    output = invoke(words).stdout
    points = 0.4 * POINTS_PER_NAT
    assert f"style:log2:size: {points:+.1f} points per doubling of size (" in output


def test_the_effect_of_a_style_is_said_by_unit(write: Write) -> None:
    source = write(crowd(length=lambda i: (i * 7) % 11))
    board = rated(source, style=("length",), order_effect=True)
    effect, sd = board["parameters"]["style:length"], board["method"]["style_sd"]["length"]
    points = POINTS_PER_NAT * effect["value"] / sd
    output = invoke(["rate", source, "--style", "length", "--order-effect"]).stdout
    assert f"style:length: {points:+.1f} points per unit (" in output
    ahead = POINTS_PER_NAT * board["parameters"]["order_effect"]["value"]
    assert f"order_effect: {ahead:+.1f} points for side A (" in output


def test_a_length_of_nothing_is_not_doubled(write: Write) -> None:
    source = write(doubled(0.4).replace("300,300", "0,300"))
    refused(source, ["'size_a' is 0.0", "above 0"], style=("log2:size",))
