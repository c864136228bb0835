"""Recorded models: files of outputs, replayed through the client like any endpoint."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from arena.domain.model import Model
from arena.endpoints.speech import Question, Speech, paced, read_question, refusal, reply
from arena.errors import SettingsError
from rating.tables.files import json_entries

_KEYS = (("instruction", "output"), ("prompt", "response"))
_PIECE_S = 0.1  # time between two pieces: as often as the text of a battle is shown
_CHARACTERS_PER_S = 400.0


@dataclass(frozen=True, slots=True)
class Recording:
    """One model's recorded responses by prompt, in the order of the file."""

    responses: Mapping[str, str]


def load_recording(path: Path) -> Recording:
    """Read a file of outputs.

    Parameters
    ----------
    path : Path
        AlpacaEval's ``model_outputs.json``, a JSON list of objects with ``instruction``
        and ``output``; or JSON lines with ``prompt`` and ``response``. Either pair of
        keys is read in either layout, further keys are ignored.

    Returns
    -------
    Recording
        Of a prompt that comes twice, the first response: which one is replayed must not
        depend on what was appended later.

    Raises
    ------
    SettingsError
        If the file cannot be read as one of these, naming file, line or entry, and value.
    """
    responses: dict[str, str] = {}
    for place, entry in json_entries(path, SettingsError):
        prompt, response = _pair(place, entry)
        responses.setdefault(prompt, response)
    if not responses:
        raise SettingsError(f"{path}: no outputs in it. Give a file with at least one.")
    return Recording(responses)


def load_recordings(roster: Iterable[Model]) -> dict[str, Recording]:
    """Read the files of the models that have one, by `Model.id`."""
    return {model.id: load_recording(Path(model.recording)) for model in roster if model.recording}


class RecordedTransport(httpx.AsyncBaseTransport):
    """Answers ``recorded://`` with what was recorded, at a pace.

    The request's ``model`` picks the recording, so a recorded roster entry has the same
    ``model`` as ``id``. A recording answers the opening of a conversation only: a later
    turn, like a prompt that is not in the file, is refused with status 404.

    Parameters
    ----------
    recordings : mapping
        Recording by `Model.id`.
    characters_per_s : mapping
        Pace by `Model.id`; 400 where there is none.
    """

    def __init__(
        self,
        recordings: Mapping[str, Recording],
        characters_per_s: Mapping[str, float] | None = None,
    ) -> None:
        self._recordings = dict(recordings)
        self._pace = dict(characters_per_s or {})

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Replay the answer to a request."""
        question = await read_question(request)
        recording = self._recordings.get(question.model)
        if recording is None:
            return refusal(404, "model_not_found", f"no recording of {question.model!r}")
        response = recording.responses.get(question.prompt)
        if response is None or _is_later_turn(question):
            return refusal(404, "prompt_not_recorded", "the recording does not hold this prompt")
        pace = self._pace.get(question.model, _CHARACTERS_PER_S)
        return reply(question, Speech(tuple(paced(response, pace, _PIECE_S))))


def _is_later_turn(question: Question) -> bool:
    return any(message.role == "assistant" for message in question.messages)


def _pair(place: str, entry: object) -> tuple[str, str]:
    if isinstance(entry, Mapping):
        for prompt_key, response_key in _KEYS:
            if prompt_key in entry and response_key in entry:
                prompt = _string(place, prompt_key, entry[prompt_key])
                return prompt, _string(place, response_key, entry[response_key])
    fields = sorted(entry) if isinstance(entry, Mapping) else entry
    raise SettingsError(
        f"{place}: found {str(fields)[:80]}. Give an object with instruction and output, "
        "or with prompt and response."
    )


def _string(place: str, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"{place}: {key} is {value!r}. Give a text.")
    return value
