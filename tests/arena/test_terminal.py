"""What is printed: to the letter for a program, and without a command for a terminal."""

import io
import sys

import pytest
from rich.console import Console

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
