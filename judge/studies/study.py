"""May a judge stand in for people: all that votes and verdicts on the same items say."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from judge.studies.alignment import Outputs
from judge.studies.boards import Contest, contest
from judge.studies.corrected import win_rates
from judge.studies.data import JudgeVerdicts, StudyData, read_study, shared_by
from judge.studies.licence import Licence
from judge.studies.one_judge import JudgeStudy, identified, study_judge
from judge.studies.options import StudyOptions
from judge.studies.plan import plan_votes
from judge.studies.rows import Source
from judge.studies.side_by_side import SideBySide, side_by_side
from judge.tables.cases import read_outputs, read_prompts

Progress = Callable[[int, int, str], None]
"""Called with the steps done, the steps in all, and what is done next."""


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """The studies of all judges.

    Attributes
    ----------
    votes, verdicts : str
        Where these were read.
    contests : mapping of (str, str) to Contest
        By how much the board of one judge goes better with that of people than another's.
    against : SideBySide or None
        Judges against each other on the same items; None of a single one.
    outputs : Outputs or None
    texts : mapping of str to str
        Texts of prompts, by name; empty where not at hand.
    licence : Licence or None
        Where the one judge may stand in for people; None where that was not asked for.
    """

    votes: Source
    verdicts: Source
    options: StudyOptions
    data: StudyData
    judges: tuple[JudgeStudy, ...]
    contests: Mapping[tuple[str, str], Contest]
    against: SideBySide | None
    outputs: Outputs | None
    texts: Mapping[str, str]
    licence: Licence | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to keep in mind, each once."""
        every = {judge.name: [*judge.warnings, *judge.missing()] for judge in self.judges}
        common = set.intersection(*map(set, every.values()))
        warnings = (
            text if text in common else f"{name}: {text}"
            for name, texts in every.items()
            for text in texts
        )
        return tuple(dict.fromkeys(warnings))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: of the one judge, or of several by name."""
        by_judge = {judge.name: judge.to_dict() for judge in self.judges}
        if self.licence is not None:
            by_judge[self.licence.judge]["licence"] = self.licence.to_dict()
        if self.against is None:
            return next(iter(by_judge.values()))
        return {"judges": by_judge, "against_each_other": self.against.to_dict()}


def study_judges(
    votes: Source, verdicts: Source, options: StudyOptions, progress: Progress = lambda *_: None
) -> Study:
    """Compare the verdicts of one judge or several with votes of people.

    Parameters
    ----------
    votes, verdicts : path, Files or LoggedVotes
        Files; for votes also an arena's log.

    Raises
    ------
    DataError
        If a source cannot be read, the two have nothing in common, or an option does not fit.
    """
    progress(0, 0, ", reading")
    data = read_study(votes, verdicts, voters=options.voters, by=options.by)
    outputs = None
    if options.outputs is not None:
        outputs = Outputs(read_outputs(options.outputs, data.items.models, data.prompts))
        data = _measured(data, outputs)
    texts = read_prompts(options.prompts, data.prompts) if options.prompts else {}
    judges = _studied(data, options, progress)
    contests = dict(_contests(judges, options))
    boards = next((judge.boards for judge in judges if judge.boards is not None), None)
    against = side_by_side(data, options, None if boards is None else boards[0])
    return Study(votes, verdicts, options, data, judges, contests, against, outputs, texts)


def _contests(
    judges: Sequence[JudgeStudy], options: StudyOptions
) -> Iterator[tuple[tuple[str, str], Contest]]:
    for one, other in combinations(judges, 2):
        if one.boards is not None and other.boards is not None:
            boards = (one.boards[0], one.boards[1], other.boards[1])
            yield (one.name, other.name), contest(*boards, options.draws())


def _studied(data: StudyData, options: StudyOptions, progress: Progress) -> tuple[JudgeStudy, ...]:
    total = len(data.judges) * (1 + len(data.groups))
    studies = []
    for place, judge in enumerate(data.judges):
        done = place * (1 + len(data.groups))

        def tell(part: str, done: int = done, name: str = judge.name) -> None:
            progress(done, total, f", {part} of {name}")

        whole = study_judge(data, judge, options, tell)
        groups = {}
        for number, (value, part) in enumerate(data.groups.items(), 1):
            progress(done + number, total, f", {options.by} {value} of {judge.name}")
            own = next((one for one in part.judges if one.name == judge.name), None)
            if own is not None and shared_by(part, own).items.n:
                groups[value] = study_judge(part, own, options, lambda _: None)
        studies.append(replace(_planned(data, judge, whole, options), groups=groups))
    return tuple(studies)


def _planned(
    data: StudyData, judge: JudgeVerdicts, whole: JudgeStudy, options: StudyOptions
) -> JudgeStudy:
    """Add what follows from all of the votes and verdicts together."""
    warnings = list(whole.warnings)
    powered, bought = whole.powered, None
    if powered is not None:
        bought = identified(
            "Plan of votes",
            lambda: plan_votes(data, judge, powered, options.draws().rng),
            warnings,
        )
    rates = win_rates(data.items, data.people, judge.verdicts, options.level)
    return replace(whole, plan=bought, win_rates=rates, warnings=tuple(warnings))


def _measured(data: StudyData, outputs: Outputs) -> StudyData:
    """Take length and format from the responses, where the files do not tell."""
    gaps = outputs.gaps(data.items, data.prompts) | dict(data.items.gaps)
    groups = {value: _measured(part, outputs) for value, part in data.groups.items()}
    return replace(data, items=replace(data.items, gaps=gaps), groups=groups)
