"""A file of an export that a page asks for, made in a process of its own: no battle waits."""

from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock

from arena.boards.export import export_battles, export_votes
from arena.boards.leaderboard import export_ratings
from arena.domain.room_view import EXPORT_ENDINGS, EXPORTS
from arena.domain.vote import DEFAULT, Days
from arena.errors import ArenaError, RoomError
from arena.store import log, transcripts
from arena.store.store import Store, existing
from rating.errors import RatingError
from rating.sentences import Sentence

ANOTHER = Sentence("Another export is being made: wait until it is there.")
EMPTY_DAYS = Sentence("Nothing lies between these days: the first has to come before the other.")
UNKNOWN = Sentence("Choose what is to be exported, and as what.")
_ONE_AT_A_TIME = Lock()


def make_file(url: str, what: str, ending: str, days: Days, vote_within: timedelta) -> Path:
    """Export what `DEFAULT` counts to a new file, in a folder of its own that the caller removes.

    Parameters
    ----------
    url : str
        Of the database.
    what, ending : str
        One of `EXPORTS`, and of `EXPORT_ENDINGS`.
    vote_within : timedelta
        How long a battle takes a vote after its models were last asked.

    Raises
    ------
    RoomError
        If that cannot be exported, or another export is being made.
    """
    if what not in EXPORTS or ending not in EXPORT_ENDINGS:
        raise RoomError(UNKNOWN)
    if days.since and days.until and days.until <= days.since:
        raise RoomError(EMPTY_DAYS)
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise RoomError(ANOTHER)
    file = Path(mkdtemp(prefix="arena-export-")) / f"{what}.{ending}"
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            why_not = pool.submit(_export, url, what, file, days, vote_within).result()
        if why_not:
            raise RoomError(Sentence("Nothing was exported: %(why)s", why=why_not))
    except BaseException:
        rmtree(file.parent)
        raise
    finally:
        _ONE_AT_A_TIME.release()
    return file


def _export(url: str, what: str, file: Path, days: Days, vote_within: timedelta) -> str:
    """Write the file; gives why that is not possible, empty where it is done."""
    try:
        with existing(url) as store:
            _write(store, what, file, days, vote_within)
    except (ArenaError, RatingError) as error:
        return str(error)
    return ""


def _write(store: Store, what: str, file: Path, days: Days, vote_within: timedelta) -> None:
    if what == "ratings":
        export_ratings(store, DEFAULT, file, datetime.now(UTC), vote_within=vote_within)
        return
    with store.reading() as session:
        if what == "votes":
            links, total = log.links(session, DEFAULT), log.count_links(session)
            export_votes(links, DEFAULT, file, total=total, days=days)
        else:
            some = transcripts.battles(session, DEFAULT, voted=True, days=days)
            export_battles(some, DEFAULT, file, "answers" if what == "answers" else "arena")
