"""The audit of the ways to rate the votes of a file or a database."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judge.probe.audit import Audit, audit
from judge.probe.measures import MEASURES
from judge.probe.worlds import Votes, World
from rating import RateOptions
from rating.tables.counts import read_votes
from rating.tables.vote_reading import Reading

Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class BoardProbe:
    """What was found of each way to rate, on votes like those that were given.

    Attributes
    ----------
    about : dict
        The votes, and the arena that was simulated after them.
    audits : tuple of Audit
        The board's own way first.
    """

    about: dict[str, Any]
    audits: tuple[Audit, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"about": self.about, "audits": [one.to_dict() for one in self.audits]}


def probe_board(
    source: object,
    *,
    columns: Sequence[tuple[str, str]] = (),
    arenas: int,
    seed: int,
    told: Told = lambda *_: None,
) -> BoardProbe:
    """Audit the board's way to rate, and two others beside it, on the votes of a source.

    The votes are rated again with other seeds and choices. Arenas with the same battles and
    voters, the strengths, tastes and ties fitted to these votes, tell how near the truth is.

    Parameters
    ----------
    source : path, table or LoggedColumns
        As `rating.tables.counts.read_votes` takes it.
    columns : sequence of (str, str)
        Roles and names of columns.

    Raises
    ------
    DataError
        If the votes cannot be read, or there are too few arenas.
    NotIdentifiedError
        If the votes identify no rating.
    """
    options = RateOptions(columns=tuple(columns))
    data = read_votes(source, Reading.of(options)).data
    rng = np.random.default_rng(seed)
    votes = Votes.of(data, rng)
    world = World.like(votes)
    audits = _audits(world, votes, arenas, seed, told)
    about = {
        "votes": data.n_votes,
        "models": data.n_models,
        "voters": data.n_voters or None,
        "taste_sd": None if data.voter is None else world.taste,
        "tie_rate": world.tie_rate,
        "arenas": arenas,
        "seed": seed,
    }
    return BoardProbe(about, audits)


def _audits(world: World, votes: Votes, arenas: int, seed: int, told: Told) -> tuple[Audit, ...]:
    found = []
    for place, measure in enumerate(MEASURES):

        def tell(done: int, total: int, place: int = place) -> None:
            told(place * total + done, len(MEASURES) * total)

        rng = np.random.default_rng([seed, 1])  # the same arenas for every measure
        found.append(audit(measure, world, votes=votes, arenas=arenas, rng=rng, told=tell))
    return tuple(found)
