"""The parts of a report on votes still to come: how many, on which items, and what stands in."""

from collections.abc import Iterator, Sequence
from typing import Any

from judge.report.page import Section, Table
from judge.studies.corrected import ASSUMPTION
from judge.studies.data import StudyData
from judge.studies.one_judge import JudgeStudy
from judge.studies.plan import Plan, Sent
from judge.studies.words import NONE, percent, percent_of, plural

Judges = Sequence[JudgeStudy]

SEND = "send.csv"
MOST_PAIRS = 8


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
            "random subset then: rate them with their chances (column overall, argument chance of "
            "judge.studies.powered_ratings), or draw items at random instead."
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
                "model_a": a,
                "model_b": b,
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
                    NONE if rate.corrected is None else percent(rate.corrected.by_judge),
                    NONE if rate.corrected is None else percent_of(rate.corrected.rate),
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
