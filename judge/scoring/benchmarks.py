"""Scores of published benchmarks: AlpacaEval 2, Arena-Hard, WildBench and IFEval.

`alpaca_eval_scores` takes preferences from two log-probabilities; `arena_hard_score` two games per
prompt in five levels; `wildbench_scores` marks from 1 to 10, and `mean_reward` rewards in five
levels. `pairwise_scores` and `swap_scores` score models, and judges asked in both orders, from
pairwise verdicts. `reward_scores` and `instruction_scores` score whole files.
"""

import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from judge.grammar import NOT_PLAYED
from judge.ifeval import Checked, accuracy, share
from judge.scoring.logistic import bounded, fit_logistic
from judge.tables.annotations import Annotations, groups
from rating import Outcome
from rating.errors import DataError
from rating.leave_out import clustered_variance, drawn_sums, quantile
from rating.likelihood import Logistic
from rating.typing import Bools, Floats, Ints

# AlpacaEval 2


DRAWS = (0.0, 1.5)
"""Preferences that are draws: 0 in annotations of the first version, 1.5 since."""


def wins(preference: Floats) -> Floats:
    """Turn preferences into the model's share of each row: 0 loss, 1/2 draw, 1 win.

    Parameters
    ----------
    preference : ndarray of shape (n,)
        1 where the baseline is better, 2 where the model is, between them how sure the judge
        was; `DRAWS` are draws.

    Returns
    -------
    ndarray of shape (n,)
        NaN where there is no preference, or it lies outside of [1, 2].
    """
    level = np.where(preference == 0, 1.5, preference)
    return np.where((level >= 1) & (level <= 2), level - 1, np.nan)


def alpaca_eval_scores(preference: Floats) -> dict[str, Any]:
    """Score one model against the baseline; rates in per cent.

    Returns
    -------
    dict
        ``n``, rows with a preference; ``n_wins`` and ``n_losses``, those whose preference lies on
        the model's side, or the baseline's, however slightly; ``n_ties``, those marked as draws;
        ``win_rate`` and ``standard_error``, the mean preference and its standard error over rows;
        ``discrete_win_rate``, each preference first rounded to a win or a loss, a draw half; and
        ``n_dropped``, rows without a preference, or with one outside of [1, 2]: excluded, not
        guessed. NaN where too few rows leave a rate undefined.

    Examples
    --------
    >>> scores = alpaca_eval_scores(np.array([1.0, 2.0, 1.5, 1.75, np.nan]))
    >>> [scores[name] for name in ("win_rate", "discrete_win_rate", "n_wins", "n_dropped")]
    [56.25, 62.5, 2, 1]

    References
    ----------
    .. [1] X. Li et al., AlpacaEval, github.com/tatsu-lab/alpaca_eval, metrics `winrate`.
    """
    share = wins(np.asarray(preference, dtype=np.float64))
    used = ~np.isnan(share)
    share, drawn = share[used], np.isin(preference, DRAWS)[used]
    n = len(share)
    # Halves go to the even neighbour, upstream's rounding: 1.5 and 2.5 to 2, 0.5 to 0.
    whole = np.where(drawn, 0.5, np.round(share + 1) - 1)
    return {
        "n": n,
        "n_wins": int((share > 0.5).sum()),
        "n_ties": int(drawn.sum()),
        "n_losses": int((share < 0.5).sum()),
        "win_rate": 100 * float(share.mean()) if n else math.nan,
        "standard_error": 100 * float(share.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan,
        "discrete_win_rate": 100 * float(whole.mean()) if n else math.nan,
        "n_dropped": int((~used).sum()),
    }


def preferences_from_logprobs(first: Floats, second: Floats, shown_first: Bools) -> Floats:
    """Read preferences from the log-probabilities of the two labels.

    ``P(first) = exp(first) / (exp(first) + exp(second))``; the preference for what was shown
    second is ``2 - P(first)``, and is turned round where the model was shown first.

    Parameters
    ----------
    first, second : ndarray of shape (n,)
        Log-probability that the reply names the response shown first, or second; -inf where
        the label was not among the most probable.
    shown_first : ndarray of shape (n,), bool
        Where the model's response was the first.

    Returns
    -------
    ndarray of shape (n,)
        NaN where neither label has a probability: such a reply is unparsed, no draw.
    """
    neither = np.isneginf(first) & np.isneginf(second)
    gap = np.where(neither, np.nan, 0.0)
    np.subtract(second, first, out=gap, where=~neither)
    with np.errstate(over="ignore"):  # an infinite odds is a probability of zero
        of_second = 2 - 1 / (1 + np.exp(gap))
    return np.where(shown_first, 3 - of_second, of_second)


# Arena-Hard


STRONG = 3
"""Times that a verdict of much better counts."""

_SHARE: Mapping[str, tuple[float, int]] = {
    NOT_PLAYED: (0.0, 0),
    "A>>B": (1.0, STRONG),
    "A>B": (1.0, 1),
    "A=B": (0.5, 1),
    "B>A": (0.0, 1),
    "B>>A": (0.0, STRONG),
}
"""Of a verdict: what goes to side A, and how often it counts."""

Games = tuple[str | None, str | None]
"""Verdicts of the game with the baseline on side A, and of the one with the model there."""


def arena_hard_score(
    games: Sequence[Games], rng: np.random.Generator, *, draws: int = 1000
) -> dict[str, Any]:
    """Score a model against the baseline from its verdicts, in per cent.

    With a single baseline the published Bradley-Terry fit is saturated, so its score is the
    mean of all verdicts, ties half, those of much better `STRONG` times. What we change: the
    published interval resamples those copies, and both games of a prompt, as if they were
    independent, and prints the 5 and 95% points; here prompts are resampled, at 95%.

    Parameters
    ----------
    games : sequence of pairs
        One a prompt; None where a game has no verdict: the prompt is excluded and counted.
        Of a prompt with `NOT_PLAYED` the other game counts.

    Returns
    -------
    dict
        ``n``, prompts with a verdict of each game that was played; ``score``, the share of the
        weighted games won, NaN without a prompt; ``standard_error``, ``lower`` and ``upper``, the
        spread and the 95% percentile interval over resampled prompts, NaN under two; and
        ``n_dropped``, prompts without such verdicts.

    Raises
    ------
    DataError
        For a verdict that was not offered.

    References
    ----------
    .. [1] T. Li et al., "From Crowdsourced Data to High-Quality Benchmarks: Arena-Hard and
       BenchBuilder Pipeline", 2024, section 4.
    """
    whole = [(first, second) for first, second in games if first and second]
    sums = np.array([_prompt(first, second) for first, second in whole]).reshape(-1, 2)
    won, counted = sums.sum(axis=0)
    error, lower, upper = math.nan, math.nan, math.nan
    if len(sums) > 1:
        totals = drawn_sums(sums, draws, rng)
        drawn = 100 * totals[:, 0] / totals[:, 1]
        error = float(drawn.std(ddof=1))
        lower, upper = map(float, np.percentile(drawn, [2.5, 97.5]))
    return {
        "n": len(sums),
        "score": 100 * float(won / counted) if len(sums) else math.nan,
        "standard_error": error,
        "lower": lower,
        "upper": upper,
        "n_dropped": len(games) - len(sums),
    }


STYLE = ("length", "headers", "lists", "bold")
"""What upstream's style control counts of a response; it counts tokens for the length."""


def style_controlled(
    models: Sequence[str],
    games: Sequence[Games],
    prompts: Sequence[str],
    counts: Floats,
    of_baseline: Floats,
) -> Mapping[str, dict[str, float]]:
    """Score all models against the baseline as if answers had the same style, as upstream.

    ``logit P(game won) = beta_model + sum_k gamma_k x_k`` over all games of all models, with
    the weights of `arena_hard_score` and ties half, by maximum likelihood. ``x_1`` is
    ``(l_a - l_b) / (l_a + l_b)`` of the lengths, the others ``(d_a - d_b) / (d_a + d_b + 1)`` of
    ``d = count / (l + 1)``, each in standard deviations over the weighted games. The score is
    ``expit(beta)`` in per cent. Where we deviate: lengths are of characters where upstream has
    tokens, a count that never differs has no term, and intervals are clustered by prompt where
    upstream resamples games.

    Parameters
    ----------
    models, games, prompts : sequence of length n
    counts, of_baseline : ndarray of shape (n, 4)
        Of the model's response and of the baseline's, as in `STYLE`.

    Returns
    -------
    mapping of str to dict
        By model ``style_score``, ``style_lower`` and ``style_upper`` in per cent.

    Raises
    ------
    NotIdentifiedError
        If the games do not tell the strengths from the style.
    """
    read = [(n, part) for n, pair in enumerate(games) if all(pair) for part in _games_of(pair)]
    row = np.array([n for n, _ in read], dtype=np.int64)
    share, weight = np.array([part for _, part in read]).reshape(-1, 2).T
    names, place = np.unique([models[n] for n in row], return_inverse=True)
    style = _standardised(_style(counts, of_baseline)[row], weight)
    design = np.hstack([np.eye(len(names))[place], style])
    fitted = fit_logistic(Logistic(design, share, weight))
    scores = design * (weight * (share - fitted.probability))[:, None]
    influence = scores @ np.linalg.inv(fitted.hessian)[:, : len(names)]
    prompt = np.unique([prompts[n] for n in row], return_inverse=True)[1]
    n_prompts = len(np.unique(prompt))
    times = quantile(0.95, n_prompts - 1) if n_prompts > 1 else math.nan
    beta = fitted.coefficients[: len(names)]
    reach = times * np.sqrt(clustered_variance(influence, prompt))
    ends = {"style_score": beta, "style_lower": beta - reach, "style_upper": beta + reach}
    return {
        str(name): {end: float(100 * scipy.special.expit(value[n])) for end, value in ends.items()}
        for n, name in enumerate(names)
    }


def _style(counts: Floats, of_baseline: Floats) -> Floats:
    """Give the differences of style, shape (n, 4); two empty answers do not differ in length."""
    length, base = counts[:, :1], of_baseline[:, :1]
    longer = (length - base) / np.maximum(length + base, 1)
    density, other = counts[:, 1:] / (length + 1), of_baseline[:, 1:] / (base + 1)
    return np.hstack([longer, (density - other) / (density + other + 1)])


def _standardised(style: Floats, weight: Floats) -> Floats:
    """Centre columns and divide by their standard deviation, each row as often as it counts."""
    total = weight.sum()
    centred = style - weight @ style / total
    spread = np.sqrt(weight @ centred**2 / (total - 1))
    known = spread > 1e-12
    return np.asarray(centred[:, known] / spread[known])


def _games_of(pair: Games) -> Iterator[tuple[float, int]]:
    """Give the model's share of each game that was played, and how often it counts."""
    for verdict, is_swapped in zip(pair, (True, False), strict=True):
        share, times = _read(str(verdict))
        if times:
            yield (1 - share if is_swapped else share), times


def _prompt(first: str, second: str) -> tuple[float, int]:
    """Return what the model won in both games of a prompt, and how much counted."""
    to_baseline, times = _read(first)
    to_model, times_swapped = _read(second)
    return times * (1 - to_baseline) + times_swapped * to_model, times + times_swapped


def _read(verdict: str) -> tuple[float, int]:
    try:
        return _SHARE[verdict]
    except KeyError:
        verdicts = ", ".join(name for name in _SHARE if name != NOT_PLAYED)
        raise DataError(f"There is no verdict {verdict!r}; the verdicts are {verdicts}.") from None


# WildBench


_TASKS = tomllib.loads((files("judge.scoring") / "wildbench.toml").read_text("utf-8"))
GROUPS: Mapping[str, str] = _TASKS["groups"]
"""From the tag of a task to its category."""
WEIGHTS: Mapping[str, Mapping[str, float]] = _TASKS["weights"]
"""Weights of the categories in the macro averages of each version."""
LATEST = "v2.0625"

_POINTS = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
_BY_TAG = {name.casefold(): group for name, group in GROUPS.items()}
_BY_TAG |= {group.casefold(): group for group in WEIGHTS[LATEST]}


def wildbench_scores(
    score: Floats,
    tags: Sequence[Sequence[str]] | None = None,
    incomplete: Bools | None = None,
    version: str = LATEST,
) -> dict[str, Any]:
    """Score one model.

    Parameters
    ----------
    score : ndarray of shape (n,)
        From 1 to 10; NaN where it was not read.
    tags : sequence of sequences of str, optional
        Tags or categories of each row's task: it counts once in each category they name.
    incomplete : ndarray of shape (n,), bool, optional
        Where the response is truncated or empty.
    version : str
        Whose weights of the categories to use, one of `WEIGHTS`.

    Returns
    -------
    dict
        ``n`` rows with a score from 1 to 10; ``score``, the mean over them, truncated and empty
        responses among them, as published; ``adjusted``, ``2 (score - 5)``; ``categories``, the
        adjusted scores by category, truncated and empty responses excluded, as published;
        ``task_macro``, their weighted mean, NaN unless every category has a score; and
        ``n_dropped`` rows whose score was not read or is outside of 1 to 10. NaN where there is
        nothing to average.

    Raises
    ------
    DataError
        For an unknown tag or version.

    References
    ----------
    .. [1] B. Y. Lin et al., "WildBench", ICLR 2025, section 3.3; weights from the code.
    """
    read = (score >= 1) & (score <= 10)
    mean = float(score[read].mean()) if read.any() else math.nan
    whole = read if incomplete is None else read & ~incomplete
    categories = {} if tags is None else _by_category(score, tags, whole)
    return {
        "n": int(read.sum()),
        "score": mean,
        "adjusted": 2 * (mean - 5),
        "task_macro": task_macro(categories, version),
        "categories": categories,
        "n_dropped": int((~read).sum()),
    }


def _by_category(score: Floats, tags: Sequence[Sequence[str]], used: Bools) -> dict[str, float]:
    named = [{category_of(tag) for tag in row} for row in tags]
    rows = {c: used & np.array([c in row for row in named], dtype=bool) for c in WEIGHTS[LATEST]}
    return {c: 2 * (float(score[at].mean()) - 5) for c, at in rows.items() if at.any()}


def category_of(tag: str) -> str:
    """Name the category of a task's tag, or of a category; raises `DataError` of any other."""
    category = _BY_TAG.get(tag.strip().casefold())
    if category is None:
        msg = f"There is no task tag {tag!r}; the tags are {', '.join(map(repr, GROUPS))}."
        raise DataError(msg)
    return category


def task_macro(categories: Mapping[str, float], version: str = LATEST) -> float:
    """Average scores or rewards of the categories by the weights of a version.

    Returns
    -------
    float
        NaN unless every category has a value: four categories are another average.

    Raises
    ------
    DataError
        If there are no weights for the version.
    """
    weights = WEIGHTS.get(version)
    if weights is None:
        msg = f"There are no task weights for version {version!r}, only {', '.join(WEIGHTS)}."
        raise DataError(msg)
    if not all(name in categories for name in weights):
        return math.nan
    total = math.fsum(weight * categories[name] for name, weight in weights.items())
    return total / math.fsum(weights.values())


def mean_reward(level: Floats) -> float:
    """Average rewards over the rows that have a verdict: from -1, much worse always, to 1.

    Parameters
    ----------
    level : ndarray of shape (n,)
        For the model: 1 much better, 1/2 slightly, 0 tie, -1/2 slightly worse, -1 much worse;
        NaN where the row was skipped for a truncated or empty response.

    Returns
    -------
    float
        NaN without a verdict. As published, skipped rows count as 0, and pull it towards that.

    Raises
    ------
    DataError
        For another level.
    """
    known = level[~np.isnan(level)]
    unknown = known[~np.isin(known, _POINTS)]
    if unknown.size:
        msg = f"A level is {unknown[0]}; levels are 1, 0.5, 0, -0.5 and -1, or NaN if skipped."
        raise DataError(msg)
    return float(known.mean()) if known.size else math.nan


# Pairwise verdicts


def pairwise_scores(
    model_a: Sequence[str],
    model_b: Sequence[str],
    outcome: Sequence[Outcome],
    prompt: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Score every model in all its battles, sorted by name.

    The win rate depends on whom a model met: for ratings that do not, fit the same rows with
    `rating.rate`.

    Returns
    -------
    list of dict
        ``model``, ``n``, ``n_wins``, ``n_ties``, ``n_losses``; ``win_rate`` in per cent, ties
        half, both bad being a tie; and ``standard_error`` in per cent, over prompts where they are
        known, this many verdicts on one prompt count as what they are, NaN under two.

    Raises
    ------
    DataError
        If the columns have different lengths.
    """
    lengths = {len(model_a), len(model_b), len(outcome), len(prompt or outcome)}
    if len(lengths) > 1:
        msg = f"Columns of {', '.join(map(str, sorted(lengths)))} rows: give one value a row."
        raise DataError(msg)
    a, b = np.array(model_a, dtype=np.str_), np.array(model_b, dtype=np.str_)
    score = np.array([one.score_a for one in outcome], dtype=np.float64)
    groups = np.arange(len(a)) if prompt is None else np.unique(prompt, return_inverse=True)[1]
    models = []
    for name in np.union1d(a, b):
        own = np.r_[score[a == name], 1 - score[b == name]]
        group = np.r_[groups[a == name], groups[b == name]]
        counts = {"n_wins": own == 1, "n_ties": own == 0.5, "n_losses": own == 0}
        models.append(
            {"model": str(name), "n": len(own)}
            | {key: int(rows.sum()) for key, rows in counts.items()}
            | {
                "win_rate": 100 * float(own.mean()),
                "standard_error": 100 * clustered_error(own, group),
            }
        )
    return models


def clustered_error(values: Floats, group: Ints) -> float:
    """Return the standard error of a mean over groups; NaN under two.

    With one value a group it is the usual one, ``sd / sqrt(n)``.
    """
    square = float(clustered_variance(values - values.mean(), group))
    return math.sqrt(square) / len(values) if math.isfinite(square) else math.nan


TIE = "tie"
_CHOICES = ("1", "2")
_UNREAD = "None"


def swap_scores(
    label: Sequence[str],
    as_is: Sequence[str | None],
    swapped: Sequence[str | None],
    prompt: Sequence[str] | None = None,
    *,
    level: float = 0.95,
) -> dict[str, Any]:
    """Score a judge on cases with a label, with the responses as they are and swapped.

    Parameters
    ----------
    label : sequence of str
        The better response: "1" or "2".
    as_is, swapped : sequence of str or None
        Verdicts with response 1 first, and with response 2 first, both naming responses, not
        places; "tie"; None, or "None", where unparsed.
    prompt : sequence of str, optional
        What cases are alike within, for intervals; each case by itself if not given.

    Returns
    -------
    dict
        ``correct_as_is``, ``correct_swapped`` and ``correct_mean``, right verdicts in each order
        and their mean, per cent of all cases; an unparsed verdict is not right, and no tie is.
        ``lower`` and ``upper``, the interval of ``correct_mean`` for other prompts
        (`judge.ifeval.share`). ``correct_both``, ``both_lower`` and ``both_upper``, those right in
        both orders, per cent, and the interval. ``wrong_both``, those for the other side in both
        orders, and ``equal``, the same in both, unparsed being the same as unparsed, per cent.
        ``n_first`` and ``n_second``, cases in which the two orders name different responses: each
        time what stands first, or second. ``kappa_agreement``, Cohen's kappa of the two orders, as
        published: an unparsed verdict counted as "2". ``miscoded_kappa_as_is`` and
        ``miscoded_kappa_swapped``, the published kappas of judge and label, in which labels are
        coded 1 and 2 and verdicts 1 and 0: a "2" can never agree; kept to recognise the published
        figures, no measure. ``n``, cases, and ``n_unread`` and ``n_tied``, verdicts that could not
        be read or are ties, of twice as many.

    Raises
    ------
    DataError
        For lengths that differ, no cases, or any other value.

    References
    ----------
    .. [1] Z. Zeng et al., "Evaluating Large Language Models at Evaluating Instruction
       Following", ICLR 2024, section 4.
    """
    truth, first, second = _checked(label), _checked(as_is), _checked(swapped)
    if not len(truth) == len(first) == len(second) > 0 or not np.isin(truth, _CHOICES).all():
        raise DataError(
            f"{len(truth)} labels, {len(first)} and {len(second)} verdicts: give one of each "
            "for every case, and only cases with a label."
        )
    right, right_swapped = first == truth, second == truth
    clusters = [str(i) for i in range(len(truth))] if prompt is None else list(prompt)
    each = share([*zip(clusters * 2, [*right, *right_swapped], strict=True)], level=level)
    both = share(zip(clusters, right & right_swapped, strict=True), level=level)
    sided = np.isin(first, _CHOICES) & np.isin(second, _CHOICES)
    return {
        "correct_as_is": _percent(right),
        "correct_swapped": _percent(right_swapped),
        "correct_mean": (_percent(right) + _percent(right_swapped)) / 2,
        "lower": 100 * each.low,
        "upper": 100 * each.high,
        "correct_both": _percent(right & right_swapped),
        "both_lower": 100 * both.low,
        "both_upper": 100 * both.high,
        "wrong_both": _percent(sided & ~right & ~right_swapped),
        "equal": _percent(first == second),
        "n_first": int((sided & (first == "1") & (second == "2")).sum()),
        "n_second": int((sided & (first == "2") & (second == "1")).sum()),
        "kappa_agreement": _kappa(_or_two(first), _or_two(second)),
        "miscoded_kappa_as_is": _miscoded(truth, first),
        "miscoded_kappa_swapped": _miscoded(truth, second),
        "n": len(truth),
        "n_unread": int((first == _UNREAD).sum() + (second == _UNREAD).sum()),
        "n_tied": int((first == TIE).sum() + (second == TIE).sum()),
    }


def _checked(verdicts: Sequence[str | None]) -> NDArray[np.str_]:
    named = [_UNREAD if verdict is None else verdict for verdict in verdicts]
    for name in named:
        if name not in (*_CHOICES, TIE, _UNREAD):
            msg = f"A verdict is {name!r}; verdicts are '1', '2', 'tie' and None (unparsed)."
            raise DataError(msg)
    return np.array(named, dtype=np.str_)


def _or_two(verdicts: NDArray[np.str_]) -> NDArray[np.str_]:
    return np.where(verdicts == _UNREAD, "2", verdicts)


def _miscoded(truth: NDArray[np.str_], verdicts: NDArray[np.str_]) -> float:
    return _kappa(truth, np.where(verdicts == "1", "1", "0"))


def _percent(right: Bools) -> float:
    return 100 * float(right.mean())


def _kappa(first: NDArray[np.str_], second: NDArray[np.str_]) -> float:
    """Return Cohen's kappa; NaN where one value is all that either uses."""
    values = np.union1d(first, second)
    shares = [np.array([(side == value).mean() for value in values]) for side in (first, second)]
    by_chance = float(shares[0] @ shares[1])
    if by_chance == 1:
        return float("nan")
    return (float((first == second).mean()) - by_chance) / (1 - by_chance)


# Files of rewards and of instructions


RewardRows = tuple[list[dict[str, Any]], list[str]]
"""One row a model, and warnings."""


def reward_scores(data: Annotations) -> RewardRows:
    """Average the rewards of each model against each baseline, from -1 to 1; and over baselines.

    ``mix``, the mean over baselines, is missing while one of them has no reward. ``task_macro``,
    the mean of the categories of tasks by WildBench's weights, is missing unless every category
    has a reward.
    """
    level, prompts = data.numbers("level"), _prompts(data)
    kinds = (
        [{category_of(tag) for tag in row} for row in data.lists("tags")]
        if data.has("tags")
        else [set[str]()] * data.n
    )
    keys = list(zip(data.texts("model"), data.texts("baseline"), strict=True))
    models: list[dict[str, Any]] = []
    for (name, baseline), rows in groups(keys).items():
        own = _rewards_mean(level[rows], prompts[rows])
        rewards = {
            kind: mean_reward(level[[row for row in rows if kind in kinds[row]]])
            for kind in set[str]().union(*(kinds[row] for row in rows))
        }
        macro = task_macro({kind: one for kind, one in rewards.items() if not math.isnan(one)})
        models.append({"model": name, "baseline": baseline} | own | {"task_macro": macro})
    for row in models:
        over = [one["score"] for one in models if one["model"] == row["model"]]
        row["mix"] = float(np.mean(over))
    return models, [
        f"{row['model']!r}: {row['n_unread']} of {row['n'] + row['n_unread']} rows have no "
        "verdict; they are excluded."
        for row in models
        if row["n_unread"]
    ]


def instruction_scores(data: Annotations) -> RewardRows:
    """Give IFEval's four scores of each model in per cent; the first has the interval."""
    prompts = data.texts("prompt_id")
    details = data.texts("detail")
    models: list[dict[str, Any]] = []
    for name, rows in groups(data.texts("model")).items():
        result = accuracy(
            [_rewards_checked(data, prompts[row], row, details[row]) for row in rows]
        )
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


def _rewards_checked(data: Annotations, prompt: str, row: int, detail: str) -> Checked:
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


def _rewards_mean(values: Floats, prompts: Ints) -> dict[str, Any]:
    read = ~np.isnan(values)
    known, group = values[read], prompts[read]
    n_groups = len(np.unique(group))
    error = clustered_error(known, group) if n_groups > 1 else math.nan
    mean = mean_reward(values)
    numbers = {"n": len(known), "n_unread": int((~read).sum()), "score": mean}
    return numbers | {"standard_error": error} | bounded(mean, error, n_groups, -1.0, 1.0)
