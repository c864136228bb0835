"""Boards in the database: the newest of each policy, as signed JSON, for all processes."""

import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col

from arena.domain.board_view import (
    Board,
    BoardRow,
    Fewest,
    FitCheck,
    Hold,
    Misfit,
    ModelRecord,
    Moment,
    Newcomer,
    OrganisationShare,
    PairCell,
    PastRating,
    SelfNaming,
    Waiting,
)
from arena.domain.model import Entrant, Kind, Stage
from arena.domain.vote import Policy
from arena.store import blocks, chain, exclusions, people, roster
from arena.store.tables import StoredBoardRow
from rating.report import ModelRating
from rating.sentences import Sentence
from rating.tables.log import LoggedVotes

_PARTS = (
    Board,
    BoardRow,
    Fewest,
    FitCheck,
    Hold,
    Misfit,
    ModelRating,
    ModelRecord,
    Moment,
    Newcomer,
    OrganisationShare,
    PairCell,
    PastRating,
    SelfNaming,
    Waiting,
)
_OF = {part.__name__: part for part in _PARTS}
_INSERT = postgresql.insert(StoredBoardRow)
_COLUMNS = ("version", "board", "took_s", "created")
_KEEP = _INSERT.on_conflict_do_update(
    index_elements=["policy"], set_={name: _INSERT.excluded[name] for name in _COLUMNS}
)
"""SQLite writes it in the same words."""
_SEAL = 64
"""Characters before the JSON that sign it."""


@dataclass(frozen=True, slots=True)
class State:
    """What a board is made of.

    Attributes
    ----------
    head : str
        Hash of the newest link.
    held : mapping of str to float
        Rules that are held: see `arena.store.exclusions.held`.
    known : int
        Voters who turned out to be persons whom the arena knows.
    entrants : mapping of str to Entrant
        See `arena.store.roster.entrants`.
    """

    head: str
    held: Mapping[str, float]
    known: int
    entrants: Mapping[str, Entrant]


@dataclass(frozen=True, slots=True)
class Written:
    """Which board is kept: its version, the seconds of making for which it rests, and when."""

    version: str
    took_s: float
    created: datetime


def written(session: Session, policy: str) -> Written | None:
    """Say which board is kept, if any is."""
    columns = (StoredBoardRow.version, StoredBoardRow.took_s, StoredBoardRow.created)
    query = select(*map(col, columns)).where(_is_of(policy))
    row = session.connection().execute(query).one_or_none()
    return row and Written(**row._asdict())


def read(session: Session, policy: str, key: bytes) -> Board | None:
    """Read the board that is kept; None if there is none that this version's code can read.

    One that somebody else wrote, who does not have the key, is none.
    """
    query = select(col(StoredBoardRow.version), col(StoredBoardRow.board)).where(_is_of(policy))
    row = session.connection().execute(query).one_or_none()
    if row is None:
        return None
    seal, text = row.board[:_SEAL], row.board[_SEAL:]
    if not hmac.compare_digest(seal.encode(), _seal(key, policy, row.version, text).encode()):
        return None
    try:
        board = _plain_to_value(json.loads(text))
    except (KeyError, TypeError, ValueError):  # that of another version has other fields
        return None
    return board if isinstance(board, Board) else None


def keep(session: Session, board: Board, by: Written, key: bytes) -> None:
    """Store a board in place of the last one of its policy, signed."""
    text = json.dumps(_value_to_plain(board), separators=(",", ":"))
    text = _seal(key, board.policy, by.version, text) + text
    session.connection().execute(_KEEP, {"policy": board.policy, "board": text, **asdict(by)})


def drop(session: Session) -> None:
    """Delete all boards, to be made anew."""
    session.connection().execute(delete(StoredBoardRow))


def _seal(key: bytes, *parts: str) -> str:
    return hmac.new(key, json.dumps(["board", *parts]).encode(), "sha256").hexdigest()


def votes(session: Session, policy: Policy) -> tuple[State, LoggedVotes]:
    """Read what a board is made of: the state that it has, and every vote."""
    return state(session), blocks.coded(session, policy)


def _is_of(policy: str) -> ColumnElement[bool]:
    return col(StoredBoardRow.policy) == policy


def _value_to_plain(value: object) -> object:
    """Write a value as JSON does, with what it would lose: kinds of values, and of sentences."""
    if isinstance(value, Sentence):
        values = {name: _value_to_plain(one) for name, one in value.values.items()}
        return {"sentence": value.template, "many": value.many, "values": values}
    if isinstance(value, Kind):
        return {"kind": value.value}
    if isinstance(value, Stage):
        return {"stage": value.value}
    if isinstance(value, datetime):
        return {"moment": value.isoformat()}
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
        of = {name: _value_to_plain(getattr(value, name)) for name in names}
        return {"part": type(value).__name__, "of": of}
    if isinstance(value, Mapping):
        return {"map": {name: _value_to_plain(one) for name, one in value.items()}}
    if isinstance(value, tuple | list):
        return [_value_to_plain(one) for one in value]
    return value


def _plain_to_value(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(map(_plain_to_value, plain))
    if not isinstance(plain, dict):
        return plain
    match plain:
        case {"sentence": template, "many": many, "values": values}:
            return Sentence(template, many, **_values(values))
        case {"kind": kind}:
            return Kind(kind)
        case {"stage": stage}:
            return Stage(stage)
        case {"moment": moment}:
            return datetime.fromisoformat(moment)
        case {"part": name, "of": of}:
            return _OF[name](**_values(of))
        case {"map": values}:
            return _values(values)
    msg = f"{plain!r} is no part of a board"
    raise ValueError(msg)


def _values(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain_to_value(one) for name, one in plain.items()}


def state(session: Session) -> State:
    """Read what a board would be made of now."""
    return State(
        chain.head(session),
        exclusions.held(session),
        people.adopted(session),
        roster.entrants(session),
    )
