from dataclasses import replace

import numpy as np
import pytest

from arena.boards import overturn
from arena.boards.fitted import fit_log
from arena.boards.overturn import holds
from arena.domain.evidence import Fewest
from arena.domain.vote import Choice
from rating import fewest_to_flip
from tests.arena.boards.log import Vote, logged, many

SEVEN_TO_FIVE = [
    Vote("x", "y", Choice.A if i < 7 else Choice.B, voter=f"v{i % 4}", prompt=f"p{i % 3}")
    for i in range(12)
]


def test_seven_wins_to_five_turn_without_three_of_them() -> None:
    """Without two of the seven the models are level, without three the other one leads."""
    (hold,) = holds(fit_log(logged(SEVEN_TO_FIVE)))
    assert (hold.above, hold.below) == ("x", "y")
    assert hold.votes.k == 3
    assert hold.votes.of == 12
    assert hold.lead == pytest.approx(400 * np.log10(7 / 5))


def test_voters_and_prompts_are_those_of_the_library() -> None:
    fitted = fit_log(logged(SEVEN_TO_FIVE))
    (hold,) = holds(fitted)
    (flip,) = fewest_to_flip(fitted.fit, fitted.data, unit="voter")
    assert hold.voters == Fewest(k=flip.k, tried=flip.tried, of=4)
    assert hold.prompts is not None
    assert hold.prompts.of == 3


def test_prompts_count_only_where_every_vote_has_one() -> None:
    votes = [replace(SEVEN_TO_FIVE[0], prompt=None), *SEVEN_TO_FIVE[1:]]
    assert holds(fit_log(logged(votes)))[0].prompts is None
    aside = replace(SEVEN_TO_FIVE[0], prompt=None, left_out="skipped")
    assert holds(fit_log(logged([*SEVEN_TO_FIVE, aside])))[0].prompts is not None


def test_one_voter_cannot_be_taken_away() -> None:
    votes = [replace(vote, voter="ada") for vote in SEVEN_TO_FIVE]
    assert holds(fit_log(logged(votes)))[0].voters is None


def test_votes_taken_away_really_turn_the_order() -> None:
    """The second and third change places without as many votes as are said, put to the test."""
    fitted = fit_log(logged(many()))
    hold = holds(fitted)[1]
    flip = fewest_to_flip(fitted.fit, fitted.data)[1]
    left = list(many())
    for cell in flip.dropped:
        for _ in range(cell.times):
            left.remove(
                next(v for v in left if is_alike(v, cell.model_a, cell.model_b, cell.outcome))
            )
    after = fit_log(logged(left)).fit
    assert len(many()) - len(left) == hold.votes.k
    strength = dict(zip(after.models, after.theta, strict=True))
    assert strength[hold.below] > strength[hold.above]


def is_alike(vote: Vote, a: str, b: str, outcome: str) -> bool:
    return (vote.a, vote.b, vote.outcome.value) == (a, b, outcome)


def test_a_long_board_is_looked_at_from_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overturn, "MOST_PAIRS", 1)
    (hold,) = holds(fit_log(logged(many())))
    assert hold.above == "m0"
