"""How battles are played, and what a visitor reads when one ends without a vote."""

from dataclasses import dataclass
from datetime import timedelta

from arena.domain.battle import VOTE_WITHIN, PacePool, Pacing, Sampler, Side
from arena.domain.remarks import WhenAsked
from arena.errors import EXPIRED
from rating.sentences import Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How battles are played; logged with each of them where it matters.

    Attributes
    ----------
    exploration : float
        Share of the draws that every sampler but the uniform one gives to all pairs alike.
    race : tuple of (str, str) or None
        Ids of the two models that race, for the sampler of that name.
    characters_per_s : float
        As fast as anybody reads: a quicker pace gains nothing.
    pace_pool : PacePool
        Whose earlier answers decide the pace of a battle: see `arena.play.pace`.
    prior_delay_s, prior_characters_per_s : float, and float or None
        What a model without earlier answers is taken to need: a delay, and a rate at which it
        keeps up; None is the rate of reading.
    answer_timeout_s : float
        Longest that one answer may take in all.
    tick_s, checkpoint_s : float
        Seconds between releases of text, and between writes of unfinished answers.
    retry_pauses_s : tuple of float
        Seconds before an endpoint that failed before its first token is asked again.
    reasons : WhenAsked
        When the page asks for reasons; before the names, they are withheld until it has.
    paused_for : timedelta
        How long a model is not drawn after its endpoint said that the account has no credit.
    most_repicks : int
        How often a side that failed before its text was seen goes to another model.
    vote_within : timedelta
        How long a battle takes a vote after its models were last asked.
    """

    pacing: Pacing = Pacing.PACED
    sampler: Sampler = Sampler.UNIFORM
    exploration: float = 0.1
    race: tuple[str, str] | None = None
    characters_per_s: float = 150.0
    pace_pool: PacePool = PacePool.PAIR
    prior_delay_s: float = 1.0
    prior_characters_per_s: float | None = None
    max_prompt_chars: int = 20_000
    max_answer_chars: int = 40_000
    answer_timeout_s: float = 180.0
    tick_s: float = 0.1
    checkpoint_s: float = 2.0
    retry_pauses_s: tuple[float, ...] = (0.5, 1.5)
    paused_for: timedelta = timedelta(minutes=10)
    most_repicks: int = 2
    reasons: WhenAsked = WhenAsked.AFTER
    vote_within: timedelta = VOTE_WITHIN


STOPPED = Sentence(
    "You stopped before both models had written anything. Nothing was counted. Try this prompt "
    "again, or start a new battle."
)
INTERRUPTED = Sentence(
    "The arena was restarted while the models were answering. Nothing was counted. Try this "
    "prompt again, or start a new battle."
)
NOT_SAVED = Sentence(
    "The answers could not be saved. Nothing was counted. Try this prompt again, or start a new "
    "battle."
)
EMPTY_PROMPT = Sentence("Write a prompt first.")
REVEALED = Sentence(
    "A model showed its reasoning, which may name it. Begin a new battle with the same prompt."
)
VOTE_FIRST = Sentence("Vote first. Then you can go on with these two.")
WHY_FIRST = Sentence("Show the names first. Then you can go on with these two.")
MODEL_GONE = Sentence("One of these two models is no longer here. Start a new battle.")
ONE_TURN = Sentence("Recorded models answer one prompt only. Start a new battle.")
NOT_ALL_YET = Sentence("The rest of the answers cannot be shown at once yet.")
NOT_CHECKED_YET = Sentence("What the answers follow is shown once you have seen the names.")
NOT_RECORDED = Sentence("Only recorded prompts can be answered here. Choose one from the list.")


def failed_message(side: Side) -> Sentence:
    """Say which side did not answer, and nothing of why: a reason may name the model."""
    if side is Side.A:
        return Sentence(
            "Model A stopped answering. Nothing was counted. Try this prompt again, or start a "
            "new battle."
        )
    return Sentence(
        "Model B stopped answering. Nothing was counted. Try this prompt again, or start a new "
        "battle."
    )


ENDS = (STOPPED, INTERRUPTED, NOT_SAVED, EXPIRED, *map(failed_message, Side))
"""Why a battle ended without a vote; the log has them in English."""


def too_long_message(length: int, limit: int) -> Sentence:
    """Say by how much a prompt is too long."""
    return Sentence(
        "The prompt has %(length)s characters; up to %(limit)s can be sent. Shorten it.",
        length=length,
        limit=limit,
    )
