"""Commands on users and applications: `arena people`, `arena erase` and `arena sources`."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import Parameter, validators

from arena.commands.arguments import Database, TableOrJson, arena_store
from arena.domain.model import MOST_ORIGINS, Source, is_name, origin_of
from arena.domain.people import Invitation, Pending, Person, Role
from arena.errors import SettingsError, UnknownPersonError
from arena.terminal import say, show, table, write_json
from rating.sentences import plural

if TYPE_CHECKING:
    from arena.store.store import Store


# Users

T = TypeVar("T", Person, Person | Pending)

LINK = "link-"
"""Before the number of a pending invitation, where a command names one."""

Count = Annotated[int, Parameter(validator=validators.Number(gte=1, lte=1000))]


def roll(*, database: Database = None, form: TableOrJson = "table") -> None:
    """List users, pending invitations and roles.

    Parameters
    ----------
    form
        Output format.

    Examples
    --------
    arena people list
    arena people list --format json
    """
    from arena.store import people

    with arena_store(database) as store, store.reading() as session:
        everybody = people.matching(session, "")
        pending = people.pending(session, datetime.now(UTC))
    if form == "json":
        rows = [
            asdict(person) | {"issuer": issuer, "votes": votes, "created": created.isoformat()}
            for person, issuer, votes, created in everybody
        ]
        invitations = [
            {"id": f"{LINK}{one.id}", **asdict(one.invitation), "used": one.used}
            | {"created": one.created.isoformat(), "expires": one.expires.isoformat()}
            for one in pending
        ]
        write_json({"people": rows, "invitations": invitations})
        return
    head = ("person", "name", "role", "access", "votes", "since")
    cells = [
        (
            person.id[:8],
            person.name,
            f"{person.role}, blocked" if person.blocked else person.role,
            issuer,
            f"{votes:,}",
            f"{created:%Y-%m-%d}",
        )
        for person, issuer, votes, created in everybody
    ]
    cells += [
        (
            f"{LINK}{one.id}",
            one.invitation.name,
            "a further device" if one.invitation.person else one.invitation.role,
            f"invited until {one.expires:%Y-%m-%d}",
            f"{one.used} of {one.invitation.uses} joined" if one.invitation.uses > 1 else "",
            f"{one.created:%Y-%m-%d}",
        )
        for one in pending
    ]
    show(table(head, cells, right={4}))


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
    """Print an invitation link: each use creates one user (see --uses).

    Users can create links for further devices themselves, on the page "My battles".

    Parameters
    ----------
    name
        Name of the user, visible to the user and to admins.
    to
        Name, or first characters of the id, of an existing user who cannot sign in: the link
        adds a device for them.
    role
        Role of the user; voter by default.
    uses
        Number of users that the link can create.
    days
        Validity of the link in days.
    url
        Address of the arena for its users.

    Examples
    --------
    arena people invite "Ada Lovelace" --role admin
    arena people invite "Spring course" --uses 30 --days 14 --url https://arena.example.org
    arena people invite --for 3f9c1a07 --days 1
    """
    from arena.guard.access import LONGEST_NAME, new_token, token_hash
    from arena.store import people

    if to is None and not 0 < len(name.strip()) <= LONGEST_NAME:
        msg = f"A name has 1 to {LONGEST_NAME} characters, got {len(name.strip())} in {name!r}."
        raise SettingsError(msg)
    if to is not None and (name or role):
        raise SettingsError(f"--for {to!r} is for an existing user: omit the name and --role.")
    token, now = new_token(), datetime.now(UTC)
    expires = now + timedelta(days=days)
    with arena_store(database) as store:
        new = Invitation(role or Role.VOTER, name.strip(), uses)
        invitation = new if to is None else _back(store, to, uses)
        store.write(people.invite, invitation, token_hash(token), expires, now, people.TERMINAL)
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
    """Change a user's role, block a user, or sign out their devices.

    Takes effect within seconds. Votes are kept; to exclude them, see `arena voters`. Of a pending
    invitation, --role changes the role that it gives, and --block revokes it.

    Parameters
    ----------
    who
        Name of the user or of a pending invitation, the first characters of the user's id, or the
        link-NUMBER of `arena people list`.
    role
        New role.
    block
        Block the user, or revoke the invitation; --unblock lets a user in again.
    sign_out
        Sign out all devices of the user.

    Examples
    --------
    arena people change "Ada Lovelace" --role researcher
    arena people change 3f9c1a07 --block
    """
    from arena.store import people

    if role is None and block is None and not sign_out:
        raise SettingsError("Name a change: --role, --block, --unblock or --sign-out.")
    with arena_store(database) as store:
        with store.reading() as session:
            fit: list[Person | Pending] = [one for one, *_ in people.matching(session, who)]
            for link in people.pending(session, datetime.now(UTC)):
                name = link.invitation.name if link.invitation.person is None else None
                fit += [link] if who in (name, f"{LINK}{link.id}") else []
        one = _one(fit, who)
        if isinstance(one, Pending):
            odd = block is False or sign_out
            _change_invitation(store, one, role, revoke=block is True, odd=odd)
            return
        changed = store.write(
            people.change,
            one.id,
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
    """Erase a voter's texts and name, and the models' answers to these texts.

    Removes it from all tables and files of the database, including requests to judges. This cannot
    be undone. Votes are kept (see --votes), and the vote log still verifies: it keeps a salted
    hash of each text. The voter's running battles end. Works while the arena is running; writes
    wait for some seconds. Existing backups and exports, and the log and replicas of a PostgreSQL
    server, are not erased.

    Parameters
    ----------
    voter
        User id or voter id, or at least its first 8 characters; includes all devices of the user.
    votes
        Keep the votes without texts, or remove them too: no leaderboard counts them, and a
        deletion record in the vote log states that they existed.
    yes
        Do not ask for confirmation.

    Examples
    --------
    arena erase --voter 3f9c1a07
    arena erase --voter 3f9c1a07 --votes tombstone
    arena erase --voter 3f9c1a07 --yes --database postgresql://arena@localhost/arena
    """
    from arena.store import erasing, people

    with arena_store(database) as store:
        with store.reading() as session:
            voters = erasing.voters_of(session, voter)
            judgements, there = erasing.extent(session, voters)
        say(
            f"Voter {voters[0][:8]}, of {plural(len(voters), 'id')}: "
            f"{plural(there.battles, 'battle')}, {there.texts:,} prompts and answers, "
            f"{plural(there.judgements, 'question')} to judges."
        )
        if not yes:
            _confirm("erase")
        gone = store.write(
            erasing.erase,
            voters,
            judgements,
            people.TERMINAL,
            datetime.now(UTC),
            forget=True,
            tombstone=votes == "tombstone",
        )
        deleted = plural(gone.votes, "vote was", "votes were")
        say(
            f"Erased: the texts of {plural(gone.battles, 'battle')}, "
            f"{plural(gone.judgements, 'question')} to judges, and the identity in "
            f"{plural(gone.names, 'row')}. "
            + (
                f"{deleted} deleted, and a deletion record states it."
                if votes == "tombstone"
                else "The votes stay, without texts."
            )
            + (f" {_of_studies(gone.ratings, votes)}" if gone.ratings else "")
        )
        erasing.clear_space(store, people.TERMINAL, datetime.now(UTC))
    say("The files of the database were rewritten. Earlier backups still have the texts.")


def _of_studies(n: int, votes: str) -> str:
    """Describe what happened to a voter's ratings in studies."""
    if votes == "tombstone":
        return f"{plural(n, 'rating')} in studies deleted."
    return f"{plural(n, 'rating')} in studies made anonymous, with comments deleted."


def _confirm(word: str) -> None:
    """Go on only if the word is typed.

    Raises
    ------
    SettingsError
        If they do not, or nobody is there to.
    """
    say(f"This cannot be undone. Type {word} to continue:")
    if sys.stdin.readline().strip() != word:
        msg = f"Nothing was changed: {word!r} was not typed. Without a terminal, use --yes."
        raise SettingsError(msg)


def _change_invitation(
    store: "Store", one: Pending, role: Role | None, *, revoke: bool, odd: bool
) -> None:
    """Change the role that an invitation gives, or revoke it."""
    from arena.store import people

    if odd or revoke == bool(role) or (role and one.invitation.person):
        raise SettingsError(
            f"{one.invitation.name!r} has not joined yet: --block revokes the invitation, and "
            "--role changes the role of a new user."
        )
    now = datetime.now(UTC)
    changed = store.write(people.change_invitation, one.id, people.TERMINAL, now, role=role)
    state = f"gives the role {role}" if role else "lets nobody in any more"
    say(f"The invitation of {changed.invitation.name} ({LINK}{one.id}) {state}.")


def _one(fit: Sequence[T], who: str) -> T:
    """Give the one that a name or the beginning of an id stands for."""
    if not fit:
        msg = f"No user has the name {who!r}, or an id that begins with it: see arena people list."
        raise UnknownPersonError(msg)
    if len(fit) > 1:
        ids = ", ".join(
            one.id[:8] if isinstance(one, Person) else f"{LINK}{one.id}" for one in fit[:5]
        )
        msg = f"{len(fit)} users match {who!r} ({ids}): name one by the beginning of the id."
        raise UnknownPersonError(msg)
    return fit[0]


def _back(store: "Store", who: str, uses: int) -> Invitation:
    """Invite an existing user to a further device."""
    from arena.store import people

    person = _one([person for person, *_ in store.read(people.matching, who)], who)
    if person.blocked:
        msg = f"{person.name!r} is blocked: arena people change {person.id[:8]} --unblock first."
        raise SettingsError(msg)
    return Invitation(person.role, person.name, uses, person.id)


# Applications that send votes

_SHARE = Parameter(validator=validators.Number(gte=0, lte=1))
_PER_HOUR = Parameter(validator=validators.Number(gte=1, lte=100_000))


def add(
    name: str,
    /,
    *,
    origins: Annotated[tuple[str, ...], Parameter(name="--origin", metavar="ORIGIN")] = (),
    share: Annotated[float, _SHARE] = 0.1,
    per_hour: Annotated[int, _PER_HOUR] = 600,
    database: Database = None,
) -> None:
    """Register an application that sends votes, and print its token.

    The token is printed once; the arena stores a hash of it. The application's votes have their
    own leaderboard (policy applications-v1) and count on no other. Works while the arena is
    running.

    Parameters
    ----------
    name
        Name of the application: lowercase letters, digits and hyphens. Version v7 of it is rated
        as NAME~v7.
    origins
        Origin of a page that may show its pairs, such as https://app.example.org; repeatable.
    share
        Share of its turns on which the application should show a pair.
    per_hour
        Maximum number of votes and pairs per hour.

    Examples
    --------
    arena sources add support --origin https://app.example.org
    arena sources add support --origin https://app.example.org --share 0.05 --per-hour 2000
    """
    from arena.guard.access import new_token, token_hash
    from arena.store import people, sources

    if not is_name(name):
        raise SettingsError(
            "The name of a source has up to 40 lower-case letters, digits and hyphens, and is "
            f"not gold; got {name!r}."
        )
    token = new_token()
    with arena_store(database) as store, store.writing() as session:
        sources.add(
            session,
            name,
            token_hash(token),
            people.TERMINAL,
            datetime.now(UTC),
            origins=_origins(origins),
            per_hour=per_hour,
            share=share,
        )
    say(token)
    may = _may(_origins(origins), per_hour, share)
    say(f"This is the token of {name}; it is shown only once. {may}", error=True)


def overview(*, database: Database = None, form: TableOrJson = "table") -> None:
    """List registered applications and the number of votes and pairs they sent.

    Parameters
    ----------
    form
        Output format.

    Examples
    --------
    arena sources list
    arena sources list --format json
    """
    from arena.store import sources

    with arena_store(database) as store:
        views = store.read(sources.everyone)
    if form == "json":
        write_json({"sources": [_sources_as_row(*view) for view in views]})
        return
    head = ("source", "origins", "share", "an hour", "sent", "votes", "since", "let in")
    rows = [
        (
            source.name,
            ", ".join(source.origins),
            f"{100 * source.share:g}%",
            f"{source.per_hour:,}",
            f"{pairs:,}",
            f"{votes:,}",
            f"{source.created:%Y-%m-%d}",
            _let_in(source),
        )
        for source, pairs, votes in views
    ]
    show(table(head, rows, right={2, 3, 4, 5}))


def change_source(
    name: str,
    /,
    *,
    added: Annotated[tuple[str, ...], Parameter(name="--add-origin", metavar="ORIGIN")] = (),
    removed: Annotated[tuple[str, ...], Parameter(name="--remove-origin", metavar="ORIGIN")] = (),
    share: Annotated[float | None, _SHARE] = None,
    per_hour: Annotated[int | None, _PER_HOUR] = None,
    paused: Annotated[bool | None, Parameter(name="--pause", negative="--resume")] = None,
    new_token: Annotated[bool, Parameter(negative=())] = False,
    database: Database = None,
) -> None:
    """Change the settings of an application. Works while the arena is running.

    Parameters
    ----------
    name
        Name of the application.
    added
        Allow another origin; repeatable.
    removed
        Remove an origin; repeatable.
    share
        Share of its turns on which the application should show a pair.
    per_hour
        Maximum number of votes and pairs per hour.
    paused
        Refuse everything from its server and pages until --resume.
    new_token
        Replace the token and print the new one, once.

    Examples
    --------
    arena sources change support --add-origin https://beta.example.org --share 0.05
    arena sources change support --pause
    arena sources change support --resume --new-token
    """
    from arena.guard.access import new_token as new
    from arena.guard.access import token_hash
    from arena.store import people, sources

    token = new() if new_token else None
    changed: dict[str, Any] = {
        "added": _origins(added),
        "removed": _origins(removed),
        "per_hour": per_hour,
        "share": share,
        "paused": paused,
        "token_hash": None if token is None else token_hash(token),
    }
    if all(value in (None, ()) for value in changed.values()):
        raise SettingsError(f"No change of {name!r} was given: use an option, such as --pause.")
    with arena_store(database) as store, store.writing() as session:
        source = sources.change(session, name, people.TERMINAL, datetime.now(UTC), **changed)
    if token is not None:
        say(token)
        say(f"This is the new token of {name}; it is shown only once.", error=True)
    state = "is paused" if source.paused else "is let in"
    say(f"{name} {state}. {_may(source.origins, source.per_hour, source.share)}", error=True)


def revoke(name: str, /, *, database: Database = None) -> None:
    """Revoke an application's access permanently, for its server and its pages.

    Its votes are kept and count. The name cannot be used again.

    Parameters
    ----------
    name
        Name of the application.

    Examples
    --------
    arena sources revoke support
    arena sources revoke support --database sqlite:///team.db
    """
    from arena.store import people, sources

    with arena_store(database) as store, store.writing() as session:
        sources.revoke(session, name, people.TERMINAL, datetime.now(UTC))
    say(f"{name} can send no more votes. Its votes stay.")


def _may(origins: tuple[str, ...], per_hour: int, share: float) -> str:
    pages = ", ".join(origins) or "no pages"
    return (
        f"Up to {per_hour:,} votes and pairs per hour; pairs on {100 * share:g}% of its "
        f"turns, shown by {pages}."
    )


def _let_in(source: Source) -> str:
    if source.revoked:
        return f"revoked {source.revoked:%Y-%m-%d}"
    return f"paused {source.paused:%Y-%m-%d}" if source.paused else "yes"


def _origins(given: tuple[str, ...]) -> tuple[str, ...]:
    """Read origins as browsers write them.

    Raises
    ------
    SettingsError
        If one is none, or there are too many.
    """
    read = [(address, origin_of(address)) for address in given]
    for address, origin in read:
        if origin is None:
            raise SettingsError(
                f"{address!r} is not an origin: write scheme, name and port alone, such as "
                "https://app.example.org or http://localhost:8000."
            )
    if len(read) > MOST_ORIGINS:
        raise SettingsError(f"A source has up to {MOST_ORIGINS} origins, got {len(read)}.")
    return tuple(dict.fromkeys(origin for _, origin in read if origin))


def _sources_as_row(source: Source, pairs: int, votes: int) -> dict[str, object]:
    whole = asdict(source)
    return {name: whole[name] for name in ("name", "origins", "share", "per_hour")} | {
        "created": source.created.isoformat(),
        "revoked": source.revoked.isoformat() if source.revoked else None,
        "paused": source.paused.isoformat() if source.paused else None,
        "sent": pairs,
        "votes": votes,
    }
