"""How long every classical measure takes on all five axes, on published texts."""

import argparse
import resource
import time
from pathlib import Path

from judge.probe.cards import probe_similarity
from judge.probe.similarity import CLASSICAL

FILES = (
    "stsb-en-dev.csv",
    "newsroom.csv.gz",
    "newsroom_sources.csv.gz",
    "banking77_test.csv",
    "cran.all.1400.xml.gz",
    "cran.qry.xml",
    "cranqrel.trec.txt",
)


def main() -> None:
    """Print values and seconds by measure; processor seconds count both cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="that holds " + ", ".join(FILES))
    parser.add_argument("--sample", type=int, default=1000, help="most texts of an axis")
    options = parser.parse_args()
    files = [options.folder / name for name in FILES]
    total = 0.0
    for measure in CLASSICAL:
        wall, processor = time.perf_counter(), time.process_time()
        names = (measure.name,)
        (card,) = probe_similarity(files, measures=names, sample=options.sample, seed=1)["cards"]
        took = time.process_time() - processor
        total += took
        if measure is CLASSICAL[0]:
            axes = " | ".join(axis["name"] for axis in card["axes"])
            print("| measure |", axes, "| CPU | wall |")
            print("|---" * (len(card["axes"]) + 3) + "|")
        values = " | ".join(
            f"{axis['value']:.3f} [{axis['lower']:.3f}, {axis['upper']:.3f}]"
            for axis in card["axes"]
        )
        elapsed = time.perf_counter() - wall
        print(f"| {measure.name} | {values} | {took:.1f} s | {elapsed:.1f} s |", flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nAll measures: {total:.0f} s of processor time, {memory:,.0f} MB at most.")


if __name__ == "__main__":
    main()
