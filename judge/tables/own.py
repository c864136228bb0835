"""What a run or a bench of ours recorded, in the columns from which scores are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judge.grammar import ARROWS, NOT_PLAYED
from judge.tables.annotations import Annotations
from judge.tables.native import Columns, only
from judge.tables.verdicts import IFEVAL
from rating.errors import DataError
from rating.tables.columns import quoted_names
from rating.tables.vote_filter import BOTH
from rating.typing import Floats

MARKS = "marks"
"""Of what is scored by the mean of its marks."""
SCORED_AS = {
    "alpaca_eval": "alpaca_eval",
    "alpaca_eval_sampled": "alpaca_eval",
    "alpaca_eval_verbal": "alpaca_eval",
    "arena_hard": "arena_hard",
    "wildbench_score": "wildbench",
    "wildbench_reward": "wildbench_reward",
    **dict.fromkeys(("pairwise", "mt_bench_pairs"), "pairwise"),
    **dict.fromkeys(("rubric", "checklist", "mt_bench"), MARKS),
    IFEVAL: IFEVAL,
}
"""By the method of a run: how its file is scored; others by pairs, or by the mean of marks."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What one judge said of one case, for side A: NaN where an order has no verdict.

    Attributes
    ----------
    asked : int
        Orders in which it was asked; 0 where only the reconciled verdict is known.
    """

    battle_id: str
    prompt_id: str
    model_a: str
    model_b: str
    judge: str
    ab: float
    ba: float
    asked: int
    length_a: float
    length_b: float

    @property
    def levels(self) -> list[float]:
        """Preferences in the orders that were asked, NaN where one has no verdict."""
        known = [one for one in (self.ab, self.ba) if not np.isnan(one)]
        return known + [float("nan")] * (max(self.asked, 1) - len(known))

    @property
    def preference(self) -> float:
        """Mean over the orders that were asked; NaN while one of them has no verdict."""
        return float(np.mean(self.levels))


def own_method(data: Annotations) -> str | None:
    """Name how a file of ours is scored; None of a file that no run and no bench wrote.

    Raises
    ------
    DataError
        If it holds several methods, which are scored each by its own rule.
    """
    if not data.has("method", "status") or not (data.has("winner") or data.has("score")):
        return None
    methods = sorted(set(data.texts("method")))
    pairs = data.has("winner")
    scored = {SCORED_AS.get(name, "pairwise" if pairs else MARKS) for name in methods}
    if len(scored) > 1:
        msg = (
            f"{data.source!r} holds several methods ({quoted_names(methods)}): choose one with "
            f"--where \"method = '{methods[0]}'\"."
        )
        raise DataError(msg)
    return scored.pop()


def asked_judges(data: Annotations) -> list[str]:
    """Give the judge of each row who was to be asked, whoever was in its place."""
    judges = data.texts("judge")
    if not data.has("fallback_for"):
        return judges
    places = data.columns["fallback_for"]
    return [str(place or judge) for place, judge in zip(places, judges, strict=True)]


def is_scored_as(data: Annotations, scored: str) -> bool:
    """Whether the methods of a file of ours allow for a score; one's own allow for any."""
    return all(SCORED_AS.get(name, scored) == scored for name in data.texts("method"))


def for_own_score(data: Annotations, scored: str) -> Annotations:
    """Give a file of ours as a method of `arena judge score` takes it.

    Raises
    ------
    DataError
        If the verdicts are not against one baseline, where the method needs it.
    """
    made = _MADE.get(scored)
    return data if made is None else only(data, made(data))


def _alpaca_eval(data: Annotations) -> Columns:
    cases = _against_baseline(data, "alpaca_eval")
    columns: Columns = {
        "model": [case.model_a for case in cases],
        "idx": [case.prompt_id for case in cases],
        "preference": [1 + case.preference for case in cases],
    }
    if data.has("length_a", "length_b"):
        columns["len_model"] = [case.length_a for case in cases]
        columns["len_base"] = [case.length_b for case in cases]
    return columns | _judges(cases)


def _arena_hard(data: Annotations) -> Columns:
    cases = _against_baseline(data, "arena_hard")
    games = [_games(case) for case in cases]
    return {
        "model": [case.model_a for case in cases],
        "game_1": [first for first, _ in games],
        "game_2": [second for _, second in games],
    } | _judges(cases)


def _games(case: Compared) -> tuple[str | None, str | None]:
    """Give both games of a prompt; one that was not asked for is no missing verdict."""
    games = _verdict(1 - case.ba), _verdict(case.ab)
    if case.asked > 1 or games == (None, None):
        return games
    return games[0] or NOT_PLAYED, games[1] or NOT_PLAYED


def _rewards(data: Annotations) -> Columns:
    cases = compared(data)
    shown = [(case, level) for case in cases for level in case.levels]
    return {
        "model": [case.model_a for case, _ in shown],
        "baseline": [case.model_b for case, _ in shown],
        "prompt_id": [case.prompt_id for case, _ in shown],
        "level": [2 * level - 1 for _, level in shown],
    }


_MADE = {"alpaca_eval": _alpaca_eval, "arena_hard": _arena_hard, "wildbench_reward": _rewards}


def _judges(cases: Sequence[Compared]) -> Columns:
    return {"judge": [case.judge for case in cases]}


_ARROW = {level.first: name for name, level in ARROWS.items()}


def _verdict(first: float) -> str | None:
    """Write the preference for what was shown first as Arena-Hard does."""
    if np.isnan(first):
        return None
    if first not in _ARROW:
        levels = ", ".join(map(str, _ARROW))
        msg = f"A preference is {first}, and arena_hard has five levels: {levels}."
        raise DataError(msg)
    return _ARROW[first]


def _against_baseline(data: Annotations, scored: str) -> list[Compared]:
    """Give the cases of a file whose sides B are one model, and no side A is."""
    cases = compared(data)
    baselines = sorted({case.model_b for case in cases})
    if len(baselines) > 1:
        msg = (
            f"{data.source!r} holds several models on side B ({quoted_names(baselines)}), and "
            f"{scored} is a score against one baseline: choose one with --where, or score by "
            "--method pairwise."
        )
        raise DataError(msg)
    return cases


def compared(data: Annotations) -> list[Compared]:
    """Give the cases of a file of verdicts, whether each order has a row or they share one."""
    if data.has("preference_ab", "preference_ba"):
        return _in_one_row(data)
    rows: dict[tuple[str, ...], dict[str, int]] = {}
    names = [data.texts(name) for name in ("battle_id", "model_a", "model_b", "judge")]
    for row, (*key, order) in enumerate(zip(*names, data.texts("order"), strict=True)):
        rows.setdefault(tuple(key), {})[order] = row
    preference = data.numbers("preference")
    return [_case(data, preference, orders) for orders in rows.values()]


def _case(data: Annotations, preference: Floats, orders: Mapping[str, int]) -> Compared:
    shown = {order: float(preference[row]) for order, row in orders.items() if order != BOTH}
    missing = float("nan")
    row = next(iter(orders.values()))
    return _named(data, row, shown.get("ab", missing), shown.get("ba", missing), len(shown))


def _in_one_row(data: Annotations) -> list[Compared]:
    ab, ba = data.numbers("preference_ab"), data.numbers("preference_ba")
    asked = [_n_asked(data, row) for row in range(data.n)]
    return [_named(data, row, float(ab[row]), float(ba[row]), asked[row]) for row in range(data.n)]


def _n_asked(data: Annotations, row: int) -> int:
    """Count the orders that have a status; a file without that column asked in both."""
    known = [data.columns[name] for name in ("status_ab", "status_ba") if data.has(name)]
    return sum(column[row] not in (None, "") for column in known) if known else 2


def _named(data: Annotations, row: int, ab: float, ba: float, asked: int) -> Compared:
    def cell(name: str) -> str:
        return str(data.columns[name][row] or "") if name in data.columns else ""

    return Compared(
        battle_id=cell("battle_id"),
        prompt_id=cell("prompt_id"),
        model_a=cell("model_a"),
        model_b=cell("model_b"),
        judge=cell("fallback_for") or cell("judge"),
        ab=ab,
        ba=ba,
        asked=asked,
        length_a=_length(data, row, "length_a"),
        length_b=_length(data, row, "length_b"),
    )


def _length(data: Annotations, row: int, name: str) -> float:
    value = data.columns[name][row] if name in data.columns else None
    return float("nan") if value in (None, "") else float(value)
