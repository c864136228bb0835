"""A policy: the named, versioned rules by which a board counts votes."""

from dataclasses import dataclass

from arena.domain.vote import Choice
from arena.domain.voter import VoterKind


@dataclass(frozen=True, slots=True)
class Policy:
    """Which votes of the log a board counts; the log itself never changes.

    Attributes
    ----------
    kinds : frozenset of VoterKind
        Voters whose votes count.
    """

    name: str
    kinds: frozenset[VoterKind]

    @property
    def rules(self) -> tuple[str, ...]:
        """The policy in words, one sentence a rule."""
        others = sorted(set(VoterKind) - self.kinds)
        return (
            "One vote a battle counts; a skip is no vote.",
            *(f"Votes of {kind} voters are left out." for kind in others),
            "Votes with a logged exclusion are left out, and counted by reason.",
        )

    def why_not(self, choice: Choice, kind: VoterKind, exclusions: tuple[str, ...]) -> str | None:
        """Say why a vote is left out, or None when it counts.

        Parameters
        ----------
        exclusions : tuple of str
            Reasons logged under this policy's name.
        """
        if choice is Choice.SKIP:
            return "skipped"
        if kind not in self.kinds:
            return f"{kind} voter"
        return exclusions[0] if exclusions else None


DEFAULT = Policy("default-v1", frozenset(VoterKind) - {VoterKind.SIMULATED})
"""Every vote of a person, once, unless an exclusion is logged for it."""

SIMULATED = Policy("simulated-v1", frozenset({VoterKind.SIMULATED}))
"""Votes of a program with planted tastes: to try the arena, never to rank models by."""
