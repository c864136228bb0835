"""Refusals of a judge, in each form in which providers send them: asked once, and no verdict."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.arena.test_judge_batch_command import requests, write
from tests.command import Command, Ran, endpoint_roster, json_lines, report
from tests.faulty_server import Behaviour, faulty_server
from tests.sqlite import new_sqlite

NO = "I'm sorry, I can't help with that."


def whole(finish: str, **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    return {"id": "c1", "object": "chat.completion", "choices": [choice], "usage": usage}


REFUSALS: Mapping[str, dict[str, Any]] = {
    "https://platform.openai.com/docs/guides/structured-outputs#refusals": whole(
        "stop", content=None, refusal=NO
    ),
    "https://platform.openai.com/docs/api-reference/chat/create, a part of the content": whole(
        "stop", content=[{"type": "refusal", "refusal": NO}]
    ),
    "https://learn.microsoft.com/en-us/azure/ai-services/openai/concepts/content-filter": whole(
        "content_filter", content=""
    ),
    "https://github.com/bespokelabsai/curator/issues/261, Gemini's reason behind a gateway": whole(
        "content_filter: OTHER"
    ),
    "https://ai.google.dev/api/generate-content#FinishReason": whole(
        "PROHIBITED_CONTENT", content=None
    ),
    "https://docs.anthropic.com/en/api/handling-stop-reasons": whole(
        "refusal", content="The first answer [[A]]"
    ),
    "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html": whole(
        "guardrail_intervened", content="Sorry, the model cannot answer this question."
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    new_sqlite(tmp_path)
    pairs = [{"prompt": f"{n}?", "response_a": f"Yes {n}.", "response_b": "No."} for n in range(2)]
    json_lines(tmp_path / "pairs.jsonl", pairs)
    return tmp_path


def judge(command: Command, url: str, *words: str) -> Ran:
    endpoint_roster(command.folder, url, "shy", "bold")
    there = ("--judge", "shy", "--cases", "pairs.jsonl", "--roster", "roster.toml")
    return command("judge", "run", "--method", "pairwise", *there, "--format", "json", *words)


OUT = ("--out", "found.csv")


@pytest.mark.parametrize("source", REFUSALS)
def test_a_refusal_is_asked_once_again_on_request_and_of_the_second_judge(
    command: Command, folder: Path, source: str
) -> None:
    refusal = Behaviour(body=REFUSALS[source])
    with faulty_server({"shy": refusal, "bold": Behaviour(text="[[C]]")}) as server:
        first = report(judge(command, server.url, *OUT))
        assert (first["by_status"], first["n_asked"]) == ({"refusal": 4}, 4)
        sentence = "'shy' refused 4 questions: no verdict. --again refused asks once more."
        assert sentence in first["warnings"]
        assert report(judge(command, server.url, *OUT))["n_asked"] == 0
        assert len(server.requests) == 4
        again = report(judge(command, server.url, *OUT, "--again", "refused"))
        assert (again["by_status"], again["n_asked"]) == ({"refusal": 4}, 4)
        second = report(judge(command, server.url, *OUT, "--fallback-judge", "bold"))
        assert second["by_status"] == {"read": 4}
        assert second["fallback"]["handed_over"] == {"refusal": 2}
        assert Counter(one.model for one in server.requests) == {"shy": 8, "bold": 4}


@pytest.mark.parametrize("source", REFUSALS)
def test_a_refusal_in_a_batch_is_a_reply_and_not_due_again(
    command: Command, folder: Path, source: str
) -> None:
    with faulty_server({"shy": Behaviour(text="[[C]]")}) as server:
        judge(command, server.url, "--batch", "write", "jobs")
        lines = [
            {
                "custom_id": one["custom_id"],
                "response": {"status_code": 200, "request_id": "r", "body": REFUSALS[source]},
                "error": None,
            }
            for one in requests(folder / "jobs")
        ]
        write(folder / "jobs" / "output.jsonl", *lines)
        read = judge(command, server.url, "--batch", "read", "jobs")
        assert (read.returncode, report(read)["kept"], report(read)["due"]) == (0, 4, 0)
        done = report(judge(command, server.url, *OUT))
        assert (done["by_status"], done["n_asked"]) == ({"refusal": 4}, 0)
        assert server.requests == []


def test_a_refusal_in_a_batch_of_anthropic_s_is_a_reply_and_not_due_again(
    command: Command, folder: Path
) -> None:
    """https://docs.anthropic.com/en/docs/build-with-claude/batch-processing: ``stop_reason``."""
    with faulty_server({"shy": Behaviour(text="[[C]]")}) as server:
        batch = ("--batch", "write", "jobs")
        anthropic = '[models.judging]\nbatch = "anthropic"\n'
        endpoint_roster(folder, server.url, "shy", more=anthropic)
        there = ("--judge", "shy", "--cases", "pairs.jsonl", "--roster", "roster.toml")
        run = ("judge", "run", "--method", "pairwise", *there, "--format", "json")
        command(*run, *batch)
        sent = json.loads((folder / "jobs" / "requests-0001.json").read_text())["requests"]
        message = {"id": "m", "content": [], "stop_reason": "refusal", "usage": {}}
        lines = [
            {"custom_id": one["custom_id"], "result": {"type": "succeeded", "message": message}}
            for one in sent
        ]
        write(folder / "jobs" / "output.jsonl", *lines)
        assert report(command(*run, "--batch", "read", "jobs"))["kept"] == 4
        done = report(command(*run, *OUT))
        assert (done["by_status"], done["n_asked"]) == ({"refusal": 4}, 0)
