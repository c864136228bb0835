"""Languages are told by script and common words, or not at all."""

import pytest

from judge.ifeval import SCRIPTS, check, common_words, main_script, read_task, written_in

LETTERS = {
    "en": "We got home late because the last train was full, so they had to wait for us.",
    "es": (
        "Llegamos tarde a casa porque el último tren estaba lleno y tuvieron que "
        "esperar por nosotros."
    ),
    "pt": (
        "Chegamos tarde a casa porque o último comboio estava cheio e eles tiveram de "
        "esperar por nós, mas não foi em vão."
    ),
    "fr": (
        "Nous sommes rentrés tard parce que le dernier train était plein et ils ont dû "
        "attendre dans la rue."
    ),
    "de": (
        "Wir kamen spät nach Hause, weil der letzte Zug voll war, und sie mussten auf uns warten."
    ),
    "it": (
        "Siamo tornati a casa tardi perché il treno era pieno e non c'era un posto per "
        "noi nella carrozza."
    ),
    "pl": (
        "Wróciliśmy późno do domu, bo pociąg był pełny i nie było miejsca, ale to już "
        "się nie liczy."
    ),
    "vi": "Chúng tôi về nhà muộn vì chuyến tàu cuối đã đầy và họ phải chờ trong nhà ga.",
    "sw": (
        "Tulifika nyumbani usiku kwa sababu gari la mwisho lilikuwa na watu wengi na "
        "wao walikuwa katika kituo cha reli."
    ),
    "fi": (
        "Tulimme kotiin myöhään, koska juna oli täynnä ja he olivat jo lähteneet, mutta "
        "se ei ole vakavaa."
    ),
    "ru": (
        "Мы пришли домой поздно, потому что поезд был полон, и они не могли нас "
        "дождаться, но это уже было не так важно."
    ),
    "uk": (
        "Ми прийшли додому пізно, бо потяг був повний, і вони не могли нас дочекатися, "
        "але це вже не так важливо."
    ),
    "bg": (
        "Прибрахме се късно, защото влакът беше пълен и те не можаха да ни чакат, но "
        "това вече не е важно."
    ),
    "ar": (
        "وصلنا إلى البيت في وقت متأخر لأن القطار كان مليئا ولم يكن هناك مكان لنا، لكن هذا لا يهم."
    ),
    "fa": (
        "ما دیر به خانه رسیدیم و قطار پر بود و آنها باید برای ما صبر می کردند، اما این "
        "مهم نیست که چه شد."
    ),
    "ur": (
        "ہم دیر سے گھر پہنچے کیونکہ ریل گاڑی بھری ہوئی تھی اور وہ ہمارا انتظار نہیں کر سکتے تھے۔"
    ),
    "hi": "हम घर देर से पहुँचे क्योंकि रेलगाड़ी भरी हुई थी और वे हमारा इंतज़ार नहीं कर सकते थे।",
    "mr": (
        "आम्ही घरी उशिरा पोहोचलो कारण गाडी भरलेली होती आणि ते थांबू शकत नाहीत, पण हे आता महत्त्वाचे नाही."
    ),
    "ne": (
        "हामी घर ढिलो पुग्यौं किनभने रेल भरिएको थियो र उनीहरू पर्खन सकेनन्, तर यो अब ठूलो कुरा होइन र ठीक छ।"
    ),
    "ja": "電車が混んでいたので、家に帰るのが遅くなりました。",
    "ko": "기차가 만원이어서 우리는 집에 늦게 도착했습니다.",
    "th": "เรากลับบ้านช้าเพราะรถไฟเต็ม",
    "he": "הגענו הביתה מאוחר כי הרכבת הייתה מלאה.",
    "bn": "ট্রেন ভর্তি ছিল বলে আমরা দেরিতে বাড়ি ফিরেছি।",
    "ta": "ரயில் நிரம்பியதால் நாங்கள் தாமதமாக வீட்டிற்கு வந்தோம்.",
    "te": "రైలు నిండిపోవడంతో మేము ఆలస్యంగా ఇంటికి వచ్చాము.",
    "kn": "ರೈಲು ತುಂಬಿದ್ದರಿಂದ ನಾವು ತಡವಾಗಿ ಮನೆಗೆ ಬಂದೆವು.",
    "ml": "തീവണ്ടി നിറഞ്ഞതിനാൽ ഞങ്ങൾ വൈകിയാണ് വീട്ടിലെത്തിയത്.",
    "gu": "ટ્રેન ભરેલી હતી એટલે અમે મોડા ઘરે પહોંચ્યા.",
    "pa": "ਰੇਲ ਗੱਡੀ ਭਰੀ ਹੋਈ ਸੀ ਇਸ ਲਈ ਅਸੀਂ ਦੇਰ ਨਾਲ ਘਰ ਪਹੁੰਚੇ।",
}

NEIGHBOURS = {
    "Dutch": (
        "Wij kwamen laat thuis omdat de laatste trein vol was, maar zij hebben op ons gewacht."
    ),
    "Swedish": (
        "Vi kom hem sent för att tåget var fullt, men de väntade på oss och det var inte så illa."
    ),
    "Romanian": (
        "Am ajuns târziu acasă pentru că trenul era plin, dar nu este o problemă și ei "
        "au așteptat."
    ),
    "Indonesian": (
        "Kami pulang terlambat karena kereta itu penuh, tetapi mereka akan menunggu di rumah."
    ),
    "Latin": "Sero domum venimus, quod vehiculum plenum erat; illi autem nos exspectaverunt.",
    "Basque": "Berandu iritsi ginen etxera, trena beteta zegoelako, baina itxaron egin ziguten.",
    "Serbian": "Стигли смо кући касно јер је воз био пун, али то није важно и они су нас чекали.",
    "Chinese": "因为最后一班火车坐满了人，我们很晚才回到家，他们只好一直等着我们回来。",
    "Greek": "Φτάσαμε αργά στο σπίτι γιατί το τρένο ήταν γεμάτο.",
}

PAIRS = [(own, other) for own in SCRIPTS for other in SCRIPTS if own != other]


@pytest.mark.parametrize("language", SCRIPTS)
def test_a_text_in_each_language_is_recognised(language: str) -> None:
    assert written_in(LETTERS[language], language) is True


def test_no_text_is_taken_for_another_language() -> None:
    assert [pair for pair in PAIRS if written_in(LETTERS[pair[0]], pair[1])] == []


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_language_outside_ifeval_is_never_taken_for_one_of_its_own(name: str) -> None:
    assert [code for code in SCRIPTS if written_in(NEIGHBOURS[name], code)] == []


UNREAD = {
    "no common word": "Okay!",
    "names": "Paris, London, Berlin",
    "no letters": "12 + 30 = 42",
    "a picture": "🐱",
    "code": "def f(n): return n",
    "one common word": "the Louvre",
    "few common words": "the " + "Alyar Aran Arin Arwen Calacirya Calaquendi " * 8 + "and the",
    "two languages": "the cat and the dog were here, die Katze und der Hund sind nicht dort",
}


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
def test_too_little_evidence_is_left_unread(text: str) -> None:
    assert written_in(text, "en") is None


def test_a_romanised_text_is_not_in_its_language() -> None:
    assert written_in("Hum ghar der se pahunche", "hi") is False


def test_a_few_foreign_words_change_nothing_and_half_a_text_leaves_doubt() -> None:
    assert written_in(LETTERS["hi"] + " (train)", "hi") is True
    assert written_in(LETTERS["ru"] + LETTERS["en"], "ru") is None
    assert (main_script("яяw"), main_script("яяяww")) == ("CYRILLIC", None)


def test_chinese_characters_alone_are_not_japanese_unless_they_are_few() -> None:
    assert written_in(NEIGHBOURS["Chinese"], "ja") is False
    assert written_in("東京", "ja") is None
    assert main_script(LETTERS["ja"]) == "KANA"


@pytest.mark.parametrize("script", common_words())
def test_every_language_of_a_shared_script_has_common_words(script: str) -> None:
    own = {language for language, name in SCRIPTS.items() if name == script}
    assert own <= common_words()[script].keys()
    assert all(word == word.lower() for words in common_words()[script].values() for word in words)


def test_doubt_about_the_language_is_unread_and_wrong_case_is_not() -> None:
    rules = read_task(
        {"prompt": "p", "instruction_id_list": ["change_case:english_capital"], "kwargs": [{}]}
    )
    assert check(rules, "PARIS").strict == (None,)
    assert check(rules, "Paris").strict == (False,)
