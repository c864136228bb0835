"""Items of a study from prompts: models answer them when the study is created."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from arena.commands.arguments import RosterFile
from arena.commands.bench_options import names
from arena.terminal import say, stop
from judge.errors import RERUN
from rating.errors import DataError

if TYPE_CHECKING:
    from judge.bench.answering import Given
    from judge.tables.items import Item
    from judge.tables.rating_items import RatingItem

FEWEST = 2
SHOWN = 10
"""Failures that are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAnswers:
    """Who answers the prompts of a study, when it is created.

    Attributes
    ----------
    models : tuple of str or None
        Ids in the roster, parted by commas: they answer the prompts of --items now, two of them
        to be compared, up to 12 to be put in order. Answers that a bench of this database has got
        already are taken from there.
    budget : float or None
        Stop before more than this is spent on answers.
    max_tokens : int or None
        Most tokens of an answer; as the roster says (4096) if not given.
    """

    models: Annotated[tuple[str, ...] | None, Parameter(metavar="A,B,C", converter=names)] = None
    budget: Annotated[float | None, Parameter(metavar="USD")] = None
    max_tokens: int | None = None
    roster: RosterFile = None


GIVEN = LiveAnswers()


def answered_items(file: Path, chosen: LiveAnswers, database: str | None) -> "list[RatingItem]":
    """Let models answer prompts, and make an item of each that all have answered.

    What failed is listed, and is no item. Ends the command with 1 where it stopped before the end:
    the same command goes on.

    Raises
    ------
    DataError, SettingsError
        If the prompts or the options cannot be used, or no prompt has all answers.
    """
    from arena.commands.bench_work import Bench, at_desk, cast, require_prices
    from arena.commands.judge_work import JudgeOptions
    from arena.settings import read_settings
    from judge.tables.items import read_items
    from judge.tables.rating_items import MOST_RESPONSES

    models = chosen.models or ()
    if not FEWEST <= len(models) <= MOST_RESPONSES:
        msg = (
            f"--models names {len(models)} ({', '.join(models)}): give {FEWEST} to "
            f"{MOST_RESPONSES} of the roster."
        )
        raise DataError(msg)
    items = read_items(file)
    roster = read_settings(database=database, roster=chosen.roster).roster
    asked = cast(models, {}, len(items), roster, "--models")
    if chosen.budget is not None:
        require_prices(asked, None)
    bench = Bench(
        name="study",
        items=items,
        method=None,
        models=models,
        baseline=None,
        known={},
        asked=asked,
        judge=None,
        options=JudgeOptions(budget=chosen.budget, database=database, roster=chosen.roster),
        max_tokens=chosen.max_tokens,
    )
    with at_desk(bench, database, chosen.roster) as desk:
        answers = desk.answer()
    if answers.why:
        stop(answers.why, f"No study is made yet. {RERUN}")
    say(
        f"{answers.n_asked:,} answers asked for now, {answers.n_recalled:,} known before"
        + ("." if answers.spent_usd is None else f", ${answers.spent_usd:.4g}.")
    )
    made = _items(items, answers.given)
    if not made:
        raise DataError(f"No prompt of {str(file)!r} was answered by all of {', '.join(models)}.")
    return made


def _items(items: "Sequence[Item]", given: "Mapping[str, Sequence[Given]]") -> "list[RatingItem]":
    """Make an item of each prompt that all have answered, and list what is left out."""
    from judge.case import Message
    from judge.tables.rating_items import MOST_CHARACTERS, RatingItem, Response, dialogue

    left_out, made = [], []
    for at, item in enumerate(items):
        own = {model: answers[at] for model, answers in given.items()}
        failed = [
            f"{model} on {item.id!r}: {one.failure}{f' ({one.detail})' if one.detail else ''}"
            for model, one in own.items()
            if not one.whole
        ]
        size = sum(len(text) for one in own.values() for text in (*one.texts, *item.further))
        if not failed and size + sum(len(m.content) for m in item.prompt) > MOST_CHARACTERS:
            failed = [f"{item.id!r}: more than {MOST_CHARACTERS:,} characters"]
        left_out += failed
        if not failed:
            further = [Message("user", turn) for turn in item.further]
            responses = tuple(
                Response(model, dialogue(further, one.texts)) for model, one in own.items()
            )
            made.append(RatingItem(item.id, item.id, tuple(item.prompt), responses))
    for line in left_out[:SHOWN]:
        say(f"No item: {line}.", error=True)
    if len(left_out) > SHOWN:
        say(f"And {len(left_out) - SHOWN:,} more failures.", error=True)
    if left_out:
        say(f"{len(items) - len(made):,} of {len(items):,} prompts are no items.", error=True)
    return made
