"""Reports on the raters of a study, and on scores from elsewhere compared with ratings.

`write_raters` reports agreement, accuracy and what more ratings would add; `write_scores`
correlates columns of scores with ratings, with a picture per column.
"""

import shlex
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from judge.report.page import Answer, Figure, Page, Section, write_forms
from judge.report.plots import Mark, scatter, spanning
from judge.report.studies import option_words
from judge.studies.boards import FIGURES, KINDS, NOISE_FREED, RULES, Pair
from judge.studies.estimates import NAMES, NONE, Estimate, minus, number_of, percent_of
from judge.studies.plan import WANTED_ALPHA, WANTED_RATERS, AlphaPlan, RaterPlan
from judge.studies.raters import CONFIDENCE, Rater, RaterStudy
from judge.studies.scores import MEAN_WIN_RATE, TOP, Scored, mean_win_rates
from rating.sentences import foremost, plural
from rating.tables.formats import Table

# Report on raters


NAME = "raters"
OPENING = (
    "People rated given pairs of answers. This report shows how far they agree with each "
    "other and with themselves, how each rater chooses, and what more ratings would add."
)
NOTE = (
    "Agreement: with others on the same items. Retest: with one's own choice when an item was "
    "shown again with its sides exchanged. Left: share of choices of a side that are for the "
    "left. The intervals of one rater are for other items of this rater and the same others."
)
ACCURACY_NOTE = (
    "By gold: mean and quantiles of Beta(8 + right, 2 + wrong). Without gold: how often a rater "
    "chooses an item's class in Dawid and Skene's model, which includes the gold items; its "
    "intervals are by a jackknife over 20 groups of prompts."
)
LIMITS = (
    "A preference is not an error: accuracy without gold is agreement with a common "
    "answer, if there is one, and is too high if some items are harder for all raters.",
    "Retest measures how consistent raters are, not how often they are right.",
    "The plan holds for items and people like those of the study.",
)
WORDS = {
    "item": "between items",
    "rater": "between raters",
    "rest": "within: one rater on one item",
    "interaction": "of which lasting preference of a rater",
    "within": "of which noise of the same rater",
}


def write_raters(study: RaterStudy, folder: Path, made: date) -> Path:
    """Write the report in every form into a folder, as `judge.report.page.write_forms`."""
    return write_forms(raters_page(study, made), study.to_dict(), list(_rows(study)), folder, NAME)


def raters_page(study: RaterStudy, made: date) -> Page:
    """Say all that the report says, in its order."""
    headline, *rest = study.sentences or ("There are too few ratings for any figure.",)
    more = [_accuracy_table(study), _variance_table(study)]
    if study.by_confidence:
        more.append(_confidence_table(study))
    if study.plan is not None:
        people = f"people as now ({study.plan.raters:.1f} equally active ones)."
        note = "Expected half-width for the share of side A, in percentage points, with as many "
        heads = ("Ratings per item", "Win rate")
        more.append(_plan_table(study.plan, heads, 100, 1, note + people))
    if study.alpha_plan is not None:
        note = "Half-width of the interval of Krippendorff's alpha, expected with these raters."
        more.append(_plan_table(study.alpha_plan, ("For alpha, per item", "Alpha"), 1, 2, note))
    return Page(
        title="How do the raters of this study choose?",
        opening=OPENING,
        about={
            "Study": study.rated.study or NONE,
            "Ratings": str(study.source),
            "Raters": f"{len(study.raters):,}",
            "Ratings counted": f"{study.share.n:,}",
        },
        answers=(Answer("Raters", "fair", headline, tuple(rest)),),
        first=Section("One by one", table=_rater_table(study), more=tuple(more)),
        sections=(
            Section("Limits", points=(*foremost(study.warnings, None), *LIMITS)),
            Section("Reproduce this report", code=_command(study)),
        ),
        made=made,
    )


def _rater_table(study: RaterStudy) -> Table:
    head = ("Rater", "Rated", "Seconds", "Agreement", "Retest", "Left")
    return Table.of(head, {one.rater: _cells(one) for one in study.raters}, note=NOTE)


def _accuracy_table(study: RaterStudy) -> Table:
    return Table.of(
        ("Accuracy", "Gold, right of", "By gold", "Without gold"),
        {
            one.rater: (
                f"{one.gold_right} of {one.gold_rated}" if one.gold_rated else NONE,
                percent_of(one.gold),
                percent_of(one.consensus),
            )
            for one in study.raters
        },
        note=ACCURACY_NOTE,
    )


def _cells(one: Rater) -> tuple[str, ...]:
    return (
        f"{one.rated:,}",
        NONE if one.seconds is None else f"{one.seconds:.0f}",
        *(percent_of(each) for each in (one.agreement, one.retest, one.left)),
    )


def _variance_table(study: RaterStudy) -> Table:
    return Table.of(
        ("Variance of ratings", "Share"),
        {WORDS[name]: (percent_of(getattr(study.variance, name)),) for name in NAMES},
        note=(
            "Ratings score 1, 0 or, for a tie, 0.5. Intervals are for other prompts and raters."
        ),
    )


def _confidence_table(study: RaterStudy) -> Table:
    return Table.of(
        ("Confidence", "Agreement with others", "Pairs"),
        {
            CONFIDENCE[of]: (percent_of(one), f"{one.n:,}")
            for of, one in study.by_confidence.items()
        },
        note="Pairs of a choice with this confidence and every other choice on its item.",
    )


def _plan_table(
    plan: RaterPlan | AlphaPlan, heads: tuple[str, str], times: int, digits: int, note: str
) -> Table:
    """Show designs, with their half-widths this many times as large and to this many digits."""
    wanted = f"±{times * plan.enough.wanted:g}"
    return Table.of(
        (
            heads[0],
            f"{heads[1]}, {plan.n_items:,} items",
            f"Items for {wanted}",
            f"Ratings for {wanted}",
        ),
        {
            str(one.each): (
                f"±{times * one.half_width:.{digits}f}",
                NONE if one.items is None else f"{one.items:,}",
                NONE if one.ratings is None else f"{one.ratings:,}",
            )
            for one in plan.designs
        },
        note=note,
    )


def _rows(study: RaterStudy) -> Iterator[dict[str, Any]]:
    """Give every figure as a row: rater, figure, value, ends and n; the rater is all of all."""
    for name in ("agreement", "retest", "left", "left_in_repeats", "share", "alpha"):
        yield _row("all", name, getattr(study, name))
    for name in NAMES:
        yield _row("all", f"variance: {name}", getattr(study.variance, name))
    for of, one in study.by_confidence.items():
        yield _row("all", f"agreement: {CONFIDENCE[of]}", one)
    for rater in study.raters:
        for name in ("gold", "consensus", "agreement", "retest", "left"):
            yield _row(rater.rater, name, getattr(rater, name))


def _row(rater: str, figure: str, estimate: Estimate) -> dict[str, Any]:
    return {"rater": rater, "figure": figure} | estimate.to_dict()


def _command(study: RaterStudy) -> str:
    """Write the command that makes this report."""
    words = ["arena", "study", "raters", *map(str, study.source.paths)]
    if study.wanted != WANTED_RATERS:
        words += ["--until", f"{study.wanted:g}"]
    if study.alpha_plan is not None and study.alpha_plan.enough.wanted != WANTED_ALPHA:
        words += ["--until-alpha", f"{study.alpha_plan.enough.wanted:g}"]
    words += study.options.words()
    words += option_words(study.source)
    return shlex.join(words)


# Report on scores


SCORES_NAME = "scores"
SCORES_OPENING = (
    "Models have scores from elsewhere, such as benchmarks, and ratings from votes of "
    "people in an arena. This report shows how closely the two agree."
)
SCORES_LIMITS = (
    "Scores are taken as exact: the uncertainty of a benchmark itself is in no interval.",
    "A correlation shows that two orders are similar. It does not show that one can "
    "replace the other, nor why they agree.",
    "Models with similar ratings or scores lower a correlation; a wide range of models raises it.",
)


def write_scores(scored: Scored, folder: Path, made: date) -> Path:
    """Write the report in every form into a folder, as `write_forms`."""
    page = scores_page(scored, made)
    return write_forms(page, scored.to_dict(), list(_scores_rows(scored)), folder, SCORES_NAME)


def scores_page(scored: Scored, made: date) -> Page:
    """Say all that the report says, in its order."""
    figures = tuple(
        figure for name in scored.columns if (figure := _figure(scored, name)) is not None
    )
    words = ["arena", "study", "scores", *scored.asked, *scored.options.words()]
    words += ["--top", str(scored.n_top)] if scored.n_top != TOP else []
    return Page(
        title="External scores and people's ratings",
        opening=SCORES_OPENING,
        about={
            "Scores": scored.source,
            "Ratings": scored.board_source,
            "Models on the board": f"{len(scored.board.models):,}",
        },
        answers=(),
        first=_correlation_section(scored),
        sections=(
            *((Section("Model by model", figures=figures),) if figures else ()),
            Section("Limits", points=(*foremost(scored.on_data, None), *SCORES_LIMITS)),
            Section("Reproduce this report", code=shlex.join(words)),
        ),
        made=made,
    )


def _correlation_section(scored: Scored) -> Section:
    """Describe how every column goes with the ratings, for these models and for others."""
    level, columns = f"{100 * scored.options.level:g}%", scored.columns.items()
    kinds = tuple(map(str.title, KINDS))
    as_found = {
        name: [
            *(number_of(one.figures[kind]) for kind in KINDS),
            _share(scored.top[name]),
            f"{one.n:,}",
        ]
        for name, one in columns
    }
    noise_freed = {
        name: [number_of(one.figures[kind + NOISE_FREED]) for kind in KINDS]
        for name, one in columns
    }
    others = {name: [_ends(*one.other_models[kind]) for kind in KINDS] for name, one in columns}
    return Section(
        "Correlation of scores and ratings",
        points=(*scored.on_columns, *_on_pairs(scored)),
        table=Table.of(
            ("Score", *kinds, f"Pearson, best {scored.n_top}", "Models"),
            as_found,
            f"1 is the same order, 0 no association. {level} intervals, if the ratings have any, "
            "are for these models and this number of votes.",
        ),
        more=(
            Table.of(
                ("Disattenuated correlations", *kinds),
                noise_freed,
                "Corrected for the noise of the ratings, which lowers a correlation, with "
                f"{level} intervals. Not estimated for ratings without intervals.",
            ),
            Table.of(
                ("For models like these", *kinds),
                others,
                f"{level} intervals that resample models: how far the correlation may change with "
                "another choice of models.",
            ),
            *_pairs(scored),
            *_win_rates(scored),
        ),
    )


def _on_pairs(scored: Scored) -> Iterator[str]:
    """Name pairs of models on which agreement rests, or does not."""
    for name, one in scored.separability.items():
        if one is None or one["overlap"]["agreement_over_all"] is None:
            continue
        left_out, opposite = one["overlap"]["left_out"], one["overlap"]["opposite"]
        if left_out:
            yield (
                f"{name}: {plural(len(left_out), 'pair')} that the ratings do not separate are "
                f"excluded from the agreement, and count 0 over all pairs: {_named(left_out)}."
            )
        if opposite:
            yield (
                f"{name}: scores and ratings order {plural(len(opposite), 'pair')} in "
                "significantly opposite ways, the first being ahead by the ratings: "
                f"{_named(opposite)}."
            )


MOST_PAIRS = 5


def _named(pairs: tuple[Pair, ...]) -> str:
    names = ", ".join(f"{a} and {b}" for a, b in pairs[:MOST_PAIRS])
    return names if len(pairs) <= MOST_PAIRS else f"{names} (all of them are in the JSON)"


def _win_rates(scored: Scored) -> Iterator[Table]:
    """Show how often models have higher scores than others, where there are several columns."""
    if len(scored.scores.columns) < 2:
        return
    yield Table.of(
        ("Mean win rate over the columns", "Win rate", "Columns"),
        {
            one["model"]: (f"{100 * one['value']:.1f}%", f"{one['n']:,}")
            for one in mean_win_rates(scored.scores)
        },
        f"Share of other models with a lower score; equal scores count half. {MEAN_WIN_RATE}",
    )


def _pairs(scored: Scored) -> Iterator[Table]:
    """Show how well each column tells models apart, by two rules, and whether as ratings do."""
    known = {name: one for name, one in scored.separability.items() if one is not None}
    names = {"overlap": "intervals apart", "pairwise": "difference"}
    if not known:
        return
    cells = {
        f"{name}, {names[rule]}": [
            *(
                _share(one[rule][share])
                for share in (
                    "separated",
                    "agreement",
                    "agreement_over_all",
                    "separated_by_reference",
                )
            ),
            _share(one["order_brier"]),
            f"{one['n']:,}",
        ]
        for name, one in known.items()
        for rule in RULES
    }
    yield Table.of(
        (
            "Pairs of models", "Separated", "Agreement", "Over all pairs",
            "Separated by the ratings", "Brier of the order", "Models",
        ),
        cells,
        "Separated if the two intervals do not overlap (Arena-Hard's rule, conservative), or if "
        "the interval of the difference excludes 0. Agreement over the pairs that the ratings "
        "separate: 1 the same order, −1 the opposite order, 0 not separated by the scores; "
        "over all pairs the others count 0, as in Arena-Hard's paper.",
    )  # fmt: skip


def _scores_rows(scored: Scored) -> Iterator[dict[str, Any]]:
    """Give every correlation as a row."""
    for name, one in scored.to_dict()["columns"].items():
        for kind in FIGURES:
            ends = {end: one[kind][end] for end in ("value", "lower", "upper")}
            yield {"score": name, "figure": kind, **ends, "n": one["n"]}


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
    by_rank = scored.columns[name].figures["spearman"]
    return Figure(
        svg, f"{name}: {by_rank.n:,} models, Spearman {number_of(by_rank)}. Lines are intervals."
    )
