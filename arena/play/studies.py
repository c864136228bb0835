"""Battles on prompts with a known check: gold pairs, and instructions that a program can check.

`GoldPairs` decides which gold prompts are offered and when a pair is played. Two models of the
roster replace those whose answers were recorded: the answers come at the pace of these two, as
theirs would. `Instructed` offers prompts and checks which of their instructions two answers
follow.
"""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from arena.domain.battle import Followed, Side
from arena.domain.model import OWNER, Model, set_of
from arena.domain.vote import Choice, Chunk, Finished, TextDelta
from arena.endpoints.offline import Piece, paced
from arena.play.live import Ask
from arena.play.matchmaking import Draw, Offers, sides
from arena.play.pace import Tempo
from judge.case import Message
from judge.ifeval import Task, check
from judge.tables.cases import GoldPair
from rating.tables.files import storable

# Gold pairs

OFFERED = 3
"""Prompts of gold pairs among those to try; most who take one get an ordinary battle."""
PIECE_S = 0.1
"""Seconds between the pieces of an answer."""


class _GoldBattle(NamedTuple):
    """A gold pair on its sides; ``prompt_set`` is how the record marks it."""

    prompt: str
    models: Mapping[Side, Model]
    texts: Mapping[Side, str]
    prompt_set: str
    side_seed: int

    def writer(self, tempos: Mapping[Side, Tempo]) -> Ask:
        """Give what writes the two answers at these tempos, in the place of their models."""
        side_of = {model.id: side for side, model in self.models.items()}

        async def write(model: Model, _messages: Sequence[Message]) -> AsyncGenerator[Chunk]:
            side = side_of[model.id]
            asked = time.monotonic()
            for piece in written(self.texts[side], tempos[side]):
                await asyncio.sleep(asked + piece.at_s - time.monotonic())
                yield TextDelta(piece.text)
            yield Finished(finish_reason="stop")

        return write

    @property
    def draw(self) -> Draw:
        """The pair as one that was drawn: no other could have been."""
        return Draw(self.models[Side.A], self.models[Side.B], 1.0, self.side_seed)


def written(text: str, tempo: Tempo) -> Iterator[Piece]:
    """Cut an answer into pieces that come at a tempo.

    >>> [piece.at_s for piece in written("abcde", Tempo(2.0, 20.0))]
    [2.0, 2.1, 2.15]
    """
    for piece in paced(text, tempo.characters_per_s, PIECE_S):
        yield Piece(round(tempo.first_s + max(0.0, piece.at_s - PIECE_S), 6), piece.text)


class GoldPairs:
    """The gold pairs of an arena, and how many of its battles were made of them.

    Parameters
    ----------
    share : float
        Of the battles that begin here, at most this share are gold battles.
    rng : random.Random
        Draws what is offered, which pair is played, and its sides.
    """

    def __init__(
        self, pairs: Iterable[GoldPair] = (), share: float = 0.0, rng: Random | None = None
    ) -> None:
        self._share = share
        self._rng = rng or Random()  # noqa: S311 - of an arena without pairs
        self._pairs: dict[str, list[GoldPair]] = defaultdict(list)
        for pair in pairs:
            self._pairs[_key(pair.prompt)].append(pair)
        prompts = [pairs[0].prompt for pairs in self._pairs.values()] if share > 0 else []
        self._offers = Offers(prompts, OFFERED, self._rng)
        self._turn = threading.Lock()
        self._begun = self._played = 0

    @property
    def models(self) -> tuple[Model, ...]:
        """Those who gave the answers, for the log: none of them is ever drawn."""
        of_all = (_models(pair) for pairs in self._pairs.values() for pair in pairs)
        return tuple({model.id: model for both in of_all for model in both}.values())

    def offered(self) -> tuple[str, ...]:
        """Give prompts to try, other ones every minute."""
        return self._offers.now()

    def untouched(self, prompt: str) -> str | None:
        """Give the prompt of a gold pair as it stands in the file; None of any other."""
        pairs = self._pairs.get(_key(prompt))
        return pairs[0].prompt if pairs else None

    def take(self, prompt: str, *, wanted: bool) -> _GoldBattle | None:
        """Count a battle that begins; give a gold one for its prompt if that is its turn."""
        with self._turn:
            self._begun += 1
            if not wanted or self._played + 1 > self._share * self._begun:
                return None
            self._played += 1
            pair, seed = self._rng.choice(self._pairs[_key(prompt)]), self._rng.getrandbits(31)
        return _on_sides(pair, sides(_models(pair), seed), seed)

    def again(self, prompt: str, owners: Mapping[Side, str]) -> _GoldBattle | None:
        """Give a battle that has begun, by who answers on its sides; None if it is not here."""
        for pair in self._pairs.get(_key(prompt), ()):
            known = {model.id: model for model in _models(pair)}
            if {*owners.values()} == {*known}:
                return _on_sides(pair, (known[owners[Side.A]], known[owners[Side.B]]), 0)
        return None


def is_owner(model_id: str) -> bool:
    """Return whether an id is that of the author of gold pairs."""
    return model_id.startswith(OWNER)


def _key(prompt: str) -> str:
    """Give a prompt as it is compared: as the log has it, without spaces at its ends."""
    return storable(prompt).strip()


def _models(pair: GoldPair) -> tuple[Model, Model]:
    """Make entries of those who answered; one who gave both answers has two ids."""
    a, b = pair.models
    return _owner(a, a), _owner(f"{b} (2)" if a == b else b, b)


def _owner(key: str, name: str) -> Model:
    return Model(id=f"{OWNER}{key}", name=name, endpoint="recorded://gold", model=name)


def _on_sides(pair: GoldPair, both: tuple[Model, Model], seed: int) -> _GoldBattle:
    first = _models(pair)[0].id
    as_in_file = both[0].id == first
    choice = Choice(pair.right if as_in_file else pair.right.swapped())
    a, b = pair.responses if as_in_file else pair.responses[::-1]
    return _GoldBattle(
        prompt=pair.prompt,
        models={Side.A: both[0], Side.B: both[1]},
        texts={Side.A: a, Side.B: b},
        prompt_set=set_of(choice),
        side_seed=seed,
    )


# Instructions that can be checked

INSTRUCTIONS_OFFERED = 2
"""Prompts with instructions among those to try."""


class Instructed:
    """The tasks of an arena, by their prompts.

    Parameters
    ----------
    rng : random.Random
        Draws what is offered.
    """

    def __init__(self, tasks: Iterable[Task] = (), rng: Random | None = None) -> None:
        self._tasks = {_instructions_key(task.prompt): task for task in tasks}
        prompts = [task.prompt for task in self._tasks.values()]
        self._offers = Offers(prompts, INSTRUCTIONS_OFFERED, rng or Random())  # noqa: S311 - of none

    def offered(self) -> tuple[str, ...]:
        """Give prompts to try, other ones every minute."""
        return self._offers.now()

    def untouched(self, prompt: str) -> str | None:
        """Give the prompt of a task as it stands in the file; None of any other."""
        task = self._tasks.get(_instructions_key(prompt))
        return task.prompt if task else None

    def check(self, prompt: str, text_a: str | None, text_b: str | None) -> tuple[Followed, ...]:
        """Return which instructions of a prompt two answers follow, strictly.

        Parameters
        ----------
        text_a, text_b : str or None
            None of an answer that is not whole: what it would have followed is not known.
        """
        task = self._tasks.get(_instructions_key(prompt))
        if task is None:
            return ()
        unknown = (None,) * len(task.instructions)
        a, b = (unknown if text is None else check(task, text).strict for text in (text_a, text_b))
        ids = (one.id for one in task.instructions)
        return tuple(Followed(*one) for one in zip(ids, a, b, strict=True))


def _instructions_key(prompt: str) -> str:
    """Give a prompt as it is compared: white space is equivalent to any other."""
    return " ".join(storable(prompt).split())
