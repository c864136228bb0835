"""What is printed: to the letter for a program, and without a command for a terminal."""

import io
import sys

import pytest
from rich.console import Console, RenderableType

from arena import terminal

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
