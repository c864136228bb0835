"""Every word that a visitor reads is in the catalogue, and the catalogue in every language."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.pofile import read_po
from jinja2 import nodes

from arena.catalogue import FOLDER, Language, chosen_language, words_in
from arena.pages.rendering import TEMPLATES, environment
from arena.ui.battle_page import MODULES, SCRIPT_WORDS, STATIC
from judge.render.pages import Environment
from rating.sentences import Sentence, counted

ROOT = Path(__file__).parents[2]
PLACEHOLDER = re.compile(r"%\(\w+\)s|%%|</?\w+[^>]*>")
NAMED = {"A", "B", "CSV", "JSON", "Parquet"}
"""What reads the same in every language."""


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """Messages in templates and code, as ``make words`` finds them."""
    target = tmp_path_factory.mktemp("words") / "words.pot"
    recipe = re.search(r"^\t\$\(BIN\)/(pybabel .* extract .*)$", read(ROOT / "Makefile"), re.M)
    assert recipe is not None
    program, *options = shlex.split(recipe[1])
    options[options.index("-o") + 1] = str(target)
    subprocess.run([Path(sys.executable).parent / program, *options], cwd=ROOT, check=True)
    with target.open("rb") as file:
        return read_po(file)


@pytest.fixture(scope="module")
def german() -> Catalog:
    with (FOLDER / "de.po").open("rb") as file:
        return read_po(file, locale="de")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def faults(wanted: Catalog, given: Catalog) -> list[str]:
    """Describe what is missing in a translation, or stale, unsure, or of other placeholders."""
    ids, known = ({m.id for m in catalogue if m.id} for catalogue in (wanted, given))
    complaints = [f"missing: {i}" for i in ids - known] + [f"stale: {i}" for i in known - ids]
    complaints += [f"obsolete: {i}" for i in given.obsolete]
    for message in given:
        if not message.id:
            continue
        forms = [message.string] if isinstance(message.string, str) else list(message.string or ())
        if message.fuzzy or not all(forms):
            complaints.append(f"unsure: {message.id}")
        source = message.id if isinstance(message.id, str) else message.id[-1]
        complaints += [f"other values: {f}" for f in forms if parts(f) != parts(source)]
    return complaints


def parts(message: str) -> list[str]:
    return sorted(set(PLACEHOLDER.findall(message)))


def test_german_has_every_message_and_no_other(wanted: Catalog, german: Catalog) -> None:
    assert len(wanted) > 300
    assert faults(wanted, german) == []


def test_what_is_wrong_with_a_translation_is_found(wanted: Catalog, german: Catalog) -> None:
    def changed(message: str, **changes: object) -> list[str]:
        copy = deepcopy(german)
        for name, value in changes.items():
            setattr(copy[message], name, value)
        return faults(wanted, copy)

    copy = deepcopy(german)
    copy.delete("Leaderboard")
    copy.add("Ranking", "Rangliste")
    assert faults(wanted, copy) == ["missing: Leaderboard", "stale: Ranking"]
    assert changed("Leaderboard", string="") == ["unsure: Leaderboard"]
    assert changed("Leaderboard", flags={"fuzzy"}) == ["unsure: Leaderboard"]
    assert changed("Turn %(n)s", string="Runde %(m)s") == ["other values: Runde %(m)s"]


class Shown(HTMLParser):
    """Collects the words that a page shows outside of expressions of its template."""

    WORDED = frozenset({"title", "aria-label", "placeholder", "alt", "data-label", "content"})
    ASIDE = frozenset({"script", "style", "code", "kbd", "math", "mi"})

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._aside = 0

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._aside += tag in self.ASIDE
        if tag != "meta":
            self.words += [value or "" for name, value in attrs if name in self.WORDED]

    def handle_endtag(self, tag: str) -> None:
        self._aside -= tag in self.ASIDE

    def handle_data(self, data: str) -> None:
        if not self._aside:
            self.words.append(data)


def untranslated(env: Environment, source: str) -> list[str]:
    """Find words in a template that are not of the catalogue."""
    tree = env.parse(source)
    page = Shown()
    page.feed("".join(data.data for data in tree.find_all(nodes.TemplateData)))
    asked = {id(const) for call in tree.find_all(nodes.Call) for const in messages_of(call)}
    literals = [
        const.value
        for output in tree.find_all(nodes.Output)
        for const in output.find_all(nodes.Const)
        if isinstance(const.value, str) and id(const) not in asked
    ]
    texts = (re.sub(r"\S*=\S*", "", text) for text in page.words)  # addresses, attributes
    plain = [word for text in texts for word in re.findall(r"[^\W\d_]+", text)]
    spoken = [text for text in literals if re.search(r"^[A-Z]|[a-z] [a-z]", text.strip())]
    return [word for word in plain + spoken if word not in NAMED and word not in ("n", "p")]


def messages_of(call: nodes.Call) -> Iterator[nodes.Const]:
    if isinstance(call.node, nodes.Name) and call.node.name in ("_", "gettext", "ngettext"):
        yield from (arg for arg in call.args if isinstance(arg, nodes.Const))


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.stem)
def test_a_template_holds_no_words_of_its_own(path: Path) -> None:
    assert untranslated(environment(Language.EN), read(path)) == []


def test_planted_words_are_found() -> None:
    env = environment(Language.EN)
    assert untranslated(env, "<p>Votes</p>") == ["Votes"]
    assert untranslated(env, '<a title="more">{{ _("Votes") }}</a>') == ["more"]
    assert untranslated(env, '{{ "Never met" if x else _("Votes") }}') == ["Never met"]
    assert untranslated(env, "{% trans %}Votes{% endtrans %}") == []


def spoken(script: str) -> list[str]:
    """Find words for people among the strings of a script."""
    lines = re.sub(r"^\s*//.*|\s//.*", "", script, flags=re.M)
    strings = re.findall(r'"([^"\n]*)"|`([^`\n]*)`', lines)
    texts = (re.sub(r"\$\{[^}]*\}", "", a or b) for a, b in strings)
    shown = re.findall(
        r'(?:textContent|title|placeholder) = "([^"]+)"|(?:say|tell)\("([^"]+)', lines
    )
    texts_shown = [a or b for a, b in shown]
    worded = [t for t in texts if re.search(r"[A-Za-z]{2,}[.,:]? [a-z]{2,}", t)]
    return [
        t
        for t in texts_shown + worded
        if not re.search(r"[#>=\[]|^\.|^use strict$|^input, |^\(", t)
    ]


def test_the_script_holds_no_words_of_its_own() -> None:
    script = "\n".join(read(STATIC / f"{name}.js") for name in MODULES)
    assert spoken(script) == []
    assert spoken(script + 'say("Copied");') == ["Copied"]
    assert spoken(script + "x = `Ask ${name} once more`;") == ["Ask  once more"]
    used = {*re.findall(r"\bwords\.(\w+)", script)}
    assert used == set(SCRIPT_WORDS)


def test_a_number_chooses_its_form() -> None:
    german = words_in(Language.DE)
    votes = [german(counted("%(n)s vote", "%(n)s votes", n)) for n in (0, 1, 2, 2184)]
    assert votes == ["0 Stimmen", "1 Stimme", "2 Stimmen", "2.184 Stimmen"]
    assert german.ngettext("%(n)s vote", "%(n)s votes", 1) == "1 Stimme"


def test_sentences_in_sentences_are_put_into_the_language_too() -> None:
    reached = Sentence(
        "Your limit is %(battles)s per hour.",
        battles=counted("%(n)s battle", "%(n)s battles", 1200),
    )
    assert reached == "Your limit is 1,200 battles per hour."
    assert words_in(Language.DE)(reached) == "Dein Limit je Stunde ist erreicht (1.200 Duelle)."
    assert words_in(Language.DE)("What nobody has put into German") == (
        "What nobody has put into German"
    )
    assert deepcopy(reached).values == reached.values


def test_values_of_others_act_in_no_language() -> None:
    for language in Language:
        html = words_in(language).gettext("Turn %(n)s", n="<b>\x1b%(n)s</b>")
        assert html.endswith("&lt;b&gt;\N{REPLACEMENT CHARACTER}%(n)s&lt;/b&gt;")


@pytest.mark.parametrize(
    ("cookie", "accepted", "chosen"),
    [
        ("de", "en", "de"),
        ("xx", "de", "de"),
        ("", "", "en"),
        (None, "de", "de"),
        (None, "DE-at", "de"),
        (None, "en;q=0.3, de;q=0.5", "de"),
        (None, "de;q=0, *", "en"),
        (None, "en;q=0, *;q=0.1", "de"),
        (None, "fr, it", "en"),
        (None, "*", "en"),
        (None, "de;q=1.5, en;q=nan", "en"),
        (None, "de;" * 5000, "en"),
        (None, ",".join(["fr"] * 100_000 + ["de"]), "en"),
        (None, "../../de, de\x00, \udcff, <de>", "en"),
        ("../de", "de-" + "a" * 100_000, "en"),
    ],
)
def test_a_language_is_chosen_from_what_a_browser_sends(
    cookie: str | None, accepted: str, chosen: str
) -> None:
    assert chosen_language(cookie, accepted, Language.EN) == chosen


def test_what_a_visitor_does_not_say_the_setting_does() -> None:
    assert chosen_language(None, "fr", Language.DE) is Language.DE
    assert chosen_language(None, "*", Language.DE) is Language.DE
