"""The process in which llama.cpp serves the small model, on loopback alone.

``python -m arena.endpoints.local_server FILE NAME`` reads the key that requests must carry
from a line of its standard input, and prints its address once it answers. It ends when its
standard input ends, and so with the process that started it.
"""

import os
import signal
import sys
from threading import Event, Thread

CONTEXT = 8192
"""Tokens, divided among the requests that are answered at the same time."""
SLOTS = 4


def _serve(file: str, name: str) -> None:
    """Serve a model file under a name, on any port that is free."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the arena, which ends this
    key = sys.stdin.readline().strip()
    Thread(target=end_with_parent, daemon=True).start()
    try:
        import xllamacpp
    except ImportError as error:  # such as of libgomp, which its wheel needs
        sys.exit(f"llama.cpp cannot be loaded: {error}")

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = file, {name}
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
    params.n_ctx, params.n_parallel = CONTEXT, SLOTS
    params.cache_ram_mib = 0  # else the memory grows with each prompt, up to 8 GB
    # On all cores, each of two answers at a time takes ten times as long.
    own = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if own else os.cpu_count() or 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, cores - 1)
    params.ui = params.endpoint_slots = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    Event().wait()


def end_with_parent() -> None:
    """Wait for the end of standard input, which the parent holds open, and end this process."""
    while os.read(0, 1024):  # not by sys.stdin, whose lock an exit would wait for
        pass
    os._exit(1)  # without waiting for other threads


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2])
