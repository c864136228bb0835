"""`arena topics` of a file and of a database, as they are and private."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from arena.play.topics import release_topics
from arena.store.store import Store
from tests.arena.play.test_topics import fill
from tests.arena.store.battles import MODELS, NOW
from tests.command import Command, refused
from tests.faulty_server import Behaviour, faulty_server
from tests.judge.labels.planted import planted
from tests.serving import write_roster
from tests.sqlite import new_sqlite


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    texts, _ = planted(600, np.random.default_rng(1))
    file = tmp_path / "prompts.csv"
    with file.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(("prompt", "who"))
        rows.writerows((text, f"user {i % 60}") for i, text in enumerate(texts))
    return file


def test_private_topics_of_a_file_need_its_voters(command: Command, prompts: Path) -> None:
    words = ("topics", str(prompts), "--private")
    refused(command(*words), "no column of voters")
    shown = command(*words, "--column", "voter=who", "--format", "json")
    body = json.loads(shown.stdout)
    assert body["private"]
    assert body["prompts"] % 5 == 0
    table = command(*words, "--column", "voter=who", COLUMNS="200").stdout
    one = "{mean:.2f} ({lowest:.2f} to {highest:.2f}).".format(**body["agreement"])
    assert table.startswith(f"About {body['prompts']} prompts. Topics from other random starts")
    assert table.splitlines()[0].endswith(f" agree with an adjusted Rand index of {one}")
    topic = body["topics"][0]
    share = f"{topic['prompts'] / body['prompts']:.1%}"
    cells = (", ".join(topic["words"]), f"{topic['prompts']}", share, f"{topic['stability']:.2f}")
    assert f"│ {' │ '.join(cells)} │" in " ".join(table.split())


def test_private_topics_of_a_database_are_those_of_its_page(
    command: Command, tmp_path: Path
) -> None:
    url = new_sqlite(tmp_path)
    store = Store(url)
    store.hold_lease()
    store.register(MODELS, NOW)
    refused(command("topics", url, "--private"), "has no release of private topics")
    fill(store, 560, 60)
    release_topics(store, NOW, private=True)
    fill(store, 300, 60, seed=3, start=1000)
    store.close()
    released = json.loads(command("topics", url, "--private", "--format", "json").stdout)
    assert released["prompts"] <= 560
    assert json.loads(command("topics", url, "--format", "json").stdout)["prompts"] == 860


def test_topics_go_by_the_embeddings_of_an_endpoint(
    command: Command, prompts: Path, tmp_path: Path
) -> None:
    few = tmp_path / "few.csv"
    few.write_text("".join(prompts.read_text().splitlines(keepends=True)[:65]))
    vectors = [{"index": i, "embedding": [float(i % 2), 1.0 - i % 2]} for i in range(64)]
    with faulty_server({"x": Behaviour(body={"data": vectors})}) as server:
        roster = write_roster(tmp_path / "roster.toml", server, "x", "y")
        words = ("topics", str(few), "--embeddings", "id-x", "--roster", str(roster))
        shown = command(*words, "--database", new_sqlite(tmp_path), "--format", "json")
    assert shown.returncode == 0, shown.stderr
    body = json.loads(shown.stdout)
    assert [one["prompts"] for one in body["topics"]] == [32, 32]
    assert body["agreement"]["lowest"] == 1.0


def test_what_cannot_be_done_is_refused_in_words(command: Command, tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("prompt\nBake bread\n")
    refused(command("topics", str(few)), "Topics need")
    both = ("--private", "--embeddings", "x")
    refused(command("topics", str(few), *both), "omit --embeddings or --private")
