"""Pictures: written, well-formed, the same each time; hostile names stay text."""

import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from rating import Comparisons
from rating.charts.drawing import (
    FONT,
    THEMES,
    IntervalRow,
    Picture,
    Scale,
    drawing,
    labels,
    spread,
    width_of,
    wrapped,
)
from rating.charts.plots import intervals, quality_and_cost, votes_per_pair, win_rates
from rating.errors import DataError

MADE = date(2026, 5, 3)
LIGHT = THEMES["light"]
SVG = "{http://www.w3.org/2000/svg}"

HOSTILE = (
    "<script>alert(1)</script>",
    "$x^2$ $\\frac{1}{",
    "a & b < c \"d\" 'e'",
    "_under_score_{x}",
    "מודל נמוך",
    "نموذج",
    "🤖 robot",
    "模型",
    "line\nbreak\x00\x1b\u2028",
    "]]> --> <!-- </svg>",
    "#000000 url(http://example.org/x)",
    "long-" * 60,
    "long-" * 61,
    "%s {0} {x!r}",
)


def names_of(n: int) -> list[str]:
    return [f"organisation/model-of-a-long-name-{i:03d}-instruct" for i in range(n)]


def report_of(names: Sequence[str], **changes: Any) -> dict[str, Any]:
    n = len(names)
    ratings = [
        {
            "model": name,
            "rating": 1000.0 + 3 * (n - 2 * i),
            "lower": 1000.0 + 3 * (n - 2 * i) - 20,
            "upper": 1000.0 + 3 * (n - 2 * i) + 20,
            "rank": i + 1,
            "rank_low": max(1, i - 2),
            "rank_high": min(n, i + 4),
            "votes": 100,
        }
        for i, name in enumerate(names)
    ]
    method = {
        "ties": "half",
        "interval": "sandwich",
        "cluster": "voter",
        "level": 0.95,
        "scale": 400.0,
        "mean": 1000.0,
        "anchor": None,
        "version": "1.0",
        "data_hash": "f" * 64,
    }
    votes = {"used": 50 * n, "voters": 12, "effective_voters": 7.3}
    return {"method": {**method, **changes}, "votes": votes, "ratings": ratings}


def data_of(names: Sequence[str]) -> Comparisons:
    pairs = [(i, j) for i, j in combinations(range(len(names)), 2) if (i + j) % 3]
    a, b = np.array(pairs).T
    won = 7 * (0.5 + 0.4 * (b - a) / len(names))
    return Comparisons.from_codes(
        names,
        np.tile(a, 2),
        np.tile(b, 2),
        np.repeat([0, 1], len(a)),
        weight=np.concatenate([won, 7 - won]),
    )


def data_on(a: str, b: str, won: int, lost: int) -> Comparisons:
    return Comparisons.from_arrays(
        [a] * (won + lost), [b] * (won + lost), ["model_a"] * won + ["model_b"] * lost
    )


def pictures(names: Sequence[str]) -> dict[str, Picture]:
    report, data = report_of(names), data_of(names)
    return {
        "intervals": intervals(report, made=MADE),
        "win_rates": win_rates(report, data, made=MADE),
        "votes": votes_per_pair(report, data, made=MADE),
        "value": quality_and_cost(value_of(report), made=MADE),
    }


def value_of(report: dict[str, Any]) -> dict[str, Any]:
    """The same ratings with a cost each, the better the dearer, except every third."""
    models = []
    for i, row in enumerate(report["ratings"]):
        cost = 30.0 * 0.9**i * (4 if i % 3 == 2 else 1)
        taken = {
            "value": cost,
            "lower": 0.9 * cost,
            "upper": 1.1 * cost,
            "dominated": i % 3 == 2,
            "on_frontier": i % 3 != 2,
        }
        models.append(row | {"cost": taken, "seconds": None})
    return {"method": report["method"], "votes": report["votes"], "models": models}


def svg_of(picture: Picture, folder: Path) -> ET.Element:
    picture.write(folder / "picture.svg")
    return ET.parse(folder / "picture.svg").getroot()


def texts(root: ET.Element) -> list[str]:
    return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", [2, 20, 59])
def test_every_model_and_the_caption_are_in_the_svg(n: int, tmp_path: Path) -> None:
    names = names_of(n)
    for picture in pictures(names).values():
        root = svg_of(picture, tmp_path)
        described = root.findtext(f"{SVG}desc") or ""
        assert all(name in described for name in names)
        assert set(labels(names)) <= {re.sub(r"  \d+$", "", text) for text in texts(root)}
        assert picture.caption in re.sub(r"\s+", " ", " ".join(texts(root)))


def test_the_cells_of_more_than_a_hundred_models_are_one_image(tmp_path: Path) -> None:
    drawn = pictures(names_of(101))
    for kind in ("win_rates", "votes"):
        root = svg_of(drawn[kind], tmp_path)
        assert len(list(root.iter(f"{SVG}image"))) == 1, kind
        assert (tmp_path / "picture.svg").stat().st_size < 2e5, kind


@pytest.mark.slow
def test_two_hundred_models_are_drawn(tmp_path: Path) -> None:
    for kind, picture in pictures(names_of(200)).items():
        svg_of(picture, tmp_path)
        assert (tmp_path / "picture.svg").stat().st_size < 2e6, kind


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("suffix", "themes"),
    [
        (".png", ("light", "light")),
        pytest.param(".png", ("dark", "dark"), marks=pytest.mark.slow),
        *((".svg", (theme, theme)) for theme in THEMES),
        (".html", ("light", "dark")),  # a page holds both
    ],
)
def test_the_same_picture_has_the_same_bytes(
    suffix: str, themes: Sequence[Any], tmp_path: Path
) -> None:
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for one, again in zip(*(pictures(names_of(3)).values() for _ in themes), strict=True):
        one.write(first, theme=themes[0])
        again.write(second, theme=themes[1])
        assert first.read_bytes() == second.read_bytes()
        assert b"20:" not in re.findall(rb"<metadata>.*</metadata>", first.read_bytes())


def test_a_png_is_a_png_of_the_width_of_a_page(tmp_path: Path) -> None:
    intervals(report_of(names_of(3)), made=MADE).write(tmp_path / "x.png")
    data = (tmp_path / "x.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(data[16:20], "big") == 1300  # 6.5 inches at 200 dots
    assert b"Software" not in data


@pytest.mark.slow
def test_hostile_names_stay_text(tmp_path: Path) -> None:
    for kind, picture in pictures(HOSTILE).items():
        root = svg_of(picture, tmp_path)
        assert not list(root.iter(f"{SVG}script"))
        assert "$x^2$ $\\frac{1}{" in " ".join(texts(root)), kind
        assert "<script>alert(1)</script>" in " ".join(texts(root)), kind
        picture.write(tmp_path / "x.png")
        picture.write(tmp_path / "x.html")
        page = (tmp_path / "x.html").read_text("utf-8")
        assert "<script" not in page
        assert page.count("</svg>") == 1
        assert page.count("<bdi>") >= len(HOSTILE)


def test_a_page_stands_alone(tmp_path: Path) -> None:
    picture = intervals(report_of(names_of(3)), made=MADE)
    picture.write(tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text("utf-8")
    assert set(re.findall(r"(?:href=.|url\()(.)", page)) <= {"#"}
    assert not re.search(r"src=|@import|<link|<script", page)
    assert page.count(picture.caption) == 1
    assert "<title>Ratings</title>" in page
    assert "var(--ink)" in page
    assert THEMES["dark"].ink in page
    assert all(f"<bdi>{name}</bdi>" in page for name in names_of(3))


def test_names_that_look_like_a_colour_or_markup_are_left_alone(tmp_path: Path) -> None:
    names = ["#000000", "<b>$x$</b>&"]
    report = report_of(names, anchor={names[1]: 1000.0})
    picture = intervals(report, made=MADE, title="<i>&")
    root = svg_of(picture, tmp_path)
    assert root.findtext(f"{SVG}title") == "<i>&"
    assert root.findtext(f"{SVG}desc") == "#000000; <b>$x$</b>&"
    assert {*names} <= {*texts(root)}
    picture.write(tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text("utf-8")
    assert re.search(r"<text[^>]*>#000000</text>", page)
    assert "<title>&lt;i&gt;&amp;</title>" in page
    assert not re.search("<[bi]>", page)
    assert page.count("&lt;b&gt;$x$&lt;/b&gt;&amp;") == 4  # described, drawn, in caption and table


@pytest.mark.parametrize("nothing", [None, float("nan"), float("inf")])
def test_an_open_interval_ends_in_an_arrow(nothing: float | None) -> None:
    report = report_of(names_of(3))
    closed = drawn_markers(intervals(report, made=MADE))
    report["ratings"][0]["upper"] = nothing
    report["ratings"][1]["lower"] = nothing
    picture = intervals(report, made=MADE)
    assert closed == []
    assert sorted(drawn_markers(picture)) == ["<", ">"]
    assert "Arrow: the interval is open" in picture.caption
    first = (names_of(3)[0], "1,009", "989", "open", "1–3", "100")
    assert picture.table.rows[0] == first


def test_a_picture_of_differences_names_the_reference_and_a_mean_of_nothing() -> None:
    caption = intervals(report_of(["x", "y"], reference="y", mean=0.0), made=MADE).caption
    assert "95% intervals of the difference from y: sandwich, clustered by voter." in caption
    assert "Dashed line: the mean of all models, 0. Intervals: of the distance from y." in caption


def axes_of(picture: Picture) -> Any:
    with drawing():
        (axes,) = picture.draw(LIGHT, "").axes
    return axes


def drawn_markers(picture: Picture) -> list[str]:
    marks = [str(line.get_marker()) for line in axes_of(picture).lines]
    return [mark for mark in marks if mark in ("<", ">")]


def words_at(axes: Any) -> dict[tuple[float, float], str]:
    return {text.get_position(): text.get_text() for text in axes.texts}


def test_each_row_is_drawn_at_its_rating_with_its_interval_and_its_ranks() -> None:
    report = report_of(["x", "y", "z"], scale=100.0)
    first, second, third = report["ratings"]
    first |= {"rank_low": 1, "rank_high": 1, "upper": 1044.0}
    third |= {"rank_low": None, "rank_high": None, "votes": 1234}
    picture = intervals(report | {"ratings": [third, second, first]}, made=MADE)
    axes = axes_of(picture)
    rule, *lines = (line for line in axes.lines if line.get_zorder() > 0)
    assert rule.get_xdata() == [1000, 1000]
    bars, dots = ([[*line.get_xdata()] for line in lines[side::2]] for side in (0, 1))
    assert bars == [[989, 1044], [983, 1023], [977, 1017]]
    assert dots == [[1009], [1003], [997]]
    words = words_at(axes)
    rows = [[text for (_, y), text in words.items() if y == row] for row in range(3)]
    assert rows == [["x", "1"], ["y", "1–3"], ["z", ""]]
    assert axes.get_ylim() == (2.5, -0.5)  # the first is on top
    assert axes.get_xlabel() == "Rating (points; 100 more are odds of ten to one)"
    assert picture.table.head == ("Model", "Rating (points)", "Lower", "Upper", "Ranks", "Votes")
    assert picture.table.rows[0] == ("x", "1,009", "989", "1,044", "1", "100")
    assert picture.table.rows[2] == ("z", "997", "977", "1,017", "", "1,234")


def test_a_wild_interval_does_not_flatten_the_others() -> None:
    rows = [IntervalRow("x", 1100, 100, 2100, ""), IntervalRow("y", 1000, 970, 1030, "")]
    scale = Scale.of_ratings(rows)
    # Ratings spread over 100 points, and so it is cut there; 3 % of 300 are spared at each end.
    assert (scale.low, scale.high) == pytest.approx((900 - 9, 1200 + 9))


def test_cells_are_the_score_of_the_row_against_the_column() -> None:
    report, names = report_of(["x", "y"]), {}
    axes = axes_of(win_rates(report, data_on("x", "y", 30, 10), made=MADE))
    cells = {(1.5, 0.32): "75%", (1.5, 0.7): "40", (0.5, 1.32): "25%", (0.5, 1.7): "40"}
    assert {**words_at(axes), **cells} == words_at(axes)
    corners = [path.get_extents().extents.tolist() for path in axes.collections[0].get_paths()]
    assert corners == [[1, 0, 2, 1], [0, 1, 1, 2]]
    faces = [(*to_rgba(colour)[:3], 0.425) for colour in (LIGHT.over, LIGHT.under)]
    assert axes.collections[0].get_facecolor() == pytest.approx(np.array(faces), abs=1e-3)
    assert alphas(win_rates(report, data_on("x", "y", 20, 20), made=MADE)) == {0.0}
    assert marks_of(axes) == {-1: "0", -0.5: "25", 0: "50", 0.5: "75", 1: "100"}
    assert axes.child_axes[0].get_xlabel() == "Score of row against column (%)"
    for n in (12, 13, 14, 15):
        picture = win_rates(report_of(names_of(n)), data_of(names_of(n)), made=MADE)
        names[n] = (
            "Against" in words_at(axes_of(picture)).values(),
            "the score and" in picture.caption,
        )
    assert names == {12: (True, True), 13: (False, True), 14: (False, True), 15: (False, False)}


def test_votes_of_pairs_are_coloured_by_their_root() -> None:
    sides = [("x", "y")] * 16 + [("y", "z")] * 4
    first, second = zip(*sides, strict=True)
    data = Comparisons.from_arrays(first, second, ["model_a", "model_b"] * 10)
    picture = votes_per_pair(report_of(["x", "y", "z"]), data, made=MADE)
    assert cell_faces(picture)[:, 3].tolist() == [0.85, 0.85, 0.425, 0.425]
    assert marks_of(axes_of(picture)) == {0: "0", 0.25: "1", 0.5: "4", 0.75: "9", 1: "16"}


def marks_of(axes: Any) -> dict[float, str]:
    """What the colour scale names, by its tone."""
    (scale,) = axes.child_axes
    marks = [label.get_text() for label in scale.get_xticklabels()]
    return dict(zip(scale.get_xticks().tolist(), marks, strict=True))


def test_a_model_is_drawn_at_its_cost_and_rating_and_the_frontier_in_steps() -> None:
    result = value_of(report_of(["x", "y", "z", "w"]))
    result["models"][2]["cost"] |= {"dominated": False}
    result["models"][3]["cost"] |= {"dominated": True, "on_frontier": False}
    picture = quality_and_cost(result, made=MADE)
    axes = axes_of(picture)
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    costs = [row["cost"]["value"] for row in result["models"]]
    assert [line.get_xydata()[0].tolist() for line in dots] == [
        [cost, rating] for cost, rating in zip(costs, (1012, 1006, 1000, 994), strict=True)
    ]
    assert [line.get_color() for line in dots] == [LIGHT.over] * 2 + [LIGHT.muted] * 2
    faces = [LIGHT.over, LIGHT.over, LIGHT.muted, LIGHT.ground]
    assert [line.get_markerfacecolor() for line in dots] == faces
    (steps,) = (line for line in axes.lines if line.get_drawstyle() == "steps-post")
    assert steps.get_xydata().tolist() == [[27, 1006], [30, 1012]]
    across, up = (line.get_xydata().tolist() for line in axes.lines[:2])
    assert across == [[27, 1012], [33, 1012]]
    assert up == [[30, 992], [30, 1032]]
    assert axes.get_xlabel() == "US dollars per 1,000 answers, on the same prompts (log scale)"


def test_no_intervals_are_dots_and_said() -> None:
    report = report_of(names_of(3), interval="none")
    for row in report["ratings"]:
        row.update(lower=None, upper=None, rank_low=None, rank_high=None)
    picture = intervals(report, made=MADE)
    assert drawn_markers(picture) == []
    assert "no intervals" in picture.caption


def test_the_caption_says_votes_voters_method_level_data_and_date() -> None:
    assert intervals(report_of(["x", "y"]), made=MADE).caption == (
        "100 votes by 12 voters (effective number 7). Bradley-Terry with a tie as half a win; "
        "95% intervals: sandwich, clustered by voter. Dashed line: the mean of all models, "
        "1,000. Right: ranks that the votes allow, all at once at 95%. Ranges from first to last "
        "claim no order. arena 1.0, data ffffffffffff, 2026-05-03."
    )


@pytest.mark.parametrize("anchor", ["x=y=1200", {"x=y": 1200.0}])
def test_the_line_stands_at_the_anchor(anchor: object) -> None:
    picture = intervals(report_of(["x=y", "z"], anchor=anchor), made=MADE)
    assert "Dashed line: x=y, held at 1,200." in picture.caption


@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.slow), 20, 59])
@pytest.mark.parametrize("kind", ["intervals", "win_rates", "votes", "value"])
def test_labels_do_not_overlap_and_stay_inside(n: int, kind: str) -> None:
    with drawing():
        figure = pictures(names_of(n))[kind].draw(THEMES["light"], "A caption of the picture.")
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw_without_rendering()
        unseen = {label for axes in every_axes(figure) for label in beyond(axes)}
        there: list[Any] = [t for t in figure.findobj(match=is_text) if t not in unseen]
        shown = [t for t in there if t.get_text().strip()]
        boxes = np.array([t.get_window_extent(renderer).extents for t in shown])
    width, height = figure.bbox.size
    assert (boxes[:, :2] >= -0.5).all()
    assert (boxes[:, 2] <= width + 0.5).all()
    assert (boxes[:, 3] <= height + 0.5).all()
    assert overlapping(boxes, [t.get_text() for t in shown]) == []


def every_axes(figure: Any) -> list[Any]:
    return [axes for outer in figure.axes for axes in (outer, *outer.child_axes)]


def beyond(axes: Any) -> list[Any]:
    """Labels of ticks that are outside the axes, which matplotlib keeps but does not draw."""
    outside = []
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        outside += [label for at, label in ticks if not min(low, high) <= at <= max(low, high)]
    return outside


def is_text(artist: object) -> bool:
    from matplotlib.text import Text

    return isinstance(artist, Text)


def overlapping(boxes: np.ndarray[Any, Any], message: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes share more than a hair, which two points of leading may."""
    hair = 1.6
    x0, y0, x1, y1 = boxes.T
    wide = np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0)
    high = np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0)
    both = np.triu((wide > hair) & (high > hair), 1)
    return [(message[i], message[j]) for i, j in np.argwhere(both)]


def test_counts_stand_in_the_cells_of_thirty_models_and_are_missed_beyond(tmp_path: Path) -> None:
    few, many = (
        votes_per_pair(report_of(names_of(n)), data_of(names_of(n)), made=MADE) for n in (30, 31)
    )
    assert texts(svg_of(few, tmp_path)).count("7") > 200
    assert "In each cell" in few.caption
    assert texts(svg_of(many, tmp_path)).count("7") <= 2  # of a column, and on the scale
    assert "Counts are excluded" in many.caption


def test_a_share_of_few_votes_is_not_coloured() -> None:
    report = report_of(["x", "y"])
    assert alphas(win_rates(report, data_on("x", "y", 4, 0), made=MADE)) == {0.0}
    assert alphas(win_rates(report, data_on("x", "y", 5, 0), made=MADE)) == {0.85}


def cell_faces(picture: Picture) -> np.ndarray[Any, Any]:
    return np.asarray(axes_of(picture).collections[0].get_facecolor())


def alphas(picture: Picture) -> set[float]:
    return set(cell_faces(picture)[:, 3].tolist())


def test_models_without_a_cost_are_not_drawn_but_counted(tmp_path: Path) -> None:
    result = value_of(report_of(names_of(4)))
    result["models"][1]["cost"] = None
    picture = quality_and_cost(result, made=MADE)
    assert "Without a figure, and not drawn: 1." in picture.caption
    assert names_of(4)[1] not in picture.names
    dear, far = picture.table.rows[:2]
    assert dear[1:] == ("1,012", "30", "27", "33", "no")
    assert far == (names_of(4)[2], "1,000", "97.2", "87.5", "107", "yes")
    for row in result["models"]:
        row["cost"], row["seconds"] = None, row["cost"]
    assert quality_and_cost(result, made=MADE).table.head[2].startswith("Seconds an answer")
    for row in result["models"]:
        row["seconds"] = None
    with pytest.raises(DataError, match="no model has a cost or a time"):
        quality_and_cost(result, made=MADE)


def test_costs_that_are_all_alike_have_marks_on_their_axis(tmp_path: Path) -> None:
    result = value_of(report_of(names_of(3)))
    for row in result["models"]:
        row["cost"] |= {"value": 3.3, "lower": 3.3, "upper": 3.3}
    root = svg_of(quality_and_cost(result, made=MADE), tmp_path)
    assert {"5", "2"} & {*texts(root)}


def test_the_table_holds_each_pair_that_met_once() -> None:
    data = Comparisons.from_arrays(
        ["x", "x", "y", "y"], ["y", "y", "z", "z"], ["model_a", "model_b", "model_a", "model_b"]
    )
    picture = win_rates(report_of(["x", "y", "z"]), data, made=MADE)
    assert picture.table.rows == (("x", "y", "50", "2"), ("y", "z", "50", "2"))
    assert (
        "Score: wins and half the ties. Blank: never met. Not coloured: fewer than 5 votes. In "
        "each cell: the score and the number of votes. arena"
    ) in picture.caption
    votes = votes_per_pair(report_of(["x", "y", "z"]), data, made=MADE)
    assert "2 of 3 pairs met. In each cell: the number of votes." in votes.caption
    assert votes.table.rows == (("x", "y", "2"), ("y", "z", "2"))
    five = win_rates(report_of(["x", "y"]), data_on("x", "y", 5, 0), made=MADE)
    assert "half the ties. In each cell" in five.caption


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    report = report_of(["x", "y"])
    with pytest.raises(DataError, match=r"ends in \.png, \.svg, \.html"):
        intervals(report, made=MADE).write(tmp_path / "x.gif")
    with pytest.raises(DataError, match="Cannot write"):
        intervals(report, made=MADE).write(tmp_path / "nowhere" / "x.svg")
    with pytest.raises(DataError, match="no rating"):
        intervals({**report, "ratings": []}, made=MADE)
    with pytest.raises(DataError, match="stranger"):
        win_rates(report, data_on("x", "stranger", 1, 0), made=MADE)


def test_lines_of_a_caption_fit() -> None:
    words = "8,931 votes by 124 voters; " * 20
    lines = wrapped(words, 400, FONT)
    assert " ".join(lines) == words.strip()
    assert all(width_of(line) * FONT <= 400 for line in lines)


def test_places_are_moved_apart_and_keep_their_order() -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(50, 5, size=10)
    moved = np.array(spread(list(places), 9, 0, 100))
    assert (np.argsort(moved) == np.argsort(places)).all()
    assert all(b - a >= 9 - 1e-9 for a, b in pairwise(sorted(moved)))
    assert moved.min() >= 0
    assert moved.max() <= 100


def test_matplotlib_is_loaded_by_drawing_only() -> None:
    code = (
        "import sys, rating.charts.plots, arena.cli; "
        "assert not {'matplotlib', 'gradio'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_pooled_board_s_picture_says_what_it_borrows() -> None:
    report = report_of(names_of(3))
    assert "Shrunk" not in intervals(report, made=MADE).caption
    for row, share in zip(report["ratings"], (0.31, 0.4, 0.52), strict=True):
        row["borrowed"] = share
    report["method"] |= {"by": "language", "pool": True}
    caption = intervals(report, made=MADE).caption
    assert "pooled by language" in caption
    assert "31 to 52% of each rating comes from other categories" in caption
