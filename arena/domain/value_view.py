"""What the page of quality and cost shows, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rating.value.board import Value

if TYPE_CHECKING:
    from judge.labels.safety_table import SafetyTable


@dataclass(frozen=True, slots=True)
class Valued:
    """What a policy's votes say of quality and cost.

    Attributes
    ----------
    version : str
        Short hash of the votes and the code that the numbers follow from.
    names : mapping of str to str
        Of models, by their ids.
    value : Value or None
    reason : str or None
        Why nothing can be valued, as a sentence; None where something is.
    safety : SafetyTable or None
        What models refuse, where that was measured.
    """

    policy: str
    version: str
    updated: datetime
    names: Mapping[str, str]
    value: Value | None
    reason: str | None
    safety: "SafetyTable | None" = None

    @property
    def rated(self) -> tuple[str, ...]:
        """Ids of the models with a rating, best first."""
        return tuple(row.model for row in self.value.models) if self.value else ()
