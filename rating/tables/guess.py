"""What the columns of votes in an unknown layout may hold, and the options that read them so."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import permutations
from typing import Any

from rating.errors import LayoutError
from rating.outcome import OUTCOMES, Outcome, of_sides
from rating.tables.columns import JUDGES, VOTERS, words_of
from rating.tables.escaping import visible
from rating.tables.files import SHOWN, json_or_text

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
    *(("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"), ("first", "second"), ("one", "two")),
    *(("links", "rechts"), ("erste", "zweite"), ("x", "y"), ("i", "j"), ("home", "away")),
    *(("winner", "loser"), ("winning", "losing"), ("won", "lost"), ("chosen", "rejected")),
    *(("preferred", "rejected"), ("better", "worse"), ("model", "opponent")),
    *(("model", "baseline"), ("candidate", "baseline")),
)
"""Words by which the names of two columns for the two sides differ."""
PLACES = SIDES[:8]
"""Those that name a side whatever a column holds."""
MODELS = {
    *("model", "modell", "system", "llm", "generator", "player", "assistant", "bot", "agent"),
    "name",
}
TEXTS = {"response", "answer", "output", "text", "prompt", "conversation", "score", "id", "tokens"}
WINNERS = {
    *("winner", "choice", "label", "preference", "preferred", "pref", "result", "verdict", "vote"),
    *("outcome", "better", "best", "selected", "chosen", "decision", "judgment", "judgement"),
    *("besser", "gewinner"),
}
LOSERS = {"loser", "losing", "lost", "worse", "worst", "rejected", "weaker"}
"""Words in the name of a column that holds the side that lost."""
INDEX = {"index", "idx"}
FLAGS = {
    **dict.fromkeys(("tie", "tied", "draw"), "that the vote is a tie"),
    **dict.fromkeys(("swapped", "flipped", "reversed"), "that the sides are exchanged"),
}
"""What a column with this word in its name may say of a row."""
PROMPTS = (
    *("prompt", "question", "instruction", "query", "task", "item", "example", "sample", "frage"),
)
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
    *("model", "response", "answer", "assistant", "output", "system", "option", "side", "vote"),
    *("is", "was", "the", "better", "much", "slightly", "wins", "win", "won", "best", "preferred"),
    *("for", "are", "equally", "good", "strongly", "somewhat", "clearly", "far", "prefer"),
    *("prefers", "modell", "antwort", "ist", "besser", "gut"),
}
TIES = {
    *("tie", "tied", "ties", "draw", "equal", "same", "both", "even", "neutral"),
    *("gleich", "beide", "unentschieden"),
}
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


def guessed(
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
        by_name = _by_name(samples, name, sides)
        ways[name] = by_name or _by_label(samples[name], tokens[name], words)
    fits = [name for name in ways if ways[name]]
    marks = {*WINNERS, *LOSERS}
    best = max(fits, key=lambda name: len(marks & {*tokens[name]}), default="")
    return roles.get("winner", best), ways.get(best, [])


def _of_one_side(name: str, tokens: Mapping[str, list[str]]) -> bool:
    """Whether another column has the same name for the other side, such as score_a and score_b."""
    one = tokens[name]
    return any(_side_words(one, other) or _side_words(other, one) for other in tokens.values())


def _by_name(samples: Samples, name: str, sides: Sequence[str]) -> list[Labels]:
    """Read a column that names one of the two models of its row, or no winner."""
    rows = zip(samples[name], *(samples[side] for side in sides), strict=True)
    given = [row for row in rows if row[0]]
    others = {row[0] for row in given if row[0] not in row[1:]}
    read = {label: _even(label) for label in sorted(others)}
    is_named = len(others) < len({row[0] for row in given}) and all(read.values())
    return [{label: own for label, own in read.items() if label != own}] if is_named else []


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
    roles, ways = guessed(samples, named, known)
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
