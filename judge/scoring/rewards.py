"""Means of rewards in five levels, and of instructions that were followed."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from judge.ifeval import Checked, accuracy
from judge.scoring.intervals import bounded
from judge.scoring.pairwise import clustered_error
from judge.scoring.wildbench import category_of, count_rewards, task_macro
from judge.tables.annotations import Annotations, groups
from rating.typing import Floats, Ints

Rows = tuple[list[dict[str, Any]], list[str]]
"""One row a model, and warnings."""


def reward_scores(data: Annotations) -> Rows:
    """Average the rewards of each model against each baseline, from -1 to 1; and over baselines.

    ``mix``, the mean over baselines, is missing while one of them has no reward. ``task_macro``,
    the mean of the categories of tasks by WildBench's weights, is missing unless every category
    has a reward.
    """
    level, prompts = data.numbers("level"), _prompts(data)
    kinds = (
        [{category_of(tag) for tag in row} for row in data.lists("tags")]
        if (data.has("tags"))
        else [set[str]()] * data.n
    )
    keys = list(zip(data.texts("model"), data.texts("baseline"), strict=True))
    models: list[dict[str, Any]] = []
    for (name, baseline), rows in groups(keys).items():
        reward = count_rewards(level[rows]).reward
        own = _mean(level[rows], prompts[rows]) | {"score": reward}
        rewards = {
            kind: count_rewards(level[[row for row in rows if kind in kinds[row]]]).reward
            for kind in set[str]().union(*(kinds[row] for row in rows))
        }
        macro = task_macro({kind: one for kind, one in rewards.items() if not math.isnan(one)})
        models.append({"model": name, "baseline": baseline} | own | {"task_macro": macro})
    for row in models:
        over = [one["score"] for one in models if one["model"] == row["model"]]
        row["mix"] = float(np.mean(over))
    return models, _on_unread(models)


def instruction_scores(data: Annotations) -> Rows:
    """Give IFEval's four scores of each model in per cent; the first has the interval."""
    prompts = data.texts("prompt_id")
    details = data.texts("detail")
    models: list[dict[str, Any]] = []
    for name, rows in groups(data.texts("model")).items():
        result = accuracy([_checked(data, prompts[row], row, details[row]) for row in rows])
        first = result.prompt_strict
        models.append(
            {
                "model": name,
                "n": first.n,
                "n_unread": first.n_unread,
                "score": 100 * first.rate,
                "lower": 100 * first.low,
                "upper": 100 * first.high,
                "prompt_loose": 100 * result.prompt_loose.rate,
                "instruction_strict": 100 * result.instruction_strict.rate,
                "instruction_loose": 100 * result.instruction_loose.rate,
            }
        )
    return models, []


def _checked(data: Annotations, prompt: str, row: int, detail: str) -> Checked:
    try:
        items = json.loads(detail)["items"]
        columns = [tuple(item[name] for item in items) for name in ("id", "strict", "loose")]
    except (ValueError, KeyError, TypeError) as error:
        wanted = "what a run of ifeval writes there"
        raise data.wrong("detail", int(row) + 1, detail[:60], wanted) from error
    return Checked(prompt, *columns)


def _prompts(data: Annotations) -> Ints:
    """Give each row the number of its prompt; without names each row is of its own."""
    if not data.has("prompt_id"):
        return np.arange(data.n)
    return np.unique(data.texts("prompt_id"), return_inverse=True)[1]


def _mean(values: Floats, prompts: Ints) -> dict[str, Any]:
    read = ~np.isnan(values)
    known, group = values[read], prompts[read]
    n_groups = len(np.unique(group))
    mean = float(known.mean()) if len(known) else math.nan
    error = clustered_error(known, group) if n_groups > 1 else math.nan
    numbers = {"n": len(known), "n_unread": int((~read).sum()), "score": mean}
    ends = bounded(mean, error, n_groups, -1.0, 1.0)
    return numbers | {"standard_error": error} | ends


def _on_unread(models: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{row['model']!r}: {row['n_unread']} of {row['n'] + row['n_unread']} rows have no "
        "verdict; they are left out."
        for row in models
        if row["n_unread"]
    ]
