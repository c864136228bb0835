"""`arena publish` and `arena verify FOLDER`, as people type them, and the page `/evaluation`."""

import json
import random
import re
import signal
import time
from pathlib import Path

import httpx2
import pytest

from arena.domain.study import Purpose, Statements
from arena.errors import SettingsError
from arena.settings import LONGEST_STATEMENT, read_statements
from tests.arena.boards.published import fill, nudge, problems, seal
from tests.command import Command, refused
from tests.process import Process, until
from tests.serving import quick_arena
from tests.sqlite import new_sqlite

CARD = """
purpose = "risk"
purpose_sentence = "What could go <wrong>?"
not_claimed = "That it is right."
who_voted = "Four of us."
weaknesses = "Few votes."
"""


@pytest.fixture
def card(tmp_path: Path) -> str:
    (tmp_path / "card.toml").write_text(CARD)
    return "card.toml"


def test_a_board_is_published_and_verifies(command: Command, tmp_path: Path, card: str) -> None:
    url = new_sqlite(tmp_path)
    fill(url)
    done = command("publish", "board", "--card", card, "--database", url)
    hashes = re.fullmatch(
        r"board: 2 models, 20 votes, policy default-v3\.\n"
        r"Hash of the folder: (\w{64})\nNewest link of the vote log: (\w{64})\n",
        done.stdout,
    )
    assert hashes, done
    whole, head = hashes.groups()
    assert command("verify", "board").stdout == (
        "board: vote log and board verified, 2 models rated again from 20 votes; hash "
        f"{whole}; 23 links, the newest with hash {head}.\n"
    )
    result = command("verify", "board", "--head", head[:8], "--format", "json")
    well = {"verified": True, "whole": True, "problems": [], "notes": []}
    counts = {"links": 23, "noted": 23, "models": 2, "votes": 20}
    assert json.loads(result.stdout) == well | counts | {"hash": whole, "head": head}
    refused(command("publish", "board", "--card", card, "--database", url), "it is not empty")
    words = ("publish", "all", "--policy", "default-v1", "--database", url)
    before = command(*words, ARENA_CARD=card, ARENA_LISTED_AFTER="7")
    assert before.stdout.startswith("all: 2 models, 21 votes, policy default-v1.\n"), before
    assert json.loads((tmp_path / "all" / "manifest.json").read_text())["listed_after"] == 7
    nudge(tmp_path / "board")
    seal(tmp_path / "board")
    changed = command("verify", "board")
    assert changed.returncode == 3
    first, *named = changed.stdout.splitlines()
    assert first == f"board: {len(named)} problems."
    assert all(line.startswith("- ") for line in named)
    result = command("verify", "board", "--format", "json")
    assert (result.returncode, json.loads(result.stdout)["whole"]) == (3, False)
    refused(command("verify", str(tmp_path)), "it has no manifest.json")


def test_votes_may_stay_out_of_the_folder(command: Command, tmp_path: Path, card: str) -> None:
    url = new_sqlite(tmp_path)
    fill(url)
    words = ("publish", "board", "--card", card, "--database", url, "--votes-to")
    refused(command(*words, "votes.csv"), "'votes.csv'", "ends in .parquet")
    assert "v.parquet: the votes." in command(*words, "v.parquet").stdout
    lines = command("verify", "board").stdout.splitlines()
    assert re.fullmatch(
        r"board: files verified, hash \w{64}; the votes are not in the folder\.", lines[0]
    )
    assert lines[1].startswith("- votes.parquet is not there")
    assert not (tmp_path / "board" / "votes.parquet").exists()


def test_what_is_wrong_is_one_clear_line(command: Command, tmp_path: Path, card: str) -> None:
    gone = "sqlite:///gone.db"
    refused(command("publish", "board", "--card", card, "--database", gone), "No database")
    url = new_sqlite(tmp_path)
    refused(
        command("publish", "board", "--database", url),
        "the card lacks inputs, calls, outputs, interpretation, purpose, purpose_sentence",
        "There are no votes yet",
    )
    refused(command("publish", "board", "--card", "no.toml", "--database", url), "'no.toml'")
    refused(command("publish", "no/board", "--database", url), "its folder does not exist")
    refused(command("publish", "board", "--policy", "mine", "--database", url), "'mine'")
    assert not (tmp_path / "board").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("purpose = ", "not TOML"),
        ('aim = "x"', "unknown key 'aim': a card has purpose, purpose_sentence"),
        ('purpose = "fun"', "must be one of purchase, capability, risk, development, got 'fun'"),
        ("weaknesses = 3", "key 'weaknesses' must be a text"),
        (f'weaknesses = "{"x" * (LONGEST_STATEMENT + 1)}"', "at most 5,000 characters"),
    ],
)
def test_a_card_that_cannot_be_read_is_refused_by_key(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "card.toml").write_text(text)
    with pytest.raises(SettingsError, match=re.escape(words)):
        read_statements(tmp_path / "card.toml")


def test_the_longest_statement_of_a_card_is_read(tmp_path: Path) -> None:
    (tmp_path / "card.toml").write_text(f'weaknesses = "{"x" * LONGEST_STATEMENT}"')
    assert read_statements(tmp_path / "card.toml").weaknesses == "x" * 5_000


def test_a_card_may_be_begun(tmp_path: Path) -> None:
    (tmp_path / "card.toml").write_text('purpose = "development"\nwho_voted = "  "\n')
    begun = read_statements(tmp_path / "card.toml")
    assert begun == Statements(purpose=Purpose.DEVELOPMENT)
    assert begun.missing == ("purpose_sentence", "not_claimed", "who_voted", "weaknesses")
    assert read_statements(None) == Statements()


def test_the_page_shows_what_is_there_and_what_is_missing(
    tmp_path: Path, card: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.boards.evaluation.REST_S", 0.0)
    text = CARD.replace("weaknesses", "# weaknesses")
    (tmp_path / card).write_text(text)
    with quick_arena(tmp_path, card=tmp_path / card) as served, served.visitor() as ada:
        battle = ada.play()
        page = ada.get("/evaluation").text
        assert "What could go &lt;wrong&gt;?" in page
        assert page.count("Not provided") == 1
        assert '<dt>Not provided</dt><dd><span class="n">Known weaknesses</span></dd>' in page
        assert "No model is rated yet." in page
        assert "Name x" not in page + ada.get("/api/v1/evaluation").text
        ada.vote(battle, "tie")
        until(lambda: ada.get("/api/v1/evaluation").json()["outputs"]["votes"])
        german = ada.get("/evaluation", headers={"Accept-Language": "de"})
        assert "<dt>Nicht angegeben</dt>" in german.text
        card_of = ada.get("/api/v1/evaluation").json()
        assert card_of["statements"]["purpose"] == "risk"
        assert card_of["missing"][-1] == "weaknesses"
        assert 'href="/evaluation"' in ada.get("/method").text
        there = httpx2.get(f"{served.url}/evaluation/", follow_redirects=True)
        assert there.status_code == 200
        assert "http://127.0.0.1" not in json.dumps(card_of)


@pytest.mark.slow
def test_a_kill_leaves_a_whole_bundle_or_none(tmp_path: Path, card: str) -> None:
    url, rng = new_sqlite(tmp_path), random.Random(0)
    fill(url)
    whole, took = 0, 0.0
    for name in ("first", "second"):  # what processes are forked from begins with the first
        began = time.monotonic()
        with Process(("publish", name, "--card", card, "--database", url), tmp_path) as process:
            process.wait()
        took = time.monotonic() - began
    for i in range(12):
        words = ("publish", f"board{i}", "--card", card, "--database", url)
        with Process(words, tmp_path) as process:
            time.sleep(rng.uniform(0.0, took))
            process.send(signal.SIGKILL)
            process.wait()
        folder = tmp_path / f"board{i}"
        if folder.exists():
            whole += 1
            assert problems(folder) == []
        for half in tmp_path.glob(f".board{i}-*"):
            assert not (half / "manifest.json").exists() or problems(half) == []
    assert whole < 12
