"""What moves a judge, and what moves people, apart from which response is better."""

from dataclasses import dataclass

import numpy as np

from judge.studies.items import Estimate, Items, Said
from judge.studies.preferences import POSITION, Preferences, from_influence, preferences
from judge.studies.resampling import FEW_PROMPTS
from judge.studies.self_preference import SelfPreference, self_preference
from rating.errors import NotIdentifiedError
from rating.scale import POINTS_PER_NAT
from rating.typing import Floats

LENGTH, FORMAT = "length", "format"


@dataclass(frozen=True, slots=True)
class Effect:
    """What one more of a term is worth, in points; None where it was not fitted.

    Attributes
    ----------
    people, judge : Estimate or None
        ``n`` is the number of votes, of verdicts.
    difference : Estimate or None
        The judge's less people's: its bias. None unless both were fitted.
    """

    people: Estimate | None
    judge: Estimate | None
    difference: Estimate | None


@dataclass(frozen=True, slots=True)
class Bias:
    """How differently a judge and people are moved.

    Attributes
    ----------
    position : Effect
        Points for being shown first.
    length : Effect
        Points for being twice as long.
    format : Effect
        Points for twice the markdown.
    self_preference : SelfPreference or None
        None without the judge's own model, or where it cannot be told.
    warnings : tuple of str
    """

    position: Effect
    length: Effect
    format: Effect
    self_preference: SelfPreference | None
    warnings: tuple[str, ...]


def bias(
    items: Items,
    people: Said,
    judge: Said,
    *,
    own_model: str | None = None,
    level: float = 0.95,
) -> Bias:
    """Fit one model to votes and to verdicts, and compare the slopes.

    ::

        logit P(side A) = theta_a - theta_b + position first + length gap + format gap

    Strengths are fitted anew for each, so a judge that rates models as people do and one that
    does not are measured alike. Slopes are in points, ``400 / ln 10`` a nat, each on the scale of
    its own board. A term that a source leaves without a value is left out of its fit, with a
    warning. People who like longer answers are no bias of the judge: the difference is.

    Parameters
    ----------
    own_model : str, optional
        The judge's own name among the models.

    Returns
    -------
    Bias
        Intervals are the sandwich by prompt, joint over votes and verdicts of the same prompt.

    Raises
    ------
    NotIdentifiedError
        If votes, or verdicts, do not give the models finite strengths.

    References
    ----------
    .. [1] L. Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena", NeurIPS
       2023, section 3.3 (position, verbosity, self-enhancement).
    """
    sources = {"votes": people, "verdicts": judge}
    warnings: list[str] = []
    fits = {name: _fitted(items, said, name, warnings) for name, said in sources.items()}
    votes, verdicts = fits["votes"], fits["verdicts"]
    effects = {term: _effect(votes, verdicts, term, level) for term in (POSITION, LENGTH, FORMAT)}
    own = None
    if own_model is not None:
        own = self_preference(votes, verdicts, own_model, level=level)
        if own is None:
            warnings.append(_no_self(own_model))
    warnings += _few(fits)
    return Bias(effects[POSITION], effects[LENGTH], effects[FORMAT], own, tuple(warnings))


def _fitted(items: Items, said: Said, source: str, warnings: list[str]) -> Preferences:
    """Fit all terms that are known, or as many of them as can be told apart."""
    terms = _known_terms(items, said, source, warnings)
    people = source == "votes"
    try:
        return preferences(items, said, terms, people=people)
    except NotIdentifiedError:
        kept: tuple[str, ...] = ()
        found = preferences(items, said, people=people)
        for term in terms:
            try:
                found = preferences(items, said, (*kept, term), people=people)
                kept = (*kept, term)
            except NotIdentifiedError as error:
                warnings.append(f"{term.capitalize()} cannot be told from the {source}: {error}")
        return found


def _known_terms(items: Items, said: Said, source: str, warnings: list[str]) -> tuple[str, ...]:
    found = [POSITION] if (said.first != 0).any() else []
    if not found:
        warnings.append(
            f"The {source} do not say what was shown first, or are of both orders together: "
            "no effect of the position."
        )
    for term in (LENGTH, FORMAT):
        gap = items.gaps.get(term, np.full(items.n, np.nan))[said.item]
        if np.isnan(gap).all():
            warnings.append(f"Nothing is known of the {term} of what the {source} compared.")
        else:
            found.append(term)
            if np.isnan(gap).any():
                share = 100 * float(np.isnan(gap).mean())
                warnings.append(f"{share:.1f} % of the {source} are left out: no {term} known.")
    return tuple(found)


def _effect(people: Preferences, judge: Preferences, term: str, level: float) -> Effect:
    alone = [
        _in_points(board.slopes[term], board.pull(term), board.n, level)
        if term in board.slopes
        else None
        for board in (people, judge)
    ]
    if None in alone:
        return Effect(alone[0], alone[1], None)
    apart = judge.slopes[term] - people.slopes[term]
    pull = judge.pull(term) - people.pull(term)
    return Effect(alone[0], alone[1], _in_points(apart, pull, judge.n, level))


def _in_points(value: float, pull: Floats, n: int, level: float) -> Estimate:
    return from_influence(POINTS_PER_NAT * value, POINTS_PER_NAT * pull, n=n, level=level)


def _few(fits: dict[str, Preferences]) -> list[str]:
    sizes = {name: int((f.influence != 0).any(axis=1).sum()) for name, f in fits.items()}
    return [
        f"The {name} are of {n} prompt{'s'[n == 1 :]}: under {FEW_PROMPTS}, intervals of biases "
        "are too narrow."
        for name, n in sizes.items()
        if n < FEW_PROMPTS
    ]


def _no_self(name: str) -> str:
    return (
        f"Whether the judge favours {name!r} cannot be told: that needs it and three others on "
        "both boards, and people to tell these apart."
    )
