"""`arena models add`, `enable`, `retire`, `release` and more: who battles, without a restart."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from arena.commands.arguments import Database
from arena.domain.model import Entry, Release, Standing
from arena.terminal import say, show, table


def add(file: Path, /, *, database: Database = None) -> None:
    """Add the models of a roster file to the arena, which may be running.

    Every process battles with them within seconds. Of models that are there already, what the
    file says of them is taken over, but for the weight. Keys are never stored: put them into the
    file that ARENA_KEYS names, or the environment of the server.

    Parameters
    ----------
    file
        Roster file.

    Examples
    --------
    arena models add new.toml
    arena models add new.toml --database sqlite:///team.db
    """
    from arena.settings import read_roster, read_settings
    from arena.store import people, roster
    from arena.store.store import existing

    models = tuple(read_roster(file, to_battle=False))
    with existing(read_settings(database=database).database) as store:
        with store.writing() as session:
            changed = roster.add(session, models, people.TERMINAL, datetime.now(UTC))
        for model in changed:
            say(f"{model} answers in another way than before: give it a new id.", error=True)
        _show(store.read(roster.entries), store.read(roster.unusable))


def enable(model: str, /, *, database: Database = None) -> None:
    """Let a model battle from here on, one that had left too.

    Parameters
    ----------
    model
        Its id in the roster.

    Examples
    --------
    arena models enable basalt-large
    arena models enable basalt-large --database sqlite:///team.db
    """
    _change(model, database, standing=Standing.ENABLED)


def disable(model: str, /, *, database: Database = None) -> None:
    """Draw a model for no new battles; those that it has begun go on.

    Parameters
    ----------
    model
        Its id in the roster.

    Examples
    --------
    arena models disable basalt-large
    arena models disable basalt-large --database sqlite:///team.db
    """
    _change(model, database, standing=Standing.DISABLED)


def retire(model: str, /, *, database: Database = None) -> None:
    """Let a model leave: it is asked no more.

    Its votes stay and count. Answers that are being written end.

    Parameters
    ----------
    model
        Its id in the roster.

    Examples
    --------
    arena models retire basalt-large
    arena models retire basalt-large --database sqlite:///team.db
    """
    _change(model, database, standing=Standing.RETIRED)


def pre_release(model: str, /, *, database: Database = None) -> None:
    """Let a hidden model battle unnamed: it is shown by its id alone, also after a vote.

    Parameters
    ----------
    model
        Its id in the roster.

    Examples
    --------
    arena models pre-release maple-7
    arena models pre-release maple-7 --database sqlite:///team.db
    """
    _release(model, database, Release.PRE_RELEASE)


def release(model: str, /, *, database: Database = None) -> None:
    """Show a model by its name from here on; that is not taken back.

    It is provisional on the leaderboard until it has votes enough since then.

    Parameters
    ----------
    model
        Its id in the roster.

    Examples
    --------
    arena models release maple-7
    arena models release maple-7 --database sqlite:///team.db
    """
    _release(model, database, Release.RELEASED)


def weight(model: str, weight: float, /, *, database: Database = None) -> None:
    """Draw a model more or less often, where ARENA_SAMPLER=weighted.

    Parameters
    ----------
    model
        Its id in the roster.
    weight
        Relative to the others; at 0 it is not drawn at all.

    Examples
    --------
    arena models weight basalt-large 2.5
    arena models weight basalt-large 0 --database sqlite:///team.db
    """
    _change(model, database, weight=weight)


def _change(
    model: str,
    database: str | None,
    *,
    standing: Standing | None = None,
    weight: float | None = None,
) -> None:
    from arena.domain.battle import Sampler
    from arena.settings import read_settings
    from arena.store import people, roster
    from arena.store.store import existing

    settings = read_settings(database=database)
    with existing(settings.database) as store:
        with store.writing() as session:
            roster.change(
                session,
                model,
                people.TERMINAL,
                datetime.now(UTC),
                standing=standing,
                weight=weight,
                weighted=settings.sampler is Sampler.WEIGHTED,
            )
        _show(store.read(roster.entries), store.read(roster.unusable))


def _release(model: str, database: str | None, to: Release) -> None:
    from arena.settings import read_settings
    from arena.store import people, roster
    from arena.store.store import existing

    with existing(read_settings(database=database).database) as store:
        with store.writing() as session:
            roster.release(session, model, to, people.TERMINAL, datetime.now(UTC))
        _show(store.read(roster.entries), store.read(roster.unusable))


def _show(entries: tuple[Entry, ...], unusable: Mapping[str, str]) -> None:
    for problem in unusable.values():
        say(problem, error=True)
    rows = [
        (
            one.model.id,
            one.model.name,
            one.standing,
            one.release,
            f"{one.model.weight:g}",
            one.model.endpoint,
        )
        for one in entries
    ]
    heads = ("Model", "Name", "Standing", "Release", "Weight", "Endpoint")
    show(table(heads, rows, right={4}))
