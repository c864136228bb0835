"""Family ``combination``: two responses, and the request repeated first."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TwoResponses:
    r"""Exactly two different texts, separated by ``******``, which may also stand first or last.

    Examples
    --------
    >>> TwoResponses().follows("Yes.\n******\nNo."), TwoResponses().follows("Yes.******Yes.")
    (True, False)
    """

    def follows(self, response: str) -> bool:
        """Count what stands between separators."""
        parts = [part.strip() for part in response.split("******")]
        texts = [part for part in parts if part]
        return all(parts[1:-1]) and len(texts) == 2 and texts[0] != texts[1]


@dataclass(frozen=True, slots=True)
class RepeatPrompt:
    """The response begins with the request, whatever the case."""

    prompt_to_repeat: str

    def follows(self, response: str) -> bool:
        """Compare the beginning."""
        return response.strip().lower().startswith(self.prompt_to_repeat.lower())
