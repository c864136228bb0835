"""Reports on studies that compare judges with people.

`write_report` writes a study as one HTML file, and in formats for other programs beside it;
`write_judges` the leaderboard of judges. Sections on agreement are in `judge.report.page`; those
on boards, prediction-powered ratings and the next votes are here.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from judge.methods import PUBLISHED, published
from judge.report.page import (
    PEOPLE,
    Answer,
    Example,
    Figure,
    Page,
    Section,
    Tone,
    against_section,
    agreement_section,
    bias_section,
    calibration_section,
    chance_section,
    group_section,
    lead_table,
    licence_section,
    outcomes_section,
    parts_section,
    ties_section,
    write_forms,
)
from judge.report.plots import Mark, scatter, spanning
from judge.studies.alternative import ASSUMPTION
from judge.studies.boards import FEWEST_ITEMS, KINDS, NOISE_FREED, from_influence
from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.estimates import (
    NONE,
    Estimate,
    counts,
    joined,
    minus,
    number_of,
    percent,
    percent_of,
    points_of,
)
from judge.studies.gates import MIN_CASES, MIN_PROMPTS, RATERS, Verdict
from judge.studies.one_judge import JudgeStudy, Study, leaderboard
from judge.studies.plan import Plan
from judge.studies.powered import PoweredRatings
from judge.studies.rows import RowTexts, read_texts
from rating.outcome import of_sides
from rating.sentences import foremost, plural
from rating.tables import formats
from rating.tables.files import Files
from rating.tables.formats import Table
from rating.typing import Floats
from rating.variants import POINTS_PER_NAT, to_points

# Boards, powered ratings and next votes


SEND = "send.csv"

MOST_PAIRS = 8


Judges = Sequence[JudgeStudy]
Contests = Mapping[tuple[str, str], Mapping[str, Estimate]]


def _board_section(judges: Judges, contests: Contests) -> Section:
    """Compare the rankings with people's, and judges by them."""
    known = [(judge.name, judge.compared) for judge in judges if judge.compared is not None]
    comparisons = [compared for _, compared in known]
    rows = {
        **{
            f"{kind.title()}{words}": [
                number_of(one.figures[kind + suffix]) for one in comparisons
            ]
            for words, suffix in (("", ""), (", disattenuated", NOISE_FREED))
            for kind in KINDS
        },
        **{
            title: [write(one.separability["overlap"][name]) for one in comparisons]
            for title, name, write in (
                ("Pairs separated by people", "separated_by_reference", percent),
                ("Pairs separated by the judge", "separated", percent),
                (
                    "Pairs separated by people: also by the judge",
                    "separated_of_reference",
                    percent,
                ),
                ("Agreement on pairs that both separate", "agreement_of_separated", _two),
                ("Agreement over all pairs", "agreement_over_all", _two),
            )
        },
        "Brier score of the order": [_two(one.separability["order_brier"]) for one in comparisons],
    }
    table = Table.of(
        ("Ratings by judge and people", *(name for name, _ in known)),
        rows,
        note=(
            "Correlations of the ratings by the judge with those by people, where 1 is the same "
            "order (Pearson: a linear relation): as observed, and disattenuated, that is "
            "corrected for the noise in both. Brier score: of the judge's probability that one "
            "of two models is ahead, against people's order. Intervals include the noise of "
            "both ratings; models are taken as given. A pair counts as separated if the intervals "
            "of its two ratings above do not overlap (Arena-Hard's conservative rule). Agreement "
            "on pairs that both separate: the share with the same order. Over all pairs, a pair "
            "counts 1 if both order it alike, −1 if in opposite ways, and 0 if either does not "
            "separate it. In the JSON, left_out lists the pairs that people do not separate."
        ),
    )
    more = [_contest_table(contests)] if contests else []
    more += _ranking_tables(judges)
    return Section("Agreement of the rankings", (), table, more=tuple(more))


def _ratings_section(judges: Judges, level: float) -> Section:
    """Draw the ratings by people and by each judge, with both intervals."""
    figures = (_board_figure(judge, level) for judge in judges)
    return Section("Ratings by people and judge", figures=tuple(filter(None, figures)))


def _ranking_tables(judges: Judges) -> list[Table]:
    """Describe how far judges widen gaps between models, and whom they favour."""
    known = {judge.name: judge.ranking for judge in judges if judge.ranking is not None}
    if not known:
        return []
    models = dict.fromkeys(model for one in known.values() for model in one.bias)
    blank = Estimate(None, None, None, 0)
    rows = {
        "Decisiveness": [number_of(one.decisiveness) for one in known.values()],
        "Bias, spread over models": [number_of(one.bias_sd) for one in known.values()],
        "Bias, spread without noise": [_two(one.bias_sd_noise_freed) for one in known.values()],
        **{
            f"Bias for {model}": [number_of(one.bias.get(model, blank)) for one in known.values()]
            for model in models
        },
        "Pairs of models": [f"{one.n_pairs:,}" for one in known.values()],
    }
    return [
        Table.of(
            ("From pairwise win rates", *known),
            rows,
            note=(
                "From win rates in pairs of models, by judge and by people. Decisiveness: above "
                "1, the judge makes gaps between models wider than people do; below 1, narrower. "
                "Bias: what the judge adds to a model's win rate, decisiveness apart, averaged "
                "over opponents. Its standard deviation (spread) is inflated by sampling "
                f"error; 'without noise' corrects this. Pairs with at least {FEWEST_ITEMS} items."
            ),
        )
    ]


def _contest_table(contests: Contests) -> Table:
    return Table.of(
        ("Difference in correlation with people's ranking", *map(str.title, KINDS)),
        {
            f"{one} minus {other}": [number_of(gap[kind]) for kind in KINDS]
            for (one, other), gap in contests.items()
        },
        note="Observed, paired by prompt: an interval with 0 does not show a difference.",
    )


def _two(value: float | None) -> str:
    return NONE if value is None else minus(f"{value:.2f}")


def _board_figure(judge: JudgeStudy, level: float) -> Figure | None:
    if judge.boards is None or judge.compared is None or len(judge.compared.models) < 2:
        return None
    names = judge.compared.models
    people, own = (
        [
            Mark(kind, value, one.lower, one.upper)
            for value, pull in zip(to_points(theta).tolist(), influence.T, strict=True)
            for one in [from_influence(value, POINTS_PER_NAT * pull, n=board.n, level=level)]
        ]
        for kind, board in zip(("people", "judge"), judge.boards, strict=True)
        for theta, influence in [board.of_models(names)]
    )
    axes = [
        spanning(
            [end for mark in marks for end in mark.ends], f"Rating by {who}", "{:,.0f}".format
        )
        for marks, who in ((people, "people (points)"), (own, "the judge (points)"))
    ]
    points = [*zip(names, people, own, strict=True)]
    svg = scatter(points, *axes, title=f"Ratings by people and by {judge.name}")
    tau = judge.compared.figures["kendall"]
    return Figure(
        svg,
        f"{judge.name}: {plural(len(names), 'model')}, Kendall {number_of(tau)}. On the dashed "
        f"line both ratings are equal. Lines: {100 * level:g}% intervals.",
    )


def _powered_section(judges: Judges, level: float) -> Section:
    """Describe what the judge's verdicts add to the votes."""
    known = [(judge.name, judge.powered) for judge in judges if judge.powered is not None]
    paragraphs = [_gain(name, powered) for name, powered in known]
    paragraphs += dict.fromkeys(powered.assumption for _, powered in known)
    helped = [(name, powered) for name, powered in known if powered.judge_weight > 0]
    tables = tuple(_powered_table(name, powered, level) for name, powered in helped)
    return Section("Prediction-powered ratings", tuple(paragraphs), more=tables)


def _gain(name: str, powered: PoweredRatings) -> str:
    if powered.judge_weight == 0:
        return f"The verdicts of {name} add nothing to {plural(powered.n, 'item')} with votes."
    if powered.gain.value is None:
        return (
            f"How many votes the verdicts of {name} save beside {plural(powered.n, 'item')} with "
            f"votes is unknown (weight of the judge {powered.judge_weight:.2f})."
        )
    more = f", also on {plural(powered.n_judged, 'further item')}" if powered.n_judged else ""
    return (
        f"With verdicts of {name}{more}, {plural(powered.n, 'voted item')} are worth "
        f"{number_of(powered.gain)} times their number; the verdicts have weight "
        f"{powered.judge_weight:.2f} (at most 1)."
    )


def _powered_table(name: str, powered: PoweredRatings, level: float) -> Table:
    columns = []
    for ratings in (powered.human_only, powered.ratings):
        ends = [to_points(x) for x in (ratings.theta, ratings.lower, ratings.upper)]
        columns.append([_rating(*row) for row in zip(*ends, strict=True)])
    order = np.argsort(-powered.ratings.theta, kind="stable").tolist()
    return Table(
        head=("Model", "By votes alone", f"With {name}"),
        rows=tuple((powered.models[i], *(column[i] for column in columns)) for i in order),
        note=(
            "Points around 1000, each item of equal weight; arena rate gives votes equal weight. "
            f"{100 * level:g}% intervals are clustered by voter and prompt; none if the effective "
            "sample size is below two voters or prompts."
        ),
    )


def _rating(value: float, lower: float, upper: float) -> str:
    if np.isnan(lower):
        return f"{value:,.0f} ({NONE})"
    return f"{value:,.0f} ({lower:,.0f}–{upper:,.0f})"


def _plan_section(judges: Judges) -> Section:
    """Describe how many votes to buy beside each judge, and on which items."""
    known = [(judge.name, judge.plan) for judge in judges if judge.plan is not None]
    paragraphs = tuple(
        f"With {name}, ratings have intervals of ±{plan.half_width:.0f} points (root mean "
        "square). "
        + (
            f"{SEND}, beside this report, lists {plural(len(plan.sent), 'item')} to vote on next."
            if plan.sent
            else "All judged items have votes; judge more items first."
        )
        for name, plan in known
    )
    tables = [_purchases(name, plan) for name, plan in known if plan.purchases]
    tables += [_sent(name, plan) for name, plan in known if plan.sent]
    return Section("Sample-size planning", paragraphs, more=tuple(tables))


def _purchases(name: str, plan: Plan) -> Table:
    return Table(
        head=(f"Half-width (judge: {name})", "In all", "Further", "In all, without the judge"),
        rows=tuple(
            (
                f"±{width:g} points",
                f"{bought.votes:,}" if bought.enough_items else NONE,
                f"{bought.more:,}" if bought.enough_items else NONE,
                f"{bought.without_judge:,}",
            )
            for width, bought in plan.purchases.items()
        ),
        note=(
            "Voted items needed (in all; further) for a row's half-width (root mean square over "
            "models), if voters and prompts grow in proportion. A dash: this needs more "
            "items than are judged."
        ),
    )


def _sent(name: str, plan: Plan) -> Table:
    shown = list(plan.by_pair.items())[:MOST_PAIRS]
    return Table(
        head=(f"Pair (judge: {name})", f"Share of {SEND}", "Share of items without votes"),
        rows=tuple(
            (f"{a} and {b}", percent(share), percent(there)) for (a, b), (share, there) in shown
        ),
        note=(
            f"The most frequent pairs in {SEND}, which favours items that improve ratings more. "
            f"For ratings in Python from votes on {SEND}, judge.studies.powered takes its column "
            '"overall" (chance of being drawn) as "probability".'
        ),
    )


def _send_rows(data: StudyData, judges: Judges) -> Iterator[dict[str, Any]]:
    """Give the items to send to people, with the row of each in the file of verdicts."""
    for judge in judges:
        for item, overall in ({} if judge.plan is None else judge.plan.sent).items():
            a, b = (data.items.models[model] for model in data.items.pairs[item])
            yield {
                "judge": judge.name,
                "verdict_row": int(data.source_rows[1][item]),
                "prompt_id": data.prompts[data.items.prompt[item]],
                **dict(zip(of_sides("model"), (a, b), strict=True)),
                "overall": overall,
            }


def _win_rate_section(judges: Judges, level: float) -> Section:
    """Give the judge's win rates, corrected for its errors where people voted."""
    known = [judge for judge in judges if judge.win_rates]
    tables = tuple(
        Table(
            head=(f"Wins (judge: {judge.name})", "By the judge", "Corrected", "By people"),
            rows=tuple(
                (
                    rate.model,
                    NONE if rate.corrected is None else percent(rate.by_judge),
                    NONE if rate.corrected is None else percent_of(rate.corrected),
                    percent(rate.by_people),
                )
                for rate in judge.win_rates
            ),
            note=(
                "Ties excluded. By people: from votes, on voted items; by the judge and "
                "corrected: on all judged items. Corrected (Rogan and Gladen), with "
                f"{100 * level:g}% intervals clustered by prompt that include the uncertainty of "
                "the judge's estimated errors."
            ),
        )
        for judge in known
    )
    why = dict.fromkeys(
        f"{judge.name}, {rate.model}: {rate.why}"
        for judge in known
        for rate in judge.win_rates
        if rate.why
    )
    return Section(
        "Win rates corrected for the judge's errors", (ASSUMPTION,), more=tables, points=tuple(why)
    )


# Examples


MOST_A_PROMPT = 2


Differing = tuple[int, tuple[int, int, int], tuple[int, int, int]]
"""An item, and how many votes, and verdicts, are for side A, a tie, and side B."""


def differing(data: StudyData, judge: JudgeVerdicts, n: int = 6) -> list[Differing]:
    """Give the items on which the judge stands furthest from most people, most votes first.

    The distance is that of the mean labels, weighed by the root of the votes beyond one: a vote
    that stands alone says little of people. Of a prompt at most `MOST_A_PROMPT` are given.
    """
    votes, verdicts = (counts(data.items, rows) for rows in (data.people, judge.verdicts))
    sizes = votes.sum(axis=1), verdicts.sum(axis=1)
    both = (sizes[0] > 0) & (sizes[1] > 0)
    apart = np.zeros(data.items.n)
    apart[both] = np.abs(_mean(votes[both]) - _mean(verdicts[both]))
    order = np.argsort(-apart * np.sqrt(np.maximum(sizes[0] - 0.5, 0)), kind="stable")
    chosen: list[Differing] = []
    of_prompt: dict[int, int] = {}
    for item in order[: 50 * n].tolist():
        prompt = int(data.items.prompt[item])
        if len(chosen) == n or apart[item] < 1:
            break
        if of_prompt.get(prompt, 0) < MOST_A_PROMPT:
            of_prompt[prompt] = of_prompt.get(prompt, 0) + 1
            chosen.append((item, _by_side(votes[item]), _by_side(verdicts[item])))
    return chosen


def _mean(table: Floats) -> Floats:
    return np.asarray((table[:, 2] - table[:, 0]) / table.sum(axis=1))


def _by_side(row: Floats) -> tuple[int, int, int]:
    b, tie, a = (int(n) for n in row)
    return a, tie, b


# Reports


NAME = "report"
N_EXAMPLES = 6
_OF_TEST = (
    "winning_rate", "advantage", "margin", "coin", "longest",
    "person", "person_passed", "majority", "decides_at",
)  # fmt: skip
OPENING = (
    "A judge is a model that chooses the better of two answers. This report compares its "
    "verdicts with votes of people on the same answers."
)
TONES: Mapping[Verdict, Tone] = {"yes": "good", "no": "poor", "inconclusive": "fair"}
JUDGES_NAME = "judges"
JUDGES_OPENING = (
    "Each judge's verdicts are compared with votes of people on the same items. Judges are "
    "ordered by agreement with ties, as a third answer; a judge with a verdict of no is no "
    "substitute for people, whatever its place."
)


def write_report(study: Study, folder: Path, made: date) -> Path:
    """Write the report in every form into a folder, which is made where it is not there.

    Returns
    -------
    Path
        The page to open; Markdown, LaTeX, JSON and Parquet files are next to it.

    Raises
    ------
    DataError
        If the folder cannot be written.
    """
    whole = write_forms(report_page(study, made), study.to_dict(), list(rows(study)), folder, NAME)
    (folder / SEND).unlink(missing_ok=True)  # of an earlier report
    if sent := list(_send_rows(study.data, study.judges)):
        formats.write_text(formats.as_csv(sent), folder / SEND)
    return whole


def write_judges(study: Study, folder: Path, made: date) -> Path:
    """Write the leaderboard of judges in every form into a folder, as `write_forms`."""
    page = judges_page(study, made)
    return write_forms(page, leaderboard_json(study), judge_rows(study), folder, JUDGES_NAME)


def judge_rows(study: Study) -> list[dict[str, Any]]:
    """List the figures of the leaderboard, a row per judge, or pair of judges, and figure."""
    against = {} if study.against is None else study.against.to_dict()
    figures = [
        ((row["judge"], None), name, value)
        for row in leaderboard(study)
        for name, value in row.items()
        if name != "judge"
    ]
    figures += [
        ((pair["first"], pair["second"]), f"difference.{name}", value)
        for pair in against.get("pairs", ())
        for name, value in pair.items()
        if name not in ("first", "second")
    ]
    figures += [
        ((judge, None), "usd_per_point_above_coin", costs["usd_per_point_above_coin"])
        for judge, costs in against.get("costs", {}).items()
    ]
    rows = []
    for (judge, other), name, value in figures:
        of = dict.fromkeys(("value", "lower", "upper", "n", "text"))
        if isinstance(value, dict):
            of |= value
        else:
            of |= {"text": value} if isinstance(value, str) else {"value": value}
        rows.append({"judge": judge, "against": other, "figure": name} | of)
    return rows


def leaderboard_json(study: Study) -> dict[str, Any]:
    """Give the plain values that ``arena study judges`` writes; what is not known is null."""
    return {
        "judges": leaderboard(study),
        "against_each_other": study.against and study.against.to_dict(),
        "warnings": list(study.warnings),
    }


def judges_page(study: Study, made: date) -> Page:
    """Give the leaderboard of judges, and the comparison of each two."""
    against = [] if study.against is None else [against_section(study.against)]
    more = () if study.against is None else (lead_table(study.against),)
    return Page(
        title="Leaderboard of judges",
        opening=JUDGES_OPENING,
        about=_about(study),
        answers=(),
        first=Section("Judges", more=(*_leaderboard_tables(study), *more)),
        sections=(
            *against,
            _limits(study),
            Section("Reproduce this report", code=_command(study, "judges")),
        ),
        made=made,
    )


def _leaderboard_tables(study: Study) -> Iterator[Table]:
    """Give a row per judge, best first: agreement with people, then habits, noise and costs."""
    rows = leaderboard(study)
    most = max(rows, key=lambda row: row["items"])

    def cell(row: Mapping[str, Any], name: str, write: Callable[..., str]) -> str:
        value = row[name]
        known = Estimate(**value) if isinstance(value, dict) else value
        return NONE if value is None else write(known)

    agreed: tuple[tuple[str, Callable[..., str]], ...] = (
        ("agreement_with_ties", percent_of),
        ("agreement", lambda one: f"{percent_of(one)}, n = {one.n:,}"),
        ("kappa", number_of),
    )
    yield Table(
        ("Agreement with people", "With ties", "Ties excluded", "Kappa", "Kendall", "Items"),
        (
            *(
                (
                    row["judge"],
                    *(cell(row, *one) for one in (*agreed, ("kendall", number_of))),
                    f"{row['items']:,}",
                )
                for row in rows
            ),
            (
                PEOPLE,
                *(cell(most, f"human_{name}", write) for name, write in agreed),
                NONE,
                f"{most['items']:,}",
            ),
        ),
        note=(
            f"Intervals ({100 * study.options.level:g}%) resample prompts and, if votes name "
            "their voters, people. Agreement with a person: with ties as a third answer (judges "
            "are ordered by its lower limit), and on the n pairs where both prefer a side. "
            "Kendall: rank "
            "correlation of ratings by the judge with those by people. Items: with a vote and a "
            "verdict. Two people: on the items of the judge with most. Judges with other items "
            "are compared on shared items only, under Comparison of judges."
        ),
    )
    habits: dict[str, tuple[str, Callable[..., str]]] = {
        "Can replace people": ("verdict", str),
        "Same in both orders": ("consistency", percent_of),
        "Prefers longer": ("prefers_longer", percent_of),
        "Prefers lists": ("prefers_lists", percent_of),
        "Rerun variance": ("rerun_variance", partial(number_of, digits=3)),
        "Own model, points": ("own_model_bias", points_of),
        "Unparsed": ("unparsed", percent),
        "$ per 1,000": ("usd_per_thousand", "{:,.3g}".format),
        "Seconds per 1,000": ("seconds_per_thousand", "{:,.0f}".format),
    }
    known = {
        title: one for title, one in habits.items() if any(row[one[0]] is not None for row in rows)
    }
    by_people = {
        title: cell(most, name, percent_of)
        for title, name in (
            ("Prefers longer", "people_prefer_longer"),
            ("Prefers lists", "people_prefer_lists"),
        )
        if title in known
    }
    yield Table(
        ("Judge", *known),
        (
            *(
                (row["judge"], row["verdict"] or row["why"], *cells[1:])
                for row in rows
                for cells in [[cell(row, *one) for one in known.values()]]
            ),
            *([(PEOPLE, *(by_people.get(title, NONE) for title in known))] if by_people else []),
        ),
        note=(
            "Prefers longer: of verdicts for a side, the share for the longer answer; lists: for "
            "the answer with a list, where only one has one. Rerun variance: of the score of an "
            "answer (1, 1/2, 0) when the judge is asked the same again; 0.25 is a coin. Own "
            "model: rating points beyond what its ratings of other models predict. Columns "
            "without any figure are omitted; the JSON states why."
        ),
    )


def report_page(study: Study, made: date) -> Page:
    """Say all that a report says, in its order."""
    judges, level = study.judges, study.options.level
    sections = [] if study.licence is None else [licence_section(study.licence)]
    sections += [outcomes_section(study), _ratings_section(judges, level)]
    if any(judge.biases is not None for judge in judges):
        sections.append(bias_section(judges, level))
    n_open = len(sections)
    sections += [] if study.against is None else [against_section(study.against)]
    sections += [chance_section(judges), parts_section(study), ties_section(judges)]
    if study.options.by is not None:
        sections.append(group_section(judges, study.options.by))
    if any(judge.calibration is not None for judge in judges):
        sections.append(calibration_section(judges, level))
    if any(judge.compared is not None for judge in judges):
        sections.append(_board_section(judges, study.contests))
    sections += [_examples(study, judge) for judge in study.data.judges]
    if any(judge.powered is not None for judge in judges):
        sections.append(_powered_section(judges, level))
    if any(judge.plan is not None for judge in judges):
        sections.append(_plan_section(judges))
    if any(judge.win_rates for judge in judges):
        sections.append(_win_rate_section(judges, level))
    sections += [_data(study), _rules(study), _limits(study)]
    sections.append(Section("Reproduce this report", code=_command(study)))
    sections[n_open:] = [replace(one, folded=True) for one in sections[n_open:]]
    named = joined([judge.name for judge in judges])
    page = Page(
        title=f"Can {named} replace human raters?",
        opening=OPENING,
        about=_about(study),
        answers=tuple(_answer(judge, shown=len(judges) == 1) for judge in judges),
        first=_first(study),
        sections=tuple(section for section in sections if not section.is_empty),
        made=made,
    )
    return page.answered() if all(j.evidence.n_prompts < MIN_PROMPTS for j in judges) else page


def _first(study: Study) -> Section:
    """Give the agreement of all judges; of several, first their leaderboard."""
    section = agreement_section(study.judges, study.options.level)
    if study.against is None:
        return section
    first, *more = _leaderboard_tables(study)
    assert section.table is not None
    aside = (section.table, *section.aside, lead_table(study.against))
    return replace(
        section, title="Leaderboard of judges", table=first, more=tuple(more), aside=aside
    )


def _answer(judge: JudgeStudy, *, shown: int) -> Answer:
    """Put the verdict on a judge on the page."""
    answer = judge.first_answer
    return Answer(judge.name, TONES[answer.verdict], answer.headline, answer.reasons[1:], shown)


def rows(study: Study) -> Iterator[dict[str, Any]]:
    """Give every figure of a study as a row: judge, group, name, value, ends, n and text.

    Text is of the verdict alone, which has no value; its reasons are one text.
    """
    plain = study.to_dict()
    judges = plain.get("judges") or {study.judges[0].name: plain}
    nothing = dict.fromkeys(("value", "lower", "upper", "n", "text"))
    for judge, figures in judges.items():
        for group, part in [("", figures), *figures["groups"].items()]:
            named = {"judge": judge, "group": group}
            reasons = " ".join(part["reasons"])
            texts = {"verdict": part["verdict"], "reasons": reasons}
            old = {"verdict": part["first_answer"]["verdict"], "reasons": reasons}
            texts |= {f"first_answer.{name}": text for name, text in old.items()}
            for name, text in texts.items():
                yield named | {"figure": name} | nothing | {"text": text}
            for one in part["favouritism"]["models"]:
                of = {key: one[key] for key in ("value", "lower", "upper", "n")}
                yield named | {"figure": f"favouritism.{one['model']}"} | nothing | of
            for name, figure in _figures(part):
                value = figure.get("rate", figure.get("value"))
                ends = {end: figure[end] for end in ("lower", "upper")}
                of = {"value": value, **ends, "n": figure.get("n")}
                yield named | {"figure": name} | nothing | of
            tested = part["alternative"] or {}
            n = tested.get("people_tested")
            for name in _OF_TEST:
                value = {"value": tested.get(name), "n": n}
                yield named | {"figure": f"alternative.{name}"} | nothing | value


def _figures(part: dict[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, figure in part.items():
        if isinstance(figure, dict) and name != "groups":
            if "lower" in figure:
                yield before + name, figure
            else:
                yield from _figures(figure, f"{before}{name}.")


def _about(study: Study) -> dict[str, str]:
    """Count what has a vote and a verdict of any judge."""
    data = study.data
    judged = np.concatenate([judge.verdicts.item for judge in data.judges])
    votes = data.people.only(np.isin(data.people.item, judged))
    items = np.unique(votes.item)
    n_prompts, n_voters = (len(np.unique(x)) for x in (data.items.prompt[items], votes.rater))
    voters = f" by {plural(n_voters, 'person')}" if data.voters_known else ""
    voters = voters.replace("persons", "people")
    return {
        "Votes": f"{plural(votes.n, 'vote')}{voters}",
        "Items": f"{plural(len(items), 'item')} of {plural(n_prompts, 'prompt')}",
        "Models": f"{len(study.data.items.models):,}",
        "Judges": joined([row["judge"] for row in leaderboard(study)]),
    }


def _examples(study: Study, judge: JudgeVerdicts) -> Section:
    chosen = differing(study.data, judge, N_EXAMPLES)
    texts = [
        read_texts(source, [int(own[item]) for item, _, _ in chosen if own[item] >= 0])
        for source, own in zip((study.votes, study.verdicts), study.data.source_rows, strict=True)
    ]
    examples = tuple(_example(study, one, texts) for one in chosen)
    opening = (
        "Items with the largest differences: read some before you rely on any figure."
        if examples
        else "On no item does the judge prefer one side and most people the other, or a tie."
    )
    title = f"Largest differences between {judge.name} and people"
    return Section(title, (opening,), examples=examples)


def _example(study: Study, one: Differing, texts: list[dict[int, RowTexts]]) -> Example:
    data, (item, votes, verdicts) = study.data, one
    a, b = (data.items.models[model] for model in data.items.pairs[item])
    prompt = data.prompts[data.items.prompt[item]]
    rows = [
        of_rows[int(numbers[item])]
        for of_rows, numbers in zip(texts, data.source_rows, strict=True)
        if int(numbers[item]) in of_rows
    ]
    sides = _responses(rows, a)
    if study.outputs is not None:
        sides = study.outputs.of(data.items, data.prompts, item)
    asked = study.texts.get(prompt) or next((row.prompt for row in rows if row.prompt), None)
    reason = next((row.reason for row in rows if row.reason), None)
    checklist = next((row.checklist for row in rows if row.checklist), None)
    written = "\n\n".join(text for text in (checklist, reason) if text)
    return Example(
        title=f"{a} and {b}" + (f", prompt {prompt}" if prompt else ""),
        prompt=asked,
        answers=((a, sides[0]), (b, sides[1])),
        people=_counts(votes, a, b),
        judge=_counts(verdicts, a, b),
        reason=written or None,
    )


def _responses(rows: list[RowTexts], a: str) -> list[str | None]:
    for row in rows:
        if row.text_a is not None or row.text_b is not None:
            sides = [row.text_a, row.text_b]
            return sides if row.model == a else sides[::-1]
    return [None, None]


def _counts(numbers: tuple[int, int, int], a: str, b: str) -> str:
    parts = [f"{n} for {name}" for n, name in zip(numbers, (a, "a tie", b), strict=True) if n]
    return f"{', '.join(parts)}."


def _data(study: Study) -> Section:
    counted: dict[str, list[int | None]] = {
        "Items with votes and a verdict": [judge.n_items for judge in study.judges],
        "Votes on them": [judge.n_votes for judge in study.judges],
        "People": [judge.n_voters for judge in study.judges],
        "Prompts": [judge.evidence.n_prompts for judge in study.judges],
        "Unparsed verdicts": [judge.n_unread for judge in study.judges],
    }
    table = Table.of(
        ("Data", *(judge.name for judge in study.judges)),
        {
            name: ["not known" if n is None else f"{n:,}" for n in numbers]
            for name, numbers in counted.items()
        },
        f"Votes: {study.votes}. Verdicts: {study.verdicts}. Matched by {study.data.keyed_by}. "
        "An unparsed verdict is in no figure, and is not a tie.",
    )
    return Section("The data", table=table)


def _rules(study: Study) -> Section:
    options = study.options
    compared = {
        "all": "Every verdict is compared with every vote of its item.",
        "majority": ("Verdicts are compared with the majority of each item, or a tie."),
    }[options.pairs]
    voters = "" if options.voters is None else f" Only voters like {options.voters} count."
    points = (
        f"{compared}{voters} People are compared with people over all pairs of votes by "
        "different people on the same items.",
        "All ties count as the same. Sides are aligned so that an item has the same side "
        "A in votes and verdicts.",
        "The margin of the alternative-annotator test is that for "
        f"{RATERS[options.raters]} (--raters {options.raters}).",
        "A rule that does not read the answers is omitted if rule, judge and a vote all prefer a "
        f"side on fewer than {MIN_CASES} items.",
        f"Intervals: {100 * options.level:g}%. Unless a table says otherwise, prompts are "
        f"resampled with replacement ({options.rounds:,} times, seed {options.seed}), because "
        "observations on one prompt are correlated. Intervals of agreement also allow for "
        "people, if votes name them. An agreement of 0% or 100% has the Clopper-Pearson "
        "interval with the effective number of prompts as sample size. Other figures without "
        "variation have no interval.",
        *(_asked(judge) for judge in study.data.judges),
        f"Models: {joined(study.data.items.models)}.",
    )
    return Section("Rules of the comparison", points=points)


def _asked(judge: JudgeVerdicts) -> str:
    """Describe how a judge was asked, as far as the file of verdicts does."""
    if not judge.methods:
        return (
            f"The file of verdicts does not state how {judge.name} was asked: ask the "
            "file's author for instructions and settings."
        )
    methods = [
        f"{method}{_template(method, templates)}" for method, templates in judge.methods.items()
    ]
    return f"{judge.name} was asked by the method {joined(methods)}."


def _template(method: str, templates: Sequence[str]) -> str:
    """Name a method's templates: those of the verdicts, else that of this version."""
    if templates:
        return f" (template {joined(templates)})"
    if method not in PUBLISHED:
        return ""
    return f" (template {published(method).template.hash} in this version)"


def _limits(study: Study) -> Section:
    always = (
        "Agreement with these people on these prompts is weak evidence for other people, "
        "languages, tasks or models.",
        "People can be wrong together: agreement is not truth.",
        "Agreement is on items that were voted on: kinds of items that people voted on more often "
        "have more weight.",
    )
    return Section("Limits", points=(*foremost(study.warnings, None), *always))


def option_words(files: Files) -> Iterator[str]:
    """Give the options that state what is read of files, each as one word."""
    if files.where is not None:
        yield f"--where={files.where}"
    yield from (f"--column={ours}={theirs}" for ours, theirs in files.columns)
    yield from (f"--label={theirs}={ours}" for theirs, ours in files.labels)


def _command(study: Study, name: str = "judge") -> str:
    """Write the command that makes this report, without its form."""
    words = ["arena", "study", name, str(study.votes), str(study.verdicts), *study.options.words()]
    if (licence := study.licence) is not None:
        words += ["--certificate", "judge.toml", "--margin", f"{licence.margin:g}"]
        words += ["--until", licence.until.isoformat()]
        words += ["--votes-a-year", str(licence.votes_a_year)]
    sources = [source for source in (study.votes, study.verdicts) if isinstance(source, Files)]
    words += dict.fromkeys(word for files in sources for word in option_words(files))
    return shlex.join(words)
