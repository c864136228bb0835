"""The report on judges that were held against labels taken as truth."""

import shlex
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from judge.report.files import Answer, Page, Section, Table, Tone, write_forms
from judge.report.study import option_words
from judge.studies.estimates import gap_of, joined, percent_of
from judge.studies.truth import Accuracy, TruthStudy
from rating import __version__
from rating.sentences import foremost

NAME = "truth"
TONES: Mapping[int, Tone] = {1: "good", 0: "fair", -1: "poor"}
OPENING = (
    "Each of these pairs has a side that is right by construction. Here it is counted how often a "
    "judge names it, whichever side it is shown first."
)
NOTE = (
    "Right: of all verdicts, in both orders; a tie is not right, and a verdict that was not read "
    "is not. A coin is right in 50 %. Intervals are for other prompts."
)
LIMITS = (
    "That a judge is right where right is known says little of questions on which people differ.",
    "Truth sets are public: a judge may have learnt their answers.",
)


def write_truth(study: TruthStudy, folder: Path, made: date) -> Path:
    """Write the report in every form into a folder, as `judge.report.files.write_forms`."""
    return write_forms(truth_page(study, made), study.to_dict(), list(rows(study)), folder, NAME)


def truth_page(study: TruthStudy, made: date) -> Page:
    """Say all that the report says, in its order."""
    more = [_table((study.by or "", "Judge"), study.parts)] if study.parts else []
    if study.leads:
        more.append(_lead_table(study))
    return Page(
        title="How often are these judges right?",
        opening=OPENING,
        about={
            "Verdicts": joined([str(files) for files in study.verdicts]),
            "Labels": "beside the verdicts" if study.labels is None else str(study.labels),
            "Cases": f"{study.n_cases:,}",
            "Judges": joined([one.judge for one in study.whole]),
        },
        answers=tuple(_answer(study, one) for one in study.whole),
        first=Section(
            "Right, tied and unread", table=_table(("Judge",), study.whole), more=tuple(more)
        ),
        sections=(
            Section("Limits", points=(*foremost(study.warnings), *LIMITS)),
            Section("To make this again", code=command(study)),
        ),
        made=made,
        version=__version__,
    )


def _answer(study: TruthStudy, one: Accuracy) -> Answer:
    headline, *rest = study.sentences(one)
    tone = TONES[study.shown[one.judge]]
    return Answer(one.judge, tone, headline, (*rest, *_comparisons(study, one)))


def _comparisons(study: TruthStudy, one: Accuracy) -> Iterator[str]:
    """Say of each pair once, behind its first judge."""
    for lead, text in zip(study.leads, study.comparisons, strict=True):
        if lead.first == one.judge:
            yield text


def _table(names: tuple[str, ...], rows: tuple[Accuracy, ...]) -> Table:
    head = ("Right", "In both orders", "Cases", "Ties", "Unread")
    return Table(
        (*names, *head),
        tuple((*((one.part,) if len(names) > 1 else ()), one.judge, *_cells(one)) for one in rows),
        note=NOTE,
    )


def _cells(one: Accuracy) -> tuple[str, ...]:
    right, scores = (percent_of(one.right), percent_of(one.right_in_both)), one.scores
    if scores is None:
        return (*right, *["0"] * 3)
    return (*right, f"{scores.n:,}", f"{scores.n_tied:,}", f"{scores.n_unread:,}")


def _lead_table(study: TruthStudy) -> Table:
    return Table.of(
        ("Right more often", "Points of a per cent", "Cases"),
        {
            f"{lead.first} less {lead.second}": (gap_of(lead.gap), f"{lead.gap.n:,}")
            for lead in study.leads
        },
        note="On the cases that both were asked in both orders, the same prompts drawn for both.",
    )


def rows(study: TruthStudy) -> Iterator[dict[str, Any]]:
    """Give every figure as a row: judge, part, name, value, ends and n."""
    for one in (*study.whole, *study.parts):
        for name, estimate in (("right", one.right), ("right_in_both", one.right_in_both)):
            yield {"judge": one.judge, "part": one.part, "figure": name} | estimate.to_dict()
    for lead in study.leads:
        named = {"judge": f"{lead.first} less {lead.second}", "part": "all", "figure": "right"}
        yield named | lead.gap.to_dict()


def command(study: TruthStudy) -> str:
    """Write the command that makes this report."""
    words = ["arena", "study", "truth", *(str(files.paths[0]) for files in study.verdicts)]
    if study.labels is not None:
        words += ["--truth", str(study.labels.paths[0])]
    words += study.options.words()
    sources = [*study.verdicts, *([] if study.labels is None else [study.labels])]
    words += dict.fromkeys(word for files in sources for word in option_words(files))
    return shlex.join([*words, "--out", "truth"])
