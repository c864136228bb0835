"""Single battles as they are read: by their owners, by anybody once they count, and by judges."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, Row, bindparam
from sqlmodel import Session, col, func, or_, select

from arena.domain.battle import AnswerStatus, BattleState, Mode, Side, current_state
from arena.domain.board_view import (
    PastBattle,
    ShownBattle,
    ShownModel,
    ShownTurn,
    ShownVote,
    ShownVotes,
)
from arena.domain.ending import Cut, cut_of
from arena.domain.model import Kind
from arena.domain.vote import Choice, Policy
from arena.errors import UnknownBattleError
from arena.store.counted import LAST_ASKED, is_counted, is_gold
from arena.store.records import StoredAnswer, StoredBattle, StoredTurn
from arena.store.remarks import REMARKED, remarks_of
from arena.store.tables import (
    BOTH_MODELS,
    AnswerRow,
    BattleRow,
    ModelRow,
    TurnRow,
    VoteRemarkRow,
    VoteRow,
    VoterRow,
)

PAGE = 50
"""Votes read at a time."""

OWNER = func.coalesce(col(VoterRow.person), col(VoterRow.id))
"""Whose a voter's battles and votes are: a person's, where they turned out to be one."""

_BATTLE = (
    sa.select(
        OWNER.label("owner"),
        *map(col, (BattleRow.id, BattleRow.mode, BattleRow.state)),
        *map(col, (BattleRow.message, BattleRow.created, BattleRow.continues, VoteRow.outcome)),
        col(BattleRow.process),
        *map(col, (BattleRow.prompt_set, BattleRow.repicks)),
        LAST_ASKED.label("asked"),
        col(VoteRemarkRow.vote_id).label("remarked"),
        *(col(getattr(VoteRemarkRow, name)) for name in (*REMARKED, "updated")),
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
        If there is none, or it is somebody else's.
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
        owner=battle.owner,
        mode=Mode(battle.mode),
        state=BattleState(battle.state),
        message=battle.message,
        created=battle.created,
        asked=battle.asked,
        turns=turns,
        choice=Choice(battle.outcome) if battle.outcome else None,
        process=battle.process,
        prompt_set=battle.prompt_set,
        remarks=None if battle.updated is None else remarks_of(battle),
        withheld=battle.remarked is not None and battle.updated is None,
        repicks=battle.repicks,
    )


def is_withheld(session: Session, battle_id: str, owner: str) -> bool:
    """Say whether an owner has voted on a battle, and its names are withheld from them."""
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
        attempt=row.attempt,
        model_id=row.model_id,
        model_name=row.name,
        text=row.text,
        status=AnswerStatus(row.status),
        error_class=row.error_class,
        finish_reason=row.finish_reason,
        first_token_s=row.first_token_s,
        tokens_out=row.tokens_out,
        cost=row.cost,
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
        policy=policy.name,
        vote=_vote(row, _models(session)),
        turns=tuple(_turns(session, row[0])),
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
            withheld=_waits(remarked),
        )
        for fought, prompt, asked, vote, remarked in rows
    ]


def _waits(remarked: VoteRemarkRow | None) -> bool:
    """Say whether the names of a vote are withheld until something is remarked."""
    return remarked is not None and remarked.updated is None


def had_gold(session: Session, owner: str, prompt_id: str) -> bool:
    """Tell whether an owner has had a gold battle on a prompt, by the prompt's id."""
    query = (
        select(BattleRow.id)
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
        .where(is_owned_by(owner), BattleRow.prompt_id == prompt_id, is_gold())
        .limit(1)
    )
    return session.exec(query).first() is not None


@dataclass(frozen=True, slots=True)
class OwnBattle:
    """A battle of somebody's, and their vote on it; None without one."""

    public_id: str
    hidden: datetime | None
    erased: datetime | None
    vote: Mapping[str, object] | None


def own_battles(session: Session, owner: str) -> list[OwnBattle]:
    """Name all battles of an owner, oldest first."""
    rows: Sequence[tuple[BattleRow, VoteRow | None]] = session.exec(
        select(BattleRow, VoteRow)
        .outerjoin(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
        .where(is_owned_by(owner))
        .order_by(col(BattleRow.id))
    ).all()
    return [
        OwnBattle(fought.public_id, fought.hidden, fought.erased, _ballot(vote) if vote else None)
        for fought, vote in rows
    ]


def _ballot(vote: VoteRow) -> dict[str, object]:
    names = ("outcome", "created", "seconds_to_vote", "link", "hash")
    return {name: getattr(vote, name) for name in names}


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


def _votes() -> Any:
    """Return a query for votes, with their battles and first prompts."""
    return (
        select(VoteRow, BattleRow, TurnRow.prompt)
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(TurnRow, col(TurnRow.battle_id) == col(BattleRow.id))
        .where(TurnRow.turn == 1)
    )


def _counted(policy: Policy) -> Any:
    """Return a query for votes that others may read, and `Policy.why_not` does not leave out."""
    return (
        _votes()
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .where(
            is_counted(policy),
            col(BattleRow.hidden).is_(None),
            col(BattleRow.erased).is_(None),
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


@dataclass(frozen=True, slots=True)
class AnsweredBattle:
    """Prompts and answers of a battle, and the models that gave them."""

    battle_id: str
    prompt_id: str | None
    models: tuple[str, str]
    prompt: str
    text_a: str
    text_b: str


def answered(session: Session) -> list[AnsweredBattle]:
    """Give the blind battles of one turn whose newest answers are both complete.

    In a later turn each side goes on from answers of its own: there is no common prompt to
    compare two answers to.
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
        AnsweredBattle(
            battle_id=battle.public_id,
            prompt_id=battle.prompt_id,
            models=(sides[Side.A].model_id, sides[Side.B].model_id),
            prompt=prompt,
            text_a=sides[Side.A].text,
            text_b=sides[Side.B].text,
        )
        for battle, prompt, sides in newest.values()
        if [answer.status for answer in sides.values()] == [AnswerStatus.COMPLETE] * 2
    ]
