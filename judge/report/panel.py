"""The report on a panel of judges: what it is worth, and who errs with whom."""

import shlex
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from judge.report.files import Answer, Figure, Page, Section, Table, Tone, write_forms
from judge.report.plots import heat_map
from judge.report.study import option_words
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
)
from judge.studies.gates import MIN_PROMPTS
from judge.studies.panel import Panel
from judge.studies.panel_card import Added
from rating import __version__
from rating.sentences import foremost
from rating.tables.files import Files

NAME = "panel"
OPENING = (
    "Several models judge the same answers, and what most of them say counts. Where they err "
    "together, many are worth few: here is how many."
)
LIMITS = (
    "Judges that err together may do so for a reason that a majority of people shares: agreement "
    "is not truth.",
    "Which judge is best, and in which order to add them, is chosen on these very items.",
    "All of this is of these prompts and pairs of models; on other tasks judges err together "
    "more or less.",
)
NOISY = (
    "Where most of the few people who voted on an item are wrong, every good judge errs on it at "
    "once: the panel is worth at least what is shown, with votes taken as the truth. What shared "
    "errors cost is not estimated from votes."
)


def write_panel(panel: Panel, folder: Path, made: date) -> Path:
    """Write the report in every form into a folder, as `write_forms`."""
    page = panel_page(panel, made)
    return write_forms(page, panel.to_dict(), list(rows(panel)), folder, NAME)


def panel_page(panel: Panel, made: date) -> Page:
    """Say all that the report says, in its order."""
    sections = [
        *_heat(panel),
        Section("Limits", points=tuple(_limits(panel))),
        Section("To make this again", code=command(panel)),
    ]
    page = Page(
        title="How many judges is this panel worth?",
        opening=OPENING,
        about=_about(panel),
        answers=(Answer(_who(panel), _tone(panel), panel.headline, panel.sentences),),
        first=Section("The panel", table=_card(panel), more=tuple(_tables(panel))),
        sections=tuple(sections),
        made=made,
        version=__version__,
    )
    return page.answered() if panel.n_prompts < MIN_PROMPTS else page


def _who(panel: Panel) -> str:
    return f"Panel of {panel.card.k}"


def _tone(panel: Panel) -> Tone:
    """Colour the answer: well where the panel is certainly better than its best judge alone."""
    lead = panel.card.over_best
    if lead.lower is not None and lead.lower > 0:
        return "good"
    return "poor" if lead.upper is not None and lead.upper < 0 else "fair"


def _about(panel: Panel) -> dict[str, str]:
    families = {judge.family for judge in panel.judges}
    truth = f"Votes: {panel.votes}" if panel.by_people else "Labels in the files"
    return {
        "Verdicts": joined([str(files) for files in panel.verdicts]),
        "Held against": truth,
        "Items": f"{plural(panel.n_items, 'item')} of {plural(panel.n_prompts, 'prompt')}",
        "Judges": f"{plural(panel.card.k, 'judge')} of {len(families):,} "
        + ("family" if len(families) == 1 else "families"),
    }


def _card(panel: Panel) -> Table:
    one, level = panel.card, f"{100 * panel.options.level:g} %"
    least = ", at least" if panel.by_people else ""
    cells = {
        "Judges": f"{one.k}",
        f"Independent judges they are worth{least}": number_of(one.n_eff),
        "Independent judges they are worth, at most": number_of(one.at_most),
        "Mean correlation of errors": number_of(one.mean_correlation, 3),
        "Right: the mean judge": percent_of(one.mean),
        f"Right: the best judge ({panel.best})": percent_of(one.best),
        "Right: most of them": percent_of(one.majority),
        "Right: most of as many independent ones": percent_of(one.independent),
        "Gap to independent ones, points of a per cent": gap_of(one.gap),
        "Lead over the best judge, points of a per cent": gap_of(one.over_best),
    }
    return Table.of(
        ("The panel", "Value"),
        {name: (text,) for name, text in cells.items() if text != NONE},
        f"On {plural(panel.n_items, 'item')} that every judge read. {level} intervals draw "
        "prompts. Where exactly half of the judges are right, the panel is right by half.",
    )


def _tables(panel: Panel) -> Iterator[Table]:
    yield Table.of(
        ("Judge", "Family", "Right", "Not read", "Items left out"),
        {
            judge.name: (
                judge.family,
                percent_of(judge.accuracy),
                f"{judge.n_unread:,}",
                f"{judge.without:,}",
            )
            for judge in panel.judges
        },
        "Right on the items that every judge read. A verdict that was not read is no error. Items "
        "without a verdict of one judge that was read are left out for all.",
    )
    if panel.card.k > 1:
        yield _correlations(panel)
        yield _order(panel, "Add by independent judges", panel.by_n_eff)
        yield _order(panel, "Add by accuracy", panel.by_accuracy)
        yield from _families(panel)


def _correlations(panel: Panel) -> Table:
    names = [judge.name for judge in panel.judges]
    numbers = [str(place + 1) for place in range(len(names))]
    return Table.of(
        ("Correlation of errors", *numbers),
        {
            f"{number} {name}": [_correlation(panel, i, j) for j in range(len(names))]
            for i, (number, name) in enumerate(zip(numbers, names, strict=True))
        },
        "1 where two judges err on the same items, 0 where the one's errors say nothing of the "
        f"other's. {NONE}: one of them errs on none or on all.",
    )


def _correlation(panel: Panel, i: int, j: int) -> str:
    value = panel.correlations[i, j]
    return "" if i == j else NONE if value != value else minus(f"{value:.2f}")


def _order(panel: Panel, name: str, order: tuple[Added, ...]) -> Table:
    return Table.of(
        (name, "Worth", "Most are right"),
        {
            f"{place}. {one.judge}": (
                NONE if one.n_eff is None else f"{one.n_eff:.2f}",
                percent(one.majority),
            )
            for place, one in enumerate(order, 1)
        },
        "Each line adds the judge to those above it that leaves the panel best, from the one that "
        f"is right most often on. Chosen on these {plural(panel.n_items, 'item')}.",
    )


def _families(panel: Panel) -> Iterator[Table]:
    if not panel.without_family:
        return
    gap = [] if panel.by_people else ["Gap to independent ones"]
    yield Table.of(
        ("Without the family", "Judges", "Worth", "Most are right", *gap),
        {
            family: (
                f"{one.k}",
                number_of(one.n_eff),
                percent_of(one.majority),
                *(gap_of(one.gap) for _ in gap),
            )
            for family, one in panel.without_family.items()
        },
        "A family is the column family of the verdicts, else the letters that a judge's name "
        "begins with.",
    )


def _heat(panel: Panel) -> Iterator[Section]:
    if panel.card.k < 2:
        return
    cells = [
        [None if i == j or value != value else float(value) for j, value in enumerate(row)]
        for i, row in enumerate(panel.correlations.tolist())
    ]
    svg = heat_map(
        cells, [(judge.name, 1) for judge in panel.judges], title="Correlation of errors"
    )
    caption = (
        "Correlation of the errors of each two judges, in the order of the rows: blue where they "
        "err together, orange where one errs where the other does not."
    )
    yield Section("Who errs with whom", figures=(Figure(svg, caption),))


def _limits(panel: Panel) -> Iterator[str]:
    yield from foremost(panel.warnings)
    if panel.by_people:
        yield NOISY
    yield from LIMITS


def rows(panel: Panel) -> Iterator[dict[str, Any]]:
    """Give every figure as a row: part, name, other name, value and ends."""
    one = panel.card
    figures = {
        "n_eff": one.n_eff,
        "at_most": one.at_most,
        "mean_correlation": one.mean_correlation,
        "accuracy.mean": one.mean,
        "accuracy.best": one.best,
        "accuracy.majority": one.majority,
        "accuracy.independent": one.independent,
        "gap": one.gap,
        "over_best": one.over_best,
    }
    yield from (_row("panel", name, "", figure) for name, figure in figures.items())
    for judge in panel.judges:
        yield _row("accuracy", judge.name, "", judge.accuracy)
    for pair in panel.to_dict()["correlations"]:
        value = Estimate(pair["value"], None, None, panel.n_items)
        yield _row("correlation", pair["a"], pair["b"], value)


def _row(part: str, name: str, other: str, figure: Estimate) -> dict[str, Any]:
    return {"part": part, "name": name, "other": other} | figure.to_dict()


def command(panel: Panel) -> str:
    """Write the command that makes this report."""
    words = ["arena", "study", "panel", *(str(files.paths[0]) for files in panel.verdicts)]
    words += ["--votes", str(panel.votes)] if panel.by_people else []
    words += panel.options.words()
    sources = [source for source in (*panel.verdicts, panel.votes) if isinstance(source, Files)]
    words += dict.fromkeys(word for files in sources for word in option_words(files))
    return shlex.join([*words, "--out", NAME])
