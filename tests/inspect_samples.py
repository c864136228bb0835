"""Inspect's logs as plain data for tests: two models in an agent, one hostile, one that failed."""

from typing import Any

HOSTILE = "</pre><script>taken()</script> \x1b[31m \u202eback\u202c"
SYSTEM = "You have tools."
LOCKED = {"type": "permission", "message": "It is locked."}


def message(role: str, content: object, **more: object) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def call(tool: str, **arguments: object) -> dict[str, Any]:
    return {"id": "c1", "function": tool, "arguments": arguments}


def sample(
    n: int, answer: str, steps: list[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    """Give a sample as Inspect's reader does, so far as it is read."""
    task = more.get("input", f"What is {n} times 7?")
    asked = [message("user", task)] if isinstance(task, str) else task
    last = message("assistant", answer, tool_calls=more.pop("calls", None))
    written = [message("system", SYSTEM), *asked, *(working(n) if steps is None else steps), last]
    return {
        "id": f"q{n}",
        "epoch": 1,
        "input": task,
        "target": str(7 * n),
        "messages": written,
        "output": {"completion": answer, "choices": [{"message": last}], "error": None},
        "scores": {"match": {"value": "C"}},
        "model_usage": {"lab/one": {"total_cost": 0.25}, "lab/helper": {"total_cost": 0.5}},
        "total_time": 12.5,
        "uuid": None,
        "events": 3,
        **more,
    }


def working(n: int) -> list[dict[str, Any]]:
    """Give what an agent does before its answer: reasoning, a call, a result, an error."""
    parts = [
        {"type": "reasoning", "reasoning": "Seven is odd."},
        {"type": "text", "text": "I multiply."},
        {"type": "image", "image": "data:image/png;base64,AAAA"},
        {
            "type": "tool_use",
            "tool_type": "web_search",
            "id": "w1",
            "name": "web_search",
            "arguments": '{"query": "seven"}',
            "result": HOSTILE,
            "error": None,
        },
    ]
    return [
        message("assistant", parts, tool_calls=[call("times", a=n, b=7)]),
        message("tool", str(7 * n), function="times", error=None),
        message("assistant", "", tool_calls=[call("save", value=7 * n)]),
        message("tool", "", function="save", error=LOCKED),
        message("user", "Go on."),
    ]


def log(model: str, samples: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Give a log as `judge.tables.inspect_logs.plain_log` does, so far as it is read."""
    spec = {"task": "sums", "model": model, "solver": None, "task_args_passed": {}, **more}
    steps = spec.pop("steps", [{"solver": "react", "params_passed": {}}])
    plan = {"steps": steps, "config": spec.pop("config", {})}
    return {"eval": spec, "plan": plan, "samples": samples}
