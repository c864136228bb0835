"""The parts of a report on what moves a judge, and on the chances it gives."""

from collections.abc import Sequence

from judge.report.page import Figure, Section, Table
from judge.report.plots import Axis, Line, Mark, dots, scatter, spanning
from judge.studies.calibration import Calibration
from judge.studies.items import Estimate
from judge.studies.one_judge import JudgeStudy
from judge.studies.words import minus, number_of, percent, percent_of, plural, points_of

EFFECTS = {
    "position": "Shown first",
    "length": "Twice as long",
    "format": "Twice the markdown",
    "self": "Its own model",
}

Judges = Sequence[JudgeStudy]


def bias_section(judges: Judges, level: float) -> Section:
    """Say what moves the judge and what moves people."""
    rows, lines = [], []
    for judge in judges:
        if judge.biases is None:
            continue
        for name, effect in judge.biases.effects.items():
            if effect.people is None and effect.judge is None:
                continue
            said = EFFECTS[name]
            if name == "self":
                said = f"{said}, {judge.biases.own_model}"
            if len(judges) > 1:
                said = f"{judge.name}: {said[:1].lower()}{said[1:]}"
            cells = map(points_of, (effect.people, effect.judge, effect.difference))
            rows.append((said, *cells))
            if effect.people and effect.judge and name != "self":
                lines.append(
                    Line(said, (_mark("people", effect.people), _mark("judge", effect.judge)))
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
        ends = [
            end
            for line in lines
            for mark in line.marks
            for end in (mark.value, mark.lower, mark.upper)
            if end is not None
        ]
        axis = spanning([0.0, *ends], "Rating points", lambda x: minus(f"{x:+.0f}" if x else "0"))
        svg = dots(lines, axis, title="What moves people and the judge", rule=0.0)
        said = "Orange: people, above. Blue: the judge, below. Where they lie apart is the bias."
        figures = (Figure(svg, said),)
    return Section("What moves it, and what moves people", table=table, figures=figures)


def _mark(kind: str, found: Estimate) -> Mark:
    return Mark(kind, found.value or 0.0, found.lower, found.upper)


def calibration_section(judges: Judges, level: float) -> Section:
    """Say whether the chances that judges give are those with which people agree."""
    known = [(judge.name, judge.calibration) for judge in judges if judge.calibration is not None]
    rows = {
        "Calibration error": [percent_of(found.ece) for _, found in known],
        "Brier score": [number_of(found.brier, 3) for _, found in known],
        "Temperature": [number_of(found.temperature) for _, found in known],
        "Brier score, by temperature": [
            number_of(found.brier_by_temperature, 3) for _, found in known
        ],
        "Brier score, by isotonic map": [number_of(found.brier_isotonic, 3) for _, found in known],
        "Pairs": [f"{found.n:,}" for _, found in known],
    }
    table = Table(
        head=("Its chances", *(name for name, _ in known)),
        rows=tuple((name, *cells) for name, cells in rows.items()),
        note=(
            "Calibration error: how far the judge's chance lies from the share of people, on "
            "average. A temperature above 1: it is too sure of itself. Both maps are learnt on "
            "other prompts than they are scored on."
        ),
    )
    figures = tuple(_curve(name, found, level) for name, found in known)
    return Section("Whether its chances hold", table=table, figures=figures)


def _curve(name: str, found: Calibration, level: float) -> Figure:
    points = [
        (
            "",
            Mark("judge", one.mean_chance, None, None),
            Mark("people", one.people.value or 0.0, one.people.lower, one.people.upper),
        )
        for one in found.bins
        if one.people.value is not None
    ]
    axes = (
        Axis(0.5, 1.0, "Chance that the judge gives to the side it prefers", percent),
        Axis(0.0, 1.0, "People who prefer that side", percent),
    )
    return Figure(
        scatter(points, *axes, title=f"How often people agree with {name}, by its chance"),
        f"{name}: on the dashed line its chances hold, below it is too sure. Lines are "
        f"{100 * level:g} % intervals; {plural(found.n, 'pair')} of a verdict and a vote.",
    )
