import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from arena.domain.people import Role
from arena.domain.study import HOLD
from arena.domain.vote import Voter
from arena.endpoints.client import MOST
from arena.errors import BusyError, FullError, LimitError
from arena.guard.limits import HOUR, RUNNING, Limits, Places, Raters, Use, free_at
from arena.settings import Settings
from tests.arena.store.battles import at_once
from tests.command import Command
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Served, Visitor, client_of, invited, quick_arena, served_by, write_roster

NOON = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)
ADA, BOB = Voter("ada", address="network"), Voter("bob", address="network")
BEHAVIOURS = {name: Behaviour(text=f"So says {name}.") for name in "xy"}


@dataclass
class Log:
    """What a store would know, and a clock."""

    now: datetime = NOON
    battles: list[tuple[str, datetime]] = field(default_factory=list)
    costs: list[tuple[datetime, float]] = field(default_factory=list)

    def prompts_of(self, voter: str, since: datetime) -> Sequence[datetime]:
        return [at for who, at in self.battles if who == voter and at > since]

    def spent(self, since: datetime, _voter: str | None) -> Sequence[tuple[datetime, float]]:
        return [(at, cost) for at, cost in self.costs if at > since]

    def limits(self, **allowance: float) -> Limits:
        return Limits(
            **allowance,  # type: ignore[arg-type]
            prompts_of=self.prompts_of,
            spent=self.spent,
            now=lambda: self.now,
        )

    def begin(self, limits: Limits, voter: Voter) -> None:
        with limits.admit(voter):
            self.battles.append((voter.id, self.now))


def minutes_ago(*minutes: float) -> list[Use]:
    return [(NOON - timedelta(minutes=m), 1.0) for m in minutes]


def test_the_window_slides_with_each_use() -> None:
    assert free_at(minutes_ago(59, 30), 2, HOUR, NOON) == NOON + timedelta(minutes=1)
    assert free_at(minutes_ago(60, 30), 2, HOUR, NOON) is None
    assert free_at(minutes_ago(50, 40, 30), 2, HOUR, NOON) == NOON + timedelta(minutes=20)
    assert free_at([], 1, HOUR, NOON) is None


def test_dollars_are_free_when_enough_of_them_is_old() -> None:
    used = [(NOON - timedelta(minutes=m), dollars) for m, dollars in ((50, 1), (40, 5), (5, 1))]
    assert free_at(used, 7.5, HOUR, NOON) is None
    assert free_at(used, 7, HOUR, NOON) == NOON + timedelta(minutes=10)
    assert free_at(used, 2, HOUR, NOON) == NOON + timedelta(minutes=20)


def test_a_refusal_says_when_the_next_is_free() -> None:
    log = Log(now=NOON + timedelta(minutes=20, seconds=30))
    limits = log.limits(per_voter=2)
    log.begin(limits, ADA)
    log.begin(limits, ADA)
    with pytest.raises(LimitError) as refused:
        log.begin(limits, ADA)
    assert str(refused.value) == (
        "Your limit is 2 battles per hour. The next is free at 13:21 UTC."
    )
    log.now = refused.value.free_at
    log.begin(limits, ADA)


def test_visitors_of_one_network_share_its_limit_and_others_do_not() -> None:
    log = Log()
    limits = log.limits(per_address=2)
    log.begin(limits, ADA)
    log.begin(limits, BOB)
    with pytest.raises(LimitError, match=r"Your network's limit is 2 battles .* 13:00 UTC"):
        log.begin(limits, ADA)
    log.begin(limits, Voter("cleo", address="elsewhere"))
    log.begin(limits, Voter("nobody knows"))
    log.now += HOUR
    log.begin(limits, ADA)
    assert [*limits._by_address] == [(log.now, ADA.address)], "the others are forgotten"


def test_many_addresses_of_one_larger_network_share_four_times_as_much() -> None:
    log = Log()
    limits = log.limits(per_address=1)
    for n in range(4):
        log.begin(limits, Voter(f"v{n}", address=f"address {n}", network="household"))
    with pytest.raises(LimitError, match=r"Your network's limit is 4 battles .* 13:00 UTC"):
        log.begin(limits, Voter("v4", address="address 4", network="household"))
    log.begin(limits, Voter("v4", address="address 4", network="next door"))
    log.now += HOUR
    log.begin(limits, Voter("v5", address="address 5", network="household"))


def test_a_battle_that_was_not_written_takes_no_place() -> None:
    log = Log()
    limits = log.limits(per_address=1)
    somebody = Voter("ada", address="address", network="household")
    with pytest.raises(OSError, match="disk"), limits.admit(somebody):
        raise OSError("disk")
    log.begin(limits, somebody)


def test_the_day_s_dollars_stop_everybody() -> None:
    log = Log(costs=[(NOON - timedelta(hours=20), 3.0), (NOON - timedelta(hours=1), 2.5)])
    log.begin(log.limits(dollars_a_day=5.6), ADA)
    with pytest.raises(LimitError, match=r"cost limit for a day\. The next is free at 16:00 UTC"):
        log.begin(log.limits(dollars_a_day=5.5), ADA)


def open_at_once(served: Served, visitors: Sequence[httpx2.Cookies], times: int) -> list[int]:
    """Open battles from many threads; gives the statuses."""
    codes: list[int] = []

    def click(cookies: httpx2.Cookies) -> None:
        with client_of(served.url, cookies=cookies) as client:
            codes.append(client.post("/api/v1/battles", json={"prompt": "Hi"}).status_code)

    threads = [threading.Thread(target=click, args=(c,)) for c in visitors for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(codes)


def test_many_requests_at_once_get_exactly_what_the_limit_allows(tmp_path: Path) -> None:
    with (
        faulty_server(BEHAVIOURS) as server,
        served_by(server, tmp_path, battles_per_voter_hour=5, running_per_voter=100) as served,
        served.visitor() as ada,
    ):
        ada.open()
        assert open_at_once(served, [ada.client.cookies], 12) == [201] * 4 + [429] * 8
        database = tmp_path / "arena.db"
        with closing(sqlite3.connect(database)) as connection:
            assert connection.execute("SELECT count(*) FROM battle").fetchone() == (5,)


def test_the_api_says_when_to_come_back_and_a_restart_forgets_nothing(tmp_path: Path) -> None:
    with faulty_server(BEHAVIOURS) as server:
        settings = {"battles_per_voter_hour": 1, "secret_key": "the same"}
        with served_by(server, tmp_path, **settings) as served, served.visitor() as ada:
            ada.open()
            cookies = ada.client.cookies
        with served_by(server, tmp_path, **settings) as served, served.visitor() as ada:
            ada.client.cookies = cookies
            refused = ada.post("/api/v1/battles", json={"prompt": "Hi"})
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert 3500 < int(refused.headers["retry-after"]) <= 3660
    assert refused.json()["detail"].startswith("Your limit is 1 battle per hour. The next")


@contextmanager
def priced(folder: Path, models: Mapping[str, Behaviour], **settings: Any) -> Iterator[Served]:
    """Serve an arena of two models whose answers cost a dollar a token."""
    with faulty_server(models) as server:
        roster = write_roster(folder / "priced.toml", server, "x", "y")
        price = "price = { input = 0, output = 1_000_000, date = 2026-01-01 }"
        roster.write_text(roster.read_text().replace("[[models]]", f"[[models]]\n{price}"))
        with served_by(server, folder, roster=roster, **settings) as served:
            yield served


@pytest.mark.sampled(2)
@pytest.mark.parametrize("usage", [(7, 11), None, (-(10**9), -(10**9)), (2**63, 2**63)], ids=str)
def test_what_answers_cost_is_counted_in_the_log_whatever_models_say(
    tmp_path: Path, usage: tuple[int, int] | None
) -> None:
    models = {name: replace(behaviour, usage=usage) for name, behaviour in BEHAVIOURS.items()}
    with priced(tmp_path, models, max_dollars_per_day=30) as served, served.visitor() as ada:
        ada.play()
        ada.play()
        refused = ada.post("/api/v1/battles", json={"prompt": "Hi"})
    assert refused.status_code == 429
    assert "cost limit" in refused.json()["detail"]


def test_answers_to_one_voter_have_a_cap_of_their_own(tmp_path: Path, command: Command) -> None:
    with (
        priced(tmp_path, BEHAVIOURS, cost_per_voter_day=1, secret_key="k" * 32) as served,
        served.visitor() as ada,
        served.visitor() as eve,
        served.visitor() as admin,
    ):
        admin.post(invited(served, Role.ADMIN))
        ada.play()
        refused = ada.post("/api/v1/battles", json={"prompt": "Hi"})
        eve.play()
        admin.play()
        status = ("status", "--database", served.database)
        shown = command(*status, "--format", "json").stdout
        printed = " ".join(command(*status, COLUMNS="200").stdout.split())
        page = admin.get("/admin").text.partition('id="spenders"')[2]
    assert refused.status_code == 429
    assert "Answers to your prompts have reached the cost limit" in refused.json()["detail"]
    spent = json.loads(shown)
    assert [one["answers"] for one in spent["spenders"]] == [2, 2, 2]
    assert f"and ${spent['dollars']:,.2f} was spent (no limit)." in printed
    for one in spent["spenders"]:
        cells = (one["voter"][:12], one["name"] or "–", "2", f"{one['dollars']:,.2f}")
        assert f"│ {' │ '.join(cells)} │" in printed
    for one in spent["models"]:
        seconds = (f"{one[f'first_token_p{n}_s']:.2f} s" for n in (50, 95))
        cells = (one["model"], f"{one['answers']}", "0", *seconds, f"{one['dollars']:,.2f}")
        assert f"│ {' │ '.join(cells)} │" in printed
    on_page = [
        one["voter"] for one in spent["spenders"] if f"<bdi>{one['voter'][:8]}</bdi>" in page
    ]
    assert len(on_page) == page.count("<bdi>") == 2, "not what the reader has not voted on"
    assert sum(one["dollars"] for one in spent["spenders"]) == pytest.approx(spent["dollars"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("proxies", "forwarded", "codes"),
    [
        ("", ["1.1.1.1", "2.2.2.2"], [201, 429]),
        ("10.0.0.0/8", ["1.1.1.1", "2.2.2.2"], [201, 429]),
        ("127.0.0.1", ["1.1.1.1", "2.2.2.2", "1.1.1.1"], [201, 201, 429]),
        ("127.0.0.1, 10.0.0.0/8", ["9.9.9.9, 1.1.1.1, 10.2.3.4", "1.1.1.1"], [201, 429]),
        ("127.0.0.1", [f"2001:db8:7:{n}::1" for n in range(5)], [201, 201, 201, 201, 429]),
        ("127.0.0.1", ["nowhere"], [400]),
    ],
    ids=["none", "another", "trusted", "last that is not trusted", "one of /48", "garbage"],
)
def test_only_a_trusted_proxy_says_where_a_visitor_comes_from(
    tmp_path: Path, proxies: str, forwarded: list[str], codes: list[int]
) -> None:
    allowed = {"trusted_proxies": proxies, "battles_per_address_hour": 1}
    with quick_arena(tmp_path, **allowed) as served:
        seen = []
        for claimed in forwarded:
            with client_of(served.url, headers={"X-Forwarded-For": claimed}) as somebody:
                battle = somebody.post("/api/v1/battles", json={"prompt": "Hi"})
            seen.append(battle.status_code)
    assert seen == codes
    assert not any(b"1.1.1.1" in file.read_bytes() for file in tmp_path.glob("arena.db*"))


def test_turns_and_new_attempts_pass_the_limits_too(tmp_path: Path) -> None:
    with (
        faulty_server(BEHAVIOURS) as server,
        served_by(server, tmp_path, battles_per_voter_hour=2) as served,
        served.visitor() as ada,
    ):
        battle = ada.play()
        assert ada.post(f"/api/v1/battles/{battle}/turns", json={"prompt": "And?"}).is_success
        ada.follow(battle)
        for deed, body in (("turns", {"prompt": "And then?"}), ("regenerate", None)):
            refused = ada.post(f"/api/v1/battles/{battle}/{deed}", json=body)
            assert refused.status_code == 429, deed
            assert "Your limit is 2 battles per hour." in refused.json()["detail"]
        assert ada.vote(battle, "tie").status_code == 200


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
    places = Places(RUNNING, per_voter=1, per_address=1, in_all=1)
    for _ in range(3):
        with pytest.raises(OSError, match="disk"), places.hold(ADA):
            raise OSError("disk")
    with places.hold(ADA), pytest.raises(BusyError), places.hold(ADA):
        pass
    with places.hold(CLEO):
        pass


def test_visitors_of_one_network_share_its_places_and_all_share_the_arena_s() -> None:
    places = Places(RUNNING, per_voter=2, per_address=2, in_all=3)
    with places.hold(ADA), places.hold(BOB):
        with pytest.raises(BusyError, match=r"^2 of your network's battles .* Wait until"):
            places.hold(ADA).__enter__()
        with places.hold(CLEO):
            with pytest.raises(FullError, match=r"full: 3 of its battles .* Try again in a min"):
                places.hold(Voter("dora", address="d")).__enter__()
            with pytest.raises(FullError):
                places.hold(Voter("nobody knows")).__enter__()


def test_many_addresses_of_one_larger_network_hold_four_times_as_much() -> None:
    places = Places(RUNNING, per_voter=1, per_address=1, in_all=100)
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
        slow_arena(
            tmp_path,
            running_per_address=2,
            streams_per_address=1,
            streams=1,
            trusted_proxies="127.0.0.1",
        ) as served,
        ExitStack() as stack,
    ):
        ada, bob, cleo = (stack.enter_context(served.visitor()) for _ in "abc")
        for somebody, address in ((ada, "1.1.1.1"), (bob, "1.1.1.1"), (cleo, "2.2.2.2")):
            somebody.client.headers["X-Forwarded-For"] = address
        events = [f"/api/v1/battles/{one.open()}/events" for one in (ada, bob)]
        assert refused(ada, 429).startswith("2 of your network's battles may be answered")
        events.append(f"/api/v1/battles/{cleo.open()}/events")
        with ada.client.stream("GET", events[0]):
            of_network, of_all = (
                one.get(path) for one, path in zip((bob, cleo), events[1:], strict=True)
            )
        assert (of_network.status_code, of_all.status_code) == (429, 503)
        assert of_network.json()["detail"].startswith("1 of your network's streams may be open")
        assert of_all.json()["detail"].startswith("The arena is full: 1 of its streams may be")


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


def status_of(visitor: Visitor, events: str, within_s: float = 60.0) -> int:
    """Ask for a stream until it is given or time is up."""
    deadline = time.monotonic() + within_s
    while True:
        with visitor.client.stream("GET", events) as answer:
            if answer.status_code == 200 or time.monotonic() > deadline:
                return answer.status_code
        time.sleep(0.05)


def test_a_rater_who_does_nothing_for_minutes_gives_their_place_to_others() -> None:
    log = Log()
    raters = Raters(2, 100, lambda: log.now)
    here = [Voter(name, address="here") for name in ("ada", "bob", "eve")]
    for one in here[:2]:
        with raters.admit("s", one, begins=True):
            pass
    log.now += HOLD - timedelta(seconds=1)
    raters.stay("s", "bob")
    with pytest.raises(BusyError, match="2 raters of this study"):
        enter(raters, here[2])
    enter(raters, here[2], "other")
    log.now += timedelta(seconds=1)
    enter(raters, here[2])
    with pytest.raises(BusyError):
        enter(raters, here[0])
    raters.leave("s", "bob")
    enter(raters, here[0])


def test_a_rater_who_is_given_nothing_takes_no_place_of_their_network() -> None:
    raters = Raters(1, 1, lambda: NOON)
    ada, bob = (Voter(name, address="here") for name in ("ada", "bob"))
    with pytest.raises(ZeroDivisionError), raters.admit("s", ada, begins=True):
        raise ZeroDivisionError
    enter(raters, bob)
    with pytest.raises(ZeroDivisionError), raters.admit("s", bob, begins=True):
        raise ZeroDivisionError
    with pytest.raises(BusyError):
        enter(raters, ada)
    enter(raters, ada, "other")  # where nobody of the network has begun in this hour


def test_many_raters_at_once_get_exactly_the_places_of_their_network() -> None:
    refused: list[int] = []
    raters = Raters(5, 100, lambda: NOON)

    def begin(n: int) -> None:
        try:
            enter(raters, Voter(f"v{n}", address="here"))
        except BusyError:
            refused.append(n)

    at_once(16, begin)
    assert len(refused) == 11


def enter(raters: Raters, voter: Voter, study: str = "s") -> None:
    with raters.admit(study, voter, begins=True):
        pass
