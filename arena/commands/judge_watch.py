"""`arena judge watch`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from arena.commands.arguments import AS_IT_IS, File, Flat, Renamed, TableOrJson, require_folder_of
from arena.terminal import plain, say, show, table, warnings, working, write_json
from rating.errors import DataError

if TYPE_CHECKING:
    from judge.studies.watch import Next, Watched

EXITS = {"valid": 0, "revoked": 1, "cannot_say": 3}


def watch(
    licence: Path,
    votes: str,
    verdicts: str,
    /,
    *,
    cases: Annotated[str | None, Parameter(name="--from", metavar="CASES")] = None,
    asked: Annotated[int | None, Parameter(name="--next", metavar="N")] = None,
    seed: int = 0,
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    form: TableOrJson = "table",
    out: File = None,
) -> None:
    """Say whether a judge's licence still holds, from new votes of people beside its verdicts.

    The licence is revoked where agreement has fallen beyond a bound that allows for a look after
    every vote: an unchanged judge loses it in at most 5 % of years, a year being the votes that
    the licence declares. Nothing is kept between runs: add votes to the file, and run it again.
    Exit codes: 0 the licence is valid, 1 it is revoked, 2 for options or files that cannot be
    used, 3 it cannot be said, as with few votes or an expired licence.

    Parameters
    ----------
    licence
        What arena study judge --licence wrote.
    votes
        New votes of people, in the order in which they were cast: a file, folder or pattern, or
        the URL of the arena's database.
    verdicts
        Verdicts of the judge on the same items. One whose judge, method, template or model is
        not the licence's is named and not counted.
    cases
        Verdicts on cases without votes, from which to choose. A column vote_cost says what one
        vote costs in dollars.
    asked
        How many cases to ask people about next, by worth per dollar.
    seed
        Of the cases that are drawn.
    form
        How to write it.
    out
        CSV file for these cases.

    Examples
    --------
    arena judge watch judge.toml new-votes.csv new-verdicts.csv
    arena judge watch judge.toml new-votes.csv new-verdicts.csv --next 50 --from cases.csv
    """
    _check(cases, asked, out)
    from dataclasses import replace
    from datetime import UTC, datetime

    import numpy as np

    from arena.boards.source import votes_of  # help would wait for duckdb
    from judge.studies.licence import read_licence
    from judge.studies.watch import choose
    from judge.studies.watch import watch as watched
    from rating.tables.formats import as_csv, write_text
    from rating.tables.sources import shared

    known = read_licence(licence)
    with working("Watching"):
        people = [] if "://" in votes else [chosen.votes(votes)]
        *cast, given = shared([*people, chosen.votes(verdicts)])
        source = cast[0] if cast else votes_of(votes)
        result = watched(known, source, given, datetime.now(UTC).date())
        if cases is not None and asked is not None:
            rng = np.random.default_rng(seed)
            drawn, left_out = choose(known, source, chosen.votes(cases), asked, rng)
            texts = (*result.warnings, *(f"{cases}: {text}" for text in left_out))
            result = replace(result, asked=drawn, warnings=texts)
    if out is not None:
        write_text(as_csv([case.to_dict() for case in result.asked]), out)
    if form == "json":
        write_json(result.to_dict())
    else:
        _show(result, out)
    sys.exit(EXITS[result.status])


def _check(cases: str | None, asked: int | None, out: Path | None) -> None:
    if (cases is None) != (asked is None):
        given = f"--next {asked}" if cases is None else f"--from {cases}"
        msg = f"{given} stands alone: give both --next and --from, or neither."
        raise DataError(msg)
    if out is not None:
        if cases is None:
            msg = f"--out {str(out)!r} is for the cases of --next: give both, or neither."
            raise DataError(msg)
        require_folder_of(out)


def _show(result: "Watched", out: Path | None) -> None:
    show(plain(f"{result.judge}: {result.why}", style="bold"))
    show(*warnings((*result.not_counted, *result.warnings)))
    if result.asked:
        rows = [_cells(case) for case in result.asked]
        unit = "vote" if result.asked[0].vote_cost is None else "dollar"
        head = ("Row", "Prompt", "Battle", "Model A", "Model B", f"Worth a {unit}")
        show(plain("Ask people about these next:"), table(head, rows, right=(0, 5)))
    if out is not None:
        say(f"The cases are {out}.")


def _cells(case: "Next") -> tuple[str, ...]:
    names = (case.prompt or "", case.battle or "", case.model_a, case.model_b)
    return (f"{case.row}", *names, f"{case.worth:.2f}")
