"""`arena gold`, and gold battles in `arena voters` and `arena status`: from a file and a log."""

import json
import re
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from arena.domain.battle import AnswerStatus, BattleState
from arena.domain.model import GONE_ON, set_of
from arena.domain.vote import Choice, Voter
from arena.store.chain import AnswerOutcome
from arena.store.log import gold_votes
from arena.store.store import Store
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, new_battle
from tests.command import Command


def play(store: Store, voter: str, number: int, marked: str | None, choice: Choice) -> None:
    """Let a voter vote on a battle whose answer B is four times as long."""
    battle = f"{voter}{number}"
    new = replace(new_battle(battle, Voter(voter)), prompt_set=marked, prompt_id=f"p{number}")
    store.open_battle(new)
    store.close_answers(
        battle,
        BattleState.READY,
        {A1: complete("right"), B1: complete("quite wrong, 20 long")},
        message=None,
        now=NOW,
    )
    store.cast(ballot(battle, choice, key=battle, voter=voter))


@pytest.fixture
def voted(database_url: str) -> str:
    right = set_of(Choice.A)
    with closing(Store(database_url)) as store:
        store.register(MODELS, NOW)
        for voter, n_right in (("ada", 9), ("bob", 6), ("eve", 3)):
            for number in range(12):
                named = Choice.A if number < n_right else Choice.B
                play(store, voter, number, right, Choice.TIE if number == 11 else named)
            play(store, voter, 12, right, Choice.SKIP)
            play(store, voter, 13, GONE_ON, Choice.B)
            for number in range(14, 18):
                play(store, voter, number, None, Choice.A if number % 2 else Choice.B)
    return database_url


def test_a_log_says_who_names_what_is_right(voted: str, command: Command) -> None:
    with closing(Store(voted)) as store:
        first = store.read(gold_votes)[0]
        assert (first.length_a, first.length_b) == (5, 20)
    study = json.loads(command("gold", voted, "--format", "json").stdout)
    assert (study["votes"], study["right"], study["undecided"]) == (36, 18, 3)
    assert study["wrong"]["value"] == pytest.approx(15 / 36)
    assert study["wrong"]["lower"] < 15 / 36 < study["wrong"]["upper"]
    half = json.loads(command("gold", voted, "--level", "0.5", "--format", "json").stdout)["wrong"]
    assert study["wrong"]["lower"] < half["lower"] < half["upper"] < study["wrong"]["upper"]
    assert re.sub(r" \(.*?\)", "", study["sentences"][0], count=1) == (
        "42% of 36 votes prefer the wrong answer, 50% the right one, and 8% neither (3 voters, "
        "12 items)."
    )
    accuracy = {one["voter"]: one["accuracy"] for one in study["accuracies"]}
    assert accuracy == {"ada": 17 / 22, "bob": 14 / 22, "eve": 11 / 22}
    shown = command("gold", voted).stdout
    assert "42%" in shown
    assert "9 of 12" in shown


def test_voters_and_status_have_it_beside_what_they_say(voted: str, command: Command) -> None:
    checked = json.loads(command("voters", voted, "--least", "2", "--format", "json").stdout)
    ada = next(one for one in checked["voters"] if one["voter"] == "ada")
    assert (ada["votes"], ada["gold_right"], ada["gold_answered"]) == (4, 9, 12)
    assert ada["gold_lower"] < ada["gold_accuracy"] == 17 / 22 < ada["gold_upper"]
    shown = command("voters", voted, "--least", "2", COLUMNS="200").stdout
    assert "│ 9/12, 77% (" in shown
    status = json.loads(command("status", "--database", voted, "--format", "json").stdout)
    assert (status["gold"]["votes"], status["gold"]["right"]) == (36, 18)
    assert "Gold battles so far: 42%" in command("status", "--database", voted).stdout


def test_status_has_failures_and_times_of_each_model_below_their_names(
    database_url: str, command: Command
) -> None:
    now = datetime.now(UTC)
    failed = AnswerOutcome(text="", status=AnswerStatus.FAILED, error_detail="slow")
    with closing(Store(database_url)) as store:
        store.register(MODELS, now)
        for n, end in enumerate((None, "timeout", "dropped", None, "timeout", None)):
            store.open_battle(replace(new_battle(f"b{n}"), created=now))
            a = replace(complete(), first_token_s=(n + 1) / 10)
            well = replace(complete(), first_token_s=1.0 + n)
            both = {A1: a, B1: replace(failed, error_class=end) if end else well}
            store.close_answers(f"b{n}", BattleState.READY, both, message=None, now=now)
    shown = command("status", "--database", database_url, COLUMNS="200").stdout
    rows = " ".join(shown.split())
    assert "┃ Model ┃ Answers ┃ Failed ┃ First token ┃ 95% ┃ Dollars ┃" in rows
    assert "│ quartz │ 6 │ 3 │ 4.00 s │ 6.00 s │ 0.00 │" in rows
    assert "│ basalt │ 6 │ 0 │ 0.30 s │ 0.60 s │ 0.01 │" in rows


def test_a_file_of_votes_says_the_same(tmp_path: Path, command: Command) -> None:
    rows = [
        {"user": f"u{n % 4}", "prompt": f"p{n}", "winner": "left" if n % 3 else "model_b"}
        | {"truth": "A>B", "response_a": "x" * (10 + n), "response_b": "y" * (50 - n)}
        for n in range(40)
    ]
    file = tmp_path / "votes.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    named = ("--column", "gold=truth", "--label", "left=model_a")
    study = json.loads(command("gold", str(file), *named, "--format", "json").stdout)
    assert (study["votes"], study["right"], study["voters"]) == (40, 26, 4)
    assert len(study["by_gap"]) == 3


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"voter": "u", "prompt": "p", "winner": "model_a"}, "no column 'gold'"),
        ({"voter": "u", "prompt": "p", "winner": "left", "gold": "A>B"}, "winner 'left'"),
        ({"voter": "u", "prompt": "p", "winner": "model_a", "gold": "C"}, "gold 'C'"),
        ({"prompt": "p", "winner": "model_a", "gold": "A>B"}, "no column 'voter'"),
    ],
)
def test_what_cannot_be_read_is_quoted(
    row: dict[str, str], words: str, tmp_path: Path, command: Command
) -> None:
    file = tmp_path / "votes.jsonl"
    file.write_text(json.dumps(row), encoding="utf-8")
    ran = command("gold", str(file))
    assert ran.returncode == 2
    assert words in " ".join(ran.stderr.split())


def test_gold_battles_move_with_a_backup(voted: str, tmp_path: Path, command: Command) -> None:
    again, backup = f"sqlite:///{tmp_path}/again.db", str(tmp_path / "backup.db")
    ran = command("backup", "--to", backup, "--database", voted)
    assert ran.returncode == 0, ran.stderr
    ran = command("restore", backup, "--database", again)
    assert ran.returncode == 0, ran.stderr
    assert command("verify", again).returncode == 0
    before, after = (
        json.loads(command("gold", url, "--format", "json").stdout) for url in (voted, again)
    )
    assert after == before


TASK = {
    "prompt": "Name two fruits. No commas.",
    "instruction_id_list": ["punctuation:no_comma"],
    "kwargs": [{}],
}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "input_data.jsonl"
    path.write_text(json.dumps(TASK), encoding="utf-8")
    return path


def test_votes_of_a_log_say_whether_voters_notice_a_broken_instruction(
    database_url: str, tasks: Path, command: Command
) -> None:
    with closing(Store(database_url)) as store:
        store.register(MODELS, NOW)
        for number in range(20):
            prompt = str(TASK["prompt"]) if number < 16 else "Why?"
            battle = f"b{number}"
            new = replace(new_battle(battle, Voter(f"v{number % 4}")), prompt=prompt)
            store.open_battle(new)
            whole = complete("Plums, pears."), complete("Plums and pears.")
            cut = (replace(whole[0], status=AnswerStatus.STOPPED), whole[1])
            a, b = cut if number == 15 else whole
            store.close_answers(battle, BattleState.READY, {A1: a, B1: b}, message=None, now=NOW)
            store.cast(ballot(battle, Choice.A, key=battle, voter=f"v{number % 4}"))
    ran = command("gold", database_url, "--instructions", str(tasks), "--format", "json")
    study = json.loads(ran.stdout)
    assert (study["votes"], study["voters"], study["prompts"]) == (4, 4, 1), "first votes"
    assert study["violator"]["value"] == 1.0
    assert [one["id"] for one in study["by_kind"]] == ["punctuation:no_comma"]
    shown = command("gold", database_url, "--instructions", str(tasks)).stdout
    assert "punctuation:no_comma" in shown


def test_votes_of_a_file_say_the_same(tmp_path: Path, tasks: Path, command: Command) -> None:
    rows = [
        {
            "user": f"u{n}",
            "prompt": TASK["prompt"],
            "winner": "model_a" if n % 4 else "skip",
            "response_a": "Plums and pears" if n % 2 else "a, b",
            "response_b": "x, y" if n % 2 else "Plums or pears",
        }
        for n in range(40)
    ]
    file = tmp_path / "votes.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    where = ("--where", "winner <> 'skip'")
    ran = command("gold", str(file), "--instructions", str(tasks), *where, "--format", "json")
    study = json.loads(ran.stdout)
    assert (study["votes"], study["follower"]) == (30, 20)
    assert study["violator"]["value"] == pytest.approx(1 / 3)


def test_a_database_is_read_whole(voted: str, command: Command) -> None:
    ran = command("gold", voted, "--where", "true")
    assert ran.returncode == 2
    assert "omit the other options" in " ".join(ran.stderr.split())
