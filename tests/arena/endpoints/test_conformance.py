"""What servers and gateways send, and what becomes of it: see docs/reference/endpoints.md."""

import json
from collections.abc import Awaitable
from pathlib import Path

from arena.domain.vote import FAILURES, Completion, Finished
from arena.endpoints.chat import answer_of, line_of
from arena.endpoints.client import Endpoints
from arena.errors import EndpointError
from judge.case import CUT, FILTERED
from tests.arena.endpoints.asking import PROMPT, ask, reasoning, serve, visible
from tests.faulty_server import Behaviour, FaultyServer
from tests.judge.test_thoughts import MARKED
from tests.provider_replies import REPLIES, SHAPES, ProviderReply

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "endpoints.md"
HEAD = "| described in | behaviour | stream | reply | line of a batch |\n|---|---|---|---|---|\n"


def became(text: str, reason: str, *, has_reasoning: bool) -> str:
    """Describe what an answer is."""
    if reason == FILTERED:
        return "refusal"
    words = ["answer" if text else "empty"]
    words += ["cut"] if reason == CUT else []
    words += ["reasoning apart"] if has_reasoning else []
    return ", ".join(words)


async def outcome(reply: Awaitable[Completion]) -> str:
    try:
        done = await reply
    except EndpointError as error:
        return f"failure: {FAILURES[error.failure]}"
    return became(done.text, done.finished.finish_reason, has_reasoning=bool(done.reasoning))


async def streamed(endpoints: Endpoints, server: FaultyServer, behaviour: Behaviour) -> Completion:
    chunks = await ask(endpoints, serve(server, behaviour))
    end = chunks[-1]
    assert isinstance(end, Finished)
    return Completion(visible(chunks), end, reasoning(chunks))


async def in_a_batch(body: object) -> Completion:
    response = {"status_code": 200, "request_id": "r", "body": body}
    line = line_of(json.dumps({"custom_id": "1", "response": response}))
    assert line is not None
    return answer_of(line)


async def cells(endpoints: Endpoints, server: FaultyServer, reply: ProviderReply) -> list[str]:
    results = [await outcome(streamed(endpoints, server, Behaviour(stream=reply.stream())))]
    if reply.only_streamed:
        return [*results, "", ""]
    model = serve(server, Behaviour(body=reply.whole()))
    results.append(await outcome(endpoints.complete(model, PROMPT)))
    return [*results, await outcome(in_a_batch(reply.whole()))]


async def table(endpoints: Endpoints, server: FaultyServer) -> str:
    rows = []
    for reply in REPLIES.values():
        what = reply.what or (f"`{reply.finish}`" if reply.finish else "no finish reason")
        rows.append([reply.source, what, *await cells(endpoints, server, reply)])
    for what, (source, stream, _) in SHAPES.items():
        result = await outcome(streamed(endpoints, server, Behaviour(stream=stream)))
        rows.append([source, what, result, "", ""])
    for source, text, _ in MARKED:
        marked = ProviderReply(source=source, deltas=({"content": text},))
        shown = text.replace("\n", "⏎").replace("|", "\\|")
        rows.append([source, f"`{shown}`", *await cells(endpoints, server, marked)])
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


async def test_the_document_says_what_becomes_of_each_reply(
    endpoints: Endpoints, server: FaultyServer
) -> None:
    """Write the table where it differs: what changed is then seen in the document."""
    before = DOCUMENT.read_text(encoding="utf-8")
    now = before.partition(HEAD)[0] + await table(endpoints, server)
    if now != before:
        DOCUMENT.write_text(now, encoding="utf-8")
    assert now == before
