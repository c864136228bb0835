"""How a race of two models stands, worked out beside requests and shown as it last was."""

from arena.boards.looks import keep_looking
from arena.domain.room_view import RaceStanding
from arena.domain.vote import DEFAULT
from arena.store import chain, log
from arena.store.store import Store
from rating.errors import DataError
from rating.tables.columns import Reading
from rating.tables.rows import read_rows
from rating.tables.sources import LoggedColumns
from rating.uncertainty.race import run_race

REST_S = 10.0
REST = 20
"""Between two looks pass at least `REST_S`, and `REST` times as long as the last one took."""
LEVEL = 0.95


def standing_of(votes: LoggedColumns, between: tuple[str, str]) -> RaceStanding:
    """Run a race over the votes that count; before both have any, nothing is known of it."""
    try:
        race = run_race(read_rows(votes, Reading(ordered=True)), between, level=LEVEL)
    except DataError:  # no votes, or none on one of the two
        return RaceStanding(between, LEVEL)
    look = race.looks[-1] if race.looks else None
    if look is None:
        return RaceStanding(between, LEVEL, race.votes, race.voters)
    return RaceStanding(
        between,
        LEVEL,
        look.votes,
        look.voters,
        look.lead,
        look.lower,
        look.upper,
        separated=race.separated is not None,
    )


class RaceWatch:
    """Keeps how a race stands; nobody who asks waits for it."""

    def __init__(self, store: Store, between: tuple[str, str]) -> None:
        self._store = store
        self._between = between
        self._head: str | None = None
        self._standing = RaceStanding(between, LEVEL)

    def read(self) -> RaceStanding:
        """Give what was worked out last."""
        return self._standing

    def look(self) -> None:
        """Work it out now, if votes were added."""
        with self._store.reading() as session:
            head = chain.head(session)
            if head == self._head:
                return
            votes = log.columns(session, DEFAULT, after=log.newest(session))
        self._standing, self._head = standing_of(votes, self._between), head

    async def keep_on(self) -> None:
        """Work it out, rest, and look whether votes were added, until cancelled."""
        await keep_looking(self.look, "The race", REST_S, REST)
