"""Rankings from tables: a row a ranking, as in ``a > b = c``."""

from collections.abc import Sequence

import numpy as np

from rating.errors import DataError
from rating.rankings import Rankings
from rating.tables.coding import ROW, fetch, kinds, numbered
from rating.tables.columns import LEFT_OUT, Columns, require
from rating.tables.files import json_or_text
from rating.tables.peers import RANKED
from rating.tables.sources import opened

COLUMN = "ranking"
BETTER, EVEN = " > ", " = "
MARKS = {">", "<", "="}
"""No name begins or ends with one."""


def read_rankings(source: object, columns: Columns = Columns()) -> Rankings:  # noqa: B008
    """Read rankings of files or a table: a row each, and who made it on what, if that is known.

    The column ``ranking`` holds them as `parsed` takes them, or lists of Parquet; rows without
    one are left out, and of a study's export second showings and those not of its items.

    Raises
    ------
    DataError
        If there is no such column, or a ranking cannot be read.
    """

    def texts(there: Sequence[str]) -> dict[str, str]:
        roles = {role: columns.find(role, there) for role in ("voter", "prompt")}
        optional = {**roles, LEFT_OUT: LEFT_OUT}
        known = {role: name for role, name in optional.items() if name and name in there}
        return {"ranking": require(COLUMN, there), **known}

    with opened(source, lambda there: [*texts(there).values()]) as rows_there:
        if kinds(rows_there)[COLUMN] == "list":
            rows_there = rows_there.project(
                f"* REPLACE (CAST(to_json({COLUMN}) AS VARCHAR) AS {COLUMN})"
            )
        table = fetch(numbered(rows_there), texts(rows_there.columns), {"row": ROW})
    ranking, voters = table.texts["ranking"], table.texts.get("voter")
    counts = ranking.codes >= 0
    if (reasons := table.texts.get(LEFT_OUT)) is not None:  # rows of a study are left out as ranks
        known = [reason == RANKED or not reason for reason in reasons.names]
        counts &= np.array([*known, True])[reasons.codes]
    rows = [i for i in np.flatnonzero(counts) if ranking.names[ranking.codes[i]].strip()]
    if not rows:
        raise DataError(f"No row of {str(source)!r} has a {COLUMN}.")
    read = [parsed(text) if text.strip() else [] for text in ranking.names]
    odd = sorted(name for places in read for place in places for name in place if ">" in name)
    if odd and (tight := [text for text in ranking.names if ">" in text and _is_tight(text)]):
        raise DataError(
            f"Cannot read the ranking {tight[0]!r}: a model is called {odd[0]!r}, so write ' > ' "
            "with spaces between the models."
        )
    named = [read[ranking.codes[i]] for i in rows]
    prompts = None
    if (asked := table.texts.get("prompt")) is not None:
        prompts = [asked.names[asked.codes[i]] if asked.codes[i] >= 0 else "" for i in rows]
    if voters is None:
        return Rankings.of(named, prompts=prompts)
    if blank := sum(voters.codes[i] < 0 for i in rows):
        raise DataError(
            f"{blank} of {len(rows)} rankings of {str(source)!r} do not say who made them: name "
            "the voter in each row, or leave the column out."
        )
    return Rankings.of(named, [voters.names[voters.codes[i]] for i in rows], prompts)


def parsed(text: str) -> list[list[str]]:
    """Read one ranking: in words, as a list of names, or as a list of lists where some are even.

    Marks without spaces part names where ``>`` is the only one.

    Raises
    ------
    DataError
        If a name is empty, or in words begins or ends with one of `MARKS`.

    Examples
    --------
    >>> parsed("gpt-4 > claude-1 = llama-13b")
    [['gpt-4'], ['claude-1', 'llama-13b']]
    >>> parsed("gpt-4>claude-1")
    [['gpt-4'], ['claude-1']]
    >>> parsed('["gpt-4", ["claude-1", "llama-13b"]]')
    [['gpt-4'], ['claude-1', 'llama-13b']]
    """
    if isinstance(value := json_or_text(text), list):
        places = [[place] if isinstance(place, str) else place for place in value]
        if not all(
            isinstance(place, list) and place and all(isinstance(x, str) and x for x in place)
            for place in places
        ):
            raise DataError(
                f"Cannot read the ranking {text!r}: give a list of names from the best on, such "
                'as ["x", "y", "z"], with a list in place of a name where some are even: '
                '["x", ["y", "z"]].'
            )
        return places
    marks = MARKS & {*text}
    better = ">" if _is_tight(text) and marks == {">"} else BETTER
    ranking = [[name.strip() for name in place.split(EVEN)] for place in text.split(better)]
    odd = any(not name or {name[0], name[-1]} & MARKS for place in ranking for name in place)
    if odd or (marks and _is_tight(text) and better == BETTER):
        raise DataError(
            f"Cannot read the ranking {text!r}: write the models from the best on, with ' > ' "
            "between them, and ' = ' between those that are even, as in 'x > y = z'."
        )
    return ranking


def _is_tight(text: str) -> bool:
    """Whether no mark has spaces around it."""
    return BETTER not in text and EVEN not in text
