"""`arena gold`: votes on pairs of which one answer is known to be right."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from arena.commands.arguments import AS_IT_IS, Flat, Renamed, TableOrJson
from arena.terminal import plain, show, table, write_json
from rating.errors import DataError

if TYPE_CHECKING:
    from judge.studies.gold import GoldStudy, GoldVote

SHOWN = 20


def gold(
    source: str,
    /,
    *,
    renamed: Annotated[Renamed, Flat] = AS_IT_IS,
    level: float = 0.95,
    form: TableOrJson = "table",
) -> None:
    """Say how often voters prefer the wrong answer, and how often each names the right one.

    Of the gold battles of an arena (ARENA_GOLD), or of votes in a file with a column gold. The
    share of votes for the wrong answer has an interval by voter and by item, and stands in thirds
    by how much longer the wrong answer is. Each voter's accuracy begins at 80 %, as if ten pairs
    had been answered. A tie is not right, and prefers nothing.

    Parameters
    ----------
    source
        Database URL, or file of votes (.parquet, .csv, .jsonl): winner, gold, voter, prompt_id,
        and response_a, response_b for their lengths.
    level
        Of the intervals.
    form
        How to write it.

    Examples
    --------
    arena gold sqlite:///arena.db
    arena gold votes.jsonl --column gold=truth --format json
    """
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
    if renamed != AS_IT_IS:
        msg = f"The votes of the database {source!r} are read whole: leave out other options."
        raise DataError(msg)
    from arena.store import gold as log
    from arena.store.engine import reading_existing

    with reading_existing(source) as session:
        return log.votes(session)


def _show(study: "GoldStudy") -> None:
    from judge.studies.estimates import percent, percent_of

    thirds = [
        (
            part.name,
            f"{2**part.gap_low:.2g} to {2**part.gap_high:.2g} times",
            f"{part.wrong.n:,}",
            percent_of(part.wrong),
        )
        for part in study.by_gap
    ]
    voters = [
        (
            one.voter,
            f"{one.right:,} of {one.answered:,}",
            f"{percent(one.accuracy)} ({percent(one.lower)} to {percent(one.upper)})",
        )
        for one in study.accuracies[:SHOWN]
    ]
    more = len(study.accuracies) - len(voters)
    gaps = table(("Third", "Length", "Votes", "Prefer wrong"), thirds, right=range(1, 4))
    people = table(("Voter", "Right", "Accuracy"), voters, right=range(1, 3))
    show(
        *map(plain, study.sentences),
        *([gaps] if thirds else []),
        *([people] if voters else []),
        *([plain(f"{more:,} more voters: --format json.")] if more else []),
    )
