"""`arena topics`: what prompts are about."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from arena import terminal
from arena.commands.arguments import Columns, Database, RosterFile, TableOrJson
from arena.errors import SettingsError
from arena.terminal import plain, say, show, working, write_json
from rating.tables.files import Files

if TYPE_CHECKING:
    from judge.labels.released import Asked, Release, ShownTopic

Advance = Callable[[int, int], None]


def topics(
    source: str,
    /,
    *,
    private: bool = False,
    embeddings: Annotated[str | None, Parameter(metavar="MODEL")] = None,
    columns: Columns = (),
    database: Database = None,
    roster: RosterFile = None,
    form: TableOrJson = "table",
) -> None:
    """Say what prompts are about: topics by their words, with titles and how stable they are.

    A topic that does not come out again from other random starts is not shown.

    Parameters
    ----------
    source
        Database URL, or file, folder or pattern of prompts (.parquet, .csv, .jsonl).
    private
        Show topics of ten people and more, rounded: of a database the release that its page
        shows, of a file one that needs a column of voters.
    embeddings
        Go by embeddings by a model in the roster, instead of words; they are kept in the database.
    columns
        Read prompt or voter from the column of this name, as in prompt=question.
    form
        How to write it.

    Examples
    --------
    arena topics sqlite:///arena.db
    arena topics prompts.parquet --private --column voter=user --format json
    """
    if private and embeddings:
        raise SettingsError("Private topics go by words alone: drop --embeddings or --private.")
    if private:
        release = _private(source, columns)
    elif embeddings:
        release = _embedded(_texts(source, columns), embeddings, database, roster)
    else:
        from judge.labels.released import open_release

        with working("Learning") as advance:
            release = open_release(_texts(source, columns), advance)
    if form == "json":
        write_json(release.to_dict())
        return
    one = release.agreement
    about = (
        f"{'About ' if release.private else ''}{release.prompts:,} prompts. Topics from other "
        f"random starts agree by an adjusted Rand index of {one.mean:.2f} "
        f"({one.lowest:.2f} to {one.highest:.2f})."
    )
    head = ("Topic", "Prompts", "Share", "Stability")
    rows = list(_rows(release.topics, release.prompts))
    show(plain(about), terminal.table(head, rows, right=range(1, 4)))
    if not rows:
        say("No topic is stable enough to be shown.")


def _rows(topics: "Sequence[ShownTopic]", n: int, indent: str = "") -> Iterator[tuple[str, ...]]:
    for one in topics:
        title = indent + ", ".join(one.words)
        yield title, f"{one.prompts:,}", f"{one.prompts / n:.1%}", f"{one.stability:.2f}"
        yield from _rows(one.within, n, indent + "  ")


def _texts(source: str, columns: Sequence[tuple[str, str]]) -> list[str]:
    if "://" in source:
        return [one.text for one in _logged(source)]
    from judge.labels.files import prompts_of

    named = prompts_of(Files((source,)), dict(columns).get("prompt"))
    return ["\n\n".join(texts) for texts in named]


def _logged(url: str) -> "list[Asked]":
    from arena.domain.vote import DEFAULT
    from arena.store.engine import reading_existing
    from arena.store.topics import asked

    with reading_existing(url) as session:
        return asked(session, DEFAULT)


def _private(source: str, columns: Sequence[tuple[str, str]]) -> "Release":
    if "://" in source:
        return _stored(source)
    from judge.labels.files import asked_by
    from judge.labels.released import private_release

    named = dict(columns)
    with working("Learning"):
        asked = asked_by(Files((source,)), named.get("prompt"), named.get("voter"))
        return private_release(None, asked)[0]


def _stored(url: str) -> "Release":
    """Give the newest private release: another one beside it could be held against it."""
    from arena.store.engine import reading_existing
    from arena.store.topics import newest

    with reading_existing(url) as session:
        stored = newest(session, private=True)
    if stored is None:
        msg = (
            f"{url} has no release of private topics: an arena with ARENA_SHOW_BATTLES=false "
            "makes one a week, once 50 people have asked 500 prompts."
        )
        raise SettingsError(msg)
    return stored.release


def _embedded(
    texts: list[str], model: str, database: str | None, roster: Path | None
) -> "Release":
    import numpy as np

    from arena.commands.embedding import embedded_by
    from judge.labels.released import open_release

    known = embedded_by(model, database, roster)(texts)
    vectors = np.array([known[text] for text in texts], dtype=np.float32)
    with working("Learning") as advance:
        return open_release(texts, advance, vectors=vectors)
