"""Family ``language``: the language of the whole response."""

from dataclasses import dataclass

from judge.methods.constraints.detection import written_in
from judge.methods.constraints.profiles import SCRIPTS
from rating.errors import DataError


@dataclass(frozen=True, slots=True)
class ResponseLanguage:
    """The response is in the language, an ISO 639-1 code of IFEval's thirty.

    By `written_in`, which abstains where it is not sure. Upstream asks
    langdetect, which draws at random and always names a language, and lets
    pass what it fails on (no letters, for instance).
    """

    language: str

    def __post_init__(self) -> None:
        if self.language not in SCRIPTS:
            raise DataError(f"language is {self.language!r}; give one of {', '.join(SCRIPTS)}.")

    def follows(self, response: str) -> bool | None:
        """Compare the language; None when in doubt."""
        return written_in(response, self.language)
