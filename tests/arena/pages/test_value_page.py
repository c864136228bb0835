"""The page of quality against price and time."""

import itertools
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from arena.boards.fitted import OPTIONS, READING
from arena.domain.board_view import NO_VOTES
from arena.domain.value_view import Valued
from arena.domain.words import Language
from arena.pages.rendering import value_page
from arena.pages.value import FURTHEST, scatter, tornado, weights_of
from arena.pages.visit import Visit
from judge.labels.safety_table import SHARES_FROM_PACK
from rating.tables.counts import read_figures
from rating.value.board import value
from rating.value.utility import TERMS, Terms, Weights
from tests.arena.pages.conftest import NOW
from tests.arena.pages.page import Page, text
from tests.arena.pages.valued import SAFETY, nothing, valued

USUAL, ENGLISH = Weights(), Visit()


def page(board: Valued | None, weights: Weights = USUAL, visit: Visit = ENGLISH) -> str:
    return value_page(board, weights=weights, now=NOW, visit=visit)


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
    assert "Left out of the costs: m9 (no price is known)." in words
    assert re.search(r">99 % by|100 % by", words)
    assert "lies within 20 points of the best" in words or "that lie within 20 points" in words


def test_a_model_without_a_price_is_not_drawn_against_price() -> None:
    board = valued().value
    assert board is not None
    cost, seconds = scatter(board, "cost"), scatter(board, "seconds")
    assert cost is not None
    assert seconds is not None
    assert {dot.row.model for dot in seconds.dots} - {dot.row.model for dot in cost.dots} == {"m9"}


def test_without_prices_only_time_is_shown_and_that_is_said() -> None:
    html = page(valued(priced=False))
    assert 'id="seconds"' in html
    assert 'id="cost"' not in html
    assert "No two models have prices to compare." in text(html)
    assert 'name="dollars"' not in html


def test_marks_stand_inside_and_names_do_not_overlap() -> None:
    board = valued().value
    assert board is not None
    picture = scatter(board, "cost")
    assert picture is not None
    for dot in picture.dots:
        assert 0 <= dot.left <= dot.x <= dot.right <= 100
        assert 0 <= dot.top <= dot.y <= dot.bottom <= picture.height
    labels = sorted(dot.label for dot in picture.dots)
    assert all(b - a >= 18.9 for a, b in itertools.pairwise(labels))
    assert len(picture.x_ticks) >= 2
    xs = [x for line in picture.steps for x in (line[0], line[2])]
    assert xs == sorted(xs)


def test_the_form_keeps_what_was_asked_and_works_without_a_script() -> None:
    html = page(valued(), Weights(wrong=2.5, dollars=0.3))
    form = Page(html)
    fields = {one["name"]: one for one in form.all("input")}
    assert set(fields) == set(TERMS)
    assert fields["wrong"]["value"] == "2.5"
    assert (fields["dollars"]["value"], fields["dollars"]["max"]) == ("0.3", "0.3")
    assert {"action": "/value#utility", "class": "card weights"} in form.all("form")
    assert "<button" in html


def test_a_term_without_data_has_no_slider_but_a_sentence() -> None:
    html = page(valued(labelled=False))
    assert 'name="wrong"' not in html
    assert 'name="refusal"' not in html
    assert "No answer is labelled as wrong or harmful" in text(html)
    assert "No answer is labelled as a refusal" in text(html)


def first_of(html: str) -> str:
    rows = html.split('aria-describedby="utility-caption">')[1]
    return rows.split('<th scope="row"><bdi>')[1].split("</bdi>")[0]


def test_weights_change_the_order_and_what_turns_it() -> None:
    free, dear = (
        page(valued(), Weights(wrong=0, refusal=0, dollars=w, seconds=0)) for w in (0, 0.05)
    )
    assert free != dear
    assert (first_of(free), first_of(dear) != "Obsidian XL") == ("Obsidian XL", True)
    assert "from 0.0" in text(free)


def test_nothing_that_has_all_that_weighs_is_said() -> None:
    board = valued()
    assert board.terms is not None
    dollars = board.terms.less["dollars"]
    why = dict.fromkeys(board.terms.models, dollars.left_out["m9"])
    terms = replace(board.terms, less={"dollars": replace(dollars, left_out=why)})
    words = text(page(replace(board, terms=terms), Weights(dollars=0.1)))
    assert "No two models have all that is weighed (no price is known)" in words


def test_the_bars_of_the_tornado_lie_inside_and_the_longest_is_first() -> None:
    terms = valued().terms
    assert terms is not None
    drawn = tornado(terms.weighed(Weights()))
    assert drawn is not None
    assert len(drawn.swings) == len(TERMS)
    widths = [swing.width for swing in drawn.swings]
    assert widths == sorted(widths, reverse=True)
    assert min(swing.left for swing in drawn.swings) >= 0
    assert max(swing.left + swing.width for swing in drawn.swings) <= 100


@pytest.mark.parametrize("bad", ["x", "-1", "nan", "inf", "1e9", ""])
def test_a_weight_that_cannot_be_read_is_the_usual_one(bad: str) -> None:
    assert weights_of({"wrong": bad}) == Weights()


def test_every_weight_has_a_slider_with_a_place_for_its_usual_value() -> None:
    assert list(FURTHEST) == list(TERMS)
    assert all(getattr(Weights(), name) <= most for name, most in FURTHEST.items())


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
    assert "81 % 77–86 corrected 85 %, 78–93 400 prompts" in words
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
    few = {("few" in row, "60 prompts" in row) for row in rows if "prompts</span>" in row}
    few |= {("few" in row, "60 prompts" in row) for row in rows if "prompts, a hint" in row}
    assert few == {(True, True), (False, False)}


def test_refusals_of_the_pack_weigh_where_the_votes_have_none_and_that_is_said() -> None:
    lent = page(valued(labelled=False, safety=SAFETY))
    assert 'name="refusal"' in lent
    assert SHARES_FROM_PACK in text(lent)
    assert "m9 (it was not asked these benign prompts)" in text(lent)
    own = page(valued(safety=SAFETY))
    assert SHARES_FROM_PACK not in text(own)


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
    terms = Terms.of(board.draws, rng)
    html = page(Valued("default-v1", "abc-1", NOW, {}, board, terms, None))
    assert "nan" not in html
    assert text(html).count("Dominated") >= 1
