"""Sentences of a text, and its versions for the loose scores."""

import re
from itertools import pairwise

_CLOSING = "\"'”’»)]}*_`"
_OPENING = "\"'“‘«([{*_`"
_FULL_STOP_IN_A_RUN = re.compile("([。！？।॥؟۔])")
_STOPS = (".", "!", "?", "…", "。", "！", "？", "।", "॥", "؟", "۔")
_BEFORE_A_NAME = re.compile(
    "mrs?|ms|dr|prof|st|rev|hon|gen|col|capt|lt|sgt|sen|rep|gov|pres|mt|fig|vs|cf|al"
)
_MAY_END = re.compile(r"etc|inc|ltd|co|corp|[js]r|bros|ph\.d|u\.[sk]|[ap]\.m")


def count_sentences(text: str) -> int:
    r"""Count sentences.

    A sentence ends where a word ends in ``.``, ``!``, ``?`` or their kin in
    other scripts, with quotation marks, brackets and markdown after it set
    aside. A single full stop does not end one after a title or initial
    (``Dr.``, ``J.``) or within a dotted abbreviation (``e.g.``); after an
    ellipsis, or one of a few abbreviations that may close a sentence
    (``etc.``), it does so before a capital letter. What is left at the end
    counts as one. As in the trained Punkt model that IFEval uses, line breaks
    end nothing and the number of a list's item is a sentence; that model
    knows more abbreviations.

    Examples
    --------
    >>> count_sentences("Dr. J. Smith paid $3.50, e.g. in cash. Why? He had to")
    3
    >>> count_sentences("1. Wash.\n2. Dry.")
    4
    """
    text = _FULL_STOP_IN_A_RUN.sub(r"\1 ", text)
    words = [word for word in text.split() if word.strip(_CLOSING + _OPENING)]
    ends = (_ends_sentence(word, after) for word, after in pairwise(words))
    return sum(ends) + bool(words)


def _ends_sentence(word: str, after: str) -> bool:
    core = word.rstrip(_CLOSING)
    if not core.endswith(_STOPS):
        return False
    if not core.endswith((".", "…")):
        return True
    before = core.rstrip(".…").lstrip(_OPENING).lower()
    if core.endswith(("..", "…")) or _MAY_END.fullmatch(before):
        return after.lstrip(_OPENING)[:1].isupper()
    initial = len(before) == 1 and before.isalpha() and before != "i"
    return not (initial or _is_dotted(before) or _BEFORE_A_NAME.fullmatch(before))


def _is_dotted(word: str) -> bool:
    """Tell ``e.g`` and ``u.s.a`` from a word or an address."""
    return "." in word and all(len(part) == 1 and part.isalpha() for part in word.split("."))


def loosened(response: str) -> tuple[str, ...]:
    r"""Return the versions of a response of which one has to pass for the loose score.

    As it is, without its first line, without its last, without both; each as
    it is and without asterisks. Equal versions are given once.

    References
    ----------
    .. [1] J. Zhou et al., "Instruction-following evaluation for large language
       models", arXiv 2311.07911, 2023, section 3.

    Examples
    --------
    >>> loosened("Sure:\n*yes*")
    ('Sure:\n*yes*', 'Sure:\nyes', '*yes*', 'yes', 'Sure:', '')
    """
    lines = response.split("\n")
    shorter = ("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))
    texts = (response, *shorter)
    return tuple(dict.fromkeys(each for text in texts for each in (text, text.replace("*", ""))))
