"""Files that are broken, lie or are none: every command that reads one says so in a sentence."""

import gzip
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pytest

from tests.command import Command, refused
from tests.file_bombs import HEADER as HEAD
from tests.file_bombs import Make, raw

ROWS = (
    "x,y,model_a,ada,p1,Hello?,Yes.,No.,opal,ab",
    "y,x,model_b,bob,p2,Why?,So.,Ask.,opal,ab",
    "x,y,tie,ada,p3,How?,So.,Thus.,opal,ab",
)
GOOD = "\n".join((HEAD, *ROWS)) + "\n"
NAMES = HEAD.split(",")
RECORDS: list[dict[str, object]] = [dict(zip(NAMES, row.split(","), strict=True)) for row in ROWS]


def csv_with(*rows: str, head: str = HEAD) -> Make:
    return raw(("\n".join((head, *rows)) + "\n").encode())


def json_with(**cells: object) -> Make:
    lines = [json.dumps(RECORDS[0] | cells), *map(json.dumps, RECORDS[1:])]
    return raw(("\n".join(lines) + "\n").encode())


def parquet(change: Callable[[bytes], bytes]) -> Make:
    def make(path: Path) -> None:
        source = path.with_name("source-of-parquet.csv")
        source.write_text(GOOD, encoding="utf-8")
        duckdb.read_csv(str(source)).write_parquet(str(path))
        path.write_bytes(change(path.read_bytes()))

    return make


def with_end(whole: bytes) -> bytes:
    return whole[:-8] + b"\xff\xff\xff\x7f" + whole[-4:]


def with_middle(whole: bytes) -> bytes:
    return whole[:4] + b"\xff" * (len(whole) // 2) + whole[4 + len(whole) // 2 :]


def loop(path: Path) -> None:
    path.symlink_to(path.name)


BROKEN: dict[str, tuple[str, Make]] = {
    "a row with more cells": ("f.csv", csv_with(ROWS[0], ROWS[1] + ",more", ROWS[2])),
    "a row with fewer cells": ("f.csv", csv_with(ROWS[0], "x,y", ROWS[2])),
    "a first row with fewer cells": ("f.csv", csv_with("x,y", *ROWS)),
    "a quote without end": ("f.csv", csv_with(ROWS[0], '"' + ROWS[1], ROWS[2])),
    "a doubled name": ("f.csv", csv_with(ROWS[0] + ",tie", head=HEAD + ",winner")),
    "a NUL byte": ("f.csv", raw(GOOD.replace("bob", "b\0b").encode())),
    "Latin-1": ("f.csv", raw(GOOD.replace("bob", "b\xf6b").encode("latin-1"))),
    "UTF-16": ("f.csv", raw(GOOD.encode("utf-16"))),
    "a huge field": ("f.csv", raw(GOOD.replace("bob", "b" * 3_000_000).encode())),
    "nothing": ("f.csv", raw(b"")),
    "noise": ("f.csv", raw(bytes(range(256)) * 40)),
    "no gzip": ("f.csv.gz", raw(GOOD.encode())),
    "half of a gzip": ("f.csv.gz", raw(gzip.compress(GOOD.encode())[:60])),
    "deep JSON": ("f.json", raw(b'[{"prompt":' + b"[" * 100_000 + b"]" * 100_000 + b"}]")),
    "deep JSON lines": ("f.jsonl", raw(b"[" * 100_000 + b"]" * 100_000)),
    "JSON cut off": ("f.json", raw(json.dumps(RECORDS).encode()[:-20])),
    "JSON of no object": ("f.json", raw(b'[1, "two", null]')),
    "JSON that is a number": ("f.json", raw(b"1")),
    "JSON of nothing": ("f.json", raw(b"")),
    "JSON of no row": ("f.json", raw(b"[]")),
    "JSON in Latin-1": ("f.jsonl", raw('{"prompt": "ö"}'.encode("latin-1"))),
    "half of a Parquet file": ("f.parquet", parquet(lambda whole: whole[: len(whole) // 2])),
    "Parquet that lies on its end": ("f.parquet", parquet(with_end)),
    "Parquet with other bytes inside": ("f.parquet", parquet(with_middle)),
    "text named Parquet": ("f.parquet", raw(GOOD.encode())),
    "a folder": ("f.csv", Path.mkdir),
    "a pipe": ("f.csv", os.mkfifo),
    "a device": ("f.csv", lambda path: path.symlink_to("/dev/zero")),
    "a loop of links": ("f.json", loop),
    "no file": ("f.csv", lambda path: None),
    "a name too long": ("f" * 300 + ".csv", lambda path: None),
}

ODD: dict[str, tuple[str, Make]] = {
    "names alone": ("f.csv", raw(HEAD.encode() + b"\n")),
    "a number too long": ("f.json", raw(b'[{"winner": ' + b"9" * 5_000 + b"}]")),
    "NaN": ("f.json", raw(json.dumps([RECORDS[0] | {"preference": float("nan")}]).encode())),
    "half a surrogate pair": ("f.jsonl", json_with(model_a="\ud800", prompt="\udfff")),
    "an escape": ("f.jsonl", json_with(model_a="\x1b[31mred\x07", judge="\x9b31m\u202e")),
    "a NUL in JSON": ("f.jsonl", json_with(model_a="x\0", voter="\0")),
    "lists for names": ("f.jsonl", json_with(model_a=["x"], winner={"a": 1}, judge=[1])),
    "numbers for names": ("f.jsonl", json_with(model_a=10**30, judge=1e308, prompt_id=-1)),
    "truth values for names": ("f.jsonl", json_with(model_a=True, judge=False, voter=None)),
    "lists for texts": ("f.jsonl", json_with(prompt=[], response_a=[1], response_b={})),
    "labels of no outcome": ("f.csv", csv_with("x,y,=1+1,ada,p1,Hello?,Yes.,No.,opal,ab")),
}

ASK = ("--judge", "pocket-judge", "--dry-run", "--cases")
STUDY = ("--rounds", "100")
READERS: list[tuple[str, ...]] = [
    ("rate", "{}"),
    ("rate", "{}", "--by", "judge"),
    ("rate", "{}", "--by", "judge", "--pool"),
    ("mix", "{}", "--by", "judge", "--mix", "opal=1"),
    ("mix", "{}", "good.csv", "--by", "judge"),
    ("value", "{}"),
    ("plan", "{}"),
    ("voters", "{}"),
    ("voters", "{}", "--weighted", "weighted.csv"),
    ("judge", "score", "{}", "--method", "pairwise"),
    ("judge", "score", "{}", "--method", "alpaca_eval"),
    ("judge", "score", "{}", "--method", "wildbench"),
    ("judge", "score", "good.csv", "--method", "alpaca_eval", "--items", "{}"),
    ("judge", "score", "good.csv", "--method", "alpaca_eval", "--regularisation", "{}"),
    ("judge", "run", "--method", "pairwise", *ASK, "{}"),
    ("judge", "run", "--method", "wildbench_score", *ASK, "{}"),
    ("judge", "run", "--method", "ifeval", "--out", "out.csv", "--cases", "{}"),
    ("judge", "probe", *ASK, "{}"),
    ("study", "judge", "{}", "good.csv", *STUDY),
    ("study", "judge", "good.csv", "{}", *STUDY),
    ("study", "judge", "good.csv", "good.csv", *STUDY, "--outputs", "{}"),
    ("study", "judge", "good.csv", "good.csv", *STUDY, "--prompts", "{}"),
    ("study", "scores", "{}", "good.csv"),
    ("study", "scores", "scores.csv", "{}"),
    ("probe", "similarity", "{}"),
    ("probe", "judge", "{}", "good.csv"),
    ("probe", "board", "{}", "--arenas", "2"),
    ("judge", "probe", "--intervention", "people", *ASK, "good.csv", "--votes", "{}"),
]
"""Every command that reads tables, and every option that names one."""
SHARES = 4

OTHERS: list[tuple[str, ...]] = [
    ("models", "--roster", "{}"),
    ("models", "check", "--roster", "{}"),
    ("serve", "--port", "0", "--roster", "{}"),
    ("serve", "--port", "0", "--roster", "recorded.toml"),
    ("judge", "run", "--method", "pairwise", *ASK, "good.csv", "--roster", "{}"),
    ("rate", "good.csv", "--compare", "{}"),
    ("restore", "{}", "--database", "sqlite:///new.db"),
    ("backup", "--to", "copy.db", "--database", "sqlite:///{}"),
]
"""Commands that read something else: a roster, recordings, a board, a database."""

RECORDED = "\n".join(
    f'[[models]]\nid = "{id}"\nname = "{id}"\nendpoint = "recorded://{id}"\nrecording = "{{0}}"\n'
    for id in "xy"
)

COMMANDS = "\x1b\x07\x9b\u202e\0"


def given(folder: Path, name: str, make: Make) -> str:
    (folder / "good.csv").write_text(GOOD, encoding="utf-8")
    (folder / "scores.csv").write_text("model,mmlu\nx,1\ny,2\n", encoding="utf-8")
    (folder / "recorded.toml").write_text(RECORDED.format(name), encoding="utf-8")
    make(folder / name)
    return name


def typed(words: tuple[str, ...], name: str) -> list[str]:
    return [word.format(name) for word in words]


def all_refuse(
    command: Command, folder: Path, what: str, readers: Sequence[tuple[str, ...]]
) -> None:
    name = given(folder, *BROKEN[what])
    for words in readers:
        done = command(*typed(words, name))
        refused(done, name[:60])
        assert len(done.stderr) < 600, done.stderr
        assert done.stdout == "", words


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", BROKEN)
def test_a_command_refuses_a_broken_table_in_a_sentence_that_names_it(
    command: Command, tmp_path: Path, what: str
) -> None:
    """Each kind meets a share of the commands in turn, and each command a share of the kinds."""
    all_refuse(command, tmp_path, what, READERS[list(BROKEN).index(what) % SHARES :: SHARES])


@pytest.mark.slow
@pytest.mark.parametrize("what", BROKEN)
def test_every_command_refuses_every_broken_table(
    command: Command, tmp_path: Path, what: str
) -> None:
    all_refuse(command, tmp_path, what, READERS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", BROKEN)
def test_a_command_refuses_what_is_no_roster_recording_board_or_backup(
    command: Command, tmp_path: Path, what: str
) -> None:
    name = given(tmp_path, *BROKEN[what])
    for words in OTHERS:
        done = command(*typed(words, name))
        assert done.returncode != 0, (words, done.stdout)
        assert [line[:7] for line in done.stderr.splitlines()] == ["arena: "], done.stderr


@pytest.mark.sampled(6)
@pytest.mark.parametrize("what", ODD)
def test_no_value_breaks_a_command_or_is_one_to_the_terminal(
    command: Command, tmp_path: Path, what: str
) -> None:
    name = given(tmp_path, *ODD[what])
    for words in READERS:
        done = command(*typed(words, name))
        assert done.returncode in (0, 2, 3), (words, done.stderr)
        assert "Traceback" not in done.stderr, words
        shown = done.stdout + done.stderr
        assert [sign for sign in COMMANDS if sign in shown] == [], (words, shown)
