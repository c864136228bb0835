"""The embedded toys, through the client like any endpoint."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from arena.domain.model import Kind, Model
from arena.domain.vote import Chunk, FailureClass, Finished, TextDelta
from arena.endpoints.client import Endpoints
from arena.endpoints.offline import POCKET_MODELS, LongerAnswer, PocketTransport
from arena.errors import EndpointError
from judge.case import Case, Message, Reply
from judge.grammar import Items, Preference, Questions, Rating, Reading, Tags
from judge.labels.files import Tagging, case_of
from judge.methods import PAIRS, SINGLES, WRITER, published
from judge.methods import method as named

TOYS = {model.model: model for model in POCKET_MODELS}
QUESTION = "What does yield do?"
EVERY_TOY = pytest.mark.parametrize("name", list(TOYS))


def toys(seed: int | None = None, *, speedup: float = 1000.0) -> Endpoints:
    transport = PocketTransport(seed, speedup=speedup)
    return Endpoints({}, transports={"pocket://": transport})


@pytest.fixture
async def endpoints() -> AsyncIterator[Endpoints]:
    client = toys(seed=1)
    yield client
    await client.aclose()


async def ask(endpoints: Endpoints, model: Model, prompt: str = QUESTION) -> list[Chunk]:
    return [chunk async for chunk in endpoints.stream(model, (Message("user", prompt),))]


async def answer(endpoints: Endpoints, model: Model, prompt: str = QUESTION) -> str:
    completion = await endpoints.complete(model, (Message("user", prompt),))
    return completion.text


@pytest.mark.sampled(3)
@EVERY_TOY
@pytest.mark.parametrize("prompt", [QUESTION, "Bonjour!", "", "🦊" * 1000])
async def test_every_toy_answers_anything_in_whole_sentences(
    endpoints: Endpoints, name: str, prompt: str
) -> None:
    text = await answer(endpoints, TOYS[name], prompt)
    assert text.endswith(".")
    assert 40 <= len(text.split()) <= 260  # a word of code may hold spaces
    assert text.count("`") % 2 == 0


@EVERY_TOY
async def test_an_answer_streams_word_by_word_and_counts_them(
    endpoints: Endpoints, name: str
) -> None:
    *deltas, end = await ask(endpoints, TOYS[name])
    words = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    assert len(words) == len(deltas) == len("".join(words).split())
    assert end == Finished("stop", tokens_in=4, tokens_out=len(words))


@pytest.mark.parametrize("name", ["bigram", "trigram", "fourgram"])
async def test_an_ngram_takes_up_a_word_of_the_prompt(endpoints: Endpoints, name: str) -> None:
    text = await answer(endpoints, TOYS[name], "Tell me about decorators, please!")
    assert "decorator" in text.split(".")[0].lower()


async def test_retrieval_says_what_yield_does(endpoints: Endpoints) -> None:
    text = await answer(endpoints, TOYS["retrieval"])
    assert text.startswith("**The `yield` statement**\n\n")
    assert "defining a generator function" in text
    for noise in ("::=", '"', "***\n", "section", ".. "):
        assert noise not in text


@pytest.mark.parametrize(
    ("prompt", "heading"),
    [
        ("how do I write a for loop", "The `for` statement"),
        ("Explain the with statement", "The `with` statement"),
        ("What are decorators?", "definition"),
        ("what is a lambda", "Lambdas"),
    ],
)
async def test_retrieval_finds_the_right_page(
    endpoints: Endpoints, prompt: str, heading: str
) -> None:
    assert heading in (await answer(endpoints, TOYS["retrieval"], prompt)).split("\n")[0]


@pytest.mark.parametrize(
    "prompt",
    [
        "A recipe for apple pie?", "Write a poem about the sea", "hi",
        "how long should I follow a statement of a doctor",
    ],
)  # fmt: skip
async def test_retrieval_says_when_it_knows_nothing(endpoints: Endpoints, prompt: str) -> None:
    assert "found no answer" in await answer(endpoints, TOYS["retrieval"], prompt)


async def test_the_same_seed_gives_the_same_answers_and_asking_again_another() -> None:
    first, second = toys(seed=7), toys(seed=7)
    reading_of = [await answer(first, TOYS["trigram"]) for _ in range(2)]
    again = [await answer(second, TOYS["trigram"]) for _ in range(2)]
    await first.aclose()
    await second.aclose()
    assert reading_of == again
    assert reading_of[0] != reading_of[1]


async def test_toys_differ_in_pace_as_people_would_expect() -> None:
    """Words come late on a busy machine, but never early."""
    transport = PocketTransport(seed=1)
    await transport.learn()
    endpoints = Endpoints({}, transports={"pocket://": transport})

    async def pace(name: str) -> float:
        began = time.monotonic()
        async with aclosing(endpoints.stream(TOYS[name], (Message("user", QUESTION),))) as stream:
            for _ in range(40):
                await anext(stream)
        return 40 / (time.monotonic() - began)

    unigram, retrieval = await asyncio.gather(pace("unigram"), pace("retrieval"))
    await endpoints.aclose()
    assert retrieval <= 40
    assert retrieval < unigram <= 125


async def test_leaving_while_a_toy_learns_leaves_the_learning_to_the_next() -> None:
    endpoints = toys(seed=1)
    hasty = asyncio.create_task(ask(endpoints, TOYS["fourgram"]))
    await asyncio.sleep(0.001)
    hasty.cancel()
    assert isinstance((await ask(endpoints, TOYS["fourgram"]))[-1], Finished)
    await endpoints.aclose()


async def test_what_has_learned_answers_without_delay() -> None:
    transport = PocketTransport(seed=1, speedup=1000.0)
    await transport.learn()
    endpoints = Endpoints({}, transports={"pocket://": transport})
    began = time.process_time()
    await ask(endpoints, TOYS["retrieval"])
    assert time.process_time() - began < 0.25
    await endpoints.aclose()


async def test_an_unknown_toy_is_not_found(endpoints: Endpoints) -> None:
    model = Model(id="x", name="x", endpoint="pocket://local/v1", model="pentagram")
    with pytest.raises(EndpointError, match="no pocket model 'pentagram'") as caught:
        await ask(endpoints, model)
    assert caught.value.failure is FailureClass.NOT_FOUND


def test_the_roster_calls_toys_toys() -> None:
    assert [m.id for m in POCKET_MODELS] == [f"pocket-{name}" for name in TOYS]
    assert all("toy" in m.name and "toy" in m.licence for m in POCKET_MODELS)
    assert [m.id for m in POCKET_MODELS if m.kind is Kind.SYSTEM] == ["pocket-retrieval"]
    assert all(m.price is not None and m.price.cost(10, 10) == 0.0 for m in POCKET_MODELS)


def test_importing_the_toys_reads_neither_their_corpus_nor_scikit_learn() -> None:
    code = (
        "import sys, arena.endpoints.offline; "
        "sys.exit(bool({'sklearn', 'pydoc_data.topics'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


PROMPT = (Message("user", "Why is the sky blue?"),)
LONG, SHORT = "Air scatters blue light more than red.", "It just is, you see."
CHECKLISTS = {Case(PROMPT, "").prompt_id: ("Is it right?", "Is it whole?")}
EXPECTED: dict[str, Reading] = {
    "pairwise": Preference(1.0),
    "alpaca_eval_sampled": Preference(1.0),
    "alpaca_eval_verbal": Preference(0.66),
    "arena_hard": Preference(0.75),
    "wildbench_reward": Preference(0.75),
    "mt_bench_pairs": Preference(1.0),
    "mt_bench": Rating(2),
    "wildbench_score": Rating(2),
    "rubric": Rating(2),
    "checklist": Items((True, False)),
}


@pytest.mark.parametrize("name", [name for name in (*PAIRS, *SINGLES) if name != "alpaca_eval"])
def test_each_method_can_read_it(name: str) -> None:
    method = named(name, rubric="1 is poor." if name == "rubric" else None)
    method = method.with_checklists(CHECKLISTS)
    case = Case(PROMPT, LONG, SHORT if name in PAIRS else None)
    assert (
        reading_of(method.ask(case, "0123456789abcdef").messages[-1].content, method, case)
        == (EXPECTED[name])
    )
    if name in PAIRS:
        swapped = case.swapped()
        request = method.ask(swapped, "0123456789abcdef")
        preference = reading_of(request.messages[-1].content, method, swapped)
        assert isinstance(preference, Preference)
        assert preference.first < 0.5


def reading_of(prompt: str, method: object, case: Case) -> object:
    text = LongerAnswer().answer(prompt, random.Random(1))
    return method.read(case, Reply(text=text, finish_reason="stop"))  # type: ignore[attr-defined]


def test_it_writes_checklists() -> None:
    case, writer = Case(PROMPT, ""), published(WRITER)
    questions = reading_of(writer.ask(case, "0" * 16).messages[-1].content, writer, case)
    assert isinstance(questions, Questions)
    assert len(questions.items) == 5


def test_it_labels_every_prompt_alike() -> None:
    tagging, case = Tagging(), case_of(["Write a poem."])
    tags = reading_of(tagging.ask(case, "0" * 16).messages[-1].content, tagging, case)
    assert tags == Tags("other", "en", "asking", ())


def test_without_an_answer_there_is_no_verdict() -> None:
    assert "no answers" in LongerAnswer().answer("Hello.", random.Random(1))
