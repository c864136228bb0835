"""Votes that the check of voters names are excluded, with reasons, and can be taken in again."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlmodel import col, select

from arena.boards.integrity import RINGS, VOTERS, apply, decide, name_answers
from arena.boards.leaderboard import Leaderboard
from arena.domain.people import Entrance
from arena.domain.vote import BEFORE_EXCLUSIONS, DEFAULT, Choice, Policy, Voter, VoterKind
from arena.errors import RoomError
from arena.store import blocks, people, voting
from arena.store.store import Store
from arena.store.tables import AnswerRow, BattleRow, FlagRow
from arena.store.verify import verify
from arena.store.voting import Grounds
from rating.tables.voter_report import CheckedVoter, RingMember, VotersReport
from rating.voters import Gained, Ring
from tests.arena.store.battles import MODELS, NOW, ballot, ready
from tests.command import Command, refused

BOT, FAN = Voter("bot"), Voter("fan")
CAST = ballot("b").cast


def voted(store: Store, votes: Sequence[Voter]) -> None:
    for place, voter in enumerate(votes):
        ready(store, f"b{place}", voter)
        store.cast(ballot(f"b{place}", Choice.A if place % 3 else Choice.B, voter=voter.id))


@pytest.fixture
def played(database_url: str) -> Iterator[Store]:
    """Twenty votes by eleven people, two of them by a bot and one by a fan."""
    with closing(Store(database_url)) as store:
        people = [Voter(f"v{n % 9}") for n in range(17)]
        store.register(MODELS, NOW)
        voted(store, [BOT, *people, FAN, BOT])
        yield store


def report(
    voters: Sequence[str] = (), fans: Sequence[str] = (), model: str = "quartz"
) -> VotersReport:
    ring = Ring(model, "for", len(fans), 0.2, 64.0, Gained(89.0, 3))
    return VotersReport(
        alpha=0.05,
        least=20,
        taste_sd=0.4,
        order_effect=0.0,
        by_time=True,
        votes=20,
        self_battles=0,
        dropped={},
        voters=tuple(
            CheckedVoter(
                one, 2, 0, max_log_e=9.5, flagged=True, flagged_jointly=True, leading="coin"
            )
            for one in voters
        ),
        rings=(ring,) if fans else (),
        members=tuple(RingMember(one, model, 0.1, "in a ring") for one in fans),
    )


def left_out(store: Store, policy: Policy = DEFAULT) -> dict[str, str | None]:
    with store.reading() as session:
        votes = blocks.columns(session, policy)
    rows = zip(votes.values("battle"), votes.values("left_out"), strict=True)
    return {b: why for b, why in rows if why}


def flagged(store: Store) -> list[tuple[str, str, str, bool]]:
    """Battles that a rule marked, with their models, and whether their votes count."""
    rows = store.read(voting.flagged, DEFAULT.name, 9)
    return [(row.battle, row.a, row.b, bool(row.counts)) for row in rows]


def is_whole(store: Store) -> bool:
    with store.reading() as session:
        return verify(session).problem is None


def test_flagged_voters_lose_all_votes_and_the_chain_verifies(played: Store) -> None:
    done = {one["rule"]: one for one in apply(played, report(["bot"]), NOW)}
    assert (done[VOTERS]["votes"], done[VOTERS]["voters"], done[VOTERS]["held"]) == (2, 1, False)
    assert done[RINGS]["votes"] == 0
    assert left_out(played) == {"b0": "votes like a coin toss", "b19": "votes like a coin toss"}
    assert left_out(played, BEFORE_EXCLUSIONS) == {}
    assert is_whole(played)
    with played.reading() as session:
        flags = session.exec(select(FlagRow).order_by(col(FlagRow.id))).all()
    assert [(f.rule, f.voter_id, f.score, f.reason) for f in flags] == [
        (VOTERS, None, 0.1, "applied"),
        (VOTERS, "bot", 9.5, "votes like a coin toss"),
        (RINGS, None, 0.0, "applied"),
    ]


def test_members_of_a_ring_lose_their_votes_on_its_model_alone(played: Store) -> None:
    apply(played, report(fans=["fan"], model="quartz"), NOW)
    assert left_out(played) == {"b18": "coordinated votes for quartz"}
    apply(played, report(fans=["bot"], model="another"), NOW)
    assert left_out(played) == {"b18": "coordinated votes for quartz"}


def test_a_doubtful_member_keeps_the_votes(played: Store) -> None:
    doubtful = report(fans=["fan"])
    member = replace(doubtful.members[0], weight=0.3)
    apply(played, replace(doubtful, members=(member,)), NOW)
    assert left_out(played) == {}


def test_applied_twice_nothing_is_written_twice(played: Store) -> None:
    apply(played, report(["bot"]), NOW)
    again = apply(played, report(["bot"]), NOW)
    assert [(one["votes"], one["share"]) for one in again] == [(0, 0.1), (0, 0.0)]
    assert len(left_out(played)) == 2
    assert is_whole(played)


def test_a_vote_that_was_readmitted_is_not_left_out_again_by_a_rule(played: Store) -> None:
    apply(played, report(["bot"]), NOW)
    with played.writing() as session:
        n = voting.readmit(session, DEFAULT.name, ["b0"], version="1", reason="ok", now=NOW)
    assert n == 1
    assert {*left_out(played)} == {"b19"}
    apply(played, report(["bot"]), NOW)
    assert {*left_out(played)} == {"b19"}
    by_hand = Grounds("by hand", "1", "a bot after all")
    with played.writing() as session:
        assert voting.exclude_votes(session, DEFAULT.name, ["b0", "b19"], by_hand, NOW) == 1
    assert left_out(played)["b0"] == "a bot after all"
    assert is_whole(played)


def test_a_rule_that_would_leave_out_more_than_a_fifth_is_held_and_the_board_says_so(
    played: Store,
) -> None:
    board = Leaderboard(played, DEFAULT, lambda: NOW, clock=lambda: 0.0)
    assert not [one for one in board.refresh().warnings if "is suspended" in one]
    many = [f"v{n}" for n in range(3)]
    done = {one["rule"]: one for one in apply(played, report(many, fans=["fan"]), NOW)}
    assert (done[VOTERS]["held"], done[VOTERS]["share"]) == (True, 0.3)
    assert not done[RINGS]["held"]
    assert left_out(played) == {"b18": "coordinated votes for quartz"}
    (warning,) = [one for one in board.refresh().warnings if "is suspended" in one]
    assert "single voters would exclude 30% of the votes" in warning
    apply(played, report(["bot"]), NOW)
    assert not [one for one in board.refresh().warnings if "is suspended" in one]


def test_the_board_says_how_many_are_left_out_and_stands_beside_the_one_with_them(
    played: Store,
) -> None:
    apply(played, report(["bot"], fans=["fan"]), NOW)
    board = Leaderboard(played, DEFAULT, lambda: NOW).refresh()
    whole = Leaderboard(played, BEFORE_EXCLUSIONS, lambda: NOW).refresh()
    assert board.left_out == {"coordinated votes for quartz": 1, "votes like a coin toss": 2}
    assert [*played.read(voting.left_out, DEFAULT.name, 9)] == [
        ("bot", VOTERS, "votes like a coin toss", 2),
        ("fan", RINGS, "coordinated votes for quartz", 1),
    ]
    assert (board.excluded, whole.excluded) == (3, 0)
    assert (board.votes, whole.votes) == (17, 20)


@pytest.fixture
def database(played: Store, database_url: str) -> str:
    played.close()
    return database_url


def test_people_leave_votes_out_and_take_them_in_again_by_command(
    command: Command, database: str
) -> None:
    def run(*words: str) -> str:
        result = command(*words, "--database", database)
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert run("exclude", "bot", "--reason", "paid") == (
        "bot: 2 votes are excluded from default-v3.\n"
    )
    assert run("exclude", "b0", "--reason", "again") == (
        "b0: 0 votes are excluded from default-v3; 1 were excluded before.\n"
    )
    assert run("readmit", "b0") == "b0: 1 vote counts again in default-v3.\n"
    assert (
        run("exclude", "b1", "--reason", "a test") == "b1: 1 vote is excluded from default-v3.\n"
    )
    assert command("verify", database).returncode == 0
    run("export", "votes", "--to", "v.csv", "--all")
    assert command("verify", "v.csv").returncode == 0
    refused(
        command("exclude", "nobody", "--reason", "x", "--database", database), "'nobody'", "voter"
    )
    refused(command("exclude", "bot", "--reason", " ", "--database", database), "Give a reason")


def test_who_left_votes_out_and_why_is_written_down_or_nothing_is(played: Store) -> None:
    decide(played, "exclude", ["bot"], "paid", "ada", NOW)
    decide(played, "readmit", ["b0"], "it was a person", "ada", NOW)
    apply(played, report(["v0"]), NOW, "ada")
    with pytest.raises(RoomError, match="Give a reason"):
        decide(played, "readmit", ["bot"], " ", "ada", NOW)
    with pytest.raises(RoomError, match="'b\ufffd' is neither"):
        decide(played, "readmit", ["b\0"], "why", "ada", NOW)
    acts = played.read(people.acts)[0]
    assert [(act.by, act.act, act.subject, act.detail["votes"]) for act in acts] == [
        ("ada", "apply rule", "rings", 0),
        ("ada", "apply rule", "voters", 2),
        ("ada", "readmit", "b0", 1),
        ("ada", "exclude", "bot", 2),
    ]
    assert acts[-1].detail["reason"] == "paid"


def test_an_act_that_fails_half_way_leaves_neither_rows_nor_a_note(
    played: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(people, "note", full)
    with pytest.raises(OSError, match="No space"):
        decide(played, "exclude", ["bot"], "paid", "ada", NOW)
    assert left_out(played) == {}
    assert played.read(people.acts)[0] == ()
    assert is_whole(played)


def test_a_person_loses_the_votes_too_that_they_cast_before_signing_in(
    command: Command, played: Store, database_url: str
) -> None:
    with played.writing() as session:
        people.enter(session, Entrance("https://id.example", "s", "Bo"), "bot", NOW)
        person = people.enter(session, Entrance("https://id.example", "s", "Bo"), "fan", NOW)
    to = ("--database", database_url)
    printed = command("exclude", person.id, "--reason", "paid", *to).stdout
    assert printed == f"{person.id}: 3 votes are excluded from default-v3.\n"
    assert left_out(played) == dict.fromkeys(("b0", "b18", "b19"), "paid")
    ((_, _, votes, _),) = played.read(people.matching, person.id)
    for n in range(8):
        who = Voter("toy", VoterKind.SIMULATED) if n % 2 else Voter("v0")
        ready(played, f"more {n}", who)
        later = CAST + timedelta(minutes=n)
        played.cast(replace(ballot(f"more {n}", voter=who.id), cast=later))
    assert (votes, [*played.read(voting.busiest, 2)]) == (
        3,
        [("v0", 6, CAST + timedelta(minutes=6)), (person.id, 3, CAST)],
    )
    printed = command("readmit", person.id, *to).stdout
    assert printed == f"{person.id}: 3 votes count again in default-v3.\n"
    assert {*left_out(played).values()} == {"simulated voter"}
    assert is_whole(played)


def test_the_check_of_voters_is_applied_to_a_database(command: Command, database: str) -> None:
    result = command("voters", database, "--apply", "--format", "json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["rings"] == []
    assert "Rule 'voters': 0 votes of 0 voters are excluded" in result.stderr


def test_a_file_has_no_leaderboard_to_apply_the_check_to(command: Command, tmp_path: Path) -> None:
    refused(command("voters", "votes.csv", "--apply"), "--apply", "'votes.csv'", "URL")


def test_battles_in_which_a_model_names_itself_are_flagged_once_and_left_out_if_asked(
    command: Command, played: Store, database_url: str
) -> None:
    ready(played, "leak", Voter("v1"))
    with played.writing() as session:
        leaks = select(AnswerRow).join(BattleRow).where(BattleRow.public_id == "leak")
        answer = session.exec(leaks.order_by(col(AnswerRow.id))).first()
        assert answer is not None
        answer.text = f"I am {answer.model_id.title()}, at your service."
        model = answer.model_id
    played.cast(ballot("leak", Choice.A, voter="v1"))
    first = name_answers(played, NOW, leave_out=False)
    assert (first["battles"], first["named"], first["by_model"]) == (21, 1, {model: 1})
    assert first["applied"] is None
    assert command("probe", "names", database_url).stdout == (
        f"In 1 of 21 battles a model named itself (42 answers read).\n{model}: 1 answer\n"
    )
    assert left_out(played) == {}
    assert flagged(played) == [("leak", "basalt", "quartz", True)]
    second = name_answers(played, NOW, leave_out=True)
    assert (second["applied"]["votes"], second["applied"]["held"]) == (1, False)
    assert left_out(played) == {"leak": "a model named itself"}
    assert flagged(played) == [("leak", "basalt", "quartz", False)]
    with played.reading() as session:
        flags = session.exec(select(FlagRow).where(col(FlagRow.battle_id).is_not(None))).all()
    assert [(one.rule, one.version) for one in flags] == [("self-naming", "1")]
    played.write(voting.flag, Grounds("by hand", "1", "odd"), NOW, battle=1)
    assert [battle for battle, *_ in flagged(played)] == ["b0", "leak"], "the last marked first"
    assert is_whole(played)


def test_the_answers_of_a_database_are_read_by_command(command: Command, database: str) -> None:
    result = command("probe", "names", database, "--format", "json")
    assert json.loads(result.stdout)["named"] == 0
    assert "In 0 of 20 battles" in command("probe", "names", database).stdout
    refused(command("probe", "names", "sqlite:///none.db"), "No database 'none.db'")
    words = command("probe", "words", database, "--format", "json")
    assert {*json.loads(words.stdout)} >= {"accuracy", "majority", "models"}
    assert "The model is identified for" in command("probe", "words", database).stdout
    refused(
        command("exclude", "b0", "--reason", "x", "--database", "sqlite:///none.db"), "No database"
    )
