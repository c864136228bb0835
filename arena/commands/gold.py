"""`arena gold`: votes on pairs of which one answer is known to be right, or breaks a rule."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from arena.commands.arguments import AS_IT_IS, Flat, Renamed, TableOrJson
from arena.terminal import plain, show, table, write_json
from rating.errors import DataError

if TYPE_CHECKING:
    from judge.ifeval import Task
    from judge.studies.gold import ByGap, GoldStudy
    from judge.studies.gold_voters import GoldVote
    from judge.studies.instructed import InstructedStudy, ReadVote

SHOWN = 20


def gold(
    source: str,
    /,
    *,
    instructions: Path | None = None,
    renamed: Annotated[Renamed, Flat] = AS_IT_IS,
    level: float = 0.95,
    form: TableOrJson = "table",
) -> None:
    """Say how often voters prefer the wrong answer, and how often each names the right one.

    Of the gold battles of an arena (ARENA_GOLD), or of votes in a file with a column gold. The
    share of votes for the wrong answer has an interval by voter and by item, and stands in thirds
    by how much longer the wrong answer is. Each voter's accuracy begins at 80 %, as if ten pairs
    had been answered. A tie is not right, and prefers nothing.

    With --instructions: of votes on prompts whose instructions can be checked (no comma, so many
    words), how often the answer that breaks one is preferred to one that follows them, in all and
    by kind of instruction.

    Parameters
    ----------
    source
        Database URL, or file of votes (.parquet, .csv, .jsonl): winner, gold, voter, prompt_id,
        and response_a, response_b for their lengths.
    instructions
        Prompts with instruction_id_list and kwargs, as in IFEval's input_data.jsonl.
    level
        Of the intervals.
    form
        How to write it.

    Examples
    --------
    arena gold sqlite:///arena.db
    arena gold votes.jsonl --column gold=truth --format json
    arena gold sqlite:///arena.db --instructions input_data.jsonl
    """
    if instructions is not None:
        _notice(source, instructions, renamed, level, form)
        return
    from judge.studies.gold import study_gold  # numpy and scipy take half a second

    study = study_gold(_votes(source, renamed), level)
    if form == "json":
        write_json(study.to_dict())
    else:
        _show(study)


def _votes(source: str, renamed: Renamed) -> "Sequence[GoldVote]":
    if "://" not in source:
        from judge.studies.gold import read_gold_votes

        return read_gold_votes(renamed.votes(source))
    _read_whole(source, renamed)
    from arena.store import gold as log
    from arena.store.engine import reading_existing

    with reading_existing(source) as session:
        return log.votes(session)


def _read_whole(source: str, renamed: Renamed) -> None:
    if renamed != AS_IT_IS:
        msg = f"The votes of the database {source!r} are read whole: leave out other options."
        raise DataError(msg)


def _notice(
    source: str, instructions: Path, renamed: Renamed, level: float, form: TableOrJson
) -> None:
    from judge.studies.instructed import check_votes, study_instructed
    from judge.tables.cases import read_tasks

    tasks = {task.prompt: task for task in read_tasks(instructions)}
    study = study_instructed(*check_votes(_with_texts(source, renamed, tasks), tasks), level)
    if form == "json":
        write_json(study.to_dict())
    else:
        _show_kinds(study)


def _with_texts(
    source: str, renamed: Renamed, tasks: "Mapping[str, Task]"
) -> "Sequence[ReadVote]":
    if "://" not in source:
        from judge.studies.instructed import read_votes_with_texts

        return read_votes_with_texts(renamed.votes(source))
    _read_whole(source, renamed)
    from arena.store import instructed as log
    from arena.store.engine import reading_existing

    with reading_existing(source) as session:
        return log.votes(session, tasks)


def _show_kinds(study: "InstructedStudy") -> None:
    from judge.studies.estimates import percent_of

    kinds = [(one.id, f"{one.violator.n:,}", percent_of(one.violator)) for one in study.by_kind]
    by_kind = table(("Instruction", "Votes", "Prefer violator"), kinds, right=range(1, 3))
    show(
        *map(plain, study.sentences),
        *([by_kind] if kinds else []),
        *_thirds(study.by_gap, "Prefer violator"),
    )


def _thirds(by_gap: "Sequence[ByGap]", wrong: str) -> list[Any]:
    from judge.studies.estimates import percent_of

    rows = [
        (
            part.name,
            f"{2**part.gap_low:.2g} to {2**part.gap_high:.2g} times",
            f"{part.wrong.n:,}",
            percent_of(part.wrong),
        )
        for part in by_gap
    ]
    return [table(("Third", "Length", "Votes", wrong), rows, right=range(1, 4))] if rows else []


def _show(study: "GoldStudy") -> None:
    from judge.studies.estimates import percent

    voters = [
        (
            one.voter,
            f"{one.right:,} of {one.answered:,}",
            f"{percent(one.accuracy)} ({percent(one.lower)} to {percent(one.upper)})",
        )
        for one in study.accuracies[:SHOWN]
    ]
    more = len(study.accuracies) - len(voters)
    people = table(("Voter", "Right", "Accuracy"), voters, right=range(1, 3))
    show(
        *map(plain, study.sentences),
        *_thirds(study.by_gap, "Prefer wrong"),
        *([people] if voters else []),
        *([plain(f"{more:,} more voters: --format json.")] if more else []),
    )
