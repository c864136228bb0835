"""Instructions of a prompt that can be checked: their words, and which answers follow them."""

from collections.abc import Mapping
from dataclasses import dataclass

from rating.sentences import Sentence


@dataclass(frozen=True, slots=True)
class Followed:
    """Whether each side follows an instruction; None where that is not known."""

    id: str
    a: bool | None
    b: bool | None


KINDS: Mapping[str, Sentence] = {
    "keywords:existence": Sentence("words to use"),
    "keywords:frequency": Sentence("how often a word comes"),
    "keywords:forbidden_words": Sentence("words to avoid"),
    "keywords:letter_frequency": Sentence("how often a letter comes"),
    "language:response_language": Sentence("language of the answer"),
    "length_constraints:number_sentences": Sentence("number of sentences"),
    "length_constraints:number_paragraphs": Sentence("number of paragraphs"),
    "length_constraints:number_words": Sentence("number of words"),
    "length_constraints:nth_paragraph_first_word": Sentence("first word of a paragraph"),
    "detectable_content:number_placeholders": Sentence("placeholders in brackets"),
    "detectable_content:postscript": Sentence("a postscript"),
    "detectable_format:number_bullet_lists": Sentence("number of bullet points"),
    "detectable_format:constrained_response": Sentence("one of the answers allowed"),
    "detectable_format:number_highlighted_sections": Sentence("highlighted parts"),
    "detectable_format:multiple_sections": Sentence("number of sections"),
    "detectable_format:json_format": Sentence("JSON throughout"),
    "detectable_format:title": Sentence("a title in double angle brackets"),
    "combination:two_responses": Sentence("two different responses"),
    "combination:repeat_prompt": Sentence("the request repeated first"),
    "startend:end_checker": Sentence("the words at the end"),
    "startend:quotation": Sentence("quotation marks around it all"),
    "change_case:capital_word_frequency": Sentence("words in capital letters"),
    "change_case:english_capital": Sentence("English in capital letters"),
    "change_case:english_lowercase": Sentence("English in small letters"),
    "punctuation:no_comma": Sentence("no comma"),
}
"""What each of IFEval's instructions is about, by its id: the prompt says the rest."""
