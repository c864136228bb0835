"""`arena sources add`, `list`, `change`, `revoke`: applications that send votes of their own."""

from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from arena.commands.arguments import Database, TableOrJson
from arena.domain.source import MOST_ORIGINS, Source, SourceView, is_name, origin_of
from arena.errors import SettingsError
from arena.terminal import say, show, table, write_json

if TYPE_CHECKING:
    from arena.store.store import Store

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
    """Register an application, and print its token, once: the arena keeps a hash alone.

    With the token its server sends votes and pairs. Its votes are rated apart, by the policy
    applications-v1, and count on no other leaderboard. An arena may serve meanwhile.

    Parameters
    ----------
    name
        What it is called: small letters, digits and hyphens. Its version v7 is rated as NAME~v7.
    origins
        Origin of pages that may show its pairs, such as https://app.example.org; again for more.
    share
        Share of its turns on which it is to show a pair.
    per_hour
        Votes and pairs that it may send within an hour.

    Examples
    --------
    arena sources add support --origin https://app.example.org
    arena sources add support --origin https://app.example.org --share 0.05 --per-hour 2000
    """
    from arena.guard.people import new_token, token_hash
    from arena.store import people, sources

    if not is_name(name):
        msg = (
            f"A source is called by up to 40 small letters, digits and hyphens, and not gold; "
            f"got {name!r}."
        )
        raise SettingsError(msg)
    token = new_token()
    with _store(database) as store, store.writing() as session:
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
    say(f"This is the token of {name}; it is shown this once. {may}", error=True)


def overview(*, database: Database = None, form: TableOrJson = "table") -> None:
    """List the applications that are registered, and how much they have sent.

    Parameters
    ----------
    form
        How to write it.

    Examples
    --------
    arena sources list
    arena sources list --format json
    """
    from arena.store import sources

    with _store(database) as store:
        views = store.read(sources.everyone)
    if form == "json":
        write_json({"sources": [_as_row(view) for view in views]})
        return
    head = ("source", "origins", "share", "an hour", "sent", "votes", "since", "let in")
    rows = [
        (
            view.source.name,
            ", ".join(view.source.origins),
            f"{100 * view.source.share:g} %",
            f"{view.source.per_hour:,}",
            f"{view.pairs:,}",
            f"{view.votes:,}",
            f"{view.source.created:%Y-%m-%d}",
            _let_in(view.source),
        )
        for view in views
    ]
    show(table(head, rows, right={2, 3, 4, 5}))


def change(
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
    """Change what an application may do; what is not named stays. An arena may serve meanwhile.

    Parameters
    ----------
    name
        What it is called.
    added
        Origin of further pages that may show its pairs; again for more.
    removed
        Origin of pages that may no more.
    share
        Share of its turns on which it is to show a pair.
    per_hour
        Votes and pairs that it may send within an hour.
    paused
        Take nothing of it, neither from its server nor from its pages, until it is resumed.
    new_token
        Print another token, once; the one before is let in no more.

    Examples
    --------
    arena sources change support --add-origin https://beta.example.org --share 0.05
    arena sources change support --pause
    arena sources change support --resume --new-token
    """
    from arena.guard.people import new_token as new
    from arena.guard.people import token_hash
    from arena.store import people, sources

    token = new() if new_token else None
    changed = sources.SourceChange(
        added=_origins(added),
        removed=_origins(removed),
        per_hour=per_hour,
        share=share,
        paused=paused,
        token_hash=None if token is None else token_hash(token),
    )
    if changed == sources.SourceChange():
        msg = f"Nothing of {name!r} is to change: give an option, such as --pause."
        raise SettingsError(msg)
    with _store(database) as store, store.writing() as session:
        source = sources.change(session, name, changed, people.TERMINAL, datetime.now(UTC))
    if token is not None:
        say(token)
        say(f"This is the new token of {name}; it is shown this once.", error=True)
    state = "is paused" if source.paused else "is let in"
    say(f"{name} {state}. {_may(source.origins, source.per_hour, source.share)}", error=True)


def revoke(name: str, /, *, database: Database = None) -> None:
    """Let an application in no more, from now on: neither its token nor its pages.

    Its votes stay and count. The name is not given again: register it anew under another one.

    Parameters
    ----------
    name
        What it is called.

    Examples
    --------
    arena sources revoke support
    arena sources revoke support --database sqlite:///team.db
    """
    from arena.store import people, sources

    with _store(database) as store, store.writing() as session:
        sources.revoke(session, name, people.TERMINAL, datetime.now(UTC))
    say(f"{name} sends nothing from here on. Its votes stay.")


def _may(origins: tuple[str, ...], per_hour: int, share: float) -> str:
    pages = ", ".join(origins) or "no pages"
    return (
        f"Up to {per_hour:,} votes and pairs an hour; pairs on {100 * share:g} % of its turns, "
        f"shown by {pages}."
    )


def _let_in(source: Source) -> str:
    if source.revoked:
        return f"revoked {source.revoked:%Y-%m-%d}"
    return f"paused {source.paused:%Y-%m-%d}" if source.paused else "yes"


def _store(database: str | None) -> "AbstractContextManager[Store]":
    from arena.settings import read_settings
    from arena.store.store import existing

    return existing(read_settings(database=database).database)


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
            msg = (
                f"{address!r} is no origin: write scheme, name and port alone, such as "
                "https://app.example.org or http://localhost:8000."
            )
            raise SettingsError(msg)
    if len(read) > MOST_ORIGINS:
        msg = f"A source has up to {MOST_ORIGINS} origins, got {len(read)}."
        raise SettingsError(msg)
    return tuple(dict.fromkeys(origin for _, origin in read if origin))


def _as_row(view: SourceView) -> dict[str, object]:
    source = view.source
    whole = asdict(source)
    return {name: whole[name] for name in ("name", "origins", "share", "per_hour")} | {
        "created": source.created.isoformat(),
        "revoked": source.revoked.isoformat() if source.revoked else None,
        "paused": source.paused.isoformat() if source.paused else None,
        "sent": view.pairs,
        "votes": view.votes,
    }
