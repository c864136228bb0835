"""Columns of votes as integers, and what rows and columns of an unknown file hold.

`fetch` reads columns by role into a `Table` of integer codes. `layout_error` describes a file
without known columns and proposes options that read it. `LoggedVotes` are the votes of an arena's
log, as another source. `marked` finds rows that repeat an earlier one: these count once where an
id identifies the vote, and give a warning otherwise.
"""

import itertools
import operator
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import compress, permutations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from rating.comparisons import Parts
from rating.counting import count_packed, fits, narrowest, packed, unpacked
from rating.errors import DataError, LayoutError
from rating.outcome import OUTCOMES, Outcome, of_sides
from rating.sentences import plural
from rating.tables.columns import (
    JUDGES,
    KNOWN,
    LEFT_OUT,
    REQUIRED,
    SAMPLING,
    VOTERS,
    Columns,
    Reading,
    like_voters,
    words_of,
)
from rating.tables.files import SHOWN, all_quoted, json_or_text, literal, quoted, visible
from rating.typing import Bools, Floats, Integers, Ints

# Names as integers


Relation = duckdb.DuckDBPyRelation

ROW = "__row"
"""Column of a row's number; no table of votes has one of this name."""

BLANK = r"[\t-\r\x1c-\x20\x85\p{Z}]*"
"""What Python strips of a text, for duckdb."""

FEW = 10_000
"""Rows up to which names are coded in Python: to ask the engine to takes longer than to do it."""

GROUPED = {*REQUIRED, LEFT_OUT, "by"}
"""Roles of few names: rows that are alike in them are counted before they are read."""

MOMENTS = {
    "date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns",
    "timestamp with time zone",
}  # fmt: skip
NUMERIC = {
    "tinyint", "smallint", "integer", "bigint", "hugeint", "float", "double", "decimal",
    "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint",
}  # fmt: skip
NAMELESS = {*MOMENTS, "time", "time with time zone", "interval", "float", "double", "boolean"}
"""Types of SQL, as `kinds` gives them: of moments, of numbers, and those that no name has."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of names.

    Attributes
    ----------
    names : tuple of str
        In no order; a name may occur twice.
    codes : ndarray of int
        Position in ``names``; -1 where the value is missing.
    """

    names: tuple[str, ...]
    codes: Integers


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of votes as arrays: a row is a vote, or ``n`` votes that are alike.

    Attributes
    ----------
    texts : mapping of str to Coded
        By role: ``model_a``, ``model_b``, ``winner`` and what else was asked for.
    numbers : mapping of str to ndarray of float64
        By role; NaN where the value is missing.
    n : ndarray of int, or None
        Votes of each row; None for one each.
    first : callable
        Number of the first row of the source, from 1, that holds none or a blank in a role;
        None where the source has no order.
    parts : callable or None
        Where the rows count others that lie elsewhere, with one name or none in place of each
        voter: gives those by voter. Takes the models, the rows that count, and of each of these
        the models on side A and side B and the outcome.
    """

    texts: Mapping[str, Coded]
    numbers: Mapping[str, Floats]
    n: Integers | None
    first: Callable[[str], int | None]
    parts: Callable[[Sequence[str], Bools, Integers, Integers, Integers], Parts] | None = None


def coded_list(values: Iterable[str | None]) -> Coded:
    """Code a list of names, in the order in which they occur."""
    place: dict[str, int] = {}
    codes = [-1 if v is None else place.setdefault(v, len(place)) for v in values]
    return Coded(tuple(place), np.array(codes, dtype=np.int64))


def ranked(column: Coded, live: Bools) -> tuple[tuple[str, ...], Integers]:
    """Give the names that the live rows hold, sorted, and for each live row its position.

    >>> ranked(Coded(("y", "x", "z"), np.array([0, 1, 2])), np.array([True, True, False]))
    (('x', 'y'), array([1, 0], dtype=int8))
    """
    codes = column.codes if live.all() else column.codes[live]
    there = np.zeros(len(column.names), dtype=bool)
    there[codes] = True
    order = sorted(np.flatnonzero(there).tolist(), key=column.names.__getitem__)
    names = [column.names[code] for code in order]
    if order == [*range(len(column.names))] and all(map(operator.lt, names, names[1:])):
        return tuple(names), codes
    new = np.fromiter(map(operator.ne, names, [None, *names[:-1]]), dtype=bool, count=len(names))
    places = np.zeros(len(column.names), dtype=narrowest(len(names)))
    places[order] = np.cumsum(new) - 1
    return tuple(itertools.compress(names, new)), places[codes]


def compact(table: Table) -> Table:
    """Count the rows that are alike, unless numbers tell them apart."""
    columns = table.texts.values()
    sizes = [len(column.names) for column in columns]
    if table.numbers or table.n is not None or not fits(sizes):
        return table
    codes, n = count_packed(packed([column.codes for column in columns], sizes), sizes)
    texts = {
        role: Coded(column.names, code)
        for (role, column), code in zip(table.texts.items(), codes, strict=True)
    }
    return Table(texts, {}, n, table.first)


def kinds(rows: Relation) -> dict[str, str]:
    """Name the type of each column, in lower case and without what it consists of."""
    return {name: kind.id for name, kind in zip(rows.columns, rows.types, strict=True)}


def numbered(rows: Relation) -> Relation:
    """Give rows with their numbers, from 1, in the column `ROW`."""
    return rows.project(f"*, row_number() OVER () AS {ROW}")


def as_name(rows: Relation, name: str) -> str:
    """Give the expression of SQL for a column of names as text.

    Raises
    ------
    DataError
        If it is of a type whose values have more than one text.
    """
    kind = kinds(rows)[name]
    if kind in NAMELESS:
        msg = f"Column {name!r} is of {kind.upper()}; make text or whole numbers of its values."
        raise DataError(msg)
    return f"CAST({quoted(name)} AS VARCHAR)"


def fetch(rows: Relation, texts: Mapping[str, str], numbers: Mapping[str, str]) -> Table:
    """Read columns by role: rows in their order, or counted where no number tells them apart.

    Parameters
    ----------
    texts, numbers : mapping of str to str
        From a role to the name of its column; the role ``n`` counts the votes of a row. Of a
        number that is a moment, the seconds since 1970.

    Raises
    ------
    DataError
        If a column holds no names, or a count is no whole number from 0.
    """
    types = kinds(rows)
    exprs = {role: as_name(rows, name) for role, name in texts.items()}
    for role, name in numbers.items():
        is_moment = types[name] in MOMENTS
        number = f"epoch_us({quoted(name)}) / 1e6" if is_moment else f"{quoted(name)}::DOUBLE"
        exprs[role] = f"coalesce({number}, 'NaN'::DOUBLE)"
    base = rows.project(", ".join(f"{expr} AS {quoted(role)}" for role, expr in exprs.items()))

    n: Integers | None = None
    fetched = base.limit(FEW + 1).fetchnumpy()
    are_many = any(len(values) > FEW for values in fetched.values())
    if are_many and not numbers and {*texts} <= GROUPED:
        fetched = base.aggregate(f"{all_quoted(texts)}, count(*) AS n").fetchnumpy()
        n, are_many = fetched["n"], False
    if are_many:
        columns, arrays, n = _coded_there(base, texts, numbers)
    else:
        columns = {role: _coded(fetched[role].tolist()) for role in texts}
        arrays = {role: fetched[role] for role in numbers}
    counted = arrays.pop("n", None)
    if counted is not None:
        bad = counted[~(np.isfinite(counted) & (counted >= 0) & (counted == np.rint(counted)))]
        if bad.size:
            raise DataError(f"A count is {bad[0]}; counts of votes are whole numbers from 0.")
        n = counted.astype(np.int64)
    return Table(columns, arrays, n, lambda role: first_blank(rows, texts[role]))


def _coded(values: Sequence[str | None]) -> Coded:
    """Code names in their own order, as the engine does: that of the rows leaves no trace."""
    names = sorted({value for value in values if value is not None})
    place: dict[str | None, int] = {name: code for code, name in enumerate(names)}
    place[None] = -1
    return Coded(tuple(names), np.array([place[value] for value in values], dtype=np.int32))


def _coded_there(
    base: Relation, texts: Iterable[str], numbers: Iterable[str]
) -> tuple[dict[str, Coded], dict[str, Floats], Integers | None]:
    """Let the engine code the names of each role, and count the rows unless numbers part them."""
    rows = numbered(base).set_alias("votes")
    names: dict[str, tuple[str, ...]] = {}
    codes: dict[str, str] = {}
    # People first: rows counted in this order are in that of the cells they will be.
    for role in sorted(texts, key=lambda role: role not in ("voter", "prompt")):
        place, column = f"names{len(names)}", f"votes.{quoted(role)}"
        query = (
            f"SELECT {column} AS name, row_number() OVER (ORDER BY {column}) - 1 AS code "  # noqa: S608
            f"FROM votes WHERE {column} IS NOT NULL GROUP BY {column}"
        )
        distinct = base.query("votes", query).materialize().set_alias(place)  # type: ignore[union-attr]
        names[role] = tuple(distinct.order("code").fetchnumpy()["name"].tolist())
        rows = rows.join(distinct, f"{column} = {place}.name", how="left")
        codes[role] = f"coalesce({place}.code, -1)"
    sizes = [len(held) for held in names.values()]
    if is_one := fits(sizes):
        key = "0"
        for code, size in zip(codes.values(), sizes, strict=True):
            key = f"({key} * {size + 1} + {code} + 1)"
        codes = {"key": key}
    columns = [f"CAST({code} AS BIGINT) AS {quoted(role)}" for role, code in codes.items()]
    if is_one and not numbers:
        keys = rows.project(", ".join(columns)).fetchnumpy()["key"]
        coded, n = count_packed(np.require(keys, requirements="W"), sizes)
        return _columns(names, coded), {}, n
    columns += [f"votes.{quoted(role)}" for role in (*numbers, ROW)]
    fetched = rows.project(", ".join(columns)).fetchnumpy()
    order = np.argsort(fetched.pop(ROW), kind="stable")  # a join need not keep it
    fetched = {role: fetched.pop(role)[order] for role in [*fetched]}
    coded = unpacked(fetched["key"], sizes) if is_one else [fetched[role] for role in names]
    return _columns(names, coded), {role: fetched[role] for role in numbers}, None


def _columns(names: Mapping[str, tuple[str, ...]], codes: Sequence[Integers]) -> dict[str, Coded]:
    return {role: Coded(held, c) for (role, held), c in zip(names.items(), codes, strict=True)}


def first_blank(rows: Relation, name: str) -> int | None:
    """Return the number of the first row, from 1, with none or a blank in a column."""
    is_blank = f"regexp_full_match(CAST({quoted(name)} AS VARCHAR), {literal(BLANK)})"
    blank = numbered(rows).filter(f"coalesce({is_blank}, true)")
    first: int | None = blank.aggregate(f"min({ROW})").fetchall()[0][0]
    return first


# Unknown layouts


ROWS = 500
"""Rows of a file that are looked at."""
MOST_COLUMNS = 60
"""Columns, or members of nested ones, that are looked at."""
SECONDS = 1e8
"""Least number that is a time."""
MOST_NESTED = 20_000
"""Characters of a nested value that is looked into."""

LABELS = {outcome.value: outcome for outcome in OUTCOMES}
SIDES = (
    ("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"), ("first", "second"), ("one", "two"),
    ("links", "rechts"), ("erste", "zweite"), ("x", "y"), ("i", "j"), ("home", "away"),
    ("winner", "loser"), ("winning", "losing"), ("won", "lost"), ("chosen", "rejected"),
    ("preferred", "rejected"), ("better", "worse"), ("model", "opponent"),
    ("model", "baseline"), ("candidate", "baseline"),
)  # fmt: skip
"""Words by which the names of two columns for the two sides differ."""
PLACES = SIDES[:8]
"""Those that name a side whatever a column holds."""
MODELS = {
    "model", "modell", "system", "llm", "generator", "player", "assistant", "bot", "agent",
    "name",
}  # fmt: skip
TEXTS = {"response", "answer", "output", "text", "prompt", "conversation", "score", "id", "tokens"}
WINNERS = {
    "winner", "choice", "label", "preference", "preferred", "pref", "result", "verdict", "vote",
    "outcome", "better", "best", "selected", "chosen", "decision", "judgment", "judgement",
    "besser", "gewinner",
}  # fmt: skip
LOSERS = {"loser", "losing", "lost", "worse", "worst", "rejected", "weaker"}
"""Words in the name of a column that holds the side that lost."""
INDEX = {"index", "idx"}
FLAGS = {
    **dict.fromkeys(("tie", "tied", "draw"), "that the vote is a tie"),
    **dict.fromkeys(("swapped", "flipped", "reversed"), "that the sides are exchanged"),
}
"""What a column with this word in its name may say of a row."""
PROMPTS = (
    "prompt", "question", "instruction", "query", "task", "item", "example", "sample", "frage",
)  # fmt: skip
TIMES = ("time", "timestamp", "date", "datetime", "created", "submitted", "when")
ANSWERED = ("response", "answer", "output", "completion", "generation", "reply", "text", "antwort")
WORDS = {
    "voter": VOTERS,
    "prompt": PROMPTS,
    "time": TIMES,
    "response": ANSWERED,
    "model": ("model", "system", "llm", "generator"),
}
"""By role: words in the name of its column, the likeliest first."""
FILLERS = {
    "model", "response", "answer", "assistant", "output", "system", "option", "side", "vote",
    "is", "was", "the", "better", "much", "slightly", "wins", "win", "won", "best", "preferred",
    "for", "are", "equally", "good", "strongly", "somewhat", "clearly", "far", "prefer",
    "prefers", "modell", "antwort", "ist", "besser", "gut",
}  # fmt: skip
TIES = {
    "tie", "tied", "ties", "draw", "equal", "same", "both", "even", "neutral",
    "gleich", "beide", "unentschieden",
}  # fmt: skip
NEITHER = ({"neither"}, {"none"}, {"both", "bad"}, {"bothbad"}, {"keine"}, {"beide", "schlecht"})
"""All words of one of these are in a label for neither."""
WON, LOST = {"win", "wins", "won"}, {"loss", "lose", "loses", *LOSERS}
MOST_VALUES = 21
"""Different numbers of a scale of preference."""
UNKNOWN = "OUTCOME"
"""Stands for the outcome of a label that nothing is known of."""
SIDED, ANSWERS = of_sides("model"), of_sides("response")
TURNED = dict(zip(SIDED, SIDED[::-1], strict=True))
Known = Mapping[str, Sequence[str]]
Labels = dict[str, str]
"""Outcomes by label, without the labels that are outcomes themselves."""
Samples = Mapping[str, Sequence[str]]
"""By name, or by the path of a member: the values of some rows, blank where there is none."""


def samples_of(rows: Mapping[str, Sequence[str | None]]) -> Samples:
    """Give values by column; those of nested ones (JSON) by the path of each member."""
    leaves: dict[str, list[str]] = {}
    n = max(map(len, rows.values()), default=0)
    for name, values in rows.items():
        for row, value in enumerate(values):
            text = value or ""
            nested = text[:1] in ("{", "[") and len(text) <= MOST_NESTED
            for path, leaf in _leaves(name, json_or_text(text) if nested else text):
                if path in leaves or len(leaves) < MOST_COLUMNS:
                    leaves.setdefault(path, [""] * n)[row] = leaf
    return leaves


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for name, member in value.items():
                yield from _leaves(f"{path}.{name}", member)
        case [_, *_]:
            for place, member in enumerate(value[:2]):
                yield from _leaves(f"{path}.{place}", member)
        case _:
            yield path, "" if value is None or value == [] else str(value)


def _guessed(
    samples: Samples, named: Mapping[str, str], known: Known
) -> tuple[dict[str, str], list[Labels]]:
    """Guess columns by role, and the outcome that each label of theirs means.

    A column that has a known name, or was named, is what it is called.

    Parameters
    ----------
    named : mapping of str to str
        Columns that were named, by role.
    known : mapping of str to sequence of str
        Roles, and the names by which their columns are known.

    Returns
    -------
    roles : dict of str to str
    labels : list of dict
        One, or two where labels can be read either way round; none without a winner.
    """
    roles = {role: name for role, name in named.items() if name in samples}
    for role, names in known.items():
        for one in filter(samples.__contains__, names):
            roles.setdefault(role, one)
    tokens = {name: words_of(name) for name in samples}
    if pair := _models(samples, tokens, roles):
        roles |= dict(zip(SIDED, pair, strict=True))
    if "response_a" in known and (pair := _answers(samples, tokens)):
        roles = dict(zip(ANSWERS, pair, strict=True)) | roles
    ways: list[Labels] = []
    sides = [roles.get(role, "") for role in SIDED]
    if "winner" in known and all(sides):
        winner, ways = _winner(samples, tokens, roles, sides)
        roles |= {"winner": winner} if winner else {}
    kinds = {name for name in samples if {"kind", "type"} & {*tokens[name]}}
    for role, words in WORDS.items():
        if role not in known:
            continue
        free = [name for name in samples if name not in (*roles.values(), *JUDGES, *kinds)]
        fits = (n for word in words for n in free if word in tokens[n] and _fits(role, samples[n]))
        if role not in roles and (name := next(fits, None)):
            roles[role] = name
    return roles, ways


def readings(labels: Sequence[str]) -> list[Labels]:
    """Read labels of a column ``winner`` as outcomes, in each way that makes sense."""
    return _by_label(labels, ["winner"], (["model", "a"], ["model", "b"]))


def _models(
    samples: Samples, tokens: Mapping[str, list[str]], roles: Mapping[str, str]
) -> tuple[str, str] | None:
    """Choose the two columns of names that occur on both sides, by their names if these tell."""
    best, most = None, 0.0
    for pair in permutations(samples, 2):
        if any(roles.get(role, one) != one for role, one in zip(SIDED, pair, strict=True)):
            continue
        names = [{*samples[one]} - {""} for one in pair]
        shared = len(names[0] & names[1]) / (min(map(len, names)) or 1)
        own = {*tokens[pair[0]], *tokens[pair[1]]}
        named = 2.0 * (_side_words(*(tokens[one] for one in pair)) is not None)
        judged = own & WINNERS - {"winner"} and not (named and own & LOSERS)
        if judged or not (shared or (named and own & MODELS)):
            continue
        if max(map(len, names[0] | names[1]), default=0) > 200:
            continue
        if named or (shared >= 0.5 and pair[0] < pair[1] and not own & {*TEXTS, *WINNERS}):
            score = shared + named + bool(own & MODELS) - bool(own & TEXTS)
            best, most = (pair, score) if score > most else (best, most)
    return best


def _answers(samples: Samples, tokens: Mapping[str, list[str]]) -> tuple[str, str] | None:
    """Choose the two columns of texts whose names tell the sides apart."""
    pairs = [
        pair
        for pair in permutations(samples, 2)
        if _side_words(*(tokens[one] for one in pair)) and not {*tokens[pair[0]]} & MODELS
    ]
    n = {name: sum(map(len, values)) for name, values in samples.items()}
    return max(pairs, key=lambda pair: n[pair[0]] + n[pair[1]], default=None)


def _side_words(a: Sequence[str], b: Sequence[str]) -> tuple[str, str] | None:
    """Give the two words by which names differ, if they name sides."""
    differ = [pair for pair in zip(a, b, strict=False) if pair[0] != pair[1]]
    return differ[0] if len(a) == len(b) and len(differ) == 1 and differ[0] in SIDES else None


def _winner(
    samples: Samples, tokens: Mapping[str, list[str]], roles: Mapping[str, str], sides: list[str]
) -> tuple[str, list[Labels]]:
    """Choose the column of the winner, and the ways to read its labels."""
    if "winner" not in roles and len({*map(tuple, (tokens[one] for one in sides))}) == 2:
        first, second = ({*tokens[one]} for one in sides)
        if first & {*WINNERS, "winning", "won"} and second & LOSERS:
            return sides[0], [{}]  # each row names who won and who lost
    taken = {name for role, name in roles.items() if role != "winner"}
    words = [tokens[side] for side in sides]
    free = [name for name in samples if name not in taken and not _of_one_side(name, tokens)]
    ways = {}
    for name in [roles["winner"]] if "winner" in roles else free:
        rows = zip(samples[name], *(samples[side] for side in sides), strict=True)
        given = [row for row in rows if row[0]]
        others = {row[0] for row in given if row[0] not in row[1:]}
        read = {label: _even(label) for label in sorted(others)}
        is_named = len(others) < len({row[0] for row in given}) and all(read.values())
        by_name = [{label: own for label, own in read.items() if label != own}] if is_named else []
        ways[name] = by_name or _by_label(samples[name], tokens[name], words)
    fits = [name for name in ways if ways[name]]
    marks = {*WINNERS, *LOSERS}
    best = max(fits, key=lambda name: len(marks & {*tokens[name]}), default="")
    return roles.get("winner", best), ways.get(best, [])


def _of_one_side(name: str, tokens: Mapping[str, list[str]]) -> bool:
    """Whether another column has the same name for the other side, such as score_a and score_b."""
    one = tokens[name]
    return any(_side_words(one, other) or _side_words(other, one) for other in tokens.values())


def _even(label: str) -> str:
    """Read a label as a tie or as neither; blank where it is none of these."""
    parts = {*words_of(label)}
    if label in LABELS and LABELS[label] not in (Outcome.A, Outcome.B):
        return label
    if any(words <= parts for words in NEITHER):
        return Outcome.BOTH_BAD.value
    return Outcome.TIE.value if parts & TIES or "=" in label or label in ("-", "~") else ""


def _by_label(
    values: Sequence[str], name: Sequence[str], sides: Sequence[Sequence[str]]
) -> list[Labels]:
    """Read each label as an outcome, in each way that makes sense, the likeliest first.

    Parameters
    ----------
    name, sides : sequence of str
        Words of the names of this column, and of those of both models.
    """
    labels, own = sorted({*values} - {""}), _side_words(*sides)
    ways = _by_number(labels, name, own) or _by_words(labels, own)
    turn = TURNED if LOSERS & {*name} else {}
    ways = [{label: turn.get(is_, is_) for label, is_ in way.items()} for way in ways]
    return [{label: is_ for label, is_ in way.items() if label != is_} for way in ways]


def _by_number(
    labels: Sequence[str], name: Sequence[str], own: tuple[str, str] | None
) -> list[Labels]:
    """Read numbers, or true and false, as outcomes; two ways where the first side is not known."""
    truth = {"true": 1.0, "false": 0.0}
    try:
        value = {x: truth[x.lower()] if x.lower() in truth else float(x) for x in labels}
    except ValueError:
        return []
    seen, known = {*value.values()}, {*name}
    a, b, tie = (outcome.value for outcome in (Outcome.A, Outcome.B, Outcome.TIE))
    named = [i for pair in PLACES for i in (0, 1) if pair[i] in known and pair[1 - i] not in known]
    from_zero = bool(known & INDEX) or own == ("0", "1")
    ways: list[dict[float, str]] = []
    middle = (max(seen, default=0) + 1) / 2
    about_else = any(label.lower() in truth for label in labels) and not named
    if not 1 < len(seen) <= MOST_VALUES or about_else:
        return []
    if seen <= {0.0, 0.5, 1.0}:
        ways = [{0.0: b, 0.5: tie, 1.0: a}, {0.0: a, 0.5: tie, 1.0: b}]
        ways = ways[1:] if from_zero or 1 in named[:1] else ways[:1] if named else ways
    elif seen <= {1.0, 1.5, 2.0, 3.0} and {1.0, 2.0} <= seen:
        ways = [{1.0: a, 1.5: tie, 2.0: b, 3.0: tie}]
    elif seen == {0.0, 1.0, 2.0}:
        ways = [{0.0: tie, 1.0: a, 2.0: b}, {0.0: a, 1.0: b, 2.0: tie}]
        ways = ways[1:] if from_zero else ways[:1] if own == ("1", "2") else ways
    elif min(seen) < 0 < max(seen):
        ways = [
            {x: tie if x == 0 else one if x > 0 else two for x in seen}
            for one, two in ((a, b), (b, a))
        ]
    elif {x % 1 for x in seen} == {0.0} and min(seen) >= 1 and 4 <= max(seen) <= 9:
        ways = [
            {x: tie if x == middle else one if x < middle else two for x in seen}
            for one, two in ((a, b), (b, a))
        ]
    read = [{label: way[x] for label, x in value.items()} for way in ways]
    return [way for way in read if {a, b} <= {*way.values()}]


def _by_words(labels: Sequence[str], own: tuple[str, str] | None) -> list[Labels]:
    """Read words as outcomes; where both sides are clear, labels that are not may be a few."""
    read: Labels = {}
    a, b = Outcome.A.value, Outcome.B.value
    for label in labels[:50]:
        better = re.split(r">|\bover\b|\bthan\b", label)[0] if "<" not in label else label
        parts = {*words_of(better.split("<")[-1])}
        sides = [
            side
            for side, i in ((a, 0), (b, 1))
            if parts - {*FILLERS, *LOST} in [{pair[i]} for pair in (own or SIDES[0], *SIDES)]
        ]
        if label in LABELS:
            read[label] = label
        elif even := _even(label):
            read[label] = even
        elif sides:
            read[label] = TURNED[sides[0]] if parts & LOST else sides[0]
        elif parts and (parts <= WON or parts <= LOST):
            read[label] = a if parts <= WON else b
    unread = [label for label in labels if label not in read]
    if unread and ({a, b} - {*read.values()} or len(unread) > 3 or max(map(len, unread)) > 40):
        return []
    if not {a, b} & {*read.values()}:
        return []
    way = read | dict.fromkeys(unread, UNKNOWN)
    either = {*map(str.lower, labels)} & (WON | LOST) and (own or ("", ""))[1] != "baseline"
    return [way, {label: TURNED.get(is_, is_) for label, is_ in way.items()}] if either else [way]


def _fits(role: str, values: Sequence[str]) -> bool:
    """Whether a first value may be a name, or a moment: a date, or seconds since 1970."""
    first = next(filter(None, values), "")
    if role != "time":
        return 0 < len(first) <= 2000
    with suppress(ValueError):
        return datetime.fromisoformat(first) is not None
    with suppress(ValueError):
        return float(first) > SECONDS
    return False


def layout_error(
    source: str,
    samples: Samples,
    named: Mapping[str, str],
    *,
    known: Known,
    required: Sequence[str],
    labels: Collection[str] = (),
    also: str = "",
) -> LayoutError:
    """List the columns, what each is taken for, and the options that read them so.

    Parameters
    ----------
    named : mapping of str to str
        Columns that were named, by role.
    known : mapping of str to sequence of str
        Roles, and the names by which their columns are known.
    labels : collection of str
        Labels of theirs that were read as ours.
    also : str
        A sentence on what else is known of the file.
    """
    tokens = {name: words_of(name) for name in samples}
    roles, ways = _guessed(samples, named, known)
    outcomes = ways[0] if ways else {}
    meant = ", ".join(f"{theirs} = {ours}" for theirs, ours in outcomes.items())
    meant += ", or the other way round" if len(ways) > 1 else ""
    rows = []
    for name, values in samples.items():
        some = ", ".join(repr(value[:30]) for value in [*dict.fromkeys(filter(None, values))][:3])
        role = ", ".join(role for role, of in roles.items() if of == name) or "not used"
        role += f" ({meant})" if name == roles.get("winner") and meant else ""
        rows.append([visible(cell) for cell in (name[:SHOWN], some or "no value", role)])
    widths = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    table = "\n".join(f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {role}" for a, b, role in rows)
    missing = [role for role in required if role not in roles]
    ask = [
        f"{role}={name}"
        for role, name in roles.items()
        if name not in known[role] and role not in named
    ]
    options = [
        w for pair in (*ask, *(f"{role}=NAME" for role in missing)) for w in ("--column", pair)
    ]
    notes = ["Check this."]
    if missing:
        notes.append(f"No column is taken for {' and '.join(missing)}: put its name for NAME.")
    if UNKNOWN in outcomes.values():
        notes.append(f"Put {', '.join(OUTCOMES[:3])} or {OUTCOMES[3]} for {UNKNOWN}.")
    free = {name: {*words_of(name)} for name in samples if name not in roles.values()}
    notes += [
        f"{name!r} is not used. If it says {FLAGS[word]}, change the winner by it first."
        for name, words in free.items()
        for word in FLAGS
        if word in words
    ]
    if "winner" in missing and (of_side := [name for name in free if _of_one_side(name, tokens)]):
        notes.append(
            f"If {' and '.join(map(repr, of_side[:2]))} hold a score of each side, add a column "
            f"of the side with the higher one: {Outcome.A}, {Outcome.B} or {Outcome.TIE}."
        )
    if "winner" in missing and any(words & {"ranking", "rankings"} for words in free.values()):
        notes.append("Rankings of several models are read by arena rank.")
    text = (
        f"The layout of {source!r} is not known.{also} Its columns, some of their values, and "
        f"what each is taken for:\n{table}\n{' '.join(notes)}"
    )
    each = []
    for way in ways or [{}]:
        pairs = [f"{theirs}={ours}" for theirs, ours in way.items() if theirs not in labels]
        each.append((*options, *(w for pair in pairs for w in ("--label", pair))))
    return LayoutError(text, *each)


# Votes of a log


LOGGED_SIDES = of_sides("model")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedVotes:
    """The votes of an arena's log as numbers, skips among them, in its order.

    Attributes
    ----------
    name : str
        What errors call the log.
    texts : mapping of str to Coded
        By role: `SIDES`, ``winner``, ``voter``, ``prompt`` and ``left_out``, which is why the
        policy leaves a vote out, and -1 where it counts. Where more than a board is made of
        them, also ``battle``.
    created : ndarray of int64
        Microseconds since 1970, UTC.
    numbers : mapping of str to ndarray
        ``weight``, the probability of the pair, and ``repicks``; for a style-adjusted board
        what is counted of both answers, such as ``length_a``, NaN where it is not known.
    labels : mapping of str to sequence of str or None
        What was asked for, by the names by which votes can be parted.
    figures : mapping of str to sequence of float or None
        What was measured on the answers, such as ``cost_a``.
    """

    name: str = "the log"
    texts: Mapping[str, Coded]
    created: Ints
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    labels: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    figures: Mapping[str, Sequence[float | None]] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the name, as a file's path is its name."""
        return self.name

    def __len__(self) -> int:
        """Return how many votes there are."""
        return len(self.created)

    @property
    def counted(self) -> Bools:
        """Whether each vote counts."""
        return self.texts["left_out"].codes < 0

    def values(self, role: str) -> list[Any]:
        """Give each vote's name in a role; None where it is missing."""
        column = self.texts[role]
        return [column.names[code] if code >= 0 else None for code in column.codes.tolist()]

    def on(self, models: Set[str]) -> Bools:
        """Return which votes are on one of some models."""
        sides = [self.texts[side] for side in LOGGED_SIDES]
        marks = [np.array([*(n in models for n in s.names), False])[s.codes] for s in sides]
        return np.asarray(marks[0] | marks[1])

    def before(self, moment: datetime) -> "LoggedVotes":
        """Exclude what was cast at a moment, or later."""
        return self._only(self.created < microseconds(moment))

    def without(self, models: Set[str]) -> "LoggedVotes":
        """Exclude the battles of some models."""
        return self._only(~self.on(models))

    def known(self, column: str) -> "LoggedVotes":
        """Exclude the votes of which a number is not known."""
        return self._only(~np.isnan(self.numbers[column]))

    def _only(self, rows: Bools) -> "LoggedVotes":
        return replace(
            self,
            texts={role: Coded(c.names, c.codes[rows]) for role, c in self.texts.items()},
            created=self.created[rows],
            numbers={role: values[rows] for role, values in self.numbers.items()},
            labels={name: [*compress(each, rows)] for name, each in self.labels.items()},
            figures={name: [*compress(each, rows)] for name, each in self.figures.items()},
        )

    def require_own(self, columns: Columns) -> None:
        """Raise `DataError` if columns of the log are named, which has its own."""
        named = {one.name: getattr(columns, one.name) for one in fields(columns)}
        by = named.pop("by")
        if by is not None and by not in self.labels:
            known = ", ".join(self.labels) or "none"
            msg = (
                f"The log holds no column {by!r} to part the votes by, but {known}: export the "
                "votes, add the column, and rate the file."
            )
            raise DataError(msg)
        if by is not None and not any(self.labels[by]):
            msg = f"No vote of {self.name!r} has a {by}: label them first, arena label {self.name}"
            raise DataError(msg)
        for role, name in named.items():
            if name is not None:
                msg = (
                    f"The log has its own columns, and {role}={name} names another: drop --column."
                )
                raise DataError(msg)

    def in_order(self, roles: Sequence[str]) -> Table:
        """Return columns of names, and the number of each vote in the role ``row``."""
        numbers = {"row": np.arange(len(self), dtype=np.float64)}
        return Table({role: self.texts[role] for role in roles}, numbers, None, lambda _: None)

    def read(self, reading: Reading) -> Table:
        """Return the columns that a reading takes.

        Raises
        ------
        DataError
            If it names columns, or takes a style or weights that the log does not hold.
        """
        self.require_own(reading.columns)
        styles = [column for name in reading.style for column in of_sides(name)]
        if not {*styles} <= {*self.numbers} or reading.weight not in (None, SAMPLING):
            msg = (
                "The log holds no styles, and no weights but 'sampling': export the votes, add "
                "the columns, and read the file."
            )
            raise DataError(msg)
        people = {"voter": reading.voters, "prompt": reading.prompts}
        roles = (*LOGGED_SIDES, "winner", *(role for role in people if people[role]), "left_out")
        texts = {role: self.texts[role] for role in roles}
        if (by := reading.columns.by) is not None:
            texts["by"] = coded_list(self.labels[by])
        beside = [name for name in reading.beside if name in self.labels]
        texts |= {name: coded_list(self.labels[name]) for name in beside}
        taken = self.numbers if reading.weight is not None else styles
        numbers = {name: self.numbers[name] for name in taken}
        if reading.needs_time:
            numbers["time"] = self.created / 1e6
        figures = [column for name in reading.figures for column in of_sides(name)]
        there = [name for name in figures if name in self.figures]
        numbers |= {name: np.array(self.figures[name], dtype=np.float64) for name in there}
        return compact(Table(texts, numbers, None, lambda _: None))


def microseconds(moment: datetime) -> int:
    """Count the microseconds since 1970, without rounding.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, 5, UTC))
    1000005
    """
    return (moment - _EPOCH) // timedelta(microseconds=1)


# Repeated rows and prompts


_RENAMED_IN = 1_000_000
"""Rows in which texts of prompts are compared."""

REPEATED = "repeated"
"""Reason of a row whose ``battle_id`` an earlier row has on the same models."""

BATTLE = "battle_id"
IDS = ("question_id", "id", "vote_id", "comparison_id", "annotation_id", "record_id", "uuid")
"""Columns that name a row in many files, and in others what it is about."""

ITEMS = ("item_id", "prompt_id")
"""Columns that name what a judge was asked: it gives one verdict on it."""


def key_of(there: Sequence[str], where: str | None, theirs: Sequence[str] = ()) -> list[str]:
    """Name the columns that tell votes apart; empty where none does for sure.

    Parameters
    ----------
    where : str or None
        Condition by which rows were chosen. One that names the id takes the place of this rule.
    theirs : sequence of str
        Columns that the id is made of.
    """
    if not {BATTLE, *of_sides("model")} <= {*there} or _names(where, (BATTLE, *theirs)):
        return []
    return [BATTLE, *_beside(there)]


def doubtful_key_of(there: Sequence[str], where: str | None) -> list[str]:
    """Name the columns that tell votes apart in most files without a ``battle_id``."""
    ids = (*IDS, *(ITEMS if "judge" in there else ()))
    name = next((name for name in ids if name in there), None)
    if name is None and {*there} & {*KNOWN["time"]} and {*there} & {*KNOWN["voter"]}:
        name = next((name for name in KNOWN["prompt"] if name in there), None)
    if name is None or BATTLE in there or not {*REQUIRED} <= {*there}:
        return []
    return [] if _names(where, (name,)) else [name, "winner", *_beside(there)]


def _names(where: str | None, columns: Sequence[str]) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", where or "") for name in columns)


def _beside(there: Sequence[str]) -> list[str]:
    voter = next((name for name in KNOWN["voter"] if name in there), "voter")
    time = next((name for name in KNOWN["time"] if name in there), "ts")
    beside = dict.fromkeys((*of_sides("model"), voter, "judge", "method", "order", "turn", time))
    return list(dict.fromkeys([*filter(there.__contains__, beside), *like_voters(there)]))


def n_repeated(rows: "duckdb.DuckDBPyRelation", key: Sequence[str]) -> int:
    """Count the rows that repeat an earlier one in a key, of those that count and have an id."""
    if not key:
        return 0
    live = f"{quoted(key[0])} IS NOT NULL"
    live += f" AND {LEFT_OUT} IS NULL" if LEFT_OUT in rows.columns else ""
    # Sorted here: to count what is distinct takes the engine four times as long.
    hashes = rows.filter(live).project(f"hash({all_quoted(key)}) AS h").fetchnumpy()["h"]
    hashes.sort()
    return int((hashes[1:] == hashes[:-1]).sum())


def text_beside(there: Sequence[str], wanted: Sequence[str]) -> tuple[str, str] | None:
    """Name the columns of a prompt's id, if it is wanted, and of its text; None without both."""
    *ids, text = KNOWN["prompt"]
    name = next((name for name in ids if name in wanted), None)
    return (name, text) if name is not None and text in there else None


def n_renamed(rows: "duckdb.DuckDBPyRelation", columns: tuple[str, str]) -> int:
    """Count the prompts with the text of another one, among the first `_RENAMED_IN` rows.

    Only columns of text are compared: a list in a file of kilobytes may take gigabytes to read.
    """
    if dict(zip(rows.columns, rows.types, strict=True))[columns[1]].id != "varchar":
        return 0
    id_, text = map(quoted, columns)
    pairs = rows.limit(_RENAMED_IN).filter(f"{id_} IS NOT NULL AND trim({text}) <> ''")
    hashes = pairs.project(f"hash({text}) AS t, hash({id_}) AS i").distinct().fetchnumpy()["t"]
    hashes.sort()
    return int((hashes[1:] == hashes[:-1]).sum())


def renamed_warning(source: str, n: int, columns: tuple[str, str]) -> str:
    """Say that prompts have the text of others, and how to cluster them together."""
    id_, text = columns
    return (
        f"{source}: {plural(n, 'prompt has', 'prompts have')} the same text in {text!r} as "
        f"another with a different {id_!r}. They count as different prompts, and intervals are "
        "too narrow. Cluster them together: arena probe duplicates FILE --to GROUPED.parquet, "
        "then rate that with --column prompt=prompt_group."
    )


def marked(rows: "duckdb.DuckDBPyRelation", key: Sequence[str]) -> "duckdb.DuckDBPyRelation":
    """Give the rows in their order; those that repeat an earlier one have a reason, `REPEATED`."""
    reason = LEFT_OUT if LEFT_OUT in rows.columns else "NULL"
    others = [name for name in rows.columns if name != LEFT_OUT]
    place = f"row_number() OVER (PARTITION BY {all_quoted(key)}, {reason} IS NULL ORDER BY {ROW})"
    again = f"{quoted(key[0])} IS NOT NULL AND {reason} IS NULL AND {place} > 1"
    why = f"CASE WHEN {again} THEN '{REPEATED}' ELSE {reason} END AS {LEFT_OUT}"
    in_order = rows.project(f"*, row_number() OVER () AS {ROW}")
    made = in_order.project(f"{all_quoted(others)}, {ROW}, {why}")
    return made.order(ROW).project(all_quoted([*others, LEFT_OUT]))


def warning(source: str, paths: Sequence[Path], n: int, key: Sequence[str]) -> str:
    """Say that rows repeat others, and how to exclude them."""
    copy = f"COPY (FROM {literal(str(paths[0]))} SELECT DISTINCT *) TO 'once.parquet'"
    run = f"import duckdb; duckdb.sql({copy!r})"
    how = f": python -c {shlex.quote(run)}" if len(paths) == 1 else "."
    return (
        f"{source}: {plural(n, 'row repeats', 'rows repeat')} an earlier one in {', '.join(key)}. "
        f"Repeated rows count. If they are copies, rate a file without them{how}"
    )
