"""Battles in the database: single ones as they are read, and the transactions from start to end.

Owners read a battle by `stored_battle`, anybody once its vote counts by `battle`, and judges by
`answered`. A battle is written by `open_battle` before its first token is asked for. A change
locks the row of the battle; several are locked in the order of their keys. The first end stands.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, Row, bindparam, insert
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col, func, or_, select, update

from arena.domain.battle import AnswerStatus, BattleState, Mode, Remarks, Side, current_state
from arena.domain.board_view import (
    PastBattle,
    ShownBattle,
    ShownModel,
    ShownTurn,
    ShownVote,
    ShownVotes,
)
from arena.domain.model import GONE_ON, Kind, Model
from arena.domain.vote import Choice, Cut, Policy, attributes, cut_of
from arena.errors import ERASED, EXPIRED, NotReadyError, UnknownBattleError
from arena.store import voting
from arena.store.chain import (
    AnswerKey,
    AnswerOutcome,
    NewBattle,
    StoredAnswer,
    StoredBattle,
    StoredTurn,
)
from arena.store.tables import (
    BOTH_MODELS,
    LAST_ASKED,
    OWNER,
    RUNNING,
    AnswerRow,
    BattleRow,
    ModelRow,
    TurnRow,
    VoteRemarkRow,
    VoteRow,
    VoterRow,
    columns_of,
    is_counted,
    is_gold,
    new_nonce,
)
from arena.store.voting import REMARKED, remarks_of
from rating.sentences import Sentence
from rating.tables.files import storable

# Reading

PAGE = 50
"""Votes read at a time."""

_BATTLE = (
    sa.select(
        OWNER.label("owner"),
        *map(col, (BattleRow.id, BattleRow.mode, BattleRow.state)),
        *map(col, (BattleRow.message, BattleRow.created, BattleRow.continues, VoteRow.outcome)),
        col(BattleRow.process),
        *map(col, (BattleRow.prompt_set, BattleRow.repicks)),
        LAST_ASKED.label("asked"),
        col(VoteRemarkRow.vote_id).label("remarked"),
        *columns_of(VoteRemarkRow, *REMARKED, "updated"),
    )
    .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
    .outerjoin(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
    .outerjoin(VoteRemarkRow, col(VoteRemarkRow.vote_id) == col(VoteRow.id))
    .where(col(BattleRow.public_id) == bindparam("public_id"))
)
_RUNNERS = sa.select(*map(col, (BattleRow.public_id, BattleRow.state, BattleRow.process))).where(
    col(BattleRow.public_id).in_(bindparam("public_ids", expanding=True))
)
_BEFORE = sa.select(col(BattleRow.continues)).where(col(BattleRow.id) == bindparam("battle"))
_TURNS = (
    sa.select(col(TurnRow.turn), col(TurnRow.prompt))
    .where(col(TurnRow.battle_id) == bindparam("battle"))
    .order_by(col(TurnRow.turn))
)
_ANSWERS = (
    sa.select(
        *map(col, (AnswerRow.turn, AnswerRow.side, AnswerRow.attempt, AnswerRow.status)),
        *map(col, (AnswerRow.model_id, ModelRow.name, AnswerRow.text)),
        *map(col, (AnswerRow.first_token_s, AnswerRow.tokens_out, AnswerRow.cost)),
        *map(col, (AnswerRow.finish_reason, AnswerRow.error_class)),
    )
    .join(ModelRow, col(ModelRow.id) == col(AnswerRow.model_id))
    .where(col(AnswerRow.battle_id) == bindparam("battle"))
    .order_by(col(AnswerRow.attempt))
)


def stored_battle(session: Session, battle_id: str, owner: str) -> StoredBattle:
    """Read a battle whole for its owner, with the turns of the one that it goes on from.

    Raises
    ------
    UnknownBattleError
        If there is none, or it is another user's.
    """
    battle = written_battle(session, battle_id)
    if battle.owner != owner:
        raise UnknownBattleError
    return battle


def written_battle(session: Session, battle_id: str) -> StoredBattle:
    """Read a battle whole, whosever it is by now.

    Raises
    ------
    UnknownBattleError
        If there is none, or its vote alone was imported.
    """
    connection = session.connection()
    battle = connection.execute(_BATTLE, {"public_id": battle_id}).one_or_none()
    if battle is None:
        raise UnknownBattleError
    turns = _stored_turns(connection, battle.id, battle.continues)
    if not turns:
        raise UnknownBattleError
    return StoredBattle(
        public_id=battle_id,
        mode=Mode(battle.mode),
        state=BattleState(battle.state),
        turns=turns,
        choice=Choice(battle.outcome) if battle.outcome else None,
        **attributes(battle, "owner", "message", "created", "asked", "process", "prompt_set"),
        remarks=None if battle.updated is None else remarks_of(battle),
        withheld=battle.remarked is not None and battle.updated is None,
        repicks=battle.repicks,
    )


def remark(
    session: Session, battle_id: str, owner: str, remarks: Remarks, now: datetime, *, asked: bool
) -> StoredBattle:
    """Write what is remarked beside a vote, and read the battle: see `arena.store.voting`."""
    voting.remark(session, battle_id, owner, remarks, now, asked=asked)
    return stored_battle(session, battle_id, owner)


def is_withheld(session: Session, battle_id: str, owner: str) -> bool:
    """Return whether an owner has voted on a battle, and its names are withheld from them."""
    waiting = (
        select(VoteRemarkRow.vote_id)
        .join(VoteRow, col(VoteRow.id) == col(VoteRemarkRow.vote_id))
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
        .where(
            is_owned_by(owner),
            BattleRow.public_id == battle_id,
            col(VoteRemarkRow.updated).is_(None),
        )
    )
    return session.exec(waiting).first() is not None


def runners(session: Session, battles: Collection[str]) -> dict[str, int | None]:
    """Tell which process runs each of these battles, by its public id, if it still runs."""
    rows = session.connection().execute(_RUNNERS, {"public_ids": list(battles)})
    return {row.public_id: row.process for row in rows if BattleState(row.state).running}


def _stored_turns(
    connection: Connection, battle: int, before: int | None
) -> tuple[StoredTurn, ...]:
    key = {"battle": battle}
    turns = connection.execute(_TURNS, key).all()
    newest = {
        (row.turn, row.side): _stored_answer(row) for row in connection.execute(_ANSWERS, key)
    }
    earlier: tuple[StoredTurn, ...] = ()
    if before is not None:
        earlier = _stored_turns(connection, before, connection.scalar(_BEFORE, {"battle": before}))
    return earlier + tuple(
        StoredTurn(turn=turn, prompt=prompt, a=newest[turn, Side.A], b=newest[turn, Side.B])
        for turn, prompt in turns
        if (turn, Side.A) in newest  # of an imported vote alone there is no answer
    )


def _stored_answer(row: Row[*tuple[Any, ...]]) -> StoredAnswer:
    return StoredAnswer(
        side=Side(row.side),
        model_name=row.name,
        status=AnswerStatus(row.status),
        **attributes(row, "attempt", "model_id", "text", "error_class", "finish_reason"),
        **attributes(row, "first_token_s", "tokens_out", "cost"),
    )


CountedRow = tuple[VoteRow, BattleRow, str]


def counted(
    session: Session,
    policy: Policy,
    *,
    models: Collection[str] = (),
    before: int | None = None,
    most: int = PAGE,
) -> ShownVotes | None:
    """Give the newest votes that a policy counts.

    Parameters
    ----------
    models : collection of str, at most two
        Ids that a battle must have had on its sides, whichever.
    before : int, optional
        Only votes at lower places in the log.

    Returns
    -------
    ShownVotes or None
        None if there is no model of such an id.
    """
    known = _models(session)
    if not set(models) <= set(known):
        return None
    query = _counted(policy).order_by(col(VoteRow.id).desc()).limit(most + 1)
    for model in models:
        query = query.where(or_(*(side == model for side in BOTH_MODELS)))
    if before is not None:
        query = query.where(col(VoteRow.id) < before)
    rows: Sequence[CountedRow] = session.exec(query).all()
    votes = tuple(_vote(row, known) for row in rows[:most])
    return ShownVotes(
        policy=policy.name,
        of=tuple(known[model] for model in models),
        votes=votes,
        older_than=votes[-1].place if len(rows) > most else None,
    )


def battle(session: Session, policy: Policy, battle_id: str) -> ShownBattle | None:
    """Give a battle whose vote the policy counts; None for any other, whatever the reason."""
    row: CountedRow | None = session.exec(
        _counted(policy).where(BattleRow.public_id == battle_id)
    ).first()
    if row is None:
        return None
    return ShownBattle(
        policy=policy.name, vote=_vote(row, _models(session)), turns=tuple(_turns(session, row[0]))
    )


def votes_of(session: Session, owner: str) -> int:
    """Count the votes that an owner has cast; a skip is none."""
    cast = (
        select(func.count())
        .select_from(VoteRow)
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .where(is_owned_by(owner), VoteRow.outcome != Choice.SKIP)
    )
    return session.exec(cast).one()


def past_battles(session: Session, owner: str, asked_since: datetime) -> list[PastBattle]:
    """Read the owner's battles, newest first, those without a vote among them.

    Parameters
    ----------
    asked_since : datetime
        See `arena.domain.battle.current_state`.
    """
    known, cuts = _models(session), _cuts(session, owner)
    rows: Sequence[
        tuple[BattleRow, str, datetime | None, VoteRow | None, VoteRemarkRow | None]
    ] = session.exec(
        select(BattleRow, TurnRow.prompt, LAST_ASKED, VoteRow, VoteRemarkRow)  # type: ignore[call-overload]
        .join(TurnRow, col(TurnRow.battle_id) == col(BattleRow.id))
        .outerjoin(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .outerjoin(VoteRemarkRow, col(VoteRemarkRow.vote_id) == col(VoteRow.id))
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
        .where(is_owned_by(owner), TurnRow.turn == 1)
        .order_by(col(BattleRow.id).desc())
    ).all()
    return [
        _past(
            fought,
            prompt,
            vote,
            known,
            current_state(BattleState(fought.state), Mode(fought.mode), asked, asked_since),
            cuts,
            withheld=(remarked is not None and remarked.updated is None),
        )
        for fought, prompt, asked, vote, remarked in rows
    ]


def had_gold(session: Session, owner: str, prompt_id: str) -> bool:
    """Tell whether an owner has had a gold battle on a prompt, by the prompt's id."""
    query = (
        select(BattleRow.id)
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
        .where(is_owned_by(owner), BattleRow.prompt_id == prompt_id, is_gold())
        .limit(1)
    )
    return session.exec(query).first() is not None


def own_battles(session: Session, owner: str) -> dict[str, dict[str, object]]:
    """Give what an owner's download says of their battles beside the words, oldest first.

    By the battle's public id: when it was hidden or erased, and their vote if there is one.
    """
    rows: Sequence[tuple[BattleRow, VoteRow | None]] = session.exec(
        select(BattleRow, VoteRow)
        .outerjoin(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
        .where(is_owned_by(owner))
        .order_by(col(BattleRow.id))
    ).all()
    names = ("outcome", "created", "seconds_to_vote", "link", "hash")
    return {
        fought.public_id: {"hidden": fought.hidden, "erased": fought.erased}
        | ({"vote": attributes(vote, *names)} if vote else {})
        for fought, vote in rows
    }


def is_owned_by(owner: str) -> ColumnElement[bool]:
    """Return the clause of a query on voters that selects an owner, signed in or before."""
    return or_(col(VoterRow.id) == owner, col(VoterRow.person) == owner)


def _past(
    fought: BattleRow,
    prompt: str,
    vote: VoteRow | None,
    known: Mapping[str, ShownModel],
    state: BattleState,
    cuts: Mapping[tuple[int | None, str], Cut],
    *,
    withheld: bool,
) -> PastBattle:
    named = vote is not None and vote.outcome != Choice.SKIP and not withheld
    return PastBattle(
        battle_id=fought.public_id,
        created=fought.created if vote is None else vote.created,
        prompt=prompt,
        mode=Mode(fought.mode),
        state=state,
        choice=None if vote is None else Choice(vote.outcome),
        model_a_name=known[fought.model_a].name if named else None,
        model_b_name=known[fought.model_b].name if named else None,
        hidden=fought.hidden is not None,
        erased=fought.erased is not None,
        cut_a=cuts.get((fought.id, Side.A)) if named else None,
        cut_b=cuts.get((fought.id, Side.B)) if named else None,
    )


def _cuts(session: Session, owner: str) -> dict[tuple[int | None, str], Cut]:
    """Give the limits at which answers were cut that an owner has voted on, by battle and side."""
    on_a = (col(AnswerRow.side) == Side.A) & (col(AnswerRow.attempt) == col(VoteRow.attempt_a))
    on_b = (col(AnswerRow.side) == Side.B) & (col(AnswerRow.attempt) == col(VoteRow.attempt_b))
    query = (
        sa.select(*map(col, (AnswerRow.battle_id, AnswerRow.side, AnswerRow.finish_reason)))
        .join(VoteRow, col(VoteRow.battle_id) == col(AnswerRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .where(is_owned_by(owner), col(AnswerRow.turn) == col(VoteRow.turn), on_a | on_b)
        .where(col(AnswerRow.finish_reason) != "stop")
    )
    rows = session.connection().execute(query).all()
    cuts = (cut_of(row.finish_reason) for row in rows)
    return {(row.battle_id, row.side): cut for row, cut in zip(rows, cuts, strict=True) if cut}


def _counted(policy: Policy) -> Any:
    """Return a query for votes that others may read, and `Policy.why_not` does not exclude."""
    return (
        select(VoteRow, BattleRow, TurnRow.prompt)
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(TurnRow, col(TurnRow.battle_id) == col(BattleRow.id))
        .where(TurnRow.turn == 1)
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .where(
            is_counted(policy), col(BattleRow.hidden).is_(None), col(BattleRow.erased).is_(None)
        )
    )


def _models(session: Session) -> dict[str, ShownModel]:
    return {
        row.id: ShownModel(
            row.id, row.name, row.organisation, Kind(row.kind), row.licence, row.created
        )
        for row in session.exec(select(ModelRow))
    }


def _vote(row: CountedRow, known: Mapping[str, ShownModel]) -> ShownVote:
    vote, fought, prompt = row
    return ShownVote(
        place=vote.id or 0,
        battle_id=fought.public_id,
        created=vote.created,
        prompt=prompt,
        choice=Choice(vote.outcome),
        model_a=known[fought.model_a],
        model_b=known[fought.model_b],
        seconds=vote.seconds_to_vote,
    )


def _turns(session: Session, vote: VoteRow) -> list[ShownTurn]:
    """Give every turn up to the vote's, with the newest answers, or those that it pins."""
    connection, key = session.connection(), {"battle": vote.battle_id}
    pinned = {Side.A: vote.attempt_a, Side.B: vote.attempt_b}
    shown = {
        (row.turn, row.side): row
        for row in connection.execute(_ANSWERS, key)
        if row.turn < vote.turn or row.attempt == pinned[Side(row.side)]
    }
    turns = []
    for turn, prompt in connection.execute(_TURNS, key):
        if turn <= vote.turn:
            a, b = (shown[turn, side] for side in Side)
            cuts = (cut_of(a.finish_reason), cut_of(b.finish_reason))
            turns.append(ShownTurn(prompt, a.text, b.text, *cuts))
    return turns


def answered(session: Session) -> list[tuple[str, str | None, str, AnswerRow, AnswerRow]]:
    """Give the blind battles of one turn whose newest answers are both complete.

    Of each its public id, the id of its prompt and the prompt, and the answers of A and B. In a
    later turn each side goes on from answers of its own: there is no common prompt to compare
    two answers to.
    """
    several = select(TurnRow.battle_id).where(col(TurnRow.turn) > 1)
    rows = session.exec(
        select(BattleRow, TurnRow.prompt, AnswerRow)
        .join(TurnRow, col(TurnRow.battle_id) == col(BattleRow.id))
        .join(AnswerRow, col(AnswerRow.battle_id) == col(BattleRow.id))
        .where(BattleRow.mode == Mode.ANONYMOUS, col(BattleRow.id).not_in(several))
        .where(col(BattleRow.erased).is_(None), ~is_gold())
        .order_by(col(BattleRow.id), col(AnswerRow.attempt))
    )
    newest: dict[str, tuple[BattleRow, str, dict[str, AnswerRow]]] = {}
    for battle, prompt, answer in rows:
        sides = newest.setdefault(battle.public_id, (battle, prompt, {}))[2]
        sides[answer.side] = answer
    return [
        (battle.public_id, battle.prompt_id, prompt, sides[Side.A], sides[Side.B])
        for battle, prompt, sides in newest.values()
        if [answer.status for answer in sides.values()] == [AnswerStatus.COMPLETE] * 2
    ]


# Writing

_NOTE_VOTER = postgresql.insert(VoterRow).on_conflict_do_nothing()  # SQLite spells it alike
_TURNS_BATTLE, _TURN, _ANSWER = insert(BattleRow), insert(TurnRow), insert(AnswerRow)
_LOCK = (
    select(col(BattleRow.id), col(BattleRow.state))
    .where(col(BattleRow.public_id) == bindparam("public_id"))
    .with_for_update()
)
_LOCK_ALL = (
    select(col(BattleRow.public_id), col(BattleRow.id))
    .where(col(BattleRow.public_id).in_(bindparam("public_ids", expanding=True)))
    .order_by(col(BattleRow.id))  # two who lock several wait for one another
    .with_for_update()
)
_STREAMING = select(col(AnswerRow.turn), col(AnswerRow.side), col(AnswerRow.attempt)).where(
    col(AnswerRow.battle_id) == bindparam("battle"),
    col(AnswerRow.status) == AnswerStatus.STREAMING,
)
_WRITE_ANSWER = update(AnswerRow).where(
    col(AnswerRow.battle_id) == bindparam("battle"),
    col(AnswerRow.turn) == bindparam("of_turn"),
    col(AnswerRow.side) == bindparam("of_side"),
    col(AnswerRow.attempt) == bindparam("of_attempt"),
    col(AnswerRow.status) == AnswerStatus.STREAMING,
)
_WRITE_BATTLE = update(BattleRow).where(col(BattleRow.id) == bindparam("battle"))
_STREAMS = (
    update(BattleRow)
    .where(
        col(BattleRow.id).in_(bindparam("battles", expanding=True)),
        col(BattleRow.state) == BattleState.CREATED,
    )
    .values(state=BattleState.STREAMING)
)
"""Statements that every battle needs: built once, as building one takes longer than running it."""

NOT_NOW = Sentence("Wait until both answers are complete, or start a new battle.")


def open_battle(session: Session, new: NewBattle) -> StoredBattle:
    """Write a battle, its first turn and both answers; gives it as it now stands."""
    continues = _row_id(_owned(session, new.continues, new.owner.id)) if new.continues else None
    connection = session.connection()
    voter = {"id": new.owner.id, "kind": new.owner.kind, "created": new.created}
    connection.execute(_NOTE_VOTER, voter)
    battle = {
        **attributes(new, "public_id", "mode", "prompt_set", "prompt_id", "pacing", "created"),
        **attributes(new, "side_seed", "sampler", "sampler_version", "pair_probability"),
        "owner": new.owner.id,
        "model_a": new.a.id,
        "model_b": new.b.id,
        "system_prompt_hash_a": _prompt_hash(new.a),
        "system_prompt_hash_b": _prompt_hash(new.b),
        "state": BattleState.CREATED,
        "app_version": new.app_version,
        "continues": continues,
        "process": session.info["process"],
    }
    inserted = connection.execute(_TURNS_BATTLE, battle).inserted_primary_key
    assert inserted is not None, "the row was not written"
    (key,) = inserted
    turn = {"battle_id": key, "turn": new.turn, "created": new.created}
    connection.execute(_TURN, turn | {"prompt": new.prompt, "nonce": new_nonce()})
    sides = {AnswerKey(new.turn, Side.A, 1): new.a, AnswerKey(new.turn, Side.B, 1): new.b}
    answers = [
        _new_answer(key, at, model.id, model.decoding, new.created) for at, model in sides.items()
    ]
    connection.execute(_ANSWER, answers)
    if continues is not None:
        return stored_battle(session, new.public_id, new.owner.id)
    return _stored(new)


def add_turn(
    session: Session,
    battle_id: str,
    owner: str,
    prompt: str,
    now: datetime,
    *,
    asked_since: datetime | None = None,
    instead: Mapping[Side, Model] | None = None,
) -> StoredBattle:
    """Write the next turn of a battle whose answers are complete; gives it as it now stands.

    Parameters
    ----------
    asked_since : datetime, optional
        The battle is closed unless a model was asked at this moment or later.
    instead : mapping of Side to Model, optional
        Who go on in the place of the recorded answers of a gold battle.

    Raises
    ------
    NotReadyError
        If they are not, or the battle has its vote or is closed.
    """
    battle = _open(session, battle_id, owner, asked_since)
    _require(battle, BattleState.READY)
    last = _latest(session, battle, Side.A)
    key, turn = _row_id(battle), last.turn + 1
    session.add(TurnRow(battle_id=key, turn=turn, prompt=prompt, created=now))
    for side in Side:
        by = _latest(session, battle, side)
        answer = _new_answer(key, AnswerKey(turn, side, 1), *_writer(by, side, instead), now)
        session.connection().execute(_ANSWER, answer)
    return _run_again(session, battle, instead)


def add_attempts(
    session: Session,
    battle_id: str,
    owner: str,
    now: datetime,
    *,
    only_incomplete: bool,
    asked_since: datetime | None = None,
    instead: Mapping[Side, Model] | None = None,
) -> StoredBattle:
    """Write new attempts of the latest turn: of both sides, or of those without an answer.

    Parameters
    ----------
    asked_since : datetime, optional
        As of `add_turn`.
    instead : mapping of Side to Model, optional
        As of `add_turn`; both sides are asked for again then.

    Raises
    ------
    NotReadyError
        If answers are still being written, or the battle has its vote or is closed.
    """
    battle = _open(session, battle_id, owner, asked_since)
    broken = (BattleState.FAILED, BattleState.INTERRUPTED, BattleState.STOPPED)
    _require(battle, *(broken if only_incomplete else (BattleState.READY,)))
    for side in Side:
        answer = _latest(session, battle, side)
        if not (only_incomplete and answer.status == AnswerStatus.COMPLETE):
            key = AnswerKey(answer.turn, side, answer.attempt + 1)
            again = _new_answer(answer.battle_id, key, *_writer(answer, side, instead), now)
            session.connection().execute(_ANSWER, again)
    return _run_again(session, battle, instead)


def replace_answer(
    session: Session,
    battle_id: str,
    key: AnswerKey,
    failed: AnswerOutcome,
    new: Model,
    now: datetime,
) -> bool:
    """Keep a failed answer, and let another model take its side.

    Nothing is written, and False given, if the answer has had another end in the meantime.
    """
    battle, connection = _find(session, battle_id), session.connection()
    end = _at(_row_id(battle), key) | _columns(failed)
    if not connection.execute(_WRITE_ANSWER, end).rowcount:
        return False
    next_key = replace(key, attempt=key.attempt + 1)
    answer = _new_answer(_row_id(battle), next_key, new.id, new.decoding, now)
    connection.execute(_ANSWER, answer)
    _seat(battle, key.side, new)
    battle.repicks += 1
    return True


def checkpoint(
    session: Session, so_far: Mapping[str, Mapping[AnswerKey, tuple[str, str]]]
) -> None:
    """Keep text and reasoning of answers so far, by battle; an ended one stays as it is."""
    connection = session.connection()
    rows = connection.execute(_LOCK_ALL, {"public_ids": list(so_far)})
    battles = {row.public_id: row.id for row in rows}
    texts = [
        _at(battles[public_id], key) | {"text": text, "reasoning": reasoning}
        for public_id, answers in so_far.items()
        for key, (text, reasoning) in answers.items()
    ]
    connection.execute(_WRITE_ANSWER, texts)
    connection.execute(_STREAMS, {"battles": list(battles.values())})


def close_answers(
    session: Session,
    battle_id: str,
    state: BattleState,
    outcomes: Mapping[AnswerKey, AnswerOutcome],
    *,
    message: str | None,
    now: datetime,
) -> BattleState:
    """Write how both answers ended and the state that follows; gives the state that stands.

    The first end stands: nothing is written if the battle has had another one, or goes on with
    other answers.
    """
    connection = session.connection()
    battle = connection.execute(_LOCK, {"public_id": battle_id}).one()
    rows = connection.execute(_STREAMING, {"battle": battle.id})
    streaming = {AnswerKey(turn, Side(side), attempt) for turn, side, attempt in rows}
    if not streaming or not streaming <= outcomes.keys():
        return BattleState(battle.state)
    ends = [_at(battle.id, key) | _columns(outcomes[key]) for key in streaming]
    connection.execute(_WRITE_ANSWER, ends)
    ready = now if state is BattleState.READY else None
    end = {"battle": battle.id, "state": state, "message": message, "ready": ready}
    connection.execute(_WRITE_BATTLE, end)
    return state


def fail(session: Session, battle_id: str, message: str) -> None:
    """Mark a battle that this process runs as failed; its answers stay as they were kept.

    Nothing that its models sent is written: it may be why no other end could be.
    """
    battle = _find(session, battle_id)
    if battle.state not in RUNNING or battle.process != session.info["process"]:
        return
    battle.state, battle.message = BattleState.FAILED, message
    _interrupt_answers(session, [_row_id(battle)])


def processes_of_running(session: Session) -> set[int | None]:
    """Find which processes run battles, or did when they died."""
    running = select(BattleRow.process).where(col(BattleRow.state).in_(RUNNING))
    return set(session.exec(running.distinct()))


def interrupt(session: Session, processes: Collection[int], message: str) -> int:
    """Mark the running battles of these processes, and those of none, as interrupted."""
    theirs = col(BattleRow.process).is_(None) | col(BattleRow.process).in_(processes)
    ids = session.exec(
        select(BattleRow.id)
        .where(col(BattleRow.state).in_(RUNNING), theirs)
        .order_by(col(BattleRow.id))  # two processes that do this at once wait for one another
        .with_for_update()
    ).all()
    interrupt_battles(session, ids, message)
    return len(ids)


def interrupt_battles(session: Session, battles: Collection[int | None], message: str) -> None:
    """Mark running battles as interrupted: their process writes nothing any more."""
    running = col(BattleRow.id).in_(battles) & col(BattleRow.state).in_(RUNNING)
    session.exec(
        update(BattleRow).where(running).values(state=BattleState.INTERRUPTED, message=message)
    )
    _interrupt_answers(session, battles)


def _interrupt_answers(session: Session, battles: Collection[int | None]) -> None:
    session.exec(
        update(AnswerRow)
        .where(col(AnswerRow.battle_id).in_(battles))
        .where(col(AnswerRow.status) == AnswerStatus.STREAMING)
        .values(status=AnswerStatus.INTERRUPTED)
    )


def _row_id(row: BattleRow) -> int:
    """Give the key of a row that has been flushed."""
    assert row.id is not None, "the row was not flushed"
    return row.id


def _find(session: Session, battle_id: str) -> BattleRow:
    """Find a battle, and keep others from changing it until the commit."""
    query = select(BattleRow).where(col(BattleRow.public_id) == battle_id).with_for_update()
    row = session.exec(query).one_or_none()
    if row is None:
        raise UnknownBattleError
    return row


def _owned(session: Session, battle_id: str, owner: str) -> BattleRow:
    """Find a battle for its owner to go on with; another user's is as unknown as none.

    Raises
    ------
    UnknownBattleError, NotReadyError
        The latter if its words were erased.
    """
    row = _find(session, battle_id)
    if owner != (session.get_one(VoterRow, row.owner).person or row.owner):
        raise UnknownBattleError
    if row.erased is not None:
        raise NotReadyError(ERASED)
    return row


def _open(session: Session, battle_id: str, owner: str, asked_since: datetime | None) -> BattleRow:
    """Find a battle for its owner to go on with, unless it has expired.

    Raises
    ------
    UnknownBattleError, NotReadyError
        The latter if its words were erased, or none of its models was asked since a moment.
    """
    battle = _owned(session, battle_id, owner)
    if asked_since is not None:
        asked = session.exec(select(LAST_ASKED).where(col(BattleRow.id) == battle.id)).one()
        state = current_state(BattleState(battle.state), Mode(battle.mode), asked, asked_since)
        if state is BattleState.EXPIRED:
            raise NotReadyError(EXPIRED)
    return battle


def _latest(session: Session, battle: BattleRow, side: Side) -> AnswerRow:
    """Find the newest attempt of a side in the newest turn."""
    return session.exec(
        select(AnswerRow)
        .where(col(AnswerRow.battle_id) == _row_id(battle), col(AnswerRow.side) == side)
        .order_by(col(AnswerRow.turn).desc(), col(AnswerRow.attempt).desc())
        .limit(1)
    ).one()


def _require(battle: BattleRow, *states: BattleState) -> None:
    if battle.state not in states:
        raise NotReadyError(NOT_NOW)


def _seat(battle: BattleRow, side: Side, model: Model) -> None:
    """Note who answers on a side from here on."""
    if side is Side.A:
        battle.model_a, battle.system_prompt_hash_a = model.id, _prompt_hash(model)
    else:
        battle.model_b, battle.system_prompt_hash_b = model.id, _prompt_hash(model)


def _prompt_hash(model: Model) -> str:
    return hashlib.sha256(model.system_prompt.encode()).hexdigest()[:16]


def _writer(
    last: AnswerRow, side: Side, instead: Mapping[Side, Model] | None
) -> tuple[str, Mapping[str, object]]:
    """Name who is asked next on a side, and how: who answered last, unless others go on."""
    if instead:
        return instead[side].id, instead[side].decoding
    return last.model_id, last.decoding


def _run_again(
    session: Session, battle: BattleRow, instead: Mapping[Side, Model] | None
) -> StoredBattle:
    """Let a battle go on; with others, nothing is known to be right in it any more."""
    for side, model in (instead or {}).items():
        _seat(battle, side, model)
        battle.prompt_set = GONE_ON
    battle.state, battle.message, battle.ready = BattleState.CREATED, None, None
    battle.process = session.info["process"]
    session.flush()
    return written_battle(session, battle.public_id)


def _at(battle: int, key: AnswerKey) -> dict[str, object]:
    return {"battle": battle, "of_turn": key.turn, "of_side": key.side, "of_attempt": key.attempt}


def _columns(outcome: AnswerOutcome) -> dict[str, object]:
    columns = asdict(outcome)
    del columns["price"]
    price = outcome.price
    return columns | {
        "price_input": price.input if price else None,
        "price_output": price.output if price else None,
        "price_date": price.date if price else None,
        "cost": _cost(outcome),
    }


def _cost(outcome: AnswerOutcome) -> float | None:
    if outcome.price is None or outcome.tokens_in is None or outcome.tokens_out is None:
        return None
    return outcome.price.cost(outcome.tokens_in, outcome.tokens_out)


def _new_answer(
    battle: int, key: AnswerKey, model_id: str, decoding: Mapping[str, object], created: datetime
) -> dict[str, object]:
    return {
        "battle_id": battle,
        "model_id": model_id,
        "turn": key.turn,
        "side": key.side,
        "attempt": key.attempt,
        "text": "",
        "nonce": new_nonce(),
        "reasoning": "",
        "status": AnswerStatus.STREAMING,
        "decoding": dict(decoding),
        "created": created,
    }


def _stored(new: NewBattle) -> StoredBattle:
    """Give a battle that goes on from no other as reading it would."""
    a, b = (
        StoredAnswer(side=side, attempt=1, model_id=model.id, model_name=model.name)
        for side, model in zip(Side, (new.a, new.b), strict=True)
    )
    turn = StoredTurn(turn=new.turn, prompt=storable(new.prompt), a=a, b=b)
    return StoredBattle(
        public_id=new.public_id,
        owner=new.owner.id,
        mode=new.mode,
        state=BattleState.CREATED,
        message=None,
        created=new.created,
        asked=new.created,
        turns=(turn,),
        choice=None,
        prompt_set=new.prompt_set,
    )
