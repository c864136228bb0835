"""The parts of a report on agreement, biases and calibration."""

from collections.abc import Iterator, Sequence

from judge.report.files import Figure, Section, Table
from judge.report.plots import Axis, Line, Mark, dots, scatter, spanning
from judge.studies.calibration import Calibration
from judge.studies.estimates import (
    NONE,
    Estimate,
    gap_of,
    joined,
    minus,
    number_of,
    percent,
    percent_of,
    plural,
    points_of,
    signed_of,
)
from judge.studies.gates import FAVOURED, MIN_ITEMS, MIN_PROMPTS, PASS, RANDOM, RATERS
from judge.studies.licence import Graded, Licence
from judge.studies.one_judge import JudgeStudy
from judge.studies.rates import Rates
from judge.studies.reliability import CONDITION
from judge.studies.side_by_side import SideBySide

EFFECTS = {
    "position": "Shown first",
    "length": "Twice as long",
    "format": "Twice the markdown",
    "refusal": "Declining",
    "self": "Its own model",
}


PEOPLE = "Two people"

CEILING = "Best possible judge"


Judges = Sequence[JudgeStudy]


def licence_section(licence: Licence) -> Section:
    """Say for which models the judge may stand in for people, with a sentence a model."""
    table = Table(
        head=("Model", "Grade", "By the judge less by people", "Labels", "Prompts", "Outside"),
        rows=tuple(
            (
                model.name,
                model.grade,
                NONE if model.error is None else minus(_off(model)),
                f"{model.votes:,}",
                f"{model.prompts:,}",
                f"{100 * model.outside:.0f} %",
            )
            for model in licence.models
        ),
        note=(
            f"Win rates, in points of a per cent. Margin, declared before: {licence.margin:g}. "
            "Each end of an interval allows for all models that are graded together: at most 5 % "
            "of licences grade any model wrongly. Outside: share of the judge's scores beyond "
            "those that people labelled; from 5 % on a model is not graded."
        ),
        strong=tuple(i for i, model in enumerate(licence.models) if model.grade == "PASS"),
    )
    bound = {
        "Method": licence.method,
        "Template": joined(licence.templates),
        "Model that answered": joined(licence.resolved_models),
        "Fingerprint": joined(licence.fingerprints),
    }
    bound_by = [
        f"{name}: {value or 'not named by the verdicts'}." for name, value in bound.items()
    ]
    people = "an unknown number of" if licence.people is None else f"{licence.people:,}"
    labels = (
        f"It rests on {plural(licence.votes, 'label')} by {people} people, on "
        f"{plural(licence.prompts, 'prompt')} (SHA-256 {licence.votes_sha256[:16]}…)."
    )
    sentences = tuple(model.sentence(licence.margin) for model in licence.models)
    return Section(
        f"The licence of {licence.judge}",
        (licence.headline, labels),
        table=table,
        points=(*sentences, *bound_by),
    )


def _off(model: Graded) -> str:
    return f"{model.error:+.1f} ({model.lower:+.1f} to {model.upper:+.1f})"


def agreement_section(judges: Judges, level: float) -> Section:
    """Put judges, people, the ceiling and the rules that read nothing into one table."""
    rows = _rows(judges)
    table = Table(
        head=("Compared with a vote", "Ties left out", "With ties", "Pairs"),
        rows=tuple(row for row, _ in rows),
        note=(
            f"Per cent, with {100 * level:g} % intervals for other prompts and, where votes say "
            "who cast them, other people; that of the best possible judge is for other prompts "
            "alone. Ties left out: both prefer a side, a coin gives 50. With ties: a tie is a "
            "third answer, a die gives 33. Pairs: of a verdict and a vote, or of two votes, with "
            "ties."
        ),
        strong=tuple(range(len(judges))),
    )
    lines = tuple(line for _, line in rows if line is not None)
    return Section(
        "How often it says what people say",
        table=table,
        figures=(_agreement_figure(lines, level),) if lines else (),
        more=(_lead_table(judges), *_alternative_table(judges), *_favouritism_tables(judges)),
    )


def _agreement_figure(lines: Sequence[Line], level: float) -> Figure:
    return Figure(
        dots(
            lines,
            Axis(_lowest(lines), 1.0, "Says what a person says, ties left out", percent),
            title="Agreement with people: judges, people, and rules that read nothing",
        ),
        f"Agreement where both prefer a side; lines are {100 * level:g} % intervals. "
        f"{CEILING}: {CONDITION}",
    )


Row = tuple[tuple[str, ...], Line | None]


def _rows(judges: Judges) -> list[Row]:
    """Give judges, people and the ceiling, and rules, each of these once where it is the same."""
    people = [_row(PEOPLE, "people", *_both(judge.agreement.people)) for judge in judges]
    tops = [_ceiling_row(judge.ceiling.highest) for judge in judges]
    rules = [
        _row(rule.name, "other", rule.agreement, rule.with_ties)
        for judge in judges
        for rule in judge.baselines
        if rule.agreement.value is not None
    ]
    own = [_row(judge.name, "judge", *_both(judge.agreement.judge)) for judge in judges]
    return [*own, *_once([*people, *tops, *rules])]


def _once(rows: Sequence[Row]) -> list[Row]:
    """Drop rows of the same name that differ by less than a point of a per cent."""
    seen: dict[tuple[str, str], Row] = {}
    for cells, line in rows:
        seen.setdefault((cells[0], cells[1].partition("(")[0]), (cells, line))
    return list(seen.values())


def _both(rates: Rates) -> tuple[Estimate, Estimate]:
    return rates.without_ties, rates.with_ties


def _row(name: str, kind: str, without_ties: Estimate, with_ties: Estimate) -> Row:
    exact = name == RANDOM
    cells = [percent(x.value) if exact else percent_of(x) for x in (without_ties, with_ties)]
    pairs = NONE if exact else f"{with_ties.n:,}"
    return (name, *cells, pairs), _line(name, kind, without_ties)


def _ceiling_row(top: Estimate) -> Row:
    return (CEILING, percent_of(top), NONE, NONE), _line(CEILING, "people", top)


def _lead_table(judges: Judges) -> Table:
    """By how much judges are ahead of people and of each rule, the same draws for both."""
    rows = {PEOPLE: [gap_of(judge.over_people_without_ties) for judge in judges]}
    for name in dict.fromkeys(rule.name for judge in judges for rule in judge.baselines):
        rows[name] = [
            next((gap_of(r.lead) for r in j.baselines if r.name == name), NONE) for j in judges
        ]
    return Table.of(
        ("Ahead of", *(judge.name for judge in judges)),
        rows,
        note=(
            "By how many points of a per cent a judge agrees with a person more often, ties left "
            "out; intervals take the same prompts and people for both. One that holds 0 shows no "
            "lead."
        ),
    )


def _alternative_table(judges: Judges) -> tuple[Table, ...]:
    """Put the alternative-annotator test of judges beside that of what reads nothing."""
    tested = [judge.alternative for judge in judges]
    if not any(tested):
        return ()
    names = {
        "winning_rate": "People it may take the place of",
        "coin": "A coin may, of these people",
        "longest": "Picking the longer answer may",
        "person": "Another person may, on average",
        "person_passed": "Draws in which another person passes",
        "majority": "What most of the others say may",
        "advantage": "No worse than the person it would replace",
    }
    rows = {
        title: [NONE if test is None else percent(getattr(test, name)) for test in tested]
        for name, title in names.items()
    }
    rows["People tested"] = [
        NONE if test is None else f"{test.people_tested:,}" for test in tested
    ]
    for name, title in (
        ("items_per_person", "Items per person, median"),
        ("decides_at", "Items per person that decide"),
    ):
        values = [None if test is None else getattr(test, name) for test in tested]
        rows[title] = [NONE if value is None else f"{value:,.0f}" for value in values]
    margins = [percent(test.margin) for test in tested if test is not None]
    return (
        Table.of(
            ("In the place of people", *(judge.name for judge in judges)),
            rows,
            note=(
                "The alternative-annotator test: of the people with enough votes, the share with "
                "whom others agree no more often than with the judge, by more than "
                f"{margins[0]} of items, the margin for {RATERS[judges[0].raters]}. "
                f"{percent(PASS)} or more passes, if a coin and the longer answer reach less. "
                "Another person: one of the others, drawn on each item, in the place of the "
                "judge. What most of the others say is the upper bound for any judge. With as "
                "many items per person as decide, another person passes in about 90 % of studies. "
                "No worse: share of items on which others agree as often with the judge."
            ),
        ),
    )


def _favouritism_tables(judges: Judges) -> Iterator[Table]:
    """Give each model's favouritism, the most biased first."""
    for judge in judges:
        if not judge.favouritism:
            continue
        biased = judge.evidence.biased
        order = dict.fromkeys([*biased, *judge.favouritism])
        yield Table(
            head=(f"Favouritism of {judge.name}", "Of a win per item", "Items"),
            rows=tuple(
                (name, signed_of(judge.favouritism[name]), f"{judge.favouritism[name].n:,}")
                for name in order
            ),
            strong=tuple(range(len(biased))),
            note=(
                "By how much the judge scores a model above what a fair judge of its strength "
                "would give, with 95 % limits over all models, by voters and prompts. Favoured or "
                f"disadvantaged: the limits are beyond {FAVOURED:g}. Without limits: not tested, "
                f"which takes {MIN_ITEMS} items on {MIN_PROMPTS} prompts. Favouring the best "
                "model makes a judge seem stronger and can stay hidden."
            ),
        )


def _line(name: str, kind: str, estimate: Estimate) -> Line | None:
    if estimate.value is None:
        return None
    return Line(name, (_mark(kind, estimate),))


def _lowest(lines: Sequence[Line]) -> float:
    ends = [min(mark.ends) for line in lines for mark in line.marks]
    return min([0.4, *(int(10 * end) / 10 for end in ends)])


def chance_section(judges: Judges) -> Section:
    """Say how far agreement is beyond chance, and how near to what people allow."""
    agreed, tops = [j.agreement for j in judges], [j.ceiling for j in judges]
    rows = {
        "Cohen's kappa, judge and people": [number_of(one.kappa) for one in agreed],
        "Kappa, two people": [number_of(one.people_kappa) for one in agreed],
        "Krippendorff's alpha, people": [number_of(one.alpha) for one in agreed],
        "Gwet's AC1, people": [number_of(one.ac1) for one in agreed],
        "Judge over two people": [percent_of(top.to_people) for top in tops],
        "Judge over the best possible": [percent_of(top.to_highest) for top in tops],
        "Each item once, ties left out": [percent_of(one.by_item.without_ties) for one in agreed],
        "Each item once, with ties": [percent_of(one.by_item.with_ties) for one in agreed],
    }
    swapped = [j.swaps for j in judges]
    if any(swap is not None for swap in swapped):
        for name, part in (
            ("Same verdict in both orders", "consistent"),
            ("Changes to what is shown first", "to_first"),
            ("Changes to what is shown second", "to_second"),
        ):
            rows[name] = [NONE if s is None else percent_of(getattr(s, part)) for s in swapped]
    table = Table.of(
        ("Measure", *(judge.name for judge in judges)),
        rows,
        note=(
            "1 is agreement for kappa, alpha and AC1, a tie being a third answer if any vote is "
            "one; each has its own idea of what chance gives. Alpha falls where nearly all "
            "answers are of one kind and AC1 does not: read them together. "
            f"The best possible judge: {CONDITION[0].lower()}{CONDITION[1:]}"
        ),
    )
    return Section("Beyond chance, and against what people allow", table=table)


def lead_table(against: SideBySide) -> Table:
    """Put judges against each other, a pair a row."""
    rows = {
        f"{lead.first} less {lead.second}": (
            gap_of(lead.without_ties),
            gap_of(lead.with_ties),
            f"{lead.n_items:,}",
            NONE if lead.cost is None else _dollars(lead.cost),
        )
        for lead in against.leads
    }
    return Table.of(
        ("Agreement with people", "Ties left out", "With ties", "Items", "Price of a point"),
        rows,
        note=(
            "Points of a per cent, on the items that both have a verdict on; intervals take the "
            "same prompts and people for both. Price of a point: dollars more for a thousand "
            "items, by going from the worse judge to the better, where one is certainly better "
            "(at a level over all pairs)."
        ),
    )


def against_section(against: SideBySide) -> Section:
    """Say where judges differ, and what their agreement costs."""
    names = [*against.costs]
    parts = {
        part.name: (
            *(percent_of(part.agreement[name]) for name in names),
            f"{part.n_items:,}",
            f"{part.n_prompts:,}",
        )
        for part in against.parts
    }
    costs = {
        "Dollars a thousand items": [_dollars(against.costs[name]) for name in names],
        "For each point above a coin": [_dollars(against.price(name)) for name in names],
    }
    return Section(
        "The judges against each other",
        paragraphs=(" ".join(against.sentences),),
        table=Table.of(
            ("Agreement, ties left out", *names, "Items", "Prompts"),
            parts,
            note=(
                "On the items that every judge has a verdict on. How far models are apart is by "
                "people's votes: near ones are hard to tell. Lengths are in characters. Under "
                f"{MIN_PROMPTS} prompts nothing is said. Parts are many looks at the same "
                "verdicts: of twenty, one may differ by luck alone."
            ),
        ),
        more=(
            Table.of(
                ("What it costs", *names),
                costs,
                note="Of all that was paid for, read or not; as far as the file says. A judge "
                "that is not shown to agree more often than a coin has no price of a point.",
            ),
        ),
    )


def _dollars(value: float | None) -> str:
    return NONE if value is None else minus(f"{value:.2g}")


def group_section(judges: Judges, by: str) -> Section:
    """Agreement apart by the values of a column."""
    rows = []
    for judge in judges:
        for value, group in judge.groups.items():
            name = value if len(judges) == 1 else f"{value}: {judge.name}"
            ours, theirs = group.agreement.judge, group.agreement.people
            cells = map(
                percent_of,
                (ours.without_ties, theirs.without_ties, ours.with_ties, theirs.with_ties),
            )
            rows.append((name, *cells, f"{ours.with_ties.n:,}"))
    table = Table(
        head=(by, "Judge, ties left out", "Two people", "Judge, with ties", "Two people", "Pairs"),
        rows=tuple(rows),
        note="Groups are many looks at one judge: of twenty, one may differ by chance alone.",
    )
    return Section(f"By {by}", table=table)


def bias_section(judges: Judges, level: float) -> Section:
    """Say what moves the judge and what moves people."""
    rows, lines = [], []
    for judge in judges:
        if judge.biases is None:
            continue
        for name, effect in judge.biases.effects.items():
            if effect.people is None and effect.judge is None:
                continue
            label = EFFECTS[name]
            if name == "self":
                label = f"{label}, {judge.biases.own_model}"
            if len(judges) > 1:
                label = f"{judge.name}: {label[:1].lower()}{label[1:]}"
            cells = map(points_of, (effect.people, effect.judge, effect.difference))
            rows.append((label, *cells))
            if effect.people and effect.judge and name != "self":
                lines.append(
                    Line(label, (_mark("people", effect.people), _mark("judge", effect.judge)))
                )
    table = Table(
        head=("What a response gains by", "With people", "With the judge", "Difference"),
        rows=tuple(rows),
        note=(
            f"Rating points (400 are odds of ten to one) with {100 * level:g} % intervals by "
            "prompt, from one Bradley-Terry fit with these terms to votes, and the same to "
            "verdicts. The difference is the bias: that people, too, like longer answers is none "
            "of the judge's. Its own model: how far it leads the mean of the others on either "
            "board; the difference is what the line through the other models does not explain, "
            "with a prediction interval: it leaves out 0 only where the judge lifts or lowers no "
            "other model nearly as far."
        ),
    )
    figures: tuple[Figure, ...] = ()
    if lines:
        ends = [end for line in lines for mark in line.marks for end in mark.ends]
        axis = spanning([0.0, *ends], "Rating points", lambda x: minus(f"{x:+.0f}" if x else "0"))
        svg = dots(lines, axis, title="What moves people and the judge", rule=0.0)
        caption = (
            "Orange: people, above. Blue: the judge, below. Where they lie apart is the bias."
        )
        figures = (Figure(svg, caption),)
    return Section(
        "What moves it, and what moves people",
        table=table,
        figures=figures,
        points=tuple(_on_moderation(judges)),
    )


def _on_moderation(judges: Judges) -> Iterator[str]:
    for judge in judges:
        gap = None if judge.biases is None else judge.biases.moderation
        if gap is not None:
            yield gap.sentence(judge.name)


def _mark(kind: str, estimate: Estimate) -> Mark:
    return Mark(kind, estimate.value or 0.0, estimate.lower, estimate.upper)


def calibration_section(judges: Judges, level: float) -> Section:
    """Say whether the probabilities that judges give are those with which people agree."""
    known = [(judge.name, judge.calibration) for judge in judges if judge.calibration is not None]
    rows = {
        "Calibration error": [percent_of(one.ece) for _, one in known],
        "Brier score": [number_of(one.brier, 3) for _, one in known],
        "Temperature": [number_of(one.temperature) for _, one in known],
        "Brier score, by temperature": [
            number_of(one.brier_by_temperature, 3) for _, one in known
        ],
        "Brier score, by isotonic map": [number_of(one.brier_isotonic, 3) for _, one in known],
        "Pairs": [f"{one.n:,}" for _, one in known],
    }
    table = Table.of(
        ("Its chances", *(name for name, _ in known)),
        rows,
        note=(
            "Calibration error: how far the judge's chance lies from the share of people, on "
            "average. A temperature above 1: it is too sure of itself. Both maps are learnt on "
            "other prompts than they are scored on."
        ),
    )
    figures = tuple(_curve(name, calibration, level) for name, calibration in known)
    return Section("Whether its chances hold", table=table, figures=figures)


def _curve(name: str, calibration: Calibration, level: float) -> Figure:
    points = [
        ("", Mark("judge", one.mean_chance), _mark("people", one.people))
        for one in calibration.bins
        if one.people.value is not None
    ]
    axes = (
        Axis(0.5, 1.0, "Chance that the judge gives to the side it prefers", percent),
        Axis(0.0, 1.0, "People who prefer that side", percent),
    )
    return Figure(
        scatter(points, *axes, title=f"How often people agree with {name}, by its chance"),
        f"{name}: on the dashed line its chances hold, below it is too sure. Lines are "
        f"{100 * level:g} % intervals; {plural(calibration.n, 'pair')} of a verdict and a vote.",
    )
