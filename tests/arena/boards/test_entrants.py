"""Models come and go: what a board says of those that left, and of what that does to others."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from arena.boards.leaderboard import make_board
from arena.domain.board_view import Board
from arena.domain.model import Entrant, Model, Release, Stage
from arena.domain.vote import DEFAULT, Choice
from arena.store import people, roster
from arena.store.store import Store
from rating.variants import selection_inflation
from tests.arena.boards.log import EMPTY, NOW, Vote, logged, many, records
from tests.sqlite import new_sqlite

GONE = Entrant(retired=True)


def board(
    votes: Sequence[Vote],
    entrants: Mapping[str, Entrant],
    models: Sequence[str] = (),
    enough: int = 0,
) -> Board:
    known = sorted({*models, *(m for v in votes for m in (v.a, v.b))})
    state = replace(EMPTY, entrants=entrants)
    return make_board(logged(votes), records(known), DEFAULT, state, NOW, enough=enough)


def on_pairs(*pairs: tuple[str, str], n: int = 30) -> list[Vote]:
    """Votes of twenty voters on each pair, two of three for the first."""
    outcomes = (Choice.A, Choice.A, Choice.B)
    return [Vote(a, b, outcomes[i % 3], voter=f"v{i % 20}") for a, b in pairs for i in range(n)]


def test_a_retired_model_is_marked_and_its_votes_stay_in_the_fit() -> None:
    before, after = board(many(), {}), board(many(), {"m1": GONE})
    assert [(row.model, row.stage) for row in after.rows] == [
        ("m0", Stage.REGULAR),
        ("m1", Stage.RETIRED),
        ("m2", Stage.REGULAR),
    ]
    assert [row.rating for row in after.rows] == [row.rating for row in before.rows]
    assert after.data_hash == before.data_hash
    assert [row["stage"] for row in after.to_rows()] == ["listed", "retired", "listed"]
    assert after.to_dict()["ratings"][1]["stage"] == "retired"


def test_a_model_without_votes_waits_on_the_roster_and_goes_with_it() -> None:
    models = ("m8", "m9")
    waits = board(many(), {}, models).waiting
    assert [(one.model, one.stage) for one in waits] == [
        ("m8", Stage.REGULAR),
        ("m9", Stage.REGULAR),
    ]
    assert [one.model for one in board(many(), {"m8": GONE}, models).waiting] == ["m9"]


def test_a_retired_model_with_votes_and_no_rating_stays_and_is_marked() -> None:
    votes = [*many(), Vote("m0", "new", Choice.A)]
    (waits,) = board(votes, {"new": GONE}).waiting
    assert (waits.model, waits.votes, waits.stage) == ("new", 1, Stage.RETIRED)


def test_models_that_only_votes_on_a_retired_one_connect_are_named() -> None:
    votes = on_pairs(("m0", "m1"), ("m1", "hub"), ("hub", "m2"), ("m2", "m3"))
    warnings = board(votes, {"hub": GONE}).warnings
    assert any("Only votes on models that have retired connect M2, M3" in one for one in warnings)
    assert not any("retired" in one for one in board(votes, {}).warnings), "nobody left"
    joined = board([*votes, *on_pairs(("m0", "m3"), n=3)], {"hub": GONE}).warnings
    assert not any("Only votes on models" in one for one in joined)


def test_models_whose_votes_are_mostly_on_retired_ones_are_named() -> None:
    votes = on_pairs(("m0", "m1"), ("m1", "m2"), ("m0", "m2"), n=30)
    votes += on_pairs(("gone", "m2"), n=61)
    warnings = board(votes, {"gone": GONE}).warnings
    assert any("Most votes on these models are against" in one and "M2" in one for one in warnings)
    fewer = board(votes[:-2], {"gone": GONE}).warnings
    assert not any("Most votes on these models" in one for one in fewer), "59 of 119 are not most"


STONES = {f"m{i}": Entrant(family="stone", declared_order=i + 1) for i in range(3)}


def test_the_best_of_a_family_is_also_rated_as_the_best_of_so_many() -> None:
    votes = on_pairs(("m0", "m1"), ("m1", "m2"), ("m2", "m0"), ("m0", "other"), ("other", "m2"))
    plain, marked = board(votes, {}).rows, board(votes, STONES).rows
    assert [row.rating for row in marked] == [row.rating for row in plain]
    best = max((row for row in marked if row.family), key=lambda row: row.rating)
    assert {row.model: row.variants for row in marked} == {"m0": 3, "m1": 3, "m2": 3, "other": 1}
    assert [row.model for row in marked if row.best_of is not None] == [best.model]
    taken = best.rating - (best.best_of or 0)
    by_error = taken / selection_inflation(1.0, 3)
    own = [row.se for row in marked if row.family]
    assert 0.7 * min(own) < by_error < 1.5 * max(own)
    assert [(row.variants, row.best_of, row.declared) for row in plain] == [(1, None, None)] * 4


def test_variants_that_left_are_tested_ones_and_those_without_votes_are_not() -> None:
    entrants = {
        "m0": Entrant(family="stone"),
        "m1": Entrant(family="stone", retired=True),
        "m9": Entrant(family="stone"),
    }
    marked = {row.model: row for row in board(many(), entrants, ["m9"]).rows}
    assert (marked["m0"].variants, marked["m1"].variants, marked["m2"].variants) == (2, 2, 1)
    flipped = {model: replace(one, retired=not one.retired) for model, one in entrants.items()}
    of = {row.model: row.best_of for row in board(many(), flipped, ["m9"]).rows}
    assert of["m0"] is None, "the best of those that stay"
    assert of["m1"] is not None


def test_a_family_in_its_declared_order_is_shown_beside_the_ratings() -> None:
    rng = Random(5)
    pairs = [("m1", "m0", 0.6), ("m1", "m2", 0.8), ("m0", "m2", 0.7), ("other", "m2", 0.7)]
    pairs += [("m1", "other", 0.6), ("m0", "other", 0.55)]
    votes = [
        Vote(a, b, Choice.A if rng.random() < p else Choice.B, voter=f"v{rng.randrange(60)}")
        for a, b, p in pairs * 60
    ]
    rows = {row.model: row for row in board(votes, STONES).rows}
    assert rows["m1"].rating > rows["m0"].rating, "the votes say otherwise"
    assert rows["m0"].declared == pytest.approx(rows["m1"].declared, abs=1e-3)
    assert rows["m0"].rating < (rows["m0"].declared or 0) < rows["m1"].rating
    assert (rows["m2"].declared or 0) < (rows["m1"].declared or 0)
    assert rows["other"].declared is None
    true = {model: replace(one, declared_order=None) for model, one in STONES.items()}
    true |= {m: replace(STONES[m], declared_order=n) for m, n in (("m1", 1), ("m0", 2))}
    as_voted = {row.model: row.declared for row in board(votes, true).rows}
    assert as_voted == {
        "m1": pytest.approx(rows["m1"].rating),
        "m0": pytest.approx(rows["m0"].rating),
        "m2": None,
        "other": None,
    }


def test_shares_count_the_sides_of_the_votes_by_organisation() -> None:
    votes = [*many(60), *on_pairs(("m0", "m1"), n=20)]
    known = [
        replace(one, organisation="Rocks" if one.id != "m2" else "")
        for one in records(["m0", "m1", "m2", "m3"])
    ]
    made = make_board(logged(votes), known, DEFAULT, EMPTY, NOW)
    assert [(s.organisation, s.models, s.votes, s.share) for s in made.shares] == [
        ("Rocks", 2, 120, 0.75),
        ("M2", 1, 40, 0.25),
    ]
    assert made.gini == pytest.approx(0.25)
    assert board([], {}, ["m0"]).shares == ()
    assert board([], {}, ["m0"]).gini is None
    assert made.to_dict()["gini"] == made.gini


def test_a_model_that_changed_under_its_id_is_marked_with_its_earlier_votes() -> None:
    early = [replace(one, created=NOW - timedelta(days=3)) for one in many(30)]
    span = (NOW - timedelta(days=9), NOW - timedelta(days=2))
    changed = {"m1": Entrant(otherwise=(span,)), "m2": Entrant(otherwise=((NOW, NOW),))}
    made = board([*early, *many(30)], changed)
    assert {row.model: row.otherwise for row in made.rows} == {"m0": 0, "m1": 20, "m2": 0}
    (warning,) = (one for one in made.warnings if "under the same id" in one)
    assert warning.startswith("M1 was changed under the same id: 20 of the 40 votes on it are on")
    assert not any("under the same id" in one for one in board(many(), {}).warnings)


def test_the_log_of_models_says_when_one_answered_otherwise_than_now(tmp_path: Path) -> None:
    models = [Model(id=i, name=i, endpoint="pocket://x", model="unigram") for i in "xy"]
    hot = replace(models[0], decoding={"temperature": 2})
    times = [NOW + timedelta(hours=h) for h in range(4)]
    with closing(Store(new_sqlite(tmp_path))) as store:
        for entries, now in zip(
            (models, [hot, models[1]], models, [replace(hot, name="X")]), times, strict=True
        ):
            with store.writing() as session:
                roster.add(session, entries, people.TERMINAL, now)
        spans = store.read(roster.entrants)["x"].otherwise
        assert "y" not in store.read(roster.entrants)
    assert spans == ((times[0], times[1]), (times[2], times[3]))


def test_the_history_of_models_notes_once_how_far_one_has_come_the_newest_first(
    tmp_path: Path,
) -> None:
    models = [Model(id=i, name=i.upper(), endpoint="pocket://x", model=i) for i in "xyz"]
    models[2] = replace(models[2], release=Release.HIDDEN)
    with closing(Store(new_sqlite(tmp_path))) as store:
        store.write(roster.add, models, people.TERMINAL, NOW)
        for stage in (Stage.PROVISIONAL, Stage.PROVISIONAL, Stage.REGULAR, Stage.RETIRED):
            store.write(roster.note_stages, {"x": stage, "y": Stage.PRE_RELEASE}, NOW)
        store.write(roster.note_stages, {"x": Stage.PROVISIONAL, "z": Stage.REGULAR}, NOW)
        events = [(one.model, one.name, one.event) for one in store.read(roster.history)]
    came = [("x", "X", stage) for stage in ("provisional", "listed", "provisional")]
    assert events == [*came, ("y", "Y", "added"), ("x", "X", "added")]


def test_a_model_is_provisional_until_it_has_votes_enough() -> None:
    votes = [*many(60), *on_pairs(("m0", "m1"), n=3)]  # m0 and m1 have 43, m2 has 40
    stages = {row.model: row.stage for row in board(votes, {}, enough=43).rows}
    assert stages == {"m0": Stage.REGULAR, "m1": Stage.REGULAR, "m2": Stage.PROVISIONAL}
    assert board(votes, {}, enough=43).to_dict()["method"]["listed_after"] == 43


def test_votes_from_before_its_release_do_not_make_a_place_settled() -> None:
    early = [replace(one, created=NOW - timedelta(days=3)) for one in many(60)]
    votes = [*early, *on_pairs(("m0", "m1"), n=9)]  # a day ago
    released = {"m0": Entrant(released=NOW - timedelta(days=2))}
    before, after = (
        {row.model: row.stage for row in board(votes, released, enough=n).rows} for n in (9, 10)
    )
    assert before["m0"] is Stage.REGULAR
    assert after["m0"] is Stage.PROVISIONAL
    assert after["m1"] is Stage.REGULAR


def test_the_hidden_are_nowhere_and_the_unnamed_have_no_family() -> None:
    unnamed = Entrant(release=Release.PRE_RELEASE, family="stone")
    entrants = STONES | {"m1": unnamed, "m9": Entrant(release=Release.HIDDEN)}
    made = board(many(), entrants, ["m8", "m9"])
    assert [one.model for one in made.waiting] == ["m8"]
    rows = {row.model: row for row in made.rows}
    assert (rows["m1"].stage, rows["m1"].family, rows["m1"].variants) == (Stage.PRE_RELEASE, "", 1)
    assert rows["m0"].variants == 3, "an unnamed variant is a tested one"
    assert rows["m1"].declared is rows["m1"].best_of is None
