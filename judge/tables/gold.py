"""Gold pairs from files: a prompt, two recorded answers, and which of them is right."""

from collections import Counter
from dataclasses import dataclass

from judge.tables.annotations import Annotations, read_annotations
from judge.tables.cases import NamedCase, Source, pairs_of
from rating.errors import DataError
from rating.outcome import Outcome
from rating.tables.columns import quoted_names

RIGHT = ("gold", "label")
"""Columns of what is right: ours, and that of JudgeBench."""
OF_BOTH = "response_model"
"""JudgeBench's column of the one model that wrote both answers."""
OUTCOMES = {1.0: Outcome.A, 0.0: Outcome.TIE, -1.0: Outcome.B}


@dataclass(frozen=True, slots=True)
class GoldPair:
    """Two recorded answers to a prompt, and the vote on them that is right."""

    prompt: str
    model_a: str
    model_b: str
    response_a: str
    response_b: str
    right: Outcome


@dataclass(frozen=True, slots=True)
class GoldPairs:
    """The pairs of a file, each once, and how many of its rows were left out, by reason."""

    pairs: tuple[GoldPair, ...]
    left_out: dict[str, int]


def read_gold(source: Source) -> GoldPairs:
    """Read gold pairs: JSON, JSON lines, CSV or Parquet.

    Parameters
    ----------
    source : path or Files
        A pair a row: ``prompt``, ``response_a``, ``response_b``, ``gold`` (``A>B`` or ``B>A``,
        ``1`` or ``2``, or a winner), and ``model_a``, ``model_b`` where known; or JudgeBench's
        rows, with ``label`` and ``response_model``.

    Raises
    ------
    DataError
        If it cannot be read as that, or no pair has a right answer.
    """
    table = read_annotations(source, "gold pairs")
    column = next((name for name in RIGHT if table.has(name)), None)
    if column is None:
        there = quoted_names(list(table.columns))
        msg = (
            f"There is no column 'gold' in {table.source!r}, which would say what answer is "
            f"right; there are {there}."
        )
        raise DataError(msg)
    left_out: Counter[str] = Counter()
    pairs: dict[tuple[str, frozenset[str]], GoldPair] = {}
    for row, (named, both) in enumerate(zip(pairs_of(table), _of_both(table), strict=True)):
        right = OUTCOMES.get(table.right_side(column, row))
        pair = _pair(named, both, right)
        if right is None:
            left_out["no right answer"] += 1
        elif pair is None:
            left_out["several turns, or an empty answer"] += 1
        elif pairs.setdefault(_key(pair), pair) is not pair:
            left_out["the same prompt and models again"] += 1
    if not pairs:
        msg = f"No pair of one turn in {table.source!r} has a right answer in {column!r}."
        raise DataError(msg)
    return GoldPairs(tuple(pairs.values()), dict(left_out))


def _of_both(table: Annotations) -> list[str | None]:
    return [*table.texts(OF_BOTH)] if table.has(OF_BOTH) else [None] * table.n


def _pair(named: NamedCase, both: str | None, right: Outcome | None) -> GoldPair | None:
    case = named.case
    texts = (case.response_a, case.response_b or "")
    if right is None or len(case.prompt) > 1 or case.earlier_a or not all(map(str.strip, texts)):
        return None
    names = (both or named.model_a, both or named.model_b or "response_b")
    return GoldPair(case.prompt[0].content, *names, *texts, right)


def _key(pair: GoldPair) -> tuple[str, frozenset[str]]:
    return pair.prompt, frozenset((pair.model_a, pair.model_b))
