"""Turns, new attempts, retries and going on, over real HTTP."""

from arena.errors import EXPIRED
from tests.serving import Served, let_expire, side_text


def test_a_second_turn_streams_by_itself_and_the_transcript_holds_both(quick: Served) -> None:
    with quick.visitor() as ada:
        battle_id = ada.play("First?")
        first_end = ada.follow(battle_id)[-1].id
        opened = ada.post(f"/api/v1/battles/{battle_id}/turns", json={"prompt": "Second?"})
        assert opened.status_code == 201
        assert opened.json()["turn"] == 2
        events = ada.follow(battle_id, first_end)
        shown = ada.look(battle_id)
        assert [turn["prompt"] for turn in shown["turns"]] == ["First?", "Second?"]
        assert side_text(events, "a") == shown["turns"][1]["a"]["text"]
        assert events[-1].event == "ready"
        assert ada.vote(battle_id, "model_a").status_code == 200


def test_a_turn_after_the_vote_is_409_and_going_on_is_a_battle_of_its_own(quick: Served) -> None:
    with quick.visitor() as ada:
        battle_id = ada.play()
        early = ada.post(f"/api/v1/battles/{battle_id}/continue", json={"prompt": "More?"})
        assert early.status_code == 409
        models = ada.vote(battle_id, "tie").json()["models"]
        late = ada.post(f"/api/v1/battles/{battle_id}/turns", json={"prompt": "More?"})
        assert late.status_code == 409
        more = ada.post(f"/api/v1/battles/{battle_id}/continue", json={"prompt": "More?"}).json()
        assert ada.follow(more["battle_id"])[-1].event == "ready"
        shown = ada.look(more["battle_id"])
        names = {side: models[side]["name"] for side in ("a", "b")}
        assert {side: shown["models"][side]["name"] for side in ("a", "b")} == names
        assert ada.vote(more["battle_id"], "model_a").status_code == 409
        assert ada.board(votes=1)["votes"] == 1


def test_a_battle_that_was_left_for_too_long_is_closed(quick: Served) -> None:
    with quick.visitor() as ada:
        battle_id, other = ada.play("First?"), ada.play("Second?")
        path = f"/api/v1/battles/{battle_id}"
        end = ada.follow(battle_id)[-1].id
        let_expire(quick, battle_id)
        refused = [
            ada.vote(battle_id, "tie"),
            ada.post(f"{path}/turns", json={"prompt": "More?"}),
            ada.post(f"{path}/regenerate"),
            ada.post(f"{path}/retry"),
            ada.post(f"{path}/continue", json={"prompt": "More?"}),
        ]
        assert [answer.status_code for answer in refused] == [409] * 5
        for answer in refused[:-1]:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["detail"] == EXPIRED
        german = ada.post(f"{path}/regenerate", headers={"Accept-Language": "de"}).json()
        assert german["detail"].startswith("Dieses Duell ist geschlossen")
        shown = ada.look(battle_id)
        assert (shown["state"], shown["message"], shown["models"]) == ("expired", EXPIRED, None)
        assert shown["turns"][0]["a"]["text"]
        assert ada.get(f"{path}/events", headers={"Last-Event-ID": end}).status_code == 204
        assert [one.event for one in ada.follow(battle_id)][-2:] == ["failed", "failed"]
        mine = ada.get("/votes").text
        assert mine.count("Closed without a vote") == 1
        assert mine.count("Take it up again") == 1
        assert ada.vote(other, "tie").status_code == 200


def test_regenerated_answers_are_streamed_from_their_beginning(quick: Served) -> None:
    with quick.visitor() as ada:
        battle_id = ada.play()
        end = ada.follow(battle_id)[-1].id
        again = ada.post(f"/api/v1/battles/{battle_id}/regenerate")
        assert again.status_code == 201
        events = ada.follow(battle_id, end)
        shown = ada.look(battle_id)["turns"][0]
        assert side_text(events, "b") == shown["b"]["text"]
        assert ada.vote(battle_id, "model_b").status_code == 200
        assert ada.post(f"/api/v1/battles/{battle_id}/regenerate").status_code == 409
