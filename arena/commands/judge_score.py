"""`arena judge score`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from arena.commands.arguments import AS_IT_IS, File, Flat, Renamed
from arena.terminal import NO_WIDTH, show, table, warnings, working, write_json
from rating.errors import DataError

HEADINGS = {
    "model": "Model",
    "version": "Version",
    "judge": "Judge",
    "strategy": "Asked",
    "subset": "Part",
    "n": "Rows",
    "baseline": "Baseline",
    "n_unread": "Unread",
    "n_tied": "Tied",
    "n_wins": "Wins",
    "n_ties": "Ties",
    "n_losses": "Losses",
    "win_rate": "Win rate",
    "discrete_win_rate": "Discrete",
    "lc_win_rate": "Length-controlled",
    "avg_length": "Length",
    "score": "Score",
    "style_score": "Style-controlled",
    "mix": "Mix",
    "turn_1": "Turn 1",
    "turn_2": "Turn 2",
    "prompt_loose": "Loose",
    "instruction_strict": "By instruction",
    "adjusted": "WB-Score",
    "task_macro": "Task macro",
    "correct_mean": "Right",
    "correct_both": "Right in both orders",
    "equal": "Same in both",
    "kappa_agreement": "Kappa of both",
}
"""Columns of the table on a terminal; JSON has the others too."""

ERRORS = {
    "win_rate": "standard_error",
    "lc_win_rate": "lc_standard_error",
    "score": "standard_error",
}
MARKS_MEAN = "1–10 mean"
"""What the score is called beside WB-Score."""
"""Columns that are shown with their standard error behind them."""

TEXTS = ("model", "baseline", "version", "judge", "strategy", "subset")


def score(
    file: list[str],
    /,
    *,
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    method: Annotated[str | None, Parameter(metavar="METHOD")] = None,
    items: File = None,
    regularisation: File = None,
    compat: Annotated[str | None, Parameter(metavar="row-position")] = None,
    order: bool = False,
    licence: File = None,
    form: Annotated[Literal["table", "json"] | None, Parameter(name="--format")] = None,
    out: File = None,
) -> None:
    """Score recorded annotations by a published method, without calling a model.

    Rows without a verdict are left out and counted: they are never a tie or a zero.
    Exit code 2: options or annotations that cannot be used.

    Parameters
    ----------
    file
        Files, folders or patterns of recorded annotations (.csv, .tsv, .json, .jsonl, .parquet).
    method
        What the rows are, or the method of judge run that they are by, if neither the file nor
        its columns tell: alpaca_eval, wildbench, arena_hard, llmbar, pairwise, wildbench_reward,
        marks or ifeval.
    items
        Difficulty of each idx, or tags of each session_id.
    regularisation
        Rows of gamed baselines, for the length control.
    compat
        Repeat upstream's lookup by row position.
    order
        Give the length control a term for the order shown.
    licence
        What arena study judge --licence wrote: a pairwise verdict whose judge, method, template or
        model is not the licence's is named and not counted.
    form
        How to write it.
    out
        JSON file to write.

    Examples
    --------
    arena judge score annotations.csv
    arena judge score verdicts.csv --method pairwise --format json
    """
    if form == "table" and out is not None:
        msg = f"A table is for a terminal: write {str(out)!r} with --format json."
        raise DataError(msg)
    if licence is not None and method != "pairwise":
        raise DataError(f"--licence is for --method pairwise, not for {method!r}.")
    from judge.scoring.annotated import judge_score  # help would wait for duckdb and numpy
    from judge.studies.licence import read_licence, under
    from rating.tables import formats

    counting = {}
    if licence is not None:
        today = datetime.now(UTC).date()
        counting["only"] = partial(under, read_licence(licence), today)
    with working("Scoring"):
        result = judge_score(
            chosen.votes(*file),
            method,
            items=items,
            regularisation=regularisation,
            compat=compat,
            order=order,
            **counting,
        )
    if out is not None:
        formats.write_text(formats.as_json(result), out)
    elif form == "json":
        write_json(result)
    else:
        _show(result)


def _show(result: Mapping[str, Any]) -> None:
    models = result["models"]
    names = [name for name in HEADINGS if models and name in models[0]]
    rows = [[_cell(name, row) for name in names] for row in models]
    right = [place for place, name in enumerate(names) if name not in TEXTS]
    heads = HEADINGS | ({"score": MARKS_MEAN} if "adjusted" in names else {})
    grid = table([heads[name] for name in names], rows, right)
    show(grid, *warnings(result["warnings"]))


def _cell(name: str, row: Mapping[str, Any]) -> str:
    value, error = row[name], row.get(ERRORS.get(name, ""))
    if value is None:
        return "–"
    if not isinstance(value, float):
        return value if isinstance(value, str) else f"{value:,}"
    if error is None:
        return f"{value:.2f}"
    return f"{value:.2f} ± {error:.2f}" if error > NO_WIDTH else f"{value:.2f} (± not estimated)"
