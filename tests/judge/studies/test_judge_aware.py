"""One model for people and judges: what is planted comes out, and k verdicts are not k votes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import approx_fprime

from judge.studies.boards import preferences
from judge.studies.consensus import consensus
from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.estimates import Estimate
from judge.studies.items import Items, Labels
from judge.studies.judge_aware import (
    PEOPLE,
    JudgeAware,
    Rater,
    _objective,
    _problem,
    judge_aware,
)
from judge.studies.options import StudyOptions
from judge.studies.panel import Panel, study_panel
from judge.studies.panel_data import PanelData
from judge.studies.pooled_prediction import pooled_prediction
from rating.errors import NotIdentifiedError
from tests.judge.studies.panels import written

Floats = NDArray[np.float64]
THETA = np.linspace(-1, 1, 8)
WORTH = Estimate(2.0, 1.8, 2.2, 2000)


class World:
    """Pairs of models, and raters of planted sensitivity, position bias and favourite."""

    def __init__(self, seed: int, n: int = 2000, *, each: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        pairs = np.array([self.rng.choice(len(THETA), 2, replace=False) for _ in range(n)])
        names = tuple(f"model{model}" for model in range(len(THETA)))
        self.items = Items(names, pairs, np.arange(n) // each)

    def labels(
        self, gamma: float = 1.0, first: float = 0.0, lifted: Mapping[int, float] | None = None
    ) -> Labels:
        r = np.zeros(len(THETA))
        for model, lift in (lifted or {}).items():
            r[model] = lift
        a, b = self.items.pairs.T
        shown = self.rng.choice([-1, 1], self.items.n)
        eta = gamma * (THETA[a] - THETA[b]) + first * shown + r[a] - r[b]
        side = np.where(self.rng.random(self.items.n) < 1 / (1 + np.exp(-eta)), 1, -1)
        one = Labels.of_one_rater(np.arange(self.items.n), side)
        return replace(one, first=shown.astype(np.int8))

    def fit(self, *raters: Rater, spread: float | None = None) -> JudgeAware:
        return judge_aware(self.items, raters, spread=spread)


def rater(name: str, labels: Labels) -> Rater:
    return Rater(name, labels, np.ones(labels.n))


GAMMAS = (0.6, 1.0, 1.5, 2.2)


def test_sensitivities_are_recovered_with_people_as_anchor() -> None:
    world = World(1)
    people = [rater(PEOPLE, world.labels(1.0))]
    judges = [rater(f"j{k}", world.labels(gamma)) for k, gamma in enumerate(GAMMAS)]
    fitted = world.fit(*people, *judges)
    assert fitted.sensitivity[0] == pytest.approx(1, abs=1e-6)
    assert fitted.sensitivity[1:] == pytest.approx(GAMMAS, rel=0.15)
    assert fitted.theta == pytest.approx(THETA, abs=0.2)
    assert fitted.theta.sum() == pytest.approx(0, abs=1e-8)


def test_without_people_the_geometric_mean_of_sensitivities_is_one() -> None:
    world = World(2)
    fitted = world.fit(*(rater(f"j{k}", world.labels(g)) for k, g in enumerate(GAMMAS)))
    assert np.log(fitted.sensitivity).sum() == pytest.approx(0, abs=1e-8)
    scale = np.exp(np.log(GAMMAS).mean())
    assert fitted.sensitivity == pytest.approx(np.array(GAMMAS) / scale, rel=0.1)


def test_the_first_place_and_a_favourite_fall_out() -> None:
    world = World(3)
    judges = [
        rater("fair", world.labels(1.2)),
        rater("biased", world.labels(1.0, 0.5, {2: 1.0})),
        rater("other", world.labels(0.8)),
    ]
    fitted = world.fit(rater(PEOPLE, world.labels()), *judges)
    assert fitted.first[2] == pytest.approx(0.5, abs=0.12)
    assert fitted.first[1] == pytest.approx(0, abs=0.12)
    assert fitted.residual[2].argmax() == 2
    lead = fitted.residual[2, 2] - np.delete(fitted.residual[2], 2).mean()
    assert lead == pytest.approx(1.0, abs=0.3)
    assert np.abs(fitted.residual[1]).max() < 0.3
    assert np.abs(fitted.residual[0]).max() < 1e-6  # of people


def test_a_place_that_cannot_be_told_is_not_a_number() -> None:
    world = World(4, 400)
    one, other = world.labels(), world.labels()
    always = replace(other, first=np.ones(other.n, dtype=np.int8))
    fitted = world.fit(rater("honest", one), rater("one_way", always))
    assert np.isnan(fitted.first).tolist() == [False, True]


def test_a_judge_that_sees_nothing_or_the_opposite_is_left_out_and_named() -> None:
    world = World(5)
    people = rater(PEOPLE, world.labels(1.0))
    opposite = rater("anti", world.labels(-1.0))
    fitted = world.fit(people, rater("good", world.labels(1.0)), opposite)
    assert fitted.insensitive == ("anti",)
    assert fitted.raters == (PEOPLE, "good")
    with pytest.raises(NotIdentifiedError, match="anti see nothing of what the others see"):
        world.fit(people, opposite)


def test_one_rater_and_no_residuals_are_bradley_terry() -> None:
    world = World(6, 600)
    labels = world.labels(1.0)
    unplaced = replace(labels, first=np.zeros(labels.n, dtype=np.int8))
    fitted = world.fit(rater(PEOPLE, unplaced), spread=0.5)
    plain = preferences(world.items, unplaced)
    np.testing.assert_allclose(fitted.theta, plain.theta, atol=1e-6)
    moved = fitted.influence[:, : len(THETA)]  # people have no residuals
    np.testing.assert_allclose(moved, plain.influence, atol=1e-6)


def test_the_fit_is_where_the_gradient_vanishes() -> None:
    world = World(7, 300)
    raters = [rater(PEOPLE, world.labels()), rater("j", world.labels(1.5, 0.3))]
    fitted = world.fit(*raters, spread=0.3)
    problem = _problem(world.items, world.items.models, raters)
    x = np.concatenate(
        [fitted.theta, np.log(fitted.sensitivity), fitted.first, fitted.residual.ravel()]
    )
    x[problem.n_models] = 0.0
    penalty = problem.penalty(0.3)
    free = np.diag(penalty) < 1e6
    gradient = approx_fprime(x, lambda at: _objective(problem, penalty, at), 1e-6)
    assert np.abs(gradient[free]).max() < 1e-3


def test_raters_in_another_order_and_models_of_other_names_give_the_same() -> None:
    world = World(8, 500)
    people = rater(PEOPLE, world.labels())
    one, two = rater("a", world.labels(1.4)), rater("b", world.labels(0.7))
    fitted, other = world.fit(people, one, two), world.fit(people, two, one)
    np.testing.assert_allclose(fitted.theta, other.theta, atol=1e-5)
    np.testing.assert_allclose(fitted.sensitivity[[0, 2, 1]], other.sensitivity, atol=1e-5)
    renamed = replace(world.items, models=tuple(f"other{m}" for m in range(len(THETA))))
    np.testing.assert_allclose(
        judge_aware(renamed, [people, one, two]).theta, fitted.theta, atol=1e-9
    )


def panel_of(world: World, people: Labels | None, judges: Sequence[Labels]) -> PanelData:
    verdicts = tuple(JudgeVerdicts(f"j{k}", labels, labels, 0) for k, labels in enumerate(judges))
    number = np.arange(world.items.n)
    truth = judges[0] if people is None else people
    data = StudyData(
        items=world.items,
        people=truth,
        judges=verdicts,
        prompts=tuple(map(str, range(world.items.n_prompts))),
        voters=(),
        keyed_by="item_id",
        source_rows=(number, number),
        warnings=(),
    )
    families = {judge.name: judge.name for judge in verdicts}
    return PanelData(data, truth, people is not None, families)


def test_a_judge_repeated_nine_times_rates_as_once_and_no_more_certainly() -> None:
    world = World(9, 800)
    people, judge = world.labels(), world.labels(1.5)
    worth = Estimate(1.0, 1.0, 1.0, 800)
    once = consensus(panel_of(world, people, [judge]), worth, 0.95)
    often = consensus(panel_of(world, people, [judge] * 9), worth, 0.95)
    for model, rating in once.ratings.items():
        again = often.ratings[model]
        assert again.value == pytest.approx(rating.value, abs=1)
        assert width(again) == pytest.approx(width(rating), rel=0.02)
    assert often.powered is not None
    assert once.powered is not None
    for ours, theirs in zip(
        once.powered.to_dict()["ratings"], often.powered.to_dict()["ratings"], strict=True
    ):
        assert theirs["rating"] == pytest.approx(ours["rating"], abs=3)


def width(one: Estimate) -> float:
    assert one.lower is not None
    assert one.upper is not None
    return one.upper - one.lower


def test_the_board_is_not_shown_without_what_the_panel_is_worth() -> None:
    world = World(10, 300)
    panel = panel_of(world, world.labels(), [world.labels()])
    with pytest.raises(NotIdentifiedError, match="no board"):
        consensus(panel, Estimate(None, None, None, 0), 0.95)
    shown = consensus(panel, WORTH, 0.95).to_dict()
    assert shown["n_eff"]["value"] == 2.0
    assert shown["anchor"] == "people"


def test_the_pooled_prediction_is_one_verdict_an_item_and_calibrated() -> None:
    world = World(11, 3000)
    people = world.labels()
    judges = [world.labels(g) for g in (0.5, 1.0, 2.0)]
    votes = people.only(np.arange(1000))
    pooled = pooled_prediction(world.items, votes, judges)
    assert pooled.n == world.items.n
    assert len(np.unique(pooled.item)) == pooled.n
    rest = np.arange(1000, 3000)
    predicted, voted = pooled.probability[rest], (1 + people.label[rest]) / 2
    for low, high in ((0.2, 0.5), (0.5, 0.8)):
        inside = (predicted > low) & (predicted < high)
        assert predicted[inside].mean() == pytest.approx(voted[inside].mean(), abs=0.05)


def test_no_item_is_predicted_by_its_own_votes() -> None:
    world = World(12, 100)
    judges = [world.labels(g) for g in (0.5, 1.0)]
    people = world.labels()
    before = pooled_prediction(world.items, people, judges)
    label = people.label.copy()
    label[7] *= -1
    after = pooled_prediction(world.items, replace(people, label=label), judges)
    assert after.probability[7] == before.probability[7]
    assert (after.probability != before.probability).sum() > 20  # and others are


def files(folder: Path, world: World, people: Labels, judges: Mapping[str, Labels]) -> Panel:
    names = world.items.models
    sides = {1: "model_a", -1: "model_b"}
    items = [
        (f"i{k}", f"p{p}", names[a], names[b])
        for k, (p, (a, b)) in enumerate(
            zip(world.items.prompt.tolist(), world.items.pairs.tolist(), strict=True)
        )
    ]
    votes = [
        (*items[i], sides[s], f"v{i % 40}")
        for i, s in zip(people.item.tolist(), people.label.tolist(), strict=True)
    ]
    verdicts = [
        (*items[i], sides[s], name, "ab" if first > 0 else "ba")
        for name, one in judges.items()
        for i, s, first in zip(
            one.item.tolist(), one.label.tolist(), one.first.tolist(), strict=True
        )
    ]
    head = "item_id,prompt_id,model_a,model_b,winner"
    cast = written(folder / "votes.csv", votes, f"{head},voter")
    given = written(folder / "verdicts.csv", verdicts, f"{head},judge,order")
    return study_panel([given], cast, StudyOptions(rounds=50), board=True)


def test_the_board_of_files_names_a_judge_s_own_model_and_its_lift(tmp_path: Path) -> None:
    world = World(13, 1500, each=2)
    judges = {"model3-large": world.labels(1.0, 0.4, {3: 1.0}), "owl": world.labels(1.3)}
    panel = files(tmp_path, world, world.labels(), judges)
    board = panel.board
    assert board is not None
    assert board.own == {"model3-large": "model3"}
    lift = board.residual["model3-large"]["model3"]
    assert lift.lower is not None
    assert lift.lower > 40
    assert board.first["model3-large"].value == pytest.approx(0.4 * 173.7, abs=25)
    shown = panel.to_dict()["board"]
    assert list(shown) == [
        *("n_eff", "anchor", "ratings", "judges", "residual_sd", "left_out", "ppi", "warnings")
    ]
    assert shown["n_eff"]["value"] == panel.to_dict()["n_eff"]
    assert shown["ratings"][0]["model"] == "model7"


def test_other_names_of_judges_give_the_same_board(tmp_path: Path) -> None:
    world = World(14, 400)
    people, one, two = world.labels(), world.labels(1.2), world.labels(0.8)
    plain = files(tmp_path, world, people, {"gpt": one, "claude": two}).board
    other = files(tmp_path, world, people, {"alpha": one, "omega": two}).board
    assert plain is not None
    assert other is not None
    for model, rating in plain.ratings.items():
        assert other.ratings[model].value == pytest.approx(rating.value, abs=0.01)
    assert other.sensitivity["alpha"].value == pytest.approx(
        plain.sensitivity["gpt"].value, abs=1e-4
    )


@pytest.mark.parametrize(
    ("winners", "reason"),
    [
        (("model_a", "model_a"), "Board: "),
        (("model_a", "model_b"), "Board: The verdicts are on x and y alone"),
    ],
)
def test_a_board_that_the_rows_do_not_determine_is_a_warning_beside_the_card(
    winners: tuple[str, str], reason: str, tmp_path: Path
) -> None:
    rows = [
        (f"i{k}", "x", "y", winners[k % 3 == 0], winners[0] if k % 2 else "model_b", "owl")
        for k in range(30)
    ]
    head = "item_id,model_a,model_b,winner,label,judge"
    panel = study_panel(
        [written(tmp_path / "v.csv", rows, head)], None, StudyOptions(rounds=50), board=True
    )
    assert panel.board is None
    assert panel.card.n_eff.value == 1
    assert any(text.startswith(reason) for text in panel.warnings)


def test_who_is_not_on_the_board_is_named_among_the_warnings(tmp_path: Path) -> None:
    world = World(15, 500)
    judges = {"good": world.labels(1.2), "anti": world.labels(-1.2)}
    panel = files(tmp_path, world, world.labels(), judges)
    assert panel.board is not None
    assert panel.board.insensitive == ("anti",)
    assert any(text.startswith("anti is not on the board") for text in panel.warnings)
