"""Family ``startend``: a last phrase, and quotation marks around everything."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EndChecker:
    """The response ends with the phrase, whatever the case; ``"`` after it is ignored."""

    end_phrase: str

    def follows(self, response: str) -> bool:
        """Compare the end."""
        return response.strip().strip('"').lower().endswith(self.end_phrase.lower())


@dataclass(frozen=True, slots=True)
class Quotation:
    """The response stands in straight double quotation marks.

    Examples
    --------
    >>> Quotation().follows('"Yes."'), Quotation().follows('"')
    (True, False)
    """

    def follows(self, response: str) -> bool:
        """Compare both ends."""
        text = response.strip()
        return len(text) > 1 and text[0] == text[-1] == '"'
