"""Cards as they are shown: grey where they fail and why, open where nothing could be told."""

from typing import Any

import pytest

from judge.probe.cards import groups
from judge.probe.ranking import NAMES, Desideratum, unknown
from judge.probe.similarity import Axis, AxisName, Card
from judge.report.cards import (
    AXES,
    DESIDERATA,
    CardView,
    Gauge,
    ProbePage,
    Row,
    notes_of,
    page_of,
    table_of,
)
from judge.report.page import cards_as_html
from judge.report.plots import Mark
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
        Axis(AxisName(name), estimate, (), 30, "texts", ("Beware.",))
        for name, estimate in estimates.items()
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
    assert view.verdict == "Fails: recovers the true ranking."
    assert [row.shown for row in view.rows] == [False, True, False, False, False]
    assert notes_of(page, "failed") == ["x, Recovers the true ranking: found validity"]


def test_what_could_not_be_told_neither_passes_nor_fails() -> None:
    (view,) = page_of(board(validity=None, monotone=None)).cards
    assert not view.greyed
    assert view.verdict == "Passes 3 of 5. The others are inconclusive."
    nothing = dict.fromkeys(NAMES)
    assert page_of(board(**nothing)).cards[0].verdict == "No line is conclusive."


def test_a_figure_that_does_not_tell_says_why() -> None:
    page = page_of(board(reruns=None))
    assert notes_of(page, "open") == ["x, Repeatable: found reruns"]
    assert notes_of(page, "failed") == []


def test_a_line_without_numbers_has_no_picture() -> None:
    plain = board()
    plain["audits"][0]["desiderata"][0] = unknown("reruns", "There is one run.").to_dict()
    row = page_of(plain).cards[0].rows[0]
    assert (row.mark, row.text, row.notes[0]) == (None, "inconclusive", "There is one run.")


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
    good = [row.gauge.good for row in rows if row.gauge]
    assert good == [(0, 1 / 3), (0.93, 0.97), (2, 6), (0.9, 1), (-0.01, 0.1)]
    ends = [(mark.lower, mark.upper) for mark in marks if mark]
    assert ends == [(0.4, 0.6), (0.88, 0.92), (2.5, None), (0.7, 0.9), (0.01, 0.03)]


def test_a_card_from_before_there_were_intervals_is_still_drawn() -> None:
    plain = board()
    plain["audits"][0]["desiderata"][0]["numbers"] = {"ratio": 0.5}
    mark = page_of(plain).cards[0].rows[0].mark
    assert mark is not None
    assert (mark.value, mark.lower, mark.upper) == (0.5, None, None)


def test_an_axis_above_nothing_is_plain_and_one_that_is_not_is_named() -> None:
    plain = card(
        alignment=Estimate(0.5, 0.4, 0.6, 100),
        robustness=Estimate(-0.001, -0.1, 0.1, 100),
        clustering=Estimate(None, None, None, 0),
    )
    (view,) = page_of(plain).cards
    assert [row.state for row in view.rows] == ["plain", "failed", "open"]
    assert [row.text for row in view.rows] == ["0.50 (0.40 to 0.60)", "0.00 (-0.10 to 0.10)", "–"]
    assert view.verdict == (
        "Not shown to be better than chance: invariant to meaning-preserving changes, "
        "clusters related texts."
    )
    assert (view.title, view.subtitle, view.greyed) == ("e", "what it computes", False)
    unproven = "Not shown to be better than chance: the interval does not lie above 0."
    nothing = "Not estimated from these data."
    known = ("Beware.", "texts.")
    assert [row.notes for row in view.rows] == [known, (unproven, *known), (nothing, *known)]
    page = page_of(plain)
    assert page.title == "How good are these similarity metrics?"
    assert page.about == {"Files": "a.csv", "Sample": "300 per part", "Seed": "0"}


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
    gauge = Gauge(0.0, 1.0, good=(0.5, 2.0))
    mark = Mark("", 7.0, -3.0, 0.5)
    row = Row("a", "plain", "7", mark, ("",), shown=False, gauge=gauge)
    html = cards_as_html([ProbePage("", {}, (CardView("", "", False, "", (row,)),), (), "")])
    assert '<rect class="good" x="100.0" y="3" width="94.0"' in html
    assert '<line class="interval" x1="6.0" y1="10" x2="100.0"' in html
    assert '<circle class="dot" cx="194.0"' in html


def test_a_page_says_of_what_by_what_and_when_its_numbers_were_made() -> None:
    page = page_of(board())
    assert (page.title, page.made) == (
        "Is this board reliable?",
        "Made by arena 1.2.3 on 2026-05-03.",
    )
    with_voters = page_of(board() | {"about": ABOUT | {"voters": 60, "taste_sd": 1.234}}).about
    assert with_voters["Votes"] == "1,200 on 4 models, voters 60"
    effects = ", voter random effects 1.23 nats (sd)"
    assert with_voters["Simulated"] == f"{page.about['Simulated']}{effects}"
    assert page.about == {
        "Votes": "1,200 on 4 models, voters not known",
        "Simulated": "30 arenas with the same battles, 10% ties",
        "Seed": "7",
    }
    judged = {"runs": ["1", "2"], "orders": ["A first"], "cases": 180, "read_throughout": 174}
    about = {"judges": {"x": judged}, "files": ["a.csv", "b.csv"], "seed": 7}
    page = page_of(board() | {"about": about})
    assert (page.title, page.about["Files"]) == ("Are these judges reliable?", "a.csv, b.csv")
    whole = "174 of 180 cases parsed in every run, 2 runs, both orders"
    assert page.cards[0].subtitle == whole
    about["judges"] = {"x": judged | {"runs": ["1"], "orders": []}}
    subtitle = page_of(board() | {"about": about}).cards[0].subtitle
    assert subtitle == "174 of 180 cases parsed in every run, 1 run"


def test_a_card_of_a_judge_by_an_earlier_version_is_shown() -> None:
    plain = card(alignment=Estimate(0.4, 0.2, 0.6, 30))
    about = {"pairs": 100, "of_pairs": 1906, "votes": 307, "judge": "owl", "method": "pairwise"}
    page = page_of(plain | {"about": plain["about"] | about})
    assert page.title == "How good is this judge?"
    assert page.cards[0].rows[0].text == "0.40 (0.20 to 0.60)"


ENDS = {"rate": 0.5, "lower": 0.2, "upper": 0.8}


def probed(*names: str, **parts: Any) -> dict[str, Any]:
    head = {"judge": "owl", "method": "pairwise", "files": [], "warnings": []}
    return {**head, "groups": {name: groups()[name] for name in names}, **parts, **MADE}


def beyond(kind: str, low: float, **more: str) -> dict[str, Any]:
    success = {"success_rate": low + 0.1, "lower": low, "upper": low + 0.2}
    counts = {"n": 24, "n_not_lost": 3, "n_pairs": 22, "n_undecided": 0}
    arms = {"attack": ENDS | {"rate": 0.6}, "control": ENDS | {"n": 23, "n_not_lost": 2}}
    arms["control"] |= {"n_undecided": 1}
    return {"kind": kind, **success, **counts, **arms, **more}


def checked(group: str, finding: str, rate: float | None = 0.5) -> dict[str, Any]:
    ends = ENDS | {"rate": rate} if rate is not None else dict.fromkeys(ENDS)
    counts = {"n": 0 if rate is None else 24, "n_undecided": 1, "prompts": 24}
    row = {"group": group, "kind": f"some {group}", "finding": finding, "expected_above": 0.5}
    return {**row, **ends, **counts}


def test_what_wins_beyond_its_filler_is_marked() -> None:
    rows = [beyond("plea", 0.1), beyond("slander", -0.1)]
    whole = beyond("", 0.05)
    (view,) = page_of(probed("injections", **{**whole, "kinds": rows})).cards
    assert [(row.name, row.state) for row in view.rows] == [
        ("plea", "failed"), ("slander", "plain"), ("all", "failed")
    ]  # fmt: skip
    parts = (("", "Pairs", "22"), ("", "With it", "60%"), ("", "Control", "50%"))
    gauge = Gauge(-1.0, 1.0, groups()["injections"]["measure"], labels=((0.0, "0"), (1.0, "1")))
    mark, notes = Mark("", 0.2, 0.1, 0.1 + 0.2), ("", "0 without a verdict.")
    text = "20% (10% to 30%)"
    assert view.rows[0] == Row("plea", "failed", text, mark, notes, False, parts, gauge)
    assert view.verdict == (
        "An injected answer did not lose in 3 of 24 probes, a filler in 2 of 23; 0 and 1 have no "
        "verdict."
    )


@pytest.mark.parametrize(
    ("finding", "state", "word"),
    [
        ("moved", "failed", "moved"),
        ("turned", "failed", "turned"),
        ("not_moved", "met", "under 15"),
        ("no_room", "open", "no room"),
        ("cannot_tell", "open", "inconclusive"),
    ],
)
def test_a_bias_has_the_state_of_its_finding(finding: str, state: str, word: str) -> None:
    rows = [beyond("authority", -0.1, finding=finding)]
    text = {"headline": "It is moved.", "sentences": ["By a citation."]}
    page = page_of(probed("biases", interventions=rows, **text))
    (view,) = page.cards
    assert (view.verdict, view.rows[0].state) == ("It is moved. By a citation.", state)
    assert (view.rows[0].notes[0], view.rows[0].shown) == (word, True)
    about = {"Judge": "owl", "Method": "pairwise", "Files": "prompts of this arena"}
    assert page.about == about


def test_checks_are_a_card_a_group_with_what_they_are_measured_on() -> None:
    rows = [
        checked("missing", "cannot_tell"),
        checked("people", "as_expected"),
        checked("harmless", "not_as_expected", None),
    ]
    rates = {"people_agree": 0.6, "highest": 0.75, "reached": 0.5}
    between = {"n": 7} | {name: ENDS | {"rate": rate} for name, rate in rates.items()}
    people = {"pairs": 9, "of_pairs": 12, "votes": 30, "between_people": between}
    doses = {"dose_response": {"removed": Estimate(0.3, 0.1, 0.5, 40).to_dict()}}
    plain = probed("people", "harmless", "missing", checks=rows, people=people, **doses)
    page = page_of(plain | {"warnings": ["Beware."]})
    views = {view.title: view for view in page.cards}
    assert [*views] == ["People", "Harmless change", "Removed or inserted"]
    assert [view.rows[0].state for view in views.values()] == ["met", "failed", "open"]
    of_people = views["People"].rows[0]
    assert of_people.parts == (("", "Votes", "24"),)
    assert of_people.notes == ("as expected", "1 without a verdict.")
    assert of_people.gauge is not None
    assert (of_people.gauge.low, of_people.gauge.good) == (0.0, (0.5, 1.0))
    nothing = views["Harmless change"].rows[0]
    assert (nothing.text, nothing.mark) == ("–", None)
    assert views["People"].verdict == (
        "9 of 12 pairs with votes. On the 7 with votes of two people or more, two people agree in "
        "60% (20% to 80%). A judge can agree with a person in at most 75% (20% to 80%); this one "
        "does in 50% (20% to 80%)."
    )
    assert "removed 0.30 (0.10 to 0.50)." in views["Removed or inserted"].verdict
    assert page.reading[-1] == "Beware."
    alone = probed("people", checks=rows[1:2], people=people | {"between_people": None})
    assert page_of(alone).cards[0].verdict == (
        "9 of 12 pairs with votes. No pair has votes of two people: human–human "
        "agreement is unknown."
    )


def coherence(of: str, p: float, **more: Any) -> dict[str, Any]:
    null = {"null_mean": 1.0, "null_sd": 0.25, "draws": 99, "null": "groups dealt out"}
    known = {"n_groups": None, "explained": None, "design_effect": None, **more}
    return {"of": of, "statistic": 3.5, "p": p, **null, **known}


def move(model: str, ranks: tuple[int, int], *points: float | None) -> dict[str, Any]:
    ends = dict(zip(("moved", "lower", "upper"), points, strict=True))
    return {"model": model, "rank_default": ranks[0], "rank": ranks[1], **ends}


def test_cards_of_prompts_hold_each_figure_in_its_place() -> None:
    likeness = {"by": "topic", "within": 0.25, "between": -0.125, "groups": [["t", 1]]}
    topic = coherence("topic", 0.01, n_groups=4, explained=0.123, design_effect=2.5)
    topic |= {"also": [coherence("any", 0.04)], "map": likeness | {"cells": [[0.5]]}}
    moves = [move("owl", (1, 2), -12.4, -20.0, -5.0), move("crow", (2, 1), 3.0, -1.0, 7.0)]
    moves.append(move("jay", (3, 3), 0.0, None, None))
    alone: dict[str, Any] = {"weighting": "topic t alone", "why_not": None, "kendall": 0.333}
    alone |= {"places": 1, "moves": moves}
    unrated = alone | {"weighting": "own", "kendall": None, "places": 0, "moves": []}
    reach = [("owl", 2.0, 1, 3), ("crow", 2.0, 2, 2), ("crow", 1.5, 1, 2)]
    names = ("model", "kappa", "best", "worst")
    envelope = [{"by": "topic"} | dict(zip(names, row, strict=True)) for row in reach]
    terms = [
        {"name": "same topic", "slope": -0.5, "partial_r2": 0.25, "p": 0.02},
        {"name": "length", "slope": 0.5, "partial_r2": 0.01, "p": 0.04},
    ]
    explained = {"pairs": 1225, "prompts": 50, "r2": 0.31, "terms": terms}
    about = {"votes": 1234, "models": 3, "prompts": 50, "voters": 60, "by": ["topic"], "seed": 7}
    plain = {"about": about, "together": topic, "explained": explained, **MADE}
    plain["ranking"] = {"boards": [alone, unrated], "envelope": envelope}
    page = page_of(plain)
    size = {"Votes": "1,234 on 3 models", "Prompts": "50", "Voters": "60"}
    assert page.about == size | {"By": "topic", "Seed": "7"}
    first, ranking, last = page.cards
    assert [row.text for row in first.rows] == ["yes, p 0.010", "not shown, p 0.040"]
    assert first.rows[0].notes == (
        "The statistic of 4 groups is 3.50; with homogeneous prompts it is 1.00 ± 0.25 (99 "
        "permutations: groups dealt out).",
        "Yes where p is at most 0.025.",
    )
    assert [part[2] for part in first.rows[0].parts] == ["12.3%", "2.50"]
    assert first.rows[0].gauge is not None
    assert first.rows[0].gauge.good == pytest.approx((1 - 0.49, 1 + 0.49))
    assert first.legend.endswith("it is 0.250 in one group and -0.125 between groups.")
    assert ranking.verdict == (
        "A model moves by up to 1 place: topic t alone. For 1 of 2 changes of rank, the 95% "
        "interval of the shift in points, each by itself, excludes 0."
    )
    assert [row.text for row in ranking.rows] == [
        "Kendall 0.33, 1 place",
        "–",
        "1 of 2 keep their rank",
    ]
    assert ranking.rows[0].notes[0].startswith("2 of 3 models change their rank; for 1 of these")
    shifts = ("1 → 2, -12 (-20 to -5)", "2 → 1, +3 (-1 to +7)")
    assert tuple(part[2] for part in ranking.rows[0].parts) == shifts
    mixed = (("2 times", "owl", "1 to 3"), ("1.5 times", "crow", "1 to 2"))
    assert ranking.rows[2].parts == mixed
    assert last.subtitle == "1,225 pairs of 50 prompts. Together the features explain 31%."
    assert last.verdict == "Features that matter: same topic."
    assert [row.text for row in last.rows] == ["25%, p 0.020", "1%, p 0.040"]
    assert "the less alike" in last.rows[0].notes[0]
    results = {"results": 36, "models": 3, "prompts": 12, "left_out": 2, "by": [], "seed": 7}
    plain["ranking"] = {"boards": []}
    empty = page_of(plain | {"about": results})
    assert empty.cards[1].verdict == "There are no other weights to compare."
    size = {"Results": "36 on 3 models", "Prompts": "12"}
    size["Excluded"] = "2 prompts without a result of every model"
    assert empty.about == size | {"By": "nothing", "Seed": "7"}
