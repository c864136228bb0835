"""The parts of a report on boards, ratings with a judge's help, and what to vote on next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from judge.report.files import Figure, Section, Table
from judge.report.plots import Mark, scatter, spanning
from judge.studies.boards import Contest
from judge.studies.corrected import ASSUMPTION
from judge.studies.correlations import KINDS, NOISE_FREED
from judge.studies.data import StudyData
from judge.studies.estimates import (
    NONE,
    Estimate,
    minus,
    number_of,
    percent,
    percent_of,
    plural,
)
from judge.studies.one_judge import JudgeStudy
from judge.studies.plan import Plan, Sent
from judge.studies.powered_ratings import PoweredRatings
from judge.studies.system_ranking import FEWEST_ITEMS
from rating.elo import to_points
from rating.outcome import of_sides

SEND = "send.csv"

MOST_PAIRS = 8


Judges = Sequence[JudgeStudy]


def board_section(judges: Judges, contests: Mapping[tuple[str, str], Contest]) -> Section:
    """Compare the rankings with people's, and judges by them."""
    known = [(judge.name, judge.compared) for judge in judges if judge.compared is not None]
    comparisons = [compared for _, compared in known]
    rows = {
        **{
            f"{kind.title()}{words}": [
                number_of(getattr(one, kind + suffix)) for one in comparisons
            ]
            for words, suffix in (("", ""), (", noise-freed", NOISE_FREED))
            for kind in KINDS
        },
        "Pairs that people separate": [
            percent(one.overlap.separated_by_reference) for one in comparisons
        ],
        "Pairs that the judge separates": [percent(one.overlap.separated) for one in comparisons],
        "People's separated pairs that the judge separates": [
            percent(one.overlap.separated_of_reference) for one in comparisons
        ],
        "Agreement on pairs that both separate": [
            _two(one.overlap.agreement_of_separated) for one in comparisons
        ],
        "Agreement over all pairs": [_two(one.overlap.agreement_over_all) for one in comparisons],
        "Brier score of the order": [_two(one.order_brier) for one in comparisons],
    }
    table = Table.of(
        ("The two boards", *(name for name, _ in known)),
        rows,
        note=(
            "Correlations of the ratings by the judge with those by people, 1 for the same order: "
            "first of boards of as many votes and verdicts, then without the noise in both, which "
            "lowers them, as of endless votes. Intervals carry the uncertainty of both boards, "
            "for these models. A pair is "
            "separated where intervals do not overlap. Agreement on pairs that both separate: the "
            "share that both order alike. Over all pairs, a pair counts 1 where both order it "
            "alike, −1 where they order it the opposite way, and 0 where either does not separate "
            "it, as in Arena-Hard's paper. The JSON has the pairs that people do not separate "
            "(left_out)."
        ),
    )
    figures = tuple(figure for judge in judges if (figure := _board_figure(judge)) is not None)
    more = [_contest_table(contests)] if contests else []
    more += _ranking_tables(judges)
    return Section("Whether it ranks models as people do", (), table, figures, tuple(more))


def _ranking_tables(judges: Judges) -> list[Table]:
    """Say how far judges widen gaps between models, and whom they favour."""
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
            ("As a ranker of models", *known),
            rows,
            note=(
                "Win rates over pairs of models, the judge's against people's. Decisiveness: "
                "above 1 the judge makes gaps between models wider than people do, below 1 "
                "narrower. Bias: by how much it lifts a model's win rate beyond that, on average "
                "over opponents; its spread is above 0 by chance alone, so read the one without "
                "noise beside it. Pairs with "
                f"{FEWEST_ITEMS} items or more."
            ),
        )
    ]


def _contest_table(contests: Mapping[tuple[str, str], Contest]) -> Table:
    return Table.of(
        ("Closer to people's ranking", "Spearman", "Kendall", "Pearson"),
        {
            f"{one} less {other}": map(number_of, (gap.spearman, gap.kendall, gap.pearson))
            for (one, other), gap in contests.items()
        },
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
        (name, Mark("people", float(x)), Mark("judge", float(y)))
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
    paragraphs = [_gain(name, powered) for name, powered in known]
    paragraphs += dict.fromkeys(powered.assumption for _, powered in known)
    helped = [(name, powered) for name, powered in known if powered.judge_weight > 0]
    tables = tuple(_powered_table(name, powered, level) for name, powered in helped)
    return Section("Ratings by people, with the judge's help", tuple(paragraphs), more=tables)


def _gain(name: str, powered: PoweredRatings) -> str:
    if powered.judge_weight == 0:
        return f"The verdicts of {name} add nothing to {plural(powered.n, 'item')} with votes."
    if powered.gain.value is None:
        return (
            f"How many votes the verdicts of {name} save beside {plural(powered.n, 'item')} with "
            f"votes is not known (weight of the judge {powered.judge_weight:.2f})."
        )
    return (
        f"With the verdicts of {name}, {plural(powered.n, 'item')} with votes are worth "
        f"{number_of(powered.gain)} times as many without (weight of the judge "
        f"{powered.judge_weight:.2f}, from {plural(powered.n_judged, 'item')} with a verdict and "
        "no vote)."
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
        note=f"Points around 1000, with {100 * level:g} % intervals by voter and prompt, and "
        "without one where less than two effective voters, or prompts, stand behind a rating.",
    )


def _rating(value: float, lower: float, upper: float) -> str:
    if np.isnan(lower):
        return f"{value:,.0f} ({NONE})"
    return f"{value:,.0f} ({lower:,.0f}–{upper:,.0f})"


def plan_section(judges: Judges) -> Section:
    """Say how many votes to buy beside each judge, and on which items."""
    known = [(judge.name, judge.plan) for judge in judges if judge.plan is not None]
    paragraphs = tuple(
        f"With {name}, ratings by people are known to ±{plan.half_width:.0f} points, as a mean "
        f"over the models. {_next(plan.sent)}"
        for name, plan in known
    )
    tables = [_purchases(name, plan) for name, plan in known if plan.purchases]
    tables += [_sent(name, plan.sent) for name, plan in known if plan.sent is not None]
    return Section("How many votes to buy, and where", paragraphs, more=tuple(tables))


def _next(sent: Sent | None) -> str:
    if sent is None:
        return "Every item that it judged has votes: new ones need verdicts first."
    return (
        f"{plural(len(sent.item), 'item')} to vote on next are drawn in {SEND} beside this report."
    )


def _purchases(name: str, plan: Plan) -> Table:
    return Table(
        head=(f"With {name}", "Items to vote on", "Still to come", "Without the judge"),
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
            "Items with a vote that intervals of this half-width take, as a mean over the models, "
            "if votes and verdicts go on as they are, by further voters on further prompts. A "
            "dash: more items than were judged; judge more."
        ),
    )


def _sent(name: str, sent: Sent) -> Table:
    shown = list(sent.by_pair.items())[:MOST_PAIRS]
    return Table(
        head=(f"Where {name} leaves most open", "Of what is sent", "Of what is open"),
        rows=tuple(
            (f"{a} and {b}", percent(share), percent(there)) for (a, b), (share, there) in shown
        ),
        note=(
            "Items are drawn by how far their votes are expected to move the ratings. They are no "
            "random subset then: rate them with their chances (column overall, argument "
            "probability of judge.studies.powered_ratings), or draw items at random instead."
        ),
    )


def send_rows(data: StudyData, judges: Judges) -> Iterator[dict[str, Any]]:
    """Give the items to send to people, with the row of each in the file of verdicts."""
    for judge in judges:
        sent = None if judge.plan is None else judge.plan.sent
        for item in () if sent is None else sent.item:
            assert sent is not None
            a, b = (data.items.models[model] for model in data.items.pairs[item])
            yield {
                "judge": judge.name,
                "verdict_row": int(data.source_rows[1][item]),
                "prompt_id": data.prompts[data.items.prompt[item]],
                **dict(zip(of_sides("model"), (a, b), strict=True)),
                "overall": float(sent.sending.overall[item]),
            }


def win_rate_section(judges: Judges, level: float) -> Section:
    """Give the judge's win rates, corrected for its errors where people voted."""
    known = [judge for judge in judges if judge.win_rates]
    tables = tuple(
        Table(
            head=(f"{judge.name}: preferred", "By the judge", "Corrected", "By people"),
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
                "Ties left out. By people: on the items with votes alone. Corrected (Rogan and "
                f"Gladen), with {100 * level:g} % intervals by prompt that allow for its errors "
                "being estimated."
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
        "Win rates, corrected for its errors", (ASSUMPTION,), more=tables, points=tuple(why)
    )
