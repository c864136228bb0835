"""Pictures of reports: labels have a place of their own, and what is drawn is what is given."""

import re
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.report.plots import LABELS, Box, Mark, heat_map, place_labels, scatter, slopes, width_of
from rating.charts.drawing import Scale

FRAME = (64.0, 10.0, 592.0, 610.0)
NAMES = [
    f"{family}-{n}-instruct" for n in range(10) for family in ("Basalt", "mica", "玄武岩", "W")
]


def meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def crowd(kind: str) -> list[tuple[float, float]]:
    """Lay 40 models out, most of them nearly on one spot."""
    rng = np.random.default_rng(4)
    middle = {"corner": (590.0, 12.0), "edge": (66.0, 300.0)}.get(kind, (328.0, 310.0))
    spots = rng.normal(
        middle, {"line": (0.5, 200), "spread": (150, 150)}.get(kind, (2, 2)), (40, 2)
    )
    return [(float(x), float(y)) for x, y in spots.clip((64, 10), (592, 610))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["centre", "corner", "edge", "line", "spread", "same"])
def test_no_label_meets_another_or_a_point_or_leaves_the_axes(kind: str) -> None:
    points = [(328.0, 310.0)] * 40 if kind == "same" else crowd(kind)
    boxes = place_labels(NAMES, points, FRAME)
    placed = [box for box in boxes if box is not None]
    assert len(placed) == 40
    assert not any(meet(one, other) for one, other in combinations(placed, 2))
    for box, name in zip(placed, NAMES, strict=True):
        assert box[2] - box[0] == pytest.approx(width_of(name))
        assert FRAME[0] <= box[0] < box[2] <= FRAME[2]
        assert FRAME[1] <= box[1] < box[3] <= FRAME[3]
        assert not any(meet(box, (x - 3, y - 3, x + 3, y + 3)) for x, y in points)
    assert place_labels(NAMES, points, FRAME) == boxes


def test_a_label_stands_beside_its_point_while_there_is_room() -> None:
    (box,) = place_labels(["mica"], [(300.0, 300.0)], FRAME)
    assert box is not None
    assert box[0] == pytest.approx(306)
    assert (box[1] + box[3]) / 2 == pytest.approx(300)


def test_a_label_without_room_is_left_out() -> None:
    assert place_labels(["mica"], [(5.0, 5.0)], (0, 0, 10, 10)) == [None]


def scattered(names: list[str]) -> str:
    axis = Scale(900, 1100, "points", lambda x: f"{x:,.0f}")
    points = [
        (name, Mark("people", 1000 + n / 50), Mark("judge", 1000 - n / 70))
        for n, name in enumerate(names)
    ]
    return scatter(points, axis, axis, title="Ratings")


def test_a_picture_names_each_of_forty_models_once() -> None:
    svg = scattered(NAMES)
    assert sorted(re.findall('class="name"[^>]*>([^<]*)<', svg)) == sorted(NAMES)
    assert svg.count('class="lead"') > 20
    assert svg == scattered(NAMES)


def test_a_point_has_an_interval_each_way_and_stays_inside_the_axes() -> None:
    axis = Scale(0, 1, "share", lambda x: f"{x:g}")
    inside = ("x", Mark("other", 0.25, 0.0, 0.5), Mark("people", 0.75, 0.5, 1.0))
    points = [inside, ("far", Mark("other", 7), Mark("people", -3))]
    shape = ElementTree.fromstring(scatter(points, axis, axis, title="t"))
    lines = {
        line.get("class"): [float(line.get(name, "")) for name in ("x1", "y1", "x2", "y2")]
        for line in shape.iter("line")
    }
    assert (lines["people"], lines["judge"]) == ([64, 100, 328, 100], [196, 190, 196, 10])
    assert lines["rule"] == [64, 370, 592, 10], "where both are equal"
    middles = [(circle.get("cx"), circle.get("cy")) for circle in shape.iter("circle")]
    assert middles == [("196.0", "100.0"), ("592.0", "370.0")]
    assert 'class="rule"' not in scatter(points, axis, axis, title="t", equal=False)


def test_a_long_name_is_cut_to_its_room() -> None:
    (name,) = re.findall('class="name"[^>]*>([^<]*)<', scattered(["W" * 5000]))
    assert name.endswith("W…")
    assert width_of(name) <= LABELS


def test_a_heat_map_has_a_path_a_tone_and_names_its_groups() -> None:
    cells: list[list[float | None]] = [[None, 0.5, -1.0], [0.5, 1.0, 0.0], [-1.0, 0.0, 0.25]]
    drawn = heat_map(cells, [("a", 2), ("<b>", 1)], title="How & why")
    shape = ElementTree.fromstring(drawn)
    assert [text.text for text in shape.iter("text")] == ["a", "<b>", "−1.00", "0", "1.00"]
    paths = {
        (path.get("class"), path.get("opacity")): (path.get("d") or "").count("M")
        for path in shape.iter("path")
    }
    assert paths == {("under", "1"): 2, ("over", "0.2"): 1, ("over", "0.4"): 2, ("over", "1"): 1}
    assert sum(line.get("class") == "cut" for line in shape.iter("line")) == 2


@given(st.lists(st.text(min_size=1), min_size=1, max_size=12, unique=True), st.integers(0, 99))
def test_slopes_join_the_ranks_of_each_model(names: list[str], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(names)).tolist()
    models = [(name, i + 1, order[i] + 1, i % 2 == 0) for i, name in enumerate(names)]
    shape = ElementTree.fromstring(slopes(models, title="Ranks"))
    lines = [*shape.iter("line")]
    assert len(lines) == len(names)
    kinds = [line.get("class") for line in lines]
    assert kinds.count("grid") == sum(left == right for _, left, right, _ in models)
    assert kinds.count("judge") == sum(left != right and sure for _, left, right, sure in models)
    heights = {line.get("y1"): line.get("y2") for line in lines}
    for _, left, right, _ in models:
        assert heights[f"{17 * (left - 0.5):.1f}"] == f"{17 * (right - 0.5):.1f}"
