from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest
from sqlmodel import Session

from arena import parts
from arena.boards import evaluation as board_evaluation
from arena.boards.evaluation import Evaluation, calls_of
from arena.boards.export import export_votes
from arena.boards.leaderboard import Leaderboard
from arena.boards.record_file import read_votes
from arena.domain.study import VoteFacts
from arena.domain.vote import DEFAULT, Policy
from arena.store import log
from arena.store.log import CardFacts, LastCall
from arena.store.store import Store
from tests.arena.boards.published import LIMITS, STATEMENTS, fill
from tests.arena.store.battles import NOW
from tests.serving import quick_arena
from tests.sqlite import new_sqlite


def test_the_hash_of_the_code_is_another_after_a_change_of_a_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.__path__", [str(tmp_path)])
    hashes = set()
    for rule in ("most = 1", "most = 2"):
        (tmp_path / "rules.toml").write_text(rule)
        hashes.add(board_evaluation.code_hash.__wrapped__())
    assert len(hashes) == 2


def test_the_log_and_its_export_say_the_same_of_the_votes(
    database_url: str, tmp_path: Path
) -> None:
    fill(database_url)
    with closing(Store(database_url)) as store, store.reading() as session:
        facts = log._vote_facts(session, DEFAULT)
        path = tmp_path / "votes.parquet"
        export_votes(log.links(session, DEFAULT), DEFAULT, path, total=log.count_links(session))
    verified, votes = read_votes(path)
    assert (verified.problem, len(votes)) == (None, 22)
    counted = [row for row in votes if row["winner"] and not row["left_out"]]
    rows = ({**row, "ts": row["ts"].replace(tzinfo=UTC)} for row in counted)
    assert facts == VoteFacts.of(rows)
    assert (facts.votes, facts.prompts, facts.repeated) == (20, 4, 16)
    assert facts.sources == {"recorded": 13, "typed": 7}
    assert (facts.categories, facts.languages) == ({"code": 14}, {"fr": 8})
    assert facts.samplers == {"uniform 1": 20}
    assert list(facts.choices) == ["model_a", "model_b", "both_bad", "tie"]
    assert facts.versions == {"basalt": 1, "quartz": 1}
    assert (facts.last, facts.first) == (NOW.replace(minute=19), NOW)


def test_of_a_parameter_that_may_hold_a_secret_the_name_alone_is_shown(tmp_path: Path) -> None:
    url = new_sqlite(tmp_path)
    fill(url)
    with closing(Store(url)) as store, store.reading() as session:
        asked = log.card_facts(session, DEFAULT, ["basalt", "quartz", "nobody"], NOW).asked
    assert set(asked) == {"basalt", "quartz"}
    assert asked["basalt"].decoding["x_token"] == "sk-secret"
    with closing(Store(url)) as store:
        board = Leaderboard(store, DEFAULT, lambda: NOW).refresh()
    call, plain = (calls_of(asked, board)[model] for model in ("basalt", "quartz"))
    assert (plain.system_prompt, plain.decoding) == ("", {"temperature": "0.5"}), "of its own side"
    assert call.decoding == {"temperature": "0.2", "x_token": ""}
    assert call.tools == ("search",)
    assert call.system_prompt == "e68562472088cf0f"
    empty = {"basalt": LastCall("e3b0c44298fc1c14", {}), "quartz": asked["quartz"]}
    assert calls_of(empty, board)["basalt"].system_prompt == ""
    assert calls_of({}, board)["basalt"].system_prompt is None


def test_the_card_names_what_is_missing_and_follows_the_board(tmp_path: Path) -> None:
    url = new_sqlite(tmp_path)
    with closing(Store(url)) as store:
        board = Leaderboard(store, DEFAULT, lambda: NOW)
        statements = replace(STATEMENTS, purpose=None, weaknesses="")
        card = Evaluation(store, DEFAULT, board.read, statements, LIMITS, lambda: NOW)
        sections = ("inputs", "calls", "outputs", "interpretation")
        assert card.read().missing == (*sections, "purpose", "weaknesses")
        fill(url)
        board.refresh()
        card.look()
        assert card.read().missing == ("purpose", "weaknesses")
        inputs, calls, outputs = (getattr(card.read(), name) for name in sections[:3])
        assert (inputs.first_vote, inputs.last_vote) == (NOW, NOW.replace(minute=19))
        assert (inputs.prompts, inputs.repeated, inputs.tagger) == (4, 16, "rules 1")
        assert {one.id: one.versions for one in calls.models} == {"basalt": 1, "quartz": 1}
        assert card.read().interpretation.rated == 2
        assert (outputs.votes, outputs.voters) == (20, 4)
        assert outputs.left_out == {"skipped": 1, "a test of ours": 1}
        assert card.read() is card.read()


def test_leaderboards_are_made_while_the_votes_are_read_for_the_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = Event(), Event()
    read = log.card_facts

    def slowly(
        session: Session, policy: Policy, models: Iterable[str], asked_since: datetime
    ) -> CardFacts:
        begun.set()
        goes_on.wait(60)
        return read(session, policy, models, asked_since)

    monkeypatch.setattr(log, "card_facts", slowly)
    monkeypatch.setattr(board_evaluation, "REST_S", 0.1)
    monkeypatch.setattr(parts, "REST_S", 0.1)
    with quick_arena(tmp_path) as served, served.visitor() as visitor:
        try:
            assert visitor.vote(visitor.play(), "model_a").is_success
            assert visitor.board(votes=1)
            assert begun.wait(30)
            assert visitor.vote(visitor.play(), "model_b").is_success
            assert visitor.board(votes=2)
        finally:
            goes_on.set()


def test_no_votes_are_no_facts() -> None:
    facts = VoteFacts.of([])
    assert (facts.votes, facts.first, facts.choices) == (0, None, {})
