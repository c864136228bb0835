"""The bodies of requests and answers."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from arena.domain.battle import AnswerStatus, BattleState, ShownAnswer, Snapshot
from arena.domain.vote import Choice, Receipt, Reveal, RevealedModel


class NewBattleBody(BaseModel):
    """A prompt for two models."""

    model_config = ConfigDict(json_schema_extra={"example": {"prompt": "What does yield do?"}})

    prompt: str


class OpenedBattle(BaseModel):
    """A battle that has begun."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "battle_id": "4f1c8f6e2d0b4d6d8a7c0d5f1f0e9a3b",
                "state": "created",
                "turn": 1,
            }
        }
    )

    battle_id: str
    state: BattleState
    turn: int


class VoteBody(BaseModel):
    """A choice, with a key that makes sending it twice harmless."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"outcome": "model_a", "key": "0b8f3c1e-6c0e-4a36-9d2d-6a5f4f1f7a55"}
        }
    )

    outcome: Choice
    key: UUID


class ModelBody(BaseModel):
    """Who answered on one side; null where it is not known."""

    id: str
    name: str
    latency_s: float | None = Field(description="Seconds to the model's first token")
    tokens: int | None
    cost: float | None = Field(description="US dollars")

    @classmethod
    def of(cls, model: RevealedModel) -> "ModelBody":
        """Say who a revealed model is."""
        return cls(
            id=model.id,
            name=model.name,
            latency_s=model.latency_s,
            tokens=model.tokens,
            cost=model.cost,
        )


class ModelsBody(BaseModel):
    """Both models of a battle, by side."""

    a: ModelBody
    b: ModelBody

    @classmethod
    def of(cls, reveal: Reveal) -> "ModelsBody":
        """Say who both are."""
        return cls(a=ModelBody.of(reveal.a), b=ModelBody.of(reveal.b))


class ReceiptBody(BaseModel):
    """A committed vote; ``models`` is null for a skip."""

    outcome: Choice
    models: ModelsBody | None

    @classmethod
    def of(cls, receipt: Receipt) -> "ReceiptBody":
        """Say what was voted, and who it was about."""
        return cls(outcome=receipt.choice, models=receipt.reveal and ModelsBody.of(receipt.reveal))


class AnswerBody(BaseModel):
    """What one side has shown so far."""

    text: str
    status: AnswerStatus

    @classmethod
    def of(cls, answer: ShownAnswer) -> "AnswerBody":
        """Say what one side shows."""
        return cls(text=answer.text, status=answer.status)


class TurnBody(BaseModel):
    """One prompt and both answers."""

    turn: int
    prompt: str
    a: AnswerBody
    b: AnswerBody


class BattleBody(BaseModel):
    """A battle as its owner may see it now.

    ``vote`` is null before the vote; ``models`` is null until a committed vote has revealed
    them, and stays known where the two go on after it.
    """

    battle_id: str
    state: BattleState
    turn: int
    created: datetime
    turns: list[TurnBody]
    message: str | None
    vote: ReceiptBody | None
    models: ModelsBody | None

    @classmethod
    def of(cls, snapshot: Snapshot) -> "BattleBody":
        """Say where a battle stands."""
        return cls(
            battle_id=snapshot.battle_id,
            state=snapshot.state,
            turn=snapshot.turn,
            created=snapshot.created,
            turns=[
                TurnBody(
                    turn=turn.turn,
                    prompt=turn.prompt,
                    a=AnswerBody.of(turn.a),
                    b=AnswerBody.of(turn.b),
                )
                for turn in snapshot.turns
            ],
            message=snapshot.message,
            vote=snapshot.receipt and ReceiptBody.of(snapshot.receipt),
            models=snapshot.models and ModelsBody.of(snapshot.models),
        )
