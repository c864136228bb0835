"""`arena gate`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from arena.commands.arguments import (
    AS_IT_IS,
    File,
    Flat,
    PolicyName,
    Renamed,
    or_samples,
    policy_named,
)
from arena.terminal import plain, show, warnings, working, write
from rating.errors import DataError
from rating.uncertainty.gate import GateOptions

if TYPE_CHECKING:
    from judge.studies.gating import Verdicts
    from rating.tables.files import Files
    from rating.tables.log import LoggedVotes
    from rating.uncertainty.gate import Gate

EXITS: Mapping[bool | None, int] = {True: 0, False: 1, None: 3}
STYLES: Mapping[bool | None, str] = {True: "bold green", False: "bold red", None: "bold yellow"}


def gate(
    votes: str,
    verdicts: str | None = None,
    /,
    *,
    options: Annotated[GateOptions, Flat],
    judge: str | None = None,
    licence: File = None,
    policy: PolicyName = None,
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    form: Annotated[Literal["table", "json", "md", "junit"], Parameter(name="--format")] = "table",
    out: Annotated[Path | None, Parameter(metavar="DIR")] = None,
) -> None:
    """Test whether a candidate is better than an incumbent, not worse, or worse: a release gate.

    At most 5% of all gates ever give a wrong answer, at as many looks as --looks allows; --looks 1
    is the most powerful. Nothing is kept between runs. Exit codes: 0 what is required is shown, 1
    it is ruled out, 2 for options or files that cannot be used, 3 inconclusive.

    Parameters
    ----------
    votes
        Votes of people: a file, folder or pattern, or the URL of the arena's database.
    verdicts
        Verdicts of a judge on the same items and on more, which make the answer more precise: a
        file, folder or pattern.
    judge
        Whose verdicts, where the file holds those of several judges.
    licence
        What arena study judge --licence wrote: under it the judge answers alone where people
        have not voted yet, and the answer says so.
    form
        How to print it: for people, for programs, for a pull request, or for a server that runs
        tests.
    out
        Folder for all of these: gate.json, gate.md and gate.xml.

    Examples
    --------
    arena gate --candidate umber --incumbent basalt --margin 20 votes.csv
    arena gate --candidate umber --incumbent basalt --margin 20 votes.csv verdicts.csv --out gate
    arena gate --candidate umber --incumbent basalt --margin 20 --require better votes.csv
    arena gate --candidate umber --incumbent basalt --margin 20 --looks 5 --planned 4000 votes.csv
    """
    from datetime import UTC, datetime

    from judge.studies.gating import ask
    from rating.tables.formats import gate_texts, make_folder, write_text

    with working("Asking"):
        source, given = _sources(votes, verdicts, policy, chosen)
        beside = _verdicts(given, judge, licence)
        result = ask(source, options, beside, today=datetime.now(UTC).date())
    texts = gate_texts(result)
    if out is not None:
        make_folder(out)
        for ending, text in texts.items():
            write_text(text, out / f"gate.{ending}")
    if form == "table":
        _show(result)
    else:
        write(texts["xml" if form == "junit" else form])
    sys.exit(EXITS[result.passes])


def _sources(
    votes: str, verdicts: str | None, policy: str | None, chosen: Renamed
) -> "tuple[Files | LoggedVotes, Files | None]":
    from arena.boards.source import votes_of  # help would wait for duckdb
    from rating.tables.sources import shared

    is_file = "://" not in votes
    if is_file and policy is not None:
        msg = f"--policy {policy!r} is of a database's log, and {votes!r} is none: use --where."
        raise DataError(msg)
    people = [chosen.votes(or_samples(votes))] if is_file else []
    judged = [] if verdicts is None else [chosen.votes(verdicts)]
    files = shared([*people, *judged])
    read = files[0] if people else votes_of(votes, policy=policy_named(policy))
    return read, files[-1] if judged else None


def _verdicts(given: "Files | None", judge: str | None, licence: Path | None) -> "Verdicts | None":
    from judge.studies.gating import Verdicts
    from judge.studies.licence import read_licence

    if given is None:
        for name, value in (("judge", judge), ("licence", licence)):
            if value is not None:
                msg = f"--{name} {str(value)!r} is of verdicts: give their file after the votes."
                raise DataError(msg)
        return None
    known = None if licence is None else read_licence(licence)
    return Verdicts(source=given, judge=judge, licence=known)


def _show(result: "Gate") -> None:
    first, *more = result.sentences
    show(plain(first, style=STYLES[result.passes]))
    show(*map(plain, (*more, f"It rests on {result.rests_on}.")), *warnings(result.warnings))
