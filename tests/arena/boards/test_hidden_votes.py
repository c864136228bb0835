"""Exports of votes: what they exclude is proved, so nobody hides a vote in one."""

import csv
import hashlib
import json
import random
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from arena.boards.export import COLUMNS, LABELS, OUTSIDE, export_votes
from arena.boards.record_file import REMARKED, verify_export
from arena.domain.battle import BattleState, Reason, Remarks
from arena.domain.model import set_of
from arena.domain.vote import DEFAULT, EVER, POLICIES, Choice, Days, Policy, Voter, VoterKind
from arena.errors import UnknownBattleError
from arena.play.upkeep import label_votes
from arena.store import chain, erasing, log, voting
from arena.store.store import Store
from arena.store.verify import Verified, verify
from rating.tables.vote_filter import NO_VOTE
from tests.arena.boards.log import linked, vote
from tests.arena.boards.published import fill
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, new_battle, ready
from tests.arena.store.test_tampering import NOT_BOUND
from tests.command import Command
from tests.sqlite import new_sqlite

Rows = list[dict[str, str]]
JUNE = Days(NOW + timedelta(minutes=3), NOW + timedelta(minutes=15))


def export(
    store: Store, path: Path, policy: Policy = DEFAULT, days: Days = EVER, *, everything: bool
) -> Path:
    with store.reading() as session:
        links, total = log.links(session, policy), log.count_links(session)
        export_votes(links, policy, path, total=total, days=days, everything=everything)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """Exports of 23 votes, two of them excluded and one skipped, and of two deleted ones."""
    folder = tmp_path_factory.mktemp("files")
    url = new_sqlite(folder)
    fill(url)
    with closing(Store(url)) as store:
        for name in ("gone", "gone too", "last"):
            ready(store, name, Voter(name))
            store.cast(replace(ballot(name, voter=name), cast=NOW + timedelta(hours=1)))
        with store.writing() as session:
            for name in ("gone", "gone too"):
                erasing.take_out(session, erasing.battles_of(session, [name]), NOW)
        made = {}
        for name, days, everything in (
            ("default", EVER, False),
            ("all", EVER, True),
            ("days", JUNE, False),
            ("all of days", JUNE, True),
        ):
            path = export(store, folder / "v.csv", days=days, everything=everything)
            with path.open(newline="") as file:
                made[name] = list(csv.DictReader(file))
    return made


def verified(rows: Rows, folder: Path, noted: str = "") -> Verified:
    path = folder / "v.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return verify_export(path, noted)


@pytest.mark.parametrize(
    ("name", "counted", "excluded"),
    [
        ("default", 21, {"skipped": 1, "a test of ours": 1}),
        ("all", 21, {"skipped": 1, "a test of ours": 1}),
        ("days", 12, {OUTSIDE: 11}),
        ("all of days", 12, {OUTSIDE: 11}),
    ],
)
def test_an_export_says_what_it_is_of_and_how_many_votes_it_excludes(
    files: dict[str, Rows], tmp_path: Path, name: str, counted: int, excluded: dict[str, int]
) -> None:
    ours = verified([*files[name]], tmp_path)
    assert (ours.problem, ours.votes, ours.hashes_only, ours.deleted) == (None, 23, 0, 2)
    assert ours.scope is not None
    assert (ours.scope.policy, ours.scope.all_votes) == ("default-v3", name.startswith("all"))
    assert ours.scope.since == ("2026-11-20T12:03:00" if "days" in name else None)
    assert (ours.scope.counted, ours.scope.excluded) == (counted, excluded)


def test_a_reader_that_knows_nothing_of_this_counts_the_counted_votes_alone(
    files: dict[str, Rows],
) -> None:
    for name, counted in (("default", 21), ("days", 12)):
        shown = [row for row in files[name] if row["winner"]]
        assert len(shown) == counted
        assert all(not row["left_out"] for row in shown)
        hidden = [row for row in files[name] if row["excluded_vote"]]
        assert len(hidden) == 23 - counted
        assert not any(row["model_a"] or row["voter"] or row["ts"] for row in hidden)


Edit = Callable[[Rows], object]
HASHES = ("link_kind", "link", "links", "content", "hash", "policy", "since", "until", "all_votes")


def bound_by(row: dict[str, str]) -> dict[str, Any]:
    """Give what the hash of a vote is made of, as it is in its row."""
    values: dict[str, Any] = {name: row[name] or None for name in chain.BOUND}
    values |= {name: float(row[name]) for name in ("pair_probability", "seconds_to_vote")}
    values |= {name: int(row[name]) for name in ("repicks", "turn", "attempt_a", "attempt_b")}
    return values | {"ts": datetime.fromisoformat(row["ts"]).replace(tzinfo=UTC)}


def hide(reason: str, *, as_excluded: bool = False, loser: str = "basalt") -> Edit:
    """Hide the votes that a model lost, as hashes only or as if a rule had excluded them."""

    def act(rows: Rows) -> None:
        for row in rows:
            lost = {"model_a": row["model_b"], "model_b": row["model_a"]}.get(row["winner"])
            if lost != loser:
                continue
            values = bound_by(row)
            values["ts"] = values["ts"].isoformat()
            row.update({name: "" for name in row if name not in HASHES}, left_out=reason)
            if as_excluded:
                row["excluded_vote"] = json.dumps(values)

    return act


def each(where: Callable[[dict[str, str]], object] = lambda _: True, **values: str) -> Edit:
    """Set columns of some rows."""

    def act(rows: Rows) -> None:
        chosen = [row for row in rows if where(row)]
        assert chosen, "changes nothing"
        for row in chosen:
            row.update(values)

    return act


def without(*columns: str) -> Edit:
    """Drop columns."""

    def act(rows: Rows) -> None:
        for row in rows:
            for name in columns:
                del row[name]

    return act


def in_excluded(old: str, new: str) -> Edit:
    """Change the text of excluded votes."""

    def act(rows: Rows) -> None:
        assert any(old in row["excluded_vote"] for row in rows), "changes nothing"
        for row in rows:
            row["excluded_vote"] = row["excluded_vote"].replace(old, new)

    return act


def is_excluded(row: dict[str, str]) -> bool:
    return bool(row["excluded_vote"])


def is_skip(row: dict[str, str]) -> bool:
    return row["left_out"] == "skipped"


def first(row: dict[str, str]) -> bool:
    return row["link"] == "1"


def show(rows: Rows) -> None:
    """Put excluded votes into the columns of votes, as if they counted."""
    for row in rows:
        if row["excluded_vote"]:
            values = json.loads(row["excluded_vote"])
            ts = datetime.fromisoformat(values["ts"]).strftime("%Y-%m-%d %H:%M:%S")
            values |= {"ts": ts, "person": values["voter"]}
            row |= {name: "" if one is None else str(one) for name, one in values.items()}
            row["excluded_vote"] = ""


def unnamed(rows: Rows) -> None:
    """Say of a vote that it was deleted."""
    row = next(row for row in rows if row["link"] == "3")
    row.update({name: "" for name in row if name not in HASHES}, left_out="taken out")


def swapped(rows: Rows) -> None:
    """Let two deletion records change places."""
    a, b = (row for row in rows if row["link_kind"] == "tombstone")
    a["tombstone"], b["tombstone"] = b["tombstone"], a["tombstone"]


def alone(rows: Rows) -> None:
    """Leave the hashes of an exclusion."""
    each(lambda row: row["exclusion"], exclusion="", left_out="taken out")(rows)


NOT_SO = "and by the policy and the days it is"
TWO_ARE_HASHES = "2 of 23 votes are hashes only"
ODD = "excluded_vote"
RECORDED = {
    name: f"the vote on battle {name!r}, is not as it was recorded" for name in ("b0", "b1", "b20")
}
TAMPERED: dict[str, dict[str, tuple[Edit, str]]] = {
    "default": {
        "votes that a model lost are hashes only": (hide("skipped"), "votes are hashes"),
        "votes are excluded as skips": (hide("skipped", as_excluded=True), NOT_SO),
        "votes are excluded as outside": (hide(OUTSIDE, as_excluded=True), NOT_SO),
        "votes are excluded for nothing": (
            hide("", as_excluded=True),
            "is not as an export writes it: left_out is None",
        ),
        "an excluded vote is hashes only": (each(is_excluded, excluded_vote=""), TWO_ARE_HASHES),
        "all excluded votes are said to be deleted": (
            each(is_excluded, excluded_vote="", left_out="taken out"),
            TWO_ARE_HASHES,
        ),
        "a counted vote is said to be deleted": (unnamed, "1 of 23 votes are hashes only"),
        "excluded votes are in the columns": (show, "is in the columns of votes, and by"),
        "a skip has another reason": (each(is_skip, left_out="gold battle"), NOT_SO),
        "there are days": (each(since="2026-11-20 12:10:00"), NOT_SO),
        "days of one row": (each(first, until="2027-01-01 00:00:00"), "several exports"),
        "--all of one row": (each(first, all_votes="1"), "several exports: all_votes"),
        "it is of --all": (each(all_votes="1"), "is not in the columns of votes, and by"),
        "--all is not stated": (each(all_votes=""), "excluded_vote is '{"),
        "another policy": (each(policy="default-v1"), NOT_SO),
        "a policy of other voters": (each(policy="simulated-v1"), NOT_SO),
        "what the file is of is not there": (
            without("since", "until", "all_votes", "excluded_vote"),
            f"{TWO_ARE_HASHES}, the first at link 21, and no deletion record names them: "
            "nothing proves what they were. Export the votes again with this version",
        ),
        "excluded votes are not there": (without("excluded_vote"), "2 of 23 votes are"),
        "an excluded vote has another winner": (in_excluded('"skip"', '"tie"'), RECORDED["b20"]),
        "an excluded vote is of another kind of voter": (
            in_excluded("anonymous", "simulated"),
            RECORDED["b20"],
        ),
        "an excluded vote has more": (in_excluded("{", '{"x": 1, '), "excluded_vote is"),
        "an excluded vote has a key twice": (
            in_excluded('"winner"', '"winner": "tie", "winner"'),
            ODD,
        ),
        "an excluded vote is spelled otherwise": (in_excluded(": ", ":"), ODD),
        "an excluded vote lacks a field": (in_excluded('"pacing": "paced", ', ""), ODD),
        "an excluded vote is no JSON": (
            each(is_excluded, excluded_vote="[" * 100_000),
            "excluded_vote is '[[[",
        ),
        "an excluded vote names no outcome": (in_excluded('"skip"', '"nobody"'), ODD),
        "an excluded vote has no number": (in_excluded('"repicks": 0', '"repicks": NaN'), ODD),
        "deletion records change places": (swapped, "a deletion record, is not as it was"),
    },
    "all": {
        "the same with --all": (hide("anonymous voter"), "of 23 votes are hashes only, the"),
        "votes of --all are excluded": (hide(OUTSIDE, as_excluded=True), NOT_SO),
        "an exclusion has no reason": (each(is_skip, left_out=""), NOT_SO),
        "it is not of --all": (each(all_votes="0"), "is in the columns of votes, and by the"),
        "--all is a number": (each(all_votes="2"), "all_votes is 2"),
        "an exclusion is hashes only": (alone, "is hashes only, and no deletion record names"),
    },
    "days": {
        "the same, outside the days": (hide(OUTSIDE), "of 23 votes are hashes only, the"),
        "votes of other days are in the columns": (show, "is in the columns of votes, and"),
        "since is earlier": (each(since="2026-11-20 12:01:00"), NOT_SO),
        "since is later": (each(since="2026-11-20 12:10:00"), NOT_SO),
        "until is later": (each(until="2026-11-20 12:59:00"), NOT_SO),
        "there are no days": (each(since="", until=""), NOT_SO),
        "an excluded vote has another voter": (
            in_excluded('"voter": "v1"', '"voter": "v2"'),
            RECORDED["b1"],
        ),
        "an excluded vote has another moment": (
            in_excluded("12:00:00", "12:00:01"),
            RECORDED["b0"],
        ),
    },
    "all of days": {
        "what it is of and days are not there": (
            without("since", "until", "all_votes", "excluded_vote"),
            "11 of 23 votes are hashes only",
        )
    },
}
"""By export, what is done to it, and what is said of it then."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("which", "name"), [(which, name) for which, changes in TAMPERED.items() for name in changes]
)
def test_whoever_hides_a_vote_in_an_export_is_found(
    files: dict[str, Rows], tmp_path: Path, which: str, name: str
) -> None:
    act, problem = TAMPERED[which][name]
    rows = [dict(row) for row in files[which]]
    act(rows)
    assert problem in (verified(rows, tmp_path).problem or "")


def test_a_mark_that_was_put_at_the_end_proves_nothing_that_was_noted_before(
    files: dict[str, Rows], tmp_path: Path
) -> None:
    """Before a mark a file shows hashes that nobody can compute, so no note may rest on them."""
    rows = [dict(row) for row in files["all"]]
    noted = next(row["hash"] for row in rows if row["link_kind"] == "exclusion")
    contents = hashlib.sha256()
    for row in rows:
        if row["link_kind"] == "vote" and row["winner"] == "model_a":
            row["winner"] = "model_b"
            row["content"] = chain.vote_content(bound_by(row))
        if row["link_kind"] == "vote":
            contents.update(row["content"].encode())
    end = len(rows) + 1
    content = chain.mark_content(contents.hexdigest())
    mark = dict.fromkeys(rows[0], "") | {name: rows[0][name] for name in HASHES}
    mark |= {"link_kind": "mark", "link": str(end), "content": content, "left_out": NO_VOTE}
    mark["hash"] = chain.link_hash(rows[-1]["hash"], end, "mark", content)
    rows.append(mark)
    for row in rows:
        row["links"] = str(end)
    assert f"before the mark at link {end}" in (verified(rows, tmp_path, noted[:16]).problem or "")


TRUE: dict[str, tuple[str, Edit, dict[str, object]]] = {
    "days that hold every vote": (
        "default",
        each(since="2026-01-01 00:00:00", until="2027-01-01 00:00:00"),
        {"since": "2026-01-01T00:00:00", "until": "2027-01-01T00:00:00", "counted": 21},
    ),
    "a bound between the same votes": (
        "days",
        each(until="2026-11-20 12:14:30"),
        {"until": "2026-11-20T12:14:30", "counted": 12},
    ),
    "an export with --all as version 0.1.0 wrote it": (
        "all",
        without("since", "until", "all_votes", "excluded_vote"),
        {"all_votes": None, "counted": 21},
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_an_edited_file_states_is_true_of_it_where_it_verifies(
    files: dict[str, Rows], tmp_path: Path, name: str
) -> None:
    which, act, states = TRUE[name]
    rows = [dict(row) for row in files[which]]
    act(rows)
    ours = verified(rows, tmp_path)
    assert ours.problem is None
    assert {key: getattr(ours.scope, key) for key in states} == states


@pytest.mark.slow
def test_each_column_of_a_vote_is_bound_or_listed(files: dict[str, Rows], tmp_path: Path) -> None:
    values = {"VARCHAR": "x", "BIGINT": "1", "DOUBLE": "0.5", "TIMESTAMP": "2026-11-01 00:00:00"}
    in_security = {*LABELS, *REMARKED, "confidence", "voter_intent", "person", "topic", "tagger"}
    loose = set()
    for column, kind in COLUMNS.items():
        if column in in_security:
            continue
        rows = [dict(row) for row in files["all"]]
        rows[1][column] = values[kind] if rows[1][column] != values[kind] else "2"
        if verified(rows, tmp_path).problem is None:
            loose.add(column)
    assert loose == set()
    for words in ("`person`", "the columns of labels and of remarks", "`topic`"):
        assert words in NOT_BOUND


def test_a_battle_that_is_voted_on_twice_is_found_also_in_excluded_votes(tmp_path: Path) -> None:
    links = linked([vote("m0", "m1", Choice.A), vote("m0", "m1", Choice.SKIP)])
    again = {**links[1].bound, "battle_id": links[0].bound["battle_id"]}
    content = chain.vote_content(again)
    twice = replace(
        links[1],
        bound=again,
        content=content,
        hash=chain.link_hash(links[0].hash, 2, "vote", content),
    )
    export_votes([links[0], twice], DEFAULT, tmp_path / "v.csv", total=2)
    assert "is voted on twice" in (verify_export(tmp_path / "v.csv").problem or "")


def test_an_import_of_version_0_1_0_is_served_and_not_verified(
    command: Command, tmp_path: Path
) -> None:
    """Its votes can be exported with all that their hashes bind: that file verifies."""
    url = new_sqlite(tmp_path)
    fill(url)
    before = command("export", "votes", "--all", "--to", "before.csv", "--database", url)
    assert before.returncode == 0
    with closing(Store(url)) as store, store.writing() as session:
        connection = session.connection()
        for battles in chain.exported_votes(connection):
            for row, transcript_hash, _ in battles:
                change = "UPDATE vote SET transcript_hash = ? WHERE id = ?"
                connection.exec_driver_sql(change, (transcript_hash, row.id))
        connection.exec_driver_sql("UPDATE vote_chain SET imported = links")
        connection.exec_driver_sql("UPDATE answer SET nonce = '', text = 'scrubbed'")
    done = command("verify", url)
    assert done.returncode == 3
    assert "The first 23 links came by an import of version 0.1.0" in done.stdout
    assert "0 of 22 votes are hashes only" in done.stdout
    after = command("export", "votes", "--all", "--to", "after.csv", "--database", url)
    assert after.returncode == 3
    assert "'after.csv' was written, but the vote log could not be verified" in after.stderr
    assert (tmp_path / "after.csv").read_bytes() == (tmp_path / "before.csv").read_bytes()
    assert command("verify", "after.csv").returncode == 0


def test_the_command_says_what_a_file_is_of_and_what_is_excluded(
    command: Command, tmp_path: Path
) -> None:
    url = new_sqlite(tmp_path)
    fill(url)
    days = ("--since", "2026-11-20T12:03:00", "--until", "2026-11-20T12:15:00")
    done = command("export", "votes", *days, "--to", "v.csv", "--database", url)
    assert done.stdout.startswith(
        "v.csv: 12 of 22 logged votes, policy default-v3. Not counted: 10 outside the days.\n"
    ), done
    card = (tmp_path / "v.csv.card.md").read_text()
    of = "Votes cast since 2026-11-20 12:03:00 and before 2026-11-20 12:15:00; votes that"
    assert of in card.replace("\\", "")
    assert "| outside the days | 10 |" in card
    output = command("verify", "v.csv").stdout
    assert re.search(
        r"^v\.csv: vote log verified, 23 links, the newest with hash \w+\. 0 of 22 votes are "
        r"hashes only\. Exported with policy default-v3, votes cast since 2026-11-20T12:03:00 and "
        r"before 2026-11-20T12:15:00\. Votes counted: 12; excluded: 10 outside the days\.$",
        output,
        re.MULTILINE,
    ), output


# --- any arena

NAMES = ("ada", "bob", "Zoë", "sim", "app", "invited")
KINDS = {"sim": VoterKind.SIMULATED, "app": VoterKind.APPLICATION, "invited": VoterKind.INVITED}


def grown(url: str, rng: random.Random) -> Store:
    """Keep an arena of a few votes in which anything may have happened, in any order."""
    store = Store(url)
    store.register(MODELS, NOW)
    names: list[str] = []
    for step in range(rng.randrange(1, 22)):
        now = NOW + timedelta(hours=step)
        act = rng.choices(("vote", "exclude", "readmit", "erase", "take out"), (12, 3, 2, 1, 1))[0]
        if act == "vote" or not names:
            names.append(f"b{step}")
            voter = rng.choice(NAMES)
            owner = Voter(voter, KINDS.get(voter, VoterKind.ANONYMOUS))
            prompt_set = rng.choice((None, "recorded", set_of(Choice.A)))
            battle = replace(new_battle(names[-1], owner), prompt_set=prompt_set)
            store.open_battle(replace(battle, prompt_id=rng.choice((None, "p1", "p2"))))
            end = rng.choice(("stop", "stop", "length", "error", "SAFETY"))
            a = replace(complete(rng.choice(("", "Mail a@b.org", "=1+1"))), finish_reason=end)
            ends = {A1: a, B1: complete("So.")}
            store.close_answers(names[-1], BattleState.READY, ends, message=None, now=now)
            choice = rng.choice([*Choice])
            store.cast(replace(ballot(names[-1], choice, voter=voter), cast=now))
            if choice != Choice.SKIP and rng.random() < 0.2:
                remarks = Remarks(reasons_a=(Reason.USEFUL,), confidence=2)
                store.remark(names[-1], voter, remarks, now, asked=True)
            continue
        name, policy = rng.choice(names), rng.choice(POLICIES).name
        key = 1 + names.index(name)
        with store.writing() as session:
            try:
                if act == "exclude":
                    grounds = voting.Grounds("r", "1", rng.choice(("a bot", "=x", "ring, 2")))
                    voting.exclude_votes(session, policy, [name], grounds, now)
                elif act == "readmit":
                    voting.readmit(session, policy, [name], version="1", reason="", now=now)
                elif act == "erase":
                    erasing.erase_words(session, [key], [], now)
                else:
                    erasing.take_out(session, [key], now)
            except UnknownBattleError:
                continue  # its vote was deleted
    if rng.random() < 0.5:
        label_votes(store, lambda: NOW)
    return store


def verifies(folder: Path, seed: int, exports: int) -> None:
    """Grow an arena, and verify it and some exports of it, each in its own way."""
    rng = random.Random(seed)
    folder.mkdir()
    store = grown(new_sqlite(folder), rng)
    with store.reading() as session:
        ours = verify(session)
    assert (ours.problem, ours.counts, ours.hashes_only) == (None, None, 0), seed
    for _ in range(exports):
        bounds = sorted(
            rng.choices([None, *(NOW + timedelta(hours=h) for h in range(24))], k=2),
            key=lambda one: one or NOW,
        )
        days = Days(*bounds) if rng.random() < 0.5 else EVER
        path = folder / f"v.{rng.choice(('csv', 'jsonl', 'parquet'))}"
        export(store, path, rng.choice(POLICIES), days, everything=rng.random() < 0.5)
        theirs = verify_export(path, ours.head)
        assert replace(theirs, scope=None, noted=None) == replace(ours, erased=0), (seed, path)
        assert theirs.scope is not None
        assert theirs.scope.counted + sum(theirs.scope.excluded.values()) == theirs.votes
        with duckdb.connect() as connection:
            shown = f"SELECT count(*) FROM '{path}' WHERE winner IS NOT NULL AND left_out IS NULL"
            assert connection.execute(shown).fetchall() == [(theirs.scope.counted,)], (seed, path)
        path.unlink()
    store.close()


def test_exports_of_any_small_arena_verify(tmp_path: Path) -> None:
    for seed in range(3):
        verifies(tmp_path / str(seed), seed, 4)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_thousand_exports_of_a_hundred_arenas_verify(tmp_path: Path) -> None:
    for seed in range(100, 200):
        verifies(tmp_path / str(seed), seed, 10)
