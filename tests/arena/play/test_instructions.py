"""Prompts with instructions: offered as they stand, and checked after the vote alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from arena.errors import SettingsError
from arena.parts import _instructed
from arena.play.studies import Instructed
from arena.settings import read_settings
from judge.ifeval import read_task
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.serving import Served, serve, served_by

PROMPT = "Name two fruits.\nNo commas, at least 3 words."
TASK = {
    "prompt": PROMPT,
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
    "kwargs": [{}, {"num_words": 3, "relation": "at least"}],
}
TEXTS = {"x": "Apples, and pears.", "y": "Apples."}
FOLLOWED = {"x": (False, True), "y": (True, False)}


@pytest.fixture
def instructions(tmp_path: Path) -> Path:
    path = tmp_path / "input_data.jsonl"
    path.write_text(json.dumps(TASK), encoding="utf-8")
    return path


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server({name: Behaviour(text=text) for name, text in TEXTS.items()}) as one:
        yield one


@pytest.fixture
def served(
    server: FaultyServer, tmp_path: Path, instructions: Path, database_url: str
) -> Iterator[Served]:
    with served_by(server, tmp_path, database=database_url, instructions=instructions) as one:
        yield one


def path(battle: str) -> str:
    return f"/api/v1/battles/{battle}/instructions"


def test_what_answers_follow_is_said_after_the_vote_and_not_before(served: Served) -> None:
    with served.visitor() as visitor:
        battle = visitor.play("  " + " ".join(PROMPT.split()) + " ")
        assert visitor.look(battle)["turns"][0]["prompt"] == PROMPT
        assert visitor.get(path(battle)).status_code == 409
        assert "punctuation" not in "".join(visitor.received)
        receipt = visitor.vote(battle, "model_a").json()
        written = {side: model["name"][-1] for side, model in receipt["models"].items()}
        checked = visitor.get(path(battle)).json()["instructions"]
        assert [one["id"] for one in checked] == TASK["instruction_id_list"]
        for side, model in written.items():
            assert tuple(one[side] for one in checked) == FOLLOWED[model]
        skipped = visitor.play(PROMPT)
        visitor.vote(skipped, "skip")
        assert visitor.get(path(skipped)).status_code == 409
        other = visitor.play("Why?")
        visitor.vote(other, "tie")
        assert visitor.get(path(other)).json() == {"instructions": []}
        longer = visitor.play("Why?")
        visitor.post(f"/api/v1/battles/{longer}/turns", json={"prompt": PROMPT})
        visitor.follow(longer)
        visitor.vote(longer, "tie")
        assert len(visitor.get(path(longer)).json()["instructions"]) == 2, "of the latest turn"
    with served.visitor() as stranger:
        stranger.open()
        assert stranger.get(path(battle)).status_code == 404


def test_what_is_followed_waits_for_the_names(
    server: FaultyServer, tmp_path: Path, instructions: Path
) -> None:
    settings = {"instructions": instructions, "reasons": "before"}
    with served_by(server, tmp_path, **settings) as served, served.visitor() as visitor:
        battle = visitor.play(PROMPT)
        visitor.vote(battle, "model_a")
        assert visitor.get(path(battle)).status_code == 409
        visitor.post(f"/api/v1/battles/{battle}/remarks", json={})
        assert len(visitor.get(path(battle)).json()["instructions"]) == 2


def test_of_a_gold_battle_nothing_is_said(
    server: FaultyServer, tmp_path: Path, instructions: Path
) -> None:
    gold = tmp_path / "gold.jsonl"
    pair = {"prompt": PROMPT, "response_a": "Plums or pears.", "response_b": ",", "gold": "A>B"}
    gold.write_text(json.dumps(pair), encoding="utf-8")
    settings = {"gold": gold, "gold_share": 0.05, "running_per_voter": 60}
    with (
        served_by(server, tmp_path, instructions=instructions, **settings) as served,
        served.visitor() as visitor,
    ):
        for _ in range(19):
            visitor.open()
        battle = visitor.play(PROMPT)
        assert visitor.vote(battle, "model_a").json()["gold"] is True
        assert visitor.get(path(battle)).json() == {"instructions": []}


def test_an_answer_that_is_not_whole_is_not_held_against_its_model() -> None:
    tasks = Instructed([read_task(TASK)], Random(0))
    followed = tasks.check(PROMPT, None, "Plums or pears.")
    assert [(one.a, one.b) for one in followed] == [(None, True), (None, True)]
    assert tasks.check(f"{PROMPT}!", "x", "y") == ()


def test_prompts_are_offered_as_they_stand_in_the_file() -> None:
    rows = [TASK | {"prompt": f"{PROMPT} {n}"} for n in range(9)]
    tasks = Instructed(map(read_task, rows), Random(0))
    offered = tasks.offered()
    assert len({*offered}) == 2
    assert all(tasks.untouched(" ".join(prompt.split())) == prompt for prompt in offered)
    assert Instructed().offered() == ()


def test_a_file_without_instructions_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"prompt": "x"}', encoding="utf-8")
    with (
        pytest.raises(SettingsError, match=r"ARENA_INSTRUCTIONS: .*instruction_id_list"),
        serve(instructions=file, database=f"sqlite:///{tmp_path}/a.db"),
    ):
        pass


def test_a_task_of_the_longest_prompt_is_offered_and_one_character_more_is_not(
    instructions: Path,
) -> None:
    for most, offered in ((len(PROMPT), (PROMPT,)), (len(PROMPT) - 1, ())):
        tasks = _instructed(read_settings(instructions=instructions, max_prompt_chars=most))
        assert tasks.offered() == offered
