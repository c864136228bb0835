"""The report on scores from elsewhere: correlations with ratings, and a picture a column."""

import shlex
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from judge.report.files import Figure, Page, Section, Table, write_forms
from judge.report.plots import Mark, scatter, spanning
from judge.studies.correlations import FIGURES, KINDS, NOISE_FREED
from judge.studies.estimates import NONE, minus, number_of, plural
from judge.studies.scores import MEAN_WIN_RATE, TOP, Scored, mean_win_rates
from judge.studies.separability import RULES, Pair
from rating import __version__
from rating.sentences import foremost

NAME = "scores"
OPENING = (
    "Models have scores from elsewhere, such as of benchmarks, and ratings from votes of people "
    "in an arena. Here is how far the one goes with the other."
)
LIMITS = (
    "Scores are taken as exact: how uncertain a benchmark is by itself is in no interval.",
    "A correlation says that two orders are alike, not that one may stand in for the other, nor "
    "why.",
    "Models that are close to each other by either measure lower a correlation; a wide range of "
    "models raises it.",
)


def write_scores(scored: Scored, folder: Path, made: date) -> Path:
    """Write the report in every form into a folder, as `write_forms`."""
    page = scores_page(scored, made)
    return write_forms(page, scored.to_dict(), list(rows(scored)), folder, NAME)


def scores_page(scored: Scored, made: date) -> Page:
    """Say all that the report says, in its order."""
    figures = tuple(
        figure for name in scored.columns if (figure := _figure(scored, name)) is not None
    )
    return Page(
        title="Scores from elsewhere and the ratings of people",
        opening=OPENING,
        about={
            "Scores": scored.source,
            "Ratings": scored.board_source,
            "Models on the board": f"{len(scored.board.models):,}",
        },
        answers=(),
        first=correlation_section(scored),
        sections=(
            *((Section("Model by model", figures=figures),) if figures else ()),
            Section("Limits", points=(*foremost(scored.on_data), *LIMITS)),
            Section("To make this again", code=command(scored)),
        ),
        made=made,
        version=__version__,
    )


def correlation_section(scored: Scored) -> Section:
    """Say how every column goes with the ratings, for these models and for others."""
    level, columns = f"{100 * scored.options.level:g} %", scored.columns.items()
    kinds = tuple(map(str.title, KINDS))
    as_found = {
        name: [
            *(number_of(getattr(one, kind)) for kind in KINDS),
            _share(scored.top[name]),
            f"{one.n:,}",
        ]
        for name, one in columns
    }
    noise_freed = {
        name: [number_of(getattr(one, kind + NOISE_FREED)) for kind in KINDS]
        for name, one in columns
    }
    others = {name: [_ends(*one.other_models[kind]) for kind in KINDS] for name, one in columns}
    return Section(
        "How far they go together",
        points=(*scored.on_columns, *_on_pairs(scored)),
        table=Table.of(
            ("Score", *kinds, f"Pearson, best {scored.n_top}", "Models"),
            as_found,
            f"1 is the same order, 0 none. {level} intervals for these very models and as many "
            "votes, by how uncertain these leave the ratings.",
        ),
        more=(
            Table.of(
                ("Without the noise of votes", *kinds),
                noise_freed,
                f"The same by endless votes, with {level} intervals: noise in ratings lowers a "
                "correlation.",
            ),
            Table.of(
                ("For models like these", *kinds),
                others,
                f"{level} intervals with models drawn again: how far another choice of models "
                "may move a correlation.",
            ),
            *_pairs(scored),
            *_win_rates(scored),
        ),
    )


def _on_pairs(scored: Scored) -> Iterator[str]:
    """Name pairs of models on which agreement rests, or does not."""
    for name, one in scored.separability.items():
        if one is None or one.overlap.agreement_over_all is None:
            continue
        left_out, opposite = one.overlap.left_out, one.overlap.opposite
        if left_out:
            yield (
                f"{name}: {plural(len(left_out), 'pair')} that the ratings do not tell apart are "
                f"left out of the agreement, and count 0 over all pairs: {_named(left_out)}."
            )
        if opposite:
            yield (
                f"{name}: scores and ratings are sure of opposite orders of "
                f"{plural(len(opposite), 'pair')}, the first being ahead by the ratings: "
                f"{_named(opposite)}."
            )


MOST_PAIRS = 5


def _named(pairs: tuple[Pair, ...]) -> str:
    names = ", ".join(f"{a} and {b}" for a, b in pairs[:MOST_PAIRS])
    return names if len(pairs) <= MOST_PAIRS else f"{names} (all of them are in the JSON)"


def _win_rates(scored: Scored) -> Iterator[Table]:
    """Say how often models have higher scores than others, where there are several columns."""
    if len(scored.scores.columns) < 2:
        return
    yield Table.of(
        ("Mean win rate over the columns", "Win rate", "Columns"),
        {
            one.model: (f"{100 * one.value:.1f} %", f"{one.n:,}")
            for one in mean_win_rates(scored.scores)
        },
        f"How often a model has a higher score than another, equal ones half. {MEAN_WIN_RATE}",
    )


def _pairs(scored: Scored) -> Iterator[Table]:
    """Say how well each column tells models apart, by two rules, and whether as the ratings do."""
    known = {name: one for name, one in scored.separability.items() if one is not None}
    names = {"overlap": "intervals apart", "pairwise": "difference"}
    if not known:
        return
    cells = {
        f"{name}, {names[rule]}": [
            *(_share(getattr(one, rule).separated), _share(getattr(one, rule).agreement)),
            _share(getattr(one, rule).agreement_over_all),
            _share(getattr(one, rule).separated_by_reference),
            _share(one.order_brier),
            f"{one.n:,}",
        ]
        for name, one in known.items()
        for rule in RULES
    }
    yield Table.of(
        (
            *("Pairs of models", "Separated", "Agreement", "Over all pairs"),
            *("Separated by the ratings", "Brier of the order", "Models"),
        ),
        cells,
        "Separated where the two intervals do not overlap (as Arena-Hard), or where the interval "
        "of the difference leaves out 0. Agreement over the pairs that the ratings tell apart: 1 "
        "the same way, −1 the other way, 0 not; over all pairs the others count 0, as in "
        "Arena-Hard's paper.",
    )


def rows(scored: Scored) -> Iterator[dict[str, Any]]:
    """Give every correlation as a row."""
    for name, one in scored.to_dict()["columns"].items():
        for kind in FIGURES:
            ends = {end: one[kind][end] for end in ("value", "lower", "upper")}
            yield {"score": name, "figure": kind, **ends, "n": one["n"]}


def command(scored: Scored) -> str:
    """Write the command that makes this report."""
    words = ["arena", "study", "scores", *scored.asked, *scored.options.words()]
    words += ["--top", str(scored.n_top)] if scored.n_top != TOP else []
    return shlex.join([*words, "--out", NAME])


def _share(value: float | None) -> str:
    return NONE if value is None else minus(f"{value:.3f}")


def _ends(lower: float | None, upper: float | None) -> str:
    if lower is None and upper is None:
        return NONE
    return " to ".join(NONE if end is None else minus(f"{end:.2f}") for end in (lower, upper))


def _figure(scored: Scored, name: str) -> Figure | None:
    board = scored.board
    scores = scored.scores.of(name, board.models)
    known = np.flatnonzero(~np.isnan(scores)).tolist()
    if len(known) < 2:
        return None
    points = [
        (
            board.models[i],
            Mark("other", float(scores[i])),
            Mark("people", float(board.ratings[i]), board.lower[i], board.upper[i]),
        )
        for i in known
    ]
    x = spanning(scores[known].tolist(), name, lambda value: f"{value:g}")
    ends = [end for _, _, mark in points for end in mark.ends]
    y = spanning(ends, "Rating (points)", lambda value: f"{value:,.0f}")
    svg = scatter(points, x, y, title=f"{name} and ratings", equal=False)
    one = scored.columns[name]
    return Figure(
        svg,
        f"{name}: {one.n:,} models, Spearman {number_of(one.spearman)}. Lines are intervals.",
    )
