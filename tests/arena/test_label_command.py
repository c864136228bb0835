"""`arena label` of a database and of a file, and what exports and boards make of the labels."""

import json
import random
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from sqlalchemy import text

from arena.boards.fitted import votes_of
from arena.domain.battle import AnswerStatus, BattleState
from arena.domain.vote import DEFAULT, Choice
from arena.play import upkeep as labelling
from arena.play.upkeep import TAGGING, label_votes
from arena.store import labels
from arena.store.store import Store
from judge.labels.taggers import FACETS
from rating.tables.columns import Columns, Reading
from rating.tables.counts import read_votes
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, new_battle
from tests.command import GOOD, Command, refused
from tests.process import until
from tests.serving import quick_arena
from tests.sqlite import new_sqlite

PROMPTS = {
    "code": "Write a Python function that reverses a list.",
    "creative": "Write a poem about the sea.",
}


def vote(store: Store, battle: str, prompt: str, choice: Choice, *, answer: str = "Yes.") -> None:
    store.open_battle(replace(new_battle(battle), prompt=prompt))
    both = {A1: complete(answer), B1: complete()}
    store.close_answers(battle, BattleState.READY, both, message=None, now=NOW)
    store.cast(ballot(battle, choice))


@pytest.fixture
def voted(database_url: str) -> Iterator[Store]:
    """Code is for the first model, three to one; verse for the second."""
    store = Store(database_url)
    store.hold_lease()
    store.register(MODELS, NOW)
    for i in range(8):
        kind = "code" if i % 2 else "creative"
        ahead = Choice.A if kind == "code" else Choice.B
        vote(store, f"b{i}", PROMPTS[kind], ahead if i > 1 else Choice.TIE)
    yield store
    store.close()


def rows(store: Store) -> list[tuple[str, str]]:
    with store.reading() as session:
        query = "SELECT turn_id, facet, value, tagger, tagger_version FROM prompt_label"
        return sorted(tuple(row) for row in session.connection().execute(text(query)))


def test_every_voted_turn_is_labelled_once(voted: Store) -> None:
    steps: list[tuple[int, int]] = []
    assert label_votes(voted, lambda: NOW, lambda done, total: steps.append((done, total))) == 8
    assert steps == [(8, 8)]
    first = rows(voted)
    assert len(first) == 8 * (len(FACETS) + 1)
    assert label_votes(voted, lambda: NOW) == 0
    assert rows(voted) == first


def test_labelling_goes_on_where_it_was_broken_off(
    voted: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "BATCH", 3)

    class Broken(Exception):
        pass

    def broken_off(done: int, total: int) -> None:
        assert total == 8
        if done == 6:
            raise Broken

    with pytest.raises(Broken):
        label_votes(voted, lambda: NOW, broken_off)
    assert len({turn for turn, *_ in rows(voted)}) == 6
    assert label_votes(voted, lambda: NOW) == 2


def test_two_who_label_at_once_do_not_disturb_each_other(voted: Store) -> None:
    turns = voted.read(labels.unlabelled, TAGGING, 0)
    new = [label for turn in turns for label in labelling.labels_of(turn, 0.0)]
    for _ in range(2):
        with voted.writing() as session:
            labels.add(session, new, TAGGING, NOW)
    assert len(rows(voted)) == len(new)


def test_a_battle_without_a_vote_or_without_its_words_has_no_labels(voted: Store) -> None:
    voted.open_battle(new_battle("open"))
    with voted.writing() as session:
        erase = "UPDATE turn SET prompt = '', nonce = NULL WHERE id = 1"
        session.connection().execute(text(erase))
    assert label_votes(voted, lambda: NOW) == 7


def test_a_conversation_is_labelled_where_it_was_voted_on(voted: Store) -> None:
    voted.open_battle(replace(new_battle("long"), prompt=PROMPTS["code"]))
    voted.close_answers(
        "long", BattleState.READY, {A1: complete(), B1: complete()}, message=None, now=NOW
    )
    voted.add_turn("long", "ada", "Shorter, please.", NOW)
    a, b = (replace(key, turn=2) for key in (A1, B1))
    declined = complete("I'm sorry, but I can't.")
    broken = replace(complete("Sure."), status=AnswerStatus.FAILED, error_class="dropped")
    voted.close_answers("long", BattleState.FAILED, {a: declined, b: broken}, message="-", now=NOW)
    voted.add_attempts("long", "ada", NOW, only_incomplete=True)
    second = {a: declined, replace(b, attempt=2): declined}
    voted.close_answers("long", BattleState.READY, second, message=None, now=NOW)
    voted.cast(ballot("long", Choice.A))
    label_votes(voted, lambda: NOW)
    known = voted.read(labels.of_votes, TAGGING, ("category", "turns", "refusal"))
    assert known["long"] == {"category": "code", "turns": "2", "refusal": "both"}
    assert known["b1"] == {"category": "code", "turns": "1", "refusal": "none"}


def test_another_version_of_the_tagger_is_not_read(voted: Store) -> None:
    label_votes(voted, lambda: NOW)
    newer = TAGGING._replace(version="2")
    assert voted.read(labels.of_votes, newer, ("category",)) == {}
    assert voted.read(labels.count_unlabelled, newer) == 8


def test_the_policy_reads_the_labels_that_are_written() -> None:
    assert DEFAULT.tagger == TAGGING


def test_a_database_is_labelled_rated_by_category_and_exported(
    command: Command, tmp_path: Path, voted: Store, database_url: str
) -> None:
    refused(command("rate", database_url, "--by", "category"), "label them first")
    shown = command("label", database_url, "--format", "json")
    assert shown.returncode == 0, shown.stderr
    shares = {(row["facet"], row["value"]): row for row in json.loads(shown.stdout)["labels"]}
    assert shares["category", "code"]["share"] == 0.5
    assert shares["code", "yes"]["lower"] < 0.5 < shares["code", "yes"]["upper"]
    parted = command(
        "rate", database_url, "--by", "category", "--ridge", "0.1", "--format", "json"
    )
    board = json.loads(parted.stdout)["groups"]
    first = {name: one["ratings"][0]["model"] for name, one in board.items()}
    assert first == {"code": MODELS[0].id, "creative": MODELS[1].id}
    command("export", "votes", "--to", "v.parquet", "--database", database_url)
    names = "category, language, turns, hard, instructions, refused_a, refused_b, tagger"
    query = f"SELECT DISTINCT {names} FROM 'v.parquet' ORDER BY ALL"
    with duckdb.connect() as connection:
        connection.execute(f"SET file_search_path = '{tmp_path}'")
        assert connection.sql(query).fetchall() == [
            ("code", "en", 1, "no", "no", 0, 0, "rules 1"),
            ("creative", "en", 1, "no", "no", 0, 0, "rules 1"),
        ]
    assert "vote log verified" in command("verify", "v.parquet").stdout
    by_file = command(
        "rate", "v.parquet", "--by", "category", "--ridge", "0.1", "--format", "json"
    )
    assert {*json.loads(by_file.stdout)["groups"]} == {"code", "creative"}


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_an_export_says_which_answer_refused(
    command: Command, tmp_path: Path, ending: str
) -> None:
    url = new_sqlite(tmp_path)
    with closing(Store(url)) as store:
        store.hold_lease()
        store.register(MODELS, NOW)
        vote(store, "no", PROMPTS["code"], Choice.B, answer="I'm sorry, but I can't help.")
        vote(store, "yes", f"{PROMPTS['code']} Use at most 3 sentences.", Choice.A)
        label_votes(store, lambda: NOW)
        vote(store, "later", PROMPTS["code"], Choice.A)
    written = command("export", "votes", "--to", f"v.{ending}", "--database", url)
    assert written.returncode == 0, written.stderr
    given = "instructions NOT IN ('no')"  # a CSV's yes and no are read as true and false
    query = f"SELECT battle_id, {given}, refused_a, refused_b FROM '{tmp_path}/v.{ending}'"
    with duckdb.connect() as connection:
        rows = connection.sql(f"{query} ORDER BY link").fetchall()
    assert rows == [("no", False, 1, 0), ("yes", True, 0, 0), ("later", None, None, None)]
    assert "vote log verified" in command("verify", f"v.{ending}").stdout


def test_an_export_names_topics_where_everybody_can_read_prompts(
    command: Command, tmp_path: Path
) -> None:
    url, things = new_sqlite(tmp_path), ("sourdough bread oven", "mountain bike gear")
    with closing(Store(url)) as store:
        store.hold_lease()
        store.register(MODELS, NOW)
        for i in range(60):
            vote(
                store,
                f"b{i}",
                f"{things[i % 2]} {chr(97 + i // 26)}{chr(97 + i % 26) * 3}",
                Choice.A,
            )
    written = ("export", "votes", "--to", "t.parquet", "--database", url)
    refused(command(*written, "--topics", ARENA_SHOW_BATTLES="false"), "--topics", "--private")
    assert not (tmp_path / "t.parquet").exists()
    for words, least in ((written, 0), ((*written, "--topics"), 2)):
        result = command(*words)
        assert result.returncode == 0, result.stderr
        topic = f"SELECT battle_id, topic, tagger FROM '{tmp_path}/t.parquet' WHERE topic <> ''"
        with duckdb.connect() as connection:
            rows = connection.sql(topic).fetchall()
        assert len({title for _, title, _ in rows}) >= least
        assert (rows == []) == (not least)
        assert all(tagger is None for *_, tagger in rows)
        bread = {title for battle, title, _ in rows if int(battle[1:]) % 2 == 0}
        assert all("bike" not in title for title in bread)
        assert "vote log verified" in command("verify", "t.parquet").stdout


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_is_written_again_with_its_labels(
    command: Command, tmp_path: Path, ending: str
) -> None:
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello!"}]
    lines = [
        {"n": 1, "question": PROMPTS["code"]},
        {"n": 2, "question": "=1+1"},
        {"n": 3, "question": json.dumps([*talk, {"role": "user", "content": "Tell me a story"}])},
    ]
    file = tmp_path / "prompts.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    result = command("label", "prompts.jsonl", "--to", f"labelled.{ending}")
    assert "3 prompts are labelled (rules, version 1)" in result.stdout, result.stderr
    assert re.search(r"│ code +│ yes +│ +1 │ +33\.3% │ +\d+\.\d% \(", result.stdout)
    query = f"SELECT n, category, turns FROM '{tmp_path}/labelled.{ending}' ORDER BY n"
    with duckdb.connect() as connection:
        written = connection.execute(query).fetchall()
    assert [tuple(map(str, row)) for row in written] == [
        ("1", "code", "1"),
        ("2", "maths", "1"),
        ("3", "creative", "2"),
    ]


def test_what_cannot_be_labelled_is_one_clear_line(command: Command, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("words\nhi\n")
    (tmp_path / "q.csv").write_text("prompt,category\nhi,x\n")
    refused(command("label", "p.csv"), "no column of prompts", "'words'", "--column")
    refused(command("label", "p.csv", "--column", "voter=words"), "'voter'", "prompt")
    refused(command("label", "q.csv", "--to", "q.csv"), "read and written at once")
    refused(command("label", "q.csv", "--to", "r.xlsx"), "r.xlsx", ".parquet")
    refused(command("label", "q.csv", "--to", "r.csv"), "'category' already")
    refused(command("label", "sqlite:///gone.db"), "No database")
    assert not (tmp_path / "gone.db").exists()
    assert "100.0%" in command("label", "p.csv", "--column", "prompt=words").stdout
    for name in ("instruction", "text", "turns", "conversation"):
        (tmp_path / "p.csv").write_text(f"{name}\nhi\n")
        assert "1 prompts are labelled" in command("label", "p.csv").stdout


def test_repeated_prompts_are_counted_of_a_database_and_of_a_file(
    command: Command, tmp_path: Path, voted: Store, database_url: str
) -> None:
    result = json.loads(command("probe", "duplicates", database_url, "--format", "json").stdout)
    assert (result["prompts"], result["groups"]) == (8, 2)
    rows = "2026-01-01,Why is the sky blue?\n2026-01-03,why is the sky blue\n2026-01-03,Hi\n"
    (tmp_path / "p.csv").write_text(f"on,said\n{rows}")
    named = ("--column", "prompt=said", "--column", "time=on")
    shown = command("probe", "duplicates", "p.csv", *named).stdout
    assert "3 prompts, 3 different texts, 2 groups of similar prompts." in shown
    assert "Similar to an earlier one: 33.3% (" in shown
    fresh = r"Not similar to any that is at least a day older: 50\.0% \(.* to .*\), of 2\."
    assert re.search(fresh, " ".join(shown.split()))


def test_rate_clusters_by_the_groups_of_repeated_prompts(command: Command, tmp_path: Path) -> None:
    """Twenty prompts that each have three ids: by id 60 clusters, by group 20."""
    rng, rows = random.Random(1), ["model_a,model_b,winner,voter,prompt_id,prompt"]
    texts = [f"{random.Random(n).getrandbits(128):x}" for n in range(20)]
    for n in range(600):
        a, b = rng.sample("xyz", 2)
        text = texts[n % 20] if n % 60 < 40 else texts[n % 20].upper()
        winner = rng.choice(["model_a", "model_b"])
        rows.append(f"{a},{b},{winner},v{n % 40},p{n % 60},{text}")
    (tmp_path / "votes.csv").write_text("\n".join(rows) + "\n")
    by_id = command("rate", "votes.csv")
    assert "20 prompts have the same text in 'prompt' as another" in by_id.stderr
    done = command("probe", "duplicates", "votes.csv", "--to", "grouped.csv")
    assert done.returncode == 0, done.stderr
    by_group = command("rate", "grouped.csv", "--column", "prompt=prompt_group")
    assert by_group.returncode == 0
    assert "same text" not in by_group.stderr
    for file, column, n in (("votes", "prompt_id", 60), ("grouped", "prompt_group", 20)):
        reading = Reading(Columns(prompt=column), prompts=True)
        assert read_votes(tmp_path / f"{file}.csv", reading).data.n_prompts == n
    refused(command("probe", "duplicates", "sqlite:///x.db", "--to", "g.csv"), "takes a file")


def test_votes_on_prompts_of_a_benchmark_are_rated_apart(
    command: Command, tmp_path: Path, voted: Store, database_url: str
) -> None:
    (tmp_path / "bench.jsonl").write_text(json.dumps({"question": PROMPTS["code"]}))
    for other in ("b8", "b9", "b10", "b11"):  # so that nobody wins every vote of a kind
        vote(voted, other, PROMPTS["code"], Choice.B)
        vote(voted, f"{other}-", PROMPTS["creative"], Choice.A)
    result = command("overlap", "bench.jsonl", database_url, "--format", "json")
    assert result.returncode == 0, result.stderr
    both = json.loads(result.stdout)
    assert (both["votes"], both["overlapping"]) == (16, 8)
    rows = ["model_a,model_b,winner,voter,prompt"]
    for i in range(40):
        words = PROMPTS["code" if i % 2 else "creative"]
        rows.append(f"x,y,{'model_a' if i % (5 if i % 2 else 3) else 'model_b'},v{i % 9},{words}")
    (tmp_path / "votes.csv").write_text("\n".join(rows))
    shown = " ".join(command("overlap", "bench.jsonl", "votes.csv").stdout.split())
    assert "20 of 40 votes are on prompts of the benchmark." in shown
    ask = ("overlap", "bench.jsonl", "votes.csv", "--format", "json", "--level")
    wide, half = (json.loads(command(*ask, level).stdout)["models"] for level in ("0.95", "0.5"))
    assert wide[0]["lower"] < half[0]["lower"] < half[0]["upper"] < wide[0]["upper"]
    for one in wide:
        ends = "{difference:+.0f} ({lower:+.0f} to {upper:+.0f}) │ {p:.3f} │".format(**one)
        assert "│ {model} │ {overlapping:.0f} │ {others:.0f} │ ".format(**one) + ends in shown


def test_cutoffs_of_a_roster_part_the_votes_of_a_file(command: Command, tmp_path: Path) -> None:
    rows = ["model_a,model_b,winner,voter,prompt,ts"]
    for i in range(80):
        prompt = "Why is the sky blue?" if i % 2 else f"{chr(97 + i % 26) * 9} {i:08d}"
        won = "model_a" if i % 3 else "model_b"
        rows.append(f"x,y,{won},v{i % 9},{prompt},2026-0{1 + i // 20}-05")
    (tmp_path / "votes.csv").write_text("\n".join(rows))
    roster = GOOD.replace('model = "unigram"', 'model = "unigram"\ncutoff = 2026-02-10')
    (tmp_path / "roster.toml").write_text(roster)
    words = ("overlap", "votes.csv", "--roster", "roster.toml")
    result = json.loads(command(*words, "--format", "json").stdout)
    (change,) = result["cutoffs"]
    # Two months of all prompts, and the one that is repeated afterwards.
    assert (change["model"], change["before"], change["after"]) == ("x", 60, 20)
    assert change["lower"] < change["difference"] < change["upper"]
    shown = " ".join(command(*words, COLUMNS="120").stdout.split())
    ends = "{difference:+.0f} ({lower:+.0f} to {upper:+.0f}) │ {p:.3f} │".format(**change)
    assert "over the other models" in shown
    assert f"│ x │ 2026-02-10 │ 60 │ 20 │ {ends}" in shown
    (tmp_path / "roster.toml").write_text(GOOD)
    refused(command(*words), "no model has a cutoff", "cutoff = 2026-03-01")
    refused(command("overlap", "votes.csv"), "Name a benchmark and votes")


def test_frequent_prompts_counted_less_move_the_board(
    command: Command, tmp_path: Path, voted: Store, database_url: str
) -> None:
    rows = ["model_a,model_b,winner,voter,prompt"]
    for i in range(90):
        prompt = "Why is the sky blue?" if i < 40 else f"{chr(97 + i % 26) * 9} {i:08d}"
        won = "model_a" if i % 5 < (4 if i < 40 else 2) else "model_b"
        rows.append(f"x,y,{won},v{i % 9},{prompt}")
    (tmp_path / "votes.csv").write_text("\n".join(rows))
    words = ("probe", "duplicates", "votes.csv", "--board")
    # Of few prompts the 99.9th percentile is the one that is asked most.
    sampled = json.loads(command(*words, "--format", "json").stdout)["down_sampled"]
    assert (sampled["most"], sampled["prompts"], sampled["votes"]) == (40, 0, 0)
    assert "0 prompts with more than 40 votes each" in " ".join(command(*words).stdout.split())
    shown = command("probe", "duplicates", database_url, "--board")
    assert "Points moved" in shown.stdout, shown.stderr


def test_an_arena_that_is_served_labels_new_votes_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert labelling.REST_S == 60
    monkeypatch.setattr("arena.play.upkeep.REST_S", 0.05)
    with quick_arena(tmp_path) as served, served.visitor() as ada:
        ada.vote(ada.play(), "model_a")
        until(lambda: any(votes_of(served.database).labels["category"]))
        assert votes_of(served.database).labels["language"] != [None]
