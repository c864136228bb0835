"""The whole path on recorded answers of real models."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from rating import Comparisons, RateOptions, Report, rate
from rating.tables.counts import rate_source
from tests.command import invoke
from tests.serving import Served, serve
from tests.sqlite import new_sqlite

pytestmark = pytest.mark.published

BEST, LEAST = ("GPT 4", "Claude v1", "command"), ("GPT-NeoXT-Chat-Base (20B)", "Dolly v2 (12B)")
PLANTED = (*BEST, "Alpaca (7B)", *LEAST)
Upset = Callable[[int, int], bool]
"""Whether a vote, by its number and how far apart the planted ranks are, goes the other way."""
NAMES = ("model", "rating", "se", "lower", "upper", "rank", "rank_low", "rank_high", "votes")


@pytest.mark.slow
def test_three_recordings_of_805_instructions_play_vote_and_rank(
    published_data: Path, tmp_path: Path
) -> None:
    names = ("falcon-7b-instruct", "oasst-sft-pythia-12b", "OpenHermes-2.5-Mistral-7B")
    outputs = {name: published_data / "outputs" / f"{name}.json" for name in names}
    instructions = [row["instruction"] for row in json.loads(outputs[names[0]].read_text())]
    assert len(set(instructions)) == 805
    with recorded(tmp_path, outputs) as served, served.visitor() as ada:
        refused = ada.post("/api/v1/battles", json={"prompt": "Something else"})
        assert (refused.status_code, "recorded prompts" in refused.text) == (422, True)
        for n, instruction in enumerate(instructions[:30]):
            battle_id = ada.play(instruction)
            shown = ada.look(battle_id)["turns"][0]
            longer = len(shown["a"]["text"]) > len(shown["b"]["text"])
            choice = "tie" if n % 3 == 0 else "model_a" if longer else "model_b"
            receipt = ada.vote(battle_id, choice).json()
            for side in ("a", "b"):
                text = recorded_answer(outputs, receipt["models"][side]["name"], instruction)
                assert shown[side]["text"] == text
        board = ada.board(votes=30)
        page = ada.get("/leaderboard").text
    assert board["votes"] == 30
    assert {row["model"] for row in board["ratings"]} == set(names), board["warnings"]
    assert "30 votes" in page


@pytest.mark.slow
def test_three_hundred_battles_rank_six_recorded_models_as_planted(
    published_data: Path, tmp_path: Path
) -> None:
    def upset(vote: int, gap: int) -> bool:
        return vote % (4 + 3 * gap) == 0  # now and then, and more so for a close pair

    assert board_of(published_data, tmp_path, voters=30, upset=upset) == list(PLANTED)


def board_of(published_data: Path, tmp_path: Path, *, voters: int, upset: Upset) -> list[str]:
    """Let people vote ten times each; check the board against that of the export."""
    outputs = write_recordings(published_data / "votes" / "llmfao", tmp_path)
    prompts = [row["prompt"] for row in rows(outputs[PLANTED[0]])]
    with recorded(tmp_path, outputs) as served:
        with ThreadPoolExecutor(10) as pool:
            list(pool.map(lambda n: vote_ten_times(served, prompts, n, upset), range(voters)))
        with served.visitor() as ada:
            board = ada.board(votes=10 * voters)
        votes = export(served, tmp_path / "votes.parquet")
    assert board["votes"] == len(votes["winner"]) == 10 * voters
    columns = (votes["model_a"], votes["model_b"], votes["winner"])
    by = {"voter": votes["voter"], "prompt": votes["prompt_id"]}
    direct = rate(Comparisons.from_arrays(*columns, **by))
    rated = rate_source(str(tmp_path / "votes.parquet"), RateOptions())
    assert isinstance(rated, Report)
    assert board["data_hash"] == rated.provenance.data_hash
    for report in (direct, rated):
        for shown, row in zip(board["ratings"], report.ratings, strict=True):
            assert {name: shown[name] for name in NAMES} == {n: getattr(row, n) for n in NAMES}
    return [row["model"] for row in board["ratings"]]


def vote_ten_times(served: Served, prompts: Sequence[str], voter: int, upset: Upset) -> None:
    """Vote for the planted better model, and the other way where there is an upset."""
    with served.visitor() as visitor:
        for n in range(10):
            battle_id = visitor.play(prompts[(voter + n) % len(prompts)])
            a, b = (answering(served, battle_id, side) for side in ("a", "b"))
            better = "model_a" if PLANTED.index(a) < PLANTED.index(b) else "model_b"
            worse = "model_b" if better == "model_a" else "model_a"
            gap = abs(PLANTED.index(a) - PLANTED.index(b))
            choice = worse if upset(voter * 10 + n, gap) else better
            assert visitor.vote(battle_id, choice).status_code == 200


def answering(served: Served, battle_id: str, side: str) -> str:
    """Look into the log, as no visitor can, for who answers."""
    query = f"SELECT model_{side} FROM battle WHERE public_id = ?"
    with closing(sqlite3.connect(served.database.removeprefix("sqlite:///"))) as connection:
        return str(connection.execute(query, (battle_id,)).fetchone()[0])


@contextmanager
def recorded(folder: Path, outputs: Mapping[str, Path]) -> Iterator[Served]:
    """Serve an arena of recordings."""
    tables = [
        f"[[models]]\nid = {json.dumps(name)}\nname = {json.dumps(name)}\n"
        f"endpoint = 'recorded://files'\nrecording = {json.dumps(str(path))}\n"
        "characters_per_s = 1e6"
        for name, path in outputs.items()
    ]
    roster = folder / "roster.toml"
    roster.write_text("\n".join(tables), encoding="utf-8")
    with serve(database=new_sqlite(folder), roster=roster, characters_per_s=1e6) as served:
        yield served


def rows(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def recorded_answer(outputs: Mapping[str, Path], name: str, instruction: str) -> str:
    """The first answer that a file of outputs holds to an instruction."""
    entries = json.loads(outputs[name].read_text(encoding="utf-8"))
    return next(str(row["output"]) for row in entries if row["instruction"] == instruction)


def write_recordings(source: Path, folder: Path) -> dict[str, Path]:
    """Write the six planted models' answers as recordings of prompt and response."""
    prompts = {row["id"]: row["text"] for row in rows(source / "prompts.jsonl")}
    answers: dict[str, list[str]] = {name: [] for name in PLANTED}
    for row in rows(source / "outputs.jsonl"):
        if row["name"] in answers and row["result"].strip():
            pair = {"prompt": prompts[row["prompt"]], "response": row["result"]}
            answers[row["name"]].append(json.dumps(pair))
    paths = {name: folder / f"model-{n}.jsonl" for n, name in enumerate(PLANTED)}
    for name, path in paths.items():
        path.write_text("\n".join(answers[name]), encoding="utf-8")
    return paths


def export(served: Served, path: Path) -> dict[str, np.ndarray[tuple[int], np.dtype[np.object_]]]:
    """Export the votes with the command, and read the file back."""
    result = invoke(["export", "votes", "--to", str(path), "--database", served.database])
    assert result.returncode == 0, result.stderr
    return duckdb.read_parquet(str(path)).fetchnumpy()
