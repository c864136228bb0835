"""`arena exclude`, `arena readmit` and `arena attack`: votes that should not count."""

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from arena import terminal
from arena.commands.arguments import EVERY_ROW, Chosen, Columns, Database, Flat, TableOrJson
from arena.domain.vote import DEFAULT
from arena.errors import SettingsError
from arena.terminal import plain, say, show, working, write_json

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


def attack(
    source: list[str],
    /,
    *,
    strategy: Literal["fan", "target", "omnipresent", "inverted", "always-left", "random"] = "fan",
    accounts: int = 50,
    votes: int = 20,
    model: str | None = None,
    runs: int = 5,
    seed: int = 0,
    columns: Columns = (),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    form: TableOrJson = "table",
) -> None:
    """Say what accounts that attack would do to these votes, with defences on and off.

    Nothing is written. The defences are those of arena voters --apply. Beside it stands how many
    new accounts cannot change the first ranks, whatever they vote.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl) that say who voted, or
        database URL.
    strategy
        fan votes for the model wherever it appears; target on it alone, as who recognises it
        could; omnipresent also against the two above it; inverted for the worse; always-left;
        random by coin.
    accounts
        New accounts.
    votes
        Votes of each.
    model
        The one to push; without it, the one in the middle.
    runs
        Draws of the attackers' votes.
    seed
        Another seed gives other draws.
    columns
        Read a role from the column of this name, as in voter=user; again for more.
    form
        How to write it.

    Examples
    --------
    arena attack votes.parquet
    arena attack votes.parquet --strategy omnipresent --accounts 20 --votes 50 --format json
    """
    from rating.tables.attacks import Attack, simulate  # numpy and duckdb take half a second
    from rating.tables.columns import Columns as Named
    from rating.tables.ordered import read_ordered

    with working("Attacking") as advance:
        cast = read_ordered(chosen.source(source, columns), Named.named(columns))
        planned = Attack(strategy, accounts, votes, model)
        result = simulate(cast, planned, runs=runs, seed=seed, progress=advance).to_dict()
    if form == "json":
        write_json(result)
    else:
        _show_attack(result)


def _show_attack(result: Mapping[str, Any]) -> None:
    head = (
        f"{result['accounts']:,} accounts of {result['votes']:,} votes each "
        f"({result['strategy']}) move {result['model']}, on average over {result['runs']:,} runs:"
    )
    rows = [
        (
            which,
            f"{moved['points']:+.0f}",
            f"{moved['points_low']:+.0f} to {moved['points_high']:+.0f}",
            f"{moved['ranks']:+.1f}",
        )
        for which, moved in result["moved"].items()
    ]
    grid = terminal.table(("Defences", "Points", "In all runs", "Ranks"), rows, right=range(1, 4))
    left_out = (
        f"Left out: {100 * result['left_out']:.0f} % of the attackers' votes, and "
        f"{100 * result['honest_left_out']:.1f} % of the others."
    )
    show(plain(head), grid, plain(left_out), *map(plain, map(_on_hold, result["holds"])))


def _on_hold(held: Mapping[str, Any]) -> str:
    first = "Rank 1 holds" if held["ranks"] == 1 else f"Ranks 1-{held['ranks']} hold"
    return (
        f"{first} against any {held['accounts']:,} new accounts of as many votes, whatever they "
        f"vote ({held['votes']:,} votes); {held['sufficient_votes']:,} votes would be enough."
    )


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
