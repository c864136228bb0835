"""Battles and answers leave the log as they are in it, except what is personal."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlalchemy import text

from arena.boards.export import ANSWERS, BATTLES, CHATBOT_ARENA, export_battles, export_models
from arena.domain.battle import AnswerStatus, BattleState, Remarks, Side
from arena.domain.vote import DEFAULT, Choice, FailureClass, Voter
from arena.play.upkeep import label_votes
from arena.store import erasing, log
from arena.store.chain import AnswerKey, AnswerOutcome
from arena.store.store import Store
from arena.store.tables import fingerprint
from rating import RateOptions, rate_source, read_votes
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, exclude, new_battle

as_chatbot_arena = partial(export_battles, layout="chatbot-arena")
export_answers = partial(export_battles, layout="answers")
LONG = "# Sky\n\n- **Blue**\n1. grey\n\n```\nx = 1\n```\n"
PERSONAL = "Ask ada@example.com, or +49 30 1234567; bob@example.com knows it."


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Two counted votes, one of two turns; a skip, an excluded vote, and a battle without one."""
    made = Store(database_url)
    made.hold_lease()
    made.register(MODELS, NOW)
    for name, choice in (("b1", Choice.BOTH_BAD), ("b2", Choice.SKIP), ("b3", Choice.B)):
        made.open_battle(new_battle(name))
        words = {A1: complete(LONG), B1: complete(PERSONAL)}
        made.close_answers(name, BattleState.READY, words, message=None, now=NOW)
        made.cast(ballot(name, choice))
    exclude(made, "b3", DEFAULT, "a known bot")
    made.open_battle(new_battle("b4", Voter("bob")))
    first = {A1: complete("Scattering."), B1: complete("The sea.")}
    made.close_answers("b4", BattleState.READY, first, message=None, now=NOW)
    made.add_turn("b4", "bob", "And at night?", NOW)
    second = {AnswerKey(2, side, 1): complete(f"{side} is dark.") for side in Side}
    made.close_answers("b4", BattleState.READY, second, message=None, now=NOW)
    made.add_attempts("b4", "bob", NOW, only_incomplete=False)
    again = {AnswerKey(2, side, 2): complete(f"{side}: no sun.") for side in Side}
    again[AnswerKey(2, Side.B, 2)] = replace(complete("b: no sun."), tokens_out=40, duration_s=0.5)
    ended = NOW + timedelta(seconds=4)
    made.close_answers("b4", BattleState.READY, again, message=None, now=ended)
    made.cast(ballot("b4", Choice.A, voter="bob"))
    made.open_battle(new_battle("b5"))
    failed = AnswerOutcome(
        text="", status=AnswerStatus.FAILED, error_class=FailureClass.TIMEOUT, error_detail="slow"
    )
    ends = {A1: failed, B1: complete()}
    made.close_answers("b5", BattleState.FAILED, ends, message=None, now=NOW)
    label_votes(made, lambda: NOW)
    yield made
    made.close()


def exported(
    store: Store, path: Path, export: Any, *, everything: bool = False, **more: bool
) -> tuple[Any, list[dict[str, Any]]]:
    with store.reading() as session:
        battles = log.battles(session, DEFAULT, voted=not everything)
        written = export(battles, DEFAULT, path, everything=everything, **more)
    read = duckdb.execute("FROM read_parquet(?)", [str(path)])
    names = [column[0] for column in read.description or ()]
    return written, [dict(zip(names, row, strict=True)) for row in read.fetchall()]


def test_a_battle_is_a_row_with_all_that_was_asked_and_answered(
    store: Store, tmp_path: Path
) -> None:
    written, rows = exported(store, tmp_path / "b.parquet", export_battles)
    assert list(rows[0]) == list(BATTLES)
    assert [row["battle_id"] for row in rows] == ["b1", "b4"]
    assert written.rows == 2
    assert written.votes == {None: 2, "skipped": 1, "a known bot": 1}
    one, two = rows
    assert (one["winner"], two["winner"]) == ("both_bad", "model_a")
    assert (one["turns"], two["turns"]) == (1, 2)
    assert (one["seconds_to_vote"], two["seconds_to_vote"]) == (9.0, 5.0)
    assert two["prompt"] == "Why is the sky blue?\n\nAnd at night?"
    assert [one.text for one in store.read(log.asked, DEFAULT)] == [row["prompt"] for row in rows]
    assert two["response_b"] == "The sea.\n\nb: no sun."
    assert two["conversation"] == [
        {"prompt": "Why is the sky blue?", "a": "Scattering.", "b": "The sea."},
        {"prompt": "And at night?", "a": "a: no sun.", "b": "b: no sun."},
    ]
    assert (two["length_a"], two["tokens_a"], two["seconds_a"]) == (21, 200, 4.0)
    assert (two["length_b"], two["tokens_b"], two["seconds_b"]) == (18, 140, 2.5)
    assert (two["cost_a"], two["cost_b"]) == pytest.approx((0.00202, 0.00142))
    assert (two["pair_probability"], two["sampler"], two["pacing"]) == (1.0, "uniform", "paced")
    assert (one["headers_a"], one["lists_a"], one["bold_a"], one["code_a"]) == (1, 2, 1, 1)
    assert one["language"] == "en"
    assert one["tagger"] == "rules 1"


def test_what_is_personal_is_taken_out_counted_and_marked(store: Store, tmp_path: Path) -> None:
    store.remark("b1", "ada", Remarks(comment=PERSONAL), NOW, asked=True)
    with store.writing() as session:
        session.connection().execute(text("UPDATE turn SET prompt = :p"), {"p": PERSONAL})
    written, rows = exported(store, tmp_path / "b.parquet", export_battles)
    without = "Ask [mail], or [phone]; [mail] knows it."
    assert rows[0]["prompt"] == rows[0]["response_b"] == rows[0]["comment"] == without
    assert rows[0]["length_b"] == len(PERSONAL)
    assert [row["scrubbed"] for row in rows] == [6, 6]
    assert written.scrubbed == {"mail": 10, "phone": 5}
    assert exported(store, tmp_path / "a.parquet", export_answers)[1][1]["text"] == without
    written, rows = exported(store, tmp_path / "w.parquet", export_battles, whole=True)
    assert rows[0]["response_b"] == rows[0]["comment"] == PERSONAL
    assert (rows[0]["scrubbed"], written.scrubbed) == (0, None)


def test_everything_holds_also_battles_without_a_vote_and_none_of_them_counts(
    store: Store, tmp_path: Path
) -> None:
    _, rows = exported(store, tmp_path / "b.parquet", export_battles, everything=True)
    names = ("left_out", "state", "status_a", "status_b")
    assert {row["battle_id"]: tuple(map(row.get, names)) for row in rows} == {
        "b1": (None, "voted", "complete", "complete"),
        "b2": ("skipped", "skipped", "complete", "complete"),
        "b3": ("a known bot", "voted", "complete", "complete"),
        "b4": (None, "voted", "complete", "complete"),
        "b5": ("no vote", "failed", "failed", "complete"),
    }
    assert read_votes(str(tmp_path / "b.parquet")).data.n_votes == 2


def test_an_answer_is_a_row_with_how_it_ended(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    assert len(exported(store, path, export_answers)[1]) == 2 + 6
    _, rows = exported(store, path, export_answers, everything=True)
    assert list(rows[0]) == list(ANSWERS)
    failed = [row for row in rows if row["status"] == "failed"]
    assert [(row["battle_id"], row["side"], row["error_class"]) for row in failed] == [
        ("b5", "a", "timeout")
    ]
    assert "slow" not in str(rows)
    tries = [(r["turn"], r["attempt"], r["text"]) for r in rows if r["battle_id"] == "b4"]
    assert tries[2:4] == [(2, 1, "a is dark."), (2, 1, "b is dark.")]
    names = ("cost", "tokens_in", "tokens_out", "first_token_s", "duration_s", "price_output")
    assert {tuple(row[n] for n in names) for row in rows if row["status"] == "complete"} == {
        (0.00101, 10, 100, 0.5, 2.0, 10.0),
        (0.00041, 10, 40, 0.5, 0.5, 10.0),
    }


def test_every_model_of_the_log_is_a_row(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    assert export_models(store, path).rows == 2
    columns = ("model", "name", "kind", "fingerprint", "created")
    rows = duckdb.read_parquet(str(path)).select(*columns).fetchall()
    moment = NOW.replace(tzinfo=None)
    assert rows == [(one.id, one.name, "model", fingerprint(one), moment) for one in MODELS]


def test_what_was_erased_is_empty_and_has_no_style(store: Store, tmp_path: Path) -> None:
    with store.writing() as session:
        session.connection().execute(
            text("UPDATE answer SET text = '', nonce = NULL, text_hash = 'x' WHERE side = 'a'")
        )
    _, rows = exported(store, tmp_path / "b.parquet", export_battles)
    assert [row["response_a"] for row in rows] == [None, None]
    assert [row["length_a"] for row in rows] == [None, None]
    assert [row["erased"] for row in rows] == [1, 2]
    assert rows[0]["response_b"] is not None


@pytest.mark.parametrize("export", [export_battles, export_answers])
def test_what_somebody_hid_is_in_no_export(store: Store, tmp_path: Path, export: Any) -> None:
    with store.writing() as session:
        erasing.hide(session, "b4", "bob", NOW)
    _, rows = exported(store, tmp_path / "b.parquet", export)
    assert {row["battle_id"] for row in rows} == {"b1"}


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_the_columns_of_chatbot_arena_are_read_back_as_theirs(
    store: Store, tmp_path: Path, ending: str
) -> None:
    theirs, ours = tmp_path / f"theirs.{ending}", tmp_path / f"ours.{ending}"
    with store.reading() as session:
        for path, export in ((theirs, as_chatbot_arena), (ours, export_battles)):
            export(log.battles(session, DEFAULT, voted=True), DEFAULT, path)
    read = [read_votes(str(path)) for path in (theirs, ours)]
    assert read[0].data_hash == read[1].data_hash
    assert read[0].voters == read[1].voters
    if ending == "jsonl":
        row = json.loads(theirs.read_text().splitlines()[0])
        assert list(row) == list(CHATBOT_ARENA)
        assert (row["winner"], row["judge"], row["turn"]) == ("tie (bothbad)", "ada", 1)
        assert (row["question_id"], row["language"]) == ("p1", "en")
        assert row["tstamp"] == ballot("b1").cast.timestamp()
        assert [part["role"] for part in row["conversation_a"]] == ["user", "assistant"]
        counts = json.loads(row["conv_metadata"])
        assert counts["list_count_a"] == {"ordered": 1, "unordered": 1}
        assert counts["header_count_a"]["h1"] == counts["bold_count_a"]["**"] == 1
        assert counts["list_count_b"] == {"ordered": 0, "unordered": 0}
        last = json.loads(json.loads(theirs.read_text().splitlines()[1])["conv_metadata"])
        tokens = [last[f"sum_assistant_{side}_tokens"] for side in "ab"]
        assert tokens == [200, 140]


def test_both_layouts_are_rated_with_style_held_equal(store: Store, tmp_path: Path) -> None:
    for i in range(12):
        store.open_battle(new_battle(f"s{i}", Voter(f"v{i}")))
        words = {A1: complete("**Long** " * (1 + i % 5)), B1: complete("**It** " * (1 + i % 3))}
        store.close_answers(f"s{i}", BattleState.READY, words, message=None, now=NOW)
        choice = (Choice.A, Choice.B, Choice.TIE)[i % 3]
        store.cast(ballot(f"s{i}", choice, voter=f"v{i}"))
    boards = []
    for name, export in (("ours", export_battles), ("theirs", as_chatbot_arena)):
        path = tmp_path / f"{name}.parquet"
        exported(store, path, export)
        report = rate_source(str(path), RateOptions(style=("bold",))).to_dict()
        boards.append(report["ratings"])
        assert report["method"]["style"] == ["bold"]
    assert boards[0] == boards[1]
