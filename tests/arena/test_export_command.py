"""`arena export` as a person runs it, and the card that lies beside what it writes."""

import csv
import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ruamel.yaml import YAML

from arena.boards.export import Written, write_card
from arena.boards.record_file import LATER
from arena.cli import COMMANDS
from arena.domain.battle import BattleState
from arena.domain.vote import DEFAULT, Choice, Voter
from arena.store import chain
from arena.store.store import Store
from tests.arena.lived_in import lived_in
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, exclude, new_battle
from tests.command import Command, examples, refused
from tests.sqlite import new_sqlite
from tests.studies import planned, write_study

EXPORTS = [line.split()[1] for line in COMMANDS if line.startswith("export ")]
MAIL = "Write to ada@example.com."


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A dozen counted votes of four people, and an excluded one, in a new database."""
    made = new_sqlite(tmp_path)
    store = Store(made)
    store.hold_lease()
    store.register(MODELS, NOW)
    for i in range(13):
        voter = f"v{i % 4}"
        store.open_battle(new_battle(f"b{i}", Voter(voter)))
        words = {A1: complete(MAIL), B1: complete("The sea.")}
        store.close_answers(f"b{i}", BattleState.READY, words, message=None, now=NOW)
        store.cast(ballot(f"b{i}", (Choice.A, Choice.B, Choice.TIE)[i % 3], voter=voter))
    exclude(store, "b12", DEFAULT, "coordinated votes for [x](y) | <b>")
    store.close()
    return made


def front_matter(card: str) -> dict[str, Any]:
    values: dict[str, Any] = YAML(typ="safe").load(card.split("---\n")[1])
    return values


def test_battles_are_written_with_a_card_that_says_what_is_in_them(
    command: Command, tmp_path: Path, url: str
) -> None:
    words = ("export", "battles", "--to", "b.parquet", "--database", url)
    done = command(*words, "--licence", "cc-by-4.0")
    assert done.stdout.splitlines() == [
        "b.parquet: 12 battles, policy default-v3. Personal data replaced: 12 mail.",
        "b.parquet.card.md: the content of the export, exclusions and reasons.",
    ]
    card = (tmp_path / "b.parquet.card.md").read_text()
    values = front_matter(card)
    assert values["license"] == "cc-by-4.0"
    assert values["size_categories"] == ["n<1K"]
    assert values["configs"] == [{"config_name": "default", "data_files": "b.parquet"}]
    assert "| Votes cast | 2026-11-20 to 2026-11-20, UTC |" in card
    assert "| Policy | default-v3. One vote per battle counts" in card
    assert "12 of 13 count under the policy." in card
    assert r"| coordinated votes for \[x\](y) \| \<b\> | 1 |" in card
    assert r"| \[mail\] | 12 |" in card
    assert "rules (version 1)" in card
    for what, n in (("battles", 13), ("answers", 26)):
        done = command("export", what, "--all", "--to", f"{what}.csv", "--database", url)
        assert done.stdout.startswith(f"{what}.csv: {n} {what}, policy default-v3.")


def test_an_export_is_of_the_days_that_are_asked_for(command: Command, url: str) -> None:
    for span, n in (
        (("--since", "2026-11-20", "--until", "2026-11-21"), 12),
        (("--since", "2026-11-21"), 0),
        (("--until", "2026-11-20"), 0),
    ):
        for what, words in (
            ("votes", f"x.csv: {n} of 13 logged votes"),
            ("battles", f"x.csv: {n} battles"),
            ("answers", f"x.csv: {2 * n} answers"),
        ):
            done = command("export", what, "--to", "x.csv", *span, "--database", url)
            assert done.stdout.startswith(words), done.stderr
    back = ("--since", "2026-11-21", "--until", "2026-11-21")
    refused(command("export", "votes", "--to", "y.csv", *back), "is not after --since")


@pytest.mark.parametrize(
    ("rows", "size"),
    [(999, "n<1K"), (1000, "1K<n<10K"), (99_999, "10K<n<100K"), (100_000, "100K<n<1M")],
)
def test_a_card_says_how_large_a_file_is_and_from_when_to_when(
    tmp_path: Path, rows: int, size: str
) -> None:
    written = Written(rows=rows)
    for days in (2, 0, 3, 1):
        written.count(None, NOW + timedelta(days=days))
    write_card(tmp_path / "v.csv", "votes", written, DEFAULT, "mit")
    card = (tmp_path / "v.csv.card.md").read_text()
    assert front_matter(card)["size_categories"] == [size]
    assert f"| File | v.csv, {rows:,} rows |" in card
    assert "| Votes cast | 2026-11-20 to 2026-11-23, UTC |" in card
    assert "Nothing: 4 of 4 count under the policy." in card


def test_a_card_says_that_texts_are_whole(command: Command, tmp_path: Path, url: str) -> None:
    done = command("export", "answers", "--to", "a|b.csv", "--whole", "--database", url)
    assert "Texts are complete" in done.stdout
    card = (tmp_path / "a|b.csv.card.md").read_text()
    assert r"| File | a\|b.csv, " in card
    assert "mail, phone numbers, keys and addresses are still in them" in card
    assert "| Licence | not named" in card
    assert MAIL in (tmp_path / "a|b.csv").read_text()


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_ratings_are_those_of_the_same_votes(
    command: Command, tmp_path: Path, url: str, ending: str
) -> None:
    for what in ("ratings", "battles", "votes"):
        done = command("export", what, "--to", f"{what}.{ending}", "--database", url)
        assert done.returncode == 0
    columns = "model, CAST(rating AS DOUBLE), CAST(rank_high AS BIGINT), policy"
    rows = duckdb.execute(f"SELECT {columns} FROM '{tmp_path}/ratings.{ending}'").fetchall()
    for what in ("battles", "votes"):
        rated = command("rate", f"{what}.{ending}", "--format", "csv", "--out", f"{what}.out.csv")
        assert rated.returncode == 0
        theirs = f"SELECT model, rating FROM '{tmp_path}/{what}.out.csv'"
        assert duckdb.execute(theirs).fetchall() == [row[:2] for row in rows]
    assert {row[3] for row in rows} == {"default-v3"}
    for listed_after, stage in (("12", "listed"), ("13", "provisional")):
        export = ("export", "ratings", "--to", f"few.{ending}", "--database", url)
        assert command(*export, ARENA_LISTED_AFTER=listed_after).returncode == 0
        few = duckdb.execute(f"SELECT DISTINCT stage FROM '{tmp_path}/few.{ending}'").fetchall()
        assert few == [(stage,)]
    assert "hash of the votes" in (tmp_path / f"ratings.{ending}.card.md").read_text()


def test_votes_that_identify_no_ratings_are_said_to(command: Command, tmp_path: Path) -> None:
    done = command("export", "ratings", "--to", "r.csv", "--database", new_sqlite(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert "There are no votes yet" in done.stderr
    assert not list(tmp_path.glob("r.csv*"))


@pytest.mark.parametrize("what", EXPORTS)
def test_a_file_that_cannot_be_written_is_refused_in_words(
    command: Command, tmp_path: Path, url: str, what: str
) -> None:
    for name in ("x.xlsx", "x", "gone/x.csv"):
        refused(command("export", what, "--to", name, "--database", url), "Cannot write", name)
    words = ("export", what, "--to", "x.csv", "--policy", "best", "--database", url)
    refused(command(*words), "no policy 'best'", "default-v3")
    assert not list(tmp_path.glob("x*"))
    assert not list(tmp_path.glob(".export*"))


def test_what_chatbot_arena_has_no_column_for_is_refused(command: Command, url: str) -> None:
    words = ("export", "battles", "--to", "t.csv", "--layout", "chatbot-arena", "--all")
    refused(command(*words, "--database", url), "'chatbot-arena'", "omit --all")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("what", EXPORTS)
def test_the_examples_of_the_help_run(
    command: Command, tmp_path: Path, url: str, what: str
) -> None:
    shutil.copyfile(tmp_path / "arena.db", tmp_path / "arena-demo.db")
    assert command("simulate", "--votes", "40", "--database", "sqlite:///try.db").returncode == 0
    for words in examples(f"export {what}"):
        done = command(*words, ARENA_DATABASE=url)
        assert (done.returncode, done.stderr) == (0, ""), words


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("a_common_umask")
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_only_its_owner_can_read_an_export_and_its_card(
    command: Command, tmp_path: Path, url: str, ending: str
) -> None:
    for what in EXPORTS:
        (tmp_path / f"{what}.{ending}").touch(0o644)
        done = command("export", what, "--to", f"{what}.{ending}", "--database", url)
        assert done.returncode == 0, done.stderr
    write_study(url, "s", planned(1))
    words = ("study", "export", "s", "--to", f"study.{ending}", "--database", url)
    assert command(*words).returncode == 0
    written = [path for path in tmp_path.iterdir() if ending in path.name]
    assert len(written) == 2 * len(EXPORTS) + 1
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}
    assert not [*tmp_path.glob(".*")], "nothing is left of what was written beside it"


@pytest.mark.usefixtures("a_common_umask")
def test_only_its_owner_can_read_the_shards_of_an_export(
    command: Command, tmp_path: Path, url: str
) -> None:
    words = ("export", "battles", "--to", "folder", "--hugging-face", "--database", url)
    assert command(*words).returncode == 0
    written = [path for path in (tmp_path / "folder").rglob("*") if path.is_file()]
    assert {path.name for path in written} == {"README.md", "train-00000-of-00001.parquet"}
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of an arena with persons, remarks, exclusions, erased and deleted votes."""
    made = new_sqlite(tmp_path_factory.mktemp("lived-in"))
    lived_in(made).close()
    return made


def test_ratings_of_an_export_are_by_person_as_those_of_the_board(
    command: Command, old: str
) -> None:
    assert command("export", "votes", "--all", "--to", "v.csv", "--database", old).returncode == 0
    ratings = [
        json.loads(command("rate", source, "--format", "json").stdout)["ratings"]
        for source in ("v.csv", old)
    ]
    assert ratings[0] == ratings[1]


def test_an_export_from_before_votes_had_remarks_verifies(
    command: Command, tmp_path: Path, old: str
) -> None:
    command("export", "votes", "--all", "--to", "v.parquet", "--database", old)
    rows = duckdb.read_parquet(f"{tmp_path}/v.parquet")
    rows = rows.project(", ".join(name for name in rows.columns if name not in LATER))
    rows.write_parquet(f"{tmp_path}/old.parquet")
    assert command("verify", "old.parquet").returncode == 0


def test_an_export_says_that_a_vote_was_deleted(
    command: Command, tmp_path: Path, old: str
) -> None:
    command("export", "votes", "--all", "--to", "v.csv", "--database", old)
    with (tmp_path / "v.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    out = [row for row in rows if row["left_out"] == chain.TAKEN_OUT]
    assert [(row["link_kind"], row["winner"], row["battle_id"]) for row in out] == [
        ("vote", "", ""),
        ("exclusion", "", ""),
    ]
    assert json.loads(rows[-1]["tombstone"])["links"] == [int(row["link"]) for row in out]
    command("export", "battles", "--all", "--to", "b.csv", "--database", old)
    with (tmp_path / "b.csv").open(newline="") as file:
        voters = {row["battle_id"]: row["voter"] for row in csv.DictReader(file)}
    assert (voters["b1"], voters["b0"]) == ("bob", "v0" * 8), "the voter as counted"
    assert command("verify", "v.csv").returncode == 0


ODD: list[tuple[int, dict[str, Any], str]] = [
    (2, {"turn": "two"}, "The row of link 2 is not as an export writes it: turn is 'two'"),
    (2, {"turn": 2**40}, "turn is 1099511627776"),
    (2, {"repicks": -1}, "repicks is -1"),
    (2, {"ts": "yesterday"}, "ts is 'yesterday'"),
    (2, {"battle_id": "x" * 5000}, "battle_id is 'xxx"),
    (2, {"battle_id": "a\0b"}, "battle_id is"),
    (2, {"battle_id": "b0"}, "Link 2, the vote on battle 'b0', is not as it was recorded"),
    (2, {"person": None}, "person is None"),
    (2, {"refused_b": 7}, "refused_b is 7"),
    (2, {"tagger": None}, "tagger is None"),
    (2, {"reasons_b": "creative,clever"}, "reasons_b is 'creative,clever'"),
    (2, {"confidence": 4}, "confidence is 4"),
    (2, {"voter_intent": "testing"}, "voter_intent is 'testing'"),
    (2, {"before_reveal": 2}, "before_reveal is 2"),
    (2, {"remarked": None}, "reasons_b is 'creative'"),
    (2, {"left_out": "dull"}, "has 'dull' in left_out"),
    (18, {"tombstone": '{"links": "all"}'}, "tombstone is "),
    (18, {"links": 99}, "files of 18 and 99 links"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("place", "change", "words"), ODD)
def test_a_value_that_no_export_has_is_named(
    command: Command, tmp_path: Path, old: str, place: int, change: dict[str, Any], words: str
) -> None:
    command("export", "votes", "--all", "--to", "v.jsonl", "--database", old)
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    rows[place - 1] |= change
    (tmp_path / "x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = command("verify", "x.jsonl")
    assert done.returncode == 3
    assert words in done.stdout
