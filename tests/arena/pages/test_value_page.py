"""The page of quality against price and time."""

import itertools
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from arena.boards.fitted import OPTIONS, READING
from arena.catalogue import Language
from arena.domain.board_view import NO_VOTES, Valued
from arena.pages.rendering import Visit, value_page
from arena.pages.value import scatter
from rating.tables.counts import read_figures
from rating.value import value
from tests.arena.pages.conftest import NOW
from tests.arena.pages.page import Page, text
from tests.arena.pages.valued import SAFETY, nothing, valued

ENGLISH = Visit()


def page(board: Valued | None, visit: Visit = ENGLISH) -> str:
    return value_page(board, now=NOW, visit=visit)


def test_before_it_is_worked_out_the_page_says_so() -> None:
    assert "being worked out" in text(page(None))


def test_without_votes_the_page_says_why_and_where_to_go() -> None:
    html = page(nothing(NO_VOTES))
    assert NO_VOTES in text(html)
    assert 'href="/leaderboard"' in html


def test_every_model_stands_in_the_table_and_names_are_text() -> None:
    html = page(valued())
    assert "<bdi>Basalt &lt;b&gt;large&lt;/b&gt;</bdi>" in html
    assert "<b>large" not in html
    for model in ("Obsidian XL", "Quartz", "m9"):
        assert model in text(html)
    Page(html)  # what is opened is closed


def test_what_is_dominated_and_what_to_take_stand_in_words() -> None:
    words = text(page(valued()))
    assert "Excluded from the costs: m9 (no price is known)." in words
    assert "by Quartz" in words
    assert "is within 20 points of the best" in words or "that are within 20 points" in words


def test_a_model_without_a_price_is_not_drawn_against_price() -> None:
    board = valued().value
    assert board is not None
    cost, seconds = scatter(board, "cost"), scatter(board, "seconds")
    assert cost is not None
    assert seconds is not None
    assert {row.model for row, _, _ in seconds[3]} - {row.model for row, _, _ in cost[3]} == {"m9"}


def test_without_prices_only_time_is_shown_and_that_is_said() -> None:
    html = page(valued(priced=False))
    assert 'id="seconds"' in html
    assert 'id="cost"' not in html
    assert "No two models have prices to compare." in text(html)


def test_marks_stand_inside_and_names_do_not_overlap() -> None:
    board = valued().value
    assert board is not None
    picture = scatter(board, "cost")
    assert picture is not None
    height, across, up, dots = picture
    for row, taken, _ in dots:
        ends = [across.at(end) for end in (taken.lower, taken.value, taken.upper)]
        assert 0 <= ends[0] <= ends[1] <= ends[2] <= 100
        assert 0 <= up.at(row.upper, height, 0) <= up.at(row.lower, height, 0) <= height
    labels = sorted(label for _, _, label in dots)
    assert all(b - a >= 18.9 for a, b in itertools.pairwise(labels))
    assert len(across.ticks()) >= 2
    first, _, _ = page(valued()).partition('<section aria-labelledby="seconds">')
    lines = [line for line in Page(first).all("line") if line.get("class") == "frontier"]
    xs = [float((line[end] or "").rstrip("%")) for line in lines for end in ("x1", "x2")]
    assert len(xs) > 2
    assert xs == sorted(xs)


def test_the_page_speaks_german() -> None:
    words = text(page(valued(), visit=Visit(Language.DE)))
    assert "Was Qualität kostet" in words
    assert "Ohne Kosten bleiben: m9 (kein Preis ist bekannt)." in words
    assert not re.search(r"\b(the|and|is known)\b", words.split("Voters", 1)[0])


def test_without_safety_nothing_is_said_of_it() -> None:
    assert 'id="refusals"' not in page(valued())


def test_refusals_stand_beside_ratings_with_intervals_and_corrected() -> None:
    html = page(valued(safety=SAFETY))
    words = text(html.split('<h2 id="refusals">')[1].split("<h2")[0])
    assert "Refuses harmful Refuses benign Complies (does) Complies (can)" in words
    assert "81% 77–86 corrected 85%, 78–93 400 prompts" in words
    assert "<i>m77</i>" not in html
    assert "1 model was asked these prompts, and has no rating here: <i>m77</i>." in words
    assert "8 models have a rating, and were not asked these prompts" in words
    order = re.findall(r'<th scope="row"><bdi>(.*?)</bdi>', html.split('id="refusals"')[1])
    assert order[:3] == [
        "Obsidian XL",
        "Basalt &lt;b&gt;large&lt;/b&gt;",
        "&lt;i&gt;m77&lt;/i&gt;",
    ]


def test_shares_of_few_prompts_are_grey_and_others_are_not() -> None:
    rows = page(valued(safety=SAFETY)).split('<h2 id="refusals">')[1].split("<tr>")
    of_prompts = [row for row in rows if "prompts</span>" in row or "prompts, a hint" in row]
    few = {('class="few"' in row, "60 prompts" in row) for row in of_prompts}
    assert few == {(True, True), (False, False)}


def test_refusals_are_shown_before_anything_is_rated() -> None:
    words = text(page(replace(nothing(NO_VOTES), safety=SAFETY)))
    assert NO_VOTES in words
    assert "3 models were asked these prompts, and have no rating here" in words


@pytest.mark.parametrize("seed", range(12))
def test_a_page_is_given_for_every_outcome_of_few_votes(seed: int) -> None:
    """Two models rated exactly alike by ten votes once had no scale to stand on."""
    rng = np.random.default_rng(seed)
    n, outcome = 12, (["tie"] * 12, ["model_a", "model_b"] * 6, ["model_a"] * 9 + ["tie"] * 3)
    sides = np.array(["x", "y"] * n).reshape(n, 2)[:, :: -1 if seed % 2 else 1]
    source = pl.DataFrame(
        {
            "model_a": sides[:, 0],
            "model_b": sides[:, 1],
            "winner": outcome[seed % 3],
            "voter": rng.integers(1 + seed % 4, size=n).astype(str),
            "seconds_a": np.exp(rng.normal(-7, 3, n)),
            "seconds_b": np.exp(rng.normal(-7, 3, n)),
        }
    )
    board = value(*read_figures(source, READING), OPTIONS)
    html = page(Valued("default-v1", "abc-1", NOW, {}, board, None))
    assert "nan" not in html
    assert text(html).count("Dominated") >= 1
