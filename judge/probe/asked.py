"""The card of a judge: votes matched to cases, what to ask it, and the card of its answers."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from judge.case import Case, CaseId
from judge.probe.axes import Cards
from judge.probe.people import VotedPairs
from judge.probe.trials import JudgePlan, judge_card
from judge.protocol import conversation
from judge.tables.annotations import Annotations, read_annotations
from judge.tables.cases import NamedCase, Source
from judge.verdict import Run
from rating.errors import DataError
from rating.tables.files import Files
from rating.tables.vote_filter import SKIP

ITEM, BATTLE = "item_id", "battle_id"
"""Columns that say which case a vote is on: the item, where both files have it."""
MODELS = ("model_a", "model_b")

Vote = tuple[NamedCase, float]
"""A case, and 1 for its side A, -1 for side B, 0 for neither."""


def voted_pairs(
    named: Sequence[NamedCase], sources: Sequence[Source], file: Source | None
) -> VotedPairs:
    """Put votes to the pairs that they are on.

    Pairs of equal content are one, whichever side stands first; a pair without any vote is left
    out, one with ties alone is not.

    Parameters
    ----------
    named : sequence of NamedCase
        As read from ``sources``.
    sources : sequence of path, or of Files
        What the cases were read from.
    file : path, Files or None
        A vote a row: ``winner``, ``item_id`` (if the cases have it, too) or ``battle_id``, and
        ``model_a`` and ``model_b`` where sides may be exchanged. None for votes in the column
        ``winner`` of the one file of cases. A row that is skipped, has no winner, or has a reason
        in ``left_out`` is none.

    Raises
    ------
    DataError
        If votes cannot be read, are not on the cases, or there are none.
    """
    if file is None and len(sources) != 1:
        msg = f"Cases of {len(sources)} files have no votes beside them: name theirs with --votes."
        raise DataError(msg)
    votes = _own(named, sources[0]) if file is None else _matched(named, sources, file)
    cases, counts = _counted(votes)
    where = str(sources[0] if file is None else file)
    if not cases:
        raise DataError(f"No vote in {where!r} counts and is on one of the {len(named):,} cases.")
    place = {prompt: i for i, prompt in enumerate(dict.fromkeys(case.prompt for case in cases))}
    return VotedPairs(
        Path(where).name,
        tuple(conversation(case) for case in cases),
        tuple(case.response_a for case in cases),
        tuple(case.response_b or "" for case in cases),
        np.array([place[case.prompt] for case in cases], dtype=np.int64),
        np.array(counts, dtype=np.float64),
    )


def some_of(voted: VotedPairs, rows: Sequence[int]) -> VotedPairs:
    """Return some of the pairs, their prompts numbered anew."""
    _, prompt = np.unique(voted.prompt[list(rows)], return_inverse=True)
    return VotedPairs(
        voted.name,
        tuple(voted.prompts[i] for i in rows),
        tuple(voted.responses_a[i] for i in rows),
        tuple(voted.responses_b[i] for i in rows),
        prompt.astype(np.int64),
        voted.votes[list(rows)],
    )


def _own(named: Sequence[NamedCase], source: Source) -> Iterator[Vote]:
    """Read the votes that stand beside the cases."""
    if not _is_file(source):
        msg = f"Votes on the cases of {str(source)!r} are not known: name their file with --votes."
        raise DataError(msg)
    for row, label in _labels(read_annotations(source, "cases")):
        yield named[row], label


def _matched(
    named: Sequence[NamedCase], sources: Sequence[Source], file: Source
) -> Iterator[Vote]:
    table = read_annotations(file, "votes", peers=True)
    by_item = _items(sources) if table.has(ITEM) else None
    items = table.texts(BATTLE if by_item is None else ITEM)
    names = [one.battle_id for one in named] if by_item is None else by_item
    known = dict(zip(names, named, strict=True))
    sides = [table.texts(name) for name in MODELS] if table.has(*MODELS) else None
    for row, label in _labels(table):
        case = known.get(items[row])
        if case is not None:
            models = None if sides is None else (sides[0][row], sides[1][row])
            yield case, label * _facing(table, row, case, models)


def _items(sources: Sequence[Source]) -> list[str] | None:
    """Read the items of one file of cases; None where it names none."""
    if len(sources) != 1 or not _is_file(sources[0]):
        return None
    table = read_annotations(sources[0], "cases")
    return table.texts(ITEM) if table.has(ITEM) else None


def _is_file(source: Source) -> bool:
    files = Files.of(source)
    return files is not None and Path(files.paths[0]).is_file()


def _facing(table: Annotations, row: int, named: NamedCase, models: tuple[str, str] | None) -> int:
    """Return 1 for a vote whose sides are those of the case, -1 where they are exchanged."""
    own = (named.model_a, named.model_b)
    if models in (None, own):
        return 1
    if models == own[::-1]:
        return -1
    raise table.wrong(MODELS[0], row + 1, models, f"the models of the case, {own}")


def _labels(table: Annotations) -> Iterator[tuple[int, float]]:
    """Yield the rows that are votes: 1 for side A, -1 for side B, 0 for a tie."""
    winner = table.need("winner")
    left_out = table.need("left_out") if table.has("left_out") else [None] * table.n
    for row, (value, reason) in enumerate(zip(winner, left_out, strict=True)):
        counts = reason is None or not str(reason).strip()
        if counts and value != SKIP:
            label = table.label(row, value)
            if not math.isnan(label):
                yield row, label


def _counted(votes: Iterable[Vote]) -> tuple[list[Case], list[list[int]]]:
    """Return each pair that has votes, and how many are for its side A and for its side B."""
    cases: dict[CaseId, Case] = {}
    counts: dict[CaseId, list[int]] = {}
    for named, label in votes:
        turned = named.case.swapped().id in cases
        case = named.case.swapped() if turned else named.case
        cases.setdefault(case.id, case)
        count = counts.setdefault(case.id, [0, 0])
        if label:
            count[(label < 0) != turned] += 1
    return [*cases.values()], [*counts.values()]


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
        sources: Sequence[Source],
        votes: Source | None,
        *,
        sample: int,
        seed: int,
    ) -> Self:
        """Plan what to ask about pairs with votes, or about some of them, drawn.

        Parameters
        ----------
        named, sources, votes
            As `judge.probe.asked.voted_pairs` takes them.
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
        files = [*sources, *([] if votes is None else [votes])]
        about = {
            "files": [Path(str(file)).name for file in files],
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


def probe_asked(asking: Asking, run: Run, *, judge: str, method: str) -> Cards:
    """Make the card of a run over the questions."""
    plan = asking.plan
    definition = f"asked by the method {method}"
    card = judge_card(judge, definition, plan, plan.probabilities(run.judged), seed=asking.seed)
    return Cards(asking.about | {"judge": judge, "method": method}, (card,))
