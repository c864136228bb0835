"""IFEval's 25 instructions by id, rows of its data, and whether a response follows them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, Protocol

from judge.ifeval import checkers, language
from judge.ifeval.checkers import Relation
from judge.ifeval.text import loosened
from rating.errors import DataError


class Checker(Protocol):
    """One instruction: a frozen dataclass whose fields are IFEval's arguments."""

    def follows(self, response: str) -> bool | None:
        """Say whether a response that is not blank follows; None when that cannot be told."""
        ...


def build(kind: type[Checker], given: Mapping[str, object]) -> Checker:
    """Make a checker from arguments as they stand in a data file.

    Entries that are None count as absent, as in the copies of IFEval that
    give every instruction every key; zero is a value and stays.

    Raises
    ------
    DataError
        For an argument that is missing, unknown or impossible.
    """
    wanted: dict[str, Field[Any]] = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # checkers are dataclasses
    present = {name: value for name, value in given.items() if value is not None}
    for name, value in present.items():
        if name not in wanted:
            raise DataError(f"{name} is {value!r}, but it takes {_joined(list(wanted))}.")
    for name in wanted:
        if name not in present:
            raise DataError(f"{name} is missing; it takes {_joined(list(wanted))}.")
    return kind(
        **{name: _READERS[field.type](name, present[name]) for name, field in wanted.items()}
    )


def _joined(names: list[str]) -> str:
    return ", ".join(names) if names else "no arguments"


def _count(name: str, value: object) -> int:
    """Return a whole number, also when a table made it a float."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise DataError(f"{name} is {value!r}; give a whole number, 0 or more.")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{name} is {value!r}; give a text that is not blank.")
    return value.strip()


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise DataError(f"{name} is {value!r}; give a list of texts with at least one.")
    return tuple(_text(name, each) for each in value)


def _relation(name: str, value: object) -> Relation:
    if value not in list(Relation):
        raise DataError(f"{name} is {value!r}; give 'less than' or 'at least'.")
    return Relation(str(value))


_READERS: Mapping[object, Callable[[str, object], object]] = {
    int: _count,
    str: _text,
    tuple[str, ...]: _texts,
    Relation: _relation,
}


CHECKERS: Mapping[str, type[Checker]] = {
    "keywords:existence": checkers.Existence,
    "keywords:frequency": checkers.Frequency,
    "keywords:forbidden_words": checkers.ForbiddenWords,
    "keywords:letter_frequency": checkers.LetterFrequency,
    "language:response_language": language.ResponseLanguage,
    "length_constraints:number_sentences": checkers.NumberOfSentences,
    "length_constraints:number_paragraphs": checkers.NumberOfParagraphs,
    "length_constraints:number_words": checkers.NumberOfWords,
    "length_constraints:nth_paragraph_first_word": checkers.NthParagraphFirstWord,
    "detectable_content:number_placeholders": checkers.NumberOfPlaceholders,
    "detectable_content:postscript": checkers.Postscript,
    "detectable_format:number_bullet_lists": checkers.NumberOfBulletLists,
    "detectable_format:constrained_response": checkers.ConstrainedResponse,
    "detectable_format:number_highlighted_sections": checkers.NumberOfHighlightedSections,
    "detectable_format:multiple_sections": checkers.MultipleSections,
    "detectable_format:json_format": checkers.JsonFormat,
    "detectable_format:title": checkers.Title,
    "combination:two_responses": checkers.TwoResponses,
    "combination:repeat_prompt": checkers.RepeatPrompt,
    "startend:end_checker": checkers.EndChecker,
    "startend:quotation": checkers.Quotation,
    "change_case:capital_word_frequency": checkers.CapitalWordFrequency,
    "change_case:english_capital": checkers.EnglishCapital,
    "change_case:english_lowercase": checkers.EnglishLowercase,
    "punctuation:no_comma": checkers.NoComma,
}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One verifiable instruction.

    Attributes
    ----------
    id : str
        Family and name, a key of `CHECKERS`.
    checker : Checker
    """

    id: str
    checker: Checker

    @property
    def family(self) -> str:
        """What stands before the colon of the id."""
        return self.id.split(":")[0]


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt and the verifiable instructions in it, at least one."""

    prompt: str
    instructions: tuple[Instruction, ...]


def read_instruction(id: str, kwargs: Mapping[str, object]) -> Instruction:  # IFEval's word
    """Read an id with its arguments; those that are None count as absent, zeros as given.

    Raises
    ------
    DataError
        For an unknown id, or arguments that are missing, unknown or
        impossible. IFEval's own code draws such arguments at random.

    Examples
    --------
    >>> read_instruction("length_constraints:number_paragraphs", {"num_paragraphs": 2}).family
    'length_constraints'
    """
    if id not in CHECKERS:
        raise DataError(f"Unknown instruction {id!r}; give one of {', '.join(CHECKERS)}.")
    try:
        return Instruction(id, build(CHECKERS[id], kwargs))
    except DataError as error:
        raise DataError(f"{id}: {error}") from None


def read_task(row: Mapping[str, object]) -> Task:
    """Read a row of IFEval's ``input_data.jsonl``.

    Parameters
    ----------
    row : mapping
        ``prompt``, ``instruction_id_list`` and ``kwargs``, one mapping (or
        None) for each id. Other keys are ignored.

    Raises
    ------
    DataError
        For a row of another form, and as `read_instruction`.
    """
    prompt, ids, kwargs = (row.get(name) for name in ("prompt", "instruction_id_list", "kwargs"))
    if not isinstance(prompt, str):
        raise DataError(f"prompt is {prompt!r}; give the text of the prompt.")
    if not isinstance(ids, list | tuple) or not ids:
        raise DataError(f"instruction_id_list is {ids!r}; give a list with at least one id.")
    if not isinstance(kwargs, list | tuple) or len(kwargs) != len(ids):
        raise DataError(f"kwargs is {kwargs!r}; give one mapping for each of the {len(ids)} ids.")
    pairs = zip(ids, kwargs, strict=True)
    return Task(
        prompt, tuple(read_instruction(str(id), _mapping(id, given)) for id, given in pairs)
    )


def _mapping(id: object, given: object) -> Mapping[str, object]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DataError(f"{id}: kwargs is {given!r}; give a mapping from argument to value.")
    return given


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of a check.

    Attributes
    ----------
    prompt : str
    ids : tuple of str
        Ids of the instructions, in the order of the task.
    strict, loose : tuple of bool or None
        Whether each was followed, in the response as it is and in any of its
        `loosened` versions; None where that cannot be told.
    """

    prompt: str
    ids: tuple[str, ...]
    strict: tuple[bool | None, ...]
    loose: tuple[bool | None, ...]

    @property
    def all_strict(self) -> bool | None:
        """Whether all were followed; None where those that could be told were."""
        return _all(self.strict)

    @property
    def all_loose(self) -> bool | None:
        """Whether each was followed in some version, not necessarily the same one."""
        return _all(self.loose)


def check(task: Task, response: str) -> Checked:
    r"""Check a response against every instruction of its prompt.

    A blank response follows nothing. What passes strictly passes loosely; the
    loose score is an upper bound: without its first or last line, a response
    may also lose the very violation that it is searched for.

    References
    ----------
    .. [1] J. Zhou et al., "Instruction-following evaluation for large language
       models", arXiv 2311.07911, 2023, section 3.

    Examples
    --------
    >>> from judge.ifeval.tasks import read_task
    >>> task = read_task(
    ...     {"prompt": "Hi", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    ... )
    >>> checked = check(task, "Sure, here:\nhello world")
    >>> checked.strict, checked.loose
    ((False,), (True,))
    """
    checkers = [instruction.checker for instruction in task.instructions]
    versions = loosened(response)
    return Checked(
        prompt=task.prompt,
        ids=tuple(instruction.id for instruction in task.instructions),
        strict=tuple(_follows(checker, response) for checker in checkers),
        loose=tuple(_any(_follows(each, text) for text in versions) for each in checkers),
    )


def _follows(checker: Checker, text: str) -> bool | None:
    return checker.follows(text) if text.strip() else False


def _any(results: Iterable[bool | None]) -> bool | None:
    """Return True if one is; otherwise None if one is unknown."""
    unknown = False
    for result in results:
        if result:
            return True
        unknown |= result is None
    return None if unknown else False


def _all(results: Iterable[bool | None]) -> bool | None:
    """Return False if one is; otherwise None if one is unknown."""
    known = list(results)
    if False in known:
        return False
    return None if None in known else True
