"""`arena people list`, `invite`, `change`, and `arena erase`: whom the arena knows and forgets."""

import sys
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter, validators

from arena.commands.arguments import Database, TableOrJson
from arena.domain.people import Invitation, Role
from arena.errors import SettingsError, UnknownPersonError
from arena.terminal import say, show, table, write_json

if TYPE_CHECKING:
    from arena.store.people import ListedPerson
    from arena.store.store import Store

Count = Annotated[int, Parameter(validator=validators.Number(gte=1, lte=1000))]


def roll(*, database: Database = None, form: TableOrJson = "table") -> None:
    """List the people whom the arena knows, and what each may do.

    Parameters
    ----------
    form
        How to write it.

    Examples
    --------
    arena people list
    arena people list --format json
    """
    with _store(database) as store:
        everybody = _matching(store, "")
    if form == "json":
        write_json({"people": [_as_row(one) for one in everybody]})
        return
    head = ("person", "name", "role", "came by", "votes", "since")
    rows = [
        (
            one.person.id[:8],
            one.person.name,
            f"{one.person.role}, kept out" if one.person.blocked else one.person.role,
            one.issuer,
            f"{one.votes:,}",
            f"{one.created:%Y-%m-%d}",
        )
        for one in everybody
    ]
    show(table(head, rows, right={4}))


def invite(
    name: str = "",
    /,
    *,
    to: Annotated[str | None, Parameter(name="--for")] = None,
    role: Role | None = None,
    uses: Count = 1,
    days: Count = 7,
    url: str = "http://localhost:7860",
    database: Database = None,
) -> None:
    """Print a link that lets somebody in as one person, whatever their devices.

    Who opens it may use further devices by links of their own, from the page My battles.

    Parameters
    ----------
    name
        Whom it is for; people see their own name, and admins see all.
    to
        Instead of a name, somebody whom the arena knows and who cannot come in any more, by their
        name or the beginning of their id: the link lets in a further device of theirs.
    role
        What they may do: voter, if nothing is said.
    uses
        How many people it lets in, each as a person of their own.
    days
        How long it lets anybody in.
    url
        Address of the arena, as people open it.

    Examples
    --------
    arena people invite "Ada Lovelace" --role admin
    arena people invite "Spring course" --uses 30 --days 14 --url https://arena.example.org
    arena people invite --for 3f9c1a07 --days 1
    """
    from arena.guard.people import LONGEST_NAME, new_token, token_hash
    from arena.store import people

    if to is None and not 0 < len(name.strip()) <= LONGEST_NAME:
        msg = f"A name has 1 to {LONGEST_NAME} characters, got {len(name.strip())} in {name!r}."
        raise SettingsError(msg)
    if to is not None and (name or role):
        msg = f"--for {to!r} lets in whom the arena knows: leave out the name and --role."
        raise SettingsError(msg)
    token, now = new_token(), datetime.now(UTC)
    expires = now + timedelta(days=days)
    with _store(database) as store:
        new = Invitation(role or Role.VOTER, name.strip(), uses)
        invitation = new if to is None else _back(store, to, uses)
        with store.writing() as session:
            people.invite(session, invitation, token_hash(token), expires, now, people.TERMINAL)
    say(f"{url.rstrip('/')}/join/{token}")
    times = "once" if uses == 1 else f"{uses} times"
    whom = f"{invitation.name!r} as {invitation.role}"
    say(f"It lets in {whom}, {times}, until {expires:%Y-%m-%d %H:%M} UTC.")


def change(
    who: str,
    /,
    *,
    role: Role | None = None,
    block: Annotated[bool | None, Parameter(negative="--unblock")] = None,
    sign_out: bool = False,
    database: Database = None,
) -> None:
    """Give somebody another role, keep them out, or sign out their devices.

    It holds within seconds in every process. Their votes stay: see arena voters for those.

    Parameters
    ----------
    who
        Their name, or the beginning of their id.
    role
        What they may do from now on.
    block
        Keep them out; --unblock lets them in again.
    sign_out
        Sign out all their devices.

    Examples
    --------
    arena people change "Ada Lovelace" --role researcher
    arena people change 3f9c1a07 --block
    """
    from arena.store import people

    if role is None and block is None and not sign_out:
        msg = "Say what to change: --role, --block, --unblock or --sign-out."
        raise SettingsError(msg)
    with _store(database) as store:
        voter = _one(_matching(store, who), who).person.id
        with store.writing() as session:
            changed = people.change(
                session,
                voter,
                people.TERMINAL,
                datetime.now(UTC),
                role=role,
                blocked=block,
                sign_out=sign_out,
            )
    state = "kept out" if changed.blocked else "let in"
    say(f"{changed.name} ({changed.id[:8]}): {changed.role}, {state}.")


def erase(
    *,
    voter: str,
    votes: Literal["stay", "tombstone"] = "stay",
    yes: bool = False,
    database: Database = None,
) -> None:
    """Erase all that somebody wrote here, what models answered them, and their name.

    It goes from every table and file of the database, and out of what judges were sent; it does
    not come back. Their votes stay (see --votes), and the vote log verifies: of each text it
    keeps a hash that nobody can guess words by. Running battles of theirs end. An arena may serve
    meanwhile; for seconds its writers wait while the files are written anew.
    Backups and exports that were made before, and the log and replicas of a PostgreSQL server,
    are not reached.

    Parameters
    ----------
    voter
        Their id, as a person or as a voter, or its first 8 characters at the least; all their
        devices are meant.
    votes
        Whether their votes stay, without words, or go as well: then no leaderboard counts them,
        nobody can read them, and a tombstone in the record says that they were there.
    yes
        Do not ask before.

    Examples
    --------
    arena erase --voter 3f9c1a07
    arena erase --voter 3f9c1a07 --votes tombstone
    arena erase --voter 3f9c1a07 --yes --database postgresql://arena@localhost/arena
    """
    from arena.store import erasing, people

    with _store(database) as store:
        with store.reading() as session:
            there = erasing.extent(session, erasing.voters_of(session, voter))
        say(
            f"Voter {there.voters[0][:8]}, of {len(there.voters)} ids: {there.of.battles:,} "
            f"battles, {there.of.texts:,} prompts and answers, {there.of.judgements:,} questions "
            "to judges."
        )
        if not yes:
            _confirm("erase")
        with store.writing() as session:
            gone = erasing.erase(
                session,
                there,
                people.TERMINAL,
                datetime.now(UTC),
                forget=True,
                tombstone=votes == "tombstone",
            )
        say(
            f"Erased: the words of {gone.battles:,} battles, {gone.judgements:,} questions to "
            f"judges, and who they are in {gone.names:,} rows. "
            + (
                f"{gone.votes:,} votes were taken out, and a tombstone says so."
                if votes == "tombstone"
                else "The votes stay, without words."
            )
            + (f" {_of_studies(gone.ratings, votes)}" if gone.ratings else "")
        )
        erasing.clear_space(store, people.TERMINAL, datetime.now(UTC))
    say("The files of the database were written anew. Backups made before still hold the words.")


def _of_studies(n: int, votes: str) -> str:
    """Say what became of somebody's ratings in studies."""
    if votes == "tombstone":
        return f"{n:,} ratings in studies were taken out."
    return f"{n:,} ratings in studies are nobody's from here on, and their comments are gone."


def _confirm(word: str) -> None:
    """Go on only if somebody writes the word.

    Raises
    ------
    SettingsError
        If they do not, or nobody is there to.
    """
    say(f"It does not come back. Write {word} to go on:")
    if sys.stdin.readline().strip() != word:
        msg = f"Nothing was changed: {word!r} was not written. Where nobody can, say --yes."
        raise SettingsError(msg)


def _store(database: str | None) -> "AbstractContextManager[Store]":
    from arena.settings import read_settings
    from arena.store.store import existing

    return existing(read_settings(database=database).database)


def _matching(store: "Store", who: str) -> "list[ListedPerson]":
    from arena.store import people

    return store.read(people.matching, who)


def _one(people: "list[ListedPerson]", who: str) -> "ListedPerson":
    if not people:
        msg = f"Nobody has the name {who!r}, or an id that begins so: see arena people list."
        raise UnknownPersonError(msg)
    if len(people) > 1:
        ids = ", ".join(one.person.id[:8] for one in people[:5])
        msg = f"{len(people)} people fit {who!r} ({ids}): name one by the beginning of the id."
        raise UnknownPersonError(msg)
    return people[0]


def _back(store: "Store", who: str, uses: int) -> Invitation:
    """Invite somebody whom the arena knows, as themself."""
    person = _one(_matching(store, who), who).person
    if person.blocked:
        msg = f"{person.name!r} is kept out: arena people change {person.id[:8]} --unblock first."
        raise SettingsError(msg)
    return Invitation(person.role, person.name, uses, person.id)


def _as_row(one: "ListedPerson") -> dict[str, object]:
    return asdict(one.person) | {
        "issuer": one.issuer,
        "votes": one.votes,
        "created": one.created.isoformat(),
    }
