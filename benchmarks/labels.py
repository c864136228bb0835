"""How long a million prompts take to be labelled and compared, and how much memory.

``python -m benchmarks.labels --prompts 100000`` makes prompts of the lengths of those that people
write, one in ten like another, and prints seconds of processor and of the clock, and the peak of
memory.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from arena.terminal import working
from judge.labels.accuracy import labelled_prompts
from judge.labels.duplicates import duplicates
from judge.labels.taggers import tag

T = TypeVar("T")
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


def label(texts: list[str], advance: Callable[[int, int], None]) -> None:
    """Label texts and keep nothing."""
    for done, text in enumerate(texts, 1):
        tag([text])
        if done % 1000 == 0:
            advance(done, len(texts))


def timed(what: str, work: Callable[[], T]) -> T:
    """Print what it took."""
    clock, processor = time.perf_counter(), time.process_time()
    result = work()
    took = time.perf_counter() - clock, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{what}: {took[1]:.1f} s of processor, {took[0]:.1f} s, peak {peak:.2f} GB")
    return result


def main() -> None:
    """Make prompts, label them, and look for duplicates."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompts", type=int, default=1_000_000)
    n = parser.parse_args().prompts
    texts = prompts(n, np.random.default_rng(1))
    print(f"{n:,} prompts, {sum(map(len, texts)) / n:.0f} characters on average")
    with working("Labelling") as advance:
        timed("labels", lambda: label(texts, advance))
    with working("Comparing") as advance:
        groups = timed("duplicates", lambda: duplicates(texts, advance))
    print(f"{groups.repeated.mean():.1%} of the prompts are like one before")


if __name__ == "__main__":
    main()
