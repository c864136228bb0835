"""Whether a text is in a language, by its script and its commonest words."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rating.errors import DataError


@dataclass(frozen=True, slots=True)
class ResponseLanguage:
    """The response is in the language, an ISO 639-1 code of IFEval's thirty.

    By `written_in`, which abstains where it is not sure. Upstream asks
    langdetect, which draws at random and always names a language, and lets
    pass what it fails on (no letters, for instance).
    """

    language: str

    def __post_init__(self) -> None:
        if self.language not in SCRIPTS:
            raise DataError(f"language is {self.language!r}; give one of {', '.join(SCRIPTS)}.")

    def follows(self, response: str) -> bool | None:
        """Compare the language; None when in doubt."""
        return written_in(response, self.language)


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


SCRIPTS: Mapping[str, str] = {
    "en": "LATIN",
    "es": "LATIN",
    "pt": "LATIN",
    "fr": "LATIN",
    "de": "LATIN",
    "it": "LATIN",
    "pl": "LATIN",
    "vi": "LATIN",
    "sw": "LATIN",
    "fi": "LATIN",
    "ru": "CYRILLIC",
    "uk": "CYRILLIC",
    "bg": "CYRILLIC",
    "ar": "ARABIC",
    "fa": "ARABIC",
    "ur": "ARABIC",
    "hi": "DEVANAGARI",
    "mr": "DEVANAGARI",
    "ne": "DEVANAGARI",
    "ja": "KANA",
    "ko": "HANGUL",
    "th": "THAI",
    "he": "HEBREW",
    "bn": "BENGALI",
    "ta": "TAMIL",
    "te": "TELUGU",
    "kn": "KANNADA",
    "ml": "MALAYALAM",
    "gu": "GUJARATI",
    "pa": "GURMUKHI",
}
"""Script of each language (ISO 639-1), by the first word of its letters' Unicode names."""

_LATIN = {
    "en": (
        "the of and to in is that it for was on are as with his they be at this have from "
        "or had by but not what all were when your can there an each which she do how "
        "their if will up about out then them these so some her would like him into has "
        "more my than who its we you i he me our a no only because also should could any "
        "other been let us just where am"
    ),
    "es": (
        "de que y el en los del se las por un para con una su al lo como más pero sus le "
        "ha me si sin sobre este ya entre cuando todo esta ser son también fue había era "
        "muy hasta desde está mi porque qué sólo han yo hay puede todos así nos ni tiene "
        "él uno donde bien mismo ese cada otro otros aunque esa eso hace otra es la no "
        "deben toda o a"
    ),
    "pt": (
        "de que e do da em um para com não uma os no se na por mais as dos como mas ao "
        "ele das à seu sua ou quando muito nos já eu também só pelo pela até isso ela "
        "entre depois sem mesmo aos seus quem nas me esse eles você essa num nem suas meu "
        "às minha têm são é foi ser tem está há este esta a o devem"
    ),
    "fr": (
        "de la le et les des en un du une que est pour qui dans par sur pas plus au ce il "
        "ne se sont avec son aux qu à ou mais comme nous vous elle ils leur cette ces "
        "être fait été sa ses tout tous y je mon même si bien où était très sans uns "
        "autres doivent a"
    ),
    "it": (
        "di e il la che in un è per a una non sono si con del da le i come al lo della "
        "più gli dei ma ha nel alla o anche delle se questo ho mi quando perché questa "
        "essere molto tutti ci nella tutto suo sua loro cosa così stato era dell ed degli "
        "dalla devono verso"
    ),
    "de": (
        "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als "
        "auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie "
        "einem über einen so zum war haben nur oder aber vor zur bis mehr durch man sein "
        "wurde ich wir ihr kann wenn weil alle sollen dort"
    ),
    "pl": (
        "w i na z do się nie że jest to o jak za po od ale dla przez co czy są przy który "
        "która które tym ma tak lub być może oraz tego jego jej ich już tylko gdy był "
        "było także ze innych wszyscy a"
    ),
    "vi": (
        "và của là có các một cho không được trong với những người này đã để khi từ về "
        "đến như ra cũng nhiều trên tôi bạn sẽ nhưng thể phải hay vì đó ở bị làm nó mọi "
        "đều nhau"
    ),
    "sw": (
        "na ya wa kwa ni katika za la kama hii hiyo yake wake lakini au pia watu hilo huo "
        "cha vya si kuwa mtu wote yote hivyo ili kutoka sana moja kila ambayo ambao bila "
        "zaidi zake hizo wao huru hali"
    ),
    "fi": (
        "ja on ei se että hän oli en ovat mutta kun niin myös joka tai kuin jos sen ole "
        "voi mitä hänen olla sitä minä sinä mukaan tämä tämän jotka kaikki vain sekä "
        "vielä olen kanssa jälkeen sitten ne nyt heille he toisiaan sillä koska"
    ),
    "nl": (
        "de van een het en in is dat op te zijn met voor niet die aan er om ook als maar "
        "dan bij nog uit naar heeft worden wordt door hij ze wij je ik deze dit wat geen "
        "meer over of tot kan alle zich"
    ),
    "sv": (
        "och i att det som en på är av för med den till inte har de ett om jag men var så "
        "från kan när vi hade han hon eller också vara ska alla"
    ),
    "da": (
        "og i at det er en til af på for med den som der de ikke har et jeg kan fra om "
        "men så var vi eller når skal også være hun han alle blev"
    ),
    "no": (
        "og i at det er en til av på for med den som de ikke har et jeg kan fra om men så "
        "var vi eller når skal også være hun han alle ble blir"
    ),
    "ro": (
        "și de în a la cu care nu pe o este un din pentru mai că sau au fost să ca dar "
        "prin cel cea sunt ei lui despre toate"
    ),
    "cs": (
        "a se na v je že to s z do o i jako ale po jsou k pro za by který která které od "
        "tak nebo když také jeho byl bylo má"
    ),
    "sk": (
        "a sa na v je že to s z do o aj ako ale po sú k pre za by ktorý ktorá ktoré od "
        "tak alebo keď tiež jeho bol bolo má"
    ),
    "hr": ("i je u se na da za su od s a o kao koji ne što iz ili ali to sam biti nije može koje"),
    "hu": "a az és hogy nem is egy ez van volt csak meg de mint már még el ha vagy ki minden",
    "tr": (
        "ve bir bu için ile da de olarak olan çok daha en gibi kadar ne sonra var her "
        "değil ama o olduğu ya ki mi veya"
    ),
    "id": (
        "yang dan di untuk dengan ini itu dari pada adalah dalam tidak akan ke oleh juga "
        "atau sebagai bisa ada dapat saya lebih karena mereka kita anda telah"
    ),
    "ca": (
        "de la i que el a en els per amb les un una del al es no és com més va ha són ser "
        "aquest però o què també dels perquè"
    ),
    "tl": "ang ng sa na mga ay at ni para ito may hindi kung siya ko mo nila rin isang",
    "et": "ja on ei et see kui ta oli mis aga ka ning või oma olid nii seda kes ma",
}

_CYRILLIC = {
    "ru": (
        "и в не на что я с он как это по но из у за от о же так для вы мы они она его "
        "только мне было был ещё бы или все её то если уже когда их может быть при этого "
        "есть своем"
    ),
    "uk": (
        "і в на не що з у та до як це за від але для про його вона він вони ми ви я й або "
        "так ще були був було бути є їх при тому також які який яка може якщо коли після "
        "всі"
    ),
    "bg": (
        "и на да се в е за от не са с че по това как ще но като до при или има който "
        "която които си бе няма след само може този тази ли аз ние той тя те беше още "
        "всички вече ни ги съм които много нас"
    ),
    "sr": "и је у да се на за су од са не као који што из или али то сам бити није може које",
    "mk": (
        "и на во да се е за од не со што ги како ќе но до при или има кој која кои овој "
        "оваа сум беше тоа"
    ),
    "be": (
        "і ў на не што з у да як гэта за ад але для пра яго яна ён яны мы вы я або так "
        "яшчэ былі быў было быць ёсць іх"
    ),
}

_ARABIC = {
    "ar": (
        "في من على إلى أن عن مع هذا هذه التي الذي ما لا كان كل أو هو هي ذلك بعد كما لم قد "
        "بين ثم كانت عند إن لكن حيث قبل أنه يمكن وقد وهو جميع بعضهم"
    ),
    "fa": (
        "و در به از که این را با است برای آن یک خود تا کرد بر هم نیز می شود ها شده ما او "
        "بود اما یا هر باید دارد کند اگر من شما های همه اند می‌شود"
    ),
    "ur": (
        "کے کی میں ہے اور سے کا کو اس ہیں کہ نے پر یہ جو بھی ایک کر نہیں تھا تو ہو گیا "
        "کیا لیے وہ ہوتا تھے تھی ان اپنے آپ ساتھ دوسرے"
    ),
    "ps": "د په چې او له کې دی سره دا هم نه ته یې کړي ده يې",
}

_DEVANAGARI = {
    "hi": (
        "के में की है और से का को कि ने पर यह हैं एक भी नहीं इस जो तो कर हो था लिए ही या "
        "अपने थे थी आप वह हम मैं जाता होता सकते साथ लेकिन सभी उन्हें चाहिए"
    ),
    "mr": (
        "आहे आणि व या हे ते च्या ला मध्ये आहेत तो ती एक असे होते केले होता नाही पण त्या "
        "हा ही की का मी आपण किंवा साठी त्यांच्या करून त्याच्या त्यांना प्रत्येक सर्व असून"
    ),
    "ne": (
        "छ र को मा हो यो ले लाई गर्न पनि छन् भएको थियो गरेको एक तथा हुन् नै त्यो भने "
        "गर्ने हुने प्रत्येक बाट म छैन तर यस हुन्छ हामी तपाईं सबै"
    ),
}


def _split(tables: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    return {language: frozenset(words.split()) for language, words in tables.items()}


COMMON_WORDS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "LATIN": _split(_LATIN),
    "CYRILLIC": _split(_CYRILLIC),
    "ARABIC": _split(_ARABIC),
    "DEVANAGARI": _split(_DEVANAGARI),
}
"""Common words by script and language; scripts of a single language have none."""
