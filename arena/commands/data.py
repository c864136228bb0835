"""`arena verify`, `publish`, `migrate`, `backup` and `restore`."""

import re
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from arena.commands.arguments import (
    Database,
    File,
    PolicyName,
    policy_named,
    require_folder_of,
)
from arena.errors import SettingsError
from arena.terminal import say, working, write_json

if TYPE_CHECKING:
    from arena.boards.bundle_check import Checked
    from arena.store.backup import Copied
    from arena.store.verify import Scope, Verified

NOTED = re.compile("[0-9a-f]{8,64}")


def verify(
    record: str,
    /,
    *,
    head: Annotated[str | None, Parameter(metavar="HASH")] = None,
    form: Annotated[Literal["text", "json"], Parameter(name="--format")] = "text",
) -> None:
    """Verify that a vote log is as it was written, or show where it first is not.

    Every vote carries the hash of the one before it and of what it binds (SECURITY.md lists it).
    Of a database also the counts that boards are made of are held against the votes. Of a
    published folder every file is, and its votes are rated anew: all that is wrong is named.
    Exit codes: 2 for what cannot be read, 3 for a vote log, counts or a folder that were changed.

    Parameters
    ----------
    record
        Database URL, a backup, a file that arena export votes wrote, or a folder of arena publish.
    head
        Hash noted earlier, or its first characters: it has to be in the chain, or be the folder's.
    form
        How to write it.

    Examples
    --------
    arena verify sqlite:///arena.db
    arena verify votes.parquet
    arena verify arena-backup.db --head 3f9c1a07 --format json
    arena verify board
    """
    noted = (head or "").strip().lower()
    if head is not None and not NOTED.fullmatch(noted):
        msg = f"--head {head!r}: give the first 8 to 64 characters of a hash, 0 to 9 and a to f."
        raise SettingsError(msg)
    if "://" not in record and Path(record).is_dir():
        _verify_folder(Path(record), noted, form)
        return
    with working("Verifying") as advance:
        verified = _verified(record, noted, advance)
    if form == "json":
        whole = verified.problem is None
        write_json({"verified": whole, "whole": whole, **asdict(verified)})
    else:
        say(f"{record}: {_in_words(verified)}")
    if verified.problem or verified.counts:
        sys.exit(3)


def publish(
    folder: Path,
    /,
    *,
    card: File = None,
    votes_to: File = None,
    policy: PolicyName = None,
    database: Database = None,
) -> None:
    """Write the leaderboard into a folder that anybody can read and check, without a network.

    The folder holds a page, the ratings as JSON and CSV, the evaluation card, the votes without
    texts, and a manifest with the hash of each file: see arena verify. It is refused while a
    section or a statement of the card is empty. All of it is written, or nothing.
    Exit code 3: the vote log cannot be verified.

    Parameters
    ----------
    folder
        Folder to write: one that is not there, or is empty.
    card
        TOML file of what a person says of this evaluation; else ARENA_CARD.
    votes_to
        New .parquet file for the votes, of which the folder then holds the hash alone.

    Examples
    --------
    arena publish board --card card.toml
    arena publish board --votes-to votes.parquet --policy default-v1 --database sqlite:///arena.db
    """
    from arena.boards.bundle import publish as write
    from arena.boards.bundle_check import check_bundle
    from arena.pages.evaluation import bundle_page
    from arena.settings import read_settings, read_statements
    from arena.store.store import existing

    chosen = policy_named(policy)
    for path in filter(None, (folder, votes_to)):
        require_folder_of(path)
    settings = read_settings(database=database, card=card)
    statements = read_statements(settings.card)
    with working("Publishing") as advance, existing(settings.database) as store:
        written = write(
            store,
            chosen,
            statements,
            settings.call_limits(),
            folder,
            datetime.now(UTC),
            enough=settings.listed_after,
            vote_within=settings.vote_within(),
            page=bundle_page,
            check=lambda made: check_bundle(made, bundle_page).problems,
            votes_to=votes_to,
            progress=advance,
        )
    say(f"{folder}: {written.models:,} models, {written.votes:,} votes, policy {chosen.name}.")
    if votes_to is not None:
        say(f"{votes_to}: the votes. Who puts them into the folder can check all of it.")
    say(f"Hash of the folder: {written.hash}")
    say(f"Newest link of the record: {written.head}")


def migrate(*, database: Database = None) -> None:
    """Bring a database to this version's schema, be it new or of an older version.

    Whatever uses the database does the same when it starts. Before an upgrade of several
    processes it is done alone, and its errors are read before any of them begins.

    Examples
    --------
    arena migrate
    arena migrate --database postgresql://arena@localhost/arena
    """
    from arena.settings import read_settings
    from arena.store.engine import migrate as bring_up
    from arena.store.engine import newest, opened, shown

    with opened(read_settings(database=database).database) as engine:
        bring_up(engine)
        say(f"{shown(engine)} has schema {newest()}.")


def backup(*, to: Annotated[Path, Parameter(metavar="FILE")], database: Database = None) -> None:
    """Copy a database, which may be in use, as it is at one moment into one file.

    Parameters
    ----------
    to
        New file to write.

    Examples
    --------
    arena backup --to arena-backup.db
    arena backup --database sqlite:///arena-demo.db --to demo-backup.db
    """
    from arena.settings import read_settings
    from arena.store.backup import back_up

    url = read_settings(database=database).database
    with working("Backing up") as advance:
        copied = back_up(url, to, advance)
    say(f"{to}: {_counts(copied)}")


def restore(file: Path, /, *, database: Database = None) -> None:
    """Copy a backup into a new database of either kind, all or nothing.

    Parameters
    ----------
    file
        File made by arena backup.

    Examples
    --------
    arena restore arena-backup.db --database sqlite:///restored.db
    arena restore demo-backup.db --database sqlite:///team.db
    """
    from arena.settings import read_settings
    from arena.store import backup as copies

    url = read_settings(database=database).database
    with working("Restoring") as advance:
        copied = copies.restore(file, url, advance)
    say(f"{file}: restored {_counts(copied)}")


def _verified(record: str, head: str, advance: Callable[[int, int], None]) -> "Verified":
    from arena.boards.record_file import verify_export
    from arena.store.engine import reading_backup, reading_existing
    from arena.store.verify import verify as verify_database
    from rating.tables.writing import FORMATS

    file = Path(record)
    if file.suffix in FORMATS:
        return verify_export(file, head)
    with reading_existing(record) if "://" in record else reading_backup(file) as session:
        return verify_database(session, head, advance)


def _verify_folder(folder: Path, noted: str, form: str) -> None:
    from arena.boards.bundle_check import check_bundle
    from arena.pages.evaluation import bundle_page

    with working("Verifying"):
        checked = check_bundle(folder, bundle_page, noted)
    if form == "json":
        whole = not checked.problems
        write_json({"verified": whole, "whole": whole, **asdict(checked)})
    else:
        say(f"{folder}: {_of_folder(checked)}")
        for sentence in (*checked.problems, *checked.notes):
            say(f"- {sentence}")
    if checked.problems:
        sys.exit(3)


def _of_folder(checked: "Checked") -> str:
    if n := len(checked.problems):
        return f"{n:,} problem{'s' if n > 1 else ''}."
    if not checked.links:
        return f"files whole, hash {checked.hash}; votes not there."
    return (
        f"vote log and board verified, {checked.models:,} models rated again from "
        f"{checked.votes:,} votes; hash "
        f"{checked.hash}; {checked.links:,} links, the newest with hash {checked.head}."
    )


def _in_words(verified: "Verified") -> str:
    if verified.problem:
        return f"vote log not verified after {verified.links:,} links. {verified.problem}"
    words = f"vote log verified, {verified.links:,} links"
    if verified.head:
        words += f", the newest with hash {verified.head}"
    words += f". {verified.hashes_only:,} of {verified.votes:,} votes are hashes only"
    if verified.marked and verified.scope:
        words += (
            f". This file does not prove the links before the mark at link {verified.marked:,}"
        )
    elif verified.marked:
        words += f". Hashes bind all that is bound today from link {verified.marked:,} on"
    if verified.noted is not None and verified.noted < (verified.marked or 0):
        words += "; of the hash noted before that, votes bind the choice, who and when alone"
    if verified.erased:
        words += f". {verified.erased:,} texts were erased, and their hashes are there"
    if verified.taken_out:
        words += (
            f". Votes deleted: {verified.deleted:,}, with exclusions of them: "
            f"{verified.taken_out - verified.deleted:,}; deletion records name them"
        )
    if (scope := verified.scope) is not None:
        words += f". {_of_scope(scope)}"
    return f"{words}. {verified.counts}" if verified.counts else f"{words}."


def _of_scope(scope: "Scope") -> str:
    if scope.all_votes is None:
        of = f"Exported by version 0.1.0 with policy {scope.policy}"
    else:
        bounds = (("since", scope.since), ("before", scope.until))
        cast = " and ".join(f"{word} {moment}" for word, moment in bounds if moment)
        more = " with --all" if scope.all_votes else ""
        of = f"Exported with policy {scope.policy}{more}, votes cast {cast or 'at any time'}"
    excluded = ", ".join(f"{n:,} {why}" for why, n in scope.excluded.items()) or "none"
    return f"{of}. Votes counted: {scope.counted:,}; excluded: {excluded}"


def _counts(copied: "Copied") -> str:
    head = f", the newest with hash {copied.head[:16]}" if copied.head else ""
    return f"{copied.rows:,} rows, among them {copied.votes:,} votes{head}."
