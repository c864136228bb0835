"""Repeat the simulations behind the statements on intervals and tests, with 400 runs per design.

    python -m benchmarks.simulations [--runs 400] [--only WORDS] [--workers 1]

prints a table: what was simulated, the design, the figure wanted, the figure seen and its Monte
Carlo error. The tests themselves are those of `make slow`, which has fewer runs: both read
`tests.simulation.runs`. All of them take many hours; ``--only`` takes words of a simulation's
name, such as ``--only race``.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

STUDIES, RATING = "tests/judge/studies/test_simulated_", "tests/rating/"

SIMULATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "verdicts": (
        f"{STUDIES}verdicts.py -k no_judge_that_favours",
        {"yes": "<= 0.05 of judges that favour", "flagged": "<= 0.05 of fair judges"},
    ),
    "favouritism": (
        f"{STUDIES}verdicts.py -k favouritism_is_found",
        {"found": "<= 0.02 fair, 0.45 to 1 at 0.6 or more"},
    ),
    "items that decide": (f"{STUDIES}verdicts.py -k as_many_items", {"power": ">= 0.8"}),
    "new models": (
        f"{STUDIES}newcomers.py -k however_strong",
        {"covered": "0.952, 0.940, 0.936, 0.92"},
    ),
    "race": (f"{RATING}test_race.py -k sixty_shared", {"separated": "<= 0.05"}),
    "costs": (f"{RATING}value/test_value_studies.py -k ratios_cover", {"ratio": "0.95"}),
    "dominated": (
        f"{RATING}value/test_value_studies.py -k dominated",
        {"named": "<= 0.001 of equals, <= 0.031 equal in one", "recognised": "0.82 to 0.89"},
    ),
    "panel": (f"{STUDIES}panels.py -k lower_figure", {"at least": "<= 5"}),
    "gate": (
        f"{RATING}test_gate.py -k sixty_shared",
        dict.fromkeys(("once", "five", "numbered", "any"), "<= 0.05"),
    ),
    "gate, power": (
        f"{RATING}test_gate.py -k five_looks",
        {"once": "0.94", "five": "0.92", "numbered": "0.89", "any": "0.73"},
    ),
    "votes needed": (f"{RATING}test_gate.py -k votes_needed", {"power": "0.8"}),
    "plan": (f"{RATING}test_planning.py -k four_times_out_of_five", {"claimed": "0.8"}),
    "compare": (f"{RATING}test_paired_studies.py -k intervals_cover", {"covered": "0.93 to 0.97"}),
    "compare, equivalence": (
        f"{RATING}test_paired_studies.py -k by_the_margin",
        {"equivalent": "<= 0.05"},
    ),
    "compare, all pairs": (
        f"{RATING}test_paired_studies.py -k separated_together",
        {"claimed": "<= 0.05"},
    ),
    "compare, items": (f"{RATING}test_paired_studies.py -k planned", {"power": "0.8"}),
    "rankings": (f"{RATING}test_rankings.py -k cover", {"covered": "0.95"}),
    "intents": (f"{RATING}test_remarks.py -k shared_items", {"rejected": "<= 0.08"}),
    "reasons": (f"{RATING}test_remarks.py -k shares_on_shared", {"covered": "0.95"}),
    "odd category": (
        f"{RATING}pooling/test_pooling_studies.py -k odd_category",
        {"named": "0 if none is odd", "others": "<= 0.05"},
    ),
    "two tastes": (
        f"{RATING}boards/test_voter_report.py -k never_flagged",
        {"groups shown": "1", "ring named": "0"},
    ),
    "rings": (f"{RATING}test_rings_studies.py -k ring_is_named", {"named": ">= 0.85"}),
    "several ids": (f"{RATING}test_clustered.py -k ids_of_one_person", {"joined": "0.95"}),
}


def rows(xml: Path, wanted: dict[str, str], runs: int) -> list[tuple[str, ...]]:
    """Read what the tests recorded; a test that recorded nothing or failed has a row as well."""
    table: list[tuple[str, ...]] = []
    for case in ElementTree.parse(xml).iter("testcase"):
        failed = " (failed)" if case.find("failure") is not None else ""
        properties = case.findall("properties/property")
        if not properties:
            table.append((case.get("name", "") + failed, "", "nothing recorded", ""))
        for one in properties:
            row = ast.literal_eval(one.get("value", "{}"))
            design = ", ".join(f"{key} {x}" for key, x in row.items() if key not in wanted)
            for key in [key for key in row if key in wanted]:
                seen = float(row[key])
                error = f"{(seen * (1 - seen) / runs) ** 0.5:.3f}" if 0 <= seen <= 1 else ""
                table.append((design + failed, f"{key} {wanted[key]}", f"{seen:.3f}", error))
    return table


def main(arguments: list[str] | None = None) -> int:
    """Run the simulations and print the table; returns 1 if a test fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", help="words of a simulation's name")
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args(arguments)
    names = [name for name in SIMULATIONS if not chosen.only or chosen.only in name]
    if not names:
        parser.error(f"--only {chosen.only!r}: the simulations are {', '.join(SIMULATIONS)}.")
    failed = 0
    print("simulation | design | wanted | seen | Monte Carlo error")
    for name in names:
        test, wanted = SIMULATIONS[name]
        path, _, chosen_tests = test.partition(" -k ")
        with tempfile.TemporaryDirectory() as folder:
            xml = Path(folder) / "seen.xml"
            words = [path, "-k", chosen_tests.strip("'"), "-m", "slow", "--timeout", "0"]
            words += ["-q", "-n", str(chosen.workers if chosen.workers > 1 else 0)]
            words += [f"--junitxml={xml}", "-o", "junit_family=xunit1"]
            ended = subprocess.run(
                [sys.executable, "-m", "pytest", *words],
                env={**os.environ, "SIMULATION_RUNS": str(chosen.runs)},
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            if not xml.exists() or ended.returncode not in (0, 1):
                print(ended.stdout, file=sys.stderr)
                return 1
            failed += ended.returncode
            for row in rows(xml, wanted, chosen.runs):
                print(" | ".join((name, *row)), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
