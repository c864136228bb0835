"""IFEval's 25 instructions by id, and rows of its data."""

from collections.abc import Mapping
from dataclasses import dataclass

from judge.methods.constraints import (
    combination,
    content,
    formatting,
    keywords,
    language,
    length,
    letter_case,
    punctuation,
    startend,
)
from judge.methods.constraints.arguments import Checker, build
from rating.errors import DataError

CHECKERS: Mapping[str, type[Checker]] = {
    "keywords:existence": keywords.Existence,
    "keywords:frequency": keywords.Frequency,
    "keywords:forbidden_words": keywords.ForbiddenWords,
    "keywords:letter_frequency": keywords.LetterFrequency,
    "language:response_language": language.ResponseLanguage,
    "length_constraints:number_sentences": length.NumberOfSentences,
    "length_constraints:number_paragraphs": length.NumberOfParagraphs,
    "length_constraints:number_words": length.NumberOfWords,
    "length_constraints:nth_paragraph_first_word": length.NthParagraphFirstWord,
    "detectable_content:number_placeholders": content.NumberOfPlaceholders,
    "detectable_content:postscript": content.Postscript,
    "detectable_format:number_bullet_lists": formatting.NumberOfBulletLists,
    "detectable_format:constrained_response": formatting.ConstrainedResponse,
    "detectable_format:number_highlighted_sections": formatting.NumberOfHighlightedSections,
    "detectable_format:multiple_sections": formatting.MultipleSections,
    "detectable_format:json_format": formatting.JsonFormat,
    "detectable_format:title": formatting.Title,
    "combination:two_responses": combination.TwoResponses,
    "combination:repeat_prompt": combination.RepeatPrompt,
    "startend:end_checker": startend.EndChecker,
    "startend:quotation": startend.Quotation,
    "change_case:capital_word_frequency": letter_case.CapitalWordFrequency,
    "change_case:english_capital": letter_case.EnglishCapital,
    "change_case:english_lowercase": letter_case.EnglishLowercase,
    "punctuation:no_comma": punctuation.NoComma,
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
