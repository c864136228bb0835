"""Cards as they are shown: grey where they fail and why, open where nothing could be told."""

from dataclasses import replace
from typing import Any

import pytest

from judge.probe.axes import Axis, AxisName, Card
from judge.probe.desiderata import NAMES, Desideratum, unknown
from judge.report.cards import (
    AXES,
    DESIDERATA,
    Mark,
    Scale,
    page_of,
    table_of,
    undecided_of,
    warnings_of,
)
from judge.studies.estimates import Estimate

ABOUT = {
    "votes": 1200,
    "models": 4,
    "voters": None,
    "taste_sd": None,
    "tie_rate": 0.1,
    "arenas": 30,
    "seed": 7,
}
MADE = {"version": "1.2.3", "made": "2026-05-03"}
NUMBERS: dict[str, dict[str, Any]] = {
    "reruns": {"ratio": 0.5, "lower": 0.4, "upper": 0.6},
    "validity": {"coverage": 0.9, "coverage_error": 0.01},
    "discriminability": {"signal_to_noise": {"ratio": 3.0, "lower": 2.5, "upper": None}},
    "consistency": {"spearman": [[1.0, 0.8], [0.8, 1.0]], "lower": 0.7, "upper": 0.9},
    "monotone": {"slope": 0.02, "lower": 0.01, "upper": 0.03},
}


def board(**passed: bool | None) -> dict[str, Any]:
    desiderata = [
        Desideratum(name, passed.get(name, True), "rule", f"found {name}", NUMBERS[name])
        for name in NAMES
    ]
    audit = {"measure": "x", "failed": [], "desiderata": [one.to_dict() for one in desiderata]}
    return {"about": ABOUT, "audits": [audit], **MADE}


def card(**estimates: Estimate) -> dict[str, Any]:
    axes = tuple(
        Axis(AxisName(name), estimate, (), 30, "texts") for name, estimate in estimates.items()
    )
    about = {"files": ["a.csv"], "sample": 300, "seed": 0}
    cards = [Card("e", "what it computes", axes, 0).to_dict()]
    return {"about": about, "cards": cards, **MADE}


def test_every_axis_and_every_desideratum_has_a_name() -> None:
    assert set(AXES) == {name.value for name in AxisName}
    assert set(DESIDERATA) == set(NAMES)


def test_a_measure_that_passes_is_not_grey() -> None:
    (view,) = page_of(board()).cards
    assert (view.greyed, view.verdict) == (False, "Passes 5 of 5.")
    assert {row.state for row in view.rows} == {"met"}


def test_a_measure_that_fails_is_grey_and_says_why() -> None:
    page = page_of(board(validity=False))
    (view,) = page.cards
    assert view.greyed
    assert view.verdict == "Fails: finds the truth."
    assert [row.shown for row in view.rows] == [False, True, False, False, False]
    assert warnings_of(page) == ["x, Finds the truth: found validity"]


def test_what_could_not_be_told_neither_passes_nor_fails() -> None:
    (view,) = page_of(board(validity=None, monotone=None)).cards
    assert not view.greyed
    assert view.verdict == "Passes 3 of 5. The rest could not be told."
    nothing = dict.fromkeys(NAMES)
    assert page_of(board(**nothing)).cards[0].verdict == "Nothing could be told."


def test_a_figure_that_does_not_tell_says_why() -> None:
    page = page_of(board(reruns=None))
    assert undecided_of(page) == ["x, Says the same again: found reruns"]
    assert warnings_of(page) == []


def test_a_line_without_numbers_has_no_picture() -> None:
    plain = board()
    plain["audits"][0]["desiderata"][0] = unknown("reruns", "There is one run.").to_dict()
    row = page_of(plain).cards[0].rows[0]
    assert (row.mark, row.text, row.notes[0]) == (None, "cannot be told", "There is one run.")


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("reruns", {"ratio": None}),
        ("validity", {"coverage": None, "coverage_error": None}),
        ("discriminability", {"signal_to_noise": {"ratio": None}}),
        ("consistency", {"spearman": [[None]]}),
    ],
)
def test_a_figure_that_is_not_defined_is_not_drawn(name: str, changed: dict[str, Any]) -> None:
    plain = board()
    plain["audits"][0]["desiderata"][NAMES.index(name)]["numbers"] = changed
    assert page_of(plain).cards[0].rows[NAMES.index(name)].mark is None


def test_marks_stand_at_their_value_on_the_scale_of_their_rule() -> None:
    rows = page_of(board()).cards[0].rows
    marks = [row.mark for row in rows]
    assert [mark.value for mark in marks if mark] == [0.5, 0.9, 3.0, 0.8, 0.02]
    inside = [mark.band[0] <= mark.centre <= mark.band[1] for mark in marks if mark and mark.band]
    assert inside == [False, False, True, False, True]
    ends = [(mark.lower, mark.upper) for mark in marks if mark]
    assert ends == [(0.4, 0.6), (0.88, 0.92), (2.5, None), (0.7, 0.9), (0.01, 0.03)]


def test_a_card_from_before_there_were_intervals_is_still_drawn() -> None:
    plain = board()
    plain["audits"][0]["desiderata"][0]["numbers"] = {"ratio": 0.5}
    mark = page_of(plain).cards[0].rows[0].mark
    assert mark is not None
    assert (mark.value, mark.line) == (0.5, None)


def test_an_axis_above_nothing_is_plain_and_one_that_is_not_is_named() -> None:
    plain = card(
        alignment=Estimate(0.5, 0.4, 0.6, 100),
        robustness=Estimate(-0.001, -0.1, 0.1, 100),
        clustering=Estimate(None, None, None, 0),
    )
    (view,) = page_of(plain).cards
    assert [row.state for row in view.rows] == ["plain", "failed", "open"]
    assert [row.text for row in view.rows] == ["0.50 (0.40 to 0.60)", "0.00 (-0.10 to 0.10)", "–"]
    assert (
        view.verdict == "No better than lots: keeps to the meaning, groups what belongs together."
    )
    assert not view.greyed


def test_a_card_without_one_good_axis_is_grey() -> None:
    (view,) = page_of(card(alignment=Estimate(0.0, -0.1, 0.1, 100))).cards
    assert view.greyed


def test_a_table_has_a_row_a_card_and_a_column_a_line() -> None:
    plain = card(alignment=Estimate(0.5, 0.4, 0.6, 100))
    plain["cards"].append(card(retrieval=Estimate(0.2, 0.1, 0.3, 9))["cards"][0])
    head, rows = table_of(page_of(plain))
    assert head == ("", AXES["alignment"], AXES["retrieval"])
    assert rows == [("e", "0.50 (0.40 to 0.60)", "–"), ("e", "–", "0.20 (0.10 to 0.30)")]


def test_marks_beyond_a_scale_stand_at_its_end() -> None:
    scale = Scale("", 0.0, 1.0, (0.5, 2.0), ())
    mark = Mark(scale, 7.0, -3.0, None)
    assert (mark.centre, mark.line, mark.band) == (194.0, None, (100.0, 194.0))
    assert replace(mark, upper=0.5).line == (6.0, 100.0)


def test_a_page_says_by_what_and_when_its_numbers_were_made() -> None:
    assert page_of(board()).made == "Made by arena 1.2.3 on 2026-05-03."
