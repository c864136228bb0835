"""LMArena's release of 140,000 votes as cases: nested content, several turns and images."""

import json
from collections import Counter
from pathlib import Path

import pytest

from judge.tables import annotations
from judge.tables.cases import each_pair, read_cases, read_labels, read_responses
from judge.tables.items import read_rating_items
from rating.outcome import Outcome
from tests.command import Command
from tests.judge.tables.lmarena import KINDS, PIXEL, lmarena_rows
from tests.rating.tables.peer_rows import written
from tests.rating.tables.sources import messages_of
from tests.sqlite import new_sqlite

ROWS = lmarena_rows(300)
EACH = len(ROWS) // len(KINDS)
"""Rows of each kind."""


@pytest.fixture
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    ending = getattr(request, "param", "parquet")
    return written(tmp_path, f"lmarena.{ending}", ROWS)


@pytest.mark.parametrize("path", ["parquet", "json", "jsonl"], indirect=True)
def test_conversations_are_read_as_they_are(path: Path) -> None:
    cases, words = messages_of(read_cases, [path])
    reasons = (
        f"{EACH} in which the user's turns differ between the sides, "
        f"{EACH} with an image that is neither a data: URL nor an address by https, "
        f"{EACH} without an answer"
    )
    assert words[0].split("; ")[1] == f"rows excluded: {reasons}"
    by_id = {named.battle_id: named for named in cases}
    assert len(by_id) == len(cases) == 3 * EACH
    assert all(named.prompt_id == named.battle_id for named in cases)
    one, several, image = (by_id[f"battle-{n}"].case for n in range(3))
    assert [turn.content for turn in one.prompt] == ["Question 0.0?"]
    assert one.response_b == "Answer 0.0b,\n\nin two parts."
    assert [turn.content for turn in several.prompt] == [f"Question 1.{n}?" for n in range(3)]
    assert [text[:12] for text in several.earlier_a] == ["Answer 1.0a,", "Answer 1.1a,"]
    assert several.response_a.startswith("Answer 1.2a,")
    assert image.images == (PIXEL,)
    assert by_id["battle-0"].models == (ROWS[0]["model_a"], ROWS[0]["model_b"])


def test_labels_are_those_of_the_rows_that_are_read(path: Path) -> None:
    labels = read_labels(path)
    assert labels is not None
    winners = {row["id"]: Outcome(row["winner"]).score_a for row in ROWS}
    for named, label in zip(read_cases([path]), labels, strict=True):
        assert (label + 1) / 2 == winners[named.battle_id]


def test_a_method_of_one_turn_leaves_conversations_out_and_counts_them(path: Path) -> None:
    cases, words = messages_of(lambda: [*each_pair([path], turns=False)])
    assert len(cases) == 2 * EACH
    assert f"{EACH} of several turns" in words[0]


def test_single_answers_of_both_sides_are_read(path: Path) -> None:
    cases = read_responses([path])
    assert len(cases) == 7 * EACH  # three kinds of row with two answers, and one with one
    assert Counter(len(named.case.prompt) for named in cases) == {1: 5 * EACH, 3: 2 * EACH}


def test_a_judge_is_run_on_the_file_and_its_prompts_are_labelled(
    path: Path, command: Command
) -> None:
    new_sqlite(command.folder)
    run = ("judge", "run", "--method", "pairwise", "--judge", "pocket-judge", "--cases")
    without_images = ("--where", "evaluation_order <> 3")
    done = command(*run, path.name, *without_images, "--out", "v.jsonl", "--format", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["by_status"] == {"read": 2 * 2 * EACH}  # of two kinds, each in both orders
    assert f"no answer on a side (null or blank) in {EACH} of" in report["warnings"][0]
    study = command("study", "judge", path.name, "v.jsonl", "--format", "json", "--rounds", "100")
    figures = json.loads(study.stdout)
    assert (study.stderr.count("rows excluded: none"), study.returncode) == (1, 0)
    assert figures["agreement"]["with_ties"]["n"] == 2 * EACH
    assert not [note for note in figures["warnings"] if "matched by" in note]
    labelled = command("label", path.name, "--format", "json")
    assert (labelled.returncode, labelled.stderr) == (0, "")
    assert json.loads(labelled.stdout)["prompts"] == len(ROWS)


def test_a_file_in_pieces_gives_the_same_cases_and_is_announced_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, words = messages_of(read_cases, [path])
    monkeypatch.setattr(annotations, "PIECE", 7)
    assert messages_of(read_cases, [path]) == (whole, words)
    assert len(words) == 2


def test_conversations_are_rated_by_people_under_the_ids_of_a_judge_s_run(
    path: Path, command: Command
) -> None:
    items, words = messages_of(read_rating_items, path)
    assert words[1].endswith(f"{EACH} with an image, and raters are shown text alone")
    ids = [(x.battle_id, x.prompt_id) for x in read_cases([path]) if not x.case.images]
    assert [(item.item, item.prompt_id) for item in items] == ids
    shown = [turn.content for turn in items[1].responses[0].turns]
    assert shown[:2] == ["Answer 1.0a,\n\nin two parts.", "Question 1.1?"]
    new_sqlite(command.folder)
    done = command("study", "create", "s", "--items", path.name, "--raters-per-item", "1")
    assert done.returncode == 0, done.stderr
    assert f"{EACH} without an answer" in done.stderr
    status = json.loads(command("study", "status", "s", "--format", "json").stdout)
    assert status["items"] == 2 * EACH
