"""The board of people and judges together, with how each judge stands to it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judge.studies.biases import own_model
from judge.studies.boards import from_influence
from judge.studies.estimates import Estimate
from judge.studies.items import Labels
from judge.studies.judge_aware import PEOPLE, JudgeAware, Rater, judge_aware
from judge.studies.panel_data import PanelData
from judge.studies.pooled_prediction import pooled_prediction
from judge.studies.powered_ratings import PoweredRatings, powered_ratings
from rating.elo import MEAN_POINTS, POINTS_PER_NAT
from rating.errors import NotIdentifiedError
from rating.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Consensus:
    """The board of people and judges together, and how each judge stands to it.

    Attributes
    ----------
    n_eff : Estimate
        How many independent judges the panel is worth: the board is never shown without it.
    ratings : mapping of str to Estimate
        Points around 1000, best first.
    sensitivity, first : mapping of str to Estimate
        By judge: ``gamma``, and ``alpha`` in points.
    residual : mapping of str to mapping of str to Estimate
        By judge and model: points on the judge's own scale by which it lifts a model beyond its
        sensitivity, shrunk towards 0.
    spread : float
        Standard deviation of these, in points.
    own : mapping of str to str
        The model that is a judge's own, as far as names tell.
    powered : PoweredRatings or None
        Ratings by the votes of people with the panel's one pooled prediction; None without votes,
        or where they identify none.
    """

    n_eff: Estimate
    ratings: dict[str, Estimate]
    sensitivity: dict[str, Estimate]
    first: dict[str, Estimate]
    residual: dict[str, dict[str, Estimate]]
    spread: float
    own: dict[str, str]
    anchored: bool
    insensitive: tuple[str, ...]
    powered: PoweredRatings | None
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "n_eff": self.n_eff.to_dict(),
            "anchor": PEOPLE if self.anchored else "geometric mean of the judges",
            "ratings": [{"model": m} | e.to_dict() for m, e in self.ratings.items()],
            "judges": [
                {
                    "judge": name,
                    "sensitivity": self.sensitivity[name].to_dict(),
                    "first": self.first[name].to_dict() if name in self.first else None,
                    "own_model": self.own.get(name),
                    "residuals": [
                        {"model": model} | one.to_dict()
                        for model, one in self.residual[name].items()
                    ],
                }
                for name in self.sensitivity
            ],
            "residual_sd": self.spread,
            "left_out": list(self.insensitive),
            "ppi": None if self.powered is None else self.powered.to_dict(),
            "warnings": list(self.warnings),
        }


def consensus(panel: PanelData, n_eff: Estimate, level: float) -> Consensus:
    """Rate models by people and judges together, or by judges alone without people.

    On an item the verdicts of all k judges together weigh as much as ``n_eff`` votes, never as k,
    and those of one judge in several orders as one; each vote of a person weighs one.

    Raises
    ------
    NotIdentifiedError
        If ``n_eff`` is not known: the board is not shown without it. As `judge_aware`.
    """
    if n_eff.value is None:
        msg = "It is not known how many independent judges this panel is worth: no board."
        raise NotIdentifiedError(msg)
    data = panel.data
    share = min(n_eff.value / len(data.judges), 1.0)
    raters = [
        Rater(judge.name, judge.in_orders, _one_an_item(judge.in_orders), share)
        for judge in data.judges
    ]
    if panel.by_people:
        raters = [Rater(PEOPLE, data.people, np.ones(data.people.n)), *raters]
    fitted = judge_aware(data.items, raters)
    powered, warnings = _powered(panel, level)
    own = {name: model for name in fitted.raters if (model := own_model(name, fitted.models))}
    return replace(
        _in_points(fitted, level, panel.by_people),
        n_eff=n_eff,
        own=own,
        powered=powered,
        warnings=(*_on_insensitive(fitted), *warnings),
    )


def _one_an_item(labels: Labels) -> Floats:
    rows = np.bincount(labels.item)
    return np.asarray(1.0 / rows[labels.item])


def _powered(panel: PanelData, level: float) -> tuple[PoweredRatings | None, tuple[str, ...]]:
    """Rate by votes with the pooled prediction of all judges, which is one verdict an item."""
    if not panel.by_people:
        return None, ()
    data = panel.data
    try:
        pooled = pooled_prediction(data.items, data.people, [j.verdicts for j in data.judges])
        powered = powered_ratings(data.items, data.people, pooled, level=level)
    except NotIdentifiedError as error:
        return None, (f"Prediction-powered ratings: {error}",)
    return powered, powered.warnings


def _on_insensitive(fitted: JudgeAware) -> Iterator[str]:
    for name in fitted.insensitive:
        yield (
            f"{name} is not on the board: it sees nothing of what the others see, or the opposite."
        )


def _in_points(fitted: JudgeAware, level: float, anchored: bool) -> Consensus:
    n_models, n_raters = len(fitted.models), len(fitted.raters)
    n = int((fitted.influence != 0).any(axis=1).sum())
    judges = [k for k, name in enumerate(fitted.raters) if name != PEOPLE]

    def estimate(value: float, at: int, above: float = 0.0) -> Estimate:
        moved = POINTS_PER_NAT * fitted.influence[:, at]
        return from_influence(above + POINTS_PER_NAT * value, moved, n=n, level=level)

    def residuals(k: int) -> dict[str, Estimate]:
        start = n_models + 2 * n_raters + k * n_models
        return {
            model: estimate(float(fitted.residual[k, i]), start + i)
            for i, model in enumerate(fitted.models)
        }

    order = np.argsort(-fitted.theta, kind="stable").tolist()
    return Consensus(
        n_eff=Estimate(None, None, None, 0),
        ratings={
            fitted.models[i]: estimate(float(fitted.theta[i]), i, MEAN_POINTS) for i in order
        },
        sensitivity={
            fitted.raters[k]: _sensitivity(fitted, n_models + k, k, level) for k in judges
        },
        first={
            fitted.raters[k]: estimate(float(fitted.first[k]), n_models + n_raters + k)
            for k in judges
            if not np.isnan(fitted.first[k])
        },
        residual={fitted.raters[k]: residuals(k) for k in judges},
        spread=POINTS_PER_NAT * fitted.spread,
        own={},
        anchored=anchored,
        insensitive=fitted.insensitive,
        powered=None,
        warnings=(),
    )


def _sensitivity(fitted: JudgeAware, at: int, rater: int, level: float) -> Estimate:
    """Give a sensitivity its interval, which is straight on the logarithm."""
    log = from_influence(
        math.log(fitted.sensitivity[rater]), fitted.influence[:, at], n=0, level=level
    )
    n = int((fitted.influence[:, at] != 0).sum())
    if log.lower is None or log.upper is None:
        return Estimate(float(fitted.sensitivity[rater]), None, None, n)
    ends = math.exp(log.lower), math.exp(log.upper)
    return Estimate(float(fitted.sensitivity[rater]), *ends, n)
