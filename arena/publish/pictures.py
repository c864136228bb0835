"""The pictures of boards, each as PNG, SVG and HTML."""

from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from arena.publish.rate import read_source
from rating import Comparisons, RateOptions
from rating.charts.plots import intervals, votes_per_pair, win_rates
from rating.tables.counts import comparisons, read_groups
from rating.tables.reading import Reading

ENDINGS = (".png", ".svg", ".html")
LONGEST = 60
"""Characters of a folder's name: at four bytes each they fit every file system."""


def draw_boards(
    folder: Path, source: str, options: RateOptions, found: Mapping[str, Any], made: date
) -> list[Path]:
    """Draw intervals, win rates and votes per pair of a source that was rated.

    Parameters
    ----------
    folder : Path
        Made if it is not there. Groups are drawn in a folder each, within it.
    found : mapping
        `rating.Report.to_dict`, or `arena.publish.rate.Groups.to_dict`, of the same source and
        options.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    DataError
        If the plots are not installed, or the votes cannot be read.
    """
    if "groups" not in found:
        return _draw(folder, found, comparisons(read_source(source, options)), made)
    votes = read_groups(source, Reading.of(options))
    names = folder_names(found["groups"])
    return [
        file
        for value, report in found["groups"].items()
        for file in _draw(folder / names[value], report, comparisons(votes[value]), made)
    ]


def folder_names(values: Iterable[str]) -> dict[str, str]:
    """Name a folder for each value: no path leads out, and no two share one, in any case.

    Examples
    --------
    >>> folder_names(["en", "EN", "../etc", "C++", ""])
    {'en': 'en', 'EN': 'EN-2', '../etc': 'etc', 'C++': 'C__', '': '_'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for value in values:
        plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in value[:LONGEST])
        plain = plain.lstrip("._") or "_"
        name, number = plain, 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name.casefold())
        names[value] = name
    return names


def _draw(folder: Path, report: Mapping[str, Any], data: Comparisons, made: date) -> list[Path]:
    pairs = met_pairs(data)
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
