"""Whether entrants can be compared, and how one of them is asked."""

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arena.domain.comparability import card_of, card_of_board, differences
from arena.domain.model import Kind, Model
from arena.settings import read_roster
from arena.store import roster
from arena.store.store import Store
from tests.arena.store.battles import NOW
from tests.command import Command
from tests.faulty_server import Behaviour, faulty_server
from tests.sqlite import new_sqlite

TOOL = {"type": "function", "function": {"name": "search"}}
DECODING = {"temperature": 0.7, "top_p": 0.9, "max_tokens": 500, "tools": [TOOL], "seed": 7}
MODEL = Model(
    id="a",
    name="A",
    endpoint="https://a.example/v1",
    model="a-1",
    system_prompt="Be brief.",
    decoding=DECODING,
)
BOARD = {
    "method": {
        "words": "Bradley-Terry, ties half",
        "level": 0.95,
        "anchor_mean": 1000.0,
        "policy": "default-v3",
        "policy_rules": ["Each battle counts once."],
        "version": "abc",
        "updated": "2026-11-01",
        "data_hash": "c0ffee",
    },
    "judge": "basalt",
    "ratings": [],
}


def decoded(**changes: object) -> Model:
    return replace(MODEL, decoding=DECODING | changes)


PLANTED = {
    "temperature": decoded(temperature=1.0),
    "top-p": decoded(top_p=1),
    "max tokens": decoded(max_tokens=501),
    "tools": decoded(tools=[{**TOOL, "type": "other"}]),
    "tool choice": decoded(tool_choice="none"),
    "template": decoded(chat_template="{{ x }}"),
    "template arguments": decoded(chat_template_kwargs={"enable_thinking": False}),
    "seed": decoded(seed=8),
    "system prompt": replace(MODEL, system_prompt="Be brief. "),
    "turns": replace(MODEL, endpoint="recorded://files", recording="a.json"),
    "kind": replace(MODEL, kind=Kind.SYSTEM),
}
BOARDS = {
    "judge": BOARD | {"judge": "quartz"},
    "words": BOARD | {"method": {**BOARD["method"], "words": "Bradley-Terry, ties left out"}},  # type: ignore[dict-item]
    "policy": BOARD | {"method": {**BOARD["method"], "policy": "default-v1"}},  # type: ignore[dict-item]
    "turns": BOARD | {"turns": 1},
}


@pytest.mark.parametrize(("condition", "other"), PLANTED.items(), ids=PLANTED)
def test_each_planted_mismatch_of_entrants_is_named_alone(condition: str, other: Model) -> None:
    (one,) = differences({"a": card_of(MODEL), "b": card_of(other)})
    assert one.condition == condition
    assert [names for _, names in one.values] == [("a",), ("b",)]
    assert len({value for value, _ in one.values}) == 2


@pytest.mark.parametrize(("condition", "other"), BOARDS.items(), ids=BOARDS)
def test_each_planted_mismatch_of_boards_is_named_alone(
    condition: str, other: dict[str, Any]
) -> None:
    (one,) = differences({"a": card_of_board(BOARD), "b": card_of_board(other)})
    assert one.condition == condition


@pytest.mark.parametrize(
    "same",
    [
        MODEL,
        replace(MODEL, id="b", name="B", endpoint="https://b.example/v1", model="b-1", weight=2.0),
        replace(MODEL, decoding=dict(reversed(DECODING.items()))),
        decoded(seed=7.0),
        replace(
            MODEL,
            decoding={
                ("max_completion_tokens" if k == "max_tokens" else k): v
                for k, v in DECODING.items()
            },
        ),
    ],
)
def test_who_answers_under_the_same_conditions_does_not_differ(same: Model) -> None:
    assert differences({"a": card_of(MODEL), "b": card_of(same)}) == ()


def test_boards_of_other_votes_made_in_the_same_way_do_not_differ() -> None:
    beside = {"version": "def", "updated": "2026-11-02", "data_hash": "dead"}
    other = BOARD | {"ratings": [1], "method": {**BOARD["method"], **beside}}  # type: ignore[dict-item]
    assert differences({"a": card_of_board(BOARD), "b": card_of_board(other)}) == ()


def test_long_values_that_differ_at_the_end_are_told_apart() -> None:
    one, other = (replace(MODEL, system_prompt="Be kind. " * 99 + end) for end in ("x", "y"))
    (difference,) = differences({"a": card_of(one), "b": card_of(other)})
    values = [value for value, _ in difference.values]
    assert values[0] != values[1]
    assert all(len(value) < 90 for value in values)


ROSTER = """
[[models]]
id = "x"
name = "X"
endpoint = "pocket://local/v1"
model = "unigram"
decoding = { temperature = 0.7 }

[[models]]
id = "y"
name = "Y"
endpoint = "pocket://local/v1"
model = "bigram"

[[models]]
id = "z"
name = "Z"
endpoint = "pocket://local/v1"
model = "trigram"
"""


def test_lint_names_what_differs_and_exits_with_1(command: Command, tmp_path: Path) -> None:
    (tmp_path / "roster.toml").write_text(ROSTER)
    result = command("models", "lint", "--roster", "roster.toml", COLUMNS="120")
    assert result.returncode == 1
    lines = [line.strip("│ ").split(" │ ") for line in result.stdout.splitlines() if "│" in line]
    assert [[cell.strip() for cell in line] for line in lines[-2:]] == [
        ["temperature", "0.7", "x"],
        ["not set", "y, z"],
    ]
    same = command("models", "lint", "y", "z", "--roster", "roster.toml")
    assert (same.returncode, same.stdout) == (0, "The 2 models do not differ in a condition.\n")
    unknown = command("models", "lint", "y", "w", "--roster", "roster.toml")
    assert unknown.returncode == 2
    assert "There is no model 'w' in the roster. There are x, y, z." in unknown.stderr
    alone = command("models", "lint", "y", "--roster", "roster.toml")
    assert "To compare takes two, and there is 1" in alone.stderr


def test_lint_reads_the_stored_roster_and_boards(command: Command, tmp_path: Path) -> None:
    (tmp_path / "roster.toml").write_text(ROSTER)
    database = new_sqlite(tmp_path)
    store = Store(database)
    with store.writing() as session:
        roster.take_over(session, tuple(read_roster(tmp_path / "roster.toml")), NOW)
    store.close()
    assert command("models", "lint", "--database", database).returncode == 1
    for name, content in (
        ("ours.json", BOARD),
        ("theirs.json", BOARDS["policy"]),
        ("no.json", {}),
    ):
        (tmp_path / name).write_text(json.dumps(content))
    differ = command("models", "lint", "ours.json", "theirs.json")
    assert differ.returncode == 1
    assert "default-v1" in differ.stdout
    same = command("models", "lint", "ours.json", "ours.json")
    assert "To compare takes two" in same.stderr
    assert (
        'no.json is no board: it has no "method"'
        in command("models", "lint", "ours.json", "no.json").stderr
    )


def test_reproduce_prints_a_call_that_asks_as_a_battle_does(
    command: Command, tmp_path: Path
) -> None:
    with faulty_server({"m": Behaviour(text="Scattering.")}) as server:
        (tmp_path / "roster.toml").write_text(
            f'[[models]]\nid = "m"\nname = "M"\nendpoint = "{server.url}"\nmodel = "m"\n'
            'api_key_env = "M_KEY"\nsystem_prompt = "Don\'t; $(rm)"\n'
            "decoding = { temperature = 0.5 }\n"
        )
        line = command(
            "models",
            "reproduce",
            "m",
            "--prompt",
            "Why 'now'?",
            "--roster",
            "roster.toml",
            M_KEY="secret-1",
        ).stdout
        assert "secret-1" not in line
        assert '-H "Authorization: Bearer $M_KEY"' in line
        done = subprocess.run(
            ["sh", "-c", line],
            env={"M_KEY": "secret-1", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
    assert json.loads(done.stdout)["choices"][0]["message"]["content"] == "Scattering."
    body = json.loads(shlex.split(line)[shlex.split(line).index("-d") + 1])
    assert body["temperature"] == 0.5
    assert [m["content"] for m in body["messages"]] == ["Don't; $(rm)", "Why 'now'?"]


def test_reproduce_knows_queries_headers_and_what_is_left_out(
    command: Command, tmp_path: Path
) -> None:
    with faulty_server({"m": Behaviour(text="Scattering.")}) as server:
        endpoint = f"{server.url}/chat/completions?api-version=1&x='y'"
        (tmp_path / "roster.toml").write_text(
            f'[[models]]\nid = "m"\nname = "M"\nendpoint = "{endpoint}"\nmodel = "m"\n'
            'api_key_env = "M_KEY"\napi_key_header = "api-key"\nsystem_prompt = "Be brief."\n'
            'without = ["system"]\n'
        )
        line = command("models", "reproduce", "m", "--roster", "roster.toml", M_KEY="k").stdout
        assert line.rstrip().endswith('-H "api-key: $M_KEY"')
        env = {"M_KEY": "secret-1", "PATH": "/usr/bin:/bin"}
        done = subprocess.run(["sh", "-c", line], env=env, capture_output=True, check=True)
        (seen,) = server.requests
    assert json.loads(done.stdout)["choices"][0]["message"]["content"] == "Scattering."
    assert seen.target.startswith("/v1/chat/completions?api-version=1")
    assert (seen.headers["api-key"], "authorization" in seen.headers) == ("secret-1", False)
    assert [turn["role"] for turn in seen.body["messages"]] == ["user"]


def test_a_name_of_a_key_that_a_shell_would_run_is_not_printed(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "roster.toml").write_text(
        '[[models]]\nid = "m"\nname = "M"\nendpoint = "https://h/v1"\nmodel = "m"\n'
        'api_key_env = "(rm x)"\n' + ROSTER
    )
    shown = command("models", "reproduce", "m", "--roster", "roster.toml").stdout
    assert shown.startswith("curl https://h/v1/chat/completions")
    assert "rm x" not in shown
    toy = command("models", "reproduce", "x", "--roster", "roster.toml")
    assert toy.returncode == 2
    assert "'x' answers within the arena (pocket://local/v1): no call." in toy.stderr
