"""How often 95 % intervals hold the truth: ours and other programs', on the same boards.

`make bench` runs it in the environment of the other programs; `--boards` for more or fewer.
"""

import argparse
import importlib
import importlib.util
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from rating import Cluster, Comparisons, NotIdentifiedError, bootstrap, fit_bradley_terry, infer
from rating.typing import Bools
from tests.simulation import D1, Design, Floats

POINTS_PER_NAT = 400 / math.log(10)
ROUNDS = 200
SEED = 2
LABELS = np.array(["model_a", "model_b", "tie"])
EQUAL = replace(D1, spread=0.0, taste=0.0)
BOARDS: Mapping[str, Design] = {
    "200 voters, no random effects": EQUAL,
    "voter random effects 0.4": replace(EQUAL, taste=0.4),
    "voter random effects 0.8": replace(EQUAL, taste=0.8),
    "one voter has 30%, random effects 0.8": replace(EQUAL, heaviest=0.3, taste=0.8),
    "new model, 2 voters × 60, random effects 0.8": replace(EQUAL, newcomer=(2, 60), taste=0.8),
    "60 shared prompts, prompt random effects 0.8": replace(EQUAL, n_prompts=60, liking=0.8),
}
Interval = tuple[Floats, Floats]
"""Low and high ends in nats around the average, shape (n_models,) each."""


def ours(data: Comparisons) -> Interval:
    """Give the intervals of a board."""
    inference = infer(fit_bradley_terry(data), data, _kinds(data))
    each = inference.ratings()
    half = each.half_width(0.95)
    return each.value - half, each.value + half


def _kinds(data: Comparisons) -> tuple[Cluster, ...]:
    return ("voter", "prompt") if data.prompt is not None else ("voter",)


def plain_bootstrap(data: Comparisons) -> Interval:
    """Draw votes again, as if they were independent; percentiles."""
    fit = fit_bradley_terry(data)
    drawn = bootstrap(fit, data, rounds=ROUNDS, rng=np.random.default_rng(0))
    return drawn.interval()


def _rows(data: Comparisons) -> tuple[list[str], list[str], list[str]]:
    row = np.repeat(np.arange(len(data.votes)), data.votes)
    names = np.array(data.models)
    a, b = names[data.pairs[row, 0]], names[data.pairs[row, 1]]
    return a.tolist(), b.tolist(), LABELS[data.outcome[row]].tolist()


def arena_rank(data: Comparisons) -> Interval:
    """Give the sandwich intervals of arena-rank, as the program has them."""
    import pandas as pd

    tools = importlib.import_module("arena_rank.utils.data_utils")
    models = importlib.import_module("arena_rank.models.bradley_terry")
    frame = pd.DataFrame(dict(zip(("model_a", "model_b", "winner"), _rows(data), strict=True)))
    dataset = tools.PairDataset.from_pandas(frame)
    model = models.BradleyTerry(n_competitors=len(dataset.competitors))
    ratings = model.compute_ratings_and_cis(dataset)
    order = np.argsort(dataset.competitors)
    points = np.asarray(ratings["ratings"], dtype=np.float64)
    ends = (np.asarray(ratings[f"rating_{end}"])[order] for end in ("lower", "upper"))
    low, high = ((end - points.mean()) / POINTS_PER_NAT for end in ends)
    return low, high


def evalica(data: Comparisons) -> Interval:
    """Give percentile intervals of evalica's bootstrap of log scores around their average."""
    tool = importlib.import_module("evalica")
    a, b, winner = _rows(data)
    to = {"model_a": tool.Winner.X, "model_b": tool.Winner.Y, "tie": tool.Winner.Draw}
    rounds = tool.bootstrap(
        tool.bradley_terry,
        a,
        b,
        [to[label] for label in winner],
        n_resamples=ROUNDS // 2,
        bootstrap_method="percentile",
        random_state=0,
    )
    scores = np.log(np.maximum(rounds.distribution[list(data.models)].to_numpy(), 1e-300))
    scores -= scores.mean(axis=1, keepdims=True)
    return np.quantile(scores, 0.025, axis=0), np.quantile(scores, 0.975, axis=0)


PROGRAMS: Mapping[str, Callable[[Comparisons], Interval]] = {
    "ours": ours,
    "bootstrap of votes": plain_bootstrap,
    "arena-rank": arena_rank,
    "evalica": evalica,
}


def shares(
    design: Design, boards: int, programs: Mapping[str, Callable[[Comparisons], Interval]]
) -> dict[str, list[str]]:
    """Return, for each program, the share of models held: of the others and of a newcomer."""
    rng, new = design.generator(SEED), design.newcomer is not None
    held: dict[str, list[Bools]] = {name: [] for name in programs}
    done = 0
    while done < boards:
        try:
            data = design.draw(rng)
            fit_bradley_terry(data)
        except NotIdentifiedError:
            continue
        done += 1
        print(f"\r{done}/{boards}", end="", file=sys.stderr)
        for name, interval in programs.items():
            low, high = interval(data)
            held[name].append((low <= 0) & (high >= 0))  # equal models: the truth is zero
    table = {name: np.array(rows, dtype=np.float64) for name, rows in held.items()}
    return {
        name: [_share(rows[:, : rows.shape[1] - new])] + ([_share(rows[:, -1:])] if new else [])
        for name, rows in table.items()
    }


def _share(rows: Floats) -> str:
    each = rows.mean(axis=1)
    return f"{each.mean():.3f} ± {each.std() / math.sqrt(len(each)):.3f}"


def main() -> None:
    """Print a Markdown table: a row a kind of board, a column a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", type=int, default=40)
    options = parser.parse_args()
    installed = {name: importlib.util.find_spec(name.replace("-", "_")) for name in PROGRAMS}
    own = ("ours", "bootstrap of votes")
    programs = {name: run for name, run in PROGRAMS.items() if name in own or installed[name]}
    print("| board | " + " | ".join(programs) + " |")
    print("|---" * (len(programs) + 1) + "|")
    for name, design in BOARDS.items():
        cells = shares(design, options.boards, programs)
        for place, of in enumerate(["", ": the new model"][: len(cells["ours"])]):
            print(f"| {name}{of} | " + " | ".join(cells[p][place] for p in programs) + " |")
    print(file=sys.stderr)


if __name__ == "__main__":
    main()
