"""One's own prompts as a mix of categories, and the board of a source of votes on it."""

from collections.abc import Sequence
from functools import partial

from rating.errors import DataError
from rating.options import RateOptions
from rating.pooling.mix import KAPPAS, Mix, MixBoard, rate_mix
from rating.tables.coding import coded, count_alike
from rating.tables.columns import N, Reading, require
from rating.tables.counts import read_groups
from rating.tables.sources import opened


def read_mix(source: object, column: str) -> Mix:
    """Count one's own prompts by category.

    Parameters
    ----------
    source : path, sequence of paths, Files or table
        A prompt a row; as `rating.read_votes` takes it.
    column : str
        That of the category.

    Raises
    ------
    DataError
        If the source cannot be read, lacks the column, or a prompt has no category.
    """
    with opened(source, partial(_wanted, column), holds="prompts", as_peers=False) as frame:
        _wanted(column, frame.collect_schema().names())
        rows = count_alike(frame.lazy(), [column]).collect()
        categories, n = coded(rows[column]), rows[N].to_list()
    counts: dict[str, int] = {}
    for code, times in zip(categories.codes.tolist(), n, strict=True):
        name = categories.names[code].strip() if code >= 0 else ""
        if not name:
            raise DataError(f"{times:,} prompts have no {column}: leave them out, or name it.")
        counts[categories.names[code]] = counts.get(categories.names[code], 0) + int(times)
    return Mix.of_counts(counts)


def _wanted(column: str, there: Sequence[str]) -> list[str]:
    return [require(column, there)]


def rate_mix_of(
    source: object,
    mix: Mix,
    options: RateOptions,
    *,
    kappas: Sequence[float] = KAPPAS,
    reweighted: bool = False,
) -> MixBoard:
    """Rate the models of a source of votes on one's own mix: see `rating.rate_mix`.

    Raises
    ------
    DataError, NotIdentifiedError, ConvergenceError
        As `rating.rate_mix`, and if the votes cannot be read.
    """
    groups = read_groups(source, Reading.of(options))
    return rate_mix(groups, mix, options, kappas=kappas, reweighted=reweighted)
