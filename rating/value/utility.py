"""Models by what their answers are worth, where mistakes, refusals, money and time weigh."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from rating.errors import DataError, NotIdentifiedError
from rating.sentences import Sentence
from rating.typing import Floats
from rating.value.figures import FLAGS, JEFFREYS, Drawn, Draws, shares


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts against an answer; an answer that is preferred counts 1.

    Attributes
    ----------
    wrong : float
        An answer that is preferred though it is wrong or harmful counts so much less than nothing.
    refusal : float
        Taken off for a refusal.
    dollars : float
        Taken off for each US dollar that 1,000 answers cost.
    seconds : float
        Taken off for each second.
    """

    wrong: float = 1.0
    refusal: float = 0.5
    dollars: float = 0.01
    seconds: float = 0.01

    def __post_init__(self) -> None:
        """Refuse what is no weight."""
        for one in fields(self):
            weight = getattr(self, one.name)
            if not 0 <= weight < math.inf:
                raise DataError(f"The weight {one.name} must be a number from 0, not {weight:g}.")


TERMS = tuple(one.name for one in fields(Weights))

MISSING: Mapping[str, Sentence] = {
    "wrong": Sentence(
        "No answer is labelled as wrong or harmful: that term is left out, and a preferred answer "
        "counts in full."
    ),
    "refusal": Sentence("No answer is labelled as a refusal or none: that term is left out."),
    "dollars": Sentence("No price is known: that term is left out."),
    "seconds": Sentence("No time is known: that term is left out."),
}


@dataclass(frozen=True, slots=True)
class Worth:
    """A model's expected utility of one answer.

    Attributes
    ----------
    first : float
        Probability that no other model's is higher.
    parts : mapping of str to float
        What it is the sum of: ``preferred``, and by term what is taken off.
    """

    model: str
    utility: float
    lower: float
    upper: float
    first: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Turn:
    """How the first place hangs on one weight, all others as they are.

    Attributes
    ----------
    weight : str
    value : float
    below, above : float or None
        The next lower, and higher, weight from which another model is first; None where none is.
    first_below, first_above : str or None
        That model.
    lead_without, lead_doubled : float
        Utility of the first model less that of the best other one, without this weight and with
        twice as much of it (with 1 instead of none): negative where another is first.
    """

    weight: str
    value: float
    below: float | None
    first_below: str | None
    above: float | None
    first_above: str | None
    lead_without: float
    lead_doubled: float


@dataclass(frozen=True, slots=True)
class Utility:
    """Models by expected utility.

    Attributes
    ----------
    weights : Weights
    models : tuple of Worth
        Highest first.
    turns : tuple of Turn
        Weights by how far they move the lead, the most first.
    left_out : mapping of str to Sentence
        Models of which a term that weighs is not known.
    notes : tuple of Sentence
        Terms that are left out, and where others come from.
    """

    weights: Weights
    models: tuple[Worth, ...]
    turns: tuple[Turn, ...]
    left_out: Mapping[str, Sentence]
    notes: tuple[Sentence, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "weights": asdict(self.weights),
            "models": [asdict(row) for row in self.models],
            "turns": [asdict(row) for row in self.turns],
            "left_out": dict(self.left_out),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """What utility is made of, per model: worked out once, weighed as often as asked.

    Attributes
    ----------
    models : tuple of str
    preferred : Drawn
        Probability of being preferred to the average other model, a tie half.
    less : mapping of str to Drawn
        By names of `Weights`, what a weight is multiplied by: the share of answers preferred
        though wrong or harmful, the share of refusals, dollars of 1,000 answers, seconds. A term
        without data is absent.
    notes : tuple of Sentence
        Where terms come from that are not of the votes.
    """

    models: tuple[str, ...]
    preferred: Drawn
    less: Mapping[str, Drawn]
    notes: tuple[Sentence, ...] = ()

    @classmethod
    def of(cls, draws: Draws, rng: np.random.Generator) -> "Terms":
        """Work out the terms, in the draws that costs and ratings come from."""
        figures, rounds, k = draws.figures, draws.rounds, len(draws.models)
        bad = tuple(flag for flag in FLAGS if flag != "refused")
        cost = draws.taken["cost"]
        dollars = Drawn(1000 * cost.value, 1000 * cost.rounds, cost.left_out, cost.answers)
        less = {
            "wrong": shares(figures, bad, rounds, rng, preferred=True),
            "refusal": shares(figures, ("refused",), rounds, rng, preferred=False),
            "dollars": dollars,
            "seconds": draws.taken["seconds"],
        }
        known = {name: one for name, one in less.items() if not np.isnan(one.value).all()}
        drawn = np.stack([_against_all(theta) for theta in draws.strengths])
        preferred = Drawn(_against_all(draws.theta), drawn, {}, np.zeros(k, dtype=np.int64))
        return cls(draws.models, preferred, known)

    def with_refusals(
        self,
        counted: Mapping[str, tuple[float, int]],
        rng: np.random.Generator,
        *,
        note: Sentence,
        missing: Sentence,
    ) -> "Terms":
        """Take shares of refusals from elsewhere, where the votes have none.

        They stay as they are where the votes have some, or fewer than two models are counted.

        Parameters
        ----------
        counted : mapping of str to (float, int)
            Refusals and answers, by model; drawn from the posterior of Jeffreys' prior.
        note : Sentence
            Where they come from.
        missing : Sentence
            Why a model has none.
        """
        known = [model for model in self.models if model in counted]
        if "refusal" in self.less or len(known) < 2:
            return self
        shape = self.preferred.rounds.shape
        value, rounds = np.full(shape[1], np.nan), np.full(shape, np.nan)
        answers = np.zeros(shape[1], dtype=np.int64)
        for place, model in enumerate(self.models):
            if model in counted:
                hits, n = counted[model]
                value[place], answers[place] = hits / n, n
                ends = hits + JEFFREYS, n - hits + JEFFREYS
                rounds[:, place] = rng.beta(*ends, shape[0])
        left_out = {model: missing for model in self.models if model not in counted}
        less = {**self.less, "refusal": Drawn(value, rounds, left_out, answers)}
        ordered = {name: less[name] for name in TERMS if name in less}
        return replace(self, less=ordered, notes=(*self.notes, note))

    def weighed(self, weights: Weights, level: float = 0.95) -> Utility:
        """Rank by expected utility.

        ``U_m = p_m - (1 + wrong) w_m - refusal r_m - dollars d_m - seconds s_m``, p_m how often m
        is preferred, w_m how often though wrong or harmful: such an answer counts ``-wrong``
        instead of 1.

        Raises
        ------
        NotIdentifiedError
            If no two models have all that is weighed.
        """
        used = {name: w for name, w in self._slopes(weights).items() if w > 0}
        left_out: dict[str, Sentence] = {}
        for name in used:
            left_out = dict(self.less[name].left_out) | left_out
        stays = [i for i, model in enumerate(self.models) if model not in left_out]
        if len(stays) < 2:
            raise NotIdentifiedError(
                Sentence(
                    "No two models have all that is weighed (%(why)s): set the weight of what is "
                    "not known to 0.",
                    why=next(iter(left_out.values())),
                )
            )
        now, drawn = self.preferred.value[stays].copy(), self.preferred.rounds[:, stays].copy()
        parts = {"preferred": self.preferred.value[stays]}
        for name, slope in used.items():
            parts[name] = -slope * self.less[name].value[stays]
            now += parts[name]
            drawn -= slope * self.less[name].rounds[:, stays]
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
        first = (drawn >= drawn.max(axis=1, keepdims=True)).mean(axis=0)
        rows = [
            Worth(
                model=self.models[i],
                utility=float(now[at]),
                lower=float(low[at]),
                upper=float(high[at]),
                first=float(first[at]),
                parts={name: float(values[at]) for name, values in parts.items()},
            )
            for at, i in enumerate(stays)
        ]
        return Utility(
            weights=weights,
            models=tuple(sorted(rows, key=lambda row: (-row.utility, row.model))),
            turns=tuple(self._turns(weights, stays, now)),
            left_out=left_out,
            notes=(
                *(why for name, why in MISSING.items() if name not in self.less),
                *self.notes,
            ),
        )

    def _slopes(self, weights: Weights) -> dict[str, float]:
        """Return what each term is multiplied by."""
        each = {name: getattr(weights, name) for name in self.less}
        return each | ({"wrong": 1 + weights.wrong} if "wrong" in each else {})

    def _turns(self, weights: Weights, stays: list[int], now: Floats) -> list[Turn]:
        turns = [
            self._turn(name, getattr(weights, name), stays, now)
            for name in TERMS
            if name in self.less and not np.isnan(self.less[name].value[stays]).any()
        ]
        second, best = np.sort(now)[-2:]

        def moves(turn: Turn) -> float:
            reach = (float(best - second), turn.lead_without, turn.lead_doubled)
            return max(reach) - min(reach)

        return sorted(turns, key=moves, reverse=True)

    def _turn(self, name: str, weight: float, stays: list[int], now: Floats) -> Turn:
        """Follow every model's utility, a line in the weight, to where it crosses the first's."""
        x = self.less[name].value[stays]
        best = int(np.argmax(now))
        others = np.arange(len(now)) != best
        lead, slope = now[best] - now, x[best] - x

        def at(other: float) -> float:
            return float((lead - (other - weight) * slope)[others].min())

        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = weight + lead / slope
        up, down = others & (slope > 0), others & (slope < 0) & (crossing >= 0)
        above = int(np.argmin(np.where(up, crossing, np.inf))) if up.any() else None
        below = int(np.argmax(np.where(down, crossing, -np.inf))) if down.any() else None
        names = [self.models[i] for i in stays]
        return Turn(
            weight=name,
            value=weight,
            below=None if below is None else float(crossing[below]),
            first_below=None if below is None else names[below],
            above=None if above is None else float(crossing[above]),
            first_above=None if above is None else names[above],
            lead_without=at(0.0),
            lead_doubled=at(2 * weight if weight else 1.0),
        )


def _against_all(theta: Floats) -> Floats:
    """Return how often each model is preferred to the average other one."""
    k = len(theta)
    p = scipy.special.expit(theta[:, None] - theta[None, :])
    return np.asarray((p.sum(axis=1) - 0.5) / (k - 1))


def read_weights(text: str) -> Weights:
    """Read weights as they are written on a command line.

    Raises
    ------
    DataError
        If a part is no weight.

    Examples
    --------
    >>> read_weights("wrong=2, dollars=0")
    Weights(wrong=2.0, refusal=0.5, dollars=0.0, seconds=0.01)
    """
    return Weights(**dict(_each(text)))


def _each(text: str) -> Iterator[tuple[str, float]]:
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = (word.strip() for word in part.partition("="))
        try:
            if name not in TERMS:
                raise ValueError
            yield name, float(number)
        except ValueError as error:
            msg = (
                f"Cannot read the weight {part!r}: write NAME=NUMBER with "
                f"{', '.join(TERMS)}, such as wrong=2,dollars=0.05."
            )
            raise DataError(msg) from error
