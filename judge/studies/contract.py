"""A study as plain values of a fixed shape; what the data cannot give is null, with a warning."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from judge.studies.bias import Effect
from judge.studies.biases import Biases
from judge.studies.boards import FIGURES, BoardsCompared
from judge.studies.gates import MIN_ITEMS, MIN_PEOPLE
from judge.studies.items import Estimate
from judge.studies.powered_ratings import PoweredRatings
from judge.studies.rates import Rates
from rating.scale import to_points

if TYPE_CHECKING:
    from judge.studies.one_judge import JudgeStudy

Plain = dict[str, Any]

BIASES = ("position", "length", "format", "self")
RATING = ("rating", "lower", "upper", "df")
GAIN = tuple(f"effective_sample_gain{end}" for end in ("", "_lower", "_upper"))

WHY: Mapping[str, str] = {
    "agreement": "no item has both a vote and a verdict",
    "agreement without ties": "on no item both a vote and a verdict prefer a side",
    "human_agreement": "no item that was judged has two votes",
    "human_agreement without ties": "no item that was judged has two votes that prefer a side",
    "ceiling": "it takes items that were judged, and on which two votes prefer a side",
    "kappa": "votes and verdicts are all of one kind, or there are none to compare",
    "human_kappa": "it takes items with two votes, and votes of more than one kind",
    "alpha": "it takes items with two votes, and votes of more than one kind",
    "ac1": "no item that was judged has two votes",
    "rank_correlation": "it takes three models that both votes and verdicts rate",
    "alternative": f"it takes {MIN_PEOPLE} known voters, each with {MIN_ITEMS} judged items that "
    "others voted on as well",
    "bias of position": "it takes votes and verdicts that say what was shown first",
    "bias of length": "it takes lengths or texts of responses, in either file or with --outputs",
    "bias of format": "it takes texts of responses, in either file or with --outputs",
    "bias of self": "it takes a model of the judge's name and three others, rated by both",
}
"""Why a figure is not defined."""


def contract(study: "JudgeStudy") -> Plain:
    """Return the study of one judge in the shape that ``arena study judge`` writes."""
    found = study.agreement
    return {
        "first_answer": study.first_answer.to_dict(),
        "agreement": _rates(found.judge),
        "human_agreement": _rates(found.people),
        **{name: estimate.to_dict() for name, estimate in _coefficients(study).items()},
        "rank_correlation": _correlation(study.compared),
        "alternative": study.alternative and study.alternative.to_dict(),
        "bias": _bias(study.biases),
        "ppi": _ppi(study.powered),
        "groups": {value: contract(group) for value, group in study.groups.items()},
        "n_unread": study.n_unread,
        "warnings": [*study.warnings, *missing(study)],
    }


def missing(study: "JudgeStudy") -> Iterator[str]:
    """Say of each figure that is not defined why it is not."""
    found, compared = study.agreement, study.compared
    figures = {
        "agreement": found.judge.with_ties,
        "agreement without ties": found.judge.without_ties,
        "human_agreement": found.people.with_ties,
        "human_agreement without ties": found.people.without_ties,
        **_coefficients(study),
        "rank_correlation": None if compared is None else compared.spearman,
    }
    for kind in BIASES:
        effect = None if study.biases is None else study.biases.effects[kind]
        figures[f"bias of {kind}"] = None if effect is None else effect.difference
    for name, estimate in figures.items():
        if estimate is None or estimate.value is None:
            yield f"There is no {name}: {WHY[name]}."
    if study.alternative is None:
        yield f"There is no alternative: {WHY['alternative']}."


def _coefficients(study: "JudgeStudy") -> dict[str, Estimate]:
    found = study.agreement
    return {
        "ceiling": study.ceiling.highest,
        "kappa": found.kappa,
        "human_kappa": found.people_kappa,
        "alpha": found.alpha,
        "ac1": found.ac1,
    }


def _rates(rates: Rates) -> Plain:
    return {"with_ties": _rate(rates.with_ties), "without_ties": _rate(rates.without_ties)}


def _rate(estimate: Estimate) -> Plain:
    return {
        "rate": estimate.value,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "n": estimate.n,
    }


def _correlation(found: BoardsCompared | None) -> Plain:
    kinds = {kind: None if found is None else getattr(found, kind) for kind in FIGURES}
    return {
        kind: {end: getattr(one, end, None) for end in ("value", "lower", "upper")}
        for kind, one in kinds.items()
    }


def _bias(found: Biases | None) -> Plain:
    effects = {kind: None if found is None else found.effects[kind] for kind in BIASES}
    return {kind: _effect(effect) for kind, effect in effects.items()}


def _effect(effect: Effect | None) -> Plain | None:
    if effect is None or effect.difference is None:
        return None
    sides = {"people": effect.people, "judge": effect.judge, "difference": effect.difference}
    return {side: one and one.to_dict() for side, one in sides.items()}


def _ppi(found: PoweredRatings | None) -> Plain:
    if found is None:
        return {"ratings": None, **dict.fromkeys(GAIN)}
    ratings = found.ratings
    points = (to_points(x) for x in (ratings.theta, ratings.lower, ratings.upper))
    return {
        "ratings": [
            {"model": model, **dict(zip(RATING, map(_finite, row), strict=True))}
            for model, *row in zip(found.models, *points, ratings.df, strict=True)
        ],
        **dict(zip(GAIN, (found.gain.value, found.gain.lower, found.gain.upper), strict=True)),
    }


def _finite(value: np.floating) -> float | None:
    return float(value) if np.isfinite(value) else None
