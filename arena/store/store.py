"""The store: every transaction that the live path makes, and what boards read."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session, col, select, update

from arena.domain.battle import AnswerStatus, BattleState, Mode, Side
from arena.domain.model import Model
from arena.domain.vote import Choice
from arena.errors import AlreadyVotedError, NotReadyError, StoreError
from arena.store import chain, models, runs, turns
from arena.store.engine import describe, open_engine, snapshot
from arena.store.reading import stored_battle
from arena.store.records import (
    AnswerOutcome,
    Ballot,
    NewAnswer,
    NewBattle,
    RatingRun,
    StoredBattle,
)
from arena.store.rows import find, latest, owned, row_id, vote_of
from arena.store.schema import migrate, shown
from arena.store.tables import AnswerRow, BattleRow, VoteRow


class Store:
    """A migrated database. Its methods block: call them off the event loop.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db`` or ``postgresql://user@host/name``.

    Raises
    ------
    StoreError
        If the database cannot be opened or migrated; every method, if it goes away.
    """

    def __init__(self, url: str) -> None:
        self.engine: Engine = open_engine(url)
        migrate(self.engine)
        self._reader = snapshot(self.engine)
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
        with _named(self.engine), self._turn, Session(self.engine) as session, session.begin():
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a transaction that only reads, all of it as of one moment."""
        with _named(self.engine), Session(self._reader) as session:
            yield session

    def register(self, roster: Sequence[Model], now: datetime) -> list[str]:
        """Note the roster's models; returns the ids of those that changed under their id."""
        with self.writing() as session:
            return models.register(session, roster, now)

    def open_battle(self, new: NewBattle) -> None:
        """Write a battle, its first turn and both answers, all before the first token."""
        with self.writing() as session:
            turns.open_battle(session, new)

    def add_turn(self, battle_id: str, owner: str, prompt: str, now: datetime) -> StoredBattle:
        """Write the next turn of a ready battle; raises `NotReadyError` of any other."""
        with self.writing() as session:
            turns.add_turn(session, battle_id, owner, prompt, now)
        return self.battle(battle_id, owner)

    def add_attempts(
        self, battle_id: str, owner: str, now: datetime, *, only_incomplete: bool
    ) -> StoredBattle:
        """Write new attempts of the latest turn: see `arena.store.turns.add_attempts`."""
        with self.writing() as session:
            turns.add_attempts(session, battle_id, owner, now, only_incomplete=only_incomplete)
        return self.battle(battle_id, owner)

    def replace_answer(
        self, battle_id: str, side: Side, failed: AnswerOutcome, new: NewAnswer, now: datetime
    ) -> None:
        """Keep a failed answer, and let another model take its side."""
        with self.writing() as session:
            turns.replace_answer(session, battle_id, side, failed, new, now)

    def checkpoint(self, battle_id: str, so_far: dict[Side, tuple[str, str]]) -> None:
        """Keep the text and the reasoning that running answers have so far."""
        with self.writing() as session:
            battle = find(session, battle_id, lock=True)
            if battle.state not in (BattleState.CREATED, BattleState.STREAMING):
                return  # it has ended in the meantime, and its end is the last word
            for side, (text, reasoning) in so_far.items():
                answer = latest(session, battle, side)
                if answer.status == AnswerStatus.STREAMING:
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
            battle = find(session, battle_id, lock=True)
            for side, outcome in outcomes.items():
                turns.write_outcome(latest(session, battle, side), outcome)
            battle.state, battle.message = state, message
            battle.ready = now if state is BattleState.READY else None

    def record_run(self, run: RatingRun) -> None:
        """Write down how a board was computed, and what came out."""
        with self.writing() as session:
            runs.record(session, run)

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
            return stored_battle(session, owned(session, battle_id, owner))

    def cast(self, ballot: Ballot) -> StoredBattle:
        """Commit a vote; the battle is read back only after the commit.

        The same key with the same choice gives the same answer again.

        Raises
        ------
        UnknownBattleError, NotReadyError, AlreadyVotedError
            Nothing is written then.
        """
        with self.writing() as session:
            battle = owned(session, ballot.battle_id, ballot.voter, lock=True)
            vote = vote_of(session, battle)
            if vote is None:
                _append_vote(session, battle, ballot)
            elif (vote.key, vote.outcome) != (ballot.key, ballot.choice):
                raise AlreadyVotedError(Choice(vote.outcome))
        return self.battle(ballot.battle_id, ballot.voter)


@contextmanager
def _named(engine: Engine) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        msg = f"The database {shown(engine)} failed: {describe(error)}."
        raise StoreError(msg) from error


def _append_vote(session: Session, battle: BattleRow, ballot: Ballot) -> None:
    if battle.mode != Mode.ANONYMOUS:
        msg = "This battle goes on after its vote. It is not counted."
        raise NotReadyError(msg)
    if battle.state != BattleState.READY or battle.ready is None:
        msg = "Both answers must be complete before you can vote on this battle."
        raise NotReadyError(msg)
    a, b = (latest(session, battle, side) for side in Side)
    vote = VoteRow(
        battle_id=row_id(battle),
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
