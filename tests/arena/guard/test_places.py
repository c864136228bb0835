"""How much one visitor, one network and all together hold at a time."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from arena.domain.voter import Voter
from arena.endpoints.connections import MOST
from arena.errors import BusyError, FullError
from arena.guard.places import RUNNING, Places, Share
from arena.settings import Settings
from tests.arena.test_blindness import config_of
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Served, Visitor, page_of, served_by, write_roster

ADA, BOB, CLEO = (Voter(name, address=name[0]) for name in ("ada", "ade", "cleo"))
SLOW = Behaviour(text="On and on. " * 500, delay_s=0.1)
AT_ONCE_S = 5.0


@contextmanager
def slow_arena(folder: Path, **settings: object) -> Iterator[Served]:
    with (
        faulty_server({"x": SLOW, "y": SLOW}) as server,
        served_by(server, folder, **settings) as served,
    ):
        yield served


def refused(visitor: Visitor, status: int) -> str:
    """Ask for a battle, which has to be refused at once; gives why."""
    began = time.monotonic()
    answer = visitor.post("/api/v1/battles", json={"prompt": "Hi"})
    assert time.monotonic() - began < AT_ONCE_S
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return str(answer.json()["detail"])


def test_a_place_is_given_back_whatever_happens_while_it_is_held() -> None:
    places = Places(RUNNING, Share(per_voter=1, per_address=1, in_all=1))
    for _ in range(3):
        with pytest.raises(OSError, match="disk"), places.hold(ADA):
            raise OSError("disk")
    with places.hold(ADA), pytest.raises(BusyError), places.hold(ADA):
        pass
    with places.hold(CLEO):
        pass


def test_visitors_of_one_network_share_its_places_and_all_share_the_arena_s() -> None:
    places = Places(RUNNING, Share(per_voter=2, per_address=2, in_all=3))
    with places.hold(ADA), places.hold(BOB):
        with pytest.raises(BusyError, match=r"^2 of your network's battles .* Wait until"):
            places.hold(ADA).__enter__()
        with places.hold(CLEO):
            with pytest.raises(FullError, match=r"full: 3 of its battles .* Try again in a min"):
                places.hold(Voter("dora", address="d")).__enter__()
            with pytest.raises(FullError):
                places.hold(Voter("nobody knows")).__enter__()


def test_many_addresses_of_one_larger_network_share_four_times_as_much() -> None:
    places = Places(RUNNING, Share(per_voter=1, per_address=1, in_all=100))
    with ExitStack() as held:
        for n in range(4):
            held.enter_context(places.hold(Voter(f"v{n}", address=f"a{n}", network="household")))
        late = Voter("v4", address="a4", network="household")
        with pytest.raises(BusyError, match=r"^4 of your network's battles"):
            places.hold(late).__enter__()
        with places.hold(Voter("v5", address="a5", network="next door")):
            pass
    with places.hold(late):
        pass


def test_battles_may_never_need_more_connections_to_endpoints_than_there_are() -> None:
    (most,) = (m.le for m in Settings.model_fields["running_battles"].metadata if hasattr(m, "le"))
    assert 2 * most <= MOST


def test_a_visitor_with_three_running_battles_is_refused_a_fourth_at_once_and_others_play(
    tmp_path: Path,
) -> None:
    with slow_arena(tmp_path) as served, served.visitor() as ada, served.visitor() as bob:
        battles = [ada.open() for _ in "123"]
        assert refused(ada, 429) == (
            "3 of your battles may be answered at a time. Wait until one has ended, or stop one."
        )
        bob.open()
        assert ada.post(f"/api/v1/battles/{battles[0]}/stop").status_code == 200
        ada.open()


def test_a_network_that_has_its_share_is_refused_and_another_plays(tmp_path: Path) -> None:
    with (
        slow_arena(tmp_path, running_per_address=2, trusted_proxies="127.0.0.1") as served,
        ExitStack() as stack,
    ):
        ada, bob, cleo = (stack.enter_context(served.visitor()) for _ in "abc")
        for somebody, address in ((ada, "1.1.1.1"), (bob, "1.1.1.1"), (cleo, "2.2.2.2")):
            somebody.client.headers["X-Forwarded-For"] = address
        ada.open()
        bob.open()
        assert refused(ada, 429).startswith("2 of your network's battles may be answered")
        cleo.open()


def test_a_full_arena_says_so_at_once(tmp_path: Path) -> None:
    with (
        slow_arena(tmp_path, running_battles=1) as served,
        served.visitor() as ada,
        served.visitor() as bob,
    ):
        battle = ada.open()
        assert refused(bob, 503) == (
            "The arena is full: 1 of its battles may be answered at a time. Try again in a minute."
        )
        ada.post(f"/api/v1/battles/{battle}/stop")
        bob.open()


def test_what_is_refused_for_another_reason_takes_no_place(tmp_path: Path) -> None:
    with slow_arena(tmp_path, running_per_voter=2) as served, served.visitor() as ada:
        battle = ada.open()
        for _ in range(4):
            early = ada.post(f"/api/v1/battles/{battle}/turns", json={"prompt": "And?"})
            assert early.status_code == 409
        ada.open()


def test_a_visitor_has_so_many_streams_and_one_that_is_closed_makes_room(tmp_path: Path) -> None:
    with (
        slow_arena(tmp_path, streams_per_voter=2) as served,
        served.visitor() as ada,
        ExitStack() as stack,
    ):
        events = f"/api/v1/battles/{ada.open()}/events"
        first, _ = (stack.enter_context(ada.client.stream("GET", events)) for _ in "12")
        began = time.monotonic()
        third = ada.get(events)
        assert time.monotonic() - began < AT_ONCE_S
        assert (third.status_code, third.json()["title"]) == (429, "Too many at a time")
        assert third.json()["detail"].startswith("2 of your streams may be open at a time. Close")
        first.close()
        assert status_of(ada, events) == 200


def status_of(visitor: Visitor, events: str, within_s: float = 5.0) -> int:
    """Ask for a stream until it is given or time is up."""
    deadline = time.monotonic() + within_s
    while True:
        with visitor.client.stream("GET", events) as answer:
            if answer.status_code == 200 or time.monotonic() > deadline:
                return answer.status_code
        time.sleep(0.05)


def test_the_streams_of_the_page_count_too_and_what_is_refused_begins_no_battle(
    tmp_path: Path,
) -> None:
    with faulty_server({"x": SLOW, "y": SLOW}) as server:
        roster = write_roster(tmp_path / "roster.toml", server, "x", "y")
        with page_of(tmp_path, roster, streams_per_voter=1) as served, served.visitor() as ada:
            events = f"/api/v1/battles/{ada.open()}/events"
            with ada.client.stream("GET", events):
                assert send(ada, "s").is_success
                told = ada.get("/gradio_api/queue/data?session_hash=s").text
            assert "1 of your streams may be open at a time." in told
            assert status_of(ada, events) == 200


def test_a_visitor_reads_the_page_s_events_on_so_many_streams_and_no_more(tmp_path: Path) -> None:
    with faulty_server({"x": SLOW, "y": SLOW}) as server:
        roster = write_roster(tmp_path / "roster.toml", server, "x", "y")
        with (
            page_of(tmp_path, roster, streams_per_voter=1) as served,
            served.visitor() as ada,
            served.visitor() as bob,
        ):
            assert send(ada, "s").is_success
            assert send(bob, "t").is_success
            events = "/gradio_api/queue/data?session_hash="
            with ada.client.stream("GET", f"{events}s"), ada.client.stream("GET", f"{events}s"):
                refused = ada.get(f"{events}s")
                assert refused.status_code == 429
                assert "streams may be open at a time" in refused.json()["detail"]
                with bob.client.stream("GET", f"{events}t") as answer:
                    assert answer.status_code == 200


def test_the_page_s_queue_is_joined_only_so_often_in_a_minute(tmp_path: Path) -> None:
    with faulty_server({"x": SLOW, "y": SLOW}) as server:
        roster = write_roster(tmp_path / "roster.toml", server, "x", "y")
        with (
            page_of(tmp_path, roster, page_uses_per_voter_minute=2) as served,
            served.visitor() as ada,
            served.visitor() as bob,
        ):
            answers = [send(ada, f"s{n}") for n in range(6)]  # the minute may end among them
            assert [a.status_code for a in answers].count(429) >= 2
            assert "used the page 2 times in a minute" in answers[2].text + answers[5].text
            assert send(bob, "t").is_success


def send(visitor: Visitor, session: str) -> httpx.Response:
    """Press Send, as the page does."""
    page = config_of(visitor.get("/").text)
    event = next(d for d in page["dependencies"] if d["inputs"])
    data = ["Hi", *[""] * (len(event["inputs"]) - 1)]
    joined = {"data": data, "fn_index": event["id"], "session_hash": session}
    return visitor.post("/gradio_api/queue/join", json=joined)
