"""What leaves comes in again: the same log, and the same ratings to the last digit."""

import csv
import json
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from arena.boards.dataset import COLUMNS, export_votes
from arena.boards.export_file import LATER
from arena.boards.importing import Exported, import_record
from arena.boards.record_file import verify_export
from arena.domain.battle import AnswerStatus, BattleState, Side
from arena.domain.remarks import Intent, Reason, Remarks
from arena.domain.vote import DEFAULT, SIMULATED, Choice, Policy, Voter, VoterKind
from arena.errors import UnknownBattleError
from arena.play.labels import label_votes
from arena.store import chain, erasing, exclusions, log, single_battles
from arena.store.records import AnswerKey
from arena.store.store import Store
from arena.store.verify import verify
from tests.arena.store.battles import (
    A1,
    B1,
    MODELS,
    NOW,
    ballot,
    complete,
    exclude,
    new_battle,
    ready,
)
from tests.arena.store.test_verify import golden
from tests.command import Command, examples, refused
from tests.postgresql import new_database
from tests.process import Process
from tests.sqlite import new_sqlite

MAIL = "# Sure\n\n**Write** to ada@example.com or bob@example.com.\n\n```\ncode\n```"
RETIRED = replace(MODELS[0], id="chalk", name="Chalk", organisation="Hill", licence="MIT")

REMARKS = {
    0: Remarks(reasons_a=(Reason.USEFUL, Reason.INCORRECT), comment="=ask ada@example.com"),
    1: Remarks(reasons_b=(Reason.CREATIVE,), confidence=2, comment='So, "it" is.\nYes.'),
    2: Remarks(intent=Intent.QUIZZING),
    3: Remarks(),
    6: Remarks(reasons_a=(Reason.SUPERFICIAL,), comment="Both say this.", confidence=3),
    7: Remarks(comment="x" * 1000),
}
"""Beside votes of which some are erased, some hidden, and one's names were withheld."""


def lived_in(url: str) -> Store:
    """Keep an arena in which most of what can happen has happened."""
    store = Store(url)
    store.hold_lease()
    store.register([*MODELS, RETIRED], NOW)
    for i in range(12):
        kind = VoterKind.SIMULATED if i % 4 == 3 else VoterKind.ANONYMOUS
        voter = Voter(f"v{i % 4}" * 8, kind)
        store.open_battle(
            replace(new_battle(f"b{i}", voter), prompt=f"Write to me{i}@x.org: who am I?")
        )
        words = {A1: complete(MAIL), B1: complete("" if i == 5 else "=1+1, the sea.")}
        store.close_answers(f"b{i}", BattleState.READY, words, message=None, now=NOW)
        choice = (Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD, Choice.SKIP)[i % 5]
        store.cast(replace(ballot(f"b{i}", choice, voter=voter.id), withhold=i == 1))
        if i in REMARKS:
            store.remark(f"b{i}", voter.id, REMARKS[i], NOW, asked=True)
    exclude(store, "b2", DEFAULT, "a known bot")
    exclude(store, "b6", SIMULATED, "out of another board")
    exclude(store, "b1", DEFAULT, "a mistake")
    ready(store, "two turns", Voter("bob"))
    store.add_turn("two turns", "bob", "And at night?", NOW)
    second = {AnswerKey(2, side, 1): complete(f"{side} is dark.") for side in Side}
    store.close_answers("two turns", BattleState.READY, second, message=None, now=NOW)
    store.add_attempts("two turns", "bob", NOW, only_incomplete=False)
    again = {AnswerKey(2, side, 2): complete(f"{side}: no sun.") for side in Side}
    store.close_answers("two turns", BattleState.READY, again, message=None, now=NOW)
    store.cast(ballot("two turns", Choice.TIE, voter="bob"))
    ready(store, "open", Voter("zoë"))
    store.open_battle(new_battle("failed", Voter("bob")))
    lost = {A1: replace(complete(""), status=AnswerStatus.FAILED, error_class="timeout")}
    ends = lost | {B1: complete("Half")}
    store.close_answers("failed", BattleState.FAILED, ends, message="It failed.", now=NOW)
    with store.writing() as session:
        exclusions.readmit(session, DEFAULT.name, ["b1"], version="1", reason="ours", now=NOW)
        person = "UPDATE voter SET person = 'bob' WHERE id = 'v1v1v1v1v1v1v1v1'"
        session.connection().execute(text(person))
        hidden = "UPDATE battle SET hidden = created WHERE public_id = 'b4'"
        session.connection().execute(text(hidden))
        erased = erasing.battles_of(session, ["v2v2v2v2v2v2v2v2"])
        erasing.erase_words(session, erased[:1], [], NOW)
        erasing.take_out(session, erased[1:2], NOW)
        erasing.erase_words(session, erased[1:2], [], NOW)
    label_votes(store, lambda: NOW)
    return store


@pytest.fixture(params=["sqlite", "postgresql"])
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Give the URL of one more database of either kind, with no tables in it."""
    if request.param == "sqlite":
        yield lambda: f"sqlite:///{tempfile.mkdtemp(dir=tmp_path)}/new.db"
        return
    with new_database(request.getfixturevalue("postgresql")) as url:
        yield lambda: url


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = new_sqlite(tmp_path_factory.mktemp("lived-in"))
    lived_in(made).close()
    return made


def export(command: Command, url: str, folder: str, ending: str, *options: str) -> Path:
    (command.folder / folder).mkdir()
    for what in ("votes", "battles", "answers", "models"):
        own = [word for word in options if what not in NO_OPTION.get(word, ())]
        done = command(
            "export", what, "--to", f"{folder}/{what}.{ending}", "--database", url, *own
        )
        assert (done.returncode, done.stderr) == (0, ""), what
    return command.folder / folder


NO_OPTION = {"--all": ("models",), "--whole": ("votes", "models")}


def rows_of(file: Path) -> Any:
    """Give a file byte for byte, and of a Parquet file the values."""
    if file.suffix != ".parquet":
        return file.read_bytes()
    return duckdb.read_parquet(str(file)).fetchall()


OF_ANSWERS = {"price_per_1000", "median_s"}


def rated(command: Command, url: str, but: Collection[str] = OF_ANSWERS) -> tuple[Any, Any]:
    """Give the ratings of a database as they are computed, and as they are exported."""
    done = command("rate", url, "--format", "json")
    command("export", "ratings", "--to", "r.csv", "--database", url)
    but = {"updated", *but}
    with (command.folder / "r.csv").open(newline="") as file:
        board = [{k: v for k, v in row.items() if k not in but} for row in csv.DictReader(file)]
    return json.loads(done.stdout)["ratings"], board


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("ending", "options"),
    [
        ("csv", ("--all",)),
        ("jsonl", ("--all", "--whole")),
        ("parquet", ("--all",)),
        ("jsonl", ()),
    ],
)
def test_what_leaves_comes_in_again_the_same(
    command: Command, url: str, another: Callable[[], str], ending: str, options: tuple[str, ...]
) -> None:
    there = another()
    before = export(command, url, "before", ending, *options)
    done = command("import", "before", "--database", there)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Imported 12 votes, the newest of 18 links with hash " in done.stdout
    after = export(command, there, "after", ending, *options)
    for file in sorted(before.glob(f"*.{ending}")):
        assert rows_of(after / file.name) == rows_of(file), file.name
    assert "whole, 18 links" in (verified := command("verify", there).stdout)
    assert "Links up to 18 came by an import" in verified
    with closing(Store(there)) as store, store.reading() as session:
        erased = "SELECT public_id FROM battle WHERE erased IS NOT NULL ORDER BY id"
        gone = session.connection().scalars(text(erased)).all()
    assert gone == (["b2", "b6"] if "--all" in options else [])
    mine, theirs = rated(command, url), rated(command, there)
    assert mine[0] == theirs[0]
    if "--all" in options:
        assert mine[1] == theirs[1]


def test_prices_and_times_come_in_as_well_where_nobody_hides_a_battle(
    command: Command, tmp_path: Path, url: str, another: Callable[[], str]
) -> None:
    shutil.copyfile(url.removeprefix("sqlite:///"), tmp_path / "shown.db")
    shown, there = f"sqlite:///{tmp_path}/shown.db", another()
    with closing(sqlite3.connect(tmp_path / "shown.db")) as connection:
        connection.execute("UPDATE battle SET hidden = NULL")
        connection.commit()
    export(command, shown, "before", "csv", "--all")
    assert command("import", "before", "--database", there).returncode == 0
    assert rated(command, shown, but=()) == rated(command, there, but=())


def test_votes_alone_come_in_and_are_rated_the_same(
    command: Command, tmp_path: Path, url: str, another: Callable[[], str]
) -> None:
    there = another()
    export(command, url, "before", "parquet", "--all")
    done = command("import", "before/votes.parquet", "--database", there)
    assert (done.returncode, done.stderr) == (0, "")
    again = export(command, there, "after", "parquet", "--all")
    assert rows_of(again / "votes.parquet") == rows_of(tmp_path / "before" / "votes.parquet")
    assert rows_of(again / "battles.parquet") == [], "without words nothing is shown"
    assert rated(command, url)[0] == rated(command, there)[0]
    with closing(Store(there)) as store, store.reading() as session:
        owner = "v0" * 8
        assert [battle.prompt for battle in single_battles.past_battles(session, owner, NOW)] == [
            ""
        ] * 3
        with pytest.raises(UnknownBattleError):
            single_battles.stored_battle(session, "b0", owner)


def test_an_export_from_before_votes_had_remarks_verifies_and_comes_in(
    command: Command, url: str, tmp_path: Path
) -> None:
    folder = export(command, url, "old", "parquet", "--all")
    for file in folder.glob("*.parquet"):
        rows = duckdb.read_parquet(str(file))
        columns = [name for name in rows.columns if name not in LATER]
        duckdb.execute("SET threads = 1")
        rows.project(", ".join(columns)).to_table(file.stem)
        duckdb.table(file.stem).write_parquet(str(file))
        duckdb.execute(f"DROP TABLE {file.stem}")
    assert command("verify", "old/votes.parquet").returncode == 0
    into = f"sqlite:///{tmp_path}/new.db"
    assert command("import", "old", "--database", into).returncode == 0
    again = export(command, into, "again", "parquet", "--all")
    votes = duckdb.read_parquet(str(again / "votes.parquet"))
    assert votes.filter("remarked IS NOT NULL").fetchall() == []
    assert votes.filter("winner IS NOT NULL").fetchall() != []


def test_ratings_of_an_export_are_by_person_as_those_of_the_board(
    command: Command, url: str
) -> None:
    export(command, url, "before", "csv", "--all")
    done = command("rate", "before/votes.csv", "--format", "json")
    assert json.loads(done.stdout)["ratings"] == rated(command, url)[0]


@pytest.mark.slow
def test_an_arena_that_began_before_the_mark_comes_in_again(
    command: Command, tmp_path: Path, another: Callable[[], str]
) -> None:
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript("\n".join(golden()["sql"]))
    there, old = another(), f"sqlite:///{tmp_path}/old.db"
    command("migrate", "--database", old)
    before = export(command, old, "before", "jsonl", "--all")
    assert command("import", "before", "--database", there).returncode == 0
    after = export(command, there, "after", "jsonl", "--all")
    for name in ("votes", "battles", "answers", "models"):
        assert rows_of(after / f"{name}.jsonl") == rows_of(before / f"{name}.jsonl"), name
    assert "whole, 42 links" in command("verify", there).stdout
    noted = command("verify", there, "--head", golden()["head"][:16])
    assert "rewritten" in noted.stdout, "what that hash is made of is in no export"


def test_an_arena_goes_on_from_what_was_imported(
    command: Command, url: str, another: Callable[[], str]
) -> None:
    there = another()
    export(command, url, "before", "parquet", "--all")
    assert command("import", "before", "--database", there).returncode == 0
    with closing(Store(there)) as store:
        ready(store, "new", Voter("ada"))
        store.cast(ballot("new"))
        exclude(store, "b0", DEFAULT, "late")
        with store.reading() as session:
            assert verify(session).problem is None
        with store.writing() as session:
            erasing.take_out(session, erasing.battles_of(session, ["v0" * 8]), NOW)
        with store.reading() as session:
            verified = verify(session)
            battles = erasing.battles_of(session, ["v1" * 8])
            erased = erasing.erase_words
    assert (verified.problem, verified.links, verified.imported) == (None, 21, 18)
    with closing(Store(there)) as store, store.writing() as session:
        erased(session, battles, [], NOW)
        left = "SELECT DISTINCT text_hash FROM turn WHERE nonce IS NULL AND text_hash <> ''"
        assert session.connection().scalars(text(left)).all() == [], "nobody can guess words"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vote SET transcript_hash = '9' WHERE link = 2",
        "UPDATE vote SET outcome = 'tie' WHERE link = 2",
        "UPDATE vote_chain SET imported = 1",
        "UPDATE chain_link SET reason = 'dull' WHERE kind = 'vote'",
        "UPDATE chain_link SET bound = NULL WHERE kind = 'exclusion'",
        "DELETE FROM chain_link WHERE kind = 'tombstone'",
        "DELETE FROM chain_link WHERE kind = 'vote'",
    ],
)
def test_an_imported_record_that_was_changed_is_found(
    command: Command, tmp_path: Path, url: str, statement: str
) -> None:
    export(command, url, "before", "parquet")
    assert command("import", "before", "--database", "sqlite:///new.db").returncode == 0
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert connection.execute(statement).rowcount
        connection.commit()
    assert command("verify", "sqlite:///new.db").returncode == 3


# --- hostile files


def rows_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


HOSTILE: list[tuple[str, int, dict[str, Any], str]] = [
    (
        "votes",
        2,
        {"turn": "two"},
        "The row of link 2 is not as an export writes it: turn is 'two'",
    ),
    ("votes", 2, {"turn": 2**40}, "turn is 1099511627776"),
    ("votes", 2, {"repicks": -1}, "repicks is -1"),
    ("votes", 2, {"seconds_to_vote": "inf"}, "seconds_to_vote is inf"),
    ("votes", 2, {"ts": "yesterday"}, "ts is 'yesterday'"),
    ("votes", 2, {"battle_id": "x" * 5000}, "battle_id is 'xxx"),
    ("votes", 2, {"battle_id": "a\0b"}, "battle_id is"),
    (
        "votes",
        2,
        {"battle_id": "b0"},
        "Link 2, the vote on battle 'b0', is not as it was recorded",
    ),
    ("votes", 2, {"winner": "nobody"}, "winner is 'nobody'"),
    ("votes", 2, {"person": None}, "person is None"),
    ("votes", 2, {"voter_kind": "alien"}, "voter_kind is 'alien'"),
    ("votes", 2, {"refused_b": 7}, "refused_b is 7"),
    ("votes", 2, {"tagger": None}, "tagger is None"),
    ("votes", 2, {"reasons_b": "creative,clever"}, "reasons_b is 'creative,clever'"),
    ("votes", 2, {"confidence": 4}, "confidence is 4"),
    ("votes", 2, {"voter_intent": "testing"}, "voter_intent is 'testing'"),
    ("votes", 2, {"before_reveal": 2}, "before_reveal is 2"),
    ("votes", 2, {"remarked": None}, "reasons_b is 'creative'"),
    ("battles", 5, {"comment": "Mine."}, "comment is 'Mine.'"),
    ("votes", 2, {"left_out": "dull"}, "has 'dull' in left_out"),
    ("votes", 2, {"link": 1}, "Link 1 of the chain is there twice"),
    ("votes", 2, {"hash": "0" * 64}, "Link 2, the vote on battle 'b1', is not as it was recorded"),
    ("votes", 13, {"exclusion": "{}"}, "exclusion is '{}'"),
    ("votes", 18, {"tombstone": '{"links": "all"}'}, "tombstone is "),
    ("votes", 18, {"links": 99}, "files of 18 and 99 links"),
    ("models", 1, {"kind": "robot"}, "Row 1 of 'x/models.jsonl'"),
    ("models", 2, {"model": "basalt"}, "the model 'basalt' is there twice"),
    ("battles", 3, {"winner": "both_bad"}, "Row 3 of 'x/battles.jsonl'"),
    ("battles", 1, {"winner": "nobody"}, "winner is 'nobody'"),
    ("battles", 1, {"winner": None, "ts": None}, "has no vote, and the file of votes shows one"),
    ("battles", 1, {"battle_id": "b1"}, "The battle 'b1' is twice in"),
    ("battles", 1, {"tokens_a": 7}, "Row 1 of 'x/battles.jsonl': tokens_a is 7, and by"),
    ("battles", 1, {"conversation": [{"a": 1}]}, "Row 1 of 'x/battles.jsonl'"),
    ("battles", 1, {"model_a": "quartz"}, "Row 1 of 'x/battles.jsonl': model_a is 'quartz'"),
    ("battles", 1, {"state": "asleep"}, "state is 'asleep'"),
    ("answers", 2, {"side": "c"}, "Row 2 of 'x/answers.jsonl'"),
    ("answers", 2, {"battle_id": "no"}, "the battle 'no' is not among the battles"),
    ("answers", 2, {"length": None}, "length is None"),
    ("answers", 2, {"erased": 1}, "text is "),
    ("answers", 2, {"cost": "a lot"}, "cost is 'a lot'"),
]


@pytest.fixture(scope="module")
def files(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        from arena.cli import main

        for what in ("votes", "battles", "answers", "models"):
            more = [] if what == "models" else ["--all"]
            main(["export", what, "--to", f"{what}.jsonl", "--database", url, *more])
    return folder


def rows_of_tables(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Read all that a database holds, by table."""
    with closing(sqlite3.connect(file)) as connection:
        named = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in named}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("what", "place", "change", "words"), HOSTILE)
def test_a_row_that_no_export_has_is_named_and_nothing_comes_in(
    command: Command,
    tmp_path: Path,
    files: Path,
    what: str,
    place: int,
    change: dict[str, Any],
    words: str,
) -> None:
    shutil.copytree(files, tmp_path / "x")
    rows = rows_in(tmp_path / "x" / f"{what}.jsonl")
    rows[place - 1] |= change
    write(tmp_path / "x" / f"{what}.jsonl", rows)
    new = new_sqlite(tmp_path)  # its tables are there: making them takes longer than the import
    before = rows_of_tables(tmp_path / "arena.db")
    done = command("import", "x", "--database", new)
    assert done.returncode in (2, 3), done.stdout
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert rows_of_tables(tmp_path / "arena.db") == before
    assert before["vote"] == before["battle"] == before["chain_link"] == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("what", "key"),
    [("votes", "winner"), ("battles", "state"), ("answers", "side"), ("models", "kind")],
)
def test_after_a_refusal_the_export_comes_in_as_it_is(
    command: Command, tmp_path: Path, files: Path, what: str, key: str
) -> None:
    shutil.copytree(files, tmp_path / "x")
    rows = rows_in(tmp_path / "x" / f"{what}.jsonl")
    write(tmp_path / "x" / f"{what}.jsonl", [*rows[:-1], rows[-1] | {key: "robot"}])
    new = new_sqlite(tmp_path)
    done = command("import", "x", "--database", new)
    assert done.returncode in (2, 3)
    assert "robot" in done.stderr
    assert command("import", str(files), "--database", new).returncode == 0


def test_files_that_are_no_export_are_refused(
    command: Command, tmp_path: Path, files: Path
) -> None:
    to = ("--database", "sqlite:///new.db")
    refused(command("import", *to), "arena export votes")
    refused(command("import", "gone.csv", *to), "'gone.csv'", "no such file")
    refused(command("import", str(files / "models.jsonl"), *to), "arena export votes")
    both = [str(files / f"{name}.jsonl") for name in ("votes", "battles")]
    refused(command("import", *both, *to), "give the file of answers with it")
    refused(command("import", both[0], both[0], *to), "both hold votes")
    (tmp_path / "x.xlsx").write_text("x")
    refused(command("import", "x.xlsx", *to), "'x.xlsx'", ".parquet")
    for n, words in ((9_000, "it has a column 'c"), (200_000, "field larger than")):
        bomb = ",".join([*COLUMNS, *(f"c{i}" for i in range(n))])
        (tmp_path / "bomb.csv").write_text(f"{bomb}\n")
        refused(command("import", "bomb.csv", *to), words, "'bomb.csv'")
    (tmp_path / "short.csv").write_text(",".join([*COLUMNS][:-1]) + "\n")
    refused(command("import", "short.csv", *to), "it has no column 'hash'")


def test_a_database_that_is_in_use_takes_no_import(
    command: Command, tmp_path: Path, files: Path
) -> None:
    made = new_sqlite(tmp_path)
    with closing(Store(made)) as store:
        store.register(MODELS, NOW)
        ready(store, "mine")
    done = command("import", str(files), "--database", made)
    refused(done, "is in use: it holds", "Import into a new database")


def test_a_kill_in_the_middle_leaves_nothing_and_the_next_import_does_it(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "x").mkdir()
    store = Store(new_sqlite(tmp_path))
    store.register(MODELS, NOW)
    for i in range(60):
        ready(store, f"b{i}")
        store.cast(ballot(f"b{i}", (Choice.A, Choice.B)[i % 2]))
    with store.reading() as session:
        total = log.count_links(session)
        links = log.links(session, DEFAULT)
        export_votes(links, DEFAULT, tmp_path / "x" / "v.csv", total=total)
    store.close()
    to = ("--database", "sqlite:///new.db")
    for pause_s in (1.0, 1.5, 2.0, 2.5):
        with Process(["import", "x", *to], tmp_path) as process:
            time.sleep(pause_s)
            process.send(signal.SIGKILL)
            process.wait()
        with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
            votes = (
                connection.execute("SELECT count(*) FROM vote").fetchone()[0]
                if ("vote",) in tables
                else 0
            )
        assert votes in (0, 60)
        if votes:
            break
    else:
        assert command("import", "x", *to).returncode == 0
    assert "whole, 60 links" in command("verify", "sqlite:///new.db").stdout


def test_the_examples_of_the_help_run(command: Command, tmp_path: Path, files: Path) -> None:
    shutil.copytree(files, tmp_path / "exported")
    duckdb.read_json(f"{files}/votes.jsonl").write_parquet(str(tmp_path / "odd.parquet"))
    command("migrate", "--database", "sqlite:///empty.db")
    command("export", "votes", "--to", "votes.parquet", "--database", "sqlite:///empty.db")
    for words in examples(command, "import"):
        done = command(*words)
        assert (done.returncode, done.stderr) == (0, ""), words


# --- any small log

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("vote"),
            st.sampled_from(Choice),
            st.sampled_from(["ada", "bob", "Zoë"]),
            st.sampled_from([None, "p1", "p2"]),
            st.sampled_from(["Why?", "", "Mail a@b.org, ‘=1+1’\n\n| x |", "'@x"]),
        ),
        st.tuples(st.just("exclude"), st.integers(0, 9), st.sampled_from(["a bot", "=x"])),
        st.tuples(st.just("take out"), st.integers(0, 9)),
        st.tuples(st.just("erase"), st.integers(0, 9)),
    ),
    max_size=8,
)
KINDS = {"Zoë": VoterKind.SIMULATED}


def take(store: Store, steps: list[Any]) -> None:
    names: list[str] = []
    for step in steps:
        if step[0] == "vote":
            _, choice, voter, prompt_id, words = step
            names.append(f"b{len(names)}")
            owner = Voter(voter, KINDS.get(voter, VoterKind.ANONYMOUS))
            store.open_battle(replace(new_battle(names[-1], owner), prompt_id=prompt_id))
            ends = {A1: complete(words), B1: complete("So.")}
            store.close_answers(names[-1], BattleState.READY, ends, message=None, now=NOW)
            store.cast(ballot(names[-1], choice, voter=voter))
            continue
        if not names:
            continue
        key = 1 + step[1] % len(names)
        with store.writing() as session:
            there = session.connection().scalar(
                text("SELECT count(*) FROM vote WHERE battle_id = :key"), {"key": key}
            )
            if step[0] == "take out":
                erasing.take_out(session, [key], NOW)
            if step[0] == "erase":
                erasing.erase_words(session, [key], [], NOW)
        if step[0] == "exclude" and there:
            exclude(store, names[key - 1], DEFAULT, step[2])


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, everything=st.booleans(), policy=st.sampled_from([DEFAULT, SIMULATED]))
def test_any_small_log_is_the_same_after_a_round_trip(
    tmp_path: Path, steps: list[Any], everything: bool, policy: Policy
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as name:
        folder = Path(name)
        store = Store(new_sqlite(folder))
        store.register(MODELS, NOW)
        take(store, steps)
        before, after = folder / "before.csv", folder / "after.csv"
        _votes(store, before, policy, everything=everything)
        store.close()
        there = f"sqlite:///{folder}/there.db"
        import_record(Exported(before), there, NOW, lambda _done, _total, _what: None)
        with closing(Store(there)) as again:
            _votes(again, after, policy, everything=everything)
            with again.reading() as session:
                verified = verify(session)
        assert after.read_bytes() == before.read_bytes()
        assert verified.problem is None
        assert replace(verified, imported=None) == verify_export(after)


def _votes(store: Store, path: Path, policy: Policy, *, everything: bool) -> None:
    with store.reading() as session:
        total = log.count_links(session)
        links = log.links(session, policy)
        export_votes(links, policy, path, total=total, everything=everything)


def test_an_export_says_that_a_vote_was_taken_out_and_holds(tmp_path: Path, url: str) -> None:
    with closing(Store(url)) as store:
        _votes(store, tmp_path / "v.csv", DEFAULT, everything=True)
    with (tmp_path / "v.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    out = [row for row in rows if row["left_out"] == chain.TAKEN_OUT]
    assert [(row["link_kind"], row["winner"], row["battle_id"]) for row in out] == [
        ("vote", "", ""),
        ("exclusion", "", ""),
    ]
    tombstone = json.loads(rows[-1]["tombstone"])
    assert tombstone["links"] == [int(row["link"]) for row in out]
    assert verify_export(tmp_path / "v.csv").problem is None
