"""`arena mix`."""

from dataclasses import replace
from typing import Annotated, Literal

from cyclopts import Parameter

from arena.commands.arguments import (
    EVERY_ROW,
    Chosen,
    File,
    Flat,
    Shares,
    TaggerName,
    require_folder_of,
)
from arena.commands.rating import Options, write_board
from arena.terminal import working
from rating.errors import DataError
from rating.tables import formats

TAKEN = "^(options|both_bad|cluster|half_life|since|until|columns|seed|level|scale|mean|anchor)$"
"""What of a rating's options a mix takes."""

DEFAULTS = Options()


def mix(
    source: list[str],
    /,
    *,
    given: Shares = (),
    by: str = "category",
    kappa: tuple[float, ...] = (),
    weights: Literal["pool", "mix"] = "pool",
    options: Annotated[Options, Flat, Parameter(parse=TAKEN)] = DEFAULTS,
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    tagger: TaggerName = None,
    form: Annotated[str | None, Parameter(name="--format", choices=formats.FORMATS)] = None,
    out: File = None,
) -> None:
    """Rate the models on your own mix of prompts, and say how far ranks hang on the mix.

    Exit codes: 2 for options, prompts or votes that cannot be used, 3 for votes that identify no
    rating.

    Parameters
    ----------
    source
        A file of your own prompts, and then files, folders or patterns of votes with a column of
        their category; with --mix votes alone. Prompts have that column too, or are labelled by
        rules here: a text of a prompt a line, or a table with a column prompt.
    given
        Shares of categories, instead of prompts, such as coding=.5,writing=.5; of any sum.
    by
        Column of the category, in votes and prompts.
    kappa
        Say which ranks a model reaches where no category has more than so many times its share of
        the votes. Again for more; 1.5, 2 and 8 by default.
    weights
        Rate by strengths of pooled categories, or by votes weighed to the mix.
    form
        How to write it: as the file's ending says, by default.
    out
        File to write.

    Examples
    --------
    arena mix prompts.csv votes.parquet
    arena mix votes.parquet --mix coding=.5,writing=.5 --format json
    """
    form = formats.chosen_format(form, out)
    if out is not None:
        require_folder_of(out)
    if not given and len(source) < 2:
        msg = "Name a file of your own prompts before the votes, or say --mix CATEGORY=SHARE,..."
        raise DataError(msg)
    from judge.labels.files import mix_of  # numpy takes a quarter of a second
    from rating.pooling.mix import KAPPAS, Mix
    from rating.tables.mixes import rate_mix_of

    options = replace(options, by=by, pool=True)
    with working("Rating"):
        own = Mix.of_shares(dict(given)) if given else mix_of(source[0], by)
        votes = chosen.source(source if given else source[1:], options.columns, tagger)
        board = rate_mix_of(
            votes, own, options, kappas=kappa or KAPPAS, reweighted=weights == "mix"
        )
    write_board(board.to_dict(), form, out)
