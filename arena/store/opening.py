"""Writing a battle down, before its first token.

The statements are spelled out here, for this is done by everybody at once when many press Send:
as rows of a session they take three times as long.
"""

from contextlib import suppress

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col

from arena.domain.battle import AnswerStatus, BattleState, Side
from arena.store.reading import stored_battle
from arena.store.records import NewAnswer, NewBattle, StoredAnswer, StoredBattle, StoredTurn
from arena.store.rows import find, owned, row_id
from arena.store.tables import AnswerRow, BattleRow, TurnRow, VoterRow, storable


def open_battle(session: Session, new: NewBattle, process: int | None) -> StoredBattle:
    """Write a battle, its first turn and both answers; gives it as it now stands."""
    continues = row_id(owned(session, new.continues, new.owner.id)) if new.continues else None
    connection = session.connection()
    _note_voter(connection, new)
    battle = connection.execute(
        insert(BattleRow), _battle(new) | {"continues": continues, "process": process}
    )
    (key,) = battle.inserted_primary_key or (None,)
    turn = {"battle_id": key, "turn": new.turn, "created": new.created}
    connection.execute(insert(TurnRow), turn | {"prompt": new.prompt})
    connection.execute(
        insert(AnswerRow),
        [turn | _answer(side, answer) for side, answer in ((Side.A, new.a), (Side.B, new.b))],
    )
    if continues is not None:
        return stored_battle(session, find(session, new.public_id))
    return _stored(new)


def _note_voter(connection: Connection, new: NewBattle) -> None:
    owner = new.owner
    if connection.scalar(select(col(VoterRow.id)).where(col(VoterRow.id) == owner.id)) is None:
        # the voter's other battle may write the same row in this moment, which is as good
        with suppress(IntegrityError), connection.begin_nested():
            values = {"id": owner.id, "kind": owner.kind, "created": new.created}
            connection.execute(insert(VoterRow), values)


def _battle(new: NewBattle) -> dict[str, object]:
    return {
        "public_id": new.public_id,
        "owner": new.owner.id,
        "mode": new.mode,
        "model_a": new.a.model_id,
        "model_b": new.b.model_id,
        "side_seed": new.side_seed,
        "sampler": new.sampler,
        "sampler_version": new.sampler_version,
        "pair_probability": new.pair_probability,
        "prompt_set": new.prompt_set,
        "prompt_id": new.prompt_id,
        "system_prompt_hash_a": new.a.system_prompt_hash,
        "system_prompt_hash_b": new.b.system_prompt_hash,
        "pacing": new.pacing,
        "state": BattleState.CREATED,
        "created": new.created,
        "app_version": new.app_version,
    }


def _answer(side: Side, answer: NewAnswer) -> dict[str, object]:
    return {
        "model_id": answer.model_id,
        "side": side,
        "attempt": 1,
        "text": "",
        "reasoning": "",
        "status": AnswerStatus.STREAMING,
        "decoding": dict(answer.decoding),
    }


def _stored(new: NewBattle) -> StoredBattle:
    """Give a battle that goes on from no other as reading it would."""
    prompt = storable(new.prompt)
    turn = StoredTurn(
        turn=new.turn, prompt=prompt, a=_begun(Side.A, new.a), b=_begun(Side.B, new.b)
    )
    return StoredBattle(
        public_id=new.public_id,
        owner=new.owner.id,
        mode=new.mode,
        state=BattleState.CREATED,
        message=None,
        created=new.created,
        turns=(turn,),
        choice=None,
    )


def _begun(side: Side, answer: NewAnswer) -> StoredAnswer:
    return StoredAnswer(
        side=side,
        attempt=1,
        model_id=answer.model_id,
        model_name=answer.model_name,
        text="",
        status=AnswerStatus.STREAMING,
        first_token_s=None,
        tokens_out=None,
        cost=None,
    )
