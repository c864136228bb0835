"""Models come and go: what a board says of those that left, and of what that does to others."""

from collections.abc import Mapping, Sequence

from arena.boards.leaderboard import make_board
from arena.domain.board_view import Board
from arena.domain.model import Entrant, Stage
from arena.domain.vote import DEFAULT, Choice
from tests.arena.boards.log import NOW, Vote, logged, many, records

GONE = Entrant(retired=True)


def board(
    votes: Sequence[Vote], entrants: Mapping[str, Entrant], models: Sequence[str] = ()
) -> Board:
    known = sorted({*models, *(m for v in votes for m in (v.a, v.b))})
    return make_board(logged(votes), records(known), DEFAULT, "v", NOW, entrants=entrants)


def on_pairs(*pairs: tuple[str, str], n: int = 30) -> list[Vote]:
    """Votes of twenty voters on each pair, two of three for the first."""
    outcomes = (Choice.A, Choice.A, Choice.B)
    return [Vote(a, b, outcomes[i % 3], voter=f"v{i % 20}") for a, b in pairs for i in range(n)]


def test_a_retired_model_is_marked_and_its_votes_stay_in_the_fit() -> None:
    before, after = board(many(), {}), board(many(), {"m1": GONE})
    assert [(row.model, row.stage) for row in after.rows] == [
        ("m0", Stage.LISTED),
        ("m1", Stage.RETIRED),
        ("m2", Stage.LISTED),
    ]
    assert [row.rating for row in after.rows] == [row.rating for row in before.rows]
    assert after.data_hash == before.data_hash
    assert [row["stage"] for row in after.to_rows()] == ["listed", "retired", "listed"]
    assert after.to_dict()["ratings"][1]["stage"] == "retired"


def test_a_model_without_votes_waits_on_the_roster_and_goes_with_it() -> None:
    models = ("m8", "m9")
    waits = board(many(), {}, models).waiting
    assert [(one.model, one.stage) for one in waits] == [
        ("m8", Stage.LISTED),
        ("m9", Stage.LISTED),
    ]
    assert [one.model for one in board(many(), {"m8": GONE}, models).waiting] == ["m9"]


def test_a_retired_model_with_votes_and_no_rating_stays_and_is_marked() -> None:
    votes = [*many(), Vote("m0", "new", Choice.A)]
    (waits,) = board(votes, {"new": GONE}).waiting
    assert (waits.model, waits.votes, waits.stage) == ("new", 1, Stage.RETIRED)


def test_models_that_only_votes_on_a_retired_one_connect_are_named() -> None:
    votes = on_pairs(("m0", "m1"), ("m1", "hub"), ("hub", "m2"), ("m2", "m3"))
    said = board(votes, {"hub": GONE}).warnings
    assert any("Only votes on models that have retired connect M2, M3" in one for one in said)
    joined = board([*votes, *on_pairs(("m0", "m3"), n=3)], {"hub": GONE}).warnings
    assert not any("Only votes on models" in one for one in joined)


def test_models_whose_votes_are_mostly_on_retired_ones_are_named() -> None:
    votes = on_pairs(("m0", "m1"), ("m1", "m2"), ("m0", "m2"), n=30)
    votes += on_pairs(("gone", "m2"), n=61)
    said = board(votes, {"gone": GONE}).warnings
    assert any("Most votes on these models are against" in one and "M2" in one for one in said)
    fewer = board(votes[:-2], {"gone": GONE}).warnings
    assert not any("Most votes on these models" in one for one in fewer), "59 of 119 are not most"


def test_that_nobody_left_is_not_said() -> None:
    votes = on_pairs(("m0", "m1"), ("m1", "m2"))
    assert not any("retired" in one for one in board(votes, {}).warnings)
