"""How many votes a race needs until it stops at the right decision, by how pairs are drawn.

`python -m benchmarks.races` prints the median votes by lead; `--runs` for more or fewer races.
`python -m benchmarks.races --looks` prints the table of docs/evidence.md, from which
docs/guides/gate-and-compare.md takes its figures: error and power by the number of looks.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from rating.contrasts import WELL_FOUNDED
from rating.decide import POWER, Looks, Race, errors_at, lead_of, run_race
from tests.rating.raced import Field, two_models

LEVEL = 0.95

LEADS = {10: 100_000, 20: 25_000, 30: 12_000, 50: 5_000, 100: 2_000}
"""Leads in points, and votes of the longest race; uniform pairs get twice as many."""
WAYS = {"uniform": False, "gain": True}


def races(lead: int, way: str, runs: int) -> Iterator[Race]:
    """Run races with one lead."""
    field = Field(lead=lead, gain=WAYS[way])
    most = LEADS[lead] * (1 if field.gain else 2)
    for seed in range(runs):
        yield run_race(field.draw(most, seed), ("m0", "m1"))


VOTES, LOOKS, AHEAD = 3000, 25, 60.0
MODES: dict[str, tuple[Looks, int]] = {
    "one look": (1, 1),
    "5 looks": (5, 5),
    "25 looks up to the planned votes": (25, LOOKS),
    "any number of looks": ("any", LOOKS),
}


def separated(lead: float, runs: int) -> dict[str, float]:
    """Return the share of simulated gates that rule out a lead of zero at some look."""
    hits = dict.fromkeys(MODES, 0)
    for seed in range(runs):
        data = two_models(np.random.default_rng([seed, int(lead)]), VOTES, lead).one_by_one()
        places = [VOTES * look // LOOKS for look in range(1, LOOKS + 1)]
        leads = [lead_of(data.subset(slice(n)), ("m0", "m1")) for n in places]
        for name, (looks, times) in MODES.items():
            for n, one in list(zip(places, leads, strict=True))[
                LOOKS // times - 1 :: LOOKS // times
            ]:
                half = one.half_width(looks, VOTES, n, LEVEL)
                if one.effective >= WELL_FOUNDED and abs(one.value) > half:
                    hits[name] += 1
                    break
    return {name: hit / runs for name, hit in hits.items()}


def relative_votes(looks: Looks, times: int) -> float:
    """Return the votes for a power of 0.8 over those of a single look, by Brownian motion."""
    rng, at = np.random.default_rng(1), np.arange(1, times + 1) / times
    noise = rng.normal(0, np.sqrt(1 / times), (20_000, times)).cumsum(axis=1)
    information = VOTES / 4 * at
    ask = [
        (looks, VOTES, round(VOTES * t), i, LEVEL) for t, i in zip(at, information, strict=True)
    ]
    bound = np.array([errors_at(*one) for one in ask]) * np.sqrt(at)

    def short(drift: float) -> float:
        return float((noise + drift * at > bound).any(axis=1).mean()) - POWER

    return float((brentq(short, 1.0, 8.0, xtol=1e-3) / (norm.ppf(0.975) + norm.ppf(POWER))) ** 2)


def print_looks(runs: int) -> None:
    """Print error and power of each way to look."""
    error, power = separated(0.0, runs), separated(AHEAD, runs)
    print("| looks | error | power at +60 points | votes for 80% power, relative |")
    print("|---|---|---|---|")
    for name, mode in MODES.items():
        votes = relative_votes(*mode)
        print(f"| {name} | {error[name]:.3f} | {power[name]:.2f} | {votes:.2f} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--looks", action="store_true")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--leads", type=int, nargs="+", default=[*LEADS])
    asked = parser.parse_args()
    if asked.looks:
        print_looks(asked.runs)
        return
    print(f"| lead | {' | '.join(WAYS)} | of uniform | stopped wrongly |")
    print("|" + "---|" * (len(WAYS) + 3))
    for lead in asked.leads:
        runs = max(4, asked.runs * min(lead, 50) // 50)
        medians, wrong, total = [], 0, 0
        for way in WAYS:
            stops = [race.separated for race in races(lead, way, runs)]
            votes = [np.inf if stop is None else stop.votes for stop in stops]
            medians.append(float(np.median(votes)))
            wrong += sum(stop is not None and stop.lead < 0 for stop in stops)
            total += runs
        shown = " | ".join(f"{x:,.0f}" for x in medians)
        print(f"| {lead} | {shown} | {medians[-1] / medians[0]:.2f} | {wrong} of {total} |")


if __name__ == "__main__":
    main()
