"""Which models a judge favours."""

import numpy as np
import pytest
from scipy.stats import t

from judge.studies.biases import favouritism
from judge.studies.one_judge import study_judge
from judge.studies.options import StudyOptions
from judge.studies.rows import Items, Labels
from tests.judge.studies.favouring import World
from tests.judge.studies.labels import swapped

Rows = list[tuple[int, int, int, list[tuple[int, int]], int]]
"""Of each item the two models, the prompt, voters with their votes, and the verdict."""


def favoured(rows: Rows, model: int) -> float:
    """Compute b of the docstring item by item."""
    of: dict[int, list[tuple[float, float, bool]]] = {}
    for a, b, _, votes, verdict in rows:
        if votes:
            p, j = float(np.mean([vote for _, vote in votes])) / 2, verdict / 2
            of.setdefault(a, []).append((j, p, model in (a, b)))
            of.setdefault(b, []).append((-j, -p, model in (a, b)))
    followed = spread = 0.0
    for other, seen in of.items():
        if rest := [(j, p) for j, p, with_it in seen if not with_it]:
            assert other != model
            j, p = np.array(rest).T
            followed += len(j) * j.mean() * p.mean() - (j * p).mean()
            spread += len(j) * p.mean() ** 2 - (p * p).mean()
    j, p, _ = np.array(of[model]).T
    return float(j.mean() - np.clip(followed / spread, 0, 3) * p.mean())


def drawn(seed: int) -> tuple[Items, Labels, Labels]:
    """Draw 240 items of 60 prompts, with one to four of nine voters each."""
    world = World(voters=9, effect=0.5, items=240, models=5)
    data = world.study("sharp", seed, share=0.5)
    rng = np.random.default_rng(seed)
    items = Items(data.items.models, data.items.pairs, np.arange(240) % 60)
    some = (rng.random(data.people.n) < 0.7) | (np.arange(data.people.n) % 3 == 0)
    return items, data.people.only(some), data.judges[0].verdicts


def rows_of(items: Items, people: Labels, judge: Labels, without: object = None) -> Rows:
    """Give the rows, without a voter, a prompt, or a voter's votes on a prompt."""
    rows: Rows = []
    for i, (a, b) in enumerate(items.pairs.tolist()):
        prompt = int(items.prompt[i])
        votes = [
            (int(who), int(vote))
            for who, vote in zip(
                people.rater[people.item == i], people.label[people.item == i], strict=True
            )
            if without not in (("voter", who), ("both", who, prompt))
        ]
        if without != ("prompt", prompt):
            rows.append((a, b, prompt, votes, int(judge.label[i])))
    return rows


def test_values_and_limits_are_those_of_leaving_out_row_by_row() -> None:
    items, people, judge = drawn(3)
    whole = rows_of(items, people, judge)
    voters = sorted(set(people.rater.tolist()))
    cells = zip(people.rater.tolist(), items.prompt[people.item].tolist(), strict=True)
    clusters: dict[str, list[object]] = {
        "voter": [("voter", who) for who in voters],
        "prompt": [("prompt", prompt) for prompt in range(60)],
        "both": [("both", *cell) for cell in sorted(set(cells))],
    }
    variances = {}
    for kind, left_out in clusters.items():
        value = favoured(whole, 4)
        moved = [favoured(rows_of(items, people, judge, one), 4) - value for one in left_out]
        variances[kind] = (len(moved) - 1) / len(moved) * float(np.sum(np.square(moved)))
    estimate = favouritism(items, people, judge)["m4"]
    assert estimate.value is not None
    assert estimate.value == pytest.approx(favoured(whole, 4))
    assert estimate.n == int((items.pairs == 4).sum())
    of_people = [sum(who == v for r in whole if 4 in r[:2] for who, _ in r[3]) for v in voters]
    effective = sum(of_people) ** 2 / sum(n * n for n in of_people)
    more = max(0.0, variances["prompt"] - variances["both"])
    largest = max(variances["voter"] + more, variances["prompt"], variances["both"])
    reach = t.isf(0.05 / (2 * 5), effective - 1) * np.sqrt(largest)
    assert (estimate.lower, estimate.upper) == pytest.approx(
        (estimate.value - reach, estimate.value + reach)
    )


def test_sides_do_not_matter_and_a_fair_judge_is_not_favouring() -> None:
    items, people, judge = drawn(4)
    turned = Items(items.models, items.pairs[:, ::-1], items.prompt)
    one, other = (
        favouritism(items, people, judge),
        favouritism(turned, swapped(people), swapped(judge)),
    )
    assert [x.value for x in one.values()] == pytest.approx([x.value for x in other.values()])
    exact = favouritism(items, people, people)
    assert max(abs(x.value or 0.0) for x in exact.values()) < 0.03


def test_it_takes_four_models_twenty_prompts_and_thirty_items_of_a_model() -> None:
    data = World(items=300, models=5).study("sharp", 1)
    items, people, judge = data.items, data.people, data.judges[0].verdicts
    three = np.flatnonzero((items.pairs < 3).all(axis=1))
    assert favouritism(items, people.only(np.isin(people.item, three)), judge) == {}
    some = np.flatnonzero((items.pairs != 4).all(axis=1))
    few = np.union1d(some, np.flatnonzero((items.pairs == 4).any(axis=1))[:29])
    result = favouritism(items, people.only(np.isin(people.item, few)), judge)
    assert (result["m4"].n, result["m4"].lower) == (29, None)
    assert all(one.lower is not None for name, one in result.items() if name != "m4")
    alike = Items(items.models, items.pairs, items.prompt % 19)
    assert {one.lower for one in favouritism(alike, people, judge).values()} == {None}


def test_a_judge_that_gives_the_worst_model_its_battles_gets_no_yes_and_the_model_is_named() -> (
    None
):
    """Every other figure speaks for this judge: it agrees with people as they do."""
    data = World(voters=12, votes=12).study("sharp", 1, share=0.6)
    studied = study_judge(data, data.judges[0], StudyOptions(rounds=50), lambda _: None)
    assert studied.first_answer.verdict == "no"
    assert studied.first_answer.reasons[0].startswith("The judge favours m9: +0.")
    plain = studied.to_dict()
    assert (plain["verdict"], plain["biased_models"]) == ("no", ["m9"])
    assert plain["reasons"] == plain["first_answer"]["reasons"]
    worst = next(one for one in plain["favouritism"]["models"] if one["model"] == "m9")
    assert worst["lower"] > 0.1
    assert ["m3", "m9"] in plain["favouritism"]["reversed_pairs"]
    assert plain["reference"]["majority"] == {"winning_rate": 1.0, "passed": 1.0}
    assert 0 <= plain["reference"]["person"]["passed"] <= 1
    assert plain["decides_at"] > 100


def test_a_judge_that_ties_throughout_ranks_nothing() -> None:
    data = World(items=300).study("tie", 1)
    studied = study_judge(data, data.judges[0], StudyOptions(rounds=40), lambda _: None)
    assert studied.first_answer.headline.startswith("No. The judge's verdicts give no ranking")
