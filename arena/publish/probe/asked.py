"""The card of a judge that is asked: what to ask it, and what its answers make."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from arena.publish.cases import NamedCase
from arena.publish.probe.voted import some_of, voted_pairs
from judge.judged import Run
from judge.probe.card import Card
from judge.probe.judged import JudgePlan, judge_card
from rating.errors import DataError


@dataclass(frozen=True, slots=True)
class Asking:
    """What a judge is asked for its card.

    Attributes
    ----------
    about : dict
        Files, pairs and votes, and what was drawn.
    """

    plan: JudgePlan
    about: dict[str, Any]
    seed: int

    @classmethod
    def of(
        cls,
        named: Sequence[NamedCase],
        sources: Sequence[str],
        votes: Path | None,
        *,
        sample: int,
        seed: int,
    ) -> Self:
        """Plan what to ask about pairs with votes, or about some of them, drawn.

        Parameters
        ----------
        named, sources, votes
            As `arena.publish.probe.voted.voted_pairs` takes them.
        sample : int
            Pairs, at most.

        Raises
        ------
        DataError
            If votes cannot be used, or fewer than two pairs have any.
        """
        if sample < 2:
            raise DataError(f"--sample {sample}: a judge's card needs two pairs or more.")
        voted, rng = voted_pairs(named, sources, votes), np.random.default_rng(seed)
        n = len(voted.prompts)
        drawn = some_of(voted, sorted(rng.permutation(n)[:sample].tolist()))
        files = [*sources, *([] if votes is None else [str(votes)])]
        about = {
            "files": [Path(file).name for file in files],
            "pairs": len(drawn.prompts),
            "of_pairs": n,
            "votes": int(drawn.votes.sum()),
            "sample": sample,
            "seed": seed,
        }
        data = f"{voted.name}, {len(drawn.prompts):,} of {n:,} pairs"
        return cls(JudgePlan.plan(drawn, data, rng=rng), about, seed)

    @property
    def cases(self) -> list[NamedCase]:
        """The questions, to be asked as given."""
        return [
            NamedCase(case.id[:16], case.prompt_id[:16], one.group, one.name or one.group, case)
            for one in self.plan.trials
            for case in [one.case]
        ]


@dataclass(frozen=True, slots=True)
class AskedProbe:
    """The card of a judge that was asked."""

    about: dict[str, Any]
    card: Card

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"about": self.about, "cards": [self.card.to_dict()]}


def probe_asked(asking: Asking, run: Run, *, judge: str, method: str) -> AskedProbe:
    """Make the card of what a run over the questions found."""
    plan = asking.plan
    definition = f"asked by the method {method}"
    card = judge_card(judge, definition, plan, plan.heard(run.judged), seed=asking.seed)
    return AskedProbe(asking.about | {"judge": judge, "method": method}, card)
