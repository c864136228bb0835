"""Pages of boards by label: what they say, and how one comes to them."""

import io
import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import pyarrow.parquet
import pytest
from starlette.requests import Request

from arena.boards.labelled import FACETS, FEWEST_OF_BOTH, STANDING
from arena.catalogue import Language
from arena.domain.board_view import Effect, LabelBoard, LabelCount, LabelRow
from arena.domain.model import Kind
from arena.pages.rendering import Visit
from arena.pages.routes import _asked_label
from arena.pages.standings import AskedLabel, label_page
from arena.store.store import Store
from rating.mix import Pooling, RankReach
from rating.pooling import Excess, Unseen
from tests.arena.boards.kinds import arena_of_kinds, until_made, vote_on_kinds
from tests.arena.pages.conftest import NOW, a_row
from tests.arena.pages.page import Page, text
from tests.serving import Served, serve
from tests.sqlite import new_sqlite

LABELS = {
    "category": (LabelCount("code", 300, 0.6), LabelCount("other", 200, 0.4)),
    "language": (
        LabelCount("en", 421, 0.842), LabelCount("fr", 50, 0.1),
        LabelCount("it", 29, 0.058),
    ),
    "intent": (LabelCount("asking", 500, 1.0),),
}  # fmt: skip
CODE = AskedLabel("default-v3", "category", "code")
SHOWN = Excess(0.005, 0.002, 0.008)
NOT_SHOWN = Excess(0.001, -0.002, 0.004)
BETTER = Excess(-0.005, -0.008, -0.002)


def a_label_row(model: str = "quartz-8b", corrected: Effect | None = None) -> LabelRow:
    row = a_row(model)
    names = set(LabelRow.__dataclass_fields__) - {"borrowed", "other_mixes", "effect", "corrected"}
    values = {name: getattr(row, name) for name in names}
    return LabelRow(
        **values,
        borrowed=0.37,
        other_mixes=RankReach(model, 2, 5, 2.0),
        effect=Effect(23.4, -10.2, 57.0),
        corrected=corrected,
    )


def a_label_board(**changes: object) -> LabelBoard:
    fields: dict[str, object] = {
        "facet": "category",
        "value": "code",
        "policy": "default-v3",
        "version": "3f9a1c2e",
        "data_hash": "c0ffee",
        "updated": NOW - timedelta(minutes=2),
        "votes": 300,
        "voters": 44,
        "of": 500,
        "method": "Bradley-Terry, ties half",
        "level": 0.95,
        "anchor_mean": 1000.0,
        "rows": (a_label_row(corrected=Effect(25.1, -11.0, float("inf"))),),
        "newcomers": (),
        "warnings": (),
        "pooling": Pooling(52.0, 36.0, float("inf"), None),
        "labelled": 312,
        "unseen": Unseen(80, 0.541, SHOWN, NOT_SHOWN),
    }
    return LabelBoard(**(fields | changes))  # type: ignore[arg-type]


def shown(board: LabelBoard | None, asked: AskedLabel = CODE, reason: str | None = None) -> str:
    return label_page(asked, board, labels=LABELS, reason=reason, now=NOW)


def test_the_board_says_of_which_votes_it_is_and_what_it_borrows() -> None:
    page = shown(a_label_board())
    words = text(page)
    assert "Leaderboard: Code" in words
    assert "300 votes by 44 people on prompts of this kind, of 500 votes" in words
    assert "37% +23 −10 to +57 +25 −11 to +∞" in words
    assert "labelled by hand (Rogan and Gladen)" in words
    assert "has a standard deviation of 52 points (95% interval 36 to ∞)" in words
    assert Page(page).open == []


def test_without_known_errors_of_the_tagger_nothing_is_corrected() -> None:
    words = text(shown(a_label_board(rows=(a_label_row(),))))
    assert "Not corrected for errors of the labels" in words
    assert "Rogan" not in words


@pytest.mark.parametrize(
    ("apart", "pooled", "words", "others"),
    [
        (SHOWN, NOT_SHOWN, "use the board for all", "predict them better"),
        (
            SHOWN,
            BETTER,
            ("Partially pooled boards such as this one predict them better."),
            "Nor are",
        ),
        (
            BETTER,
            BETTER,
            "per category predict votes better than one board for all.",
            "worse than",
        ),
        (NOT_SHOWN, NOT_SHOWN, "Nor are pooled boards", "predict them better"),
        (
            NOT_SHOWN,
            SHOWN,
            ("Partially pooled boards such as this one predict them worse."),
            "Nor are",
        ),
    ],
)
def test_the_sentence_on_unseen_prompts_is_no_stronger_than_its_interval(
    apart: Excess, pooled: Excess, words: str, others: str
) -> None:
    page = text(shown(a_label_board(unseen=Unseen(80, 0.541, apart, pooled))))
    assert words in page
    assert others not in page
    assert "Log loss per vote: 0.541 for one board" in page


def test_where_it_was_not_measured_the_page_does_not_say_it_of_these_votes() -> None:
    words = text(shown(a_label_board(unseen=None)))
    assert "Log loss per vote" not in words
    assert "the votes of MT-bench on 80 prompts" in words


def test_two_labels_at_once_are_said_to_be_one() -> None:
    page = shown(a_label_board(), replace(CODE, also=(("language", "fr"),)))
    words = (
        "Fewer than 30 votes are on prompts of both kinds: this board uses Code alone. See French"
    )
    assert words in text(page)
    assert "/leaderboard?language=fr" in [link["href"] for link in Page(page).all("a")]


def test_a_board_of_two_labels_is_named_after_both_and_is_of_two_at_most() -> None:
    asked = replace(CODE, also=(("language", "fr"), ("hard", "yes"))).both()
    board = a_label_board(facet=asked.facet, value=asked.value)
    page = shown(board, asked)
    assert "Leaderboard: Code, French" in text(page)
    assert "Two kinds at a time at most. See Hard" in text(page)
    links = [link["href"] for link in Page(page).all("a")]
    assert "/leaderboard.csv?category=code&language=fr" in links
    assert board.to_dict()["label"] == {"category": "code", "language": "fr"}


def test_a_board_of_one_label_leads_to_two_where_votes_may_be_enough() -> None:
    links = [link["href"] for link in Page(shown(a_label_board())).all("a")]
    assert "/leaderboard?category=code&language=fr" in links
    assert "/leaderboard?category=code&intent=asking" not in links  # of all prompts
    assert "/leaderboard?category=code&language=it" not in links  # too few votes
    asked = replace(CODE, also=(("language", "fr"),)).both()
    assert "Code and" in text(shown(a_label_board()))
    both = shown(a_label_board(facet=asked.facet, value=asked.value), asked)
    assert "Code, French and" not in text(both)


def test_ranks_in_other_mixes_which_have_no_interval_are_on_no_board() -> None:
    words = text(shown(a_label_board()))
    assert "Other mixes" not in words
    assert "2–5" not in words
    assert a_label_board().to_dict()["ratings"][0]["other_mixes"] == {"best": 2, "worst": 5}
    unknown = replace(a_label_row(), other_mixes=None)
    row = a_label_board(rows=(unknown,)).to_rows()[0]
    assert (row["other_mixes_best"], row["other_mixes_worst"]) == (None, None)
    known = a_label_board().to_rows()[0]
    assert [known[f"other_mixes_{end}"] for end in ("best", "worst")] == [2, 5]
    ends = ("", "_lower", "_upper")
    assert [known[f"effect{end}"] for end in ends] == [23.4, -10.2, 57.0]
    assert [known[f"corrected{end}"] for end in ends] == [25.1, -11.0, None]


def test_labels_on_request_are_offered_without_a_count_and_marked_when_shown() -> None:
    links = [link["href"] for link in Page(shown(a_label_board())).all("a")]
    assert [link for link in links if link and "hard" in link] == ["/leaderboard?hard=yes"]
    asked = AskedLabel("default-v3", "refusal", "none")
    page = shown(a_label_board(facet="refusal", value="none"), asked)
    current = [link["href"] for link in Page(page).all("a") if link.get("aria-current") == "true"]
    assert "/leaderboard?refusal=none" in current
    assert "Leaderboard: No refusals" in text(page)


def test_a_board_that_is_being_made_looks_again_by_itself() -> None:
    page = shown(None)
    assert {"http-equiv": "refresh", "content": "3"} in Page(page).all("meta")
    assert "are being worked out" in text(page)
    why = shown(None, reason="There are no votes to pool.")
    assert "refresh" not in why
    assert "There are no votes to pool." in text(why)


def test_labels_with_one_value_lead_nowhere() -> None:
    links = [link["href"] for link in Page(shown(a_label_board())).all("a")]
    assert "/leaderboard?category=other" in links
    assert "/leaderboard?intent=asking" not in links


def test_hostile_values_are_shown_as_text() -> None:
    asked = AskedLabel("default-v3", "language", "<script>x</script>")
    assert "<script>x" not in shown(None, asked)


def test_the_page_speaks_german() -> None:
    visit = Visit(Language.DE)
    page = label_page(CODE, a_label_board(), labels=LABELS, now=NOW, visit=visit)
    assert "Französisch" in page
    assert "Geliehen" in page
    assert 'lang="en"' not in page.replace('<button lang="en"', "").replace(
        '<span lang="en">Bradley-Terry, ties half</span>', ""
    )


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with arena_of_kinds(
        tmp_path_factory.mktemp("kinds"), 200, "/leaderboard?category=code"
    ) as served:
        yield served


def test_the_leaderboard_leads_to_boards_by_label(arena: Served) -> None:
    with arena.visitor() as ada:
        home = ada.get("/leaderboard")
        links = [link.get("href") for link in Page(home.text).all("a")]
        assert {"/leaderboard?category=code", "/leaderboard?language=fr", "/mix"} <= {*links}
        assert "Other mixes" not in text(home.text)
        board = until_made(ada, "/leaderboard?category=coding&language=fr")
        assert board.status_code == 200
        assert "Leaderboard: Code" in text(board.text)
        assert "See French" in text(board.text)
        assert "with the label “maths”" in until_made(ada, "/leaderboard?category=math").text
        again = ada.get(
            "/leaderboard?category=code", headers={"If-None-Match": board.headers["ETag"]}
        )
        assert again.status_code == 200


def test_boards_of_two_labels_and_on_request_are_made_for_who_asks(arena: Served) -> None:
    with arena.visitor() as ada:
        both = until_made(ada, "/leaderboard?category=code&language=en")
        assert "Leaderboard: Code, English" in text(both.text)
        body = ada.get("/leaderboard.json?language=en&category=code").json()
        assert body["label"] == {"category": "code", "language": "en"}
        assert body["votes"]["used"] >= FEWEST_OF_BOTH
        hard = until_made(ada, "/leaderboard?hard=no")
        assert "All votes so far are on prompts of one kind" in text(hard.text)
        assert ada.get("/leaderboard?category=code&language=xx").status_code == 200
        assert ada.get("/leaderboard?hard=perhaps").status_code == 200


def test_addresses_name_eighteen_facets_beside_the_standing_ones() -> None:
    """Whatever the order of an address, and whatever its values."""
    asked = set()
    for one, other in itertools.product([*FACETS, "colour"], repeat=2):
        query = urlencode([(one, "x"), (other, "y")])
        label = _asked_label(Request({"type": "http", "query_string": query.encode()}), "p")
        if label:
            asked |= {label.facet, label.both().facet if label.also else label.facet}
    assert len(asked - {*STANDING}) == 18


def test_an_unknown_label_is_a_page_that_says_what_to_do(arena: Served) -> None:
    with arena.visitor() as ada:
        answer = ada.get("/leaderboard?category=chess")
        assert answer.status_code == 404
        assert "No counted vote is on prompts with the label “chess”" in text(answer.text)
        assert ada.get("/leaderboard.json?category=chess").status_code == 404


def test_boards_by_label_are_downloaded_with_what_they_borrow(
    arena: Served, tmp_path: Path
) -> None:
    with arena.visitor() as ada:
        body = ada.get("/leaderboard.json?language=fr").json()
        assert body["label"] == {"language": "fr"}
        assert {"tau", "lower", "upper"} <= body["pooling"].keys()
        row = body["ratings"][0]
        assert 0 <= row["borrowed"] <= 1
        assert {"value", "lower", "upper"} == row["effect"].keys()
        table = ada.get("/leaderboard.csv?language=fr").text.splitlines()
        assert {"borrowed", "effect", "effect_lower", "corrected_upper", "facet"} <= {
            *table[0].split(",")
        }
        assert len(table) == 1 + len(body["ratings"])
        file = ada.get("/leaderboard.parquet?language=fr").content
        rows = pyarrow.parquet.read_table(io.BytesIO(file)).to_pylist()
        assert [row["rating"] for row in rows] == [row["rating"] for row in body["ratings"]]
        assert {row["value"] for row in rows} == {"fr"}


def test_simulated_votes_have_boards_of_their_own(arena: Served) -> None:
    with arena.visitor() as ada:
        page = until_made(ada, "/leaderboard?policy=simulated-v1&category=code")
        assert "These votes are simulated." in page.text
        assert "No counted vote has a label yet" in page.text


@pytest.mark.slow
def test_an_arena_stops_while_boards_are_being_made(tmp_path: Path) -> None:
    url = new_sqlite(tmp_path)
    store = Store(url)
    vote_on_kinds(store, 60)
    store.close()
    with serve(database=url) as served, served.visitor() as ada:
        ada.get("/leaderboard")
    with serve(database=url) as served, served.visitor() as ada:
        until_made(ada, "/leaderboard?category=code")


def test_models_and_systems_are_named_alike() -> None:
    row = replace(a_label_row(), kind=Kind.SYSTEM)
    assert "system" in text(shown(a_label_board(rows=(row,))))
