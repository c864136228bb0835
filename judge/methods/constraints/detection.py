"""Tells whether a text is in a language, by its script and its commonest words."""

import re
import unicodedata
from collections import Counter
from functools import cache

from judge.methods.constraints.profiles import COMMON_WORDS, SCRIPTS

_MAIN_SHARE = 2 / 3
_SURE_OF_CHINESE = 20
_KANA_SHARE = 0.1
_LEAST_EVIDENCE = 2.0
_LEAST_SHARE = 0.1
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
    if script not in COMMON_WORDS:
        return True
    return _by_common_words(text, script, language)


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
    found: Counter[str] = Counter()
    for character, times in Counter(text).items():
        if character.isalpha():
            found[_script(character)] += times
    if found["KANA"] and found["KANA"] >= _KANA_SHARE * (found["CJK"] + found["KANA"]):
        found["KANA"] += found.pop("CJK", 0)
    return +found


@cache
def _script(character: str) -> str:
    first = re.split("[ -]", unicodedata.name(character, "UNNAMED"), maxsplit=1)[0]
    return "KANA" if first in ("HIRAGANA", "KATAKANA") else first


def _by_common_words(text: str, script: str, language: str) -> bool | None:
    words = Counter(_WORD.findall(text.lower()))
    points = dict.fromkeys(COMMON_WORDS[script], 0.0)
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


def _is_sure(words: Counter[str], script: str, language: str, points: float) -> bool:
    common = sum(words[word] for word in COMMON_WORDS[script][language])
    return points >= _LEAST_EVIDENCE and common >= _LEAST_SHARE * words.total()


@cache
def _languages_by_word(script: str) -> dict[str, tuple[str, ...]]:
    """Return which languages have each common word."""
    tables = COMMON_WORDS[script]
    every = sorted(set().union(*tables.values()))
    return {word: tuple(name for name in tables if word in tables[name]) for word in every}
