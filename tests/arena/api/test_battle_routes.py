"""The contract of the battles API, over real HTTP."""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from arena.store.engine import open_engine
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Served, Visitor, client_of, quick_arena, served_by, side_text

LONG = "A sentence that goes on. " * 40


@pytest.fixture(scope="module")
def quick(either_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An arena on SQLite, and one on PostgreSQL, of three models that answer at once."""
    with quick_arena(tmp_path_factory.mktemp("quick"), database=either_database) as served:
        yield served


def test_a_battle_is_opened_followed_voted_and_revealed(quick: Served) -> None:
    with quick.visitor() as ada:
        answer = ada.post("/api/v1/battles", json={"prompt": "What does yield do?"})
        assert answer.status_code == 201
        body = answer.json()
        assert set(body) == {"battle_id", "state", "turn"}
        events = ada.follow(body["battle_id"])
        assert [h.event for h in events[-3:]] == ["done", "done", "ready"]
        shown = ada.look(body["battle_id"])
        assert (shown["state"], shown["vote"]) == ("ready", None)
        for side in ("a", "b"):
            assert side_text(events, side) == shown["turns"][0][side]["text"]
        receipt = ada.vote(body["battle_id"], "model_a").json()
        assert receipt["outcome"] == "model_a"
        for side in ("a", "b"):
            facts = {"id", "name", "latency_s", "tokens", "cost", "cut"}
            assert set(receipt["models"][side]) == facts
            assert receipt["models"][side]["latency_s"] > 0
            assert receipt["models"][side]["tokens"] > 0
        assert ada.look(body["battle_id"])["vote"] == receipt


def test_the_cookie_is_signed_and_out_of_reach_of_scripts(quick: Served) -> None:
    with quick.visitor() as ada:
        header = ada.post("/api/v1/battles", json={"prompt": "Hi"}).headers["set-cookie"]
        assert "HttpOnly" in header
        assert "SameSite=Lax" in header
        battle_id = ada.open()
        assert "set-cookie" not in ada.get(f"/api/v1/battles/{battle_id}").headers
    with client_of(quick.url, cookies={"arena_voter": "someone.forged"}) as forged:
        assert forged.get(f"/api/v1/battles/{battle_id}").status_code == 404


def test_the_same_key_returns_the_same_body_and_another_choice_is_409(quick: Served) -> None:
    with quick.visitor() as ada:
        battle_id, key = ada.play(), str(uuid.uuid4())
        first = ada.vote(battle_id, "model_b", key)
        assert ada.vote(battle_id, "model_b", key).content == first.content
        for outcome, other in (("model_a", key), ("tie", None), ("model_b", None)):
            refused = ada.vote(battle_id, outcome, other)
            assert refused.status_code == 409
            assert refused.headers["content-type"] == "application/problem+json"
            sentence = refused.json()["detail"]
            assert sentence == "You have already voted on this battle: B was better."


def test_a_skip_closes_the_battle_and_reveals_nothing(quick: Served) -> None:
    with quick.visitor() as ada:
        battle_id = ada.play()
        receipt = {"outcome": "skip", "models": None, "gold": False}
        assert ada.vote(battle_id, "skip").json() == receipt
        assert ada.look(battle_id)["state"] == "skipped"
        assert ada.look(battle_id)["vote"] == receipt
        assert ada.vote(battle_id, "model_a").status_code == 409
        more = ada.post(f"/api/v1/battles/{battle_id}/continue", json={"prompt": "More?"})
        assert more.status_code == 409


@contextmanager
def slow_arena(folder: Path, behaviour: Behaviour, **settings: object) -> Iterator[Visitor]:
    """A visitor of an arena whose two models take their time, each in the same way."""
    with (
        faulty_server(dict.fromkeys("xy", behaviour)) as server,
        served_by(server, folder, **{"characters_per_s": 300} | settings) as served,
        served.visitor() as ada,
    ):
        yield ada


def test_a_battle_that_is_not_ready_takes_no_vote(tmp_path: Path) -> None:
    with slow_arena(tmp_path, Behaviour(text=LONG, delay_s=0.05)) as ada:
        refused = ada.vote(ada.open(), "model_a")
    assert (refused.status_code, refused.json()["title"]) == (409, "Not ready for a vote")


def test_a_model_has_as_long_to_begin_as_the_limit_for_that_says(tmp_path: Path) -> None:
    late = Behaviour(first_token_s=1.0)
    with slow_arena(tmp_path, late, first_token_timeout_s=0.2) as ada:
        assert ada.follow(ada.open())[-1].event == "failed"


def test_the_rest_is_shown_once_it_was_offered(tmp_path: Path) -> None:
    a_second = Behaviour(text=LONG, chunk_size=20, delay_s=0.02)
    pace = {"characters_per_s": 200, "prior_characters_per_s": 3000}
    with slow_arena(tmp_path, a_second, **pace) as ada:
        path = f"/api/v1/battles/{ada.open()}"
        assert ada.post(f"{path}/rest").status_code == 409
        with ada.client.stream("GET", f"{path}/events") as stream:
            lines = stream.iter_lines()
            assert "event: rest" in lines
            shown = ada.post(f"{path}/rest").json()
            assert "event: ready" in lines
    assert (shown["state"], shown["turns"][0]["a"]["text"]) == ("ready", LONG)


def test_somebody_else_s_battle_is_404_on_every_route(quick: Served) -> None:
    with quick.visitor() as ada, quick.visitor() as bob, quick.visitor() as nobody:
        battle_id = ada.play()
        bob.open()
        for visitor in (bob, nobody):
            for answer in (
                visitor.get(f"/api/v1/battles/{battle_id}"),
                visitor.get(f"/api/v1/battles/{battle_id}/events"),
                visitor.post(f"/api/v1/battles/{battle_id}/stop"),
                visitor.post(f"/api/v1/battles/{battle_id}/rest"),
                visitor.vote(battle_id, "model_a"),
            ):
                assert answer.status_code == 404
                assert answer.headers["content-type"] == "application/problem+json"
        unknown, foreign = (bob.look(one) for one in ("nonesuch", battle_id))
        assert unknown == foreign, "they are told apart to nobody"


def test_a_stream_resumes_exactly_after_any_event(quick: Served) -> None:
    with quick.visitor() as ada:
        battle_id = ada.open()
        events = ada.follow(battle_id)
        whole = {side: side_text(events, side) for side in "ab"}
        for cut in (0, len(events) // 2, len(events) - 4, len(events) - 2):
            rest = ada.follow(battle_id, events[cut].id)
            for side in "ab":
                assert side_text([*events[: cut + 1], *rest], side) == whole[side]
            assert rest[-1].event == "ready"
        end = ada.get(
            f"/api/v1/battles/{battle_id}/events", headers={"Last-Event-ID": events[-1].id}
        )
        assert (end.status_code, end.content) == (204, b"")


def test_a_reader_who_drops_out_mid_stream_gets_the_rest(tmp_path: Path) -> None:
    with slow_arena(tmp_path, Behaviour(text=LONG, delay_s=0.01)) as ada:
        battle_id = ada.open()
        url = f"/api/v1/battles/{battle_id}/events"
        with ada.client.stream("GET", url) as answer:
            delta = next(part for part in answer.iter_text() if "delta" in part)
        last = re.findall(r"id: (\S+)", delta)[-1]
        rest = ada.follow(battle_id, last)
        shown = ada.look(battle_id)["turns"][0]["a"]["text"]
    reached = int(last.split(".")[2])
    assert side_text(rest, "a") == shown[reached:] == LONG[reached:]


def test_a_stop_ends_both_answers_and_the_stream(tmp_path: Path) -> None:
    with slow_arena(tmp_path, Behaviour(text=LONG, delay_s=0.02)) as ada:
        battle_id = ada.open()
        with ada.client.stream("GET", f"/api/v1/battles/{battle_id}/events") as answer:
            parts = answer.iter_text()
            while '"b"' not in next(parts):
                pass
            stopped = ada.post(f"/api/v1/battles/{battle_id}/stop")
            tail = "".join(parts)
    assert stopped.status_code == 200
    assert stopped.json()["state"] == "ready"
    assert stopped.json()["turns"][0]["a"]["status"] == "stopped"
    assert "event: ready" in tail


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"prompt": "   "}, "Write a prompt first"),
        ({"prompt": "\u200b\x01\U000e0041"}, "Write a prompt first"),
        ({"prompt": "x" * 20_001}, "20,001 characters"),
        ({}, "prompt: Field required"),
        ({"prompt": 3}, "prompt"),
    ],
)
def test_a_prompt_that_cannot_be_answered_is_422_in_words(
    quick: Served, body: dict[str, object], words: str
) -> None:
    with quick.visitor() as ada:
        answer = ada.post("/api/v1/battles", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        {"outcome": "left", "key": "0b8f3c1e-6c0e-4a36-9d2d-6a5f4f1f7a55"},
        {"outcome": "model_a", "key": "not a uuid"},
        {"outcome": "model_a"},
    ],
)
def test_a_vote_that_cannot_be_read_is_422_and_counts_nothing(
    quick: Served, body: dict[str, str]
) -> None:
    with quick.visitor() as ada:
        battle_id = ada.play()
        answer = ada.post(f"/api/v1/battles/{battle_id}/vote", json=body)
        assert answer.status_code == 422
        assert ada.look(battle_id)["state"] == "ready"


def test_every_answer_carries_the_content_security_policy(quick: Served) -> None:
    with quick.visitor() as ada:
        paths = "/leaderboard /votes /method /value /api/v1/leaderboard /nothing /look/tokens.css"
        for path in paths.split():
            policy = ada.get(path).headers["content-security-policy"]
            assert "default-src 'self'" in policy
            assert "frame-ancestors 'self'" in policy
            assert "unsafe-eval" not in policy


def test_the_openapi_schema_documents_what_a_vote_may_be_answered_with(quick: Served) -> None:
    with quick.visitor() as ada:
        schema = ada.get("/api/openapi.json").json()
    vote = schema["paths"]["/api/v1/battles/{battle_id}/vote"]["post"]
    assert {"200", "404", "409", "422", "503"} <= set(vote["responses"])
    assert "example" in schema["components"]["schemas"]["VoteBody"]


SENT = {
    "OpenedBattle": "battle_id state turn",
    "BattleBody": "battle_id state turn created turns message vote models remarks html",
    "TurnBody": "turn prompt a b",
    "AnswerBody": "text status html",
    "InstructionsBody": "instructions",
    "FollowedBody": "id a b",
    "ReceiptBody": "outcome models gold html",
    "Reveal": "a b",
    "RevealedModel": "id name latency_s tokens cost cut",
    "LeaderboardBody": "policy updated version data_hash votes voters effective_voters "
    "top_voter_share left_out ranks_claimed ratings newcomers pairs neighbours fit history record "
    "warnings",
    "RatingBody": "model rating se lower upper rank rank_low rank_high votes "
    "win_rate win_rate_low win_rate_high voter_rating voter_rank stage "
    "family variants best_of declared otherwise",
    "NewcomerBody": "model stage votes until rating lower upper by judge calibrated_on warnings",
    "PairCell": "row column n share expected low high",
    "Hold": "above below lead votes voters prompts separated more_votes",
    "Fewest": "k tried of",
    "FitCheck": "pairs far by_chance p left_out worst",
    "Misfit": "row column share expected n",
    "Moment": "when votes ratings",
    "PastRating": "model rating lower upper",
    "RecordCheck": "at links head votes hashes_only deleted problem",
}


def test_what_is_sent_has_these_keys_and_no_others(quick: Served) -> None:
    with quick.visitor() as ada:
        schemas = ada.get("/api/openapi.json").json()["components"]["schemas"]
    assert {name: " ".join(schemas[name]["properties"]) for name in SENT} == SENT


def test_a_failing_database_is_503_and_the_vote_can_be_sent_again(
    database_url: str, tmp_path: Path
) -> None:
    with quick_arena(tmp_path, database=database_url) as served, served.visitor() as ada:
        battle_id, key = ada.play(), str(uuid.uuid4())
        rename(served, "vote", "vote_away")
        answer = ada.vote(battle_id, "tie", key)
        assert answer.status_code == 503
        assert "Send the same request again" in answer.json()["detail"]
        rename(served, "vote_away", "vote")
        assert ada.vote(battle_id, "tie", key).json()["outcome"] == "tie"


def rename(served: Served, table: str, name: str) -> None:
    engine = open_engine(served.database)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO {name}")
    engine.dispose()


def test_a_silent_stream_is_kept_open_by_comments_that_are_no_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.play.live.STILL_S", 0.05)
    slow = Behaviour(text="At last.", first_token_s=0.6)
    with slow_arena(tmp_path, slow, characters_per_s=50_000) as ada:
        battle_id = ada.open()
        answer = ada.get(f"/api/v1/battles/{battle_id}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.text.startswith(": still here\n\n: still here\n\n")
    assert answer.text.split("event: ")[-1].startswith("ready\n")
