"""kill -9 in the middle of votes, again and again: what was acknowledged is kept."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import httpx2
import pytest

from tests.faulty_server import Behaviour, faulty_server
from tests.kills import BATTLES_EACH, N_PLAYERS, Rounds, arena, play_rounds
from tests.serving import Visitor, client_of, write_roster
from tests.sqlite import new_sqlite


@pytest.mark.parametrize(
    "n", [1, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(1500)])]
)
def test_no_acknowledged_vote_is_lost_when_the_arena_is_killed(
    database_url: str, tmp_path: Path, n: int, record_property: Callable[[str, object], None]
) -> None:
    rounds = Rounds.begin(database_url.partition(":")[0])
    play_rounds(rounds, n, database_url, tmp_path)
    tally = rounds.total()
    record_property("kill -9 in the middle of votes", asdict(tally))
    assert (tally.lost, tally.doubled, tally.hung) == (0, 0, 0)
    assert tally.acknowledged == n * N_PLAYERS * BATTLES_EACH
    if n > 1:
        assert tally.sent_again, "no kill came in the middle of the votes"
        assert tally.interrupted, "no kill came in the middle of an answer"


def test_rounds_that_were_broken_off_go_on_after_the_last_whole_one(tmp_path: Path) -> None:
    database, state = new_sqlite(tmp_path), tmp_path / "rounds.json"

    def broken_off(rounds: Rounds) -> None:
        rounds.write(state)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_rounds(Rounds.begin("sqlite"), 2, database, tmp_path, broken_off)
    again = Rounds.read(state)
    assert again.tally.rounds == 1
    play_rounds(again, 2, database, tmp_path)
    tally = again.total()
    assert (tally.rounds, tally.lost, tally.doubled, tally.hung) == (2, 0, 0, 0)
    assert tally.acknowledged == 2 * N_PLAYERS * BATTLES_EACH


def test_a_battle_outlives_other_arenas_and_ends_with_its_own(
    database_url: str, tmp_path: Path
) -> None:
    behaviours = {name: Behaviour(text="On and on. " * 500, delay_s=0.1) for name in "xyz"}
    with faulty_server(behaviours) as server:
        roster = write_roster(tmp_path / "roster.toml", server, *behaviours)
        with arena(tmp_path, database_url, roster) as (url, kill), visitor(url) as ada:
            battle_id = ada.open()
            with arena(tmp_path, database_url, roster) as (_, kill_other):
                kill_other()
            with (
                arena(tmp_path, database_url, roster) as (other_url, _),
                visitor(other_url, ada.client.cookies) as ada_there,
            ):
                assert ada.look(battle_id)["state"] in ("created", "streaming")
                assert ada_there.look(battle_id)["state"] in ("created", "streaming")
                with ThreadPoolExecutor(1) as pool:
                    events = pool.submit(ada_there.follow, battle_id)
                    kill()
                    assert [h.event for h in events.result()[-2:]] == ["failed", "failed"]
                assert ada_there.look(battle_id)["state"] == "interrupted"
                again = ada_there.post(f"/api/v1/battles/{battle_id}/retry")
                assert again.status_code < 300, again.text


def visitor(url: str, cookies: httpx2.Cookies | None = None) -> Visitor:
    return Visitor(client_of(url, cookies=cookies))
