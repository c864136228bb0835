"""What a visitor is told when a battle ends without a vote, or cannot begin."""

from arena.domain.battle import Side

AGAIN = "Try this prompt again, or start a new battle."
STOPPED = f"You stopped before both models had written anything. Nothing was counted. {AGAIN}"
INTERRUPTED = (
    f"The arena was restarted while the models were answering. Nothing was counted. {AGAIN}"
)
NOT_SAVED = f"The answers could not be saved. Nothing was counted. {AGAIN}"
EMPTY_PROMPT = "Write a prompt first."
VOTE_FIRST = "Vote first. Then you can go on with these two."
MODEL_GONE = "One of these two models is no longer here. Start a new battle."
ONE_TURN = "Recorded models answer one prompt only. Start a new battle."
NOT_RECORDED = "Only recorded prompts can be answered here. Choose one from the list."


def failed(side: Side) -> str:
    """Say which side did not answer, and nothing of why: a reason may name the model."""
    where = "left-hand" if side is Side.A else "right-hand"
    return f"The {where} model stopped answering. Nothing was counted. {AGAIN}"


def too_long(length: int, limit: int) -> str:
    """Say by how much a prompt is too long."""
    return f"The prompt has {length:,} characters; up to {limit:,} can be sent. Shorten it."
