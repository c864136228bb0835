"""Pages of boards by label: what they say, and how one comes to them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from arena.domain.label_view import Effect, LabelBoard, LabelCount, LabelRow
from arena.domain.model import Kind
from arena.domain.words import Language
from arena.pages.rendering import AskedLabel, Visit, label_page
from arena.store.store import Store
from rating.pooling.boards import Pooling
from rating.pooling.unseen import Excess, Unseen
from tests.arena.boards.kinds import vote_on_kinds
from tests.arena.pages.conftest import NOW, a_row
from tests.arena.pages.page import Page, text
from tests.serving import Served, Visitor, serve
from tests.sqlite import new_sqlite

LABELS = {
    "category": (LabelCount("code", 300, 0.6), LabelCount("other", 200, 0.4)),
    "language": (LabelCount("en", 450, 0.9), LabelCount("fr", 50, 0.1)),
    "intent": (LabelCount("asking", 500, 1.0),),
}
CODE = AskedLabel("default-v2", "category", "code")
SHOWN = Excess(0.005, 0.002, 0.008)
NOT_SHOWN = Excess(0.001, -0.002, 0.004)
BETTER = Excess(-0.005, -0.008, -0.002)


def a_label_row(model: str = "quartz-8b", corrected: Effect | None = None) -> LabelRow:
    row = a_row(model)
    names = set(LabelRow.__dataclass_fields__) - {"borrowed", "effect", "corrected"}
    values = {name: getattr(row, name) for name in names}
    return LabelRow(**values, borrowed=0.37, effect=Effect(23.4, -10.2, 57.0), corrected=corrected)


def a_label_board(**changes: object) -> LabelBoard:
    fields: dict[str, object] = {
        "facet": "category",
        "value": "code",
        "policy": "default-v2",
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
    assert "37 % +23 −10 to +57 +25 −11 to +∞" in words
    assert "labelled by hand (Rogan and Gladen)" in words
    assert "differs by 52 points (standard deviation; 95 % interval 36 to ∞)" in words
    assert Page(page).open == []


def test_without_known_errors_of_the_tagger_nothing_is_corrected() -> None:
    words = text(shown(a_label_board(rows=(a_label_row(),))))
    assert "Not corrected for the errors of who labels" in words
    assert "Rogan" not in words


@pytest.mark.parametrize(
    ("apart", "pooled", "words", "others"),
    [
        (SHOWN, NOT_SHOWN, "they are worse than no such boards", "foresee them better"),
        (SHOWN, BETTER, "Pooled boards such as this one foresee them better.", "Nor are"),
        (BETTER, BETTER, "by itself foresee votes better than one board for all.", "worse than"),
        (NOT_SHOWN, NOT_SHOWN, "Nor are pooled boards", "foresee them better"),
        (NOT_SHOWN, SHOWN, "Pooled boards such as this one foresee them worse.", "Nor are"),
    ],
)
def test_the_sentence_on_unseen_prompts_is_no_stronger_than_its_interval(
    apart: Excess, pooled: Excess, words: str, others: str
) -> None:
    page = text(shown(a_label_board(unseen=Unseen(80, 0.541, apart, pooled))))
    assert words in page
    assert others not in page
    assert "Log loss a vote: 0.541 for one board" in page


def test_where_it_was_not_measured_the_page_does_not_say_it_of_these_votes() -> None:
    words = text(shown(a_label_board(unseen=None)))
    assert "Log loss a vote" not in words
    assert "the votes of MT-bench on 80 prompts" in words


def test_two_labels_at_once_are_said_to_be_one() -> None:
    page = shown(a_label_board(), replace(CODE, also=(("language", "fr"),)))
    assert "One kind at a time: this board is of Code alone. See French" in text(page)
    assert "/leaderboard?language=fr" in [link["href"] for link in Page(page).all("a")]


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
    asked = AskedLabel("default-v2", "language", "<script>x</script>")
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
    url = new_sqlite(tmp_path_factory.mktemp("kinds"))
    store = Store(url)
    vote_on_kinds(store, 200)
    store.close()
    with serve(database=url) as served:
        with served.visitor() as ada:
            until_made(ada, "/leaderboard?category=code")
        yield served


def until_made(ada: Visitor, path: str) -> httpx.Response:
    for _ in range(30):
        answer = ada.get(path)
        if "being worked out" not in answer.text:
            return answer
    raise AssertionError(path)


def test_the_leaderboard_leads_to_boards_by_label(arena: Served) -> None:
    with arena.visitor() as ada:
        home = ada.get("/leaderboard")
        links = [link.get("href") for link in Page(home.text).all("a")]
        assert {"/leaderboard?category=code", "/leaderboard?language=fr", "/mix"} <= {*links}
        board = ada.get("/leaderboard?category=coding&language=fr")
        assert board.status_code == 200
        assert "Leaderboard: Code" in text(board.text)
        assert "See French" in text(board.text)
        again = ada.get(
            "/leaderboard?category=code", headers={"If-None-Match": board.headers["ETag"]}
        )
        assert again.status_code == 200


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


def test_simulated_votes_have_boards_of_their_own(arena: Served) -> None:
    with arena.visitor() as ada:
        page = until_made(ada, "/leaderboard?policy=simulated-v1&category=code")
        assert "These votes are not people's." in page.text
        assert "No counted vote has a label yet" in page.text


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
