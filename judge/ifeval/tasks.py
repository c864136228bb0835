"""IFEval's 25 instructions by id, rows of its data, and whether a response follows them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

from judge.ifeval import checkers
from judge.ifeval.checkers import Language, Letter, Relation
from judge.ifeval.text import SCRIPTS
from rating.errors import DataError

Checker = Callable[..., bool | None]
"""Whether a response that is not blank follows, given IFEval's arguments; None if in doubt."""


def parameters_of(checker: Checker) -> dict[str, Any]:
    """Return the types of a checker's arguments by name, without the response."""
    _, *arguments = signature(checker).parameters.values()
    return {each.name: each.annotation for each in arguments}


def _arguments(checker: Checker, given: Mapping[str, object]) -> dict[str, Any]:
    """Read arguments as they stand in a data file.

    Entries that are None count as absent, as in the copies of IFEval that
    give every instruction every key; zero is a value and stays.

    Raises
    ------
    DataError
        For an argument that is missing, unknown or impossible.
    """
    wanted = parameters_of(checker)
    present = {name: value for name, value in given.items() if value is not None}
    for name, value in present.items():
        if name not in wanted:
            raise DataError(f"{name} is {value!r}, but it takes {_joined(list(wanted))}.")
    for name in wanted:
        if name not in present:
            raise DataError(f"{name} is missing; it takes {_joined(list(wanted))}.")
    arguments = {name: _READERS[kind](name, present[name]) for name, kind in wanted.items()}
    _refuse_impossible(arguments)
    return arguments


def _refuse_impossible(arguments: Mapping[str, Any]) -> None:
    """Raise `DataError` for a bound that no count meets, or a paragraph that is not there."""
    if Relation.LESS_THAN in arguments.values():
        for name, value in arguments.items():
            if value == 0:
                raise DataError(f"{name} is 0 and the relation 'less than'; no count is below 0.")
    if "nth_paragraph" in arguments:
        n, nth = arguments["num_paragraphs"], arguments["nth_paragraph"]
        if not 1 <= nth <= n:
            msg = f"nth_paragraph is {nth}; with num_paragraphs {n}, give a number from 1 to that."
            raise DataError(msg)


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


def _letter(name: str, value: object) -> str:
    text = _text(name, value)
    if len(text) != 1:
        raise DataError(f"{name} is {text!r}; give one character.")
    return text


def _language(name: str, value: object) -> str:
    text = _text(name, value)
    if text not in SCRIPTS:
        raise DataError(f"{name} is {text!r}; give one of {', '.join(SCRIPTS)}.")
    return text


_READERS: Mapping[object, Callable[[str, object], object]] = {
    int: _count,
    str: _text,
    tuple[str, ...]: _texts,
    Relation: _relation,
    Letter: _letter,
    Language: _language,
}


CHECKERS: Mapping[str, Checker] = {
    "keywords:existence": checkers.existence,
    "keywords:frequency": checkers.frequency,
    "keywords:forbidden_words": checkers.forbidden_words,
    "keywords:letter_frequency": checkers.letter_frequency,
    "language:response_language": checkers.response_language,
    "length_constraints:number_sentences": checkers.number_sentences,
    "length_constraints:number_paragraphs": checkers.number_paragraphs,
    "length_constraints:number_words": checkers.number_words,
    "length_constraints:nth_paragraph_first_word": checkers.nth_paragraph_first_word,
    "detectable_content:number_placeholders": checkers.number_placeholders,
    "detectable_content:postscript": checkers.postscript,
    "detectable_format:number_bullet_lists": checkers.number_bullet_lists,
    "detectable_format:constrained_response": checkers.constrained_response,
    "detectable_format:number_highlighted_sections": checkers.number_highlighted_sections,
    "detectable_format:multiple_sections": checkers.multiple_sections,
    "detectable_format:json_format": checkers.json_format,
    "detectable_format:title": checkers.title,
    "combination:two_responses": checkers.two_responses,
    "combination:repeat_prompt": checkers.repeat_prompt,
    "startend:end_checker": checkers.end_checker,
    "startend:quotation": checkers.quotation,
    "change_case:capital_word_frequency": checkers.capital_word_frequency,
    "change_case:english_capital": checkers.english_capital,
    "change_case:english_lowercase": checkers.english_lowercase,
    "punctuation:no_comma": checkers.no_comma,
}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One verifiable instruction.

    Attributes
    ----------
    id : str
        Family and name, a key of `CHECKERS`.
    arguments : mapping
        Of its checker, by name.
    """

    id: str
    arguments: Mapping[str, Any]

    @property
    def family(self) -> str:
        """What stands before the colon of the id."""
        return self.id.split(":")[0]

    def follows(self, response: str) -> bool | None:
        """Say whether a response follows; None when that is unknown. A blank one does not."""
        return CHECKERS[self.id](response, **self.arguments) if response.strip() else False


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
        return Instruction(id, _arguments(CHECKERS[id], kwargs))
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
        `loosened` versions; None where that is unknown.
    """

    prompt: str
    ids: tuple[str, ...]
    strict: tuple[bool | None, ...]
    loose: tuple[bool | None, ...]

    @property
    def all_strict(self) -> bool | None:
        """Whether all were followed; None where those that are known were."""
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
    rules, versions = task.instructions, loosened(response)
    return Checked(
        prompt=task.prompt,
        ids=tuple(each.id for each in rules),
        strict=tuple(each.follows(response) for each in rules),
        loose=tuple(_any(each.follows(text) for text in versions) for each in rules),
    )


def loosened(response: str) -> tuple[str, ...]:
    r"""Return the versions of a response of which one has to pass for the loose score.

    As it is, without its first line, without its last, without both; each as
    it is and without asterisks, as in the paper that `check` names. Equal versions are given once.

    Examples
    --------
    >>> loosened("Sure:\n*yes*")
    ('Sure:\n*yes*', 'Sure:\nyes', '*yes*', 'yes', 'Sure:', '')
    """
    lines = response.split("\n")
    shorter = ("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))
    texts = (response, *shorter)
    return tuple(dict.fromkeys(each for text in texts for each in (text, text.replace("*", ""))))


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
