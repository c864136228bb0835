"""Votes on answers that name a model as their author: counted, and told at each board."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from arena.boards.integrity import decide, name_answers
from arena.boards.leaderboard import Leaderboard
from arena.catalogue import Language
from arena.domain.battle import BattleState
from arena.domain.board_view import SelfNaming
from arena.domain.vote import DEFAULT, NAMING, WITH_BROKEN, Choice, Tagger
from arena.play.upkeep import TAGGING, label_self_naming
from arena.store import labels
from arena.store.store import Store
from arena.store.verify import verify
from judge.labels import accuracy
from tests.arena.pages.page import board_page, text
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, new_battle

ANSWERS = {
    "right": ("I am Basalt, a language model.", "Blue."),
    "wrong": ("Blue. " * 150 + "I am GPT-4, made by OpenAI.", "Blue."),
    "both": ("I am GPT-4, made by OpenAI.", "As Claude, I see blue."),
    "other": ("GPT-4 says that it is blue.", 'He said: "I am Claude."'),
    "none": ("Blue. " * 170 + "I am GPT-4, made by OpenAI.", "Blue."),
    "filtered": ("I am GPT-4, made by OpenAI.", "Bl"),
    "skipped": ("I am GPT-4, made by OpenAI.", "Blue."),
}


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with closing(Store(database_url)) as made:
        made.hold_lease()
        made.register(MODELS, NOW)
        for name, answers in ANSWERS.items():
            vote_on(made, name, answers)
        yield made


def vote_on(store: Store, name: str, answers: tuple[str, str]) -> None:
    store.open_battle(new_battle(name))
    reason = "content_filter" if name == "filtered" else "stop"
    a, b = map(complete, answers)
    ends = {A1: a, B1: replace(b, finish_reason=reason)}
    store.close_answers(name, BattleState.READY, ends, message=None, now=NOW)
    store.cast(ballot(name, Choice.SKIP if name == "skipped" else Choice.A))


def test_the_labels_are_of_the_rules_that_there_are() -> None:
    assert NAMING.version == accuracy.VERSION
    assert NAMING != TAGGING


def test_a_board_counts_votes_on_answers_that_name_a_model(store: Store) -> None:
    seconds = [0.0]
    board = Leaderboard(store, DEFAULT, lambda: NOW, clock=lambda: seconds[0])
    old = [(one.id, NAMING.name, "both", None) for one in store.read(labels.unlabelled, NAMING, 0)]
    store.write(labels.add, old, Tagger(NAMING.name, "of earlier rules"), NOW)
    assert board.refresh().naming == SelfNaming(0, {})
    label_self_naming(store, lambda: NOW)
    with store.reading() as session:
        assert labels.self_naming(session, DEFAULT) == SelfNaming(3, {"basalt": 3, "quartz": 1})
        with_broken = labels.self_naming(session, WITH_BROKEN)
        assert with_broken == SelfNaming(4, {"basalt": 4, "quartz": 1})
        assert labels.taggers(session) == []
    vote_on(store, "one more", ANSWERS["none"])
    seconds[0] = 1e6
    made = board.refresh()
    assert made.naming == SelfNaming(3, {"basalt": 3, "quartz": 1})
    assert (made.votes, dict(made.left_out)) == (6, {"broken answer": 1, "skipped": 1})
    assert made.excluded == 1, "a skip is none"
    assert Leaderboard(store, DEFAULT, lambda: NOW).refresh().naming == made.naming


def test_excluded_votes_on_such_answers_are_not_counted(store: Store) -> None:
    label_self_naming(store, lambda: NOW)
    decide(store, "exclude", ["right"], "told", "terminal", NOW)
    with store.reading() as session:
        assert labels.self_naming(session, DEFAULT) == SelfNaming(2, {"basalt": 2, "quartz": 1})
        assert verify(session).problem is None
    named = name_answers(store, NOW, leave_out=False)
    assert named["named"] == len({"right", "wrong", "both", "filtered", "skipped", "none"})
    assert name_answers(store, NOW, leave_out=True)["applied"]["held"], "more than a fifth"


def test_votes_from_before_are_labelled_once(store: Store) -> None:
    assert label_self_naming(store, lambda: NOW) == len(ANSWERS)
    assert label_self_naming(store, lambda: NOW) == 0


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        (
            Language.EN,
            "3 of 5 counted votes are on an answer that names a model as its author, rightly or "
            "wrongly. Such votes count. By the model that gave the answer: "
            "Basalt (3), Quartz (1).",
        ),
        (
            Language.DE,
            "3 von 5 gezählten Stimmen gelten einer Antwort, die zu Recht oder zu Unrecht ein "
            "Modell als ihren Urheber nennt. Solche Stimmen zählen. Nach dem Modell, von dem die "
            "Antwort ist: Basalt (3), Quartz (1).",
        ),
    ],
)
def test_the_leaderboard_says_so_and_its_policy_that_they_count(
    store: Store, language: Language, sentence: str
) -> None:
    label_self_naming(store, lambda: NOW)
    board = Leaderboard(store, DEFAULT, lambda: NOW).refresh()
    assert sentence in text(board_page(board, "data", language=language))


def test_the_policy_says_whether_they_count() -> None:
    rule = "Votes on an answer that names a model as its author, rightly or wrongly, count."
    assert rule in DEFAULT.rules
    assert rule not in WITH_BROKEN.rules
