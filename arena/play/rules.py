"""How battles are played."""

from dataclasses import dataclass

from arena.domain.battle import Pacing, Sampler


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How battles are played; logged with each of them where it matters.

    Attributes
    ----------
    exploration : float
        Share of the draws that every sampler but the uniform one gives to all pairs alike.
    characters_per_s : float
        Pace at which answers are shown.
    answer_timeout_s : float
        Longest that one answer may take in all.
    tick_s, checkpoint_s : float
        Seconds between releases of text, and between writes of unfinished answers.
    retry_pauses_s : tuple of float
        Seconds before an endpoint that failed before its first token is asked again.
    most_repicks : int
        How often a side that failed before its text was seen goes to another model.
    """

    pacing: Pacing = Pacing.PACED
    sampler: Sampler = Sampler.UNIFORM
    exploration: float = 0.1
    characters_per_s: float = 300.0
    max_prompt_chars: int = 20_000
    max_answer_chars: int = 40_000
    answer_timeout_s: float = 180.0
    tick_s: float = 0.1
    checkpoint_s: float = 2.0
    retry_pauses_s: tuple[float, ...] = (0.5, 1.5)
    most_repicks: int = 2
