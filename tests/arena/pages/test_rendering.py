"""What holds for every page: hostile text stays text, and the markup serves every reader."""

from dataclasses import replace
from datetime import timedelta
from html import unescape
from io import BytesIO

import pytest
from jinja2 import StrictUndefined, UndefinedError
from PIL import Image

from arena.catalogue import Language
from arena.domain.battle import Pacing
from arena.domain.board_view import Board, FitCheck, Misfit, Moment, PastRating
from arena.domain.vote import Choice
from arena.pages.rendering import (
    Visit,
    battle_page,
    battles_page,
    environment,
    method_page,
    missing_page,
    my_battles_page,
)
from arena.pages.routes import PREVIEW
from arena.pages.standings import VIEWS, Selection, even, leaderboard_page
from tests.arena.pages.conftest import (
    NOW,
    MakeBoard,
    MakePastBattle,
    MakeRow,
    a_hold,
    a_pair,
    a_record,
    shown_battle,
    shown_votes,
)
from tests.arena.pages.page import NOTHING, Page, board_page, past_page, with_a_past

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>{{ 7*7 }}'


def every_page(make_board: MakeBoard, make_past_battle: MakePastBattle) -> list[str]:
    return [
        *(board_page(with_a_past(make_board()), view) for view in VIEWS),
        board_page(make_board()),
        board_page(make_board(**NOTHING)),
        past_page([make_past_battle(one, n) for n, one in enumerate(Choice)]),
        past_page([]),
        past_page(None),
        *(method_page(make_board(), pacing=pacing, linked=True) for pacing in Pacing),
        missing_page("Go on."),
        battles_page(shown_votes(), newest=True, now=NOW),
        battles_page(replace(shown_votes(), votes=()), newest=False, now=NOW),
        battle_page(shown_battle(), now=NOW),
    ]


def hostile_board(make_board: MakeBoard, make_row: MakeRow) -> Board:
    row = replace(make_row(HOSTILE), name=HOSTILE, organisation=HOSTILE)
    board = make_board(
        rows=(row, make_row("b", 900)),
        waiting=(),
        pairs=(replace(a_pair(), row=HOSTILE, column="b"),),
        holds=(replace(a_hold(), above=HOSTILE, below="b"),),
        fit_check=FitCheck(
            pairs=9,
            far=1,
            by_chance=0.4,
            p=0.5,
            left_out=0,
            worst=(Misfit(row=HOSTILE, column="b", share=1.0, expected=0.5, n=9),),
        ),
        history=(
            Moment(
                when=NOW - timedelta(days=4),
                votes=3,
                ratings=(PastRating(model=HOSTILE, rating=1000.0, lower=0.0, upper=2000.0),),
            ),
        ),
        health=(a_record(HOSTILE),),
        warnings=(HOSTILE,),
        reason=HOSTILE,
        left_out={HOSTILE: 2},
        policy_rules=(HOSTILE,),
    )
    return replace(board, policy=HOSTILE, version=HOSTILE, method=HOSTILE)


def test_hostile_text_stays_text(
    make_board: MakeBoard,
    make_row: MakeRow,
    make_past_battle: MakePastBattle,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(environment(Language.EN).globals, "arena_name", HOSTILE)
    board = hostile_board(make_board, make_row)
    vote = replace(make_past_battle(prompt=HOSTILE), model_a_name=HOSTILE, battle_id=HOSTILE)
    pages = [
        *(board_page(board, view) for view in VIEWS),
        my_battles_page([vote], linked=True, now=NOW),
        method_page(board, pacing=Pacing.PACED, linked=True),
        missing_page(HOSTILE),
        battles_page(shown_votes(HOSTILE, HOSTILE), newest=True, now=NOW),
        battle_page(shown_battle(HOSTILE, HOSTILE), now=NOW),
    ]
    for html in pages:
        page = Page(html)
        assert not page.all("script")
        assert not page.all("img")
        assert HOSTILE in unescape(html)


def test_an_answer_is_formatted_and_cannot_turn_the_writing() -> None:
    html = battle_page(shown_battle("**so** \u202eabc"), now=NOW)
    assert '<p dir="auto"><strong>so</strong> \ufffdabc</p>' in html
    assert '<p class="asked" dir="auto">**so** \ufffdabc</p>' in html


def test_a_model_s_report_on_test_data_is_linked_without_a_way_back() -> None:
    url = 'https://x.example/?a=1&b=2"><script>alert(1)</script>'
    html = battles_page(shown_votes(), newest=True, now=NOW, reports={"quartz-8b": url})
    page = Page(html)
    (link,) = [link for link in page.all("a") if str(link.get("href")).startswith("https:")]
    assert (link["href"], link["rel"]) == (url, "noopener noreferrer nofollow")
    assert not page.all("script")
    others = battles_page(shown_votes(), newest=True, now=NOW, reports={"basalt": url})
    assert "x.example" not in others


def test_pages_hold_no_script_and_no_handler(
    make_board: MakeBoard, make_past_battle: MakePastBattle
) -> None:
    for html in every_page(make_board, make_past_battle):
        page = Page(html)
        assert not page.all("script")
        attributes = {name for _, values in page.tags for name in values}
        assert not [name for name in attributes if name.startswith("on")]
        assert "javascript:" not in html


def test_pages_are_well_formed_and_have_their_landmarks(
    make_board: MakeBoard, make_past_battle: MakePastBattle
) -> None:
    for html in every_page(make_board, make_past_battle):
        page = Page(html)
        assert page.open == []
        assert page.all("html") == [{"lang": "en"}]
        assert [len(page.all(tag)) for tag in ("h1", "main", "header")] == [1, 1, 1]
        names = [nav["aria-label"] for nav in page.all("nav")]
        assert names[0] == "Pages"
        assert names[1:] in ([], ["Views of the leaderboard"])
        assert page.all("a")[0] == {"class": "skip-link", "href": "#main"}
        ids = [values["id"] for _, values in page.tags if "id" in values]
        assert len(ids) == len(set(ids))


def test_every_table_has_a_name_and_every_heading_a_scope(make_board: MakeBoard) -> None:
    page = Page("".join(board_page(make_board(), view) for view in VIEWS))
    named = [table for table in page.all("table") if "aria-labelledby" in table]
    assert len(named) + len(page.all("caption")) == len(page.all("table")) == 5
    assert all("scope" in heading for heading in page.all("th"))


def test_the_present_page_is_marked_in_the_header(
    make_board: MakeBoard, make_past_battle: MakePastBattle
) -> None:
    for html, here in (
        (board_page(make_board()), ["/leaderboard", "/leaderboard"]),
        (board_page(make_board(), "data"), ["/leaderboard", "/leaderboard?view=data"]),
        (past_page([make_past_battle()]), ["/votes"]),
        (method_page(make_board(), pacing=Pacing.PACED, linked=True), ["/method"]),
        (missing_page("Go on."), []),
    ):
        links = [a["href"] for a in Page(html).all("a") if "aria-current" in a]
        assert links == here


def properties(html: str) -> dict[str | None, str | None]:
    metas = Page(html).all("meta")
    return {meta.get("property") or meta.get("name"): meta.get("content") for meta in metas}


def test_every_page_has_a_preview_for_links_to_it(
    make_board: MakeBoard, make_past_battle: MakePastBattle
) -> None:
    for html in every_page(make_board, make_past_battle):
        shown = properties(html)
        assert str(shown["og:title"]).endswith(" · Arena")
        assert shown["og:description"] == shown["description"] != ""
        assert shown["twitter:card"] == "summary"
    visit = Visit(origin="https://a.example")
    html = method_page(make_board(), pacing=Pacing.PACED, linked=True, visit=visit)
    assert properties(html)["og:image"] == "https://a.example/look/preview.png"


def test_the_preview_of_a_battle_is_the_beginning_of_its_prompt() -> None:
    html = battle_page(shown_battle(f"  Why\n\nis {HOSTILE} so?" + " and why" * 100), now=NOW)
    description = properties(html)["og:description"]
    assert description is not None
    assert description.startswith(f"Why is {HOSTILE} so? and why")
    assert len(description) <= 200
    assert description.endswith("…")


def test_the_picture_of_previews_is_a_png_of_the_usual_size() -> None:
    png = PREVIEW.read_bytes()
    with Image.open(BytesIO(png)) as picture:
        assert (picture.format, picture.size) == ("PNG", (1200, 630))
        assert len(picture.convert("RGB").getcolors() or ()) == 6
    assert len(png) < 10_000


def test_a_name_that_a_template_misses_raises() -> None:
    assert environment(Language.EN).undefined is StrictUndefined
    with pytest.raises(UndefinedError):
        environment(Language.EN).get_template("missing.html").render()


def test_models_that_change_place_or_leave_their_interval_are_named(
    make_board: MakeBoard, make_row: MakeRow
) -> None:
    steady = replace(make_row("a", 1100, 30), voter_rating=1110.0)
    placed = replace(make_row("b", 1000, 30), voter_rating=995.0, voter_rank=2)
    outside = replace(make_row("c", 900, 30), voter_rating=931.0)
    comparison = even(make_board(rows=(steady, placed, outside)))
    assert comparison is not None
    assert [row.model for row in comparison[0]] == ["b", "c"]
    assert comparison[1].model == "c"


def test_one_voter_has_nothing_to_be_compared_with(make_board: MakeBoard) -> None:
    assert even(make_board(voters=1)) is None
    assert even(make_board(rows=())) is None


def test_what_is_not_known_comes_last_whichever_way_the_rows_run(
    make_board: MakeBoard, make_row: MakeRow
) -> None:
    dear, cheap = make_row("dear"), replace(make_row("cheap"), price_per_1000=0.1)
    cheap = replace(cheap, votes=7, win_rate=0.9, median_s=9.0)
    unknown = replace(make_row("unknown"), price_per_1000=None, median_s=None)
    unknown = replace(unknown, votes=1, win_rate=0.1)
    board = make_board(rows=(unknown, dear, cheap))
    up, down = ["cheap", "dear"], ["dear", "cheap"]
    orders = {"price": up, "-price": down, "median": down, "-median": up}
    for sort, names in (orders | {"votes": down, "wins": up}).items():
        rows = Selection.of(sort, "").rows(board)
        assert [row.model for row in rows] == [*names, "unknown"]
    result = [len(Selection.of("", words).rows(board)) for words in ("EA", "stone w", "opal")]
    assert result == [2, 3, 0]


def test_addresses_of_the_standings_carry_what_was_chosen(make_board: MakeBoard) -> None:
    selection = Selection.of("votes", 'a&b="c"')
    board = make_board(policy="simulated-v1")
    page = Page(leaderboard_page(board, linked=True, now=NOW, selection=selection))
    sorts = [a["href"] for a in page.all("a") if a.get("class") == "sorts"]
    here = "/leaderboard?policy=simulated-v1&q=a%26b%3D%22c%22"
    others = (f"&sort={name}" for name in ("-votes", "wins", "price", "median"))
    assert sorts == [f"{here}&sort=name", here, *(here + other for other in others)]
    fields = {field["name"]: field["value"] for field in page.all("input")}
    assert fields == {"policy": "simulated-v1", "sort": "votes", "q": 'a&b="c"'}
    sorted_by = [th.get("aria-sort") for th in page.all("th") if "aria-sort" in th]
    assert sorted_by == ["descending"]
    downloads = [a["href"] for a in page.all("a") if "download" in a]
    assert downloads == [
        f"/leaderboard.{e}?policy=simulated-v1" for e in ("csv", "json", "parquet")
    ]
