"""The store: every transaction that the live path makes, and what boards read."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session, col, select, update

from arena.domain.battle import AnswerStatus, BattleState, Side
from arena.domain.model import Model
from arena.domain.vote import Choice
from arena.errors import (
    AlreadyVotedError,
    NotReadyError,
    StoreError,
    UnknownBattleError,
)
from arena.store import chain, models
from arena.store.engine import READ_ONLY, describe, open_engine
from arena.store.records import (
    AnswerOutcome,
    Ballot,
    NewAnswer,
    NewBattle,
    StoredAnswer,
    StoredBattle,
    StoredTurn,
)
from arena.store.schema import migrate
from arena.store.tables import AnswerRow, BattleRow, ModelRow, TurnRow, VoteRow, VoterRow


class Store:
    """A migrated database. Its methods block: call them off the event loop.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db`` or another SQLAlchemy URL.

    Raises
    ------
    StoreError
        If the database cannot be opened or migrated; every method, if it goes away.
    """

    def __init__(self, url: str) -> None:
        self.engine: Engine = open_engine(url)
        migrate(self.engine)
        self._reader = self.engine.execution_options(**{READ_ONLY: True})
        self._turn = threading.Lock() if self.engine.dialect.name == "sqlite" else nullcontext()

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    def check(self) -> None:
        """Raise `StoreError` unless the database answers."""
        with self.reading() as session:
            chain.head(session)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Give a transaction that commits at the end, or leaves nothing behind.

        SQLite has one writer at a time: here the threads queue, where the file's own lock would
        let them sleep and try again.
        """
        with _named(), self._turn, Session(self.engine) as session, session.begin():
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a transaction that only reads."""
        with _named(), Session(self._reader) as session:
            yield session

    def register(self, roster: Sequence[Model], now: datetime) -> list[str]:
        """Note the roster's models; returns the ids of those that changed under their id."""
        with self.writing() as session:
            return models.register(session, roster, now)

    def open_battle(self, new: NewBattle) -> None:
        """Write a battle, its first turn and both answers, all before the first token."""
        with self.writing() as session:
            if session.get(VoterRow, new.owner.id) is None:
                session.add(VoterRow(id=new.owner.id, kind=new.owner.kind, created=new.created))
                session.flush()
            battle = _battle_row(new)
            session.add(battle)
            session.flush()
            session.add(
                TurnRow(battle_id=_id(battle), turn=1, prompt=new.prompt, created=new.created)
            )
            for side, answer in ((Side.A, new.a), (Side.B, new.b)):
                session.add(_answer_row(_id(battle), side, answer, new.created))

    def checkpoint(self, battle_id: str, side: Side, text: str, reasoning: str) -> None:
        """Keep what a running answer has so far."""
        with self.writing() as session:
            battle = _find(session, battle_id)
            answer = _latest(session, battle, side)
            if answer.status != AnswerStatus.STREAMING:
                return  # it has ended in the meantime, and its end is the last word
            answer.text, answer.reasoning = text, reasoning
            battle.state = BattleState.STREAMING

    def close_answers(
        self,
        battle_id: str,
        state: BattleState,
        outcomes: dict[Side, AnswerOutcome],
        *,
        message: str | None,
        now: datetime,
    ) -> None:
        """Write how both answers ended and the state that follows, in one transaction."""
        with self.writing() as session:
            battle = _find(session, battle_id)
            for side, outcome in outcomes.items():
                _write_outcome(_latest(session, battle, side), outcome)
            battle.state, battle.message = state, message
            battle.ready = now if state is BattleState.READY else None

    def interrupt_running(self, message: str) -> int:
        """Mark battles that no process writes any more; returns how many there were."""
        running = (BattleState.CREATED, BattleState.STREAMING)
        with self.writing() as session:
            ids = session.exec(select(BattleRow.id).where(col(BattleRow.state).in_(running))).all()
            session.exec(
                update(BattleRow)
                .where(col(BattleRow.id).in_(ids))
                .values(state=BattleState.INTERRUPTED, message=message)
            )
            session.exec(
                update(AnswerRow)
                .where(col(AnswerRow.battle_id).in_(ids))
                .where(col(AnswerRow.status) == AnswerStatus.STREAMING)
                .values(status=AnswerStatus.INTERRUPTED)
            )
            return len(ids)

    def battle(self, battle_id: str, owner: str) -> StoredBattle:
        """Read a battle for its owner.

        Raises
        ------
        UnknownBattleError
            If there is none, or it is somebody else's.
        """
        with self.reading() as session:
            return _stored(session, _owned(session, battle_id, owner))

    def cast(self, ballot: Ballot) -> StoredBattle:
        """Commit a vote; the battle is read back only after the commit.

        The same key with the same choice gives the same answer again.

        Raises
        ------
        UnknownBattleError, NotReadyError, AlreadyVotedError
            Nothing is written then.
        """
        with self.writing() as session:
            battle = _owned(session, ballot.battle_id, ballot.voter, lock=True)
            vote = _vote_of(session, battle)
            if vote is None:
                _append_vote(session, battle, ballot)
            elif (vote.key, vote.outcome) != (ballot.key, ballot.choice):
                raise AlreadyVotedError(Choice(vote.outcome))
        return self.battle(ballot.battle_id, ballot.voter)


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        msg = f"The database failed: {describe(error)}."
        raise StoreError(msg) from error


def _battle_row(new: NewBattle) -> BattleRow:
    return BattleRow(
        public_id=new.public_id,
        owner=new.owner.id,
        mode=new.mode,
        model_a=new.a.model_id,
        model_b=new.b.model_id,
        side_seed=new.side_seed,
        sampler=new.sampler,
        sampler_version=new.sampler_version,
        pair_probability=new.pair_probability,
        prompt_set=new.prompt_set,
        prompt_id=new.prompt_id,
        system_prompt_hash_a=new.a.system_prompt_hash,
        system_prompt_hash_b=new.b.system_prompt_hash,
        pacing=new.pacing,
        state=BattleState.CREATED,
        created=new.created,
        app_version=new.app_version,
    )


def _answer_row(battle_id: int, side: Side, answer: NewAnswer, created: datetime) -> AnswerRow:
    return AnswerRow(
        battle_id=battle_id,
        model_id=answer.model_id,
        turn=1,
        side=side,
        attempt=1,
        status=AnswerStatus.STREAMING,
        decoding=dict(answer.decoding),
        created=created,
    )


def _write_outcome(row: AnswerRow, outcome: AnswerOutcome) -> None:
    for name in (
        "text",
        "status",
        "reasoning",
        "error_class",
        "error_detail",
        "finish_reason",
        "first_token_s",
        "duration_s",
        "tokens_in",
        "tokens_out",
        "request_id",
    ):
        setattr(row, name, getattr(outcome, name))
    if (price := outcome.price) is not None:
        row.price_input, row.price_output, row.price_date = price.input, price.output, price.date
        if outcome.tokens_in is not None and outcome.tokens_out is not None:
            row.cost = price.cost(outcome.tokens_in, outcome.tokens_out)


def _id(row: BattleRow) -> int:
    assert row.id is not None, "the row was not flushed"
    return row.id


def _find(session: Session, battle_id: str, *, lock: bool = False) -> BattleRow:
    query = select(BattleRow).where(col(BattleRow.public_id) == battle_id)
    row = session.exec(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise UnknownBattleError
    return row


def _owned(session: Session, battle_id: str, owner: str, *, lock: bool = False) -> BattleRow:
    row = _find(session, battle_id, lock=lock)
    if row.owner != owner:
        raise UnknownBattleError
    return row


def _latest(session: Session, battle: BattleRow, side: Side) -> AnswerRow:
    return session.exec(
        select(AnswerRow)
        .where(col(AnswerRow.battle_id) == _id(battle), col(AnswerRow.side) == side)
        .order_by(col(AnswerRow.turn).desc(), col(AnswerRow.attempt).desc())
        .limit(1)
    ).one()


def _vote_of(session: Session, battle: BattleRow) -> VoteRow | None:
    return session.exec(select(VoteRow).where(col(VoteRow.battle_id) == _id(battle))).one_or_none()


def _append_vote(session: Session, battle: BattleRow, ballot: Ballot) -> None:
    if battle.state != BattleState.READY or battle.ready is None:
        msg = "Both answers must be complete before you can vote on this battle."
        raise NotReadyError(msg)
    a, b = (_latest(session, battle, side) for side in Side)
    vote = VoteRow(
        battle_id=_id(battle),
        voter_id=ballot.voter,
        turn=a.turn,
        attempt_a=a.attempt,
        attempt_b=b.attempt,
        outcome=ballot.choice,
        key=ballot.key,
        order_shown="ab",
        seconds_to_vote=(ballot.cast - battle.ready).total_seconds(),
        created=ballot.cast,
        previous_hash="",
        hash="",
    )
    chain.append(session, vote, battle.public_id)
    battle.state = BattleState.SKIPPED if ballot.choice is Choice.SKIP else BattleState.VOTED


def _stored(session: Session, battle: BattleRow) -> StoredBattle:
    turns = session.exec(
        select(TurnRow).where(col(TurnRow.battle_id) == _id(battle)).order_by(col(TurnRow.turn))
    ).all()
    vote = _vote_of(session, battle)
    return StoredBattle(
        public_id=battle.public_id,
        owner=battle.owner,
        state=BattleState(battle.state),
        message=battle.message,
        created=battle.created,
        turns=tuple(_stored_turn(session, battle, turn) for turn in turns),
        choice=Choice(vote.outcome) if vote else None,
    )


def _stored_turn(session: Session, battle: BattleRow, turn: TurnRow) -> StoredTurn:
    answers = session.exec(
        select(AnswerRow, ModelRow)
        .join(ModelRow, col(ModelRow.id) == col(AnswerRow.model_id))
        .where(col(AnswerRow.battle_id) == _id(battle), col(AnswerRow.turn) == turn.turn)
        .order_by(col(AnswerRow.attempt))
    ).all()
    latest = {Side(row.side): _stored_answer(row, model) for row, model in answers}
    return StoredTurn(turn=turn.turn, prompt=turn.prompt, a=latest[Side.A], b=latest[Side.B])


def _stored_answer(row: AnswerRow, model: ModelRow) -> StoredAnswer:
    return StoredAnswer(
        side=Side(row.side),
        attempt=row.attempt,
        model_id=model.id,
        model_name=model.name,
        text=row.text,
        status=AnswerStatus(row.status),
        first_token_s=row.first_token_s,
        tokens_out=row.tokens_out,
        cost=row.cost,
    )
