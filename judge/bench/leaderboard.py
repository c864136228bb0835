"""The leaderboard of a bench, made of its results file, and the folder in which all lies."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import stdev
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from judge.bench.answering import Given
from judge.scoring.annotated import judge_score
from judge.scoring.intervals import bounded, unbounded
from judge.scoring.pairwise import clustered_error
from judge.tables.annotations import Annotations
from judge.tables.verdicts import total
from judge.verdict import READ, SETTLED, Verdict, consistency
from rating import Outcome
from rating.errors import DataError
from rating.outcome import of_sides
from rating.tables import formats
from rating.tables.vote_filter import BOTH
from rating.tables.writing import write_rows

RESULTS = "results.parquet"
Control = tuple[Annotations | None, Annotations | None]
"""Difficulties of the items and rows of gamed baselines, for AlpacaEval's length control."""
NO_CONTROL: Control = (None, None)
Row = Mapping[str, Any]
OF_SIDE_A = of_sides("model")[0]
_SOME = ("turn", "tags", "category", "fallback_for")


def require_folder(folder: Path) -> None:
    """Raise `DataError` unless results can be written there: better before they are paid for."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"Cannot make the folder {str(folder)!r}: {error.strerror}. Name another with --out."
        raise DataError(msg) from error


def write_results(rows: Sequence[Row], kinds: Mapping[str, str], folder: Path) -> Path:
    """Write the results as Parquet and as CSV; return the Parquet file.

    Columns that only some benchmarks have are left out where this one has none of them.
    """
    absent = {name for name in _SOME if all(row.get(name) is None for row in rows)}
    kinds = {name: kind for name, kind in kinds.items() if name not in absent}
    for name in ("results.csv", RESULTS):
        write_rows(rows, kinds, folder / name)
    return folder / RESULTS


def write_answers(given: Mapping[str, Sequence[Given]], folder: Path) -> None:
    """Write the answers that models gave, as ``--answers`` takes them."""
    rows = [_answer(model, one) for model, own in given.items() for one in own]
    if rows:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        formats.write_text("".join(lines), folder / "answers.jsonl")


def _answer(model: str, one: Given) -> Row:
    return {
        "id": one.item.id,
        "prompt": one.item.text,
        "model": model,
        "response": one.texts[0] if len(one.texts) == 1 else list(one.texts),
        "finish_reason": one.finish_reason,
        "tokens_in": one.tokens_in,
        "tokens_out": one.tokens_out,
        "cost": one.cost_usd,
        "latency": one.latency_s,
    }


def leaderboard(
    rows: Sequence[Row],
    results: Path,
    models: Sequence[str],
    given: Mapping[str, Sequence[Given]],
    missing: Mapping[str, int],
    control: Control = NO_CONTROL,
) -> dict[str, Any]:
    """Score the results as `arena judge score` does, and rank the models.

    Returns
    -------
    dict
        ``models``, best first: ``model``, ``win_rate`` in per cent or ``score``, ``lower`` and
        ``upper``, ``lc_win_rate`` where it applies, ``n``, ``cost`` (of its answers, where they
        were asked for, and of judging them), both parts of it, ``failed`` (cases without a
        verdict, or without an answer), and the other columns of the score. And ``scored_as``,
        ``cost`` of all models, ``failed`` of all, and ``warnings``.
    """
    scored = judge_score(results, items=control[0], regularisation=control[1])
    side = OF_SIDE_A if rows and OF_SIDE_A in rows[0] else "model"
    by_model = {row["model"]: row for row in scored["models"]}
    columns = list(dict.fromkeys(name for row in scored["models"] for name in row))
    own = {name: [row for row in rows if row[side] == name] for name in models}
    board = [
        _ranked(
            scored["method"],
            dict.fromkeys(columns) | {"model": name, "n": 0} | by_model.get(name, {}),
            own[name],
            given.get(name, ()),
            missing.get(name, 0),
        )
        for name in models
    ]
    board.sort(key=_best_first)
    baseline = [one for name, some in given.items() if name not in models for one in some]
    costs = [row["cost"] for row in board]
    return {
        "models": board,
        "scored_as": scored["method"],
        "cost": total([*costs, *(one.cost_usd for one in baseline)]),
        "failed": sum(row["failed"] for row in board),
        "warnings": scored["warnings"],
    }


def order_of(rows: Sequence[Row], kinds: Mapping[str, str]) -> tuple[str, ...]:
    """Name the models of some rows as their leaderboard has them; those without a value not."""
    with TemporaryDirectory() as folder:
        scored = judge_score(write_results(rows, kinds, Path(folder)))["models"]
    own = {row.get(OF_SIDE_A) or row.get("model") for row in rows}
    board = [row for row in scored if row["model"] in own and row[value_of(row)] is not None]
    return tuple(row["model"] for row in sorted(board, key=_best_first))


def _ranked(
    scored_as: str, score: Row, rows: Sequence[Row], given: Sequence[Given], missing: int
) -> dict[str, Any]:
    value = value_of(score)
    answers = total([one.cost_usd for one in given])
    judging = total([row.get("cost") for row in rows])
    ends = _interval(scored_as, score, rows)
    first = {
        "model": score["model"],
        value: score[value],
        **{end: _known(number) for end, number in ends.items()},
        **({"lc_win_rate": score["lc_win_rate"]} if "lc_win_rate" in score else {}),
        "n": score["n"],
        "cost": total([answers, judging]),
        "answer_cost": answers,
        "judge_cost": judging,
        "failed": missing + sum(row["status"] not in (READ, SETTLED) for row in rows),
    }
    return first | {column: cell for column, cell in score.items() if column not in first}


_SCALES = {"alpaca_eval": (0.0, 100.0), "pairwise": (0.0, 100.0), "wildbench": (1.0, 10.0)}
"""Ends of what is averaged, by how it is scored."""


def _interval(scored_as: str, score: Row, rows: Sequence[Row]) -> Mapping[str, float | None]:
    """Give the score's own interval, or that of a mean over items."""
    if "lower" in score:
        return {"lower": score["lower"], "upper": score["upper"]}
    mean, error = score[value_of(score)], score.get("standard_error")
    if scored_as == "wildbench":
        error = _error([row["score"] for row in rows])
    if mean is None or error is None:
        return {"lower": None, "upper": None}
    if scored_as not in _SCALES:
        return unbounded(mean, error, score["n"])
    return bounded(mean, error, score["n"], *_SCALES[scored_as])


def _error(marks: Iterable[float | None]) -> float | None:
    known = [mark for mark in marks if mark is not None]
    return stdev(known) / math.sqrt(len(known)) if len(known) > 1 else None


def _known(number: float | None) -> float | None:
    return None if number is None or math.isnan(number) else number


def value_of(score: Row) -> str:
    """Name the column by which models are ranked."""
    return "win_rate" if "win_rate" in score else "score"


def _best_first(row: Row) -> tuple[bool, float, str]:
    """Order by the value, those without one last, then by name."""
    value = row[value_of(row)]
    return (value is None, -(value or 0.0), row["model"])


def on_order(rows: Iterable[Row]) -> dict[str, Any]:
    """Say how the verdicts of pairs that were asked in both orders hang on the order.

    Returns
    -------
    dict
        ``consistency`` (`judge.verdict.Consistency.to_dict`); and ``first_place``: ``effect``,
        what standing first is worth as `judge.verdict.PositionEffect` has it, from -1/2 to 1/2,
        its ``standard_error`` and 95 % interval (``lower``, ``upper``) over prompts, and ``n``,
        the pairs read in both orders. It is None where they are of under two prompts.
    """
    both = [row for row in rows if row["order"] == BOTH]
    return {"consistency": consistency(map(_verdict, both)).to_dict(), "first_place": _place(both)}


def _verdict(row: Row) -> Verdict:
    outcome = None if row["winner"] is None else Outcome(row["winner"])
    return Verdict(row["battle_id"], outcome, row["inconsistent"])


def _place(both: Sequence[Row]) -> dict[str, Any] | None:
    """Estimate what standing first is worth; pairs settled without asking have no place."""
    read = [row for row in both if row["status_ab"] == row["status_ba"] == READ]
    prompts = np.unique([row["prompt_id"] for row in read], return_inverse=True)[1]
    n_prompts = len(np.unique(prompts))
    if n_prompts < 2:
        return None
    gain = np.array([(row["preference_ab"] - row["preference_ba"]) / 2 for row in read])
    effect, error = float(gain.mean()), clustered_error(gain, prompts)
    ends = bounded(effect, error, n_prompts, -0.5, 0.5)
    return {"effect": effect, "standard_error": error, **ends, "n": len(read)}


def write_leaderboard(report: Row, folder: Path) -> None:
    """Write the leaderboard as JSON, with all that was texts, and as CSV."""
    formats.write_text(formats.as_json(report), folder / "leaderboard.json")
    formats.write_text(formats.as_csv(report["models"]), folder / "leaderboard.csv")


def failures(rows: Iterable[Row], given: Mapping[str, Sequence[Given]]) -> dict[str, int]:
    """Count why answers and verdicts are missing, by class."""
    counts: dict[str, int] = {}
    of_answers = (one.failure for some in given.values() for one in some)
    why = [failure.value for failure in of_answers if failure is not None]
    why += [row["status"] for row in rows if row["status"] not in (READ, SETTLED)]
    for one in why:
        counts[one] = counts.get(one, 0) + 1
    return counts
