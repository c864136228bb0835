"""Writing a battle down, before its first token.

The statements are spelled out here, for this is done by everybody at once when many press Send:
as rows of a session they take three times as long.
"""

from sqlalchemy import insert
from sqlalchemy.dialects import postgresql
from sqlmodel import Session

from arena.domain.battle import AnswerStatus, BattleState, Side
from arena.domain.cleaning import storable
from arena.store.reading import stored_battle
from arena.store.records import NewAnswer, NewBattle, StoredAnswer, StoredBattle, StoredTurn
from arena.store.rows import owned, row_id
from arena.store.tables import AnswerRow, BattleRow, TurnRow, VoterRow, new_nonce

_NOTE_VOTER = postgresql.insert(VoterRow).on_conflict_do_nothing()  # SQLite spells it alike
_BATTLE, _TURN, _ANSWER = insert(BattleRow), insert(TurnRow), insert(AnswerRow)


def open_battle(session: Session, new: NewBattle, process: int | None) -> StoredBattle:
    """Write a battle, its first turn and both answers; gives it as it now stands."""
    continues = row_id(owned(session, new.continues, new.owner.id)) if new.continues else None
    connection = session.connection()
    voter = {"id": new.owner.id, "kind": new.owner.kind, "created": new.created}
    connection.execute(_NOTE_VOTER, voter)
    battle = connection.execute(
        _BATTLE, _battle(new) | {"continues": continues, "process": process}
    )
    (key,) = battle.inserted_primary_key or (None,)
    turn = {"battle_id": key, "turn": new.turn, "created": new.created}
    connection.execute(_TURN, turn | {"prompt": new.prompt, "nonce": new_nonce()})
    connection.execute(
        _ANSWER,
        [turn | _answer(side, answer) for side, answer in ((Side.A, new.a), (Side.B, new.b))],
    )
    if continues is not None:
        return stored_battle(session, new.public_id, new.owner.id)
    return _stored(new)


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
        "nonce": new_nonce(),
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
