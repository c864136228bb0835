"""The arena with two recorded models, in a process of its own: what benchmarks read."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ARENA = str(Path(sys.executable).parent / "arena")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    url: str
    pid: int

    def cpu_s(self) -> float:
        """Processor time that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def memory_mb(self) -> float:
        """Resident memory now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


def write_recordings(folder: Path, answers: Mapping[str, str], characters_per_s: float) -> Path:
    """Write two models that answer each prompt with its text at a speed; gives their roster."""
    lines = [json.dumps({"prompt": p, "response": text}) for p, text in answers.items()]
    (folder / "answers.jsonl").write_text("\n".join(lines))
    models = [
        f'[[models]]\nid = "{m}"\nname = "{m}"\nendpoint = "recorded://f"\n'
        f'recording = "answers.jsonl"\ncharacters_per_s = {characters_per_s}'
        for m in ("one", "two")
    ]
    roster = folder / "roster.toml"
    roster.write_text("\n".join(models))
    return roster


@contextmanager
def serving_recordings(
    answers: Mapping[str, str],
    characters_per_s: float,
    command: Sequence[str] = (ARENA,),
    **env: str,
) -> Iterator[Server]:
    """Serve them as fast as they speak."""
    with tempfile.TemporaryDirectory() as name:
        write_recordings(Path(name), answers, characters_per_s)
        settings = {
            "ARENA_ROSTER": "roster.toml",
            "ARENA_PORT": "0",
            "ARENA_CHARACTERS_PER_S": str(characters_per_s),
            "ARENA_LOG_LEVEL": "error",
        }
        with subprocess.Popen(
            [*command, "serve"],
            cwd=name,
            env=os.environ | settings | env,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            url = re.search(r"http://\S+", process.stdout.readline())
            assert url is not None
            try:
                yield Server(url.group(), process.pid)
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(30)
