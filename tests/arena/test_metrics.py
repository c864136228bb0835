import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.command import refused, run
from tests.faulty_server import Behaviour, Fault, faulty_server
from tests.serving import Served, Visitor, free_port, running, write_roster


def figures(port: int) -> dict[str, float]:
    text = httpx2.get(f"http://127.0.0.1:{port}/metrics").text
    rows = re.findall(r"^(arena_\S+(?:\{.*\})?) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in rows}


@contextmanager
def measured(
    folder: Path, behaviours: Mapping[str, Behaviour], **more: str
) -> Iterator[tuple[Visitor, int]]:
    """Serve models; gives a visitor and the port of the figures."""
    port = free_port()
    env = {"ARENA_METRICS_PORT": str(port), "ARENA_CHARACTERS_PER_S": "50000"} | more
    with faulty_server(behaviours) as server:
        roster = write_roster(folder / "r.toml", server, *behaviours)
        words = ("serve", "--port", "0", "--roster", str(roster))
        with running(folder, *words, **env) as url, Served(url, "").visitor() as ada:
            yield ada, port


WELL = {"quartz": Behaviour(), "basalt": Behaviour()}


def test_the_figures_stand_on_a_port_of_their_own_and_name_no_model(tmp_path: Path) -> None:
    with measured(tmp_path, WELL) as (ada, port):
        battle_id, key = ada.play(), "0b8f3c1e-6c0e-4a36-9d2d-6a5f4f1f7a55"
        ada.vote(battle_id, "tie", key)
        ada.vote(battle_id, "tie", key)
        ada.play()
        metrics = figures(port)
        raw = httpx2.get(f"http://127.0.0.1:{port}/metrics").text
        assert ada.get("/metrics").status_code == 404
    assert metrics["arena_battles_running"] == 0
    assert metrics['arena_battles_ended_total{state="ready"}'] == 2
    assert metrics['arena_votes_total{outcome="tie"}'] == 1
    assert metrics["arena_first_token_seconds_count"] == 4
    assert metrics['arena_request_seconds_count{route="/api/v1/battles",status="201"}'] == 2
    assert "quartz" not in raw
    assert "basalt" not in raw


def test_the_figures_are_this_machine_s_alone_unless_the_operator_says_otherwise(
    tmp_path: Path,
) -> None:
    with measured(tmp_path, WELL, ARENA_HOST="0.0.0.0") as (_, port):
        assert figures(port)
        with pytest.raises(ConnectionRefusedError):  # another address of this machine
            socket.create_connection(("127.0.0.2", port), timeout=5)
    with measured(tmp_path, WELL, ARENA_METRICS_HOST="0.0.0.0") as (_, port):
        socket.create_connection(("127.0.0.2", port), timeout=5).close()


def test_failures_are_counted_by_class(tmp_path: Path) -> None:
    models = {"quartz": Behaviour(), "tuff": Behaviour(fault=Fault.MALFORMED, fault_after=12)}
    with measured(tmp_path, models) as (ada, port):
        assert ada.follow(ada.open())[-1].event == "failed"
        metrics = figures(port)
    assert metrics['arena_battles_ended_total{state="failed"}'] == 1
    assert metrics['arena_answer_failures_total{class="malformed"}'] == 1


def test_a_failure_that_nobody_saw_is_counted_too(tmp_path: Path) -> None:
    with measured(tmp_path, WELL | {"tuff": Behaviour(status=401)}) as (ada, port):
        for _ in range(20):
            assert ada.follow(ada.open())[-1].event == "ready"
            if 'arena_answer_failures_total{class="auth"}' in figures(port):
                return
    raise AssertionError("the ill model was never drawn, or its failure was not counted")


@pytest.mark.slow
def test_a_port_that_is_taken_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run(tmp_path, "demo", "--toys", "--port", "0", ARENA_METRICS_PORT=port)
    refused(done, port, "in use", "ARENA_METRICS_PORT")


def test_what_runs_is_none_again_after_turns_and_new_attempts(tmp_path: Path) -> None:
    with measured(tmp_path, WELL) as (ada, port):
        battle_id = ada.play()
        ada.post(f"/api/v1/battles/{battle_id}/turns", json={"prompt": "And then?"})
        ada.follow(battle_id)
        ada.post(f"/api/v1/battles/{battle_id}/regenerate")
        ada.follow(battle_id)
        metrics = figures(port)
    ended = metrics['arena_battles_ended_total{state="ready"}']
    assert (metrics["arena_battles_running"], ended) == (0, 3)
