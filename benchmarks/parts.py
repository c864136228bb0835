"""Serves the arena, and says what its processor time goes to: see ``live.py``.

At each few milliseconds of processor time the main thread's stack is read: what that thread used
since the last look counts for the innermost of `PARTS` in it. What other threads used counts as
storing, which is nearly all that they do here.
"""

import json
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType

from arena.cli import main

EVERY_S = 0.001
"""As often as the kernel's clock allows, which is every few milliseconds."""

PARTS = {
    "arena/endpoints/offline.py": "recordings",
    "arena/endpoints/": "model streams",
    "aiohttp/": "model streams",
    "judge/render/": "rendering",
    "arena/api/battles.py": "rendering",
    "arena/play/live.py": "pace",
    "arena/play/pace.py": "pace",
    "arena/play/": "battles",
    "uvicorn/protocols": "HTTP",
    "arena/server.py": "HTTP",
    "arena/api/": "HTTP",
    "fastapi/": "HTTP",
    "starlette/": "HTTP",
}
"""What a line of code is part of, by its file: the first that fits."""

LOOP, STORING = "event loop", "storing"


class Parts:
    """Seconds of processor time by part, between two signals.

    Parameters
    ----------
    report : Path
        File that they are written to, as JSON, at the second.
    """

    def __init__(self, report: Path) -> None:
        self._report = report
        self._spent: defaultdict[str, float] | None = None
        self._thread_s = self._process_s = 0.0

    def begin_or_end(self, *_: object) -> None:
        """Begin to look, or write the report."""
        if self._spent is None:
            self._spent = defaultdict(float)
            self._thread_s, self._process_s = time.thread_time(), time.process_time()
            signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
            return
        signal.setitimer(signal.ITIMER_PROF, 0)
        whole = time.process_time() - self._process_s
        self._spent[STORING] = whole - sum(self._spent.values())
        self._report.write_text(json.dumps(self._spent))

    def look(self, _signal: int, frame: FrameType | None) -> None:
        """Count what the main thread has used since the last look."""
        now = time.thread_time()
        if self._spent is not None:
            self._spent[part_of(frame)] += now - self._thread_s
        self._thread_s = now


def part_of(frame: FrameType | None) -> str:
    """Describe what a stack is at."""
    while frame is not None and frame.f_code.co_name != "run_forever":
        for where, part in PARTS.items():
            if where in frame.f_code.co_filename:
                return part
        frame = frame.f_back
    return LOOP


if __name__ == "__main__":
    parts = Parts(Path(sys.argv.pop(1)))
    signal.signal(signal.SIGPROF, parts.look)
    signal.signal(signal.SIGUSR1, parts.begin_or_end)
    main()
