"""How many votes a race needs until it stops at the right decision, by how pairs are drawn.

`python -m benchmarks.races` prints the table of docs/rate.md; `--runs` for more or fewer races.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from rating.uncertainty.race import Race, run_race
from tests.rating.raced import Field

LEADS = {10: 100_000, 20: 25_000, 30: 12_000, 50: 5_000, 100: 2_000}
"""Leads in points, and votes of the longest race; uniform pairs get twice as many."""
VERDICTS = 20_000
WAYS = {
    "uniform": {"gain": False},
    "gain": {"gain": True},
    "gain and a judge": {"gain": True, "verdicts": VERDICTS},
}


def races(lead: int, way: str, runs: int) -> Iterator[Race]:
    """Run races with one lead."""
    field = Field(lead=lead, **WAYS[way])  # type: ignore[arg-type]
    most = LEADS[lead] * (1 if field.gain else 2)
    for seed in range(runs):
        votes, control = field.judged(most, seed)
        yield run_race(votes, ("m0", "m1"), control)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--leads", type=int, nargs="+", default=[*LEADS])
    asked = parser.parse_args()
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
