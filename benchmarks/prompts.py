"""How long a million prompts take to be labelled, compared and put into topics, and its memory.

``python -m benchmarks.prompts --prompts 100000`` makes prompts of the lengths of those that people
write, one in ten like another, and prints seconds of processor and of the clock, and the peak of
memory of this process and of the largest of those that it started.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from arena.terminal import working
from judge.labels.accuracy import labelled_prompts
from judge.labels.files import tagged
from judge.labels.material import duplicates, open_release

T = TypeVar("T")
Advance = Callable[[int, int], None]
REPEATED = 0.1


def prompts(n: int, rng: np.random.Generator) -> list[str]:
    """Sentences of the labelled sample behind one another, as many words as people write."""
    sample = labelled_prompts()
    lengths = np.minimum(rng.geometric(1 / 2, n), 12)
    picked = rng.integers(len(sample), size=(n, 12))
    texts = [
        f"{' '.join(sample[i] for i in row[:length])} ({number})"
        for number, (row, length) in enumerate(zip(picked.tolist(), lengths.tolist(), strict=True))
    ]
    for target in rng.integers(1, n, int(REPEATED * n)).tolist():
        texts[target] = texts[target // 2]
    return texts


def label(texts: list[str], advance: Advance) -> None:
    """Label texts and keep nothing."""
    for _ in tagged([[text] for text in texts], advance):
        pass


def timed(what: str, work: Callable[[Advance], T]) -> T:
    """Do it with a bar of its progress, and print what it took."""
    clock, processor = time.perf_counter(), _processor_s()
    with working(what) as advance:
        result = work(advance)
    took = time.perf_counter() - clock, _processor_s() - processor
    ours, theirs = (_peak_gb(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(
        f"{what}: {took[0]:.1f} s, {took[1]:.1f} s of processor, peak {ours:.2f} GB, and "
        f"{theirs:.2f} GB in the largest process beside it",
        flush=True,
    )
    return result


def _processor_s() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _peak_gb(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1e6


def main() -> None:
    """Make prompts, label them, look for duplicates, and put them into topics."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompts", type=int, default=1_000_000)
    n = parser.parse_args().prompts
    texts = prompts(n, np.random.default_rng(1))
    print(f"{n:,} prompts, {sum(map(len, texts)) / n:.0f} characters on average")
    began = time.perf_counter()
    timed("Labelling", lambda advance: label(texts, advance))
    groups = timed("Comparing", lambda advance: duplicates(texts, advance))
    release = timed("Topics", lambda advance: open_release(texts, advance))
    print(f"{time.perf_counter() - began:.1f} s together")
    print(f"{groups.repeated.mean():.1%} of the prompts are like one before")
    print(f"topics agree with those of other seeds by {release.agreement.mean:.2f}")


if __name__ == "__main__":
    main()
