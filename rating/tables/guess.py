"""What the columns of votes in an unknown layout may hold, and the options that read them so."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import permutations
from typing import Any

from rating.errors import LayoutError
from rating.outcome import OUTCOMES, Outcome
from rating.tables.columns import JUDGES
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
    *(("x", "y"), ("i", "j"), ("winner", "loser"), ("winning", "losing"), ("won", "lost")),
    *(("model", "baseline"), ("model", "opponent"), ("home", "away")),
)
"""Words by which the names of two columns for the two sides differ."""
MODELS = {"model", "system", "llm", "generator", "player", "assistant", "bot", "agent", "name"}
TEXTS = {"response", "answer", "output", "text", "prompt", "conversation", "score", "id", "tokens"}
WINNERS = {
    *("winner", "choice", "label", "preference", "preferred", "pref", "result", "verdict", "vote"),
    *("outcome", "better", "best", "selected", "chosen", "decision", "judgment", "judgement"),
}
VOTERS = (
    *("annotator", "rater", "worker", "evaluator", "participant", "labeler", "labeller", "voter"),
    *("user", "person", "respondent", "reviewer", "assessor", "completed", "email", "account"),
    *("visitor", "session", "who", "uid", "ip"),
)
PROMPTS = ("prompt", "question", "instruction", "query", "task", "item", "example", "sample")
TIMES = ("time", "timestamp", "date", "datetime", "created", "submitted", "when")
WORDS = {
    "voter": VOTERS,
    "prompt": PROMPTS,
    "time": TIMES,
    "response": ("response", "answer", "output", "completion", "generation", "reply", "text"),
    "model": ("model", "system", "llm", "generator"),
}
"""By role: words in the name of its column, the likeliest first."""
FILLERS = {
    *("model", "response", "answer", "assistant", "output", "system", "option", "side", "vote"),
    *("is", "was", "the", "better", "much", "slightly", "wins", "win", "won", "best", "preferred"),
    *("for", "are", "equally", "good"),
}
TIES = {"tie", "tied", "ties", "draw", "equal", "same", "both", "even", "neutral"}
NEITHER = ({"neither"}, {"none"}, {"both", "bad"}, {"bothbad"})
"""All words of one of these are in a label for neither."""
NUMBERS = (
    {"0": Outcome.B, "0.5": Outcome.TIE, "1": Outcome.A},
    {"-1": Outcome.B, "0": Outcome.TIE, "1": Outcome.A},
    {"1": Outcome.A, "2": Outcome.B, "0": Outcome.TIE},
    {"1": Outcome.A, "2": Outcome.B, "3": Outcome.TIE},
    {"0": Outcome.A, "1": Outcome.B, "2": Outcome.TIE},
)
"""Codes of an outcome; the first counts that has all values, and both sides among them."""

SIDED, ANSWERS = ("model_a", "model_b"), ("response_a", "response_b")
Known = Mapping[str, Sequence[str]]
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
) -> tuple[dict[str, str], dict[str, str]]:
    """Guess columns by role, and the outcome that each label of theirs means.

    A column that has a known name, or was named, is what it is called.

    Parameters
    ----------
    named : mapping of str to str
        Columns that were named, by role.
    known : mapping of str to sequence of str
        Roles, and the names by which their columns are known.
    """
    roles = {role: name for role, name in named.items() if name in samples}
    for role, names in known.items():
        for one in filter(samples.__contains__, names):
            roles.setdefault(role, one)
    tokens = {name: _tokens(name) for name in samples}
    if pair := _models(samples, tokens, roles):
        roles |= dict(zip(SIDED, pair, strict=True))
    if "response_a" in known and (pair := _answers(samples, tokens)):
        roles = dict(zip(ANSWERS, pair, strict=True)) | roles
    labels: dict[str, str] = {}
    sides = [roles.get(role, "") for role in SIDED]
    if "winner" in known and all(sides) and (name := _winner(samples, tokens, roles, sides)):
        roles["winner"] = name
        read = _outcomes(samples[name], [tokens[side] for side in sides]) or {}
        labels = {text: own.value for text, own in read.items() if text not in LABELS}
        labels = {} if _are_names(samples, name, sides) else labels
    for role, words in WORDS.items():
        if role not in known:
            continue
        free = [name for name in samples if name not in (*roles.values(), *JUDGES)]
        fits = (n for word in words for n in free if word in tokens[n] and _fits(role, samples[n]))
        if role not in roles and (name := next(fits, None)):
            roles[role] = name
    return roles, labels


def _tokens(name: str) -> list[str]:
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


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
        if not (shared or (named and own & MODELS)) or own & WINNERS - {"winner"}:
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
) -> str | None:
    taken = {name for role, name in roles.items() if role != "winner"}
    if "winner" in roles:
        return roles["winner"]
    if tokens[sides[0]] != tokens[sides[1]] and {"winner", "winning", "won"} & {*tokens[sides[0]]}:
        return sides[0]  # each row names who won and who lost
    words = [tokens[side] for side in sides]
    fits = [
        name
        for name in samples
        if name not in taken
        and (_are_names(samples, name, sides) or _outcomes(samples[name], words))
    ]
    return max(fits, key=lambda name: len(WINNERS & {*tokens[name]}), default=None)


def _are_names(samples: Samples, name: str, sides: Sequence[str]) -> bool:
    """Whether a column names one of the two models of its row, or a tie."""
    rows = zip(samples[name], *(samples[side] for side in sides), strict=True)
    given = [row for row in rows if row[0]]
    named = [row for row in given if row[0] in row[1:]]
    return bool(named) and all(row in named or row[0] in LABELS for row in given)


def _outcomes(values: Sequence[str], sides: Sequence[Sequence[str]]) -> dict[str, Outcome] | None:
    """Read each label as an outcome; None where one is none, or no side ever wins."""
    labels = sorted({*values} - {""})
    plain = {label: re.sub("[.]0+$", "", label) for label in labels}
    for codes in NUMBERS:
        outcomes = {label: codes.get(code) for label, code in plain.items()}
        if {Outcome.A, Outcome.B} <= {*outcomes.values()} <= {*codes.values()}:
            return {label: codes[code] for label, code in plain.items()}
    own = _side_words(*sides) or ("a", "b")
    read: dict[str, Outcome] = {}
    for label in labels[:50]:
        better = label.split(">")[0] if ">" in label else label.split("<")[-1]
        parts = {*_tokens(better)}
        if label in LABELS:
            read[label] = LABELS[label]
        elif any(words <= parts for words in NEITHER):
            read[label] = Outcome.BOTH_BAD
        elif parts & TIES or "=" in label or label in ("-", "~"):
            read[label] = Outcome.TIE
        elif side := [
            outcome
            for outcome, of in zip((Outcome.A, Outcome.B), (0, 1), strict=True)
            if parts - FILLERS in [{pair[of]} for pair in (own, *SIDES)]
        ]:
            read[label] = side[0]
    has_side = {Outcome.A, Outcome.B} & {*read.values()}
    return read if has_side and len(read) == len(labels) else None


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
    roles, outcomes = guessed(samples, named, known)
    meant = ", ".join(f"{theirs} = {ours}" for theirs, ours in outcomes.items())
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
    options += [w for a, b in outcomes.items() if a not in labels for w in ("--label", f"{a}={b}")]
    lacking = f" No column is taken for {' and '.join(missing)}: put its name for NAME."
    text = (
        f"The layout of {source!r} is not known.{also} Its columns, some of their values, and "
        f"what each is taken for:\n{table}\nCheck this.{lacking if missing else ''}"
    )
    return LayoutError(text, tuple(options))
