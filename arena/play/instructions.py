"""Prompts whose instructions can be checked: which are offered, and whether answers follow."""

from collections.abc import Iterable
from random import Random

from arena.domain.instructions import Followed
from arena.play.offers import Offers
from judge.ifeval import Task, check
from rating.tables.escaping import storable

OFFERED = 2
"""Prompts with instructions among those to try."""


class Instructed:
    """The tasks of an arena, by their prompts.

    Parameters
    ----------
    rng : random.Random
        Draws what is offered.
    """

    def __init__(self, tasks: Iterable[Task] = (), rng: Random | None = None) -> None:
        self._tasks = {_key(task.prompt): task for task in tasks}
        prompts = [task.prompt for task in self._tasks.values()]
        self._offers = Offers(prompts, OFFERED, rng or Random())  # noqa: S311 - of none

    def offered(self) -> tuple[str, ...]:
        """Give prompts to try, other ones every minute."""
        return self._offers.now()

    def untouched(self, prompt: str) -> str | None:
        """Give the prompt of a task as it stands in the file; None of any other."""
        task = self._tasks.get(_key(prompt))
        return task.prompt if task else None

    def check(self, prompt: str, text_a: str | None, text_b: str | None) -> tuple[Followed, ...]:
        """Say which instructions of a prompt two answers follow, strictly.

        Parameters
        ----------
        text_a, text_b : str or None
            None of an answer that is not whole: what it would have followed is not known.
        """
        task = self._tasks.get(_key(prompt))
        if task is None:
            return ()
        unknown = (None,) * len(task.instructions)
        a, b = (unknown if text is None else check(task, text).strict for text in (text_a, text_b))
        ids = (one.id for one in task.instructions)
        return tuple(Followed(*one) for one in zip(ids, a, b, strict=True))


def _key(prompt: str) -> str:
    """Give a prompt as it is compared: white space is as good as any other."""
    return " ".join(storable(prompt).split())
