"""One's own prompts as a mix of categories, and the board of a source of votes on it."""

from collections.abc import Sequence

from rating.errors import DataError
from rating.options import RateOptions
from rating.pooling.mix import KAPPAS, Mix, MixBoard, rate_mix
from rating.tables.coding import as_name
from rating.tables.columns import Reading, require
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

    def wanted(there: Sequence[str]) -> list[str]:
        return [require(column, there)]

    with opened(source, wanted, holds="prompts", as_peers=False) as rows:
        name = as_name(rows, *wanted(rows.columns))
        counts = dict(rows.aggregate(f"{name}, count(*)", name).order("1").fetchall())
    if unnamed := sum(n for name, n in counts.items() if not (name and name.strip())):
        raise DataError(f"{unnamed:,} prompts have no {column}: leave them out, or name it.")
    return Mix.of_counts(counts)


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
