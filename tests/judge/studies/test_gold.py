"""Votes on gold pairs: planted accuracies and a planted taste for length are recovered."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import t

from judge.studies.gold import GoldVote, clustered_share, posterior, study_gold
from judge.tables.cases import GoldPair, read_gold
from rating.errors import DataError
from rating.outcome import Outcome
from tests.judge.studies.labels import ends, holds


def made_up(n: int, rng: np.random.Generator) -> list[GoldPair]:
    """Make pairs of which the wrong answer is longer or shorter, by up to eight times."""
    pairs = []
    for number in range(n):
        a, b = (int(2 ** rng.uniform(6, 9)) for _ in range(2))
        right = Outcome.A if rng.random() < 0.5 else Outcome.B
        pairs.append(GoldPair(f"p{number}", ("x", "y"), ("a" * a, "b" * b), right))
    return pairs


def cast(
    pairs: list[GoldPair],
    rng: np.random.Generator,
    *,
    voters: int = 60,
    each: int = 40,
    level: float = -0.8,
    taste: float = 0.5,
    spread: float = 0.5,
) -> list[GoldVote]:
    """Let voters prefer the wrong answer by its length, each and on each item more or less."""
    of_voter, of_item = rng.normal(0, spread, voters), rng.normal(0, spread, len(pairs))
    votes = []
    for voter in range(voters):
        for place in rng.choice(len(pairs), each, replace=False):
            pair = pairs[place]
            a, b = map(len, pair.responses)
            gap = np.log2(b / a) * (1 if pair.right is Outcome.A else -1)
            wrong = rng.random() < expit(level + taste * gap + of_voter[voter] + of_item[place])
            choice = pair.right.swapped() if wrong else pair.right
            votes.append(GoldVote(f"v{voter}", pair.prompt, pair.right, choice, a, b))
    return votes


def test_a_voters_accuracy_is_that_of_the_prior_and_the_answers() -> None:
    assert posterior(7, 10).value == 15 / 20
    assert posterior(0, 1).value == pytest.approx(8 / 11)
    with pytest.raises(DataError, match="11 right of 10"):
        posterior(11, 10)


def test_a_tie_is_not_right_and_prefers_nothing_and_what_comes_again_is_left_out() -> None:
    a, b, tie, bad = Outcome
    votes = [
        GoldVote("u", "1", a, a),
        GoldVote("u", "1", a, b),
        GoldVote("u", "2", b, tie),
        GoldVote("u", "3", b, bad),
        GoldVote("v", "1", a, b),
        GoldVote("v", "4", tie, a),
    ]
    study = study_gold(votes)
    assert (study.votes, study.right, study.undecided) == (4, 1, 2)
    assert (study.repeated, study.level_pairs, study.wrong.value) == (1, 1, 0.25)
    first, second = study_gold(votes, level=0.5).accuracies
    assert (first.voter, first.right, first.answered) == ("u", 1, 3)
    assert (second.voter, second.right, second.answered) == ("v", 0, 1)
    assert (first.accuracy, first.upper) == (9 / 13, posterior(1, 3, 0.5).upper)
    assert study.taste is None
    assert "not to other people" in study.sentences[-1]
    assert len(study_gold([*votes, GoldVote("w", "1", a, a)]).sentences) == 1


def test_no_vote_gives_no_number() -> None:
    study = study_gold([])
    assert study.wrong.value is None
    assert study.sentences == ("There is no vote on a pair with one right answer.",)


def test_sides_do_not_matter() -> None:
    votes = cast(made_up(100, np.random.default_rng(0)), np.random.default_rng(1))
    other = [
        GoldVote(v.voter, v.item, v.right.swapped(), v.choice.swapped(), v.length_b, v.length_a)
        for v in votes
    ]
    assert study_gold(votes).to_dict() == study_gold(other).to_dict()


def test_all_alike_is_not_certain() -> None:
    numbers = np.arange(20)
    share = clustered_share(np.ones(20, dtype=bool), numbers, numbers)
    assert share.value == 1.0
    assert share.lower == pytest.approx(0.832, abs=0.001)  # Clopper and Pearson of 20 of 20


def test_three_voters_are_clusters_and_two_are_not() -> None:
    item, hit = np.arange(30), np.arange(30) % 10 < np.repeat([3, 5, 7], 10)
    for voters, by in ((3, np.repeat(np.arange(3), 10)), (2, item)):
        away = np.bincount(by, hit - 0.5) / 30
        n = len(away)
        error = np.sqrt(n / (n - 1) * (away @ away)) / 0.25
        share = clustered_share(hit, np.minimum(item // 10, voters - 1), item)
        assert (share.value, share.n) == (0.5, 30)
        assert share.upper == pytest.approx(expit(t.ppf(0.975, n - 1) * error))


def test_a_planted_taste_for_length_shows_in_the_thirds_and_the_slope() -> None:
    rng = np.random.default_rng(2)
    votes = cast(made_up(300, rng), rng, voters=100, each=100, spread=0.0)
    study = study_gold(votes)
    assert study.taste is not None
    assert study.taste.value == pytest.approx(0.5, abs=0.06)
    assert 0 < ends(study.taste)[0] < 0.5
    names = [third.name for third in study.by_gap]
    assert (names[0], names[2]) == ("wrong answer shorter", "wrong answer longer")
    few, enough = (study_gold(votes[:n]) for n in (29, 30))
    assert (len(few.by_gap), few.taste, len(enough.by_gap)) == (0, None, 3)
    assert enough.taste is not None
    shares = [third.wrong.value for third in study.by_gap]
    assert shares == sorted(shares, key=lambda share: share or 0)
    gaps = np.array([np.log2(v.length_b or 1) - np.log2(v.length_a or 1) for v in votes])
    gaps = np.where([v.right is Outcome.A for v in votes], gaps, -gaps)
    for third in study.by_gap:
        within = (gaps >= third.gap_low - 1e-9) & (gaps <= third.gap_high + 1e-9)
        assert third.wrong.value == pytest.approx(
            expit(-0.8 + 0.5 * gaps[within]).mean(), abs=0.03
        )
    assert holds(study_gold(cast(made_up(300, rng), rng, taste=0.0)).taste, 0)


@pytest.mark.published
def test_judgebench_pairs_tell_the_taste_of_simulated_voters(published_data: Path) -> None:
    rng = np.random.default_rng(3)
    pairs, left_out = read_gold(published_data / "gold" / "judgebench_pairs.jsonl")
    assert (len(pairs), left_out) == (619, {"the same prompt and models again": 1})
    votes = cast(pairs, rng, voters=150, each=100, taste=1.0, spread=0.2)
    study = study_gold(votes)
    assert study.items == 528
    assert study.taste is not None
    assert study.taste.value == pytest.approx(1.0, abs=0.1)
    shares = [third.wrong.value or 0 for third in study.by_gap]
    assert shares[0] < shares[1] < shares[2]
    flat = study_gold(cast(pairs, rng, voters=150, each=100, taste=0.0, spread=0.2))
    assert flat.wrong.value == pytest.approx(expit(-0.8), abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("voters", "items"), [(40, 200), (200, 40), (60, 60)])
def test_the_interval_of_the_wrong_share_covers_other_voters_and_items(
    voters: int, items: int
) -> None:
    rng, level, spread = np.random.default_rng(voters), -0.8, 0.6
    effects = rng.normal(0, spread * np.sqrt(2), 400_000)
    truth, covered, runs = float(expit(level + effects).mean()), 0, 1000
    for _ in range(runs):
        of_voter, of_item = rng.normal(0, spread, voters), rng.normal(0, spread, items)
        voter = np.repeat(np.arange(voters), 20)
        item = rng.integers(items, size=len(voter))
        wrong = rng.random(len(voter)) < expit(level + of_voter[voter] + of_item[item])
        covered += holds(clustered_share(wrong, voter, item), truth)
    assert 0.93 <= covered / runs <= 0.97
