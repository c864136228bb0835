"""The leaderboard in words: what it claims, of which votes, and what it leaves open."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from arena.catalogue import Language
from arena.domain.board_view import Board, FitCheck, Misfit, OrganisationShare
from arena.domain.model import Kind, Stage
from arena.pages.rendering import Visit
from arena.pages.standings import MOST_WRITTEN, VIEWS, WRITTEN, Selection, leaderboard_page
from rating.sentences import Sentence
from tests.arena.pages.conftest import (
    NOW,
    MakeBoard,
    MakeRow,
    a_hold,
    a_pair,
    a_record,
    adjusted_of,
)
from tests.arena.pages.page import NOTHING, Page, board_page, text, with_a_past


def summary(board: Board) -> str:
    first, others, *_ = re.findall(r'<p class="summary">(.*?)</p>', board_page(board), re.DOTALL)
    return f"{text(first)} {text(others)}"


def test_one_sentence_says_what_the_board_is(make_board: MakeBoard) -> None:
    assert summary(make_board()) == (
        "2,184 votes by 56 people since 3 May. Updated 2 minutes ago. Ties count half. Intervals "
        "allow for voters who vote often. Policy default-v3 excluded 31 votes (why)."
    )


def test_a_single_voter_supports_no_claim_about_voters(make_board: MakeBoard) -> None:
    assert summary(make_board(votes=1, voters=1, left_out={})) == (
        "1 vote by 1 person since 3 May. Updated 2 minutes ago. Ties count half. All votes are "
        "from one person, so the intervals do not hold for others. Policy default-v3 excluded "
        "no votes."
    )


def test_intervals_by_vote_are_not_said_to_allow_for_voters(make_board: MakeBoard) -> None:
    shown = summary(make_board(by_voter=False))
    assert "Intervals do not allow for voters who vote often." in shown
    assert "too narrow where few people cast many" in text(board_page(make_board(by_voter=False)))


def test_ranks_of_a_small_team_stand_apart_and_are_said_to_be_theirs(
    make_board: MakeBoard,
) -> None:
    first, second = make_board().rows
    ranks = (
        replace(first, rank_low=1, rank_high=2),
        replace(second, rank_low=None, rank_high=None),
    )
    page = text(board_page(make_board(voters=8, among=ranks)))
    assert "Among these 8 voters These voters are too few" in page
    assert "Model Rank among them quartz-8b 1–2 chalk-3b –" in page
    assert "Rank among them" not in text(board_page(make_board(voters=8)))


def test_nothing_is_said_of_intervals_where_there_are_none(make_board: MakeBoard) -> None:
    shown = summary(
        make_board(**NOTHING | {"votes": 3, "voters": 2, "left_out": {"skipped": 1, "never": 0}})
    )
    assert shown == (
        "3 votes by 2 people since 3 May. Updated 2 minutes ago. Ties count half. Policy "
        "default-v3 excluded 1 vote (why)."
    )


def test_an_empty_board_says_so_and_what_to_do(make_board: MakeBoard) -> None:
    board = make_board(
        **{name: value for name, value in NOTHING.items() if name != "waiting"},
        since=None,
        left_out={},
        reason="Nobody voted yet.",
    )
    page = board_page(board)
    assert summary(board) == (
        "No votes yet. Updated 2 minutes ago. Policy default-v3 excluded no votes."
    )
    assert "Nobody voted yet." in page
    assert "Start a battle" in page
    assert "not yet" in page
    assert "tuff-13b" in page
    for view in ("head-to-head", "robustness"):
        other = board_page(board, view)
        assert "There are not enough votes for this view yet." in other
        assert "<h2" not in other


def test_a_board_of_another_year_names_the_year(make_board: MakeBoard) -> None:
    assert "since 3 May 2025." in summary(make_board(since=datetime(2025, 5, 3, tzinfo=UTC)))


def test_a_row_shows_range_rating_interval_and_what_an_answer_takes(make_board: MakeBoard) -> None:
    row = re.search(r"<tbody>\s*<tr.*?</tr>", board_page(make_board()), re.DOTALL)
    assert row
    shown = text(row[0])
    for words in (
        "2–4",
        "quartz-8b Stone Works",
        "1,184 ± 12",
        "412",
        "71% 67–75",
        "$0.41",
        "2.1 s",
    ):
        assert words in shown
    assert "quartz-8b: 1,184 points, 95% interval 1,172 to 1,196" in shown


def test_only_a_system_wears_a_badge(make_board: MakeBoard, make_row: MakeRow) -> None:
    assert 'class="badge"' not in board_page(make_board())
    system = replace(make_row(), kind=Kind.SYSTEM)
    assert board_page(make_board(rows=(system,), holds=())).count('class="badge"') == 1


def test_a_waiting_model_gets_a_reason_and_no_number(make_board: MakeBoard) -> None:
    row = re.search(
        r'<tr role="row" class="waiting">.*?</tr>', board_page(make_board()), re.DOTALL
    )
    assert row
    assert text(row[0]) == "– tuff-13b not yet 66 more votes needed 34"


def test_retired_models_are_marked_and_can_be_hidden(
    make_board: MakeBoard, make_row: MakeRow
) -> None:
    gone = replace(make_row("chalk-3b", 816.0), stage=Stage.RETIRED)
    waits = replace(make_board().waiting[0], stage=Stage.RETIRED)
    board = make_board(rows=(make_row(), gone), waiting=(waits,))
    page = board_page(board)
    assert "chalk-3b retired Stone Works" in text(page)
    assert "2 models have retired; their votes still count. Hide retired models" in text(page)
    assert 'href="/leaderboard?retired=hide"' in page
    selection = Selection.of("votes", "", "hide")
    hidden = leaderboard_page(board, linked=True, now=NOW, selection=selection)
    (table,) = re.findall(r'<table class="standings.*?</table>', hidden, re.DOTALL)
    assert "chalk-3b" not in table
    assert "2 models that have retired are hidden; ranks are those among all." in text(hidden)
    assert 'href="/leaderboard?sort=votes">Show retired models' in hidden
    assert {"name": "retired", "value": "hide", "type": "hidden"} in Page(hidden).all("input")
    assert "retired" not in text(board_page(make_board())).replace("Added and retired models", "")


def test_variants_stand_beside_the_ratings_and_as_the_best_of_so_many(
    make_board: MakeBoard, make_row: MakeRow
) -> None:
    best = replace(make_row(), family="quartz", variants=10, best_of=1165.4, declared=1180.0)
    other = replace(make_row("chalk-3b", 816.0), family="quartz", variants=10)
    shown = text(board_page(make_board(rows=(best, other)), "robustness"))
    assert "quartz-8b 10 variants Stone Works" in text(board_page(make_board(rows=(best, other))))
    assert "quartz-8b quartz 10 tested 1,184 1,165 1,180" in shown
    assert "chalk-3b quartz 10 tested 816 – –" in shown
    assert "Variants of one family" not in text(board_page(make_board(), "robustness"))


def test_whose_models_are_voted_on_is_said_with_its_inequality(make_board: MakeBoard) -> None:
    shares = tuple(
        OrganisationShare(organisation=name, models=2, votes=votes, share=votes / 400)
        for name, votes in (("Stone Works", 300), ("Clay", 100))
    )
    shown = text(board_page(make_board(shares=shares, gini=0.25), "data"))
    assert "Stone Works has 75% of all sides of the votes." in shown
    assert "Gini index between organisations: 0.25" in shown
    assert "Clay 2 100 25%" in shown
    assert "Gini" not in text(board_page(make_board(), "data"))


def test_notes_call_models_by_their_names(make_board: MakeBoard, make_row: MakeRow) -> None:
    ids = Sentence("%(names)s and %(n)s more", names="q8, c3", n=2)
    rows = (replace(make_row("q8"), name="Quartz, 8B"), replace(make_row("c3"), name="Chalk 3"))
    note = Sentence("Only ties join %(names)s to the other models.", names=ids)
    page = text(board_page(make_board(rows=rows, pairs=(), holds=(), warnings=(note,))))
    assert "1 note Only ties join Quartz, 8B, Chalk 3 and 2 more to the other models." in page


def test_warnings_stand_above_the_table(make_board: MakeBoard) -> None:
    page = board_page(make_board(warnings=("Few voters: ranks are excluded.",)))
    assert page.index("Few voters: ranks are excluded.") < page.index("<table")


def test_every_figure_carries_n_policy_and_date(make_board: MakeBoard) -> None:
    page = "".join(board_page(with_a_past(make_board()), view) for view in VIEWS)
    captions = re.findall(r"<(?:fig)?caption[^>]*>(.*?)</(?:fig)?caption>", page, re.DOTALL)
    standings, pairs, overturn, history, _, health = map(text, captions)
    for caption in (standings, overturn, pairs, history):
        assert "n = 2,184 votes, policy default-v3" in caption
    for caption in (standings, overturn, pairs, history, health):
        assert "14 June 2026, 14:18 UTC" in caption
    assert "Bradley-Terry, ties half" in standings
    assert "version 3f9a1c2e" in standings
    assert "56 voters (effective sample size 31); the busiest voter cast 8" in standings


def test_battles_without_a_vote_are_counted_by_model(make_board: MakeBoard) -> None:
    health = (a_record(), a_record("retired", 0, 0, 0))
    shown = text(board_page(make_board(health=health), "data"))
    assert "quartz-8b 440 14 8 5%" in shown
    assert "1 model has no such battle." in shown
    assert "retired 0" not in shown
    none = text(board_page(make_board(health=(a_record("x", 9, 0, 0),)), "data"))
    assert "1 model has no such battle." in none
    assert "Lost: the share of both" not in none, "a table of zeros says nothing"


def test_votes_left_out_are_listed_by_reason(make_board: MakeBoard) -> None:
    shown = text(board_page(make_board(), "data"))
    assert "given within a second 19" in shown
    assert "the model named itself 12" in shown


def test_a_cell_says_what_is_expected_and_what_was_counted(make_board: MakeBoard) -> None:
    page = board_page(make_board(), "head-to-head")
    over = re.search(r'<td class="over" style="--tone: 50%" title="(.*?)">(.*?)</td>', page)
    assert over
    assert text(over[2]) == "0.75 0.65–0.80 0.70 of 40"
    assert text(over[1]) == (
        "quartz-8b against chalk-3b: 0.75 by the ratings, 95% interval 0.65 "
        "to 0.80; 0.70 of 40 votes"
    )
    under = (
        r'<td class="under" style="--tone: 50%"[^>]*><a [^>]*>0.25</a> <span class="n within">0.2'
    )
    assert re.search(under, page)


def test_a_cell_of_a_pair_that_never_met_says_so(make_board: MakeBoard, make_row: MakeRow) -> None:
    rows = (make_row(), make_row("chalk-3b", 816.0), make_row("x", 800.0))
    unmet = replace(a_pair(share=None, n=0), row="chalk-3b", column="x")
    pairs = (a_pair(), replace(a_pair(), column="x"), unmet)
    shown = text(board_page(make_board(rows=rows, pairs=pairs), "head-to-head"))
    assert "0.75 0.65–0.80 not met" in shown
    assert "1 pair never met" in shown


def test_a_cell_without_a_rating_shows_the_count_alone(make_board: MakeBoard) -> None:
    shown = text(
        board_page(make_board(pairs=(a_pair(expected=None),), fit_check=None), "head-to-head")
    )
    assert "(0.70) of 40" in shown


def test_what_holds_the_first_place_is_a_sentence(make_board: MakeBoard) -> None:
    shown = text(board_page(make_board(), "robustness"))
    assert (
        "Without 12 of 2,184 votes, chalk-3b would rank "
        "above quartz-8b, which is in first place. Fewer may suffice. "
        "The same holds without 3 of the 56 voters." in shown
    )
    assert "quartz-8b over chalk-3b 368 12 3 about 1,900" in shown


@pytest.mark.parametrize(
    ("more_votes", "words"), [(0, "separated"), (55, "about 55"), (218_400, "about 220,000")]
)
def test_votes_to_come_are_said_as_far_as_they_are_known(
    make_board: MakeBoard, more_votes: int | None, words: str
) -> None:
    board = make_board(holds=(a_hold(more_votes=more_votes),))
    assert f"12 3 {words}" in text(board_page(board, "robustness"))


@pytest.mark.parametrize("more_votes", [None, 218_401])
def test_neighbours_that_are_level_are_counted_and_not_listed(
    make_board: MakeBoard, more_votes: int | None
) -> None:
    holds = (a_hold(), *[a_hold(more_votes=more_votes)] * 8)
    page = board_page(make_board(holds=holds), "robustness")
    assert (
        "8 pairs of neighbours are about equal and not shown: separating them would need more "
        "than 100 times as many votes" in text(page)
    )
    assert page.count(">over</span>") == 1
    alone = text(board_page(make_board(holds=holds[1:]), "robustness"))
    assert "Without 12 of 2,184 votes" in alone
    assert "Rank flips without" not in alone


def test_a_rank_that_nothing_overturned_is_called_firm(make_board: MakeBoard) -> None:
    shown = text(board_page(make_board(holds=(a_hold(k=None),)), "robustness"))
    assert "First place is robust: no removal of up to 60 votes that was tried" in shown
    assert "368 not found 3" in shown


def test_the_pairs_that_ratings_describe_worst_are_named(make_board: MakeBoard) -> None:
    worst = Misfit(row="quartz-8b", column="chalk-3b", share=0.9, expected=0.75, n=40)
    check = FitCheck(pairs=45, far=1, by_chance=2.04, p=0.62, left_out=0, worst=(worst,))
    shown = text(board_page(make_board(fit_check=check), "head-to-head"))
    assert (
        "Of 45 pairs with 5 votes or more, 1 is more than two standard errors from the "
        "expected share; by chance, about 2.0 are expected among voters like these. All pairs "
        "together: compatible with chance (p = 0.620). Furthest: quartz-8b won 90% of 40 "
        "votes against chalk-3b, where 75% was expected." in shown
    )


def test_pairs_that_one_number_does_not_describe_are_said_to_be_so(make_board: MakeBoard) -> None:
    check = FitCheck(pairs=45, far=9, by_chance=2.0, p=0.004, left_out=0, worst=())
    shown = text(board_page(make_board(fit_check=check), "head-to-head"))
    assert "no, the deviations exceed chance (p = 0.004)." in shown


def test_too_few_voters_say_nothing_of_chance(make_board: MakeBoard) -> None:
    check = FitCheck(pairs=45, far=0, by_chance=None, p=None, left_out=0, worst=())
    shown = text(board_page(make_board(fit_check=check), "head-to-head"))
    assert "too few people voted to estimate how many would by chance." in shown
    assert "(p =" not in shown
    none = replace(check, pairs=0, left_out=45)
    assert "too few people" not in text(board_page(make_board(fit_check=none), "head-to-head"))


def test_a_past_is_drawn_with_its_intervals_in_words(make_board: MakeBoard) -> None:
    shown = text(board_page(with_a_past(make_board()), "robustness"))
    assert "Rating over time" in shown
    assert "5 June: 1,150, 1,100 to 1,200; 14 June: 1,184, 1,172 to 1,196" in shown


def test_what_equal_voters_would_change_is_said(make_board: MakeBoard, make_row: MakeRow) -> None:
    same = text(board_page(make_board(), "robustness"))
    assert "With equally weighted voters (56 people), the order is the same" in same
    moved = replace(make_row(), voter_rating=1150.0, voter_rank=2)
    shown = text(board_page(make_board(rows=(moved, make_row("chalk-3b", 816.0))), "robustness"))
    assert "1 model has another rank" in shown
    assert "quartz-8b 1,184 no. 1 1,150 no. 2 −34 *" in shown


def test_the_board_stands_beside_the_one_with_the_votes_left_out(make_board: MakeBoard) -> None:
    board, (first, second) = make_board(), make_board().rows
    third, fourth = (replace(second, model=name, name=name) for name in ("basalt", "flint"))
    board = replace(board, rows=(first, second, third, fourth))
    moved = (replace(first, rating=first.rating + 60), replace(third, rank=2), fourth)
    whole = make_board(policy="default-v1", rows=moved)
    page = text(board_page(board, "data", whole=whole))
    assert (
        "With the votes excluded 31 votes are excluded, each for a reason of its own (why)."
        in page
    )
    assert "quartz-8b 1,184 no. 1 1,244 no. 1 +60" in page
    assert "chalk-3b 816 no. 1 not rated" in page
    assert "basalt 816 no. 1 816 no. 2 0" in page
    assert "flint" not in page
    assert "With the votes excluded" not in text(board_page(board, "data"))


def test_the_board_with_the_votes_left_out_says_so(make_board: MakeBoard) -> None:
    whole = make_board(policy="default-v1")
    assert "This view includes votes that the leaderboard excludes" in text(board_page(whole))
    assert "This view includes" not in text(board_page(make_board()))


def test_a_ring_is_named_in_the_language_of_the_page(make_board: MakeBoard) -> None:
    board = make_board(left_out={"ring for quartz-8b": 189, "always the left side": 3})
    german = text(board_page(board, "data", language=Language.DE))
    assert "abgesprochene Stimmen für quartz-8b 189" in german
    assert "immer die linke Seite 3" in german


def test_what_is_kept_of_a_page_is_of_this_board_this_order_and_this_language(
    make_board: MakeBoard, make_row: MakeRow
) -> None:
    now = datetime(2026, 5, 9, tzinfo=UTC)
    one = make_board()
    other = replace(one, rows=(replace(one.rows[0], rating=1234.0), *one.rows[1:]))
    shown = [
        leaderboard_page(board, linked=linked, now=now, selection=by, visit=Visit(language))
        for board in (one, other)
        for linked in (True, False)
        for by in (Selection(), Selection("name"))
        for language in Language
    ]
    assert len(set(shown)) == len(shown)
    again = leaderboard_page(
        replace(one, warnings=("This one is old.",)), linked=True, now=now, visit=Visit(votes=3)
    )
    assert "This one is old." in again
    assert "3 votes</a>" in again
    for n in range(MOST_WRITTEN + 20):
        leaderboard_page(make_board(votes=5000 + n), linked=True, now=now)
    assert leaderboard_page(one, linked=True, now=now, selection=Selection()) == shown[0]
    assert len(WRITTEN) == MOST_WRITTEN + 1


def adjusted_board(make_board: MakeBoard) -> Board:
    """Give a board of which the second model is the first once style is held equal."""
    first, second = make_board().rows
    return make_board(
        adjusted=adjusted_of(second, replace(first, rating=990.0, lower=970.0, upper=1010.0))
    )


def test_a_view_shows_the_ratings_with_style_held_equal(make_board: MakeBoard) -> None:
    board = adjusted_board(make_board)
    page = text(board_page(board, "adjusted"))
    assert "2,000 of 2,184 votes are used: the newest whose answers are still stored." in page
    assert page.index("chalk-3b 816") < page.index("quartz-8b 990")
    assert "quartz-8b 990 ± 20" in page
    assert "n = 2,000 votes" in page[page.index("twice as many characters") :]
    assert "twice as many characters +31 +12 to +51" in page
    german = text(board_page(board, "adjusted", language=Language.DE))
    assert "doppelt so vielen Zeichen +31 +12 bis +51" in german
    assert "There are not enough votes for this view yet." in board_page(make_board(), "adjusted")


def test_the_files_of_a_board_have_the_adjusted_ratings(make_board: MakeBoard) -> None:
    rows = {row["model"]: row for row in adjusted_board(make_board).to_rows()}
    names = ("rating", "adjusted_rating", "adjusted_lower", "adjusted_upper")
    assert [rows["quartz-8b"][name] for name in names] == [1184.0, 990.0, 970.0, 1010.0]
    plain = adjusted_board(make_board).to_dict()["adjusted"]
    assert plain["effects"] == [{"style": "length", "points": 31.4, "lower": 12.2, "upper": 50.6}]
    assert "adjusted" not in make_board().to_dict()
