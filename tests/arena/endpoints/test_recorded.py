"""Recordings: read, refused with reasons, and replayed byte for byte."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.domain.model import Model
from arena.domain.vote import Chunk, FailureClass, Finished, TextDelta
from arena.endpoints.client import Endpoints
from arena.endpoints.offline import RecordedTransport, load_recording, load_recordings
from arena.endpoints.trial import try_all
from arena.errors import EndpointError, SettingsError
from judge.case import Message
from rating.tables.files import VISIBLE, storable

MODEL = Model(id="rec", name="Recorded", endpoint="recorded://local/v1", model="rec")
QUICKLY = 1e6


async def replay(
    responses: dict[str, str], *messages: Message, characters_per_s: float = QUICKLY
) -> list[Chunk]:
    transport = RecordedTransport({"rec": responses}, {"rec": characters_per_s})
    endpoints = Endpoints({}, transports={"recorded://": transport})
    try:
        return [chunk async for chunk in endpoints.stream(MODEL, messages)]
    finally:
        await endpoints.aclose()


def visible(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


def write(folder: Path, text: str) -> Path:
    path = folder / "outputs.json"
    path.write_bytes(text.encode())
    return path


def test_a_list_of_outputs_is_read_in_its_order(tmp_path: Path) -> None:
    outputs = [
        {"instruction": "b", "output": "2", "generator": "m", "dataset": "d"},
        {"instruction": "a", "output": "1", "generator": "m", "dataset": "d"},
    ]
    recording = load_recording(write(tmp_path, json.dumps(outputs, indent=2)))
    assert list(recording.items()) == [("b", "2"), ("a", "1")]


def test_json_lines_are_read_and_blank_ones_skipped(tmp_path: Path) -> None:
    text = '\ufeff{"prompt": "a\u2028b", "response": "1"}\r\n\r\n{"prompt": "c", "response": ""}\n'
    assert load_recording(write(tmp_path, text)) == {"a\u2028b": "1", "c": ""}


def test_of_a_prompt_that_comes_twice_the_first_response_counts(tmp_path: Path) -> None:
    outputs = [{"instruction": "a", "output": o} for o in ("first", "second")]
    assert load_recording(write(tmp_path, json.dumps(outputs))) == {"a": "first"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no outputs in it"),
        ("[]", "no outputs in it"),
        ('[{"prompt": "a"', "Entry 1 of .* is not JSON"),
        ("[1]", "Entry 1 of .*: found 1"),
        (
            '[{"instruction": "a", "answer": "b"}]',
            r"Entry 1 of .*: found \['answer', 'instruction'\]",
        ),
        ('[{"instruction": "a", "output": null}]', "Entry 1 of .*: output is None"),
        (
            '{"prompt": "a", "response": "b"}\n{"prompt": 7, "response": "b"}',
            "Line 2 of .*: prompt is 7",
        ),
        ('{"prompt": "a", "response": "b"}\nnonsense', "Line 2 of .* is not JSON"),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_place_and_value(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SettingsError, match=complaint) as caught:
        load_recording(path)
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_read_is_named_and_its_model(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.json': there is no such file"):
        load_recording(tmp_path / "none.json")
    gone = replace(MODEL, recording=str(tmp_path / "none.json"))
    with pytest.raises(SettingsError, match=r"recording of model 'rec' .* no such file"):
        load_recordings([gone])
    path = tmp_path / "latin.json"
    path.write_bytes(b'[{"instruction": "caf\xe9"}]')
    with pytest.raises(SettingsError, match=r"Line 1 of .* is not UTF-8 \(byte 0xe9\)"):
        load_recording(path)


texts = st.text(st.characters(exclude_categories=["Cs"]))


@settings(max_examples=50, deadline=None)
@given(outputs=st.dictionaries(texts, texts, min_size=1), lines=st.booleans())
def test_what_is_written_is_what_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, outputs: dict[str, str], lines: bool
) -> None:
    entries = [{"prompt": p, "response": r} for p, r in outputs.items()]
    written = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    text = "\n".join(written) if lines else f"[{','.join(written)}]"
    assert load_recording(write(tmp_path_factory.mktemp("recording"), text)) == outputs


@settings(max_examples=30, deadline=None)
@given(
    response=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<[◁"))
    .map(storable)
    .filter(VISIBLE.search),
    characters_per_s=st.sampled_from([1e5, 1e9]),
)
async def test_replay_gives_the_text_back_byte_for_byte(
    response: str, characters_per_s: float
) -> None:
    chunks = await replay(
        {"hi": response}, Message("user", "hi"), characters_per_s=characters_per_s
    )
    assert visible(chunks).encode() == response.encode()
    assert chunks[-1] == Finished("stop", 1, len(response.split()))


async def test_replay_keeps_its_pace_in_small_pieces() -> None:
    began = time.monotonic()
    chunks = await replay({"hi": "x" * 100}, Message("user", "hi"), characters_per_s=200.0)
    assert time.monotonic() - began >= 0.45
    assert max(len(chunk.text) for chunk in chunks if isinstance(chunk, TextDelta)) <= 20


async def test_a_system_prompt_does_not_hide_the_recorded_one() -> None:
    messages = (Message("system", "Be brief."), Message("user", "hi"))
    assert visible(await replay({"hi": "Hello."}, *messages)) == "Hello."


@pytest.mark.parametrize(
    "messages",
    [
        (Message("user", "something else"),),
        (Message("user", "hi"), Message("assistant", "Hello."), Message("user", "hi")),
        (),
    ],
)
async def test_what_is_not_recorded_is_not_found(messages: tuple[Message, ...]) -> None:
    with pytest.raises(EndpointError, match="does not hold this prompt") as caught:
        await replay({"hi": "Hello."}, *messages)
    assert caught.value.failure is FailureClass.NOT_FOUND


async def test_a_model_that_answers_from_recordings_is_tried_by_a_prompt_that_it_has() -> None:
    recording = RecordedTransport({"rec": {"hi": "Hello."}}, {"rec": QUICKLY})
    endpoints = Endpoints({}, transports={"recorded://": recording})
    other = replace(MODEL, id="other", model="other")
    trials = await try_all(endpoints, [MODEL, other], {"rec": ("hi",)})
    await endpoints.aclose()
    assert (trials["rec"].failure, trials["rec"].sentence) == (None, "")
    assert 0 < (trials["rec"].first_s or 0) <= (trials["rec"].seconds or 0)
    assert (trials["other"].failure, trials["other"].seconds) == (FailureClass.NOT_FOUND, None)
    assert "no recording of 'other'" in trials["other"].sentence


async def test_a_model_without_a_recording_is_not_found() -> None:
    endpoints = Endpoints({}, transports={"recorded://": RecordedTransport({})})
    with pytest.raises(EndpointError, match="no recording of 'rec'"):
        await endpoints.complete(MODEL, (Message("user", "hi"),))
    await endpoints.aclose()


@pytest.mark.published
async def test_published_outputs_are_replayed_as_they_are() -> None:
    folder = os.environ.get("PUBLISHED_DATA")
    if not folder:
        pytest.skip("PUBLISHED_DATA does not name the folder of the published data")
    files = [
        Path(folder, "outputs", f"{m}.json") for m in ("falcon-7b-instruct", "gpt4_1106_preview")
    ]
    recordings = [load_recording(path) for path in files]
    prompts = list(recordings[0])
    assert len(prompts) == 805
    original = {o["instruction"]: o["output"] for o in json.loads(files[0].read_bytes())}
    for prompt in prompts[:20]:
        answer_text = visible(await replay(recordings[0], Message("user", prompt)))
        assert answer_text == original[prompt]
