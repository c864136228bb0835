"""Boards in the database, for all processes; and the status of the arena in the last day.

The newest board of each policy is stored as JSON that is signed: whoever can write to the database
but has not the key cannot show a board of their own. `status` is what operators look at first.
"""

import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col, func
from sqlmodel import select as select_rows

from arena.domain import board_view
from arena.domain.battle import BattleState, Mode
from arena.domain.board_view import Board
from arena.domain.model import BESIDE, Entrant, Kind, Stage
from arena.domain.vote import Choice, FailureClass, Policy
from arena.store import blocks, chain, log, people, roster, voting
from arena.store.battles import is_owned_by
from arena.store.tables import (
    OWNER,
    RUNNING,
    AnswerRow,
    BattleRow,
    ModelRow,
    StoredBoardRow,
    Table,
    VoteRow,
    VoterRow,
)
from rating.sentences import Sentence
from rating.tables.coding import LoggedVotes

# Boards

_OF: dict[str, Any] = {name: one for name, one in vars(board_view).items() if is_dataclass(one)}
"""What a board is made of, by the names of the classes."""
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
        Rules that are held: see `arena.store.voting.held`.
    known : int
        Voters who turned out to be users.
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
    """Return which board is kept, if any is."""
    columns = (StoredBoardRow.version, StoredBoardRow.took_s, StoredBoardRow.created)
    query = select(*map(col, columns)).where(_is_of(policy))
    row = session.connection().execute(query).one_or_none()
    return row and Written(**row._asdict())


def read(session: Session, policy: str, key: bytes) -> Board | None:
    """Read the board that is kept; None if there is none that this version's code can read.

    A board that was signed with another key is ignored.
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
    """Delete all boards, to be made again."""
    session.connection().execute(delete(StoredBoardRow))


def _seal(key: bytes, *parts: str) -> str:
    return hmac.new(key, json.dumps(["board", *parts]).encode(), "sha256").hexdigest()


def votes(session: Session, policy: Policy, *, styles: bool = False) -> tuple[State, LoggedVotes]:
    """Read what a board is made of: the state that it has, and every vote."""
    return state(session), blocks.coded(session, policy, styles=styles)


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
    raise ValueError(f"{plain!r} is no part of a board")


def _values(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain_to_value(one) for name, one in plain.items()}


def state(session: Session) -> State:
    """Read what a board would be made of now."""
    return State(
        chain.head(session),
        voting.held(session),
        people.adopted(session),
        roster.entrants(session),
    )


# Status

DAY = timedelta(days=1)
SPENDERS = 10
"""Voters that `status` lists by what their answers cost."""
PER_SECOND = 100
"""First tokens are counted in hundredths of a second."""


def status(
    session: Session, now: datetime, budget: float | None, viewer: str = ""
) -> dict[str, Any]:
    """Read how the arena did in the last day.

    Parameters
    ----------
    budget : float or None
        Dollars that may be spent in a day.
    viewer : str
        Voter who reads it. Their own battles without a vote are excluded: the figures before
        and after a battle would name its models.

    Returns
    -------
    dict
        ``since``, when the day begins, which ends now; ``running``, battles that are being
        answered, in all processes; ``battles`` begun and ``votes`` cast, skips omitted; the
        ``dollars`` spent on the answers of ``models``, as the daily ``budget`` counts them; the
        ``spenders``, the voters whose answers cost most; and the ``paused`` models, disabled after
        repeated failures: ``model``, the last ``failure`` and the time, ``since``.

        Of each model that was asked, those that failed most first, then by name: ``answers``,
        whatever became of them, and ``failures``, those that happened most often first, with the
        endpoint's ``sentence`` on the newest, which may be hostile and names the model, and when
        that one was asked for (``last``); seconds, to hundredths, within which half and 95 % of
        the answers began that began at all, None if none did; ``tokens_out``; and ``dollars``, as
        far as prices are known.
    """
    since = now - DAY
    blind = (
        col(BattleRow.mode) == Mode.ANONYMOUS,
        col(BattleRow.state).not_in((BattleState.VOTED, BattleState.SKIPPED)),
    )
    own = (
        select_rows(col(BattleRow.id))
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
        .where(is_owned_by(viewer), *blind)
    )
    answers = col(AnswerRow.created) > since, col(AnswerRow.battle_id).not_in(own)
    models = _models(session, *answers)
    # those that have begun, by their answers, which have an index of times
    first = (col(AnswerRow.turn) == 1, col(AnswerRow.created) > since)
    begun = col(BattleRow.id).in_(select_rows(AnswerRow.battle_id).where(*first))
    cast = (col(VoteRow.created) > since, col(VoteRow.outcome) != Choice.SKIP)
    return {
        "since": since,
        "running": _count(session, BattleRow, col(BattleRow.state).in_(RUNNING)),
        "battles": _count(session, BattleRow, begun),
        "votes": _count(session, VoteRow, *cast),
        "dollars": sum(model["dollars"] for model in models),
        "budget": budget,
        "models": models,
        "spenders": _spenders(session, *answers),
        "paused": [
            {
                "model": one.model.id,
                "name": one.public.name,
                "failure": one.paused,
                "since": one.updated,
            }
            for one in roster.entries(session)
            if one.paused
        ],
    }


def _spenders(session: Session, *which: ColumnElement[bool]) -> list[dict[str, Any]]:
    """List the voters whose answers cost most, by their id and, of users, their name."""
    total = func.sum(log.dollars())
    query = (
        select_rows(OWNER, func.count(), total)
        .join(BattleRow, col(BattleRow.id) == col(AnswerRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
        .where(*which, log.dollars() > 0)
        .group_by(OWNER)
        .order_by(total.desc(), OWNER)
        .limit(SPENDERS)
    )
    rows = session.exec(query).all()
    names = people.names(session, [voter for voter, _, _ in rows])
    return [
        {"voter": voter, "name": names.get(voter), "answers": answers, "dollars": float(dollars)}
        for voter, answers, dollars in rows
    ]


def _count(session: Session, row: type[Table], *which: ColumnElement[bool]) -> int:
    return session.exec(select_rows(func.count()).select_from(row).where(*which)).one()


def _models(session: Session, *which: ColumnElement[bool]) -> list[dict[str, Any]]:
    failures, began = _failures(session, *which), _began(session, *which)
    query = (
        select_rows(
            AnswerRow.model_id,
            ModelRow.name,
            func.count(),
            func.sum(AnswerRow.tokens_out),
            func.sum(log.dollars()),
        )  # type: ignore[call-overload]
        .join(ModelRow, col(ModelRow.id) == col(AnswerRow.model_id))
        .where(*which, ~col(AnswerRow.model_id).contains(BESIDE))
        .group_by(col(AnswerRow.model_id), col(ModelRow.name))
        .order_by(col(ModelRow.name), col(AnswerRow.model_id))
    )
    models = [
        {
            "model": model,
            "name": name,
            "answers": answers,
            "failures": failures.get(model, []),
            "first_token_p50_s": _quantile(began[model], 0.5),
            "first_token_p95_s": _quantile(began[model], 0.95),
            "tokens_out": int(tokens or 0),
            "dollars": float(dollars or 0),
        }
        for model, name, answers, tokens, dollars in session.exec(query)
    ]
    return sorted(models, key=lambda one: -sum(failed["times"] for failed in one["failures"]))


def _failures(session: Session, *which: ColumnElement[bool]) -> dict[str, list[dict[str, Any]]]:
    """Give the failures of each model by class, the newest of each in the endpoint's words."""
    alike = (
        select_rows(func.max(AnswerRow.id).label("newest"), func.count().label("times"))
        .where(*which, col(AnswerRow.error_class).is_not(None))
        .group_by(col(AnswerRow.model_id), col(AnswerRow.error_class))
        .subquery()
    )
    query = (
        select_rows(AnswerRow, alike.c.times)
        .join(alike, alike.c.newest == col(AnswerRow.id))
        .order_by(alike.c.times.desc(), col(AnswerRow.error_class))
    )
    by_model: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row, times in session.exec(query):
        failed = {"failure": FailureClass(row.error_class or ""), "times": times}
        newest = {"sentence": row.error_detail or "", "last": row.created}
        by_model[row.model_id].append(failed | newest)
    return by_model


def _began(session: Session, *which: ColumnElement[bool]) -> Mapping[str, Counter[float]]:
    """Count the first tokens of each model by their seconds."""
    hundredths = func.round(col(AnswerRow.first_token_s) * PER_SECOND)
    query = (
        select_rows(AnswerRow.model_id, hundredths, func.count())
        .where(*which, col(AnswerRow.first_token_s).is_not(None))
        .group_by(col(AnswerRow.model_id), hundredths)
    )
    counts: dict[str, Counter[float]] = defaultdict(Counter)
    for model, at, times in session.exec(query):
        counts[model][float(at) / PER_SECOND] += times
    return counts


def _quantile(counts: Counter[float], share: float) -> float | None:
    """Give the least of some numbers that no less than a share of them do not exceed.

    Parameters
    ----------
    counts : Counter
        How often each number occurs.

    Returns
    -------
    float or None
        None of no numbers.

    Examples
    --------
    >>> _quantile(Counter({0.1: 19, 3.0: 1}), 0.95), _quantile(Counter({0.1: 18, 3.0: 2}), 0.95)
    (0.1, 3.0)
    """
    below = 0
    for number in sorted(counts):
        below += counts[number]
        if below >= share * counts.total():
            return number
    return None
