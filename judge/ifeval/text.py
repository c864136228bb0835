"""What language a text is in, by its script and its commonest words; and its sentences."""

import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise

_MAIN_SHARE = 2 / 3
_SURE_OF_CHINESE = 20
_KANA_SHARE = 0.1
_LEAST_EVIDENCE = 2.0
_LEAST_SHARE = 0.1
_LEAST_OF_PROMPTS = 0.75
_LEAD = 2.0
_WORD = re.compile(r"[^\s\d!-/:-@\[-`{-~«»“”„‘’…—–।،؛؟。、]+")


def written_in(text: str, language: str) -> bool | None:
    """Say whether most of a text is in a language; None when there is doubt.

    Letters decide first: unless two thirds are of one script there is doubt,
    and another script than the language's is a no, so a romanised text is not
    in its language. Where a script serves several languages, common words
    decide: each counts one over the number of languages that have it. A
    language is named with at least 2 such points, a tenth of all words common
    in it, and twice the points of any other.

    Parameters
    ----------
    language : str
        One of `SCRIPTS`.

    Notes
    -----
    Thresholds were set on the tests' texts in every language. A script with a
    single language of IFEval's stands for that language: Assamese passes as
    Bengali and Yiddish as Hebrew.

    Examples
    --------
    >>> written_in("The cat sat on the mat because it was warm there.", "en")
    True
    >>> written_in("Die Katze lag auf der Matte, weil es dort warm war.", "en")
    False
    >>> written_in("Okay!", "en") is None
    True
    """
    script = main_script(text)
    if script is None:
        return None
    if script != SCRIPTS[language]:
        return False
    if script not in common_words():
        return True
    return _by_common_words(text, script, language)


def language_of(text: str) -> str | None:
    """Name the language that most of a text is in, by the rules of `written_in`; None in doubt.

    Common words are of more languages than IFEval asks for. Of Chinese characters without kana
    a few are enough here: a text that may be Japanese rarely has none.

    Examples
    --------
    >>> language_of("Wie wird das Wetter in der Stadt?"), language_of("Ok")
    ('de', None)
    """
    script = "LATIN" if text.isascii() else _most_used_script(text)
    if script in common_words():
        return _by_most_common_words(text, script)
    return _OF_SCRIPT.get(script)


def main_script(text: str) -> str | None:
    """Return the script of two thirds of the letters, as Unicode names it; None without one.

    Chinese characters beside kana are ``KANA``; so few without kana that they
    may be either Chinese or Japanese give None.

    Examples
    --------
    >>> main_script("Привет, мир"), main_script("123") is None
    ('CYRILLIC', True)
    """
    letters = _letters(text)
    if not letters:
        return None
    script, count = letters.most_common(1)[0]
    unsure = script == "CJK" and (count < _SURE_OF_CHINESE or "KANA" in letters)
    return None if unsure or count < _MAIN_SHARE * letters.total() else script


def _letters(text: str) -> Counter[str]:
    """Count letters by script."""
    counts: Counter[str] = Counter()
    for character, times in Counter(text).items():
        if character.isalpha():
            counts[_script(character)] += times
    if counts["KANA"] and counts["KANA"] >= _KANA_SHARE * (counts["CJK"] + counts["KANA"]):
        counts["KANA"] += counts.pop("CJK", 0)
    return +counts


@cache
def _script(character: str) -> str:
    first = re.split("[ -]", unicodedata.name(character, "UNNAMED"), maxsplit=1)[0]
    return "KANA" if first in ("HIRAGANA", "KATAKANA") else first


def _by_common_words(text: str, script: str, language: str) -> bool | None:
    words = Counter(_WORD.findall(text.lower()))
    points = dict.fromkeys(common_words()[script], 0.0)
    for word, names in _languages_by_word(script).items():
        for name in names:
            points[name] += words[word] / len(names)
    own = points.pop(language)
    rival = max(points, key=points.__getitem__)
    if _is_sure(words, script, language, own) and own >= _LEAD * points[rival]:
        return True
    if _is_sure(words, script, rival, points[rival]) and points[rival] >= _LEAD * own:
        return False
    return None


def _most_used_script(text: str) -> str:
    letters = _letters(text)
    script, count = letters.most_common(1)[0] if letters else ("", 0)
    return script if count >= _MAIN_SHARE * letters.total() else ""


def _by_most_common_words(text: str, script: str) -> str | None:
    weights, words = _weights(script), _WORD.findall(text.lower())
    points: dict[str, float] = defaultdict(float)
    for word in words:
        for name, weight in weights.get(word, ()):
            points[name] += weight
    best = max(points, key=points.__getitem__, default="")
    most = points.pop(best, 0.0)
    sure = most >= _LEAST_OF_PROMPTS and most >= _LEAST_SHARE * len(words) / 2
    return best if sure and most >= _LEAD * max(points.values(), default=0.0) else None


@cache
def _weights(script: str) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return what each word says for which language: one over those that have it, or 1."""
    weights: dict[str, dict[str, float]] = defaultdict(dict)
    for word, names in _languages_by_word(script).items():
        weights[word] = dict.fromkeys(names, 1 / len(names))
    for name in _PROMPTS.keys() & common_words()[script].keys():
        for word in _PROMPTS[name].split():
            weights[word][name] = weights[word].get(name, 0.0) + 1
    return {word: tuple(by_name.items()) for word, by_name in weights.items()}


def _is_sure(words: Counter[str], script: str, language: str, points: float) -> bool:
    common = sum(words[word] for word in common_words()[script][language])
    return points >= _LEAST_EVIDENCE and common >= _LEAST_SHARE * words.total()


@cache
def _languages_by_word(script: str) -> dict[str, tuple[str, ...]]:
    """Return which languages have each common word."""
    tables = common_words()[script]
    every = sorted(set().union(*tables.values()))
    return {word: tuple(name for name in tables if word in tables[name]) for word in every}


_LANGUAGES = {
    "LATIN": "en es pt fr de it pl vi sw fi",
    "CYRILLIC": "ru uk bg",
    "ARABIC": "ar fa ur",
    "DEVANAGARI": "hi mr ne",
    "KANA": "ja",
    "HANGUL": "ko",
    "THAI": "th",
    "HEBREW": "he",
    "BENGALI": "bn",
    "TAMIL": "ta",
    "TELUGU": "te",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
}
SCRIPTS: Mapping[str, str] = {
    language: script for script, names in _LANGUAGES.items() for language in names.split()
}
"""Script of each language (ISO 639-1), by the first word of its letters' Unicode names."""

_OF_SCRIPT = {script: names for script, names in _LANGUAGES.items() if " " not in names} | {
    "CJK": "zh",
    "GREEK": "el",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
    "KHMER": "km",
    "LAO": "lo",
    "MYANMAR": "my",
    "SINHALA": "si",
}
"""Language of each script that serves one, or one in nearly every text."""

_PROMPTS = {
    "en": "what why how who where which when does did explain write list describe give tell name "
    "compare create translate summarise summarize hi hello please thanks",
    "es": "cómo cuál cuáles cuánto cuántos cuándo dónde quién escribe explica hola gracias haz "
    "dame",
    "fr": "comment pourquoi quelle quelles quel quels combien écris explique bonjour traduis "
    "donne",
    "de": "warum wieso welche welcher schreibe erkläre hallo bitte danke wieviel nenne gib",
    "it": "come cosa quali quale scrivi spiega ciao dammi grazie dimmi",
    "pt": "quais qual quanto quantos escreva explique olá obrigado faça dê",
    "nl": "waarom hoe wie welke schrijf leg hallo",
    "ru": "почему как что напиши объясни какие какой привет сколько переведи где кто",
    "uk": "чому як що напиши поясни які який привіт скільки",
    "bg": "защо какво напиши обясни какви кой колко означава",
}
"""Words with which prompts begin; together with the common words they name a language."""


@cache
def common_words() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """Read common words by script and language; scripts of a single language have none."""
    text = (files("judge.ifeval") / "common_words.toml").read_text("utf-8")
    return {
        script: {language: frozenset(words.split()) for language, words in tables.items()}
        for script, tables in tomllib.loads(text).items()
    }


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
