"""The report on the raters of a study, and on what more ratings would buy."""

import shlex
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from judge.report.files import Answer, Page, Section, Table, write_forms
from judge.report.study import option_words
from judge.studies.alpha_plan import WANTED_ALPHA, AlphaPlan
from judge.studies.estimates import NONE, Estimate, percent_of
from judge.studies.rated import CONFIDENCE
from judge.studies.rater_plan import WANTED, RaterPlan
from judge.studies.raters import Rater, RaterStudy
from judge.studies.variance import NAMES
from rating import __version__
from rating.sentences import foremost

NAME = "raters"
OPENING = (
    "People rated given pairs of answers. Here is how far they agree with each other and with "
    "themselves, what they are like one by one, and what more ratings would buy."
)
NOTE = (
    "Agreement: with others on the same items. Retest: with oneself, when an item came again with "
    "its sides exchanged. Left: share of choices for a side that are for the left."
)
ACCURACY_NOTE = (
    "By gold: mean and quantiles of Beta(8 + right, 2 + wrong). Without gold: how often a rater "
    "gives an item its class in Dawid and Skene's model, gold items among them."
)
LIMITS = (
    "A preference is no mistake: accuracy without gold is agreement with a common answer, where "
    "there is one, and comes out too high where some items are harder for everybody.",
    "Retest says how steady raters are, not how right.",
    "What is planned holds for items and people like those that were rated.",
)
WORDS = {
    "item": "between items",
    "rater": "between raters",
    "rest": "within: one rater on one item",
    "interaction": "of which taste that a rater keeps",
    "within": "of which noise of the same rater",
}


def write_raters(study: RaterStudy, folder: Path, made: date) -> Path:
    """Write the report in every form into a folder, as `judge.report.files.write_forms`."""
    return write_forms(raters_page(study, made), study.to_dict(), list(rows(study)), folder, NAME)


def raters_page(study: RaterStudy, made: date) -> Page:
    """Say all that the report says, in its order."""
    headline, *rest = study.sentences or ("Too little is rated to say anything.",)
    more = [_accuracy_table(study), _variance_table(study)]
    if study.by_confidence:
        more.append(_confidence_table(study))
    if study.plan is not None:
        more.append(_plan_table(study.plan))
    if study.alpha_plan is not None:
        more.append(_alpha_table(study.alpha_plan))
    return Page(
        title="What are the raters of this study like?",
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
            Section("Limits", points=(*foremost(study.warnings), *LIMITS)),
            Section("To make this again", code=command(study)),
        ),
        made=made,
        version=__version__,
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
        note="Scores of 1, a half for a tie, and 0. Intervals are for other prompts and raters.",
    )


def _confidence_table(study: RaterStudy) -> Table:
    return Table.of(
        ("Confidence", "Agreement with others", "Pairs"),
        {
            CONFIDENCE[of]: (percent_of(one), f"{one.n:,}")
            for of, one in study.by_confidence.items()
        },
        note="Pairs of a choice of this confidence with each other choice of its item.",
    )


def _plan_table(plan: RaterPlan) -> Table:
    wanted = f"±{100 * plan.enough.wanted:g}"
    return Table.of(
        (
            "Ratings an item",
            f"Half-width, {plan.n_items:,} items",
            f"Items for {wanted}",
            f"Ratings for {wanted}",
        ),
        {
            str(one.each): (
                f"±{100 * one.half_width:.1f}",
                NONE if one.items is None else f"{one.items:,}",
                NONE if one.ratings is None else f"{one.ratings:,}",
            )
            for one in plan.designs
        },
        note=(
            "Of the share of side A, in points of a per cent, as is to be expected by as many "
            f"people as now ({plan.raters:.1f} equally busy ones)."
        ),
    )


def _alpha_table(plan: AlphaPlan) -> Table:
    wanted = f"±{plan.enough.wanted:g}"
    return Table.of(
        (
            "For alpha, each",
            f"Alpha, {plan.n_items:,} items",
            f"Items for {wanted}",
            f"Ratings for {wanted}",
        ),
        {
            str(one.each): (f"±{one.half_width:.2f}", f"{one.items:,}", f"{one.ratings:,}")
            for one in plan.designs
        },
        note="Half-width of Krippendorff's alpha, as is to be expected of these raters.",
    )


def rows(study: RaterStudy) -> Iterator[dict[str, Any]]:
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


def command(study: RaterStudy) -> str:
    """Write the command that makes this report."""
    words = ["arena", "study", "raters", *map(str, study.source.paths)]
    if study.wanted != WANTED:
        words += ["--until", f"{study.wanted:g}"]
    if study.alpha_plan is not None and study.alpha_plan.enough.wanted != WANTED_ALPHA:
        words += ["--until-alpha", f"{study.alpha_plan.enough.wanted:g}"]
    words += study.options.words()
    words += option_words(study.source)
    return shlex.join([*words, "--out", NAME])
