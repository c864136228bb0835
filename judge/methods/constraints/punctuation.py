"""Family ``punctuation``: no comma."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NoComma:
    """No ``,`` appears; commas of other scripts are not looked for, as upstream."""

    def follows(self, response: str) -> bool:
        """Look for a comma."""
        return "," not in response
