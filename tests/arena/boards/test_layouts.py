"""Battles in the columns of other tools are read back as what was asked, answered and chosen."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.boards.export import LAYOUTS, export_battles
from arena.domain.battle import BattleState, Side
from arena.domain.model import GOLD
from arena.domain.vote import DEFAULT, Choice, Voter
from arena.store import erasing, log
from arena.store.chain import AnswerKey
from arena.store.log import LoggedBattle
from arena.store.store import Store
from judge.case import Message
from judge.tables.annotations import read_annotations
from judge.tables.cases import read_cases, read_labels
from rating import read_votes
from rating.errors import DataError
from rating.tables.files import json_or_text
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, exclude, new_battle
from tests.sqlite import new_sqlite

HOSTILE = [
    'He said "no", and\r\n=1+1\t\x07',
    "שלום\u202e, مرحبا, 👩\u200d🚀",
    '[{"role": "user", "content": "x"}]',
    "{}",
    "x" * 100_000,
    "'; DROP TABLE vote; --",
]
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40
).filter(str.strip) | st.sampled_from(HOSTILE)
TURNS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> LoggedBattle:
    """A battle of three turns as it lies in the log, in which texts can be replaced."""
    store = Store(new_sqlite(tmp_path_factory.mktemp("log")))
    store.hold_lease()
    store.register(MODELS, NOW)
    store.open_battle(new_battle("b"))
    for turn in (1, 2, 3):
        if turn > 1:
            store.add_turn("b", "ada", "And?", NOW)
        words = {AnswerKey(turn, side, 1): complete(f"{side}{turn}") for side in Side}
        store.close_answers("b", BattleState.READY, words, message=None, now=NOW)
    store.cast(ballot("b"))
    with store.reading() as session:
        (battle,) = log.battles(session, DEFAULT, voted=True)
    store.close()
    return battle


def with_texts(
    battle: LoggedBattle, turns: list[tuple[str, str, str]], choice: Choice
) -> LoggedBattle:
    """Put other texts, and another choice, in the place of those of a battle."""
    words = {(n, side): text[place] for n, text in enumerate(turns, 1) for place, side in SIDES}
    asked = [row._asdict() for row in battle.turns[: len(turns)]]
    answers = [row._asdict() for row in battle.answers if row.turn <= len(turns)]
    return LoggedBattle(
        row=as_row(battle.row._asdict() | {"winner": choice, "turn": len(turns)}),
        turns=[as_row(row | {"prompt": turns[row["turn"] - 1][0]}) for row in asked],
        answers=[as_row(row | {"text": words[row["turn"], row["side"]]}) for row in answers],
        exclusions=(),
        labels={},
        remarks=None,
    )


SIDES = ((1, "a"), (2, "b"))


class Known:
    """A row of the log, with other values."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def _asdict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def as_row(values: dict[str, Any]) -> Any:
    return Known(values)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@settings(max_examples=10, deadline=None)
@given(turns=TURNS, choice=st.sampled_from([Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD]))
def test_a_conversation_in_chatbot_arena_s_columns_comes_back_as_it_was(
    logged: LoggedBattle,
    tmp_path_factory: pytest.TempPathFactory,
    ending: str,
    turns: list[tuple[str, str, str]],
    choice: Choice,
) -> None:
    path = tmp_path_factory.mktemp("out") / f"theirs.{ending}"
    battle = with_texts(logged, turns, choice)
    export_battles([battle], DEFAULT, path, "chatbot-arena", whole=True)
    table = read_annotations(path)
    for place, side in SIDES:
        cell = table.need(f"conversation_{side}")[0]
        messages = json_or_text(cell) if isinstance(cell, str) else cell
        pairs = [(("user", turn[0]), ("assistant", turn[place])) for turn in turns]
        expected = [message for pair in pairs for message in pair]
        assert [(one["role"], one["content"]) for one in messages] == expected
    assert read_votes(path).data.models == ("basalt", "quartz")
    assert read_annotations(path, peers=True).need("winner")[0] == choice.value
    if len(turns) == 1:
        (case,) = read_cases([path])
        assert case.case.prompt == (Message("user", turns[0][0]),)
        assert (case.case.response_a, case.case.response_b) == turns[0][1:]


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
@settings(max_examples=10, deadline=None)
@given(turns=TURNS, choice=st.sampled_from([Choice.A, Choice.B]))
def test_a_preference_of_trl_comes_back_as_what_was_chosen(
    logged: LoggedBattle,
    tmp_path_factory: pytest.TempPathFactory,
    ending: str,
    turns: list[tuple[str, str, str]],
    choice: Choice,
) -> None:
    path = tmp_path_factory.mktemp("out") / f"preferences.{ending}"
    export_battles([with_texts(logged, turns, choice)], DEFAULT, path, "trl", whole=True)
    ((prompt, chosen, rejected),) = duckdb.execute(f"FROM '{path}'").fetchall()
    places = (1, 2) if choice is Choice.A else (2, 1)
    for rest, place in zip((chosen, rejected), places, strict=True):
        talk = [(one["role"], one["content"]) for one in prompt + rest]
        expected = [
            (role, turn[at]) for turn in turns for role, at in (("user", 0), ("assistant", place))
        ]
        assert talk == expected
    (case,) = read_cases([path])
    labels = read_labels(path)
    assert labels is not None
    asked, a, b = case.case.prompt, case.case.response_a, case.case.response_b
    assert asked[-1].content == turns[-1][0]
    first, other = (a, b) if labels[0] > 0 else (b, a)
    assert (first, other) == tuple(turns[-1][place] for place in places)
    assert {*case.models} == {"chosen", "rejected"}
    assert (case.models[0] == "chosen") == (labels[0] > 0)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Eight votes of which five count, three of these for one side, and one is of two turns."""
    made = Store(database_url)
    made.hold_lease()
    made.register(MODELS, NOW)
    choices = (Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD, Choice.SKIP, Choice.A, Choice.A)
    for n, choice in enumerate(choices):
        made.open_battle(new_battle(f"b{n}", Voter(f"v{n}")))
        words = {A1: complete(f"a{n}, ask ada@example.com"), B1: complete(f"b{n}")}
        made.close_answers(f"b{n}", BattleState.READY, words, message=None, now=NOW)
        if n == 1:
            made.add_turn("b1", "v1", "And at night?", NOW)
            second = {AnswerKey(2, side, 1): complete(f"{side} is dark.") for side in Side}
            made.close_answers("b1", BattleState.READY, second, message=None, now=NOW)
        made.cast(ballot(f"b{n}", choice, voter=f"v{n}"))
    exclude(made, "b5", DEFAULT, "a ring")
    yield made
    made.close()


def preferences(store: Store, path: Path) -> tuple[Any, list[dict[str, Any]]]:
    with store.reading() as session:
        battles = log.battles(session, DEFAULT, voted=True)
        written = export_battles(battles, DEFAULT, path, "trl")
    lines = path.read_text(encoding="utf-8").splitlines()
    return written, [json.loads(line) for line in lines]


def test_only_what_counts_and_is_preferred_is_a_preference(store: Store, tmp_path: Path) -> None:
    written, rows = preferences(store, tmp_path / "p.jsonl")
    assert [row["chosen"][-1]["content"] for row in rows] == [
        "a0, ask [mail]",
        "b is dark.",
        "a6, ask [mail]",
    ]
    assert written.rows == 3
    assert written.votes == {None: 5, "skipped": 1, "a ring": 1}
    assert written.unfit == {"no answer is preferred": 2}
    assert "no models" in written.lacks


def test_two_answers_that_part_at_once_leave_the_first_question_as_the_prompt(
    store: Store, tmp_path: Path
) -> None:
    _, rows = preferences(store, tmp_path / "p.jsonl")
    (row,) = (row for row in rows if len(row["chosen"]) > 1)
    assert [one["role"] for one in row["prompt"]] == ["user"]
    assert [one["role"] for one in row["chosen"]] == ["assistant", "user", "assistant"]
    assert row["chosen"][1] == row["rejected"][1] == {"role": "user", "content": "And at night?"}


def test_what_was_erased_is_nobodys_preference(store: Store, tmp_path: Path) -> None:
    with store.writing() as session:
        erasing.erase_words(session, erasing.battles_of(session, ["v0"]), [], NOW)
    written, rows = preferences(store, tmp_path / "p.jsonl")
    assert len(rows) == 2
    assert written.unfit == {"no answer is preferred": 2, "words were erased": 1}


def test_messages_are_not_written_into_a_csv(store: Store, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"p\.csv.*'trl'.*\.parquet or \.jsonl"):
        export_battles([], DEFAULT, tmp_path / "p.csv", "trl")
    assert {*LAYOUTS} == {"arena", "answers", "chatbot-arena", "trl"}


def test_a_gold_battle_is_nobodys_preference(logged: LoggedBattle, tmp_path: Path) -> None:
    gold = with_texts(logged, [("?", "right", "wrong")], Choice.A)
    gold.row.prompt_set = GOLD
    written = export_battles([gold], DEFAULT, tmp_path / "p.jsonl", "trl")
    assert (written.rows, written.votes[None]) == (0, 0)
