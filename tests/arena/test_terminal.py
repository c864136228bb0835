"""What is printed: to the letter for a program, and without a command for a terminal."""

import io
import sys
from itertools import combinations
from typing import Any

import pytest
from rich.console import Console, RenderableType

from arena import terminal
from arena.commands.bench import _board
from rating.planning import Plan, _Neighbours

NAME = "\x1b[31mred\x07\u202e[/bold]"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("out", "same"), [(io.StringIO(), True), (Screen(), False)])
def test_a_page_is_to_the_letter_unless_a_terminal_reads_it(
    out: io.StringIO, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", out)
    terminal.write(f"model,rating\n{NAME},1\n")
    assert (NAME in out.getvalue()) is same
    assert out.getvalue().count("\n") == 2


def test_a_progress_bar_takes_no_command_and_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(
        terminal, "Console", lambda **_: Console(file=screen, force_terminal=True, width=120)
    )
    with terminal.working("Studying", after_s=0) as progress:
        while "\ufffd[31mred" not in screen.getvalue():
            progress(1, 2, f", agreement of {NAME}")
    assert "[/bold]" in screen.getvalue()
    assert "\x07" not in screen.getvalue()
    assert "\u202e" not in screen.getvalue()


def printed(*parts: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(*parts)
    return out.getvalue()


def test_five_warnings_are_printed_those_on_figures_that_are_there_first() -> None:
    texts = [
        "There is no alpha: no item has two votes.",
        *(f"'{name}' has {n} rows: few." for n, name in enumerate("vwxyz")),
        "One voter has 60% of the votes.",
        "8 prompts say little of others: the intervals are rough.",
        "8 prompts say little of others: the intervals are rough.",
    ]
    lines = [str(line) for line in terminal.warnings(texts)]
    assert lines[:4] == [f"! {texts[place]}" for place in (1, 6, 7, 0)]
    assert lines[4:] == [f"! {texts[2]}", "! 3 more warnings are in the JSON form."]
    assert [str(line) for line in terminal.warnings(texts[-1:])] == [f"! {texts[-1]}"]


@pytest.mark.parametrize(
    ("lower", "upper"), [(None, 2.0), (1.0, None), (1.0, 1.0), (float("nan"), float("nan"))]
)
def test_an_interval_without_ends_or_width_is_not_estimated(
    lower: float | None, upper: float | None
) -> None:
    assert terminal.interval(lower, upper, ".1f") == "not estimated"
    assert terminal.interval(-1.0, 2.0, "+.1f") == "-1.0 to +2.0"


def test_a_table_of_names_and_dashes_is_not_printed() -> None:
    head = ("Model", "Right", "Wrong")
    assert printed(terminal.table(head, [("x", "–", ""), ("y", "–", "–")])).strip() == ""
    assert printed(terminal.table(head, [])).strip() == ""
    assert "Wrong" in printed(terminal.table(head, [("x", "–", ""), ("y", "0", "–")]))


def words(part: RenderableType) -> str:
    return " ".join(printed(part).split())


def test_a_plan_is_laid_out_by_neighbours_and_by_leads() -> None:
    pairs = (
        _Neighbours("basalt", "flint", 41.4, 12.6, 1200, True, 0, 0, 95),
        _Neighbours("flint", "quartz", 7.5, 9.0, 30, False, 5100, 1, 1040),
        _Neighbours("quartz", "slate", 1.0, 8.0, 3, False, None, None, None),
    )
    shown = words(terminal.plan(Plan(2400, 0.19, 0.95, pairs, {10: 9482, 200: 27}, ())))
    assert shown.startswith("2,400 votes, 19% of them ties.")
    assert "│ basalt │ flint │ 41 ± 13 │ 1,200 │ separated │ separated │ 95 │" in shown
    assert "│ flint │ quartz │ 8 ± 9 │ 30 │ 5,100 │ 1 │ 1,040 │" in shown
    assert "│ quartz │ slate │ 1 ± 8 │ 3 │ – │ – │ – │" in shown
    assert "│ 10 │ 9,482 │ │ 200 │ 27 │" in shown


def test_moves_are_laid_out_from_the_old_board_to_the_new() -> None:
    row = {"model": "flint", "rank_old": 2, "rank_new": 1, "old": 980.4, "new": 1011.6}
    ends = {"moved": 31.2, "lower": -4.6, "upper": 66.0}
    aside = {"added": ["umber", "wren"], "gone": ["slate"], "note": "Same votes."}
    shown = words(terminal.moves({"moved": [row | ends], **aside}))
    assert "│ flint │ 2 → 1 │ 980 → 1012 │ +31 │ -5 to 66 │" in shown
    assert shown.endswith("New: umber, wren. Gone: slate. ! Same votes.")


Report = dict[str, Any]
ROW: Report = {"rating": 1010.0, "lower": 990.4, "upper": 1050.6, "votes": 1200, "rank_high": 2}
METHOD = {"interval": "none", "scale": 400.0, "level": 0.9, "style_sd": {"x": 2.0}, "pool": False}
VOTES: Report = {"used": 2400, "voters": None, "self": 0, "dropped": {}}
BOARD: Report = {"votes": VOTES, "method": METHOD, "parameters": {}, "warnings": ["Few.", "Odd."]}


def test_boards_of_groups_are_laid_out_with_all_that_is_said_of_each() -> None:
    nats = {"value": 0.5, "lower": 0.25, "upper": 0.75}
    parameters = {"style:x": nats, "order_effect": nats | {"lower": None}, "nu": nats}
    rows = [ROW | {"model": f"m{n}", "rank_low": n, "borrowed": n / 8} for n in (1, 2)]
    groups = {"en": BOARD | {"ratings": rows, "parameters": parameters}}
    pooling = {"tau": 51.4, "lower": 35.7, "upper": 72.6, "tau_prompt": None}
    report = {"groups": groups, "pooling": pooling, "not_rated": {"de": "Too few."}}
    shown = words(terminal.board(report))
    assert shown.startswith("Pooled: the standard deviation between categories is 51 points")
    assert "│ 1–2 │ m1 │ 1010 ± 30 │ 990 to 1051 │ 1,200 │ 12% │ │ 2 │ m2 │" in shown
    assert "style:x: +43.4 points per unit (+21.7 to +65.1) order_effect: +86.9 points" in shown
    end = "for side A nu: 0.5000 (0.2500 to 0.7500) ! de: Too few. ! en: Few. ! en: Odd."
    assert shown.endswith(end)


def test_a_mix_is_laid_out_with_neighbours_and_with_ranks_in_other_mixes() -> None:
    names = ("basalt", "flint", "quartz")
    ends = {"preferred": 0.55, "lower": 0.45, "upper": None}
    pairs = [{"a": a, "b": b, **ends} for a, b in combinations(names, 2)]
    reach = [
        {"model": name, "kappa": kappa, "best": place, "worst": place + (kappa > 2)}
        for kappa in (8.0, 1.5)
        for place, name in enumerate(names, 1)
    ]
    rows = [ROW | {"model": name, "rank_low": 1} for name in names]
    mix = {"mix": {"code": 0.75, "law": 0.25}, "n_effective": 1234.0, "pairs": pairs}
    shown = words(terminal.mix(BOARD | mix | {"ratings": rows, "envelope": reach}))
    assert shown.startswith("Mix: code 75%, law 25%. Effective sample size: 1,234 votes. 2,400")
    assert "│ basalt │ flint │ 55% │ 45% to – │ │ flint │ quartz │ 55% │ 45% to – │ └" in shown
    assert "┃ Model ┃ 1.5 x ┃ 8 x ┃" in shown
    assert "│ basalt │ 1 │ 1–2 │ │ flint │ 2 │ 2–3 │ │ quartz │ 3 │ 3–4 │" in shown


def test_a_leaderboard_of_marks_from_one_to_ten_has_wb_scores_and_their_interval() -> None:
    scores = {"score": 7.5, "adjusted": 5.0, "task_macro": 4.25, "lower": 7.0, "upper": 8.5}
    shown = words(_board([{"model": "slate", **scores, "n": 1200, "failed": 3, "cost": 0.25}]))
    assert "┃ WB-Score ┃ 95% interval ┃ Task macro ┃ 1–10 mean ┃ n ┃ Failed ┃ Cost ┃" in shown
    assert "│ slate │ 5.00 │ 4.00 to 7.00 │ 4.25 │ 7.50 │ 1,200 │ 3 │ $0.25 │" in shown
