"""kill -9 in the middle of votes, again and again: what was acknowledged is kept.

``make kills ROUNDS=1000 DATABASE=sqlite``. State and database stay in a folder: stopped or killed
at any moment and begun again, it goes on after the last whole round. ``DATABASE`` is ``sqlite``,
``postgresql`` (a server of its own), ``both``, or the URL of an empty database.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from tests.kills import BATTLES_EACH, N_PLAYERS, Rounds, Tally, play_rounds
from tests.postgresql import postgresql_server
from tests.sqlite import new_sqlite


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--database", default="both")
    parser.add_argument("--folder", type=Path, default=Path(".kills"))
    given = parser.parse_args()
    kinds = ("sqlite", "postgresql") if given.database == "both" else (given.database,)
    tallies = [_killed(kind, given.rounds, given.folder.resolve()) for kind in kinds]
    print(" | ".join(asdict(tallies[0])))
    for tally in tallies:
        print(" | ".join(map(str, asdict(tally).values())))
    sys.exit(not all(map(_whole, tallies)))


def _killed(kind: str, n: int, folder: Path) -> Tally:
    """Play the rounds that are missing; gives what all of them came to."""
    name = kind.partition(":")[0]
    own = folder / name
    own.mkdir(parents=True, exist_ok=True)
    state = own / "rounds.json"
    rounds = Rounds.read(state) if state.exists() else Rounds.begin(name)
    began, first = time.monotonic(), rounds.tally.rounds

    def after_each(rounds: Rounds) -> None:
        rounds.write(state)
        tally = rounds.total()
        each = (time.monotonic() - began) / (tally.rounds - first)
        left = each * (n - tally.rounds) / 60
        line = f"{name} {tally.rounds}/{n}, {each:.1f} s each, {left:.0f} min left: "
        line += f"{tally.acknowledged} acknowledged, {tally.lost} lost, {tally.doubled} doubled, "
        print(f"{line}{tally.hung} hung", file=sys.stderr, flush=True)

    with _database(kind, own) as url:
        play_rounds(rounds, n, url, own, after_each)
    return rounds.total()


@contextmanager
def _database(kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield new_sqlite(folder)
    elif kind == "postgresql":
        with postgresql_server(folder / "server") as url:
            yield url
    else:
        yield kind


def _whole(tally: Tally) -> bool:
    """Tell whether every vote was acknowledged and kept, once."""
    votes = tally.rounds * N_PLAYERS * BATTLES_EACH
    return (tally.acknowledged, tally.lost, tally.doubled, tally.hung) == (votes, 0, 0, 0)


if __name__ == "__main__":
    main()
