"""Agreement of judges with people, and of people with people."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judge.studies.estimates import (
    Draws,
    Estimate,
    kappa,
    majority,
    over_another,
    over_people,
    own_agreement,
    own_kappa,
    pair_agreement,
)
from judge.studies.options import StudyOptions
from judge.studies.reliability import agreement, tie_thresholds
from judge.studies.rows import Items, Labels
from rating.errors import DataError
from tests.judge.published import rows
from tests.judge.studies.labels import (
    SIGN,
    by_turn,
    holds,
    items_of,
    labelled,
    labels_of,
    published,
    repeated,
    swapped,
    width,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "reliability.json").read_text())

RNG = np.random.default_rng(1)

pairs_ = partial(pair_agreement, draws=Draws(RNG, 20))

own_ = partial(own_agreement, draws=Draws(RNG, 20))

kappa_ = partial(kappa, draws=Draws(RNG, 20))

own_kappa_ = partial(own_kappa, draws=Draws(RNG, 20))


SEED = 7


def _draws() -> Draws:
    return Draws(np.random.default_rng(SEED))


def _agreed(estimate: Estimate) -> tuple[int, int]:
    assert estimate.value is not None
    return round(estimate.value * estimate.n), estimate.n


@pytest.mark.published
def test_mt_bench_reaches_its_published_counts(published_data: Path) -> None:
    folder = published_data / "votes" / "mtbench"
    data = published(folder)
    (judge,) = data.judges.values()
    wanted = {
        1: [(886, 1343), (727, 859), (454, 721), (388, 479)],
        2: [(871, 1325), (731, 864), (471, 707), (388, 474)],
    }
    for turn, mask in by_turn(folder).items():
        experts = data.people.only(mask)
        estimates = [
            measure(ties=ties)
            for measure in (
                partial(pairs_, data.items, judge, experts),
                partial(own_, data.items, experts),
            )
            for ties in (True, False)
        ]
        assert [_agreed(one) for one in estimates] == wanted[turn]


@pytest.mark.published
def test_the_majority_of_mt_bench_agrees_as_published(published_data: Path) -> None:
    data = published(published_data / "votes" / "mtbench")
    (judge,) = data.judges.values()
    most = majority(data.items, data.people)
    both, decisive = (pairs_(data.items, judge, most, ties=ties) for ties in (True, False))
    assert (_agreed(both), _agreed(decisive)) == ((1219, 1814), (953, 1078))
    assert kappa_(data.items, judge, most).value == pytest.approx(0.505, abs=0.0005)
    assert kappa_(data.items, judge, most, ties=False).value == pytest.approx(0.767, abs=0.0005)


@pytest.mark.published
def test_llmfao_reaches_its_published_figures(published_data: Path) -> None:
    data = published(published_data / "votes" / "llmfao")
    most = majority(data.items, data.people)
    wanted = {"gpt-4": (0.3871, 0.170, 0.746, 1043), "gpt-3.5": (0.3361, 0.091, 0.631, 971)}
    for name, (agree, beyond, decisive, n) in wanted.items():
        judge = data.judges[name]
        rate = pairs_(data.items, judge, most, ties=True)
        assert rate.n == 2139
        assert rate.value == pytest.approx(agree, abs=5e-5)
        assert kappa_(data.items, judge, most).value == pytest.approx(beyond, abs=5e-4)
        rate = pairs_(data.items, judge, most, ties=False)
        assert rate.n == n
        assert rate.value == pytest.approx(decisive, abs=5e-4)
    assert own_(data.items, data.people, ties=True).value == pytest.approx(0.5322, abs=5e-5)
    assert own_(data.items, data.people, ties=False).value == pytest.approx(0.7013, abs=5e-5)


@pytest.mark.published
def test_pandalm_reaches_its_published_kappas_and_labels(published_data: Path) -> None:
    data = published(published_data / "votes" / "pandalm")
    people = data.people
    kappas = [
        kappa_(data.items, people.only(people.rater == i), people.only(people.rater == j))
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    assert [one.value for one in kappas] == pytest.approx([0.8520, 0.8789, 0.8617], abs=5e-5)
    assert [one.n for one in kappas] == [999] * 3


@pytest.mark.published
def test_the_majority_labels_of_pandalm_are_the_published_ones(published_data: Path) -> None:
    labels = rows(published_data / "judge" / "pandalm_labels.csv")
    code = {"0": 0, "1": 1, "2": -1}
    given_ = [(i, code[str(row[h])]) for i, row in enumerate(labels) for h in ("h1", "h2", "h3")]
    most = majority(items_of(len(labels)), labels_of(given_))
    assert np.bincount(most.label + 1).tolist() == [472, 105, 422]


@pytest.mark.published
def test_wmt15_reaches_its_published_agreement_and_kappa(published_data: Path) -> None:
    votes = rows(published_data / "votes" / "wmt15_fin_eng" / "votes.parquet")
    known: dict[tuple[str, ...], int] = {}
    ordered = [(row["prompt_id"], row["model_a"], row["model_b"]) for row in votes]
    item = [known.setdefault(one, len(known)) for one in ordered]
    people = labels_of(zip(item, [SIGN[row["winner"]] for row in votes], strict=True))
    prompts: dict[str, int] = {}
    items = items_of(len(known), prompt=[prompts.setdefault(k[0], len(prompts)) for k in known])
    assert _agreed(own_(items, people, ties=True)) == (6018, 7412)
    for sides in (True, False):
        kappa_of = own_kappa_(items, people, sides=sides)
        assert kappa_of.value == pytest.approx(0.716, abs=0.0005)


def _crossed() -> tuple[Items, Labels, Labels]:
    """Cross two abstractors as in the golden table."""
    cells = [
        (i - 1, j - 1, count)
        for i, row in enumerate(GOLDEN["crossed"]["table"])
        for j, count in enumerate(row)
    ]
    x, y = (np.repeat([c[k] for c in cells], [c[2] for c in cells]) for k in (0, 1))
    return items_of(len(x)), labels_of(enumerate(x)), labels_of(enumerate(y))


def test_the_published_table_of_two_raters_and_its_standard_error() -> None:
    items, x, y = _crossed()
    want, error = GOLDEN["crossed"]["kappa"]
    estimate = kappa(items, x, y, draws=Draws(np.random.default_rng(1), 2000))
    assert estimate.value == pytest.approx(want, abs=5e-5)
    assert width(estimate) / 2 / 1.96 == pytest.approx(error, rel=0.08)
    y = replace(y, rater=y.rater + x.n)
    both = Labels(*(np.concatenate([getattr(x, f), getattr(y, f)]) for f in Labels.__slots__))
    assert own_kappa_(items, both).value == pytest.approx(GOLDEN["crossed"]["scott"], abs=5e-5)


def test_three_items_by_hand() -> None:
    # Item 0: votes A A B, verdict A. Item 1: votes tie B, verdict tie. Item 2: vote B, verdict A.
    items = items_of(3)
    people = labels_of([(0, 1), (0, 1), (0, -1), (1, 0), (1, -1), (2, -1)])
    judge = labels_of([(0, 1), (1, 0), (2, 1)])
    assert _agreed(pairs_(items, judge, people, ties=True)) == (3, 6)
    assert _agreed(pairs_(items, judge, people, ties=False)) == (2, 4)
    by_item = pairs_(items, judge, people, ties=True, weighting="items")
    assert by_item.n == 3
    assert by_item.value == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert _agreed(own_(items, people, ties=True)) == (1, 4)
    assert _agreed(own_(items, people, ties=False)) == (1, 3)
    by_item = own_(items, people, ties=True, weighting="items")
    assert by_item.n == 2
    assert by_item.value == pytest.approx((1 / 3 + 0) / 2)
    most = majority(items, people)
    assert list(zip(most.item, most.label, strict=True)) == [(0, 1), (1, 0), (2, -1)]


def test_four_annotators_of_two_items_agree_with_one_as_published() -> None:
    # The example in the documentation of AlpacaEval: labels 1 1 1 1 and 2 2 2 1.
    votes = labels_of([(0, 1)] * 4 + [(1, -1)] * 3 + [(1, 1)])
    items = items_of(2)
    assert own_(items, votes, ties=True, weighting="items").value == 0.75


def test_full_agreement_keeps_the_doubt_that_its_number_of_prompts_leaves() -> None:
    votes = labels_of([(i, 1) for i in range(10)])
    rate = pairs_(items_of(10), votes, votes, ties=True)
    assert (rate.value, rate.upper) == (1, 1)
    assert rate.lower == pytest.approx(0.025 ** (1 / 10))  # Clopper-Pearson, .692
    never = pairs_(items_of(10), votes, swapped(votes), ties=False)
    assert (never.value, never.lower) == (0, 0)
    assert never.upper == pytest.approx(1 - 0.025 ** (1 / 10))


def test_what_cannot_be_told_has_no_value() -> None:
    items, ties = items_of(2), labels_of([(0, 0), (1, 0)])
    nothing = Estimate(None, None, None, 0)
    assert pairs_(items, ties, ties, ties=False) == nothing
    assert own_(items, ties, ties=True) == nothing  # no item twice
    assert kappa_(items, ties, ties).value is None  # only one label


def test_a_row_of_no_item_is_refused() -> None:
    with pytest.raises(DataError, match="a row is of item 7"):
        pairs_(items_of(2), labels_of([(7, 1)]), labels_of([(0, 1)]), ties=True)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(-1, 1), st.integers(-1, 1)), min_size=1, max_size=40))
def test_another_program_finds_the_same_kappa(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    estimate = kappa_(items_of(len(x)), labels_of(enumerate(x)), labels_of(enumerate(y))).value
    if len({*x, *y}) == 1:
        assert estimate is None
    else:
        assert estimate == pytest.approx(cohen_kappa_score(x, y))


@settings(max_examples=30)
@given(labelled, labelled, st.booleans())
def test_turning_all_sides_round_changes_nothing(
    first: list[tuple[int, int]], second: list[tuple[int, int]], ties: bool
) -> None:
    items, x, y = items_of(10), labels_of(first), labels_of(second)
    for one, other in (
        (pairs_(items, x, y, ties=ties), pairs_(items, swapped(x), swapped(y), ties=ties)),
        (kappa_(items, x, y, ties=ties), kappa_(items, swapped(x), swapped(y), ties=ties)),
        (own_(items, x, ties=ties), own_(items, swapped(x), ties=ties)),
        (own_kappa_(items, x, ties=ties), own_kappa_(items, swapped(x), ties=ties)),
    ):
        assert one.n == other.n
        assert one.value == (None if other.value is None else pytest.approx(other.value))


@settings(max_examples=30)
@given(labelled, labelled, st.integers(2, 4))
def test_repeating_a_judge_changes_only_the_number_of_pairs(
    first: list[tuple[int, int]], second: list[tuple[int, int]], times: int
) -> None:
    items, x, y = items_of(10), labels_of(first), labels_of(second)
    one, many = (pairs_(items, judge, y, ties=True) for judge in (x, repeated(x, times)))
    assert many.n == times * one.n
    assert many.value == (None if one.value is None else pytest.approx(one.value))


@settings(max_examples=30)
@given(labelled)
def test_who_speaks_first_does_not_matter_to_a_majority(rows_: list[tuple[int, int]]) -> None:
    items = items_of(10)
    one, other = (majority(items, labels_of(order)) for order in (rows_, rows_[::-1]))
    assert one.label.tolist() == other.label.tolist()
    assert one.item.tolist() == sorted({item for item, _ in rows_})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shared", "runs", "low", "high"), [(True, 800, 0.91, 0.97), (False, 150, 0, 0.84)]
)
def test_intervals_cover_agreement_only_where_votes_of_a_prompt_stay_together(
    shared: bool, runs: int, low: float, high: float
) -> None:
    """100 prompts of ten items whose rate differs: .935 with prompts, .73 with single items."""
    rng, inside = np.random.default_rng(6), 0
    prompt = np.repeat(np.arange(100), 10)
    items = items_of(1000, prompt=prompt.tolist() if shared else None)
    verdicts = labels_of((i, 1) for i in range(1000))
    for _ in range(runs):
        rate = rng.beta(2, 1, 100)[prompt]  # 2/3 on average
        votes = labels_of(enumerate(np.where(rng.random(1000) < rate, 1, -1).tolist()))
        result = pair_agreement(items, verdicts, votes, ties=False, draws=Draws(rng, 200))
        inside += holds(result, 2 / 3)
    assert low <= inside / runs <= high


def rows_of(item: np.ndarray, label: np.ndarray) -> Labels:
    return labels_of(zip(item.tolist(), label.tolist(), strict=True))


def drawn() -> tuple[Items, Labels, Labels, Labels]:
    """Three votes an item, a judge that is right in three of four, and one that says A."""
    rng = np.random.default_rng(SEED)
    n = 200
    items = Items(("x", "y"), np.tile([0, 1], (n, 1)), np.arange(n) // 4)
    truth = rng.choice([-1, 0, 1], n)
    noise = rng.choice([-1, 0, 1], (3, n))
    votes = np.where(rng.random((3, n)) < 0.7, truth, noise)
    people = rows_of(np.tile(np.arange(n), 3), votes.ravel())
    judge = rows_of(np.arange(n), np.where(rng.random(n) < 0.75, truth, -truth))
    return items, people, judge, rows_of(np.arange(n), np.ones(n))


@pytest.mark.parametrize("ties", [True, False])
def test_a_difference_is_that_of_both_rates(ties: bool) -> None:
    items, people, judge, always = drawn()

    rates = [
        pair_agreement(items, one, people, ties=ties, draws=_draws()).value
        for one in (judge, always)
    ]
    own = own_agreement(items, people, ties=ties, draws=_draws()).value
    assert rates[0] is not None
    assert rates[1] is not None
    assert own is not None
    lead = over_another(items, judge, always, people, ties=ties, draws=_draws())
    assert lead.value == pytest.approx(rates[0] - rates[1])
    assert over_people(items, judge, people, ties=ties, draws=_draws()).value == pytest.approx(
        rates[0] - own
    )


def test_the_level_that_is_asked_for_is_that_of_every_interval() -> None:
    items, people, judge, _ = drawn()
    widths = [
        [
            width(one)
            for part in (study.judge, study.people, study.by_item)
            for one in (part.with_ties, part.without_ties, study.kappa, study.alpha, study.ac1)
        ]
        for study in (
            agreement(items, people, judge, StudyOptions(rounds=100, level=level))
            for level in (0.95, 0.5)
        )
    ]
    assert all(0 < half < 0.6 * wide for wide, half in zip(*widths, strict=True))


def test_the_same_verdicts_differ_by_no_more_than_prompts_of_one_mind_leave() -> None:
    items, people, judge, _ = drawn()
    lead = over_another(items, judge, judge, people, ties=True, draws=_draws())
    away = 1 - 0.025 ** (1 / items.n_prompts)
    assert (lead.value, lead.lower, lead.upper) == pytest.approx((0, -away, away))


def test_what_both_share_cancels_so_the_interval_is_narrower_than_apart() -> None:
    items, people, judge, _ = drawn()
    nearly = rows_of(judge.item, np.where(np.arange(200) < 10, -judge.label, judge.label))
    lead = over_another(items, judge, nearly, people, ties=True, draws=_draws())
    alone = pair_agreement(items, judge, people, ties=True, draws=_draws())
    assert width(lead) < width(alone)


def test_people_count_only_where_the_judge_said_something() -> None:
    items, people, judge, _ = drawn()
    part = judge.only(judge.item < 100)
    alike = people.only(people.item < 100)
    lead = over_people(items, part, people, ties=True, draws=_draws())
    assert lead == over_people(items, part, alike, ties=True, draws=_draws())


def test_without_two_votes_an_item_there_is_no_difference_from_people() -> None:
    items, people, judge, _ = drawn()
    lead = over_people(items, judge, people.only(np.arange(200)), ties=True, draws=_draws())
    assert (lead.value, lead.lower, lead.upper) == (None, None, None)


def test_three_people_of_whom_one_said_a_little_less_are_three() -> None:
    rng = np.random.default_rng(3)
    sides = rng.choice([1, -1], 60)
    often = np.array([0.95, 0.93, 0.88])
    labels = np.where(rng.random((60, 3)) < often, sides[:, None], -sides[:, None])
    items = items_of(60)
    item, rater = (np.ravel(one) for one in np.indices(labels.shape))
    people = labels_of(zip(item, labels.ravel(), strict=True), rater=rater.tolist())
    whole = own_agreement(items, people, _draws(), ties=True)
    nearly = own_agreement(items, people.only(np.arange(people.n) > 0), _draws(), ties=True)
    assert width(nearly) == pytest.approx(width(whole), rel=0.1)


def test_people_who_vote_repeatedly_on_an_item_are_not_more_people() -> None:
    """Person 0 says A, A and A of item 0, person 1 A and B: three pairs of six agree."""
    people = labels_of([(0, 1), (0, 1), (0, 1), (0, 1), (0, -1)], rater=[0, 0, 0, 1, 1])
    assert _agreed(own_(items_of(1), people, ties=True)) == (3, 6)
    # Labels of A are 4 of 5: chance is .68, and (.5 - .68) / .32 is left.
    assert own_kappa_(items_of(1), people).value == pytest.approx(-0.5625)
    alone = labels_of([(0, 1), (0, 1), (0, 1)], rater=[0, 0, 0])
    nothing = own_(items_of(1), alone, ties=True)
    assert (nothing.value, nothing.n) == (None, 0)
    assert own_kappa_(items_of(1), alone).value is None
    judge = labels_of([(0, -1)])
    gap = over_people(items_of(1), judge, people, Draws(RNG, 20), ties=False)
    assert gap.value == pytest.approx(1 / 5 - 1 / 2)


def test_the_threshold_of_ties_that_matches_people_is_marked() -> None:
    """Preferences of .5 to .95 in ten steps; people tie on three items of ten."""
    items = items_of(10)
    people = labels_of([(k, 0 if k < 3 else 1) for k in range(10)])
    graded = [0.5 + k / 20 for k in range(10)]
    judge = labels_of([(k, 1) for k in range(10)], probability=graded)
    rows = tie_thresholds(items, people, judge)
    assert [row["threshold"] for row in rows] == pytest.approx(np.linspace(0, 0.5, 11).tolist())
    assert [row["ties"] for row in rows][:4] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    (match,) = (row for row in rows if row["matches_people"])
    assert (match["threshold"], match["ties"]) == (pytest.approx(0.1), pytest.approx(0.3))
    assert match["agreement"] == 1.0
    assert tie_thresholds(items, people, labels_of([(k, 1) for k in range(10)])) == ()
