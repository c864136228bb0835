"""Juries of several judges, and the reports on panels and on accuracy with known labels.

`jury` combines the verdicts of several judges, and states whether the order of the models depends
on one of them. `write_panel` reports how many independent judges a panel equals and whose errors
are correlated; `write_truth` the accuracy on labels that are taken as truth.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import chain, combinations, compress, groupby
from pathlib import Path
from typing import Any

import numpy as np

from judge.report.page import Answer, Figure, Page, Section, Tone, by_mean, write_forms
from judge.report.plots import heat_map
from judge.report.studies import option_words
from judge.studies.estimates import (
    NONE,
    Estimate,
    clustered,
    gap_of,
    joined,
    minus,
    number_of,
    over,
    percent,
    percent_of,
)
from judge.studies.gates import MIN_PROMPTS
from judge.studies.options import StudyOptions
from judge.studies.panel import SHARES, Panel, equivalent
from judge.studies.truth import Accuracy, TruthStudy, dawid_skene
from judge.verdict import READ
from rating import Outcome
from rating.errors import ConvergenceError
from rating.leave_out import sums_within
from rating.outcome import of_sides
from rating.sentences import foremost, plural
from rating.tables.files import Files
from rating.tables.formats import Table
from rating.tables.vote_filter import BOTH
from rating.typing import Floats

# Jury


MAJORITY, WEIGHTED = "majority", "weighted"
SIDES = (Outcome.B, Outcome.TIE, Outcome.A)
"""By label, from 0."""
CASE = ("battle_id", "prompt_id", *of_sides("model"))
NO_QUORUM = "no_quorum"
FEWEST_JUDGES = 3
"""Of which agreement tells who is right more often."""
NOT_OF_ONE = ("corrected", "error", "cost", "latency", "template", "fallback_for")
"""What a verdict of several judges has not."""
Row = Mapping[str, Any]


def jury(by_seat: Mapping[str, Sequence[Row]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the verdicts of several judges together, and what they are worth.

    A verdict needs those of more than half of the seats. The majority is the label of more judges
    than any other, else a tie. The weighted verdict is the likeliest label if judges err
    independently, each at one rate, which is estimated from their agreement (Dawid and Skene's
    model with one rate per judge). It takes three judges of which each gives more than one label,
    on `MIN_PROMPTS` cases; and there is none where they agree no more often than by guessing.

    Parameters
    ----------
    by_seat : mapping of str to sequence of mapping
        By the judge that was named, the rows of its run, none if it was not asked; ``judge`` names
        who was. Who replaces several judges on a case counts once.

    Returns
    -------
    rows : list of dict
        Of `judge.tables.verdicts.COLUMNS`, by `MAJORITY` and by `WEIGHTED`.
    report : dict
        ``cases``; ``decided`` and ``tied`` by each; ``no_quorum``; ``complete``, cases with all
        verdicts, and ``unanimous``, the share of these on which judges say the same; ``n_eff``,
        see `_at_least`; ``accuracies`` by judge, null without weights; ``orders`` of the models by
        each judge and together, best first, equal ones by name; ``stable``, whether all of these
        are the same without ties; ``sentences``.
    """
    final = {seat: {_key(row): row for row in rows} for seat, rows in by_seat.items()}
    given = [row for rows in final.values() for row in rows.values()]
    cases = list(dict.fromkeys(map(_key, given)))
    judges = sorted({str(row["judge"]) for row in given})
    label = np.full((len(cases), len(judges)), -1)
    number = {key: place for place, key in enumerate(cases)}
    for row in given:
        if row["winner"] is not None:
            place = number[_key(row)], judges.index(str(row["judge"]))
            label[place] = SIDES.index(Outcome(row["winner"]))
    there = label >= 0
    quorum = there.sum(axis=1) > len(by_seat) / 2
    votes = np.stack([(label == one).sum(axis=1) for one in range(len(SIDES))], axis=1)
    posterior, accuracies = _weighed(label, quorum, judges)
    shares = {MAJORITY: over(votes.astype(np.float64), there.sum(axis=1, keepdims=True))}
    shares |= {} if posterior is None else {WEIGHTED: posterior}
    firsts = {key: row for rows in reversed(final.values()) for key, row in rows.items()}
    rows = [
        _row(firsts[key], name, share[place] if quorum[place] else None)
        for name, share in shares.items()
        for place, key in enumerate(cases)
    ]
    every = {  # who replaces several judges on a case counts once
        name: [*{_key(row): row for row in given if row["judge"] == name}.values()]
        for name in judges
    }
    every |= {name: [row for row in rows if row["judge"] == name] for name in shares}
    ranked: dict[str, list[list[str]]] = {}  # models of equal means together
    for name, of in every.items():
        means = by_mean([row for row in of if row["winner"] is not None])
        ranked[name] = [[*tied] for _, tied in groupby(means, means.__getitem__)]
    whole = there.all(axis=1)
    report = {
        "cases": len(cases),
        **{
            name: {
                "decided": sum(row["winner"] is not None for row in every[name]),
                "tied": sum(row["winner"] == Outcome.TIE.value for row in every[name]),
            }
            for name in shares
        },
        "no_quorum": int((~quorum).sum()),
        "complete": int(whole.sum()),
        "unanimous": float((votes[whole].max(axis=1) == len(judges)).mean())
        if whole.any()
        else None,
        "n_eff": _at_least(label[whole], [cases[i][1] for i in np.flatnonzero(whole)]),
        "accuracies": accuracies,
        "orders": {name: list(chain(*groups)) for name, groups in ranked.items()},
        "stable": {len(tied) for tied in ranked[MAJORITY]} == {1}
        and all(groups in ([], ranked[MAJORITY]) for groups in ranked.values()),
    }
    orders = {name: ", ".join(map(" = ".join, groups)) for name, groups in ranked.items()}
    return rows, report | {"sentences": [*_sentences(report, judges, orders)]}


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in CASE)


def _weighed(
    label: Any, quorum: Any, judges: Sequence[str]
) -> tuple[Floats | None, dict[str, float] | None]:
    """Return the probability of each label, and the judges' estimated accuracies, if any."""
    varies = [len({*one[one >= 0]}) > 1 for one in label[quorum].T]
    if sum(varies) < FEWEST_JUDGES or quorum.sum() < MIN_PROMPTS:
        return None, None
    label = label[:, varies]
    item, rater = np.nonzero((label >= 0) & quorum[:, None])
    known, labels = np.full(len(label), -1), label[item, rater]
    try:
        fitted = dawid_skene(item, rater, labels, len(SIDES), known=known, errors="one")
    except ConvergenceError:
        return None, None
    if not fitted.above_guessing:
        return None, None
    accuracy = zip(compress(judges, varies), fitted.accuracy.tolist(), strict=True)
    return fitted.posterior, dict(accuracy)


def _row(first: Row, name: str, share: Floats | None) -> dict[str, Any]:
    """Give the verdict of a jury on a case, beside what its rows say of the case."""
    winner, preference = None, None
    if share is not None:
        leads = np.flatnonzero(share > share.max() - 1e-9)
        winner = (SIDES[int(leads[0])] if len(leads) == 1 else Outcome.TIE).value
        preference = float(share[2] + share[1] / 2)
    return {
        **first,
        **dict.fromkeys(name for name in NOT_OF_ONE if name in first),
        **dict.fromkeys(("resolved_model", "system_fingerprint")),
        "judge": name,
        "order": BOTH,
        "winner": winner,
        "preference": preference,
        "status": NO_QUORUM if winner is None else READ,
    }


def _at_least(label: Any, prompts: Sequence[Any]) -> dict[str, Any] | None:
    """Estimate the fewest independent judges that the jury equals, from its verdicts alone.

    ``k / (1 + (k - 1) rho)``, rho the mean over pairs of ``(1 - d) / (1 + d)``, d the share of
    cases on which the two choose opposite sides. Where the truth is a side, exactly one of them is
    wrong there, and no error rates give a higher correlation of errors. None under `MIN_PROMPTS`.
    """
    number = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
    k = label.shape[1]
    if len(number) < MIN_PROMPTS or k < 2:
        return None
    side = label.astype(np.float64) - 1
    first, second = np.array([*combinations(range(k), 2)]).T
    each = np.hstack([np.ones((len(side), 1)), side[:, first] * side[:, second] < 0])
    stats = sums_within(np.array([number[one] for one in prompts]), each, len(number))

    def n_eff(sums: Floats) -> Floats:
        d = over(sums[:, 1:], sums[:, :1])
        return equivalent(((1 - d) / (1 + d)).mean(axis=1), k)

    one = clustered(stats, n_eff, StudyOptions().draws(), n=len(label))
    return None if one.value is None else one.to_dict()


def _sentences(report: Row, judges: Sequence[str], orders: Mapping[str, str]) -> Iterator[str]:
    given = f"The majority has a verdict on {report[MAJORITY]['decided']:,} of "
    yield f"{given}{plural(report['cases'], 'case')}; {report[MAJORITY]['tied']:,} are ties."
    if WEIGHTED in report:
        weights = [f"{name} {percent(right)}" for name, right in report["accuracies"].items()]
        yield f"Weights and accuracies, if errors are independent: {joined(weights)}."
    else:
        yield (
            f"No weights: fewer than {FEWEST_JUDGES} judges vary their verdicts on {MIN_PROMPTS} "
            "cases, or they agree no more often than by guessing."
        )
    if report["no_quorum"]:
        yield (
            f"{plural(report['no_quorum'], 'case')} without a verdict of more than half of the "
            "judges."
        )
    if report["unanimous"] is not None:
        base = f"the {plural(report['complete'], 'case')} with all verdicts"
        yield f"All judges give the same verdict on {percent(report['unanimous'])} of {base}."
    if (n_eff := report["n_eff"]) is not None:
        ends = f" ({n_eff['lower']:.1f} to {n_eff['upper']:.1f})" if n_eff["lower"] else ""
        yield (
            f"The jury equals at least {n_eff['value']:.1f}{ends} independent judges of "
            f"{len(judges)}, if each sometimes errs and the right answer is never a tie; "
            "arena study panel estimates this with votes or labels."
        )
    by_all = orders[MAJORITY]
    if not by_all:
        return
    if report["stable"]:
        yield f"By mean score, every judge gives the same order: {by_all}."
        return
    yield (
        "By mean score, judges do not agree on one order, which may be chance (arena study judge "
        f"tests pairs of models). By majority: {by_all}."
    )
    for name, order in orders.items():
        if order and order != by_all:
            yield f"By {name}: {order}."


# Report on a panel


PANEL_NAME = "panel"
PANEL_OPENING = (
    "Several models judge the same answers, and the majority of their verdicts counts. If their "
    "errors are correlated, many judges are worth few: this report estimates how many."
)
LIMITS = (
    "Judges may share errors for a reason that most people share, too: agreement is not truth.",
    "The best judge, and the order in which judges are added, are selected on these same items.",
    "All figures are for these prompts and pairs of models; on other tasks, errors may "
    "be more or less correlated.",
)
NOISY = (
    "If most of the few people who voted on an item are wrong, every good judge errs on "
    "it: the panel is worth at least the number shown, with votes taken as the truth. "
    "The cost of shared errors is not estimated from votes."
)


def write_panel(panel: Panel, folder: Path, made: date) -> Path:
    """Write the report in every form into a folder, as `write_forms`."""
    page = panel_page(panel, made)
    return write_forms(page, panel.to_dict(), list(_panel_rows(panel)), folder, PANEL_NAME)


def panel_page(panel: Panel, made: date) -> Page:
    """Say all that the report says, in its order."""
    words = ["arena", "study", "panel", *(str(files.paths[0]) for files in panel.verdicts)]
    words += ["--votes", str(panel.votes)] if panel.by_people else []
    words += panel.options.words()
    sources = [source for source in (*panel.verdicts, panel.votes) if isinstance(source, Files)]
    words += dict.fromkeys(word for files in sources for word in option_words(files))
    sections = [
        *_heat(panel),
        Section("Limits", points=tuple(_panel_limits(panel))),
        Section("Reproduce this report", code=shlex.join(words)),
    ]
    page = Page(
        title="How many independent judges is this panel worth?",
        opening=PANEL_OPENING,
        about=_panel_about(panel),
        answers=(
            Answer(f"Panel of {panel.card.k}", _tone(panel), panel.headline, panel.sentences),
        ),
        first=Section("The panel", table=_card(panel), more=tuple(_tables(panel))),
        sections=tuple(sections),
        made=made,
    )
    return page.answered() if panel.n_prompts < MIN_PROMPTS else page


def _tone(panel: Panel) -> Tone:
    """Colour the answer: well where the panel is certainly better than its best judge alone."""
    lead = panel.card.over_best
    if lead.lower is not None and lead.lower > 0:
        return "good"
    return "poor" if lead.upper is not None and lead.upper < 0 else "fair"


def _panel_about(panel: Panel) -> dict[str, str]:
    families = {judge.family for judge in panel.judges}
    truth = f"Votes: {panel.votes}" if panel.by_people else "Labels in the files"
    return {
        "Verdicts": joined([str(files) for files in panel.verdicts]),
        "Compared with": truth,
        "Items": f"{plural(panel.n_items, 'item')} of {plural(panel.n_prompts, 'prompt')}",
        "Judges": f"{plural(panel.card.k, 'judge')} of {len(families):,} "
        + ("family" if len(families) == 1 else "families"),
    }


def _card(panel: Panel) -> Table:
    one, level = panel.card, f"{100 * panel.options.level:g}%"
    least = ", at least" if panel.by_people else ""
    cells = {
        "Judges": f"{one.k}",
        f"Equivalent independent judges{least}": number_of(one.n_eff),
        "Equivalent independent judges, at most": number_of(one.at_most),
        "Mean correlation of errors": number_of(one.mean_correlation, 3),
        "Accuracy: mean of the judges": percent_of(one.mean),
        f"Accuracy: the best judge ({panel.best})": percent_of(one.best),
        "Accuracy: the majority": percent_of(one.majority),
        "Accuracy: majority of independent judges": percent_of(one.independent),
        "Gap to independent judges, percentage points": gap_of(one.gap),
        "Lead over the best judge, percentage points": gap_of(one.over_best),
    }
    return Table.of(
        ("The panel", "Value"),
        {name: (text,) for name, text in cells.items() if text != NONE},
        f"On {plural(panel.n_items, 'item')} with parsed verdicts of all judges. {level} "
        "intervals resample prompts. With half of the judges right, the panel is half right.",
    )


def _tables(panel: Panel) -> Iterator[Table]:
    yield Table.of(
        ("Judge", "Family", "Right", "Not read", "Items excluded"),
        {
            judge.name: (
                judge.family,
                percent_of(judge.accuracy),
                f"{judge.n_unread:,}",
                f"{judge.without:,}",
            )
            for judge in panel.judges
        },
        "Accuracy on the items for which every judge has a parsed verdict. An unparsed verdict is "
        "not an error. Items without a parsed verdict of one judge are excluded for all.",
    )
    if panel.card.k > 1:
        yield _correlations(panel)
        yield _order(panel, "Order by independence", panel.by_n_eff)
        yield _order(panel, "Order by accuracy", panel.by_accuracy)
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
        "1 if two judges err on the same items, 0 if the errors of one carry no information "
        f"about the other's. {NONE}: one of them errs on none or on all.",
    )


def _correlation(panel: Panel, i: int, j: int) -> str:
    value = panel.correlations[i, j]
    return "" if i == j else NONE if value != value else minus(f"{value:.2f}")


def _order(panel: Panel, name: str, order: Sequence[Mapping[str, Any]]) -> Table:
    return Table.of(
        (name, "Equivalent to", "Accuracy of the majority"),
        {
            f"{place}. {one['judge']}": (
                NONE if one["n_eff"] is None else f"{one['n_eff']:.2f}",
                percent(one["accuracy"]),
            )
            for place, one in enumerate(order, 1)
        },
        "Each line adds the judge that leaves the panel best, starting with the judge of the "
        f"highest accuracy. Selected on these {plural(panel.n_items, 'item')}.",
    )


def _families(panel: Panel) -> Iterator[Table]:
    if not panel.without_family:
        return
    gap = [] if panel.by_people else ["Gap to independent judges"]
    yield Table.of(
        ("Without the family", "Judges", "Equivalent to", "Accuracy of the majority", *gap),
        {
            family: (
                f"{one.k}",
                number_of(one.n_eff),
                percent_of(one.majority),
                *(gap_of(one.gap) for _ in gap),
            )
            for family, one in panel.without_family.items()
        },
        "The family is the column family of the verdicts, or else the letters at the start "
        "of a judge's name.",
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
        "Correlation of the errors of each two judges, in the order of the rows: blue if "
        "they err together, orange if one errs where the other does not."
    )
    yield Section("Correlated errors", figures=(Figure(svg, caption),))


def _panel_limits(panel: Panel) -> Iterator[str]:
    yield from foremost(panel.warnings, None)
    if panel.by_people:
        yield NOISY
    yield from LIMITS


def _panel_rows(panel: Panel) -> Iterator[dict[str, Any]]:
    """Give every figure as a row: part, name, other name, value and ends."""
    one = panel.card
    names = {name: name for name in ("n_eff", "at_most", "mean_correlation")}
    names |= {f"accuracy.{name}": name for name in SHARES} | {
        "gap": "gap",
        "over_best": "over_best",
    }
    for figure, name in names.items():
        yield _panel_row("panel", figure, "", getattr(one, name))
    for judge in panel.judges:
        yield _panel_row("accuracy", judge.name, "", judge.accuracy)
    for pair in panel.to_dict()["correlations"]:
        value = Estimate(pair["value"], None, None, panel.n_items)
        yield _panel_row("correlation", pair["a"], pair["b"], value)


def _panel_row(part: str, name: str, other: str, figure: Estimate) -> dict[str, Any]:
    return {"part": part, "name": name, "other": other} | figure.to_dict()


# Report on known labels


TRUTH_NAME = "truth"
TRUTH_TONES: Mapping[int, Tone] = {1: "good", 0: "fair", -1: "poor"}
TRUTH_OPENING = (
    "Each of these pairs has one side that is right by construction. This report counts "
    "how often a judge names it, in both orders."
)
NOTE = (
    "Accuracy: share of all verdicts, in both orders; a tie or an unparsed verdict is "
    "not right. Choosing at random is right in 50%. Intervals are for other prompts."
)
TRUTH_LIMITS = (
    "Accuracy on cases with a known answer is weak evidence for questions on which people differ.",
    "Truth sets are public: a judge may have been trained on their answers.",
)


def write_truth(study: TruthStudy, folder: Path, made: date) -> Path:
    """Write the report in every form into a folder, as `judge.report.page.write_forms`."""
    return write_forms(
        truth_page(study, made), study.to_dict(), list(_truth_rows(study)), folder, TRUTH_NAME
    )


def truth_page(study: TruthStudy, made: date) -> Page:
    """Say all that the report says, in its order."""
    more = [_table((study.by or "", "Judge"), study.parts)] if study.parts else []
    if study.leads:
        more.append(_lead_table(study))
    return Page(
        title="How accurate are these judges?",
        opening=TRUTH_OPENING,
        about={
            "Verdicts": joined([str(files) for files in study.verdicts]),
            "Labels": "in the files of verdicts" if study.labels is None else str(study.labels),
            "Cases": f"{study.n_cases:,}",
            "Judges": joined([one.judge for one in study.whole]),
        },
        answers=tuple(_truth_answer(study, one) for one in study.whole),
        first=Section("Accuracy", table=_table(("Judge",), study.whole), more=tuple(more)),
        sections=(
            Section("Limits", points=(*foremost(study.warnings, None), *TRUTH_LIMITS)),
            Section("Reproduce this report", code=_truth_command(study)),
        ),
        made=made,
    )


def _truth_answer(study: TruthStudy, one: Accuracy) -> Answer:
    headline, *rest = study.sentences(one)
    tone = TRUTH_TONES[study.shown[one.judge]]
    return Answer(one.judge, tone, headline, (*rest, *_comparisons(study, one)))


def _comparisons(study: TruthStudy, one: Accuracy) -> Iterator[str]:
    """Say of each pair once, behind its first judge."""
    for lead, text in zip(study.leads, study.comparisons, strict=True):
        if lead.first == one.judge:
            yield text


def _table(names: tuple[str, ...], rows: tuple[Accuracy, ...]) -> Table:
    head = ("Right", "In both orders", "Cases", "Ties", "Unparsed")
    return Table(
        (*names, *head),
        tuple((*((one.part,) if len(names) > 1 else ()), one.judge, *_cells(one)) for one in rows),
        note=NOTE,
    )


def _cells(one: Accuracy) -> tuple[str, ...]:
    right, scores = (percent_of(one.right), percent_of(one.right_in_both)), one.scores
    if scores is None:
        return (*right, *["0"] * 3)
    return (*right, *(f"{scores[name]:,}" for name in ("n", "n_tied", "n_unread")))


def _lead_table(study: TruthStudy) -> Table:
    return Table.of(
        ("Difference in accuracy", "Percentage points", "Cases"),
        {
            f"{lead.first} minus {lead.second}": (gap_of(lead.gap), f"{lead.gap.n:,}")
            for lead in study.leads
        },
        note=("On the cases that both judged in both orders, paired by prompt."),
    )


def _truth_rows(study: TruthStudy) -> Iterator[dict[str, Any]]:
    """Give every figure as a row: judge, part, name, value, ends and n."""
    for one in (*study.whole, *study.parts):
        for name, estimate in (("right", one.right), ("right_in_both", one.right_in_both)):
            yield {"judge": one.judge, "part": one.part, "figure": name} | estimate.to_dict()
    for lead in study.leads:
        named = {"judge": f"{lead.first} minus {lead.second}", "part": "all", "figure": "right"}
        yield named | lead.gap.to_dict()


def _truth_command(study: TruthStudy) -> str:
    """Write the command that makes this report."""
    words = ["arena", "study", "truth", *(str(files.paths[0]) for files in study.verdicts)]
    if study.labels is not None:
        words += ["--truth", str(study.labels.paths[0])]
    words += study.options.words()
    sources = [*study.verdicts, *([] if study.labels is None else [study.labels])]
    words += dict.fromkeys(word for files in sources for word in option_words(files))
    return shlex.join(words)
