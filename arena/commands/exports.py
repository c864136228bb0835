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
    """What is exported from where to where.

    Attributes
    ----------
    to : Path
        File to write: .parquet, .csv or .jsonl. A card of it is written beside it.
    licence : str
        Under which others may use the file, as Hugging Face names licences.
    hugging_face : bool
        Write a new folder as Hugging Face has data sets: Parquet in shards, and README.md.
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
    """Write battles with prompts, both answers, what was measured on them, and votes.

    One row a battle whose vote the policy counts. In the texts mail, phone numbers, keys and
    addresses of IP are replaced by their kind, and counted.

    Parameters
    ----------
    everything
        Also battles that the policy leaves out, and those without a vote.
    whole
        Leave what is personal in the texts.
    layout
        Our columns, those in which Chatbot Arena publishes, or TRL's prompt, chosen and rejected.

    Examples
    --------
    arena export battles --to november.parquet --since 2026-11-01 --until 2026-12-01
    arena export battles --to preferences --layout trl --hugging-face --licence cc-by-4.0
    """
    if everything and layout != "arena":
        msg = f"--layout {layout!r} has no column for what is left out: drop --all."
        raise DataError(msg)
    _battles(export, "battles", layout, days, everything=everything, whole=whole)


def answers(
    *,
    export: Annotated[_Export, Flat],
    days: Annotated[Days, Flat] = EVER,
    everything: All = False,
    whole: bool = False,
) -> None:
    """Write answers with how each ended, its failure, times, tokens and cost.

    One row an answer of the battles whose votes the policy counts, also those that were asked
    for anew. Texts are treated as by arena export battles.

    Parameters
    ----------
    everything
        Also of battles that the policy leaves out, and of those without a vote, where failures
        are.
    whole
        Leave what is personal in the texts.

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
        say(f"{written.lacks} Battles that count and are not in it: {unfit or 'none'}.")
    _card(export, what, written, policy)


def votes(
    *,
    export: Annotated[_Export, Flat],
    days: Annotated[Days, Flat] = EVER,
    tagger: TaggerName = None,
    everything: All = False,
    topics: bool = False,
) -> None:
    """Write the votes that a policy counts, one row per vote, without texts.

    Other votes, those outside --since and --until too, are in the column excluded_vote, with all
    that their hashes bind, so that arena verify can recompute why they are excluded.
    Exit code 3: the vote log cannot be verified; the file is written.

    Parameters
    ----------
    everything
        Also votes that the policy excludes, in the columns of votes, with the reason.
    topics
        Also what each prompt is about, as arena topics would name it now: of 50 prompts and more,
        and never where ARENA_SHOW_BATTLES=false.

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
        msg = (
            "--topics names what a prompt is about, and here nobody may read prompts "
            "(ARENA_SHOW_BATTLES=false): drop it, and see arena topics --private."
        )
        raise SettingsError(msg)
    with _exporting(export, days) as (store, policy, advance), store.reading() as session:
        policy = replace(policy, tagger=labels.tagger_named(session, tagger))
        named = _topics(asked(session, policy), battles(session)) if topics else {}
        total = log.count_links(session)
        links = _followed(log.links(session, policy), total, advance)
        written = export_votes(
            links,
            policy,
            export.file,
            total=total,
            topics=named,
            days=days,
            everything=everything,
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
    """Write the models that have ever been in the roster: names, licences, fingerprints.

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
    """Write the leaderboard of a policy, with intervals, method and hash of the votes.

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
        msg = f"--until {days.until} is not after --since {days.since}: nothing lies between them."
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
        msg = f"Cannot write {str(export.to)!r}: something is there. Name a new folder."
        raise DataError(msg)
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
    say(f"{card_of(export.file)}: what is in it, what is not, and why.")


def _scrubbed(written: "Written") -> str:
    if written.scrubbed is None:
        return " Texts are whole, with what is personal in them."
    counts = ", ".join(f"{n:,} {kind}" for kind, n in written.scrubbed.items()) or "none"
    return f" Personal pieces replaced: {counts}."
