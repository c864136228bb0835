"""Votes on answers that did not end well: excluded by default-v3, counted by default-v2."""

import csv
import hashlib
import io
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.boards.export import export_battles, export_votes
from arena.boards.integrity import decide
from arena.boards.leaderboard import Leaderboard
from arena.boards.record_file import verify_export
from arena.domain.battle import BattleState, Side
from arena.domain.vote import (
    ANSWERS,
    BEFORE_EXCLUSIONS,
    BLOCKED,
    BROKEN,
    BROKEN_ANSWER,
    CALLS,
    DEFAULT,
    POLICIES,
    TRUNCATED,
    WHOLE,
    WITH_BROKEN,
    Choice,
    Policy,
    VoterKind,
    end_of,
)
from arena.endpoints.chat import finish_reason
from arena.errors import EndpointError
from arena.play.matchmaking import PairWins
from arena.store import battles, blocks, log
from arena.store.store import Store
from arena.store.verify import back_up, restore, verify
from rating.tables.files import storable
from tests.arena.store.battles import A1, ADA, B1, MODELS, NOW, ballot, complete, new_battle
from tests.command import Command
from tests.sqlite import new_sqlite

GOLDEN = Path(__file__).parents[2] / "golden" / "arena_before_default_v3.json"
BROKEN_BATTLES = {"b3", "b7", "b11", "b17", "b20", "b22", "b27"}
"""Of the old database. In b24, too, an answer broke off: it was skipped. Of b28 an answer that
broke off was asked for again before the vote."""


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return dict(json.loads(GOLDEN.read_text(encoding="utf-8")))


def write_old(golden: dict[str, Any], folder: Path) -> Path:
    """Write the database as the version before default-v3 left it."""
    with closing(sqlite3.connect(folder / "old.db")) as connection:
        connection.executescript("\n".join(golden["sql"]))
    return folder / "old.db"


@pytest.fixture(params=["in place", "postgresql"])
def upgraded(
    request: pytest.FixtureRequest, golden: dict[str, Any], tmp_path: Path
) -> Iterator[Store]:
    old = write_old(golden, tmp_path)
    url = f"sqlite:///{old}"
    if request.param == "postgresql":
        url = request.getfixturevalue("url")
        restore(old, url, lambda _done, _total: None)
    with closing(Store(url)) as store:
        yield store


def exported(store: Store, policy: Policy, file: Path, *, everything: bool = False) -> Path:
    with store.reading() as session:
        total = log.count_links(session)
        links = log.links(session, policy)
        export_votes(links, policy, file, total=total, everything=everything)
    return file


@pytest.mark.parametrize("everything", [False, True])
def test_default_v2_rates_and_exports_an_old_database_as_before(
    upgraded: Store, golden: dict[str, Any], tmp_path: Path, *, everything: bool
) -> None:
    board = Leaderboard(upgraded, WITH_BROKEN, lambda: NOW + timedelta(hours=2)).refresh()
    assert (board.votes, dict(board.left_out)) == (golden["votes"], golden["left_out"])
    names = ("rating", "lower", "upper", "votes", "rank")
    rated = {row.model: {name: getattr(row, name) for name in names} for row in board.rows}
    assert rated == golden["ratings"]
    file = exported(upgraded, WITH_BROKEN, tmp_path / "v.csv", everything=everything)
    before = golden["exports"]["all" if everything else "default"]
    assert file.read_bytes().decode() == "\n".join([*before, ""])
    assert verify_export(file, golden["head"]).problem is None


def test_default_v3_excludes_votes_on_broken_answers_of_an_old_database(
    upgraded: Store, golden: dict[str, Any]
) -> None:
    board = Leaderboard(upgraded, DEFAULT, lambda: NOW + timedelta(hours=2)).refresh()
    assert dict(board.left_out) == golden["left_out"] | {"broken answer": len(BROKEN_BATTLES)}
    assert board.votes == golden["votes"] - len(BROKEN_BATTLES)
    with upgraded.reading() as session:
        verified = verify(session, golden["head"])
    assert (verified.problem, verified.counts, verified.noted) == (None, None, golden["links"])


def by_blocks(store: Store, policy: Policy) -> Sequence[str | None]:
    return store.read(blocks.coded, policy).values("left_out")


def by_columns(store: Store, policy: Policy) -> Sequence[str | None]:
    return store.read(blocks.columns, policy).values("left_out")


@pytest.mark.parametrize("read", [by_blocks, by_columns])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_every_policy_has_its_reasons(
    upgraded: Store, policy: Policy, read: Callable[[Store, Policy], Sequence[str | None]]
) -> None:
    reasons = Counter(read(upgraded, policy))
    by_rule = Counter({None: 27, "skipped": 1, "a known bot": 1})
    expected = {
        DEFAULT: by_rule - Counter({None: 7}) + Counter({"broken answer": 7}),
        WITH_BROKEN: by_rule,
        BEFORE_EXCLUSIONS: Counter({None: 28, "skipped": 1}),
    }
    assert reasons == expected.get(policy, Counter({"anonymous voter": 28, "skipped": 1}))


def test_the_reasons_of_a_policy_have_an_order() -> None:
    why_not = DEFAULT.why_not
    kind, bot = VoterKind.ANONYMOUS, ("a known bot",)
    assert why_not(Choice.SKIP, kind, bot, gold=True, broken=True) == "skipped"
    assert why_not(Choice.A, kind, bot, gold=True, broken=True) == "gold battle"
    assert why_not(Choice.A, VoterKind.SIMULATED, bot, broken=True) == "simulated voter"
    assert why_not(Choice.A, kind, bot, broken=True) == "broken answer"
    assert why_not(Choice.A, kind, bot) == "a known bot"
    assert why_not(Choice.A, kind) is None
    for policy in POLICIES:
        says_so = any("broke off" in rule for rule in policy.rules)
        assert says_so == policy.excludes_broken == (policy is DEFAULT)


@pytest.mark.parametrize("policy", [DEFAULT, WITH_BROKEN], ids=lambda policy: policy.name)
def test_whoever_reads_votes_leaves_out_the_same(
    upgraded: Store, policy: Policy, tmp_path: Path
) -> None:
    with upgraded.reading() as session:
        columns = blocks.columns(session, policy)
        pairs = zip(columns.values("battle"), columns.values("left_out"), strict=True)
        counted = {battle for battle, why in pairs if why is None}
        shown = battles.counted(session, policy)
        assert shown is not None
        assert {vote.battle_id for vote in shown.votes} == counted
        assert (battles.battle(session, policy, "b3") is None) == policy.excludes_broken
        battle_of = log.battles_of_topics(session)
        assert {battle_of[one.key] for one in log.asked(session, policy)} == counted
        some = log.battles(session, policy, voted=True)
        export_battles(some, policy, tmp_path / "battles.csv")
    rows = csv.DictReader(io.StringIO((tmp_path / "battles.csv").read_text()))
    assert {row["battle_id"] for row in rows} == counted
    wins = PairWins(upgraded, policy).read()
    assert sum(wins.values()) == len(counted)
    rows = csv.DictReader(io.StringIO(exported(upgraded, policy, tmp_path / "v.csv").read_text()))
    assert {row["battle_id"] for row in rows if row["winner"]} == counted


def test_a_vote_excluded_by_hand_is_excluded_from_both_policies(upgraded: Store) -> None:
    decide(upgraded, "exclude", ["b0"], "paid for", "terminal", NOW)
    with upgraded.reading() as session:
        for policy in (DEFAULT, WITH_BROKEN):
            assert log.excluded(session, policy)["paid for"] == 1
            reasons = blocks.columns(session, policy).values("left_out")
            assert [reasons.count(why) for why in ("a known bot", "paid for")] == [1, 1]


# Finish reasons


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with closing(Store(new_sqlite(tmp_path_factory.mktemp("reasons")))) as made:
        made.hold_lease()
        made.register(MODELS, NOW)
        yield made


NUMBERS = count()


def vote_on(store: Store, reason: str | None, side: Side = Side.A) -> str:
    """Vote on a battle of which one answer was kept with a finish reason."""
    battle = f"n{next(NUMBERS)}"
    store.open_battle(new_battle(battle))
    ends = {A1: complete(), B1: complete()}
    key = A1 if side is Side.A else B1
    ends[key] = replace(ends[key], finish_reason=reason)
    store.close_answers(battle, BattleState.READY, ends, message=None, now=NOW)
    store.cast(ballot(battle, voter=ADA.id))
    return battle


def why_excluded(store: Store, battle: str, policy: Policy = DEFAULT) -> str | None:
    with store.reading() as session:
        columns = blocks.columns(session, policy)
    reason: str | None = columns.values("left_out")[columns.values("battle").index(battle)]
    return reason


DOCUMENTED = [
    ("insufficient_system_resource", "https://api-docs.deepseek.com/api/create-chat-completion"),
    ("SAFETY", "https://ai.google.dev/api/generate-content#FinishReason"),
    ("RECITATION", "https://ai.google.dev/api/generate-content#FinishReason"),
    ("PROHIBITED_CONTENT", "https://ai.google.dev/api/generate-content#FinishReason"),
    ("content_filter", "https://platform.openai.com/docs/api-reference/chat/object"),
    ("sensitive", "https://docs.z.ai/api-reference/llm/chat-completion"),
    ("network_error", "https://docs.z.ai/api-reference/llm/chat-completion"),
    ("error", "https://openrouter.ai/docs/api-reference/overview"),
    ("abort", "https://docs.vllm.ai/en/latest/api/vllm/v1/engine/"),
]
"""Finish reasons of replies that are no whole answers, with the pages that list them."""


@pytest.mark.parametrize(("reason", "document"), DOCUMENTED)
@pytest.mark.parametrize("side", Side)
def test_a_vote_on_an_answer_that_broke_off_or_was_filtered_is_excluded(
    store: Store, reason: str, document: str, side: Side
) -> None:
    assert document.startswith("https://")
    battle = vote_on(store, reason, side)
    assert why_excluded(store, battle) == "broken answer"
    assert why_excluded(store, battle, WITH_BROKEN) is None


@pytest.mark.parametrize("reason", [None, *sorted(WHOLE | TRUNCATED | CALLS)])
def test_a_vote_on_a_whole_or_a_truncated_answer_counts(store: Store, reason: str | None) -> None:
    for spelling in {reason, reason and reason.upper()}:
        battle = vote_on(store, spelling)
        assert [why_excluded(store, battle, p) for p in (DEFAULT, WITH_BROKEN)] == [None, None]


WORDS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.sampled_from(sorted({*WHOLE, *TRUNCATED, *CALLS, *BLOCKED, *BROKEN})).flatmap(
        lambda word: st.sampled_from([word, word.upper(), f"{word}: x", f" {word}", f"x{word}"])
    ),
)


@settings(max_examples=80, deadline=None)
@given(word=WORDS)
def test_what_an_endpoint_is_refused_for_excludes_a_vote_and_nothing_else_does(
    store: Store, word: str
) -> None:
    reason = storable(word)
    try:
        finish_reason(reason, has_text=True)
        expected = None
    except EndpointError:
        expected = str(BROKEN_ANSWER)
    plain = reason.strip().lower()
    if plain and not plain.isascii():
        assert expected is not None
    assert why_excluded(store, vote_on(store, word)) == expected
    assert (end_of(reason) in ANSWERS) == (expected is None)


# Tampering


@pytest.fixture
def old(golden: dict[str, Any], tmp_path: Path) -> Path:
    file = write_old(golden, tmp_path)
    Store(f"sqlite:///{file}").close()
    return file


def changed(file: Path, statement: str) -> str:
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute(statement).rowcount > 0
        connection.commit()
    with closing(Store(f"sqlite:///{file}")) as store, store.reading() as session:
        return verify(session).problem or ""


def battle(name: str) -> str:
    return f"(SELECT id FROM battle WHERE public_id = '{name}')"


@pytest.mark.parametrize(
    ("name", "reason"), [("b3", "'stop'"), ("b0", "'error'"), ("b27", "NULL"), ("b28", "'error'")]
)
def test_a_changed_finish_reason_is_found(old: Path, name: str, reason: str) -> None:
    change = f"UPDATE answer SET finish_reason = {reason} WHERE battle_id = {battle(name)}"
    problem = changed(old, change)
    assert f"the vote on battle {name!r}, is not as it was recorded" in problem


@pytest.mark.parametrize(
    ("name", "broken", "words"),
    [("b3", 0, "is not marked as"), ("b0", 1, "is marked as"), ("b28", 1, "is marked as")],
)
def test_a_changed_mark_of_a_vote_is_found(old: Path, name: str, broken: int, words: str) -> None:
    problem = changed(old, f"UPDATE vote SET broken = {broken} WHERE battle_id = {battle(name)}")
    assert f"the vote on battle {name!r}, {words} a vote on a broken answer" in problem


@pytest.fixture
def export(old: Path, tmp_path: Path) -> tuple[list[dict[str, str]], Path]:
    with closing(Store(f"sqlite:///{old}")) as store:
        file = exported(store, DEFAULT, tmp_path / "v.csv")
    with file.open(newline="") as text:
        return list(csv.DictReader(text)), file


def verified(rows: list[dict[str, str]], file: Path) -> str:
    with file.open("w", newline="") as text:
        writer = csv.DictWriter(text, [*rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return verify_export(file).problem or ""


def of(rows: list[dict[str, str]], name: str) -> dict[str, str]:
    return next(
        row for row in rows if row["battle_id"] == name or f'"{name}"' in row["excluded_vote"]
    )


def test_an_export_proves_which_votes_are_on_broken_answers(
    export: tuple[list[dict[str, str]], Path],
) -> None:
    rows, file = export
    proof = verify_export(file)
    assert proof.problem is None
    assert proof.scope is not None
    assert proof.scope.excluded == {"broken answer": 7, "skipped": 1, "a known bot": 1}
    shown = [row for row in rows if row["transcript"]]
    assert {json.loads(row["excluded_vote"])["battle_id"] for row in shown} == BROKEN_BATTLES
    for row in shown:
        vote = json.loads(row["excluded_vote"])
        assert hashlib.sha256(row["transcript"].encode()).hexdigest() == vote["transcript_hash"]
        assert "What is" not in row["transcript"]


def test_no_vote_can_be_excluded_as_one_on_a_broken_answer_in_a_file(
    export: tuple[list[dict[str, str]], Path],
) -> None:
    rows, file = export
    counted, other = of(rows, "b0"), of(rows, "b3")
    names = [*json.loads(other["excluded_vote"])]
    hidden: dict[str, Any] = {name: counted[name] for name in names}
    hidden |= {n: int(counted[n]) for n in ("repicks", "turn", "attempt_a", "attempt_b")}
    hidden |= {n: float(counted[n]) for n in ("pair_probability", "seconds_to_vote")}
    hidden |= {"ts": "2026-11-20T12:00:09+00:00", "prompt_set": None}
    chalogged = ("link_kind", "link", "links", "content", "hash", "policy", "all_votes")
    fake = dict.fromkeys(counted, "") | {n: counted[n] for n in chalogged}
    fake |= {"left_out": "broken answer", "excluded_vote": json.dumps(hidden)}
    place = rows.index(counted)
    rows[place] = fake
    assert "has 'broken answer' in left_out" in verified(rows, file)
    for transcript in (other["transcript"], "[]"):
        rows[place] = fake | {"transcript": transcript}
        assert "transcript is" in verified(rows, file)


def test_a_transcript_beside_another_reason_is_found(
    export: tuple[list[dict[str, str]], Path],
) -> None:
    rows, file = export
    of(rows, "b3")["left_out"] = "a known bot"
    assert "transcript is" in verified(rows, file)
    of(rows, "b3").update(left_out="broken answer", transcript="")
    assert "by the policy and the days it is None" in verified(rows, file)


def test_a_backup_and_the_commands_follow_default_v3(
    old: Path, command: Command, tmp_path: Path
) -> None:
    back_up(f"sqlite:///{old}", tmp_path / "backup.db", lambda _done, _total: None)
    restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/new.db", lambda _d, _t: None)
    by_hand = {"a known bot": 1, "skipped": 1}
    for file in ("old.db", "new.db"):
        url = f"sqlite:///{tmp_path / file}"
        shown = command("status", "--database", url).stdout
        assert "default-v3 excludes 9 votes: 7 broken answer, 1 a known bot, 1 skipped." in shown
        assert command("verify", url).returncode == 0
        for words, excluded in (
            ([], by_hand | {"broken answer": 7}),
            (["--policy", "default-v2"], by_hand),
        ):
            rated = json.loads(command("rate", url, *words, "--format", "json").stdout)
            assert rated["votes"]["dropped"] == excluded
        status = json.loads(command("status", "--database", url, "--format", "json").stdout)
        assert status["excluded"] == by_hand | {"broken answer": 7}
