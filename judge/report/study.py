"""A study as a report to hand on: one HTML file, and the same for other programs beside it."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from judge.methods import PUBLISHED, published
from judge.report.boards import (
    SEND,
    board_section,
    plan_section,
    powered_section,
    send_rows,
    win_rate_section,
)
from judge.report.files import Answer, Example, Page, Section, Table, Tone, write_forms
from judge.report.sections import (
    against_section,
    agreement_section,
    bias_section,
    calibration_section,
    chance_section,
    group_section,
    lead_table,
    licence_section,
)
from judge.studies.agreement import counts
from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.estimates import joined, plural
from judge.studies.gates import MIN_CASES, MIN_PROMPTS, RATERS, Verdict
from judge.studies.one_judge import JudgeStudy
from judge.studies.rows import RowTexts, read_texts
from judge.studies.study import Study
from rating import __version__
from rating.sentences import foremost
from rating.tables import formats
from rating.tables.files import Files
from rating.typing import Floats

MOST_A_PROMPT = 2


@dataclass(frozen=True, slots=True)
class Differing:
    """An item with its votes and verdicts.

    Attributes
    ----------
    votes, verdicts : tuple of int
        How many are for side A, a tie, and side B.
    """

    item: int
    votes: tuple[int, int, int]
    verdicts: tuple[int, int, int]


def differing(data: StudyData, judge: JudgeVerdicts, n: int = 6) -> tuple[Differing, ...]:
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
            chosen.append(Differing(item, _by_side(votes[item]), _by_side(verdicts[item])))
    return tuple(chosen)


def _mean(table: Floats) -> Floats:
    return np.asarray((table[:, 2] - table[:, 0]) / table.sum(axis=1))


def _by_side(row: Floats) -> tuple[int, int, int]:
    b, tie, a = (int(n) for n in row)
    return a, tie, b


NAME = "report"
N_EXAMPLES = 6
_OF_TEST = (
    *("winning_rate", "advantage", "margin", "coin", "longest"),
    *("person", "person_passed", "majority", "decides_at"),
)
OPENING = (
    "A judge is a model that says which of two answers is better. Here its verdicts are held "
    "against votes of people on the same answers."
)
TONES: Mapping[Verdict, Tone] = {
    "yes": "good",
    "no": "poor",
    "inconclusive": "fair",
}


def write_report(study: Study, folder: Path, made: date) -> Path:
    """Write the report in every form into a folder, which is made where it is not there.

    Returns
    -------
    Path
        The page to open; Markdown, LaTeX, JSON and Parquet stand beside it.

    Raises
    ------
    DataError
        If the folder cannot be written.
    """
    whole = write_forms(report_page(study, made), study.to_dict(), list(rows(study)), folder, NAME)
    (folder / SEND).unlink(missing_ok=True)  # of an earlier report
    if sent := list(send_rows(study.data, study.judges)):
        formats.write_text(formats.as_csv(sent), folder / SEND)
    return whole


def report_page(study: Study, made: date) -> Page:
    """Say all that a report says, in its order."""
    judges, level = study.judges, study.options.level
    sections = [] if study.licence is None else [licence_section(study.licence)]
    sections += [] if study.against is None else [against_section(study.against)]
    sections.append(chance_section(judges))
    if study.options.by is not None:
        sections.append(group_section(judges, study.options.by))
    if any(judge.biases is not None for judge in judges):
        sections.append(bias_section(judges, level))
    if any(judge.calibration is not None for judge in judges):
        sections.append(calibration_section(judges, level))
    if any(judge.compared is not None for judge in judges):
        sections.append(board_section(judges, study.contests))
    sections += [_examples(study, judge) for judge in study.data.judges]
    if any(judge.powered is not None for judge in judges):
        sections.append(powered_section(judges, level))
    if any(judge.plan is not None for judge in judges):
        sections.append(plan_section(judges))
    if any(judge.win_rates for judge in judges):
        sections.append(win_rate_section(judges, level))
    sections += [_data(study), _rules(study), _limits(study)]
    sections.append(Section("To make this again", code=command(study)))
    named = joined([judge.name for judge in judges])
    page = Page(
        title=f"May {named} stand in for people?",
        opening=OPENING,
        about=_about(study),
        answers=tuple(_answer(judge) for judge in judges),
        first=_first(study),
        sections=tuple(sections),
        made=made,
        version=__version__,
    )
    return page.answered() if all(j.n_prompts < MIN_PROMPTS for j in judges) else page


def _first(study: Study) -> Section:
    """Give the agreement of all judges, and theirs against each other where there are several."""
    section = agreement_section(study.judges, study.options.level)
    if study.against is None:
        return section
    return replace(section, more=(*section.more, lead_table(study.against)))


def _answer(judge: JudgeStudy) -> Answer:
    """Put the verdict on a judge on the page."""
    answer = judge.first_answer
    return Answer(judge.name, TONES[answer.verdict], answer.headline, answer.reasons[1:])


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
    first = study.judges[0]
    voters = "" if first.n_voters is None else f" by {plural(first.n_voters, 'person')}"
    voters = voters.replace("persons", "people")
    return {
        "Votes": f"{plural(first.n_votes, 'vote')}{voters}",
        "Items": f"{plural(first.n_items, 'item')} of {plural(first.n_prompts, 'prompt')}",
        "Models": f"{len(study.data.items.models):,}",
        "Judges": joined([judge.name for judge in study.judges]),
    }


def _examples(study: Study, judge: JudgeVerdicts) -> Section:
    chosen = differing(study.data, judge, N_EXAMPLES)
    texts = [
        read_texts(source, [int(own[one.item]) for one in chosen if own[one.item] >= 0])
        for source, own in zip((study.votes, study.verdicts), study.data.source_rows, strict=True)
    ]
    examples = tuple(_example(study, one, texts) for one in chosen)
    opening = (
        "Read some of these before you rely on any figure above: they are the items with the "
        "most votes on which the judge stands furthest from most people."
        if examples
        else "On no item does the judge prefer one side while most people prefer the other or "
        "see a tie."
    )
    title = f"Where {judge.name} and people differ most"
    return Section(title, (opening,), examples=examples)


def _example(study: Study, one: Differing, texts: list[dict[int, RowTexts]]) -> Example:
    data = study.data
    a, b = (data.items.models[model] for model in data.items.pairs[one.item])
    prompt = data.prompts[data.items.prompt[one.item]]
    rows = [
        of_rows[int(numbers[one.item])]
        for of_rows, numbers in zip(texts, data.source_rows, strict=True)
        if int(numbers[one.item]) in of_rows
    ]
    sides = _responses(rows, a)
    if study.outputs is not None:
        sides = study.outputs.of(data.items, data.prompts, one.item)
    asked = study.texts.get(prompt) or next((row.prompt for row in rows if row.prompt), None)
    reason = next((row.reason for row in rows if row.reason), None)
    checklist = next((row.checklist for row in rows if row.checklist), None)
    written = "\n\n".join(text for text in (checklist, reason) if text)
    return Example(
        title=f"{a} and {b}" + (f", prompt {prompt}" if prompt else ""),
        prompt=asked,
        answers=((a, sides[0]), (b, sides[1])),
        people=_counts(one.votes, a, b),
        judge=_counts(one.verdicts, a, b),
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
        "Prompts": [judge.n_prompts for judge in study.judges],
        "Verdicts that were not read": [judge.n_unread for judge in study.judges],
    }
    table = Table.of(
        ("What was compared", *(judge.name for judge in study.judges)),
        {
            name: ["not known" if n is None else f"{n:,}" for n in numbers]
            for name, numbers in counted.items()
        },
        f"Votes: {study.votes}. Verdicts: {study.verdicts}. Matched by {study.data.keyed_by}. A "
        "verdict that was not read is in no figure, and is no tie.",
    )
    return Section("The data", table=table)


def _rules(study: Study) -> Section:
    options = study.options
    compared = {
        "all": "Every verdict is compared with every vote of its item.",
        "majority": "Every verdict is compared with what most votes of its item say; where two "
        "answers lead, with a tie.",
    }[options.pairs]
    voters = "" if options.voters is None else f" Only voters like {options.voters} count."
    points = (
        f"{compared}{voters} People are compared with people over all pairs of votes by "
        "different people on the same items.",
        "Both kinds of tie are one. Sides are turned so that an item has the same side A in votes "
        "and verdicts.",
        f"The people are taken as {RATERS[options.raters]} (--raters {options.raters}): that sets "
        "how far a judge may fall behind one of them in the alternative-annotator test.",
        f"A rule that reads nothing is compared with a judge on {MIN_CASES} items or more on "
        "which it, the judge and a vote prefer a side; otherwise it is left out.",
        f"Intervals: {100 * options.level:g} %. Prompts are drawn with replacement "
        f"({options.rounds:,} times, seed {options.seed}), for whatever depends within a prompt "
        "stays together. Where every draw gives the same, a share has the interval that so many "
        "prompts of one mind leave, and other figures have none.",
        *(_asked(judge) for judge in study.data.judges),
        f"Models: {joined(study.data.items.models)}.",
    )
    return Section("The rules of the comparison", points=points)


def _asked(judge: JudgeVerdicts) -> str:
    """Say how a judge was asked, as far as the file of verdicts does."""
    if not judge.methods:
        return (
            f"How {judge.name} was asked is not in the file of verdicts: take its instructions "
            "and settings from whoever asked."
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
        "Agreement with these people on these prompts says little of other people, other "
        "languages, other tasks or other models.",
        "People can be wrong together: agreement is not truth.",
        "Items are as the votes chose them. If people were asked about some kinds more often, so "
        "are these figures of them.",
    )
    return Section("Limits", points=(*foremost(study.warnings), *always))


def option_words(files: Files) -> Iterator[str]:
    """Give the options that say what is read of files, each as one word."""
    if files.where is not None:
        yield f"--where={files.where}"
    yield from (f"--column={ours}={theirs}" for ours, theirs in files.columns)
    yield from (f"--label={theirs}={ours}" for theirs, ours in files.labels)


def command(study: Study) -> str:
    """Write the command that makes this report."""
    words = ["arena", "study", "judge", str(study.votes), str(study.verdicts)]
    words += study.options.words()
    if (licence := study.licence) is not None:
        words += ["--licence", "judge.toml", "--margin", f"{licence.margin:g}"]
        words += ["--until", licence.until.isoformat()]
        words += ["--votes-a-year", str(licence.votes_a_year)]
    sources = [source for source in (study.votes, study.verdicts) if isinstance(source, Files)]
    words += dict.fromkeys(word for files in sources for word in option_words(files))
    return shlex.join([*words, "--out", "study"])
