"""A board as a folder that anybody can check: its files, and how they are written."""

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from arena.boards.evaluation import card_of
from arena.boards.export import export_votes
from arena.boards.fitted import OPTIONS
from arena.boards.leaderboard import make_board, on_held, version_of
from arena.domain.board_view import Board
from arena.domain.evaluation import CallLimits, EvaluationCard, Statements
from arena.domain.model import Release
from arena.domain.vote import Policy
from arena.errors import BrokenRecordError
from arena.store import evaluation, kept_boards, log
from arena.store.kept_boards import State
from arena.store.store import Store
from arena.store.verify import verify
from rating import __version__
from rating.errors import DataError
from rating.tables.formats import as_csv, as_json

FORMAT: Literal["arena-bundle-1"] = "arena-bundle-1"
MANIFEST = "manifest.json"
VOTES: Literal["votes.parquet"] = "votes.parquet"
FILES = ("board.csv", "board.json", "card.json", "index.html", VOTES)
"""What a manifest names."""

Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(max_length=10_000)]


class Exact(BaseModel):
    """What a file of a bundle holds; nothing else fits."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class PublishedChain(Exact):
    """The end of the record that the votes are of."""

    head: Hash
    links: Count


class Manifest(Exact):
    """What is in a bundle.

    Attributes
    ----------
    arena : str
        Version of the program that wrote it.
    made : str
        Moment of the board.
    options : mapping
        By which the votes were rated: fields of `rating.RateOptions`.
    state : State
        What the board is made of beside the votes.
    listed_after : int
        Counted votes from which a model is listed.
    withheld : list of str
        Files that need not be there, as they were not published.
    files : mapping of str to str
        SHA-256 of each file, by name.
    hash : str
        SHA-256 of all that stands above.
    """

    format: Literal["arena-bundle-1"]
    arena: Text
    policy: Text
    made: Text
    chain: PublishedChain
    options: dict[Text, Any]
    state: State
    listed_after: Count
    withheld: list[Literal["votes.parquet"]]
    files: dict[Text, Hash]
    hash: Hash

    def right_hash(self) -> str:
        """Work out what `hash` has to be."""
        return sha256(as_json(self.model_dump(exclude={"hash"})).encode()).hexdigest()


class PublishedRow(Exact):
    """A rated model, with what its page shows; other columns are as in `BoardRow`."""

    model_config = ConfigDict(extra="allow")

    model: Text
    name: Text
    organisation: Text
    kind: Literal["model", "system"]
    rating: float
    lower: float | None
    upper: float | None
    rank_low: int | None
    rank_high: int | None
    votes: Count
    win_rate: float
    win_rate_low: float
    win_rate_high: float
    price_per_1000: float | None
    median_s: float | None


class PublishedWaiting(Exact):
    """A model without a rating."""

    model_config = ConfigDict(extra="allow")

    model: Text
    name: Text
    organisation: Text
    votes: Count
    reason: Text


class PublishedMethod(Exact):
    """How a board was made."""

    words: Text
    level: float
    anchor_mean: float
    listed_after: Count
    policy: Text
    policy_rules: list[Text]
    version: Text
    data_hash: Hash
    updated: Text


class PublishedVotes(Exact):
    """What a board rests on."""

    used: Count
    dropped: dict[Text, Count]
    voters: Count
    effective_voters: float | None
    top_voter_share: float | None


class PublishedShare(Exact):
    """How often the models of an organisation were voted on."""

    organisation: Text
    models: Count
    votes: Count
    share: float


class PublishedBoard(Exact):
    """A board as ``board.json`` has it: see `arena.domain.board_view.Board.to_dict`.

    There are no ``newcomers``: nobody could check a judge's ratings by the votes.
    """

    method: PublishedMethod
    votes: PublishedVotes
    ratings: list[PublishedRow]
    newcomers: Annotated[list[Text], Field(max_length=0)]
    waiting: list[PublishedWaiting]
    shares: list[PublishedShare]
    gini: float | None
    warnings: list[Text]


CARD = TypeAdapter(EvaluationCard)

Page = Callable[[PublishedBoard, EvaluationCard, bool], str]
"""Writes ``index.html`` of a board and its card; the truth value is whether votes are withheld."""


@dataclass(frozen=True, slots=True)
class Published:
    """What was written.

    Attributes
    ----------
    hash : str
        Of the manifest, which stands for the whole.
    head : str
        Hash of the newest link of the votes.
    """

    models: int
    votes: int
    hash: str
    head: str


def card_text(card: EvaluationCard) -> str:
    """Write a card as JSON."""
    return as_json(CARD.dump_python(card, mode="json"))


def plain_options() -> dict[str, Any]:
    """Give the options of every board as JSON has them."""
    options: dict[str, Any] = json.loads(json.dumps(asdict(OPTIONS)))
    return options


def publish(
    store: Store,
    policy: Policy,
    statements: Statements,
    limits: CallLimits,
    folder: Path,
    now: datetime,
    *,
    enough: int,
    vote_within: timedelta,
    page: Page,
    check: Callable[[Path], Sequence[str]],
    votes_to: Path | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Published:
    """Write the board of a policy with its card and its votes into a folder, all or nothing.

    Parameters
    ----------
    enough : int
        Counted votes from which a model is listed.
    vote_within : timedelta
        How long a battle takes a vote after its models were last asked.
    check : callable
        Gives what is wrong with a bundle: see `arena.boards.bundle_check`. One with which
        something is wrong is not published.
    votes_to : Path, optional
        New file for the votes, of which the folder then has the hash alone.
    progress : callable
        Called with the links that were followed so far, and how many there are.

    Raises
    ------
    DataError
        If a section or a statement of the card is empty, naming each; or if the folder or the
        file cannot be written.
    BrokenRecordError
        If the vote log cannot be verified, or the bundle would not.
    """
    _require_free(folder, votes_to)
    with _aside(folder) as made:
        with store.reading() as session:
            state, columns = kept_boards.votes(session, policy)
            asked_since = now - vote_within
            records = [
                record.rounded()
                for record in log.model_records(session, asked_since, policy.kinds)
            ]
            hidden = {m for m, one in state.entrants.items() if one.release is Release.HIDDEN}
            state = replace(
                state, entrants={m: one for m, one in state.entrants.items() if m not in hidden}
            )
            board = make_board(
                columns,
                [record for record in records if record.id not in hidden],
                policy,
                version_of(state, enough),
                now,
                held=on_held(state.held),
                entrants=state.entrants,
                enough=enough,
            )
            models = [row.model for row in board.rows]
            logged = evaluation.read(session, policy, models, asked_since)
            card = card_of(board, logged, policy, statements, limits)
            _require_whole(card, board)
            _require_right(
                "the vote log could not be verified", verify(session, progress=progress).problem
            )
            export_votes(log.links(session, policy), policy, made / VOTES, total=logged.links)
        _write(made, _texts(board, card, page, withheld=votes_to is not None))
        manifest = _manifest(made, card, board, state, [VOTES] if votes_to else [])
        _write(made, {MANIFEST: as_json(manifest.model_dump())})
        _require_right("the folder would not verify", *check(made)[:1])
        _place(made, folder, votes_to)
    return Published(len(board.rows), board.votes, manifest.hash, logged.head)


def _require_free(folder: Path, votes_to: Path | None) -> None:
    """Raise `DataError` unless folder and file can be made."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        msg = f"Cannot publish into {str(folder)!r}: it is no folder. Name one that is not there."
        raise DataError(msg)
    if folder.exists() and any(folder.iterdir()):
        msg = (
            f"Cannot publish into {str(folder)!r}: it is not empty. Name a folder that is not "
            "there, or is empty; what is in this one stays as it is."
        )
        raise DataError(msg)
    if votes_to is not None and (votes_to.suffix != ".parquet" or votes_to.exists()):
        msg = (
            f"Cannot write the votes to {str(votes_to)!r}: name a file that ends in .parquet "
            "and is not there yet."
        )
        raise DataError(msg)


def _require_whole(card: EvaluationCard, board: Board) -> None:
    if card.missing:
        why = f" {board.reason}" if board.reason else ""
        msg = (
            f"Nothing was published: the card lacks {', '.join(card.missing)}.{why} A person "
            "writes statements into card.toml (--card, ARENA_CARD); the sections inputs, calls, "
            "outputs and interpretation fill themselves with the votes."
        )
        raise DataError(msg)


def _require_right(what: str, problem: str | None = None) -> None:
    if problem:
        msg = f"Nothing was published: {what}. {problem}"
        raise BrokenRecordError(msg)


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """Give a new folder beside the one to be; what is left of it at the end goes."""
    made = folder.absolute().with_name(f".{folder.name}-{secrets.token_hex(6)}")
    try:
        made.mkdir()
        yield made
    except OSError as error:
        msg = f"Cannot publish into {str(folder)!r}: {error.strerror}."
        raise DataError(msg) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _texts(board: Board, card: EvaluationCard, page: Page, *, withheld: bool) -> dict[str, str]:
    """Write all but the votes and the manifest; the page is of what the other files hold."""
    texts = {
        "board.json": as_json(board.to_dict()),
        "board.csv": as_csv(board.to_rows()),
        "card.json": card_text(card),
    }
    shown = PublishedBoard.model_validate_json(texts["board.json"])
    return texts | {
        "index.html": page(shown, CARD.validate_json(texts["card.json"]), withheld),
    }


def _write(made: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (made / name).write_text(text, encoding="utf-8", newline="")


def _manifest(
    made: Path,
    card: EvaluationCard,
    board: Board,
    state: State,
    withheld: list[Literal["votes.parquet"]],
) -> Manifest:
    end = card.interpretation
    manifest = Manifest(
        format=FORMAT,
        arena=__version__,
        policy=board.policy,
        made=board.updated.isoformat(),
        chain=PublishedChain(head=end.chain_head, links=end.chain_links),
        options=plain_options(),
        state=state,
        listed_after=board.listed_after,
        withheld=withheld,
        files={name: file_hash(made / name) for name in FILES},
        hash="0" * 64,
    )
    return manifest.model_copy(update={"hash": manifest.right_hash()})


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        whole = sha256()
        while part := file.read(1 << 20):
            whole.update(part)
    return whole.hexdigest()


def _place(made: Path, folder: Path, votes_to: Path | None) -> None:
    """Put what is whole in its place: until then there is nothing at it."""
    (made / VOTES).chmod((made / MANIFEST).stat().st_mode)  # for anybody to read, as the rest
    for name in (*FILES, MANIFEST):
        _sync(made / name)
    if votes_to is not None:
        shutil.move(made / VOTES, votes_to)
        _sync(votes_to)
    _sync(made)
    try:
        made.replace(folder)
    except OSError:
        if votes_to is not None:
            votes_to.unlink()
        raise
    _sync(folder.absolute().parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
