"""Images in cases, as they are typed: what reaches the endpoint, and what is stored."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlmodel import select

from arena.store.store import Store
from arena.store.tables import JudgementRow
from tests.command import Command, endpoint_roster, refused
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.judge.tables.test_cells import png, url
from tests.sqlite import new_sqlite

RUN = ("judge", "run", "--method", "pairwise", "--cases", "pairs.jsonl", "--roster", "roster.toml")
SEES = (*RUN, "--judge", "sees")


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    answer = Behaviour(text="Alike. [[C]]")
    with faulty_server({"sees": answer, "blind": answer}) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: FaultyServer) -> Path:
    new_sqlite(tmp_path)
    endpoint_roster(tmp_path, server.url, "blind", "sees")
    with (tmp_path / "roster.toml").open("a", encoding="utf-8") as roster:
        roster.write("judging = { images = true }\n")  # of the last model
    row = {"prompt": "What is it?", "response_a": "A dot.", "response_b": "Grey."}
    rows = [row | {"image": "a.png"}, row | {"prompt": "And without?"}]
    lines = "".join(json.dumps(one) + "\n" for one in rows)
    (tmp_path / "pairs.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "a.png").write_bytes(png())
    return tmp_path


def test_an_image_is_sent_beside_the_words_and_its_hash_alone_is_stored(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    assert "2 calls" not in command(*SEES, "--dry-run").stdout
    result = command(*SEES, "--out", "found.csv")
    assert (result.returncode, result.stderr) == (0, "")
    contents = [one.body["messages"][-1]["content"] for one in server.requests]
    with_image = [one for one in contents if not isinstance(one, str)]
    assert (len(contents), len(with_image)) == (4, 2)
    for text, image in with_image:
        assert text["type"] == "text"
        assert "What is it?" in text["text"]
        assert image == {"type": "image_url", "image_url": {"url": url(png())}}
    with closing(Store(f"sqlite:///{folder}/arena.db")) as store, store.reading() as session:
        stored = json.dumps([*session.exec(select(JudgementRow.request))])
    assert "base64" not in stored
    assert "base64" not in (folder / "found.csv").read_text(encoding="utf-8")

    assert command(*SEES, "--out", "found.csv").returncode == 0
    assert len(server.requests) == 4
    (folder / "a.png").write_bytes(png(9))
    assert command(*SEES, "--out", "found.csv").returncode == 0
    assert len(server.requests) == 6, "another image is another question"


def test_a_judge_that_takes_no_images_says_so_before_anything_is_asked(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    refused(command(*RUN, "--judge", "blind", "--out", "found.csv"), "judging = { images = true }")
    refused(command(*RUN, "--judge", "blind", "--dry-run"), "has an image")
    both = (*SEES, "--fallback-judge", "blind", "--out", "found.csv")
    refused(command(*both), "--fallback-judge 'blind': some cases have images")
    assert server.requests == []


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_batches_have_images_in_their_own_format(
    command: Command, folder: Path, server: FaultyServer, kind: str
) -> None:
    roster = (folder / "roster.toml").read_text(encoding="utf-8")
    more = f'images = true, batch = "{kind}"'
    (folder / "roster.toml").write_text(roster.replace("images = true", more), encoding="utf-8")
    assert command(*SEES, "--batch", "write", "batch").returncode == 0
    (file,) = (folder / "batch").glob("*.json*")
    text = file.read_text(encoding="utf-8")
    assert text.count(url(png()).partition(",")[2]) == 2
    own = '"media_type": "image/png"' if kind == "anthropic" else '"type": "image_url"'
    assert text.count(own) == 2
    assert server.requests == []
