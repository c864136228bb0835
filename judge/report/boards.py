"""The parts of a report on ratings: two boards compared, and people's with the judge's help."""

from collections.abc import Mapping, Sequence

import numpy as np

from judge.report.page import Figure, Section, Table
from judge.report.plots import Mark, scatter, spanning
from judge.studies.boards import KINDS, NOISE_FREED, Contest
from judge.studies.one_judge import JudgeStudy
from judge.studies.powered_ratings import PoweredRatings
from judge.studies.words import NONE, minus, number_of, percent, plural
from rating.scale import to_points

Judges = Sequence[JudgeStudy]


def board_section(judges: Judges, contests: Mapping[tuple[str, str], Contest]) -> Section:
    """Compare the rankings with people's, and judges by them."""
    known = [(judge.name, judge.compared) for judge in judges if judge.compared is not None]
    found = [compared for _, compared in known]
    rows = {
        **{
            f"{kind.title()}{said}": [number_of(getattr(one, kind + suffix)) for one in found]
            for said, suffix in (("", ""), (", noise-freed", NOISE_FREED))
            for kind in KINDS
        },
        "Pairs that people separate": [percent(one.separated_by_people) for one in found],
        "Pairs that the judge separates": [percent(one.separated_by_judge) for one in found],
        "Agreement where both are sure": [_two(one.confident_agreement) for one in found],
        "Brier score of the order": [_two(one.order_brier) for one in found],
    }
    table = Table(
        head=("The two boards", *(name for name, _ in known)),
        rows=tuple((name, *cells) for name, cells in rows.items()),
        note=(
            "Correlations of the ratings by the judge with those by people, 1 for the same order: "
            "first of boards of as many votes and verdicts, then without the noise in both, which "
            "lowers them, as of endless votes. Intervals carry the uncertainty of both boards, "
            "for these models. A pair is "
            "separated where intervals do not overlap. Agreement where both are sure: over the "
            "pairs that people separate, 1 where the judge does too, −1 where it has them the "
            "other way round, 0 where it cannot tell."
        ),
    )
    figures = tuple(figure for judge in judges if (figure := _board_figure(judge)) is not None)
    more = (_contest_table(contests),) if contests else ()
    return Section("Whether it ranks models as people do", (), table, figures, more)


def _contest_table(contests: Mapping[tuple[str, str], Contest]) -> Table:
    return Table(
        head=("Closer to people's ranking", "Spearman", "Kendall", "Pearson"),
        rows=tuple(
            (
                f"{one} less {other}",
                *map(number_of, (found.spearman, found.kendall, found.pearson)),
            )
            for (one, other), found in contests.items()
        ),
        note="Differences of correlations with the noise in them, the same prompts drawn for both "
        "judges: an interval that holds 0 shows no lead.",
    )


def _two(value: float | None) -> str:
    return NONE if value is None else minus(f"{value:.2f}")


def _board_figure(judge: JudgeStudy) -> Figure | None:
    if judge.boards is None or judge.compared is None or len(judge.compared.models) < 2:
        return None
    names = judge.compared.models
    people, own = (to_points(board.of_models(names)[0]) for board in judge.boards)
    points = [
        (name, Mark("people", float(x), None, None), Mark("judge", float(y), None, None))
        for name, x, y in zip(names, people, own, strict=True)
    ]
    axes = [
        spanning([float(v) for v in values], f"Rating by {who}", lambda x: f"{x:,.0f}")
        for values, who in ((people, "people (points)"), (own, "the judge (points)"))
    ]
    svg = scatter(points, *axes, title=f"Ratings by people and by {judge.name}")
    return Figure(
        svg,
        f"{judge.name}: {plural(len(names), 'model')}. On the dashed line both ratings are equal; "
        "a judge that is more decided than people spreads models further apart.",
    )


def powered_section(judges: Judges, level: float) -> Section:
    """Say what the judge's verdicts add to the votes."""
    known = [(judge.name, judge.powered) for judge in judges if judge.powered is not None]
    paragraphs = [_gain(name, found) for name, found in known]
    paragraphs += list(dict.fromkeys(found.assumption for _, found in known))
    helped = [(name, found) for name, found in known if found.judge_weight > 0]
    tables = tuple(_powered_table(name, found, level) for name, found in helped)
    return Section("Ratings by people, with the judge's help", tuple(paragraphs), more=tables)


def _gain(name: str, found: PoweredRatings) -> str:
    if found.judge_weight == 0:
        return f"The verdicts of {name} add nothing to {plural(found.n, 'item')} with votes."
    if found.gain.value is None:
        return (
            f"How many votes the verdicts of {name} save beside {plural(found.n, 'item')} with "
            f"votes is not known (weight of the judge {found.judge_weight:.2f})."
        )
    return (
        f"With the verdicts of {name}, {plural(found.n, 'item')} with votes are worth "
        f"{number_of(found.gain)} times as many without (weight of the judge "
        f"{found.judge_weight:.2f}, from {plural(found.n_judged, 'item')} with a verdict and no "
        "vote)."
    )


def _powered_table(name: str, powered: PoweredRatings, level: float) -> Table:
    columns = []
    for found in (powered.human_only, powered.ratings):
        ends = [to_points(x) for x in (found.theta, found.lower, found.upper)]
        columns.append([_rating(*row) for row in zip(*ends, strict=True)])
    order = np.argsort(-powered.ratings.theta, kind="stable").tolist()
    return Table(
        head=("Model", "By votes alone", f"With {name}"),
        rows=tuple((powered.models[i], *(column[i] for column in columns)) for i in order),
        note=f"Points around 1000, with {100 * level:g} % intervals by voter and prompt, and "
        "without one where less than two effective voters, or prompts, stand behind a rating.",
    )


def _rating(value: float, lower: float, upper: float) -> str:
    if np.isnan(lower):
        return f"{value:,.0f} ({NONE})"
    return f"{value:,.0f} ({lower:,.0f}–{upper:,.0f})"
