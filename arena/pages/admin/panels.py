"""Each page of the admin room as HTML, from plain values."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Self

from arena.domain.answer import FAILURES
from arena.domain.board_view import Board
from arena.domain.model import Release, Standing
from arena.domain.room_view import (
    EXPORT_ENDINGS,
    EXPORTS,
    Acts,
    FlaggedBattle,
    Leaver,
    RaceStanding,
    RosterView,
    Status,
    Trial,
    VotersView,
)
from arena.pages.rendering import environment
from arena.pages.visit import Visit
from rating.sentences import Sentence
from rating.tables.voter_report import MOST

ACTS = {
    "invite": Sentence("invited"),
    "change person": Sentence("changed a person"),
    "add source": Sentence("registered the application"),
    "change source": Sentence("changed the application"),
    "revoke source": Sentence("revoked the application"),
    "exclude": Sentence("left out votes of"),
    "readmit": Sentence("took in votes of"),
    "apply rule": Sentence("applied the rule"),
    "add model": Sentence("added the model"),
    "enable model": Sentence("enabled the model"),
    "disable model": Sentence("disabled the model"),
    "retire model": Sentence("retired the model"),
    "pre-release model": Sentence("let battle unnamed the model"),
    "release model": Sentence("released the model"),
    "weigh model": Sentence("changed the weight of"),
    "export": Sentence("exported"),
    "erase words": Sentence("erased the words of"),
    "expire": Sentence("let go what was kept long enough:"),
    "clear space": Sentence("wrote the files anew"),
}
"""What somebody did, before the words or the id that it is about."""

EXAMPLE = """[[models]]
id = "basalt-large"
name = "Basalt Large"
endpoint = "https://api.example.com/v1"
model = "basalt-large-2026-10"
api_key_env = "BASALT_KEY"
"""
"""Table of a model, as it is pasted."""

KIND_WORDS = dict(
    zip(
        EXPORTS,
        (Sentence("Battles"), Sentence("Answers"), Sentence("Votes"), Sentence("Ratings")),
        strict=True,
    )
)

STANDINGS = {
    Standing.ENABLED: Sentence("enabled"),
    Standing.DISABLED: Sentence("disabled"),
    Standing.RETIRED: Sentence("retired"),
}


@dataclass(frozen=True, slots=True)
class AskedExport:
    """What somebody asks to be exported, in the words of the form.

    Attributes
    ----------
    since, until : str
        Days, such as 2026-11-01; empty for no bound.
    """

    what: str
    ending: str
    since: str
    until: str

    @classmethod
    def of_month(cls, today: date) -> Self:
        """Ask for the battles of the month in which a day lies."""
        first = today.replace(day=1)
        following = (first + timedelta(days=32)).replace(day=1)
        return cls(EXPORTS[0], EXPORT_ENDINGS[0], first.isoformat(), following.isoformat())


RELEASES = {
    Release.HIDDEN: Sentence("hidden"),
    Release.PRE_RELEASE: Sentence("pre-release"),
    Release.RELEASED: Sentence("released"),
}


def overview_page(status: Status, race: RaceStanding | None, now: datetime, visit: Visit) -> str:
    """Page of the last day, and of the race that is on."""
    return _filled("overview", visit, status=status, race=race, failures=FAILURES, now=now)


def log_page(acts: Acts, *, newest: bool, problem: Sentence | None, visit: Visit) -> str:
    """Page of what those who run the arena did; ``newest`` if it begins with the newest act."""
    return _filled("log", visit, acts=acts, newest=newest, problem=problem, acted=ACTS)


def voters_page(
    view: VotersView, done: Sentence | None, problem: Sentence | None, now: datetime, visit: Visit
) -> str:
    """Page of the voters: what speaks against whom, and whose votes are left out."""
    return _filled("voters", visit, problem=problem, done=done, view=view, now=now)


def erase_page(
    leaver: Leaver | None,
    *,
    erased: bool = False,
    tombstone: bool = False,
    problem: Sentence | None = None,
    visit: Visit,
) -> str:
    """Page before somebody's words are erased, with what would go; or after it, with what went.

    Without somebody it asks for an id. ``tombstone`` if their votes are to go, or went, as well.
    """
    return _filled(
        "erase", visit, problem=problem, leaver=leaver, erased=erased, tombstone=tombstone
    )


def flagged_page(
    flagged: Sequence[FlaggedBattle],
    done: Sentence | None,
    problem: Sentence | None,
    now: datetime,
    visit: Visit,
) -> str:
    """Page of the battles that rules have marked."""
    return _filled("battles", visit, problem=problem, done=done, flagged=flagged, now=now)


def policies_page(boards: Sequence[Board], held: Mapping[str, float], visit: Visit) -> str:
    """Page of the policies: what each counts, and which rules are held."""
    return _filled("policies", visit, boards=boards, held=held, most=MOST)


def exports_page(asked: AskedExport, problem: Sentence | None, visit: Visit) -> str:
    """Page of exports, with what was asked for in its form."""
    return _filled(
        "exports", visit, problem=problem, asked=asked, kinds=KIND_WORDS, endings=EXPORT_ENDINGS
    )


def models_page(
    view: RosterView,
    trials: Mapping[str, Trial],
    text: str,
    problem: str | None,
    now: datetime,
    visit: Visit,
) -> str:
    """Page of the roster; ``text`` is a roster that was pasted and could not be added."""
    return _filled(
        "models",
        visit,
        problem=problem,
        view=view,
        trials=trials,
        text=text,
        standings=STANDINGS,
        example=EXAMPLE,
        releases=RELEASES,
        now=now,
    )


def _filled(
    panel: str,
    visit: Visit,
    *,
    problem: str | None = None,
    done: Sentence | None = None,
    **values: object,
) -> str:
    template = environment(visit.language).get_template(f"admin/{panel}.html")
    return template.render(values, visit=visit, problem=problem, done=done, as_json=_as_json)


def _as_json(detail: object) -> str:
    return json.dumps(detail, ensure_ascii=False)
