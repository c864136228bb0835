"""Embeddings, asked once and remembered."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from judge.case import CallError, FailureClass
from judge.probe.prompts import (
    AT_ONCE,
    LOOK_AGAIN_S,
    Vectors,
    embed_all,
    embedding_measure,
    texts_asked,
)
from judge.probe.similarity import AxisName, card_of, words
from rating.errors import DataError
from tests.judge.probe.texts import LEXICON, plans
from tests.judge.scripted import MemoryJournal


@dataclass
class Counting:
    """Embeds a text as counts of a lexicon's words; fails as often as it is told to."""

    failures: list[FailureClass] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        if self.failures:
            raise CallError(self.failures.pop(0), "as told")
        self.asked.extend(texts)
        counts = [Counter(words(text)) for text in texts]
        return [[float(count[word]) for word in LEXICON[:40]] for count in counts]


@dataclass
class Waits:
    """Notes waits, and waits for nothing."""

    seconds: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


async def embedded(
    texts: Sequence[str],
    embed: Counting,
    journal: MemoryJournal | None = None,
    *,
    model: str = "toy",
    sleep: Waits | None = None,
) -> Vectors:
    return await embed_all(
        texts,
        embed,
        journal or MemoryJournal(),
        model=model,
        sleep=sleep or Waits(),
        rng=np.random.default_rng(1),
    )


def many(n: int) -> list[str]:
    return [f"{LEXICON[i % 100]} {i}" for i in range(n)]


async def test_a_card_of_embeddings_asks_for_every_text_once() -> None:
    planned, embed = plans(), Counting()
    texts = texts_asked(planned)
    vectors = await embedded(texts, embed)
    assert sorted(embed.asked) == sorted(set(texts))
    card = card_of(embedding_measure("toy", vectors), planned, seed=1)
    assert card.evaluator == "toy cosine"
    assert [axis.name for axis in card.axes] == list(AxisName)
    assert all(axis.estimate.value is not None for axis in card.axes)


async def test_cosines_are_those_of_the_vectors() -> None:
    vectors = {"a": np.array([3.0, 4.0]), "b": np.array([4.0, 3.0]), "none": np.zeros(2)}
    scorer = embedding_measure("toy", vectors).fit([])
    assert scorer.rows(["a", "a", "a"], ["a", "b", "none"]) == pytest.approx([1, 0.96, 0])
    assert scorer.matrix(["a", "b"], ["b", "none"]) == pytest.approx(np.array([[0.96, 0], [1, 0]]))


async def test_what_the_journal_holds_is_not_asked_again() -> None:
    journal, first, second = MemoryJournal(), Counting(), Counting()
    before = await embedded(many(100), first, journal)
    after = await embedded(many(150), second, journal)
    assert second.asked == many(150)[100:]
    assert all((before[text] == after[text]).all() for text in many(100))
    other = Counting()
    await embedded(many(10), other, journal, model="another")
    assert other.asked == many(10)


async def test_a_run_that_broke_off_goes_on_where_it_was() -> None:
    journal, texts = MemoryJournal(), many(3 * AT_ONCE)

    @dataclass
    class BreaksOff(Counting):
        async def __call__(self, texts: Sequence[str]) -> list[list[float]]:
            if self.asked:
                raise CallError(FailureClass.DENIED, "no more")
            return await super().__call__(texts)

    with pytest.raises(CallError):
        await embedded(texts, BreaksOff(), journal)
    assert not journal.memory.holders
    rest = Counting()
    await embedded(texts, rest, journal)
    assert rest.asked == texts[AT_ONCE:]


async def test_passing_failures_are_waited_out() -> None:
    waits = Waits()
    embed = Counting([FailureClass.RATE_LIMIT, FailureClass.TRANSPORT])
    assert len(await embedded(many(3), embed, sleep=waits)) == 3
    assert len(waits.seconds) == 2


async def test_two_runs_at_once_ask_for_each_text_once() -> None:
    journal, waits = MemoryJournal(), Waits()
    other = MemoryJournal(journal.memory, "two")
    first, second = Counting(), Counting()
    both = await asyncio.gather(
        embedded(many(200), first, journal, sleep=waits),
        embedded(many(200), second, other, sleep=waits),
    )
    assert sorted(first.asked + second.asked) == sorted(many(200))
    assert [len(vectors) for vectors in both] == [200, 200]
    assert set(waits.seconds) <= {LOOK_AGAIN_S}


async def test_progress_counts_texts_to_the_last() -> None:
    seen: list[tuple[int, int]] = []
    await embed_all(
        many(100),
        Counting(),
        MemoryJournal(),
        model="toy",
        sleep=Waits(),
        rng=np.random.default_rng(1),
        progress=lambda done, of: seen.append((done, of)),
    )
    assert seen == [(0, 100), (64, 100), (100, 100)]


async def test_vectors_that_do_not_fit_are_refused() -> None:
    @dataclass
    class Short(Counting):
        async def __call__(self, texts: Sequence[str]) -> list[list[float]]:
            return (await super().__call__(texts))[1:]

    @dataclass
    class Uneven(Counting):
        async def __call__(self, texts: Sequence[str]) -> list[list[float]]:
            return [[1.0] * (1 + i) for i, _ in enumerate(texts)]

    with pytest.raises(DataError, match="1 embeddings for 2 texts"):
        await embedded(["a", "b"], Short())
    with pytest.raises(DataError, match="differ in length"):
        await embedded(["a", "b"], Uneven())
