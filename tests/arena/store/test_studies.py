"""Who is given which item of a study, and that no item gets more ratings than it wants."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import update

from arena.domain.study import (
    APART,
    HOLD,
    Next,
    Past,
    Place,
    PlannedItem,
    Shown,
    Stage,
    StudyKind,
    StudyPlan,
    StudyRemarks,
    next_of,
)
from arena.domain.vote import Voter
from arena.errors import RatingRefusedError, UnknownStudyError
from arena.store import erasing, studies
from arena.store.store import Store
from arena.store.tables import StudyRow, VoterRow
from judge.case import BLIND, AgentRun, Message, Step
from judge.tables.items import RatingItem, Response
from tests.sqlite import new_sqlite
from tests.studies import NOW, item, planned


def create(store: Store, items: list[PlannedItem], **plan: object) -> None:
    """Write a study of which every run draws the same items in the same order."""
    terms: dict[str, object] = {"name": "s", "raters_per_item": 2} | plan
    with store.writing() as session:
        studies.create(session, StudyPlan(**terms), items, NOW)  # type: ignore[arg-type]
        session.execute(update(StudyRow).values(seed="1"))


def give(store: Store, who: str, now: datetime = NOW) -> tuple[Next, Shown | None]:
    with store.writing() as session:
        return studies.give(session, "s", Voter(who), now)


def rate(store: Store, who: str, shown: Shown, choice: str = "a", now: datetime = NOW) -> None:
    with store.writing() as session:
        studies.rate(session, "s", who, shown.token, str(uuid.uuid4()), choice, now)


def rate_all(
    store: Store, who: str, choose: Callable[[Shown], str] = lambda shown: "a"
) -> list[Shown]:
    """Rate until nothing is left, a minute each."""
    every: list[Shown] = []
    while True:
        now = NOW + timedelta(minutes=len(every))
        _, shown = give(store, who, now)
        if shown is None:
            return every
        rate(store, who, shown, choose(shown), now)
        every.append(shown)


def rows(store: Store) -> list[dict[str, object]]:
    with store.reading() as session:
        return list(studies.rows(session, "s"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(new_sqlite(tmp_path))) as opened:
        yield opened


def test_no_item_gets_more_ratings_than_wanted_when_many_rate_at_once(database_url: str) -> None:
    with closing(Store(database_url)) as store:
        create(store, planned(4), raters_per_item=2)

        def everything(who: str) -> int:
            return len(rate_all(store, who))

        with ThreadPoolExecutor(6) as pool:
            n = sum(pool.map(everything, [f"voter-{k}" for k in range(6)]))
        given = Counter(row["item"] for row in rows(store))
        assert n == 8
        assert given == {f"i{k}": 2 for k in range(4)}
        assert len({(row["item"], row["rater"]) for row in rows(store)}) == 8


def test_a_rating_of_a_key_is_written_once_and_another_does_not_replace_it(
    database_url: str,
) -> None:
    with closing(Store(database_url)) as store:
        create(store, planned(2))
        _, shown = give(store, "ada")
        assert shown is not None
        for _ in range(2):
            with store.writing() as session:
                studies.rate(session, "s", "ada", shown.token, "one-key-0", "a", NOW)
        with pytest.raises(RatingRefusedError, match="already"), store.writing() as session:
            studies.rate(session, "s", "ada", shown.token, "other-key", "b", NOW)
        (row,) = rows(store)
        assert row["choice"] == ("model_a" if row["sides"] == "ab" else "model_b")


def test_an_item_is_reserved_for_minutes_and_goes_to_others_then(store: Store) -> None:
    create(store, planned(1), raters_per_item=1)
    _, shown = give(store, "ada")
    assert shown is not None
    assert give(store, "ada", NOW + HOLD / 2)[1] == shown, "looking again reserves no longer"
    assert give(store, "bob", NOW + timedelta(minutes=10))[0].stage is Stage.FULL
    later = NOW + timedelta(minutes=10, seconds=1)
    _, other = give(store, "bob", later)
    assert other is not None
    rate(store, "bob", other, now=later)
    with pytest.raises(RatingRefusedError, match="ten minutes"):
        rate(store, "ada", shown, now=later)
    assert give(store, "ada", later)[0].stage is Stage.COMPLETE
    assert [row["rater"] for row in rows(store)] == ["r02"]


def test_who_leaves_gives_others_the_item_and_comes_back_to_what_is_free(store: Store) -> None:
    create(store, planned(2), raters_per_item=1)
    _, first = give(store, "ada")
    assert first is not None
    rate(store, "ada", first)
    give(store, "ada")
    assert give(store, "bob")[0].stage is Stage.FULL
    for _ in range(2):
        with store.writing() as session:
            studies.leave(session, "s", "ada")
            studies.leave(session, "s", "nobody")
    _, again = give(store, "ada")
    assert again is not None
    rate(store, "ada", again)
    assert [row["item"] for row in rows(store)] == ["i0", "i1"]
    with pytest.raises(UnknownStudyError), store.writing() as session:
        studies.leave(session, "other", "ada")


def test_who_waits_for_a_place_does_not_look_at_the_figures_by_mistake(store: Store) -> None:
    create(store, planned(2), raters_per_item=1)
    _, shown = give(store, "ada")
    assert shown is not None
    rate(store, "ada", shown)
    give(store, "bob")
    assert give(store, "ada")[0].stage is Stage.FULL
    with store.writing() as session:
        assert not studies.look(session, "s", Voter("ada"), NOW)


@pytest.mark.parametrize("opened", [False, True])
def test_what_is_to_go_counts_the_gold_items_and_falls_with_each_rating(
    store: Store, opened: bool
) -> None:
    create(store, planned(30, gold=12, pilot=0 if opened else 15), pilot=0 if opened else 15)
    shown = rate_all(store, "ada")
    assert [one.left for one in shown] == [*range(len(shown), 0, -1)]
    kinds = Counter(row["kind"] for row in rows(store))
    assert kinds["gold"] > 2
    assert len(shown) == (42 if opened else 15 + kinds["gold"])


def test_who_comes_back_late_goes_on_where_nobody_took_the_place(store: Store) -> None:
    create(store, planned(2), raters_per_item=1)
    _, shown = give(store, "ada")
    late = NOW + 3 * HOLD
    _, again = give(store, "ada", late)
    assert shown is not None
    assert again is not None
    assert again.token == shown.token
    rate(store, "ada", again, now=late + timedelta(seconds=9))
    assert [row["seconds"] for row in rows(store)] == [9.0]


def test_items_are_finished_one_after_the_other(store: Store) -> None:
    create(store, planned(3), raters_per_item=2)
    first, second = give(store, "ada")[0], give(store, "bob")[0]
    assert first.key == second.key
    assert give(store, "eve")[0].key != first.key


@pytest.mark.slow
def test_repeats_come_back_with_sides_exchanged_after_twenty_others(store: Store) -> None:
    create(store, planned(120), raters_per_item=1, repeats=0.1)
    rate_all(store, "ada")
    every = rows(store)
    first = {row["item"]: place for place, row in enumerate(every) if not row["repeat"]}
    again = [(place, row) for place, row in enumerate(every) if row["repeat"]]
    assert 11 <= len(again) <= 13
    for _, row in again:
        before = every[first[row["item"]]]
        assert {row["sides"], before["sides"]} == {"ab", "ba"}
        assert before["choice"] != row["choice"]  # always the left one
    apart = [place - first[row["item"]] - 1 for place, row in again]
    assert min(apart) >= APART or apart.index(min(apart)) >= len(apart) - 4
    assert [row["item"] for row in every if not row["repeat"]] == [f"i{k}" for k in range(120)]


@pytest.mark.slow
def test_each_rater_is_given_each_gold_item_once_somewhere_among_the_others(store: Store) -> None:
    create(store, planned(40, gold=5), raters_per_item=3)
    places = []
    for who in ("ada", "bob", "eve"):
        before = len(rows(store))
        rate_all(store, who)
        own = (
            rows(store)[before:]
            if who == "ada"
            else [row for row in rows(store) if row["rater"] == {"bob": "r02", "eve": "r03"}[who]]
        )
        kinds = [row["kind"] for row in own]
        assert kinds.count("gold") == 5
        assert len({row["item"] for row in own}) == 45
        places.append([place for place, kind in enumerate(kinds) if kind == "gold"])
    assert len({tuple(some) for some in places}) == 3
    assert max(places[0]) > 15


def test_the_rest_waits_until_it_is_opened_after_a_pilot(store: Store) -> None:
    create(store, planned(5, pilot=2), pilot=2, raters_per_item=1)
    assert len(rate_all(store, "ada")) == 2
    assert give(store, "ada")[0].stage is Stage.WAITING
    with store.writing() as session:
        assert studies.open_rest(session, "s")
        assert not studies.open_rest(session, "s")
    assert len(rate_all(store, "ada")) == 3
    assert Counter(row["kind"] for row in rows(store)) == {"pilot": 2, "item": 3}


@pytest.mark.parametrize(("right", "stage"), [(2, Stage.DONE), (1, Stage.FAILED)])
def test_a_qualification_is_passed_before_rating_and_its_score_is_held(
    store: Store, right: int, stage: Stage
) -> None:
    create(store, planned(3, qualification=2), pass_share=0.9, raters_per_item=1)
    choices = iter(["tie"] * right + ["a"] * (2 - right) + ["a"] * 3)
    rate_all(store, "ada", lambda shown: next(choices))
    assert give(store, "ada")[0].stage is stage
    with store.reading() as session:
        assert studies.raters(session, "s") == [("r01", right / 2, right == 2)]
    assert sum(row["kind"] == "item" for row in rows(store)) == (3 if right == 2 else 0)


def test_who_becomes_known_goes_on_as_the_rater_they_were(store: Store) -> None:
    create(store, planned(3), raters_per_item=1)
    _, shown = give(store, "ada")
    assert shown is not None
    rate(store, "ada", shown)
    with store.writing() as session:
        session.add(VoterRow(id="person", kind="login", created=NOW))
        session.get_one(VoterRow, "ada").person = "person"
    rate_all(store, "person")
    assert [row["rater"] for row in rows(store)] == ["r01"] * 3


def test_who_rated_as_two_before_they_were_known_is_given_nothing_twice(store: Store) -> None:
    create(store, planned(3), raters_per_item=9)
    for who in ("desktop", "phone"):
        _, shown = give(store, who)
        assert shown is not None
        rate(store, who, shown)
    with store.writing() as session:
        session.add(VoterRow(id="person", kind="login", created=NOW))
        for who in ("desktop", "phone"):
            session.get_one(VoterRow, who).person = "person"
    rate_all(store, "person")
    again = Counter(row["item"] for row in rows(store))
    assert again == {"i0": 2, "i1": 1, "i2": 1}  # the first was rated by both, unknown then


def test_who_looks_at_the_figures_rates_no_more_and_who_rates_does_not_look(store: Store) -> None:
    create(store, planned(2), raters_per_item=1)
    _, shown = give(store, "ada")
    assert shown is not None
    with store.writing() as session:
        assert not studies.look(session, "s", Voter("ada"), NOW)
        assert studies.look(session, "s", Voter("bob"), NOW)
    with pytest.raises(RatingRefusedError, match="seen the figures"):
        give(store, "bob")
    rate_all(store, "ada")
    with store.writing() as session:
        assert studies.look(session, "s", Voter("ada"), NOW)


def test_a_ranking_is_written_by_models_with_ties_and_must_place_all(store: Store) -> None:
    three = [PlannedItem(StudyKind.ITEM, item(0, answers=3))]
    create(store, three)
    _, shown = give(store, "ada")
    assert shown is not None
    texts = [answer[0]["content"] for answer in shown.answers]
    places = [texts.index("Answer 2 to 0"), texts.index("Answer 0 to 0")]
    rest = texts.index("Answer 1 to 0")
    for wrong in ("a", [[0], [1]], [[0, 1], [1, 2]]):
        with pytest.raises(RatingRefusedError, match="no answer"), store.writing() as session:
            studies.rate(session, "s", "ada", shown.token, "key", wrong, NOW)
    with store.writing() as session:
        studies.rate(session, "s", "ada", shown.token, "key", [[rest], places], NOW)
    (row,) = rows(store)
    assert row["ranking"] == '[["model-1"], ["model-0", "model-2"]]'
    assert row["choice"] is None
    with store.reading() as session:
        back = studies.rated(session, "s", "ada", shown.token, NOW)
    assert back.ranking == [[rest], sorted(places, key=lambda p: texts[p])]


def test_remarks_are_written_in_the_sides_of_the_item_and_the_last_word_counts(
    store: Store,
) -> None:
    create(store, planned(1))
    _, shown = give(store, "ada")
    assert shown is not None
    with pytest.raises(UnknownStudyError), store.writing() as session:
        studies.remark(session, "s", "ada", shown.token, StudyRemarks())  # before any choice
    rate(store, "ada", shown)
    for comment in ("first", "last"):
        with store.writing() as session:
            remarks = StudyRemarks({"a": ["useful"], "b": []}, comment, 2, {"safe": "yes"})
            studies.remark(session, "s", "ada", shown.token, remarks)
    (row,) = rows(store)
    side = "a" if row["sides"] == "ab" else "b"
    assert row["reasons"] == f'{{"{side}": ["useful"]}}'
    assert (row["comment"], row["confidence"], row["rubric"]) == ("last", 2, '{"safe": "yes"}')
    with pytest.raises(UnknownStudyError), store.writing() as session:
        studies.remark(session, "s", "bob", shown.token, StudyRemarks())


@pytest.mark.parametrize(("forget", "tombstone"), [(False, False), (True, False), (True, True)])
def test_erasing_takes_comments_and_whose_the_ratings_are(
    database_url: str, forget: bool, tombstone: bool
) -> None:
    with closing(Store(database_url)) as store:
        create(store, planned(3))
        for who in ("adaadaada", "bobbobbob"):
            _, shown = give(store, who)
            assert shown is not None
            rate(store, who, shown)
            with store.writing() as session:
                remarks = StudyRemarks(comment=f"{who} says")
                studies.remark(session, "s", who, shown.token, remarks)
        _, shown = give(store, "adaadaada")
        assert shown is not None
        rate(store, "adaadaada", shown)
        with store.reading() as session:
            _, there = erasing.extent(session, ["adaadaada"])
        assert (there.comments, there.ratings) == (1, 2)
        with store.writing() as session:
            gone = erasing.erase(
                session, ["adaadaada"], (), "x", NOW, forget=forget, tombstone=tombstone
            )
        assert (gone.comments, gone.ratings) == (1, 2 * forget)
        left = {row["rater"]: row["comment"] for row in rows(store)}
        assert left == {"r02": "bobbobbob says"} | ({} if tombstone else {"r01": None})
        with store.reading() as session:
            assert bool(studies.own_ratings(session, "adaadaada")) is not forget
        assert give(store, "adaadaada")[1] is not None  # where forgotten, as somebody new


@pytest.mark.slow
def test_gold_is_strewn_evenly_over_what_is_left() -> None:
    """Over many raters, each place is as likely as another to hold the one gold item."""
    plan = StudyPlan(name="s", raters_per_item=1)
    places = [Place(k, StudyKind.ITEM, 0) for k in range(9)] + [Place(9, StudyKind.GOLD, 0)]
    drawn: Counter[int] = Counter()
    for rater in range(2000):
        past: list[Past] = []
        while True:
            chosen = next_of(plan, places, past, seed=f"r{rater}", opened=True, passed=True)
            assert chosen.key is not None
            if chosen.key == 9:
                drawn[len(past)] += 1
                break
            past.append(Past(chosen.key, StudyKind.ITEM, 0))
    assert all(abs(drawn[place] / 2000 - 0.1) < 0.03 for place in range(10))


@pytest.mark.slow
def test_left_sides_are_even_over_items(store: Store) -> None:
    create(store, planned(200), raters_per_item=1)
    rate_all(store, "ada", lambda shown: Random(shown.token).choice("ab"))
    n = sum(row["sides"] == "ab" for row in rows(store))
    assert 70 < n < 130


def test_runs_are_given_without_what_they_took_and_revealed_once_rated(database_url: str) -> None:
    steps = (Step("message", "I look.", cost=0.25, seconds=7.5), Step("tool_call", name="look"))
    runs = (
        AgentRun("m", "s", steps, cost=0.5, seconds=9.5),
        AgentRun("n", "t", steps[:1], cost=1.5, seconds=3.5),
    )
    responses = tuple(
        Response(f"{one.model} · {one.scaffold}", (Message("assistant", f"{one.cost}"),), one)
        for one in runs
    )
    took = {"0.5": ("m · s", 0.5, 9.5), "1.5": ("n · t", 1.5, 3.5)}
    pair = RatingItem("i", "p", (Message("user", "Look."),), responses)
    with closing(Store(database_url)) as store:
        create(store, [PlannedItem(StudyKind.ITEM, pair)], reveal=True, raters_per_item=5)
        for who in "abcde":
            _, shown = give(store, who)
            assert shown is not None
            assert (shown.differs, [*shown.revealed]) == (1, [])
            assert {name for one in shown.steps for step in one for name in step} == {*BLIND}
            rate(store, who, shown)
            after = store.read(studies.rated, "s", who, shown.token, NOW)
            assert after.choice == "a"
            with store.writing() as session:
                remarks = StudyRemarks({"a": ["useful"]})
                studies.remark(session, "s", who, shown.token, remarks)
            (own,) = store.read(studies.own_ratings, who)
            assert (own["prompt"], own["choice"]) == ("Look.", "a")
            assert own["reasons"] == {"a": ["useful"]}
            assert [(one["model"], one["cost"], one["seconds"]) for one in after.revealed] == [
                took[answer[0]["content"]] for answer in shown.answers
            ]
        row, *more = rows(store)
        assert {one["sides"] for one in (row, *more)} == {"ab", "ba"}
        names = ("model", "base_model", "scaffold", "cost", "seconds")
        assert [[row[f"{name}_{side}"] for name in names] for side in "ab"] == [
            ["m · s", "m", "s", 0.5, 9.5],
            ["n · t", "n", "t", 1.5, 3.5],
        ]
