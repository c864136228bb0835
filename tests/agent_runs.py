"""Recorded runs of scripted agents for tests: twenty items, two systems each, one hostile."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

from arena.domain.study import Shown
from arena.domain.vote import Voter
from arena.store import studies
from arena.store.store import Store

MODELS = ("basalt-large", "quartz-8b")
SCAFFOLDS = ("loopback", "outliner")
SYSTEMS = [(model, scaffold) for model in MODELS for scaffold in SCAFFOLDS]
ITEMS = 20
HOSTILE = 7
MARKS = ("hidden_tests", "0.8125")
SECRETS = (*MODELS, *SCAFFOLDS, "0.0417", "417", "83.25", "83", *MARKS)
"""What nobody may read before rating: names, what the runs took, and how they were marked."""

ATTACK = (
    "</pre></details><script>document.title = 'taken'</script>"
    '<img src=x onerror="fetch(1)"> \x1b[31mred\x1b[0m \u202eback\u202c [k](javascript:alert(1))'
)
FILES = ("orders.py", "refunds.py", "stock.py", "mail.py", "login.py")


def task(n: int) -> str:
    return f"The test of `{FILES[n % 5]}` fails since change {100 + n}. Find out why, and mend it."


def steps(n: int, model: str, scaffold: str) -> Iterator[dict[str, Any]]:
    """Give what an agent does: it looks first; a better one also runs the tests."""
    file = FILES[n % 5]
    yield {"kind": "message", "text": f"I look at `{file}` first."}
    yield {"kind": "tool_call", "name": "read_file", "arguments": {"path": file}, "seconds": 0.4}
    source = "\n".join(f"{k:3} value = rows[{k}] + offset" for k in range(1, 13))
    yield {"kind": "tool_result", "name": "read_file", "text": source, "cost": 0.0011}
    if scaffold == "outliner":
        yield {"kind": "message", "text": "Plan:\n\n1. find the loop\n2. mend it\n3. test it"}
    if n == HOSTILE:
        yield {"kind": "tool_call", "name": "fetch", "arguments": {"url": ATTACK}}
        yield {"kind": "tool_result", "name": "fetch", "text": ATTACK + " and so on" * 2_000}
        yield {"kind": "message", "text": ATTACK}
    edit = {"path": file, "from": "offset", "to": "offset - 1"}
    yield {"kind": "tool_call", "name": "edit_file", "arguments": edit}
    if model == "basalt-large":
        yield {"kind": "tool_call", "name": "run_tests", "arguments": {"only": file}}
        yield {"kind": "tool_result", "name": "run_tests", "text": "4 passed in 0.31 s"}
    else:
        yield {"kind": "error", "name": "edit_file", "text": "The file changed meanwhile."}


def run(n: int, model: str, scaffold: str) -> dict[str, Any]:
    file, tested = FILES[n % 5], model == "basalt-large"
    outcome = (
        f"**Cause.** The loop in `{file}` counts from 1, and the list from 0.\n\n"
        f"```python\nvalue = rows[k] + offset - 1\n```\n\n"
    )
    outcome += "All four tests pass." if tested else "I have not run the tests."
    took = {"cost": 0.0417, "seconds": 83.25} if tested else {"cost": 0.0123, "seconds": 21.5}
    return took | {
        "item": f"task-{n}",
        "model": model,
        "scaffold": scaffold,
        "prompt": task(n),
        "outcome": ATTACK if n == HOSTILE else outcome,
        "steps": list(steps(n, model, scaffold)),
        "marks": {MARKS[0]: float(MARKS[1])} if tested else {},
    }


def pairs() -> list[Sequence[tuple[str, str]]]:
    """Name the two systems of each item: all pairs of four in turn."""
    every = list(combinations(SYSTEMS, 2))
    return [every[n % len(every)] for n in range(ITEMS)]


def recorded() -> list[dict[str, Any]]:
    return [run(n, *system) for n, both in enumerate(pairs()) for system in both]


def write_runs(path: Path, runs: Sequence[object] | None = None) -> Path:
    lines = (json.dumps(one) for one in (recorded() if runs is None else runs))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def rate_by(database: str, study: str, people: int) -> None:
    """Let so many people rate a study: tests and a plan are worth something to them."""
    with closing(Store(database)) as store, store.writing() as session:
        for who in (f"rater-{k}" for k in range(people)):
            while True:
                _, shown = studies.give(session, study, Voter(who), datetime.now(UTC))
                if shown is None:
                    break
                choice, key = _choice(who, shown), f"{who}-{shown.token}"
                studies.rate(session, study, who, shown.token, key, choice, datetime.now(UTC))


def _choice(who: str, shown: Shown) -> str:
    sides = [
        (answer[0]["content"], json.dumps(steps))
        for answer, steps in zip(shown.answers, shown.steps, strict=True)
    ]
    worth = [1.2 * ("All four" in text) + 0.6 * ("Plan:" in done) for text, done in sides]
    drawn = Random(f"{who}/{shown.messages[0]['content']}").random()
    lead = worth[0] - worth[1] if sides[0] < sides[1] else worth[1] - worth[0]
    lesser_wins = drawn < 1 / (1 + math.exp(-lead))
    return "a" if lesser_wins == (sides[0] < sides[1]) else "b"
