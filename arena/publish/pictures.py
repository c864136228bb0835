"""The pictures of one board, each as PNG, SVG and HTML."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from arena.errors import DataError
from arena.publish.plots import intervals, votes_per_pair, win_rates
from arena.publish.rate import read_source, to_comparisons
from rating import Comparisons, RateOptions

ENDINGS = (".png", ".svg", ".html")


def draw_board(
    folder: Path, source: str, options: RateOptions, report: Mapping[str, Any], made: date
) -> list[Path]:
    """Draw intervals, win rates and votes per pair of a source that was rated.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    report : mapping
        `rating.Report.to_dict` of the same source and options.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    DataError
        If there are several boards, or the plots are not installed.
    """
    if "groups" in report:
        msg = f"--plots draws one board, and --by {options.by!r} makes several: drop one."
        raise DataError(msg)
    pairs = met_pairs(to_comparisons(read_source(source, options)))
    pictures = {
        "intervals": intervals(report, made=made),
        "win-rates": win_rates(report, pairs, made=made),
        "votes": votes_per_pair(report, pairs, made=made),
    }
    folder.mkdir(parents=True, exist_ok=True)
    files = [(folder / f"{name}{end}", made) for name, made in pictures.items() for end in ENDINGS]
    for file, picture in files:
        picture.write(file)
    return [file for file, _ in files]


def met_pairs(data: Comparisons) -> list[dict[str, Any]]:
    """Give each pair that met once, with its votes by weight and the first one's score in them."""
    wins = data.wins()
    votes = wins + wins.T
    return [
        {
            "model_a": data.models[i],
            "model_b": data.models[j],
            "win_rate": float(wins[i, j] / votes[i, j]),
            "votes": float(votes[i, j]),
        }
        for i, j in zip(*np.triu_indices(data.n_models, 1), strict=True)
        if votes[i, j] > 0
    ]
