"""Scores of recorded annotations, by the published methods and without calling a model."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from judge.methods import PUBLISHED, method_file
from judge.methods.file import ENDING
from judge.scoring.benchmarks import (
    LATEST,
    STYLE,
    TIE,
    Games,
    alpaca_eval_scores,
    arena_hard_score,
    clustered_error,
    instruction_scores,
    pairwise_scores,
    preferences_from_logprobs,
    reward_scores,
    style_controlled,
    swap_scores,
    wildbench_scores,
)
from judge.scoring.length_control import ScoreOptions, length_controls
from judge.tables.annotations import Annotations, groups, read_annotations
from judge.tables.items import read_difficulties, read_regularisation
from judge.tables.native import for_score, method_of_peer
from judge.tables.verdicts import SCORED_AS, asked_judges, for_own_score, own_method
from rating import Outcome
from rating.errors import DataError, NotIdentifiedError
from rating.outcome import of_sides
from rating.tables.coding import coded_list
from rating.tables.columns import REQUIRED, quoted_names
from rating.tables.files import Files
from rating.tables.peers import recognised
from rating.tables.vote_filter import CASE, beside_both
from rating.typing import Bools, Floats

METHODS = (
    "alpaca_eval", "wildbench", "arena_hard", "llmbar", "pairwise",
    "wildbench_reward", "marks", "ifeval",
)  # fmt: skip
COMPATS = ("row-position",)

_TAGS = ("tags", "task_tags")


Scored = tuple[list[dict[str, Any]], list[str]]
"""One row a model, and warnings."""


Only = Callable[[Annotations], tuple[Annotations, tuple[str, ...]]]


def _every_row(data: Annotations) -> tuple[Annotations, tuple[str, ...]]:
    return data, ()


def judge_score(
    file: str | Path | Files,
    method: str | None = None,
    *,
    items: Path | Annotations | None = None,
    regularisation: Path | Annotations | None = None,
    compat: str | None = None,
    order: bool = False,
    only: Only = _every_row,
) -> dict[str, Any]:
    """Score a file of annotations.

    Parameters
    ----------
    method : str or None
        One of `METHODS`; None goes by what the file says or by its columns.
    items, regularisation : path or Annotations, optional
        As `judge.tables.items` reads them; items of WildBench hold tags.
    only : callable
        Chooses the rows that count, and says in sentences, which become warnings, what does not.

    Returns
    -------
    dict
        ``method``, ``models`` (sorted by name; rates in per cent, null where undefined) and
        ``warnings``. With ``compat``, length-controlled rows also have upstream's own standard
        error, ``lc_standard_error_compat``.

    Raises
    ------
    DataError
        If a file cannot be read as annotations of the method, or an option does not fit it.
    """
    if method is None:
        method = _inferred(read_annotations(file))
    asked, method = method, _score_of(method)
    scorer = _SCORERS[method]
    if compat not in (None, *COMPATS):
        raise DataError(f"There is no compat {compat!r}: the only one is {COMPATS[0]!r}.")
    _check_options(method, items, regularisation, compat, order=order)
    options = ScoreOptions(
        items=read_difficulties(items) if isinstance(items, Path) else items,
        regularisation=(
            read_regularisation(regularisation)
            if isinstance(regularisation, Path)
            else regularisation
        ),
        by_position=compat is not None,
        order=order,
    )
    every, repeats = _once(read_annotations(file, peers=method == "pairwise"))
    data, left_out = only(_taken(every, method))
    models, warnings = scorer(data, options)
    rows = [_plain(row) for row in models]
    return {"method": asked, "models": rows, "warnings": [*repeats, *left_out, *warnings]}


_ITEM = ("battle_id", "item_id", "question_id", "session_id", "uid", "instruction", "idx")
_JUDGES = ("judge", "judge_model", "annotator", "llm")
_TOLD_BY = (
    *_JUDGES, "prompt_id", "turn", "voter", "rater", "model", *of_sides("model"), "model_1",
    "model_2", "model_A", "model_B", "model_test", "generator", "generator_1", "generator_2",
    "baseline", "method", "template", "order", "version", "strategy", "subset", "category",
    "fallback_for", "run", "seed", "sample", "length", "length_a", "length_b",
)  # fmt: skip
"""Columns by which a row is told from others on its item, where they are there."""


def _once(data: Annotations) -> tuple[Annotations, list[str]]:
    """Keep one row of those on one item by one judge, and warn; rows of voters stay.

    The newest where rows have a time (``tstamp``), as MT-bench has it; otherwise the first.
    """
    items = [name for name in _ITEM if data.has(name)]
    is_judged = any(map(data.has, _JUDGES)) or (
        not data.has("voter") and recognised(list(data.columns)) is not None
    )
    if not items or not is_judged:
        return data, []
    names = [*items, *(name for name in _TOLD_BY if data.has(name))]
    keys = [*zip(*(map(str, data.columns[name]) for name in names), strict=True)]
    newest = data.has("tstamp")
    times = data.numbers("tstamp") if newest else np.zeros(data.n)
    chosen: dict[tuple[str, ...], int] = {}
    for row, key in enumerate(keys):
        if key not in chosen or times[row] > times[chosen[key]]:
            chosen[key] = row
    n = data.n - len(chosen)
    if not n:
        return data, []
    again = next(key for row, key in enumerate(keys) if chosen[key] != row)
    named = ", ".join(f"{name} {text[:60]}" for name, text in zip(names, again, strict=True))
    which = "newest of them counts (tstamp)" if newest else "first of them counts"
    return data.taken(np.array(sorted(chosen.values()))), [
        f"{n:,} of {data.n:,} rows judge again what another row does, such as {named}. The "
        f"{which}: choose one run with --where."
    ]


def _score_of(method: str) -> str:
    """Name the score of a method of judging, which may be its own; raises `DataError`."""
    if method in METHODS:
        return method
    if method not in PUBLISHED and not method.endswith(ENDING):
        raise DataError(f"There is no method {method!r}: choose one of {', '.join(METHODS)}.")
    score = method_file(method).score
    if score not in METHODS:
        why = "names no score" if score is None else f"has the score {score!r}"
        raise DataError(f"The method {method!r} {why}: choose one of {', '.join(METHODS)}.")
    return score


def _inferred(data: Annotations) -> str:
    """Name the method by which a file is scored: as it says itself, or by its columns.

    Raises
    ------
    DataError
        If neither tells, or it holds several methods.
    """
    return own_method(data) or method_of_peer(data) or _by_columns(data)


_MARKED_BY = (
    (REQUIRED, "pairwise"),
    (("label", "w_ab", "w_ba"), "llmbar"),
    (("model", "game_1", "game_2"), "arena_hard"),
    (("model", "idx", "preference"), "alpaca_eval"),
    (("model", "lp_m", "lp_M"), "alpaca_eval"),
    (("model", "session_id", "score"), "wildbench"),
    (("model", "score"), "marks"),
)
"""Columns by which a method is known; the first counts of which all are there."""


def _by_columns(data: Annotations) -> str:
    method = next((method for names, method in _MARKED_BY if data.has(*names)), None)
    if method is None:
        there = quoted_names(list(data.columns))
        raise DataError(
            f"The scoring method for {data.source!r} cannot be inferred; its columns are {there}. "
            f"Name it with --method, one of {', '.join(METHODS)}."
        )
    return method


def _taken(data: Annotations, method: str) -> Annotations:
    """Give a file as its method takes it; raises `DataError` if it is another method's."""
    own = None if method == "pairwise" else own_method(data)
    if own is None:
        return for_score(data, method)
    if any(SCORED_AS.get(name, method) != method for name in data.texts("method")):
        msg = f"{data.source!r} holds verdicts for {own}, not for {method!r}: use --method {own}."
        raise DataError(msg)
    return for_own_score(data, method)


def _check_options(
    method: str,
    items: Path | Annotations | None,
    regularisation: Path | Annotations | None,
    compat: str | None,
    *,
    order: bool,
) -> None:
    """Raise where an option would be passed over."""
    given = {"--regularisation": regularisation, "--compat": compat, "--order": order or None}
    for_alpaca = [name for name, value in given.items() if value is not None]
    if method != "alpaca_eval" and for_alpaca:
        raise DataError(f"{for_alpaca[0]} is for --method alpaca_eval, not for {method!r}.")
    if method not in ("alpaca_eval", "wildbench") and items is not None:
        source = items.source if isinstance(items, Annotations) else str(items)
        raise DataError(f"--items {source!r} does not apply to --method {method}.")
    if compat is not None and items is None:
        raise DataError(f"--compat {compat} looks difficulties up: name their file with --items.")


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


def _alpaca_eval(data: Annotations, options: ScoreOptions) -> Scored:
    preference = _preferences(data)
    controls, warnings = length_controls(data, preference, options)
    length = data.numbers("len_model") if data.has("len_model") else np.full(data.n, np.nan)
    models = []
    for name, rows in groups(data.texts("model")).items():
        scores = alpaca_eval_scores(preference[rows])
        n_dropped, control = scores.pop("n_dropped"), controls[name]
        models.append(
            {
                "model": name,
                **scores,
                "lc_win_rate": control.win_rate,
                "lc_standard_error": control.standard_error,
                "avg_length": _average_length(length[rows]),
            }
            | (
                {"lc_standard_error_compat": control.compat_standard_error}
                if options.by_position
                else {}
            )
        )
        if n_dropped:
            text = f"{name!r}: {n_dropped} of {len(rows)} rows have no preference in [1, 2]"
            warnings.append(f"{text} (or 0, a draw); they are excluded.")
    return models, warnings


def _preferences(data: Annotations) -> Floats:
    """Return the column, or what the log-probabilities of the labels say."""
    if data.has("preference") or not data.has("lp_m", "lp_M", "is_switched"):
        return data.numbers("preference")
    return preferences_from_logprobs(
        data.numbers("lp_m"), data.numbers("lp_M"), data.flags("is_switched")
    )


def _average_length(length: Floats) -> int | None:
    """Return the mean, cut to whole characters as published."""
    known = length[~np.isnan(length)]
    return int(known.mean()) if len(known) else None


def _wildbench(data: Annotations, options: ScoreOptions) -> Scored:
    score = data.numbers("score")
    tags = _tags(data, options.items)
    incomplete = np.zeros(data.n, dtype=bool)
    for name in ("truncated", "empty"):
        if data.has(name):
            incomplete |= data.flags(name)
    parts = _parts(data, ("version", "judge"))
    keys = list(zip(data.texts("model"), *parts.values(), strict=True))
    version = data.texts("version") if tags and data.has("version") else [LATEST] * data.n
    models, warnings = [], []
    for key, rows in groups(keys).items():
        scores = wildbench_scores(
            score[rows],
            [tags[row] for row in rows] if tags else None,
            incomplete[rows],
            version[rows[0]],
        )
        n_dropped, _ = scores.pop("n_dropped"), scores.pop("categories")
        models.append(dict(zip(("model", *parts), key, strict=True)) | scores)
        if n_dropped:
            text = f"{key[0]!r}: {n_dropped} of {len(rows)} rows have no score from 1 to 10"
            warnings.append(f"{text}; they are excluded.")
    return models, warnings + _on_parts(parts)


def _marks(data: Annotations, _: ScoreOptions) -> Scored:
    """Average marks by model, and by turn where rows are of several."""
    score = data.numbers("score")
    prompts = data.texts("prompt_id") if data.has("prompt_id") else [str(n) for n in range(data.n)]
    turns = data.texts("turn") if data.has("turn") else [""] * data.n
    parts = _parts(data, ("judge", "method"))
    keys = list(zip(data.texts("model"), *parts.values(), strict=True))
    read = ~np.isnan(score)
    models, warnings = [], []
    for key, rows in groups(keys).items():
        used = rows[read[rows]]
        of_turn = groups([turns[row] for row in used])
        by_turn = {f"turn_{turn}": float(score[used[own]].mean()) for turn, own in of_turn.items()}
        models.append(
            dict(zip(("model", *parts), key, strict=True))
            | _mean(score[used], [prompts[row] for row in used])
            | (by_turn if len({*turns}) > 1 else {})
        )
        if len(used) < len(rows):
            text = f"{key[0]!r}: {len(rows) - len(used)} of {len(rows)} rows have no score"
            warnings.append(f"{text}; they are excluded.")
    return models, warnings + _on_parts(parts)


def _mean(score: Floats, prompts: Sequence[str]) -> dict[str, Any]:
    """Give a mean with its standard error over prompts."""
    if not len(score):
        return {"n": 0, "score": math.nan, "standard_error": math.nan}
    error = clustered_error(score, np.asarray(prompts))
    return {"n": len(score), "score": float(score.mean()), "standard_error": error}


def _parts(data: Annotations, names: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the columns that tell runs apart: those of these that vary in the file."""
    columns = {
        name: asked_judges(data) if name == "judge" else data.texts(name)
        for name in names
        if data.has(name)
    }
    return {name: values for name, values in columns.items() if len(set(values)) > 1}


def _on_parts(parts: Mapping[str, list[str]]) -> list[str]:
    return [
        f"The file contains {len(set(values))} values of {name!r} "
        f"({quoted_names(sorted(set(values)))}): they are scored separately."
        for name, values in parts.items()
    ]


def _tags(data: Annotations, items: Annotations | None) -> list[list[str]] | None:
    if items is None:
        name = next((name for name in _TAGS if data.has(name)), None)
        return data.lists(name) if name else None
    name = next((name for name in _TAGS if items.has(name)), _TAGS[0])
    items.need(name)
    known = dict(zip(items.texts("session_id"), items.lists(name), strict=True))
    tasks = data.texts("session_id")
    missing = next((task for task in tasks if task not in known), None)
    if missing is not None:
        raise DataError(f"{items.source!r} has no tags for session_id {missing!r}.")
    return [known[task] for task in tasks]


def _arena_hard(data: Annotations, _: ScoreOptions) -> Scored:
    games = list(zip(data.need("game_1"), data.need("game_2"), strict=True))
    parts = _parts(data, ("judge", "category"))
    keys = list(zip(data.texts("model"), *parts.values(), strict=True))
    models = []
    controlled, warnings = _controlled(data, games, [key[1:] for key in keys])
    for key, rows in groups(keys).items():
        one = arena_hard_score([games[row] for row in rows], np.random.default_rng(0))
        n_dropped = one.pop("n_dropped")
        named = dict(zip(("model", *parts), key, strict=True))
        models.append(named | one | controlled.get(key, {}))
        if n_dropped:
            dropped = f"{n_dropped} of {len(rows)} prompts lack a verdict"
            warnings.append(f"{key[0]!r}: {dropped}; they are excluded.")
    return models, warnings + _on_parts(parts)


def _controlled(
    data: Annotations, games: Sequence[Games], parts: Sequence[tuple[str, ...]]
) -> tuple[dict[tuple[str, ...], dict[str, float]], list[str]]:
    """Score models at equal style, by model and part, where the file counts the style."""
    sides = list(zip(*map(of_sides, STYLE), strict=True))
    if not data.has("prompt_id", *sides[0], *sides[1]):
        return {}, []
    models, prompts = data.texts("model"), data.texts("prompt_id")
    counts = [np.column_stack([data.numbers(name) for name in side]) for side in sides]
    scores, warnings = dict[tuple[str, ...], dict[str, float]](), []
    for part, rows in groups(list(parts)).items():
        own = [[values[row] for row in rows] for values in (models, games, prompts)]
        try:
            by_model = style_controlled(own[0], own[1], own[2], *(one[rows] for one in counts))
        except NotIdentifiedError as error:
            warnings.append(f"There is no style-controlled score. {error}")
            continue
        scores |= {(model, *part): score for model, score in by_model.items()}
    return scores, warnings


_LLMBAR = (
    "n", "n_unread", "n_tied", "correct_as_is", "correct_swapped", "correct_mean", "lower",
    "upper", "correct_both", "both_lower", "both_upper", "equal", "kappa_agreement",
)  # fmt: skip


def _llmbar(data: Annotations, _: ScoreOptions) -> Scored:
    judge = next((name for name in ("judge", "llm") if data.has(name)), "model")
    verdicts = {name: choices(data, name) for name in ("label", "w_ab", "w_ba")}
    parts = _parts(data, ("strategy", "subset"))
    keys = list(zip(data.texts(judge), *parts.values(), strict=True))
    models = []
    for key, rows in groups(keys).items():
        label, *both = ([values[row] for row in rows] for values in verdicts.values())
        one = swap_scores([str(value) for value in label], *both)
        named = dict(zip(("model", *parts), key, strict=True))
        models.append(named | {name: one[name] for name in _LLMBAR})
    return models, _on_parts(parts)


def choices(data: Annotations, column: str) -> list[str | None]:
    """Read which response is the better one; None where a verdict was not read."""
    values = [None if one is None else str(one).strip() for one in data.need(column)]
    known = ("1", "2") if column == "label" else ("1", "2", TIE, "None", "", None)
    for row, value in enumerate(values, 1):
        if value not in known:
            allowed = "1 or 2" if column == "label" else "1, 2, tie, or None where it was not read"
            raise data.wrong(column, row, value, allowed)
    return [None if one in ("None", "") else one for one in values]


def _pairwise(data: Annotations, _: ScoreOptions) -> Scored:
    data = _one_row_a_case(data)
    outcomes = [_outcome(data, row, value) for row, value in enumerate(data.need("winner"), 1)]
    a, b = (np.array(data.texts(side)) for side in of_sides("model"))
    read = np.array([one is not None for one in outcomes])
    used = read & (a != b)
    by_people = data.has("voter", "judge") and [*data.need("voter")] == [*data.need("judge")]
    if data.has("judge") and not by_people:  # rows without a judge are votes of people
        judges = np.array([judge or "people" for judge in data.need("judge")], dtype=object)
        data = replace(data, columns={**data.columns, "judge": judges})
    parts = _parts(data, () if by_people else ("judge",))
    keys = list(zip(*parts.values(), strict=True)) if parts else [()] * data.n
    models = []
    for key, rows in groups(keys).items():
        chosen = data.taken(rows[used[rows]])
        for one in pairwise_scores(
            chosen.texts(of_sides("model")[0]),
            chosen.texts(of_sides("model")[1]),
            [outcome for row in rows if used[row] and (outcome := outcomes[row])],
            chosen.texts("prompt_id") if data.has("prompt_id") else None,
        ):
            named = {"model": one["model"]} | dict(zip(parts, key, strict=True))
            models.append(named | one)
    return models, [*_on_unread(~read, a == b), *_on_parts(parts)]


def _one_row_a_case(data: Annotations) -> Annotations:
    """Leave single orders out beside the row of both, as `rating.tables.vote_filter` does."""
    if not data.has("order"):
        return data
    roles = {"case": "battle_id", **{role: role for role in (*CASE, "order") if role != "case"}}
    there = {role: data.texts(name) for role, name in roles.items() if data.has(name)}
    return data.taken(~beside_both({role: coded_list(names) for role, names in there.items()}))


def _on_unread(unread: Bools, same: Bools) -> list[str]:
    warnings = []
    if unread.any():
        warnings.append(
            f"{unread.sum()} of {len(unread)} rows have no verdict: excluded, not ties."
        )
    if (same & ~unread).any():
        warnings.append(f"{(same & ~unread).sum()} rows compare a model with itself; excluded.")
    return warnings


def _outcome(data: Annotations, row: int, value: object) -> Outcome | None:
    """Read a verdict; None where there is none."""
    if value is None or not str(value).strip():
        return None
    try:
        return Outcome(str(value).strip())
    except ValueError:
        raise data.wrong("winner", row, value, f"one of {', '.join(Outcome)}") from None


_SCORERS: Mapping[str, Callable[[Annotations, ScoreOptions], Scored]] = {
    "alpaca_eval": _alpaca_eval,
    "wildbench": _wildbench,
    "arena_hard": _arena_hard,
    "llmbar": _llmbar,
    "marks": _marks,
    "pairwise": _pairwise,
    "wildbench_reward": lambda data, _: reward_scores(data),
    "ifeval": lambda data, _: instruction_scores(data),
}
