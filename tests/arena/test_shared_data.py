"""What `arena export` and `arena rate` write for other tools, read back by these and by us."""

import base64
import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import duckdb
import pytest

from arena.domain.battle import BattleState
from arena.domain.vote import DEFAULT, Choice, Voter
from arena.store.store import Store
from rating.tables import duckdb_engine
from rating.tables.files import expanded
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, exclude, new_battle
from tests.arena.test_export_command import front_matter
from tests.command import Command, captured, refused
from tests.sqlite import new_sqlite

LICENCE = ("--hugging-face", "--licence", "cc-by-4.0")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A dozen counted votes of four people, four of them ties, and an excluded one."""
    made = new_sqlite(tmp_path)
    store = Store(made)
    store.hold_lease()
    store.register(MODELS, NOW)
    for n in range(13):
        store.open_battle(new_battle(f"b{n}", Voter(f"v{n % 4}")))
        words = {A1: complete(f'No {n}: "sky",\n- ada@example.com'), B1: complete("=1+1 \u202e")}
        store.close_answers(f"b{n}", BattleState.READY, words, message=None, now=NOW)
        choice = (Choice.A, Choice.B, Choice.TIE)[n % 3]
        store.cast(ballot(f"b{n}", choice, voter=f"v{n % 4}"))
    exclude(store, "b12", DEFAULT, "a ring")
    store.close()
    return made


def rows_of(where: str) -> list[tuple[Any, ...]]:
    """Read rows, except when a board was made."""
    return duckdb.execute(f"SELECT COLUMNS(lambda c: c <> 'updated') FROM '{where}'").fetchall()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", ["votes", "battles", "answers", "models", "ratings"])
def test_a_folder_holds_the_rows_of_the_file(
    command: Command, tmp_path: Path, url: str, what: str
) -> None:
    words = ("export", what, "--database", url)
    assert command(*words, "--to", f"{what}.parquet").returncode == 0
    done = command(*words, "--to", f"{what}.set", *LICENCE)
    assert (done.returncode, done.stderr) == (0, "")
    card = f"{what}.set/README.md"
    assert done.stdout.splitlines()[-1].startswith(f"{card}: the content of the export")
    shard = tmp_path / f"{what}.set" / "data" / "train-00000-of-00001.parquet"
    inside = sorted((tmp_path / f"{what}.set").rglob("*"))
    assert inside == [tmp_path / card, shard.parent, shard]
    assert rows_of(str(shard)) == rows_of(f"{tmp_path}/{what}.parquet")


def test_a_card_tells_hugging_face_what_the_shards_hold(
    command: Command, tmp_path: Path, url: str
) -> None:
    done = command("export", "battles", "--to", "ours", *LICENCE, "--database", url)
    assert done.returncode == 0
    card = (tmp_path / "ours" / "README.md").read_text(encoding="utf-8")
    values = front_matter(card)
    assert values["license"] == "cc-by-4.0"
    data = [{"split": "train", "path": "data/train-*"}]
    assert values["configs"] == [{"config_name": "default", "data_files": data}]
    info = values["dataset_info"]
    (split,) = info["splits"]
    assert (split["name"], split["num_examples"]) == ("train", 12)
    assert split["num_bytes"] == info["dataset_size"] > 0
    (shard,) = (tmp_path / "ours" / "data").iterdir()
    assert info["download_size"] == shard.stat().st_size
    kinds = {one["name"]: one.get("dtype", one.get("list")) for one in info["features"]}
    assert (kinds["ts"], kinds["turns"], kinds["cost_a"]) == ("timestamp[us]", "int64", "float64")
    assert [part["name"] for part in kinds["conversation"]] == ["prompt", "a", "b"]
    assert "| File | data/, 1 shard, 12 rows |" in card


def test_hugging_face_s_own_library_reads_the_folder(
    command: Command,
    tmp_path: Path,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    exports = {"battles": [], "answers": [], "votes": ["--all"], "ratings": [], "trl": []}
    for name, more in exports.items():
        what, layout = ("battles", ["--layout", "trl"]) if name == "trl" else (name, more)
        words = ("export", what, "--to", name, *layout, *LICENCE, "--database", url)
        assert command(*words).returncode == 0
        cache = str(tmp_path / "cache")
        read = datasets.load_dataset(str(tmp_path / name), split="train", cache_dir=cache)
        assert (caplog.text, read.info.splits["train"].num_examples) == ("", len(read))
        (shard,) = (tmp_path / name / "data").iterdir()
        rows = duckdb.execute(f"SELECT * FROM '{shard}'")
        columns = [column[0] for column in rows.description or ()]
        values = [dict(zip(columns, row, strict=True)) for row in rows.fetchall()]
        assert read.to_list() == values


class Hub(BaseHTTPRequestHandler):
    """Takes an upload as Hugging Face does, and keeps the files of its commit in a folder."""

    folder: Path

    def do_GET(self) -> None:
        self.answer({"sha": "0" * 40, "id": "ada/votes"})

    def do_POST(self) -> None:
        size = self.headers["Content-Length"]
        body = self.rfile.read(int(size)) if size else b"".join(self.chunks())
        url = f"http://{self.headers['Host']}/datasets/ada/votes"
        made: dict[str, object] = {"url": url, "id": "ada/votes", "errors": [], "warnings": []}
        if "/preupload/" in self.path:
            files = [one["path"] for one in json.loads(body)["files"]]
            whole = {"uploadMode": "regular", "shouldIgnore": False}
            made = {"files": [{"path": name, **whole} for name in files]}
        elif "/commit/" in self.path:
            for part in map(json.loads, body.splitlines()):
                if part["key"] == "file":
                    file = self.folder / part["value"]["path"]
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(base64.b64decode(part["value"]["content"]))
            made = {"commitUrl": f"{url}/commit/0", "commitOid": "0" * 40, "success": True}
        self.answer(made)

    def chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def answer(self, made: dict[str, object]) -> None:
        body = json.dumps(made).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def hub(folder: Path) -> Iterator[str]:
    """Serve a `Hub`; gives its address."""
    Hub.folder = folder
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_hf_uploads_a_folder_as_it_is_and_what_arrives_is_rated_alike(
    command: Command, tmp_path: Path, url: str
) -> None:
    assert command("export", "votes", "--to", "ours", *LICENCE, "--database", url).returncode == 0
    hf = str(Path(sys.executable).with_name("hf"))
    with hub(tmp_path / "theirs") as address:
        env = {"HF_ENDPOINT": address, "HF_TOKEN": "hf_none", "HF_HOME": str(tmp_path / "home")}
        env |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "*"}
        upload = [hf, "upload", "ada/votes", "ours", "--repo-type", "dataset"]
        done = captured(upload, tmp_path, os.environ | env, 60)
    assert done.returncode == 0, done.stderr
    sent = [file.relative_to(tmp_path / "ours") for file in (tmp_path / "ours").rglob("*.*")]
    for name in sent:
        assert (tmp_path / "theirs" / name).read_bytes() == (tmp_path / "ours" / name).read_bytes()
    assert len(sent) == 2
    boards = [command("rate", source, "--format", "json").stdout for source in ("theirs", url)]
    assert json.loads(boards[0])["ratings"] == json.loads(boards[1])["ratings"]


def test_many_rows_are_parted_into_shards_in_their_order(tmp_path: Path) -> None:
    rows = [{"n": n, "text": f"{n} " * 50} for n in range(10_000)]
    (tmp_path / "data").mkdir()
    kinds = {"n": "BIGINT", "text": "VARCHAR"}
    duckdb_engine.write_rows(rows, kinds, tmp_path / "data", shard_bytes=1)
    names = [f"train-0000{n}-of-00003.parquet" for n in range(3)]
    assert [file.name for file in expanded([tmp_path])] == names
    read = [row[0] for name in names for row in rows_of(f"{tmp_path}/data/{name}")]
    assert read == [*range(10_000)]
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "data").mkdir()
    duckdb_engine.write_rows([], kinds, tmp_path / "data")
    assert rows_of(f"{tmp_path}/data/train-00000-of-00001.parquet") == []


def test_a_data_set_of_several_splits_is_refused_with_their_names(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "theirs" / "data").mkdir(parents=True)
    for split in ("test", "train"):
        file = tmp_path / "theirs" / "data" / f"{split}-00000-of-00001.parquet"
        duckdb.execute(f"COPY (SELECT 1 AS x) TO '{file}'")
    refused(command("rate", "theirs"), "the splits test, train", "theirs/data/test-*")


def test_a_folder_with_something_in_it_is_left_as_it_is(
    command: Command, tmp_path: Path, url: str
) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "mine.txt").write_text("mine")
    words = ("export", "votes", "--to", "ours", *LICENCE, "--database", url)
    refused(command(*words), "'ours'", "Name a new folder")
    assert [path.name for path in (tmp_path / "ours").iterdir()] == ["mine.txt"]


def test_an_export_that_fails_leaves_no_folder(command: Command, tmp_path: Path) -> None:
    empty = new_sqlite(tmp_path)
    done = command("export", "ratings", "--to", "ours", *LICENCE, "--database", empty)
    assert done.returncode == 3
    assert not (tmp_path / "ours").exists()


def test_preferences_are_written_with_what_is_not_in_them(
    command: Command, tmp_path: Path, url: str
) -> None:
    words = ("export", "battles", "--to", "p.jsonl", "--layout", "trl", "--database", url)
    assert command(*words).stdout.splitlines() == [
        "p.jsonl: 8 battles, policy default-v3. Personal data replaced: 8 mail.",
        "TRL has a prompt, a chosen and a rejected answer: no models, sides, voters, times, "
        "labels and remarks. Counted battles that are not in it: 4 (no answer is preferred).",
        "p.jsonl.card.md: the content of the export, exclusions and reasons.",
    ]
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [[*row] for row in rows] == [["prompt", "chosen", "rejected"]] * 8
    assert "ada@example.com" not in str(rows)
    card = (tmp_path / "p.jsonl.card.md").read_text()
    assert "12 of 13 count under the policy." in card
    assert "| counts, but no answer is preferred | 4 |" in card
    assert "TRL has a prompt, a chosen" in card


def test_a_judge_reads_preferences_as_pairs_with_the_truth(
    command: Command, tmp_path: Path, url: str
) -> None:
    words = ("export", "battles", "--to", "p", "--layout", "trl", *LICENCE, "--database", url)
    assert command(*words).returncode == 0
    judge = ("judge", "run", "--judge", "pocket-judge", "--method", "pairwise")
    done = command(*judge, "--cases", "p", "--out", "v.csv", "--database", "sqlite:///runs.db")
    assert done.returncode == 0, done.stderr
    assert "p is read as TRL preferences; rows excluded: none" in done.stderr
    truth = command("study", "truth", "v.csv", "--truth", "p", "--format", "json")
    assert truth.returncode == 0, truth.stderr
    refused(command("rate", "p"), "TRL preferences, no votes", "arena judge run")


def test_a_board_in_every_eval_ever_s_files_is_compared_with(
    command: Command, tmp_path: Path, url: str
) -> None:
    words = ("rate", url, "--format", "every-eval-ever", "--out", "logs")
    done = command(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "logs: 2 files as every_eval_ever 0.3.0 has them."
    assert len([*tmp_path.glob("logs/data/*/unknown/*/*.json")]) == 2
    moved = json.loads(command("rate", url, "--compare", "logs", "--format", "json").stdout)
    assert moved["same_votes"]
    assert {row["moved"] for row in moved["moved"]} == {0.0}
    refused(command(*words[:4]), "a folder with --out")
    refused(command(*words, "--compare", "logs"), "omit --by and --compare")


def test_scores_from_elsewhere_are_held_against_a_board_in_their_files(
    command: Command, tmp_path: Path
) -> None:
    assert command("rate", "samples", "--format", "json", "--out", "b.json").returncode == 0
    logs = ("rate", "samples", "--format", "every-eval-ever", "--out", "logs")
    assert command(*logs).returncode == 0
    rows = json.loads((tmp_path / "b.json").read_text())["ratings"]
    lines = [f"{row['model']},{place}" for place, row in enumerate(rows)]
    (tmp_path / "scores.csv").write_text("\n".join(["model,score", *lines]))
    results = [
        json.loads(command("study", "scores", "scores.csv", of, "--format", "json").stdout)
        for of in ("b.json", "logs")
    ]
    for result in results:
        result.pop("board", None)
    assert results[0]["columns"] == results[1]["columns"]


def test_the_record_is_followed_through_a_folder(
    command: Command, tmp_path: Path, url: str
) -> None:
    assert command("export", "votes", "--to", "v", *LICENCE, "--database", url).returncode == 0
    done = command("verify", "v/data/train-00000-of-00001.parquet")
    assert (done.returncode, done.stderr) == (0, "")
    assert "vote log verified" in done.stdout
