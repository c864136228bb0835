"""`arena status`: how the arena did in the last day."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from arena.commands.arguments import Database, TableOrJson
from arena.domain.answer import FAILURES, FailureClass
from arena.terminal import plain, show, table, write_json

if TYPE_CHECKING:
    from arena.domain.room_view import RaceStanding, Status


def status(*, database: Database = None, form: TableOrJson = "table") -> None:
    """Say how the arena did in the last day: battles, votes, money, and what failed.

    For each model how soon it begins to answer, what it cost, and what its endpoint said when it
    last failed; how the race stands that ARENA_RACE names; and how many votes the leaderboard
    excludes, by reason. Nothing is written.

    Parameters
    ----------
    form
        How to write it.

    Examples
    --------
    arena status
    arena status --database sqlite:///team.db --format json
    """
    from arena.boards.background import standing_of
    from arena.domain.vote import DEFAULT
    from arena.settings import read_settings
    from arena.store import blocks, gold, last_day, log  # the store takes two seconds to import
    from arena.store.engine import reading_existing
    from judge.studies.gold import study_gold

    settings = read_settings(database=database)
    with reading_existing(settings.database) as session:
        day = last_day.status(session, datetime.now(UTC), settings.max_dollars_per_day)
        between = settings.between()
        race = None
        if between:
            votes = blocks.columns(session, DEFAULT, after=log.newest(session))
            race = standing_of(votes, between)
        on_gold = study_gold(gold.votes(session))
        excluded = log.excluded(session, DEFAULT)
    if form == "json":
        of_gold = {"votes": on_gold.votes, "right": on_gold.right, "wrong": asdict(on_gold.wrong)}
        beside = {"race": race and asdict(race), "gold": of_gold, "excluded": excluded}
        write_json(_as_json(day) | beside)
        return
    budget = "no limit" if day.budget is None else f"of ${day.budget:,.2f}"
    head = (
        f"{day.running:,} battles are being answered. In the last 24 hours {day.battles:,} began, "
        f"{day.votes:,} votes were cast, and ${day.dollars:,.2f} were spent ({budget})."
    )
    names = ("Model", "Answers", "Failed", "First token", "95 %", "Dollars")
    rows = [
        (
            model.model,
            f"{model.answers:,}",
            f"{model.failed:,}",
            _seconds(model.first_token_p50_s),
            _seconds(model.first_token_p95_s),
            f"{model.dollars:,.2f}",
        )
        for model in day.models
    ]
    sentences = [*([_of_race(race)] if race else []), *_sentences(day)]
    if on_gold.votes:
        sentences.append(f"Gold battles so far: {on_gold.sentences[0]}")
    if excluded:
        most_first = sorted(excluded.items(), key=lambda one: (-one[1], one[0]))
        by_reason = ", ".join(f"{votes:,} {why}" for why, votes in most_first)
        sentences.append(f"{DEFAULT.name} excludes {excluded.total():,} votes: {by_reason}.")
    show(plain(head), *([table(names, rows)] if rows else []), *map(plain, sentences))


def _of_race(race: "RaceStanding") -> str:
    first, second = race.between
    if race.lead is None:
        return (
            f"Race of {first} and {second}: nothing can be said yet ({race.votes:,} votes of "
            f"{race.voters:,} voters)."
        )
    state = "separated: the race may end" if race.separated else "not separated"
    return (
        f"Race of {first} and {second}: {race.lead:+.0f} points ({race.lower:+.0f} to "
        f"{race.upper:+.0f}) after {race.votes:,} votes of {race.voters:,} voters; {state} "
        f"({100 * race.level:g} %, however often one looks)."
    )


def _sentences(day: "Status") -> Iterator[str]:
    for model in day.models:
        for one in model.failures:
            yield (
                f"{model.model}: {FAILURES[one.failure]}, {one.times:,} times, last at "
                f"{one.last:%Y-%m-%d %H:%M} UTC: {one.sentence}"
            )

    failures = {one.failure for model in day.models for one in model.failures}
    if FailureClass.AUTH in failures:
        yield "A refused key is mended in the file that ARENA_KEYS names; the next request has it."
    if FailureClass.NO_CREDIT in failures:
        yield (
            "An account without credit is topped up at its provider. Its models are not drawn for "
            "10 minutes after each refusal."
        )


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.2f} s"


def _as_json(day: "Status") -> dict[str, object]:
    whole = asdict(day) | {"since": day.since.isoformat()}
    for model in whole["models"]:
        for one in model["failures"]:
            one["last"] = one["last"].isoformat()
    return whole
