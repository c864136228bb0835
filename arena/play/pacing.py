"""How much of two answers a reader may see: neither model's own rhythm."""

from dataclasses import dataclass
from typing import NamedTuple

from arena.domain.battle import Pacing


class Progress(NamedTuple):
    """How far the two models have written, and whether each has ended."""

    written_a: int
    written_b: int
    ended_a: bool
    ended_b: bool

    @property
    def both_ended(self) -> bool:
        """Whether nothing more comes from either side."""
        return self.ended_a and self.ended_b

    @property
    def both_begun(self) -> bool:
        """Whether each side has text, or has ended without any more to come."""
        return (self.written_a > 0 or self.ended_a) and (self.written_b > 0 or self.ended_b)


@dataclass(slots=True)
class Pacer:
    """Decides, tick by tick, how many characters of each answer are shown.

    In mode ``paced`` both sides start together and show the same number of characters, at most
    ``rate`` a second and never more than the slower model has written; a side whose model has
    ended lets the other go on at no more than the same rate; once both have ended the rest is
    released ``hurry`` times faster, to both alike. ``both-done`` shows nothing before both have
    ended, then all. ``raw`` shows what has been written: each model's own rhythm.

    Attributes
    ----------
    rate : float
        Characters a second.
    hurry : float
        Factor on the rate once both models have ended.
    """

    mode: Pacing
    rate: float
    hurry: float = 4.0
    shown_a: int = 0
    shown_b: int = 0
    _allowed: float = 0.0

    def advance(self, progress: Progress, elapsed_s: float) -> bool:
        """Release what ``elapsed_s`` more seconds allow; returns whether more is shown."""
        before = (self.shown_a, self.shown_b)
        self.shown_a, self.shown_b = self._release(progress, elapsed_s)
        return (self.shown_a, self.shown_b) != before

    def all_shown(self, progress: Progress) -> bool:
        """Whether both models have ended and the reader has seen all of it."""
        return progress.both_ended and (self.shown_a, self.shown_b) == (
            progress.written_a,
            progress.written_b,
        )

    def _release(self, progress: Progress, elapsed_s: float) -> tuple[int, int]:
        whole = (progress.written_a, progress.written_b)
        if self.mode is Pacing.RAW:
            return whole
        if self.mode is Pacing.BOTH_DONE:
            return whole if progress.both_ended else (0, 0)
        return self._release_paced(progress, elapsed_s)

    def _release_paced(self, progress: Progress, elapsed_s: float) -> tuple[int, int]:
        if progress.both_begun:
            self._allowed += elapsed_s * self.rate * (self.hurry if progress.both_ended else 1.0)
        ceiling = self._ceiling(progress)
        self._allowed = min(self._allowed, float(ceiling))
        level = int(self._allowed)
        return (
            max(self.shown_a, min(level, progress.written_a)),
            max(self.shown_b, min(level, progress.written_b)),
        )

    @staticmethod
    def _ceiling(progress: Progress) -> int:
        """Length that the sides may reach: what every model still writing has written."""
        if progress.ended_a == progress.ended_b:
            both = (progress.written_a, progress.written_b)
            return max(both) if progress.both_ended else min(both)
        return progress.written_b if progress.ended_a else progress.written_a
