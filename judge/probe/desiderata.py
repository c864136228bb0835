"""What a measure must do to be relied on, and whether the figures show that it does."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from judge.probe.discriminability import COMFORTABLE, MOST_P, SignalToNoise, VarianceShares
from judge.probe.reliability import LEAST_CORRELATION, MOST_NOISE, Consistency, RerunNoise
from rating.typing import Floats
from rating.uncertainty.student import quantile

NAMES = ("reruns", "validity", "discriminability", "consistency", "monotone")
LEAST_COVERED, MOST_COVERED = 0.93, 0.97
SURE = 0.999
"""Level of the interval that a simulated figure is given for having been simulated."""
VERDICTS = {True: "passes", False: "fails", None: "cannot_tell"}
MOST_FALL = 0.01
"""Of the rank correlation with every doubling of the votes."""


@dataclass(frozen=True, slots=True)
class Desideratum:
    """One thing asked of a measure.

    Attributes
    ----------
    name : str
        One of `NAMES`.
    passed : bool or None
        True where the whole interval of the figure passes, False where none of it does; None
        otherwise, and ``text`` then says why.
    rule : str
        What it takes to pass, with the threshold.
    text : str
        The outcome in words.
    numbers : mapping of str to object
        The same as numbers, for JSON.
    """

    name: str
    passed: bool | None
    rule: str
    text: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: finite numbers, or None."""
        return {
            "name": self.name,
            "passed": self.passed,
            "verdict": VERDICTS[self.passed],
            "rule": self.rule,
            "found": self.text,
            "numbers": {name: _plain(value) for name, value in self.numbers.items()},
        }


@dataclass(frozen=True, slots=True)
class Simulated:
    """A mean over simulated arenas and its Monte Carlo error.

    Attributes
    ----------
    error : float
        Standard error.
    n : int
        Arenas, two or more.
    """

    mean: float
    error: float
    n: int

    @property
    def slack(self) -> float:
        """Half width of the `SURE` interval, Student's t."""
        return quantile(SURE, self.n - 1) * self.error

    @classmethod
    def of(cls, values: Floats) -> "Simulated":
        """Return the mean of one value an arena."""
        error = float(values.std(ddof=1)) / math.sqrt(len(values))
        return cls(float(values.mean()), error, len(values))


@dataclass(frozen=True, slots=True)
class Truth:
    """What a measure made of arenas whose truth is known.

    Attributes
    ----------
    spearman : Simulated
        Rank correlation with the true strengths.
    rmse : float
        Root mean squared error of a strength, in nats.
    covered : Simulated or None
        Share of the strengths inside their 95 % interval; None where there are no intervals.
    permuted : Simulated
        Rank correlation when results are dealt out at random.
    oracle : float
        Rank correlation when every vote is what all voters together would say.
    failed : int
        Arenas whose votes gave no rating.
    """

    spearman: Simulated
    rmse: float
    covered: Simulated | None
    permuted: Simulated
    oracle: float
    failed: int


def unknown(name: str, why: str) -> Desideratum:
    """Return a desideratum that neither passed nor failed."""
    return Desideratum(name, None, _RULES[name], why)


def on_reruns(
    noise: RerunNoise, se: float, ends: tuple[float, float], *, sample: str
) -> Desideratum:
    """Ask that running the measure again moves a score by little of its standard error.

    Parameters
    ----------
    se : float
        Standard error of a score.
    ends : tuple of float
        95 % interval of their ratio.
    sample : str
        What the scores are of, as ``"60 prompts"``.
    """
    ratio, (lower, upper) = noise.over(se), ends
    text = (
        f"Running it again moves a score by {noise.sd:.2g} (sd), {_share(ratio)} of its standard "
        f"error {se:.2g} ({_share(lower)} to {_share(upper)}); two scores of one run each must "
        f"differ by {noise.smallest:.2g}."
    )
    if noise.sd == 0:
        text = f"{noise.n_runs} runs gave the same scores."
    numbers = noise.to_dict() | {"se": se, "ratio": ratio, "lower": lower, "upper": upper}
    passed = True if upper <= MOST_NOISE else False if lower > MOST_NOISE else None
    if passed is None:
        text = f"{_cannot_tell(sample)} {text}"
    return Desideratum("reruns", passed, _RULES["reruns"], text, numbers)


def on_validity(truth: Truth) -> Desideratum:
    """Ask for true intervals, no order out of nothing, and nothing better than the truth."""
    faults = [*_validity_faults(truth)]
    covered = "it gives no intervals to check"
    if truth.covered is not None:
        covered = f"95 % intervals hold {100 * truth.covered.mean:.1f} % of the strengths"
    text = (
        f"Rank correlation with the truth {truth.spearman.mean:.2f}; {covered}; "
        f"{truth.oracle:.2f} with an oracle's votes, "
        f"{truth.permuted.mean:z.2f} with permuted ones."
    )
    numbers = {
        "spearman": truth.spearman.mean,
        "rmse": truth.rmse,
        "coverage": truth.covered and truth.covered.mean,
        "coverage_error": truth.covered and truth.covered.error,
        "permuted": truth.permuted.mean,
        "permuted_error": truth.permuted.error,
        "oracle": truth.oracle,
        "arenas": truth.spearman.n,
        "arenas_failed": truth.failed,
    }
    if truth.failed:
        text += f" Votes of {truth.failed} more arenas gave no rating."
    words = " ".join([*faults, text])
    return Desideratum("validity", not faults, _RULES["validity"], words, numbers)


def on_discriminability(
    signal: SignalToNoise, shares: VarianceShares, *, sample: str
) -> Desideratum:
    """Ask that entrants lie further apart than they wander.

    It is never failed: entrants that show no difference may be alike.
    """
    ratio = "endless" if signal.ratio is None else f"{signal.ratio:.1f}"
    reach = "" if signal.lower is None else f" ({signal.lower:.1f} to {_end(signal.upper)})"
    text = (
        f"Signal over noise {ratio}{reach}; {100 * shares.entrant:.0f} % of the variance is "
        f"between entrants (p = {max(shares.p, shares.p_exchanged):.2g} if they were alike), "
        f"{100 * shares.seed:.0f} % between reruns, {100 * shares.snapshot:.0f} % between "
        f"{signal.n_snapshots} parts."
    )
    numbers = {"signal_to_noise": signal.to_dict(), "variance_shares": shares.to_dict()}
    apart = signal.signal > 0 if signal.lower is None else signal.lower >= COMFORTABLE
    stands_out = apart and max(shares.p, shares.p_exchanged) <= MOST_P
    if not stands_out:
        text = f"{_cannot_tell(sample)} The entrants may be alike. {text}"
    rule = _RULES["discriminability"]
    return Desideratum("discriminability", stands_out or None, rule, text, numbers)


def on_consistency(
    agreement: Consistency, *, sample: str, ends: tuple[float, float] | None = None
) -> Desideratum:
    """Ask that boards with choices that should not matter say the same.

    Parameters
    ----------
    ends : tuple of float, optional
        95 % interval of the lowest rank correlation over other samples; None where the boards are
        of one sample that they must agree on.
    """
    name, rule = "consistency", _RULES["consistency"]
    lowest, most = agreement.lowest, agreement.most_contradictions
    if lowest is None:
        why = "No rank correlation is defined: it takes three entrants that are not all alike."
        return Desideratum(name, None, rule, why, agreement.to_dict())
    lower, upper = (lowest, lowest) if ends is None else ends
    pairs = "no pair" if not most else f"{most} pair{'' if most == 1 else 's'}"
    reach = "" if upper - lower < 0.005 else f" ({lower:.2f} to {upper:.2f})"
    text = (
        f"Lowest rank correlation of {len(agreement.boards)} boards {lowest:.2f}{reach}; two "
        f"boards contradict each other on {pairs}; {100 * agreement.same_winner:.0f} % of them "
        "keep the winner."
    )
    passed = False if most else True if min(lowest, lower) >= LEAST_CORRELATION else None
    if passed is None:
        sure = lowest >= LEAST_CORRELATION
        why = "On others they may differ more." if sure else "Boards differ where none is sure."
        text = f"{_cannot_tell(sample)} {why} {text}"
    numbers = agreement.to_dict() | {"lowest": lowest, "lower": lower, "upper": upper}
    return Desideratum(name, passed, rule, text, numbers)


def on_monotone(spearman: Floats, shares: Floats) -> Desideratum:
    """Ask that more votes bring a measure nearer to the truth.

    Parameters
    ----------
    spearman : ndarray of shape (n_arenas, n_shares)
        Rank correlation with the truth after each share of the votes.
    shares : ndarray of shape (n_shares,)

    Notes
    -----
    The slope on log2 of the share is fitted in each arena by least squares; the interval is
    Student's t over arenas.
    """
    if len(spearman) < 2:
        return unknown("monotone", f"{len(spearman)} arena gave ratings at every moment.")
    time = np.log2(shares)
    time = time - time.mean()
    slope = spearman @ time / (time @ time)
    error = float(slope.std(ddof=1)) / math.sqrt(len(slope))
    reach = quantile(0.95, len(slope) - 1) * error
    lower, upper = float(slope.mean()) - reach, float(slope.mean()) + reach
    steps = ", ".join(f"{x:.2f}" for x in spearman.mean(axis=0))
    text = (
        f"Every doubling of the votes adds {slope.mean():.3f} ({lower:.3f} to {upper:.3f}) to "
        f"the rank correlation with the truth: {steps}."
    )
    numbers = {
        "slope": float(slope.mean()),
        "lower": lower,
        "upper": upper,
        "shares": shares.tolist(),
        "spearman": spearman.mean(axis=0).tolist(),
        "arenas": len(slope),
    }
    passed = True if lower >= -MOST_FALL else False if upper < 0 else None
    if passed is None:
        text = f"Too few arenas to rule out a fall: ask for more. {text}"
    return Desideratum("monotone", passed, _RULES["monotone"], text, numbers)


def _validity_faults(truth: Truth) -> list[str]:
    faults = []
    if truth.covered is not None:
        if truth.covered.mean + truth.covered.slack < LEAST_COVERED:
            faults.append("Its intervals are too narrow.")
        if truth.covered.mean - truth.covered.slack > MOST_COVERED:
            faults.append("Its intervals are too wide.")
    if abs(truth.permuted.mean) > truth.permuted.slack:
        faults.append("It finds an order where there is none.")
    if truth.oracle < truth.spearman.mean:
        faults.append("It ranks worse with an oracle's votes than with people's.")
    if truth.spearman.mean <= truth.spearman.slack:
        faults.append("It does not find the truth.")
    return faults


def _cannot_tell(sample: str) -> str:
    return f"Cannot be told with {sample}."


def _end(value: float | None) -> str:
    return "endless" if value is None else f"{value:.1f}"


def _share(ratio: float) -> str:
    return "endlessly more" if math.isinf(ratio) else f"{100 * ratio:.0f} %"


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


_RULES = {
    "reruns": (
        "The sd over reruns is at most a third of a score's standard error: passed where the "
        "whole 95 % interval is, failed where none of it is."
    ),
    "validity": (
        f"On simulated arenas 95 % intervals hold {100 * LEAST_COVERED:.0f} to "
        f"{100 * MOST_COVERED:.0f} % of the true strengths, permuted votes give no order, and an "
        "oracle's votes give the best one; but for what chance in simulating explains (99.9 %)."
    ),
    "discriminability": (
        f"Entrants spread at least {COMFORTABLE:g} times as far as they wander, by the whole 95 % "
        f"interval, and differ by more than alike ones would (p at most {MOST_P:g}). Never "
        "failed: what is not told apart may be alike."
    ),
    "consistency": (
        "With choices that should not matter, no two boards contradict each other, which fails, "
        f"and their rank correlations are {LEAST_CORRELATION:g} or more, by the whole 95 % "
        "interval where samples differ."
    ),
    "monotone": (
        f"The rank correlation with the truth does not fall by more than {MOST_FALL:g} with every "
        "doubling of the votes (lower end of 95 %)."
    ),
}
