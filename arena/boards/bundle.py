"""A published board: a folder that anybody can verify offline, without this arena.

`publish` writes the board, its card, its votes and a manifest with their hashes, all or nothing.
`check_bundle` verifies such a folder: its files, the chain of its votes, and that these votes give
its numbers. Nothing is published that does not pass this check.
"""

import json
import math
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from arena.boards.evaluation import calls_of, card_of, code_hash
from arena.boards.export import Row, export_votes
from arena.boards.fitted import OPTIONS
from arena.boards.leaderboard import make_board
from arena.boards.record_file import POLICY, read_votes
from arena.domain.board_view import Board, ModelRecord, rows_of
from arena.domain.model import Kind, Release
from arena.domain.study import CallLimits, EvaluationCard, ModelCall, Statements, VoteFacts
from arena.domain.vote import Policy
from arena.errors import BrokenRecordError
from arena.store import kept_boards, log
from arena.store.kept_boards import State
from arena.store.store import Store
from arena.store.verify import verify
from rating import __version__
from rating.errors import DataError, RatingError
from rating.sentences import plural
from rating.tables.coding import LOGGED_SIDES, LoggedVotes, coded_list, microseconds
from rating.tables.files import parsed
from rating.tables.formats import as_csv, as_json

# Files and publication

FORMAT: Literal["arena-bundle-1"] = "arena-bundle-1"
MANIFEST = "manifest.json"
VOTES: Literal["votes.parquet"] = "votes.parquet"
FILES = ("board.csv", "board.json", "card.json", "index.html", VOTES)
"""What a manifest names."""

Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(max_length=10_000)]


class _Exact(BaseModel):
    """What a file of a bundle holds; nothing else fits."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class _PublishedChain(_Exact):
    """The end of the record that the votes are of."""

    head: Hash
    links: Count


class Manifest(_Exact):
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
    chain: _PublishedChain
    options: dict[Text, Any]
    state: State
    listed_after: Count
    withheld: list[Literal["votes.parquet"]]
    files: dict[Text, Hash]
    hash: Hash

    def right_hash(self) -> str:
        """Work out what `hash` has to be."""
        return sha256(as_json(self.model_dump(exclude={"hash"})).encode()).hexdigest()


class PublishedRow(_Exact):
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


class _PublishedWaiting(_Exact):
    """A model without a rating."""

    model_config = ConfigDict(extra="allow")

    model: Text
    name: Text
    organisation: Text
    votes: Count
    reason: Text


class _PublishedMethod(_Exact):
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


class _PublishedVotes(_Exact):
    """What a board rests on."""

    used: Count
    dropped: dict[Text, Count]
    voters: Count
    effective_voters: float | None
    top_voter_share: float | None


class _PublishedShare(_Exact):
    """How often the models of an organisation were voted on."""

    organisation: Text
    models: Count
    votes: Count
    share: float


class PublishedBoard(_Exact):
    """A board as ``board.json`` has it: see `arena.domain.board_view.Board.to_dict`.

    There are no ``newcomers``: nobody could check a judge's ratings by the votes.
    """

    method: _PublishedMethod
    votes: _PublishedVotes
    ratings: list[PublishedRow]
    newcomers: Annotated[list[Text], Field(max_length=0)]
    waiting: list[_PublishedWaiting]
    shares: list[_PublishedShare]
    gini: float | None
    warnings: list[Text]


CARD = TypeAdapter(EvaluationCard)

Page = Callable[[PublishedBoard, EvaluationCard, bool], str]
"""Writes ``index.html`` of a board and its card; the truth value is whether votes are withheld."""


class Published(NamedTuple):
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


def _card_text(card: EvaluationCard) -> str:
    """Write a card as JSON."""
    return as_json(CARD.dump_python(card, mode="json"))


def _plain_options() -> dict[str, Any]:
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
        Gives what is wrong with a bundle: see `check_bundle`. One with which
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
                state,
                now,
                enough=enough,
            )
            models = [row.model for row in board.rows]
            logged = log.card_facts(session, policy, models, asked_since)
            calls = calls_of(logged.asked, board)
            card = card_of(board, logged, calls, policy, statements, limits)
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
        raise DataError(
            f"Cannot publish into {str(folder)!r}: it is not empty. Name a folder that is not "
            "there, or is empty; what is in this one stays as it is."
        )
    if votes_to is not None and (votes_to.suffix != ".parquet" or votes_to.exists()):
        raise DataError(
            f"Cannot write the votes to {str(votes_to)!r}: name a file that ends in .parquet "
            "and is not there yet."
        )


def _require_whole(card: EvaluationCard, board: Board) -> None:
    if card.missing:
        why = f" {board.reason}" if board.reason else ""
        raise DataError(
            f"Nothing was published: the card lacks {', '.join(card.missing)}.{why} Write "
            "the statements in card.toml (--card, ARENA_CARD); the sections inputs, calls, "
            "outputs and interpretation are filled from the votes."
        )


def _require_right(what: str, problem: str | None = None) -> None:
    if problem:
        raise BrokenRecordError(f"Nothing was published: {what}. {problem}")


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """Give a new folder beside the one to be; what is left of it at the end goes."""
    made = folder.absolute().with_name(f".{folder.name}-{secrets.token_hex(6)}")
    try:
        made.mkdir()
        yield made
    except OSError as error:
        raise DataError(f"Cannot publish into {str(folder)!r}: {error.strerror}.") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _texts(board: Board, card: EvaluationCard, page: Page, *, withheld: bool) -> dict[str, str]:
    """Write all but the votes and the manifest; the page is of what the other files hold."""
    texts = {
        "board.json": as_json(board.to_dict()),
        "board.csv": as_csv(board.to_rows()),
        "card.json": _card_text(card),
    }
    shown = PublishedBoard.model_validate_json(texts["board.json"])
    return texts | {"index.html": page(shown, CARD.validate_json(texts["card.json"]), withheld)}


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
        chain=_PublishedChain(head=end.chain_head, links=end.chain_links),
        options=_plain_options(),
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


# Verification

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
COLUMN_OF = {role: role for role in (*LOGGED_SIDES, "winner", "left_out")}
COLUMN_OF |= {"voter": "person", "prompt": "prompt_id"}

TOLERANCE = 1e-9
"""By how much a number may differ, as a share of it or of one: machines round differently."""
LARGEST = 1 << 25
"""Bytes of a file except the votes; of a manifest a thirty-second of that."""
MOST_ENTRIES = 100
MOST_PROBLEMS = 200
"""Problems that are named; of more the number is."""
LONGEST = 80
"""Characters of a value that a sentence quotes."""
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Checked:
    """What there is to say of a bundle.

    Attributes
    ----------
    problems : list of str
        All that is wrong, each in a sentence.
    notes : list of str
        What could not be checked, and why.
    hash : str or None
        Of the manifest; None where that cannot be read.
    links : int
        Links of the chain that follow from one another.
    head : str
        Hash of the last of them.
    noted : int or None
        The link that has the noted hash.
    models, votes : int
        On the board as the votes give it; 0 where they are not there.
    """

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hash: str | None = None
    links: int = 0
    head: str = ""
    noted: int | None = None
    models: int = 0
    votes: int = 0


def check_bundle(folder: Path, page: Page, noted: str = "") -> Checked:
    """Check a folder that `publish` wrote, as far as it can be read.

    Parameters
    ----------
    page : callable
        Writes ``index.html`` again.
    noted : str
        First characters of the hash of a link that was noted earlier, or of a manifest.

    Raises
    ------
    DataError
        If the folder cannot be read, or has no manifest.
    """
    check = _Check(folder, page)
    check.run(noted)
    more = len(check.done.problems) - MOST_PROBLEMS
    if more > 0:
        check.done.problems[MOST_PROBLEMS:] = [f"And {plural(more, 'more problem')}."]
    return check.done


class _Claims(NamedTuple):
    """What a bundle says of its votes: all that can be compared with them."""

    manifest: Manifest
    board: PublishedBoard
    card: EvaluationCard


class _Check:
    """One check of one folder: each step notes what is wrong, and goes on with what is left."""

    def __init__(self, folder: Path, page: Page) -> None:
        self.folder = folder
        self.page = page
        self.done = Checked()
        self.there: set[str] = set()

    def wrong(self, problem: str) -> None:
        self.done.problems.append(problem)

    def run(self, noted: str) -> None:
        self._look()
        manifest, board, card = self._manifest(), self._board(), self._card()
        self._hold_hashes(manifest)
        claims = _Claims(manifest, board, card) if manifest and board and card else None
        if claims:
            self._hold_page(claims)
            self._hold_facts(claims)
        of_folder = bool(noted) and (self.done.hash or "").startswith(noted)
        if VOTES in self.there:
            self._hold_votes(claims, "" if of_folder else noted)
            return
        self.done.notes.append(
            f"{VOTES} is not there: the board was not rated again, and its chain not followed."
        )
        if noted and not of_folder:
            self.wrong(f"The hash {noted!r} is not that of the folder, and no chain is there.")

    def _look(self) -> None:
        """See which files there are, without following any link."""
        try:
            with os.scandir(self.folder) as entries:
                files = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            msg = f"Cannot verify {str(self.folder)!r}: {error.strerror}. Name a folder."
            raise DataError(msg) from error
        if MANIFEST not in {name for name, _ in files}:
            raise DataError(
                f"Cannot verify {str(self.folder)!r}: it has no {MANIFEST}. Give a folder as "
                "`arena publish` wrote it."
            )
        extra = sorted(name for name, _ in files if name not in (*FILES, MANIFEST))
        for name in extra[:MOST_ENTRIES]:
            self.wrong(f"{_quoted(name)} is in the folder, and no bundle has such a file.")
        if len(extra) > MOST_ENTRIES:
            self.wrong(f"So are {plural(len(extra) - MOST_ENTRIES, 'more file')}.")
        for name, entry in sorted(files):
            if name not in (*FILES, MANIFEST):
                continue
            if stat.S_ISREG(entry.st_mode):
                self.there.add(name)
            else:
                kind = "a link" if stat.S_ISLNK(entry.st_mode) else "no file"
                self.wrong(f"{name} is {kind}: it was not read.")

    def _is_small(self, name: str) -> bool:
        """Tell whether a file is there that may be read whole."""
        if name not in self.there:
            return False
        most = LARGEST // 32 if name == MANIFEST else LARGEST
        size = (self.folder / name).stat().st_size
        if size > most:
            self.wrong(f"{name} has {size:,} bytes, and may have {most:,}: it was not read.")
        return size <= most

    def _read(self, name: str, read: Callable[[str], T]) -> T | None:
        """Read a file of JSON, which has to be written as we write it."""
        if not self._is_small(name):
            return None
        try:
            text = (self.folder / name).read_text(encoding="utf-8")
            if as_json(parsed(text, name)) != text:
                self.wrong(f"{name} is not written as `arena publish` writes it.")
            return read(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the whole"
            self.wrong(f"{name}: {_quoted(where)} does not fit: {first['msg']}.")
        except (DataError, ValueError, RecursionError, TypeError) as error:
            self.wrong(f"{name} cannot be read: {str(error)[:300]}")
        except OSError as error:
            self.wrong(f"{name} cannot be read: {error.strerror}.")
        return None

    def _manifest(self) -> Manifest | None:
        manifest = self._read(MANIFEST, _strictly(Manifest))
        if manifest is None:
            return None
        self.done.hash = manifest.hash
        if manifest.hash != manifest.right_hash():
            self.wrong(f"{MANIFEST}: its hash is not that of what it says.")
        ours, is_other = _plain_options(), manifest.arena != __version__  # which has fewer options
        for name in sorted({*ours, *manifest.options}):
            if name not in manifest.options and is_other:
                continue
            theirs = manifest.options.get(name, "missing")
            if theirs != ours.get(name):
                self.wrong(
                    f"{MANIFEST}: the option {_quoted(name)} is {_quoted(theirs)}, and this "
                    f"version rates with {_quoted(ours.get(name))}."
                )
        if manifest.policy not in POLICY:
            self.wrong(f"{MANIFEST}: there is no policy {_quoted(manifest.policy)}.")
        return manifest

    def _hold_hashes(self, manifest: Manifest | None) -> None:
        files = manifest.files if manifest else {}
        withheld = manifest.withheld if manifest else []
        for name in sorted({*files} - {*FILES})[:MOST_ENTRIES]:
            self.wrong(f"{MANIFEST} names {_quoted(name)}, and no bundle has such a file.")
        for name in FILES:
            if manifest and name not in files:
                self.wrong(f"{MANIFEST} does not name {name}.")
            if name not in self.there:
                if name not in withheld:
                    self.wrong(f"{name} is missing.")
            elif name in files and file_hash(self.folder / name) != files[name]:
                self.wrong(f"{name} is not as it was published: its hash is another.")

    def _board(self) -> PublishedBoard | None:
        board = self._read("board.json", _strictly(PublishedBoard))
        if board is not None and self._is_small("board.csv"):
            rows = rows_of(self._plain("board.json"))
            if any(row.keys() != rows[0].keys() for row in rows):
                self.wrong("board.json: its ratings have not all the same columns.")
                return None
            right = as_csv(rows).encode()
            there = (self.folder / "board.csv").read_bytes()
            lines = zip_longest(there.split(b"\n"), right.split(b"\n"))
            for number, (ours, theirs) in enumerate(lines, 1):
                if ours != theirs:
                    self.wrong(f"board.csv: line {number} is not that of board.json.")
        return board

    def _card(self) -> EvaluationCard | None:
        card = self._read("card.json", lambda text: CARD.validate_json(text, strict=True))
        if card is None:
            return None
        if _card_text(card) != (self.folder / "card.json").read_text(encoding="utf-8"):
            self.wrong("card.json holds more than a card, or other than one.")
        if missing := card.statements.missing:
            self.wrong(f"card.json lacks {', '.join(missing)}.")
        return card

    def _plain(self, name: str) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
        return plain

    def _hold_page(self, claims: _Claims) -> None:
        """Write the page again of the board and the card, of which alone it is made."""
        if not self._is_small("index.html"):
            return
        if claims.manifest.arena != __version__:
            self.done.notes.append(
                f"index.html was written by arena {claims.manifest.arena[:LONGEST]}, and this is "
                f"{__version__}: it is held by its hash alone."
            )
            return
        try:
            page = self.page(claims.board, claims.card, bool(claims.manifest.withheld))
        except (ArithmeticError, ValueError, LookupError, TypeError) as error:
            self.wrong(f"index.html cannot be made of board.json and card.json: {error!r}")
            return
        if (self.folder / "index.html").read_bytes() != page.encode():
            self.wrong("index.html does not show what board.json and card.json say.")

    def _hold_facts(self, claims: _Claims) -> None:
        """Compare with each other what several files say."""
        manifest, card, method = claims.manifest, claims.card.interpretation, claims.board.method
        for name, ours, right in (
            ("its policy", method.policy, manifest.policy),
            ("its moment", method.updated, manifest.made),
        ):
            if ours != right:
                self.wrong(
                    f"board.json: {name} is {_quoted(ours)}, in {MANIFEST} {_quoted(right)}."
                )
        if (card.chain_head, card.chain_links) != (manifest.chain.head, manifest.chain.links):
            self.wrong(f"card.json: the end of its chain is another than in {MANIFEST}.")
        if manifest.state.head != manifest.chain.head:
            self.wrong(f"{MANIFEST}: its board is of another link than the newest.")
        if manifest.arena == __version__ and card.code != code_hash():
            self.done.notes.append(
                "The program that published this has other code than this one, of the same "
                f"version {__version__}."
            )

    def _hold_votes(self, claims: _Claims | None, noted: str) -> None:
        """Follow the chain, rate the votes again, and hold all numbers against them."""
        try:
            verified, votes = read_votes(self.folder / VOTES, noted)
        except DataError as error:
            self.wrong(f"{VOTES}: {error}")
            return
        self.done.links, self.done.head = verified.links, verified.head
        self.done.noted = verified.noted
        if verified.problem:
            self.wrong(f"{VOTES}: {verified.problem}")
        if claims and claims.manifest.policy in POLICY:
            chain = claims.manifest.chain
            if (verified.head, verified.links) != (chain.head, chain.links):
                self.wrong(
                    f"{VOTES}: its chain ends at link {verified.links:,}, and in {MANIFEST} at "
                    f"{chain.links:,}, or with another hash."
                )
            scope = verified.scope
            if scope and scope.policy != claims.manifest.policy:
                self.wrong(f"{VOTES}: it is of another policy than {MANIFEST}.")
            if scope and (scope.since or scope.until or scope.all_votes):
                self.wrong(f"{VOTES}: it is not of all votes that a board is made of.")
            self._hold_numbers(claims, votes)

    def _hold_numbers(self, claims: _Claims, votes: Sequence[Row]) -> None:
        try:
            board = _rated(claims, votes)
        except (RatingError, ArithmeticError, ValueError) as error:
            self.wrong(f"{VOTES}: its votes cannot be rated: {str(error)[:300]}")
            return
        self.done.models, self.done.votes = len(board.rows), board.votes
        card = _card_of(claims.card, votes, board, self.done)
        for name, right in (("board.json", as_json(board.to_dict())), ("card.json", card)):
            for place, ours, theirs in _differences(self._plain(name), json.loads(right)):
                self.wrong(
                    f"{name}: {place} is {_quoted(ours)}, and the votes give {_quoted(theirs)}."
                )


def _rated(claims: _Claims, votes: Sequence[Row]) -> Board:
    """Make the board of votes; what they do not say of its models is as the bundle says it."""
    manifest = claims.manifest
    moments = [row["ts"].replace(tzinfo=UTC) if row["ts"] else NEVER for row in votes]
    columns = LoggedVotes(
        texts={r: coded_list([row[name] for row in votes]) for r, name in COLUMN_OF.items()},
        created=np.array([microseconds(moment) for moment in moments], dtype=np.int64),
    )
    named = [one.model_dump() for one in (*claims.board.waiting, *claims.board.ratings)]
    known = {one["model"]: _record(one) for one in named}
    voted_on = {name for side in LOGGED_SIDES for name in columns.texts[side].names} - {*known}
    board = make_board(
        columns,
        [*known.values(), *(_record({"model": one}) for one in sorted(voted_on))],
        POLICY[manifest.policy],
        manifest.state,
        datetime.fromisoformat(manifest.made),
        enough=manifest.listed_after,
    )
    return replace(board, version=board.version.removesuffix(__version__) + manifest.arena)


def _card_of(card: EvaluationCard, votes: Sequence[Row], board: Board, end: Checked) -> str:
    """Write the card of a board of votes; what neither says is as on the card that is there."""
    facts = VoteFacts.of(
        {**row, "ts": row["ts"].replace(tzinfo=UTC)}
        for row in votes
        if row["left_out"] is None and row["winner"] is not None
    )
    calls = {
        row.model: ModelCall(id=row.model, name=row.model, kind=Kind.MODEL) for row in board.rows
    }
    right = card_of(
        board,
        log.CardFacts(facts, {}, end.head, end.links),
        calls | {call.id: call for call in card.calls.models},
        POLICY[board.policy],
        card.statements,
        card.calls.limits,
        card.interpretation.code,
    )
    return _card_text(right)


def _differences(given: object, right: object, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Give the places at which two plain values differ, and both values there.

    Examples
    --------
    >>> list(_differences({"a": [1.0, 2.0]}, {"a": [1.0 + 1e-12, 3.0]}))
    [('a.1', 2.0, 3.0)]
    >>> list(_differences({"ratings": [{"model": "x", "rank": 1}]}, {"ratings": []}))
    [('ratings.x', {'model': 'x', 'rank': 1}, None)]
    """
    match given, right:
        case {}, {}:
            for name in dict.fromkeys((*given, *right)):
                yield from _differences(given.get(name), right.get(name), _below(place, name))
        case [*ours], [*theirs]:
            for number, (one, other) in enumerate(zip_longest(ours, theirs)):
                named = one if isinstance(one, dict) else other
                name = named.get("model") or named.get("id") if isinstance(named, dict) else None
                yield from _differences(one, other, _below(place, str(name or number)))
        case (float() | int() as ours, float() | int() as theirs) if float in (
            type(given),
            type(right),
        ):
            if not math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
                yield place, given, right
        case _:
            if given != right:
                yield place, given, right


def _below(place: str, name: str) -> str:
    name = name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
    return f"{place}.{name}" if place else name


def _strictly(model: type[M]) -> Callable[[str], M]:
    return lambda text: model.model_validate_json(text, strict=True)


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _record(row: Mapping[str, Any]) -> ModelRecord:
    return ModelRecord(
        id=row["model"],
        name=row.get("name", row["model"]),
        organisation=row.get("organisation", ""),
        kind=Kind(row.get("kind", Kind.MODEL)),
        price_per_1000=row.get("price_per_1000"),
        median_s=row.get("median_s"),
    )
