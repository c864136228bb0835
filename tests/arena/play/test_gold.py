"""Gold battles: played as any other, known as such after the vote alone, and never counted."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from sqlmodel import col, select

from arena.domain.model import GONE_ON, OWNER
from arena.domain.vote import DEFAULT
from arena.errors import SettingsError
from arena.parts import _gold
from arena.play.matchmaking import Rules
from arena.play.pace import (
    MOST_RIGHT,
    Pacer,
    Paces,
    Tempo,
    Writer,
    Written,
    _shown,
    features,
    write,
)
from arena.play.studies import GoldPairs, written
from arena.settings import read_settings
from arena.store import battles, blocks, log
from arena.store.store import Store
from arena.store.tables import BattleRow
from judge.tables.cases import GoldPair
from rating.outcome import Outcome
from tests.command import Command
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.serving import Served, Visitor, serve, served_by, side_text
from tests.sqlite import new_sqlite

RIGHT, WRONG = "It is seven. " * 9, "It is eight, and here is why. " * 9
PROMPTS = [f"How much is {n} plus {7 - n}?\nSay it in words." for n in range(3)]


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.jsonl"
    rows = [
        {
            "prompt": prompt,
            "model_a": "granite",
            "response_a": RIGHT,
            "model_b": "marble",
            "response_b": WRONG,
            "gold": "model_a",
        }
        for prompt in PROMPTS
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    models = {name: Behaviour(text=f"So says {n}. " * 20) for n, name in enumerate("xyz")}
    with faulty_server(models) as one:
        yield one


@pytest.fixture
def served(
    server: FaultyServer, tmp_path: Path, gold: Path, database_url: str
) -> Iterator[Served]:
    with served_by(server, tmp_path, gold=gold, gold_share=0.05, running_per_voter=60) as one:
        yield one


def battles_before(visitor: Visitor, n: int = 19) -> None:
    """Begin battles until the next may be a gold one, at a share of a twentieth."""
    for _ in range(n):
        visitor.open()


def sets(served: Served) -> list[str | None]:
    with closing(Store(served.database)) as store, store.reading() as session:
        return list(session.exec(select(BattleRow.prompt_set).order_by(col(BattleRow.id))))


def shape(value: Any) -> Any:
    """Give what there is of a value except its texts and numbers."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else type(value).__name__


def test_a_gold_battle_is_as_any_other_until_the_vote_and_said_after_it(served: Served) -> None:
    with served.visitor() as visitor:
        battles_before(visitor)
        received = len(visitor.received)
        battle = visitor.open(PROMPTS[0])
        # Whether the rest is offered hangs on when the models end, in any battle.
        events, ordinary = (
            [event for event in visitor.follow(one) if event.event != "rest"]
            for one in (battle, visitor.open("Why?"))
        )
        assert {side_text(events, side) for side in "ab"} == {RIGHT, WRONG}
        assert {e.event for e in events} == {e.event for e in ordinary}
        assert {tuple(e.data) for e in events} == {tuple(e.data) for e in ordinary}
        assert shape(visitor.look(battle)) == shape(visitor.look(visitor.play()))
        before = "".join(visitor.received[received:])
        assert not any(word in before for word in ("gold", "granite", "marble", OWNER))
        receipt = visitor.vote(battle, "model_a").json()
        assert receipt["gold"] is True
        assert {receipt["models"][side]["name"] for side in "ab"} == {"granite", "marble"}
        assert visitor.look(battle)["vote"] == receipt
        assert visitor.vote(visitor.play(), "tie").json()["gold"] is False


def test_gold_battles_are_at_most_their_share_and_nobody_has_one_twice(served: Served) -> None:
    with served.visitor() as visitor, served.visitor() as other:
        for turn in range(39):
            visitor.open(PROMPTS[0] if turn % 2 else PROMPTS[0].upper())
        marked = [one for one in sets(served) if one]
        assert len(marked) == 1
        assert marked[0] in ("gold:model_a", "gold:model_b")
        visitor.open(PROMPTS[0])
        assert len([one for one in sets(served) if one]) == 1, "the same prompt again"
        other.open(f"  {PROMPTS[0]} ")
        assert len([one for one in sets(served) if one]) == 2
        battles_before(visitor, 18)
        visitor.open(PROMPTS[1])
        assert len([one for one in sets(served) if one]) == 3, "another prompt"


@pytest.mark.parametrize("how", ["turns", "regenerate"])
def test_models_of_the_roster_go_on_in_a_gold_battle_and_it_counts_no_more(
    served: Served, server: FaultyServer, how: str
) -> None:
    with served.visitor() as visitor:
        battles_before(visitor)
        battle = visitor.play(PROMPTS[1])
        asked = len(server.requests)
        body = {"json": {"prompt": "And then?"}} if how == "turns" else {}
        assert visitor.post(f"/api/v1/battles/{battle}/{how}", **body).status_code == 201
        assert visitor.follow(battle)[-1].event == "ready"
        assert len(server.requests) == asked + 2
        if how == "turns":
            words = [message["content"] for message in server.requests[-1].body["messages"]]
            assert words[0] == PROMPTS[1]
            assert words[1] in (RIGHT, WRONG)
        receipt = visitor.vote(battle, "model_b").json()
        assert receipt["gold"] is True
        assert {receipt["models"][side]["id"][:3] for side in "ab"} == {"id-"}
        assert sets(served)[-1] == GONE_ON


def test_votes_on_gold_battles_are_left_out_of_every_board_and_file(
    server: FaultyServer, gold: Path, database_url: str, tmp_path: Path, command: Command
) -> None:
    settings = {"gold": gold, "gold_share": 0.05, "running_per_voter": 60}
    with (
        served_by(server, tmp_path, database=database_url, **settings) as served,
        served.visitor() as visitor,
    ):
        battles_before(visitor, 18)
        visitor.vote(visitor.play(), "model_a")
        visitor.vote(visitor.play(PROMPTS[2]), "model_a")
        board = visitor.board(votes=1)
        assert board["left_out"] == {"gold battle": 1}
        everything = visitor.get("/models").text + visitor.get("/leaderboard").text
        assert "granite" not in everything
    with closing(Store(served.database)) as store, store.reading() as session:
        for votes in (blocks.columns(session, DEFAULT), blocks.coded(session, DEFAULT)):
            assert [why for why in votes.values("left_out") if why] == ["gold battle"]
            assert {*votes.values("winner")} == {"model_a"}
        shown = battles.counted(session, DEFAULT)
        assert shown is not None
        assert len(shown.votes) == 1
        assert not [one for one in log.models(session) if one.id.startswith(OWNER)]
    file = tmp_path / "votes.parquet"
    command("export", "votes", "--to", str(file), "--database", served.database)
    assert command("verify", str(file)).returncode == 0
    checked = command("verify", served.database)
    assert checked.returncode == 0, checked.stdout
    reasons = duckdb.read_parquet(str(file)).project("left_out").fetchall()
    assert sorted(str(why) for (why,) in reasons) == ["None", "gold battle"]


def pair(prompt: str = "Which?", right: Outcome = Outcome.A, owner: str = "marble") -> GoldPair:
    return GoldPair(prompt, ("granite", owner), (RIGHT, WRONG), right)


def test_the_right_side_is_that_of_the_right_answer_wherever_it_stands() -> None:
    marked = set()
    for seed in range(20):
        pairs = GoldPairs([pair(right=Outcome.B, owner="granite")], 0.05, Random(seed))
        for _ in range(19):
            assert pairs.take("Why?", wanted=False) is None
        battle = pairs.take(" Which? ", wanted=True)
        assert battle is not None
        side = next(side for side, text in battle.texts.items() if text == WRONG)
        assert battle.prompt_set == f"gold:model_{side}"
        assert len({model.id for model in battle.models.values()}) == 2
        assert {model.name for model in battle.models.values()} == {"granite"}
        again = pairs.again("Which?", {side: one.id for side, one in battle.models.items()})
        assert again is not None
        assert (again.texts, again.prompt_set) == (battle.texts, battle.prompt_set)
        marked.add(battle.prompt_set)
    assert len(marked) == 2


def test_a_share_of_none_offers_and_plays_nothing() -> None:
    pairs = GoldPairs([pair()], 0.0, Random(1))
    assert pairs.offered() == ()
    assert not any(pairs.take("Which?", wanted=True) for _ in range(200))


def test_offers_are_prompts_of_the_file_and_stay_for_a_while() -> None:
    pairs = GoldPairs([pair(f"Which of {n}?") for n in range(50)], 0.03, Random(1))
    offered = pairs.offered()
    assert len({*offered}) == 3
    assert offered == pairs.offered()
    assert all(pairs.untouched(f" {prompt}\n") == prompt for prompt in offered)
    assert pairs.untouched(offered[0] + "!") is None


def test_a_file_that_is_no_gold_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text('{"prompt": "x", "response_a": "1", "response_b": "2"}', encoding="utf-8")
    with (
        pytest.raises(SettingsError, match=r"ARENA_GOLD: .*no column 'gold'"),
        serve(gold=path, database=f"sqlite:///{tmp_path}/a.db"),
    ):
        pass


def test_gold_pairs_of_the_longest_texts_are_played_and_longer_ones_are_refused(
    gold: Path, tmp_path: Path
) -> None:
    limits = {"max_prompt_chars": len(PROMPTS[0]), "max_answer_chars": len(WRONG)}
    with closing(Store(new_sqlite(tmp_path))) as store:
        pairs = _gold(read_settings(gold=gold, **limits), store)
        assert [pairs.untouched(prompt) for prompt in PROMPTS] == PROMPTS
        for name in limits:
            shorter = read_settings(gold=gold, **limits | {name: limits[name] - 1})
            with pytest.raises(SettingsError, match="every pair is longer than a prompt"):
                _gold(shorter, store)


@pytest.mark.slow
def test_times_and_sizes_do_not_tell_a_gold_battle() -> None:
    """A random forest that reads when characters came is no better than a coin."""
    rng, draws, rules = np.random.default_rng(0), Random(0), Rules()
    writers = {"slow": Writer(100, 1.0), "quick": Writer(1000), "even": Writer(300, 0.2)}
    paces = Paces(rules, [*writers])
    paces.recall({m: [write(w, rng).took for _ in range(100)] for m, w in writers.items()})
    is_gold = np.arange(1200) % 2 == 0
    seen = []
    for gold in is_gold:
        names = [str(name) for name in rng.choice([*writers], 2, replace=False)]
        sides = [write(writers[name], rng) for name in names]
        if gold:
            sides = [
                replayed(int(side.until[-1]), paces.tempo_of(name, int(side.until[-1]), draws))
                for name, side in zip(names, sides, strict=True)
            ]
        a, b = sides
        events = np.array([*_shown(a, b, Pacer(rules.pacing, paces.of(names)), rules.tick_s)])
        seen.append(features(events))
    forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
    assert cross_val_score(forest, np.array(seen), is_gold, cv=5).mean() < MOST_RIGHT


def replayed(length: int, tempo: Tempo) -> Written:
    """Give when a recorded answer of a length comes at a tempo."""
    pieces = [*written("x" * length, tempo)]
    at_s = np.array([piece.at_s for piece in pieces])
    until = np.cumsum([len(piece.text) for piece in pieces])
    return Written(np.append(at_s, at_s[-1]), np.append(until, until[-1]))
