"""`arena import`."""

from datetime import UTC, datetime
from pathlib import Path

from arena.commands.arguments import Database
from arena.terminal import say, working


def bring_in(*files: str, database: Database = None) -> None:
    """Write what arena export wrote into a new database: votes, and what belongs to them.

    The record verifies there as it does here, and every rating is the same to the last digit.
    It is one transaction: what goes wrong leaves the database empty. Names of models come with
    arena export models, words and what answers took with arena export battles and answers, of
    the same arena and both with --all or both without. Exit code 3: the record does not verify.

    Parameters
    ----------
    files
        Files that arena export wrote, or a folder of them; votes have to be among them. What a
        file holds is seen by its columns.

    Examples
    --------
    arena import votes.parquet --database sqlite:///again.db
    arena import exported --database sqlite:///all.db
    """
    from arena.boards.importing import exported, import_record
    from arena.settings import read_settings

    url = read_settings(database=database).database
    with working("Importing") as advance:
        what = exported([Path(file) for file in files])
        done = import_record(what, url, datetime.now(UTC), advance)
    parts = [f"{done.votes:,} votes", f"the newest of {done.links:,} links with hash {done.head}"]
    say(f"Imported {', '.join(parts)}.")
    if done.withheld:
        say(
            f"Of {done.withheld:,} of these votes the hashes alone came, as the file shows no "
            "more: no leaderboard counts them. Export with --all for a whole copy."
        )
