"""What more ratings do to alpha's half-width, compared with studies that were made so."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from judge.studies.estimates import Draws, Estimate
from judge.studies.plan import plan_alpha
from judge.studies.reliability import Ratings, alpha
from tests.judge.studies.crowds import Crowd

Record = Callable[[str, object], None]
STUDIES = 200


def rated(
    crowd: Crowd, rng: np.random.Generator, n_items: int, n_raters: int, each: int
) -> tuple[Ratings, Estimate]:
    items, labels, _ = crowd.draw(rng, n_items, n_raters, each)
    ratings = Ratings.of_labels(items, labels, ties=crowd.ties > 0)
    return ratings, alpha(ratings, Draws(np.random.default_rng(0), 300))


def test_the_present_design_has_the_present_half_width() -> None:
    rng = np.random.default_rng(1)
    ratings, known = rated(Crowd(item=1.5), rng, 150, 8, 3)
    plan = plan_alpha(ratings, known, 0.05, 8, rng)
    assert plan is not None
    assert (plan.n_items, plan.each) == (150, 3)
    by_each = {one.each: one for one in plan.designs}
    assert [*by_each] == [2, 3, 5, 8]
    assert by_each[3].half_width == pytest.approx(plan.enough.half_width)
    widths = [one.half_width for one in plan.designs]
    assert widths == sorted(widths, reverse=True)
    assert (by_each[3].items or 0) * 3 - 450 == pytest.approx(plan.enough.more, abs=3)
    assert "±0.05 needs about" in plan.sentences[0]
    assert plan.same_on_new == pytest.approx(by_each[3].half_width * np.sqrt(3 / 4))
    assert 0.95 < plan.one_more / plan.same_on_new < 1
    assert len(plan.sentences) == 2
    assert plan.sentences[1].endswith(": these are about equal for alpha.")


def test_what_is_reached_and_what_has_no_interval() -> None:
    rng = np.random.default_rng(2)
    ratings, known = rated(Crowd(item=1.5), rng, 150, 8, 3)
    plan = plan_alpha(ratings, known, 0.5, 8, rng)
    assert plan is not None
    assert plan.sentences[0].endswith("±0.5 is reached.")
    together = replace(ratings, cluster=ratings.cluster % 10)
    few = plan_alpha(together, known, 0.5, 8, rng)
    assert few is not None
    assert {one.items for one in few.designs} == {300}, "twenty prompts are needed"
    assert plan_alpha(ratings, Estimate(0.2, None, None, 150), 0.1, 8, rng) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("crowd", "pilot", "design"),
    [
        (Crowd(item=1.5, lean=0.4), (200, 8, 3), (600, 8, 3)),
        (Crowd(item=1.0, ties=0.15), (200, 8, 2), (200, 8, 5)),
        (Crowd(item=3, mean=1), (200, 8, 2), (200, 8, 5)),
        (Crowd(item=0.3), (200, 8, 3), (400, 8, 2)),
        (Crowd(item=1.5, rater=0.5, taste=0.5, ties=0.1), (240, 8, 3), (240, 8, 5)),
    ],
    ids=str,
)
def test_the_half_width_of_alpha_planned_is_the_one_had(
    crowd: Crowd,
    pilot: tuple[int, int, int],
    design: tuple[int, int, int],
    record_property: Record,
) -> None:
    rng, (n, people, each) = np.random.default_rng(3), design
    planned, had = [], []
    for _ in range(STUDIES):
        plan = plan_alpha(*rated(crowd, rng, *pilot), 0.05, people, rng)
        assert plan is not None
        of_now = {one.each: one.half_width for one in plan.designs}
        of_now[plan.each + 1] = plan.one_more
        planned.append(of_now[each] * np.sqrt(plan.n_items / n))
        _, known = rated(crowd, rng, n, people, each)
        assert known.lower is not None
        assert known.upper is not None
        had.append((known.upper - known.lower) / 2)
    row = {"had": f"{np.mean(had):.4f}", "by pilot": f"{np.mean(planned):.4f}"}
    record_property(f"plans of alpha, {STUDIES} studies a row", {"crowd": str(crowd)} | row)
    assert np.mean(planned) == pytest.approx(np.mean(had), rel=0.1)
