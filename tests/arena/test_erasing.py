"""Who leaves takes their words along: out of every row and file, and the record still holds."""

import hashlib
import json
import re
import signal
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from html import unescape
from io import StringIO
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from arena.boards.leaderboard import Leaderboard
from arena.domain.people import Role
from arena.domain.vote import DEFAULT, Voter
from arena.play import upkeep
from arena.store import blocks, erasing
from arena.store.roster import prompt_id
from arena.store.store import Store
from arena.store.tables import Table
from arena.store.verify import verify
from tests.arena.store.battles import MODELS, NOW, ballot, ready
from tests.command import Command, refused
from tests.faulty_server import Behaviour, faulty_server
from tests.postgresql import new_database
from tests.process import Process, until
from tests.serving import Served, Visitor, invited, quick_arena, served_by
from tests.sqlite import new_sqlite

GOLDEN = Path(__file__).parents[1] / "golden" / "arena_with_a_mark.json"
SECRET = "quokka-of-Zanzibar-77"
"""What somebody wrote, was answered, and is called."""
PROMPT = f"My address is {SECRET}. Which bus do I take?"
OTHER = "What does the other visitor ask?"


def joined(command: Command, served: Served, visitor: Visitor, name: str) -> None:
    """Let a visitor be a person of a name."""
    at = ("--database", served.database)
    link = command("people", "invite", name, *at).stdout.split()[0]
    assert visitor.post(f"/join/{link.rpartition('/')[2]}").status_code == 303


def owner_of(served: Served, battle_id: str) -> str:
    with closing(Store(served.database)) as store, store.reading() as session:
        query = text("SELECT owner FROM battle WHERE public_id = :b")
        return str(session.connection().scalar(query, {"b": battle_id}))


def quote_everywhere(served: Served, battle_id: str) -> None:
    """Let the secret stand in each column that may hold words of a battle or of a judge."""
    statements = (
        f"UPDATE answer SET reasoning = 'thinks of {SECRET}', error_detail = '{SECRET}', "
        f"request_id = '{SECRET}' WHERE battle_id = (SELECT id FROM battle WHERE public_id = :b)",
        "INSERT INTO vote_remark (vote_id, reasons_a, reasons_b, comment, before_reveal) "
        f"SELECT id, '[]', '[\"{SECRET}\"]', '{SECRET}', '0' FROM vote "
        "WHERE battle_id = (SELECT id FROM battle WHERE public_id = :b)",
    )
    store = Store(served.database)
    tables = Table.metadata.tables
    with store.writing() as session:
        for statement in statements:
            assert session.connection().execute(text(statement), {"b": battle_id}).rowcount
        for key, asked in (("j1", PROMPT), ("j2", OTHER)):
            now, why = {"created": datetime.now(UTC)}, {"why": f"for {asked}"}
            request = {"messages": [["user", f"[begin {key}]\n{asked}\n[end {key}]"]]}
            response = {"text": f"A is better for {asked}"}
            judged = {"hash": key, "judge": "m", "request": request, "response": response} | now
            session.connection().execute(tables["judgement"].insert(), judged)
            reading = {"judgement_hash": key, "parser_version": "1", "detail": why} | now
            session.connection().execute(tables["verdict"].insert(), reading)
    store.close()


def rows_with(served: Served, words: str) -> list[str]:
    """Name the tables in which words stand in some row."""
    with closing(Store(served.database)) as store, store.reading() as session:
        return [
            name
            for name, table in Table.metadata.tables.items()
            if words in repr(session.connection().execute(table.select()).all())
        ]


def files_with(served: Served, words: str) -> list[str]:
    """Name the files of the database in which words stand, byte for byte."""
    url = make_url(served.database)
    if url.get_backend_name() == "sqlite":
        main = Path(str(url.database))
        files = [main, *main.parent.glob(f"{main.name}-*")]
    else:
        with closing(Store(served.database)) as store, store.engine.begin() as connection:
            connection.execute(text("CHECKPOINT"))  # what lies in memory alone is none of a file
            folder = Path(str(connection.scalar(text("SHOW data_directory"))))
            oid = "SELECT oid FROM pg_database WHERE datname = current_database()"
            files = [*(folder / "base" / str(connection.scalar(text(oid)))).iterdir()]
    assert files
    return [file.name for file in files if words.encode() in file.read_bytes()]


def whole(served: Served, kind: str = "erased") -> tuple[int, int]:
    """Give links of a record that verifies, and its erased texts, or those taken out."""
    with closing(Store(served.database)) as store, store.reading() as session:
        verified = verify(session)
    assert (verified.problem, verified.counts) == (None, None)
    return verified.links, getattr(verified, kind)


def counted(served: Served) -> list[tuple[object, ...]]:
    """Give the votes as a board reads them, with the policy's reasons."""
    with closing(Store(served.database)) as store:
        votes = store.read(blocks.columns, DEFAULT)
    return list(zip(votes.values("battle"), *map(votes.values, votes.texts), strict=True))


def erase(command: Command, served: Served, voter: str, *words: str) -> str:
    ran = command("erase", "--voter", voter, *words, "--database", served.database)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def killed(words: Sequence[str], folder: Path, pause_s: float) -> None:
    """Kill an erasing so much later than it says what goes: from there on it is written."""
    with Process(words, folder) as process:
        process.stdout.readline()
        time.sleep(pause_s)
        process.send(signal.SIGKILL)
        process.wait()


def leaves(visitor: Visitor, command: Command, served: Served) -> str:
    """Let somebody become a person, vote once, skip once, and leave one battle open."""
    first = visitor.play(PROMPT)
    joined(command, served, visitor, f"Ada {SECRET}")
    visitor.vote(first, "model_a")
    visitor.vote(visitor.play(PROMPT), "skip")
    visitor.play(PROMPT)
    quote_everywhere(served, first)
    return first


def test_no_byte_of_what_somebody_wrote_is_left(
    command: Command, served: Served, tmp_path: Path
) -> None:
    with served.visitor() as ada, served.visitor() as bob:
        battle = leaves(ada, command, served)
        bob.vote(bob.play(OTHER), "model_b")
        touched = "turn answer vote_remark judgement verdict person invitation act"
        assert set(rows_with(served, SECRET)) == {*touched.split()}
        assert files_with(served, SECRET)
        before = counted(served)
        printed = erase(command, served, owner_of(served, battle)[:8], "--yes")
        assert rows_with(served, SECRET) == files_with(served, SECRET) == []
        copy = tmp_path / "copy.db"
        assert command("backup", "--to", str(copy), "--database", served.database).returncode == 0
        assert SECRET.encode() not in copy.read_bytes()
        assert OTHER.encode() in copy.read_bytes()
        assert {"turn", "judgement", "verdict"} <= set(rows_with(served, OTHER))
        assert counted(served) == before
    assert "3 battles" in printed
    assert "1 question to judges" in printed
    assert whole(served) == (3, 6)
    again = erase(command, served, owner_of(served, battle), "--yes")
    assert "0 prompts and answers" in again
    assert whole(served) == (3, 6)


def test_what_was_erased_can_be_neither_voted_on_nor_taken_up(
    command: Command, served: Served
) -> None:
    with served.visitor() as ada, served.visitor() as bob:
        voted, open_one = ada.play(PROMPT), ada.play(PROMPT)
        ada.vote(voted, "tie")
        assert bob.get(f"/battles/{voted}").status_code == 200
        erase(command, served, owner_of(served, voted), "--yes")
        assert bob.get(f"/battles/{voted}").status_code == 404
        for path in ("turns", "regenerate", "retry", "vote"):
            body = {"prompt": "And then?", "outcome": "tie", "key": "k" * 36}
            answer = ada.post(f"/api/v1/battles/{open_one}/{path}", json=body)
            assert answer.status_code in (409, 422), path
        on = ada.post(f"/api/v1/battles/{voted}/continue", json={"prompt": "And then?"})
        assert (on.status_code, "were deleted" in on.json()["detail"]) == (409, True)
        shown = ada.look(open_one)
        assert (shown["state"], "were deleted" in shown["message"]) == ("stopped", True)


def test_it_is_not_done_unless_somebody_writes_the_word(
    command: Command, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served.visitor() as ada:
        battle = ada.play(PROMPT)
    voter = owner_of(served, battle)
    for written, code in (("yes\n", 2), ("", 2), ("erase\n", 0)):
        assert "turn" in rows_with(served, SECRET)
        monkeypatch.setattr("sys.stdin", StringIO(written))
        ran = command("erase", "--voter", voter, "--database", served.database)
        assert ran.returncode == code, ran.stderr
    assert rows_with(served, SECRET) == []


def test_words_of_votes_from_before_the_mark_go_and_the_record_stays_whole(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "old.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("\n".join(json.loads(GOLDEN.read_text())["sql"]))
    served = Served("", f"sqlite:///{file}")
    whole(served)
    with closing(Store(served.database)) as store, store.reading() as session:
        query = text("SELECT owner FROM battle JOIN vote ON vote.battle_id = battle.id LIMIT 1")
        voter = session.connection().scalar(query)
    erase(command, served, str(voter), "--yes")
    links, erased = whole(served)
    assert links == 42
    assert erased > 0


def test_an_answer_that_is_being_written_is_not_written_back(
    command: Command, database_url: str, tmp_path: Path
) -> None:
    slow = Behaviour(text=f"{SECRET} " * 60, delay_s=0.03)
    with (
        faulty_server(dict.fromkeys("xy", slow)) as server,
        served_by(server, tmp_path, database=database_url) as served,
        served.visitor() as ada,
    ):
        battle = ada.open(PROMPT)
        while "answer" not in rows_with(served, SECRET):  # what they have so far is kept
            time.sleep(0.1)
        erase(command, served, owner_of(served, battle), "--yes")
        ada.follow(battle)
        shown = ada.look(battle)
        assert shown["state"] == "interrupted"
        assert SECRET not in json.dumps(shown)
        assert rows_with(served, SECRET) == files_with(served, SECRET) == []


def test_a_kill_leaves_all_words_or_none_and_the_next_run_ends_it(
    command: Command, served: Served, tmp_path: Path
) -> None:
    with served.visitor() as ada:
        *_, battle = [ada.play(f"{PROMPT} {n}") for n in range(8)]
        ada.vote(battle, "tie")
    voter, tables = owner_of(served, battle), {"turn"}
    words = ("erase", "--voter", voter, "--yes", "--database", served.database)
    for pause_s in (0.0, 0.02, 0.05, 0.1, 0.2):
        killed(words, tmp_path, pause_s)
        with closing(Store(served.database)) as store, store.reading() as session:
            there = "SELECT count(*) FROM turn WHERE nonce IS NOT NULL"
            assert session.connection().scalar(text(there)) in (0, 8)
        assert set(rows_with(served, SECRET)) in (tables, set())
        whole(served)
    erase(command, served, voter, "--yes")
    assert rows_with(served, SECRET) == files_with(served, SECRET) == []


tombstoned = partial(whole, kind="taken_out")


def test_a_vote_goes_with_a_tombstone_and_is_counted_nowhere(
    command: Command, served: Served, tmp_path: Path
) -> None:
    with served.visitor() as ada, served.visitor() as bob:
        mine, theirs = ada.play(PROMPT), bob.play(OTHER)
        bob.vote(theirs, "model_b")
        ada.vote(mine, "model_a")
        ada.vote(ada.play(PROMPT), "skip")
        voter = owner_of(served, mine)
        at = ("--database", served.database)
        assert command("exclude", mine, "--reason", "odd", *at).returncode == 0
        noted = json.loads(command("verify", served.database, "--format", "json").stdout)["head"]
        with closing(Store(served.database)) as store:
            made = [*blocks.lacking(store, 1)]
            with store.writing() as session:
                assert [blocks.keep(session, block) for block in made[:2]] == [True, True]
        printed = erase(command, served, voter, "--votes", "tombstone", "--yes")
        assert "2 votes were deleted, and a deletion record states it." in printed
        with closing(Store(served.database)) as store:
            with store.writing() as session:
                assert not blocks.keep(session, made[2]), "it was made of a vote that is gone"
            assert store.read(blocks.links) == (1, 5)
            assert store.read(blocks.columns, DEFAULT).values("battle") == [theirs]
            with store.reading() as session:
                assert len(blocks.coded(session, DEFAULT)) == 1
            leaderboard = Leaderboard(store, DEFAULT, lambda: datetime.now(UTC))
            # The arena makes this board, too, and one does at a time.
            until(lambda: leaderboard.refresh().votes == 1)
        assert tombstoned(served) == (5, 3)
        verified = command("verify", served.database, "--head", noted[:16])
        assert "Votes deleted: 2, with exclusions of them: 1; deletion records" in verified.stdout
        assert command("export", "votes", "--all", "--to", "v.csv", *at).returncode == 0
        assert (tmp_path / "v.csv").read_text().count("taken out") == 3
        assert mine not in (tmp_path / "v.csv").read_text()
        assert "vote log verified, 5 links" in command("verify", "v.csv").stdout
        assert ada.vote(mine, "model_b").status_code == 409, "what was taken out is not cast again"
        assert ada.look(mine)["state"] == "stopped"
        bob.vote(bob.play(OTHER), "tie")
        assert tombstoned(served) == (6, 3)
        again = erase(command, served, voter, "--votes", "tombstone", "--yes")
        assert "0 votes were deleted" in again
    assert tombstoned(served) == (6, 3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM chain_link WHERE kind = 'vote'",
        "DELETE FROM chain_link WHERE kind = 'tombstone'",
        "UPDATE chain_link SET reason = 'hidden' WHERE kind = 'vote'",
        "UPDATE chain_link SET bound = NULL WHERE kind = 'tombstone'",
        "UPDATE chain_link SET content = '9' WHERE kind = 'vote'",
        "UPDATE chain_link SET kind = 'exclusion' WHERE kind = 'vote'",
        # a vote that goes in silence
        "INSERT INTO chain_link (link, kind, reason, content, previous_hash, hash) "
        "SELECT link, 'vote', 'taken out', content, previous_hash, hash FROM vote; "
        "UPDATE battle SET state = 'stopped' WHERE state = 'voted'; DELETE FROM vote",
    ],
)
def test_a_tombstone_that_was_tampered_with_is_found(
    command: Command, tmp_path: Path, statement: str
) -> None:
    with closing(Store(new_sqlite(tmp_path))) as store:
        store.register(MODELS, NOW)
        for name, voter in (("b1", "ada-of-Kent"), ("b2", "bob-of-York")):
            ready(store, name, Voter(voter))
            store.cast(ballot(name, voter=voter))
    words = ("--votes", "tombstone", "--yes", "--database", f"sqlite:///{tmp_path}/arena.db")
    assert command("erase", "--voter", "ada-of-Kent", *words).returncode == 0
    with closing(sqlite3.connect(tmp_path / "arena.db")) as connection:
        connection.executescript(statement)
    assert command("verify", words[-1]).returncode == 3


def test_a_kill_leaves_all_votes_or_none_and_the_record_whole(
    command: Command, served: Served, tmp_path: Path
) -> None:
    with served.visitor() as ada:
        battles = [ada.play(f"{PROMPT} {n}") for n in range(6)]
        for battle in battles:
            ada.vote(battle, "tie")
    voter = owner_of(served, battles[0])
    words = ("erase", "--voter", voter, "--votes", "tombstone", "--yes")
    for pause_s in (0.0, 0.02, 0.05, 0.1):
        killed((*words, "--database", served.database), tmp_path, pause_s)
        assert tombstoned(served) in ((6, 0), (7, 6))
    erase(command, served, voter, "--votes", "tombstone", "--yes")
    assert tombstoned(served) == (7, 6)


def test_samples_of_values_that_postgresql_keeps_go_too(
    command: Command, postgresql: str, postgresql_template: str, tmp_path: Path
) -> None:
    with (
        new_database(postgresql, postgresql_template) as url,
        quick_arena(tmp_path, database=url) as served,
        served.visitor() as ada,
    ):
        *_, battle = [ada.play(PROMPT) for _ in range(3)]
        with closing(Store(url)) as store, store.engine.begin() as connection:
            connection.execute(text("ANALYZE turn"))
            samples = "SELECT most_common_vals::text FROM pg_stats WHERE attname = 'prompt'"
            assert SECRET in connection.scalar(text(samples))
        erase(command, served, owner_of(served, battle), "--yes")
        assert files_with(served, SECRET) == []


def test_equal_prompts_share_an_id_that_nobody_can_guess_them_by(served: Served) -> None:
    with served.visitor() as ada, served.visitor() as bob:
        battles = [ada.play("hi"), bob.play("hi"), bob.play("ho")]
    with closing(Store(served.database)) as store, store.reading() as session:
        query = text("SELECT public_id, prompt_id FROM battle")
        ids: dict[str, str] = dict(session.connection().execute(query).all())
        secret = session.connection().scalar(text("SELECT secret FROM prompt_secret"))
    same, again, other = (ids[battle] for battle in battles)
    assert same == again != other
    assert same != hashlib.sha256(b"hi").hexdigest()[:16]
    assert same == prompt_id(str(secret), "hi")


@pytest.mark.parametrize(
    ("asked", "sent", "quoted"),
    [
        (PROMPT, f"[begin]\n{PROMPT}\n[end]", True),
        (PROMPT, f"> My address  is\n> {SECRET}. Which bus do I take?", True),
        (PROMPT, "[begin]\nMy address is elsewhere.\n[end]", False),
        ("hi", "[begin]\nhi\n[end]", True),
        ("hi", "[begin]\nthis is hidden\n[end]", False),
        ("", "[begin]\n\n[end]", False),
    ],
)
def test_a_judgement_that_quotes_a_text_is_known_by_pieces_of_it(
    tmp_path: Path, asked: str, sent: str, quoted: bool
) -> None:
    with closing(Store(new_sqlite(tmp_path))) as store, store.writing() as session:
        request = {"messages": [["system", "Be brief."], ["user", sent]]}
        judged = {"hash": "j", "judge": "m", "request": request, "response": {}}
        row = judged | {"created": datetime.now(UTC)}
        session.connection().execute(Table.metadata.tables["judgement"].insert(), row)
        assert erasing.quoting(session, [asked]) == ["j"] * quoted


def test_whom_nobody_knows_is_one_clear_line(command: Command, served: Served) -> None:
    known = {"abc": "too short", "0" * 32: "No voter has the id", "%" * 8: "No voter"}
    for voter, words in known.items():
        ran = command("erase", "--voter", voter, "--yes", "--database", served.database)
        refused(ran, words, repr(voter))


def hidden(visitor: Visitor, battle_id: str, hidden: bool = True) -> int:
    form = {"hidden": str(hidden).lower()}
    return visitor.post(f"/votes/{battle_id}/hidden", data=form).status_code


def test_a_hidden_battle_counts_on_and_others_no_longer_read_it(served: Served) -> None:
    with served.visitor() as ada, served.visitor() as bob:
        battle = ada.play(PROMPT)
        ada.vote(battle, "model_a")
        before = counted(served)
        assert SECRET in bob.get("/battles").text
        assert bob.get(f"/battles/{battle}").status_code == 200
        assert hidden(ada, battle) == 303
        assert counted(served) == before
        assert SECRET not in bob.get("/battles").text
        assert bob.get(f"/battles/{battle}").status_code == 404
        assert ada.get(f"/battles/{battle}").headers["location"] == f"/?b={battle}"
        assert "Only you can read it" in ada.get("/votes").text
        assert hidden(ada, battle, hidden=False) == 303
        assert SECRET in bob.get("/battles").text
    whole(served)


def test_nobody_hides_erases_or_downloads_what_is_somebody_elses(served: Served) -> None:
    with served.visitor() as ada, served.visitor() as bob, served.visitor() as stranger:
        battle = ada.play(PROMPT)
        ada.vote(battle, "model_a")
        bob.play(OTHER)
        assert hidden(bob, battle) == hidden(stranger, battle) == hidden(ada, "x") == 404
        assert bob.post("/votes/erase", data={"sure": "true"}).status_code == 200
        assert stranger.post("/votes/erase", data={"sure": "true"}).status_code == 404
        assert stranger.get("/votes.json").status_code == 404
        assert battle not in bob.get("/votes.json").text
        assert rows_with(served, OTHER) == []
        assert rows_with(served, SECRET) == ["turn"]
        assert SECRET in bob.get("/battles").text
        people = {"ada": owner_of(served, battle), "bob": owner_of(served, stranger.play(OTHER))}
        with closing(Store(served.database)) as store, store.writing() as session:
            adopt = "UPDATE voter SET person = :bob WHERE id = :ada"
            session.connection().execute(text(adopt), people)
        assert hidden(stranger, battle) == 303  # it was begun on another device of theirs


def test_a_visitor_erases_their_words_and_stays_who_they_are(
    command: Command, served: Served
) -> None:
    with served.visitor() as ada:
        leaves(ada, command, served)
        assert "9 prompts and answers in 3 battles" in text_of(ada.get("/votes/erase"))
        assert "Delete my prompts and answers permanently" in ada.post("/votes/erase").text
        assert "turn" in rows_with(served, SECRET)
        done = text_of(ada.post("/votes/erase", data={"sure": "true"}))
        assert "9 prompts and answers in 3 battles" in done
        assert "1 question to a judge" in done
        assert rows_with(served, SECRET) == ["person", "invitation", "act"]
        page = text_of(ada.get("/votes"))
        assert page.count("The texts of this battle are deleted") == 3
        assert f"Ada {SECRET}" in page
        assert "nothing to delete" in text_of(ada.get("/votes/erase"))
    with closing(Store(served.database)) as store:
        assert store.read(erasing.is_to_clear)
        erasing.clear_space(store, "upkeep", datetime.now(UTC))
        assert not store.read(erasing.is_to_clear)
    assert whole(served) == (2, 6)


def person_of(visitor: Visitor) -> str:
    return str(visitor.get("/votes.json").json()["voters"][0])


def page_before(admin: Visitor, voter: str) -> str:
    return text_of(admin.get("/admin/voters/erase", params={"voter": voter}))


def test_who_runs_the_arena_erases_words_and_name_of_somebody_by_their_id(
    command: Command, served: Served
) -> None:
    with served.visitor() as ada, served.visitor() as bob, served.visitor() as admin:
        battle = leaves(ada, command, served)
        bob.vote(bob.play(OTHER), "model_b")
        admin.post(invited(served, Role.ADMIN, "Grace"))
        voter, counts = person_of(ada), counted(served)
        assert voter != owner_of(served, battle), "which is that of one device"
        before = page_before(admin, voter[:8])
        assert f"Ada {SECRET} {voter}" in before
        assert "9 prompts and answers in 3 battles 1 question to a judge" in before
        assert "Keep or delete 2 votes" in before
        assert f"type {voter[:8]} , with which the id begins" in before
        form = {"voter": voter, "votes": "stay", "typed": voter[:7]}
        answer = admin.post("/admin/voters/erase", data=form)
        assert (answer.status_code, "you typed" in answer.text) == (422, True)
        assert "turn" in rows_with(served, SECRET)
        done = text_of(admin.post("/admin/voters/erase", data=form | {"typed": voter[:8]}))
        assert "9 prompts and answers in 3 battles 1 question to a judge" in done
        assert "The votes stay and count, without texts." in done
        assert rows_with(served, SECRET) == []
        upkeep_clears(served)
        assert files_with(served, SECRET) == []
        assert {"turn", "judgement"} <= set(rows_with(served, OTHER))
        assert counted(served) == counts
        assert f"Grace deleted the texts of {voter}" in text_of(admin.get("/admin/log"))
        assert "No texts of this voter are stored here" in page_before(admin, voter)
    assert whole(served) == (3, 6)


def test_who_runs_the_arena_takes_votes_out_as_well_with_a_tombstone(
    command: Command, served: Served
) -> None:
    with served.visitor() as ada, served.visitor() as bob, served.visitor() as admin:
        leaves(ada, command, served)
        theirs = bob.play(OTHER)
        bob.vote(theirs, "model_b")
        admin.post(invited(served, Role.ADMIN, "Grace"))
        voter = person_of(ada)
        form = {"voter": voter, "votes": "tombstone", "typed": f" {voter[:8]} "}
        done = text_of(admin.post("/admin/voters/erase", data=form))
        assert "2 votes; a deletion record in the vote log states that they existed" in done
        assert "votes: 2" in text_of(admin.get("/admin/log"))
        again = text_of(admin.post("/admin/voters/erase", data=form))
        assert "There was nothing to delete" in again
    upkeep_clears(served)
    assert rows_with(served, SECRET) == files_with(served, SECRET) == []
    assert [battle for battle, *_ in counted(served)] == [theirs]
    assert tombstoned(served) == (4, 2)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_room_erases_nothing_unless_it_is_told_whom_and_how(served: Served) -> None:
    with served.visitor() as ada, served.visitor() as admin:
        voter = owner_of(served, ada.play(PROMPT))
        admin.post(invited(served, Role.ADMIN, "Grace"))
        whole_form = {"voter": voter, "votes": "stay", "typed": voter[:8]}
        for form, words in (
            ({}, "'' is not the id of one voter"),
            ({"voter": "%" * 8}, "is not the id of one voter"),
            ({"voter": "<b>\0</b>" * 30}, "is not the id of one voter"),
            ({"votes": ""}, "choose whether the votes stay"),
            ({"votes": "all"}, "choose whether the votes stay"),
            ({"typed": ""}, "Nothing was deleted: you typed ''"),
            ({"typed": "<i>" * 99}, "Nothing was deleted: you typed '<i>"),
        ):
            answer = admin.post("/admin/voters/erase", data=form and whole_form | form)
            assert (answer.status_code, words in text_of(answer)) == (422, True), answer.text
        assert rows_with(served, SECRET) == ["turn"]
        assert admin.get("/admin/voters/erase?voter=nobody-at-all").status_code == 404


def upkeep_clears(served: Served) -> None:
    """Let an hour pass, after which the files are looked after."""
    with closing(Store(served.database)) as store:
        upkeep.clear_out(store, {}, datetime.now(UTC))


def test_a_download_has_all_that_is_ones_own_and_names_no_model_before_the_vote(
    served: Served,
) -> None:
    with served.visitor() as ada:
        voted, open_one = ada.play(PROMPT), ada.play(PROMPT)
        receipt = ada.vote(voted, "model_a").json()
        why = {"reasons_b": ["incorrect"], "comment": "Too short.", "confidence": 1}
        assert ada.post(f"/api/v1/battles/{voted}/remarks", json=why).status_code == 200
        answer = ada.get("/votes.json")
        assert "attachment" in answer.headers["content-disposition"]
        first, second = answer.json()["battles"]
        assert (first["battle_id"], second["battle_id"]) == (voted, open_one)
        assert first["turns"][0]["prompt"] == PROMPT
        assert first["vote"]["outcome"] == "model_a"
        assert why.items() <= first["remarks"].items()
        assert first["models"]["a"]["name"] == receipt["models"]["a"]["name"]
        assert "So says" in second["turns"][0]["a"]["text"]
        assert second["models"] is second["receipt"] is None
        assert re.findall(r"id-[xyz]|Name [xyz]", json.dumps(second)) == []


def text_of(answer: httpx2.Response) -> str:
    """Give the words of a page."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())
