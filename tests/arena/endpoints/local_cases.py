"""What the small model on this machine is asked, and what its server has answered.

``python -m tests.arena.endpoints.local_cases`` asks it again and writes the answers down.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2

from arena.domain.model import Model
from arena.endpoints.chat import request_body
from arena.endpoints.local import JUDGE, local_model
from judge.case import Message

NO_KEY = "no key, streamed"
RECORDED = Path(__file__).with_name("local_replies.json")
SCHEMA = {"properties": {"better": {"enum": ["A", "B"]}}, "required": ["better"]}
NAMED = {"name": "verdict", "schema": {"type": "object", **SCHEMA}}


@dataclass(frozen=True, slots=True)
class LocalCase:
    """A request, and what becomes of its answer, streamed and whole."""

    prompt: str = "What is the capital of France?"
    decoding: Mapping[str, object] | None = None
    outcome: str = "answer"

    @property
    def model(self) -> Model:
        """The small model, at no temperature, with the decoding of the case."""
        decoding = {"temperature": 0, "max_tokens": 200, **(self.decoding or {})}
        return replace(JUDGE, decoding=decoding)

    @property
    def messages(self) -> tuple[Message, ...]:
        return (Message("user", self.prompt),)


CASES = {
    "an answer": LocalCase(),
    "a limit of 3 tokens": LocalCase(decoding={"max_tokens": 3}, outcome="answer, cut"),
    "a stop sequence": LocalCase(decoding={"stop": [" France"]}),
    "log-probabilities": LocalCase(
        decoding={"max_tokens": 1, "logprobs": True, "top_logprobs": 5}, outcome="answer, cut"
    ),
    "a JSON schema": LocalCase(
        'Say which is better, as JSON with the key "better": A or B?',
        {"response_format": {"type": "json_schema", "json_schema": NAMED}},
    ),
    "a prompt longer than its context": LocalCase(
        "word " * 9000, outcome="failure: prompt too long"
    ),
}


def body_of(case: LocalCase, *, stream: bool) -> dict[str, Any]:
    options = {"stream_options": {"include_usage": True}} if stream else {}
    return dict(request_body(case.model, case.messages, {"stream": stream, **options}))


def _answers() -> dict[str, dict[str, Any]]:
    model, answers = local_model(), {}
    url = f"{asyncio.run(model.address())}/v1/chat/completions"
    asked = {
        f"{name}, {kind}": body_of(case, stream=kind == "streamed")
        for name, case in CASES.items()
        for kind in ("streamed", "whole")
    }
    for name, body in {**asked, NO_KEY: body_of(LocalCase(), stream=True)}.items():
        key = {} if name == NO_KEY else {"Authorization": f"Bearer {model.key}"}
        answer = httpx2.post(url, json=body, headers=key, timeout=60)
        answers[name] = {"status": answer.status_code, "body": answer.text}
    model.close()
    return answers


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(_answers(), indent=1) + "\n")
