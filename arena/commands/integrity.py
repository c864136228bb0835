"""`arena exclude` and `arena readmit`: votes that count no longer, and again."""

from contextlib import closing
from datetime import UTC, datetime

from arena.commands.arguments import Database
from arena.domain.vote import DEFAULT
from arena.errors import SettingsError
from arena.terminal import say

BY_HAND = "by hand"


def exclude(target: str, /, *, reason: str, database: Database = None) -> None:
    """Leave the votes of a voter, or one vote, out of the leaderboard from here on.

    Nothing is deleted: a row with the reason is added to the record, and the leaderboard says how
    many votes are left out and why. Votes that the voter casts later count.

    Parameters
    ----------
    target
        Id of a voter, or of a battle for the vote on it.
    reason
        Why, in words that anybody may read.

    Examples
    --------
    arena exclude 9f86d081884c7d65 --reason "paid for by a vendor"
    arena exclude b7kq2m --reason "a test of ours" --database sqlite:///arena-demo.db
    """
    from arena.store import exclusions  # the store takes two seconds to import
    from arena.store.exclusions import Grounds
    from arena.store.store import Store
    from rating import __version__

    _require_words(reason)
    with closing(Store(_url(database))) as store, store.writing() as session:
        battles = exclusions.battles_meant(session, target)
        _require_votes(target, battles)
        grounds, now = Grounds(BY_HAND, __version__, reason.strip()), datetime.now(UTC)
        fresh = exclusions.exclude(session, DEFAULT.name, battles, grounds, now)
        if target not in battles:
            exclusions.flag(session, grounds, now, voter=target)
    already = f"; {len(battles) - fresh:,} were before" if fresh < len(battles) else ""
    say(f"{target}: {fresh:,} votes are left out of {DEFAULT.name}{already}.")


def readmit(target: str, /, *, reason: str = "readmitted", database: Database = None) -> None:
    """Take the votes of a voter, or one vote, in again that were left out.

    The rows that left them out stay; newer ones take them back. What was readmitted is not left
    out again by arena voters --apply.

    Parameters
    ----------
    target
        Id of a voter, or of a battle for the vote on it.
    reason
        Why, in words that anybody may read.

    Examples
    --------
    arena readmit 9f86d081884c7d65
    arena readmit b7kq2m --reason "it was a person" --database sqlite:///arena-demo.db
    """
    from arena.store import exclusions
    from arena.store.store import Store
    from rating import __version__

    _require_words(reason)
    with closing(Store(_url(database))) as store, store.writing() as session:
        battles = exclusions.battles_meant(session, target)
        _require_votes(target, battles)
        fresh = exclusions.readmit(
            session,
            DEFAULT.name,
            battles,
            version=__version__,
            reason=reason.strip(),
            now=datetime.now(UTC),
        )
    say(f"{target}: {fresh:,} votes count again in {DEFAULT.name}.")


def _url(database: str | None) -> str:
    from arena.settings import read_settings

    return read_settings(database=database).database


def _require_words(reason: str) -> None:
    if not reason.strip():
        msg = f"--reason {reason!r} says nothing: the leaderboard shows it to everybody."
        raise SettingsError(msg)


def _require_votes(target: str, battles: list[str]) -> None:
    if not battles:
        msg = (
            f"{target!r} is neither a voter with votes nor a battle with a vote: take an id from "
            "arena voters or from the address of a battle."
        )
        raise SettingsError(msg)
