"""Rankings from tables: a row a ranking, as in ``a > b = c``."""

from collections.abc import Sequence
from functools import partial

from rating.errors import DataError
from rating.rankings import Rankings
from rating.tables.coding import ROW, Table, fetch, numbered
from rating.tables.columns import LEFT_OUT, Columns, require
from rating.tables.files import json_or_text
from rating.tables.peers import RANKED
from rating.tables.sources import opened

COLUMN = "ranking"
BETTER, EVEN = " > ", " = "
MARKS = {">", "<", "="}
"""No name begins or ends with one."""


def read_rankings(source: object, columns: Columns = Columns()) -> Rankings:  # noqa: B008
    """Read the rankings of files or a table: a row each, and who made it where that is known.

    The column ``ranking`` holds them as in ``a > b = c``, or as lists of lists in JSON; rows
    without one are left out, and of a study's export second showings and those not of its items.

    Raises
    ------
    DataError
        If there is no such column, or a ranking cannot be read.
    """
    with opened(source, partial(_wanted, columns)) as rows_there:
        there = rows_there.columns
        texts = {"ranking": require(COLUMN, there)}
        texts |= {LEFT_OUT: LEFT_OUT} if LEFT_OUT in there else {}
        if (voter := columns.find("voter", there)) is not None:
            texts["voter"] = voter
        table = fetch(numbered(rows_there), texts, {"row": ROW})
    ranking, voters = table.texts["ranking"], table.texts.get("voter")
    counts = _counts(table)
    rows = [
        i
        for i, code in enumerate(ranking.codes)
        if counts[i] and code >= 0 and ranking.names[code].strip()
    ]
    if not rows:
        raise DataError(f"No row of {str(source)!r} has a {COLUMN}.")
    read = [parsed(text) if text.strip() else [] for text in ranking.names]
    named = [read[ranking.codes[i]] for i in rows]
    if voters is None:
        return Rankings.of(named)
    if blank := sum(voters.codes[i] < 0 for i in rows):
        raise DataError(
            f"{blank} of {len(rows)} rankings of {str(source)!r} do not say who made them: name "
            "the voter in each row, or leave the column out."
        )
    return Rankings.of(named, [voters.names[voters.codes[i]] for i in rows])


def _counts(table: Table) -> list[bool]:
    """Tell which rows are not left out but for being rankings, as those of a study are."""
    column = table.texts.get(LEFT_OUT)
    if column is None:
        return [True] * len(table.texts["ranking"].codes)
    known = [reason == RANKED or not reason for reason in column.names]
    return [code < 0 or known[code] for code in column.codes]


def _wanted(columns: Columns, there: Sequence[str]) -> list[str]:
    voter = columns.find("voter", there)
    also = [] if voter is None else [voter]
    return [require(COLUMN, there), *also, *([LEFT_OUT] if LEFT_OUT in there else [])]


def _are_names(place: object) -> bool:
    return isinstance(place, list) and bool(place) and all(isinstance(x, str) and x for x in place)


def parsed(text: str) -> list[list[str]]:
    """Read one ranking, in words or as a list of lists in JSON.

    Raises
    ------
    DataError
        If a name is empty, or in words begins or ends with one of `MARKS`.

    Examples
    --------
    >>> parsed("gpt-4 > claude-1 = llama-13b")
    [['gpt-4'], ['claude-1', 'llama-13b']]
    >>> parsed('[["gpt-4"], ["claude-1"]]')
    [['gpt-4'], ['claude-1']]
    """
    if isinstance(places := json_or_text(text), list):
        if not all(_are_names(place) for place in places):
            raise DataError(f"Cannot read the ranking {text!r}: give a list of lists of names.")
        return places
    ranking = [[name.strip() for name in place.split(EVEN)] for place in text.split(BETTER)]
    if any(not name or {name[0], name[-1]} & MARKS for place in ranking for name in place):
        raise DataError(
            f"Cannot read the ranking {text!r}: write the models from the best on, parted by "
            "' > ', and by ' = ' where they are even."
        )
    return ranking
