"""`arena export battles`, `answers`, `votes`, `models` and `ratings`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from cyclopts import Parameter

from arena.commands.arguments import Database, Flat, PolicyName, TaggerName, policy_named
from arena.domain.vote import EVER, Days
from arena.errors import BrokenRecordError, SettingsError
from arena.terminal import Advance, say, working
from rating.errors import DataError
from rating.tables.formats import make_folder

if TYPE_CHECKING:
    from arena.boards.export import Written
    from arena.domain.vote import Policy
    from arena.store.store import Store
    from judge.labels.material import Asked

T = TypeVar("T")
All = Annotated[bool, Parameter(name="--all")]
Layout = Literal["arena", "chatbot-arena", "trl"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Export:
    """The data to export, and the target.

    Attributes
    ----------
    to : Path
        Output file: .parquet, .csv or .jsonl. A data card is written next to it.
    licence : str
        Licence of the file, by its Hugging Face name.
    hugging_face : bool
        Write a new folder in the layout of Hugging Face datasets: Parquet shards and README.md.
    """

    to: Annotated[Path, Parameter(metavar="FILE")]
    database: Database = None
    policy: PolicyName = None
    licence: Annotated[str, Parameter(metavar="NAME")] = "other"
    hugging_face: bool = False

    @property
    def file(self) -> Path:
        """The file, or the folder of the shards."""
        return self.to / "data" if self.hugging_face else self.to


def battles(
    *,
    export: Annotated[_Export, Flat],
    days: Annotated[Days, Flat] = EVER,
    everything: All = False,
    whole: bool = False,
    layout: Layout = "arena",
) -> None:
    """Export battles with prompts, answers, measurements and votes.

    One row per battle whose vote counts under the policy. In texts, email addresses, phone
    numbers, API keys and IP addresses are replaced by placeholders; their number is reported.

    Parameters
    ----------
    everything
        Include battles that the policy excludes, and battles without a vote.
    whole
        Do not replace personal data in texts.
    layout
        The arena's own columns, those of Chatbot Arena, or TRL's prompt, chosen and rejected.

    Examples
    --------
    arena export battles --to november.parquet --since 2026-11-01 --until 2026-12-01
    arena export battles --to preferences --layout trl --hugging-face --licence cc-by-4.0
    """
    if everything and layout != "arena":
        raise DataError(f"--layout {layout!r} has no column for excluded votes: omit --all.")
    _battles(export, "battles", layout, days, everything=everything, whole=whole)


def answers(
    *,
    export: Annotated[_Export, Flat],
    days: Annotated[Days, Flat] = EVER,
    everything: All = False,
    whole: bool = False,
) -> None:
    """Export answers with status, error, latency, tokens and cost.

    One row per answer, including regenerated ones, of battles whose vote counts under the policy.
    Personal data in texts is replaced as by `arena export battles`.

    Parameters
    ----------
    everything
        Include battles that the policy excludes, and battles without a vote (such as failed ones).
    whole
        Do not replace personal data in texts.

    Examples
    --------
    arena export answers --to answers.parquet
    arena export answers --to all.csv --all --database sqlite:///arena-demo.db
    """
    _battles(export, "answers", "answers", days, everything=everything, whole=whole)


def _battles(
    export: _Export, what: str, layout: str, days: Days, *, everything: bool, whole: bool
) -> None:
    from arena.boards.export import export_battles
    from arena.store import log as transcripts

    with _exporting(export, days) as (store, policy, advance), store.reading() as session:
        total = transcripts.count_battles(session, voted=not everything)
        some = transcripts.battles(session, policy, voted=not everything, days=days)
        some = _followed(some, total, advance)
        written = export_battles(
            some, policy, export.file, layout, everything=everything, whole=whole
        )
    say(f"{export.to}: {written.rows:,} {what}, policy {policy.name}.{_scrubbed(written)}")
    if written.lacks:
        unfit = ", ".join(f"{n:,} ({why})" for why, n in written.unfit.most_common())
        say(f"{written.lacks} Counted battles that are not in it: {unfit or 'none'}.")
    _card(export, what, written, policy)


def votes(
    *,
    export: Annotated[_Export, Flat],
    days: Annotated[Days, Flat] = EVER,
    tagger: TaggerName = None,
    everything: All = False,
    topics: bool = False,
) -> None:
    """Export the votes that count under a policy, one row per vote, without texts.

    Other votes, and those outside --since and --until, have rows with only the column
    excluded_vote (JSON), by which `arena verify` checks the log.
    Exit code 3: the vote log cannot be verified; the file is written.

    Parameters
    ----------
    everything
        Write excluded votes like the others, with the reason.
    topics
        Include the topic of each prompt, as `arena topics` would assign it now. Needs 50 prompts;
        not available with ARENA_SHOW_BATTLES=false.

    Examples
    --------
    arena export votes --to november.parquet --since 2026-11-01 --until 2026-12-01
    arena export votes --to all.csv --all --database sqlite:///arena-demo.db
    """
    from arena.boards.export import export_votes  # the store takes two seconds to import
    from arena.settings import read_settings
    from arena.store import labels, log
    from arena.store.log import asked
    from arena.store.log import battles_of_topics as battles
    from arena.store.verify import verify

    if topics and not read_settings().show_battles:
        raise SettingsError(
            "--topics names the topics of prompts, and this arena shows no prompts "
            "(ARENA_SHOW_BATTLES=false): omit it, and see arena topics --private."
        )
    with _exporting(export, days) as (store, policy, advance), store.reading() as session:
        policy = replace(policy, tagger=labels.tagger_named(session, tagger))
        named = _topics(asked(session, policy), battles(session)) if topics else {}
        total = log.count_links(session)
        links = _followed(log.links(session, policy), total, advance)
        written = export_votes(
            links, policy, export.file, total=total, topics=named, days=days, everything=everything
        )
        verified = verify(session, progress=partial(advance, so_far=": following the record"))
    logged = f"{written.rows:,} of {written.votes.total():,} logged votes"
    excluded = [f"{n:,} {why}" for why, n in written.votes.most_common() if why is not None]
    not_counted = f" Not counted: {', '.join(excluded)}." if excluded else ""
    say(f"{export.to}: {logged}, policy {policy.name}.{not_counted}")
    _card(export, "votes", written, policy)
    if verified.problem:
        msg = f"{str(export.to)!r} was written, but the vote log could not be verified. "
        raise BrokenRecordError(msg + verified.problem)


def models(*, export: Annotated[_Export, Flat]) -> None:
    """Export all current and former models of the roster: names, licences, fingerprints.

    Examples
    --------
    arena export models --to models.csv
    arena export models --to models.parquet --database sqlite:///arena-demo.db
    """
    from arena.boards.export import export_models

    with _exporting(export) as (store, policy, _):
        written = export_models(store, export.file)
    say(f"{export.to}: {written.rows:,} models.")
    _card(export, "models", written, policy)


def ratings(*, export: Annotated[_Export, Flat]) -> None:
    """Export the leaderboard of a policy, with intervals, method and a hash of the votes.

    Exit code 3: the votes do not identify ratings.

    Examples
    --------
    arena export ratings --to ratings.csv
    arena export ratings --to ratings.parquet --policy simulated-v1 --database sqlite:///try.db
    """
    from arena.boards.leaderboard import export_ratings
    from arena.settings import read_settings

    settings = read_settings(database=export.database)
    with _exporting(export) as (store, policy, _):
        written = export_ratings(
            store,
            policy,
            export.file,
            datetime.now(UTC),
            enough=settings.listed_after,
            vote_within=settings.vote_within(),
        )
    say(f"{export.to}: {written.rows:,} models, policy {policy.name}.")
    _card(export, "ratings", written, policy)


@contextmanager
def _exporting(export: _Export, days: Days = EVER) -> "Iterator[tuple[Store, Policy, Advance]]":
    """Give the store, the policy, and what to call with how much is written."""
    from arena.settings import read_settings
    from arena.store.store import existing
    from rating.tables.duckdb_engine import require_writable

    if days.since and days.until and days.until <= days.since:
        msg = f"--until {days.until} is not after --since {days.since}: the range is empty."
        raise SettingsError(msg)
    if not export.hugging_face:
        require_writable(export.to)
    policy = policy_named(export.policy)
    url = read_settings(database=export.database).database
    with existing(url) as store, _folder(export), working("Exporting") as advance:
        yield store, policy, advance


@contextmanager
def _folder(export: _Export) -> Iterator[None]:
    """Make the folder, where one is asked for; what fails leaves none."""
    if not export.hugging_face:
        yield
        return
    if export.to.exists() and not (export.to.is_dir() and not any(export.to.iterdir())):
        raise DataError(f"Cannot write {str(export.to)!r}: it exists. Name a new folder.")
    make_folder(export.file)
    try:
        yield
    except BaseException:
        rmtree(export.to)
        raise


def _followed(rows: Iterable[T], total: int, advance: Advance) -> Iterator[T]:
    """Pass on what is written, and how far that is."""
    for done, row in enumerate(rows, 1):
        yield row
        advance(done, total)


def _topics(prompts: "Sequence[Asked]", battle_of: Mapping[int, str]) -> dict[str, str]:
    """Give what the prompt of a battle is about, where it has a topic."""
    from judge.labels.topics import titles

    named = zip(prompts, titles([one.text for one in prompts]), strict=True)
    return {battle_of[one.key]: title for one, title in named if title is not None}


def _card(export: _Export, what: str, written: "Written", policy: "Policy") -> None:
    from arena.boards.export import card_of, write_card

    write_card(export.file, what, written, policy, export.licence)
    say(f"{card_of(export.file)}: the content of the export, exclusions and reasons.")


def _scrubbed(written: "Written") -> str:
    if written.scrubbed is None:
        return " Texts are complete, including personal data."
    counts = ", ".join(f"{n:,} {kind}" for kind, n in written.scrubbed.items()) or "none"
    return f" Personal data replaced: {counts}."
