"""What a bench goes by: options as they are typed, or the keys of its file."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token

from arena.commands.arguments import Database, File, Folder, RosterFile
from rating.errors import DataError
from rating.tables.files import parsed_toml, read_text


@Parameter(n_tokens=1)
def names(_kind: Any, words: Sequence[Token]) -> tuple[str, ...]:
    """Read the value of ``--models``."""
    return _parted(",".join(word.value for word in words))


def _parted(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """What a bench goes by, on the command line or in a file.

    Attributes
    ----------
    items : str or None
        Prompts: a file as the benchmark writes it, or of prompt, and id, checklist, reference.
    where : str or None
        Take only items for which this SQL holds, such as category = 'hard_prompt'.
    models : tuple of str or None
        Whom the leaderboard is of, parted by commas: of the roster, or recorded.
    answers : list of str or None
        Recorded answers: AlpacaEval's outputs, WildBench's results, FastChat's or Arena-Hard's
        model answers, or prompt, response, model; again for more.
    baseline : str or None
        Whom pairs are compared with; the answers in the items, or upstream's, if not given.
    judge : str or None
        Id in the roster, or pocket-judge, a toy; ifeval takes none.
    budget : float or None
        Stop before more than this is spent, on answers and verdicts together.
    max_tokens : int or None
        Most tokens of an answer; as the roster says (4096) if not given.
    rubric : Path or None
        Text that says what the marks stand for, for rubric.
    scale : str or None
        Marks of the rubric; 1-10 if not given.
    length_margin : int or None
        wildbench_reward: a slight win by an answer longer by more than K characters is a tie; 500
        if not given, negative for never.
    swap_share : float or None
        Share of the pairs to ask in both orders, the rest in one, drawn at random; as the method
        says if not given.
    difficulties : Path or None
        alpaca_eval: the published difficulty of each instruction, for the length-controlled rate.
    regularisation : Path or None
        alpaca_eval: rows of gamed baselines, for the same.
    references : Path or None
        Reference answers to show the judge, such as FastChat's reference_answer/gpt-4.jsonl; of
        MT-bench for math, reasoning and coding alone.
    fallback_judge : str or None
        Who is asked in the judge's place where its endpoint is out or it refuses a case for good.
    concurrency : int or None
        Most requests at a time; 16 if not given.
    requests_per_minute : float or None
        Most requests that each endpoint allows a minute.
    tokens_per_minute : float or None
        Most tokens that each allows.
    seed : str or None
        Draws fences in place of the database's own secret.
    out : Path or None
        Folder for the results.
    """

    items: Annotated[str | None, Parameter(metavar="FILE")] = None
    where: Annotated[str | None, Parameter(metavar="SQL")] = None
    models: Annotated[tuple[str, ...] | None, Parameter(metavar="A,B,C", converter=names)] = None
    answers: Annotated[Sequence[str] | None, Parameter(metavar="FILE")] = None
    baseline: Annotated[str | None, Parameter(metavar="MODEL")] = None
    judge: Annotated[str | None, Parameter(metavar="MODEL")] = None
    budget: Annotated[float | None, Parameter(metavar="USD")] = None
    max_tokens: int | None = None
    rubric: File = None
    scale: Annotated[str | None, Parameter(metavar="LOW-HIGH")] = None
    length_margin: Annotated[int | None, Parameter(metavar="K")] = None
    swap_share: Annotated[float | None, Parameter(metavar="SHARE")] = None
    difficulties: File = None
    regularisation: File = None
    references: File = None
    fallback_judge: Annotated[str | None, Parameter(metavar="MODEL")] = None
    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    seed: Annotated[str | None, Parameter(metavar="TEXT")] = None
    database: Database = None
    roster: RosterFile = None
    out: Folder = None


def as_typed(method: str, options: BenchOptions) -> tuple[str, BenchOptions]:
    """Take a bench from its file, if there is one; what the command line says stands before it."""
    if not method.endswith(".toml"):
        return method, options
    path = Path(method)
    content = parsed_toml(read_text(path), repr(str(path)))
    if "items" not in content and options.items is not None:
        return method, options  # a method of one's own
    values = {name: _value(path, name, value) for name, value in content.items()}
    named = values.pop("method", None)
    if named is None:
        msg = f"{str(path)!r} has no key 'method': say by which, such as method = \"alpaca_eval\"."
        raise DataError(msg)
    given = {one.name: getattr(options, one.name) for one in fields(options)}
    typed = {name: value for name, value in given.items() if value is not None}
    return named, replace(BenchOptions(**values), **typed)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _texts(value: Any) -> tuple[str, ...] | None:
    several = list(_parted(value)) if isinstance(value, str) else value
    whole = isinstance(several, list) and several and all(map(_text, several))
    return tuple(several) if whole else None


def _number(value: Any) -> float | None:
    is_finite = type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max
    return value if is_finite else None


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


_TEXT, _NUMBER, _WHOLE = (
    (_text, "a text"),
    (_number, "a number"),
    (_whole, "a whole number"),
)
_TEXTS = (_texts, "a list of texts")
KEYS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    **dict.fromkeys(("method", "baseline", "judge", "fallback_judge", "where"), _TEXT),
    **dict.fromkeys(("scale", "seed", "database"), _TEXT),
    **dict.fromkeys(("items", "rubric", "roster", "out"), _TEXT),
    **dict.fromkeys(("difficulties", "regularisation"), _TEXT),
    **dict.fromkeys(("models", "answers"), _TEXTS),
    **dict.fromkeys(("budget", "requests_per_minute", "tokens_per_minute", "swap_share"), _NUMBER),
    **dict.fromkeys(("max_tokens", "length_margin", "concurrency"), _WHOLE),
}
"""Keys of a bench's file, how each is read, and what it may be."""
_FILES = ("items", "answers", "rubric", "roster", "out", "difficulties", "regularisation")
"""Keys of files, which lie beside the bench's."""


def _value(path: Path, name: str, value: Any) -> Any:
    if name not in KEYS:
        msg = f"{str(path)!r}: there is no key {name!r} (with {value!r}): use {', '.join(KEYS)}."
        raise DataError(msg)
    read, wanted = KEYS[name]
    result = read(value)
    if result is None:
        msg = f"{str(path)!r}: the key {name!r} is {wanted}, not {value!r}."
        raise DataError(msg)
    if name not in _FILES:
        return result
    if name == "answers":
        return [str(path.parent / one) for one in result]
    file = path.parent / result
    return str(file) if name == "items" else file
