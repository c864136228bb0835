"""`arena label`: what prompts ask for, of a database or of a file."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from arena import terminal
from arena.commands.arguments import Columns, File, TableOrJson
from arena.errors import SettingsError
from arena.terminal import plain, say, show, working, write_json
from judge.labels.shares import LabelShare, shares
from judge.labels.taggers import VERSION
from rating.tables.files import Files


def label(
    source: str,
    /,
    *,
    to: File = None,
    columns: Columns = (),
    form: TableOrJson = "table",
) -> None:
    """Say what prompts ask for, by rules that need no model and no network.

    Of a database every vote without labels gets them, and what is labelled stays so. Of a file
    the rows are written again with a column a label. Broken off, it goes on where it stopped.

    Parameters
    ----------
    source
        Database URL, or file, folder or pattern of prompts (.parquet, .csv, .jsonl).
    to
        File to write the labelled rows of a file to: .parquet or .csv.
    columns
        Read the prompts from the column of this name, as in prompt=question.
    form
        How to write the shares of the labels.

    Examples
    --------
    arena label sqlite:///arena.db
    arena label prompts.jsonl --to labelled.parquet
    """
    with working("Labelling") as advance:
        counts = (_of_database if "://" in source else _of_file)(source, to, columns, advance)
    result = shares(counts)
    if form == "json":
        write_json(result.to_dict())
    elif not result.prompts:
        say(f"{source}: there is nothing to label yet.")
    else:
        head = ("Label", "Value", "Prompts", "Share", "Corrected for errors of the tagger")
        grid = terminal.table(head, map(_cells, result.labels), right=range(2, 5))
        show(plain(f"{result.prompts:,} prompts are labelled (rules, version {VERSION})."), grid)


Roles = Sequence[tuple[str, str]]
Advance = Callable[[int, int], None]
Counts = Mapping[tuple[str, str], int]


def _of_database(url: str, to: Path | None, columns: Roles, advance: Advance) -> Counts:
    if to is not None or columns:
        msg = (
            "The labels of a database stay in it, and its columns are known: drop --to and "
            "--column, and export the votes with arena export votes."
        )
        raise SettingsError(msg)
    from arena.play.labels import TAGGING, label_votes  # SQLAlchemy takes a second to import
    from arena.store.engine import reading_existing
    from arena.store.labels import counts
    from arena.store.store import Store

    with reading_existing(url):  # else a wrong name would make a database
        pass
    with closing(Store(url)) as store:
        label_votes(store, lambda: datetime.now(UTC), advance)
        return store.read(counts, TAGGING)


def _of_file(source: str, to: Path | None, columns: Roles, advance: Advance) -> Counts:
    from judge.labels.files import label_file

    named = dict(columns)
    if {*named} - {"prompt"}:
        msg = f"There is no role {min({*named} - {'prompt'})!r} of a column: the one is prompt."
        raise SettingsError(msg)
    return label_file(Files((source,)), named.get("prompt"), to, advance)


def _cells(one: LabelShare) -> tuple[str, ...]:
    corrected = one.corrected
    if corrected is None or None in (corrected.value, corrected.lower, corrected.upper):
        words = "–"
    else:
        words = f"{corrected.value:.1%} ({corrected.lower:.1%} to {corrected.upper:.1%})"
    return one.facet, one.value, f"{one.n:,}", f"{one.share:.1%}", words
