import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from arena.domain.voter import Voter
from arena.errors import LimitError
from arena.guard.limits import HOUR, Allowance, Limits, Use, free_at
from tests.arena.test_blindness import config_of
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Served, client_of, page_of, quick_arena, served_by, write_roster

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

    def spent(self, since: datetime) -> Sequence[tuple[datetime, float]]:
        return [(at, cost) for at, cost in self.costs if at > since]

    def limits(self, **allowance: float) -> Limits:
        return Limits(
            Allowance(**allowance),  # type: ignore[arg-type]
            prompts_of=self.prompts_of,
            spent=self.spent,
            now=lambda: self.now,
        )

    def begin(self, limits: Limits, voter: Voter) -> None:
        with limits.admit(voter):
            self.battles.append((voter.id, self.now))


def minutes_ago(*minutes: float) -> list[Use]:
    return [Use(NOON - timedelta(minutes=m)) for m in minutes]


def test_the_window_slides_with_each_use() -> None:
    assert free_at(minutes_ago(59, 30), 2, HOUR, NOON) == NOON + timedelta(minutes=1)
    assert free_at(minutes_ago(60, 30), 2, HOUR, NOON) is None
    assert free_at(minutes_ago(50, 40, 30), 2, HOUR, NOON) == NOON + timedelta(minutes=20)
    assert free_at([], 1, HOUR, NOON) is None


def test_dollars_are_free_when_enough_of_them_is_old() -> None:
    used = [Use(NOON - timedelta(minutes=m), dollars) for m, dollars in ((50, 1), (40, 5), (5, 1))]
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
        "You have reached 2 battles in an hour. The next is free at 13:21 UTC."
    )
    log.now = refused.value.free_at
    log.begin(limits, ADA)


def test_visitors_of_one_network_share_its_limit_and_others_do_not() -> None:
    log = Log()
    limits = log.limits(per_address=2)
    log.begin(limits, ADA)
    log.begin(limits, BOB)
    with pytest.raises(LimitError, match=r"Your network has reached 2 battles .* 13:00 UTC"):
        log.begin(limits, ADA)
    log.begin(limits, Voter("cleo", address="elsewhere"))
    log.begin(limits, Voter("nobody knows"))
    log.now += HOUR
    log.begin(limits, ADA)


def test_many_addresses_of_one_larger_network_share_four_times_as_much() -> None:
    log = Log()
    limits = log.limits(per_address=1)
    for n in range(4):
        log.begin(limits, Voter(f"v{n}", address=f"address {n}", network="household"))
    with pytest.raises(LimitError, match=r"Your network has reached 4 battles .* 13:00 UTC"):
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
    with pytest.raises(LimitError, match=r"spent .* in a day\. The next is free at 16:00 UTC"):
        log.begin(log.limits(dollars_a_day=5.5), ADA)


def open_at_once(served: Served, visitors: Sequence[httpx.Cookies], times: int) -> list[int]:
    """Open battles from many threads; gives the statuses."""
    codes: list[int] = []

    def click(cookies: httpx.Cookies) -> None:
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
    assert refused.json()["detail"].startswith("You have reached 1 battle in an hour. The next")


@pytest.mark.parametrize("usage", [(7, 11), None, (-(10**9), -(10**9)), (2**63, 2**63)], ids=str)
def test_what_answers_cost_is_counted_in_the_log_whatever_models_say(
    tmp_path: Path, usage: tuple[int, int] | None
) -> None:
    price = "{ input = 0, output = 1_000_000, date = 2026-01-01 }"
    models = {name: replace(behaviour, usage=usage) for name, behaviour in BEHAVIOURS.items()}
    with faulty_server(models) as server:
        roster = write_roster(tmp_path / "priced.toml", server, "x", "y")
        text = roster.read_text().replace("[[models]]", f"[[models]]\nprice = {price}")
        roster.write_text(text)
        with (
            served_by(server, tmp_path, roster=roster, max_dollars_per_day=30) as served,
            served.visitor() as ada,
        ):
            ada.play()
            ada.play()
            refused = ada.post("/api/v1/battles", json={"prompt": "Hi"})
    assert refused.status_code == 429
    assert "spent" in refused.json()["detail"]


def test_the_page_s_own_path_has_the_same_limits(tmp_path: Path) -> None:
    with faulty_server(BEHAVIOURS) as server:
        roster = write_roster(tmp_path / "roster.toml", server, "x", "y")
        with (
            page_of(tmp_path, roster, battles_per_address_hour=1) as served,
            served.visitor() as ada,
            served.visitor() as bob,
        ):
            bob.open()
            page = config_of(ada.get("/").text)
            send = next(d for d in page["dependencies"] if d["inputs"])
            data = ["Hi", *[""] * (len(send["inputs"]) - 1)]
            joined = {"data": data, "fn_index": send["id"], "session_hash": "s"}
            ada.post("/gradio_api/queue/join", json=joined)
            told = ada.get("/gradio_api/queue/data?session_hash=s").text
    assert "Your network has reached 1 battle in an hour. The next is free at" in told


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
        for said in forwarded:
            with client_of(served.url, headers={"X-Forwarded-For": said}) as somebody:
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
            assert "You have reached 2 battles in an hour." in refused.json()["detail"]
        assert ada.vote(battle, "tie").status_code == 200
